"""What the reduce of an object gives, asked in stock's way: of the dispatch table, then of the object.

Not for: what comes of it (`engine.reduce`), nor whether anybody's code runs (`instances`).
"""

from __future__ import annotations

import pickle
from typing import Any

from .._stdlib import NO_VALUE, entry_of, refuse_unreducible

__all__ = ["AS_CLASS", "old_value", "reduce_value", "value_by"]

_pickle: Any = pickle  # its dispatch_table is no public name

#: Stands for what a reduce would give for an instance of a metaclass: it is saved by its name.
AS_CLASS: Any = object()


def reduce_value(pickler: Any, obj: Any, t: type) -> tuple[Any, Any]:
    """Ask how to reduce an object that has no dispatch entry.

    Args:
        pickler: whose protocol and `dispatch_table` count.
        obj: the object.
        t: its type.

    Returns:
        The function that was asked, and what it gave; or None and `AS_CLASS`.

    Raises:
        PicklingError: the object has neither `__reduce_ex__` nor `__reduce__`.
    """
    return value_by(getattr(pickler, "dispatch_table", _pickle.dispatch_table), pickler, obj, t)


def value_by(table: Any, pickler: Any, obj: Any, t: type) -> tuple[Any, Any]:
    """Do the same with the `dispatch_table`."""
    reduce = entry_of(table, t)
    if reduce is not NO_VALUE:
        return reduce, reduce(obj)
    if issubclass(t, type):
        return None, AS_CLASS
    reduce = getattr(obj, "__reduce_ex__", NO_VALUE)
    if reduce is not NO_VALUE:
        return reduce, reduce(pickler.proto)
    return old_value(obj)


def old_value(obj: Any) -> tuple[Any, Any]:
    """Do the same for an object that has no `__reduce_ex__`."""
    reduce = getattr(obj, "__reduce__", NO_VALUE)
    if reduce is not NO_VALUE:
        return reduce, reduce()
    raise refuse_unreducible(obj)
