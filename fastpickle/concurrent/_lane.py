"""The pipe of the thread that waits: it reads the result of its call itself, and no manager is woken for it.

    Call.result() ─► Lane.wait: the call's number on the board, read ◄── worker, if it finds that number there
                                                                ▲
                     whoever else ends the call ─► Lane.tell ───┘

To wake a thread on another core takes longer than all else about a short call (perf-diary, Executors). So a thread that
asks for the result of the only call there is leads: it reads what comes of that call, one message in each case.

Not for: `wait()`, `as_completed()`, callbacks, timeouts, and more calls than one: these are the manager's.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from concurrent.futures._base import FINISHED, LOGGER
from typing import TYPE_CHECKING, Any

from ..interrupts import is_interrupt, suppressed
from . import _inside
from ._calls import interpreters

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # has no attributes

if TYPE_CHECKING:
    from ._pool import Pool

__all__ = ["Call", "Lane"]

_SIZE = _inside.RECORD.size
_EMPTY = bytes(_SIZE)
_PAGE = 4096
"""Bytes of a pipe that are left free, for a message of another thread."""


class Call(Future[Any]):
    """The future of a call: until it has ended, it knows its pool."""

    _pool: Pool | None = None
    _number = 0
    _state: str  # the base class's
    _condition: Any  # the base class's
    _done_callbacks: list[Callable[[Future[Any]], object]]  # the base class's
    _start: Callable[[Callable[[], object]], None] | None = None

    def result(self, timeout: float | None = None) -> Any:
        """Return what the call returned, as `Future.result` does."""
        self._wait(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the call raised, as `Future.exception` does."""
        self._wait(timeout)
        return super().exception(timeout)

    def end(self, good: bool, outcome: Any) -> None:
        """End the call.

        Args:
            good: whether it has a result.
            outcome: the result; else its exception.
        """
        if good:
            self.set_result(outcome)
        else:
            self.set_exception(outcome)

    def _wait(self, timeout: float | None) -> None:
        """Wait where that is sooner than by the base class, if it may be: with a timeout it may not."""
        if timeout is None and (pool := self._pool) is not None:
            if pool.is_manager():
                pool.help(self)
            else:
                pool.lane.wait(pool, self)

    def _invoke_callbacks(self) -> None:
        """Call them when the thread that waits is woken, and in another one: it may hold a lock that they want."""
        if (pool := self._pool) is not None:
            if self._start is None:
                pool.lane.tell(pool, self)
            if pool.helping and not pool.is_manager():  # it may wait for this call
                pool.wake()
        call_back = super()._invoke_callbacks  # type: ignore[misc]  # private: there is no other place between
        if self._start is None or not self._done_callbacks:
            call_back()
        else:
            self._start(call_back)


