"""Overrides written for older Pythons, against the same overrides as the running Python wants them on stock."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from oracle import objects, samples
from oracle.allowed import PYPY
from oracle.compare import ALL, describe_error

import fastpickle
from fastpickle._stdlib import TELLS_WHOSE

_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]

#: The classes that are subclassed, and what is in place while they are used.
BASES: dict[str, tuple[Any, Callable[[], Any]]] = {
    "ours": (fastpickle.Pickler, nullcontext),
    "installed": (_Stock, fastpickle.patched),
}


class PersistentList(list):
    """Has list items and dict items in its reduce, and a persistent id of its own."""

    def __reduce__(self) -> Any:
        return PersistentList, (), None, iter([*self]), iter({"b": 1, "a": 2}.items())


DATA = [
    {},
    [],
    {"b": 1, "a": "pid"},
    ["pid", ("pid", {"pid": "pid"})],
    "pid",
    5,
    [{"b": i, "a": [i] * 3} for i in range(1100)],
    {i: str(i) for i in range(1100, 0, -1)},
    OrderedDict(b=1, a=2),
    PersistentList(["pid", 2]),
    samples.nested(),
]


def older(base: Any) -> Any:
    class Older(base):
        def save(self, obj):
            base.save(self, obj)

        def persistent_id(self, obj):
            return "pid" if isinstance(obj, str) and obj == "pid" else None

        def _batch_appends(self, items):
            super()._batch_appends(reversed([*items]))

        def _batch_setitems(self, items):
            base._batch_setitems(self, iter(sorted(items, key=str)))

    return Older


def present(base: Any) -> Any:
    class Present(base):
        def save(self, obj, save_persistent_id=True):
            base.save(self, obj, save_persistent_id)

        def persistent_id(self, obj):
            return "pid" if isinstance(obj, str) and obj == "pid" else None

        def _batch_appends(self, items, *args):
            super()._batch_appends(reversed([*items]), *args)

        def _batch_setitems(self, items, *args):
            base._batch_setitems(self, iter(sorted(items, key=str)), *args)

    return Present


def dumped(cls: Any, obj: Any, protocol: int) -> bytes:
    file = io.BytesIO()
    pickler = cls(file, protocol)
    before = {*vars(pickler)}
    pickler.dump(obj)
    assert pickler.memo is vars(pickler)["memo"]  # it may have been left with C
    assert {*vars(pickler)} == before
    return file.getvalue()


#: On PyPy nothing is put in place of stock's methods.
pytestmark = pytest.mark.skipif(PYPY, reason="stock does all the work there")


@pytest.fixture(params=BASES)
def base(request: pytest.FixtureRequest) -> Iterator[Any]:
    cls, context = BASES[request.param]
    with context():
        yield cls


@pytest.mark.parametrize("protocol", ALL)
def test_as_the_present_ones(protocol: int, base: Any) -> None:
    """Older overrides give what present ones give, for items, persistent ids, and items of a reduce."""
    cls = older(base)
    for obj in DATA:
        with fastpickle.patched() if base is _Stock else nullcontext():
            got = dumped(cls, obj, protocol)
        assert got == dumped(present(base), obj, protocol)
    del cls


@pytest.mark.parametrize("protocol", ALL)
def test_present_ones_as_on_stock(protocol: int) -> None:
    """Present overrides give on our base what they give on stock."""
    expected = [dumped(present(_Stock), obj, protocol) for obj in DATA]
    assert [dumped(present(fastpickle.Pickler), obj, protocol) for obj in DATA] == expected
    with fastpickle.patched():
        assert [dumped(present(_Stock), obj, protocol) for obj in DATA] == expected


@pytest.mark.skipif(not TELLS_WHOSE, reason="stock does not tell there whose items it saves")
def test_present_ones_see_whose_items(base: Any) -> None:
    """An override with the present signature is called with the items and their owner, and no adapter is there."""
    seen: list[Any] = []

    class Present(base):
        def _batch_appends(self, items, obj):
            assert "_batch_appends" not in vars(self)
            seen.append(obj)
            super()._batch_appends(items, obj)

        def _batch_setitems(self, items, obj):
            assert "_batch_setitems" not in vars(self)
            seen.append(obj)
            super()._batch_setitems(items, obj=obj)

    data = [1, {"a": [2, 3], "b": {}}]
    dumped(Present, data, 4)
    assert [*map(id, seen)] == [*map(id, (data, data[1], data[1]["a"], data[1]["b"]))]


@pytest.mark.skipif(not TELLS_WHOSE, reason="stock adds no notes there")
def test_present_ones_notes() -> None:
    """Where an exception passes through present overrides its notes are stock's; older ones speak of a list or dict."""

    def notes(cls: Any, obj: Any) -> Any:
        with pytest.raises(LookupError) as caught:
            dumped(cls, obj, 4)
        return describe_error(caught.value)

    def fail(self: Any) -> Any:
        raise LookupError("no")

    for obj in ([1, objects.Reduced(fail)], {"k": objects.Reduced(fail)}, PersistentList([objects.Reduced(fail)])):
        expected = notes(present(_Stock), obj)
        assert notes(present(fastpickle.Pickler), obj) == expected
        with fastpickle.patched():
            assert notes(present(_Stock), obj) == expected
        if type(obj) is not PersistentList:
            assert notes(older(fastpickle.Pickler), obj) == expected


