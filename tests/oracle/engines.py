"""The pickler in each of the ways in which a dump can be written, and stock's, which they are compared with.

Not for: classes that have hooks (`hooked`).
"""

from __future__ import annotations

import pickle
from typing import Any

import fastpickle

from .compare import Implementation


class Pure(fastpickle.Pickler):
    """Leaves nothing to the C pickler."""

    fastpickle_grafts = False


Pure.__name__ = "Pickler"  # as it is called in errors
Stock: Any = pickle._Pickler  # type: ignore[attr-defined]  # private, and what all is compared with
ORACLE = Implementation("pickle._Pickler", Stock)
PURE = Implementation("without grafts", Pure)
OURS = (
    PURE,
    Implementation("fastpickle.Pickler", fastpickle.Pickler),
    Implementation("pickle._Pickler, installed", Stock, fastpickle.patched),
)
