"""Graft: plain subtrees by the C pickler.  It writes them, and its bytes are spliced in where Python's would stand.

    at_once(obj)    C: PROTO FRAME [ obj ] STOP                                     -> as it is
    root(obj)       C: PROTO FRAME [ obj ] STOP                                     -> frames, last one left open
    batches(items)  C: ... FRAME [ a prefix as long as our frame | items in batches ] -> the same, after our frame
    whole(obj)      C: ... FRAME [ a prefix as long as our frame | obj ]
    items(some)     C: ... FRAME [ a prefix as long as our frame, with a MARK | some ]
    dumps(obj)      C: PROTO FRAME [ obj ] STOP                                     -> as it is

The C pickler writes the opcodes that the Python one writes, and cuts frames at the same places.  So its bytes are ours
if nobody listens (`hooks`), if it knows every object (`cpickler`), if there is nothing that it writes otherwise
(`differences`), if it begins with our memo (`lazymemo`), and if the frame that it begins in is as full as ours.  If
not, nothing has been written, and the object goes through the loop (`plain`) as if nothing had been tried.

Not for: deciding whether a pickler may graft (`hooks.plan`), nor for how the bytes come into frames (`splicing`).
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from io import BytesIO
from itertools import islice
from operator import attrgetter, length_hint
from pickle import FRAME, MARK
from types import BuiltinMethodType, FunctionType
from typing import Any, Final

from . import hooks
from ._stdlib import BATCHSIZE, CPickler, Framer, is_usual_file, memoized
from .cpickler import (
    LARGE_TABLE,
    ROOM,
    SMALL_TABLE,
    BeginAgain,
    Splice,
    TooMuch,
    dump,
    give_back,
    is_written,
    may_be_fetched,
    take,
    take_asking,
    take_table,
    use,
    written_by,
)
from .differences import made_ours
from .doubts import doubt
from .hooks import Plan
from .instances import are_somebodys, has_only_a_dict, is_somebodys
from .known import METACLASS_IDS, find_hiding, is_refused
from .last import last
from .lazymemo import AT_ONCE, AT_ROOT, IN_BATCHES, counting, keep_memo, update_memo
from .parts import SHORTEST_RUN
from .rules import GraftRule
from .splicing import padding, write, write_pieces, write_whole

__all__ = [
    "ENTRIES_PER_INSTANCE",
    "FEWEST",
    "at_once",
    "batches",
    "calibrate",
    "dumps",
    "has_much",
    "has_refused",
    "is_for_batches",
    "is_of_new_class",
    "is_tiny",
    "items",
    "may_be_plain",
    "may_graft",
    "may_write",
    "part_by",
    "put_part",
    "rest",
    "root",
    "weight",
    "whole",
]

#: From this many items on a container inside is offered to C, if they are more than the memo's entries, which have to
#: be copied there and back: an entry costs 0.3 us, an item gains 0.1 to 0.3 us, an offer costs 3 us.
FEWEST: Final = 48
#: Up to this many bytes the memo is fetched at once, which is hardly dearer than to leave it where it is.
_FEW_BYTES: Final = 1024
#: So few bytes are not of many instances.
_BYTES_OF_MANY: Final = 256
#: A flat container of so many items is written sooner hook by hook, if it is all that is dumped.
_TINY: Final = 3
#: So many instances are worth an offer once their class is saved: each gains 5 us, an entry of the memo costs 0.3 us.
_FEWEST_INSTANCES: Final = 8
ENTRIES_PER_INSTANCE: Final = 16
#: How many items of a list or dict C is given at first; then as many as give about so many bytes.
_FIRST_CHUNK: Final = 10_000
#: Longer ones are not tried whole: much of it might be given up.
_LONG: Final = 1_000_000
_long = _LONG  # but for `calibrate`
_CHUNK: Final = 16 << 20
#: Of so many items a few are looked at before C is asked about all of them.
_LOOKED_AT: Final = 5_000
#: What is fewer bytes for an entry of the memo Python has written, by columns, before C has and the entry is fetched.
_PER_ENTRY: Final = 128
#: So many bytes an item is taken to have, as few as it may, since it does no harm if there are more.
_BYTES_PER_ITEM: Final = 16
#: So many bytes may be more once the ends are mended, one for each container of more than a batch.
_MOST_MENDED: Final = 64
#: PROTO, FRAME and their arguments.
_BEGIN: Final = 11
#: What is fewer bytes for an entry of the memo Python would have written sooner than that is copied there and back.
_PER_ENTRY_COPIED: Final = 4
#: What is open, the outermost first, each with what comes behind the next one.
_Open = list[tuple[Any, list[Any]]]
#: So many levels are looked at, tuples of so many items, and so many items, for what is the last thing of all.
_MOST_OPENED: Final = 8
_FEW_IN_A_TUPLE: Final = 20
_MOST_BEHIND: Final = 8
#: So many characters a text that comes behind may have.
_SHORT_TEXT: Final = 1000
#: How many bytes C's table of the memo may have, if it is to be fetched: for 400,000 entries, that take 60 MB then.
_LARGE_MEMO: Final = 16 << 20
#: Up to which recursion limit C is not likely to run out of stack before it.
_DEEP: Final = 10_000


def root(pickler: Any, plan: Plan, obj: Any) -> bool | None:
    """Let C write all that is dumped.

    Args:
        pickler: one that has written nothing of this dump but PROTO.
        plan: the plan in force, which allows grafts.
        obj: what is dumped.

    Returns:
        Whether it is written; if not, nothing is, but a type's `__hash__` may have run, or a module been imported.
        None if C was not asked.
    """
    t = type(obj)
    if not _is_offered(plan.graft_rule, obj, t):
        return None
    framer = pickler.framer
    frame = framer.current_frame
    memo = pickler.memo
    proto = plan.proto
    if (
        (frame is not None and frame.tell())
        or (memo and (id(obj) in memo or not _is_exact(t) or len(obj) < FEWEST + len(memo)))
        or (frame is None) is (proto >= 4)
        or not may_graft(pickler, plan)
        or (proto and is_for_batches(obj, t))  # its items are for `batches`
    ):
        return None
    if has_refused(pickler, plan, obj, t):
        return False
    grafter = _write_root(pickler, plan, obj, last.kind_for(obj, t, plan.proto) or take)
    if grafter is None:
        return False
    pieces = grafter.pieces
    if frame is not None and len(pieces) == 1:
        piece = pieces[0]  # most dumps are small: this is what `write_pieces` does, 1 us sooner
        frame.write(memoryview(piece)[_BEGIN if piece[2] == FRAME[0] else 2 : -1])
    elif not write_pieces(framer, pieces, 2 if proto >= 2 else 0, 0, 1):
        return False
    _take_memo(pickler, memo, grafter, AT_ROOT)
    return True


def at_once(pickler: Any, obj: Any) -> bool:
    """Let C write a whole dump, so that there is no frame to be made; if not, `root` is not to ask it again.

    Args:
        pickler: one that has written nothing of this dump.
        obj: what is dumped.

    Returns:
        Whether it is written; if not, nothing is.
    """
    t = type(obj)
    try:
        save = type(pickler).save  # to look at the pickler makes its attributes slower
        if save not in hooks.known_saves or (save in hooks.choosy_saves and not may_be_plain(obj, t)):
            return False
    except Exception:  # it is a descriptor that raises, or has no hash
        return False
    if (
        not _is_offered(hooks.STOCK_RULE, obj, t)
        or is_for_batches(obj, t)
        or is_tiny(obj, t)
        or are_somebodys(obj, t)  # as `Pickler.save` asks
    ):
        return False
    plan = hooks.plan(pickler)
    rule = plan.graft_rule
    if rule is None or not (rule is hooks.STOCK_RULE or _is_offered(rule, obj, t)):
        return False
    framer = pickler.framer
    memo = pickler.memo
    if (
        memo
        or "_fastpickle_is_refused" in pickler.__dict__  # by `dumps`
        or framer.current_frame is not None
        or getattr(pickler, "_fastpickle_plan", pickler) is not None  # inside of a dump, or after uninstall()
        or not may_graft(pickler, plan)
        or not isinstance(framer.file_write.__self__, BytesIO)  # another one may fail between two frames
        or framer.file_write.__name__ != "write"
    ):
        return False
    grafter = None
    if not ((last.gave_up_for and last.is_like(obj, t)) or has_refused(pickler, plan, obj, t)):
        grafter = _write_root(pickler, plan, obj, last.kind_for(obj, t, plan.proto) or take)
    if grafter is None:
        pickler.__dict__["_fastpickle_is_refused"] = True
        return False
    last.gave_up_for = 0
    if not write_whole(framer, grafter.pieces):
        return False
    _take_memo(pickler, memo, grafter, AT_ONCE)
    return True


def _write_root(pickler: Any, plan: Plan, obj: Any, kind: Callable[..., Any], room: int = ROOM) -> Any:
    """Let C write all that is dumped, and return the C pickler; None if it gave up, or it cannot be made ours."""
    grafter = written_by(pickler, plan, pickler.memo, {}, obj, kind=kind, room=room)
    is_ours = grafter is not None and made_ours(pickler, plan, grafter, obj)
    if is_ours and grafter.idle is None and grafter.held.written > _BYTES_OF_MANY:  # it is for many
        last.remember_kind(obj, take_asking if grafter.has_other else take_table)
    elif kind is not take:
        last.kind = None
    return grafter if is_ours else None


def _take_memo(pickler: Any, memo: dict[int, tuple[int, Any]], grafter: Any, where: str) -> None:
    """Fetch what C has memoized of a whole dump, or leave it there, where it is much."""
    if grafter.held.written < _FEW_BYTES or grafter.__sizeof__() < SMALL_TABLE:
        update_memo(memo, grafter)
        give_back(grafter)
    else:
        keep_memo(pickler, memo, grafter, where)


def dumps(pickler: Any, plan: Plan, obj: Any, kind: Callable[..., Any]) -> bytes | None:
    """Return what a pickler would write of `obj`, which has many instances, if C can write all of it.

    Args:
        pickler: in whose place C writes; it has memoized nothing, and its file gets nothing.
        plan: its plan, which allows grafts now.
        obj: what is dumped.
        kind: what gives the C pickler that begins (`cpickler`).
    """
    grafter = _write_root(pickler, plan, obj, kind, room=sys.maxsize)
    if grafter is None:
        return None
    return grafter.pieces[0] if len(grafter.pieces) == 1 else b"".join(grafter.pieces)


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
    if not _may_offer(pickler, plan, worth * (len(obj) - start)):
        return 0
    dump = pickler._fastpickle_dump
    memo = pickler.memo
    chunks = _Chunks(pickler, plan, obj, start, dump)
    chunks.write_all()
    is_all = chunks.done == len(obj)
    if chunks.done > start:
        if is_all and dump.root is obj:
            keep_memo(pickler, memo, chunks.grafter, IN_BATCHES)
        else:
            update_memo(memo, chunks.grafter)
            give_back(chunks.grafter)
    if is_all:
        dump.penalty = 0
    else:
        if not chunks.is_slower:
            _back_off(dump)
        if chunks.grafter.table is not None:
            doubt(pickler)
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
        except Exception:  # a function comes first, or what was written is another thing by now
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


def whole(pickler: Any, plan: Plan, obj: Any, n: int) -> bool:
    """Let C write a container that is not in the memo, and is ended as Python would end it.

    Args:
        pickler, plan: as said.
        obj: the container.
        n: how many items there may be in it, and in what is in it.

    Returns:
        Whether it is written; if not, nothing is.
    """
    dump = pickler._fastpickle_dump
    if dump.root is obj or not _may_offer(pickler, plan, n):  # as a root it was refused already
        return False
    frame = pickler.framer.current_frame
    ours = 0 if frame is None else frame.tell()
    # The memo is bound to no local: who has hold of it is counted.
    grafter = part_by(pickler, plan, pickler.memo, obj, n * _BYTES_PER_ITEM)
    if grafter is not None and made_ours(pickler, plan, grafter, obj) and put_part(pickler, plan, grafter):
        written = grafter.held.written - (ours if grafter.is_spliced else 0)  # for which there is a prefix
        if written >= _PER_ENTRY_COPIED * len(pickler.memo):
            dump.penalty = 0
        else:  # it was less than it looked
            _back_off(dump)
        _take_memo_of_part(pickler, plan, grafter, obj)
        return True
    doubt(pickler)  # a type's __hash__ may have run, or a module been imported
    if len(obj) < SHORTEST_RUN:  # it was offered for what is in it (`has_much`), which is for another offer
        dump.has_refused_items = True
    elif len(obj) < 2 * BATCHSIZE:  # if it has more, `batches` is next
        _back_off(dump)
    return False


def part_by(pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], obj: Any, size: int) -> Any:
    """Let C write a part of what is dumped, behind a prefix only if there may not be room for it in our frame.

    Args:
        pickler, plan: as said.
        memo: what C begins with.
        obj: the part.
        size: how many bytes it may be of.

    Returns:
        The C pickler, for `put_part`; None if it gave up.
    """
    framer = pickler.framer
    dump = pickler._fastpickle_dump
    frame = framer.current_frame
    if frame is not None and not dump.needs_prefix:
        room = framer._FRAME_SIZE_TARGET - frame.tell() - _MOST_MENDED
        if size < room:
            try:
                return written_by(pickler, plan, memo, dump.known, obj, room=room)
            except TooMuch:
                dump.needs_prefix = True  # so it may be with the next ones
    args = padding(framer, plan)
    return None if args is None else written_by(pickler, plan, memo, dump.known, obj, args)


def put_part(pickler: Any, plan: Plan, grafter: Any) -> bool:
    """Write what a C pickler wrote for `part_by`; if that fails, nothing is written."""
    framer = pickler.framer
    pieces = grafter.pieces
    if grafter.is_spliced or framer.current_frame is None:
        return write(framer, plan, pieces, 2)
    (piece,) = pieces
    framer.current_frame.write(memoryview(piece)[_BEGIN if piece[2] == FRAME[0] else 2 : -1])
    return True


def items(pickler: Any, plan: Plan, owner: Any, some: list[Any]) -> bool:
    """Let C write the last items of a short container that is open, but not its end.

    Args:
        pickler, plan: as said, at protocol 4 or higher.
        owner: the container.
        some: the items, or what is left of keys and values in turn; at least two, and the first one is a container.

    Returns:
        Whether they are written; if not, nothing is.
    """
    if not _may_offer(pickler, plan, len(some) + weight(some[0], pickler.memo)):
        return False
    dump = pickler._fastpickle_dump
    framer = pickler.framer
    args = padding(framer, plan, len(MARK))  # C writes one that we need not
    if args is not None:
        grafter = _written_items(pickler, plan, args, some)
        if grafter is not None and made_ours(pickler, plan, grafter, some) and write(framer, plan, grafter.pieces, 2):
            _take_memo_of_part(pickler, plan, grafter, owner, is_open=True)
            dump.penalty = 0
            return True
        doubt(pickler)  # as in `whole`
        dump.has_refused_items = True  # it may be the same at each of them
    return False


def weight(obj: Any, memo: Any) -> int:
    """Return about how many items there are in a container, and in what is in it: by the first, the last, one between.

    Args:
        obj: the container.
        memo: what is in that is no more than an item.
    """
    t = type(obj)
    n = len(obj)
    if not n or t is set or t is frozenset:
        return n
    try:
        if t is dict:
            some = [next(iter(obj.values())), next(reversed(obj.values()))]
        else:
            some = [obj[0], obj[n // 2], obj[-1]] if n > 2 else obj
    except (LookupError, RuntimeError, StopIteration):  # another thread is changing it
        return n
    lengths = [len(x) for x in some if id(type(x)) in hooks.CONTAINER_IDS and id(x) not in memo]
    if len(lengths) == len(some) and (n <= 3 or some[0] is not some[1]):
        return n * (min(lengths) or 1)
    return n + sum(lengths)


def has_much(dump: Any, some: Any, start: int = 0) -> bool:
    """Tell whether a short container is plain at the top, and its first item is long: C may write it sooner as a whole.

    Not where C has refused one: the long one in it would be written twice for each.

    Args:
        dump: what is being dumped.
        some: the items, or keys and values in turn.
        start: 1 for keys and values, of which the first value counts.
    """
    first = some[start]
    return (
        id(type(first)) in hooks.CONTAINER_IDS
        and len(first) >= FEWEST
        and not dump.has_refused_items
        and not dump.offers_to_skip
        and id(first) not in dump.memo
        and hooks.PLAIN_IDS.issuperset(map(id, map(type, some)))
    )


def _written_items(pickler: Any, plan: Plan, args: tuple[Any, ...], some: list[Any], start: int = 0) -> Any:
    """Let a C pickler write some items, from `start` on, behind a prefix, and return it; None if it gave up."""
    kind: Any = take
    while True:
        grafter = kind(pickler, plan, pickler.memo, pickler._fastpickle_dump.known)
        try:
            return grafter if is_written(grafter, Splice(grafter, args, items=islice(some, start, None))) else None
        except BeginAgain as again:
            (kind,) = again.args


def _take_memo_of_part(pickler: Any, plan: Plan, grafter: Any, obj: Any, is_open: bool = False) -> None:
    """Fetch what C has memoized of a part of what is dumped, or leave it there if nothing comes behind that part.

    Args:
        pickler, plan, grafter: as said.
        obj: what C has written.
        is_open: whether it is still open, its last items having been written.
    """
    dump = pickler._fastpickle_dump
    memo = pickler.memo
    opened = None
    if plan.proto >= 4 and grafter.__sizeof__() > LARGE_TABLE and dump.way is not None:
        opened = _opened_before(dump.root, obj, grafter, is_open)
    if opened is None:
        update_memo(memo, grafter)
        give_back(grafter)
    elif keep_memo(pickler, memo, grafter, dump.way):
        dump.left_in = opened


def _opened_before(root: Any, obj: Any, grafter: Any, is_open: bool) -> _Open | None:
    """Return what an object is the last thing in, from the root on, but for what may come without a look at the memo.

    None if there is more behind it, or something of that may be in the C pickler's memo.

    Args:
        root: what is dumped.
        obj: what C has written.
        grafter: the C pickler.
        is_open: whether the object belongs to them.
    """
    opened: _Open = []
    sought: list[Any] = []  # what is not to be in the C pickler's memo: a text or empty container, and tuples
    is_alone = True
    x = root
    while x is not obj or is_open:
        t = type(x)
        if len(opened) > _MOST_OPENED:
            return None
        if t is tuple:
            if len(x) > _FEW_IN_A_TUPLE:
                return None
            sought.append(x)
        end: list[Any] = []
        opened.append((x, end))
        if x is obj:
            break
        if t is list or t is tuple:
            some = [*x[-_MOST_BEHIND:]]
        elif t is dict:
            some = [part for item in islice(reversed(x.items()), _MOST_BEHIND) for part in reversed(item)][::-1]
        elif has_only_a_dict(t):
            some = [x.__dict__]
        else:
            return None
        while some:
            x = some.pop()
            t = type(x)
            if id(t) not in hooks.NUMBER_IDS:
                if not is_alone or not ((t is str and len(x) <= _SHORT_TEXT) or ((t is dict or t is list) and not x)):
                    break
                sought.append(x)
                is_alone = False  # another one may be the same
            end.insert(0, x)
        else:
            return None
    # Not before: all that is in those tuples is written now, so that C fetches it.
    return None if any(may_be_fetched(grafter, x) for x in sought) else opened


def is_of_new_class(pickler: Any, plan: Plan, batch: list[Any]) -> bool:
    """Tell whether a batch looks as if C could write it but for the class of its instances, which Python has to save.

    So it is with a class that a library saves by value; once it is in the memo, C fetches it.
    """
    first = batch[0]
    t = type(first)
    n = len(batch)
    memo = pickler.memo
    return (
        plan.proto >= 4
        and id(t) not in hooks.PLAIN_IDS
        and n >= _FEWEST_INSTANCES
        and ENTRIES_PER_INSTANCE * n >= len(memo)
        and id(type(t)) in METACLASS_IDS
        and type(batch[-1]) is t is type(batch[n // 2])
        and not is_somebodys(t)
        and id(t) not in memo
        and id(first) not in memo
        and may_graft(pickler, plan)
    )


def rest(pickler: Any, plan: Plan, batch: list[Any], t: type) -> bool:
    """Let C write all items of a batch but the first one.

    Args:
        pickler: one that has written MARK, and the first item.
        plan: the plan in force.
        batch: the items of an exact list, no more than a batch.
        t: the class of the first item, which is in the memo.

    Returns:
        Whether they are written, and the opcode that appends them; if not, nothing is.
    """
    framer = pickler.framer
    dump = pickler._fastpickle_dump
    n = len(batch) - 1
    args = padding(framer, plan, len(MARK))  # C begins with that
    grafter = None
    try:
        if find_hiding(pickler, plan, t) is None:  # not before: it notes the slots in the class, as a reduce does
            args = None
    except Exception:  # as if C had asked (`is_written`)
        args = None
    if args is not None:
        grafter = _written_items(pickler, plan, args, batch, 1)
    if grafter is not None and made_ours(pickler, plan, grafter, batch, n) and write(framer, plan, grafter.pieces, 1):
        update_memo(pickler.memo, grafter)
        give_back(grafter)
        dump.penalty = dump.offers_to_skip = 0
        return True
    doubt(pickler)  # as in `whole`
    return False


def _may_offer(pickler: Any, plan: Plan, n: int) -> bool:
    """Tell whether a container with `n` items in it is worth an offer now."""
    if n < FEWEST + len(pickler.memo):
        return False
    dump = pickler._fastpickle_dump
    if dump.offers_to_skip:
        dump.offers_to_skip -= 1
        return False
    return (pickler.framer.current_frame is None) is (plan.proto < 4) and may_graft(pickler, plan)


def may_graft(pickler: Any, plan: Plan) -> bool:
    """Tell whether C may write for this pickler now, if there is a frame where it needs one."""
    framer = pickler.framer
    return (
        getattr(pickler, "fastpickle_grafts", False)  # not there any more after uninstall()
        and _is_usual_framer(pickler, framer)
        and (plan.graft_rule.lengths is None or bool(plan.graft_rule.lengths(pickler)))
    )


def _is_usual_framer(pickler: Any, framer: Any) -> bool:
    """Tell whether what C hands over may be written to the file by `framer`, and nobody notices."""
    write_large_bytes = pickler.__dict__.get("_write_large_bytes")
    return (
        may_write()
        and type(framer.file_write) is BuiltinMethodType
        and is_usual_file(framer.file_write.__self__)
        and getattr(write_large_bytes, "__func__", None) is _write_large_bytes
        and write_large_bytes.__self__ is framer
    )


_write_large_bytes: Final = Framer.write_large_bytes
_attributes_of_framer = attrgetter(
    "start_framing", "end_framing", "commit_frame", "write", "write_large_bytes", "_FRAME_SIZE_TARGET",
    "_FRAME_SIZE_MIN",
)  # fmt: skip
_FRAMER: Final = _attributes_of_framer(Framer)


def may_write() -> bool:
    """Tell whether frames are stock's, and whether the C stack has room for as deep a recursion as C tries."""
    return (
        _attributes_of_framer(Framer) == _FRAMER
        and threading.stack_size() == 0
        and sys.getrecursionlimit() <= _DEEP  # up to 3.11 it limits C too
    )


