"""The executors of fastpickle.concurrent under the names and with the arguments of those of concurrent.futures.

    executor_type(max_workers=5, mp_context=ctx)  ──►  ProcessThreadPoolExecutor(5, 2, mp_context=ctx)

A module of its own because scripts that the tests start import it, too: ``from compat.executors.binding import ...``.

Not for: users; what tests read of an executor's inside is given here in the words of concurrent.futures.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

from compat._accelerate import prefer_installed

prefer_installed()

from fastpickle import concurrent  # noqa: E402  # an installed one goes before the sources

__all__ = ["InterpreterPoolExecutor", "ProcessPoolExecutor"]  # noqa: F822  # the first one is in __getattr__


class ProcessPoolExecutor(concurrent.ProcessThreadPoolExecutor):
    """Take ``max_workers`` for ``max_processes``, with two threads in each; a single worker has one thread."""

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: BaseContext | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
    ) -> None:
        try:
            super().__init__(
                max_workers,
                1 if max_workers == 1 else 2,
                mp_context=mp_context,
                initializer=initializer,
                initargs=initargs,
                max_tasks_per_child=max_tasks_per_child,
            )
        except ValueError as error:  # the argument has another name there
            raise ValueError(str(error).replace("max_processes", "max_workers")) from error

    # What the tests read of the inside of the interpreter's executor, where ours has the like of it.

    @property
    def _processes(self) -> dict[int | None, BaseProcess]:
        return {worker.pid: worker.process for worker in [*self._pool.workers] if worker.process is not None}

    @property
    def _max_workers(self) -> int:
        return self._pool._max_processes

    @property
    def _broken(self) -> str | bool:
        # Stock learns of a failed initializer by the end of its process, when that has written its log; ours at once.
        thread = self._pool._thread
        return False if thread is None or thread.is_alive() else self._pool.broken or False

    @property
    def _executor_manager_thread(self) -> Thread | None:
        return self._pool._thread

    @property
    def _call_queue(self) -> _Sender:
        return _Sender(self._pool)


class _Sender:
    """What sends tasks, with that method of ``multiprocessing.Queue`` by which a test waits for its end."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def join_thread(self) -> None:
        """Wait for the thread that sends tasks."""
        self._pool.join()


def __getattr__(name: str) -> Any:
    """Give fastpickle's InterpreterPoolExecutor as it is, where it is asked for: not every Python has one."""
    if name != "InterpreterPoolExecutor":
        raise AttributeError(name)
    return concurrent.InterpreterPoolExecutor
