"""The way that `Pickler.save` takes for an object where it need not, or must not yet, go hook by hook.

    save --(the plan is not PLAIN)--> way_of --> what is to be called, with what, by what plan, and what is to be undone

Nothing that saves the parts of an object is called here, but by `save` itself: what stock can save within the recursion
limit must not need a Python frame more a level.  And `save` has but the names that it needs hook by hook, where each
costs 1 % of an object.

Not for: deciding what a hook forbids (`hooks`).
"""

from __future__ import annotations

from collections.abc import Callable
from pickle import MEMOIZE
from types import FunctionType
from typing import Any, Final

from . import graft, hooks
from ._stdlib import TELLS_WHOSE
from .brief import save_tuple
from .doubts import Dump, settled
from .hashed import save_other as save_hashed
from .hashing import is_worth_a_plan
from .hooks import ASIDE, ATOM_IDS, COLD, FEW, PLAIN, Plan
from .instances import are_somebodys, is_somebodys
from .loop import commit_frame, save_all
from .older import adapt, overrides_batches, restore_adapted
from .opcodes import SHORT_BINUNICODE
from .parts import SHORTEST_OF_ATOMS
from .reduce import is_stocks, save_object
from .splicing import restore

__all__ = ["WORTH_IT", "Way", "begin_reduced", "undo", "way_of"]

#: What saves the object, and its arguments; the plan for what that gives back, if it is what a reduce gave, else PLAIN;
#: and what is to be undone at the end.  Or None, no arguments, and the plan that counts hook by hook.
Way = tuple[Callable[..., Any] | None, tuple[Any, ...], Plan, Any]

#: What the loop saves without a saver, if it is short.
_SHORT: Final = frozenset((list, dict, tuple))
#: What may be in a tuple that is written at once, by id: a hash may be anybody's.
_FOR_BRIEF: Final = ATOM_IDS | {id(tuple)}
#: So many items; for less it takes as long to ask for a plan as to save them hook by hook.
_FOR_TUPLE: Final = 4
#: So many objects; the 18 that a function's code is made of are saved sooner hook by hook.
WORTH_IT: Final = 24


def way_of(pickler: Any, plan: Plan | None, obj: Any, t: type) -> Way:
    """Find the way for an object, which may have been written then.

    Args:
        pickler: the pickler.
        plan: the plan in force, not PLAIN nor FEW; None for what is no part of another object.
        obj: the object; no atom, and not empty, if the plan is ASIDE or COLD.
        t: its type.

    Returns:
        The way; what is to be undone is for `undo`, if it is not None.

    Raises:
        What the file raises, where a frame is full.
    """
    if plan:
        return _planned(pickler, plan, obj, t, None)
    if plan is None:
        return _way_of_root(pickler, obj, t)
    if plan is ASIDE or plan is COLD:
        if not _is_worth_a_plan(pickler, plan, obj, t):
            if (
                t is tuple
                and len(obj) >= _FOR_TUPLE
                and _FOR_BRIEF.issuperset(map(id, map(type, obj)))
                and save_tuple(pickler, hooks.plan(pickler), obj)
            ):
                return _WRITTEN
            return None, (), PLAIN, None
        return _begin(pickler, hooks.plan(pickler), obj, t, plan)
    if plan.doubted is None:  # that of protocol 0
        return None, (), PLAIN, None
    found = settled(pickler)  # it is in doubt again when this returns: who called may change something then, too
    if not found:
        return None, (), PLAIN, plan
    try:
        return _planned(pickler, found, obj, t, plan)
    except BaseException:
        undo(pickler, plan)
        raise


def _way_of_root(pickler: Any, obj: Any, t: type) -> Way:
    """Find the way for what is dumped, or is saved from outside of a dump."""
    if id(t) in ATOM_IDS or (graft.is_tiny(obj, t) and not (TELLS_WHOSE and overrides_batches(type(pickler)))):
        return None, (), PLAIN, None  # nothing to be gained
    save = type(pickler).save
    if save not in hooks.known_saves and not hooks.learn_save(save):
        return _begin(pickler, PLAIN, obj, t, None)  # as hooks.plan() would say, before anything else is looked at
    if save is hooks.own_save and is_somebodys(t):
        return _begin_aside(pickler, FEW)
    is_hash = save in hooks.hash_rules
    if not is_hash and are_somebodys(obj, t):
        return _begin_aside(pickler, FEW)
    if (
        save in hooks.choosy_saves  # a library has its own way to save functions ...
        and not graft.may_be_plain(obj, t)
        and not (t in _SHORT and obj and _is_worth_a_plan(pickler, ASIDE, obj, t))
    ) or (is_hash and not is_worth_a_plan(pickler, obj, t)):
        return _begin_aside(pickler, COLD if is_hash else ASIDE)
    plan = hooks.plan(pickler)
    if plan.graft_rule is not None:
        if not pickler.__dict__.pop("_fastpickle_is_refused", False):
            is_grafted = graft.root(pickler, plan, obj)
            if is_grafted:
                return _WRITTEN
            if is_grafted is not None:
                plan = hooks.plan(pickler)
        if (
            plan.graft_rule is not hooks.STOCK_RULE
            and t in _SHORT
            and 0 < len(obj) < graft.FEWEST
            and not _is_worth_a_plan(pickler, ASIDE, obj, t)
        ):
            plan = ASIDE
    return _begin(pickler, plan, obj, t, None)


def _begin_aside(pickler: Any, plan: Plan) -> Way:
    """Begin where what is dumped goes hook by hook, but what is in it is looked at."""
    object.__setattr__(pickler, "_fastpickle_plan", plan)  # the class may have a __setattr__ of its own
    adapted = adapt(pickler) if TELLS_WHOSE and overrides_batches(type(pickler)) else ()
    return None, (), plan, (None, None, adapted)


