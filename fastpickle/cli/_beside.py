"""Have each dump of a running program made once more, by stock, in a copy of the process, and compare what is written.

    the program                      a copy of it                          a copy of the copy
    dump(obj) begins --------------> becomes stock; dump(obj)              waits
    dump(obj), accelerated           what it wrote --> pipe
    dump(obj) ends <--- compare -----+
                        they differ ---------------------------------------> dump(obj): does stock repeat itself?
                        --> a record in the log

The copy is made as `Pickler.dump` begins, so stock finds the very objects, memo and file that ours finds, and what it
does to them is gone with the copy.  `sys.monitoring` tells of begin and end: no function of the program is replaced and
no frame comes between, so the dump goes just the way that it goes otherwise.

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
import random
import re
import select
import signal
import stat
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import fastpickle
from fastpickle import patch
from fastpickle._stdlib import Framer, StockPickler
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
_NOT_OF_THE_PROGRAM: Final = frozenset({"fastpickle.graft"})  # its warm() dumps samples
_monitoring: Final[Any] = getattr(sys, "monitoring", None)  # from 3.12 on; `verify` asks for it before
_DUMP: Final = fastpickle.Pickler.dump.__code__


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
        written: what was written.
        sizes: the sizes of the pieces in which a file of Python's got it; else empty.
    """

    error: str
    written: bytes
    sizes: list[int]

    def differs_from(self, stock: _Made) -> list[str]:
        """Say what is not as stock made it; nothing if all is."""
        said = []
        if self.error != stock.error:
            said += [f"error, stock: {stock.error or 'none'}", f"       ours: {self.error or 'none'}"]
        if self.written != stock.written:
            said += around_difference(stock.written, self.written)
        elif self.sizes != stock.sizes:
            said += [f"sizes of writes, stock: {stock.sizes[:20]}", f"                 ours: {self.sizes[:20]}"]
        return said


class _Held:
    """A file in memory."""

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file
        self._start = file.tell()

    def begin(self) -> None:
        """Nothing has to be prepared."""

    def end(self) -> tuple[bytes, list[int]]:
        """Give what was written since."""
        return self._file.getvalue()[self._start : self._file.tell()], []


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

    def _note(self, data: Any) -> Any:
        self._pieces.append(bytes(data))
        return self._write(data)

    def begin(self) -> None:
        """Put the function that notes in the place of `write`."""
        self._noting = self._note
        self._pickler._file_write = self._pickler.framer.file_write = self._noting

    def end(self) -> tuple[bytes, list[int]]:
        """Take it out, and give what was written since."""
        for owner, name in (self._pickler, "_file_write"), (self._pickler.framer, "file_write"):
            if getattr(owner, name) is self._noting:
                setattr(owner, name, self._write)
        return b"".join(self._pieces), list(map(len, self._pieces))


_Output = _Held | _Opened | _Noted


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
    is_of_c = type(write) is type([].append)
    try:
        if is_of_c and isinstance(file, io.BytesIO):
            return _Held(file)
        is_raw = isinstance(file, io.FileIO) or (isinstance(file, io.BufferedWriter) and type(file.raw) is io.FileIO)
        if is_of_c and is_raw and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return _Opened(file)
    except (OSError, ValueError) as exc:
        raise _CannotTell(f"its file cannot be asked: {exc!r}") from exc
    return _Noted(pickler)


def _make(dump: Callable[[Any, Any], None], pickler: Any, obj: Any, output: _Output) -> _Made:
    """Dump an object, and keep the error, if there is one."""
    output.begin()
    exc: BaseException | None = None
    try:
        dump(pickler, obj)
    except BaseException as raised:
        exc = raised
    return _made(exc, output)


def _made(exc: BaseException | None, output: _Output) -> _Made:
    error = "" if exc is None else "".join(traceback.format_exception_only(exc)).strip()
    return _Made(_ADDRESS.sub("0x", error), *output.end())


# What only a copy of the process does.


def _become_stock(pickler: Any) -> None:
    """Take fastpickle out of the stock class, and out of its own."""
    with contextlib.suppress(AttributeError):
        _ = pickler.memo  # which may be with C
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
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in sorted(int(name) for name in os.listdir(_FILES)):
        with contextlib.suppress(OSError):  # that of the folder itself is closed now
            mode = os.fstat(fd).st_mode
            if fd == nowhere or fd in kept:
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


