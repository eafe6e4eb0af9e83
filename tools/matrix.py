#!/usr/bin/env python3
"""Run the test matrix: the environments of tox.ini, each on its Python, from nothing, with one command.

    tox.ini ── tox list ──► environments ──┬─ quick: lint, types, tests on the oldest and the newest CPython, dill
                                           └─ --full: all;  -e: those that are named
    interpreters.py ──► a Python for each, first on PATH        uv build ──► one wheel for all
                                           │
                                           ▼
    tox run -e ENV, one after another ──► the terminal and logs/ENV.log ──► a table and "N passed, N failed"

The cache, ``.cache/matrix/`` beside the project or ``$FASTPICKLE_CACHE/matrix/``, has the virtual environment with tox,
tox's own folder and the logs.  Environments do not run side by side: each uses two processes or more itself.
"""

from __future__ import annotations

import argparse
import configparser
import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import BinaryIO

import finding
import interpreters
import mirror
import steps
from finding import Interpreter
from mirror import ToolError

ROOT = Path(__file__).resolve().parent.parent
"""The project's folder."""

PASSED, FAILED, MISSING, SKIPPED, STOPPED, NOT_RUN = "passed", "FAILED", "MISSING", "skipped", "STOPPED", "not run"
NO_TIME = "no time"

_WITHOUT_TESTS = ("lint", "types")
"""Environments that check something else than tests; any other that runs none has failed."""

_STOP_TIMEOUT = 20.0
"""Seconds that tox has to end after an interruption."""

_POLL = 0.1
"""Seconds between two looks at what an environment prints."""

_MOST_NAMED, _LAST_OF_EACH, _LAST_LINES, _WIDEST = 30, 3, 15, 300
"""For each environment that failed: how many failed tests are named, how many lines are shown if none is, how long."""

_TIMEOUT = 1500
"""Seconds that an environment may take by default: half as much again as the longest, 3.13's, on a slow machine."""

_DESCRIPTION = """\
Run the project's test matrix with tox.

Without options this is the quick selection, on what is at hand: lint, types, the tests on the oldest and on the newest
CPython, and dill's own tests on the newest.  With --full it is everything that CI runs, and interpreters that are
missing are downloaded into the cache (python3 tools/interpreters.py --help tells how).

The last line is "N passed, N failed": tests, not environments.  An environment that fails without a failed test, such
as lint, counts as one failed.
"""

_EPILOG = """\
exit status:
  0  everything passed
  1  something failed, or with --full or -e an interpreter is missing (--full does without free-threaded ones)
  2  wrong usage, or tox cannot be had

environment:
  FASTPICKLE_CACHE   the logs and all that is downloaded are kept in its folders (default: .cache beside the project)
  FASTPICKLE_MIRROR  the address of a Debian or Ubuntu mirror for interpreters

examples:
  python3 tools/matrix.py                             the quick selection
  python3 tools/matrix.py --full                      everything
  python3 tools/matrix.py --full --list               what that would run, and on which interpreter
  python3 tools/matrix.py --full --untimed            what CI runs (.ci/run): the times are for README's compat table
  python3 tools/matrix.py -e py314 -- -k graft        what follows -- goes to pytest, or to python -m compat
"""


@dataclass(frozen=True)
class Counts:
    """How many tests passed and failed."""

    passed: int
    failed: int


@dataclass(frozen=True)
class Result:
    """What came of an environment.

    Attributes:
        env: its name.
        python: the interpreter, for the table.
        status: PASSED, FAILED, MISSING, SKIPPED, STOPPED, NOT_RUN or NO_TIME.
        counts: its tests; one failed if it failed without a failed test.
        seconds: how long it took.
    """

    env: str
    python: str
    status: str
    counts: Counts = Counts(0, 0)
    seconds: float = 0.0


