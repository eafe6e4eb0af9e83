"""`fastpickle.concurrent.InterpreterPoolExecutor`: as the stock one, sooner; nothing lost, nobody left over."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pytest

from fastpickle.concurrent import BrokenInterpreterPool, InterpreterPoolExecutor

try:
    from concurrent import interpreters
except ImportError:
    interpreters = None

needs_interpreters = pytest.mark.skipif(interpreters is None, reason="CPython 3.14 and later")
OUT = 1 << 16  # from here on buffers travel beside the message


@pytest.mark.skipif(interpreters is not None, reason="what older Pythons and PyPy say")
def test_older_pythons_are_told() -> None:
    """The import works; making one says what is missing."""
    with pytest.raises(RuntimeError, match=r"^InterpreterPoolExecutor needs CPython 3\.14 or later$"):
        InterpreterPoolExecutor()


def test_broken_is_the_executors() -> None:
    """The exception is one of `concurrent.futures`, on every Python."""
    from concurrent.futures import BrokenExecutor

    assert issubclass(BrokenInterpreterPool, BrokenExecutor)


@pytest.fixture(autouse=True)
def _nothing_left(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    if interpreters is None:
        yield
        return
    threads, fds = {*threading.enumerate()}, _open_files()
    yield
    gc.collect()
    end = time.monotonic() + 5
    while time.monotonic() < end and ({*threading.enumerate()} - threads or len(interpreters.list_all()) > 1):
        time.sleep(0.01)
    assert {*threading.enumerate()} <= threads
    assert len(interpreters.list_all()) == 1
    assert _open_files() <= fds


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.fixture
def pool() -> Iterator[InterpreterPoolExecutor]:
    with InterpreterPoolExecutor(2) as executor:
        yield executor


# -- what runs in the workers


def same(x: Any) -> Any:
    return x


def both(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def where(_: Any = None) -> int:
    return interpreters.get_current().id


def fail(kind: Callable[..., BaseException], *args: Any) -> None:
    raise kind(*args)


def wait_for(fd: int) -> bytes:
    return os.read(fd, 1)


def write_to(fd: int) -> int:
    return os.write(fd, b"x")


class Odd(Exception):
    """Pickled, it cannot be unpickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one)


class Hostile:
    """Raises when pickled or when unpickled."""

    def __init__(self, when: str, what: type[BaseException] = ValueError) -> None:
        self.when, self.what = when, what

    def __reduce__(self) -> Any:
        if self.when == "dumps":
            raise self.what("while pickled")
        return fail, (self.what, "while unpickled")


def hostile(when: str, what: type[BaseException]) -> Hostile:
    return Hostile(when, what)


class Holder:
    """Gives its buffer to whoever pickles it."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer

    def __reduce_ex__(self, protocol: int) -> Any:
        return Holder, (pickle.PickleBuffer(self.buffer),)


def kind_of_buffer(holder: Holder) -> tuple[str, bool, bytes]:
    view = memoryview(holder.buffer)
    return type(holder.buffer).__name__, view.readonly, bytes(view[:4])


def fill(view: memoryview) -> None:
    view[:3] = b"new"


def make_holder(readonly: bool, size: int) -> Holder:
    return Holder(bytes(size) if readonly else bytearray(size))


def make_view(size: int) -> memoryview:
    return memoryview(bytearray(size)).cast("I")


STATE = "untouched"


def set_state(value: str) -> None:
    global STATE
    STATE = value


def get_state() -> str:
    return STATE


# -- results


@needs_interpreters
@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "text",
        1.5,
        (1, (2, "3")),
        [*range(10_000)],
        {i: str(i) for i in range(100)},
        *(bytes(n) for n in (0, 3_000, 5_000, OUT - 1, OUT, 1_000_000)),
        [bytes([i]) * 100_000 for i in range(10)],
        (bytes(100_000), "a", bytes(200_000)),
        {"a": bytes(100_000), "b": [bytes(100_000)]},
        bytearray(100_000),
    ],
    ids=lambda value: f"{type(value).__name__}-{len(value) if hasattr(value, '__len__') else value}",
)
def test_values_come_back(pool: InterpreterPoolExecutor, value: Any) -> None:
    """Whatever the way it takes, small or large, as an argument, a keyword and a result."""
    assert pool.submit(same, value).result() == value
    assert type(pool.submit(same, value).result()) is type(value)
    assert pool.submit(both, value, 1, value, key=value).result() == ((value, 1, value), {"key": value})
    assert [*pool.map(same, [value] * 5)] == [value] * 5


@needs_interpreters
def test_arguments_are_as_they_were(pool: InterpreterPoolExecutor) -> None:
    """What is changed after `submit` does not change the call, buffers beside the message included."""
    r, w = os.pipe()
    blocked = [pool.submit(wait_for, r) for _ in range(2)]
    values, holder = [1, 2], Holder(bytearray(b"old!" * OUT))
    futures = pool.submit(same, values), pool.submit(kind_of_buffer, holder)
    values.append(3)
    holder.buffer[:4] = b"new!"
    os.write(w, b"xx")
    assert futures[0].result() == [1, 2]
    assert futures[1].result()[1:] == (False, b"old!")
    assert [f.result() for f in blocked] == [b"x"] * 2
    os.close(r)
    os.close(w)
