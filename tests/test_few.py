"""Small dumps that are not all plain data: encoded at once, or saved hook by hook where nothing is to be gained."""

from __future__ import annotations

import collections
import colorsys
import copyreg
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import io
import pathlib
import sys
import time
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import objects
from oracle.allowed import DILL_PICKLES_CODE, PYPY
from oracle.compare import ALL, Implementation, PythonFile, Run, check
from oracle.engines import ORACLE, OURS, PURE, Pure, Stock
from oracle.parts import APartOf

import fastpickle
from fastpickle import hooks
from fastpickle import pickler as pickler_module
from fastpickle._stdlib import CPickler
from fastpickle.accelerator.offers import FEWEST
from fastpickle.at_once import few, small
from fastpickle.at_once.quick import is_for_librarys
from fastpickle.objects import likely
from fastpickle.objects.last import last

pytestmark = pytest.mark.skipif(PYPY, reason="PyPy has a path of its own")
_newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it


class Leaf:
    """Has nothing but a `__dict__`."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Below(Leaf):
    """Inherits all."""


class Nameless(Leaf):
    """Is not found under its name."""


_nameless, Nameless = Nameless, Leaf  # type: ignore[misc]


class Two(collections.namedtuple("Two", "a b")):
    """Is a tuple with a `__dict__`."""


class LongName:
    """Has a name that does not fit in."""


LongName.__qualname__ = LongName.__name__ = "L" * 600
globals()[LongName.__name__] = LongName


class Pair(collections.OrderedDict):  # type: ignore[type-arg]
    """Gives more pairs than it has."""

    def __reduce__(self) -> Any:
        return Pair, (), None, None, iter(collections.OrderedDict(zip(range(1500), range(1500), strict=True)).items())


def _leaf(**attributes: Any) -> Leaf:
    return Leaf(**attributes)


def _cyclic() -> Any:
    leaf = Leaf(a=1)
    leaf.itself = leaf  # type: ignore[attr-defined]
    leaf.within = (leaf, [leaf])  # type: ignore[attr-defined]
    return leaf


def _shared_state() -> Any:
    one = Leaf(a=1)
    other = Leaf()
    other.__dict__ = one.__dict__
    return [one, other, one.__dict__]


def _in_itself(t: type) -> Any:
    obj = t([])
    obj.append((obj, 1))
    return {"a": obj}


def _memoized_in_parts() -> Any:
    """Return an object that is saved while its own parts are."""
    loop: Any = []
    loop.append(objects.Reduced(lambda self: (objects.make, (loop,))))
    return loop


def _hiding(name: str) -> Any:
    leaf = Leaf(a=1)
    setattr(leaf, name, lambda *args: (objects.make, (1,)) if "reduce" in name else {"b": 2})
    return [leaf]


_long = "é" * 300
#: Small dumps, some of which are too much for that.
SMALL: dict[str, Callable[[], Any]] = {
    "an instance": lambda: Leaf(a=1, b="text", c=None),
    "a larger instance": lambda: Leaf(**{f"a{i}": i for i in range(9)}),
    "an instance in a dict": lambda: {"a": 1, "leaf": Leaf(a=[1, 2], b={"c": (3, 4, 5, 6)}), "z": "end"},
    "no attributes": lambda: [Leaf(), Leaf(), 1],
    "instances": lambda: [Leaf(a=i, b=f"text {i}") for i in range(10)],
    "instances of more classes": lambda: (Leaf(a=1), Below(a=2), objects.Plain(a=3), objects.Data(4), 5),
    "instances in instances": lambda: Leaf(a=Leaf(b=Leaf(c=[Leaf(d=1)])), e=(Leaf(f=2),)),
    "a cycle": _cyclic,
    "a state that is shared": _shared_state,
    "a list in itself": lambda: _in_itself(list),
    "a deque in itself": lambda: _in_itself(collections.deque),
    "an instance twice": lambda: [leaf := Leaf(a=1), leaf, {"a": leaf, "b": leaf.__dict__}],
    **{
        f"{name} on the instance": lambda name=name: _hiding(name)
        for name in ("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__class__x")
    },
    "a class of no name": lambda: [1, "a", _nameless(a=1)],
    "a class of no name at the root": lambda: _nameless(a=1),
    "a long name": lambda: {"a": LongName(), "b": [LongName]},
    "slots": lambda: [objects.Slotted(), objects.SlottedData(1), objects.SlottedAndDict()],
    "slots at the root": lambda: objects.SlottedData(1),
    "states of their own": lambda: {
        "a": objects.GetState(a=1),
        "b": objects.FalseState(a=1),
        "c": objects.NoState(a=1),
    },
    "arguments of their own": lambda: [objects.NewArgs(), objects.NewArgsEx()],
    "enums": lambda: {"a": objects.Colour.RED, "b": objects.Flag(1), "c": [objects.IntColour(1)] * 2},
    "namedtuples": lambda: [objects.Typed(1, "a"), Two(1, 2), {"a": Two([1], {"b": 2})}],
    "a namedtuple": lambda: Two(1, [2, "x"]),
    "a large namedtuple": lambda: Two([*range(100)], "x"),
    "dates": lambda: {
        "a": datetime.date(2020, 1, 1),
        "b": [datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)],
        "c": datetime.timedelta(1),
        "d": datetime.time(1),
    },
    "many dates": lambda: [datetime.date(2020, 1, 1 + i % 28) for i in range(FEWEST - 1)],
    "rows with dates": lambda: [{"id": i, "at": datetime.date(2020, 1, 1 + i)} for i in range(20)],
    "numbers": lambda: [decimal.Decimal("1.5"), fractions.Fraction(1, 3), 1j, range(3), 2**300, -(2**255)],
    "uuids and paths": lambda: {"a": uuid.UUID(int=5), "b": pathlib.PurePosixPath("/a/b")},
    "a uuid": lambda: uuid.UUID(int=5),
    "a date": lambda: datetime.date(2020, 1, 1),
    "sets": lambda: {"a": {1, 2}, "b": frozenset("ab"), "c": set(), "d": [frozenset()], "e": {("a", 1)}, "f": {_long}},
    "sets of instances": lambda: [{Leaf(a=1)}, frozenset([Leaf(a=2)]), {b"x" * 100, b""}],
    "long sets": lambda: {
        "a": {*range(60)},
        "b": frozenset(range(2000)),
        "c": objects.Reduced(lambda self: "function"),
    },
    "bytearrays": lambda: [bytearray(b"abc"), Leaf(a=bytearray())],
    "classes and functions": lambda: [
        Leaf,
        len,
        objects.function,
        type,
        datetime.date,
        type(None),
        type(...),
        {"a": Leaf},
    ],
    "a class": lambda: Leaf,
    "a function": lambda: objects.function,
    "a lambda": lambda: [1, lambda: 0],
    "classes of metaclasses": lambda: [objects.OfMeta, objects.OfMeta(), objects.OfMetaReduced, objects.Colour],
    "methods": lambda: {"a": "text".upper, "b": [].append, "c": Leaf(a=1).__init__, "d": dict.fromkeys},
    "partials": lambda: [functools.partial(objects.make, 1), Leaf(a=functools.partial(len))],
    "exceptions": lambda: {"a": ImportError("x"), "b": [ImportError(1, 2)], "c": ImportError(2, name="file")},
    "an exception": lambda: ValueError(Leaf(a=1)),
    "ordered dicts": lambda: [
        collections.OrderedDict(a=1),
        collections.OrderedDict(),
        collections.OrderedDict(a=[1], b=2),
    ],
    "an ordered dict": lambda: collections.OrderedDict(zip("abc", range(3), strict=True)),
    "a long ordered dict": lambda: {"a": collections.OrderedDict.fromkeys(range(60))},
    "a dict that gives more": lambda: [Leaf(a=1), Pair(a=1)],
    "counters and defaultdicts": lambda: {"a": collections.Counter("aab"), "b": collections.defaultdict(list, a=[1])},
    "deques": lambda: [
        collections.deque([1, 2]),
        collections.deque(),
        collections.deque([1], 5),
        Leaf(a=collections.deque("a")),
    ],
    "a long deque": lambda: [Leaf(a=1), collections.deque(range(1500))],
    "subclasses": lambda: [
        objects.List([1]),
        objects.Dict(a=1),
        objects.Str("b"),
        objects.Int(1),
        objects.Set({1}),
        Leaf(a=1),
    ],
    "subclasses at the root": lambda: objects.Dict(a=1, b=[2]),
    "texts": lambda: Leaf(a=_long, b=_long, c="\ud800", d="x" * 255, e="x" * 256, f="é" * 127 + "x", g="é" * 128),
    "much text": lambda: [Leaf(a="x" * 10_000), Leaf(a="y" * 20_000), Leaf(a=b"z" * 70_000), 5],
    "many texts": lambda: [Leaf(**{f"name{i}": f"{'x' * 200}{i}{j}" for i in range(10)}) for j in range(40)],
    "many numbers": lambda: [Leaf(a=[*range(40)], b=dict.fromkeys(range(40), 2**200)) for _ in range(20)],
    "long containers": lambda: Leaf(a=[*range(FEWEST)], b={**dict.fromkeys(range(FEWEST))}, c=(*range(FEWEST),)),
    "containers not as long": lambda: Leaf(a=[*range(FEWEST - 1)], b={**dict.fromkeys(range(FEWEST - 1))}),
    "many objects": lambda: [[Leaf(a=Leaf(b=i)), Leaf(a=[Leaf()])] for i in range(300)],
    "many memoized": lambda: [Leaf(**{f"n{i}": f"t{i}{j}" for i in range(10)}) for j in range(30)] * 2,
    "deep": lambda: functools.reduce(lambda x, _: Leaf(a=x), range(60), Leaf()),
    "a reduce": lambda: objects.Reduced(lambda self: (objects.make, (1, [2, {"a": 3}]))),
    "reduces": lambda: {"a": 1, "b": objects.Reduced(lambda self: (objects.make, (1,))), "c": Leaf(a=2), "d": [3]},
    "a reduce below": lambda: {
        "a": Leaf(b=[1, objects.Reduced(lambda self: (objects.make, (Leaf(c=1),))), 2]),
        "z": Leaf(),
    },
    "a reduce in a tuple": lambda: [1, Leaf(a=(1, objects.Reduced(lambda self: (objects.make, ())), 2)), (3,)],
    "a reduce in a deque": lambda: [
        Leaf(),
        collections.deque([1, objects.Reduced(lambda self: (objects.make, ())), 2]),
        3,
    ],
    "a reduce of much": lambda: [
        objects.Reduced(lambda self: (objects.make, ([{"id": i} for i in range(1500)],))),
        Leaf(),
    ],
    "reduces of many": lambda: [
        objects.Reduced(lambda self: (objects.make, ([Leaf(a=j) for j in range(20)],))) for _ in range(10)
    ],
    "a reduce that fails": lambda: {"a": Leaf(b=[1, (2, objects.Reduced(lambda self: 1 / 0))])},
    "a reduce that gives nothing": lambda: {"a": Leaf(b=[1, (2, objects.Reduced(lambda self: None))])},
    "what has no reduce": lambda: {"a": Leaf(b=[1, {"c": (sys._getframe(),)}])},
    "what is saved in its parts": _memoized_in_parts,
}


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool | None]]:
    """Record whether each dump that came so far was written at once; None: it was to be saved hook by hook."""
    seen: list[bool | None] = []
    at_once = small.at_once
    monkeypatch.setattr(small, "at_once", lambda *args: seen.append(at_once(*args)) or seen[-1])
    last.much = last.gave_up_for = 0
    yield seen


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", SMALL)
def test_small(name: str, ours: Implementation) -> None:
    """The bytes, the error with its notes, the memo and what another dump finds are stock's."""

    def steps(run: Run) -> None:
        obj = SMALL[name]()
        try:
            run.pickler.dump(obj)
        finally:
            if name != "what has no reduce":
                run.pickler.dump([obj, "another"])

    check(ORACLE, ours, steps, protocols=ALL)
    check(ORACLE, ours, lambda run: run.pickler.dump(SMALL[name]()), protocols=ALL)
    check(ORACLE, ours, steps, protocols=(4,), file=lambda run: PythonFile())


