"""Pickle one object in every way there is, compare the bytes and time them.

    an object -+- stock           pickle._Pickler, nothing installed --+-- same bytes?
               +- fastpickle      fastpickle.dumps --------------------+
               +- dill            dill.dumps, nothing installed -------+-- same bytes?
               +- dill_installed  dill.dumps in fastpickle.patched() --+
               +- joblib.dump, joblib.dump_installed, ...: the same for each of LIBRARIES that is asked for
               +- c               pickle.dumps: the goal, only timed

1. Every contender dumps the object once; the bytes of each accelerated one are compared with those
   of its own original.
2. Those that could dump it are timed in alternating rounds (``_timing``); on PyPy each has a process of its own,
   and so has the comparison.

What was accelerated must never be timed as stock: ``patched()`` is entered around the samples of
one contender only, and around all others it is checked that nothing is installed. ``stock_state``
undoes an ``install()`` of the user's module, and takes out what importing dill puts into the
dispatch table of ``pickle._Pickler``.

Not for: finding the objects (``bench``) or drawing the result (``_report``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import pickle
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import TypedDict

import fastpickle
from fastpickle.cli import _load, _timing

__all__ = [
    "DIFFERENT",
    "IDENTICAL",
    "LIBRARIES",
    "PAIRS",
    "VARYING",
    "CannotPickle",
    "Result",
    "contenders",
    "geometric_means",
    "measure_object",
    "stock_dumps",
    "stock_state",
]

Dump = Callable[[object, int], bytes | str]
"""Pickles an object by a protocol, or makes the digest of its pickle."""

INSTALLED = "_installed"
"""What the name of a library's function ends with where it is timed in ``fastpickle.patched()``."""

LIBRARIES = {"joblib.dump": "joblib", "joblib.hash": "joblib", "Hasher.hash": "datasets"}
"""Function that pickles, to be timed if asked for -> the library that it is of, and the extra that installs that."""

PAIRS = {"fastpickle": "stock", **{name + INSTALLED: name for name in ("dill", *LIBRARIES)}}
"""Accelerated contender -> its original: whose bytes it must write, whose time it is to beat."""

RATIO_PAIRS = {**PAIRS, "c": "stock"}
"""Contender -> the one to which its time is put in relation; C's bytes may differ from stock's."""

IDENTICAL = "identical"
DIFFERENT = "different"
VARYING = "varying"
"""The original itself writes other bytes each time, so there is nothing to compare with."""


class CannotPickle(Exception):
    """Neither ``pickle._Pickler`` nor dill can pickle the object; the message is one line."""


@dataclasses.dataclass
class Result:
    """What was found out about one object."""

    name: str
    """The workload, the file or the reference."""
    size: int
    """Bytes of the pickle."""
    seconds: dict[str, list[float]]
    """Contender -> seconds of one dump, a figure a round; those that failed are not in it."""
    failures: dict[str, str]
    """Contender -> its exception in one line, for those that could not dump the object."""
    checks: dict[str, str]
    """Accelerated contender -> ``IDENTICAL``, ``DIFFERENT`` or ``VARYING``."""

    def ratio(self, contender: str) -> float | None:
        """Say how many times faster a contender was than the one it is put in relation to.

        Args:
            contender: A key of ``RATIO_PAIRS``.

        Returns:
            The median of the ratios of the rounds, None if one of the two was not timed.
        """
        fast, slow = self.seconds.get(contender), self.seconds.get(RATIO_PAIRS[contender])
        if fast is None or slow is None:
            return None
        return statistics.median(_timing.ratios(slow, fast))

    def broken(self) -> list[str]:
        """Name the contenders that did not do what their original did.

        Returns:
            Those that wrote other bytes, or failed where the original did not.
        """
        return [
            fast
            for fast, original in PAIRS.items()
            if self.checks.get(fast) == DIFFERENT or (fast in self.failures and original not in self.failures)
        ]


