"""The memo that the C pickler has after a graft: fetched at once, or left with it until somebody looks.

    pickler.memo <--- update_memo ---- C's memo
    pickler      <--- keep_memo ------ C's memo, whole: pickler.memo is found by `LazyMemo` then, which fetches it

To fetch a memo costs as much as all the rest of a dump, and after most dumps nobody looks at it.

Not for: `uninstall()`, which has to fetch what is left before it takes `LazyMemo` away (`fetch_memos`).
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Final

__all__ = ["AT_ROOT", "IN_BATCHES", "LazyMemo", "counting", "fetch_memos", "keep_memo", "update_memo"]


def update_memo(memo: dict[int, tuple[int, Any]], grafter: Any) -> None:
    """Add to our memo what C has memoized, in that order."""
    entries = grafter.memo.copy()
    ordered: list[Any] = [None] * len(entries)
    for entry in entries.values():
        ordered[entry[0]] = entry
    del ordered[: len(memo)]
    memo.update(zip(map(id, map(_obj, ordered)), ordered))  # noqa: B905  # they are of one length


_obj: Final = itemgetter(1)


def keep_memo(pickler: Any, memo: dict[int, tuple[int, Any]], grafter: Any, where: str) -> None:
    """Leave the memo with C, if nobody has hold of ours."""
    state = pickler.__dict__
    references = sys.getrefcount(memo)
    if _is_counting:
        _references[where] = references
    if references > _references.get(where, 0):
        update_memo(memo, grafter)
        return
    if not _is_lazy(type(pickler)):
        update_memo(memo, grafter)
        return
    try:
        _kept[id(pickler)] = weakref.ref(pickler, _Forget(id(pickler)))
    except TypeError:
        update_memo(memo, grafter)
        return
    grafter.pickler = grafter.plan = grafter.known = grafter.memo_before = None
    if grafter.table is not None:
        del grafter.dispatch_table, grafter.table
    grafter.pieces.clear()
    state["_fastpickle_memo"] = _Kept(memo, grafter)
    del state["memo"]
    if not _is_lazy(type(pickler)):
        _fetch_memo(pickler)  # uninstall() was called in the middle of the dump


class _Kept:
    """A memo, and the C pickler that has what belongs into it; copies of a pickler share it, as they share a memo."""

    __slots__ = ("grafter", "memo")

    def __init__(self, memo: dict[int, tuple[int, Any]], grafter: Any = None) -> None:
        self.memo = memo
        self.grafter = grafter

    def fetch(self) -> dict[int, tuple[int, Any]]:
        """Return the memo with everything in it."""
        if self.grafter is not None:
            update_memo(self.memo, self.grafter)
            self.grafter = None
        return self.memo

    def __reduce__(self) -> Any:
        return _Kept, (self.fetch(),)


#: The picklers whose memo is with C, by id.
_kept: dict[int, weakref.ref[Any]] = {}


class _Forget:
    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key

    def __call__(self, ref: Any) -> None:
        if _kept.get(self.key) is ref:
            del _kept[self.key]


#: What `sys.getrefcount` says of a memo that only its pickler has hold of, and those that ask.
_references: dict[str, int] = {}
_is_counting = False


@contextmanager
def counting() -> Iterator[None]:
    """Count, in a `with` block, how many have hold of a memo; it must leave one with C in each of the ways."""
    global _is_counting
    _is_counting = sys.gettrace() is None  # that may look at the locals, which are others' then up to 3.12
    try:
        yield
    finally:
        _is_counting = False


AT_ROOT: Final = "root"
IN_BATCHES: Final = "batches"


class LazyMemo:
    """A class's `memo`, found only where the pickler has none of its own: then C has it, and it is fetched."""

    def __get__(self, pickler: Any, owner: Any = None) -> Any:
        if pickler is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute 'memo'")
        _fetch_memo(pickler)
        memo = pickler.__dict__.get("memo")
        if memo is None:
            raise AttributeError(f"{type(pickler).__name__!r} object has no attribute 'memo'")
        return memo


def _is_lazy(cls: type) -> bool:
    """Tell whether a `LazyMemo` is found where an instance has no memo."""
    for c in cls.__mro__:
        if "memo" in vars(c):
            return type(vars(c)["memo"]) is LazyMemo
    return False


def _fetch_memo(pickler: Any) -> None:
    """Put the memo on the instance, if it is with C."""
    kept = pickler.__dict__.pop("_fastpickle_memo", None)
    if kept is not None:
        if "memo" not in pickler.__dict__:  # nobody has set another one
            pickler.__dict__["memo"] = kept.fetch()
        _kept.pop(id(pickler), None)


def fetch_memos() -> None:
    """Fetch all memos that are with C, when a class loses its `LazyMemo`."""
    for ref in list(_kept.values()):
        pickler = ref()
        if pickler is not None:
            _fetch_memo(pickler)