@dataclass(frozen=True)
class Tox:
    """A tox that can be run.

    Attributes:
        python: the interpreter of its virtual environment, which has uv too.
        folder: its own folder, where its environments are.
        settings: what to add to the environment.
        logs: where the output of each environment is kept.
        wheel: the package, built once; None to let tox build it.
    """

    python: str
    folder: Path
    settings: Mapping[str, str]
    logs: Path
    wheel: Path | None = None

    def command(self, subcommand: str, *options: str) -> list[str]:
        """Give a command line of it."""
        place = ["--conf", str(ROOT / "tox.ini"), "--workdir", str(self.folder)]
        return [self.python, "-m", "tox", subcommand, *place, *options]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the matrix.

    Args:
        arguments: the command line; None for the process's own.

    Returns:
        The exit status.
    """
    if sys.version_info < (3, 10):  # noqa: UP036  # it is run by whatever python3 is
        print(f"matrix: needs Python 3.10 or later, and this is {sys.version.split()[0]}", file=sys.stderr)
        return 2
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = _parser()
    options = parser.parse_args(arguments[:split])
    if options.full and options.env:
        parser.error("--full and -e exclude each other")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(options, arguments[split:])
    except ToolError as error:
        print(f"matrix: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("matrix: interrupted", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = steps.OneLineParser(
        prog="matrix.py",
        usage="%(prog)s [-h] [--full | -e ENV,...] [options] [-- ARGUMENT ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--full", action="store_true", help="every environment of tox.ini's env_list")
    parser.add_argument(
        "-e", dest="env", type=env_names, action="extend", metavar="ENV,...", help="only these environments of tox.ini"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=_TIMEOUT,
        metavar="SECONDS",
        help="an environment that takes longer is ended, and has failed; 0 for no limit (default: %(default)s)",
    )
    parser.add_argument(
        "--within",
        type=float,
        metavar="SECONDS",
        help="begin no environment after that; those left out are named, and are no error",
    )
    parser.add_argument(
        "--untimed", action="store_true", help="let the compat suites compare only, and time no entry points"
    )
    parser.add_argument("--list", action="store_true", help="only show what would run, on which interpreter")
    parser.add_argument(
        "--allow-missing", action="store_true", help="skip an environment whose interpreter is missing; no error"
    )
    parser.add_argument("--no-fetch", action="store_true", help="download no interpreters")
    parser.add_argument(
        "--mirror", default=os.environ.get("FASTPICKLE_MIRROR"), metavar="URL", help="where to get them"
    )
    return parser


def env_names(text: str) -> list[str]:
    """Read environments from the command line.

    Args:
        text: names with commas between them.

    Returns:
        The names.

    Raises:
        argparse.ArgumentTypeError: there are none.
    """
    envs = [name.strip() for name in text.split(",") if name.strip()]
    if not envs:
        raise argparse.ArgumentTypeError("no environment is named")
    return envs


def _run(options: argparse.Namespace, rest: Sequence[str]) -> int:
    """Choose the environments, run them, and print the table and the last line."""
    began = time.monotonic()
    tox = _tox(untimed=options.untimed)
    every = mirror.call(tox.command("list", "-q", "--no-desc", "-d"), "tox list", settings=tox.settings).split()
    if options.full or options.env:
        envs = list(dict.fromkeys(options.env or every))
        wanted = [name for name in finding.VERSIONS if name in map(interpreter_of, envs)]
        fetch = not (options.no_fetch or options.list)
        found, missing = interpreters.gather(wanted, fetch=fetch, mirror=options.mirror)
    else:
        found, missing = interpreters.gather(fetch=False)
        envs = quick(every, list(found))
    may_be_missing: Collection[str] = () if options.env else finding.MAY_BE_MISSING
    if options.allow_missing:
        may_be_missing = finding.VERSIONS
    plan = [(env, interpreter_of(env)) for env in envs]
    print_rows([("environment", "interpreter"), *((env, label(name, found)) for env, name in plan)])
    if options.list:
        if missing and not options.no_fetch and (options.full or options.env):
            print("(what is missing would be fetched first)")
        return 0
    with steps.locked(tox.folder.with_name("lock"), "another run uses this cache"):
        if any(name is None or name in found for _, name in plan):
            tox = _with_wheel(tox)
        results: list[Result] = []
        for env, name in plan:
            if name is not None and name not in found:
                status, failed = (SKIPPED, 0) if name in may_be_missing else (MISSING, 1)
                results.append(Result(env, label(name, found), status, Counts(0, failed)))
            elif options.within is not None and time.monotonic() - began > options.within:
                results.append(Result(env, label(name, found), NO_TIME))
            else:
                results.append(_run_env(tox, env, label(name, found), rest, options.timeout))
            if results[-1].status == STOPPED:
                results += [Result(env, label(name, found), NOT_RUN) for env, name in plan[len(results) :]]
                break
    unknown = "the tools know no such interpreter"
    absent = {name: missing.get(name, unknown) for _, name in plan if name is not None and name not in found}
    return report(results, absent, tox.logs, may_be_missing)


def interpreter_of(env: str) -> str | None:
    """Give the interpreter that an environment's name asks for.

    Args:
        env: the name, such as "py310-compat-dill".

    Returns:
        The interpreter as finding.VERSIONS names it, or would; None if it is the one that runs tox.
    """
    for factor in env.split("-"):
        if match := re.fullmatch(r"(py|pypy|python|cpython)(\d)\.?(\d+t?)", factor):
            return ("pypy" if match[1] == "pypy" else "") + f"{match[2]}.{match[3]}"
    return None


def quick(envs: Sequence[str], at_hand: Sequence[str]) -> list[str]:
    """Choose what a contributor runs.

    Args:
        envs: tox.ini's environments.
        at_hand: the interpreters that are there.

    Returns:
        lint, types, the tests on the oldest and the newest CPython, dill's tests on the newest; of these, what exists.

    Raises:
        ToolError: there is no CPython.
    """
    minors = sorted(int(name.removeprefix("3.")) for name in at_hand if re.fullmatch(r"3\.\d+", name))
    if not minors:
        raise ToolError("no CPython of the matrix is at hand; get one with: python3 tools/interpreters.py")
    chosen = ["lint", "types", f"py3{minors[0]}", f"py3{minors[-1]}", f"py3{minors[-1]}-compat-dill"]
    return [env for env in dict.fromkeys(chosen) if env in envs]


def label(name: str | None, found: Mapping[str, Interpreter]) -> str:
    """Describe an environment's interpreter for a table."""
    if name is None:
        return f"the tools' own, {sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}"
    implementation = "PyPy" if name.startswith("pypy") else "CPython"
    return f"{implementation} {found[name].release if name in found else name.removeprefix('pypy') + ' (missing)'}"


