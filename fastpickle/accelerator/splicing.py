"""Splicing: what the C pickler wrote comes where Python's bytes would stand, frame by frame, into the file.

    padding(framer)              -> the arguments of a prefix that fills C's frame as far as ours is
    pieces of C --(write)-->        our frame | rest of C's first | FRAME ... | last one left open

If the file fails in the middle, all is put back, and Python fails at the same place instead.

Not for: what is in the pieces (`differences`, `mending`).
"""

from __future__ import annotations

from collections.abc import Callable
from io import SEEK_END, BytesIO
from pickle import FRAME, HIGHEST_PROTOCOL, PROTO
from struct import Struct, unpack_from
from typing import Any, Final

from .._stdlib import NOT_WRITTEN, Framer
from ..hooks import Plan
from ..interrupts import is_interrupt
from .cpickler import LARGE, prefixes

__all__ = ["FEW_BYTES", "content", "padding", "restore", "write", "write_dump", "write_pieces", "write_whole"]


def padding(framer: Any, plan: Plan, of_both: int = 0) -> tuple[Any, ...] | None:
    """Return the arguments of the prefix's call that make C's frame as full as ours is; None if there are none.

    Behind the large bytes come the opcodes of the others, TUPLE1 to TUPLE3 and REDUCE.

    Args:
        framer: the pickler's.
        plan: its plan.
        of_both: how many of the last bytes in ours C will write itself.
    """
    if plan.proto < 4:
        return ()
    frame = framer.current_frame
    if frame is None:
        return None
    n = frame.tell() - of_both
    if n < 2 or n > len(LARGE):
        return None
    if n <= 4:
        return (LARGE, *(None,) * (n - 2))
    if n <= 259:
        return LARGE, LARGE[: n - 4]
    if n <= 262:
        return LARGE, (None, 1, 256)[n - 260], LARGE[:255]
    return LARGE, LARGE[: n - 7]


def write(framer: Any, plan: Plan, pieces: list[Any], tail: int) -> bool:
    """Write what C wrote behind a prefix, but for the last `tail` bytes; False if the file failed."""
    if plan.proto < 4:
        return write_pieces(framer, pieces, len(prefixes[plan.proto]), 0, tail)
    return write_pieces(framer, pieces[2:], 0, framer.current_frame.tell(), tail)


def write_whole(framer: Any, pieces: list[Any]) -> bool:
    """Write what C wrote of a whole dump to a file in memory; False if it fails, and then nothing is written."""
    file = framer.file_write.__self__
    try:
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    except MemoryError:  # frame by frame it takes less
        return False
    try:
        if len(data) > FEW_BYTES and type(file) is BytesIO and not file.tell() and not file.getvalue():
            BytesIO.__init__(file, data)  # an empty one: it takes bytes without a copy, and gives them back
            file.seek(len(data))
        else:
            framer.file_write(data)
    except NOT_WRITTEN as exc:
        if is_interrupt(exc):
            raise
        return False
    return True


#: Up to so many are copied sooner.
FEW_BYTES: Final = 1024


def write_dump(file_write: Callable[[bytes], Any], proto: int, data: bytes) -> bool:
    """Write a whole dump to a file in memory, as a framer would that has been given all of it, and STOP.

    Args:
        file_write: the `write` of an `io.BytesIO`.
        proto: the protocol.
        data: what stands behind PROTO and FRAME.

    Returns:
        Whether it is written; if not, nothing is: it is too much, the file fails, or it is not stock's framer.
    """
    n = len(data)
    if (
        n >= Framer._FRAME_SIZE_TARGET
        or file_write.__name__ != "write"
        or Framer.start_framing is not _start_framing
        or Framer.end_framing is not _end_framing
        or Framer.commit_frame is not _commit_frame
        or Framer._FRAME_SIZE_MIN != _FRAME_SIZE_MIN
    ):
        return False
    begin = _BEGINS[proto][n] if n <= 255 else _pack_begin(_FRAMED[proto], n) if proto >= 4 else _UNFRAMED[proto]
    try:
        file_write(begin + data)
    except NOT_WRITTEN as exc:
        if is_interrupt(exc):
            raise
        return False
    return True


