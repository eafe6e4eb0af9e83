"""Time one contender on one workload with pyperf; started by ``harness.py``, once for each pair.

    harness.py --> this script --> pyperf's worker processes (this script again) --> raw JSON

By hand:

    python perf-diary/contender.py --contender stock --workload json_records -o out.json

A contender imports and installs only what it needs, in its own processes, so none can change
another: dill leaves entries in the dispatch table of ``pickle._Pickler`` when it is imported.
"""

from __future__ import annotations

import argparse
import importlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pyperf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fastpickle.cli import workloads
from fastpickle.cli._timing import CPU_CLOCK

Dumps = Callable[[object], bytes]


def stock() -> Dumps:
    """``pickle._Pickler`` of the running Python."""
    return cast(Dumps, pickle._dumps)  # type: ignore[attr-defined]


def fast() -> Dumps:
    """``fastpickle.dumps``, with nothing installed."""
    return cast(Dumps, importlib.import_module("fastpickle").dumps)


def dill() -> Dumps:
    """``dill.dumps``, with nothing installed."""
    return cast(Dumps, importlib.import_module("dill").dumps)


def dill_installed() -> Dumps:
    """``dill.dumps`` after ``fastpickle.install()``."""
    dumps = dill()
    importlib.import_module("fastpickle").install()
    return dumps


def c_pickle() -> Dumps:
    """``pickle.dumps``, the C pickler."""
    return pickle.dumps


def cloudpickle() -> Dumps:
    """``cloudpickle.dumps``, which sits on the C pickler; on PyPy 8 only our backend can import it, without that."""
    if sys.implementation.name == "pypy":
        importlib.import_module("fastpickle.backends.cloudpickle")
    return cast(Dumps, importlib.import_module("cloudpickle").dumps)


CONTENDERS: dict[str, Callable[[], Dumps]] = {
    "stock": stock,
    "fastpickle": fast,
    "dill": dill,
    "dill_installed": dill_installed,
    "c": c_pickle,
    "cloudpickle": cloudpickle,
}
"""Name -> a function that prepares the process and returns what is timed."""


def cpu_seconds(loops: int, dumps: Dumps, obj: object) -> float:
    """Dump an object several times.

    Args:
        loops: How many times; pyperf decides.
        dumps: The contender.
        obj: The object.

    Returns:
        Seconds of CPU time for all, so that other programs on the machine take nothing away.
    """
    start = CPU_CLOCK()
    for _ in range(loops):
        dumps(obj)
    return CPU_CLOCK() - start


def pass_to_worker(command: list[str], arguments: argparse.Namespace) -> None:
    """Hand our own options on to pyperf's worker processes.

    Args:
        command: The worker's command line, which is extended.
        arguments: The options of this process.
    """
    command += ["--contender", arguments.contender, "--workload", arguments.workload]


def main() -> None:
    """Time one pair, as pyperf's options say."""
    runner = pyperf.Runner(add_cmdline_args=pass_to_worker)
    runner.argparser.add_argument("--contender", choices=CONTENDERS, required=True)
    runner.argparser.add_argument("--workload", choices=workloads.WORKLOADS, required=True)
    arguments = runner.parse_args()
    dumps = CONTENDERS[arguments.contender]()
    obj = workloads.build(arguments.workload)
    runner.metadata["contender"] = arguments.contender
    runner.metadata["workload"] = arguments.workload
    runner.metadata["protocol"] = pickle.DEFAULT_PROTOCOL
    runner.bench_time_func(arguments.workload, cpu_seconds, dumps, obj)


if __name__ == "__main__":
    main()
