"""The executors: round trips by payload, many calls in flight, and the workload of I/O with some CPU.

    payloads  executors of one worker, in turns in one process --> raw/executors-payloads.json, a table
    io        executor_tasks.py, one process for each pool, in turns --> raw/executors-io.json, a table
    plot      raw/ --> executors-payloads.png, executors-io.png

Times are of the wall clock, since what a call waits for counts here; ratios are medians of the rounds' ratios.

Not for: how long a pool takes to start, and calls that compute for long.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import functools
import importlib
import json
import multiprocessing
import os
import platform
import random
import site
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import executor_tasks
import grafting

import fastpickle
from fastpickle.cli import _timing
from fastpickle.concurrent import InterpreterPoolExecutor, ProcessThreadPoolExecutor

HERE = Path(__file__).resolve().parent

RAW = HERE / "raw"
"""Where the raw data goes unless ``--raw`` says otherwise."""

FULL = _timing.Plan(sample_seconds=0.005, budget_seconds=1.0, min_rounds=5, max_rounds=401)
QUICK = _timing.Plan(sample_seconds=0.003, budget_seconds=0.1, min_rounds=1, max_rounds=401)

FULL_CALLS, FULL_TASKS, FULL_ROUNDS = 2_000, 10_000, 3
QUICK_CALLS, QUICK_TASKS, QUICK_ROUNDS = 500, 2_000, 2

PASSES = 3
"""How often all rows are gone through: what disturbs the machine for seconds is not to fall on one row alone."""

MIB = 1 << 20

# The executors.

OURS, STOCK, PROCESS, BOTH, THREAD = "interpreters", "stock", "processes", "both", "threads"

ABOUT = {
    OURS: "fastpickle's InterpreterPoolExecutor",
    STOCK: "stock InterpreterPoolExecutor",
    PROCESS: "ProcessPoolExecutor",
    BOTH: "ProcessThreadPoolExecutor",
    THREAD: "ThreadPoolExecutor",
}


def executors(workers: int, only: Sequence[str]) -> dict[str, Executor]:
    """Make those executors that this Python has.

    Args:
        workers: How many workers each has.
        only: The names of those to make.

    Returns:
        Name -> executor, in the order of ``ABOUT``, those of processes started first.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork beside the threads of the others may hang
    # interpreters do not have the script's folder, and spawned processes do
    path: dict[str, Any] = {"initializer": site.addsitedir, "initargs": (str(HERE),)}
    stock: Any = getattr(concurrent.futures, "InterpreterPoolExecutor", None)
    makers: dict[str, Callable[[], Executor]] = {
        PROCESS: lambda: concurrent.futures.ProcessPoolExecutor(workers, mp_context=spawn),
        BOTH: lambda: ProcessThreadPoolExecutor(workers, 1, mp_context=spawn),
        THREAD: lambda: concurrent.futures.ThreadPoolExecutor(workers),
    }
    if sys.platform == "win32":
        del makers[BOTH]
    if stock is not None:
        makers[STOCK] = lambda: stock(workers, **path)
        makers[OURS] = lambda: InterpreterPoolExecutor(workers, **path)
    made = {}
    for name, make in makers.items():
        if name in only:
            made[name] = make()
            made[name].submit(executor_tasks.nothing).result()
    return {name: made[name] for name in ABOUT if name in made}


# The payloads.


