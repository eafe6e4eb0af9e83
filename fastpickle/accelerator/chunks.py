"""Long lists and dicts by the C pickler, a chunk of batches at a time, so that little is held.

    batches(obj) --> chunk, chunk ...: each behind a prefix as long as our frame, by one C pickler with one memo
                 --> C gives up in the middle: the batches before that once more, the rest is Python's

Not for: what is written whole (`graft`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice
from operator import length_hint
from typing import Any, Final

from .. import hooks
from .._stdlib import BATCHSIZE, memoized
from ..doubts import doubt
from ..hooks import Plan
from ..interrupts import is_interrupt
from .cpickler import ROOM, BeginAgain, Splice, dump, is_written, take, take_asking, use
from .differences import made_ours
from .lazymemo import IN_BATCHES, join_memo, keep_memo
from .offers import back_off, is_for_batches, may_offer
from .splicing import padding, write

__all__ = ["batches"]

#: How many items of a list or dict C is given at first; then as many as give about so many bytes.
_FIRST_CHUNK: Final = 10_000
_CHUNK: Final = 16 << 20
#: What is fewer bytes for an entry of the memo Python has written, by columns, before C has and the entry is fetched.
_PER_ENTRY: Final = 128
#: How many bytes C's table of the memo may have, if it is to be fetched: for 400,000 entries, that take 60 MB then.
_LARGE_MEMO: Final = 16 << 20


def batches(pickler: Any, plan: Plan, obj: Any, start: int = 0, worth: int = 1) -> int:
    """Let C write the items of a list or dict that is open, in batches.

    Args:
        pickler: one that has written the opening, and memoized `obj`.
        plan: the plan in force.
        obj: an exact list, or an exact dict of which nothing has been written.
        start: the index of the first item.
        worth: for how many entries of the memo an item makes up, by what it gains.

    Returns:
        How many items are written, with the opcodes that append them: all, or some whole batches, or none.
    """
    if not may_offer(pickler, plan, worth * (len(obj) - start)):
        return 0
    dump = pickler._fastpickle_dump
    memo = pickler.memo
    chunks = _Chunks(pickler, plan, obj, start, dump)
    chunks.write_all()
    is_all = chunks.done == len(obj)
    is_root = is_all and dump.root is obj
    if chunks.done > start and not (is_root and keep_memo(pickler, memo, chunks.grafter, IN_BATCHES)):
        join_memo(pickler, plan, memo, chunks.grafter)
    if is_all:
        dump.penalty = 0
    else:
        if not chunks.is_slower:
            back_off(dump)
        if chunks.grafter.table is not None:
            doubt(pickler, has_run=True)
    return chunks.done - start


class _Chunks:
    """The items of a list or dict, which one C pickler writes a chunk at a time, so that little is held.

    Attributes:
        done: the index of the first item that is not written.
        grafter: the C pickler, which has memoized just what is written.
        is_slower: whether it was stopped, since Python writes the others as soon.
    """

    def __init__(self, pickler: Any, plan: Plan, obj: Any, start: int, dump: Any) -> None:
        self.pickler = pickler
        self.plan = plan
        self.obj = obj
        self.start = start
        self.dump = dump
        self.is_list = type(obj) is list
        self.done = start
        self.is_slower = False
        self.kind: Callable[..., Any] = take
        self.grafter = self.kind(pickler, plan, pickler.memo, dump.known)
        self.source = self._items(start)

    def write_all(self) -> None:
        """Write the items from the first one on, as far as C can and as it pays, in whole batches."""
        n = len(self.obj)
        is_fetched = self.dump.root is not self.obj or not is_for_batches(self.obj, type(self.obj))
        size = BATCHSIZE if is_fetched else _FIRST_CHUNK
        while self.done < n:
            taken = self._write(min(size, n - self.done))
            if taken is not None:  # C stopped in the middle: once more, as far as it came
                self._rewind()
                sure = taken - taken % BATCHSIZE
                if sure and self._write(sure) is not None:
                    self._rewind()
                return
            if self.grafter.__sizeof__() > _LARGE_MEMO and self.dump.root is not self.obj:
                return  # to fetch a larger one would take too much room
            if is_fetched and self.done == self.start + BATCHSIZE:
                self.is_slower = self._is_slower()
                if self.is_slower:
                    return
            per_item = self.grafter.held.written // size + 1
            size = max(1, _CHUNK // per_item // BATCHSIZE) * BATCHSIZE
            use(self.grafter, self.pickler, self.plan, {}, self.dump.known)

    def _is_slower(self) -> bool:
        """Tell whether there was so much to memoize in the first batch that Python has written it before C and that."""
        grafter = self.grafter
        return (
            self.plan.graft_rule is hooks.STOCK_RULE
            and not (grafter.known or grafter.table)  # instances take Python longer
            and grafter.held.written < _PER_ENTRY * (len(memoized(grafter)) - len(self.pickler.memo))
        )

    def _write(self, n: int) -> int | None:
        """Write the next `n` items, or say how many of them C would have written."""
        framer = self.pickler.framer
        args = padding(framer, self.plan)
        if args is None:
            return 0
        succeeded = None
        while succeeded is None:
            try:
                succeeded = is_written(self.grafter, self._splice(args, n))
            except BeginAgain as again:
                self._begin_again(*again.args)
        if not succeeded:
            return max(0, len(self.obj) - self.done - length_hint(self.source) - 2)  # C asks for one or two ahead
        if not made_ours(self.pickler, self.plan, self.grafter, self.obj, n):
            return 0
        if not write(framer, self.plan, self.grafter.pieces, 1):
            return 0
        self.done += n
        return None

    def _splice(self, args: tuple[Any, ...], n: int) -> Splice:
        some = islice(self.source, n)
        return Splice(self.grafter, args, items=some) if self.is_list else Splice(self.grafter, args, pairs=some)

    def _items(self, start: int) -> Any:
        """Return an iterator over the items from `start` on, which knows how many there are."""
        source: Any = iter(self.obj if self.is_list else self.obj.items())
        if self.is_list:
            source.__setstate__(start)
        else:
            next(islice(source, start, start), None)
        return source

    def _begin_again(self, kind: Callable[..., Any]) -> None:
        """Take another C pickler, of a kind that can write what is written; which the one that asks always can."""
        self.kind = kind
        try:
            self._rewind()
        except Exception as exc:  # a function comes first, or what was written is another thing by now
            if is_interrupt(exc):
                raise
            self.kind = take_asking
            self._rewind()

    def _rewind(self) -> None:
        """Take another C pickler, and let it memoize what is written."""
        has_names = self.grafter.has_names
        self.grafter = self.kind(self.pickler, self.plan, self.pickler.memo, self.dump.known)
        self.grafter.has_names = has_names
        self.source = self._items(self.start)
        if self.done > self.start:
            grafter = self.grafter
            held = grafter.held
            held.pieces = _Nowhere()
            held.room = sys.maxsize
            grafter.asked = -sys.maxsize  # so many instances are right here
            if grafter.memo_before:
                grafter.memo = grafter.memo_before
            dump(grafter, self._splice((), self.done - self.start))
            held.pieces = grafter.pieces
            held.room = ROOM
            use(grafter, self.pickler, self.plan, {}, self.dump.known)


class _Nowhere:
    def append(self, piece: Any) -> None:
        """Drop a piece."""
