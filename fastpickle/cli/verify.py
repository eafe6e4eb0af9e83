"""``python -m fastpickle verify``: run a program accelerated, and compare every dump of it with stock's.

    SCRIPT or -m MODULE --> install() --> runs as __main__ --> its dumps --> _beside --> log --> report on stderr

What is compared is what the program does, with its own classes, hooks and files; ``bench`` compares one object.

Not for: times, which the comparing spoils.
"""

from __future__ import annotations

import _io
import argparse
import atexit
import builtins
import collections
import contextlib
import gc
import importlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import fastpickle
from fastpickle.cli._compare import DIFFERENT
from fastpickle.cli._records import NOT_COMPARED, PATIENCE, RESULTS, Record, read_log

if TYPE_CHECKING:
    from fastpickle.cli._beside import Beside  # which can be imported only where it works

__all__ = ["add_command", "report", "run", "why_not"]

EXIT_INTERRUPTED: Final = 130
"""128 + SIGINT, as a shell reports a program that Ctrl-C ended."""

SHOWN: Final = 10
"""Differences that are shown; the others are only counted."""

DESCRIPTION: Final = """\
Run a program with fastpickle installed, and compare what each of its dumps writes with what stock writes.

As a dump begins, copies of the process are made, in one of which stock dumps the same object; so it costs some ten
milliseconds a dump, and what stock does to the objects does not reach the program. What a copy writes to files, pipes
and sockets is thrown away. Whatever else your code does outside of the process while it is pickled, it does once more,
at the same time: do not use it where hooks write to a database, or to memory that processes share.
"""

EPILOG: Final = """\
examples:
  python -m fastpickle verify app.py --port 80         a script, with its arguments
  python -m fastpickle verify -m pytest tests          a test suite
  python -m fastpickle verify --every 20 -m pytest     one dump in twenty, where there are many

It sees fastpickle.dumps, and the picklers that install() accelerates: pickle._Pickler and what inherits from it (dill,
joblib, datasets, ...), in this process and in those that it forks; not in those that are started anew, as by
multiprocessing's "spawn" or pytest -n. It compares what is written, in which pieces a file of Python's gets it, buffers
out of band, and errors; not how often hooks are called. Pipes, sockets, and files that are locked or appended to, are
compared as files of Python's. Who waits for any process that ends (os.wait, SIGCHLD) sees the copies.
It needs Linux, and CPython 3.12 or later.

exit status: 1 if a dump differs from stock's, whatever the program's; else the program's own; but 2 for 0 if no dump
was compared. A program that ends by os._exit() or by a signal has no report; --log has what came before.
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
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="compare one dump in N, at random (default: each)"
    )
    parser.add_argument("--log", metavar="FILE", help="write a line of JSON for each dump to FILE")
    parser.add_argument(
        "--timeout",
        type=float,
        default=PATIENCE,
        metavar="SECONDS",
        help="how long to wait for stock (default: %(default)g)",
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
    try:
        log = Path(arguments.log).absolute() if arguments.log else _temporary_log()  # the program may go elsewhere
        log.write_bytes(b"")
        beside = _beside.Beside(log, arguments.every, arguments.timeout)
        fastpickle.install()
        beside.start()
    except (OSError, RuntimeError) as exc:
        print(f"fastpickle verify: {exc}", file=sys.stderr)
        return 2
    # What is registered first runs last: behind the program's threads, its processes, and what it registers itself.
    ended: list[int] = []
    atexit.register(_end, os.getpid(), beside, log, ended, is_kept=bool(arguments.log))
    try:
        status = _run_program(arguments.program, arguments.arguments, arguments.is_module)
    except _NoProgramError as exc:
        print(f"fastpickle verify: {exc}", file=sys.stderr)
        status = 2
    ended.append(status)
    return status


def _temporary_log() -> Path:
    fd, name = tempfile.mkstemp(prefix="fastpickle-")
    os.close(fd)
    return Path(name)


def _end(pid: int, beside: Beside, log: Path, ended: list[int], is_kept: bool) -> None:
    """Report, at the end of the process that was started; one that the program has forked does nothing.

    Args:
        pid: the process.
        beside: what has compared.
        log: where it has written what came of it.
        ended: the exit status of the program.
        is_kept: the log is wanted.
    """
    if os.getpid() != pid:
        return
    beside.stop()
    records: list[Record] = []
    trouble = []
    if beside.lost:
        trouble.append(f"{beside.lost} of the dumps could not be written to {log}")
    try:
        records = read_log(log)
        if not is_kept:
            log.unlink()
    except (OSError, ValueError) as exc:
        trouble.append(f"{log} cannot be read: {exc}")
    lines = ["", *report(records), *(f"fastpickle verify: {line}" for line in trouble), ""]
    with contextlib.suppress(OSError):
        _flush_all()
        os.write(2, "\n".join(lines).encode())
    if beside.is_different or any(record.result == DIFFERENT for record in records):
        os._exit(1)  # an exit status cannot be changed otherwise any more
    if ended == [0] and (trouble or all(record.result == NOT_COMPARED for record in records)):
        os._exit(2)


def _flush_all() -> None:
    """Flush the program's files, as Python does when it ends."""
    for obj in gc.get_objects():
        if _io._IOBase in type(obj).__mro__:
            with contextlib.suppress(Exception):  # it is closed, or full
                obj.flush()


