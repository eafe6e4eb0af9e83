"""`Pickler`: the stock pure-Python pickler, with plain data written by one loop instead of a call per object and hook.

    save(obj) --- no plan yet? hooks.plan(self) ---+-- type in the plan: _save_all((obj,))
                                                   +-- plan is PLAIN:    stock's save(), hook by hook (atoms sooner)
                                                   +-- anything else:    _save_object(obj): reduce, as stock does, and
                                                                         its parts come back to save()

    _save_all(objs): for each object, in order
        frame full?   commit it        (where stock's save() does: at the start of each object)
        in the memo?  GET
        atom          its opcode, inline
        container     its saver        (MARK, _save_all(items), APPENDS ...)
        else          self.save(obj)   (code that is not ours runs; then the plan is checked again)

Everything that stock keeps in `memo`, `framer` and `write` is kept there at every moment at which other code can look:
stock's methods, overrides and ours may be mixed within one dump, and `install()` may come and go between two of them.

The source of what is written is Lib/pickle.py of the running Python; PEP 3154 has the frames.

Not for: deciding what a hook forbids (`hooks`), and not for reduce: that is stock's, on every Python.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from copyreg import __newobj__  # type: ignore[attr-defined]
from itertools import chain, islice
from operator import length_hint
from pickle import (
    ADDITEMS, APPEND, APPENDS, BINBYTES, BUILD, NEWOBJ, REDUCE, BINFLOAT, BININT, BININT2, BINUNICODE, BYTEARRAY8, EMPTY_DICT, EMPTY_LIST,
    EMPTY_SET, EMPTY_TUPLE, FALSE, FROZENSET, LONG1, LONG4, LONG_BINGET, LONG_BINPUT, MARK, MEMOIZE, NEWFALSE, NEWTRUE,
    NONE, POP, POP_MARK, SETITEM, SETITEMS, TRUE, TUPLE, TUPLE1, TUPLE2, TUPLE3, encode_long,
)  # fmt: skip
from struct import pack
from types import BuiltinMethodType
from typing import Any

from . import hooks
from ._stdlib import (
    ASKS_PERSISTENT_ID_ALWAYS,
    NO_VALUE,
    StockPickler,
    note,
    note_value,
    refuse_reduce_value,
    stock_methods,
)
from .hooks import PLAIN, Plan
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
    pack_long_binget,
    pack_long_binput,
)

__all__ = ["Pickler", "save_dict", "save_outside"]

Write = Callable[[bytes], Any]

_BATCHSIZE: int = StockPickler._BATCHSIZE
_stock_save = stock_methods["save"]
_stock_save_str = stock_methods["save_str"]
_stock_save_float = stock_methods["save_float"]
_stock_save_long = stock_methods["save_long"]
_stock_save_bytes = stock_methods["save_bytes"]


class Pickler(StockPickler):  # type: ignore[misc]  # its class is private to the stdlib, so typeshed does not know it
    """Write a pickle to a file: the bytes of `pickle._Pickler`, sooner.

    It is made, used and subclassed like `pickle._Pickler`, every hook of which it honours; a subclass that overrides
    something goes only as fast as that allows (see `fastpickle.hooks`).
    """

    #: The plan in force, on the instance while it saves; install() puts this one on stock.
    _fastpickle_plan: Plan | None = None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write the opcodes of `obj`, as stock's `save` would.

        Args:
            obj: any object.
            save_persistent_id: False for a persistent id itself, which is not to be asked for another one.

        Raises:
            PicklingError, and whatever the hooks of `obj` or of a subclass raise, as stock does.
        """
        try:
            plan = self._fastpickle_plan
        except AttributeError:  # it was bound under install(), and is called after uninstall()
            plan = None
        if plan is None:
            # The root of a dump.  A class may have a __setattr__ of its own, and __dict__ is left alone: see hooks.plan().
            object.__setattr__(self, "_fastpickle_plan", hooks.plan(self))
            try:
                _save(self, obj, save_persistent_id)
            finally:
                object.__delattr__(self, "_fastpickle_plan")
            return
        if plan.doubted is not None:
            plan = _settle(self)
        if plan:
            _save_one(self, plan, obj)
            return
        # What follows is stock's save(), hook by hook, but that `reducer_override` is not asked about atoms (as in the C
        # pickler) and that the most frequent atoms are written here.
        framer = self.framer
        frame = framer.current_frame
        if frame is None or frame.tell() >= framer._FRAME_SIZE_TARGET:
            framer.commit_frame()
        if save_persistent_id or ASKS_PERSISTENT_ID_ALWAYS:
            pid = self.persistent_id(obj)
            if pid is not None and save_persistent_id:
                self.save_pers(pid)
                return
        x = self.memo.get(id(obj))
        if x is not None:
            self.write(self.get(x[0]))
            return
        t = type(obj)
        if t not in _ATOMS:
            reduce = getattr(self, "reducer_override", NO_VALUE)
            if reduce is not NO_VALUE:
                rv = reduce(obj)
                if rv is not NotImplemented:
                    _save_reduce_value(self, obj, reduce, rv)
                    return
        entry = self.dispatch.get(t)
        if entry is _stock_save_long and self.bin and -0x80000000 <= obj <= 0x7FFFFFFF:
            if 0 <= obj <= 0xFFFF:
                self.write(BININT1[obj] if obj <= 0xFF else pack_binint2(BININT2, obj))
            else:
                self.write(pack_binint(BININT, obj))
        elif entry is _stock_save_float and self.bin:
            self.write(pack_binfloat(BINFLOAT, obj))
        elif entry is _stock_save_str and self.proto >= 4 and len(obj) <= 63:  # 255 bytes at the most
            encoded = obj.encode("utf-8", "surrogatepass")
            self.write(SHORT_BINUNICODE[len(encoded)] + encoded)
            self.memoize(obj)
        elif entry is None:
            _save_object(self, obj)
        else:
            entry(self, obj)


