"""What is known of dill's picklers and functions, and of names that dill looks up: nobody's code runs to find out.

    look_at(parts) ---------> whether a pickler's entries, and what dill's functions call, are dill's own; its modules
    module_of(f), is_found --> what dill's `_import_module` and `_locate_function` would find

dill's functions may be replaced at any time, as may the import and modules; so all that is asked for each object that
is to be encoded at once.

Not for: encoding anything (`_dill_functions`).
"""

from __future__ import annotations

import builtins
import operator
import sys
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final

from dill import _dill

from .. import hooks
from .._stdlib import StockPickler, stock_methods
from ..engine.encoders import NotBrief, Parts
from ..objects.known import usual_import
from ..older import method_of
from ._dill_own import HELPERS, are_dills, has_its_helpers, is_quiet

__all__ = ["are_helpers_dills", "entry_of", "given_by", "imported", "is_found", "look_at", "module_of"]

_entries_of: Final = operator.itemgetter(FunctionType, CodeType, CellType, ModuleType, dict)
_ENTRIES: Final = (
    _dill.save_function, _dill.save_code, _dill.save_cell, _dill.save_module, _dill.save_module_dict,
)  # fmt: skip


def look_at(parts: Parts) -> tuple[dict[str, Any], bytes, int, int]:
    """Look at a pickler, and return what is asked of dicts.

    That is the dict of its main module, what is written for that, its length, and that of `__main__`'s.

    Raises:
        NotBrief: the pickler is none of dill's, or saves something otherwise, or is in no ordinary dump.
    """
    known: tuple[dict[str, Any], bytes, int, int] | None = parts.known
    if known is None:
        pickler = parts.pickler
        state = pickler.__dict__
        module = type(pickler).__dict__.get("__module__")  # else a property, or the pickler's own, would be asked
        if (
            type(module) is not str
            or "__module__" in state
            or not is_quiet(pickler)
            or _dill.Pickler not in type(pickler).__mro__
            or not _has_entries(pickler)
            or not has_its_helpers()
            or StockPickler.save_dict is not stock_methods["save_dict"]
            or method_of(type(pickler), "save_global") not in hooks.known_save_globals
            or "save_global" in state
            or imported("dill._dill") is not _dill
        ):
            raise NotBrief
        of_main = _dill._main_module.__dict__
        if "dill" in module:  # as dill's `is_dill` asks; others, as multiprocess's, write the dict of `__main__` so:
            main = pickler._main.__dict__
            known = parts.known = main, b"c__builtin__\n__main__\n", len(main), len(of_main)
        else:
            known = parts.known = of_main, b"c__main__\n__dict__\n", len(of_main), len(of_main)
    return known


def _has_entries(pickler: Any) -> bool:
    """Tell whether what a function is made of is saved by dill's functions; a table may have lost some."""
    try:
        return all(map(operator.is_, _entries_of(pickler.dispatch), _ENTRIES))
    except KeyError:
        return False


class _Taken:
    """Stands for a pickler to one of dill's functions, and takes what that gives to `save_reduce`."""

    _trace_depth = None  # there is no trace

    def __init__(self) -> None:
        self.call: tuple[Any, tuple[Any, ...]] = (None, ())

    def save_reduce(self, func: Any, args: tuple[Any, ...], obj: Any = None) -> None:
        self.call = func, args


def given_by(save: Any, obj: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the call that one of dill's functions gives to `save_reduce`, and does nothing else."""
    taken = _Taken()
    save(taken, obj)
    return taken.call


def imported(name: str) -> Any:
    """Return the module of a name as dill's `_import_module` would; None if that may run somebody's code, or fails."""
    module = sys.modules.get(name)
    if type(module) is not ModuleType or builtins.__import__ is not usual_import:
        return None
    package, _, last_name = name.rpartition(".")
    if package:
        parent = imported(package)
        if parent is None or parent.__dict__.get(last_name) is not module:
            return None
    return module


def entry_of(parts: Parts, t: type) -> Any:
    """Return the dispatch entry of a type, which dill's table may not have."""
    return dict.get(parts.pickler.dispatch, t)


def module_of(obj: Any) -> Any:
    """Return the module that a function names, None if it names none.

    Raises:
        NotBrief: it cannot be had without running somebody's code.
    """
    name = obj.__module__
    if name is None:
        return None
    module = imported(name) if type(name) is str else None
    if module is None:
        raise NotBrief
    return module


def is_found(module: Any, obj: Any) -> bool:
    """Tell whether a function is found under its name, as `_locate_function` does.

    Raises:
        NotBrief: that may run somebody's code.
    """
    if module is None or obj.__module__ == "__main__":
        return False
    qualname = obj.__qualname__
    if type(qualname) is str:
        name, *rest = qualname.split(".")
        if name == "<locals>":
            return False
        if not hasattr(ModuleType, name):
            if name not in module.__dict__:
                if "__getattr__" not in module.__dict__:
                    return False
            elif not rest:
                return module.__dict__[name] is obj
            elif rest[0] == "<locals>":
                return False
    raise NotBrief


def are_helpers_dills() -> bool:
    """Tell whether what dill's functions call, where it is known what that does, is dill's."""
    return are_dills(*[x for x in HELPERS if type(x) is FunctionType])
