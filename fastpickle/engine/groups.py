"""Groups and kinds: parts of rows that are rows of their own, written apart and then put in their places (`runs`).

    Groups    [[1, 2], [], [3]]            --> the rows 1, 2, 3, and how many of them each container has
    Kinds     [{"a": 1}, [2], {"a": 3}]    --> the rows {"a": 1}, {"a": 3} and the rows [2], and the kind of each object

Both are writers, as those of `columns`; and what they memoize, row by row, is asked for before that.

Not for: deciding what is a group, or of which kind an object is (`runs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from typing import Any, Protocol

from .columns import Column, Gets, Pieces, Refused, write_groups

__all__ = ["Groups", "Kinds", "Rows"]


class Rows(Protocol):
    """What is known of some rows, as `runs` knows it."""

    has_gaps: bool
    has_groups: bool
    memoized: list[Any]
    parts: list[Any]

    def memoized_by_row(self) -> Iterable[Iterable[Any]]: ...

    def rows(self, gets: Gets | None) -> Pieces: ...


class Groups:
    """Containers of different lengths, whose items are rows of their own; or what may be None, and else is such a row.

    Attributes:
        t: the containers' type, or NoneType.
        rows: all their items, one container's after the other's.
        sizes: how many of them each container has.
        widths: how many objects of each container's items are memoized, once `memoized_by_row` has been called.
    """

    __slots__ = ("rows", "sizes", "t", "widths")

    def __init__(self, t: type, rows: Rows, sizes: list[int]) -> None:
        self.t = t
        self.rows = rows
        self.sizes = sizes
        self.widths: list[int] = []

    def memoized_by_row(self) -> list[list[Any]]:
        """Return what the items of each container memoize."""
        rest = iter(self.rows.memoized_by_row())
        found = [[*chain.from_iterable(islice(rest, n))] for n in self.sizes]
        self.widths = [*map(len, found)]
        return found

    def __call__(self, objs: Any, gets: Gets | None) -> list[Column]:
        """Return the column of the containers: a writer, as those of `columns`."""
        pieces = self.rows.rows(gets) if self.rows.parts else []  # else all are empty
        return [write_groups(self.t, pieces, self.sizes)]


class Kinds:
    """Objects of a few kinds, those of each kind rows of their own.

    Attributes:
        inner: the rows of each kind.
        kinds: of which kind each object is: the index there.
        widths: how many objects are memoized for each of them, once `memoized_by_row` has been called.
    """

    __slots__ = ("inner", "kinds", "widths")

    def __init__(self, inner: list[Rows], kinds: list[int]) -> None:
        self.inner = inner
        self.kinds = kinds
        self.widths: list[int] = []

    def memoized_by_row(self) -> list[tuple[Any, ...]]:
        """Return what each object memoizes."""
        found: list[tuple[Any, ...]] = self._in_order([iter(_by_row(rows)) for rows in self.inner])
        self.widths = [*map(len, found)]
        return found

    def __call__(self, objs: Any, gets: Gets | None) -> list[Column]:
        """Return the column of the objects: a writer, as those of `columns`."""
        gets_of: list[Gets] = [[] for rows in self.inner]
        if gets is not None:
            rest = iter(gets)
            for kind, n in zip(self.kinds, self.widths, strict=True):
                gets_of[kind].extend(islice(rest, n))
        written = [iter(rows.rows(its_own or None)) for rows, its_own in zip(self.inner, gets_of, strict=True)]
        return [self._in_order(written)]

    def _in_order(self, of_kinds: list[Iterator[Any]]) -> list[Any]:
        found = [*map(next, map(of_kinds.__getitem__, self.kinds))]
        if len(found) < len(self.kinds):  # where one is at its end, so is the map
            raise Refused
        return found


def _by_row(rows: Rows) -> Iterable[tuple[Any, ...]]:
    """Return what each of some rows memoizes; without `Groups` and `Kinds` among that these are tuples already."""
    if not rows.memoized:
        return repeat(())
    found: Any = rows.memoized_by_row()
    return map(tuple, found) if rows.has_groups else found
