"""Many threads that dump at once, while others install and uninstall: each result is the one that stock gives alone.

    before   every case once, on stock, in one thread                        -> what is right
    then     dumpers: every case again and again, in an order of their own   -> compared with that
             flippers: install(), uninstall(), patched() at random moments
             and objects that do the same in the middle of a dump, so that dumps begin in one state and end in the other
    after    the stock class is the very one that it was

The objects are shared by all threads.  ``THREADS_SECONDS`` makes it longer.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oracle import objects, samples
from test_install import in_child

import fastpickle
from fastpickle import patch

_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]

SECONDS = float(os.environ.get("THREADS_SECONDS", 1.5))
DUMPERS = 8
FLIPPERS = 2

# CPython 3.13 and later cache nothing of a class that has changed about a thousand times, and are slower after that.
FLIPS = 100 if SECONDS < 10 else 10_000


class Yielding:
    """Lets other threads run in the middle of a dump."""

    def __reduce__(self) -> Any:
        time.sleep(0.0002)
        return Yielding, ()


class Flipping:
    """Installs or uninstalls in the middle of a dump, as long as `flips` allows it."""

    flips: Callable[[], None] = staticmethod(lambda: None)

    def __reduce__(self) -> Any:
        Flipping.flips()
        return Flipping, ()


class Failing:
    """Cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("not this one")


class Memoizing(_Stock):  # type: ignore[misc]
    """Has the hook that forbids most shortcuts."""

    def memoize(self, obj: Any) -> None:
        super().memoize(obj)


class Saving(_Stock):  # type: ignore[misc]
    """Overrides `save`, as joblib's Hasher does."""

    def save(self, obj: Any) -> None:
        if type(obj) is objects.Other:
            obj = "another"
        super().save(obj)


class Persistent(_Stock):  # type: ignore[misc]
    """Has persistent ids."""

    def persistent_id(self, obj: Any) -> Any:
        return "the middle" if type(obj) is Yielding else None


class Overriding(_Stock):  # type: ignore[misc]
    """Reduces some objects itself."""

    def reducer_override(self, obj: Any) -> Any:
        return (str, ("overridden",)) if type(obj) is objects.Plain else NotImplemented


PICKLERS: dict[str, Any] = {
    "stock": _Stock,
    "Pickler": fastpickle.Pickler,
    **{cls.__name__: cls for cls in (Memoizing, Saving, Persistent, Overriding)},
}


try:  # here, since the first import changes the stock class's dispatch table
    import dill
except ImportError:
    pass
else:
    from fastpickle.backends import dill as backend

    PICKLERS |= {"dill": dill.Pickler, "dill's backend": backend.Pickler}


def outcome(cls: Any, obj: Any, protocol: int) -> Any:
    """Dump an object: gives the bytes, or what the error says."""
    file = io.BytesIO()
    try:
        cls(file, protocol).dump(obj)
    except (pickle.PicklingError, TypeError, AttributeError) as exc:
        return type(exc), str(exc), getattr(exc, "__notes__", None), file.getvalue()
    return file.getvalue()


def shapes() -> dict[str, Any]:
    """Make the objects: plain, with reduces, with code that runs in the middle, and some that cannot be pickled."""
    middle = [Yielding(), Flipping(), Yielding()]
    shared = ["shared", (1, 2)]
    return {
        "nested": [samples.nested(), [*range(1001)], {i: str(i) for i in range(300)}],
        "reduces": [samples.reduces(), samples.instances(), objects.Plain(a=[objects.List([1])])],
        "middle": [shared, *([i, [j, {"k": (shared, j, i)}]] for i in range(4) for j in middle), shared],
        "batches": [*range(999), *middle, *range(998), *middle],
        "plain among others": [objects.Plain(b=j, c=shared) for j in [*middle, 1, "two", objects.Other()]],
        "error": [shared, {"a": [*middle, (1, Failing())]}],
        "small": (1, "two", {"three": 4.0}),
    }


