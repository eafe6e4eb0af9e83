"""cloudpickle on our base.

    CPython  cloudpickle.Pickler --- its reducers (`reducer_override`, `dispatch_table`) --> Pickler(fastpickle.Pickler)
    PyPy     cloudpickle.Pickler, imported on `pickle._Pickler` --- as it is --------------> Pickler(both)

cloudpickle subclasses the C pickler, and is fast where there is one.  This is for where there is none to subclass, and
for who needs the hooks that only a pickler in Python has.  The bytes are those that cloudpickle's reducers give on
`pickle._Pickler`; they load wherever cloudpickle's own do.

On PyPy 8 `import cloudpickle` fails: it copies `pickle.Pickler.dispatch`, but PyPy's `pickle.Pickler` is a builtin
there, which has none.  Importing this module imports it all the same, and then `import cloudpickle` works too.

Not for: making cloudpickle faster on CPython; it does not need that.
"""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Callable
from typing import Any

from .._stdlib import StockPickler
from ..pickler import Pickler as _Base


def _import_library() -> Any:
    """Import cloudpickle, on `pickle._Pickler` where it cannot be imported on `pickle.Pickler`."""
    try:
        return importlib.import_module("cloudpickle")
    except ImportError as exc:
        message = "fastpickle.backends.cloudpickle needs its extra: pip install 'fastpickle[cloudpickle]'"
        raise ImportError(message) from exc
    except AttributeError:
        original = pickle.Pickler
        if hasattr(original, "dispatch"):
            raise  # this is not what is wrong
        pickle.Pickler = StockPickler  # type: ignore[misc]  # what it was when cloudpickle was written
        try:
            return importlib.import_module("cloudpickle")
        finally:
            pickle.Pickler = original  # type: ignore[misc]


_library = _import_library()

__all__ = ["Pickler", "dump", "dumps", "load", "loads"]

load = pickle.load
loads = pickle.loads

_Original: Any = _library.Pickler


if issubclass(_Original, StockPickler):  # PyPy: its class can be subclassed as it is

    class Pickler(_Original, _Base):  # type: ignore[misc]  # nothing is known of either class
        """cloudpickle's Pickler on `fastpickle.Pickler`: its arguments, and its reducers of functions and classes."""

else:

    class Pickler(_Base):  # type: ignore[no-redef]  # the same, where cloudpickle's class is one of the C pickler's
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
                message = "Could not pickle object as excessively deep recursion required."
                raise pickle.PicklingError(message) from exc


def dump(obj: Any, file: Any, protocol: int | None = None, buffer_callback: Callable[[Any], Any] | None = None) -> None:
    """Pickle an object to a file, with the arguments of `cloudpickle.dump`."""
    Pickler(file, protocol=protocol, buffer_callback=buffer_callback).dump(obj)


def dumps(obj: Any, protocol: int | None = None, buffer_callback: Callable[[Any], Any] | None = None) -> bytes:
    """Pickle an object to bytes, with the arguments of `cloudpickle.dumps`."""
    file = io.BytesIO()
    dump(obj, file, protocol, buffer_callback)
    return file.getvalue()
