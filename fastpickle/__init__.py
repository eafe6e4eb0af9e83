"""fastpickle: the pure-Python pickler of the standard library, made fast without leaving the pickle format.

`Pickler` is a subclass of `pickle._Pickler` that writes the same bytes, only sooner; `dump` and `dumps` use it.
Everything else that `pickle` has is found here too, unchanged, so that ``import fastpickle as pickle`` works.
`install()` puts it under every library that subclasses the stock class (dill, joblib, datasets ...).

Importing this module changes nothing.
"""

from __future__ import annotations

import io as _io
import pickle as _pickle
from collections.abc import Callable as _Callable
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:  # type checkers take the first of a name that is imported twice
    from .pickler import Pickler as Pickler
from pickle import *  # type: ignore[assignment]  # the one above counts  # noqa: F403  # what pickle exports differs by Python, and all of it is wanted here
from pickle import __all__ as _pickle_all
from typing import Any as _Any

from ._stdlib import FRAMES_ARE_BYTESIO as _FRAMES_ARE_BYTESIO
from ._stdlib import CPickler as _CPickler
from .at_once.quick import Quick as _Quick
from .at_once.unmade import Unmade as _Unmade
from .patch import install, is_installed, patched, uninstall
from .pickler import Pickler

__version__ = "0.1.0"
__all__ = [*_pickle_all, "install", "is_installed", "patched", "uninstall"]  # noqa: PLE0604  # pickle's is a list of str
_quick: _Any = None  # on PyPy a pickler takes no longer
if _CPickler is not None:
    _quick = _Quick(Pickler)
elif _FRAMES_ARE_BYTESIO:
    _quick = _Unmade(Pickler)


def dump(  # type: ignore[no-redef]  # pickle's own, from the star
    obj: _Any,
    file: _Any,
    protocol: int | None = None,
    *,
    fix_imports: bool = True,
    buffer_callback: _Callable[[_Any], _Any] | None = None,
) -> None:
    Pickler(file, protocol, fix_imports=fix_imports, buffer_callback=buffer_callback).dump(obj)


def dumps(  # type: ignore[no-redef]
    obj: _Any,
    protocol: int | None = None,
    *,
    fix_imports: bool = True,
    buffer_callback: _Callable[[_Any], _Any] | None = None,
) -> bytes:
    pickled: bytes | None = None
    if _quick is not None and buffer_callback is None and fix_imports is True:
        proto = (
            _pickle.DEFAULT_PROTOCOL if protocol is None else _pickle.HIGHEST_PROTOCOL if protocol == -1 else protocol
        )
        if type(proto) is int and 0 <= proto <= _pickle.HIGHEST_PROTOCOL:
            pickled = _quick.at_once(obj, proto)
            if pickled:
                return pickled
    file = _io.BytesIO()
    pickler = Pickler(file, protocol, fix_imports=fix_imports, buffer_callback=buffer_callback)
    if pickled is not None:
        _quick.remember(pickler, obj, type(obj))
    pickler.dump(obj)
    return file.getvalue()


# The same arguments, so the same words; they name the running Python's default protocol.
dump.__doc__ = _pickle.dump.__doc__
dumps.__doc__ = _pickle.dumps.__doc__


def __getattr__(name: str) -> _Any:
    """Find what `pickle` has but does not export (`whichmodule`, `format_version`, `_Pickler` ...) there."""
    try:
        return getattr(_pickle, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
