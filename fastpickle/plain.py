"""Plain data: one loop that writes atoms inline, and the savers of the containers that it meets.

    save_all(objs): for each object, in order
        frame full?   commit it        (stock's save() asks at the start of each object)
        in the memo?  GET
        atom          its opcode, inline
        container     its saver        (C, if it is long: `graft`; or MARK, runs of items: `parts`, save_all(rest), ...)
        else          plan.other       (code that is not ours may run; then the plan is settled again)

Everything that stock keeps in `memo`, `framer` and `write` is kept there at every moment at which other code can look.
The source of what is written is Lib/pickle.py of the running Python; PEP 3154 has the frames.

Not for: objects that go through a reduce (`reduce`), and not for a pickler whose hooks want to see each object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from operator import length_hint
from types import BuiltinMethodType
from typing import Any

from . import graft, hooks
from ._stdlib import ASKS_AGAIN, BATCHSIZE, batchsize_now, note, note_value, stock_methods
from .graft import FEWEST
from .hooks import Plan, Write, doubt, holds, outside, settled
from .opcodes import (
    BINGET,
    BININT1,
    BINPUT,
    SHORT_BINBYTES,
    SHORT_BINUNICODE,
    pack_binbytes,
    pack_binfloat,
    pack_binint,
    pack_binint2,
    pack_binunicode,
    pack_bytearray8,
    pack_long,
    pack_long_binget,
    pack_long_binput,
)
from .parts import SHORTEST_RUN, parts

# fmt: off
from pickle import (  # isort: skip
    ADDITEMS, APPEND, APPENDS, BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE, BYTEARRAY8, EMPTY_DICT, EMPTY_LIST,
    EMPTY_SET, EMPTY_TUPLE, FALSE, FROZENSET, LONG_BINGET, LONG_BINPUT, MARK, MEMOIZE, NEWFALSE, NEWTRUE,
    NONE, POP, POP_MARK, SETITEM, SETITEMS, TRUE, TUPLE, TUPLE1, TUPLE2, TUPLE3,
)
# fmt: on

__all__ = ["append_batches", "commit_frame", "put", "save_all", "save_dict", "save_rest", "set_batches"]

_stock_save_str = stock_methods["save_str"]
_stock_save_bytes = stock_methods["save_bytes"]


# The loop.  It binds what it uses often, so whatever can change one of those is followed by binding it anew.


def save_all(pickler: Any, plan: Plan, objs: Iterator[Any]) -> Write:
    """Save each of `objs`, as `for x in objs: pickler.save(x)` would.

    Args:
        pickler: one whose plan in force is `plan`.
        plan: its shortcuts; from where it is no longer in force on, the rest goes through `save()`.
        objs: an iterator; if an object cannot be saved, it has been advanced just past that object.

    Returns:
        The function that writes what comes next.
    """
    framer = pickler.framer
    frame = framer.current_frame
    write: Write
    tell: Callable[[], int]
    if frame is None:
        write = framer.file_write
        tell = int  # int() is 0: never full
    else:
        write = frame.write
        tell = frame.tell
    target = framer._FRAME_SIZE_TARGET
    memo = pickler.memo
    proto = plan.proto
    for x in objs:
        if tell() >= target:  # stock calls framer.commit_frame() for each object
            if commit_frame(pickler, framer) is not plan:
                return save_rest(pickler, plan, chain((x,), objs), framer.write)
            frame = framer.current_frame
            write = frame.write
            tell = frame.tell
        key = id(x)
        if key in memo:
            i = memo[key][0]
            write(pack_long_binget(LONG_BINGET, i) if i > 255 else BINGET[i] if i >= 0 else pickler.get(i))
            continue
        t = type(x)
        if t is str and len(x) < target:
            try:
                encoded = x.encode()  # naming the encoding takes 5 % more instructions for a list of strings
            except UnicodeEncodeError:
                encoded = x.encode("utf-8", "surrogatepass")
            n = len(encoded)
            if n < target:
                i = len(memo)
                if proto >= 4:
                    if n <= 255:
                        write(SHORT_BINUNICODE[n] + encoded + MEMOIZE)
                    else:
                        write(pack_binunicode(BINUNICODE, n) + encoded + MEMOIZE)
                else:
                    write(pack_binunicode(BINUNICODE, n) + encoded + put(proto, i))
                memo[key] = i, x
                continue
            outside(pickler, _stock_save_str, x)
        elif t is str:
            outside(pickler, _stock_save_str, x)
        elif t is int:
            if 0 <= x <= 255:
                write(BININT1[x])
            elif 0 <= x <= 0xFFFF:
                write(pack_binint2(BININT2, x))
            elif -0x80000000 <= x <= 0x7FFFFFFF:
                write(pack_binint(BININT, x))
            else:
                write(_long(proto, x))
            continue
        elif x is None:
            write(NONE)
            continue
        elif t is float:
            write(pack_binfloat(BINFLOAT, x))
            continue
        elif t is bool:
            if proto >= 2:
                write(NEWTRUE if x else NEWFALSE)
            else:
                write(TRUE if x else FALSE)
            continue
        elif t is bytes and proto >= 3:
            n = len(x)
            if n < target:
                i = len(memo)
                write((SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)) + x + put(proto, i))
                memo[key] = i, x
                continue
            outside(pickler, _stock_save_bytes, x)
        elif t is list:
            plan.save_list(pickler, plan, x, write)
        elif t is dict:
            plan.save_dict(pickler, plan, x, write)
        elif t is tuple:
            plan.save_tuple(pickler, plan, x, write)
        else:
            (plan.get(t) or plan.other)(pickler, plan, x, write)
        # Other code may have run, and other frames begun; framer and memo are the same as long as the plan is.
        if pickler._fastpickle_plan is not plan and settled(pickler) is not plan:
            return save_rest(pickler, plan, objs, framer.write)
        new_frame = framer.current_frame
        if new_frame is not frame:
            frame = new_frame
            if frame is None:
                write = framer.file_write
                tell = int
            else:
                write = frame.write
                tell = frame.tell
    return write


def save_rest(pickler: Any, plan: Plan, objs: Iterator[Any], write: Write) -> Write:
    """Do what `save_all` does where `plan` is no longer in force: as stock, by the `save` and `write` from before."""
    save = plan.save
    for x in objs:
        save(pickler, x)
    return write


def commit_frame(pickler: Any, framer: Any) -> Plan:
    """Write the full frame to the file, whose write() may be anybody's code; return the plan in force after it."""
    framer.commit_frame()
    if type(framer.file_write) is not BuiltinMethodType:
        doubt(pickler)
    return settled(pickler)


