"""The scripts of ``perf-diary/``: every idea and ablation writes stock's bytes, and the harness adds up."""

from __future__ import annotations

import concurrent.futures
import gc
import importlib.util
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from oracle.allowed import PYPY

import fastpickle
from fastpickle._stdlib import CPickler
from fastpickle.cli import workloads

pytestmark = [
    pytest.mark.skipif(PYPY, reason="the ideas are for CPython's frames; PyPy has another engine"),
    pytest.mark.skipif(
        sys.version_info[:2] not in {(3, 11), (3, 13), (3, 14)} or CPickler is None,
        reason="the figures are of other Pythons, with a C pickler",
    ),
]

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
ablations = load("ablations")
series = ablations.series
grafting = load("grafting")
floors = load("floors")
pure = load("pure")
profiles = load("profiles")
executors = load("executors")
by_value = load("by_value")
_import = importlib.import_module
kinds = load("kinds")
library_objects = load("library_objects")
small_dumps = load("small_dumps")
behind_others = load("behind_others")
shapes = grafting.shapes


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])  # 1 and 3 take no other way in these methods
@pytest.mark.parametrize("name", ideas.IDEAS)
def test_idea_writes_the_bytes_of_stock(name: str, protocol: int) -> None:
    """No idea is timed whose bytes are others."""
    pair = ideas.comparison(ideas.IDEAS[name].make(), protocol)
    assert series.differing_workloads(pair.with_, pair.reference) == []


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


