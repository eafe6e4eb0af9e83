"""Which part of the tests a run takes: a quarter of each test's cases, and of what a long test goes through; or all.

Every fourth case may have one protocol in all of them, so cases go by a sum of their names.  What a test goes through
goes by its place, so that each part has of the beginning, the middle and the end; at which one a case begins, other
bits of that sum tell.  A case is in one part only: all of what it goes through is seen where all is run, on one Python.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Protocol, TypeVar

import pytest

__all__ = ["PARTS", "APartOf", "chosen", "some_cases", "some_things"]

PARTS = 4
"""One case of so many is run by default."""

_FEW_CASES = 4
"""A test with so many cases is run with all of them, always."""

T = TypeVar("T")

chosen = pytest.StashKey[int | None]()
"""In the config: the part that the run takes, or None if it takes all."""


class APartOf(Protocol):
    """The fixture ``a_part_of``."""

    def __call__(self, things: Iterable[T], /) -> list[T]:
        """Take of what a test goes through as much as the run takes of cases: all, or a quarter and at least one."""


def _part_and_first(name: str) -> tuple[int, int]:
    """Give the part that a case is in, and at which of the things that it goes through its quarter of them begins."""
    first, part = divmod(zlib.crc32(name.encode()), PARTS)
    return part, first % PARTS


def some_cases(items: list[pytest.Item], part: int) -> set[pytest.Item]:
    """Take a part of the cases of each test with many."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found: set[pytest.Item] = set()
    for cases in tests.values():
        some = [case for case in cases if _part_and_first(case.nodeid)[0] == part]
        found.update(cases if len(cases) <= _FEW_CASES else some or cases[:1])
    return found


def some_things(things: Iterable[T], part: int | None, name: str) -> list[T]:
    """Take a part of what a test goes through; of each case another one."""
    listed = list(things)
    if part is None:
        return listed
    return listed[(part + _part_and_first(name)[1]) % PARTS :: PARTS] or listed[:1]
