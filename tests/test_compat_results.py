"""What ``python -m compat`` keeps of a run and times, and the README's table that is made of it."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# compat is not installed with the package; at the end of the path, so that an installed fastpickle goes first
sys.path.append(str(Path(__file__).resolve().parent.parent))

import compat._speed as speeds
from compat import table
from compat._realdata import real_data
from compat._report import print_speeds
from compat._results import Cell, cells, keep, revision, this_python
from compat._speed import Speed
from fastpickle._stdlib import HAS_NO_GIL, is_switched_off


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep results in a folder of the test's own."""
    monkeypatch.setenv("FASTPICKLE_CACHE", str(tmp_path))
    return tmp_path


def cell(suite: str = "dill", python: str = "3.13", regressions: int = 0, *speeds: Speed, revision: str = "1") -> Cell:
    """Give a cell with 10 tests."""
    passed = {"backend": (10, 9), "installed": (10, 10 - regressions)}
    release = f"{python.rsplit(maxsplit=1)[-1]}.7"
    return Cell(suite, f"{suite} 1.0", python, release, passed, regressions, speeds, revision)


def test_a_cell_is_kept_as_it_was() -> None:
    """What is read back equals what was kept; a later run of the same suite on the same Python replaces it."""
    keep(cell("dill", "3.13", 3))
    second = cell("dill", "3.13", 0, Speed("dill.dumps", True, 2.0, 1.0, 2.0))
    keep(second)
    other = cell("dill", "PyPy 3.11")
    keep(other)
    assert cells() == [second, other]


def test_this_python_is_named_as_a_column() -> None:
    """CPython has no name but its version."""
    name, release = this_python()
    assert name.split()[-1] == ".".join(map(str, sys.version_info[:2]))
    assert release.startswith(name.split()[-1])


def test_the_table_has_a_column_for_each_python_and_rows_for_each_suite() -> None:
    """3.9 stands before 3.10 and PyPy last; what has not run is empty; the interpreter's own tests come first."""
    known = [
        cell("dill", "PyPy 3.11"),
        cell("dill", "3.10", 0, Speed("dill.dumps (records)", True, 2.0, 1.0, 2.0)),
        cell("dill", "3.9", 0, Speed("dill.dumps (records)", False)),
        cell("cpython", "3.10"),
        cell("attrs", "3.10", 2),
    ]
    lines = table.table(known).splitlines()
    assert lines[:6] == [
        "| library |  | 3.9 | 3.10 | PyPy 3.11 |",
        "| --- | --- | --: | --: | --: |",
        "| the Python itself | tests |  | 10 / 10 |  |",
        "| attrs 1.0 | tests |  | **10 / 8, 2 fail** |  |",
        "| dill 1.0 | tests | 10 / 10 | 10 / 10 | 10 / 10 |",
        "|  | `dill.dumps` (records) | **differs** | 2.00x |  |",
    ]
    assert "3.10 is 3.10.7, PyPy 3.11 is 3.11.7" in lines[-1]


def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    """What stands around the marks stays, and a second time changes nothing."""
    keep(cell())
    file = tmp_path / "README.md"
    begin, end = "<!-- matrix: python -m compat.table -->", "<!-- /matrix -->"
    file.write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")
    for _ in range(2):
        assert table.main(["--write", str(file)]) == 0
        text = file.read_text(encoding="utf-8")
        assert text.startswith(f"before\n{begin}\n| library |") and text.endswith(f"3.13.7.\n{end}\nafter\n")
        assert "\nold\n" not in text


