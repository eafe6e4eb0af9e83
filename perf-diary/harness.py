"""The figures of the README and the diary: measure, print the table, draw the chart.

    run    every workload x contender --> contender.py (pyperf) --> raw/WORKLOAD.CONTENDER.json
    table  raw/ --> Markdown on stdout
    plot   raw/ --> speedup.png

``python perf-diary/harness.py run`` makes the raw data anew (6 to 8 minutes; ``--quick`` 1 to 2),
which is not kept under version control. Each pair has processes of its own. The contenders of one
workload take turns, for several rounds, so that a machine that changes its speed changes a ratio
as little as possible.

Not for: your own data. For that there is ``python -m fastpickle bench``.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pyperf

try:  # only the chart needs it, and it is not there for every Python
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
except ImportError:
    matplotlib = None  # type: ignore[assignment]

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fastpickle.cli import workloads

HERE = Path(__file__).resolve().parent

RAW = HERE / "raw"
"""Where the raw data goes unless ``--out`` says otherwise."""

CHART = HERE / "speedup.png"
"""The chart."""

NEEDS = {
    "stock": None,
    "fastpickle": None,
    "dill": "dill",
    "dill_installed": "dill",
    "c": "_pickle",
    "cloudpickle": "cloudpickle",
}
"""Contender -> the module without which it is left out."""

PYPERF = ["--processes=1", "--warmups=1", "--quiet", "--inherit-environ=PYTHONPATH,FASTPICKLE_PURE"]
"""Options of every measurement: one process of pyperf's at a time, since the rounds are ours."""

FULL = ["--values=5", "--min-time=0.04"]
"""5 values in each round, each of at least 40 ms."""

QUICK = ["--values=3", "--min-time=0.01"]
"""3 values in each round, each of at least 10 ms."""

FULL_ROUNDS = 5
QUICK_ROUNDS = 2


@dataclasses.dataclass
class Row:
    """The times of one workload."""

    workload: str
    """Its name."""
    seconds: dict[str, float]
    """Contender -> the median time of one dump, in seconds."""

    def ratio(self, slow: str, fast: str) -> float | None:
        """Say how many times faster one contender was than another.

        Args:
            slow: The other.
            fast: The one.

        Returns:
            The ratio of the medians, None if one of them was not measured.
        """
        if slow not in self.seconds or fast not in self.seconds:
            return None
        return self.seconds[slow] / self.seconds[fast]


def present() -> list[str]:
    """List the contenders that can be measured here.

    Returns:
        Their names, without those whose module is not installed.
    """
    return [name for name, module in NEEDS.items() if module is None or importlib.util.find_spec(module) is not None]


def run(out: Path, quick: bool, names: list[str]) -> int:
    """Measure every pair and write the raw data.

    Args:
        out: The folder for it; what older runs left for these workloads is overwritten.
        quick: Fewer and shorter samples.
        names: The workloads.

    Returns:
        The exit status: 0, or 1 if a contender failed.
    """
    out.mkdir(parents=True, exist_ok=True)
    contenders = present()
    began = time.monotonic()
    failed = 0
    for place, workload in enumerate(names, 1):
        elapsed = time.monotonic() - began
        print(f"[{place}/{len(names)}, {elapsed:.0f} s] {workload}", file=sys.stderr)
        for contender in contenders:
            (out / f"{workload}.{contender}.json").unlink(missing_ok=True)
        for _ in range(QUICK_ROUNDS if quick else FULL_ROUNDS):
            for contender in contenders:
                problem = measure(workload, contender, out, quick)
                if problem is not None:
                    failed += 1
                    print(f"failed: {workload}, {contender}: {problem}", file=sys.stderr)
            contenders.reverse()
    print(f"{len(names)} workloads measured in {time.monotonic() - began:.0f} s, {failed} failures")
    return 1 if failed else 0