def payloads() -> dict[str, Any]:
    """Make what is sent and comes back, the smallest first."""
    generator = random.Random(148707)
    ints = [generator.randrange(1_000_000) for _ in range(10_000)]
    found: dict[str, Any] = {"int": 123_456, "None": None, "str": "twenty letters or so"}
    for number, label in ((100, "100"), (10_000, "10k")):
        found[f"tuple_of_{label}_ints"] = tuple(ints[:number])
        found[f"list_of_{label}_ints"] = ints[:number]
        found[f"dict_of_{label}_ints"] = {f"key {i}": value for i, value in enumerate(ints[:number])}
    for size, label in ((1_000, "1_KB"), (10_000, "10_KB"), (100_000, "100_KB"), (1_000_000, "1_MB")):
        data = generator.randbytes(size)
        found[f"bytes_{label}"] = data
        found |= {f"list_{label}": [data], f"tuple_{label}": (data,), f"dict_{label}": {"data": data}}
    ten = [generator.randbytes(100_000) for _ in range(10)]
    found |= {"list_10x100_KB": ten, "tuple_10x100_KB": tuple(ten), "dict_10x100_KB": dict(enumerate(ten))}
    found["dataclasses_100"] = [executor_tasks.Point(i, f"point {i}", [i, i + 1]) for i in range(100)]
    with contextlib.suppress(ImportError):
        found["numpy_1_MB"] = importlib.import_module("numpy").arange(125_000.0)
    return found


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two objects are equal, arrays item by item."""
    equal = one == other
    return bool(equal.all() if hasattr(equal, "all") else equal)


def rows(in_flight: int) -> dict[str, tuple[executor_tasks.Call, int]]:
    """List what is timed: row -> what is called, and how many calls of the executor that is."""
    found: dict[str, tuple[executor_tasks.Call, int]] = {
        name: (executor_tasks.round_trip(obj), 1) for name, obj in payloads().items()
    }
    found["no-ops_in_flight"] = executor_tasks.no_ops(in_flight), in_flight
    found["map_chunksize_100"] = executor_tasks.mapped(in_flight), in_flight
    return found


Seconds = dict[str, list[float]]
"""Executor -> seconds of one call, a figure for each round."""


def in_turns(ways: dict[str, Callable[[], object]], plan: _timing.Plan, on_round: Any) -> Seconds:
    """Time several ways by the wall clock, in alternating rounds; as ``_timing.measure``."""
    contenders = [_timing.Contender(name, call) for name, call in ways.items()]
    loops = {way.name: _timing.loops_for(way, plan.sample_seconds) for way in contenders}
    seconds: Seconds = {way.name: [] for way in contenders}
    began = time.perf_counter()
    for done in range(plan.max_rounds):
        share = (time.perf_counter() - began) / plan.budget_seconds
        if done >= plan.min_rounds and share > 1:
            break
        on_round(min(1.0, share))
        for way in contenders:
            seconds[way.name].append(_timing.sample(way, loops[way.name], time.perf_counter))
        contenders.reverse()
    return seconds


def measure_payloads(arguments: argparse.Namespace, report: grafting.Report) -> dict[str, Seconds]:
    """Time every row with every executor.

    Args:
        arguments: The parsed command line.
        report: Told what does not come back as it was sent, which is not timed.

    Returns:
        Row -> its times.
    """
    chosen = rows(QUICK_CALLS if arguments.quick else FULL_CALLS)
    if arguments.only:
        exact = set(arguments.only) & set(chosen)
        parts = set(arguments.only) - exact
        chosen = {name: row for name, row in chosen.items() if name in exact or any(part in name for part in parts)}
    if not chosen:
        raise SystemExit(f"no such row; there are: {', '.join(rows(1))}")
    objects = payloads()
    plan = QUICK if arguments.quick else FULL
    found: dict[str, Seconds] = {name: {} for name in chosen}
    with contextlib.ExitStack() as stack, grafting.progress(PASSES * len(chosen)) as step:
        made = executors(arguments.workers, arguments.executors)
        for executor in reversed(made.values()):
            stack.enter_context(executor)
        ways: dict[str, dict[str, Callable[[], object]]] = {}
        for name, (call, _) in chosen.items():
            calls = {way: functools.partial(call, executor) for way, executor in made.items()}
            problems = {way: problem(one, objects.get(name)) for way, one in calls.items()}
            for way, why in problems.items():
                if why is not None:
                    report.refuse(f"{name}, {ABOUT[way]}", why)
            ways[name] = {way: one for way, one in calls.items() if problems[way] is None}
        for name in [*chosen] * PASSES:
            for way, values in in_turns(ways[name], plan, step(name)).items():
                found[name].setdefault(way, []).extend(value / chosen[name][1] for value in values)
    return found


def problem(call: Callable[[], object], payload: Any) -> str | None:
    """Say why a call is not to be timed, None if what comes back is the payload, or there is none."""
    try:
        came = call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None if payload is None or is_same(came, payload) else "another object came back"


def ratio(seconds: Seconds, slow: str, fast: str) -> float | None:
    """Give the median of the rounds' ratios, None if one of the two was not timed."""
    if slow not in seconds or fast not in seconds:
        return None
    return statistics.median(_timing.ratios(seconds[slow], seconds[fast]))


