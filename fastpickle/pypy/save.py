"""`Pickler.save` on PyPy, and the objects that go through a reduce there: what `pickler` and `reduce` are on CPython.

    save(obj) --- root: hooks.plan(self) --+-- PLAIN:          stock's save(), hook by hook
                                           +-- save_one(obj):  atoms and containers (`straight`)
                                                 +-- save_object(obj): stock's entry, or a reduce that is nobody's
                                                                       anybody's reduce, then stock's save_reduce()

After code that is not ours the plan is in doubt.  To look at it again takes about as long as stock takes to save a
small object, so while it is in doubt small objects are left to stock.

Not for: plain data (`straight`), nor for deciding what a hook forbids (`looks`).
"""

from __future__ import annotations

import copyreg
import pickle
from pickle import BUILD, NEWOBJ, POP, REDUCE
from typing import Any

from .. import hooks
from .._stdlib import refuse_reduce_value, refuse_unreducible, stock_methods
from ..doubts import doubt, outside, settled
from ..engine.reduce import is_stocks, watched_parts
from ..hooks import PLAIN, Plan, Write
from ..objects.asked import hides_no_reduce
from ..objects.values import AS_CLASS, reduce_value
from .looks import BY_ANYBODY, BY_DEFAULT, BY_STDLIB, Dump, kind_of
from .straight import FEWEST_OF_PYPY, TURNS, save_one

__all__ = ["save", "save_object"]

_pickle: Any = pickle  # its dispatch_table is no public name
_newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
_stock_save = stock_methods["save"]
_ATOMS = frozenset(hooks.ATOMS)


def save(self: Any, obj: Any, save_persistent_id: bool = True) -> None:
    """Write the opcodes of `obj`, as stock's `save` would.

    Args:
        self: the pickler.
        obj: any object.
        save_persistent_id: False for a persistent id itself, which is not to be asked for another one.

    Raises:
        PicklingError, and whatever the hooks of `obj` or of a subclass raise, as stock does.
    """
    try:
        plan = self._fastpickle_plan
    except AttributeError:  # it was bound under install(), and is called after uninstall()
        plan = None
    if plan is not PLAIN:
        if plan is None:
            if _is_tiny(obj):
                _stock_save(self, obj, save_persistent_id)
            else:
                _save_root(self, obj, save_persistent_id)
            return
        if plan.doubted is not None:
            t = type(obj)
            is_container = t is list or t is dict or t is tuple or t is set
            if is_container and len(obj) >= FEWEST_OF_PYPY:  # else stock is as soon
                plan = settled(self)
                if plan is not PLAIN:
                    try:
                        save_one(self, plan, self._fastpickle_dump, obj, True)
                    finally:
                        doubt(self)  # who has called may change something yet
                    return
        else:
            save_one(self, plan, self._fastpickle_dump, obj, True)
            return
    # What follows is stock's save(): to call that would make the traces too long that its own just fit into.
    self.framer.commit_frame()
    pid = self.persistent_id(obj)
    if pid is not None and save_persistent_id:
        self.save_pers(pid)
        return
    x = self.memo.get(id(obj))
    if x is not None:
        self.write(self.get(x[0]))
        return
    rv = NotImplemented
    reduce = getattr(self, "reducer_override", None)
    if reduce is not None:
        rv = reduce(obj)
    if rv is NotImplemented:
        t = type(obj)
        entry = self.dispatch.get(t)
        if entry is not None:
            entry(self, obj)
            return
        reduce = getattr(self, "dispatch_table", _pickle.dispatch_table).get(t)
        if reduce is not None:
            rv = reduce(obj)
        else:
            if issubclass(t, type):
                self.save_global(obj)
                return
            reduce = getattr(obj, "__reduce_ex__", None)
            if reduce is not None:
                rv = reduce(self.proto)
            else:
                reduce = getattr(obj, "__reduce__", None)
                if reduce is None:
                    raise refuse_unreducible(obj)
                rv = reduce()
    if isinstance(rv, str):
        self.save_global(obj, rv)
        return
    if not isinstance(rv, tuple) or not 2 <= len(rv) <= 6:
        refuse_reduce_value(obj, reduce, rv)
    self.save_reduce(*rv, obj=obj)


def _save_root(pickler: Any, obj: Any, save_persistent_id: bool) -> None:
    """Save the object that is dumped, with a plan that holds for it and for all that is in it."""
    plan = hooks.plan(pickler)
    object.__setattr__(pickler, "_fastpickle_plan", plan)  # the class may have a __setattr__ of its own
    try:
        if plan is PLAIN:
            _stock_save(pickler, obj, save_persistent_id)
        else:
            dump = Dump(pickler)
            object.__setattr__(pickler, "_fastpickle_dump", dump)
            save_one(pickler, plan, dump, obj)
    finally:
        if plan is not PLAIN:
            pickler.__dict__.pop("_fastpickle_dump", None)
        object.__delattr__(pickler, "_fastpickle_plan")


