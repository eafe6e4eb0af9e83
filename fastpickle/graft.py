"""Graft: plain subtrees by the C pickler.  It writes them, and its bytes are spliced in where Python's would stand.

    at_once(obj)  C: PROTO FRAME [ obj ] STOP                                       -> as it is, into the file
    root(obj)     C: PROTO FRAME [ obj ] STOP                                       -> frames, last one left open
    whole(obj)    C: PROTO FRAME [ obj ] STOP, where our frame is empty or has room -> the same, after our frame
                  C: ... FRAME [ a prefix as long as our frame | obj ], where there may not be
    items(some)   C: ... FRAME [ a prefix as long as our frame, with a MARK | some ]
    rest(batch)   the same for all items of a batch but the first one
    dumps(obj)    C: PROTO FRAME [ obj ] STOP                                       -> as it is, but returned

The C pickler writes the opcodes that the Python one writes, and cuts frames at the same places.  So its bytes are ours
if nobody listens (`hooks`), if it knows every object (`cpickler`), if there is nothing that it writes otherwise
(`differences`), if it begins with our memo (`lazymemo`), and if the frame that it begins in is as full as ours.  If
not, nothing has been written, and the object goes through the loop (`engine.loop`) as if nothing had been tried.

Not for: deciding whether a pickler may graft (`hooks.plan`) and what is worth an offer (`offers`), nor for long lists
and dicts (`chunks`), for numbers (`unmemoized`), and for how the bytes come into frames (`splicing`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO
from itertools import islice
from pickle import FRAME, MARK, NONE, PROTO
from types import CellType
from typing import Any, Final

from . import hooks
from ._stdlib import BATCHSIZE, CPickler
from .accelerator import offers
from .accelerator.cpickler import (
    LARGE_TABLE,
    ONE_BYTE,
    ROOM,
    SMALL_TABLE,
    BeginAgain,
    Splice,
    TooMuch,
    give_back,
    is_written,
    may_be_fetched,
    take,
    take_asking,
    take_table,
    written_by,
)
from .accelerator.differences import made_ours
from .accelerator.lazymemo import AT_ONCE, AT_ROOT, counting, join_memo, keep_memo, update_memo
from .accelerator.offers import (
    FEWEST,
    back_off,
    gains_nothing,
    has_refused,
    is_exact,
    is_for_batches,
    is_offered,
    is_tiny,
    may_be_librarys,
    may_be_plain,
    may_graft,
    may_offer,
    note_refused,
)
from .accelerator.splicing import padding, write, write_pieces, write_whole
from .accelerator.weights import weight
from .doubts import doubt
from .engine.parts import SHORTEST_RUN
from .hooks import PLAIN, Plan
from .interrupts import is_interrupt
from .objects.instances import has_only_a_dict
from .objects.known import METACLASS_IDS, find_hiding
from .objects.last import last
from .objects.likely import are_somebodys, is_somebodys

__all__ = [
    "ENTRIES_PER_INSTANCE",
    "at_once",
    "calibrate",
    "dumps",
    "is_of_new_class",
    "items",
    "part_by",
    "put_part",
    "rest",
    "root",
    "whole",
]

#: Up to this many bytes the memo is fetched at once, which is hardly dearer than to leave it where it is.
_FEW_BYTES: Final = 1024
#: So few bytes are not of many instances.
_BYTES_OF_MANY: Final = 256
#: So many instances are worth an offer once their class is saved: each gains 5 us, an entry of the memo costs 0.3 us.
_FEWEST_INSTANCES: Final = 8
ENTRIES_PER_INSTANCE: Final = 16
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


def root(pickler: Any, plan: Plan, obj: Any) -> bool | None:
    """Let C write all that is dumped.

    Args:
        pickler: one that has written nothing of this dump but PROTO.
        plan: the plan in force, which allows grafts.
        obj: what is dumped.

    Returns:
        Whether it is written; if not, nothing is, but a type's `__hash__` may have run, or a module been imported, so
        that the plan is to be looked at again.  None if it is not written, and nothing has run.
    """
    t = type(obj)
    if not is_offered(plan.graft_rule, obj, t):
        return None
    framer = pickler.framer
    frame = framer.current_frame
    memo = pickler.memo
    proto = plan.proto
    if (
        (frame is not None and frame.tell())
        or (memo and (id(obj) in memo or not is_exact(t) or len(obj) < FEWEST + len(memo)))
        or (frame is None) is (proto >= 4)
        or not may_graft(pickler, plan)
        or (proto and is_for_batches(obj, t))  # its items are for `chunks.batches`
    ):
        return None
    if has_refused(pickler, plan, obj, t):
        return False
    grafter = _write_root(pickler, plan, obj, last.kind_for(obj, t, plan.proto) or take)
    if grafter is None:
        return False
    pieces = grafter.pieces
    if frame is not None and len(pieces) == 1:
        frame.write(_content_of(pieces[0]))  # most dumps are small: this is what `write_pieces` does, 1 us sooner
    elif not write_pieces(framer, pieces, 2 if proto >= 2 else 0, 0, 1):
        return False
    _take_memo(pickler, memo, grafter, AT_ROOT)
    return True


def at_once(pickler: Any, obj: Any) -> bool | Plan:
    """Let C write a whole dump, so that there is no frame to be made; if it gives up, `root` is not to ask it again.

    Args:
        pickler: one that has written nothing of this dump.
        obj: what is dumped.

    Returns:
        Whether it is written; if not, nothing is.  `PLAIN` if it is not, and there is no other way for any part of it.
    """
    t = type(obj)
    try:
        save = type(pickler).save  # to look at the pickler makes its attributes slower
        if save not in hooks.known_saves or (save in hooks.choosy_saves and not may_be_librarys(save, obj, t)):
            return False
        if (
            not is_offered(hooks.STOCK_RULE, obj, t)
            or is_for_batches(obj, t)
            or is_tiny(obj, t)
            or are_somebodys(obj, t, is_sure=False)  # `Pickler.save` makes sure
        ):
            return False
    except Exception as exc:  # it is a descriptor that raises, or has no hash; the stack is full
        if type(exc) is not RecursionError and is_interrupt(exc):
            raise
        return False
    plan = hooks.plan(pickler)
    rule = plan.graft_rule
    if rule is None:
        return PLAIN if gains_nothing(pickler, plan, obj, t) else False
    if not (rule is hooks.STOCK_RULE or is_offered(rule, obj, t)):
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
        if save in hooks.choosy_saves and not may_be_plain(obj, t):
            note_refused(obj, t)  # so that it is not asked about this one either
        else:
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
    # Else what is like it was of something else; a table has one entry from the beginning.
    has_met = grafter is not None and (grafter.asked or len(grafter.table or ()) > 1)
    if is_ours and has_met and grafter.idle is None and grafter.held.written > _BYTES_OF_MANY:  # it is for many
        last.remember_kind(obj, take_asking if grafter.has_other else take_table)
    elif kind is not take:
        last.kind = None
    return grafter if is_ours else None


def _take_memo(pickler: Any, memo: dict[int, tuple[int, Any]], grafter: Any, where: str) -> None:
    """Fetch what C has memoized of a whole dump, or leave it there, where it is much."""
    is_little = grafter.held.written < _FEW_BYTES or grafter.__sizeof__() < SMALL_TABLE
    if is_little or not keep_memo(pickler, memo, grafter, where):
        update_memo(memo, grafter)
        give_back(grafter)


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
    if dump.root is obj or not may_offer(pickler, plan, n):  # as a root it was refused already
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
            back_off(dump)
        _take_memo_of_part(pickler, plan, grafter, obj)
        return True
    doubt(pickler, has_run=True)  # a type's __hash__ may have run, or a module been imported
    if len(obj) < SHORTEST_RUN:  # it was offered for what is in it (`has_much`), which is for another offer
        dump.has_refused_items = True
    elif len(obj) < 2 * BATCHSIZE:  # if it has more, `chunks.batches` is next
        back_off(dump)
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
    args = padding(framer, plan)
    if frame is not None:
        n = frame.tell()
        if not n:
            return written_by(pickler, plan, memo, dump.known, obj)  # C's frame begins empty, too
        if n == 1:
            args = ONE_BYTE
        room = framer._FRAME_SIZE_TARGET - n - _MOST_MENDED
        if size < room and not dump.needs_prefix:
            try:
                return written_by(pickler, plan, memo, dump.known, obj, room=room)
            except TooMuch:
                dump.needs_prefix = True  # so it may be with the next ones
    return None if args is None else written_by(pickler, plan, memo, dump.known, obj, args)


def put_part(pickler: Any, plan: Plan, grafter: Any) -> bool:
    """Write what a C pickler wrote for `part_by`; if that fails, nothing is written."""
    framer = pickler.framer
    pieces = grafter.pieces
    if grafter.is_spliced or framer.current_frame is None:
        return write(framer, plan, pieces, 2)
    if len(pieces) > 1:
        return write_pieces(framer, pieces, len(PROTO) + 1, 0, 1)
    framer.current_frame.write(_content_of(*pieces))
    return True


def _content_of(piece: bytes) -> memoryview:
    """Return what stands between the beginning of a whole dump of one piece and its STOP."""
    return memoryview(piece)[_BEGIN if piece[2] == FRAME[0] else 2 : -1]


def items(pickler: Any, plan: Plan, owner: Any, some: list[Any]) -> bool:
    """Let C write the last items of a short container that is open, but not its end.

    Args:
        pickler, plan: as said, at protocol 4 or higher.
        owner: the container.
        some: the items, or what is left of keys and values in turn; at least two, and the first one is a container.

    Returns:
        Whether they are written; if not, nothing is.
    """
    if not may_offer(pickler, plan, len(some) + weight(some[0], pickler.memo)):
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
        doubt(pickler, has_run=True)  # as in `whole`
        dump.has_refused_items = True  # it may be the same at each of them
    return False


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
    if opened is not None and keep_memo(pickler, memo, grafter, dump.way):
        dump.left_in = opened
    else:
        join_memo(pickler, plan, memo, grafter)


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

    Args:
        pickler, plan: as said.
        batch: the items; the first one is of none of `PLAIN_IDS`.
    """
    first = batch[0]
    t = type(first)
    n = len(batch)
    memo = pickler.memo
    return (
        plan.proto >= 4
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
    args = None
    grafter = None
    try:
        if find_hiding(pickler, plan, t) is not None:  # not before: it notes the slots in the class, as a reduce does
            args = padding(framer, plan, len(MARK))  # C begins with that
    except Exception as exc:  # as if C had asked (`is_written`)
        if is_interrupt(exc):
            raise
    if args is not None:
        grafter = _written_items(pickler, plan, args, batch, 1)
    if grafter is not None and made_ours(pickler, plan, grafter, batch, n) and write(framer, plan, grafter.pieces, 1):
        join_memo(pickler, plan, pickler.memo, grafter)
        dump.penalty = dump.offers_to_skip = 0
        return True
    doubt(pickler, has_run=True)  # as in `whole`
    return False


class _GivesUp:
    """What C gives up at: its reduce calls something."""

    def __reduce__(self) -> Any:
        return _GivesUp, tuple()  # noqa: C408  # that is what it calls


class _Closure:
    """What a library saves as a function is: what is much comes last, as the contents of a cell."""

    def __init__(self, contents: Any) -> None:
        self.contents = contents

    def __reduce__(self) -> Any:
        return setattr, (CellType(), "cell_contents", self.contents)


def _save_cell(pickler: Any, obj: Any) -> None:
    pickler.write(NONE)


def calibrate(cls: Any) -> None:
    """Dump with `cls` what leaves a memo with C in each of the ways, to count the references to it that are our own."""
    if CPickler is not None:
        sample = [[str(i) * 20] for i in range(5 * FEWEST)]  # with more than fits into `LARGE_TABLE`
        # dill has edited stock's table, if it was imported before.
        table = {**cls.dispatch, **hooks.STOCK_TABLE, CellType: _save_cell}
        cls = type(cls.__name__, (cls,), {"dispatch": table})
        with counting():
            cls(BytesIO(), 4).dump(sample)
            pickler = cls(BytesIO(), 4)
            pickler.framer.start_framing()
            pickler.save(sample)
            behind = [_GivesUp(), (_GivesUp(), sample), "a", 5, "b"]
            for obj in (_GivesUp(), sample), [_GivesUp(), sample], behind:
                for _ in range(2):  # the first time C is asked, and gives up; then it is not, and the loop begins
                    cls(BytesIO(), 4).dump(obj)
            pickler = cls(BytesIO(), 4)
            pickler.framer.start_framing()
            pickler._fastpickle_plan = hooks.ASIDE
            pickler.save(_Closure(sample))
            offers.longest = 0
            cls(BytesIO(), 4).dump([None] * (2 * FEWEST))
            offers.longest = offers.LONG
            last.forget()
