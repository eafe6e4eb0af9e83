"""What makes bytes of calls and of their results, and objects of the bytes: pickle, dill or cloudpickle.

    resolve("dill") ──► Serializer(dumps, loads), once in each process and each interpreter

Not for: deciding what travels as it is, or beside the bytes (the executors' modules do).
"""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

__all__ = ["SERIALIZERS", "Serializer", "resolve"]

SERIALIZERS = ("pickle", "dill", "cloudpickle")
"""The names that `serializer=` takes."""

_PROTOCOL = pickle.HIGHEST_PROTOCOL


class Serializer(NamedTuple):
    """How objects become bytes and are made again; the name is what another process or interpreter resolves."""

    name: str
    dumps: Callable[..., bytes]
    """Takes the object, and `buffer_callback=` as `pickle.dumps` does."""
    loads: Callable[..., Any]
    """Takes the bytes, and `buffers=` as `pickle.loads` does."""


def resolve(name: str, *, forking: bool = False) -> Serializer:
    """Find a serializer by its name.

    Args:
        name: one of `SERIALIZERS`.
        forking: whether "pickle" also writes what `multiprocessing` can send to another process, such as sockets.

    Returns:
        Its functions.

    Raises:
        ValueError: there is none of that name.
        ImportError: its library is missing; the message names the extra that brings it.
    """
    if name not in SERIALIZERS:
        raise ValueError(f"serializer must be one of {', '.join(map(repr, SERIALIZERS))}, not {name!r}")
    if name == "pickle":
        return Serializer(name, _forking_dumps if forking else _dumps, pickle.loads)
    if name == "dill":
        from ..backends import dill as backend  # noqa: PLC0415 - an extra, for those who ask for it

        def dill_dumps(obj: object, buffer_callback: Callable[[Any], Any] | None = None) -> bytes:
            if buffer_callback is None:
                return backend.dumps(obj, _PROTOCOL)
            return backend.dumps(obj, _PROTOCOL, buffer_callback=buffer_callback)

        return Serializer(name, dill_dumps, backend.loads)
    importlib.import_module("fastpickle.backends.cloudpickle")  # says what to install, if it is missing
    library = importlib.import_module("cloudpickle")  # its own pickler is a C one

    def cloudpickle_dumps(obj: object, buffer_callback: Callable[[Any], Any] | None = None) -> bytes:
        return library.dumps(obj, _PROTOCOL, buffer_callback)  # type: ignore[no-any-return]  # it has no types

    return Serializer(name, cloudpickle_dumps, library.loads)


def _dumps(obj: object, buffer_callback: Callable[[Any], Any] | None = None) -> bytes:
    return pickle.dumps(obj, _PROTOCOL, buffer_callback=buffer_callback)


def _forking_dumps(obj: object, buffer_callback: Callable[[Any], Any] | None = None) -> bytes:
    """Write what a `multiprocessing.Queue` would."""
    file = io.BytesIO()
    ForkingPickler(file, _PROTOCOL, True, buffer_callback).dump(obj)
    return file.getvalue()
