"""Reading what the C pickler wrote: where something may be in it, and where an opcode begins.

    find_doubtful(piece)  -> where a batch may begin that C ends otherwise than Python      0.01 to 1 ns a byte
    has_text(piece, text) -> whether a name or opcode is anywhere in it, if only by chance  0.01 to 0.4 ns
    Reader(piece)         -> opcode by opcode, to be sure                                   5 to 20 ns

A str or a number may have the bytes of any opcode in it, so only what is read from a place at which an opcode begins
is certain.  The opcodes are those of PEP 307 and PEP 3154.

Not for: changing anything (`mending`), nor for what C has memoized (`differences`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from struct import error, pack, unpack_from
from typing import Any, Final

from .._stdlib import BATCHSIZE
from ..interrupts import GivenUp
from .splicing import content

# fmt: off
from pickle import (  # isort: skip
    ADDITEMS, APPEND, APPENDS, BINBYTES, BINBYTES8, BINFLOAT, BINGET, BININT, BININT1, BININT2, BINPUT, BINUNICODE,
    BINUNICODE8, BUILD, BYTEARRAY8, EMPTY_DICT, EMPTY_LIST, EMPTY_SET, EMPTY_TUPLE, EXT1, EXT2, EXT4, FROZENSET,
    GLOBAL, INT, LONG, LONG1, LONG4, LONG_BINGET, LONG_BINPUT, MARK, MEMOIZE, NEWFALSE, NEWOBJ, NEWOBJ_EX, NEWTRUE,
    NONE, POP, POP_MARK, PROTO, REDUCE, SETITEM, SETITEMS, SHORT_BINBYTES, SHORT_BINUNICODE, STACK_GLOBAL, TUPLE,
    TUPLE1, TUPLE2, TUPLE3,
)
# fmt: on

__all__ = [
    "Reader",
    "Unclear",
    "ends_in",
    "find_doubtful",
    "has_ends",
    "has_text",
    "is_batch_of_atoms",
    "is_opcode",
    "most_doubtful",
]


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


#: Behind a MARK: a batch of atoms, more of them than any that is to be mended.
_batch_of_atoms: Final = re.compile(rb"\(%b{3,2000}[eu\x90]" % _atoms(), re.DOTALL)


def is_batch_of_atoms(piece: Any, mark: int) -> bool:
    """Tell whether what begins with a MARK, if it is one, is a batch of three atoms or more; one takes 20 ns."""
    return _batch_of_atoms.match(piece, mark) is not None


def find_doubtful(
    piece: Any, start: int = 0, end: int = sys.maxsize, ends: Callable[[], Iterable[bytes]] | None = None
) -> list[int]:
    """Return where the MARKs in a piece are that may begin a batch to be mended, up to `most_doubtful`.

    Args:
        piece: what C wrote.
        start, end: where MARKs are sought.
        ends: tells which ends may be in it at all (`ends_in`), if that is asked; None if that is not known.
    """
    most = most_doubtful(piece)
    found: list[int] = []
    if type(piece) is bytes:
        # Texts have few bytes like MARK: to go from one to the next is ten times as fast, until they are too many.
        begin = start
        sparse = start - 3 * _SPARSE
        while sparse < start:
            place = piece.find(MARK, start, end)
            if place < 0:
                return found[:most]
            if piece[place - 1] in _CLOSES_BATCH and _doubtful.match(piece, place, end):
                found.append(place)
            start = place + 1
            sparse += _SPARSE
        if start - begin < _DENSE:
            which = _ENDS if ends is None else ends()
            firsts = [(place, end_of) for end_of in which if (place := piece.find(end_of, start - 1, end)) >= 0]
            if not firsts:
                return found[:most]
            marks = _few_marks(piece, firsts, end)
            if marks is not None:
                found += [mark for mark in marks if _doubtful.match(piece, mark, end)]
                return found[:most]
            start = min(firsts)[0]
    found += [match.start() for match in islice(_doubtful.finditer(piece, start, end), most)]
    return found[:most]


def _few_marks(piece: bytes, firsts: Iterable[tuple[int, bytes]], end: int) -> list[int] | None:
    """Return where the MARKs of ends are, in order; None if they are so many that a regular expression is sooner.

    Args:
        piece: what C wrote.
        firsts: where each end is first, and the end with a MARK behind it.
        end: where the search ends.
    """
    marks: list[int] = []
    for first, end_of in firsts:
        n = 0
        place = first
        while place >= 0:
            marks.append(place + 1)
            n += 1
            if n > _FEW_MARKS and n * _PER_MARK > place - first:
                return None
            place = piece.find(end_of, place + 2, end)
    marks.sort()
    return marks


def ends_in(pieces: Iterable[Any], proto: int) -> list[bytes]:
    """Return which closing opcodes, with a MARK behind them, may be in pieces: of what is opened in them."""
    ends = []
    for opens, end_of in _OPENS[proto]:
        for piece in pieces:
            if piece.find(opens[:1]) >= 0 and has_text(piece, opens):  # most often there are none of a kind
                ends.append(end_of)
                break  # any() takes 0.2 us longer
    return ends


def has_ends(piece: bytes, start: int) -> bool:
    """Tell whether there is a closing opcode with a MARK behind it in a short piece, from a place on, or the like."""
    # What closes a dict or a set is not sought where none is opened.
    return (
        piece.find(_ENDS[0], start) >= 0
        or (piece.find(EMPTY_DICT) >= 0 and piece.find(_ENDS[1], start) >= 0)
        or (piece.find(EMPTY_SET) >= 0 and piece.find(_ENDS[2], start) >= 0)
    )


#: So many bytes are searched by a regular expression as soon as one byte is found without.
_SPARSE: Final = 320
#: Where three are met in so few bytes, up to three texts are sought sooner than each MARK is looked at.
_DENSE: Final = 72
#: So many MARKs of ends are looked at one by one; and then one for so many bytes, which a regular expression reads in
#: the time that one takes.
_FEW_MARKS: Final = 8
_PER_MARK: Final = 250
_CLOSES_BATCH: Final = APPENDS + SETITEMS + ADDITEMS
_ENDS: Final = (APPENDS + MARK, SETITEMS + MARK, ADDITEMS + MARK)
#: How what ends so is opened, up to protocol 3 and from 4 on; and by protocol.
_OPENS_3: Final = ((EMPTY_LIST, APPENDS + MARK), (EMPTY_DICT, SETITEMS + MARK))
_OPENS_4: Final = (
    (EMPTY_LIST + MEMOIZE, APPENDS + MARK),
    (EMPTY_DICT + MEMOIZE, SETITEMS + MARK),
    (EMPTY_SET + MEMOIZE, ADDITEMS + MARK),
)
_OPENS: Final = ((), _OPENS_3, _OPENS_3, _OPENS_3, _OPENS_4, _OPENS_4)


def has_text(piece: Any, text: bytes, start: int = 0) -> bool:
    """Tell whether a text is in a piece from a place on, which takes less where the rarest of its bytes is rare."""
    if type(piece) is not bytes or len(piece) <= _SHORT:
        return bool(piece.find(text, start) >= 0)
    byte, offset = _rarest(text)
    at = start + offset
    sparse = at - 10 * _SPARSE
    while sparse < at:
        place = piece.find(byte, at)
        if place < 0:
            return False
        if piece.startswith(text, place - offset):
            return True
        at = place + 1
        sparse += _SPARSE
    more = len(text) - 1
    return any(piece.find(text, i, i + _WINDOW + more) >= 0 for i in range(at - offset, len(piece), _WINDOW))


_SHORT: Final = 1 << 10


@lru_cache(maxsize=256)
def _rarest(text: bytes) -> tuple[int, int]:
    """Return the byte of a text that is rare elsewhere, and where it is in it."""
    byte = min(text, key=_FREQUENCIES.__getitem__)
    return byte, text.index(byte)


#: In 30,000 bytes and more CPython searches by an algorithm that has no bad case, and takes four times as long.
_WINDOW: Final = 29_000
_FREQUENT: Final = b"etaoinshrdlucmpgbf0123456789KMJGNXBC .,([])" + MEMOIZE + SHORT_BINUNICODE + STACK_GLOBAL
#: How often each byte is met, more or less: 0 in few names, 2 in most names, numbers and pickles.
_FREQUENCIES: Final = bytes(
    0 if byte in b"_ADEFHILOPQRSTUVWYZ" else 2 if byte < 32 or byte in _FREQUENT else 1 for byte in range(256)
)


def most_doubtful(piece: Any) -> int:
    """Return how many MARKs it is worth while to find: more than a container with its items in the piece has itself."""
    return 100 + len(piece) // BATCHSIZE


def is_opcode(piece: Any, place: int) -> bool:
    """Tell whether an opcode begins at a place in a piece; it is read from its beginning, at most 5 ns for a byte."""
    start = content(piece, 2)[0] if piece[0] == PROTO[0] else content(piece, 0)[0]
    return Reader(piece).opcode(start, place) == place


class Unclear(GivenUp):
    """It is not certain what the bytes mean."""


class Reader:
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
            Unclear: they are more, it takes too long, or the stream ends.
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
        raise Unclear

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
                        raise Unclear
                    if closed[0] not in _BATCHES:
                        return place
                elif _EFFECTS.get(opcode, 0) == 1 and last not in _POPS:
                    return place
            last = opcode
            place += _length(stream, place)
        return end


_BATCHES: Final = frozenset(_CLOSES_BATCH)
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
