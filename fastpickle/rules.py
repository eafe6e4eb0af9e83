"""Rules: what a library's hooks do, as far as it matters to who stands for them.

    backends --(tell, once a library is met)--> GraftRule    what the C pickler must not write (`graft`)
                                                HashRule     what a pickler of digests does otherwise (`hashing`)

Not for: which pickler has which rule (`hooks`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from pickle import EMPTY_DICT
from types import MappingProxyType
from typing import Any, Final

from .interrupts import is_interrupt

__all__ = ["LIBRARIES", "GraftRule", "HashRule", "load_library", "texts_of"]


class GraftRule:
    """What has to be asked where the C pickler writes in the place of dispatch entries.

    Args:
        names: the dicts that have one of them as a key are not for C.
        lengths: gives for a pickler the lengths of the dicts that it compares with others, or nothing if it may not
            graft now; None if it always may, and compares none.
        asks: tells whether somebody's `__eq__` may be asked where an instance of a type is in such a dict.
        asked: gives for a pickler the keys of what else it may be asked of, by what is in the others; takes 10 us.
        is_asked: tells of a pickler and of a dict of such a length whether it may be: then that is not for C.
        builtins: what C saves without asking where a protocol has no opcode for a type, and is not for it; each with
            the lowest protocol at which C does not.
        calls: for types with a dispatch entry that saves an object as a call: the entry, and what gives the function
            and its arguments, or None where the entry does something else.
        may_call: tells whether the entries do that now.
        call_of_others: tells of a pickler and of a type that is not in `calls` what could stand there; or None.

    Attributes:
        texts_of_names: by protocol, what is found in a pickle that has one of them in it.
        unwanted: by protocol, the ids of the builtins that C may have saved.
    """

    __slots__ = (
        "asked", "asks", "call_of_others", "calls", "is_asked", "lengths", "may_call", "names", "texts_of_names",
        "unwanted",
    )  # fmt: skip

    def __init__(
        self,
        names: frozenset[str] = frozenset(),
        lengths: Callable[[Any], tuple[int, ...]] | None = None,
        asks: Callable[[type], bool] = lambda t: False,
        asked: Callable[[Any], tuple[str, ...]] = lambda pickler: (),
        is_asked: Callable[[Any, dict[Any, Any]], bool] = lambda pickler, obj: False,
        builtins: Mapping[Any, int] = MappingProxyType({}),
        calls: Mapping[type, tuple[Any, Callable[[Any], Any]]] = MappingProxyType({}),
        may_call: Callable[[], bool] | None = None,
        call_of_others: Callable[[Any, type], tuple[Any, Callable[[Any], Any]] | None] | None = None,
    ) -> None:
        self.names = names
        self.lengths = lengths
        self.asks = asks
        self.asked = asked
        self.is_asked = is_asked
        self.calls = calls
        self.may_call = may_call
        self.call_of_others = call_of_others
        self.unwanted = [frozenset(id(x) for x, lowest in builtins.items() if proto < lowest) for proto in range(6)]
        self.texts_of_names = [texts_of(names, proto) for proto in range(6)]

    def call_of(self, pickler: Any, t: type) -> Callable[[Any], Any] | None:
        """Return what gives the call that an object of a type is saved as, if its dispatch entry is such a one.

        Args:
            pickler: whose entries count.
            t: a type.
        """
        if self.may_call is None or type(t) is not type:
            return None
        found = self.calls.get(t)
        if found is None and self.call_of_others is not None:
            found = self.call_of_others(pickler, t)
        if found is None or not self.may_call():
            return None
        entry, call = found
        return call if pickler.dispatch.get(t) is entry else None

    def is_free(self, lengths: tuple[int, ...], obj: Any, data: bytes, proto: int) -> bool:
        """Tell whether a few bytes have clearly no dict in them that this rule is about.

        Args:
            lengths: those of the pickler for which they are.
            obj: what they are of.
            data: the bytes, written by C at protocol 1 or later, which was asked about the builtins.
            proto: the protocol.
        """
        n = data.count(EMPTY_DICT)
        if n == 1 and type(obj) is dict:  # no other one is in it
            for name in self.names:
                if name in obj:
                    return False
            return len(obj) not in lengths
        if not n:
            return True
        find = data.find  # `in` tries to make a number of the text first, which takes 70 ns
        for text in self.texts_of_names[proto]:
            if find(text) >= 0:
                return False
        return len(data) < 2 * min(lengths)


def texts_of(names: Iterable[str], proto: int) -> tuple[bytes, ...]:
    """Return what stands in a pickle where a dict's key is one of some names, or a class has it."""
    texts = [name.encode("utf-8", "surrogatepass") for name in names]
    return tuple([text if proto < 4 or len(text) > 255 else bytes([len(text)]) + text for text in texts])


