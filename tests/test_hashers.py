"""joblib's hashers and datasets' Pickler: under fastpickle.patched(), and on our base, against themselves on stock."""

from __future__ import annotations

import abc
import array
import bisect
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import io
import pickle
import random
import subprocess
import sys
import traceback
import types
import uuid
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from oracle import objects, strategies
from oracle.allowed import PYPY
from oracle.compare import Implementation
from oracle.parts import APartOf
from oracle.suite_evil import _CLASS_CHANGES, EvilSuite
from oracle.suite_hooks import HookSuite
from oracle.suite_values import ValueSuite

import fastpickle
from fastpickle import hooks, pickler, way
from fastpickle.digests import hashed, hashing, small_hashes
from fastpickle.objects.last import last

if PYPY:
    pytest.skip("nothing is put in place of stock's methods there", allow_module_level=True)
joblib = pytest.importorskip("joblib", reason="joblib is not installed")
joblib_backend: Any = pytest.importorskip("fastpickle.backends.joblib", reason="joblib is not installed")
numpy: Any = pytest.importorskip("numpy", reason="numpy is not installed")
_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]

try:
    import datasets
except ImportError:
    datasets = None
else:
    import dill

    from fastpickle.backends import datasets as datasets_backend

    dill.extend(False)


@contextmanager
def eagerly() -> Iterator[None]:
    """Use a plan for the least object, too: else it would take longer than it gives, or be written at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_hashes, "at_once", lambda *args: False)
        for module in pickler, way:
            patch.setattr(module, "is_hash_worth_a_plan", lambda *args: True)
        yield


@contextmanager
def installed_eagerly() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(fastpickle.patched())
        stack.enter_context(eagerly())
        yield


def with_file(cls: Any) -> Any:
    """Make a hasher that is made like a pickler."""

    class Hasher(cls):
        def __init__(self, file: Any, protocol: int | None = None, **arguments: Any) -> None:
            _Stock.__init__(self, file, protocol, **arguments)
            self._hash = hashlib.md5()
            self.np = numpy
            self.coerce_mmap = False
            self._getbuffer = memoryview

    Hasher.__qualname__ = "Hasher"
    return Hasher


class Joblib:
    breadth = 1
    oracle = Implementation("NumpyHasher", with_file(joblib.hashing.NumpyHasher))


class JoblibInstalled(Joblib):
    ours = Implementation("NumpyHasher, installed", Joblib.oracle.base, installed_eagerly)


class JoblibBackend(Joblib):
    ours = Implementation("backends.joblib.NumpyHasher", with_file(joblib_backend.NumpyHasher), eagerly)


class TestJoblibValues(JoblibInstalled, ValueSuite):
    pass


class TestJoblibBackendValues(JoblibBackend, ValueSuite):
    pass


if datasets is not None:

    class Datasets:
        breadth = 1
        dill_edits = True
        oracle = Implementation("datasets' Pickler", datasets.utils._dill.Pickler)

    class DatasetsInstalled(Datasets):
        ours = Implementation("datasets' Pickler, installed", Datasets.oracle.base, installed_eagerly)

    class DatasetsBackend(Datasets):
        ours = Implementation("backends.datasets.Pickler", datasets_backend.Pickler, eagerly)

    class TestDatasetsValues(DatasetsInstalled, ValueSuite):
        pass

    class TestDatasetsBackendValues(DatasetsBackend, ValueSuite):
        pass


if strategies.is_thorough():  # they take minutes

    class TestJoblibEvil(JoblibInstalled, EvilSuite):
        @pytest.mark.parametrize("name", [name for name in _CLASS_CHANGES if name != "persistent_id"])
        def test_class_changed(self, name: str) -> None:
            """As in the suite, but where joblib's `save(self, obj)` is a TypeError on stock, and joblib tries again."""
            super().test_class_changed(name)

    class TestJoblibHooks(JoblibInstalled, HookSuite):
        pass

    if datasets is not None:

        class TestDatasetsEvil(DatasetsInstalled, EvilSuite):
            test_code_in_a_default_reduce = None  # dill saves the two contexts of this module by value

        class TestDatasetsHooks(DatasetsInstalled, HookSuite):
            pass


