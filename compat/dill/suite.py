"""What to run of dill's tests: every ``test_*.py`` of the pinned version, from the environment or from the index."""

from __future__ import annotations

from pathlib import Path

from compat._fetch import index_folder, installed_folder
from compat._suite import STOCK, MissingInput, Suite
from compat.dill.deselected import DESELECTED

VERSION = "0.4.1"

MODES = {
    "installed": "fastpickle.install(), then dill is imported",
    "installed-late": "dill is imported, then fastpickle.install()",
    "backend": "dill's Pickler, dump and dumps replaced by fastpickle.backends.dill's",
}


def prepare(source: Path | None) -> Suite:
    """Find dill and its tests.

    Args:
        source: must be None; dill's tests come with dill.

    Returns:
        The suite.

    Raises:
        MissingInput: dill can be had neither from the environment nor from the index, or a source was given.
    """
    if source is not None:
        raise MissingInput("dill takes no --source: its tests are inside its wheel")
    package = installed_folder("dill", VERSION)
    path: tuple[str, ...] = ()
    if package is None:
        folder = index_folder("dill", VERSION)
        package = folder / "dill"
        path = (str(folder),)
    units = tuple(sorted(file.name for file in (package / "tests").glob("test_*.py")))
    if not units:
        raise MissingInput(f"{package} has no tests")
    return Suite(
        name="dill",
        version=f"dill {VERSION}",
        modes=MODES,
        units=dict.fromkeys((STOCK, *MODES), units),
        copy=package / "tests",
        path=path,
        deselected=DESELECTED,
    )
