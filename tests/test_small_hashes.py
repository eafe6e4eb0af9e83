"""Small plain data that is hashed at once: the bytes and the memo are those of the library's pickler on stock."""

from __future__ import annotations

import builtins
import copyreg
import gc
import hashlib
import io
import math
import pickle
import random
import re
import sys
import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from oracle.allowed import PYPY
from oracle.frames import depth, fits
from oracle.parts import APartOf

import fastpickle
from fastpickle import hooks
from fastpickle import pickler as own_pickler
from fastpickle.digests import hashed, small_hashes
from fastpickle.doubts import Dump
from fastpickle.rules import HashRule

if PYPY:
    pytest.skip("nothing is put in place of stock's methods there", allow_module_level=True)
joblib = pytest.importorskip("joblib", reason="joblib is not installed")
numpy: Any = pytest.importorskip("numpy", reason="numpy is not installed")
joblib_backend: Any = pytest.importorskip("fastpickle.backends.joblib", reason="joblib is not installed")
try:
    import datasets

    import fastpickle.backends.datasets  # else the first dump finds it
except ImportError:
    datasets = None
_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]
NAN = float("nan")
_ADDRESS = re.compile(" at 0x[0-9a-f]+")


def _shared() -> Any:
    part = ["x", {"k": (1,)}]
    pair = (part, "x")
    return {"b": part, "a": [pair, pair, part], "c": ((), [], {}, b"", ""), "d": [(1, 2, 3), (1, 2, 3, 4)]}


def _cycle() -> Any:
    cycle: list[Any] = [1]
    cycle += [cycle, {"self": cycle}]
    return cycle


def _cycle_of_tuple() -> Any:
    items: list[Any] = []
    cycle = (items,)
    items.append(cycle)
    return cycle


def _deep(n: int) -> Any:
    nested: Any = None
    for _ in range(n):
        nested = [nested]
    return nested


#: What is hashed, and whether that is at once; None where it is not asked.
SHAPES: dict[str, tuple[Callable[[], Any], bool | None]] = {
    "arguments": (lambda: {"task": "resize", "width": 640, "tags": ["a", "b"], "ratio": 0.5, "on": True}, True),
    "one item": (lambda: [{"a": (1,)}], True),
    "numbers": (
        lambda: [0, 255, 256, 0xFFFF, 0x10000, -1, -0x80000001, 2**31, 10**30, 1.5, NAN, True, False, None],
        True,
    ),
    "texts": (lambda: ["", "é", "x" * 255, "x" * 256, "é" * 128, "\0", {"y" * 300: "z"}], True),
    "bytes": (lambda: [bytearray, b"", b"x" * 255, b"x" * 256][1:], True),
    "shared": (_shared, True),
    "cycle": (_cycle, True),
    "keys in another order": (lambda: {"b": 1, "a": 2, "B": 3, "é": 4, "": 5}, True),
    "keys that are numbers": (lambda: {3: "c", 1.5: "b", True: "a", -1: "d"}, True),
    "keys that are tuples": (lambda: {(2, "b"): 1, (1, "z"): 2, (1,): 3, (): 4}, True),
    "keys that are bytes": (lambda: {b"b": 1, b"a": 2}, True),
    "keys that are no numbers": (lambda: {NAN: {1: 2}, float("nan"): {"x": 3}, 1.0: {}}, True),
    "24 items": (lambda: [*range(24)], True),
    "24 keys": (lambda: {f"k{i}": [i] for i in range(24)}, True),
    "25 items": (lambda: [*range(25)], False),
    "25 items inside": (lambda: {"a": [*range(25)]}, False),
    "a frame": (lambda: ["x" * 70_000], False),
    "long texts": (lambda: ["x" * 4096, "y" * 4096], True),
    "longer texts": (lambda: [[1], "y" * 4097], False),
    "long bytes": (lambda: [[1], b"y" * 4097], False),
    "rows": (lambda: [{"id": i, "n": str(i)} for i in range(17)], True),
    "more rows": (lambda: [{"id": i, "n": str(i)} for i in range(18)], False),
    "rows inside": (lambda: {"a": 1, "rows": [[i, i, i, i] for i in range(21)]}, False),
    "many": (lambda: [[i, [str(i)]] for i in range(12)], True),
    "too many": (lambda: [[i, [str(i)]] for i in range(24)], False),
    "deep": (lambda: _deep(20), True),
    "too deep": (lambda: _deep(150), False),
    "nothing": (list, None),
    "an atom": (lambda: "x", None),
    "keys of two types": (lambda: {"a": 1, 2: 3}, False),
    "keys of two types inside": (lambda: ["x", {"a": [1], 2: 3}, ["y"]], False),
    "None as one of the keys": (lambda: {None: 1, "a": 2}, False),
    "None as the key": (lambda: {None: 1}, True),
    "cycle of a tuple": (_cycle_of_tuple, False),
    "surrogates": (lambda: [[1], "\ud800"], False),
    "surrogates in a key": (lambda: {"a": [1], "\ud800": 2}, False),
    "a set": (lambda: {"a": {3, 1, 2}}, False),
    "bytearray": (lambda: ["a", bytearray(b"x")], False),
    "an instance far inside": (lambda: {"a": [1, {"b": ["x", OrderedDict(z=1, y=2)]}]}, False),
    "a str of one's own": (lambda: ["a", type("Str", (str,), {"__module__": "nowhere"})], False),
    "a method": (lambda: {"a": [1], "f": "x".join}, False),
}


def made(cls: Any, protocol: int) -> Any:
    """Make a hasher as joblib does, but for the protocol, and the BytesIO it writes to."""
    hasher = cls()
    hasher.stream = io.BytesIO()
    _Stock.__init__(hasher, hasher.stream, protocol)
    return hasher


