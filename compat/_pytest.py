"""Run upstream's tests with pytest in a child process, and record each test.

    child.py   run_pytest(["tests/test_x.py", ...], tests, recorder)  ->  pytest.main, with a plugin that records

For the suites that upstream itself runs with pytest.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compat._record import FAILED, PASSED, SKIPPED, Recorder

_RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def run_pytest(arguments: Sequence[str], tests: frozenset[str], recorder: Recorder) -> int:
    """Run tests, and record each.

    Args:
        arguments: what pytest gets on its command line, beside what keeps it quiet and away from the working directory.
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 0 if pytest ran to its end, whatever its tests did.
    """
    status = pytest.main(["-q", "-p", "no:cacheprovider", *arguments], plugins=[_Plugin(recorder, tests)])
    return 0 if status in _RAN else int(status)


class _Plugin:
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
