"""Run one suite from the first process to the last line of the report.

    first run    stock and every mode, all units                    -> Result per job
    compare      each mode beside stock                             -> ModeReport
    second run   each seeming regression alone, on both sides       -> regression or flaky
    measure      the library's entry points, stock and installed    -> Speed
    report       failures, table, verdict                           -> exit status

What each step finds is in ``_compare.py`` (the judgement) and ``_report.py`` (the words).
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from compat._children import Children, Job, Result
from compat._compare import REGRESSION, compare, settle
from compat._record import FAILED, PASSED, Outcome
from compat._report import (
    ModeReport,
    Progress,
    print_end,
    print_failure,
    print_names,
    print_speeds,
    print_table,
    print_verdict,
)
from compat._results import Cell, keep, revision, this_python
from compat._speed import Speed
from compat._suite import STOCK, MissingInput, Suite
from fastpickle._stdlib import is_switched_off

_RERUN_LIMIT = 10
"""Seeming regressions per mode that are run again: more than that is no flakiness, and would take minutes."""

_SHOWN_LIMIT = 10
"""Regressions per mode whose output is shown; the others are only named."""

_NAMED_LIMIT = 50
"""Regressions per mode that are named without their output; with -v all are."""


def run_suite(
    suite: Suite,
    modes: tuple[str, ...],
    tests: tuple[str, ...],
    jobs: int,
    timeout: float,
    *,
    verbose: bool,
    timed: bool,
) -> int:
    """Run a suite stock and in some modes, and print the report.

    Args:
        suite: the suite.
        modes: the accelerated modes to run.
        tests: the ids to run; empty for all.
        jobs: how many processes may run at once.
        timeout: seconds that one process may take.
        verbose: print a line per unit, and name the tests that are not counted.
        timed: time the library's entry points; else only compare what they give.

    Returns:
        The exit status: 1 if there are regressions, or an entry point gives something else than stock; else 0.

    Raises:
        MissingInput: no test passes on stock, so there is nothing to compare.
    """
    started = time.monotonic()
    children = Children(suite, jobs, timeout)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"{suite.version}, on {python}: stock, {', '.join(modes)}", flush=True)
    runs = _first_run(suite, modes, tests, children, verbose)
    reports = [_compare_mode(suite, mode, runs, children) for mode in modes]
    if not any(report.comparison.passed_stock for report in reports):
        _show_stock_failures(runs[STOCK])
        what = "none of the tests asked for passes" if tests else "no test passes"
        raise MissingInput(f"{what} on stock, so there is nothing to compare")
    own = ((unit, runs[STOCK].outcomes.get(unit)) for unit in suite.units[STOCK])
    broken = [unit for unit, outcome in own if outcome is not None and outcome.status == FAILED]
    print_names("stock: processes that did not end well; tests that they did not reach are not counted", broken)
    seen = {unit for test, unit in runs[STOCK].unit_of.items() if test != unit}
    if not tests:
        print_names("processes without a single test", [unit for unit in suite.units[STOCK] if unit not in seen])
    for report in reports:
        _print_mode(suite, report, runs[report.mode], verbose)
    print_table(suite.name, reports)
    speeds: list[Speed] = []
    trouble = ""
    if not tests and (Path(__file__).parent / suite.name / "speed.py").exists():
        speeds, trouble = children.measure(timed=timed)
        print_speeds(speeds, trouble)
    if not tests and modes == tuple(suite.modes) and timed and not is_switched_off():  # the table says what C gains
        _keep(suite, reports, speeds)
    print(f"\n{time.monotonic() - started:.0f} seconds")
    differing = sum(not speed.same for speed in speeds) + bool(trouble)
    print_verdict(reports, differing)
    return int(bool(differing) or any(report.regressions for report in reports))


def _keep(suite: Suite, reports: Sequence[ModeReport], speeds: Sequence[Speed]) -> None:
    """Keep what a whole run gave, for the table of the last runs."""
    python, release = this_python()
    passed = {report.mode: (report.comparison.passed_stock, report.passed) for report in reports}
    regressions = sum(len(report.regressions) for report in reports)
    keep(Cell(suite.name, suite.version, python, release, passed, regressions, tuple(speeds), revision()))


class _ModeRun:
    """The outcomes of all units of one mode.

    Args:
        tests: the ids that were asked for; empty for all.
    """

    def __init__(self, tests: tuple[str, ...]) -> None:
        self._tests = tests
        self.outcomes: dict[str, Outcome] = {}
        self.unit_of: dict[str, str] = {}
        self.output_of: dict[str, str] = {}
        self.seconds = 0.0

    def add(self, result: Result) -> None:
        """Add the outcomes of one unit."""
        unit = result.job.unit
        self.seconds += result.seconds
        self.output_of[unit] = result.output
        for test, outcome in result.outcomes.items():
            if not self._tests or test in self._tests:
                self.outcomes[test] = outcome
                self.unit_of[test] = unit


def _first_run(
    suite: Suite, modes: tuple[str, ...], tests: tuple[str, ...], children: Children, verbose: bool
) -> dict[str, _ModeRun]:
    """Run every unit in every mode.

    Returns:
        Mode, stock included, -> its outcomes.
    """
    jobs = [Job(mode, unit, ids_for(unit, tests)) for mode in (STOCK, *modes) for unit in units_of(suite, mode, tests)]
    progress = Progress(len(jobs))
    waiting = {mode: sum(job.mode == mode for job in jobs) for mode in (STOCK, *modes)}
    runs = {mode: _ModeRun(tests) for mode in (STOCK, *modes)}

    def done(result: Result) -> None:
        mode = result.job.mode
        runs[mode].add(result)
        waiting[mode] -= 1
        progress.clear()
        if verbose:
            tests = {test: outcome for test, outcome in result.outcomes.items() if test != result.job.unit}
            print(_line(mode, tests, result.seconds, result.job.unit), flush=True)
        elif not waiting[mode]:
            run = runs[mode]
            tests = {test: outcome for test, outcome in run.outcomes.items() if test != run.unit_of[test]}
            print(_line(mode, tests, run.seconds, "in all"), flush=True)
        progress.step(f"{mode} {result.job.unit}")

    children.run(jobs, done)
    progress.clear()
    return runs


def units_of(suite: Suite, mode: str, tests: tuple[str, ...]) -> tuple[str, ...]:
    """Give the units of a mode, without those that none of the wanted tests can be in."""
    units = suite.units[mode]
    homes = {unit for unit in units for test in tests if _is_in(test, unit)}
    return tuple(unit for unit in units if unit in homes) if homes else units


def _is_in(test: str, unit: str) -> bool:
    """Say whether a test's id is a unit's, or begins with it."""
    return test == unit or test.startswith((f"{unit}.", f"{unit}::"))


def ids_for(unit: str, tests: tuple[str, ...]) -> tuple[str, ...]:
    """Give the ids that a child is told; the unit's own id stands for all of its tests."""
    return () if unit in tests else tests


