"""Tasks with much in them: the function and what is little before it at once, the rest by the loop, against stock."""

from __future__ import annotations

import io
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from oracle import objects
from oracle.allowed import DILL_PICKLES_CODE, PYPY
from oracle.compare import ALL, Implementation, Run, check, dump_where_it_fails
from oracle.dills import ORACLE, backend, both, dill

import fastpickle
from fastpickle.accelerator import lazymemo
from fastpickle.at_once import small, tasks
from fastpickle.objects.last import last

if PYPY:
    pytest.skip("nothing is written at once there", allow_module_level=True)
if not DILL_PICKLES_CODE:
    pytest.skip("dill pickles no code objects there", allow_module_level=True)


class _File(io.BufferedRandom):
    """A real file, that tells in the end what is in it."""

    def __init__(self) -> None:
        descriptor, path = tempfile.mkstemp()
        pathlib.Path(path).unlink()
        super().__init__(io.FileIO(descriptor, "w+"))

    def getvalue(self) -> bytes:
        with self:
            self.seek(0)
            return self.read()


def _closure(value: Any = 3) -> Any:
    return lambda x: (x, value)


def _with_annotations() -> Any:
    def scaled(value: int, by: list[int] | None = None) -> int:
        return value * (by or [1])[0]

    return scaled


def _in_itself() -> Any:
    data: list[Any] = [*range(60)]
    task = _closure(), data, 1
    data.append(task)
    return task


def _function_in_data() -> Any:
    f = _closure()
    return f, [f, *range(60), f], f


def _seen_deeper() -> Any:
    """Return a task with a tuple in it that looks brief where it comes first, far inside."""
    part = (1, [_closure(_closure())])
    return _closure(), [[[[part]]]], part


def _shared() -> Any:
    text = "a text that is shared"
    part = [text, 1]
    return (_closure(text), part, [part, text] * 40, part, {text: text}), [text] * 60


_main = dill._dill._main_module

MUCH: dict[str, Callable[[], Any]] = {
    "ints": lambda: (_closure(), [*range(300)]),
    "1,001 ints": lambda: (_closure(), [*range(1001)]),
    "small ints": lambda: (_closure(), [5] * 40),
    "floats": lambda: (_closure(), [i / 3 for i in range(300)]),
    "texts": lambda: (_closure(), [f"text {i}" for i in range(400)]),
    "texts of the function": lambda: (f := _closure(), [*f.__code__.co_varnames, f.__module__, "<lambda>"] * 30),
    "a long text": lambda: (_closure(), "x" * 5000, 1),
    "texts of 64 KiB": lambda: (_closure(), ["x" * 65536, "y" * 65500], [*range(300)]),
    "a frame of texts": lambda: (_closure(), ["x" * 1000 for _ in range(130)], "end"),
    "records": lambda: (_closure(), [{"id": i, "tags": ["a", f"t{i}"]} for i in range(100)]),
    "a dict": lambda: (_closure(), {f"k{i}": [i] for i in range(100)}, None),
    "a tuple": lambda: (_closure(), (*range(300),)),
    "tuples": lambda: (_closure(), [(i, str(i)) for i in range(100)]),
    "a set": lambda: (_closure(), {*range(60)}, frozenset("abcdef")),
    "bytearray": lambda: (_closure(), bytearray(300), b"b" * 300),
    "keywords": lambda: (_closure(), (1, [*range(60)], 2), {"x": [*range(50)], "y": None}),
    "four": lambda: (0, 1, _closure(), [*range(60)]),
    "a pool's": lambda: (0, 1, _closure(), ((_closure(4), ([*range(60)],), 5),), {"k": 1}),
    "a pool's map": lambda: (0, 1, objects.function, ((_closure(), ((1, [*range(60)]), 2)),), {}),
    "levels": lambda: (1, (2, _closure(), (3, ([*range(60)], 4), 5), 6), 7),
    "many levels": lambda: (1, (2, (3, _closure(), (4, (5, ([*range(60)], 6), 7), 8), 9), 10), 11),
    "data first": lambda: ([*range(60)], _closure()),
    "data before, too": lambda: ("text", [1, 2], _closure(), [*range(60)]),
    "a list": lambda: [_closure(), [*range(60)]],
    "by name": lambda: (objects.function, [*range(60)]),
    "two functions": lambda: (_closure(), _closure("b"), [*range(60)], _closure()),
    "annotated": lambda: (_with_annotations(), [*range(60)]),
    "instances": lambda: (_closure(), [objects.Plain() for _ in range(60)]),
    "an instance": lambda: (_closure(), objects.Plain(), [*range(60)]),
    "reduces": lambda: (_closure(), [objects.Viaduct([i]) for i in range(20)], 1),
    "a class": lambda: (_closure(), type("Local", (), {"x": 1}), [*range(60)]),
    "a module": lambda: (_closure(), sys, [*range(60)]),
    "a module's dict": lambda: (_closure(), vars(sys), [*range(60)]),
    "the dict of __main__": lambda: (_closure(), vars(_main), [*range(60)]),
    "as long as that": lambda: (_closure(), {f"n{i}": i for i in range(len(vars(_main)))}),
    "names": lambda: (_closure(), [{"__name__": "sys"}] * 30, {"__name__": "oracle.objects"}),
    "data in cells": lambda: (_closure([*range(60)]), [*range(60)]),
    "a function in a cell": lambda: (_closure(_closure()), [*range(60)]),
    "in itself": _in_itself,
    "the function in the data": _function_in_data,
    "shared": _shared,
    "seen deeper": _seen_deeper,
    "nothing to it": lambda: (_closure(), [], {}, (), [*range(60)], ()),
    "surrogates": lambda: (_closure(), ["\udc80"] * 60, [*range(60)]),
    "what cannot be pickled": lambda: (_closure(), [*range(60)], [(i for i in ())]),
    "deep": lambda: (_closure(), _deep(200)),
}


