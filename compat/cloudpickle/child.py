"""Run one of cloudpickle's test files with pytest, as upstream does, and record each test.

The processes that the tests start are left stock: what they get from the accelerated side has to be readable there.

PyPy 8 cannot import cloudpickle, because its ``pickle.Pickler`` has no ``dispatch`` to copy.  There cloudpickle on
``pickle._Pickler``, for which its code for PyPy was written, is what fastpickle is compared with.
"""

from __future__ import annotations

import importlib
import os
import pickle
import platform
from pathlib import Path

from compat._accelerate import install, replace
from compat._pytest import run_pytest
from compat._record import Recorder

_FOR_GRANDCHILDREN = str(Path(__file__).resolve().parent / "grandchild")


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one test file.

    Args:
        unit: the file's path in the working directory, which is a copy of cloudpickle's source.
        mode: "stock", "installed" or "backend".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 0 if pytest ran the file to its end.
    """
    if mode == "installed":
        install()
    if platform.python_implementation() == "PyPy" and not hasattr(pickle.Pickler, "dispatch"):
        os.environ["PYTHONPATH"] = os.pathsep.join([_FOR_GRANDCHILDREN, os.environ["PYTHONPATH"]])
        if mode != "backend":
            _import_on_pickle_py()
    if mode == "backend":
        names = {"Pickler": "Pickler", "CloudPickler": "Pickler", "dump": "dump", "dumps": "dumps"}
        replace("fastpickle.backends.cloudpickle", names, ("cloudpickle", "cloudpickle.cloudpickle"))
    return run_pytest([unit], tests, recorder)


def _import_on_pickle_py() -> None:
    """Import cloudpickle with ``pickle._Pickler`` as the class that it subclasses."""
    original = pickle.Pickler
    pickle.Pickler = pickle._Pickler
    try:
        importlib.import_module("cloudpickle")
    finally:
        pickle.Pickler = original
