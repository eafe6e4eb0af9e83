"""multiprocess's pickler under install(): the bytes that it always sent, by the way that is for dill.dumps."""

from __future__ import annotations

import copyreg
import functools
import io
import operator
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oracle import objects

import fastpickle
from fastpickle._stdlib import CPickler

reduction: Any = pytest.importorskip("multiprocess.reduction")
quick: Any = pytest.importorskip("fastpickle.backends._multiprocess")
Forking: Any = reduction.ForkingPickler


def sent(obj: Any, *args: Any, cls: Any = None, **kwds: Any) -> bytes:
    return bytes((Forking if cls is None else cls).dumps(obj, *args, **kwds))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Note what came of each dump that was tried without filling the pickler."""
    found: list[bool] = []
    write = quick.Quick.write

    def noted(self: Any, pickler: Any, obj: Any) -> bool:
        found.append(write(self, pickler, obj))
        return found[-1]

    monkeypatch.setattr(quick.Quick, "write", noted)
    yield found


class _Point:
    """A class that dill saves by value, or by reference: this one can be imported."""

    def __init__(self, x: int) -> None:
        self.x = x


def _reduced(x: _Point) -> Any:
    return _Point, (x.x,)


def _doubled(x: _Point) -> Any:
    return _Point, (2 * x.x,)


OBJS: dict[str, Callable[[], Any]] = {
    "result": lambda: (3, 0, (True, 1.5)),
    "result of nothing": lambda: (3, 0, (True, None)),
    "failed": lambda: (3, 0, (False, ValueError("no"))),
    "records": lambda: (3, 0, (True, [{"id": i, "tags": ["a", f"{i}"]} for i in range(300)])),
    "large": lambda: (1, 2, (True, ["x" * 70_000, b"y" * 70_000, [*range(1001)]])),
    "task": lambda: (0, 1, len, ((1,),), {}),
    "task of map": lambda: (0, 1, functools.reduce, ((operator.add, ([1, 2, 3],)),), {}),
    "instances": lambda: [_Point(i) for i in range(60)],
    "few instances": lambda: [1, [_Point(2)], {"a": _Point(3)}],
    "data": lambda: [objects.Data(i) for i in range(30)],
    "lambda": lambda: (0, 1, lambda x: x + 1, ((1,),), {}),
    "method": lambda: [objects.Data(1).__eq__, [].append],
    "dict with a name": lambda: {"__name__": "odd", "a": 1},
    "shared": lambda: [x := ["x"], x, {"x": x}],
    "cyclic": lambda: (x := [1], x.append({"x": x}))[0],
    "none": lambda: None,
    "empty": lambda: (),
}


@pytest.mark.parametrize("name", OBJS)
def test_bytes(name: str) -> None:
    """What is sent is what was sent, the first time and the next."""
    for protocol in (None, 0, 1, 2, 3, 4, 5):
        obj = OBJS[name]()
        try:
            sent(obj, protocol)  # dill remembers some things
            expected = sent(obj, protocol)
        except Exception as exc:  # dill 0.4.1 saves no function on 3.15
            with fastpickle.patched(), pytest.raises(type(exc)):
                sent(obj, protocol)
            continue
        with fastpickle.patched():
            for _ in range(3):
                assert sent(obj, protocol) == expected
                assert sent(obj, protocol, byref=True) == sent(obj, protocol, byref=True)


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler, or it is switched off")
@pytest.mark.parametrize("name", ["result", "records", "large", "task", "shared"])
def test_without_a_pickler(name: str, written: list[bool]) -> None:
    """Plain data is written for a pickler that is not filled; for others than multiprocess's own it is not tried."""

    class Own(Forking):  # type: ignore[misc]  # multiprocess has no types
        pass

    obj = OBJS[name]()
    with fastpickle.patched():
        data = sent(obj)
        assert written == [True]
        assert sent(obj, cls=Own) == data
        pickler = Forking(file := io.BytesIO())
        pickler.dump(obj)  # which somebody may look at
        assert file.getvalue() == data
        assert written == [True]
        assert pickler.memo or name == "task"
    assert pickle.loads(data) == obj or name == "task"


@pytest.mark.parametrize("many", [1, 60])
def test_registered_type(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reduce that is registered, changed and taken away between two dumps is what counts, here and in copyreg."""
    monkeypatch.setattr(Forking, "_extra_reducers", {**Forking._extra_reducers})
    obj = (1, [_Point(i) for i in range(1, many + 1)])

    def outcomes() -> list[bytes]:
        found = [sent(obj)]
        for reduce in _reduced, _doubled:
            Forking.register(_Point, reduce)
            found += sent(obj), sent([obj, obj])
        del Forking._extra_reducers[_Point]
        found.append(sent(obj))
        copyreg.pickle(_Point, _doubled)
        found.append(sent(obj))
        del copyreg.dispatch_table[_Point]
        return [*found, sent(obj)]

    expected = outcomes()
    with fastpickle.patched():
        assert outcomes() == expected
        assert outcomes() == expected
    assert expected[1] != expected[3]


def test_hook_on_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody puts on multiprocess's class is honoured from the next dump on."""
    obj = (3, 0, (True, ["text", 5]))

    def outcomes() -> list[Any]:
        found: list[Any] = [sent(obj)]
        asked: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Forking, "persistent_id", lambda self, x: "it" if x == "text" else None)
            found.append(sent(obj))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Forking, "reducer_override", lambda self, x: NotImplemented, raising=False)
            found.append(sent(obj))
        with pytest.MonkeyPatch.context() as patch:
            init = Forking.__init__
            patch.setattr(Forking, "__init__", lambda self, *args, **kwds: asked.append(len(args)) or init(self, *args))
            found.append(sent(obj))
        with pytest.MonkeyPatch.context() as patch:
            dumps = Forking.__dict__["dumps"].__func__
            patch.setattr(Forking, "dumps", classmethod(lambda cls, obj: asked.append("dumps") or dumps(cls, [obj])))
            found.append(sent(obj))
        return [*found, asked, sent(obj)]

    expected = outcomes()
    with fastpickle.patched():
        assert outcomes() == expected


def test_threads() -> None:
    """Several threads may send at once."""
    objs = [OBJS[name]() for name in ("result", "records", "task", "instances", "shared")]
    expected = [sent(obj) for obj in objs]
    wrong: list[int] = []

    def send(start: int) -> None:
        for i in range(start, start + 300):
            if sent(objs[i % len(objs)]) != expected[i % len(objs)]:
                wrong.append(i)

    with fastpickle.patched():
        threads = [threading.Thread(target=send, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