def test_many_threads_while_others_install_and_uninstall() -> None:
    """Every result of every thread is stock's, and the stock class is left as it was."""
    before = dict(vars(_Stock))
    cases = [(cls, obj, protocol) for cls in PICKLERS.values() for obj in shapes().values() for protocol in (0, 2, 4)]
    for case in cases:  # the first dump of a class may differ from all later ones: copyreg keeps the names of its slots
        outcome(*case)
    right = [outcome(*case) for case in cases]
    assert right == [outcome(*case) for case in cases]
    assert any(type(result) is tuple for result in right) and any(type(result) is bytes for result in right)
    problems: list[Any] = []
    done = [0] * DUMPERS
    flips = [0]
    end = time.monotonic() + 3600  # until all have started
    lock = threading.Lock()

    def flip() -> None:
        with lock:
            flips[0] += 1
            if fastpickle.is_installed():
                fastpickle.uninstall()
            else:
                fastpickle.install()

    def flip_now_and_then() -> None:
        if flips[0] < FLIPS and random.random() < 0.1:
            flip()

    def dump(number: int) -> None:
        order = random.Random(number)
        while time.monotonic() < end and not problems:
            k = order.randrange(len(cases))
            try:
                result: Any = outcome(*cases[k])
            except BaseException as exc:
                result = exc
            if result != right[k]:
                problems.append((cases[k][0], cases[k][2], result, right[k]))
            done[number] += 1

    def flip_from_outside(number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < end and not problems:
            if flips[0] < 2 * FLIPS:
                flip()
                with fastpickle.patched():
                    time.sleep(chance.random() * 0.003)
            time.sleep(chance.random() * 0.01)

    threads = [threading.Thread(target=dump, args=(number,)) for number in range(DUMPERS)]
    threads += [threading.Thread(target=flip_from_outside, args=(number,)) for number in range(FLIPPERS)]
    interval = sys.getswitchinterval()
    Flipping.flips = staticmethod(flip_now_and_then)
    try:
        sys.setswitchinterval(1e-5)
        for thread in threads:
            thread.start()
        end = time.monotonic() + SECONDS
        for thread in threads:
            thread.join()
    finally:
        end = 0.0
        sys.setswitchinterval(interval)
        Flipping.flips = staticmethod(lambda: None)
        fastpickle.uninstall()
    assert not problems, problems[0]
    assert all(done) and flips[0] > 10, (done, flips)
    assert not fastpickle.is_installed()
    after = dict(vars(_Stock))
    assert [*after] == [*before] and all(after[name] is before[name] for name in before)


@pytest.mark.parametrize("count", [2, 16])
def test_blocks_of_many_threads_overlap(count: int) -> None:
    """With `patched()` open in several threads it is installed until the last one is left."""
    barrier = threading.Barrier(count)
    seen: list[bool] = []

    def use() -> None:
        with fastpickle.patched():
            barrier.wait(30)
            seen.append(fastpickle.is_installed())
            barrier.wait(30)

    threads = [threading.Thread(target=use) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * count
    assert not fastpickle.is_installed()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_memo_of_a_dump_while_another_thread_uninstalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not left with C where nobody would find it: the class loses what fetches it."""
    memos = []
    fetched_memos = patch.fetched_memos

    @contextlib.contextmanager
    def dumping() -> Iterator[None]:
        with fetched_memos():
            pickler = _Stock(io.BytesIO(), 4)
            pickler.dump([[str(i)] for i in range(300)])
            yield
            memos.append(pickler.memo)

    fastpickle.install()
    monkeypatch.setattr(patch, "fetched_memos", dumping)
    fastpickle.uninstall()
    assert [*map(len, memos)] == [601]


def test_fork_while_other_threads_hold_locks() -> None:
    """A forked process has none of the threads that had a lock: it would wait for ever."""
    code = """
        import io, os, signal, threading, warnings
        import fastpickle
        from fastpickle import patch
        from fastpickle.accelerator import lazymemo

        def hold(lock, seconds):
            with lock:
                held.release()
                may_go.wait(seconds)

        held = threading.Semaphore(0)
        may_go = threading.Event()
        for lock in (patch._lock, lazymemo._is_fetching, lazymemo._is_dropping):
            # what a fork waits for is held for a moment; the last one, nobody waits for
            seconds = 60 if lock is lazymemo._is_dropping else 0.2
            threading.Thread(target=hold, args=(lock, seconds), daemon=True).start()
            held.acquire()
        warnings.simplefilter("ignore", DeprecationWarning)  # of what this is about
        pid = os.fork()
        if not pid:
            signal.alarm(30)
            with fastpickle.patched():
                pickler = fastpickle.Pickler(io.BytesIO(), 4)
                pickler.dump([str(i) for i in range(1000)])
                assert len(pickler.memo) == 1001
            assert lazymemo._is_dropping.acquire(blocking=False)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert lazymemo._is_dropping.locked()
        for lock in (patch._lock, lazymemo._is_fetching):
            assert lock.acquire(timeout=10)
        may_go.set()
        """
    in_child(code)
