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

from .interpreter_pool import BrokenInterpreterPool, InterpreterPoolExecutor
from .process_thread_pool import BrokenProcessPool, ProcessThreadPoolExecutor

__all__ = ["BrokenInterpreterPool", "BrokenProcessPool", "InterpreterPoolExecutor", "ProcessThreadPoolExecutor"]
