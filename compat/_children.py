"""Run the child processes: one per (mode, unit), a few at a time, each in a folder of its own.

    Job(mode, unit, tests) --> Popen(python -m compat._child ...)  in a scratch folder
                                 |-- outcomes.jsonl   one line per test     (_record.py)
                                 +-- output.txt       stdout and stderr, for the failure report
                           --> Result(job, outcomes, output, seconds)

The process itself is one more test, named after its unit: it passes if the child ends with exit status 0.  So a crash
at exit, a hang or an error outside any test function is seen too.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from compat._record import FAILED, PASSED, Outcome, read
from compat._speed import Speed, read_speeds
from compat._suite import Suite

ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds this package, and fastpickle's sources beside it."""

_GRACE = 5.0
"""Seconds between the moment a child shows its stacks and gives up, and the moment it is killed."""


@dataclass(frozen=True)
class Job:
    """What one child process does.

    Args:
        mode: the mode to put in place.
        unit: the unit to run.
        tests: the ids to run; empty for all.
    """

    mode: str
    unit: str
    tests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """What came back from one child process.

    Args:
        job: what it was asked to do.
        outcomes: test id -> outcome, the unit itself included.
        output: everything that it printed.
        seconds: how long it took.
    """

    job: Job
    outcomes: dict[str, Outcome]
    output: str
    seconds: float


class Children:
    """Run jobs of one suite.

    Args:
        suite: the suite.
        jobs: how many processes may run at once.
        timeout: seconds that one process may take.
        variables: what is added to the environment of each.
    """

    def __init__(
        self, suite: Suite, jobs: int, timeout: float, variables: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._suite = suite
        self._jobs = jobs
        self._timeout = timeout
        self._variables = variables
        self._live: set[subprocess.Popen[bytes]] = set()
        self._cancelled = False

    def run(self, jobs: Iterable[Job], done: Callable[[Result], None]) -> dict[Job, Result]:
        """Run jobs and wait for them.

        Args:
            jobs: what to run, in the order in which to start.
            done: called in this thread with each result as it comes.

        Returns:
            Job -> result.
        """
        results = {}
        with ThreadPoolExecutor(self._jobs) as pool:
            futures = [pool.submit(self._run, job) for job in jobs]
            try:
                for future in as_completed(futures):
                    result = future.result()
                    results[result.job] = result
                    done(result)
            except BaseException:
                self._cancel()
                raise
        return results

    def _cancel(self) -> None:
        """Kill what is running and start nothing more."""
        self._cancelled = True
        for process in list(self._live):
            _kill(process)

    def _run(self, job: Job) -> Result:
        with tempfile.TemporaryDirectory(prefix="fpc-", ignore_cleanup_errors=True) as name:
            scratch = Path(name)
            command = ["compat._child", self._suite.name, job.mode, job.unit, str(scratch / "outcomes.jsonl")]
            command += ["--timeout", str(self._timeout)]
            for test in job.tests:
                command += ["--test", test]
            started = time.monotonic()
            status = self._spawn(command, scratch)
            seconds = time.monotonic() - started
            output = _output(scratch)
            outcomes = read(scratch / "outcomes.jsonl")
        outcomes.setdefault(job.unit, _process_outcome(status, output))
        return Result(job, outcomes, output, seconds)

    def measure(self, *, timed: bool) -> tuple[list[Speed], str]:
        """Compare and time the entry points of the suite's library in a child of its own (``_speed.py``).

        Args:
            timed: time them; else only compare what they give.

        Returns:
            What was measured, and what the child printed if it did not end well, else an empty string.
        """
        with tempfile.TemporaryDirectory(prefix="fpc-", ignore_cleanup_errors=True) as name:
            scratch = Path(name)
            command = [
                "compat._speed",
                self._suite.name,
                str(scratch / "speeds.jsonl"),
                *([] if timed else ["--untimed"]),
            ]
            status = self._spawn(command, scratch)
            trouble = "" if status == 0 else _output(scratch) or "it printed nothing"
            return read_speeds(scratch / "speeds.jsonl"), trouble

    def _work_folder(self, scratch: Path) -> Path:
        """Make the child's working directory: upstream's tests write beside themselves, so each child has a copy."""
        work = scratch / "work"
        if self._suite.copy is None:
            work.mkdir()
        else:
            shutil.copytree(self._suite.copy, work, ignore=shutil.ignore_patterns("__pycache__"))
        return work

    def _spawn(self, arguments: Sequence[str], scratch: Path) -> int | None:
        """Run one child to its end.

        Args:
            arguments: a module of this package and what it is told.
            scratch: the child's own folder.

        Returns:
            Its exit status; None if it took too long.
        """
        work = self._work_folder(scratch)
        path = [str(work / entry) for entry in self._suite.path]  # joining keeps an absolute entry as it is
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment.update(self._variables)
        environment["PYTHONPATH"] = os.pathsep.join([*path, str(ROOT)])
        temporary = scratch / "t"  # tests run scripts from there, which import what lies beside; short, for sockets
        temporary.mkdir()
        environment.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)))
        with (scratch / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that the processes that a test starts can be killed with it
            )
            self._live.add(process)
            try:
                if self._cancelled:
                    _kill(process)
                status: int | None = process.wait(self._timeout + _GRACE)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                self._live.discard(process)
            if status != 0:
                _kill(process)  # and what it has left behind
                process.wait()
            return status


def _output(scratch: Path) -> str:
    """Read what a child has printed."""
    return (scratch / "output.txt").read_text(encoding="utf-8", errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a child and the processes that it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except OSError:
        pass  # it has just ended


def _process_outcome(status: int | None, output: str) -> Outcome:
    """Say how the process as a whole did."""
    if status == 0:
        return Outcome(PASSED)
    end = "took too long and was killed" if status is None else f"ended with exit status {status}"
    return Outcome(FAILED, f"{output}\n[the process {end}]")
