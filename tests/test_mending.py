"""Containers of awkward lengths, anywhere in what the C pickler writes: their last batches are mended.

Not for: the lengths themselves, at the root and under every pickler (`test_graft`), nor for random uses (`test_soak`).
"""

from __future__ import annotations

import datetime
import gc
import io
import itertools
import pickle
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oracle.compare import stock_dumps
from oracle.parts import APartOf

import fastpickle
from fastpickle import _stdlib
from fastpickle._stdlib import awkward_batches
from fastpickle.accelerator import chunks, differences, glance, mending, reading
from fastpickle.accelerator import offers as offering
from fastpickle.at_once import quick

pytestmark = pytest.mark.skipif(_stdlib.CPickler is None, reason="there is no C pickler to be mended")

FRAME = 64 * 1024
#: Strings that have the bytes of an end in them, or nearly.
LOOKALIKES = ("u(u", "e(Ne", "e(K\x01e", "u(NNu", "menu(user)", "e(", "u(", "(", "}(e(]u(u")


def our_dump(obj: object, protocol: int) -> bytes:
    """Return what a pickler with a file writes, which grafts in other ways than dumps()."""
    file = io.BytesIO()
    fastpickle.Pickler(file, protocol).dump(obj)
    return file.getvalue()


def check(obj: object, *protocols: int) -> None:
    """Compare both of ours with stock's."""
    for protocol in protocols or (4,):
        expected = stock_dumps(obj, protocol)
        for dumps in fastpickle.dumps, our_dump:
            found = dumps(obj, protocol)
            if found != expected:
                at = next((i for i, x in enumerate(expected) if found[i : i + 1] != bytes((x,))), len(expected))
                pytest.fail(f"{dumps.__name__}, protocol {protocol}: from byte {at}")


