"""What ``grafting.py`` cannot come below: the parts of a dump that are others' code, timed without ours.

    C, frames to a file, joined          \\
    the same, and one look at the bytes   > in turns with pickle.dumps, for each workload of plain data
    dill.dumps that saves nothing        /
    C, which gives up at an object       -- in turns with the pure engine, on mixed data

C hands over frame by frame what it writes to a file, and only a pickler with a file can be asked to give up. Up to
3.14 some bytes of C's are not Python's, so every byte has to be looked at: here by the fastest search for what may be
one, and nothing is done about it. `dill.dumps` makes a pickler, a file and a frame before anything is saved.

Not for: what is reached (``grafting.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import io
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import grafting
import shapes

import fastpickle
from fastpickle._stdlib import awkward_batches
from fastpickle.accelerator.reading import find_doubtful


class _Pieces:
    """A file that keeps what is written to it."""

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.write = self.pieces.append


def to_a_file(obj: object, is_looked_at: bool = False) -> bytes:
    """Pickle with C to a file, and join what was written; or look for the ends that C writes otherwise, too."""
    file = _Pieces()
    pickle.Pickler(file).dump(obj)
    if is_looked_at and awkward_batches:
        for piece in file.pieces:
            find_doubtful(piece)
    return file.pieces[0] if len(file.pieces) == 1 else b"".join(file.pieces)


def saves_nothing(dill: ModuleType) -> Callable[[object], object]:
    """Return `dill.dumps` by a pickler whose `save` does nothing."""

    class Pickler(dill.Pickler):  # type: ignore[misc,name-defined]  # dill has no types
        def save(self, obj: object, save_persistent_id: bool = True) -> None:
            pass

    def dumps(obj: object) -> object:
        dill._dill.Pickler, original = Pickler, dill._dill.Pickler
        try:
            return dill.dumps(obj)
        finally:
            dill._dill.Pickler = original

    return dumps


def measure(plan: Any) -> str:
    """Time everything.

    Args:
        plan: How long.

    Returns:
        The table of the workloads, and what they come to, in Markdown.
    """
    dill = _dill()
    if dill is not None:
        dill.extend(False)
    rows = []
    values: dict[str, list[float]] = {"file": [], "look": [], "dill": []}
    for group in ("plain", "small"):
        for name, make in shapes.GROUPS[group].items():
            obj = make()
            ways: dict[str, Callable[[], object]] = {
                "c": functools.partial(pickle.dumps, obj),
                "file": functools.partial(to_a_file, obj),
                "look": functools.partial(to_a_file, obj, is_looked_at=True),
            }
            if dill is not None:
                ways["dill"] = functools.partial(saves_nothing(dill), obj)
            seconds = grafting.in_turns(ways, plan)
            ratios = {way: grafting.ratio(seconds[way], seconds["c"]) for way in ways if way != "c"}
            if "dill" in ratios:
                ratios["dill"] += ratios["look"]  # and C has to write what is not saved
            if group == "plain":
                for way, value in ratios.items():
                    values[way].append(value)
            rows.append([name, *(grafting.times(ratios.get(way)) for way in values)])
    mean = grafting._timing.geometric_mean
    rows.append(["**geometric mean**, plain", *(grafting.times(mean(v)) if v else "-" for v in values.values())])
    heading = ["shape", "C to a file / C", "and looked at / C", "and `dill.dumps` of nothing / C"]
    return "\n\n".join([grafting.table(heading, rows), flat(plan), mixed(plan)])


def flat(plan: Any) -> str:
    """Time C with a file and the look for ints, as many as would show what is the same for any number."""
    seconds = {}
    for count in (1_000, 100_000):
        obj = shapes.GROUPS["flat"]["flat_ints"](count)
        ways = {"c": functools.partial(pickle.dumps, obj), "look": functools.partial(to_a_file, obj, is_looked_at=True)}
        measured = grafting.in_turns(ways, plan)
        seconds[count] = grafting.ratio(measured["look"], measured["c"])
    few, many = (grafting.times(value) for value in seconds.values())
    return f"C to a file and looked at / C, flat_ints: {few} for 1,000, {many} for 100,000."


class _GivesUp(pickle.Pickler):
    """Pickles nothing but what nobody can be asked about."""

    def reducer_override(self, obj: Any) -> Any:
        raise _Refused


class _Refused(Exception):
    pass


class _Pure(fastpickle.Pickler):
    """The pure engine."""

    fastpickle_grafts = False


def mixed(plan: Any) -> str:
    """Time one try at mixed data, which C gives up where the first object is that it must not save."""

    def one_try(obj: object) -> None:
        with contextlib.suppress(_Refused):
            _GivesUp(_Pieces(), pickle.DEFAULT_PROTOCOL).dump(obj)

    def pure(obj: object) -> None:
        _Pure(io.BytesIO(), pickle.DEFAULT_PROTOCOL).dump(obj)

    shares = {}
    for name, make in shapes.GROUPS["mixed"].items():
        obj = make()
        seconds = grafting.in_turns(
            {"try": functools.partial(one_try, obj), "pure": functools.partial(pure, obj)}, plan
        )
        shares[name] = grafting.ratio(seconds["try"], seconds["pure"])
    most = sorted(shares, key=shares.__getitem__, reverse=True)[:3]
    words = ", ".join(f"{name} {shares[name]:.0%}" for name in most)
    return f"One try that C gives up, of the time of the pure engine: {words}; the others less."


def _dill() -> ModuleType | None:
    try:
        return importlib.import_module("dill")
    except ImportError:
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        description="Time the parts of a dump that are others' code: what grafting.py measures cannot come below them.",
        epilog="examples:\n  %(prog)s           about 40 seconds\n  %(prog)s --quick   about 5 seconds",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write what is printed to FILE too")
    arguments = parser.parse_args(argv)
    if pickle.Pickler.__module__ != "_pickle":
        parser.error("there is no C pickler here")
    text = measure(grafting.QUICK if arguments.quick else grafting.FULL)
    where = f"CPython {sys.version.split()[0]}, protocol {pickle.DEFAULT_PROTOCOL}"
    command = f"python perf-diary/floors.py{' --quick' if arguments.quick else ''}"
    text += f"\n\n{where}; CPU time, medians of alternating rounds. `{command}`.\n"
    if arguments.markdown is not None:
        arguments.markdown.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
