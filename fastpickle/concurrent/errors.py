"""An exception as bytes, with its traceback as text: as `concurrent.futures` does it, or an error that says why not.

    the worker: dump_error(dumps, exc) ──► bytes ──► loads ──► the exception, whose cause is the remote traceback

Not for: errors of the pool itself.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

__all__ = ["dump_error", "text_of"]


def dump_error(dumps: Callable[..., bytes], exc: BaseException) -> bytes:
    """Make bytes of an exception, whatever it is.

    Args:
        dumps: the serializer's.
        exc: the exception, with its traceback.

    Returns:
        Bytes whose object is the exception with its traceback, as text, for its cause; or, where it cannot be pickled,
        a `PicklingError` that says so, with both tracebacks for its cause.
    """
    # Private, and the same since 3.4.  It is imported where there is an error: that takes milliseconds.
    from concurrent.futures.process import _ExceptionWithTraceback as Traced  # noqa: PLC0415 - see above

    traced: Any = Traced  # typeshed would have a traceback for the second argument

    try:
        return dumps(traced(exc, exc.__traceback__))
    except BaseException as why:
        error = pickle.PicklingError(f"{type(exc).__name__} that a task raised cannot be pickled: {text_of(why)}")
        error.__cause__ = exc
        try:
            return dumps(traced(error, None))
        except BaseException:  # the traceback itself cannot be written: its exception's __str__() exits, for example
            error.__cause__ = None
            return dumps(error)


def text_of(exc: BaseException) -> str:
    """Return an exception's type and text, or its type alone if its text cannot be had."""
    try:
        return f"{type(exc).__name__}: {exc}"
    except BaseException:  # somebody's __str__()
        return type(exc).__name__
