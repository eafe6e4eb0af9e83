"""`install()`: puts `fastpickle.Pickler`'s methods into the stock class, under every library that subclasses it.

    install()     pickle._Pickler.save and dump = Pickler's, and what they need: a plan, the switch of grafts, the memo;
                  and, where stock's take an argument more, a _batch_appends and _batch_setitems that do without it
    uninstall()   the very objects that were there, back again

Five attributes of one class, seven from Python 3.14 on, are all that is touched.  Subclasses need nothing: they inherit
`save`, or call it by `super()` or by the name of the class.  The dispatch tables, stock's and the copies that libraries
took of it, need nothing either: `save` knows stock's functions by identity wherever it finds them, so a table stays
just what it was.

Not for: the C pickler (`pickle.Pickler`, `pickle.dumps`), which nobody can hook and which stays as it is.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ._stdlib import StockPickler, register_at_fork
from .accelerator.lazymemo import fetch_memos, fetched_memos
from .older import batch_methods
from .pickler import Pickler

__all__ = ["ATTRIBUTES", "install", "is_installed", "leave_for_good", "patched", "uninstall"]

# `save` is put in last and taken out first: another thread never finds it without the attribute that it needs.
#: Their names; on PyPy the memo is an attribute of the instance, as in stock.
ATTRIBUTES: Final = tuple(
    [
        name
        for name in ("_fastpickle_plan", "fastpickle_grafts", "memo", *batch_methods, "dump", "save")
        if name in vars(Pickler)
    ]
)
_MISSING: Final = object()

#: A signal's handler that comes meanwhile may install, too.  A forked process has all of an `_enter()`, or none.
_lock = threading.RLock()
register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_installed = False  # by install()
_depth = 0  # how many are open: install(), and `with patched()` blocks
_originals: dict[str, Any] = {}


def install() -> None:
    """Make `pickle._Pickler`, and with it everything that subclasses it, as fast as `fastpickle.Pickler`.

    The bytes stay the same.  Calling it again does nothing; one `uninstall()` undoes it.  It may be called before or
    after the libraries are imported, and while other threads are pickling.
    """
    global _installed
    with _lock:
        if not _installed:
            _installed = True
            _enter()


def uninstall() -> None:
    """Undo `install()`: every attribute of the stock class is the very object that it was.

    Does nothing if it is not installed; inside `with patched():` the block stays accelerated.
    """
    global _installed
    with _lock:
        if _installed:
            _installed = False
            _leave()


def is_installed() -> bool:
    """Tell whether the stock class is accelerated now, by `install()` or inside `with patched():`."""
    return _depth > 0


@contextmanager
def patched() -> Iterator[None]:
    """Accelerate the stock class inside a `with` block; blocks may be nested, and overlap in several threads.

    Put one block around many dumps, not one around each.  CPython forgets what it has cached of a class that changes,
    and from 3.13 on it caches nothing any more of one that has changed about a thousand times: then its picklers,
    stock's too, are slower until the process ends.  `install()` and `fastpickle.backends` have no such limit.
    """
    with _lock:
        _enter()
    try:
        yield
    finally:
        with _lock:
            _leave()


def leave_for_good() -> None:
    """Undo `install()`, and `patched()` in whatever is inside of it: for a process that is to dump once, and to end.

    No memo is with C after that.
    """
    global _depth
    if _depth:
        _depth = 1
        _leave()
    fetch_memos()


def _enter() -> None:
    global _depth
    _depth += 1
    if _depth == 1:
        for name in ATTRIBUTES:
            _originals[name] = vars(StockPickler).get(name, _MISSING)
            setattr(StockPickler, name, vars(Pickler)[name])


def _leave() -> None:
    global _depth
    _depth -= 1
    if _depth == 0:
        with fetched_memos():
            for name in reversed(ATTRIBUTES):
                original = _originals.pop(name)
                if vars(StockPickler).get(name) is not vars(Pickler)[name]:
                    warnings.warn(
                        f"pickle._Pickler.{name} was replaced after fastpickle.install(), and is left as it is",
                        RuntimeWarning,
                        stacklevel=3,
                    )
                elif original is _MISSING:
                    delattr(StockPickler, name)
                else:
                    setattr(StockPickler, name, original)
