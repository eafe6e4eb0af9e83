"""The C pickler, held to what is known to be as Python would write it: it gives up at anything else.

    take(pickler) --> a C pickler ----> is_written(obj): its `pieces`, one for each frame and each large bytes
                      |    asks once for each instance, function and class, or
                      +-> the other kind: once for each type, for many instances
    Splice(...)   --> what it is given to write items or an object behind a prefix

It asks about all that is no exact builtin.  It may reduce instances if `instances.names` knows their type, and save
classes and functions if they are found under their name in an imported module.  So no code of others runs in it.

*The prefix.*  A `Splice` reduces to a call with a large bytes, some padding, and what is to be saved as items or state.
The large bytes closes C's frame, the padding fills the next one as far as ours is, and `fast` keeps all of that out of
the memo: it is switched off when C asks for the first item.

Not for: what C writes otherwise than Python although it knows the object (`differences`).
"""

from __future__ import annotations

import builtins
import copyreg
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator
from itertools import chain
from operator import itemgetter, methodcaller
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from . import hooks
from ._stdlib import NO_VALUE, CPickler, entry_of
from .hooks import Plan
from .instances import LOOKED_INTO, METACLASSES, is_bare, is_somebodys, names
from .last import last

__all__ = [
    "LARGE",
    "LARGE_TABLE",
    "METACLASS_IDS",
    "MUCH",
    "ROOM",
    "SMALL_TABLE",
    "Grafter",
    "Held",
    "ManyInstances",
    "Splice",
    "give_back",
    "is_by_name",
    "is_found",
    "is_refused",
    "is_written",
    "prefixes",
    "prepare_to_keep",
    "reducer",
    "take",
    "take_own",
    "take_table",
    "use",
    "written_by",
]

_pickle: Any = pickle  # its dispatch_table is no public name
#: How many bytes of what may still be given up are held.
ROOM: Final = 64 << 20
LARGE: Final = bytes(64 << 10)  # the size from which on bytes stand outside frames


class _Refused(Exception):
    """The C pickler has met something that only Python can save, or has written too much."""


def _refuse(obj: Any) -> None:
    raise _Refused


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
            raise _Refused


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
        if items is not None:
            self.reduce: tuple[Any, ...] = (_prefix, args, None, chain(started, items))
        elif pairs is not None:
            self.reduce = (_prefix, args, None, None, chain(started, pairs))
        else:
            self.reduce = (_prefix, args, state, started)


def _prefix() -> None:
    """Be the function in the prefix; nobody calls it."""


