"""Where the time of a dump goes: profiles of the stock pickler and of the pure engine, side by side.

    run      bytes equal? --> times, in alternating rounds ------+
             py-spy, a process for each engine --> own samples --+--> raw/profile-NAME.json, tables
    plot     raw/profile-NAME.json --> profile-NAME.png                                     (``profile_charts.py``)

py-spy looks on from outside, so that a call is not made dearer than what is done in it; a profiler inside the process,
as pyinstrument, makes stock's many small calls several times slower. The samples say how the time of a dump divides,
the time itself is measured without the profiler. What C takes counts for the Python function that called it.

Not for: how long anything takes (``pure.py``); for that a profile is too coarse.
"""

from __future__ import annotations

import argparse
import collections
import json
import pickle
import platform
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import grafting
import profile_charts as charts
import pure
import series

HERE = Path(__file__).resolve().parent
RAW = HERE / "raw"
"""Where the raw data goes unless ``--raw`` says otherwise."""

TELLING = (
    "json_records",
    "list_of_strs_1k",
    "dataclass_instances",
    "deep_list",
    "small_dict",
    "reduces_of_ones_own",
)
"""Rows, a flat list, instances, the loop, what any dump begins and ends with, and what stock is faster at."""

SECONDS = 6.0
"""CPU time of each profile."""

RATE = 500
"""Samples a second."""

FRAME = re.compile(r"(?P<name>.+?) \((?P<path>.+):\d+\)")
"""A frame as py-spy writes it."""

EPILOG = f"""\
examples:
  %(prog)s run                                 the telling ones: about 2 minutes
  %(prog)s run --only json_records tree        a workload and a table of pure.py
  %(prog)s run --only small_dict --seconds 30  with less noise
  %(prog)s plot                                the charts of the raw data that there is
  %(prog)s plot --charts /tmp                  not into perf-diary/

how to read a chart:
  Above, one dump of both on one scale, by what is done. Below, their functions by own time, without that of Python
  functions that they call, on one scale too. The samples are few: 1 %% of a dump can as well be 0.7 or 1.3 %%.

telling:
  {", ".join(TELLING)}

needs py-spy and matplotlib: pip install 'fastpickle[diary]'. On macOS py-spy wants root.

exit status: 0 done, 1 something did not write stock's bytes and was not profiled, 2 wrong usage, or a tool is missing
"""


class NotProfiled(Exception):
    """There is no profile; the message says why in one line."""


