"""`ProcessThreadPoolExecutor`, with each start method: what it returns, how it fails, and that nothing is left."""

from __future__ import annotations

import asyncio
import concurrent.futures
import faulthandler
import gc
import importlib.util
import io
import itertools
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_sharer
from pathlib import Path
from typing import Any

import pytest
from executors import tasks
from executors.leftovers import nothing_left
from oracle.parts import APartOf

from fastpickle.concurrent import ProcessThreadPoolExecutor, dispatcher, records
from fastpickle.concurrent import worker as worker_module

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="it needs a POSIX system"),
    # 3.12 and later warn of a fork beside threads, such as pytest-xdist's and pytest-timeout's.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

METHODS = ("fork", "spawn", "forkserver")

SERIALIZERS = [
    pytest.param("dill", marks=pytest.mark.skipif(sys.version_info >= (3, 15), reason="it pickles no function there")),
    "cloudpickle",
]

SECONDS = 30.0
"""Seconds after which a future that has not ended is said to hang."""


@pytest.fixture(params=METHODS)
def method(request: Any) -> str:
    """Return a start method."""
    return str(request.param)


@pytest.fixture(autouse=True)
def _nothing_left(request: Any) -> Iterator[None]:
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=tasks.same, args=(1,))  # so that the server is there before we look
    process.start()
    process.join()
    process.close()
    with nothing_left():
        yield


def pool(method: str, max_processes: int = 2, max_threads: int = 3, **settings: Any) -> ProcessThreadPoolExecutor:
    """Make an executor with a start method."""
    context = multiprocessing.get_context(method)
    return ProcessThreadPoolExecutor(max_processes, max_threads, mp_context=context, **settings)


def outcome(future: concurrent.futures.Future[Any]) -> BaseException | None:
    """Wait for a future, and return its exception; `CancelledError` if it was cancelled."""
    try:
        return future.exception(SECONDS)
    except concurrent.futures.CancelledError as exc:
        return exc