def outcome(hasher: Any, obj: Any) -> Any:
    """Dump, and return the bytes, what is memoized, and the error."""
    error = None
    try:
        hasher.dump(obj)
    except Exception as exc:
        error = type(exc), _ADDRESS.sub("", str(exc)), getattr(exc, "__notes__", None)
    memo = [(i, type(x), _ADDRESS.sub("", repr(x))) for i, x in hasher.memo.values()]
    assert [*map(id, (x for _, x in hasher.memo.values()))] == [*hasher.memo]
    digest = hasher._hash.hexdigest() if hasattr(hasher, "_hash") else None
    return hasher.stream.getvalue(), memo, error, digest


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Record whether each dump of a hasher that came so far was written at once."""
    seen: list[bool] = []
    at_once = small_hashes.at_once

    def record(*args: Any) -> Any:
        is_written = at_once(*args)
        if is_written is not None:  # it is for a hasher
            seen.append(is_written is True)
        return is_written

    monkeypatch.setattr(small_hashes, "at_once", record)
    yield seen


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", SHAPES)
def test_same_bytes(name: str, protocol: int, tried: list[bool]) -> None:
    """Installed, and on our base: the bytes, the memo, what is raised; then a second dump by the same hasher."""
    make, is_at_once = SHAPES[name]
    obj = make()
    stock = made(joblib.hashing.NumpyHasher, protocol)
    expected = [outcome(stock, obj), outcome(stock, [obj, "more"])]
    if protocol == 2 and name in ("bytes", "shared", "keys that are bytes"):
        is_at_once = False  # there is no opcode for bytes
    with fastpickle.patched():
        ours = made(joblib.hashing.NumpyHasher, protocol)
        assert [outcome(ours, obj), outcome(ours, [obj, "more"])] == expected
    ours = made(joblib_backend.NumpyHasher, protocol)
    assert [outcome(ours, obj), outcome(ours, [obj, "more"])] == expected
    assert is_at_once is None or tried == [is_at_once, False] * 2


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", SHAPES)
def test_same_bytes_of_datasets(name: str, protocol: int, tried: list[bool]) -> None:
    """It memoizes bytes, and dill's function saves its dicts."""
    make, is_at_once = SHAPES[name]
    obj = make()
    cls = datasets.utils._dill.Pickler
    expected = [outcome(pickler, obj) for pickler in (_with_stream(cls, protocol),) * 2]
    with fastpickle.patched():
        assert [outcome(pickler, obj) for pickler in (_with_stream(cls, protocol),) * 2] == expected
    own = fastpickle.backends.datasets.Pickler
    assert [outcome(pickler, obj) for pickler in (_with_stream(own, protocol),) * 2] == expected
    if protocol == 2 and name in ("bytes", "shared", "keys that are bytes"):
        is_at_once = False  # there is no opcode for bytes
    assert is_at_once is None or tried == [is_at_once, False] * 2


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
@pytest.mark.parametrize("owner", ["dill's", "datasets'", "stock's", "dill's stock"])
def test_dump_of_somebodys(owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our backend calls that which datasets' Pickler has, or dill's, or what that calls."""
    theirs = datasets.utils._dill
    cls = {"dill's": theirs.dill.Pickler, "datasets'": theirs.Pickler}.get(owner, _Stock)
    original = cls.dump
    seen = []

    def dump(self: Any, obj: Any) -> None:
        seen.append(obj)
        original(self, obj)

    if owner == "dill's stock":
        monkeypatch.setattr(theirs.dill._dill, "StockPickler", type("StockPickler", (_Stock,), {"dump": dump}))
    else:
        monkeypatch.setattr(cls, "dump", dump)
    expected = theirs.dumps([1])
    assert fastpickle.backends.datasets.dumps([1]) == expected
    assert seen == [[1], [1]]


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
@pytest.mark.parametrize("is_ours", [False, True])
@pytest.mark.parametrize("levels", [0, 1, 5, 20])
@pytest.mark.parametrize(
    "obj", [[*range(1200)], {f"k{i}": i for i in range(70)}, {"k": [1]}], ids=["ints", "wide", "small"]
)
def test_recursion_limit_of_datasets(obj: Any, levels: int, is_ours: bool) -> None:
    """No frame more than on stock, installed and by our backend."""
    obj = _within(obj, levels)
    theirs = datasets.utils._dill.Pickler
    least = next(room for room in range(12, 300) if _fits(theirs, obj, room))
    with nullcontext() if is_ours else fastpickle.patched():
        cls = fastpickle.backends.datasets.Pickler if is_ours else theirs
        assert _fits(cls, obj, 1000)  # what the first dump does is done then
        assert all(_fits(cls, obj, room) for room in range(least, least + 12))


def _fits(cls: Any, obj: Any, room: int) -> bool:
    """Tell whether a pickler of datasets' can dump an object within so many frames."""
    pickler = cls(io.BytesIO(), recurse=True)
    return fits(lambda: pickler.dump(obj), room)


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
def test_dicts_of_datasets(tried: list[bool]) -> None:
    """One that may be a module's, or may equal that of `__main__`, is left to dill."""
    cls = datasets.utils._dill.Pickler
    main = {f"k{i}": i for i in range(7)}
    for obj in (vars(pickle), {"__name__": "pickle"}, [main], {**main, "k0": 1}):
        found = []
        for is_installed in (False, True):
            with fastpickle.patched() if is_installed else nullcontext():
                pickler = _with_stream(cls, 4)
                pickler._main = types.ModuleType("made")
                pickler._main.__dict__.clear()
                pickler._main.__dict__.update(main)
                found.append(outcome(pickler, obj))
        assert found[0] == found[1]
    assert not any(tried)


def _with_stream(cls: Any, protocol: int) -> Any:
    stream = io.BytesIO()
    pickler = cls(stream, protocol, recurse=True)
    pickler.stream = stream
    return pickler


def _value(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(14 if depth else 9)
    if kind < 9:
        return (
            None, True, rng.randrange(-300, 300), rng.randrange(-(2**40), 2**40), rng.random(),
            f"text {rng.randrange(9)}", "x" * rng.randrange(300), "é" * rng.randrange(9), b"y" * rng.randrange(300),
        )[kind]  # fmt: skip
    n = rng.choice((0, 1, 2, 3, 4, 5, 12, 24, 25))
    items = [_value(rng, depth - 1) for _ in range(n)]
    if items and rng.random() < 0.3:
        items[-1] = items[0]
    if kind < 11:
        return items
    if kind < 12:
        return tuple(items)
    keys: list[Any] = [f"k{rng.randrange(99)}" for _ in items]
    if rng.random() < 0.2:
        keys = [rng.choice((i, float(i), (i, "x"), f"{i}")) for i, _ in enumerate(items)]
    return dict(zip(keys, items, strict=True))


def test_random_data(tried: list[bool], a_part_of: APartOf) -> None:
    seeds = a_part_of(range(1500))
    for seed in seeds:
        rng = random.Random(seed)
        obj = [_value(rng, 3) for _ in range(rng.randrange(1, 4))]
        protocol = rng.randrange(2, pickle.HIGHEST_PROTOCOL + 1)
        expected = outcome(made(joblib.hashing.Hasher, protocol), obj)
        with fastpickle.patched():
            assert outcome(made(joblib.hashing.Hasher, protocol), obj) == expected, seed
    assert sum(tried) > len(seeds) / 5
    assert tried.count(False) > len(seeds) / 5


class _Kept(io.BytesIO):
    """A file in memory that sees each write."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []

    def write(self, data: Any) -> int:
        self.pieces.append(bytes(data))
        return super().write(data)


def _memoize(hasher: Any, obj: Any) -> None:
    _Stock.memoize(hasher, obj)


#: What forbids it: each is done to a hasher that is installed, and must have its effect.
FORBIDDEN: dict[str, Callable[[Any, pytest.MonkeyPatch], None]] = {
    "persistent_id": lambda hasher, patch: setattr(hasher, "persistent_id", lambda obj: hasher.write(b"?") and None),
    "memoize": lambda hasher, patch: setattr(hasher, "memoize", lambda obj: _Stock.memoize(hasher, obj)),
    "reducer_override": lambda hasher, patch: setattr(hasher, "reducer_override", lambda obj: NotImplemented),
    "memo": lambda hasher, patch: hasher.memo.update({id("x"): (0, "x")}),
    "fast": lambda hasher, patch: setattr(hasher, "fast", True),
    "class's memoize": lambda hasher, patch: patch.setattr(type(hasher), "memoize", _memoize),
    "class's _batch_setitems": lambda hasher, patch: patch.setattr(
        type(hasher), "_batch_setitems", lambda self, items, *args: self.write(b"here")
    ),
    "table": lambda hasher, patch: patch.setitem(
        type(hasher).dispatch, dict, lambda self, obj: self.write(b"dict")
    ),
    "save_str": lambda hasher, patch: patch.setitem(type(hasher).dispatch, str, lambda self, obj: self.write(b"str")),
    "write": lambda hasher, patch: setattr(hasher, "write", lambda data: None),
    "commit_frame": lambda hasher, patch: patch.setattr(
        type(hasher.framer), "end_framing", lambda self: self.file_write(b"end")
    ),
    "frame": lambda hasher, patch: hasher.framer.start_framing(),
    "framer": lambda hasher, patch: setattr(hasher.framer, "file_write", lambda data: None),
}  # fmt: skip


@pytest.mark.parametrize("name", FORBIDDEN)
@pytest.mark.parametrize("protocol", [3, 4])
def test_hooks(name: str, protocol: int, tried: list[bool]) -> None:
    obj = {"b": ["x", 1], "a": (2, "x")}
    found = []
    for is_installed in (False, True):
        with pytest.MonkeyPatch.context() as patch, fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.Hasher, protocol)
            FORBIDDEN[name](hasher, patch)
            found.append(outcome(hasher, obj))
    assert found[0] == found[1]
    assert tried == [False]


def test_files(tried: list[bool]) -> None:
    """A file that sees what is written at a time gets it so, a closed one raises what it raises."""
    obj = {"b": ["x", 1], "a": (2, "x")}
    found: list[Any] = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.Hasher, 3)
            hasher.stream = _Kept()
            _Stock.__init__(hasher, hasher.stream, 3)
            hasher.dump(obj)
            closed = made(joblib.hashing.Hasher, 3)
            closed.stream.close()
            with pytest.raises(ValueError, match="closed"):
                closed.dump(obj)
            found.append((hasher.stream.pieces, [*closed.memo.values()]))
    assert found[0] == found[1]
    assert tried == [False, False]


def test_real_file(tmp_path: Path, tried: list[bool]) -> None:
    """What is written in one piece to a file on a full disk would not be what stock has written by then."""
    with (tmp_path / "file").open("wb") as file, fastpickle.patched():
        hasher = made(joblib.hashing.Hasher, 3)
        _Stock.__init__(hasher, file, 3)
        hasher.dump({"a": [1]})
    assert tried == [False]
    assert joblib.hash({"a": [1]}) == hashlib.md5((tmp_path / "file").read_bytes()).hexdigest()


def test_keys_of_ones_own(tried: list[bool]) -> None:
    """To compare them runs somebody's code, which is to run just as often."""
    calls: list[str] = []

    class Key(str):
        __slots__ = ()

        def __lt__(self, other: object) -> bool:
            calls.append(self)
            return str.__lt__(self, other)  # type: ignore[operator]

        def __reduce__(self) -> Any:
            return str, (str(self),)

    obj = {Key("b"): 1, Key("a"): 2, Key("c"): [3]}
    expected = joblib.hash(obj), calls[:]
    calls.clear()
    with fastpickle.patched():
        assert (joblib.hash(obj), calls) == expected
    assert not any(tried)


class Own(_Stock):  # type: ignore[misc]
    """Hashes as datasets' Pickler does: bytes are memoized, and there may be a flag that leaves dicts as they are."""

    is_unsorted = False

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        _Stock.save(self, obj, save_persistent_id)

    def memoize(self, obj: Any) -> None:
        if type(obj) is not str:
            _Stock.memoize(self, obj)

    def _batch_setitems(self, items: Any, *args: Any) -> None:
        _Stock._batch_setitems(self, items if self.is_unsorted else iter(sorted(items)), *args)


@pytest.mark.parametrize("is_unsorted", [False, True])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_another_rule(is_unsorted: bool, protocol: int, monkeypatch: pytest.MonkeyPatch, tried: list[bool]) -> None:
    rule = HashRule(
        Own.memoize,
        Own._batch_setitems,
        memoizes_bytes=True,
        memoizes=lambda t: True,
        save_known=hashed.save_known,
        is_right=lambda: True,
        is_unsorted=lambda pickler: bool(pickler.is_unsorted),
    )
    monkeypatch.setitem(hooks.known_saves, Own.save, hashed.save_other)
    monkeypatch.setitem(hooks.choosy_saves, Own.save, lambda t: False)
    monkeypatch.setitem(hooks.hash_rules, Own.save, rule)
    text = b"bytes"
    for obj in {"b": [1], "a": (2,)}, ["x", text, text]:
        found = []
        for is_installed in (False, True):
            with fastpickle.patched() if is_installed else nullcontext():
                hasher = Own(io.BytesIO(), protocol)
                hasher.stream = hasher.framer.file_write.__self__
                hasher.is_unsorted = is_unsorted
                found.append(outcome(hasher, obj))
        assert found[0] == found[1]
    assert tried == [not is_unsorted, not is_unsorted and protocol >= 3]


def test_inside_of_a_dump(tried: list[bool]) -> None:
    """A hasher that is asked to dump by what it dumps has begun already."""

    class Inner:
        def __init__(self, hasher: Any) -> None:
            self.hasher = hasher

        def __reduce__(self) -> Any:
            self.hasher.dump({"inner": ["x"]})
            return int, (1,)

    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.Hasher, 3)
            hasher.dump([Inner(hasher)])
            found.append(hasher.stream.getvalue())
    assert found[0] == found[1]
    assert tried == [False, False]


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written or memoized, so that another dump begins anew."""

    def interrupt(keys: list[Any]) -> bool:
        if "b" in keys:
            raise KeyboardInterrupt
        return True

    with fastpickle.patched():
        hasher = made(joblib.hashing.Hasher, 3)
        with monkeypatch.context() as patch:
            patch.setattr(small_hashes, "are_sortable", interrupt)
            with pytest.raises(KeyboardInterrupt):
                hasher.dump({"a": [1, {"b": 2}]})
        assert hasher.stream.getvalue() == b""
        assert not hasher.memo
        hasher.dump({"a": [1]})
    assert hashlib.md5(hasher.stream.getvalue()).hexdigest() == joblib.hash({"a": [1]})


@pytest.mark.parametrize("cls", ["NumpyHasher", "Hasher"])
@pytest.mark.parametrize("patched", ["stock's save", "Hasher's save", "stock's memoize", "stock's _batch_setitems"])
@pytest.mark.parametrize("n", [2, 20])
def test_what_the_functions_call(patched: str, cls: str, n: int) -> None:
    """What the overrides go on to may be patched, too; it is called for each object."""
    owner = joblib.hashing.Hasher if patched == "Hasher's save" else _Stock
    name = patched.partition(" ")[2]
    obj = {f"k{i}": [i] for i in range(n)}
    found = []
    for is_installed in (False, True):
        calls = []
        with fastpickle.patched() if is_installed else nullcontext():
            original = getattr(owner, name)

            def counting(self: Any, *args: Any) -> Any:
                calls.append(repr(args[0]) if name == "memoize" else 1)
                return original(self, *args)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(owner, name, counting)
                found.append((outcome(made(getattr(joblib.hashing, cls), 3), obj), calls))
    assert found[0] == found[1]
    assert found[0][1]


@pytest.mark.parametrize("what", ["list", "dict", "values"])
def test_threads(what: str) -> None:
    """Another thread changes a list or dict meanwhile: what is written is what it was at one time."""
    inner: Any = [0] if what == "list" else {"a": 0} if what == "dict" else dict.fromkeys("abcdef", 0)
    allowed = [[0], [0, 1]] if what == "list" else [{"a": 0}, {"a": 0, "b": 1}]
    if what == "values":
        allowed = [dict.fromkeys("abcdef", i) for i in range(2)]
    is_done = threading.Event()

    def change() -> None:
        while not is_done.is_set():
            for state in reversed(allowed):
                if what == "list":
                    inner[:] = state
                elif what == "values":
                    inner.update(state)
                else:
                    inner.update(state)
                    inner.pop("b", None)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    seen = set()
    try:
        with fastpickle.patched():
            for _ in range(4000):
                hasher = joblib.hashing.NumpyHasher()
                hasher.dump({"x": inner, "y": 1})
                seen.add(hasher.stream.getvalue())
    finally:
        is_done.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert all(pickle.loads(data)["x"] in allowed for data in seen)


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
@pytest.mark.parametrize("name", ["save", "memoize", "_batch_setitems"])
@pytest.mark.parametrize("n", [2, 20])
def test_what_the_functions_of_datasets_call(name: str, n: int) -> None:
    """They go on to dill's pickler."""
    cls = datasets.utils._dill.dill.Pickler
    obj = {f"k{i}": [i] for i in range(n)}
    found = []
    for is_installed in (False, True):
        calls = []
        with fastpickle.patched() if is_installed else nullcontext(), pytest.MonkeyPatch.context() as patch:
            original = getattr(cls, name)

            def counting(self: Any, *args: Any, **more: Any) -> Any:
                calls.append(type(args[0]))
                return original(self, *args, **more)

            patch.setattr(cls, name, counting)
            found.append((outcome(_with_stream(datasets.utils._dill.Pickler, 4), obj), calls))
    assert found[0] == found[1]
    assert found[0][1]


def test_recursion_limit() -> None:
    """Where the stack is full it is as on stock: written, or RecursionError."""
    obj = {"a": [[[[[[1]]]]]]}

    def at(depth: int) -> Any:
        return at(depth - 1) if depth else outcome(made(joblib.hashing.Hasher, 3), obj)[::2]

    limit = sys.getrecursionlimit()
    for left in range(8, 120, 4):
        found = []
        for is_installed in (False, True):
            with fastpickle.patched() if is_installed else nullcontext():
                try:
                    found.append(at(limit - left - depth()))
                except RecursionError:
                    found.append(None)
        stock, ours = found
        if stock is not None and stock[1] is None:
            assert ours == stock


def _in_dict(array: Any) -> Any:
    return {"x": array, "n": 3, "again": [array, {"deep": (array,)}], "y": numpy.ones((2, 3))}


class _Array(numpy.ndarray):  # type: ignore[misc]  # numpy is Any
    """An array of one's own class."""


class _Void(numpy.void):  # type: ignore[misc]  # numpy is Any
    """What is in an array, of one's own class."""


class _Record(numpy.record):  # type: ignore[misc]  # numpy is Any
    """The same, with fields."""


def _views(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: {"x": make(), "y": [make(), 1.5]}


def _of_math() -> Iterator[Any]:
    return (x for x in vars(math).values() if type(x) is types.BuiltinFunctionType)


#: Some are encoded, and some not.
_KINDS: list[Callable[[], Any]] = [
    lambda: numpy.arange(3),
    lambda: numpy.array([None, 1]),
    lambda: len,
    lambda: numpy.arange(40_000)[::2],
    lambda: numpy.dtype("f4"),
    lambda: numpy.float64(2),
    lambda: numpy.zeros(1, [("a", "i4")]),
    lambda: "x".join,
    lambda: numpy.arange(2).view(_Array),
    lambda: OrderedDict,
]

#: What `NumpyHasher` hashes beside small plain data, and whether that is at once, at joblib's own protocol.
ARRAYS: dict[str, tuple[Callable[[], Any], bool]] = {
    **{
        f"array of {dtype}": (lambda dtype=dtype: _in_dict(numpy.arange(4).astype(dtype)), True)  # type: ignore[misc]  # a lambda has no types
        for dtype in ("i1", "u2", ">i4", "i8", "f2", "f4", "f8", ">f8", "c8", "c16", "?", "S3", "U3", "M8[D]", "m8[s]")
    },
    "array alone": (lambda: numpy.arange(10), True),
    "array of no dimensions alone": (lambda: numpy.array(2.5), True),
    "array in the order of Fortran": (_views(lambda: numpy.asfortranarray(numpy.arange(12.0).reshape(3, 4))), True),
    "array that is not contiguous": (_views(lambda: numpy.arange(20)[::3]), True),
    "long array that is not contiguous": (_views(lambda: numpy.arange(40_000)[::2]), False),
    "array turned over": (_views(lambda: numpy.arange(20)[::-1]), True),
    "array of four dimensions": (_views(lambda: numpy.arange(16).reshape(2, 2, 2, 2)), True),
    "array of no dimensions": (_views(lambda: numpy.array("text")), True),
    "array of no items": (_views(lambda: numpy.zeros((0, 3))), True),
    "array of no bytes": (_views(lambda: numpy.zeros(2, "V0")), True),
    "array spread out": (_views(lambda: numpy.broadcast_to(numpy.arange(3), (2, 3))), True),
    "read-only array": (_views(lambda: numpy.frombuffer(b"12345678", "i4")), True),
    "long array": (_views(lambda: numpy.arange(100_000)), True),
    "array of objects": (_views(lambda: numpy.array([1, "x", None])), False),
    "array of records": (_views(lambda: numpy.zeros(2, [("a", "i4"), ("b", "U2")])), True),
    "array of aligned records": (
        _views(lambda: numpy.zeros(2, numpy.dtype([("a", "i1"), ("b", "f8")], align=True))),
        True,
    ),
    "array of records with titles": (_views(lambda: numpy.zeros(2, [(("title", "a"), "i4")])), False),
    "array of records of arrays": (_views(lambda: numpy.zeros(2, [("a", "i4", (2,))])), False),
    "array of records of records": (_views(lambda: numpy.zeros(2, [("a", [("b", "i4")])])), False),
    "array of records of objects": (_views(lambda: numpy.zeros(2, [("a", "O")])), False),
    "array of records with metadata": (
        _views(lambda: numpy.zeros(2, [("a", numpy.dtype("i4", metadata={"x": 1}))])),
        False,
    ),
    "array of records of somebody's": (_views(lambda: numpy.zeros(2, numpy.dtype((_Record, [("a", "i4")])))), False),
    "array of no records": (_views(lambda: numpy.zeros(2, [])), True),
    "array of arrays": (_views(lambda: numpy.zeros(2, "(2,)i4")[0]), True),
    "array of a subclass": (_views(lambda: numpy.arange(3).view(_Array)), False),
    "masked array": (_views(lambda: numpy.ma.array([1, 2], mask=[0, 1])), False),
    "array with metadata": (_views(lambda: numpy.arange(2).astype(numpy.dtype("i4", metadata={"a": 1}))), False),
    "dtypes": (lambda: [numpy.dtype("f4"), numpy.arange(2), {"x": numpy.dtype("f4"), "y": numpy.dtype(">i4")}], True),
    "dtype of somebody's scalars": (lambda: [1, numpy.dtype((_Void, 8))], False),
    "array of somebody's scalars": (lambda: {"x": [numpy.zeros(2, numpy.dtype((_Void, 8)))]}, False),
    "many arrays of somebody's scalars": (lambda: [numpy.zeros(2, numpy.dtype((_Void, 8)))] * 20, False),
    "dtype alone": (lambda: numpy.dtype("U3"), True),
    "dtype inside": (lambda: [1, ["s", numpy.dtype("i8")]], True),
    "dtype of arrays": (lambda: [1, numpy.dtype("(2,)i4")], False),
    "dtype of records": (lambda: [1, numpy.dtype([("a", "i4")])], True),
    "dtype of objects": (lambda: [1, numpy.dtype("O")], False),
    "scalar": (lambda: [numpy.float64(1.5), numpy.arange(2)], False),
    "24 arrays": (lambda: [numpy.arange(i) for i in range(24)], True),
    "arrays in arrays": (lambda: [[numpy.arange(i)] * 4 for i in range(5)], True),
    "too many arrays": (lambda: [[numpy.arange(i)] * 4 for i in range(9)], False),
    "25 arrays": (lambda: [numpy.arange(i) for i in range(25)], False),
    "array and a set": (lambda: [numpy.arange(2), {"x": {1, 2}}], False),
    "array before something else": (lambda: [numpy.arange(2), {"x": [1, {"y": Path}]}, ["z", 1j]], False),
    "many arrays": (lambda: [numpy.arange(i % 5) for i in range(300)], False),
    "one array many times": (lambda: [numpy.arange(3)] * 100, False),
    "rows with arrays": (lambda: [{"i": i, "x": numpy.arange(3.0), "t": (i, numpy.ones(2))} for i in range(99)], False),
    "arrays of many kinds": (lambda: [make() for make in _KINDS * 20], False),
    "many dtypes": (lambda: [numpy.dtype(f"S{i}") for i in range(1, 40)], False),
    "many builtins": (lambda: [*_of_math()] * 5, False),
    "rows with builtins": (lambda: [{"f": f, "x": [f, 1]} for f in _of_math()], False),
    "names": (lambda: {"f": joblib.hash, "c": [Path, numpy.ndarray, OrderedDict, Path], "x": numpy.arange(2)}, True),
    "class alone": (lambda: OrderedDict, False),
    "function alone": (lambda: joblib.hash, False),
    "name below a class": (lambda: [1, _Kept.write, numpy.arange(2)], False),
    "method": (lambda: [numpy.arange(2), "x".join], False),
    "builtins": (lambda: [len, numpy.arange(2), {"f": sys.exit, "g": len, "h": numpy.arange}], True),
    "builtin alone": (lambda: len, True),
    "builtin of no module": (lambda: [1, dict.fromkeys], False),
    "builtins, many": (lambda: [*_of_math()][:24], True),
    "type of None": (lambda: [type(None), numpy.arange(2)], False),
    "lambda": (lambda: [numpy.arange(2), lambda: None], False),
}  # fmt: skip


@pytest.fixture(params=["stock's", "dill's"])
def entries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the hashers the dispatch that joblib copies, which has dill's entries if dill was imported before."""
    if request.param == "stock's":
        return
    dill = pytest.importorskip("dill", reason="dill is not installed")
    dill.extend(False)
    for base, cls in (_Stock, joblib.hashing.Hasher), (fastpickle.Pickler, joblib_backend.Hasher):
        own = {t: entry for t, entry in cls.dispatch.items() if entry is not base.dispatch.get(t)}
        dill.extend(True)
        try:
            monkeypatch.setattr(cls, "dispatch", {**_Stock.dispatch, **own})
        finally:
            dill.extend(False)
        assert cls.dispatch[dict] is dill._dill.save_module_dict


def _compare(obj: Any, protocol: int) -> None:
    """Hash an object, and then more by the same hasher: with stock, installed, and by our base."""
    for base in _Stock, fastpickle.Pickler:
        found = []
        for is_installed in (False, True):
            cls = joblib.hashing.NumpyHasher if base is _Stock or not is_installed else joblib_backend.NumpyHasher
            with fastpickle.patched() if is_installed else nullcontext():
                hasher = made(cls, protocol)
                found.append([outcome(hasher, obj), outcome(hasher, [obj, "more"])])
        assert found[0] == found[1]


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name: str, protocol: int, tried: list[bool]) -> None:
    """The digest, too, which is of the arrays' bytes in their order, and then of the pickle."""
    make, is_at_once = ARRAYS[name]
    obj = make()
    _compare(obj, protocol)
    assert tried[::2] == [is_at_once and protocol == 3] * 2  # the others may have something in the memo


class _Hash:
    """A hash of somebody's, which notes what it is given."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def update(self, data: Any) -> None:
        self.seen.append(bytes(data))

    def hexdigest(self) -> Any:
        return self.seen


class _Numpy:
    """Stands for numpy, but knows no array but those of a subclass."""

    def __init__(self) -> None:
        self.uint8 = numpy.uint8
        self.memmap = numpy.memmap
        self.dtype = numpy.dtype
        self.ndarray = _Array


class _Sub(joblib.hashing.NumpyHasher):  # type: ignore[misc]  # joblib has no types
    """A hasher whose hash is not where joblib's is."""

    @property
    def _hash(self) -> Any:
        return self.__dict__.setdefault("_hashes", _Hash())

    @_hash.setter
    def _hash(self, value: Any) -> None:
        pass


class _Noting:
    """Stands for stock's class in joblib's functions."""

    __init__ = _Stock.__init__
    memoize = _Stock.memoize
    save_global = _Stock.save_global
    _batch_setitems = _Stock._batch_setitems

    @staticmethod
    def save(hasher: Any, obj: Any) -> None:
        _Stock.save(hasher, obj)
        hasher.write(b"0")


def _import_of(hasher: Any) -> Any:
    """Return a function to import by, which the hash of a hasher tells of."""
    import_module = builtins.__import__

    def imported(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("numpy"):
            hasher._hash.update(b"import")
        return import_module(name, *args, **kwargs)

    return imported


def _init(self: Any, *args: Any) -> None:
    self.args = (*args, "more")


@contextmanager
def _registered(name: str) -> Iterator[None]:
    copyreg.add_extension("numpy", name, 240)
    try:
        yield
    finally:
        copyreg.remove_extension("numpy", name, 240)


def _reduce(dtype: Any) -> Any:
    return str, (str(dtype),)


#: As `FORBIDDEN`, for arrays.
FORBIDDEN_FOR_ARRAYS: dict[str, Callable[[Any, pytest.MonkeyPatch], None]] = {
    **{name: FORBIDDEN[name] for name in ("persistent_id", "memoize", "class's memoize", "write", "framer")},
    "hash": lambda hasher, patch: setattr(hasher, "_hash", _Hash()),
    "numpy": lambda hasher, patch: setattr(hasher, "np", _Numpy()),
    "buffer": lambda hasher, patch: setattr(hasher, "_getbuffer", lambda array: bytes(array)[::-1]),
    "dumps": lambda hasher, patch: patch.setattr(pickle, "dumps", lambda obj: b"dtype"),
    "joblib's dumps": lambda hasher, patch: patch.setattr(
        joblib.hashing, "pickle", types.SimpleNamespace(**{**vars(pickle), "dumps": lambda obj: b"dtype"})
    ),
    "reduce of dtypes": lambda hasher, patch: patch.setitem(
        copyreg.dispatch_table, type(numpy.dtype("i8")), _reduce
    ),
    "save_global": lambda hasher, patch: setattr(hasher, "save_global", lambda obj, name=None: hasher.write(b"name")),
    "class's save_global": lambda hasher, patch: patch.setattr(
        type(hasher), "save_global", lambda self, obj, name=None: self.write(b"name")
    ),
    "entry of classes": lambda hasher, patch: patch.setitem(
        type(hasher).dispatch, type, lambda self, obj: self.write(b"class")
    ),
    "entry of tuples": lambda hasher, patch: patch.setitem(
        type(hasher).dispatch, tuple, lambda self, obj: self.save_list([*obj])
    ),
    "entry of dicts": lambda hasher, patch: patch.setitem(
        type(hasher).dispatch, dict, lambda self, obj: self.save(tuple(obj))
    ),
    "instance's entry of tuples": lambda hasher, patch: setattr(
        hasher, "dispatch", {**type(hasher).dispatch, tuple: lambda self, obj: self.save_list([*obj])}
    ),
    "reduce of the class of dtypes": lambda hasher, patch: patch.setitem(
        copyreg.dispatch_table, type(numpy.dtype), lambda obj: "ndarray"
    ),
    "joblib's base": lambda hasher, patch: patch.setattr(joblib.hashing, "Pickler", _Noting),
    "joblib's types": lambda hasher, patch: patch.setattr(
        joblib.hashing, "types", types.SimpleNamespace(MethodType=types.MethodType, BuiltinMethodType=int)
    ),
    "numpy's arrays": lambda hasher, patch: patch.setattr(numpy, "ndarray", _Array),
    "import": lambda hasher, patch: patch.setattr(builtins, "__import__", _import_of(hasher)),
    "no numpy": lambda hasher, patch: delattr(hasher, "np"),
    "class": lambda hasher, patch: patch.setattr(hasher, "__class__", _Sub),
    "stand-in": lambda hasher, patch: patch.setattr(joblib.hashing._MyHash, "__init__", _init),
    "stand-in's reduce": lambda hasher, patch: patch.setattr(
        joblib.hashing._MyHash, "__reduce__", lambda self: (str, self.args[:1]), raising=False
    ),
    "stand-in's class": lambda hasher, patch: patch.setattr(
        joblib.hashing, "_MyHash", lambda *args: args
    ),
    "stand-in's entry": lambda hasher, patch: patch.setitem(
        type(hasher).dispatch, joblib.hashing._MyHash, lambda self, obj: self.write(b"stand-in")
    ),
    "stand-in's reduce entry": lambda hasher, patch: patch.setitem(
        copyreg.dispatch_table, joblib.hashing._MyHash, lambda obj: (str, obj.args[:1])
    ),
    "whichmodule": lambda hasher, patch: patch.setattr(pickle, "whichmodule", lambda obj, name: "numpy"),
}  # fmt: skip


@pytest.mark.parametrize("where", ["small", "large", "part", "part of what forbids"])
@pytest.mark.parametrize("name", FORBIDDEN_FOR_ARRAYS)
def test_hooks_of_arrays(name: str, where: str, tried: list[bool]) -> None:
    """At once, in the loop, and in an object's state: set before the dump, or by what is asked for that."""
    obj: Any = {"b": numpy.arange(3), "a": [numpy.arange(2.0), 1, len, numpy.dtype("i4")]}
    if where == "large":
        obj = [obj] * 2 + [{**obj, "c": i} for i in range(40)]
    elif where != "small":
        obj = Model({**obj, **{f"x{i}": i for i in range(12)}})
    found = []
    for is_installed in (False, True):
        with pytest.MonkeyPatch.context() as patch, fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.NumpyHasher, 3)
            forbid = partial(FORBIDDEN_FOR_ARRAYS[name], hasher, patch)
            if where == "part of what forbids":
                obj.asked = forbid
            else:
                forbid()
            found.append(outcome(hasher, obj))
    assert found[0] == found[1]
    assert tried == [False]


class Model:
    """An object that goes hook by hook, since its state is asked of somebody's code, which may do anything before."""

    def __init__(self, state: Any, asked: Callable[[], Any] = list) -> None:
        self.state = state
        self.asked = asked

    def __getstate__(self) -> Any:
        self.asked()
        return self.state


def _dict(n: int, **others: Any) -> dict[str, Any]:
    return {**{f"key {i}": i for i in range(n - len(others))}, **others}


def _two_models(state: Any) -> Any:
    """Two of them with the same state, which is memoized with the first one, and part of the second one's."""
    return [Model(state), Model(_dict(13, again=state, more=[state]))]


_SHARED = [1, (2, 3), {"a": b"x"}]
#: Parts of what goes hook by hook, and how many of them are written at once by joblib's hasher at its own protocol.
PARTS: dict[str, tuple[Callable[[], Any], int]] = {
    "11 items": (lambda: Model(_dict(11)), 0),
    "12 items": (lambda: Model(_dict(12)), 1),
    "24 items": (lambda: Model(_dict(24)), 1),
    "25 items": (lambda: Model(_dict(25)), 0),
    "atoms": (lambda: Model(_dict(20, f=1.5, o=None, b=True, t="é", i=2**40, j=-1, y=b"y", e="")), 1),
    "a list": (lambda: Model({"items": [*range(12)]}), 1),
    "a tuple": (lambda: Model({"items": (*range(12),)}), 0),
    "containers": (lambda: Model(_dict(12, a=[1], b={"c": (2,)}, d=(), e=[], f={})), 1),
    "arrays": (lambda: Model(_dict(14, a=numpy.arange(3), b=numpy.zeros(2, [("x", "i4")]), t=len, c=Path)), 1),
    "an array twice": (lambda: Model(_dict(14, a=(x := numpy.arange(3)), b=[x], c={"x": x})), 1),
    "a set": (lambda: Model(_dict(14, a={1, 2})), 0),
    "an instance": (lambda: Model(_dict(14, a=OrderedDict(a=1))), 0),
    "a part within a part": (lambda: Model(_dict(14, a=Model(_dict(12)))), 1),
    "what is in it has a part": (lambda: Model(_dict(14, a={"b": Model(_dict(12))})), 0),
    "shared": (lambda: Model(_dict(13, a=_SHARED, b=[_SHARED, _SHARED[1]], c=_SHARED[2]["a"])), 1),  # type: ignore[index]  # it is a dict
    "shared by two": (lambda: _two_models(_dict(12, x=_SHARED)), 2),
    "shared, and fetched by hooks": (lambda: [Model(_dict(12, x=_SHARED)), OrderedDict(a=_SHARED)], 1),
    "itself": (lambda: _holding_itself(_dict(13)), 1),
    "in its own list": (lambda: _in_its_own_list(Model(_dict(12))), 1),
    "keys of two types": (lambda: Model({**_dict(12), 1: 2}), 0),
    "keys that are tuples": (lambda: Model({(i, "x"): i for i in range(12)}), 1),
    "surrogates": (lambda: Model(_dict(13, a="\ud800")), 0),
    "a long text": (lambda: Model(_dict(13, a="x" * 4097)), 0),
    "many": (lambda: [Model(_dict(12 + i % 9, a=[i], b=(i, str(i)))) for i in range(150)], 150),
    "many with arrays": (lambda: [Model(_dict(13, a=numpy.arange(i % 4), b=[i])) for i in range(60)], 60),
    "deep": (lambda: Model(_dict(12, a=_deep(9))), 1),
    "too deep": (lambda: Model(_dict(12, a=_deep(150))), 0),
}


def _holding_itself(state: dict[str, Any]) -> Any:
    state["itself"] = state
    return Model(state)


def _in_its_own_list(model: Model) -> Any:
    model.state["models"] = models = [model]
    return models


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[bool | None]:
    """Record whether each part that came so far was written at once."""
    seen: list[bool | None] = []
    write_part = small_hashes.write_part

    def record(*args: Any) -> bool | None:
        seen.append(write_part(*args))
        return seen[-1]

    monkeypatch.setattr(own_pickler, "write_part", record)
    return seen


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str, protocol: int, parts: list[bool | None]) -> None:
    make, n = PARTS[name]
    obj = make()
    _compare(obj, protocol)
    # dill's entry leaves each dict to dill that is as long as `__main__`'s.
    if joblib.hashing.Hasher.dispatch[dict] is _Stock.save_dict:
        assert protocol != 3 or parts.count(True) == 2 * n
    else:
        assert True in parts or name != "many"


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", PARTS)
def test_parts_of_datasets(name: str, protocol: int, parts: list[bool | None]) -> None:
    """They are framed from protocol 4 on, and bytes are memoized."""
    obj = PARTS[name][0]()
    cls = datasets.utils._dill.Pickler
    expected = [outcome(_with_stream(cls, protocol), x) for x in (obj, [obj, "more"])]
    with fastpickle.patched():
        assert [outcome(_with_stream(cls, protocol), x) for x in (obj, [obj, "more"])] == expected
    assert True in parts or name != "many"


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
def test_parts_at_the_end_of_a_frame(parts: list[bool | None]) -> None:
    cls = datasets.utils._dill.Pickler
    for n in range(65_536 - 400, 65_536 + 60, 7):
        obj = Model({"a": ["x" * n], "b": Model(_dict(17, y="y" * 60)), "c": Model(_dict(18))})
        expected = outcome(_with_stream(cls, 4), obj)
        with fastpickle.patched():
            assert outcome(_with_stream(cls, 4), obj) == expected, n
    assert {True, False} <= {*parts}


