"""What a test leaves behind: processes, threads, file descriptors, semaphores, interpreters.

    here() before the test ── the test, its tearDown, its cleanups ── here() again and again, for so many seconds
        └──────────────────────────── since(before) ───────────────────────────┘
                                 empty: nothing is left over

Not for: memory.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import sys
import threading
import time
import unittest
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any, ClassVar

GRACE = 4.0
"""Seconds that what is left over has to go away: a killed process, a thread that ends, a finalizer."""

KEPT = ("log_queue", "executor_kwargs")
"""Attributes in which a test keeps a thing of its own as long as it lives: FailingInitializerMixin a queue, in both,
which is a pipe and semaphores.
https://github.com/python/cpython/blob/v3.14.0/Lib/test/test_concurrent_futures/test_init.py#L63-L68"""

_STEP = 0.02

_SEMAPHORE_PREFIX = f"/fp{os.getpid()}"


class Tidy(unittest.TestCase):
    """A mixin: after every test, nothing may be left over that was not there before."""

    strict: ClassVar[bool] = True
    """False: print what is left over, and let the test's own outcome stand."""

    def run(self, result: unittest.TestResult | None = None) -> unittest.TestResult | None:
        """Run the test with its tearDown and its cleanups, then look around."""
        before = here()
        outcome = super().run(result)
        for name in KEPT:
            vars(self).pop(name, None)
        left = wait_for_nothing(before)
        if left:
            text = f"left over after {GRACE} s: {', '.join(left)}"
            if self.strict and result is not None:
                result.addFailure(self, _failure(text))
            else:
                print(f"{self.id()}: {text}", flush=True)
        return outcome


def _failure(text: str) -> Any:
    """Give an AssertionError as unittest wants it."""
    try:
        raise AssertionError(text)
    except AssertionError:
        return sys.exc_info()


def wait_for_nothing(before: frozenset[str]) -> list[str]:
    """Wait until nothing is left over.

    Args:
        before: what was there before.

    Returns:
        What is still there after `GRACE` seconds; usually it is empty, and at once.
    """
    end = time.monotonic() + GRACE
    while True:
        gc.collect()
        left = sorted(here() - before)
        if not left or time.monotonic() > end:
            return left
        time.sleep(_STEP)


def here() -> frozenset[str]:
    """Give what there is now, each thing as a line that names it."""
    return frozenset([*_processes(), *_threads(), *_descriptors(), *_semaphores(), *_interpreters()])


def name_semaphores() -> None:
    """Give the semaphores of this process and of its children a name by which they are known as its own."""
    config: dict[str, Any] = getattr(multiprocessing.current_process(), "_config")  # noqa: B009  # it has no type
    config["semprefix"] = _SEMAPHORE_PREFIX


def children() -> dict[int, str]:
    """Give the processes that descend from this one, also those whose parent has ended, where the system tells.

    Returns:
        Process id -> its state and command.  The two helpers of `multiprocessing` that stay are left out.
    """
    found = {process.pid: process.name for process in multiprocessing.active_children() if process.pid is not None}
    try:
        psutil = importlib.import_module("psutil")
    except ImportError:
        pass
    else:
        found |= {child.pid: _command(child) for child in psutil.Process().children(recursive=True)}
    if os.getsid(0) == os.getpid():  # so a session's processes are all ours
        found |= dict(_session())
    for helper in (resource_tracker._resource_tracker, forkserver._forkserver):
        found.pop(getattr(helper, "_pid", None) or getattr(helper, "_forkserver_pid", None) or -1, None)
    return found


def _command(process: Any) -> str:
    """Say what a process of psutil's is; it may have ended."""
    try:
        return str(process.name())
    except Exception:  # whatever psutil has for one that is gone
        return "gone"


def _session() -> list[tuple[int, str]]:
    """Give the other processes of this session, from /proc."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = file.read_text(encoding="utf-8", errors="replace").rpartition(")")
        except OSError:
            continue
        state, _parent, _group, session, *_ = tail.split()
        pid = int(file.parent.name)
        if int(session) == os.getpid() and pid != os.getpid():
            found.append((pid, f"{head.partition('(')[2]}, {state}"))
    return found


def _processes() -> list[str]:
    return [f"process {pid} ({what})" for pid, what in children().items()]


def _threads() -> list[str]:
    named = threading.enumerate()
    lines = [f"thread {thread.name} ({thread.ident})" for thread in named]
    known = {thread.native_id for thread in named}
    tasks = Path("/proc/self/task")
    if tasks.exists():
        lines += [f"thread without a name ({tid.name})" for tid in tasks.iterdir() if int(tid.name) not in known]
    return lines


def _descriptors() -> list[str]:
    own = {
        getattr(resource_tracker._resource_tracker, "_fd", None),
        getattr(forkserver._forkserver, "_forkserver_alive_fd", None),
    }
    lines = []
    folder = "/proc/self/fd"
    for number in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            target = os.readlink(f"{folder}/{number}")
        except OSError:  # the listing's own
            continue
        if int(number) not in own and not target.startswith("/proc/"):
            lines.append(f"descriptor {number} ({target})")
    return lines


def _semaphores() -> list[str]:
    return [f"semaphore {file.name}" for file in Path("/dev/shm").glob(f"sem.{_SEMAPHORE_PREFIX[1:]}-*")]


def _interpreters() -> list[str]:
    try:
        interpreters = importlib.import_module("concurrent.interpreters")
    except ImportError:
        return []
    return [f"interpreter {interpreter.id}" for interpreter in interpreters.list_all()]
