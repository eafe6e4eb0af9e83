"""numpy's arrays in datasets' digests: the bytes and the memo are those of its Pickler on stock, whatever is hooked."""

from __future__ import annotations

import builtins
import copyreg
import io
import pickle
import random
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from oracle.allowed import PYPY
from oracle.frames import fits

import fastpickle

if PYPY:
    pytest.skip("nothing is known of digests there", allow_module_level=True)
numpy: Any = pytest.importorskip("numpy", reason="numpy is not installed")
datasets: Any = pytest.importorskip("datasets", reason="datasets is not installed")
backend: Any = pytest.importorskip("fastpickle.backends.datasets", reason="datasets is not installed")

import dill  # noqa: E402  # there if datasets is

from fastpickle import hooks  # noqa: E402  # as above

dill.extend(False)
_Theirs: Any = datasets.utils._dill.Pickler
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


class _Array(numpy.ndarray):  # type: ignore[misc]  # numpy may be untyped
    """An array of a class of one's own."""


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


_SWAPPED = numpy.dtype("f8").newbyteorder()
#: Each makes one of many arrays that are alike.
KINDS: dict[str, Callable[[int], Any]] = {
    "ints": lambda i: numpy.arange(i % 5 + 1),
    "floats": lambda i: numpy.arange(8.0) + i,
    "small floats": lambda i: numpy.full((2, 3), i, "f4"),
    "none": lambda i: numpy.array([]),
    "one byte": lambda i: numpy.array([i % 3], "u1"),
    "two bytes": lambda i: numpy.array([i % 3, 1], "u1"),
    "no dimension": lambda i: numpy.array(i),
    "five dimensions": lambda i: numpy.full((2, 1, 2, 1, 2), i),
    "bools": lambda i: numpy.array([True, i % 2 == 0]),
    "complex": lambda i: numpy.array([i + 1j]),
    "texts": lambda i: numpy.array(["a", "bc"]),
    "times": lambda i: numpy.array(["2020-01-01"], "M8[D]"),
    "records": lambda i: numpy.zeros(3, [("a", "i4"), ("b", "f8")]),
    "swapped": lambda i: numpy.arange(3.0).astype(_SWAPPED),
    "another dtype each": lambda i: numpy.arange(3.0).astype(numpy.dtype("f8").newbyteorder()),
    "metadata": lambda i: numpy.zeros(2, numpy.dtype("i4", metadata={"a": 1})),
    "objects": lambda i: numpy.array([i, "x", None], object),
    "Fortran": lambda i: numpy.asfortranarray(numpy.full((3, 2), i)),
    "axes in another order": lambda i: numpy.full((2, 3, 4), i).transpose(1, 0, 2),
    "strides": lambda i: numpy.arange(6 + i)[::2],
    "read-only": lambda i: _read_only(numpy.arange(3)),
    "300 bytes": lambda i: numpy.zeros(300, "u1"),
    "much": lambda i: numpy.zeros(9000),
    "of one's own": lambda i: numpy.arange(3).view(_Array),
    "scalars": lambda i: numpy.float64(i),
}


#: The kinds whose arrays have one dtype, with something in them that nobody else has, and that is no Python object.
_WRITTEN: Any = (
    "ints", "floats", "small floats", "two bytes", "no dimension", "five dimensions", "bools", "complex", "Fortran",
    "strides", "read-only", "300 bytes",
)  # fmt: skip


def _dumped(cls: Any, protocol: int, obj: Any, **more: Any) -> Any:
    """Dump, and return the bytes, what is memoized, and the error."""
    file = io.BytesIO()
    pickler = cls(file, protocol, recurse=True, **more)
    error = None
    try:
        pickler.dump(obj)
    except Exception as exc:
        error = type(exc), str(exc), getattr(exc, "__notes__", None)
    memo = pickler.memo
    if error is None:
        assert [*map(id, (x for _, x in memo.values()))] == [*memo]
    return file.getvalue(), [(i, type(x), x if type(x) is bytes else None) for i, x in memo.values()], error


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """What came of each array that came to be saved in the loop."""
    found: list[bool] = []
    for rule in {*hooks.hash_rules.values()}:
        if rule.array is not None:
            save = rule.save_array
            monkeypatch.setattr(rule, "save_array", lambda *args, save=save: found.append(save(*args)) or found[-1])
    yield found


