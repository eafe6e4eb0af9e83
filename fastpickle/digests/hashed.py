"""Objects that no plan contains, for picklers that make digests (`hashing`): by a reduce, or through the library.

    save_known(obj)   in the loop: what the library's backend encodes (`others` and `save_array` of its rule), an
                      instance whose reduce runs nobody's code, a class that is found under its name, or what the
                      library's own `save` takes over and nobody else
    save_other(obj)   after the library's `save`: the second half of stock's, with the parts saved in the loop

Where somebody's code may run the plan is put in doubt, once for an object, if need be, rather than for each part.

Not for: picklers whose texts are memoized (`reduce`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import length_hint
from pickle import BUILD, EMPTY_TUPLE, MARK, NEWOBJ, POP, REDUCE
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from .._stdlib import for_batch, note, refuse_reduce_value
from ..doubts import doubt, holds, outside, watched
from ..engine.columns import Refused, forget
from ..engine.levels import end_frozenset, put
from ..engine.reduce import (
    LIST_ITERATORS,
    NAMES_OF_NEW,
    are_pairs_nobodys,
    is_nobodys,
    newobj,
    usual_form,
    watched_parts,
)
from ..hooks import Plan, Write, hash_savers, saved_by_name
from ..interrupts import is_interrupt
from ..objects.instances import is_class_told
from ..objects.known import METACLASS_IDS, is_by_name, is_heap_type, reducer
from ..objects.values import AS_CLASS, reduce_value
from ..opcodes import TUPLES
from ..rules import HashRule
from .atoms import BYTES, TooLong, atoms_of, encode_bytes
from .hashing import append_batches, is_replaced, save_all, set_batches
from .shapes import are_sortable, sorted_pairs

__all__ = ["save_instance", "save_known", "save_other"]

#: How many looks at a type may be in vain (`doubts.Dump`).
_LOOKS: Final = 4


def save_known(pickler: Any, plan: Plan, obj: Any, t: type) -> bool | None:
    """Save an object that no plan contains, if nobody's code runs for that before it comes to its parts.

    Args:
        pickler, plan: whose.
        obj: an object that is not in the memo.
        t: its type.

    Returns:
        Whether it is saved; if not, nothing is written. None if that is for the class's own `save`, which runs nobody's
        code: the caller is to call it, so that there is no frame more than in stock.
    """
    rule: Any = plan.hash_rule
    if rule.is_other is not None and rule.is_other(t) and _is_encoded(pickler, plan, obj, t):
        return True
    if t is rule.array and rule.save_array(pickler, plan, obj, t):
        return True
    entry = pickler.dispatch.get(t)
    if entry is None:
        reduce = _reducer(pickler, plan, t)
        if reduce is not None:
            try:
                rv = reduce(obj)
            except Exception as exc:  # it would run somebody's code, or fails: then where stock would
                if is_interrupt(exc):
                    raise
                rv = None
            if rv is not None and save_instance(pickler, plan, obj, rv):
                return True
    if not _is_quiet(plan, obj, t):
        return False
    if entry in saved_by_name and (plan.is_choice is None or not plan.is_choice(t)) and is_by_name(pickler, obj, t):
        entry(pickler, obj)
        return True
    return None


def _is_encoded(pickler: Any, plan: Plan, obj: Any, t: type) -> bool:
    """Save an object by what its library encodes without a hook (`others` of the rule); tell whether that is done."""
    rule: Any = plan.hash_rule
    dump = pickler._fastpickle_dump
    others = dump.known.get(HashRule)  # until somebody's code runs
    if others is None:
        is_usual = plan.save_tuple is hash_savers[tuple][1] and (
            plan.is_plain_dict is not None or plan.save_dict is hash_savers[dict][1]
        )
        others = dump.known[HashRule] = rule.others(pickler) if is_usual else False
    memo = pickler.memo
    if not others or not (dump.is_usual or others.is_new(obj, t, memo)):
        return False
    before = len(memo)
    pieces: list[bytes] = []
    is_encoded = False
    try:
        is_encoded = others.encode(obj, t, memo, pieces, partial(put, plan.proto))
    except (UnicodeEncodeError, Refused):  # a name has surrogates; the memo is not as it should be
        pass
    finally:
        if not is_encoded:
            forget(memo, before)
            others.drop()
    if is_encoded:
        others.finish()
        pickler.write(b"".join(pieces))
    return is_encoded


def _is_call_written(pickler: Any, plan: Plan, obj: Any, rv: tuple[Any, ...]) -> bool:
    """Write at once that a class is called, or made an instance of, if it has been met, and the arguments are atoms.

    That is all of a date or a Decimal, and all but the state of an instance of a plain class.

    Args:
        pickler, plan, obj, rv: as for `save_instance`.

    Returns:
        Whether that is done, and the object memoized; if not, nothing is written.
    """
    dump = pickler._fastpickle_dump
    if not dump.is_usual:
        return False
    memo = pickler.memo
    func, args = rv[:2]
    opcode = REDUCE
    if type(args) is not tuple or id(args) in memo:
        return False
    if func is newobj and plan.proto >= 2:
        if not args or args[0] is not type(obj):
            return False
        func = args[0]
        args = args[1:]
        opcode = NEWOBJ
    n = len(args)
    if n > 3 or id(func) not in memo:
        return False
    gets = dump.known.get(_Gets)
    if gets is None:
        gets = dump.known[_Gets] = _Gets()
    get = gets.get(id(func))
    if get is None:
        if id(type(func)) not in METACLASS_IDS or func.__name__ in NAMES_OF_NEW or is_replaced(plan, type(func)):
            return False
        get = gets[id(func)] = pickler.get(memo[id(func)][0])
    pieces = [get]
    i = len(memo)
    proto = plan.proto
    if n:
        atoms = atoms_of(plan)
        held = None
        try:
            for x in args:
                encode = atoms.get(id(type(x)))
                if type(x) is bytes and id(x) in memo:  # where somebody may have put it
                    return False
                if encode is not None:
                    pieces.append(encode(x))
                elif type(x) is bytes and BYTES in atoms and held is None:
                    pieces += encode_bytes(x), put(proto, i)
                    held = x
                else:
                    return False
        except (UnicodeEncodeError, TooLong):
            return False
        if held is not None:
            i += 1
        pieces += TUPLES[n], put(proto, i), opcode, put(proto, i + 1)
    else:
        pieces += EMPTY_TUPLE, opcode, put(proto, i)
    data = b"".join(pieces)
    framer = pickler.framer
    frame = framer.current_frame
    if frame is not None and frame.tell() + len(data) >= framer._FRAME_SIZE_TARGET:
        return False
    pickler.write(data)
    if n:
        if held is not None:
            memo[id(held)] = i - 1, held
        memo[id(args)] = i, args
        i += 1
    memo[id(obj)] = i, obj
    return True


class _Gets(dict[int, bytes]):
    """The opcodes that fetch the classes that have been called, by their ids, until somebody's code runs."""


