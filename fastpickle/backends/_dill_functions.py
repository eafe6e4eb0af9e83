"""What dill saves by value, written at once: functions with their code, cells and globals, and what classes have of it.

    save_function(f) --+-- found under its name: by dill's own function
                       +-- else: _create_function(code, globals, name, defaults, cells), its state, and what fills the
                                 cells afterwards; then, part by part, what could not be encoded of that, and globals
                                 that are not a module's
    save_type(t) ------+-- a builtin type, by the name that dill has for it: _load_type(name)
                       +-- else: by dill's own function
    a tuple that one of dill's functions saves --- all of the above, as parts of it

dill's own functions give each of the some forty parts to `pickler.save`, and most of these are atoms and tuples.  So
all but the last of that is encoded together (`encoders`), and written if that succeeds; if not, nothing is, and dill's
function is called.  Where dill looks a name up, it is looked up without running anybody's code, or left to dill.

Not for: functions that hold what is much or is somebody's, and picklers with hooks; those go hook by hook.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from functools import partial
from pickle import BUILD, POP, REDUCE
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import dill
from dill import _dill

from .. import hooks
from .._stdlib import for_batch, is_usual_file, may_run_code
from ..engine.columns import forget
from ..engine.encoders import (
    Encoder,
    Memo,
    NotBrief,
    Parts,
    add_encoder,
    brief_ids,
    encode,
    encode_call,
    encode_dict,
    encode_global,
    encode_name,
    encode_tuple,
    usual_tries,
    write_at_once,
)
from ..engine.template import Template
from ..engine.tries import Tries
from ..interrupts import is_interrupt
from ..objects.arrays import HEAP_TYPE, array_type
from ..objects.known import METACLASS_IDS, extension_registry, has_reduce_entry
from ._dill_again import Again
from ._dill_code import WARNS, encode_code
from ._dill_known import are_helpers_dills, entry_of, given_by, imported, is_found, look_at, module_of
from ._dill_own import GLOBALS, NAMED_OTHERWISE, entry_of_arrays, has_its_helpers, is_quiet
from ._dill_versions import are_known

__all__: list[str] = []

_Reduce: Any = type(_dill._shims._setattr)
_REDUCES: Final = _Reduce.__reduce_ex__, _Reduce.__reduce__


def _encoder_by(t: type, save: Any) -> Encoder:
    """Return the encoder of what one of dill's functions gives to `save_reduce` as a call, and does nothing else."""

    def encode_as_given(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
        look_at(parts)
        if entry_of(parts, t) is not save:
            raise NotBrief
        return encode_call(parts, obj, *given_by(save, obj), memo, i, pieces)

    return encode_as_given


def _encode_cell(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode the cell of a function that is being saved as `save_cell` saves it: empty, to be filled at the end."""
    parts.known or look_at(parts)
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
        main, reference, length, length_of_main = parts.known or look_at(parts)
        n = len(obj)
        if obj is main:
            pieces.append(reference)
            return i
        if n in (length, length_of_main):
            raise NotBrief  # they are compared
        if n < _LARGE and not hooks.ATOM_IDS.issuperset(map(id, map(type, obj))):
            raise NotBrief  # a key may have the hash of the name
        if "__name__" in obj:
            name = obj["__name__"]
            if type(name) is str:
                module = imported(name)
                if module is None:
                    raise NotBrief
                if obj is module.__dict__:
                    pieces.append(bytes(f"c{name}\n__dict__\n", "UTF-8"))
                    return i
        if _HAS_ANNOTATE and not all(_may_be_asked(parts, x) for x in obj.values()):
            raise NotBrief  # before much is encoded for nothing: the methods of a class, most often
    return encode_dict(parts, obj, memo, i, pieces)


#: So many keys are those of a module, whose dict is not looked through.
_LARGE: Final = 64


def _encode_module(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode dill's own module as `save_module` saves it, which looks at its file, 50 us, and saves it by its name."""
    if obj is not _dill or not _is_module_by_name(parts):
        raise NotBrief
    return encode_global(parts, obj, _dill.__module__, "_dill", memo, i, pieces)


def _is_module_by_name(parts: Parts) -> bool:
    """Tell whether dill's own module is saved by its name."""
    return (
        bool(parts.known or look_at(parts))
        and _dill.__name__ == "dill._dill"
        and parts.pickler._main is not _dill
        and imported(_dill.__module__) is dill
    )


def _encode_class(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a class as `save_type` does that is found under its name, or one of those to which dill gives a name."""
    if entry_of(parts, type) is not _dill.save_type:
        return encode_name(parts, obj, memo, i, pieces)
    parts.known or look_at(parts)
    name = _dill._typemap.get(obj)
    if name is not None:
        return encode_call(parts, obj, _dill._load_type, (name,), memo, i, pieces)
    if (
        obj in NAMED_OTHERWISE
        or obj.__bases__ == (tuple,)  # a namedtuple, perhaps
        or id(obj) in parts.pickler._postproc
        or not is_found(module_of(obj), obj)
    ):
        raise NotBrief
    return encode_global(parts, obj, obj.__module__, obj.__qualname__, memo, i, pieces)


def _encode_function(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a function as `save_function` does, with all that is to be done when it is written."""
    if entry_of(parts, FunctionType) is not _dill.save_function:
        return encode_name(parts, obj, memo, i, pieces)
    parts.known or look_at(parts)
    name = obj.__qualname__
    module_name = obj.__module__
    if type(module_name) is str and module_name == "dill._dill" and type(name) is str and GLOBALS.get(name) is obj:
        return encode_global(parts, obj, module_name, name, memo, i, pieces)
    module = module_of(obj)
    if is_found(module, obj):
        return encode_global(parts, obj, module_name, name, memo, i, pieces)
    if not _may_be_asked(parts, obj) or parts.functions >= _MOST_FUNCTIONS:
        raise NotBrief
    parts.functions += 1
    its_globals, to_do = _globals_of(parts, obj, module)
    if _taken_from(parts, to_do):
        raise NotBrief  # all globals of a module: `_encode_steps` would say so when all else is encoded
    args, state = _reduction(obj, its_globals)
    i = _again.encode(parts, obj, args, state, memo, i, pieces) or _encode_made(
        parts, obj, args, state, memo, i, pieces
    )
    parts.functions -= 1
    postproc = parts.pickler._postproc
    if args[-1] and postproc:
        steps = next(iter(postproc.values()))
        for func, arguments in (*steps, *[step for its, step in parts.to_append if its is steps]):
            if id(func) not in _STEPS and not (func is setattr and id(type(arguments[0])) in METACLASS_IDS):
                raise NotBrief  # a cell is compared with it (`_fill_cells`)
    return i


def _encode_made(
    parts: Parts, obj: Any, args: tuple[Any, ...], state: Any, memo: Memo, i: int, pieces: list[bytes]
) -> int:
    """Encode a function as `save_function` gives it to `save_reduce`, and what is to be done when it is written."""
    to_do: list[Any] = []
    i = _encode_by_value(parts, obj, args, state, to_do, memo, i, pieces)
    steps = _taken_from(parts, to_do)
    return _encode_steps(parts, steps, memo, i, pieces) if steps else i


#: So many functions may be written within one; those in cells are saved afterwards, each with all that is in it.
_MOST_FUNCTIONS: Final = 2
_STEPS: Final = (id(_dill._shims._setattr), id(_dill._setitems))


def _is_setattr_usual(parts: Parts) -> bool:
    """Tell whether what stands for `setattr` in dill is saved as its reduce has it: `getattr` of dill's own module."""
    return (
        bool(parts.known or look_at(parts))
        and (_Reduce.__reduce_ex__, _Reduce.__reduce__) == _REDUCES
        and entry_of(parts, _Reduce) is None
        and entry_of(parts, BuiltinFunctionType) is None
        and not has_reduce_entry(parts.pickler, _Reduce, BuiltinFunctionType)
        and _dill._shims._setattr.reduction is _SETATTR
        and _getattr.__module__ is _setattr.__module__ is _BUILTINS
        and sys.modules.get("builtins") is builtins
        and builtins.__dict__.get("getattr") is _getattr
        and builtins.__dict__.get("setattr") is _setattr
        and _is_module_by_name(parts)
        and not extension_registry
    )


def _encode_reduce(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode what stands for a function in dill, as its reduce does: by `getattr` from dill's own module."""
    if obj is not _dill._shims._setattr or not _is_setattr_usual(parts):  # others nobody uses here
        raise NotBrief
    global _template
    if _template is None:  # it is the same every time
        names = {getattr.__name__, setattr.__name__}  # another object each time that one is asked for
        _template = Template(_encode_setattr, parts, obj, is_made_anew=lambda x: type(x) is str and x in names)
    return _template.encode(memo, i, pieces) or _encode_setattr(parts, obj, memo, i, pieces)


def _encode_setattr(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    func, args = _SETATTR
    return encode_call(parts, obj, func, args, memo, i, pieces)


_SETATTR: Any = _dill._shims._setattr.reduction
_getattr, _setattr = getattr, setattr  # others may stand under these names later
_BUILTINS: Final = getattr.__module__
_template: Template | None = None


def _encode_by_value(
    parts: Parts, obj: Any, args: tuple[Any, ...], state: Any, to_do: list[Any], memo: Memo, i: int, pieces: list[bytes]
) -> int:
    """Encode a function as `save_function` gives it to `save_reduce`, while others see that it is being saved."""
    postproc = parts.pickler._postproc
    key = id(obj)
    postproc[key] = to_do
    try:
        i = encode_call(parts, obj, _dill._create_function, args, memo, i, pieces)
        i = encode(parts, state, memo, i, pieces)
    finally:
        del postproc[key]  # without a call: there may be no memory for another int
    pieces.append(BUILD)
    return i


def _taken_from(parts: Parts, to_do: list[Any]) -> list[Any]:
    """Return what is to be appended to a list, which is not to be appended any more."""
    mine = [step for its, step in parts.to_append if its is to_do]
    if mine:
        parts.to_append = [(its, step) for its, step in parts.to_append if its is not to_do]
    return mine


def _encode_steps(parts: Parts, steps: list[Any], memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode what is to be done when a function is written: the last first, and without the values."""
    for func, args in reversed(steps):
        if func is _dill._setitems:
            raise NotBrief
        i = encode(parts, func, memo, i, pieces)
        i = encode_tuple(parts, args, memo, i, pieces)
        pieces.append(_DROPPED)
    return i


_DROPPED: Final = REDUCE + POP
_tries_of_functions: Final = Tries()
_tries_of_steps: Final = Tries()


def _encode_all(
    parts: Parts, obj: Any, args: tuple[Any, ...], state: Any, to_do: list[Any], memo: Memo, i: int, pieces: list[bytes]
) -> int:
    """Encode a function, and what is to be done when it is written, if all of that can be encoded."""
    parts.functions = 1
    if not parts.to_append:
        n = _again.encode(parts, obj, args, state, memo, i, pieces)
        if n:
            return n
    i = _encode_by_value(parts, obj, args, state, to_do, memo, i, pieces)
    steps = _taken_from(parts, to_do)
    if steps and not _tries_of_steps.may_try(parts.pickler):
        parts.to_append += [(to_do, step) for step in steps]
    elif steps:
        n = len(pieces)
        to_append = [*parts.to_append]
        try:
            _encode_steps(parts, steps, memo, i, pieces)
        except Exception as exc:  # they are for `_finish`, and `parts` is no longer needed
            if is_interrupt(exc):
                raise
            _tries_of_steps.note_failure(pieces[n:])
            forget(memo, i)
            del pieces[n:]
            parts.to_append = [*to_append, *[(to_do, step) for step in steps]]
    return i


def _write_function(pickler: Any, obj: Any, plan: hooks.Plan | None = None) -> Callable[[], None] | None:
    """Write a function as `save_function` does, but for what is to be done at the end, if that may run somebody's code.

    Returns:
        What does that; None if nothing is written, and then nobody's code has run.
    """
    module_name = obj.__module__
    if (type(module_name) is str and module_name == "dill._dill") or not _tries_of_functions.may_try(pickler):
        return None
    if not _are_brief(obj.__defaults__):
        usual_tries.note_in_vain(pickler, obj.__code__)  # a tuple of its parts
        return None
    try:
        module = module_of(obj)
        if is_found(module, obj):
            return None  # dill's function takes no longer
        if plan is None:
            plan = hooks.plan(pickler)
        if not plan:
            return None
        parts = Parts(pickler, plan)
        its_globals, to_do = _globals_of(parts, obj, module)
    except (NotBrief, AttributeError):
        return None
    may_run_code = _may_run_code(obj)
    to_append = parts.to_append[:]  # what cells add belongs to what is encoded
    args, state = _reduction(obj, its_globals)
    is_written = False
    if may_run_code:
        parts.known = None  # it may be otherwise by now
    if not may_run_code or hooks.plan(pickler) is plan:
        is_written = write_at_once(parts, _encode_all, obj, args, state, to_do, tries=_tries_of_functions)
    if not is_written:
        usual_tries.note_in_vain(pickler, obj.__code__)
        return partial(_save_function, pickler, obj, args, state, to_do, to_append) if may_run_code else None
    if to_do or (args[-1] and pickler._postproc):
        return partial(_finish, pickler, obj, to_do, args[-1])
    return _nothing if may_run_code else hooks.nothing_left


def _are_brief(defaults: tuple[Any, ...] | None) -> bool:
    """Tell whether the defaults of a function look as if they could be encoded; functions in functions are too many."""
    if not defaults:
        return True
    ids = [*map(id, map(type, defaults))]
    if id(FunctionType) in ids:
        for x in defaults:
            if type(x) is FunctionType and not hooks.ATOM_IDS.issuperset(map(id, map(type, x.__defaults__ or ()))):
                return False
    return brief_ids.issuperset(ids)


def _may_run_code(obj: Any) -> bool:
    """Tell whether a function's annotations may run somebody's code, as from 3.14 on when they are asked for first."""
    return type(obj) is FunctionType and may_run_code(obj)


def _may_be_asked(parts: Parts, obj: Any) -> bool:
    """Tell whether a function may be asked for its annotations, which it keeps, before it is known what is written.

    If what is encoded turns out not to fit into the frame, stock asks after that is written, which may run code.
    """
    return (
        type(obj) is not FunctionType
        or getattr(obj, "__annotate__", None) is None
        or (not may_run_code(obj) and is_usual_file(parts.pickler.framer.file_write.__self__))
    )


_HAS_ANNOTATE: Final = hasattr(FunctionType, "__annotate__")


def _globals_of(parts: Parts, obj: Any, module: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return the globals that a function is written with, and the list of what is to be done when it is written.

    Args:
        parts: stands for the pickler.
        obj: a function that is not found under its name.
        module: that of its name; None if it has none.

    Raises:
        NotBrief: it is saved otherwise, or that is not known.
    """
    look_at(parts)
    pickler = parts.pickler
    postproc = pickler._postproc
    its_globals = all_globals = obj.__globals__
    if type(all_globals) is not dict:
        raise NotBrief
    to_do: list[Any] = []
    if module is None or module.__dict__ is not all_globals:
        its_globals = {"__name__": obj.__module__}
        ids = {*map(id, all_globals.values())} if postproc else ()
        for_globals = next((steps for key, steps in postproc.items() if key in ids), to_do)
        parts.to_append.append((for_globals, (_dill._setitems, (its_globals, all_globals))))
    name = its_globals.get("__name__")
    if (
        pickler._recurse
        or getattr(pickler, "_main_modified", None)
        or id(obj) in postproc
        or type(obj.__dict__) is not dict
        or not type(obj.__name__) is type(obj.__qualname__) is type("" if name is None else name) is str
    ):
        raise NotBrief
    return its_globals, to_do


def _reduction(obj: Any, its_globals: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """Return what `save_function` calls `_create_function` with, and the state."""
    closure = obj.__closure__
    state_dict: dict[str, Any] = {}
    for name in ("__doc__", "__kwdefaults__", "__annotations__"):
        value = getattr(obj, name, None)
        if value is not None:
            state_dict[name] = value
    if obj.__qualname__ != obj.__name__:
        state_dict["__qualname__"] = obj.__qualname__
    if "__name__" not in its_globals or obj.__module__ != its_globals["__name__"]:
        state_dict["__module__"] = obj.__module__
    state = obj.__dict__
    if type(state) is not dict:
        state_dict["__dict__"] = state
        state = None
    args = (obj.__code__, its_globals, obj.__name__, obj.__defaults__, closure)
    return args, (state, state_dict) if state_dict else state


def _save_function(
    pickler: Any, obj: Any, args: tuple[Any, ...], state: Any, to_do: list[Any], to_append: list[Any]
) -> None:
    """Save a function as dill's does, from where it has asked for annotations, which are not to be asked for again."""
    for steps, step in to_append:
        steps.append(step)
    _dill._save_with_postproc(pickler, (_dill._create_function, args, state), obj=obj, postproc_list=to_do)
    _fill_cells(pickler, obj, args[-1])


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
            pickler.save_reduce(func, args)
        pickler.write(POP)
    _fill_cells(pickler, obj, closure)


def _fill_cells(pickler: Any, obj: Any, closure: tuple[Any, ...] | None) -> None:
    """Fill the cells that hold a function itself as soon as it is written, where a class around it was to do so."""
    postproc = pickler._postproc
    steps = next(iter(postproc.values()), None) if postproc and closure else None
    if steps:
        for cell in closure or ():
            step = (setattr, (cell, "cell_contents", obj))
            try:
                steps.remove(step)
            except ValueError:
                continue
            pickler.save_reduce(*step)
            pickler.write(POP)


def _nothing() -> None:
    """Do what is left, if nothing is."""


def _write_class(pickler: Any, obj: Any, plan: hooks.Plan | None = None) -> Callable[[], None] | None:
    """Write a class to which dill gives a name; None if nothing is written, and nobody's code has run."""
    if type(obj) is not type:
        return None
    if obj not in _dill._typemap:
        if not (_entries_of_arrays or obj.__flags__ & HEAP_TYPE) and (
            (entry := entry_of_arrays(pickler, obj)) is not None
        ):
            _entries_of_arrays.append(entry)  # so that its id stays its own
            hooks.entry_writers[id(entry)] = _write_array
        return None  # dill's function takes no longer
    if plan is None:
        plan = hooks.plan(pickler)
    return hooks.nothing_left if plan and write_at_once(Parts(pickler, plan), _encode_class, obj) else None


def _encode_range(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a range as `save_singleton` does, once what it calls is in the memo."""
    if id(_dill._eval_repr) not in memo:
        raise NotBrief
    return encode_call(parts, obj, _dill._eval_repr, (obj.__repr__(),), memo, i, pieces)


def _write_range(pickler: Any, obj: Any, plan: hooks.Plan | None = None) -> Callable[[], None] | None:
    """Write a range beside many; None if nothing is written, and nobody's code has run."""
    if plan is None or type(obj) is not range or not is_quiet(pickler):
        return None
    return hooks.nothing_left if write_at_once(Parts(pickler, plan), _encode_range, obj) else None


def _encode_array(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode one of numpy's arrays as dill does, once what it calls is in the memo, with the dtype."""
    if obj.nbytes > _LONGEST_ARRAY or id(obj.dtype) not in memo:
        raise NotBrief
    f, args, state = obj.__reduce__()
    return encode_call(parts, obj, _dill._create_array, (f, args, state, None), memo, i, pieces)


def _write_array(pickler: Any, obj: Any, plan: hooks.Plan | None = None) -> Callable[[], None] | None:
    """Write an array beside others; None if nothing is written, and nobody's code has run."""
    if id(_dill._create_array) not in pickler.memo or type(obj) is not array_type() or not is_quiet(pickler):
        return None
    if plan is None:
        plan = hooks.plan(pickler)
    is_written = plan and has_its_helpers() and write_at_once(Parts(pickler, plan), _encode_array, obj)
    return hooks.nothing_left if is_written else None


#: Of more bytes the rest does not matter.
_LONGEST_ARRAY: Final = 16 << 10
#: dill's function for arrays, once the first array has had it made: dill saves their class then.
_entries_of_arrays: Final[list[Any]] = []


_again: Final = Again(_encode_made, _encode_dict, _is_setattr_usual)

if are_known("save_singleton") and are_helpers_dills():
    hooks.entry_writers[id(_dill.save_singleton)] = _write_range
if not WARNS and are_helpers_dills():  # what `FUNCTIONS` names is known, or this would not be imported
    for _type, _save in (
        (property, _dill.save_property),
        (staticmethod, _dill.save_classmethod),
        (classmethod, _dill.save_classmethod),
        (MethodType, _dill.save_instancemethod0),
    ):
        add_encoder(_type, _encoder_by(_type, _save))
    add_encoder(CodeType, encode_code)
    add_encoder(CellType, _encode_cell)
    add_encoder(dict, _encode_dict)
    add_encoder(ModuleType, _encode_module)
    add_encoder(FunctionType, _encode_function)
    add_encoder(type, _encode_class)
    add_encoder(_Reduce, _encode_reduce)
    hooks.entry_writers[id(_dill.save_function)] = _write_function
    hooks.entry_writers[id(_dill.save_type)] = _write_class
