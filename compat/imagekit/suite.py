"""What to run of django-imagekit's tests: all of them, because they are few, and most of them name cache files.

The tests are in the source distribution, without the picture that they work on; any picture will do (``child.py``).
Our own ``extra/test_digests.py`` compares the hashes under install() with those after uninstall().
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

from compat._fetch import index_sdist
from compat._suite import STOCK, MissingInput, Suite
from compat.imagekit.deselected import DESELECTED

VERSION = "6.1.1"
SHA256 = "3d254c163fda1aeb163ea2c79399f9892c12a0c2ce881059e450ad7fe930a017"
"""Of django_imagekit-6.1.1.tar.gz, as the package index has it."""

MODES = {
    "installed": "fastpickle.install(), then imagekit is imported",
    "installed-late": "imagekit is imported, then fastpickle.install()",
}

_NEEDED = {"bs4": "beautifulsoup4", "PIL": "pillow", "pytest": "pytest", "pytest_django": "pytest-django"}
"""Module -> the distribution that has it."""


def prepare(source: Path | None) -> Suite:
    """Look for django-imagekit in the environment, and fetch its tests.

    Args:
        source: must be None; the tests come from the package index.

    Returns:
        The suite.

    Raises:
        MissingInput: django-imagekit or what its tests need is missing, the tests cannot be had, or a source was given.
    """
    if source is not None:
        raise MissingInput("imagekit takes no --source: its tests come from the package index")
    missing = [name for module, name in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if _installed_version() != VERSION:
        missing.insert(0, f"django-imagekit=={VERSION}")
    if missing:
        raise MissingInput(f"django-imagekit's tests need what is not here: pip install {' '.join(missing)}")
    folder = index_sdist("django-imagekit", VERSION, SHA256)
    if not any((folder / "tests").glob("test_*.py")):
        raise MissingInput(f"{folder} has no tests")
    return Suite(
        name="imagekit",
        version=f"django-imagekit {VERSION} with Django {importlib.metadata.version('django')}",
        modes=MODES,
        units=dict.fromkeys((STOCK, *MODES), ("tests",)),
        copy=folder,
        path=(".",),  # the settings are tests.settings
        deselected=DESELECTED,
    )


def _installed_version() -> str | None:
    """Give the version in the environment, if there is one."""
    try:
        return importlib.metadata.version("django-imagekit")
    except importlib.metadata.PackageNotFoundError:
        return None