def save_other(pickler: Any, plan: Plan, obj: Any, write: Write | None = None) -> None:
    """Save an object that no plan contains and that is not in the memo, as the second half of stock's save() does."""
    t = type(obj)
    entry = pickler.dispatch.get(t)
    if entry is not None:
        if entry in saved_by_name and is_by_name(pickler, obj, t):
            entry(pickler, obj)
        else:
            outside(pickler, entry, obj)
        return
    doubt(pickler)
    try:
        reduce, rv = reduce_value(pickler, obj, t)
    finally:
        doubt(pickler)
    if is_nobodys(reduce, obj, t, False):
        pickler.__dict__["_fastpickle_plan"] = plan
    if rv is AS_CLASS or isinstance(rv, str):
        doubt(pickler)
        try:
            pickler.save_global(*((obj,) if rv is AS_CLASS else (obj, rv)))
        finally:
            doubt(pickler)
    elif not isinstance(rv, tuple) or not 2 <= len(rv) <= 6:
        refuse_reduce_value(obj, reduce, rv)
    elif not (holds(pickler, plan) and save_instance(pickler, plan, obj, rv, is_asked=True)):
        doubt(pickler)  # stock asks for the function's name, and the class
        try:
            pickler.save_reduce(*watched_parts(pickler, rv, _Watched), obj=obj)
        except BaseException as exc:
            note(exc, obj, "object")
            raise


class _Watched:
    """An iterable that runs code that is not ours, and may be asked more than once: what sorts it does so."""

    def __init__(self, pickler: Any, items: Any) -> None:
        self._pickler = pickler
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        doubt(self._pickler)
        return iter(watched(self._pickler, self._items))


def _is_quiet(plan: Plan, obj: Any, t: type) -> bool:
    """Tell whether the class's own `save` runs nobody's code before it comes to stock's."""
    if id(t) in METACLASS_IDS:
        return True
    if is_heap_type(t):
        return False  # it is asked for its `__class__`
    if plan.is_choice is None or not plan.is_choice(t):
        return True
    is_quiet = plan.hash_rule.is_quiet  # type: ignore[union-attr]  # there is one
    return is_quiet is not None and is_quiet(obj)


#: Types whose objects are asked for their name without running anybody's code.
_HAVE_A_NAME: Final = frozenset((type, FunctionType, BuiltinFunctionType))


def _is_memoized(plan: Plan, t: type) -> bool:
    """Tell whether `memoize` is stock's for instances of a type, whose `__class__`, which it asks for, is that type."""
    return plan.hash_rule.memoizes(t) and (  # type: ignore[union-attr]  # there is one
        not is_heap_type(t) or (id(type(t)) in METACLASS_IDS and is_class_told(t))
    )


