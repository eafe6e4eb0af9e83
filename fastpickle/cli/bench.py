"""``python -m fastpickle bench``: does fastpickle help with my data, and are the bytes the same?

    --workload, --data, --import --> objects --> _compare, one by one --> _report --> stdout
                                                                     \\-> --json FILE

Without options all workloads are measured; with an object of the user's own only that, unless
workloads are asked for as well. Everything that can be wrong with the input is found out before
the first measurement and ends in one line and exit status 2.

Not for: figures to publish; ``perf-diary/harness.py`` gives each contender its own process.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import importlib
import json
import os
import pickle
import platform
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import fastpickle
from fastpickle._stdlib import HAS_NO_GIL, CPickler
from fastpickle.cli import _compare, _load, _timing, workloads

__all__ = ["add_command", "run"]

FULL = _timing.Plan(sample_seconds=0.020, budget_seconds=1.8, min_rounds=5, max_rounds=15)
"""About 2 s for each object.  No more rounds: each enters ``patched()`` once, and that has its limit (see there)."""

QUICK = _timing.Plan(sample_seconds=0.010, budget_seconds=0.4, min_rounds=3, max_rounds=9)
"""About half a second for each object: a first look."""

DESCRIPTION = """\
Time pickle._Pickler, fastpickle, dill before and after install(), and the C pickler side by side,
and compare the bytes they write.
"""

EPILOG = """\
examples:
  python -m fastpickle bench                             all workloads: about a minute, on PyPy four
  python -m fastpickle bench --quick --data events.json  your own data
  python -m fastpickle bench --import shop.models:CACHE  an object of your program
  python -m fastpickle bench --library joblib.hash       what joblib.Memory waits for, too
  python -m fastpickle bench --workload json_records --protocol 5

A pickle given to --data is loaded, and loading a pickle executes whatever code it names: give only
files that you trust. Likewise --import executes the module.

