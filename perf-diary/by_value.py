"""What only dill can save (functions, classes and objects of ``__main__``, closures over data): dill against itself.

    shape x (stock, install(), backends.dill) --> a process of its own, in turns: the same bytes? how long?
                                              --> one line a shape, and the geometric mean

Such objects consist of some dozens of small parts, each of which dill's own functions save, so what they show is what
fastpickle costs where it has little to give; those that have data beside them, or in them, what it gives. Each way has
processes of its own: to go from one to the other in one process makes the interpreter forget what it had specialised.

Not for: plain data (``grafting.py``).
"""

from __future__ import annotations

import abc
import argparse
import collections
import dataclasses
import enum
import functools
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import typing
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import fastpickle
from fastpickle.cli import _timing

WAYS = ("stock", "install", "backend")
#: By what is pickled, and in which ways: dill's dumps, or that of multiprocess, which has a pickler of its own.
PICKLERS = {"dill": WAYS, "multiprocess": WAYS[:2]}
TURNS = 3
WARM_UP = 30
SAMPLES = 7
SAMPLE = 0.003
"""CPU seconds, about."""


class Point:
    """A class that dill saves by value, since it is of ``__main__``."""

    def __init__(self, x: int) -> None:
        self.x = x

    def doubled(self) -> int:
        """Give twice its place."""
        return 2 * self.x


@dataclasses.dataclass
class Setting:
    """The same as a dataclass, which has more methods."""

    name: str = "a"
    value: int = 1


class Derived(Point):
    """A subclass with what methods there are."""

    names = ("a", "b")

    @property
    def middle(self) -> float:
        """Be a property."""
        return self.x / 2

    @classmethod
    def at_origin(cls) -> Any:
        """Be a class method."""
        return cls(0)

    @staticmethod
    def distance(a: float, b: float) -> float:
        """Be a static one."""
        return abs(a - b)


class Colour(enum.Enum):
    """An enum."""

    RED = 1
    GREEN = 2


class Pair(typing.NamedTuple):
    """A named tuple."""

    first: int
    second: str = "b"


class Shape(abc.ABC):
    """An abstract class."""

    @abc.abstractmethod
    def area(self) -> float:
        """Have none."""


class Square(Shape):
    """One that is none."""

    def area(self) -> float:
        """Give its area."""
        return 1.0


CONFIG = {"offset": 1, "table": list(range(200)), "parts": [{"number": i, "sizes": [i] * 3} for i in range(6)]}


def of_main(value: int) -> int:
    """Be a function of ``__main__`` with no globals."""
    return value + len(str(value))


def with_globals(value: int) -> Any:
    """Be one that refers to data."""
    return CONFIG["offset"], value


def with_defaults(value: int, table: tuple[int, ...] = tuple(range(300)), names: tuple[str, ...] = ("a", "b")) -> Any:
    """Be one that has data in its defaults."""
    return value, table, names


def _records(n: int) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"text {i}"} for i in range(n)]


def _closure(held: Any) -> Callable[[], Any]:
    return lambda: held


_LAMBDA: Callable[[int], int] = lambda x: x * 2  # noqa: E731  # its name is to be "<lambda>"

SHAPES: dict[str, Callable[[], Any]] = {
    "lambda": lambda: _LAMBDA,
    "closure": lambda: _closure(3),
    "function": lambda: of_main,
    "function with globals": lambda: with_globals,
    "function with 300 defaults": lambda: with_defaults,
    "partial": lambda: functools.partial(of_main, 3),
    "partial of a function by name": lambda: functools.partial(statistics.quantiles, n=4),
    "list of functions": lambda: [of_main, with_globals, _LAMBDA],
    "method": lambda: Point(3).doubled,
    "class": lambda: Point,
    "instance": lambda: Point(3),
    "instance of a dataclass": Setting,
    "instance of a subclass": lambda: Derived(3),
    "instance of an abstract class's": Square,
    "enum": lambda: Colour.RED,
    "named tuple": lambda: Pair(1),
    "100 instances": lambda: [Point(i) for i in range(100)],
    "1,000 instances": lambda: [Point(i) for i in range(1000)],
    "20 closures": lambda: [_closure(i) for i in range(20)],
    "dict of functions and data": lambda: {"settings": {"a": [1, 2, {"b": 3}]}, "call": of_main, "also": [_closure(1)]},
    "task": lambda: (of_main, (1, 2), {"k": 3}),
    "task of a lambda": lambda: (_LAMBDA, ([1, 2, 3],), {"k": "text"}),
    "task of a closure": lambda: (_closure(3), (1, 2.5, None), {}),
    "task of a pool's map": lambda: (0, 1, statistics.fmean, ((of_main, tuple(range(20))),), {}),
    "task with five records": lambda: (of_main, (_records(5),), {}),
    "task with a partial": lambda: (functools.partial(of_main, value=1), (1, 2), {}),
    "task with an instance": lambda: (of_main, (Point(3),), {}),
    "task with a class": lambda: (of_main, (Point,), {}),
    "task with 100 records": lambda: (of_main, (_records(100),), {}),
    "closure over 100 records": lambda: _closure(_records(100)),
    "closure and 10,000 ints": lambda: (_closure(3), list(range(10_000))),
    "exception": lambda: ValueError("no"),
    "builtin type": lambda: int,
    "module": lambda: sys,
    "result of a task": lambda: (3, 0, (True, 1.5)),
    "result of a task, a list": lambda: (3, 0, (True, [1, 2, 3])),
    "list of three ints": lambda: [1, 2, 3],
    "small dict": lambda: {"a": 1, "b": 2.0, "c": "x", "d": None, "e": [1, 2]},
}


