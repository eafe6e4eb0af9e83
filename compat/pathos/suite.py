"""What to run of pathos's tests: every ``test_*.py`` of the pinned version, with its relatives at the same age.

They are few, and all of them send functions, arguments and results to workers:

    ProcessPool    multiprocess, which pickles with dill
    ParallelPool   ppft, which sends functions as source and arguments by dill
    ThreadPool     nothing is pickled

``test_maps.py`` has no main block: it is one test, that of its file.
"""

from __future__ import annotations

from pathlib import Path

from compat._fetch import installed_folder, need
from compat._suite import STOCK, MissingInput, Suite
from compat.pathos.deselected import DESELECTED

VERSION = "0.3.5"

NEEDED = {"pathos": VERSION, "multiprocess": "0.70.19", "dill": "0.4.1", "ppft": "1.7.8", "pox": "0.3.7"}
"""Distribution -> its version: those that pathos 0.3.5 asks for at least."""

MODES = {
    "installed": "fastpickle.install(), then pathos is imported",
    "installed-late": "pathos is imported, with dill and multiprocess, then fastpickle.install()",
}


def prepare(source: Path | None) -> Suite:
    """Find pathos and its tests.

    Args:
        source: must be None; pathos's tests come with pathos.

    Returns:
        The suite.

    Raises:
        MissingInput: pathos or what it stands on is not installed at its pinned version, or a source was given.
    """
    if source is not None:
        raise MissingInput("pathos takes no --source: its tests are inside its wheel")
    need("pathos", NEEDED)
    package = installed_folder("pathos", VERSION)
    units = tuple(sorted(file.name for file in (package / "tests").glob("test_*.py"))) if package else ()
    if package is None or not units:
        raise MissingInput(f"pathos {VERSION} is installed without its tests")
    return Suite(
        name="pathos",
        version=f"pathos {VERSION}",
        modes=MODES,
        units=dict.fromkeys((STOCK, *MODES), units),
        copy=package / "tests",
        deselected=DESELECTED,
    )
