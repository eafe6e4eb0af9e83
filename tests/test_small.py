"""Small plain data at once: that it is done, that nothing can be told from it, and each thing that forbids it."""

from __future__ import annotations

import collections
import contextlib
import io
import pathlib
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import hooked, objects, samples
from oracle.allowed import PYPY
from oracle.compare import ALL, Implementation, PythonFile, Run, check, dump_where_it_fails, dumped, stock_dumps
from oracle.engines import ORACLE, PURE, Pure, Stock

import fastpickle
from fastpickle import hooks
from fastpickle._stdlib import CPickler
from fastpickle.accelerator import offers
from fastpickle.at_once import small
from fastpickle.engine.parts import SHORTEST_RUN
from fastpickle.objects.last import last

pytestmark = pytest.mark.skipif(PYPY, reason="PyPy has a path of its own")


WITH_GRAFTS = Implementation("with grafts", fastpickle.Pickler)
INSTALLED = Implementation("installed", Stock, fastpickle.patched)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool | None]]:
    """Record whether each dump that came so far was written at once."""
    seen: list[bool | None] = []
    at_once = small.at_once

    def record(*args: Any) -> bool | None:
        seen.append(at_once(*args))
        return seen[-1]

    monkeypatch.setattr(small, "at_once", record)
    yield seen


def same(make: Callable[[], Any], **how: Any) -> None:
    """Compare a dump of what `make` makes, by each of ours; then a second dump by the same picklers."""

    def steps(run: Run) -> None:
        obj = make()
        run.pickler.dump(obj)
        run.pickler.dump(obj)
        run.pickler.dump([obj, "another"])
        run.pickler.clear_memo()
        run.pickler.dump(obj)

    for ours in (PURE, WITH_GRAFTS):
        check(ORACLE, ours, steps, **how)
        check(ORACLE, ours, lambda run: run.pickler.dump(make()), **how)


def _cyclic(kind: str) -> Any:
    inner: list[Any] = [1]
    whole: Any = {"list": [inner], "tuple": (inner, 2), "long tuple": (1, 2, inner, 4), "dict": {"a": inner}}[kind]
    inner.append(whole)
    inner.append(inner)
    return whole


def _nested(depth: int, kind: Callable[[Any], Any]) -> Any:
    obj: Any = "end"
    for _ in range(depth):
        obj = kind(obj)
    return obj


SMALL: dict[str, Callable[[], Any]] = {
    "a task": lambda: {"task": "resize", "width": 640, "height": 480, "tags": ["a", "b"]},
    "atoms": lambda: [None, True, False, 0, -1, 1.5, "text", b"bytes", "", b""],
    "empty ones": lambda: [[], {}, (), "", b""],
    "shared": lambda: [x := ["x" * 2, (b"y" * 2,)], x, {"z": x}, x[1], x[0], x[1][0], x[0]],
    "tuples": lambda: [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((),), (("a",), "b")],
    "rows": lambda: [{"id": i, "x": f"v{i}"} for i in range(5)],
    "keys": lambda: {1: 2, None: 3, (1, "a"): 4, 1.5: 5, b"b": 6, -1: 8},
    "ints": lambda: [s * 2**b + o for s in (1, -1) for b in (8, 16, 31, 63) for o in (-1, 0, 1)],
    "long ints": lambda: [2**1000, -(2**1000), 2**1023, 2**1024 - 1],
    "floats": lambda: [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e300],
    "texts": lambda: ["é", "€" * 21, "\0\n\\", "x" * 63, "x" * 64, "x" * 254, "x" * 255, "é" * 127, b"x" * 255],
    "longer texts": lambda: ["x" * 256, b"x" * 256, "é" * 128, "x" * 4096, b"x" * 4096],
    **{f"{kind} of {n}": lambda t=t, n=n: t(range(n)) for n in (1, 2, 3, 4, 11, 12, 23, 24)
       for kind, t in (("list", list), ("tuple", tuple), ("dict", dict.fromkeys))},
    **{f"{kind} in {n}": lambda t=t, n=n: [t(range(n)), t(range(n))] for n in (0, 1, 2, 3, 4)
       for kind, t in (("list", list), ("tuple", tuple), ("dict", dict.fromkeys))},
    **{f"a cyclic {kind}": lambda kind=kind: _cyclic(kind) for kind in ("list", "dict")},
    "levels": lambda: _nested(60, lambda x: [x]),
    "levels of dicts": lambda: _nested(60, lambda x: {"a": x}),
    "levels of tuples": lambda: _nested(60, lambda x: (x, 1)),
}  # fmt: skip

