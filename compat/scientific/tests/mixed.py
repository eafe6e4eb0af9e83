"""Containers and instances that mix numpy, pandas and plain data: name -> a function that makes the object anew.

OBJECTS      picklable by everybody
BY_VALUE     functions and classes that only dill can pickle
UNPICKLABLE  what raises, somewhere in the middle
random_data  nested containers of plain data and of what the other tables have
"""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import random
import threading
import types
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import arrays
import frames
import numpy as np
import pandas as pd


@dataclasses.dataclass
class Point:
    """An instance with a default state."""

    x: Any
    y: Any = None


@dataclasses.dataclass
class Slotted:
    """An instance with slots."""

    __slots__ = ("left", "right")
    left: Any
    right: Any


class Pair(NamedTuple):
    """A tuple of a class of its own."""

    first: Any
    second: Any


class Color(enum.Enum):
    """Enumerated arrays would not be hashable; the values are plain."""

    RED = 1
    BLUE = "blue"


class Model:
    """A model of the usual kind, with parameters, fitted arrays and something that is not to be pickled."""

    def __init__(self) -> None:
        self.parameters = {"depth": 3, "rate": 0.1, "names": ["a", "b"]}
        self.weights = [np.arange(4.0), np.ones((2, 2), "f4")]
        self.history = pd.DataFrame({"loss": [0.5, 0.25], "step": [1, 2]})
        self.owner = self
        self.lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock."""
        return {key: value for key, value in self.__dict__.items() if key != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make a new lock."""
        self.__dict__.update(state)
        self.lock = threading.Lock()


class Registered:
    """An instance that is reduced by a function in copyreg's table."""

    def __init__(self, array: Any) -> None:
        self.array = array


class Table(dict):  # type: ignore[type-arg]
    """A dict of a class of its own, with an attribute."""


def _reduce_registered(obj: Registered) -> tuple[Any, ...]:
    return Registered, (obj.array,)


copyreg.pickle(Registered, _reduce_registered)


def cycle() -> list[Any]:
    """Make a list that contains itself, below dicts, instances and frames."""
    array = np.arange(3)
    top: list[Any] = [array, {"array": array}]
    point = Point(top, np.float64(2.0))
    top += [point, pd.Series([point, top, array], dtype=object), (array, point)]
    return top


def shared() -> dict[str, Any]:
    """Make a dict that refers to each of its parts several times."""
    array, frame, text = np.arange(5), pd.DataFrame({"a": [1, 2]}), "text" * 100
    part = {"array": array, "frame": frame, text: [text, array]}
    return {"one": part, "two": [part, array, frame], "three": (text, part, Point(array, frame)), text: frame}


def table() -> Table:
    """Make a dict of a subclass."""
    result = Table(a=np.arange(2), b=[1, 2])
    result.note = {"why": np.dtype("f4")}  # type: ignore[attr-defined]
    return result


def frames_of_64k() -> list[Any]:
    """Make data of several frames, with arrays at every place in them."""
    return [
        [f"key {number}", number, number / 7, np.arange(1 + number % 50), ("x" * (number % 300),)]
        for number in range(900)
    ]


def long_batches(size: int) -> list[Any]:
    """Make containers about as long as a batch, of plain data and of numpy scalars."""
    numbers = [np.int32(number) for number in range(size)]
    return [numbers, dict(zip(range(size), numbers, strict=True)), list(range(size)), set(range(size)), set(numbers)]


def ordinary() -> list[Any]:
    """Make objects of the stdlib with arrays in them."""
    return [
        collections.OrderedDict(a=np.arange(2)),
        collections.defaultdict(list, {"a": [np.float32(1)]}),
        collections.deque([np.arange(2), "x"], 5),
        collections.Counter({"a": np.int64(3)}),
        types.SimpleNamespace(a=np.arange(2)),
        functools.partial(np.add, np.arange(2)),
        frozenset([np.float64(1.5), "x"]),
        slice(np.int64(1), 5),
        range(5),
        decimal.Decimal("1.5"),
        fractions.Fraction(1, 3),
        datetime.datetime(2025, 1, 31, tzinfo=datetime.timezone.utc),
        uuid.UUID(int=5),
        bytearray(b"bytes" * 30),
        1 + 2j,
        2**200,
    ]


def plain() -> dict[str, Any]:
    """Make plain data that a shortcut takes whole, between arrays that it does not."""
    data = {f"k{number}": [number, -number, 1.5, None, True, "x", b"y", (1, (2,)), {"a": {}}] for number in range(60)}
    return {"before": np.arange(2), "data": data, "again": data, "after": pd.Timestamp("2025-01-31"), "last": [data]}


