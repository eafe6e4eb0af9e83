"""joblib.dump: its NumpyPickler under fastpickle.patched(), and on our base, against itself on stock.

Not for: joblib's hashers (`test_hashers`), nor for real objects of numpy's and pandas' (`compat/scientific`).
"""

from __future__ import annotations

import copyreg
import datetime
import decimal
import io
import pickle
import random
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oracle import objects, strategies
from oracle.allowed import PYPY
from oracle.compare import ALL, Implementation, PythonFile, Run, dump_where_it_fails
from oracle.engines import Stock
from oracle.parts import APartOf
from oracle.suite_evil import EvilSuite
from oracle.suite_hooks import HookSuite
from oracle.suite_values import Suite, ValueSuite

import fastpickle
from fastpickle import _stdlib, graft, hooks, way
from fastpickle.accelerator import chunks, offers
from fastpickle.at_once import small

if PYPY:
    pytest.skip("nothing is put in place of stock's methods there", allow_module_level=True)
joblib = pytest.importorskip("joblib", reason="joblib is not installed")
backend: Any = pytest.importorskip("fastpickle.backends.joblib", reason="joblib is not installed")
numpy: Any = pytest.importorskip("numpy", reason="numpy is not installed")
FRAME = 64 * 1024
_NumpyPickler: Any = joblib.numpy_pickle.NumpyPickler


def made_like_a_pickler(cls: Any) -> Any:
    """Make a NumpyPickler that takes all arguments of stock's."""

    class NumpyPickler(cls):
        def __init__(self, file: Any, protocol: int | None = None, **arguments: Any) -> None:
            Stock.__init__(self, file, protocol, **arguments)
            self.file_handle = file
            self.buffered = False
            self.np = numpy

    NumpyPickler.__qualname__ = "NumpyPickler"
    return NumpyPickler


class Joblib:
    breadth = 1
    oracle = Implementation("NumpyPickler", made_like_a_pickler(_NumpyPickler))


class Installed(Joblib):
    ours = Implementation("NumpyPickler, installed", Joblib.oracle.base, fastpickle.patched)


class Backend(Joblib):
    ours = Implementation("backends.joblib.NumpyPickler", made_like_a_pickler(backend.NumpyPickler))


class TestValues(Installed, ValueSuite):
    pass


class TestBackendValues(Backend, ValueSuite):
    pass


class TestHooks(Installed, HookSuite):
    pass


if strategies.is_thorough():  # they take minutes

    class TestEvil(Installed, EvilSuite):
        pass

    class TestBackendHooks(Backend, HookSuite):
        pass


class Model:
    """What joblib.dump is for: an instance with arrays among its attributes."""

    def __init__(self, n: int) -> None:
        self.weights = numpy.arange(float(n))
        self.names = [f"feature {i}" for i in range(n)]
        self.parameters = {"depth": n, "rate": 0.5, "kind": None}


def _wrapping(base: Any, run: Run) -> Any:
    """Return a subclass that looks where it is when it makes a wrapper."""

    def wrap(self: Any, array: Any) -> Any:
        frame = self.framer.current_frame
        run.record("wraps", array, frame and frame.tell(), len(self.memo))
        return base._create_array_wrapper(self, array)

    return type("Wrapping", (base,), {"_create_array_wrapper": wrap})


class Holds:
    """An instance of a plain class."""

    def __init__(self, array: Any) -> None:
        self.array = array


class Sub(numpy.ndarray):  # type: ignore[misc]  # numpy is Any
    """No exact array: it is saved by its reduce."""


def arrays() -> dict[str, Any]:
    """Make arrays of each kind that NumpyPickler tells apart."""
    table = numpy.arange(12.0).reshape(3, 4)
    return {
        "one": numpy.arange(5),
        "empty": numpy.zeros(0),
        "of no dimensions": numpy.array(1.5),
        "in Fortran's order": numpy.asfortranarray(table),
        "with gaps": table[:, ::2],
        "of objects": numpy.array([{"a": 1}, "text", [1, 2]], dtype=object),
        "of records": numpy.zeros(3, dtype=[("a", "i4"), ("b", "U5")]),
        "a matrix": table.view(numpy.matrix),
        "a subclass": table.view(Sub),
        "large": numpy.arange(20_000),
        "a number": numpy.float64(2.5),
        "a dtype": numpy.dtype("i4"),
    }


