"""The tools that run the test matrix: which interpreter is chosen, which environments run, what counts as failed.

Nothing is downloaded and no tox runs; interpreters are shell scripts that print what a real one would say.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest

# tools is not installed with the package; at the end of the path, so that an installed fastpickle goes first
sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))

fcntl = pytest.importorskip("fcntl", reason="the tools are for systems with apt")

import finding  # noqa: E402
import interpreters  # noqa: E402
import making  # noqa: E402
import matrix  # noqa: E402
import mirror  # noqa: E402
import steps  # noqa: E402
from finding import Interpreter  # noqa: E402
from matrix import Counts, Result  # noqa: E402
from mirror import Mirror, ToolError  # noqa: E402

MakePython = Callable[..., Path]

ENVS = ["lint", "types", "py310", "py314", "py315", "pypy311", "py310-compat-dill", "py315-compat-dill"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty machine: nothing on PATH but a shell, no pyenv, no uv, an empty cache."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("FASTPICKLE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def make_python(home: Path) -> MakePython:
    """Give a function that writes an executable which answers the probe."""

    def make(place: str, release: str, /, **said: object) -> Path:
        file = home / place
        file.parent.mkdir(parents=True, exist_ok=True)
        answer = {
            "implementation": "cpython",
            "version": [int(part) for part in release.split(".")],
            "level": "final",
            "flags": "",
            "venv": False,
            "tests": True,
            "executable": str(file),
            **said,
        }
        file.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n", encoding="utf-8")
        file.chmod(0o755)
        return file

    return make


def broken(file: Path) -> None:
    """Write an executable that fails as a pyenv shim without a selected version does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n", encoding="utf-8")
    file.chmod(0o755)


def chosen(name: str) -> Path | None:
    """Look for one interpreter, and give its path."""
    found, _ = interpreters.gather([name], fetch=False)
    return found[name].path if name in found else None


def test_probe_of_this_python() -> None:
    """A real Python is recognised: the one that runs this test, outside of its virtual environment."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    one = finding.probe(Path(os.path.realpath(base)), "here")
    flags = getattr(sys, "abiflags", "")
    if "d" in flags:
        pytest.skip("this Python is a debug build")
    assert one is not None
    prefix = "pypy" if sys.implementation.name == "pypy" else ""
    assert one.name == f"{prefix}{sys.version_info[0]}.{sys.version_info[1]}{flags}"


@pytest.mark.parametrize(
    "said",
    [
        {"venv": True},
        {"flags": "d"},
        {"flags": "td"},
        {"implementation": "graalpy"},
        {"version": [3, 14]},
        {"version": None},
    ],
    ids=str,
)
def test_probe_passes_over(make_python: MakePython, said: dict[str, object]) -> None:
    """What is not a plain Python of its own is not an interpreter."""
    assert finding.probe(make_python("bin/python3.14", "3.14.1", **said), "PATH") is None


def test_free_threaded_build_is_one_of_its_own(make_python: MakePython) -> None:
    """It has a name of its own, and is no stand-in for the other one."""
    file = make_python("bin/python3.14t", "3.14.1", flags="t")
    assert finding.probe(file, "PATH").name == "3.14t"
    make_python("bin/python3.14", "3.14.1", flags="t")
    assert (chosen("3.14t"), chosen("3.14")) == (file, None)


def test_probe_passes_over_what_does_not_run(home: Path) -> None:
    """An executable that fails, says nothing or is not there is no interpreter, and no error."""
    broken(home / "bin/python3.14")
    assert finding.probe(home / "bin/python3.14", "PATH") is None
    (home / "bin/silent").write_text("#!/bin/sh\n", encoding="utf-8")
    (home / "bin/silent").chmod(0o755)
    assert finding.probe(home / "bin/silent", "PATH") is None
    assert finding.probe(home / "bin/nothing", "PATH") is None


def test_path_goes_before_pyenv(make_python: MakePython) -> None:
    """The interpreter that the user has chosen is taken."""
    make_python("pyenv/versions/3.14.9/bin/python3.14", "3.14.9")
    selected = make_python("bin/python3.14", "3.14.1")
    assert chosen("3.14") == selected


def test_newest_patch_release_of_pyenv(home: Path, make_python: MakePython) -> None:
    """pyenv's versions are compared as numbers, and its broken shim is passed over."""
    broken(home / "bin/python3.14")
    make_python("pyenv/versions/3.14.9/bin/python3.14", "3.14.9")
    newest = make_python("pyenv/versions/3.14.10/bin/python3.14", "3.14.10")
    make_python("pyenv/versions/3.15.0/bin/python3.15", "3.15.0")
    assert chosen("3.14") == newest


