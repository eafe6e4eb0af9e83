"""Lists and tuples of numbers beside other things, which C writes without a memo; and parts that need no prefix."""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from oracle.compare import Implementation, Run, stock_dumps
from oracle.compare import check as _check
from oracle.parts import APartOf
from test_graft import OURS, STOCK, Custom, Hooked

import fastpickle
from fastpickle import graft
from fastpickle._stdlib import CPickler
from fastpickle.accelerator import unmemoized
from fastpickle.engine import plain
from fastpickle.objects.last import last

pytestmark = pytest.mark.skipif(CPickler is None, reason="there is no C pickler, or it is switched off")

FRAME = 64 << 10
#: A float that is written with what looks like a GET of the list that it is in.
LOOKS_LIKE_GET = 192.0
assert b"h\0" in pickle.dumps(LOOKS_LIKE_GET)


def _with(*more: Any, n: int = 400, at: int = 7) -> list[Any]:
    """Return a list of ints with something among them, at which nobody looks."""
    return [*range(at), *more, *range(at, n)]


def _within_itself(*numbers: Any) -> list[Any]:
    made: list[Any] = [*numbers] * 300
    made.insert(7, made)
    return made


def _tuple_within_itself() -> tuple[Any, ...]:
    inner: list[Any] = []
    made = (*range(103), inner, *range(103))
    inner.append(made)
    return made


class Int(int):
    """Is reduced."""


NUMBERS: dict[str, Callable[[], Any]] = {
    "ints": lambda: [*range(400)],
    "larger ints": lambda: [*range(70_000, 70_400)],
    "long ints": lambda: [1 << (i * 7) for i in range(300)],
    "negative": lambda: [*range(-200, 200)],
    "floats": lambda: [i / 7 for i in range(400)],
    "floats that look like a GET": lambda: [LOOKS_LIKE_GET] * 100,
    "one that looks like a GET": lambda: [*range(200), 0x6800, LOOKS_LIKE_GET, 0x00680000, *range(200)],
    "bools": lambda: [True, False, None] * 100,
    "of all kinds": lambda: [1, 2.5, None, True, 1 << 40, -7] * 50,
    "tuple": lambda: (*range(400),),
    "tuple of floats": lambda: (LOOKS_LIKE_GET,) * 100,
}
#: What looks like numbers, and is not.
OTHERS: dict[str, Callable[[], Any]] = {
    "a text": lambda: _with("text"),
    "a text twice": lambda: _with(text := "text", 3, text),
    "bytes": lambda: _with(b"bytes"),
    "empty tuples": lambda: _with((), (), 2),
    "a tuple": lambda: _with((1, 2)),
    "a list": lambda: _with([]),
    "a class": lambda: _with(int),
    "an int of a class": lambda: _with(Int(5)),
    "custom": lambda: _with(Custom(3)),
    "itself": lambda: _within_itself(1, 2),
    "itself among floats": lambda: _within_itself(1.5, LOOKS_LIKE_GET),
    "itself far inside": lambda: (made := _with([inner := []]), inner.append(made))[0],
    "itself in a tuple": _tuple_within_itself,
    "ellipsis": lambda: _with(..., NotImplemented, 5j),
    "a set": lambda: _with(set(), frozenset(), frozenset({1})),
    "a large text": lambda: _with("x" * FRAME, "y" * 3 * FRAME),
    "many texts": lambda: [1, *[f"text {i}" for i in range(3000)], 2],
}
KINDS = NUMBERS | OTHERS
#: Where they are.
PLACES: dict[str, Callable[[Any], Any]] = {
    "behind": lambda x: (Custom(1), x),
    "before": lambda x: [x, Custom(1)],
    "between": lambda x: {"a": Custom(1), "b": x, "c": [Custom(2)]},
    "twice": lambda x: (Custom(1), x, [x, Custom(2)], x),
    "many": lambda x: [Custom(1), *[x[:] if type(x) is list else x for _ in range(5)], Custom(2), x[:]],
    "behind texts": lambda x: [Custom(1), [f"text {i}" for i in range(250)], x, "end", x, Custom(2)],
    "behind its items": lambda x: [Custom(1), [*x[:20]], x],
    "behind many": lambda x: [Custom(1), [f"text {i}" for i in range(2000)], x, x],
}


