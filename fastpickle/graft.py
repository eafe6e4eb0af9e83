"""Plain subtrees by the C pickler: it writes them, and its bytes are spliced in where Python's would stand.

    root(obj)           C: PROTO FRAME [ obj ] STOP                                     -> frames, last one left open
    batches(items)      C: ... FRAME [ a prefix as long as our frame | items in batches ] -> the same, after our frame
    whole(obj)          C: ... FRAME [ a prefix as long as our frame | obj ]

The C pickler writes the opcodes that the Python one writes, and cuts frames at the same places.  So its bytes are ours if
nobody listens (`hooks`), if it begins with our memo, and if the frame that it begins in is as full as ours.  It asks
`reducer_override` about all that is no exact builtin, which raises unless the object is known to be reduced alike
(`instances`): then nothing has been written, and no code of others has run, so the object goes through the loop (`plain`)
as if nothing had been tried.

*The prefix.*  C is given an object that reduces to a call with a large bytes, some padding, and what is to be saved as
items or state.  The large bytes closes C's frame, the padding fills the next one as far as ours is, and `fast` keeps all
of that out of the memo: it is switched off when C asks for the first item.

*Lengths.*  Up to 3.14 C ends exact containers of some lengths with another batch than Python (`_stdlib.awkward_batches`).
What is handed over as items has Python's batches; those inside are looked for in C's memo (`_is_ours`).

Not for: deciding whether a pickler may graft (`hooks.plan`), and not for protocols that have no frames to be told apart
from those that have.
"""

from __future__ import annotations

import builtins
import copyreg
import re
import sys
import weakref
from collections import ChainMap
from collections.abc import Iterator
from itertools import chain, islice
from operator import itemgetter, length_hint
from pickle import EMPTY_DICT, EMPTY_LIST, FRAME, MEMOIZE
from struct import unpack_from
from types import BuiltinMethodType, FunctionType, ModuleType
from typing import Any, Final

from . import hooks
from ._stdlib import NO_VALUE, CPickler, Framer, StockPickler, awkward_batches, awkward_escapes, entry_of, stock_methods
from .hooks import Plan
from .instances import METACLASSES, names
from .opcodes import BINPUT

__all__ = ["FEWEST", "ROOM", "LazyMemo", "batches", "fetch_memos", "root", "whole"]

_BATCHSIZE: int = StockPickler._BATCHSIZE
#: How many bytes of what may still be given up are held.
ROOM: Final = 64 << 20
#: From this many items on a container inside is offered to C, if they are more than the memo's entries, which have to be
#: copied there and back: an entry costs 0.1 us, an item gains 0.1 to 0.3 us, an offer costs 3 us.
FEWEST: Final = 48
#: Up to this many bytes it is cheaper to fetch the memo than to leave it where it is.
_FEW_BYTES: Final = 1024
_LARGE: Final = bytes(64 << 10)  # the size from which on bytes stand outside frames


class _Refused(Exception):
    """The C pickler has met something that only Python can save, or has written too much."""


def _refuse(obj: Any) -> None:
    raise _Refused


class _Held:
    """A file for the C pickler, which keeps what it writes: a piece for each frame, and for each large bytes or str."""

    __slots__ = ("pieces", "room")

    def __init__(self, room: int) -> None:
        self.pieces: list[Any] = []
        self.room = room

    def write(self, piece: Any) -> None:
        self.pieces.append(piece)
        self.room -= len(piece)
        if self.room < 0:
            raise _Refused


class _Splice:
    """What the C pickler is given to write a prefix, and something behind it: `reduce` is what it reduces to."""

    __slots__ = ("reduce",)

    def __init__(self, grafter: Any, args: tuple[Any, ...], *, state: Any = None, items: Any = None, pairs: Any = None):
        started = _after_prefix(grafter)
        if items is not None:
            self.reduce: tuple[Any, ...] = (_prefix, args, None, chain(started, items))
        elif pairs is not None:
            self.reduce = (_prefix, args, None, None, chain(started, pairs))
        else:
            self.reduce = (_prefix, args, state, started)


def _prefix() -> None:
    """Be the function in the prefix; nobody calls it."""


