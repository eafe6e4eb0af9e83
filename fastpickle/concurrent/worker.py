"""What runs in a worker process of the process-and-thread pool: one thread that reads, and many that run tasks.

    pool ──► pipe ──► main thread: Records ──► queue ──► threads: loads, call, dumps ──► outbox ──► pipe ──► pool
                                                                       whoever comes first writes for all

A thread is started when a task finds none idle, up to `max_threads`.  A chunk is begun by one thread; where its calls
take long, idle threads take calls of it too, so that a chunk of ten calls that wait does not wait ten times.

The process ends when it is told to stop, and at once, with whatever it is doing, when its pipe is closed: there is
nobody left then who would take a result.

Not for: which worker gets a task (`dispatcher`).
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures._base import LOGGER  # where users of concurrent.futures look for what goes wrong
from multiprocessing.connection import Connection
from queue import SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple

from . import serializers
from .errors import dump_error
from .records import CHUNK, ERROR, FAILED, READY, RESULT, RETURN, RETURNED, STOP, Outbox, Records, record

__all__ = ["Setup", "run_worker"]

_SHARED = 0.0005
"""Seconds: a chunk whose calls take longer is worth a thread that is woken to take some of them."""

_LOST = 70
"""The exit status of a worker whose pool is gone: os.EX_SOFTWARE where there is such a name."""


class Setup(NamedTuple):
    """What a worker is told when it begins."""

    serializer: str
    max_threads: int
    functions: bytes | tuple[Any, Any]
    """(initializer, thread_initializer), or the bytes of that."""
    arguments: bytes | tuple[Any, Any]
    """(initargs, thread_initargs), or the bytes of that; locks and queues of `multiprocessing` travel as they are."""


def run_worker(setup: Setup, tasks: Connection, results: Connection, others: tuple[int, ...]) -> None:
    """Be a worker process.

    Args:
        setup: what it is to do.
        tasks: the end of a pipe to read tasks from.
        results: the end of a pipe to write results to.
        others: file descriptors of the pool that a fork has brought here: while they are open, other workers would
            not see the pool's end.
    """
    for fd in others:
        os.close(fd)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Ctrl-C is sent to all processes of a terminal: the worker ends by it, without a traceback of its own.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _Worker(setup, tasks.fileno(), results.fileno()).run()


class _Chunk:
    """Calls of one function that several threads may take from."""

    __slots__ = ("calls", "error", "fn", "left", "lock", "number", "results", "seconds")

    def __init__(self, number: int, fn: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
        self.number = number
        self.fn = fn
        self.calls = deque(enumerate(calls))
        self.results: list[Any] = [None] * len(calls)
        self.left = len(calls)
        self.error: tuple[int, BaseException] | None = None
        self.seconds = 0.0
        self.lock = threading.Lock()


class _Worker:
    """The process's state."""

    def __init__(self, setup: Setup, tasks: int, results: int) -> None:
        self._setup = setup
        self._tasks = tasks
        self._outbox = Outbox(results)
        self._sending = threading.Lock()
        self._items: deque[Any] = deque()
        self._wakes: SimpleQueue[bool] = SimpleQueue()  # True for each item that came, False to end
        self._threads: list[threading.Thread] = []
        self._free = 0  # threads that wait for an item, or are about to, less the items
        self._counting = threading.Lock()
        self._dumps: Callable[..., bytes]
        self._loads: Callable[..., Any]

    def run(self) -> None:
        """Initialize, then read until there is nothing to read any more."""
        try:
            serializer = serializers.resolve(self._setup.serializer, forking=True)
            self._dumps, self._loads = serializer.dumps, serializer.loads
            functions, arguments = self._setup.functions, self._setup.arguments
            initializer, self._initializer = self._loads(functions) if isinstance(functions, bytes) else functions
            initargs, self._initargs = self._loads(arguments) if isinstance(arguments, bytes) else arguments
            if initializer is not None:
                initializer(*initargs)
        except BaseException:
            self._fail("initializer")
            return
        self._send(record(READY, 0))
        try:
            self._read()
        except OSError:  # a task has closed the pipe
            os._exit(_LOST)
        for _ in self._threads:
            self._wakes.put(False)
        for thread in self._threads:
            thread.join()

    def _read(self) -> None:
        incoming = Records(self._tasks)
        while True:
            records = incoming.read()
            if records is None:  # the pool's process has ended
                os._exit(_LOST)
            for kind, number, _, payload in records:
                if kind == STOP:
                    return
                if kind == RETURN:
                    self._return_tasks()
                else:
                    self._put((kind, number, payload))

    def _put(self, item: Any, is_shared: bool = False) -> None:
        """Queue an item for a thread, which is started if none is free and there may be another one.

        Args:
            item: a task or a chunk.
            is_shared: whether a thread has it already, so that without another one it is not queued.
        """
        with self._counting:
            n = len(self._threads)
            if self._free > 0:
                self._free -= 1
            elif n < self._setup.max_threads:
                # Daemons: where the pool is gone, or an initializer failed, nothing waits for what they do.
                thread = threading.Thread(target=self._work, name=f"ProcessThreadPoolExecutor_{n}", daemon=True)
                self._threads.append(thread)
                thread.start()  # it is free, and the item is for it
            elif is_shared:
                return
            else:
                self._free -= 1
            self._items.append(item)
        self._wakes.put(True)

    def _return_tasks(self) -> None:
        """Send back the tasks that no thread has begun, or is about to, the last first."""
        returned = []
        with self._counting:
            begun = deque[Any]()
            for _ in range(-self._free):  # for the others a thread is there
                item = self._items.pop()
                if isinstance(item, _Chunk):
                    begun.appendleft(item)
                else:
                    returned.append(item)
            self._items.extend(begun)
            self._free += len(returned)
        for kind, number, payload in returned:
            self._send(record(RETURNED, number, bytes((kind,)) + bytes(payload)))

    def _work(self) -> None:
        """Run tasks, in a thread."""
        try:
            if self._initializer is not None:
                self._initializer(*self._initargs)
        except BaseException:
            self._fail("thread initializer")
            return
        counting, items, loads, dumps = self._counting, self._items, self._loads, self._dumps
        is_counted = True  # as free, by `_put`
        while True:
            if not is_counted:
                with counting:
                    self._free += 1
            is_counted = self._wakes.get()
            if not is_counted:
                return
            with counting:
                if not items:  # it was sent back
                    continue
                item = items.popleft()
            is_counted = False
            if type(item) is _Chunk:
                self._run_calls(item)
                del item
                continue
            kind, number, payload = item
            del item
            began = perf_counter()
            try:
                if kind == CHUNK:
                    chunk = _Chunk(number, *loads(payload))
                    del payload
                    self._run_calls(chunk)
                    del chunk
                    continue
                fn, args, kwargs = loads(payload)
                del payload
                result = fn(*args, **kwargs)
                del fn, args, kwargs
            except BaseException as exc:
                answer = record(ERROR, number, dump_error(dumps, exc), perf_counter() - began)
            else:
                answer = _dump_result(dumps, number, result, perf_counter() - began)
                del result
            self._send(answer)
            del answer

    def _run_calls(self, chunk: _Chunk) -> None:
        """Take calls of a chunk until there is none left; who ends the last one sends the results."""
        while True:
            try:
                i, args = chunk.calls.popleft()
            except IndexError:
                return
            began = perf_counter()
            error = None
            try:
                chunk.results[i] = chunk.fn(*args)
            except BaseException as exc:
                error = exc
            del args
            seconds = perf_counter() - began
            with chunk.lock:
                if error is not None:
                    chunk.left -= len(chunk.calls)  # what comes after an exception is nobody's result
                    chunk.calls.clear()
                    if chunk.error is None or i < chunk.error[0]:
                        chunk.error = i, error
                    del error
                chunk.seconds += seconds
                chunk.left -= 1
                is_last = chunk.left == 0
            if is_last:
                self._send_chunk(chunk)
                return
            if seconds > _SHARED and chunk.calls:
                self._put(chunk, is_shared=True)

    def _send_chunk(self, chunk: _Chunk) -> None:
        if chunk.error is not None:
            self._send(record(ERROR, chunk.number, dump_error(self._dumps, chunk.error[1]), chunk.seconds))
            chunk.error = None  # its traceback has frames that have the chunk
        else:
            self._send(_dump_result(self._dumps, chunk.number, chunk.results, chunk.seconds))

    def _send(self, parts: tuple[bytes, ...]) -> None:
        """Write a record, and those that other threads add meanwhile; or leave it to the thread that writes now."""
        outbox, sending = self._outbox, self._sending
        outbox.put(parts)
        while outbox and sending.acquire(blocking=False):
            try:
                outbox.flush()
            except OSError:  # the pool's process has ended, or a task has closed the pipe
                os._exit(_LOST)
            finally:
                sending.release()

    def _fail(self, which: str) -> None:
        """Say that an initializer has failed; the pool is broken by that, and ends the process."""
        LOGGER.critical("Exception in %s:", which, exc_info=True)
        text = f"the {which} of a worker process failed:\n\n{traceback.format_exc()}"
        self._send(record(FAILED, 0, text.encode("utf-8", "backslashreplace")))


def _dump_result(dumps: Callable[..., bytes], number: int, result: object, seconds: float) -> tuple[bytes, ...]:
    try:
        return record(RESULT, number, dumps(result), seconds)
    except BaseException as exc:
        return record(ERROR, number, dump_error(dumps, exc), seconds)
