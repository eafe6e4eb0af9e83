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

import re
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate, islice
from struct import error, pack, unpack_from
from typing import Any, Final, NamedTuple

from ._stdlib import BATCHSIZE, Framer
from .splicing import content

# fmt: off
from pickle import (  # isort: skip
    ADDITEMS, APPEND, APPENDS, BINBYTES, BINBYTES8, BINFLOAT, BINGET, BININT, BININT1, BININT2, BINPUT, BINUNICODE,
    BINUNICODE8, BUILD, BYTEARRAY8, EMPTY_DICT, EMPTY_LIST, EMPTY_SET, EMPTY_TUPLE, EXT1, EXT2, EXT4, FRAME,
    FROZENSET, GLOBAL, INT, LONG, LONG1, LONG4, LONG_BINGET, LONG_BINPUT, MARK, MEMOIZE, NEWFALSE, NEWOBJ,
    NEWOBJ_EX, NEWTRUE, NONE, POP, POP_MARK, PROTO, REDUCE, SETITEM, SETITEMS, SHORT_BINBYTES, SHORT_BINUNICODE,
    STACK_GLOBAL, TUPLE, TUPLE1, TUPLE2, TUPLE3,
)
# fmt: on

__all__ = ["HIGH", "Ends", "Wanted", "find_doubtful", "has_text", "is_opcode", "mend", "mend_last", "possible_ends"]

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


def _short(form: str) -> bytes:
    """Return a regular expression of a short argument behind its length, which is packed so."""
    return b"(?:" + b"|".join(re.escape(pack(form, n)) + b".{%d}" % n for n in range(40)) + b")"


def _atoms() -> bytes:
    """Return a regular expression of an object of one opcode; of texts only short ones."""
    memoized = rb"(?:\x94|q.|r.{4})"
    return b"(?:" + b"|".join((
        rb"[N\x88\x89)]", rb"[Kh].", rb"M..", rb"[Jj].{4}", rb"G.{8}",
        rb"[\x8cC]" + _short("<B") + memoized, b"X" + _short("<I") + memoized,
    )) + b")"  # fmt: skip


#: Finds where a MARK may begin another batch, that is to be mended; it may be a part of a str or a number as well.
#: Tuples of atoms are no batches, nor is one of a set that has elements in it.
_doubtful: Final = re.compile(rb"\((?<=[eu\x90]\()(?!%b{1,8}[t\x91]|(?<=\x90\()[^\x90])" % _atoms(), re.DOTALL)


def find_doubtful(piece: Any, start: int = 0, end: int = sys.maxsize) -> list[int]:
    """Return where the MARKs in a piece are that may begin a batch to be mended, up to `_most_doubtful`."""
    most = _most_doubtful(piece)
    found: list[int] = []
    if type(piece) is bytes:
        # Texts have few bytes like MARK: to go from one to the next is ten times as fast, until they are too many.
        sparse = start - 10 * _SPARSE
        while sparse < start:
            place = piece.find(MARK, start, end)
            if place < 0:
                return found[:most]
            if piece[place - 1] in _CLOSES_BATCH and _doubtful.match(piece, place, end):
                found.append(place)
            start = place + 1
            sparse += _SPARSE
    found += [match.start() for match in islice(_doubtful.finditer(piece, start, end), most)]
    return found[:most]


#: So many bytes are searched by a regular expression as soon as one byte is found without.
_SPARSE: Final = 320
_CLOSES_BATCH: Final = APPENDS + SETITEMS + ADDITEMS


