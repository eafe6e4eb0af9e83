"""Which objects reduce to the same in C and in Python, and without running anybody's code but the interpreter's.

    type --(what PEP 307 asks of it and of its instance)--> names(t): None          no, or not known
                                                                      NOBODYS       yes
                                                                      some names    yes, if none is in its __dict__

That is so for instances of classes that leave `object.__reduce_ex__` as it is (plain classes, dataclasses, slots,
namedtuples, subclasses of list and dict), or the functions of which only read the instance (`bytecode`), for enums, and
for the standard library's types (`stdlibs`).

Not for: classes and functions themselves, which are saved by name (`reduce.is_stocks`), nor for guesses (`likely`).
"""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import enum
import functools
from collections.abc import Callable
from types import FunctionType, MemberDescriptorType, SimpleNamespace, WrapperDescriptorType
from typing import Any

from . import arrays, bytecode
from .arrays import HEAP_TYPE
from .asked import (
    ABSENT,
    ASKED_FOR,
    ASKED_FOR_OF_DICT,
    HAVE_A_NAME,
    HIDES_WHAT_IS_READ,
    HIDES_WHAT_IS_READ_OF_DICT,
    NOBODYS,
    REDUCES,
    WITHOUT_STATE,
    Names,
    are_texts,
    in_class,
)
from .stdlibs import CALL_OTHERS, ENTRIES, OF_EXCEPTIONS, STDLIBS, is_as_imported, is_changeable, is_learnt

__all__ = [
    "COPIED",
    "DATACLASS_GETSTATE",
    "GETATTRIBUTES",
    "calls_its_class",
    "has_a_usual_name",
    "has_known_reduce",
    "has_only_a_dict",
    "has_own_reduce",
    "is_bare",
    "is_class_told",
    "is_default",
    "is_plain_class",
    "names",
    "own_reduce",
    "usual_names",
]


class _Dummy:
    """Has what `type` gives a class of its own accord."""


#: What gives an instance its `__dict__`.
_DICT: Any = vars(_Dummy)["__dict__"]
_OBJECTS: Any = vars(object)
#: How the instances of these are iterated, which a reduce does, is to be as in the class itself.
_BASES: dict[type, tuple[str, ...]] = {
    list: ("__iter__",), dict: ("items", "__iter__"), tuple: ("__iter__", "__len__"),
    **dict.fromkeys((int, float, complex, str, bytes), ("__getnewargs__",)),
}  # fmt: skip
#: All of them do what that of object does; up to 3.13 builtin types have one each.
GETATTRIBUTES = {
    id(vars(t)["__getattribute__"])
    for t in (object, list, dict, tuple, int, str, float, bytes, complex, set, frozenset, BaseException)
    if "__getattribute__" in vars(t)
}
#: What is made anew of a copy of itself.
COPIED = (int, float, complex, str, bytes, tuple, set, frozenset)
_namedtuple_getnewargs: Any = vars(collections.namedtuple("_namedtuple_getnewargs", "a"))["__getnewargs__"].__code__
DATACLASS_GETSTATE: Any = getattr(dataclasses, "_dataclass_getstate", object())  # of frozen dataclasses with slots
#: The reduces, by id, of enums: `enum` puts one of a few functions into each class.
_ENUM_REDUCES = {
    id(function)
    for function in (
        getattr(enum, "pickle_by_enum_name", ABSENT),  # but none that gives a name, which is for save_global()
        in_class(enum.Enum, "__reduce_ex__"),
        in_class(enum.Flag, "__reduce_ex__"),
    )
    if function is not ABSENT
}


def names(t: type, entry: Any) -> Names | None:
    """Tell whether instances of `t` may be reduced by anybody, as often as he likes, at protocol 2 or higher.

    Costs 3 to 10 us, and runs no code of others.  The answer holds until somebody's code runs.

    Args:
        t: the type of an object, the type of which is one of `METACLASSES`; or one of numpy's dtypes.
        entry: its entry in `copyreg.dispatch_table`, None if it has none.

    Returns:
        None if not; otherwise the names that must not be in an instance's `__dict__`, perhaps none.
    """
    unchanged = _unchanged.get(t)
    if unchanged is not None:
        return unchanged if entry is ENTRIES.get(t) else None
    if t in STDLIBS or is_learnt(t):
        if entry is not ENTRIES.get(t) or not is_as_imported(t):
            return None
    elif entry is not None:
        return None
    elif arrays.is_dtype(t):
        return NOBODYS
    elif not is_plain_class(t):
        return None
    elif type(t) is enum.EnumMeta:
        if id(in_class(t, "__reduce_ex__")) not in _ENUM_REDUCES or in_class(t, "_value_") is not in_class(
            enum.Enum, "_value_"
        ):
            return None
    elif id(in_class(t, "__reduce__")) in _REDUCES_OF_EXCEPTIONS:
        if in_class(t, "__reduce_ex__") is not _OBJECTS["__reduce_ex__"]:
            return None
    elif not is_default(t):
        return None
    found = _hiding(t)
    if not any(map(is_changeable, t.__mro__)):
        _unchanged[t] = found
    return found


