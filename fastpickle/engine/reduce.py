"""Objects that no plan contains: by a function that knows the type, or by a reduce.

    save_object(obj) --+-- dispatch entry ----------------------------> that function
                       +-- dispatch_table, __reduce_ex__ ---> value --+-- usual_form() ---> its parts, in the loop
                                                                      +-- anything else --> stock's save_reduce()

PEP 307 says what a reduce may give, PEP 3154 which opcodes it becomes.  Any of this may run somebody's code, so the
plan is settled again after it.

Not for: `reducer_override` and `persistent_id`.  A pickler that has one of them goes hook by hook (`pickler`).
"""

from __future__ import annotations

import codecs
import copyreg
import pickle
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from pickle import APPEND, APPENDS, BUILD, MARK, NEWOBJ, NEWOBJ_EX, POP, REDUCE, SETITEM, SETITEMS, TUPLE2
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, Final

from .._stdlib import NO_VALUE, for_batch, note, refuse_class, refuse_reduce_value, stock_methods
from ..accelerator.cpickler import unordered
from ..accelerator.lazymemo import put_in_order
from ..doubts import Dump, doubt, holds, settled, watched
from ..hooks import ASIDE, Plan, Reduced, Write, entry_writers, looking_up, nothing_left, warning_entries
from ..objects.arrays import HEAP_TYPE
from ..objects.asked import ABSENT, ASKED_FOR, ASKED_FOR_OF_DICT, HAVE_A_NAME, HIDES_WHAT_IS_READ, in_class
from ..objects.instances import COPIED, has_own_reduce, is_default, is_plain_class
from ..objects.known import METACLASS_IDS, is_found
from ..objects.last import last
from ..objects.likely import is_somebodys
from ..objects.stdlibs import are_keys_pure
from ..objects.values import AS_CLASS, old_value, value_by
from .brief import asks_anybody, save_brief
from .parts import SHORTEST_RUN
from .plain import append_batches, set_batches

__all__ = [
    "LIST_ITERATORS",
    "NAMES_OF_NEW",
    "WRITTEN_IN_C",
    "are_pairs_nobodys",
    "is_nobodys",
    "is_stocks",
    "newobj",
    "reduced",
    "save_object",
    "usual_form",
    "watched_parts",
]

_pickle: Any = pickle  # its dispatch_table is no public name
newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
_newobj_ex: Any = copyreg.__newobj_ex__  # type: ignore[attr-defined]  # as above
NAMES_OF_NEW: Final = ("__newobj__", "__newobj_ex__")
#: What 3.14 calls the parts of what a reduce gave, in its notes.
_LABELS_OF_NEW: Final = ("class", "__new__ arguments")
_LABELS_OF_CALL: Final = ("reconstructor", "reconstructor arguments")