def _after_prefix(grafter: Any) -> Iterator[Any]:
    """Yield nothing; C asks for an item when the prefix is written, and from there on it is to use the memo."""
    grafter.fast = False
    return
    yield


class _Grafter(CPickler or object):  # type: ignore[misc]
    """A C pickler that gives up at the first object of which it is not known that it does as the Python one does."""

    def reducer_override(self, obj: Any) -> Any:
        """Let C reduce `obj` in its own way, or give up."""
        t = type(obj)
        key = id(t)  # the hash of a type may be anybody's
        known = self.known
        if key in known:
            hiding = known[key]
            if not hiding or hiding.isdisjoint(obj.__dict__):
                return NotImplemented
        elif t is _Splice:
            self.fast = True  # nothing of the prefix is memoized
            return obj.reduce
        elif obj is _prefix:
            return NotImplemented
        elif t is FunctionType or key in _METACLASSES:
            if _is_by_name(self.pickler, obj, t):
                return NotImplemented
        elif id(type(t)) in _METACLASSES:
            hiding = _hiding(self.pickler, self.plan, t)
            if hiding is not None:
                known[key] = known[t] = hiding  # type: ignore[index]  # the second one keeps the type alive
                return self.reducer_override(obj)
        raise _Refused


_METACLASSES: Final = frozenset(map(id, METACLASSES))


def _hiding(pickler: Any, plan: Plan, t: type) -> frozenset[str] | None:
    """Tell whether C may reduce instances of `t`, as `instances.names` does, for this pickler."""
    if (
        plan.proto < 2
        or pickler.dispatch.get(t) is not None
        or (plan.is_choice is not None and plan.is_choice(t))
        or (plan.graft_rule.refuses is not None and plan.graft_rule.refuses(t))
    ):
        return None
    entry = copyreg.dispatch_table.get(t)
    return names(t, entry) if _reduce_entry(pickler, t) is entry else None


def _reduce_entry(pickler: Any, t: type) -> Any:
    """Return the entry of `t` in the pickler's own `dispatch_table` or in copyreg's, if no code of others is asked."""
    if any("dispatch_table" in vars(c) for c in type(pickler).__mro__):
        return NO_VALUE
    table = pickler.__dict__.get("dispatch_table", copyreg.dispatch_table)
    if type(table) not in (dict, ChainMap):
        return NO_VALUE
    return table.get(t)


def _is_by_name(pickler: Any, obj: Any, t: type) -> bool:
    """Tell whether C may save a class or a function by its name, which is found without importing anything."""
    entry = pickler.dispatch.get(t)
    if entry is None:
        if t is FunctionType or t is type or _reduce_entry(pickler, t) is not None or t in copyreg.dispatch_table:
            return False
    elif entry not in hooks.saved_by_name or not hooks.saved_by_name[entry](pickler, obj):
        return False
    name = obj.__module__
    module = sys.modules.get(name) if type(name) is str else None
    return (
        type(module) is ModuleType
        and module.__dict__.get(obj.__qualname__) is obj
        and builtins.__import__ is _import
        and type(pickler).save_global is stock_methods["save_global"]
        and "save_global" not in pickler.__dict__
    )


_import = builtins.__import__


def _make_grafter(pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], known: Any, room: int) -> Any:
    """Return a C pickler that begins where `pickler` is, and what it writes to."""
    held = _Held(room)
    grafter: Any = _Grafter(held, plan.proto, pickler.fix_imports, _refuse if plan.proto >= 5 else None)
    grafter.pickler = pickler
    grafter.plan = plan
    grafter.known = known
    grafter.memo_before = memo
    return grafter, held


def _is_written(grafter: Any, obj: Any) -> bool:
    """Let C write `obj`; False if it gave up, for whatever reason: Python will find the same, or manage."""
    memo = grafter.memo_before
    try:
        if memo:
            if not _is_usual(memo):
                return False
            grafter.memo = memo
        grafter.dump(obj)
    except Exception:
        return False
    finally:
        grafter.pickler = grafter.plan = grafter.known = grafter.memo_before = None  # it may be kept for its memo
    return True


