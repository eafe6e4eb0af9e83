"""What one dump tells of the next: each shape by each way, alone and behind each other one, in one process.

    way, shape ----------------------------(nothing is remembered)--> us a dump
    another way, another shape, 3 times --> way, shape -------------> us a dump, soon and for good
                                       --> one line for what is slower behind another

What a dump was like is remembered (`objects/last.py`), as a guess at what the next one is like. Where two libraries
pickle in turns, or two kinds of objects, the guess is wrong now and then; it must not stay so.

Not for: how long a dump takes (``grafting.py``, ``hashers.py``).
"""

from __future__ import annotations

import argparse
import dataclasses
import pickle
import platform
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import grafting
import hashers
import pure

import fastpickle
from fastpickle.objects.last import last

Way = Callable[[Any], Any]

LONGEST = 40
"""Items of a list that is dumped: what is learnt of little is learnt wrongly sooner."""

MODELS = ("forest", "boosted_trees", "neighbours", "pipeline", "words")
"""Shapes that take too long to be dumped behind each other one."""

TIMES = 3
"""Dumps of the other one."""

SAMPLE = 0.6e-3
"""Seconds of one sample, about."""

SLOWER, LATER = 1.4, 5e-6
"""It is looked at once more if it takes so many times as long, and so many seconds more."""

SETTLED = 0.1
"""Seconds of dumps after which what stays slow is so for good."""


class Subclass(pickle._Pickler):  # type: ignore[attr-defined,misc]  # its class is private
    """A pickler without hooks of its own."""


def ways() -> dict[str, Way]:
    """Give the ways to pickle, or to hash, of the libraries that are installed."""
    found: dict[str, Way] = {"fastpickle.dumps": fastpickle.dumps, "a subclass": partial(pure.dumps, Subclass)}
    for name in ("dill.dumps", *hashers.LIBRARIES):
        module, function, *_ = hashers.LIBRARIES.get(name, ("dill", "dumps"))
        try:
            found[name] = hashers._function(module, function)
        except ImportError:
            continue
    return found


def shapes(more: bool) -> dict[str, Any]:
    """Make what is dumped: shapes of ``hashers.py``, and if `more` is wanted of ``grafting.py``, short ones."""
    made = {name: obj for name, obj in hashers.shapes("joblib.hash").items() if name not in MODELS}
    if more:
        groups = [grafting.shapes.GROUPS[name] for name in ("objects", "others")]
        made.update({name: make() for group in groups for name, make in group.items()})
    return {name: obj[:LONGEST] if isinstance(obj, list) else obj for name, obj in made.items()}


@dataclasses.dataclass
class Slower:
    """What takes longer behind another one.

    Attributes:
        what, behind: the way and the shape of each.
        alone: seconds a dump.
        soon: how many times as long the first dumps take.
        settled: how many times as long they take for good.
    """

    what: str
    behind: str
    alone: float
    soon: float
    settled: float


def seconds(way: Way, obj: object, calls: int, samples: int) -> float:
    """Time some samples, and give the shortest."""
    return min(hashers._seconds(way, obj, calls) for _ in range(samples))


def measure(only: Sequence[str], more: bool, progress: Callable[[str], None]) -> list[Slower]:
    """Time everything behind everything else.

    Args:
        only: the ways that are timed, or none for all; the others come before.
        more: as for `shapes`.
        progress: is told what is timed.
    """
    objects = shapes(more)
    alone: dict[tuple[str, str], tuple[Way, Any, int, float]] = {}
    for way_name, way in ways().items():
        for name, obj in objects.items():
            last.forget()
            try:
                way(obj)
            except pickle.PicklingError:
                continue
            calls = max(2, int(SAMPLE / seconds(way, obj, 3, 5)))
            alone[way_name, name] = way, obj, calls, seconds(way, obj, calls, 5)
    found = []
    for what, (way, obj, calls, _) in alone.items():
        if only and what[0] not in only:
            continue
        progress(": ".join(what))
        for behind, (other, other_obj, _, _) in alone.items():
            best = alone[what][3]
            if _behind(way, obj, calls, other, other_obj) < max(SLOWER * best, best + LATER):
                continue
            last.forget()
            best = seconds(way, obj, calls, 6)
            soon = _behind(way, obj, calls, other, other_obj)
            if soon < max(SLOWER * best, best + LATER):
                continue
            end = time.process_time() + SETTLED
            while time.process_time() < end:
                way(obj)
            settled = seconds(way, obj, calls, 6)
            found.append(Slower(": ".join(what), ": ".join(behind), best, soon / best, settled / best))
    return sorted(found, key=lambda one: (-one.settled, -one.soon))


def _behind(way: Way, obj: object, calls: int, other: Way, other_obj: object) -> float:
    last.forget()
    for _ in range(TIMES):
        other(other_obj)
    return seconds(way, obj, calls, 2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit status: 1 if something is twice as slow for good.
    """
    parser = argparse.ArgumentParser(
        description="Find what is slower behind another dump, in the same process, than alone.",
        epilog="examples:\n"
        "  %(prog)s                                about 4 minutes\n"
        "  %(prog)s --more --only fastpickle.dumps  objects of all kinds: about 10 minutes\n"
        "  %(prog)s --only dill.dumps joblib.hash  these behind all the others\n\n"
        "how to read it:\n"
        "  2.50x is a time 2.50 times as long as alone: of the first dumps behind the other one, and of those after\n"
        "  a tenth of a second. What is below 1.5x may be noise: run it again.\n\n"
        "exit status: 0 measured, 1 something takes twice as long for good, 2 wrong usage",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", metavar="WAY", default=[], help=f"of {', '.join(ways())}")
    parser.add_argument("--more", action="store_true", help="shapes of grafting.py, too")
    arguments = parser.parse_args(argv)
    if unknown := sorted({*arguments.only} - {*ways()}):
        parser.error(f"no such way: {', '.join(unknown)}")
    with fastpickle.patched():
        found = measure(arguments.only, arguments.more, lambda text: print(text, file=sys.stderr))
    rows = [
        [one.what, one.behind, f"{one.alone * 1e6:,.1f}", f"{one.soon:.2f}x", f"{one.settled:.2f}x"] for one in found
    ]
    print(grafting.table(["what", "behind", "alone, us", "soon", "for good"], rows))
    print(
        f"\nCPython {platform.python_version()}; CPU time, under `install()`. `python perf-diary/behind_others.py`.",
    )
    return int(any(one.settled >= 2 for one in found))


if __name__ == "__main__":
    sys.exit(main())
