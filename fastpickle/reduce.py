"""What no plan contains: objects that go through a reduce, classes and functions, and what libraries save themselves.

    save_object(obj) --+-- dispatch entry ----------------> that function
                       +-- dispatch_table, __reduce_ex__ --> value --+-- of the usual form --> _save_reduced
                                                                     +-- of any other -------> stock's save_reduce

It is the second half of stock's save(): what a reduce may give, PEP 307 and PEP 3154 say, and stock checks.  Since any
of this may be somebody's code, the plan is settled again after it.

Not for: `reducer_override` and `persistent_id`.  A pickler that has one of them goes hook by hook (`pickler`).
"""

from __future__ import annotations

import codecs
import copyreg
import pickle
from collections.abc import Callable
from copyreg import __newobj__  # type: ignore[attr-defined]  # it has no type in typeshed
from operator import length_hint
from pickle import BUILD, NEWOBJ, POP, REDUCE
from types import BuiltinMethodType
from typing import Any

from ._stdlib import NO_VALUE, note, refuse_reduce_value, stock_methods
from .hooks import PLAIN, Plan, Write, holds, outside, settle, watched
from .plain import put, save_all, save_rest

__all__ = ["save_object", "save_reduce_value"]

_pickle_module: Any = pickle  # its dispatch_table is no public name


def save_object(pickler: Any, plan: Plan, obj: Any, write: Write | None = None) -> None:
    """Save an object that no plan contains and that is not in the memo, as the second half of stock's save() does.

    Args:
        pickler, plan, obj, write: as for a saver (see `hooks.Saver`); a `plan` that is `PLAIN` will do too.
    """
    t = type(obj)
    entry = pickler.dispatch.get(t)
    if entry is not None:
        own = _REDUCES.get(id(entry))
        if own is None or not plan:
            outside(pickler, entry, obj)
        else:
            _save_reduced(pickler, plan, obj, *own(obj))
        return
    reduce = getattr(pickler, "dispatch_table", _pickle_module.dispatch_table).get(t, NO_VALUE)
    if reduce is not NO_VALUE:
        rv = reduce(obj)
    elif issubclass(t, type):
        outside(pickler, _save_global, obj)
        return
    else:
        reduce = getattr(obj, "__reduce_ex__", NO_VALUE)
        if reduce is NO_VALUE:
            outside(pickler, stock_methods["save"], obj)
            return
        rv = reduce(pickler.proto)
    plan = pickler._fastpickle_plan
    if plan and (t.__flags__ & _HEAP_TYPE or type(reduce) is not BuiltinMethodType) and reduce is not _reduce_complex:
        # the reduce may have been anybody's code
        plan = pickler.__dict__["_fastpickle_plan"] = settle(pickler, plan.in_doubt)
    if plan and type(rv) is tuple and 2 <= len(rv) <= 5:
        try:
            if _save_reduced(pickler, plan, obj, *rv):
                return
        except BaseException as exc:
            note(exc, obj, "object")
            raise
    save_reduce_value(pickler, obj, reduce, rv)


_reduce_complex: Any = copyreg.dispatch_table.get(complex)

#: What stock's own functions give to save_reduce() at protocols that have no opcode for the type, by their ids.
_REDUCES: dict[int, Callable[[Any], tuple[Any, tuple[Any, ...]]]] = {
    id(stock_methods["save_bytes"]): lambda obj: (
        (codecs.encode, (str(obj, "latin1"), "latin1")) if obj else (bytes, ())
    ),
    id(stock_methods["save_bytearray"]): lambda obj: (bytearray, (bytes(obj),)) if obj else (bytearray, ()),
    id(stock_methods["save_set"]): lambda obj: (set, (list(obj),)),
    id(stock_methods["save_frozenset"]): lambda obj: (frozenset, (list(obj),)),
}


def save_reduce_value(pickler: Any, obj: Any, reduce: Any, rv: Any) -> None:
    """Save what `reduce` gave for `obj`, by stock's save_global() or save_reduce()."""
    if isinstance(rv, str):
        outside(pickler, _save_global, obj, rv)
        return
    if not isinstance(rv, tuple) or not 2 <= len(rv) <= 6:
        refuse_reduce_value(obj, reduce, rv)
    try:
        if pickler._fastpickle_plan is not PLAIN:
            iterators = (None if items is None else watched(pickler, items) for items in rv[3:5])
            rv = *rv[:3], *iterators, *rv[5:]
        pickler.save_reduce(*rv, obj=obj)
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
        write = save_all(pickler, plan, parts)
    except BaseException as exc:
        note(exc, obj, labels[1 - length_hint(parts)])
        raise
    write(opcode)
    memo = pickler.memo
    key = id(obj)
    if key in memo:  # it contains itself, and was saved while its parts were: drop this one and fetch that
        write(POP + pickler.get(memo[key][0]))
    elif holds(pickler, plan):
        i = len(memo)
        write(put(plan.proto, i))
        memo[key] = i, obj
    else:
        pickler.memoize(obj)
    if state is not None:
        try:
            states = iter((state,))
            write = (save_all if holds(pickler, plan) else save_rest)(pickler, plan, states)
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
