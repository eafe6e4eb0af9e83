"""numpy's arrays, scalars and dtypes: by the C pickler, with the bytes, the memo and the calls of stock."""

from __future__ import annotations

import builtins
import copyreg
import io
import pickle
import subprocess
import sys
import types
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from oracle.allowed import PYPY
from oracle.compare import ALL, Implementation, Run, check, stock_dumps
from oracle.engines import PURE
from oracle.parts import APartOf

import fastpickle
from fastpickle._stdlib import CPickler
from fastpickle.accelerator import cpickler
from fastpickle.at_once import quick
from fastpickle.objects import arrays
from fastpickle.objects.last import last

try:
    import dill
except ImportError:
    dill = None
else:
    from fastpickle.backends import dill as backend

    dill.extend(False)
if PYPY:
    pytest.skip("there is no C pickler", allow_module_level=True)
numpy: Any = pytest.importorskip("numpy", reason="numpy is not installed")
_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]
STOCK = Implementation("stock", _Stock)
OURS = Implementation("ours", fastpickle.Pickler)
INSTALLED = Implementation("installed", _Stock, fastpickle.patched)


class Own:
    """Is reduced by its own function, which is to be called just as often."""

    calls = 0

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        Own.calls += 1
        return Own, (str(self.value),)

    def __eq__(self, other: object) -> bool:
        raise AssertionError("nobody asks")

    __hash__ = object.__hash__


class Array(numpy.ndarray):  # type: ignore[misc]
    """Has a reduce of its own."""

    def __reduce__(self) -> Any:
        Own.calls += 1
        return int, (5,)


def _of_objects(*objs: Any) -> Any:
    array = numpy.empty(len(objs), dtype=object)
    array[:] = objs
    return array


def _in_itself() -> Any:
    array = numpy.empty(1, dtype=object)
    array[0] = [array]
    return array


def _shared() -> Any:
    array = numpy.arange(4)
    return [array, array, array.dtype, {"a": array, "b": array.T}, (array.dtype,), numpy.dtype]


def _read_only(n: int = 6) -> Any:
    array = numpy.arange(n, dtype="u1")
    array.flags.writeable = False
    return array


