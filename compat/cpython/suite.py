"""What to run of the interpreter's own tests; they come with the interpreter, so there is nothing to fetch."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path

from compat._suite import STOCK, MissingInput, Suite
from compat.cpython.deselected import DESELECTED

_PICKLE = "test.test_pickle"
_UNITS = (_PICKLE, "test.test_pickletools", "test.test_copy", "test.test_copyreg", "test.test_shelve")

MODES = {
    "bound": "test_pickle with pickle._Pickler replaced by fastpickle.Pickler wherever it is used",
    "installed": "test_pickle, test_pickletools, test_copy, test_copyreg and test_shelve under install()",
}


def prepare(source: Path | None) -> Suite:
    """Look for the tests in the running interpreter.

    Args:
        source: must be None; other tests than the interpreter's own would not fit it.

    Returns:
        The suite.

    Raises:
        MissingInput: the interpreter has no ``test`` package, or a source was given.
    """
    if source is not None:
        raise MissingInput("cpython takes no --source: it runs the tests that come with the interpreter")
    if not _has_tests():
        raise MissingInput("this interpreter has no test.test_pickle (install the package with its test suite)")
    return Suite(
        name="cpython",
        version=f"{platform.python_implementation()} {platform.python_version()}'s own tests",
        modes=MODES,
        units={STOCK: _UNITS, "bound": (_PICKLE,), "installed": _UNITS},
        deselected=DESELECTED,
    )


def _has_tests() -> bool:
    """Say whether the interpreter comes with test_pickle and what it is built on."""
    try:
        return all(importlib.util.find_spec(name) for name in (_PICKLE, "test.pickletester", "test.support"))
    except ImportError:
        return False