class Fails:
    """Raises TypeError where it is reduced: joblib writes the items of the dict around it once more."""

    def __init__(self, at: int) -> None:
        self.calls = 0
        self.at = at

    def __reduce__(self) -> Any:
        self.calls += 1
        if self.calls <= self.at:
            raise TypeError(f"call {self.calls}")
        return Fails, (self.at,)


class Ordered:
    """Can be compared, and writes down that it was."""

    compared: list[int] = []

    def __init__(self, n: int) -> None:
        self.n = n

    def __lt__(self, other: Any) -> bool:
        Ordered.compared.append(self.n)
        return self.n < other.n

    def __hash__(self) -> int:
        return self.n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ordered) and other.n == self.n


@dataclasses.dataclass
class Record:
    x: Any
    y: Any


class Estimator:
    def __init__(self) -> None:
        self.a = {"x": [1, 2.5, None]}
        self.b = numpy.arange(4)

    def method(self) -> None:
        """Is hashed by its name and its object."""


def _atom(rng: random.Random) -> Any:
    return rng.choice(
        (None, True, False, rng.randrange(10), rng.randrange(-(1 << 40), 1 << 40), rng.random(), float("inf"), "text",
         f"t{rng.randrange(30)}", "\u20ac" * rng.randrange(200), "\ud800", b"bytes", b"x" * rng.randrange(300))
    )  # fmt: skip


