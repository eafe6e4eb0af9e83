"""Have each dump of a running program made once more, by stock, in a copy of the process, and compare what is written.

    the program                      a copy of it                          two copies of the copy
    dump(obj) begins --------------> becomes stock; dump(obj)              wait
    dump(obj), accelerated           what it wrote --> pipe
    dump(obj) ends <--- compare -----+
                        they differ ---------------------------------------> ours: does it differ in a copy, too?
                                  -----------------------------------------> stock: does it repeat itself?
                        --> a record in the log

The copy is made as `Pickler.dump` begins, so stock finds the very objects, memo and file that ours finds, and what it
does to them is gone with the copy.  `sys.monitoring` tells of begin and end: no function of the program is replaced and
no frame comes between, so the dump goes just the way that it goes otherwise.  Handlers of signals wait while the copy
is made, and while it is compared.

What a copy writes to files goes to files in memory, and to pipes, sockets and terminals nowhere.  Whatever else
somebody's code does outside of the process in a dump, such as removing a file, it does again there.

Not for: the command line and the report (`verify`), or times, which the copying spoils.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import io
import json
import marshal
import os
import pickle
import random
import re
import select
import signal
import socket
import stat
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import fastpickle
from fastpickle import patch
from fastpickle._stdlib import Framer, StockPickler, register_at_fork
from fastpickle.cli._disassembly import around_difference

__all__ = ["DIFFERENT", "IDENTICAL", "NOT_COMPARED", "PATIENCE", "Beside", "Record", "read_log"]

IDENTICAL: Final = "identical"
DIFFERENT: Final = "different"
NOT_COMPARED: Final = "not compared"

PATIENCE: Final = 60.0
"""Seconds that a copy may take: where another thread held a lock as it was made, it may wait for that for ever."""

_FRAMES_SHOWN: Final = 4
"""Lines of the program that a record of a difference names."""

_NOT_SHOWN: Final = frozenset({"fastpickle", "pickle", "runpy"})
"""Packages of which no lines are named."""

_COPIED: Final = 64 << 20
"""Bytes of a file that is open for reading and writing that a copy gets; of a larger one it sees zeros."""

_READY: Final = b"r"
_WANTED: Final = b"y"
_NOT_WANTED: Final = b"n"
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]+")
_FILES: Final = Path("/proc/self/fd")
_NOT_OF_THE_PROGRAM: Final = "fastpickle.graft"  # its warm() dumps samples
_monitoring: Final[Any] = getattr(sys, "monitoring", None)  # from 3.12 on; `verify` asks for it before
_DUMP: Final = fastpickle.Pickler.dump.__code__
_DUMPS: Final = fastpickle.dumps.__code__
_stock_dumps: Final[Any] = pickle._dumps  # type: ignore[attr-defined]  # the type stubs do not list it
_ALL_SIGNALS: Final = signal.valid_signals()
_set: Final = object.__setattr__  # the class of the pickler may have one of its own


class _CannotTell(Exception):
    """What is written by this dump cannot be compared; the message says why."""


@dataclasses.dataclass(frozen=True)
class Record:
    """What came of comparing one dump.

    Attributes:
        pickler: the class of the pickler.
        result: `IDENTICAL`, `DIFFERENT` or `NOT_COMPARED`.
        why: of the last, the reason.
        size: how many bytes were written.
        where: of a difference, the lines of the program that led to it, the innermost last.
        said: of a difference, what differs.
    """

    pickler: str
    result: str
    why: str = ""
    size: int = 0
    where: list[str] = dataclasses.field(default_factory=list)
    said: list[str] = dataclasses.field(default_factory=list)


def read_log(path: Path) -> list[Record]:
    """Read what was found out so far, by all processes.

    Args:
        path: the log.

    Returns:
        A record for each dump that has ended.
    """
    return [Record(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


@dataclasses.dataclass(frozen=True)
class _Made:
    """What came of a dump.

    Attributes:
        error: the exception, as Python would print it without its traceback; empty if there was none.
        is_of_files: it is one that comes of files, pipes and sockets.
        written: what was written.
        sizes: the sizes of the pieces in which a file of Python's got it; else empty.
        buffers: those that were given away out of band, and whether they were taken.
    """

    error: str
    is_of_files: bool
    written: bytes
    sizes: list[int]
    buffers: list[tuple[bytes, bool]]

    def differs_from(self, stock: _Made) -> list[str]:
        """Say what is not as stock made it; nothing if all is."""
        if self.error != stock.error:
            return [f"error, stock: {stock.error or 'none'}", f"       ours: {self.error or 'none'}"]
        if self.written != stock.written:
            return around_difference(stock.written, self.written)
        if self.sizes != stock.sizes:
            return [f"sizes of writes, stock: {stock.sizes[:20]}", f"                 ours: {self.sizes[:20]}"]
        if self.buffers != stock.buffers:
            counts = [[(len(buffer), kept) for buffer, kept in made.buffers[:20]] for made in (stock, self)]
            return [f"buffers out of band, stock: {counts[0]}", f"                      ours: {counts[1]}"]
        return []


class _Returned:
    """What `dumps()` returns."""

    def __init__(self) -> None:
        self.value: object = b""

    def begin(self) -> None:
        """Nothing has to be prepared."""

    def end(self) -> tuple[bytes, list[int]]:
        """Give it."""
        return (self.value if isinstance(self.value, bytes) else b""), []


class _Held:
    """A file in memory."""

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file
        self._start = io.BytesIO.tell(file)  # its class may have a function of its own for this

    def begin(self) -> None:
        """Nothing has to be prepared."""

    def end(self) -> tuple[bytes, list[int]]:
        """Give what was written since."""
        return io.BytesIO.getvalue(self._file)[self._start : io.BytesIO.tell(self._file)], []


class _Opened:
    """A regular file that is open for writing; a copy of the process has one of its own under the same number."""

    def __init__(self, file: io.BufferedWriter | io.FileIO) -> None:
        self._file = file
        file.flush()
        self._start = file.tell()

    def begin(self) -> None:
        """Nothing has to be prepared."""

    def end(self) -> tuple[bytes, list[int]]:
        """Give what was written since."""
        self._file.flush()
        with (_FILES / str(self._file.fileno())).open("rb") as file:
            file.seek(self._start)
            return file.read(self._file.tell() - self._start), []


class _Noted:
    """Any other file: its `write` is called as before, by a function that notes what it is given."""

    def __init__(self, pickler: Any) -> None:
        framer = pickler.framer
        if type(framer) is not Framer or framer.file_write != pickler._file_write:
            raise _CannotTell("it writes in a way of its own")
        self._pickler = pickler
        self._write = pickler._file_write
        self._pieces: list[bytes] = []
        self._noting = self._note

    def _note(self, data: Any) -> Any:
        self._pieces.append(bytes(data))
        return self._write(data)

    def begin(self) -> None:
        """Put the function that notes in the place of `write`."""
        _set(self._pickler, "_file_write", self._noting)
        self._pickler.framer.file_write = self._noting

    def go_nowhere(self) -> None:
        """Be content where there is no pipe or socket to write to."""
        write = self._write

        def write_if_possible(data: Any) -> Any:
            try:
                return write(data)
            except OSError:
                return len(data)

        self._write = write_if_possible

    def end(self) -> tuple[bytes, list[int]]:
        """Take it out, and give what was written since."""
        if self._pickler._file_write is self._noting:
            _set(self._pickler, "_file_write", self._write)
        if self._pickler.framer.file_write is self._noting:
            self._pickler.framer.file_write = self._write
        return b"".join(self._pieces), list(map(len, self._pieces))


_Output = _Returned | _Held | _Opened | _Noted


class _Buffers:
    """Notes what is given to a pickler's `buffer_callback`, which is called as before."""

    def __init__(self, pickler: Any) -> None:
        self._pickler = pickler
        self._callback: Any = getattr(pickler, "_buffer_callback", None)
        self._noting = self._note
        self.noted: list[tuple[bytes, bool]] = []

    def _note(self, buffer: Any) -> Any:
        kept = self._callback(buffer)
        self.noted.append((bytes(buffer.raw()) if isinstance(buffer, pickle.PickleBuffer) else b"", bool(kept)))
        return kept

    def begin(self) -> None:
        """Put the function that notes in the place of the callback, if there is one."""
        if self._callback is not None:
            _set(self._pickler, "_buffer_callback", self._noting)

    def end(self) -> list[tuple[bytes, bool]]:
        """Take it out, and give what was noted."""
        if self._callback is not None and self._pickler._buffer_callback is self._noting:
            _set(self._pickler, "_buffer_callback", self._callback)
        return self.noted


