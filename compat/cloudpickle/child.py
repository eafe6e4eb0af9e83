"""Run one of cloudpickle's test files with pytest, as upstream does, and record each test.

The processes that the tests start are left stock: what they get from the accelerated side has to be readable there.
"""

from __future__ import annotations

import pytest

from compat._accelerate import install, replace
from compat._record import FAILED, PASSED, SKIPPED, Recorder

_RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one test file.

    Args:
        unit: the file's path in the working directory, which is a copy of cloudpickle's source.
        mode: "stock", "installed" or "backend".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 0 if pytest ran the file to its end.
    """
    if mode == "installed":
        install()
    elif mode == "backend":
        names = {"Pickler": "Pickler", "CloudPickler": "Pickler", "dump": "dump", "dumps": "dumps"}
        replace("fastpickle.backends.cloudpickle", names, ("cloudpickle", "cloudpickle.cloudpickle"))
    status = pytest.main(["-q", "-p", "no:cacheprovider", unit], plugins=[Plugin(recorder, tests)])
    return 0 if status in _RAN else int(status)


class Plugin:
    """Record each test, and leave out those that are not asked for.

    Args:
        recorder: where the outcomes go.
        tests: the ids to run; empty for all.
    """

    def __init__(self, recorder: Recorder, tests: frozenset[str]) -> None:
        self._recorder = recorder
        self._tests = tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that are asked for."""
        if self._tests:
            items[:] = [item for item in items if item.nodeid in self._tests]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a phase of a test; of several, the worst one counts."""
        if report.failed:
            self._recorder.record(report.nodeid, FAILED, report.longreprtext)
        elif report.skipped:  # expected failures too
            self._recorder.record(report.nodeid, SKIPPED)
        elif report.when == "call":
            self._recorder.record(report.nodeid, PASSED)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported."""
        if report.failed:
            self._recorder.record(f"{report.nodeid} (collection)", FAILED, report.longreprtext)
