"""A root that reduces itself: it gets a plan if its reduce gives much, and is saved hook by hook if not."""

from __future__ import annotations

import copyreg
import functools
import io
import sys
from collections.abc import Callable
from typing import Any

import pytest
from oracle import objects
from oracle.allowed import PYPY
from oracle.compare import ALL, Implementation, PythonFile, Run, check, stock_dumps
from oracle.engines import ORACLE, OURS, Pure, Stock
from oracle.parts import APartOf

import fastpickle
from fastpickle import graft, hooks
from fastpickle._stdlib import CPickler
from fastpickle.at_once import quick


class Pairs(tuple[Any, ...]):
    """What a reduce may give instead of a tuple."""


_shared: list[Any] = ["shared", ["x"]]
_newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
#: What the reduce of the root gives: few atoms, as many as are still few, one more, and what is none.
VALUES: dict[str, Callable[[Any], Any]] = {
    "no arguments": lambda self: (objects.make, ()),
    "an atom": lambda self: (objects.make, (1,)),
    "no state": lambda self: (objects.make, ("text", 2.5, b"bytes"), None),
    "16 arguments": lambda self: (objects.make, (*range(16),)),
    "17 arguments": lambda self: (objects.make, (*range(17),)),
    "a state": lambda self: (objects.make, (), {"a": 1, "b": "text"}),
    "a state of 8": lambda self: (objects.make, (), {f"name {i}": i for i in range(8)}),
    "a state of 9": lambda self: (objects.make, (), {f"name {i}": i for i in range(9)}),
    "16 of both": lambda self: (objects.make, (*range(10),), {f"name {i}": i for i in range(3)}),
    "17 of both": lambda self: (objects.make, (*range(11),), {f"name {i}": i for i in range(3)}),
    "a state of one": lambda self: (objects.make, (), "text"),
    "a state of objects": lambda self: (objects.make, (), {"a": objects.Plain(b=[1]), objects.Hashed(2): 1}),
    "a key that is none": lambda self: (objects.make, (), {objects.Hashed(2): 1, (3, 4): 5}),
    "a state in a list": lambda self: (objects.make, (), [1, "text"]),
    "itself": lambda self: (objects.make, (1,), {"self": self, "list": [self]}),
    "a method": lambda self: (objects.Plain(a=[1, 2]).__init__, ()),
    "a partial": lambda self: (functools.partial(objects.make, [1, 2]), ()),
    "its class": lambda self: (objects.make, (type(self),)),
    "rows": lambda self: (objects.make, ([{"id": i, "name": f"name {i}"} for i in range(1_200)],)),
    "instances": lambda self: (objects.make, ([objects.Plain(a=i) for i in range(60)],), {"a": {1, 2, 3}}),
    "shared": lambda self: (objects.make, (_shared, [_shared]), {"again": _shared}),
    "frames": lambda self: (objects.make, ("x" * 70_000, "y" * 70_000), {"a": [*range(30_000)]}),
    "items": lambda self: (objects.make, (), None, iter([1, [2], 3])),
    "pairs": lambda self: (objects.make, (), None, None, iter({"a": 1, "b": [2]}.items())),
    "a setter": lambda self: (objects.make, (), 1, None, None, objects.set_state),
    "a new object": lambda self: (_newobj, (objects.Plain,), {"a": 1}),
    "a new object of another": lambda self: (_newobj, (objects.Plain, 1), {"a": [1]}),
    "a name": lambda self: "function",
    "no such name": lambda self: "nothing",
    "a lambda": lambda self: (objects.make, (1,), lambda: 0),
    "a lambda in a list": lambda self: (objects.make, ([1, lambda: 0],)),
    "a lambda to call": lambda self: (lambda: 0, ()),
    "a subclass of tuple": lambda self: Pairs((objects.make, (1,))),
    "arguments in a subclass": lambda self: (objects.make, Pairs((1,))),
    "arguments in a list": lambda self: (objects.make, [1]),
    "nothing to call": lambda self: (1, (2,)),
    "a list": lambda self: [objects.make, ()],
    "one": lambda self: (objects.make,),
    "seven": lambda self: (objects.make, (), None, None, None, None, None),
    "surrogates": lambda self: (objects.make, ("\udc80", "text" * 30)),
}


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", VALUES)
def test_value(name: str, ours: Implementation) -> None:
    """The bytes, the writes, the error with its notes and the memo are stock's; a second dump knows the first one."""

    def steps(run: Run) -> None:
        try:
            run.pickler.dump(objects.Reduced(VALUES[name]))
        finally:
            run.pickler.dump([_shared, "text", [*range(60)]])

    check(ORACLE, ours, steps, protocols=ALL)
    check(ORACLE, ours, steps, protocols=(2, 4), file=lambda run: PythonFile())


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", ["a state", "rows", "instances", "itself", "frames"])
def test_reduce_that_uses_its_pickler(name: str, ours: Implementation, a_part_of: APartOf) -> None:
    """It dumps, and saves, and gives its pickler a hook, before it gives what is few or much."""

    def dumps(run: Run) -> None:
        run.pickler.dump([1, [2], {"a": [*range(40)]}])

    def saves(run: Run) -> None:
        run.pickler.save({"a": [*range(40)]})

    def listens(run: Run) -> None:
        run.pickler.persistent_id = lambda obj: run.record("persistent_id", obj)

    def clears(run: Run) -> None:
        run.pickler.clear_memo()
        run.pickler.memo = {}

    def frames(run: Run) -> None:
        run.pickler.framer = type(run.pickler.framer)(run.pickler.framer.file_write)

    def inits(run: Run) -> None:
        run.pickler.__init__(run.file, 2)

    def begins(run: Run) -> None:
        run.pickler.framer.start_framing()

    for act in a_part_of((dumps, saves, listens, clears, frames, inits, begins)):

        def steps(run: Run, act: Callable[[Run], None] = act) -> None:
            acted: list[int] = []

            def value(self: Any) -> Any:
                if not acted:
                    acted.append(1)
                    act(run)
                return VALUES[name](self)

            run.pickler.dump(objects.Reduced(value))
            run.pickler.dump([1, "text"])

        check(ORACLE, ours, steps, protocols=(0, 2, 4, 5))
        check(ORACLE, ours, steps, protocols=(0, 2, 4), file=lambda run: PythonFile())


