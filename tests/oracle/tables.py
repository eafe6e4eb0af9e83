"""Random tables: containers of many items of one shape, with what breaks the shape; for what is written in runs.

    table(seed), records(seed) --> a function that makes it, the same objects at each call but for their ids

Not for: graphs of any shape (`strategies`), nor what aims at grafts (`grafts`).
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import random
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["ATOMS", "INSTANCES", "WithState", "records", "table"]

Maker = Callable[[int], Any]


class _Text(str):
    __slots__ = ()


class _Number(int):
    pass


#: Makers of the values of a column, by name; each is given the row.
ATOMS: dict[str, Callable[[random.Random], Maker]] = {
    "one byte": lambda rng: lambda i: rng.randrange(256),
    "two bytes": lambda rng: lambda i: rng.randrange(256, 65_536),
    "four bytes": lambda rng: lambda i: rng.choice((-1, 1)) * rng.randrange(65_536, 1 << 31),
    "negative": lambda rng: lambda i: -1 - rng.randrange(1 << 31),
    "up to two bytes": lambda rng: lambda i: rng.randrange(65_536),
    "edges": lambda rng: (
        lambda i: rng.choice(
            (0, 255, 256, 65_535, 65_536, (1 << 31) - 1, 1 << 31, -1, -(1 << 31), -(1 << 31) - 1, 1 << 40, -(1 << 39))
        )
    ),
    "long": lambda rng: (
        lambda i: (
            rng.choice((-1, 1)) * (1 << rng.choice((31, 39, 40, 63, 64, 71, 2032, 2039, 2040))) + rng.randrange(-1, 2)
        )
    ),
    "floats": lambda rng: lambda i: rng.choice((rng.random(), -0.0, float("inf"), float("nan"), 1e300)),
    "numbers": lambda rng: lambda i: rng.choice((1, 2.5, None, True, 300, 70_000, False)),
    "bools": lambda rng: lambda i: rng.random() < 0.5,
    "none": lambda rng: lambda i: None,
    "texts": lambda rng: lambda i: f"text {i}",
    "not ascii": lambda rng: lambda i: f"t\xe9xt {i}\u2014" if rng.random() < 0.5 else f"\U0001f600{i}",
    "surrogates": lambda rng: lambda i: f"\ud800{i}" if rng.random() < 0.2 else f"{i}",
    "lengths": lambda rng: lambda i: "".join(["x"] * rng.choice((0, 1, 2, 254, 255, 256, 300))),
    "not ascii lengths": lambda rng: lambda i: "".join(["\xe9"] * rng.choice((1, 127, 128, 200))),
    "kinds": lambda rng: _choice(rng, ["kind one", "other", "third", "".join(["ki", "nd one"])]),
    "some texts": lambda rng: lambda i: f"text {i}" if rng.random() < 0.7 else None,
    "atoms": lambda rng: (
        lambda i: rng.choice((None, True, i, -i * 100_003, i / 7, f"v{i}", b"raw", b"raw %d" % i, "raw"))
    ),
    "bytes": lambda rng: lambda i: b"%d" % i,
    "long bytes": lambda rng: lambda i: bytes([i % 256]) * rng.choice((1, 255, 256, 700)),
    "empty tuple": lambda rng: lambda i: (),
}


class Plain:
    """Has a `__dict__`, and defines nothing."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@dataclasses.dataclass
class Record:
    name: str
    value: Any
    valid: bool = True


@dataclasses.dataclass(frozen=True)
class Frozen:
    __slots__ = ("name", "value")
    name: str
    value: Any


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a = a
        if b is not None:
            self.b = b


class Both(Slotted):
    """Has slots and a `__dict__`."""

    def __init__(self, a: Any, b: Any, c: Any) -> None:
        super().__init__(a, b)
        if c is not None:
            self.c = c


class Point(NamedTuple):
    x: Any
    y: Any


class Colour(enum.Enum):
    RED = 1
    GREEN = "green"


class ListOfOnes(list[int]):
    pass


class WithState:
    """Its state is what somebody's function says; how often it is asked is counted."""

    asked = 0

    def __init__(self, a: Any) -> None:
        self.a = a

    def __getstate__(self) -> Any:
        WithState.asked += 1
        return {"a": self.a, "asked": WithState.asked}


class WithReduce:
    def __init__(self, a: Any) -> None:
        self.a = a

    def __reduce_ex__(self, proto: Any) -> Any:
        WithState.asked += 1
        return WithReduce, (WithState.asked,)


_ZONE = datetime.timezone(datetime.timedelta(hours=2), "two")
_START = datetime.datetime(2026, 1, 1)

