"""dumps() without a pickler, where the C pickler can write all: to make one takes longer than a small dump.

    Quick(Pickler).at_once(obj) --(nothing of the class was changed)--> C --(as in `graft`)--> its bytes
                                                                          +-- it gives up -----> b"": make a pickler
    Quick(Pickler).write(pickler, obj)   the same where a library makes a pickler, for one dump, that nobody else has

Not for: picklers with hooks of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO
from operator import attrgetter
from pickle import EMPTY_DICT
from types import BuiltinMethodType, FunctionType
from typing import Any, Final

from .. import graft, hooks
from .._stdlib import BATCHSIZE, NOT_WRITTEN, PARTS_OF_METHODS, Framer, StockPickler, c_dumps, stock_methods
from ..accelerator.cpickler import LARGE_TABLE, BeginAgain, joined, take_own
from ..accelerator.differences import made_ours
from ..accelerator.glance import at_first_glance, is_of_large_atoms
from ..accelerator.offers import has_refused, is_for_batches, may_be_plain, may_write
from ..accelerator.splicing import FEW_BYTES, write_whole
from ..hooks import ATOM_IDS, CONTAINER_IDS, STOCK_RULE, entries_of
from ..interrupts import is_interrupt
from ..objects.last import are_few, last
from ..objects.likely import are_for_stock, is_for_stock

__all__ = ["Quick", "attributes_of", "is_for_librarys", "makes_of"]

#: What an instance is made and used by, and what `hooks.plan` looks at.
attributes_of = attrgetter(
    "save", "dump", "__init__", "__new__", "__setattr__", "memoize", "put", "get", "persistent_id", "save_reduce",
    "save_global", "_batch_appends", "_batch_setitems", "_BATCHSIZE", "__getattribute__", "fastpickle_grafts",
    *PARTS_OF_METHODS,
)  # fmt: skip
#: A larger table of the memo is not kept for the next dump, nor any for more dumps than so many: to clear one of
#: 128 KiB takes 4 us, to let it grow again 15 us.
_LARGEST_TABLE: Final = 300 << 10
_TIMES: Final = 32
#: What has written a longer piece is not kept: C would take as large a buffer for the next dump as for that one, and
#: one that malloc() gets from the system, from 128 KiB on, takes 20 us.  C makes it longer by halves.
_LONGEST_PIECE: Final = 80_000
#: So many bytes of the table are for one byte that is written, at the most, where it is of this dump.
_PER_BYTE: Final = 8
_save_dict: Final = stock_methods["save_dict"]
_stock_init: Final = stock_methods["__init__"]
makes_of = attrgetter("dump", "__init__", "__new__", "__setattr__")  # of which a plan knows nothing


def is_for_librarys(obj: Any, t: type) -> bool:
    """Tell whether C is not likely to give up what is dumped, where a library has its own way to save functions."""
    if id(t) not in CONTAINER_IDS:
        if id(t) in ATOM_IDS or t is FunctionType or is_for_stock(t) or id(obj) == last.gave_up_for:
            return False
        return not last.was_refused(obj, t)
    if not (last.gave_up_for or last.refused):
        return True
    if last.gave_up_for and last.is_like(obj, t):
        return False
    if may_be_plain(obj, t):
        last.outlive_refused()
        return True
    return not (last.was_refused(obj, t) or are_for_stock(obj, t))


class Quick:
    """What writes the dumps of one class without an instance of it.

    Args:
        cls: a subclass of `pickle._Pickler`.
        is_for_c: tells of an object and its type, before anything else is looked at, whether C may be asked about it;
            None where C may be asked about all.
    """

    def __init__(self, cls: Any, is_for_c: Callable[[Any, type], bool] | None = None) -> None:
        self._cls = cls
        self._is_for_c = is_for_c
        self._stand_ins = [cls(BytesIO(), proto) for proto in range(6)]  # for their hooks; they never write
        self._has_table = "dispatch_table" in vars(self._stand_ins[0])  # of each instance
        self._makes = makes_of(cls)
        # What the class was like, its entries and the type of their table; by protocol, the plan for that, its rule,
        # how long is too long to be known as ours by its length, and the C picklers that are kept for it.  All in one,
        # as another thread may plan anew.
        self._planned: tuple[Any, Any, Any, list[tuple[hooks.Plan, Any, int, list[Any]]]] = (None, None, None, [])
        self._written = 0  # how many bytes by the last dump, if they were of several pieces

    def write(self, pickler: Any, obj: Any) -> bool:
        """Write what a pickler would, to its file in memory, and leave the pickler as it is.

        Args:
            pickler: an instance of the class that has just been made, and that nobody will look at any more.
            obj: the object, which is for C.

        Returns:
            Whether it is written; if not, nothing is.
        """
        framer = pickler.framer
        write = framer.file_write
        protocol = pickler.proto
        if (
            type(write) is not BuiltinMethodType
            or type(framer) is not Framer
            or StockPickler.__init__ is not _stock_init
            or hasattr(self._cls, "__del__")
            or type(write.__self__) is not BytesIO
            or write.__name__ != "write"
            or (protocol < 3 and not pickler.fix_imports)
            or ((type(obj) is list or type(obj) is dict) and len(obj) > BATCHSIZE and is_for_batches(obj, type(obj)))
        ):
            return False
        if self._has_table:
            self._stand_ins[protocol].dispatch_table = pickler.dispatch_table
        try:
            pickled = self.at_once(obj, protocol, pickler)
        except (RecursionError, AttributeError) as exc:  # Python will manage; it was uninstalled meanwhile
            if type(exc) is not RecursionError and is_interrupt(exc):
                raise
            return False
        if pickled:
            if len(pickled) > FEW_BYTES:
                return write_whole(framer, [pickled])
            try:
                write(pickled)
            except NOT_WRITTEN as exc:
                if is_interrupt(exc):
                    raise
                return False
            return True
        if pickled is not None:
            self.remember(pickler, obj, type(obj))
        return False

    def remember(self, pickler: Any, obj: Any, t: type) -> None:
        """Remember that C gave up, before a pickler saves an object of some type."""
        is_librarys = self._is_for_c is not None or self._cls.dispatch.get(dict) is not _save_dict
        if is_librarys and not may_be_plain(obj, t):  # C is not asked again about the like of it
            last.remember_refused(obj, t)
        if self._is_for_c is None or may_be_plain(obj, t):  # nor about this one (`Pickler.save`)
            object.__setattr__(pickler, "_fastpickle_is_refused", True)  # by its `__dict__`, its attributes get slower

    def at_once(self, obj: Any, protocol: int, pickler: Any = None) -> bytes | None:
        """Return what C writes for a pickler, or for one that would be made.

        Args:
            obj: the object.
            protocol: from 0 to 5.
            pickler: as for `write`; None if one would be made, with whatever arguments: nothing of them matters to
                what C is asked to write.

        Returns:
            None if C may not be asked, or is not likely to write it; b"" if it gave up, and need not be asked again.
        """
        t = type(obj)
        if pickler is None:
            if last.few_refused and last.few_left > 0:
                of_attributes = self._planned[0]
                refused = last.few_refused.get(of_attributes[0]) if of_attributes else None  # by the class's `save`
                last.few_left -= 1  # as in `goes_by_hooks`
                if refused and are_few(refused, obj, t):  # as the last one
                    return None
            if self._is_for_c is not None:
                if not self._is_for_c(obj, t):
                    return None
            elif t is not dict and t is not list and is_for_stock(t):
                return None
            pickler = self._stand_ins[protocol]
        cls = self._cls
        attributes = attributes_of(cls)
        dispatch = cls.dispatch
        entries = entries_of(dispatch)
        of_attributes, of_entries, table, planned = self._planned
        if attributes != of_attributes or entries != of_entries or type(dispatch) is not table:
            if (
                makes_of(cls) != self._makes
                or not cls.fastpickle_grafts
                or hooks.plan(self._stand_ins[protocol]).graft_rule is None
            ):
                return None  # and nothing is kept of it
            plans = [hooks.plan(pickler) for pickler in self._stand_ins]
            planned = [(plan, plan.graft_rule, BATCHSIZE if plan.proto else 0, []) for plan in plans]
            self._planned = attributes, entries, type(dispatch), planned
        plan, rule, few, idle = planned[protocol]
        if hasattr(cls, "reducer_override") or hasattr(cls, "__getattr__") or not may_write():
            return None
        lengths = None
        if rule is not STOCK_RULE:
            if rule is None or (self._is_for_c is None and not is_for_librarys(obj, t)):
                return None
            if rule.lengths is not None:
                lengths = rule.lengths(pickler)
                if not lengths:
                    return None
        if (t is dict or t is list) and len(obj) > BATCHSIZE and has_refused(pickler, plan, obj, t):
            return b""
        if last.gave_up_for:
            if last.is_like(obj, t):
                return b""
            last.gave_up_for = 0  # until it does so again
        if last.kind is not None and (kind := last.kind_for(obj, t, protocol)) is not None:
            return graft.dumps(pickler, plan, obj, kind) or b""
        if self._written:
            if is_of_large_atoms(obj, t, protocol, self._written) and (
                lengths is None or t is not dict or rule.is_free(lengths, obj, EMPTY_DICT, protocol)
            ):
                try:
                    if rule is STOCK_RULE:
                        return c_dumps(obj, protocol)  # into a buffer of its own, so that nothing is joined
                    return joined(self._stand_ins[protocol], plan, obj)
                except Exception as exc:  # Python will find the same, or manage: another thread may have changed it
                    if is_interrupt(exc):
                        raise
                    return b""
            self._written = 0
        # What follows is graft.dumps() without the calls that take longer than a small dump.
        try:
            own = idle.pop()
        except IndexError:
            own = take_own(self._stand_ins[protocol], plan)  # it is kept, and so is its pickler
        grafter, dump, clear_memo, pieces = own
        is_kept = True
        pickled: bytes
        try:
            dump(obj)
            pickled = pieces.pop()
        except BeginAgain as again:
            pickled = graft.dumps(pickler, plan, obj, *again.args) or b""
            pieces.clear()
        except Exception as exc:
            if is_interrupt(exc):
                raise
            is_kept = grafter.__sizeof__() <= LARGE_TABLE  # with what it has not handed over
            pickled = b""
            pieces.clear()
        else:
            n = len(pickled)
            if pieces or n >= few or (lengths is not None and not rule.is_free(lengths, obj, pickled, protocol)):
                pieces.append(pickled)
                found: list[list[int]] = []
                ours = at_first_glance(pieces, grafter, obj, protocol, rule, lengths, found) if few else None
                if ours is None:
                    pickled = self._made_ours(pickler, plan, grafter, obj, found)
                    n = max(map(len, pieces), default=sys.maxsize)  # none if mending has failed
                else:
                    pickled = ours
                    if len(pieces) > 1:
                        self._written = len(ours)
                        n = max(map(len, pieces))
                pieces.clear()
                size = grafter.__sizeof__()
                if size > LARGE_TABLE:  # the next dump may have as much to memoize as this one
                    _keep_table(grafter, size, len(pickled))
            is_kept = n <= _LONGEST_PIECE
        if grafter.is_touched:
            _clean(grafter, len(pickled))
        clear_memo()
        if is_kept:
            idle.append(own)
        return pickled

    def _made_ours(self, pickler: Any, plan: hooks.Plan, grafter: Any, obj: Any, found: list[list[int]]) -> bytes:
        """Return what C has written, as Python would; b"" if that cannot be made of it."""
        pickled = b""
        pieces = grafter.pieces
        if made_ours(pickler, plan, grafter, obj, found=found):
            pickled = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            self._written = len(pickled) if len(pieces) > 1 else 0
        grafter.has_names = False
        return pickled


def _keep_table(grafter: Any, size: int, n: int) -> None:
    """Keep the table of a C pickler's memo, which is of `size` bytes, where it is of a dump of `n` bytes, and large."""
    grafter.times += 1
    grafter.is_large = (
        size < _LARGEST_TABLE
        and size <= _PER_BYTE * n  # else it is from one before
        and grafter.times % _TIMES > 0
    )
    if not grafter.is_large:
        grafter.memo = {}
    grafter.is_touched = True


def _clean(grafter: Any, n: int) -> None:
    """Make a C pickler that has written `n` bytes as good as new, but for a table that the next dump may need, too."""
    grafter.asked = 0
    grafter.has_other = False
    grafter.known.clear()
    if grafter.is_large and n < BATCHSIZE:
        grafter.is_large = False
        grafter.memo = {}
    grafter.is_touched = grafter.is_large