@pytest.mark.parametrize("name", SMALL)
def test_nothing_is_left(name: str) -> None:
    """The pickler has the attributes that stock has, whether or not the dump failed."""
    for cls in (Pure, fastpickle.Pickler):
        for protocol in (2, 4):
            pickler = cls(io.BytesIO(), protocol)
            try:
                pickler.dump(SMALL[name]())
            except Exception:
                pass
            pickler.memo  # noqa: B018  # which C may still have
            assert sorted(vars(pickler)) == sorted(vars(Stock(io.BytesIO(), protocol)))


@pytest.mark.parametrize(("name", "by_python", "with_c"), [
    ("an instance", None, None),
    ("a larger instance", True, True),
    ("an instance in a dict", True, True),
    ("instances", True, False),
    ("dates", True, False),
    ("a date", None, None),
    ("many dates", False, False),
    ("rows with dates", True, False),
    ("a reduce", None, None),
    ("reduces", None, None),
    ("a reduce below", True, True),
    ("a class", None, None),
    ("a large namedtuple", False, False),
    ("a namedtuple", None, None),
    ("exceptions", None, None),
    ("classes and functions", True, False),
    ("long containers", True, False),
])  # fmt: skip
def test_way(name: str, by_python: bool | None, with_c: bool | None, tried: list[bool | None]) -> None:
    """At once what is little; what C writes sooner is left to it; hook by hook what nothing is gained by."""
    Pure(io.BytesIO(), 4).dump(SMALL[name]())
    assert tried == [by_python]
    if CPickler is not None:
        last.forget()
        fastpickle.Pickler(io.BytesIO(), 4).dump(SMALL[name]())
        assert tried == [by_python, with_c]