def _value(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(18 if depth else 1)
    n = rng.choice((0, 1, 2, 3, 4, 13, 40) if depth > 1 else (0, 1, 2, 3, 12, 14))

    def parts() -> list[Any]:
        return [_value(rng, depth - 1) for _ in range(n)]

    if kind < 4:
        return _atom(rng)
    if kind < 6:
        return parts()
    if kind < 7:
        return tuple(parts())
    if kind < 9:
        return {f"k{i}": x for i, x in enumerate(parts())}
    if kind < 10:
        keys = ["b", "a", "c"]
        return [dict(zip(keys, parts(), strict=False)) for _ in range(min(n, 14))]
    if kind < 11:
        return (
            [rng.choice((rng.random(), 1.5)) for _ in range(n)] if rng.random() < 0.5 else [f"s{i}" for i in range(n)]
        )
    if kind < 12:
        keys = rng.choice(
            ([1, 2, 3], [(1, "a"), (2, "b")], [1, "a", None], [(1, 2), (1, "a")], [objects.Int(3)], [b"x"])
        )
        return {key: _atom(rng) for key in keys}
    if kind < 13:
        return rng.choice(
            ({1, 2, 3}, {"a", "b"}, {1, "a"}, {(1, 2), (0, 1)}, frozenset((1, 2)), set(), {objects.Str("x")})
        )
    if kind < 14:
        return Record(_atom(rng), parts())
    if kind < 15:
        return rng.choice((numpy.arange(n), numpy.float64(n), numpy.dtype("f4"), numpy.array([None, 1]), numpy.int8(3)))
    if kind < 16:
        return rng.choice(
            (len, dict, Record, "x".join, Estimator, Estimator(), Estimator().method, dict.fromkeys, random)
        )
    if kind < 17:
        return rng.choice(
            (OrderedDict(b=1, a=_atom(rng)), defaultdict(list, b=[1]), objects.Dict(b=1, a=2), objects.List("ab"))
        )
    return rng.choice(
        (datetime.datetime(2020, 1, 2), decimal.Decimal("1.5"), objects.Str("x"), objects.Bytes(b"x"), bytearray(b"x"),
         types.SimpleNamespace(b=1, a=[2]), 1 + 2j, range(3))
    )  # fmt: skip


def _shared(rng: random.Random) -> Any:
    """Make an object of which parts are in it more than once."""
    part = _value(rng, 2)
    cyclic: list[Any] = [part]
    cyclic.append({"self": cyclic, "part": part})
    return [
        part,
        {"b": part, "a": [part, _value(rng, 3)]},
        cyclic if rng.random() < 0.3 else (part, part),
        _value(rng, 4),
    ]


def digest_of(function: Callable[[Any], str], obj: Any) -> object:
    try:
        return function(obj)
    except Exception as exc:
        return type(exc).__name__, [str(x).partition(" at 0x")[0] for x in exc.args]


def _hashes() -> Iterator[Any]:
    yield pytest.param(joblib.hash, joblib_backend.hash, id="joblib")
    if datasets is not None:
        yield pytest.param(datasets.fingerprint.Hasher.hash, datasets_backend.hash, id="datasets")


@pytest.mark.parametrize(("stock", "ours"), [*_hashes()])
@pytest.mark.parametrize("turn", range(4))
def test_random_data(stock: Any, ours: Any, turn: int, a_part_of: APartOf) -> None:
    """Installed, and on our base, with a plan for each object or only for those worth it: the digest is stock's."""
    for seed in a_part_of(range(turn, 1600 if strategies.is_thorough() else 100, 4)):
        expected = digest_of(stock, _shared(random.Random(seed)))
        contexts = [fastpickle.patched] if turn % 2 else [installed_eagerly]
        for context in contexts:
            with context():
                assert digest_of(stock, _shared(random.Random(seed))) == expected, seed
        with (eagerly if turn >= 2 else ExitStack)():
            assert digest_of(ours, _shared(random.Random(seed))) == expected, seed


@pytest.mark.parametrize(("stock", "ours"), [*_hashes()])
def test_boundaries(stock: Any, ours: Any) -> None:
    """Batches, frames, memo numbers of one byte, texts of one length byte, rows of other keys."""
    made = [
        *[[i] * n for n in (0, 1, 2, 11, 12, 999, 1000, 1001, 2001) for i in (7, "x", 0.5, None, [1])],
        *[{f"k{i}": i for i in range(n)} for n in (1, 2, 63, 64, 65, 999, 1000, 1001, 2001)],
        *[{i: [i] for i in range(n)} for n in (1000, 1001)],
        *[["x" * n, {"k" * n: "y" * n, "a": 1}] * 3 for n in (255, 256, 65_534, 65_535, 65_536, 70_000)],
        [{"b": "x" * 100, "a": [i]} for i in range(1500)],
        [{"b": "x" * 1000, "a": {"c": i, "d": "y" * 500}} for i in range(300)],
        [[i] for i in range(300)],
        [tuple(range(n)) for n in range(7)] * 50,
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}, {"a": 1, "b": 2, "c": 3}] * 20,
        [{f"k{j}": i for j in range(3)} for i in range(50)],
        [{objects.Str("a"): 1, "b": 2}] * 2 + [{"a": 1, "b": 2}] * 20,
    ]
    for obj in made:
        expected = stock(obj)
        with fastpickle.patched():
            assert stock(obj) == expected
        assert ours(obj) == expected


class Colour(enum.Enum):
    RED = 1
    LONG = "x" * 300


_ARGS = ("a", 1, b"b")


def _with_args(exc: Exception) -> Exception:
    exc.args = _ARGS
    return exc