def test_left_as_it_was(base: Any) -> None:
    """After an exception the instance has no attribute that it had not before, and can be used again."""

    def fail(self: Any) -> Any:
        raise LookupError

    file = io.BytesIO()
    pickler = older(base)(file, 4)
    before = {*vars(pickler)}
    for obj in ([objects.Reduced(fail)], {"a": [objects.Reduced(fail)]}, ["pid", objects.Reduced(fail)]):
        with pytest.raises(LookupError):
            pickler.dump(obj)
        assert pickler.memo is vars(pickler)["memo"]  # it may have been left with C
    assert {*vars(pickler)} == before
    pickler.dump([1, "pid"])


def test_own_attribute_is_kept(base: Any) -> None:
    """A method that somebody has put on the instance is called, and stays."""
    pickler = older(base)(io.BytesIO(), 4)
    calls = []
    own = pickler._batch_appends = lambda items, *args: calls.append([*items])
    pickler.dump([1, 2])
    assert calls == [[1, 2]]
    assert pickler._batch_appends is own


def test_persistent_id_of_a_persistent_id(base: Any) -> None:
    """A persistent id is not replaced by another one, but what is in it is; as with a present `save` on stock."""

    def make(base: Any, save: Any) -> Any:
        def persistent_id(self: Any, obj: Any) -> Any:
            if type(obj) is int:
                return ("number", (obj + 1.0, "inner"))
            return ("text", 7.0) if obj == "inner" else ("again",) if obj == ("number", 3.0) else None

        return type("P", (base,), {"save": save, "persistent_id": persistent_id})

    def of_now(self: Any, obj: Any, save_persistent_id: bool = True) -> None:
        _Stock.save(self, obj, save_persistent_id)

    def of_old(self: Any, obj: Any) -> None:
        base.save(self, obj)

    for protocol in ALL[1:]:
        for obj in ([2, "inner", 2], 2, "inner"):
            expected = dumped(make(_Stock, of_now), obj, protocol)
            assert dumped(make(base, of_old), obj, protocol) == expected


def test_persistent_id_beside_an_older_override(base: Any) -> None:
    """A class whose `save` is nobody's, with a `persistent_id`, by which all goes hook by hook from the beginning."""

    class Older(base):
        def persistent_id(self, obj):
            return None

        def _batch_setitems(self, items):
            super()._batch_setitems(sorted(items))

    class Present(_Stock):
        def _batch_setitems(self, items, *obj):
            super()._batch_setitems(sorted(items), *obj)

    for obj in ({"b": 1, "a": [2]}, [{"b": 1, "a": {"d": 2, "c": 3}}], ({"b": 1, "a": 2}, objects.Plain(b=1, a=2))):
        for protocol in ALL:
            assert dumped(Older, obj, protocol) == dumped(Present, obj, protocol)


def test_called_by_its_older_arguments(base: Any) -> None:
    """A `save_dict` of a class's own that calls `_batch_setitems(items)`, as older Pythons' did."""

    class Older(base):
        dispatch = base.dispatch.copy()

        def save_dict(self, obj):
            self.write(pickle.EMPTY_DICT)
            self.memoize(obj)
            self._batch_setitems(obj.items())

        dispatch[dict] = save_dict

    data = [{"a": 1}, {"b": [2], "c": {}}]
    assert dumped(Older, data, 2) == dumped(_Stock, data, 2)


@pytest.mark.skipif(not TELLS_WHOSE, reason="stock takes them there")
def test_stock_refuses() -> None:
    """What this is for: stock raises TypeError."""
    with pytest.raises(TypeError):
        dumped(older(_Stock), [1], 4)
    with pytest.raises(TypeError):
        dumped(older(_Stock), {"a": 1}, 4)


def test_on_dill(base: Any) -> None:
    """A pickler on dill's, whose function for dicts calls stock's, with an older override: datasets up to 4.3."""
    dill = pytest.importorskip("dill", reason="dill is not installed")
    dill.extend(False)
    if base is not _Stock:
        dill = pytest.importorskip("fastpickle.backends.dill", reason="dill is not installed")

    class Older(dill.Pickler):
        def _batch_setitems(self, items):
            super()._batch_setitems(sorted(items))

    assert dumped(Older, [{"b": 1, "a": 2}], 4) == dumped(_Stock, [{"a": 2, "b": 1}], 4)
