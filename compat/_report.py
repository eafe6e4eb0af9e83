"""What the runner prints: a line per mode while it works, then each failure, the table and the verdict.

The last line is always "N passed, N failed": the tests that pass on stock and also accelerated, and those that pass on
stock only, each summed over the modes.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compat._compare import Comparison
from compat._record import Outcome
from compat._speed import Speed

_DETAIL_LINES = 30
"""Lines shown of what a failing test printed: the end of a traceback, without flooding a log."""


@dataclass
class ModeReport:
    """What is known of one mode when the suite has run.

    Args:
        mode: the mode's name.
        comparison: the first run beside stock's.
        passed: tests that pass accelerated, whether or not they pass on stock.
        regressions: test -> the finding of the second run in words; flaky tests are not among them.
        flaky: test -> the finding in words.
    """

    mode: str
    comparison: Comparison
    passed: int
    regressions: dict[str, str] = field(default_factory=dict)
    flaky: dict[str, str] = field(default_factory=dict)

    @property
    def good(self) -> int:
        """The number of tests that pass on stock and accelerated, those that pass the second time included."""
        return len(self.comparison.good) + len(self.flaky)


class Progress:
    """Show a counter on a terminal, and nothing where nobody watches."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty()

    def step(self, label: str) -> None:
        """Count one unit as done."""
        self._done += 1
        if self._shown:
            print(f"\r\x1b[K[{self._done}/{self._total}] {label}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Wipe the counter, so that a line can be printed."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def print_failure(suite: str, report: ModeReport, test: str, outcome: Outcome) -> None:
    """Print one regression: its name, how to repeat it, and the end of what it printed.

    Args:
        suite: the suite's name.
        report: the mode in which it happened.
        test: the test's id.
        outcome: its outcome accelerated.
    """
    print(f"\nREGRESSION {suite} {report.mode}: {test}")
    print(f"  second run: {report.regressions[test]}")
    print(f"  repeat it:  python -m compat {suite} --mode {report.mode} --test {shlex.quote(test)}")
    print_end(outcome.detail or f"it was {outcome.status}", _DETAIL_LINES)


def print_end(text: str, lines: int) -> None:
    """Print the last lines of a text, indented."""
    every = text.rstrip().splitlines()
    if len(every) > lines:
        print(f"    [... {len(every) - lines} lines]")
    for line in every[-lines:]:
        print(f"    {line}")


def print_names(title: str, tests: Iterable[str], limit: int | None = None) -> None:
    """Print a list of tests under a title, or nothing if there are none.

    Args:
        title: what they have in common.
        tests: their ids.
        limit: how many to name at most; None for all.
    """
    tests = list(tests)
    if not tests:
        return
    print(f"\n{title}")
    for test in tests[:limit]:
        print(f"  {test}")
    if limit is not None and len(tests) > limit:
        print(f"  ... and {len(tests) - limit} more (-v names them)")


def print_table(suite: str, reports: Sequence[ModeReport]) -> None:
    """Print one row per mode."""
    layout = "{:12} {:15} {:>13} {:>19} {:>14} {:>12}"
    print("\n" + layout.format("suite", "mode", "passed stock", "passed accelerated", "fails on both", "regressions"))
    for report in reports:
        both, regressions = len(report.comparison.both), len(report.regressions)
        print(layout.format(suite, report.mode, report.comparison.passed_stock, report.passed, both, regressions))


def print_speeds(speeds: Sequence[Speed], trouble: str) -> None:
    """Print one row per entry point.

    Args:
        speeds: what was measured.
        trouble: what the measuring process printed if it did not end well.
    """
    layout = "{:45} {:>12} {:>12} {:>8}"
    print("\n" + layout.format("entry point, on real data", "stock", "installed", "faster"))
    for speed in speeds:
        if speed.faster:
            cells = [f"{1000 * speed.stock:.2f} ms", f"{1000 * speed.installed:.2f} ms", f"{speed.faster:.2f}x"]
        else:
            cells = ["fails", "", ""] if speed.fails else ["", "", "the same" if speed.same else "DIFFERS"]
        print(layout.format(speed.entry, *cells))
    if trouble:
        print("the measuring process did not end well:")
        print_end(trouble, _DETAIL_LINES)


def print_verdict(reports: Sequence[ModeReport], differing: int) -> None:
    """Print the last line.

    Args:
        reports: how the modes did.
        differing: entry points that failed or gave something else than on stock.
    """
    passed = sum(report.good for report in reports)
    failed = sum(len(report.regressions) for report in reports) + differing
    print(f"\n{passed} passed, {failed} failed")
