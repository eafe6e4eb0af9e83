"""What the series of the diary share: two ways of pickling, checked, timed in turns, as a table.

    Comparison(without, with_, reference) --same_bytes()--> the reference's bytes on every workload?
                                          --measure()-----> time without / time with, once a round
    Rounds (of each workload)             --show()--------> one table of the diary

    a script under valgrind: dumps_to_count() --instructions()--> instructions per dump

Times are CPU times, so that other programs on the machine take nothing away from them, and a ratio
is the median over many alternating rounds.

Not for: the ideas themselves (``ideas.py``, ``ablations.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fastpickle.cli import _timing, workloads

Stock: Any = pickle._Pickler  # type: ignore[attr-defined]
"""The stock pickler; Any, because the type stubs leave out most of what is overridden here."""

PLAN = _timing.Plan(sample_seconds=0.005, budget_seconds=3.0, min_rounds=21, max_rounds=201)
"""About 3 s for each row of a table."""

INTS = ("list_of_ints_10k", "list_of_small_ints_10k", "dict_str_int_5k")
FLOATS = ("list_of_floats_10k",)
STRINGS = ("list_of_strs_1k", "dict_str_int_5k", "json_records")
BYTES = ("list_of_bytes_1k",)
MIXED = ("mixed_atoms", "json_records", "nested_list_of_dicts")
OBJECTS = ("dataclass_instances", "datetimes")
SMALL = ("small_dict",)


@dataclasses.dataclass(frozen=True)
class Way:
    """One way of pickling."""

    dumps: Callable[[object], bytes]
    """Gives the pickle of an object."""
    around: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
    """Makes the context in which ``dumps`` is this way."""

    def __call__(self, obj: object) -> bytes:
        with self.around():
            return self.dumps(obj)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What one table compares."""

    without: Way
    """Without the idea."""
    with_: Way
    """With it, and with nothing else changed."""
    reference: Way
    """The way whose bytes both must write."""


def by(pickler: Callable[..., Any], protocol: int | None = None) -> Way:
    """Pickle by a pickler class.

    Args:
        pickler: The class.
        protocol: The pickle protocol, None for the default one.

    Returns:
        The way to do so.
    """

    def dumps(obj: object) -> bytes:
        file = io.BytesIO()
        pickler(file, protocol).dump(obj)
        return file.getvalue()

    return Way(dumps)


def distinct(*groups: Iterable[str]) -> tuple[str, ...]:
    """Put groups of workloads together.

    Args:
        groups: The groups.

    Returns:
        Their workloads, each one once.
    """
    return tuple(dict.fromkeys(name for group in groups for name in group))


def differing_workloads(way: Way, reference: Way) -> list[str]:
    """Compare the bytes of two ways, on every workload.

    Args:
        way: The one.
        reference: The other.

    Returns:
        The workloads for which they differ.
    """
    objects = {name: workloads.build(name) for name in workloads.WORKLOADS}
    return [name for name, obj in objects.items() if way(obj) != reference(obj)]


Rounds = Callable[[str], list[float]]
"""Times a workload: time without / time with, one figure a round, in rising order."""


def measure(pair: Comparison, workload: str, seconds: float) -> list[float]:
    """Time one row of a table, in alternating rounds.

    Args:
        pair: What is compared.
        workload: The workload.
        seconds: How long to measure.

    Returns:
        Time without / time with, one figure a round, in rising order.
    """
    obj = workloads.build(workload)
    found = _timing.measure(
        [
            _timing.Contender(name, functools.partial(way.dumps, obj), way.around)
            for name, way in (("without", pair.without), ("with", pair.with_))
        ],
        dataclasses.replace(PLAN, budget_seconds=seconds),
    )
    return _timing.ratios(found["without"], found["with"])


def same_bytes(name: str, pair: Comparison) -> bool:
    """Tell, and say, whether both ways write the reference's bytes on every workload.

    Args:
        name: What is compared.
        pair: The ways.

    Returns:
        False if one of them does not, and so is not to be timed.
    """
    ways = [way for way in (pair.without, pair.with_) if way is not pair.reference]
    different = distinct(*(differing_workloads(way, pair.reference) for way in ways))
    if different:
        print(f"{name}: bytes DIFFER on {', '.join(different)}; not measured")
    return not different