def _is_usual(memo: dict[int, tuple[int, Any]]) -> bool:
    """Tell whether a memo is as memoize() makes it.

    C takes the keys from the objects, not the other way round, and never looks for atoms there, as Python does.
    """
    objs = [*map(itemgetter(1), memo.values())]
    return (
        [*map(itemgetter(0), memo.values())] == [*range(len(memo))]
        and [*map(id, objs)] == [*memo]
        and id(()) not in memo
        and _UNMEMOIZED.isdisjoint(map(id, map(type, objs)))
    )


_UNMEMOIZED: Final = frozenset(map(id, (type(None), bool, int, float)))


# The offers.


def root(pickler: Any, plan: Plan, obj: Any) -> bool:
    """Let C write all that is dumped.

    Args:
        pickler: one that has written nothing of this dump but PROTO.
        plan: the plan in force, which allows grafts.
        obj: what is dumped.

    Returns:
        Whether it is written; if not, nothing is.
    """
    t = type(obj)
    framer = pickler.framer
    frame = framer.current_frame
    memo = pickler.memo
    proto = plan.proto
    if (
        (frame is None) is (proto >= 4)
        or (frame is not None and frame.tell())
        or not _is_usual_framer(pickler, framer)
        or (memo and (id(obj) in memo or not _is_exact(t) or len(obj) < FEWEST + len(memo)))
        or (plan.graft_rule.allows is not None and not plan.graft_rule.allows(pickler))
    ):
        return False
    if (t is list or t is dict) and proto and _is_awkward_length(obj, t):
        del memo  # there must be no other reference
        return _awkward_root(pickler, plan, obj, t)
    grafter, held = _make_grafter(pickler, plan, memo, {}, ROOM)
    if not _is_written(grafter, obj):
        return False
    tail = _empty_batch(plan, obj, t)
    if not _is_ours(pickler, plan, grafter, held, memo, *_own_batches(plan, obj, t)):
        return False
    _splice(framer, held.pieces, 2 if proto >= 2 else 0, 0, 1 + tail)
    _keep_memo(pickler, memo, grafter, held.room < ROOM - _FEW_BYTES)
    return True


def _awkward_root(pickler: Any, plan: Plan, obj: Any, t: type) -> bool:
    """Do what `root` does for a list or dict at the end of which C has another batch than Python."""
    framer = pickler.framer
    memo = pickler.memo
    i = len(memo)
    proto = plan.proto
    opening = (EMPTY_LIST if t is list else EMPTY_DICT) + (MEMOIZE if proto >= 4 else b"")
    if proto < 4:
        if i > 255:
            return False
        opening += BINPUT[i]
    grafter, held = _make_grafter(pickler, plan, {**memo, id(obj): (i, obj)}, {}, ROOM)
    args = (_LARGE,) if proto >= 4 else ()  # which leaves C's frame as full as our opening does
    source = iter(obj if t is list else obj.items())
    splice = _Splice(grafter, args, items=source) if t is list else _Splice(grafter, args, pairs=source)
    if not _is_written(grafter, splice) or not _is_ours(pickler, plan, grafter, held, memo, obj, _boundaries(len(obj))):
        return False
    (framer.file_write if framer.current_frame is None else framer.current_frame.write)(opening)
    _write(framer, plan, held.pieces, 1)
    _keep_memo(pickler, memo, grafter, is_long=True)
    return True