def put(proto: int, i: int) -> bytes:
    """Return the opcode that stores the top of the stack as number `i` of the memo."""
    if proto >= 4:
        return MEMOIZE
    return BINPUT[i] if i <= 255 else pack_long_binput(LONG_BINPUT, i)


def _long(proto: int, x: int) -> bytes:
    """Return the opcode of an int that does not fit into four bytes."""
    return pack_long(x) if proto >= 2 else b"L" + repr(x).encode("ascii") + b"L\n"


# The savers.  Each is called by the loop with an object that is not in the memo.


def _is_saved_whole(pickler: Any, plan: Plan, obj: Any, n: int) -> bool:
    """Tell whether a container is saved: by C, or hook by hook if the offer ended the plan."""
    if plan.graft_rule is None:
        return False
    if not graft.whole(pickler, plan, obj, n):
        if holds(pickler, plan):
            return False
        plan.save(pickler, obj)
    return True


def _save_list(pickler: Any, plan: Plan, obj: list[Any], write: Write) -> None:
    if len(obj) >= FEWEST and not graft.is_for_batches(obj, list) and _is_saved_whole(pickler, plan, obj, len(obj)):
        return
    memo = pickler.memo
    i = len(memo)
    opening = _EMPTY_LIST if plan.proto >= 4 else EMPTY_LIST + put(plan.proto, i)
    n = len(obj)
    if n == 0:
        write(opening)
        memo[id(obj)] = i, obj
    elif n < FEWEST:
        write(opening if n == 1 else _MARKED_LIST if plan.proto >= 4 else opening + MARK)
        memo[id(obj)] = i, obj
        batch = obj[:]  # a snapshot, as stock takes one of each batch
        unsaved = iter(batch)
        try:
            for part in (unsaved,) if n < SHORTEST_RUN else parts(pickler, plan, batch, unsaved):
                write = save_all(pickler, plan, part) if holds(pickler, plan) else save_rest(pickler, plan, part, write)
        except BaseException as exc:
            note(exc, obj, "item", n - length_hint(unsaved) - 1)
            raise
        write(APPENDS if n > 1 else APPEND)
    else:
        write(opening)
        memo[id(obj)] = i, obj
        done = 0
        if plan.graft_rule is not None and (n >= 2 * BATCHSIZE or graft.is_for_batches(obj, list)):
            done = graft.batches(pickler, plan, obj)
        if not done:
            append_batches(pickler, plan, iter(obj), obj, write)
        elif done < n:
            append_batches(pickler, plan, islice(obj, done, None), obj, pickler.framer.write, done)