ONE: dict[str, Callable[[], Any]] = {
    "floats": lambda: numpy.arange(5.0),
    "none": lambda: numpy.array([]),
    "one byte": lambda: numpy.zeros(1, "u1"),
    "two bytes": lambda: numpy.zeros(2, "u1"),
    "no dimension": lambda: numpy.array(3.5),
    "matrix": lambda: numpy.arange(12).reshape(3, 4),
    "fortran": lambda: numpy.asfortranarray(numpy.arange(12.0).reshape(3, 4)),
    "not contiguous": lambda: numpy.arange(20)[::2],
    "broadcast": lambda: numpy.broadcast_to(numpy.arange(3), (4, 3)),
    "read only": _read_only,
    "tiny, read only": lambda: [*map(_read_only, (0, 0, 1, 1)), b"", b"\0", _read_only(0)],
    "tiny": lambda: [b"", *(numpy.arange(n, dtype="u1") for n in (0, 0, 1, 1)), b"", b"\0"],
    "big endian": lambda: numpy.arange(5, dtype=">i4"),
    "texts": lambda: numpy.array(["a", "bcd"]),
    "bytes": lambda: numpy.array([b"a", b"bcd"]),
    "dates": lambda: numpy.array(["2020-01-02", "NaT"], dtype="M8[D]"),
    "booleans": lambda: numpy.array([True, False]),
    "rows": lambda: numpy.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "a module's names": lambda: numpy.zeros(2, dtype=[("__name__", "i4"), ("b", "f8")]),
    "metadata": lambda: numpy.zeros(2, numpy.dtype("f8", metadata={"a": [1]})),
    "somebody's metadata": lambda: numpy.zeros(2, numpy.dtype("f8", metadata={"a": Own(1)})),
    "objects": lambda: _of_objects(1, "a", None, [2.5], {"b": (3,)}),
    "somebody's objects": lambda: _of_objects(1, Own(2), "a", Own(3)),
    "in itself": _in_itself,
    "a frame": lambda: numpy.arange(9_000.0),
    "64 KiB": lambda: numpy.zeros(1 << 16, "u1"),
    "more": lambda: numpy.zeros((1 << 16) + 1, "u1"),
    "looks like an end": lambda: numpy.frombuffer(b"e(Ke." * 300 + b"u(u", "u1"),
    "matrix class": lambda: numpy.asmatrix([[1, 2]]),
    "somebody's class": lambda: numpy.arange(3).view(Array),
    "masked": lambda: numpy.ma.array([1, 2], mask=[True, False]),
    "records": lambda: numpy.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "scalars": lambda: [
        numpy.float64(1.5), numpy.int8(3), numpy.bool_(True), numpy.str_("a"), numpy.bytes_(b"b"), numpy.complex64(1),
        numpy.datetime64("2020-01-02"), numpy.timedelta64(3, "D"), numpy.longdouble(2),
    ],
    "void": lambda: [numpy.zeros(1, dtype=[("a", "i4")])[0], numpy.void(b"abc")],
    "dtypes": lambda: [numpy.dtype(x) for x in ("f8", ">i2", "O", "S3", "U2", "M8[s]", [("a", "f4")], ("f4", (2,)))],
    "classes": lambda: [numpy.dtype, type(numpy.dtype("f8")), numpy.ndarray, numpy.float64, type(numpy.dtype)],
    "functions": lambda: [numpy.sin, numpy.mean, numpy.dot, numpy.random.rand],
    "shared": _shared,
}  # fmt: skip
WHERE: dict[str, Callable[[Any], Any]] = {
    "alone": lambda x: x,
    "in a list": lambda x: [x, "text", [1, 2], x],
    "in arguments": lambda x: ("f", (x, 3), {"k": x}),
    "among many": lambda x: [{"id": i, "x": x if i % 20 == 3 else i} for i in range(100)],
    "beside their names": lambda x: [
        "dtype",
        x,
        {"ndarray": x, "numpy": "_reconstruct"},
        *[{"dtype": [x, "dtype"]}] * 60,
    ],
    "beside others": lambda x: [Own(1), x, *[numpy.arange(i) for i in range(30)], numpy.eye(2, order="F"), Own(2), [x]],
    "beside somebody's": lambda x: [Own(1), [x, *range(100)], Own(2), x, [str(i) for i in range(60)]],
}


def _memo(memo: Any) -> Any:
    """Return what is memoized, but for a buffer of an array: a copy here, itself or a copy on stock."""
    return [
        (i, "a copy" if type(x) in (bytes, bytearray, pickle.PickleBuffer) else type(x))
        for i, x in (memo[key] for key in memo)
    ]


def outcome(dump: Callable[[Any, int], Any], make: Callable[[], Any], protocol: int) -> Any:
    Own.calls = 0
    try:
        found = dump(make(), protocol)
    except Exception as exc:
        found = type(exc), str(exc), getattr(exc, "__notes__", None)
    return found, Own.calls


def _by(cls: Any) -> Callable[[Any, int], Any]:
    def dump(obj: Any, protocol: int) -> Any:
        file = io.BytesIO()
        pickler = cls(file, protocol)
        pickler.dump(obj)
        pickler.dump([obj, "more"])
        return file.getvalue(), _memo(pickler.memo)

    return dump


@pytest.mark.parametrize("protocol", ALL)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", ONE)
def test_same_bytes(name: str, where: str, protocol: int) -> None:
    """By dumps(), by a pickler, installed; what is somebody's runs as often, and what is memoized is alike."""

    def make() -> Any:
        return WHERE[where](ONE[name]())

    expected = outcome(stock_dumps, make, protocol)
    assert outcome(fastpickle.dumps, make, protocol) == expected
    assert outcome(fastpickle.dumps, make, protocol) == expected  # what is remembered of the last one
    expected = outcome(_by(_Stock), make, protocol)
    assert outcome(_by(fastpickle.Pickler), make, protocol) == expected
    with fastpickle.patched():
        assert outcome(_by(_Stock), make, protocol) == expected


