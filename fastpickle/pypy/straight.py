"""Plain data on PyPy: straight code, which its JIT compiles well, in the place of `plain`'s loop and its runs.

    save_one(obj): in doubt?      stock's save(), or look at the plan again
                   frame full?    commit it
                   in the memo?   GET
                   atom           its opcodes, inline
                   container      its saver: save_one() for each item
                   else           plan.other (`save.save_object`)

What makes CPython's interpreter slow (calls, comparisons, attributes) costs nearly nothing in compiled code.  What is
left is what stock does twice, or need not do: the id of a number, a second look into the memo in order to add to it,
bytes that are packed and joined before they are appended.  The bytes go straight into the builder that is the current
frame, so all that stock keeps in `memo` and `framer` is there at every moment at which other code can look.

The JIT compiles a loop with all that is called in it, up to a limit on the length of such a trace; past it, it compiles
the largest function apart for ever.  So `save_one` has no loop in it, and is inlined into each loop that calls it; and
where traces would grow too long they are cut by a loop that does nothing in its first round: at the jump back to its
start the JIT leaves one trace and calls another (`TURNS`, and each ``i = -1``; perf-diary, PyPy).

Not for: a Python whose frames are `io.BytesIO` (`plain`), nor one whose stock pickler adds notes to exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from struct import Struct
from typing import Any

from .._stdlib import BATCHSIZE, batchsize_now, stock_methods
from ..doubts import doubt, outside, settled
from ..hooks import Plan, Saver, Write
from ..opcodes import BINGET, BININT1, BINPUT, SHORT_BINBYTES, SHORT_BINUNICODE, TUPLES, pack_long, pack_long_binput
from .looks import Dump

# fmt: off
from pickle import (  # isort: skip
    ADDITEMS, APPEND, APPENDS, BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE, EMPTY_DICT, EMPTY_LIST,
    EMPTY_SET, EMPTY_TUPLE, FALSE, FROZENSET, LONG_BINPUT,
    MARK, MEMOIZE, NEWFALSE, NEWTRUE, NONE, POP, POP_MARK, SETITEM, SETITEMS, TRUE, TUPLE,
)
# fmt: on

__all__ = ["FEWEST_OF_PYPY", "SAVERS", "TURNS", "save_dict", "save_one"]

_stock_save_str = stock_methods["save_str"]
_stock_save_bytes = stock_methods["save_bytes"]
# Opcode and argument in one piece; to append a table's entry for each of 65536 ints is no sooner.
_binint2 = Struct("<BH").pack
_binint = Struct("<Bi").pack
_binfloat = Struct(">Bd").pack
_counted = Struct("<BI").pack
_BINBYTES, _BINFLOAT, _BININT, _BININT2, _BINUNICODE = map(ord, (BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE))


#: Two rounds of a loop, the first of which does nothing.
TURNS = (False, True)


def _is_small(obj: Any) -> bool:
    """Tell whether a plan that is in doubt is not worth a look for an object: stock saves it as soon."""
    t = type(obj)
    return (t is not list and t is not dict and t is not tuple and t is not set) or len(obj) < FEWEST_OF_PYPY


FEWEST_OF_PYPY = 10
#: So many objects in a row are saved as stock does, one after the other, while the plan is in doubt.
_PATIENCE = 10


def save_one(pickler: Any, plan: Plan, dump: Dump, x: Any, is_called: bool = False) -> None:
    """Save one object, as `pickler.save(x)` would.

    Args:
        pickler, dump: while `plan` was in force; from where it is not any more on, it is just that call.
        plan: the shortcuts.
        x: the object.
        is_called: that `pickler.save` has been called, and need not be for types that a library's wants to see.
    """
    if pickler._fastpickle_plan is not plan:
        if dump.patience and _is_small(x):
            dump.patience -= 1
            plan.save(pickler, x)
            return
        dump.patience = _PATIENCE
        if settled(pickler) is not plan:
            plan.save(pickler, x)
            return
    framer = dump.framer
    frame = framer.current_frame
    if frame is None:
        write: Write = framer.file_write
    else:
        if len(frame) >= framer._FRAME_SIZE_TARGET:
            framer.commit_frame()
            if not dump.is_quiet:
                doubt(pickler)
                if settled(pickler) is not plan:
                    plan.save(pickler, x)
                    return
            frame = framer.current_frame
        write = frame.append
    t = type(x)
    memo = dump.memo
    if not dump.is_usual and (t is int or t is float or x is None or t is bool):
        entry = memo.get(id(x))
        if entry is not None:
            write(pickler.get(entry[0]))
            return
    if t is int:
        if 0 <= x <= 255:
            write(BININT1[x])
        elif 0 <= x <= 0xFFFF:
            write(_binint2(_BININT2, x))
        elif -0x80000000 <= x <= 0x7FFFFFFF:
            write(_binint(_BININT, x))
        else:
            write(pack_long(x) if plan.proto >= 2 else b"L" + repr(x).encode("ascii") + b"L\n")
        return
    if t is float:
        write(_binfloat(_BINFLOAT, x))
        return
    if x is None:
        write(NONE)
        return
    if t is bool:
        if plan.proto >= 2:
            write(NEWTRUE if x else NEWFALSE)
        else:
            write(TRUE if x else FALSE)
        return
    key = id(x)
    entry = memo.get(key)
    if entry is not None:
        i = entry[0]
        write(BINGET[i] if 0 <= i <= 255 else pickler.get(i))
        return
    if t is str:
        if len(x) < 65536:
            encoded = x.encode("utf-8", "surrogatepass")
            n = len(encoded)
            if n < framer._FRAME_SIZE_TARGET:
                if n <= 255 and plan.proto >= 4:
                    write(SHORT_BINUNICODE[n])
                else:
                    write(_counted(_BINUNICODE, n))
                write(encoded)
                i = len(memo)
                _put(plan, write, i)
                memo[key] = i, x
                return
        _large(pickler, dump, _stock_save_str, x)
        return
    if t is tuple:
        plan.save_tuple(pickler, plan, x, write)
    elif t is dict:
        plan.save_dict(pickler, plan, x, write)
    elif t is list:
        plan.save_list(pickler, plan, x, write)
    elif t is bytes and plan.proto >= 3:
        n = len(x)
        if n < framer._FRAME_SIZE_TARGET:
            if n <= 255:
                write(SHORT_BINBYTES[n])
            else:
                write(_counted(_BINBYTES, n))
            write(x)
            i = len(memo)
            _put(plan, write, i)
            memo[key] = i, x
        else:
            _large(pickler, dump, _stock_save_bytes, x)
    else:
        saver = plan.get(t) if type(t) is type else None  # another metaclass may have a hash of its own
        if saver is not None:
            saver(pickler, plan, x, write)
        else:
            plan.other(pickler, plan, x, None if is_called else write)


def _put(plan: Plan, write: Write, i: int) -> None:
    """Write the opcode that stores the top of the stack as number `i` of the memo."""
    if plan.proto >= 4:
        write(MEMOIZE)
    elif i <= 255:
        write(BINPUT[i])
    else:
        write(pack_long_binput(LONG_BINPUT, i))


def _large(pickler: Any, dump: Dump, save: Callable[..., None], x: Any) -> None:
    """Save what stands outside frames, so that the file's write() is called."""
    if dump.is_quiet:
        save(pickler, x)
    else:
        outside(pickler, save, x)


