"""The pure engine against the stock pickler: the workloads, and tables of other shapes than theirs.

    stock's pickler --+
                      +-- alternating rounds --> stock / ours, one line a shape; geometric mean and worst
    Pickler, pure   --+

``Pickler`` is used with grafts switched off, as it is where there is no C pickler, for a file that is written in
Python, and for what stands beside objects that C gives up. Before a shape is timed its bytes must be stock's.

Not for: what grafts give (``grafting.py``), nor for one optimisation at a time (``ablations.py``).
"""

from __future__ import annotations

import argparse
import io
import pickle
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import grafting
from series import Stock, workloads

import fastpickle

SEED = 148707


class Pure(fastpickle.Pickler):
    """Hands nothing to the C pickler."""

    fastpickle_grafts = False


class Reduced:
    """Has a reduce of its own, which must be called where stock calls it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Reduced, (self.value,)


def tables() -> dict[str, object]:
    """Make rows as real data has them: with values that are missing, lists of any length, a row that is none."""
    generator = random.Random(SEED)
    pick = generator.random
    words = [f"word{generator.randrange(500)}" for _ in range(10_000)]
    return {
        "matrix": [[pick() for _ in range(100)] for _ in range(200)],
        "lists_of_lists": [[[j] * 3 for j in range(4)] for _ in range(500)],
        "tags_of_any_number": [
            {"id": i, "tags": [f"t{generator.randrange(30)}" for _ in range(generator.randrange(5))]}
            for i in range(2000)
        ],
        "children_of_any_number": [
            {"id": i, "kids": [{"x": j, "y": str(j)} for j in range(generator.randrange(5))]} for i in range(1000)
        ],
        "missing_keys": [{k: pick() for k in "abcd" if pick() < 0.8} for _ in range(2000)],
        "missing_values": [{"a": i, "b": None if pick() < 0.5 else {"c": i}} for i in range(2000)],
        "one_odd_row_in_300": [{"id": i, "x": str(i)} if i % 300 else [i] for i in range(3000)],
        "two_kinds_of_rows": [(i, "a") if pick() < 0.5 else {"b": i} for i in range(2000)],
        "pairs_as_keys": {(i, i + 1): str(i) for i in range(2000)},
        "words": " ".join(words).split(),
        "long_texts": ["".join([chr(60 + i % 50)] * 3000) for i in range(300)],
        "tree": _tree(9),
        "reduces_of_ones_own": [Reduced(i) for i in range(1000)],
        "reduces_in_rows": [{"id": i, "value": Reduced(i)} for i in range(1000)],
    }


def _tree(depth: int) -> object:
    left, right = (_tree(depth - 1), _tree(depth - 1)) if depth else (None, None)
    return {"name": f"n{depth}", "left": left, "right": right, "weight": depth / 3}


def dumps(cls: Callable[..., Any], obj: object) -> bytes:
    """Pickle by a class of picklers."""
    file = io.BytesIO()
    cls(file).dump(obj)
    return file.getvalue()


def measure(name: str, objects: dict[str, object], plan: Any) -> tuple[str, list[str]]:
    """Time some shapes.

    Args:
        name: What they are called together.
        objects: Name -> object.
        plan: How long.

    Returns:
        A table in Markdown, and the shapes whose bytes are not stock's.
    """
    rows = []
    differ = []
    ratios = {}
    for shape, obj in objects.items():
        if dumps(Pure, obj) != dumps(Stock, obj):
            differ.append(shape)
            continue
        seconds = grafting.in_turns(
            {"stock": lambda o=obj: dumps(Stock, o), "pure": lambda o=obj: dumps(Pure, o)}, plan
        )
        ratios[shape] = grafting.ratio(seconds["stock"], seconds["pure"])
        rows.append([shape, f"{ratios[shape]:.2f}"])
    if ratios:
        worst = min(ratios, key=ratios.__getitem__)
        rows.append(["**geometric mean**", f"{grafting._timing.geometric_mean(ratios.values()):.2f}"])
        rows.append(["**worst**", f"{ratios[worst]:.2f} ({worst})"])
    return grafting.table([name, "stock / pure"], rows), differ


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit status: 1 if other bytes than stock's are written.
    """
    parser = argparse.ArgumentParser(
        description="Time the pure engine against the stock pickler: above 1 it is faster.",
        epilog="examples:\n  %(prog)s           about 1 minute\n  %(prog)s --quick   about 10 seconds",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write what is printed to FILE too")
    arguments = parser.parse_args(argv)
    plan = grafting.QUICK if arguments.quick else grafting.FULL
    found = [
        measure("workload", {name: workloads.build(name) for name in workloads.WORKLOADS}, plan),
        measure("table", tables(), plan),
    ]
    where = f"{sys.implementation.name} {sys.version.split()[0]}, protocol {pickle.DEFAULT_PROTOCOL}"
    command = f"python perf-diary/pure.py{' --quick' if arguments.quick else ''}"
    text = "\n\n".join(table for table, _ in found)
    text += f"\n\n{where}; CPU time, medians of alternating rounds. `{command}`.\n"
    if arguments.markdown is not None:
        arguments.markdown.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    differ = [shape for _, shapes in found for shape in shapes]
    for shape in differ:
        print(f"NOT TIMED: {shape}: other bytes than stock's", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
