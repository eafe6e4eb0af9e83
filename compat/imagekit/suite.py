"""What to run of django-imagekit's tests: all of them, because they are few, and most of them name cache files.

The tests are in the source distribution, without the picture that they work on; any picture will do (``child.py``).
Our own ``extra/test_digests.py`` compares the hashes under install() with those after uninstall().
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from compat._fetch import index_sdist, need
from compat._suite import STOCK, MissingInput, Suite
from compat.imagekit.deselected import DESELECTED

VERSION = "6.1.1"
SHA256 = "3d254c163fda1aeb163ea2c79399f9892c12a0c2ce881059e450ad7fe930a017"
"""Of django_imagekit-6.1.1.tar.gz, as the package index has it."""

MODES = {
    "installed": "fastpickle.install(), then imagekit is imported",
    "installed-late": "imagekit is imported, then fastpickle.install()",
}

_NEEDED = ("beautifulsoup4", "pillow", "pytest", "pytest-django")
"""The distributions that the tests import."""


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
    need("imagekit", {"django-imagekit": VERSION, **dict.fromkeys(_NEEDED)})
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
