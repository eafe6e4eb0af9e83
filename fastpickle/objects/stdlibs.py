"""The standard library's types, and numpy's: what their reduces were at import, and what tells that one asks nobody.

    STDLIBS[t]        the functions that a reduce of an instance finds in the class: compared with those of now
    LOOKED_INTO[t]    for types whose objects may hold what is asked, or themselves: is this one pure?

Not for: classes of others (`instances`).
"""

from __future__ import annotations

import collections
import copyreg
import datetime
import fractions
import functools
import operator
import pathlib
import re
import uuid
from array import array
from collections.abc import Callable
from decimal import Decimal
from itertools import repeat
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final

from . import arrays
from .arrays import HEAP_TYPE
from .asked import ABSENT, ASKED_FOR_OF_DICT, HIDES_WHAT_IS_READ, METACLASS_IDS, Names, in_class

__all__ = [
    "CALL_OTHERS",
    "ENTRIES",
    "LEAVES",
    "LOOKED_INTO",
    "OF_EXCEPTIONS",
    "STDLIBS",
    "are_keys_pure",
    "is_array",
    "is_as_imported",
    "is_changeable",
    "is_learnt",
]


def _functions_of(t: type) -> tuple[Any, ...]:
    """Return all that a reduce of an instance of `t` asks the class for."""
    return tuple(map(in_class, repeat(t), _FUNCTIONS))


_FUNCTIONS: Final = (*sorted(ASKED_FOR_OF_DICT), "__getattribute__")


#: Types whose reduce runs only the standard library's code, and what that was at import.  Where C may not be asked,
#: `engine.reduce.WRITTEN_IN_C` tells whose reduce is sooner called by us.
STDLIBS: dict[type, tuple[Any, ...]] = {
    t: _functions_of(t)
    for t in (
        complex, range, Decimal, uuid.UUID, fractions.Fraction, collections.OrderedDict, collections.deque,
        collections.defaultdict, collections.Counter, datetime.date, datetime.time, datetime.datetime,
        datetime.timedelta, datetime.timezone, pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath,
        type(pathlib.Path()), array, slice, MethodType, SimpleNamespace, functools.partial, operator.itemgetter,
        operator.attrgetter, re.Pattern,
    )
}  # fmt: skip


def is_as_imported(t: type) -> bool:
    """Tell whether `_functions_of` a type of `STDLIBS` are still those of its import."""
    mro, held = _right.get(t, _NOT_SEEN)
    if mro is t.__mro__:
        for c, _, ids in held:
            if [*map(id, map(c.__dict__.get, _FUNCTIONS, _ABSENT))] != ids:
                break
        else:
            return True
    if _functions_of(t) != STDLIBS[t]:
        return False
    mro = t.__mro__
    held = []
    for c in mro:
        if is_changeable(c):
            found = [*map(c.__dict__.get, _FUNCTIONS, _ABSENT)]
            held.append((c, found, [*map(id, found)]))
    if _functions_of(t) == STDLIBS[t]:  # another thread may change it meanwhile
        _right[t] = mro, held
    return True


def is_changeable(c: type) -> bool:
    """Tell whether what stands in a class may be changed: not if it is written in C, nor in most heap types of C."""
    return c.__flags__ & (HEAP_TYPE | _IMMUTABLE) == HEAP_TYPE


_IMMUTABLE: Final = 1 << 8
#: What `is_as_imported` has found to be right: the classes, and what stands in those that can be changed, with its ids.
_right: Final[dict[type, tuple[Any, list[tuple[type, list[Any], list[int]]]]]] = {}
_ABSENT: Final = (ABSENT,) * len(_FUNCTIONS)  # None may stand there
_NOT_SEEN: Final[tuple[Any, list[Any]]] = None, []

#: The types of `STDLIBS` in which there is nothing else, or next to nothing.
LEAVES = set(
    map(id, STDLIBS.keys() - {collections.OrderedDict, collections.deque, collections.defaultdict, collections.Counter})
)
#: The reduces of these give another function to call than the class: that of a pattern, an array and a method.
CALL_OTHERS = frozenset((re.Pattern, array, MethodType))
#: The entries that they have in copyreg's table.
ENTRIES: dict[type, Any] = {t: copyreg.dispatch_table[t] for t in (complex, re.Pattern) if t in copyreg.dispatch_table}


def is_learnt(t: type) -> bool:
    """Tell whether a type that is not in `STDLIBS` turns out to be one of numpy's, which are kept there then."""
    if t.__flags__ & HEAP_TYPE or t.__module__ != "numpy":
        return False
    array = arrays.array_type()
    if array is None or array in STDLIBS:
        return False
    scalars = arrays.scalar_types()
    for x in (array, *scalars):
        STDLIBS[x] = _functions_of(x)
    LOOKED_INTO[array] = arrays.is_little
    LEAVES.update(map(id, scalars))
    return t in STDLIBS


def is_array(t: type) -> bool:
    """Tell whether a type is that of numpy's arrays: where C may not write one, stock is as soon."""
    return type(t) is type and LOOKED_INTO.get(t) is arrays.is_little


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


OF_EXCEPTIONS = _OfException()


def _is_partial_pure(obj: Any) -> bool:
    """Tell whether what a partial calls cannot have it in it: C would write no state of that."""
    reduced: Any = functools.partial.__reduce__(obj)
    func, *_, state = reduced[2]
    return _holds_nothing(func) and (state is None or _hides_nothing(state))


def _holds_nothing(func: Any) -> bool:
    """Tell whether something that is called is saved by its name, if C saves it at all."""
    t = type(func)
    return (
        t is FunctionType or id(t) in METACLASS_IDS or (t is BuiltinFunctionType and type(func.__self__) is ModuleType)
    )


def _is_factory_pure(obj: Any) -> bool:
    """Tell whether a defaultdict cannot be in its factory: C would not write its items again, as Python does."""
    factory = obj.default_factory
    if type(factory) is functools.partial:  # often one of a defaultdict
        reduced: Any = functools.partial.__reduce__(factory)
        func, args, keywords, state = reduced[2]
        return (
            _holds_nothing(func)
            and all(_holds_nothing(x) or _is_hashed_by_c(x) for x in args)
            and not keywords
            and (state is None or (type(state) is dict and not state))
        )
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
