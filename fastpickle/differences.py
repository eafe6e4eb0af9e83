"""What the C pickler writes otherwise than the Python one, although it knows the object; found out afterwards.

    pieces of C --(nothing in them looks like it)-----------------------------------> ours
                --(something may be; what C has memoized says that it is not)-------> ours
                --(there is; the last batches of some containers)--> `mending` -----> ours
                --(there is; it is something else, or not certain)------------------> Python's turn

Up to 3.14 C ends exact containers of some lengths with another batch than Python (`_stdlib.awkward_batches`), and up
to 3.12 it fetches some texts from the memo that Python writes again, at protocol 0.  For a library's pickler there are
names that no dict must have (`hooks.GraftRule`).

Not for: objects that C cannot reduce as Python does; those it never meets (`cpickler`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import compress, islice
from pickle import ADDITEMS, APPENDS, FRAME, MEMOIZE, PROTO, SETITEMS, STACK_GLOBAL
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from ._stdlib import StockPickler, awkward_batches, awkward_escapes, memoized
from .cpickler import LARGE, ROOM, is_by_name
from .hooks import Plan
from .instances import METACLASSES
from .mending import Ends, mend, suspicious

__all__ = ["BATCHSIZE", "made_ours"]

BATCHSIZE: int = StockPickler._BATCHSIZE


def made_ours(pickler: Any, plan: Plan, grafter: Any, obj: Any, of_items: int | None = None) -> bool:
    """Make what C wrote what Python would have written, if need be.

    Args:
        pickler, plan: whose.
        grafter: the C pickler that wrote it; its pieces may be others then.
        obj: what C was given.
        of_items: how many items of `obj` C was given in its place, which it writes in Python's batches.

    Returns:
        Whether it is ours; if not, its pieces are of no use.
    """
    pieces = grafter.pieces
    rule = plan.graft_rule
    proto = plan.proto
    if proto == 0 and awkward_escapes is not None and any(map(awkward_escapes.search, pieces)):
        return False
    n = grafter.held.written
    if proto >= 4 and len(pieces) > 1:  # a large bytes or str is no opcode
        pieces = [p for p in pieces if p[0] == FRAME[0] or p[0] == PROTO[0] or len(p) < len(LARGE)]
    lengths: frozenset[int] = frozenset()
    must_look = False
    if rule.compared is not None:
        names, lengths = rule.compared(pickler, n)
        must_look = len(names) > _FEW_NAMES or any(name.encode() in piece for name in names for piece in pieces)
    table = grafter.table
    if table is not None:
        expected = sum(id(t) not in pickler.memo for t in islice(table, table.counted, None))
        table.counted = len(table)
        if not table.is_sure or sum(piece.count(_NEW_GLOBAL) for piece in pieces) != expected:
            table.is_sure = False  # C may have written a class already when its first instance comes
            must_look = True
    texts = rule.texts[proto]
    has_batches = n >= BATCHSIZE and proto > 0 and bool(awkward_batches)
    ends: Ends = {}
    if has_batches and of_items is None:
        _count_end(ends, obj, proto)
    if not must_look:
        if not has_batches and not texts:
            return True
        t = type(obj)
        if (t is list or t is dict) and (of_items or len(obj)) * 30 < n and _is_flat(plan, obj):
            # A look at each item takes 10 ns; at each byte, for each thing to look for, 0.4 ns.
            must_look = t is dict and not rule.names.isdisjoint(obj)
        else:
            must_look = any(text in piece for text in texts for piece in pieces) or (
                has_batches
                and sum(map(_count_marks, pieces)) != _own_marks(obj, proto, of_items)
                and any(map(suspicious.search, pieces))
            )
    if must_look:
        written = _Written(pickler, grafter)
        if not _are_wanted(pickler, plan, grafter, written, lengths):
            return False
        if has_batches:
            batched = written.of_types(_BATCHED)
            for x in written.among(compress(batched, map(BATCHSIZE.__le__, map(len, batched)))):
                if x is not obj:
                    _count_end(ends, x, proto)
    return not ends or _is_mended(plan, grafter, ends)


#: For so many names it is worth while to look for them in what was written, before the memo is looked at.
_FEW_NAMES: Final = 10


def _count_end(ends: Ends, obj: Any, proto: int) -> bool:
    """Count the end of an exact list, dict or set, if C ends it otherwise than Python; tell whether it does."""
    t = type(obj)
    if (t is list or t is dict or (t is set and proto >= 4)) and len(obj) >= BATCHSIZE and t in awkward_batches:
        remainder = len(obj) % BATCHSIZE
        if remainder in awkward_batches[t]:
            end = _CLOSES[t], 2 * remainder if t is dict else remainder
            ends[end] = ends.get(end, 0) + 1
            return True
    return False


_CLOSES: Final = {list: APPENDS[0], dict: SETITEMS[0], set: ADDITEMS[0]}


def _own_marks(obj: Any, proto: int, of_items: int | None) -> int:
    """Return how many times in an exact list, dict or set a batch with a MARK follows another.

    Args:
        of_items: how many items C was given, and writes in Python's batches; None if it was given `obj`.
    """
    t = type(obj)
    if not (t is list or t is dict or (t is set and proto >= 4)):
        return 0
    if of_items is not None:
        return max(0, (of_items - 1) // BATCHSIZE - (of_items % BATCHSIZE == 1))
    n = len(obj)
    return max(0, (n - 1) // BATCHSIZE) + (n % BATCHSIZE == 0 and _count_end({}, obj, proto))


#: Finds where a batch may follow another: it may be a part of a str or a number as well.
_between_batches = re.compile(rb"\((?<=[eu\x90]\()")


def _count_marks(piece: Any) -> int:
    return len(_between_batches.findall(piece))


class _Written:
    """What C has memoized: each str, class, function, list, dict and set that it wrote, and others."""

    def __init__(self, pickler: Any, grafter: Any) -> None:
        own = vars(grafter)
        self.others = {*map(id, own.values()), id(own), *pickler.memo}
        self.objs = memoized(grafter)
        types = map(type, self.objs)
        # The hash of a type may be anybody's, but for types that C has written.
        self.types = [*map(id, types)] if pickler.memo or type(type(pickler)) is not type else [*types]

    def of_types(self, types: frozenset[Any]) -> list[Any]:
        """Return those of some types, and others of these types."""
        return [*compress(self.objs, map(types.__contains__, self.types))]

    def among(self, objs: Iterable[Any]) -> Iterator[Any]:
        """Yield those among some objects."""
        return (x for x in objs if id(x) not in self.others)


def _are_wanted(pickler: Any, plan: Plan, grafter: Any, written: _Written, lengths: frozenset[int]) -> bool:
    """Tell whether there is nothing among what C has memoized that only Python can write."""
    names = plan.graft_rule.names
    unwanted = plan.graft_rule.unwanted[plan.proto]
    return (
        not (lengths and any(len(x) in lengths for x in written.among(written.of_types(_DICT))))
        and not (names and not names.isdisjoint(written.of_types(_STR)))
        and not (unwanted and any(id(x) in unwanted for x in written.among(written.objs)))
        and (
            grafter.table is None
            or all(is_by_name(pickler, x, type(x)) for x in written.among(written.of_types(_BY_NAME)))
        )
    )


def _types(*types: type) -> frozenset[Any]:
    """Return a set that has some types and their ids in it."""
    return frozenset((*types, *map(id, types)))


_DICT: Final = _types(dict)
_STR: Final = _types(str)
_BATCHED: Final = _types(list, dict, set)
_BY_NAME: Final = _types(*METACLASSES, FunctionType, BuiltinFunctionType)


def _is_mended(plan: Plan, grafter: Any, ends: Ends) -> bool:
    """Tell whether the ends of so many containers are mended."""
    pieces = grafter.pieces
    if grafter.held.written > _MOST_MENDED and grafter.held.room <= ROOM:
        return False
    start = 2 if grafter.is_prefixed else 0  # a frame, and a large bytes
    mended = mend(pieces[start:], plan.proto >= 4, ends)
    if mended is None:
        return False
    pieces[start:] = mended
    return True


#: To mend takes three times as much room, or is done for smaller parts.
_MOST_MENDED: Final = 24 << 20


def _is_flat(plan: Plan, obj: Any) -> bool:
    """Tell whether a container has only items that are no containers; all types in it are known to be harmless."""
    leaves = _LEAVES[plan.proto]
    return leaves.issuperset(map(type, obj)) and (type(obj) is not dict or leaves.issuperset(map(type, obj.values())))


#: By protocol: what C saves by one opcode.
_LEAVES: Final = [
    frozenset(
        (type(None), bool, int, float, str, *((bytes,) if proto >= 3 else ()), *((bytearray,) if proto >= 5 else ()))
    )
    for proto in range(6)
]
#: What C writes for a function or class that it has not written before, from protocol 4 on.
_NEW_GLOBAL: Final = STACK_GLOBAL + MEMOIZE
