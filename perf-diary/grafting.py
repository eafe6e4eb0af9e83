"""What handing plain subtrees to the C pickler (``fastpickle.graft``) is to reach, and what it does reach here.

    shapes.py --> a shape --in one process, in turns----> C, fastpickle.dumps, stock       nothing installed
                                                     \\-> C, cloudpickle, dill.dumps        in fastpickle.patched()
              --> mixed   --a child, another child------> as it is, FASTPICKLE_PURE=1      in turns
              --> flat    --in one process, in turns----> 1,000 ... 1,000,000 objects      C and fastpickle
              --> memory  --a child for each dump-------> peak memory, stock and fastpickle

Nothing here knows how the package does it, or whether this version does it at all: the entry points that
users call are timed, and the ratio is the median of the rounds' ratios (CPU time). The garbage collector
is on, as it is for users, and runs before each sample. What does not write stock's bytes is not timed,
and the exit status is 1; a wanted value that is missed leaves it at 0.

Not for: the figures of the README (``harness.py``), or why something is fast (``ablations.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import functools
import gc
import hashlib
import importlib.util
import json
import os
import pickle
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

sys.path.insert(0, str(Path(__file__).resolve().parent))

import shapes

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import fastpickle
from fastpickle.cli import _compare, _timing

Dumps = Callable[[object], bytes]
OnRound = Callable[[float], object]

FULL = _timing.Plan(sample_seconds=0.010, budget_seconds=1.0, min_rounds=5, max_rounds=41)
"""About 1 s for each shape with nothing installed, and as long again with ``patched()``."""

QUICK = _timing.Plan(sample_seconds=0.005, budget_seconds=0.1, min_rounds=3, max_rounds=11)

CHILDREN = 5
"""Pairs of processes for each shape of ``mixed``: one can be off as a whole, by where things lie in its memory."""

QUICK_CHILDREN = 3

COUNTS = (1_000, 10_000, 100_000, 1_000_000)
"""Objects of the shapes of ``flat``; a quick run leaves the last one out."""

FLAT_ROUNDS = 7

SIZES = (20_000_000, 200_000_000)
"""Bytes of the pickles of ``memory``; a quick run leaves the last one out."""

MIB = 1 << 20

EPILOG = f"""\
groups:
{chr(10).join(f"  {name:10}{about}" for name, about in shapes.ABOUT.items())}

examples:
  %(prog)s                            everything: about 7 minutes, and 2 GB of memory
  %(prog)s --quick                    everything once over: about 1 minute
  %(prog)s --only plain small         the first lines of the table
  %(prog)s --only dict_100k deep_50   two shapes
  %(prog)s --only mixed --markdown mixed.md

how to read it:
  1.15x is a time 1.15 times as long as the other one's, so less is better. "holds" says whether the measured
  value is as wanted; a quick run is good to 10 %% or so, so repeat what misses by less with --only and without
  --quick. Nothing else should run on the machine. FASTPICKLE_PURE=1 in front measures the pure engine alone.

exit status: 0 measured, 1 something did not write stock's bytes and was not timed, 2 wrong usage
"""


@dataclasses.dataclass
class Line:
    """One line of the first table."""

    what: str
    """What is measured."""
    wanted: str
    """What it should be."""
    measured: str = "-"
    """What it is; ``-`` if it could not be measured."""
    holds: bool | None = None
    """Whether it is as wanted, None if it could not be measured."""


@dataclasses.dataclass
class Found:
    """What was found out about one shape."""

    microseconds: dict[str, float]
    """Way -> median time of a dump."""
    ratios: dict[tuple[str, str], float]
    """Slow and fast way -> median of the rounds' ratios."""


@dataclasses.dataclass
class Report:
    """What there is to say when all is done."""

    lines: list[Line] = dataclasses.field(default_factory=list)
    """The first table."""
    tables: list[str] = dataclasses.field(default_factory=list)
    """The others, in Markdown."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """What the reader should know."""
    refused: dict[str, str] = dataclasses.field(default_factory=dict)
    """What was not timed because its bytes are not stock's -> how they differ."""

    def refuse(self, what: str, why: str) -> None:
        """Note, and say at once, that something is not timed."""
        self.refused[what] = why
        print(f"NOT TIMED: {what}: {why}", file=sys.stderr)

    def markdown(self) -> str:
        """Give all of it as Markdown."""
        parts = []
        if self.lines:
            rows = ["| what | wanted | measured | holds |", "|---|---|---|:-:|"]
            said = {True: "yes", False: "**no**", None: "-"}
            rows += [f"| {x.what} | {x.wanted} | {x.measured} | {said[x.holds]} |" for x in self.lines]
            parts.append("\n".join(rows))
        parts += self.tables
        if self.refused:
            parts.append(
                "**Not timed, since the bytes are not stock's:**\n\n"
                + "\n".join(f"- {what}: {why}" for what, why in self.refused.items())
            )
        parts += self.notes
        return "\n\n".join(parts) + "\n"


