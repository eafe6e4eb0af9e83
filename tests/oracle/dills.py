"""dill's pickler as the oracle, and ours in its place: installed under it, and that of the backend.

A test that imports this is skipped where dill is not installed.
"""

from __future__ import annotations

from typing import Any

import pytest

import fastpickle

from .compare import Implementation

__all__ = ["ORACLE", "OURS", "backend", "both", "dill"]

dill: Any = pytest.importorskip("dill", reason="dill is not installed")
backend: Any = pytest.importorskip("fastpickle.backends.dill", reason="dill is not installed")
dill.extend(False)

ORACLE = Implementation("dill.Pickler", dill.Pickler)
OURS = (
    Implementation("dill.Pickler, installed", dill.Pickler, fastpickle.patched),
    Implementation("fastpickle.backends.dill.Pickler", backend.Pickler),
)
both = pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
