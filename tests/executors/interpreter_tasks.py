"""Tasks for interpreters, and objects with buffers; each interpreter imports it, so it imports little."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from typing import Any

from .tasks import raise_it


def where(_: Any = None) -> int:
    from concurrent import interpreters  # noqa: PLC0415  # CPython 3.14 and later

    return interpreters.get_current().id


def read_from(fd: int) -> bytes:
    return os.read(fd, 1)


def write_to(fd: int) -> int:
    return os.write(fd, b"x")


class Own(Exception):
    """Weakly referenced."""


class Hostile:
    """Raises when pickled or when unpickled."""

    def __init__(self, when: str, what: type[BaseException] = ValueError) -> None:
        self.when, self.what = when, what

    def __reduce__(self) -> Any:
        if self.when == "dumps":
            raise self.what("while pickled")
        return raise_it, (self.what, "while unpickled")


class Signalling:
    """Sends a signal to its own process when pickled."""

    def __reduce__(self) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return Signalling, ()


def hostile(when: str, what: type[BaseException]) -> Hostile:
    return Hostile(when, what)


def hostile_after(fd: int) -> Hostile:
    os.read(fd, 1)
    return Hostile("loads")


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


def fail_with_lock() -> None:
    raise ValueError(threading.Lock())


def released_view() -> memoryview:
    view = memoryview(b"gone")
    view.release()
    return view


def strided_view() -> memoryview:
    return memoryview(bytearray(range(200)))[::2]


def close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)


def fail_if_there(path: str) -> None:
    """Fail in the second interpreter."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL))


def of_inner_pool(x: Any) -> Any:
    from fastpickle.concurrent import InterpreterPoolExecutor  # noqa: PLC0415  # takes a while

    with InterpreterPoolExecutor(1) as pool:
        return pool.submit(abs, x).result()


def thread_name() -> str:
    return threading.current_thread().name


class Loader:
    """Becomes the name of the thread that unpickles it."""

    def __reduce__(self) -> Any:
        return thread_name, ()


def loader_after(fd: int) -> Loader:
    os.read(fd, 1)
    return Loader()


class SlowToLoad:
    """Says in a pipe that it is being unpickled, and takes its time."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __reduce__(self) -> Any:
        return load_slowly, (self.fd,)


def slow_to_load(wait: int, fd: int) -> SlowToLoad:
    os.read(wait, 1)
    return SlowToLoad(fd)


def load_slowly(fd: int) -> str:
    os.write(fd, b"x")
    time.sleep(0.3)
    return "loaded"


def read_and_close(fd: int, other: int) -> None:
    os.read(fd, 1)
    os.close(other)


def read_many(fd: int, size: int) -> bytes:
    os.read(fd, 1)
    return bytes(size)


rung: list[bool] = []


class Ringing(Exception):
    """While it is unpickled for the first time, there is a signal."""

    def __reduce__(self) -> Any:
        return ring, ()


def ring() -> Ringing:
    """Send it to the main thread."""
    if not rung:
        rung.append(True)
        signal.raise_signal(signal.SIGALRM)
    return Ringing()
