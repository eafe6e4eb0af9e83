"""The C pickler, held to what is known to be as Python would write it: it gives up at anything else.

    take(pickler) --> a C pickler --> is_written(obj): its `pieces`, one for each frame and each large bytes
      |  asks about each instance, function and class
      +-- there are many instances ----> take_table: asks about each type
      +-- and functions among them, or   |
          classes for their own sake --> take_asking: asks about each again, and reduces what it knows
    Splice(...)   --> what it is given to write items or an object behind a prefix

It asks about all that is no exact builtin, and `known` tells whether no code of others runs if it saves that.

*The prefix.*  A `Splice` reduces to a call with a large bytes, some padding, and what is to be saved as items or state.
The large bytes closes C's frame, the padding fills the next one as far as ours is, and `fast` keeps all of that out of
the memo: it is switched off when C asks for the first item.  No padding is of one byte; there the large bytes is an
item, and APPEND is what comes before the state.

Not for: what C writes otherwise than Python although it knows the object (`differences`).
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import chain
from operator import itemgetter
from pickle import BINGET, LONG_BINGET
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

from .._stdlib import CPickler
from ..hooks import Plan, are_fetched
from ..interrupts import GivenUp, is_interrupt
from ..objects import arrays
from ..objects.asked import Names
from ..objects.instances import calls_its_class
from ..objects.known import (
    METACLASS_IDS,
    Refused,
    find_hiding,
    finds_builtins,
    is_by_name,
    name_of_dtypes,
    reduce_of,
    usual_import,
)
from ..objects.last import last
from ..objects.stdlibs import LOOKED_INTO, is_array

__all__ = [
    "LARGE",
    "LARGE_TABLE",
    "MUCH",
    "ONE_BYTE",
    "ROOM",
    "SMALL_TABLE",
    "BeginAgain",
    "Grafter",
    "Held",
    "Splice",
    "TooMuch",
    "dump",
    "give_back",
    "is_usual_memo",
    "is_written",
    "joined",
    "may_be_fetched",
    "prefixes",
    "prepare_to_keep",
    "take",
    "take_asking",
    "take_own",
    "take_table",
    "unordered",
    "use",
    "written_by",
]

#: How many bytes of what may still be given up are held.
ROOM: Final = 64 << 20
LARGE: Final = bytes(64 << 10)  # the size from which on bytes stand outside frames
#: For a `Splice` of a state behind one byte.
ONE_BYTE: Final = (LARGE,)


def _refuse(obj: Any) -> None:
    raise Refused


class Held:
    """A file for the C pickler, which keeps what it writes: a piece for each frame, and for each large bytes or str."""

    __slots__ = ("pieces", "room", "written")

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.written = 0
        self.room = ROOM

    def clear(self) -> None:
        self.pieces.clear()
        self.written = 0
        self.room = ROOM

    def write(self, piece: Any) -> None:
        self.pieces.append(piece)
        self.written += len(piece)
        if self.written > self.room:
            raise Refused


#: From this many instances on it pays to start again.
_MANY: Final = 24


class Splice:
    """What the C pickler is given to write a prefix, and something behind it: `reduce` is what it reduces to."""

    __slots__ = ("grafter", "reduce")

    def __init__(self, grafter: Any, args: tuple[Any, ...], *, state: Any = None, items: Any = None, pairs: Any = None):
        self.grafter = grafter
        started = _after_prefix(grafter)
        grafter.is_spliced = True
        if args:
            grafter.held.written -= len(LARGE)  # C passes that on as it is
        if args is ONE_BYTE:
            self.reduce: tuple[Any, ...] = (_prefix, (), state, iter(args), started)
        elif items is not None:
            self.reduce = (_prefix, args, None, chain(started, items))
        elif pairs is not None:
            self.reduce = (_prefix, args, None, None, chain(started, pairs))
        else:
            self.reduce = (_prefix, args, state, started)


def _prefix() -> None:
    """Be the function in the prefix; nobody calls it."""


def _begin_prefix(splice: Splice) -> tuple[Any, ...]:
    """Return what a splice reduces to; nothing of the prefix is memoized."""
    grafter = splice.grafter
    grafter.fast = True
    if grafter.table is not None:
        grafter.table.expected = __name__  # of `_prefix`
    return splice.reduce


def _after_prefix(grafter: Any) -> Iterator[Any]:
    """Yield nothing; C asks for an item when the prefix is written, and from there on it is to use the memo."""
    grafter.fast = False
    return
    yield


class Grafter(CPickler or object):  # type: ignore[misc]  # there may be none
    """A C pickler that gives up at the first object of which it is not known that it does as the Python one does.

    Attributes:
        pickler, plan: what it stands for.
        known: the types that it may reduce, by id, since the hash of a type may be anybody's; see `known.find_hiding`.
        asked: how many instances it has asked about, or less than 0; 0 if none.
        has_other: whether it has saved a function, or a class for its own sake, but for builtins.
        is_touched: whether it has been asked about anything, or has a large table, in one that is kept (`take_own`).
        held, pieces: what it writes to.
        is_spliced: whether there is a prefix; from protocol 4 on the first two pieces are its own.
        has_names: whether one of the rule's names may be in its memo; None if that is not known (`differences`).
        table: None.
    """

    asked = 0
    has_names: bool | None = None
    has_other = False
    is_spliced = False
    table: Any = None

    def reducer_override(self, obj: Any) -> Any:
        """Let C reduce `obj` in its own way, or give up."""
        self.is_touched = True
        t = type(obj)
        key = id(t)
        known = self.known
        if key in known:
            self.asked += 1
            if self.asked > _MANY and self.plan.proto >= 4:
                if self.held.written < MUCH:
                    raise BeginAgain(take_asking if self.has_other else take_table)
                self.asked = -sys.maxsize  # it is only going to be more
            hiding = known[key]
            if not hiding or (type(state := obj.__dict__) is dict and hiding.isdisjoint(state)):
                look = hiding.look or LOOKED_INTO.get(t)
                if look is None:
                    return NotImplemented
                if look(obj):
                    if look is not arrays.is_little or self.plan.proto < 5:
                        return NotImplemented
                    if (rv := arrays.reduced(obj)) is not None:
                        return rv
            _remember_gave_up(t)
        elif t is Splice:
            return _begin_prefix(obj)
        elif obj is _prefix and self.fast:
            return NotImplemented
        elif t is FunctionType or t is BuiltinFunctionType or key in METACLASS_IDS:
            plan = self.plan
            call = plan.graft_rule.call_of(self.pickler, t)
            if call is not None and (reduced := call(obj)) is not None:  # dill gives builtin classes another name
                self.has_other = True
                return reduced
            if id(obj) not in plan.graft_rule.unwanted[plan.proto] and is_by_name(self.pickler, obj, t):
                if id(obj) not in known and (obj.__module__ != "builtins" or not finds_builtins(self.pickler)):
                    self.has_other = True
                return NotImplemented
            if plan.proto >= 2 and key in METACLASS_IDS:
                last.remember_gave_up(id(obj))  # so it would for an instance
        elif id(type(t)) in METACLASS_IDS or arrays.is_dtype(t):
            name = name_of_dtypes(self.pickler, obj, t)
            if name is not None:
                self.has_other = True
                return name
            call = self.plan.graft_rule.call_of(self.pickler, t)
            if call is not None and (reduced := call(obj)) is not None:
                self.asked += 1
                if self.asked > _MANY and self.plan.proto >= 4 and self.held.written < MUCH:
                    raise BeginAgain(take_asking)  # which asks once about the type
                return reduced
            hiding = find_hiding(self.pickler, self.plan, t)
            if hiding is not None:
                known[key] = known[t] = hiding  # the second one keeps the type alive
                return self.reducer_override(obj)
            if self.plan.proto >= 2:
                _remember_gave_up(t)
        raise Refused


def _remember_gave_up(t: type) -> None:
    """Remember at an instance of which type C gave up: of arrays, at a large one, or at one that is a library's own."""
    last.remember_gave_up(id(t), arrays.is_little if is_array(t) else None)