@pytest.fixture
def by_c(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Record of each dump that came so far whether C has written all of it."""
    found: list[bool] = []
    ask = quick.Quick.at_once

    def record(*args: Any) -> Any:
        pickled = ask(*args)
        found.append(bool(pickled))
        return pickled

    monkeypatch.setattr(quick.Quick, "at_once", record)
    yield found


FOR_C = ("floats", "matrix", "fortran", "not contiguous", "texts", "dates", "rows", "objects", "scalars", "dtypes")


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler")
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_by_c(protocol: int, by_c: list[bool]) -> None:
    for name in FOR_C:
        for where in ("alone", "in a list", "in arguments", "among many"):
            fastpickle.dumps(WHERE[where](ONE[name]()), protocol)
            assert by_c.pop(), (name, where)


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_lists_in_arrays_in_a_dict(protocol: int) -> None:
    """The garbage collector tracks no array, nor a dict of such, whatever is in them: that is ended anew, too."""
    for n in 999, 1000, 1001:
        obj = {**dict.fromkeys(range(n)), "a": numpy.array([[*range(1001)], {*range(1000)}, None], object)}
        expected = stock_dumps(obj, protocol)
        file = io.BytesIO()
        fastpickle.Pickler(file, protocol).dump(obj)
        assert file.getvalue() == fastpickle.dumps(obj, protocol) == expected


@pytest.mark.skipif(dill is None, reason="dill is not installed")
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("n", [500, 3000])
def test_lists_in_arrays_in_a_dict_by_dill(
    n: int, protocol: int, monkeypatch: pytest.MonkeyPatch, a_part_of: APartOf
) -> None:
    """dill reduces arrays, so their type is not among those that C knows: their dtype, saved before, was not either."""
    module = types.ModuleType("of_this_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in "__loader__", "__spec__":
        module.__dict__.pop(name)
    arrays_in_dicts = []
    for inside in [*range(1001)], [[*range(1001)]], [vars(module)], [vars(module)] * 30:
        array = numpy.empty(len(inside), object)
        array[:] = inside
        few = dict.fromkeys(range(n))
        many = {str(i): numpy.empty(1, object) for i in range(40)}  # so many that C is asked in another way
        arrays_in_dicts += [{**few, "a": array}, {**few, **many, "a": array}, {**few, "a": (array, [], len)}]
    dtype = numpy.dtype("O")
    for obj in a_part_of(arrays_in_dicts):
        for before in ([dtype], [Own(1), dtype], [dtype, lambda: 0]):
            whole = [*before, obj]
            expected = dill.dumps(whole, protocol)
            assert backend.dumps(whole, protocol) == expected
            with fastpickle.patched():
                assert dill.dumps(whole, protocol) == expected
            outputs = []
            for cls in dill.Pickler, backend.Pickler:
                file = io.BytesIO()
                pickler = cls(file, protocol)
                pickler.dump(before)
                pickler.dump(obj)
                outputs.append(file.getvalue())
            assert outputs[0] == outputs[1]


def _reduce(obj: Any) -> Any:
    Own.calls += 1
    return str, ("mine",)


#: What makes arrays somebody's: each is done to a pickler that has not dumped yet.
SOMEBODYS: dict[str, Callable[[Any, pytest.MonkeyPatch], object]] = {
    "copyreg": lambda pickler, patch: patch.setitem(copyreg.dispatch_table, numpy.ndarray, _reduce),
    "copyreg, dtype": lambda pickler, patch: patch.setitem(copyreg.dispatch_table, type(numpy.dtype("f8")), _reduce),
    "copyreg, classes of dtypes": lambda pickler, patch: patch.setitem(
        copyreg.dispatch_table, type(numpy.dtype), _reduce
    ),
    "copyreg, no classes of dtypes": lambda pickler, patch: patch.delitem(copyreg.dispatch_table, type(numpy.dtype)),
    "copyreg, scalar": lambda pickler, patch: patch.setitem(copyreg.dispatch_table, numpy.float64, _reduce),
    "table": lambda pickler, patch: setattr(pickler, "dispatch_table", {numpy.ndarray: _reduce}),
    "table, dtype": lambda pickler, patch: setattr(
        pickler, "dispatch_table", ChainMap({type(numpy.dtype("f8")): _reduce}, copyreg.dispatch_table)
    ),
    "table, classes of dtypes": lambda pickler, patch: setattr(
        pickler, "dispatch_table", ChainMap({type(numpy.dtype): _reduce}, copyreg.dispatch_table)
    ),
    "no table": lambda pickler, patch: setattr(pickler, "dispatch_table", {}),
    "dispatch": lambda pickler, patch: setattr(
        pickler, "dispatch", {**pickler.dispatch, numpy.ndarray: lambda self, obj: self.save_reduce(*_reduce(obj))}
    ),
    "dispatch, dtype": lambda pickler, patch: setattr(
        pickler,
        "dispatch",
        {**pickler.dispatch, type(numpy.dtype("f8")): lambda self, obj: self.save_reduce(*_reduce(obj))},
    ),
    "override": lambda pickler, patch: setattr(
        pickler, "reducer_override", lambda obj: _reduce(obj) if type(obj) is numpy.ndarray else NotImplemented
    ),
    "persistent": lambda pickler, patch: setattr(
        pickler, "persistent_id", lambda obj: "mine" if type(obj) is numpy.ndarray else None
    ),
    "another numpy": lambda pickler, patch: patch.setitem(sys.modules, "numpy", types.ModuleType("numpy")),
    "no numpy": lambda pickler, patch: patch.delitem(sys.modules, "numpy"),
    "another dtype": lambda pickler, patch: patch.setattr(numpy, "dtype", 5),
    "another array": lambda pickler, patch: patch.setattr(numpy, "ndarray", int),
}


@pytest.mark.parametrize("how", SOMEBODYS)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_somebodys(how: str, protocol: int) -> None:
    """What is registered, or put into a pickler or into numpy, counts."""
    for make in (
        lambda: [numpy.arange(5.0), numpy.float64(3), "x"],
        lambda: numpy.arange(3.0),
        lambda: [[numpy.arange(i) for i in range(70)], "x"],
    ):
        found = []
        for cls in (_Stock, fastpickle.Pickler):
            obj = make()
            with pytest.MonkeyPatch.context() as patch:

                def dump(obj: Any, protocol: int) -> Any:
                    file = io.BytesIO()
                    pickler = cls(file, protocol)
                    SOMEBODYS[how](pickler, patch)
                    try:
                        pickler.dump(obj)
                    except Exception as exc:
                        return file.getvalue(), type(exc), str(exc)
                    return file.getvalue(), _memo(pickler.memo)

                found.append(outcome(dump, lambda: obj, protocol))
        assert found[0] == found[1]


@pytest.mark.parametrize("make", [lambda: [numpy.arange(3)], lambda: [numpy.float64(1)], lambda: [numpy.dtype("f8")]])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_imports(make: Callable[[], Any], protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy imports by `__import__`, whoever's that is, what it reduces an object to: just as often."""
    calls: list[str] = []
    usual = builtins.__import__
    dumps = [stock_dumps, fastpickle.dumps, *([dill.dumps, backend.dumps] if dill is not None else [])]
    for dump in dumps:
        dump(make(), protocol)
    monkeypatch.setattr(
        builtins, "__import__", lambda name, *args, **more: (calls.append(name), usual(name, *args, **more))[1]
    )
    counts = []
    for dump in dumps:
        calls.clear()
        dump(make(), protocol)
        counts.append(sum(name.startswith(("numpy._core", "numpy.core")) for name in calls))
    assert counts[0] == counts[1]
    assert counts[2:3] == counts[3:]


@pytest.mark.parametrize("answer", [None, True, False])
def test_buffers(answer: bool | None) -> None:
    """Who wants the buffers gets each of them, and may keep them."""
    for obj in ([numpy.arange(5.0), _read_only(), numpy.array([])], [[numpy.arange(i) for i in range(70)]]):
        found = []
        for cls in (_Stock, fastpickle.Pickler):
            file = io.BytesIO()
            buffers: list[Any] = []
            cls(file, 5, buffer_callback=lambda x: (buffers.append(bytes(x)), answer)[1]).dump(obj)
            found.append((file.getvalue(), buffers))
        assert found[0] == found[1]


needs_dill = pytest.mark.skipif(dill is None, reason="dill is not installed")


@needs_dill
@pytest.mark.parametrize("protocol", ALL)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", ONE)
def test_same_bytes_by_dill(name: str, where: str, protocol: int) -> None:
    """dill saves them by a function of its own; by dumps(), by a pickler, on our base."""

    def make() -> Any:
        return WHERE[where](ONE[name]())

    for _ in range(2):
        expected = outcome(dill.dumps, make, protocol)
        assert outcome(backend.dumps, make, protocol) == expected
        with fastpickle.patched():
            assert outcome(dill.dumps, make, protocol) == expected
        expected = outcome(_by(dill.Pickler), make, protocol)
        assert outcome(_by(backend.Pickler), make, protocol) == expected
        with fastpickle.patched():
            assert outcome(_by(dill.Pickler), make, protocol) == expected


def _of_ones_own(pickler: Any, obj: Any) -> None:
    pickler.save_reduce(*_reduce(obj), obj=obj)


#: How arrays are saved otherwise than dill would.
OTHERWISE: dict[str, Callable[[pytest.MonkeyPatch], object]] = {
    "registered": lambda patch: patch.setitem(dill.Pickler.dispatch, numpy.ndarray, _of_ones_own),
    "another function of dill's": lambda patch: patch.setitem(
        dill.Pickler.dispatch, numpy.ndarray, dill._dill.save_singleton
    ),
    "not registered": lambda patch: patch.delitem(dill.Pickler.dispatch, numpy.ndarray),
    "registered, dtype": lambda patch: patch.setitem(dill.Pickler.dispatch, type(numpy.dtype("f8")), _of_ones_own),
    "registered, classes of dtypes": lambda patch: patch.setitem(
        dill.Pickler.dispatch, type(numpy.dtype), _of_ones_own
    ),
    "function": lambda patch: patch.setattr(dill._dill, "_create_array", _reduce),
    "helper": lambda patch: patch.setattr(dill._dill, "_locate_function", lambda *args: (_reduce(0), False)[1]),
    "save_type": lambda patch: patch.setattr(dill._dill, "save_type", _of_ones_own),
    "registered again": lambda patch: patch.setitem(dill.Pickler.dispatch, Array, dill.Pickler.dispatch[numpy.ndarray]),
    "trace": lambda patch: patch.setattr(dill._dill, "is_dill", lambda *args, **more: (_reduce(0), True)[1]),
    "copyreg": lambda patch: patch.setitem(copyreg.dispatch_table, numpy.ndarray, _reduce),
}


@needs_dill
@pytest.mark.parametrize("how", OTHERWISE)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_somebodys_by_dill(how: str, protocol: int) -> None:
    dill.dumps(numpy.arange(3))  # which registers them
    for make in (
        lambda: [numpy.arange(5.0), numpy.float64(3), "x"],
        lambda: [[numpy.arange(i) for i in range(70)], "x"],
        lambda: [Own(1), *[numpy.arange(i) for i in range(70)], numpy.arange(5).view(Array), Own(2)],
    ):
        obj = make()
        found = []
        for around in (nullcontext, fastpickle.patched):
            with pytest.MonkeyPatch.context() as patch:
                OTHERWISE[how](patch)
                with around():
                    found.append(outcome(dill.dumps, lambda: obj, protocol))
        assert found[0] == found[1]


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler")
@needs_dill
@pytest.mark.parametrize("protocol", [4, 5])
def test_by_c_through_dill(protocol: int, by_c: list[bool]) -> None:
    """From the second dump with one of them on: before, dill does not know arrays."""
    dill.dumps(numpy.arange(3))
    for name in FOR_C:
        for where in ("in a list", "in arguments", "among many"):
            last.forget()
            with fastpickle.patched():
                dill.dumps(WHERE[where](ONE[name]()), protocol)
            assert by_c.pop(), (name, where)


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler")
@pytest.mark.parametrize("before", ["alone", "in a list", "by dill", "by joblib"])
def test_little_ones_behind_others(before: str, by_c: list[bool]) -> None:
    """C writes them, though it gave up at a large one, or at one that a library saves by itself."""
    large = numpy.arange(100_000.0)
    little = {"x": numpy.ones((20, 3)), "alpha": 0.5, "seed": None}
    for _ in range(3):
        if before == "by joblib":
            with fastpickle.patched():
                pytest.importorskip("joblib").dump(little, io.BytesIO())
        elif before == "by dill":
            with fastpickle.patched():
                pytest.importorskip("dill").dumps(large)
        else:
            fastpickle.dumps(large if before == "alone" else [large])
    for obj in (little, [little, 1], [{"id": i, **little} for i in range(20)]) * 2:
        assert fastpickle.dumps(obj, 4) == stock_dumps(obj, 4)
        assert by_c[-1]


@needs_dill
def test_told_with_their_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays in what goes hook by hook are written at once after the first, since dill saves their class with it."""
    functions = pytest.importorskip("fastpickle.backends._dill_functions")
    monkeypatch.setattr(functions, "_entries_of_arrays", [])
    kept = {**functions.hooks.entry_writers}
    for key, writer in kept.items():
        if writer is functions._write_array:
            del functions.hooks.entry_writers[key]
    try:
        obj = Holder([numpy.arange(n, dtype=kind) for kind in ("f8", "i4", "f8", "O") for n in range(4)])
        for protocol in range(6):
            expected = dill.dumps(obj, protocol)
            with fastpickle.patched():
                assert dill.dumps(obj, protocol) == expected
        (entry,) = functions._entries_of_arrays
        assert functions.hooks.entry_writers[id(entry)] is functions._write_array
        assert entry is dill.Pickler.dispatch[numpy.ndarray]
    finally:
        functions.hooks.entry_writers.clear()
        functions.hooks.entry_writers.update(kept)


class Holder:
    """Has a state of its own that runs anybody's code."""

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__, n=len(self.arrays))


