"""`fastpickle.concurrent.InterpreterPoolExecutor`: as the stock one, sooner; nothing lost, nobody left over."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pytest
from executors import interpreter_tasks as inside
from executors import tasks
from executors.leftovers import nothing_left

from fastpickle.concurrent import BrokenInterpreterPool, InterpreterPoolExecutor, _pool

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

    assert issubclass(BrokenInterpreterPool, BrokenExecutor)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    with nothing_left():
        yield


@pytest.fixture
def pool() -> Iterator[InterpreterPoolExecutor]:
    with InterpreterPoolExecutor(2) as executor:
        yield executor


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
        (bytes(100_000), 1 << 70, None),
        (bytes(100_000), -(1 << 62), True, 0.5, (1, b"")),
        {"a": bytes(100_000), "b": [bytes(100_000)]},
        bytearray(100_000),
    ],
    ids=lambda value: f"{type(value).__name__}-{len(value) if hasattr(value, '__len__') else value}",
)
def test_values_come_back(pool: InterpreterPoolExecutor, value: Any) -> None:
    """Whatever the way it takes, small or large, as an argument, a keyword and a result."""
    assert pool.submit(tasks.same, value).result() == value
    assert type(pool.submit(tasks.same, value).result()) is type(value)
    assert pool.submit(tasks.keywords, value, 1, value, key=value).result() == ((value, 1, value), {"key": value})
    assert [*pool.map(tasks.same, [value] * 5)] == [value] * 5


@needs_interpreters
def test_arguments_are_as_they_were(pool: InterpreterPoolExecutor) -> None:
    """What is changed after `submit` does not change the call, buffers beside the message included."""
    r, w = os.pipe()
    blocked = [pool.submit(inside.read_from, r) for _ in range(2)]
    values, holder = [1, 2], inside.Holder(bytearray(b"old!" * OUT))
    futures = pool.submit(tasks.same, values), pool.submit(inside.kind_of_buffer, holder)
    values.append(3)
    holder.buffer[:4] = b"new!"
    os.write(w, b"xx")
    assert futures[0].result() == [1, 2]
    assert futures[1].result()[1:] == (False, b"old!")
    assert [f.result() for f in blocked] == [b"x"] * 2
    os.close(r)
    os.close(w)


@needs_interpreters
@pytest.mark.parametrize("size", [100, OUT, 10 * OUT])
@pytest.mark.parametrize("readonly", [True, False])
def test_buffers(pool: InterpreterPoolExecutor, size: int, readonly: bool) -> None:
    """Buffers of classes arrive both ways, small and large; what the parent gets is its own memory."""
    kind, ro, start = pool.submit(inside.kind_of_buffer, inside.make_holder(readonly, size)).result()
    assert (ro, start) == (readonly, bytes(4))
    assert kind == ("memoryview" if size >= OUT else "bytes" if readonly else "bytearray")
    holder = pool.submit(inside.make_holder, readonly, size).result()
    assert type(holder.buffer) is (bytes if readonly else bytearray)
    assert bytes(holder.buffer) == bytes(size)


@needs_interpreters
@pytest.mark.parametrize("size", [8, OUT])
def test_views_are_shared(pool: InterpreterPoolExecutor, size: int) -> None:
    """A memoryview is the same memory in the worker, as through the stock executor; one that returns is a copy."""
    memory = bytearray(size)
    pool.submit(inside.fill, memoryview(memory)).result()
    assert memory[:4] == b"new\0"
    view = pool.submit(inside.make_view, size).result()
    pool.shutdown()
    assert (view.format, view.nbytes, view.tobytes()) == ("I", size, bytes(size))


@needs_interpreters
def test_the_same_bytes_twice_are_sent_once(pool: InterpreterPoolExecutor) -> None:
    """Identity within an argument is kept, as pickle keeps it."""
    large = bytes(OUT)
    result = pool.submit(tasks.same, [large, large, bytearray(1)]).result()
    assert result[0] is result[1]
    assert pool.submit(tasks.keywords, large, large, [large]).result() == ((large, large, [large]), {})


# -- errors


@needs_interpreters
def test_remote_traceback_is_the_cause(pool: InterpreterPoolExecutor) -> None:
    """The exception is the task's; its cause shows where it was raised in the worker."""
    exc = pool.submit(tasks.raise_it, KeyError, "spam").exception()
    assert (type(exc), exc.args) == (KeyError, ("spam",))
    assert type(exc.__cause__) is interpreters.ExecutionFailed
    assert "raise cls(*args)" in str(exc.__cause__)
    assert "_inside" not in str(exc.__cause__)
    assert exc.__cause__.excinfo.type.__name__ == "KeyError"


