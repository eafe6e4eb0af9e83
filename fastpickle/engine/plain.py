"""Long containers of plain data, and sets: a saver for each type, which the loop calls.

    saver(obj) --+-- C                                              (`graft`, if it is long enough and C can)
                 +-- its opening, batches of 1000 items, their end:
                       runs of items of one shape                   (`parts`)
                       what is in between                           (`loop.save_all`)

The source of what is written is Lib/pickle.py of the running Python.

Not for: short lists, dicts and tuples, which the loop saves itself (`loop`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from operator import length_hint
from pickle import (
    ADDITEMS,
    APPEND,
    APPENDS,
    BYTEARRAY8,
    EMPTY_DICT,
    EMPTY_LIST,
    EMPTY_SET,
    EMPTY_TUPLE,
    MARK,
    MEMOIZE,
    SETITEM,
    SETITEMS,
)
from typing import Any, Final

from .. import graft, hooks
from .._stdlib import ASKS_AGAIN, BATCHSIZE, batchsize_now, note, note_value, stock_methods
from ..accelerator import chunks
from ..accelerator.offers import FEWEST, is_for_batches
from ..accelerator.unmemoized import may_try_numbers, numbers
from ..accelerator.weights import full_weight, weight
from ..doubts import holds, outside
from ..graft import ENTRIES_PER_INSTANCE
from ..hooks import ATOM_IDS, NUMBER_IDS, PLAIN_IDS, Plan, Write
from ..opcodes import pack_bytearray8
from .levels import end_frozenset, end_known_tuple, end_tuple, put
from .loop import save_all
from .parts import parts

__all__ = ["append_batches", "save_dict", "set_batches"]

#: So many items of a long container are looked at first.
_LOOKED_AT: Final = 6


# The savers.  Each is called by the loop with an object that is not in the memo.


def _is_saved_whole(pickler: Any, plan: Plan, obj: Any) -> bool:
    """Tell whether a container that is not empty is saved: by C, or hook by hook if the offer ended the plan."""
    if plan.graft_rule is None:
        return False
    n = len(obj)
    fewest = FEWEST + len(pickler.memo)  # the memo is bound to no local: who has hold of it is counted
    if n >= FEWEST and (type(obj) is list or type(obj) is tuple):
        t = type(next(iter(obj), None))
        if id(t) in NUMBER_IDS:
            some = (*obj[:: n // _LOOKED_AT], *obj[-1:])
            if NUMBER_IDS.issuperset(map(id, map(type, some))) and may_try_numbers(pickler, plan, obj):
                if numbers(pickler, plan, obj):
                    return True
                if not holds(pickler, plan):
                    plan.save(pickler, obj)
                    return True
        elif n < fewest and id(t) in ATOM_IDS and id(type(next(reversed(obj), None))) in ATOM_IDS:
            return False  # so are the others, most likely: it weighs no more than that
    n = weight(obj, pickler.memo)
    if n < fewest:  # sooner than `whole` says so
        dump = pickler._fastpickle_dump
        if dump.offers_to_skip:
            return False
        if dump.weights_to_skip:
            dump.weights_to_skip -= 1
            return False
        n = full_weight(obj, pickler.memo)
        if n < fewest:  # so it will be with the next ones, most likely
            dump.weights_to_skip = dump.light = min(2 * dump.light + 1, 63)
            return False
        dump.light = 0
    if not graft.whole(pickler, plan, obj, n):
        if holds(pickler, plan):
            return False
        plan.save(pickler, obj)
    return True


def _save_list(pickler: Any, plan: Plan, obj: list[Any], write: Write) -> None:
    n = len(obj)
    is_long = is_for_batches(obj, list)
    if n and not is_long and _is_saved_whole(pickler, plan, obj):
        return
    memo = pickler.memo
    i = len(memo)
    write(EMPTY_LIST + put(plan.proto, i))
    memo[id(obj)] = i, obj
    done = 0
    if plan.graft_rule is not None and (is_long or n >= 2 * BATCHSIZE):
        done = chunks.batches(pickler, plan, obj)
    if not done:
        append_batches(pickler, plan, iter(obj), obj, write)
    elif done < n:
        append_batches(pickler, plan, islice(obj, done, None), obj, pickler.framer.write, done)


hooks.savers[list] = 1, _save_list


def append_batches(pickler: Any, plan: Plan, items: Iterator[Any], obj: Any, write: Write, start: int = 0) -> None:
    """Append the items of `obj`, `start` and on, in batches of 1000, looking again for more after each full one."""
    size = BATCHSIZE
    while batch := list(islice(items, size)):
        n = len(batch)
        if n > 1:
            write(MARK)
        unsaved = iter(batch)
        t = type(batch[0])
        is_new = (
            not start
            and plan.graft_rule is not None
            and id(t) not in PLAIN_IDS
            and graft.is_of_new_class(pickler, plan, batch)
        )
        is_by_c = False
        try:
            if is_new:
                write = save_all(pickler, plan, islice(unsaved, 1), 1, write)
                if holds(pickler, plan) and id(t) in pickler.memo:
                    is_by_c = graft.rest(pickler, plan, batch, t)
                    write = pickler.framer.write
            if not is_by_c:
                for part, k in parts(pickler, plan, batch, unsaved, is_rest=start > 0):
                    write = save_all(pickler, plan, part, k, write)
        except BaseException as exc:
            note(exc, obj, "item", start + n - length_hint(unsaved) - 1)
            raise
        if not is_by_c:
            write(APPENDS if n > 1 else APPEND)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if n < size:
            if ASKS_AGAIN:
                next(items, None)
            return
        start += n
        if is_by_c and type(obj) is list:  # so it is with the next ones, most likely
            start += chunks.batches(pickler, plan, obj, start, ENTRIES_PER_INSTANCE)
            items = islice(obj, start, None)
            write = pickler.framer.write


def save_dict(pickler: Any, plan: Plan, obj: dict[Any, Any], write: Write) -> None:
    n = len(obj)
    is_long = is_for_batches(obj, dict)
    if n and not is_long and _is_saved_whole(pickler, plan, obj):
        return
    memo = pickler.memo
    i = len(memo)
    write(EMPTY_DICT + put(plan.proto, i))
    memo[id(obj)] = i, obj
    done = 0
    if plan.graft_rule is not None and (is_long or n >= 2 * BATCHSIZE):
        done = chunks.batches(pickler, plan, obj)
    if not done:
        set_batches(pickler, plan, chain.from_iterable(obj.items()), obj, write)
    elif done < n:
        items = chain.from_iterable(islice(obj.items(), done, None))
        set_batches(pickler, plan, items, obj, pickler.framer.write)


hooks.savers[dict] = 1, save_dict


def set_batches(pickler: Any, plan: Plan, items: Iterator[Any], obj: Any, write: Write) -> None:
    """Set the items of `obj`, key and value in turn, in batches of 1000 pairs.

    A dict that has changed its size when the next batch is looked for raises RuntimeError, as in stock.
    """
    size = BATCHSIZE
    is_rest = False
    while batch := list(islice(items, 2 * size)):  # in one call: another thread may change a dict between two
        n = len(batch)
        if n > 2:
            write(MARK)
        unsaved = iter(batch)
        try:
            for part, k in parts(pickler, plan, batch, unsaved, 2, is_rest):
                write = save_all(pickler, plan, part, k, write)
        except BaseException as exc:
            _note_item(exc, obj, batch, unsaved)
            raise
        write(SETITEMS if n > 2 else SETITEM)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if n < 2 * size:
            return
        is_rest = True


def _note_item(exc: BaseException, obj: Any, batch: list[Any], unsaved: Iterator[Any]) -> None:
    """Note in `exc` which item of a dict was being saved; like stock, say nothing of keys."""
    i = len(batch) - length_hint(unsaved) - 1
    if i % 2:
        note_value(exc, obj, batch[i - 1])


def _save_tuple(pickler: Any, plan: Plan, obj: tuple[Any, ...], write: Write) -> None:
    n = len(obj)
    if n == 0:
        write(EMPTY_TUPLE)
        return
    if _is_saved_whole(pickler, plan, obj):
        return
    proto = plan.proto
    is_short = n <= 3 and proto >= 2
    memo = pickler.memo
    if not is_short:
        write(MARK)
    unsaved = iter(obj)
    try:
        for part, k in parts(pickler, plan, obj, unsaved):
            write = save_all(pickler, plan, part, k, write)
    except BaseException as exc:
        note(exc, obj, "item", n - length_hint(unsaved) - 1)
        raise
    if holds(pickler, plan):
        end_known_tuple(pickler, plan, obj, memo, write)
    else:
        end_tuple(pickler, obj, is_short, memo, pickler.write if is_short else write)


hooks.savers[tuple] = 1, _save_tuple


def _save_set(pickler: Any, plan: Plan, obj: set[Any], write: Write) -> None:
    if len(obj) >= FEWEST and _is_saved_whole(pickler, plan, obj):
        return
    memo = pickler.memo
    i = len(memo)
    write(EMPTY_SET + MEMOIZE)
    memo[id(obj)] = i, obj
    elements = iter(obj)
    size = BATCHSIZE
    while batch := list(islice(elements, size)):
        write(MARK)
        try:
            unsaved = iter(batch)
            for part, k in parts(pickler, plan, batch, unsaved):
                write = save_all(pickler, plan, part, k, write)
        except BaseException as exc:
            note(exc, obj, "element")
            raise
        write(ADDITEMS)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if len(batch) < size:
            return


hooks.savers[set] = 4, _save_set  # through a reduce below protocol 4


def _save_frozenset(pickler: Any, plan: Plan, obj: frozenset[Any], write: Write) -> None:
    if len(obj) >= FEWEST and _is_saved_whole(pickler, plan, obj):
        return
    write(MARK)
    batch = [*obj]
    try:
        unsaved = iter(batch)
        for part, k in parts(pickler, plan, batch, unsaved):
            write = save_all(pickler, plan, part, k, write)
    except BaseException as exc:
        note(exc, obj, "element")
        raise
    end_frozenset(pickler, plan, obj, pickler.memo, write)


hooks.savers[frozenset] = 4, _save_frozenset


def _save_bytearray(pickler: Any, plan: Plan, obj: bytearray, write: Write) -> None:
    n = len(obj)
    if n >= pickler.framer._FRAME_SIZE_TARGET:
        outside(pickler, stock_methods["save_bytearray"], obj)
        return
    memo = pickler.memo
    i = len(memo)
    write(pack_bytearray8(BYTEARRAY8, n) + obj + MEMOIZE)
    memo[id(obj)] = i, obj


hooks.savers[bytearray] = 5, _save_bytearray