def _packages(n: int) -> list[dict[str, Any]]:
    """Make what describes packages: texts, some of them shared, in few containers of very different lengths."""
    return [
        {
            "name": f"package-{i}",
            "metadata": {"Version": f"{i}.0", "License": "MIT", "Summary": f"What {i} does. " * 5, "Platform": ["any"]},
            "requires": [f"package-{j} (>={j}.1)" for j in range(i % 5)],
            "files": [(f"package_{i}/module_{j}.py", 1000 * j, None) for j in range(20 + i * 37 % 200)],
        }
        for i in range(n)
    ]


def _texts() -> list[str]:
    return [f"text {i}" for i in range(10_000)]


#: Much plain data, and behind it, or around it, what is none.
MUCH: dict[str, Callable[[], Any]] = {
    "closure over 20 packages": lambda: _closure(_packages(20)),
    "closure over 10,000 texts": lambda: _closure(_texts()),
    "closure over 1,000 instances": lambda: _closure([Point(i) for i in range(1000)]),
    "closure over both": lambda: _closure((_packages(20), _texts())),
    "20 packages, a closure": lambda: (_packages(20), _closure(3)),
    "a closure, 20 packages, a closure": lambda: (_closure(3), _packages(20), _closure(4)),
    "partial of 20 packages": lambda: functools.partial(of_main, _packages(20)),
    "dict of 20 packages, texts, functions": lambda: {
        "packages": _packages(20), "key": of_main, "texts": _texts(), "also": [_closure(1)]
    },
    "instance with 20 packages": lambda: Setting(name="a", value=_packages(20)),  # type: ignore[arg-type]  # no int
    "defaultdict of a lambda": lambda: collections.defaultdict(_LAMBDA, enumerate(_texts())),
    "20 closures over a package": lambda: [*map(_closure, _packages(20))],
}  # fmt: skip


def dumps_of(pickler: str) -> Callable[[Any], bytes]:
    """Return what pickles with one of `PICKLERS`."""
    if pickler == "dill":
        dumps: Callable[[Any], bytes] = importlib.import_module("dill").dumps
        return dumps
    forking = importlib.import_module("multiprocess.reduction").ForkingPickler
    return lambda obj: bytes(forking.dumps(obj))


def serve(way: str, names: Sequence[str], pickler: str = "dill") -> dict[str, float]:
    """Time the shapes that dill can save, in this process; gives microseconds."""
    dill = importlib.import_module("dill")
    warnings.simplefilter("ignore", dill.PicklingWarning)  # dill says of an enum that it is recursive
    return compare(way, {name: {**SHAPES, **MUCH}[name]() for name in names}, dumps_of(pickler))


def compare(way: str, objs: dict[str, Any], dumps: Callable[[Any], bytes]) -> dict[str, float]:
    """Time those objects that dill can save, in this process; gives microseconds.

    Args:
        way: One of `WAYS`.
        objs: Name -> object.
        dumps: What pickles them before anything is installed.

    Raises:
        SystemExit: If the bytes are not those of stock dill.
    """
    expected = {}
    for name, obj in objs.items():
        try:
            dumps(obj)  # a class has more in it once it has been saved, and others remember something
            expected[name] = dumps(obj)
        except Exception:  # dill 0.4.1 saves no function on 3.15
            continue
    if way == "install":
        fastpickle.install()
    elif way == "backend":
        dumps = importlib.import_module("fastpickle.backends.dill").dumps
    found = {}
    for name, pickled in expected.items():
        obj = objs[name]
        if dumps(obj) != pickled or dumps(obj) != pickled:  # the second may go another way
            raise SystemExit(f"{way}, {name}: other bytes than stock dill's")
        found[name] = time_of(dumps, obj)
    return found


