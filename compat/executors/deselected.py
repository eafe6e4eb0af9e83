"""Tests of executors that may fail with ours although they pass on stock, and errors that are others by design.

    ROWS      one row per test, for each start method that it names  ──►  DESELECTED, by id, for the runner
    EXPECTED  deadlock tests that run all the same, and expect another error

Most rows are tests that read or mock the inside of the interpreter's executor.  Where ours has the like of it, the test
runs: see ``binding.py``.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from compat._suite import Deselection

_TESTS = "https://github.com/python/cpython/blob/v3.15.0/Lib/test/test_concurrent_futures"
_ANEW = ("spawn", "forkserver")
_ALL = (*_ANEW, "fork")


@dataclass(frozen=True)
class Row:
    """One test, under some start methods.

    Args:
        unit: the group that it is in.
        test: its class, in which ``{}`` stands for "Fork", "Spawn" or "Forkserver", and its name.
        line: the file and its line.
        reason: why it may fail.
        methods: the start methods, or "interpreters".
        sometimes: whether it also passes, now and then.
        runs: False for one that is left out because it is not of ours at all, or takes long to fail.
    """

    unit: str
    test: str
    line: str
    reason: str
    methods: tuple[str, ...] = _ALL
    sometimes: bool = False
    runs: bool = True

    def ids(self) -> tuple[str, ...]:
        """Give the ids that the row stands for."""
        return tuple(f"{method}-{self.unit}::{self.test.format(method.capitalize())}" for method in self.methods)


_PROCESS_POOL = "ProcessPool{}ProcessPoolExecutorTest"
_INSIDE = "it mocks _force_shutdown(), an inner method; kill_workers() and terminate_workers() are in other tests"
_DROPPED = "stock fails what a dropped executor has not begun, where it cannot start a process any more; ours runs it"

ROWS = (
    Row(
        "executor",
        f"{_PROCESS_POOL}.test_terminate_workers",
        "test_process_pool.py#L442",
        _INSIDE,
    ),
    Row("executor", f"{_PROCESS_POOL}.test_kill_workers", "test_process_pool.py#L450", _INSIDE),
    Row("executor", f"{_PROCESS_POOL}.test_force_shutdown_workers_invalid_op", "test_process_pool.py#L458", _INSIDE),
    Row(
        "executor",
        f"{_PROCESS_POOL}.test_force_shutdown_workers",
        "test_process_pool.py#L466",
        "it wants Process.kill() or .terminate() called, which it mocks; ours sends the signals itself",
        sometimes=True,
    ),
    Row(
        "executor",
        f"{_PROCESS_POOL}.test_force_shutdown_during_max_tasks_worker_exit",
        "test_process_pool.py#L383",
        "it sets _force_shutting_down, an inner attribute",
        methods=_ANEW,
        runs=False,
    ),
    Row(
        "executor",
        f"{_PROCESS_POOL}.test_failed_worker_replacement_breaks_pool",
        "test_process_pool.py#L391",
        "it mocks concurrent.futures.process._spawn_worker, by which ours does not start processes",
        methods=_ANEW,
    ),
    Row(
        "executor",
        f"{_PROCESS_POOL}.test_gc_during_max_tasks_worker_exit_gh152967",
        "test_process_pool.py#L337",
        _DROPPED,
        methods=_ANEW,
    ),
    Row(
        "executor",
        f"{_PROCESS_POOL}.test_shutdown_no_wait_max_tasks_gh119592",
        "test_process_pool.py#L326",
        f"{_DROPPED}; its first half, where the executor is kept, passes",
        methods=_ANEW,
    ),
    Row(
        "executor",
        f"{_PROCESS_POOL}.test_max_tasks_per_child",
        "test_process_pool.py#L217",
        "stock refuses max_tasks_per_child under fork; ours takes it",
        methods=("fork",),
    ),
    Row(
        "executor",
        f"{_PROCESS_POOL}.test_max_tasks_per_child_defaults_to_spawn_context",
        "test_process_pool.py#L245",
        "for the same reason ours stays with the default start method",
    ),
    Row(
        "executor",
        f"{_PROCESS_POOL}.test_python_finalization_error",
        "test_process_pool.py#L414",
        "it has the start of an executor's second thread fail; ours has one",
    ),
    Row(
        "shutdown",
        "ProcessPool{}ProcessPoolShutdownTest.test_cancel_futures",
        "test_shutdown.py#L90",
        "it wants a task to be begun although processes are still starting: stock counts those in its queue as begun",
        sometimes=True,
    ),
    Row(
        "executor",
        "InterpreterPoolExecutorTest.test_import_interpreter_pool_executor",
        "test_interpreter_pool.py#L462",
        "it tests what concurrent.futures exports, in a process of its own, and passes whatever ours does",
        methods=("interpreters",),
        runs=False,
    ),
)

DESELECTED = tuple(
    Deselection(
        test=test,
        modes=("processes", "interpreters"),
        reason=row.reason,
        link=f"{_TESTS}/{row.line}",
        sometimes=row.sometimes,
    )
    for row in ROWS
    for test in row.ids()
)


@dataclass(frozen=True)
class Expected:
    """A deadlock test whose future ends with another error than on stock; the test runs all the same.

    Args:
        test: its name, under every start method.
        error: the error.
        line: the file and its line.
        reason: why it is another one.
    """

    test: str
    error: type[BaseException]
    line: str
    reason: str = "what cannot be unpickled is the error of its own task: stock breaks the pool, ours goes on"


EXPECTED = (
    Expected("test_exit_at_task_unpickle", SystemExit, "test_deadlock.py#L144"),
    Expected("test_error_at_task_unpickle", pickle.UnpicklingError, "test_deadlock.py#L148"),
    Expected("test_error_during_result_unpickle_in_result_handler", pickle.UnpicklingError, "test_deadlock.py#L189"),
    Expected("test_exit_during_result_unpickle_in_result_handler", pickle.UnpicklingError, "test_deadlock.py#L199"),
)