@needs_interpreters
@pytest.mark.parametrize("what", [ValueError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("when", ["dumps", "loads"])
def test_hostile_objects_fail_their_task_only(
    pool: InterpreterPoolExecutor, when: str, what: type[BaseException]
) -> None:
    """Whatever is raised while arguments or results are pickled or unpickled is that task's error."""
    if not (when == "dumps" and what is KeyboardInterrupt):  # in the caller's own thread it stays what it is
        exc = pool.submit(tasks.same, inside.Hostile(when, what)).exception(10)
        assert isinstance(exc, interpreters.NotShareableError)
        assert "args not shareable" in str(exc)
        assert "while" in str(exc)
    exc = pool.submit(inside.hostile, when, what).exception(10)
    assert isinstance(exc, interpreters.NotShareableError)
    assert "result not shareable" in str(exc)
    assert [*pool.map(tasks.same, range(4))] == [0, 1, 2, 3]


@needs_interpreters
def test_timeout_while_pickled(pool: InterpreterPoolExecutor) -> None:
    """What a signal's handler raises in `submit` is the caller's, of whatever type: the task has no part in it."""
    too_late = TimeoutError("too late")

    def handler(signum: int, frame: Any) -> None:
        raise too_late

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        for args in ((inside.Signalling(),), ((b"x" * 200_000, inside.Signalling()),)):
            with pytest.raises(TimeoutError) as caught:
                pool.submit(tasks.same, *args)
            assert caught.value is too_late
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [*pool.map(tasks.same, range(4))] == [0, 1, 2, 3]


@needs_interpreters
def test_exceptions_that_do_not_travel(pool: InterpreterPoolExecutor) -> None:
    """In their place comes what is told of them."""
    exc = pool.submit(tasks.raise_it, tasks.NeedsTwo, 1, 2).exception()
    assert type(exc) is interpreters.ExecutionFailed
    assert "NeedsTwo: 1" in str(exc)
    assert "could not be unpickled" in exc.__notes__[0]
    exc = pool.submit(tasks.raise_it, ValueError, inside.where).exception()  # pickled by its name
    assert exc.args == (inside.where,)
    exc = pool.submit(inside.fail_with_lock).exception()
    assert type(exc) is interpreters.ExecutionFailed
    assert "could not be pickled" in str(exc)


@needs_interpreters
def test_exit_in_a_task(pool: InterpreterPoolExecutor) -> None:
    """`sys.exit` ends the task, not the worker."""
    exc = pool.submit(sys.exit, 3).exception()
    assert (type(exc), exc.args) == (SystemExit, (3,))
    assert pool.submit(tasks.same, 1).result() == 1


@needs_interpreters
@pytest.mark.parametrize("what", [ValueError, SystemExit])
def test_failing_initializer(caplog: pytest.LogCaptureFixture, what: type[BaseException]) -> None:
    """The pool is broken: for what is waiting, at once, and for what comes."""
    with InterpreterPoolExecutor(2, initializer=tasks.raise_it, initargs=(what, "spam")) as pool:
        futures = []
        with pytest.raises(BrokenInterpreterPool):
            for _ in range(10_000):
                futures.append(pool.submit(tasks.same, 1))
                time.sleep(0.001)
        for future in futures:
            assert isinstance(future.exception(5), BrokenInterpreterPool)
        assert pool._broken
    assert "spam" in caplog.text


@needs_interpreters
def test_initializer_runs_once_in_each(pool: InterpreterPoolExecutor) -> None:
    """And before any task."""
    with InterpreterPoolExecutor(2, initializer=tasks.set_state, initargs=("key", "ready")) as own:
        assert {*own.map(tasks.get_state, ["key"] * 50)} == {"ready"}
    assert pool.submit(tasks.get_state, "key").result() is None
    with pytest.raises(TypeError):
        InterpreterPoolExecutor(initializer=1)  # type: ignore[arg-type]  # that is the test


@needs_interpreters
def test_initializer_failing_in_the_second(tmp_path: Path) -> None:
    """What runs in the first ends; all else fails."""
    with InterpreterPoolExecutor(2, initializer=inside.fail_if_there, initargs=(str(tmp_path / "one"),)) as pool:
        r, w = os.pipe()
        first = pool.submit(inside.read_from, r)
        while not pool._pool.board[0] and not pool._pool.board[1]:
            time.sleep(0.001)
        second = [pool.submit(tasks.same, i) for i in range(3)]
        assert {type(f.exception(10)) for f in second} == {BrokenInterpreterPool}
        os.write(w, b"x")
        assert first.result(10) == b"x"
    os.close(r)
    os.close(w)


@needs_interpreters
def test_defect_of_the_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that reads the results fails: so does every future, and nobody waits for ever."""

    def defect(*_: Any) -> Any:
        raise ZeroDivisionError

    with InterpreterPoolExecutor(2) as pool:
        assert pool.submit(tasks.same, 1).result(10) == 1
        r, w = os.pipe()
        futures = [pool.submit(inside.read_from, r), *(pool.submit(tasks.same, bytes(5_000)) for _ in range(9))]
        monkeypatch.setattr(_pool, "_look", defect)
        with contextlib.suppress(BrokenInterpreterPool):
            futures.append(pool.submit(tasks.same, 1))
        pool.shutdown(wait=False)
        assert isinstance(futures[0].exception(10), BrokenInterpreterPool)
        assert all(type(f.exception(10)) in {type(None), BrokenInterpreterPool} for f in futures)
        os.write(w, b"x")
    os.close(r)
    os.close(w)


@needs_interpreters
@pytest.mark.parametrize("size", [1, OUT])
def test_defect_while_a_result_is_read(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """It is that future's exception."""

    def defect(*_: Any) -> Any:
        raise ZeroDivisionError

    with InterpreterPoolExecutor(1) as pool:
        with monkeypatch.context() as patch:
            patch.setattr(_pool, "decode", defect)
            assert isinstance(pool.submit(tasks.same, bytes(size)).exception(10), ZeroDivisionError)
        assert pool.submit(tasks.same, 1).result(10) == 1


@needs_interpreters
def test_call_that_cannot_be_sent() -> None:
    """A call may be half sent: the pool is broken, and its threads end."""

    class NoMemory:
        def put_nowait(self, item: Any) -> None:
            raise MemoryError

        def get_nowait(self) -> Any:
            raise interpreters.QueueEmpty

    with InterpreterPoolExecutor(1) as pool:
        assert pool.submit(tasks.same, 1).result(10) == 1
        calls, pool._pool.calls = pool._pool.calls, NoMemory()
        with pytest.raises(MemoryError):
            pool.submit(tasks.same, 1)
        pool._pool.calls = calls
        with pytest.raises(BrokenInterpreterPool):
            pool.submit(tasks.same, 1)
        assert not pool._pool.sent


@needs_interpreters
@pytest.mark.parametrize("which", ["tokens_in", "tokens_out", "records_in", "records_out"])
def test_pipe_that_a_task_closes(which: str) -> None:
    """The files are the process's: the pool is broken, and nobody waits for ever."""
    with InterpreterPoolExecutor(2) as pool:
        assert [*pool.map(tasks.same, range(9))] == [*range(9)]
        futures = [pool.submit(inside.close, getattr(pool._pool, which))]
        end = time.monotonic() + 10
        with pytest.raises(BrokenInterpreterPool):
            while time.monotonic() < end:
                futures.append(pool.submit(tasks.same, 1))
                time.sleep(0.001)
        assert all(type(f.exception(10)) in {type(None), BrokenInterpreterPool} for f in futures)


@needs_interpreters
def test_views_that_do_not_travel(pool: InterpreterPoolExecutor) -> None:
    """A released one is its task's error; one with strides is copied; of an empty one there is nothing to copy."""
    released = memoryview(b"gone")
    released.release()
    for exc in pool.submit(tasks.same, released).exception(10), pool.submit(inside.released_view).exception(10):
        assert isinstance(exc, interpreters.NotShareableError)
    assert pool.submit(inside.strided_view).result(10).tolist() == [*range(0, 200, 2)]
    assert pool.submit(inside.make_view, 0).result(10).tobytes() == b""


@needs_interpreters
def test_pool_in_a_worker(pool: InterpreterPoolExecutor) -> None:
    """A task may have a pool of its own."""
    assert pool.submit(inside.of_inner_pool, -3).result(30) == 3


@needs_interpreters
def test_wrong_parameters() -> None:
    """As the stock executor, and the serializers' own."""
    for number in (0, -1):
        with pytest.raises(ValueError, match="max_workers must be greater than 0"):
            InterpreterPoolExecutor(number)
    with pytest.raises(ValueError, match="serializer must be one of"):
        InterpreterPoolExecutor(serializer="json")


@needs_interpreters
def test_numpy_says_why(pool: InterpreterPoolExecutor) -> None:
    """An extension that refuses sub-interpreters fails the task, with its reason."""
    pytest.importorskip("numpy")
    exc = pool.submit(__import__, "numpy").exception(60)
    assert isinstance(exc, (ImportError, interpreters.ExecutionFailed, interpreters.NotShareableError))


# -- order, batches, waiting


@needs_interpreters
def test_a_blocked_call_keeps_none_waiting() -> None:
    """Many short calls are sent ahead; then A blocks until B, submitted after it, has run in the other worker."""
    with InterpreterPoolExecutor(2) as pool:
        r, w = os.pipe()
        for _ in range(20):
            assert [*pool.map(tasks.same, range(200))] == [*range(200)]
            assert pool._pool.average < 1000  # so calls are sent ahead
            first = pool.submit(inside.read_from, r)
            rest = [pool.submit(tasks.same, i) for i in range(300)]
            last = pool.submit(inside.write_to, w)
            assert first.result(10) == b"x"
            assert last.result(10) == 1
            assert [f.result(10) for f in rest] == [*range(300)]
        os.close(r)
        os.close(w)


@needs_interpreters
def test_results_are_there_as_soon_as_they_are() -> None:
    """What was done before a call that blocks does not wait for it, with one worker."""
    with InterpreterPoolExecutor(1) as pool:
        r, w = os.pipe()
        [*pool.map(tasks.same, range(500))]
        before = [pool.submit(tasks.same, i) for i in range(30)]
        blocked = pool.submit(inside.read_from, r)
        after = [pool.submit(tasks.same, i) for i in range(30)]
        assert [f.result(10) for f in before] == [*range(30)]
        assert not blocked.done()
        assert not any(f.done() for f in after)
        os.write(w, b"x")
        assert [f.result(10) for f in after] == [*range(30)]
        os.close(r)
        os.close(w)


@needs_interpreters
def test_more_workers_only_when_needed() -> None:
    """Never more interpreters than `max_workers`; an idle one is used again."""
    with InterpreterPoolExecutor(3) as pool:
        for _ in range(5):
            pool.submit(tasks.same, 1).result()
        assert len(pool._threads) == 1
        for chunksize in (1, 7):
            ids = {*pool.map(inside.where, range(500), chunksize=chunksize)}
            assert len(interpreters.list_all()) <= 4
            assert 0 not in ids
        assert len(pool._threads) <= 3


@needs_interpreters
def test_map_with_chunks_and_buffer(pool: InterpreterPoolExecutor) -> None:
    """Chunks are one message each, and an exception comes in its place."""
    assert [*pool.map(pow, range(100), range(100), chunksize=9)] == [n**n for n in range(100)]
    results = pool.map(divmod, [1, 1], [1, 0], buffersize=1)
    assert next(results) == (1, 0)
    with pytest.raises(ZeroDivisionError):
        next(results)
    done = pool.stats().done
    assert sum(pool.map(tasks.same, range(1000), chunksize=100)) == 499500
    assert pool.stats().done == done + 10


@needs_interpreters
@pytest.mark.skipif(sys.platform == "win32", reason="files are numbered otherwise")
def test_files_of_high_numbers() -> None:
    """`select` takes none from 1024 on; a pool in a process with more files does not need it."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2000, hard), hard))
    taken: list[int] = []
    try:
        while not taken or taken[-1] < 1030:
            taken.append(os.open(os.devnull, os.O_RDONLY))
        pool = InterpreterPoolExecutor(1)
        done = threading.Event()
        pool.submit(time.sleep, 0.1).add_done_callback(lambda _: (pool.shutdown(), done.set()))
        assert done.wait(10)
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@needs_interpreters
def test_cancel() -> None:
    """What has not been sent can be cancelled; what has is running, and is run."""
    r, w = os.pipe()
    with InterpreterPoolExecutor(1) as pool:
        running = pool.submit(inside.read_from, r)
        waiting = [pool.submit(tasks.same, i) for i in range(5)]
        assert running.running()
        assert not running.cancel()
        assert waiting[0].cancel()
        os.write(w, b"x")
        assert [f.result(10) for f in waiting[1:]] == [1, 2, 3, 4]
        with pytest.raises(CancelledError):
            waiting[0].result()
        again = pool.submit(inside.read_from, r)
        waiting = [pool.submit(tasks.same, i) for i in range(5)]
        pool.shutdown(wait=False, cancel_futures=True)
        assert all(f.cancelled() for f in waiting)
        os.write(w, b"x")
        assert again.result(10) == b"x"
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(tasks.same, 1)
    os.close(r)
    os.close(w)


@needs_interpreters
def test_callbacks() -> None:
    """They see the result; one that raises is logged and stops nothing."""
    seen = []
    with InterpreterPoolExecutor(1) as pool:
        for i in range(3):
            pool.submit(tasks.same, i).add_done_callback(lambda future: seen.append(future.result()))
        pool.submit(tasks.same, bytes(OUT)).add_done_callback(lambda future: seen.append(len(future.result())))
    assert sorted(seen) == [0, 1, 2, OUT]


@needs_interpreters
def test_shutdown_in_a_callback() -> None:
    """It cannot wait for its own thread, and does not."""
    for payload in (1, bytes(OUT)):
        pool = InterpreterPoolExecutor(1)
        done = threading.Event()
        assert pool.submit(tasks.same, 1).result(10) == 1
        pool.submit(tasks.same, payload).add_done_callback(lambda _, pool=pool: (pool.shutdown(), done.set()))
        assert done.wait(10)


@needs_interpreters
def test_collected_without_shutdown() -> None:
    """The work ends, then the interpreters; the fixture looks for them."""
    futures = [InterpreterPoolExecutor(1).submit(tasks.same, i) for i in range(2)]
    assert [f.result(10) for f in futures] == [0, 1]
    pool = InterpreterPoolExecutor(2)
    results = pool.map(tasks.same, range(50))
    del pool
    gc.collect()
    assert [*results] == [*range(50)]


@needs_interpreters
def test_results_are_not_held(pool: InterpreterPoolExecutor) -> None:
    """Nobody but the caller keeps results or exceptions."""

    for call in (set, [1]), (tasks.raise_it, inside.Own, 1):
        future = pool.submit(*call)
        ref = weakref.ref(future.exception() or future.result())
        del future
        pool.submit(tasks.same, 1).result()
        gc.collect()
        assert ref() is None


@needs_interpreters
def test_many_threads_submit() -> None:
    """None is lost and none is mixed up, with results of all sizes."""
    with InterpreterPoolExecutor(3) as pool, ThreadPoolExecutor(4) as threads:

        def run(start: int) -> bool:
            payloads = [(start + i, bytes(size)) for i, size in enumerate((0, 1_000, 5_000, OUT, 200_000) * 40)]
            return [f.result(30) for f in [pool.submit(tasks.same, p) for p in payloads]] == payloads

        assert all(threads.map(run, range(0, 4000, 1000)))


@needs_interpreters
def test_stats(pool: InterpreterPoolExecutor) -> None:
    """One line for each interpreter, named by its number."""
    r, w = os.pipe()
    blocked = pool.submit(inside.read_from, r)
    assert [*pool.map(tasks.same, range(10))] == [*range(10)]
    stats = pool.stats()
    assert (stats.processes, stats.running, stats.done) == (1, 1, 10)
    assert {int(worker.name) for worker in stats.workers} <= {i.id for i in interpreters.list_all()} - {0}
    assert "not sent" in str(stats)
    os.write(w, b"x")
    blocked.result()
    os.close(r)
    os.close(w)


# -- with others


@needs_interpreters
def test_asyncio_and_as_completed(pool: InterpreterPoolExecutor) -> None:
    """As an event loop's executor, its default too, and under a loop over `as_completed`."""

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(InterpreterPoolExecutor(1))
        return [
            *await asyncio.gather(*(loop.run_in_executor(pool, tasks.same, i) for i in range(20))),
            await loop.run_in_executor(None, inside.where),
        ]

    result = asyncio.run(main())
    assert result[:20] == [*range(20)]
    assert result[20] != 0
    assert sorted(f.result() for f in as_completed([pool.submit(tasks.same, i) for i in range(50)])) == [*range(50)]


@needs_interpreters
@pytest.mark.parametrize("serializer", ["dill", "cloudpickle"])
def test_lambdas_and_closures(serializer: str) -> None:
    """They travel by value; through pickle they are an error that says so, unless they need nothing."""
    library = pytest.importorskip(serializer)
    if serializer == "dill" and sys.version_info >= (3, 15):
        pytest.skip(f"dill {library.__version__} wants co_lnotab, which Python 3.15 has not got")
    ten = 10
    with InterpreterPoolExecutor(1, serializer=serializer) as pool:
        assert pool.submit(lambda n: n + ten, 1).result() == 11
        assert [*pool.map(lambda n: n * ten, range(5), chunksize=2)] == [0, 10, 20, 30, 40]
        assert pool.submit(lambda: lambda: ten).result()() == 10
        assert pool.submit(tasks.same, [bytes(OUT)]).result() == [bytes(OUT)]
    with InterpreterPoolExecutor(1) as pool:
        assert pool.submit(lambda n, m=2: [n for _ in range(m)], 1).result() == [1, 1]
        exc = pool.submit(lambda: ten).exception()
        assert isinstance(exc, interpreters.NotShareableError)
        assert serializer in str(exc)
        assert isinstance(pool.submit(lambda: tasks.same).exception(), interpreters.NotShareableError)


_SCRIPT = """
    import sys
    from fastpickle.concurrent import InterpreterPoolExecutor as Pool

    class Point:
        def __init__(self, x): self.x = x

    def double(p): return Point(p.x * 2)

    if __name__ == "__main__":
        with Pool(1) as pool:
            first = pool.submit(double, Point(4)).result()
            print(type(first) is Point, first.x, [p.x for p in pool.map(double, map(Point, range(3)), chunksize=2)])
"""


def run(*args: str, path: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), str(path)])}
    return subprocess.run(
        [sys.executable, "-W", "error", *args], input=stdin, env=env, capture_output=True, text=True, timeout=60
    )


