"""Tasks for workers, and objects that misbehave while they are pickled or unpickled; spawned processes import it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

STATE: dict[str, Any] = {}
"""What initializers leave in a process."""

LOCAL = threading.local()
"""What thread initializers leave in a thread."""


def same(x: Any) -> Any:
    return x


def add(x: Any, y: Any) -> Any:
    return x + y


def keywords(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def fail(message: str = "no") -> None:
    raise ValueError(message)


def fail_on(x: int, bad: int) -> int:
    if x == bad:
        raise ValueError(f"bad {x}")
    return x


def sleep(seconds: float, result: Any = None) -> Any:
    time.sleep(seconds)
    return result


def pid(_: Any = None) -> int:
    return os.getpid()


def exit_with(status: Any) -> None:
    sys.exit(status)


def exit_now(status: int) -> None:
    os._exit(status)


def kill_self(signum: int = signal.SIGKILL) -> None:
    os.kill(os.getpid(), signum)
    time.sleep(10)


def interrupt() -> None:
    raise KeyboardInterrupt


def close_files() -> None:
    os.closerange(3, 1000)
    time.sleep(0.2)


def fork_and_die(seconds: float) -> None:
    """Leave a child behind that holds what the worker had open."""
    if os.fork() == 0:
        time.sleep(seconds)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(10)


def touch(path: str) -> None:
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")


def wait_for(path: str, seconds: float = 20.0) -> str:
    end = time.monotonic() + seconds
    while not os.path.exists(path):
        if time.monotonic() > end:
            return "waited in vain"
        time.sleep(0.005)
    return "there"


def begin_and_wait_for(folder: str, path: str) -> str:
    """Wait for a file, having left one in the folder."""
    meet(folder, 1)
    return wait_for(path)


def meet(folder: str, n: int, seconds: float = 20.0) -> tuple[int, int]:
    """Come back, with the process and the thread, when as many calls are in the folder at the same time."""
    place = os.getpid(), threading.get_ident()
    with open(os.path.join(folder, "{}-{}".format(*place)), "x"):
        pass
    end = time.monotonic() + seconds
    time.sleep(0.02)  # so that it is a call that waits
    while len(os.listdir(folder)) < n:
        if time.monotonic() > end:
            raise TimeoutError(f"{len(os.listdir(folder))} of {n} came")
        time.sleep(0.005)
    return place


def set_state(key: str, value: Any) -> None:
    STATE[key] = value
    STATE["calls"] = STATE.get("calls", 0) + 1


def get_state(key: str) -> Any:
    return STATE.get(key)


def set_local(value: Any) -> None:
    LOCAL.value = value
    LOCAL.calls = getattr(LOCAL, "calls", 0) + 1


def get_local(seconds: float = 0.0) -> Any:
    time.sleep(seconds)
    return LOCAL.value, LOCAL.calls, threading.get_ident()


def make(cls: Any, *args: Any) -> Any:
    return cls(*args)


def raise_it(cls: Any, *args: Any) -> Any:
    raise cls(*args)


class NeedsTwo(Exception):
    """An exception that cannot be unpickled: its arguments are not those of its constructor."""

    def __init__(self, a: Any, b: Any) -> None:
        super().__init__(a)


class Unpicklable:
    """It raises while it is pickled."""

    def __reduce__(self) -> Any:
        raise RuntimeError("not picklable")


class UnpicklableError(Exception):
    """An exception that raises while it is pickled."""

    def __reduce__(self) -> Any:
        raise RuntimeError("not picklable")


class WithoutText(Exception):
    """An exception that raises when it is pickled and when it is shown."""

    def __reduce__(self) -> Any:
        raise RuntimeError("not picklable")

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class ExitsAtPickle:
    """It leaves the interpreter while it is pickled."""

    def __reduce__(self) -> Any:
        sys.exit(3)


class DiesAtPickle:
    """It ends the process that pickles it, unless that is the one that `owner` says."""

    def __init__(self, owner: int) -> None:
        self.owner = owner

    def __reduce__(self) -> Any:
        if os.getpid() != self.owner:
            os._exit(3)
        return DiesAtPickle, (self.owner,)


class RaisesAtUnpickle:
    """It raises while it is unpickled."""

    def __reduce__(self) -> Any:
        return fail, ("not unpicklable",)


class ExitsAtUnpickle:
    """It leaves the interpreter while it is unpickled."""

    def __reduce__(self) -> Any:
        return sys.exit, (3,)


class DiesAtUnpickle:
    """It ends the process that unpickles it."""

    def __reduce__(self) -> Any:
        return exit_now, (3,)


class SlowToPickle:
    """It takes a while to be pickled, so that a process can be killed meanwhile."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __reduce__(self) -> Any:
        time.sleep(self.seconds)
        return SlowToPickle, (self.seconds,)
