"""dill on our base, and what is known of dill's own hooks.

    dill.Pickler.save     -> StockPickler.save     for builtin types nothing else, so the loop need not call it
    dispatch[dict]        -> save_module_dict      writes a module's `__dict__` by reference, others as stock does

`Pickler` here is a subclass of dill's, so that every type that dill knows, and every one registered with it, is saved
by dill's own function; its plain data goes through `fastpickle.Pickler`.  The name of this module is not free: dill
takes a pickler for its own if there is "dill" in the `__module__` of its class.

Under `fastpickle.install()` dill's own `dumps` goes by all this; and the pickler that it makes and drops, as does
multiprocess, need not be filled if C can write the dump (`_write_at_once`).

This is read off dill's source, so it is applied where that is known (`_dill_versions`): what is not works, too, through
every hook.

Not for: patching dill, which stays as it is.
"""

from __future__ import annotations

import codecs
import io
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import chain
from pickle import HIGHEST_PROTOCOL
from types import BuiltinFunctionType, FunctionType, ModuleType, WrapperDescriptorType
from typing import Any, Final

from .. import hooks
from .._stdlib import FRAMES_ARE_BYTESIO, CPickler, StockPickler, stock_methods
from ..at_once.quick import Quick, is_for_librarys
from ..digests import hashing
from ..doubts import doubt, holds, outside
from ..hooks import NUMBER_IDS
from ..objects.arrays import is_fixed, is_little
from ..objects.asked import ABSENT, are_texts, in_class
from ..objects.known import METACLASS_IDS
from ..objects.likely import is_leaf
from ..pickler import Pickler as _Base
from ..rules import GraftRule

try:
    import dill
    from dill import _dill
except ImportError as exc:
    raise ImportError("fastpickle.backends.dill needs dill: pip install 'fastpickle[dill]'") from exc

from ._dill_own import GLOBALS, NAMED_OTHERWISE, are_dills, entry_of_arrays, has_its_helpers, is_quiet
from ._dill_versions import FUNCTIONS, IS_READ, KNOWN_VERSIONS, NAMES, PLAIN_DATA, are_known
from ._multiprocess import quick_of

__all__ = ["KNOWN_VERSIONS", "Pickler", "dump", "dumps", "load", "loads"]

load = dill.load
loads = dill.loads
_stock_save_dict = stock_methods["save_dict"]


def _save_plain_dict(pickler: Any, plan: hooks.Plan, obj: dict[Any, Any], write: Any) -> None:
    """Save a dict as dill's own function does, which is called only for a trace, a session, or perhaps `__main__`'s.

    Only a dict with a '__name__' can be a module's, and only one of the same length can equal that of `__main__`.
    """
    if (
        not is_quiet(pickler)
        or StockPickler.save_dict is not _stock_save_dict
        or len(obj) == len(getattr(pickler, "_main", _dill._main_module).__dict__)
        or len(obj) == len(_dill._main_module.__dict__)
    ):
        outside(pickler, pickler.dispatch[dict], obj)
        return
    if "__name__" in obj and type(obj["__name__"]) is str:
        doubt(pickler)  # an import may run anything
        if obj is getattr(_dill._import_module(obj["__name__"], True), "__dict__", None):
            pickler.write(bytes("c{}\n__dict__\n".format(obj["__name__"]), "UTF-8"))
            return
        if not holds(pickler, plan):
            _stock_save_dict(pickler, obj)
            return
    (_save_dict if plan.hash_rule is None else hashing.save_dict)(pickler, plan, obj, write)


def _is_plain_dict(pickler: Any, obj: dict[Any, Any]) -> bool:
    """Tell whether dill's own function would save a dict as stock does, by what `_save_plain_dict` asks."""
    main = _dill._main_module
    n = len(obj)
    return (
        "__name__" not in obj
        and n != len(main.__dict__)
        and is_quiet(pickler)
        and ((its_own := getattr(pickler, "_main", main)) is main or n != len(its_own.__dict__))
        and StockPickler.save_dict is _stock_save_dict
    )


def _mains(pickler: Any) -> tuple[Any, ...]:
    """Return dill's main module, and the pickler's if that is another one."""
    main = _dill._main_module
    its_own = getattr(pickler, "_main", main)
    return (main,) if its_own is main else (main, its_own)


