"""Lists and tuples of numbers beside other things: by the C pickler, without a memo, since nothing in them needs one.

    may_try_numbers(obj) --> numbers(obj) --+-- C has memoized nothing but obj: spliced in
                                            +-- there was something else: not tried again

To copy the memo to C and back takes as long as a hundred numbers for each ten of its entries, so that `graft.whole`
is no gain where the memo is large.  What C writes does not depend on it if no object in there is ever looked up: that
is known afterwards, from C's own memo.

Not for: what is in the memo, or may get there (`graft`).
"""

from __future__ import annotations

from pickle import BINGET
from typing import Any, Final

from .. import hooks
from ..doubts import doubt
from ..graft import part_by, put_part
from ..hooks import Plan
from ..objects.known import extension_registry
from ..objects.last import last
from .batches import end_of
from .cpickler import give_back, is_usual_memo
from .differences import made_ours
from .offers import FEWEST, may_graft

__all__ = ["may_try_numbers", "numbers"]

#: For more than so many items, that are written twice if one is no number, to copy a memo of few entries is nothing.
_MANY: Final = 20_000
_PER_ENTRY: Final = 64
#: Up to which an int is written by BININT1 or BININT2.
_SMALL: Final = 0xFFFF
#: So many bytes one of those takes at the most, and another number nearly always.
_BYTES_OF_SMALL: Final = 3
_BYTES: Final = 9
_GET_OF_FIRST: Final = BINGET + b"\0"


def may_try_numbers(pickler: Any, plan: Plan, obj: Any) -> bool:
    """Tell whether it is worth a try to write a list or tuple as numbers.

    Args:
        pickler, plan: as for `numbers`.
        obj: the list or tuple, of which some items are numbers, True, False or None.
    """
    n = len(obj)
    entries = len(pickler.memo)
    dump = pickler._fastpickle_dump
    return (
        n >= FEWEST
        and plan.proto >= 4
        and not dump.has_refused_numbers
        and (dump.is_usual or n >= entries)  # which is looked at
        and (n <= _MANY or n <= entries * _PER_ENTRY)
        and dump.root is not obj
        and not last.skips_numbers()
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
    frame = framer.current_frame
    if frame is None or extension_registry or not may_graft(pickler, plan):  # a class in there is not memoized
        return False
    if not dump.is_usual:  # somebody may have put a number there
        if not is_usual_memo(pickler, memo):
            return False
        dump.is_usual = True  # until somebody's code runs again
    is_small = type(obj) is tuple or _are_small(obj)
    given = obj if is_small else obj[:]
    grafter = part_by(pickler, plan, {}, given, len(obj) * (_BYTES_OF_SMALL if is_small else _BYTES))
    if (
        grafter is not None
        and [*grafter.memo.copy()] == [id(given)]
        and (given is not obj or not _may_be_in_itself(obj, grafter, frame))
        and (end_of(type(obj), len(given)) is None or made_ours(pickler, plan, grafter, given))
        and put_part(pickler, plan, grafter)
    ):
        memo[id(obj)] = len(memo), obj
        give_back(grafter)
        return True
    dump.has_refused_numbers = True
    last.remember_no_numbers()
    doubt(pickler, has_run=True)  # as in `graft.whole`
    return False


def _are_small(obj: list[Any]) -> bool:
    """Tell whether a few items are ints that are written without any byte that looks like a GET of the list.

    Else C is given a copy, so that it memoizes the list too, if that is in itself.
    """
    try:
        x, y, z = obj[0], obj[len(obj) // 2], obj[-1]
    except IndexError:  # another thread has emptied it
        return False
    return type(x) is type(y) is type(z) is int and 0 <= x <= _SMALL and 0 <= y <= _SMALL and 0 <= z <= _SMALL


def _may_be_in_itself(obj: Any, grafter: Any, frame: Any) -> bool:
    """Tell whether C may have fetched a list of which it has memoized nothing else.

    Args:
        obj: the list, or a tuple, which is in itself only if there is a list in it, too.
        grafter: the C pickler.
        frame: ours, for which there are as many bytes in a prefix, which are passed over.
    """
    start = frame.tell() if grafter.is_spliced else 0
    for piece in grafter.pieces[2:] if grafter.is_spliced else grafter.pieces:
        if piece.find(_GET_OF_FIRST, start) >= 0:
            return not hooks.NUMBER_IDS.issuperset(map(id, {*map(type, obj)}))
        start = 0
    return False
