"""What a function that is not ours saves of its object: containers by a plan of their own, and short tuples at once."""

from __future__ import annotations

import builtins
import io
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from oracle import objects
from oracle.allowed import PYPY
from oracle.compare import ALL, Implementation, PythonFile, Run, check, stock_dumps
from oracle.engines import ORACLE, OURS, Pure, Stock

import fastpickle
from fastpickle import doubts, way
from fastpickle._stdlib import for_batch
from fastpickle.engine import loop, reduce
from fastpickle.objects.last import last


class Part:
    """Is saved by a dispatch entry."""

    def __init__(self, *values: Callable[[], Any]) -> None:
        self.values = values


class Text(str):
    """Is no text."""


#: A tuple is written at once if it has twelve items.
_MORE = (5, 6, 7, 8, 9, 10, 11, 12)


def _again() -> Any:
    text = "a text that is twice in it"
    inner = (text, 1)
    return (text, inner, text, inner, inner, *_MORE)


def _deep(n: int) -> Any:
    found: Any = (1, 2)
    for _ in range(n):
        found = (found, 1, 2, 3, *_MORE)
    return found


_shared = ("shared", 300, None, b"bytes", *_MORE)
#: What is made anew for each dump, since what is constant may be one object with others.
VALUES: dict[str, Callable[[], Any]] = {
    **{
        f"{n} items": lambda n=n: (*[f"text {i}" for i in range(n)],)
        for n in (0, 1, 2, 3, 4, 5, 11, 12, 16, 17, 23, 24, 60)
    },
    "numbers": lambda: (0, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31), 1.5, True, False, None),
    "long numbers": lambda: (2**31, 2, 3, 4, *_MORE),
    "negative": lambda: (-(2**31) - 1, 2, 3, 4, *_MORE),
    "a long text": lambda: ("x" * 255, "y" * 256, 1, 2, *_MORE),
    "text beyond ASCII": lambda: ("é" * 127, "é" * 128, "\U0001f600", "\0", *_MORE),
    "surrogates": lambda: ("before", "\udc80", 1, 2, *_MORE),
    "bytes": lambda: (b"", b"x" * 255, 1, 2, *_MORE),
    "long bytes": lambda: (b"", b"x" * 256, 1, 2, *_MORE),
    "tuples": lambda: ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ("a", ("b", ("c",))), *_MORE),
    "long tuples": lambda: ((*range(16),), 1, 2, 3, *_MORE),
    "longer tuples": lambda: ((*range(17),), 1, 2, 3, *_MORE),
    "a list within": lambda: (1, (1, [2]), 2, 3, *_MORE),
    "a list": lambda: ([], 1, 2, 3, *_MORE),
    "a subclass": lambda: ("text", Text("text"), 1, 2, *_MORE),
    "a subclass within": lambda: ("text", (1, Text("text")), 1, 2, *_MORE),
    "shared": lambda: (_shared, _shared, 1, 2, *_MORE),
    "shared itself": lambda: _shared,
    "twice": _again,
    "deep": lambda: _deep(40),
    "nearly a frame": lambda: ("x" * 255, *["y" * 255 + str(i) for i in range(11)]),
    "a dict": lambda: {i: str(i) for i in range(60)},
    "a list of lists": lambda: [[i, str(i)] for i in range(20)],
    "too deep": lambda: _deep(sys.getrecursionlimit()),
}


def _class(act: Callable[[Run], None] | None = None) -> Callable[[Any, Run], Any]:
    """Return what makes a pickler that saves a Part by saving each of its values, and acts after each."""

    def make(base: Any, run: Run) -> Any:
        class P(base):  # type: ignore[misc]  # it is a variable
            dispatch = base.dispatch.copy()

        def save_part(pickler: Any, part: Part) -> None:
            for make_value in part.values:
                value = make_value()
                run.kept[str(len(run.kept))] = value  # no id is had twice
                pickler.save(value)
                if act is not None:
                    act(run)
            pickler.memoize(part)

        P.dispatch[Part] = save_part
        return P

    return make


