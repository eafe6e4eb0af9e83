"""Tests of dill that may fail accelerated although they pass on stock."""

from __future__ import annotations

import sys

from compat._suite import Deselection

DESELECTED: tuple[Deselection, ...] = (
    Deselection(
        test="test_threads.py::test_run_thread()",
        modes=("installed", "installed-late", "backend"),
        reason="it asks whether a thread that has nothing to do still runs, twice: stock fails 1 time in 5 on 3.13+",
        link="https://github.com/uqfoundation/dill/blob/dill-0.4.1/dill/tests/test_threads.py",
        applies=sys.version_info >= (3, 13),
        sometimes=True,
    ),
    Deselection(
        test="test_registered.py",
        modes=("installed", "installed-late", "backend"),
        reason="a proxy whose object a collection takes in the middle is not copied; when PyPy collects depends on the "
        "size of the processor's cache, and stock fails at other sizes (PYPY_GC_NURSERY=200M)",
        link="https://github.com/uqfoundation/dill/blob/dill-0.4.1/dill/_objects.py",
        applies=sys.implementation.name == "pypy",
        sometimes=True,
    ),
)
