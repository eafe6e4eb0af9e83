"""Small dumps with objects in them, as tasks, messages and settings have: a pickler made for each, against stock's.

    shape x way --> processes of its own, in turns: the same bytes? how long? --> one line a shape, geometric means

    stock, dumps, ours, pure     pickle._Pickler; fastpickle.dumps, .Pickler; that without the C pickler
    hooked-stock, hooked         subclasses of pickle._Pickler and fastpickle.Pickler with a persistent_id
    dill, installed, backend     dill.dumps; the same under install(); fastpickle.backends.dill.dumps

So little is saved in such a dump that what is asked before it counts.  Each way has processes of its own: to go from
one to the other in one process makes the interpreter forget what it had specialised.

Not for: what only dill can save (``by_value.py``), nor for what is much (``grafting.py``, ``pure.py``).
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import importlib
import io
import json
import os
import pathlib
import pickle
import platform
import sys
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import by_value

import fastpickle
from fastpickle.cli import _timing

#: What is timed, by what it is compared with.
WAYS = {"stock": ("dumps", "ours", "pure"), "hooked-stock": ("hooked",), "dill": ("installed", "backend")}
ALL_WAYS: Sequence[str] = tuple(way for base, ours in WAYS.items() for way in (base, *ours))
TURNS = 3


class Reduced:
    """Has a reduce of its own, which calls a function."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Reduced, tuple(vars(self).values())