def test_a_shim_is_replaced_by_what_it_runs(make_python: MakePython) -> None:
    """The path is what the interpreter says itself: a shim may choose another one next time."""
    real = make_python("real/python3.14", "3.14.1")
    make_python("bin/python3.14", "3.14.1", executable=str(real))
    assert chosen("3.14") == real


def test_wrong_version_is_passed_over(make_python: MakePython) -> None:
    """pypy3 may be any PyPy 3, and a name may lie."""
    make_python("bin/pypy3", "3.10.14", implementation="pypy")
    make_python("bin/python3.14", "3.13.2")
    right = make_python("pyenv/versions/pypy3.11-7.3.20/bin/pypy3", "3.11.13", implementation="pypy")
    assert chosen("pypy3.11") == right
    assert chosen("3.14") is None


def test_better_one_further_on(make_python: MakePython) -> None:
    """A final release with the library's tests is preferred; one without is better than none."""
    without = make_python("bin/python3.14", "3.14.1", tests=False)
    assert chosen("3.14") == without
    make_python("uv/cpython-3.14.0/bin/python3.14", "3.14.0", level="candidate")
    assert chosen("3.14") == without
    better = make_python("uv/cpython-3.14.2/bin/python3.14", "3.14.2")
    assert chosen("3.14") == better


def test_unpacked_one_is_found(make_python: MakePython) -> None:
    """What an earlier run has made in the cache is found without fetching."""
    made = make_python("cache/interpreters/roots/3.14-testing/usr/bin/python3.14", "3.14.8")
    found, missing = interpreters.gather(["3.14", "3.15"], fetch=False)
    assert (found["3.14"].path, found["3.14"].source) == (made, "the mirror's testing")
    assert list(missing) == ["3.15"]


def test_folder_for_path(home: Path, make_python: MakePython) -> None:
    """The folder has a script for each interpreter that is there, and is not searched itself."""
    gone = make_python("bin/python3.14", "3.14.1")
    make_python("bin/python3.15", "3.15.1")
    interpreters.gather(["3.14", "3.15"], fetch=False)
    folder = interpreters.bin_folder()
    assert sorted(os.listdir(folder)) == ["python3.14", "python3.15"]
    assert mirror.call([str(folder / "python3.15")], "running it").startswith("{")
    gone.unlink()
    os.environ["PATH"] += os.pathsep + str(folder)
    assert chosen("3.14") is None
    assert os.listdir(folder) == ["python3.15"]


def test_nothing_to_fetch_with(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without apt and uv each missing interpreter has its reasons in one line."""

    def no_network(folder: Path, requirements: list[str]) -> Path:
        raise ToolError(f"installing {requirements[0]} failed: no network")

    monkeypatch.setattr(making, "make_venv", no_network)
    (home / "cache/interpreters/making-left").mkdir(parents=True)
    found, missing = interpreters.gather(["3.14", "pypy3.11"])
    assert not found
    assert list(missing) == ["3.14", "pypy3.11"]
    reasons = ["it is not on this machine", "there is no apt-get here to fetch it with"]
    assert missing["3.14"].split("; ") == [*reasons, "installing uv failed: no network"]
    assert not (home / "cache/interpreters/making-left").exists()


def test_links_in_a_root(tmp_path: Path) -> None:
    """An absolute link in an unpacked root means a file of the root."""
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/pypy3.11").symlink_to("/usr/lib/pypy3.11/pypy")
    (tmp_path / "usr/lib/pypy3.11/bin").mkdir(parents=True)
    (tmp_path / "usr/lib/pypy3.11/pypy").symlink_to("bin/../bin/pypy3")
    assert finding.executable_in(tmp_path, "pypy3.11") == tmp_path / "usr/lib/pypy3.11/bin/pypy3"


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("http://a.example/debian/\nhttp://b.example/debian/", Mirror("http://a.example/debian/", "debian")),
        ("http://a.example/debian-security/\nhttp://a.example/debian", Mirror("http://a.example/debian", "debian")),
        ("http://a.example/ubuntu/\nhttp://b.example/debian/", Mirror("http://b.example/debian/", "debian")),
        ("http://a.example/ubuntu-ports/", Mirror("http://a.example/ubuntu-ports/", "ubuntu")),
        ("mirror+file:/etc/apt/mirrors/debian.list/", Mirror("mirror+file:/etc/apt/mirrors/debian.list/", "debian")),
        (
            "http://a.example/archive/debian/20260509T000000Z/",
            Mirror("http://a.example/archive/debian/20260509T000000Z/", "debian"),
        ),
        ("http://a.example/debian-security/\nhttp://a.example/node", None),
        ("", None),
    ],
)
def test_mirror(targets: str, expected: Mirror | None) -> None:
    """The distribution's main mirror is found among the addresses that apt uses."""
    assert mirror.mirror_in(targets) == expected


def test_every_interpreter_has_a_suite() -> None:
    """The tables name nothing that the matrix does not know."""
    for suites in making.SUITES.values():
        assert {name for may_have in suites.values() for name in may_have} <= set(finding.VERSIONS)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3.14", ("3.14",)),
        ("3.14,pypy3.11", ("3.14", "pypy3.11")),
        (" py314 , python3.10,cpython3.15,pypy311,3.14", ("3.14", "3.10", "3.15", "pypy3.11")),
        ("py313t,3.14t", ("3.13t", "3.14t")),
    ],
)
def test_names(text: str, wanted: tuple[str, ...]) -> None:
    """--only takes the usual spellings."""
    assert interpreters.names(text) == wanted