def _deep(n: int) -> Any:
    obj: Any = [*range(60)]
    for i in range(n):
        obj = [obj, i]
    return obj


@both
@pytest.mark.parametrize("name", MUCH)
def test_much(name: str, ours: Implementation) -> None:
    """By all protocols, twice, since the like of what failed is not tried again; and once more by the same pickler."""
    task = MUCH[name]()

    def steps(run: Run) -> None:
        last.forget()
        run.pickler.dump(task)
        run.pickler.dump(task)
        run.pickler.clear_memo()
        run.pickler.dump(task)

    fails = True if name == "what cannot be pickled" else None
    for file in (lambda run: io.BytesIO(), lambda run: _File(), None):
        check(ORACLE, ours, steps, protocols=ALL, fails=fails, file=file)


@pytest.mark.parametrize("name", MUCH)
def test_dumps(name: str) -> None:
    """`dill.dumps`, which may ask C first, with both of its settings."""
    if name == "what cannot be pickled":
        return
    task = MUCH[name]()
    for protocol in (2, 4, 5):
        for recurse in (False, True):
            expected = dill.dumps(task, protocol, recurse=recurse)
            for _ in range(2):
                with fastpickle.patched():
                    assert dill.dumps(task, protocol, recurse=recurse) == expected
                assert backend.dumps(task, protocol, recurse=recurse) == expected


@both
@pytest.mark.parametrize("size", [1, 2, 200, 500, 70_000])
@pytest.mark.parametrize("name", ["ints", "texts", "a frame of texts", "texts of 64 KiB", "a pool's", "levels"])
def test_failed_writes(name: str, size: int, ours: Implementation) -> None:
    """The error, the memo and the frame are stock's, wherever the file fails."""
    task = MUCH[name]()

    def steps(run: Run) -> None:
        last.forget()
        dump_where_it_fails(run, lambda: task, size)

    check(ORACLE, ours, steps, protocols=(4,))