# The savers.  Each is called by save_one() with an object that is not in the memo.


def _save_list(pickler: Any, plan: Plan, obj: list[Any], write: Write) -> None:
    dump = pickler._fastpickle_dump
    memo = dump.memo
    i = len(memo)
    write(EMPTY_LIST)
    _put(plan, write, i)
    memo[id(obj)] = i, obj
    _append_batches(pickler, plan, dump, obj)


def _append_batches(pickler: Any, plan: Plan, dump: Dump, obj: list[Any]) -> None:
    """Append the items of a list in batches of 1000, looking again for more after each full one."""
    size = BATCHSIZE
    start = 0
    write = pickler.write  # as stock binds it here; it is looked up anew in what it calls
    while True:
        batch = obj[start : start + size]  # as many as its iterator would give
        n = len(batch)
        if n > 1:
            write(MARK)
            i = -1
            while i < n:
                if i >= 0:
                    save_one(pickler, plan, dump, batch[i])
                i += 1
            write(APPENDS)
        elif n:
            save_one(pickler, plan, dump, batch[0])
            write(APPEND)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if n < size:
            return
        start += n


def save_dict(pickler: Any, plan: Plan, obj: dict[Any, Any], write: Write) -> None:
    dump = pickler._fastpickle_dump
    memo = dump.memo
    i = len(memo)
    write(EMPTY_DICT)
    _put(plan, write, i)
    memo[id(obj)] = i, obj
    size = BATCHSIZE
    items = iter(obj.items())
    write = pickler.write
    while True:
        batch = list(islice(items, size))
        n = len(batch)
        if n > 1:
            write(MARK)
            i = -1
            while i < n:
                if i >= 0:
                    k, v = batch[i]
                    save_one(pickler, plan, dump, k)
                    save_one(pickler, plan, dump, v)
                i += 1
            write(SETITEMS)
        elif n:
            k, v = batch[0]
            save_one(pickler, plan, dump, k)
            save_one(pickler, plan, dump, v)
            write(SETITEM)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if n < size:
            return


