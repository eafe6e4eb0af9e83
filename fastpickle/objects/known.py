"""What C may do in a pickler's place without asking Python: save classes by name, and reduce instances of some types.

    is_by_name(pickler, class, ...) --> whether its name leads to it, and stock would save it so; functions alike
    finds_builtins(pickler) ----------> whether that holds of whatever C finds in the module `builtins`
    find_hiding(pickler, plan, type) -> the names in an instance's `__dict__` that would hide its class's, or None
    reducer(pickler, plan, type) -----> its reduce, which raises `Refused` where there is such a name, or None

To find that out runs nobody's code, and the answers hold until somebody's code runs.

Not for: which types have a reduce that runs nobody's code, whatever the pickler (`instances`).
"""

from __future__ import annotations

import builtins
import copyreg
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable
from operator import methodcaller
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from .. import hooks
from .._stdlib import NO_VALUE, entry_of, stock_methods
from ..hooks import Plan
from ..interrupts import GivenUp, is_interrupt
from ..older import method_of
from .arrays import HEAP_TYPE, is_dtype, is_dtype_itself, is_numpys_reduce, is_of_numpy
from .asked import ASKED_FOR, METACLASS_IDS, METACLASSES, Names, are_texts, hides_no_reduce
from .instances import has_own_reduce, is_bare, names, own_reduce, usual_names
from .last import last
from .likely import is_somebodys
from .stdlibs import ENTRIES, LOOKED_INTO, is_array

__all__ = [
    "METACLASS_IDS",
    "Refused",
    "extension_registry",
    "find_hiding",
    "finds_builtins",
    "finds_names",
    "has_reduce_entry",
    "is_by_name",
    "is_found",
    "is_heap_type",
    "is_refused",
    "name_of_dtypes",
    "reduce_entry",
    "reduce_of",
    "reducer",
    "usual_import",
]

_pickle: Any = pickle  # its dispatch_table is no public name, nor what save_global() calls
_whichmodule: Any = _pickle.whichmodule
_getattribute: Any = _pickle._getattribute
#: Classes and functions in it are written as a number, and not memoized.
extension_registry: Any = copyreg._extension_registry  # type: ignore[attr-defined]  # typeshed does not know it


class Refused(GivenUp):
    """The C pickler has met something that only Python can save, or has written too much."""


def is_heap_type(t: type) -> bool:
    """Tell whether a class may be anybody's; one of another metaclass is, and is not asked for its flags."""
    return id(type(t)) not in METACLASS_IDS or bool(t.__flags__ & HEAP_TYPE)


def reduce_of(t: type, hiding: Names, proto: int) -> Any:
    """Return a function that reduces instances of `t` as C would, after a look at their attributes."""
    if t in ENTRIES:
        return copyreg.dispatch_table[t]
    reduce: Callable[[Any], Any] = methodcaller("__reduce_ex__", proto)
    is_pure = hiding.look or LOOKED_INTO.get(t)
    if has_own_reduce(t):
        reduce = own_reduce(t, proto) or reduce
        if not hiding:
            return reduce
        hides_it = frozenset(hiding).isdisjoint  # as that of `hiding` itself does it, with a call less

        def read(obj: Any) -> Any:
            state = obj.__dict__
            if type(state) is dict and are_texts(map(id, map(type, state))) and hides_it(state):
                return reduce(obj)
            raise Refused

        return read
    if not hiding:
        if is_pure is None:
            return reduce

        def looked_into(obj: Any) -> Any:
            if is_pure(obj):
                return reduce(obj)
            raise Refused

        return looked_into
    hides_nothing = hides_no_reduce if hiding is ASKED_FOR else hiding.isdisjoint
    if is_pure is not None or not is_bare(t):

        def looked_at(obj: Any) -> Any:
            if (
                type(state := obj.__dict__) is dict
                and (not state or hides_nothing(state))
                and (is_pure is None or is_pure(obj))
            ):
                return reduce(obj)
            raise Refused

        return looked_at
    newobj = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
    args = (t,)

    def reduce_bare(obj: Any) -> Any:
        state = obj.__dict__
        if type(state) is not dict:
            raise Refused
        if not state:
            return reduce(obj)
        if (  # as `hides_no_reduce`, with a call less
            "__reduce_ex__" in state
            or "__reduce__" in state
            or "__getstate__" in state
            or "__getnewargs__" in state
            or "__getnewargs_ex__" in state
        ):
            raise Refused
        return newobj, args, state  # sooner than object.__reduce_ex__ looks for all that there is not

    return reduce_bare


def reducer(pickler: Any, plan: Plan, t: type) -> Callable[[Any], Any] | None:
    """Return what reduces instances of `t` and runs no code of others, or raises; None if that may be anybody's.

    Args:
        pickler: in whose place it is done, with the dispatch entries and rule that stock has.
        plan: its plan.
        t: a type, whose own type is one of `METACLASS_IDS`.
    """
    if issubclass(t, PurePath):  # 3.12 asks what its segments start with
        return None
    if plan.proto >= 5 and is_array(t):  # the buffer is saved by stock
        return None
    hiding = find_hiding(pickler, plan, t)
    return None if hiding is None else reduce_of(t, hiding, plan.proto)


def is_refused(pickler: Any, plan: Plan, t: type) -> bool:
    """Tell whether C gives up at every instance of a type that it has no opcodes for."""
    if t is FunctionType or t is BuiltinFunctionType or id(t) in METACLASS_IDS:
        return False
    try:
        if plan.graft_rule is not None and plan.graft_rule.call_of(pickler, t) is not None:
            return False
        return not (id(type(t)) in METACLASS_IDS or is_dtype(t)) or find_hiding(pickler, plan, t) is None
    except Exception as exc:  # as if C had asked (`is_written`)
        if is_interrupt(exc):
            raise
        return True


