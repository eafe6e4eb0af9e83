"""Draw the progress and the result of ``bench``; the only module here that needs rich.

    progress  --> stderr, only if it is a terminal, redrawn between rounds (a redrawing thread would
    disturb the timing) table     --> stdout

Not for: deciding anything. What is drawn was decided in ``bench``.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fastpickle.cli._compare import DIFFERENT, IDENTICAL, INSTALLED, PAIRS, RATIO_PAIRS, VARYING, Result

__all__ = ["progress", "show", "times_faster"]

PICKLERS = {"stock": "_Pickler"}
"""Original -> what its rows are called, if not so."""

SAID = {
    IDENTICAL: "bytes identical",
    DIFFERENT: "bytes DIFFERENT",
    VARYING: "bytes vary without it too",
}
"""What the table says of the bytes."""

PLAIN_WIDTH = 110
"""Columns of the table where stdout is no terminal and so has no width of its own."""


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[str], Callable[[float], None]]]:
    """Show a progress bar on stderr.

    Args:
        total: How many objects will be measured.

    Yields:
        A function that is told the name of each object when its turn comes and returns a function
        to be told the share of it that is done.
    """
    console = Console(file=sys.stderr, emoji=False)
    bar = Progress(
        TextColumn("{task.description:24}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        auto_refresh=False,
        disable=not console.is_terminal,
    )
    task = bar.add_task("", total=total)
    begun = 0

    def step(name: str) -> Callable[[float], None]:
        nonlocal begun
        finished = begun
        begun += 1

        def on_round(done: float) -> None:
            bar.update(task, completed=finished + done, description=name, refresh=True)

        on_round(0.0)
        return on_round

    with bar:
        yield step


def show(results: list[Result], document: dict[str, Any], notes: list[str]) -> None:
    """Print the result.

    Args:
        results: What was measured.
        document: The same for ``--json``, with the versions and the averages.
        notes: Lines to print below the table.
    """
    console = Console(file=sys.stdout, emoji=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    with console.capture() as capture:  # rich itself would end the process on a broken pipe
        console.print(_table(results, document))
        console.print(_summary(document["geometric_mean"], len(results)), highlight=False)
        for note in notes:
            console.print(note, highlight=False, markup=False)
        for result in results:
            for line in _failures(result):
                console.print(line, highlight=False, markup=False)
    sys.stdout.writelines(line.rstrip() + "\n" for line in capture.get().splitlines())
    sys.stdout.flush()


def _table(results: list[Result], document: dict[str, Any]) -> Table:
    """Lay the table out: one row for each object and each original.

    Args:
        results: What was measured.
        document: Where the versions are.

    Returns:
        The table, with the versions as its title.
    """
    dill = f", dill {document['dill']}" if document["dill"] else ""
    title = (
        f"{document['implementation']} {document['python']}, "
        f"fastpickle {document['fastpickle']}{dill}, protocol {document['protocol']}\n"
        "median CPU time of one dump before and after fastpickle"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("workload", overflow="fold", min_width=20)
    table.add_column("pickler", no_wrap=True)
    for heading in ("before", "after", "C pickle"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("result")
    for result in results:
        style = "red" if result.broken() else ""
        name, c_time = escape(result.name), _duration(result.seconds.get("c"))
        for fast, original in PAIRS.items():
            if original in result.seconds or fast in result.seconds:
                before, after = result.seconds.get(original), result.seconds.get(fast)
                times = (_duration(before), _duration(after), c_time)
                table.add_row(name, PICKLERS.get(original, original), *times, _verdict(result, fast), style=style)
                name = c_time = ""
    return table


def _verdict(result: Result, fast: str) -> str:
    """Say what fastpickle does for one object and one original.

    Args:
        result: What was measured.
        fast: The accelerated contender.

    Returns:
        How many times faster, and whether the bytes are the same; or which of the two failed.
    """
    ratio = result.ratio(fast)
    if ratio is not None:
        said = SAID[result.checks[fast]]
        if PAIRS[fast].endswith("hash"):  # which makes a digest of them
            said = said.replace("bytes", "digests")
        return f"{times_faster(ratio)}, {said}"
    return "works where it failed before" if fast in result.seconds else "FAILS, but not before"


def _failures(result: Result) -> list[str]:
    """Say who could not pickle an object, and why.

    Args:
        result: What was measured.

    Returns:
        A line for each original that failed, and for each other contender that did so alone.
    """
    lines = []
    for contender, failure in result.failures.items():
        original = RATIO_PAIRS.get(contender, contender)
        if contender == original or original not in result.failures:
            name = PICKLERS.get(contender, contender)
            lines.append(f"{result.name}: {name} cannot pickle it: {failure}")
    return lines


def _summary(means: dict[str, float], count: int) -> str:
    """Say it all in one line.

    Args:
        means: The geometric means by contender.
        count: Over how many objects.

    Returns:
        The line.
    """
    parts = []
    if "fastpickle" in means:
        parts.append(f"fastpickle {times_faster(means['fastpickle'])} than _Pickler")
    for fast, original in PAIRS.items():
        if fast.endswith(INSTALLED) and fast in means:
            parts.append(f"{original} {times_faster(means[fast])} after install()")
    if "c" in means:
        parts.append(f"C pickle {times_faster(means['c'])} than _Pickler")
    over = f"Geometric mean over {count} workloads: " if count > 1 else "In short: "
    return over + "; ".join(parts) + "."


def times_faster(ratio: float) -> str:
    """Put a ratio into words.

    Args:
        ratio: Time of the original / time of the accelerated one.

    Returns:
        For example ``3.1 times faster`` or ``1.20 times slower``.
    """
    word = "faster" if ratio >= 1 else "slower"
    times = max(ratio, 1 / ratio)
    digits = 2 if times < 2 else 1 if times < 20 else 0
    return f"{times:.{digits}f} times {word}"


def _duration(seconds: list[float] | None) -> str:
    """Put the median of some times into words.

    Args:
        seconds: The times of one contender, in seconds; None if it was not timed.

    Returns:
        Three digits and a unit, for example ``5.43 ms``, or ``-``.
    """
    if seconds is None:
        return "-"
    median = statistics.median(seconds)
    if median >= 1:
        value, unit = median, "s"
    elif median >= 1e-3:
        value, unit = median * 1e3, "ms"
    else:
        value, unit = median * 1e6, "us"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {unit}"
