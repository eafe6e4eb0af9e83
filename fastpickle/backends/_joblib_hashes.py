"""What joblib's hashers hash beside plain data, encoded without a hook: in the loop, or with what is small at once.

    an array --------------> (ndarray, ("HASHED", its dtype, shape, strides)); its bytes are for the hash
    a dtype ---------------> nothing: what `pickle.dumps` gives for it is for the hash
    a class, a function ---> GLOBAL, if it is found under its name
    a builtin function ----> an instance that joblib makes of its name and its module's

The hash is updated when all of it is encoded.  That is what `joblib.Memory` asks for most often: a dict of arguments,
some of them arrays.  The hooks of an array take some 10 us, of which the digest of a small one is 1 us.

Not for: methods; arrays of objects, or with a dtype that has something of somebody's in it, and those of another class.
"""

from __future__ import annotations

import builtins
import copyreg
import hashlib
import pickle
import sys
from collections.abc import Callable
from pickle import (
    BINUNICODE,
    BUILD,
    EMPTY_DICT,
    EMPTY_TUPLE,
    GLOBAL,
    MARK,
    NEWOBJ,
    SETITEM,
    TUPLE,
    TUPLE2,
)
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from joblib import hashing

from ..engine.columns import Memo, pack_get, write_int
from ..hooks import plain_dicts, saved_by_name
from ..objects.arrays import HEAP_TYPE, array_type, is_dtype, is_dtype_itself, is_numpys_reduce
from ..objects.instances import has_only_a_dict
from ..objects.known import extension_registry, finds_names, has_reduce_entry, usual_import
from ..opcodes import TUPLES, pack_binunicode

__all__ = ["Others", "hashers", "is_other", "is_quiet", "numpy_hashers"]

_Put = Callable[[int], bytes]
_Encode = Callable[["Others", Any, Memo, "list[bytes]", _Put], bool]

#: joblib's protocol, at which what is found under a name is one opcode.
_PROTOCOL: Final = 3
#: A copy of an array that lies otherwise in memory is kept until all is written.
_MOST_COPIED: Final = 64 << 10
_HASHED: Final = MARK + pack_binunicode(BINUNICODE, 6) + b"HASHED"
_HASHED_DTYPE: Final = b"_HASHED_DTYPE"
#: joblib's classes and ours, and those of them that hash arrays; of a subclass nothing is known but what a plan asks.
hashers: Final[set[type]] = {hashing.Hasher}
numpy_hashers: Final[set[type]] = {hashing.NumpyHasher}


def is_other(t: type) -> bool:
    """Tell whether `Others` may encode the instances of a type."""
    key = id(t)
    if key in _others:
        return True
    if key in _no_others or (type(t) is type and t.__flags__ & HEAP_TYPE):
        return False
    if t is array_type() or is_dtype(t):
        _others[key] = t
        return True
    if type(t) is type:
        _no_others.add(key)
    return False


#: The types of which that is so, by id, since the hash of a type may be anybody's; numpy's as they are found.
_others: Final[dict[int, type]] = {id(t): t for t in (type, FunctionType, BuiltinFunctionType)}
#: Those of which it is not: such as cannot be changed, and stay.
_no_others: Final[set[int]] = set()


