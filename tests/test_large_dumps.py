"""A library's dump of an instance with much of somebody's in it: a plan begins in the middle, or with the next one.

Not for: what is written at once (`test_few`, `test_dill_functions`), nor for tuples there (`test_way`).
"""

from __future__ import annotations

import bisect
import io
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from oracle.allowed import PYPY
from oracle.compare import describe_error

import fastpickle
from fastpickle import pickler as pickler_module
from fastpickle.at_once import small
from fastpickle.objects.last import last

dill = pytest.importorskip("dill", reason="dill is not installed")
pytestmark = pytest.mark.skipif(PYPY, reason="its pickler is another one (fastpickle.pypy)")
dill.extend(False)

#: What a pickler is given to that runs code of ours, and by which reduce.
_act: Callable[[int], Any] = id
_calls: list[int] = []


class Part:
    """Has a reduce of its own that runs anybody's code."""

    def __init__(self, number: int, *more: Any) -> None:
        self.number = number
        self.more = more

    def __reduce__(self) -> Any:
        _calls.append(self.number)
        _act(self.number)
        return Part, (self.number, f"text {self.number}"), {"more": self.more, "number": self.number}


class Whole:
    """Has many of them."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.name = "whole"
        self.parts = parts
        self.again = parts

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)


def _whole(n: int) -> Whole:
    return Whole([Part(i, (i, str(i)), [Part(-i)] if i % 7 == 0 else None) for i in range(n)])


class _Pickler(dill.Pickler):  # type: ignore[misc]  # dill has no types
    """One whose class somebody may change."""


@pytest.fixture(autouse=True)
def undone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is remembered, and dill finds the classes by their names."""
    monkeypatch.setitem(globals(), "_act", id)
    last.forget()
    yield
    last.forget()


def _dump(obj: Any, protocol: int, act: Callable[[Any, int], Any] | None = None, cls: Any = _Pickler) -> Any:
    """Return all that can be seen of a dump."""
    file = io.BytesIO()
    pickler = cls(file, protocol)
    _calls.clear()
    globals()["_act"] = id if act is None else lambda number: act(pickler, number)
    error = None
    try:
        pickler.dump(obj)
    except Exception as exc:
        error = describe_error(exc)
    memo = [(number, type(x)) for number, x in pickler.memo.values()]
    return file.getvalue(), error, [*_calls], memo, sorted(vars(pickler))


def _check(make: Callable[[], Any], protocol: int, act: Callable[[Any, int], Any] | None = None) -> None:
    expected = _dump(make(), protocol, act)
    with fastpickle.patched():
        for _ in range(3):  # the first is hook by hook as far as it is not known to be large
            assert _dump(make(), protocol, act) == expected


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("n", [1, 40, 60, 200, 800])
def test_same(n: int, protocol: int) -> None:
    """The bytes, the calls, the memo and the names of what is on the pickler."""
    _check(lambda: _whole(n), protocol)


def _raises(pickler: Any, number: int) -> None:
    if number == 150:
        raise ValueError(number)


def _listens(pickler: Any, number: int) -> None:
    if number == 150:
        pickler.persistent_id = lambda obj: "one" if obj == "text 151" else None


def _has_entry(pickler: Any, number: int) -> None:
    if number == 150:
        pickler.dispatch = {**pickler.dispatch, list: lambda self, obj: self.save_reduce(list, ((*obj,),), obj=obj)}


def _asks(pickler: Any, number: int) -> None:
    if number == 150:
        pickler.reducer_override = lambda obj: (Part, (7,)) if type(obj) is Part else NotImplemented


def _forgets(pickler: Any, number: int) -> None:
    if number == 150:
        pickler.clear_memo()


def _dumps_another(pickler: Any, number: int) -> None:
    if number in (3, 150):
        dill.dumps(_Small([number]))


def _dumps_again(pickler: Any, number: int) -> None:
    if number == 150:
        globals()["_act"] = id
        pickler.dump([number, ("within", Part(-1))])


def _saves(pickler: Any, number: int) -> None:
    if number == 150:
        pickler.save(("within", [number, Part(-1)]))


