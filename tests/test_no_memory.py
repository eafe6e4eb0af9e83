"""Where there is no memory: MemoryError, as by stock, or the same bytes by another way; never others, nor later."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from oracle.allowed import PYPY

HAS_DILL = importlib.util.find_spec("dill") is not None
SCRIPT = Path(__file__).parent / "oracle" / "starved.py"
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
    for shape in ("a_little", "records", "instances", "reduced", "few", "beside", "dates", "closures")
    if shape != "closures" or way in ("dill", "backend")
]


def outcomes_of(way: str, shape: str, many: int, step: int) -> dict[str, str]:
    """Let each `step`-th allocation of a dump fail, in turn, and those behind it, `many`; return what came of each."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), way, shape, str(many), str(step)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=250,
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("many", [1, 20])
@pytest.mark.parametrize(("way", "shape"), CASES)
def test_an_allocation_fails(way: str, shape: str, many: int) -> None:
    """Of some allocations each."""
    outcomes = outcomes_of(way, shape, many, FEW_PLACES)
    assert "MemoryError" in outcomes.values()
    assert not {place: outcome for place, outcome in outcomes.items() if outcome not in ALLOWED}


@pytest.mark.soak
@pytest.mark.parametrize("many", [1, 2, 20])
@pytest.mark.parametrize(("way", "shape"), CASES)
def test_each_allocation_fails(way: str, shape: str, many: int) -> None:
    """Each of them."""
    outcomes = outcomes_of(way, shape, many, 1)
    assert not {place: outcome for place, outcome in outcomes.items() if outcome not in ALLOWED}
    assert "MemoryError" in outcomes.values()