def save_object(
    pickler: Any, plan: Plan, obj: Any, write: Write | None = None, asked: Sequence[Any] | None = None
) -> Reduced | None:
    """Save an object that no plan contains and that is not in the memo, as the second half of stock's save() does.

    Args:
        pickler, plan, obj, write: as for a saver (see `hooks.Saver`); no `write` from `Pickler.save` itself.
        asked: its reduce and what that gave, if that has been asked.

    Returns:
        What is to be saved for it, if the reduce gave what it usually does; else None, and it is saved.

    Raises:
        PicklingError, and whatever the reduce raises.
    """
    t = type(obj)
    state = pickler.__dict__
    dump: Dump = state["_fastpickle_dump"]
    if write is not None and plan.is_choice is not None and dump.is_choice(pickler, plan, t):
        if plan.save_choice is not None and plan.save_choice(pickler, plan, obj):
            return None
        doubt(pickler)  # as `outside` does, with a frame less
        try:
            pickler.save(obj)
        finally:
            doubt(pickler)
        return None
    call: Any = None
    is_own = has_default = False
    entry: Any = None
    if asked is None:
        if id(type(t)) not in METACLASS_IDS:  # the table asks for its hash
            state["_fastpickle_plan"] = plan.in_doubt
        entry = pickler.dispatch.get(t)
    if entry is None:
        if asked is not None:
            reduce, rv = asked
        else:
            # Who ran somebody's code once is taken to do so again, which costs a look at the pickler.
            is_somebodys_own = id(t) in dump.somebodys
            has_default = not is_somebodys_own and _has_default_reduce(dump, obj, t)
            if not has_default and unordered and id(pickler) in unordered:
                put_in_order(pickler)
            state["_fastpickle_plan"] = plan.in_doubt
            table = getattr(pickler, "dispatch_table", _pickle.dispatch_table)
            if type(t) is type and type(table) is dict and t not in table and not issubclass(t, type):
                reduce = getattr(obj, "__reduce_ex__", NO_VALUE)  # as `value_by` does, with a call less
                if reduce is not NO_VALUE:
                    rv = reduce(pickler.proto)
                else:
                    reduce, rv = old_value(obj)
            else:
                reduce, rv = value_by(table, pickler, obj, t)
            if not is_somebodys_own and is_nobodys(reduce, obj, t, has_default) and _is_table_plain(pickler):
                state["_fastpickle_plan"] = plan
            else:  # what it changed, if anything, counts from here on
                dump.somebodys.add(id(t))
                plan = settled(pickler)
                t = type(obj)
        if rv is AS_CLASS:
            call = pickler.save_global
            args: Any = (obj,)
        elif isinstance(rv, str):
            call = pickler.save_global
            args = (obj, rv)
    else:
        if unordered and id(pickler) in unordered and id(entry) not in looking_up:
            put_in_order(pickler)
        own = _OWN_REDUCES.get(id(t))
        if own is not None and entry is own[0]:
            is_own = True
            rv = own[1](obj)
        elif write is None or is_stocks(pickler, entry, obj, t):  # `Pickler.save` has asked that
            entry(pickler, obj)
            return None
        elif id(entry) in warning_entries:
            call = pickler.save
            args = (obj,)
        else:
            call = entry
            args = (pickler, obj)
    if call is not None:
        found = state["_fastpickle_plan"]
        in_doubt = found.in_doubt
        state["_fastpickle_plan"] = in_doubt if in_doubt.doubted is None else ASIDE
        try:
            rest = None
            if call is entry and id(entry) in entry_writers:
                rest = entry_writers[id(entry)](pickler, obj, plan if found is plan else None)
            if rest is nothing_left:
                in_doubt = found
            elif rest is not None:
                rest()
            else:
                call(*args)
        finally:
            state["_fastpickle_plan"] = in_doubt
        return None

    if type(rv) is not tuple:
        if not isinstance(rv, tuple):
            refuse_reduce_value(obj, reduce, rv)
        doubt(pickler)  # its methods may be anybody's
    if not 2 <= len(rv) <= 6:
        refuse_reduce_value(obj, reduce, rv)
    is_ours = type(rv) is tuple and bool(plan)
    if is_ours and plan.is_for_brief and not has_default and id(t) not in dump.not_brief:
        is_written = save_brief(pickler, plan, obj, t, rv)
        if is_written:
            if id(t) not in dump.brief and not issubclass(t, type):
                dump.brief.add(id(t))
            return None
        if is_written is not None and (id(rv[0]) in dump.memo or id(t) in dump.memo):  # else it may be the next time
            dump.not_brief.add(id(t))
            dump.brief.discard(id(t))
            last.remember_not_brief(t)
    try:
        form: Any = None
        if is_ours:
            func, args = rv[:2]
            is_anybodys = not has_default and asks_anybody(func, t)
            if is_anybodys:
                doubt(pickler)
            elif type(args) is not tuple:
                pass
            elif func is newobj:  # as `usual_form` finds, of what asks nobody
                if args and args[0] is t and plan.proto >= 2:
                    form = (t, args[1:]), NEWOBJ, _LABELS_OF_NEW
            elif id(type(func)) in HAVE_A_NAME and func.__name__ not in NAMES_OF_NEW:
                form = (func, args), REDUCE, _LABELS_OF_CALL
            if form is None:
                form = usual_form(plan, obj, rv)
            if is_anybodys:
                doubt(pickler)
        if form is None:
            doubt(pickler)
            pickler.save_reduce(*watched_parts(pickler, rv), obj=obj)
            return None
    except BaseException as exc:
        if not is_own:
            note(exc, obj, "object")
        raise
    return reduced(pickler, plan, obj, rv, form, "" if is_own else "object")


