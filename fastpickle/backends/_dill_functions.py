"""What dill saves by value of a function, written at once: its code, cells and globals, and what it is called with.

    save_function(f) -- found under its name ----------> module, name, STACK_GLOBAL
                     +- else: _create_function(code, globals, name, defaults, cells), its state, and afterwards
                              what fills the cells, and the globals that are not a module's

dill's own functions give each of the some forty parts to `pickler.save`, and most of these are atoms and tuples.  So
all but the last of that is encoded together (`encoders`), and written if that succeeds; if not, nothing is, and dill's
function is called.  Where dill looks a name up, it is looked up without running anybody's code, or left to dill.

Not for: functions that hold what is much or is somebody's, and picklers with hooks; those go hook by hook.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable
from functools import partial
from pickle import BUILD, POP, REDUCE
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import dill
from dill import _dill

from .. import hooks
from .._stdlib import for_batch
from ..encoders import (
    Memo,
    NotBrief,
    Parts,
    add_encoder,
    encode,
    encode_call,
    encode_dict,
    encode_global,
    encode_name,
    encode_tuple,
    write_at_once,
)
from ..known import has_reduce_entry, usual_import

__all__: list[str] = []

_GLOBALS: Final = vars(_dill)
_entries_of: Final = operator.itemgetter(FunctionType, CodeType, CellType, ModuleType, dict)
_ENTRIES: Final = (
    _dill.save_function, _dill.save_code, _dill.save_cell, _dill.save_module, _dill.save_module_dict,
)  # fmt: skip
_Reduce: Final = type(_dill._shims._setattr)
_REDUCES: Final = _Reduce.__reduce_ex__, _Reduce.__reduce__


def _known(parts: Parts) -> tuple[dict[str, Any], int, int]:
    """Return what is asked of dicts: that of the pickler's main module, its length and that of `__main__`'s.

    Raises:
        NotBrief: the pickler is none of dill's, or saves something otherwise, or is in no ordinary dump.
    """
    known: tuple[dict[str, Any], int, int] | None = parts.known
    if known is None:
        pickler = parts.pickler
        state = pickler.__dict__
        if (
            state.get("_trace_depth", known) is not None
            or "_trace_depth" not in state
            or pickler._session
            or "dill" not in pickler.__module__
            or _dill.Pickler not in type(pickler).__mro__
            or not all(map(operator.is_, _entries_of(pickler.dispatch), _ENTRIES))
            or type(pickler).save_global not in hooks.known_save_globals
            or "save_global" in state
            or _imported("dill._dill") is not _dill
        ):
            raise NotBrief
        main = pickler._main.__dict__
        known = parts.known = main, len(main), len(_dill._main_module.__dict__)
    return known


def _imported(name: str) -> Any:
    """Return the module of a name as dill's `_import_module` would; None if that may run somebody's code, or fails."""
    module = sys.modules.get(name)
    if type(module) is not ModuleType or builtins.__import__ is not usual_import:
        return None
    package, _, last_name = name.rpartition(".")
    if package:
        parent = _imported(package)
        if parent is None or parent.__dict__.get(last_name) is not module:
            return None
    return module


class _Taken:
    """Stands for a pickler to one of dill's functions, and takes what that gives to `save_reduce`."""

    _trace_depth = None  # there is no trace

    def save_reduce(self, func: Any, args: tuple[Any, ...], obj: Any = None) -> None:
        self.call = func, args