RATIOS = ((STOCK, OURS), (PROCESS, OURS), (PROCESS, BOTH))


def at_least(what: str, value: float | None, limit: float, where: str = "") -> grafting.Line:
    """Compare one ratio with what is wanted."""
    line = grafting.Line(what, f"at least {limit}x")
    if value is not None:
        line.measured, line.holds = grafting.times(value) + where, value >= limit
    return line


def lines_of_payloads(found: dict[str, Seconds]) -> list[grafting.Line]:
    """Compare the round trips with what is wanted."""
    lines = []

    def one(row: str, slow: str, fast: str, limit: float) -> None:
        if (value := ratio(found.get(row, {}), slow, fast)) is not None:
            lines.append(at_least(f"{row}: {slow} / {fast}", value, limit))

    one("list_10x100_KB", STOCK, OURS, 40)
    one("int", STOCK, OURS, 1.25)
    for slow, fast in RATIOS:
        values = {name: value for name, row in found.items() if (value := ratio(row, slow, fast)) is not None}
        if values:
            worst = min(values, key=values.__getitem__)
            below = sum(value < 1 for value in values.values())
            where = f" ({worst}; {below} of {len(values)} below 1x)" if below else f" ({worst})"
            lines.append(at_least(f"{slow} / {fast}: the worst row", values[worst], 1, where))
    for ours in (OURS, BOTH):
        one("no-ops_in_flight", PROCESS, ours, 2)
        one("map_chunksize_100", PROCESS, ours, 1)
    return lines


def show_payloads(found: dict[str, Seconds], report: grafting.Report) -> None:
    """Add the tables of the round trips."""
    ways = [way for way in ABOUT if any(way in row for row in found.values())]
    pairs = [pair for pair in RATIOS if set(pair) <= set(ways)]
    heading = ["microseconds a call", *ways, *(f"{slow} / {fast}" for slow, fast in pairs)]
    table = []
    for name, seconds in found.items():
        medians = [1e6 * statistics.median(seconds[way]) if way in seconds else None for way in ways]
        quotients = [ratio(seconds, *pair) for pair in pairs]
        table.append([name, *map(grafting.microseconds, medians), *map(grafting.times, quotients)])
    report.lines += lines_of_payloads(found)
    report.tables.append(grafting.table(heading, table))


# The workload of I/O with some CPU.


@dataclasses.dataclass(frozen=True)
class Size:
    """One executor of so many workers."""

    kind: str
    """``threads``, ``processes`` or ``both``."""
    workers: int
    """Processes."""
    threads: int
    """Threads in each of them."""

    @property
    def total(self) -> int:
        """Threads in all."""
        return self.workers * self.threads

    def __str__(self) -> str:
        return f"{self.workers} x {self.threads}" if self.kind == BOTH else f"{self.total} {self.kind}"


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sizes(quick: bool) -> list[Size]:
    """List the pools; ProcessThreadPoolExecutor has a process for each core."""
    found = [Size(THREAD, 1, number) for number in (10, 20, 30, 60)]
    found += [Size(PROCESS, number, 1) for number in ((20, 60) if quick else (20, 60, 80))]
    if sys.platform != "win32":
        found += [Size(BOTH, cores(), number) for number in (10, 20, 30, 40, 60)]
    return found


