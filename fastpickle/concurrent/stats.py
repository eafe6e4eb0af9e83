"""What an executor is doing: counts, and what psutil tells of its workers.

    executor.stats() ──► Stats ──► str(): a table

Not for: history; who wants a curve asks again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

__all__ = ["Stats", "WorkerStats", "psutil_of"]

_MIB = 1 << 20


@dataclass(frozen=True)
class WorkerStats:
    """One worker: a process, or an interpreter."""

    name: str
    """The process id, or the interpreter's number."""
    threads: int
    """Threads that run tasks or wait for them."""
    queued: int
    """Tasks that it has and has not begun."""
    running: int
    """Tasks that it is running."""
    done: int
    """Tasks that it has ended."""
    rss: int | None = None
    """Resident memory in bytes; None without psutil, and for interpreters, which share their process's."""
    uss: int | None = None
    """Memory in bytes that would be free if it ended; None where `rss` is, or where the system does not tell."""
    cpu_percent: float | None = None
    """Share of one core since the last call of `stats()`, or since it began, in percent; None where `rss` is."""


@dataclass(frozen=True)
class Stats:
    """What an executor is doing; `print()` shows it as a table."""

    processes: int
    """Worker processes; for interpreters 1, their own process."""
    threads: int
    """Threads that run tasks or wait for them, in all workers."""
    queued: int
    """Tasks that have not begun, here and in the workers."""
    running: int
    """Tasks that have begun."""
    done: int
    """Tasks that have ended; cancelled ones are not among them."""
    workers: tuple[WorkerStats, ...]
    """Each worker."""

    def __str__(self) -> str:
        """Return a table of the workers, and a line of sums."""
        head = ("worker", "threads", "queued", "running", "done", "RSS MiB", "USS MiB", "CPU %")
        rows: list[tuple[object, ...]] = [
            (w.name, w.threads, w.queued, w.running, w.done, _mib(w.rss), _mib(w.uss), _percent(w.cpu_percent))
            for w in self.workers
        ]
        waiting = self.queued - sum(w.queued for w in self.workers)
        rows.append(("not sent", "", waiting, "", "", "", "", ""))
        rows.append(("all", self.threads, self.queued, self.running, self.done, "", "", ""))
        cells = [head, *(tuple(map(str, row)) for row in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)


def _mib(n: int | None) -> str:
    return "-" if n is None else f"{n / _MIB:.1f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0f}"


def psutil_of(pid: int, known: Any) -> tuple[Any, tuple[int | None, int | None, float | None]]:
    """Ask psutil, if it is there, what a process uses.

    Args:
        pid: the process.
        known: what the last call for it returned first, or None: the share of a core counts from there.

    Returns:
        What to pass the next time, and (resident bytes, unique bytes, percent of one core), each None if it is unknown.
    """
    try:
        import psutil  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - it is optional, and takes milliseconds
    except ImportError:
        return None, (None, None, None)
    try:
        process = psutil.Process(pid) if known is None else known
        cpu = process.cpu_percent()
        if known is None:  # psutil has nothing to compare with yet
            times = process.cpu_times()
            lived = time.time() - process.create_time()
            cpu = 100 * (times.user + times.system) / lived if lived > 0 else 0.0
        memory = process.memory_full_info()
        return process, (memory.rss, getattr(memory, "uss", None), cpu)
    except psutil.Error:  # it has ended, or is not ours to look at
        return None, (None, None, None)