def around(array: Any) -> dict[str, Any]:
    """Make what is dumped with an array in it."""
    plain = [{"id": i, "name": f"name {i}", "tags": [i, i + 1]} for i in range(60)]
    long = [f"text {i}" * 20 for i in range(1500)]  # more than a frame, and than a batch
    return {
        "alone": array,
        "in a list": [array, 1, "text", array],
        "in a dict": {"plain": plain, "array": array, "more": plain},
        "behind plain data": [*plain, array, *plain],
        "behind a frame": [long, array, long],
        "behind a batch": [*long, array],
        "in rows": [{"id": i, "array": array, "tags": [i, i]} for i in range(30)],
        "in tuples": [(i, array, f"t{i}") for i in range(100)],
        "in an instance": Model(5),
        "in instances": [Model(i) for i in range(30)],
        "list of them": [array] * 50,
    }


class ArraySuite(Joblib, Suite):
    """Arrays of every kind, in everything."""

    @pytest.mark.parametrize("kind", arrays())
    def test_arrays(self, kind: str) -> None:
        """The bytes of an array come between frames; what is around it is saved as ever."""
        for place, obj in around(arrays()[kind]).items():
            self.check_object(obj, protocols=ALL if place == "in a list" else self.some(kind, place), case=place)

    def test_memory_mapped(self, tmp_path: Path) -> None:
        """What is mapped from a file is saved as an array."""
        numpy.save(tmp_path / "array.npy", numpy.arange(6.0))
        mapped = numpy.load(tmp_path / "array.npy", mmap_mode="r")
        self.check_object([mapped, {"a": mapped}, *range(60)])

    def test_file_of_ones_own(self) -> None:
        """A file written in Python gets the same writes."""
        for place, obj in around(numpy.arange(5)).items():
            self.check_object(obj, file=_Tells, case=place)

    def test_no_numpy(self) -> None:
        """Where joblib has found no numpy, arrays are saved by their reduces."""

        def steps(run: Run) -> None:
            run.pickler.np = None
            run.pickler.dump([numpy.arange(5), *range(60)])

        self.check(steps)

    @pytest.mark.parametrize("method", ["_create_array_wrapper", "save"])
    def test_subclass(self, method: str) -> None:
        """Overrides of the class's own methods are called as often."""

        def subclass(base: Any, run: Run) -> Any:
            def recorded(self: Any, obj: Any, *more: Any) -> Any:
                run.record(method, obj)
                return getattr(base, method)(self, obj, *more)

            return type("Recorded", (base,), {method: recorded})

        for place, obj in around(numpy.arange(5)).items():
            self.check_object(obj, cls=subclass, case=place)

    @pytest.mark.parametrize("protocol", [2, 4, 5])
    @pytest.mark.parametrize("when", ["tell", "reduce"])
    def test_changed_by_an_array(self, protocol: int, when: str) -> None:
        """Code that runs while an array is written sets hooks: they are heard from there on."""

        def steps(run: Run) -> None:
            def act() -> None:
                run.pickler.persistent_id = lambda obj: run.record("persistent_id", obj)

            run.file.act = act if when == "tell" else None
            array = numpy.arange(5) if when == "tell" else numpy.array([objects.Acting(act)], dtype=object)
            run.pickler.dump([*({"a": i, "b": [i]} for i in range(60)), array, *({"a": i} for i in range(60))])

        self.check(steps, file=_Tells, protocols=(protocol,))

    @pytest.mark.parametrize("place", ["atoms", "rows", "behind others", "arguments", "instances", "chunk"])
    def test_memoized_array(self, place: str) -> None:
        """An array that somebody has put into the memo is written again all the same, wherever it is met."""

        def steps(run: Run) -> None:
            array = numpy.arange(3)
            shared = [1]
            others = [shared] * 40 + [array] * 40
            places = {
                "atoms": [array, 1, array, *["text", array] * 20, (1, array)],
                "rows": [[array] * 60, [{"a": array, "b": i} for i in range(60)], [[array]] * 60],
                "behind others": [others, [[x, i] for i, x in enumerate(others)], [{"a": x} for x in others]],
                "arguments": [objects.Reduced((objects.make, (array, i))) for i in range(10)],
                "instances": [Holds(array) for _ in range(60)],
                "chunk": [[f"text {i}" for i in range(3000)], [[array]] + [[i] for i in range(3000)]],
            }
            plain = [{"a": i} for i in range(60)]  # so that there is a plan
            run.pickler.dump([*plain, objects.Acting(lambda: run.pickler.memoize(array)), places[place]])
            run.pickler.dump([*plain, places[place]])

        for protocol in ALL:
            self.check(steps, protocols=(protocol,), case=place)

    def test_numpy_found_between_dumps(self) -> None:
        """What was memoized while joblib had no numpy is written as arrays in the next dump."""

        def steps(run: Run) -> None:
            array = numpy.arange(3)
            run.pickler.np = None
            run.pickler.dump([array] * 3)
            run.pickler.np = numpy
            run.pickler.dump([[array, array]] * 100 + [[str(i)] for i in range(100)])

        self.check(steps)

    @pytest.mark.parametrize("extra", range(-40, 12, 4))
    def test_behind_a_full_frame(self, extra: int) -> None:
        """The file is asked where it stands before the frame is written that is full where an array begins."""
        texts = ["x" * 30_000, "y" * 30_000, "z" * (FRAME - 60_000 + extra)]
        for array in (numpy.arange(3), numpy.float64(2.5)):
            for obj in (
                [[*texts, array], *([i] for i in range(100))],
                [*([i] for i in range(60)), *texts, array, array],
            ):
                self.check_object(obj, file=_Tells)
                self.check_object(obj, cls=_wrapping, file=_Tells)

    @pytest.mark.parametrize("np", ["other types", "without matrix", "none at all", "of the class", "gone", "none"])
    @pytest.mark.parametrize("when", ["before", "between"])
    def test_numpy_of_ones_own(self, np: str, when: str) -> None:
        """joblib asks its pickler for numpy each time."""

        def steps(run: Run) -> None:
            def change() -> None:
                if np == "of the class":
                    type(run.pickler).np = property(lambda self: run.record("np", 1) or numpy)
                elif np == "gone":
                    sys.modules.pop("numpy")
                elif np == "none at all":
                    del run.pickler.np
                else:
                    run.pickler.np = {
                        "other types": types.SimpleNamespace(ndarray=Holds, matrix=None, memmap=None),
                        "without matrix": types.SimpleNamespace(ndarray=Holds),
                        "none": None,
                    }[np]

            plain = [[i] for i in range(60)]
            if when == "before":
                change()
            try:
                run.pickler.dump([*plain, objects.Acting(change), *plain, Holds(1), numpy.arange(3)])
            finally:
                sys.modules["numpy"] = numpy

        self.check(steps, cls=_own)

    def test_metaclass(self) -> None:
        """joblib compares the type of each object with those of arrays."""

        def steps(run: Run) -> None:
            class Meta(type):
                def __eq__(cls, other: object) -> bool:
                    run.record("==", other)
                    return cls is other

                __hash__ = type.__hash__

            one = Meta("Compared", (), {"__module__": __name__, "__reduce__": lambda self: (objects.make, ())})()
            run.pickler.dump([*([i] for i in range(60)), [one, one], one, {"a": one}, *([i] for i in range(60))])

        self.check(steps)

    def test_failure_behind_an_array(self) -> None:
        """As much is written as on stock, with the same error."""
        for bad in (lambda: 0, object().__init_subclass__):
            self.check_object([*range(60), numpy.arange(5), {"a": [1, bad]}], case=repr(bad))
            self.check_object({"array": numpy.array([[1, bad], "text"], dtype=object)}, case=repr(bad))


