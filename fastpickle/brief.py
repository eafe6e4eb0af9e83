"""Brief reduces: what somebody's reduce gave, where that is a call with a few atoms, written at once.

    rv --(a function or class that is in the memo, a tuple, at most a dict)--> its opcodes, the frame
       --(anything else)-----------------------------------------------------> the loop (`reduce`)

The tuple and the dict have atoms in them, what is in the memo, and short tuples of these.
For objects with a reduce of their own nothing can be known before: it is called where stock calls it, and then the
pickler is looked at again (`doubts`).  That takes half of what stock takes for all of it, so the rest must be short.

Not for: calling a reduce, and not for what runs no code of others (`runs`).
"""

from __future__ import annotations

import copyreg
from abc import ABCMeta
from enum import EnumMeta
from itertools import chain
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from .columns import forget
from .doubts import Dump
from .hooks import ATOM_IDS, Plan
from .instances import GETATTRIBUTES
from .opcodes import (
    BINGET,
    BININT1,
    MARKED_DICT,
    MEMOIZED_DICT,
    MEMOIZED_TUPLE,
    MEMOIZED_TUPLES,
    SHORT_BINBYTES,
    SHORT_BINUNICODE,
    pack_binfloat,
    pack_binint,
    pack_binint2,
    pack_long_binget,
)

# fmt: off
from pickle import (  # isort: skip
    BINFLOAT, BININT, BININT2, BUILD, EMPTY_TUPLE, LONG_BINGET, MARK, MEMOIZE, NEWFALSE, NEWOBJ, NEWTRUE, NONE, REDUCE,
    SETITEM, SETITEMS,
)
# fmt: on

__all__ = ["HAVE_A_NAME", "asks_anybody", "is_brief", "save_brief", "save_tuple"]

_newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
_newobj_ex: Any = copyreg.__newobj_ex__  # type: ignore[attr-defined]  # as above

#: Types whose objects are asked for their name without running anybody's code; by id, since a hash may be anybody's.
HAVE_A_NAME: Final = frozenset(map(id, (type, ABCMeta, EnumMeta, FunctionType, BuiltinFunctionType)))
#: So many atoms are few; with 24 texts a plan takes no longer.
_FEW: Final = 16
_NEWOBJ_NAMES: Final = ("__newobj__", "__newobj_ex__")
_CALL: Final = REDUCE + MEMOIZE
_NEW: Final = NEWOBJ + MEMOIZE


def is_brief(rv: tuple[Any, ...]) -> bool:
    """Tell whether what a reduce gave is a call of a function or class with a few atoms, and at most a flat state."""
    n = len(rv)
    if type(rv) is not tuple or (n > 3 and not (rv[3] is rv[-2] is rv[-1] is None)):
        return False
    func = rv[0]
    args = rv[1]
    if id(type(func)) not in HAVE_A_NAME or type(args) is not tuple:
        return False
    state = rv[2] if n > 2 else None
    n = len(args)
    if type(state) is dict:
        n += 2 * len(state)
        if n > _FEW or not ATOM_IDS.issuperset(map(id, map(type, chain.from_iterable(state.items())))):
            return False
    elif n > _FEW or id(type(state)) not in ATOM_IDS:
        return False
    if func is _newobj:
        args = args[1:]
    for x in args:  # noqa: SIM110  # sooner than by all() or map(), if they are one or two
        if id(type(x)) not in ATOM_IDS:
            return False
    return True


def asks_anybody(func: Any, t: type) -> bool:
    """Tell whether stock may run somebody's code to look at what a reduce gave for an instance of `t`.

    It asks for the function's name, or the object's `__class__`.
    """
    if func is _newobj or func is _newobj_ex:
        if id(type(t)) not in HAVE_A_NAME or id(t.__getattribute__) not in GETATTRIBUTES:
            return True
        for c in t.__mro__[:-1]:  # noqa: SIM110  # any() of a generator takes three times as long
            if "__class__" in c.__dict__:
                return True
        return False
    return id(type(func)) not in HAVE_A_NAME


