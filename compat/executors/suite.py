"""What to run of the interpreter's ``test_concurrent_futures``: every test that an executor of ours can be bound to.

    method        x group                                      = unit
    fork            executor  map, submit, tracebacks, max_tasks_per_child       "fork-executor"
    spawn           shutdown  also at the interpreter's end
    forkserver      init      initialisers that work, and that fail
                    wait      wait() and as_completed()
                    deadlock  crash, exit, error: at pickling, unpickling, in a call
                    resources what a failing initialiser leaves in the resource tracker
    interpreters    executor, shutdown, init, wait                               "interpreters-init"

A test's id is "fork-executor::ProcessPoolForkProcessPoolExecutorTest.test_map", the same on every Python: 3.10 has the
tests in one module, later Pythons in several.  The thread pool's own tests are not run: there is no class of ours to
bind to them.  Those that it shares with the other executors are all here.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from compat._suite import STOCK, MissingInput, Suite
from compat.executors.deselected import DESELECTED

PROCESSES, INTERPRETERS = "processes", "interpreters"

MODES = {
    PROCESSES: "ProcessThreadPoolExecutor in the place of ProcessPoolExecutor, with two threads in each process",
    INTERPRETERS: "fastpickle's InterpreterPoolExecutor in the place of concurrent.futures' (3.14 and later)",
}


@dataclass(frozen=True)
class Group:
    """Test classes that run together.

    Args:
        classes: module -> the names of its test classes, in which ``{}`` stands for "Fork", "Spawn" or "Forkserver".
        test: the one test to run of them, in which ``{}`` stands for the start method; None for all.
    """

    classes: dict[str, tuple[str, ...]]
    test: str | None = None


GROUPS = {
    "deadlock": Group({"test_deadlock": ("ProcessPool{}ExecutorDeadlockTest",)}),
    "executor": Group({"test_process_pool": ("ProcessPool{}ProcessPoolExecutorTest",)}),
    "shutdown": Group({"test_shutdown": ("ProcessPool{}ProcessPoolShutdownTest",)}),
    "wait": Group({"test_wait": ("ProcessPool{}WaitTest",), "test_as_completed": ("ProcessPool{}AsCompletedTest",)}),
    "init": Group({"test_init": ("ProcessPool{}InitializerTest", "ProcessPool{}FailingInitializerTest")}),
    "resources": Group({"test_init": ("FailingInitializerResourcesTest",)}, "test_{}"),
}
"""Group -> what it runs under a start method; a class that a Python does not have is left out there."""

INTERPRETER_GROUPS = {
    "executor": Group({"test_interpreter_pool": ("InterpreterPoolExecutorTest", "AsyncioTest")}),
    "shutdown": Group({"test_shutdown": ("InterpreterPoolExecutorShutdownTest",)}),
    "wait": Group(
        {"test_wait": ("InterpreterPoolWaitTest",), "test_as_completed": ("InterpreterPoolAsCompletedTest",)}
    ),
    "init": Group({"test_init": ("InterpreterPoolInitializerTest", "InterpreterPoolFailingInitializerTest")}),
}
"""The same for interpreters; the interpreter itself does not bind its tests of shutdown() and wait() to them."""

_METHODS = ("spawn", "forkserver", "fork")  # the slow ones first


def prepare(source: Path | None) -> Suite:
    """Look for the tests in the running interpreter.

    Args:
        source: must be None; other tests than the interpreter's own would not fit it.

    Returns:
        The suite.

    Raises:
        MissingInput: the interpreter has no ``test`` package, there are no POSIX processes, or a source was given.
    """
    if source is not None:
        raise MissingInput("executors takes no --source: it runs the tests that come with the interpreter")
    home = _home()
    if home is None:
        raise MissingInput("this interpreter has no test.test_concurrent_futures (install the package with its tests)")
    if os.name != "posix":
        raise MissingInput("executors needs fork and forkserver")
    tracked = (home / "test_init.py").exists()  # 3.10 does not test the resource tracker
    processes = tuple(
        f"{method}-{group}"
        for group in GROUPS
        for method in _METHODS
        if group != "resources" or (tracked and method != "fork")  # under fork, it tracks nothing
    )
    interpreters: tuple[str, ...] = ()
    if (home / "test_interpreter_pool.py").exists():
        interpreters = tuple(f"{INTERPRETERS}-{group}" for group in INTERPRETER_GROUPS)
    units = {STOCK: (*processes, *interpreters), PROCESSES: processes, INTERPRETERS: interpreters}
    return Suite(
        name="executors",
        version="its own tests of executors",
        modes={mode: what for mode, what in MODES.items() if units[mode]},
        units=units,
        deselected=DESELECTED,
    )


def _home() -> Path | None:
    """Find the folder with the interpreter's tests of executors, or with the one file of them; None without them."""
    try:
        spec = importlib.util.find_spec("test.test_concurrent_futures")
        support = importlib.util.find_spec("test.support")
    except ImportError:
        return None
    return Path(spec.origin).parent if spec and spec.origin and support else None
