"""Executors whose cost is moving objects: sub-interpreters without the pickle tax, and threads in a few processes.

`InterpreterPoolExecutor` is that of `concurrent.futures` (CPython 3.14 and later) with one message of bytes each way.
`ProcessThreadPoolExecutor` runs many threads in each of a few processes, for I/O-bound work that has become CPU-bound.

    serializers ──► what makes bytes of calls and results      mapping ──► map() with chunks
                  interpreter_pool                       process_thread_pool ──► worker
                        └────────────── stats ──────────────────┘

Not for: one process whose threads wait only (`ThreadPoolExecutor`), nor calls that compute for long without any I/O and
need processes of their own (`ProcessPoolExecutor`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .interpreter_pool import BrokenInterpreterPool, InterpreterPoolExecutor
    from .process_thread_pool import BrokenProcessPool, ProcessThreadPoolExecutor

__all__ = ["BrokenInterpreterPool", "BrokenProcessPool", "InterpreterPoolExecutor", "ProcessThreadPoolExecutor"]

_MODULES = {
    "BrokenInterpreterPool": "interpreter_pool",
    "BrokenProcessPool": "process_thread_pool",
    "InterpreterPoolExecutor": "interpreter_pool",
    "ProcessThreadPoolExecutor": "process_thread_pool",
}


def __getattr__(name: str) -> Any:
    """Import an executor when it is asked for: a worker needs neither."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
