"""What the executors of ``executors.py`` are given to do, and one pool of the I/O workload in a process of its own.

    executor_tasks.py KIND WORKERS THREADS TASKS  -->  warm up, map(), memory  -->  one line of JSON

A task waits for 20 ms, as for an answer, and computes for 0.8 ms, through a client that each process makes once. It is
a process of its own, with next to nothing imported, so that no pool has the memory of another one, and none is forked
from a large process.

Not for: use by hand; ``executors.py`` calls it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

WAIT_SECONDS = 0.020
"""What a task sleeps."""

CPU_SECONDS = 0.0008
"""What a task computes, in seconds of its thread's CPU time."""

CHUNK = 10
"""Calls to a task of ``map``."""

WARM_UP = 200
"""Empty tasks before the clock starts."""


@dataclasses.dataclass
class Point:
    """An instance without anything of its own."""

    x: int
    name: str
    tags: list[int]


def identity(obj: Any) -> Any:
    """Return what came."""
    return obj


def nothing() -> None:
    """Do nothing."""


Call = Callable[[Executor], object]


def round_trip(payload: Any) -> Call:
    """Send a payload there and back."""
    return lambda executor: executor.submit(identity, payload).result()


def no_ops(number: int) -> Call:
    """Have so many empty calls in flight."""

    def call(executor: Executor) -> None:
        for future in [executor.submit(nothing) for _ in range(number)]:
            future.result()

    return call


def mapped(number: int) -> Call:
    """Map so many ints in chunks of 100."""
    return lambda executor: deque(executor.map(identity, range(number), chunksize=100), maxlen=0)


class Client:
    """What a process makes once, and all its threads use."""

    def ask(self, question: int) -> int:
        """Wait, then compute."""
        time.sleep(WAIT_SECONDS)
        clock = time.thread_time
        end = clock() + CPU_SECONDS
        answer = question
        while clock() < end:
            answer = answer * 31 % 65_537
        return answer


_client: Client | None = None


def connect() -> None:
    """Make the client of this process."""
    global _client
    _client = Client()


def ask(question: int) -> int:
    """Ask this process's client."""
    assert _client is not None
    return _client.ask(question)


def pool(kind: str, workers: int, threads: int) -> Executor:
    """Make an executor whose processes have a client.

    Args:
        kind: ``threads``, ``processes`` or ``both``.
        workers: How many processes.
        threads: How many threads in each of them.

    Returns:
        The executor.
    """
    if kind == "threads":
        return ThreadPoolExecutor(threads, initializer=connect)
    if kind == "processes":
        return ProcessPoolExecutor(workers, initializer=connect)
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from fastpickle.concurrent import ProcessThreadPoolExecutor  # noqa: PLC0415 - the other pools are not to have it

    return ProcessThreadPoolExecutor(workers, threads, initializer=connect)


def pids(executor: Any) -> list[int]:
    """Find the worker processes of an executor, which has some or is of threads."""
    if hasattr(executor, "stats"):
        return [int(worker.name) for worker in executor.stats().workers]
    return list(getattr(executor, "_processes", None) or ())


def uss(pid: int | None = None) -> int | None:
    """Ask how many bytes would be free if a process ended; None without psutil."""
    try:
        import psutil  # noqa: PLC0415 - it is optional
    except ImportError:
        return None
    found: int | None = getattr(psutil.Process(pid).memory_full_info(), "uss", None)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one pool once, and print seconds, bytes and workers.

    Args:
        argv: Kind, workers, threads, tasks; those of the process if None.
    """
    parser = argparse.ArgumentParser(
        description="Run tasks in one pool, and print what they took as JSON: executors.py starts a process for each."
    )
    parser.add_argument("kind", choices=("threads", "processes", "both"), help="which pool")
    parser.add_argument("workers", type=int, help="how many processes")
    parser.add_argument("threads", type=int, help="how many threads, in each of them")
    parser.add_argument("tasks", type=int, help="how many tasks")
    arguments = parser.parse_args(argv)
    kind, workers, threads, tasks = arguments.kind, arguments.workers, arguments.threads, arguments.tasks
    before = uss()
    with pool(kind, workers, threads) as executor:
        for future in [executor.submit(nothing) for _ in range(WARM_UP)]:
            future.result()
        began = time.perf_counter()
        done = sum(1 for _ in executor.map(ask, range(tasks), chunksize=CHUNK))
        seconds = time.perf_counter() - began
        assert done == tasks
        found = pids(executor)
        after = uss()
        used = [uss(pid) for pid in found]
    grown = None if before is None or after is None else after - before
    memory = grown if kind == "threads" else None if None in used else sum(filter(None, used))
    json.dump({"seconds": seconds, "memory": memory, "caller": grown, "workers": len(found)}, sys.stdout)


if __name__ == "__main__":
    main()
