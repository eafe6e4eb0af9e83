"""The charts of ``profiles.py``.

    raw/profile-NAME.json --> profile-NAME.png    above: one dump of each engine, by what is done, on one scale
                                                  below: the functions of each by own time, on one scale

Not for: use by hand; ``profiles.py`` calls it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:  # it is not there for every Python
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.patches import Patch
    from matplotlib.ticker import StrMethodFormatter
except ImportError:
    matplotlib = None  # type: ignore[assignment]  # it is optional

MISSING = "matplotlib is not installed: pip install 'fastpickle[diary]'"

ENGINES = {"stock": "before: stock's pickler", "pure": "after: the pure engine"}

KINDS = {
    "object": ("each object: saver, hooks", "#1f5f8b"),
    "container": ("containers, batch by batch", "#6aa5cf"),
    "value": ("values to opcodes", "#e08a1e"),
    "memo": ("memo", "#2e8b57"),
    "write": ("frames and write()", "#8c6bb1"),
    "reduce": ("reduces", "#c0504d"),
    "loop": ("the loop: all of that in one", "#155d5d"),
    "look": ("runs: rows of one shape", "#c9a227"),
    "dump": ("begin and end of a dump", "#7f7f7f"),
    "other": ("anything else", "#c8c8c8"),
}
"""What is done -> its label and colour."""

STOCK_KINDS = {
    "object": "save persistent_id reducer_override",
    "memo": "memoize put get",
    "write": "write commit_frame start_framing end_framing write_large_bytes",
    "reduce": "save_reduce save_global save_type whichmodule _getattribute",
    "container": "save_list save_tuple save_dict save_set save_frozenset _batch_appends _batch_setitems",
    "dump": "dump __init__ clear_memo",
    "value": "encode_long",
}
"""What is done -> the functions of stock's module that do it; the others of a name in ``save_`` write values."""

MODULE_KINDS = {
    "pickler": "object",
    "plain": "container",
    "columns": "value",
    "opcodes": "value",
    "reduce": "reduce",
    "instances": "reduce",
    "cpickler": "reduce",
    "known": "reduce",
    "straight": "reduce",
    "older": "reduce",
    "loop": "loop",
    "levels": "loop",
    "small": "loop",
    "runs": "look",
    "parts": "look",
    "looks": "look",
    "shapes": "look",
    "hooks": "dump",
    "rules": "dump",
    "graft": "dump",
    "lazymemo": "dump",
    "_stdlib": "dump",
    "series": "dump",
    "copyreg": "reduce",
    "pure": "reduce",  # the class whose reduce is its own
}
"""A module, ours or another -> what is done there."""

OWN_KINDS = {
    "columns.memoize": "memo",
    "runs._memoize": "memo",
    "runs._must_be_new": "memo",
    "runs._are_fetched": "memo",
    "pickler.dump": "dump",
    "doubts.settled": "object",  # after somebody's code has run
    "hooks.are_known": "object",
}
"""Functions that do something else than their module."""

LABELS = {"series.dumps": "the caller: BytesIO, getvalue()"}

LEAST = 0.02
"""The share of its dump from which on a function has a bar of its own."""

MOST = 12
"""Bars at most."""


class NotDrawn(Exception):
    """There is nothing to draw, or nothing to draw it with; the message says so in one line."""


def kind(function: str) -> str:
    """Say what a function does.

    Args:
        function: ``module.function``.

    Returns:
        A key of ``KINDS``.
    """
    module, _, name = function.partition(".")
    if function in OWN_KINDS:
        return OWN_KINDS[function]
    if module == "pickle":
        for what, names in STOCK_KINDS.items():
            if name in names.split():
                return what
        return "value" if name.startswith("save_") else "other"
    return MODULE_KINDS.get(module, "other")


def by_function(document: dict[str, Any], engine: str) -> dict[str, float]:
    """Give the seconds a dump spends in each function, the most first."""
    samples = document["samples"][engine]
    each = document["seconds"][engine] / sum(samples.values())
    return {function: each * count for function, count in samples.items()}


def by_kind(document: dict[str, Any], engine: str) -> dict[str, float]:
    """Give the seconds a dump spends at each kind of work."""
    found: dict[str, float] = {}
    for function, seconds in by_function(document, engine).items():
        found[kind(function)] = found.get(kind(function), 0.0) + seconds
    return found