class BeginAgain(GivenUp):
    """Another kind of C pickler is to begin again: the argument gives one."""


class TooMuch(GivenUp):
    """The C pickler has written more than there is room for where it was to go."""


class _AskingGrafter(Grafter):
    """A `Grafter` for many instances, and for functions and classes among them, which it is asked about, too.

    Attributes:
        reducers: what reduces instances, by the ids of their types.
    """

    reducers: dict[int, Callable[[Any], Any]]

    def reducer_override(self, obj: Any) -> Any:
        """Return what `obj` is reduced to, let C do it, or give up."""
        t = type(obj)
        reduce = self.reducers.get(id(t))
        if reduce is not None:
            return reduce(obj)
        answer = super().reducer_override(obj)
        self.asked = -sys.maxsize  # it never begins again
        if type(t) is type and t is not type and (call := self.plan.graft_rule.call_of(self.pickler, t)) is not None:
            self.reducers[id(t)] = call
        elif id(t) in self.known:
            is_buffer = self.plan.proto >= 5 and is_array(t)
            self.reducers[id(t)] = arrays.reduced if is_buffer else reduce_of(t, self.known[id(t)], self.plan.proto)
        return answer


class _TableGrafter(CPickler or object):  # type: ignore[misc]  # there may be none
    """A `Grafter` for many instances: C asks once about each type, but not about functions and classes.

    It saves them by their names, and for that imports their modules as the code does that it was called by: with the
    `__import__` of that code's globals.  That is `_Table.seek`, which gives up unless it is the class of an instance,
    or a builtin: what is looked up next in the module may run code (PEP 562), which is to run just once.
    """

    has_other = False


