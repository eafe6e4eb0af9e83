"""What to run of joblib's tests: the files that test what sits on ``pickle._Pickler``, or is keyed by it.

    hashing.py        Hasher, NumpyHasher              test_hashing
    numpy_pickle.py   NumpyPickler, under joblib.dump  test_numpy_pickle, test_numpy_pickle_compat, ..._utils
    memory.py         caches: keys by hash, results    test_memory, test_memory_async, test_store_backends
                      by dump

The others take minutes, and what they pickle goes through the C pickler (processes, by loky and cloudpickle).
There is nothing to run on PyPy: numpy has no wheels for it, and cloudpickle, which joblib imports, cannot be imported.
"""

from __future__ import annotations

from pathlib import Path

from compat._fetch import installed_folder, need
from compat._suite import STOCK, MissingInput, Suite
from compat.joblib.deselected import DESELECTED
from compat.scientific.pins import HAS_WHEELS, JOBLIB, NUMPY

VERSION = JOBLIB

MODES = {
    "installed": "fastpickle.install(), then joblib is imported",
    "installed-late": "joblib is imported, and copies the dispatch table, then fastpickle.install()",
}

_UNITS = (
    "test_hashing.py",
    "test_memory.py",
    "test_memory_async.py",
    "test_numpy_pickle.py",
    "test_numpy_pickle_compat.py",
    "test_numpy_pickle_utils.py",
    "test_store_backends.py",
)


def prepare(source: Path | None) -> Suite:
    """Find joblib and its tests.

    Args:
        source: must be None; joblib's tests come with joblib.

    Returns:
        The suite.

    Raises:
        MissingInput: joblib or what its tests need is not installed, or a source was given.
    """
    if source is not None:
        raise MissingInput("joblib takes no --source: its tests are inside its wheel")
    if not HAS_WHEELS:
        raise MissingInput("numpy has no wheels for this interpreter")
    need("joblib", {"joblib": VERSION, "numpy": NUMPY, "pytest": None, "pytest-asyncio": None})
    package = installed_folder("joblib", VERSION)
    if package is None:
        raise MissingInput(f"joblib {VERSION} is installed, but has no importable package joblib")
    for file in _UNITS:
        if not (package / "test" / file).exists():
            raise MissingInput(f"{package} has no test/{file}")
    return Suite(
        name="joblib",
        version=f"joblib {VERSION}, numpy {NUMPY}",
        modes=MODES,
        units=dict.fromkeys((STOCK, *MODES), _UNITS),
        deselected=DESELECTED,
    )
