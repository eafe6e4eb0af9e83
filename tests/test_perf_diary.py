"""The scripts of ``perf-diary/``: every idea writes stock's bytes, and the harness adds up."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fastpickle.cli import workloads

DIARY = Path(__file__).resolve().parent.parent / "perf-diary"


def load(name: str) -> ModuleType:
    """Import a script of the diary, whose folder is no package."""
    spec = importlib.util.spec_from_file_location(f"perf_diary_{name}", DIARY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


ideas = load("ideas")


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])  # 1 and 3 take no other way in these methods
@pytest.mark.parametrize("name", ideas.IDEAS)
def test_idea_writes_the_bytes_of_stock(name: str, protocol: int) -> None:
    """No idea is timed whose bytes are others."""
    assert ideas.differing_workloads(ideas.IDEAS[name].make(), protocol) == []


@pytest.mark.parametrize("name", ideas.IDEAS)
def test_idea_is_described(name: str) -> None:
    """Every idea says what it is and touches workloads that there are."""
    chosen = ideas.IDEAS[name]
    assert chosen.make.__doc__
    assert set(chosen.touches) <= set(workloads.WORKLOADS)


@pytest.mark.parametrize("name", sorted(set(ideas.IDEAS) - {"control"}))
def test_idea_changes_something(name: str) -> None:
    """No idea is the stock pickler under another name."""
    pickler = ideas.IDEAS[name].make()
    changed = [key for key, value in vars(pickler).items() if value is not vars(ideas.Stock).get(key)]
    assert set(changed) - {"__module__", "__doc__", "dispatch"}


def test_edit_that_finds_nothing_is_an_error() -> None:
    """A Python that spells the place otherwise is not measured as if the idea did nothing."""
    with pytest.raises(LookupError, match="spelt otherwise"):
        ideas.edited("save", ("this text is not there", ""))


def test_ideas_as_a_command() -> None:
    """One idea, a moment each: the table for the diary."""
    command = [sys.executable, str(DIARY / "ideas.py"), "--idea", "set_snapshot", "--markdown"]
    done = subprocess.run([*command, "--seconds", "0.01"], capture_output=True, text=True, check=True, timeout=60)
    assert "| sets_of_ints |" in done.stdout
    assert done.stderr == ""


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw data of the smallest workload, measured for real but hardly."""
    pytest.importorskip("pyperf")
    out = tmp_path_factory.mktemp("raw")
    harness = load("harness")
    harness.__dict__["QUICK"] = ["--values=2", "--loops=10"]
    for contender in ("stock", "fastpickle", "c"):
        assert harness.measure("small_dict", contender, out, quick=True) is None
    return out


class TestHarness:
    """``harness.py``, on the data of the fixture ``raw``."""

    def test_table(self, raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The Markdown table has a row for what was measured, the mean, and a caption."""
        harness = load("harness")
        assert harness.table(raw) == 0
        out = capsys.readouterr().out
        assert "| small_dict |" in out
        assert "geometric mean" in out
        assert f"{sys.version_info[0]}.{sys.version_info[1]}." in out
        assert "perf-diary/harness.py run" in out

    def test_plot(self, raw: Path, tmp_path: Path) -> None:
        """The chart is a PNG."""
        pytest.importorskip("matplotlib")
        chart = tmp_path / "chart.png"
        assert load("harness").plot(raw, chart) == 0
        assert chart.read_bytes().startswith(b"\x89PNG")

    def test_no_raw_data(self, tmp_path: Path) -> None:
        """Without raw data it is said how to get it."""
        pytest.importorskip("pyperf")
        with pytest.raises(SystemExit, match="run first"):
            load("harness").read(tmp_path)

    def test_failure_is_said(self, tmp_path: Path) -> None:
        """A pair that cannot be measured is reported by its last line."""
        pytest.importorskip("pyperf")
        assert "invalid choice" in load("harness").measure("nothing", "stock", tmp_path, True)
