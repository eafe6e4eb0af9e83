"""``python -m fastpickle``: what it prints, its exit status, and what it must never time as stock.

    in process    main([...]) --> exit status, capsys --> the text
    as a process  python -m fastpickle ... --> exit status, stdout, stderr; no traceback, ever

A library that must seem absent is blocked in the child by a ``sitecustomize`` of our own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rich")

import fastpickle
from fastpickle import cli
from fastpickle.cli import _compare, _load, _timing, bench, workloads

ROOT = Path(__file__).resolve().parent.parent

TINY = _timing.Plan(sample_seconds=0.0002, budget_seconds=0.01, min_rounds=2, max_rounds=3)
"""A measurement that takes milliseconds and says nothing about speed."""


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten what is measured in process, and leave it in this one."""
    monkeypatch.setattr(_compare, "HAS_JIT", False)
    monkeypatch.setattr(bench, "FULL", TINY)
    monkeypatch.setattr(bench, "QUICK", TINY)


def block(folder: Path, *modules: str) -> None:
    """Make modules impossible to import for child processes that have the folder on their path."""
    lines = ["import sys", *(f"sys.modules[{module!r}] = None" for module in modules)]
    (folder / "sitecustomize.py").write_text("\n".join(lines))


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start ``python -m fastpickle`` in a folder."""
    path = [str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-m", "fastpickle", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_take_interrupts if os.name == "posix" else None,
    )


def _take_interrupts() -> None:
    """Undo what a shell does to a test run in the background: it ignores Ctrl-C, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run ``python -m fastpickle`` in a folder to its end."""
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out, err


def one_error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run ``bench`` in process with input that it must refuse, and return the one line it says."""
    assert cli.main(["bench", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


# Workloads


@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_workload_is_the_same_each_time(name: str) -> None:
    """Two builds are equal, distinct, described, and stock can pickle and restore them."""
    obj, again = workloads.build(name), workloads.build(name)
    assert obj == again
    assert obj is not again
    assert workloads.describe(name).endswith(".")
    assert pickle.loads(_compare.stock_dumps(obj, pickle.DEFAULT_PROTOCOL)) == obj


def test_workload_stays_the_same_across_processes(tmp_path: Path) -> None:
    """The pickles do not depend on the process; sets of strings, say, would."""
    code = (
        "import hashlib, pickle; from fastpickle.cli import workloads as w; "
        "print([hashlib.md5(pickle.dumps(w.build(n), 4)).hexdigest() for n in w.WORKLOADS])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_published_workloads_come_first() -> None:
    """The five with published figures keep their names and their place."""
    assert list(workloads.WORKLOADS)[:5] == [
        "list_of_ints_10k",
        "list_of_strs_1k",
        "dict_str_int_5k",
        "deep_list",
        "nested_list_of_dicts",
    ]


# Timing


def test_rounds_alternate() -> None:
    """Contenders take turns, and the order turns round from round to round."""
    calls: list[str] = []

    def slowly(name: str) -> None:
        calls.append(name)
        time.sleep(0.001)

    plan = _timing.Plan(sample_seconds=0.001, budget_seconds=60, min_rounds=4, max_rounds=4)
    pair = [
        _timing.Contender("a", lambda: slowly("a")),
        _timing.Contender("b", lambda: slowly("b")),
    ]
    seconds = _timing.measure(pair, plan)
    assert "".join(calls).endswith("abbaabba")
    assert [len(figures) for figures in seconds.values()] == [4, 4]


def test_context_surrounds_every_sample() -> None:
    """The state that belongs to a contender is entered for its samples and for nothing else."""
    inside: list[str] = []
    seen: set[tuple[str, ...]] = set()

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        inside.append("x")
        yield
        inside.pop()

    def call() -> None:
        seen.add(tuple(inside))

    _timing.measure([_timing.Contender("a", call, around)], TINY)
    assert seen == {("x",)}
    assert not inside


@pytest.mark.skipif(not _timing.CAN_FORK, reason="no process can be copied there")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_each_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there is a JIT: the figures are those of copies, and a contender's state is entered once."""
    monkeypatch.setattr(_compare, "HAS_JIT", True)
    monkeypatch.setattr(_timing, "WARM_SECONDS", 0.001)
    entered: list[int] = []

    def fail(obj: object, protocol: int) -> bytes:
        raise ValueError("no")

    def dump(obj: object, protocol: int) -> bytes:
        entered.append(os.getpid())
        return _compare.stock_dumps(obj, protocol)

    dumps: dict[str, _compare.Dump] = {"stock": dump, "fastpickle": fastpickle.dumps, "c": fail}
    result = _compare.measure_object("x", [1, 2], dumps, 4, TINY)
    assert not entered
    assert [*result.seconds] == ["stock", "fastpickle"]
    assert all(len(seconds) == TINY.max_rounds for seconds in result.seconds.values())
    assert result.checks == {"fastpickle": "identical"}
    assert result.failures == {"c": "ValueError: no"}
    with pytest.raises(_compare.CannotPickle, match="cannot pickle y"):
        _compare.measure_object("y", [1, 2], {"stock": fail}, 4, TINY)
    with pytest.raises(RuntimeError, match="ended with"):
        _timing.in_fork(lambda: os._exit(3))
    way = _timing.Contender("x", list, lambda: entered_once(entered))
    assert _timing.in_fork(lambda: (_timing._warm_samples(way, TINY), entered))[1] == [1]


@contextlib.contextmanager
def entered_once(entered: list[int]) -> Iterator[None]:
    entered.append(1)
    yield


def test_slow_call_is_called_once_a_sample() -> None:
    """An object that takes longer than a sample should is dumped once for each."""
    slow = _timing.Contender("slow", lambda: time.sleep(0.01))
    assert _timing.loops_for(slow, 0.001) == 1


def test_ratios_belong_to_rounds() -> None:
    """A ratio is that of one round, and means of ratios cancel out."""
    assert _timing.ratios([4.0, 1.0], [1.0, 1.0]) == [1.0, 4.0]
    assert _timing.geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert _timing.geometric_mean([]) is None


# Loading


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        (b"\xef\xbb\xbf[1]", [1]),
        (b'{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        *((pickle.dumps([1, "x"], protocol), [1, "x"]) for protocol in range(6)),
    ],
)
def test_file_is_recognised_by_content(tmp_path: Path, content: bytes, expected: object) -> None:
    """JSON, JSON lines and pickles of every protocol load, whatever the file is called."""
    path = tmp_path / "data.txt"
    path.write_bytes(content)
    assert _load.from_file(str(path)) == expected


def test_text_is_not_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not look like a pickle never reaches the unpickler."""
    monkeypatch.setattr(pickle, "loads", lambda content: pytest.fail("unpickled"))
    path = tmp_path / "broken.json"
    for text, message in (('{"a": ', "no JSON"), ("a: 1", "neither JSON nor a pickle")):
        path.write_text(text)
        with pytest.raises(_load.LoadError, match=message):
            _load.from_file(str(path))


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 3), ("bz2", 3), ("xz", 3), ("lzma", 3)])
def test_file_of_joblibs(tmp_path: Path, compress: Any) -> None:
    """What `joblib.dump` has written is loaded by joblib, compressed or not, with arrays or without."""
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    path = str(tmp_path / "model")
    joblib.dump({"a": [1, "b"]}, path, compress=compress)
    assert _load.from_file(path) == {"a": [1, "b"]}
    numpy: Any = pytest.importorskip("numpy", reason="numpy is not installed")
    joblib.dump([numpy.arange(3), 5], path, compress=compress)
    array, number = _load.from_file(path)  # type: ignore[misc]  # it may be anything
    assert [*array] == [0, 1, 2]
    assert number == 5


def test_file_of_joblibs_without_joblib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    path = tmp_path / "model"
    path.write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(_load.LoadError, match="as a file of joblib's it fails: ModuleNotFoundError"):
        _load.from_file(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\x00\xff", "neither JSON nor a pickle"),
        (b"\xff\xfea: 1", "neither JSON nor a pickle"),
        (b'{"a": 1,\n "b": 2\n "c": 3}\n', "in line 3, column"),
        (b'{"a": 1}\n{"a": 2}\n\n{"a": }\n', "in line 4, column"),
        (pickle.dumps(list(range(100)))[:-9], "as a pickle it fails"),
        (b"cnowhere_to_be_found\nx\n.", "ModuleNotFoundError"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)
def test_bad_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str) -> None:
    """A file that is no data is refused in one line."""
    path = tmp_path / "data"
    path.write_bytes(content)
    said = one_error(capsys, "--data", str(path))
    assert message in said


def test_missing_file_and_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that cannot be read is refused in one line."""
    assert "No such file" in one_error(capsys, "--data", str(tmp_path / "nowhere"))
    assert "cannot read" in one_error(capsys, "--data", str(tmp_path))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("json", "write MODULE:NAME"),
        ("json:", "write MODULE:NAME"),
        (":x", "write MODULE:NAME"),
        ("a b:c", "write MODULE:NAME"),
        ("nowhere_to_be_found:x", "No module named"),
        ("json:nowhere", "has no attribute"),
        ("json:JSONEncoder.nowhere", "has no attribute"),
    ],
)
def test_bad_reference(capsys: pytest.CaptureFixture[str], reference: str, message: str) -> None:
    """A reference that leads nowhere is refused in one line."""
    assert message in one_error(capsys, "--import", reference)


