"""Run one of dill's test files the way dill runs it, as a script, and record each test."""

from __future__ import annotations

from functools import partial

from compat._accelerate import put_in_place, replace
from compat._record import Recorder
from compat._scripts import run_script


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one test file.

    Args:
        unit: the file's name, in the working directory.
        mode: "stock", "installed", "installed-late" or "backend".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 1 if there was an error outside the tests.
    """
    return run_script(unit, partial(_put_in_place, mode), tests, recorder)


def _put_in_place(mode: str) -> None:
    """Accelerate dill as the mode says."""
    put_in_place(mode, "dill")
    if mode == "backend":
        names = {name: name for name in ("Pickler", "dump", "dumps")}
        replace("fastpickle.backends.dill", names, ("dill", "dill._dill", "dill.session"))