#: By a number, what is a call of a class with atoms, or an instance of a plain class, and what only looks like that.
_CALLS: dict[str, Callable[[int], Any]] = {
    "datetime": lambda i: datetime.datetime(2020, 1, 1 + i % 28, i % 24),
    "with a zone": lambda i: datetime.datetime(2020, 1, 1 + i % 28, tzinfo=datetime.timezone.utc),
    "timedelta": lambda i: datetime.timedelta(i, i * 7, i * 70_000 % 1_000_000),
    "Decimal": lambda i: decimal.Decimal(i) / 7,
    "long Decimal": lambda i: decimal.Decimal("1" * (4090 + i % 12)),
    "Fraction": lambda i: fractions.Fraction(i + 1, 1 << (i % 80)),
    "complex": lambda i: complex(i, float("inf")),
    "range": lambda i: range(i, i << 70, 3),
    "enum": lambda i: (Colour.RED, Colour.LONG)[i % 2],
    "dataclass": lambda i: Record(i, [str(i)]),
    "nothing": lambda i: (objects.Slotted if i % 2 else object)(),
    "OrderedDict": lambda i: OrderedDict(b=i, a=datetime.date(2020, 1, 1)),
    "deque": lambda i: collections.deque([i], maxlen=i or None),
    "UUID": lambda i: uuid.UUID(int=i << 100),
    "array": lambda i: array.array("d", [i]),
    "exception": lambda i: ValueError(*range(i % 6)),
    "with one object twice": lambda i: ValueError(*[b"bytes %d" % i] * 2, i),
    "with what others have": lambda i: _with_args(ValueError()),
    "fails": lambda i: Fails(0),
}


@pytest.mark.parametrize(("stock", "ours"), [*_hashes()])
@pytest.mark.parametrize("name", _CALLS)
def test_calls(stock: Any, ours: Any, name: str) -> None:
    """Many of one kind, the same more than once, beside others, and in a class with a base that is met first."""
    make = _CALLS[name]
    for n in (1, 2, 11, 12, 13, 127, 128, 130, 1001):
        objs = [make(i) for i in range(n)]
        made = [objs, [*objs, *objs[:3], *([x, (x,)] for x in objs[:20])], {str(i): x for i, x in enumerate(objs)}]
        if n == 13:
            others = [other(i) for i in range(3) for other in _CALLS.values()]
            made += [[x for pair in zip(objs, others, strict=False) for x in pair], [Record(x, [x, x]) for x in objs]]
        for obj in made:
            expected = digest_of(stock, obj)
            with fastpickle.patched():
                assert digest_of(stock, obj) == expected, n
            with installed_eagerly():
                assert digest_of(stock, obj) == expected, n
            assert digest_of(ours, obj) == expected, n


@pytest.mark.parametrize(("stock", "ours"), [*_hashes()])
@pytest.mark.parametrize("name", ["datetime", "timedelta", "Decimal", "dataclass"])
def test_calls_at_the_end_of_a_frame(stock: Any, ours: Any, name: str) -> None:
    """At each place in what is written of one."""
    objs = [_CALLS[name](i) for i in range(120)]
    for n in range(600 if strategies.is_thorough() else 60):
        obj = [*objs[:12], "x" * (64_000 + n), *objs[12:]]  # they are 18 to 60 bytes each
        expected = stock(obj)
        with fastpickle.patched():
            assert stock(obj) == expected, n
        assert ours(obj) == expected, n


