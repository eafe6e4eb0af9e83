"""The pure engine against the stock pickler where a JIT compiles both: warm, and from the first dump on.

    shape x (stock, fastpickle) --> a process of its own: first dump, 0.1 s of dumps, warm-up, samples
                                --> one line a shape; geometric mean and worst

Each has processes of its own, in turns, since compiled code knows what ran in its process before: in one process the
second pickler would find stock's functions compiled for the first. Before a shape is timed its bytes must be stock's.

Not for: CPython, which has nothing to warm up (``pure.py``).
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import grafting
import pure
from series import Stock, workloads

CONTENDERS: dict[str, Any] = {"stock": Stock, "fastpickle": pure.Pure}

SOON = 0.1
"""CPU seconds from the first dump on: what a short program does."""

WARM_UP = 1.0
"""CPU seconds; quick 0.5."""

SAMPLE = 0.015
"""CPU seconds of one sample, which is a number of dumps."""

SAMPLES = 15

TURNS = ("stock", "fastpickle", "fastpickle", "stock")


def build(shape: str) -> object:
    """Make the object of a workload, or of a table of ``pure.py``."""
    return workloads.build(shape) if shape in workloads.WORKLOADS else pure.tables()[shape]


def take(shape: str, contender: str, warm_up: float) -> dict[str, float]:
    """Time one contender in this process, which has pickled nothing yet.

    Args:
        shape: A workload or a table.
        contender: Which pickler.
        warm_up: CPU seconds.

    Returns:
        CPU seconds per dump: of the ``first``, on average in the first tenth of a second (``soon``), and ``warm``.
    """
    obj = build(shape)
    cls = CONTENDERS[contender]
    clock = time.process_time
    began = clock()
    pure.dumps(cls, obj)
    first = clock() - began
    n = 1
    while clock() - began < SOON:
        pure.dumps(cls, obj)
        n += 1
    soon = (clock() - began) / n
    while clock() - began < SOON + warm_up:
        pure.dumps(cls, obj)
    began = clock()
    n = 0
    while clock() - began < SAMPLE:
        pure.dumps(cls, obj)
        n += 1
    samples = []
    for _ in range(SAMPLES):
        began = clock()
        for _ in range(n):
            pure.dumps(cls, obj)
        samples.append((clock() - began) / n)
    return {"first": first, "soon": soon, "warm": statistics.median(samples)}


def measure(shapes: Sequence[str], warm_up: float) -> tuple[list[list[str]], list[str]]:
    """Time shapes in processes.

    Returns:
        The rows of a table, and the shapes whose bytes are not stock's.
    """
    rows, differ = [], []
    ratios: dict[str, dict[str, float]] = {"warm": {}, "soon": {}, "first": {}}
    for shape in shapes:
        obj = build(shape)
        if pure.dumps(pure.Pure, obj) != pure.dumps(Stock, obj):
            differ.append(shape)
            continue
        taken: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
        for name in TURNS:
            command = [sys.executable, __file__, "--child", shape, name, str(warm_up)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            taken[name].append(json.loads(done.stdout))
        mean = {
            name: {what: statistics.mean(one[what] for one in taken[name]) for what in ratios} for name in CONTENDERS
        }
        for what, found in ratios.items():
            found[shape] = mean["stock"][what] / mean["fastpickle"][what]
        times = [f"{mean[name]['warm'] * 1e3:.4f} ms" for name in CONTENDERS]
        rows.append([shape, *times, *(f"{found[shape]:.2f}" for found in ratios.values())])
    means = [f"{grafting._timing.geometric_mean(found.values()):.2f}" for found in ratios.values()]
    rows.append(["**geometric mean**", "", "", *means])
    rows.append(["**worst**", "", "", *(f"{min(found.values()):.2f}" for found in ratios.values())])
    return rows, differ


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit status: 1 if other bytes than stock's are written.
    """
    parser = argparse.ArgumentParser(
        description="Time the pure engine against the stock pickler under a JIT: above 1 it is faster.",
        epilog="examples:\n  %(prog)s           about 3 minutes\n  %(prog)s --quick   the workloads only, half as warm",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="only the workloads, and half the warm-up")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child is not None:
        shape, contender, warm_up = arguments.child
        print(json.dumps(take(shape, contender, float(warm_up))))
        return 0
    groups = {"workload": list(workloads.WORKLOADS)}
    if not arguments.quick:
        groups["table"] = list(pure.tables())
    differ = []
    for name, shapes in groups.items():
        rows, wrong = measure(shapes, WARM_UP / 2 if arguments.quick else WARM_UP)
        print(
            grafting.table([name, "stock, warm", "fastpickle, warm", "warm", "first 0.1 s", "first dump"], rows), "\n"
        )
        differ += wrong
    where = f"{platform.python_implementation()}, Python {platform.python_version()}"
    command = f"python perf-diary/warm.py{' --quick' if arguments.quick else ''}"
    print(f"{where}; CPU time, stock / fastpickle, each in processes of its own. `{command}`.")
    for shape in differ:
        print(f"NOT TIMED: {shape}: other bytes than stock's", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