class _Asked:
    """Stands for the name of a module, and is asked what it equals."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __eq__(self, other: object) -> bool:
        self.seen.append(other)
        return True

    __hash__ = None  # type: ignore[assignment]  # as Python itself says that there is none


@needs_dill
@pytest.mark.parametrize("name", ["ndarray", "ufunc", "dtype", "other"])
def test_classes_that_look_like_numpys(name: str) -> None:
    """dill goes by the names of a class and of its module; the latter may be anything, which is asked."""
    found = []
    for around in (nullcontext, fastpickle.patched):
        for module in (_Asked(), "numpy", "numpy.other"):
            t = type(name, (), {"__module__": module, "__reduce__": lambda self: (str, ("text",))})
            objs = [t() for _ in range(3)] + [type("sub", (t,), {})()]
            seen = module.seen if isinstance(module, _Asked) else []
            dispatch = {**dill.Pickler.dispatch}
            try:
                with around():
                    found.append((outcome(dill.dumps, lambda objs=objs: objs, 4), [*seen]))
            finally:
                dill.Pickler.dispatch.clear()
                dill.Pickler.dispatch.update(dispatch)
    assert found[:3] == found[3:]


class _Name(str):
    """The name of a class may be any text, which is not asked for its hash."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as Python itself says that there is none


