"""datasets' Pickler on our base, and what is known of its hooks.

    save                 some types of other libraries are registered when they are met; then dill's
    memoize              nothing for strs, stock's for all else
    _batch_setitems      stock's, with the items sorted; keys that cannot be compared by their digests

`Pickler` here is datasets', on `fastpickle.backends.dill.Pickler` instead of dill's: what is registered with datasets
is registered here, too.  What is known of the functions is known by their source (`_source`), not by a version: with
others, or with a dill that is not known, everything works, through every hook.

Not for: putting it into `datasets.fingerprint.Hasher`; that is `fastpickle.install()`. The `hash` here patches nothing.
"""

from __future__ import annotations

import io
import sys
from types import FunctionType, SimpleNamespace
from typing import Any

from .. import hooks
from .._stdlib import FRAMES_ARE_BYTESIO, StockPickler, stock_methods
from ..digests import hashed
from ..digests.shapes import are_sortable
from ..doubts import outside
from ..objects.arrays import array_type
from ..pickler import Pickler as _Base
from ..rules import HashRule
from ._source import digests

try:
    import datasets
    from datasets.utils import _dill as _library
    from dill import _dill

    from . import dill as _dill_backend
    from ._datasets_arrays import save_array
    from ._dill_own import is_quiet
except ImportError as exc:
    raise ImportError("fastpickle.backends.datasets needs datasets: pip install 'fastpickle[datasets]'") from exc

__all__ = ["Pickler", "dump", "dumps", "hash"]

_Original: Any = _library.Pickler
_originals = (_Original.save, _Original.memoize, _Original._batch_setitems, _library._save_set)
#: The digests of those in datasets 2.16 to 5.2: of `_batch_setitems` there is another one up to 4.3.
_KNOWN = (("432a7f3971c829c7",), ("8a1ecdd21a6c7fc3",), ("5a0c1d830279dd51", "4d8cd37d986551a4"), ("78ae3cddd0105a61",))
_OLDER_SET_ITEMS = "5a0c1d830279dd51"
#: The libraries whose types `save` looks for.
_LOOKED_FOR = ("regex", "spacy", "tiktoken", "torch", "transformers")

# Its functions say `dill.Pickler.save(self, obj)`: here they are once more, with other globals.
_globals = {**vars(_library), "dill": SimpleNamespace(**{**vars(_library.dill), "Pickler": _dill_backend.Pickler})}


def _rebound(function: Any) -> Any:
    """Return a function of datasets' with our class for dill's."""
    made = FunctionType(function.__code__, _globals, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__doc__ = function.__doc__
    return made


_own = {f: _rebound(f) for f in _originals[:3]}


class Pickler(_Original, _dill_backend.Pickler):  # type: ignore[misc]  # datasets has no types
    """datasets' Pickler on `fastpickle.Pickler`: the same bytes, so the same digests."""

    __module__ = f"{__name__} on dill"  # dill takes a pickler for its own if there is "dill" in it
    save = _own[_Original.save]
    memoize = _own[_Original.memoize]
    _batch_setitems = _own[_Original._batch_setitems]

    def dump(self, obj: Any) -> None:
        """Write a pickled representation of `obj` to the open file, as datasets' Pickler would."""
        if (
            _dill_backend._is_known
            and _Original.dump is _dill_backend._dill_dump
            and _dill.StockPickler is StockPickler  # whose own it calls
            and StockPickler.dump is stock_methods["dump"]
        ):
            _dill.logger.trace_setup(self)
            _Base.dump(self, obj)
        else:
            _Original.dump(self, obj)


def dump(obj: Any, file: Any) -> None:
    """Pickle an object to a file, as datasets does for a digest."""
    Pickler(file, recurse=True).dump(obj)


def dumps(obj: Any) -> bytes:
    """Return the bytes of which `datasets.fingerprint.Hasher.hash` gives the digest."""
    file = io.BytesIO()
    dump(obj, file)
    return file.getvalue()


def hash(obj: Any) -> str:
    """Return the digest that `datasets.fingerprint.Hasher.hash` gives."""
    digest: str = datasets.fingerprint.Hasher.hash_bytes(dumps(obj))
    return digest


def _save_set(pickler: Any, plan: hooks.Plan, obj: set[Any], write: Any) -> None:
    """Save a set as datasets' own function does, which is called only for a trace, or to compare what is not plain."""
    if plan.hash_rule is not None and is_quiet(pickler) and are_sortable(obj):
        try:
            ordered = sorted(obj)
        except TypeError:
            pass
        else:
            if hashed.save_instance(pickler, plan, obj, (set, (ordered,)), True):
                return
    outside(pickler, pickler.dispatch[set], obj)


def _is_looked_for(t: type) -> bool:
    """Tell whether `save` might do something of its own for an object of this type."""
    return t is FunctionType or not sys.modules.keys().isdisjoint(_LOOKED_FOR) or bool(_dill_backend._is_of_numpy(t))


def _is_right() -> bool:
    """Tell whether dill's pickler, and ours on it, are as they were: what the functions of datasets call."""
    return (
        _library.dill is _dill_module
        and _dill_module.Pickler is _DillPickler
        and _DillPickler.save is _dill_save
        and _DillBase.save is _our_save
        and _CALLED.isdisjoint(vars(_DillPickler))
        and _CALLED.isdisjoint(vars(_DillBase))
    )


_dill_module: Any = _library.dill
_DillPickler: Any = _dill_backend._DillPickler
_DillBase: Any = _dill_backend.Pickler
_dill_save = _DillPickler.save
_our_save = _DillBase.save
_CALLED = frozenset(("memoize", "_batch_setitems"))


def _as_it_is(function: Any) -> Any:
    return function


def _is_known() -> bool:
    """Tell whether datasets' functions, and dill's, are those that this was read off."""
    found = digests(*_originals)
    return (
        _dill_backend._is_known
        and _Original.__mro__[1] is _dill_backend._DillPickler
        and all(x in known for x, known in zip(found, _KNOWN, strict=True))
    )


if FRAMES_ARE_BYTESIO and _is_known():  # not on PyPy, whose engine knows nothing of digests
    hooks.known_entries[set, _library._save_set] = _save_set
    _is_older = digests(_Original._batch_setitems) == [_OLDER_SET_ITEMS]
    for _made in _as_it_is, _own.__getitem__:
        hooks.known_saves[_made(_Original.save)] = hashed.save_other
        hooks.choosy_saves[_made(_Original.save)] = _is_looked_for
        hooks.hash_rules[_made(_Original.save)] = HashRule(
            _made(_Original.memoize),
            _made(_Original._batch_setitems),
            memoizes_bytes=True,
            memoizes=lambda t: True,
            save_known=hashed.save_known,
            array=array_type(),
            save_array=save_array,
            is_right=_is_right,
            is_unsorted=(lambda pickler: bool(pickler._legacy_no_dict_keys_sorting)) if _is_older else None,
        )