def find_hiding(pickler: Any, plan: Plan, t: type) -> Names | None:
    """Tell whether instances of `t` may be reduced by anybody, as `instances.names` does, for this pickler."""
    usual = usual_names(t)
    if usual is None and is_somebodys(t):  # what comes next takes 5 us
        last.remember_gave_up(id(t))
        return None
    if plan.proto < 2 or pickler.dispatch.get(t) is not None or (plan.is_choice is not None and plan.is_choice(t)):
        return None
    entry = entry_of(copyreg.dispatch_table, t)
    if reduce_entry(pickler, t) is not entry or (entry is None and NO_VALUE is not None):  # None is no function
        return None
    if usual is not None and entry is NO_VALUE:
        return usual
    found = names(t, None if entry is NO_VALUE else entry)
    if found is not None and is_of_numpy(t) and builtins.__import__ is not usual_import:
        return None  # it is called for each reduce
    if found is not None and plan.proto >= 5 and is_array(t) and pickler._buffer_callback is not None:
        return None  # it is asked about each array
    return found


def reduce_entry(pickler: Any, t: type) -> Any:
    """Return the entry of `t` in the `dispatch_table` of the pickler or of copyreg; `_ANYBODYS` if that runs code."""
    table = _table_of(pickler)
    return _ANYBODYS if table is None else entry_of(table, t)


def _table_of(pickler: Any) -> Any:
    """Return the `dispatch_table` of the pickler or of copyreg; None if to ask it may run code."""
    for c in type(pickler).__mro__:
        if "dispatch_table" in c.__dict__:
            return None
    table = pickler.__dict__.get("dispatch_table", _pickle.dispatch_table)  # stock's own name for copyreg's
    if type(table) is not dict and (type(table) is not ChainMap or any(type(m) is not dict for m in table.maps)):
        return None
    return table


_ANYBODYS: Any = object()


def has_reduce_entry(pickler: Any, *types: type) -> bool:
    """Tell whether there is an entry of one of some types that the pickler may ask, or that C may."""
    table = _table_of(pickler)
    if table is None:
        return True
    for t in types:  # noqa: SIM110  # any() of a generator takes three times as long
        if entry_of(table, t) is not NO_VALUE or t in copyreg.dispatch_table:
            return True
    return False


def is_by_name(pickler: Any, obj: Any, t: type) -> bool:
    """Tell whether C may save a class or a function by its name, which is found without importing anything."""
    # Of these dill's table, which is slow where it has no entry, says what any dict would.
    entry = dict.get(pickler.dispatch, t) if t is BuiltinFunctionType else pickler.dispatch.get(t)
    if entry is None:
        if t is FunctionType or t is type or has_reduce_entry(pickler, t):
            return False
        if t is BuiltinFunctionType and type(obj.__self__) is not ModuleType:  # a method
            return False
        return is_found(pickler, obj)
    # What a library asks may be the module (PEP 562), so that is next.
    return entry in hooks.saved_by_name and is_found(pickler, obj) and hooks.saved_by_name[entry](pickler, obj)


def is_found(pickler: Any, obj: Any) -> bool:
    """Tell whether stock's save_global() finds a class or function under its name, and imports nothing for that."""
    name = getattr(obj, "__module__", None)  # which a class need not have
    module = sys.modules.get(name) if type(name) is str else None
    return (
        type(module) is ModuleType
        and type(obj.__qualname__) is str
        and module.__dict__.get(obj.__qualname__) is obj
        and finds_names(pickler)
    )


def name_of_dtypes(pickler: Any, obj: Any, t: type) -> str | None:
    """Return the name by which stock would save the class of all of numpy's dtypes; None if it is not that, or not so.

    The very object counts: another text of the same letters may be in the memo.
    """
    if not is_dtype_itself(obj):
        return None
    if pickler.dispatch.get(t) is not None:
        return obj.__qualname__ if is_by_name(pickler, obj, t) else None
    entry = copyreg.dispatch_table.get(t)
    if is_numpys_reduce(entry) and reduce_entry(pickler, t) is entry and is_found(pickler, obj):
        return entry(obj)  # type: ignore[no-any-return]  # it is numpy's
    return None


def finds_names(pickler: Any) -> bool:
    """Tell whether what a pickler calls for what is saved by its name does what stock's save_global() does."""
    return (
        builtins.__import__ is usual_import
        and type(sys.modules) is dict
        and _pickle.whichmodule is _whichmodule
        and _pickle._getattribute is _getattribute
        and _pickle._extension_registry is extension_registry
        and method_of(type(pickler), "save_global") in hooks.known_save_globals
        and "save_global" not in pickler.__dict__
    )


def finds_builtins(pickler: Any) -> bool:
    """Tell whether C may save any class or function of the module `builtins` unasked: stock does it as C does."""
    dispatch = pickler.dispatch
    return (
        sys.modules.get("builtins") is builtins
        and "__getattr__" not in builtins.__dict__
        and builtins.__import__ is usual_import
        and dispatch.get(type) is _save_type
        and dispatch.get(FunctionType) is _save_global
        and method_of(type(pickler), "save_global") is _save_global
        and "save_global" not in pickler.__dict__
        and all(dispatch.get(t) is None and not has_reduce_entry(pickler, t) for t in _BY_REDUCE)
    )


_save_type = stock_methods["save_type"]
_save_global = stock_methods["save_global"]
#: Of such types are functions and classes for which there is no dispatch entry.
_BY_REDUCE: Final = (BuiltinFunctionType, *(t for t in METACLASSES if t is not type))
usual_import: Final = builtins.__import__
