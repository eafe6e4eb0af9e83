"""Overrides written for older Pythons: called with what they take, where stock would raise TypeError.

    save_dict --> self._batch_setitems(items, obj)  (3.14 on) --> adapter --> the override(items) --> Pickler's (items)
    save_pers --> self.save(pid, save_persistent_id=False) -----> adapter --> the override(pid) ----> Pickler's (pid)

An adapter is an attribute of the instance while it dumps, so that whoever calls the method finds it: stock's own
functions, and libraries that call those.  Whether one is needed is decided once a dump, and only for classes that
override something.  What an override calls in its turn takes the older arguments, too (`batch_methods`).

Not for: overrides with the signature of the running Python, which see what stock gives them.
"""

from __future__ import annotations

from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any, Final

from ._stdlib import TELLS_WHOSE, StockPickler, stock_methods
from .interrupts import is_interrupt

__all__ = [
    "adapt",
    "batch_methods",
    "is_adapted",
    "is_asked_about",
    "is_to_be_adapted",
    "method_of",
    "overrides_batches",
    "restore_adapted",
    "save_pers",
]

_NAMES: Final = ("_batch_appends", "_batch_setitems") if TELLS_WHOSE else ()


def method_of(cls: Any, name: str) -> Any:
    """Return a method of a class; None if it is surely anybody's: it has no hash, or only instances may ask for it."""
    try:
        method = getattr(cls, name)
        hash(method)
        return method
    except Exception as exc:
        if type(exc) in (RecursionError, MemoryError) or is_interrupt(exc):
            raise
        return None


def _with_default(function: Any, default: object) -> Any:
    """Return a function with the same code, whose last parameter may be left out.

    It is as fast as the function itself, and one frame deep as that is.
    """
    made = FunctionType(function.__code__, function.__globals__, function.__name__, (default,), function.__closure__)
    made.__module__ = function.__module__
    made.__qualname__ = function.__qualname__
    made.__doc__ = function.__doc__
    return made


#: By name, what stock's methods that are told whose items they save are here: they need not be told.  An exception's
#: notes speak of a list or a dict then.  Empty where stock's are told nothing.
batch_methods: Final[dict[str, Any]] = {
    name: _with_default(stock_methods[name], [] if name == "_batch_appends" else {}) for name in _NAMES
}


if TELLS_WHOSE:
    _own_appends, _own_setitems = batch_methods.values()

    def overrides_batches(cls: Any) -> bool:
        """Tell whether a class has one of these methods from somebody else; 60 ns."""
        try:
            return cls._batch_setitems is not _own_setitems or cls._batch_appends is not _own_appends
        except Exception as exc:  # one is for instances, and so no function that needs an adapter
            if type(exc) in (RecursionError, MemoryError) or is_interrupt(exc):
                raise
            return True

    def is_to_be_adapted(cls: Any) -> bool:
        """Tell whether one of those takes the items only, so that the instances of the class need adapters."""
        return any(_takes_items_only(method_of(cls, name)) for name in _NAMES) if overrides_batches(cls) else False

else:

    def overrides_batches(cls: Any) -> bool:
        """Tell that there is nothing to be adapted."""
        return False

    is_to_be_adapted = overrides_batches


class _Adapter:
    """Stands on an instance for a method of its class that takes the items, and not whose they are."""

    def __init__(self, pickler: Any, function: Any) -> None:
        self._pickler = pickler
        self._function = function

    def __call__(self, items: Any, obj: object = None) -> Any:
        return self._function(self._pickler, items)


def adapt(pickler: Any) -> tuple[str, ...]:
    """Put adapters on an instance for the overrides that need one.

    Args:
        pickler: one whose dump begins.

    Returns:
        The names of its new attributes, for `restore_adapted`.
    """
    cls = type(pickler)
    names: tuple[str, ...] = ()
    state = pickler.__dict__
    for name in _NAMES:
        function = method_of(cls, name)
        if function is not batch_methods[name] and name not in state and _takes_items_only(function):
            state[name] = _Adapter(pickler, function)
            names += (name,)
    return names


def restore_adapted(pickler: Any, names: tuple[str, ...]) -> None:
    """Take the adapters off the instance."""
    state = pickler.__dict__
    for name in names:
        if type(state.get(name)) is _Adapter:
            del state[name]


def is_adapted(state: dict[str, Any], names: frozenset[str]) -> bool:
    """Tell whether an instance has adapters for all those of `names` that it has an attribute for."""
    return all(type(state[name]) is _Adapter for name in names & state.keys())


def _takes_items_only(function: Any) -> bool:
    """Tell whether a method of a class takes one argument, and no second one."""
    if type(function) is not FunctionType:
        return False
    code = function.__code__
    return code.co_argcount == 2 and not code.co_flags & CO_VARARGS


# A persistent id is saved with `save_persistent_id=False`, by all Pythons since 3.0.


def save_pers(pickler: Any, pid: Any) -> None:
    """Do what the pickler's `save_pers` does, with an override of `save` that takes the object only.

    Args:
        pickler: one that has given a persistent id.
        pid: the persistent id.
    """
    function = method_of(type(pickler), "save")
    state = pickler.__dict__
    if "save" in state or not _takes_object_only(function):
        pickler.save_pers(pid)
        return

    def save(obj: Any, save_persistent_id: bool = True) -> None:
        state.pop("save", None)
        if save_persistent_id:
            function(pickler, obj)
            return
        state["_fastpickle_pid"] = obj
        try:
            function(pickler, obj)
        finally:
            state.pop("_fastpickle_pid", None)

    state["save"] = save
    try:
        pickler.save_pers(pid)
    finally:
        if state.get("save") is save:
            del state["save"]


def is_asked_about(pickler: Any, obj: Any) -> bool:
    """Tell whether an object is to be replaced by its persistent id, and not such an id itself."""
    state = pickler.__dict__
    if "_fastpickle_pid" in state and state["_fastpickle_pid"] is obj:
        del state["_fastpickle_pid"]
        return False
    return True


def _takes_object_only(function: Any) -> bool:
    """Tell whether a `save` takes an object, and no `save_persistent_id`."""
    if type(function) is not FunctionType or function is StockPickler.save:
        return False
    code = function.__code__
    arguments = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    return not code.co_flags & CO_VARKEYWORDS and "save_persistent_id" not in arguments