def _dumps(*objs: Any) -> Callable[[Run], None]:
    """Return what dumps these among other things, so that there is a plan, and then something else."""

    def steps(run: Run) -> None:
        run.kept["objs"] = objs
        run.pickler.dump([*range(30), *objs, "end"])
        run.pickler.dump([_shared, "text", [1]])

    return steps


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", VALUES)
def test_value(name: str, ours: Implementation) -> None:
    """The bytes, the writes, the error and the memo are stock's, also where all of it is in the memo already."""
    make = VALUES[name]
    value = make()
    check(ORACLE, ours, _dumps(Part(make, make)), protocols=ALL, cls=_class())
    check(ORACLE, ours, _dumps(Part(lambda: value, lambda: value, make)), protocols=(2, 4), cls=_class())
    check(ORACLE, ours, _dumps(Part(make)), protocols=(4,), cls=_class(), file=lambda run: PythonFile())


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_edge_of_a_frame(ours: Implementation) -> None:
    """A frame is committed where stock commits it, wherever in the tuple that is."""
    make = VALUES["tuples"]
    written = 30 * 2 + 5  # about that, before the Part
    for n in range(65536 - written - 90, 65536 - written + 10):
        check(ORACLE, ours, _dumps("x" * n, Part(make, make)), protocols=(4,), cls=_class())


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("n", [*range(240, 258)])
def test_memo_of_256(n: int, ours: Implementation) -> None:
    """What is fetched from the memo is in it above 255, or below."""
    names = [f"name {i}" for i in range(n)]
    check(ORACLE, ours, _dumps(names, Part(lambda: (*names[-6:], *names[:2]), _again)), protocols=(4,), cls=_class())


def _is_read(run: Run) -> None:
    run.record("memo", len(run.pickler.memo))


def _listens(run: Run) -> None:
    memoize = run.pickler.memoize
    run.pickler.memoize = lambda obj: (run.record("memoize", obj), memoize(obj))


def _asks(run: Run) -> None:
    run.pickler.persistent_id = lambda obj: run.record("persistent_id", obj)


def _writes(run: Run) -> None:
    write = run.pickler.framer.write
    run.pickler.write = lambda data: (run.record("write", data), write(data))


def _saves(run: Run) -> None:
    cls = type(run.pickler)
    run.pickler.save = lambda obj, *args, **keywords: (
        run.record("save", obj),
        cls.save(run.pickler, obj, *args, **keywords),
    )


def _has_entry(run: Run) -> None:
    run.pickler.dispatch[tuple] = lambda pickler, obj: (run.record("tuple", obj), pickler.save([*obj]))


def _has_entry_of_atoms(run: Run) -> None:
    run.pickler.dispatch[str] = lambda pickler, obj: (run.record("str", obj), pickler.write(b"N"))


def _has_new_memo(run: Run) -> None:
    run.pickler.memo = dict(run.pickler.memo)


def _has_strange_memo(run: Run) -> None:
    run.pickler.memo[id(_shared[0])] = (-1, _shared[0])


def _has_number_in_memo(run: Run) -> None:
    run.pickler.memo[id(_shared[1])] = (len(run.pickler.memo), _shared[1])


def _has_gaps(run: Run) -> None:
    run.pickler.memo[id(run)] = (1000, run)


def _frames(run: Run) -> None:
    run.pickler.framer.end_framing()


def _inits(run: Run) -> None:
    run.pickler.__init__(run.file, run.protocol)


def _is_fast(run: Run) -> None:
    run.pickler.fast = True


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize(
    "act",
    [
        _is_read, _listens, _asks, _writes, _saves, _has_entry, _has_entry_of_atoms, _has_new_memo, _has_strange_memo,
        _has_number_in_memo, _has_gaps, _frames, _inits, _is_fast,
    ],
)  # fmt: skip
def test_pickler_that_changes(act: Callable[[Run], None], ours: Implementation) -> None:
    """What the function does to its pickler counts from the next value on."""
    makes = [VALUES[name] for name in ("12 items", "shared", "tuples", "a dict", "a list of lists", "shared itself")]
    check(ORACLE, ours, _dumps(Part(*makes), Part(*makes)), protocols=(0, 2, 4), cls=_class(act))


