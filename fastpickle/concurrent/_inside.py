"""What runs in a worker interpreter: one loop that takes calls off a queue and writes what came of them into a pipe.

    queue of calls ──┐  (one byte in the pipe of tokens for each call: reading it is what waits)
    pipe of tokens ──┴► loop: unpickle, call, pickle ──► pipe of records, if the result is small
                                                    ├──► pipe of the lane, if a thread reads it for this call
                                                    └──► else the loop returns it, and is called again: so the thread
                                                         that made it copies it, on the same core

Not for: being imported by the worker, which would import the whole package; its code is sent and executed there. So it
imports nothing of the package, except for dill and cloudpickle. The other side is `interpreter_pool`.
"""

from __future__ import annotations

import functools
import marshal
import os
import pickle
import queue
import select
import struct
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

__all__ = [
    "BYE",
    "CALL",
    "CHUNK",
    "CODE",
    "COPIED",
    "ERROR",
    "INLINE",
    "ITSELF",
    "LED",
    "LIFTED",
    "NATIVE",
    "NEWEST",
    "OUT_OF_BAND",
    "QUIT",
    "RECORD",
    "RESULT",
    "RUN",
    "VIEW",
    "WAKE",
    "WAKE_UP",
    "Beside",
    "Spin",
    "again",
    "large_in",
    "main",
    "native",
    "own_code",
]

# What a call is.
CALL, CHUNK, CODE, NATIVE = range(4)
# What a record is: a call's result or error, a worker's end, "look around"; from a worker that
# leaves the loop also an object itself, or a view.
RESULT, ERROR, BYE, WAKE, ITSELF, VIEW = range(6)

RECORD = struct.Struct("<IQHBI")
"""Length of what follows, the call's number, the worker's, what it is, how long the call took in microseconds."""

WAKE_UP = RECORD.pack(0, 0, 0, WAKE, 0)
"""The whole record: it has whoever reads it look around."""

INLINE = getattr(select, "PIPE_BUF", 512) - RECORD.size
"""Bytes of a result that go through the pipe: so many written at once stay together."""

COPIED = 1 << 12
"""Bytes of a message up to which it is copied through a queue; a longer one is shared, which costs 0.5 us more."""

OUT_OF_BAND = 1 << 16
"""Bytes from which on a buffer travels beside the message."""

LIFTED = 64
"""Items of a list, tuple or dict up to which large bytes are looked for in it: 1 us at most."""

RUN, QUIT = b"r", b"q"
"""The tokens."""

NEWEST, LED = -2, -1
"""Places on the board: the call that was sent last, and the one whose result goes into the lane."""


class Spin:
    """Looks at a place on the board for a while, before a thread sleeps: to wake it takes longer than a short call.

    Args:
        board: the board.
        place: the place.
        nanoseconds: how long; after it was in vain, not at all for one call, three, seven, at most 63.
    """

    __slots__ = ("board", "nanoseconds", "pause", "pauses", "place")

    def __init__(self, board: memoryview, place: int, nanoseconds: int) -> None:
        self.board = board
        self.place = place
        self.nanoseconds = nanoseconds
        self.pause = 0
        self.pauses = 0 if nanoseconds else sys.maxsize

    def wait(self, number: int) -> None:
        """Wait until the number there is another one, or not so long."""
        if self.pauses:
            self.pauses -= 1
            return
        board, place, clock = self.board, self.place, time.perf_counter_ns
        end = clock() + self.nanoseconds
        while board[place] == number:
            if clock() >= end:
                self.pause = self.pauses = min(2 * self.pause + 1, 63)
                return
        self.pause = 0


_NATIVE = frozenset({bytes, str, int, float, bool, type(None)})
_INT = 1 << 62


def large_in(items: Any) -> list[int]:
    """Return the identities of the large bytes among items; none if there are too many to look at them all."""
    if len(items) > LIFTED:
        return []
    return [id(item) for item in items if type(item) is bytes and len(item) >= OUT_OF_BAND]


def native(items: tuple[Any, ...], large: list[int]) -> bool:
    """Return whether a tuple goes as it is: CPython copies all of it by itself, large bytes at less cost than pickle.

    Args:
        items: the tuple.
        large: its large bytes; each may be there only once, as each is copied.
    """
    if not large or len({*large}) < len(large):
        return False
    return all(type(item) in _NATIVE and (type(item) is not int or -_INT < item < _INT) for item in items)


_CONTAINERS = frozenset({list, tuple, dict})