def _stay_a_copy(pickler: Any, obj: Any, output: _Output, result: int, second_result: int, asked: int) -> None:
    """Be the copy of the process: dump the object by stock, and tell; and leave a second copy that does so if asked to.

    The first byte that is told says that neither sees any more what the program does to its files.

    Args:
        pickler: what is dumping.
        obj: the object.
        output: where its bytes go.
        result: the pipe for what came of it.
        second_result: that of the second copy.
        asked: the pipe from which the second copy reads whether it is wanted.
    """
    os.setpgid(0, 0)  # so that both can be ended at once, and that Ctrl-C is for the program
    _let_go_of_files(result, second_result, asked)
    second_is_ready, is_ready = os.pipe()
    state = random.getstate()
    second = os.fork()
    if second:
        os.close(second_result)
        os.read(second_is_ready, 1)
        os.write(result, _READY)
    else:
        random.setstate(state)
        os.close(result)  # whoever reads from it waits until nobody can write to it
        result = second_result
        _let_go_of_files(result, asked, is_ready)
        os.write(is_ready, _READY)
        if os.read(asked, 1) != _WANTED:
            return
    _become_stock(pickler)
    made = _make(StockPickler.dump, pickler, obj, output)
    with open(result, "wb") as pipe:
        pipe.write(marshal.dumps(dataclasses.astuple(made)))
    if second:
        os.waitpid(second, 0)


# What the program's own process does.


class _Copies:
    """A copy of the process that dumps an object by stock, and another one, for the case that the results differ."""

    def __init__(self, pickler: Any, obj: Any, output: _Output, patience: float) -> None:
        self._patience = patience
        (first, to_first), (second, to_second), (asked, self._ask) = pipes = [os.pipe() for _ in range(3)]
        state = random.getstate()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python warns of a fork beside threads
                pid = os.fork()
        except BaseException:
            for fd in sum(pipes, ()):
                os.close(fd)
            raise
        if not pid:
            try:
                random.setstate(state)  # which it has seeded anew
                _stay_a_copy(pickler, obj, output, to_first, to_second, asked)
            finally:
                os._exit(0)  # nothing else of this process is to end twice
        for fd in to_first, to_second, asked:
            os.close(fd)
        self._pid = pid
        self._results = first, second
        os.read(first, 1)

    def first(self) -> _Made:
        """Wait for what stock makes of the object.

        Raises:
            _CannotTell: it did not come to an end.
        """
        return self._receive(self._results[0])

    def second(self) -> _Made:
        """Let stock make it once more, from the same beginning; raises as `first`."""
        os.write(self._ask, _WANTED)
        return self._receive(self._results[1])

    def _receive(self, result: int) -> _Made:
        received = _read_all(result, self._patience)
        if not received:
            raise _CannotTell("the copy of the process died")
        return _Made(*marshal.loads(received))

    def end(self, is_stuck: bool) -> None:
        """End both.

        Args:
            is_stuck: they may never end by themselves.
        """
        with contextlib.suppress(OSError):  # they have ended
            if is_stuck:
                os.killpg(self._pid, signal.SIGKILL)
            else:
                os.write(self._ask, _NOT_WANTED)
        for fd in (self._ask, *self._results):
            os.close(fd)
        with contextlib.suppress(ChildProcessError):  # the program waits for whatever ends
            os.waitpid(self._pid, 0)


def _read_all(fd: int, patience: float) -> bytes:
    """Read from a pipe to its end.

    Args:
        fd: the pipe.
        patience: for how many seconds.

    Raises:
        _CannotTell: they are over.
    """
    end = time.monotonic() + patience
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    pieces: list[bytes] = []
    while True:
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            raise _CannotTell(f"stock was not through after {patience:g} s")
        piece = os.read(fd, 1 << 20)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


@dataclasses.dataclass
class _Dump:
    """A dump that has begun.

    Attributes:
        frame: the frame of `Pickler.dump`.
        pickler: the class of the pickler.
        output: what tells what is written.
        copies: those that do the same.
        why: for what reason there are none; else empty.
    """

    frame: FrameType
    pickler: str
    output: _Output | None = None
    copies: _Copies | None = None
    why: str = ""