class _Tells(PythonFile):
    """A file that knows its position, and does something when it is asked for it."""

    act: Callable[[], None] | None = None

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run

    def tell(self) -> int:
        if self.act is not None:
            self.act()
        place = sum(map(len, self.parts))
        self.run.record("tell", place)
        return place


class TestArrays(Installed, ArraySuite):
    pass


class TestBackendArrays(Backend, ArraySuite):
    pass


#: Begins a plan.
_PLAIN = [[i] for i in range(60)]


def _arrays(n: int) -> list[Any]:
    return [numpy.arange(i) for i in range(n)]


class InMemorySuite(ArraySuite):
    """The same, and more, in files of C's, where arrays are saved at once."""

    def check(self, steps: Callable[[Run], Any], **how: Any) -> None:
        super().check(steps, **{"file": lambda run: io.BytesIO(), **how})

    @pytest.mark.parametrize("before", [250, 253, 254, 255, 256, 257])
    def test_memo(self, before: int) -> None:
        """What describes an array is fetched from the memo by one byte or by four."""
        for others in ([f"text {i}" for i in range(before)], [[i] for i in range(before)]):
            self.check_object([others, *_arrays(9), [numpy.arange(3), others]])

    @pytest.mark.parametrize(
        "what",
        [
            "table",
            "another table",
            "a table of another kind",
            "pickler's table",
            "class's table",
            "entry",
            "another class",
        ],
    )
    def test_wrappers_saved_in_another_way(self, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """As with any object, whatever has a say in how it is reduced is asked."""
        wrapper = joblib.numpy_pickle.NumpyArrayWrapper

        def reduce(obj: Any) -> Any:
            return objects.make, (obj.shape,)

        def steps(run: Run) -> None:
            cls = type(run.pickler)

            def change() -> None:
                if what == "table":
                    patch.setitem(copyreg.dispatch_table, wrapper, reduce)
                elif what == "another table":
                    patch.setattr(pickle, "dispatch_table", {wrapper: reduce})
                elif what == "a table of another kind":
                    patch.setattr(pickle, "dispatch_table", _Table({wrapper: reduce}))
                elif what == "pickler's table":
                    run.pickler.dispatch_table = {wrapper: reduce}
                elif what == "another class":
                    for names in vars(joblib.numpy_pickle), backend._globals_of_files:
                        patch.setitem(names, wrapper.__name__, _OtherWrapper)
                elif what == "class's table":
                    cls.dispatch_table = property(lambda self: run.record("asked", 1) or {wrapper: reduce})
                else:
                    cls.dispatch = {**cls.dispatch, wrapper: lambda self, obj: self.save(("wrapper", obj.shape))}

            with monkeypatch.context() as patch:
                acting = objects.Acting(change), objects.Acting(change)
                run.pickler.dump([_PLAIN, *_arrays(5), acting[0], *_arrays(5), acting[1], *_arrays(2)])

        self.check(steps, cls=_own)

    @pytest.mark.parametrize(
        "where",
        ["class", "pickler", "kind of file", "file", "write", "below the file", "frames", "dtype", "array", "numpy"],
    )
    @pytest.mark.parametrize("at", range(1, 6))
    def test_hook_set_by(self, where: str, at: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Code that is asked for one of some arrays, the file's or a subclass's, sets hooks: they are heard."""

        def steps(run: Run) -> None:
            calls = []

            def act() -> None:
                calls.append(1)
                if len(calls) == at:
                    run.pickler.persistent_id = lambda obj: run.record("persistent_id", obj)

            def acting(function: Any) -> Any:
                return lambda *args, **kwargs: (act(), function(*args, **kwargs))[1]

            pickler = run.pickler
            some = _arrays(5)
            with monkeypatch.context() as patch, (tmp_path / "file").open("wb", buffering=10) as real:
                if where == "class":
                    type(pickler)._create_array_wrapper = acting(type(pickler)._create_array_wrapper)
                elif where == "pickler":
                    pickler._create_array_wrapper = acting(pickler._create_array_wrapper)
                elif where == "kind of file":
                    run.file.act = act
                elif where == "file":
                    run.file.tell = acting(run.file.tell)
                elif where == "write":
                    run.file.write = acting(run.file.write)
                elif where == "below the file":
                    run.pickler = pickler = type(pickler)(real, run.protocol)
                    patch.setattr(real.raw, "write", acting(real.raw.write))
                elif where == "frames":
                    pickler.framer.file_write = acting(pickler.framer.file_write)
                elif where == "dtype":
                    some = [numpy.zeros(i, numpy.dtype("f8", metadata={"a": objects.Acting(act)})) for i in range(5)]
                elif where == "array":
                    some = [numpy.array([objects.Acting(act)], dtype=object) for _ in some]
                else:
                    patch.setattr(numpy, "nditer", acting(numpy.nditer))
                pickler.dump([_PLAIN, *some, *_PLAIN])

        self.check(steps, cls=_own, file=lambda run: _Asked() if where == "kind of file" else io.BytesIO())

    def test_override_that_cannot_be_hashed(self) -> None:
        def made(base: Any, run: Run) -> Any:
            class Wrap:
                __hash__ = None  # type: ignore[assignment]  # as a dataclass has it

                def __call__(self, array: Any) -> Any:
                    return base._create_array_wrapper(run.pickler, array)

            return type("Own", (base,), {"_create_array_wrapper": Wrap()})

        self.check_object([_PLAIN, *_arrays(5)], cls=made)

    @pytest.mark.parametrize("name", ["write_array", "__reduce__", "__getstate__", "__init__", "__slotnames__"])
    def test_class_of_the_wrappers_changed(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever changes it between two dumps is heard."""
        wrapper = joblib.numpy_pickle.NumpyArrayWrapper
        seen: list[Any] = []

        def steps(run: Run) -> None:
            found = getattr(wrapper, name, None)

            def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
                seen.append((name, len(args)))
                return found(self, *args, **kwargs)

            run.pickler.dump([_PLAIN, *_arrays(5)])
            with monkeypatch.context() as patch:
                patch.setattr(wrapper, name, ["shape"] if name == "__slotnames__" else changed, raising=False)
                run.pickler.dump([_PLAIN, *_arrays(5)])
                run.record("seen", [*seen])
            seen.clear()

        if name != "__getstate__" or hasattr(wrapper, name):  # before 3.11 there is none
            self.check(steps)

    @pytest.mark.parametrize("size", [1, 100, 1 << 20])
    def test_file_that_cannot_be_written_to(self, size: int) -> None:
        """The error is that of the write, and the pickler is as stock leaves it."""

        def make() -> Any:
            return [_PLAIN, *_arrays(5), {"a": numpy.arange(30_000), "b": _arrays(5)}]

        self.check(lambda run: dump_where_it_fails(run, make, size), protocols=(4, 5))


def _own(base: Any, run: Run) -> Any:
    return type("Own", (base,), {})


class _OtherWrapper(joblib.numpy_pickle.NumpyArrayWrapper):  # type: ignore[misc]  # joblib has no types
    """Found in the place of joblib's."""


class _Table(dict[Any, Any]):
    def get(self, key: Any, default: Any = None) -> Any:
        return (lambda obj: (objects.make, ("by get()",))) if key.__name__ == "NumpyArrayWrapper" else default

    def __contains__(self, key: object) -> bool:
        return False


class _Asked(io.BytesIO):
    act: Callable[[], Any] = staticmethod(lambda: None)

    def tell(self) -> int:
        self.act()
        return super().tell()


class TestArraysInMemory(Installed, InMemorySuite):
    pass


class TestBackendArraysInMemory(Backend, InMemorySuite):
    pass


def same(a: Any, b: Any) -> bool:
    """Tell whether two lists of arrays and plain data are equal."""
    return all(numpy.array_equal(x, y) if isinstance(x, numpy.ndarray) else x == y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 1), ("bz2", 1), True])