@needs_dill
@pytest.mark.parametrize("name", ["ndarray", "other"])
def test_class_whose_name_has_no_hash(name: str) -> None:
    """dill compares it, if at all."""
    t = type("T", (), {"__reduce__": lambda self: (str, ("text",))})
    t.__name__ = _Name(name)
    obj = [t() for _ in range(300)]
    expected = outcome(dill.dumps, lambda: obj, 4)
    with fastpickle.patched():
        assert outcome(dill.dumps, lambda: obj, 4) == expected
    assert isinstance(expected[0], bytes)


@needs_dill
def test_first_array_of_all() -> None:
    """dill makes and registers its function when it meets the first array; so it does then."""
    code = (
        "import dill, numpy, fastpickle, sys\n"
        "if sys.argv[1] == '1': fastpickle.install()\n"
        "found = [dill.dumps([numpy.arange(3), {'a': numpy.float64(2)}]).hex() for _ in range(3)]\n"
        "print(found, [t.__name__ for t in dill.Pickler.dispatch if t.__module__.startswith('numpy')])\n"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code, is_installed], check=True, capture_output=True, text=True, timeout=120,
            cwd=Path(fastpickle.__file__).parent.parent,
        ).stdout
        for is_installed in "01"
    ]  # fmt: skip
    assert found[0] == found[1]
    assert "ndarray" in found[0]


