"""fastpickle.Pickler, and a subclass of it, against the running Python's pickle._Pickler."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest
from oracle import objects, strategies
from oracle.compare import Implementation
from oracle.suite_evil import EvilSuite
from oracle.suite_hooks import HookSuite
from oracle.suite_values import BufferSuite, ValueSuite

import fastpickle

_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]


class Ours:
    oracle = Implementation("pickle._Pickler", _Stock)
    ours = Implementation("fastpickle.Pickler", fastpickle.Pickler)


class TestValues(Ours, ValueSuite):
    pass


class TestBuffers(Ours, BufferSuite):
    pass


class TestHooks(Ours, HookSuite):
    pass


class TestEvil(Ours, EvilSuite):
    pass


@pytest.mark.usefixtures("taken_for_little")
class TestHooksLikeTheLast(Ours, HookSuite):
    pass


@pytest.mark.usefixtures("taken_for_little")
class TestEvilLikeTheLast(Ours, EvilSuite):
    pass


@pytest.mark.usefixtures("saved_as_stock")
class TestValuesAsStock(Ours, ValueSuite):
    pass


@pytest.mark.usefixtures("saved_as_stock")
class TestHooksAsStock(Ours, HookSuite):
    pass


@pytest.mark.usefixtures("saved_as_stock")
class TestEvilAsStock(Ours, EvilSuite):
    pass


if strategies.is_thorough():

    class Subclasses:
        oracle = Implementation("a subclass of pickle._Pickler", type("P", (_Stock,), {}))
        ours = Implementation("a subclass of fastpickle.Pickler", type("P", (fastpickle.Pickler,), {}))

    class TestSubclassValues(Subclasses, ValueSuite):
        pass

    class TestSubclassHooks(Subclasses, HookSuite):
        pass


class Told:
    """Says to be of another class, the first times that it is asked."""

    asked = 0
    lies = 1

    @property  # type: ignore[misc]  # typeshed lets it be set
    def __class__(self) -> Any:
        Told.asked += 1
        return int if Told.asked <= Told.lies else Told


class ToldWithNames(Told):
    def __getnewargs_ex__(self) -> Any:
        return (), {}


@pytest.mark.parametrize("cls", [Told, ToldWithNames])
@pytest.mark.parametrize("beside", [0, 1, 19, 60])
def test_asked_for_its_class_once(cls: Any, beside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an object says first counts, as on stock, though what it says next would do."""

    def outcome(pickler: Any, obj: Any) -> Any:
        Told.asked = 0
        try:
            pickler(io.BytesIO(), 4).dump(obj)
        except pickle.PicklingError as exc:
            return str(exc), getattr(exc, "__notes__", []), Told.asked
        return "written", Told.asked

    class Sub(_Stock):  # type: ignore[misc]  # stock's class is private, so it is Any
        pass

    for lies in 0, 1, 2, 9:
        monkeypatch.setattr(Told, "lies", lies)
        for obj in ([*(objects.Plain(a=1) for _ in range(beside)), cls()], {"a": cls()}, cls()):
            expected = outcome(_Stock, obj)
            with fastpickle.patched():
                found = [outcome(pickler, obj) for pickler in (fastpickle.Pickler, Sub)]
            if lies:
                assert found == [expected] * 2
            else:
                assert [x[0] for x in found] == [expected[0]] * 2
