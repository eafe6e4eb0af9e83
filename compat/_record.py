"""Test outcomes on their way from a child process to its parent: one JSON line per test.

    child   Recorder(path).record("test_x.py::test_a", "passed")
    parent  read(path) -> {"test_x.py::test_a": Outcome(...)}

A line is written as soon as its test ends, so a crash loses only the tests that had not ended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

PASSED = "passed"
FAILED = "failed"
SKIPPED = "skipped"  # also an expected failure: neither says that the code under test works

_SEVERITY = {PASSED: 0, SKIPPED: 1, FAILED: 2}


@dataclass(frozen=True)
class Outcome:
    """How one test ended.

    Args:
        status: PASSED, FAILED or SKIPPED.
        detail: the end of what the failure printed; empty for a test that passed.
    """

    status: str
    detail: str = ""


class Recorder:
    """Write outcomes to a file, one line each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def record(self, test: str, status: str, detail: str = "") -> None:
        """Write the outcome of one test.

        Args:
            test: the test's id, unique within its suite.
            status: PASSED, FAILED or SKIPPED.
            detail: what the failure printed.
        """
        row = json.dumps({"test": test, "status": status, "detail": detail})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(row + "\n")


class UnitRecorder(Recorder):
    """Record tests under their unit's name.

    Args:
        unit: the unit.
        recorder: where the outcomes go.
    """

    def __init__(self, unit: str, recorder: Recorder) -> None:
        self._unit = unit
        self._recorder = recorder

    def record(self, test: str, status: str, detail: str = "") -> None:
        """Write the outcome of one test."""
        self._recorder.record(test_id(self._unit, test), status, detail)


def test_id(unit: str, test: str) -> str:
    """Give a unittest's id in its suite: its class and name, which are the same in every Python, under its unit."""
    return f"{unit}::{'.'.join(test.split('.')[-2:])}"


def read(path: Path) -> dict[str, Outcome]:
    """Read what a Recorder wrote.

    Args:
        path: the file; it need not exist.

    Returns:
        Test id -> outcome.  A test recorded several times has its worst outcome, and a line that a crash cut short is
        left out.
    """
    outcomes: dict[str, Outcome] = {}
    if not path.exists():
        return outcomes
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        new = Outcome(row["status"], row["detail"])
        old = outcomes.get(row["test"])
        if old is None or _SEVERITY[new.status] > _SEVERITY[old.status]:
            outcomes[row["test"]] = new
    return outcomes