def test_no_buffer_is_left() -> None:
    """An array may be resized while a pickler is there that has dumped it: its memo does not keep the buffer."""
    array = numpy.arange(100.0)
    pickler = fastpickle.Pickler(io.BytesIO(), 5)
    pickler.dump([array])
    pickler.clear_memo()
    array.resize(10, refcheck=False)
    with pytest.raises(ValueError, match="cannot resize"):
        memoryview(array), array.resize(5)


def test_large_ones_are_not_copied_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """What C would give up behind it would have it copied twice."""
    seen = []
    is_little = arrays.is_little
    monkeypatch.setitem(
        cpickler.LOOKED_INTO, numpy.ndarray, lambda array: (seen.append(array.nbytes), is_little(array))[1]
    )
    obj = [numpy.zeros(1 << 20, "u1"), "x", object()]
    assert fastpickle.dumps(obj, 4) == stock_dumps(obj, 4)
    assert all(n > 1 << 16 for n in seen)


def test_types_are_only_numpys() -> None:
    """Whoever is called numpy: types that can be changed are none."""
    assert arrays.array_type() is numpy.ndarray
    assert numpy.float64 in arrays.scalar_types()
    assert numpy.void not in arrays.scalar_types()
    assert not arrays.is_dtype(int)
    assert arrays.is_dtype(type(numpy.dtype("f8")))
    assert not arrays.is_dtype(type(numpy.dtype))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy, "ndarray", int)
        assert arrays.array_type() is None
        patch.setattr(numpy, "ndarray", Array)
        assert arrays.array_type() is None
        patch.setitem(sys.modules, "numpy", None)
        assert arrays.array_type() is None
        assert arrays.scalar_types() == []

    class Meta(type):
        pass

    class Fake(metaclass=Meta):
        pass

    assert not arrays.is_dtype(Fake)


def test_hooks_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle's comparison: sizes of writes, attributes, the memo at protocols without buffers."""

    def steps(run: Run) -> None:
        run.pickler.dump([numpy.arange(5.0), numpy.float64(2), [numpy.arange(3)] * 2])
        run.pickler.dump({"a": numpy.arange(70_000, dtype="u1")})

    for ours in (OURS, INSTALLED, PURE):
        check(STOCK, ours, steps, protocols=(0, 1, 2, 3, 4))