def _call(x: Any) -> objects.Reduced:
    return objects.Reduced(lambda self: (objects.make, (x,)))


@pytest.mark.parametrize("cls", [Pure, fastpickle.Pickler], ids=["pure", "with C"])
@pytest.mark.parametrize(
    "make",
    [_call, lambda x: [_call(x)], lambda x: {"a": 1, "b": _call(x)}, lambda x: (2, _call(x))],
)
def test_as_the_last_one(make: Callable[[Any], Any], cls: Any, tried: list[bool | None]) -> None:
    """A dump with an object like that of the last one is not looked at, 15 times, 31, ..., unless there was more."""
    for i in range(113):
        tried.clear()
        assert _dumps(cls, make(i), 4) == _dumps(Stock, make(i), 4)
        assert bool(tried) == (i in (0, 16, 48, 112))
    rows = [{"k": i} for i in range(300)]
    for value in (1, rows, 2, rows, [2.5] * 7, "a", [*range(2000)], [[i] for i in range(40)], 3):
        tried.clear()
        assert _dumps(cls, make(value), 4) == _dumps(Stock, make(value), 4)
        if value == 2:  # behind the rows
            assert len(tried) == 1


class _Persistent:
    """Has a `persistent_id` on the class, as well as what dumps by the same pickler, and what takes it away."""

    asked: list[Any]
    inner: Any = None

    def persistent_id(self: Any, obj: Any) -> Any:
        self.asked.append(obj if id(type(obj)) in hooks.ATOM_IDS else type(obj))
        if obj == "inner":
            obj = self.inner
            type(self).inner = None
            if obj is not None:
                self.dump(obj)
        elif obj == "gone":
            del type(self).persistent_id
        elif obj == "raises":
            raise LookupError(obj)
        return 17 if obj == "persistent" else None


#: What is dumped by them, and within that.
PERSISTENT: dict[str, tuple[Any, Any]] = {
    "plain": ({"a": 1, "b": "text", "c": [1, 2, (3, 4)], "d": b"x"}, None),
    "one": (Leaf(), None),
    "objects": ([Leaf(), {"a": Leaf()}, "persistent", Leaf], None),
    "much": ([{"a": i, "b": [str(i)]} for i in range(60)], None),
    "a dump within": (["inner", "text", Leaf()], [1, {"a": Leaf()}]),
    "it goes": ([1, "gone", [Leaf(), "text"], {"a": 1}], None),
    "it raises": ([[1], Leaf(), "raises"], None),
    "empty": ([], None),
}


@pytest.mark.parametrize("name", PERSISTENT)
@pytest.mark.parametrize("protocol", range(6))
def test_persistent_id_of_a_class(name: str, protocol: int) -> None:
    """All goes hook by hook from the beginning, and nothing of that is left."""
    found = []
    obj, inner = PERSISTENT[name]
    for base in (Stock, fastpickle.Pickler, Pure):
        cls: Any = type("P", (_Persistent, base), {"asked": [], "inner": inner})
        cls.persistent_id = _Persistent.persistent_id
        file = io.BytesIO()
        pickler = cls(file, protocol)
        error = ""
        for _ in range(3):
            try:
                pickler.dump(obj)
            except LookupError as exc:
                error = repr(exc)
        assert not [key for key in vars(pickler) if key.startswith("_fastpickle")]
        found.append((file.getvalue(), cls.asked, error, [(i, type(x)) for i, x in pickler.memo.values()]))
    assert found[1] == found[0]
    assert found[2] == found[0]


class _Stateful(Leaf):
    def __reduce__(self) -> Any:
        return objects.make, (1,), {"x": [_call(1), _call(2), (1, 2, 3)], "y": [[1, 2], [3]]}


@pytest.mark.usefixtures("taken_for_little")
@pytest.mark.parametrize("n", [3, 20, 60, 200])
@pytest.mark.parametrize("hook", ["reducer_override", "persistent_id"])
@pytest.mark.parametrize("makes", [lambda: [1] * 15, lambda: _call(1), lambda: {"a": (2, [3])}])
def test_hook_that_saves_much(makes: Callable[[], Any], hook: str, n: int) -> None:
    """And takes itself away: a plan begins while the object it is asked about is not yet saved; nothing is left."""

    def outcome(cls: Any, protocol: int) -> list[Any]:
        file = io.BytesIO()
        pickler = cls(file, protocol)
        seen: list[Any] = []
        for _ in range(2):
            asked = makes()
            much = [_Stateful() for _ in range(n)]

            def hooked(obj: Any, asked: Any = asked, much: list[Any] = much) -> Any:
                if obj is asked:
                    delattr(pickler, hook)
                    for x in much:
                        pickler.save(x)
                return NotImplemented if hook == "reducer_override" else None

            setattr(pickler, hook, hooked)
            pickler.dump([_call(0), asked])
            seen.append(([i for i, _ in pickler.memo.values()], sorted(vars(pickler)), sorted(vars(pickler.framer))))
        return [file.getvalue(), *seen]

    for protocol in ALL:
        assert outcome(fastpickle.Pickler, protocol) == outcome(Stock, protocol)