@pytest.mark.parametrize("text", ["", ",", "3.9", "3.14,jython", "3"])
def test_names_that_are_wrong(text: str) -> None:
    """--only refuses what is not in the matrix."""
    with pytest.raises(argparse.ArgumentTypeError):
        interpreters.names(text)


@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        (interpreters.main, ["--only", "3.9"]),
        (interpreters.main, ["--onl", "3.14"]),
        (interpreters.main, ["more"]),
        (matrix.main, ["--full", "-e", "lint"]),
        (matrix.main, ["-e", ","]),
        (matrix.main, ["py314"]),
    ],
)
def test_wrong_usage(
    main: Callable[[list[str]], int], arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong usage is one line on standard error, and status 2."""
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


def test_command_line(make_python: MakePython, capsys: pytest.CaptureFixture[str]) -> None:
    """The table is on standard output, what is missing on standard error, and the status says which."""
    file = make_python("bin/python3.14", "3.14.1", tests=False)
    assert interpreters.main(["--only", "3.14", "--no-fetch"]) == 0
    words = capsys.readouterr().out.splitlines()[1].split()
    assert words[:3] == ["3.14", "3.14.1", "PATH,"]
    assert words[-1] == str(file)
    assert interpreters.main(["--only", "3.14,3.15", "--no-fetch", "--path"]) == 1
    captured = capsys.readouterr()
    assert captured.out == f"{interpreters.bin_folder()}\n"
    assert captured.err == "missing: 3.15: it is not on this machine\n"


def test_cache_that_cannot_be_written(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cache that cannot be written is one line and status 2."""
    (home / "file").touch()
    monkeypatch.setenv("FASTPICKLE_CACHE", str(home / "file"))
    assert interpreters.main(["--no-fetch"]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_call_says_why() -> None:
    """The line that a failed command gives as its reason is the message's end."""
    shell = ["/bin/sh", "-c"]
    assert mirror.call([*shell, "echo out; echo err >&2"], "it") == "out\n"
    with pytest.raises(ToolError, match=r"^it failed: E: no such package$"):
        mirror.call([*shell, "echo some; echo 'E: no such package'; echo more; exit 100"], "it")
    with pytest.raises(ToolError, match=r"^it failed: error: no \(cause: down\)$"):
        mirror.call([*shell, "echo 'error: no'; echo '  cause: net'; echo '  cause: down'; exit 1"], "it")
    with pytest.raises(ToolError, match=r"^it failed: last$"):
        mirror.call([*shell, "echo first; echo last >&2; exit 1"], "it")
    with pytest.raises(ToolError, match=r"^it failed: it printed nothing$"):
        mirror.call([*shell, "exit 1"], "it")
    with pytest.raises(ToolError, match=r"^it failed: /nowhere/it: No such file or directory$"):
        mirror.call(["/nowhere/it"], "it")
    with pytest.raises(ToolError, match=r"^it took more than 0 seconds$"):
        mirror.call([*shell, "sleep 60 & sleep 60"], "it", timeout=0.1)


def test_lock_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second of two runs says that it waits, and goes on when the first is ready."""
    order: list[str] = []

    def second() -> None:
        with steps.locked(tmp_path / "lock", "another run is at it"):
            order.append("second")

    with steps.locked(tmp_path / "lock", "nobody"):
        thread = threading.Thread(target=second)
        thread.start()
        said = ""
        while "waiting" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert said + capsys.readouterr().err == "interpreters: another run is at it; waiting for it\n"


@pytest.mark.parametrize(
    ("env", "interpreter"),
    [
        ("lint", None),
        ("types", None),
        ("compat-dill", None),
        ("pure", None),
        ("py310", "3.10"),
        ("py315-compat-stdlib", "3.15"),
        ("pypy311-compat-dill", "pypy3.11"),
        ("compat-dill-py3.13", "3.13"),
        ("py313t-compat-dill", "3.13t"),
    ],
)
def test_interpreter_of(env: str, interpreter: str | None) -> None:
    """An environment's name tells its interpreter."""
    assert matrix.interpreter_of(env) == interpreter


def test_quick_selection() -> None:
    """A contributor runs the checks, both ends of what is at hand, and one upstream suite."""
    assert matrix.quick(ENVS, ["pypy3.11", "3.10", "3.15", "3.14", "3.14t"]) == [
        "lint",
        "types",
        "py310",
        "py315",
        "py315-compat-dill",
    ]
    assert matrix.quick(ENVS, ["3.10"]) == ["lint", "types", "py310", "py310-compat-dill"]
    assert matrix.quick(ENVS, ["3.14"]) == ["lint", "types", "py314"]
    with pytest.raises(ToolError, match="no CPython"):
        matrix.quick(ENVS, ["pypy3.11"])


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("12 passed, 0 failed\n", Counts(12, 0)),
        ("x\n12 passed, 3 failed\n  py310: OK (1.00 seconds)\n", Counts(12, 3)),
        ("===== 12 passed in 3.45s =====\n  py310: OK\n", Counts(12, 0)),
        ("= 1 failed, 12 passed, 4 skipped, 2 xfailed, 1 error in 75.10s (0:01:15) =\n", Counts(12, 2)),
        ("\x1b[32m==== \x1b[1m2 errors\x1b[0m in 0.10s ====\x1b[0m\n", Counts(0, 2)),
        ("12 passed, 1 warning in 0.10s\n", Counts(12, 0)),
        ("===== 3 passed in 1.00s =====\nagain\n===== 5 passed in 1.00s =====\n", Counts(5, 0)),
        ("===== no tests ran in 0.01s =====\n", None),
        ("All checks passed!\n30 files already formatted\n", None),
        ("", None),
    ],
)
def test_read_counts(output: str, counts: Counts | None) -> None:
    """The last summary line counts."""
    assert matrix.read_counts(output) == counts