def _begin_prefix(splice: Splice) -> tuple[Any, ...]:
    """Return what a splice reduces to; nothing of the prefix is memoized."""
    splice.grafter.fast = True
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
        known: the types that it may reduce, by id, since the hash of a type may be anybody's; see `_hiding`.
        asked: how many instances it has asked about.
        held, pieces: what it writes to.
        is_spliced: whether there is a prefix; from protocol 4 on the first two pieces are its own.
        has_names: whether one of the rule's names may be in its memo; None if that is not known (`differences`).
        table: None.
    """

    asked = 0
    has_names: bool | None = None
    is_spliced = False
    table: Any = None

    def reducer_override(self, obj: Any) -> Any:
        """Let C reduce `obj` in its own way, or give up."""
        t = type(obj)
        key = id(t)
        known = self.known
        if key in known:
            self.asked += 1
            if self.asked > _MANY and self.plan.proto >= 4:
                if self.held.written < MUCH:
                    raise ManyInstances
                self.asked = -sys.maxsize  # it is only going to be more
            hiding = known[key]
            if (not hiding or (type(state := obj.__dict__) is dict and hiding.isdisjoint(state))) and (
                t not in LOOKED_INTO or LOOKED_INTO[t](obj)
            ):
                return NotImplemented
        elif t is Splice:
            return _begin_prefix(obj)
        elif obj is _prefix:
            return NotImplemented
        elif t is FunctionType or t is BuiltinFunctionType or key in METACLASS_IDS:
            plan = self.plan
            if id(obj) not in plan.graft_rule.unwanted[plan.proto] and is_by_name(self.pickler, obj, t):
                return NotImplemented
        elif id(type(t)) in METACLASS_IDS:
            hiding = _hiding(self.pickler, self.plan, t)
            if hiding is not None:
                known[key] = known[t] = hiding  # the second one keeps the type alive
                return self.reducer_override(obj)
        raise _Refused


METACLASS_IDS: Final = frozenset(map(id, METACLASSES))


class ManyInstances(Exception):
    """There are so many instances that it pays to start again with a `_TableGrafter`, which C asks once for a type."""


class _TableGrafter(CPickler or object):  # type: ignore[misc]  # there may be none
    """A `Grafter` for many instances: it is asked about their types, but not about functions and classes.

    Those that C has written are looked at afterwards (`made_ours`).
    """


class _Table(dict[type, Any]):
    """The `dispatch_table` of a `_TableGrafter`: how to reduce instances of each type that has been met."""

    def __init__(self, pickler: Any, plan: Plan) -> None:
        self.pickler = pickler
        self.plan = plan
        self[Splice] = _begin_prefix
        self.counted = 1
        self.is_sure = not copyreg._extension_registry  # type: ignore[attr-defined]  # their names are no globals

    def __missing__(self, t: type) -> Any:
        if id(t) in METACLASS_IDS or t is BuiltinFunctionType:
            raise KeyError(t)  # C saves classes by name then, and asks functions, as Python does
        if id(type(t)) in METACLASS_IDS and is_by_name(self.pickler, t, type(t)):
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
    is_pure = LOOKED_INTO.get(t)
    if not hiding:
        if is_pure is None:
            return reduce

        def looked_into(obj: Any) -> Any:
            if is_pure(obj):
                return reduce(obj)
            raise _Refused

        return looked_into
    isdisjoint = hiding.isdisjoint
    if is_pure is not None or not is_bare(t):

        def looked_at(obj: Any) -> Any:
            if type(state := obj.__dict__) is dict and isdisjoint(state) and (is_pure is None or is_pure(obj)):
                return reduce(obj)
            raise _Refused

        return looked_at
    newobj = copyreg.__newobj__  # type: ignore[attr-defined]
    args = (t,)

    def reduce_bare(obj: Any) -> Any:
        state = obj.__dict__
        if type(state) is not dict:
            raise _Refused
        if not state:
            return reduce(obj)
        if isdisjoint(state):
            return newobj, args, state  # sooner than object.__reduce_ex__ looks for all that there is not
        raise _Refused

    return reduce_bare


def reducer(pickler: Any, plan: Plan, t: type) -> Callable[[Any], Any] | None:
    """Return what reduces instances of `t` and runs no code of others, or raises; None if that may be anybody's.

    Args:
        pickler: in whose place it is done, with the dispatch entries and rule that stock has.
        plan: its plan.
        t: a type, whose own type is one of `METACLASS_IDS`.
    """
    if issubclass(t, PurePath):  # 3.12 asks what its segments start with
        return None
    hiding = _hiding(pickler, plan, t)
    return None if hiding is None else _reduce(t, hiding, plan.proto)


def is_refused(pickler: Any, plan: Plan, t: type) -> bool:
    """Tell whether C gives up at every instance of a type that it has no opcodes for."""
    if t is FunctionType or t is BuiltinFunctionType or id(t) in METACLASS_IDS:
        return False
    try:
        return id(type(t)) not in METACLASS_IDS or _hiding(pickler, plan, t) is None
    except Exception:  # as if C had asked (`is_written`)
        return True


def _hiding(pickler: Any, plan: Plan, t: type) -> frozenset[str] | None:
    """Tell whether instances of `t` may be reduced by anybody, as `instances.names` does, for this pickler."""
    if is_somebodys(t):  # what comes next takes 5 us
        last.gave_up_for = id(t)
        return None
    if (
        plan.proto < 2
        or pickler.dispatch.get(t) is not None
        or (plan.is_choice is not None and plan.is_choice(t))
        or (plan.graft_rule is not None and plan.graft_rule.refuses is not None and plan.graft_rule.refuses(t))
    ):
        return None
    entry = entry_of(copyreg.dispatch_table, t)
    if _reduce_entry(pickler, t) is not entry or (entry is None and NO_VALUE is not None):  # None is no function
        return None
    return names(t, None if entry is NO_VALUE else entry)


def _reduce_entry(pickler: Any, t: type) -> Any:
    """Return the entry of `t` in the `dispatch_table` of the pickler or of copyreg; `_ANYBODYS` if that runs code."""
    if any("dispatch_table" in vars(c) for c in type(pickler).__mro__):
        return _ANYBODYS
    table = pickler.__dict__.get("dispatch_table", _pickle.dispatch_table)  # stock's own name for copyreg's
    if type(table) is not dict and (type(table) is not ChainMap or any(type(m) is not dict for m in table.maps)):
        return _ANYBODYS
    return entry_of(table, t)


_ANYBODYS: Any = object()


def is_by_name(pickler: Any, obj: Any, t: type) -> bool:
    """Tell whether C may save a class or a function by its name, which is found without importing anything."""
    entry = pickler.dispatch.get(t)
    if entry is None:
        if t is FunctionType or t is type or _reduce_entry(pickler, t) is not NO_VALUE or t in copyreg.dispatch_table:
            return False
        if t is BuiltinFunctionType and type(obj.__self__) is not ModuleType:  # a method
            return False
    elif entry not in hooks.saved_by_name or not hooks.saved_by_name[entry](pickler, obj):
        return False
    return is_found(pickler, obj)


def is_found(pickler: Any, obj: Any) -> bool:
    """Tell whether stock's save_global() finds a class or function under its name, and imports nothing for that."""
    name = obj.__module__
    module = sys.modules.get(name) if type(name) is str else None
    return (
        type(module) is ModuleType
        and type(obj.__qualname__) is str
        and module.__dict__.get(obj.__qualname__) is obj
        and builtins.__import__ is _import
        and type(pickler).save_global in hooks.known_save_globals
        and "save_global" not in pickler.__dict__
    )


