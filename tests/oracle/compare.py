"""Dump an object with the oracle and with ours, and compare all that can be seen from outside.

    case --+-- run(oracle) --> Outcome --+
           |                             +-- same_outcome() or a disassembly around the first difference
           +-- run(ours)   --> Outcome --+

What is compared: the bytes; the sizes of the file's writes; the exception, its arguments, notes, cause and context; the
calls that hooks recorded; the memo and the names of the attributes that are left on the pickler.

Not for: unpickling.  If the bytes are the same, so is what they load.
"""

from __future__ import annotations

import io
import pathlib
import pickle
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from fastpickle.cli._disassembly import around_difference

from .allowed import PYPY, asked_about, may_succeed

__all__ = [
    "ALL",
    "Implementation",
    "Outcome",
    "PythonFile",
    "Run",
    "check",
    "describe",
    "describe_error",
    "dump_where_it_fails",
    "dumped",
    "explain",
    "stock_dumps",
]

#: All protocols.
ALL = tuple(range(pickle.HIGHEST_PROTOCOL + 1))


@dataclass(frozen=True)
class Implementation:
    """A class of picklers, and what must be in place while one is used.

    Attributes:
        name: for messages.
        base: the class; tests make subclasses of it.
        context: entered around each use.
    """

    name: str
    base: Any
    context: Callable[[], AbstractContextManager[Any]] = nullcontext


class Run:
    """One use of a pickler: what objects and hooks may look at, and where they write down what they saw."""

    def __init__(self, implementation: Implementation, protocol: int) -> None:
        self.implementation = implementation
        self.protocol = protocol
        self.calls: list[tuple[object, ...]] = []
        self.kept: dict[str, Any] = {}
        self.pickler: Any = None
        self.file: Any = None
        self.sizes_matter = True

    def record(self, name: str, obj: object, *more: object) -> None:
        """Write down that a hook was called about an object."""
        self.calls.append((name, type(obj).__name__, describe(obj), *more))


class PythonFile:
    """A file whose `write` is a Python function, that keeps what it got as it got it, and copies it only at the end."""

    def __init__(self, on_write: Callable[[int], None] | None = None) -> None:
        self.parts: list[Any] = []
        self._on_write = on_write

    def write(self, data: Any) -> int:
        if self._on_write is not None:
            self._on_write(len(self.parts))
        self.parts.append(data)
        return len(data)

    def getvalue(self) -> bytes:
        return b"".join(map(bytes, self.parts))

    def close(self) -> None:
        """Let go of the views of frames: a frame that is collected before its view complains."""
        for part in self.parts:
            if isinstance(part, memoryview):
                part.release()

    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self.parts))


@dataclass
class Outcome:
    """What one use of a pickler left behind."""

    written: bytes = b""
    sizes: tuple[int, ...] = ()
    error: tuple[object, ...] | None = None
    calls: list[tuple[object, ...]] = field(default_factory=list)
    memo: object = None
    attributes: object = None


_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
#: How often a sample is made before two outcomes differ: of equal texts PyPy's JIT makes one object now and then.
_TRIES = 3 if PYPY else 1


_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]  # private, and what all is compared with


def dumped(cls: Any, obj: object, protocol: int = 4, **arguments: Any) -> bytes:
    """Return what a pickler of a class writes."""
    file = io.BytesIO()
    cls(file, protocol, **arguments).dump(obj)
    return file.getvalue()


def stock_dumps(obj: object, protocol: int = 4, **arguments: Any) -> bytes:
    """Return what stock's pickler writes, as `pickle.dumps` would."""
    return dumped(_Stock, obj, protocol, **arguments)


def describe(obj: object) -> str:
    """Name an object so that its equal in another run has the same name: no addresses, and short."""
    if isinstance(obj, (type, type(len), type(describe))):
        return obj.__qualname__
    if type(obj) in (str, bytes, bytearray) and len(obj) > 40:  # type: ignore[arg-type]
        return f"{obj[:20]!r}...{len(obj)}"  # type: ignore[index]
    if obj is None or type(obj) in (bool, int, float, complex, str, bytes, bytearray):
        try:
            return repr(obj)
        except ValueError:  # an int of too many digits
            return f"int of {obj.bit_length()} bits"  # type: ignore[union-attr]
    try:
        return f"{type(obj).__name__} of {len(obj)}"  # type: ignore[arg-type]
    except Exception:
        return type(obj).__name__


def _same(text: str) -> str:
    """Take out of a message what may differ: addresses, and the name of the pickler's class."""
    return _ADDRESS.sub("0x", text).replace("'_Pickler'", "'Pickler'")


def describe_error(exc: BaseException | None, depth: int = 3) -> tuple[object, ...] | None:
    """Say all of an exception that may be compared: type, text, arguments, notes, and the same of cause and context."""
    if exc is None:
        return None
    return (
        type(exc).__module__ + "." + type(exc).__qualname__,
        _same(str(exc)),
        _same(repr(exc.args)),
        [_same(note) for note in getattr(exc, "__notes__", ())],
        exc.__suppress_context__,
        describe_error(exc.__cause__, depth - 1) if depth else None,
        describe_error(exc.__context__, depth - 1) if depth else None,
    )


def _memo(pickler: Any) -> object:
    memo = getattr(pickler, "memo", None)
    if type(memo) is not dict:
        return type(memo).__name__
    return [(entry[0], _kind(entry[1])) if type(entry) is tuple else entry for entry in memo.values()]