def _check(obj: Any, protocol: int, **more: Any) -> None:
    expected = _dumped(_Theirs, protocol, obj, **more)
    with fastpickle.patched():
        assert _dumped(_Theirs, protocol, obj, **more) == expected
    assert _dumped(backend.Pickler, protocol, obj, **more) == expected


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_arrays(kind: str, protocol: int, written: list[bool]) -> None:
    """In a list, in rows, in a tuple, in a dict, twice, beside others, and with little in the memo or much."""
    make = KINDS[kind]
    alike = [make(i) for i in range(70)]
    _check(alike, protocol)
    if kind in _WRITTEN:
        assert (written.count(True) > 100) == (protocol >= 4)
    for n in 2, 12, 20:
        _check([make(i) for i in range(n)], protocol)
        _check([{"id": i, "name": f"name {i}", "vector": make(i)} for i in range(n)], protocol)
    _check([[i, make(i), alike[i]] for i in range(70)] + [alike[3]] * 3, protocol)
    _check({f"key {i}": (make(i), i) for i in range(70)}, protocol)
    _check([*alike[:9], *"text", [numpy.arange(3.0), numpy.arange(3)], *alike[9:]], protocol)


@pytest.mark.parametrize("protocol", [4, 5])
def test_random_arrays(protocol: int, written: list[bool]) -> None:
    for seed in range(120):
        rng = random.Random(seed)
        kinds = rng.sample([*KINDS.values()], rng.choice((1, 1, 2, 3)))
        made: list[Any] = []
        for i in range(rng.choice((3, 14, 40, 300))):
            made.append(rng.choice(kinds)(i) if rng.random() < 0.9 else rng.choice(made or [None]))
            if rng.random() < 0.1:
                made.append(rng.choice((1, None, True, "C", b"b", (0,), {"a": made[-1]}, [made[-1]], random.Random)))
        if rng.random() < 0.5:
            made = [{"row": i, "array": x} for i, x in enumerate(made)]
        _check(made, protocol)
    assert written.count(True) > 1000
    assert False in written


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("kind", ["ints", "no dimension", "five dimensions", "read-only", "300 bytes"])
def test_at_the_end_of_a_frame(kind: str, protocol: int, written: list[bool]) -> None:
    """The frame may be full before an array, or within, at each of its parts; no other array is saved later for it."""
    arrays = [KINDS[kind](i) for i in range(9)]
    for n in range(65_536 - 420, 65_536 + 30, 3 if kind == "ints" else 7):
        _check(
            [*arrays[:3], "x" * n, *arrays[3:]] if n % 2 else [arrays[:2], *["x" * (n // 2)] * 2, arrays[2:]], protocol
        )
    _check([numpy.arange(50) + i for i in range(2_000)], protocol)
    assert written[-3998:].count(True) >= 3990


class _Puts:
    """Puts something into the memo when its state is asked for."""

    def __init__(self, put: Callable[[], Any]) -> None:
        self.put = put

    def __getstate__(self) -> Any:
        self.put()
        return 1


@pytest.mark.parametrize(
    "known", [0, 1, 4, None, True, False, "C", (), b"b", numpy.dtype("i8"), numpy.ndarray], ids=repr
)
@pytest.mark.parametrize("entry", [None, (2**33,), (-1,), (True,), (0, 1, 2), 7], ids=repr)
@pytest.mark.parametrize("protocol", [4, 5])
def test_what_somebody_puts_into_the_memo(known: Any, entry: Any, protocol: int) -> None:
    arrays = [numpy.arange(4) for _ in range(70)]
    found = []
    for cls, is_installed in ((_Theirs, False), (_Theirs, True), (backend.Pickler, False)):
        with fastpickle.patched() if is_installed else nullcontext():
            file = io.BytesIO()
            pickler = cls(file, protocol, recurse=True)

            def put(pickler: Any = pickler) -> None:
                i = len(pickler.memo)
                pickler.memo[id(known)] = (i, known) if entry is None else (*entry, known) if entry != 7 else 7

            error = None
            try:
                pickler.dump([*arrays[:2], _Puts(put), *arrays[2:]])
            except Exception as exc:
                error = type(exc), str(exc)
            found.append((file.getvalue(), error, len(pickler.memo)))
    assert found[0] == found[1] == found[2]


def _import(*args: Any, **more: Any) -> Any:
    return _usual_import(*args, **more)


_usual_import = builtins.__import__


def _registered(array: Any) -> Any:
    return list, (array.tolist(),)


def _patched(patch: pytest.MonkeyPatch, how: str) -> None:
    """Change something that a dump of arrays depends on."""
    if how == "import":
        patch.setattr(builtins, "__import__", _import)
    elif how == "torch":
        torch = types.ModuleType("torch")
        torch.Tensor = torch.Generator = type("T", (), {})  # type: ignore[attr-defined]  # as torch has them
        torch.nn = types.SimpleNamespace(Module=torch.Tensor)  # type: ignore[attr-defined]  # as above
        patch.setitem(sys.modules, "torch", torch)
    elif how == "copyreg":
        patch.setitem(copyreg.dispatch_table, numpy.ndarray, _registered)
    elif how == "dispatch":
        patch.setitem(_Theirs.dispatch, numpy.ndarray, lambda self, obj: self.save_reduce(*_registered(obj), obj=obj))
    elif how == "buffers":
        patch.setitem(_Theirs.dispatch, pickle.PickleBuffer, lambda self, obj: self.save(bytes(obj)))
    elif how == "tuples":
        stock = _Theirs.dispatch[tuple]
        patch.setitem(_Theirs.dispatch, tuple, lambda self, obj: stock(self, (2, 2) if obj == (4,) else obj))
    elif how == "bytes":
        patch.setitem(_Theirs.dispatch, bytes, lambda self, obj: self.write(pickle.NONE))
    elif how == "memoize":
        patch.setattr(_Theirs, "memoize", lambda self, obj: dill.Pickler.memoize(self, obj))
    elif how == "dill's memoize":
        patch.setattr(dill.Pickler, "memoize", lambda self, obj: pickle._Pickler.memoize(self, obj), raising=False)
    elif how == "reducer_override":
        patch.setattr(_Theirs, "reducer_override", lambda self, obj: NotImplemented, raising=False)
    elif how == "persistent_id":
        patch.setattr(_Theirs, "persistent_id", lambda self, obj: "an array" if type(obj) is numpy.ndarray else None)


@pytest.mark.parametrize(
    "how",
    [
        "import", "torch", "copyreg", "dispatch", "tuples", "bytes", "buffers", "memoize", "dill's memoize",
        "reducer_override", "persistent_id",
    ],
)  # fmt: skip
@pytest.mark.parametrize("protocol", [4, 5])
def test_hooks(how: str, protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody has changed is done, from the beginning or from the middle of a dump on."""
    rows = [{"i": i, "array": numpy.arange(4)} for i in range(70)]
    for at in 0, 1, 2, 10:
        found = []
        for is_installed in False, True:
            with fastpickle.patched() if is_installed else nullcontext(), pytest.MonkeyPatch.context() as patch:
                change = _Puts(lambda patch=patch: _patched(patch, how))
                found.append(_dumped(_Theirs, protocol, [*rows[:at], change, *rows[at:]])[::2])
        assert found[0] == found[1]


def test_buffers_out_of_band() -> None:
    arrays = [numpy.arange(4) for _ in range(70)]
    found = []
    for is_installed in False, True:
        with fastpickle.patched() if is_installed else nullcontext():
            buffers: list[Any] = []
            found.append((_dumped(_Theirs, 5, arrays, buffer_callback=buffers.append), len(buffers)))
    assert found[0] == found[1]
    assert found[0][1] == 70


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("n", [2, 12, 20, 70])
@pytest.mark.parametrize("how", ["list", "tuple", "dict", "rows", "in a dict", "in a list"])
def test_recursion_limit(how: str, n: int, protocol: int) -> None:
    """No frame more than on stock."""
    arrays = [numpy.arange(4) for _ in range(n)]
    obj: Any = {
        "list": arrays,
        "tuple": (*arrays,),
        "dict": {f"k{i}": x for i, x in enumerate(arrays)},
        "rows": [{"i": 1, "a": x} for x in arrays],
        "in a dict": {"a": {"b": arrays}},
        "in a list": [[arrays]],
    }[how]

    def is_enough(room: int) -> bool:
        pickler = _Theirs(io.BytesIO(), protocol, recurse=True)
        return fits(lambda: pickler.dump(obj), room)

    assert is_enough(900)
    least = next(room for room in range(12, 200) if is_enough(room))
    with fastpickle.patched():
        assert is_enough(900)
        assert all(is_enough(room) for room in range(least, least + 30))
