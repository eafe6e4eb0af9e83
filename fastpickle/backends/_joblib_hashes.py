"""What joblib's hashers hash beside plain data, encoded without a hook: in the loop, or with what is small at once.

    an array --------------> (ndarray, ("HASHED", its dtype, shape, strides)); its bytes are for the hash
    a dtype ---------------> nothing: what `pickle.dumps` gives for it is for the hash
    a class, a function ---> GLOBAL, if it is found under its name; only with what is small
    a builtin function ----> an instance that joblib makes of its name and its module's

The hash is updated when all is written.  That is what `joblib.Memory` asks for most often: a dict of arguments, some of
them arrays.  The hooks of an array take some 10 us, of which the digest of a small one is 1 us.

Not for: methods; arrays of objects, or with a dtype that has something of somebody's in it, and those of another class.
"""

from __future__ import annotations

import builtins
import copyreg
import pickle
import sys
import types
from collections.abc import Callable
from functools import partial
from pickle import (
    BINUNICODE,
    BUILD,
    EMPTY_DICT,
    EMPTY_TUPLE,
    GLOBAL,
    LONG_BINGET,
    MARK,
    NEWOBJ,
    SETITEM,
    TUPLE,
    TUPLE1,
    TUPLE2,
    TUPLE3,
)
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, Final

from joblib import hashing

from .._stdlib import StockPickler
from ..digests import hashed
from ..engine import levels
from ..engine.columns import forget, write_int
from ..hooks import Plan, hash_savers
from ..objects.arrays import array_type, is_dtype, is_dtype_itself, is_numpys_reduce
from ..objects.instances import has_only_a_dict
from ..objects.known import extension_registry, has_reduce_entry, is_by_name, usual_import
from ..opcodes import BINGET, pack_binunicode, pack_long_binget

__all__ = ["ToDo", "encode_other", "hashers", "is_other", "is_quiet", "numpy_hashers", "save_known"]

#: What the hash is to be updated with, in this order.
ToDo = list[Any]
_Memo = dict[int, tuple[int, Any]]
_Put = Callable[[int], bytes]

#: joblib's protocol, at which what is found under a name is one opcode.
_PROTOCOL: Final = 3
#: A copy of an array that lies otherwise in memory is kept until all is written.
_MOST_COPIED: Final = 64 << 10
_HASHED: Final = MARK + pack_binunicode(BINUNICODE, 6) + b"HASHED"
_HASHED_DTYPE: Final = b"_HASHED_DTYPE"
_TUPLES: Final = (b"", TUPLE1, TUPLE2, TUPLE3)
#: The classes whose instances do so, and those that hash arrays; of a subclass nothing is known but what a plan asks.
hashers: Final[set[type]] = {hashing.Hasher}
numpy_hashers: Final[set[type]] = {hashing.NumpyHasher}


def is_other(t: type) -> bool:
    """Tell whether `encode_other` may encode the instances of a type."""
    return t is type or t is FunctionType or t is BuiltinFunctionType or t is array_type() or is_dtype(t)


def encode_other(pickler: Any, to_do: ToDo, obj: Any, t: type, memo: _Memo, pieces: list[bytes], put: _Put) -> bool:
    """Append the opcodes of an object to `pieces`, and add what is memoized to the memo; tell whether that is done.

    Args:
        pickler: one of joblib's hashers, whose plan saves lists, dicts and tuples as stock does.
        to_do: what the hash is to be updated with gets there.
        obj: an object that is not in the memo.
        t: its type.
        memo, pieces: as said; if it is not done, there may be anything in them.
        put: gives the opcode that memoizes, by the number.
    """
    if pickler.proto != _PROTOCOL or not _is_joblibs(pickler):
        return False
    if t is type or t is FunctionType:
        return _encode_name(pickler, obj, t, memo, pieces, put)
    if t is BuiltinFunctionType:
        return _encode_builtin(pickler, obj, memo, pieces, put)
    if not is_quiet(obj) or not _hashes_arrays(pickler):
        return False
    is_array = not is_dtype(t)
    dtype = obj.dtype if is_array else obj
    if not _is_reduced_by_numpy(type(dtype)):
        return False
    if is_array and not _encode_array(pickler, obj, dtype, memo, pieces, put, to_do):
        return False
    to_do += _HASHED_DTYPE, _pickled(dtype)
    return True


def save_known(pickler: Any, plan: Plan, obj: Any, t: type) -> bool:
    """Save an object in the loop, as `hashed.save_known` does, but what is encoded here goes through no hook."""
    if (
        t is not type
        and t is not FunctionType
        and is_other(t)
        and plan.save_tuple is hash_savers[tuple][1]
        and plan.save_dict is hash_savers[dict][1]
    ):
        memo = pickler.memo
        before = len(memo)
        pieces: list[bytes] = []
        to_do: ToDo = []
        is_encoded = False
        try:
            is_encoded = encode_other(pickler, to_do, obj, t, memo, pieces, _put)
        except UnicodeEncodeError:  # a name has surrogates
            pass
        finally:
            if not is_encoded:
                forget(memo, before)
        if is_encoded:
            for data in to_do:
                pickler._hash.update(data)
            pickler.write(b"".join(pieces))
            return True
    return hashed.save_known(pickler, plan, obj, t)


_put: Final = partial(levels.put, _PROTOCOL)


def is_quiet(obj: Any) -> bool:
    """Tell whether `NumpyHasher.save` runs nobody's code for an array or a dtype."""
    t = type(obj)
    if t is array_type():
        dtype = obj.dtype
        if not is_dtype(type(dtype)):
            return False
    elif is_dtype(t):
        dtype = obj
    else:
        return False
    # The metadata of a dtype, and the type of its scalars, may be anything, and are pickled; so may be its parts'.
    return (
        dtype.metadata is None
        and dtype.fields is None
        and dtype.subdtype is None
        and not dtype.hasobject
        and dtype.type is type(dtype).type
    )


