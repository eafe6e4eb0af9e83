"""Run one group of multiprocess's test classes with unittest, and record each test.

The processes that the tests start:

    fork         inherit what is in place here
    spawn        begin anew, and are stock: what an accelerated parent sends has to be readable there
    forkserver   are forked from a server that begins anew, so they are stock too

"installed-children" puts fastpickle in place in them as well, by a ``sitecustomize`` in a folder on ``PYTHONPATH``:

    folder/sitecustomize.py   fastpickle.install(), and leave a mark in the folder, if it is a worker or their server
    folder/mark               at the end: there was such a process

Processes that a test starts with ``python -I`` or ``-E`` stay stock in every mode.
"""

from __future__ import annotations

import importlib
import os
import unittest
from pathlib import Path

from compat._accelerate import put_in_place
from compat._record import Recorder, UnitRecorder, test_id
from compat.cpython.child import RecordingResult
from compat.multiprocess.suite import GROUPS

_CHILDREN = "installed-children"

# The wheels for 3.13 and later import a decorator that older patch releases lack, for one test, of no interest here.
_COMPLETE_SUPPORT = """\
import unittest
from test import support
if not hasattr(support, "subTests"):
    support.subTests = lambda *arguments: unittest.skip("this Python has no test.support.subTests")
"""

_INSTALL = """\
import sys
from pathlib import Path
sys.path.append({root!r})
import fastpickle
fastpickle.install()
if any(name in argument for argument in sys.orig_argv for name in ("spawn_main", "forkserver")):
    Path({mark!r}).touch()
"""


def run(unit: str, mode: str, tests: frozenset[str], recorder: Recorder) -> int:
    """Run one group of test classes.

    Args:
        unit: start method and group, "spawn-pools".
        mode: "stock", "installed", "installed-late" or "installed-children".
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 3 if "installed-children" accelerated no child, else 0.
    """
    put_in_place(mode, "multiprocess.reduction")
    mark = _prepare_children(Path.cwd() / "site", mode)
    method, _, group = unit.partition("-")
    suite = unittest.TestSuite()
    for cls in _classes(method, GROUPS[group]):
        cases = unittest.defaultTestLoader.loadTestsFromTestCase(cls)
        suite.addTests(case for case in cases if not tests or test_id(unit, case.id()) in tests)
    suite.run(RecordingResult(UnitRecorder(unit, recorder)))
    if mode == _CHILDREN and not tests and not mark.exists():
        print("no child was accelerated")
        return 3
    return 0


def _prepare_children(folder: Path, mode: str) -> Path:
    """Write the ``sitecustomize`` of the processes to come, and put it on their path, if they need one.

    Args:
        folder: where to write it; made.
        mode: the mode.

    Returns:
        The file that a process makes when it has accelerated itself.
    """
    mark = folder / "mark"
    code = ""
    if mode == _CHILDREN:
        root = Path(str(importlib.import_module("fastpickle").__file__)).parent.parent
        code += _INSTALL.format(root=str(root), mark=str(mark))
    if not hasattr(importlib.import_module("test.support"), "subTests"):
        exec(_COMPLETE_SUPPORT, {})
        code += _COMPLETE_SUPPORT
    if code:
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
        entries = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{entries}" if entries else str(folder)
    return mark


def _classes(method: str, names: tuple[str, ...]) -> list[type[unittest.TestCase]]:
    """Import test classes, those that there are.

    Args:
        method: the start method.
        names: the classes' names.

    Returns:
        The classes, each of the module by whose name the children find it: up to 3.10 a start method has one module,
        later several.
    """
    home = importlib.import_module(f"multiprocess.tests.test_multiprocessing_{method}")
    parts = ("processes", "manager", "misc") if hasattr(home, "__path__") else ()
    modules = [importlib.import_module(f"{home.__name__}.test_{part}") for part in parts] or [home]
    return [getattr(module, name) for name in names for module in modules if hasattr(module, name)]
