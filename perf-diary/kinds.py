"""Kinds of classes that people write, 200 instances of each: does fastpickle make any of them slower?

    kind --> stock's pickler and fastpickle's, dill's and its backend's, in turns: the same bytes? --> the ratios

Many have a function that C would have to call, or only look as if they had: ``__eq__``, ``__getattr__``, a property, a
``__getstate__`` that leaves a lock out, a subclass of ``int``, an exception.  Who gives up at one of these gives up all
of a dump.

Not for: plain data (``grafting.py``), nor objects of libraries (``library_objects.py``).
"""

from __future__ import annotations

import abc
import argparse
import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import io
import math
import operator
import pathlib
import platform
import re
import statistics
import sys
import threading
import time
import types
import typing
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import fastpickle
from fastpickle._stdlib import StockPickler

MANY = 200
#: So many seconds a sample of stock's takes.
SAMPLE = 0.004
T = TypeVar("T")


class Plain:
    """Has a number and a text."""

    def __init__(self, i: int) -> None:
        self.a = i
        self.b = str(i)


class Comparable(Plain):
    """Can be compared, and be a key."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(self.a)


class WithProperties(Plain):
    """Has functions for attributes."""

    @property
    def c(self) -> int:
        return self.a

    @functools.cached_property
    def d(self) -> int:
        return self.a + 1


class Slotted:
    """Has slots."""

    __slots__ = ("a", "b")

    def __init__(self, i: int) -> None:
        self.a = i
        self.b = str(i)


class Abstract(abc.ABC):
    """Has the metaclass of abstract classes."""

    def __init__(self, i: int) -> None:
        self.a = i

    @abc.abstractmethod
    def act(self) -> None:
        """Act."""


class Concrete(Abstract):
    """Is one."""

    def act(self) -> None:
        pass


class Says(Protocol):
    """Has the metaclass of protocols."""

    def say(self) -> None:
        """Say it."""


class Said(Plain, Says):
    """Is one."""

    def say(self) -> None:
        pass


class OfGeneric(Plain, Generic[T]):
    """Is generic."""


class Meta(type):
    """A metaclass of somebody's."""


class WithMeta(Plain, metaclass=Meta):
    """Has it."""


class Proxy(Plain):
    """Has a function for attributes that it has not."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Guarded(Plain):
    """Has one for attributes that are set."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class Number(int):
    """Is an int."""


class Fraction(float):
    """Is a float."""


class Text(str):
    """Is a text."""

    __slots__ = ()


class Row(tuple[Any, ...]):
    """Is a tuple."""


class Items(list[Any]):
    """Is a list."""


class Table(dict[str, Any]):
    """Is a dict."""


class Unique(set[Any]):
    """Is a set."""


class Defaults(collections.defaultdict[str, Any]):
    """Is a defaultdict."""


class Failure(Exception):
    """Is an exception."""


class Named(NamedTuple):
    """Is a namedtuple."""

    a: int
    b: str


@dataclasses.dataclass
class Data:
    """Is a dataclass."""

    a: int
    b: str
    c: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    """Is one that is frozen."""

    a: int
    b: str


class Color(enum.Enum):
    """Is an enum."""

    RED = 1
    BLUE = "blue"


class Locked(Plain):
    """Leaves a lock out, as the documentation of pickle shows it."""

    def __init__(self, i: int) -> None:
        super().__init__(i)
        self.lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.lock = threading.Lock()


class LockedByLoop(Locked):
    """Leaves it out in another way."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}


class LockedBySuper(Locked):
    """Goes on from what its base gives."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "version": 2}


class Made:
    """Is made anew of its arguments."""

    def __new__(cls, a: int, b: str) -> Any:
        self = object.__new__(cls)
        self.a, self.b = a, b
        return self

    a: int
    b: str

    def __getnewargs__(self) -> tuple[int, str]:
        return self.a, self.b


