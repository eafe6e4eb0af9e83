"""What is dill's own, in any version: its functions, and the classes that it saves in ways of their own.

Not for: what dill's functions do, and where that is known (`_dill_versions`, `dill`, `_dill_known`).
"""

from __future__ import annotations

import builtins
import logging
from enum import EnumMeta
from operator import is_, itemgetter
from types import FunctionType
from typing import Any, Final

from dill import _dill

from ..objects.arrays import array_type
from ..objects.known import usual_import

__all__ = [
    "GLOBALS", "HELPERS", "NAMED_OTHERWISE", "are_dills", "entry_of_arrays", "has_its_helpers", "is_quiet",
]  # fmt: skip

GLOBALS: Final = vars(_dill)
_helpers_of: Final = itemgetter(
    *[
        name
        for name in (
            "_locate_function", "_import_module", "_getattribute", "_save_with_postproc", "_setitems", "is_dill",
            "_create_function", "_create_code", "_create_cell", "_load_type", "_is_builtin_module", "StockPickler",
        )
        if name in GLOBALS
    ]
)  # fmt: skip
#: What dill's functions call, where it is known what that does.
HELPERS: Final = _helpers_of(GLOBALS)

#: Classes to which dill gives other names than their own.
NAMED_OTHERWISE: Final = (
    EnumMeta, type(None), type(NotImplemented), type(...), getattr(_dill, "ExceptHookArgsType", EnumMeta),
)  # fmt: skip


def are_dills(*functions: Any) -> bool:
    """Tell whether functions are those of dill's module, and not what somebody has put in their place."""
    return all(type(f) is FunctionType and f.__globals__ is GLOBALS for f in functions)


def entry_of_arrays(pickler: Any, t: type) -> Any:
    """Return the function by which dill saves numpy's arrays, which it makes when it meets one; None if it has not.

    Args:
        pickler: a pickler of dill's.
        t: a type; None is for any other.
    """
    # numpy imports by `__import__` what it reduces them to.
    if t is not array_type() or builtins.__import__ is not usual_import:
        return None
    entry = pickler.dispatch.get(t)
    is_its_own = are_dills(entry) and entry.__code__ in _CODES_OF_SAVE and entry.__name__ == "save_numpy_array"
    return entry if is_its_own else None


_CODES_OF_SAVE: Final = _dill.Pickler.save.__code__.co_consts


def has_its_helpers() -> bool:
    """Tell whether dill's functions call what they called at import; somebody else's is called as often as by dill."""
    return all(map(is_, _helpers_of(GLOBALS), HELPERS))


def is_quiet(pickler: Any) -> bool:
    """Tell whether dill neither traces what is saved, nor saves a session, and asks nobody what a pickler is.

    It asks whether a pickler is true, too, before it looks for a function or a class by its name.
    """
    cls = type(pickler)
    if _dill.is_dill is not _is_dill or hasattr(cls, "__bool__") or hasattr(cls, "__len__"):
        return False
    depth = getattr(pickler, "_trace_depth", _UNKNOWN)
    if depth is _UNKNOWN:  # dill does not take it for its own, by its module's name: its trace goes straight to the log
        # No call in an "except": on PyPy a RecursionError in one becomes a TypeError.
        return not _dill.logger.isEnabledFor(logging.INFO) and not getattr(pickler, "_session", False)
    return depth is None and not getattr(pickler, "_session", False)


_UNKNOWN: Final = object()
_is_dill: Any = _dill.is_dill
