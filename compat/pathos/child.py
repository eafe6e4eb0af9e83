"""Run one of pathos's test files the way pathos runs it, as a script, and record each test.

A ProcessPool's workers are forked from the accelerated process, and inherit ``install()``; from Python 3.14 on they
come from a fork server, and are stock.  A ParallelPool's workers are ppft's own programs, and stock everywhere: what
they get from the accelerated side has to be readable there.
"""

from __future__ import annotations

from functools import partial

from compat._accelerate import put_in_place
from compat._record import Recorder
from compat._scripts import run_script


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one test file.

    Args:
        unit: the file's name, in the working directory.
        mode: "stock", "installed" or "installed-late".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 1 if there was an error outside the tests.
    """
    return run_script(unit, partial(put_in_place, mode, "pathos"), tests, recorder)
