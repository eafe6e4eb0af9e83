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
import io
import re
import sys
import weakref
from collections import ChainMap
from collections.abc import Callable, Iterator
from itertools import chain, islice
from operator import itemgetter, length_hint, methodcaller
from pickle import EMPTY_DICT, EMPTY_LIST, FRAME, MEMOIZE, PROTO, STACK_GLOBAL, STOP
from struct import pack, unpack_from
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, ModuleType
from typing import Any, Final

from . import hooks
from ._stdlib import NO_VALUE, CPickler, Framer, StockPickler, awkward_batches, awkward_escapes, stock_methods
from .hooks import Plan
from .instances import METACLASSES, is_bare, names
from .opcodes import BINPUT

__all__ = [
    "BATCHSIZE",
    "FEWEST",
    "ROOM",
    "LazyMemo",
    "ManyInstances",
    "batches",
    "calibrate",
    "dumps",
    "fetch_memos",
    "finished",
    "root",
    "take_own",
    "whole",
]

BATCHSIZE: int = StockPickler._BATCHSIZE
#: How many bytes of what may still be given up are held.
ROOM: Final = 64 << 20
#: From this many items on a container inside is offered to C, if they are more than the memo's entries, which have to be
#: copied there and back: an entry costs 0.1 us, an item gains 0.1 to 0.3 us, an offer costs 3 us.
FEWEST: Final = 48
#: Up to this many bytes it is cheaper to fetch the memo than to leave it where it is.
_FEW_BYTES: Final = 1024
#: How many items of a list or dict C is given at first; then as many as give about so many bytes.
_FIRST_CHUNK: Final = 10_000
_CHUNK: Final = 16 << 20
#: How many bytes C's table of the memo may have, if it is to be fetched: for 400,000 entries, that take 60 MB then.
_LARGE_MEMO: Final = 16 << 20
_LARGE: Final = bytes(64 << 10)  # the size from which on bytes stand outside frames


class _Refused(Exception):
    """The C pickler has met something that only Python can save, or has written too much."""


def _refuse(obj: Any) -> None:
    raise _Refused


class _Held:
    """A file for the C pickler, which keeps what it writes: a piece for each frame, and for each large bytes or str."""

    __slots__ = ("pieces", "room", "written")

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.written = 0
        self.room = ROOM

    def write(self, piece: Any) -> None:
        self.pieces.append(piece)
        self.written += len(piece)
        if self.written > self.room:
            raise _Refused


#: From this many instances on it pays to start again.
_MANY: Final = 24


class _Splice:
    """What the C pickler is given to write a prefix, and something behind it: `reduce` is what it reduces to."""

    __slots__ = ("grafter", "reduce")

    def __init__(self, grafter: Any, args: tuple[Any, ...], *, state: Any = None, items: Any = None, pairs: Any = None):
        self.grafter = grafter
        started = _after_prefix(grafter)
        if args:
            grafter.held.written -= len(_LARGE)  # C passes that on as it is
        if items is not None:
            self.reduce: tuple[Any, ...] = (_prefix, args, None, chain(started, items))
        elif pairs is not None:
            self.reduce = (_prefix, args, None, None, chain(started, pairs))
        else:
            self.reduce = (_prefix, args, state, started)


def _prefix() -> None:
    """Be the function in the prefix; nobody calls it."""


def _begin_prefix(splice: _Splice) -> tuple[Any, ...]:
    """Return what a splice reduces to; nothing of the prefix is memoized."""
    splice.grafter.fast = True
    return splice.reduce


def _after_prefix(grafter: Any) -> Iterator[Any]:
    """Yield nothing; C asks for an item when the prefix is written, and from there on it is to use the memo."""
    grafter.fast = False
    return
    yield