def _dump_importing(by: Callable[..., Any]) -> Any:
    """Return a function that lets a C pickler write an object, which imports by `by`."""
    return FunctionType(_dump.__code__, {"__name__": __name__, "__builtins__": {"__import__": by}})


def _dump(grafter: Any, obj: Any) -> None:
    grafter.dump(obj)


def _import(module: Any, *args: Any) -> Any:
    """Import what a C pickler may import: nobody is asked for the module of `_prefix`, as nobody is by stock."""
    return None if type(module) is str and module == __name__ else builtins.__import__(module, *args)


_dump_spliced: Final = _dump_importing(_import)


class _Table(dict[type, Any]):
    """The `dispatch_table` of a `_TableGrafter`: how to reduce instances of each type that has been met.

    Args:
        pickler, plan: what the C pickler stands for.
        memo: what it has memoized before it begins.

    Attributes:
        expected: the module of the class that C saves next, unless that is in the memo.
        has_other: whether C was about to save another class, or a function, that is no builtin.
    """

    def __init__(self, pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]]) -> None:
        self.pickler = pickler
        self.plan = plan
        self.memo = memo
        self[Splice] = _begin_prefix
        self.expected: str | None = None
        self.has_other = False

    def seek(self, module: Any, *args: Any) -> Any:
        """Import the module of a class or function that C is about to save, if it is known which one that is."""
        if type(module) is str and module == self.expected:
            self.expected = None
            if module == __name__:
                return None  # nobody's __import__ is asked for that
        elif type(module) is not str or module != "builtins" or not finds_builtins(self.pickler):
            self.has_other = True
            raise Refused
        return usual_import(module, *args)

    def __missing__(self, t: type) -> Any:
        if id(t) in METACLASS_IDS or t is BuiltinFunctionType:
            raise KeyError(t)  # C saves classes by name then, and asks functions; at a method it gives up
        is_known = id(t) in self.memo or t is MethodType  # by whatever name; or it is not saved for its instances
        if id(type(t)) in METACLASS_IDS and (is_known or is_by_name(self.pickler, t, type(t))):
            hiding = find_hiding(self.pickler, self.plan, t)
            if hiding is not None:
                if not is_known and calls_its_class(t):
                    self.expected = t.__module__
                self[t] = reduce = reduce_of(t, hiding, self.plan.proto)
                return reduce
        raise Refused


#: C picklers that nobody uses now, by protocol, with `fix_imports` and without: to make one takes 0.6 us.
_idle: Final[tuple[list[Any], ...]] = tuple([] for _ in range(12))


def take(pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], known: dict[Any, Names]) -> Any:
    """Return a C pickler that begins where `pickler` is.

    Args:
        pickler, plan: whose hooks count.
        memo: what it has memoized.
        known: what is known of types, for `reducer_override` to add to.
    """
    idle = _idle[plan.proto if pickler.fix_imports else plan.proto - 6]
    try:
        grafter = idle.pop()
    except IndexError:
        grafter = _make(Grafter, plan.proto, bool(pickler.fix_imports))
        grafter.idle = idle
    else:
        grafter.has_names = None
        grafter.has_other = grafter.is_spliced = False
        grafter.held.clear()
        grafter.asked = 0
    grafter.pickler = pickler
    grafter.plan = plan
    grafter.known = known
    grafter.memo_before = memo
    return grafter


