"""`Executor.map` with chunks and a buffer, the same for every executor here and on every Python.

    iterables ──► chunks of calls, so many to a task ──► submit ──► futures ──► results, in order, one by one

Not for: how a chunk travels (the executors' modules).
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

__all__ = ["ChunkedExecutor", "call_chunk"]

_Result = TypeVar("_Result")


def call_chunk(fn: Callable[..., Any], chunk: list[tuple[Any, ...]]) -> list[Any]:
    """Call `fn` with each tuple of arguments, and return the results in a list: what a worker does for a chunk."""
    return [fn(*args) for args in chunk]


class ChunkedExecutor(Executor):
    """An executor whose `map` sends so many calls in one task."""

    def map(
        self,
        fn: Callable[..., _Result],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[_Result]:
        """Call `fn` with the items of the iterables side by side, like `map(fn, *iterables)`, in the workers.

        Args:
            fn: what is called.
            iterables: one for each of its arguments.
            timeout: so many seconds after the call `TimeoutError` is raised for a result that is not there yet.
            chunksize: so many calls are one task; more than one pays where a call is short.
            buffersize: so many tasks are submitted ahead of the results that were fetched, on every Python
                (`concurrent.futures` has it from 3.14 on); None submits all at once.

        Returns:
            An iterator over the results, in the order of the arguments.

        Raises:
            ValueError: `chunksize` or `buffersize` is less than 1.
            TypeError: `buffersize` is no int.
            TimeoutError: raised by the iterator.
            Exception: what `fn` raised, by the iterator in the place of the result.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and not isinstance(buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        end = None if timeout is None else time.monotonic() + timeout
        calls = zip(*iterables)  # noqa: B905 - the shortest ends it, as in map()
        if chunksize == 1:
            return self._results(type(self)._submit_call, fn, calls, end, buffersize)
        chunks = iter(lambda: list(itertools.islice(calls, chunksize)), [])
        return _one_by_one(self._results(type(self)._submit_chunk, fn, chunks, end, buffersize))

    def _submit_call(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Future[Any]:
        return self.submit(fn, *args)

    def _submit_chunk(self, fn: Callable[..., Any], chunk: list[tuple[Any, ...]]) -> Future[list[Any]]:
        return self.submit(call_chunk, fn, chunk)

    def _results(
        self,
        submit: Callable[[Any, Callable[..., Any], Any], Future[Any]],
        fn: Callable[..., Any],
        tasks: Iterator[Any],
        end: float | None,
        buffersize: int | None,
    ) -> Generator[Any, None, None]:
        """Submit the first tasks now; the others and the waiting are the iterator's."""
        futures = deque(submit(self, fn, task) for task in itertools.islice(tasks, buffersize))
        executor = weakref.ref(self)  # the iterator keeps nobody's executor alive

        def results() -> Generator[Any, None, None]:
            try:
                while futures:
                    if buffersize and (alive := executor()) and (task := next(tasks, None)) is not None:
                        futures.append(submit(alive, fn, task))
                    alive = None
                    yield _result(futures.popleft(), end)
            finally:
                for future in futures:
                    future.cancel()

        return results()


def _one_by_one(chunks: Generator[list[Any], None, None]) -> Iterator[Any]:
    """Return the items of each chunk, of which none is kept."""
    try:
        for chunk in chunks:
            chunk.reverse()
            while chunk:
                yield chunk.pop()
    finally:
        chunks.close()


def _result(future: Future[Any], end: float | None) -> Any:
    """Wait for a future, and cancel it if waiting ends otherwise; no reference to it is left in an exception."""
    try:
        try:
            return future.result(None if end is None else end - time.monotonic())
        finally:
            future.cancel()
    finally:
        del future
