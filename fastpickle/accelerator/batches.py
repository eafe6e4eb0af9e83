"""The batches of a list, dict or set: how many, and whether C ends the last one otherwise than Python.

    obj --+--> batches_of(obj).marks, .end: how many MARKs begin a batch, and which one is to be mended
          +--> content_of(obj):             what stands in the last one, if that is atoms
          +--> firsts_of(obj) --> neighbours_of(): what stands before and behind the MARKs
                             +--> beginnings_of(): the same behind them, of a dict, to the end of short texts

Which lengths are awkward is found out at import (`_stdlib.awkward_batches`).

Not for: finding batches in what C wrote (`reading`), nor changing it (`mending`).
"""

from __future__ import annotations

from itertools import islice
from struct import pack
from types import NoneType
from typing import Any, Final, NamedTuple

from .._stdlib import BATCHSIZE, awkward_batches
from ..opcodes import pack_binint2
from .mending import HIGH

# fmt: off
from pickle import (  # isort: skip
    ADDITEMS, APPENDS, BINFLOAT, BINGET, BININT, BININT1, BININT2, BINUNICODE, BINUNICODE8, EMPTY_DICT,
    EMPTY_LIST, EMPTY_TUPLE, INT, LONG, LONG1, LONG4, LONG_BINGET, MARK, NEWFALSE, NEWTRUE, NONE, SETITEMS,
    SHORT_BINUNICODE, dumps,
)
# fmt: on

__all__ = ["Batches", "batches_of", "beginnings_of", "content_of", "end_of", "firsts_of", "neighbours_of"]


def end_of(t: type, n: int) -> tuple[int, int] | None:
    """Return which last batch of an exact container of `n` items is to be mended, as in `Ends`; None if it is not."""
    remainder = n % BATCHSIZE
    if n < BATCHSIZE or remainder not in awkward_batches.get(t, ()):
        return None
    return _CLOSES[t], 2 * remainder if t is dict else remainder


class Batches(NamedTuple):
    """The batches of an exact list, dict or set that may have to be mended, but for the first one.

    Attributes:
        marks: how many there are, each with a MARK.
        end: the one that is to be mended, or None.
        long: how many of the others have surely more than `HIGH` objects.
    """

    marks: int
    end: tuple[int, int] | None = None
    long: int = 0

    @property
    def possible_ends(self) -> int:
        """How many of them `possible_ends` counts, at least."""
        return self.long + (self.end is not None)


_NO_BATCHES: Final = Batches(0)


def batches_of(obj: Any, proto: int, of_items: int | None = None) -> Batches:
    """Return the batches of an exact list, dict or set; none for other objects.

    Args:
        obj, proto: what C was given, and the protocol.
        of_items: how many items C was given, and writes in Python's batches; None if it was given `obj`.
    """
    t = type(obj)
    if not (t is list or t is dict or (t is set and proto >= 4)):
        return _NO_BATCHES
    n = len(obj) if of_items is None else of_items
    remainder = n % BATCHSIZE
    end = None
    marks = max(0, n - 1) // BATCHSIZE
    if of_items is not None:
        marks -= remainder == 1 and marks > 0
    else:
        end = end_of(t, n)
        marks += end is not None and remainder == 0
    if t is set:  # its others have no opcode in which there may be a doubt
        return Batches(int(end is not None), end)
    return Batches(marks, end, marks - (end is not None) - (marks > 0 and 1 < remainder <= HIGH))


def content_of(obj: Any, n: int, proto: int) -> bytes | None:
    """Return what stands in the last batch of a list, dict or set, which is of `n` objects; None if not for sure."""
    if n == 0:
        return b""
    last = obj[-1:] if type(obj) is list else next(reversed(obj.items()))
    if not _UNMEMOIZED.issuperset(map(type, last)):
        return None
    return b"".join(
        [
            pack_binint2(BININT2, x)
            if type(x) is int and 255 < x <= 0xFFFF  # the index of most last items, 1 us sooner
            else dumps(x, min(proto, 3))[2 if proto >= 2 else 0 : -1]
            for x in last
        ]
    )


def firsts_of(obj: Any) -> list[Any]:
    """Return with what the batches of a list or dict begin, but for the first one; so do parts of it (`chunks`)."""
    return obj[BATCHSIZE::BATCHSIZE] if type(obj) is list else [*islice(obj, BATCHSIZE, None, BATCHSIZE)]


def neighbours_of(obj: Any, firsts: list[Any]) -> tuple[int, bytes]:
    """Return which opcode stands before, and which may stand behind, the MARKs of batches of a list or dict."""
    return _CLOSES[type(obj)], b"".join({SETITEMS, ADDITEMS, *map(_opens, firsts)})


def beginnings_of(firsts: list[Any], proto: int) -> tuple[bytes, ...]:
    """Return what may stand behind the MARKs of batches of a dict: short texts, which most keys are, as they are.

    Args:
        firsts: with what they begin.
        proto: the protocol, from 1 on.
    """
    begins = {SETITEMS}
    for x in firsts:
        if type(x) is str and len(x) <= _SHORT:
            text = x.encode("utf-8", "surrogatepass")
            head = SHORT_BINUNICODE + bytes((len(text),)) if proto >= 4 else BINUNICODE + pack("<I", len(text))
            begins |= {head + text, BINGET, LONG_BINGET}
        else:
            begins.update(bytes((opcode,)) for opcode in _opens(x))
    return tuple(begins)


#: A text of so many characters has at most 255 bytes.
_SHORT: Final = 63


def _opens(x: Any) -> bytes:
    """Return the opcodes with which the saving of an object may begin."""
    t = type(x)
    if t is tuple and 0 < len(x) <= 3:
        return _opens(x[0]) + _OPENS[id(t)]
    return _OPENS.get(id(t), _ANY)


_UNMEMOIZED: Final = frozenset((NoneType, bool, int, float))
_GETS: Final = BINGET + LONG_BINGET
_ANY: Final = bytes(range(256))
_OPENS: Final = {
    id(NoneType): NONE,
    id(bool): NEWTRUE + NEWFALSE + INT,
    id(int): BININT1 + BININT2 + BININT + LONG1 + LONG4 + LONG,
    id(float): BINFLOAT,
    id(str): SHORT_BINUNICODE + BINUNICODE + BINUNICODE8 + _GETS,
    id(list): EMPTY_LIST + _GETS,
    id(dict): EMPTY_DICT + _GETS,
    id(tuple): EMPTY_TUPLE + MARK + _GETS,
}
_CLOSES: Final[dict[Any, int]] = {list: APPENDS[0], dict: SETITEMS[0], set: ADDITEMS[0]}