#: What is no longer written at once, somewhere inside: the loop goes on.
NOT_SMALL: dict[str, Callable[[], Any]] = {
    "texts": lambda: ["a", "x" * 4097, "b"],
    "texts of many bytes": lambda: {"a": "é" * 2049, "b": 1},
    "bytes": lambda: [(b"a", b"x" * 4097), "b"],
    "large texts": lambda: ["a", "x" * 70_000, b"x" * 70_000, "b"],
    "long ints": lambda: [1, 2**1024, -(2**5000), 3],
    "a long list": lambda: {"a": [*range(25)], "b": 1},
    "a long dict": lambda: ["a", dict.fromkeys(range(25)), 1],
    "a long tuple": lambda: ["a", (*range(25),), 1],
    "rows": lambda: {"rows": [{"id": i, "x": f"v{i}"} for i in range(SHORTEST_RUN)], "more": 1},
    "rows by key": lambda: [1, {i: [i, str(i)] for i in range(SHORTEST_RUN)}, 2],
    "rows in a tuple": lambda: [1, (*((i, str(i)) for i in range(SHORTEST_RUN)),), 2],
    "many": lambda: [[[f"{i} {j}" for j in range(5)] for i in range(5)] for _ in range(5)],
    "a set": lambda: {"a": 1, "b": {1}, "c": "d"},
    "an instance": lambda: {"a": 1, "b": ["c", (objects.Plain(a=1), "d")], "e": "c"},
    "a reduce": lambda: ["a", (1, objects.Reduced((objects.make, (1, [2]))), "a"), "b"],
    "subclasses": lambda: ["a", objects.List([1]), objects.Str("b"), objects.Int(1), objects.Tuple((1,)), {}],
    "a key of a subclass": lambda: {"a": 1, objects.Str("a"): 2, objects.Hashed(1): 3},
    "functions and classes": lambda: ["a", len, objects.Plain, objects.function],
    "a last item": lambda: [1, [2, [3, objects.Plain(a="b")]]],
    "the only item": lambda: [[{"a": (objects.Plain(a="b"),)}]],
    "levels": lambda: _nested(200, lambda x: [x]),
    "levels of tuples": lambda: _nested(120, lambda x: (x, 1)),
    **{f"a cyclic {kind}": lambda kind=kind: _cyclic(kind) for kind in ("tuple", "long tuple")},
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_it_is_written_at_once(name: str, tried: list[bool | None]) -> None:
    """By protocol 4 and later, and nothing is seen of it."""
    for protocol in ALL:
        Pure(io.BytesIO(), protocol).dump(SMALL[name]())
        assert [*map(bool, tried)] == [protocol >= 4]
        tried.clear()
    same(SMALL[name])


@pytest.mark.parametrize("name", NOT_SMALL)
def test_the_loop_goes_on(name: str, tried: list[bool | None]) -> None:
    """What is written already is not written again."""
    Pure(io.BytesIO(), 4).dump(NOT_SMALL[name]())
    assert tried == [True]
    same(NOT_SMALL[name])


@pytest.mark.parametrize("make", [
    lambda: None, lambda: 5, lambda: "text", lambda: (), lambda: {1}, lambda: objects.Plain(a=1), lambda: "\ud800",
    lambda: [*range(25)], lambda: [[i] for i in range(SHORTEST_RUN)], lambda: ["a", "\ud800", "b"],
    lambda: [objects.Plain], lambda: {"a": {1}}, lambda: [[], "\ud800"],
])  # fmt: skip
def test_others(make: Callable[[], Any]) -> None:
    """Other roots are saved as before; a frame of less than four bytes is none."""
    same(make)


plain_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(2**40), 2**40) | st.floats() | st.text()
    | st.text("ab\ud800", max_size=2) | st.binary() | st.sampled_from(["key", b"b", (), "x" * 255, "x" * 256, 2**1030]),
    lambda inner: st.lists(inner, max_size=14) | st.lists(inner).map(tuple)
    | st.dictionaries(st.text(max_size=3) | st.integers() | st.tuples(st.integers()), inner, max_size=14),
    max_leaves=40,
)  # fmt: skip