def test_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The last line is the sum of tests; a missing interpreter is an error, unless it may be missing."""
    results = [
        Result("lint", "3.13.0", matrix.PASSED),
        Result("py310", "CPython 3.10.1", matrix.PASSED, Counts(10, 0), 61.4),
        Result("py315", "CPython 3.15 (missing)", matrix.MISSING, Counts(0, 1)),
    ]
    assert matrix.report(results, {"3.15": "no mirror has it"}, tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "error: the interpreter 3.15 is missing: no mirror has it" in lines
    assert lines[-2:] == ["", "10 passed, 1 failed"]
    assert ["py310", "CPython", "3.10.1", "passed", "10", "0", "61"] in [line.split() for line in lines]

    results[-1] = Result("py315", "CPython 3.15 (missing)", matrix.SKIPPED)
    assert matrix.report(results, {"3.15": "no mirror has it"}, tmp_path, ["3.15"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "10 passed, 0 failed"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "E   FAILED\n\x1b[31mFAILED\x1b[0m tests/test_a.py::test_b[c d] - assert\n= 1 failed in 0.10s =\n",
            ["FAILED tests/test_a.py::test_b[c d] - assert"],
        ),
        ("ERROR tests/test_a.py::test_b - left over\nERROR: no\n", ["ERROR tests/test_a.py::test_b - left over"]),
        (
            "\nREGRESSION dill installed: x\n  second run: no\n  repeat it:  so\n    1\n    \n    2\n    3\n\ntable\n",
            ["REGRESSION dill installed: x", "  second run: no", "    1", "    2", "    3"],
        ),
        ("REGRESSION dill installed: x\n  second run: no\n", ["REGRESSION dill installed: x", "  second run: no"]),
        ("".join(f"{n}\n\n" for n in range(100)), [str(n) for n in range(85, 100)]),
        ("".join(f"FAILED a::{n}\n" for n in range(100)), [f"FAILED a::{n}" for n in range(30)]),
        ("", []),
    ],
)
def test_read_failures(output: str, expected: list[str]) -> None:
    """The tests that are named, or else the end of the output."""
    assert matrix.read_failures(output) == expected


def test_what_failed_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Below the table, where it is seen without the logs, which may be out of reach."""
    (tmp_path / "py310.log").write_text("FAILED tests/test_a.py::test_b - assert\nlast\n", encoding="utf-8")
    (tmp_path / "py311.log").write_text("FAILED tests/test_a.py::test_c - assert\n", encoding="utf-8")
    results = [
        Result("py310", "", matrix.FAILED, Counts(1, 1)),
        Result("py311", "", matrix.PASSED, Counts(1, 0)),
        Result("py312", "", matrix.FAILED, Counts(0, 1)),
    ]
    assert matrix.report(results, {}, tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("py310:")
    assert lines[place + 1] == "  FAILED tests/test_a.py::test_b - assert"
    assert lines[place + 2].startswith("the output of each")


def test_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What there is no time for is named, and is no error; what has begun goes on."""
    tox = matrix.Tox("", tmp_path / "tox", {}, tmp_path)
    monkeypatch.setattr(matrix, "_tox", lambda *, untimed: tox)
    monkeypatch.setattr(matrix, "_run_env", lambda tox, env, *others: Result(env, "", matrix.PASSED, Counts(1, 0)))
    monkeypatch.setattr(matrix.mirror, "call", lambda *words, **settings: "lint types")
    monkeypatch.setattr(matrix.interpreters, "gather", lambda *names, **settings: ({}, {}))
    for within, ran in (["--within", "15"], 1), (["--within", "20"], 2), ([], 2):
        clock = itertools.count(step=10)  # it is looked at once before all, and before each environment
        monkeypatch.setattr(matrix, "time", types.SimpleNamespace(monotonic=clock.__next__))
        assert matrix.main(["-e", "lint,types", *within]) == 0
        out = capsys.readouterr().out
        assert out.endswith(f"{ran} passed, 0 failed\n")
        assert ("there was no time for types\n" in out) == (ran == 1)
    assert matrix.main(["-e", "lint,types", "--within", "-1"]) == 1, "a run of nothing has shown nothing"
    assert matrix.main(["-e", "py399", "--within", "-1"]) == 1
    assert "the interpreter 3.99 is missing" in capsys.readouterr().out


def test_run_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The output is shown and kept; an environment that fails without a failed test counts as one failed."""
    script = tmp_path / "tox"
    tox = matrix.Tox("", tmp_path, {}, tmp_path)
    monkeypatch.setattr(matrix.Tox, "command", lambda self, *words: ["/bin/sh", str(script), *words])
    script.write_text("echo '= 7 passed in 0.10s ='\n", encoding="utf-8")
    result = matrix._run_env(tox, "py310", "CPython 3.10.1", [])
    assert (result.status, result.counts) == (matrix.PASSED, Counts(7, 0))
    assert (tmp_path / "py310.log").read_text(encoding="utf-8") == "= 7 passed in 0.10s =\n"
    script.write_text("echo 'ruff: no'; exit 1\n", encoding="utf-8")
    result = matrix._run_env(tox, "lint", "", [])
    assert (result.status, result.counts) == (matrix.FAILED, Counts(0, 1))
    assert b"ruff: no" in capfdbinary.readouterr().out


@pytest.mark.parametrize("timeout", [0, 1])
def test_what_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeout: float) -> None:
    """What a test leaves over is ended with its environment, and so is an environment that takes too long."""
    script = tmp_path / "tox"
    pids = tmp_path / "pids"
    waits = f"echo '= 7 passed in 0.10s ='; sleep 100 & echo $! > {pids}\n" + "sleep 100\n" * bool(timeout)
    script.write_text(waits, encoding="utf-8")
    tox = matrix.Tox("", tmp_path, {}, tmp_path)
    monkeypatch.setattr(matrix.Tox, "command", lambda self, *words: ["/bin/sh", str(script), *words])
    monkeypatch.setattr(matrix, "_STOP_TIMEOUT", 1.0)
    result = matrix._run_env(tox, "py310", "", [], timeout)
    expected = (matrix.FAILED, Counts(7, 1)) if timeout else (matrix.PASSED, Counts(7, 0))
    assert (result.status, result.counts) == expected
    assert result.seconds < 50
    state = Path(f"/proc/{pids.read_text().strip()}/stat")
    for _ in range(100):  # a process that has been killed ends soon, and is reaped at some time
        if not state.exists() or " Z " in state.read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail("it is left over")


def test_label() -> None:
    """The table names the release, or says that it is missing."""
    one = Interpreter("3.10", "3.10.4", True, True, "PATH", Path("python3.10"))
    assert matrix.label("3.10", {"3.10": one}) == "CPython 3.10.4"
    assert matrix.label("pypy3.11", {}) == "PyPy 3.11 (missing)"
    assert matrix.label(None, {}).startswith("the tools' own, 3.")
