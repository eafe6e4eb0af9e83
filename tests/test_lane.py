"""The thread that waits for a call reads its result (`fastpickle.concurrent._lane`): whoever ends it, and whenever."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest
from executors import interpreter_tasks as inside
from executors import tasks
from executors.leftovers import nothing_left

from fastpickle.concurrent import BrokenInterpreterPool, InterpreterPoolExecutor, _inside, _lane, _pool

try:
    from concurrent import interpreters
except ImportError:
    interpreters = None

pytestmark = pytest.mark.skipif(interpreters is None, reason="CPython 3.14 and later")


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    with nothing_left():
        yield


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


@pytest.fixture
def pool() -> Iterator[InterpreterPoolExecutor]:
    with InterpreterPoolExecutor(2) as executor:
        assert executor.submit(tasks.same, 1).result() == 1
        yield executor


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def in_thread(function: Any, name: str = "waiting") -> tuple[threading.Thread, list[Any]]:
    """Call a function in a thread; what it returns or raises will be in the list."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(function())
        except BaseException as exc:
            outcome.append(exc)

    thread = threading.Thread(target=run, name=name)
    thread.start()
    return thread, outcome


def blocked(pool: InterpreterPoolExecutor, fd: int) -> tuple[Any, threading.Thread, list[Any]]:
    """Have a thread wait for a call that waits for a byte."""
    future = pool.submit(inside.loader_after, fd)
    thread, outcome = in_thread(future.result)
    wait_until(lambda: pool._pool.lane.led is future)
    return future, thread, outcome


@pytest.mark.parametrize("ask", ["result", "exception"])
def test_who_waits_reads(pool: InterpreterPoolExecutor, pipe: tuple[int, int], ask: str) -> None:
    """The result is unpickled in the thread that waits for it."""
    future = pool.submit(inside.loader_after, pipe[0])
    thread, _ = in_thread(getattr(future, ask))
    wait_until(lambda: pool._pool.lane.led is future)
    os.write(pipe[1], b"x")
    thread.join(10)
    assert future.result() == "waiting"
    assert pool._pool.lane.led is None
    assert not pool._pool.sent


