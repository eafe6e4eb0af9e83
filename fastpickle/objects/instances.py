"""Which objects reduce to the same in C and in Python, and without running anybody's code but the interpreter's.

    type --(what PEP 307 asks of it and of its instance)--> names(t): None          no, or not known
                                                                      NOBODYS       yes
                                                                      some names    yes, if none is in its __dict__

That is so for instances of classes that leave `object.__reduce_ex__` as it is (plain classes, dataclasses, slots,
namedtuples, subclasses of list and dict), or the functions of which only read the instance (`bytecode`), for enums, and
for the types of the standard library in `STDLIBS`.  What a reduce of the standard library runs is compared with what
was there when this module was imported.

Not for: classes and functions themselves, which are saved by name (`reduce.is_stocks`), nor for guesses (`likely`).
"""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import datetime
import enum
import fractions
import functools
import operator
import pathlib
import re
import uuid
from abc import ABCMeta
from array import array
from collections.abc import Callable
from decimal import Decimal
from types import (
    BuiltinFunctionType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any, Protocol

from . import arrays, bytecode
from .arrays import HEAP_TYPE

__all__ = [
    "ABSENT",
    "ASKED_FOR",
    "ASKED_FOR_OF_DICT",
    "COPIED",
    "DATACLASS_GETSTATE",
    "ENTRIES",
    "GETATTRIBUTES",
    "HAVE_A_NAME",
    "HEAP_TYPE",
    "HIDES_WHAT_IS_READ",
    "LEAVES",
    "LOOKED_INTO",
    "METACLASSES",
    "METACLASS_IDS",
    "NOBODYS",
    "REDUCES",
    "STDLIBS",
    "Names",
    "are_keys_pure",
    "are_texts",
    "has_a_usual_name",
    "has_known_reduce",
    "has_only_a_dict",
    "has_own_reduce",
    "hides_no_reduce",
    "in_class",
    "is_array",
    "is_bare",
    "is_class_told",
    "is_default",
    "is_learnt",
    "is_plain_class",
    "names",
    "own_reduce",
]


class Names(tuple[str, ...]):
    """Names that the attributes of an instance must not have: looked up there, so that no key is asked for its hash.

    Attributes:
        look: tells of an instance whether its reduce asks nobody; None if that is always so, or for `LOOKED_INTO`.
    """

    __slots__ = ()
    look: Callable[[Any], bool] | None = None

    def isdisjoint(self, attributes: dict[str, Any]) -> bool:  # an exact one
        return attributes.keys().isdisjoint(self)  # of a set it would look up the keys


#: What a reduce looks up on the instance, so that its own attributes can change what comes of it.
ASKED_FOR = Names(("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__", "__getnewargs_ex__"))


def hides_no_reduce(state: dict[str, Any]) -> bool:
    """Tell what `ASKED_FOR.isdisjoint` does, sooner."""
    return not (
        "__reduce_ex__" in state
        or "__reduce__" in state
        or "__getstate__" in state
        or "__getnewargs__" in state
        or "__getnewargs_ex__" in state
    )


#: Those that are nearly always there if a class has a reduce of its own.
REDUCES = frozenset(("__reduce__", "__reduce_ex__", "__getstate__"))
#: The same for a dict of a class of its own.
ASKED_FOR_OF_DICT = Names((*ASKED_FOR, "items", "keys", "__iter__"))


class _NamesAmongTexts(Names):
    """The same where a function of the class reads the instance: another key may be asked whether it is equal."""

    def isdisjoint(self, attributes: dict[str, Any]) -> bool:
        return are_texts(map(id, map(type, attributes))) and super().isdisjoint(attributes)


are_texts = frozenset((id(str),)).issuperset
#: What hides that function, or what it reads.
HIDES_WHAT_IS_READ: Names = _NamesAmongTexts(ASKED_FOR)
_HIDES_WHAT_IS_READ_OF_DICT: Names = _NamesAmongTexts(ASKED_FOR_OF_DICT)
#: No names: the instance has no attributes of its own, or a reduce that looks none up.
NOBODYS = Names()


class _NoAttributes(Names):
    """The same where the instance must have no attributes at all.

    If it is in what its reduce gives to make it anew, C writes no state of it, as Python does.
    """

    def isdisjoint(self, attributes: dict[str, Any]) -> bool:
        return not attributes


_WITHOUT_STATE: Names = _NoAttributes(ASKED_FOR)

#: Those whose classes are found, and saved, as those of `type` are.
METACLASSES = (type, ABCMeta, enum.EnumMeta, type(Protocol))
#: They by id, since the hash of another one may be anybody's.
METACLASS_IDS = frozenset(map(id, METACLASSES))


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


def in_class(t: type, name: str) -> Any:
    """Return an attribute of a class as it stands there, so that no descriptor is asked; or `ABSENT`."""
    for c in t.__mro__:
        if name in vars(c):
            return vars(c)[name]
    return ABSENT


ABSENT: Any = object()


def _functions(t: type) -> tuple[Any, ...]:
    """Return all that a reduce of an instance of `t` asks the class for."""
    return tuple(in_class(t, name) for name in (*sorted(ASKED_FOR_OF_DICT), "__getattribute__"))


#: Types whose reduce runs only the standard library's code, and what that was at import.
STDLIBS: dict[type, tuple[Any, ...]] = {
    t: _functions(t)
    for t in (
        complex, range, Decimal, uuid.UUID, fractions.Fraction, collections.OrderedDict, collections.deque,
        collections.defaultdict, collections.Counter, datetime.date, datetime.time, datetime.datetime,
        datetime.timedelta, datetime.timezone, pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath,
        type(pathlib.Path()), array, slice, MethodType, SimpleNamespace, functools.partial, operator.itemgetter,
        operator.attrgetter, re.Pattern,
    )
}  # fmt: skip
#: Those of them in which there is nothing else, or next to nothing.
LEAVES = set(
    map(id, STDLIBS.keys() - {collections.OrderedDict, collections.deque, collections.defaultdict, collections.Counter})
)
#: The entries that they have in copyreg's table.
ENTRIES: dict[type, Any] = {t: copyreg.dispatch_table[t] for t in (complex, re.Pattern) if t in copyreg.dispatch_table}
#: The same of enums: `enum` puts one of a few functions into each class.
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
    if t in STDLIBS or is_learnt(t):
        if entry is not ENTRIES.get(t):
            return None
        unchanged = _unchanged.get(t)
        if unchanged is None:
            if _functions(t) != STDLIBS[t]:
                return None
            unchanged = _hiding(t)
            if all(c.__flags__ & (HEAP_TYPE | _IMMUTABLE) != HEAP_TYPE for c in t.__mro__):
                _unchanged[t] = unchanged
        return unchanged
    if entry is not None:
        return None
    if arrays.is_dtype(t):
        return NOBODYS
    if not is_plain_class(t):
        return None
    if type(t) is enum.EnumMeta:
        if id(in_class(t, "__reduce_ex__")) not in _ENUM_REDUCES or in_class(t, "_value_") is not in_class(
            enum.Enum, "_value_"
        ):
            return None
    elif id(in_class(t, "__reduce__")) in _REDUCES_OF_EXCEPTIONS:
        if in_class(t, "__reduce_ex__") is not _OBJECTS["__reduce_ex__"]:
            return None
    elif not is_default(t):
        return None
    return _hiding(t)


#: What was found of those of `STDLIBS` that nobody can change.
_unchanged: dict[type, Names] = {}
#: The flag of classes written in C that nobody can change, although they are heap types.
_IMMUTABLE = 1 << 8


def is_learnt(t: type) -> bool:
    """Tell whether a type that is not in `STDLIBS` turns out to be one of numpy's, which are kept there then."""
    if t.__flags__ & HEAP_TYPE or t.__module__ != "numpy":
        return False
    array = arrays.array_type()
    if array is None or array in STDLIBS:
        return False
    scalars = arrays.scalar_types()
    for x in (array, *scalars):
        STDLIBS[x] = _functions(x)
    LOOKED_INTO[array] = arrays.is_little
    LEAVES.update(map(id, scalars))
    return t in STDLIBS


def _hiding(t: type) -> Names:
    if id(in_class(t, "__reduce__")) in _REDUCES_OF_EXCEPTIONS:
        return _OF_EXCEPTIONS
    if not t.__dictoffset__ or t is functools.partial:
        return NOBODYS
    if issubclass(t, (tuple, set, frozenset)):
        return _WITHOUT_STATE
    if issubclass(t, (*COPIED, SimpleNamespace)):
        return HIDES_WHAT_IS_READ
    if has_own_reduce(t):
        return _HIDES_WHAT_IS_READ_OF_DICT if issubclass(t, dict) else HIDES_WHAT_IS_READ
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
    if getstate is DATACLASS_GETSTATE:
        fields = in_class(t, "__dataclass_fields__")
        slots = list(fields) if type(fields) is dict else _UNKNOWN
    elif getstate is _OBJECTS.get("__getstate__", ABSENT):  # which object has from 3.11 on
        slots = _slot_names(t)
    else:
        return base is not tuple and _is_known(t, getstate)  # C writes no state of a tuple that contains itself
    return (
        type(slots) is list
        and len(slots) < 500
        and all(type(in_class(t, name)) is MemberDescriptorType for name in slots)
    )


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


#: Types whose objects are asked for their name without running anybody's code; by id, since a hash may be anybody's.
HAVE_A_NAME = frozenset(map(id, (*METACLASSES, FunctionType, BuiltinFunctionType)))


def has_a_usual_name(func: Any) -> bool:
    """Tell whether what a reduce gives is called as any function is, which stock tells by its name, without asking."""
    return id(type(func)) in HAVE_A_NAME and func.__name__ not in ("__newobj_ex__", "__newobj__")


def is_array(t: type) -> bool:
    """Tell whether a type is that of numpy's arrays: where C may not write one, stock is as soon."""
    return type(t) is type and LOOKED_INTO.get(t) is arrays.is_little


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
            or not _UNUSUAL.isdisjoint(of_class)
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
_ASKED_OR_GOT = frozenset(ASKED_FOR) | {"__getattribute__", "__getattr__", "__class__"}
_UNUSUAL = _ASKED_OR_GOT | {"__slots__"}
_NO_SLOTS: list[str] = []


def _hides_nothing(state: Any) -> bool:
    """Tell whether what C's reduce gave for a `__dict__`, which is there then, hides no reduce of its class."""
    return type(state) is dict and HIDES_WHAT_IS_READ.isdisjoint(state)


def _is_exception_pure(obj: Any) -> bool:
    """Tell whether an exception has but atoms to make it anew of: C writes no state of one that contains itself."""
    reduce: Any = type(obj).__reduce__  # which is C, and looks nothing up
    _, args, *state = reduce(obj)
    return _are_hashed_by_c(map(id, map(type, args))) and (not state or _hides_nothing(state[0]))


class _OfException(Names):
    """The names of an exception: none, since its `__dict__` is not asked for, which would be there then."""

    look = staticmethod(_is_exception_pure)


_OF_EXCEPTIONS = _OfException()


def _is_partial_pure(obj: Any) -> bool:
    """Tell whether what a partial calls cannot have it in it: C would write no state of that."""
    reduced: Any = functools.partial.__reduce__(obj)
    func, *_, state = reduced[2]
    return _holds_nothing(func) and (state is None or _hides_nothing(state))


def _holds_nothing(func: Any) -> bool:
    """Tell whether something that is called is saved by its name, if C saves it at all."""
    t = type(func)
    return t is FunctionType or t is type or (t is BuiltinFunctionType and type(func.__self__) is ModuleType)


def _is_factory_pure(obj: Any) -> bool:
    """Tell whether a defaultdict cannot be in its factory: C would not write its items again, as Python does."""
    factory = obj.default_factory
    if type(factory) is functools.partial:  # often one of a defaultdict
        reduced: Any = functools.partial.__reduce__(factory)
        func, args, keywords, _ = reduced[2]
        return not keywords and _holds_nothing(func) and all(map(_holds_nothing, args)) and _is_partial_pure(factory)
    return factory is None or _holds_nothing(factory)


def _is_method_pure(obj: Any) -> bool:
    """Tell whether a method is that of a function, which is asked for its name."""
    return type(obj.__func__) is FunctionType


def _is_fraction_pure(obj: Any) -> bool:
    return type(obj._numerator) is int and type(obj._denominator) is int


def _is_uuid_pure(obj: Any) -> bool:
    return type(obj.int) is int and type(obj.is_safe) is uuid.SafeUUID


def are_keys_pure(obj: Any) -> bool:
    """Tell whether all keys of a dict are atoms, or tuples of atoms, so that nobody's hash is asked for."""
    return _are_hashed_by_c(map(id, map(type, _iterate_keys(obj)))) or all(map(_is_hashed_by_c, _iterate_keys(obj)))


def _is_hashed_by_c(key: Any) -> bool:
    return _are_hashed_by_c(map(id, map(type, key if type(key) is tuple else (key,))))


_are_hashed_by_c = frozenset(map(id, (str, int, float, bool, bytes, type(None)))).issuperset
_iterate_keys = dict.__iter__  # that of OrderedDict asks keys for hashes
#: Types of the standard library whose objects may hold what is asked for a hash, a text, or whether it is equal; and
#: what tells that a reduce asks nobody.
LOOKED_INTO: dict[type, Callable[[Any], bool]] = {
    fractions.Fraction: _is_fraction_pure,
    uuid.UUID: _is_uuid_pure,
    collections.OrderedDict: are_keys_pure,
    collections.Counter: are_keys_pure,
    collections.defaultdict: _is_factory_pure,
    functools.partial: _is_partial_pure,
    MethodType: _is_method_pure,
}
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