@pytest.mark.skipif(PYPY, reason="its pickler is another one (fastpickle.pypy)")
def test_short_tuples_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of twelve is; but with no instance in it, or below protocol 4."""
    written: list[Any] = []
    save_tuple = way.save_tuple
    monkeypatch.setattr(
        way, "save_tuple", lambda pickler, plan, obj: (done := save_tuple(pickler, plan, obj), written.append(done))[0]
    )
    for name, protocol, expected in (
        ("12 items", 4, [True]),
        ("11 items", 4, []),
        ("16 items", 5, [True]),
        ("23 items", 4, [True]),
        ("tuples", 4, [True]),
        ("3 items", 4, []),
        ("24 items", 4, []),
        ("a list", 4, [True]),
        ("a list within", 4, [True]),
        ("a subclass", 4, []),
        ("a subclass within", 4, []),
        ("12 items", 3, [False]),
        ("surrogates", 4, [False]),
    ):
        written.clear()
        last.forget()  # that this one is not taken to be like those before
        check(ORACLE, OURS[0], _dumps(Part(VALUES[name])), protocols=(protocol,), cls=_class())
        assert written == expected, (name, protocol)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_names_in_tuples(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class or function is written by its name where stock finds it: not without its package, or under an odd one."""
    alone = types.ModuleType("no_such_package.module")
    monkeypatch.setitem(sys.modules, alone.__name__, alone)
    here = types.ModuleType("module_of_a_test")
    monkeypatch.setitem(sys.modules, here.__name__, here)
    for module in (alone, here):
        exec("class C: pass\ndef f(): pass\nclass D: pass\nD.__qualname__ = 'A.B'", vars(module))
    vars(here)["A.B"] = here.D
    here.__dict__["__class__"] = type("__class__", (), {"__module__": here.__name__})
    monkeypatch.setattr(builtins, "NoneType", type(None), raising=False)
    monkeypatch.setattr(builtins, "ellipsis", type(...), raising=False)
    for x in (
        *(alone.C, alone.f, here.C, here.f, here.D, here.__dict__["__class__"]),
        *(type(None), type(...), type(NotImplemented), int, len, objects.Plain, objects.function),
    ):
        check(ORACLE, ours, _dumps(Part(lambda x=x: (1, 2, 3, x, x))), protocols=(2, 4), cls=_class())


class Takes(fastpickle.Pickler):
    """Overrides a method as one did up to 3.13: it has an adapter on 3.14."""

    def _batch_setitems(self, items: Any, *args: Any) -> None:
        super()._batch_setitems(items, *args)


class TakesItems(fastpickle.Pickler):
    """The same, and knows of no other way."""

    def _batch_setitems(self, items: Any) -> None:  # type: ignore[override]  # that is what it is about
        super()._batch_setitems(items)


def _with_frames(n: int, act: Callable[[], None]) -> bool:
    """Act where there are `n` more Python frames than there is room for; tell whether that was enough."""
    frame: Any = sys._getframe()
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back

    def descend(m: int) -> None:
        if m > 0:
            descend(m - 1)
        else:
            act()

    try:
        descend(sys.getrecursionlimit() - depth - n)
    except RecursionError:
        return False
    return True


