"""Run one of joblib's test files with pytest, as upstream does, and record each test.

The files are run where they are installed, because they are the package ``joblib.test``: a copy would have another
name, and the names of its classes are part of what is pickled.  They write to temporary folders only.

joblib's ``conftest.py`` is not in the wheel; ``fixtures.py`` has what these files need of it.  The processes that the
tests start are left stock: what they get from the accelerated side has to be readable there, and to have the same keys.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from compat._accelerate import put_in_place
from compat._pytest import run_pytest
from compat._record import Recorder


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one test file.

    Args:
        unit: the file's name, in the folder of joblib's tests.
        mode: "stock", "installed" or "installed-late".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 0 if pytest ran the file to its end.
    """
    put_in_place(mode, "joblib")
    joblib = importlib.util.find_spec("joblib")
    if joblib is None or joblib.origin is None:
        raise SystemExit("joblib is not installed")
    folder = Path(joblib.origin).parent / "test"
    empty = Path("pytest.ini")  # else pytest looks above the tests, and finds a project's that has its .tox there
    empty.write_text("[pytest]\n", encoding="utf-8")
    arguments = ["-p", "compat.joblib.fixtures", "-c", str(empty), "--rootdir", str(folder), str(folder / unit)]
    return run_pytest(arguments, tests, recorder)