class TestAblations:
    """``ablations.py``."""

    @pytest.mark.parametrize("name", ablations.ABLATIONS)
    def test_writes_the_bytes_of_the_reference(self, name: str) -> None:
        """Every edit finds its text in the package as it is, and changes no byte."""
        chosen = ablations.ABLATIONS[name]
        if chosen.use is ablations.by_dill:
            pytest.importorskip("dill").extend(False)
        way, reference = chosen.ways(edited=True)
        assert series.differing_workloads(way, reference) == []

    @pytest.mark.parametrize("name", ablations.ABLATIONS)
    def test_is_described(self, name: str) -> None:
        """Every ablation says what it is, from which side, and touches workloads that there are."""
        chosen = ablations.ABLATIONS[name]
        assert name == "control" or chosen.about.startswith("With:" if chosen.puts_in else "Without:")
        assert set(chosen.touches) <= set(workloads.WORKLOADS)

    @pytest.mark.parametrize("name", sorted(set(ablations.ABLATIONS) - {"control"}))
    def test_changes_something(self, name: str) -> None:
        """No ablation is the package under another name."""
        assert all(old != new for _, old, new in ablations.ABLATIONS[name].edits)
        assert ablations.ABLATIONS[name].edits

    def test_edit_that_finds_nothing_is_an_error(self) -> None:
        """A package that spells the place otherwise is not measured as if the ablation did nothing."""
        with pytest.raises(LookupError, match="no such text"):
            ablations.private_copy("test", ("engine/plain", "this text is not there", ""))

    def test_edit_of_several_lines(self) -> None:
        """It is found at any indentation, and what is put there gets the same."""
        old = """
            if a:
                b
        """
        assert ablations.replaced("x\n  if a:\n      b\ny", old, "c\nd") == "x\n  c\n  d\ny"
        with pytest.raises(LookupError):
            ablations.replaced("if a:\n  b", old, "c")

    def test_copies_are_private(self) -> None:
        """A copy shares no class and no table with the package, and leaves nothing on the path."""
        path = list(sys.path)
        copy = ablations.private_copy("test", ("doubts", "self.looks = 4", "self.looks = 5"))
        assert sys.path == path
        assert copy.Pickler is not fastpickle.Pickler
        assert sys.modules["fastpickle_test.hooks"].savers is not fastpickle.hooks.savers
        looks = [
            m.Dump(fastpickle.Pickler(io.BytesIO()), None).looks
            for m in (sys.modules["fastpickle_test.doubts"], fastpickle.doubts)
        ]
        assert looks == [5, 4]

    def test_as_a_command(self) -> None:
        """One ablation, a moment each: the table for the diary."""
        command = [sys.executable, str(DIARY / "ablations.py"), "--ablation", "own_reduces", "--markdown"]
        done = subprocess.run([*command, "--seconds", "0.01"], capture_output=True, text=True, check=True, timeout=60)
        assert "| `own_reduces` | without / as it is |" in done.stdout
        assert "| sets_of_ints |" in done.stdout
        assert done.stderr == ""

    def test_list(self) -> None:
        """``--list`` names them all and measures nothing."""
        command = [sys.executable, str(DIARY / "ablations.py"), "--list"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert [line.split()[0] for line in done.stdout.splitlines()] == list(ablations.ABLATIONS)

    def test_counting_without_valgrind(self, tmp_path: Path) -> None:
        """It is said in one line what is missing."""
        command = [sys.executable, str(DIARY / "ablations.py"), "--ablation", "control", "--instructions"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": str(tmp_path)}
        )
        assert done.returncode == 2
        assert done.stderr == "--instructions needs valgrind, which is not installed\n"

    @pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
    @pytest.mark.soak
    def test_counting(self) -> None:
        """Instructions per dump, without what the process does besides."""
        assert 10_000 < ablations.instructions("control", False, "small_dict") < 1_000_000

    def test_dumps_to_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Between two marks there are as many dumps as it says, of small pickles more; before them the double."""
        seen: list[str] = []
        monkeypatch.setattr(series.os, "sched_yield", lambda: seen.append("mark"), raising=False)
        for size, calls in ((10, series.SMALL_CALLS), (10_000, series.CALLS)):
            seen.clear()
            way = series.Way(lambda obj: seen.append("dump") or b"." * obj)
            assert series.dumps_to_count(way, size) == calls
            assert seen == ["dump"] * (2 * calls + 1) + ["mark"] + ["dump"] * calls + ["mark"]

    @pytest.mark.skipif(os.name != "posix", reason="the valgrind of this test is a shell script")
    @pytest.mark.parametrize(
        ("script", "said"),
        [
            ("echo no memory >&2; exit 1", "valgrind failed: no memory"),
            ("echo '[10]'", "valgrind did not see where to begin to count: it knows no sched_yield() here"),
        ],
    )
    def test_valgrind_that_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
        """It is said in one line."""
        tool = tmp_path / "valgrind"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(series.NotCounted) as raised:
            series.instructions(["-c", ""])
        assert str(raised.value) == said


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


@pytest.fixture
def hardly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of ``grafting.py`` that are too short to say anything, and not much to collect before each of them."""
    if hasattr(gc, "freeze"):
        gc.freeze()
    plan = grafting._timing.Plan(sample_seconds=0.0001, budget_seconds=0.001, min_rounds=1, max_rounds=1)
    monkeypatch.setattr(grafting, "QUICK", plan)
    monkeypatch.setattr(grafting, "QUICK_CHILDREN", 1)
    monkeypatch.setattr(grafting, "COUNTS", (10, 100, 1_000))
    monkeypatch.setattr(grafting, "SIZES", (1_000_000, 2_000_000))


@pytest.mark.skipif(pickle.Pickler.__module__ != "_pickle", reason="needs the C pickler")
class TestGrafting:
    """``grafting.py``."""

    @pytest.mark.parametrize("group", sorted(set(shapes.GROUPS) - {"flat", "memory", "closure"}))
    def test_shapes_have_the_bytes_of_stock(self, group: str) -> None:
        """No shape is one that would be refused."""
        for name, make in shapes.GROUPS[group].items():
            obj = make()
            assert fastpickle.dumps(obj) == pickle._dumps(obj), name  # type: ignore[attr-defined]

    def test_shapes_are_described(self) -> None:
        """Every name is there once, and says what it is."""
        names = [name for group in shapes.GROUPS.values() for name in group]
        assert len(names) == len(set(names))
        assert shapes.GROUPS.keys() == shapes.ABOUT.keys()
        assert all(make.__doc__ for group in shapes.GROUPS.values() for make in group.values())

    @pytest.mark.usefixtures("hardly")
    def test_every_kind_of_row(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A shape of each group, a moment each: all lines and tables, on stdout and in the file."""
        only = ["small_dict", "deep_list", "deep_50", "decimals_2000", "uuids", "closure"]
        only += ["custom_below_60_levels", "flat_ints", "memory_strs"]
        target = tmp_path / "table.md"
        assert grafting.main(["--quick", "--only", *only, "--markdown", str(target)]) == 0
        out = capsys.readouterr().out
        assert target.read_text(encoding="utf-8") == out
        lines = [line for line in out.splitlines() if line.startswith("| `")]
        have_dill, have_cloudpickle = (importlib.util.find_spec(name) is not None for name in ("dill", "cloudpickle"))
        if have_dill and have_cloudpickle and grafting.resource is not None:
            # on 3.15 dill pickles no closure
            assert not [line for line in lines if line.endswith("| - |") and "closure" not in line]
        for name in (
            "small_dict",
            "decimals_2000",
            "closure_and_ints",
            "custom_below_60_levels",
            "flat_ints",
            "memory_strs",
        ):
            assert [line for line in lines if name in line], name
        for heading in ("| shape |", "| mixed shape |", "| ns per object |", "| peak memory |"):
            assert heading in out
        assert "| uuids |" in out
        assert "perf-diary/grafting.py --quick" in out

    @pytest.mark.usefixtures("hardly")
    def test_other_bytes_are_not_timed(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """What does not write stock's bytes is refused, said, and the exit status."""
        monkeypatch.setattr(
            fastpickle,
            "dumps",
            lambda obj: pickle._dumps(obj) + b"."[: type(obj[0]) is int],  # type: ignore[attr-defined]
        )
        assert grafting.main(["--quick", "--only", "ints_1001", "uuids"]) == 1
        out, err = capsys.readouterr()
        assert "NOT TIMED: fastpickle.dumps of ints_1001: 2764 bytes of stock, 2765 of this one" in err
        ratios = {line.split(" | ")[0]: line.split(" | ")[2] for line in out.splitlines()[2:] if line.startswith("| ")}
        assert ratios["| ints_1001"] == "-"
        assert ratios["| uuids"].endswith("x")
        assert "- fastpickle.dumps of ints_1001: " in out

    def test_difference(self) -> None:
        """It is said where the bytes differ, what was raised, and that stock is not to be compared with."""
        assert grafting.difference(lambda: b"same", lambda: b"same") is None
        assert "byte 2" in grafting.difference(lambda: b"same", lambda: b"sane")
        assert "byte 4" in grafting.difference(lambda: b"same!", lambda: b"same")
        assert "ZeroDivisionError" in grafting.difference(lambda: b"", lambda: 1 // 0)
        written = iter((b"a", b"b", b"c", b"d"))
        assert "each time" in grafting.difference(lambda: next(written), lambda: b"x")

    def test_child_that_ends(self) -> None:
        """It is an error, not an endless wait."""
        with grafting.Child() as child, pytest.raises(RuntimeError, match="ended with status"):
            child.process.kill()
            child.process.wait()
            child.ask(do="calibrate", seconds=0.1)

    def test_unknown_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A misspelt name is a wrong usage."""
        with pytest.raises(SystemExit) as ended:
            grafting.main(["--only", "small_dic"])
        assert ended.value.code == 2
        assert "did you mean small_dict?" in capsys.readouterr().err

    def test_help_and_list(self) -> None:
        """Both name every group."""
        for option in ("--help", "--list"):
            command = [sys.executable, str(DIARY / "grafting.py"), option]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
            assert all(group in done.stdout for group in shapes.GROUPS)


@pytest.mark.skipif(pickle.Pickler.__module__ != "_pickle", reason="needs the C pickler")
@pytest.mark.usefixtures("hardly")
def test_pure(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``pure.py``: a row for each shape, and what does not write stock's bytes is not timed."""
    monkeypatch.setattr(pure.grafting, "QUICK", grafting.QUICK)
    monkeypatch.setattr(pure.workloads, "WORKLOADS", {"small_dict": pure.workloads.WORKLOADS["small_dict"]})
    monkeypatch.setattr(pure, "tables", lambda: {"rows": [[i] for i in range(20)]})
    target = tmp_path / "pure.md"
    assert pure.main(["--quick", "--markdown", str(target)]) == 0
    assert target.read_text() == capsys.readouterr().out
    assert [line.split(" | ")[0] for line in target.read_text().splitlines() if " | " in line].count("| rows") == 1
    assert pure.main(["--quick", "--only", "rows"]) == 0
    assert "small_dict" not in capsys.readouterr().out
    monkeypatch.setattr(pure, "dumps", lambda cls, obj: str(cls).encode())
    assert pure.main(["--quick"]) == 1
    assert "NOT TIMED: rows" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        pure.main(["--only", "row"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("no workload or table 'row'; did you mean rows?")


@pytest.mark.usefixtures("hardly")
def test_pure_floors(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``pure.py --floors``: what it times is in what is pickled."""
    monkeypatch.setattr(pure.grafting, "QUICK", grafting.QUICK)
    for name, ways in pure.floors().items():
        pickled = ways["stock"]()
        assert ways["pure"]() == pickled
        packed = ways["bytes"]()
        data = packed[0] if type(packed) is tuple else packed
        assert 5000 <= len(data) < len(pickled), name
    memo: dict[int, tuple[int, object]] = {}
    pure.memoized(["a", "b", "a"], memo)
    assert [*memo.values()] == [(0, "a"), (1, "b")]
    assert pure.of_one_type(["a", "b"], str)
    assert not pure.of_one_type(["a", 1], str)
    assert pure.joined(["a", "bc"]) == b"\x01a\x02bc"
    assert pure.main(["--quick", "--floors"]) == 0
    out = capsys.readouterr().out
    assert "| shared_strings |" in out
    assert "pure.py --quick --floors`" in out


@pytest.mark.usefixtures("hardly")
def test_pure_hooks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``pure.py --hooks``: a column for each, and picklers that hear what they override."""
    monkeypatch.setattr(pure.grafting, "QUICK", grafting.QUICK)
    for hook in pure.HOOKS:
        cls = pure.hooked(pure.Stock, hook)
        assert pure.dumps(cls, [{"a": 1}]) == pure.dumps(pure.Stock, [{"a": 1}])
        assert cls.dispatch is not pure.Stock.dispatch if hook == "dispatch[dict]" else hook in vars(cls)
    assert pure.main(["--quick", "--hooks", "--only", "small_dict"]) == 0
    out = capsys.readouterr().out
    assert all(f"`{hook}`" in out for hook in pure.HOOKS)
    assert "small_dict" in out


def test_pure_in_instructions(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``pure.py --instructions``: beside the times; without valgrind a line."""
    monkeypatch.setattr(pure.grafting, "QUICK", grafting.QUICK)
    command = ["--quick", "--instructions", "--only", "small_dict"]
    with monkeypatch.context() as without:
        without.setattr(pure.series.shutil, "which", lambda *args, **kwargs: None)
        assert pure.main(command) == 2
    assert capsys.readouterr() == ("", "--instructions needs valgrind, which is not installed\n")
    monkeypatch.setattr(pure.series, "instructions", lambda script: [3_000, 2_000])
    assert pure.main(command) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("| small_dict "))
    assert row.split(" | ")[2:] == ["1.50", "3,000", "2,000 |"]
    assert "pure.py --quick --instructions --only" in out


@pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="what is counted under valgrind needs sched_yield()")
def test_pure_to_count(capsys: pytest.CaptureFixture[str]) -> None:
    """What valgrind looks at: both engines, in this order."""
    assert pure.main(["--count", "small_dict"]) == 0
    assert json.loads(capsys.readouterr().out) == [series.SMALL_CALLS] * 2


class TestProfiles:
    """``profiles.py``."""

    @pytest.fixture(autouse=True)
    def hardly(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Times that are too short to say anything."""
        plan = grafting._timing.Plan(sample_seconds=0.0001, budget_seconds=0.001, min_rounds=1, max_rounds=1)
        monkeypatch.setattr(profiles.grafting, "QUICK", plan)

    @staticmethod
    def fake(monkeypatch: pytest.MonkeyPatch) -> None:
        """Samples that nobody took."""
        samples = {"stock": {"pickle.save": 3, "pickle.memoize": 1}, "pure": {"loop.save_all": 9, "x.small": 1}}
        monkeypatch.setattr(profiles, "profiler", lambda: "py-spy")
        monkeypatch.setattr(profiles, "profile", lambda tool, engine, name, seconds: samples[engine])

    def test_own_samples(self) -> None:
        """The innermost function counts, where a dump was under way."""
        dump = "<module> (/p/profiles.py:1);spin (/p/profiles.py:9);dumps (/p/series.py:3)"
        stacks = [
            "<module> (/p/profiles.py:1);find (<frozen importlib._bootstrap>:7) 50",
            "<module> (/p/profiles.py:1);spin (/p/profiles.py:9) 4",
            f"{dump};_Pickler.dump (/lib/pickle.py:4);_Pickler.save (/lib/pickle.py:8) 2",
            f"{dump};_Pickler.save (/lib/pickle.py:8);by.<locals>.of (/a folder of mine/x (1)/y.py:8) 7",
            f"{dump} 1",
            f"{dump};_Pickler.save (/lib/pickle.py:8) 3",
        ]
        assert profiles.own_samples("\n".join(stacks)) == {"y.of": 7, "pickle.save": 5, "series.dumps": 1}

    def test_kinds(self) -> None:
        """What is done by a function, from its name or its module."""
        names = "save save_str save_dict memoize commit_frame save_reduce dump other".split()
        kinds = [profiles.charts.kind(f"pickle.{name}") for name in names]
        assert kinds == ["object", "value", "container", "memo", "write", "reduce", "dump", "other"]
        assert profiles.charts.kind("columns.memoize") == "memo"
        assert profiles.charts.kind("somebody.else") == "other"

    def test_kinds_are_of_functions_that_there_are(self) -> None:
        """A function of ours, or of stock's, that has gone is not looked for."""
        modules = {path.stem: path for path in (DIARY.parent / "fastpickle").rglob("*.py")}
        assert {*profiles.charts.MODULE_KINDS} <= {*modules, "series", "copyreg", "pure"}
        for function in profiles.charts.OWN_KINDS:
            module, _, name = function.partition(".")
            assert f"def {name}(" in modules[module].read_text(encoding="utf-8")
        assert set(profiles.charts.STOCK_KINDS) | set(profiles.charts.MODULE_KINDS.values()) <= set(
            profiles.charts.KINDS
        )
        assert set(profiles.TELLING) <= {name for objects in pure.choose(None).values() for name in objects}

    def test_chart(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """A table and a PNG for each workload; ``plot`` draws the same again."""
        pytest.importorskip("matplotlib")
        self.fake(monkeypatch)
        folders = ["--raw", str(tmp_path / "raw"), "--charts", str(tmp_path)]
        assert profiles.main(["run", "--only", "small_dict", "--seconds", "0.1", *folders]) == 0
        assert "| **a dump** |" in capsys.readouterr().out
        chart = tmp_path / "profile-small_dict.png"
        drawn = chart.read_bytes()
        assert drawn.startswith(b"\x89PNG")
        chart.unlink()
        assert profiles.main(["plot", *folders]) == 0
        assert chart.read_bytes() == drawn

    def test_other_bytes_are_not_profiled(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are said, and the exit status."""
        self.fake(monkeypatch)
        monkeypatch.setattr(profiles.charts, "matplotlib", profiles.charts.matplotlib or object())
        monkeypatch.setattr(profiles.charts, "draw", lambda raw, folder, names: None)
        monkeypatch.setattr(profiles.pure, "dumps", lambda cls, obj: str(cls).encode())
        assert profiles.main(["run", "--only", "small_dict", "--raw", str(tmp_path)]) == 1
        assert capsys.readouterr().err == "NOT PROFILED: small_dict: other bytes than stock's\n"
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="POSIX only")
    @pytest.mark.parametrize(
        ("script", "said"),
        [
            (
                "echo 'Error: Permission denied' >&2; echo try sudo >&2; exit 1",
                "py-spy failed: Error: Permission denied",
            ),
            ('for i; do case "$i" in --output=*) : > "${i#--output=}";; esac; done', "py-spy saw no dump"),
        ],
    )
    def test_py_spy_that_fails(self, tmp_path: Path, script: str, said: str) -> None:
        """It is said in one line."""
        tool = tmp_path / "py-spy"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        with pytest.raises(profiles.NotProfiled, match=said):
            profiles.profile(str(tool), "stock", "small_dict", 0.1)

    def test_missing_tools(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is said in one line what is missing: py-spy, matplotlib, or the raw data."""
        with monkeypatch.context() as without:
            without.setattr(profiles.shutil, "which", lambda *args, **kwargs: None)
            assert profiles.main(["run", "--raw", str(tmp_path)]) == 2
        assert capsys.readouterr().err == "py-spy is not installed: pip install 'fastpickle[diary]'\n"
        self.fake(monkeypatch)
        if profiles.charts.matplotlib is not None:
            assert profiles.main(["plot", "--raw", str(tmp_path)]) == 2
            assert capsys.readouterr().err.startswith(f"no raw data in {tmp_path}; run first: ")
        monkeypatch.setattr(profiles.charts, "matplotlib", None)
        for command in ("run", "plot"):
            assert profiles.main([command, "--raw", str(tmp_path)]) == 2
            assert capsys.readouterr().err == "matplotlib is not installed: pip install 'fastpickle[diary]'\n"

    def test_unknown_workload(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A misspelt name is a wrong usage, and the last line says which one was meant."""
        for command in ("run", "plot"):
            with pytest.raises(SystemExit) as ended:
                profiles.main([command, "--only", "json_record"])
            assert ended.value.code == 2
            said = capsys.readouterr().err.splitlines()[-1]
            assert said.endswith("no workload or table 'json_record'; did you mean json_records?")

    def test_help(self) -> None:
        """It shows how it is used, and what a chart shows."""
        command = [sys.executable, str(DIARY / "profiles.py"), "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert "run --only json_records" in done.stdout
        assert "how to read a chart" in done.stdout

    def test_for_real(self, tmp_path: Path) -> None:
        """py-spy sees both engines."""
        try:
            tool = profiles.profiler()
        except profiles.NotProfiled as missing:
            pytest.skip(str(missing))
        for seconds in (0.3, 1.0, 4.0):  # a busy machine gives it few samples
            try:
                found = {engine: profiles.profile(tool, engine, "small_dict", seconds) for engine in pure.ENGINES}
            except profiles.NotProfiled as failed:
                pytest.skip(f"not on this machine: {failed}")
            if {"pickle.save", "pickle.memoize"} <= set(found["stock"]) and "small._encode" in found["pure"]:
                break
        else:
            pytest.fail(f"not seen: {found}")
        assert "loop.save_all" not in found["stock"]


@pytest.mark.usefixtures("hardly")
def test_floors(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``floors.py``: a row for each workload, and its parts write what they are to stand for."""
    monkeypatch.setattr(floors.grafting, "QUICK", grafting.QUICK)
    few = dict(shapes.GROUPS)
    few["plain"] = dict(list(few["plain"].items())[:4])
    few["mixed"] = {"custom_below_60_levels": few["mixed"]["custom_below_60_levels"]}
    monkeypatch.setattr(floors.shapes, "GROUPS", few)
    target = tmp_path / "floors.md"
    assert floors.main(["--quick", "--markdown", str(target)]) == 0
    out = capsys.readouterr().out
    assert target.read_text(encoding="utf-8") == out
    assert "custom_below_60_levels" in out
    for name, make in (few["plain"] | few["small"]).items():
        assert f"| {name} |" in out
        obj = make()
        assert floors.to_a_file(obj) == floors.to_a_file(obj, is_looked_at=True) == pickle.dumps(obj)


class TestExecutors:
    """``executors.py``."""

    @pytest.fixture(autouse=True)
    def hardly(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Samples, and pools, that are too short and too small to say anything."""
        plan = executors._timing.Plan(sample_seconds=0.0001, budget_seconds=0.001, min_rounds=1, max_rounds=1)
        monkeypatch.setattr(executors, "QUICK", plan)
        monkeypatch.setattr(executors, "QUICK_CALLS", 20)
        monkeypatch.setattr(executors, "PASSES", 2)
        pools = [executors.Size(*size) for size in (("threads", 1, 4), ("processes", 2, 1), ("both", 2, 2))]
        monkeypatch.setattr(executors, "sizes", lambda quick: pools)

    @staticmethod
    def figure(cell: str) -> float:
        """Read a figure of a table."""
        return float(cell.strip(" |").rstrip("x").replace(",", ""))

    def test_payloads(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A line for each row, a column for each executor that there is, and no gap."""
        target = tmp_path / "payloads.md"
        command = ["payloads", "--quick", "--raw", str(tmp_path), "--markdown", str(target)]
        assert executors.main([*command, "--only", "int", "list_10x", "dataclasses", "in_flight", "map"]) == 0
        out = capsys.readouterr().out
        assert target.read_text(encoding="utf-8") == out
        table = [line.strip("| ").split(" | ") for line in out.partition("| microseconds")[2].splitlines()]
        names = [row[0] for row in table[2:] if len(row) > 1]
        assert names == [
            "int",
            "list_10x100_KB",
            "dataclasses_100",
            "no-ops_in_flight",
            "map_chunksize_100",
        ]
        assert all(
            float(cell.rstrip("x").replace(",", "")) > 0 for row in table[2 : 2 + len(names)] for cell in row[1:]
        )
        have_interpreters = hasattr(concurrent.futures, "InterpreterPoolExecutor")
        assert (" stock / interpreters " in out) == have_interpreters
        assert ("| list_10x100_KB: stock / interpreters | at least 40x |" in out) == have_interpreters
        assert "perf-diary/executors.py payloads --quick" in out
        raw = json.loads((tmp_path / "executors-payloads.json").read_text(encoding="utf-8"))
        assert list(raw["rows"]) == names

    def test_what_does_not_come_back_is_not_timed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It is said, and the exit status; who can do it is timed."""
        objects = {"function": lambda: None, "nan": float("nan"), "int": 1}
        monkeypatch.setattr(executors, "payloads", lambda: objects)
        chosen = ["--executors", "threads", "both", "--only", *objects]
        assert executors.main(["payloads", "--quick", "--raw", str(tmp_path), *chosen]) == 1
        out, err = capsys.readouterr()
        assert "NOT TIMED: function, ProcessThreadPoolExecutor" in err
        assert "NOT TIMED: function, ThreadPoolExecutor" not in err
        assert err.count("another object came back") == 2
        cells = {line.split(" | ")[0]: line.split(" | ")[1:3] for line in out.splitlines() if line.startswith("| ")}
        assert cells["| function"][0] == "-"
        assert all(self.figure(cell) > 0 for cell in (cells["| function"][1], *cells["| int"]))

    def test_lines(self) -> None:
        """What is wanted is compared with the median of the rounds' ratios; the worst row is named."""
        found = {
            "list_10x100_KB": {"stock": [41.0, 39.0, 90.0], "interpreters": [1.0, 1.0, 2.0], "processes": [2.0] * 3},
            "int": {"stock": [1.0], "interpreters": [1.0], "processes": [0.5], "both": [0.1]},
            "no-ops_in_flight": {"processes": [3.0], "both": [1.0]},
        }
        lines = {line.what: (line.measured, line.holds) for line in executors.lines_of_payloads(found)}
        assert lines["list_10x100_KB: stock / interpreters"] == ("41.0x", True)
        assert lines["int: stock / interpreters"] == ("1.00x", False)
        assert lines["stock / interpreters: the worst row"] == ("1.00x (int)", True)
        assert lines["processes / interpreters: the worst row"] == ("0.50x (int; 1 of 2 below 1x)", False)
        assert lines["no-ops_in_flight: processes / both"] == ("3.00x", True)
        assert "no-ops_in_flight: processes / interpreters" not in lines

    def test_io(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A line for each pool; none is faster than its threads can wait."""
        command = ["io", "--quick", "--tasks", "40", "--rounds", "1", "--raw", str(tmp_path)]
        assert executors.main(command) == 0
        out = capsys.readouterr().out
        cells = {line.split(" | ")[0]: line.strip("| ").split(" | ") for line in out.splitlines() if line[:2] == "| "}
        for name, total in (("4 threads", 4), ("2 processes", 2), ("2 x 2", 4)):
            row = cells[f"| {name}"]
            assert int(row[1]) == total
            chunks = 40 // 10
            assert float(row[2]) >= 10 * 0.0208 * chunks / total - 0.01
            if importlib.util.find_spec("psutil") is not None and name != "4 threads":
                assert float(row[5]) > 0.5
        assert "4 threads / 2 x 2, time" in out
        raw = json.loads((tmp_path / "executors-io.json").read_text(encoding="utf-8"))
        assert [pool["runs"][0]["workers"] for pool in raw["pools"]] == [0, 2, 2]

    def test_wrong_names(self, tmp_path: Path) -> None:
        """It is said which there are, and a pool that fails says why."""
        with pytest.raises(SystemExit, match="there are: 4 threads, 2 processes"):
            executors.main(["io", "--only", "5 threads"])
        with pytest.raises(SystemExit, match="there are: int, None"):
            executors.main(["payloads", "--only", "nothing"])
        with pytest.raises(SystemExit, match=r"0 processes: (?s:.)*ValueError"):
            executors.measure_io([executors.Size("processes", 0, 1)], 1, 1)
        with pytest.raises(SystemExit, match=r"no raw data|matplotlib is not installed"):
            executors.main(["plot", "--raw", str(tmp_path)])

    def test_plot(self, tmp_path: Path) -> None:
        """Both charts are PNGs, also where something was not measured."""
        pytest.importorskip("matplotlib")
        about = {"where": "CPython 3.14", "cores": 2}
        rows = {"int": {"stock": [2e-5], "interpreters": [1e-5], "both": [3e-5]}, "array": {"threads": [1e-6]}}
        pools = [
            {"kind": kind, "workers": 2, "threads": 3, "runs": [{"seconds": 1.0, "memory": memory}]}
            for kind, memory in (("both", 2**21), ("processes", None), ("threads", 0))
        ]
        (tmp_path / "executors-payloads.json").write_text(json.dumps({**about, "rows": rows}))
        (tmp_path / "executors-io.json").write_text(json.dumps({**about, "tasks": 10, "floor": 0.5, "pools": pools}))
        assert executors.main(["plot", "--raw", str(tmp_path), "--charts", str(tmp_path)]) == 0
        for name in ("payloads", "io"):
            assert (tmp_path / f"executors-{name}.png").read_bytes().startswith(b"\x89PNG")

    def test_help(self) -> None:
        """It names the executors and the commands, which have a help of their own."""
        for command in ([], ["io"]):
            done = subprocess.run(
                [sys.executable, str(DIARY / "executors.py"), *command, "--help"],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            assert "--raw" in done.stdout or all(about in done.stdout for about in executors.ABOUT.values())


@pytest.mark.skipif(importlib.util.find_spec("dill") is None, reason="dill is not installed")
class TestByValue:
    """``by_value.py``."""

    def test_table(self, capfd: pytest.CaptureFixture[str]) -> None:
        """Each way once, with stock dill's bytes; what dill cannot save on this Python is left out."""
        assert by_value.main(["--turns", "1", "--only", "function", "instance", "small dict"]) == 0
        out = capfd.readouterr().out
        assert "| small dict | " in out
        assert out.count("x |") == 2 * (out.count("\n| ") - 1)

    @pytest.mark.skipif(importlib.util.find_spec("multiprocess") is None, reason="multiprocess is not installed")
    def test_multiprocess(self, capfd: pytest.CaptureFixture[str]) -> None:
        """Its pickler has two ways."""
        assert by_value.main(["--turns", "1", "--pickler", "multiprocess", "--only", "task", "small dict"]) == 0
        out = capfd.readouterr().out
        assert "| small dict | " in out
        assert "multiprocess" in out
        assert out.count("x |") == out.count("\n| ") - 1

    def test_other_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """They end it."""
        backend = importlib.import_module("fastpickle.backends.dill")
        monkeypatch.setattr(backend, "dumps", lambda obj: b"")
        with pytest.raises(SystemExit, match="small dict: other bytes"):
            by_value.serve("backend", ["small dict"])


@pytest.mark.skipif(importlib.util.find_spec("dill") is None, reason="dill is not installed")
class TestLibraryObjects:
    """``library_objects.py``."""

    def test_table(self, capfd: pytest.CaptureFixture[str]) -> None:
        """Each way once, with stock dill's bytes; objects whose library is not installed are left out."""
        names = ["email", "200 addresses", "attrs, 500 with slots"]
        assert library_objects.main(["--turns", "1", "--only", *names]) == 0
        out = capfd.readouterr().out
        assert "| 200 addresses | " in out
        assert ("attrs" in out) == (importlib.util.find_spec("attr") is not None)
        assert out.count("x |") == 2 * (out.count("\n| ") - 1)

    def test_other_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """They end it."""
        backend = importlib.import_module("fastpickle.backends.dill")
        monkeypatch.setattr(backend, "dumps", lambda obj: b"")
        with pytest.raises(SystemExit, match="email: other bytes"):
            library_objects.serve("backend", ["email"])

    def test_none(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """It is said where there is nothing to measure."""
        monkeypatch.setattr(library_objects.by_value, "measure", lambda *args, **kwargs: {"stock": {}})
        assert library_objects.main([]) == 0
        assert "not installed" in capfd.readouterr().out


class TestKinds:
    """``kinds.py``."""

    def test_table(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """Stock's pickler, and dill if it is installed; all kinds, few of each."""
        monkeypatch.setattr(kinds, "MANY", 5)
        monkeypatch.setattr(kinds, "SAMPLE", 0)
        monkeypatch.setattr(kinds.importlib, "import_module", lambda name: kinds if name == "kinds" else _import(name))
        assert kinds.main(["--rounds", "1"]) == 0
        out = capfd.readouterr().out
        has_dill = importlib.util.find_spec("dill") is not None
        assert out.count("x |") == (len(kinds.KINDS) + len(kinds.ALONE) + 1) * (1 + has_dill)
        assert f" of {len(kinds.KINDS) + len(kinds.ALONE)} |" in out

    def test_other_bytes(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """They end it."""
        monkeypatch.setattr(kinds, "pairs", lambda: {"stock": (pickle._dumps, lambda obj: b"")})  # type: ignore[attr-defined]  # no public name
        assert kinds.serve(["plain"], 1) == 1
        assert "plain: other bytes than stock's (stock)" in capfd.readouterr().err


class TestSmallDumps:
    """``small_dumps.py``."""

    def test_table(self, capfd: pytest.CaptureFixture[str]) -> None:
        """Each way once, with stock's bytes."""
        assert small_dumps.main(["--turns", "1", "--only", "an instance", "10 dates"]) == 0
        out = capfd.readouterr().out
        assert "| 10 dates | " in out
        pairs = out.partition("\n")[0].count(" / ")
        assert pairs == (4 if importlib.util.find_spec("dill") is None else 6)
        assert out.count("x |") == pairs * (out.count("\n| ") - 1)

    def test_other_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """They end it."""
        monkeypatch.setattr(small_dumps.fastpickle.Pickler, "dump", lambda self, obj: None)
        with pytest.raises(SystemExit, match="ours, a class: other bytes"):
            small_dumps.serve("ours", ["a class"])


class TestBehindOthers:
    """``behind_others.py``."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let there be two ways and two shapes, one of which a way refuses, and each be slower behind each."""

        def refuses(obj: object) -> bytes:
            if obj == [1]:
                raise pickle.PicklingError
            return fastpickle.dumps(obj)

        monkeypatch.setattr(behind_others, "ways", lambda: {"dumps": fastpickle.dumps, "refuses": refuses})
        monkeypatch.setattr(behind_others, "shapes", lambda more: {"ints": [1], "text": "a" * (1 + more)})
        monkeypatch.setattr(behind_others, "SLOWER", 0.0)
        monkeypatch.setattr(behind_others, "LATER", -1.0)
        monkeypatch.setattr(behind_others, "SETTLED", 0.0)

    def test_each_behind_each(self) -> None:
        """What cannot be dumped is left out."""
        told: list[str] = []
        found = behind_others.measure([], True, told.append)
        names = ["dumps: ints", "dumps: text", "refuses: text"]
        assert told == names
        assert {(one.what, one.behind) for one in found} == {(a, b) for a in names for b in names}
        assert all(one.alone > 0 and one.soon > 0 and one.settled > 0 for one in found)
        assert [one.settled for one in found] == sorted((one.settled for one in found), reverse=True)

    @pytest.mark.parametrize(("settled", "status"), [(1.99, 0), (2.0, 1)])
    def test_command(
        self, settled: float, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The exit status tells whether something stays slow."""
        one = behind_others.Slower("dumps: ints", "refuses: text", 4e-6, 3.0, settled)
        monkeypatch.setattr(behind_others, "measure", lambda only, more, progress: [one] * (only == ["dumps"]))
        assert behind_others.main(["--only", "dumps"]) == status
        assert f"| dumps: ints | refuses: text | 4.0 | 3.00x | {settled:.2f}x |" in capsys.readouterr().out
        assert behind_others.main([]) == 0

    def test_unknown_way(self, capsys: pytest.CaptureFixture[str]) -> None:
        """It is named."""
        with pytest.raises(SystemExit) as exited:
            behind_others.main(["--only", "dumps", "nothing"])
        assert exited.value.code == 2
        assert "no such way: nothing" in capsys.readouterr().err