@pytest.mark.skipif(PYPY, reason="its pickler is another one (fastpickle.pypy)")
@pytest.mark.parametrize("name", VALUES)
def test_plan_for_what_is_much(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan is asked for where there is little to save, and none is left."""
    asked = []

    def plan(of: Any) -> Any:
        asked.append(of)
        return found(of)

    found = hooks.plan
    little = {
        "no arguments", "an atom", "no state", "16 arguments", "a state", "a state of 8", "16 of both",
        "a state of one", "a new object", "a name", "surrogates", "17 arguments", "a state of 9", "17 of both",
        "a state of objects", "a key that is none", "a state in a list", "itself", "a method", "a partial",
        "its class", "shared", "items", "pairs", "a setter", "a subclass of tuple", "arguments in a subclass",
    }  # fmt: skip
    own = Pure(io.BytesIO(), 4)
    monkeypatch.setattr(hooks, "plan", plan)
    try:
        own.dump(objects.Reduced(VALUES[name]))
    except Exception:
        return
    assert (not asked) is (name in little)
    assert not [key for key in vars(own) if key.startswith("_fastpickle")]


@pytest.mark.skipif(PYPY or CPickler is None, reason="there is no C pickler to ask")
def test_c_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would refuse the root at once; what is in it, it may write."""
    offered = []

    def written_by(pickler: Any, plan: Any, memo: Any, known: Any, obj: Any, *args: Any, **how: Any) -> Any:
        offered.append(type(obj))
        return found(pickler, plan, memo, known, obj, *args, **how)

    found = graft.written_by
    monkeypatch.setattr(graft, "written_by", written_by)
    answers = []
    at_once = quick.Quick.at_once
    monkeypatch.setattr(quick.Quick, "at_once", lambda *args: (answers.append(at_once(*args)), answers[-1])[1])
    for name, of in (("a state", []), ("rows", [list])):
        root = objects.Reduced(VALUES[name])
        assert fastpickle.dumps(root, 4) == stock_dumps(root)
        assert offered == of
    assert answers == [None, None]


class Asked:
    """An iterator that counts how often it is asked."""

    def __init__(self, run: Run, items: list[Any]) -> None:
        self.run = run
        self.items = items

    def __iter__(self) -> Any:
        self.run.record("iter", None)
        return self

    def __next__(self) -> Any:
        self.run.record("next", None)
        if not self.items:
            raise StopIteration
        return self.items.pop(0)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("n", [0, 1, 2, 999, 1000, 1001])
def test_iterator_behind_its_end(n: int, ours: Implementation) -> None:
    """It is asked as often as by stock, which from 3.14 on asks once more where the last batch is not full."""
    for is_first in True, False:
        for function in objects.make, _newobj:

            def steps(run: Run, is_first: bool = is_first, function: Any = function) -> None:
                args = (objects.List,) if function is _newobj else ()
                items = Asked(run, [*range(n)])
                pairs = Asked(run, [(i, [i]) for i in range(n)])
                run.pickler.dump([objects.Reduced((function, args, None, *((items,) if is_first else (None, pairs))))])

            check(ORACLE, ours, steps, protocols=(0, 1, 2, 4))


class Chained:
    """Gives the next one in an unusual way, so that stock's save_reduce() saves what it gave."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __reduce__(self) -> Any:
        return (__newobj__, (Chained, self.held)) if self.held else (objects.make, ())


def __newobj__(*args: Any) -> Any:
    return args


@pytest.mark.skipif(PYPY, reason="its frames are others")
def test_deep() -> None:
    """A chain of unusual reduces may be as deep as for stock."""

    def deepest(base: Any) -> int:
        for n in range(1, 300):
            obj: Any = None
            for _ in range(n):
                obj = Chained(obj)
            try:
                base(io.BytesIO(), 1).dump(obj)
            except RecursionError:
                return n
        return 300

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        stock, ours = deepest(Stock), deepest(Pure)
    finally:
        sys.setrecursionlimit(limit)
    assert ours >= stock