class _Grafter(CPickler or object):  # type: ignore[misc]
    """A C pickler that gives up at the first object of which it is not known that it does as the Python one does.

    Attributes:
        pickler, plan: what it stands for.
        known: the types that it may reduce, by id, since the hash of a type may be anybody's; see `_hiding`.
        asked: how many instances it has asked about.
        held, pieces: what it writes to.
        table: None.
    """

    table: Any = None

    def reducer_override(self, obj: Any) -> Any:
        """Let C reduce `obj` in its own way, or give up."""
        t = type(obj)
        key = id(t)
        known = self.known
        if key in known:
            self.asked += 1
            if self.asked > _MANY and self.held.written < _MUCH and self.plan.proto >= 4:
                raise ManyInstances
            hiding = known[key]
            if not hiding or hiding.isdisjoint(obj.__dict__):
                return NotImplemented
        elif t is _Splice:
            return _begin_prefix(obj)
        elif obj is _prefix:
            return NotImplemented
        elif t is FunctionType or t is BuiltinFunctionType or key in _METACLASSES:
            if _is_by_name(self.pickler, obj, t):
                return NotImplemented
        elif id(type(t)) in _METACLASSES:
            hiding = _hiding(self.pickler, self.plan, t)
            if hiding is not None:
                known[key] = known[t] = hiding  # the second one keeps the type alive
                return self.reducer_override(obj)
        raise _Refused


_METACLASSES: Final = frozenset(map(id, METACLASSES))


class ManyInstances(Exception):
    """There are so many instances that it pays to start again with a `_TableGrafter`, which C asks once for a type."""


class _TableGrafter(CPickler or object):  # type: ignore[misc]
    """A `_Grafter` for many instances: it is asked about their types, but not about functions and classes.

    Those that C has written are looked at afterwards (`_is_ours`).
    """


class _Table(dict[type, Any]):
    """The `dispatch_table` of a `_TableGrafter`: how to reduce instances of each type that has been met."""

    def __init__(self, pickler: Any, plan: Plan) -> None:
        self.pickler = pickler
        self.plan = plan
        self[_Splice] = _begin_prefix
        self.counted = 1

    def __missing__(self, t: type) -> Any:
        if id(type(t)) in _METACLASSES and id(t) not in _METACLASSES and _is_by_name(self.pickler, t, type(t)):
            hiding = _hiding(self.pickler, self.plan, t)
            if hiding is not None:
                self[t] = reduce = _reduce(t, hiding, self.plan.proto)
                return reduce
        raise _Refused


def _reduce(t: type, hiding: frozenset[str], proto: int) -> Any:
    """Return a function that reduces instances of `t` as C would, after a look at their attributes."""
    if t is complex:
        return copyreg.dispatch_table[t]
    reduce = methodcaller("__reduce_ex__", proto)
    if not hiding:
        return reduce
    isdisjoint = hiding.isdisjoint
    if not is_bare(t):

        def looked_at(obj: Any) -> Any:
            if isdisjoint(obj.__dict__):
                return reduce(obj)
            raise _Refused

        return looked_at
    newobj = copyreg.__newobj__  # type: ignore[attr-defined]
    args = (t,)

    def reduce_bare(obj: Any) -> Any:
        state = obj.__dict__
        if state and isdisjoint(state):
            return newobj, args, state  # sooner than object.__reduce_ex__ looks for all that there is not
        if state:
            raise _Refused
        return reduce(obj)

    return reduce_bare


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
        if t is BuiltinFunctionType and type(obj.__self__) is not ModuleType:  # a method
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


#: C picklers that nobody uses now, by protocol and `fix_imports`: to make one takes longer than a small dump.
_idle: Final[dict[tuple[int, bool], list[Any]]] = {(p, fix): [] for p in range(6) for fix in (False, True)}


def _take(pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], known: dict[Any, frozenset[str]]) -> Any:
    """Return a C pickler that begins where `pickler` is.

    Args:
        pickler, plan: whose hooks count.
        memo: what it has memoized.
        known: what is known of types, for `reducer_override` to add to.
    """
    grafter = _take_idle(plan.proto, bool(pickler.fix_imports))
    _use(grafter, pickler, plan, memo, known)
    return grafter


