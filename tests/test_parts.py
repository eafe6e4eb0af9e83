"""Which part of the tests a run takes: no part leaves out the same as all others, and none begins in one place."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from oracle.parts import PARTS, APartOf, some_cases, some_things


class Item(NamedTuple):
    """An item of pytest's, as far as it is asked here."""

    nodeid: str


CASES: list[Any] = [Item(f"tests/test_x.py::test_many[{i}]") for i in range(60)]
FEW: list[Any] = [Item(f"tests/test_x.py::test_few[{i}]") for i in range(4)]


def test_each_case_is_in_one_part() -> None:
    """Of a test with many; one with few is in all of them."""
    parts = [some_cases(CASES + FEW, part) for part in range(PARTS)]
    assert all({*FEW} < part and len(part) < len(CASES) / 2 for part in parts)
    assert sorted(case for part in parts for case in part - {*FEW}) == sorted(CASES)


@pytest.mark.parametrize("part", range(PARTS))
def test_cases_of_a_part_begin_anywhere(part: int) -> None:
    """If those of one part began at one place, what is at the others would be seen on one Python only."""
    firsts = {some_things(range(PARTS), part, case.nodeid)[0] for case in some_cases(CASES, part)}
    assert firsts == {*range(PARTS)}


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 30])
def test_parts_of_what_a_test_goes_through(n: int) -> None:
    """All of it over the parts, and something of it in each."""
    for name, *_ in CASES[:5]:
        parts = [some_things(range(n), part, name) for part in range(PARTS)]
        assert {x for part in parts for x in part} == {*range(n)}
        assert all(parts) or not n
        assert some_things(iter(range(n)), None, name) == [*range(n)]


def test_fixture(a_part_of: APartOf) -> None:
    """It takes in all runs what it says: all of it, or a quarter."""
    assert len(a_part_of(range(40))) in (10, 40)
