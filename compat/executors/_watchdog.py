"""A test that hangs is failed, and the tests after it go on, in a fresh process.

    begin("a") ── begin("b") ── ... LIMIT seconds pass ── record b as failed, with all stacks
                                                       ── kill what it started
                                                       ── exec this child's command again, for the tests after b

Not for: a hang that holds the GIL; the runner kills that process.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from compat._record import FAILED, Recorder, test_id
from compat.executors.leftover import children

LIMIT = 45.0
"""Seconds that one test may take; the longest takes 7 on stock."""


class Watchdog:
    """Watch over tests that run one after the other.

    Args:
        tests: their ids, in their order.
        unit: the unit that they are of.
        recorder: where a hang is recorded.
    """

    def __init__(self, tests: Sequence[str], unit: str, recorder: Recorder) -> None:
        self._tests = tests
        self._unit = unit
        self._recorder = recorder
        self._changed = threading.Condition()
        self._test: str | None = None
        self._number = 0
        self._ended = False
        self._work = Path.cwd()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watchdog")

    def __enter__(self) -> Watchdog:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Watch no more."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def begin(self, test: str) -> None:
        """Say that a test begins, and the one before it has ended.

        Args:
            test: its id, as unittest has it.
        """
        with self._changed:
            self._test = test
            self._number += 1
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._ended:
                number = self._number
                # The function is called in this turn of the loop only.
                if not self._changed.wait_for(lambda: self._ended or self._number != number, LIMIT):  # noqa: B023
                    self._give_up()

    def _give_up(self) -> None:
        """Record the hang, and begin anew with the tests that are left."""
        if self._test is None:
            return
        self._recorder.record(self._test, FAILED, f"it hung: no end after {LIMIT:.0f} s\n{_stacks()}")
        signal.alarm(0)  # would outlive the exec
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has just ended
        done = self._tests.index(test_id(self._unit, self._test)) + 1
        if done == len(self._tests):
            os._exit(0)
        command = sys.orig_argv[: sys.orig_argv.index("--test")] if "--test" in sys.orig_argv else sys.orig_argv
        more = [word for test in self._tests[done:] for word in ("--test", test)]
        root = str(Path(__file__).resolve().parent.parent.parent)
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), root]))
        os.chdir(self._work)
        os.execve(sys.executable, [sys.executable, *command[1:], *more], {**os.environ, "PYTHONPATH": path})


def _stacks() -> str:
    """Give the stacks of all threads."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read()