@contextlib.contextmanager
def stock_state(notes: list[str]) -> Iterator[ModuleType | None]:
    """Bring the process into the state in which stock is stock, and back afterwards.

    Args:
        notes: Gets a line for everything that the reader of the result should know.

    Yields:
        The module dill, or None if it is not installed.

    Raises:
        RuntimeError: If called inside ``fastpickle.patched()``, which cannot be undone from here.
    """
    was_installed = fastpickle.is_installed()
    if was_installed:
        fastpickle.uninstall()
        _check_not_installed()
        notes.append("The imported module had called install(); it was undone meanwhile.")
    table = pickle._Pickler.dispatch
    before = dict(table)
    dill: ModuleType | None = None
    try:
        dill = importlib.import_module("dill")
        dill.extend(use_dill=False)  # takes out what importing dill put into the table
    except ImportError:
        notes.append("dill is not installed, so it is left out: pip install 'fastpickle[dill]'")
    if not _has_c_pickler():
        notes.append("This Python has no C pickler, so it is left out.")
    try:
        yield dill
    finally:
        table.clear()
        table.update(before)
        if was_installed:
            fastpickle.install()


def _has_c_pickler() -> bool:
    """Say whether ``pickle.dumps`` is the C pickler's.

    Returns:
        False where ``_pickle`` is missing, so that ``pickle.Pickler`` is the pure-Python class.
    """
    return pickle.Pickler.__module__ == "_pickle"


def contenders(dill: ModuleType | None, libraries: Sequence[str] = ()) -> dict[str, Dump]:
    """List what is compared.

    Args:
        dill: The module dill, or None to leave it out.
        libraries: Those of ``LIBRARIES`` that are wanted.

    Returns:
        Contender -> its dump function, in the order of the table.

    Raises:
        ImportError: If a library is not installed.
    """
    dumps: dict[str, Dump] = {"stock": stock_dumps, "fastpickle": fastpickle.dumps}
    if dill is not None:
        dumps["dill"] = dumps["dill" + INSTALLED] = dill.dumps
    for name in libraries:
        dumps[name] = dumps[name + INSTALLED] = _function_of(name)
    if _has_c_pickler():
        dumps["c"] = pickle.dumps
    return dumps


def _function_of(name: str) -> Dump:
    """Find a library's function.

    Args:
        name: One of ``LIBRARIES``.

    Returns:
        The function, as if it were ``pickle.dumps``; a digest has no protocol of its own.

    Raises:
        ImportError: If the library is not installed.
    """
    library = importlib.import_module(LIBRARIES[name])
    if name == "joblib.dump":
        return partial(_dump_by_joblib, library.dump)
    function = importlib.import_module("datasets.fingerprint").Hasher.hash if name == "Hasher.hash" else library.hash
    return partial(_digest, function)


def _dump_by_joblib(dump: Callable[..., object], obj: object, protocol: int) -> bytes:
    file = io.BytesIO()
    dump(obj, file, protocol=protocol)
    return file.getvalue()


def _digest(function: Callable[[object], str], obj: object, protocol: int) -> str:
    return function(obj)


stock_dumps: Callable[..., bytes] = pickle._dumps  # type: ignore[attr-defined]  # the type stubs do not list it
"""``pickle.dumps`` as it is without the C pickler; the type stubs do not list it."""


def measure_object(
    name: str,
    obj: object,
    dumps: dict[str, Dump],
    protocol: int,
    plan: _timing.Plan,
    on_round: Callable[[float], object] = lambda done: None,
) -> Result:
    """Compare the bytes of all contenders for one object and time them.

    Args:
        name: What to call the object in the result.
        obj: The object.
        dumps: The contenders, from ``contenders()``.
        protocol: The pickle protocol.
        plan: How long to measure.
        on_round: Called between rounds with the share of the work that is done (0 to 1).

    Returns:
        What was found out.

    Raises:
        CannotPickle: If neither ``pickle._Pickler`` nor dill can pickle the object.
    """
    ways = {key: _contender(key, dump, obj, protocol) for key, dump in dumps.items()}
    is_apart = HAS_JIT and _timing.CAN_FORK
    checked = _timing.in_fork(partial(_check, ways)) if is_apart else _check(ways)
    if checked["size"] is None:
        failure = checked["failures"]["stock"]
        raise CannotPickle(f"cannot pickle {name}, with or without fastpickle: {failure}")
    measure = _timing.measure_apart if is_apart else _timing.measure
    seconds = measure([way for key, way in ways.items() if key not in checked["failures"]], plan, on_round)
    return Result(name, checked["size"], seconds, checked["failures"], checked["checks"])