def measure(workload: str, contender: str, out: Path, quick: bool) -> str | None:
    """Measure one pair once, in a process of its own, and add it to its raw data.

    Args:
        workload: The workload.
        contender: The contender.
        out: The folder for the raw data.
        quick: Fewer and shorter samples.

    Returns:
        None, or the last line of what the process said when it failed.
    """
    target = out / f"{workload}.{contender}.json"
    command = [sys.executable, str(HERE / "contender.py")]
    command += ["--contender", contender, "--workload", workload]
    command += [*PYPERF, *(QUICK if quick else FULL), "--append", str(target)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        return None
    return (ended.stderr.strip().splitlines() or [f"status {ended.returncode}"])[-1]


def read(raw: Path) -> tuple[list[Row], str]:
    """Read the raw data.

    Args:
        raw: The folder.

    Returns:
        A row for each workload, in the order of the workloads, and the Python and the protocol.

    Raises:
        SystemExit: If there is no raw data.
    """
    rows = []
    measured_on = ""
    for workload in workloads.WORKLOADS:
        seconds = {}
        for contender in NEEDS:
            path = raw / f"{workload}.{contender}.json"
            if path.exists():
                benchmark = pyperf.Benchmark.load(str(path))
                seconds[contender] = statistics.median(benchmark.get_values())
                metadata = benchmark.get_metadata()
                version = metadata["python_version"].rpartition(" (")[0]  # PyPy's begins with its name
                name = "CPython " if metadata["python_implementation"] == "cpython" else ""
                measured_on = f"{name}{version}, protocol {metadata['protocol']}"
        if seconds:
            rows.append(Row(workload, seconds))
    if not rows:
        raise SystemExit(f"no raw data in {raw}; run first: python perf-diary/harness.py run")
    return rows, measured_on


COLUMNS = {
    "fastpickle": ("stock", "fastpickle"),
    "dill": ("dill", "dill_installed"),
    "C pickle": ("stock", "c"),
}
"""Heading -> the slow and the fast contender of its ratio."""


def means(rows: list[Row]) -> dict[str, float]:
    """Average the ratios over all workloads.

    Args:
        rows: The times.

    Returns:
        Heading -> geometric mean, without those never measured.
    """
    averages = {}
    for heading, pair in COLUMNS.items():
        found = [ratio for row in rows if (ratio := row.ratio(*pair)) is not None]
        if found:
            averages[heading] = statistics.geometric_mean(found)
    return averages


def table(raw: Path) -> int:
    """Print the Markdown table.

    Args:
        raw: The folder of the raw data.

    Returns:
        The exit status, 0.
    """
    rows, measured_on = read(raw)
    print("| workload | stock | fastpickle | faster | dill, installed | C pickle |")
    print("|---|--:|--:|--:|--:|--:|")
    for row in rows:
        times = [_milliseconds(row.seconds.get(name)) for name in ("stock", "fastpickle")]
        factors = [_times(row.ratio(*pair)) for pair in COLUMNS.values()]
        print(f"| {row.workload} | {' | '.join(times + factors)} |")
    averages = means(rows)
    factors = [_times(averages.get(heading)) for heading in COLUMNS]
    print(f"| **geometric mean** | | | {' | '.join(factors)} |")
    print()
    print(
        f"{measured_on}; medians of pyperf's values of CPU time, a process of its own for each contender. "
        "*stock* is `pickle._Pickler`; *faster* is stock / fastpickle, *dill, installed* is "
        "`dill.dumps` before / after `install()`, *C pickle* is stock / C. "
        "`python perf-diary/harness.py run`, then `table`."
    )
    return 0


def _milliseconds(seconds: float | None) -> str:
    """Put a time into words.

    Args:
        seconds: The time, None if it was not measured.

    Returns:
        Milliseconds with three digits, or ``-``.
    """
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:#.3g} ms"


def _times(ratio: float | None) -> str:
    """Put a ratio into words.

    Args:
        ratio: Slow / fast, None if it was not measured.

    Returns:
        Two decimals below ten, one below a hundred, or ``-``.
    """
    if ratio is None:
        return "-"
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.1f}x"


def plot(raw: Path, chart: Path) -> int:
    """Draw how many times faster each workload is.

    Args:
        raw: The folder of the raw data.
        chart: The PNG file to write.

    Returns:
        The exit status, 0.
    """
    if matplotlib is None:
        raise SystemExit("matplotlib is not installed: pip install 'fastpickle[diary]'")
    matplotlib.use("Agg")
    rows, measured_on = read(raw)
    rows.sort(key=lambda row: row.ratio("stock", "fastpickle") or 0)
    figure, axes = pyplot.subplots(figsize=(8, 0.42 * len(rows) + 1.6), layout="constrained")
    places = range(len(rows))
    series = (("fastpickle", "pickle._Pickler", "#1f5f8b", 0.2), ("dill", "dill", "#e08a1e", -0.2))
    for heading, label, color, shift in series:
        values = [row.ratio(*COLUMNS[heading]) or 1.0 for row in rows]
        lengths = [value - 1 for value in values]  # bars begin at 1: as fast as before
        heights = [place + shift for place in places]
        axes.barh(heights, lengths, 0.38, left=1, color=color, label=label)
        for height, value in zip(heights, values, strict=True):
            text = _times(value).removesuffix("x")
            axes.text(max(value, 1) * 1.04, height, text, va="center", fontsize=7)
    ceiling = [row.ratio(*COLUMNS["C pickle"]) for row in rows]
    shown = [(value, place) for place, value in zip(places, ceiling, strict=True) if value]
    if shown:
        axes.plot(*zip(*shown, strict=True), "|", color="black", ms=11, label="the C pickler")
    axes.set_xscale("log")
    ratios = [row.ratio(*pair) or 1.0 for row in rows for pair in COLUMNS.values()]
    left, right = min(1.0, *ratios) / 1.1, max(ratios) * 1.4
    axes.set_xlim(left, right)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    ticks = [tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if left <= tick <= right]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.axvline(1, color="black", lw=0.8)
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    axes.set_yticks(list(places), [row.workload for row in rows], fontsize=8)
    axes.tick_params(left=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel(f"times faster with fastpickle ({measured_on}; log scale)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.06), ncols=3, frameon=False, fontsize=8)
    figure.savefig(chart, dpi=150)
    print(chart)
    return 0


def main() -> int:
    """Run the command line.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description="Measure fastpickle, print the table, plot it.")
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="measure and write the raw data")
    run_parser.add_argument("--quick", action="store_true", help="1 to 2 minutes, less exact")
    run_parser.add_argument("--out", type=Path, default=RAW, help="folder for the raw data")
    run_parser.add_argument("--workload", action="append", choices=workloads.WORKLOADS)
    for name, what in (("table", "print the Markdown table"), ("plot", "draw the chart")):
        other = commands.add_parser(name, help=what)
        other.add_argument("--raw", type=Path, default=RAW, help="folder of the raw data")
    other.add_argument("--chart", type=Path, default=CHART, help="the PNG to write")
    arguments = parser.parse_args()
    if arguments.command == "run":
        names = arguments.workload or list(workloads.WORKLOADS)
        return run(arguments.out, arguments.quick, names)
    if arguments.command == "table":
        return table(arguments.raw)
    return plot(arguments.raw, arguments.chart)


if __name__ == "__main__":
    sys.exit(main())
