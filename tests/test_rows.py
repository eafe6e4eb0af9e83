"""Rows of objects with somebody's reduces: whatever one of them does counts from there on."""

from __future__ import annotations

import bisect
import collections
import copyreg
import datetime
import decimal
import fractions
import functools
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oracle.allowed import ATOMS, PYPY
from oracle.compare import ALL, describe_error
from oracle.parts import APartOf

import fastpickle
from fastpickle._stdlib import StockPickler
from fastpickle.engine import loop, rows
from fastpickle.objects.last import last

pytestmark = pytest.mark.skipif(PYPY, reason="its pickler is another one (fastpickle.pypy)")
try:
    import dill
except ImportError:
    _Base: Any = StockPickler
else:
    _Base = dill.Pickler
    dill.extend(False)


class _Stock(StockPickler):  # type: ignore[misc]  # its class is private to the stdlib
    """A pickler whose class somebody may change."""


class _Dill(_Base):  # type: ignore[misc]  # dill has no types
    """The same of dill's, if there is one."""


PICKLERS = [_Stock, _Dill]
#: What an object's reduce does before it gives something, and what was seen.
_act: Callable[[Any], Any] = id
seen: list[Any] = []


class Part:
    """Has a reduce that does anything, and gives a call with a number and a text."""

    gives: Any = None

    def __init__(self, number: int = 0, text: str = "") -> None:
        self.number = number
        self.text = text

    def __reduce__(self) -> Any:
        seen.append(self.number)
        _act(self)
        return Part, (self.number, self.text) if self.gives is None else self.gives(self)


class Other(Part):
    """Gives what is found under another name."""

    def __reduce__(self) -> Any:
        super().__reduce__()
        return make, (self.number,)