def test_dotted_reference() -> None:
    """The name in a module may be dotted."""
    assert _load.from_module("json:JSONEncoder.item_separator") == ", "


# Options


def test_bad_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be measured or written is refused before anything is measured."""
    highest = pickle.HIGHEST_PROTOCOL
    assert f"choose 0 to {highest}" in one_error(capsys, "--protocol", str(highest + 1))
    assert f"choose 0 to {highest}" in one_error(capsys, "--protocol", "-1")
    assert "did you mean small_dict" in one_error(capsys, "--workload", "smal_dict")
    assert "--list" in one_error(capsys, "--workload", "zzz")
    assert "cannot write" in one_error(capsys, "--json", str(tmp_path / "no" / "where"))


def test_arguments_that_do_not_parse(capsys: pytest.CaptureFixture[str]) -> None:
    """argparse refuses the rest, with the same status."""
    for arguments in ([], ["bench", "--protocol", "x"], ["nowhere"], ["bench", "--data"]):
        with pytest.raises(SystemExit) as exit_info:
            cli.main(arguments)
        assert exit_info.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_help_warns_of_pickles(capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` says that loading a pickle executes code."""
    with pytest.raises(SystemExit) as exit_info:
        cli.main(["bench", "--help"])
    assert exit_info.value.code == 0
    assert "executes" in capsys.readouterr().out