def has_text(piece: Any, text: bytes) -> bool:
    """Tell whether a text is in a piece; if one of its bytes is not, or the first is rare, in a tenth of the time."""
    if type(piece) is bytes and len(piece) > _SHORT:
        for byte in text:
            if piece.find(byte) < 0:
                return False
        start = -1
        for _ in range(4 + len(piece) // _RARE):
            start = piece.find(text[0], start + 1)
            if start < 0:
                return False
            if piece.startswith(text, start):
                return True
        if text[:2] not in piece:  # this takes half the time
            return False
    return text in piece


_SHORT: Final = 1 << 10
_RARE: Final = 1 << 12


def _most_doubtful(piece: Any) -> int:
    """Return how many MARKs it is worth while to find: more than a container with its items in the piece has itself."""
    return 100 + len(piece) // BATCHSIZE


def possible_ends(piece: Any, marks: list[int]) -> list[int]:
    """Return which of the doubtful MARKs in a piece may begin an end.

    All do that begin a batch of more than `_FEW` objects: it is not read to its end.
    """
    if len(marks) == _most_doubtful(piece):
        return marks  # it would take too long
    reader = _Reader(piece)
    possible = []
    for mark in marks:
        try:
            if _end(reader, mark, _FEW) is None:
                continue
        except _Unclear:
            pass
        possible.append(mark)
    return possible


def is_opcode(piece: Any, place: int) -> bool:
    """Tell whether an opcode begins at a place in a piece; it is read from its beginning, at most 5 ns for a byte."""
    start = content(piece, 2)[0] if piece[0] == PROTO[0] else content(piece, 0)[0]
    return _Reader(piece).opcode(start, place) == place


class Wanted(NamedTuple):
    """What is to be mended.

    Attributes:
        ends: how many batches; None for all there are.
        long: how many others with a MARK have more than `HIGH` objects, at least.
        behind: if it is the end of what C was given: how many bytes come behind that; else 0.
        is_last: whether nothing behind the MARK of that end looks like another.
        contents: how many ends of each kind have these bytes in them; None if that is not known of all.
    """

    ends: Ends | None
    long: int = 0
    behind: int = 0
    is_last: bool = False
    contents: Counter[tuple[int, bytes]] | None = None


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
    except (_Unclear, IndexError, ValueError, error):
        return None


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
    view = memoryview(piece)
    close = len(piece) - 1 - behind
    start = 2 if piece[0] == PROTO[0] else 0
    text = 0
    header = b""
    if framed:
        text = start + 9
        left = len(piece) - text - 2 + len(into)
        if left >= _FRAME_SIZE_MIN:
            header = FRAME + pack("<Q", left)
    return b"".join((view[:start], header, view[text or start : mark], view[mark + 1 : close], into, view[close + 1 :]))


class _Unclear(Exception):
    """It is not certain what the bytes mean."""


def _end(reader: _Reader, mark: int, high: int) -> tuple[int, int, int] | None:
    """Return what `_Reader.close` does of a batch to be mended; None if it is none.

    Raises:
        _Unclear: it may be one.
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
            begin, end = content(piece, start)
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
        _Unclear: there are more or fewer of them than there should be.
    """

    def __init__(self, stream: bytes, larges: list[tuple[int, int, int]], starts: list[int], wanted: Wanted) -> None:
        self.reader = _Reader(stream)
        marks: list[int] = []
        if wanted.is_last:
            marks = find_doubtful(stream, max(0, len(stream) - _NEAR, *(end for _, _, end in larges[-1:])))
        if not marks:
            start = 0
            for begin, _, end in (*larges, (len(stream),) * 3):
                found_here = find_doubtful(stream, start, begin)
                if len(found_here) == _most_doubtful(stream):
                    raise _Unclear
                marks += found_here
                start = end
        found = {}
        unclear = []
        for mark in marks[-1:] if wanted.is_last else marks:
            try:
                closed = _end(self.reader, mark, HIGH)
            except _Unclear:
                unclear.append(mark)
            else:
                if closed is not None:
                    found[mark] = closed
        if wanted.behind:
            found = {mark: end for mark, end in found.items() if end[1] == len(stream) - 1 - wanted.behind}
        if wanted.contents is not None:
            alike = {mark: (end[0], stream[mark + 1 : end[1]]) for mark, end in found.items()}
            alike = {mark: content for mark, content in alike.items() if content in wanted.contents}
            if Counter(alike.values()) == wanted.contents:  # no text looks like one of them
                found = {mark: found[mark] for mark in alike}
                unclear = []
        if not wanted.is_last and (wanted.ends is None or _count(found) != wanted.ends or len(unclear) > wanted.long):
            # There are texts that look like ends, or an end may be among those that are not clear.
            found = {mark: found[mark] for mark in self._opcodes(found, starts)}
        if wanted.ends is None:
            if len(self._opcodes(unclear, starts)) > wanted.long:
                raise _Unclear
        elif _count(found) != wanted.ends:
            raise _Unclear
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


class _Reader:
    """Reads opcodes.

    Attributes:
        steps: how many more may be read; one takes 0.4 us.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.steps = 10_000 + len(stream) // 20

    def close(self, place: int, high: int = sys.maxsize) -> tuple[int, int, int] | None:
        """Read on behind a MARK to the opcode that closes it.

        Args:
            place: where it goes on behind the MARK.
            high: how many objects may stand above the MARK.

        Returns:
            The opcode, where it is, and how many objects are above the MARK then; None if this is no pickle.

        Raises:
            _Unclear: they are more, it takes too long, or the stream ends.
        """
        stream = self.stream
        heights: list[int] = []
        height = 0
        try:
            while self.steps > 0:
                self.steps -= 1
                opcode = stream[place]
                if opcode == MARK[0]:
                    heights.append(height)
                elif opcode in _CLOSING:
                    if not heights:
                        return opcode, place, height
                    height = heights.pop() + _CLOSING[opcode]
                elif opcode in _EFFECTS:
                    height += _EFFECTS[opcode]
                    if not heights and not 0 <= height <= high:
                        if height < 0:
                            return None
                        break
                else:
                    return None
                place += _length(stream, place)
        except (IndexError, ValueError, error):
            pass
        raise _Unclear

    def opcode(self, place: int, full: int) -> int:
        """Return where, from `full` on, the first opcode begins, if one begins at `place`; a short one takes 40 ns."""
        while place < full:
            match = _opcodes.match(self.stream, place, full)
            place = match.end() if match is not None else place + _length(self.stream, place)
        return place

    def find_save(self, place: int, full: int, end: int) -> int:
        """Return where, from `full` on, the saving of an object begins; `end` if not before that.

        Args:
            place: where one does, at or before `full`.
        """
        stream = self.stream
        last = 0
        while place < end:
            opcode = stream[place]
            if place >= full:
                if opcode == MARK[0]:  # of a tuple or frozenset, which are saved from here on, or of a batch
                    closed = self.close(place + 1)
                    if closed is None:
                        raise _Unclear
                    if closed[0] not in _BATCHES:
                        return place
                elif _EFFECTS.get(opcode, 0) == 1 and last not in _POPS:
                    return place
            last = opcode
            place += _length(stream, place)
        return end


_BATCHES: Final = frozenset(_INTO)
_POPS: Final = frozenset((POP[0], POP_MARK[0]))
#: The opcodes that close a MARK, with how many objects they leave in its place.
_CLOSING: Final = {op[0]: 0 for op in (APPENDS, SETITEMS, ADDITEMS, POP_MARK)} | {op[0]: 1 for op in (TUPLE, FROZENSET)}
#: How many objects more there are after an opcode; those with one more begin the saving of an object.
_EFFECTS: Final = {
    **{op[0]: 1 for op in (
        NONE, NEWTRUE, NEWFALSE, EMPTY_TUPLE, EMPTY_LIST, EMPTY_DICT, EMPTY_SET, BININT, BININT1, BININT2, BINFLOAT,
        LONG1, LONG4, SHORT_BINBYTES, BINBYTES, BINBYTES8, BYTEARRAY8, SHORT_BINUNICODE, BINUNICODE, BINUNICODE8,
        BINGET, LONG_BINGET, INT, LONG, GLOBAL, EXT1, EXT2, EXT4,
    )},
    **{op[0]: 0 for op in (MEMOIZE, BINPUT, LONG_BINPUT, TUPLE1)},
    **{op[0]: -1 for op in (APPEND, TUPLE2, REDUCE, NEWOBJ, BUILD, STACK_GLOBAL, POP)},
    **{op[0]: -2 for op in (SETITEM, TUPLE3, NEWOBJ_EX)},
}  # fmt: skip
#: How long opcodes are, if not one byte; and how the length of their argument is packed, if it has one.
_LENGTHS: Final = {
    **{op[0]: 2 for op in (BININT1, BINGET, BINPUT, EXT1)},
    **{op[0]: 3 for op in (BININT2, EXT2)},
    **{op[0]: 5 for op in (BININT, LONG_BINGET, LONG_BINPUT, EXT4)},
    **{op[0]: 9 for op in (BINFLOAT,)},
}
_LENGTHS_OF_LENGTHS: Final = {
    **{op[0]: ("<B", 2) for op in (LONG1, SHORT_BINBYTES, SHORT_BINUNICODE)},
    **{op[0]: ("<I", 5) for op in (LONG4, BINBYTES, BINUNICODE)},
    **{op[0]: ("<Q", 9) for op in (BINBYTES8, BINUNICODE8, BYTEARRAY8)},
}
#: How many lines of argument opcodes have, protocols below 4.
_LINES: Final = {INT[0]: 1, LONG[0]: 1, GLOBAL[0]: 2}


def _some_opcodes() -> bytes:
    """Return a regular expression of many opcodes, with their arguments if they are short."""
    ones = [op for op in (*_EFFECTS, *_CLOSING, MARK[0]) if op not in (*_LENGTHS, *_LENGTHS_OF_LENGTHS, *_LINES)]
    classes = [(bytes(ones), 1)]
    classes += [(bytes(op for op in _LENGTHS if _LENGTHS[op] == n), n) for n in sorted({*_LENGTHS.values()})]
    fixed = [b"[%b].{%d}" % (re.escape(ops), n - 1) for ops, n in classes[1:]]
    texts = b"[%b]%b\x94?" % (re.escape(SHORT_BINUNICODE + SHORT_BINBYTES + LONG1), _short("<B"))
    return b"|".join((b"[%b]+" % re.escape(classes[0][0]), *fixed, texts))


#: A run of them is read at once.
_opcodes: Final = re.compile(b"(?:%b){1,1000}" % _some_opcodes(), re.DOTALL)


def _length(stream: bytes, place: int) -> int:
    """Return how many bytes an opcode and its argument take."""
    opcode = stream[place]
    if opcode in _LENGTHS_OF_LENGTHS:
        form, n = _LENGTHS_OF_LENGTHS[opcode]
        return n + int(unpack_from(form, stream, place + 1)[0])
    end = place
    for _ in range(_LINES.get(opcode, 0)):
        end = stream.index(b"\n", end + 1)
    return _LENGTHS.get(opcode, 1) + end - place