@pytest.mark.skipif(PYPY, reason="its stack has no such limit")
@pytest.mark.parametrize("cls", [fastpickle.Pickler, Pure, Takes, TakesItems], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("protocol", [2, 4])
def test_stack_that_is_full(protocol: int, cls: Any) -> None:
    """Nothing is left on the pickler, which can be used again; and what stock can write is written."""
    for obj in (
        [],
        {},
        {"a": [1]},
        [*range(30)],
        [[1, 2], [3]],
        (1, (2, 3)),
        [Part],
        {"a": [1, 2], "b": objects.Reduced(_call)},
    ):
        for n in range(2, 40):
            pickler = cls(io.BytesIO(), protocol)
            if not _with_frames(n, lambda pickler=pickler, obj=obj: pickler.dump(obj)):  # type: ignore[misc]  # a lambda with defaults
                assert not {"_fastpickle_plan", "_fastpickle_dump"} & pickler.__dict__.keys()
                stock = pickle._Pickler(io.BytesIO(), protocol)  # type: ignore[attr-defined]  # private to the stdlib
                assert cls not in (fastpickle.Pickler, Pure) or not _with_frames(
                    n,
                    lambda stock=stock, obj=obj: stock.dump(obj),  # type: ignore[misc]  # as above
                ), (obj, n)
            file = io.BytesIO()
            pickler.clear_memo()
            pickler.__init__(file, protocol)
            pickler.dump(obj)
            assert file.getvalue() == stock_dumps(obj, protocol)


def _call(self: Any) -> Any:
    return objects.make, (1,)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_framer_that_is_exchanged_while_it_commits(ours: Implementation) -> None:
    """The new one is not asked to commit in the place of the old one."""

    class File(PythonFile):
        def __init__(self, run: Run) -> None:
            super().__init__()
            self._run = run

        def write(self, data: Any) -> int:
            run = self._run
            if len(data) > 60_000 and "framer" not in run.kept:
                base = type(run.pickler.framer)

                class Framer(base):  # type: ignore[misc, valid-type]  # it is a variable
                    def commit_frame(self, force: bool = False) -> None:
                        run.record("commit_frame", force)
                        super().commit_frame(force)

                run.kept["framer"] = run.pickler.framer = Framer(self.write)
                run.pickler.framer.start_framing()
            return super().write(data)

    def fills(run: Run) -> Callable[[Any], Any]:
        def value(self: Any) -> Any:
            run.pickler.write(b"Z" * 70_000)
            run.pickler.save(None)
            return str, ("x",)

        return value

    check(
        ORACLE,
        ours,
        lambda run: run.pickler.dump([[1], objects.Reduced(fills(run))]),
        protocols=(4,),
        file=File,
    )


def _sorts_dicts(base: Any, run: Run) -> Any:
    """Make a pickler whose dicts are saved by somebody's function, in the order of their keys."""

    class P(base):  # type: ignore[misc]  # it is a variable
        dispatch = base.dispatch.copy()

    def save_dict(pickler: Any, obj: Any) -> None:
        run.calls.append(("save_dict", len(obj)))
        pickler.write(pickle.MARK + pickle.DICT)
        pickler.memoize(obj)
        pickler._batch_setitems(*for_batch(sorted(obj.items()), obj))

    P.dispatch[dict] = save_dict
    return P


def _rows(n: int) -> list[dict[str, Any]]:
    return [{"b": i, "a": f"text {i}", "c": [i, {"y": [*range(60)], "x": (i, "a", "b", "c")}]} for i in range(n)]


def _row_in_itself() -> Any:
    rows = _rows(8)
    rows[0]["c"] = [rows, rows[0]]
    return rows


SORTED: dict[str, Callable[[], Any]] = {
    "rows": lambda: _rows(30),
    "rows in a tuple": lambda: (*_rows(30),),
    "rows in lists": lambda: [[row] for row in _rows(30)],
    "a dict of rows": lambda: dict(enumerate(_rows(30))),
    "rows behind numbers": lambda: [*range(100), *_rows(30)],
    "a shared row": lambda: _rows(3) * 20,
    "a row in itself": _row_in_itself,
    "no row": lambda: [[i, str(i)] for i in range(60)],
    "a row before numbers": lambda: [*_rows(1), *range(1000)],
    "a row before lists": lambda: [*_rows(1), *[[i, f"text {i}"] for i in range(60)]],
    "rows of rows and numbers": lambda: [(*_rows(1), *range(30)) for _ in range(30)],
    "objects": lambda: [objects.Plain(a=i, b=[i]) for i in range(30)],
    "an object before numbers": lambda: [objects.Plain(a=1), *range(1000)],
}


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", SORTED)
def test_dicts_of_somebodys(name: str, ours: Implementation) -> None:
    """A pickler whose dicts are saved by somebody's function writes stock's bytes, and calls it as often."""
    make = SORTED[name]

    def steps(run: Run) -> None:
        run.pickler.dump(run.kept.setdefault("obj", make()))
        run.pickler.dump([run.kept["obj"], 1, "text"])

    check(ORACLE, ours, steps, protocols=ALL, cls=_sorts_dicts)


@pytest.mark.skipif(PYPY, reason="its pickler is another one (fastpickle.pypy)")
def test_dicts_of_somebodys_go_by_save(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where most of a container is such dicts, or has one, the pickler is not looked at after each of them."""
    looks: list[Any] = []
    settled = way.settled
    for module in (doubts, loop, reduce, way):
        monkeypatch.setattr(module, "settled", lambda pickler: (looks.append(1), settled(pickler))[1])
    for name, is_looked_at in (
        ("rows", False),
        ("rows in a tuple", False),
        ("rows in lists", False),
        ("a shared row", False),
        ("rows behind numbers", True),
        ("a row before numbers", True),
        ("a row before lists", True),
        ("rows of rows and numbers", True),
        ("objects", False),
        ("an object before numbers", True),
    ):
        looks.clear()
        last.forget()  # as above
        check(
            ORACLE, OURS[0], lambda run, name=name: run.pickler.dump(SORTED[name]()), protocols=(4,), cls=_sorts_dicts
        )
        assert bool(looks) is is_looked_at, name


class Named(str):
    """Is saved as a text is."""


def _with_entry(base: Any, run: Run) -> Any:
    class P(base):  # type: ignore[misc]  # it is a variable
        dispatch = {**base.dispatch, Named: base.dispatch[str], bool: base.dispatch[int]}

        def persistent_id(self, obj: Any) -> None:
            run.calls.append(("persistent_id", type(obj)))

    return P


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_atoms_hook_by_hook(ours: Implementation) -> None:
    """Texts with each character that is escaped at protocol 0, and numbers at each edge, are stock's."""
    texts = ["", "plain", "with space", "\\", "a\\u0041", "\u2028", "\ud800", "\U0001f600"]
    texts += [f"a{chr(i)}b" for i in range(0x120)]
    edges = (0, 1, 255, 256, 65535, 65536, 2**31, 2**63, 2**70)
    numbers = [sign * n + d for n in edges for sign in (1, -1) for d in (-1, 0, 1)]
    objs = [*texts, *numbers, True, False, None, 1.5, -0.0, b"bytes", Named("a text"), Named("\n"), texts[1], "plain"]
    for x in objs:
        check(ORACLE, ours, lambda run, x=x: run.pickler.dump((x, [x, x])), protocols=ALL, cls=_with_entry)


class Reduced:
    """Has a reduce that calls something, so that nobody knows what it does."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __reduce__(self) -> Any:
        return Reduced, tuple(vars(self).values())


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_hooks_that_change_what_comes_next(ours: Implementation) -> None:
    """What a table or `reducer_override` does while it is asked counts as in stock, where few objects are saved."""

    class Table(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            if key is set:
                self.run.pickler.dispatch = {**self, set: self.save_set}
            return super().get(key, default)

    def with_table(base: Any, run: Run) -> Any:
        def save_set(pickler: Any, obj: Any) -> None:
            run.calls.append("save_set")
            base.dispatch[set](pickler, obj)

        table = Table(base.dispatch)
        table.run = run  # type: ignore[attr-defined]  # it is for get()
        table.save_set = save_set  # type: ignore[attr-defined]  # as above
        return type("P", (base,), {"dispatch": table})

    held = set(range(30))
    check(ORACLE, ours, lambda run: run.pickler.dump(Reduced(held)), protocols=ALL, fails=False, cls=with_table)

    def with_entry(base: Any, run: Run) -> Any:
        def save(pickler: Any, obj: Any) -> None:
            def override(x: Any) -> Any:
                del pickler.reducer_override
                pickler.memoize(x)
                return NotImplemented

            pickler.reducer_override = override
            pickler.save(obj.held)

        return type("P", (base,), {"dispatch": {**base.dispatch, Reduced: save}})

    rows = [[i, [i]] for i in range(30)]
    check(ORACLE, ours, lambda run: run.pickler.dump(Reduced(rows)), protocols=ALL, fails=True, cls=with_entry)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_memo_that_is_exchanged_before_a_tuple(ours: Implementation) -> None:
    """What is in the tuple, and contains it, is memoized in the other one."""

    def with_override(base: Any, run: Run) -> Any:
        def reducer_override(pickler: Any, obj: Any) -> Any:
            if type(obj) is tuple and not run.calls:
                run.calls.append("exchanged")
                pickler.memo = dict(pickler.memo)
            return NotImplemented

        return type("P", (base,), {"reducer_override": reducer_override})

    def dump(run: Run) -> None:
        items: list[Any] = []
        cycle = (items, 1)
        items.append(cycle)
        run.pickler.dump([cycle])

    check(ORACLE, ours, dump, protocols=ALL, fails=False, cls=with_override)


class _Hashed(type):
    """Notes each time that it is asked for the hash of a class."""

    asked: list[type] = []

    def __hash__(cls) -> int:
        _Hashed.asked.append(cls)
        return super().__hash__()


class Entered(metaclass=_Hashed):
    """Is saved by a dispatch entry."""


@pytest.mark.parametrize("make", [
    Entered,
    lambda: [1, [1, 2, Entered()], 2],
    lambda: [*(objects.Reduced((objects.make, (i,))) for i in range(20)), Entered()],
])  # fmt: skip
def test_metaclass_of_a_type_with_an_entry_is_asked_as_by_stock(make: Callable[[], Any]) -> None:
    """By each way that a dump may go: the pure engine's, C's, one like the last one, and stock's."""
    counts = []
    for base in (Stock, Pure, fastpickle.Pickler):
        entry = {Entered: lambda pickler, obj: pickler.save_reduce(list, (), obj=obj)}
        cls = type(base.__name__, (base,), {"dispatch": {**base.dispatch, **entry}})
        last.forget()
        counts.append(set())
        for _ in range(20):
            _Hashed.asked.clear()
            cls(io.BytesIO(), 4).dump(make())
            counts[-1].add(len(_Hashed.asked))
    assert counts == [counts[0]] * 3
    assert len(counts[0]) == 1
