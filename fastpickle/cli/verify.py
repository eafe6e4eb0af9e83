"""``python -m fastpickle verify``: run a program accelerated, and compare every dump of it with stock's.

    SCRIPT or -m MODULE --> install() --> runs as __main__ --> its dumps --> _beside --> log --> report on stderr

What is compared is what the program does, with its own classes, hooks and files; ``bench`` compares one object.

Not for: times, which the comparing spoils.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import fastpickle

if TYPE_CHECKING:
    from fastpickle.cli._beside import Record

__all__ = ["add_command", "report", "run", "why_not"]

EXIT_INTERRUPTED: Final = 130
"""As a shell reports a program that Ctrl-C ended."""

RESULTS: Final = ("identical", "different", "not compared")
"""What can come of a dump, in the order of the columns."""

SHOWN: Final = 10
"""Differences that are shown; the others are only counted."""

DESCRIPTION: Final = """\
Run a program with fastpickle installed, and compare what each of its dumps writes with what stock writes.

As a dump begins, a copy of the process is made, in which stock dumps the same object; so it costs some milliseconds
a dump, and what stock does to the objects does not reach the program. What a copy writes to files, pipes and sockets
is thrown away; whatever else your code does outside of the process while it is pickled, it does once more.
"""

EPILOG: Final = """\
examples:
  python -m fastpickle verify app.py --port 80         a script, with its arguments
  python -m fastpickle verify -m pytest tests          a test suite
  python -m fastpickle verify --every 20 -m pytest     one dump in twenty, where there are many

It sees the picklers that install() accelerates: pickle._Pickler and what inherits from it (dill, joblib, datasets,
...), in this process and in those that it forks; not in those that are started anew, as by multiprocessing's "spawn".
It needs Linux, and CPython 3.12 or later.

exit status: 1 if a dump differs from stock's; 2 if nothing can be compared here; else the program's own
"""


def why_not() -> str | None:
    """Say why nothing can be compared here; None if it can."""
    if sys.implementation.name != "cpython" or sys.version_info < (3, 12):
        return "needs CPython 3.12 or later, for sys.monitoring"
    if sys.platform != "linux":
        return "needs Linux, for a copy of the process with files of its own"
    return None


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand ``verify``.

    Args:
        commands: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = commands.add_parser(
        "verify",
        help="run your program, and compare each of its dumps with stock's",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [--every N] [--log FILE] [--timeout SECONDS] (SCRIPT | -m MODULE) [ARGUMENT ...]",
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module, as python -m does")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="compare one dump in N (default: each)")
    parser.add_argument("--log", metavar="FILE", help="add a line of JSON for each dump to FILE")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="how long to wait for stock (default: 60)"
    )
    parser.add_argument("program", metavar="SCRIPT", help="what to run")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="what it is given")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run ``verify``.

    Args:
        arguments: What the parser of ``add_command`` made of the command line.

    Returns:
        The exit status: 1 if a dump differs, 2 if nothing can be compared, else the program's.
    """
    trouble = why_not() or _why_unusable(arguments)
    if trouble:
        print(f"fastpickle verify: {trouble}", file=sys.stderr)
        return 2
    _beside = importlib.import_module("fastpickle.cli._beside")  # which only where it works can be imported
    pid = os.getpid()
    log = Path(arguments.log or tempfile.mkstemp(prefix="fastpickle-")[1]).absolute()  # the program may go elsewhere
    log.write_bytes(b"")
    beside = _beside.Beside(log, arguments.every, arguments.timeout)
    fastpickle.install()
    beside.start()
    try:
        status = _run_program(arguments.program, arguments.arguments, arguments.is_module)
    finally:
        beside.stop()
    if os.getpid() != pid:  # the program has forked, and this is not the process that was started
        return status
    records = _beside.read_log(log)
    if not arguments.log:
        log.unlink()
    print("", *report(records), sep="\n", file=sys.stderr)
    return 1 if any(record.said for record in records) else status


def _why_unusable(arguments: argparse.Namespace) -> str | None:
    """Say what is wrong with the arguments; None if nothing is."""
    if arguments.every < 1:
        return f"--every {arguments.every}: one dump in how many? At least 1"
    if not arguments.timeout > 0:
        return f"--timeout {arguments.timeout:g}: must be more than 0 seconds"
    if arguments.log and not Path(arguments.log).absolute().parent.is_dir():
        return f"--log {arguments.log}: there is no such folder"
    if not arguments.is_module and not Path(arguments.program).exists():
        return f"{arguments.program}: there is no such file; for a module it is -m {arguments.program}"
    return None


def _run_program(program: str, arguments: Sequence[str], is_module: bool) -> int:
    """Run a program as ``__main__``.

    Args:
        program: the file, or the name of the module.
        arguments: what it is given.
        is_module: it is a module.

    Returns:
        The exit status that it would have had.
    """
    sys.argv[:] = [program, *arguments]
    try:
        if is_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(program).resolve().parent)
            runpy.run_path(program, run_name="__main__")
    except SystemExit as exc:
        if exc.code is None or isinstance(exc.code, int):
            return exc.code or 0
        print(exc.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def report(records: Sequence[Record]) -> list[str]:
    """Say what was found out.

    Args:
        records: one for each dump.

    Returns:
        Lines: the differences, a table of the picklers, and the verdict, which is the last.
    """
    lines = []
    different = [record for record in records if record.said]
    for record in different[:SHOWN]:
        lines += [f"DIFFERENT: {record.pickler}", *(f"  {line}" for line in (*record.where, *record.said)), ""]
    if len(different) > SHOWN:
        lines += [f"... and {len(different) - SHOWN} more", ""]
    if not records:
        return [*lines, "fastpickle verify: no dump was seen"]
    results = collections.Counter((record.pickler, record.result) for record in records)
    picklers = sorted({record.pickler for record in records})
    width = max(map(len, picklers))
    lines += [f"{'':{width}}  " + "  ".join(f"{result:>12}" for result in RESULTS)]
    for pickler in picklers:
        lines += [f"{pickler:{width}}  " + "  ".join(f"{results[pickler, result]:12}" for result in RESULTS)]
    reasons = collections.Counter(record.why for record in records if record.why)
    lines += ["", *(f"not compared: {count}: {why}" for why, count in reasons.most_common())]
    size = sum(record.size for record in records)
    verdict = f"{len(different)} DIFFERENT" if different else "none different"
    compared = len(records) - reasons.total()
    return [*lines, f"{compared} of {len(records)} dumps compared with stock's, {size:,} bytes: {verdict}"]