def test_runs_of_different_states_are_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table says so, and does not go into a file."""
    keep(cell())
    keep(cell("other", revision="2"))
    assert table.main([]) == 0
    assert "**These runs are of different states of fastpickle.**" in capsys.readouterr().out
    file = tmp_path / "README.md"
    file.write_text("<!-- matrix: python -m compat.table -->\n<!-- /matrix -->\n", encoding="utf-8")
    assert table.main(["--write", str(file)]) == 2
    assert "different states" in capsys.readouterr().err
    assert "|" not in file.read_text(encoding="utf-8")


def test_revision_is_of_the_sources() -> None:
    """It is the same each time."""
    assert revision() == revision()
    assert len(revision()) == 12


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "cannot be read"), ("no marks", "has no <!--"), ("<!-- /matrix -->", "has no <!--")],
)
def test_a_file_without_marks_is_left_alone(
    content: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says why, and the exit status is 2."""
    keep(cell())
    file = tmp_path / "README.md"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    assert table.main(["--write", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert content is None or file.read_text(encoding="utf-8") == content


def test_without_results_there_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    """It says how to get some."""
    assert table.main([]) == 2
    assert "no suite has been run yet" in capsys.readouterr().err


@contextmanager
def _slower(state: list[str]) -> Iterator[None]:
    state.append("patched")
    try:
        yield
    finally:
        state.pop()


def _entry(state: list[str], log: list[str]) -> Callable[[], object]:
    def call() -> object:
        log.append("installed" if state else "stock")
        return pickle.dumps(list(range(500)))

    return call


def test_both_sides_are_timed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock and installed alternate, with as many calls on either side."""
    monkeypatch.setattr(speeds, "_ROUND_SECONDS", 0.0)
    state: list[str] = []
    log: list[str] = []
    speed = speeds.measure("x", _entry(state, log), lambda: _slower(state))
    assert speed.same and speed.stock > 0 and speed.installed > 0 and 0.01 < speed.faster < 100
    assert log == ["stock", "installed"] * (2 + speeds._ROUNDS)


def test_untimed_both_sides_are_compared_only(capsys: pytest.CaptureFixture[str]) -> None:
    """Each side is called once, and the report says that they gave the same."""
    log: list[str] = []
    state: list[str] = []
    speed = speeds.measure("x", _entry(state, log), lambda: _slower(state), timed=False)
    assert log == ["stock", "installed"]
    assert speed == Speed("x", same=True)
    print_speeds([speed, speeds.measure("y", lambda: len(state), lambda: _slower(state), timed=False)], "")
    assert [line.split() for line in capsys.readouterr().out.splitlines()[2:]] == [
        ["x", "the", "same"],
        ["y", "DIFFERS"],
    ]


def test_what_differs_is_not_timed() -> None:
    """A different result is said, and counts for nothing."""
    state: list[str] = []
    assert speeds.measure("x", lambda: len(state), lambda: _slower(state)) == Speed("x", same=False)


def test_what_fails_on_stock_is_neither_timed_nor_a_difference() -> None:
    """dill pickles no function on Python 3.15, for one."""

    def call() -> object:
        raise AttributeError("co_lnotab")

    speed = speeds.measure("x", call, lambda: _slower([]))
    assert speed == Speed("x", same=True, fails=True)
    assert "|  | `x` | fails |" in table.table([cell("x", "3.15", 0, speed)])


def test_what_fails_installed_only_is_no_result() -> None:
    """The child that measures ends with the error, which the runner counts as a failure."""
    state: list[str] = []

    def call() -> object:
        return 1 if not state else {}["missing"]

    with pytest.raises(KeyError):
        speeds.measure("x", call, lambda: _slower(state))


def test_speeds_come_back_from_the_child(tmp_path: Path) -> None:
    """One line each; a file that was never made has none."""
    file = tmp_path / "speeds.jsonl"
    assert speeds.read_speeds(file) == []
    row = {"entry": "x", "same": True, "stock": 2.0, "installed": 1.0, "faster": 2.0}
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert speeds.read_speeds(file) == [Speed("x", True, 2.0, 1.0, 2.0)]


def test_real_data_is_real_and_the_same_each_time() -> None:
    """Some hundred files of packages as JSON could hold them, and 20,000 tokens."""
    data = real_data()
    assert data == real_data()
    assert json.loads(json.dumps(data.records)) == data.records
    assert sum(len(record["files"]) for record in data.records) >= 100
    assert len(data.tokens) == 20_000
    assert all(type(number) is int and type(text) is str for number, text, *_ in data.tokens)


@pytest.mark.parametrize(("value", "pure"), [("1", True), ("0", False), ("", HAS_NO_GIL)])
def test_a_pure_run_is_not_for_the_table(value: str, pure: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table says what is gained with the C accelerator."""
    monkeypatch.setenv("FASTPICKLE_PURE", value)
    assert is_switched_off() is pure
