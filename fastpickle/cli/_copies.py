"""Copies of a process that is about to dump, in which the same is dumped: by stock, by ours, by stock once more.

    Copies.start()    fork --> a copy, which begins at once --fork--> the next, which waits --fork--> the last, too
                      each puts files of its own in the place of the program's, and is ready
    Copies.result(n)  "y" --> copy n --> dumps --> what came of it, by a pipe
    Copies.end()      "n" --> those that still wait

What a copy writes to files goes to files in memory, and to pipes, sockets and terminals nowhere.

Not for: what is dumped, and what comes of it (`_uses`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import marshal
import os
import random
import select
import signal
import socket
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Final

import fastpickle
from fastpickle import patch
from fastpickle._stdlib import StockPickler, register_at_fork
from fastpickle.cli._signals import Deferred
from fastpickle.cli._uses import FILES, CannotTell, Made, Use

__all__ = ["OURS", "Copies"]

OURS: Final = 1
"""Of the copies the one that does not become stock."""

_COPIES: Final = 3

_COPIED: Final = 64 << 20
"""Bytes of a file that is open for reading and writing that a copy gets; of a larger one it sees zeros."""

_READY: Final = b"r"
_WANTED: Final = b"y"
_NOT_WANTED: Final = b"n"


# What only a copy of the process does.


def _become_stock() -> None:
    """Take fastpickle out of the stock class, and out of its own."""
    patch.leave_for_good()
    for name in patch.ATTRIBUTES:
        if name in vars(StockPickler):
            setattr(fastpickle.Pickler, name, vars(StockPickler)[name])
        else:
            delattr(fastpickle.Pickler, name)


def _let_go_of_files(*kept: int) -> None:
    """Put files of one's own in the place of all that are open, and of pipes, sockets and terminals none.

    Args:
        kept: those that are still needed.

    Raises:
        OSError: it cannot be done; then nothing may be done with the files.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in sorted(int(name) for name in os.listdir(FILES)):
        if fd == nowhere or fd in kept:
            continue
        try:
            mode = os.fstat(fd).st_mode
        except OSError:  # that of the folder itself is closed now
            continue
        if stat.S_ISREG(mode):
            own = _own_file(fd)
            os.dup2(own, fd)
            os.close(own)
        elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd):
            os.dup2(nowhere, fd)


