"""dumps() without a pickler and without C: stock's bytes, and a pickler where one is needed."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from oracle import objects
from oracle.allowed import PYPY
from oracle.compare import dumped, stock_dumps

import fastpickle
from fastpickle._stdlib import Framer
from fastpickle.accelerator.offers import FEWEST
from fastpickle.at_once.unmade import Unmade

if PYPY:
    pytest.skip("a pickler is made there", allow_module_level=True)

if fastpickle.Pickler.dispatch[dict] is not pickle._Pickler.save_dict:  # type: ignore[attr-defined]  # private
    pytest.skip("dill has edited stock's table", allow_module_level=True)


def _deep(n: int) -> Any:
    obj: Any = []
    for i in range(n):
        obj = [obj, i]
    return obj


def _in_itself() -> Any:
    obj: Any = [1]
    obj.append((obj, 2))
    return obj


def _tuple_in_itself() -> Any:
    obj: Any = ([1],)
    obj[0].append(obj)
    return obj


def _shared() -> Any:
    text, part = "a text", ["x"]
    return [text, text, part, (part, text), {text: part}]


SMALL: dict[str, Callable[[], Any]] = {
    "a dict": lambda: {"task": "resize", "width": 640, "height": 480, "tags": ["a", "b"]},
    "one": lambda: [1],
    "atoms": lambda: [None, True, False, 0, 255, 256, 65_535, 65_536, -1, 1 << 31, 1 << 70, 1.5, "é", b"b", b"b" * 300],
    "texts": lambda: ["", "x" * 255, "x" * 256, "é" * 128],
    "tuples": lambda: ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
    "containers": lambda: [{}, [], (), {"a": {"b": [{}]}}],
    "the shortest that has a frame": lambda: ("",),
    "shared": _shared,
    "24 atoms": lambda: [*range(24)],
}
OTHERS: dict[str, Callable[[], Any]] = {
    "nothing": list,
    "an atom": lambda: 5,
    "a set": lambda: {1, 2},
    "a text that is long": lambda: ["x" * 5000],
    "a long int": lambda: [1 << 5000],
    "more": lambda: [*range(FEWEST - 1)],
    "many": lambda: [*range(1001)],
    "rows": lambda: [{"id": i, "x": [i, str(i)]} for i in range(30)],
    "an instance": lambda: {"a": 1, "b": objects.Plain()},
    "a reduce": lambda: [objects.Reduced(lambda self: (objects.Reduced, ()))],
    "surrogates": lambda: ["\udc80"],
    "deep": lambda: _deep(40),
    "deeper": lambda: _deep(100),
    "in itself": _in_itself,
    "a tuple in itself": _tuple_in_itself,
}


def dumps(unmade: Unmade, obj: Any, protocol: int = 4, cls: Any = fastpickle.Pickler) -> bytes:
    """Dump as `fastpickle.dumps` does, by a pickler where that has to be made."""
    pickled = unmade.at_once(obj, protocol)
    if not pickled:
        pickled = dumped(cls, obj, protocol)
    return pickled


@pytest.mark.parametrize("name", [*SMALL, *OTHERS])
def test_same_bytes(name: str) -> None:
    """Of all protocols, tried or not."""
    unmade = Unmade(fastpickle.Pickler)
    obj = {**SMALL, **OTHERS}[name]()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for _ in range(3):
            assert dumps(unmade, obj, protocol) == stock_dumps(obj, protocol)


def test_no_pickler_is_needed() -> None:
    """For what is small plain data; one is for the rest."""
    unmade = Unmade(fastpickle.Pickler)
    for make in SMALL.values():
        assert unmade.at_once(make(), 4) == stock_dumps(make(), 4)
    for make in OTHERS.values():
        assert unmade.at_once(make(), 4) is None


def test_not_tried_again_and_again() -> None:
    """Several in a row that are more are not tried; as soon as one is small, all are."""
    unmade = Unmade(fastpickle.Pickler)
    rows, small = OTHERS["rows"](), SMALL["a dict"]()
    for _ in range(100):
        assert unmade.at_once(rows, 4) is None
    skipped = 0
    for _ in range(64):
        pickled = unmade.at_once(small, 4)
        skipped += pickled is None
        assert pickled in (None, stock_dumps(small, 4))
    assert 1 <= skipped <= 63
    for _ in range(10):
        assert unmade.at_once(small, 4)
        assert unmade.at_once(OTHERS["nothing"](), 4) is None


_end_framing: Any = Framer.end_framing

CHANGES: dict[str, Callable[[Any, pytest.MonkeyPatch, list[Any]], Any]] = {
    "save": lambda cls, patch, seen: patch.setattr(
        cls, "save", lambda self, obj, *args: (seen.append(1), fastpickle.Pickler.save(self, obj, *args))[1]
    ),
    "dump": lambda cls, patch, seen: patch.setattr(
        cls, "dump", lambda self, obj: (seen.append(1), fastpickle.Pickler.dump(self, obj))[1]
    ),
    "persistent_id": lambda cls, patch, seen: patch.setattr(
        cls, "persistent_id", lambda self, obj: seen.append(1) or (obj if type(obj) is str else None)
    ),
    "reducer_override": lambda cls, patch, seen: patch.setattr(
        cls, "reducer_override", lambda self, obj: (seen.append(1), NotImplemented)[1], raising=False
    ),
    "__getattr__": lambda cls, patch, seen: patch.setattr(
        cls, "__getattr__", lambda self, name: (seen.append(1), object.__getattribute__(self, name))[1], raising=False
    ),
    "memoize": lambda cls, patch, seen: patch.setattr(cls, "memoize", lambda self, obj: seen.append(1)),
    "an entry": lambda cls, patch, seen: patch.setattr(
        cls, "dispatch", {**cls.dispatch, str: lambda self, obj: (seen.append(1), self.write(pickle.NONE))}
    ),
    "the class of the table": lambda cls, patch, seen: patch.setattr(cls, "dispatch", _table(cls.dispatch, seen)),
    "batches": lambda cls, patch, seen: (seen.append(1), patch.setattr(cls, "_BATCHSIZE", 2)),
    "a framer's method": lambda cls, patch, seen: patch.setattr(
        Framer, "end_framing", lambda self: (seen.append(1), _end_framing(self))[1]
    ),
    "the least frame": lambda cls, patch, seen: (seen.append(1), patch.setattr(Framer, "_FRAME_SIZE_MIN", 1000)),
    "the largest frame": lambda cls, patch, seen: (seen.append(1), patch.setattr(Framer, "_FRAME_SIZE_TARGET", 5)),
}


def _table(dispatch: dict[Any, Any], seen: list[Any]) -> Any:
    class Table(dict):  # type: ignore[type-arg]  # of anything
        def get(self, key: Any, default: Any = None) -> Any:
            seen.append(1)
            return super().get(key, default)

    return Table(dispatch)


@pytest.mark.parametrize("change", CHANGES)
def test_changes(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What of the class is changed counts from then on, and no longer when that is undone."""

    class P(fastpickle.Pickler):
        pass

    obj = SMALL["a dict"]()
    unmade = Unmade(P)
    assert dumps(unmade, obj, cls=P) == stock_dumps(obj, 4)
    seen: list[Any] = []
    with monkeypatch.context() as patch:
        CHANGES[change](P, patch, seen)
        for _ in range(3):
            got = dumps(unmade, obj, cls=P)
            file = io.BytesIO()
            P(file, 4).dump(obj)
            assert got == file.getvalue()
        assert seen
    assert dumps(unmade, obj, cls=P) == stock_dumps(obj, 4)