def _encode_array(pickler: Any, obj: Any, dtype: Any, memo: _Memo, pieces: list[bytes], put: _Put, to_do: ToDo) -> bool:
    """Encode an array as `NumpyHasher.save` saves it, but for its dtype, of which nothing is written."""
    t = type(obj)
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
    try:
        to_do.append(memoryview(contiguous.view(pickler.np.uint8)))
    except (TypeError, ValueError):  # of no bytes, perhaps
        return False
    if not _encode_class(pickler, t, memo, pieces, put):
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


def _ints(obj: tuple[int, ...], memo: _Memo, put: _Put) -> bytes:
    """Return the opcodes of a tuple of ints that has just been made, and memoize it."""
    n = len(obj)
    if not n:
        return EMPTY_TUPLE
    i = len(memo)
    memo[id(obj)] = i, obj
    ints = b"".join(map(write_int, obj))
    return ints + _TUPLES[n] + put(i) if n <= 3 else MARK + ints + TUPLE + put(i)


def _is_joblibs(pickler: Any) -> bool:
    """Tell whether a pickler is one of joblib's own classes, and has, like joblib's functions, what it should have."""
    cls = type(pickler)
    return (
        cls in hashers or (cls in numpy_hashers and pickler.__dict__.get("np", cls) is sys.modules.get("numpy"))
    ) and (hashing.Pickler is StockPickler and hashing.types is types and hashing.pickle is pickle)


def _hashes_arrays(pickler: Any) -> bool:
    """Tell whether a pickler hashes arrays, and dtypes, by what joblib gives it, and by nobody's code."""
    state = pickler.__dict__
    return (
        type(pickler) in numpy_hashers
        and state.get("_getbuffer") is memoryview
        and type(getattr(type(state.get("_hash")), "update", None)) is MethodDescriptorType
        and pickle.dumps is _dumps
        and builtins.__import__ is usual_import
        and type(sys.modules) is dict
        and not extension_registry
    )


def _is_reduced_by_numpy(t: type) -> bool:
    """Tell whether C saves the dtypes of a type by numpy's own reduce, and the class of all of them by its name."""
    table = copyreg.dispatch_table
    entry = table.get(type(t))  # which there is in newer versions
    return is_dtype_itself(t.__mro__[-2]) and t not in table and (entry is None or is_numpys_reduce(entry))


def _pickled(dtype: Any) -> bytes:
    """Return what `pickle.dumps` gives for a dtype; for numpy's own, of which there are some twenty, once."""
    key = id(dtype)
    if key in _known:
        return _known[key][1]
    pickled: bytes = _dumps(dtype)
    if dtype.isbuiltin == 1:
        _known[key] = dtype, pickled
    return pickled


_known: Final[dict[int, tuple[Any, bytes]]] = {}
#: The C pickler's, of which joblib asks for a dtype, also where fastpickle does without; or None.
_dumps: Any = pickle.dumps if type(pickle.dumps) is BuiltinFunctionType else None


def _encode_builtin(pickler: Any, obj: Any, memo: _Memo, pieces: list[bytes], put: _Put) -> bool:
    """Encode a module's function that is written in C, as `Hasher.save` saves it."""
    module = obj.__self__
    t = hashing._MyHash
    if (
        type(module) is not ModuleType
        or t is not _MyHash
        or t.__init__ is not _init
        or not has_only_a_dict(t)
        or pickler.dispatch.get(t) is not None
        or has_reduce_entry(pickler, t)
    ):
        return False
    name, name_of_module = args = obj.__name__, vars(module).get("__name__")
    if not type(name) is type(name_of_module) is str or not _encode_class(pickler, t, memo, pieces, put):
        return False
    instance = t(*args)
    i = len(memo)
    for k, x in enumerate((instance, vars(instance), instance.args), i):
        memo[id(x)] = k, x
    texts = _ARGS + b"".join(pack_binunicode(BINUNICODE, len(x)) + x for x in (name.encode(), name_of_module.encode()))
    pieces += _NEW + put(i) + EMPTY_DICT + put(i + 1), texts + TUPLE2 + put(i + 2) + _BUILT
    return True


_MyHash: Any = hashing._MyHash
_init: Any = _MyHash.__init__
_NEW: Final = EMPTY_TUPLE + NEWOBJ
_ARGS: Final = pack_binunicode(BINUNICODE, 4) + b"args"
_BUILT: Final = SETITEM + BUILD


def _encode_class(pickler: Any, obj: type, memo: _Memo, pieces: list[bytes], put: _Put) -> bool:
    """Encode a class, which may be in the memo, by its name."""
    if id(obj) not in memo:
        return _encode_name(pickler, obj, type, memo, pieces, put)
    i = memo[id(obj)][0]
    pieces.append(BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i))
    return True


def _encode_name(pickler: Any, obj: Any, t: type, memo: _Memo, pieces: list[bytes], put: _Put) -> bool:
    """Encode a class or a function by its name, if it is found there."""
    if not is_by_name(pickler, obj, t) or extension_registry:
        return False
    module, name = obj.__module__, obj.__qualname__
    if "." in name or hasattr(ModuleType, name) or sys.modules.get(module.partition(".")[0]) is None:
        return False
    i = len(memo)
    memo[id(obj)] = i, obj
    pieces.append(b"%b%b\n%b\n%b" % (GLOBAL, module.encode(), name.encode(), put(i)))
    return True