def _use(grafter: Any, pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], known: dict[Any, Any]) -> None:
    """Make a C pickler ready for another piece of work; without a `memo` it keeps its own."""
    grafter.pickler = pickler
    grafter.plan = plan
    grafter.known = known
    grafter.memo_before = memo
    grafter.entries = None
    grafter.pieces.clear()
    grafter.held.written = 0
    grafter.held.room = ROOM
    grafter.asked = 0


def _take_idle(proto: int, fix_imports: bool) -> Any:
    try:
        return _idle[proto, fix_imports].pop()
    except IndexError:
        grafter = _make(_Grafter, proto, fix_imports)
        grafter.idle = _idle[proto, fix_imports]
        return grafter


def take_own(pickler: Any, plan: Plan) -> Any:
    """Return a C pickler that may be used over and over for the same `pickler`, and may write any amount."""
    grafter = _make(_Grafter, plan.proto, fix_imports=True)
    _use(grafter, pickler, plan, {}, {})
    grafter.held.room = sys.maxsize
    return grafter


def _make(cls: Any, proto: int, fix_imports: bool) -> Any:
    held = _Held()
    grafter = cls(held, proto, fix_imports, _refuse if proto >= 5 else None)
    grafter.held = held
    grafter.pieces = held.pieces
    return grafter


def _take_table(pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], known: dict[Any, Any]) -> Any:
    """Return a `_TableGrafter`, as `_take` does."""
    grafter = _make(_TableGrafter, plan.proto, bool(pickler.fix_imports))
    grafter.dispatch_table = grafter.table = _Table(pickler, plan)
    grafter.idle = None
    _use(grafter, pickler, plan, memo, known)
    return grafter


def _give_back(grafter: Any) -> None:
    """Keep a C pickler that has written little, and the memo of which nobody wants any more, for the next time."""
    held = grafter.held
    idle = grafter.idle
    if idle is not None and held.written < _MUCH and len(idle) < 4:
        grafter.pickler = grafter.plan = grafter.known = grafter.memo_before = None
        grafter.clear_memo()
        held.pieces.clear()
        idle.append(grafter)


_MUCH: Final = 64 << 10


def _is_written(grafter: Any, obj: Any) -> bool:
    """Let C write `obj`; False if it gave up, for whatever reason: Python will find the same, or manage.

    Raises:
        ManyInstances: another kind of C pickler would be faster.
    """
    memo = grafter.memo_before
    try:
        if memo:
            if not _is_usual(memo, grafter.plan.graft_rule.names):
                return False
            grafter.memo = memo
        grafter.dump(obj)
    except ManyInstances:
        raise
    except Exception:
        return False
    return True


def _written_by(
    pickler: Any,
    plan: Plan,
    memo: dict[int, tuple[int, Any]],
    known: dict[Any, Any],
    make: Callable[[Any], Any],
    room: int = ROOM,
) -> Any:
    """Let one C pickler or the other write what `make` makes for it, and return it; None if it gave up."""
    for take in (_take, _take_table):
        grafter = take(pickler, plan, memo, known)
        grafter.held.room = room
        try:
            return grafter if _is_written(grafter, make(grafter)) else None
        except ManyInstances:
            continue
    raise AssertionError("not reached")