@given(plain_data, st.sampled_from(ALL))
def test_any_data(obj: Any, protocol: int) -> None:
    """Bytes and memo are stock's, whatever it is."""
    for base in (Pure, fastpickle.Pickler):
        found = []
        for cls in (Stock, base):
            file = io.BytesIO()
            pickler = cls(file, protocol)
            pickler.dump(obj)
            first = file.getvalue(), [*pickler.memo.values()]
            pickler.dump([obj])
            found.append(
                (*first, file.getvalue(), len(pickler.memo), sorted(vars(pickler)), pickler.framer.current_frame)
            )
        assert repr(found[0]) == repr(found[1])  # nan is not equal to itself


FLAT: dict[str, tuple[Callable[[], Any], bool]] = {
    "an item": (lambda: [1], True),
    "as many items as may be": (lambda: [*range(24)], True),
    "an item more": (lambda: [*range(25)], False),
    "as many keys as may be": (lambda: dict.fromkeys(range(12)), True),
    "a key more": (lambda: dict.fromkeys(range(13)), False),
    "rows": (lambda: [{"a": 1, "b": 2}] * 2 + [{"a": 1}], True),
    "many rows": (lambda: [{"a": i, "b": 2} for i in range(6)], False),
    "containers in a dict": (lambda: {"a": [1, 2], "b": {"c": 3}, "d": (), "e": (1.5,)}, True),
    "many in a dict": (lambda: {"a": [1, 2], "b": [*range(20)]}, False),
    "two levels below": (lambda: [1, [[2]]], False),
    "two levels below, at the end": (lambda: [1, [2, [3]]], False),
    "an instance": (lambda: [1, objects.Plain(a=1)], True),
    "an instance below": (lambda: [1, [2, objects.Plain(a=1)]], True),
    "an instance as a key": (lambda: {objects.Hashed(1): 2}, True),
    "instances": (lambda: [objects.Plain(a=i) for i in range(5)], False),
    "a set": (lambda: [{1}], True),
    "a long text below": (lambda: ["a", ["b", "x" * 4097]], False),
    "texts in containers in containers": (lambda: [1, [2, [*map(str, range(23)), []]]], False),
    "a surrogate": (lambda: ["a", "\ud800"], False),
    "a tuple in itself": (lambda: _cyclic("tuple"), False),
    "a dict in itself": (lambda: _cyclic("dict"), False),
}  # fmt: skip


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler, or it is switched off")
@pytest.mark.parametrize("name", FLAT)
def test_what_c_is_left(name: str, tried: list[bool | None]) -> None:
    """C is asked about what it writes sooner, and then about all of it: nothing is left in the memo."""
    make, is_small = FLAT[name]
    for protocol in ALL:
        fastpickle.Pickler(io.BytesIO(), protocol).dump(make())
        assert tried == [is_small and protocol >= 4]
        tried.clear()
    same(make)


@pytest.mark.parametrize("n", range(28))
def test_how_many(n: int) -> None:
    """Around the number of items that C is left, a level below too."""
    for make in (
        lambda: [f"text {i}" for i in range(n)],
        lambda: (*map(str, range(n)),),
        lambda: {f"key {i}": [f"key {i - 1}"] for i in range(n)},
        lambda: [[str(i)] for i in range(n)],
        lambda: [1, {str(i): i for i in range(n)}],
    ):
        same(make)


def _data() -> Any:
    return ["text", 255, 1.5, None, True, b"b", {"a": (1, "text")}, [1], [], ()]


