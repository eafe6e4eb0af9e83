"""What an executor may leave behind: processes, threads, open files, interpreters."""

from __future__ import annotations

import ctypes  # noqa: F401  # keeps a file open from its first import on, which is not to be a test's
import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

try:
    from multiprocessing import forkserver, resource_tracker
except ImportError:  # Windows
    forkserver = resource_tracker = None  # type: ignore[assignment]  # never asked there
try:
    from concurrent import interpreters
except ImportError:  # before 3.14
    interpreters = None  # type: ignore[assignment]  # there are none

SECONDS = 10.0
"""Seconds that what ends in the background may take."""


def _children() -> set[int]:
    """Return the ids of this process's children, but for those of `multiprocessing` that stay."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            found = {int(pid) for pid in file.read().split()}
    except OSError:
        return {p.pid for p in multiprocessing.active_children() if p.pid is not None}
    return found - _helpers()


def _helpers() -> set[Any]:
    """Return the processes that `multiprocessing` keeps for the start methods."""
    # Private, and nothing else tells them from a pool's processes.
    return {forkserver._forkserver._forkserver_pid, resource_tracker._resource_tracker._pid}  # type: ignore[attr-defined]


def _files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def _interpreters() -> int:
    return 0 if interpreters is None else len(interpreters.list_all())


def _look() -> tuple[set[int], set[threading.Thread], int, int]:
    return _children(), {*threading.enumerate()}, _files(), _interpreters()


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if there is anything afterwards, and for long, that was not there before."""
    before = _look()
    yield
    end = time.monotonic() + SECONDS
    while True:
        gc.collect()  # PyPy closes files no sooner
        multiprocessing.active_children()  # joins those that have ended
        children, threads, files, interpreters = _look()
        left = (
            children - before[0],
            threads - before[1],
            max(0, files - before[2]),
            max(0, interpreters - before[3]),
        )
        if not any(left):
            return
        if time.monotonic() > end:
            for pid in left[0]:  # or what they do would be waited for in the end
                os.kill(pid, signal.SIGKILL)
            pytest.fail(f"left over: processes {left[0]}, threads {left[1]}, {left[2]} files, {left[3]} interpreters")
        time.sleep(0.01)