def _line(mode: str, outcomes: Mapping[str, Outcome], seconds: float, what: str) -> str:
    """Say in one line how a unit or a mode went."""
    passed = sum(outcome.status == PASSED for outcome in outcomes.values())
    failed = sum(outcome.status == FAILED for outcome in outcomes.values())
    return f"{mode:15} {passed:5} passed {failed:5} failed {seconds:7.1f} s  {what}"


def _compare_mode(suite: Suite, mode: str, runs: Mapping[str, _ModeRun], children: Children) -> ModeReport:
    """Compare a mode with stock, running seeming regressions again."""
    units = suite.units[mode]
    stock = {test: outcome for test, outcome in runs[STOCK].outcomes.items() if runs[STOCK].unit_of[test] in units}
    rows = {row.test: row.sometimes for row in suite.deselected if mode in row.modes and row.applies}
    accelerated = runs[mode].outcomes
    comparison = compare(stock, accelerated, rows, units)
    passed = sum(outcome.status == PASSED for test, outcome in accelerated.items() if test not in units)
    report = ModeReport(mode, comparison, passed)
    seeming = sorted(comparison.regressions, key=lambda test: test not in units)  # whole processes first
    again = tuple(seeming[:_RERUN_LIMIT])
    if again:
        print(f"{mode}: running {len(again)} seeming regressions again, each alone, on both sides", flush=True)
    for test, (verdict, words) in _second_run(again, mode, runs[STOCK].unit_of, children).items():
        (report.regressions if verdict == REGRESSION else report.flaky)[test] = words
    for test in seeming[_RERUN_LIMIT:]:
        report.regressions[test] = f"not run again: more than {_RERUN_LIMIT} seeming regressions are no accident"
    report.passed += len(report.flaky)
    return report


def _second_run(
    tests: tuple[str, ...], mode: str, unit_of: Mapping[str, str], children: Children
) -> dict[str, tuple[str, str]]:
    """Run tests again, each in processes of its own, and settle what they are.

    Returns:
        Test -> the verdict and the finding in words.
    """
    jobs = {
        (test, side): Job(side, unit_of[test], ids_for(unit_of[test], (test,)))
        for test in tests
        for side in (STOCK, mode)
    }
    progress = Progress(len(jobs))

    def done(result: Result) -> None:
        progress.step(f"{result.job.mode} {result.job.unit}")

    results = children.run(jobs.values(), done)
    progress.clear()
    again = {key: results[job].outcomes.get(key[0]) for key, job in jobs.items()}
    return {test: settle(again[test, STOCK], again[test, mode]) for test in tests}


def _print_mode(suite: Suite, report: ModeReport, run: _ModeRun, verbose: bool) -> None:
    """Print a mode's regressions, and what else is worth knowing of it."""
    ended = [test for test in report.regressions if test in run.outcomes]
    for test in ended[:_SHOWN_LIMIT]:
        print_failure(suite.name, report, test, run.outcomes[test])
    lost = [test for test in report.regressions if test not in run.outcomes]
    limit = None if verbose else _NAMED_LIMIT
    print_names(f"{report.mode}: more regressions", ended[_SHOWN_LIMIT:], limit)
    print_names(f"{report.mode}: regressions that never ended (their process did, see there)", lost, limit)
    flaky = [f"{test}: {finding}" for test, finding in report.flaky.items()]
    print_names(f"{report.mode}: pass the second time, not counted as failed", flaky)
    print_names(f"{report.mode}: deselected although they pass; their rows can go", report.comparison.needless)
    print_names(f"{report.mode}: failing, but deselected", report.comparison.deselected)
    if verbose:
        print_names(f"{report.mode}: failing on stock too, not counted", report.comparison.both)


def _show_stock_failures(run: _ModeRun) -> None:
    """Print why nothing passes on stock, as far as it is known."""
    for unit, output in run.output_of.items():
        print(f"\n{unit} on stock:", file=sys.stderr)
        print_end(output, 5)
