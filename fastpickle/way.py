"""The way that `Pickler.save` takes for an object where it need not, or must not yet, go hook by hook.

    save --(no plan is in force)--> begin --> one that counts for the object, and what is to be undone (`undo`)
         --(one is)--------------> way_of --> what is to be called, and with what

Nothing that saves the parts of an object is called here, but by `save` itself: what stock can save within the recursion
limit must not need a Python frame more a level.  And `save` has but the names that it needs hook by hook, where each
costs 1 % of an object.

Not for: deciding what a hook forbids (`hooks`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pickle import MEMOIZE
from types import CellType, FunctionType
from typing import Any, Final

from . import graft, hooks
from ._stdlib import TELLS_WHOSE
from .accelerator.cpickler import unordered
from .accelerator.lazymemo import BEHIND_ALL, IN_CELL, order_memo, put_in_order
from .accelerator.offers import FEWEST, may_be_librarys
from .accelerator.splicing import restore
from .digests.hashed import save_other as save_hashed
from .digests.hashing import MANY_ITEMS, is_hash_worth_a_plan
from .doubts import Dump, settled
from .engine.encoders import brief_ids, save_tuple
from .engine.loop import is_row, save_all
from .engine.parts import SHORTEST_OF_ATOMS
from .engine.reduce import is_stocks, save_object
from .hooks import ASIDE, ATOM_IDS, COLD, CONTAINER_IDS, FEW, PLAIN, Plan
from .objects.arrays import HEAP_TYPE
from .objects.instances import has_only_a_dict
from .objects.known import METACLASS_IDS
from .objects.last import last
from .objects.likely import are_among_somebodys, are_somebodys, is_plain_at_top, is_somebodys
from .older import adapt, method_of, overrides_batches, restore_adapted
from .opcodes import SHORT_BINUNICODE

__all__ = ["FEWEST_OF_FEW", "End", "begin", "begin_reduced", "undo", "way_of"]

#: A container of so many items is asked whether it is worth a plan where few objects are saved.
FEWEST_OF_FEW: Final = 8

#: What is to be undone: the plan that is in force again, None if there was none; the `Dump` of then, or _UNTOUCHED if
#: there cannot be another one; and the names of adapters.
End = tuple[Plan | None, Any, tuple[str, ...]]

#: What the loop saves without a saver, if it is short, and what may be worth a plan.
_LISTS_DICTS_TUPLES: Final = frozenset((list, dict, tuple))
#: So many levels are looked through for something long, and so many of the last things in each.
_DEEP: Final = 4
_MOST_LAST: Final = 4
#: So many objects; the 18 that a function's code is made of are saved sooner hook by hook.
_WORTH_IT: Final = 24
#: So many instances of which Python has to save each: a plan takes as long to begin as two or three of them.
_INSTANCES_OF_FEW: Final = 12
#: So many of which Python has to save each, and which are likely to be brief.
_MANY_SOMEBODYS: Final = 16


def begin(pickler: Any, outer: Plan | None, obj: Any, t: type) -> tuple[Plan | None, End | None]:
    """Begin with an object for which no plan is in force.

    What has been set is undone by `save`, since where the stack is full nothing can be called any more: whatever may
    fail comes before that.  And it is one function, since what stock can save within the recursion limit must not fail.

    Args:
        pickler: the pickler.
        outer: None for what is no part of another object; or FEW, ASIDE, COLD, or a plan in doubt.
        obj: the object; not empty, unless that is None or a plan in doubt.
        t: its type.

    Returns:
        The plan that counts for the object, None if it is written; and what is to be undone, if anything is.
    """
    if outer is None:
        save = method_of(type(pickler), "save")
        is_hash = save in hooks.hash_rules
        is_worth = False
        if save not in hooks.known_saves and not hooks.learn_save(save):
            plan = PLAIN  # as hooks.plan() would say, before anything else is looked at
        elif (save is hooks.own_save and is_somebodys(t)) or (not is_hash and are_somebodys(obj, t)):
            plan = FEW
            if (t is list or t is tuple or t is dict) and _may_be_row(obj, t):
                now = hooks.plan(pickler)
                plan = now if now.is_for_brief else FEW
        elif is_hash and id(obj) != last.worth and not is_hash_worth_a_plan(pickler, obj, t):
            plan = COLD
        elif (
            not is_hash
            and save in hooks.choosy_saves  # a library has its own way to save functions ...
            and not may_be_librarys(save, obj, t)
            and not (
                is_worth := type(t) is type
                and t in _LISTS_DICTS_TUPLES
                and bool(obj)
                and _is_worth_a_plan(pickler, ASIDE, obj, t)
            )
        ):
            plan = ASIDE
            if t is not FunctionType and t is not type:  # of these nothing is learned
                last.aside = id(pickler)
        else:
            plan = hooks.plan(pickler)
            rule = plan.graft_rule
            is_grafted: bool | None = False  # so C was asked before, and gave up
            if rule is not None and not pickler.__dict__.pop("_fastpickle_is_refused", False):
                is_refused = is_worth and rule is not hooks.STOCK_RULE  # it is not plain then
                is_grafted = None if is_refused else graft.root(pickler, plan, obj)
                if is_grafted:
                    return None, None
                if is_grafted is not None:
                    plan = hooks.plan(pickler)
                    rule = plan.graft_rule
            if (
                rule is not None
                and rule is not hooks.STOCK_RULE
                and type(t) is type
                and t in _LISTS_DICTS_TUPLES
                and 0 < len(obj) < FEWEST
                and not is_worth
                and not _is_worth_a_plan(pickler, ASIDE, obj, t)
            ):
                plan = ASIDE
                if is_grafted is False:
                    last.aside = id(pickler)
            elif not plan:
                plan = PLAIN  # at protocol 0 there is nothing but grafts, and those are for the root
            elif _are_mostly_somebodys(plan, obj, t):
                plan = ASIDE
    elif outer is not ASIDE and outer is not COLD and outer is not FEW:
        return settled(pickler), (outer, _UNTOUCHED, ())  # who called may change something then, too
    elif _is_worth_a_plan(pickler, outer, obj, t):
        plan = hooks.plan(pickler)
        if not plan or _are_mostly_somebodys(plan, obj, t):
            return PLAIN, None
        if outer is FEW:
            last.few_left = 0
    else:
        is_written = (
            t is tuple and outer is ASIDE and _may_be_brief(obj) and save_tuple(pickler, hooks.plan(pickler), obj)
        )
        return None if is_written else PLAIN, None
    dump = None
    if plan:
        if outer is None:
            dump = Dump(pickler, obj, way=BEHIND_ALL)
        elif outer is ASIDE and t is tuple and type(obj[0]) is CellType:  # most often the last thing of a closure
            dump = Dump(pickler, obj, way=IN_CELL)
        else:
            dump = Dump(pickler, None)
    adapted = adapt(pickler) if TELLS_WHOSE and outer is None and overrides_batches(type(pickler)) else ()
    if dump is not None:
        state = pickler.__dict__  # not asked for in vain: see `hooks.plan`
        # not by get(): on 3.13 without the GIL that waits 35 us where a name was taken away, and longer beside threads
        outer_dump = state["_fastpickle_dump"] if "_fastpickle_dump" in state else None  # noqa: SIM401  # as said
        state["_fastpickle_dump"] = dump
    else:
        outer_dump = _UNTOUCHED
        if plan is FEW or plan is ASIDE:
            outer_dump = None  # there may be one yet (`begin_reduced`)
            last.went_by_hooks = id(pickler)
    object.__setattr__(pickler, "_fastpickle_plan", plan)  # the class may have a __setattr__ of its own
    return plan, (outer, outer_dump, adapted)


def way_of(
    pickler: Any, plan: Plan, obj: Any, t: type, end: End | None
) -> tuple[Callable[..., Any], tuple[Any, ...], bool, End | None]:
    """Find what saves an object by the plan in force, or write it.

    Args:
        pickler: a pickler, the frame of which has been committed if it was full.
        plan: the plan.
        obj: the object.
        t: its type.
        end: what is to be undone, if anything is.

    Returns:
        What is to be called, its arguments, whether it gives back what a reduce gave, and what is to be undone then.
    """
    framer = pickler.framer
    frame = framer.current_frame
    x = pickler.memo.get(id(obj))
    if x is not None:
        pickler.write(pickler.get(x[0]))
        return _nothing, (), False, end
    if t is str and frame is not None and len(obj) <= 63 and plan.proto >= 4 and plan.hash_rule is None:
        # the name of a class or function, for which the loop would take 3 us to begin
        x = obj.encode("utf-8", "surrogatepass")
        frame.write(SHORT_BINUNICODE[len(x)] + x + MEMOIZE)
        memo = pickler.memo
        memo[id(obj)] = len(memo), obj
        return _nothing, (), False, end
    is_usual = type(t) is type or id(type(t)) in METACLASS_IDS  # else its hash may be anybody's
    if is_usual and t in plan:
        saver = plan[t]
        if saver is None or (
            t in _LISTS_DICTS_TUPLES
            and plan.hash_rule is None
            and (len(obj) < SHORTEST_OF_ATOMS or (t is list and is_row(obj)))
        ):
            return save_all, (pickler, plan, iter((obj,)), 1, framer.write), False, end
        return saver, (pickler, plan, obj, framer.file_write if frame is None else frame.write), False, end
    entry = pickler.dispatch.get(t) if is_usual else None  # which `save_object` asks for, then
    if entry is None or is_stocks(pickler, entry, obj, t):
        return save_object if plan.hash_rule is None else save_hashed, (pickler, plan, obj, None), True, end
    if unordered and id(pickler) in unordered and id(entry) not in hooks.looking_up:
        put_in_order(pickler)
    # as save_object() would, with a frame less
    pickler.__dict__["_fastpickle_plan"] = ASIDE
    return entry, (pickler, obj), False, (plan.in_doubt, _UNTOUCHED, ()) if end is None else end


def begin_reduced(pickler: Any, plan: Plan, obj: Any) -> None:
    """Begin with a plan where an object turned out to have given much: what its parts are saved by."""
    state = pickler.__dict__
    state["_fastpickle_dump"] = Dump(pickler, obj)
    state["_fastpickle_plan"] = plan


def undo(pickler: Any, end: End) -> None:
    """Undo what has been begun, when the object is saved, or was not."""
    outer, outer_dump, adapted = end
    if outer is not None:
        object.__setattr__(pickler, "_fastpickle_plan", outer)
    else:
        object.__delattr__(pickler, "_fastpickle_plan")
    if adapted:
        restore_adapted(pickler, adapted)
    if outer_dump is not _UNTOUCHED:
        _end_dump(pickler, outer_dump)
    if outer is None and id(pickler) in unordered:
        order_memo(pickler)


def _end_dump(pickler: Any, outer_dump: Any) -> None:
    """Take the `Dump` away, and restore the one of before, if there was one."""
    state = pickler.__dict__
    dump = state["_fastpickle_dump"] if "_fastpickle_dump" in state else None  # noqa: SIM401  # as in `begin`
    if dump is not None and dump is not outer_dump:
        dump.loop = None  # which refers to the dump, and the pickler
        if (
            outer_dump is None
            and dump.doubts * _MEMOIZED_PER_DOUBT > len(dump.memo)
            and "_fastpickle_memo" not in state  # else C has most of it
        ):
            last.went_by_hooks = id(pickler)  # much of it is somebody's, and might as well have gone hook by hook
        if outer_dump is None:
            del state["_fastpickle_dump"]
        else:
            state["_fastpickle_dump"] = outer_dump
        if type(dump.framer.file_write) is FunctionType:
            restore(dump.framer)


_UNTOUCHED: Final = object()
#: Where the plan is looked at again more often, for what is memoized, a plan may be no gain.
_MEMOIZED_PER_DOUBT: Final = 12


def _nothing() -> None:
    """Save what is written."""


def _may_be_brief(obj: tuple[Any, ...]) -> bool:
    """Tell whether a tuple, and the tuples and dicts in it, have only what may be encoded at once."""
    if not brief_ids.issuperset(map(id, map(type, obj))):
        return False
    for x in obj:
        t = type(x)
        if t is tuple or t is dict:
            held = x if t is tuple else [*x.values()]  # another thread may change a dict
            if not brief_ids.issuperset(map(id, map(type, held))):
                return False
    return True


def _is_worth_a_plan(pickler: Any, outer: Plan, obj: Any, t: type) -> bool:
    """Tell whether an object is saved sooner with a plan, which takes 6 us to begin, than hook by hook."""
    if outer is COLD:
        return True  # `pickler._ask_or_write` has asked `is_hash_worth_a_plan`
    if outer is FEW and len(obj) < FEWEST_OF_FEW:  # so much has come before that more may come
        return True
    if outer is ASIDE and t is dict and len(obj) < MANY_ITEMS and not is_plain_at_top(obj, t):
        return False  # the state of a model, whose arrays and parts are saved sooner hook by hook
    first: Any = next(iter(obj.values() if t is dict else obj), None)  # another thread may have emptied it
    if outer is ASIDE and _has_long(obj, t):
        return True  # C need not tell then what it has memoized
    kind = type(first)
    if kind is list or kind is dict or kind is tuple:
        return (
            len(obj) * (len(first) + 1) >= _WORTH_IT
            and is_plain_at_top(first, kind)
            and not (outer is FEW and are_among_somebodys(obj, t))
        )
    if id(kind) in ATOM_IDS:
        return len(obj) >= _WORTH_IT and not (t is dict and _is_module_dict(obj))
    # Instances of a class, which C may write once the class is saved; or the loop, if they are for a row.
    if (t is not list and outer is not FEW) or id(type(kind)) not in METACLASS_IDS:
        return False
    if is_somebodys(kind):
        return _may_be_row(obj, t) and (outer is FEW or hooks.plan(pickler).is_for_brief)
    return (
        len(obj) >= (_INSTANCES_OF_FEW if outer is FEW else FEWEST)
        and (outer is FEW or bool(kind.__flags__ & HEAP_TYPE))
        and (not last.gives_up_at(kind) or has_only_a_dict(kind))
    )


def _may_be_row(obj: Any, t: type) -> bool:
    """Tell whether objects with somebody's reduces in a list, tuple or dict are so many, and brief, as for a row."""
    if len(obj) < _MANY_SOMEBODYS:
        return False
    kind = type(next(iter(obj.values() if t is dict else obj)))
    return id(type(kind)) in METACLASS_IDS and id(kind) not in last.not_brief