class TestResults:
    """What comes back."""

    def test_submit(self, method: str) -> None:
        """Arguments, keyword arguments, results of all sizes, in the right futures."""
        with pool(method) as executor:
            assert executor.submit(tasks.add, 1, y=2).result(SECONDS) == 3
            assert executor.submit(tasks.keywords, 1, fn=2, self=3).result(SECONDS) == ((1,), {"fn": 2, "self": 3})
            sizes = [0, 1, 16_000, 16_384, 65_510, 65_511, 65_536, 70_000, 1_048_576, 3_000_000]
            payloads = [os.urandom(n) for n in sizes]
            futures = [executor.submit(tasks.same, payload) for payload in payloads]
            assert [future.result(SECONDS) for future in futures] == payloads
            numbers = [executor.submit(tasks.same, i) for i in range(2000)]
            assert [future.result(SECONDS) for future in numbers] == [*range(2000)]

    @pytest.mark.parametrize("chunksize", [1, 2, 7, 100, 1001])
    @pytest.mark.parametrize("buffersize", [None, 1, 3])
    def test_map(self, chunksize: int, buffersize: int | None) -> None:
        """All items, in order, by every chunk and buffer."""
        with pool("fork") as executor:
            for n in (0, 1, 2, 99, 1000):
                results = executor.map(
                    tasks.add, range(n), itertools.count(), chunksize=chunksize, buffersize=buffersize
                )
                assert [*results] == [2 * i for i in range(n)]

    def test_buffersize(self) -> None:
        """No more is taken from the iterable than the buffer says, and the results that were fetched."""
        with pool("fork") as executor:
            taken = []
            results = executor.map(tasks.same, (taken.append(i) or i for i in range(100)), buffersize=3)
            assert len(taken) == 3
            assert [next(results), next(results)] == [0, 1]
            assert len(taken) == 5
            chunks = executor.map(tasks.same, (taken.append(i) or i for i in range(100)), chunksize=4, buffersize=2)
            assert len(taken) == 5 + 8
            results.close()
            chunks.close()
            assert [*executor.map(tasks.same, [], buffersize=1)] == []

    def test_map_errors(self, tmp_path: Path) -> None:
        """A timeout, an exception in a chunk, and arguments that make no sense."""
        with pool("fork") as executor:
            for bad, error in (({"chunksize": 0}, ValueError), ({"buffersize": 0}, ValueError)):
                with pytest.raises(error):
                    executor.map(tasks.same, [1], **bad)
            with pytest.raises(TypeError):
                executor.map(tasks.same, [1], buffersize="1")
            mark = str(tmp_path / "mark")
            with pytest.raises(concurrent.futures.TimeoutError):
                list(executor.map(tasks.wait_for, [mark] * 2, timeout=0.05))
            tasks.touch(mark)
            for chunksize in (1, 3, 10):
                results = executor.map(tasks.fail_on, range(9), [4] * 9, chunksize=chunksize)
                assert [*itertools.islice(results, 4 // chunksize * chunksize)] == [*range(4 // chunksize * chunksize)]
                with pytest.raises(ValueError, match="bad 4"):
                    next(itertools.islice(results, 4 - 4 // chunksize * chunksize, None))

    def test_chunks_share_threads(self, tmp_path: Path) -> None:
        """The calls of a chunk that wait, wait side by side."""
        with pool("fork", 1, 10) as executor:
            [*executor.map(tasks.same, range(20))]
            alone, together = tmp_path / "alone", tmp_path / "together"
            alone.mkdir()
            together.mkdir()
            # A first call that waits has a second thread take part, and each that it has taken part in, one more.
            places = [*executor.map(tasks.meet, [str(alone), *[str(together)] * 2], [1, 2, 2], chunksize=3)]
            assert places[1] != places[2]
            with pytest.raises(ValueError, match="bad 3"):  # the first in order, though others raise before it
                [*executor.map(_slow_to_fail, range(10), chunksize=10)]
            assert [*executor.map(tasks.same, range(20), chunksize=20)] == [*range(20)]

    def test_chunks_share_threads_after_short_tasks(self, tmp_path: Path) -> None:
        """Tasks that are taken by whoever has just ended another one leave no thread that waits and is not found."""
        with pool("fork", 1, 10) as executor:
            for i in range(30):
                [*executor.map(tasks.same, range(200))]
                folders = [tmp_path / f"{i}-{name}" for name in ("alone", "together")]
                for folder in folders:
                    folder.mkdir()
                places = [*executor.map(tasks.meet, map(str, [*folders, folders[1]]), [1, 2, 2], chunksize=3)]
                assert places[1] != places[2]

    def test_what_a_thread_is_there_for_does_not_come_back(self) -> None:
        """A worker that is asked for its tasks sends back those that wait, and not what a thread is to take next."""
        for _ in range(100):
            sent: list[bytes] = []
            one = worker_module._Worker(worker_module.Setup("pickle", 1, b"", b""), -1, -1)
            one._loads, one._dumps = pickle.loads, pickle.dumps
            one._send = lambda parts, sent=sent: sent.append(parts[0])
            one._initializer = None
            for number in (1, 2, 3):
                one._put((records.TASK, number, pickle.dumps((time.sleep, (0.001,), {}))))
            one._return_tasks()
            for thread in one._threads:
                one._wakes.put(False)
                thread.join(SECONDS)
            kinds = {records._HEADER.unpack_from(data)[1]: data[0] for data in sent}
            assert kinds[1] == records.RESULT
            assert {*kinds} == {1, 2, 3}
            assert one._free == 1  # it was ready for one more

    def test_large_tasks_come_back(self, tmp_path: Path) -> None:
        """A task that is sent back is written as it came, also a large one, and a chunk."""
        mark = str(tmp_path / "mark")
        with pool("fork", 1, 1) as executor:
            [*executor.map(tasks.same, range(500))]
            first = executor.submit(tasks.wait_for, mark)
            later = [executor.submit(tasks.same, bytes(n)) for n in (0, 70_000, 200_000) * 3]
            chunk = executor._submit_chunk(tasks.same, [(bytes(100_000),)])
            _wait_until(lambda: len(executor._pool.pending) == 10)  # it is asked for them
            tasks.touch(mark)
            assert first.result(SECONDS) == "there"
            assert [len(f.result(SECONDS)) for f in later] == [0, 70_000, 200_000] * 3
            assert chunk.result(SECONDS) == [bytes(100_000)]

    def test_evenly(self, method: str, tmp_path: Path) -> None:
        """As many tasks as threads run at the same time, the same number in each process."""
        with pool(method, 2, 4) as executor:
            for n in (8, 4):  # with the first all processes have begun
                folder = tmp_path / str(n)
                folder.mkdir()
                places = [*executor.map(tasks.meet, [str(folder)] * n, [n] * n)]
                assert len({*places}) == n
                assert [*Counter(pid for pid, _ in places).values()] == [n // 2] * 2

    def test_never_more_than_max(self) -> None:
        """No more tasks at a time than threads, however many there are; no more processes."""
        with pool("fork", 2, 2) as executor:
            spans = [*executor.map(_span, [0.02] * 40)]
            for pid in {p for p, _, _ in spans}:
                events = sorted(e for p, a, b in spans if p == pid for e in ((a, 1), (b, -1)))
                assert max(itertools.accumulate(step for _, step in events)) <= 2
            assert len({p for p, _, _ in spans}) == 2
            assert executor.stats().processes == 2

    def test_processes_as_needed(self) -> None:
        """One task starts one process, where processes are not forked; a fork takes all at once."""
        with pool("spawn", 3, 2) as executor:
            executor.submit(tasks.same, 1).result(SECONDS)
            assert executor.stats().processes == 1

    def test_process_that_starts_late(self, tmp_path: Path, monkeypatch: Any) -> None:
        """A process that is started while the only other one is busy is heard of when it is ready."""
        start = dispatcher.Dispatcher._start_worker
        sent = threading.Event()
        send = dispatcher.Dispatcher._send

        def start_slowly(pool: Any) -> None:
            if pool.workers:
                sent.wait(SECONDS)  # the other one is busy, and the pool's thread is about to wait
                time.sleep(0.1)
            start(pool)

        monkeypatch.setattr(dispatcher.Dispatcher, "_start_worker", start_slowly)
        monkeypatch.setattr(dispatcher.Dispatcher, "_send", lambda *args: (send(*args), sent.set()))
        mark = str(tmp_path / "mark")
        with pool("spawn", 2, 1) as executor:
            executor.submit(tasks.same, 1).result(SECONDS)
            sent.clear()
            waiting = executor.submit(tasks.wait_for, mark)
            executor.submit(tasks.touch, mark)
            assert waiting.result(SECONDS) == "there"

    def test_shared_objects_are_not_shared_by_tasks(self) -> None:
        """Each task has a copy of its own of what it gets, as in any process pool."""
        shared: list[int] = []
        with pool("fork", 1, 1) as executor:
            futures = [executor.submit(_append, shared) for _ in range(50)]
            assert [f.result(SECONDS) for f in futures] == [[1]] * 50
        assert not shared

    def test_other_interfaces(self, tmp_path: Path) -> None:
        """`as_completed`, `wait`, asyncio's `run_in_executor`, callbacks, and futures across threads."""
        with pool("fork") as executor:
            futures = {executor.submit(tasks.sleep, i / 100, i): i for i in (3, 1, 2)}
            for future in concurrent.futures.as_completed(futures, timeout=SECONDS):
                assert future.result() == futures[future]
            mark = str(tmp_path / "mark")
            first, second = executor.submit(tasks.same, 1), executor.submit(tasks.wait_for, mark)
            assert wait([first, second], SECONDS, concurrent.futures.FIRST_COMPLETED) == ({first}, {second})
            assert wait([first, second], 0.05) == ({first}, {second})
            tasks.touch(mark)
            called: list[Any] = []
            future = executor.submit(tasks.same, 5)
            future.add_done_callback(lambda f: called.append(f.result()))
            assert future.result(SECONDS) == 5

            async def main() -> list[Any]:
                loop = asyncio.get_running_loop()
                return await asyncio.gather(*(loop.run_in_executor(executor, tasks.same, i) for i in range(100)))

            assert asyncio.run(main()) == [*range(100)]
            assert called == [5]
            results: list[Any] = []
            threads = [
                threading.Thread(target=lambda n=n: results.extend(executor.map(tasks.same, range(n, n + 100))))
                for n in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(results) == sorted(i for n in range(4) for i in range(n, n + 100))

    def test_progress_bar(self) -> None:
        """tqdm over `as_completed`, as people write it."""
        tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed").tqdm
        tqdm.monitor_interval = 0  # no thread of its own, which would be left over
        shown = io.StringIO()
        with pool("fork") as executor:
            futures = [executor.submit(tasks.same, i) for i in range(50)]
            bar = tqdm(concurrent.futures.as_completed(futures, SECONDS), total=50, file=shown)
            assert sorted(f.result() for f in bar) == [*range(50)]
        assert "50/50" in shown.getvalue()

    def test_stuck_worker_gives_tasks_back(self, tmp_path: Path) -> None:
        """What waits behind tasks that block is done by another worker, and so they can go on."""
        mark = str(tmp_path / "mark")
        with pool("fork", 2, 2) as executor:
            [*executor.map(tasks.same, range(500))]  # tasks are known to be short: workers get some ahead
            futures = [executor.submit(tasks.wait_for, mark) for _ in range(3)]
            futures += [executor.submit(tasks.same, i) for i in range(200)]
            large = executor.submit(tasks.same, bytes(200_000))
            last = executor.submit(tasks.touch, mark)
            assert outcome(last) is None
            assert [f.result(SECONDS) for f in futures] == ["there"] * 3 + [*range(200)]
            assert large.result(SECONDS) == bytes(200_000)


def _slow_to_fail(i: int) -> int:
    if i in (3, 7):
        time.sleep(0.2 if i == 3 else 0.01)
        raise ValueError(f"bad {i}")
    time.sleep(0.01)
    return i


def _span(seconds: float) -> tuple[int, float, float]:
    began = time.monotonic()
    time.sleep(seconds)
    return os.getpid(), began, time.monotonic()


def _append(items: list[int]) -> list[int]:
    items.append(1)
    return items


class TestSettings:
    """Each parameter, with each start method."""

    def test_initializers(self, method: str) -> None:
        """Once in each process, once in each thread, before the first task."""
        settings = {
            "initializer": tasks.set_state,
            "initargs": ("key", [1, 2]),
            "thread_initializer": tasks.set_local,
            "thread_initargs": ({"a": 1},),
        }
        with pool(method, 2, 3, **settings) as executor:
            found = [*executor.map(tasks.get_local, [0.05] * 12)]
            assert all((value, calls) == ({"a": 1}, 1) for value, calls, _ in found)
            assert {*executor.map(tasks.get_state, ["calls"] * 10)} == {1}
            assert executor.submit(tasks.get_state, "key").result(SECONDS) == [1, 2]

    def test_locks_and_queues_as_initargs(self, method: str) -> None:
        """What `multiprocessing` brings to its processes only, with each serializer."""
        context = multiprocessing.get_context(method)
        for serializer in ("pickle", "dill", "cloudpickle"):
            if serializer != "pickle":
                pytest.importorskip(f"fastpickle.backends.{serializer}", reason=f"{serializer} is not installed")
            lock, queue = context.Lock(), context.Queue()
            settings = {"initializer": tasks.set_state, "initargs": ("both", (lock, queue)), "serializer": serializer}
            with pool(method, 1, 1, **settings) as executor:
                executor.submit(_put_locked, 7).result(SECONDS)
                assert queue.get(timeout=SECONDS) == 7
            queue.close()
            queue.join_thread()

    def test_max_tasks_per_child(self, method: str) -> None:
        """A process has so many tasks and not one more, and there is always one for what is left."""
        with pool(method, 2, 3, max_tasks_per_child=5) as executor:
            pids = [*executor.map(tasks.pid, range(40))]
            counts = {pid: pids.count(pid) for pid in pids}
            assert max(counts.values()) <= 5
            assert len(counts) >= 8
            assert executor.stats().processes <= 2

    @pytest.mark.parametrize("serializer", SERIALIZERS)
    def test_serializers(self, method: str, serializer: str) -> None:
        """Lambdas and closures travel, there and back, and as initializers."""
        pytest.importorskip(f"fastpickle.backends.{serializer}", reason=f"{serializer} is not installed")
        base, seen = 10, {}
        settings = {"initializer": lambda: seen.update(a=1), "thread_initializer": lambda: None}
        with pool(method, 1, 2, serializer=serializer, **settings) as executor:
            assert executor.submit(lambda x: x + base, 1).result(SECONDS) == 11
            assert executor.submit(lambda: lambda: base).result(SECONDS)() == 10
            assert [*executor.map(lambda x: x * base, range(5), chunksize=2)] == [0, 10, 20, 30, 40]
            error = outcome(executor.submit(lambda: 1 / 0))
            assert isinstance(error, ZeroDivisionError)
            assert "Traceback" in str(error.__cause__)

    def test_what_multiprocessing_can_send(self) -> None:
        """Arguments that `multiprocessing` has reducers for, such as a connection."""
        with pool("fork", 1, 1) as executor:
            reader, writer = multiprocessing.Pipe(duplex=False)
            executor.submit(_send_hello, writer).result(SECONDS)
            assert reader.recv() == "hello"
            reader.close()
            writer.close()
            resource_sharer.stop(SECONDS)  # the thread that has sent it

    def test_defaults(self) -> None:
        """No argument at all."""
        with ProcessThreadPoolExecutor() as executor:
            assert [*executor.map(tasks.same, range(10))] == [*range(10)]
            assert executor.stats().processes <= (os.cpu_count() or 1)

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"max_processes": 0}, ValueError, "max_processes must be greater than 0"),
            ({"max_threads": -1}, ValueError, "max_threads must be greater than 0"),
            ({"max_processes": 1.5}, TypeError, "max_processes must be an integer"),
            ({"max_tasks_per_child": 0}, ValueError, "max_tasks_per_child must be greater than 0"),
            ({"initializer": 1}, TypeError, "initializer must be a callable"),
            ({"thread_initializer": 1}, TypeError, "thread_initializer must be a callable"),
            (
                {"serializer": "json"},
                ValueError,
                "serializer must be one of 'pickle', 'dill', 'cloudpickle', not 'json'",
            ),
        ],
    )
    def test_bad_arguments(self, settings: Any, error: type[Exception], message: str) -> None:
        """A clear error in one line, at once."""
        with pytest.raises(error, match=message):
            ProcessThreadPoolExecutor(**settings)

    def test_stats(self, tmp_path: Path) -> None:
        """The counts while tasks run and wait, and the table."""
        executor, mark = pool("fork", 2, 2), str(tmp_path / "mark")
        with executor:
            futures = [executor.submit(tasks.wait_for, mark) for _ in range(7)]
            _wait_until(lambda: executor.stats().running == 4)
            stats = executor.stats()
            assert (stats.processes, stats.running, stats.queued, stats.done) == (2, 4, 3, 0)
            assert stats.threads == 4
            assert [w.running for w in stats.workers] == [2, 2]
            table = str(stats).splitlines()
            assert len(table) == 5
            assert table[0].split()[:5] == ["worker", "threads", "queued", "running", "done"]
            assert len({len(line) for line in table[:3]}) == 1
            if importlib.util.find_spec("psutil") is None:
                assert stats.workers[0].rss is None
            else:
                assert stats.workers[0].rss > stats.workers[0].uss > 100_000
                assert stats.workers[0].cpu_percent >= 0
            tasks.touch(mark)
            wait(futures, SECONDS)
            assert executor.stats().done == 7
        assert executor.stats().done == 7


def _put_locked(value: int) -> None:
    lock, queue = tasks.STATE["both"]
    with lock:
        queue.put(value)


def _send_hello(writer: Any) -> None:
    writer.send("hello")
    writer.close()


class TestTaskErrors:
    """What one task does wrong is its own error; the pool goes on."""

    @pytest.mark.parametrize(
        ("fn", "args", "error", "message"),
        [
            (tasks.fail, ("why",), ValueError, "why"),
            (tasks.exit_with, (3,), SystemExit, "3"),
            (tasks.interrupt, (), KeyboardInterrupt, ""),
            (tasks.make, (tasks.Unpicklable,), RuntimeError, "not picklable"),
            (tasks.make, (tasks.ExitsAtPickle,), SystemExit, "3"),
            (tasks.make, (tasks.RaisesAtUnpickle,), pickle.UnpicklingError, "returned cannot be unpickled: ValueError"),
            (tasks.make, (tasks.ExitsAtUnpickle,), pickle.UnpicklingError, "returned cannot be unpickled: SystemExit"),
            (tasks.raise_it, (tasks.NeedsTwo, 1, 2), pickle.UnpicklingError, "raised cannot be unpickled: TypeError"),
            (tasks.raise_it, (tasks.UnpicklableError, 1), pickle.PicklingError, "UnpicklableError that a task raised"),
            (tasks.raise_it, (tasks.WithoutText, 1), pickle.PicklingError, "WithoutText that a task raised cannot be"),
            (tasks.same, (tasks.Unpicklable(),), RuntimeError, "not picklable"),
            (tasks.same, (tasks.ExitsAtPickle(),), SystemExit, "3"),
            (tasks.same, (tasks.RaisesAtUnpickle(),), ValueError, "not unpicklable"),
            (tasks.same, (tasks.ExitsAtUnpickle(),), SystemExit, "3"),
            (lambda: None, (), (pickle.PicklingError, AttributeError), "lambda"),
            ("no function", (), TypeError, "not callable"),
        ],
    )
    def test_error(self, fn: Any, args: Any, error: type[BaseException], message: str) -> None:
        """The task's future has it; those beside it, before and after, have their results."""
        with pool("fork", 1, 2) as executor:
            before = [executor.submit(tasks.same, i) for i in range(20)]
            failing = executor.submit(fn, *args)
            after = [executor.submit(tasks.same, i) for i in range(20)]
            found = outcome(failing)
            assert isinstance(found, error)
            assert message in str(found)
            assert [f.result(SECONDS) for f in before + after] == [*range(20)] * 2
            if callable(fn):
                with pytest.raises(error):
                    [*executor.map(fn, *([a] * 3 for a in args), chunksize=2)] if args else failing.result()

    def test_callback_of_what_cannot_be_pickled(self, caplog: Any) -> None:
        """It may exit as any other callback: the pool goes on."""
        with pool("fork", 1, 1) as executor:
            busy = executor.submit(tasks.sleep, 0.2)
            failing = executor.submit(tasks.same, tasks.Unpicklable())
            failing.add_done_callback(lambda _: sys.exit(3))
            assert executor.submit(tasks.same, 1).result(SECONDS) == 1
            assert isinstance(outcome(failing), RuntimeError)
            assert outcome(busy) is None
        caplog.clear()  # what is said of the callback has a traceback, and that has the pool

    def test_remote_traceback(self, method: str) -> None:
        """The exception's cause shows where in the worker it was raised."""
        with pool(method, 1, 1) as executor:
            error = outcome(executor.submit(tasks.fail, "here"))
            assert isinstance(error, ValueError)
            assert "raise ValueError(message)" in str(error.__cause__)
            [chunked] = [outcome(executor._submit_chunk(tasks.fail, [("there",)]))]
            assert "there" in str(chunked)
            assert "raise ValueError(message)" in str(chunked.__cause__)

    def test_nothing_is_kept(self) -> None:
        """Arguments and results are let go of, here and in the worker, when a task is done."""
        with pool("fork", 1, 1) as executor:
            executor.submit(tasks.same, 1).result(SECONDS)  # it is forked before there is one
            argument = _Tracked()
            gone = weakref.ref(argument)
            future = executor.submit(tasks.same, argument)
            result = weakref.ref(future.result(SECONDS))
            assert outcome(future) is None
            del argument, future
            executor.submit(tasks.same, 1).result(SECONDS)
            gc.collect()
            assert gone() is None
            assert result() is None
            assert executor.submit(_count_tracked).result(SECONDS) == 0


class _Tracked:
    pass


def _count_tracked() -> int:
    gc.collect()
    return sum(type(obj) is _Tracked for obj in gc.get_objects())


class TestBroken:
    """A worker that dies breaks the pool, at once, for all that are not done."""

    @pytest.mark.parametrize(
        ("fn", "args"),
        [
            (tasks.exit_now, (3,)),
            (tasks.exit_now, (0,)),
            (tasks.kill_self, (signal.SIGKILL,)),
            (tasks.kill_self, (signal.SIGTERM,)),
            (tasks.kill_self, (signal.SIGINT,)),
            (tasks.close_files, ()),
            (tasks.same, (tasks.DiesAtUnpickle(),)),
            (tasks.make, (tasks.DiesAtPickle, os.getpid())),
        ],
    )
    def test_worker_dies(self, method: str, fn: Any, args: Any) -> None:
        """Its own task and all others, in the other worker's hands and pending, fail within seconds."""
        executor = pool(method, 2, 2)
        with executor:
            if args[:1] == (tasks.DiesAtPickle,):
                args = (tasks.DiesAtPickle, os.getpid())
            executor.submit(tasks.same, 1).result(SECONDS)
            others = [executor.submit(tasks.sleep, 60) for _ in range(3)]
            dying = executor.submit(fn, *args)
            began = time.monotonic()
            pending = []
            try:
                pending += [executor.submit(tasks.sleep, 60) for _ in range(20)]
            except BrokenProcessPool:  # so soon
                pass
            for future in (dying, *others, *pending):
                error = outcome(future)
                assert isinstance(error, BrokenProcessPool)
                assert "worker process" in str(error)
                assert "worker process" in str(error.__cause__)
            assert time.monotonic() - began < SECONDS
            with pytest.raises(BrokenProcessPool):
                executor.submit(tasks.same, 1)

    def test_killed_while_idle(self, method: str) -> None:
        """It is seen though nobody waits for it."""
        executor = pool(method, 2, 1)
        os.kill(executor.submit(tasks.pid).result(SECONDS), signal.SIGKILL)
        end = time.monotonic() + SECONDS
        with pytest.raises(BrokenProcessPool, match="SIGKILL"):
            while time.monotonic() < end:
                executor.submit(tasks.same, 1).result(SECONDS)
        executor.shutdown()

    def test_killed_while_sending(self, monkeypatch: Any) -> None:
        """Half a result is no result."""
        receive = dispatcher.Dispatcher._receive
        parts = []

        def receive_and_kill(it: dispatcher.Dispatcher, worker: Any) -> bool:
            found = receive(it, worker)
            if worker.futures and len(parts) < 3:
                parts.append(worker.done)
                if len(parts) == 3:
                    os.kill(worker.pid, signal.SIGKILL)
            return found

        executor = pool("fork", 1, 1)
        executor.submit(tasks.same, 1).result(SECONDS)
        monkeypatch.setattr(dispatcher.Dispatcher, "_receive", receive_and_kill)
        error = outcome(executor.submit(tasks.make, bytes, 200_000_000))
        assert parts == [1, 1, 1]
        assert isinstance(error, BrokenProcessPool)
        executor.shutdown()

    def test_killed_while_starting(self, method: str) -> None:
        """Before it is ready."""
        executor = pool(method, 1, 1, initializer=tasks.sleep, initargs=(30,))
        future = executor.submit(tasks.same, 1)
        time.sleep(0.05)
        executor.kill_workers()
        assert isinstance(outcome(future), (BrokenProcessPool, concurrent.futures.CancelledError))
        executor.shutdown()

    @pytest.mark.skipif(
        not hasattr(os, "pidfd_open"), reason="a process's end is seen by a pipe there, which it shares"
    )
    def test_leaves_a_child(self) -> None:
        """A worker dies that has forked: its child holds the pipes open, and nobody waits for that."""
        executor = pool("fork", 1, 1)
        began = time.monotonic()
        assert isinstance(outcome(executor.submit(tasks.fork_and_die, 20)), BrokenProcessPool)
        executor.shutdown()
        assert time.monotonic() - began < 15

    def test_all_futures_end(self, caplog: Any) -> None:
        """Also one that was cancelled before, and those after one whose callback exits."""
        executor = pool("fork", 1, 1)
        running = executor.submit(tasks.sleep, 60)
        futures = [executor.submit(tasks.same, i) for i in range(4)]
        _wait_until(running.running)
        assert futures[0].cancel()
        futures[1].add_done_callback(lambda _: sys.exit(3))
        os.kill(executor._pool.workers[0].pid, signal.SIGKILL)
        assert not wait([running, *futures], SECONDS).not_done
        executor.shutdown()
        caplog.clear()  # what is said of the callback has a traceback, and that has the pool

    @pytest.mark.parametrize("which", ["initializer", "thread_initializer"])
    @pytest.mark.parametrize(
        ("fn", "args", "message"),
        [
            (tasks.fail, ("not today",), "not today"),
            (tasks.exit_with, (4,), "SystemExit: 4"),
            (tasks.exit_now, (4,), "exit code 4"),
            (tasks.kill_self, (signal.SIGKILL,), "SIGKILL"),
        ],
    )
    def test_initializer_fails(self, method: str, which: str, fn: Any, args: Any, message: str) -> None:
        """All futures fail, and the reason is in the error."""
        arguments = {which: fn, "initargs" if which == "initializer" else "thread_initargs": args}
        executor = pool(method, 2, 2, **arguments)
        futures = []
        try:
            futures = [executor.submit(tasks.same, i) for i in range(10)]
        except BrokenProcessPool:  # the first has failed before the last is submitted
            pass
        for future in futures:
            error = outcome(future)
            assert isinstance(error, BrokenProcessPool)
            assert message in str(error)
        executor.shutdown()

    def test_unpicklable_initializer(self) -> None:
        """It cannot be sent to a spawned process: an error where the process would be started."""
        with pool("spawn", 1, 1, initializer=lambda: None) as executor:
            with pytest.raises((pickle.PicklingError, AttributeError)):
                executor.submit(tasks.same, 1)

    def test_end_of_the_parent(self) -> None:
        """The process is killed that has the pool: its workers end too, at once."""
        code = """
            import os, signal, time
            from fastpickle.concurrent import ProcessThreadPoolExecutor
            from executors import tasks
            import multiprocessing
            executor = ProcessThreadPoolExecutor(2, 2, mp_context=multiprocessing.get_context("fork"))
            futures = [executor.submit(tasks.sleep, 60) for _ in range(3)]
            print(*(worker.name for worker in executor.stats().workers), flush=True)
            while executor.stats().running < 3:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        """
        result = _script(code)
        assert result.returncode == -signal.SIGKILL
        pids = [int(pid) for pid in result.stdout.split()]
        assert len(pids) == 2
        _wait_until(lambda: not any(_is_alive(pid) for pid in pids))

    @pytest.mark.soak
    @pytest.mark.timeout(1800)
    def test_chaos(self) -> None:
        """A thousand kills at random moments, with load: every future ends, and nothing is left."""
        _chaos(int(os.environ.get("CHAOS_KILLS", "1000")))

    def test_some_chaos(self, a_part_of: APartOf) -> None:
        """Some of them in every run."""
        for seed in a_part_of(range(4)):
            _chaos(8, seed)


def _chaos(kills: int, seed: int = 0) -> None:
    """Kill workers at random moments while they start, run, wait, send and end."""
    rng = random.Random(seed)
    done = 0
    faulthandler.register(signal.SIGUSR1, sys.__stderr__)  # for `_state_of`
    while done < kills:
        method = rng.choices(METHODS, [8, 1, 1])[0]
        kind = rng.choice([{}, {"max_tasks_per_child": 3}, {"initializer": tasks.sleep, "initargs": (0.01,)}])
        executor = pool(method, rng.randint(1, 3), rng.randint(1, 4), **kind)
        futures = []
        try:
            for _ in range(rng.choice([1, 10, 200])):
                fn, *args = rng.choice(
                    [
                        (tasks.same, 1),
                        (tasks.same, bytes(rng.choice([10, 100_000, 3_000_000]))),
                        (tasks.sleep, rng.random() / 50),
                        (tasks.same, tasks.SlowToPickle(0.001)),
                        (tasks.fail,),
                    ]
                )
                futures.append(executor.submit(fn, *args))
            time.sleep(rng.choice([0, 0.001, 0.01, 0.05]))
            workers = [*executor._pool.workers]
            if workers:
                try:
                    os.kill(
                        rng.choice(workers).pid,
                        rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]),
                    )
                except ProcessLookupError:  # it has ended already
                    pass
                done += 1
            for _ in range(rng.randint(0, 20)):
                futures.append(executor.submit(tasks.same, 2))
        except BrokenProcessPool:
            pass
        if rng.random() < 0.3:
            executor.shutdown(wait=False, cancel_futures=rng.random() < 0.5)
        for future in futures:
            try:
                future.result(SECONDS)
            except (BrokenProcessPool, ValueError, concurrent.futures.CancelledError):
                pass
            except concurrent.futures.TimeoutError:
                state = _state_of(executor, future)
                executor.kill_workers()
                pytest.fail(f"{done} kills, {method}, {kind}: a future has no end\n{state}")
        executor.shutdown()