@pytest.fixture
def mended(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Give a list of whether mend() did what it was called for, each time."""
    results: list[bool] = []
    mend = differences.mend

    def counted(*args: Any) -> Any:
        pieces = mend(*args)
        results.append(pieces is not None)
        return pieces

    monkeypatch.setattr(differences, "mend", counted)
    yield results
    assert results or not awkward_batches


class Builder:
    """Makes random plain objects, many of which have awkward lengths."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.made: list[Any] = []

    def atom(self) -> Any:
        """Return something that has no items."""
        n = self.random.randrange(1 << self.random.randrange(1, 40))
        return self.random.choice(
            (
                n,
                -n,
                n * 0.5,
                None,
                True,
                f"text {n}",
                b"bytes" * (n % 70),
                self.random.choice(LOOKALIKES),
                "ä" * (n % 300),
            )
        )

    def object(self, depth: int) -> Any:
        """Return an atom, a container, or what was made before."""
        choice = self.random.random()
        if choice < 0.1 and self.made:
            return self.random.choice(self.made)
        if choice < 0.12:
            return self.random.choice(("x", b"y", "é")) * self.random.choice((FRAME - 1, FRAME, FRAME // 2, FRAME + 1))
        if depth == 0 or choice < 0.3:
            return self.atom()
        return self.container(depth, self.random.choice((0, 1, 2, 3, 4, 5, 20, 1000, 1001)))

    def container(self, depth: int, n: int) -> Any:
        """Return a container of `n` items."""
        kind = self.random.choice((list, list, dict, dict, set, tuple, frozenset))
        few = [self.object(depth - 1) for _ in range(min(n, 1 + self.random.randrange(20)))]
        if n > 20 and self.random.random() < 0.5:
            few[:-1] = [self.atom()]  # the last item of all may be large
        items = [*itertools.islice(itertools.chain([few[0]] * (n - len(few)), few), n)] if few else []
        made: Any
        if kind is dict:
            made = {f"key {i}" if self.random.random() < 0.5 else i: x for i, x in enumerate(items)}
        elif kind is set or kind is frozenset:
            made = kind(range(n - 1, -1, -1))
        else:
            made = kind(items)
        self.made.append(made)
        return made


@pytest.mark.parametrize("seed", range(24))
def test_random(seed: int) -> None:
    """Whatever is in what C wrote, and wherever, the bytes are stock's."""
    builder = Builder(seed)
    for _ in range(6):
        check(builder.container(3, builder.random.choice((3, 60, 1000, 1001))), 4, 1 + seed % 5)


def _recursive_tuple() -> Any:
    items: list[Any] = []
    made = (items, 1)
    items.append(made)
    return made


#: What may stand where a frame ends.
FOLLOWING: dict[str, Callable[[], Any]] = {
    "atoms": lambda: [1, None, 2.5, True, -70_000, 1 << 40],
    "texts": lambda: ["a", "b" * 300, b"c", b"d" * 300],
    "the same": lambda: ["shared"] * 4,
    "tuples": lambda: [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((1, 2, 3, 4), 5, 6, 7)],
    "empty list, tuple": lambda: [[], (1, 2, 3, 4), {}, (1, 2, 3, 4), [], [1, 2]],
    "lists": lambda: [[1, 2], [3], [], [[4, 5], [6, 7]]],
    "dicts": lambda: [{1: 2, 3: 4}, {5: 6}, {}, {7: {8: 9, 10: 11}, 12: 13}],
    "sets": lambda: [{1, 2}, frozenset((3, 4)), set(), frozenset(), bytearray(b"5")],
    "recursive tuple": lambda: [_recursive_tuple(), _recursive_tuple()],
    "large": lambda: [1, "x" * FRAME, 2, b"y" * FRAME, b"z" * FRAME, 3],
    "awkward": lambda: [dict.fromkeys(range(1000)), set(range(1000)), [*range(1001)]],
    "instances": lambda: [datetime.date(2020, 1, 2), range(3), datetime.timedelta(4)],
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_end_of_a_frame(name: str, mended: list[bool], a_part_of: APartOf) -> None:
    """Frames end at the first object that is saved when they are full, also where mending has made them shorter."""
    for n in a_part_of(range(40)):
        awkward = [dict.fromkeys(range(1000)), [*range(1001)], set(range(1000))][n % 3]
        filler = FRAME - len(stock_dumps(awkward, 4)) - 50 + n
        obj = [awkward, "x" * filler, FOLLOWING[name](), "y" * (FRAME - 20), FOLLOWING[name](), [None] * 60]
        check(obj, 4, 5)
    assert all(mended)


@pytest.mark.parametrize("protocol", range(1, 6))
def test_many_frames(protocol: int, mended: list[bool]) -> None:
    """Awkward containers in each of many frames move each end of a frame further."""
    check([{i: [j, str(i)] for i in range(1000)} for j in range(40)], protocol)
    check([{"id": i, "t": (1, 2, 3, i), "s": set(range(1000)), "l": [str(i)] * 1001} for i in range(150)], protocol)
    assert all(mended)


@pytest.mark.parametrize("lookalike", LOOKALIKES)
def test_lookalike(lookalike: str) -> None:
    """Texts that have the bytes of an end in them are never mended."""
    for obj in (
        [lookalike] * 1001,
        [[lookalike] * 1001, lookalike, [1, lookalike]],
        [*(f"{lookalike} {i}" for i in range(1001)), dict.fromkeys(range(1000))],
        {lookalike * i: i for i in range(1, 1001)},
        [lookalike.encode() * 1000, {lookalike: dict.fromkeys(range(1001))}],
        [f"{lookalike}{i}" for i in range(5000)],
    ):
        check(obj, 1, 3, 4, 5)


class _Text(str):
    """One that the garbage collector does not track, nor what is in it."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return str, ("x",), None, iter(())


#: Values that are not tracked, or not any more after a collection.
UNTRACKED: dict[str, Callable[[int], Any]] = {
    "ints": lambda i: i,
    "floats": lambda i: i / 2,
    "texts": lambda i: f"text {i}",
    "lookalikes": lambda i: LOOKALIKES[i % len(LOOKALIKES)] * (i % 3),
    "bytes": lambda i: b"u(" * (i % 5),
    "large": lambda i: "u(u" * FRAME if i == 700 else i,
    "tuples": lambda i: (i, "u", "(", None, i),
    "tuples in tuples": lambda i: ((i, 2, 3, ()), (4, 5, 6, (7, 8, 9, 10))),
    "bytearrays": lambda i: bytearray(b"u(u"),
    "ranges": lambda i: range(i),
    "dates": lambda i: datetime.date.fromordinal(i + 1),
    "texts of one's own": lambda i: _Text("u(u"),
}


@pytest.mark.parametrize("n", [999, 1000, 1001, 2001])
@pytest.mark.parametrize("values", UNTRACKED)
def test_dict_that_is_not_tracked(values: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no container that may be awkward in it (up to 3.13), and ends as Python ends it."""
    seen: list[bool] = []

    def record(*args: Any) -> bool:
        seen.append(is_untracked(*args))
        return seen[-1]

    is_untracked = glance.is_untracked
    monkeypatch.setattr(glance, "is_untracked", record)
    make = UNTRACKED[values]
    obj = {i: make(i) for i in range(n)}
    for _ in range(3):  # one for each level of tuples
        gc.collect()
    check(obj, *range(6))
    check({str(i): make(i) for i in range(n)}, 2, 4)
    assert any(seen) == (
        _stdlib.UNTRACKED_DICTS_ARE_FLAT and values not in ("ranges", "dates", "texts of one's own")
    ), "C knows the types that it has reduced"


#: What C writes in one piece of a batch's bytes or more, and whether it is told at a first glance how Python ends it:
#: None where that depends on the version.
PIECES: dict[str, tuple[Callable[[], Any], bool | None]] = {
    "ints": (lambda: [*range(900)], True),
    "ints of some batches": (lambda: [*range(3_500)], True),
    "ints and one": (lambda: [*range(3_001)], True),
    "ints and a text": (lambda: [*range(2_999), "e(N"], True),
    "ints and a text that is one too many": (lambda: [*range(3_000), "e(N"], False),
    "ints beside a list of one batch": (lambda: [*range(3_500), [*range(1_000)]], True),
    "ints beside a longer one": (lambda: [[*range(1_001)], *range(3_500)], False),
    "ints beside a dict of one batch": (lambda: [*range(3_500), dict.fromkeys(range(1_000))], False),
    "ints beside a dict that is shorter": (lambda: [*range(3_500), dict.fromkeys(range(999))], True),
    "a list of one more than a batch that is the last": (lambda: [*range(3_000), [*range(1_001)]], False),
    "itself": (lambda: _with_itself([*range(3_000)]), None),
    "texts": (lambda: [f"text {i}" for i in range(900)], True),
    "texts with MARKs": (lambda: [f"({i}(" for i in range(900)], True),
    "texts that look like ends": (lambda: [LOOKALIKES[i % len(LOOKALIKES)] + str(i) for i in range(900)], False),
    "texts of a batch and one": (lambda: [str(i) for i in range(1_001)], True),
    "many texts": (lambda: [f"text {i} {'x' * 9}" for i in range(3_300)], False),
    "long texts": (lambda: [f"{i} {'x' * 60}" for i in range(750)], True),
    "long texts beside a list": (lambda: [*(f"{i} {'x' * 60}" for i in range(750)), [1]], False),
    "lists in lists": (lambda: [[i, [i]] for i in range(400)], True),
    "a tuple of lists": (lambda: tuple([i] for i in range(400)), True),
    "a tuple with a long list": (lambda: ("x" * 3_000, [*range(1_001)]), False),
    "dict of 999": (lambda: {i: i for i in range(999)}, True),
    "dict of 1000": (lambda: {i: str(i) for i in range(1_000)}, True),
    "dict of 1001": (lambda: {i: i * 300 for i in range(1_001)}, True),
    "dict of 1001 tuples": (lambda: {(i,): i for i in range(1_001)}, None),
    "dict of 2000 with lists": (lambda: {i: [i] if i < 30 else i for i in range(2_000)}, True),
    "dict with a long list": (lambda: {i: [*range(1_001)] if i == 5 else i for i in range(2_000)}, False),
    "dict of a batch that ends with a list": (lambda: {i: [i] if i == 1_000 else i for i in range(1_001)}, False),
    "dict of a batch that ends with a long int": (
        lambda: {i: i << 90 if i == 1_000 else i for i in range(1_001)},
        True,
    ),
    "a set": (lambda: {*range(1_001)}, False),
    "instances": (lambda: [_with([*range(1_001)]), "x" * 1_000], False),
    "an instance in a dict": (lambda: {**{i: i for i in range(1_000)}, 5: _with([*range(1_001)])}, False),
}


def _with_itself(obj: list[Any]) -> list[Any]:
    obj.append(obj)
    return obj


@pytest.mark.parametrize("name", PIECES)
def test_one_piece(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python would end otherwise is told by a few looks, or by all that `differences` asks."""
    told: list[bool] = []
    at_first_glance = glance.at_first_glance

    def record(*args: Any) -> Any:
        ours = at_first_glance(*args)
        told.append(ours is not None)
        return ours

    monkeypatch.setattr(quick, "at_first_glance", record)
    make, is_told = PIECES[name]
    obj = make()
    gc.collect()
    for protocol in range(6):
        fastpickle.dumps([None], protocol)  # a table that is larger is not kept for long
    for _ in range(3):  # what wrote the last one is kept
        check(obj, *range(6))
    if awkward_batches and is_told is not None:
        assert {*told} == {is_told}
    fastpickle.dumps([*map(str, range(5_000))])  # its table is larger then
    check(obj, *range(6))


_ROWS: dict[str, Any] = {
    "nothing else": lambda row: None,
    "1001 ints": lambda row: row(range(1001)),
    "999 texts": lambda row: row(map(str, range(999))),
    "2001 of None": lambda row: row([None] * 2001),
    "1001 ints in a row": lambda row: row([1, [*range(1001)]]),
    "1000 keys in a row": lambda row: row([dict.fromkeys(range(1000))]),
    "a date": lambda row: row([datetime.date(2000, 1, 1)]),
    "an instance": lambda row: row([_with([*range(1001)])]),
    "bytes": lambda row: row([b"e(Ne", b"u(u"]),
    "another type": lambda row: {"a": [*range(1001)]},
    "an atom": lambda row: "e(Ne",
    "a subclass": lambda row: type("_Row", (row,), {"__reduce__": lambda self: (row, ([*range(1001)],))})(),
}


@pytest.mark.parametrize("place", [0, 700, 1_400])
@pytest.mark.parametrize("row", [list, tuple])
@pytest.mark.parametrize("odd", _ROWS)
def test_rows_of_texts_that_look_like_ends(odd: str, row: Any, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of atoms are looked at sooner than all that is memoized; what else is in a row is seen."""
    seen: list[bool] = []
    are_flat_rows = glance.are_flat_rows
    monkeypatch.setattr(differences, "are_flat_rows", lambda *args: seen.append(are_flat_rows(*args)) or seen[-1])
    rows = [row((f"{i} e(N", f"e {i}", f"{i} u(", LOOKALIKES[i % len(LOOKALIKES)])) for i in range(1_400)]
    more = _ROWS[odd](row)
    if more is not None:
        rows.insert(place, more)
    check(rows, *range(6))
    check([*rows, *rows[:601]][:2_001], 2, 4)
    if awkward_batches:
        assert any(seen) == (odd in ("nothing else", "999 texts", "bytes"))


def _with(value: Any) -> Any:
    found = _Attributes()
    found.value = value  # type: ignore[attr-defined]  # as an instance has it
    return found


@pytest.mark.parametrize("n", [1, 1000, 1001, 2000])
def test_dict_that_is_tracked_again(n: int) -> None:
    """What is put into it later is looked for, by the same pickler, too; in what is not tracked it is not there."""
    obj: dict[Any, Any] = {i: i for i in range(n)}
    inside = [*range(1001)]
    pickler = fastpickle.Pickler(io.BytesIO(), 4)
    for value in (1, inside, (inside,), {1: inside}, 2, ({3: inside}, inside), "3"):
        obj[0] = value
        gc.collect()
        check(obj, *range(1, 6))
        file = io.BytesIO()
        pickler.__init__(file, 4)  # type: ignore[misc]  # as people do, to use it again
        pickler.memo = {id(inside): (0, inside)} if n % 2 else {}
        expected = io.BytesIO()
        stock = _stdlib.StockPickler(expected, 4)
        stock.memo = {id(inside): (0, inside)} if n % 2 else {}
        for one in pickler, stock:
            one.dump(["first", obj, obj])
            one.dump(obj)
        assert file.getvalue() == expected.getvalue()


class _Attributes:
    pass


def _set(obj: Any, value: Any) -> None:
    obj.a = value


@pytest.mark.parametrize("n", [1, 1000])
def test_dict_of_attributes(n: int) -> None:
    """CPython 3.13.0 tracks the dict of an instance no more for what is set as an attribute."""
    inside = [*range(1001)]
    for change in (_set, lambda obj, value: setattr(obj, "a", value), lambda obj, value: vars(obj).update(a=value)):
        instances = [_Attributes() for _ in range(60)]
        for x in instances:
            x.__dict__.update(dict.fromkeys(map(str, range(n - 1))))
            x.a = 1  # type: ignore[attr-defined]  # it has any
        dicts = [*map(vars, instances)]
        gc.collect()
        for x in instances:
            change(x, inside)  # often, so that it is specialised
        for obj in dicts[0], dicts[-1], dicts[0].copy(), {**dicts[-1]}, {"b": dicts[-1]}:
            check(obj, 1, 2, 4)


def test_number_of_ends_must_be_right() -> None:
    """What looks like more ends, or fewer, than there are is not mended."""
    pickled = pickle.dumps([{1: 2}, dict.fromkeys(range(1000)), "u(u"], 4)
    n = len(mending.find_doubtful(pickled))
    for ends in {(ord("u"), 0): n + 1}, {(ord("u"), 2): n}, {(ord("e"), 1): 1}:
        assert mending.mend([pickled], True, mending.Wanted(ends)) is None


def test_bytes_that_are_no_pickle(a_part_of: APartOf) -> None:
    """Where the bytes behind what looks like a batch mean nothing, it is none."""
    for n in a_part_of(range(300)):
        rng = random.Random(n)
        noise = b"e(" + rng.randbytes(n % 40) + b"u(" + rng.randbytes(n)
        check([noise, dict.fromkeys(range(1000), noise), [noise] * 1001], 4)


def test_pickled_with_large_objects(mended: list[bool]) -> None:
    """Large texts stand between frames, and are left alone."""
    for n in 0, 1, 2, 3, 4, 5:
        obj = [[None] * n, "u(u" * FRAME, dict.fromkeys(range(1000)), b"e(Ne" * FRAME, b"x" * FRAME, [*range(1001)]]
        check(obj, 4, 5)
    assert all(mended)


def test_items_of_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a list that C is given in parts, the awkward containers in each part are mended."""
    monkeypatch.setattr(offering, "longest", 2000)
    monkeypatch.setattr(chunks, "_CHUNK", 200_000)
    check([dict.fromkeys(range(1000 + i % 2), i) if i % 7 == 0 else i for i in range(3001)], 1, 4)
    check({i: [*range(1001)] if i % 700 == 0 else i for i in range(5000)}, 1, 4)


def _chain(n: int) -> Any:
    """Return pairs in pairs, which stand on the stack all at once."""
    made: Any = (1, 2)
    for i in range(n):
        made = (i, made)
    return made


_shared: dict[str, int] = {"shared": 1}
#: What stands where batches of a long list or dict begin.
FIRSTS: dict[str, Callable[[int], Any]] = {
    "dicts": lambda i: {"id": i},
    "the same dict": lambda i: _shared,
    "tuples": lambda i: (i, i, i, i),
    "pairs": lambda i: (i, i),
    "pairs of dicts": lambda i: ({}, i),
    "triples of strs": lambda i: ("a long string, not seen before " + str(i), i, i),
    "lists": lambda i: [],
    "sets": lambda i: {i},
    "long ints": lambda i: 1 << 70,
    "strs": lambda i: f"a long string, longer than forty characters {i}",
    "chains": lambda i: _chain(20),
    "dates": lambda i: datetime.date(2020, 1, 1 + i % 28),
}


@pytest.mark.parametrize("name", FIRSTS)
@pytest.mark.parametrize("n", [1002, 1004, 2001])
def test_first_item_of_a_batch(name: str, n: int) -> None:
    """An end that cannot be told from a batch of a long container's own is found nevertheless."""
    first = FIRSTS[name]
    for last in 1, _chain(3), _chain(20):
        hidden = [*range(1000), last]
        for lookalike in None, "u(u":
            for obj in (
                [hidden, lookalike, *map(first, range(n - 2))],
                dict(enumerate([*map(first, range(n - 2)), hidden, lookalike])),
            ):
                assert fastpickle.dumps(obj, 4) == stock_dumps(obj, 4)


def test_end_that_is_not_recognized() -> None:
    """A text that looks like an end is not taken for one that does not, and is of the same kind."""
    for n in 1, 4, 8, 9, 12, 20:
        for lookalike in "e(Ne", "e(K\x01e", "u(NNu":
            for hidden in [*range(1000), _chain(n)], {**dict.fromkeys(range(1000)), "key": _chain(n)}:
                check([hidden, lookalike, 1], 4)
                check([lookalike, *range(1500), hidden], 4)
                check([*range(1000), [lookalike, hidden]], 4)
                check([[], *(f"text {i}" for i in range(999)), lookalike * (FRAME // 4)], 4)
                check([*range(1000), (lookalike, "x" * FRAME, lookalike * FRAME)], 4)


def test_frame_ends_behind_a_mark(a_part_of: APartOf) -> None:
    """Where a batch begins at the end of a frame, there is nothing to be seen of its first object."""
    for kind in dict, str, int:
        for n in a_part_of(range(20)):
            texts = [f"text {i}" for i in range(999)]
            filler = FRAME - len(stock_dumps(["", *texts, "e(Ne"], 4)) + 10 + n
            first: Any = {"a": 1} if kind is dict else kind(7_000_000)
            check(["x" * filler, *texts, first, "e(Ne", *([{"b": 2}] * 1002)], 4)
            check({"x" * filler: first, **dict.fromkeys(texts, first), "key": "u(u", **dict.fromkeys(range(1002))}, 4)


def test_own_end_that_is_not_clear() -> None:
    """A text in the last item of all may seem to close at the same place as the end itself."""
    for n in 1, 3, 8, 20:
        check([*range(1000), (_chain(n), "e(NN")], 1, 2, 4)
        check({**dict.fromkeys(range(1000)), "key": (_chain(n), "u(NNN")}, 1, 2, 4)
        check([[*range(1000), (_chain(n), "e(NN")], *["text"] * 60], 1, 2, 4)


def test_containers_of_an_earlier_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """What C wrote of a list before is not looked for in what it writes of it now."""
    monkeypatch.setattr(offering, "longest", 20_000)
    for length in 1000, 2000, 3000:
        for lookalike in "u(u", "u(NNu":
            items: list[Any] = [None] * 30_000
            items[5] = dict.fromkeys(range(length))
            items[20_000] = lookalike
            check(items, 1, 4)
            items[25_000] = dict.fromkeys(range(1000))
            check(items, 1, 4)
            check([items, *items[:100]], 1, 4)


def test_large_behind_little() -> None:
    """A small dump may be of several pieces."""
    for n in 0, 1, 5:
        for large in "x" * FRAME, b"x" * FRAME, bytearray(FRAME):
            check([*range(n), large], *range(1, 6))
            check({"key": large, **dict.fromkeys(range(n))}, *range(1, 6))


@pytest.mark.parametrize("last", [5, 300, -70_000, 1 << 40, 1.5, None, True, "text", "u(u", (1,), []], ids=repr)
def test_columns(last: Any, mended: list[bool]) -> None:
    """Numbers have the bytes of ends in them by chance; what is in the ends tells which they are."""
    numbers = random.Random(5)
    columns = {f"column {i}": [*(numbers.randrange(1 << 16) for _ in range(1000)), last] for i in range(9)}
    check(columns, 1, 2, 3, 4, 5)
    tables = [{**dict.fromkeys((numbers.random() for _ in range(1000)), 0x65), i: last} for i in range(4)]
    check(tables, 1, 2, 3, 4, 5)
    looking = [[0x65286E65, 0x2865, *range(999)], [0x286525, *range(1000, 0, -1)], [2.5] * 1001, {*range(1000)}]
    check([looking, "e(K\x01e", b"e(K\x01e", looking], 1, 2, 3, 4, 5)


def _looking(numbers: random.Random) -> float:
    """Return a number with the bytes of ends in it, or parts of them."""
    made: float = struct.unpack(">d", b"?" + bytes(numbers.choice(b"eu\x90((KNG\x8c\x94\x00") for _ in range(7)))[0]
    return made


#: What tells apart the ends of long containers and numbers that look like them: where those containers are.
TABLES: dict[str, Callable[[list[Any]], Any]] = {
    "columns": lambda long: dict(zip("abcdefgh", long, strict=True)),
    "columns in columns": lambda long: {"x": {"y": long[:3], "z": tuple(long[3:])}, "w": [1, {}, []]},
    "far inside": lambda long: [[[x, None] for x in long] for _ in range(600)],
    "the same ones": lambda long: {"x": long, "y": [*long, *long], "z": [long[0]] * 9},
    "beside many": lambda long: [*([i] for i in range(3000)), *long],
    "columns without": lambda long: {i: x for i, x in enumerate(long) if len(x) not in {1000, 1001}},
    "within itself": lambda long: [long, long.append(long)],
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("seed", range(3))
def test_tables(name: str, seed: int) -> None:
    """Long containers are found among the first items, or in the memo; what was written before is not, again."""
    numbers = random.Random(seed)
    long: list[Any] = [[_looking(numbers) for _ in range(n)] for n in (1002, 1004, 2008, 3009, 1001)]
    long += {_looking(numbers): i for i in range(1500)}, {str(i): _looking(numbers) for i in range(1000)}
    long.append({*range(1000)})
    obj = TABLES[name](long)
    check(obj, 1, 4, 5)


@pytest.mark.parametrize("protocol", [1, 4])
def test_long_container_of_an_earlier_dump(protocol: int) -> None:
    """What is in the memo is not written again, so that no batch of its own is among those that are seen."""
    first = [*range(9009)]  # as many batches as there are ends then
    others = [[i, None, None, None] for i in range(3000)]  # too many for what is behind them to be met
    obj = [first, [*others, *([*range(1000), i] for i in range(7))], *range(100)]
    pickled = []
    for pickler in fastpickle.Pickler, _stdlib.StockPickler:
        file = io.BytesIO()
        used = pickler(file, protocol)
        used.dump(first)
        used.dump(obj)
        pickled.append(file.getvalue())
    assert pickled[0] == pickled[1]


@pytest.mark.parametrize("n", [3000, 3001, 10_000, 20_001])
def test_own_end_among_numbers(n: int, a_part_of: APartOf) -> None:
    """The end of all is seen where it must be, unless a frame ends before it."""
    for last in a_part_of((1, 2.5, "text", None)):
        numbers = random.Random(n)
        for obj in (
            [*(_looking(numbers) for _ in range(n - 1)), last],
            {**{str(i): _looking(numbers) for i in range(n - 1)}, "last": last},
        ):
            check(obj, 1, 4)
    for filler in a_part_of(range(FRAME - 9060, FRAME - 9000)):  # the frame is full before, in, or behind the end
        numbers = random.Random(filler)
        check(["x" * filler, *(_looking(numbers) for _ in range(999)), 2.5], 4)


def test_batch_of_atoms() -> None:
    """A batch of three atoms and more is none to be mended, and nothing else is one."""
    for batch in b"K\x01NN", b"G12345678" * 1000, b"\x8c\x03abc\x94" * 5 + b"h\x01":
        for close in b"e", b"u", b"\x90":
            assert reading.is_batch_of_atoms(b"e(" + batch + close, 1)
        for close in b"t", b"\x91", b"", b"\x86\x94e", b"}\x94e":
            assert not reading.is_batch_of_atoms(b"e(" + batch + close, 1)
    for batch in b"", b"N", b"K\x01K", b"]\x94NNN":
        assert not reading.is_batch_of_atoms(b"(" + batch + b"e", 0)


#: Containers of each awkward kind, the smallest there are, and one that begins in another frame than it ends in.
OPENED: dict[str, Callable[[], Any]] = {
    "list": lambda: [None] * 1001,
    "dict": lambda: dict.fromkeys(range(1000)),
    "dict with one more": lambda: dict.fromkeys(range(1001)),
    "set": lambda: {*range(1000)},
    "list across frames": lambda: ["x" * 150 + str(i) for i in range(1001)],
    "dict across frames": lambda: {"x" * 150 + str(i): [i, i] for i in range(1000)},
    "set across frames": lambda: {"x" * 150 + str(i) for i in range(1000)},
}


@pytest.mark.parametrize("kind", OPENED)
def test_opened(kind: str, a_part_of: APartOf) -> None:
    """Ends are sought of what is opened in the bytes only: each kind alone among many MARKs is found."""
    opened = OPENED[kind]()
    check([opened], 1, 2, 3, 4, 5)  # its end is behind the first thousand bytes
    all_rows = (
        [[i, i, i, i] for i in range(300)],
        [(i, i, i, i) for i in range(300)],
        [{i: i, "i": i} for i in range(300)],
    )
    for rows in a_part_of(all_rows):
        check([rows, opened], 1, 2, 3, 4, 5)
        check([*rows, opened], 1, 2, 3, 4, 5)
        check([*rows, opened, *rows], 1, 2, 3, 4, 5)
        check({"rows": rows, "opened": opened}, 1, 2, 3, 4, 5)
        check([*rows, (opened, *rows)] * 5, 1, 2, 3, 4, 5)
        check([*[[row] for row in rows] * 20, opened], 4)  # in chunks, most of them without it


def test_ends_in() -> None:
    """The ends that may be in pieces are those of what is opened in them, in whichever."""
    for proto in range(1, 6):
        pieces = [pickle.dumps(x, proto) for x in ([1], {1: 2}, {1, 2}, 5)]
        lists, dicts, sets = b"e(", b"u(", b"\x90("
        expected = [[lists], [dicts], [sets] if proto >= 4 else [lists], []]  # before, a set is reduced to a list
        assert [reading.ends_in([piece], proto) for piece in pieces] == expected
        assert reading.ends_in(pieces, proto) == [lists, dicts, *([sets] if proto >= 4 else [])]


#: Of what pickles are made in which a text or a MARK is sought: rare bytes, frequent ones, and those of ends.
ALPHABETS = (
    bytes(range(256)), b"(eu\x90K\x01\x94", b"(e", b"_name", b"}\x94abc_", b"(abcdefghijklmnopqrstuvwxyz\x90",
    b"(((((((K\x01\x94]", b"(((((" + b"K\x01\x94]abcdef" * 20 + b"e", b"(((((" + bytes(range(32, 39)) * 20 + b"u\x90",
)  # fmt: skip


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_reading(alphabet: bytes) -> None:
    """A text is found if it is there, from any place on, and MARKs where the regular expression alone finds them."""
    rng = random.Random(1)
    for n in (0, 1, 2, 5, 50, 700, 1500, 6_000, 40_000, 70_000) * 3:
        piece = bytes(rng.choices(alphabet, k=n)) + bytes(rng.choices(range(256), k=rng.choice((0, 3_000, 30_000))))
        start = rng.choice((0, 1, rng.randrange(len(piece) + 1)))
        end = rng.choice((len(piece), rng.randrange(len(piece) + 1)))
        marks = (match.start() for match in reading._doubtful.finditer(piece, start, end))
        expected = [*itertools.islice(marks, reading.most_doubtful(piece))]
        assert reading.find_doubtful(piece, start, end) == expected
        for length in (1, 2, 5, 9, 12):
            place = rng.randrange(len(piece) + 1)
            for text in (piece[place : place + length] or b"x", bytes(rng.choices(alphabet, k=length))):
                assert reading.has_text(piece, text) == (text in piece)
                assert reading.has_text(piece, text, start) == (text in piece[start:])


#: What may be last in a container: numbers of each length, what looks like an end, and other containers.
LAST: tuple[Any, ...] = (
    None, True, 7, 255, 256, 10_357, 0xFFFF, 0x10000, -1, 2**40, 2.5, "u(u", b"e(e", (), [1], {2: 3}, [None] * 1000,
    dict.fromkeys(range(1000)),
)  # fmt: skip


@pytest.mark.parametrize("n", [999, 1000, 1001, 1002, 2000, 2001, 30_000, 30_001])
@pytest.mark.parametrize("item", LAST)
def test_few_containers(item: Any, n: int) -> None:
    """A long container with few others in it, which C's memo tells sooner than its bytes."""
    for obj in (
        [*range(n - 1), item], [item] * n, {**dict.fromkeys(range(n - 1)), "last": item}, {"first": item},
        {"first": item, **dict.fromkeys(range(n - 1))}, [[*range(n)], item], {*range(n)},
    ):  # fmt: skip
        check(obj, *((1, 4, 5) if n < 30_000 else (4,)))


class Holder:
    """An instance with whatever in it, which may be in a set."""

    def __init__(self, held: Any) -> None:
        self.held = held


class Refused:
    """What the C pickler is not given."""

    def __reduce__(self) -> Any:
        return Refused, ()


#: What may be in a small set.  Below protocol 4 a frozenset is reduced to a list, which may be awkward.
ELEMENTS: tuple[Any, ...] = (
    1, (1, "e(e", b"u(u"), frozenset(range(1000)), frozenset(range(1001)), (1, frozenset(range(2001))),
    Holder([None] * 1001), Holder(dict.fromkeys(range(1000))),
)  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 20, 999, 1000, 1001, 2000])
@pytest.mark.parametrize("item", ELEMENTS)
def test_sets(n: int, item: Any, a_part_of: APartOf) -> None:
    """A list of sets, the elements of which may have awkward containers in them."""
    small = {*range(20)}
    lists = [{*range(n)}] * 60, [small, {*range(n)}] * 30, [{item, *range(i, i + 20)} for i in range(max(60, n))]
    for obj in a_part_of(lists):
        check([*obj], 1, 3, 4, 5)
        check([Refused(), [*obj]], 2, 4)
        check([*obj, {item}, [None] * n], 1, 4, 5)
    check([{item}, *({i} for i in range(100))], 1, 2, 3, 4)


class Measured:
    """Has a length that nobody is to ask for."""

    asked = 0

    def __len__(self) -> int:
        Measured.asked += 1
        raise ValueError


@pytest.mark.parametrize("cls", [Builder, Measured])
def test_instance_at_the_root(cls: Any) -> None:
    """What looks like ends by chance is told apart in an instance, too, which need not have a length."""
    for a in {i: 0x2875 if i % 2 else "u(" for i in range(1001)}, [*range(1001)], None:
        obj = cls.__new__(cls)
        obj.a = a
        obj.b = [f"u({i}" for i in range(2000)]
        check(obj, 2, 4)
    assert Measured.asked == 0


#: The key of each item of a long dict, by its place.
KEYS: dict[str, Callable[[int], Any]] = {
    "texts": lambda i: f"key {i}",
    "long texts": lambda i: f"{i} {'x' * 70}",
    "other texts": lambda i: f"\N{OHM SIGN}{i}\ud800",
    "numbers": lambda i: i,
    "tuples": lambda i: (f"key {i}", i),
    "all kinds": lambda i: (f"key {i}", i, i * 0.5, None if i == 2000 else (i,), (f"{i}", (i, i, i, i)))[i % 5],
}


@pytest.mark.parametrize("n", [2_500, 11_000, 12_001, 31_000])
@pytest.mark.parametrize("name", KEYS)
def test_keys_of_batches(name: str, n: int, a_part_of: APartOf) -> None:
    """A dict's own batches are known by its keys: numbers, and dicts in it, may look like them."""
    key = KEYS[name]
    again = [key(i) for i in (1000, 2000)]  # equal to a key of the dict, but for numbers another object
    all_hidden = (
        None,
        dict.fromkeys(range(1000)),
        {**dict.fromkeys(range(-1000, 0)), again[0]: 1},
        [dict.fromkeys(range(1000)), *again],
        {**dict.fromkeys(range(-1000, 0)), again[1]: [*range(1001)]},
    )
    for hidden in a_part_of(all_hidden):
        # 10,357 is the bytes of SETITEMS MARK; as a number of two bytes it has the next key behind it.
        values = {key(i): 10_357 if i % 999 == 5 else i for i in range(n)}
        values[key(n // 2)] = hidden
        check(values, 2, 4)
        check({**values, "e(u(": "u(\x8c\x08key 1000"}, 4)
        check([values, 1.5], 4)


@pytest.mark.parametrize("n", [2_500, 6_000, 11_000])
def test_keys_that_are_fetched(n: int) -> None:
    """A batch that begins with a key that is in the memo is the dict's own; one that begins with its text is not."""
    keys = [f"key {i}" for i in range(n)]
    for place in 999, 1999:
        hidden = {**dict.fromkeys(range(1000)), f"key {place}": 1}
        values = {key: 10_357 if i == 5 else -1 for i, key in enumerate(keys)}
        check({"all": keys, **values, "last": hidden}, 2, 4)
        check({"all": keys, "hidden": hidden, **values}, 2, 4)


def test_keys_that_are_fetched_in_one_frame() -> None:
    """The same where each batch is found to be one of atoms, and the memo is too large to be looked at."""
    keys = [chr(32 + i // 90) + chr(32 + i % 90) for i in range(5_480)]
    for place in 998, 1998:  # the second and third batch begin with these
        hidden = {**dict.fromkeys(range(256)), **dict.fromkeys(range(1_000, 1_744)), "".join(keys[place]): 1}
        for accidents in (), (5,), (5, 3_000):
            values = {key: 10_357 if i in accidents else None for i, key in enumerate(keys)}
            obj = {"all": keys, "hidden": hidden, **values}
            assert len(stock_dumps(obj, 4)) < FRAME and len(hidden) == 1_001 and "".join(keys[place]) is not keys[place]
            check(obj, 4)
