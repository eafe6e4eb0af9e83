"""The memo that the C pickler has after a graft: fetched at once, or left with it until somebody looks.

    pickler.memo <--- update_memo ---- C's memo
    pickler.memo <--- join_memo ------ C's memo of a part, in any order ---> put_in_order, before somebody's code runs
                                                                        ---> order_memo, at the end of the dump
    pickler      <--- keep_memo ------ C's memo, whole: pickler.memo is found by `LazyMemo` then, which fetches it

To fetch a memo costs as much as all the rest of a dump, half of that for its order, and after most dumps nobody looks
at it.  So the order, too, is brought about when somebody does.

Not for: `uninstall()`, which has to fetch what is left before it takes `LazyMemo` away (`fetched_memos`).
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from .._stdlib import register_at_fork
from ..hooks import STOCK_RULE, Plan
from ..interrupts import is_interrupt
from .cpickler import LARGE_TABLE, give_back, prepare_to_keep, unordered

__all__ = [
    "AT_ONCE",
    "AT_ROOT",
    "BEHIND_ALL",
    "BEHIND_FEW",
    "IN_BATCHES",
    "IN_CELL",
    "LazyMemo",
    "counting",
    "fetch_memo",
    "fetch_memos",
    "fetched_memos",
    "is_lazy",
    "join_memo",
    "keep_behind",
    "keep_memo",
    "order_memo",
    "put_in_order",
    "update_memo",
]


def update_memo(memo: dict[int, tuple[int, Any]], grafter: Any, behind: Iterable[Any] = ()) -> None:
    """Add to our memo what C has memoized, in that order, and what comes behind that."""
    entries = grafter.memo.copy()
    ordered: list[Any] = [None] * len(entries)
    values = entries.values()
    deque(map(ordered.__setitem__, map(_index, values), values), 0)  # a loop in C: half the time of one in Python
    ordered += enumerate(behind, len(ordered))
    del ordered[: len(memo)]
    memo.update(zip(map(id, map(_obj, ordered)), ordered))  # noqa: B905  # they are of one length


_index: Final = itemgetter(0)
_obj: Final = itemgetter(1)


def join_memo(pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], grafter: Any) -> None:
    """Add to our memo, in the middle of a dump, what C has memoized of a part; the C pickler is given back.

    With a library's pickler, the functions of which look an object up, that is in no order until it might be seen: what
    comes behind a part is the library's, most often, and somebody's own reduce where it is stock's pickler.
    """
    if (plan.graft_rule is STOCK_RULE and not _is_counting) or grafter.__sizeof__() < LARGE_TABLE:
        update_memo(memo, grafter)
    else:
        unordered.setdefault(id(pickler), len(memo))  # before: a tracer may end the dump
        memo.update(grafter.memo.copy())
    give_back(grafter)


def put_in_order(pickler: Any) -> None:
    """Put the memo in order before code runs that may be somebody's; it takes but one frame, as that does."""
    start = unordered.pop(id(pickler))
    state = pickler.__dict__
    if "_fastpickle_memo" in state:
        fetch_memo(pickler)
    memo = state.get("memo")
    if type(memo) is dict:
        for key in _keys_in_order(memo, start):  # it is never without more than one
            memo[key] = memo.pop(key)


def order_memo(pickler: Any) -> None:
    """Put the memo in order at the end of a dump, or when somebody looks, if nobody has hold of it."""
    state = pickler.__dict__
    kept = state.get("_fastpickle_memo")
    if kept is not None and "memo" not in state:  # somebody may have set another one
        kept.start = unordered.pop(id(pickler))
        return
    memo = state.get("memo")
    references = sys.getrefcount(memo)
    if type(memo) is not dict or not _is_kept(pickler, memo, None, _AT_END, references):
        put_in_order(pickler)


def _keys_in_order(memo: dict[int, tuple[int, Any]], start: int) -> list[int]:
    """Return the keys of a memo from one on, in the order of its indices."""
    keys = [*islice(memo, start, None)]
    try:
        return [key for _, key in sorted(zip(map(_index, map(memo.__getitem__, keys)), keys, strict=True))]
    except Exception as exc:  # another thread has put other things there
        if is_interrupt(exc):
            raise
        return keys


def keep_memo(pickler: Any, memo: dict[int, tuple[int, Any]], grafter: Any, where: str) -> bool:
    """Leave the memo with C, if nobody has hold of ours; tell whether it was, and if not, it is to be fetched."""
    return _is_kept(pickler, memo, grafter, where, sys.getrefcount(memo))


def _is_kept(pickler: Any, memo: dict[int, tuple[int, Any]], grafter: Any, where: str, references: int) -> bool:
    """Leave the memo as it is, with a C pickler or in no order, if so few have hold of it; tell whether it was."""
    if _is_counting:
        _references[where] = references
    cls = type(pickler)
    times_fetched = _times_fetched
    if not (_may_keep and references <= _references.get(where, 0) and is_lazy(cls) and cls.__weakrefoffset__):
        return False
    state = pickler.__dict__
    if grafter is not None:
        prepare_to_keep(grafter)
    state["_fastpickle_memo"] = _Kept(memo, grafter, None if grafter is not None else unordered.pop(id(pickler)))
    del state["memo"]
    _note(pickler)
    if _times_fetched != times_fetched:
        fetch_memo(pickler)  # uninstall() was called meanwhile, and may not have found it
    return True


