"""The versions of numpy and pandas, and how to say that something is missing.

    numpy and pandas   the last version that has wheels for the running Python; none where there are no wheels (PyPy)
    joblib, dill       one version for all

Used by the suites joblib and scientific.  Only the parent process needs this.
"""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Mapping

from compat._suite import MissingInput

HAS_WHEELS = platform.python_implementation() == "CPython"
"""Whether numpy and pandas have wheels for the running interpreter."""

NUMPY = {(3, 10): "2.2.6", (3, 11): "2.4.6"}.get(sys.version_info[:2], "2.5.5")
PANDAS = "2.3.3" if sys.version_info < (3, 11) else "3.1.1"
JOBLIB = "1.6.0"
DILL = "0.4.1"


def need(suite: str, wanted: Mapping[str, str | None]) -> None:
    """Make sure that packages are installed.

    Args:
        suite: the suite that needs them.
        wanted: the distribution's name -> the version that it must have; None for any.

    Raises:
        MissingInput: one or more are missing or of another version; the message has the command that installs them.
    """
    wrong = [
        name if version is None else f"{name}=={version}"
        for name, version in wanted.items()
        if _version(name) is None or version not in (None, _version(name))
    ]
    if wrong:
        raise MissingInput(f"the suite {suite} needs other packages: pip install {' '.join(wrong)}")


def _version(name: str) -> str | None:
    """Give the installed version of a distribution; None if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
