"""numpy's arrays in what datasets hashes: one behind another like it, written by what its reduce gives, in one piece.

    the first of a dtype --> as any instance (`hashed`): the names of what rebuilds it, its class, its dtype
    those behind it -------> GETs of these, its shape, its bytes

datasets' Pickler has a dispatch table of its own, which dill's function for arrays is not in, so that numpy's own
reduce is asked, which runs nobody's code: that of protocol 4, or of 5, Python 3.14's default, which gives a buffer.

Not for: arrays of objects, of much, or of another dtype than one before; nor for joblib, which does not pickle them.
"""

from __future__ import annotations

import pickle
from pickle import BINBYTES, BUILD, BYTEARRAY8, EMPTY_TUPLE, MARK, MEMOIZE, NEWFALSE, NEWTRUE, REDUCE, SHORT_BINUNICODE
from struct import error
from types import BuiltinFunctionType, BuiltinMethodType, NoneType
from typing import Any, Final

from .._stdlib import MEMOIZES_BUFFERS, NOT_WRITTEN, is_usual_file, stock_methods
from ..digests.hashing import is_replaced, is_saved
from ..engine.columns import Refused, pack_get, write_int
from ..hooks import Plan, hash_savers
from ..interrupts import is_interrupt
from ..objects.known import find_hiding
from ..opcodes import MEMOIZED_TUPLE, MEMOIZED_TUPLES, SHORT_BINBYTES, pack_binbytes, pack_bytearray8
from ..rules import HashRule
from ._dill_own import has_its_helpers

__all__ = ["save_array"]


#: So much in the memo is looked at for it, each time that somebody's code has run.
_MOST_ENTRIES: Final = 64
_PickleBuffer: Any = getattr(pickle, "PickleBuffer", None)  # None where there is no C pickler, which asks for it
#: (0,); what ends the arguments, with the call behind them; and the version of the state.
_ZERO: Final = write_int(0) + MEMOIZED_TUPLES[1]
_EMPTY: Final = MEMOIZED_TUPLES[3] + REDUCE + MEMOIZE
_ONE: Final = write_int(1)
_BUILT: Final = MEMOIZED_TUPLE + BUILD
_MADE: Final = MEMOIZED_TUPLE + REDUCE + MEMOIZE
_FLAGS: Final = {True: NEWTRUE, False: NEWFALSE}


def save_array(pickler: Any, plan: Plan, obj: Any, t: type) -> bool:
    """Write an array that is not in the memo, behind one like it, and tell whether that is done; nobody's code runs.

    Args:
        pickler, plan: whose.
        obj: the array.
        t: its type, which is numpy's own.
    """
    dump = pickler._fastpickle_dump
    memo = pickler.memo
    dtype = obj.dtype
    if id(dtype) not in memo or not is_saved(obj) or plan.proto < 4:
        return False
    known = dump.known.get(HashRule)  # by the id of a dtype, whether it is so; until somebody's code runs
    if known is None:  # False if somebody may have put into the memo what is not sought there
        is_usual = dump.is_usual or (len(memo) <= _MOST_ENTRIES and dump.is_usual_again())
        known = dump.known[HashRule] = {} if is_usual else False
    if known is False:
        return False
    is_known = known.get(id(dtype))
    if is_known is None:
        is_known = known[id(dtype)] = _is_nobodys(pickler, plan, t, type(dtype))
    if not is_known:
        return False
    rv = obj.__reduce_ex__(plan.proto)
    try:
        encoded = _encoded(rv, obj, dtype, memo) if len(rv) == 3 else _encoded_buffer(rv, obj, dtype, memo)
    except (KeyError, Refused, error):  # something is not in the memo yet, or has a number there that no pickler gives
        return False
    if encoded is None:
        return False
    pieces, memoized = encoded
    framer = pickler.framer
    frame = framer.current_frame
    if frame is None:
        return False
    if frame.tell() + sum(map(len, pieces)) < framer._FRAME_SIZE_TARGET:
        try:
            frame.write(b"".join(pieces))
        except NOT_WRITTEN as exc:
            if is_interrupt(exc):
                raise
            return False
    elif type(framer.file_write) is BuiltinMethodType and is_usual_file(framer.file_write.__self__):
        for piece in pieces:  # the frame is full before one of them
            if framer.current_frame.tell() >= framer._FRAME_SIZE_TARGET:
                framer.commit_frame()
            framer.current_frame.write(piece)
    else:
        return False
    for i, x in enumerate(memoized, len(memo)):
        memo[id(x)] = i, x
    return True