def test_the_manager_reads_otherwise(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """With a time limit, callbacks, or other calls."""
    manager = pool._pool.manager
    assert manager is not None
    os.write(pipe[1], b"xxxx")
    assert pool.submit(inside.loader_after, pipe[0]).result(10) == manager.name
    future = pool.submit(inside.loader_after, pipe[0])
    future.add_done_callback(lambda _: None)
    assert future.result() == manager.name
    two = [pool.submit(inside.loader_after, pipe[0]) for _ in range(2)]
    assert two[0].result() == manager.name
    two[1].result()


def test_errors_come_too(pool: InterpreterPoolExecutor) -> None:
    """What is raised, by the call and by what reads it; with its cause."""
    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            pool.submit(tasks.raise_it, ZeroDivisionError, 1).result()
        assert isinstance(caught.value.__cause__, interpreters.ExecutionFailed)
        with pytest.raises(interpreters.NotShareableError, match="while unpickled"):
            pool.submit(inside.hostile, "loads", ValueError).result()
        assert isinstance(pool.submit(tasks.raise_it, inside.Own, 1).exception(), inside.Own)
        assert pool.submit(tasks.same, 5).exception() is None


@pytest.mark.parametrize("size", [*range(4060, 4100), *range(61_400, 61_460, 7), 65_530, 1 << 16, 1 << 20])
def test_large_results(pool: InterpreterPoolExecutor, size: int) -> None:
    """A result for which the worker leaves its loop wakes the thread that waits in the lane."""
    for payload in bytes(size), [bytes(size)]:
        assert pool.submit(tasks.same, payload).result() == payload


@pytest.mark.parametrize("room", [_inside.INLINE, 10_000])
def test_results_up_to_the_room(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Whatever the pipe has room for, results of any size come: by the lane, or by the worker's thread."""
    opened = _lane.Lane.open

    def open_small(self: Any, *ends: int) -> None:
        opened(self, *ends)
        self.room = room

    monkeypatch.setattr(_lane.Lane, "open", open_small)
    with InterpreterPoolExecutor(1) as pool:
        for size in range(room - 20, room + 20):
            payload = "x" * size
            assert pool.submit(tasks.same, payload).result() == payload


def test_another_waits_too(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """One reads, the other is woken by it."""
    future, thread, outcome = blocked(pool, pipe[0])
    other, same = in_thread(future.result, "other")
    time.sleep(0.05)
    os.write(pipe[1], b"x")
    thread.join(10)
    other.join(10)
    assert outcome == same == ["waiting"]


def test_calls_beside(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """Other calls end while a thread waits in the lane, by the manager."""
    _, thread, outcome = blocked(pool, pipe[0])
    assert [f.result() for f in [pool.submit(tasks.same, i) for i in range(300)]] == [*range(300)]
    payload = bytes(1 << 17)
    assert pool.submit(tasks.same, payload).result() == payload
    os.write(pipe[1], b"x")
    thread.join(10)
    assert outcome == ["waiting"]


def test_callback_that_comes_late(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """It does not run in the thread that waits, which may hold a lock that it wants."""
    lock = threading.Lock()
    future = pool.submit(inside.loader_after, pipe[0])
    seen = []

    def wait() -> Any:
        with lock:
            return future.result()

    thread, outcome = in_thread(wait)
    wait_until(lambda: pool._pool.lane.led is future)

    def callback(_: Any) -> None:
        with lock:
            seen.append(threading.current_thread().name)

    future.add_done_callback(callback)
    os.write(pipe[1], b"x")
    thread.join(10)
    wait_until(lambda: seen)
    assert outcome == ["waiting"]
    assert seen != ["waiting"]
    assert pool.submit(tasks.same, 1).result() == 1


@pytest.mark.parametrize("size", [1, 1 << 17], ids=["small", "large"])
def test_callbacks_come_after_who_waits(pool: InterpreterPoolExecutor, pipe: tuple[int, int], size: int) -> None:
    """Whoever calls them: the thread that waits may hold what they want."""
    lock = threading.Lock()
    called = threading.Event()
    future = pool.submit(inside.read_many, pipe[0], size)

    def wait() -> Any:
        with lock:
            return len(future.result())

    thread, outcome = in_thread(wait)
    wait_until(lambda: pool._pool.lane.led is future)

    def callback(_: Any) -> None:
        with lock:
            called.set()

    future.add_done_callback(callback)
    os.write(pipe[1], b"x")
    thread.join(10)
    assert outcome == [size]
    assert called.wait(10)


def test_calls_that_wait_to_be_sent(pipe: tuple[int, int]) -> None:
    """They are sent when the call ends that a thread waits for in the lane."""
    with InterpreterPoolExecutor(1) as pool:
        pool.submit(tasks.same, 1).result()
        for _ in range(20):
            _, thread, outcome = blocked(pool, pipe[0])
            pool._pool.average = 2000.0  # long calls: none is sent ahead
            futures = [pool.submit(tasks.same, i) for i in range(3)]
            assert len(pool._pool.waiting) == 3
            os.write(pipe[1], b"x")
            assert [future.result() for future in futures] == [0, 1, 2]
            thread.join(10)
            assert len(outcome) == 1


@pytest.mark.usefixtures("alarm")
def test_interrupted_with_calls_waiting() -> None:
    """No call is half sent, and none is forgotten."""
    generator = random.Random(20261123)
    with InterpreterPoolExecutor(1) as pool:
        pool.submit(tasks.same, 1).result()
        for _ in range(100):
            future = pool.submit(tasks.sleep, 1e-4, 0)
            futures = [future]
            try:
                try:
                    pool._pool.average = 2000.0
                    more, _ = in_thread(lambda futures=futures: futures.append(pool.submit(tasks.same, 1)))
                    signal.setitimer(signal.ITIMER_REAL, generator.uniform(5e-5, 4e-4))
                    future.result()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupt:
                pass
            except RuntimeError as exc:  # of `threading.Condition`, which no signal may interrupt
                assert str(exc) == "cannot release un-acquired lock"
            with contextlib.suppress(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, 0)
            more.join(10)
            assert [future.result(10) for future in futures] == [0, 1]


def test_result_in_a_callback(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """The manager goes on managing where it waits: for small and large results, and calls that are not sent yet."""
    for payloads in [5], [bytes(1 << 17)], [1, bytes(1 << 17), 2] * 20:
        seen: list[Any] = []
        done = threading.Event()

        def callback(_: Any, payloads: list[Any] = payloads, seen: list[Any] = seen, done: Any = done) -> None:
            seen.append(threading.current_thread())
            pool._pool.average = 2000.0  # none is sent ahead
            seen.extend(future.result() for future in [pool.submit(tasks.same, each) for each in payloads])
            done.set()

        future = pool.submit(inside.read_from, pipe[0])
        future.add_done_callback(callback)
        os.write(pipe[1], b"x")
        assert done.wait(10)
        assert seen == [pool._pool.manager, *payloads]


def test_results_in_callbacks_of_callbacks(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """Each waits for one that is read already, or for one whose callback waits in its turn."""
    futures = [pool.submit(inside.read_from, pipe[0])]
    futures += [pool.submit(tasks.same, i) for i in range(30)]
    seen: list[Any] = []
    for i, future in enumerate(futures[:-1]):
        future.add_done_callback(lambda _, i=i: seen.append(futures[i + 1].result()))
    os.write(pipe[1], b"x")
    wait_until(lambda: len(seen) == 30)
    assert sorted(seen) == [*range(30)]


def test_callback_that_waits_for_the_led_call(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """The thread in the lane wakes the manager."""
    future, thread, outcome = blocked(pool, pipe[0])
    seen: list[Any] = []
    pool.submit(tasks.sleep, 0.05).add_done_callback(lambda _: seen.append(future.result()))
    wait_until(lambda: pool._pool.helping)
    os.write(pipe[1], b"x")
    thread.join(10)
    wait_until(lambda: seen)
    assert seen == outcome


def test_cancelled_in_a_callback(pipe: tuple[int, int]) -> None:
    """A call that was never sent."""
    with InterpreterPoolExecutor(1) as pool:
        pool.submit(tasks.same, 1).result()
        pool._pool.average = 2000.0
        futures = [pool.submit(inside.read_from, pipe[0]) for _ in range(3)]
        seen: list[Any] = []

        def callback(_: Any) -> None:
            try:
                futures[2].result()
            except CancelledError:
                seen.append("cancelled")

        futures[0].add_done_callback(callback)
        os.write(pipe[1], b"x")
        wait_until(lambda: pool._pool.helping)
        assert futures[2].cancel()
        wait_until(lambda: seen)
        os.write(pipe[1], b"x")
        assert futures[1].result(10) == b"x"


def test_shutdown_beside(pipe: tuple[int, int]) -> None:
    """The call that is waited for comes to its end; then nothing is left."""
    for wait in False, True:
        pool = InterpreterPoolExecutor(1)
        _, thread, outcome = blocked(pool, pipe[0])
        ending, _ = in_thread(lambda pool=pool, wait=wait: pool.shutdown(wait, cancel_futures=True))
        time.sleep(0.05)
        os.write(pipe[1], b"x")
        thread.join(10)
        ending.join(10)
        assert outcome == ["waiting"]


def test_collected_beside(pipe: tuple[int, int]) -> None:
    """Nobody holds the executor any more: its threads end all the same."""
    for _ in range(3):
        pool = InterpreterPoolExecutor(1)
        _, thread, outcome = blocked(pool, pipe[0])
        shared = pool._pool
        del pool
        gc.collect()
        os.write(pipe[1], b"x")
        thread.join(10)
        assert outcome == ["waiting"]
        wait_until(lambda shared=shared: not shared.fds)


@pytest.mark.parametrize("payload", [1, bytes(1 << 17)], ids=["small", "large"])
def test_collected_while_the_lock_is_held(monkeypatch: pytest.MonkeyPatch, payload: Any) -> None:
    """The collector finds the executor where the reader holds the pool's lock: the manager is told later."""
    pool: Any = InterpreterPoolExecutor(1)
    shared = pool._pool
    ended = type(shared).ended

    def collect(self: Any, *args: Any) -> Any:
        nonlocal pool
        with self.lock:
            pool = None
        assert self.stopping
        return ended(self, *args)

    future = pool.submit(tasks.same, payload)
    with monkeypatch.context() as patch:
        patch.setattr(type(shared), "ended", collect)
        assert future.result() == payload
    wait_until(lambda: not shared.fds)


def test_initializer_that_fails_beside() -> None:
    """It breaks the pool; the call that is waited for fails."""

    with InterpreterPoolExecutor(1, initializer=tasks.raise_it, initargs=(ValueError, "no")) as pool:
        with pytest.raises(BrokenInterpreterPool):
            pool.submit(tasks.same, 1).result()


def test_defect_of_the_manager_beside(
    monkeypatch: pytest.MonkeyPatch, pool: InterpreterPoolExecutor, pipe: tuple[int, int]
) -> None:
    """It fails every future, and wakes the thread that waits in the lane."""

    def defect(*_: Any) -> Any:
        raise ZeroDivisionError

    _, thread, outcome = blocked(pool, pipe[0])
    monkeypatch.setattr(_pool, "_look", defect)
    with contextlib.suppress(BrokenInterpreterPool):
        pool.submit(tasks.same, 1)
    thread.join(10)
    assert isinstance(outcome[0], BrokenInterpreterPool)
    os.write(pipe[1], b"x")


def test_defect_of_the_reader(monkeypatch: pytest.MonkeyPatch, pool: InterpreterPoolExecutor) -> None:
    """The thread that waits has no use for the message, nor has another one: the pool is broken, nobody hangs."""

    def defect(*_: Any) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(type(pool._pool), "ended", defect)
        future = pool.submit(tasks.same, 1)
        with pytest.raises((ZeroDivisionError, BrokenInterpreterPool)):
            future.result()
        assert isinstance(future.exception(10), BrokenInterpreterPool)


@pytest.mark.parametrize("ends", [["read_end"], ["write_end"], ["read_end", "write_end"]])
def test_lane_that_a_task_closes(ends: list[str], pipe: tuple[int, int]) -> None:
    """As with the other pipes, the pool is broken, and nobody waits for ever."""
    with InterpreterPoolExecutor(2) as pool:
        assert pool.submit(tasks.same, 1).result() == 1
        lane = pool._pool.lane
        with contextlib.suppress(BrokenInterpreterPool):
            for end in ends:
                pool.submit(inside.close, getattr(lane, end)).result(10)
            for _ in range(3):
                pool.submit(tasks.same, 1).result()
        with pytest.raises(BrokenInterpreterPool):
            pool.submit(tasks.same, 1).result()


def test_a_task_closes_it_under_the_reader(pipe: tuple[int, int]) -> None:
    """The worker itself finds it closed."""
    with InterpreterPoolExecutor(1) as pool:
        assert pool.submit(tasks.same, 1).result() == 1
        future = pool.submit(inside.read_and_close, pipe[0], pool._pool.lane.write_end)
        thread, outcome = in_thread(future.result)
        wait_until(lambda: pool._pool.lane.led is future)
        os.write(pipe[1], b"x")
        thread.join(10)
        assert isinstance(outcome[0], BrokenInterpreterPool)


class Interrupt(BaseException):
    """What Ctrl+C is to the main thread."""


@contextlib.contextmanager
def handled(handler: Any) -> Iterator[None]:
    """Have a handler for SIGALRM."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Interrupt

    with handled(ring):
        yield


def test_handler_that_waits_for_the_same_call(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """It reads itself what the thread that it interrupts was to read; small and large."""
    seen: list[Any] = []

    def handler(*_: Any) -> None:
        os.write(pipe[1], b"x")
        seen.append(future.result())

    with handled(handler):
        for size in 10, 1 << 17, 20:
            future = pool.submit(inside.read_many, pipe[0], size)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            assert future.result() == bytes(size)
            assert seen.pop() == bytes(size)
            assert not pool._pool.lane.reading.locked()
        assert [pool.submit(tasks.same, i).result() for i in range(20)] == [*range(20)]


def test_handler_that_waits_for_what_nobody_can_read(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """It gets the same error as the thread that it interrupts."""
    seen: list[Any] = []

    def handler(*_: Any) -> None:
        os.write(pipe[1], b"x")
        seen.append(future.exception())

    with handled(handler):
        future = pool.submit(inside.hostile_after, pipe[0])
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        error = future.exception()
        assert isinstance(error, interpreters.NotShareableError)
        assert seen == [error]
        wait_until(lambda: not pool._pool.lane.reading.locked())


def test_handlers_that_wait_at_any_moment() -> None:
    """Wherever the thread is that they interrupt."""
    generator = random.Random(20261124)
    seen: list[Any] = []
    with handled(lambda *_: seen.append(future.result())):
        with InterpreterPoolExecutor(2) as pool:
            future = pool.submit(tasks.same, 0)
            for i in range(400):
                future = pool.submit(tasks.same, i)
                signal.setitimer(signal.ITIMER_REAL, generator.uniform(1e-6, 60e-6))
                assert future.result() == i
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert set(seen) <= {i}
                seen.clear()


@pytest.mark.usefixtures("alarm")
def test_interrupted_while_it_waits(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """Another thread reads on: the result is there, its callbacks are called, and the lane is free again."""
    future = pool.submit(inside.loader_after, pipe[0])
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(Interrupt):
        future.result()
    called = threading.Event()
    future.add_done_callback(lambda _: called.set())
    os.write(pipe[1], b"x")
    assert called.wait(10)
    assert future.result().endswith("_reader")
    wait_until(lambda: not pool._pool.lane.reading.locked())
    _, thread, outcome = blocked(pool, pipe[0])
    os.write(pipe[1], b"x")
    thread.join(10)
    assert outcome == ["waiting"]


@pytest.mark.parametrize("kind", [Interrupt, TimeoutError])
def test_interrupted_and_asked_again(
    kind: type[BaseException], pool: InterpreterPoolExecutor, pipe: tuple[int, int]
) -> None:
    """Who asks again waits for the thread that reads on, and nothing is broken: a TimeoutError is an OSError, too."""

    def ring(*_: Any) -> None:
        raise kind

    with handled(ring):
        future = pool.submit(inside.loader_after, pipe[0])
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(kind):
                future.result()
    timer = threading.Timer(0.1, os.write, (pipe[1], b"x"))
    timer.start()
    assert future.result(None).endswith("_reader")
    timer.join()
    assert [pool.submit(tasks.same, i).result() for i in range(5)] == [*range(5)]


def test_ctrl_c_while_the_result_is_unpickled(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """It comes out of result(), and is not the call's exception; the result is unpickled once more."""

    def interrupt() -> None:
        wait_until(lambda: pool._pool.lane.led is not None)
        os.write(start[1], b"x")
        os.read(pipe[0], 1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]  # it has one

    start = os.pipe()
    future = pool.submit(inside.slow_to_load, start[0], pipe[1])
    thread, _ = in_thread(interrupt)
    with pytest.raises(KeyboardInterrupt):
        future.result()
    thread.join(10)
    assert future.result(10) == "loaded"
    for fd in start:
        os.close(fd)


def test_handler_that_raises_while_an_exception_is_unpickled(pool: InterpreterPoolExecutor) -> None:
    """It is not taken for an exception that cannot be unpickled: what the handler raises comes out of result()."""

    def ring(*_: Any) -> None:
        raise TimeoutError

    with handled(ring):
        future = pool.submit(tasks.raise_it, inside.Ringing)
        with pytest.raises(TimeoutError):
            future.result()
        with pytest.raises(inside.Ringing):
            future.result(10)
    inside.rung.clear()


def test_interrupted_while_the_future_is_locked(monkeypatch: pytest.MonkeyPatch, pool: InterpreterPoolExecutor) -> None:
    """As between the lock and the block of a `with`: nobody waits for that lock for ever."""

    def interrupted(self: Any, _: Any) -> None:
        monkeypatch.undo()
        self._condition.acquire()
        raise KeyboardInterrupt

    future = pool.submit(tasks.sleep, 0.05, 5)
    monkeypatch.setattr(type(future), "set_result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        future.result()
    assert in_thread(lambda: future.result(10))[0].join(10) is None
    assert future.result(10) == 5


@pytest.mark.usefixtures("alarm")
def test_interrupted_at_any_moment() -> None:
    """Every future ends with its result, whenever the thread that waits for it is interrupted."""
    generator = random.Random(20261122)
    interrupted = 0
    with InterpreterPoolExecutor(2) as pool:
        for i in range(400):
            future = pool.submit(tasks.same, i)
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, generator.uniform(1e-6, 60e-6))
                    assert future.result() == i
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupt:
                interrupted += 1
            except RuntimeError as exc:  # of `threading.Condition`, which no signal may interrupt
                assert str(exc) == "cannot release un-acquired lock"
            with contextlib.suppress(Interrupt):  # one that came late
                signal.setitimer(signal.ITIMER_REAL, 0)
            with contextlib.suppress(RuntimeError):
                assert future.result(10) == i
            assert future.result(10) == i
    assert interrupted


def test_many_threads_ask_at_once() -> None:
    """Each gets its own; whoever reads, and whoever does not."""
    with InterpreterPoolExecutor(2) as pool, ThreadPoolExecutor(4) as threads:

        def run(start: int) -> list[int]:
            return [pool.submit(tasks.same, start + i).result() for i in range(300)]

        for _ in range(2):
            assert [*threads.map(run, range(0, 4000, 1000))] == [
                [*range(start, start + 300)] for start in range(0, 4000, 1000)
            ]


def test_forked_child_does_not_read(pool: InterpreterPoolExecutor) -> None:
    """What it read would be missing in its parent: there the lane counts as taken."""
    shared = _pool.Pool(1, "x", "pickle", None)
    assert not shared.lane.reading.locked()
    shared.forget()
    assert shared.lane.reading.locked()


# -- looking before sleeping


def test_spin() -> None:
    """It ends when the number changes, or in time; after it was in vain it rests for longer and longer."""
    board = memoryview(bytearray(16)).cast("Q")
    spin = _inside.Spin(board, 1, 1_000)
    spin.wait(5)
    assert (spin.pause, spin.pauses) == (0, 0)
    board[1] = 5
    for pause in 1, 3, 7, 15, 31, 63, 63:
        spin.wait(5)
        assert (spin.pause, spin.pauses) == (pause, pause)
        for _ in range(pause):
            spin.wait(5)
        assert spin.pauses == 0
    board[1] = 0
    spin.wait(5)
    assert spin.pause == 0


def test_one_core_never_spins(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep the other thread from running."""
    monkeypatch.setattr(os, "process_cpu_count", lambda: 1)
    board = memoryview(bytearray(8)).cast("Q")
    spin = _inside.Spin(board, 0, _pool._spin_time())
    start = time.monotonic()
    for _ in range(1000):
        spin.wait(0)
    assert time.monotonic() - start < 1
    assert spin.pauses > 1 << 30
    with InterpreterPoolExecutor(1) as pool:
        assert [pool.submit(tasks.same, i).result() for i in range(20)] == [*range(20)]


def test_done_calls_are_counted(pool: InterpreterPoolExecutor, pipe: tuple[int, int]) -> None:
    """Whoever reads their results."""
    before = pool.stats().done
    for i in range(10):
        pool.submit(tasks.same, i).result()
    assert [*pool.map(tasks.same, range(10))] == [*range(10)]
    pool.submit(tasks.same, bytes(1 << 17)).result()
    assert pool.stats().done == before + 21
