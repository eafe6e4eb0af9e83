"""What `hooks.plan` and `doubts.settled` are on PyPy: the same questions, asked one by one.

    pickler --(is this method the stock class's? is that name in the instance's __dict__? ...)--> plan(pickler)
    type    --(which functions does a reduce of its instances call?)----------------------------> kind_of(...)

Compiled code answers ``cls.memoize is _memoize`` for nothing, where the tuples and sets that CPython's interpreter
compares sooner take a hundred times as long; and the plan is looked at again and again where somebody's code runs.
The table of hooks in `hooks` holds here too.  What differs from CPython: `write` is a method, not an attribute of the
instance, a frame is a builder, and the methods of builtin types are no type of their own.

Not for: a Python whose frames are `io.BytesIO`.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from abc import ABCMeta
from collections import OrderedDict, defaultdict, deque, namedtuple
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MemberDescriptorType, NoneType
from typing import Any, Final

from .. import hooks
from .._stdlib import BATCHSIZE, Framer, StockPickler
from ..hooks import PLAIN, Plan
from ..interrupts import is_interrupt
from ..objects.arrays import HEAP_TYPE

__all__ = ["BY_ANYBODY", "BY_DEFAULT", "BY_ENTRY", "BY_STDLIB", "Dump", "kind_of", "plan", "settled"]

_pickle: Any = pickle  # its dispatch_table is no public name
_memoize: Any = StockPickler.memoize
_put: Any = StockPickler.put
_get: Any = StockPickler.get
_persistent_id: Any = StockPickler.persistent_id
_save_reduce: Any = StockPickler.save_reduce
_batch_appends: Any = StockPickler._batch_appends
_batch_setitems: Any = StockPickler._batch_setitems
_write: Any = getattr(StockPickler, "write", None)  # there is none on CPython, which imports this module for nothing
_write_large_bytes: Any = getattr(StockPickler, "_write_large_bytes", None)
_save: Any = StockPickler.save
_getattribute: Any = StockPickler.__getattribute__
_framer_write: Any = Framer.write
_framer_write_large_bytes: Any = Framer.write_large_bytes
_framer_commit_frame: Any = Framer.commit_frame
_bytesio_write: Any = io.BytesIO.write
(
    _save_none, _save_bool, _save_long, _save_float, _save_str, _save_bytes, _save_bytearray, _save_list, _save_tuple,
    _save_dict, _save_set, _save_frozenset,
) = hooks.STOCK_ENTRIES  # fmt: skip


def _builder() -> Any:
    """Return the class of frames."""
    framer = Framer(None)
    framer.start_framing()
    return type(framer.current_frame)


_Builder: Final = _builder()
#: Plans for protocols 0 to 5, by `save` and by the entry of dict, where all others are stock's.
_usual_plans: Final[dict[tuple[Any, Any], list[Plan]]] = {}


class Dump:
    """What stays the same while a plan is in force.

    Attributes:
        framer, memo: the pickler's.
        is_usual: whether all that is in the memo was put there by code of ours or stock's.
        is_quiet: whether the file's write() runs nobody's code.
        kinds: what `kind_of` said of types, by id; until somebody's code runs, if it did not say the worst.
        are_kinds_known: whether it has said anything better.
        patience: how many more objects are saved as stock does while the plan is in doubt, before it is looked at.
    """

    __slots__ = ("are_kinds_known", "framer", "is_quiet", "is_usual", "kinds", "memo", "patience")

    def __init__(self, pickler: Any) -> None:
        self.framer = pickler.framer
        self.memo = pickler.memo
        self.is_usual = not self.memo
        self.is_quiet = _is_quiet(self.framer.file_write)
        self.kinds: dict[int, int] = {}
        self.are_kinds_known = False
        self.patience = 0


def _is_quiet(file_write: Any) -> bool:
    """Tell whether a file is in memory, and nobody's code runs when it is written to."""
    file = getattr(file_write, "__self__", None)
    return type(file) is io.BytesIO and file_write.__func__ is _bytesio_write


def plan(pickler: Any) -> Plan:
    """Return the shortcuts that `pickler` allows now: as `hooks.plan` on CPython."""
    for is_second in (False, True):  # compiled apart, since it is long (`straight`)
        if is_second:
            return _plan(pickler)
    raise AssertionError("not reached")


