"""Names that imagekit keeps its pictures by, under ``fastpickle.install()`` and after ``fastpickle.uninstall()``.

object --> hashers.pickle, bytes     as the process is    --+
       --> hashers.pickle, bytes     after uninstall()    --+--> must be equal
       (where fastpickle is not loaded, as in the stock run: twice as the process is)
"""

from __future__ import annotations

import datetime
import decimal
import io
import random
from collections import OrderedDict
from typing import Any

import pytest
from imagekit import ImageSpec, hashers
from imagekit.processors import Adjust, ResizeToFill, SmartCrop, Transpose

from compat._accelerate import stock

SHARED = {"quality": 80, "sizes": [(1, 2), (3, 4)], "name": "a\\b\n\0é"}
CYCLE: list[object] = [1, {"two": 2}]
CYCLE.append(CYCLE)

OBJECTS: list[object] = [
    None,
    True,
    [0, 1, -1, 255, 256, 65536, 2**31, 2**70],
    [0.1, float("inf"), 1j, decimal.Decimal("1.5")],
    ["text", "a\\b", "line\nend", "\0\x1a", "é\u20ac\U0001f600", "text"],
    [b"", b"bytes", bytearray(b"array")],
    {},
    {"b": 1, "a": {"d": [], "c": ()}},
    {n: str(n) for n in range(1000, 0, -1)},
    set("some letters"),
    frozenset({1}),
    [SHARED, SHARED, (SHARED,), SHARED["name"]],
    CYCLE,
    OrderedDict(b=1, a=2),
    [datetime.date(2024, 5, 6), datetime.timedelta(1)],
    [int, len, ImageSpec, hashers.CanonicalizingPickler],
    [ResizeToFill(100, 50), Transpose(Transpose.AUTO), SmartCrop(10, 10), Adjust(contrast=1.2)],
    ["photo.jpg", [ResizeToFill(20, 20)], "JPEG", {"quality": 60, "progressive": True}, True],
    [{"k": n, "l": [n, str(n)]} for n in range(1500)],
]


def outcome(value: object, protocol: int = 0) -> object:
    """Give the bytes and the digest of an object, or the error that says that there are none."""
    file = io.BytesIO()
    try:
        hashers.CanonicalizingPickler(file, protocol).dump(value)
        return file.getvalue(), hashers.pickle(value)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("value", OBJECTS, ids=[str(number) for number in range(len(OBJECTS))])
def test_bytes_and_digest_are_stock(value: object, protocol: int) -> None:
    """The bytes at each protocol, and the digest, are those of stock."""
    here = outcome(value, protocol)
    with stock():
        assert here == outcome(value, protocol)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("value", [value for value in OBJECTS if type(value) is dict], ids=len)
def test_order_of_a_dict_does_not_matter(value: dict[Any, object], seed: int) -> None:
    """A dict in any order has the digest that stock gives for it in the first one."""
    keys = list(value)
    random.Random(seed).shuffle(keys)
    digest = hashers.pickle({key: value[key] for key in keys})
    with stock():
        assert digest == hashers.pickle(value)


@pytest.mark.parametrize(
    "value",
    [lambda: None, {1: "a", "b": 2}, {1, "a"}, [SHARED, iter(())], {"x": object}],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_hashed(value: object) -> None:
    """An object that cannot be pickled or sorted raises what it raises on stock."""
    here = outcome(value)
    with stock():
        assert here == outcome(value)