#: What is written of an array, but for tuples.
_WRITTEN: Final = (NoneType, bool, int, str, bytes, bytearray)


def _is_nobodys(pickler: Any, plan: Plan, t: type, of_dtype: type) -> bool:
    """Tell whether nobody's code runs for an array, nor for a dtype that is fetched, and stock writes the buffer."""
    if (
        is_replaced(plan, of_dtype)
        or is_replaced(plan, BuiltinFunctionType)
        or plan.save_tuple is not hash_savers[tuple][1]
        or any(plan.get(x) is None for x in _WRITTEN)
        or not has_its_helpers()
        or find_hiding(pickler, plan, t) is None
    ):
        return False
    return plan.proto < 5 or (
        pickler._buffer_callback is None
        and pickler.dispatch.get(_PickleBuffer) is stock_methods["save_picklebuffer"]
        and not is_replaced(plan, _PickleBuffer)
    )


def _encoded(rv: Any, obj: Any, dtype: Any, memo: dict[int, Any]) -> tuple[list[bytes], list[Any]] | None:
    """Return the opcodes of an array that is reduced to a call and a state, and what is memoized; None if it is odd.

    The opcodes are in pieces before each of which stock looks whether the frame is full: with which `save` begins.
    """
    func, (cls, zero, kind), state = rv
    _, shape, its_dtype, is_fortran, raw = state
    if its_dtype is not dtype or type(raw) is not bytes or type(is_fortran) is not bool:
        return None
    pieces = [
        pack_get(memo[id(func)][0]), pack_get(memo[id(cls)][0]), _ZERO, pack_get(memo[id(kind)][0]) + _EMPTY,
        MARK, _ONE, *_shape(shape), pack_get(memo[id(dtype)][0]), _FLAGS[is_fortran], _bytes(raw) + MEMOIZE + _BUILT,
    ]  # fmt: skip
    return pieces, [zero, rv[1], obj, *_memoized_of(shape), raw, state]


def _encoded_buffer(rv: Any, obj: Any, dtype: Any, memo: dict[int, Any]) -> tuple[list[bytes], list[Any]] | None:
    """Return the same of one that is reduced to a call with a buffer."""
    func, args = rv
    if len(args) != 4:  # axes that are to be put into another order
        return None
    buffer, its_dtype, shape, order = args
    if its_dtype is not dtype or type(buffer) is not _PickleBuffer or type(order) is not str:
        return None
    with buffer.raw() as view:
        raw = view.tobytes()
        data = _bytes(raw) if view.readonly else pack_bytearray8(BYTEARRAY8, len(raw)) + raw
    pieces = [
        pack_get(memo[id(func)][0]), MARK, data + MEMOIZE, pack_get(memo[id(dtype)][0]), *_shape(shape),
        SHORT_BINUNICODE + bytes((len(order),)) + order.encode() + _MADE,
    ]  # fmt: skip
    return pieces, [buffer if MEMOIZES_BUFFERS else raw, *_memoized_of(shape), args, obj]


def _bytes(raw: bytes) -> bytes:
    n = len(raw)
    return (SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)) + raw


def _memoized_of(shape: tuple[int, ...]) -> tuple[Any, ...]:
    return (shape,) if shape else ()


def _shape(shape: tuple[int, ...]) -> list[bytes]:
    """Return the opcodes of a tuple of ints that has just been made."""
    n = len(shape)
    if not n:
        return [EMPTY_TUPLE]
    pieces = [*map(write_int, shape)]
    pieces[-1] += MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE
    return pieces if n <= 3 else [MARK, *pieces]
