"""The versions of numpy and pandas, and of what pickles them.

    numpy and pandas   the last version that has wheels for the running Python; none where there are no wheels (PyPy)
    joblib, dill       one version for all

Used by the suites joblib and scientific.  Only the parent process needs this.
"""

from __future__ import annotations

import platform
import sys

HAS_WHEELS = platform.python_implementation() == "CPython"
"""Whether numpy and pandas have wheels for the running interpreter."""

NUMPY = {(3, 10): "2.2.6", (3, 11): "2.4.6"}.get(sys.version_info[:2], "2.5.5")
PANDAS = "2.3.3" if sys.version_info < (3, 11) else "3.1.1"
JOBLIB = "1.6.0"
DILL = "0.4.1"