@needs_interpreters
def test_main_of_a_script_and_of_a_module(tmp_path: Path) -> None:
    """Functions and classes of `__main__` travel both ways."""
    (tmp_path / "the_script.py").write_text(textwrap.dedent(_SCRIPT))
    for args in ([str(tmp_path / "the_script.py")], ["-m", "the_script"]):
        done = run(*args, path=tmp_path)
        assert (done.stdout, done.stderr) == ("True 8 [0, 2, 4]\n", "")


@needs_interpreters
def test_main_of_a_session(tmp_path: Path) -> None:
    """Without a file: functions that need nothing travel, the others' error says what helps."""
    session = """
    from fastpickle.concurrent import InterpreterPoolExecutor as Pool
    def alone(x): return x + 1
    def other(x): return alone(x)
    class Point: pass
    if __name__ == "__main__":
        pool = Pool(1)
        print(pool.submit(alone, 1).result())
        print("cloudpickle" in str(pool.submit(other, 1).exception().__cause__))
        print("cloudpickle" in str(pool.submit(repr, Point()).exception().__cause__))
        pool.shutdown()
        with Pool(1, serializer="cloudpickle") as pool:
            print(pool.submit(other, 1).result())
    """
    for args in (["-c", textwrap.dedent(session)], ["-"]):
        done = run(*args, path=tmp_path, stdin=textwrap.dedent(session))
        assert (done.stdout.split(), done.stderr) == (["2", "True", "True", "2"], "")


