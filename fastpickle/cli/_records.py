"""What came of comparing a program's dumps, on its way from any process of the program to the report.

    _beside   json of Record(...) --> a line in the log
    verify    read_log(log) --> report

Not for: comparing (`_beside`).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Final

from fastpickle.cli._compare import DIFFERENT, IDENTICAL

__all__ = ["NOT_COMPARED", "PATIENCE", "RESULTS", "Record", "read_log"]

NOT_COMPARED: Final = "not compared"
RESULTS: Final = (IDENTICAL, DIFFERENT, NOT_COMPARED)
"""What can come of a dump."""

PATIENCE: Final = 60.0
"""Seconds that a copy may take: where another thread held a lock as it was made, it may wait for that for ever."""


@dataclasses.dataclass(frozen=True)
class Record:
    """What came of comparing one dump.

    Attributes:
        pickler: the class of the pickler.
        result: one of `RESULTS`.
        why: it was not compared.
        size: how many bytes were written.
        where: of a difference, the lines of the program that led to it, the innermost last.
        said: of a difference, what differs.
    """

    pickler: str
    result: str
    why: str = ""
    size: int = 0
    where: list[str] = dataclasses.field(default_factory=list)
    said: list[str] = dataclasses.field(default_factory=list)


def read_log(path: Path) -> list[Record]:
    """Read what was found out so far, by all processes.

    Args:
        path: the log.

    Returns:
        A record for each dump that has ended.
    """
    return [Record(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