def test_version_and_list(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` names the package, ``--list`` every workload with what it stands for."""
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"fastpickle {fastpickle.__version__}\n"
    assert cli.main(["bench", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(workloads.WORKLOADS)


# Results


def test_one_workload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table, the summary and the raw result of one workload, with nothing left installed."""
    table = dict(pickle._Pickler.dispatch)
    path = tmp_path / "raw.json"
    arguments = ["bench", "--workload", "small_dict", "--protocol", "2", "--json", str(path)]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert "small_dict" in out
    assert "bytes identical" in out
    assert "In short: fastpickle" in out
    document = json.loads(path.read_text())
    (result,) = document["results"]
    assert document["protocol"] == 2
    assert result["checks"]["fastpickle"] == "identical"
    assert len(result["seconds"]["stock"]) == len(result["seconds"]["fastpickle"]) >= 2
    assert result["size"] == len(_compare.stock_dumps(workloads.small_dict(), 2))
    assert not fastpickle.is_installed()
    assert table == pickle._Pickler.dispatch


def test_several_workloads_have_a_mean(capsys: pytest.CaptureFixture[str]) -> None:
    """Workloads that are asked for are measured, and averaged."""
    arguments = ["bench", "--quick", "--workload", "small_dict", "--workload", "dict_1000_entries"]
    assert cli.main(arguments) == 0
    assert "Geometric mean over 2 workloads" in capsys.readouterr().out


def test_own_data_is_measured_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With ``--data`` or ``--import`` workloads are measured only if asked for."""
    path = tmp_path / "[mine]:lock:.json"
    path.write_text('{"a": [1, 2]}')
    assert cli.main(["bench", "--quick", "--data", str(path), "--import", "json:__all__"]) == 0
    out = capsys.readouterr().out
    assert "[mine]:lock:.json" in out
    assert "json:__all__" in out
    assert not any(name in out for name in workloads.WORKLOADS)
    assert cli.main(["bench", "--quick", "--data", str(path), "--workload", "small_dict"]) == 0
    assert "small_dict" in capsys.readouterr().out


def test_several_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file and each object is measured, files of one name too."""
    paths = [tmp_path / name for name in ("a/rows.json", "b/rows.json")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("[1, 2]")
    objects = ["--import", "json:__all__", "--import", "string:digits"]
    saved = tmp_path / "all.json"
    arguments = ["--data", str(paths[0]), "--data", str(paths[1]), *objects, "--json", str(saved)]
    assert cli.main(["bench", "--quick", *arguments]) == 0
    assert "over 4 workloads" in capsys.readouterr().out
    names = [result["name"] for result in json.loads(saved.read_text())["results"]]
    assert names == ["rows.json", str(paths[1]), "json:__all__", "string:digits"]


def test_libraries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their functions are timed before and after ``install()``, and what they wrote, or its digest, is compared."""
    pytest.importorskip("joblib")
    saved = tmp_path / "all.json"
    arguments = ["--library", "joblib.dump", "--library", "joblib.hash", "--workload", "small_dict"]
    assert cli.main(["bench", "--quick", *arguments, "--json", str(saved)]) == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if " us " in line]
    assert any("joblib.dump" in line and "bytes identical" in line for line in lines)
    assert any("joblib.hash" in line and "digests identical" in line for line in lines)
    assert out.count("after install()") >= 2
    (result,) = json.loads(saved.read_text())["results"]
    for name in "joblib.dump", "joblib.hash":
        assert len(result["seconds"][name]) == len(result["seconds"][name + "_installed"]) >= 2
        assert result["checks"][name + "_installed"] == "identical"


def test_library_that_is_not_there(tmp_path: Path) -> None:
    """One line says what to install, before anything is measured."""
    block(tmp_path, "joblib")
    status, out, err = run(tmp_path, "bench", "--library", "joblib.hash")
    assert (status, out) == (2, "")
    assert err.startswith("fastpickle bench: joblib.hash: ")
    assert err.endswith("; pip install 'fastpickle[joblib]'\n")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("pure", ["", "1"])
def test_pure_is_said(pure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the figures would be taken for those of the package as it is."""
    monkeypatch.setenv("FASTPICKLE_PURE", pure)
    assert ("FASTPICKLE_PURE is set" in run(tmp_path, "bench", "--quick", "--workload", "small_dict")[1]) is bool(pure)


def test_different_bytes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Other bytes than stock's are an error with a status of its own."""
    monkeypatch.setattr(fastpickle, "dumps", lambda obj, protocol: pickle.dumps([obj], protocol))
    assert cli.main(["bench", "--workload", "small_dict"]) == 1
    assert "bytes DIFFERENT" in capsys.readouterr().out


def test_failure_of_fastpickle_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """If fastpickle fails where stock does not, that is as bad as other bytes."""

    def fail(obj: object, protocol: int) -> bytes:
        raise ValueError("out\nof order")

    monkeypatch.setattr(fastpickle, "dumps", fail)
    assert cli.main(["bench", "--workload", "small_dict"]) == 1
    out = capsys.readouterr().out
    assert "FAILS" in out
    assert "ValueError: out of order" in out


class Varying:
    """Pickles differently each time, with any pickler."""

    made = 0

    def __reduce__(self) -> tuple[type, tuple[int]]:
        """Count the calls into the pickle."""
        Varying.made += 1
        return (int, (Varying.made,))


class Warming:
    """Pickles differently the first time only, as objects with a cache do."""

    def __init__(self) -> None:
        """Start cold."""
        self.warm = False

    def __reduce__(self) -> tuple[type, tuple[bool]]:
        """Say whether this is the first time."""
        was_warm, self.warm = self.warm, True
        return (bool, (was_warm,))


@pytest.mark.parametrize(("obj", "check"), [(Varying(), "varying"), (Warming(), "identical")])
def test_objects_without_bytes_of_their_own(obj: object, check: str) -> None:
    """An object whose pickle stock does not repeat says nothing against fastpickle."""
    dumps: dict[str, _compare.Dump] = {
        "stock": _compare.stock_dumps,
        "fastpickle": fastpickle.dumps,
    }
    result = _compare.measure_object("object", obj, dumps, 4, TINY)
    assert result.checks == {"fastpickle": check}
    assert not result.broken()


def test_object_that_nobody_can_pickle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message is the one that stock gives."""
    (tmp_path / "unpicklable_data.py").write_text("DATA = [memoryview(b'')]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    said = one_error(capsys, "--import", "unpicklable_data:DATA")
    with pytest.raises(TypeError) as error_info:
        _compare.stock_dumps([memoryview(b"")], 4)
    assert str(error_info.value) in said


def test_object_nested_too_deeply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Too deep for stock is either an error in one line, or fastpickle works where it failed."""
    code = "DATA = []\nfor _ in range(100_000):\n    DATA = [DATA]\n"
    (tmp_path / "deep_data.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "deep_data", raising=False)  # and afterwards, as it would stay for all tests
    assert "nested too deeply" in one_error(capsys, "--import", "deep_data:DATA")


# Never the wrong thing


def test_stock_is_timed_with_nothing_installed() -> None:
    """Only a library's second measurement may see an accelerated ``pickle._Pickler``."""
    seen: dict[str, set[bool]] = {"stock": set(), "fastpickle": set(), "dill": set(), "joblib.hash": set()}

    def watch(key: str) -> _compare.Dump:
        def dump(obj: object, protocol: int) -> bytes:
            seen[key].add(fastpickle.is_installed())
            return _compare.stock_dumps(obj, protocol)

        return dump

    _compare.measure_object("x", [1, 2], {key: watch(key) for key in seen}, 4, TINY)
    assert set.union(*seen.values()) == {False}


def test_installed_dill_is_timed_installed() -> None:
    """dill's second measurement runs inside ``patched()``, and nothing stays installed."""
    seen: set[bool] = set()

    def dump(obj: object, protocol: int) -> bytes:
        seen.add(fastpickle.is_installed())
        return b"x"

    dumps: dict[str, _compare.Dump] = {"stock": _compare.stock_dumps, "dill_installed": dump}
    _compare.measure_object("x", [1, 2], dumps, 4, TINY)
    assert seen == {True}
    assert not fastpickle.is_installed()


def test_accelerated_stock_is_refused() -> None:
    """Timing stock while fastpickle is installed is an error of the program, not a result."""
    dumps: dict[str, _compare.Dump] = {"stock": _compare.stock_dumps}
    with fastpickle.patched(), pytest.raises(RuntimeError, match="stock should be timed"):
        _compare.measure_object("x", [1], dumps, 4, TINY)


def test_installation_of_the_user_is_undone_and_restored() -> None:
    """A module that calls ``install()`` is measured fairly, and finds its state again."""
    fastpickle.install()
    try:
        notes: list[str] = []
        with _compare.stock_state(notes):
            assert not fastpickle.is_installed()
        assert fastpickle.is_installed()
        assert any("install()" in note for note in notes)
    finally:
        fastpickle.uninstall()
    with fastpickle.patched(), pytest.raises(RuntimeError), _compare.stock_state([]):
        pass


def test_dill_leaves_nothing_in_the_stock_table() -> None:
    """What importing dill puts into the table of ``pickle._Pickler`` is out while measuring."""
    pytest.importorskip("dill")
    before = dict(pickle._Pickler.dispatch)
    with _compare.stock_state([]):
        functions = pickle._Pickler.dispatch.values()
        assert not any("dill" in function.__module__ for function in functions)
    assert before == pickle._Pickler.dispatch


# As a process


def test_without_dill(tmp_path: Path) -> None:
    """Without dill its rows are left out, and one line says how to get them."""
    block(tmp_path, "dill")
    status, out, err = run(tmp_path, "bench", "--quick", "--workload", "small_dict")
    assert status == 0, err
    assert "pip install 'fastpickle[dill]'" in out
    assert "_Pickler" in out


def test_without_rich(tmp_path: Path) -> None:
    """Without rich one line says what to install; the list needs no rich."""
    block(tmp_path, "rich")
    status, out, err = run(tmp_path, "bench", "--workload", "small_dict")
    assert (status, out) == (2, "")
    assert err == "fastpickle bench: rich is not installed: pip install 'fastpickle[bench]'\n"
    assert run(tmp_path, "bench", "--list")[0] == 0


def test_module_in_the_current_folder(tmp_path: Path) -> None:
    """``--import`` finds modules where the command is run, and refuses those that fail."""
    (tmp_path / "mine.py").write_text("class Config:\n    data = {'a': [1, 2, 3]}\n")
    (tmp_path / "exits.py").write_text("raise SystemExit('no')\n")
    status, out, err = run(tmp_path, "bench", "--quick", "--import", "mine:Config.data")
    assert status == 0, err
    assert "mine:Config.data" in out
    status, out, err = run(tmp_path, "bench", "--quick", "--import", "exits:x")
    assert (status, out) == (2, "")
    assert "SystemExit: no" in err


def test_object_that_only_dill_can_pickle(tmp_path: Path) -> None:
    """A lock is measured with dill alone, and it is said why."""
    pytest.importorskip("dill")
    (tmp_path / "mine.py").write_text("import threading\nDATA = [threading.Lock()]\n")
    status, out, err = run(tmp_path, "bench", "--quick", "--import", "mine:DATA")
    assert status == 0, err
    assert "_Pickler cannot pickle it" in out


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends it quietly with status 130."""
    (tmp_path / "slow.py").write_text(
        textwrap.dedent(
            """
            import time
            class Slow:
                def __reduce__(self):
                    print("pickling", flush=True)
                    time.sleep(0.2)
                    return (int, ())
            DATA = Slow()
            """
        )
    )
    process = start(tmp_path, "bench", "--import", "slow:DATA")
    assert process.stdout is not None
    assert process.stdout.readline() == "pickling\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGPIPE is POSIX")
def test_reader_that_went_away(tmp_path: Path) -> None:
    """A closed pipe ends it quietly."""
    process = start(tmp_path, "bench", "--quick", "--workload", "small_dict")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert err == ""


def test_terminal_of_ascii(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stdout knows ASCII only, the table is drawn with that."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert cli.main(["bench", "--workload", "small_dict"]) == 0
    assert b"small_dict" in raw.getvalue()