class _Small:
    """Is small."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return _Small, (str(self.value),)


@pytest.mark.parametrize("n", [200, 800])
@pytest.mark.parametrize(
    "act",
    [_raises, _listens, _has_entry, _asks, _forgets, _dumps_another, _dumps_again, _saves],
    ids=lambda f: f.__name__,
)
def test_what_a_reduce_does(act: Callable[[Any, int], Any], n: int) -> None:
    """What is done to the pickler, or by it, counts from there on, whether there is a plan or none."""
    _check(lambda: _whole(n), 4, act)


@pytest.mark.parametrize("name", ["persistent_id", "memoize", "save_reduce", "save"])
def test_class_that_a_reduce_changes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is with what is done to the class."""
    seen: list[type] = []
    original = getattr(dill.Pickler, name)

    def hook(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(type(args[0]))
        return original(self, *args, **kwargs)

    def act(pickler: Any, number: int) -> None:
        if number == 150:
            monkeypatch.setattr(_Pickler, name, hook, raising=False)

    found = []
    for around in (nullcontext, nullcontext, fastpickle.patched, fastpickle.patched):
        seen.clear()
        with around():
            found.append((_dump(_whole(400), 4, act), len(seen)))
        monkeypatch.delattr(_Pickler, name)
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0][1] > 100


def test_begins_and_goes_on(monkeypatch: pytest.MonkeyPatch, no_races: None) -> None:
    """From 400 in the memo on; with the next dump of its class at once; but no longer after one that was not large."""
    begun: list[tuple[type, int]] = []
    begin = pickler_module.begin_reduced
    monkeypatch.setattr(
        pickler_module,
        "begin_reduced",
        lambda pickler, plan, obj: (begun.append((type(obj), len(pickler.memo))), begin(pickler, plan, obj))[1],
    )

    def whole(n: int) -> Whole:
        return Whole((*_whole(n).parts,))  # a list of them is for a plan of its own

    with fastpickle.patched():
        dill.dumps(whole(300))
        assert len(begun) == 1
        assert begun[0][0] is Part
        assert begun.pop()[1] > 400
        dill.dumps(whole(300))
        dill.dumps(whole(3))
        assert begun == [(Whole, 0)] * 2
        dill.dumps(whole(3))
        assert len(begun) == 2


class _InVain:
    """Looks as if it could be written at once, and cannot."""

    def __init__(self) -> None:
        self.first = 1
        self.second = set(range(100))
        self.third = [].append  # at which C gives up


def test_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was encoded in vain is not for 15 dumps of its class, and of a row that looks like it."""
    seen: list[Any] = []
    save_few = small.save_few
    monkeypatch.setattr(small, "save_few", lambda *args: seen.append(args[4]) or save_few(*args))
    for make in (_InVain, lambda: [[].append, "x".join]):
        expected = dill.dumps(make())
        with fastpickle.patched():
            for turn in range(18):
                assert dill.dumps(make()) == expected
                assert len(seen) == 1 + (turn >= 16), turn
        seen.clear()


class _Items(dict[str, Any]):
    """Gives its items by an iterator of which nothing is known."""

    def __reduce__(self) -> Any:
        return _Items, (), None, None, iter([*self.items()])


class _Row(list[Any]):
    """Gives its items by a generator."""

    def __reduce__(self) -> Any:
        return _Row, (), None, (x for x in [*self])


@pytest.mark.parametrize("make", [lambda x: _Items(a=x), lambda x: _Row([x]), lambda x: _Row([*"abcdefghijklmno", x])])
def test_as_deep_as_stock(make: Callable[[Any], Any]) -> None:
    """A plan that has begun takes no Python frame more for each level, whoever's iterator gives the items."""

    def is_too_deep(depth: int) -> bool:
        found: Any = 1
        for _ in range(depth):
            found = make(found)
        try:
            dill.dumps(found, 4)
        except RecursionError:
            return True
        return False

    found: list[Any] = []

    def run() -> None:
        deepest = bisect.bisect(range(400), False, key=is_too_deep) - 1
        with fastpickle.patched():
            found.extend((deepest, [is_too_deep(deepest) for _ in range(3)]))

    thread = threading.Thread(target=run)  # which begins with no Python frame
    thread.start()
    thread.join()
    assert found[0] > 200
    assert found[1] == [False] * 3