def measure_io(chosen: Sequence[Size], tasks: int, rounds: int) -> dict[Size, list[dict[str, Any]]]:
    """Run each pool once in each round, each in a process of its own.

    Args:
        chosen: The pools.
        tasks: How many tasks each has to do.
        rounds: How many rounds.

    Returns:
        Pool -> what was measured, for each round.
    """
    found: dict[Size, list[dict[str, Any]]] = {size: [] for size in chosen}
    order = list(chosen)
    with grafting.progress(rounds * len(order)) as step:
        for _ in range(rounds):
            for size in order:
                step(str(size))
                command = [sys.executable, executor_tasks.__file__, size.kind]
                command += map(str, (size.workers, size.threads, tasks))
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode:
                    raise SystemExit(f"{size}: {ended.stderr.strip()}")
                found[size].append(json.loads(ended.stdout))
            order.reverse()
    return found


def mebibytes(runs: list[dict[str, Any]], whose: str) -> float | None:
    """Give the median of ``memory``, the workers', or of what the ``caller`` grew by; None without psutil."""
    found = [run[whose] for run in runs]
    return None if None in found else statistics.median(found) / MIB


def show_io(found: dict[Size, list[dict[str, Any]]], tasks: int, report: grafting.Report) -> None:
    """Add the tables of the workload."""
    floor = tasks * executor_tasks.CPU_SECONDS / cores()
    table = []
    best: dict[str, tuple[float, float | None, Size]] = {}
    for size, runs in found.items():
        seconds, mib = statistics.median(run["seconds"] for run in runs), mebibytes(runs, "memory")
        if size.kind not in best or seconds < best[size.kind][0]:
            best[size.kind] = seconds, mib, size
        fastest = min(run["seconds"] for run in runs)
        memory = ["-" if x is None else f"{x:.1f}" for x in (mib, mebibytes(runs, "caller"))]
        shown = [f"{seconds:.2f}", f"{fastest:.2f}", grafting.times(seconds / floor), *memory]
        table.append([str(size), str(size.total), *shown])
    heading = ["pool", "threads in all", "seconds", "fastest round", "/ CPU floor", "workers, MiB", "caller, MiB"]
    report.tables.append(grafting.table(heading, table))
    if BOTH in best:
        seconds, mib, size = best[BOTH]
        report.lines.append(grafting.at_most(f"{size} / CPU floor of {floor:.2f} s", seconds / floor, 1.15))
        if THREAD in best:
            report.lines.append(at_least(f"{best[THREAD][2]} / {size}, time", best[THREAD][0] / seconds, 1.8))
        if PROCESS in best:
            much = best[PROCESS][1]
            value = mib / much if mib and much else None
            report.lines.append(grafting.at_most(f"{size} / {best[PROCESS][2]}, memory", value, 0.1))


# The command line.


def end(report: grafting.Report, arguments: argparse.Namespace, about: str, raw: dict[str, Any]) -> int:
    """Write the raw data, print the report, and write it.

    Returns:
        The exit status: 1 if something was not timed that all executors can be given.
    """
    where = f"{platform.python_implementation()} {platform.python_version()}"
    command = f"python perf-diary/executors.py {arguments.command}{' --quick' if arguments.quick else ''}"
    report.notes.append(f"{where}, fastpickle {fastpickle.__version__}, {cores()} cores; {about}. `{command}`.")
    arguments.raw.mkdir(parents=True, exist_ok=True)
    document = {"where": where, "cores": cores(), **raw}
    (arguments.raw / f"executors-{arguments.command}.json").write_text(json.dumps(document), encoding="utf-8")
    refused, report.refused = report.refused, {}
    report.notes += [f"Not timed: {what}: {why}." for what, why in refused.items()]
    text = report.markdown()
    sys.stdout.write(text)
    if arguments.markdown is not None:
        arguments.markdown.write_text(text, encoding="utf-8")
    return 1 if any(not what.startswith("numpy") for what in refused) else 0


def run_payloads(arguments: argparse.Namespace) -> int:
    """Measure the round trips."""
    report = grafting.Report()
    found = measure_payloads(arguments, report)
    show_payloads(found, report)
    count = f"{arguments.workers} worker{'s' if arguments.workers > 1 else ''} each"
    return end(report, arguments, f"{count}, wall clock, medians of alternating rounds", {"rows": found})