def _state_of(executor: Any, future: Any) -> str:
    """Describe a pool that hangs; where its threads are, and those of workers that were forked, goes to stderr."""
    stuck = executor._pool
    lines = [f"{future}; {len(stuck.pending)} pending, broken: {stuck.broken}, waits: {stuck._is_waiting}"]
    faulthandler.dump_traceback()
    for worker in stuck.workers:
        state = {name: value for name, value in vars(worker).items() if name not in ("futures", "process", "pipes")}
        lines.append(f"{worker.process} {state} tasks: {[*worker.futures]}, to send: {len(worker.outbox._parts)}")
        if stuck._context.get_start_method() == "fork":  # others have no handler
            worker.send_signal(signal.SIGUSR1)
    time.sleep(1)
    return "\n".join(lines)


class TestInterrupts:
    """Ctrl-C in the middle of a method."""

    @pytest.mark.parametrize(
        ("owner", "name", "is_before"),
        [
            (dispatcher.Dispatcher, "_wake", True),
            (dispatcher.Dispatcher, "_wake", False),
            (threading.Thread, "start", True),
            (threading.Thread, "start", False),
            (threading, "_start_joinable_thread" if sys.version_info >= (3, 13) else "_start_new_thread", True),
            (dispatcher, "start_worker", True),
            (dispatcher.Dispatcher, "_start_worker", False),
        ],
    )
    def test_submit(self, method: str, owner: Any, name: str, is_before: bool, monkeypatch: Any) -> None:
        """That call may be lost; those after it are not."""
        original = getattr(owner, name)
        left = [KeyboardInterrupt]
        here = os.getpid()

        def interrupted(*args: Any, **kwargs: Any) -> Any:
            if (name == "start" and args[0].name != "ProcessThreadPoolExecutor") or os.getpid() != here:
                return original(*args, **kwargs)  # a test runner's, or a worker's
            if is_before and left:
                raise left.pop()
            found = original(*args, **kwargs)
            if left:
                raise left.pop()
            return found

        monkeypatch.setattr(threading, "_limbo", {})  # where the thread that does not begin is left for ever
        executor = pool(method, 1, 1)
        if name == "_wake":
            executor.submit(tasks.same, 0).result(SECONDS)
            _wait_until(lambda: executor._pool._is_waiting)
        monkeypatch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            executor.submit(tasks.same, 1)
        assert [executor.submit(tasks.same, i).result(SECONDS) for i in range(3)] == [0, 1, 2]
        executor.shutdown()