class Read:
    """Has a reduce of its own, which only reads it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Read, (self.value,)


class Stated:
    """Has a state of its own."""

    def __init__(self, value: object) -> None:
        self.value, self.text = value, "text"

    def __getstate__(self) -> dict[str, object]:
        return dict(self.__dict__, text="")


class Plain:
    """Has nothing of its own."""

    def __init__(self, value: object) -> None:
        self.value, self.text = value, "text"


@dataclasses.dataclass
class Setting:
    """Is a dataclass."""

    number: int
    text: str = "x"
    sizes: list[int] = dataclasses.field(default_factory=lambda: [1, 2])


class Colour(enum.Enum):
    """Is an enum."""

    RED = 1


class Slotted:
    """Has slots."""

    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a, self.b = 1, "x"


Pair = collections.namedtuple("Pair", "a b")


def _day(i: int) -> datetime.date:
    return datetime.date(2020, 1, 1 + i % 28)


def _wide(i: int, value: object) -> dict[str, object]:
    return {"id": i, "name": f"name {i}", "size": i / 2, "done": True, "value": value}


SHAPES: dict[str, Callable[[], Any]] = {
    "plain data": lambda: {"id": 5, "name": "text", "tags": ["a", "b"], "size": (640, 480)},
    "an object with a reduce": lambda: Reduced("text"),
    "a list of one": lambda: [Reduced(1)],
    "a dict with two of them": lambda: {"id": 5, "first": Reduced(1), "second": Reduced("text")},
    "10 of them": lambda: [Reduced(i) for i in range(10)],
    "40 of them": lambda: [Reduced(i) for i in range(40)],
    "2 rows of two": lambda: [{"a": Reduced(i), "b": Reduced(i)} for i in range(2)],
    "5 tuples with one": lambda: [(i, Reduced(i)) for i in range(5)],
    "10 rows with one": lambda: [{"id": i, "value": Reduced(i)} for i in range(10)],
    "5 wider rows with one": lambda: [_wide(i, Reduced(i)) for i in range(5)],
    "30 of these, every third": lambda: [_wide(i, i if i % 3 else Reduced(i)) for i in range(30)],
    "20 rows with an exception": lambda: [{"id": i, "error": ValueError(i)} for i in range(20)],
    "20 with one, and an instance": lambda: [{"id": i, "a": Reduced(i), "b": Plain(i)} for i in range(20)],
    "one far inside": lambda: {"a": 1, "b": [1, 2], "c": {"x": Reduced(1)}},
    "one farther inside": lambda: {"a": {"b": {"c": [Reduced(1)], "d": 1}, "e": 2}},
    "5 with a state": lambda: [Stated(i) for i in range(5)],
    "one that only reads": lambda: Read("text"),
    "a list of one such": lambda: [Read("text")],
    "a dict with one": lambda: {"id": 5, "first": Read(1)},
    "5 that only read": lambda: [Read(i) for i in range(5)],
    "40 that only read": lambda: [Read(i) for i in range(40)],
    "an instance": lambda: Plain(1),
    "a dict with an instance": lambda: {"a": 1, "s": Plain(1), "l": [1, 2, 3]},
    "5 instances": lambda: [Plain(i) for i in range(5)],
    "20 instances": lambda: [Plain(i) for i in range(20)],
    "40 instances": lambda: [Plain(i) for i in range(40)],
    "a dict with a dataclass": lambda: {"a": 1, "d": Setting(1)},
    "5 dataclasses": lambda: [Setting(i) for i in range(5)],
    "slots": Slotted,
    "an enum in a dict": lambda: {"c": Colour.RED, "n": 1},
    "a namedtuple": lambda: Pair(1, "x"),
    "a date in a dict": lambda: {"t": _day(0), "n": 1},
    "10 dates": lambda: [_day(i) for i in range(10)],
    "40 dates": lambda: [_day(i) for i in range(40)],
    "20 rows with dates": lambda: [{"id": i, "t": _day(i)} for i in range(20)],
    "a Decimal in a dict": lambda: {"d": decimal.Decimal("1.5"), "n": 1},
    "a UUID in a dict": lambda: {"u": uuid.UUID(int=5)},
    "a path in a dict": lambda: {"p": pathlib.PurePosixPath("/a/b")},
    "a set in a dict": lambda: {"s": {1, 2, 3}, "n": 1},
    "an OrderedDict": lambda: collections.OrderedDict(a=1, b=2),
    "an exception": lambda: ValueError("x"),
    "a class": lambda: Plain,
    "a function and a number": lambda: [os.path.join, 1],
}


def _dumps(way: str) -> Callable[[Any], bytes]:
    """Return what dumps in one of the ways, in this process."""
    if way == "installed":
        fastpickle.install()
    module = {"dumps": "fastpickle", "dill": "dill", "installed": "dill", "backend": "fastpickle.backends.dill"}.get(
        way
    )
    if module is not None:
        dumps: Callable[[Any], bytes] = importlib.import_module(module).dumps
        return dumps
    cls: Any = pickle._Pickler if "stock" in way else fastpickle.Pickler  # type: ignore[attr-defined]  # private
    if "hooked" in way:
        cls = type("Hooked", (cls,), {"persistent_id": lambda self, obj: None})

    def by_pickler(obj: Any) -> bytes:
        file = io.BytesIO()
        cls(file).dump(obj)
        return file.getvalue()

    return by_pickler


def serve(way: str, names: Sequence[str]) -> dict[str, float]:
    """Time the shapes in this process; gives microseconds.

    Raises:
        SystemExit: If the bytes are not stock's.
    """
    dumps = _dumps(way)
    found = {}
    for name in names:
        obj = importlib.import_module(Path(__file__).stem).SHAPES[name]()  # whose classes are not of ``__main__``
        if way in (*WAYS["stock"], *WAYS["hooked-stock"]) and dumps(obj) != _dumps("stock")(obj):
            raise SystemExit(f"{way}, {name}: other bytes than stock's")
        found[name] = by_value.time_of(dumps, obj)
    return found


def table(found: dict[str, dict[str, float]]) -> str:
    """Give the table: how many times as fast as stock, or dill, each of ours is."""
    ways = {base: ours for base, ours in WAYS.items() if base in found}
    header = ["what"]
    for base, ours in ways.items():
        header += [f"{base}, us", *(f"{base} / {way}" for way in ours)]
    lines = [f"| {' | '.join(header)} |", f"| --- {'| --: ' * (len(header) - 1)}|"]
    for name in found["stock"]:
        cells = []
        for base, ours in ways.items():
            cells += [f"{found[base][name]:,.1f}", *(f"{found[base][name] / found[way][name]:.2f}x" for way in ours)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    means = []
    for base, ours in ways.items():
        ratios = ([found[base][name] / time for name, time in found[way].items()] for way in ours)
        means += ["", *(f"{_timing.geometric_mean(some):.2f}x" for some in ratios)]
    lines.append(f"| **geometric mean** | {' | '.join(means)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments, without the name of the program.

    Returns:
        The exit status.
    """
    parser = by_value.parser_of(
        __doc__, "2.00x is half of stock's time, so more is better. It takes a minute.", SHAPES, ALL_WAYS
    )
    arguments = parser.parse_args(argv)
    names = list(arguments.only or SHAPES)
    if arguments.serve:
        print(json.dumps(serve(arguments.serve, names)))
        return 0
    try:
        version = f", dill {importlib.import_module('dill').__version__}"
        ways = ALL_WAYS
    except ImportError:
        version = "; dill is not installed"
        ways = tuple(way for way in ALL_WAYS if way not in ("dill", *WAYS["dill"]))
    pure = {"pure": {"FASTPICKLE_PURE": "1"}}
    found = by_value.measure(
        names, arguments.turns, ways, __file__, lambda way: pure.get(way, {"FASTPICKLE_PURE": "0"})
    )
    print(table(found))
    print(f"\n{platform.python_implementation()} {platform.python_version()}{version}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