#: What was found of those types that nobody can change.
_unchanged: dict[type, Names] = {}


def _hiding(t: type) -> Names:
    if id(in_class(t, "__reduce__")) in _REDUCES_OF_EXCEPTIONS:
        return OF_EXCEPTIONS
    if not t.__dictoffset__ or t is functools.partial:
        return NOBODYS
    if issubclass(t, (tuple, set, frozenset)):
        return WITHOUT_STATE
    if issubclass(t, (*COPIED, SimpleNamespace)):
        return HIDES_WHAT_IS_READ
    if has_own_reduce(t):
        return HIDES_WHAT_IS_READ_OF_DICT if issubclass(t, dict) else HIDES_WHAT_IS_READ
    return ASKED_FOR_OF_DICT if issubclass(t, dict) else ASKED_FOR


def is_class_told(t: type) -> bool:
    """Tell whether instances of `t` say that it is their class, if they are asked, and nobody's code runs for that."""
    return (
        type(in_class(t, "__getattribute__")) is WrapperDescriptorType
        and in_class(t, "__class__") is _OBJECTS["__class__"]
    )


def is_plain_class(t: type) -> bool:
    """Tell whether an attribute that is looked up on an instance of `t` is got in the usual way."""
    return (
        id(in_class(t, "__getattribute__")) in GETATTRIBUTES
        and in_class(t, "__getattr__") is ABSENT
        and in_class(t, "__class__") is _OBJECTS["__class__"]
        and all(type(vars(c).get("__dict__", _DICT)) is type(_DICT) for c in t.__mro__[:-1])
        and (not t.__dictoffset__ or in_class(t, "__dict__") is not ABSENT)
    )


def is_default(t: type) -> bool:
    """Tell whether instances of `t` are reduced by `object.__reduce_ex__`, which finds nobody's function to call.

    Or none but one that is sure to run nobody's code, nor to change anything (`bytecode`).
    """
    if issubclass(t, _WITH_LAZY_DICT):
        return False
    for name in ("__reduce_ex__", "__reduce__"):
        reduce = in_class(t, name)
        if reduce is not _OBJECTS[name]:
            if id(reduce) in _REDUCES_OF_SETS:
                return _is_default_set(t)
            return _is_known(t, reduce, is_reduce=True)
    if in_class(t, "__getnewargs_ex__") is not ABSENT:
        return False
    base: Any = None
    for c in t.__mro__[:-1]:
        if not c.__flags__ & HEAP_TYPE:
            if c not in _BASES:
                return False
            base = c
            break
    if base is not None and any(in_class(t, name) is not in_class(base, name) for name in _BASES[base]):
        return False
    getnewargs = in_class(t, "__getnewargs__")
    if base is None or "__getnewargs__" not in vars(base):
        if getnewargs is not ABSENT:
            return False
    elif (
        getnewargs is not vars(base)["__getnewargs__"]
        and getattr(getnewargs, "__code__", None) is not _namedtuple_getnewargs
    ):
        return False
    getstate = in_class(t, "__getstate__")
    if getstate is _OBJECTS.get("__getstate__", ABSENT):  # which object has from 3.11 on
        slots = _slot_names(t)
    elif base is tuple:  # C writes no state of one that contains itself
        return False
    elif getstate is DATACLASS_GETSTATE:
        fields = in_class(t, "__dataclass_fields__")
        slots = list(fields) if type(fields) is dict else _UNKNOWN
    else:
        return _is_known(t, getstate)
    return (
        type(slots) is list
        and len(slots) < _MOST_SLOTS
        and all(type(in_class(t, name)) is MemberDescriptorType for name in slots)
    )


_MOST_SLOTS = 500
#: The reduces, by id, of exceptions, which look nothing up; and of sets, which ask for a state as object's.
_REDUCES_OF_EXCEPTIONS = frozenset(map(id, (vars(BaseException)["__reduce__"], vars(OSError)["__reduce__"])))
#: Instances of these have a `__dict__` once somebody asks for it, and in what their reduce gives then.
_WITH_LAZY_DICT = (BaseException, functools.partial)
_REDUCES_OF_SETS = frozenset(map(id, (vars(set)["__reduce__"], vars(frozenset)["__reduce__"])))