class Beside:
    """What travels beside one message: `collect` is a `buffer_callback`, and `views` what it collected."""

    __slots__ = ("lifted", "seen", "views")

    def __init__(self) -> None:
        self.views: list[bytes | memoryview] = []
        """Bytes are copied between interpreters, memoryviews are not."""
        self.lifted: dict[int, tuple[bytes | memoryview, pickle.PickleBuffer]] = {}
        """What stands for bytes and memoryviews, by its identity."""
        self.seen: set[int] = set()

    def lift(self, obj: Any) -> Any:
        """Put buffers in the place of large bytes, which pickle would copy into its message, and of memoryviews.

        Args:
            obj: anything; bytes are found in it if it is bytes or a short list, tuple or dict of such.

        Returns:
            The same, or a copy with the buffers; the same if any bytes are there twice, as pickle writes them once.
        """
        cls = type(obj)
        if cls is bytes or cls is memoryview:
            if cls is bytes and (len(obj) < OUT_OF_BAND or id(obj) in self.seen):
                return obj
            self.seen.add(id(obj))
            buffer = pickle.PickleBuffer(obj)
            self.lifted[id(buffer)] = (obj, buffer)
            return buffer
        if cls not in _CONTAINERS:
            return obj
        large = large_in(obj.values() if cls is dict else obj)
        if not large or len({*large}) < len(large) or not self.seen.isdisjoint(large):
            return obj
        if cls is dict:
            return {key: self.lift(item) if type(item) is bytes else item for key, item in obj.items()}
        return cls([self.lift(item) if type(item) is bytes else item for item in obj])

    def collect(self, buffer: pickle.PickleBuffer) -> bool:
        """Take a buffer if it is lifted, or large; a writable one as it is now. Else it goes into the message."""
        if id(buffer) in self.lifted:
            self.views.append(self.lifted[id(buffer)][0])
            return False
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if raw.nbytes < OUT_OF_BAND:
            return True
        self.views.append(raw if raw.readonly else memoryview(bytearray(raw)))
        return False


class _Again:
    """What runs the loop, and is pickled by its name: for a function, CPython first looks whether it is stateless."""

    loop: Callable[[], Any] | None = None

    def __call__(self) -> Any:
        """Run the loop until there is a large result, and return it; or None, if a token says so."""
        assert self.loop is not None
        return self.loop()

    def __reduce__(self) -> str:
        return "again"


again = _Again()

own_code: bytes | None = None
"""The code of this module, in a worker: there it has no file, and a pool in a worker's task needs it too."""


def main(setup: tuple[Any, ...]) -> None:
    """Make `again` ready, and run the initializer.

    Args:
        setup: what `interpreter_pool` made: only what is shared natively.
    """
    path, serializer, main_name, main_path, tokens, records, lane, room, calls, board, spin, number, initial = setup
    sys.path[:] = path
    places = board.cast("Q")
    worker = _Worker(number, records, lane, room, places, (main_name, main_path))
    worker.resolve(serializer)
    if initial is not None and (answer := worker.answer(initial))[0] == ERROR:
        again.loop = lambda: (0, answer[0], 0, 0, *answer[1:])
    else:
        again.loop = functools.partial(_loop, worker, tokens, calls, places, number, Spin(places, NEWEST, spin))


