"""The loop: atoms, and the short lists, dicts and tuples that they are in, by one function without a call for each.

    save_all(objs): for each object, in order
        in the memo?     GET
        atom             its opcode
        short container  its opening; its items are next, and what comes after it is kept on a stack (no recursion)
        else             plan's saver for it: C or runs of items (`plain`), a reduce (`reduce`)

For each object stock's save() commits the frame if it is full, and looks it up in the memo.  As long as it is sure that
all that is to come goes into the frame, and that the memo holds no number, neither is asked; else the loop is *wary*.

Everything that stock keeps in `memo`, `framer` and `write` is kept there at every moment at which other code can look.
The source of what is written is Lib/pickle.py of the running Python; PEP 3154 has the frames.

Not for: objects that go through a reduce (`reduce`), and not for a pickler whose hooks want to see each object.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import is_not, length_hint
from types import BuiltinMethodType
from typing import Any, Final

from .. import graft
from .._stdlib import BATCHSIZE, stock_methods
from ..accelerator.lazymemo import fetch_memo, keep_behind
from ..accelerator.offers import FEWEST
from ..accelerator.weights import has_much
from ..doubts import doubt, holds, outside, settled
from ..hooks import ATOM_IDS, CONTAINER_IDS, PLAIN_IDS, Plan, Reduced, Write
from ..objects.likely import is_somebodys
from ..opcodes import (
    BINGET,
    BININT1,
    MARKED_DICT,
    MARKED_LIST,
    MEMOIZED_DICT,
    MEMOIZED_LIST,
    MEMOIZED_TUPLE,
    MEMOIZED_TUPLES,
    SHORT_BINBYTES,
    SHORT_BINUNICODE,
    pack_binbytes,
    pack_binfloat,
    pack_binint,
    pack_binint2,
    pack_binunicode,
    pack_long,
    pack_long_binget,
)
from .encoders import NotBrief, encode_all
from .levels import Level, end_known_tuple, note_levels, put, save_levels
from .parts import SHORTEST_OF_ATOMS, SHORTEST_RUN
from .rows import save_row

# fmt: off
from pickle import (  # isort: skip
    APPEND, APPENDS, BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE, EMPTY_DICT, EMPTY_LIST, EMPTY_TUPLE,
    FALSE, LONG_BINGET, MARK, MEMOIZE, NEWFALSE, NEWTRUE, NONE, POP, SETITEM, SETITEMS,
    TRUE,
)
# fmt: on

__all__ = ["commit_frame", "is_row", "save_all"]

_stock_save_str = stock_methods["save_str"]
_stock_save_bytes = stock_methods["save_bytes"]

#: No object takes more bytes than this, with its memo's opcode and its end, but for a text or a long int.
_MOST_BYTES: Final = 16
#: With less room in the frame the loop stays wary up to its end.
_LITTLE_ROOM: Final = 1024
#: So many levels may be open before those are counted that may go on for ever: stock takes two Python frames for each.
_DEEP: Final = 500
#: So many items at least may be a row of somebody's objects.
_SHORTEST_ROW: Final = 8
#: With fewer levels open, a short container is offered to C for what is in its items.
_DEPTH: Final = 3
_BUILTIN: Final = frozenset((list, dict, tuple, type(None)))


def save_all(
    pickler: Any, plan: Plan, objs: Iterator[Any], n: int, old_write: Write, begun: Iterable[Level] = ()
) -> Write:
    """Save each of `objs`, as `for x in objs: pickler.save(x)` would.

    Args:
        pickler: one whose plan in force was `plan`.
        plan: its shortcuts; where it is no longer in force, and from there on, objects go through `save()`.
        objs: an iterator; if an object cannot be saved, it has been advanced just past that object.
        n: how many they are, at the most.
        old_write: what wrote before, as stock binds it.
        begun: what is open already, in which there is something to be saved before them; the innermost comes last.

    Returns:
        The function that writes what comes next.
    """
    # The innermost level, and below it those that it is in.
    owner: Any = None
    ending: bytes | Reduced | None = None
    items = objs
    opened: list[Level] = []
    for level in begun:
        opened.append((owner, ending, items))
        owner, ending, items = level
    try:
        if pickler._fastpickle_plan is not plan and settled(pickler) is not plan:
            opened.append((owner, ending, items))
            owner = None
            return save_levels(pickler, plan, opened, old_write, None)
        framer = pickler.framer
        memo = pickler.memo
        dump = pickler._fastpickle_dump
        proto = plan.proto
        target = framer._FRAME_SIZE_TARGET
        frame = framer.current_frame
        tell: Callable[[], int]
        if frame is None:
            write: Write = framer.file_write
            tell = int  # int() is 0: never full
        else:
            write = frame.write
            tell = frame.tell
        is_sure = dump.is_usual
        may_graft = plan.graft_rule is not None
        spare = target - tell() - (n + 4) * _MOST_BYTES  # what the frame has room for, beside what is to come
        is_wary = not is_sure or spare < 0
        look_at = target  # with how much room there may be enough of it again
        size = 0  # of the frame, when it was last asked about
        deep = _DEEP
        is_stale = False  # other code may have run, and other frames begun
        while True:
            if is_stale:
                if dump.left_in is not None:
                    if _is_finished(pickler, plan, dump, [*opened, (owner, ending, items)]):
                        return write
                    fetch_memo(pickler)
                    dump.left_in = None
                if pickler._fastpickle_plan is not plan and settled(pickler) is not plan:
                    opened.append((owner, ending, items))
                    owner = None
                    return save_levels(pickler, plan, opened, dump.write, memo)
                new_frame = framer.current_frame  # framer and memo stay the same as long as the plan
                if new_frame is not frame:
                    frame = new_frame
                    if frame is None:
                        write = framer.file_write
                        tell = int
                    else:
                        write = frame.write
                        tell = frame.tell
                    spare = -1
                    look_at = target
                elif frame is None:
                    write = framer.file_write  # which may be another one, too
                elif spare >= 0:
                    spare -= tell() - size
                is_sure = is_sure and dump.is_usual
                is_wary = spare < 0 or not is_sure
                is_stale = False
            for x in items:
                if is_wary:
                    if spare < 0:
                        room = target - tell()
                        if room <= 0 and (plan.rewrites is None or not plan.rewrites(type(x))):
                            if len(opened) > deep:
                                deep = _deeper(opened)
                            if commit_frame(pickler, framer) is not plan:
                                plan.save(pickler, x)
                                opened.append((owner, ending, items))
                                owner = None
                                return save_levels(pickler, plan, opened, dump.write, memo)
                            frame = framer.current_frame
                            write = frame.write
                            tell = frame.tell
                            room = look_at = target - tell()
                            is_sure = is_sure and dump.is_usual
                        if room <= look_at and len(opened) * _MOST_BYTES + _LITTLE_ROOM < room:
                            spare = room - _MOST_BYTES * (
                                sum([length_hint(level[2], n) + 1 for level in opened]) + length_hint(items, n) + 1
                            )
                            if spare > _LITTLE_ROOM and spare > room >> 2:
                                is_wary = not is_sure
                                look_at = target
                            else:
                                spare = -1
                                look_at = room >> 1  # to look at all levels each time would take long
                    key = id(x)
                    if key in memo and (plan.rewrites is None or id(type(x)) in ATOM_IDS or not plan.rewrites(type(x))):
                        i = memo[key][0]
                        write(pack_long_binget(LONG_BINGET, i) if i > 255 else BINGET[i] if i >= 0 else pickler.get(i))
                        continue
                t = type(x)
                if t is str:
                    key = id(x)
                    if key in memo:
                        i = memo[key][0]
                        write(BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i))
                        continue
                    if len(x) < target:
                        try:
                            encoded = x.encode()  # naming the encoding takes 5 % more instructions for many strings
                        except UnicodeEncodeError:
                            encoded = x.encode("utf-8", "surrogatepass")
                        k = len(encoded)
                        if k < target:
                            i = len(memo)
                            if proto >= 4:
                                write(SHORT_BINUNICODE[k] if k <= 255 else pack_binunicode(BINUNICODE, k))
                                write(encoded)  # to put one piece together takes longer, if it is large 3 times
                                write(MEMOIZE)
                            else:
                                write(pack_binunicode(BINUNICODE, k) + encoded + put(proto, i))
                            memo[key] = i, x
                            spare -= k
                            if spare < 0:
                                is_wary = True
                            continue
                elif t is int:
                    if 0 <= x <= 255:
                        write(BININT1[x])
                    elif 0 <= x <= 0xFFFF:
                        write(pack_binint2(BININT2, x))
                    elif -0x80000000 <= x <= 0x7FFFFFFF:
                        write(pack_binint(BININT, x))
                    else:
                        encoded = _long(proto, x)
                        write(encoded)
                        spare -= len(encoded)
                        if spare < 0:
                            is_wary = True
                    continue
                elif x is None:
                    write(NONE)
                    continue
                elif t is float:
                    write(pack_binfloat(BINFLOAT, x))
                    continue
                elif t is bool:
                    if proto >= 2:
                        write(NEWTRUE if x else NEWFALSE)
                    else:
                        write(TRUE if x else FALSE)
                    continue
                elif t is bytes and proto >= 3:
                    key = id(x)
                    if key in memo:
                        i = memo[key][0]
                        write(BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i))
                        continue
                    k = len(x)
                    if k < target:
                        i = len(memo)
                        write(SHORT_BINBYTES[k] if k <= 255 else pack_binbytes(BINBYTES, k))
                        write(x)
                        write(MEMOIZE if proto >= 4 else put(proto, i))
                        memo[key] = i, x
                        spare -= k
                        if spare < 0:
                            is_wary = True
                        continue
                elif t is list:
                    key = id(x)
                    if key in memo:
                        i = memo[key][0]
                        write(BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i))
                        continue
                    if plan.short_lists and (len(x) < SHORTEST_OF_ATOMS or is_row(x)):
                        batch = x[:]  # a snapshot, as stock takes one of each batch
                        k = len(batch)
                        if not k or (
                            (
                                not may_graft  # the cheapest first
                                or len(opened) >= _DEPTH
                                or id(type(batch[0])) not in CONTAINER_IDS
                                or not has_much(dump, batch)
                            )
                            if k < SHORTEST_RUN
                            else (id(type(batch[0])) in ATOM_IDS or is_row(batch))
                        ):
                            i = len(memo)
                            memo[key] = i, x
                            if k > 1:
                                write(MARKED_LIST if proto >= 4 else EMPTY_LIST + put(proto, i) + MARK)
                                opened.append((owner, ending, items))
                                items = iter(batch)  # first: a signal's handler may run behind a call
                                ending = APPENDS
                            else:
                                write(MEMOIZED_LIST if proto >= 4 else EMPTY_LIST + put(proto, i))
                                if not k:
                                    continue
                                opened.append((owner, ending, items))
                                items = iter(batch)
                                ending = APPEND
                            owner = x
                            spare -= k * _MOST_BYTES
                            if spare < 0:
                                is_wary = True
                            break
                elif t is dict:
                    key = id(x)
                    if key in memo:
                        i = memo[key][0]
                        write(BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i))
                        continue
                    if len(x) < SHORTEST_OF_ATOMS and (
                        plan.short_dicts or (plan.is_plain_dict is not None and plan.is_plain_dict(pickler, x))
                    ):
                        batch = [*chain.from_iterable(x.items())]
                        k = len(batch)
                        if not k or (
                            (
                                not may_graft
                                or len(opened) >= _DEPTH
                                or id(type(batch[1])) not in CONTAINER_IDS
                                or not has_much(dump, batch, 1)
                            )
                            if k < 2 * SHORTEST_RUN
                            else id(type(batch[1])) in ATOM_IDS
                        ):
                            i = len(memo)
                            memo[key] = i, x
                            if k > 2:
                                write(MARKED_DICT if proto >= 4 else EMPTY_DICT + put(proto, i) + MARK)
                                opened.append((owner, ending, items))
                                items = iter(batch)  # first: a signal's handler may run behind a call
                                ending = SETITEMS
                            else:
                                write(MEMOIZED_DICT if proto >= 4 else EMPTY_DICT + put(proto, i))
                                if not k:
                                    continue
                                opened.append((owner, ending, items))
                                items = iter(batch)
                                ending = SETITEM
                            owner = x
                            spare -= k * _MOST_BYTES
                            if spare < 0:
                                is_wary = True
                            break
                elif t is tuple:
                    k = len(x)
                    if not k and plan.short_tuples:
                        write(EMPTY_TUPLE)
                        continue
                    key = id(x)
                    if key in memo:
                        i = memo[key][0]
                        write(BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i))
                        continue
                    if (
                        k < SHORTEST_OF_ATOMS
                        and plan.short_tuples
                        and (
                            (
                                not may_graft
                                or len(opened) >= _DEPTH
                                or id(type(x[0])) not in CONTAINER_IDS
                                or not has_much(dump, x)
                            )
                            if k < SHORTEST_RUN
                            else id(type(x[0])) in ATOM_IDS
                        )
                    ):
                        if k > 3 or proto < 2:
                            write(MARK)
                        opened.append((owner, ending, items))
                        items = iter(x)
                        ending = None
                        owner = x
                        spare -= k * _MOST_BYTES
                        if spare < 0:
                            is_wary = True
                        break
                elif id(x) in memo and (plan.rewrites is None or not plan.rewrites(t)):
                    i = memo[id(x)][0]
                    write(BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i))
                    continue

                # By a function, or in another way than its type alone would have it.
                if len(opened) > deep:
                    deep = _deeper(opened)
                size = tell()
                if (
                    may_graft
                    and (t is list or t is dict)
                    and not dump.has_refused_items
                    and owner is not None
                    and len(opened) <= _DEPTH
                    and len(x) >= FEWEST
                    and length_hint(items)
                    and _are_saved_by_c(pickler, plan, owner, x, items)
                ):
                    is_stale = True
                    break
                if t is str:
                    outside(pickler, _stock_save_str, x)
                elif t is bytes and proto >= 3:
                    outside(pickler, _stock_save_bytes, x)
                else:
                    # Another metaclass may have a hash of its own.
                    reduced = ((type(t) is type and plan.get(t)) or plan.other)(pickler, plan, x, write)
                    obj = x
                    if (
                        reduced is None
                        and (owner is None or (id(type(owner)) in CONTAINER_IDS and len(owner) >= _SHORTEST_ROW))
                        and id(t) in dump.brief
                        and type(items) in _TELLS_LENGTH
                    ):
                        asked = save_row(pickler, plan, items)  # the next ones
                        if asked is not None:
                            obj, *given = asked
                            reduced = plan.other(pickler, settled(pickler), obj, None, given)
                    if reduced is not None:
                        opened.append((owner, ending, items))
                        items = iter(reduced[0])
                        owner = obj
                        ending = reduced
                        spare -= 4 * _MOST_BYTES
                is_stale = True
                break
            else:  # all are saved
                if not opened:
                    break
                if isinstance(ending, bytes):
                    write(ending)
                elif ending is None:
                    key = id(owner)
                    if proto >= 4 and key not in memo:  # as end_known_tuple() would, without a call
                        k = len(owner)
                        write(MEMOIZED_TUPLES[k] if k <= 3 else MEMOIZED_TUPLE)
                        memo[key] = len(memo), owner
                    else:
                        end_known_tuple(pickler, plan, owner, memo, write)
                else:  # the parts of a reduce
                    _, opcode, _, _, finish, parts, parts_ending = ending
                    key = id(owner)
                    if key in memo:  # it contains itself, and was saved while its parts were: that is fetched
                        write(opcode + POP + pickler.get(memo[key][0]))
                    else:
                        i = len(memo)
                        write(opcode + (MEMOIZE if proto >= 4 else put(proto, i)))
                        memo[key] = i, owner
                    if finish is not None:
                        size = tell()
                        few: Any = finish()
                        is_stale = True
                        if few is None:
                            pass
                        elif type(few[1]) is tuple:
                            few[0](*few[1])
                        else:
                            opened.append((owner, parts_ending, iter(parts)))
                            batch = few[0]
                            items = iter(batch)
                            ending = few[1]
                            spare -= len(batch) * _MOST_BYTES + 4 * _MOST_BYTES
                            continue
                    if parts:
                        items = iter(parts)
                        ending = parts_ending
                        spare -= 4 * _MOST_BYTES
                        if spare < 0:
                            is_wary = True
                        continue
                owner, ending, items = opened.pop()
    except BaseException as exc:
        note_levels(exc, ((owner, ending, items), *reversed(opened)))
        raise
    return write


def is_row(x: list[Any]) -> bool:
    """Tell whether a list of less than a batch begins with an object of somebody's, so that there are no runs in it."""
    try:
        return len(x) < BATCHSIZE and is_somebodys(type(x[0]))
    except IndexError:  # another thread has emptied it
        return False