@pytest.mark.skipif(CPickler is None, reason="what there is below is written at once")
@pytest.mark.parametrize("make", [lambda: {"a": {"b": [(), _call(1)]}}, lambda: [(), (2, [_call(1)]), [_call(2)]]])
def test_below_as_the_last_one(make: Callable[[], Any], tried: list[bool | None]) -> None:
    """What tells it may be in the first container."""
    for _ in range(10):
        assert _dumps(fastpickle.Pickler, make(), 4) == _dumps(Stock, make(), 4)
    assert len(tried) <= 2
    for obj in ([(), [1]], {"a": {"b": [(), 1]}}, [[[[[_call(1)]]]]]):
        tried.clear()
        assert _dumps(fastpickle.Pickler, obj, 4) == _dumps(Stock, obj, 4)
        assert len(tried) == 1


@pytest.mark.usefixtures("taken_for_little")
@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("protocol", ALL)
def test_more_than_in_the_last_one(protocol: int, ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is long is asked whether it is worth a plan, and so is all once much is memoized."""
    begun: list[Any] = []
    begin = pickler_module.begin
    monkeypatch.setattr(
        pickler_module, "begin", lambda pickler, plan, *args: begun.append(plan) or begin(pickler, plan, *args)
    )
    for make, begins in (
        (lambda: _call(1), False),
        (lambda: {"a": [*range(12)], "b": (1,) * 12, "c": Leaf(a=[[1], [2]])}, False),
        (lambda: Leaf(a=[[i] for i in range(13)]), None),
        (lambda: Leaf(a=[*range(300)]), True),
        (lambda: [Leaf(a={i: f"{i}" for i in range(1001)}), [1, 2]], True),
        (lambda: [Leaf(a=[{"k": i} for i in range(300)]), _call([{"k": i} for i in range(300)])], True),
        (lambda: [[[[Leaf(a=f"{i}{j}{k}") for i in range(7)] for j in range(7)] for k in range(7)], _call(1)], None),
        (lambda: [[[_call(f"{i}{j}{k}") for i in range(7)] for j in range(7)] for k in range(7)], None),
        (lambda: {"a": _call(["x" * 30_000] * 3), "b": [f"{i}" * 20_000 for i in range(9)]}, None),
    ):
        begun.clear()

        def steps(run: Run, make: Callable[[], Any] = make) -> None:
            for _ in range(2):
                run.pickler.dump(make())

        check(ORACLE, ours, steps, protocols=(protocol,))
        if begins is not None and protocol >= 2:
            assert any(plan is hooks.FEW for plan in begun) == begins


def test_nothing_is_learned_from_what_c_writes() -> None:
    """Though a pickler that went hook by hook was at the same place."""
    pickler = fastpickle.Pickler(io.BytesIO(), 4)
    last.went_by_hooks = id(pickler)
    pickler.dump([len, Leaf])
    assert not last.few


def test_not_as_the_last_one(tried: list[bool | None]) -> None:
    """Other classes, longer containers, another `save`, a dump within the dump, and a memo that has something in it."""
    for _ in range(2):
        fastpickle.Pickler(io.BytesIO(), 4).dump([_call(1)])
    assert tried == [None]
    for obj in ([Leaf(a=1)], [_call(1)] * 13, {"a": [*range(13)], "b": [_call(1)]}):
        fastpickle.Pickler(io.BytesIO(), 4).dump(obj)
    assert len(tried) == 4

    class Saves(fastpickle.Pickler):
        def save(self, obj: object, save_persistent_id: bool = True) -> None:
            super().save(obj, save_persistent_id)

    class Dumps(fastpickle.Pickler):
        """Begins another dump, of a like object, within a dump."""

        inner: Any = None

        def persistent_id(self, obj: object) -> None:
            inner, self.inner = self.inner, None
            if inner is not None:
                self.dump(inner)

    Saves(io.BytesIO(), 4).dump([_call(1)])
    assert len(tried) == 5
    for base in (Stock, fastpickle.Pickler):
        within: Any = type("Within", (base,), {"inner": None, "persistent_id": Dumps.persistent_id})
        file = io.BytesIO()
        pickler = within(file, 4)
        for _ in range(3):
            pickler.inner = [_call(2)]
            pickler.dump([_call(1), _call(1)])
        if base is Stock:
            expected = file.getvalue()
    assert file.getvalue() == expected
    files = []
    for base in (Stock, fastpickle.Pickler):
        files.append(io.BytesIO())
        pickler = base(files[-1], 4)
        one = _call(1)
        for _ in range(4):
            pickler.dump([one, _call(2)])
    assert files[0].getvalue() == files[1].getvalue()


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_code_that_runs_in_between(ours: Implementation) -> None:
    """It finds the frame, the file and the memo as stock would have them, and may use the pickler."""

    def seen(run: Run) -> None:
        pickler = run.pickler
        frame = pickler.framer.current_frame
        run.record(
            "seen",
            len(pickler.memo),
            None if frame is None else frame.getvalue(),
            [i for i, _ in pickler.memo.values()],
        )

    def saves(run: Run) -> None:
        run.pickler.save({"by": ["itself", Leaf(a=1)]})
        run.pickler.write(b"0")

    def dumps(run: Run) -> None:
        run.pickler.dump(Leaf(a=1))

    def listens(run: Run) -> None:
        run.pickler.persistent_id = lambda obj: run.record("persistent_id", type(obj).__name__)

    def memoizes(run: Run) -> None:
        run.pickler.memoize(_long)

    for act in (seen, saves, dumps, listens, memoizes):
        for around in (
            lambda x: [Leaf(a=1), x, Leaf(b=2), 3],
            lambda x: Leaf(a={"b": (1, x, _long)}, c=_long),
            lambda x: {"a": x, "b": [Leaf(b=2)] * 2},
            lambda x: x,
        ):

            def steps(run: Run, act: Callable[[Run], None] = act, around: Callable[[Any], Any] = around) -> None:
                def value(self: Any) -> Any:
                    act(run)
                    return objects.make, (1, Leaf(z=1))

                run.pickler.dump(around(objects.Reduced(value)))
                run.pickler.dump([1, Leaf(a=1)])

            check(ORACLE, ours, steps, protocols=(0, 2, 4, 5))


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_entries(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that are registered for a type, in each of the tables, and classes that change between two dumps."""

    def registered(run: Run) -> None:
        run.pickler.dispatch_table = {Leaf: lambda obj: (objects.make, (1,)), datetime.date: lambda obj: "function"}
        run.pickler.dump([Leaf(a=1), datetime.date(2020, 1, 1), Below(a=2)])
        run.pickler.dump(Leaf(a=1))

    def dispatched(run: Run) -> None:
        run.pickler.dispatch = {**run.pickler.dispatch, Leaf: lambda pickler, obj: pickler.save([1])}
        run.pickler.dump({"a": Leaf(a=1), "b": Below(a=2)})
        run.pickler.dump(Leaf(a=1))

    def copyregged(run: Run) -> None:
        monkeypatch.setitem(copyreg.dispatch_table, Leaf, lambda obj: (objects.make, (obj.a,)))
        try:
            run.pickler.dump([Leaf(a=1), Below(a=2)])
        finally:
            monkeypatch.undo()
        run.pickler.dump([Leaf(a=1), Below(a=2)])

    def patched(run: Run) -> None:
        run.pickler.dump([Leaf(a=1)])
        monkeypatch.setattr(Leaf, "__getstate__", lambda self: {"b": 5}, raising=False)
        try:
            run.pickler.dump([Leaf(a=1), Below(a=2)])
            run.pickler.dump(Below(a=2))
        finally:
            monkeypatch.undo()

    def moved(run: Run) -> None:
        monkeypatch.setattr(Leaf, "__module__", "no_such_module")
        try:
            run.pickler.dump([1, Leaf(a=1)])
        finally:
            monkeypatch.undo()

    for steps in (registered, dispatched, copyregged, patched, moved):
        check(ORACLE, ours, steps, protocols=ALL, fails=None if steps is not moved else True)


@pytest.mark.parametrize("is_like_last", [False, True])
def test_no_frame_more(is_like_last: bool, request: pytest.FixtureRequest) -> None:
    """Near the recursion limit all is saved that stock saves."""
    if is_like_last:
        request.getfixturevalue("taken_for_little")
    obj = {"a": Leaf(a=[Leaf(b=1)]), "b": objects.GetState(a=1), "c": datetime.date(2020, 1, 1)}
    for root in (obj, Leaf(a=1), objects.GetState(a=1), ValueError("x"), Leaf):
        least = []
        for cls in (Stock, Pure, fastpickle.Pickler):

            def dump(depth: int, cls: Any = cls, root: Any = root) -> None:
                if depth:
                    dump(depth - 1)
                else:
                    cls(io.BytesIO(), 4).dump(root)

            dump(0)
            depth = sys.getrecursionlimit()
            while True:
                depth -= 1
                try:
                    dump(depth)
                    break
                except RecursionError:
                    pass
            least.append(depth)
        assert min(least[1:]) >= least[0]


class _GetNewArgs:
    def __getnewargs__(self) -> tuple[()]:
        return ()


@pytest.mark.skipif(PYPY, reason="how deep its stack is depends on the JIT")
@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("base", [_GetNewArgs, objects.Plain, objects.GetState])
def test_no_frame_more_for_a_new_class(base: type, protocol: int) -> None:
    """Nor where nothing is known of the class, and what is asked of it for the next dump takes more."""

    def fits(cls: Any, room: int) -> bool:
        new = type("New", (base,), {"__reduce__": lambda self: "_glob"} if base is objects.Plain else {})
        new.__module__ = __name__
        global New, _glob
        New = new
        _glob = new()
        last.forget()
        pickler = cls(io.BytesIO(), protocol)
        depth = len(inspect.stack(0))
        limit = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(depth + room)
            pickler.dump(_glob)
        except RecursionError:
            return False
        finally:
            sys.setrecursionlimit(limit)
        return True

    least = next(room for room in range(3, 60) if fits(Stock, room))
    if sys.version_info < (3, 12):
        least += 1  # there calls of C count, too, and a look at the class may take one more
    for cls in (Pure, fastpickle.Pickler):
        assert all(fits(cls, room) for room in range(least, least + 20))


New: Any = None
_glob: Any = None


class _Colour(enum.Enum):
    RED = 1


_leaves = st.sampled_from([
    None, 1, 255, 2**40, 1.5, "a", "text", _long, b"bytes", (), True, Leaf, len, objects.function, _Colour.RED,
    datetime.date(2020, 1, 1), decimal.Decimal(1), uuid.UUID(int=1), range(3), 1j, frozenset([1]), ValueError("x"),
    objects.Reduced(lambda self: (objects.make, (1,))), objects.Typed(1, "a"), Leaf(), Leaf(a=1), objects.GetState(a=1),
    objects.SlottedData(1), collections.Counter("ab"),
])  # fmt: skip
_any_objects = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=6) | st.lists(inner, max_size=5).map(tuple)
    | st.dictionaries(st.sampled_from(["a", "b", "c", "d", 1, 2.5, None]), inner, max_size=5)
    | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4).map(lambda state: _leaf(**state))
    | st.lists(inner, max_size=4).map(collections.deque)
    | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4).map(collections.OrderedDict)
    | st.builds(lambda x: objects.Reduced(lambda self: (objects.make, (x,))), inner),
    max_leaves=25,
)  # fmt: skip