# Running


def _tox(*, untimed: bool) -> Tox:
    """Get tox, and the settings that make it take the interpreters from our folder.

    Args:
        untimed: have the compat suites time nothing.

    Raises:
        ToolError: it cannot be had.
    """
    cache = steps.cache_folder("matrix")
    ini = configparser.ConfigParser(interpolation=None)
    ini.read(ROOT / "tox.ini", encoding="utf-8")
    requirements = ini.get("tox", "requires").split()
    identity = hashlib.sha256("\n".join([sys.base_prefix, *requirements]).encode()).hexdigest()[:8]
    venv = steps.make_venv(cache / f"venv-{sys.version_info[0]}.{sys.version_info[1]}-{identity}", requirements)
    settings = {
        "PATH": os.pathsep.join([str(interpreters.bin_folder()), os.environ.get("PATH", os.defpath)]),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PYTHON_PREFERENCE": "system",  # else uv's own Pythons go before those on PATH
        "PYTHONUNBUFFERED": "1",
        "COMPAT_OPTIONS": "--untimed" if untimed else "",
    }
    if given := os.environ.get("FASTPICKLE_CACHE"):
        settings["FASTPICKLE_CACHE"] = str(Path(given).resolve())  # tox changes the folder
    logs = cache / "logs"
    logs.mkdir(exist_ok=True)
    return Tox(str(venv / "bin" / "python"), cache / "tox", settings, logs)


def _with_wheel(tox: Tox) -> Tox:
    """Build the package once, unless it depends on the interpreter."""
    folder = tox.logs.parent / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    steps.progress("building the wheel")
    command = [tox.python, "-m", "uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)]
    mirror.call(command, "building the wheel", settings=tox.settings)
    wheels = list(folder.glob("*-none-any.whl"))
    return replace(tox, wheel=wheels[0] if wheels else None)


def _run_env(tox: Tox, env: str, python: str, rest: Sequence[str], timeout: float = 0) -> Result:
    """Run one environment; its output goes into a file, and to the terminal as it comes.

    Not through a pipe, which a process that a test has left over would keep open; such processes are ended too.
    """
    print(f"\n===== {env}: {python}", flush=True)
    package = ["--installpkg", str(tox.wheel)] if tox.wheel else []
    began = time.monotonic()
    log = tox.logs / f"{env}.log"
    log.unlink(missing_ok=True)
    stopped = ended = False
    with log.open("ab") as output, log.open("rb") as printed:
        process = subprocess.Popen(
            tox.command("run", "-e", env, "--skip-missing-interpreters", "false", *package, *rest),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **tox.settings},
            start_new_session=True,  # Ctrl-C is passed on by _stop()
        )
        try:
            while process.poll() is None:
                time.sleep(_POLL)
                _show(printed)
                if timeout and time.monotonic() - began > timeout:
                    ended = True
                    _stop(process)
        except KeyboardInterrupt:
            stopped = True
            _stop(process)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _show(printed)
    seconds = time.monotonic() - began
    counts = read_counts(log.read_text(encoding="utf-8", errors="replace")) or Counts(0, 0)
    if ended:
        print(f"matrix: {env} has been ended after {timeout:g} seconds", flush=True)
    if stopped:
        return Result(env, python, STOPPED, Counts(counts.passed, max(counts.failed, 1)), seconds)
    if not process.returncode and not rest and not counts.passed and env not in _WITHOUT_TESTS:
        print(f"matrix: {env} has run no test", flush=True)
        return Result(env, python, FAILED, Counts(0, 1), seconds)
    if process.returncode or ended:
        return Result(env, python, FAILED, Counts(counts.passed, max(counts.failed, 1)), seconds)
    return Result(env, python, PASSED, counts, seconds)