_EMPTY_LIST = EMPTY_LIST + MEMOIZE
_MARKED_LIST = EMPTY_LIST + MEMOIZE + MARK
hooks.savers[list] = 1, _save_list


def append_batches(pickler: Any, plan: Plan, items: Iterator[Any], obj: Any, write: Write, start: int = 0) -> None:
    """Append the items of `obj`, `start` and on, in batches of 1000, looking again for more after each full one."""
    size = BATCHSIZE
    while batch := list(islice(items, size)):
        n = len(batch)
        if n > 1:
            write(MARK)
        unsaved = iter(batch)
        try:
            for part in (unsaved,) if n < SHORTEST_RUN else parts(pickler, plan, batch, unsaved):
                write = save_all(pickler, plan, part) if holds(pickler, plan) else save_rest(pickler, plan, part, write)
        except BaseException as exc:
            note(exc, obj, "item", start + n - length_hint(unsaved) - 1)
            raise
        write(APPENDS if n > 1 else APPEND)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if n < size:
            if ASKS_AGAIN:
                next(items, None)
            return
        start += n


def save_dict(pickler: Any, plan: Plan, obj: dict[Any, Any], write: Write) -> None:
    if len(obj) >= FEWEST and not graft.is_for_batches(obj, dict) and _is_saved_whole(pickler, plan, obj, len(obj)):
        return
    memo = pickler.memo
    i = len(memo)
    opening = _EMPTY_DICT if plan.proto >= 4 else EMPTY_DICT + put(plan.proto, i)
    n = len(obj)
    if n == 0:
        write(opening)
        memo[id(obj)] = i, obj
    elif n < FEWEST:
        write(opening if n == 1 else _MARKED_DICT if plan.proto >= 4 else opening + MARK)
        memo[id(obj)] = i, obj
        batch = [*chain.from_iterable(obj.items())]
        unsaved = iter(batch)
        try:
            for part in (unsaved,) if n < 2 * SHORTEST_RUN else parts(pickler, plan, batch, unsaved, 2):
                write = save_all(pickler, plan, part) if holds(pickler, plan) else save_rest(pickler, plan, part, write)
        except BaseException as exc:
            _note_item(exc, obj, batch, unsaved)
            raise
        write(SETITEMS if n > 1 else SETITEM)
    else:
        write(opening)
        memo[id(obj)] = i, obj
        done = 0
        if plan.graft_rule is not None and (n >= 2 * BATCHSIZE or graft.is_for_batches(obj, dict)):
            done = graft.batches(pickler, plan, obj)
        if not done:
            set_batches(pickler, plan, chain.from_iterable(obj.items()), obj, write)
        elif done < n:
            items = chain.from_iterable(islice(obj.items(), done, None))
            set_batches(pickler, plan, items, obj, pickler.framer.write)


_EMPTY_DICT = EMPTY_DICT + MEMOIZE
_MARKED_DICT = EMPTY_DICT + MEMOIZE + MARK
hooks.savers[dict] = 1, save_dict


