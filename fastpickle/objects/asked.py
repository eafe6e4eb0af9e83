"""What a reduce asks an object and its class for, and how that is looked up without asking anybody.

    the class      in_class(t, name): as it stands there
    the object     Names.isdisjoint(its `__dict__`): none of its attributes hides what the reduce is to find

Not for: what comes of it (`instances`).
"""

from __future__ import annotations

import enum
from abc import ABCMeta
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any, Protocol

__all__ = [
    "ABSENT",
    "ASKED_FOR",
    "ASKED_FOR_OF_DICT",
    "HAVE_A_NAME",
    "HIDES_WHAT_IS_READ",
    "HIDES_WHAT_IS_READ_OF_DICT",
    "METACLASSES",
    "METACLASS_IDS",
    "NOBODYS",
    "REDUCES",
    "WITHOUT_STATE",
    "Names",
    "are_texts",
    "hides_no_reduce",
    "in_class",
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
HIDES_WHAT_IS_READ_OF_DICT: Names = _NamesAmongTexts(ASKED_FOR_OF_DICT)
#: No names: the instance has no attributes of its own, or a reduce that looks none up.
NOBODYS = Names()


class _NoAttributes(Names):
    """The same where the instance must have no attributes at all.

    If it is in what its reduce gives to make it anew, C writes no state of it, as Python does.
    """

    def isdisjoint(self, attributes: dict[str, Any]) -> bool:
        return not attributes


WITHOUT_STATE: Names = _NoAttributes(ASKED_FOR)

#: Those whose classes are found, and saved, as those of `type` are.
METACLASSES = (type, ABCMeta, enum.EnumMeta, type(Protocol))
#: They by id, since the hash of another one may be anybody's.
METACLASS_IDS = frozenset(map(id, METACLASSES))
#: Types whose objects are saved by their names, if they are found there, and asked for these without running anybody's
#: code; by id, since a hash may be anybody's.
HAVE_A_NAME = frozenset(map(id, (*METACLASSES, FunctionType, BuiltinFunctionType)))


def in_class(t: type, name: str) -> Any:
    """Return an attribute of a class as it stands there, so that no descriptor is asked; or `ABSENT`."""
    for c in t.__mro__:
        if name in vars(c):
            return vars(c)[name]
    return ABSENT


ABSENT: Any = object()