def batches(pickler: Any, plan: Plan, obj: Any, start: int = 0) -> int:
    """Let C write the items of a list or dict that is open, in batches.

    Args:
        pickler: one that has written the opening, and memoized `obj`.
        plan: the plan in force.
        obj: an exact list, or an exact dict of which nothing has been written.
        start: the index of the first item.

    Returns:
        How many items are written, with the opcodes that append them: all, or some whole batches, or none.
    """
    n = len(obj)
    done = start
    framer = pickler.framer
    memo = pickler.memo
    if not _may_offer(pickler, plan, n - start):
        return 0
    dump = pickler._fastpickle_dump
    is_list = type(obj) is list
    source: Any = None
    at_once = min(n - start, dump.at_once)
    while True:
        args = _padding(framer, plan)
        if args is None:
            break
        if source is None:
            source = iter(obj) if is_list else iter(obj.items())
            if is_list:
                source.__setstate__(done)
            else:
                next(islice(source, done, done), None)
        grafter, held = _make_grafter(pickler, plan, memo, dump.known, ROOM)
        some = islice(source, at_once)
        splice = _Splice(grafter, args, items=some) if is_list else _Splice(grafter, args, pairs=some)
        if _is_written(grafter, splice):
            if not _is_ours(pickler, plan, grafter, held, memo, obj, _boundaries(at_once)):
                break
            _write(framer, plan, held.pieces, 1)
            _update_memo(memo, grafter)
            done += at_once
            if done == n:
                dump.penalty = 0
                return done - start
            if dump.at_once <= at_once:
                at_once = min(n - done, dump.at_once)
                continue
            break  # the rest begins with what C refused
        # C has asked for an item or two more than it has written.
        sure = n - done - length_hint(source) - 2
        sure -= sure % _BATCHSIZE
        if sure < FEWEST + len(memo) or sure >= at_once:
            break
        if held.room < 0:
            dump.at_once = sure
        at_once = sure
        source = None
    _back_off(dump)
    return done - start


def whole(pickler: Any, plan: Plan, obj: Any, n: int) -> bool:
    """Let C write a tuple, set or frozenset of `n` items that is not in the memo.

    Returns:
        Whether it is written; if not, nothing is.
    """
    if not _may_offer(pickler, plan, n):
        return False
    framer = pickler.framer
    memo = pickler.memo
    dump = pickler._fastpickle_dump
    args = _padding(framer, plan)
    if args is not None:
        grafter, held = _make_grafter(pickler, plan, memo, dump.known, ROOM)
        tail = _empty_batch(plan, obj, type(obj))
        if _is_written(grafter, _Splice(grafter, args, state=obj)) and _is_ours(
            pickler, plan, grafter, held, memo, *_own_batches(plan, obj, type(obj))
        ):
            _write(framer, plan, held.pieces, 2 + tail)
            _update_memo(memo, grafter)
            dump.penalty = 0
            return True
    _back_off(dump)
    return False


def _may_offer(pickler: Any, plan: Plan, n: int) -> bool:
    """Tell whether a container of `n` items is worth an offer now."""
    if n < FEWEST + len(pickler.memo):
        return False
    dump = pickler._fastpickle_dump
    if dump.offers_to_skip:
        dump.offers_to_skip -= 1
        return False
    framer = pickler.framer
    return (
        (framer.current_frame is None) is (plan.proto < 4)
        and _is_usual_framer(pickler, framer)
        and (plan.graft_rule.allows is None or bool(plan.graft_rule.allows(pickler)))
    )


def _is_usual_framer(pickler: Any, framer: Any) -> bool:
    """Tell whether what C hands over may be written to the file by `framer`, and nobody notices."""
    write_large_bytes = pickler.__dict__.get("_write_large_bytes")
    return (
        type(framer.file_write) is BuiltinMethodType
        and getattr(write_large_bytes, "__func__", None) is _write_large_bytes
        and write_large_bytes.__self__ is framer
    )


_write_large_bytes: Final = Framer.write_large_bytes


def _back_off(dump: Any) -> None:
    """Skip offers after one that failed: one, three, seven ... after each further one, until one succeeds."""
    dump.penalty = min(2 * dump.penalty + 1, 127)
    dump.offers_to_skip = dump.penalty


# Splicing.


def _padding(framer: Any, plan: Plan) -> tuple[Any, ...] | None:
    """Return the arguments of the prefix's call that make C's frame as full as ours is; None if there are none.

    Behind the large bytes come the opcodes of the others, TUPLE1 to TUPLE3 and REDUCE.
    """
    if plan.proto < 4:
        return ()
    n = framer.current_frame.tell()
    if n < 2 or n > len(_LARGE):
        return None
    if n <= 4:
        return (_LARGE, *(None,) * (n - 2))
    if n <= 259:
        return _LARGE, _LARGE[: n - 4]
    if n <= 262:
        return _LARGE, (None, 1, 256)[n - 260], _LARGE[:255]
    return _LARGE, _LARGE[: n - 7]