def _is_usual(memo: dict[int, tuple[int, Any]], names: frozenset[str]) -> bool:
    """Tell whether a memo is as memoize() makes it, and has none of the `names` in it.

    C takes the keys from the objects, not the other way round, and never looks for atoms there, as Python does.
    """
    objs = [*map(itemgetter(1), memo.values())]
    return (
        [*map(itemgetter(0), memo.values())] == [*range(len(memo))]
        and [*map(id, objs)] == [*memo]
        and id(()) not in memo
        and _UNMEMOIZED.isdisjoint(map(id, map(type, objs)))
        and not (names and any(type(x) is str and x in names for x in objs))
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
    if proto and is_for_batches(obj, t):
        return False  # its items are for `batches`
    grafter = _written_by(pickler, plan, memo, {}, lambda grafter: obj)
    if grafter is None or not _is_ours(pickler, plan, grafter, *_own_batches(plan, obj, t)):
        return False
    tail = _empty_batch(plan, obj, t)
    _splice(framer, grafter.pieces, 2 if proto >= 2 else 0, 0, 1 + tail)
    if grafter.held.written < _FEW_BYTES:
        _update_memo(memo, grafter)
        _give_back(grafter)
    else:
        _keep_memo(pickler, memo, grafter, _AT_ROOT)
    return True


def dumps(pickler: Any, plan: Plan, obj: Any) -> bytes | None:
    """Return what a pickler would write of `obj`, if C can write all of it.

    Args:
        pickler: a new one, which does not write.
        plan: its plan, which allows grafts.
        obj: what is dumped.
    """
    t = type(obj)
    proto = plan.proto
    if plan.graft_rule.allows is not None and not plan.graft_rule.allows(pickler):
        return None
    if proto and (t is list or t is dict) and len(obj) % BATCHSIZE == 1 and _is_awkward_length(obj, t):
        return _dumps_items(pickler, plan, obj, t)
    grafter = _written_by(pickler, plan, {}, {}, lambda grafter: obj, sys.maxsize)
    return None if grafter is None else finished(pickler, plan, grafter, obj)


def finished(pickler: Any, plan: Plan, grafter: Any, obj: Any) -> bytes | None:
    """Return the pickle of `obj` that C has written, if Python would have written the same."""
    t = type(obj)
    if not _is_ours(pickler, plan, grafter, *_own_batches(plan, obj, t)):
        return None
    tail = _empty_batch(plan, obj, t)
    if tail:
        last = grafter.pieces[-1][: -1 - tail] + STOP
        start = 2 if len(grafter.pieces) == 1 else 0
        if last[start] == FRAME[0]:
            last = last[: start + 1] + pack("<Q", len(last) - start - 9) + last[start + 9 :]
        grafter.pieces[-1] = last
    return grafter.pieces[0] if len(grafter.pieces) == 1 else b"".join(grafter.pieces)


def _dumps_items(pickler: Any, plan: Plan, obj: Any, t: type) -> bytes | None:
    """Do what `dumps` does for a list or dict at the end of which C has another batch than Python."""
    proto = plan.proto
    args = (_LARGE,) if proto >= 4 else ()

    def make(grafter: Any) -> _Splice:
        if t is list:
            return _Splice(grafter, args, items=iter(obj))
        return _Splice(grafter, args, pairs=iter(obj.items()))

    grafter = _written_by(pickler, plan, {id(obj): (0, obj)}, {}, make, sys.maxsize)
    if grafter is None or not _is_ours(pickler, plan, grafter, obj, _boundaries(len(obj))):
        return None
    opening = EMPTY_LIST if t is list else EMPTY_DICT
    if proto < 4:
        start = len(_prefixes[proto])
        head = (PROTO + bytes((proto,)) if proto >= 2 else b"") + opening + BINPUT[0]
        return b"".join((head, memoryview(grafter.pieces[0])[start:], *grafter.pieces[1:]))
    first = memoryview(grafter.pieces[2])  # as many bytes of the prefix as the opening has
    start = 9 if first[0] == FRAME[0] else 0
    return b"".join(
        (PROTO + bytes((proto,)), first[:start], opening + MEMOIZE, first[start + 2 :], *grafter.pieces[3:])
    )


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
    if not _may_offer(pickler, plan, len(obj) - start):
        return 0
    dump = pickler._fastpickle_dump
    memo = pickler.memo
    chunks = _Chunks(pickler, plan, obj, start, dump)
    chunks.write_all()
    is_all = chunks.done == len(obj)
    if chunks.done > start:
        if is_all and dump.root is obj:
            _keep_memo(pickler, memo, chunks.grafter, _IN_BATCHES)
        else:
            _update_memo(memo, chunks.grafter)
            _give_back(chunks.grafter)
    if is_all:
        dump.penalty = 0
    else:
        _back_off(dump)
        if chunks.grafter.table is not None:
            hooks.doubt(pickler)
    return chunks.done - start


class _Chunks:
    """The items of a list or dict, which one C pickler writes a chunk at a time, so that little is held.

    Attributes:
        done: the index of the first item that is not written.
        grafter: the C pickler, which has memoized just what is written.
    """

    def __init__(self, pickler: Any, plan: Plan, obj: Any, start: int, dump: Any) -> None:
        self.pickler = pickler
        self.plan = plan
        self.obj = obj
        self.start = start
        self.dump = dump
        self.is_list = type(obj) is list
        self.done = start
        self.grafter = _take(pickler, plan, pickler.memo, dump.known)
        self.source = self._items(start)

    def write_all(self) -> None:
        """Write the items from the first one on, as far as C can, in whole batches."""
        n = len(self.obj)
        size = _FIRST_CHUNK
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
            per_item = self.grafter.held.written // size + 1
            size = max(1, _CHUNK // per_item // BATCHSIZE) * BATCHSIZE
            _use(self.grafter, self.pickler, self.plan, {}, self.dump.known)

    def _write(self, n: int) -> int | None:
        """Write the next `n` items, or say how many of them C would have written."""
        framer = self.pickler.framer
        args = _padding(framer, self.plan)
        if args is None:
            return 0
        try:
            is_written = _is_written(self.grafter, self._splice(args, n))
        except ManyInstances:
            self._rewind(_take_table)
            is_written = _is_written(self.grafter, self._splice(args, n))
        if not is_written:
            return max(0, len(self.obj) - self.done - length_hint(self.source) - 2)  # C asks for one or two ahead
        if not _is_ours(self.pickler, self.plan, self.grafter, self.obj, _boundaries(n)):
            return 0
        _write(framer, self.plan, self.grafter.pieces, 1)
        self.done += n
        return None

    def _splice(self, args: tuple[Any, ...], n: int) -> _Splice:
        some = islice(self.source, n)
        return _Splice(self.grafter, args, items=some) if self.is_list else _Splice(self.grafter, args, pairs=some)

    def _items(self, start: int) -> Any:
        """Return an iterator over the items from `start` on, which knows how many there are."""
        source: Any = iter(self.obj if self.is_list else self.obj.items())
        if self.is_list:
            source.__setstate__(start)
        else:
            next(islice(source, start, start), None)
        return source

    def _rewind(self, take: Callable[..., Any] | None = None) -> None:
        """Take another C pickler, of the same kind or by `take`, and let it memoize what is written."""
        if take is None:
            take = _take if self.grafter.table is None else _take_table
        self.grafter = take(self.pickler, self.plan, self.pickler.memo, self.dump.known)
        self.source = self._items(self.start)
        if self.done > self.start:
            grafter = self.grafter
            held = grafter.held
            held.pieces = _Nowhere()
            held.room = sys.maxsize
            grafter.asked = -sys.maxsize  # so many instances are right here
            if grafter.memo_before:
                grafter.memo = grafter.memo_before
            grafter.dump(self._splice((), self.done - self.start))
            held.pieces = grafter.pieces
            held.room = ROOM
            _use(grafter, self.pickler, self.plan, {}, self.dump.known)


class _Nowhere:
    def append(self, piece: Any) -> None:
        """Drop a piece."""


def whole(pickler: Any, plan: Plan, obj: Any, n: int) -> bool:
    """Let C write a container of `n` items that is not in the memo, and is ended as Python would end it.

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
        grafter = _written_by(pickler, plan, memo, dump.known, lambda grafter: _Splice(grafter, args, state=obj))
        if grafter is not None and _is_ours(pickler, plan, grafter, *_own_batches(plan, obj, type(obj))):
            _write(framer, plan, grafter.pieces, 2 + _empty_batch(plan, obj, type(obj)))
            _update_memo(memo, grafter)
            _give_back(grafter)
            dump.penalty = 0
            return True
        hooks.doubt(pickler)  # a type's __hash__ may have run, or a module been imported
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
    held = _Held()
    grafter: Any = _Grafter(held, proto)
    grafter.held = held
    grafter.known = {}
    grafter.asked = 0
    grafter.dump(_Splice(grafter, (_LARGE,) if proto >= 4 else ()))
    return bytes(held.pieces[0] if proto >= 4 else held.pieces[0][:-1])


_prefixes: Final = [_find_prefix(proto) for proto in range(6)] if CPickler is not None else []


# What is not plain, and what C writes otherwise.


def _is_ours(pickler: Any, plan: Plan, grafter: Any, obj: Any = None, batches: int = 0) -> bool:
    """Tell whether what C wrote is what Python would have written.

    Args:
        pickler, plan: whose.
        grafter: the C pickler that wrote it.
        obj: the container whose items C was given, which are in Python's batches then.
        batches: how many batches of them, with a MARK, follow another one.
    """
    pieces = grafter.pieces
    rule = plan.graft_rule
    if plan.proto == 0 and awkward_escapes is not None and any(map(awkward_escapes.search, pieces)):
        return False
    n = grafter.held.written
    has_batches = n >= BATCHSIZE and plan.proto > 0 and bool(awkward_batches)
    table = grafter.table
    if table is not None:
        expected = len(table) - table.counted
        table.counted = len(table)
        if sum(piece.count(_NEW_GLOBAL) for piece in pieces) != expected:
            return _is_ours_by_memo(pickler, plan, grafter, obj)
    if not has_batches and not rule.names:
        return True
    # Whichever is cheaper: a look at each item of one container, 10 ns; at each entry of the memo, about 170 ns, of which
    # we know how many bytes its table has; or at each byte, for each thing to look for 0.4 ns.
    if obj is not None and len(obj) * 30 < n and _is_flat(plan, obj):
        return not rule.names or type(obj) is not dict or rule.names.isdisjoint(obj)
    texts = rule.texts(plan.proto)
    if (grafter.__sizeof__() - _SIZE) * 10 < n * (has_batches + len(texts)):
        return _is_ours_by_memo(pickler, plan, grafter, obj)
    return not any(text in piece for text in texts for piece in pieces) and (
        not has_batches or sum(map(_count_marks, pieces)) == batches or _is_ours_by_memo(pickler, plan, grafter, obj)
    )


def _is_ours_by_memo(pickler: Any, plan: Plan, grafter: Any, obj: Any) -> bool:
    """Tell the same from what C has memoized: each str, class, list, dict and set that it wrote, and those before.

    Of those before, a list or dict that Python has ended as it should be is taken for one of C's: it is rare.
    """
    names = plan.graft_rule.names
    unwanted = plan.graft_rule.unwanted(plan.proto)
    is_unasked = grafter.table is not None
    entries = grafter.entries = grafter.memo.copy()
    for _, x in entries.values():
        t = type(x)
        if t is str:
            if x in names:
                return False
        elif t is list or t is dict or t is set:
            if x is not obj and plan.proto and _is_awkward_length(x, t):
                return False
        elif id(x) in unwanted:
            return False
        elif is_unasked and (t is FunctionType or t is BuiltinFunctionType or id(t) in _METACLASSES):
            if not _is_by_name(pickler, x, t):
                return False
    return True


def _is_flat(plan: Plan, obj: Any) -> bool:
    """Tell whether a container has only items that are no containers; all types in it are known to be harmless."""
    leaves = _LEAVES if plan.proto >= 5 else _LEAVES_OF_OLD
    return leaves.issuperset(map(type, obj)) and (type(obj) is not dict or leaves.issuperset(map(type, obj.values())))


_LEAVES_OF_OLD: Final = frozenset((type(None), bool, int, float, str))
_LEAVES: Final = _LEAVES_OF_OLD | {bytes, bytearray}
_SIZE: Final = _Grafter(_Held()).__sizeof__() if CPickler is not None else 0
#: Finds where a batch may follow another: it may be a part of a str or a number as well.
#: What C writes for a function or class that it has not written before, from protocol 4 on.
_NEW_GLOBAL: Final = STACK_GLOBAL + MEMOIZE
_between_batches = re.compile(rb"\((?<=[eu\x90]\()")


def _count_marks(piece: Any) -> int:
    return len(_between_batches.findall(piece))


def _is_awkward_length(obj: Any, t: type) -> bool:
    """Tell whether C ends an exact list, dict or set of that length otherwise than Python."""
    n = len(obj)
    return n >= BATCHSIZE and t in awkward_batches and n % BATCHSIZE in awkward_batches[t]


def _is_exact(t: type) -> bool:
    return t is list or t is dict or t is tuple or t is set or t is frozenset


def _empty_batch(plan: Plan, obj: Any, t: type) -> int:
    """Return the length of the empty batch with which C ends a dict or set of some lengths."""
    is_batched = (t is dict and plan.proto >= 1) or (t is set and plan.proto >= 4)
    return 2 if is_batched and len(obj) % BATCHSIZE == 0 and _is_awkward_length(obj, t) else 0


def is_for_batches(obj: Any, t: type) -> bool:
    """Tell whether a list or dict is too long to be tried whole, or C ends it with a batch of one item."""
    return (t is list or t is dict) and (
        len(obj) > _FIRST_CHUNK or (len(obj) % BATCHSIZE == 1 and _is_awkward_length(obj, t))
    )


def _own_batches(plan: Plan, obj: Any, t: type) -> tuple[Any, int]:
    """Return a container that C wrote itself as Python would, or will have when its tail is cut; and `_boundaries`."""
    if not plan.proto or not (t is list or t is dict or (t is set and plan.proto >= 4)):
        return None, 0
    return obj, (len(obj) - 1) // BATCHSIZE + (1 if _empty_batch(plan, obj, t) else 0)


def _boundaries(n: int) -> int:
    """Return how many times a batch with a MARK follows another, among `n` items that are written as Python does."""
    return max(0, (n - 1) // BATCHSIZE - (n % BATCHSIZE == 1))


# The memo.  Fetching it costs as much as all the rest, so after a dump it stays with C until somebody looks.


def _update_memo(memo: dict[int, tuple[int, Any]], grafter: Any) -> None:
    """Add to our memo what C has memoized, in that order."""
    n = len(memo)
    entries = grafter.entries
    if entries is None:
        entries = grafter.memo.copy()
    grafter.entries = None
    new: list[Any] = [None] * (len(entries) - n)
    for entry in entries.values():
        i = entry[0]
        if i >= n:
            new[i - n] = entry
    for entry in new:
        memo[id(entry[1])] = entry


def _keep_memo(pickler: Any, memo: dict[int, tuple[int, Any]], grafter: Any, where: str) -> None:
    """Leave the memo with C, if nobody has hold of ours."""
    state = pickler.__dict__
    references = sys.getrefcount(memo)
    if grafter.entries is not None or references > _references.setdefault(where, references):
        _update_memo(memo, grafter)
        return
    try:
        _kept[id(pickler)] = weakref.ref(pickler, _Forget(id(pickler)))
    except TypeError:
        _update_memo(memo, grafter)
        return
    grafter.pickler = grafter.plan = grafter.known = grafter.memo_before = None
    if grafter.table is not None:
        del grafter.dispatch_table, grafter.table
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


#: What `sys.getrefcount` says of a memo that nobody has hold of but its pickler, and those that ask: set by `calibrate`.
_references: dict[str, int] = {}
_AT_ROOT: Final = "root"
_IN_BATCHES: Final = "batches"


def calibrate(cls: Any) -> None:
    """Dump with `cls` what leaves a memo with C in each of the ways, to count the references to it that are our own."""
    if CPickler is not None:
        for obj in (["x" * _FEW_BYTES], [None] * (_FIRST_CHUNK + 1)):
            cls(io.BytesIO(), 4).dump(obj)


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
