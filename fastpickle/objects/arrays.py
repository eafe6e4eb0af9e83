"""numpy's arrays, scalars and dtypes: which of them numpy's own C code reduces, once somebody has imported numpy.

    array_type(), scalar_types() -> the types of which that is so, for `stdlibs` to keep
    is_dtype(type)   -> whether its instances are dtypes that are reduced so
    reduced(array)   -> what C is given for one from protocol 5 on: bytes in the place of a buffer
    is_little(array) -> if it is not, to copy it takes longer than all hooks, and is not done in vain

These types cannot be changed, so that nobody's code is asked.  What is in an array of objects is asked as everything.

Not for: subclasses of arrays, records, and what a library does with arrays itself (`backends`).
"""

from __future__ import annotations

import pickle
import sys
from types import FunctionType, ModuleType
from typing import Any, Final

from .._stdlib import MEMOIZES_BUFFERS

__all__ = [
    "HEAP_TYPE",
    "array_type",
    "is_dtype",
    "is_dtype_itself",
    "is_fixed",
    "is_little",
    "is_numpys_reduce",
    "is_of_numpy",
    "reduced",
    "scalar_types",
]

#: Of more bytes Python saves an array as soon as C does.
_MOST_BYTES: Final = 1 << 16
#: Of fewer the copy that is memoized may be an object that others have, too, if it is bytes.
_FEWEST_BYTES: Final = 2
_PickleBuffer: Final = getattr(pickle, "PickleBuffer", None)  # None where there is no C pickler, which asks for it
_flags_of: Any = vars(type)["__flags__"].__get__
HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: not set for types that cannot be changed, as those that C defines


def _attribute(name: str) -> Any:
    """Return what numpy's module has under a name, without asking anybody; None if there is no such thing."""
    numpy = sys.modules.get("numpy")
    return vars(numpy).get(name) if type(numpy) is ModuleType else None


def array_type() -> type | None:
    """Return the type of numpy's arrays; None if there is none, or it is not what it should be."""
    array = _attribute("ndarray")
    return array if type(array) is type and _is_numpys(array) else None


def scalar_types() -> list[type]:
    """Return the types of the scalars that numpy reduces itself."""
    scalars = _attribute("sctypeDict")
    if type(scalars) is not dict:
        return []
    others = _attribute("void"), _attribute("object_")
    return [x for x in {*scalars.values()} if type(x) is type and x not in others and _is_numpys(x)]


def _is_numpys(t: type) -> bool:
    """Tell whether a type is one of numpy's, and cannot be changed."""
    return not t.__flags__ & HEAP_TYPE and t.__module__ == "numpy"


def is_of_numpy(t: type) -> bool:
    """Tell whether a type is one of these: to reduce its instances, numpy imports what it needs by `__import__`."""
    return not t.__flags__ & HEAP_TYPE and (t.__module__ == "numpy" or t.__module__ == "numpy.dtypes")


def is_fixed(t: type) -> bool:
    """Tell whether neither a type nor its own can be changed, and so no base of theirs: both stay as they are."""
    return not (_flags_of(type(t)) & HEAP_TYPE or _flags_of(t) & HEAP_TYPE)


def is_dtype(t: type) -> bool:
    """Tell whether the instances of a type are dtypes that numpy reduces itself."""
    if not is_fixed(t):  # another metaclass may say anything
        return False
    dtype = _attribute("dtype")
    return dtype is not None and type(t) is type(dtype) is not type and t.__reduce__ is dtype.__reduce__


def is_dtype_itself(obj: Any) -> bool:
    """Tell whether an object is the class of all dtypes."""
    return obj is _attribute("dtype")


def is_numpys_reduce(reduce: Any) -> bool:
    """Tell whether it is numpy's function by which the classes of dtypes are reduced: that one to its name."""
    if type(reduce) is not FunctionType or reduce.__code__.co_name != "_DType_reduce":
        return False
    modules = map(sys.modules.get, ("numpy._core", "numpy.core"))
    return any(type(module) is ModuleType and vars(module) is reduce.__globals__ for module in modules)


def is_little(array: Any) -> bool:
    """Tell whether an array is for C."""
    return bool(array.nbytes <= _MOST_BYTES)


def reduced(array: Any) -> Any:
    """Return what an array is reduced to at protocol 5, with a copy for the buffer, which nobody asks for.

    Stock writes it in the pickle, and memoizes the buffer or, in older versions, a copy, that nobody else has.
    None if others may have it, too.
    """
    if array.nbytes < _FEWEST_BYTES and not (MEMOIZES_BUFFERS and array.flags.writeable):
        return None
    rv = array.__reduce_ex__(5)
    buffer = rv[1][0]
    if type(buffer) is not _PickleBuffer:
        return rv
    with buffer.raw() as view:
        copy = bytes(view) if view.readonly else bytearray(view)
    buffer.release()
    return rv[0], (copy, *rv[1][1:]), *rv[2:]
