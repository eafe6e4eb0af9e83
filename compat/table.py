"""``python -m compat.table``: library x Python, from the last run of each suite on each Python.

    cache folder, results/*.json  (_results.py)  ->  Markdown on stdout, or between the marks in a file

Two rows for a library: the tests that passed stock / installed, and for each of its entry points how much faster it is
under install() on real data (``_speed.py``).  What has not run on this machine yet is left empty.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from compat._results import Cell, cells
from compat._suite import MissingInput

_RUNS = "python tools/matrix.py --full, then tox run -m rest"
"""What makes the table anew."""

_BEGIN, _END = "<!-- matrix: python -m compat.table -->", "<!-- /matrix -->"

_EPILOG = """\
examples:
  python -m compat.table
  python -m compat.table --write README.md
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or write it into a file.

    Args:
        arguments: the command line; None for the process's own.

    Returns:
        The exit status: 0, or 2 where there is nothing to show, nowhere to write it, or no one state to write it of.
    """
    parser = argparse.ArgumentParser(
        prog="python -m compat.table",
        description="Show what the last run of each suite on each Python gave: tests passed, and speed-ups.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"put it into FILE, between {_BEGIN} and {_END}")
    options = parser.parse_args(arguments)
    try:
        known = cells()
        text = table(known)
        if options.write is None:
            print(text)
        else:
            if _are_mixed(known):
                raise MissingInput(f"these runs are of different states of fastpickle: {_RUNS}")
            write(options.write, text)
    except MissingInput as missing:
        print(f"python -m compat.table: {missing}", file=sys.stderr)
        return 2
    return 0


def table(known: Sequence[Cell]) -> str:
    """Make the table.

    Args:
        known: the cells.

    Returns:
        Markdown.

    Raises:
        MissingInput: there are none.
    """
    if not known:
        raise MissingInput(f"no suite has been run yet on this machine: {_RUNS}")
    pythons = sorted({cell.python for cell in known}, key=_order)
    rows = [["library", "", *pythons], ["---", "---", *["--:"] * len(pythons)]]
    for suite in sorted({cell.suite for cell in known}, key=lambda suite: (suite != "cpython", suite)):
        here = {cell.python: cell for cell in known if cell.suite == suite}
        versions = " / ".join(sorted({_version(cell) for cell in here.values()}))
        rows.append([versions, "tests", *(_tests(here.get(python)) for python in pythons)])
        for entry in dict.fromkeys(speed.entry for cell in here.values() for speed in cell.speeds):
            rows.append(["", _code(entry), *(_faster(here.get(python), entry) for python in pythons)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    releases = ", ".join(f"{python} is {release}" for python, release in _releases(known, pythons))
    note = (
        "*tests*: passed stock / under `install()`; a test that passes on stock only would be counted in bold. Other "
        "rows: times faster under `install()`, CPU time, the median of alternating rounds in one process; *fails*: on "
        f"stock, so there is nothing to compare. {releases}."
    )
    if _are_mixed(known):
        note = f"**These runs are of different states of fastpickle.** {note}"
    return "\n".join([*lines, "", note])


def _are_mixed(known: Sequence[Cell]) -> bool:
    """Say whether the cells are of different states of fastpickle."""
    return len({cell.revision for cell in known}) > 1


def write(file: Path, text: str) -> None:
    """Put the table between its marks.

    Args:
        file: the file, which has the marks.
        text: the table.

    Raises:
        MissingInput: it has not.
    """
    try:
        old = file.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingInput(f"{file} cannot be read: {error.strerror}") from None
    begin, end = old.find(_BEGIN), old.find(_END)
    if not -1 < begin < end:
        raise MissingInput(f"{file} has no {_BEGIN} with {_END} after it")
    file.write_text(f"{old[:begin]}{_BEGIN}\n{text}\n{old[end:]}", encoding="utf-8")


def _order(python: str) -> tuple[bool, list[int]]:
    """Sort Pythons: CPython by version, then the others."""
    return not python[0].isdigit(), [int(number) for number in re.findall(r"\d+", python)]


def _version(cell: Cell) -> str:
    """Name what was tested, without the Python that the column says."""
    return "the Python itself" if cell.suite == "cpython" else re.split(r",| with ", cell.version)[0]


def _tests(cell: Cell | None) -> str:
    """Say how a suite's tests did."""
    if cell is None:
        return ""
    stock, installed = cell.passed.get("installed") or next(iter(cell.passed.values()))
    text = f"{stock} / {installed}"
    return f"**{text}, {cell.regressions} fail**" if cell.regressions else text


def _faster(cell: Cell | None, entry: str) -> str:
    """Say how much faster an entry point is."""
    for speed in cell.speeds if cell else ():
        if speed.entry == entry:
            return f"{speed.faster:.2f}x" if speed.faster else "fails" if speed.fails else "**differs**"
    return ""


def _code(entry: str) -> str:
    """Mark the code in the name of an entry point: what stands before a bracket."""
    code, space, rest = entry.partition(" (")
    return f"`{code}`{space}{rest}"


def _releases(known: Sequence[Cell], pythons: Sequence[str]) -> list[tuple[str, str]]:
    """Give the full version of each Python."""
    return [(python, next(cell.release for cell in known if cell.python == python)) for python in pythons]


if __name__ == "__main__":
    sys.exit(main())