def _why_unusable(arguments: argparse.Namespace) -> str | None:
    """Say what is wrong with the arguments; None if nothing is."""
    if arguments.every < 1:
        return f"--every {arguments.every}: one dump in how many? At least 1"
    if not 0 < arguments.timeout < 1e6:
        return f"--timeout {arguments.timeout:g}: must be a number of seconds"
    if not arguments.is_module and not Path(arguments.program).is_file():
        return f"{arguments.program}: there is no such file; for a module it is -m {arguments.program}"
    return None


class _NoProgramError(Exception):
    """There is no such program; the message is one line."""


def _run_program(program: str, arguments: Sequence[str], is_module: bool) -> int:
    """Run a program as ``__main__``, as Python would.

    Args:
        program: the file, or the name of the module.
        arguments: what it is given.
        is_module: it is a module.

    Returns:
        The exit status that it would have had.

    Raises:
        _NoProgramError: there is none.
    """
    sys.argv[:] = [program, *arguments]
    try:
        code, main = _module(program) if is_module else _script(program)
        _kept.append(sys.modules["__main__"])
        sys.modules["__main__"] = main  # for good: threads and functions for the end may outlive the program
        exec(code, main.__dict__)
    except _NoProgramError:
        raise
    except SystemExit as exc:
        if exc.code is None or isinstance(exc.code, int):
            return exc.code or 0
        print(exc.code, file=sys.stderr)
        return 1
    except BaseException as exc:
        trace = exc.__traceback__
        sys.excepthook(type(exc), exc, trace and trace.tb_next)  # without the line of ours
        return EXIT_INTERRUPTED if isinstance(exc, KeyboardInterrupt) else 1
    return 0


_kept: list[types.ModuleType] = []
"""What was ``__main__``: a module that nobody has is emptied."""


def _main_module(file: str, loader: Any) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__=file, __cached__=None, __loader__=loader)
    return main


def _script(program: str) -> tuple[types.CodeType, types.ModuleType]:
    """Make ready to run a file."""
    file = os.path.abspath(program)
    if not getattr(sys.flags, "safe_path", False):  # from 3.11 on
        sys.path[0] = os.path.dirname(os.path.realpath(program))
    with io.open_code(file) as source:
        code = compile(source.read(), file, "exec", dont_inherit=True)
    return code, _main_module(file, importlib.machinery.SourceFileLoader("__main__", file))


def _module(name: str) -> tuple[types.CodeType, types.ModuleType]:
    """Make ready to run a module."""
    try:
        spec: Any = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as exc:
        if exc.name is None or not f"{name}.__main__".startswith(exc.name):
            raise
        spec = None
    get_code = getattr(spec and spec.loader, "get_code", None)
    code = get_code and get_code(spec.name)
    if not code:
        raise _NoProgramError(f"{name}: there is no such module, or it cannot be run")
    main = _main_module(spec.origin, spec.loader)
    main.__spec__, main.__package__ = spec, spec.parent
    sys.argv[0] = spec.origin
    return code, main


def report(records: Sequence[Record]) -> list[str]:
    """Say what was found out.

    Args:
        records: one for each dump.

    Returns:
        Lines: the differences, a table of the picklers, and the verdict, which is the last.
    """
    lines = []
    different = [record for record in records if record.result == DIFFERENT]
    for record in different[:SHOWN]:
        lines += [f"DIFFERENT: {record.pickler}", *(f"  {line}" for line in (*record.where, *record.said)), ""]
    if len(different) > SHOWN:
        lines += [f"... and {len(different) - SHOWN} more", ""]
    if not records:
        return ["fastpickle verify: no dump was seen"]
    results = collections.Counter((record.pickler, record.result) for record in records)
    picklers = sorted({record.pickler for record in records})
    width = max(map(len, picklers))
    lines += [f"{'':{width}}  " + "  ".join(f"{result:>12}" for result in RESULTS)]
    for pickler in picklers:
        lines += [f"{pickler:{width}}  " + "  ".join(f"{results[pickler, result]:12}" for result in RESULTS)]
    reasons = collections.Counter(record.why for record in records if record.why)
    lines += ["", *(f"not compared: {count}: {why}" for why, count in reasons.most_common())]
    size = sum(record.size for record in records)
    compared = len(records) - reasons.total()
    verdict = f"{len(different)} DIFFERENT" if different else "none different" if compared else "NOTHING COMPARED"
    return [*lines, f"{compared} of {len(records)} dumps compared with stock's, {size:,} bytes: {verdict}"]