HAS_JIT = sys.implementation.name == "pypy"
"""Whether what one contender has run matters to the next one, so that each needs a process of its own."""


class _Checked(TypedDict):
    """What each contender did with an object.

    Attributes:
        size: How many bytes there are; None if neither ``pickle._Pickler`` nor dill can pickle it.
        failures, checks: As in ``Result``.
    """

    size: int | None
    failures: dict[str, str]
    checks: dict[str, str]


def _check(ways: dict[str, _timing.Contender[bytes | str]]) -> _Checked:
    """Let each contender dump its object once, and compare what they wrote.

    Args:
        ways: The contenders.

    Returns:
        What was found out.
    """
    written: dict[str, bytes | str] = {}
    failures: dict[str, str] = {}
    for key, way in ways.items():
        with way.around():
            try:
                written[key] = way.call()
            except RecursionError as error:
                failures[key] = _load.one_line(error) + " (nested too deeply; measure a part of it)"
            except Exception as error:  # the object's own code may raise anything
                failures[key] = _load.one_line(error)
    checks = {
        fast: _compare_bytes(written[original], written[fast], ways[original])
        for fast, original in PAIRS.items()
        if fast in written and original in written
    }
    sizes = [len(written[key]) for key in ("stock", "dill") if key in written]
    return {"size": sizes[0] if sizes else None, "failures": failures, "checks": checks}


def _contender(key: str, dump: Dump, obj: object, protocol: int) -> _timing.Contender[bytes | str]:
    """Bind a dump function to the object and to the state in which it is timed.

    Args:
        key: The contender's name.
        dump: Its dump function.
        obj: The object.
        protocol: The pickle protocol.

    Returns:
        The contender.
    """
    around = fastpickle.patched if key.endswith(INSTALLED) else _nothing_installed
    return _timing.Contender(key, lambda: dump(obj, protocol), around)


@contextlib.contextmanager
def _nothing_installed() -> Iterator[None]:
    """Make sure that what is timed inside is not accelerated.

    Raises:
        RuntimeError: If fastpickle is installed before or after.
    """
    _check_not_installed()
    yield
    _check_not_installed()


def _check_not_installed() -> None:
    """Refuse to time an accelerated pickler as stock.

    Raises:
        RuntimeError: If fastpickle is installed.
    """
    if fastpickle.is_installed():
        raise RuntimeError("fastpickle is installed where stock should be timed")


def _compare_bytes(original: bytes | str, fast: bytes | str, way: _timing.Contender[bytes | str]) -> str:
    """Compare what an accelerated contender wrote with what its original wrote.

    Args:
        original: The bytes of the original.
        fast: The bytes of the accelerated one.
        way: The original, to ask once more: some objects change when they are first pickled, some
            pickle differently each time.

    Returns:
        ``IDENTICAL``, ``DIFFERENT``, or ``VARYING`` if the original does not repeat its own bytes.
    """
    if fast == original:
        return IDENTICAL
    with way.around():
        again = way.call()
    if fast == again:
        return IDENTICAL
    return DIFFERENT if again == original else VARYING


def geometric_means(results: list[Result]) -> dict[str, float]:
    """Average the ratios over all objects.

    Args:
        results: What was measured.

    Returns:
        Contender -> how many times faster it is on average, without those never measured.
    """
    means: dict[str, float] = {}
    for contender in RATIO_PAIRS:
        found = [result.ratio(contender) for result in results]
        mean = _timing.geometric_mean(ratio for ratio in found if ratio is not None)
        if mean is not None:
            means[contender] = mean
    return means
