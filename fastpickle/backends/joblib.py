"""joblib's picklers on our base, and what is known of their hooks.

    NumpyPickler.save    an array's bytes go into the file behind what describes it, all else goes to stock's
    Hasher.save          methods are taken apart, all else goes to stock's
    NumpyHasher.save     arrays and dtypes are hashed by themselves, all else goes to Hasher.save
    memoize              nothing for texts, stock's for all else
    _batch_setitems      stock's, with the items sorted; TypeError: once more, sorted by the keys' digests
    dispatch[set]        a `_ConsistentSet` of the elements, sorted

The classes here are joblib's, function by function, with `fastpickle.Pickler` in the place of stock's.  What is known
of the functions is known by their source (`_source`), not by joblib's version: with others everything works, through
every hook.

Not for: putting them into joblib's own `dump` and `hash`; that is `fastpickle.install()`. Those here patch nothing.
"""

from __future__ import annotations

import copyreg
import pickle
import sys
import types
from collections.abc import Sequence
from functools import partial
from io import BufferedRandom, BufferedWriter, BytesIO
from operator import is_
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

from .. import hooks
from .._stdlib import FRAMES_ARE_BYTESIO, StockPickler, for_batch, is_usual_file
from ..digests import hashed
from ..digests.shapes import are_sortable
from ..doubts import doubt, holds, outside
from ..engine.brief import save_brief
from ..objects.arrays import HEAP_TYPE
from ..objects.asked import ABSENT, in_class
from ..pickler import Pickler as _Base
from ..rules import HashRule
from ._source import digests

try:
    from joblib import hashing as _library
    from joblib import numpy_pickle as _files

    from ._joblib_hashes import Others, hashers, is_other, is_quiet, numpy_hashers
except ImportError as exc:
    raise ImportError("fastpickle.backends.joblib needs joblib: pip install 'fastpickle[joblib]'") from exc

__all__ = ["Hasher", "NumpyHasher", "NumpyPickler", "dump", "hash"]

_pickle: Any = pickle  # its dispatch_table is no public name
_newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it

_OriginalHasher: Any = _library.Hasher
_OriginalNumpyHasher: Any = _library.NumpyHasher
_originals = (
    _OriginalHasher.save,
    _OriginalHasher.memoize,
    _OriginalHasher._batch_setitems,
    _OriginalHasher.save_set,
    _OriginalHasher.save_global,
    _OriginalNumpyHasher.save,
    _library._ConsistentSet.__init__,
)
#: The digests of those in joblib 1.1 to 1.6: of some there is more than one.
_KNOWN = (
    ("c9f00331e4b4771a", "99d10520569d7e1b", "c5709332b9c43546"),
    ("90d07d5b0a912802",),
    ("7ca4b672f57cd463", "6652856f3eb8773e"),
    ("095686fb1ef29cc4",),
    ("11bb8055f5762709",),
    ("70f0ca9937766f04",),
    ("4aae6114cbe85085",),
)

_OriginalNumpyPickler: Any = _files.NumpyPickler
#: The digests of its `save`: that in joblib 1.0 to 1.6.
_KNOWN_SAVES = (("dc496b33f5d0a20c",),)
_Wrapper: Any = _files.NumpyArrayWrapper
_wrap: Any = _OriginalNumpyPickler._create_array_wrapper
#: What the class of the wrappers has, but for what `copyreg` notes there when it is asked for the first time.
_MEMBERS = (*{**vars(_Wrapper), "__slotnames__": None}.values(),)
#: The digests of what makes a wrapper, and of what it writes an array by, in joblib 1.3 to 1.6.
_KNOWN_WRAPS = (("9fa5f555962a3b49",), ("9bfc408de01d4a23", "0f7594b949d9ddcd"), ("9451f989b25cdc07",))

# joblib's functions say `Pickler.save(self, obj)`: here they are once more, with other globals.
_globals: dict[str, Any] = {**vars(_library), "Pickler": _Base}
_globals_of_files: dict[str, Any] = {**vars(_files), "Pickler": _Base}