def _asks(t: type) -> bool:
    """Tell whether somebody's `__eq__` may be asked: a dict of the length of `__main__`'s is compared with it."""
    if id(type(t)) not in METACLASS_IDS:
        return True
    eq = in_class(t, "__eq__")
    if type(eq) is not FunctionType:
        return type(eq) is not WrapperDescriptorType  # of what is written in C
    made_in = eq.__code__.co_filename
    is_made = in_class(t, "__dataclass_fields__" if made_in == "<string>" else "__attrs_attrs__") is not ABSENT
    return not (is_made and made_in.startswith(_GENERATED)) and eq.__module__ not in _STDLIBS


#: Where the functions are that dataclasses and attrs make: they compare instances of one class, by what is in them.
_GENERATED = ("<string>", "<attrs generated ")
_STDLIBS = ("collections", "datetime", "decimal", "enum", "fractions", "pathlib", "pathlib._local", "uuid")


def _lengths(pickler: Any) -> tuple[int, ...]:
    """Return the lengths of the dicts that dill compares with the dict of `__main__`, or of the pickler's module.

    None of them if dicts that have no '__name__' are not saved as stock saves them now.
    """
    main = _dill._main_module
    globals_ = main.__dict__
    # The second is what dill calls.
    if "__name__" not in globals_ or StockPickler.save_dict is not _stock_save_dict or not is_quiet(pickler):
        return ()
    its_own = getattr(pickler, "_main", main)
    if its_own is main:
        return (len(globals_),)
    return (len(globals_), len(its_own.__dict__)) if "__name__" in its_own.__dict__ else ()


def _asked(pickler: Any) -> tuple[str, ...]:
    """Return the names of the globals there whose `__eq__` may be anybody's; a dict is asked for one if it has it."""
    names: list[str] = []
    for main in _mains(pickler):
        names += [name for name, x in main.__dict__.items() if id(type(x)) not in _HARMLESS and not _is_harmless(x)]
    return tuple(names)


def _is_asked(pickler: Any, obj: dict[Any, Any]) -> bool:
    """Tell whether somebody's `__eq__` may be asked to compare a dict with those: as far as it has the same keys."""
    for main in _mains(pickler):
        globals_ = main.__dict__
        if len(globals_) == len(obj):
            for key, x in [*obj.items()]:
                if type(key) is not str and id(type(key)) not in NUMBER_IDS:
                    return True  # its hash may be that of a name
                if key not in globals_:
                    break
                if globals_[key] is not x and not (_is_harmless(x) and _is_harmless(globals_[key])):
                    return True
    return False


def _is_harmless(x: Any) -> bool:
    """Tell whether nobody's `__eq__` is asked to compare an object with another one."""
    t = type(x)
    if id(t) in _HARMLESS:
        return True
    if t is dict or t is list or t is tuple or t is set:
        held = (*x, *x.values()) if t is dict else x
        return len(x) <= _FEW and _HARMLESS.issuperset(map(id, map(type, held)))
    for c in type.mro(t):
        if "__eq__" in vars(c):
            return c is object
    return False


#: So many items are worth a look.
_FEW = 50
#: Types of which nobody's `__eq__` is asked, by id: the hash of a type may be anybody's.
_HARMLESS = frozenset(
    map(id, (int, str, float, bool, bytes, type(None), type, ModuleType, FunctionType, BuiltinFunctionType, ModuleSpec,
             SourceFileLoader))
)  # fmt: skip


def _is_saved_by_name(pickler: Any, t: type) -> bool:
    """Tell whether dill saves a class by its name, and not by what is in it, and traces nothing."""
    return (
        t not in _dill._typemap
        and t not in NAMED_OTHERWISE
        and not (t.__bases__ == (tuple,) and hasattr(t, "_fields"))  # a namedtuple
        and _is_located(pickler, t)
    )


def _is_located(pickler: Any, obj: Any) -> bool:
    """Tell whether dill finds a class or function under its name, and traces nothing."""
    return is_quiet(pickler) and has_its_helpers() and bool(_dill._locate_function(obj, pickler))