def _kind(obj: Any) -> object:
    """Tell what is in a memo from what may be there in its place; most of it is of these types, and there is much."""
    if type(obj) is str:
        return obj
    return (type(obj).__name__, len(obj)) if type(obj) in (list, dict, tuple) else describe(obj)


def use(
    implementation: Implementation,
    protocol: int,
    steps: Callable[[Run], Any],
    *,
    cls: Callable[[Any, Run], Any] | None = None,
    file: Callable[[Run], Any] | None = None,
    arguments: dict[str, Any] | None = None,
) -> Outcome:
    """Make a pickler, let `steps` use it, and return what came of it."""
    run = Run(implementation, protocol)
    outcome = Outcome(calls=run.calls)
    with implementation.context():
        base = implementation.base
        run.file = (PythonFile() if protocol >= 4 else io.BytesIO()) if file is None else file(run)
        made = base if cls is None else cls(base, run)  # what this raises is a defect of the test
        try:
            run.pickler = made(run.file, protocol, **(arguments or {}))
            steps(run)
        except BaseException as exc:
            if isinstance(exc, MemoryError):
                raise
            outcome.error = describe_error(exc)
            while exc is not None:
                exc.__traceback__ = None
                exc = exc.__context__
    outcome.written = run.file.getvalue()
    if isinstance(run.file, PythonFile):
        if run.sizes_matter:
            outcome.sizes = run.file.sizes()
        run.file.close()
    pickler = run.pickler
    if pickler is not None:
        outcome.memo = _memo(pickler)
        outcome.attributes = sorted(vars(pickler)) if hasattr(pickler, "__dict__") else None
    return outcome


def check(
    oracle: Implementation,
    ours: Implementation,
    steps: Callable[[Run], Any],
    *,
    protocols: Sequence[int] = ALL,
    fails: bool | None = None,
    case: str = "",
    **how: Any,
) -> None:
    """Let both implementations do the same, and compare.

    Args:
        oracle, ours: what is compared with what.
        steps: given the `Run`; makes the object afresh, and dumps it with `run.pickler`.
        protocols: each is tried.
        fails: that an exception is expected (True) or not (False): a check of the test itself.
        case: for the message.
        how: `cls`, `file`, `arguments`, as in `use`.

    Raises:
        AssertionError: with a disassembly around the first byte that differs.
    """
    for protocol in protocols:
        for _ in range(_TRIES):
            expected = use(oracle, protocol, steps, **how)
            got = use(ours, protocol, steps, **how)
            difference = explain(expected, got)
            if not difference:
                break
        else:
            raise AssertionError(f"{case}: protocol {protocol}, {ours.name} is not {oracle.name}:\n{difference}")
        if fails is not None:
            assert (expected.error is not None) is fails, f"protocol {protocol}: {expected.error}"


def dump_where_it_fails(run: Run, make: Callable[[], Any], size: int) -> None:
    """Dump to files that cannot be written to, twice each, and write down what comes of it.

    Args:
        run: the use of a pickler.
        make: makes the object.
        size: how many bytes are buffered before /dev/full gets them.
    """
    if not pathlib.Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    exported = io.BytesIO()
    closed = io.BytesIO()
    view = exported.getbuffer()
    full: Any = open("/dev/full", "wb", buffering=size)
    closed.close()
    for file in (exported, closed, full):
        pickler = run.implementation.base(file, run.protocol)
        for _ in range(2):
            try:
                pickler.dump(make())
            except (BufferError, ValueError, OSError) as exc:
                run.calls.append((type(exc).__name__, str(exc), *getattr(exc, "__notes__", ())))
            frame = pickler.framer.current_frame
            run.calls.append(
                (len(pickler.memo), frame and frame.getvalue(), {*vars(pickler)}, type(pickler.framer.file_write))
            )
    with suppress(OSError):
        full.close()
    del view


def explain(expected: Outcome, got: Outcome) -> str:
    """Say what differs between two outcomes; nothing, if they are the same."""
    lines = []
    errors = (expected.error, got.error) if PYPY else (expected.error,)  # how deep PyPy's stack is depends on its JIT
    if any(error is not None and may_succeed(error) for error in errors):
        return ""
    if expected.error != got.error:
        lines += [f"error, expected {expected.error}", f"            got {got.error}"]
    if expected.written != got.written:
        lines += around_difference(expected.written, got.written)
    if expected.sizes != got.sizes:
        lines += ["sizes of writes, " + _first(expected.sizes, got.sizes)]
    expected_calls, got_calls = asked_about(expected.calls), asked_about(got.calls)
    if expected_calls != got_calls:
        lines += ["calls of hooks, " + _first(expected_calls, got_calls)]
    if expected.memo != got.memo:
        lines += ["memo, " + _first(expected.memo, got.memo)]
    if expected.attributes != got.attributes:
        lines += [f"attributes, expected {expected.attributes}, got {got.attributes}"]
    if lines and expected.error is not None and expected.error == got.error:
        lines += [f"after the error {got.error}"]
    return "\n".join(lines)


def _first(expected: Any, got: Any) -> str:
    """Show the first item in which two sequences differ."""
    if isinstance(expected, str) or isinstance(got, str):
        return f"expected {expected}, got {got}"
    i = 0
    while i < len(expected) and i < len(got) and expected[i] == got[i]:
        i += 1
    shown = (f"{list(items[i : i + 4])} of {len(items)}" for items in (expected, got))
    return f"from item {i}: expected {', got '.join(shown)}"
