"""What the last run of each suite on each Python gave, for the README's table.

python -m compat SUITE   -> keep(Cell(...)) -> results/PYTHON-SUITE.json in the cache folder
python -m compat.table   <- cells()
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from compat._fetch import cache_folder
from compat._speed import Speed


@dataclass(frozen=True)
class Cell:
    """One suite on one Python.

    Args:
        suite: the suite's folder.
        version: what was tested ("dill 0.4.1").
        python: the Python as the table names it ("3.13", "PyPy 3.11").
        release: the Python's full version.
        passed: mode -> tests passed on stock, and accelerated.
        regressions: tests that pass on stock only, summed over the modes.
        speeds: the library's entry points.
        revision: tells one state of fastpickle's sources from another.
    """

    suite: str
    version: str
    python: str
    release: str
    passed: dict[str, tuple[int, int]]
    regressions: int
    speeds: tuple[Speed, ...]
    revision: str


def revision() -> str:
    """Give a short digest of fastpickle's sources beside this package."""
    digest = hashlib.sha256()
    for file in sorted((Path(__file__).resolve().parent.parent / "fastpickle").rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def this_python() -> tuple[str, str]:
    """Name the running Python: in the table, and in full."""
    implementation = platform.python_implementation()
    name = ".".join(map(str, sys.version_info[:2]))
    return (name if implementation == "CPython" else f"{implementation} {name}"), platform.python_version()


def keep(cell: Cell) -> Path:
    """Write a cell over what was known of it.

    Args:
        cell: the cell.

    Returns:
        The file.
    """
    file = _folder() / f"{cell.python.replace(' ', '-').lower()}-{cell.suite}.json"
    making = file.with_suffix(".making")
    making.write_text(json.dumps(asdict(cell), indent=1) + "\n", encoding="utf-8")
    return making.replace(file)


def cells() -> Sequence[Cell]:
    """Read every cell that there is.

    Returns:
        The cells, in the order of their files' names.
    """
    found = []
    for file in sorted(_folder().glob("*.json")):
        row = json.loads(file.read_text(encoding="utf-8"))
        row["passed"] = {mode: (stock, accelerated) for mode, (stock, accelerated) in row["passed"].items()}
        row["speeds"] = tuple(Speed(**speed) for speed in row["speeds"])
        found.append(Cell(**row))
    return found


def _folder() -> Path:
    """Give the folder of the cells, made if need be."""
    folder = cache_folder() / "results"
    folder.mkdir(exist_ok=True)
    return folder