@pytest.mark.parametrize(
    "known", [5, "key 5", None, 1.5, b"y", _SHARED, (), "HASHED", math.sin, math.__name__, Path], ids=repr
)
@pytest.mark.parametrize("protocol", [3, 4])
def test_part_of_which_something_is_memoized(known: Any, protocol: int) -> None:
    """By the code that is asked for the state."""
    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.NumpyHasher, protocol)
            state = _dict(20, a=known, b=1.5, c=None, d=numpy.arange(5), e=5, f=(), g=math.sin, h=Path)
            obj = Model(state, lambda: hasher.memo.setdefault(id(known), (len(hasher.memo), known)))
            found.append(outcome(hasher, obj))
    assert found[0] == found[1]


@pytest.mark.parametrize("before", [0, 100, 250, 256, 1_023, 70_000])
@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_part_behind_much(before: int, protocol: int, parts: list[bool | None]) -> None:
    """There may be no more in the memo than what is kept of opcodes for it."""
    lists: list[Any] = [[] for _ in range(before)]
    obj = [OrderedDict(enumerate(lists)), Model(_dict(14, a=lists[-1:], b=numpy.arange(3), c=[1])), Model(_dict(12))]
    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            found.append(outcome(made(joblib.hashing.NumpyHasher, protocol), obj))
    assert found[0] == found[1]
    assert (True in parts) is (before < 70_000)