def draw(raw: Path, folder: Path, names: Sequence[str]) -> None:
    """Draw what there is raw data of.

    Args:
        raw: The folder of the raw data.
        folder: The folder of the charts.
        names: The workloads.

    Raises:
        NotDrawn: If there is no raw data, or no matplotlib.
    """
    if matplotlib is None:
        raise NotDrawn(MISSING)
    matplotlib.use("Agg")
    paths = {name: raw / f"profile-{name}.json" for name in names}
    if names and not any(path.exists() for path in paths.values()):
        raise NotDrawn(f"no raw data in {raw}; run first: python perf-diary/profiles.py run")
    for name, path in paths.items():
        if path.exists():
            target = folder / f"profile-{name}.png"
            chart(json.loads(path.read_text(encoding="utf-8")), target)
            print(target)


def micro(seconds: float) -> str:
    """Write microseconds with as many digits as they are worth."""
    value = 1e6 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 1 else f"{value:.2f}"


def chart(document: dict[str, Any], target: Path) -> None:
    """Draw one workload."""
    functions = {engine: _bars(document, engine) for engine in ENGINES}
    lines = max(len(bars) for bars in functions.values())
    heights = [0.62, 0.21 * lines + 0.1]
    figure = pyplot.figure(figsize=(10, sum(heights) + 1.9), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=heights)
    _kinds(figure.add_subplot(grid[0, :]), document)
    scale = 1e6 * max(seconds for bars in functions.values() for _, seconds, _ in bars)
    for place, (engine, bars) in enumerate(functions.items()):
        axes = figure.add_subplot(grid[1, place])
        axes.barh(range(len(bars)), [1e6 * seconds for _, seconds, _ in bars], color=[color for *_, color in bars])
        for line, (_, seconds, _) in enumerate(bars):
            share = seconds / document["seconds"][engine]
            axes.text(1e6 * seconds + scale * 0.012, line, f"{micro(seconds)}  ({share:.0%})", va="center", fontsize=7)
        axes.set_yticks(range(len(bars)), [label for label, *_ in bars], fontsize=8)
        axes.set_ylim(lines - 0.4, -0.6)
        axes.set_xlim(0, scale * 1.25)
        axes.set_title(f"{ENGINES[engine]}, own time of functions", fontsize=9, loc="left")
        _frame(axes)
    seen = 0.005  # of a dump
    used = {
        what
        for engine in ENGINES
        for what, seconds in by_kind(document, engine).items()
        if seconds > seen * document["seconds"][engine]
    }
    patches = [Patch(color=color, label=label) for what, (label, color) in KINDS.items() if what in used]
    faster = document["seconds"]["stock"] / document["seconds"]["pure"]
    title = f"{document['name']}: where the microseconds of a dump go; stock / pure {faster:.2f}"
    figure.suptitle(f"{title} ({document['where']})", fontsize=10)
    figure.legend(handles=patches, loc="outside lower center", ncols=5, frameon=False, fontsize=7.5)
    figure.savefig(target, dpi=110, metadata={"Software": None}, pil_kwargs={"optimize": True})
    pyplot.close(figure)


def _bars(document: dict[str, Any], engine: str) -> list[tuple[str, float, str]]:
    """Give label, seconds and colour of each bar; what is too small for one is added up."""
    functions = by_function(document, engine)
    least = LEAST * document["seconds"][engine]
    large = [function for function, seconds in functions.items() if seconds >= least][:MOST]
    stock = "pickle." if engine == "stock" else ""  # nearly all of it is there
    bars = [
        (LABELS.get(function, function.removeprefix(stock)), functions[function], KINDS[kind(function)][1])
        for function in large
    ]
    rest = [seconds for function, seconds in functions.items() if function not in large]
    if rest:
        bars.append((f"{len(rest)} others", sum(rest), KINDS["other"][1]))
    return bars


def _kinds(axes: Any, document: dict[str, Any]) -> None:
    """Draw one dump of each engine, one above the other."""
    widest = 1e6 * max(document["seconds"].values())
    for line, engine in enumerate(ENGINES):
        left = 0.0
        found = by_kind(document, engine)
        for what, (_, color) in KINDS.items():
            width = 1e6 * found.get(what, 0.0)
            axes.barh(line, width, left=left, color=color, height=0.7, edgecolor="white", lw=0.5)
            if width > 0.045 * widest:
                text = f"{width / 1e6 / document['seconds'][engine]:.0%}"
                axes.text(left + width / 2, line, text, ha="center", va="center", fontsize=7, color="white")
            left += width
        axes.text(left + 0.008 * widest, line, micro(document["seconds"][engine]), va="center", fontsize=8)
    axes.set_yticks(range(len(ENGINES)), list(ENGINES.values()), fontsize=8)
    axes.set_ylim(len(ENGINES) - 0.5, -0.5)
    axes.set_xlim(0, widest * 1.08)
    _frame(axes)


def _frame(axes: Any) -> None:
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False, labelsize=8)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