@both
def test_what_sees_the_function(ours: Implementation) -> None:
    """A reduce in the data sees what stock would have memoized and written by then, and may change the pickler."""

    def looks(run: Run) -> Any:
        def look(self: Any) -> Any:
            pickler = run.pickler
            run.record("memo", [type(x).__name__ for _, x in pickler.memo.values()])
            run.record("frame", pickler.framer.current_frame.getvalue() if pickler.framer.current_frame else None)
            return objects.Reduced, ()

        return look

    def clears(run: Run) -> Any:
        def clear(self: Any) -> Any:
            run.pickler.clear_memo()
            return objects.Reduced, ()

        return clear

    def hooks(run: Run) -> Any:
        def hook(self: Any) -> Any:
            run.pickler.persistent_id = lambda obj: run.record("asked", type(obj).__name__)
            return objects.Reduced, ()

        return hook

    def fails(run: Run) -> Any:
        return lambda self: 1 / 0

    for kind in (looks, clears, hooks, fails):
        for place in (lambda x: (x, [*range(60)]), lambda x: ([*range(60)], x, 1), lambda x: ([*range(60), x] * 2,)):

            def steps(run: Run, kind: Any = kind, place: Any = place) -> None:
                last.forget()
                run.pickler.dump((_closure(), *place(objects.Reduced(kind(run)))))

            check(
                ORACLE,
                ours,
                steps,
                protocols=(2, 4),
                fails=True if kind is fails else None,
                file=lambda run: io.BytesIO(),
            )


@both
def test_begins_with_the_function(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is this way that they go."""
    found: list[bool] = []
    save = small.save_task
    monkeypatch.setattr(small, "save_task", lambda *args: (x := save(*args), found.append(x))[0])
    for name, expected in (
        ("ints", [True]),
        ("records", [True]),
        ("keywords", [True]),
        ("a pool's", [True]),
        ("levels", [True]),
        ("reduces", [True]),
        ("data first", [False]),
        ("a list", []),
        ("by name", []),
    ):
        found.clear()
        last.forget()
        task = MUCH[name]()
        with ours.context():
            ours.base(io.BytesIO(), 4).dump(task)
        assert found == expected, name


@both
def test_what_fails_is_not_tried_soon(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor for much longer than that."""
    tried: list[int] = []
    encode = tasks._encode_little
    monkeypatch.setattr(tasks, "_encode_little", lambda *args: (tried.append(1), encode(*args))[1])
    task = MUCH["data first"]()
    last.forget()
    with ours.context():
        for _ in range(40):
            ours.base(io.BytesIO(), 4).dump(task)
    assert 2 <= len(tried) <= 4


@pytest.mark.skipif(fastpickle.pickler.CPickler is None, reason="there is no C pickler to have it")
def test_memo_is_left_with_c() -> None:
    """As where a plan begins with the tuple: to fetch it would take as long as all the rest."""
    task = MUCH["texts"]()
    with fastpickle.patched():
        pickler = dill.Pickler(io.BytesIO(), 4)
        last.forget()
        pickler.dump(task)
        assert "_fastpickle_memo" in vars(pickler)
        kept = [type(x) for _, x in pickler.memo.values()]
    stock = dill.Pickler(io.BytesIO(), 4)
    stock.dump(task)
    assert kept == [type(x) for _, x in stock.memo.values()]


@pytest.mark.skipif(fastpickle.pickler.CPickler is None, reason="there is no C pickler to have it")
@pytest.mark.parametrize("first", ["import fastpickle, dill", "import dill, fastpickle"])
def test_ways_are_counted_whatever_was_imported_first(first: str) -> None:
    """In each of the ways a memo may be left with C: dill edits stock's table, in which one of them was not found.

    A way that is missed leaves a memo that is in no order, and then each dump asks for its own.
    """
    ways = {
        lazymemo.AT_ONCE, lazymemo.AT_ROOT, lazymemo.BEHIND_ALL, lazymemo.BEHIND_FEW, lazymemo.IN_BATCHES,
        lazymemo.IN_CELL, "end",
    }  # fmt: skip
    text = (
        f"{first}; from fastpickle.accelerator import cpickler, lazymemo; assert not cpickler.unordered; "
        "print(*sorted(lazymemo._references), sep=',')"
    )
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60)
    assert {*result.stdout.strip().split(",")} == ways