@given(_any_objects, st.sampled_from(ALL))
def test_any_objects(obj: Any, protocol: int) -> None:
    """Bytes and memo are stock's, whatever it is."""
    for base in (Pure, fastpickle.Pickler):
        found = []
        for cls in (Stock, base):
            file = io.BytesIO()
            pickler = cls(file, protocol)
            pickler.dump(obj)
            first = file.getvalue(), [i for i, _ in pickler.memo.values()]
            pickler.dump([obj])
            found.append((*first, file.getvalue(), len(pickler.memo), sorted(vars(pickler))))
        assert found[0] == found[1]


def test_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt leaves a pickler that knows nothing of what was not written."""

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(few, "encode_name", interrupted)
    for obj in ({"a": Leaf(a=1)}, SMALL["a larger instance"]()):
        file = io.BytesIO()
        pickler = Pure(file, 4)
        with pytest.raises(KeyboardInterrupt):
            pickler.dump(obj)
        assert not pickler.memo
        assert not file.getvalue()
        assert pickler._fastpickle_plan is None


def test_a_plan_comes_where_few_turn_out_to_be_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that begins as few objects is not saved hook by hook to its end."""

    def tree(depth: int) -> Any:
        return Two(tree(depth - 1), tree(depth - 1)) if depth else None

    asked = []
    found = hooks.plan
    monkeypatch.setattr(hooks, "plan", lambda pickler: asked.append(pickler) or found(pickler))
    check(ORACLE, PURE, lambda run: run.pickler.dump(Two(tree(8), 1)), protocols=(4,))
    assert asked