def _encode_code(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a code object as `save_code` saves it."""
    _known(parts)
    taken = _Taken()
    _dill.save_code(taken, obj)
    return encode_call(parts, obj, *taken.call, memo, i, pieces)


def _encode_cell(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode the cell of a function that is being saved as `save_cell` saves it: empty, to be filled at the end."""
    _known(parts)
    contents = obj.cell_contents  # ValueError if it is empty
    postproc = parts.pickler._postproc
    to_do = postproc.get(id(contents))
    if to_do is None:
        to_do = next(iter(postproc.values()))  # StopIteration if no function is being saved
    parts.to_append.append((to_do, (_dill._shims._setattr, (obj, "cell_contents", contents))))
    return encode_call(parts, obj, _dill._create_cell, (_dill._CELL_REF,), memo, i, pieces)


def _encode_dict(parts: Parts, obj: dict[Any, Any], memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a dict as `save_module_dict` saves it: by reference, if it is that of a module."""
    if not parts.plan.short_dicts:
        main, *lengths = _known(parts)
        if obj is main:
            pieces.append(b"c__builtin__\n__main__\n")
            return i
        if len(obj) in lengths:
            raise NotBrief  # they are compared
        if "__name__" in obj:
            name = obj["__name__"]
            if type(name) is str:
                module = _imported(name)
                if module is None:
                    raise NotBrief
                if obj is module.__dict__:
                    pieces.append(bytes(f"c{name}\n__dict__\n", "UTF-8"))
                    return i
    return encode_dict(parts, obj, memo, i, pieces)


def _encode_module(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode dill's own module as `save_module` saves it, which looks at its file, 50 us, and saves it by its name."""
    _known(parts)
    if (
        obj is not _dill
        or _dill.__name__ != "dill._dill"
        or parts.pickler._main is obj
        or _imported(_dill.__module__) is not dill
    ):
        raise NotBrief
    return encode_global(parts, obj, _dill.__module__, "_dill", memo, i, pieces)


def _encode_name(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a function or class that is found under its name; dill's own functions are known to be."""
    entry = dict.get(parts.pickler.dispatch, type(obj))
    if entry is _dill.save_function or entry is _dill.save_type:
        _known(parts)
        name = obj.__qualname__
        if obj.__module__ == "dill._dill" and type(name) is str and _GLOBALS.get(name) is obj:
            return encode_global(parts, obj, obj.__module__, name, memo, i, pieces)
    return encode_name(parts, obj, memo, i, pieces)


def _encode_reduce(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode what stands for a function in dill, as its reduce does."""
    _known(parts)
    pickler = parts.pickler
    if (
        (_Reduce.__reduce_ex__, _Reduce.__reduce__) != _REDUCES
        or pickler.dispatch.get(_Reduce) is not None
        or has_reduce_entry(pickler, _Reduce)
    ):
        raise NotBrief
    return encode_call(parts, obj, *obj.reduction, memo, i, pieces)


def _encode_by_value(
    parts: Parts, obj: Any, args: tuple[Any, ...], state: Any, memo: Memo, i: int, pieces: list[bytes]
) -> int:
    """Encode a function as `save_function` gives it to `save_reduce`."""
    i = encode_call(parts, obj, _dill._create_function, args, memo, i, pieces)
    i = encode(parts, state, memo, i, pieces)
    pieces.append(BUILD)
    return i


def _encode_step(parts: Parts, func: Any, args: tuple[Any, ...], memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a call of which the value is dropped."""
    i = encode(parts, func, memo, i, pieces)
    i = encode_tuple(parts, args, memo, i, pieces)
    pieces.append(REDUCE)
    return i


def _write_function(pickler: Any, obj: Any) -> Callable[[], None] | None:
    """Write a function as `save_function` does, but for what that does at the end.

    Returns:
        What does that; None if nothing is written, and then nobody's code has run but that of annotations, of which the
        function keeps the value.
    """
    module = None
    module_name = obj.__module__
    if module_name is not None:
        module = _imported(module_name) if type(module_name) is str else None
        is_found = None if module is None else module_name != "__main__" and _is_found(module, obj)
        if is_found is None:
            return None
        if is_found:
            plan = hooks.plan(pickler)
            return _nothing if plan and write_at_once(Parts(pickler, plan), _encode_by_name, obj) else None

    state_dict: dict[str, Any] = {}
    for name in ("__doc__", "__kwdefaults__", "__annotations__"):
        value = getattr(obj, name, None)  # from 3.14 on annotations may run somebody's code
        if value is not None:
            state_dict[name] = value
    plan = hooks.plan(pickler)
    if not plan:
        return None
    parts = Parts(pickler, plan)
    try:
        _known(parts)
        postproc = pickler._postproc
        if pickler._recurse or getattr(pickler, "_main_modified", None) or id(obj) in postproc:
            return None
    except (NotBrief, KeyError, AttributeError, TypeError):
        return None

    its_globals = all_globals = obj.__globals__
    to_do: list[Any] = []
    if module is None or module.__dict__ is not all_globals:
        its_globals = {"__name__": module_name}
        ids = {*map(id, all_globals.values())} if postproc else ()
        for_globals = next((steps for key, steps in postproc.items() if key in ids), to_do)
        parts.to_append.append((for_globals, (_dill._setitems, (its_globals, all_globals))))
    attributes = obj.__dict__
    name = obj.__name__
    qualname = obj.__qualname__
    own_name = its_globals.get("__name__")
    if type(attributes) is not dict or not type(name) is type(qualname) is type(own_name or "") is str:
        return None
    if qualname != name:
        state_dict["__qualname__"] = qualname
    if "__name__" not in its_globals or module_name != own_name:
        state_dict["__module__"] = module_name
    closure = obj.__closure__
    args = (obj.__code__, its_globals, name, obj.__defaults__, closure)
    state = (attributes, state_dict) if state_dict else attributes
    postproc[id(obj)] = to_do
    try:
        is_written = write_at_once(parts, _encode_by_value, obj, args, state)
    finally:
        del postproc[id(obj)]
    if not is_written:
        return None
    return partial(_finish, pickler, obj, to_do, closure) if to_do or (closure and postproc) else _nothing


def _is_found(module: Any, obj: Any) -> bool | None:
    """Tell whether a function is found under its name, as `_locate_function` does; None if that may run other code."""
    qualname = obj.__qualname__
    if type(qualname) is not str:
        return None
    name, *rest = qualname.split(".")
    if name == "<locals>":
        return False
    if name in module.__dict__:
        if rest:
            return False if rest[0] == "<locals>" and not hasattr(ModuleType, name) else None
        return None if hasattr(ModuleType, name) else module.__dict__[name] is obj
    return None if "__getattr__" in module.__dict__ or hasattr(ModuleType, name) else False


def _encode_by_name(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a function that has been found under its name."""
    _known(parts)
    return encode_global(parts, obj, obj.__module__, obj.__qualname__, memo, i, pieces)


def _finish(pickler: Any, obj: Any, to_do: list[Any], closure: tuple[Any, ...] | None) -> None:
    """Do what dill's functions do when a function is written: fill its cells and globals."""
    for func, args in reversed(to_do):
        if func is _dill._setitems:
            dest, source = args
            if not source:
                continue
            pickler.write(pickler.get(pickler.memo[id(dest)][0]))
            pickler._batch_setitems(*for_batch(iter(source.items()), obj))
        else:
            plan = hooks.plan(pickler)
            if not plan or not write_at_once(Parts(pickler, plan), _encode_step, func, args):
                pickler.save_reduce(func, args)
        pickler.write(POP)
    postproc = pickler._postproc
    if not postproc or not closure:
        return
    steps = next(iter(postproc.values()))
    if steps:
        for cell in closure:
            step = (setattr, (cell, "cell_contents", obj))
            try:
                steps.remove(step)
            except ValueError:
                continue
            pickler.save_reduce(*step)
            pickler.write(POP)


def _nothing() -> None:
    """Do what is left, if nothing is."""


def _write_class(pickler: Any, obj: Any) -> Callable[[], None] | None:
    """Write a class that `save_type` saves by its name; None if nothing is written, and nobody's code has run."""
    plan = hooks.plan(pickler)
    return _nothing if plan and write_at_once(Parts(pickler, plan), _encode_name, obj) else None


def _are_dills(*functions: Any) -> bool:
    """Tell whether functions are those of dill's module, and not what somebody has put in their place."""
    return all(type(f) is FunctionType and f.__globals__ is _GLOBALS for f in functions)


if _are_dills(
    _dill.save_code, _dill.save_cell, _dill.save_module, _dill._create_function, _dill._create_code, _dill._create_cell,
    _dill._import_module, _dill._locate_function, _dill._save_with_postproc, _dill._setitems, _dill.is_dill,
):  # fmt: skip
    for _type, _encoder in (
        (CodeType, _encode_code),
        (CellType, _encode_cell),
        (dict, _encode_dict),
        (ModuleType, _encode_module),
        (FunctionType, _encode_name),
        (type, _encode_name),
        (_Reduce, _encode_reduce),
    ):
        add_encoder(_type, _encoder)
    hooks.entry_writers[id(_dill.save_function)] = _write_function
    hooks.entry_writers[id(_dill.save_type)] = _write_class