class HashRule:
    """What a library's picklers do that make digests: texts are not memoized, and dicts are sorted.

    Args:
        memoize: the class's `memoize`, which does nothing for exact strs, and nobody knows what for others.
        set_items: its `_batch_setitems`, which saves the items in the order of `sorted(items)`.
        memoizes_bytes: whether it memoizes exact bytes.
        memoizes: tells for any other type whether `memoize` is stock's for its instances.
        save_known: saves an object of a type that is in no plan, if nobody's code runs for that, or leaves that to the
            class's own `save`, by None (`hashed`).
        is_quiet: tells of what `save` does something of its own for whether that runs nobody's code; or None.
        is_unsorted: tells whether a pickler leaves dicts as they are, after all; None if none does.
        is_right: tells whether what its functions call are still those of the library, and of ours.
        is_other: tells of a type whether its instances may be encoded without a hook, though no plain data; or None.
        others: what encodes them, for one pickler, in the loop (`hashed`) and with small plain data (`small_hashes`).
        array: the type of numpy's arrays, if `save_array` may save them sooner than by their reduce; or None.
        save_array: tells whether it has saved an array, save_array(pickler, plan, obj, array).
        retry: what it does if TypeError is raised while the items of a dict are saved: retry(pickler, dict); or None.

    Attributes:
        methods: what a class may have for methods that has this rule (`hooks`).
    """

    __slots__ = (
        "array", "is_other", "is_quiet", "is_right", "is_unsorted", "memoize", "memoizes", "memoizes_bytes", "methods",
        "others", "retry", "save_array", "save_known", "set_items",
    )  # fmt: skip

    def __init__(
        self,
        memoize: Any,
        set_items: Any,
        memoizes_bytes: bool,
        memoizes: Callable[[type], bool],
        save_known: Callable[[Any, Any, Any, type], bool | None],
        is_right: Callable[[], bool],
        is_quiet: Callable[[Any], bool] | None = None,
        is_unsorted: Callable[[Any], bool] | None = None,
        is_other: Callable[[type], bool] | None = None,
        others: Callable[[Any], Any] | None = None,
        array: type | None = None,
        save_array: Callable[[Any, Any, Any, type], bool] | None = None,
        retry: Callable[[Any, dict[Any, Any]], None] | None = None,
    ) -> None:
        self.array = array
        self.is_other = is_other
        self.memoize = memoize
        self.methods: tuple[tuple[Any, ...], ...] = ()
        self.set_items = set_items
        self.memoizes_bytes = memoizes_bytes
        self.memoizes = memoizes
        self.save_known = save_known
        self.is_quiet = is_quiet
        self.is_right = is_right
        self.is_unsorted = is_unsorted
        self.others = others
        self.save_array = save_array
        self.retry = retry


# A library describes its own hooks in a module that is imported when its first pickler is met.
LIBRARIES: Final = {
    "dill": "fastpickle.backends.dill",
    "joblib": "fastpickle.backends.joblib",
    "datasets": "fastpickle.backends.datasets",
}


def load_library(function: Any) -> None:
    """Let the library that `function` comes from tell what is known of it."""
    module = getattr(function, "__module__", None)
    if type(module) is str:
        name = module.partition(".")[0]
        backend = LIBRARIES.get(name)
        if backend is not None:
            try:
                importlib.import_module(backend)
            except Exception as exc:  # a version that the backend cannot even be imported with is an unknown one
                if is_interrupt(exc):
                    raise
                LIBRARIES.pop(name, None)