def set_batches(pickler: Any, plan: Plan, items: Iterator[Any], obj: Any, write: Write) -> None:
    """Set the items of `obj`, key and value in turn, in batches of 1000 pairs.

    A dict that has changed its size when the next batch is looked for raises RuntimeError, as in stock.
    """
    size = BATCHSIZE
    while batch := list(islice(items, 2 * size)):
        n = len(batch)
        if n > 2:
            write(MARK)
        unsaved = iter(batch)
        try:
            for part in (unsaved,) if n < 2 * SHORTEST_RUN else parts(pickler, plan, batch, unsaved, 2):
                write = save_all(pickler, plan, part) if holds(pickler, plan) else save_rest(pickler, plan, part, write)
        except BaseException as exc:
            _note_item(exc, obj, batch, unsaved)
            raise
        write(SETITEMS if n > 2 else SETITEM)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if n < 2 * size:
            return


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
    if n >= FEWEST and _is_saved_whole(pickler, plan, obj, n):
        return
    proto = plan.proto
    short = n <= 3 and proto >= 2
    memo = pickler.memo
    if not short:
        write(MARK)
    unsaved = iter(obj)
    try:
        for part in (unsaved,) if n < SHORTEST_RUN else parts(pickler, plan, obj, unsaved):
            write = save_all(pickler, plan, part) if holds(pickler, plan) else save_rest(pickler, plan, part, write)
    except BaseException as exc:
        note(exc, obj, "item", n - length_hint(unsaved) - 1)
        raise
    if not holds(pickler, plan):
        _end_tuple(pickler, obj, short, memo, pickler.write if short else write)
    elif id(obj) in memo:  # it contains itself, and was saved while its items were: drop them and fetch it
        write((POP * n if short else POP_MARK) + pickler.get(memo[id(obj)][0]))
    else:
        i = len(memo)
        if short and proto >= 4:
            write(_MEMOIZED_TUPLES[n])
        else:
            write((_TUPLES[n] if short else TUPLE) + put(proto, i))
        memo[id(obj)] = i, obj


def _end_tuple(pickler: Any, obj: tuple[Any, ...], short: bool, memo: Any, write: Write) -> None:
    """End a tuple as stock does where the plan is no longer in force; `short` and `memo` are from its start."""
    n = len(obj)
    if id(obj) in memo:
        pop = POP * n if short else POP_MARK if pickler.bin else POP * (n + 1)
        write(pop + pickler.get(memo[id(obj)][0]))
    else:
        write(_TUPLES[n] if short else TUPLE)
        pickler.memoize(obj)


_TUPLES = (b"", TUPLE1, TUPLE2, TUPLE3)
_MEMOIZED_TUPLES = tuple(opcode + MEMOIZE for opcode in _TUPLES)
hooks.savers[tuple] = 1, _save_tuple


def _save_set(pickler: Any, plan: Plan, obj: set[Any], write: Write) -> None:
    if len(obj) >= FEWEST and _is_saved_whole(pickler, plan, obj, len(obj)):
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
            for part in (unsaved,) if len(batch) < SHORTEST_RUN else parts(pickler, plan, batch, unsaved):
                write = save_all(pickler, plan, part) if holds(pickler, plan) else save_rest(pickler, plan, part, write)
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
    if len(obj) >= FEWEST and _is_saved_whole(pickler, plan, obj, len(obj)):
        return
    write(MARK)
    batch = [*obj]
    try:
        unsaved = iter(batch)
        for part in (unsaved,) if len(batch) < SHORTEST_RUN else parts(pickler, plan, batch, unsaved):
            write = save_all(pickler, plan, part) if holds(pickler, plan) else save_rest(pickler, plan, part, write)
    except BaseException as exc:
        note(exc, obj, "element")
        raise
    memo = pickler.memo
    if id(obj) in memo:
        write(POP_MARK + pickler.get(memo[id(obj)][0]))
    elif holds(pickler, plan):
        i = len(memo)
        write(FROZENSET + MEMOIZE)
        memo[id(obj)] = i, obj
    else:
        write(FROZENSET)
        pickler.memoize(obj)


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