_save = Pickler.save
hooks.known_saves[_save] = False


# The plan of a dump is in the instance's `_fastpickle_plan`, from the outermost save() to its end.


def _settle(pickler: Any) -> Plan:
    """Look again at a plan that is in doubt, and return the one that is in force."""
    plan: Plan = pickler._fastpickle_plan
    if plan.doubted is not None:
        plan = pickler.__dict__["_fastpickle_plan"] = hooks.settle(pickler, plan)
    return plan


def _holds(pickler: Any, plan: Plan) -> bool:
    """Tell whether `plan` is still in force."""
    return pickler._fastpickle_plan is plan or _settle(pickler) is plan


def _save_one(pickler: Any, plan: Plan, obj: Any) -> None:
    """Save one object with the shortcuts of `plan`: a part of a reduce, or one that an override of `save` handed on."""
    framer = pickler.framer
    frame = framer.current_frame
    if frame is not None and frame.tell() >= framer._FRAME_SIZE_TARGET:
        plan = _commit_frame(pickler, framer)
        frame = framer.current_frame
    memo = pickler.memo
    key = id(obj)
    if key in memo:
        pickler.write(pickler.get(memo[key][0]))
        return
    t = type(obj)
    saver = plan.get(t)
    if saver is not None:
        saver(pickler, plan, obj, framer.file_write if frame is None else frame.write)
    elif t in plan:
        _save_all(pickler, plan, iter((obj,)))
    else:
        _save_object(pickler, obj)


def save_outside(pickler: Any, save: Callable[..., None], obj: Any, *args: Any) -> None:
    """Call a function that may run code that is not ours, so that the plan is in doubt in it and after it."""
    plan: Plan = pickler._fastpickle_plan
    if plan is PLAIN:
        save(pickler, obj, *args)
        return
    state = pickler.__dict__
    state["_fastpickle_plan"] = plan.in_doubt
    try:
        save(pickler, obj, *args)
    finally:
        state["_fastpickle_plan"] = state["_fastpickle_plan"].in_doubt