def show(heading: tuple[str, str, str], touches: Iterable[str], markdown: bool, rounds: Rounds) -> None:
    """Time one idea, and print its table.

    Args:
        heading: What it is called, what it is, and what the ratio is of.
        touches: The workloads on which it could show.
        markdown: Whether the table is one for the diary.
        rounds: Times a row.
    """
    name, about, ratio = heading
    if markdown:
        print(f"\n| `{name}` | {ratio} | middle half of the rounds |\n|---|--:|:-:|")
    else:
        print(f"\n{name}: {about}")
    row = "| {} | {:.2f} | {:.2f}-{:.2f} |" if markdown else "  {:24}{:6.2f}   {:.2f}-{:.2f}"
    medians = []
    for workload in touches:
        found = rounds(workload)
        quarter = len(found) // 4
        medians.append(found[len(found) // 2])
        print(row.format(workload, medians[-1], found[quarter], found[-1 - quarter]), flush=True)
    mean = _timing.geometric_mean(medians) or 1.0
    print(f"| **geometric mean** | {mean:.2f} | |" if markdown else f"  {'geometric mean':24}{mean:6.2f}")


class NotCounted(Exception):
    """The instructions could not be counted; the message says why in one line."""


CALLS = 10
"""Dumps that are counted, after twice as many that are not: the interpreter adapts its instructions meanwhile."""

SMALL_CALLS = 100
"""The same of a pickle below ``SMALL_BYTES``."""

SMALL_BYTES = 2_000


def dumps_to_count(way: Way, obj: object) -> int:
    """Dump an object for ``instructions()``, which looks on from outside; for the script that it runs.

    Args:
        way: How to dump.
        obj: The object.

    Returns:
        How many dumps there are to count.
    """
    with way.around():
        calls = CALLS if len(way.dumps(obj)) >= SMALL_BYTES else SMALL_CALLS
        for _ in range(2 * calls):
            way.dumps(obj)
        os.sched_yield()  # nobody else calls it: callgrind begins a new count here
        for _ in range(calls):
            way.dumps(obj)
        os.sched_yield()
    return calls


def instructions(script: Sequence[str]) -> list[int]:
    """Count the instructions of dumps with valgrind's callgrind.

    Args:
        script: A script and its arguments, which prints what its calls of ``dumps_to_count()`` give, as a list in JSON.

    Returns:
        Instructions per dump, of each of these calls.

    Raises:
        NotCounted: If there is no valgrind, or it fails.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise NotCounted("--instructions needs valgrind, which is not installed")
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder, "counts")
        command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={counts}", "--dump-before=sched_yield"]
        ended = subprocess.run(
            [*command, sys.executable, *script],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        if ended.returncode != 0:
            raise NotCounted(f"valgrind failed: {(ended.stderr.strip().splitlines() or ['no output'])[-1]}")
        calls = json.loads(ended.stdout)
        parts = [Path(f"{counts}.{part}") for part in range(2, 2 * len(calls) + 1, 2)]  # the odd ones are in between
        found = [re.search(r"^totals: (\d+)$", p.read_text("utf-8"), re.M) if p.exists() else None for p in parts]
    if None in found:
        raise NotCounted("valgrind did not see where to begin to count: it knows no sched_yield() here")
    return [int(total[1]) // n for total, n in zip(found, calls, strict=True) if total is not None]


def parser(description: str, option: str, names: Iterable[str]) -> argparse.ArgumentParser:
    """Describe the command line of a series.

    Args:
        description: What it does.
        option: The option that chooses an idea, without its dashes.
        names: The ideas.

    Returns:
        The parser.
    """
    made = argparse.ArgumentParser(description=description)
    made.add_argument(f"--{option}", action="append", choices=tuple(names), help="only this one; repeatable")
    made.add_argument("--markdown", action="store_true", help="print Markdown tables")
    made.add_argument("--seconds", type=float, default=PLAN.budget_seconds, help="per row of a table (3)")
    return made