def _begin(pickler: Any, plan: Plan, obj: Any, t: type, outer: Plan | None) -> Way:
    """Begin with a plan.

    Args:
        pickler, obj, t: as for `way_of`.
        plan: what the pickler allows now.
        outer: the plan that is in force again when the object is saved; None for what is dumped.

    Returns:
        What `way_of` returns.
    """
    if not plan and plan is not ASIDE:
        plan = PLAIN  # at protocol 0 there is nothing but grafts, and those are for the root
    object.__setattr__(pickler, "_fastpickle_plan", plan)  # the class may have a __setattr__ of its own
    adapted = adapt(pickler) if TELLS_WHOSE and outer is None and overrides_batches(type(pickler)) else ()
    if not plan:
        return None, (), plan, (outer, _UNTOUCHED, adapted)  # and no __dict__ is asked for: attributes get slower by it
    state = pickler.__dict__
    end = outer, state.get("_fastpickle_dump"), adapted
    try:
        state["_fastpickle_dump"] = Dump(pickler, obj if outer is None else None)
        return _planned(pickler, plan, obj, t, end)
    except BaseException:
        undo(pickler, end)
        raise


def _planned(pickler: Any, plan: Plan, obj: Any, t: type, end: Any) -> Way:
    """Find the way for an object by a plan in force."""
    framer = pickler.framer
    frame = framer.current_frame
    if frame is not None and frame.tell() >= framer._FRAME_SIZE_TARGET:
        plan = commit_frame(pickler, framer)
        if not plan:
            return None, (), PLAIN, end
        frame = framer.current_frame
    x = pickler.memo.get(id(obj))
    if x is not None:
        pickler.write(pickler.get(x[0]))
        return _WRITTEN if end is None else (_nothing, (), PLAIN, end)
    if t is str and frame is not None and len(obj) <= 63 and plan.proto >= 4 and plan.hash_rule is None:
        # the name of a class or function, for which the loop would take 3 us to begin
        x = obj.encode("utf-8", "surrogatepass")
        frame.write(SHORT_BINUNICODE[len(x)] + x + MEMOIZE)
        memo = pickler.memo
        memo[id(obj)] = len(memo), obj
        return _WRITTEN if end is None else (_nothing, (), PLAIN, end)
    if t in plan:
        saver = plan[t]
        if saver is None or (t in _SHORT and len(obj) < SHORTEST_OF_ATOMS and plan.hash_rule is None):
            return save_all, (pickler, plan, iter((obj,)), 1, framer.write), PLAIN, end
        return saver, (pickler, plan, obj, framer.file_write if frame is None else frame.write), PLAIN, end
    entry = pickler.dispatch.get(t)
    if entry is None or is_stocks(pickler, entry, obj, t):
        return save_object if plan.hash_rule is None else save_hashed, (pickler, plan, obj, None), plan, end
    # as save_object() would, with a frame less
    pickler.__dict__["_fastpickle_plan"] = ASIDE
    return entry, (pickler, obj), PLAIN, plan.in_doubt if end is None else end


def begin_reduced(pickler: Any, plan: Plan, obj: Any) -> None:
    """Begin with a plan where an object turned out to have given much: what its parts are saved by."""
    state = pickler.__dict__
    state["_fastpickle_dump"] = Dump(pickler, obj)
    state["_fastpickle_plan"] = plan


def undo(pickler: Any, end: Any) -> None:
    """Undo what a way has begun, when the object is saved, or was not.

    Args:
        pickler: the pickler.
        end: from the way: the plan that is in doubt again; or the one that was in force before, the `Dump` of then
            (or _UNTOUCHED, if there cannot be another one), and the names of adapters.
    """
    if type(end) is Plan:
        pickler.__dict__["_fastpickle_plan"] = end
        return
    outer, outer_dump, adapted = end
    if outer is not None:
        object.__setattr__(pickler, "_fastpickle_plan", outer)
    else:
        object.__delattr__(pickler, "_fastpickle_plan")
    if adapted:
        restore_adapted(pickler, adapted)
    if outer_dump is _UNTOUCHED:
        return
    state = pickler.__dict__
    dump = state.get("_fastpickle_dump")
    if dump is not None and dump is not outer_dump:
        if outer_dump is None:
            del state["_fastpickle_dump"]
        else:
            state["_fastpickle_dump"] = outer_dump
        if type(dump.framer.file_write) is FunctionType:
            restore(dump.framer)


_UNTOUCHED: Final = object()


def _nothing() -> None:
    """Save what is written."""


_WRITTEN: Final[Way] = (_nothing, (), PLAIN, None)


def _is_worth_a_plan(pickler: Any, outer: Plan, obj: Any, t: type) -> bool:
    """Tell whether an object is saved sooner with a plan, which takes 6 us to begin, than hook by hook."""
    if outer is COLD:
        return is_worth_a_plan(pickler, obj, t)
    first = next(iter(obj.values())) if t is dict else obj[0]
    kind = type(first)
    if kind is list or kind is dict or kind is tuple:
        return len(obj) * (len(first) + 1) >= WORTH_IT
    return len(obj) >= WORTH_IT and id(kind) in ATOM_IDS and not (t is dict and _is_module_dict(obj))


def _is_module_dict(obj: dict[Any, Any]) -> bool:
    """Tell whether a dict begins as that of a module does, which a library writes by reference."""
    key = next(iter(obj))
    return type(key) is str and key == "__name__"