def _watched(state: dict[str, Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of an iterable that may run code that is not ours to find the next one."""
    for item in items:
        state["_fastpickle_plan"] = state["_fastpickle_plan"].in_doubt
        yield item


_ATOMS = frozenset(hooks.ATOMS)


# What is not in a plan: a library's own functions, classes and functions by name, and all that goes through a reduce.


def _save_object(pickler: Any, obj: Any) -> None:
    """Save an object that no plan contains and that is not in the memo, as the second half of stock's save() does."""
    t = type(obj)
    entry = pickler.dispatch.get(t)
    if entry is not None:
        if id(entry) in _OWN_CODE:
            entry(pickler, obj)
        else:
            save_outside(pickler, entry, obj)
        return
    reduce = getattr(pickler, "dispatch_table", pickle.dispatch_table).get(t, NO_VALUE)
    if reduce is not NO_VALUE:
        rv = reduce(obj)
    elif issubclass(t, type):
        save_outside(pickler, _save_global, obj)
        return
    else:
        reduce = getattr(obj, "__reduce_ex__", NO_VALUE)
        if reduce is NO_VALUE:
            save_outside(pickler, _stock_save, obj)
            return
        rv = reduce(pickler.proto)
    plan = pickler._fastpickle_plan
    if t.__flags__ & _HEAP_TYPE or type(reduce) is not BuiltinMethodType:  # the reduce may have been anybody's code
        plan = pickler.__dict__["_fastpickle_plan"] = hooks.settle(pickler, plan.in_doubt) if plan else plan
    if plan and type(rv) is tuple and 2 <= len(rv) <= 5:
        try:
            if _save_reduced(pickler, plan, obj, *rv):
                return
        except BaseException as exc:
            note(exc, obj, "object")
            raise
    _save_reduce_value(pickler, obj, reduce, rv)


#: The ids of stock's functions that go through a reduce of their own at older protocols, and run nobody's code.
_OWN_CODE = frozenset(id(stock_methods["save_" + name]) for name in ("bytes", "bytearray", "set", "frozenset"))


def _save_reduce_value(pickler: Any, obj: Any, reduce: Any, rv: Any) -> None:
    """Save what `reduce` gave for `obj`, by stock's save_global() or save_reduce()."""
    if isinstance(rv, str):
        save_outside(pickler, _save_global, obj, rv)
        return
    if not isinstance(rv, tuple) or not 2 <= len(rv) <= 6:
        refuse_reduce_value(obj, reduce, rv)
    try:
        if pickler._fastpickle_plan is not PLAIN:
            iterators = (None if items is None else _watched(pickler.__dict__, items) for items in rv[3:5])
            rv = *rv[:3], *iterators, *rv[5:]
        pickler.save_reduce(obj=obj, *rv)
    except BaseException as exc:
        note(exc, obj, "object")
        raise


def _save_reduced(
    pickler: Any, plan: Plan, obj: Any, func: Any, args: Any, state: Any = None, listitems: Any = None,
    dictitems: Any = None,
) -> bool:  # fmt: skip
    """Save what a reduce gave, if it is of the usual form: a call of `func`, or of a class's __new__, and a state.

    Returns:
        False if it is not of that form, and nothing has been written: stock's save_reduce() knows the others.
    """
    if type(args) is not tuple or listitems is not None or dictitems is not None or not callable(func):
        return False
    if plan.proto >= 2 and func is __newobj__:
        if not args or args[0] is not obj.__class__:
            return False
        func = args[0]
        args = args[1:]
        opcode = NEWOBJ
        labels = _NEWOBJ_PARTS
    elif getattr(func, "__name__", "") in _NEWOBJ_NAMES:
        return False
    else:
        opcode = REDUCE
        labels = _REDUCE_PARTS
    parts = iter((func, args))
    try:
        write = _save_all(pickler, plan, parts)
    except BaseException as exc:
        note(exc, obj, labels[1 - length_hint(parts)])
        raise
    write(opcode)
    memo = pickler.memo
    key = id(obj)
    if key in memo:  # it contains itself, and was saved while its parts were: drop this one and fetch that
        write(POP + pickler.get(memo[key][0]))
    elif _holds(pickler, plan):
        i = len(memo)
        write(_put(plan.proto, i))
        memo[key] = i, obj
    else:
        pickler.memoize(obj)
    if state is not None:
        try:
            states = iter((state,))
            write = (_save_all if _holds(pickler, plan) else _save_rest)(pickler, plan, states)
        except BaseException as exc:
            note(exc, obj, "state")
            raise
        write(BUILD)
    return True


_NEWOBJ_NAMES = ("__newobj__", "__newobj_ex__")  # stock goes by the name of the function
_NEWOBJ_PARTS = ("class", "__new__ arguments")  # what 3.14 calls them in its notes
_REDUCE_PARTS = ("reconstructor", "reconstructor arguments")
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: not set for a type written in C, whose reduce is C too


def _save_global(pickler: Any, obj: Any, name: str | None = None) -> None:
    pickler.save_global(obj) if name is None else pickler.save_global(obj, name)


# The loop.  It binds what it uses often, so whatever can change one of those is followed by binding it anew.


def _save_all(pickler: Any, plan: Plan, objs: Iterator[Any]) -> Write:
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
    if frame is None:
        write = framer.file_write
        tell: Callable[[], int] = int  # int() is 0: never full
    else:
        write = frame.write
        tell = frame.tell
    target = framer._FRAME_SIZE_TARGET
    memo = pickler.memo
    proto = plan.proto
    for x in objs:
        if tell() >= target:  # stock calls framer.commit_frame() for each object
            if _commit_frame(pickler, framer) is not plan:
                return _save_rest(pickler, plan, chain((x,), objs))
            frame = framer.current_frame
            write = frame.write
            tell = frame.tell
        key = id(x)
        if key in memo:
            i = memo[key][0]
            write(BINGET[i] if 0 <= i <= 255 else pack_long_binget(LONG_BINGET, i))
            continue
        t = type(x)
        if t is str:
            try:
                encoded = x.encode()  # half the time of encode("utf-8", "surrogatepass")
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
                    write(pack_binunicode(BINUNICODE, n) + encoded + _put(proto, i))
                memo[key] = i, x
                continue
            save_outside(pickler, _stock_save_str, x)
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
                write((SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)) + x + _put(proto, i))
                memo[key] = i, x
                continue
            save_outside(pickler, _stock_save_bytes, x)
        else:
            saver = plan.get(t)
            if saver is not None:
                saver(pickler, plan, x, write)
            elif plan.save_overridden:
                pickler.save(x)
            else:
                _save_object(pickler, x)
        # Other code may have run, and other frames begun.
        if pickler._fastpickle_plan is not plan and _settle(pickler) is not plan:
            return _save_rest(pickler, plan, objs)
        memo = pickler.memo
        framer = pickler.framer
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


def _save_rest(pickler: Any, plan: Plan, objs: Iterator[Any]) -> Write:
    """Do what `_save_all` does, through `save()`: for where `plan` is no longer in force."""
    save = type(pickler).save  # stock's loops bind save() before they start, so one set on the instance since is late
    write: Write = pickler.framer.write
    for x in objs:
        save(pickler, x)
    return write


def _commit_frame(pickler: Any, framer: Any) -> Plan:
    """Write the full frame to the file, whose write() may be anybody's code; return the plan in force after it."""
    framer.commit_frame()
    if type(framer.file_write) is not BuiltinMethodType:
        state = pickler.__dict__
        state["_fastpickle_plan"] = state["_fastpickle_plan"].in_doubt
    return _settle(pickler)


def _put(proto: int, i: int) -> bytes:
    """Return the opcode that stores the top of the stack as number `i` of the memo."""
    if proto >= 4:
        return MEMOIZE
    return BINPUT[i] if i <= 255 else pack_long_binput(LONG_BINPUT, i)


def _long(proto: int, x: int) -> bytes:
    """Return the opcode of an int that does not fit into four bytes."""
    if proto < 2:
        return b"L" + repr(x).encode("ascii") + b"L\n"
    encoded = encode_long(x)
    n = len(encoded)
    return (LONG1 + pack("<B", n) if n < 256 else LONG4 + pack("<i", n)) + encoded


# The savers.  Each is called by the loop with an object that is not in the memo.


def _save_list(pickler: Any, plan: Plan, obj: list[Any], write: Write) -> None:
    memo = pickler.memo
    i = len(memo)
    memo[id(obj)] = i, obj
    opening = _EMPTY_LIST if plan.proto >= 4 else EMPTY_LIST + _put(plan.proto, i)
    n = len(obj)
    if n == 0:
        write(opening)
    elif n < _BATCHSIZE:
        write(opening + MARK if n > 1 else opening)
        unsaved = iter(obj[:])  # a snapshot, as stock takes one of each batch
        try:
            write = _save_all(pickler, plan, unsaved)
        except BaseException as exc:
            note(exc, obj, "item", n - length_hint(unsaved) - 1)
            raise
        write(APPENDS if n > 1 else APPEND)
    else:
        write(opening)
        _append_batches(pickler, plan, obj, write)


_EMPTY_LIST = EMPTY_LIST + MEMOIZE
hooks.savers[list] = 1, _save_list


def _append_batches(pickler: Any, plan: Plan, obj: list[Any], write: Write) -> None:
    """Append the items in batches of 1000, looking again for more after each full one."""
    items = iter(obj)
    start = 0
    while batch := list(islice(items, _BATCHSIZE)):
        n = len(batch)
        if n > 1:
            write(MARK)
        unsaved = iter(batch)
        try:
            write = (_save_all if _holds(pickler, plan) else _save_rest)(pickler, plan, unsaved)
        except BaseException as exc:
            note(exc, obj, "item", start + n - length_hint(unsaved) - 1)
            raise
        write(APPENDS if n > 1 else APPEND)
        if n < _BATCHSIZE:
            return
        start += n


def save_dict(pickler: Any, plan: Plan, obj: dict[Any, Any], write: Write) -> None:
    memo = pickler.memo
    i = len(memo)
    memo[id(obj)] = i, obj
    opening = _EMPTY_DICT if plan.proto >= 4 else EMPTY_DICT + _put(plan.proto, i)
    n = len(obj)
    if n == 0:
        write(opening)
    elif n < _BATCHSIZE:
        write(opening + MARK if n > 1 else opening)
        batch = [*chain.from_iterable(obj.items())]
        unsaved = iter(batch)
        try:
            write = _save_all(pickler, plan, unsaved)
        except BaseException as exc:
            _note_item(exc, obj, batch, unsaved)
            raise
        write(SETITEMS if n > 1 else SETITEM)
    else:
        write(opening)
        _set_batches(pickler, plan, obj, write)


_EMPTY_DICT = EMPTY_DICT + MEMOIZE
hooks.savers[dict] = 1, save_dict


def _set_batches(pickler: Any, plan: Plan, obj: dict[Any, Any], write: Write) -> None:
    """Set the items in batches of 1000; like stock, raise if the dict has another size when the next one is looked for."""
    items = chain.from_iterable(obj.items())
    while batch := list(islice(items, 2 * _BATCHSIZE)):
        n = len(batch)
        if n > 2:
            write(MARK)
        unsaved = iter(batch)
        try:
            write = (_save_all if _holds(pickler, plan) else _save_rest)(pickler, plan, unsaved)
        except BaseException as exc:
            _note_item(exc, obj, batch, unsaved)
            raise
        write(SETITEMS if n > 2 else SETITEM)
        if n < 2 * _BATCHSIZE:
            return


def _note_item(exc: BaseException, obj: dict[Any, Any], batch: list[Any], unsaved: Iterator[Any]) -> None:
    """Note in `exc` which item of a dict was being saved; like stock, say nothing of keys."""
    i = len(batch) - length_hint(unsaved) - 1
    if i % 2:
        note_value(exc, obj, batch[i - 1])


def _save_tuple(pickler: Any, plan: Plan, obj: tuple[Any, ...], write: Write) -> None:
    n = len(obj)
    if n == 0:
        write(EMPTY_TUPLE)
        return
    proto = plan.proto
    short = n <= 3 and proto >= 2
    memo = pickler.memo
    if not short:
        write(MARK)
    unsaved = iter(obj)
    try:
        write = _save_all(pickler, plan, unsaved)
    except BaseException as exc:
        note(exc, obj, "item", n - length_hint(unsaved) - 1)
        raise
    if id(obj) in memo:  # it contains itself, and was saved while its items were: drop them and fetch it
        write((POP * n if short else POP_MARK) + pickler.get(memo[id(obj)][0]))
        return
    i = len(memo)
    write((_TUPLES[n] if short else TUPLE) + _put(proto, i))
    memo[id(obj)] = i, obj


_TUPLES = (b"", TUPLE1, TUPLE2, TUPLE3)
hooks.savers[tuple] = 1, _save_tuple


def _save_set(pickler: Any, plan: Plan, obj: set[Any], write: Write) -> None:
    memo = pickler.memo
    i = len(memo)
    write(EMPTY_SET + MEMOIZE)
    memo[id(obj)] = i, obj
    elements = iter(obj)
    while True:
        batch = list(islice(elements, _BATCHSIZE))
        if not batch:
            return
        write(MARK)
        try:
            write = (_save_all if _holds(pickler, plan) else _save_rest)(pickler, plan, iter(batch))
        except BaseException as exc:
            note(exc, obj, "element")
            raise
        write(ADDITEMS)
        if len(batch) < _BATCHSIZE:
            return


hooks.savers[set] = 4, _save_set  # through a reduce below protocol 4


def _save_frozenset(pickler: Any, plan: Plan, obj: frozenset[Any], write: Write) -> None:
    memo = pickler.memo
    write(MARK)
    try:
        write = _save_all(pickler, plan, iter(obj))
    except BaseException as exc:
        note(exc, obj, "element")
        raise
    if id(obj) in memo:
        write(POP_MARK + pickler.get(memo[id(obj)][0]))
        return
    i = len(memo)
    write(FROZENSET + MEMOIZE)
    memo[id(obj)] = i, obj


hooks.savers[frozenset] = 4, _save_frozenset


def _save_bytearray(pickler: Any, plan: Plan, obj: bytearray, write: Write) -> None:
    n = len(obj)
    if n >= pickler.framer._FRAME_SIZE_TARGET:
        save_outside(pickler, stock_methods["save_bytearray"], obj)
        return
    memo = pickler.memo
    i = len(memo)
    write(pack_bytearray8(BYTEARRAY8, n) + obj + MEMOIZE)
    memo[id(obj)] = i, obj


hooks.savers[bytearray] = 5, _save_bytearray