def assert_half_of_stocks_time(obj: Any) -> None:
    """Dump it in less than half of stock's time, with the same bytes: once at least, since machines are busy."""
    expected = _dumps(Stock, obj, 4)
    ratios: list[float] = []
    while len(ratios) < 30 and min(ratios, default=1.0) >= 0.5:
        times = []
        for cls in Stock, fastpickle.Pickler:
            began = time.process_time()
            written = _dumps(cls, obj, 4)
            times.append(time.process_time() - began)
            assert written == expected
        ratios.append(times[1] / times[0])
    assert min(ratios) < 0.5, ratios


class Acts:
    """Has a reduce of its own that does more than read: C gives up at it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        _acted.append(self.value)
        return Acts, (self.value,)


_acted: list[Any] = []
#: With objects at which C gives up: so few, or so many of what there is, that no plan is any gain.
FOR_STOCK: dict[str, Callable[[], Any]] = {
    "one": lambda: Acts(1),
    "a list of one": lambda: [Acts(1)],
    "a dict of two": lambda: {"id": 5, "a": Acts(1), "b": Acts("b")},
    "2 rows of two": lambda: [{"a": Acts(i), "b": Acts(i)} for i in range(2)],
    "5 tuples": lambda: [(i, Acts(i)) for i in range(5)],
    "20 rows": lambda: [{"id": i, "name": f"name {i}", "size": i / 2, "value": Acts(i)} for i in range(20)],
    "20 rows, and an instance": lambda: [{"id": i, "a": Acts(i), "b": Leaf(a=i)} for i in range(20)],
    "20 exceptions": lambda: [{"id": i, "error": ImportError(i)} for i in range(20)],
    "60 rows": lambda: [{"id": i, "value": Acts(i)} for i in range(60)],
    "in a dict": lambda: {"a": 1, "b": [1, 2], "c": {"x": Acts(1)}},
    "far inside": lambda: {"a": {"b": {"c": [Acts(1)], "d": 1}, "e": 2}},
}
#: And with as few of them, beside much that C may have, or in it.
FOR_BOTH: dict[str, Callable[[], Any]] = {
    "one beside rows": lambda: {"a": [Acts(1), Acts(2)], "rows": [{"id": i, "x": str(i)} for i in range(300)]},
    "rows with lists": lambda: [{"id": i, "value": Acts(i), "data": [*range(1000)]} for i in range(20)],
    "one gives much": lambda: [{"id": i, "value": Acts([*range(500)])} for i in range(20)],
    "the first of many": lambda: [{"a": Acts(1)}, *({"id": i, "x": str(i)} for i in range(300))],
}


@pytest.mark.parametrize("name", {**FOR_STOCK, **FOR_BOTH})
@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_rows_with_objects_at_which_c_gives_up(ours: Implementation, name: str) -> None:
    """Whichever way they go, by the first dump and the next ones, with one pickler and anew."""
    obj = {**FOR_STOCK, **FOR_BOTH}[name]()

    def dump(run: Run) -> None:
        for x in (obj, obj, [obj], obj, {"a": 1}):
            _acted.clear()
            run.pickler.dump(x)
            run.record("acted", [*_acted])

    for _ in range(2):
        check(ORACLE, ours, dump)


@pytest.mark.skipif(PYPY or CPickler is None, reason="there is nobody to be asked")
@pytest.mark.parametrize("name", sorted(FOR_STOCK.keys() - {"60 rows"}))  # of so many the last ones are written at once
def test_nobody_is_asked_about_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once C has given up at an object of the class, the pickler is not even looked at for the next ones.

    But if it is all that is dumped: once, so that what its reduce gave is written at once.
    """
    obj = FOR_STOCK[name]()
    for _ in range(2):
        _dumps(fastpickle.Pickler, obj, 4)
    asked: list[Any] = []
    found = hooks.plan
    monkeypatch.setattr(hooks, "plan", lambda pickler: asked.append(pickler) or found(pickler))
    assert _dumps(fastpickle.Pickler, obj, 4) == _dumps(Stock, obj, 4)
    assert len(asked) == (type(obj) not in (list, tuple, dict))


@pytest.mark.skipif(PYPY or CPickler is None, reason="there is no C pickler")
@pytest.mark.parametrize("name", FOR_BOTH)
def test_c_writes_what_is_beside_them(name: str) -> None:
    assert_half_of_stocks_time(FOR_BOTH[name]())


