"""Hashes that datasets keeps its caches by, under ``fastpickle.install()`` and after ``fastpickle.uninstall()``.

    object --> dumps, Hasher.hash     as the process is        --+
           --> dumps, Hasher.hash     after uninstall()        --+--> must be equal, the bytes too
           (where fastpickle is not loaded, as in the stock run: twice as the process is)

Each object is made once for the comparison of bytes, and anew for each digest: a digest that depends on where an object
lies in memory, or on what has been hashed before, would differ on stock.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import operator
import pathlib
import pickle
import random
import re
import sys
import tokenize
import typing
import uuid
from collections.abc import Callable
from types import SimpleNamespace

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets.fingerprint import Hasher
from datasets.utils._dill import dumps

from compat._accelerate import stock

THRESHOLD = 7


class Color(enum.Enum):
    """An enumeration."""

    RED = 1
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    """A dataclass with a default that is made anew."""

    x: int
    y: float = 0.5
    tags: list[str] = dataclasses.field(default_factory=list)

    def shifted(self, by: int) -> Point:
        """Give a method something to do."""
        return Point(self.x + by, self.y, self.tags)


@dataclasses.dataclass(frozen=True)
class Slotted:
    """A class with slots."""

    __slots__ = ("left", "right")
    left: object
    right: object

    def __getstate__(self) -> tuple[object, object]:
        """Give what is in the slots."""
        return self.left, self.right


class Callable_:
    """An instance to be called, as ``map`` is given them."""

    factor = 3

    def __init__(self, *parts: object) -> None:
        self.parts = parts

    def __call__(self, example: dict[str, typing.Any]) -> dict[str, typing.Any]:
        """Use an attribute and a global name."""
        return {**example, "long": len(self.parts) > THRESHOLD}

    @classmethod
    def made(cls) -> Callable_:
        """Be a class method."""
        return cls(cls.factor)

    @staticmethod
    def plain(value: int) -> int:
        """Be a static method."""
        return value + THRESHOLD


class Strs(list[str]):
    """A subclass of list."""


class Named(typing.NamedTuple):
    """A named tuple."""

    name: str
    value: object


def module_level(example: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """Use a global name and a regular expression."""
    return {"words": re.findall(r"\w+", example["text"])[:THRESHOLD]}


def by_value(function: Callable[..., object]) -> Callable[..., object]:
    """Make a function one that dill writes by value, with the globals that it uses."""
    function.__module__ = "__main__"
    return function


def closure() -> Callable[..., object]:
    """Give a function closing over nested data."""
    config = {"lr": 1e-3, "layers": [64, 64, {"act": "relu"}], "name": "net"}
    table = list(range(50))

    def inner(example: dict[str, typing.Any], scale: float = 2.0, *, flag: bool = True) -> object:
        return config["lr"] * scale if flag else table[example["i"]]

    return inner


def local_class() -> type:
    """Give a class that is nowhere to be found by name."""

    class Local(Point):
        limit = THRESHOLD
        table: typing.ClassVar[dict[str, object]] = {"b": [1, 2], "a": {3, 1, 2}}

        def method(self) -> int:
            return self.limit + len(self.table)

        @property
        def double(self) -> int:
            return self.limit * 2

    return Local


def tokens() -> list[tuple[object, ...]]:
    """Tokenize this file."""
    with open(__file__, encoding="utf-8") as file:
        return [tuple(token)[:4] for token in tokenize.generate_tokens(io.StringIO(file.read()).readline)]


def config() -> dict[str, typing.Any]:
    """Give a nested configuration, with parts that are used twice."""
    shared = {"type": "linear", "in": 10, "out": [1, 2, 3]}
    return {
        "model": {"layers": [shared, shared, {"type": "relu"}], "dropout": 0.1, "bias": None},
        "data": {"paths": [f"part-{n:05}.arrow" for n in range(40)], "split": ("train", "test"), "shuffle": True},
        "seed": 2**70,
        "text": "é" * 300 + "\U0001f600" + "\n\\x",
        "bytes": bytes(range(256)),
        "shared": shared,
    }


def shuffled(items: dict[typing.Any, object], seed: int) -> dict[typing.Any, object]:
    """Give a dict with the same items in another order."""
    keys = list(items)
    random.Random(seed).shuffle(keys)
    return {key: items[key] for key in keys}


def cyclic() -> list[object]:
    """Give a list and a dict that contain each other."""
    outer: list[object] = [1, "two"]
    outer.append({"outer": outer, "again": [outer, outer]})
    return outer


def shared_parts() -> list[object]:
    """Give one list in four places."""
    part = [1, "two", 3.0]
    return [part, part, {"p": part}, (part,)]


def numpy_views() -> list[object]:
    """Give views of one array."""
    array = np.ones((6, 4), order="F")
    return [array[::2], array[3:], array.T]


def anything(seed: int, depth: int = 4) -> object:
    """Give a nested object, the same for the same seed."""
    rng = random.Random(seed)

    def atom() -> object:
        plain = [None, True, False, rng.randint(-3, 300), rng.randint(-(2**40), 2**66), rng.random(), 1j, ()]
        texts = ["a", "b" * 300, f"k{rng.randint(0, 9)}", b"x" * rng.randint(0, 300), "é"]
        return rng.choice([*plain, *texts, Color.RED, int, len, Point])

    def make(depth: int) -> object:
        if depth == 0 or rng.random() < 0.2:
            return atom()
        parts = [make(depth - 1) for _ in range(rng.choice([0, 1, 2, 3, 5, 8]))]
        if parts and rng.random() < 0.3:
            parts.append(parts[0])
        names = [f"name{rng.randint(0, 99)}" for _ in parts]
        kinds: list[Callable[[], object]] = [
            lambda: parts,
            lambda: tuple(parts),
            lambda: dict(zip(names, parts, strict=True)),
            lambda: dict(enumerate(parts)),
            lambda: {(name, n) for n, name in enumerate(names)},
            lambda: frozenset(names),
            lambda: Point(len(parts), 1.5, names),
            lambda: collections.OrderedDict(zip(names, parts, strict=True)),
            lambda: collections.deque(parts, maxlen=20),
            lambda: functools.partial(module_level, *parts),
            lambda: lambda x: (x, parts, names),
            lambda: SimpleNamespace(parts=parts),
            lambda: np.arange(len(parts)),
            lambda: Named("n", parts),
        ]
        return rng.choice(kinds)()

    return make(depth)


UNORDERABLE = {1: "int", "1": "str", (1, "a"): [1], None: {}, 2.5: "x", b"b": 3, Color.RED: 4, frozenset("ab"): 5}

OBJECTS: dict[str, Callable[[], object]] = {
    "str": lambda: "text",
    "int": lambda: 2**100,
    "none": lambda: None,
    "long bytes": lambda: b"a" * 100_000,
    "long str": lambda: "aé" * 70_000,
    "bytearray": lambda: bytearray(b"abc" * 100),
    "function of a module": lambda: module_level,
    "function of this module by value": lambda: by_value(lambda x: (x, THRESHOLD, re)),
    "lambda": lambda: lambda x: x + 1,
    "lambda with defaults": lambda: lambda x, y=[1, {"a": 2}], *z, k="v", **rest: (x, y, z, k, rest),
    "closure": closure,
    "closure over tokens": lambda: functools.partial(operator.contains, tokens()),
    "generator function": lambda: by_value(lambda: (yield from range(THRESHOLD))),
    "builtins": lambda: [len, dict.get, str.upper, "x".upper, operator.itemgetter(1, "a"), operator.attrgetter("a.b")],
    "partial": lambda: functools.partial(closure(), scale=3.0, flag=False),
    "partial of a partial": lambda: functools.partial(functools.partial(module_level, 1), two=[2]),
    "bound method": lambda: Point(1, 2.0, ["t"]).shifted,
    "class method": lambda: Callable_.made,
    "static method": lambda: Callable_.plain,
    "callable instance": lambda: Callable_(1, "two", [3.0], lambda x: x),
    "cached function": lambda: functools.lru_cache(maxsize=3)(module_level),
    "regex": lambda: [re.compile(r"a+\s", re.IGNORECASE), re.compile(rb"\w")],
    "code": lambda: module_level.__code__,
    "code of a closure": lambda: closure().__code__,
    "class of a module": lambda: Point,
    "local class": local_class,
    "instance of a local class": lambda: local_class()(1),
    "made class": lambda: type("Made", (Callable_,), {"factor": 5, "__call__": lambda self, x: x * self.factor}),
    "types": lambda: [int, type, type(None), type(...), dict, Callable_, typing.Any, list[int], typing.Optional["str"]],
    "enum": lambda: [Color.RED, Color.BLUE, Color.RED, re.IGNORECASE],
    "dataclass": lambda: [Point(n, n / 3, ["a", "b"]) for n in range(30)],
    "slots": lambda: [Slotted(1, "r"), Slotted((), None)],
    "named tuple": lambda: [Named("a", [1]), Named("b", {"c": 2})],
    "subclasses of builtins": lambda: [
        Strs("abc"),
        collections.OrderedDict(b=1, a=2),
        collections.Counter("hello"),
        collections.defaultdict(list, {"k": [1]}),
    ],
    "deque and namespace": lambda: [collections.deque([1, 2], maxlen=5), SimpleNamespace(b=1, a=[2])],
    "namespace of functions": lambda: {"f": lambda x: x, "g": closure(), "h": module_level},
    "set of strs": lambda: {"b", "a", "c"},
    "set of ints": lambda: set(range(300, 0, -7)),
    "set of unorderable": lambda: {1, "a", None, (1, 2), frozenset({1})},
    "frozenset of one": lambda: frozenset({"one"}),
    "sets in a dict": lambda: {"x": {3, 1, 2}, "y": {"q", "p"}, "z": set()},
    "config": config,
    "tokens": tokens,
    "dict of 999": lambda: {f"k{n}": n for n in range(999)},
    "dict of 1000": lambda: {f"k{n}": n for n in range(1000)},
    "dict of 1001": lambda: {f"k{n}": [n] for n in range(1001)},
    "dict of unorderable": lambda: UNORDERABLE,
    "dict of one": lambda: {"a": {"b": {"c": {}}}},
    "list of 1001": lambda: list(range(1001)),
    "lists of equal strs": lambda: [("a" + str(n % 3)) for n in range(1200)],
    "equal strs that are not the same": lambda: ["".join(["x", "yz"]) for _ in range(5)] + ["xyz"],
    "shared parts": shared_parts,
    "cycle": cyclic,
    "deep": lambda: functools.reduce(lambda inner, _: [inner], range(60), "end"),
    "numpy": lambda: [np.arange(1000).reshape(10, 100), np.array(["a", "bc"]), np.float32(1.5), np.dtype("int8")],
    "numpy of objects": lambda: np.array([1, "a", None, [2]], dtype=object),
    "numpy views": numpy_views,
    "numpy generator": lambda: np.random.default_rng(7),
    "pandas": lambda: pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]}),
    "arrow": lambda: [pa.array([1, None, 3]), pa.schema([("a", pa.int32())]), pa.table({"t": ["a", "b"]})],
    "dates and numbers": lambda: [
        datetime.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc),
        datetime.timedelta(days=3),
        decimal.Decimal("1.10"),
        fractions.Fraction(1, 3),
        complex(1, 2),
        range(3, 9, 2),
        slice(1, None),
        ...,
    ],
    "paths": lambda: [pathlib.PurePosixPath("a/b.txt"), uuid.UUID(int=5)],
    "exception": lambda: ValueError("no", {"code": 3}),
    "features": lambda: datasets.Features({"a": datasets.Value("int32"), "b": datasets.ClassLabel(names=["n", "p"])}),
    "dataset": lambda: datasets.Dataset.from_dict({"a": [1, 2, 3], "b": ["x", "y", "z"]}),
    "arguments of map": lambda: {"function": closure(), "batched": True, "fn_kwargs": {"k": [1]}, "features": None},
    **{f"anything {seed}": functools.partial(anything, seed) for seed in range(60)},
}


@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS.keys())
def test_bytes_and_digest_are_stock(make: Callable[[], object]) -> None:
    """The bytes of one object and the digests of one made anew are those of stock."""
    value = make()
    dumps(value)  # what stock itself changes at the first time: caches, registered types
    here = dumps(value)
    digest = Hasher.hash(make())
    with stock():
        there = dumps(value)
        digest_there = Hasher.hash(make())
    assert here == there
    assert digest == digest_there


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "items",
    [config(), UNORDERABLE, {f"k{n}": {"v": n} for n in range(1000)}, {n: str(n) for n in range(200)}],
    ids=["config", "unorderable", "1000 strs", "200 ints"],
)
def test_order_of_a_dict_does_not_matter(items: dict[typing.Any, object], seed: int) -> None:
    """A dict in any order has the digest that stock gives for it in the first one."""
    digest = Hasher.hash(shuffled(items, seed))
    with stock():
        assert digest == Hasher.hash(items)


@pytest.mark.parametrize("values", [range(1000), "zyxwvut", [1, "a", None, (2,)], [b"b", 2.5, Color.RED]], ids=str)
def test_order_of_a_set_does_not_matter(values: typing.Any) -> None:
    """A set filled in any order has the digest that stock gives for it."""
    backwards = list(values)[::-1]
    digest = Hasher.hash(set(backwards))
    with stock():
        assert digest == Hasher.hash(set(values))


def test_hasher_that_is_updated() -> None:
    """A Hasher that is given several objects ends with stock's digest."""

    def digest() -> str:
        hasher = Hasher()
        for value in ("text", config(), closure(), tokens()[:100]):
            hasher.update(value)
        return hasher.hexdigest()

    here = digest()
    with stock():
        assert here == digest()