class Others:
    """Encodes what is no plain data for one hasher, as long as nobody's code runs: what it finds out holds so long.

    Args:
        pickler: a hasher, whose plan saves lists and tuples as stock does, and dicts too, or as dill's own entry does.
    """

    __slots__ = ("_encoders", "_pickled", "_pickler", "_tells", "_to_do")

    def __init__(self, pickler: Any) -> None:
        self._pickler = pickler
        self._to_do: list[Any] = []  # what the hash is to be updated with
        # By the id of the type; functions, since methods would refer back to this, and keep it.
        self._encoders: dict[int, _Encode] = {}
        # By the id of the dtype, which is kept with it, so that the id stays its own; None if it may be anybody's.
        self._pickled: dict[int, tuple[Any, bytes | None]] = {}
        # By the id of the type, what tells of its instances whether they are saved by their names; or None.
        self._tells: dict[int, Callable[[Any, Any], bool] | None] = {}

    def encode(self, obj: Any, t: type, memo: Memo, pieces: list[bytes], put: _Put) -> bool:
        """Append the opcodes of an object to `pieces`, and add what is memoized to the memo; tell whether that is done.

        Args:
            obj: an object that is not in the memo.
            t: its type.
            memo, pieces: as said; if it is not done, there may be anything in them.
            put: gives the opcode that memoizes, by the number.
        """
        encode = self._encoders.get(id(t))
        if encode is None:
            encode = self._encoders[id(t)] = self._encoder_of(t)
        return encode(self, obj, memo, pieces, put)

    def is_new(self, obj: Any, t: type, memo: Memo) -> bool:
        """Tell whether somebody has put nothing into the memo that is written of an object, and not memoized."""
        parts: tuple[Any, ...] = ()
        if t is array_type():
            parts = *obj.shape, *obj.strides
        elif t is BuiltinFunctionType and type(obj.__self__) is ModuleType:
            parts = obj.__name__, vars(obj.__self__).get("__name__")
        return memo.keys().isdisjoint(map(id, (*parts, *_CONSTANTS)))

    def finish(self) -> None:
        """Update the hash, since what was encoded is written."""
        if self._to_do:
            update = self._pickler._hash.update
            for data in self._to_do:
                update(data)
            self._to_do.clear()

    def drop(self) -> None:
        """Forget what the hash was to be updated with."""
        self._to_do.clear()

    def _encoder_of(self, t: type) -> _Encode:
        pickler = self._pickler
        if pickler.proto != _PROTOCOL or not _is_joblibs(pickler):
            return _cannot
        if t is type or t is FunctionType:
            return Others._encode_name
        if t is BuiltinFunctionType:
            return Others._encode_builtin if _is_stand_in_plain(pickler) else _cannot
        if is_other(t) and _hashes_arrays(pickler):
            return Others._encode_array if t is pickler.np.ndarray else Others._encode_dtype
        return _cannot

    def _encode_dtype(self, obj: Any, memo: Memo, pieces: list[bytes], put: _Put) -> bool:
        """Encode a dtype as `NumpyHasher.save` saves it: nothing is written of it."""
        key = id(obj)
        if key not in self._pickled:
            self._pickled[key] = obj, _pickled(obj)
        pickled = self._pickled[key][1]
        self._to_do += _HASHED_DTYPE, pickled
        return pickled is not None

    def _encode_array(self, obj: Any, memo: Memo, pieces: list[bytes], put: _Put) -> bool:
        """Encode an array as `NumpyHasher.save` saves it."""
        shape = obj.shape
        flags = obj.flags
        if shape and flags.c_contiguous:
            contiguous = obj
        elif shape and flags.f_contiguous:
            contiguous = obj.T
        elif obj.nbytes <= _MOST_COPIED:
            contiguous = obj.flatten()
        else:
            return False
        dtype = obj.dtype
        try:
            self._to_do.append(memoryview(contiguous.view(self._pickler.np.uint8)))
        except (TypeError, ValueError):  # of objects, perhaps
            return False
        t = type(obj)
        if not (self._encode_class(t, memo, pieces, put) and self._encode_dtype(dtype, memo, pieces, put)):
            return False
        strides = obj.strides
        pieces += _HASHED, _ints(shape, memo, put), _ints(strides, memo, put)
        inner = ("HASHED", dtype, shape, strides)
        i = len(memo)
        memo[id(inner)] = i, inner
        outer = (t, inner)
        memo[id(outer)] = i + 1, outer
        pieces.append(TUPLE + put(i) + TUPLE2 + put(i + 1))
        return True

    def _encode_builtin(self, obj: Any, memo: Memo, pieces: list[bytes], put: _Put) -> bool:
        """Encode a module's function that is written in C, as `Hasher.save` saves it."""
        module = obj.__self__
        if type(module) is not ModuleType:
            return False
        name, name_of_module = args = obj.__name__, vars(module).get("__name__")
        if not type(name) is type(name_of_module) is str or not self._encode_class(_MyHash, memo, pieces, put):
            return False
        instance = _MyHash(*args)
        i = len(memo)
        for k, x in enumerate((instance, vars(instance), instance.args), i):
            memo[id(x)] = k, x
        texts = b"".join(pack_binunicode(BINUNICODE, len(x)) + x for x in (name.encode(), name_of_module.encode()))
        pieces += _NEW + put(i) + EMPTY_DICT + put(i + 1), _ARGS + texts + TUPLE2 + put(i + 2) + _BUILT
        return True

    def _encode_class(self, obj: type, memo: Memo, pieces: list[bytes], put: _Put) -> bool:
        """Encode a class, which may be in the memo, by its name."""
        if id(obj) not in memo:
            return self._encode_name(obj, memo, pieces, put)
        pieces.append(pack_get(memo[id(obj)][0]))
        return True

    def _encode_name(self, obj: Any, memo: Memo, pieces: list[bytes], put: _Put) -> bool:
        """Encode a class or a function by its name, if it is found there."""
        t = type(obj)
        if id(t) not in self._tells:
            self._tells[id(t)] = _what_tells(self._pickler, t)
        tells = self._tells[id(t)]
        module, name = obj.__module__, obj.__qualname__
        found = sys.modules.get(module) if type(module) is str else None
        if (
            tells is None
            or type(found) is not ModuleType
            or type(name) is not str
            or found.__dict__.get(name) is not obj
            or not tells(self._pickler, obj)
            or "." in name
            or hasattr(ModuleType, name)
            or sys.modules.get(module.partition(".")[0]) is None  # None there forbids to import it
        ):
            return False
        i = len(memo)
        memo[id(obj)] = i, obj
        pieces.append(b"%b%b\n%b\n%b" % (GLOBAL, module.encode(), name.encode(), put(i)))
        return True