def _is_tiny(obj: Any) -> bool:
    """Tell whether an object is an atom, or a list or tuple of three at the most: a plan for it takes longer."""
    t = type(obj)
    if t is not list and t is not tuple:
        return _is_atom(t)
    n = len(obj)
    return n == 0 or (n <= 3 and _is_atom(type(obj[0])) and _is_atom(type(obj[n // 2])) and _is_atom(type(obj[n - 1])))


def _is_atom(t: type) -> bool:
    return type(t) is type and t in _ATOMS  # another metaclass may have a hash of its own


def save_object(pickler: Any, plan: Plan, obj: Any, write: Write | None) -> None:
    """Save an object that no plan contains and that is not in the memo, as the second half of stock's save() does.

    Args:
        pickler, plan, obj, write: as for a saver (see `hooks.Saver`); no `write` from `save` itself.

    Raises:
        PicklingError, and whatever the reduce raises.
    """
    t = type(obj)
    dump = pickler._fastpickle_dump
    kind = dump.kinds.get(id(t))
    if kind is None:
        if plan.is_choice is not None and write is not None and plan.is_choice(t):
            pickler.save(obj)
            return
        kind = kind_of(pickler, t)
        dump.kinds[id(t)] = kind
        dump.are_kinds_known = dump.are_kinds_known or kind != BY_ANYBODY
    if kind == BY_STDLIB or (kind == BY_DEFAULT and _says_nothing(obj.__dict__)):
        rv = obj.__reduce_ex__(plan.proto)
    else:
        _save_by_anybody(pickler, obj, t)
        return
    if len(rv) > 3 and (rv[3] is not None or rv[4] is not None):
        pickler.save_reduce(*rv, obj=obj)
    else:
        _save_reduced(pickler, plan, dump, obj, rv)


def _says_nothing(state: dict[str, Any]) -> bool:
    """Tell whether an instance has no attribute that its reduce would look up."""
    return hides_no_reduce(state) and "items" not in state  # of a subclass of dict


def _save_reduced(pickler: Any, plan: Plan, dump: Dump, obj: Any, rv: tuple[Any, ...]) -> None:
    """Save what a reduce gave, as stock's save_reduce() does, where that is a call of the usual form, and no items."""
    for is_second in TURNS:
        if is_second:
            _save_call(pickler, plan, dump, obj, rv)


def _save_call(pickler: Any, plan: Plan, dump: Dump, obj: Any, rv: tuple[Any, ...]) -> None:
    func = rv[0]
    args = rv[1]
    write = pickler.write
    if func is _newobj and plan.proto >= 2:
        save_one(pickler, plan, dump, args[0])
        save_one(pickler, plan, dump, args[1:])
        write(NEWOBJ)
    else:
        save_one(pickler, plan, dump, func)
        save_one(pickler, plan, dump, args)
        write(REDUCE)
    entry = pickler.memo.get(id(obj))
    if entry is not None:  # it contains itself, and was saved while its arguments were: drop this one and fetch that
        write(POP + pickler.get(entry[0]))
    else:
        pickler.memoize(obj)
    if len(rv) > 2:
        state = rv[2]
        if state is not None:
            save_one(pickler, plan, dump, state)
            write(BUILD)


def _save_by_anybody(pickler: Any, obj: Any, t: type) -> None:
    """Save an object through its dispatch entry, or by a reduce that may be anybody's."""
    if type(t) is not type:
        doubt(pickler)  # the table asks for its hash
    entry = pickler.dispatch.get(t)
    if entry is not None:
        if is_stocks(pickler, entry, obj, t):
            entry(pickler, obj)
        elif id(entry) in hooks.warning_entries:
            outside(pickler, type(pickler).save, obj)  # which calls it, as the plan is in doubt
        else:
            outside(pickler, entry, obj)
        return
    doubt(pickler)
    try:
        reduce, rv = reduce_value(pickler, obj, t)
        doubt(pickler)  # it may have used the pickler itself, which looks at the plan, and changed it after that
        if rv is AS_CLASS:
            pickler.save_global(obj)
        elif isinstance(rv, str):
            pickler.save_global(obj, rv)
        elif not isinstance(rv, tuple) or not 2 <= len(rv) <= 6:
            refuse_reduce_value(obj, reduce, rv)
        else:
            pickler.save_reduce(*watched_parts(pickler, rv), obj=obj)
    finally:
        doubt(pickler)