def _loop(worker: _Worker, tokens: int, calls: Any, board: memoryview, place: int, spin: Spin) -> Any:
    read, get, answer, small, clock = os.read, calls.get_nowait, worker.answer, worker.small, time.perf_counter_ns
    done = place + len(board) // 2 - 1
    if board[NEWEST] == worker.last:  # no token is waiting
        spin.wait(worker.last)
    while True:
        token = read(tokens, 1)
        if not token:
            raise EOFError("the pool's pipe is closed")
        if token == QUIT:
            again.loop = None
            del calls, get  # a traceback in a cycle may hold this frame until there is no module to release a queue
            return None
        try:
            call = get()
        except queue.Empty:  # the pool has taken it back
            continue
        task = board[place] = call[0]
        start = clock()
        outcome = answer(call)
        del call
        took = min((clock() - start) // 1000, 0xFFFFFFFF)
        board[done] += 1
        board[place] = 0  # before the result is there: `stats()` counts
        try:
            if small(task, outcome, took):
                del outcome
                if board[NEWEST] == task:  # as above
                    spin.wait(task)
                continue
        except BaseException:
            board[place] = task  # it has no result: whoever looks after the pool's accident fails it
            raise
        board[place] = worker.last = task  # until the result is taken
        kind, message, *views = outcome
        size = len(message) + sum(view.nbytes if type(view) is memoryview else len(view) for view in views)
        return task, kind, took, size, message if len(message) <= COPIED else memoryview(message), *views


class _Worker:
    """One worker interpreter: its serializer, and where its answers go."""

    dumps: Callable[..., bytes]
    loads: Callable[..., Any]

    def __init__(
        self, number: int, records: int, lane: int, room: int, board: memoryview, main: tuple[str | None, str | None]
    ) -> None:
        self.number = number
        self.records = records
        self.lane = lane
        self.room = room
        self.board = board
        self.main = main
        self.main_is_ready = False
        self.last = 0

    def resolve(self, serializer: str) -> None:
        """Find the functions of a serializer; pickle's are at hand without importing the package."""
        if serializer == "pickle":
            dumps = pickle.dumps
            self.dumps = lambda obj, buffer_callback=None: dumps(obj, 5, buffer_callback=buffer_callback)
            self.loads = pickle.loads
        else:
            from fastpickle.concurrent.serializers import resolve  # noqa: PLC0415  # imports the package

            _, self.dumps, self.loads = resolve(serializer)

    def answer(self, call: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a call: what it is, the message, the views beside it."""
        stage = "args"
        try:
            fn, args, kwargs = self.decode(*call)
            stage = "call"
            result = [fn(*each) for each in args] if call[1] == CHUNK else fn(*args, **kwargs)
            stage = "result"
            return self.encode(result)
        except BaseException as exc:  # SystemExit too is the task's own
            return self.failure(stage, exc)

    def decode(
        self, _: int, kind: int, message: bytes | memoryview, *buffers: Any
    ) -> tuple[Callable[..., Any], Any, dict[str, Any]]:
        """Make a function and its arguments of a call."""
        if kind == NATIVE:
            return self.loads(message), buffers, {}
        try:
            parts = self.loads(message, buffers=buffers)
        except AttributeError as exc:
            if "__main__" not in str(exc) or self.main_is_ready:
                raise
            if self.main == (None, None):
                exc.add_note(  # type: ignore[attr-defined,unused-ignore]  # since 3.11; this runs from 3.14 on
                    "__main__ has no file that a worker could run; "
                    'put it into a module, or use serializer="dill" or "cloudpickle"'
                )
                raise
            self.prepare_main()
            parts = self.loads(message, buffers=buffers)
        if kind == CHUNK:
            return parts[0], parts[1], {}
        fn, args, kwargs = parts
        return _function(*fn) if kind == CODE else fn, args, kwargs

    def prepare_main(self) -> None:
        """Make what the parent's `__main__` defines known here, as `multiprocessing` does for its children."""
        name, path = self.main
        import runpy  # noqa: PLC0415  # seldom needed

        module = types.ModuleType("__mp_main__")
        if name is not None:
            names = runpy.run_module(name, run_name="__mp_main__", alter_sys=True)
        else:
            assert path is not None
            names = runpy.run_path(path, run_name="__mp_main__")
        module.__dict__.update(names)
        sys.modules["__main__"] = sys.modules["__mp_main__"] = module
        self.main_is_ready = True

    def encode(self, result: Any) -> tuple[Any, ...]:
        """Make a message of a result."""
        kind = type(result)
        if kind is bytes and len(result) >= OUT_OF_BAND:
            return ITSELF, b"", result
        if kind is memoryview:
            _ = result.nbytes  # raises if it has been released
            return VIEW, b"", result
        beside = Beside()
        if kind is tuple:
            if large := large_in(result):
                if native(result, large):
                    return ITSELF, b"", result
                result = beside.lift(result)
        elif kind in _CONTAINERS:
            result = beside.lift(result)
        message = self.dumps(result, buffer_callback=beside.collect)
        return RESULT, message, *beside.views

    def failure(self, stage: str, exc: BaseException) -> tuple[Any, ...]:
        """Make a message of an exception: when it was, the exception pickled, what is told of it."""
        import traceback  # noqa: PLC0415  # seldom needed

        kind = type(exc)
        try:
            text = str(exc)
        except BaseException as other:
            text = f"<str() failed: {type(other).__name__}>"
        try:
            if exc.__traceback__ is not None:
                exc.__traceback__ = exc.__traceback__.tb_next  # without this module's frame
            with warnings.catch_warnings(action="ignore"):  # type: ignore[call-overload,unused-ignore]  # since 3.11
                display = "".join(traceback.format_exception(exc)).rstrip()  # it warns by itself in 3.15
        except BaseException as other:
            display = f"{kind.__name__}: {text} (no traceback: {type(other).__name__} while it was made)"
        try:
            pickled = self.dumps(exc) if stage == "call" else None
        except BaseException as other:
            pickled = None
            display += f"\n(the exception could not be pickled: {type(other).__name__})"
        told = (kind.__name__, kind.__qualname__, kind.__module__, text, display)
        return ERROR, pickle.dumps((stage, pickled, told), 5)

    def small(self, task: int, outcome: tuple[Any, ...], took: int) -> bool:
        """Write an answer into a pipe, if it is small."""
        is_led = self.board[LED] == task
        if len(outcome) > 2 or len(outcome[1]) > (self.room if is_led else INLINE):
            return False
        kind, message = outcome
        record = RECORD.pack(len(message), task, self.number, kind, took) + message
        os.write(self.lane if is_led else self.records, record)
        if is_led and self.board[LED] == task:  # else the one that read it already waits for another call
            self.board[LED] = 0
        return True


def _function(code: bytes, name: str, defaults: Any, kwdefaults: Any) -> types.FunctionType:
    """Make a function that needs nothing but builtins."""
    names = {"__name__": name, "__builtins__": __builtins__}
    fn = types.FunctionType(marshal.loads(code), names, argdefs=defaults)
    fn.__kwdefaults__ = kwdefaults
    return fn