@pytest.mark.parametrize(("stock", "ours"), [*_hashes()])
def test_calls_are_written_at_once(
    stock: Any, ours: Any, nothing_is_remembered: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the first, which comes with the class."""
    saved: list[Any] = []
    usual_form = hashed.usual_form

    def recorded(plan: Any, obj: Any, rv: Any) -> Any:
        saved.append(obj)
        return usual_form(plan, obj, rv)

    monkeypatch.setattr(hashed, "usual_form", recorded)
    for name in "datetime", "timedelta", "Decimal", "dataclass":
        for n in (12, 100):
            objs = [_CALLS[name](i) for i in range(n)]
            saved.clear()
            with fastpickle.patched():
                stock(objs)
            assert saved == objs[:1], (name, n)


def test_bytes_in_the_memo_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that somebody has put into the memo are fetched, as by stock, though joblib memoizes none."""
    value = b"bytes that are kept"

    def digest() -> str:
        hasher = joblib.hashing.NumpyHasher("md5")
        hasher.memo[id(value)] = 0, value
        digest: str = hasher.hash([*range(40), *(ValueError(*args) for args in ((1,), (value,), (value, 2)))])
        return digest

    expected = digest()
    with fastpickle.patched():
        assert digest() == expected


#: What is put around something, so that it is a level deeper.
_AROUND: dict[str, Callable[[Any], Any]] = {
    "exception": ValueError,
    "exception with a date": lambda x: ValueError(datetime.date(2020, 1, 1), x),
    "OrderedDict": lambda x: OrderedDict(a=x),
    "defaultdict": lambda x: defaultdict(list, a=x),
    "deque": lambda x: collections.deque([x]),
    "namespace": lambda x: types.SimpleNamespace(a=x),
    "partial": lambda x: functools.partial(print, x),
    "record": lambda x: Record(x, 1),
    "dict": lambda x: {1: x},
}


@pytest.mark.parametrize(("stock", "ours"), [*_hashes()])
@pytest.mark.parametrize("kind", _AROUND)
def test_as_deep_behind_plain_data(stock: Any, ours: Any, kind: str) -> None:
    """What stock can hash within the recursion limit does not fail with a plan either."""

    def digest(function: Any, n: int, wide: Any) -> str | None:
        obj: Any = 1
        for _ in range(n):
            obj = _AROUND[kind](obj)
        try:
            return str(function([*wide, obj] if isinstance(wide, range) else {**wide, "z": obj}))
        except RecursionError:
            return None

    old = sys.getrecursionlimit()
    depth = len(traceback.extract_stack(limit=old))
    for wide in range(30), dict.fromkeys(map(str, range(30)), 1):
        digest(stock, 1, wide)
        sys.setrecursionlimit(depth + 300)
        try:
            deepest = bisect.bisect(range(200), 0, key=lambda n: digest(stock, n, wide) is None) - 1
            expected = digest(stock, deepest, wide)
            with fastpickle.patched():
                found = digest(stock, deepest, wide)
            assert found == expected is not None
            assert digest(ours, deepest, wide) == expected
        finally:
            sys.setrecursionlimit(old)


@pytest.mark.parametrize(("stock", "ours"), [*_hashes()])
def test_user_code(stock: Any, ours: Any) -> None:
    """Keys that somebody compares, and what raises TypeError, which joblib takes for keys that cannot be sorted."""
    rows: list[Callable[[], Any]] = [
        lambda: [{Ordered(3): 1, Ordered(1): 2, Ordered(2): 3}] * 13,
        lambda: [{"b": [Fails(1)], "a": i} for i in range(14)],
        lambda: {f"k{i:02}": Fails(1) if i == 5 else i for i in range(20)},
        lambda: {i: Fails(1) if i == 70 else i for i in range(100)},
        lambda: [OrderedDict(b=Fails(1), a=1), objects.Dict(b=Fails(1), a=[1])] + [{}] * 12,
        lambda: [[1]] * 12 + [Fails(2)],
        lambda: [{"a": 1, "b": {1: 2, "x": Fails(1)}}] * 12,
    ]
    for make in rows:
        Ordered.compared.clear()
        expected = digest_of(stock, make())
        compared = [*Ordered.compared]
        for function, context in ((stock, fastpickle.patched), (stock, installed_eagerly), (ours, eagerly)):
            Ordered.compared.clear()
            with context():
                assert digest_of(function, make()) == expected
            assert Ordered.compared == compared


class Text:
    """Says that it is a text, as proxies do, so that joblib's hasher does not memoize it."""

    def __init__(self, length: int) -> None:
        self.length = length

    @property
    def __class__(self) -> Any:
        return str

    @__class__.setter
    def __class__(self, cls: Any) -> None:
        raise AttributeError

    def __reduce__(self) -> Any:
        return Text, (self.length,)


class _NoFlags(type):
    """Has no flags for those who ask."""

    def __getattribute__(cls, name: str) -> Any:
        if name == "__flags__":
            raise AttributeError(name)
        return super().__getattribute__(name)


class Flagless(metaclass=_NoFlags):
    """An instance of a class of that."""


@pytest.mark.parametrize(("stock", "ours"), [*_hashes()])
@pytest.mark.parametrize("cls", [lambda: Text(3), Flagless], ids=["text", "no flags"])
def test_class_that_says_otherwise(stock: Any, ours: Any, cls: Any) -> None:
    """What an object says of its class, and the class of itself, is asked as by stock, also in rows and in many."""
    obj = cls()
    for held in (
        {"a": obj, "b": obj},
        [obj] * 2,
        [obj] * 30,
        [{"i": i, "o": obj} for i in range(25)],
        [[cls(), i] for i in range(60)],
        {i: (obj, i) for i in range(80)},
    ):
        expected = digest_of(stock, held)
        assert type(expected) is str
        with fastpickle.patched():
            assert digest_of(stock, held) == expected
        assert digest_of(ours, held) == expected


def test_unknown_hooks() -> None:
    """A subclass that overrides more, or functions that are not those that were read, take the general path."""
    data = [{"b": i, "a": [i]} for i in range(50)]

    class Sorted(joblib.hashing.Hasher):
        calls = 0

        def memoize(self, obj: Any) -> None:
            Sorted.calls += 1
            super().memoize(obj)

    class Named(joblib.hashing.Hasher):
        def save_reduce(self, *args: Any, **kwargs: Any) -> None:
            raise AssertionError("not reached")

    expected = joblib.hashing.Hasher().hash(data)
    with fastpickle.patched():
        assert hooks.plan(joblib.hashing.Hasher())
        assert hooks.plan(joblib.hashing.NumpyHasher())
        assert hooks.plan(Sorted()) is hooks.PLAIN
        assert hooks.plan(Named()) is hooks.PLAIN
        assert Sorted().hash(data) == expected
    assert Sorted.calls > 100


def test_hash_of_another_protocol() -> None:
    """The plan goes by the pickler's protocol, and there is none below 2."""
    for protocol in range(2):
        assert not hooks.plan(Joblib.oracle.base(io.BytesIO(), protocol))
    for protocol in range(2, 6):
        with fastpickle.patched():
            assert hooks.plan(Joblib.oracle.base(io.BytesIO(), protocol)).proto == protocol


@pytest.mark.parametrize("turn", range(3))
def test_memory_mapped(tmp_path: Path, turn: int) -> None:
    """The arguments of `joblib.hash` mean what they mean there."""
    array = numpy.arange(6.0)
    file = tmp_path / "array.npy"
    numpy.save(file, array)
    mapped = numpy.load(file, mmap_mode="r")
    how = ({}, {"coerce_mmap": True}, {"hash_name": "sha1"})[turn]
    for obj in (array, mapped, [mapped, {"a": array}]):
        expected = joblib.hash(obj, **how)
        assert joblib_backend.hash(obj, **how) == expected
        with fastpickle.patched():
            assert joblib.hash(obj, **how) == expected
    with pytest.raises(ValueError, match="hash_name"):
        joblib_backend.hash(1, hash_name="sha3")


@pytest.mark.parametrize("name", ["joblib", "datasets"])
def test_missing_library(name: str) -> None:
    """The error names the extra; install() and the rest of fastpickle do without."""
    code = (
        f"import sys; sys.modules[{name!r}] = None\n"
        "import fastpickle; fastpickle.install()\n"
        f"try: import fastpickle.backends.{name}\n"
        f"except ImportError as exc: assert 'fastpickle[{name}]' in str(exc)\n"
        "else: raise AssertionError\n"
    )
    root = Path(fastpickle.__file__).parent.parent
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=root, timeout=120)