# Measuring.


def in_turns(
    ways: dict[str, Callable[[], object]], plan: _timing.Plan, on_round: OnRound = lambda done: None
) -> dict[str, list[float]]:
    """Time several ways in alternating rounds, as ``_timing.measure`` does, but with the garbage collector on.

    Args:
        ways: Name -> what is called.
        plan: How long to measure.
        on_round: Told between rounds which share of the work is done (0 to 1).

    Returns:
        Name -> CPU seconds per call, one figure a round; figures at the same index belong together.
    """
    began = time.perf_counter()
    loops = {name: loops_for(call, plan.sample_seconds) for name, call in ways.items()}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways)
    for done in range(plan.max_rounds):
        elapsed = time.perf_counter() - began
        if done >= plan.min_rounds and elapsed > plan.budget_seconds:
            break
        on_round(max(done / plan.max_rounds, min(1.0, elapsed / plan.budget_seconds)))
        for name in order:
            seconds[name].append(sample(ways[name], loops[name]))
        order.reverse()
    return seconds


def loops_for(call: Callable[[], object], seconds: float) -> int:
    """Say how many calls make a sample of some length."""
    return _timing.loops_for(_timing.Contender("", call), seconds)


def sample(call: Callable[[], object], loops: int) -> float:
    """Time one sample; gives the CPU seconds of one call."""
    gc.collect()
    start = _timing.CPU_CLOCK()
    for _ in range(loops):
        call()
    return (_timing.CPU_CLOCK() - start) / loops


def ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """Give the median of the rounds' ratios."""
    return statistics.median(_timing.ratios(slow, fast))


def difference(stock: Callable[[], bytes], fast: Callable[[], bytes], around: Any = fastpickle.patched) -> str | None:
    """Compare the bytes of two ways, the first of them with nothing installed.

    Args:
        stock: The one.
        fast: The other.
        around: Makes the context for it.

    Returns:
        None, or how they differ, in a few words.
    """
    stock()  # some objects differ after they were pickled for the first time
    expected = stock()
    try:
        with around():
            written = fast()
    except Exception as error:
        return f"stock writes {len(expected)} bytes, this raises {type(error).__name__}: {error}"
    if written == expected:
        return None
    if stock() != expected:
        return "stock itself writes other bytes each time"
    place = next((i for i, (a, b) in enumerate(zip(written, expected, strict=False)) if a != b), len(written))
    return f"{len(expected)} bytes of stock, {len(written)} of this one, the first other one is byte {place}"


def measure_shape(
    name: str, obj: object, plan: _timing.Plan, dill: ModuleType | None, report: Report, on_round: OnRound
) -> Found:
    """Check and time one shape.

    Args:
        name: Its name.
        obj: The object.
        plan: How long to measure.
        dill: The module, or None.
        report: Told of bytes that differ.
        on_round: Told which share is done.

    Returns:
        What was found out; what must not or cannot be timed is not in it.
    """
    found = Found({}, {})
    stock = functools.partial(_compare.stock_dumps, obj)
    fast = functools.partial(fastpickle.dumps, obj)
    ways: dict[str, Callable[[], bytes]] = {}
    installed: dict[str, Callable[[], bytes]] = {}
    if name not in shapes.GROUPS["closure"]:
        ways["c"] = installed["c"] = functools.partial(pickle.dumps, obj)
        ways["stock"] = stock
        differs = difference(stock, fast, contextlib.nullcontext)
        if differs is None:
            ways["fastpickle"] = fast
        else:
            report.refuse(f"fastpickle.dumps of {name}", differs)
    if name in shapes.GROUPS["closure"] or name in shapes.GROUPS["objects"]:
        with contextlib.suppress(ImportError):
            installed["cloudpickle"] = functools.partial(importlib.import_module("cloudpickle").dumps, obj)
    if dill is not None:
        call = functools.partial(dill.dumps, obj)
        try:
            call()
        except Exception as exc:  # dill 0.4.1 on 3.15 pickles no function by value
            print(f"dill.dumps of {name} fails on stock: {exc}", file=sys.stderr)
        else:
            backend = importlib.import_module("fastpickle.backends.dill")
            for way, ours in (("dill", call), ("backend", functools.partial(backend.dumps, obj))):
                differs = difference(call, ours)
                if differs is None:
                    installed[way] = ours
                else:
                    report.refuse(f"{way}: dumps of {name}", differs)
    if "fastpickle" in ways:
        add(found, in_turns(ways, plan, lambda done: on_round(done / 2)))
    if "dill" in installed:
        with fastpickle.patched():  # once a shape: a class must not be changed a thousand times (see there)
            add(found, in_turns(installed, plan, lambda done: on_round(0.5 + done / 2)))
    return found