OBJECTS: dict[str, Callable[[], Any]] = {
    "cycle": cycle,
    "shared": shared,
    "dict-subclass": table,
    "frames-of-64k": frames_of_64k,
    "batch-999": lambda: long_batches(999),
    "batch-1000": lambda: long_batches(1000),
    "batch-1001": lambda: long_batches(1001),
    "batch-2001": lambda: long_batches(2001),
    "ordinary": ordinary,
    "plain": plain,
    "model": Model,
    "models": lambda: [Model() for _ in range(20)],
    "points": lambda: [Point(np.float64(number), number) for number in range(300)],
    "points-nested": lambda: functools.reduce(lambda inner, n: Point(inner, np.arange(n)), range(20), Point(0)),
    "slotted": lambda: [Slotted(np.arange(2), Slotted("x", pd.NA)), Slotted(1, 2)],
    "named-tuples": lambda: [Pair(np.arange(2), Color.RED), Pair(Pair(1, 2), pd.Timestamp(0))],
    "enums": lambda: {Color.RED: np.arange(2), Color.BLUE: [Color.RED, Color.BLUE]},
    "registered": lambda: [Registered(np.arange(3)), Registered(pd.Series([1])), Point(Registered(1))],
    "keys": lambda: {(1, "a"): np.arange(2), pd.Timestamp(0): 1, np.float64(1.5): 2, None: 3, frozenset([1]): 4},
}

_SOURCE = """
def scale(values, factor=np.float32(2.0)):
    return values * factor + OFFSET

def outer(frame):
    def inner(column):
        return frame[column].sum() + scale(OFFSET).sum()
    return inner

class Local:
    limits = np.array([0.0, 1.0])
    def __init__(self, values):
        self.values = values
    def clip(self):
        return np.clip(self.values, *self.limits)

class LocalArray(np.ndarray):
    unit = "m"
"""


def by_value() -> dict[str, Any]:
    """Run a source as if it stood in ``__main__``, where dill pickles functions and classes by value."""
    scope: dict[str, Any] = {"__name__": "__main__", "np": np, "OFFSET": np.arange(3)}
    exec(_SOURCE, scope)
    return scope


def adder(array: np.ndarray) -> Callable[[Any], Any]:
    """Make a lambda that refers to an array."""
    return lambda x: x + array


BY_VALUE: dict[str, Callable[[], Any]] = {
    "function": lambda: by_value()["scale"],
    "closure": lambda: by_value()["outer"](pd.DataFrame({"a": [1, 2]})),
    "class": lambda: by_value()["Local"],
    "instance": lambda: by_value()["Local"](np.arange(4.0)),
    "instances": lambda: [*map(by_value()["Local"], np.arange(30.0))],
    "array-class": lambda: np.arange(3.0).view(by_value()["LocalArray"]),
    "lambda": lambda: adder(np.arange(3)),
    "frame-of-functions": lambda: pd.DataFrame({"f": [by_value()["scale"], np.sin, len]}),
    "partial": lambda: functools.partial(by_value()["scale"], np.arange(3)),
    "method": lambda: by_value()["Local"](np.arange(4.0)).clip,
}

UNPICKLABLE: dict[str, Callable[[], Any]] = {
    "generator": lambda: (number for number in range(3)),
    "iterator-of-array": lambda: np.nditer(np.arange(3)),
    "python-ufunc": lambda: np.frompyfunc(lambda x: x, 1, 1),
    "memoryview": lambda: memoryview(np.arange(3)),
    "array-of-generators": lambda: np.array([1, (number for number in range(3))], object),
    "frame-of-generators": lambda: pd.DataFrame({"a": [1, "x", (number for number in range(3))]}, dtype=object),
    "late": lambda: [np.arange(3), {"a": [1, 2, {"b": pd.Series([1, (n for n in range(3))], dtype=object)}]}, "never"],
    "lock": lambda: {"model": Point([np.arange(2), (n for n in range(2))])},
}


_LARGE = {"frame-long", "frame-thousand-columns", "frames-of-64k", "batch-2001", "array-large", "array-objects-frames"}
"""What would make most of random data."""


def random_data(seed: int, tables: list[dict[str, Callable[[], Any]]]) -> Any:
    """Make nested containers of plain data, scientific objects and references to what was there before.

    Args:
        seed: the same seed makes equal data.
        tables: where the scientific objects come from.

    Returns:
        A list.
    """
    chance = random.Random(seed)
    makers = [maker for table in tables for name, maker in table.items() if name not in _LARGE]
    seen: list[Any] = []

    def atom() -> Any:
        return chance.choice(
            [None, True, chance.randrange(1 << chance.randrange(1, 70)), chance.random(), "s" * chance.randrange(300)]
        )

    def make(depth: int) -> Any:
        kind = chance.randrange(12)
        if kind < 3 or depth == 0:
            return atom()
        if kind < 5:
            result = chance.choice(makers)()
        elif kind == 5 and seen:
            return chance.choice(seen)
        elif kind < 8:
            result = [make(depth - 1) for _ in range(chance.randrange(12))]
        elif kind < 10:
            result = {f"key {number}": make(depth - 1) for number in range(chance.randrange(12))}
        elif kind == 10:
            result = tuple(make(depth - 1) for _ in range(chance.randrange(5)))
        else:
            result = Point(make(depth - 1), make(depth - 1))
        seen.append(result)
        return result

    return [make(4) for _ in range(6)]


TABLES: dict[str, Callable[[], Any]] = {
    **{f"numpy:{name}": maker for name, maker in arrays.OBJECTS.items()},
    **{f"pandas:{name}": maker for name, maker in frames.OBJECTS.items()},
    **{f"mixed:{name}": maker for name, maker in OBJECTS.items()},
}
"""All that anybody can pickle."""