class Reduced(Plain):
    """Is called with what it was."""

    def __reduce__(self) -> Any:
        return type(self), (self.a,)


class ReducedWithState(Plain):
    """Gets its state, too."""

    def __reduce__(self) -> Any:
        return self.__class__, (self.a,), {"b": self.b}


class ReducedByCall(Plain):
    """Calls a function for that."""

    def __reduce__(self) -> Any:
        return Plain, (abs(self.a),)


class Nested(Plain):
    """Has a state of lists and dicts, of its own."""

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__, tags=[self.a, "b"], more={"x": self.a})


class Holder:
    """Has what the standard library has."""

    def __init__(self, i: int) -> None:
        self.when = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
        self.id = uuid.UUID(int=i)
        self.path = pathlib.Path(f"/a/{i}")
        self.price = decimal.Decimal(i)
        self.color = Color.RED
        self.tags = {"a", "b"}


class Node:
    """Is in a tree."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.parent: Node | None = None
        self.children = [Node(depth - 1) for _ in range(3)] if depth else []
        for child in self.children:
            child.parent = self


def function(*args: Any) -> None:
    """Do nothing."""


#: What makes the i-th of many, by what it is called in the table.
KINDS: dict[str, Callable[[int], Any]] = {
    "plain": Plain,
    "`__eq__`, `__hash__`": Comparable,
    "properties": WithProperties,
    "slots": Slotted,
    "abstract": Concrete,
    "protocol": Said,
    "generic": OfGeneric,
    "metaclass": WithMeta,
    "`__getattr__`": Proxy,
    "`__setattr__`": Guarded,
    "int": Number,
    "float": Fraction,
    "str": Text,
    "tuple": lambda i: Row((i, "b")),
    "list": lambda i: Items([i, "b"]),
    "dict": lambda i: Table(a=i),
    "set": lambda i: Unique([i]),
    "defaultdict": lambda i: Defaults(list, a=[i]),
    "exception": Failure,
    "builtin exception": lambda i: KeyError(i, "b"),
    "error of the system": lambda i: FileNotFoundError(2, "No such file", f"name {i}"),
    "namedtuple": lambda i: Named(i, "b"),
    "dataclass": lambda i: Data(i, "b"),
    "frozen dataclass": lambda i: Frozen(i, "b"),
    "enum": lambda i: {"color": Color.RED, "i": i},
    "lock left out": Locked,
    "lock left out by a loop": LockedByLoop,
    "super().__getstate__()": LockedBySuper,
    "`__getnewargs__`": lambda i: Made(i, "b"),
    "`__reduce__`": Reduced,
    "`__reduce__` with a state": ReducedWithState,
    "`__reduce__` that calls": ReducedByCall,
    "`__getstate__` with a list": Nested,
    "row with one of these": lambda i: {"id": i, "value": ReducedWithState(i), "tags": ["a", "b"], "more": {"x": 1}},
    "of the standard library": Holder,
    "partial": lambda i: functools.partial(function, i, key="b"),
    "bound method": lambda i: Concrete(i).act,
    "SimpleNamespace": lambda i: types.SimpleNamespace(a=i, b="b"),
    "argparse.Namespace": lambda i: argparse.Namespace(a=i, b="b"),
    "UserDict": lambda i: collections.UserDict(a=i),
    "UserString": lambda i: collections.UserString("b"),
    "slice": lambda i: slice(i, None),
    "itemgetter": operator.itemgetter,
    "pattern": lambda i: re.compile(f"a{i}"),
    "array": lambda i: array.array("i", [i]),
    "Fraction": lambda i: fractions.Fraction(i, 7),
    "Optional": lambda i: typing.Optional[int],  # noqa: UP045  # that of the module
}
#: What is dumped alone.
ALONE: dict[str, Callable[[], Any]] = {
    "one, plain": lambda: Plain(1),
    "one, lock left out": lambda: Locked(1),
    "one, of the standard library": lambda: Holder(1),
    "three, `__reduce__` that calls": lambda: [ReducedByCall(i) for i in range(3)],
    "a tree": lambda: Node(4),
}


def _by(cls: Any) -> Callable[[Any], bytes]:
    def dumps(obj: Any) -> bytes:
        file = io.BytesIO()
        cls(file, 4).dump(obj)
        return file.getvalue()

    return dumps


def pairs() -> dict[str, tuple[Callable[[Any], bytes], Callable[[Any], bytes]]]:
    """Return what is compared with what: stock's first, by the name of stock's."""
    found = {"`pickle._Pickler`": (_by(StockPickler), _by(fastpickle.Pickler))}
    try:
        dill = importlib.import_module("dill")
    except ImportError:
        return found
    dill.extend(False)  # stock's table is stock's
    return found | {"dill": (dill.dumps, importlib.import_module("fastpickle.backends.dill").dumps)}


def ratio(stock: Callable[[Any], bytes], ours: Callable[[Any], bytes], obj: Any, rounds: int) -> tuple[float, float]:
    """Return how many microseconds stock takes, and in which part of that ours does; medians of alternating samples.

    Raises:
        ValueError: the bytes are others.
    """
    for _ in range(3):
        if ours(obj) != stock(obj):
            raise ValueError("other bytes than stock's")
    began = time.perf_counter()
    stock(obj)
    loops = max(1, int(SAMPLE / (time.perf_counter() - began)))
    times: list[float] = []
    ratios: list[float] = []
    for _ in range(rounds):
        seconds = []
        for dumps in (stock, ours):
            began = time.perf_counter()
            for _ in range(loops):
                dumps(obj)
            seconds.append(time.perf_counter() - began)
        times.append(seconds[0] / loops * 1e6)
        ratios.append(seconds[1] / seconds[0])
    return statistics.median(times), statistics.median(ratios)


def serve(names: Sequence[str], rounds: int) -> int:
    """Measure, and print the table; gives the exit status."""
    compared = pairs()
    print("|", " | ".join(("200 of, or", *(f"{name}, us | ours / that" for name in compared))), "|")
    print("|", " | ".join(("---", *["--:"] * (2 * len(compared)))), "|")
    ratios: dict[str, list[float]] = {name: [] for name in compared}
    for name in names:
        obj = ALONE[name]() if name in ALONE else [KINDS[name](i) for i in range(MANY)]
        cells = [name]
        for way, (stock, ours) in compared.items():
            try:
                micros, part = ratio(stock, ours, obj, rounds)
            except ValueError as exc:
                print(f"{name}: {exc} ({way})", file=sys.stderr)
                return 1
            ratios[way].append(part)
            cells += [f"{micros:,.1f}", f"{part:.2f}x"]
        print("|", " | ".join(cells), "|", flush=True)
    means = [f"{math.exp(statistics.fmean(map(math.log, found))):.2f}x" for found in ratios.values()]
    print("|", " | ".join(["**geometric mean**", *(cell for mean in means for cell in ("", mean))]), "|")
    slower = [f"{sum(x > 1.05 for x in found)} of {len(found)}" for found in ratios.values()]
    print("|", " | ".join(["slower by more than 5 %", *(cell for count in slower for cell in ("", count))]), "|")
    print(f"\n{platform.python_implementation()} {platform.python_version()}.")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments, without the name of the program.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        epilog="how to read it: 0.20x is a fifth of the time of what it is compared with. It takes a minute.",
    )
    names = [*KINDS, *ALONE]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help="measure these")
    parser.add_argument("--rounds", type=int, default=15, help="alternating samples (default: %(default)s)")
    arguments = parser.parse_args(argv)
    if arguments.rounds < 1:
        parser.error("--rounds is to be 1 or more")
    # By its name, so that dill finds the classes that are made here.
    status: int = importlib.import_module(Path(__file__).stem).serve(arguments.only or names, arguments.rounds)
    return status


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main())
