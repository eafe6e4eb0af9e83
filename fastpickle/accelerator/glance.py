"""A glance at what C wrote: whether it is ours, as far as that is found out sooner than by reading all of it.

    little, or few containers --+-- nothing of that kind can be in it ----------------> ours
                                +-- only the last batch of the whole, which is mended -> ours
    anything else ------------------------------------------------------------------> `differences`

After most dumps that is all there is to do, and for a small one it is what a dump takes beside C: of a whole dump fewer
questions are asked first (`at_first_glance`), of a part of one all of them (`is_soon_ours`).

Not for: being sure of more (`differences`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from itertools import chain
from pickle import DICT, EMPTY_DICT, MARK, MEMOIZE
from types import NoneType
from typing import Any, Final

from .._stdlib import BATCHSIZE, UNTRACKED_DICTS_ARE_FLAT, CPickler, awkward_batches, memoized
from ..hooks import STOCK_RULE, Plan
from ..rules import GraftRule
from .batches import batches_of, content_of, end_of
from .cpickler import LARGE_TABLE, Grafter, Held
from .mending import mend_last, place_of_last
from .reading import ends_in, find_doubtful, has_ends, has_text

__all__ = [
    "DICTS",
    "LEAST",
    "PER_TABLE_BYTE",
    "SIZE",
    "SOON_READ",
    "are_flat_rows",
    "at_first_glance",
    "is_flat",
    "is_of_large_atoms",
    "is_soon_ours",
    "is_untracked",
]


def is_soon_ours(pickler: Any, plan: Plan, grafter: Any, obj: Any, n: int, found: list[list[int]]) -> bool:
    """Tell whether what C wrote is ours, or is now, if that is soon found out: it is little, or has few containers.

    Args:
        pickler, plan: whose.
        grafter: the C pickler that wrote it; its last piece may be another then.
        obj: what C was given, whole.
        n: how many bytes it wrote.
        found: gets what `find_doubtful` finds in the last piece, if that is asked.

    Returns:
        Whether it is ours; if not, that is to be found out (`differences`), and nothing has changed.
    """
    pieces = grafter.pieces
    proto = plan.proto
    is_spliced = grafter.is_spliced
    piece = pieces[-1]
    rule = plan.graft_rule
    t = type(obj)
    is_little = n < SOON_READ and len(pieces) == (3 if is_spliced and proto >= 4 else 1)
    others: list[Any] | None = None  # than `obj`: containers, if they are found sooner than what is in the bytes
    before = pickler.memo
    if n >= BATCHSIZE and t is dict and is_untracked(obj, grafter):
        others = []
    elif n >= BATCHSIZE and len(before) <= _FEW_BEFORE:
        table = grafter.__sizeof__() - SIZE
        is_small = table * PER_TABLE_BYTE < n
        if t is list and table > 16 * len(obj) > LARGE_TABLE and is_flat(obj, t, proto, n):
            others = []  # to look at the items takes 7 ns for each, at what is memoized 13 ns
        elif table < LARGE_TABLE and (is_small or n > 4096):  # a table may have been larger before
            objs = memoized(grafter)
            if is_small or len(objs) * 32 * PER_TABLE_BYTE < n:
                others = [  # most are texts, or lists: to compare takes half as long as to look for the id
                    x
                    for x in objs
                    if (u := type(x)) is not str and (u is dict or u is list or u is set) and x and x is not obj
                ]
                if before:
                    others = [x for x in others if id(x) not in before]
        if others is None and t is list and proto >= 4 and _are_small_sets(obj, grafter):
            others = []
    if others is None and not is_little:
        return False
    if rule is not STOCK_RULE:
        text = DICTS[proto]
        dicts: list[Any] | None = None
        if others is not None:
            dicts = [x for x in others if type(x) is dict]
            if t is dict:
                dicts.append(obj)
        elif t is dict and not has_text(piece, text, piece.index(text) + 1):
            dicts = [obj]
        if (dicts or (dicts is None and has_text(piece, text))) and _may_be_unwanted(pickler, plan, grafter, dicts, n):
            return False
    if n < BATCHSIZE or not proto or not awkward_batches:
        return True
    is_long_inside = others is None or (len(others) > 0 and max(map(len, others)) >= BATCHSIZE)
    end = None
    if t is list or t is dict or (t is set and proto >= 4):
        end = end_of(t, len(obj))
    if end is None and not is_long_inside:
        return True
    behind = 2 if is_spliced else 1  # BUILD, STOP
    content = None if end is None or is_long_inside else content_of(obj, end[1], proto)
    if end is not None and content is not None:
        mark = place_of_last(piece, end, content, behind, proto >= 4)
        if not mark:  # another thread has changed it
            return False
    elif not is_little:
        return False
    else:
        place = _place_by_marks(piece, obj, proto, end, found)
        if place is None:
            return False
        if end is None:
            return True
        mark = place
    pieces[-1] = mend_last(piece, mark, end, behind, proto >= 4)
    return True


def _place_by_marks(
    piece: Any, obj: Any, proto: int, end: tuple[int, int] | None, found: list[list[int]]
) -> int | None:
    """Return where the last batch of `obj` begins in the one piece of it, if that is to be mended; else any place.

    None if there may be another one in it that is.
    """
    # What is sought stands behind a batch, which has a byte for each item, at least.
    doubtful = find_doubtful(piece, BATCHSIZE, ends=lambda: ends_in((piece,), proto))
    found.append(doubtful)
    own = 0 if end is None else 1  # at least
    if len(doubtful) > own and len(doubtful) > batches_of(obj, proto).marks:
        return None
    mark = doubtful[-1] if doubtful else 0
    if end is not None and (piece[mark] != MARK[0] or piece[mark - 1] != end[0]):
        return None  # another thread has changed its length
    return mark


def at_first_glance(
    pieces: list[bytes],
    grafter: Any,
    obj: Any,
    proto: int,
    rule: GraftRule,
    lengths: tuple[int, ...] | None,
    found: list[list[int]],
) -> bytes | None:
    """Return what C wrote of a whole dump, as Python would; None if that is not told by the few looks that are taken.

    It asks what `is_soon_ours` asks.  Behind what C does each step takes twice as long as it does in a loop, so there
    are few, and no call that is not needed.

    Args:
        pieces: what C wrote.
        grafter: the C pickler that wrote it, before which nothing was memoized.
        obj: what is dumped.
        proto: the protocol, from 1 on.
        rule: the pickler's.
        lengths: as for `GraftRule.is_free`; None if there are none.
        found: gets what `find_doubtful` finds, if that is asked.
    """
    piece = pieces[-1]
    if rule is STOCK_RULE and not awkward_batches:
        return piece if len(pieces) == 1 else b"".join(pieces)
    t = type(obj)
    if (t is not list and t is not dict and t is not tuple) or grafter.table is not None:
        return None
    n = len(obj)
    end = end_of(t, n) if n >= BATCHSIZE else None
    held: Sequence[Any] | None = None  # the containers in it, and itself
    if t is dict and is_untracked(obj, grafter):
        held = (obj,)
    elif (size := grafter.__sizeof__()) <= _SMALL_TABLE:
        held = [x for x in memoized(grafter) if id(type(x)) in _LONGEST]
        for x in held:
            if len(x) > _LONGEST[id(type(x))] and x is not obj:
                return None
    elif t is list and size - SIZE > 16 * n > LARGE_TABLE and is_flat(obj, t, proto, sum(map(len, pieces))):
        held = ()
    elif len(piece) >= SOON_READ or len(pieces) > 1:
        return None
    if rule is not STOCK_RULE:
        if held is None:
            if has_text(piece, DICTS[proto]):
                return None
        elif dicts := [len(x) for x in held if type(x) is dict]:  # no key is asked whether it is a name
            if len(pieces) > 1 or any(length in dicts for length in lengths or ()):
                return None
            for text in rule.texts_of_names[proto]:
                if has_text(piece, text):
                    return None
    if held is not None:
        mark = 0
        if end is not None:
            content = content_of(obj, end[1], proto)
            mark = 0 if content is None else place_of_last(piece, end, content, 1, proto >= 4)
            if not mark:
                return None
    elif end is None and (
        piece.find(MARK, BATCHSIZE) < 0  # as in most lists of texts
        or (len(piece) <= _SHORT and not has_ends(piece, BATCHSIZE))
    ):
        return piece
    else:
        place = _place_by_marks(piece, obj, proto, end, found)
        if place is None:
            return None
        mark = place
    if end is not None:
        piece = mend_last(piece, mark, end, 1, proto >= 4)
    if len(pieces) == 1:
        return piece
    return b"".join((*pieces[:-1], piece))


def is_untracked(obj: dict[Any, Any], grafter: Any) -> bool:
    """Tell whether an exact dict has no list, dict or set in it, if the garbage collector knows that.

    Args:
        obj: what `grafter` wrote.
        grafter: a C pickler that tells whether it has reduced an instance: that may have anything in it, and need
            not be tracked, like an array of objects.
    """
    return (
        UNTRACKED_DICTS_ARE_FLAT
        and not gc.is_tracked(obj)
        and not (grafter.known or grafter.asked)  # it may have reduced an instance; those of dill's types are not known
        and grafter.table is None
    )


def is_flat(obj: Any, t: type, proto: int, n: int = sys.maxsize) -> bool:
    """Tell whether a list or dict is of atoms only, if that is found sooner than what is in the `n` bytes of it."""
    if not (t is list or t is dict) or len(obj) * 30 > n:
        return False
    leaves = _LEAVES[proto]  # each takes 7 ns; all types in what C wrote are known to be harmless
    parts = (obj,) if t is list else (obj, obj.values())
    return all(type(next(iter(part), obj)) in leaves for part in parts) and all(
        leaves.issuperset({*map(type, part)}) for part in parts
    )


def is_of_large_atoms(obj: Any, t: type, proto: int, n: int) -> bool:
    """Tell whether an object is an atom, or a container of some, and nothing in it is written otherwise by C.

    Args:
        obj, t, proto: what is dumped, its type, and the protocol.
        n: how many bytes it may be of; if those are few for the number of items, they are not looked at.
    """
    leaves = _LEAF_IDS[proto]
    if id(t) in leaves:
        return True
    if not (t is list or t is tuple or t is dict) or len(obj) * _LARGE_ATOM > n or end_of(t, len(obj)) is not None:
        return False
    parts = (obj, obj.values()) if t is dict else (obj,)
    return all(leaves.issuperset(map(id, map(type, part))) for part in parts)


def are_flat_rows(obj: Any, proto: int, table: int) -> bool:
    """Tell whether an object is a list of lists or tuples of atoms, each of less than a batch, if that is soon found.

    Args:
        obj: what C wrote.
        proto: the protocol.
        table: how many bytes the table of the memo has; if those are few, what is memoized is looked at sooner.
    """
    t = type(obj[0]) if type(obj) is list and obj else NoneType
    most = table // (_BYTES_PER_ITEM if table < _LARGE else _BYTES_PER_ITEM_OF_MANY)
    if not (t is list or t is tuple) or len(obj) * 2 > most or {*map(type, obj)} != {t}:
        return False
    lengths = [*map(len, obj)]
    if max(lengths, default=0) >= BATCHSIZE or len(obj) * 2 + sum(lengths) > most:
        return False
    return _LEAVES[proto].issuperset({*map(type, chain.from_iterable(obj))})  # as in `is_flat`


def _are_small_sets(obj: list[Any], grafter: Any) -> bool:
    """Tell whether a list has sets of less than a batch in it, and nothing else; a set has no list, dict or set in it.

    So it is from protocol 4 on; before, a frozenset in it is reduced to a list.

    Args:
        obj: what `grafter` wrote.
        grafter: a C pickler that tells whether it has reduced an instance, for that may have anything in it.
    """
    return (
        type(obj[0] if obj else None) is set
        and not (grafter.known or grafter.asked)  # as in `is_untracked`
        and {*map(type, obj)} == _SETS
        and max(map(len, obj)) < BATCHSIZE
    )


_SETS: Final = {set}


def _may_be_unwanted(pickler: Any, plan: Plan, grafter: Any, dicts: list[Any] | None, n: int) -> bool:
    """Tell whether there may be a dict with a name that only Python can write, or one that dill compares.

    Args:
        pickler, plan: whose.
        grafter: the C pickler that wrote `n` bytes.
        dicts: all there are in them, or more; None if that is not known, then they are one piece.
        n: how many.
    """
    rule = plan.graft_rule
    if dicts is None and pickler.memo:
        return True  # the names may be in that
    if dicts is None or (len(dicts) * _PER_DICT > n and not pickler.memo):
        pieces = grafter.pieces[2:] if grafter.is_spliced and plan.proto >= 4 else grafter.pieces
        has_name = any(has_text(piece, text) for piece in pieces for text in rule.texts_of_names[plan.proto])
    else:
        has_name = True
    if has_name and (dicts is None or any(name in x for name in rule.names for x in dicts)):
        return True
    if rule.lengths is None:
        return False
    lengths = rule.lengths(pickler)
    if not lengths:  # it may not graft any more
        return True
    if n < LEAST * min(lengths):
        return False
    if dicts is None:
        dicts = [x for x in memoized(grafter) if type(x) is dict]
    return not {*map(len, dicts)}.isdisjoint(lengths)


#: So much that was memoized before is looked at with what C has memoized now.
_FEW_BEFORE: Final = 100
#: So many bytes are searched for a name in the time that it takes to ask a dict for it.
_PER_DICT: Final = 200
#: An item is looked at in the time that an entry in so many bytes of the memo's table takes, which is 12 ns and 26 ns,
#: or 70 ns in a table of so many bytes.
_BYTES_PER_ITEM: Final = 24
_BYTES_PER_ITEM_OF_MANY: Final = 16
_LARGE: Final = 1 << 20
#: How many items these may have, so that the last batch is the first one.
_LONGEST: Final = {id(t): BATCHSIZE - (0 in awkward_batches.get(t, ())) for t in (list, dict, set)}
#: So few bytes are read sooner than it takes to ask for the memo.
SOON_READ: Final = 24_000
#: In so few texts of two bytes are sought sooner than it takes to find out which MARKs are to be looked at.
_SHORT: Final = 6_000
#: By protocol: what stands in the bytes if there is a dict.
DICTS: Final = [MARK + DICT] + [EMPTY_DICT] * 3 + [EMPTY_DICT + MEMOIZE] * 2
#: So many bytes a key and its value take at least, but for one None, True, False and () as a key.
LEAST: Final = 2
#: Entries of 32 bytes in C's table of the memo take up to 100 ns each to be looked at; 256 bytes are read in that time.
PER_TABLE_BYTE: Final = 8
#: What a C pickler takes without the table.
SIZE: Final = Grafter(Held()).__sizeof__() if CPickler is not None else 0
#: An item of fewer bytes is joined in not much more than the 50 ns that a look at it takes.
_LARGE_ATOM: Final = 4000
#: By protocol: what C saves by one opcode.
_LEAVES: Final = [
    frozenset(
        (type(None), bool, int, float, str, *((bytes,) if proto >= 3 else ()), *((bytearray,) if proto >= 5 else ()))
    )
    for proto in range(6)
]
#: By protocol: their ids, since before C has written it the hash of a type may be anybody's (`is_flat` comes after);
#: none at 0, where C escapes some texts otherwise.
_LEAF_IDS: Final = [frozenset(map(id, leaves if proto else ())) for proto, leaves in enumerate(_LEAVES)]
#: With a table of so many bytes it has memoized next to nothing.
_SMALL_TABLE: Final = SIZE + 1024
