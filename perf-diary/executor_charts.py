"""The charts of ``executors.py``.

    raw/executors-payloads.json --> executors-payloads.png    a dot for each row and executor
    raw/executors-io.json       --> executors-io.png          time and memory against threads in all

Not for: use by hand; ``executors.py plot`` calls it.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

try:  # it is not there for every Python
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
except ImportError:
    matplotlib = None  # type: ignore[assignment]  # it is optional

STYLES = {
    "interpreters": ("fastpickle's InterpreterPoolExecutor", "#1f5f8b", "o"),
    "stock": ("stock InterpreterPoolExecutor", "#e08a1e", "o"),
    "processes": ("ProcessPoolExecutor", "#999999", "s"),
    "both": ("fastpickle's ProcessThreadPoolExecutor", "#2e8b57", "D"),
    "threads": ("ThreadPoolExecutor", "black", "|"),
}
"""Executor -> its label, colour and mark."""

MIB = 1 << 20


def draw(raw: Path, charts: Path) -> int:
    """Draw what there is raw data of.

    Args:
        raw: The folder of the raw data.
        charts: The folder of the charts.

    Returns:
        The exit status, 0.

    Raises:
        SystemExit: If there is no raw data, or no matplotlib.
    """
    if matplotlib is None:
        raise SystemExit("matplotlib is not installed: pip install 'fastpickle[diary]'")
    matplotlib.use("Agg")
    drawn = 0
    for name, plot in (("payloads", payloads), ("io", io)):
        path = raw / f"executors-{name}.json"
        if path.exists():
            chart = charts / f"executors-{name}.png"
            plot(json.loads(path.read_text(encoding="utf-8")), chart)
            print(chart)
            drawn += 1
    if not drawn:
        raise SystemExit(f"no raw data in {raw}; run first: python perf-diary/executors.py payloads")
    return 0


def _ticks(axis: Any, ticks: list[float]) -> None:
    """Label a logarithmic axis at these places only."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _frame(axes: Any) -> None:
    axes.grid(color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def payloads(document: dict[str, Any], chart: Path) -> None:
    """Draw the round trips, the first row on top."""
    rows = list(document["rows"].items())[::-1]
    figure, axes = pyplot.subplots(figsize=(8, 0.26 * len(rows) + 1.6), layout="constrained")
    micro = {
        (place, way): 1e6 * statistics.median(values)
        for place, (_, row) in enumerate(rows)
        for way, values in row.items()
    }
    for place in range(len(rows)):
        if (place, "interpreters") in micro and (place, "stock") in micro:
            pair = [micro[place, "interpreters"], micro[place, "stock"]]
            axes.plot(pair, [place, place], color="#e08a1e", lw=1, zorder=1)
    for way, (label, color, mark) in STYLES.items():
        dots = [(value, place) for (place, name), value in micro.items() if name == way]
        if dots:
            size = 9 if mark == "|" else 5
            axes.plot(*zip(*dots, strict=True), mark, color=color, ms=size, label=label, zorder=2)
    axes.set_xscale("log")
    _ticks(axes.xaxis, [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000])
    axes.set_xlim(min(micro.values()) / 1.4, max(micro.values()) * 1.4)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
    axes.tick_params(left=False)
    _frame(axes)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"microseconds a call, less is better ({document['where']}; log scale)")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    figure.savefig(chart, dpi=150)
    pyplot.close(figure)


def io(document: dict[str, Any], chart: Path) -> None:
    """Draw the time and the memory of the pools."""
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for kind in ("threads", "processes", "both"):
        label, color, mark = STYLES[kind]
        found = []
        for pool in document["pools"]:
            if pool["kind"] == kind:
                total = pool["workers"] * pool["threads"]
                seconds = statistics.median(run["seconds"] for run in pool["runs"])
                memory = [run["memory"] for run in pool["runs"]]
                found.append((total, seconds, None if None in memory else max(statistics.median(memory) / MIB, 0.1)))
        if found:
            totals, seconds_of, memory_of = zip(*sorted(found), strict=True)
            style = {"color": color, "marker": "o" if mark == "|" else mark, "ms": 5, "lw": 1.2}
            panels[0].plot(totals, seconds_of, label=label, **style)
            if None not in memory_of:
                panels[1].plot(totals, memory_of, **style)
    panels[0].axhline(document["floor"], color="black", lw=0.8, ls="--", label="CPU floor")
    panels[0].set_ylabel(f"seconds for {document['tasks']:,} tasks")
    panels[1].set_ylabel("memory of the workers (USS), MiB")
    panels[1].set_yscale("log")
    _ticks(panels[1].yaxis, [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1_000])
    panels[0].set_ylim(bottom=0)
    totals = sorted({pool["workers"] * pool["threads"] for pool in document["pools"]})
    for axes in panels:
        axes.set_xscale("log")
        _ticks(axes.xaxis, [10, 20, 30, 40, 60, 80, 120, 240, 480])
        axes.set_xlim(totals[0] / 1.15, totals[-1] * 1.15)
        axes.set_xlabel("threads in all, of all processes")
        _frame(axes)
    title = f"{document['where']}, {document['cores']} cores; less is better"
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8, title=title, title_fontsize=8)
    figure.savefig(chart, dpi=150)
    pyplot.close(figure)