@pytest.mark.parametrize("make", [_data, NOT_SMALL["an instance"], NOT_SMALL["a reduce"]])
@pytest.mark.parametrize("hook", hooked.SUBCLASSES)
def test_subclass(hook: str, make: Callable[[], Any]) -> None:
    """Whatever a subclass overrides is asked as by stock."""
    for ours in (PURE, WITH_GRAFTS, INSTALLED):

        def steps(run: Run) -> None:
            pickler = hooked.SUBCLASSES[hook](run.implementation.base, run)(run.file, run.protocol)
            pickler.dump(make())
            run.calls.append(("memo", [x[0] for x in pickler.memo.values()]))

        check(ORACLE, ours, steps)


@pytest.mark.parametrize("make", [_data, NOT_SMALL["an instance"], NOT_SMALL["a reduce"]])
@pytest.mark.parametrize("hook", hooked.ON_INSTANCE)
def test_instance(hook: str, make: Callable[[], Any]) -> None:
    """Whatever an instance overrides; before the first dump, and before the second."""

    def steps(run: Run) -> None:
        hooked.ON_INSTANCE[hook](run, run.pickler)
        run.pickler.dump(make())

    def later(run: Run) -> None:
        run.pickler.dump(make())
        run.pickler.clear_memo()
        hooked.ON_INSTANCE[hook](run, run.pickler)
        run.pickler.dump(make())

    for ours in (PURE, WITH_GRAFTS, INSTALLED):
        check(ORACLE, ours, steps)
        check(ORACLE, ours, later)


def test_it_is_forbidden(tried: list[bool | None]) -> None:
    """Hooks on the class and the instance, a dispatch entry, a memo, and each name that the table of hooks has."""
    for name in sorted(hooks.INSTANCE_HOOKS):
        value = 1000 if name == "_BATCHSIZE" else getattr(Stock, name, lambda *args: NotImplemented)
        pickler = Pure(io.BytesIO(), 4)
        setattr(pickler, name, value.__get__(pickler) if callable(value) else value)
        with contextlib.suppress(AttributeError, TypeError):
            pickler.dump(_data())
        assert not tried.pop(), name
        if name != "_BATCHSIZE":
            body = {name: lambda self, *args, **kwargs: getattr(Pure, name)(self, *args, **kwargs)}
            type("P", (Pure,), body)(io.BytesIO(), 4)
            with contextlib.suppress(AttributeError, TypeError):
                type("P", (Pure,), body)(io.BytesIO(), 4).dump(_data())
            found = tried.pop()
            assert found is hooks.PLAIN if name == "persistent_id" else not found, name
    for t in (type(None), bool, int, float, str, bytes, list, tuple, dict):
        table = {**Pure.dispatch, t: lambda self, obj: self.write(pickle.NONE)}
        type("P", (Pure,), {"dispatch": table})(io.BytesIO(), 4).dump(_data())
        assert not tried.pop(), t
    for name, value in (("fast", 1), ("memo", {1: (0, 1)}), ("bin", False), ("proto", 3), ("write", len)):
        pickler = Pure(io.BytesIO(), 4)
        setattr(pickler, name, value)
        pickler.dump(_data())
        assert not tried.pop(), name
    pickler = Pure(io.BytesIO(), 4)
    pickler.framer.start_framing()
    pickler.dump(_data())
    assert tried.pop() is False
    assert not tried


@pytest.mark.parametrize("levels", [15, 20, 21, 25, 26, 27, 28, 40, 90])
@pytest.mark.parametrize("n", [1, 9, 21])
@pytest.mark.parametrize("place", [0, 1])
def test_more_than_a_frame(place: int, n: int, levels: int) -> None:
    """Texts on the way back from what is nested fill more than one frame, though each container is small."""

    def make() -> Any:
        nested: Any = ["end"]
        for level in range(levels):
            texts = [f"{level} {i} " + "x" * (240 if n > 1 else 2400) for i in range(n)]
            nested = [nested, *texts] if place == 0 else [1, nested, *texts]
        return nested

    same(make, protocols=(4, 5))