def watched_parts(pickler: Any, rv: Any, watch: Callable[[Any, Any], Any] = watched) -> list[Any]:
    """Return what a reduce gave, its items watched: code that is not ours may run for each of them.

    Args:
        pickler: whose plan is in doubt after that.
        rv: a tuple; of a subclass as much is asked as by stock's `*rv`.
        watch: makes an iterable of one that is not None.
    """
    values = [*tuple(rv)]
    values[3:5] = [None if items is None else watch(pickler, items) for items in values[3:5]]
    return values


def reduced(
    pickler: Any,
    plan: Plan,
    obj: Any,
    rv: tuple[Any, ...],
    form: tuple[tuple[Any, ...], bytes, tuple[str, ...]],
    outer: str = "object",
) -> Reduced:
    """Return what is to be saved for an object, by what its reduce gave and `usual_form` of that.

    Args:
        pickler, plan, obj: the pickler, its plan in force, and the object.
        rv: what the reduce gave.
        form: its form.
        outer: what 3.14 calls the object in its notes.
    """
    parts, opcode, labels = form
    n = len(rv)
    if n == 2:
        return (parts, opcode, labels, outer, None, (), b"")
    obj_state = rv[2]
    finish = None
    if n > 3:
        _, _, _, listitems, dictitems, state_setter = (*rv, None, None)[:6]
        if listitems is not None or dictitems is not None:
            finish = partial(_save_items, pickler, plan, obj, listitems, dictitems)
        if obj_state is not None and state_setter is not None:
            # It is called with the object, which is in the memo then, and the state; its result is dropped.
            return (parts, opcode, labels, outer, finish, (state_setter, obj, obj_state), TUPLE2 + REDUCE + POP)
    if obj_state is None:
        return (parts, opcode, labels, outer, finish, (), b"")
    return (parts, opcode, labels, outer, finish, (obj_state,), BUILD)


def _save_items(
    pickler: Any, plan: Plan, obj: Any, listitems: Any, dictitems: Any
) -> tuple[list[Any], bytes] | tuple[Callable[..., Any], tuple[Any, ...]] | None:
    """Save the items of an object that a reduce gave iterators over, or None.

    Returns:
        The items, with what ends them, if there are so few that they are for the loop, which has written nothing since;
        or what is to be called yet, and with what: a Python frame more than stock has would be one too many.
    """
    if listitems is not None:
        if type(listitems) in LIST_ITERATORS and holds(pickler, plan):
            if dictitems is None and type(listitems) is _ListIterator:  # a deque's may raise if it is asked twice
                few = list(islice(listitems, SHORTEST_RUN))
                if 0 < len(few) < SHORTEST_RUN:
                    if len(few) == 1:
                        return few, APPEND
                    pickler.write(MARK)
                    return few, APPENDS
                listitems = chain(few, listitems)
            append_batches(pickler, plan, listitems, obj, pickler.write)
        elif dictitems is None:
            return pickler._batch_appends, for_batch(watched(pickler, listitems), obj)
        else:
            pickler._batch_appends(*for_batch(watched(pickler, listitems), obj))
    if dictitems is not None:
        if not (are_pairs_nobodys(obj, dictitems) and holds(pickler, plan)):
            return pickler._batch_setitems, for_batch(watched(pickler, dictitems), obj)
        items = chain.from_iterable(dictitems)
        few = list(islice(items, 2 * SHORTEST_RUN))
        if 0 < len(few) < 2 * SHORTEST_RUN:
            if len(few) == 2:
                return few, SETITEM
            pickler.write(MARK)
            return few, SETITEMS
        set_batches(pickler, plan, chain(few, items), obj, pickler.write)
    return None


