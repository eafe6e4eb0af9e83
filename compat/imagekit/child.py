"""Run django-imagekit's tests with pytest, and record each.

the working directory    tests/ as it is in the source distribution; imagekit itself is the installed one
+ tests/media/           a picture of the size that the tests count on; upstream's is in no file of the package index
+ extra/test_*.py        our own tests
"""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path

from compat._accelerate import put_in_place
from compat._pytest import run_pytest
from compat._record import Recorder

_EXTRA = Path(__file__).parent / "extra"
_SIZE = (512, 512)
"""Width and height of upstream's picture, in pixels."""


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run the tests of one folder.

    Args:
        unit: the folder in the working directory, which is a copy of the source distribution.
        mode: "stock", "installed" or "installed-late".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 0 if pytest ran to its end.
    """
    shutil.rmtree("imagekit")  # the working directory comes first on the path, and the installed one is meant
    for file in _EXTRA.glob("test_*.py"):
        shutil.copy(file, "tests")
    _draw(Path("tests/media/reference.png"))
    if mode == "installed-late":
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"  # as in upstream's pyproject.toml, which pytest reads
    put_in_place(mode, "imagekit.hashers")
    return run_pytest(["-c", "pyproject.toml", unit], tests, recorder)


def _draw(path: Path) -> None:
    """Write a picture: a vertical gradient from black to white."""
    image = importlib.import_module("PIL.Image")
    path.parent.mkdir()
    image.linear_gradient("L").resize(_SIZE).convert("RGB").save(path)
