"""Run one group of the interpreter's executor tests with unittest, and record each test.

Stock runs them as they are.  In the other modes the executor class is replaced where tests find it:

    ProcessPool...Mixin.executor_type, InterpreterPoolMixin.executor_type   what most tests use
    concurrent.futures.ProcessPoolExecutor, .InterpreterPoolExecutor       what some tests name
    "from concurrent.futures import ..." in scripts for a new interpreter    rewritten on the way (``Scripts``)
    stock's own class                                                        raises where a test makes one all the same

In every mode the tests look around after themselves (``leftover.Tidy``); on stock, what is left over is printed only.
A test that hangs is failed, and the ones after it go on in a fresh process (``_watchdog.py``).
"""

from __future__ import annotations

import importlib
import re
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from compat._record import SKIPPED, Recorder, UnitRecorder, test_id
from compat._suite import STOCK
from compat.cpython.child import RecordingResult
from compat.executors._watchdog import Watchdog
from compat.executors.deselected import EXPECTED, ROWS
from compat.executors.leftover import Tidy, name_semaphores
from compat.executors.suite import GROUPS, INTERPRETER_GROUPS, INTERPRETERS, Group

_PATIENCE = {"SHORT_TIMEOUT": 15.0, "LONG_TIMEOUT": 20.0}
"""Seconds that a test waits before it calls something a hang; test.support's are minutes, for machines of all kinds."""

_PROCESS_MIXINS = ("ProcessPoolForkMixin", "ProcessPoolSpawnMixin", "ProcessPoolForkserverMixin")
_HOME = "test.test_concurrent_futures"


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one group of test classes.

    Args:
        unit: start method (or "interpreters") and group, "spawn-deadlock".
        mode: "stock", "processes" or "interpreters".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status, always 0.
    """
    support = importlib.import_module("test.support")
    for name, seconds in _PATIENCE.items():
        setattr(support, name, seconds)
    name_semaphores()
    method, _, name = unit.partition("-")
    group = (INTERPRETER_GROUPS if method == INTERPRETERS else GROUPS)[name]
    classes = [*_classes(group, method)]
    if mode != STOCK:
        bind(_modules(group), method)
    if method != INTERPRETERS and mode != STOCK:
        for cls in classes:
            expect(cls)
    for cls in classes:
        tidy(cls, strict=mode != STOCK)
    recorder = UnitRecorder(unit, recorder)
    suite = unittest.TestSuite()
    left_out = frozenset(test for row in ROWS if mode != STOCK and not row.runs for test in row.ids())
    for cls in classes:
        cases = (
            case for case in unittest.defaultTestLoader.loadTestsFromTestCase(cls) if _is_meant(case, group, method)
        )
        for case in cases:
            test = test_id(unit, case.id())
            if test in left_out:
                recorder.record(case.id(), SKIPPED)
            elif not tests or test in tests:
                suite.addTest(case)
    with Watchdog([test_id(unit, case.id()) for case in _flat(suite)], unit, recorder) as watchdog:
        suite.run(_Watched(recorder, watchdog))
    return 0


class _Watched(RecordingResult):
    """Tell the watchdog which test runs."""

    def __init__(self, recorder: Recorder, watchdog: Watchdog) -> None:
        super().__init__(recorder)
        self._watchdog = watchdog

    def startTest(self, test: unittest.TestCase) -> None:
        """Begin a test."""
        self._watchdog.begin(test.id())
        super().startTest(test)


def tidy(cls: type[unittest.TestCase], strict: bool) -> None:
    """Make a test class look around after each test.

    Args:
        cls: the class.
        strict: whether something left over fails the test.
    """
    if not issubclass(cls, Tidy):
        cls.__bases__ = (Tidy, *cls.__bases__)
    setattr(cls, "strict", strict)  # noqa: B010  # the checker does not know what the line above does


def bind(modules: list[ModuleType], method: str) -> None:
    """Put fastpickle's executor where the tests have the interpreter's.

    Args:
        modules: the test modules, just imported.
        method: the start method, or "interpreters".
    """
    binding = importlib.import_module("compat.executors.binding")
    name = "InterpreterPoolExecutor" if method == INTERPRETERS else "ProcessPoolExecutor"
    ours = getattr(binding, name)
    futures = importlib.import_module("concurrent.futures")
    _forbid(getattr(futures, name))
    setattr(futures, name, ours)
    for module in modules:
        for mixin in _PROCESS_MIXINS if method != INTERPRETERS else ("InterpreterPoolMixin",):
            if hasattr(module, mixin):
                getattr(module, mixin).executor_type = ours
    Scripts(name).put_in_place(modules)
    print(f"bound: {', '.join(map(str, ours.__mro__))}")


def expect(cls: type[unittest.TestCase]) -> None:
    """Have a class of deadlock tests expect the errors of ours, where they are others by design.

    Args:
        cls: any test class; one that is not of them stays as it is.
    """
    for name in ("_check_error", "_check_crash"):  # up to 3.13, the latter
        if hasattr(cls, name):
            setattr(cls, name, _expecting(getattr(cls, name)))


def _expecting(check: Callable[..., None]) -> Callable[..., None]:
    def checked(self: unittest.TestCase, error: type[BaseException], *args: Any, **options: Any) -> None:
        row = next((row for row in EXPECTED if row.test == self.id().rpartition(".")[2]), None)
        check(self, row.error if row else error, *args, **options)

    return checked


def _forbid(stock: type) -> None:
    """Make sure that no test runs on the interpreter's class without anybody noticing."""
    init: Callable[..., None] = getattr(stock, "__init__")  # noqa: B009  # mypy forbids it on an instance's class

    def guarded(self: object, *args: Any, **kwargs: Any) -> None:
        if type(self) is stock:
            raise AssertionError(f"this test makes a stock {stock.__name__}")
        init(self, *args, **kwargs)

    setattr(stock, "__init__", guarded)  # noqa: B010  # mypy forbids that, too


