"""Run one of the test files with pytest, and record each test.

The tests find out by themselves whether fastpickle is there; they take it away to see what stock writes, and put it
back (``tests/oracle.py``).
"""

from __future__ import annotations

from compat._accelerate import put_in_place
from compat._pytest import run_pytest
from compat._record import Recorder


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one test file.

    Args:
        unit: the file's name, in the working directory.
        mode: "stock", "installed" or "installed-late".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 0 if pytest ran the file to its end.
    """
    put_in_place(mode, "numpy", "pandas", "dill", "joblib")
    return run_pytest(["-W", "ignore", unit], tests, recorder)
