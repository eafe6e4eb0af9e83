"""Put fastpickle in place in a child process, and make sure that it is.

    prefer_installed()     an installed fastpickle goes before the sources beside this package
    put_in_place(mode)     install(), before or after a library is imported, as the mode's name says
    install()              the stdlib's pickle._Pickler, in place
    replace(modules, ...)  names in a library's modules -> a backend's
    stock()                a block without it, for tests of ours that compare both in one process

fastpickle is imported inside the functions only: a stock run must not have it loaded.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from compat._suite import LOG_VARIABLE


def install() -> None:
    """Call ``fastpickle.install()``, and have each dump compared with stock's, if there is a log for that.

    Raises:
        SystemExit: fastpickle says that it is not installed after that.
    """
    fastpickle = importlib.import_module("fastpickle")
    fastpickle.install()
    if not is_in_place():
        raise SystemExit("fastpickle.install() had no effect")
    if log := os.environ.get(LOG_VARIABLE):
        importlib.import_module("fastpickle.cli._beside").Beside(Path(log)).start()
    print(f"installed: {fastpickle.__file__}")


def put_in_place(mode: str, *modules: str) -> None:
    """Install fastpickle as a mode says, or not at all for one that is not called "installed".

    Args:
        mode: one that begins with "installed"; "installed-late" installs after the modules are imported.
        modules: the library's.
    """
    if mode == "installed-late":
        for name in modules:
            importlib.import_module(name)
    if mode.startswith("installed"):
        install()


def is_in_place() -> bool:
    """Say whether fastpickle is installed, and seen in the stock class, which it leaves as it is on PyPy only."""
    installed = bool(sys.modules["fastpickle"].is_installed())
    return installed and (sys.implementation.name == "pypy" or pickle._Pickler.save.__module__ != "pickle")


def replace(backend: str, names: Mapping[str, str], modules: Iterable[str]) -> None:
    """Replace a library's names by a backend's, in each module that has them.

    Args:
        backend: the module that has the accelerated names.
        names: name in the library -> name in the backend.
        modules: the library's modules; one that lacks a name is left without it.
    """
    source = importlib.import_module(backend)
    for module in map(importlib.import_module, modules):
        for name, accelerated in names.items():
            if hasattr(module, name):
                setattr(module, name, getattr(source, accelerated))
    print(f"replaced by {source.__file__}: {', '.join(names)}")


def prefer_installed() -> None:
    """Move the folder with the sources to the end of the path, and hide it from the processes that tests start."""
    root = str(Path(__file__).resolve().parent.parent)
    sys.path[:] = [entry for entry in sys.path if entry != root] + [root]
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(entry for entry in entries if entry != root)


@contextmanager
def stock() -> Iterator[None]:
    """Take fastpickle away for a block, if this is an accelerated run.

    Raises:
        AssertionError: it was not in place before, or is still in place in the block.
    """
    fastpickle = sys.modules.get("fastpickle")
    if fastpickle is None:
        yield
        return
    assert pickle._Pickler.save.__module__ != "pickle"
    fastpickle.uninstall()
    try:
        assert pickle._Pickler.save.__module__ == "pickle"
        yield
    finally:
        fastpickle.install()