#: What joblib's functions write besides: constants like these are one object.
_CONSTANTS: Final = ((), "HASHED", "args")
_MyHash: Any = hashing._MyHash
_init: Any = _MyHash.__init__
_NEW: Final = EMPTY_TUPLE + NEWOBJ
_STATE: Final = {"args": ()}  # is the like of its state
_ARGS: Final = pack_binunicode(BINUNICODE, 4) + b"args"
_BUILT: Final = SETITEM + BUILD


def _what_tells(pickler: Any, t: type) -> Callable[[Any, Any], bool] | None:
    """Return what tells whether instances of a type are saved by their names, if these are found as by stock."""
    entry = pickler.dispatch.get(t)
    return saved_by_name.get(entry) if finds_names(pickler) and not extension_registry else None


def _is_stand_in_plain(pickler: Any) -> bool:
    """Tell whether what joblib makes for a builtin function is reduced as an instance of a plain class."""
    t = hashing._MyHash
    dispatch = pickler.dispatch
    is_plain_dict = plain_dicts.get(dispatch.get(dict))  # if joblib was imported after dill, it has dill's entry
    return (
        t is _MyHash
        and t.__init__ is _init
        and has_only_a_dict(t)
        and (is_plain_dict is None or is_plain_dict(pickler, _STATE))
        and dispatch.get(t) is None
        and not has_reduce_entry(pickler, t)
    )


def _cannot(others: Others, obj: Any, memo: Memo, pieces: list[bytes], put: _Put) -> bool:
    """Encode nothing."""
    return False


def is_quiet(obj: Any) -> bool:
    """Tell whether `NumpyHasher.save` runs nobody's code for an array or a dtype."""
    t = type(obj)
    if t is array_type():
        return _is_plain(obj.dtype)
    return is_dtype(t) and _is_plain(obj)