def _own_file(fd: int) -> int:
    """Open a file like one that is open, at the same position, to which nobody else can see what is written."""
    how = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
    if how == os.O_RDONLY:
        own = os.open(FILES / str(fd), os.O_RDONLY)
    else:
        own = os.memfd_create("copy")
        size = os.fstat(fd).st_size
        os.ftruncate(own, size)
        if how == os.O_RDWR and size <= _COPIED:
            os.pwrite(own, os.pread(fd, size, 0), 0)
    os.lseek(own, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
    return own


def _stay_a_copy(
    use: Use, frame: FrameType, results: list[int], asked: list[socket.socket], number: int = 0, is_ready: int = -1
) -> None:
    """Be one of the copies: make the next one; dump the object, but for the first one if asked to; and tell.

    The first byte that is told says that none of them sees any more what the program does to its files.

    Args:
        use: what is to be done.
        frame: that of `Pickler.dump` or `dumps`.
        results: the pipes for what comes of it.
        asked: from which the copies behind the first one read whether they are wanted.
        number: which one this is.
        is_ready: the pipe to the one before, -1 for the first one.
    """
    state = random.getstate()
    _let_go_of_files(is_ready, *results, *(one.fileno() for one in asked))
    following = 0
    if number + 1 < _COPIES:
        following_is_ready, to_tell = os.pipe()
        following = _os_fork()
        if not following:
            random.setstate(state)  # which a fork seeds anew
            os.close(results.pop(0))
            _stay_a_copy(use, frame, results, asked, number + 1, to_tell)
            return
        os.close(to_tell)
        for fd in results[1:]:
            os.close(fd)
        os.read(following_is_ready, 1)
    os.write(results[0] if not number else is_ready, _READY)
    if not number or asked[number - 1].recv(1) == _WANTED:
        moved = _ballast(999 * number)
        if number != OURS:
            _become_stock()
        told = marshal.dumps(dataclasses.astuple(_dump_in_copy(use, frame, use.ours if number == OURS else use.stock)))
        del moved
        with open(results[0], "wb") as pipe:
            pipe.write(len(told).to_bytes(8, "big") + told)
    if following:
        os.waitpid(following, 0)


def _ballast(n: int) -> list[object]:
    """Make objects of all small sizes, so that those that are made behind them have other addresses."""
    makers: tuple[Callable[[], object], ...] = (
        object,
        float,
        list,
        dict,
        *(partial(bytes, size) for size in range(1, 400, 16)),
    )
    return [make() for make in makers for _ in range(n)]


def _dump_in_copy(use: Use, frame: FrameType, dump: Callable[[], object]) -> Made:
    use.output.be_in_copy()
    value, exc = None, None
    use.begin()
    try:
        sys.setrecursionlimit(sys.getrecursionlimit() + _frames_since(frame))
        value = dump()
    except BaseException as raised:
        exc = raised
    return use.end(exc, value)


def _frames_since(frame: FrameType) -> int:
    """Count the frames from one on to here."""
    here: FrameType | None = sys._getframe(1)
    count = 1
    while here is not None and here is not frame:
        here = here.f_back
        count += 1
    return count


# What the program's own process does.


_os_fork: Final = os.fork  # a program's tests may put something else there
#: While a warning is left out, no other thread forks: the child would leave it out for ever, and find locks of
#: `warnings` that nobody has.
_filtering = threading.RLock()
register_at_fork(before=_filtering.acquire, after_in_parent=_filtering.release, after_in_child=_filtering.release)


def _fork() -> int:
    """Fork, without the warning that there are other threads."""
    if len(os.listdir("/proc/self/task")) == 1:
        return _os_fork()
    with _filtering, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _os_fork()


class Copies:
    """Copies of the process: in the first one stock dumps an object, in the others ours and stock, if that differs.

    Args:
        use: what they are to do.
        frame: that of `Pickler.dump` or `dumps`.
        signals: the block in which they are started.
        patience: for how many seconds to wait for something.
        be_quiet: called in each of them first.
    """

    def __init__(
        self, use: Use, frame: FrameType, signals: Deferred, patience: float, be_quiet: Callable[[], None]
    ) -> None:
        self._patience = patience
        self._use, self._frame, self._signals, self._be_quiet = use, frame, signals, be_quiet
        self._pid = 0
        self._fds: list[int] = []
        self._asks: list[socket.socket] = []  # no pipes, which end a program that writes when nobody reads

    def start(self) -> None:
        """Make them; if this is not possible, `end` must be called nevertheless.

        Raises:
            CannotTell, OSError, or whatever forbids a fork.
        """
        results: list[int] = []
        asked: list[socket.socket] = []
        state = random.getstate()
        try:
            for _ in range(_COPIES):
                mine, its = os.pipe()
                self._fds.append(mine)
                results.append(its)
            for _ in range(_COPIES - 1):
                ask, its_end = socket.socketpair()
                self._asks.append(ask)
                asked.append(its_end)
            self._pid = _fork()
            if not self._pid:
                try:
                    random.setstate(state)  # which a fork seeds anew
                    self._signals.put_back()
                    os.setpgid(0, 0)  # so that all can be ended at once, and that Ctrl-C is for the program
                    self._be_quiet()
                    for ask in self._asks:
                        ask.close()
                    _stay_a_copy(self._use, self._frame, results, asked)
                finally:
                    os._exit(0)  # nothing else of this process is to end twice
        finally:
            for fd in results:
                os.close(fd)
            for its_end in asked:
                its_end.close()
        self._read(self._fds[0], 1, time.monotonic() + self._patience)

    def result(self, number: int) -> Made:
        """Let a copy begin, if it is not the first one, which has begun, and wait for what it makes of the object.

        Raises:
            CannotTell: it did not come to an end.
        """
        if number:
            self._asks[number - 1].send(_WANTED, socket.MSG_NOSIGNAL)
        end = time.monotonic() + self._patience
        size = int.from_bytes(self._read(self._fds[number], 8, end), "big")
        error, is_of_files, written, sizes, buffers = marshal.loads(self._read(self._fds[number], size, end))
        return Made(error, is_of_files, written, sizes, buffers)

    def _read(self, fd: int, size: int, end: float) -> bytes:
        """Read from a pipe.

        Args:
            fd: the pipe.
            size: how many bytes.
            end: the time, by the monotonic clock, at which there is no use in waiting any more.

        Raises:
            CannotTell: it is that time, or there will be no more.
        """
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        pieces: list[bytes] = []
        while size:
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                raise CannotTell(f"stock was not through after {self._patience:g} s")
            piece = os.read(fd, min(size, 1 << 20))
            if not piece:
                raise CannotTell("the copy of the process died")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def end(self, is_stuck: bool) -> None:
        """End them.

        Args:
            is_stuck: they may never end by themselves.
        """
        if is_stuck and self._pid:
            for kill in os.kill, os.killpg:
                with contextlib.suppress(OSError):  # they have ended
                    kill(self._pid, signal.SIGKILL)
        for ask in self._asks:
            with contextlib.suppress(OSError):
                ask.send(_NOT_WANTED, socket.MSG_NOSIGNAL)
        self.let_go()
        if self._pid:
            with contextlib.suppress(ChildProcessError):  # the program waits for whatever ends
                os.waitpid(self._pid, 0)

    def let_go(self) -> None:
        """Close what leads to them."""
        for ask in self._asks:
            ask.close()
        while self._fds:
            with contextlib.suppress(OSError):  # the program may close what it does not know
                os.close(self._fds.pop())