def use(grafter: Any, pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], known: dict[Any, Any]) -> None:
    """Make a C pickler ready for another piece of work; without a `memo` it keeps its own."""
    grafter.pickler = pickler
    grafter.plan = plan
    grafter.known = known
    grafter.memo_before = memo
    grafter.is_spliced = False
    grafter.held.clear()
    grafter.asked = 0


class _Collected:
    """A `Held` for any amount, which takes less time: write() is a list's append()."""

    __slots__ = ("clear", "pieces", "room", "write")

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.write = self.pieces.append
        self.clear = self.pieces.clear
        self.room = sys.maxsize

    @property
    def written(self) -> int:
        return sum(map(len, self.pieces))


def take_own(pickler: Any, plan: Plan) -> tuple[Any, Callable[[Any], None], Callable[[], None], list[Any]]:
    """Return a C pickler that may be used over and over for the same `pickler`, and may write any amount.

    With it come its `dump` and `clear_memo`, and its pieces: CPython's caches do not find attributes of its like.
    """
    grafter = _make(Grafter, plan.proto, fix_imports=True, held=_Collected())
    grafter.has_names = grafter.is_large = grafter.is_touched = False
    grafter.times = 0
    use(grafter, pickler, plan, {}, {})
    return grafter, grafter.dump, grafter.clear_memo, grafter.pieces


class _Joined(BytesIO):
    """A `Held` for what needs no mending, which joins pieces as they come: each takes the memory of the last one."""

    pieces: tuple[bytes, ...] = ()  # nobody asks for them
    room = sys.maxsize

    @property
    def written(self) -> int:
        return self.tell()


def joined(pickler: Any, plan: Plan, obj: Any) -> bytes:
    """Return what a C pickler writes of `obj`, which is known to be as Python writes it.

    Raises:
        Exception: it has given up, for whatever reason.
    """
    held = _Joined()
    grafter = _make(Grafter, plan.proto, fix_imports=True, held=held)
    grafter.pickler = pickler
    grafter.plan = plan
    grafter.known = {}
    grafter.dump(obj)
    return held.getvalue()


def _make(cls: Any, proto: int, fix_imports: bool, held: Any = None) -> Any:
    if held is None:
        held = Held()
    grafter = cls(held, proto, fix_imports, _refuse if proto >= 5 else None)
    grafter.held = held
    grafter.pieces = held.pieces
    return grafter


def take_table(pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], known: dict[Any, Any]) -> Any:
    """Return a `_TableGrafter`, as `take` does."""
    grafter = _make(_TableGrafter, plan.proto, bool(pickler.fix_imports))
    grafter.dispatch_table = grafter.table = table = _Table(pickler, plan, memo)
    grafter.dump_seeking = _dump_importing(table.seek)
    grafter.idle = grafter.has_names = None
    use(grafter, pickler, plan, memo, known)
    return grafter


def take_asking(pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], known: dict[Any, Any]) -> Any:
    """Return an `_AskingGrafter`, as `take` does."""
    grafter = _make(_AskingGrafter, plan.proto, bool(pickler.fix_imports))
    grafter.idle = None
    grafter.reducers = {}
    use(grafter, pickler, plan, memo, known)
    return grafter


def give_back(grafter: Any) -> None:
    """Keep a C pickler that has written little, and the memo of which nobody wants any more, for the next time."""
    held = grafter.held
    idle = grafter.idle
    if idle is not None and held.written < MUCH and len(idle) < 4 and grafter.__sizeof__() < LARGE_TABLE:
        grafter.pickler = grafter.plan = grafter.known = grafter.memo_before = None
        grafter.clear_memo()
        held.pieces.clear()
        idle.append(grafter)


def prepare_to_keep(grafter: Any) -> None:
    """Drop all but the memo, before a C pickler is kept for that."""
    grafter.pickler = grafter.plan = grafter.known = grafter.memo_before = None
    if grafter.table is not None:
        del grafter.dispatch_table, grafter.table, grafter.dump_seeking
    grafter.pieces.clear()


MUCH: Final = 64 << 10
#: A table of the memo stays as large as it once was; of more than 200 entries, it takes longer to clear than to make.
LARGE_TABLE: Final = 10 << 10


#: One of up to 20 entries; they are fetched sooner than left there.
SMALL_TABLE: Final = 1 << 10


