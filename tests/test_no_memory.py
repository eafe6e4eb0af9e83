"""Where there is no memory: MemoryError, as by stock, or the same bytes by another way; never others, nor later."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from oracle import starved
from oracle.allowed import PYPY

HAS_DILL = importlib.util.find_spec("dill") is not None
FEW_PLACES = 3
"""Each so many-th allocation fails, in turn; in the soak each."""

pytestmark = [
    pytest.mark.skipif(
        PYPY or importlib.util.find_spec("_testcapi") is None,
        reason="this interpreter has nothing that makes allocations fail",
    ),
    pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 on CPython crashes where it cannot make a frame"),
]

ALLOWED = ("same", "MemoryError", "SystemError")
"""The last one is the interpreter's own: it has lost the MemoryError."""

CASES = [
    (way, shape)
    for way in ("dumps", "Pickler", *(("dill", "backend") if HAS_DILL else ()))
    for shape in starved.SHAPES
    if shape != "closures" or way in ("dill", "backend")
]


def check(way: str, shape: str, many: int, step: int) -> None:
    """Let each `step`-th allocation of a dump fail, in turn, and those behind it, `many`."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", starved.__file__, way, shape, str(many), str(step)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=250,
    )
    outcomes = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert "MemoryError" in outcomes.values()
    assert not {place: outcome for place, outcome in outcomes.items() if outcome not in ALLOWED}


@pytest.mark.parametrize("many", [1, 20])
@pytest.mark.parametrize(("way", "shape"), CASES)
def test_an_allocation_fails(way: str, shape: str, many: int) -> None:
    """Of some allocations each."""
    check(way, shape, many, FEW_PLACES)


@pytest.mark.soak
@pytest.mark.parametrize("many", [1, 2, 20])
@pytest.mark.parametrize(("way", "shape"), CASES)
def test_each_allocation_fails(way: str, shape: str, many: int) -> None:
    """Each of them."""
    check(way, shape, many, 1)
