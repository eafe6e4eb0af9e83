"""What the C pickler writes otherwise than the Python one, although it knows the object; found out afterwards.

    pieces, memo of C --> is_ours(): nothing of this kind is in it

Up to 3.14 C ends exact containers of some lengths with another batch than Python (`_stdlib.awkward_batches`), and up
to 3.12 it fetches some texts from the memo that Python writes again, at protocol 0.  For a library's pickler there are
names that no dict must have (`hooks.GraftRule`).

Not for: objects that C cannot reduce as Python does; those it never meets (`cpickler`).
"""

from __future__ import annotations

import re
from itertools import compress, islice
from operator import itemgetter
from pickle import FRAME, MEMOIZE, PROTO, STACK_GLOBAL
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from ._stdlib import CPickler, StockPickler, awkward_batches, awkward_escapes
from .cpickler import LARGE, METACLASS_IDS, Grafter, Held, is_by_name
from .hooks import Plan

__all__ = ["BATCHSIZE", "boundaries", "empty_batch", "is_awkward_length", "is_ours", "own_batches"]

BATCHSIZE: int = StockPickler._BATCHSIZE


def is_ours(pickler: Any, plan: Plan, grafter: Any, obj: Any = None, batches: int = 0) -> bool:
    """Tell whether what C wrote is what Python would have written.

    Args:
        pickler, plan: whose.
        grafter: the C pickler that wrote it.
        obj: the container whose items C was given, which are in Python's batches then.
        batches: how many batches of them, with a MARK, follow another one.
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
    must_fetch = False
    if rule.compared is not None:
        names, lengths = rule.compared(pickler, n)
        must_fetch = len(names) > _FEW_NAMES or any(name.encode() in piece for name in names for piece in pieces)
    table = grafter.table
    if table is not None:
        expected = sum(id(t) not in pickler.memo for t in islice(table, table.counted, None))
        table.counted = len(table)
        if not table.is_sure or sum(piece.count(_NEW_GLOBAL) for piece in pieces) != expected:
            table.is_sure = False  # C may have written a class already when its first instance comes
            must_fetch = True
    has_batches = n >= BATCHSIZE and proto > 0 and bool(awkward_batches)
    texts = rule.texts[proto]
    if not must_fetch:
        if not has_batches and not texts:
            return True
        if n >= BATCHSIZE:
            # Whichever is cheaper: a look at each item of one container, 10 ns; at each entry of the memo, 170 ns, of
            # which we know how many bytes its table has; or at each byte, for each thing to look for 0.4 ns.
            if obj is not None and len(obj) * 30 < n and _is_flat(plan, obj):
                return not rule.names or type(obj) is not dict or rule.names.isdisjoint(obj)
            must_fetch = (grafter.__sizeof__() - _SIZE) * 10 < n * (has_batches + len(texts))
    if must_fetch:
        return _is_ours_by_memo(pickler, plan, grafter, obj, lengths)
    return not any(text in piece for text in texts for piece in pieces) and (
        not has_batches
        or sum(map(_count_marks, pieces)) == batches
        or _is_ours_by_memo(pickler, plan, grafter, obj, lengths)
    )


def _is_ours_by_memo(pickler: Any, plan: Plan, grafter: Any, obj: Any, lengths: frozenset[int]) -> bool:
    """Tell the same from what C has memoized: each str, class, function, list, dict and set that it wrote."""
    names = plan.graft_rule.names
    unwanted = plan.graft_rule.unwanted[plan.proto]
    grafter.entries = grafter.memo.copy()
    before = len(pickler.memo)
    entries = grafter.entries.values()
    objs = [x for i, x in entries if i >= before] if before else [*map(itemgetter(1), entries)]
    types = [*map(id, map(type, objs))]  # by id: the hash of a type may be anybody's
    for x in compress(objs, map(_BATCHED.__contains__, types)):
        t = type(x)
        if x is not obj and plan.proto and is_awkward_length(x, t):
            return False
        if t is dict and len(x) in lengths:
            return False
    if names and not names.isdisjoint(compress(objs, map(id(str).__eq__, types))):
        return False
    if unwanted and not unwanted.isdisjoint(map(id, objs)):
        return False
    return grafter.table is None or all(
        is_by_name(pickler, x, type(x)) for x in compress(objs, map(_BY_NAME.__contains__, types))
    )


_BATCHED: Final = frozenset(map(id, (list, dict, set)))
_BY_NAME: Final = METACLASS_IDS | frozenset(map(id, (FunctionType, BuiltinFunctionType)))


def _is_flat(plan: Plan, obj: Any) -> bool:
    """Tell whether a container has only items that are no containers; all types in it are known to be harmless."""
    leaves = _LEAVES[plan.proto]
    return leaves.issuperset(map(type, obj)) and (type(obj) is not dict or leaves.issuperset(map(type, obj.values())))


#: For so many names it is worth while to look for them in what was written, before the memo is fetched.
_FEW_NAMES: Final = 3
#: By protocol: what C saves by one opcode.
_LEAVES: Final = [
    frozenset(
        (type(None), bool, int, float, str, *((bytes,) if proto >= 3 else ()), *((bytearray,) if proto >= 5 else ()))
    )
    for proto in range(6)
]
_SIZE: Final = Grafter(Held()).__sizeof__() if CPickler is not None else 0
#: What C writes for a function or class that it has not written before, from protocol 4 on.
_NEW_GLOBAL: Final = STACK_GLOBAL + MEMOIZE
#: Finds where a batch may follow another: it may be a part of a str or a number as well.
_between_batches = re.compile(rb"\((?<=[eu\x90]\()")


def _count_marks(piece: Any) -> int:
    return len(_between_batches.findall(piece))


def is_awkward_length(obj: Any, t: type) -> bool:
    """Tell whether C ends an exact list, dict or set of that length otherwise than Python."""
    n = len(obj)
    return n >= BATCHSIZE and t in awkward_batches and n % BATCHSIZE in awkward_batches[t]


def empty_batch(plan: Plan, obj: Any, t: type) -> int:
    """Return the length of the empty batch with which C ends a dict or set of some lengths."""
    is_batched = (t is dict and plan.proto >= 1) or (t is set and plan.proto >= 4)
    return 2 if is_batched and len(obj) % BATCHSIZE == 0 and is_awkward_length(obj, t) else 0


def own_batches(plan: Plan, obj: Any, t: type) -> tuple[Any, int]:
    """Return a container that C wrote itself as Python would, or will have when its tail is cut; and `boundaries`."""
    if not plan.proto or not (t is list or t is dict or (t is set and plan.proto >= 4)):
        return None, 0
    return obj, (len(obj) - 1) // BATCHSIZE + (1 if empty_batch(plan, obj, t) else 0)


def boundaries(n: int) -> int:
    """Return how many times a batch with a MARK follows another, among `n` items that are written as Python does."""
    return max(0, (n - 1) // BATCHSIZE - (n % BATCHSIZE == 1))