def _is_table_plain(pickler: Any) -> bool:
    """Tell whether a type is looked up in the dispatch table without running anybody's code."""
    of_class = in_class(type(pickler), "dispatch_table")  # a property, which is not asked again for that
    return (of_class is ABSENT or type(of_class) is dict) and (
        type(pickler.__dict__.get("dispatch_table", _pickle.dispatch_table)) is dict
    )


def is_nobodys(reduce: Any, obj: Any, t: type, has_default: bool) -> bool:
    """Tell whether a reduce that has been asked is sure to have run no code but the interpreter's.

    Args:
        reduce: the function.
        obj: the object that it reduced.
        t: its type.
        has_default: what `_has_default_reduce` said before.
    """
    if type(reduce) is BuiltinMethodType:
        return reduce.__self__ is obj and (
            has_default
            # Another metaclass may have flags, and a hash, of its own.
            or (
                id(type(t)) in METACLASS_IDS
                and (not t.__flags__ & HEAP_TYPE or t in WRITTEN_IN_C)
                and _asks_nobody(obj, t)
            )
        )
    return reduce is _reduce_complex


def _asks_nobody(obj: Any, t: type) -> bool:
    """Tell whether a reduce that is written in C has asked nothing of the object that may be anybody's."""
    if t is MethodType:
        return type(obj.__func__) is FunctionType  # else the name may be a property
    if t is OrderedDict:
        own = obj.__dict__
        return are_keys_pure(obj) and type(own) is dict and ASKED_FOR_OF_DICT.isdisjoint(own)
    if not t.__dictoffset__:
        return t is not _OrderedItems
    if in_class(t, "__reduce__") is in_class(object, "__reduce__"):
        return False
    own = obj.__reduce__  # not its `__dict__`, which an exception has not got until somebody asks for it
    return type(own) is BuiltinMethodType and own.__self__ is obj


#: Types whose reduce is C, although they are heap types in some Pythons; `stdlibs.STDLIBS` has those that C is given.
WRITTEN_IN_C: frozenset[type] = frozenset((deque, defaultdict, Decimal, date, time, datetime, timedelta, timezone))
_reduce_complex: Any = getattr(copyreg, "pickle_complex", None)  # written in Python, and in the dispatch_table


def is_stocks(pickler: Any, entry: Any, obj: Any, t: type) -> bool:
    """Tell whether a dispatch entry is stock's for its type, and runs no code but the interpreter's for `obj`.

    That is so for bytes, sets and the like at old protocols, and for a class or function that is found under its name
    in a module that has been imported already.
    """
    own = _OWN_REDUCES.get(id(t))
    if own is not None:
        return entry is own[0]
    if id(t) not in HAVE_A_NAME or (entry is not _save_global and entry is not _save_type):
        return False
    return is_found(pickler, obj)


_save_global: Any = stock_methods["save_global"]
_save_type: Any = stock_methods["save_type"]