def has_refused(pickler: Any, plan: Plan, obj: Any, t: type) -> bool:
    """Tell whether one of a few items of a long list or dict is what C gives up at.

    C finds it in a fifth of the time in which Python writes all that is before it.
    """
    n = len(obj) if t is list or t is dict else 0
    if n < _LOOKED_AT:
        return False
    try:
        some = obj[:: -(n // 3)] if t is list else (next(reversed(obj.values()), None),)
    except RuntimeError:  # another thread has changed it
        return False
    return any(id(kind) not in hooks.PLAIN_IDS and is_refused(pickler, plan, kind) for kind in map(type, some))


def _back_off(dump: Any) -> None:
    """Skip offers after one that failed: one, three, seven ... after each further one, until one succeeds."""
    dump.penalty = min(2 * dump.penalty + 1, 127)
    dump.offers_to_skip = dump.penalty


def _is_exact(t: type) -> bool:
    return id(t) in hooks.CONTAINER_IDS


def _is_offered(rule: GraftRule, obj: Any, t: type) -> bool:
    """Tell whether C is asked about what is dumped; a library may have to read files to know a function or a class."""
    if rule is hooks.STOCK_RULE:
        return _is_exact(t) or (t is not FunctionType and t is not type and not is_somebodys(t))
    return may_be_plain(obj, t)


def is_tiny(obj: Any, t: type) -> bool:
    """Tell whether an object is an exact container of so few atoms that neither C nor a plan would gain anything."""
    return (
        (_is_exact(t) or t is bytearray)
        and len(obj) <= _TINY
        and hooks.ATOM_IDS.issuperset(map(id, map(type, obj.values() if t is dict else obj)))
    )


def may_be_plain(obj: Any, t: type) -> bool:
    """Tell whether an object is an exact container, and is long, or has nothing but plain data in it at the top."""
    if id(t) not in hooks.CONTAINER_IDS:
        return id(t) in _CONTAINERS_OF_STDLIB and len(obj) >= FEWEST
    return len(obj) >= FEWEST or hooks.PLAIN_IDS.issuperset(map(id, map(type, obj.values() if t is dict else obj)))


#: Containers of the standard library that are reduced, by id, since the hash of a type may be anybody's.
_CONTAINERS_OF_STDLIB: Final = frozenset(map(id, (Counter, OrderedDict, defaultdict, deque)))


def is_for_batches(obj: Any, t: type) -> bool:
    """Tell whether a list or dict is too long to be tried whole."""
    return (t is list or t is dict) and len(obj) > _long


class _Refused:
    """What C gives up at."""

    def __reduce__(self) -> Any:
        return _Refused, ()


def calibrate(cls: Any) -> None:
    """Dump with `cls` what leaves a memo with C in each of the ways, to count the references to it that are our own."""
    global _long
    if CPickler is not None:
        sample = [[str(i) * 20] for i in range(5 * FEWEST)]  # with more than fits into `LARGE_TABLE`
        with counting():
            cls(BytesIO(), 4).dump(sample)
            pickler = cls(BytesIO(), 4)
            pickler.framer.start_framing()
            pickler.save(sample)
            for obj in (_Refused(), sample), [_Refused(), sample]:
                for _ in range(2):  # the first time C is asked
                    cls(BytesIO(), 4).dump(obj)
            _long = 0
            cls(BytesIO(), 4).dump([None] * (2 * FEWEST))
            _long = _LONG
            last.forget()