@needs_interpreters
@pytest.mark.parametrize(
    ("end", "out", "code"),
    [
        ("", "apple\n", 0),
        ("pool.shutdown(wait=False)", "apple\n", 0),
        ("del pool", "apple\n", 0),
        ("sys.exit(3)", "apple\n", 3),
        ("import atexit; atexit.register(late)", "apple\nlate\n", 0),
        ("_thread.interrupt_main(); time.sleep(5)", "apple\n", -2),
        ("with pool: os.kill(os.getpid(), signal.SIGINT); time.sleep(5)", "apple\n", -2),
    ],
)
def test_end_of_a_script(tmp_path: Path, end: str, out: str, code: int) -> None:
    """Without `shutdown`, or interrupted: the work that was sent is done, nothing hangs, nothing is warned of."""
    script = f"""
    import _thread, os, signal, sys, time
    from fastpickle.concurrent import InterpreterPoolExecutor as Pool

    def apple():
        time.sleep(0.3)
        print("apple", flush=True)

    def late():
        try:
            pool.submit(int)
        except RuntimeError as exc:
            assert "after interpreter shutdown" in str(exc)
            print("late", flush=True)

    if __name__ == "__main__":
        pool = Pool(2)
        pool.submit(apple)
        {end}
    """
    path = tmp_path / "ends.py"
    path.write_text(textwrap.dedent(script))
    done = run(str(path), path=tmp_path)
    assert done.stdout == out
    if code == 0:
        assert done.stderr == ""
    assert "remaining" not in done.stderr
    assert done.returncode == code


@needs_interpreters
def test_beside_a_fork(tmp_path: Path) -> None:
    """A child that is forked crashes in CPython itself if there are interpreters; the pool has no harm of that.

    In a process of its own: where faulthandler is on, as under pytest, the child says so on the parent's stderr.
    """
    script = """
    import os, warnings
    from fastpickle.concurrent import InterpreterPoolExecutor as Pool

    with Pool(2) as pool:
        print(pool.submit(abs, -1).result(30))
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        print([*pool.map(abs, range(50))] == [*range(50)])
    """
    done = run("-c", textwrap.dedent(script), path=tmp_path)
    assert (done.stdout, done.stderr) == ("1\nTrue\n", "")