@pytest.mark.parametrize("protocol", [None, 2, 5])
def test_files(tmp_path: Path, compress: Any, protocol: int | None) -> None:
    """joblib.dump under install(), and the backend's, write stock's file, which can be loaded."""
    rows = [{"id": i, "name": f"name {i}"} for i in range(3000)]
    data = [rows, numpy.arange(1000.0), *rows, numpy.arange(10)]
    paths = [tmp_path / name for name in ("stock", "installed", "backend")]
    assert joblib.dump(data, paths[0], compress, protocol) == [str(paths[0])]
    with fastpickle.patched():
        assert joblib.dump(data, paths[1], compress=compress, protocol=protocol) == [str(paths[1])]
    assert backend.dump(data, paths[2], compress, protocol) == [str(paths[2])]
    written = [path.read_bytes() for path in paths]
    if isinstance(compress, tuple) and compress[0] == "gzip":
        written = [data[10:] for data in written]  # behind the time and the name
    assert written[0] == written[1] == written[2]
    assert all(same(joblib.load(path), data) for path in paths)
    with paths[1].open("wb") as file:
        assert backend.dump(data, file, protocol=protocol) is None
    if not compress:
        assert paths[1].read_bytes() == written[0]
    with pytest.raises(ValueError, match="compress"):
        backend.dump(data, paths[0], 11)


