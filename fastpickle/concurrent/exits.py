"""Which pools run, so that the end of the interpreter waits for their work, and a forked child forgets them.

    note_running(pool) ──► the interpreter ends: stop() and join() of each
                       └─► a fork: forget() of each, in the child

Not for: what a pool does then.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["is_exiting", "note_ended", "note_running"]

_running: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.RLock()
_is_exiting = False


def note_running(pool: Any) -> None:
    """Take note of a pool whose thread is about to run.

    Args:
        pool: it has `stop()`, `join()` and `forget()`.
    """
    with _lock:
        _running.add(pool)


def note_ended(pool: Any) -> None:
    """Take note of a pool that has ended.

    Args:
        pool: a pool that was noted.
    """
    with _lock:
        _running.discard(pool)


def is_exiting() -> bool:
    """Tell whether the interpreter ends, and no pool takes a task any more."""
    return _is_exiting


def _finish_all() -> None:
    global _is_exiting
    _is_exiting = True
    with _lock:
        pools = [*_running]
    for pool in pools:
        pool.stop()
    for pool in pools:
        pool.join()


def _forget_all() -> None:
    global _lock
    _lock = threading.RLock()
    for pool in [*_running]:
        pool.forget()
    _running.clear()


# Where concurrent.futures registers its pools too: before the interpreter waits for threads, which would be for ever.
threading._register_atexit(_finish_all)  # type: ignore[attr-defined]  # private, and the only place for it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