def test_nothing_is_left(tmp_path: Path) -> None:
    """After a dump the hasher has the attributes that it had, whether the dump failed or not."""
    for obj, fails in (([{"a": [1, "x"]}] * 20, False), ([{"a": lambda: 0}] * 20, True), (Estimator(), False)):
        with fastpickle.patched():
            hasher = joblib.hashing.NumpyHasher()
            before = [*vars(hasher)]
            if fails:
                with pytest.raises(Exception, match="lambda"):
                    hasher.dump(obj)
            else:
                hasher.dump(obj)
        assert [*vars(hasher)] == before


def test_arrays_that_c_gave_up_for() -> None:
    """What C met in a dump, as by joblib.dump, does not matter to a digest, in which it has no part."""
    rows = [{"id": i, "vector": numpy.arange(8.0)} for i in range(40)]
    hasher = joblib.hashing.NumpyHasher("md5")
    for _ in range(2):
        assert hashing.is_hash_worth_a_plan(hasher, rows, list)
        last.remember_gave_up(id(numpy.ndarray))


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
def test_what_is_worth_a_plan() -> None:
    """Of what is no plain data joblib's backend knows how it is saved; by datasets' it goes through the hooks."""
    arrays = [numpy.arange(3.0) for _ in range(13)]
    model = {**{f"k{i}": i for i in range(23)}, **{f"a{i}": x for i, x in enumerate(arrays)}}
    few = {**{f"k{i}": i for i in range(23)}, **{f"a{i}": x for i, x in enumerate(arrays[:5])}}
    fields = {f"f{i}": (numpy.dtype("f8"), 8 * i) for i in range(8)}
    rows = {f"f{i}": [i, 8 * i] for i in range(8)}
    dates = {f"f{i}": datetime.date(2020, 1, 1) for i in range(12)}
    alike = dict(enumerate(arrays))
    memo = {i: (i, None) for i in range(hashing.MANY)}
    for cls, expected in (
        (joblib.hashing.NumpyHasher, (True,) * 6),
        (datasets.utils._dill.Pickler, (False, True, False, True, True, True)),
    ):
        hasher = cls() if cls is joblib.hashing.NumpyHasher else cls(io.BytesIO())
        hasher.memo.update(memo)
        found = tuple(hashing.is_hash_worth_a_plan(hasher, x, dict) for x in (model, few, fields, rows, dates, alike))
        assert found == expected, cls
    function, stock = datasets.fingerprint.Hasher.hash, [*map(datasets.fingerprint.Hasher.hash, (model, fields))]
    with fastpickle.patched():
        assert [function(model), function(fields)] == stock


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
def test_types_that_dill_registers() -> None:
    """They are told as by dill's own functions, whether or not it was asked about a type before."""
    from dill import _dill  # noqa: PLC0415  # it may not be there

    from fastpickle.backends import dill as dill_backend  # noqa: PLC0415  # as above

    class Array(numpy.ndarray):
        pass

    class Reduced(numpy.ndarray):
        def __reduce__(self) -> Any:
            return super().__reduce__()

    class ndarray:  # one of that name
        pass

    types_of_numpy = [type(numpy.dtype(x)) for x in ("f8", "i4", "U3", "V8", "O", [("a", "f8")])]
    others = [len, type(len), numpy.float64, type(numpy.dtype), numpy.ufunc, numpy.ndarray, numpy.memmap, dict, object]
    for t in [*types_of_numpy, *others, Array, Reduced, ndarray, abc.ABC, type, abc.ABCMeta, Colour, enum.EnumMeta]:
        if not isinstance(t, type) or t in _dill.Pickler.dispatch:
            continue
        expected = t is not type and (_dill.numpyufunc(t) or _dill.numpydtype(t) or _dill.ndarraysubclassinstance(t))
        for _ in range(2):
            assert bool(dill_backend._is_of_numpy(t)) == bool(expected), t