@pytest.mark.parametrize("protocol", ALL)
def test_without_a_look(protocol: int) -> None:
    """Where many dumps in a row were plain data the next one is not looked at first, whatever is in it."""
    for name, make in {**SMALL, **NOT_SMALL, **samples.SAMPLES, **samples.VALUES}.items():

        def steps(run: Run, make: Callable[[], Any] = make) -> None:
            for obj in (make(), [make()], {"a": make()}, (1, [make()], "z")):
                last.looks_for_nothing = 1000
                run.pickler.dump(obj)
                run.pickler.clear_memo()

        check(ORACLE, PURE, steps, protocols=samples.where_it_ends(name, (protocol,)), case=name)
    for file in (io.BytesIO(), PythonFile()):
        last.looks_for_nothing = 1000
        Pure(file, protocol).dump([1, {"a": objects.Plain()}])
        assert last.looks_for_nothing == 0


class _Pair(NamedTuple):
    a: Any
    b: Any


@pytest.mark.parametrize(
    "make",
    [
        lambda x: objects.SlottedByDefault(1, x),
        lambda x: _Pair(1, x),
        lambda x: collections.OrderedDict(a=1, b=x),
        lambda x: collections.deque([1, x]),
        ValueError,
    ],
    ids=["slots", "namedtuple", "OrderedDict", "deque", "exception"],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_after_others_of_its_class(make: Callable[[Any], Any], protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found in one instance says nothing of the next: small, large, shared, endless, with another reduce."""
    shared: list[Any] = ["shared"]
    inside: list[Any] = []
    inside.append(make(inside))
    values = [1, 2, [*range(2000)], shared, [{"k": i, "x": shared} for i in range(40)], inside, objects.Plain(), 3]
    for _ in range(2):
        for value in values:
            obj = make(value)
            for _ in range(3):
                assert fastpickle.dumps(obj, protocol) == stock_dumps(obj, protocol)
    cls = type(obj)
    if cls is _Pair or cls is objects.SlottedByDefault:  # the others' class cannot be changed
        monkeypatch.setattr(cls, "__reduce__", lambda self: (cls, (7, 8)), raising=False)
    for value in values:
        obj = make(value)
        assert fastpickle.dumps(obj, protocol) == stock_dumps(obj, protocol)


def test_interrupted() -> None:
    """As long as nothing is written, nothing is memoized: the same dump may be tried again."""
    for cls in (Pure, fastpickle.Pickler):
        for steps in range(0, 200, 7):
            file = io.BytesIO()
            pickler = cls(file, 4)
            left = steps

            def trace(frame: Any, event: str, arg: Any) -> Any:
                nonlocal left
                left -= event == "line"
                if left < 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
                return trace

            outer = sys.gettrace()
            sys.settrace(trace)
            try:
                pickler.dump(SMALL["a task"]())
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(outer)
            if not file.getvalue():
                assert not pickler.memo


def test_dump_inside_of_a_dump() -> None:
    """A reduce dumps with the same pickler, before anything is memoized and later."""

    def steps(run: Run) -> None:
        acting = objects.Acting(lambda: run.pickler.dump({"a": 1}))
        run.pickler.dump([1, acting, 2])
        run.pickler.clear_memo()
        run.pickler.dump((1, 2, 3, acting))
        run.pickler.dump((objects.Acting(lambda: run.pickler.clear_memo() or run.pickler.dump({"a": 1})), 2))

    check(ORACLE, PURE, steps)


def test_framer_that_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's framing of the class is used."""
    for name, value in (
        ("_FRAME_SIZE_MIN", 1000),
        ("_FRAME_SIZE_TARGET", 8),
        ("start_framing", lambda self: None),
        ("end_framing", lambda self: self.file_write(b"end")),
        ("commit_frame", lambda self, force=False: None),
        ("write", lambda self, data: self.file_write(data)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(pickle._Framer, name, value)  # type: ignore[attr-defined]  # private
            same(_data)
            same(NOT_SMALL["an instance"])


@pytest.mark.parametrize("make", [_data, SMALL["a task"], NOT_SMALL["an instance"]])
def test_files(make: Callable[[], Any], tmp_path: pathlib.Path, tried: list[bool | None]) -> None:
    """A file in memory and a real one get it at once; one that is written in Python sees each write."""

    class OnTop(io.RawIOBase):
        def __init__(self) -> None:
            self.seen: list[bytes] = []

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.seen.append(bytes(data))
            return len(data)

    class Other(io.BytesIO):
        def write(self, data: Any) -> int:
            self.seen = [*getattr(self, "seen", ()), type(data), bytes(data)]
            return super().write(data)

    seen: list[Any] = []
    for cls in (Stock, Pure):
        found: list[Any] = []
        with open(tmp_path / "real", "wb") as real:
            cls(real, 4).dump(make())
        found.append((tmp_path / "real").read_bytes())
        with open(tmp_path / "raw", "wb", buffering=0) as raw:
            cls(raw, 4).dump(make())
        found.append((tmp_path / "raw").read_bytes())
        top = OnTop()
        with io.BufferedWriter(top, 3) as buffered:
            cls(buffered, 4).dump(make())
        found.append(top.seen)
        other = Other()
        cls(other, 4).dump(make())
        found.append(other.seen)  # type: ignore[attr-defined]  # Other's, which is a file
        array = io.BytesIO(b"0123456789" * 9)
        array.seek(5)
        cls(array, 4).dump(make())
        found += [array.getvalue(), array.tell()]
        seen.append(found)
    assert seen[0] == seen[1]
    assert [*map(bool, tried)] == [True, False, False, False, True]
    check(ORACLE, PURE, lambda run: run.pickler.dump(make()), file=lambda run: PythonFile())


@pytest.mark.parametrize("make", [_data, SMALL["a task"], NOT_SMALL["an instance"], NOT_SMALL["texts"]])
@pytest.mark.parametrize("size", [1, 2, 9, 12, 20, 200])
def test_failed_writes(make: Callable[[], Any], size: int) -> None:
    """The error, the notes, the memo and the frame are stock's, wherever the file fails."""

    for ours in (PURE, WITH_GRAFTS):
        check(ORACLE, ours, lambda run: dump_where_it_fails(run, make, size), protocols=(4, 5))


def test_errors_where_the_loop_goes_on() -> None:
    """Where it was is noted as by stock, and the pickler can be used again."""
    for make in (
        lambda bad: {"a": 1, "b": ["c", (bad, "d")], "e": "c"},
        lambda bad: [1, [2, [3, bad]]],
        lambda bad: (1, (2, (3, 4, 5, {"key": bad}))),
        lambda bad: [[bad]],
        lambda bad: {"a": "x" * 300, "b": bad},
        lambda bad: {"a": {(1, bad): 2}},
    ):

        def steps(run: Run) -> None:
            try:
                run.pickler.dump(make(objects.missing))
            except Exception as exc:
                run.calls.append((type(exc).__name__, str(exc), *getattr(exc, "__notes__", ())))
            run.pickler.dump(make(1))

        for ours in (PURE, WITH_GRAFTS):
            check(ORACLE, ours, steps)


def test_hooks_set_where_the_loop_goes_on() -> None:
    """A reduce that sets a hook on the pickler is followed by what stock does."""

    def steps(run: Run) -> None:
        def act() -> None:
            run.pickler.persistent_id = lambda obj: f"id {obj}" if type(obj) is int else None

        run.pickler.dump([1, {"a": objects.Acting(act), "b": 2}, [3, (4, 5, 6, 7)]])

    check(ORACLE, PURE, steps)
    check(ORACLE, INSTALLED, steps)


def _entry(mark: bytes) -> Callable[[Any, Any], None]:
    """Return a dispatch entry for dicts of one's own, which writes something beside what stock does."""

    def save_dict(pickler: Any, obj: Any) -> None:
        pickler.write(mark)
        Stock.save_dict(pickler, obj)

    return save_dict


_OWN_DICTS: dict[str, Callable[[], Any]] = {
    "dict": lambda: {"a": 1, "b": [1, 2, 3], "c": "text"},
    "list": lambda: [1, 2, 3],
    "list of dicts": lambda: [{"a": i} for i in range(10)],
    "dict of dicts": lambda: {"a": {"b": {"c": [1, 2]}}},
    "dict in a long list": lambda: [*range(50), {"a": 1}],
    "long list in a dict": lambda: {"a": [*range(50)], "b": {1: [*range(3000)]}},
    "instances": lambda: {"a": objects.Plain(x=1), "b": [objects.Plain(y={})]},
    "tuple": lambda: ({}, {1: 2}),
}


@pytest.mark.parametrize("ours", [WITH_GRAFTS, INSTALLED, PURE], ids=lambda one: one.name)
@pytest.mark.parametrize("make", _OWN_DICTS.values(), ids=_OWN_DICTS)
def test_entries_of_ones_own_come_and_go(make: Callable[[], Any], ours: Implementation) -> None:
    """Plans are remembered by the ids of entries: another one may have the same id later, and is called, too."""
    obj = make()
    written: list[list[bytes]] = []
    for implementation in ORACLE, ours:
        base = implementation.base
        picklers = type("Mine", (base,), {"dispatch": {**Stock.dispatch}})
        written.append([])
        with implementation.context():
            for k in range(40):
                # The last one is freed, so that the next may be where it was; every third time it is stock's.
                del picklers.dispatch[dict]
                picklers.dispatch[dict] = Stock.save_dict if k % 3 == 2 else _entry(b"N0" * k)
                for protocol in 4, 2, 0:
                    file = io.BytesIO()
                    pickler = picklers(file, protocol)
                    pickler.dump(obj)
                    picklers.dispatch[dict], entry = _entry(b"I1\n0"), picklers.dispatch[dict]
                    pickler.dump([obj, 1])
                    picklers.dispatch[dict] = entry
                    del entry
                    written[-1].append(file.getvalue())
    assert written[0] == written[1]


class _Unframed:
    """A framer that has only what stock's pickler asks of its own."""

    _FRAME_SIZE_TARGET = 64 * 1024

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self.write = write

    def start_framing(self) -> None:
        pass

    end_framing = start_framing

    def commit_frame(self, force: bool = False) -> None:
        pass


class _WithFramer(Stock):  # type: ignore[misc]  # stock is Any
    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.framer = _Unframed(file.write)
        self.write = self.framer.write


class _Reticent(Stock):  # type: ignore[misc]  # stock is Any
    """Has no attributes but those that stock asks for."""

    _names = {*dir(Stock), "_file_write", "framer", "write", "memo", "proto", "bin", "fast", "fix_imports"}

    def __getattribute__(self, name: str) -> Any:
        if name not in type(self)._names and not (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return object.__getattribute__(self, name)


@pytest.mark.parametrize("protocol", ALL)
@pytest.mark.parametrize("obj", [[1], {"a": 1}, (1, 2, 3, 4, 5), [*range(60)]], ids=repr)
def test_picklers_that_have_not_what_stocks_has(obj: Any, protocol: int) -> None:
    """Whether a dump goes hook by hook is asked of none of that, or in vain."""
    methods = {name: vars(fastpickle.Pickler)[name] for name in ("dump", "save")}
    kept = type("Kept", (Stock,), {**methods, "memoize": lambda self, obj: Stock.memoize(self, obj)})
    for cls, ours in ((_WithFramer, _WithFramer), (_Reticent, _Reticent), (Stock, kept)):
        expected = dumped(cls, obj, protocol)
        with contextlib.nullcontext() if ours is kept else fastpickle.patched():
            assert dumped(ours, obj, protocol) == expected


def test_look_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread changes a dict while it is looked at; or there is no room on the stack for it."""
    picklers = type("Mine", (Stock,), {"dispatch": {**Stock.dispatch, dict: _entry(b"N0")}})
    expected = dumped(picklers, {"a": [1]}, 4)
    for exc in RuntimeError("dictionary changed size during iteration"), RecursionError():
        asked: list[Any] = []

        def is_little(obj: Any, exc: BaseException = exc, asked: list[Any] = asked) -> bool:
            asked.append(obj)
            raise exc

        monkeypatch.setattr(offers, "_is_little", is_little)
        with fastpickle.patched():
            assert dumped(picklers, {"a": [1]}, 4) == expected
        assert asked