@pytest.mark.parametrize("name", ["12 items", "containers", "arrays", "deep"])
def test_recursion_limit_of_parts(name: str) -> None:
    """What stock can hash with so much of the stack left, ours can."""
    obj = PARTS[name][0]()
    deepest = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            joblib.hash(obj)
            deepest.append(max(n for n in range(100) if _hashes_below(n, obj)))
    assert deepest[1] >= deepest[0]


def _file_of(kind: str, write: Any) -> Any:
    if kind == "a function":
        return types.SimpleNamespace(write=lambda data: write(data))
    if kind == "partial":
        return types.SimpleNamespace(write=partial(write))
    return types.SimpleNamespace(write=type("Write", (), {"__call__": lambda self, data: write(data)})())


@pytest.mark.skipif(datasets is None, reason="datasets is not installed")
@pytest.mark.parametrize("kind", ["a function", "partial", "an object"])
def test_part_for_a_file_of_ones_own(kind: str) -> None:
    """From protocol 4 on any function will do for a file, since there is a frame."""
    found = []
    for is_installed in (False, True):
        written: list[bytes] = []
        with fastpickle.patched() if is_installed else nullcontext():
            file = _file_of(kind, lambda data, written=written: written.append(bytes(data)))
            pickler = datasets.utils._dill.Pickler(file, 4, recurse=True)
            pickler.dump(Model(_dict(17)))
        found.append(written)
    assert found[0] == found[1]


