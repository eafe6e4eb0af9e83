"""The threads of an `InterpreterPoolExecutor`: the manager, a thread for each worker interpreter, and what they share.

    Pool.submit ─► waiting ─► feed ─► queue of calls, tokens ─► worker ─► _look or _take ─► _deliver ─► future
                                                                     └─ the only call ─► _lane, of the waiting thread
    an interpreter fails ─► Pool.fail: no call is taken any more, those that run come to their end
    a thread here fails, or a pipe ─► Pool.collapse: every future fails at once

Not for: what a call and a result look like (`_calls`), and what users see (`interpreter_pool`).
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import marshal
import os
import select
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures._base import LOGGER, BrokenExecutor
from typing import Any

from ..interrupts import is_interrupt, suppressed
from . import _inside, exits
from ._calls import decode, encode, interpreters, main_source, raise_in_main
from ._lane import Call, Lane
from .serializers import resolve

if interpreters is None:

    class BrokenInterpreterPool(BrokenExecutor):
        """Raised when a worker interpreter failed, or its initializer."""

else:
    from concurrent.futures.interpreter import BrokenInterpreterPool  # type: ignore  # new in 3.14

__all__ = ["BrokenInterpreterPool", "Pool"]

_SHORT = 1000.0
"""Microseconds of work that are sent to a worker ahead: calls that take longer are not."""

_PER_MICROSECOND = 256
"""Bytes of a result that count as a microsecond: large ones are not made ahead, or the memory for them is ever new."""

_AHEAD = 64
"""Calls that are sent ahead in all: what CPython keeps to release shared objects with holds 300."""

_SPIN = 50_000
"""Nanoseconds that a thread looks for more work before it sleeps: about what it takes to wake one on another core."""

_BOOT = f"""
import marshal, sys, types
sys.modules["{_inside.__name__}"] = _module = types.ModuleType("{_inside.__name__}")
exec(marshal.loads(_setup[0]), _module.__dict__)
_module.own_code = _setup[0]
_module.main(_setup[1:])
del _setup, _module, marshal, sys, types
"""


@functools.cache
def _inside_code() -> bytes:
    """Return the code of `_inside`, which is executed in each worker."""
    if _inside.own_code is not None:
        return _inside.own_code  # this is a worker itself
    spec = importlib.util.find_spec(_inside.__name__)
    return marshal.dumps(spec.loader.get_code(_inside.__name__))  # type: ignore[union-attr]  # loaders of files have it


class Pool:
    """What the threads of an executor share: they hold no reference to the executor itself."""

    def __init__(self, max_workers: int, prefix: str, serializer: str, initial: tuple[Any, ...] | None) -> None:
        self.max_workers = max_workers
        self.prefix = prefix
        self.serializer = resolve(serializer)
        self.initial = initial
        self.lock = threading.Lock()
        self.manager: threading.Thread | None = None
        self.threads: set[threading.Thread] = set()
        self.live = 0  # workers that have not said goodbye
        self.workers = 0  # that were started
        self.waiting: deque[tuple[Call, tuple[Any, ...]]] = deque()
        self.sent: dict[int, Call] = {}
        self.numbers = itertools.count(1)
        self.average = 2 * _SHORT  # microseconds that a call takes, lately
        self.broken: str | None = None
        self.stopping = False
        self.quit_sent = False
        self.closed = False
        self.fds: list[int] = []
        self.wakers = 0  # threads that are writing into the pipe of records
        self.unread = b""  # of the records, the manager's
        self.outcomes: deque[tuple[Call | None, int, bytes]] = deque()  # that it has read, for `_deliver`
        self.helping = 0  # callbacks in which the manager waits for a call
        self.lane = Lane()
        # The call that each worker runs, how many each has run, and what `_inside` has names for.
        self.board = memoryview(bytearray(8 * (2 * max_workers + 2))).cast("Q")
        self.spin = _inside.Spin(self.board, _inside.LED, _spin_time())
        self.executor: weakref.ref[Any] | None = None
        self.ids: dict[int, int] = {}  # the interpreter of each worker
        self.accidents: dict[int, BaseException] = {}  # why a worker ended that was not told to

    # -- the executor's side

    def open(self) -> None:
        """Begin, at the first call."""
        self.main_source = main_source()  # a script that has ended has no __file__ any more
        self.calls: Any = interpreters.create_queue()
        self.close_some(*self.fds)  # of a try that Ctrl+C ended
        try:
            for _ in range(3):
                self.fds += os.pipe()
            self.tokens_in, self.tokens_out, self.records_in, self.records_out, *lane = self.fds
            self.lane.open(*lane)
            exits.note_running(self)
            self.manager = threading.Thread(target=_manage, args=(self,), name=f"{self.prefix}_manager")
            self.manager.start()
        except (OSError, RuntimeError) as exc:  # too many open files, or threads
            if is_interrupt(exc):  # the manager may be running
                raise
            exits.note_ended(self)
            self.manager = None
            self.close()
            raise

    def forget(self) -> None:
        """Be nobody's, in a process that was forked from the pool's: it has no threads, and shares the pipes."""
        self.lock = threading.Lock()
        self.lane = Lane()
        self.lane.reading.acquire()  # what is read here would be missing there
        self.stopping = self.quit_sent = True
        self.manager = None
        self.threads.clear()
        self.broken = "the pool belongs to the process that this one was forked from"

    def close(self) -> None:
        """Close the pipes, and let the queue go: its `__del__` fails where it lives until Python ends."""
        self.calls = None
        self.close_some(*self.fds)

    def close_if_unused(self) -> None:
        """Close the pipes if all is done and nobody is using them; with the lock."""
        if self.closed and not self.wakers and self.lane.led is None:
            self.close()

    def close_some(self, *fds: int) -> None:
        """Close ends of the pipes, each once; a task may have done so."""
        for fd in fds:
            if fd in self.fds:
                self.fds.remove(fd)
                with suppressed(OSError):
                    os.close(fd)

    def submit(self, call: Call, parts: tuple[Any, ...] | None) -> None:
        """Take a call; None has failed already, and is only taken if the pool takes any."""
        with self.lock:
            if self.broken is not None:
                raise BrokenInterpreterPool(self.broken)
            if exits.is_exiting():
                raise RuntimeError("cannot schedule new futures after interpreter shutdown")
            if self.stopping:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if parts is None:
                return
            if self.manager is None:
                self.open()
            if self.workers < self.max_workers and len(self.sent) + len(self.waiting) >= self.live:
                self.start_worker()
            call._pool = self
            self.waiting.append((call, parts))
            try:
                self.feed()
                return
            except BaseException as exc:  # a pipe is closed, there is no memory, or Ctrl+C: a call may be half sent
                failed = exc
        self.collapse()
        self.stop()
        if isinstance(failed, OSError) and not is_interrupt(failed):
            raise BrokenInterpreterPool(self.broken) from failed
        raise failed

    def start_worker(self) -> None:
        number = self.workers
        thread = threading.Thread(target=_work, args=(self, number), name=f"{self.prefix}_{number}")
        self.live += 1
        self.workers += 1
        self.threads.add(thread)
        try:
            thread.start()
        except RuntimeError as exc:  # too many threads
            if is_interrupt(exc):  # it may be running
                raise
            self.live -= 1
            self.workers -= 1
            self.threads.discard(thread)
            raise

    def feed(self) -> None:
        """Send what may be sent; with the lock."""
        waiting, sent = self.waiting, self.sent
        if not waiting:
            return
        room = self.live - len(sent)
        if self.average < _SHORT:
            room += min(_AHEAD, int(_SHORT / self.average) * self.live)
        tokens = number = 0
        while room > 0 and waiting:
            call, parts = waiting.popleft()
            if not call.set_running_or_notify_cancel():
                continue
            number = next(self.numbers)
            sent[number] = call
            call._number = number
            self.calls.put_nowait((number, *parts))
            room -= 1
            tokens += 1
        if tokens:
            os.write(self.tokens_out, _inside.RUN * tokens)
            self.board[_inside.NEWEST] = number

    def stop(self, *, collected: bool = False) -> None:
        """Let the workers end when all calls are done.

        Args:
            collected: whether the collector calls, which may be anywhere: even where this thread holds the lock. Then
                the manager holds it, as the executor is no more, and looks at `stopping` after it has released it.
        """
        self.stopping = True
        if self.manager is None or not self.lock.acquire(blocking=not collected):
            return
        try:
            if self.closed:
                return
            self.wakers += 1
        finally:
            self.lock.release()
        # Without the lock: the pipe may be full, and the manager wants the lock before it reads on.
        try:
            if not self.is_manager() or _has_room(self.records_out):
                self.wake()
        finally:
            with self.lock:
                self.wakers -= 1
                self.close_if_unused()

    def join(self) -> None:
        """Wait for the threads; if one of them asks, in a callback, it would wait for itself, and does not."""
        threads = [*self.threads, *([self.manager] if self.manager else ())]
        if threading.current_thread() not in threads:
            for thread in threads:
                thread.join()

    # -- the workers' and the manager's side

    def ended(self, number: int, took: int) -> Call | None:
        """Note that a call has ended, and return its future; None if it has failed meanwhile, with the pool."""
        self.average += (min(took, 4 * _SHORT) - self.average) / 8  # one long call, an import, is soon forgotten
        return self.sent.pop(number, None)

    def help(self, call: Call) -> None:
        """Manage until a call has ended: in a callback the manager would wait for itself."""
        self.helping += 1
        try:
            while not call.done():
                if self.outcomes:
                    _deliver(self, *self.outcomes.popleft())
                else:
                    _turn(self)
        finally:
            self.helping -= 1

    def is_manager(self) -> bool:
        """Return whether this thread is the one that manages."""
        return self.manager is not None and self.manager.ident == threading.get_ident()

    def wake(self) -> None:
        """Have the manager look around; while the pipes are open."""
        with suppressed(OSError):  # a task has closed it: the manager sees that for itself
            os.write(self.records_out, _inside.WAKE_UP)

    def outcome(self, kind: int, message: bytes | memoryview, views: Sequence[Any] = ()) -> tuple[bool, Any]:
        """Return whether a call has a result, and it; else its exception."""
        try:
            return decode(self.serializer, kind, message, views)
        except BaseException as exc:  # a defect: the manager goes on
            raise_in_main(exc)
            return False, exc

    def fail(self, why: str) -> list[Call]:
        """Break: no call is taken any more, and those that no worker has are returned."""
        with self.lock:
            self.broken = why
            self.stopping = True
            lost = [future for future, _ in self.waiting if future.set_running_or_notify_cancel()]
            self.waiting.clear()
            try:
                while self.calls is not None:
                    lost.append(self.sent.pop(self.calls.get_nowait()[0]))
            except interpreters.QueueEmpty:
                pass
            return lost

    def collapse(self) -> None:
        """Break at once: what the workers run has failed too, for a thread here or a pipe has."""
        lost = self.fail("A thread of the pool or one of its pipes failed, the pool is not usable anymore")
        with self.lock:
            while self.sent:
                lost.append(self.sent.popitem()[1])
        _fail_all(self, lost)

    def abandon(self) -> None:
        """End without the manager: whatever the workers wait for, they find the pipes closed."""
        with self.lock:
            self.closed = True
            with suppressed(OSError):
                os.write(self.tokens_out, _inside.QUIT * self.live)
        self.close_some(self.tokens_out, self.records_in)
        for thread in [*self.threads]:
            thread.join()
        with self.lock:
            self.close_if_unused()

    def finish_if_done(self) -> bool:
        """Tell the workers to quit when nothing is waiting; whether all have; with the lock."""
        if not self.stopping or self.waiting:
            return False
        if not self.quit_sent:
            self.quit_sent = True
            os.write(self.tokens_out, _inside.QUIT * self.live)
        if self.live:
            return False
        self.closed = True
        self.close_if_unused()
        return True


def _work(pool: Pool, number: int) -> None:
    """Be a worker: make an interpreter, and stay in its loop but for large results."""
    interpreter = None
    try:
        initial = None if pool.initial is None else encode(pool.serializer, pool.initial[0], pool.initial[1], {})
        interpreter = interpreters.create()
        pool.ids[number] = interpreter.id
        setup = (
            _inside_code(),
            tuple(path for path in sys.path if type(path) is str),
            pool.serializer.name,
            *pool.main_source,
            pool.tokens_in,
            pool.records_out,
            pool.lane.write_end,
            pool.lane.room,
            pool.calls,
            pool.board.cast("B"),
            _spin_time(),
            number,
            None if initial is None else (0, *initial),
        )
        interpreter.prepare_main(_setup=setup)
        del setup, initial
        interpreter.exec(_BOOT)
        while (answer := interpreter.call(_inside.again)) is not None:
            if answer[0] == 0:
                pool.accidents[number] = decode(pool.serializer, answer[1], answer[4])[1]
                break
            _take(pool, number, *answer)
            del answer
    except BaseException as exc:
        pool.accidents[number] = exc
    finally:
        try:
            if interpreter is not None:
                interpreter.close()
        except BaseException as exc:
            pool.accidents.setdefault(number, exc)
        try:
            os.write(pool.records_out, _inside.RECORD.pack(0, 0, number, _inside.BYE, 0))
        except OSError:  # the manager is gone, or a task has closed the pipe
            pool.collapse()


def _take(pool: Pool, number: int, task: int, kind: int, took: int, size: int, message: Any, *views: Any) -> None:
    """End the call whose result a worker left its loop for."""
    pool.board[number] = 0
    call = pool.ended(task, took + size // _PER_MICROSECOND)
    try:
        if pool.waiting:
            with pool.lock:
                pool.feed()
    finally:
        _deliver(pool, call, kind, message, views)
        if pool.stopping:  # the collector may have found the executor while this thread held the lock
            pool.stop()


def _manage(pool: Pool) -> None:
    """Be the manager: read what the workers write, until all have said goodbye."""
    try:
        while not _turn(pool):
            pass
    except BaseException:
        LOGGER.critical("Exception in the thread that manages a pool:", exc_info=True)
        pool.collapse()
        pool.abandon()
    finally:
        exits.note_ended(pool)


def _turn(pool: Pool) -> bool:
    """Read what the workers have written, and do what it says; whether all is done."""
    if not (pool.stopping and not pool.quit_sent and not pool.waiting):
        data = os.read(pool.records_in, 1 << 16)
        if not data:
            raise EOFError("a task has closed the pool's pipes")
        pool.unread += data
    return _look(pool)


def _look(pool: Pool) -> bool:
    """Do what the records say; whether all is done."""
    data = pool.unread
    gone: list[int] = []
    at = 0
    size = _inside.RECORD.size
    while len(data) - at >= size:
        length, task, worker, kind, took = _inside.RECORD.unpack_from(data, at)
        end = at + size + length
        if end > len(data):
            break
        if kind < _inside.BYE:
            pool.outcomes.append((pool.ended(task, took), kind, data[at + size : end]))
        elif kind == _inside.BYE:
            gone.append(worker)
        at = end
    pool.unread = data[at:]
    try:
        if gone or pool.waiting:  # `submit` puts calls there before it looks how many are sent: none is overlooked
            with pool.lock:
                pool.live -= len(gone)
                pool.feed()
    finally:
        while pool.outcomes:
            _deliver(pool, *pool.outcomes.popleft())
    for worker in gone:
        _bury(pool, worker)
    if not pool.stopping:
        return False
    with pool.lock:
        return pool.finish_if_done()


def _deliver(pool: Pool, call: Call | None, kind: int, message: bytes | memoryview, views: Sequence[Any] = ()) -> None:
    """End a future; whatever its callbacks do, the manager goes on."""
    if call is None:
        return
    good, result = pool.outcome(kind, message, views)
    try:
        call.end(good, result)
    except BaseException:
        LOGGER.critical("Exception in a callback:", exc_info=True)
    call._pool = None


def _bury(pool: Pool, worker: int) -> None:
    """Let a worker's interpreter go; if it was not told to, the pool is broken."""
    exc = pool.accidents.pop(worker, None)
    if exc is not None:
        LOGGER.critical("Exception in initializer:", exc_info=exc)
        lost = pool.fail("An interpreter or its initializer failed, the pool is not usable anymore")
        running = pool.sent.pop(pool.board[worker], None)
        if running is not None:
            lost.append(running)
        _fail_all(pool, lost)
    pool.ids.pop(worker, None)


def _fail_all(pool: Pool, lost: Iterable[Call]) -> None:
    for future in lost:
        try:
            future.set_exception(BrokenInterpreterPool(pool.broken))
        except BaseException:
            LOGGER.critical("Exception in a callback:", exc_info=True)
        future._pool = None


def _spin_time() -> int:
    """Return how long a thread looks before it sleeps; on the only core it would keep what it looks for from coming."""
    several = (os.process_cpu_count() or 1) > 1  # type: ignore[attr-defined,unused-ignore]  # since 3.13
    return _SPIN if several else 0


def _has_room(fd: int) -> bool:
    """Return whether a write into a pipe would not wait."""
    if not hasattr(select, "poll"):  # Windows, where nothing tells
        return True
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))