def _plan(pickler: Any) -> Plan:
    cls = type(pickler)
    try:
        if (
            cls.memoize is not _memoize
            or cls.put is not _put
            or cls.get is not _get
            or cls.persistent_id is not _persistent_id
            or cls.save_reduce is not _save_reduce
            or cls._batch_appends is not _batch_appends
            or cls._batch_setitems is not _batch_setitems
            or cls.write is not _write
            or cls._write_large_bytes is not _write_large_bytes
            or cls.__getattribute__ is not _getattribute
            or type(cls._BATCHSIZE) is not int
            or cls._BATCHSIZE != BATCHSIZE
            or getattr(pickler, "__getattr__", None) is not None  # before the next: it would be called for that
            or getattr(pickler, "reducer_override", None) is not None
        ):
            return PLAIN
        save = cls.save
        if save is not _save and save not in hooks.known_saves and not hooks.learn_save(save):
            return PLAIN
        state = pickler.__dict__
        framer = state["framer"]
        if (
            "save" in state
            or "memoize" in state
            or "put" in state
            or "get" in state
            or "persistent_id" in state
            or "save_reduce" in state
            or "_batch_appends" in state
            or "_batch_setitems" in state
            or "_BATCHSIZE" in state
            or "write" in state
            or "_write_large_bytes" in state
            or state["fast"]
            or type(state["memo"]) is not dict
            or type(framer) is not Framer
            or len(framer.__dict__) != 2  # file_write and current_frame: nothing of the framer is overridden
            or Framer.write is not _framer_write
            or Framer.write_large_bytes is not _framer_write_large_bytes
            or Framer.commit_frame is not _framer_commit_frame
        ):
            return PLAIN
        frame = framer.current_frame
        if frame is None:
            if not _is_quiet(framer.file_write):
                return PLAIN
        elif type(frame) is not _Builder:
            return PLAIN
        dispatch = cls.dispatch if type(cls) is type else hooks.dispatch_of(cls)
        if type(dispatch) in hooks.known_tables and "dispatch" in state:
            dispatch = state["dispatch"]
        if type(dispatch) not in hooks.known_tables:
            return PLAIN  # stock asks its get(), which may be anything
        proto = state["proto"]
        if type(proto) is not int or not 1 <= proto <= 5 or not state["bin"]:
            return PLAIN
        entry = dispatch.get
        if (
            entry(str) is _save_str
            and entry(int) is _save_long
            and entry(float) is _save_float
            and entry(bool) is _save_bool
            and entry(NoneType) is _save_none
            and entry(bytes) is _save_bytes
            and entry(list) is _save_list
            and entry(tuple) is _save_tuple
            and entry(set) is _save_set
            and entry(frozenset) is _save_frozenset
            and entry(bytearray) is _save_bytearray
        ):
            entry_of_dict = entry(dict)
            plans = _usual_plans.get((save, entry_of_dict))
            if plans is None and (entry_of_dict is _save_dict or (dict, entry_of_dict) in hooks.known_entries):
                entries = hooks.entries_of(dispatch)
                plans = [hooks.plan_of(p, save, entries) for p in range(6)]
                _usual_plans[save, entry_of_dict] = plans
            if plans is not None:
                return plans[proto]
        # Where one of the frequent containers calls anybody's function, there is nothing to be gained.
        if entry(list) is not _save_list or entry(tuple) is not _save_tuple or not hooks.may_be_known(entry(dict)):
            return PLAIN
        found = hooks.plan_of(proto, save, hooks.entries_of(dispatch))
        return found if dict in found else PLAIN
    except Exception as exc:  # something is missing, or is not what it is in stock, such as a hook that is a descriptor
        if type(exc) in (RecursionError, MemoryError) or is_interrupt(exc):
            raise
        return PLAIN


def settled(pickler: Any) -> Plan:
    """Return the plan in force; if it is in doubt, look again, and take the doubted one if everything is as it was."""
    found: Plan = pickler._fastpickle_plan
    doubted = found.doubted
    if doubted is None:
        return found
    state = pickler.__dict__
    dump = state["_fastpickle_dump"]
    is_as_it_was = (
        plan(pickler) is doubted  # so these are there
        and state["framer"] is dump.framer
        and state["memo"] is dump.memo
    )
    found = doubted if is_as_it_was else PLAIN
    object.__setattr__(pickler, "_fastpickle_plan", found)
    dump.is_usual = False
    dump.is_quiet = _is_quiet(dump.framer.file_write)
    if dump.are_kinds_known:
        dump.are_kinds_known = False
        dump.kinds = {key: kind for key, kind in dump.kinds.items() if kind == BY_ANYBODY}
    return found


# Whose code a reduce runs.