class _Unhashable:
    __hash__ = None  # type: ignore[assignment]  # it has none

    def __init__(self, hasher: Any) -> None:
        self.hasher = hasher

    def __eq__(self, other: object) -> bool:
        return self is other

    def __call__(self, obj: Any, save_persistent_id: bool = True) -> None:
        _Stock.save(self.hasher, obj)


@pytest.mark.parametrize("n", [12, 40])
def test_part_where_save_has_no_hash_by_then(n: int) -> None:
    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext(), pytest.MonkeyPatch.context() as patch:
            hasher = made(_Sub, 3)
            change = partial(patch.setattr, _Sub, "save", _Unhashable(hasher), raising=False)
            found.append(outcome(hasher, ["x", Model(_dict(n), change)]))
    assert found[0] == found[1]


@pytest.mark.parametrize("entry", [(2**33, "x"), (-1, "x"), (), {}, ("x", "y"), (True, "x"), (1.0, "x")], ids=repr)
@pytest.mark.parametrize("protocol", [3, 4])
def test_part_of_which_something_is_in_an_odd_place(entry: Any, protocol: int) -> None:
    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.NumpyHasher, protocol)
            obj = Model(_dict(14, a=[1, _SHARED]), lambda: hasher.memo.setdefault(id(_SHARED), entry))
            error, written = None, hasher.stream
            try:
                hasher.dump([5, obj])
            except Exception as exc:
                error = type(exc), str(exc), getattr(exc, "__notes__", None)
            found.append((error, written.getvalue(), len(hasher.memo)))
    assert found[0] == found[1]


