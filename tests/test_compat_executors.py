"""What ``python -m compat executors`` stands on: it sees what is left over, and no test runs on a stock executor."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
import unittest
from pathlib import Path

import pytest

# compat is not installed with the package; at the end of the path, so that an installed fastpickle goes first
sys.path.append(str(Path(__file__).resolve().parent.parent))

pytest.importorskip("fastpickle.concurrent")
if os.name != "posix":
    pytest.skip("the suite needs fork", allow_module_level=True)

from compat._record import FAILED, PASSED, Recorder, read
from compat.cpython.child import RecordingResult
from compat.executors import leftover
from compat.executors.child import Scripts, tidy
from compat.executors.deselected import ROWS
from compat.executors.suite import GROUPS, INTERPRETER_GROUPS, INTERPRETERS


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for what is not going to go away."""
    monkeypatch.setattr(leftover, "GRACE", 0.2)


class Untidy(unittest.TestCase):
    """Tests that leave something behind; pytest does not collect them, because they have no ``test`` in their names."""

    kept: list[object] = []

    def clean(self) -> None:
        """Leave nothing: the pipe is closed by the cleanup."""
        for fd in os.pipe():
            self.addCleanup(os.close, fd)

    def descriptor(self) -> None:
        """Leave the ends of a pipe."""
        self.kept += [*map(os.fdopen, os.pipe())]

    def thread(self) -> None:
        """Leave a thread."""
        event = threading.Event()
        threading.Thread(target=event.wait, daemon=True).start()
        self.kept.append(event)

    def process(self) -> None:
        """Leave a process."""
        process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,), daemon=True)
        process.start()
        self.kept.append(process)


def outcome(tmp_path: Path, name: str, strict: bool = True) -> tuple[str, str]:
    """Run one of the tests with the check behind it."""
    cls = type("Tidied", (Untidy,), {})
    tidy(cls, strict)
    cls(name).run(RecordingResult(Recorder(tmp_path / "outcomes")))
    (found,) = read(tmp_path / "outcomes").values()
    return found.status, found.detail


def let_go() -> None:
    """End what the tests left."""
    for thing in Untidy.kept:
        if isinstance(thing, threading.Event):
            thing.set()
        elif isinstance(thing, multiprocessing.process.BaseProcess):
            thing.kill()
            thing.join()
        else:
            thing.close()  # type: ignore[attr-defined]  # a file
    Untidy.kept.clear()


@pytest.mark.parametrize("name", ["descriptor", "thread", "process"])
def test_what_is_left_over_fails_a_test_that_passes(name: str, tmp_path: Path) -> None:
    """Each kind of thing is seen, and named."""
    if name == "descriptor" and not Path("/proc/self/fd").exists():
        pytest.skip("descriptors are seen in /proc only")
    try:
        status, detail = outcome(tmp_path, name)
    finally:
        let_go()
    assert status == FAILED
    assert "left over" in detail
    assert name in detail


def test_a_tidy_test_passes(tmp_path: Path) -> None:
    """What its cleanups put away is not left over."""
    assert outcome(tmp_path, "clean") == (PASSED, "")


def test_on_stock_it_is_only_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The test's own outcome stands."""
    try:
        status, _ = outcome(tmp_path, "thread", strict=False)
    finally:
        let_go()
    assert status == PASSED
    assert "left over" in capsys.readouterr().out


def test_scripts_import_ours() -> None:
    """The import of the executor is rewritten, and what would test something else is refused."""
    scripts = Scripts("ProcessPoolExecutor")
    script = "from concurrent.futures import {}\nt = {}(5)"
    name = "ProcessPoolExecutor"
    ours = f"from compat.executors.binding import {name}\nt = {name}(5)"
    assert scripts.rewritten(script.format(name, name)) == ours
    with pytest.raises(AssertionError, match="something else"):
        scripts.rewritten(script.format("InterpreterPoolExecutor", "InterpreterPoolExecutor"))


def test_rows_are_of_classes_that_run() -> None:
    """A row whose unit or class is misspelt would excuse nothing."""
    for row in ROWS:
        for method in row.methods:
            group = (INTERPRETER_GROUPS if method == INTERPRETERS else GROUPS)[row.unit]
            names = {name for classes in group.classes.values() for name in classes}
            assert row.test.partition(".")[0] in names
