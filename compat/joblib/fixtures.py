"""What joblib's conftest.py does for the files that are run here; it is in the source archive, but not in the wheel.

It shows the log of multiprocessing on stderr, and checks after each test that the limits for the threads of numerical
libraries, which joblib gives to its workers, have not leaked into the test process.  The rest of it is about doctests
and about hangs, which the runner sees to.

https://github.com/joblib/joblib/blob/1.6.0/conftest.py
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Show the log of multiprocessing, and know the marks of pytest plugins that are not needed here."""
    config.addinivalue_line("markers", "thread_unsafe: a mark of pytest-run-parallel")
    parallel: Any = importlib.import_module("joblib.parallel")
    if parallel.mp is not None:
        log = parallel.mp.util.log_to_stderr(logging.DEBUG)
        log.handlers[0].setFormatter(logging.Formatter("[%(levelname)s:%(processName)s:%(threadName)s] %(message)s"))


@pytest.fixture(autouse=True)
def avoid_env_var_leakage() -> Iterator[None]:
    """Check that no limit for threads is left in the environment."""
    yield
    parallel: Any = importlib.import_module("joblib.parallel")
    assert not any(os.environ.get(name) for name in parallel.ParallelBackendBase.MAX_NUM_THREADS_VARS)
