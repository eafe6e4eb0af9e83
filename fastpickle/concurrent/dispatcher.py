"""The thread in the caller's process that gives tasks to the workers of a process-and-thread pool, and takes results.

    submit() ──► pending ──► dumps ──► the worker that has least to do ──► its pipe ──► a process
                    ▲                                                                      │
                    └── tasks that came back, because their worker is stuck                │
    futures ◄── loads ◄── records ◄── the worker's other pipe ◄────────────────────────────┘

One thread waits for everything at once, without polling: the workers' pipes, their ends (a process's sentinel), and a
pipe of its own that submit() and shutdown() write to.  Each worker has pipes of its own, so one that is killed leaves
no lock behind that others would wait for.  What a pipe does not take now is kept until it does; nothing blocks.

A worker gets a task for each of its threads, and where tasks are short some more, so that it need not wait for the
next: about what its threads do in `_LEAD` seconds.  If such a worker answers nothing for `_STUCK` seconds, what it has
not begun is asked back, and is the first that the next idle thread gets: its own tasks may wait for just that.

Not for: what a user calls (`process_thread_pool`), and what runs in the processes (`worker`).
"""

from __future__ import annotations

import os
import pickle
import selectors
import threading
import time
import warnings
import weakref
from collections import deque
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from . import serializers
from .errors import text_of
from .exits import is_exiting, note_running
from .futures import cancel_sent, set_outcome
from .processes import Broken, WorkerProcess, death_of, end_all, start_worker
from .records import ERROR, FAILED, READY, RESULT, RETURN, RETURNED, STOP, record
from .worker import Setup

__all__ = ["Dispatcher"]

_LEAD = 0.005
"""Seconds of work that a worker has ahead: for as long other threads may hold the interpreter lock and delay us."""

_MOST_AHEAD = 500
"""Tasks that a worker has ahead at most."""

_AT_ONCE = 1 << 16
"""Bytes of payloads that are written at once: about what a pipe holds."""

_STUCK = 0.02
"""Seconds without an answer after which a worker's tasks that are not begun are given to another one."""