def _show(printed: BinaryIO) -> None:
    """Print what has been added to a file."""
    if block := printed.read():
        sys.stdout.buffer.write(block)
        sys.stdout.flush()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End tox, which ends what it has started; a second Ctrl-C does not wait for that."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_STOP_TIMEOUT)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Treat a request to end as Ctrl-C, so that the table is printed; a second one, as timeout sends it, is ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


# Reporting


def read_counts(output: str) -> Counts | None:
    """Find how many tests passed and failed.

    Args:
        output: what an environment printed.

    Returns:
        What its last line of the form "N passed, N failed", or else pytest's last summary, says; errors are failures,
        and what is skipped or expected to fail is neither.  None if there is no such line.
    """
    for raw in reversed(re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines()):
        line = raw.strip()
        if match := re.fullmatch(r"(\d+) passed, (\d+) failed", line):
            return Counts(int(match[1]), int(match[2]))
        if match := re.fullmatch(r"=*\s*(\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s(?: \([\d:, days]+\))?\s*=*", line):
            numbers: dict[str, int] = {}
            for part in match[1].split(", "):
                number, word = part.split()
                numbers[word.rstrip("s")] = int(number)
            return Counts(numbers.get("passed", 0), numbers.get("failed", 0) + numbers.get("error", 0))
    return None


def read_failures(output: str) -> list[str]:
    """Find what failed.

    Args:
        output: what an environment printed.

    Returns:
        The lines that name a test, of pytest's short summary or of ``python -m compat``, each followed by what came
        of it when it was run again and how that ended; the last lines if none does.
    """
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines()
    found: list[str] = []
    for i, line in enumerate(lines):
        if re.match(r"(FAILED|ERROR) \S+::|REGRESSION ", line):
            found.append(line)
        if line.startswith("REGRESSION "):
            below = [x for x in takewhile(lambda x: x.startswith(" "), lines[i + 1 :]) if x.strip()]
            found += dict.fromkeys(below[:1] + below[-_LAST_OF_EACH:])
    return [line.rstrip() for line in found[:_MOST_NAMED] or [x for x in lines if x.strip()][-_LAST_LINES:]]


def report(
    results: Sequence[Result], missing: Mapping[str, str], logs: Path, may_be_missing: Collection[str] = ()
) -> int:
    """Print the table, what is missing, what failed where, and the last line.

    Args:
        results: what came of each environment.
        missing: why an interpreter could not be had, by its name.
        logs: where the output of each environment is.
        may_be_missing: those of which that is no error.

    Returns:
        The exit status.
    """
    print("\n===== results")
    rows = [("environment", "interpreter", "result", "passed", "failed", "seconds")]
    for one in results:
        counts = (str(one.counts.passed), str(one.counts.failed))
        rows.append((one.env, one.python, one.status, *counts, f"{one.seconds:.0f}"))
    print_rows(rows)
    for name, reason in missing.items():
        print(f"{'skipped' if name in may_be_missing else 'error'}: the interpreter {name} is missing: {reason}")
    for one in results:
        log = logs / f"{one.env}.log"
        if one.status == FAILED and log.exists():
            print(f"\n{one.env}:")
            for line in read_failures(log.read_text(encoding="utf-8", errors="replace")):
                print(f"  {line[:_WIDEST]}")
    if left_out := [one.env for one in results if one.status == NO_TIME]:
        print(f"there was no time for {', '.join(left_out)}")
    print(f"the output of each is in {logs}")
    passed = sum(one.counts.passed for one in results)
    failed = sum(one.counts.failed for one in results)
    print(f"\n{passed} passed, {failed} failed", flush=True)
    if all(one.status == NO_TIME for one in results):
        return 1  # a run of nothing has shown nothing
    return int(any(one.status in (FAILED, MISSING, STOPPED) for one in results))


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first row has the titles, and all have as many cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