class _Key(str):
    """A key that notes what it is compared with."""

    compared: ClassVar[list[object]] = []
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        _Key.compared.append(other)
        return str.__eq__(self, other)


@pytest.mark.usefixtures("entries")
def test_part_with_a_key_that_is_compared() -> None:
    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            state = {**_dict(14), _Key("__name__"): 1}
            _Key.compared.clear()
            joblib.hash(Model(state))
            found.append([*_Key.compared])
    assert found[0] == found[1]


def test_opcodes_for_parts_are_made_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them ends while the other one is at it: in each place is the opcode that memoizes by that number."""
    monkeypatch.setattr(small_hashes, "_more_puts", [*small_hashes._more_puts])
    put = small_hashes.put
    others = [5_000]  # so much is asked for meanwhile

    def put_and_begin_again(protocol: int, i: int) -> bytes:
        if i == 300 and others:
            small_hashes._puts_from(3, others.pop())
        return put(protocol, i)

    monkeypatch.setattr(small_hashes, "put", put_and_begin_again)
    for before in (300, 20_000, 60_000):
        puts = small_hashes._puts_from(3, before)
        assert [*puts] == [put(3, i) for i in range(len(puts))]
        assert len(puts) > before


@pytest.mark.parametrize("change", ["metadata", "a title", "another key"])
def test_fields_that_change(change: str) -> None:
    """A dtype of records that was seen may be given others, with the same names."""
    calls: list[str] = []
    noting = type("Noting", (str,), {"__reduce__": lambda self: (calls.append("x") or str, ("other",))})
    found = []
    for is_installed in (False, True):
        dtype = numpy.dtype([("a", "i4"), ("b", "f8")])
        array = numpy.zeros(2, dtype)
        calls.clear()
        with fastpickle.patched() if is_installed else nullcontext():
            digests = [joblib.hash([array])]
            fields = dict(dtype.fields)
            if change == "metadata":
                fields["a"] = numpy.dtype("i4", metadata={"x": noting("y")}), 0
            elif change == "a title":
                fields["a"] = *fields["a"], noting("title")
            else:
                fields = {noting("a"): fields["a"], "b": fields["b"]}
            state = [*dtype.__reduce__()[2]]
            state[3], state[4] = dtype.names, fields
            dtype.__setstate__(tuple(state))
            for obj in [array], [array, dtype], Model(_dict(14, x=array)):
                digests.append(joblib.hash(obj))
        found.append((digests, [*calls]))
    assert found[0] == found[1]


def test_reduce_of_what_is_in_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    array = numpy.zeros(2, [("a", "i4"), ("b", "f8")])
    with fastpickle.patched():
        joblib.hash(array)
    monkeypatch.setitem(copyreg.dispatch_table, type(numpy.dtype("f8")), _reduce)
    expected = joblib.hash(array)
    with fastpickle.patched():
        assert joblib.hash(array) == expected


class _Lazy(types.ModuleType):
    """A module of one's own class."""


