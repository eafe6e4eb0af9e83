"""The child process: ``python -m compat._child SUITE MODE UNIT OUTCOMES [--test ID ...]``, started by ``_children.py``.

    1. find fastpickle: an installed one goes before the sources beside this package
    2. SUITE/child.py: put MODE in place, run UNIT, record each test
    3. check that MODE was in place to the end

Not for use by hand; ``python -m compat`` prints the command that repeats one test.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import sys
from pathlib import Path

from compat._accelerate import is_in_place, prefer_installed
from compat._record import Recorder
from compat._suite import STOCK


def main() -> int:
    """Run one unit in one mode.

    Returns:
        The exit status: 0 if the unit ran to its end, whatever its tests did.
    """
    parser = argparse.ArgumentParser(prog="python -m compat._child", description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("mode")
    parser.add_argument("unit")
    parser.add_argument("outcomes", type=Path)
    parser.add_argument("--test", action="append", default=[])
    parser.add_argument("--timeout", type=float, default=300.0)
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.timeout, exit=True)
    child = importlib.import_module(f"compat.{options.suite}.child")
    prefer_installed()
    status = child.run(options.unit, options.mode, frozenset(options.test), Recorder(options.outcomes))
    if options.mode == STOCK and "fastpickle" in sys.modules:
        print("the stock run has imported fastpickle, so it is no stock run")
        return 3
    if options.mode.startswith("installed") and not is_in_place():
        print("fastpickle was uninstalled on the way, so the run was not accelerated to its end")
        return 3
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