def run_io(arguments: argparse.Namespace) -> int:
    """Measure the workload of I/O with some CPU."""
    tasks = arguments.tasks or (QUICK_TASKS if arguments.quick else FULL_TASKS)
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else FULL_ROUNDS)
    chosen = [size for size in sizes(arguments.quick) if not arguments.only or str(size) in arguments.only]
    if not chosen:
        raise SystemExit(f"no such pool; there are: {', '.join(map(str, sizes(arguments.quick)))}")
    report = grafting.Report()
    found = measure_io(chosen, tasks, rounds)
    show_io(found, tasks, report)
    pools = [{**dataclasses.asdict(size), "runs": runs} for size, runs in found.items()]
    floor = tasks * executor_tasks.CPU_SECONDS / cores()
    about = f"{tasks:,} tasks, medians of {rounds} alternating rounds"
    return end(report, arguments, about, {"tasks": tasks, "floor": floor, "pools": pools})


def run_plot(arguments: argparse.Namespace) -> int:
    """Draw the charts of the raw data that there is."""
    charts = importlib.import_module("executor_charts")
    return charts.draw(arguments.raw, arguments.charts)  # type: ignore[no-any-return]  # an int


EPILOG = f"""\
executors of the round trips, where this Python has them:
{chr(10).join(f"  {name:14}{about}" for name, about in ABOUT.items())}

examples:
  %(prog)s payloads                       round trips: about 3 minutes
  %(prog)s payloads --quick               the same in 1 minute
  %(prog)s payloads --only 100_KB int     the row "int", and those with "100_KB" in their names
  %(prog)s payloads --workers 2           two workers each: shows in the rows of many calls in flight
  %(prog)s io                             I/O with some CPU: about 6 minutes, and 1 GB of memory
  %(prog)s io --quick                     a fifth of the tasks, two rounds: about 1 minute
  %(prog)s io --only "2 x 30" "30 threads"
  %(prog)s plot                           both charts, of what was measured last

how to read it:
  payloads: microseconds from submit() to the result in the caller, one call after the other; of the last two rows, a
  share of many calls that are submitted at once. A ratio is the slow one's time / the fast one's: above 1 the latter
  is faster, and 10 %% is no result. Processes have CPU caches of their own, so on a busy machine they lose more.
  io: the floor is what the tasks compute / the cores. Memory is what would be free if the workers ended (USS), of
  threads what the caller has grown by; where processes are forked (Linux before 3.14) they share much of it.

exit status: 0 measured, 1 an executor could not be timed, 2 wrong usage
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments, None for those of the process.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        description="Measure the executors against those of concurrent.futures, print tables, plot them.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run, about in (
        ("payloads", run_payloads, "round trips by payload, and many calls in flight"),
        ("io", run_io, "tasks of 20 ms of sleep and 0.8 ms of CPU"),
        ("plot", run_plot, "draw the charts"),
    ):
        one = commands.add_parser(name, help=about, description=about)
        one.set_defaults(run=run)
        one.add_argument("--raw", type=Path, default=RAW, metavar="FOLDER", help="where the raw data is (raw)")
        if run is run_plot:
            one.add_argument("--charts", type=Path, default=HERE, metavar="FOLDER", help="where the charts go")
            continue
        one.add_argument("--quick", action="store_true", help="fewer and shorter samples")
        one.add_argument("--only", nargs="+", metavar="NAME", help="measure these rows")
        one.add_argument("--markdown", type=Path, metavar="FILE", help="write what is printed to FILE too")
        if run is run_payloads:
            one.add_argument("--workers", type=int, default=1, metavar="N", help="workers of each executor (1)")
            one.add_argument("--executors", nargs="+", choices=ABOUT, default=list(ABOUT), help="only these")
        else:
            one.add_argument("--tasks", type=int, metavar="N", help=f"so many tasks ({FULL_TASKS:,})")
            one.add_argument("--rounds", type=int, metavar="N", help=f"so many rounds ({FULL_ROUNDS})")
    arguments = parser.parse_args(argv)
    return arguments.run(arguments)  # type: ignore[no-any-return]  # an int


if __name__ == "__main__":
    sys.exit(main())