def _is_default_set(t: type) -> bool:
    """Tell the same of a class whose `__reduce__` is a set's."""
    base = set if issubclass(t, set) else frozenset
    return (
        in_class(t, "__reduce__") is vars(base)["__reduce__"]
        and in_class(t, "__iter__") is vars(base)["__iter__"]
        and in_class(t, "__len__") is vars(base)["__len__"]
        and in_class(t, "__getstate__") is _OBJECTS.get("__getstate__", _UNKNOWN)  # before 3.11 the state is a dict
        and _slot_names(t) == []
    )


def _is_known(t: type, function: Any, *, is_reduce: bool = False) -> bool:
    """Tell whether a function of a class that `is_plain_class` runs nobody's code, nor changes anything.

    Args:
        t: the class.
        function: what stands in it: a `__getstate__`.
        is_reduce: whether it is a `__reduce__` or `__reduce_ex__` instead, which is to give a usual call.
    """
    does = bytecode.known(function)
    if (
        does is None
        or not bytecode.looks_up_names(function, does)
        or (is_reduce and not has_a_usual_name(bytecode.callee(function, does, t)))
        or (does.has_dict and not t.__dictoffset__)
    ):
        return False
    reads = bytecode.reads(function, does)
    if reads is None:
        return False
    for c in t.__mro__:
        if not c.__dict__.keys().isdisjoint(reads):  # else they are the instance's own
            break
    else:
        return True
    for name in reads:
        found = in_class(t, name)
        if (
            found is not ABSENT
            and type(found) not in (MemberDescriptorType, FunctionType)
            and in_class(type(found), "__get__") is not ABSENT
        ):
            return False
    return True


def has_a_usual_name(func: Any) -> bool:
    """Tell whether what a reduce gives is called as any function is, which stock tells by its name, without asking."""
    return (
        id(type(func)) in HAVE_A_NAME
        and type(name := func.__name__) is str  # that of a function may be of a subclass
        and name not in ("__newobj_ex__", "__newobj__")
    )


def is_bare(t: type) -> bool:
    """Tell whether instances of `t`, to which `names` gave names, have nothing but a `__dict__`."""
    return (
        t not in STDLIBS
        and type(t) is not enum.EnumMeta
        and t.__basicsize__ == _Dummy.__basicsize__
        and not t.__itemsize__
        and not has_own_reduce(t)
        and _slot_names(t) == []
        and not any(c in _BASES for c in t.__mro__)
    )


def has_own_reduce(t: type) -> bool:
    """Tell whether a class has one of `REDUCES` that is neither the interpreter's nor the standard library's."""
    if t in STDLIBS or type(t) is enum.EnumMeta:
        return False
    for c in t.__mro__:
        if c is not object and not c.__dict__.keys().isdisjoint(REDUCES):
            return bool(c.__flags__ & HEAP_TYPE)
    return False


def calls_its_class(t: type) -> bool:
    """Tell whether what the reduce of an instance of `t` gives is a call of `t`, or for an enum of getattr() with it.

    Args:
        t: a class to which `names` gave names.
    """
    if t in CALL_OTHERS or arrays.is_of_numpy(t):
        return False
    if t in STDLIBS or type(t) is enum.EnumMeta:
        return True
    for name in ("__reduce_ex__", "__reduce__"):
        function = in_class(t, name)
        if type(function) is FunctionType:
            does = bytecode.known(function)
            return does is not None and bytecode.callee(function, does, t) is t
    return True


def own_reduce(t: type, proto: int) -> Callable[[Any], Any] | None:
    """Return what does what the reduce of a class with a known one does, with a call less; None if it is not so simple.

    Args:
        t: a class of which `has_own_reduce` holds, and `names` gave names.
        proto: the protocol.
    """
    reduce_ex = in_class(t, "__reduce_ex__")
    if reduce_ex is not _OBJECTS["__reduce_ex__"]:
        return lambda obj: reduce_ex(obj, proto)
    reduce: Callable[[Any], Any] = in_class(t, "__reduce__")
    if reduce is not _OBJECTS["__reduce__"]:
        return reduce
    function = in_class(t, "__getstate__")
    if any(c in _BASES for c in t.__mro__) or bytecode.known(function) is None:
        return None
    newobj = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
    args = (t,)
    return lambda obj: (newobj, args, function(obj))


