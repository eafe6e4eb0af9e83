"""Objects that hold one another at random: in what they are made of, their states, items and attributes.

    seed --> a few kinds --> objects of them, each made of some before it --> attributes and items, also of later ones
         --> a dump of some of them, alone or among many instances --> stock's bytes == ours

Not for: what hooks do meanwhile (`oracle.suite_evil`), nor how deep that may go (`test_few`, `test_rows`).
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
import io
import os
import random
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import pytest
from oracle import objects
from oracle.allowed import PYPY
from oracle.compare import stock_dumps
from oracle.parts import APartOf

import fastpickle

try:
    import dill
except ImportError:
    dill = None
else:
    from fastpickle.backends import dill as backend

    dill.extend(False)

SEED = int(os.environ.get("SOAK_SEED", time.time_ns() % 2**32))
SECONDS = float(os.environ.get("SOAK_SECONDS", 60))


class Called:
    """Is called, or an item, and has attributes."""

    def __call__(self, *args: Any) -> None:
        pass


class Instance:
    """One of many."""


class Slotted:
    """Has slots."""

    __slots__ = ("a", "b")


class SlottedWithDict:
    """Has both."""

    __slots__ = ("__dict__", "a")


class MyDefaultdict(collections.defaultdict[Any, Any]):
    """Has attributes."""


class MyDeque(collections.deque[Any]):
    """Has attributes."""


class MyOrderedDict(collections.OrderedDict[Any, Any]):
    """Has attributes."""


class MyError(Exception):
    """Has attributes."""


Pair = collections.namedtuple("Pair", "a b")  # dill saves it as a call that makes it


class MyPair(Pair):
    """Has attributes."""


@dataclasses.dataclass
class Data:
    """A dataclass."""

    a: Any
    b: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """One with the state that dataclasses give."""

    a: Any
    b: Any = None


@dataclasses.dataclass(frozen=True, slots=True, init=False)
class FrozenTuple(tuple[Any, ...]):
    """The same of a tuple."""


class OwnState:
    """Gives its `__dict__`."""

    def __getstate__(self) -> Any:
        return self.__dict__.copy()


class CallsItself:
    """Is made of what it holds, which is in its state, too."""

    def __reduce__(self) -> Any:
        return CallsItself, (self.a,), self.__dict__


class CallsAnother:
    """Is saved as a call of another class of this module."""

    def __reduce__(self) -> Any:
        return Instance, ()


class CallsPair:
    """The same of one that dill saves in its own way."""

    def __reduce__(self) -> Any:
        return Pair, (1, self.a)


class CallsFunction:
    """Is saved as a call of a function of this module."""

    def __reduce__(self) -> Any:
        return function, (self.a,)


class Zone(datetime.tzinfo):
    """Has attributes."""


def function(*args: Any) -> None:
    """Be saved by name."""


def attributed(made: Any, held: Any) -> Any:
    """Give what can have it an attribute."""
    made.z = held
    return made


def callable_of(*objs: Any) -> Any:
    """Return the first that can be called."""
    return next((obj for obj in objs if callable(obj)), int)


#: What is made of two others.
KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"k": a, 5: b},
    "tuple": lambda a, b: (a, b),
    "long tuple": lambda a, b: (a, b, a, 1, "text"),
    "frozenset": lambda a, b: frozenset([attributed(Called(), a)]),
    "callable": lambda a, b: Called(),
    "instance": lambda a, b: Instance(),
    "slots": lambda a, b: Slotted(),
    "slots and a dict": lambda a, b: SlottedWithDict(),
    "own list": lambda a, b: objects.List([a]),
    "own dict": lambda a, b: objects.Dict(k=a),
    "own tuple": lambda a, b: objects.Tuple((a, b)),
    "own set": lambda a, b: objects.Set([attributed(Called(), a)]),
    "own frozenset": lambda a, b: objects.Frozenset([attributed(Called(), a)]),
    "own str": lambda a, b: objects.Str("x"),
    "defaultdict": lambda a, b: collections.defaultdict(callable_of(a, b), k=b),
    "own defaultdict": lambda a, b: MyDefaultdict(callable_of(a, b), k=b),
    "deque": lambda a, b: collections.deque([a], 5),
    "own deque": lambda a, b: MyDeque([a]),
    "OrderedDict": lambda a, b: collections.OrderedDict(k=a),
    "own OrderedDict": lambda a, b: MyOrderedDict(k=a),
    "Counter": lambda a, b: collections.Counter(k=a),
    "SimpleNamespace": lambda a, b: types.SimpleNamespace(k=a),
    "partial": lambda a, b: functools.partial(callable_of(a), b),
    "error": lambda a, b: KeyError(a, 1),
    "own error": lambda a, b: MyError(a, b),
    "slice": lambda a, b: slice(a, b),
    "method": lambda a, b: types.MethodType(function, (a, b)),
    "namedtuple": lambda a, b: Pair(a, b),
    "own namedtuple": lambda a, b: MyPair(a, b),
    "dataclass": lambda a, b: Data(a, b),
    "frozen dataclass": lambda a, b: Frozen(a, b),
    "frozen dataclass of a tuple": lambda a, b: tuple.__new__(FrozenTuple, (a, b)),
    "own state": lambda a, b: OwnState(),
    "calls itself": lambda a, b: attributed(CallsItself(), a),
    "calls another": lambda a, b: CallsAnother(),
    "calls a namedtuple": lambda a, b: CallsPair(),
    "calls a function": lambda a, b: CallsFunction(),
    "datetime": lambda a, b: datetime.datetime(2024, 1, 1, tzinfo=attributed(Zone(), a)),
    "enum": lambda a, b: objects.Colour.RED,
}  # fmt: skip
ATOMS = (None, True, 7, 1.5, "text", b"x", 2**40, "a" * 300, (), len, function, Instance, Pair, dict)


def graph(rng: random.Random) -> tuple[Any, int]:
    """Return what is to be dumped, and a protocol."""
    kinds = rng.sample([*KINDS], rng.choice([1, 2, 3, 3, 10, len(KINDS)]))
    if rng.random() < 0.7:
        kinds.append("callable")
    made: list[Any] = []

    def pick() -> Any:
        return rng.choice(made) if made and rng.random() < 0.75 else rng.choice(ATOMS)

    for _ in range(rng.choice([2, 3, 4, 6, 15])):
        made.append(KINDS[rng.choice(kinds)](pick(), pick()))
    for obj in made:
        for name in ("a", "b", "z"):
            if rng.random() < 0.6 or name == "a":
                try:
                    setattr(obj, name, pick())
                except (AttributeError, TypeError):  # it can have none
                    break
        if isinstance(obj, (list, collections.deque)):
            obj.append(pick())
        elif isinstance(obj, dict):
            obj["q"] = pick()
    some = [rng.choice(made) for _ in range(rng.choice([1, 3, 30]))]
    many = [Instance() for _ in range(rng.choice([0, 0, 23, 24, 60]))]
    return rng.choice([made[-1], made, some, {"k": made}, [*many, *some], [*many, made, many]]), rng.randrange(6)


def outcome(dumps: Callable[..., bytes], *args: Any) -> Any:
    """Return the bytes, or which error there was."""
    try:
        return dumps(*args)
    except Exception as exc:
        return type(exc), None if isinstance(exc, RecursionError) else str(exc)


def written(base: Any, obj: Any, protocol: int) -> bytes:
    """Return what a pickler of a class writes."""
    base(file := io.BytesIO(), protocol).dump(obj)
    return file.getvalue()


def check(seed: int) -> None:
    """Compare one graph's bytes."""
    obj, protocol = graph(random.Random(seed))
    expected = outcome(stock_dumps, obj, protocol)
    if PYPY and expected == (RecursionError, None):
        return  # where its stack ends is up to its JIT, and it crashes there now and then
    for _ in range(2):  # the second time something is remembered
        assert outcome(fastpickle.dumps, obj, protocol) == expected, seed
    assert outcome(written, fastpickle.Pickler, obj, protocol) == expected, seed
    with fastpickle.patched():
        assert outcome(stock_dumps, obj, protocol) == expected, seed
    if dill is not None:
        expected = outcome(dill.dumps, obj, protocol)
        assert outcome(backend.dumps, obj, protocol) == expected, seed
        assert outcome(written, backend.Pickler, obj, protocol) == expected, seed
        with fastpickle.patched():
            assert outcome(dill.dumps, obj, protocol) == expected, seed


@pytest.mark.parametrize("first", range(0, 500 if PYPY else 2000, 250))
def test_some(first: int, a_part_of: APartOf) -> None:
    """The same ones in each run."""
    for seed in a_part_of(range(first, first + 250)):
        check(seed)


@pytest.mark.soak
@pytest.mark.timeout(SECONDS * 3 + 60)
def test_soak_cyclic(capsys: pytest.CaptureFixture[str]) -> None:
    """Others, for SOAK_SECONDS."""
    end, seed = time.monotonic() + SECONDS, SEED
    while time.monotonic() < end:
        check(seed)
        seed += 1
    with capsys.disabled():
        print(f"\n{seed - SEED} graphs from seed {SEED} on: the same bytes on {sys.version.split()[0]}")