def _has_long(obj: Any, t: type) -> bool:
    """Tell whether there is a long container among the last things in a list, tuple or dict."""
    for _ in range(_DEEP):
        inner = None
        for x in islice(reversed(obj.values() if t is dict else obj), _MOST_LAST):
            t = type(x)
            if id(t) in CONTAINER_IDS and x:
                if len(x) >= 2 * FEWEST:
                    return True
                inner = x
                break
        if inner is None or t not in _LISTS_DICTS_TUPLES:
            return False
        obj = inner
    return False


def _are_mostly_somebodys(plan: Plan, obj: Any, t: type, levels: int = 2) -> bool:
    """Tell whether a container is one that a dispatch entry of somebody's saves, or most of what is in it is.

    To look at the pickler again after each of those takes longer than all that is gained.

    Args:
        plan: what the pickler allows now.
        obj: the container, or what is in it.
        t: its type.
        levels: so many are looked at, a few items in each.
    """
    if plan.keys() >= _LISTS_DICTS_TUPLES:
        return False
    if t is not list and t is not tuple and t is not dict:
        return type(t) is type and t.__dictoffset__ != 0 and dict not in plan  # its state is one
    if t not in plan:
        return True
    if not levels or not obj:
        return False
    some = [*islice(obj.values(), _SOME)] if t is dict else obj[:: len(obj) // _SOME + 1]
    return sum([_are_mostly_somebodys(plan, x, type(x), levels - 1) for x in some]) * 2 > len(some)


#: So many items of a container are some of them.
_SOME: Final = 8


def _is_module_dict(obj: dict[Any, Any]) -> bool:
    """Tell whether a dict begins as that of a module does, which a library writes by reference."""
    key = next(iter(obj))
    return type(key) is str and key == "__name__"
