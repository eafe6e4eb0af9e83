"""Tasks for another process: a function that a library saves by value, or a partial, and what it is called with.

    function_of(obj) --> save_task --+-- little ------> all of the dump is encoded, and written at once (`encoders`)
                                     +-- much, or what only a library's functions can save -> hook by hook

multiprocess and pathos send such tuples by dill, thousands of them, each a dump of its own.

Not for: tasks of functions that are found under their names; those are for the C pickler (`graft`).
"""

from __future__ import annotations

from functools import partial
from pickle import BUILD
from types import FunctionType
from typing import Any, Final

from .. import hooks
from ..objects.instances import HIDES_WHAT_IS_READ
from ..objects.known import METACLASS_IDS, has_reduce_entry
from ..objects.last import last
from .encoders import (
    MOST,
    MOST_BRIEF,
    Memo,
    NotBrief,
    Parts,
    add_encoder,
    brief_ids,
    encode,
    encode_call,
    encode_tuple,
    write_at_once,
)
from .tries import Tries

__all__ = ["function_of", "save_task"]

#: A task is of so few things, and so are its parts in which the function is sought, so many levels deep.
_MOST_OF_TASK: Final = 8
_LEVELS: Final = 3
_tries: Final = Tries()  # beside those of what a library's functions save one by one


def function_of(obj: Any, t: type, levels: int = _LEVELS) -> Any:
    """Return the function or partial of an object that looks like a task; None if it does not.

    Args:
        obj: the object: a partial, or a list, tuple or dict that has one among the first things in it, or a function
            that cannot be found under its name.
        t: its type.
        levels: so many are looked at.
    """
    if t is not tuple and t is not list and t is not dict:
        return obj if t is partial else None
    if levels == 0 or len(obj) > _MOST_OF_TASK:
        return None
    for x in [*obj.values()] if t is dict else obj:  # another thread may change a dict
        t = type(x)
        if t is FunctionType:
            if _is_by_value(x):
                return x
        elif id(t) not in hooks.ATOM_IDS:
            found = function_of(x, t, levels - 1)
            if found is not None:
                return found
    return None


def _is_by_value(obj: Any) -> bool:
    """Tell whether a function or class is of `__main__`, or local, so that dill cannot save it by its name."""
    module = obj.__module__
    name = obj.__qualname__
    return (type(module) is str and module == "__main__") or (type(name) is str and "<" in name)


def save_task(pickler: Any, obj: Any, t: type) -> bool:
    """Write what looks like a task, if there is little in it.

    Args:
        pickler: a pickler that has begun with a dump.
        obj: all that is dumped.
        t: its type.

    Returns:
        Whether it is written; if not, nothing is.  Nobody's code has run.
    """
    function = function_of(obj, t)
    if function is None or not _are_brief((obj,), _LEVELS + 1):
        return False
    called = function.func if type(function) is partial else function
    key = id(called.__code__ if type(called) is FunctionType else type(called))
    if last.is_no_task(key):
        return False
    if write_at_once(Parts(pickler, hooks.plan(pickler)), encode, obj, tries=_tries):
        return True
    last.remember_no_task(key)
    return False


def _are_brief(objs: Any, levels: int, *, in_cells: bool = False) -> bool:
    """Tell, by a look at what is in them, whether objects may be encoded: to find out late takes as long as to encode.

    Args:
        objs: the objects.
        levels: so many are looked at.
        in_cells: whether a function holds them: then one among them is not encoded with it.
    """
    if not brief_ids.issuperset(map(id, map(type, objs))):
        return False
    for x in objs:
        t = type(x)
        if id(t) in hooks.ATOM_IDS:
            continue
        held: Any = ()
        if t is tuple or t is list or t is dict:
            if len(x) > (MOST if t is tuple else MOST_BRIEF):
                return False
            held = [*x.values()] if t is dict else x
        elif t is partial:
            held = (x.func, *x.args, x.keywords)
        elif t is FunctionType:
            if in_cells and _is_by_value(x):
                return False
            cells = x.__closure__ or ()
            try:
                if not _are_brief([cell.cell_contents for cell in cells], levels - 1, in_cells=True):
                    return False
            except ValueError:  # an empty one
                return False
            held = x.__defaults__ or ()
        elif id(t) in METACLASS_IDS and _is_by_value(x):
            return False
        if held and levels and not _are_brief(held, levels - 1, in_cells=in_cells):
            return False
    return True


def _encode_partial(parts: Parts, obj: partial[Any], memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a `functools.partial` by its reduce, which is C's and cannot be changed, as an `Encoder` does."""
    plan = parts.plan
    if (
        parts.pickler.dispatch.get(partial) is not None
        or has_reduce_entry(parts.pickler, partial)
        or (plan.is_choice is not None and plan.is_choice(partial))
    ):
        raise NotBrief
    _, args, state = _reduce_partial(obj)
    attributes = state[3]  # None, as long as nobody has asked for them
    if attributes and (type(attributes) is not dict or not HIDES_WHAT_IS_READ.isdisjoint(attributes)):
        raise NotBrief
    i = encode_call(parts, obj, partial, args, memo, i, pieces)
    i = encode_tuple(parts, state, memo, i, pieces)
    pieces.append(BUILD)
    return i


_reduce_partial: Any = partial.__reduce__

add_encoder(partial, _encode_partial)
