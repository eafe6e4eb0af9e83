"""Run some of datasets' tests with pytest, offline, and record each.

    the working directory            tests/ as it is in the source distribution
    + extra/utils.py, conftest.py    stand in for upstream's, which are in no file of the package index
    + extra/test_*.py                our own tests
    + environment                    no hub, and caches inside the working directory

The few tests that need more than that of upstream's fixtures fail on stock too, so they are not counted.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
from pathlib import Path

from compat._accelerate import put_in_place
from compat._pytest import run_pytest
from compat._record import Recorder

_EXTRA = Path(__file__).parent / "extra"

_MANY_PROCESSES = "tests/test_py_utils.py"
"""Left out where a new process imports datasets anew, as from 3.14 on: its dozens of processes take minutes there."""

_UNITS = {
    "hashes": (
        "tests/test_fingerprint.py",
        "tests/test_hasher_digests.py",
        _MANY_PROCESSES,
        "tests/test_dataset_dict.py::DatasetDictTest",
        "--deselect=tests/test_dataset_dict.py::DatasetDictTest::test_serialization",  # half a minute of writing files
    ),
    "caches": (
        "tests/test_arrow_dataset.py",
        "-k=pickle or fingerprint or cache or caching or test_map or test_filter",
    ),
}
"""Unit -> what pytest is told.  Of test_arrow_dataset.py the rest reads and writes files, and takes a minute more."""


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one unit, in a working directory that is a copy of the source distribution.

    Args:
        unit: "hashes" or "caches".
        mode: "stock", "installed" or "installed-late".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 0 if pytest ran to its end.
    """
    for file in _EXTRA.glob("*.py"):
        shutil.copy(file, "tests")
    Path("tests/__init__.py").touch()  # for the tests' relative imports
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=os.path.abspath("hf-home"))
    put_in_place(mode, "datasets")
    forks = multiprocessing.get_all_start_methods()[0] == "fork"
    arguments = [argument for argument in _UNITS[unit] if forks or argument != _MANY_PROCESSES]
    return run_pytest(arguments, tests, recorder)