#: Makers of instances, from the value of a column and the row.
INSTANCES: dict[str, Callable[[Any, int], Any]] = {
    "plain": lambda x, i: Plain(a=x, b=i),
    "empty": lambda x, i: Plain(),
    "some empty": lambda x, i: Plain(a=x) if i % 5 else Plain(),
    "other attributes": lambda x, i: Plain(a=x) if i % 9 else Plain(b=x),
    "a reduce of its own": lambda x, i: Plain(a=x) if i % 9 != 5 else Plain(__reduce_ex__=x, a=x),
    "record": lambda x, i: Record(f"{i}", x),
    "frozen": lambda x, i: Frozen(f"{i}", x),
    "slotted": lambda x, i: Slotted(i, x),
    "both": lambda x, i: Both(i, x, i if i % 20 else None),
    "point": lambda x, i: Point(x, i),
    "colour": lambda x, i: Colour.RED if i % 3 else Colour.GREEN,
    "list": lambda x, i: ListOfOnes([1] * (i % 2)),
    "state": lambda x, i: WithState(x),
    "reduce": lambda x, i: WithReduce(x),
    "datetime": lambda x, i: _START + datetime.timedelta(minutes=i),
    "zone": lambda x, i: (_START + datetime.timedelta(minutes=i)).replace(tzinfo=_ZONE if i % 7 else None),
    "date": lambda x, i: (_START + datetime.timedelta(days=i)).date(),
    "timedelta": lambda x, i: datetime.timedelta(seconds=i),
    "decimal": lambda x, i: decimal.Decimal(i) / 7,
    "fraction": lambda x, i: fractions.Fraction(i, 7),
    "uuid": lambda x, i: uuid.UUID(int=i),
    "path": lambda x, i: pathlib.PurePosixPath("a", str(i)),
    "complex": lambda x, i: complex(i, 1),
    "range": lambda x, i: range(i),
    "deque": lambda x, i: collections.deque([x]),
    "ordered": lambda x, i: collections.OrderedDict(a=x),
    "counter": lambda x, i: collections.Counter(a=i),
    "defaultdict": lambda x, i: collections.defaultdict(list, a=[x]),
    "class": lambda x, i: (Plain, Record, int)[i % 3],
    "function": lambda x, i: (len, table)[i % 2],
    "object": lambda x, i: object(),
    "exception": lambda x, i: ValueError(x),
    "bytearray": lambda x, i: bytearray(b"%d" % i),
    "frozenset": lambda x, i: frozenset({i}),
}


def _choice(rng: random.Random, values: list[Any]) -> Maker:
    return lambda i: rng.choice(values)


def _odd(rng: random.Random, others: list[Any]) -> Any:
    """Make what breaks a column's shape."""
    kind = rng.randrange(14)
    if kind == 0 and others:
        return rng.choice(others)  # shared
    if kind == 1:
        return _Text("text")
    if kind == 2:
        return _Number(5)
    if kind == 3:
        return []
    if kind == 4:
        return {}
    if kind == 5:
        return ()
    if kind == 6:
        cycle: list[Any] = []
        cycle.append(cycle)
        return cycle
    if kind == 7:
        inner: list[Any] = []
        inner.append((inner,))
        return inner[0]
    if kind == 8:
        return "".join(["l"] * rng.choice((65_530, 65_536, 70_000)))
    if kind == 9:
        return {"".join(["i", "d"]): 1}  # a key that is equal, and another object
    if kind == 10:
        return [[[[[[[[[[1]]]]]]]]]]
    return rng.choice((None, True, 1, 1 << 40, 2.5, "odd", b"odd", frozenset({1}), {1, 2}, 1j, range(3), int))


def _dict_of(values: list[Any]) -> dict[Any, Any]:
    """Return a dict with keys that are new, or known from elsewhere, and one that may be missing."""
    return {(f"k{k}", "key", k)[k % 3] if k % 6 != 1 else "name": x for k, x in enumerate(values)}


def _shape(rng: random.Random, depth: int) -> Maker:
    """Return what makes the values of a column that may be nested."""
    if depth and rng.random() < 0.15:
        there = _shape(rng, depth)
        return lambda i: there(i) if rng.random() < 0.7 else None
    if depth and rng.random() < 0.15:
        kinds = [_shape(rng, depth - 1) for _ in range(rng.choice((2, 3, 5)))]
        return lambda i: kinds[min(int(rng.expovariate(1)), len(kinds) - 1)](i)
    kind = rng.randrange(12) if depth else 0
    if kind > 9:
        make = rng.choice(list(INSTANCES.values()))
        attribute = _shape(rng, depth - 1)
        return lambda i: make(attribute(i), i)
    if kind < 4:
        return rng.choice(list(ATOMS.values()))(rng)
    if kind == 4:
        item = _shape(rng, depth - 1)
        longest = rng.choice((1, 3, 9, 70))
        group = rng.choice((list, list, _dict_of, set, frozenset))

        def some(i: int) -> Any:
            values = [item(i * longest + k) for k in range(rng.randrange(longest + 1))]
            try:
                return group(values)
            except TypeError:  # they have no hash
                return values

        return some
    n = rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 8, 65))
    items = [_shape(rng, depth - 1) for _ in range(min(n, 6))] * (1 if n <= 6 else n)
    items = items[:n]
    if kind < 7:
        if rng.random() < 0.3:
            return lambda i: tuple([item(i) for item in items[: rng.randrange(n + 1) or None]])
        return lambda i: tuple([item(i) for item in items])
    if kind == 7:
        return lambda i: [item(i) for item in items]
    keys: list[Any] = [f"key{k}" if rng.random() < 0.9 else rng.choice((k, k + 300, (k,))) for k in range(n)]
    if rng.random() < 0.3:
        rate = rng.choice((0.5, 0.9, 0.99))
        return lambda i: {key: item(i) for key, item in zip(keys, items, strict=True) if rng.random() < rate}
    return lambda i: {key: item(i) for key, item in zip(keys, items, strict=True)}