def _calls() -> dict[type, tuple[Any, Any]]:
    """Return which of dill's functions save an object as a call, and of what."""
    calls: dict[type, tuple[Any, Any]] = {}
    if are_known("save_type"):
        calls[type] = _dill.save_type, _call_of_class
    if are_known("save_singleton"):
        calls[range] = _dill.save_singleton, lambda x: (_dill._eval_repr, (x.__repr__(),))
    if are_known("save_slice"):
        calls[slice] = _dill.save_slice, lambda x: (slice, (x.start, x.stop, x.step))
    return calls


def _call_of_class(t: type) -> Any:
    """Return the call by which dill saves a class that it has a name for; None if it has none."""
    name = _dill._typemap.get(t)
    return None if name is None else (_dill._load_type, (name,))


def _call_for_arrays(pickler: Any, t: type) -> Any:
    """Return the function by which dill saves numpy's arrays, and its call."""
    entry = entry_of_arrays(pickler, t)
    return None if entry is None else (entry, _call_of_array)


def _call_of_array(array: Any) -> Any:
    """Return the call by which dill saves an array, None if it is not for C."""
    if not is_little(array):
        return None
    f, args, state = array.__reduce__()
    return _dill._create_array, (f, args, state, None)  # the last one is its __dict__


_save_dict: Any = hooks.savers[dict][1]
_DillPickler: Any = _dill.Pickler  # the name there may come to mean the class below
_dill_dump = _DillPickler.dump
_dill_save = _DillPickler.save


class Pickler(_DillPickler, _Base):  # type: ignore[misc]  # dill has no types
    """dill's Pickler on `fastpickle.Pickler`: the arguments, the bytes and the registered types of `dill.Pickler`."""

    def dump(self, obj: Any) -> None:
        """Write a pickled representation of `obj` to the open file, as `dill.Pickler.dump` would."""
        if _is_known and _DillPickler.dump is _dill_dump:
            _dill.logger.trace_setup(self)
            _Base.dump(self, obj)
        else:
            _DillPickler.dump(self, obj)

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write the opcodes of `obj`, as `dill.Pickler.save` would."""
        if _is_known and not _is_of_numpy(type(obj)):
            _Base.save(self, obj, save_persistent_id)
        else:  # dill's own save() registers numpy's types when it meets them, and goes on to stock's
            _dill_save(self, obj, save_persistent_id)


def _is_of_numpy(t: type) -> Any:
    """Tell whether dill's save() would do something of its own for an object of this type."""
    if not _dill.NumpyArrayType or t is type or t in _DillPickler.dispatch or id(t) in _of_others:
        return False
    if is_fixed(t):
        found = _dill.numpyufunc(t) or _dill.numpydtype(t) or _dill.ndarraysubclassinstance(t)
        if not found:
            _of_others.add(id(t))
        return found
    if id(type(t)) in METACLASS_IDS:
        names = [*map(_name_of, t.__mro__)]
        if not are_texts(map(id, map(type, chain(names, map(_module_of, t.__mro__))))):
            return True  # its __eq__, or hash, may be anybody's, and is asked there
        if _names_of_numpy.isdisjoint(names):
            return False  # as the three would say
    return _dill.numpyufunc(t) or _dill.numpydtype(t) or _dill.ndarraysubclassinstance(t)


#: The types, by id, of which that was found not to be so, and stays so.
_of_others: Final[set[int]] = set()
_names_of_numpy: Final = frozenset(("ndarray", "ufunc", "dtype"))
_name_of: Final = vars(type)["__name__"].__get__
_module_of: Final = vars(type)["__module__"].__get__


def dump(
    obj: Any,
    file: Any,
    protocol: int | None = None,
    byref: bool | None = None,
    fmode: int | None = None,
    recurse: bool | None = None,
    **kwds: Any,
) -> None:
    """Pickle an object to a file, as `dill.dump` does.

    Args:
        obj, file, protocol, byref, fmode, recurse: as in `dill.dump`.
        kwds: what `dill.Pickler` takes besides.
    """
    protocol = dill.settings["protocol"] if protocol is None else int(protocol)
    Pickler(file, protocol, **{**kwds, "byref": byref, "fmode": fmode, "recurse": recurse}).dump(obj)


