"""cloudpickle on our base.

    cloudpickle.Pickler --- its reducers (`reducer_override`, `dispatch_table`) ---> Pickler(fastpickle.Pickler)

cloudpickle subclasses the C pickler, and is fast where there is one.  This is for where there is none to subclass, and
for who needs the hooks that only a pickler in Python has.  The bytes are those that cloudpickle's reducers give on
`pickle._Pickler`; they load wherever cloudpickle's own do.

Not for: making cloudpickle faster on CPython; it does not need that.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

from ..pickler import Pickler as _Base

try:
    import cloudpickle as _library
except ImportError as exc:
    raise ImportError("fastpickle.backends.cloudpickle needs its extra: pip install 'fastpickle[cloudpickle]'") from exc

__all__ = ["Pickler", "dump", "dumps", "load", "loads"]

load = pickle.load
loads = pickle.loads

_Original: Any = _library.Pickler


class Pickler(_Base):
    """cloudpickle's Pickler on `fastpickle.Pickler`: its arguments, and its reducers of functions and classes."""

    # What cloudpickle's class consists of, but for what it inherits from the C pickler or says by `super()`.
    dispatch_table = _Original.dispatch_table
    reducer_override = _Original.reducer_override
    _dynamic_function_reduce = _Original._dynamic_function_reduce
    _function_reduce = _Original._function_reduce
    _function_getnewargs = _Original._function_getnewargs

    def __init__(
        self, file: Any, protocol: int | None = None, buffer_callback: Callable[[Any], Any] | None = None
    ) -> None:
        """Take the arguments of `cloudpickle.Pickler`, whose default protocol is the highest."""
        if protocol is None:
            protocol = _library.DEFAULT_PROTOCOL
        super().__init__(file, protocol=protocol, buffer_callback=buffer_callback)
        self.globals_ref: dict[int, Any] = {}

    def dump(self, obj: Any) -> None:
        """Write a pickled representation of `obj`.

        Raises:
            PicklingError: also if the structure is too deep, as from `cloudpickle.Pickler.dump`.
        """
        try:
            super().dump(obj)
        except RecursionError as exc:
            raise pickle.PicklingError("Could not pickle object as excessively deep recursion required.") from exc


def dump(obj: Any, file: Any, protocol: int | None = None, buffer_callback: Callable[[Any], Any] | None = None) -> None:
    """Pickle an object to a file, with the arguments of `cloudpickle.dump`."""
    Pickler(file, protocol=protocol, buffer_callback=buffer_callback).dump(obj)


def dumps(obj: Any, protocol: int | None = None, buffer_callback: Callable[[Any], Any] | None = None) -> bytes:
    """Pickle an object to bytes, with the arguments of `cloudpickle.dumps`."""
    file = io.BytesIO()
    dump(obj, file, protocol, buffer_callback)
    return file.getvalue()
