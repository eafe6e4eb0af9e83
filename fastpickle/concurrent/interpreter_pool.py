"""`InterpreterPoolExecutor`: that of `concurrent.futures`, with one message of bytes each way and no call per task.

    submit ─► encode ─► waiting ─► queue of calls, and a token in a pipe ─► whichever worker reads the token (_inside)
    future ◄─ decode ◄─┬─ the manager's thread ◄─ pipe of records: small results ◄────────────────────────┤
                       ├─ the thread in result() ◄─ the lane: the small result of the only call ◄─────────┤
                       └─ the worker's thread ◄─ large results, for which it leaves the loop ◄──────────────┘

One thread per worker, inside its interpreter but for large results; one more, the manager, reads what they write.
Calls lie in one queue for all workers, so none waits for a busy one while another is idle. As many are sent as there
are workers, and where calls are short up to a millisecond's worth more, so that no worker waits for the next one.

Not for: Python before 3.14, PyPy, and extension modules that refuse sub-interpreters (NumPy).
A child that is forked while there are sub-interpreters crashes in CPython itself (3.14.8, 3.15.0), with any executor.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from ._calls import encode, interpreters
from ._lane import Call
from ._pool import BrokenInterpreterPool, Pool
from .mapping import ChunkedExecutor
from .stats import Stats, WorkerStats

__all__ = ["BrokenInterpreterPool", "InterpreterPoolExecutor"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class InterpreterPoolExecutor(
    ChunkedExecutor, ThreadPoolExecutor
):  # asyncio's default executor has to be a thread pool
    """An executor whose workers are interpreters of this process, each with its own lock (CPython 3.14 and later)."""

    BROKEN = BrokenInterpreterPool

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        serializer: str = "pickle",
    ) -> None:
        """Begin without any worker; they are made when there are calls.

        Args:
            max_workers: so many interpreters at most; None: four more than there are processors, at most 32.
            thread_name_prefix: what the names of the threads begin with.
            initializer: called once in each interpreter; if it raises, the pool is broken.
            initargs: its arguments.
            serializer: what makes bytes of calls and results: "pickle", "dill" or "cloudpickle"; the last two take
                lambdas, closures and what is defined in a session.

        Raises:
            RuntimeError: the running Python has no such interpreters.
            ValueError: `max_workers` is less than 1, or there is no such serializer.
            TypeError: the initializer cannot be called.
            ImportError: the serializer is not installed.
        """
        if interpreters is None:
            raise RuntimeError("InterpreterPoolExecutor needs CPython 3.14 or later")
        if max_workers is None:
            max_workers = min(32, (os.process_cpu_count() or 1) + 4)  # type: ignore[attr-defined,unused-ignore]  # 3.13
        if max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if isinstance(initializer, str):
            raise TypeError("scripts not supported")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._max_workers = max_workers
        self._thread_name_prefix = thread_name_prefix or f"InterpreterPoolExecutor-{_count()}"
        initial = None if initializer is None else (initializer, tuple(initargs))
        pool = self._pool = Pool(max_workers, self._thread_name_prefix, serializer, initial)
        pool.executor = weakref.ref(self, lambda _: pool.stop(collected=True))

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Call `fn(*args, **kwargs)` in a worker.

        Args:
            fn: what is called.
            args: its arguments, as they are now.
            kwargs: the others.

        Returns:
            A future, running when it has been sent to the workers; what cannot be pickled is its exception.

        Raises:
            BrokenInterpreterPool: an interpreter or its initializer failed.
            RuntimeError: after `shutdown`, or when Python is ending.
        """
        future = Call()
        try:
            parts = encode(self._pool.serializer, fn, args, kwargs)
        except interpreters.NotShareableError as exc:
            self._pool.submit(future, None)
            exc.__traceback__ = None  # its frames hold the arguments
            future.set_exception(exc)
        else:
            self._pool.submit(future, parts)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and let the interpreters end when those there are have been run.

        Args:
            wait: return only when they have ended.
            cancel_futures: cancel the calls that have not been sent to a worker.
        """
        pool = self._pool
        if cancel_futures:
            with pool.lock:
                pool.stopping = True
                waiting = [future for future, _ in pool.waiting]
                pool.waiting.clear()
            for future in waiting:
                future.cancel()
                future.set_running_or_notify_cancel()
        pool.stop()
        if wait:
            pool.join()

    def stats(self) -> Stats:
        """Return how many calls are waiting, running and done, and where."""
        pool = self._pool
        with pool.lock:
            workers = tuple(
                WorkerStats(str(pool.ids[i]), 1, 0, int(bool(pool.board[i])), pool.board[pool.max_workers + i])
                for i in sorted(pool.ids)
            )
            running = sum(worker.running for worker in workers)
            queued = len(pool.waiting) + max(len(pool.sent) - running, 0)
            return Stats(
                1, len(workers), queued, running, sum(pool.board[pool.max_workers : 2 * pool.max_workers]), workers
            )

    @property
    def _threads(self) -> set[threading.Thread]:  # type: ignore[override]  # the base class's attribute
        return self._pool.threads

    @property
    def _broken(self) -> str | bool:  # type: ignore[override]  # the base class's attribute
        return self._pool.broken or False

    @property
    def _shutdown(self) -> bool:  # type: ignore[override]  # the base class's attribute
        return self._pool.stopping


_count = itertools.count().__next__
