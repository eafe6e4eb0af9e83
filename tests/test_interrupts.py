"""An interrupt is the caller's: a timeout that a signal's handler raises, of whatever type, ends a dump at once.

A tracer stands for the interpreter, which looks for signals as a function begins, and behind calls and loops: at each
such place of ours it calls the handler.  Then the dump has to end with what that raised, its file with the beginning
of the pickle, and the next dump with all of it.
"""

from __future__ import annotations

import ast
import bdb
import contextlib
import ctypes
import datetime
import dis
import functools
import gc
import io
import itertools
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import CodeType, FrameType
from typing import Any

import pytest
from oracle import objects
from oracle.allowed import DILL_PICKLES_CODE, PYPY
from oracle.engines import Pure
from oracle.parts import APartOf

import fastpickle
from fastpickle._stdlib import CPickler
from fastpickle.interrupts import GivenUp, is_interrupt

PACKAGE = Path(fastpickle.__file__).parent
FEW_PLACES = 24
MANY_PLACES = 500
"""At so many places of a dump the handler is called, and in the soak."""

LOST_IN = () if sys.version_info >= (3, 14) else ("seek", "_import")
"""What C calls to import something: up to 3.13 it puts an error of its own in the place of whatever that raises."""

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there are no such signals on Windows")


class Late(Exception):
    """A time limit, as those of celery and RQ are: no error that anybody knows."""


def make_instance(i: int) -> objects.Plain:
    """Make an instance with a `__dict__`."""
    return objects.Plain(number=i, name=f"name {i}")


def make_reduced(i: int) -> objects.Reduced:
    """Make an object whose reduce may run anything."""
    return objects.Reduced((objects.make, (i,)))


def make_closure() -> Any:
    """Make a function that dill saves by value."""
    held = [1, "two", 3.0]
    return lambda x: (x, held)


def make_record(i: int) -> dict[str, Any]:
    """Make a record as of JSON."""
    return {"id": i, "name": f"name {i}", "tags": ["a", str(i)], "point": (i, 1.5, None), "is": {"even": i % 2 == 0}}


SHAPES: dict[str, Callable[[], Any]] = {
    "a little": lambda: {"a": 1, "b": [1, 2.5], "c": "text"},
    "ints": lambda: [*range(70_000, 71_500)],
    "texts": lambda: [f"text {i}" for i in range(1_500)],
    "records": lambda: [make_record(i) for i in range(60)],
    "deep": lambda: functools.reduce(lambda x, i: [x, i, {"key": i}], range(30), []),
    "a long dict": lambda: {str(i): [i] for i in range(1_001)},
    "sets": lambda: [{i, i + 1} for i in range(50)],
    "instances": lambda: [make_instance(i) for i in range(40)],
    "one instance": lambda: make_instance(1),
    "slots, and functions": lambda: [*[objects.SlottedByDefault(i, str(i)) for i in range(40)], make_record, Path],
    "dates": lambda: [datetime.date(2020, 1, 1 + i % 28) for i in range(60)],
    "numbers": lambda: [*[Fraction(i, 7) for i in range(30)], *[Decimal(i) for i in range(30)]],
    "reduced": lambda: [make_reduced(i) for i in range(20)],
    "reduced, within": lambda: {"a": [make_record(i) for i in range(20)], "b": make_reduced(1), "c": [*range(300)]},
    "a few": lambda: [make_reduced(1), {"a": make_instance(2)}],
    "an error": lambda: [1, 2, [ValueError("x", 1)]],
    "a task": lambda: (make_record, ([1, 2], {"a": 1}), {"key": "value"}),
}
CLOSURES: dict[str, Callable[[], Any]] = {
    "closures": lambda: [make_closure(), {"a": 1}, make_closure()],
    "a task of a closure": lambda: (make_closure(), ([1, 2], {"a": 1}), {"key": [make_record(i) for i in range(30)]}),
}


INSTALLED = ("dill", "joblib.hash")
"""The ways that are a library's own."""


def _dumps_by(cls: Any, obj: Any, file: io.BytesIO) -> None:
    cls(file, 4).dump(obj)


def _dumps(obj: Any, file: io.BytesIO) -> None:
    file.write(fastpickle.dumps(obj, 4))


def _dill_dump(obj: Any, file: io.BytesIO) -> None:
    dill = pytest.importorskip("dill", reason="dill is not installed")
    file.write(dill.dumps(obj, 4))


def _dill_backend(obj: Any, file: io.BytesIO) -> None:
    backend = pytest.importorskip("fastpickle.backends.dill", reason="dill is not installed")
    backend.Pickler(file, 4).dump(obj)


