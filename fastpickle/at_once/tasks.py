"""Tasks for another process, as a dump of its own: a function, or a partial, and what it is called with.

    is_task(obj) --+-- little -------> encode_task: all of the dump (`encoders`)
                   +-- with much ----> save_task: the function and what is little before that, then the loop
                   +-- what only a library's functions can save ---> hook by hook

multiprocess and pathos send thousands of such tuples by dill.  C may be asked about what `dill.dumps` pickles, but
gives up at functions that dill saves by value; of other picklers it is not known how they save a function.

Not for: what holds a function somewhere, and is none (`engine`).
"""

from __future__ import annotations

from functools import partial
from pickle import BUILD, MARK
from types import FunctionType
from typing import Any, Final

from .. import hooks
from .._stdlib import NO_VALUE, stock_methods
from ..accelerator.offers import may_be_plain
from ..engine.encoders import (
    LONGEST,
    MOST,
    MOST_BITS,
    MOST_BRIEF,
    Memo,
    NotBrief,
    Parts,
    add_encoder,
    brief_ids,
    encode,
    encode_call,
    encode_tuple,
)
from ..engine.levels import Level
from ..hooks import ATOM_IDS, Plan
from ..interrupts import is_interrupt
from ..objects.asked import HIDES_WHAT_IS_READ
from ..objects.bytecode import is_alike
from ..objects.known import METACLASS_IDS, reduce_entry
from ..objects.last import last
from .few import begin_frame, save_rest

__all__ = ["WITH_MUCH", "encode_task", "is_by_value", "is_only_a_name", "is_task", "save_task"]

#: What `is_task` says of a task with more in it than what may be encoded.
WITH_MUCH: Final = 2
#: A task is of so few things, and so are its parts in which the function is sought, so many levels deep.
_MOST_OF_TASK: Final = 8
_LEVELS: Final = 3
#: So many bytes may what comes first be, so that there is room in the frame.
_ROOM: Final = 32 << 10


def is_task(obj: Any, t: type) -> int | None:
    """Tell whether an object looks like a task.

    Args:
        obj: the object: a partial, or a list, tuple or dict that has one or a function among the first things in it.
        t: its type.

    Returns:
        True if there is little in it, so that it may be encoded; `WITH_MUCH` if there is more, and the function is
        saved by value; False if it does not.  None if it is a task all the same, of which C is not asked, and nothing
        else is to be tried, since its function is saved by value.
    """
    function = _function_of(obj, t, _LEVELS)
    if function is None:
        return False
    is_tried = not last.is_not_at_once(_key(function))
    if is_tried and _are_brief((obj,), _LEVELS + 1):
        return True
    if type(function) is not FunctionType or not is_by_value(function):
        return False
    return WITH_MUCH if is_tried and t is tuple else None


def encode_task(pickler: Any, plan: Plan, obj: Any, memo: Memo, pieces: list[bytes]) -> bool:
    """Append the opcodes of a task to `pieces`, and what is memoized to the empty memo.  Nobody's code runs.

    Args:
        pickler: a pickler that has not begun with the dump.
        plan: what it allows now.
        obj: all that is dumped: `is_task` says so.
        memo, pieces: as said.

    Returns:
        Whether that is done; if not, what is in them is for nothing, and the like of it is not tried soon.
    """
    parts = Parts(pickler, plan)
    try:
        if plan.short_tuples:
            encode(parts, obj, memo, 0, pieces)
            if not parts.to_append:
                return True
    except Exception as exc:  # what cannot be saved fails again where it is saved one by one
        if is_interrupt(exc):
            raise
    last.remember_not_at_once(_key(_function_of(obj, type(obj), _LEVELS)))
    return False


def save_task(pickler: Any, plan: Plan, obj: Any) -> bool:
    """Write a whole dump of a task with much in it: its function comes first, and for that no plan has to begin.

    Args:
        pickler, plan: as for `encode_task`.
        obj: a tuple: `is_task` says that it is one `WITH_MUCH`.

    Returns:
        Whether it is written; if not, nothing is, and it is not tried soon.

    Raises:
        What `save` raises, and then the pickler is as stock leaves it.
    """
    if not plan.short_tuples:
        return False
    memo = pickler.__dict__["memo"]  # so there are as many that have hold of it as in `save_few`
    pieces: list[bytes] = []
    is_much = False
    try:
        levels = _encode_little(Parts(pickler, plan), obj, memo, pieces)
        if levels:
            owner, _, items = levels[-1]
            is_much = any(may_be_plain(x, type(x)) for x in owner[items.__reduce__()[2] :])
    except BaseException as exc:  # as above
        memo.clear()
        if is_interrupt(exc):
            raise
        levels = []
    if not levels:
        memo.clear()
        last.remember_not_at_once(_key(_function_of(obj, tuple, _LEVELS)))
        return False
    begin_frame(pickler, plan, b"".join(pieces))
    save_rest(pickler, plan, obj, levels, is_much=is_much)
    return True