def _save_tuple(pickler: Any, plan: Plan, obj: tuple[Any, ...], write: Write) -> None:
    n = len(obj)
    if n == 0:
        write(EMPTY_TUPLE)
        return
    dump = pickler._fastpickle_dump
    memo = dump.memo
    is_short = n <= 3 and plan.proto >= 2
    if not is_short:
        write(MARK)
        write = pickler.write
    if n <= 3:
        for is_second in TURNS:
            if is_second:
                save_one(pickler, plan, dump, obj[0])
                if n > 1:
                    save_one(pickler, plan, dump, obj[1])
                    if n == 3:
                        save_one(pickler, plan, dump, obj[2])
    else:
        i = -1
        while i < n:
            if i >= 0:
                save_one(pickler, plan, dump, obj[i])
            i += 1
    entry = memo.get(id(obj))
    if is_short:
        write = pickler.write
    if entry is None:
        write(TUPLES[n] if is_short else TUPLE)
        pickler.memoize(obj)
    else:  # it contains itself, and was saved while its items were: drop them and fetch it
        write((POP * n if is_short else POP_MARK if pickler.bin else POP * (n + 1)) + pickler.get(entry[0]))


def _save_set(pickler: Any, plan: Plan, obj: set[Any], write: Write) -> None:
    dump = pickler._fastpickle_dump
    memo = dump.memo
    i = len(memo)
    write(EMPTY_SET)
    _put(plan, write, i)
    memo[id(obj)] = i, obj
    write = pickler.write
    elements = iter(obj)
    size = BATCHSIZE
    while True:
        batch = list(islice(elements, size))
        n = len(batch)
        if n > 0:
            write(MARK)
            i = -1
            while i < n:
                if i >= 0:
                    save_one(pickler, plan, dump, batch[i])
                i += 1
            write(ADDITEMS)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if n < size:
            return


def _save_frozenset(pickler: Any, plan: Plan, obj: frozenset[Any], write: Write) -> None:
    dump = pickler._fastpickle_dump
    write(MARK)
    write = pickler.write
    batch = list(obj)
    n = len(batch)
    i = -1
    while i < n:
        if i >= 0:
            save_one(pickler, plan, dump, batch[i])
        i += 1
    entry = pickler.memo.get(id(obj))
    if entry is not None:
        write(POP_MARK + pickler.get(entry[0]))
        return
    write(FROZENSET)
    pickler.memoize(obj)


def _save_bytearray(pickler: Any, plan: Plan, obj: bytearray, write: Write) -> None:
    outside(pickler, stock_methods["save_bytearray"], obj)


#: They, by type, each with the lowest protocol at which stock writes such an object without a reduce.
SAVERS: dict[type, tuple[int, Saver]] = {
    list: (1, _save_list),
    dict: (1, save_dict),
    tuple: (1, _save_tuple),
    set: (4, _save_set),
    frozenset: (4, _save_frozenset),
    bytearray: (5, _save_bytearray),
}