def time_of(dumps: Callable[[Any], bytes], obj: Any) -> float:
    """Return how many microseconds a dump of `obj` takes, at the least."""
    seconds = _sample(dumps, obj, WARM_UP) / WARM_UP
    loops = max(3, int(SAMPLE / max(seconds, 1e-9)))
    return min(_sample(dumps, obj, loops) / loops for _ in range(SAMPLES)) * 1e6


def _sample(dumps: Callable[[Any], bytes], obj: Any, loops: int) -> float:
    began = time.process_time()
    for _ in range(loops):
        dumps(obj)
    return time.process_time() - began


def measure(
    names: Sequence[str],
    turns: int,
    ways: Sequence[str] = WAYS,
    script: str = __file__,
    environ_of: Callable[[str], dict[str, str]] = lambda way: {},
    options: Sequence[str] = (),
) -> dict[str, dict[str, float]]:
    """Time each way in processes of its own, which take turns; gives for each the least microseconds of each shape.

    Args:
        names: The shapes.
        turns: How many processes of each way.
        ways: The ways.
        script: What a process runs; it takes ``--serve``, ``--only`` and `options`.
        environ_of: Gives what is changed in the environment for a way.
    """
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(turns):
        for way, results in found.items():
            command = [sys.executable, str(Path(script).resolve()), "--serve", way, "--only", *names, *options]
            environ = {**os.environ, **environ_of(way)}
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environ)
            if done.returncode:
                raise SystemExit(done.returncode)
            results.append(json.loads(done.stdout))
    return {
        way: {name: min(result[name] for result in results) for name in results[0]} for way, results in found.items()
    }


def table(found: dict[str, dict[str, float]]) -> str:
    """Give the table."""
    ways = [*found][1:]
    heads = [{"install": "under install / stock", "backend": "`backends.dill` / stock"}[way] for way in ways]
    lines = [f"| what | stock, us | {' | '.join(heads)} |", f"| --- | --: |{' --: |' * len(ways)}"]
    for name, stock in found["stock"].items():
        ratios = [f"{found[way][name] / stock:.2f}x" for way in ways]
        lines.append(f"| {name} | {stock:,.1f} | {' | '.join(ratios)} |")
    means = [
        f"{_timing.geometric_mean([found[way][name] / stock for name, stock in found['stock'].items()]):.2f}x"
        for way in ways
    ]
    middle = [f"{statistics.median(found[way][name] / s for name, s in found['stock'].items()):.2f}x" for way in ways]
    lines += [f"| **geometric mean** | | {' | '.join(means)} |", f"| median | | {' | '.join(middle)} |"]
    return "\n".join(lines)


def parser_of(doc: str | None, how: str, names: Iterable[str], ways: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of a script that `measure` runs.

    Args:
        doc: What the script says of itself, the first line of which is for ``--help``.
        how: How its table is to be read.
        names: What may be measured.
        ways: The ways that a process may be asked for.
    """
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0], epilog=f"how to read it: {how}")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, help="measure these")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"processes of each way (default: {TURNS})")
    parser.add_argument("--serve", choices=ways, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments, without the name of the program.

    Returns:
        The exit status.
    """
    parser = parser_of(
        __doc__,
        "1.20x is a time 1.20 times as long as stock dill's, so less is better. It takes 20 s.",
        {**SHAPES, **MUCH},
        WAYS,
    )
    parser.add_argument("--much", action="store_true", help="measure what has much plain data in it, which takes 40 s")
    parser.add_argument(
        "--pickler", choices=PICKLERS, default="dill", help="dill.dumps, or what multiprocess sends tasks with"
    )
    arguments = parser.parse_args(argv)
    names = list(arguments.only or (MUCH if arguments.much else SHAPES))
    if arguments.serve:
        print(json.dumps(serve(arguments.serve, names, arguments.pickler)))
        return 0
    try:
        dill = importlib.import_module("dill")
        dumps_of(arguments.pickler)
    except ImportError as exc:
        parser.error(f"needs {exc.name}: pip install dill multiprocess")
    options = ("--pickler", arguments.pickler)
    found = measure(names, arguments.turns, PICKLERS[arguments.pickler], options=options)
    if not found["stock"]:
        print("dill pickles none of these on this Python")
        return 0
    print(table(found))
    print(
        f"\n{platform.python_implementation()} {platform.python_version()}, dill {dill.__version__}"
        f"{', by the pickler of multiprocess' if arguments.pickler == 'multiprocess' else ''}."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