def dumps(
    obj: Any,
    protocol: int | None = None,
    byref: bool | None = None,
    fmode: int | None = None,
    recurse: bool | None = None,
    **kwds: Any,
) -> bytes:
    """Pickle an object to bytes, as `dill.dumps` does.

    Args:
        obj, protocol, byref, fmode, recurse, kwds: as in `dump`.

    Returns:
        The bytes that `dill.dumps` gives.
    """
    # The other arguments are for what C is not asked to write.
    proto = dill.settings["protocol"] if protocol is None else int(protocol)
    is_for_quick = _quick is not None and not kwds and _DillPickler.dump is _dill_dump
    pickled: bytes | None = None
    if is_for_quick and type(proto) is int and 0 <= proto <= HIGHEST_PROTOCOL:
        pickled = _quick.at_once(obj, proto)
        if pickled:
            return pickled
    file = io.BytesIO()
    pickler = Pickler(file, proto, **{**kwds, "byref": byref, "fmode": fmode, "recurse": recurse})
    if pickled is not None:
        _quick.remember(pickler, obj, type(obj))
    pickler.dump(obj)
    return file.getvalue()


def _write_at_once(pickler: Any, obj: Any) -> bool:
    """Write a dump of `dill.dumps`, or multiprocess's, whose pickler is made, used and dropped by one line there."""
    t = type(obj)
    if id(t) not in hooks.CONTAINER_IDS and (t is type or is_leaf(t)):  # alone they take dill itself no longer
        return False
    if not is_for_librarys(obj, t):
        return False
    try:
        frame: Any = sys._getframe(2)  # 1 is our `dump`, which 2 calls
    except ValueError:  # or nobody: it was called by C
        return False
    if frame.f_code is not _CODE_OF_METHOD or frame.f_back is None:
        return False
    frame = frame.f_back
    cls = type(pickler)
    if cls is not _DillPickler:
        quick = quick_of(cls, frame.f_code, is_for_librarys)
        return quick is not None and quick.write(pickler, obj)
    return (
        frame.f_code is _CODE_OF_FUNCTION
        and frame.f_globals is GLOBALS
        and _dill.Pickler is _DillPickler  # another one may give the pickler to somebody
        and _quick_installed.write(pickler, obj)
    )


_is_known = are_known(*PLAIN_DATA)
if _is_known:
    hooks.known_tables.add(_dill.MetaCatchingDict)
    hooks.known_saves[_dill_save] = hooks.known_saves[Pickler.save] = hooks.known_saves[_Base.save]
    hooks.choosy_saves[_dill_save] = hooks.choosy_saves[Pickler.save] = _is_of_numpy
    hooks.known_entries[dict, _dill.save_module_dict] = _save_plain_dict
    hooks.container_entries.add(id(_dill.save_module_dict))
    hooks.plain_dicts[_dill.save_module_dict] = _is_plain_dict
    hooks.graft_rules[dict, _dill.save_module_dict] = GraftRule(
        frozenset({"__name__"}),
        _lengths,
        _asks,
        _asked,
        _is_asked,
        {set: 4, frozenset: 4, bytes: 3, codecs.encode: 3, bytearray: 5},
        _calls(),
        has_its_helpers,
        _call_for_arrays,
    )
    if are_dills(GLOBALS.get("save_type")):
        hooks.warning_entries.add(id(_dill.save_type))
    if are_known("save_type", *NAMES):
        hooks.saved_by_name[_dill.save_type] = _is_saved_by_name
    if are_known("save_function", *NAMES):
        hooks.saved_by_name[_dill.save_function] = _is_located
    if IS_READ:
        hooks.looking_up.update((id(f), f) for f in dict.values(_DillPickler.dispatch) if are_dills(f))
    if FRAMES_ARE_BYTESIO and are_known(*FUNCTIONS):
        from . import _dill_functions  # noqa: F401  # where it is told what is known of dill's functions
_is_quick = _is_known and CPickler is not None and are_known("Pickler.__init__")
_quick: Any = Quick(Pickler, is_for_librarys) if _is_quick else None
_CODE_OF_METHOD: Any = None
_CODE_OF_FUNCTION: Any = None
_quick_installed: Any = None
if _is_quick and are_known("dump"):
    _CODE_OF_METHOD = _DillPickler.dump.__code__
    _CODE_OF_FUNCTION = _dill.dump.__code__
    _quick_installed = Quick(_DillPickler, is_for_librarys)  # which keeps the method, so that its id stays its own
    hooks.writers[id(_DillPickler.dump)] = _write_at_once
