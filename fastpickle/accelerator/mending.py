"""Mend what the C pickler ends otherwise than Python, up to 3.14: the last batch of containers of some lengths.

    APPENDS  MARK x APPENDS           ->  APPENDS  x APPEND            a list of 1001, 2001 ... items
    SETITEMS MARK key value SETITEMS  ->  SETITEMS key value SETITEM   a dict
    SETITEMS MARK SETITEMS            ->  SETITEMS                     a dict of 1000, 2000 ... items
    ADDITEMS MARK ADDITEMS            ->  ADDITEMS                     a set

    pieces of C --> stream, without FRAMEs --(the batches that close so)--> edited --(cut anew)--> pieces

A str may have the same bytes in it.  So it must be known how many such containers there are, and just so many places
must look like their ends; if more do, those are left out at which no opcode begins, which is found by reading the frame
from its beginning; otherwise nothing is mended.  What is edited is shorter then, so some frames end later: at the first
object that is saved when 64 KiB are full, which is found by reading on from where C ended them.

Not for: finding out how many there are (`differences`).  The opcodes are those of PEP 307 and PEP 3154.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate
from pickle import ADDITEMS, APPEND, APPENDS, FRAME, MARK, PROTO, SETITEM, SETITEMS
from struct import error, pack
from typing import Any, Final, NamedTuple

from .._stdlib import Framer
from .reading import Reader, Unclear, find_doubtful, most_doubtful
from .splicing import content as content_in

__all__ = ["HIGH", "Ends", "Wanted", "mend", "mend_last", "place_of_last", "possible_ends"]

#: How many ends there are, by the opcode that closes the batch, and by what is in it.
Ends = dict[tuple[int, int], int]

_TARGET: Final[int] = Framer._FRAME_SIZE_TARGET
_FRAME_SIZE_MIN: Final[int] = Framer._FRAME_SIZE_MIN
#: How far from the end the last batch is, most often.
_NEAR: Final = 4096
#: So many objects above a MARK may be one object or two in the end, tuples of two and three in each other.
HIGH: Final = 8
#: If it takes too long to be sure.
_FEW: Final = 2


def possible_ends(piece: Any, marks: list[int]) -> list[int]:
    """Return which of the doubtful MARKs in a piece may begin an end.

    All do that begin a batch of more than `_FEW` objects: it is not read to its end.
    """
    if len(marks) == most_doubtful(piece):
        return marks  # it would take too long
    reader = Reader(piece)
    possible = []
    for mark in marks:
        try:
            if _end(reader, mark, _FEW) is None:
                continue
        except Unclear:
            pass
        possible.append(mark)
    return possible


class Wanted(NamedTuple):
    """What is to be mended.

    Attributes:
        ends: how many batches; None for all there are.
        long: how many others with a MARK have more than `HIGH` objects, at least.
        behind: if it is the end of what C was given: how many bytes come behind that; else 0.
        is_last: whether nothing behind the MARK of that end looks like another.
        contents: the bytes that are in ends of each kind; None if that is not known of all.
    """

    ends: Ends | None
    long: int = 0
    behind: int = 0
    is_last: bool = False
    contents: set[tuple[int, bytes]] | None = None


def mend(pieces: list[Any], framed: bool, wanted: Wanted) -> list[Any] | None:
    """Return what C wrote, with the batches mended, in pieces like those of C.

    Args:
        pieces: what C wrote, from PROTO on, or from the beginning of a frame on; it is emptied, to hold less.
        framed: whether there are frames, from protocol 4 on.
        wanted: what is to be mended.

    Returns:
        The pieces; None if it is not certain which batches these are.
    """
    try:
        if framed:
            return _Frames(pieces).mended(wanted)
        stream = b"".join(pieces)
        return [_Edits(stream, [], [0], wanted).between(0, len(stream))]
    except (Unclear, IndexError, ValueError, error):
        return None


def place_of_last(piece: Any, end: tuple[int, int], content: bytes, behind: int, framed: bool) -> int:
    """Return where the last batch begins in a piece; 0 if it has begun in another frame, or is not what it was.

    Args:
        piece, end, behind, framed: as for `mend_last`.
        content: what stands in the batch.
    """
    mark = len(piece) - behind - len(content) - 2
    start = content_in(piece, 0)[0] if framed and piece[0] == FRAME[0] else 0
    is_there = mark > start and piece[mark - 1] == end[0] and piece.startswith(MARK + content, mark)
    return mark if is_there else 0


def mend_last(piece: Any, mark: int, end: tuple[int, int], behind: int, framed: bool) -> bytes:
    """Return a piece with the batch mended that is the last thing in it, and begins in it: no other frame changes.

    Args:
        piece: the last one that C wrote; if there are frames, it is all of one frame.
        mark: where the batch begins.
        end: which one it is, as in `Ends`.
        behind: how many bytes come behind it.
        framed: whether there are frames, from protocol 4 on.
    """
    into = _INTO[end[0]][end[1]] or b""
    close = len(piece) - 1 - behind
    start = text = 0
    header = b""
    if framed:
        start = 2 if piece[0] == PROTO[0] else 0
        text = start + 9
        left = len(piece) - text - 2 + len(into)
        if left >= _FRAME_SIZE_MIN:
            header = FRAME + pack("<Q", left)
    return b"".join(
        (piece[:start], header, memoryview(piece)[text:mark], piece[mark + 1 : close], into, piece[close + 1 :])
    )


def _end(reader: Reader, mark: int, high: int) -> tuple[int, int, int] | None:
    """Return what `Reader.close` does of a batch to be mended; None if it is none.

    Raises:
        Unclear: it may be one.
    """
    closed = reader.close(mark + 1, high)
    if closed is None or closed[0] != reader.stream[mark - 1] or closed[2] not in _INTO[closed[0]]:
        return None
    return closed


class _Frames:
    """What C wrote in frames.

    Attributes:
        head: what stands before the first frame.
        stream: all that follows, without FRAMEs.
        cuts: where frames begin in it since the one before was full.
        larges: where the large objects between frames are in it: begin, end of the header, end.
    """

    def __init__(self, pieces: list[Any]) -> None:
        start = 2 if pieces[0][0] == PROTO[0] else 0
        self.head = bytes(pieces[0][:start])
        self.cuts: list[int] = []
        self.larges: list[tuple[int, int, int]] = []
        parts: list[Any] = []
        n = i = 0
        while i < len(pieces):
            piece = memoryview(pieces[i])
            begin, end = content_in(piece, start)
            i += 1
            if i == len(pieces):
                end = len(piece)
            parts.append(piece[begin:end])
            n += end - begin
            if end < len(piece):
                payload = pieces[i]
                i += 1
                parts += piece[end:], payload
                header = n + len(piece) - end
                self.larges.append((n, header, header + len(payload)))
                n = header + len(payload)
            elif i < len(pieces):
                self.cuts.append(n)
            start = 0
        self.stream = b"".join(parts)
        pieces.clear()

    def mended(self, wanted: Wanted) -> list[Any]:
        """Return the pieces, mended."""
        starts = sorted((0, *self.cuts, *(end for _, _, end in self.larges)))
        edits = _Edits(self.stream, self.larges, starts, wanted)
        pieces: list[Any] = []
        head = self.head
        begin = 0
        for end, header, after in (*self.larges, (len(self.stream),) * 3):
            for start, stop in self._frames(begin, end, edits):
                text = edits.between(start, stop)
                frame = FRAME + pack("<Q", len(text)) if len(text) >= _FRAME_SIZE_MIN else b""
                pieces.append(b"".join((head, frame, text, self.stream[end:header] if stop == end else b"")))
                head = b""
            if after > header:
                pieces.append(memoryview(self.stream)[header:after])
            begin = after
        return pieces

    def _frames(self, begin: int, end: int, edits: _Edits) -> list[tuple[int, int]]:
        """Return where the frames between two large objects begin and end, in the stream as C wrote it.

        None of them begins before C's of the same number, at which we can begin to read.
        """
        cuts = self.cuts[bisect_left(self.cuts, begin) : bisect_right(self.cuts, end)]
        starts = [begin]
        for k, cut in enumerate(cuts):
            full = edits.place(starts[-1] - edits.gone(starts[-1]) + _TARGET)
            read_from = cuts[max(k, bisect_right(cuts, full) - 1)]
            start = cut if cut >= full else edits.reader.find_save(read_from, full, end)
            if start >= end:
                break
            starts.append(start)
        return [*zip(starts, (*starts[1:], end), strict=True)]


class _Edits:
    """The batches to be mended in a stream, and what is left of it then.

    Raises:
        Unclear: there are more or fewer of them than there should be.
    """

    def __init__(self, stream: bytes, larges: list[tuple[int, int, int]], starts: list[int], wanted: Wanted) -> None:
        self.reader = Reader(stream)
        marks: list[int] = []
        if wanted.is_last:
            marks = find_doubtful(stream, max(0, len(stream) - _NEAR, *(end for _, _, end in larges[-1:])))
        if not marks:
            start = 0
            for begin, _, end in (*larges, (len(stream),) * 3):
                found_here = find_doubtful(stream, start, begin)
                if len(found_here) == most_doubtful(stream):
                    raise Unclear
                marks += found_here
                start = end
        found = {}
        unclear = []
        for mark in marks[-1:] if wanted.is_last else marks:
            try:
                closed = _end(self.reader, mark, HIGH)
            except Unclear:
                unclear.append(mark)
            else:
                if closed is not None:
                    found[mark] = closed
        if wanted.behind:
            found = {mark: end for mark, end in found.items() if end[1] == len(stream) - 1 - wanted.behind}
        if wanted.contents is not None:
            known = wanted.contents
            found = {mark: end for mark, end in found.items() if (end[0], stream[mark + 1 : end[1]]) in known}
            unclear = []
        if not wanted.is_last and (wanted.ends is None or _count(found) != wanted.ends or len(unclear) > wanted.long):
            # There are texts that look like ends, or an end may be among those that are not clear.
            found = {mark: found[mark] for mark in self._opcodes(found, starts)}
        if wanted.ends is None:
            if len(self._opcodes(unclear, starts)) > wanted.long:
                raise Unclear
        elif _count(found) != wanted.ends:
            raise Unclear
        edits: list[tuple[int, int, bytes]] = []
        for mark, (opcode, place, n) in found.items():
            into = _INTO[opcode][n]
            edits += ((mark, 2, b""),) if into is None else ((mark, 1, b""), (place, 1, into))
        edits.sort()
        self.stream = memoryview(stream)
        self.edits = edits
        self.places = [place for place, _, _ in edits]
        self.sums = [0, *accumulate(n - len(new) for _, n, new in edits)]

    def _opcodes(self, places: Iterable[int], starts: list[int]) -> list[int]:
        """Return at which of some places an opcode begins, by reading on from the beginning of the frame."""
        found = []
        at = 0
        for place in places:
            at = self.reader.opcode(max(at, starts[bisect_right(starts, place) - 1]), place)
            if at == place:
                found.append(place)
        return found

    def gone(self, place: int) -> int:
        """Return how many bytes are gone before a place of the stream."""
        return self.sums[bisect_left(self.places, place)]

    def place(self, left: int) -> int:
        """Return the first place before which so many bytes are left."""
        place = left
        while (further := left + self.gone(place)) != place:
            place = further
        return place

    def between(self, start: int, stop: int) -> bytes:
        """Return what is left between two places."""
        parts: list[Any] = []
        for place, n, new in self.edits[bisect_left(self.places, start) : bisect_left(self.places, stop)]:
            parts += self.stream[start:place], new
            start = place + n
        parts.append(self.stream[start:stop])
        return b"".join(parts)


def _count(found: dict[int, tuple[int, int, int]]) -> Ends:
    """Return how many ends there are of each kind."""
    ends: Ends = {}
    for opcode, _, n in found.values():
        ends[opcode, n] = ends.get((opcode, n), 0) + 1
    return ends


#: By the opcode that closes a batch, and by how many objects are in it: what closes it in Python, None for nothing.
_INTO: Final[dict[int, dict[int, bytes | None]]] = {
    APPENDS[0]: {1: APPEND},
    SETITEMS[0]: {2: SETITEM, 0: None},
    ADDITEMS[0]: {0: None},
}