@pytest.mark.parametrize("batched", [False, True])
def test_fingerprints_of_transforms(batched: bool) -> None:
    """The fingerprints after map, filter, sort and shuffle are stock's."""

    def fingerprints() -> list[str]:
        dataset = datasets.Dataset.from_dict({"a": list(range(20)), "text": [f"some text {n}" for n in range(20)]})
        limit = {"low": 3, "high": [15, 16]}
        mapped = dataset.map(lambda row: {"b": row["a"]}, batched=batched, fn_kwargs={})
        kept = mapped.filter(
            lambda a: a if batched else limit["low"] < a < limit["high"][0], batched=batched, input_columns="a"
        )
        return [step._fingerprint for step in (mapped, kept, kept.sort("b"), kept.shuffle(seed=3), kept.select([0, 1]))]

    here = fingerprints()
    with stock():
        assert here == fingerprints()


@pytest.mark.parametrize(
    "make",
    [
        lambda: (n for n in ()),
        lambda: [1, {"a": sys._getframe()}],
        lambda: {"x": [open.__self__, iter({})], "y": pickle},
    ],
    ids=["generator", "frame", "module and iterator"],
)
def test_what_cannot_be_hashed(make: Callable[[], object]) -> None:
    """An object that cannot be pickled raises what it raises on stock; one that can has stock's digest."""

    def outcome() -> object:
        try:
            return Hasher.hash(make())
        except Exception as error:
            return type(error), str(error)

    here = outcome()
    with stock():
        assert here == outcome()
