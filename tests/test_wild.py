"""What is in memory, by stock and by ours (``oracle/wild.py``): nothing differs, and what does is told."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fastpickle

if not hasattr(os, "fork"):
    pytest.skip("each side is a forked process", allow_module_level=True)

SCRIPT = Path(__file__).parent / "oracle" / "wild.py"
NEEDS = {"stock": "pickle", "dill": "dill", "recurse": "dill", "byref": "dill", "joblib.hash": "joblib"}
#: Puts another module in the place of fastpickle, whose install() has names written otherwise.
BROKEN = """
import pickle, runpy, sys, types
saved = pickle._Pickler.save_global
def install():
    pickle._Pickler.save_global = lambda self, obj, name=None: self.write(b"N")
    pickle._Pickler.dispatch[type(len)] = pickle._Pickler.save_global
def uninstall():
    pickle._Pickler.save_global = saved
    del pickle._Pickler.dispatch[type(len)]
broken = types.ModuleType("fastpickle")
broken.install, broken.uninstall = install, uninstall
sys.modules["fastpickle"] = broken
script = sys.argv.pop(1)
sys.exit(runpy.run_path(script)["main"]())
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(fastpickle.__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.parametrize("way", NEEDS)
def test_what_is_in_memory(way: str) -> None:
    if importlib.util.find_spec(NEEDS[way]) is None:
        pytest.skip(f"{NEEDS[way]} is not installed")
    done = run(str(SCRIPT), "--way", way, "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    assert not counts["differ"]
    assert counts["same"] > 800, counts
    assert counts["errors"] > 100, counts
    assert counts["do not count"] < 200, counts


@pytest.mark.soak
@pytest.mark.parametrize("way", NEEDS)
def test_much_of_what_is_in_memory(way: str) -> None:
    if importlib.util.find_spec(NEEDS[way]) is None:
        pytest.skip(f"{NEEDS[way]} is not installed")
    first = int(os.environ.get("SOAK_SEED", "100"))
    for seed in range(first, first + 10):
        done = run(str(SCRIPT), "--way", way, "--seed", str(seed), "--count", "5000")
        assert done.returncode == 0, f"seed {seed}: {done.stdout} {done.stderr}"


def test_that_it_sees_a_difference() -> None:
    done = run("-c", BROKEN, str(SCRIPT), "--count", "300")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "by stock" in done.stdout
    assert json.loads(done.stdout.splitlines()[-1])["differ"]
