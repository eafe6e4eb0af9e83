"""Run one of the interpreter's test modules with unittest, and record each test.

``installed`` needs nothing more than ``fastpickle.install()`` before the test module is imported.  ``bound`` is more
work, because an unchanged subclass of ``pickle._Pickler`` fails tests that ask ``self.pickler is pickle._Pickler``:

    import test_pickle              its classes hold the stock class as pickler, Pickler, pickler_class
    pickle._Pickler = our class     for what is looked up at call time: pickle._dump, pickle._dumps, pickletester
    rebind                          what the test classes hold, and the bases of classes derived from the stock class
    check                           that nothing in the test modules leads to the stock class but through ours
"""

from __future__ import annotations

import importlib
import pickle
import traceback
import unittest
from collections.abc import Iterator
from types import ModuleType, TracebackType

from compat._accelerate import install
from compat._record import FAILED, PASSED, SKIPPED, Recorder

_StockPickler = pickle._Pickler
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one test module.

    Args:
        unit: the module's name.
        mode: "stock", "bound" or "installed".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status, always 0.
    """
    if mode == "installed":
        install()
    module = importlib.import_module(unit)
    if mode == "bound":
        bind(module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    chosen = unittest.TestSuite(test for test in _flatten(suite) if not tests or test.id() in tests)
    chosen.run(RecordingResult(recorder))
    if mode == "bound":
        _check_bound(module)
    return 0


def bind(module: ModuleType) -> None:
    """Bind fastpickle.Pickler wherever test_pickle uses the stdlib's class.

    Args:
        module: test_pickle, just imported.

    Raises:
        SystemExit: something in the test modules still leads to the stock class.
    """
    fastpickle = importlib.import_module("fastpickle")
    ours = fastpickle.Pickler
    setattr(pickle, "_Pickler", ours)  # noqa: B010  # a type checker takes the name for a constant
    for cls in _test_classes(module):
        for name, value in list(vars(cls).items()):
            if value is _StockPickler:
                setattr(cls, name, ours)
        if _StockPickler in cls.__bases__:
            cls.__bases__ = tuple(ours if base is _StockPickler else base for base in cls.__bases__)
    _check_bound(module)
    print(f"bound: {fastpickle.__file__}")


def _check_bound(module: ModuleType) -> None:
    """Make sure that the tests exercise fastpickle.Pickler and nothing else."""
    ours = pickle._Pickler
    if ours is _StockPickler:
        raise SystemExit("pickle._Pickler is the stock class")
    for cls in _test_classes(module):
        for name, value in [*vars(cls).items(), *((base.__name__, base) for base in cls.__bases__)]:
            stock = isinstance(value, type) and issubclass(value, _StockPickler) and not issubclass(value, ours)
            if stock:
                raise SystemExit(f"{cls.__module__}.{cls.__qualname__} still uses the stock class as {name}")


def _test_classes(module: ModuleType) -> Iterator[type]:
    """Give the classes of the test module and of the test modules that it is built on, nested ones included."""
    pending = [value for value in vars(module).values() if isinstance(value, type)]
    seen: set[type] = set()
    while pending:
        cls = pending.pop()
        if cls in seen or not cls.__module__.startswith("test."):
            continue
        seen.add(cls)
        pending += cls.__bases__
        pending += [value for value in vars(cls).values() if isinstance(value, type)]
        yield cls


def _flatten(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """Give the test cases of nested suites."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _flatten(item)
        else:
            yield item


class RecordingResult(unittest.TestResult):
    """Record each test when it ends; a failing subtest fails its test, a skipped one leaves it as it is."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._current: unittest.TestCase | None = None
        self._status = PASSED
        self._detail = ""

    def startTest(self, test: unittest.TestCase) -> None:
        """Begin a test; it passes unless something is reported."""
        super().startTest(test)
        self._current, self._status, self._detail = test, PASSED, ""

    def stopTest(self, test: unittest.TestCase) -> None:
        """End a test and write what became of it."""
        super().stopTest(test)
        self._recorder.record(test.id(), self._status, self._detail)
        self._current = None

    def addError(self, test: unittest.TestCase, err: _ExcInfo) -> None:
        """Take note of an error, in a test or in the set-up of a class or module."""
        super().addError(test, err)
        self._fail(test, err)

    def addFailure(self, test: unittest.TestCase, err: _ExcInfo) -> None:
        """Take note of a failure."""
        super().addFailure(test, err)
        self._fail(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: _ExcInfo | None) -> None:
        """Take note of a subtest's failure."""
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._fail(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        """Take note of a skipped test."""
        super().addSkip(test, reason)
        if test is self._current and self._status == PASSED:
            self._status = SKIPPED

    def addExpectedFailure(self, test: unittest.TestCase, err: _ExcInfo) -> None:
        """Take note of an expected failure: it does not count."""
        super().addExpectedFailure(test, err)
        self._status = SKIPPED

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        """Take note of an unexpected success: unittest calls it a failure."""
        super().addUnexpectedSuccess(test)
        self._status, self._detail = FAILED, "unexpected success"

    def _fail(self, test: unittest.TestCase, err: _ExcInfo) -> None:
        detail = "".join(traceback.format_exception(*err))
        if self._current is None:  # the set-up of a class or module: no startTest, no stopTest
            self._recorder.record(test.id(), FAILED, detail)
        else:
            self._status, self._detail = FAILED, detail
