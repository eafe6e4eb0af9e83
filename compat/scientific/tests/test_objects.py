"""numpy's and pandas' objects through every pickler in Python that is in common use: stock's bytes, and equal objects.

Each test dumps one object in one way, under fastpickle and then without it (``oracle.py``).
"""

from __future__ import annotations

import functools
import io
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrays
import dill
import frames
import joblib
import mixed
import numpy as np
import oracle
import pandas as pd
import pytest
from oracle import check_same, same

every_object = pytest.mark.parametrize("name", mixed.TABLES)
every_protocol = pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))

BROKEN = {"pandas:frame-no-rows"}
"""What stock pickles in protocol 5 so that it cannot be loaded.

An empty buffer is saved as the bytearray ``b""``, and memoised under the id of the one ``b""`` that there is; a later
``b""`` is fetched from there, and is a bytearray when it is loaded.
"""


def python_dumps(obj: Any, protocol: int | None = None, cls: Any = None, **arguments: Any) -> bytes:
    """Pickle with a pickler in Python: stock's class, or another one."""
    file = io.BytesIO()
    (cls or pickle._Pickler)(file, protocol, **arguments).dump(obj)
    return file.getvalue()


def joblib_dumps(obj: Any, **arguments: Any) -> bytes:
    """Give what joblib writes to a file."""
    file = io.BytesIO()
    joblib.dump(obj, file, **arguments)
    return file.getvalue()


def loaded(data: Any, load: Callable[[Any], Any]) -> Any:
    """Load what was written.

    Raises:
        AssertionError: nothing was written, but an error raised.
    """
    assert isinstance(data, bytes), data
    return load(data)


@every_protocol
@every_object
def test_stdlib(name: str, protocol: int) -> None:
    """pickle._Pickler writes stock's bytes, and they load."""
    obj, data = check_same(mixed.TABLES[name], lambda obj: python_dumps(obj, protocol))
    if protocol >= 2 and not (protocol == 5 and name in BROKEN):  # below 2, some of pandas' objects cannot be pickled
        assert same(obj, loaded(data, pickle.loads))


@every_object
def test_fastpickle_class(name: str) -> None:
    """fastpickle.Pickler writes the bytes of stock's class, whether it is installed or not."""
    for protocol in (0, 2, 4, 5):
        cls = None if oracle.fastpickle is None else oracle.fastpickle.Pickler
        dump = functools.partial(python_dumps, protocol=protocol, cls=cls)
        _, found = check_same(mixed.TABLES[name], dump, functools.partial(python_dumps, protocol=protocol))
        with oracle.stock():
            assert oracle.outcome(dump, mixed.TABLES[name]()) == found


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@every_object
def test_dill(name: str, protocol: int) -> None:
    """dill.dumps writes stock's bytes, and they load."""
    obj, data = check_same(mixed.TABLES[name], lambda obj: dill.dumps(obj, protocol))
    if type(obj) is not np.memmap and not (protocol == 5 and name in BROKEN):  # dill cannot pickle a memmap's mmap
        assert same(obj, loaded(data, dill.loads))


SETTINGS: dict[str, dict[str, bool]] = {
    "recurse": {"recurse": True},
    "byref": {"byref": True},
    "recurse-byref": {"recurse": True, "byref": True},
}


@pytest.mark.parametrize("setting", SETTINGS)
@every_object
def test_dill_settings(name: str, setting: str) -> None:
    """dill.dumps writes stock's bytes whatever its settings."""
    check_same(mixed.TABLES[name], lambda obj: dill.dumps(obj, **SETTINGS[setting]))


@pytest.mark.parametrize("setting", [None, *SETTINGS])
@pytest.mark.parametrize("name", mixed.BY_VALUE)
def test_dill_by_value(name: str, setting: str | None) -> None:
    """Functions and classes that dill pickles by value, with arrays in their globals, have stock's bytes and errors."""
    _, data = check_same(mixed.BY_VALUE[name], lambda obj: dill.dumps(obj, **SETTINGS.get(setting or "", {})))
    if isinstance(data, bytes) and setting is None:
        dill.loads(data)


@every_object
def test_joblib_hash(name: str) -> None:
    """joblib.hash gives stock's digest."""
    check_same(mixed.TABLES[name], lambda obj: joblib.hash(obj).encode())
    check_same(mixed.TABLES[name], lambda obj: joblib.hash(obj, hash_name="sha1", coerce_mmap=True).encode())


@pytest.mark.parametrize("name", mixed.BY_VALUE)
def test_joblib_hash_by_value(name: str) -> None:
    """joblib.hash gives stock's digest, or error, for functions and classes of ``__main__``."""
    check_same(mixed.BY_VALUE[name], lambda obj: joblib.hash(obj).encode())


@pytest.mark.parametrize("compress", [0, ("zlib", 3)], ids=str)
@every_object
def test_joblib_dump(name: str, compress: Any) -> None:
    """joblib.dump writes stock's bytes, compressed or not, and they load."""
    obj, data = check_same(mixed.TABLES[name], lambda obj: joblib_dumps(obj, compress=compress))
    assert same(_as_joblib_loads(obj), loaded(data, lambda data: joblib.load(io.BytesIO(data))))


@pytest.mark.parametrize("protocol", [2, 3, 5])
@every_object
def test_joblib_protocols(name: str, protocol: int) -> None:
    """joblib.dump writes stock's bytes in the other protocols."""
    check_same(mixed.TABLES[name], lambda obj: joblib_dumps(obj, protocol=protocol))