class TestEnd:
    """shutdown, in all its ways."""

    def test_waits(self, method: str) -> None:
        """By default all tasks are done, and the processes have ended."""
        executor = pool(method)
        futures = [executor.submit(tasks.sleep, 0.02, i) for i in range(20)]
        executor.shutdown()
        assert all(f.done() for f in futures)
        assert [f.result() for f in futures] == [*range(20)]
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            executor.submit(tasks.same, 1)
        executor.shutdown()

    @pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="nothing tells which files are open")
    def test_keeps_no_file_open(self, method: str) -> None:
        """Though the executor is still somebody's, who may ask for its numbers."""
        before = len(os.listdir("/proc/self/fd"))
        executor = pool(method)
        executor.submit(tasks.same, 1).result(SECONDS)
        executor.shutdown()
        gc.collect()  # PyPy closes files no sooner
        assert len(os.listdir("/proc/self/fd")) == before
        assert executor.stats().done == 1

    def test_does_not_wait(self, tmp_path: Path) -> None:
        """`wait=False` returns at once; the tasks are done all the same."""
        executor, mark = pool("fork"), str(tmp_path / "mark")
        futures = [executor.submit(tasks.wait_for, mark) for _ in range(12)]
        executor.shutdown(wait=False)
        assert not any(f.done() for f in futures)
        tasks.touch(mark)
        assert [f.result(SECONDS) for f in futures] == ["there"] * 12

    def test_unused(self) -> None:
        """Nothing was submitted: nothing was started."""
        with pool("fork") as executor:
            assert executor.stats().processes == 0
        pool("fork").shutdown(wait=False, cancel_futures=True)

    def test_submitted_just_before_it_waits(self, tmp_path: Path, monkeypatch: Any) -> None:
        """Tasks that come after the pool's thread has sent what there was, and before it waits, are sent ahead too."""
        mark = str(tmp_path / "mark")
        ask_stuck = dispatcher.Dispatcher._ask_stuck  # the last thing that it does of the sending
        more: list[concurrent.futures.Future[int]] = []

        def submit_more(it: dispatcher.Dispatcher) -> float | None:
            if not more and it.workers[0].futures:  # the first task was sent
                more.extend(executor.submit(tasks.same, i) for i in range(5))
            return ask_stuck(it)

        monkeypatch.setattr(dispatcher, "_STUCK", 600.0)  # it is not asked for them
        monkeypatch.setattr(dispatcher, "_LEAD", 600.0)  # it gets them however busy the machine is
        with pool("fork", 1, 1) as executor:
            [*executor.map(tasks.same, range(500))]  # the worker gets tasks ahead
            monkeypatch.setattr(dispatcher.Dispatcher, "_ask_stuck", submit_more)
            first = executor.submit(tasks.wait_for, mark)
            _wait_until(lambda: len(executor._pool.workers[0].futures) == 6)
            assert not first.done()
            tasks.touch(mark)
            assert [f.result(SECONDS) for f in (first, *more)] == ["there", *range(5)]

    def test_cancel_futures(self, method: str, tmp_path: Path, monkeypatch: Any) -> None:
        """What has not begun is cancelled, also what a worker has in its queue; what runs is finished."""
        begun, release, mark = tmp_path / "begun", tmp_path / "release", tmp_path / "mark"
        begun.mkdir()
        monkeypatch.setattr(dispatcher, "_STUCK", 600.0)  # it is not asked for them before
        monkeypatch.setattr(dispatcher, "_LEAD", 600.0)  # it gets them however busy the machine is
        executor = pool(method, 1, 2)
        [*executor.map(tasks.same, range(500))]  # the worker gets tasks ahead
        running = [executor.submit(tasks.begin_and_wait_for, str(begun), str(release)) for _ in range(2)]
        queued = [executor.submit(tasks.touch, str(mark)) for _ in range(100)]
        _wait_until(lambda: len([*begun.iterdir()]) == 2)
        _wait_until(lambda: len(executor._pool.workers[0].futures) > 2)  # some are in its queue
        executor.shutdown(wait=False, cancel_futures=True)
        assert not wait(queued, SECONDS).not_done
        assert not any(future.done() for future in running)
        tasks.touch(str(release))
        executor.shutdown()
        assert [f.result(0) for f in running] == ["there"] * 2
        assert all(f.cancelled() for f in queued)
        assert not mark.exists()

    def test_cancel_one(self, tmp_path: Path) -> None:
        """A future whose task was not sent can be cancelled, one that was sent cannot."""
        mark = str(tmp_path / "mark")
        with pool("fork", 1, 1) as executor:
            first = executor.submit(tasks.wait_for, mark)
            rest = [executor.submit(tasks.same, i) for i in range(5)]
            _wait_until(first.running)
            assert not first.cancel()
            assert rest[3].cancel()
            tasks.touch(mark)
            assert [f.result(SECONDS) for f in rest if f is not rest[3]] == [0, 1, 2, 4]

    def test_callback_of_a_cancelled_one(self) -> None:
        """It may have another thread look at the future."""
        seen = []

        def look(future: concurrent.futures.Future[Any]) -> None:
            thread = threading.Thread(target=lambda: seen.append(future.done()))
            thread.start()
            thread.join(2)
            seen.append(not thread.is_alive())

        with pool("fork", 1, 1) as executor:
            running = executor.submit(tasks.sleep, 0.2)
            executor.submit(tasks.same, 1).add_done_callback(look)
            _wait_until(running.running)
            executor.shutdown(cancel_futures=True)
        assert seen == [True, True]

    def test_replaced_while_closing(self, tmp_path: Path, monkeypatch: Any) -> None:
        """A worker that has had its tasks is replaced if another one may give tasks back that it waits for."""
        mark = str(tmp_path / "mark")
        monkeypatch.setattr(dispatcher, "_STUCK", 0.3)
        monkeypatch.setattr(dispatcher, "_LEAD", 60.0)  # as above
        executor = pool("fork", 2, 1, max_tasks_per_child=1000)
        [*executor.map(tasks.same, range(300))]  # the workers get tasks ahead
        for worker in executor._pool.workers:
            worker.budget = 2
        with executor._pool._lock:  # one worker gets the first and the third, the other one the others
            futures = [
                executor.submit(fn, *args)
                for fn, args in [(tasks.wait_for, (mark,)), (tasks.pid, ()), (tasks.touch, (mark,)), (tasks.pid, ())]
            ]
            executor.shutdown(wait=False)
        assert futures[0].result(SECONDS) == "there"
        assert [outcome(future) for future in futures] == [None] * 4
        executor.shutdown()

    def test_dropped(self) -> None:
        """An executor that nobody has any more ends its work, and itself."""
        executor = pool("fork")
        futures = [executor.submit(tasks.sleep, 0.05, i) for i in range(10)]
        del executor
        gc.collect()
        assert [f.result(SECONDS) for f in futures] == [*range(10)]

    def test_kill_and_terminate(self, method: str) -> None:
        """Tasks that run fail; the processes are gone."""
        for name in ("kill_workers", "terminate_workers"):
            executor = pool(method)
            futures = [executor.submit(tasks.sleep, 60) for _ in range(10)]
            time.sleep(0.1)
            getattr(executor, name)()
            for future in futures:
                assert isinstance(outcome(future), (BrokenProcessPool, concurrent.futures.CancelledError))
            executor.shutdown()

    def test_exit_without_shutdown(self, method: str) -> None:
        """A script that ends with work to do ends when that is done, without a word on stderr."""
        code = f"""
            import multiprocessing
            from fastpickle.concurrent import ProcessThreadPoolExecutor
            from executors import tasks
            if __name__ == "__main__":
                context = multiprocessing.get_context({method!r})
                executor = ProcessThreadPoolExecutor(2, 2, mp_context=context)
                for i in range(6):
                    executor.submit(tasks.sleep, 0.1, i).add_done_callback(lambda f: print(f.result(), flush=True))
        """
        result = _script(code)
        assert (result.returncode, result.stderr) == (0, "")
        assert sorted(result.stdout.split()) == [*"012345"]

    def test_main(self, method: str, tmp_path: Path) -> None:
        """Functions and classes of a script, and of a module that is run by `-m`."""
        code = f"""
            import multiprocessing
            from fastpickle.concurrent import ProcessThreadPoolExecutor
            class Point:
                def __init__(self, x):
                    self.x = x
            def double(point):
                return Point(2 * point.x)
            if __name__ == "__main__":
                context = multiprocessing.get_context({method!r})
                with ProcessThreadPoolExecutor(1, 2, mp_context=context) as executor:
                    print([p.x for p in executor.map(double, map(Point, range(3)))])
        """
        assert _script(code).stdout.strip() == "[0, 2, 4]"
        (tmp_path / "as_module.py").write_text(textwrap.dedent(code))
        assert _run(["-m", "as_module"], path=tmp_path).stdout.strip() == "[0, 2, 4]"

    def test_keyboard_interrupt(self) -> None:
        """Ctrl-C, as a terminal sends it: to the script and to its workers; all end within seconds."""
        code = """
            import multiprocessing, os, signal, time, sys
            from fastpickle.concurrent import ProcessThreadPoolExecutor
            from executors import tasks
            os.setpgid(0, 0)
            futures = []
            try:
                with ProcessThreadPoolExecutor(2, 2, mp_context=multiprocessing.get_context("fork")) as executor:
                    futures = [executor.submit(tasks.sleep, 60) for _ in range(10)]
                    while executor.stats().running < 4:
                        time.sleep(0.01)
                    os.killpg(0, signal.SIGINT)
                    time.sleep(60)
            except KeyboardInterrupt:
                print("interrupted", {type(f.exception()).__name__ for f in futures if not f.cancelled()})
        """
        began = time.monotonic()
        result = _script(code)
        assert result.stdout.startswith("interrupted")
        assert "None" not in result.stdout
        assert not result.stderr
        assert time.monotonic() - began < SECONDS

    def test_interrupt_of_the_parent_only(self, tmp_path: Path) -> None:
        """What has not begun is cancelled, what runs is waited for."""
        executor, mark = pool("fork", 1, 1), str(tmp_path / "mark")
        with pytest.raises(KeyboardInterrupt):
            with executor:
                running = executor.submit(tasks.wait_for, mark)
                futures = [executor.submit(tasks.same, i) for i in range(50)]
                futures[-1].add_done_callback(lambda _: tasks.touch(mark))
                _wait_until(running.running)
                raise KeyboardInterrupt
        assert running.result(0) == "there"
        assert all(f.cancelled() for f in futures)

    def test_in_a_forked_process(self) -> None:
        """A child that was forked beside a pool has none: an error there, and no harm to the pool."""
        with pool("fork") as executor:
            executor.submit(tasks.same, 1).result(SECONDS)
            reader, writer = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                try:
                    executor.submit(tasks.same, 1)
                except BrokenExecutor as exc:
                    os.write(writer, str(exc).encode())
                finally:
                    executor.shutdown()
                    del executor
                    gc.collect()
                    os._exit(0)
            os.waitpid(pid, 0)
            os.close(writer)
            assert b"forked from" in os.read(reader, 1000)
            os.close(reader)
            assert executor.submit(tasks.same, 2).result(SECONDS) == 2

    def test_forked_before_use(self) -> None:
        """Processes that were forked before the pool was used have one each, and do not disturb each other."""
        executor = pool("fork", 1, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            status = 1
            try:
                for i in range(300):
                    assert executor.submit(tasks.same, i).result(SECONDS) == i
                executor.shutdown()
                status = 0
            finally:
                os._exit(status)
        assert executor.submit(tasks.same, 0).result(SECONDS) == 0
        executor.shutdown()  # in the middle of the other's work
        assert os.waitpid(pid, 0)[1] == 0

    def test_closed_twice(self) -> None:
        """What is called after the end writes nothing into files that were opened since."""
        executor = pool("fork", 1, 1)
        executor.submit(tasks.same, 1).result(SECONDS)
        executor.shutdown()
        files = [tempfile.TemporaryFile() for _ in range(50)]
        executor.shutdown()
        del executor
        gc.collect()
        assert [os.fstat(file.fileno()).st_size for file in files] == [0] * len(files)
        for file in files:
            file.close()

    def test_in_a_task(self) -> None:
        """A forked worker has the pool that it is of as an object only: an error there too."""
        code = """
            import multiprocessing
            from fastpickle.concurrent import ProcessThreadPoolExecutor
            def submit():
                return executor.submit(int).result()
            executor = ProcessThreadPoolExecutor(2, 2, mp_context=multiprocessing.get_context("fork"))
            print(executor.submit(submit).exception(10))
            executor.kill_workers()
        """
        assert "forked from" in _script(code).stdout

    def test_first_task_at_exit(self) -> None:
        """A thread submits a first task while the interpreter begins to end: it is done, or refused."""
        code = """
            import multiprocessing, os, threading, time
            from fastpickle.concurrent import ProcessThreadPoolExecutor
            fork = os.fork
            def slow_fork():
                time.sleep(0.2)
                return fork()
            os.fork = slow_fork
            executor = ProcessThreadPoolExecutor(2, 2, mp_context=multiprocessing.get_context("fork"))
            threading.Thread(target=lambda: print(executor.submit(int, "5").result())).start()
            time.sleep(0.1)
        """
        result = _script(code)
        assert result.returncode == 0
        if result.stdout:
            assert (result.stdout, result.stderr) == ("5\n", "")
        else:  # from 3.12 on Python starts no threads any more then
            assert result.stderr.rstrip().endswith("shutdown")

    def test_cannot_start(self, monkeypatch: Any) -> None:
        """No more processes, or threads, can be had at first: an error, nothing is left, and later all is well."""
        context = multiprocessing.get_context("fork")
        process, start, started = context.Process, threading.Thread.start, []

        def second_fails(**settings: Any) -> Any:
            started.append(1)
            if len(started) == 2:
                raise BlockingIOError("no more processes")
            return process(**settings)

        parent = os.getpid()

        def fails(thread: threading.Thread) -> None:
            if os.getpid() == parent:
                raise RuntimeError("no more threads")
            start(thread)

        for is_used_later in (True, False):
            executor = pool("fork", 2, 1)
            started.clear()
            monkeypatch.setattr(context, "Process", second_fails)
            with pytest.raises(BlockingIOError):
                executor.submit(tasks.same, 1)
            monkeypatch.setattr(context, "Process", process)
            monkeypatch.setattr(threading.Thread, "start", fails)
            with pytest.raises(RuntimeError):
                executor.submit(tasks.same, 1)
            monkeypatch.setattr(threading.Thread, "start", start)
            if is_used_later:
                assert executor.submit(tasks.same, 2).result(SECONDS) == 2
            executor.shutdown()


def _script(code: str) -> subprocess.CompletedProcess[str]:
    """Run a script from a file, as a user would."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        path.write_text(textwrap.dedent(code))
        return _run([str(path)])


def _run(arguments: list[str], path: Path | None = None) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).resolve().parent.parent)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([root, *sys.path, *([str(path)] if path else [])]))
    environment["PYTHONWARNINGS"] = "ignore::DeprecationWarning"
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)
