"""What is told of a class by a short look is what the long one tells (`instances.names`), whatever is in it."""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import enum
import pathlib
import random
import typing
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from oracle.allowed import PYPY

from fastpickle.objects.instances import names, usual_names
from fastpickle.objects.stdlibs import is_as_imported

pytestmark = pytest.mark.skipif(PYPY, reason="there classes are looked at by `pypy.looks`")
_Namedtuple = collections.namedtuple("_Namedtuple", "a b")


def _of_ones_own(self: Any, *args: Any) -> tuple[()]:
    return ()


def _known_state(self: Any) -> Any:
    return self.__dict__


def _known_reduce(self: Any) -> Any:
    return self.__class__, (self.x,)


#: What a class may have that a reduce asks for, or that looks like it.
_SPICE: dict[str, Any] = {
    **dict.fromkeys(
        ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__", "__getnewargs_ex__", "__getattr__", "__len__",
         "__iter__", "items", "x", "__setstate__"),
        _of_ones_own,
    ),
    "__getattribute__": object.__getattribute__,
    "__class__": property(_of_ones_own),
    "__dict__": property(_of_ones_own),
    "_value_": 3,
    "__slotnames__": ["x"],
}  # fmt: skip
_KNOWN = (_known_state, _known_reduce)
_SLOTS: tuple[Any, ...] = ((), ("x", "y"), "x", ["x", "__weakref__"], ("x", "__dict__"), ("__x",))
_BUILTINS = (tuple, list, dict, int, str, set)
_KINDS: dict[str, Callable[[random.Random, list[Any], dict[str, Any]], Any]] = {
    "with a dict": lambda some, met, spice: type("A", _one(some, met), spice),
    "with slots": lambda some, met, spice: type("A", _one(some, met), {**spice, "__slots__": some.choice(_SLOTS)}),
    "a namedtuple": lambda some, met, spice: _with(collections.namedtuple("A", "a b"), spice),
    "one with types": lambda some, met, spice: _with(typing.NamedTuple("A", [("a", int)]), spice),
    "below a namedtuple": lambda some, met, spice: type("A", (_Namedtuple,), spice),
    "below one, with slots": lambda some, met, spice: type("A", (_Namedtuple,), {**spice, "__slots__": ()}),
    "an enum": lambda some, met, spice: _with(some.choice((enum.Enum, enum.IntEnum, enum.Flag))("A", "B C"), spice),
    "an exception": lambda some, met, spice: type("A", (some.choice((ValueError, OSError)),), spice),
    "below a builtin": lambda some, met, spice: type("A", (some.choice(_BUILTINS),), spice),
    "below two": lambda some, met, spice: type("A", tuple(some.sample(met, 2)), spice),
    "a dataclass": lambda some, met, spice: dataclasses.make_dataclass("A", ["x", "y"], namespace=spice),
    "one with slots": lambda some, met, spice: dataclasses.make_dataclass(
        "A", ["x", "y"], namespace=spice, frozen=some.random() < 1 / 2, slots=True
    ),
}


def _one(some: random.Random, met: list[Any]) -> tuple[Any, ...]:
    return (some.choice(met),) if met and some.random() < 1 / 2 else ()


def _with(t: Any, spice: dict[str, Any]) -> Any:
    for name, value in spice.items():
        type.__setattr__(t, name, value)
    return t


@pytest.mark.parametrize("kind", _KINDS)
def test_usual_names(kind: str) -> None:
    some = random.Random(kind)
    met: list[Any] = []
    kinds = set()
    for _ in range(600):
        other = kind if some.random() < 3 / 4 else some.choice([*_KINDS])
        spice = {name: value for name, value in _SPICE.items() if some.random() < 1 / 20}
        if some.random() < 1 / 20:
            spice["__getnewargs__"] = _Namedtuple.__getnewargs__
        if some.random() < 1 / 5:
            spice[some.choice(("__getstate__", "__reduce__", "__reduce_ex__"))] = some.choice(_KNOWN)
        try:
            t = _KINDS[other](some, met, spice)
        except (TypeError, ValueError, AttributeError):  # there can be no such class
            continue
        if some.random() < 1 / 2:
            try:
                copyreg._slotnames(t)  # as the first reduce does
            except Exception:  # slots that are no list of texts
                pass
        met = [*met[-12:], t]
        found = usual_names(t)
        if found is not None:
            kinds.add(found)
            told = names(t, None)
            assert told == found, (t.__mro__, vars(t))
            assert type(told) is type(found)
    assert len(kinds) > 1


@pytest.mark.parametrize("value", [_of_ones_own, None])
@pytest.mark.parametrize(
    ("t", "name"),
    [(uuid.UUID, "__getstate__"), (uuid.UUID, "__reduce__"), (pathlib.PurePosixPath, "__reduce_ex__"),
     (pathlib.PurePath, "__reduce__"), (collections.Counter, "items")],
)  # fmt: skip
def test_as_imported(t: type, name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    below = pathlib.PurePosixPath if t is pathlib.PurePath else t
    for _ in range(2):
        assert is_as_imported(below)
        with monkeypatch.context() as changed:
            changed.setattr(t, name, value, raising=False)
            assert is_as_imported(below) is (below is not t and name in vars(below))
            assert (names(below, None) is not None) is is_as_imported(below)
        assert is_as_imported(below)


@pytest.mark.parametrize("name", ["__reduce__", "__reduce_ex__", "__getattr__", "_value_"])
@pytest.mark.parametrize("value", [None, BaseException.__reduce__])
def test_enum(name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All enums are changed by what is given to `enum.Enum`."""
    colour = enum.Enum("Colour", "RED")
    assert usual_names(colour) is names(colour, None) is not None
    with monkeypatch.context() as changed:
        if name in vars(enum.Enum):
            changed.delattr(enum.Enum, name)
        type.__setattr__(enum.Enum, name, value)
        found = usual_names(colour)
        assert found is None or found is names(colour, None)
        type.__delattr__(enum.Enum, name)
    assert usual_names(colour) is not None


def test_what_nobody_can_change() -> None:
    assert names(ValueError, None) is names(ValueError, None) is not None
    assert names(ValueError, _of_ones_own) is None  # with an entry in copyreg's table
    assert names(complex, None) is None  # without its own
