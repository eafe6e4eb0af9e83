"""fastpickle.Pickler, and a subclass of it, against the running Python's pickle._Pickler."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from oracle import strategies
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