def _hash(obj: Any, file: io.BytesIO) -> None:
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    file.write(joblib.hash(obj).encode())


WAYS: dict[str, Callable[[Any, io.BytesIO], None]] = {
    "dumps": _dumps,
    "Pickler": functools.partial(_dumps_by, fastpickle.Pickler),
    "pure": functools.partial(_dumps_by, Pure),
    "dill": _dill_dump,
    "dill's backend": _dill_backend,
    "joblib.hash": _hash,
}
CASES = [
    pytest.param(way, make, id=f"{way}-{name}")
    for way in WAYS
    if not (way == "joblib.hash" and PYPY)  # where joblib cannot be imported
    for name, make in (SHAPES | CLOSURES if "dill" in way and DILL_PICKLES_CODE else SHAPES).items()
]


def stock_dumped(way: str, obj: Any) -> bytes:
    """Dump it as it is without us."""
    if "dill" in way:
        return bytes(pytest.importorskip("dill", reason="dill is not installed").dumps(obj, 4))
    if way == "joblib.hash":
        return bytes(pytest.importorskip("joblib", reason="joblib is not installed").hash(obj).encode())
    return bytes(pickle._dumps(obj, 4))  # type: ignore[attr-defined]  # private to the stdlib


def install_for(way: str) -> contextlib.AbstractContextManager[None]:
    """Install for a library's own way."""
    return fastpickle.patched() if way in INSTALLED else contextlib.nullcontext()


class Handler:
    """A signal's handler, which raises one exception after the other; what it has raised last is kept."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        self._next = itertools.cycle((Late, RuntimeError, TimeoutError, KeyboardInterrupt))

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        """Raise the next one."""
        self.raised = next(self._next)("too late")
        raise self.raised


@pytest.fixture
def handler() -> Iterator[Handler]:
    """Install a handler, for two signals."""
    ours = Handler()
    before = [(signum, signal.signal(signum, ours)) for signum in (signal.SIGUSR1, signal.SIGALRM)]
    yield ours
    for signum, old in before:
        signal.signal(signum, old)


@pytest.fixture
def no_collection(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collect no garbage: Hypothesis has a callback for that, and what comes as it runs is lost, on stock, too."""
    with monkeypatch.context() as patch:
        # A frame that an interrupt has left in a cycle is of a BytesIO and a view of it, in whatever order they go.
        patch.setattr(sys, "unraisablehook", lambda unraisable: None)
        gc.collect()
    gc.disable()
    yield
    gc.enable()


_places: dict[int, tuple[CodeType, set[int]]] = {}


def _places_in(code: CodeType) -> set[int]:
    """Give the offsets at which the interpreter has just looked for signals."""
    found = _places.get(id(code))
    if found is None:
        places: set[int] = set()
        before = ""
        for instruction in dis.get_instructions(code):
            if before.startswith("CALL") or before in ("", "RESUME"):
                places.add(instruction.offset)
            target = instruction.argval
            if "JUMP" in instruction.opname and isinstance(target, int) and target <= instruction.offset:
                places.add(target)
            before = instruction.opname
        found = _places[id(code)] = code, places
    return found[1]