def _has_default_reduce(dump: Dump, obj: Any, t: type) -> bool:
    """Tell whether the reduce of `obj` is sure to be `object`'s own, and to run no code but the interpreter's.

    It is so for instances of classes that define nothing of what `object.__reduce_ex__` asks for (PEP 307), or what
    only reads them: dataclasses and plain classes, but none with slots, a metaclass or a `__getattr__`.  The answer for
    a type is kept until somebody's code runs, which might change the class; the object's own attributes are looked at
    each time.
    """
    if type(t) is not type:
        return False
    if t not in dump.nobodys:
        if not dump.looks:
            return False
        dump.looks -= 1  # where code of others runs between the objects, the looks cost more than they give
        if (
            is_somebodys(t)  # most often: what comes next takes 5 us
            or not t.__dictoffset__
            or any("__slots__" in vars(c) for c in t.__mro__[:-1])
            or not is_plain_class(t)
            or not is_default(t)
        ):
            return False
        dump.nobodys[t] = HIDES_WHAT_IS_READ if has_own_reduce(t) or issubclass(t, COPIED) else ASKED_FOR
    elif dump.looks < 4:
        dump.looks += 1
    own = obj.__dict__
    return type(own) is dict and dump.nobodys[t].isdisjoint(own)


#: What stock's own functions give to save_reduce() at protocols that have no opcode for their type; by the type's id,
#: since its hash may be anybody's.
_OWN_REDUCES: dict[int, tuple[Any, Callable[[Any], tuple[Any, tuple[Any, ...]]]]] = {
    id(bytes): (
        stock_methods["save_bytes"],
        lambda obj: (codecs.encode, (str(obj, "latin1"), "latin1")) if obj else (bytes, ()),
    ),
    id(bytearray): (
        stock_methods["save_bytearray"],
        lambda obj: (bytearray, (bytes(obj),)) if obj else (bytearray, ()),
    ),
    id(set): (stock_methods["save_set"], lambda obj: (set, (list(obj),))),
    id(frozenset): (stock_methods["save_frozenset"], lambda obj: (frozenset, (list(obj),))),
}

#: Iterators over items that run nobody's code; of pairs see `are_pairs_nobodys`.
_ListIterator: Any = type(iter([]))
LIST_ITERATORS: frozenset[type] = frozenset((_ListIterator, type(iter(())), type(iter(deque()))))
_PairIterator: Any = type(iter({}.items()))
_OrderedItems: Any = type(iter(OrderedDict().items()))


def are_pairs_nobodys(obj: Any, dictitems: Any) -> bool:
    """Tell whether an iterator over pairs that a reduce gave for `obj` runs nobody's code, and gives nothing else.

    That of an OrderedDict looks its keys up; whose iterator it is cannot be told of others.
    """
    t = type(dictitems)
    return t is _PairIterator or (t is _OrderedItems and type(obj) is OrderedDict and are_keys_pure(obj))


def usual_form(
    plan: Plan, obj: Any, rv: tuple[Any, ...], may_fail: bool = True
) -> tuple[tuple[Any, ...], bytes, tuple[str, ...]] | None:
    """Tell whether what a reduce gave is a call of a function, or of a class's `__new__`, as it should be.

    Args:
        plan: whose protocol counts.
        obj: the object that was reduced.
        rv: a tuple of two to six.
        may_fail: whether to raise what stock raises for an object that says to be of another class: it is asked once.

    Returns:
        The parts to be saved, the opcode that calls the first with the others, and what 3.14 calls them in its notes;
        None for anything unusual or wrong, which stock's save_reduce() knows.
    """
    func = rv[0]
    args = rv[1]
    if type(args) is not tuple or not callable(func):
        return None
    form: tuple[tuple[Any, ...], bytes, tuple[str, ...]]
    if func is newobj and plan.proto >= 2:
        if not args or not hasattr(args[0], "__new__"):
            return None
        form = (args[0], args[1:]), NEWOBJ, _LABELS_OF_NEW
    elif func is _newobj_ex and plan.proto >= 4:
        if len(args) != 3 or not hasattr(args[0], "__new__"):
            return None
        form = args, NEWOBJ_EX, ("class", "__new__ arguments", "__new__ arguments")
    elif getattr(func, "__name__", "") in NAMES_OF_NEW:  # stock goes by the name of the function
        return None
    else:
        return (func, args), REDUCE, _LABELS_OF_CALL
    told = obj.__class__
    if told is args[0]:
        return form
    if may_fail:
        refuse_class(func, args, obj, told)
    return None