exit status: 0 bytes identical, 1 bytes differ, 2 the input cannot be used, 130 interrupted
"""


class BenchError(Exception):
    """The benchmark cannot be run; the message is one line that says what to do."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand ``bench``.

    Args:
        commands: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = commands.add_parser(
        "bench",
        help="measure what fastpickle does for the workloads or for your own object",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        action="append",
        default=[],
        help="measure the object in FILE: JSON, JSON lines, or a pickle or a file of joblib's that you trust; "
        "may be repeated",
    )
    parser.add_argument(
        "--import",
        metavar="MODULE:NAME",
        dest="references",
        action="append",
        default=[],
        help="measure an object of your own; NAME may be dotted; may be repeated",
    )
    parser.add_argument(
        "--workload",
        metavar="NAME",
        action="append",
        default=[],
        help="measure this workload; may be repeated (default: all, or none with --data, --import)",
    )
    parser.add_argument(
        "--library",
        metavar="FUNCTION",
        action="append",
        default=[],
        choices=_compare.LIBRARIES,
        help=f"time this before and after install() too: {', '.join(_compare.LIBRARIES)}; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="list the workloads and stop")
    parser.add_argument(
        "--protocol",
        type=int,
        default=pickle.DEFAULT_PROTOCOL,
        metavar="N",
        help=f"pickle protocol, 0 to {pickle.HIGHEST_PROTOCOL} (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, a quarter of the time")
    parser.add_argument("--json", metavar="FILE", help="write all samples to FILE, in seconds")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run ``bench``.

    Args:
        arguments: What the parser of ``add_command`` made of the command line.

    Returns:
        The exit status: 0, 1 if bytes differ, 2 if the input cannot be used.
    """
    if arguments.list:
        width = max(map(len, workloads.WORKLOADS))
        for name in workloads.WORKLOADS:
            print(f"{name:{width}}  {workloads.describe(name)}")
        return 0
    try:
        return _bench(arguments)
    except (BenchError, _load.LoadError, _compare.CannotPickle) as error:
        print(f"fastpickle bench: {error}", file=sys.stderr)
        return 2


def _bench(arguments: argparse.Namespace) -> int:
    """Measure and report.

    Args:
        arguments: The parsed command line.

    Returns:
        The exit status: 0, or 1 if bytes differ.

    Raises:
        BenchError: If an option cannot be used.
        LoadError: If the user's own object cannot be loaded.
        CannotPickle: If an object cannot be pickled without fastpickle either.
    """
    report = _import_report()
    protocol, plan = arguments.protocol, QUICK if arguments.quick else FULL
    if not 0 <= protocol <= pickle.HIGHEST_PROTOCOL:
        raise BenchError(f"no protocol {protocol}; choose 0 to {pickle.HIGHEST_PROTOCOL}")
    if arguments.json is not None:
        _check_writable(arguments.json)
    makers = _choose(arguments)
    _import_libraries(arguments.library)
    notes: list[str] = []
    if CPickler is None and os.environ.get("FASTPICKLE_PURE"):
        notes.append("FASTPICKLE_PURE is set: the C pickler writes no part of what fastpickle and dill dump.")
    elif CPickler is None and HAS_NO_GIL:
        notes.append(
            "There may be no GIL: the C pickler is not asked, unless FASTPICKLE_PURE=0 says that no thread changes "
            "what another one dumps."
        )
    if _compare.HAS_JIT:
        notes.append(
            "Each contender had a process of its own, and was warm."
            if _timing.CAN_FORK
            else "All contenders share one JIT here, which slows the later ones: a system with fork() is fairer."
        )
    results: list[_compare.Result] = []
    with _compare.stock_state(notes) as dill, report.progress(len(makers)) as step:
        dumps = _compare.contenders(dill, arguments.library)
        for name, make in makers.items():
            result = _compare.measure_object(name, make(), dumps, protocol, plan, step(name))
            results.append(result)
    document = _document(results, protocol, plan, dill)
    if arguments.json is not None:
        _write_json(arguments.json, document)
    report.show(results, document, notes)
    return 1 if any(result.broken() for result in results) else 0


def _import_report() -> ModuleType:
    """Import what draws the result, which needs rich.

    Returns:
        The module ``fastpickle.cli._report``.

    Raises:
        BenchError: If rich is not installed.
    """
    try:
        importlib.import_module("rich")
    except ImportError:
        raise BenchError("rich is not installed: pip install 'fastpickle[bench]'") from None
    return importlib.import_module("fastpickle.cli._report")


def _import_libraries(names: list[str]) -> None:
    """Import the libraries whose functions are to be timed.

    Args:
        names: Those of ``_compare.LIBRARIES`` that are wanted.

    Raises:
        BenchError: If one cannot be imported.
    """
    for name in names:
        library = _compare.LIBRARIES[name]
        try:
            importlib.import_module(library)
        except ImportError as error:
            raise BenchError(f"{name}: {_load.one_line(error)}; pip install 'fastpickle[{library}]'") from None


def _choose(arguments: argparse.Namespace) -> dict[str, Callable[[], object]]:
    """Find out what is to be measured.

    Args:
        arguments: The parsed command line.

    Returns:
        Name -> a function that makes the object; the user's own object is loaded already.

    Raises:
        BenchError: If a workload is not known.
        LoadError: If the user's own object cannot be loaded.
    """
    makers: dict[str, Callable[[], object]] = {}
    for name in arguments.workload:
        if name not in workloads.WORKLOADS:
            close = difflib.get_close_matches(name, workloads.WORKLOADS, n=1)
            hint = f"did you mean {close[0]}?" if close else "--list shows those there are"
            raise BenchError(f"no workload {name!r}; {hint}")
        makers[name] = workloads.WORKLOADS[name]
    for path in arguments.data:
        name = os.path.basename(path)
        makers[path if name in makers else name] = partial(_itself, _load.from_file(path))
    for reference in arguments.references:
        makers[reference] = partial(_itself, _load.from_module(reference))
    return makers or dict(workloads.WORKLOADS)


def _itself(obj: object) -> object:
    return obj


def _document(
    results: list[_compare.Result], protocol: int, plan: _timing.Plan, dill: ModuleType | None
) -> dict[str, Any]:
    """Put the whole result into one structure.

    Args:
        results: What was measured.
        protocol: The pickle protocol.
        plan: How long was measured.
        dill: The module dill, or None.

    Returns:
        Only what JSON knows; times in seconds, ratios as original / accelerated.
    """
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "fastpickle": fastpickle.__version__,
        "dill": getattr(dill, "__version__", None),
        "protocol": protocol,
        "plan": dataclasses.asdict(plan),
        "geometric_mean": _compare.geometric_means(results),
        "results": [
            {
                **dataclasses.asdict(result),
                "ratio": {key: result.ratio(key) for key in _compare.RATIO_PAIRS},
            }
            for result in results
        ],
    }


def _check_writable(path: str) -> None:
    """Find out before the measurement whether its result can be written.

    Args:
        path: The file, which need not exist.

    Raises:
        BenchError: If it is a folder, in a folder that does not exist, or not writable.
    """
    try:
        with open(path, "a", encoding="utf-8"):
            pass
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror or error}") from None


def _write_json(path: str, document: dict[str, Any]) -> None:
    """Write the raw result.

    Args:
        path: The file.
        document: What ``_document`` returned.

    Raises:
        BenchError: If the file cannot be written.
    """
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror or error}") from None