_start_framing: Final = Framer.start_framing
_end_framing: Final = Framer.end_framing
_commit_frame: Final = Framer.commit_frame
_FRAME_SIZE_MIN: Final[int] = Framer._FRAME_SIZE_MIN
_pack_begin: Final = Struct("<3sQ").pack
#: By protocol, what a pickle begins with, without and with the opcode of a frame; and the whole of it by the length of
#: that, since to pack it takes 60 ns.
_UNFRAMED: Final = tuple(PROTO + bytes((proto,)) for proto in range(HIGHEST_PROTOCOL + 1))
_FRAMED: Final = tuple(begin + FRAME for begin in _UNFRAMED)
_BEGINS: Final = tuple(
    tuple(_pack_begin(framed, n) if n >= _FRAME_SIZE_MIN and proto >= 4 else unframed for n in range(256))
    for proto, (unframed, framed) in enumerate(zip(_UNFRAMED, _FRAMED, strict=True))
)


def write_pieces(framer: Any, pieces: list[Any], start: int, ours: int, tail: int) -> bool:
    """Splice in what C wrote; if the file fails, put all back, so that Python will fail at the same place.

    That is where it tries to write more than we could: with what it has memoized by then, and the notes of that place.
    """
    file_write = framer.file_write
    frame = framer.current_frame
    if len(pieces) == 1 and frame is not None:
        _splice(framer, pieces, start, ours, tail)
        return True
    written = 0

    def count(piece: Any) -> None:
        nonlocal written
        file_write(piece)
        written += len(piece)

    framer.file_write = count
    try:
        _splice(framer, pieces, start, ours, tail)
    except Exception as exc:
        if is_interrupt(exc):
            raise
        failed = [exc.with_traceback(None)]  # not to be kept by what its traceback keeps
    else:
        return True
    finally:
        framer.file_write = file_write

    def write_again(piece: Any) -> None:
        nonlocal written
        written -= len(piece)
        if written < 0:
            framer.file_write = file_write
            raise failed.pop()

    write_again.file_write = file_write  # type: ignore[attr-defined]
    framer.file_write = write_again
    framer.current_frame = frame
    return False


def restore(framer: Any) -> None:
    """Give a framer its file again, if Python has failed before it came to where C failed."""
    framer.file_write = getattr(framer.file_write, "file_write", framer.file_write)


def _splice(framer: Any, pieces: list[Any], start: int, ours: int, tail: int) -> None:
    """Continue the current frame with C's first, and so on; C's last one stays open.

    Args:
        framer: the pickler's.
        pieces: what C wrote.
        start: where its first frame begins in the first piece.
        ours: how many bytes of that frame stand for what is in ours already.
        tail: how many of the last bytes of all are C's own.
    """
    piece = memoryview(pieces[0])
    last = memoryview(pieces[-1])
    if framer.current_frame is None:
        if len(pieces) == 1:
            framer.file_write(piece[start:-tail])
        else:
            framer.file_write(piece[start:])
            for piece in pieces[1:-1]:
                framer.file_write(piece)
            framer.file_write(last[:-tail])
        return
    start, end = content(piece, start)
    if len(pieces) == 1:
        framer.current_frame.write(piece[start + ours : -tail])
        return
    # From here on as stock's framer calls it: a file that is full fails at the same call then.
    frame = BytesIO(framer.current_frame.getvalue())  # ours stays as it is until all is written
    frame.seek(0, SEEK_END)
    frame.write(piece[start + ours : end])
    framer.current_frame = frame
    framer.commit_frame(force=True)
    file_write = framer.file_write
    header = piece[end:]
    if header:
        file_write(header)
    for large in pieces[1:-1]:
        if header:
            file_write(large)
            header = _NOTHING
            continue
        piece = memoryview(large)
        start, end = content(piece, 0)
        if start:
            file_write(piece[:start])
        file_write(piece[start:end])
        header = piece[end:]
        if header:
            file_write(header)
    framer.current_frame.write(last[content(last, 0)[0] : -tail])


_NOTHING: Final = memoryview(b"")


def content(piece: memoryview, start: int) -> tuple[int, int]:
    """Return where the content of C's frame begins and ends in a piece.

    Behind it there may be the header of a large bytes or str, of five or nine bytes.  Less than four bytes are no
    frame, as in stock.
    """
    if len(piece) > start and piece[start] == FRAME[0]:
        start += 9
        return start, start + unpack_from("<Q", piece, start - 8)[0]
    n = len(piece) - start
    return start, len(piece) - (5 if n < 9 else 9)