def is_written(grafter: Any, obj: Any) -> bool:
    """Let C write `obj`; False if it gave up, for whatever reason: Python will find the same, or manage.

    Raises:
        BeginAgain: another kind of C pickler would be faster, or need not give up.
    """
    memo = grafter.memo_before
    try:
        if memo:
            if not is_usual_memo(grafter.pickler, memo):
                return False
            if not are_fetched(map(itemgetter(1), memo.values()), grafter.plan.rewrites):
                return False
            grafter.memo = memo
        dump(grafter, obj)
    except BeginAgain:
        raise
    except Exception as exc:
        if type(exc) is not RecursionError and is_interrupt(exc):
            raise
        return False
    return True


def dump(grafter: Any, obj: Any) -> None:
    """Let C write `obj`, behind what it has memoized.

    Raises:
        BeginAgain: as `is_written`.
        Exception: it has given up, for whatever reason.
    """
    if grafter.table is None:
        (_dump_spliced if grafter.is_spliced else _dump)(grafter, obj)
        return
    try:
        grafter.dump_seeking(grafter, obj)
    except Exception as exc:
        if grafter.table.has_other and not is_interrupt(exc):  # C says that the import failed
            raise BeginAgain(take_asking) from None
        raise


def may_be_fetched(grafter: Any, obj: Any) -> bool:
    """Tell whether a C pickler may have memoized an object, all that it refers to being written: it would fetch it.

    Args:
        grafter: the C pickler, what it wrote before being of no more use.
        obj: a tuple of a few objects.
    """
    grafter.held.clear()
    grafter.fast = True  # nothing more is memoized
    try:
        dump(grafter, obj)
    except (Refused, BeginAgain):
        return False
    except Exception as exc:
        if is_interrupt(exc):
            raise
        return True
    finally:
        grafter.fast = False
    data = b"".join(grafter.pieces)
    return data[-3:-2] == BINGET or data[-6:-5] == LONG_BINGET


def written_by(
    pickler: Any,
    plan: Plan,
    memo: dict[int, tuple[int, Any]],
    known: dict[Any, Any],
    obj: Any,
    args: tuple[Any, ...] | None = None,
    kind: Callable[..., Any] = take,
    room: int = ROOM,
) -> Any:
    """Let a C pickler write `obj`, and return it; None if it gave up.

    Args:
        pickler, plan, memo, known: as for `take`.
        obj: the object.
        args: what is in the prefix; None if there is none.
        kind: what gives the C pickler that begins.
        room: how many bytes are held.

    Raises:
        TooMuch: there are more, and that is less than otherwise would be held.
    """
    while True:
        grafter = kind(pickler, plan, memo, known)
        grafter.held.room = room
        try:
            what = obj if args is None else Splice(grafter, args, state=obj)
            if is_written(grafter, what):
                return grafter
        except BeginAgain as again:
            (kind,) = again.args
        else:
            if room < ROOM and grafter.held.written > room:
                raise TooMuch
            return None


def is_usual_memo(pickler: Any, memo: dict[int, tuple[int, Any]]) -> bool:
    """Tell whether a memo is as memoize() makes it.

    C takes the keys from the objects, not the other way round, and never looks for atoms there, as Python does.
    """
    n = len(memo)
    objs = [*map(itemgetter(1), memo.values())]
    indices = [*map(itemgetter(0), memo.values())]
    return (
        (indices == [*range(n)] or (id(pickler) in unordered and _are_all(indices, n)))
        and [*map(id, objs)] == [*memo]
        and id(()) not in memo
        and _UNMEMOIZED.isdisjoint(map(id, map(type, objs)))
    )


def _are_all(indices: list[Any], n: int) -> bool:
    """Tell whether `n` objects are all ints below that."""
    return {*map(type, indices)} == {int} and min(indices) == 0 and max(indices) == n - 1 and len({*indices}) == n


#: By the id of a pickler that dumps, from which entry on its memo is in no order (`lazymemo.join_memo`).
unordered: Final[dict[int, int]] = {}
_UNMEMOIZED: Final = frozenset(map(id, (type(None), bool, int, float)))


def _find_prefix(proto: int) -> bytes:
    """Return what C writes of a prefix before the padding."""
    held = Held()
    grafter: Any = Grafter(held, proto)
    grafter.held = held
    grafter.known = {}
    grafter.asked = 0
    grafter.dump(Splice(grafter, (LARGE,) if proto >= 4 else ()))
    return bytes(held.pieces[0] if proto >= 4 else held.pieces[0][:-1])


prefixes: Final = [_find_prefix(proto) for proto in range(6)] if CPickler is not None else []
