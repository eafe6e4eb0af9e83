"""The nouns that the runner and the suites share: Suite, Deselection, MissingInput.

Each suite lives in a folder of its own with three modules:

    suite.py        prepare(source) -> Suite      runs in the parent, never imports upstream's code
    child.py        run(unit, mode, ...)          runs in the child, puts the mode in place and runs the tests
    deselected.py   DESELECTED                    the tests that may differ, each with its reason and link
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

STOCK = "stock"

LOG_VARIABLE = "FASTPICKLE_COMPAT_LOG"
"""The environment variable that tells a child where its log is, if its dumps are to be compared (``_verify.py``)."""


class MissingInput(Exception):
    """What a suite needs is not there (upstream's tests, a tool, a package); the message is one line for the user."""


@dataclass(frozen=True)
class Deselection:
    """One test that may fail accelerated although it passes on stock.

    Args:
        test: the test's id, as the runner prints it.
        modes: the modes in which it may fail.
        reason: why the difference is allowed, in one sentence.
        link: where the difference is documented or discussed.
        applies: False where the row is not meant for the running Python.
        sometimes: True for a test that fails now and then, on stock too, so that its passing is no news.
    """

    test: str
    modes: tuple[str, ...]
    reason: str
    link: str
    applies: bool = True
    sometimes: bool = False


@dataclass(frozen=True)
class Suite:
    """One upstream suite, ready to run.

    Args:
        name: the suite's folder in this package.
        version: what is tested, for the headline ("dill 0.4.1").
        modes: accelerated mode -> what it does, in one sentence.
        units: mode (stock included) -> the units that run in it.
        copy: a folder whose copy is the child's working directory; None for an empty one.
        path: folders for the child's ``sys.path``; a relative one is meant inside the working directory.
        deselected: the rows of the suite's table.
    """

    name: str
    version: str
    modes: Mapping[str, str]
    units: Mapping[str, tuple[str, ...]]
    copy: Path | None = None
    path: tuple[str, ...] = ()
    deselected: tuple[Deselection, ...] = field(default=())