def add(found: Found, seconds: dict[str, list[float]]) -> None:
    """Put what was measured together in one process into what was found."""
    for slow, figures in seconds.items():
        found.microseconds.setdefault(slow, statistics.median(figures) * 1e6)
        for fast, others in seconds.items():
            found.ratios.setdefault((slow, fast), ratio(figures, others))


# Children: this script again, one request and one answer a line.


class Child:
    """A process of its own that checks, times and dumps what it is asked to."""

    def __init__(self, pure: bool = False) -> None:
        environment = {**os.environ, "FASTPICKLE_PURE": "1"} if pure else dict(os.environ)
        command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, **request: Any) -> Any:
        """Have something done.

        Args:
            request: ``do``, a method of ``Served``, and its arguments.

        Returns:
            Its result.

        Raises:
            RuntimeError: If the process ended.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a child process ended with status {self.process.wait()} on {request}")
        return json.loads(answer)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Served:
    """What a child can be asked for."""

    def __init__(self, dill: ModuleType | None) -> None:
        self.dill = dill
        self.call: Callable[[], bytes] = bytes
        self.around: Any = contextlib.nullcontext

    def check(self, shape: str, entry: str) -> str | None:
        """Make an object, and compare the bytes; what comes next is about this one."""
        make = next(group[shape] for group in shapes.GROUPS.values() if shape in group)
        obj = make()
        if entry == "dill":
            assert self.dill is not None
            self.call = functools.partial(self.dill.dumps, obj)
            self.around = fastpickle.patched
            return difference(self.call, self.call)
        self.call = functools.partial(fastpickle.dumps, obj)
        self.around = contextlib.nullcontext
        return difference(functools.partial(_compare.stock_dumps, obj), self.call, contextlib.nullcontext)

    def calibrate(self, seconds: float) -> int:
        """Say how many calls make a sample of some length."""
        with self.around():
            return loops_for(self.call, seconds)

    def sample(self, loops: int) -> float:
        """Time a sample; gives CPU seconds of a call."""
        with self.around():
            return sample(self.call, loops)

    def peak(self, shape: str, size: int, fast: bool) -> dict[str, Any]:
        """Dump an object to a file, and give the memory before and at most, and a digest of what was written."""
        obj = shapes.GROUPS["memory"][shape](size)
        gc.collect()
        before = peak_bytes()
        with tempfile.TemporaryFile() as file:
            if fast:
                fastpickle.dump(obj, file)
            else:
                pickle._Pickler(file).dump(obj)  # type: ignore[attr-defined]
            peak = peak_bytes()
            file.seek(0)
            digest = hashlib.sha256()
            while part := file.read(MIB):
                digest.update(part)
            return {"before": before, "peak": peak, "size": file.tell(), "digest": digest.hexdigest()}


def serve() -> None:
    """Do what comes in, until there is no more."""
    with _compare.stock_state([]) as dill:
        served = Served(dill)
        for line in sys.stdin:
            request = json.loads(line)
            answer = getattr(served, request.pop("do"))(**request)
            print(json.dumps(answer), flush=True)


def peak_bytes() -> int:
    """Give the most memory that this process ever had, in bytes.

    Linux' ru_maxrss begins with that of the process that started this one, so VmHWM is better where it is.
    """
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def mixed_ratios(
    shape: str, entry: str, plan: _timing.Plan, pairs: int, report: Report, on_round: OnRound
) -> tuple[float, float] | None:
    """Time a shape as it is against the pure engine, each in processes of its own, which take turns.

    Args:
        shape: The shape.
        entry: ``fastpickle`` or ``dill``.
        plan: How long to measure, of one pair of processes.
        pairs: How many pairs of processes.
        report: Told of bytes that differ.
        on_round: Told which share is done.

    Returns:
        Microseconds of the pure engine, and how many times as long it takes as it is; None if bytes differ.
    """
    found, pure_seconds = [], []
    for place in range(pairs):
        with Child() as grafting, Child(pure=True) as pure:
            for child, name in ((grafting, entry), (pure, f"{entry}, FASTPICKLE_PURE=1")):
                differs = child.ask(do="check", shape=shape, entry=entry)
                if differs:
                    report.refuse(f"{name}, {shape}", differs)
                    return None
            seconds = in_turns_of_children({"as it is": grafting, "pure": pure}, plan)
            found.append(ratio(seconds["as it is"], seconds["pure"]))
            pure_seconds += seconds["pure"]
        on_round((place + 1) / pairs)
    return statistics.median(pure_seconds) * 1e6, statistics.median(found)


def in_turns_of_children(children: dict[str, Child], plan: _timing.Plan) -> dict[str, list[float]]:
    """Time what each of some children has checked last; as ``in_turns``."""
    began = time.perf_counter()
    loops = {name: child.ask(do="calibrate", seconds=plan.sample_seconds) for name, child in children.items()}
    seconds: dict[str, list[float]] = {name: [] for name in children}
    order = list(children)
    for done in range(plan.max_rounds):
        if done >= plan.min_rounds and time.perf_counter() - began > plan.budget_seconds:
            break
        for name in order:
            seconds[name].append(children[name].ask(do="sample", loops=loops[name]))
        order.reverse()
    return seconds


def flat_seconds(
    shape: str, counts: Sequence[int], plan: _timing.Plan, rounds: int, report: Report, on_round: OnRound
) -> dict[str, dict[int, float]] | None:
    """Time a shape in all its sizes, in turns.

    Args:
        shape: The shape.
        counts: How many objects.
        plan: How long a sample is.
        rounds: How many rounds.
        report: Told of bytes that differ.
        on_round: Told which share is done.

    Returns:
        ``c`` and ``fastpickle`` -> count -> CPU seconds of one object; None if bytes differ.
    """
    objects = {count: shapes.GROUPS["flat"][shape](count) for count in counts}
    calls: dict[tuple[str, int], Callable[[], object]] = {}
    for count, obj in objects.items():
        fast = functools.partial(fastpickle.dumps, obj)
        expected = _compare.stock_dumps(obj)
        differs = difference(lambda expected=expected: expected, fast, contextlib.nullcontext)  # stock is slow
        if differs:
            report.refuse(f"fastpickle.dumps of {count} objects of {shape}", differs)
            return None
        calls["c", count] = functools.partial(pickle.dumps, obj)
        calls["fastpickle", count] = fast
    loops = {key: loops_for(call, plan.sample_seconds) for key, call in calls.items()}
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    order = list(calls)
    for done in range(rounds):
        on_round(done / rounds)
        for key in order:
            seconds[key].append(sample(calls[key], loops[key]))
        order.reverse()
    return {
        way: {count: statistics.median(seconds[way, count]) / count for count in counts} for way in ("c", "fastpickle")
    }


# Putting it together.


def times(value: float | None) -> str:
    """Put a ratio into words."""
    return "-" if value is None else f"{value:.2f}x" if value < 10 else f"{value:.1f}x"


def microseconds(value: float | None) -> str:
    """Put a time into words."""
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Make a Markdown table, the first column of which is a name."""
    lines = [heading, ["---", *["--:"] * (len(heading) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def at_most(what: str, value: float | None, limit: float, where: str = "") -> Line:
    """Compare one ratio with what is wanted."""
    line = Line(what, f"at most {limit}x")
    if value is not None:
        line.measured, line.holds = times(value) + where, value <= limit
    return line


def mean_and_worst(what: str, values: dict[str, float], of: int, limits: tuple[float, float]) -> list[Line]:
    """Compare the ratios of several shapes with what is wanted.

    Args:
        what: What was measured.
        values: Shape -> ratio.
        of: How many shapes there are.
        limits: Of the geometric mean, and of each.

    Returns:
        The two lines.
    """
    mean = _timing.geometric_mean(values.values())
    worst = max(values, key=values.__getitem__, default="")
    over = sum(value > limits[1] for value in values.values())
    several = f"; {over} of {len(values)} over {limits[1]}x" if over > 1 else ""
    return [
        at_most(f"{what}: geometric mean", mean, limits[0], "" if len(values) == of else f" ({len(values)} of {of})"),
        at_most(f"{what}: the worst shape", values.get(worst), limits[1], f" ({worst}{several})"),
    ]


PLAIN_SHAPES = {"plain": "workloads of plain data", "odd": "plain data nobody tuned for"}


def lines_of_shapes(found: dict[str, Found], chosen: dict[str, list[str]]) -> list[Line]:
    """Make the lines of the first table that are about time against C and cloudpickle.

    Args:
        found: Shape -> what was found out.
        chosen: Group -> the shapes that were to be measured.

    Returns:
        The lines.
    """
    lines = []
    entries = {
        "fastpickle": ("`fastpickle.dumps`", (1.15, 1.5), 3),
        "dill": ("`dill.dumps` under install", (1.6, 3), 9),
        "backend": ("`fastpickle.backends.dill.dumps`", (1.6, 3), 9),
    }
    for group, about in PLAIN_SHAPES.items():
        for way, (entry, limits, _) in entries.items():
            if chosen[group]:
                values = {
                    name: value for name in chosen[group] if (value := found[name].ratios.get((way, "c"))) is not None
                }
                lines += mean_and_worst(f"{entry} / C, {about}", values, len(shapes.GROUPS[group]), limits)
    for name in chosen["closure"]:
        what = f"`dill.dumps` under install / cloudpickle, {name}"
        lines.append(at_most(what, found[name].ratios.get(("dill", "cloudpickle")), 2))
    for name in chosen["objects"]:
        lines.append(at_most(f"`fastpickle.dumps` / C, {name}", found[name].ratios.get(("fastpickle", "c")), 1.4))
    for name in chosen["objects"]:
        what = f"`dill.dumps` under install / cloudpickle, {name}"
        lines.append(at_most(what, found[name].ratios.get(("dill", "cloudpickle")), 1.0))
    for name in chosen["small"]:
        for way, (entry, _, limit) in entries.items():
            lines.append(at_most(f"{entry} / C, {name}", found[name].ratios.get((way, "c")), limit))
    return lines


def measure_time(chosen: dict[str, list[str]], plan: _timing.Plan, dill: Any, report: Report, step: Any) -> None:
    """Measure all that is compared with C and cloudpickle, and add the first lines and the second table."""
    found: dict[str, Found] = {}
    rows = []
    for group in ("plain", "small", "odd", "objects", "others", "closure"):
        for name in chosen[group]:
            one = found[name] = measure_shape(name, shapes.GROUPS[group][name](), plan, dill, report, step(name))
            if group != "closure":
                micro = one.microseconds.get("c")
                ratios = [times(one.ratios.get((way, "c"))) for way in ("fastpickle", "dill", "backend", "stock")]
                rows.append([name, microseconds(micro), *ratios])
    if rows:
        dills = ["`dill.dumps` under install / C", "`fastpickle.backends.dill.dumps` / C"]
        heading = ["shape", "C, us", "`fastpickle.dumps` / C", *dills, "stock / C"]
        report.tables.append(table(heading, rows))
    report.lines += lines_of_shapes(found, chosen)


def measure_mixed(names: list[str], quick: bool, dill: Any, report: Report, step: Any) -> None:
    """Measure the data on which handing over keeps failing, and add its lines and its table."""
    plan = dataclasses.replace(QUICK if quick else FULL, budget_seconds=0.1 if quick else 0.5)
    pairs = QUICK_CHILDREN if quick else CHILDREN
    ways = {"fastpickle": "`fastpickle.dumps`", **({"dill": "`dill.dumps` under install"} if dill else {})}
    found: dict[str, dict[str, tuple[float, float]]] = {way: {} for way in ways}
    rows = []
    for name in names:
        on_round = step(name)
        for place, way in enumerate(ways):
            part = functools.partial(
                lambda place, on_round, done: on_round((place + done) / len(ways)), place, on_round
            )
            one = mixed_ratios(name, way, plan, pairs, report, part)
            if one is not None:
                found[way][name] = one
        row = [name]
        for way in ways:
            micro, value = found[way].get(name, (None, None))
            row += [microseconds(micro), times(value)]
        rows.append(row)
    for way, entry in ways.items():
        values = {name: value for name, (_, value) in found[way].items()}
        worst = max(values, key=values.__getitem__, default="")
        over = sum(value > 1.1 for value in values.values())
        where = f" ({worst}{f'; {over} of {len(values)} over 1.1x' if over > 1 else ''})"
        what = f"{entry} / pure engine, mixed data on which handing over fails: the worst shape"
        report.lines.append(at_most(what, values.get(worst), 1.1, where))
    heading = ["mixed shape"]
    for entry in ways.values():
        heading += [f"{entry}, pure engine, us", "as it is / pure"]
    report.tables.append(table(heading, rows))
    control = mixed_ratios("list_of_ints_10k", "fastpickle", plan, 1, report, lambda done: None)
    if control is not None and control[1] > 0.8:
        report.notes.append(
            "FASTPICKLE_PURE=1 makes no difference to `list_of_ints_10k` "
            f"(as it is / pure {times(control[1])}): this version hands nothing over, and the mixed data says nothing."
        )


def measure_flat(names: list[str], quick: bool, report: Report, step: Any) -> None:
    """Measure the time per object, and add its lines and its table."""
    counts = COUNTS[:-1] if quick else COUNTS
    rows = []
    for name in names:
        plan = QUICK if quick else FULL
        found = flat_seconds(name, counts, plan, 3 if quick else FLAT_ROUNDS, report, step(name))
        about = f"`fastpickle.dumps`, time per object of {counts[0]:,} to {counts[-1]:,} objects, max / min, {name}"
        line = Line(about, "at most 1.15x")
        if found is not None:
            to_c = [found["fastpickle"][count] / found["c"][count] for count in counts]
            spreads = {way: max(per.values()) / min(per.values()) for way, per in found.items()}
            line.measured = f"{times(spreads['fastpickle'])} (C: {times(spreads['c'])}; "
            line.measured += f"the ratio of the two: {times(max(to_c) / min(to_c))})"
            line.holds = spreads["fastpickle"] <= 1.15
            for way, per in found.items():
                rows.append([f"{name}, {way}", *(f"{per[count] * 1e9:.1f}" for count in counts)])
        report.lines.append(line)
    report.tables.append(table(["ns per object", *(f"{count:,}" for count in counts)], rows))


def measure_memory(names: list[str], quick: bool, report: Report, step: Any) -> None:
    """Measure the peak memory, and add its lines and its table."""
    rows = []
    for name in names:
        on_round = step(name)
        sizes = SIZES[:-1] if quick else SIZES
        for place, size in enumerate(sizes):
            peaks = {}
            for way in ("stock", "fastpickle"):
                with Child() as child:
                    peaks[way] = child.ask(do="peak", shape=name, size=size, fast=way == "fastpickle")
            on_round((place + 1) / len(sizes))
            stock, fast = peaks["stock"], peaks["fastpickle"]
            line = Line(f"`fastpickle.dump`, peak memory over stock's, {name}, {size // 10**6} MB", "at most +80 MiB")
            report.lines.append(line)
            if stock["digest"] != fast["digest"]:
                report.refuse(
                    f"fastpickle.dump of {name}, {size}", f"{stock['size']} bytes of stock, {fast['size']} others"
                )
                continue
            more = (fast["peak"] - stock["peak"]) / MIB
            line.measured, line.holds = f"{more:+.0f} MiB", more <= 80
            figures = [stock["size"] / 1e6, stock["before"] / MIB, stock["peak"] / MIB, fast["peak"] / MIB]
            rows.append([name, *(f"{figure:.0f}" for figure in figures)])
    heading = ["peak memory", "pickle, MB", "before the dump, MiB", "stock, MiB", "fastpickle, MiB"]
    report.tables.append(table(heading, rows))


# The command line.


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[str], OnRound]]:
    """Say on stderr what is measured: by a bar if rich is there and stderr is a terminal, else by lines.

    Args:
        total: How many shapes there are.

    Yields:
        As ``fastpickle.cli._report.progress``.
    """
    if sys.stderr.isatty() and importlib.util.find_spec("rich") is not None:
        with importlib.import_module("fastpickle.cli._report").progress(total) as step:
            yield step
        return
    began = time.monotonic()
    done = 0

    def say(name: str) -> OnRound:
        nonlocal done
        done += 1
        print(f"[{done}/{total}, {time.monotonic() - began:.0f} s] {name}", file=sys.stderr)
        return lambda share: None

    yield say


AUDITED = "with a hook for audit events written in Python, as filelock, and so datasets, adds one"
"""What ``audit`` does to a measurement."""


def audit() -> None:
    """Add such a hook: it is called at each `id()`, and there until the process ends (PEP 578)."""
    sys.addaudithook(_ignore)


def _ignore(event: str, args: tuple[object, ...]) -> None:
    pass


def choose(names: Sequence[str] | None) -> dict[str, list[str]]:
    """Find out what is to be measured.

    Args:
        names: Groups and shapes, None for all.

    Returns:
        Group -> its shapes that were asked for.

    Raises:
        ValueError: If a name is not known.
    """
    known = {*shapes.GROUPS, *(name for group in shapes.GROUPS.values() for name in group)}
    for name in names or ():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "--list shows those there are"
            raise ValueError(f"no group or shape {name!r}; {hint}")
    return {
        group: [name for name in members if names is None or group in names or name in names]
        for group, members in shapes.GROUPS.items()
    }


def measured_on(dill: ModuleType | None, quick: bool, audited: bool) -> str:
    """Say what was measured on."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    parts = [python, f"protocol {pickle.DEFAULT_PROTOCOL}", f"fastpickle {fastpickle.__version__}"]
    if dill is not None:
        parts.append(f"dill {dill.__version__}")
    with contextlib.suppress(ImportError):
        parts.append(f"cloudpickle {importlib.import_module('cloudpickle').__version__}")
    if pure := os.environ.get("FASTPICKLE_PURE"):
        parts.append(f"FASTPICKLE_PURE={pure}")
    command = "`python perf-diary/grafting.py" + " --quick" * quick + " --audited" * audited + "`"
    return f"{', '.join(parts)}; CPU time, medians of alternating rounds. {command}."


def run(arguments: argparse.Namespace) -> int:
    """Measure and print.

    Args:
        arguments: The parsed command line.

    Returns:
        The exit status.
    """
    chosen, quick = choose(arguments.only), arguments.quick
    report = Report()
    with (
        _compare.stock_state(report.notes) as dill,
        progress(sum(map(len, chosen.values()))) as step,
    ):
        if chosen["memory"] and resource is None:
            report.notes.append("Windows does not tell a process its peak memory by `resource`; it is left out.")
        elif chosen["memory"]:
            measure_memory(chosen["memory"], quick, report, step)
        memory, report.lines = report.lines, []
        tables, report.tables = report.tables, []
        measure_time(chosen, QUICK if quick else FULL, dill, report, step)
        if chosen["mixed"]:
            measure_mixed(chosen["mixed"], quick, dill, report, step)
        if chosen["flat"]:
            measure_flat(chosen["flat"], quick, report, step)
        report.lines += memory
        report.tables += tables
        report.notes.append(measured_on(dill, quick, arguments.audited))
    text = report.markdown()
    print(text, end="")
    if arguments.markdown is not None:
        arguments.markdown.write_text(text, encoding="utf-8")
    return 1 if report.refused else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments, None for those of the process.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        description="Measure what handing plain data to the C pickler reaches, and compare it with what is wanted.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples, nothing of the largest sizes")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measure these groups and shapes")
    parser.add_argument("--list", action="store_true", help="list the groups and their shapes, and stop")
    parser.add_argument("--audited", action="store_true", help=AUDITED)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write what is printed to FILE too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.list:
        for group, members in shapes.GROUPS.items():
            print(f"{group}: {shapes.ABOUT[group]}")
            for name, make in members.items():
                print(f"  {name:28}{(make.__doc__ or '').partition(chr(10))[0]}")
        return 0
    if pickle.Pickler.__module__ != "_pickle":
        parser.error("this Python has no C pickler, so there is nothing to hand data to")
    if arguments.serve:
        serve()
        return 0
    if arguments.audited:
        audit()
    try:
        return run(arguments)
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
