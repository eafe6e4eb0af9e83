"""What to run on numpy's and pandas' objects: the files in ``tests``, which are our own.

Their pickles pass through many reduces and states in C and in Python, in shapes that no suite of dill or joblib has.
"""

from __future__ import annotations

from pathlib import Path

from compat._fetch import need
from compat._suite import STOCK, MissingInput, Suite
from compat.scientific.deselected import DESELECTED
from compat.scientific.pins import DILL, HAS_WHEELS, JOBLIB, NUMPY, PANDAS

MODES = {
    "installed": "fastpickle.install(), then numpy, pandas, dill and joblib are imported",
    "installed-late": "they are imported, then fastpickle.install()",
}

_TESTS = Path(__file__).parent / "tests"
_UNITS = ("test_objects.py", "test_import_order.py")


def prepare(source: Path | None) -> Suite:
    """Look for the packages.

    Args:
        source: must be None; the tests are here.

    Returns:
        The suite.

    Raises:
        MissingInput: a package is missing or has another version, or a source was given.
    """
    if source is not None:
        raise MissingInput("scientific takes no --source: its tests are our own")
    if not HAS_WHEELS:
        raise MissingInput("numpy and pandas have no wheels for this interpreter")
    need("scientific", {"numpy": NUMPY, "pandas": PANDAS, "dill": DILL, "joblib": JOBLIB, "pytest": None})
    return Suite(
        name="scientific",
        version=f"numpy {NUMPY} and pandas {PANDAS}, through dill {DILL} and joblib {JOBLIB}",
        modes=MODES,
        units=dict.fromkeys((STOCK, *MODES), _UNITS),
        copy=_TESTS,
        deselected=DESELECTED,
    )