def _write(framer: Any, plan: Plan, pieces: list[Any], tail: int) -> None:
    """Write what C wrote behind a prefix, but for the last `tail` bytes."""
    if plan.proto < 4:
        _splice(framer, pieces, len(_prefixes[plan.proto]), 0, tail)
    else:
        _splice(framer, pieces[2:], 0, framer.current_frame.tell(), tail)


def _splice(framer: Any, pieces: list[Any], start: int, ours: int, tail: int) -> None:
    """Continue the current frame with C's first, and so on; C's last one stays open.

    Args:
        framer: the pickler's.
        pieces: what C wrote.
        start: where its first frame begins in the first piece.
        ours: how many bytes of that frame stand for what is in ours already.
        tail: how many of the last bytes of all are C's own.
    """
    piece = memoryview(pieces[0])
    last = memoryview(pieces[-1])
    if framer.current_frame is None:
        if len(pieces) == 1:
            framer.file_write(piece[start:-tail])
        else:
            framer.file_write(piece[start:])
            for piece in pieces[1:-1]:
                framer.file_write(piece)
            framer.file_write(last[:-tail])
        return
    is_framed = piece[start] == FRAME[0]
    if is_framed:
        n = unpack_from("<Q", piece, start + 1)[0]
        start += 9
    if len(pieces) == 1:
        framer.current_frame.write(piece[start + ours : -tail])
        return
    if is_framed:
        end = start + n
    else:  # less than four bytes, and then the header of a large bytes or str, of five or nine
        end = len(piece) - (5 if len(piece) - start < 9 else 9)
    framer.current_frame.write(piece[start + ours : end])
    framer.commit_frame(force=True)
    framer.file_write(piece[end:])
    for piece in pieces[1:-1]:
        framer.file_write(piece)
    framer.current_frame.write(last[9 if last[0] == FRAME[0] else 0 : -tail])


def _find_prefix(proto: int) -> bytes:
    """Return what C writes of a prefix before the padding."""
    held = _Held(ROOM)
    grafter: Any = _Grafter(held, proto)
    grafter.known = {}
    grafter.dump(_Splice(grafter, (_LARGE,) if proto >= 4 else ()))
    return bytes(held.pieces[0] if proto >= 4 else held.pieces[0][:-1])


_prefixes: Final = [_find_prefix(proto) for proto in range(6)] if CPickler is not None else []


# What is not plain, and what C writes otherwise.


def _is_ours(
    pickler: Any, plan: Plan, grafter: Any, held: _Held, memo: dict[int, Any], obj: Any = None, batches: int = 0
) -> bool:
    """Tell whether what C wrote is what Python would have written.

    Args:
        pickler, plan: whose.
        grafter, held: the C pickler, and what it wrote.
        memo: what had been written before.
        obj: the container whose items C was given, which are in Python's batches then.
        batches: how many batches of them, with a MARK, follow another one.
    """
    pieces = held.pieces
    if plan.graft_rule.accepts is not None and not plan.graft_rule.accepts(pickler, pieces):
        return False
    if plan.proto == 0:
        return awkward_escapes is None or not any(map(awkward_escapes.search, pieces))
    n = ROOM - held.room
    if n < _BATCHSIZE or not awkward_batches:
        return True
    # Whichever is cheaper: to look at the memo, 100 ns an entry of 16 bytes, or at what was written, 0.4 ns a byte.
    if (grafter.__sizeof__() - _SIZE) * 8 > n and sum(map(_count_marks, pieces)) == batches:
        return True
    known = len(memo)
    for i, x in grafter.memo.copy().values():  # every list, dict and set that was written is there
        if type(x) in awkward_batches and i >= known and x is not obj and _is_awkward_length(x, type(x)):
            return False
    return True


_SIZE: Final = _Grafter(_Held(0)).__sizeof__() if CPickler is not None else 0
#: Finds where a batch may follow another: it may be a part of a str or a number as well.
_between_batches = re.compile(rb"\((?<=[eu\x90]\()")


def _count_marks(piece: Any) -> int:
    return len(_between_batches.findall(piece))


def _is_awkward_length(obj: Any, t: type) -> bool:
    """Tell whether C ends an exact list, dict or set of that length otherwise than Python."""
    n = len(obj)
    return n >= _BATCHSIZE and t in awkward_batches and n % _BATCHSIZE in awkward_batches[t]


