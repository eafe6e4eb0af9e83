"""What to run of cloudpickle's tests: the three test files of its source tarball, with the cloudpickle beside them.

No file on the package index has the tests.  Debian's source package does: its orig tarball is upstream's own release.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from compat._fetch import debian_tarball, unpack
from compat._suite import STOCK, MissingInput, Suite
from compat.cloudpickle.deselected import DESELECTED

VERSION = "3.1.2"
SHA256 = "7acae4307459d436eee740eea52ec9056f37b8b907d6aef7b0a97a1ccff90ff9"
"""Of cloudpickle_3.1.2.orig.tar.gz, as Debian's signed list of source packages has it."""

MODES = {
    "installed": "under fastpickle.install()",
    "backend": "cloudpickle's Pickler, CloudPickler, dump and dumps replaced by fastpickle.backends.cloudpickle's",
}

_SHIMS = str(Path(__file__).resolve().parent / "shims")

_UNITS = ("tests/cloudpickle_file_test.py", "tests/cloudpickle_test.py", "tests/test_backward_compat.py")


def prepare(source: Path | None) -> Suite:
    """Find or fetch cloudpickle's source.

    Args:
        source: cloudpickle's source tarball or the folder that it unpacks to; None to fetch it with apt.

    Returns:
        The suite.

    Raises:
        MissingInput: the source cannot be had or is another one, or pytest is missing.
    """
    if importlib.util.find_spec("pytest") is None:
        raise MissingInput("cloudpickle's tests need pytest: install pytest, psutil and tornado")
    if source is not None and source.is_dir():
        folder = source.resolve()
    else:
        folder = unpack(source or debian_tarball("cloudpickle", VERSION), SHA256)
    for file in ("cloudpickle/__init__.py", *_UNITS):
        if not (folder / file).exists():
            raise MissingInput(f"{folder} is not cloudpickle's source: it has no {file}")
    if f'__version__ = "{VERSION}"' not in (folder / "cloudpickle/__init__.py").read_text(encoding="utf-8"):
        raise MissingInput(f"{folder} is not cloudpickle {VERSION}")
    return Suite(
        name="cloudpickle",
        version=f"cloudpickle {VERSION}",
        modes=MODES,
        units=dict.fromkeys((STOCK, *MODES), _UNITS),
        copy=folder,
        # upstream's tox.ini; its test package is not installed here
        path=(".", "tests", "tests/cloudpickle_testpkg", *(() if importlib.util.find_spec("psutil") else (_SHIMS,))),
        deselected=DESELECTED,
    )