def _deeper(opened: list[Level]) -> int:
    """Return how many levels may be open before this is asked again.

    Raises:
        RecursionError: too many may go on for ever: those of reduces, of containers too, and containers within
            themselves, which are there if somebody's code clears the memo, and of which stock cannot have so many open.
            Others come to an end.
    """
    containers = [id(owner) for owner, ending, _ in opened if type(owner) in _BUILTIN and type(ending) is not tuple]
    endless = len(opened) - len(containers) + 2 * (len(containers) - len({*containers}))
    left = sys.getrecursionlimit() - endless
    if left < 0:
        raise RecursionError("maximum recursion depth exceeded")
    return len(opened) + max(left // 2, len(opened) >> 2)


def _are_saved_by_c(pickler: Any, plan: Plan, owner: Any, x: Any, items: Iterator[Any]) -> bool:
    """Tell whether an item and all behind it are saved: by C; or the item alone hook by hook, if the plan is no more.

    Args:
        pickler, plan: as said.
        owner: what they are in.
        x: a long list or dict that has just been taken from `items`.
        items: what comes next, at least one; it has no more then.
    """
    if plan.proto < 4 or type(items) not in _TELLS_LENGTH:
        return False
    some = [x, *_left(items)]
    if not PLAIN_IDS.issuperset(map(id, map(type, some))):
        return False
    if graft.items(pickler, plan, owner, some):
        for _ in items:
            pass
        return True
    if not holds(pickler, plan):
        plan.save(pickler, x)
        return True
    return False


def _is_finished(pickler: Any, plan: Plan, dump: Any, levels: list[Level]) -> bool:
    """Write all that comes yet, if that is what C has been left the memo for; tell whether it is written.

    It is done at once, so that nobody looks at a memo that is numbered without what C has.

    Args:
        pickler, plan, dump: as said.
        levels: what is open, the innermost last.
    """
    framer = pickler.framer
    frame = framer.current_frame
    if (
        pickler._fastpickle_plan is not plan
        or frame is None
        or levels[0][0] is not None
        or length_hint(levels[0][2])
        or len(levels) != len(dump.left_in) + 1
    ):
        return False
    pieces: list[bytes] = []
    behind: dict[int, tuple[int, Any]] = {}
    for (owner, ending, items), (x, end) in zip(reversed(levels[1:]), reversed(dump.left_in), strict=True):
        if owner is not x or type(items) not in _TELLS_LENGTH or not (ending is None or isinstance(ending, bytes)):
            return False
        some = _left(items)
        if len(some) != len(end) or any(map(is_not, some, end)):
            return False
        for y in some:
            if id(y) in dump.memo:  # a number that somebody has put there
                return False
            if type(y) is list or type(y) is dict:
                pieces.append(MEMOIZED_LIST if type(y) is list else MEMOIZED_DICT)
                behind[id(y)] = 0, y
            else:
                try:
                    encode_all(plan, (y,), behind, 0, pieces)
                except (NotBrief, UnicodeEncodeError):
                    return False
        if ending is not None:
            pieces.append(ending)
        else:
            pieces.append(MEMOIZED_TUPLES[len(owner)] if len(owner) <= 3 else MEMOIZED_TUPLE)
            behind[id(owner)] = 0, owner
    data = b"".join(pieces)
    if frame.tell() + len(data) >= framer._FRAME_SIZE_TARGET:
        return False
    if not keep_behind(pickler, [x for _, x in behind.values()]):
        return False
    frame.write(data)
    return True


def _left(items: Any) -> list[Any]:
    """Return what an iterator over a list or tuple has left."""
    state = items.__reduce__()
    return [*state[1][0][state[2] :]] if len(state) == 3 else []  # at its end there is no index


#: Iterators that know how many items they have left.

_TELLS_LENGTH: Final[frozenset[type]] = frozenset((type(iter([])), type(iter(()))))


def commit_frame(pickler: Any, framer: Any) -> Plan:
    """Write the full frame to the file, whose write() may be anybody's code; return the plan in force after it."""
    is_anybodys = type(framer.file_write) is not BuiltinMethodType
    if is_anybodys:
        doubt(pickler)
    framer.commit_frame()
    if is_anybodys:
        doubt(pickler)
    return settled(pickler)


def _long(proto: int, x: int) -> bytes:
    """Return the opcode of an int that does not fit into four bytes."""
    return pack_long(x) if proto >= 2 else b"L" + repr(x).encode("ascii") + b"L\n"