@pytest.mark.parametrize("name", ["usual", "with.dot", "__doc__", "__name__", "text", "\ud800"])
@pytest.mark.parametrize("package", ["found", "missing", "forbidden", "of one's own"])
def test_odd_names(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands under a name in a module's `__dict__` need not be what is found there, and imported."""
    module = (_Lazy if package == "of one's own" else types.ModuleType)("made.up")
    function = types.FunctionType(test_odd_names.__code__, {})
    cls = type("cls", (), {})
    objs: tuple[Any, ...] = (function,) if name == "\ud800" else (function, cls)
    made_of: Any = type("Text", (str,), {})(name) if name == "text" else name
    for obj in objs:
        obj.__module__ = "made.up"
        obj.__qualname__ = obj.__name__ = made_of if obj is function else name
        vars(module)[name] = obj
        monkeypatch.setitem(sys.modules, "made.up", module)
        if package != "missing":
            monkeypatch.setitem(sys.modules, "made", None if package == "forbidden" else types.ModuleType("made"))
        expected = outcome(made(joblib.hashing.NumpyHasher, 3), [1, obj])
        with fastpickle.patched():
            assert outcome(made(joblib.hashing.NumpyHasher, 3), [1, obj]) == expected


@pytest.mark.parametrize("name", ["ndarray", "dtype"])
@pytest.mark.parametrize("n", [1, 40])
def test_extensions(name: str, n: int) -> None:
    """A class that has a number meanwhile, which what is known of a dtype afterwards must not have."""
    obj = [{"x": numpy.arange(3), "y": [numpy.dtype("u8")]}] * n
    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            with _registered(name):
                within = outcome(made(joblib.hashing.NumpyHasher, 3), obj)
            found.append([within, outcome(made(joblib.hashing.NumpyHasher, 3), obj)])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


def test_save_changed_by_what_is_saved() -> None:
    save = joblib.hashing.NumpyHasher.save

    class Changes:
        def __reduce__(self) -> Any:
            joblib.hashing.NumpyHasher.save = lambda self, obj: save(self, obj)
            return int, ()

    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            try:
                found.append(joblib.hash([Changes(), [numpy.float64(1)] * 20]))
            finally:
                joblib.hashing.NumpyHasher.save = save
    assert found[0] == found[1]


@pytest.mark.parametrize("obj", [[1, OrderedDict(a=1), {"x": [joblib.hash, len]}], [[1] * 3, OrderedDict(a=1)] * 20])
def test_another_numpy(obj: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has its name may be anything."""
    expected = outcome(made(joblib.hashing.Hasher, 3), obj)
    for module in None, types.ModuleType("numpy"), types.SimpleNamespace(ndarray=1, dtype=int):
        monkeypatch.setitem(sys.modules, "numpy", module)
        with fastpickle.patched():
            assert outcome(made(joblib.hashing.Hasher, 3), obj) == expected


@pytest.mark.parametrize(
    "obj", [numpy.zeros(3), [numpy.dtype("f8")], [[1] * 3, numpy.zeros(3)] * 20], ids=["alone", "small", "large"]
)
def test_another_class_of_dtypes(obj: Any) -> None:
    """Then the C pickler does not find that of a dtype, whatever is known of it."""
    found = []
    with fastpickle.patched():
        joblib.hash(obj)
    for is_installed in (False, True):
        hasher = made(joblib.hashing.NumpyHasher, 3)
        with fastpickle.patched() if is_installed else nullcontext(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(numpy, "dtype", type("dtype", (), {}))
            with pytest.raises(pickle.PicklingError, match="not the same object") as error:
                hasher.dump(obj)
        notes = getattr(error.value, "__notes__", None)
        found.append([notes, hasher.stream.getvalue(), len(hasher.memo), hasher._hash.hexdigest()])
    assert found[0] == found[1]


def test_dtypes_that_are_exchanged() -> None:
    """One may have the place in memory of another one that was hashed before."""

    def digest() -> str:
        first, last = [numpy.dtype("U5")], [None]
        obj = [[1] * 3, first] + [[i, [i]] for i in range(3000)] + [last]

        def exchange(phase: str, info: Any) -> None:
            if phase == "start" and first[0] is not None:
                place, others = id(first[0]), []
                first[0] = None
                while id(dtype := numpy.dtype("U7")) != place and len(others) < 1000:
                    others.append(dtype)
                last[0] = dtype

        gc.collect()
        gc.callbacks.append(exchange)
        try:
            return str(joblib.hash(obj))
        finally:
            gc.callbacks.remove(exchange)

    expected = digest()
    with fastpickle.patched():
        assert digest() == expected


@pytest.mark.parametrize("obj", [len, [len], [[1] * 3, len, 2] * 20], ids=["alone", "small", "large"])
def test_no_hash(obj: Any) -> None:
    """Only what is hashed by itself needs it."""
    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.NumpyHasher, 3)
            del hasher._hash
            found.append(outcome(hasher, obj))
    assert found[0] == found[1]
    assert found[0][2] is None


@pytest.mark.parametrize("obj", [[[1] * 3] * 40, [[1] * 3, len, numpy.arange(3)] * 20], ids=["plain", "arrays"])
def test_nothing_is_left(obj: Any) -> None:
    """What was hashed is not kept until the garbage collector comes."""

    class Held:
        pass

    held = Held()
    ref = weakref.ref(held)
    is_enabled = gc.isenabled()
    gc.collect()  # the hashers of other tests
    gc.disable()
    try:
        with fastpickle.patched(), suppress(Exception):  # a class that is local cannot be saved
            joblib.hash([*obj, [held]])
        with fastpickle.patched():
            joblib.hash(obj)
            hashers = [x for x in gc.get_objects() if type(x) is joblib.hashing.NumpyHasher]
        del held
        assert ref() is None
        assert not hashers
    finally:
        if is_enabled:
            gc.enable()


@pytest.mark.parametrize("known", [6, (), "HASHED", "args", 1], ids=repr)
def test_memo_of_somebodys(known: Any) -> None:
    """What is in it is fetched, also where joblib memoizes nothing of the kind."""
    obj = [[1] * 3, numpy.arange(6), len] * 9
    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.NumpyHasher, 3)
            _Stock.memoize(hasher, known)
            found.append(outcome(hasher, obj))
    assert found[0] == found[1]


_ROWS: Any = {
    "12 ints": [*range(12)],
    "texts and records": [*"ab", {"a": 5, "HASHED": 1.5, "k": None}, [True], ()] * 20,
    "records": [{"a": 5, "HASHED": 1.5, "k": None, "t": ()} for _ in range(99)],
    "1,001": [5, "HASHED"] + [1.5, (), None, True] * 250,
    "dict": {f"k{i}": (5, 1.5, None, "HASHED", True, ())[i % 6] for i in range(90)},
    "arrays": [*([numpy.arange(5)] for _ in range(30))],
}


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What was found whenever the memo was looked at again."""
    found: list[bool] = []
    look = Dump.is_usual_again
    monkeypatch.setattr(Dump, "is_usual_again", lambda dump: found.append(look(dump)) or found[-1])
    return found


@pytest.mark.parametrize(
    "entry", [(1, None), (2**33, None), (-1, None), (True, None), (1, []), (0, 1, 2), [1, 2], 7], ids=repr
)
@pytest.mark.parametrize("known", [5, "HASHED", None, 1.5, True, ()], ids=repr)
@pytest.mark.parametrize("rows", _ROWS.values(), ids=_ROWS)
def test_data_behind_what_puts_into_the_memo(known: Any, entry: Any, rows: Any, again: list[bool]) -> None:
    """The memo is looked at before much data: what is in it there is fetched, if it is what is never sought else."""
    outcomes = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.NumpyHasher, 3)
            held = (*entry[:1], known) if entry in ((i, None) for i in (1, 2**33, -1, True)) else entry
            obj = [Model(1, partial(hasher.memo.setdefault, id(known), held)), rows, {"a": rows, "b": [*rows]}]
            error = None
            try:
                hasher.dump(obj)
            except Exception as exc:
                error = type(exc), str(exc), getattr(exc, "__notes__", None)
            outcomes.append((error, hasher.stream.getvalue(), len(hasher.memo)))
    assert outcomes[0] == outcomes[1]
    assert not any(again)


class _Index(int):
    """A number in the memo that puts another object into it once it is compared."""

    def __lt__(self, other: Any) -> bool:
        self.hasher.memo[id(_MANY)] = 7, _MANY  # type: ignore[attr-defined]  # as it is made
        return int.__lt__(self, other)


_MANY = 10**9 + 7


def test_data_behind_a_number_that_is_compared() -> None:
    known = [1, 2]
    found = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            hasher = made(joblib.hashing.NumpyHasher, 3)
            index = _Index(0)
            index.hasher = hasher  # type: ignore[attr-defined]  # it has a __dict__
            obj = [Model(1, partial(hasher.memo.setdefault, id(known), (index, known))), [known, *[_MANY] * 20]]
            hasher.dump(obj)
            found.append(hasher.stream.getvalue())
    assert found[0] == found[1]


@pytest.mark.parametrize("known", [[], b"y", _dict], ids=["list", "bytes", "function"])
@pytest.mark.parametrize("rows", _ROWS.values(), ids=_ROWS)
def test_data_behind_somebodys_code(rows: Any, known: Any, again: list[bool]) -> None:
    """Nothing that the data may be was put into the memo: it is not sought there again, until somebody's code runs."""
    obj = [Model(known), rows, [known, *rows], Model(known), [rows, *rows] if isinstance(rows, list) else {**rows}]
    outcomes = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            outcomes.append(outcome(made(joblib.hashing.NumpyHasher, 3), obj))
    assert outcomes[0] == outcomes[1]
    assert True in again


def _within(obj: Any, levels: int) -> Any:
    for _ in range(levels):
        obj = {"a": obj}
    return obj


_OF_FEW_FRAMES: Any = {
    **{repr(x): x for x in (numpy.dtype("f8"), numpy.arange(3), len, numpy.dtype([("a", "i4")]))},
    "a wide dict": {f"k{i}": i for i in range(70)},
    **{f"1200 ints below {n}": _within([*range(1200)], n) for n in (0, 1, 5)},
    **{f"40 texts below {n}": _within([f"{i}" for i in range(40)], n) for n in (0, 1, 5)},
}


@pytest.mark.parametrize("obj", _OF_FEW_FRAMES.values(), ids=_OF_FEW_FRAMES)
def test_recursion_limit_of_what_takes_few_frames(obj: Any) -> None:
    deepest = []
    for is_installed in (False, True):
        with fastpickle.patched() if is_installed else nullcontext():
            joblib.hash(obj)
            deepest.append(max(n for n in range(20, 100) if _hashes_below(n, obj)))
    assert deepest[1] >= deepest[0]


def _hashes_below(n: int, obj: Any) -> bool:
    """Tell whether a hasher can hash an object with so many frames used of 100."""

    def descend(n: int) -> None:
        if n:
            descend(n - 1)
        else:
            hasher.dump(obj)

    hasher = made(joblib.hashing.NumpyHasher, 3)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth() + 100)
    try:
        descend(n)
    except RecursionError:
        return False
    finally:
        sys.setrecursionlimit(limit)
    return True


