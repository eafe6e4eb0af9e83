"""Lists and tuples of numbers beside other things: by the C pickler, without a memo, since nothing in them needs one.

    may_be_numbers(obj) --- a few items are numbers --> numbers(obj) --+-- C has memoized nothing but obj: spliced in
                                                                      +-- there was something else: not tried again

To copy the memo to C and back takes as long as a hundred numbers for each ten of its entries, so that `graft.whole`
is no gain where the memo is large.  What C writes does not depend on it if no object in there is ever looked up: that
is known afterwards, from C's own memo.

Not for: what is in the memo, or may get there (`graft`).
"""

from __future__ import annotations

from pickle import BINGET
from typing import Any, Final

from . import hooks
from .batches import end_of
from .cpickler import give_back, is_usual_memo, written_by
from .differences import made_ours
from .doubts import doubt
from .graft import is_for_batches, may_graft
from .hooks import Plan
from .splicing import padding, write

__all__ = ["may_be_numbers", "numbers"]

#: Fewer numbers are written by Python as soon as C is asked.
_FEWEST: Final = 200
#: So many are looked at first.
_LOOKED_AT: Final = 8
_GET_OF_FIRST: Final = BINGET + b"\0"


def may_be_numbers(pickler: Any, plan: Plan, obj: Any) -> bool:
    """Tell whether a container is a list or tuple, and some of its items are numbers, True, False or None."""
    t = type(obj)
    if t is not list and t is not tuple:
        return False
    n = len(obj)
    dump = pickler._fastpickle_dump
    return (
        n >= _FEWEST
        and plan.proto >= 4
        and not dump.has_refused_numbers
        and dump.root is not obj
        and not is_for_batches(obj, t)
        and hooks.NUMBER_IDS.issuperset(map(id, map(type, obj[:: n // _LOOKED_AT])))
        and id(type(obj[-1])) in hooks.NUMBER_IDS
    )


def numbers(pickler: Any, plan: Plan, obj: Any) -> bool:
    """Let C write a list or tuple that is not in the memo, and may be of numbers.

    Args:
        pickler: one that saves it as a part.
        plan: the plan in force, at protocol 4 or higher.
        obj: the list or tuple.

    Returns:
        Whether it is written; if not, nothing is.
    """
    framer = pickler.framer
    dump = pickler._fastpickle_dump
    memo = pickler.memo
    if (
        framer.current_frame is None
        or not (dump.is_usual or is_usual_memo(memo))  # somebody may have put a number there
        or not may_graft(pickler, plan)
    ):
        return False
    args = padding(framer, plan)
    if args is not None:
        grafter = written_by(pickler, plan, {}, dump.known, obj, args)
        if (
            grafter is not None
            and _needed_no_memo(grafter, obj)
            and (end_of(type(obj), len(obj)) is None or made_ours(pickler, plan, grafter, obj))
            and write(framer, plan, grafter.pieces, 2)
        ):
            memo[id(obj)] = len(memo), obj
            give_back(grafter)
            return True
        dump.has_refused_numbers = True
        doubt(pickler)  # as in `graft.whole`
    return False


def _needed_no_memo(grafter: Any, obj: Any) -> bool:
    """Tell whether C has memoized nothing but `obj`, and has not fetched that: it may be in itself."""
    return [*grafter.memo.copy()] == [id(obj)] and (
        not any(_GET_OF_FIRST in piece for piece in grafter.pieces[2:])
        or hooks.NUMBER_IDS.issuperset(map(id, {*map(type, obj)}))
    )