def usual_names(t: type) -> Names | None:
    """Tell, in 1 us, what `names` does of most classes: those that have but a `__dict__` or slots, enums, namedtuples.

    Args:
        t: a type that has no entry in `copyreg.dispatch_table`.

    Returns:
        What `names` does; None if that has to be asked.
    """
    if type(t) is enum.EnumMeta:
        return ASKED_FOR if _is_usual_enum(t) else None
    if type(t) is not type:
        return None
    if t.__dictoffset__:
        return ASKED_FOR if has_only_a_dict(t) else HIDES_WHAT_IS_READ if has_known_reduce(t) else None
    of_class = t.__dict__
    slots = of_class.get("__slotnames__")  # where the first reduce has left them
    if type(slots) is not list:
        return None
    *classes, base, _ = t.__mro__
    if base is tuple:
        function = of_class.get("__getnewargs__")
        is_usual = (
            classes == [t]
            and not slots
            and type(function) is FunctionType
            and function.__code__ is _namedtuple_getnewargs
            and of_class.keys().isdisjoint(_ASKED_OF_TUPLES)
        )
        return NOBODYS if is_usual else None
    for c in (*classes, base):
        if not c.__flags__ & HEAP_TYPE or not c.__dict__.keys().isdisjoint(_ASKED_OF_SLOTS):
            return None
    for name in slots:
        if type(of_class.get(name)) is not MemberDescriptorType and type(in_class(t, name)) is not MemberDescriptorType:
            return None
    return NOBODYS if len(slots) < _MOST_SLOTS else None


def _is_usual_enum(t: type) -> bool:
    if len(t.__mro__) != len((t, enum.Enum, object)) or t.__base__ is not enum.Enum:
        return False
    of_class = t.__dict__
    of_enum = enum.Enum.__dict__
    return (
        id((of_class if "__reduce_ex__" in of_class else of_enum).get("__reduce_ex__")) in _ENUM_REDUCES
        and of_class.keys().isdisjoint(_ASKED_OF_ENUMS)
        and of_enum.keys().isdisjoint(_ASKED_OF_ENUM)
        and type(of_enum.get("__dict__")) is type(_DICT)
    )


def has_only_a_dict(t: type) -> bool:
    """Tell, in 0.5 us, whether `is_default`, `is_plain_class` and `is_bare` are sure to hold for a class."""
    if type(t) is not type or not t.__dictoffset__ or t.__basicsize__ != _Dummy.__basicsize__ or t.__itemsize__:
        return False
    for c in t.__mro__:
        if c is object:
            return True
        of_class = vars(c)
        if (
            not c.__flags__ & HEAP_TYPE
            or not of_class.keys().isdisjoint(_UNUSUAL)  # of a set it would look up all that a class has
            or type(of_class.get("__dict__", _DICT)) is not type(_DICT)
            or type(slots := of_class.get("__slotnames__", _NO_SLOTS)) is not list
            or slots
        ):
            return False
    return False


def has_known_reduce(t: type) -> bool:
    """Tell, in 2 us, whether `is_default` and `is_plain_class` are sure to hold for a class with one of `REDUCES`."""
    if type(t) is not type or not t.__dictoffset__ or t.__basicsize__ != _Dummy.__basicsize__ or t.__itemsize__:
        return False
    name = ""
    function: Any = None
    for c in t.__mro__[:-1]:
        of_class = c.__dict__
        unusual = of_class.keys() & _ASKED_OR_GOT
        if unusual:
            if name or len(unusual) > 1:
                return False
            (name,) = unusual
            function = of_class[name]
        if not c.__flags__ & HEAP_TYPE or type(of_class.get("__dict__", _DICT)) is not type(_DICT):
            return False
    return name in REDUCES and _is_known(t, function, is_reduce=name != "__getstate__")


#: What a class has that changes how an attribute is got, or what comes of a reduce.
_GOT = ("__getattribute__", "__getattr__", "__class__")
_ASKED_OR_GOT = frozenset((*ASKED_FOR, *_GOT))
_ASKED_OF_SLOTS = (*_ASKED_OR_GOT, "__dict__")
_UNUSUAL = (*_ASKED_OR_GOT, "__slots__")
_ASKED_OF_ENUM = (*_GOT, "__reduce__")
_ASKED_OF_ENUMS = (*_ASKED_OF_ENUM, "__dict__", "_value_")
_ASKED_OF_TUPLES = tuple({*_ASKED_OF_SLOTS, "__iter__", "__len__"} - {"__getnewargs__"})
_NO_SLOTS: list[str] = []
_UNKNOWN: Any = None


def _slot_names(t: type) -> Any:
    """Return a list of the names of the slots that make a state, or something else: what `copyreg._slotnames` gives.

    That would leave them on the class, where stock does not if an instance turns out to have a reduce of its own.
    """
    cached = vars(t).get("__slotnames__", ABSENT)
    if cached is not ABSENT:
        return cached
    found: list[str] = []
    for c in t.__mro__[:-1]:
        slots = vars(c).get("__slots__", ())
        names_of_c = (slots,) if type(slots) is str else slots
        if type(names_of_c) not in _SEQUENCES or not are_texts(map(id, map(type, names_of_c))):
            return None  # somebody's code would run
        for name in names_of_c:
            is_mangled = name.startswith("__") and not name.endswith("__")
            if name not in ("__dict__", "__weakref__"):
                found.append(f"_{c.__name__.lstrip('_')}{name}" if is_mangled and c.__name__.strip("_") else name)
    return found


_SEQUENCES = (tuple, list, dict)