def _is_exact(t: type) -> bool:
    return t is list or t is dict or t is tuple or t is set or t is frozenset


def _empty_batch(plan: Plan, obj: Any, t: type) -> int:
    """Return the length of the empty batch with which C ends a set of some lengths."""
    return 2 if t is set and plan.proto >= 4 and _is_awkward_length(obj, t) else 0


def _own_batches(plan: Plan, obj: Any, t: type) -> tuple[Any, int]:
    """Return a container that C wrote itself as Python would, or will have when its tail is cut; and `_boundaries`."""
    if not plan.proto or not (t is list or t is dict or (t is set and plan.proto >= 4)):
        return None, 0
    return obj, (len(obj) - 1) // _BATCHSIZE + (1 if _empty_batch(plan, obj, t) else 0)


def _boundaries(n: int) -> int:
    """Return how many times a batch with a MARK follows another, among `n` items that are written as Python does."""
    return max(0, (n - 1) // _BATCHSIZE - (n % _BATCHSIZE == 1))


# The memo.  Fetching it costs as much as all the rest, so after a dump it stays with C until somebody looks.


def _update_memo(memo: dict[int, tuple[int, Any]], grafter: Any) -> None:
    """Add to our memo what C has memoized, in that order."""
    n = len(memo)
    entries = grafter.memo.copy()
    new: list[Any] = [None] * (len(entries) - n)
    for entry in entries.values():
        i = entry[0]
        if i >= n:
            new[i - n] = entry
    for entry in new:
        memo[id(entry[1])] = entry


def _keep_memo(pickler: Any, memo: dict[int, tuple[int, Any]], grafter: Any, is_long: bool) -> None:
    """Leave the memo with C, if nobody has hold of ours."""
    state = pickler.__dict__
    if not is_long or sys.getrefcount(memo) > _REFERENCES:
        _update_memo(memo, grafter)
        return
    try:
        _kept[id(pickler)] = weakref.ref(pickler, _Forget(id(pickler)))
    except TypeError:
        _update_memo(memo, grafter)
        return
    state["_fastpickle_memo"] = memo, grafter
    del state["memo"]
    if not any(type(vars(c).get("memo")) is LazyMemo for c in type(pickler).__mro__):
        _fetch_memo(pickler)  # uninstall() was called in the middle of the dump


#: The picklers whose memo is with C, by id.
_kept: dict[int, weakref.ref[Any]] = {}


class _Forget:
    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key

    def __call__(self, ref: Any) -> None:
        if _kept.get(self.key) is ref:
            del _kept[self.key]


def _count_references() -> int:
    """Return what `sys.getrefcount` says in `_keep_memo` of a memo that only its pickler holds."""

    class Some:
        def __init__(self) -> None:
            self.memo: dict[int, Any] = {}

    def keep(some: Any, memo: Any, grafter: Any, is_long: bool) -> int:
        return sys.getrefcount(memo)

    def offer(some: Any) -> int:
        memo = some.memo
        return keep(some, memo, None, is_long=True)

    return offer(Some())


_REFERENCES: Final = _count_references()


class LazyMemo:
    """A class's `memo`, found only where the pickler has none of its own: then C has it, and it is fetched."""

    def __get__(self, pickler: Any, owner: Any = None) -> Any:
        if pickler is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute 'memo'")
        _fetch_memo(pickler)
        try:
            return pickler.__dict__["memo"]
        except KeyError:
            raise AttributeError(f"{type(pickler).__name__!r} object has no attribute 'memo'") from None


def _fetch_memo(pickler: Any) -> None:
    """Put the memo on the instance, if it is with C."""
    kept = pickler.__dict__.pop("_fastpickle_memo", None)
    if kept is not None:
        memo, grafter = kept
        _update_memo(memo, grafter)
        pickler.__dict__["memo"] = memo
        _kept.pop(id(pickler), None)


def fetch_memos() -> None:
    """Fetch all memos that are with C, when a class loses its `LazyMemo`."""
    for ref in list(_kept.values()):
        pickler = ref()
        if pickler is not None:
            _fetch_memo(pickler)