def test_mapped_from_our_file(tmp_path: Path) -> None:
    """Arrays are where joblib looks for them when it maps the file."""
    data = {"rows": [{"id": i} for i in range(500)], "array": numpy.arange(1000.0), "text": "x" * 100_000}
    backend.dump(data, tmp_path / "file")
    loaded = joblib.load(tmp_path / "file", mmap_mode="r")
    assert isinstance(loaded["array"], numpy.memmap)
    assert numpy.array_equal(loaded["array"], data["array"])
    assert loaded["rows"] == data["rows"]


@pytest.mark.skipif(_stdlib.CPickler is None, reason="there is no C pickler")
def test_plain_data_goes_to_c(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The C pickler writes what is plain, whole or beside arrays, to memory and to a file."""
    asked: list[Any] = []
    for module, name in (graft, "at_once"), (graft, "root"), (chunks, "batches"), (graft, "whole"):
        function = getattr(module, name)

        def counted(*args: Any, function: Any = function) -> Any:
            found = function(*args)
            asked.append(found)
            return found

        monkeypatch.setattr(module, name, counted)
    rows = [{"id": i, "name": f"name {i}"} for i in range(3000)]
    backend.dump(rows, io.BytesIO())
    assert any(asked)
    asked.clear()
    backend.dump({"a": numpy.arange(5), "rows": rows}, io.BytesIO())
    assert any(asked)
    asked.clear()
    with (tmp_path / "file").open("wb") as file:
        backend.dump([*rows, numpy.arange(5)], file)
    assert any(asked)


def test_known() -> None:
    """The overrides are known as they are in joblib; with another `save` all hooks are called."""

    class Other(_NumpyPickler):
        def save(self, obj: Any) -> None:
            super().save(obj)

    with fastpickle.patched():
        assert hooks.plan(_NumpyPickler(io.BytesIO()))
        assert hooks.plan(Other(io.BytesIO())) is hooks.PLAIN
    assert hooks.plan(backend.NumpyPickler(io.BytesIO()))


def test_at_random(a_part_of: APartOf) -> None:
    """Random nests of plain data, instances and arrays."""
    kinds = [*arrays().values()]

    def make(rng: random.Random, depth: int) -> Any:
        choice = rng.random()
        if choice < 0.1:
            return rng.choice(kinds)
        if depth == 0 or choice < 0.4:
            return rng.choice((1, -5, 2.5, None, True, f"text {rng.randrange(20)}", b"raw", 1 << 70))
        if choice < 0.45:
            return Model(rng.randrange(4))
        items = [make(rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 3, 5, 60)) if depth < 4 else 5)]
        kind = rng.choice((list, tuple, dict))
        return {f"key {i}": x for i, x in enumerate(items)} if kind is dict else kind(items)

    for seed in a_part_of(range(300 if strategies.is_thorough() else 60)):
        obj = make(random.Random(seed), 5)
        for protocol in (2, 4, 5):
            files = io.BytesIO(), io.BytesIO(), io.BytesIO()
            joblib.dump(obj, files[0], protocol=protocol)
            with fastpickle.patched():
                joblib.dump(obj, files[1], protocol=protocol)
            backend.dump(obj, files[2], protocol=protocol)
            assert files[0].getvalue() == files[1].getvalue() == files[2].getvalue(), seed


@pytest.mark.parametrize(
    "obj", [made_like_a_pickler, len, Path, io.RawIOBase], ids=["function", "builtin", "class", "ABC"]
)
def test_names_go_hook_by_hook(obj: Any, nothing_is_remembered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is saved by its name is looked at once: there is nothing else in it."""
    looks: list[Any] = []
    at_once = small.at_once

    def recorded(pickler: Any, obj: Any, *args: Any) -> Any:
        looks.append(obj)
        return at_once(pickler, obj, *args)

    monkeypatch.setattr(small, "at_once", recorded)
    files = [io.BytesIO() for _ in range(11)]
    joblib.dump(obj, files[0])
    with fastpickle.patched():
        for file in files[1:]:
            joblib.dump(obj, file)
    assert {file.getvalue() for file in files} == {files[0].getvalue()}
    assert looks == [obj]


class Held:
    """Holds anything."""

    def __init__(self, *held: Any) -> None:
        self.held = held


#: By a number, an object of which a few are in a container; and how often C is asked in 16 dumps, at the most.
_FEW: dict[str, tuple[Callable[[int], Any], int]] = {
    "dates": (lambda i: datetime.datetime(2020, 1, 1, i % 24), 16),
    "Decimals": (lambda i: decimal.Decimal(i) / 7, 16),
    "instances": (lambda i: Held(i, [i]), 16),
    "dates and ints": (lambda i: i if i % 3 else datetime.date(2020, 1, 1), 16),
    "exceptions": (lambda i: ValueError(i, [i]), 2),  # of which nothing was known at first
    "with arrays": (lambda i: Held(numpy.arange(3)), 2),
    "one with an array": (lambda i: Held(numpy.arange(3)) if i == 11 else Held(i), 2),
    "arrays and dates": (lambda i: numpy.arange(3) if i == 11 else datetime.date(2020, 1, 1), 0),
    "functions and dates": (lambda i: len if i == 11 else datetime.date(2020, 1, 1), 0),
    "classes and dates": (lambda i: Held if i == 11 else datetime.date(2020, 1, 1), 0),
    "of another metaclass": (lambda i: OfMeta(), 0),
}


class Meta(type):
    """A metaclass, of the instances of which nothing is known."""


class OfMeta(metaclass=Meta):
    pass


def _written(obj: Any, tmp_path: Path) -> list[bytes]:
    """Write it to memory, to a file, and compressed."""
    written = []
    for compress in False, True:
        file = io.BytesIO()
        joblib.dump(obj, file, compress=compress)
        written.append(file.getvalue())
    joblib.dump(obj, tmp_path / "file")
    return [*written, (tmp_path / "file").read_bytes()]


@pytest.mark.parametrize("name", _FEW)
def test_few_objects(name: str, tmp_path: Path, nothing_is_remembered: None) -> None:
    """The bytes are stock's, the first time and the next ones, whatever was remembered of others."""
    make, _ = _FEW[name]
    for n in (11, 12, 13, 47):
        objs = [make(i) for i in range(n)]
        for obj in (objs, tuple(objs), dict(enumerate(objs)), [*objs, objs[0], {"a": objs}, objs]):
            expected = _written(obj, tmp_path)
            with fastpickle.patched():
                for _ in range(3):
                    assert _written(obj, tmp_path) == expected, (n, type(obj))


@pytest.mark.skipif(_stdlib.CPickler is None, reason="there is no C pickler")
@pytest.mark.parametrize("name", _FEW)
def test_c_is_asked_about_few(
    name: str, nothing_is_remembered: None, no_races: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 12 on, if it is likely to write them, and rarely again about what it gave up."""
    asked: list[Any] = []
    write_root = graft._write_root

    def recorded(pickler: Any, plan: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(obj)
        return write_root(pickler, plan, obj, *args, **kwargs)

    monkeypatch.setattr(graft, "_write_root", recorded)
    make, times = _FEW[name]
    lists = [[make(i) for i in range(n)] for n in (12, 11)]
    with fastpickle.patched():
        for objs in lists:
            asked.clear()
            for _ in range(16):
                joblib.dump(objs, io.BytesIO())
            if len(objs) < 12 or not times:
                assert not asked
            else:
                assert 0 < len(asked) <= times
                assert times == 2 or len(asked) == times


@pytest.mark.skipif(_stdlib.CPickler is None, reason="there is no C pickler")
@pytest.mark.parametrize(
    "make", [lambda: dict.fromkeys(range(20), decimal.Decimal(1)), lambda: {*map(decimal.Decimal, range(20))}]
)
def test_changed_while_it_is_looked_at(make: Any, tmp_path: Path, nothing_is_remembered: None, no_races: None) -> None:
    """Another thread may change a container at any line of the look at it, and the dump goes on, as on stock."""
    lines = 0
    for n in range(20):
        obj = make()
        left = [n]

        def traced(frame: Any, event: str, arg: object, left: list[int] = left, obj: Any = obj) -> Any:
            nonlocal lines
            # Where another one calls it, what it raises is caught.
            if frame.f_code is not offers.may_be_librarys.__code__ or frame.f_back.f_code is not way.begin.__code__:
                return None
            if event == "line":
                lines += 1
                left[0] -= 1
                if not left[0]:
                    obj.update({99: decimal.Decimal(99)} if type(obj) is dict else {decimal.Decimal(99)})
            return traced

        with fastpickle.patched():
            old = sys.gettrace()
            sys.settrace(traced)
            try:
                joblib.dump(obj, tmp_path / "file")
            finally:
                sys.settrace(old)
        assert len(joblib.load(tmp_path / "file")) == len(obj)
    assert lines > 20  # it is looked at