def _encode_little(parts: Parts, obj: tuple[Any, ...], memo: Memo, pieces: list[bytes]) -> list[Level]:
    """Append what comes first in a task to `pieces` and to the memo, up to what is much.

    Returns:
        What is open then, the innermost last; nothing if there is no function, or no room, in what comes first.
    """
    levels: list[Level] = [(None, None, iter(()))]
    i = 0
    has_function = False
    x: Any = obj
    while type(x) is tuple and 0 < len(x) <= _MOST_OF_TASK and len(levels) <= _LEVELS and id(x) not in memo:
        if len(x) > 3:
            pieces.append(MARK)
        items: Any = iter(x)
        levels.append((x, None, items))
        for x in items:
            if type(x) is FunctionType:  # `is_task` has looked at it, most often
                has_function = True
            elif not _are_brief((x,), _LEVELS):
                break
            i = encode(parts, x, memo, i, pieces)
        else:
            return []
    items.__setstate__(items.__reduce__()[2] - 1)  # it is put back
    return levels if has_function and not parts.to_append and sum(map(len, pieces)) < _ROOM else []


def _key(function: Any) -> int:
    """Return what tells the tasks of a function, or of a partial of it, from others."""
    called = function.func if type(function) is partial else function
    return id(called.__code__ if type(called) is FunctionType else type(called))


def _function_of(obj: Any, t: type, levels: int) -> Any:
    """Return the function or partial of what looks like a task; None if it does not."""
    if t is not tuple and t is not list and t is not dict:
        return obj if t is partial else None
    if levels == 0 or len(obj) > _MOST_OF_TASK:
        return None
    for x in [*obj.values()] if t is dict else obj:  # another thread may change a dict
        t = type(x)
        if t is FunctionType:
            return x
        if id(t) not in ATOM_IDS:
            found = _function_of(x, t, levels - 1)
            if found is not None:
                return found
    return None


def is_by_value(obj: Any) -> bool:
    """Tell whether a function or class is of `__main__`, or local, so that dill cannot save it by its name."""
    module = obj.__module__
    name = obj.__qualname__
    return (type(module) is str and module == "__main__") or (type(name) is str and "<" in name)


def is_only_a_name(cls: type, obj: Any, t: type) -> bool:
    """Tell whether a class or function is saved by its name, as far as that can be told: then there is no more of it.

    Args:
        cls: the pickler's class.
        obj: one of a type that is in `HAVE_A_NAME`.
        t: its type.
    """
    if t is type:
        return not is_by_value(obj)
    table = hooks.dispatch_of(cls)
    return type(table) is dict and table.get(t) is (_save_global if t is FunctionType else None)


_save_global: Final = stock_methods["save_global"]


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
        if id(t) in ATOM_IDS:
            if ((t is str or t is bytes) and len(x) > LONGEST) or (t is int and x.bit_length() > MOST_BITS):
                return False
            continue
        held: Any = ()
        if t is tuple or t is list or t is dict:
            if len(x) > (MOST if t is tuple else MOST_BRIEF):
                return False
            held = [*x.values()] if t is dict else x
        elif t is partial:
            held = (x.func, *x.args, x.keywords)
        elif t is FunctionType:
            if in_cells and is_by_value(x):
                return False
            cells = x.__closure__
            try:
                if cells and (
                    levels <= 0 or not _are_brief([cell.cell_contents for cell in cells], levels - 1, in_cells=True)
                ):
                    return False
            except ValueError:  # an empty one
                return False
            held = x.__defaults__ or ()
        elif id(t) in METACLASS_IDS and is_by_value(x):
            return False
        if held and levels and not _are_brief(held, levels - 1, in_cells=in_cells):
            return False
    return True


def _encode_partial(parts: Parts, obj: partial[Any], memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a `functools.partial` by its reduce, which is C's and cannot be changed, as an `Encoder` does.

    Or by that which multiprocess has for it, as multiprocessing has: it reads but what a partial is made of.
    """
    plan = parts.plan
    if parts.pickler.dispatch.get(partial) is not None or (plan.is_choice is not None and plan.is_choice(partial)):
        raise NotBrief
    entry = reduce_entry(parts.pickler, partial)
    if type(entry) is FunctionType and is_alike(entry.__code__, _reduce_as_multiprocess.__code__):
        func, args = entry(obj)
        return encode_call(parts, obj, func, args, memo, i, pieces)
    if entry is not NO_VALUE:
        raise NotBrief
    _, args, state = _reduce_partial(obj)
    attributes = state[3]  # None, as long as nobody has asked for them
    if attributes and (type(attributes) is not dict or not HIDES_WHAT_IS_READ.isdisjoint(attributes)):
        raise NotBrief
    i = encode_call(parts, obj, partial, args, memo, i, pieces)
    i = encode_tuple(parts, state, memo, i, pieces)
    pieces.append(BUILD)
    return i


def _reduce_as_multiprocess(p: Any) -> Any:
    return _rebuild_partial, (p.func, p.args, p.keywords or {})


_rebuild_partial: Any = None  # in the other module this is a function
_reduce_partial: Any = partial.__reduce__

add_encoder(partial, _encode_partial)