class Stateful(Part):
    """Has a default reduce, with a state of its own."""

    def __reduce__(self) -> Any:
        return object.__reduce__(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        seen.append(self.number)
        _act(self)
        return copyreg.__newobj__, (type(self),), {"number": self.number, "text": self.text}  # type: ignore[attr-defined]  # unknown to typeshed


class Any_(Part):
    """Gives anything."""

    def __reduce__(self) -> Any:
        seen.append(self.number)
        _act(self)
        return self.gives(self)


def _values(number: int) -> tuple[Any, ...]:
    """Return some whose reduces run nobody's code, and one whose reduce is Python."""
    day = datetime.date(2020, 1, 1) + datetime.timedelta(number)
    return day, f"{number}", decimal.Decimal(number), complex(number), fractions.Fraction(number, 7)


def make(number: int) -> Part:
    """Make one."""
    return Part(number)


def _parts(n: int, cls: Any = Part) -> list[Any]:
    return [cls(i, f"text {i}") for i in range(n)]


@pytest.fixture(autouse=True)
def undone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is remembered."""
    monkeypatch.setitem(globals(), "_act", id)
    last.forget()
    yield
    last.forget()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items each row took."""
    found: list[int] = []

    def save_row(pickler: Any, plan: Any, items: Any) -> Any:
        before = items.__length_hint__()
        try:
            return rows.save_row(pickler, plan, items)
        finally:
            found.append(before - items.__length_hint__())

    monkeypatch.setattr(loop, "save_row", save_row)
    return found


def _dump(cls: Any, obj: Any, protocol: int, act: Callable[[Any, Any], Any] | None = None) -> Any:
    """Return all that can be seen of a dump, and of one more."""
    file = io.BytesIO()
    pickler = cls(file, protocol)
    seen.clear()
    globals()["_act"] = id if act is None else lambda part: act(pickler, part)
    errors = []
    for what in (obj, [1, "more", obj]):
        try:
            pickler.dump(what)
        except Exception as exc:
            errors.append(describe_error(exc))
    memo = getattr(pickler, "memo", None)
    kept = [(x[0], type(x[1])) for x in memo.values()] if type(memo) is dict else type(memo)
    return file.getvalue(), errors, [*seen], kept, sorted(vars(pickler))


def _check(
    cls: Any,
    build: Callable[[], Any],
    act: Callable[[Any, Any], Any] | None = None,
    protocol: int = 4,
    undo: Callable[[], None] = lambda: None,
) -> None:
    expected = _dump(cls, build(), protocol, act)
    undo()
    with fastpickle.patched():
        for _ in range(2):
            got = _dump(cls, build(), protocol, act)
            undo()
            assert got == expected


WHERE: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda parts: parts,
    "tuple": tuple,
    "dict": lambda parts: {f"key {x.number}": x for x in parts},
    "numbers as keys": lambda parts: {x.number: x for x in parts},
    "within": lambda parts: [{"a": [0, parts]}, parts[3]],
    "beside atoms": lambda parts: [y for x in parts for y in (x, x.number, None, x.text, 1.5, True, b"bytes", 1 << 70)],
    "beside a surrogate": lambda parts: [*parts, "\ud800", *parts[5:], parts[0]],
    "beside a long text": lambda parts: [*parts, "x" * 70_000, Part(-1), b"y" * 70_000, *_parts(5)],
    "beside containers": lambda parts: [y for x in parts for y in (x, [x.number], (x.text,), {})],
    "with values": lambda parts: [y for x in parts for y in (x, *_values(x.number))],
    "beside values": lambda parts: [y for x in parts for y in (*_values(x.number), *_values(-x.number), [x])],
    "twice": lambda parts: [y for x in parts for y in (x, x)],
    "of three classes": lambda parts: [
        (Other, Stateful, Part)[x.number % 3](x.number, x.text) for x in (*parts, *parts)
    ],
}


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("n", [4, 20, 300])
def test_same(n: int, where: str, cls: Any, taken: list[int]) -> None:
    for protocol in ALL if n == 20 else (4, 5):
        for kind in (Part, Other, Stateful):
            _check(cls, lambda kind=kind: WHERE[where](_parts(n, kind)), protocol=protocol)  # type: ignore[misc]  # it has a default
    if n == 300:
        assert max(taken) > 100 or where.startswith("beside ")


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
@pytest.mark.parametrize("n", [2, 16, 300])
def test_values(n: int, cls: Any, taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all reduces are nobody's, the pickler is looked at for the row alone; where there is none, seldom."""
    monkeypatch.setattr(fastpickle.Pickler, "fastpickle_grafts", False)
    for protocol in ALL:
        for first, last_ in ((0, 2), (2, 4), (2, 3), (3, 5)):
            _check(cls, lambda: [y for i in range(n) for y in _values(i)[first:last_]], protocol=protocol)
    if n == 300:
        assert max(taken) > 500

    looks = []

    class Asked(frozenset[int]):
        def __contains__(self, key: object) -> bool:
            looks.append(key)
            return super().__contains__(key)

    monkeypatch.setattr(rows, "ATOM_IDS", Asked(rows.ATOM_IDS))
    ordered = collections.OrderedDict(a=1)
    _check(cls, lambda: [y for i in range(n) for y in (decimal.Decimal(i), ordered.copy())])
    assert len(looks) <= 30 * 4  # in four dumps


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
@pytest.mark.parametrize("size", [1, 200, 1000, 20_000])
def test_frames(size: int, cls: Any, a_part_of: APartOf) -> None:
    """Wherever the frame is full: before an object, or within what its reduce gave."""
    for shift in a_part_of(range(0, 600, 7)):
        for kind in (Part, Stateful):
            _check(cls, lambda: ["x" * (65_536 - 2000 - shift), *(kind(i, f"{i}" * size) for i in range(90))])


#: What else a reduce may give.
GIVES: dict[str, Callable[[Any], Any]] = {
    "no arguments": lambda x: (Part, ()),
    "four arguments": lambda x: (make, (1, 2, x.number, "a")),
    "a list": lambda x: (Part, ([x.number],)),
    "the same arguments": lambda x: (make, _ARGS),
    "itself": lambda x: (make, (x,)) if x.number < 0 else (make, ([x],)),
    "a text that is met again": lambda x: (Part, ("text", str(x.number % 3))),
    "large numbers": lambda x: (make, (1 << (x.number * 9),)),
    "a very large number": lambda x: (make, (1 << 9000,)),
    "surrogates": lambda x: (make, (f"\ud800{x.number}",)),
    "a long text": lambda x: (make, ("x" * 20_000,)),
    "no tuple": lambda x: [make, (1,)],
    "a tuple of its own": lambda x: _Tuple((make, (1,))),
    "a name": lambda x: "make",
    "None": lambda x: None,
    "one": lambda x: (make,),
    "seven": lambda x: (make, (1,), None, None, None, None, 1),
    "arguments that are none": lambda x: (make, [1]),
    "what cannot be called": lambda x: (5, (1,)),
    "what has no name": lambda x: (_Callee(), (1,)),
    "a name that is another's": lambda x: (__newobj__, (Part, 1)),
    "a state": lambda x: (make, (1,), {"a": x.number}),
    "a state and items": lambda x: (list, (), None, iter([x.number])),
    "sometimes a state": lambda x: (make, (1,), {"a": [x.number]}) if x.number % 5 == 4 else (make, (x.number,)),
    "sometimes another function": lambda x: (len if x.number % 5 == 4 else make, (x.text,)),
    "sometimes what raises": lambda x: (make, (lambda: 1,)) if x.number == 15 else (make, (x.number,)),
}
_ARGS = (5, "arguments")


class _Tuple(tuple[Any, ...]):
    """Of a class of its own."""

    __slots__ = ()


class _Callee:
    """Is asked for its name."""

    def __call__(self, *args: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        seen.append(name)
        raise AttributeError(name)

    def __reduce__(self) -> Any:
        return _Callee, ()


def __newobj__(cls: Any, *args: Any) -> Any:  # stock goes by the name
    return cls.__new__(cls, *args)


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
@pytest.mark.parametrize("name", GIVES)
def test_what_is_given(name: str, cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Any_, "gives", lambda self: GIVES[name](self))
    for n in (3, 20, 60):
        for protocol in (2, 4):
            _check(cls, lambda: _parts(n, Any_), protocol=protocol)
            _check(cls, lambda: [y for x in _parts(n) for y in (x, Any_(x.number, x.text))], protocol=protocol)


def _logged(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if type(args[-1]) not in ATOMS or function.__name__ != "reducer_override":  # see oracle.allowed
            seen.append(("called", type(args[-1]).__name__))
        return function(*args, **kwargs)

    return call


def _set(name: str) -> Callable[[Any, Any], None]:
    def reducer_override(obj: Any) -> Any:
        return NotImplemented

    def act(pickler: Any, part: Any) -> None:
        function = getattr(pickler, name, reducer_override)
        setattr(pickler, name, _logged(function) if callable(function) else 100)

    return act


def _pid(obj: Any) -> Any:
    return "pid" if obj == "text 9" else None


def _own_dispatch(pickler: Any, *types: type) -> None:
    pickler.dispatch = {**pickler.dispatch, **dict.fromkeys(types, _as_text)}


def _as_text(pickler: Any, obj: Any) -> None:
    seen.append(("entry", type(obj).__name__))
    pickler.write(b"N")


def _renamed(pickler: Any, part: Any) -> None:
    Part.__name__ = "ndarray"
    Part.__module__ = "numpy"


class _FramerOfItsOwn(type(_Stock(io.BytesIO()).framer)):  # type: ignore[misc]  # its class is private
    pass


class _CommittingFramer(type(_Stock(io.BytesIO()).framer)):  # type: ignore[misc]  # as above
    def commit_frame(self, force: bool = False) -> None:
        seen.append("commit")
        super().commit_frame(force)


class _Watching(_Stock):
    def persistent_id(self, obj: Any) -> Any:
        seen.append(("pid", type(obj).__name__))


class _WatchingDill(_Dill):
    def persistent_id(self, obj: Any) -> Any:
        seen.append(("pid", type(obj).__name__))


def _of_its_own(pickler: Any, part: Any) -> None:
    pickler.framer.__class__ = _FramerOfItsOwn


#: What a reduce may do to its pickler, or to what is dumped.
ACTS: dict[str, Callable[[Any, Any], Any]] = {
    **{f"sets {name}": _set(name) for name in (
        "save", "memoize", "put", "get", "save_reduce", "_batch_appends", "_batch_setitems", "_BATCHSIZE", "write",
        "reducer_override", "save_global", "save_str",
    )},
    "sets persistent_id": lambda p, x: setattr(p, "persistent_id", _pid),
    "raises": lambda p, x: 1 / 0,
    "has an entry for str": lambda p, x: _own_dispatch(p, str),
    "has an entry for tuple": lambda p, x: _own_dispatch(p, tuple),
    "has an entry for int": lambda p, x: _own_dispatch(p, int),
    "has an entry for dict": lambda p, x: _own_dispatch(p, dict),
    "has an entry for Part": lambda p, x: _own_dispatch(p, Part),
    "has a table": lambda p, x: setattr(p, "dispatch_table", {Part: lambda x: (make, (77,))}),
    "has an empty table": lambda p, x: setattr(p, "dispatch_table", {}),
    "forgets": lambda p, x: p.clear_memo(),
    "has another memo": lambda p, x: setattr(p, "memo", dict(p.memo)),
    "has no memo": lambda p, x: delattr(p, "memo"),
    "forgets the class": lambda p, x: p.memo.pop(id(Part)),
    "memoizes a number": lambda p, x: p.memo.setdefault(id(7), (len(p.memo), 7)),
    "memoizes itself": lambda p, x: p.memoize(x),
    "is fast": lambda p, x: setattr(p, "fast", True),
    "has another protocol": lambda p, x: setattr(p, "proto", 2),
    "is not binary": lambda p, x: setattr(p, "bin", 0),
    "has another framer": lambda p, x: setattr(p, "framer", type(p.framer)(p.framer.file_write)),
    "has a framer of its own": _of_its_own,
    "commits": lambda p, x: p.framer.commit_frame(force=True),
    "saves": lambda p, x: p.save(("within", [Part(-1), x.number])),
    "saves many": lambda p, x: x.number >= 0 and p.save([Part(-i) for i in range(1, 60)]),
    "dumps": lambda p, x: x.number >= 0 and fastpickle.dumps([Part(-1), x.text]),
    "is another": lambda p, x: setattr(x, "__class__", Other),
    "hides": lambda p, x: setattr(Part, "__reduce_ex__", lambda self, proto: (make, (8,))),
    "reads the class in its own way": lambda p, x: setattr(
        Part, "__class__", property(lambda self: (seen.append("class"), Part)[1])
    ),
    "is renamed": _renamed,
    "is of another class": lambda p, x: setattr(p, "__class__", _Watching if type(p) is _Stock else _WatchingDill),
    "has a number for a protocol": lambda p, x: setattr(p, "proto", 4.0),
    "has a framer that commits": lambda p, x: setattr(p.framer, "__class__", _CommittingFramer),
}  # fmt: skip


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
@pytest.mark.parametrize("name", ACTS)
def test_what_a_reduce_does(name: str, cls: Any, a_part_of: APartOf) -> None:
    """At the first, in the middle, at the last, and at each of them."""

    def undo() -> None:
        for changed in ("__reduce_ex__", "__class__"):
            if changed in vars(Part):
                delattr(Part, changed)
        Part.__name__ = "Part"
        Part.__module__ = __name__

    for numbers in a_part_of(([0], [1], [2], [11], [39], range(40))):
        done = []

        def act(pickler: Any, part: Any, numbers: Any = numbers, done: Any = done) -> None:
            if part.number in numbers and len(done) < 200:
                done.append(part)
                ACTS[name](pickler, part)

        for kind in (Part, Stateful):
            for build in (
                lambda: _parts(40, kind),
                lambda: {x.text: x for x in _parts(40, kind)},
                lambda: [y for x in _parts(40, kind) for y in (*_values(x.number)[:3], x)],
            ):
                _check(cls, build, act, undo=lambda: (undo(), done.clear())[0])


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
@pytest.mark.parametrize(
    "name", ["save", "memoize", "put", "get", "persistent_id", "save_reduce", "_batch_setitems", "__getattr__"]
)
def test_class_that_a_reduce_changes(name: str, cls: Any) -> None:
    original = getattr(cls, name, None)

    def hook(self: Any, *args: Any, **kwargs: Any) -> Any:
        if original is None:
            if args[0] != "reducer_override":  # which is asked about atoms, too, by stock (see oracle.allowed)
                seen.append(args)
            raise AttributeError(*args)
        seen.append(type(args[0]).__name__)
        return original(self, *args, **kwargs)

    def act(pickler: Any, part: Any) -> None:
        if part.number == 15:
            setattr(cls, name, hook)

    def undo() -> None:
        if name in vars(cls):
            delattr(cls, name)

    for kind in (Part, Stateful):
        _check(cls, lambda: _parts(40, kind), act, undo=undo)


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
def test_classes_with_an_entry_that_goes_away(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances of a metaclass are saved by their names then."""

    class Meta(type):
        pass

    classes = [Meta(f"Class{i}", (), {"__module__": __name__}) for i in range(30)]
    for one in classes:
        monkeypatch.setitem(globals(), one.__name__, one)

    def reduce(one: Any) -> Any:
        if one is classes[7]:
            copyreg.dispatch_table.pop(Meta, None)
        return make, (1,)

    def build() -> Any:
        copyreg.dispatch_table[Meta] = reduce
        return [*classes]

    _check(cls, build, undo=lambda: copyreg.dispatch_table.pop(Meta, None) and None)


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
def test_protocol_that_changes(cls: Any) -> None:
    """It is read where stock reads it: once the object has been asked for its reduce."""

    class Asked(Part):
        def __getattribute__(self, name: str) -> Any:
            if name == "__reduce_ex__" and object.__getattribute__(self, "number") == 15:
                _act(self)
            return object.__getattribute__(self, name)

        def __reduce_ex__(self, protocol: Any) -> Any:
            seen.append(protocol)
            return make, (1,)

    _check(cls, lambda: [Asked(i) for i in range(30)], lambda pickler, part: setattr(pickler, "proto", 5))


def test_metaclass_is_not_compared() -> None:
    class Compared(type):
        def __eq__(cls, other: object) -> bool:
            seen.append("eq")
            return cls is other

        __hash__ = type.__hash__

    class Meta(type, metaclass=Compared):
        pass

    class Of(metaclass=Meta):
        def __reduce__(self) -> Any:
            return make, (1,)

    for cls in PICKLERS:
        for n in (3, 40):
            _check(cls, lambda: [1, {"a": 2}, [Of() for _ in range(n)], [3]])
            _check(cls, lambda: [Of() for _ in range(n)])


class _Nested:
    """Gives its items by an iterator over a list."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __reduce__(self) -> Any:
        return list, (), None, iter(self.held)


@pytest.mark.parametrize("siblings", [1, 16, 20, 60])
def test_as_deep_as_stock(siblings: int, a_part_of: APartOf) -> None:
    """A plan takes no Python frame more, whatever is beside what is deep."""

    def can_dump(depth: int) -> bool:
        found: Any = None
        for _ in range(depth):
            found = _Nested([*(_Nested([]) for _ in range(siblings)), *([] if found is None else [found])])
        try:
            _Stock(io.BytesIO(), 4).dump(found.held)
        except RecursionError:
            return False
        return True

    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(300)
        deepest = bisect.bisect(range(1, 64), False, key=lambda depth: not can_dump(depth))
        for more in a_part_of(range(6)):
            sys.setrecursionlimit(300 + more)
            while can_dump(deepest + 1):
                deepest += 1
            with fastpickle.patched():  # 3.10 counts calls of C, too, and a plan took one more there before
                assert can_dump(deepest - (sys.version_info < (3, 11))), more
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
def test_list_that_changes(cls: Any) -> None:
    """A list that grows, or shrinks, or is cleared, while it is saved."""
    for change in (
        lambda obj: obj.append(Part(100)),
        lambda obj: obj.pop(),
        lambda obj: obj.clear(),
        lambda obj: obj.insert(0, 5),
    ):
        obj: list[Any] = []

        def build(obj: Any = obj) -> Any:
            obj[:] = _parts(30)
            return obj

        def act(pickler: Any, part: Any, obj: Any = obj, change: Any = change) -> None:
            if part.number in (3, 17):
                change(obj)

        _check(cls, build, act)


@pytest.mark.parametrize("cls", PICKLERS, ids=("stock", "dill"))
def test_file(cls: Any) -> None:
    """A file that is written to by somebody's function sees each write at the same time."""

    class File:
        def __init__(self) -> None:
            self.pieces: list[Any] = []

        def write(self, data: Any) -> None:
            seen.append(("write", len(data)))
            self.pieces.append(bytes(data))

        def getvalue(self) -> bytes:
            return b"".join(self.pieces)

    def dump(protocol: int) -> Any:
        file = File()
        seen.clear()
        cls(file, protocol).dump([Part(i, "x" * 3000) for i in range(60)])
        return file.getvalue(), [*seen]

    for protocol in ALL:
        expected = dump(protocol)
        with fastpickle.patched():
            assert dump(protocol) == expected