@pytest.mark.usefixtures("entries")
def test_random_arrays(tried: list[bool], a_part_of: APartOf) -> None:
    seeds = a_part_of(range(1500))
    for seed in seeds:
        rng = random.Random(seed)
        obj = [_value(rng, 2), _array(rng), {"a": [_array(rng), _value(rng, 1)], "b": (_array(rng),)}]
        if rng.random() < 0.5:
            obj.append(obj[1])
        expected = outcome(made(joblib.hashing.NumpyHasher, 3), obj)
        with fastpickle.patched():
            assert outcome(made(joblib.hashing.NumpyHasher, 3), obj) == expected, seed
    assert sum(tried) > len(seeds) / 5
    assert tried.count(False) > len(seeds) / 20


def _array(rng: random.Random) -> Any:
    shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
    array = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape)
    array = array.astype(rng.choice(("i1", "<i4", ">i8", "f4", "f8", "c16", "?", "U4", "S2", "M8[s]", "O")))
    for change in rng.sample(range(4), 2):
        if change == 0:
            array = array.T
        elif change == 1 and array.ndim:
            array = array[:: rng.choice((1, 2, -1))]
        elif change == 2:
            array = numpy.asfortranarray(array)
    return array


@pytest.mark.usefixtures("entries")
def test_arrays_in_digest() -> None:
    """What `joblib.Memory` asks for: the digest itself, by joblib's function and by ours, of all that is here."""
    objs = [make() for make, _ in ARRAYS.values()]
    kept = []
    for obj in objs:
        try:
            joblib.hash(obj)
        except Exception:
            continue
        kept.append(obj)
    assert len(kept) > 40
    for name in "md5", "sha1":
        expected = [joblib.hash(obj, hash_name=name) for obj in kept]
        assert [joblib_backend.hash(obj, hash_name=name) for obj in kept] == expected
        with fastpickle.patched():
            assert [joblib.hash(obj, hash_name=name) for obj in kept] == expected