class Scripts:
    """Rewrite the scripts that tests run in a new interpreter: they import the executor by its name.

    Args:
        name: the class's name, the same in both modules.
    """

    def __init__(self, name: str) -> None:
        self._import = re.compile(rf"from concurrent\.futures import {name}\b")
        self._ours = f"from compat.executors.binding import {name}"
        self._path = {"PYTHONPATH": str(Path(__file__).resolve().parent.parent.parent)}

    def rewritten(self, script: str) -> str:
        """Give a script with the import of ours.

        Raises:
            AssertionError: it imports something else of concurrent.futures.
        """
        new = self._import.sub(self._ours, script)
        if "from concurrent.futures import" in new:
            raise AssertionError(f"this script would test something else:\n{script}")
        return new

    def put_in_place(self, modules: list[ModuleType]) -> None:
        """Replace the functions of test.support that run and write scripts, in it and in the modules that import it."""
        helper = importlib.import_module("test.support.script_helper")
        run_ok, make = helper.assert_python_ok, helper.make_script

        def assert_python_ok(*args: str, **environment: str) -> Any:
            return run_ok(*map(self.rewritten, args), **(self._path | environment))

        def make_script(folder: str, name: str, source: str, *more: Any, **options: Any) -> Any:
            return make(folder, name, self.rewritten(source), *more, **options)

        for module in (helper, *modules):
            for function in (assert_python_ok, make_script):
                if hasattr(module, function.__name__):
                    setattr(module, function.__name__, function)


def _in_several() -> bool:
    """Say whether the tests are in several modules: 3.10 and 3.11 have them in one."""
    return hasattr(importlib.import_module(_HOME), "__path__")


def _modules(group: Group) -> list[ModuleType]:
    """Import the modules of a group, and the one with their mixins."""
    if not _in_several():
        return [importlib.import_module(_HOME)]
    return [importlib.import_module(f"{_HOME}.{name}") for name in ("util", *group.classes)]


def _classes(group: Group, method: str) -> Iterator[type[unittest.TestCase]]:
    """Give the test classes of a group, those that this Python has."""
    if method == INTERPRETERS:
        _bind_more()
    for name, classes in group.classes.items():
        module = importlib.import_module(f"{_HOME}.{name}" if _in_several() else _HOME)
        for pattern in classes:
            if hasattr(module, pattern.format(method.capitalize())):
                yield getattr(module, pattern.format(method.capitalize()))


def _bind_more() -> None:
    """Bind what all executors have in common to interpreters, too; the interpreter's own tests leave it out."""
    util = importlib.import_module(f"{_HOME}.util")
    for name, mixin in (("test_shutdown", "ExecutorShutdownTest"), ("test_wait", "WaitTests")):
        module = importlib.import_module(f"{_HOME}.{name}")
        tests = getattr(module, mixin)
        util.create_executor_tests(vars(module), tests, executor_mixins=(util.InterpreterPoolMixin,))


def _is_meant(case: unittest.TestCase, group: Group, method: str) -> bool:
    """Say whether a test belongs to the group under this start method."""
    return group.test is None or case.id().endswith(f".{group.test.format(method)}")


def _flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """Give the tests of a suite in their order."""
    for item in suite:
        assert isinstance(item, unittest.TestCase)  # it was made of them
        yield item