def _found(t: type, name: str) -> Any:
    """Return an attribute of a class as it stands there, so that no descriptor is asked; or `_ABSENT`."""
    for c in t.__mro__:
        if name in vars(c):
            return vars(c)[name]
    return _ABSENT


def _all_found(t: type, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple([_found(t, name) for name in names])


def _are_same(found: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    for x, y in zip(found, expected, strict=True):  # noqa: SIM110  # not ==, which is anybody's
        if x is not y:
            return False
    return True


class _Dummy:
    """Has what `type` gives a class of its own accord."""


_ABSENT: Any = object()
_DICT: Any = vars(_Dummy)["__dict__"]
#: What `object.__reduce_ex__` looks up, and how.
_ASKED_FOR = (
    "__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs_ex__", "__getattribute__", "__getattr__", "__class__",
)  # fmt: skip
_OF_OBJECT = _all_found(object, _ASKED_FOR)
#: How the instances of these are iterated, which their reduce does.
_ITERATED = ("__iter__", "items", "__len__")
_BASES: dict[type, tuple[Any, ...]] = {t: _all_found(t, _ITERATED) for t in (list, dict, tuple)}
#: The same, and what the standard library's own reduces call of their types, which are written in Python here.
_CALLED = (
    *_ASKED_FOR, *_ITERATED, "__getnewargs__", "_getstate", "__getinitargs__", "__str__",
)  # fmt: skip
_STDLIBS: dict[type, tuple[Any, ...]] = {
    t: _all_found(t, _CALLED)
    for t in (
        datetime, date, time, timedelta, timezone, Decimal, deque, defaultdict, OrderedDict,
    )
}  # fmt: skip
_namedtuple_getnewargs: Any = vars(namedtuple("_namedtuple_getnewargs", "a"))["__getnewargs__"].__code__

#: Kinds of types: their instances are reduced by anybody's code, ...
BY_ANYBODY: Final = 0
#: ... by object's `__reduce_ex__`, if the instance's `__dict__` does not say otherwise, ...
BY_DEFAULT: Final = 1
#: ... by the standard library's code, ...
BY_STDLIB: Final = 2
#: ... or not at all: they have a dispatch entry.
BY_ENTRY: Final = 3


def kind_of(pickler: Any, t: type) -> int:
    """Tell whose code runs when an instance of `t` is reduced; the answer holds until somebody's code runs."""
    if type(t) is not type and type(t) is not ABCMeta:
        return BY_ANYBODY
    if pickler.dispatch.get(t) is not None:
        return BY_ENTRY
    if (
        type(_pickle.dispatch_table) is not dict
        or t in _pickle.dispatch_table
        or "dispatch_table" in pickler.__dict__
        or _found(type(pickler), "dispatch_table") is not _ABSENT  # it may be a property, and is asked once
    ):
        return BY_ANYBODY
    if t in _STDLIBS:
        if not _are_same(_all_found(t, _CALLED), _STDLIBS[t]):
            return BY_ANYBODY
        return BY_DEFAULT if t is OrderedDict else BY_STDLIB  # which has a __dict__
    if pickler.proto < 2 or not _are_same(_all_found(t, _ASKED_FOR), _OF_OBJECT):  # below 2 copyreg's reduce asks more
        return BY_ANYBODY
    base: Any = None
    has_slots = False
    for c in t.__mro__[:-1]:
        if not c.__flags__ & HEAP_TYPE:
            if c not in _BASES or base is not None:
                return BY_ANYBODY
            base = c
            continue
        namespace = vars(c)
        if type(namespace.get("__dict__", _DICT)) is not type(_DICT):
            return BY_ANYBODY
        has_slots = has_slots or "__slots__" in namespace
    if base is not None and not _are_same(_all_found(t, _ITERATED), _BASES[base]):
        return BY_ANYBODY
    has_dict = _found(t, "__dict__") is not _ABSENT
    getnewargs = _found(t, "__getnewargs__")
    if base is tuple:
        if has_dict or getattr(getnewargs, "__code__", None) is not _namedtuple_getnewargs:
            return BY_ANYBODY
    elif getnewargs is not _ABSENT or not (has_slots or has_dict):
        return BY_ANYBODY
    if has_slots:
        if has_dict:  # then the instance may have a reduce of its own, which does not ask for the slots
            return BY_ANYBODY
        slots = copyreg._slotnames(t)  # type: ignore[attr-defined]  # which the reduce asks, too
        if type(slots) is not list or any(type(_found(t, x)) is not MemberDescriptorType for x in slots):
            return BY_ANYBODY
        return BY_STDLIB
    return BY_DEFAULT