def test_class_that_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found of a class is not taken for what it is after another reduce has been given to it, or none."""

    def other(self: Any) -> Any:
        _acted.append("other")
        return Leaf, ()

    def reads(self: Any) -> Any:
        return Acts, (self.value,)

    reduce = Acts.__reduce__
    for own in (reduce, other, reads, None, other, reads, reduce):
        if own is None:
            monkeypatch.delattr(Acts, "__reduce__")
        else:
            monkeypatch.setattr(Acts, "__reduce__", own, raising=False)
        assert likely.is_somebodys(Acts) is (own is other or own is reduce)
        assert likely.only_reads(Acts) or own is not reads
        assert not (likely.only_reads(Acts) and own is None)
        for make in FOR_STOCK.values():
            assert _dumps(fastpickle.Pickler, make(), 4) == _dumps(Stock, make(), 4)


@pytest.mark.skipif(PYPY, reason="C is never asked there")
def test_like_what_c_gave_up_for() -> None:
    """It is found in whatever it is, as long as that is little; in what contains itself, too."""
    itself: list[Any] = [1]
    itself.append(itself)
    for obj, expected in (
        ([], 0), ({}, 0), (Acts(1), 0), ({Acts(1)}, 0), ([Acts(1)], 2), ({"a": {"b": ([Acts(1)],)}}, 2), (itself, 0),
        ([itself, Acts(1)], 1), ([Acts(1), [0] * 50], 1), ([[0] * 50, Acts(1)], 1),
        ([[0] * 20, [0] * 16, [Acts(1)]], 2), ([[0] * 20, [0] * 17, [Acts(1)]], 0),
        ([[0] * 20, [0] * 20, [0] * 20, [Acts(1)]], 0), ([0] * 24 + [Acts(1)], 0), ([[0] * 50, [Acts(1)]], 0),
    ):  # fmt: skip
        last.remember_gave_up(id(Acts))
        assert last.is_like(obj, type(obj)) == expected, obj


def test_class_that_c_gave_up_for_is_asked_about_again() -> None:
    """It may have been for another dump: after some looks, more each time that it gives up again."""
    looks = []
    for _ in range(3):
        last.remember_gave_up(id(Acts))
        looks.append(0)
        while last.gives_up_at(Acts):
            looks[-1] += 1
        assert last.is_like([Acts(1)], list) == 0
    assert looks == [16, 32, 64]
    last.remember_gave_up(id(str))
    assert sum(last.is_like([""], list) for _ in range(99)) == 2 * looks[0]


def test_what_c_gave_up_is_forgotten_behind_plain_data() -> None:
    """Each dump of a library is looked at before C is asked, until some of plain data have come."""
    last.remember_refused([Acts(1)], list)
    for _ in range(16):
        assert last.refused
        assert is_for_librarys([1], list)
    assert not last.refused
    last.remember_refused([Acts(1)], list)
    assert not is_for_librarys([Acts(2)], list)


@pytest.mark.parametrize("name", SMALL)
def test_dill(name: str, a_part_of: APartOf) -> None:
    """The bytes are dill's, by its own functions and picklers, and by those of the backend."""
    dill = pytest.importorskip("dill")
    dill.extend(False)
    from fastpickle.backends import dill as backend  # noqa: PLC0415  # it needs dill

    def dumps(cls: Any, obj: Any, protocol: int) -> bytes:
        file = io.BytesIO()
        pickler = cls(file, protocol)
        pickler.dump(obj)
        pickler.dump([obj, 1])
        return file.getvalue()

    arounds = (
        lambda x: x,
        lambda x: [x, {"a": 1}],
        lambda x: {"a": x, "__name__": "sys"},
        lambda x: {"a": x, "b": vars(colorsys), **dict.fromkeys(range(5))},
        lambda x: {"a": 1, "b": x, "n": len(vars(sys.modules["__main__"]))},
        lambda x: [dict.fromkeys(range(len(vars(sys.modules["__main__"])))), x],
    )
    for around in a_part_of(arounds):
        for protocol in (2, 4, 5):
            obj = around(SMALL[name]())
            try:
                expected = dill.dumps(obj, protocol)
                expected_twice = dumps(dill.Pickler, obj, protocol)
            except Exception as exc:
                for function in (dill.dumps, backend.dumps):
                    with fastpickle.patched(), pytest.raises(type(exc)):
                        function(obj, protocol)
                continue
            with fastpickle.patched():
                assert dill.dumps(obj, protocol) == expected
                assert dumps(dill.Pickler, obj, protocol) == expected_twice
            assert backend.dumps(obj, protocol) == expected
            assert dumps(backend.Pickler, obj, protocol) == expected_twice


class Names:
    """Is one of many classes, the names of which do not fit into a frame together."""


_CLASSES = [type(f"{'n' * 480}_{i}", (Names,), {"__module__": __name__}) for i in range(120)]
globals().update({c.__name__: c for c in _CLASSES})


class _Counted(dict):  # type: ignore[type-arg]
    """Is the `__dict__` of an instance, and counts what it is asked."""

    asked = 0

    def __bool__(self) -> bool:
        type(self).asked += 1
        return True

    def values(self) -> Any:
        """Count this, too."""
        type(self).asked += 1
        return super().values()


class _Flags(type):
    """Has flags of its own."""

    @property
    def __flags__(cls) -> int:
        raise LookupError


class _OfFlags(metaclass=_Flags):
    """Has that metaclass."""


class _NoLength:
    """Is a memo that has no length, since nobody asks for it."""

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}

    def get(self, key: int) -> Any:
        """Find an object."""
        return self.found.get(key)

    def __contains__(self, key: int) -> bool:
        return key in self.found

    def __getitem__(self, key: int) -> Any:
        return self.found[key]