class Beside:
    """Compares each dump of this process, and of those that it forks, with stock's.

    Args:
        log: the file to which a line is added for each dump.
        every: compare one dump in so many.
        patience: seconds that stock may take for a dump, from the end of ours.
    """

    def __init__(self, log: Path, every: int = 1, patience: float = PATIENCE) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._every = every
        self._patience = patience
        self._seen = 0
        self._dumps: dict[int, list[_Dump]] = {}  # by thread; the innermost is the last

    def start(self) -> None:
        """Compare from now on.

        Raises:
            RuntimeError: all of `sys.monitoring`'s tools are in use.
        """
        monitoring = _monitoring
        events = monitoring.events
        free = [tool for tool in range(6) if monitoring.get_tool(tool) is None]
        if not free:
            raise RuntimeError("all tools of sys.monitoring are in use")
        self._tool = tool = free[-1]
        monitoring.use_tool_id(tool, "fastpickle")
        monitoring.register_callback(tool, events.PY_START, self._began)
        monitoring.register_callback(tool, events.PY_RETURN, self._returned)
        monitoring.register_callback(tool, events.PY_UNWIND, self._raised)
        monitoring.set_local_events(tool, _DUMP, events.PY_START | events.PY_RETURN)
        monitoring.set_events(tool, events.PY_UNWIND)  # there is no such event of one function only

    def stop(self) -> None:
        """Compare no more."""
        _monitoring.set_events(self._tool, 0)
        _monitoring.set_local_events(self._tool, _DUMP, 0)
        _monitoring.free_tool_id(self._tool)
        os.close(self._log)

    def _began(self, code: CodeType, offset: int) -> None:
        frame = sys._getframe(1)
        caller = frame.f_back
        self._seen += 1
        if self._seen % self._every or (caller and caller.f_globals.get("__name__") in _NOT_OF_THE_PROGRAM):
            return
        pickler, obj = frame.f_locals["self"], frame.f_locals["obj"]
        dump = _Dump(frame, f"{type(pickler).__module__}.{type(pickler).__qualname__}")
        try:
            if "_fastpickle_plan" in vars(pickler):
                raise _CannotTell("the pickler is dumping already")
            dump.output = _output_of(pickler)
            dump.copies = _Copies(pickler, obj, dump.output, self._patience)
            dump.output.begin()
        except Exception as exc:  # an audit hook may forbid the fork by any; nothing of this is the program's
            dump.why = _reason(exc)
        self._dumps.setdefault(threading.get_ident(), []).append(dump)

    def _returned(self, code: CodeType, offset: int, value: object) -> None:
        self._ended(sys._getframe(1), None)

    def _raised(self, code: CodeType, offset: int, exc: BaseException) -> None:
        if code is _DUMP:
            self._ended(sys._getframe(1), exc)

    def _ended(self, frame: FrameType, exc: BaseException | None) -> None:
        dumps = self._dumps.get(threading.get_ident())
        if not dumps or dumps[-1].frame is not frame:
            return
        dump = dumps.pop()
        record = Record(dump.pickler, NOT_COMPARED, dump.why)
        if dump.output and dump.copies:
            is_stuck = True
            try:
                record = _compare(dump, _made(exc, dump.output), dump.copies)
                is_stuck = False
            except Exception as why:
                record = Record(dump.pickler, NOT_COMPARED, _reason(why))
            finally:
                dump.copies.end(is_stuck)
        os.write(self._log, json.dumps(dataclasses.asdict(record)).encode() + b"\n")


def _reason(exc: Exception) -> str:
    return str(exc) if isinstance(exc, _CannotTell) else repr(exc)


def _compare(dump: _Dump, ours: _Made, copies: _Copies) -> Record:
    """Compare what ours made with what the copies make.

    Args:
        dump: the dump that has ended.
        ours: what came of it.
        copies: those that do the same by stock.

    Raises:
        _CannotTell: stock does not do the same twice, or does not end.
    """
    stock = copies.first()
    said = ours.differs_from(stock)
    if not said:
        return Record(dump.pickler, IDENTICAL, size=len(ours.written))
    if stock.error.startswith("RecursionError"):
        raise _CannotTell("stock reached the recursion limit")
    again = copies.second()
    if again != stock:
        raise _CannotTell("stock itself does not write the same twice")
    return Record(dump.pickler, DIFFERENT, "", len(ours.written), list(_lines_of(dump.frame.f_back))[::-1], said)


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
