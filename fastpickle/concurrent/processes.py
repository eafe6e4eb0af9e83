"""The processes of a process-and-thread pool: how one is started with its pipes, how it has ended, how all are ended.

    start_worker ──► WorkerProcess: the process, a pipe to it, a pipe from it, and a file that tells its end

Not for: what they are sent, and when (`dispatcher`).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures.process import _RemoteTraceback
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any

from .records import Outbox, Records, widen
from .worker import Setup, run_worker

__all__ = ["Broken", "WorkerProcess", "death_of", "end_all", "start_worker"]

_GRACE = 2.0
"""Seconds in which a worker of a broken pool may end by itself, or by SIGTERM, before it is killed."""


class Broken(Exception):
    """Why a pool is broken; its cause becomes that of the futures' exceptions."""


class WorkerProcess:
    """A worker as the pool knows it."""

    def __init__(self, process: BaseProcess, tasks: Any, results: Any, budget: int | None) -> None:
        self.process: Any = process
        """None once it is closed: an executor that has been shut down may live for long, and keeps no file open."""
        self.pid = process.pid or 0
        self.outbox = Outbox(tasks.fileno())
        self.records = Records(results.fileno())
        self.futures: dict[int, Future[Any]] = {}
        """The tasks that it has, by number."""
        self.budget = budget
        """Tasks that it may still get; None if there is no limit."""
        self.is_ready = False
        self.is_asked = False
        """Whether it was asked for its tasks, and has not answered since."""
        self.is_stopped = False
        self.seconds: float | None = None
        """Seconds that a task takes a thread, the last ones most."""
        self.answered = 0.0
        """When it last answered, or got a task while it had none."""
        self.done = 0
        self.most = 0
        """The most tasks that it has had at a time."""
        self.pipes = (tasks, results)
        self.end, self._is_pidfd = _end_of(process)

    def send_signal(self, signum: int) -> None:
        """Send it a signal, if it has not ended.

        Args:
            signum: the signal's number.
        """
        process = self.process
        if process is not None and process.is_alive():
            try:
                os.kill(self.pid, signum)
            except ProcessLookupError:
                pass

    def close(self) -> None:
        """Close what the pool has open for it; the process has ended, or cannot be ended."""
        for pipe in self.pipes:
            pipe.close()
        if self._is_pidfd:
            os.close(self.end)
            self._is_pidfd = False
        self.process = None  # not closed: others may have it, and wait for it


def start_worker(context: Any, setup: Setup, budget: int | None, shared: Iterable[int]) -> WorkerProcess:
    """Start a process and make its pipes, of which our ends do not block.

    Args:
        context: the context of `multiprocessing`.
        setup: what the worker is told.
        budget: tasks that it may get, or None.
        shared: file descriptors of the pool, which a fork would take along.

    Returns:
        The worker, which is not ready yet.

    Raises:
        Exception: what starting a process raises.
    """
    pipes = (*context.Pipe(duplex=False), *context.Pipe(duplex=False))
    task_reader, task_writer, result_reader, result_writer = pipes
    try:
        others: tuple[int, ...] = ()
        if context.get_start_method() == "fork":
            others = (*shared, task_writer.fileno(), result_reader.fileno())
        process = context.Process(target=run_worker, args=(setup, task_reader, result_writer, others))
        process.start()
    except BaseException:
        for pipe in pipes:
            pipe.close()
        raise
    task_reader.close()
    result_writer.close()
    for pipe in (task_writer, result_reader):
        os.set_blocking(pipe.fileno(), False)
        widen(pipe.fileno())
    return WorkerProcess(process, task_writer, result_reader, budget)


def end_all(workers: list[WorkerProcess]) -> None:
    """End processes whatever they do; nothing waits for one that cannot be ended.

    Args:
        workers: theirs.
    """
    for worker in workers:
        worker.pipes[0].close()  # one that has failed ends by itself, and so may the others
    deadline = time.monotonic() + _GRACE
    for signal_it in (lambda process: None, lambda process: process.terminate(), lambda process: process.kill()):
        for worker in workers:
            signal_it(worker.process)
        for worker in workers:
            connection.wait([worker.end], max(0.0, deadline - time.monotonic()))
        deadline += _GRACE
    for worker in workers:
        worker.process.join(0)  # it is nobody's child any more
        worker.close()


def death_of(worker: WorkerProcess) -> Broken:
    """Say how a worker has ended that should not have.

    Args:
        worker: the worker.

    Returns:
        The exception, whose cause is as that of `ProcessPoolExecutor`'s from 3.15 on.
    """
    if worker.process.exitcode is None:  # or else: processes that it has forked may keep join() waiting
        worker.process.join(1.0)
    code = worker.process.exitcode
    if code is None:
        text = f"worker process {worker.pid} has closed its pipes"
    else:
        text = f"worker process {worker.pid} terminated abruptly with exit code {code}"
        if -code in {*signal.Signals}:
            text += f" ({signal.Signals(-code).name})"
    broken = Broken(text)
    broken.__cause__ = _RemoteTraceback(f"\n{text}")  # type: ignore[arg-type]  # typeshed has a traceback there
    return broken


def _end_of(process: BaseProcess) -> tuple[int, bool]:
    """Return a file descriptor that can be read from when a process has ended, and whether it is ours to close.

    A sentinel is a pipe, which processes that the worker itself has forked keep open.
    """
    try:
        return os.pidfd_open(process.pid or 0), True  # type: ignore[attr-defined,unused-ignore]  # Linux only
    except (AttributeError, OSError):
        return process.sentinel, False
