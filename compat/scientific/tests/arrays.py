"""numpy objects: name -> a function that makes the object anew.

Each is made for one dump, so that nothing is cached by an earlier one.  Left out, because their stock bytes differ from
one object to the next: what np.empty() makes, and structures with gaps that were never written.
"""

from __future__ import annotations

import operator
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

NUMBERS = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
RECORD = [("name", "U8"), ("age", "<i4"), ("weights", "<f8", (2, 2))]


class Tagged(np.ndarray):
    """An array with an attribute, which it pickles with hooks in Python."""

    tag: Any

    def __array_finalize__(self, source: Any) -> None:
        """Take the attribute over."""
        self.tag = getattr(source, "tag", None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Add the attribute to the state."""
        rebuild, arguments, state = super().__reduce__()  # type: ignore[misc]
        return rebuild, arguments, (state, self.tag)

    def __setstate__(self, state: Any) -> None:
        """Take the attribute out of the state."""
        super().__setstate__(state[0])
        self.tag = state[1]


class Bare(np.ndarray):
    """An array of another class, without hooks."""


def tagged() -> Any:
    """Make an array with an attribute that is made of plain data and of arrays."""
    array = np.arange(12.0).reshape(3, 4).view(Tagged)
    array.tag = {"unit": "m", "axes": [np.arange(3), ("x", "y")], "self": "s" * 300}
    return array


def records() -> np.ndarray:
    """Make a structured array."""
    array = np.zeros(5, RECORD)
    array["name"] = ["a", "bb", "ccc", "é", ""]
    array["age"] = range(5)
    array["weights"] = 0.5
    return array


def aligned() -> np.ndarray:
    """Make a structured array with gaps; zeros() has written them."""
    array = np.zeros(4, np.dtype([("flag", "?"), ("value", "<f8"), ("code", "<i2")], align=True))
    array["value"] = range(4)
    return array


def memmap(mode: str = "w+", order: Any = "C") -> np.memmap:
    """Make an array in a file."""
    path = Path(tempfile.mkdtemp()) / "array"
    array = np.memmap(path, "<f4", "w+", shape=(20, 30), order=order)
    array[:] = np.arange(600).reshape(20, 30)
    array.flush()
    return array if mode == "w+" else np.memmap(path, "<f4", mode, shape=(20, 30), order=order)  # type: ignore[call-overload]


def objects() -> np.ndarray:
    """Make an array of objects, some of them shared."""
    shared = {"key": [1, 2.5, None]}
    array = np.empty((3, 3), object)
    array[:] = [[1, "one", b"one"], [shared, shared, (1, shared)], [np.arange(3), np.float64(1.5), 2**100]]
    return array


def circular() -> np.ndarray:
    """Make an array of objects that contains itself, below a list."""
    array = np.empty(2, object)
    array[0] = [array, "text"]
    array[1] = 1
    return array


def generator(bits: Any) -> Any:
    """Make a random generator that has been used, an odd number of times."""
    random = np.random.Generator(bits(20250131))
    random.standard_normal(3)
    random.integers(0, 9, 5, dtype=np.int32)
    return random


def random_state() -> Any:
    """Make a legacy generator that holds a number back."""
    random = np.random.RandomState(7)
    random.randn(3)
    return random


def masked() -> Any:
    """Make a masked array."""
    return np.ma.array(np.arange(6.0).reshape(2, 3), mask=[[0, 1, 0], [1, 0, 0]], fill_value=-1.0)


def polynomial() -> Any:
    """Make a polynomial with a domain."""
    return np.polynomial.Polynomial([1, 2, 3], domain=[-2, 2], symbol="t")


def halves() -> list[np.ndarray]:
    """Make views that share a buffer; a pickle knows nothing of that."""
    array = np.arange(1000)
    return [array, array[:500], array[500:], array[::2], array[::-1], array]


def _numbers(kind: str) -> np.ndarray:
    return (np.arange(24) % 7).astype(kind).reshape(2, 3, 4)


OBJECTS: dict[str, Callable[[], Any]] = {
    **{f"array-{kind}": (lambda kind=kind: _numbers(kind)) for kind in NUMBERS},  # type: ignore[misc]
    **{f"scalar-{kind}": (lambda kind=kind: np.dtype(kind).type(1)) for kind in NUMBERS},  # type: ignore[misc]
    **{f"dtype-{kind}": (lambda kind=kind: np.dtype(kind)) for kind in (*NUMBERS, "O", "U5", "S5", "V3")},  # type: ignore[misc]
    "array-big-endian": lambda: np.arange(10, dtype=">i4"),
    "array-text": lambda: np.array(["a", "été", "\U0001f600", ""]),
    "array-bytes": lambda: np.array([b"a", b"bc\xff", b""]),
    "array-void": lambda: np.array([b"abc", b"\0\0\1"], "V3"),
    "array-datetime": lambda: np.array(["2025-01-31", "NaT", "1969-07-20"], "M8[ns]"),
    "array-datetime-days": lambda: np.arange("2024-02-28", "2024-03-02", dtype="M8[D]"),
    "array-timedelta": lambda: np.array([1, -2, 3], "m8[us]"),
    "array-variable-text": lambda: np.array(["a", "b" * 100, ""], np.dtypes.StringDType()),
    "array-structured": records,
    "array-structured-aligned": aligned,
    "array-structured-fields": lambda: np.copy(records()[["name", "weights"]]),
    "array-record": lambda: records().view(np.recarray),
    "array-objects": objects,
    "array-objects-fortran": lambda: np.asfortranarray(objects()),
    "array-objects-empty": lambda: np.zeros((0, 2), object),
    "array-objects-thousand": lambda: np.array([None, "x", 1.5, 7] * 250, object),
    "array-objects-frames": lambda: np.array([f"text {number}" * 20 for number in range(2000)], object),
    "array-circular": circular,
    "array-0d": lambda: np.array(3.5),
    "array-0d-object": lambda: np.array({"a": 1}, object),
    "array-empty": lambda: np.zeros((0, 3)),
    "array-fortran": lambda: np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "array-strided": lambda: np.arange(100).reshape(10, 10)[::2, 1::3],
    "array-reversed": lambda: np.arange(100)[::-1],
    "array-transposed": lambda: np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
    "array-broadcast": lambda: np.broadcast_to(np.arange(3), (4, 3)),
    "array-read-only": lambda: np.frombuffer(b"0123456789abcdef", "<u4"),
    "array-large": lambda: np.arange(40_000, dtype="<i4"),
    "array-halves": halves,
    "array-matrix": lambda: np.array([[1, 2], [3, 4]]).view(np.matrix),
    "array-subclass": lambda: np.arange(5.0).view(Bare),
    "array-subclass-hooks": tagged,
    "array-memmap": memmap,
    "array-memmap-fortran": lambda: memmap("r", "F"),
    "array-memmap-slice": lambda: memmap()[2:7, ::3],
    "masked": masked,
    "masked-no-mask": lambda: np.ma.array([1, 2, 3]),
    "masked-hard": lambda: np.ma.array([1, 2, 3], mask=[1, 0, 0], hard_mask=True),
    "masked-structured": lambda: np.ma.array(records(), mask=[(1, 0, 0)] * 5),
    "masked-constant": lambda: np.ma.masked,
    "scalar-text": lambda: np.str_("text"),
    "scalar-bytes": lambda: np.bytes_(b"bytes"),
    "scalar-datetime": lambda: np.datetime64("2025-01-31T12:00:00", "s"),
    "scalar-timedelta": lambda: np.timedelta64(5, "D"),
    "scalar-nat": lambda: np.datetime64("NaT"),
    "scalar-void": lambda: records()[1],
    "scalars": lambda: [np.float64(x) for x in range(300)] + [np.int64(x) for x in range(300)],
    "dtype-structured": lambda: np.dtype(RECORD),
    "dtype-titles": lambda: np.dtype([(("Title", "name"), "<i4"), ("other", ">f8")]),
    "dtype-datetime": lambda: np.dtype("M8[25us]"),
    "dtype-nested": lambda: np.dtype([("a", [("b", "<i2"), ("c", "O")]), ("d", "<f8", (3,))]),
    "dtype-metadata": lambda: np.dtype("<i4", metadata={"unit": "m"}),  # type: ignore[call-overload]
    "dtypes-shared": lambda: [np.dtype("f8"), np.dtype(RECORD), np.dtype("f8"), np.arange(3.0), np.float64],
    "types": lambda: [
        np.ndarray,
        np.float32,
        np.generic,
        np.dtype,
        type(np.dtype("i4")),
        np.random.Generator,
        np.bool_,
    ],
    "ufuncs": lambda: [np.add, np.sin, np.logical_or, np.add, np.ma.add],
    "functions": lambda: [np.mean, np.linalg.norm, np.arange, np.ma.median, np.concatenate],
    "methods": lambda: [np.arange(3).sum, np.float64(1.5).hex, np.add.reduce],
    "generator-pcg": lambda: generator(np.random.PCG64),
    "generator-philox": lambda: generator(np.random.Philox),
    "generator-mt": lambda: generator(np.random.MT19937),
    "generator-sfc": lambda: generator(np.random.SFC64),
    "generators-shared": lambda: [generator(np.random.PCG64DXSM)] * 2,
    "random-state": random_state,
    "seed-sequence": lambda: np.random.SeedSequence(5, spawn_key=(1, 2)),
    "polynomial": polynomial,
    "poly1d": lambda: np.poly1d([1, 2, 3]),
    "vectorize": lambda: np.vectorize(operator.add, otypes="d", signature="(),()->()"),
    "index-expression": lambda: np.index_exp[1:3, ..., None, np.arange(2)],
    "constants": lambda: [np.nan, np.inf, np.newaxis, np.True_, np.euler_gamma],
}
