"""What a library's entry points give under install(), and how much faster: ``python -m compat._speed SUITE OUTPUT``.

    _realdata.py                         the data
    SUITE/speed.py   entries(data)   ->  name as users write it -> a call without arguments
    here             stock, installed, stock, installed ...  in one process  ->  OUTPUT, a JSON line per entry

The results of the two sides are compared before they are timed: a digest or a pickle that differs is a failure, and is
not timed; nor is what fails on stock, which is none.  With ``--untimed`` behind OUTPUT that is all.  Started by
``_run.py`` when the tests are through, so that nothing else runs beside it.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compat._accelerate import prefer_installed
from compat._realdata import real_data

_ROUNDS = 7
"""Times that each side is timed: the median of seven ratios moves by 2 or 3 % on a busy machine."""

_ROUND_SECONDS = 0.15
"""CPU seconds of one side of a round, about; the first calls, before, take as long again (PyPy's JIT needs them)."""


@dataclass(frozen=True)
class Speed:
    """What is known of one entry point.

    Args:
        entry: its name, as users write it.
        same: whether both sides gave the same; also if there is nothing to compare, because it fails on stock.
        stock: CPU seconds of a call on stock, the median.
        installed: CPU seconds of a call under install(), the median.
        faster: the median of the rounds' ratios, stock / installed; 0 where nothing was timed.
        fails: whether it fails on stock.
    """

    entry: str
    same: bool
    stock: float = 0.0
    installed: float = 0.0
    faster: float = 0.0
    fails: bool = False


def measure(entry: str, call: Callable[[], object], patched: Callable[[], Any], *, timed: bool = True) -> Speed:
    """Compare one entry point stock and installed, and time it, in turns.

    Args:
        entry: its name.
        call: runs it; gives something that can be compared.
        patched: gives the context manager that puts fastpickle in place.
        timed: time it.

    Returns:
        What was measured.
    """
    try:
        stock = call()
    except Exception:
        traceback.print_exc()
        return Speed(entry, same=True, fails=True)
    with patched():
        same = call() == stock
    if not (same and timed):
        return Speed(entry, same=same)
    times = _calls_in(call, _ROUND_SECONDS)
    with patched():
        times = min(times, _calls_in(call, _ROUND_SECONDS))
    rounds = []
    for _ in range(_ROUNDS):
        before = _seconds(call, times)
        with patched():
            rounds.append((before, _seconds(call, times)))
    return Speed(
        entry,
        same=True,
        stock=statistics.median(stock for stock, _ in rounds),
        installed=statistics.median(installed for _, installed in rounds),
        faster=statistics.median(stock / installed for stock, installed in rounds),
    )


def _calls_in(call: Callable[[], object], seconds: float) -> int:
    """Count the calls that are made in some seconds of CPU time; at least one."""
    times = 0
    started = time.process_time()
    while not times or time.process_time() - started < seconds:
        call()
        times += 1
    return times


def _seconds(call: Callable[[], object], times: int) -> float:
    """Time some calls; gives CPU seconds of one."""
    started = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - started) / times


def read_speeds(path: Path) -> list[Speed]:
    """Read what a child has measured.

    Args:
        path: the file; it need not exist.

    Returns:
        One for each entry point that the child came to.
    """
    if not path.exists():
        return []
    return [Speed(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> int:
    """Compare and time the entry points of one suite.

    Returns:
        The exit status, 0.
    """
    suite, output, *options = sys.argv[1:]
    timed = "--untimed" not in options
    prefer_installed()
    patched = importlib.import_module("fastpickle").patched
    entries = importlib.import_module(f"compat.{suite}.speed").entries(real_data())
    with Path(output).open("w", encoding="utf-8") as file:
        for entry, call in entries.items():
            print(json.dumps(asdict(measure(entry, call, patched, timed=timed))), file=file, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
