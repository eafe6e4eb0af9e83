"""What runs in a worker interpreter: one loop that takes calls off a queue and writes what came of them into a pipe.

    queue of calls ──┐  (one byte in the pipe of tokens for each call: reading it is what waits)
    pipe of tokens ──┴► loop: unpickle, call, pickle ──► pipe of records, with small results in it
                                                    └──► queue of results, for large ones and their buffers

Not for: being imported by the worker, which would import the whole package; its code is sent and executed there. So it
imports nothing of the package, except for dill and cloudpickle. The other side is `interpreter_pool`.
"""

from __future__ import annotations

import marshal
import os
import pickle
import select
import struct
import sys
import time
import types
from collections.abc import Callable
from typing import Any

__all__: list[str] = []

# What a call is.
CALL, CHUNK, CODE = range(3)
# What a record is: a call's result or error, a sign that it lies in the queue, a worker's end, "look around".
RESULT, ERROR, QUEUED, BYE, WAKE = range(5)
# How a large result lies in the queue, beside RESULT and ERROR.
BYTES, VIEW = 5, 6

RECORD = struct.Struct("<IQHBI")
"""Length of what follows, the call's number, the worker's, what it is, how long the call took in microseconds."""

INLINE = getattr(select, "PIPE_BUF", 512) - RECORD.size
"""Bytes of a result that go through the pipe: so many written at once stay together."""

COPIED = 1 << 12
"""Bytes of a message up to which it is copied through a queue; a longer one is shared, which costs 0.5 us more."""

OUT_OF_BAND = 1 << 16
"""Bytes from which on a buffer travels beside the message."""

RUN, QUIT = b"r", b"q"
"""The tokens."""


def collect(buffers: list[memoryview]) -> Callable[[pickle.PickleBuffer], bool]:
    """Return a `buffer_callback` that collects large buffers; writable ones as they are now."""

    def take(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if raw.nbytes < OUT_OF_BAND:
            return True
        buffers.append(raw if raw.readonly else memoryview(bytearray(raw)))
        return False

    return take


def main(setup: tuple[Any, ...]) -> None:
    """Run calls until a token says to quit.

    Args:
        setup: what `interpreter_pool` made: only what is shared natively.
    """
    path, serializer, main_name, main_path, tokens, records, calls, results, board, number, spin, initial = setup
    sys.path[:] = path
    worker = _Worker(number, records, results, (main_name, main_path))
    worker.resolve(serializer)
    if initial is not None:
        answer = worker.answer(initial)
        if answer[0] == ERROR:
            worker.send(0, answer, 0)
            return
        del answer
    _loop(worker, tokens, calls, board.cast("Q"), number + 1, spin)


def _loop(worker: _Worker, tokens: int, calls: Any, board: memoryview, place: int, spin: int) -> None:
    read, get, answer, send, clock = os.read, calls.get_nowait, worker.answer, worker.send, time.perf_counter_ns
    from concurrent.interpreters import QueueEmpty  # type: ignore  # noqa: PLC0415  # new in 3.14

    while True:
        bell, turns = board[0], spin
        while turns and board[0] == bell:  # whoever waits for a result has the next call soon: no sleep, no waking
            turns -= 1
        if read(tokens, 1) == QUIT:
            return
        try:
            call = get()
        except QueueEmpty:  # the pool has taken it back
            continue
        task = board[place] = call[0]
        start = clock()
        outcome = answer(call)
        board[place] = 0
        send(task, outcome, (clock() - start) // 1000)
        del call, outcome


class _Worker:
    """One worker interpreter: its serializer, and where its answers go."""

    dumps: Callable[..., bytes]
    loads: Callable[..., Any]

    def __init__(self, number: int, records: int, results: Any, main: tuple[str | None, str | None]) -> None:
        self.number = number
        self.records = records
        self.results = results
        self.main = main
        self.main_is_ready = False

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
        self, _: int, kind: int, message: bytes | memoryview, places: tuple[int, ...] = (), *views: memoryview
    ) -> tuple[Callable[..., Any], Any, dict[str, Any]]:
        """Make a function and its arguments of a call."""
        buffers = views[len(places) :]
        try:
            parts = self.loads(message, buffers=buffers)
        except AttributeError as exc:
            if "__main__" not in str(exc) or self.main_is_ready:
                raise
            self.prepare_main(exc)
            parts = self.loads(message, buffers=buffers)
        if kind == CHUNK:
            return parts[0], parts[1], {}
        fn, args, kwargs = parts
        if kind == CODE:
            fn = _function(*fn)
        if places:
            args = list(args)
            for place, view in zip(places, views, strict=False):
                args[place >> 1] = view if place & 1 else bytes(view)
        return fn, args, kwargs

    def prepare_main(self, exc: AttributeError) -> None:
        """Make what the parent's `__main__` defines known here, as `multiprocessing` does for its children."""
        name, path = self.main
        if name is None and path is None:
            exc.add_note(  # type: ignore[attr-defined,unused-ignore]  # since 3.11; this runs from 3.14 on
                "__main__ has no file that a worker could run; "
                'put it into a module, or use serializer="dill" or "cloudpickle"'
            )
            raise exc
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
            return BYTES, b"", memoryview(result)
        if kind is memoryview:
            return VIEW, b"", result
        buffers: list[memoryview] = []
        message = self.dumps(result, buffer_callback=collect(buffers))
        return RESULT, message, *buffers

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
            display = "".join(traceback.format_exception(exc)).rstrip()
        except BaseException as other:
            display = f"{kind.__name__}: {text} (no traceback: {type(other).__name__} while it was made)"
        try:
            pickled = self.dumps(exc) if stage == "call" else None
        except BaseException as other:
            pickled = None
            display += f"\n(the exception could not be pickled: {type(other).__name__})"
        told = (kind.__name__, kind.__qualname__, kind.__module__, text, display)
        return ERROR, pickle.dumps((stage, pickled, told), 5)

    def send(self, task: int, outcome: tuple[Any, ...], took: int) -> None:
        """Write an answer into the pipe, or put it into the queue and say so."""
        kind, message, *views = outcome
        took = min(took, 0xFFFFFFFF)
        if len(message) <= INLINE and not views:
            os.write(self.records, RECORD.pack(len(message), task, self.number, kind, took) + message)
        else:
            shared = message if len(message) <= COPIED else memoryview(message)
            self.results.put_nowait((task, kind, shared, *views))
            os.write(self.records, RECORD.pack(0, task, self.number, QUEUED, took))


def _function(code: bytes, name: str, defaults: Any, kwdefaults: Any) -> types.FunctionType:
    """Make a function that needs nothing but builtins."""
    names = {"__name__": name, "__builtins__": __builtins__}
    fn = types.FunctionType(marshal.loads(code), names, argdefs=defaults)
    fn.__kwdefaults__ = kwdefaults
    return fn