class Dispatcher:
    """The state of a pool, and its thread; it does not keep the executor alive.

    Args:
        context: where processes, and pipes, come from.
        max_processes: processes at most.
        max_threads: threads in each, at most.
        setup: what a worker is told.
        max_tasks_per_child: tasks after which a process is replaced, or None.
    """

    def __init__(
        self,
        context: Any,
        max_processes: int,
        max_threads: int,
        setup: Setup,
        max_tasks_per_child: int | None,
    ) -> None:
        self.max_threads = max_threads
        self.workers: list[WorkerProcess] = []
        self.pending: deque[tuple[Future[Any], int, Any]] = deque()
        """(future, kind, payload as an object, or as bytes if it came back)."""
        self.done = 0
        self.broken: str | None = None
        self._is_closing = False
        self._is_cancelling = False
        self._is_waiting = False
        """Whether the thread has to be told of a task."""
        # One that may be taken twice: an executor that is collected calls stop(), in whatever thread that happens.
        self._lock = threading.RLock()
        self._context = context
        self._max_processes = max_processes
        self._setup = setup
        self._budget = max_tasks_per_child
        serializer = serializers.resolve(setup.serializer, forking=True)
        self._dumps, self._loads = serializer.dumps, serializer.loads
        self._number = 0
        self._thread: threading.Thread | None = None
        self._has_new = False
        """Whether there may be workers that the selector does not know yet."""
        self._selector: selectors.BaseSelector
        self._wakes: tuple[int, int]
        self._close_files: weakref.finalize[..., Any] | None = None

    # What the callers' threads do.

    def submit(self, kind: int, call: Any) -> Future[Any]:
        """Take a task.

        Args:
            kind: TASK or CHUNK.
            call: the object that its payload is made of.

        Returns:
            Its future.

        Raises:
            BrokenProcessPool: a worker has died.
            RuntimeError: the pool is closed, or the interpreter ends.
        """
        future: Future[Any] = Future()
        with self._lock:
            if self.broken is not None:
                raise BrokenProcessPool(self.broken)
            if self._is_closing:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if is_exiting():
                raise RuntimeError("cannot schedule new futures after interpreter shutdown")
            if self._thread is None or len(self.workers) < self._max_processes:
                self._start_some()
            self.pending.append((future, kind, call))
            if self._is_waiting or self._has_new:
                self._wake()
                self._is_waiting = False  # after that: in between may be a Ctrl-C
        return future

    def stop(self, cancel: bool = False) -> None:
        """Take no task any more, and end when all are done.

        Args:
            cancel: whether to cancel those that are not begun.
        """
        with self._lock:
            self._is_closing = True
            self._is_cancelling = self._is_cancelling or cancel
            if self._thread is not None:
                self._wake()
            elif self.broken is None and self._close_files is not None:
                workers, self.workers = self.workers, []
                end_all(workers)  # there are some where not all, or the thread, could be started
                self._close_files()

    def join(self) -> None:
        """Wait for the end of the thread, which is that of the processes."""
        if self._thread is not None:
            self._thread.join()

    def forget(self) -> None:
        """Be nobody's, in a process that was forked from the pool's: there is no thread here."""
        self._lock = threading.RLock()
        self._thread = None
        self._is_waiting = False
        self.broken = "the pool belongs to the process that this one was forked from"

    def signal_workers(self, signum: int) -> None:
        """Send a signal to all workers.

        Args:
            signum: its number.
        """
        with self._lock:
            for worker in self.workers:
                worker.send_signal(signum)

    def _wake(self) -> None:
        """Have the thread look; the lock is held, so that its pipe is not closed meanwhile."""
        if self._close_files is None or not self._close_files.alive:
            return  # the thread has ended: the number of its pipe may be that of another file
        try:
            os.write(self._wakes[1], b"\0")
        except BlockingIOError:  # it is full of wishes to wake
            pass

    def _start_some(self) -> None:
        """Start the processes that are wanted now, and the thread."""
        if self._thread is None:
            note_running(self)  # before anything is forked, so that the child forgets the pool
            if is_exiting():  # after that: the pools may have been looked for before
                raise RuntimeError("cannot schedule new futures after interpreter shutdown")
            if self._close_files is None:
                self._open_files()
        if self._context.get_start_method() == "fork":
            # All at once, while our own thread does not run yet: a fork takes only the thread that forks along.
            while self._thread is None and len(self.workers) < self._max_processes:
                self._start_worker()
        elif len(self.workers) <= len(self.pending) + sum(len(w.futures) for w in [*self.workers]):
            self._start_worker()
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="ProcessThreadPoolExecutor")
            thread.start()
            self._thread = thread

    def _open_files(self) -> None:
        """Make the selector and its pipe; not sooner, as a process that is forked before would share them."""
        self._selector = selectors.DefaultSelector()
        self._wakes = os.pipe()
        for fd in self._wakes:
            os.set_blocking(fd, False)
        self._selector.register(self._wakes[0], selectors.EVENT_READ)
        self._close_files = weakref.finalize(self, _close_files, self._selector, self._wakes)
        self._close_files.atexit = False

    def _start_worker(self) -> None:
        shared = (*self._wakes, *(pipe.fileno() for w in self.workers for pipe in w.pipes))
        worker = start_worker(self._context, self._setup, self._budget, shared)
        self._has_new = True
        self.workers.append(worker)

    # What the thread does.

    def _run(self) -> None:
        with self._lock:
            if self._thread is None and self._close_files is not None and self._close_files.alive:
                self._thread = threading.current_thread()  # who has started it got a Ctrl-C meanwhile
            if self._thread is not threading.current_thread():
                return  # and has started another one, or has ended the pool
        try:
            self._loop()
            self._stop_all()
        except Broken as exc:
            self._break(str(exc), exc.__cause__)
        except BaseException as exc:  # a defect of ours, or no memory: better a broken pool than futures without an end
            self._break(f"the pool's own thread failed: {type(exc).__name__}: {exc}", exc)
        finally:
            with self._lock:
                if self._close_files is not None:  # as it is
                    self._close_files()

    def _loop(self) -> None:
        """Send and receive until the pool is closed and all is done."""
        while True:
            if self._is_cancelling:
                self._cancel_all()
            timeout = self._send_tasks()
            with self._lock:
                self._register_new()  # just before we wait: who starts another one after this wakes us
                if self.pending:
                    self._is_waiting = False  # who has no room for these has none for others
                    if self._open_ones(False) or self._open_ones(True):  # they came since
                        timeout = 0
                elif self._is_closing and not any(w.futures for w in self.workers):
                    return
                else:
                    self._is_waiting = True
            ended = []
            for key, _ in self._selector.select(timeout):
                if key.data is None:
                    self._drain_wakes()
                    continue
                worker, what = key.data
                if what == "results":
                    self._receive(worker)
                elif what == "end":
                    ended.append(worker)
                else:
                    self._flush(worker)
            for worker in ended:
                while self._receive(worker):
                    pass  # it had sent that before it ended
                if not worker.is_stopped:
                    raise death_of(worker)
                self._replace(worker)

    def _drain_wakes(self) -> None:
        try:
            while os.read(self._wakes[0], 1 << 12):
                pass
        except BlockingIOError:
            pass

    def _register_new(self) -> None:
        if not self._has_new:
            return
        self._has_new = False
        for worker in self.workers:
            if worker.end not in self._selector.get_map():
                self._selector.register(worker.pipes[1].fileno(), selectors.EVENT_READ, (worker, "results"))
                self._selector.register(worker.end, selectors.EVENT_READ, (worker, "end"))

    def _room(self, worker: WorkerProcess, ahead: bool) -> int:
        """Return how many tasks a worker may get now.

        Args:
            worker: the worker.
            ahead: whether it may get more than it has threads for.
        """
        if not worker.is_ready or worker.outbox:
            return 0
        room = self.max_threads - len(worker.futures)
        if ahead and worker.seconds is not None and time.monotonic() - worker.answered < _STUCK:
            room += min(_MOST_AHEAD, int(self.max_threads * _LEAD / max(worker.seconds, 1e-6)))
        return room if worker.budget is None else min(room, worker.budget)

    def _open_ones(self, ahead: bool) -> list[tuple[int, int, WorkerProcess]]:
        """Return the workers that may get tasks now: (tasks that it has, room for more, worker).

        Args:
            ahead: whether they may get more than they have threads for.
        """
        if ahead and not all(w.is_ready or w.is_stopped for w in self.workers):
            return []  # one that will be ready soon has threads for them
        return [(len(w.futures), room, w) for w in self.workers if (room := self._room(w, ahead)) > 0]

    def _send_tasks(self) -> float | None:
        """Give the workers what they have room for, evenly.

        Returns:
            Seconds after which a worker may be stuck; None if there is none that may be.
        """
        for ahead in (False, True):
            while self.pending and (open_ones := self._open_ones(ahead)):
                open_ones.sort(key=lambda found: found[0])
                level = -(-(len(self.pending) + sum(n for n, _, _ in open_ones)) // len(open_ones))
                for n, room, worker in open_ones:
                    if n < level:
                        self._send(worker, min(room, level - n))
        return self._ask_stuck()

    def _send(self, worker: WorkerProcess, n: int) -> None:
        """Send a worker as many tasks, or fewer if its pipe is full."""
        if not worker.futures:
            worker.answered = time.monotonic()
        unsent = 0
        for _ in range(n):
            try:
                future, kind, call = self.pending.popleft()
            except IndexError:
                break
            self._number += 1
            worker.futures[self._number] = future  # at once: whatever happens now, somebody ends it
            if type(call) is bytes:
                payload = call
            else:
                try:
                    if not future.set_running_or_notify_cancel():
                        del worker.futures[self._number]
                        continue
                    payload = self._dumps(call)
                except BaseException as exc:
                    del worker.futures[self._number]
                    set_outcome(future, None, exc)
                    continue
                finally:
                    del call, future
            worker.most = max(worker.most, len(worker.futures))
            if worker.budget is not None:
                worker.budget -= 1
            worker.outbox.put(record(kind, self._number, payload))
            unsent += len(payload)
            if unsent > _AT_ONCE:
                self._flush(worker)
                unsent = 0
                if worker.outbox:
                    return
        self._flush(worker)

    def _flush(self, worker: WorkerProcess) -> None:
        """Write what its pipe takes, and have the selector say when it takes more."""
        was_full = worker.pipes[0].fileno() in self._selector.get_map()
        try:
            worker.outbox.flush()
        except OSError:
            return  # it has ended, which its other pipe or its end will tell
        if bool(worker.outbox) != was_full:
            if was_full:
                self._selector.unregister(worker.pipes[0])
            else:
                self._selector.register(worker.pipes[0], selectors.EVENT_WRITE, (worker, "room"))

    def _ask_stuck(self) -> float | None:
        """Ask workers that answer nothing for what they have not begun: it is the next to begin, wherever that is."""
        timeout = None
        for worker in self.workers:
            if len(worker.futures) > self.max_threads and not worker.is_asked:
                left = worker.answered + _STUCK - time.monotonic()
                if left > 0:
                    timeout = left if timeout is None else min(left, timeout)
                else:
                    self._ask(worker)
        return timeout

    def _ask(self, worker: WorkerProcess) -> None:
        worker.is_asked = True
        worker.outbox.put(record(RETURN, 0))
        self._flush(worker)

    def _receive(self, worker: WorkerProcess) -> bool:
        """Read once from a worker.

        Returns:
            Whether there was something.

        Raises:
            Broken: it has closed its pipe without having been told to end, or an initializer has failed.
        """
        try:
            records = worker.records.read()
        except BlockingIOError:
            return False
        except OSError:
            records = None
        if records is None:
            if not worker.is_stopped:
                raise death_of(worker)
            if worker.pipes[1].fileno() in self._selector.get_map():
                self._selector.unregister(worker.pipes[1])
            return False
        now = time.monotonic()
        for kind, number, seconds, payload in records:
            if kind in (RESULT, ERROR):
                worker.seconds = seconds if worker.seconds is None else worker.seconds * 0.8 + seconds * 0.2
                worker.answered = now
                worker.is_asked = False
                worker.done += 1
                self.done += 1
                self._finish(worker.futures.pop(number), kind, payload)
            elif kind == RETURNED:
                worker.is_asked = False
                if worker.budget is not None:
                    worker.budget += 1
                future = worker.futures.pop(number)
                if self._is_cancelling:
                    cancel_sent(future)
                else:
                    self.pending.appendleft((future, payload[0], bytes(payload[1:])))
            elif kind == READY:
                worker.is_ready = True
            elif kind == FAILED:
                raise Broken(payload.decode("utf-8", "replace"))
        if worker.budget == 0 and not worker.futures:
            self._stop(worker)
        return True

    def _finish(self, future: Future[Any], kind: int, payload: bytes) -> None:
        """End a future with what a worker has sent."""
        what = "returned" if kind == RESULT else "raised"
        try:
            outcome = self._loads(payload)
        except BaseException as exc:
            kind, outcome = ERROR, pickle.UnpicklingError(f"what the task {what} cannot be unpickled: {text_of(exc)}")
            outcome.__cause__ = exc
        set_outcome(future, outcome, None if kind == RESULT else outcome)

    def _cancel_all(self) -> None:
        """Cancel what is pending, and ask the workers for what they have not begun."""
        while self.pending:
            cancel_sent(self.pending.popleft()[0])
        for worker in self.workers:
            if worker.futures and not worker.is_asked:
                self._ask(worker)

    def _stop(self, worker: WorkerProcess) -> None:
        worker.is_stopped = True
        worker.is_ready = False
        worker.outbox.put(record(STOP, 0))
        self._flush(worker)

    def _replace(self, worker: WorkerProcess) -> None:
        """Put a new process in the place of one that has had all its tasks."""
        for file in {worker.pipes[0].fileno(), worker.pipes[1].fileno(), worker.end} & {*self._selector.get_map()}:
            self._selector.unregister(file)
        worker.process.join()
        worker.close()
        with self._lock:
            self.workers.remove(worker)
            may_return = any(len(w.futures) > self.max_threads for w in self.workers)
            if self._is_closing and not self.pending and not may_return:
                return
            with warnings.catch_warnings():
                # A fork beside running threads, which CPython warns of; what the worker does first takes no lock.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._start_worker()

    def _stop_all(self) -> None:
        """End the processes as they should, and wait for that."""
        for worker in self.workers:
            if not worker.is_stopped:
                os.set_blocking(worker.pipes[0].fileno(), True)
                self._stop(worker)
        for worker in self.workers:
            worker.process.join()
            worker.close()

    def _break(self, why: str, cause: BaseException | None) -> None:
        """Fail all futures at once, then end what is left of the processes."""
        with self._lock:
            self.broken = why
            waiting = [future for future, _, _ in self.pending]
            self.pending.clear()
            workers = [*self.workers]
        for worker in workers:
            waiting += worker.futures.values()
            worker.futures.clear()
        for future in waiting:
            error = BrokenProcessPool(why)
            error.__cause__ = cause
            set_outcome(future, None, error)
        del waiting
        end_all(workers)


def _close_files(selector: selectors.BaseSelector, fds: tuple[int, ...]) -> None:
    selector.close()
    for fd in fds:
        os.close(fd)
