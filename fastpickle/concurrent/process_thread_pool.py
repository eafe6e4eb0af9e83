"""`ProcessThreadPoolExecutor`: a few processes, many threads in each, for I/O-bound work that has become CPU-bound.

    submit(), map() ──► dispatcher (a thread) ──► processes ──► threads ──► results ──► dispatcher ──► futures

Threads that mostly wait share one interpreter lock: when what they compute adds up to one core, more of them gain
nothing.  A process for each of them would, at the price of its memory.  This is between both: a process for each core.

Not for: Windows, whose pipes cannot be waited for together with processes by what this is made of.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any, ParamSpec, TypeVar

from . import serializers
from .mapping import ChunkedExecutor
from .records import CHUNK, TASK
from .stats import Stats, WorkerStats, psutil_of
from .worker import Setup

__all__ = ["BrokenProcessPool", "ProcessThreadPoolExecutor"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_MAX_THREADS = 32
"""Threads in each process if nobody says how many: what `ThreadPoolExecutor` has at most."""


class ProcessThreadPoolExecutor(ChunkedExecutor):
    """An executor that runs calls in threads of a few processes.

    Args:
        max_processes: processes at most (default: as many as cores that this process may use).
        max_threads: threads in each process at most (default: 32).
        mp_context: a context of `multiprocessing`; its start method starts the processes.
        initializer: is called once in each process, before its first task.
        initargs: its arguments.
        thread_initializer: is called once in each thread, before its first task.
        thread_initargs: its arguments.
        max_tasks_per_child: a process that has had so many tasks is replaced when they are done; a chunk of `map` is
            one task.  With the start method "fork" the new process is forked beside running threads, of which
            CPython's documentation warns; the others have no such danger.
        serializer: "pickle", "dill" or "cloudpickle": what makes bytes of calls and results; with one of the last
            two lambdas, closures and what `__main__` defines interactively can be called.

    Raises:
        ValueError: a number is too small, or there is no such serializer.
        TypeError: an initializer cannot be called.
        ImportError: the serializer's library is missing.
        NotImplementedError: on Windows.

    A worker that dies breaks the pool: all futures that are not done get `BrokenProcessPool`.  What cannot be pickled,
    or unpickled, is the error of its own task only.  Both are done in one thread of the pool: a `__reduce__` or a
    callback that waits for another of its tasks waits for ever.
    """

    def __init__(
        self,
        max_processes: int | None = None,
        max_threads: int | None = None,
        *,
        mp_context: Any = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        thread_initializer: Callable[..., object] | None = None,
        thread_initargs: tuple[Any, ...] = (),
        max_tasks_per_child: int | None = None,
        serializer: str = "pickle",
    ) -> None:
        if sys.platform == "win32":
            raise NotImplementedError("ProcessThreadPoolExecutor needs a POSIX system")
        from .dispatcher import Dispatcher  # noqa: PLC0415 - it cannot be imported on Windows

        for name, n in (
            ("max_processes", max_processes),
            ("max_threads", max_threads),
            ("max_tasks_per_child", max_tasks_per_child),
        ):
            if n is not None and not isinstance(n, int):
                raise TypeError(f"{name} must be an integer")
            if n is not None and n < 1:
                raise ValueError(f"{name} must be greater than 0")
        for name, function in (("initializer", initializer), ("thread_initializer", thread_initializer)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a callable")
        context = mp_context or multiprocessing.get_context()
        threads = _MAX_THREADS if max_threads is None else max_threads
        functions = _packed(serializer, (initializer, thread_initializer), context)
        arguments = _packed(serializer, (tuple(initargs), tuple(thread_initargs)), context)
        setup = Setup(serializer, threads, functions, arguments)
        self._pool = Dispatcher(context, max_processes or _cores(), threads, setup, max_tasks_per_child)
        self._psutil: dict[int, Any] = {}
        self._finalizer = weakref.finalize(self, self._pool.stop)  # who drops the executor wants no more of it
        self._finalizer.atexit = False  # the pool itself ends its work then

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Have `fn(*args, **kwargs)` called in a worker.

        Args:
            fn: what is called.
            args: its positional arguments.
            kwargs: its keyword arguments.

        Returns:
            The call's future, of which the task is sent as soon as a worker has room for it.

        Raises:
            BrokenProcessPool: a worker has died.
            RuntimeError: after `shutdown`.
        """
        return self._pool.submit(TASK, (fn, args, kwargs))

    def _submit_chunk(self, fn: Callable[..., Any], chunk: list[tuple[Any, ...]]) -> Future[list[Any]]:
        return self._pool.submit(CHUNK, (fn, chunk))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no tasks any more, and end the processes when those that there are are done.

        Args:
            wait: whether to return only when the processes have ended.
            cancel_futures: whether to cancel all tasks that no thread has begun, also those that a worker has already.
        """
        self._pool.stop(cancel=cancel_futures)
        if wait:
            self._pool.join()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        """Wait for all tasks; after Ctrl-C only for those that are running."""
        self.shutdown(wait=True, cancel_futures=exc_type is not None and issubclass(exc_type, KeyboardInterrupt))

    def terminate_workers(self) -> None:
        """End the processes by SIGTERM, which breaks the pool; `ProcessPoolExecutor` has it from 3.14 on."""
        self._end_workers(signal.SIGTERM)

    def kill_workers(self) -> None:
        """End the processes by SIGKILL, which breaks the pool; `ProcessPoolExecutor` has it from 3.14 on."""
        self._end_workers(signal.SIGKILL)

    def _end_workers(self, signum: int) -> None:
        self._pool.signal_workers(signum)
        self.shutdown(wait=False, cancel_futures=True)

    def stats(self) -> Stats:
        """Count processes, threads and tasks, and ask psutil, if it is there, what the processes use.

        Returns:
            The counts; `print()` shows a table.
        """
        pool = self._pool
        workers = []
        processes: dict[int, Any] = {}
        for worker in [*pool.workers]:
            sent, pid = len(worker.futures), worker.pid
            running = min(sent, pool.max_threads)
            processes[pid], used = psutil_of(pid, self._psutil.get(pid))
            workers.append(
                WorkerStats(str(pid), min(pool.max_threads, worker.most), sent - running, running, worker.done, *used)
            )
        self._psutil = processes
        return Stats(
            processes=len(workers),
            threads=sum(w.threads for w in workers),
            queued=len(pool.pending) + sum(w.queued for w in workers),
            running=sum(w.running for w in workers),
            done=pool.done,
            workers=tuple(workers),
        )


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "process_cpu_count"):  # 3.13, and with PYTHON_CPU_COUNT
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _packed(serializer: str, obj: Any, context: Any) -> Any:
    """Make bytes of what a worker needs to begin, unless `multiprocessing` brings it there better.

    A fork takes it along as it is.  Locks and queues of `multiprocessing` travel only where it pickles them itself.
    """
    if serializer == "pickle" or context.get_start_method() == "fork":
        return obj
    try:
        return serializers.resolve(serializer).dumps(obj)
    except Exception:
        return obj