def _reduced_once(run: Run, obj: Any, name: str, value: Callable[[], Any]) -> Any:
    def reduce(*args: Any) -> Any:
        run.record("reduce", name)
        return value()

    setattr(obj, name, reduce)
    return obj


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_reduces_of_instances_run_once(ours: Implementation, a_part_of: APartOf) -> None:
    """What an instance of a builtin type has of its own is asked as often as by stock, whatever comes of it."""
    values = (
        lambda: "function",
        lambda: (objects.make, (1,)),
        lambda: (objects.make,),
        lambda: 1 / 0,
        lambda: None,
    )
    for value in a_part_of(values):
        for make, name in (
            (lambda: ValueError(1), "__reduce__"),
            (lambda: ValueError(1), "__reduce_ex__"),
            (lambda: types.SimpleNamespace(a=1), "__reduce_ex__"),
            (lambda: collections.OrderedDict(a=1), "items"),
            (lambda: collections.OrderedDict(a=1), "__getstate__"),
            (lambda: functools.partial(len), "__reduce__"),
            (Leaf, "__reduce_ex__"),
        ):
            for around in (
                lambda x: x,
                lambda x: [x],
                lambda x: Leaf(a=1, b=x),
                lambda x: [Leaf(), [x]],
                lambda x: {"a": Leaf(), "b": {"c": x}},
            ):

                def steps(
                    run: Run, value: Any = value, make: Any = make, name: str = name, around: Any = around
                ) -> None:
                    run.pickler.dump(around(_reduced_once(run, make(), name, value)))

                check(ORACLE, ours, steps, protocols=(2, 4))


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_frames(ours: Implementation) -> None:
    """Names, texts of sets and numbers count, too: no frame has more in it than stock's."""
    some = [_CLASSES[i : i + 40] for i in range(0, 120, 40)]
    last_one = [objects.Reduced(lambda self: "function")]
    for obj in (
        Leaf(a=some, t="x" * 24_000, z=last_one),
        Leaf(a=some, b=[c() for c in _CLASSES[:40]], z=last_one),
        Leaf(a=[{f"{'s' * 60}{i}{j}" for i in range(24)} for j in range(40)], t="x" * 24_000, z=last_one),
        [Leaf(a=[c(), Leaf(b=2**60)], t=f"{'t' * 200}{i}") for i, c in enumerate(_CLASSES[:47])],
        {"a": some, "t": "x" * 24_500, "u": Leaf(v="v" * 70_000), "z": last_one},
    ):
        check(ORACLE, ours, lambda run, obj=obj: run.pickler.dump(obj), protocols=(4,))


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_what_the_reduce_of_object_asks(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """`copyreg.__newobj__` and `_slotnames` are asked for, and a class is left with the names of its slots."""

    def leaves_names(run: Run) -> None:
        new = type("_New", (), {"__module__": __name__, "__qualname__": "_New"})
        globals()["_New"] = new
        for make in (lambda: [new()], lambda: new()):
            obj = make()
            getattr(obj[0] if isinstance(obj, list) else obj, "__dict__")["a"] = 1  # noqa: B009  # as a state
            run.pickler.dump(obj)
            run.record("names", vars(new).get("__slotnames__"))
            if "__slotnames__" in vars(new):
                del new.__slotnames__  # type: ignore[attr-defined]

    def other_newobj(run: Run) -> None:
        monkeypatch.setattr(copyreg, "__newobj__", objects.make)
        try:
            run.pickler.dump([Leaf(a=1)])
            run.pickler.dump(Leaf(a=1))
        finally:
            monkeypatch.undo()

    def other_slotnames(run: Run) -> None:
        monkeypatch.setattr(copyreg, "_slotnames", lambda cls: run.record("slots", cls.__name__) or [])
        if "__slotnames__" in vars(Below):
            del Below.__slotnames__  # type: ignore[attr-defined]
        try:
            run.pickler.dump([Below(a=1)])
        finally:
            monkeypatch.undo()

    for steps in (leaves_names, other_newobj, other_slotnames):
        check(ORACLE, ours, steps, protocols=(2, 4))


def test_nothing_of_others_is_asked() -> None:
    """Neither a dict that is the `__dict__` of an instance, nor the flags of a class, nor the length of a memo."""
    odd = Leaf()
    odd.__dict__ = _Counted(a=1)
    for obj in (odd, [odd], Leaf(a=odd)):
        for cls in (Pure, fastpickle.Pickler):
            _Counted.asked = 0
            cls(io.BytesIO(), 4).dump(obj)
            assert not _Counted.asked
    for obj in (_OfFlags(), [[_OfFlags()]], {"a": [_OfFlags()], "b": 1}, Leaf(a=_OfFlags()), [_OfFlags()] * 60):
        for dumps in (fastpickle.dumps, lambda obj, protocol: _dumps(Pure, obj, protocol)):
            assert dumps(obj, 4) == _dumps(Stock, obj, 4)
    for base in (Stock, Pure, fastpickle.Pickler):

        class Own(base):  # type: ignore[misc, valid-type]
            def memoize(self, obj: object) -> None:
                self.memo.found[id(obj)] = len(self.memo.found), obj
                self.write(b"\x94")

        pickler = Own(io.BytesIO(), 4)
        pickler.memo = _NoLength()
        pickler.dump([objects.Reduced(lambda self: (objects.make, (1,)))] * 2)


def _dumps(cls: Any, obj: Any, protocol: int) -> bytes:
    file = io.BytesIO()
    cls(file, protocol).dump(obj)
    return file.getvalue()


def _tree(depth: int, width: int, make: Callable[[list[Any]], Any]) -> Any:
    return make([_tree(depth - 1, width, make) for _ in range(width)] if depth else [1])


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler")
@pytest.mark.parametrize("root", [
    lambda x: [objects.SlottedData(x)],
    lambda x: objects.SlottedData(x),
    lambda x: objects.Typed(x, 1),
    lambda x: [objects.Typed(x, 1)],
    lambda x: {"a": objects.Colour.RED, "b": x},
    lambda x: {"b": x, "a": objects.Colour.RED},
    lambda x: collections.OrderedDict(a=x),
    lambda x: [collections.OrderedDict(a=x), datetime.date(2020, 1, 1)],
    lambda x: {"a": datetime.date(2020, 1, 1), "b": [x]},
])  # fmt: skip
def test_c_writes_what_is_below(root: Callable[[Any], Any]) -> None:
    """A few objects do not keep C from what it may write, however little it is that holds it."""
    for make in (lambda x: Leaf(a=x, b=1), lambda x: (x, 1), objects.SlottedData):
        obj = root(_tree(8, 2, make))
        assert_half_of_stocks_time(obj)


class _Memo(Stock):  # type: ignore[misc]  # its base is private to the stdlib
    """Counts how often its memo is asked for."""

    asked = 0

    @property
    def memo(self) -> Any:
        _Memo.asked += 1
        return vars(self)["_memo"]

    @memo.setter
    def memo(self, value: Any) -> None:
        vars(self)["_memo"] = value


def _asked(obj: Any) -> int:
    _Memo.asked = 0
    _Memo(io.BytesIO(), 4).dump(obj)
    return _Memo.asked


def test_memo_is_asked_for_as_often() -> None:
    """In a dump that is taken to be like the last one, too."""
    obj = [Calls(), [[1], [2], [3], [4]], {"a": [1], "b": 1, "c": 1, "d": 1}, (1, 2, 3, 4)]
    expected = _asked(obj)
    with fastpickle.patched():
        for _ in range(3):
            Stock(io.BytesIO(), 4).dump([Calls(), 1])
        assert [_asked(obj) for _ in range(3)] == [expected] * 3


class Calls:
    """Has a reduce that calls something."""

    called: Callable[[], Any] = list

    def __reduce__(self) -> Any:
        Calls.called()
        return Calls, ()


@pytest.mark.skipif(not DILL_PICKLES_CODE, reason="dill pickles no code objects there")
def test_dump_within_a_dump_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered is the `save` of the pickler that went hook by hook: another one may be anybody's."""
    dill = pytest.importorskip("dill", reason="dill is not installed")

    class Own(Stock):  # type: ignore[misc]  # as above
        def save(self, obj: Any, save_persistent_id: bool = True) -> None:
            super().save(obj, save_persistent_id)

    monkeypatch.setattr(Calls, "called", lambda: dill.dumps(lambda: [obj]))
    obj = {"a": [1]}
    with fastpickle.patched():
        for _ in range(3):
            Own(io.BytesIO(), 4).dump([Calls(), 1, 2])
    assert Own.save not in last.few
