"""Races: whichever way a dump takes it has stock's bytes, and the clock tells which one is taken."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest
from oracle.allowed import PYPY
from oracle.compare import ALL, dumped, stock_dumps

import fastpickle
from fastpickle import hooks, pickler
from fastpickle._stdlib import StockPickler
from fastpickle.at_once import races
from fastpickle.objects.last import last

pytestmark = pytest.mark.skipif(PYPY, reason="its dump is stock's")
BASES: tuple[Any, ...] = (StockPickler, fastpickle.Pickler)


class Node:
    """Has a `__getstate__` that is somebody's, and does whatever it is told."""

    def __init__(self, number: int, *parts: Any) -> None:
        self.number = number
        self.name = f"n{number}"
        self.parts = parts
        self.act: Callable[[], Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self.act is not None:
            self.act()
        return {key: value for key, value in sorted(vars(self).items()) if key != "act"}


def _tree(depth: int) -> Node:
    return Node(depth, *([_tree(depth - 1), _tree(depth - 1)] if depth else []))


OBJECTS: dict[str, Callable[[], Any]] = {
    "one": lambda: Node(1),
    "a tree": lambda: _tree(5),
    "a list": lambda: [Node(i) for i in range(30)],
    "rows": lambda: [(Node(i), {"a": Node(i)}, [i]) for i in range(60)],
    "a row of many": lambda: [Node(i) for i in range(1200)],
    "much that is plain": lambda: Node(1, [{"a": i, "b": [str(i)] * 3} for i in range(1500)], Node(2)),
    "plain parts": lambda: Node(1, *[([i], {"a": str(i)}, (i, i, i, i), {i}) for i in range(300)]),
    "long": lambda: Node(1, [*range(199)], [*range(200)], [*range(201)], [*range(1001)], {i: i for i in range(201)}),
    "a long text": lambda: Node(1, "x" * 70_000, Node(2, b"y" * 70_000)),
}


class _Clock:
    """Tells what it is set to: dumps in stock's way take so long, and others so long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.took = {True: 1.0, False: 1.0}
        self.ways: list[bool] = []
        begin, end = races.Race.begin, races.Race.end

        def begun(race: races.Race, before: int) -> None:
            begin(race, before)
            self.ways.append(race.is_as_stock)

        def ended(race: races.Race, pickler: Any) -> None:
            self.now += self.took[race.is_as_stock]
            end(race, pickler)

        monkeypatch.setattr(races, "perf_counter", lambda: self.now)
        monkeypatch.setattr(races.Race, "begin", begun)
        monkeypatch.setattr(races.Race, "end", ended)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    return _Clock(monkeypatch)


@pytest.mark.parametrize("is_sooner", [True, False], ids=["stock's way", "ours"])
@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)
def test_same(make: Callable[[], Any], is_sooner: bool, clock: _Clock) -> None:
    """The bytes and the memo are stock's in every turn, and for what is unlike the ones before."""
    clock.took[is_sooner] = 0.5
    for protocol in ALL:
        last.forget()
        for turn in range(9):
            obj = make() if turn < 7 else [make(), make()] if turn == 7 else {"a": make()}
            expected, got = [], []
            for cls, found in ((StockPickler, expected), (fastpickle.Pickler, got)):
                file = io.BytesIO()
                one = cls(file, protocol)
                one.dump(obj)
                found += file.getvalue(), [*one.memo.values()], {*vars(one)}
            assert got[0] == expected[0], (protocol, turn)
            assert got[1:] == expected[1:], (protocol, turn)


def test_two_turns_each_then_the_sooner_way(clock: _Clock) -> None:
    """And after 64 the other one is tried again, twice."""
    for took, is_sooner in ((0.5, True), (2.0, False)):
        last.forget()
        clock.ways.clear()
        clock.took[True] = took
        for _ in range(70):
            assert dumped(fastpickle.Pickler, _tree(3)) == stock_dumps(_tree(3))
        assert clock.ways == [False] * 2 + [True] * 2 + [is_sooner] * 60 + [not is_sooner] * 2 + [is_sooner] * 4


def test_pickler_of_many_dumps(clock: _Clock) -> None:
    """What is in the memo from dumps before is not counted, neither as much nor as what took the time."""
    clock.took[True] = 0.5
    found = []
    for cls in BASES:
        file = io.BytesIO()
        one = cls(file)
        for _ in range(40):
            one.dump(_tree(4))
        found.append((file.getvalue(), [*one.memo]))
    assert found[0][0] == found[1][0]
    assert clock.ways == [False] * 2 + [True] * 38
    assert last.race is None  # each has been in stock's way up to its end


def test_other_way_once_that_is_sooner(clock: _Clock) -> None:
    """What was measured is forgotten little by little: a machine may have become slower, or the objects others."""
    clock.took[True] = 0.5
    for _ in range(10):
        dumped(fastpickle.Pickler, _tree(3))
    assert clock.ways[-1]
    clock.took[True] = 3.0
    for _ in range(80):
        dumped(fastpickle.Pickler, _tree(3))
    assert not clock.ways[-1]


@pytest.mark.parametrize("make", [lambda: {"a": [1, 2, 3]}, lambda: [{"a": i} for i in range(400)], lambda: "text"])
def test_no_race_where_it_is_plain(make: Callable[[], Any], clock: _Clock) -> None:
    """C, or a plan, is always sooner; and what was to be a race is none."""
    for file in (io.BytesIO, lambda: open("/dev/null", "wb")):
        for _ in range(8):
            with file() as f:
                fastpickle.Pickler(f).dump(make())
    assert not any(clock.ways)


def test_what_is_more_goes_on_in_our_way(clock: _Clock) -> None:
    """Stock's way ends at a long container, and where there is much more than in those before."""
    clock.took[True] = 0.5
    for _ in range(6):
        dumped(fastpickle.Pickler, _tree(4))
    assert clock.ways[-1]
    much = Node(1, [{"k": i} for i in range(5000)])
    assert dumped(fastpickle.Pickler, much) == stock_dumps(much)
    assert last.race is None


@pytest.mark.parametrize(
    "leaf",
    [None, [*range(300)], [None] * 1300, (*range(60),), {*range(60)}],
    ids=["None", "ints", "a batch of None", "a tuple", "a set"],
)
@pytest.mark.parametrize("is_as_stock", [True, False])
def test_as_deep_as_stock(leaf: Any, is_as_stock: bool, request: pytest.FixtureRequest) -> None:
    """What stock can save within the recursion limit does not need a Python frame more, whatever comes below."""
    if is_as_stock:
        request.getfixturevalue("saved_as_stock")
    obj = leaf
    for i in range(20):
        obj = Node(i, obj)
    limit = sys.getrecursionlimit()

    def lowest(cls: Any) -> int:
        """Return the lowest limit within which it is saved."""
        dumped(cls, obj)
        try:
            for n in range(20, limit):
                try:
                    sys.setrecursionlimit(n)
                    dumped(cls, obj)
                    return n
                except RecursionError:
                    pass
        finally:
            sys.setrecursionlimit(limit)
        raise AssertionError("it is not saved")

    assert lowest(fastpickle.Pickler) <= lowest(StockPickler)


class _Bare:
    """Has a reduce that is somebody's, and gives nothing to be saved but an empty tuple."""

    reduced = 0

    def __reduce__(self) -> Any:
        _Bare.reduced += 1
        return str, ()


def test_other_dump_begins_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken to be no more than in the last dump is asked again, by another thread's last dump: nothing is."""
    other_way = pickler._other_way
    lengths = []

    def asked(of: Any, plan: Any, obj: Any, *rest: Any) -> Any:
        if id(type(obj)) in hooks.CONTAINER_IDS:
            last.longest = last.most = 1000
            last.race = races.Race()
            lengths.append(len(obj))
        try:
            return other_way(of, plan, obj, *rest)
        finally:
            last.longest = last.most = -1

    monkeypatch.setattr(pickler, "_other_way", asked)
    monkeypatch.setattr(races.Race, "begin", lambda race, before: setattr(race, "is_as_stock", True))
    for protocol in ALL:
        last.longest = last.most = -1
        obj = [_Bare(), [], (), {}, {*()}]
        assert dumped(fastpickle.Pickler, obj, protocol) == stock_dumps(obj, protocol)
    assert 0 in lengths


def test_failing_dump(saved_as_stock: None) -> None:
    """It leaves nothing on the pickler, and the next one is stock's."""

    def fail() -> None:
        raise LookupError("here")

    bad = Node(1, Node(2))
    bad.parts[0].act = fail
    found = []
    for cls in BASES:
        file = io.BytesIO()
        one = cls(file)
        with pytest.raises(LookupError, match="here"):
            one.dump(bad)
        names = {*vars(one)}
        one.clear_memo()
        one.dump(_tree(2))
        found.append((names, {*vars(one)}, file.getvalue()))
    assert found[0] == found[1]


def test_dump_within_a_dump(saved_as_stock: None) -> None:
    """By the same pickler, and by another one."""
    for is_same in (True, False):
        found = []
        for cls in BASES:
            file = io.BytesIO()
            one = cls(file)
            obj = Node(1, Node(2), Node(3))
            other = io.BytesIO()
            within = one if is_same else cls(other)
            obj.parts[0].act = lambda within=within: within.dump([Node(4), {"a": Node(5)}])
            one.dump(obj)
            found.append((file.getvalue(), other.getvalue(), len(one.memo), {*vars(one)}))
        assert found[0] == found[1], is_same


class _Rebinds:
    """Its items are those of a list that has the tuple in it that it is in, behind another memo of the pickler's."""

    def __init__(self, holder: list[Any], act: Callable[[], None]) -> None:
        self.holder = holder
        self.act = act

    def __reduce__(self) -> Any:
        self.act()
        return list, (), None, iter(self.holder)


@pytest.mark.parametrize("protocol", [2, 4])
def test_memo_is_another_one_within_a_tuple(protocol: int) -> None:
    """Behind the items of a short tuple stock looks for it in the memo of before them."""
    found: list[list[Any]] = []
    for cls in BASES:
        outcomes = []
        for is_copied in (True, False):
            file = io.BytesIO()
            one = cls(file, protocol)
            holder: list[Any] = []

            def act(one: Any = one, is_copied: bool = is_copied) -> None:
                one.memo = dict(one.memo) if is_copied else {}

            holder.append((_Rebinds(holder, act), 1))
            try:
                one.dump(holder[0])
            except AssertionError as exc:
                outcomes.append((file.getvalue(), type(exc)))
            else:
                outcomes.append((file.getvalue(), None))
        found.append(outcomes)
    assert found[0] == found[1]


class _Counting(dict[Any, Any]):
    """A memo that counts how often it is asked for its length."""

    asked = 0

    def __len__(self) -> int:
        self.asked += 1
        return super().__len__()


@pytest.mark.parametrize("make", [lambda: 5, lambda: "text", lambda: Node(1), lambda: [Node(1)]])
def test_memo_of_ones_own_is_asked_as_by_stock(make: Callable[[], Any]) -> None:
    found = []
    for cls in BASES:
        asked = []
        for _ in range(6):
            one = cls(io.BytesIO(), 4)
            one.memo = _Counting()
            one.dump(make())
            asked.append(one.memo.asked)
        found.append(asked)
    assert found[0] == found[1]


@pytest.mark.parametrize("protocol", ALL)
def test_memo_on_the_class(protocol: int) -> None:
    """An attribute of a subclass by the name of the memo is hidden by the pickler's own."""
    found = []
    for base in BASES:
        cls = type("P", (base,), {"memo": {}})
        found.append([dumped(cls, make(), protocol) for make in OBJECTS.values() for _ in range(4)])
    assert found[0] == found[1]


def test_classes_with_ever_new_saves_are_forgotten() -> None:
    for _ in range(200):
        last.remember_few(lambda: None, [Node], [])
    assert len(last.few) <= 64