def interrupted(dump: Callable[[], None], handler: Handler, k: int) -> tuple[int, BaseException | None, str]:
    """Call the handler at the `k`th place of a dump.

    Returns:
        How many places there were, what the dump has raised, and the name of the function that the handler was called
        in, if it was.
    """
    n = 0
    where = ""
    home = str(PACKAGE)

    def count(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal n, where
        if event == "line" if PYPY else event == "opcode" and frame.f_lasti in _places_in(frame.f_code):
            n += 1
            if n == k:
                sys.settrace(None)
                where = f"{frame.f_code.co_name}:{frame.f_lineno}"
                handler(signal.SIGUSR1, frame)
        return count

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(home) or code.co_name == "<genexpr>":  # a raise as one is closed is ignored
            return None
        if not PYPY:
            frame.f_trace_opcodes = True
        return count

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        dump()
    except BaseException as exc:
        return n, exc, where
    finally:
        sys.settrace(outer)
    return n, None, where


def check_interrupts(way: str, obj: Any, handler: Handler, some: Callable[[range], list[int]]) -> None:
    """Call the handler at some places of a dump, one by one, and dump again after each.

    That is traced, too: from 3.12 on a code has no events for its opcodes the first time that it is traced again.
    """
    wanted = stock_dumped(way, obj)
    with install_for(way):
        n = 0
        for _ in range(3):
            file = io.BytesIO()
            n = interrupted(functools.partial(WAYS[way], obj, file), handler, 0)[0]
            assert file.getvalue() == wanted
        called = 0
        for k in some(range(1, n + 1)):
            file = io.BytesIO()
            _, error, where = interrupted(functools.partial(WAYS[way], obj, file), handler, k)
            called += bool(where)  # what is remembered of the last dumps may have made this one shorter
            if where and where.partition(":")[0] not in LOST_IN:
                assert error is handler.raised, where
            assert wanted.startswith(file.getvalue()), where
            file = io.BytesIO()
            interrupted(functools.partial(WAYS[way], obj, file), handler, 0)
            assert file.getvalue() == wanted, where
    assert called


@pytest.mark.parametrize(("way", "make"), CASES)
def test_anywhere(way: str, make: Callable[[], Any], handler: Handler, a_part_of: APartOf) -> None:
    """At some places of each dump."""
    check_interrupts(way, make(), handler, lambda places: a_part_of(places[:: len(places) // FEW_PLACES + 1]))


@pytest.mark.parametrize("make", SHAPES.values(), ids=[*SHAPES])
@pytest.mark.parametrize("cls", [fastpickle.Pickler, Pure])
def test_pickler_goes_on(cls: Any, make: Callable[[], Any], handler: Handler, a_part_of: APartOf) -> None:
    """An interrupted pickler writes all of the next dump, if its memo is cleared; with frames stock's does not."""
    obj = make()
    wanted = pickle._dumps(obj, 2)  # type: ignore[attr-defined]  # private to the stdlib

    def dump(k: int) -> tuple[int, str]:
        file = io.BytesIO()
        pickler = cls(file, 2)
        n, _, where = interrupted(lambda: pickler.dump(obj), handler, k)
        file.seek(0)
        file.truncate()
        pickler.clear_memo()
        interrupted(lambda: pickler.dump(obj), handler, 0)
        assert file.getvalue() == wanted, where
        return n, where

    for _ in range(3):
        n = dump(0)[0]
    assert [where for k in a_part_of(range(1, n + 1, n // FEW_PLACES + 1)) for where in dump(k)[1:] if where]


@pytest.mark.soak
@pytest.mark.parametrize(("way", "make"), CASES)
def test_at_many_places(way: str, make: Callable[[], Any], handler: Handler) -> None:
    """At more of them."""
    check_interrupts(way, make(), handler, lambda places: [*places[:: len(places) // MANY_PLACES + 1]])


LARGE: dict[str, Callable[[], Any]] = {
    "records": lambda: [make_record(i) for i in range(8_000)],
    "dates": lambda: [datetime.date.fromordinal(730_000 + i) for i in range(40_000)],
    "instances": lambda: [make_instance(i) for i in range(10_000)],
    "closures": lambda: [make_closure(), [make_record(i) for i in range(8_000)]],
}
FOR_LARGE = [
    pytest.param(way, make, id=f"{way}-{name}")
    for way in ("dumps", "Pickler", "dill", "dill's backend")
    for name, make in LARGE.items()
    if name != "closures"
    or ("dill" in way and DILL_PICKLES_CODE and not PYPY)  # PyPy runs callbacks of weak references
]


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize(("way", "make"), FOR_LARGE)
def test_timer(way: str, make: Callable[[], Any], handler: Handler) -> None:
    """A real signal, which most often comes while C writes; a dump that swallows it is followed by more."""
    obj = make()
    wanted = stock_dumped(way, obj)
    with install_for(way):
        for milliseconds in (3, 5, 7, 9):
            with pytest.raises((Late, RuntimeError, TimeoutError, KeyboardInterrupt)) as caught:
                signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000)
                for _ in range(200):
                    WAYS[way](obj, io.BytesIO())
            assert caught.value is handler.raised
        file = io.BytesIO()
        WAYS[way](obj, file)
        assert file.getvalue() == wanted


@pytest.mark.skipif(PYPY, reason="PyPy has no PyThreadState_SetAsyncExc")
@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize(
    "make", [LARGE["records"], LARGE["dates"], lambda: [PurePosixPath(f"/{i}") for i in range(9_000)]]
)
def test_from_another_thread(make: Callable[[], Any]) -> None:
    """What another thread raises here comes without a handler, but it is of nobody's type."""
    obj = make()
    me = threading.get_ident()

    def raise_there() -> None:
        time.sleep(0.01)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(me), ctypes.py_object(Late))

    for _ in range(4):
        thread = threading.Thread(target=raise_there)
        with pytest.raises(Late):
            thread.start()
            for _ in range(200):
                fastpickle.dumps(obj)
        thread.join()


def _caught(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as exc:
        return exc
    raise AssertionError("nothing is raised")


def _own_error(exc: BaseException) -> None:
    """Raise an error as C does in our code: the traceback has no other frame."""
    pickle.Pickler(Raising(exc)).dump([1])


class Raising(io.BytesIO):
    """A file the writing of which fails."""

    def __init__(self, exc: BaseException) -> None:
        super().__init__()
        self._exc = exc

    def write(self, data: Any) -> int:
        """Fail."""
        raise self._exc


def _function(signum: int, frame: Any) -> None:
    raise ValueError("too late")


def _once(signum: int, frame: Any) -> None:
    signal.signal(signum, signal.SIG_DFL)
    raise ValueError("too late")


def _with_any(*args: Any, **kwargs: Any) -> None:
    raise ValueError("too late")


class Owner:
    """Handlers of other kinds."""

    def __init__(self, signum: int = 0, frame: Any = None) -> None:
        if signum:
            raise ValueError("too late")

    def method(self, signum: int, frame: Any) -> None:
        """Be one."""
        raise ValueError("too late")

    def _call(self, too: str, signum: int, frame: Any) -> None:
        raise ValueError(f"{too} late")

    __call__ = functools.partialmethod(_call, "too")


HANDLERS: dict[str, Any] = {
    "a function": _function,
    "it resets itself": _once,
    "any arguments": _with_any,
    "one in another": lambda signum, frame: _function(signum, frame),
    "a bound method": Owner().method,
    "an instance": Owner(),
    "a class": Owner,
    "a partial": functools.partial(functools.partial(_function)),
    "with a cache": functools.lru_cache(_function),
}


@pytest.mark.parametrize("one", HANDLERS.values(), ids=[*HANDLERS])
def test_handlers(one: Any, handler: Handler) -> None:
    """A handler may be all that can be called; it is told by the frame that it is given."""
    signal.signal(signal.SIGUSR1, one)
    assert is_interrupt(_caught(lambda: signal.raise_signal(signal.SIGUSR1)))
    signal.signal(signal.SIGUSR1, handler)
    assert not is_interrupt(_caught(lambda: one(1, None)))  # somebody calls it himself


@pytest.mark.skipif(CPickler is None, reason="C is not asked")
def test_a_debugger_is_left() -> None:
    """BdbQuit, and whatever else a trace function raises, is no error of the data either."""

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_name == "is_written":  # of C
            raise bdb.BdbQuit
        return None

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        error = _caught(lambda: fastpickle.Pickler(io.BytesIO(), 4).dump([*range(1000)]))
    finally:
        sys.settrace(outer)
    assert type(error) is bdb.BdbQuit


def test_errors_of_the_data() -> None:
    """Errors of the data, of somebody's code, and our own are none, of whatever type; what is no Exception is one."""
    for exc in (ValueError("x"), Late("x"), pickle.PicklingError("x"), OSError("x")):
        assert not is_interrupt(_caught(lambda exc=exc: _own_error(exc)))  # it comes of somebody's `write`

    def generate(nothing: None) -> Iterator[int]:  # its frame, which has ended, is above none
        yield int("x")

    for function in (lambda: next(generate(None)), lambda: {}[0], lambda: pickle.dumps(threading.Lock())):
        assert not is_interrupt(_caught(function))

    class Ours(GivenUp):
        pass

    assert not is_interrupt(Ours())
    assert not is_interrupt(RecursionError())
    assert is_interrupt(KeyboardInterrupt())
    assert is_interrupt(Late())  # no frame of others: nobody's code has raised it


def _asks(handler: ast.ExceptHandler) -> bool:
    """Whether a handler asks, or hands on whatever it is."""
    end = handler.body[-1]
    if isinstance(end, ast.Raise):
        return end.exc is None
    if isinstance(end, ast.Return) and isinstance(end.value, ast.Name) and end.value.id == handler.name:
        return True
    calls = [node.func for part in handler.body for node in ast.walk(part) if isinstance(node, ast.Call)]
    return any(isinstance(func, ast.Name) and func.id == is_interrupt.__name__ for func in calls)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_error_is_caught_unasked(path: Path) -> None:
    """Where errors of any kind are caught, or those that a handler may raise, too, it is asked what they are."""
    if path.relative_to(PACKAGE).parts[0] in ("cli", "concurrent"):
        pytest.skip("an executor hands on what its tasks raise; the command line is a program")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            names = {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)} if node.type else {""}
            if names & {"", "BaseException", "Exception", "RuntimeError"}:
                assert _asks(node), f"{path.name}:{node.lineno}"