def _is_plain(dtype: Any) -> bool:
    """Tell whether nothing of somebody's is pickled with a dtype: metadata, the type of its scalars, or its parts."""
    t = type(dtype)
    return (
        is_dtype(t)
        and dtype.metadata is None
        and dtype.subdtype is None
        and not dtype.hasobject
        and dtype.type is t.type
        and (dtype.fields is None or _are_fields_plain(dtype))
    )


def _are_fields_plain(dtype: Any) -> bool:
    """Tell the same of the fields of a dtype of records, and that nobody has registered a reduce for one."""
    types = []
    for name, place in dtype.fields.items():
        if type(name) is not str or len(place) != 2:  # its dtype, and its offset; there may be a title
            return False
        part = place[0]
        if part.isbuiltin != 1 and (part.fields is not None or not _is_plain(part)):
            return False
        types.append(type(part))
    return copyreg.dispatch_table.keys().isdisjoint(types)


def _ints(obj: tuple[int, ...], memo: Memo, put: _Put) -> bytes:
    """Return the opcodes of a tuple of ints that has just been made, and memoize it."""
    n = len(obj)
    if not n:
        return EMPTY_TUPLE
    i = len(memo)
    memo[id(obj)] = i, obj
    ints = write_int(obj[0]) if n == 1 else b"".join(map(write_int, obj))
    return ints + TUPLES[n] + put(i) if n <= 3 else MARK + ints + TUPLE + put(i)


def _is_joblibs(pickler: Any) -> bool:
    """Tell whether a pickler is one of joblib's own classes, and knows numpy, and `pickle.dumps`, as joblib does."""
    cls = type(pickler)
    return hashing.pickle is pickle and (
        cls in hashers or (cls in numpy_hashers and pickler.__dict__.get("np", cls) is sys.modules.get("numpy"))
    )


def _hashes_arrays(pickler: Any) -> bool:
    """Tell whether a pickler hashes arrays, and dtypes, by what joblib gives it, and by nobody's code."""
    state = pickler.__dict__
    coerces = state.get("coerce_mmap")
    return (
        type(pickler) in numpy_hashers
        and state.get("_getbuffer") is memoryview
        and id(type(state.get("_hash"))) in _HASHES
        and pickle.dumps is _dumps
        and builtins.__import__ is usual_import
        and type(sys.modules) is dict
        and not extension_registry
        and state["np"].ndarray is array_type()
        and (coerces is False or (coerces is True and type(vars(state["np"]).get("memmap")) is type))
    )


def _pickled(dtype: Any) -> bytes | None:
    """Return what `pickle.dumps` gives for a dtype; None if that may be anybody's."""
    global _entry
    t = type(dtype)
    table = copyreg.dispatch_table
    entry = table.get(type(t))  # for the class of all dtypes; there is none in older versions
    if entry is not _entry:
        if not is_numpys_reduce(entry):
            return None
        _entry = entry
    if t in table or not is_dtype_itself(t.__mro__[-2]):
        return None
    key = id(dtype)
    if key in _known:
        return _known[key][1]
    if not _is_plain(dtype):
        return None
    pickled: bytes = _dumps(dtype)
    if dtype.isbuiltin == 1:
        _known[key] = dtype, pickled
    return pickled


#: The types of joblib's hashes, by id, since the hash of a type may be anybody's.
_HASHES: Final = {id(type(hashlib.new(name, usedforsecurity=False))) for name in ("md5", "sha1")}
#: The entry that was found to be numpy's own.
_entry: Any = None
#: What has been pickled of numpy's own dtypes, of which there are some twenty.
_known: Final[dict[int, tuple[Any, bytes]]] = {}
#: The C pickler's, of which joblib asks for a dtype, also where fastpickle does without; or None.
_dumps: Any = pickle.dumps if type(pickle.dumps) is BuiltinFunctionType else None