def _output_of(pickler: Any) -> _Output:
    """Find out how to tell what a pickler writes.

    Args:
        pickler: a pickler that is about to dump.

    Raises:
        _CannotTell: it cannot be told.
    """
    write = getattr(pickler, "_file_write", None)
    if write is None:
        raise _CannotTell("its __init__() was not called")
    file: Any = getattr(write, "__self__", None)
    try:
        if type(write) is type([].append):  # of C
            if isinstance(file, io.BytesIO):
                return _Held(file)
            if _is_regular(file):
                return _Opened(file)
    except (OSError, ValueError) as exc:
        raise _CannotTell(f"its file cannot be asked: {exc!r}") from exc
    return _Noted(pickler)


def _is_regular(file: Any) -> bool:
    """Tell whether a file is a regular one, and may be opened once more: whoever closes one lets go of its locks."""
    if type(file) in (io.BufferedWriter, io.BufferedRandom):
        if type(file.raw) is not io.FileIO:
            return False
    elif type(file) is not io.FileIO:
        return False
    about = os.fstat(file.fileno())
    if not stat.S_ISREG(about.st_mode) or fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & os.O_APPEND:
        return False  # others may append meanwhile
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except FileNotFoundError:
        return True
    return not re.search(rf"POSIX .*:{about.st_ino} ", locks)