def save_brief(dump: Dump, plan: Plan, obj: Any, t: type, rv: tuple[Any, ...]) -> bool | None:
    """Write what the reduce of an object gave, if it is brief.

    Args:
        dump: a pickler's.
        plan: the plan in force, which `is_for_brief`.
        obj: an object; its reduce may have put it into the memo.
        t: its type.
        rv: an exact tuple of two to six.

    Returns:
        Whether it is written; None if only the frame has no room for it.  If not, nothing is.  Nobody's code has run.
    """
    func = rv[0]
    args = rv[1]
    memo = dump.memo
    key = id(t) if func is _newobj else id(func)
    if key not in memo or type(args) is not tuple or id(type(func)) not in HAVE_A_NAME:
        return False
    state = None
    n = len(rv)
    if n > 2:
        state = rv[2]
        if state is not None and (type(state) is not dict or len(state) > _FEW):
            return False
        if n > 3 and not (rv[3] is rv[-2] is rv[-1] is None):
            return False
    if func is _newobj:
        if not args or args[0] is not t or asks_anybody(func, t):
            return False
        args = args[1:]
        opcode = _NEW
    elif func.__name__ in _NEWOBJ_NAMES:  # stock goes by the name of the function
        return False
    else:
        opcode = _CALL
    n = len(args)
    framer = dump.framer
    frame = framer.current_frame
    if id(obj) in memo or n > _FEW or frame is None or (state is not None and id(state) in memo):
        return False
    before = i = len(memo)
    has_room = True
    try:
        k = memo[key][0]
        pieces = [BINGET[k] if 0 <= k <= 255 else pack_long_binget(LONG_BINGET, k)]
        # As `_encode` would write the tuple; to have it do so takes 4 % more of all, for the call.
        if id(args) in memo:
            _encode(plan, (args,), memo, i, pieces)  # fetches them
        elif n:
            if n > 3:
                pieces.append(MARK)
            i = _encode(plan, args, memo, i, pieces)
            pieces.append(MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE)
            memo[id(args)] = i, args
            i += 1
        else:
            pieces.append(EMPTY_TUPLE)
        pieces.append(opcode)
        memo[id(obj)] = i, obj
        if state is not None:
            i += 1
            memo[id(state)] = i, state
            n = len(state)
            pieces.append(MARKED_DICT if n > 1 else MEMOIZED_DICT)
            if n:
                _encode(plan, [*chain.from_iterable(state.items())], memo, i + 1, pieces)
                pieces.append(SETITEMS if n > 1 else SETITEM)
            pieces.append(BUILD)
        data = b"".join(pieces)
        has_room = frame.tell() + len(data) < framer._FRAME_SIZE_TARGET
        if has_room:
            frame.write(data)
            return True
    except Exception:  # what cannot be saved fails again where it is saved one by one
        pass
    except BaseException:  # an interrupt
        forget(memo, before)
        raise
    forget(memo, before)
    return False if has_room else None


def save_tuple(pickler: Any, plan: Plan, obj: tuple[Any, ...]) -> bool:
    """Write a tuple of a few atoms, and of such tuples, for which a plan would take longer to begin.

    Args:
        pickler: a pickler.
        plan: what it allows now.
        obj: an exact tuple of more than three.

    Returns:
        Whether it is written; if not, nothing is.  Nobody's code has run.
    """
    if not plan.short_tuples or plan.proto < 4 or plan.hash_rule is not None:
        return False
    framer = pickler.framer
    frame = framer.current_frame
    memo = pickler.memo
    if frame is None or id(obj) in memo:
        return False
    before = len(memo)
    pieces = [MARK]
    try:
        i = _encode(plan, obj, memo, before, pieces)
        pieces.append(MEMOIZED_TUPLE)
        memo[id(obj)] = i, obj
        data = b"".join(pieces)
        if frame.tell() + len(data) < framer._FRAME_SIZE_TARGET:
            frame.write(data)
            return True
    except Exception:  # what cannot be saved fails again where it is saved one by one
        pass
    except BaseException:  # an interrupt
        forget(memo, before)
        raise
    forget(memo, before)
    return False


class _NotBrief(Exception):
    """Something is no atom and no tuple, or a long one."""


def _encode(plan: Plan, objs: Any, memo: dict[int, tuple[int, Any]], i: int, pieces: list[bytes]) -> int:
    """Append the opcodes of atoms and of tuples to `pieces`, and what is memoized to the memo, which had `i` entries.

    As `small` does, but each is looked up in the memo, also numbers: somebody's code may have put them there.  To share
    what is written of one atom would be a call for each.

    Returns:
        How many it has then.

    Raises:
        _NotBrief: something else, or something long.
        UnicodeEncodeError: a text has surrogates.
        RecursionError: tuples are nested too deeply for this; the loop takes no Python frame for them.
    """
    for x in objs:
        key = id(x)
        if key in memo:
            k = memo[key][0]
            if k < 0 or (plan.rewrites is not None and id(type(x)) not in ATOM_IDS and plan.rewrites(type(x))):
                raise _NotBrief
            pieces.append(BINGET[k] if k <= 255 else pack_long_binget(LONG_BINGET, k))
            continue
        t = type(x)
        if t is str:
            encoded = x.encode()
            n = len(encoded)
            if n > 255:
                raise _NotBrief
            pieces.append(SHORT_BINUNICODE[n])
            pieces.append(encoded)
            pieces.append(MEMOIZE)
            memo[key] = i, x
            i += 1
        elif t is int:
            if 0 <= x <= 255:
                pieces.append(BININT1[x])
            elif 0 <= x <= 0xFFFF:
                pieces.append(pack_binint2(BININT2, x))
            elif -0x80000000 <= x <= 0x7FFFFFFF:
                pieces.append(pack_binint(BININT, x))
            else:
                raise _NotBrief
        elif x is None:
            pieces.append(NONE)
        elif t is float:
            pieces.append(pack_binfloat(BINFLOAT, x))
        elif t is bool:
            pieces.append(NEWTRUE if x else NEWFALSE)
        elif t is bytes:
            n = len(x)
            if n > 255:
                raise _NotBrief
            pieces.append(SHORT_BINBYTES[n])
            pieces.append(x)
            pieces.append(MEMOIZE)
            memo[key] = i, x
            i += 1
        elif t is tuple:
            n = len(x)
            if not n:
                pieces.append(EMPTY_TUPLE)
                continue
            if n > _FEW:
                raise _NotBrief
            if n > 3:
                pieces.append(MARK)
            i = _encode(plan, x, memo, i, pieces)
            pieces.append(MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE)
            memo[key] = i, x
            i += 1
        else:
            raise _NotBrief
    return i
