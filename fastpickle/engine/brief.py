"""Brief reduces: what somebody's reduce gave, where that is a call with a few atoms, written at once.

    rv --(a function or class that is in the memo, a tuple, at most a dict)--> its opcodes, the frame
       --(anything else)-----------------------------------------------------> the loop (`reduce`)

The tuple and the dict have atoms in them, what is in the memo, and short tuples of these.  Before anything is memoized
the function or class is written with them, if it is found under its name.
For objects with a reduce of their own nothing can be known before: it is called where stock calls it, and then the
pickler is looked at again (`doubts`).  That takes half of what stock takes for all of it, so the rest must be short.

Not for: calling a reduce, and not for what runs no code of others (`runs`).
"""

from __future__ import annotations

import copyreg
from io import BytesIO
from itertools import chain
from pickle import BUILD, EMPTY_TUPLE, LONG_BINGET, MARK, MEMOIZE, NEWOBJ, REDUCE, SETITEM, SETITEMS
from types import BuiltinFunctionType
from typing import Any, Final

from .._stdlib import NOT_WRITTEN
from ..hooks import Plan
from ..interrupts import is_interrupt
from ..objects.asked import HAVE_A_NAME
from ..objects.instances import GETATTRIBUTES, has_a_usual_name
from ..opcodes import (
    BINGET,
    MARKED_DICT,
    MEMOIZED_DICT,
    MEMOIZED_TUPLE,
    MEMOIZED_TUPLES,
    pack_long_binget,
)
from .columns import forget
from .encoders import FEW, Parts, encode_all, encode_name

__all__ = ["asks_anybody", "save_brief"]

_newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
_newobj_ex: Any = copyreg.__newobj_ex__  # type: ignore[attr-defined]  # as above

_CALL: Final = REDUCE + MEMOIZE
_NEW: Final = NEWOBJ + MEMOIZE
#: What gives a class its `__new__`, by id, if it is asked whether it has one, and runs nobody's code.
_NEWS: Final = frozenset(map(id, (staticmethod, BuiltinFunctionType)))


def asks_anybody(func: Any, t: type) -> bool:
    """Tell whether stock may run somebody's code to look at what a reduce gave for an instance of `t`.

    It asks for the function's name, or for the object's `__class__` and the class's `__new__`.
    """
    if func is _newobj or func is _newobj_ex:
        if id(type(t)) not in HAVE_A_NAME or id(t.__getattribute__) not in GETATTRIBUTES:
            return True
        for c in t.__mro__[:-1]:
            of_class = c.__dict__
            if "__class__" in of_class or ("__new__" in of_class and id(type(of_class["__new__"])) not in _NEWS):
                return True
        return False
    return id(type(func)) not in HAVE_A_NAME


def save_brief(
    pickler: Any, plan: Plan, obj: Any, t: type, rv: tuple[Any, ...], *, is_first: bool = False
) -> bool | None:
    """Write what the reduce of an object gave, if it is brief.

    Args:
        pickler: a pickler.
        plan: the plan in force, which `is_for_brief`.
        obj: an object; its reduce may have put it into the memo.
        t: its type.
        rv: an exact tuple of two to six.
        is_first: whether what is to be called is to be written by its name, if it is not in the memo.

    Returns:
        Whether it is written; None if only the frame has no room for it.  If not, nothing is.  Nobody's code has run.
    """
    func = rv[0]
    args = rv[1]
    memo = pickler.memo
    key = id(t) if func is _newobj else id(func)
    is_known = key in memo
    if not (is_known or is_first) or type(args) is not tuple:
        return False
    if t is tuple or t is dict:  # such an object may be the arguments
        return False
    state = None
    n = len(rv)
    if n > 2:
        state = rv[2]
        if type(state) is dict:
            if len(state) > FEW or not (plan.short_dicts or plan.is_plain_dict(pickler, state)):
                return False
        elif state is not None and (type(state) is not tuple or not 0 < len(state) <= FEW):
            return False
        if n > 3 and not (rv[3] is rv[-2] is rv[-1] is None):
            return False
    if func is _newobj:
        if not args or args[0] is not t or asks_anybody(func, t):
            return False
        args = args[1:]
        opcode = _NEW
    elif not has_a_usual_name(func):
        return False
    else:
        opcode = _CALL
    n = len(args)
    framer = pickler.framer
    frame = framer.current_frame
    if id(obj) in memo or n > FEW or type(frame) is not BytesIO or (state is not None and id(state) in memo):
        return False
    before = i = len(memo)
    has_room = True
    try:
        if is_known:
            k = memo[key][0]
            pieces = [BINGET[k] if 0 <= k <= 255 else pack_long_binget(LONG_BINGET, k)]
        else:
            pieces = []
            i = encode_name(Parts(pickler, plan), t if func is _newobj else func, memo, i, pieces)
        # As `encode_all` would write the tuple; to have it do so takes 4 % more of all, for the call.
        if id(args) in memo:
            encode_all(plan, (args,), memo, i, pieces)  # fetches them
        elif n:
            if n > 3:
                pieces.append(MARK)
            i = encode_all(plan, args, memo, i, pieces)
            pieces.append(MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE)
            memo[id(args)] = i, args
            i += 1
        else:
            pieces.append(EMPTY_TUPLE)
        pieces.append(opcode)
        memo[id(obj)] = i, obj
        if state is not None:
            i += 1
            if type(state) is tuple:
                encode_all(plan, (state,), memo, i, pieces)
            else:
                memo[id(state)] = i, state
                n = len(state)
                pieces.append(MARKED_DICT if n > 1 else MEMOIZED_DICT)
                if n:
                    encode_all(plan, [*chain.from_iterable(state.items())], memo, i + 1, pieces)
                    pieces.append(SETITEMS if n > 1 else SETITEM)
            pieces.append(BUILD)
        data = b"".join(pieces)
        has_room = frame.tell() + len(data) < framer._FRAME_SIZE_TARGET
    except BaseException as exc:  # what cannot be saved fails again where it is saved one by one
        forget(memo, before)  # first, as another interrupt may come
        if is_interrupt(exc):
            raise
        return False
    if has_room:
        try:
            frame.write(data)
        except NOT_WRITTEN as exc:  # after anything else it may be
            forget(memo, before)
            if is_interrupt(exc):
                raise
            return False
        return True
    forget(memo, before)
    return None