def _reducer(pickler: Any, plan: Plan, t: type) -> Any:
    """Return what reduces instances of a type and runs nobody's code, None if that is not known, or not all."""
    if id(type(t)) not in METACLASS_IDS:
        return None
    dump = pickler._fastpickle_dump
    reducers = dump.reducers
    if t in reducers:
        if dump.looks < _LOOKS:
            dump.looks += 1
        return reducers[t]
    if not dump.looks or id(t) in METACLASS_IDS or t is FunctionType or t is BuiltinFunctionType:
        return None
    dump.looks -= 1  # where code of others runs between the objects, the looks cost more than they give
    if _is_memoized(plan, t):
        reducers[t] = reducer(pickler, plan, t)
        return reducers[t]
    return None


def save_instance(pickler: Any, plan: Plan, obj: Any, rv: Any, is_entrys: bool = False, is_asked: bool = False) -> bool:
    """Save an object by what it was reduced to.

    Args:
        pickler: one whose plan in force is `plan`.
        plan: its shortcuts.
        obj: an object that is not in the memo.
        rv: what its reduce gave.
        is_entrys: whether a dispatch entry gave that: stock says nothing of the object in an exception's notes then.
        is_asked: whether somebody's code may run to look at it.

    Returns:
        Whether that is done.  If not, nothing is written: there is a function that sets the state, or there are items
        that only somebody's code can give, or there is something unusual.
    """
    if type(rv) is not tuple or not 2 <= len(rv) <= 6:
        return False
    _, _, state, listitems, dictitems, state_setter = (*rv, None, None, None, None)[:6]
    if (
        state_setter is not None
        or (listitems is not None and type(listitems) not in LIST_ITERATORS)
        or (dictitems is not None and not are_pairs_nobodys(obj, dictitems))
        or (is_asked and not _is_memoized(plan, type(obj)))  # else it is known to be
    ):
        return False
    if is_asked and (type(rv[0]) not in _HAVE_A_NAME or is_heap_type(type(obj))):
        doubt(pickler)  # for the function's name, and the object's class
    framer_write = pickler.write  # as stock binds it
    try:
        if is_asked or not _is_call_written(pickler, plan, obj, rv):
            form = usual_form(plan, obj, rv)
            if form is None:
                return False
            parts, opcode, labels = form
            unsaved = iter(parts)
            try:
                write = save_all(pickler, plan, unsaved, framer_write)
            except BaseException as exc:
                note(exc, obj, labels[len(parts) - length_hint(unsaved) - 1])
                raise
            write(opcode)
            memo = pickler.memo
            if id(obj) in memo:  # it contains itself, and was saved while its parts were: drop this one and fetch that
                write(POP + pickler.get(memo[id(obj)][0]))
            elif holds(pickler, plan):
                i = len(memo)
                write(put(plan.proto, i))
                memo[id(obj)] = i, obj
            else:
                pickler.memoize(obj)
        if listitems is not None:
            if holds(pickler, plan):
                append_batches(pickler, plan, listitems, obj)
            else:
                pickler._batch_appends(*for_batch(listitems, obj))
        if dictitems is not None:
            dictitems = [*dictitems]
            in_order = _sorted_items(pickler, plan, dictitems)
            if in_order is None:
                doubt(pickler)
                try:
                    pickler._batch_setitems(*for_batch(iter(dictitems), obj))
                finally:
                    doubt(pickler)
            else:
                try:
                    set_batches(pickler, plan, in_order, obj)
                except TypeError:
                    if plan.hash_rule.retry is None:  # type: ignore[union-attr]  # there is one
                        raise  # else the library tries again, with an iterator of which there is nothing left
        if state is not None:
            try:
                write = save_all(pickler, plan, iter((state,)), framer_write)
            except BaseException as exc:
                note(exc, obj, "state")
                raise
            write(BUILD)
    except BaseException as exc:
        if not is_entrys:
            note(exc, obj, "object")
        raise
    return True


def _sorted_items(pickler: Any, plan: Plan, items: list[Any]) -> list[Any] | None:
    """Return the items that a reduce gave in the order of their keys, if to sort them runs nobody's code."""
    rule: Any = plan.hash_rule
    is_ours = holds(pickler, plan) and (rule.is_unsorted is None or not rule.is_unsorted(pickler))
    if not is_ours or (len(items) > 1 and not are_sortable([key for key, _ in items])):
        return None
    return sorted_pairs(items)


def _save_frozenset(pickler: Any, plan: Plan, obj: frozenset[Any], write: Write) -> None:
    if plan.proto < 4:
        save_instance(pickler, plan, obj, (frozenset, ([*obj],)), True)
        return
    write(MARK)
    memo = pickler.memo
    try:
        write = save_all(pickler, plan, iter([*obj]), pickler.framer.write)
    except BaseException as exc:
        note(exc, obj, "element")
        raise
    end_frozenset(pickler, plan, obj, memo, write)


hash_savers[frozenset] = 2, _save_frozenset