class _Use:
    """One use of a pickler, or of `dumps()`, of which can be told what comes of it.

    Args:
        pickler: what is about to dump; None for `dumps()`.
        stock: dumps as stock does, if fastpickle is not installed; what it returns counts for `dumps()` only.
        ours: dumps as ours does.
    """

    def __init__(self, pickler: Any, stock: Callable[[], object], ours: Callable[[], object]) -> None:
        self.stock = stock
        self.ours = ours
        self.output: _Output = _Returned() if pickler is None else _output_of(pickler)
        self._buffers = _Buffers(pickler)

    def begin(self) -> None:
        """Take note from now on."""
        self.output.begin()
        self._buffers.begin()

    def end(self, exc: BaseException | None, value: object = None) -> _Made:
        """Tell what came of it.

        Args:
            exc: what was raised.
            value: what was returned.
        """
        if isinstance(self.output, _Returned):
            self.output.value = value
        error = "" if exc is None else "".join(traceback.format_exception_only(exc)).strip()
        is_of_files = isinstance(exc, (OSError, EOFError))
        buffers = self._buffers.end()
        return _Made(_ADDRESS.sub("0x", error), is_of_files, *self.output.end(), buffers)


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
    for fd in sorted(int(name) for name in os.listdir(_FILES)):
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
        own = os.open(_FILES / str(fd), os.O_RDONLY)
    else:
        own = os.memfd_create("copy")
        size = os.fstat(fd).st_size
        os.ftruncate(own, size)
        if how == os.O_RDWR and size <= _COPIED:
            os.pwrite(own, os.pread(fd, size, 0), 0)
    os.lseek(own, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
    return own


_OURS: Final = 1
"""Of the copies the one that does not become stock."""

_COPIES: Final = 3


def _stay_a_copy(
    use: _Use, frame: FrameType, results: list[int], asked: list[socket.socket], number: int = 0, is_ready: int = -1
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
        if number != _OURS:
            _become_stock()
        told = marshal.dumps(dataclasses.astuple(_dump_in_copy(use, frame, use.ours if number == _OURS else use.stock)))
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


def _dump_in_copy(use: _Use, frame: FrameType, dump: Callable[[], object]) -> _Made:
    if isinstance(use.output, _Noted):
        use.output.go_nowhere()
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


class _Deferred:
    """A block in which signals are only noted: their handlers are called at its end, and raise there.

    To block them is not enough: another thread may be told of one, and the main thread then runs its handler.

    Attributes:
        handlers: those of the program, by signal; none in other threads, which run none.
    """

    def __init__(self) -> None:
        self.handlers: dict[int, Any] = {}
        self._came: dict[int, Any] = {}

    def __enter__(self) -> _Deferred:
        if threading.current_thread() is threading.main_thread():  # no other one runs handlers
            found = {number: signal.getsignal(number) for number in _ALL_SIGNALS}
            self.handlers = {number: handler for number, handler in found.items() if callable(handler)}
            try:
                for number in self.handlers:
                    signal.signal(number, self._came.setdefault)  # of C, so that nothing can come between
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        interrupt = self._put_back()
        for number, frame in self._came.items():
            try:
                self.handlers[number](number, frame)
            except BaseException as exc:
                interrupt = exc
        if interrupt is not None:
            raise interrupt

    def _put_back(self) -> BaseException | None:
        """Put the handlers back; return what one of them raises meanwhile."""
        interrupt = None
        while True:
            try:
                for number, handler in self.handlers.items():
                    signal.signal(number, handler)
            except BaseException as exc:
                interrupt = exc
            else:
                return interrupt

    def end_in_copy(self) -> None:
        """End it in a process that has been forked inside of the block, to which no signal has come."""
        self._put_back()


class _Copies:
    """Copies of the process: in the first one stock dumps an object, in the others ours and stock, if that differs.

    Args:
        use: what they are to do.
        frame: that of `Pickler.dump` or `dumps`.
        signals: the block in which they are started.
        patience: for how many seconds to wait for something.
        be_quiet: called in each of them first.
    """

    def __init__(
        self, use: _Use, frame: FrameType, signals: _Deferred, patience: float, be_quiet: Callable[[], None]
    ) -> None:
        self._patience = patience
        self._use, self._frame, self._signals, self._be_quiet = use, frame, signals, be_quiet
        self._pid = 0
        self._fds: list[int] = []
        self._asks: list[socket.socket] = []  # no pipes, which end a program that writes when nobody reads

    def start(self) -> None:
        """Make them; if this is not possible, `end` must be called nevertheless.

        Raises:
            _CannotTell, OSError, or whatever forbids a fork.
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
                    self._signals.end_in_copy()
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

    def result(self, number: int) -> _Made:
        """Let a copy begin, if it is not the first one, which has begun, and wait for what it makes of the object.

        Raises:
            _CannotTell: it did not come to an end.
        """
        if number:
            self._asks[number - 1].send(_WANTED, socket.MSG_NOSIGNAL)
        end = time.monotonic() + self._patience
        size = int.from_bytes(self._read(self._fds[number], 8, end), "big")
        error, is_of_files, written, sizes, buffers = marshal.loads(self._read(self._fds[number], size, end))
        return _Made(error, is_of_files, written, sizes, buffers)

    def _read(self, fd: int, size: int, end: float) -> bytes:
        """Read from a pipe.

        Args:
            fd: the pipe.
            size: how many bytes.
            end: the time, by the monotonic clock, at which there is no use in waiting any more.

        Raises:
            _CannotTell: it is that time, or there will be no more.
        """
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        pieces: list[bytes] = []
        while size:
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                raise _CannotTell(f"stock was not through after {self._patience:g} s")
            piece = os.read(fd, min(size, 1 << 20))
            if not piece:
                raise _CannotTell("the copy of the process died")
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


@dataclasses.dataclass
class _Dump:
    """A dump that has begun.

    Attributes:
        pickler: the class of the pickler.
        use: what tells what comes of it.
        copies: those that do the same.
        why: for what reason there are none; else empty.
    """

    pickler: str = ""
    use: _Use | None = None
    copies: _Copies | None = None
    why: str = ""


class Beside:
    """Compares each dump of this process, and of those that it forks, with stock's.

    Args:
        log: the file to which a line is added for each dump.
        every: compare one dump in so many, at random, and the first one.
        patience: seconds that stock may take for a dump, from the end of ours.
    """

    def __init__(self, log: Path, every: int = 1, patience: float = PATIENCE) -> None:
        self._log = log.absolute()  # not kept open: the program may close all files that it does not know
        self._every = every
        self._patience = patience
        self._random = random.Random()
        self._is_first = True
        self._dumps: dict[FrameType, _Dump] = {}
        self.lost = 0  # records that could not be written
        self.is_different = False
        self._tool = -1
        # So that there is an event of what is raised while there is a dump.
        self._lock = threading.RLock()
        release = self._lock.release
        register_at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=self._forget)

    def start(self) -> None:
        """Compare from now on.

        Raises:
            RuntimeError: all of `sys.monitoring`'s tools are in use.
        """
        events = _monitoring.events
        free = [tool for tool in range(6) if _monitoring.get_tool(tool) is None]
        if not free:
            raise RuntimeError("all tools of sys.monitoring are in use")
        self._tool = tool = free[-1]
        _monitoring.use_tool_id(tool, "fastpickle")
        _monitoring.register_callback(tool, events.PY_START, self._began)
        _monitoring.register_callback(tool, events.PY_RETURN, self._returned)
        _monitoring.register_callback(tool, events.PY_UNWIND, self._raised)
        for code in _DUMP, _DUMPS:
            _monitoring.set_local_events(tool, code, events.PY_START | events.PY_RETURN)

    def stop(self) -> None:
        """Compare no more."""
        _monitoring.set_events(self._tool, 0)
        for code in _DUMP, _DUMPS:
            _monitoring.set_local_events(self._tool, code, 0)
        _monitoring.free_tool_id(self._tool)

    def _forget(self) -> None:
        """Let go of the dumps that are going on: in a process that was forked meanwhile they are not this one's."""
        for dump in self._dumps.values():
            if dump.copies:
                dump.copies.let_go()
        self._dumps.clear()
        if self._tool >= 0:
            _monitoring.set_events(self._tool, 0)
        self._lock.release()

    def _began(self, code: CodeType, offset: int) -> None:
        frame = sys._getframe(1)
        caller = frame.f_back
        if caller and (caller.f_code is _DUMPS or caller.f_globals.get("__name__") == _NOT_OF_THE_PROGRAM):
            return
        if self._every > 1 and not self._is_first and self._random.random() * self._every >= 1:
            return
        self._is_first = False
        with _Deferred() as signals:
            dump = _Dump()
            try:
                self._begin(dump, frame, code, signals)
            except Exception as exc:  # an audit hook may forbid the fork by any; nothing of this is the program's
                dump.why = _reason(exc)
                if dump.copies:
                    dump.copies.end(is_stuck=True)
                    dump.copies = None
            with self._lock:
                self._dumps[frame] = dump
                _monitoring.set_events(self._tool, _monitoring.events.PY_UNWIND)  # there is none of one function only

    def _begin(self, dump: _Dump, frame: FrameType, code: CodeType, signals: _Deferred) -> None:
        given = frame.f_locals
        obj = given["obj"]
        if code is _DUMPS:
            dump.pickler = "fastpickle.dumps"
            arguments = {name: given[name] for name in ("protocol", "fix_imports", "buffer_callback")}
            if arguments["buffer_callback"] is not None:
                raise _CannotTell("dumps() with a buffer_callback: only picklers are compared then")
            use = _Use(None, lambda: _stock_dumps(obj, **arguments), lambda: fastpickle.dumps(obj, **arguments))
        else:
            pickler = given["self"]
            dump.pickler = f"{type(pickler).__module__}.{type(pickler).__qualname__}"
            if "_fastpickle_plan" in vars(pickler):
                raise _CannotTell("the pickler is dumping already")
            ours = fastpickle.Pickler.dump
            use = _Use(pickler, lambda: StockPickler.dump(pickler, obj), lambda: ours(pickler, obj))
        dump.copies = _Copies(use, frame, signals, self._patience, self.stop)
        dump.copies.start()
        dump.use = use
        use.begin()

    def _returned(self, code: CodeType, offset: int, value: object) -> None:
        self._ended(sys._getframe(1), None, value)

    def _raised(self, code: CodeType, offset: int, exc: BaseException) -> None:
        if code is _DUMP or code is _DUMPS:
            self._ended(sys._getframe(1), exc, None)

    def _ended(self, frame: FrameType, exc: BaseException | None, value: object) -> None:
        if frame not in self._dumps:
            return
        with _Deferred() as signals:
            with self._lock:
                dump = self._dumps.pop(frame)
                if not self._dumps:
                    _monitoring.set_events(self._tool, 0)
            record = Record(dump.pickler, NOT_COMPARED, dump.why)
            is_interrupted = exc is not None and _is_of_a_signal(exc, signals.handlers)
            if dump.copies and dump.use:
                is_stuck = True
                try:
                    record = _compare(dump, dump.use.end(exc, value), frame, is_interrupted)
                    is_stuck = False
                except Exception as why:
                    record = Record(dump.pickler, NOT_COMPARED, _reason(why))
                finally:
                    dump.copies.end(is_stuck)
            self.is_different |= bool(record.said)
            try:
                self._write(record)
            except OSError:
                self.lost += 1

    def _write(self, record: Record) -> None:
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(log, json.dumps(dataclasses.asdict(record)).encode() + b"\n")
        finally:
            os.close(log)


def _reason(exc: BaseException) -> str:
    return str(exc) if isinstance(exc, _CannotTell) else repr(exc)


def _compare(dump: _Dump, ours: _Made, frame: FrameType, is_interrupted: bool) -> Record:
    """Compare what ours made with what the copies make.

    Args:
        dump: the dump that has ended.
        ours: what came of it.
        frame: that of `Pickler.dump` or `dumps`.
        is_interrupted: a signal's handler ended it.

    Raises:
        _CannotTell: that is so; or stock does not do the same twice, or does not end.
    """
    assert dump.copies is not None
    if is_interrupted:
        raise _CannotTell("a signal's handler ended it")
    stock = dump.copies.result(0)
    said = ours.differs_from(stock)
    identical = Record(dump.pickler, IDENTICAL, size=len(ours.written))
    if not said:
        return identical
    if stock.is_of_files and not ours.error:
        raise _CannotTell("in a copy of the process, which has no pipes and sockets, stock failed")
    if stock.error.startswith("RecursionError"):
        raise _CannotTell("stock reached the recursion limit")
    if dump.copies.result(_OURS) == stock:  # it is the copy that differs: it has no other threads, no other files
        return identical
    if dump.copies.result(_OURS + 1) != stock:
        raise _CannotTell("stock itself does not write the same twice")
    return Record(dump.pickler, DIFFERENT, "", len(ours.written), list(_lines_of(frame.f_back))[::-1], said)


def _is_of_a_signal(exc: BaseException, handlers: dict[int, Any]) -> bool:
    """Tell whether an exception comes from a signal's handler."""
    codes = [*map(_code_of, handlers.values())]
    return isinstance(exc, KeyboardInterrupt) or any(
        frame.f_code in codes for frame, _ in traceback.walk_tb(exc.__traceback__)
    )


def _code_of(handler: Any) -> CodeType | None:
    """Find the code that a signal's handler runs; None if it is not written in Python."""
    while isinstance(handler, partial):
        handler = handler.func
    code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _lines_of(frame: FrameType | None) -> Iterator[str]:
    """Name the lines of the program that are being run, the innermost first, without those that pickle."""
    shown = 0
    while frame is not None and shown < _FRAMES_SHOWN:
        module = str(frame.f_globals.get("__name__"))
        if module == "fastpickle.cli.verify":
            return  # here the program began
        if module.partition(".")[0] not in _NOT_SHOWN:
            yield f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
            shown += 1
        frame = frame.f_back