@pytest.fixture(autouse=True)
def _is_always_tried(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Let no dump remember that what looked like numbers was something else."""
    last.forget()
    if "remembered" not in request.node.name:
        monkeypatch.setattr(type(last), "remember_no_numbers", lambda self: None)


def check(*args: Any, **how: Any) -> None:
    """Compare, with a file in memory, which C may write to."""
    _check(*args, file=lambda run: io.BytesIO(), **how)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record what came of each try."""
    results: list[bool] = []

    def numbers(*args: Any) -> bool:
        results.append(unmemoized.numbers(*args))
        return results[-1]

    monkeypatch.setattr(plain, "numbers", numbers)
    return results


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_kind(kind: str, where: str) -> None:
    """Whatever looks like numbers, beside what C is not given; and what the memo has afterwards."""

    def steps(run: Run) -> None:
        obj = PLACES[where](KINDS[kind]())
        run.pickler.dump(obj)
        run.pickler.dump([obj, "end"])

    check(STOCK, OURS, steps)


@pytest.mark.parametrize("kind", KINDS)
def test_is_written(kind: str, asked: list[bool]) -> None:
    """Numbers are, without a memo; others are not, and that is tried once a dump."""
    fastpickle.dumps((Custom(1), *[KINDS[kind]() for _ in range(3)], Custom(2)))
    if kind in NUMBERS:
        assert asked == [True, True, True]
    elif kind == "empty tuples":
        assert asked == [True, True, True]
    else:
        assert asked == ([] if kind == "many texts" else [False])


@pytest.mark.parametrize("n", [46, 47, 48, 49, 50, 55, 56, 57, 999, 1000, 1001, 2000, 2001])
@pytest.mark.parametrize("number", [3, 300, LOOKS_LIKE_GET, None])
def test_lengths(n: int, number: Any) -> None:
    """Around the fewest, and those that C ends otherwise."""
    for make in list, tuple:
        check(STOCK, OURS, lambda run: run.pickler.dump((Custom(1), make([number] * n), Custom(2))))


@pytest.mark.parametrize("kind", ["ints", "floats", "tuple", "itself", "a text"])
def test_frames(kind: str) -> None:
    """Wherever the frame ends, before, in and behind it; and where it is empty."""
    n = len(pickle.dumps(KINDS[kind]()))
    for before in [*range(FRAME - n - 120, FRAME - n + 20, 7), *range(FRAME - 100, FRAME + 30)]:
        # What comes first is written by Python, and so are frames begun by it.
        first = ["x" * 60_000, "y" * (before - 60_000)]
        check(STOCK, OURS, lambda run: run.pickler.dump((Custom(1), first, KINDS[kind](), Custom(2))), protocols=(4,))


@pytest.mark.parametrize("before", range(250, 260))
def test_memo_index(before: int) -> None:
    """Around the 256th entry of the memo: what is fetched afterwards."""
    texts = [f"text {i}" for i in range(before)]
    check(STOCK, OURS, lambda run: run.pickler.dump((Custom(1), texts, x := [*range(400)], [x, Custom(2)], x)))


NUMBERS_MADE = [1000 + i for i in range(400)]


@pytest.mark.parametrize("what", ["a number", "another thing", "a tuple", "the list", "nothing"])
@pytest.mark.parametrize("kind", [list, tuple])
def test_numbers_in_the_memo(what: str, kind: Any) -> None:
    """Somebody may put a number into the memo: stock fetches it."""

    def steps(run: Run) -> None:
        given = kind([*NUMBERS_MADE, (), 5])

        def act() -> int:
            memo = run.pickler.memo
            if what == "a number":
                run.pickler.memoize(given[7])
            elif what == "another thing":
                memo[id(given[300])] = len(memo), "another"
            elif what == "a tuple":
                run.pickler.memoize(())
            elif what == "the list":
                run.pickler.memoize(given)
            return 3

        run.pickler.dump((Hooked(act), given, [*given], Hooked(act), kind(given[3:])))

    check(STOCK, OURS, steps)


def test_memo_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has run may have put something there; until something runs again it need not be looked at again."""
    times: list[int] = []
    found = unmemoized.is_usual_memo
    monkeypatch.setattr(
        unmemoized, "is_usual_memo", lambda pickler, memo: (times.append(len(memo)), found(pickler, memo))[1]
    )
    fastpickle.dumps((Custom(1), *[[*range(100)] for _ in range(9)], Custom(2)))
    assert len(times) == 1
    fastpickle.dumps((Custom(1), *[[Custom(2), [*range(100)]] for _ in range(9)], Custom(2)))
    assert len(times) == 10


def test_no_numbers_are_remembered(asked: list[bool]) -> None:
    """What is dumped next is likely to be like that: only each sixteenth is taken for numbers again."""
    for kind, times, tried in ("a text", 20, 2), ("floats", 32, 20):
        asked.clear()
        for _ in range(times):
            obj = (Custom(1), KINDS[kind](), Custom(2))
            assert fastpickle.dumps(obj, 4) == stock_dumps(obj)
        assert len(asked) == tried


@pytest.mark.parametrize("number", [5, 300.5])
@pytest.mark.parametrize("kind", [list, tuple])
def test_many_are_not_tried(kind: Any, number: Any, asked: list[bool]) -> None:
    """With few entries in the memo nothing is gained by it, and if one is no number all is written twice."""
    for entries, n in (0, 20_000), (0, 20_001), (400, 24_000), (400, 26_500):
        asked.clear()
        given = kind([number] * n)
        obj = (Custom(1), [f"text {i}" for i in range(entries)], Custom(3), given, Custom(2))
        assert fastpickle.dumps(obj, 4) == stock_dumps(obj)
        assert asked == [True] * (n in (20_000, 24_000))


@pytest.mark.parametrize("what", ["before", "by a reduce"])
def test_extension_registry(what: str) -> None:
    """A class that has a code there is not memoized: stock fetches it, where it was put into the memo before."""

    def steps(run: Run) -> None:
        def act() -> int:
            if what == "by a reduce":
                run.pickler.save(Int)
                run.pickler.write(pickle.POP)
            copyreg.add_extension(__name__, "Int", 77)
            return 3

        if what == "before":
            run.pickler.dump(Int)
        try:
            run.pickler.dump([Hooked(act), _with(Int), Custom(1)])
        finally:
            copyreg.remove_extension(__name__, "Int", 77)

    check(STOCK, OURS, steps, protocols=(2, 4, 5))


@pytest.mark.parametrize("left", [0, 1, 7, 48])
def test_another_thread_takes_items_away(left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at a list there may be fewer: as if they had been gone before."""
    are_small = unmemoized._are_small
    may_try_numbers = plain.may_try_numbers

    def shorten(pickler: Any, plan: Any, obj: Any) -> bool:
        del obj[left:]
        return may_try_numbers(pickler, plan, obj)

    for module, name, shortening in (
        (plain, "may_try_numbers", shorten),
        (unmemoized, "_are_small", lambda obj: are_small(obj[:left])),
    ):
        monkeypatch.setattr(module, name, shortening)
        for number in 3, 2.5:
            given = [number] * 400
            written = fastpickle.dumps((Custom(1), given, Custom(2)), 4)
            assert pickle.loads(written)[1] == given
        monkeypatch.undo()


def _records(n: int, size: int) -> list[dict[str, Any]]:
    return [{"id": i, "text": "x" * size + f"{i}"} for i in range(n)]


@pytest.mark.parametrize("size", [0, 10, 100, 1000])
@pytest.mark.parametrize("n", [60, 300, 1000, 1001, 2001])
def test_prefix(n: int, size: int) -> None:
    """Parts that fit into the frame, as it seems or in fact, and those that do not."""

    def steps(run: Run) -> None:
        run.pickler.dump([Custom(1), _records(n, size), Custom(2), _records(n, 0), _records(60, size), [Custom(3)]])

    check(STOCK, OURS, steps)
    for more in 0, 1:
        texts = [[f"{i}" * (size or 1) for i in range(n)] for _ in range(3)]
        check(STOCK, OURS, lambda run, more=more: run.pickler.dump([Custom(1), *texts, texts[more], Custom(2)]))


@pytest.mark.parametrize("n", [60, 1000, 1001])
def test_prefix_at_the_end_of_a_frame(n: int, a_part_of: APartOf) -> None:
    """At each place before it, where that is told from what is taken to be the size, and where it is full."""
    texts = [f"{i:03}" for i in range(n)]
    size = len(pickle.dumps(texts))
    places = {*range(200), *range(size - 20, size + 90), *range(16 * n, 16 * n + 90)}
    for left in a_part_of(sorted(places)):
        first = ["x" * 60_000, "y" * max(0, FRAME - 60_000 - left)]
        check(STOCK, OURS, lambda run, f=first: run.pickler.dump([Custom(1), f, texts, Custom(2)]), protocols=(4,))


def test_prefix_is_used_once_there_was_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than there is room for is given up once a dump, early, and there is no prefix where there is room."""
    prefixed: list[bool] = []
    found = graft.written_by

    def written_by(*args: Any, **how: Any) -> Any:
        prefixed.append(len(args) > 5)
        return found(*args, **how)

    monkeypatch.setattr(graft, "written_by", written_by)
    for size in 1, 400:
        objs: list[Any] = [Custom(1)]
        for n in 150, 400, 900, 2000:  # each is more than what is memoized before
            objs += [f"{i}" * size for i in range(n)], Custom(2)
        for _ in range(2):  # C is not asked the second time whether it can write all
            prefixed.clear()
            fastpickle.dumps(objs)
        assert prefixed == ([False] * 4 if size == 1 else [False, True, True, True, True])


def test_installed() -> None:
    """The same where the stock class is ours."""
    installed = Implementation("installed", pickle._Pickler, fastpickle.patched)  # type: ignore[attr-defined]
    for kind, make in KINDS.items():
        check(STOCK, installed, lambda run, f=make: run.pickler.dump((Custom(1), f(), [f()], Custom(2))), case=kind)