_import = builtins.__import__


#: C picklers that nobody uses now, by protocol, with `fix_imports` and without: to make one takes 0.6 us.
_idle: Final[tuple[list[Any], ...]] = tuple([] for _ in range(12))


def take(pickler: Any, plan: Plan, memo: dict[int, tuple[int, Any]], known: dict[Any, frozenset[str]]) -> Any:
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
        grafter.is_spliced = False
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


def take_own(pickler: Any, plan: Plan, idle: list[Any]) -> Any:
    """Return a C pickler that may be used over and over for the same `pickler`, and may write any amount."""
    grafter = _make(Grafter, plan.proto, fix_imports=True, held=_Collected())
    grafter.idle = idle
    grafter.has_names = grafter.is_large = False
    grafter.times = 0
    use(grafter, pickler, plan, {}, {})
    return grafter


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
    grafter.dispatch_table = grafter.table = _Table(pickler, plan)
    grafter.idle = grafter.has_names = None
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
        del grafter.dispatch_table, grafter.table
    grafter.pieces.clear()


MUCH: Final = 64 << 10
#: A table of the memo stays as large as it once was; of more than 200 entries, it takes longer to clear than to make.
LARGE_TABLE: Final = 10 << 10


#: One of up to 20 entries; they are fetched sooner than left there.
SMALL_TABLE: Final = 1 << 10


def is_written(grafter: Any, obj: Any) -> bool:
    """Let C write `obj`; False if it gave up, for whatever reason: Python will find the same, or manage.

    Raises:
        ManyInstances: another kind of C pickler would be faster.
    """
    memo = grafter.memo_before
    try:
        if memo:
            if not _is_usual(memo):
                return False
            grafter.memo = memo
        grafter.dump(obj)
    except ManyInstances:
        raise
    except Exception:
        return False
    return True


def written_by(
    pickler: Any,
    plan: Plan,
    memo: dict[int, tuple[int, Any]],
    known: dict[Any, Any],
    obj: Any,
    args: tuple[Any, ...] | None = None,
) -> Any:
    """Let one C pickler or the other write `obj`, behind the prefix with `args`, and return it; None if it gave up."""
    for kind in (take, take_table):
        grafter = kind(pickler, plan, memo, known)
        try:
            what = obj if args is None else Splice(grafter, args, state=obj)
            return grafter if is_written(grafter, what) else None
        except ManyInstances:
            continue
    raise AssertionError("not reached")


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