class _Kept:
    """A memo, and the C pickler that has what belongs into it; copies of a pickler share it, as they share a memo.

    Attributes:
        behind: what belongs into it behind that.
        start: from which entry on it is in no order, if it is not.
    """

    __slots__ = ("behind", "grafter", "memo", "start")

    def __init__(self, memo: dict[int, tuple[int, Any]], grafter: Any = None, start: int | None = None) -> None:
        self.memo = memo
        self.grafter = grafter
        self.start = start
        self.behind: list[Any] = []

    def fetch(self) -> dict[int, tuple[int, Any]]:
        """Return the memo with everything in it; two threads may do so at once."""
        with _is_fetching:
            if self.grafter is not None:
                update_memo(self.memo, self.grafter, self.behind)
                self.grafter = None
            if self.start is not None:
                memo = self.memo
                keys = [*islice(memo, self.start), *_keys_in_order(memo, self.start)]
                self.memo = {key: memo[key] for key in keys}
                self.start = None
        return self.memo

    def __reduce__(self) -> Any:
        return _Kept, (self.fetch(),)


#: It may be taken again by what runs when something is collected.
_is_fetching: Final = threading.RLock()
#: The picklers whose memo is with C, and others that are dropped when there may be more of these.
_noted: deque[weakref.ref[Any]] = deque()
_most_noted = 0
_times_fetched = 0
_may_keep = True
_is_dropping = threading.Lock()


def _after_fork() -> None:
    """Take a new lock, since the thread that had the old one is not there."""
    global _is_dropping
    _is_fetching.release()
    _is_dropping = threading.Lock()


register_at_fork(before=_is_fetching.acquire, after_in_parent=_is_fetching.release, after_in_child=_after_fork)


def _note(pickler: Any) -> None:
    """Note that the memo of a pickler is with C, for `fetch_memos`."""
    global _most_noted
    _noted.append(weakref.ref(pickler))  # a callback that drops it would take as long as all the rest
    lock = _is_dropping  # a finalizer may fork
    if len(_noted) > _most_noted and lock.acquire(blocking=False):
        try:
            for _ in range(len(_noted)):
                noted = _noted[0]()
                if noted is not None and "_fastpickle_memo" in noted.__dict__:
                    _noted.append(_noted[0])  # before it is taken away there: another thread may look for it
                _noted.popleft()
            _most_noted = 2 * len(_noted) + 64
        finally:
            lock.release()


def _all_noted() -> list[weakref.ref[Any]]:
    """Return what is noted now."""
    while True:
        try:
            return [*_noted]
        except RuntimeError as exc:  # where there is no GIL another thread has noted something meanwhile
            if is_interrupt(exc):
                raise


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


AT_ONCE: Final = "at once"
AT_ROOT: Final = "root"
IN_BATCHES: Final = "batches"
BEHIND_ALL: Final = "behind all"
BEHIND_FEW: Final = "behind few"
IN_CELL: Final = "in cell"
_AT_END: Final = "end"


class LazyMemo:
    """A class's `memo`, found only where the pickler has none of its own: then C has it, and it is fetched."""

    def __get__(self, pickler: Any, owner: Any = None) -> Any:
        if pickler is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute 'memo'")
        fetch_memo(pickler)
        memo = pickler.__dict__.get("memo")
        if memo is None:
            raise AttributeError(f"{type(pickler).__name__!r} object has no attribute 'memo'")
        return memo


def is_lazy(cls: type) -> bool:
    """Tell whether a `LazyMemo` is found where an instance has no memo."""
    for c in cls.__mro__:
        if "memo" in c.__dict__:
            return type(c.__dict__["memo"]) is LazyMemo
    return False


def fetch_memo(pickler: Any) -> None:
    """Put the memo on the instance, if it is with C."""
    state = pickler.__dict__
    kept = state.get("_fastpickle_memo")
    if kept is not None:  # at no moment is there neither
        if "memo" not in state:  # as in `order_memo`
            state.setdefault("memo", kept.fetch())
        state.pop("_fastpickle_memo", None)


def keep_behind(pickler: Any, objs: list[Any]) -> bool:
    """Add to what is with C what is memoized behind that; False if it has been fetched, and nothing is added.

    Args:
        pickler: the pickler, the memo of which was left with C.
        objs: the objects, none of which is in the memo.
    """
    kept = pickler.__dict__.get("_fastpickle_memo")
    if kept is None:
        return False
    with _is_fetching:
        kept.behind = objs
        # A tracer, or what runs when something is collected, may have fetched it just before, or with them.
        return kept.grafter is not None or not objs or id(objs[-1]) in kept.memo


@contextmanager
def fetched_memos() -> Iterator[None]:
    """Have no memo with C in a `with` block, in which a class loses its `LazyMemo`."""
    global _may_keep
    before = _may_keep
    _may_keep = False  # first: else one that another thread leaves there in between is lost until the end
    try:
        fetch_memos()
        yield
    finally:
        _may_keep = before


def fetch_memos() -> None:
    """Fetch all memos that are with C."""
    global _times_fetched
    _times_fetched += 1
    for ref in _all_noted():
        pickler = ref()
        if pickler is not None:
            fetch_memo(pickler)