def table(seed: int) -> Callable[[], Any]:
    """Return what makes a random table, the same at each call."""

    def make() -> Any:
        rng = random.Random(seed)
        n = rng.choice((7, 8, 9, 20, 60, 300, 999, 1000, 1001, 1500, 2001))
        depth = rng.choice((0, 1, 1, 2, 3))
        if depth > 1 and n > 300:
            n = 300
        make_row = _shape(rng, depth)
        rows = [make_row(i) for i in range(n)]
        rate = rng.choice((0, 0, 0, 1 / 400, 1 / 40))
        for i in range(n):
            if rng.random() < rate:
                row = rows[i]
                if type(row) is list and row and rng.random() < 0.8:
                    row[rng.randrange(len(row))] = _odd(rng, rows)
                elif type(row) is dict and row and rng.random() < 0.8:
                    row[rng.choice([*row])] = _odd(rng, rows)
                else:
                    rows[i] = _odd(rng, rows)
        kind = rng.randrange(8)
        if kind == 0:
            keys = [f"k{i}" if rng.random() < 0.99 else (i,) for i in range(n)] if rng.random() < 0.7 else range(n)
            whole: Any = dict(zip(keys, rows, strict=True))
        elif kind == 1:
            whole = tuple(rows)
        elif kind == 2:
            whole = [rows, rows[: n // 2], [rows]]
        elif kind == 3:
            try:
                whole = rng.choice((set, frozenset))(rows)
            except TypeError:
                whole = rows
        else:
            whole = rows
        before = "".join(["b"] * rng.choice((0, 0, 10, 64_000, 65_400, 65_500, rng.randrange(65_536))))
        return whole if not before else [before, whole, rows[:3]]

    return make


def records(seed: int) -> Callable[[], list[Any]]:
    """Return what makes random records, as data from the web has them: of some kinds, with fields that may be missing.

    The same at each call.
    """

    def make() -> list[Any]:
        rng = random.Random(seed)
        pool = [f"value {k}" for k in range(rng.choice((1, 5, 300)))]
        names = [f"field {k}" for k in range(9)]
        fields: list[Maker] = [
            lambda i: i,
            lambda i: i / 7,
            lambda i: f"text {i}",
            lambda i: rng.choice(pool),
            lambda i: [rng.choice(pool) for _ in range(rng.randrange(4))],
            lambda i: None if rng.random() < 0.5 else {names[0]: i},
            lambda i: (i, rng.choice(pool)) if rng.random() < 0.5 else (i,),
            lambda i: rng.choice((i, pool[0], None, b"bytes", {names[1]: rng.choice(pool)}, [i])),
            lambda i: shared[i % len(shared)] if rng.random() < rare else i,
        ]
        shared: list[Any] = [[1], {"a": 1}, (1, 2), "text", 1 << 80]
        rare = rng.choice((0, 0, 0.01))
        others = rng.choice((0, 0, 0.005))
        kinds = []
        for _ in range(rng.choice((1, 2, 3, 6))):
            of_kind = rng.sample(range(9), rng.randrange(1, 8))
            kinds.append((rng.choice((dict, dict, dict, list, tuple)), of_kind, rng.choice((1, 1, 0.9, 0.5))))
        weights = [rng.choice((1, 5, 50)) for _ in kinds]
        found: list[Any] = []
        for i in range(rng.choice((8, 15, 40, 63, 64, 65, 300, 999, 1000, 1001, 1100))):
            t, of_kind, rate = rng.choices(kinds, weights)[0]
            chosen = [k for k in of_kind if rng.random() < rate]
            if t is dict:
                keys = ["".join(["other ", names[k]]) if rng.random() < others else names[k] for k in chosen]
                found.append({key: fields[k](i) for key, k in zip(keys, chosen, strict=True)})
            else:
                found.append(t(fields[k](i) for k in chosen))
        return found

    return make
