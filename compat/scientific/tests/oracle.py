"""What stock would have written: the same call once more without fastpickle, and a comparison of what is loaded.

    stock run         dump(make())                        twice   the bytes must be the same, or the oracle is none
    accelerated run   dump(make())  uninstall()  dump(make())     the bytes must be stock's

Nothing here imports fastpickle: a run in which it is not loaded is the stock run.
"""

from __future__ import annotations

import io
import pickletools
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from compat._accelerate import stock

fastpickle: Any = sys.modules.get("fastpickle")
"""The package; None in the stock run."""

Outcome = bytes | tuple[str, str, tuple[str, ...]]
"""What a dump wrote, or the error that it raised: type, message, notes."""

_ADDRESS = re.compile(r"\b0x[0-9a-f]+")


def outcome(dump: Callable[[Any], bytes], obj: Any) -> Outcome:
    """Dump an object, and take an error for an answer too."""
    try:
        return dump(obj)
    except RecursionError:  # its message says in which call the limit was met, which is no part of the contract
        return "RecursionError", "", ()
    except Exception as error:
        notes = tuple(_ADDRESS.sub("0x", note) for note in getattr(error, "__notes__", ()))
        return type(error).__name__, _ADDRESS.sub("0x", str(error)), notes


def check_same(make: Callable[[], Any], dump: Callable[[Any], bytes], stock_dump: Any = None) -> tuple[Any, Outcome]:
    """Dump an object as it is now, and stock, and compare.

    Args:
        make: makes the object, equal ones each time.
        dump: gives the bytes, or a digest in bytes.
        stock_dump: the same call on stock's class, if that is another one; None for dump.

    Returns:
        The object, and what came of it.

    Raises:
        AssertionError: the outcomes differ.
    """
    assert fastpickle is None or fastpickle.is_installed()
    obj = make()
    found = outcome(dump, obj)
    with stock():
        expected = outcome(stock_dump or dump, make())
    if found != expected:
        raise AssertionError(difference(expected, found))
    return obj, found


def difference(expected: Outcome, found: Outcome) -> str:
    """Show the opcodes around the first difference, or the outcomes if they are no pickles."""
    if not isinstance(expected, bytes) or not isinstance(found, bytes):
        return f"stock: {str(expected)[:500]}\nhere:  {str(found)[:500]}"
    lines = [_disassembled(expected), _disassembled(found)]
    rows = zip(*lines, strict=False)
    number = next((n for n, (one, other) in enumerate(rows) if one != other), min(map(len, lines)))
    shown = ["\n".join(one[max(number - 5, 0) : number + 5]) for one in lines]
    return f"{len(expected)} and {len(found)} bytes; stock:\n{shown[0]}\nhere:\n{shown[1]}"


def _disassembled(data: bytes) -> list[str]:
    out = io.StringIO()
    try:
        pickletools.dis(data, out)
    except Exception as error:  # joblib's files have raw arrays in them
        out.write(f"not a pickle from here on: {error}\n{data[:2000].hex(' ')}")
    return out.getvalue().splitlines()


def same(one: Any, other: Any, seen: set[tuple[int, int]] | None = None) -> bool:
    """Tell whether two objects are equal, with equal types all the way down; NaN equals NaN, cycles are fine.

    Args:
        one: an object.
        other: what was loaded from its pickle.
        seen: pairs of ids that are being compared.

    Returns:
        False if there is a difference that is known to matter.
    """
    seen = set() if seen is None else seen
    if one is other or (id(one), id(other)) in seen:
        return True
    if type(one).__name__ != type(other).__name__:
        return False
    seen.add((id(one), id(other)))

    def every(ones: Any, others: Any) -> bool:
        ones, others = list(ones), list(others)
        return len(ones) == len(others) and all(same(a, b, seen) for a, b in zip(ones, others, strict=True))

    if isinstance(one, np.ndarray):
        return _same_arrays(one, other, every)
    if isinstance(one, pd.DataFrame):
        parts = [
            ([f.columns, f.index, f.attrs, str(f.flags)], [f.iloc[:, n] for n in range(f.shape[1])])
            for f in (one, other)
        ]
        return every(*(part[0] for part in parts)) and every(*(part[1] for part in parts))
    if isinstance(one, pd.Series):
        return every([one.name, one.index, one.array], [other.name, other.index, other.array])
    if isinstance(one, pd.MultiIndex):
        return one.equals(other) and every(one.names, other.names)
    if isinstance(one, (pd.Index, pd.api.extensions.ExtensionArray)):
        names = [getattr(part, "name", None) for part in (one, other)]
        return bool(one.dtype == other.dtype) and every([names[0], *one], [names[1], *other])
    if isinstance(one, dict):
        return every(one.keys(), other.keys()) and every(one.values(), other.values())
    if isinstance(one, (list, tuple)) or type(one).__name__ == "deque":
        return every(one, other)
    if isinstance(one, np.generic) and one.dtype.kind == "V":
        return _same_arrays(np.array(one), np.array(other), every)
    return _same_leaves(one, other, seen)


def _same_arrays(one: Any, other: Any, every: Callable[[Any, Any], bool]) -> bool:
    if one.dtype.kind not in "OTV":  # numpy loads them in the machine's order
        one, other = (part.astype(part.dtype.newbyteorder("="), copy=False) for part in (one, other))
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if isinstance(one, np.ma.MaskedArray) and not np.array_equal(np.ma.getmaskarray(one), np.ma.getmaskarray(other)):
        return False
    if one.dtype.kind == "O":
        return every(np.asarray(one).ravel(), np.asarray(other).ravel())
    if one.dtype.kind == "T":
        return one.tolist() == other.tolist()
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def _same_leaves(one: Any, other: Any, seen: set[tuple[int, int]]) -> bool:
    """Compare what is no container: by its value, else by its state, else by its name."""
    if hasattr(one, "bit_generator"):
        return same(one.bit_generator.state, other.bit_generator.state, seen)
    if isinstance(one, np.random.RandomState):
        return same(one.get_state(legacy=False), other.get_state(legacy=False), seen)
    try:
        if (one != one and other != other) or bool(one == other):  # NaN and NaT
            return True
    except (TypeError, ValueError):  # NA, or an array among the parts
        pass
    if callable(one):
        return getattr(one, "__name__", "") == getattr(other, "__name__", "")
    states = [getattr(part, "__dict__", None) for part in (one, other)]
    return states[0] is None or same(*states, seen)
