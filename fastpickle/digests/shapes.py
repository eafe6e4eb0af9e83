"""Shapes: what dicts have in common that have the same keys, as the rows of a table do (`hashing`).

    Shapes.find(dict) --(by the ids of its keys, then by the keys)--> Shape: the keys sorted, and packed

And lists of one type of atoms, which are joined at once: there is nothing to be memoized (`of_one_type`).

Not for: dicts with keys other than strs, which are sorted one by one (`sorted_pairs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat
from operator import is_, itemgetter
from pickle import BINUNICODE
from struct import pack
from typing import Any, Final

from ..engine.columns import join_floats, join_ints
from ..hooks import ATOM_IDS
from ..opcodes import SHORT_BINUNICODE

__all__ = ["LONG_HEADERS", "WIDEST", "Shape", "Shapes", "are_sortable", "of_one_type", "sorted_pairs"]

#: Opcodes of texts by their length in UTF-8, for protocols that have none for short ones.
LONG_HEADERS: Final = tuple(BINUNICODE + pack("<I", n) for n in range(256))
#: Dicts of more keys have no shape.
WIDEST: Final = 64
#: How many shapes are kept for a dump: about 1 KiB each.
_MANY_SHAPES: Final = 1000


class Shape:
    """What dicts have in common whose keys are the same strs in the same order.

    Attributes:
        keys: in the order of the dicts.
        sorted_keys: as they are written.
        prefixes: what is written of each of them.
        values: gives a dict's values in that order, as a tuple.
    """

    __slots__ = ("keys", "prefixes", "sorted_keys", "values")

    def __init__(self, keys: tuple[str, ...], proto: int) -> None:
        headers = SHORT_BINUNICODE if proto >= 4 else LONG_HEADERS
        self.keys = keys
        self.sorted_keys = sorted(keys)
        encoded = [key.encode("utf-8", "surrogatepass") for key in self.sorted_keys]
        self.prefixes = [headers[len(key)] + key for key in encoded]  # IndexError: a key is too long for that
        self.values: Any = itemgetter(*self.sorted_keys) if len(keys) > 1 else _one_value


def _one_value(obj: dict[Any, Any]) -> tuple[Any, ...]:
    return (*obj.values(),)


class Shapes:
    """The shapes of a dump.

    Attributes:
        last: the one that was met last: the next dict is likely to have it, too.
    """

    __slots__ = ("_by_ids", "_by_keys", "_proto", "last")

    def __init__(self, proto: int) -> None:
        self._proto = proto
        self._by_ids: dict[tuple[int, ...], Shape | None] = {}
        self._by_keys: dict[tuple[str, ...], Shape | None] = {}
        self.last: Shape | None = None

    def find(self, obj: dict[Any, Any]) -> Shape | None:
        """Return the shape of a dict, None if it has none; no key is asked for its hash unless it is a str."""
        keys = (*obj,)
        ids = (*map(id, keys),)
        shape = self._by_ids.get(ids)
        if shape is None:
            if not all(map(is_, map(type, keys), repeat(str))):
                return None
            shape = self._by_keys.get(keys)
            if shape is None:
                try:
                    shape = Shape(keys, self._proto)
                except IndexError:
                    return None
                if len(self._by_keys) < _MANY_SHAPES:
                    self._by_keys[keys] = shape
                    self._by_ids[ids] = shape  # the shape keeps the keys alive, so that the ids stay theirs
        self.last = shape
        return shape


def sorted_pairs(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]] | None:
    """Sort pairs; return None if that is a TypeError, as for a str and an int: the library knows what to do."""
    try:
        return sorted(pairs)
    except TypeError:
        return None


def are_sortable(keys: Iterable[Any]) -> bool:
    """Tell whether to compare some objects asks nobody: they are atoms, or tuples of atoms."""
    for t_id in {*map(id, map(type, keys))}:
        if t_id not in ATOM_IDS:
            return t_id == id(tuple) and all(
                id(type(key)) in ATOM_IDS or (type(key) is tuple and ATOM_IDS.issuperset(map(id, map(type, key))))
                for key in keys
            )
    return True


def of_one_type(batch: list[Any], headers: Any) -> bytes | None:
    """Return what is written of strs, ints or floats, if all are of one of these types, and texts are short."""
    t = type(batch[0])
    if (t is not str and t is not int and t is not float) or not all(map(is_, map(type, batch), repeat(t))):
        return None
    if t is int:
        return join_ints(batch)
    if t is float:
        return join_floats(batch)
    try:
        encoded = [*map(str.encode, batch)]
    except UnicodeEncodeError:
        return None
    lengths = [*map(len, encoded)]
    if max(lengths) > 255:
        return None
    return b"".join(chain.from_iterable(zip(map(headers.__getitem__, lengths), encoded, strict=True)))
