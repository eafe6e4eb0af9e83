"""Run a suite accelerated, and compare what each dump of its tests writes with what stock writes.

    child   install(), with the log of LOG_VARIABLE --> fastpickle.cli._beside compares each dump --> a line in the log
    parent  the log of all children --> report --> exit status

The tests' own outcomes are for ``_run.py`` to judge: here they take longer, and some of them look at the clock.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from pathlib import Path

from compat._children import Children, Job, Result
from compat._record import FAILED, PASSED
from compat._report import Progress, print_names
from compat._run import ids_for, units_of
from compat._suite import LOG_VARIABLE, MissingInput, Suite


def verify_suite(suite: Suite, modes: tuple[str, ...], tests: tuple[str, ...], jobs: int, timeout: float) -> int:
    """Run a suite, and print what came of comparing.

    Args:
        suite: the suite.
        modes: the accelerated modes to run; those that install fastpickle.
        tests: the ids to run; empty for all.
        jobs: how many processes may run at once.
        timeout: seconds that one process may take.

    Returns:
        The exit status: 1 if a dump differs from stock's, else 0.

    Raises:
        MissingInput: nothing can be compared here, or no dump was compared.
    """
    verify = importlib.import_module("fastpickle.cli.verify")
    if trouble := verify.why_not():
        raise MissingInput(f"--verify {trouble}")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fpc-") as folder:
        log = Path(folder) / "log"
        log.touch()
        children = Children(suite, jobs, timeout, {LOG_VARIABLE: str(log)})
        every = [Job(mode, unit, ids_for(unit, tests)) for mode in modes for unit in units_of(suite, mode, tests)]
        progress = Progress(len(every))
        print(f"{suite.version}: {', '.join(modes)}, each dump compared with stock's", flush=True)
        results = children.run(every, lambda result: progress.step(f"{result.job.mode} {result.job.unit}"))
        progress.clear()
        records = importlib.import_module("fastpickle.cli._records").read_log(log)
    _print_outcomes(list(results.values()))
    print("", *verify.report(records), sep="\n")
    different = sum(bool(record.said) for record in records)
    compared = sum(not record.why for record in records)
    print(f"\n{time.monotonic() - started:.0f} seconds\n\n{compared - different} passed, {different} failed")
    if not compared:
        raise MissingInput("no dump of the tests was compared")
    return int(different > 0)


def _print_outcomes(results: list[Result]) -> None:
    """Say how many tests passed, and name those that did not: what they did not come to was not compared."""
    outcomes = [(test, outcome.status) for result in results for test, outcome in result.outcomes.items()]
    passed = sum(status == PASSED for _, status in outcomes)
    failed = [test for test, status in outcomes if status == FAILED]
    print(f"{passed} tests and processes passed, {len(failed)} failed")
    print_names("failed here; without --verify it is told whether they fail on stock", failed[:10])