@every_object
def test_joblib_memmap(name: str) -> None:
    """joblib.dump writes to a file what stock writes, and arrays can be mapped from it."""
    path = Path(tempfile.mkdtemp()) / "data"

    def dump(obj: Any) -> bytes:
        joblib.dump(obj, path)
        return path.read_bytes()

    obj, data = check_same(mixed.TABLES[name], dump)
    back = loaded(data, lambda data: joblib.load(path, mmap_mode="r"))
    if type(obj) is np.ndarray and not obj.dtype.hasobject and obj.size and obj.dtype.kind != "T":
        assert type(back) is np.memmap
        assert same(obj, np.array(back))


@every_object
def test_out_of_band(name: str) -> None:
    """With a buffer_callback, the bytes and the buffers are stock's, and load."""

    def dump(obj: Any) -> bytes:
        buffers: list[pickle.PickleBuffer] = []
        data = python_dumps(obj, 5, buffer_callback=buffers.append)
        return pickle.dumps((data, [bytes(buffer.raw()) for buffer in buffers]))

    def load(both: bytes) -> Any:
        data, buffers = pickle.loads(both)
        return pickle.loads(data, buffers=buffers)

    obj, data = check_same(mixed.TABLES[name], dump)
    assert same(obj, loaded(data, load))


@every_object
def test_some_in_band(name: str) -> None:
    """With a buffer_callback that wants every second buffer only, and with dill, the bytes are stock's."""

    def dump(obj: Any, cls: Any) -> bytes:
        buffers: list[Any] = []

        def wants(buffer: Any) -> bool:
            buffers.append(bytes(buffer.raw()))
            return len(buffers) % 2 == 0

        data = python_dumps(obj, 5, cls, buffer_callback=wants)
        return pickle.dumps((data, buffers))

    check_same(mixed.TABLES[name], lambda obj: dump(obj, None))
    check_same(mixed.TABLES[name], lambda obj: dump(obj, dill.Pickler))


@every_object
def test_one_pickler_for_several_dumps(name: str) -> None:
    """A pickler that keeps its memo writes stock's bytes the second time, too."""

    def dump(obj: Any) -> bytes:
        file = io.BytesIO()
        pickler = pickle._Pickler(file)  # type: ignore[attr-defined]
        pickler.dump([obj, "first"])
        pickler.dump({"second": obj, "plain": list(range(5))})
        return file.getvalue()

    check_same(mixed.TABLES[name], dump)


@pytest.mark.parametrize("name", mixed.UNPICKLABLE)
def test_errors(name: str) -> None:
    """What cannot be pickled raises stock's error, with its message and its notes."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        _, found = check_same(mixed.UNPICKLABLE[name], functools.partial(python_dumps, protocol=protocol))
        assert not isinstance(found, bytes)
    check_same(mixed.UNPICKLABLE[name], dill.dumps)
    check_same(mixed.UNPICKLABLE[name], lambda obj: joblib.hash(obj).encode())
    check_same(mixed.UNPICKLABLE[name], joblib_dumps)


class _Reducing(pickle._Pickler):  # type: ignore[name-defined,misc]
    """A subclass with hooks of the usual kinds, which keeps arrays outside."""

    def __init__(self, file: Any, protocol: int | None = None) -> None:
        super().__init__(file, protocol)
        self.kept: list[Any] = []

    def persistent_id(self, obj: Any) -> Any:
        """Keep numbers' arrays outside."""
        if type(obj) is np.ndarray and obj.dtype.kind in "iuf":
            self.kept.append(obj)
            return ("array", len(self.kept), obj.dtype.str, obj.shape)
        return None


class _Overriding(pickle._Pickler):  # type: ignore[name-defined,misc]
    """A subclass that reduces frames in its own way."""

    def reducer_override(self, obj: Any) -> Any:
        """Reduce a frame to its columns."""
        if isinstance(obj, pd.DataFrame):
            return pd.DataFrame, ([list(column) for _, column in obj.items()],)
        return NotImplemented


class _Tabled(pickle._Pickler):  # type: ignore[name-defined,misc]
    """A subclass with a table for arrays, and an entry for lists that stock has not."""

    dispatch_table = {np.ndarray: lambda array: (np.array, (array.tolist(), str(array.dtype)))}  # noqa: RUF012
    dispatch = pickle._Pickler.dispatch.copy()  # type: ignore[attr-defined]

    def save_list(self, obj: Any) -> None:
        """Write a list as a tuple's list."""
        self.save_reduce(list, (tuple(obj),), obj=obj)

    dispatch[list] = save_list


@pytest.mark.parametrize("cls", [_Reducing, _Overriding, _Tabled])
@every_object
def test_hooks(name: str, cls: type) -> None:
    """Subclasses with hooks write stock's bytes."""
    check_same(mixed.TABLES[name], lambda obj: python_dumps(obj, 4, cls))


@pytest.mark.parametrize("seed", range(20))
def test_random_data(seed: int) -> None:
    """Nested data at random has stock's bytes in all ways."""
    make = functools.partial(mixed.random_data, seed, [arrays.OBJECTS, frames.OBJECTS, mixed.OBJECTS])
    for protocol in (1, 2, 4):
        check_same(make, functools.partial(python_dumps, protocol=protocol))
    check_same(make, dill.dumps)
    check_same(make, lambda obj: dill.dumps(obj, 5, recurse=True))
    check_same(make, lambda obj: joblib.hash(obj).encode())
    check_same(make, joblib_dumps)


def _as_joblib_loads(obj: Any) -> Any:
    """Give an array for a memmap or a matrix, because that is what joblib loads."""
    return np.array(obj) if type(obj) in (np.memmap, np.matrix) else obj