def spin(way: series.Way, obj: object, seconds: float) -> None:
    """Dump again and again; what stands above this function on the stack is profiled."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(20):
            way.dumps(obj)


def own_samples(stacks: str) -> dict[str, int]:
    """Count the samples of each function.

    Args:
        stacks: Collapsed stacks, as py-spy writes them: frames by semicolons, outermost first, and how many samples.

    Returns:
        ``module.function`` -> samples in which it was the innermost one, the most first; only inside of a dump.
    """
    found: collections.Counter[str] = collections.Counter()
    for line in stacks.splitlines():
        stack, _, samples = line.rpartition(" ")
        frames = [match for frame in stack.split(";") if (match := FRAME.fullmatch(frame))]
        names = [f"{Path(frame['path']).stem}.{frame['name'].rpartition('.')[2]}" for frame in frames]
        if "profiles.spin" in names[:-1]:
            found[names[-1]] += int(samples)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def profiler() -> str:
    """Find py-spy.

    Returns:
        Its path.

    Raises:
        NotProfiled: If it is not installed.
    """
    found = shutil.which("py-spy", path=sysconfig.get_path("scripts")) or shutil.which("py-spy")
    if found is None:
        raise NotProfiled("py-spy is not installed: pip install 'fastpickle[diary]'")
    return found


def profile(py_spy: str, engine: str, name: str, seconds: float) -> dict[str, int]:
    """Profile one engine, in a process of its own.

    Args:
        py_spy: The profiler.
        engine: ``stock`` or ``pure``.
        name: The workload or table.
        seconds: How long.

    Returns:
        What ``own_samples`` gives.

    Raises:
        NotProfiled: If py-spy fails, or sees nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "stacks")
        command = [py_spy, "record", "--format=raw", f"--rate={RATE}", "--function", "--full-filenames"]
        command += [f"--output={out}", "--", sys.executable, str(HERE / "profiles.py"), "spin"]
        command += ["--engine", engine, "--only", name, "--seconds", str(seconds)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0 or not out.exists():
            said = [line.strip() for line in ended.stderr.splitlines() if line.strip()] or ["it says nothing"]
            raise NotProfiled(f"py-spy failed: {next((line for line in said if 'Error' in line), said[-1])}")
        found = own_samples(out.read_text(encoding="utf-8"))
    if not found:
        raise NotProfiled("py-spy saw no dump; give it more --seconds")
    return found


def table(document: dict[str, Any]) -> str:
    """Give what a chart shows above as a table in Markdown."""
    both = {engine: charts.by_kind(document, engine) for engine in charts.ENGINES}
    rows = [
        [about, *[f"{1e6 * of.get(kind, 0.0):,.1f}" for of in both.values()]]
        for kind, (about, _) in charts.KINDS.items()
        if any(kind in of for of in both.values())
    ]
    rows.append(["**a dump**", *[f"{1e6 * seconds:,.1f}" for seconds in document["seconds"].values()]])
    return grafting.table([f"{document['name']}, microseconds", *charts.ENGINES.values()], rows)


def run(names: Sequence[str], arguments: argparse.Namespace) -> int:
    """Profile, print the tables, and draw.

    Args:
        names: The workloads and tables.
        arguments: Those of the command.

    Returns:
        The exit status.

    Raises:
        ValueError: If a name is not known.
        NotProfiled: If a tool is missing, or fails.
    """
    chosen = {name: obj for objects in pure.choose(names).values() for name, obj in objects.items()}
    py_spy = profiler()
    if charts.matplotlib is None:
        raise NotProfiled(charts.MISSING)
    where = f"{platform.python_implementation()} {platform.python_version()}, protocol {pickle.DEFAULT_PROTOCOL}"
    arguments.raw.mkdir(parents=True, exist_ok=True)
    differ = []
    for name in names:
        obj = chosen[name]
        if pure.dumps(pure.Pure, obj) != pure.dumps(pure.Stock, obj):
            differ.append(name)
            print(f"NOT PROFILED: {name}: other bytes than stock's", file=sys.stderr)
            continue
        ways = {engine: (lambda cls=cls, obj=obj: pure.dumps(cls, obj)) for engine, cls in pure.ENGINES.items()}
        seconds = grafting.in_turns(ways, grafting.FULL if arguments.seconds >= 1 else grafting.QUICK)
        document = {
            "name": name,
            "where": where,
            "seconds": {engine: statistics.median(rounds) for engine, rounds in seconds.items()},
            "samples": {engine: profile(py_spy, engine, name, arguments.seconds) for engine in pure.ENGINES},
        }
        (arguments.raw / f"profile-{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        print(f"{table(document)}\n", flush=True)
    print(f"{where}; times measured without the profiler, divided by its samples. `python perf-diary/profiles.py run`.")
    charts.draw(arguments.raw, arguments.charts, [name for name in names if name not in differ])
    return 1 if differ else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        description="Draw where the time of a dump goes, in the stock pickler (before) and the pure engine (after).",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "command", choices=("run", "plot", "spin"), metavar="run|plot", help="profile and draw, or draw"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these workloads and tables of pure.py")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of CPU time for each profile (%(default)s)")
    parser.add_argument("--raw", type=Path, default=RAW, metavar="FOLDER", help="where the raw data is (raw)")
    parser.add_argument("--charts", type=Path, default=HERE, metavar="FOLDER", help="where the charts go (perf-diary)")
    parser.add_argument("--engine", choices=pure.ENGINES, help=argparse.SUPPRESS)  # what py-spy looks at: spin
    arguments = parser.parse_args(argv)
    names = list(dict.fromkeys(arguments.only or TELLING))
    try:
        if arguments.command == "run":
            return run(names, arguments)
        objects = pure.choose(names)
        if arguments.command == "plot":
            charts.draw(arguments.raw, arguments.charts, names)
        else:
            (obj,) = (obj for found in objects.values() for obj in found.values())
            spin(series.by(pure.ENGINES[arguments.engine]), obj, arguments.seconds)
    except ValueError as error:
        parser.error(str(error))
    except (NotProfiled, charts.NotDrawn) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