class Lane:
    """One pipe, of which at most one thread reads at a time."""

    def __init__(self) -> None:
        self.reading = threading.Lock()
        self.led: Call | None = None
        """The call that is waited for; as long as there is one, the pipes stay open."""
        self.claims: dict[int, object] = {}
        """Under that call's number who came first: the lane, which gives it up, or whoever writes a message."""
        self.reader = 0
        """The thread that waits."""
        self.buffer = bytearray()
        self.room = 0
        """Bytes of a result that it has room for."""
        self.read_end = self.write_end = -1

    def open(self, read_end: int, write_end: int) -> None:
        """Use a pipe.

        Args:
            read_end: where it is read.
            write_end: where it is written.
        """
        self.read_end, self.write_end = read_end, write_end
        self.room = _inside.INLINE
        if hasattr(fcntl, "F_GETPIPE_SZ"):  # Linux: what an empty pipe has room for is there at once, not in parts
            self.room = max(self.room, fcntl.fcntl(read_end, fcntl.F_GETPIPE_SZ) - _PAGE)
        self.buffer = bytearray(_SIZE + self.room)

    def wait(self, pool: Pool, call: Call) -> None:
        """Wait for a call, if there is no other one and nobody else reads; else return at once.

        Args:
            pool: the pool.
            call: a call that was sent. If it has not ended afterwards, its result comes to another thread.
        """
        if self.led is call and self.reader == threading.get_ident():
            self._read_in_handler(pool, call)
            return
        if len(pool.sent) != 1 or pool.waiting or not self.reading.acquire(blocking=False):
            return
        # No `with`: Ctrl+C between its lock and its block would leave the pool locked.
        try:
            self.buffer[:_SIZE] = _EMPTY
            self.claims = {}
            self.reader = threading.get_ident()
            self.led = call
            is_wanted = call._number in pool.sent and not call._done_callbacks and not pool.closed
            if is_wanted or not self._withdraw(pool, call):
                self._read(pool, call)
        except BaseException as exc:  # Ctrl+C: the message is in the buffer, in the pipe, or will be
            if self.led is not call:
                self.reading.release()
                raise
            self.reader = 0  # from here on it is another one: this one may ask again, and is no handler then
            is_read = not self.buffer.startswith(_EMPTY)
            while call._condition._is_owned():  # Ctrl+C came between its lock and its block
                call._condition.release()
            self._start(pool, self._go_on, pool, call)
            if not (is_read and isinstance(exc, Exception) and _is_of_reading(exc, super(Call, call).exception())):
                raise
            return  # it was no signal: nobody can read this result
        self._leave(pool)

    def tell(self, pool: Pool, call: Future[Any]) -> None:
        """Say that a call has ended, if somebody waits for it here.

        Args:
            pool: the pool.
            call: a call that has not ended by what its worker wrote into the lane.
        """
        if self.led is call and self.claims.setdefault(call._number, claim := object()) is claim:
            with suppressed(OSError):  # a task has closed it: who reads sees that too
                os.write(self.write_end, _inside.WAKE_UP)
            pool.board[_inside.LED] = 0

    def _read(self, pool: Pool, call: Call) -> None:
        """Read the one message, and end the call."""
        pool.board[_inside.LED] = call._number
        is_over = call._state == FINISHED or self.claims.get(call._number) is self  # Ctrl+C came while it withdrew
        if not is_over or not self._withdraw(pool, call):
            if self.buffer.startswith(_EMPTY):  # else it was read before Ctrl+C
                pool.spin.wait(call._number)
                if not self._fill(self.buffer):
                    self._break(pool)
                    return
            self._use(pool, call, self.buffer)
            self._end(pool)

    def _read_in_handler(self, pool: Pool, call: Call) -> None:
        """Be the handler of a signal that came to the thread that waits: what is below it cannot go on meanwhile."""
        if not self.buffer.startswith(_EMPTY):
            self._use(pool, call, self.buffer)
            return
        buffer = bytearray(len(self.buffer))
        if not self._fill(buffer):
            pool.collapse()  # the one below finds that out, too
            return
        try:
            self._use(pool, call, buffer)
        except BaseException as exc:  # another signal, or nobody can read this result
            self._start(pool, self._use, pool, call, buffer)
            if not isinstance(exc, Exception):
                raise
        finally:
            os.write(self.write_end, _inside.WAKE_UP)  # for the one below

    def _fill(self, buffer: bytearray) -> bool:
        """Read the message; False if a task has closed the pipe."""
        try:
            return os.readinto(self.read_end, buffer) > 0  # type: ignore[attr-defined,no-any-return,unused-ignore]  # 3.14
        except OSError as exc:
            if is_interrupt(exc):  # TimeoutError is one
                raise
            return False

    def _use(self, pool: Pool, call: Call, message: bytearray) -> None:
        length, _, _, kind, took = _inside.RECORD.unpack_from(message)
        if kind != _inside.WAKE:
            good, result = pool.outcome(kind, bytes(message[_SIZE : _SIZE + length]))
            pool.ended(call._number, took)
            if pool.waiting:  # the manager sends them: Ctrl+C must not leave a call half sent
                pool.wake()
            self._deliver(pool, call, good, result)

    def _deliver(self, pool: Pool, call: Call, good: bool, result: Any) -> None:
        call._start = functools.partial(self._start, pool)
        with contextlib.suppress(InvalidStateError):  # it has failed with the pool
            call.end(good, result)
        call._start = call._pool = None

    def _withdraw(self, pool: Pool, call: Call) -> bool:
        """Read no message, as the call had ended before its worker could know; False if there is one all the same."""
        if self.claims.setdefault(call._number, self) is not self:
            return False
        self._end(pool)
        return True

    def _end(self, pool: Pool) -> None:
        self.led = None
        if pool.closed:
            with pool.lock:
                pool.close_if_unused()

    def _break(self, pool: Pool) -> None:
        self._end(pool)
        pool.collapse()
        pool.stop()

    def _go_on(self, pool: Pool, call: Call) -> None:
        """Be a thread that reads on."""
        try:
            self._read(pool, call)
        except BaseException:
            LOGGER.critical("Exception in a thread that reads for a pool:", exc_info=True)
            self._break(pool)
        finally:
            self._leave(pool)

    def _leave(self, pool: Pool) -> None:
        self.reading.release()
        if pool.stopping:  # the collector may have found the executor while this thread held the pool's lock
            pool.stop()

    def _start(self, pool: Pool, function: Callable[..., object], *args: object) -> None:
        """Call a function in a thread that the pool waits for."""

        def run() -> None:
            pool.threads.add(threading.current_thread())  # not before: nobody can join it
            try:
                function(*args)
            finally:
                pool.threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name=f"{pool.prefix}_reader")
        try:
            thread.start()
        except RuntimeError as exc:  # too many threads
            if is_interrupt(exc):
                raise
            function(*args)


def _is_of_reading(exc: Exception, outcome: BaseException | None) -> bool:
    """Return whether what was raised where a result was read is what it failed with, as another thread read it."""
    if isinstance(outcome, interpreters.ExecutionFailed):  # an exception that could not be read
        return True
    return outcome is not None and type(outcome.__cause__) is type(exc)
