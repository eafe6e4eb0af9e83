"""What comes of one use of a pickler, or of `dumps()`: bytes, sizes of writes, buffers out of band, the error.

    Use(pickler, ...) --> begin() --> a dump --> end(what it raised, or returned) --> Made
              |
              +-- a file in memory: what is in it          a regular one: what is in it, read by another number
              +-- any other: its `write` is noted          `dumps()`: what it returns

Not for: deciding whether two of them are to be the same (`_beside`).
"""

from __future__ import annotations

import dataclasses
import fcntl
import io
import os
import pickle
import re
import stat
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fastpickle._stdlib import Framer
from fastpickle.cli._disassembly import around_difference

__all__ = ["FILES", "CannotTell", "Made", "Use"]

FILES: Final = Path("/proc/self/fd")
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]+")
_set: Final = object.__setattr__  # the class of the pickler may have one of its own


class CannotTell(Exception):
    """What is written by this dump cannot be compared; the message says why."""


@dataclasses.dataclass(frozen=True)
class Made:
    """What came of a dump.

    Attributes:
        error: the exception, as Python would print it without its traceback; empty if there was none.
        is_of_files: it is one that comes of files, pipes and sockets.
        written: what was written.
        sizes: the sizes of the pieces in which a file of Python's got it; else empty.
        buffers: those that were given away out of band, and whether they were taken.
    """

    error: str
    is_of_files: bool = dataclasses.field(compare=False)
    written: bytes
    sizes: list[int]
    buffers: list[tuple[bytes, bool]]

    def differs_from(self, stock: Made) -> list[str]:
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


class _Output:
    """Where the bytes go, and how to tell which."""

    def begin(self) -> None:
        """Prepare to tell what is written."""

    def be_in_copy(self) -> None:
        """Prepare for a copy of the process, where no pipe or socket can be written to."""

    def end(self) -> tuple[bytes, list[int]]:
        """Give what was written since, and in pieces of which sizes, if that can be told."""
        raise NotImplementedError


class _Returned(_Output):
    """What `dumps()` returns."""

    def __init__(self) -> None:
        self.value: object = b""

    def end(self) -> tuple[bytes, list[int]]:
        """Give it."""
        return (self.value if isinstance(self.value, bytes) else b""), []


class _Held(_Output):
    """A file in memory."""

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file
        self._start = io.BytesIO.tell(file)  # its class may have a function of its own for this

    def end(self) -> tuple[bytes, list[int]]:
        """Give what was written since."""
        return io.BytesIO.getvalue(self._file)[self._start : io.BytesIO.tell(self._file)], []


class _Opened(_Output):
    """A regular file that is open for writing; a copy of the process has one of its own under the same number."""

    def __init__(self, file: io.BufferedWriter | io.FileIO) -> None:
        self._file = file
        file.flush()
        self._start = file.tell()

    def end(self) -> tuple[bytes, list[int]]:
        """Give what was written since."""
        self._file.flush()
        with (FILES / str(self._file.fileno())).open("rb") as file:
            file.seek(self._start)
            return file.read(self._file.tell() - self._start), []


class _Noted(_Output):
    """Any other file: its `write` is called as before, by a function that notes what it is given."""

    def __init__(self, pickler: Any) -> None:
        framer = pickler.framer
        if type(framer) is not Framer or framer.file_write != pickler._file_write:
            raise CannotTell("it writes in a way of its own")
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

    def be_in_copy(self) -> None:
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
        CannotTell: it cannot be told.
    """
    write = getattr(pickler, "_file_write", None)
    if write is None:
        raise CannotTell("its __init__() was not called")
    file: Any = getattr(write, "__self__", None)
    try:
        if type(write) is type([].append):  # of C
            if isinstance(file, io.BytesIO):
                return _Held(file)
            if _is_regular(file):
                return _Opened(file)
    except (OSError, ValueError) as exc:
        raise CannotTell(f"its file cannot be asked: {exc!r}") from exc
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


class Use:
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

    def end(self, exc: BaseException | None, value: object = None) -> Made:
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
        return Made(_ADDRESS.sub("0x", error), is_of_files, *self.output.end(), buffers)