def _rebound(function: Any, into: dict[str, Any] = _globals) -> Any:
    """Return a function of joblib's with our classes for its globals."""
    made = FunctionType(function.__code__, into, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__doc__ = function.__doc__
    return made


def _methods(cls: Any, into: dict[str, Any] = _globals) -> dict[Any, Any]:
    """Return the methods that a class of joblib's has of its own, and what they are here."""
    return {f: _rebound(f, into) for f in vars(cls).values() if type(f) is FunctionType}


_own = {
    **_methods(_OriginalHasher),
    **_methods(_OriginalNumpyHasher),
    **_methods(_OriginalNumpyPickler, _globals_of_files),
}


def _members(cls: Any) -> dict[str, Any]:
    return {name: _own[f] for name, f in vars(cls).items() if type(f) is FunctionType}


Hasher: Any = type(
    "Hasher",
    (_OriginalHasher, _Base),
    {
        "__module__": __name__,
        "__doc__": "joblib's Hasher on `fastpickle.Pickler`: the same digests.",
        **_members(_OriginalHasher),
        "dispatch": {t: _own.get(f, f) for t, f in _OriginalHasher.dispatch.items()},
    },
)
NumpyHasher: Any = type(
    "NumpyHasher",
    (Hasher, _OriginalNumpyHasher),
    {
        "__module__": __name__,
        "__doc__": "joblib's NumpyHasher on `fastpickle.Pickler`: the same digests.",
        **_members(_OriginalNumpyHasher),
    },
)
_globals.update(Hasher=Hasher, NumpyHasher=NumpyHasher)
hashers.add(Hasher)
numpy_hashers.add(NumpyHasher)
_own_hash = _rebound(_library.hash)

NumpyPickler: Any = type(
    "NumpyPickler",
    (_OriginalNumpyPickler, _Base),
    {
        "__module__": __name__,
        "__doc__": "joblib's NumpyPickler on `fastpickle.Pickler`: the same files.",
        **_members(_OriginalNumpyPickler),
    },
)
_globals_of_files.update(NumpyPickler=NumpyPickler)
_own_dump = _rebound(_files.dump, _globals_of_files)


def dump(value: Any, filename: Any, compress: Any = 0, protocol: int | None = None, **others: Any) -> list[str] | None:
    """Write an object to a file, as `joblib.dump` does.

    Args:
        value: any object; arrays are written as they are, so that they can be mapped into memory.
        filename: a path, or an open binary file.
        compress: how, and how much; see `joblib.dump`.
        protocol: of pickle; None for Python's default one.
        others: what else the installed `joblib.dump` takes.

    Returns:
        The names of the files, which is one; None if a file was given.

    Raises:
        ValueError: there is no such compression, or no such path.
        PicklingError, and what else `joblib.dump` raises.
    """
    names: list[str] | None = _own_dump(value, filename, compress, protocol, **others)
    return names


def hash(obj: Any, hash_name: str = "md5", coerce_mmap: bool = False) -> str:
    """Return the digest that `joblib.hash` gives.

    Args:
        obj: any object that can be pickled.
        hash_name: "md5" or "sha1".
        coerce_mmap: whether a memory-mapped array is to have the digest of an array with the same contents.

    Raises:
        ValueError: there is no such hash.
        PicklingError, and what else `joblib.hash` raises.
    """
    digest: str = _own_hash(obj, hash_name=hash_name, coerce_mmap=coerce_mmap)
    return digest


def _is_array(t: type) -> bool:
    """Tell whether `NumpyPickler.save` may do something of its own for an object of this type."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and (t is numpy.ndarray or t is numpy.matrix or t is numpy.memmap):
        return True
    metaclass = type(t)  # it is asked: types are compared by `==`
    return metaclass is not type and (type(metaclass) is not type or metaclass.__eq__ is not type.__eq__)


def _has_numpy(pickler: Any) -> bool:
    """Tell whether a NumpyPickler has the module that has been imported, or none, and so knows arrays as we do."""
    numpy = pickler.__dict__.get("np", pickler)
    return (
        (numpy is None or numpy is sys.modules.get("numpy"))
        and getattr(type(pickler), "np", None) is None  # a property
        and _files.Pickler is StockPickler
    )


def _save_array(base: Any, pickler: Any, plan: hooks.Plan, obj: Any) -> bool:
    """Save an array as `NumpyPickler.save` does, with five Python frames less.

    Args:
        base: the pickler that is joblib's base.
        pickler: a NumpyPickler, of which `_has_numpy` is true.
        plan: the plan in force; if the file, or what is in the array, may be somebody's, it is in doubt afterwards.
        obj: what `_is_array` tells of.

    Returns:
        Whether it is saved; if not, nothing has happened.

    Raises:
        What writing to the file raises, and what is in the array.
    """
    if type(obj) is not sys.modules["numpy"].ndarray:
        return False
    known = pickler._fastpickle_dump.known
    is_nobodys = known.get(_Wrapping)
    if is_nobodys is None:
        if not _wraps_as_joblib(pickler):
            return False
        is_nobodys = known[_Wrapping] = _is_written_by_nobody(pickler) and _is_wrapper_plain(pickler)
    is_nobodys = is_nobodys and not obj.dtype.hasobject
    if not is_nobodys:
        doubt(pickler)
    try:
        wrapper = pickler._create_array_wrapper(obj)  # asks the file where it stands
        if not (
            plan.is_for_brief
            and (is_nobodys or (type(wrapper) is _Wrapper and holds(pickler, plan) and _is_wrapper_plain(pickler)))
            # what `object.__reduce_ex__` gives for an instance of a class like this
            and save_brief(pickler, plan, wrapper, _Wrapper, (_newobj, (_Wrapper,), vars(wrapper)))
        ):
            is_nobodys = False  # what is pickled with a dtype may be anybody's
            base.save(pickler, wrapper)
            doubt(pickler)
        if pickler.proto >= 4:
            pickler.framer.commit_frame(force=True)
        wrapper.write_array(obj, pickler)
    finally:
        if not is_nobodys:
            doubt(pickler)
    return True


class _Wrapping:
    """Stands in `Dump.known` for what a pickler, and its file, do with arrays' wrappers, until somebody's code runs."""


def _wraps_as_joblib(pickler: Any) -> bool:
    """Tell whether a pickler makes joblib's wrappers by joblib's function."""
    state = pickler.__dict__
    wrap = in_class(type(pickler), "_create_array_wrapper")
    return (
        state["np"] is not None
        and (wrap is _wrap or wrap is _own[_wrap])
        and "_create_array_wrapper" not in state
        and wrap.__globals__.get("NumpyArrayWrapper") is _Wrapper
    )


def _is_wrapper_plain(pickler: Any) -> bool:
    """Tell whether joblib's wrappers are reduced as instances of a plain class, by nobody's code."""
    table = _pickle.dispatch_table
    members = {**vars(_Wrapper), "__slotnames__": None}.values()
    slots = vars(_Wrapper).get("__slotnames__", ())
    return (
        len(members) == len(_MEMBERS)
        and all(map(is_, members, _MEMBERS))
        and type(slots) in (list, tuple)
        and not slots
        and _Wrapper not in pickler.dispatch
        and "dispatch_table" not in pickler.__dict__
        and in_class(type(pickler), "dispatch_table") is ABSENT
        and type(table) is dict
        and _Wrapper not in table
    )


def _is_written_by_nobody(pickler: Any) -> bool:
    """Tell whether what an array, and the frame before it, is written by is C's alone."""
    file = pickler.__dict__.get("file_handle")
    file_write = pickler.framer.file_write
    nditer = sys.modules["numpy"].nditer
    return (
        type(file) in (BytesIO, BufferedWriter, BufferedRandom)
        and is_usual_file(file)
        and not file.__dict__  # in which there may be another `tell`
        and type(file_write) is BuiltinMethodType
        and file_write.__self__ is file
        and type(nditer) is type
        and not nditer.__flags__ & HEAP_TYPE
    )


def _is_decomposed(t: type) -> bool:
    """Tell whether `save` would do something of its own for an object of this type."""
    if t is MethodType or t is BuiltinMethodType:
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and any(getattr(numpy, name, None) in t.__mro__ for name in ("ndarray", "dtype"))


def _save_set(pickler: Any, plan: hooks.Plan, obj: set[Any], write: Any) -> None:
    """Save a set as `Hasher.save_set` does."""
    if plan.hash_rule is not None and are_sortable(obj):
        ordered = _library._ConsistentSet(obj)
        is_saved = hashed.save_known(pickler, plan, ordered, type(ordered))
        if is_saved is None:
            plan.save(pickler, ordered)
        if is_saved is not False:
            return
    outside(pickler, pickler.dispatch[set], obj)


def _set_items_again(pickler: Any, obj: dict[Any, Any]) -> None:
    """Do what `_batch_setitems` does after a TypeError."""
    items = sorted((_library.hash(k), v) for k, v in obj.items())
    StockPickler._batch_setitems(pickler, *for_batch(iter(items), obj))


def _is_stocks() -> bool:
    """Tell whether `NumpyHasher.save` calls joblib's own `Hasher.save`, which knows methods, and calls stock's."""
    return bool(_OriginalHasher.save is _originals[0] and _library.types is types and _library.Pickler is StockPickler)


def _is_ours() -> bool:
    """Tell whether the functions of the classes here call each other, and ours."""
    return Hasher.save is _own[_originals[0]] and _Base.save is hooks.own_save and _CALLED.isdisjoint(vars(_Base))


_CALLED = frozenset(("memoize", "_batch_setitems")) - vars(_Base).keys()


def _as_it_is(function: Any) -> Any:
    return function


def _is_known() -> bool:
    """Tell whether joblib's functions are those that this was read off."""
    return _library.Pickler is StockPickler and _is_known_to_be(_KNOWN, *_originals)


def _is_known_to_be(known: Sequence[tuple[str, ...]], *functions: Any) -> bool:
    return all(found in of_one for found, of_one in zip(digests(*functions), known, strict=True))


if FRAMES_ARE_BYTESIO and _files.Pickler is StockPickler and _is_known_to_be(_KNOWN_SAVES, _OriginalNumpyPickler.save):
    for _save in _OriginalNumpyPickler.save, NumpyPickler.save:
        hooks.known_saves[_save] = hooks.known_saves[_Base.save]
        hooks.choosy_saves[_save] = _is_array
        hooks.rewriting_saves[_save] = _has_numpy
    if _is_known_to_be(_KNOWN_WRAPS, _wrap, _Wrapper.write_array, _Wrapper.__init__):
        for _save, _pickler in (_OriginalNumpyPickler.save, StockPickler), (NumpyPickler.save, _Base):
            hooks.choice_savers[_save] = partial(_save_array, _pickler)

if FRAMES_ARE_BYTESIO and _is_known():  # not on PyPy, whose engine knows nothing of digests
    for _made in _as_it_is, _own.__getitem__:
        _rule = HashRule(
            _made(_OriginalHasher.memoize),
            _made(_OriginalHasher._batch_setitems),
            memoizes_bytes=False,
            memoizes=lambda t: not issubclass(t, (str, bytes)),
            save_known=hashed.save_known,
            is_right=_is_stocks if _made is _as_it_is else _is_ours,
            is_quiet=is_quiet,
            is_other=is_other,
            others=Others,
            retry=_set_items_again,
        )
        for _save in _OriginalHasher.save, _OriginalNumpyHasher.save:
            hooks.known_saves[_made(_save)] = hashed.save_other
            hooks.choosy_saves[_made(_save)] = _is_decomposed
            hooks.hash_rules[_made(_save)] = _rule
        hooks.known_save_globals.add(_made(_OriginalHasher.save_global))
        hooks.saved_by_name[_made(_OriginalHasher.save_global)] = lambda pickler, obj: True
        hooks.known_entries[set, _made(_OriginalHasher.save_set)] = _save_set
