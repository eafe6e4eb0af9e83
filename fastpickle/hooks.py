"""Which shortcuts a pickler allows: decided once per dump, and again after code that is not ours has run (`doubts`).

    pickler --(what could see a shortcut: overrides, dispatch entries, instance attributes)--> plan(pickler)

A *plan* is a dict from each type whose objects may be saved without asking anybody to its saver (None for atoms, which
the loop itself writes).  The empty plan, `PLAIN`, allows nothing: the pickler works as stock does, hook by hook.

Shortcuts replace calls that stock makes.  So one is allowed only if it is *known* that nobody listens to that call:

| hook                                                   | where                        | then              |
|--------------------------------------------------------|------------------------------|-------------------|
| `save` (unless a library's that is known), `memoize`   | class or instance            | `PLAIN`           |
| (unless it is one with that, as is `_batch_setitems`), |                              |                   |
| `put`, `get`, `persistent_id`, `save_reduce`,          |                              |                   |
| `_batch_appends`, `_batch_setitems`, `_BATCHSIZE`,     |                              |                   |
| `reducer_override`, and from 3.13 on                   |                              |                   |
| `_save_bytes_no_memo` and the like: what stock's       |                              |                   |
| methods are made of, `_stdlib.PARTS_OF_METHODS`        |                              |                   |
| any of these that cannot be had of the class, or that  | class                        | `PLAIN`           |
| has no hash                                            |                              |                   |
| `__getattr__`, `__getattribute__`                      | class                        | `PLAIN`           |
| `dispatch` of a class that is no dict, nor a library's | class or instance            | `PLAIN`           |
| `dispatch` that is a property                          | class                        | `PLAIN`           |
| `dispatch`, whatever it is                             | metaclass                    | `PLAIN`           |
| `dispatch` entry of an atom (None, bool, int, ...)     | the dict, wherever it is     | `PLAIN`           |
| `dispatch` entry of a container (list, dict, ...)      | the dict, wherever it is     | that type left out|
| `write`, `framer`, `memo`, `proto`, `bin`, `fast`      | instance, not what stock set | `PLAIN`           |
| a file that hands what is written on to somebody's     | `framer.file_write`          | `PLAIN`           |
| code, where there are no frames                        |                              |                   |
| protocol 0                                             | `proto`                      | `PLAIN`           |

`dispatch_table`, `save_global` and `save_pers` are not in the table: they are asked only about objects that no plan
contains.

The C pickler (`graft`) stands for all of a pickler's savers at once, so a plan allows grafts, by its `graft_rule`, only
if all dispatch entries of its types are stock's, or a library's that tells a rule.  What else forbids them:

| what                                           | forbids                            | test_graft.py                  |
|------------------------------------------------|------------------------------------|--------------------------------|
| FASTPICKLE_PURE=1, no `_pickle`, PyPy          | every graft                        | test_switched_off_by_...       |
| no GIL, unless FASTPICKLE_PURE=0               | every graft: C reads what is freed | test_no_gil.py                 |
| `fastpickle_grafts = False`, class or instance | every graft                        | test_switched_off              |
| a row of the table above                       | every graft: C asks nobody         | test_overridden_method         |
| entry of a type that C does not ask about      | every graft                        | test_dispatch_entry            |
| `dispatch`, `dispatch_table`, copyreg          | objects of that type               | test_entry_of_a_type_...       |
| `save_global`, `__import__` replaced           | classes, functions, what names one | test_save_global_...           |
| a class with a reduce ... of its own, but for  | its instances                      | test_custom_code_runs_once     |
| one that only reads (`bytecode`)               |                                    | test_bytecode.py               |
| a file neither in memory nor a real one        | every graft: it sees other writes  | test_file_of_ones_own          |
| `_Framer` changed                              | every graft                        | test_framer_that_was_changed   |
| a memo that memoize() has not made             | every graft: C keeps it otherwise  | test_pickler: a memo with gaps |
| a recursion limit above 10,000, a small stack  | every graft: C needs the stack     | test_deep_structures_...       |

Hooks are compared by `==`, all at once, which for functions is `is`: one with an `__eq__` that says yes to stock's own
function is taken for that.

Not for: saving anything, and not for knowing libraries: those tell about themselves (`backends`) through
`known_saves` and `known_entries`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import FileIO
from operator import attrgetter, itemgetter
from types import BuiltinMethodType, FunctionType, NoneType
from typing import Any, Final

from ._stdlib import (
    FRAMES_ARE_BYTESIO,
    NO_VALUE,
    PARTS_OF_METHODS,
    CPickler,
    Framer,
    StockPickler,
    is_usual_file,
    stock_methods,
)
from .interrupts import is_interrupt
from .older import batch_methods
from .rules import LIBRARIES, GraftRule, HashRule, load_library

__all__ = [
    "ASIDE",
    "AS_LAST",
    "ATOMS",
    "ATOM_IDS",
    "COLD",
    "CONTAINER_IDS",
    "FEW",
    "INSTANCE_HOOKS",
    "NOBODYS",
    "NOT_FOR_C",
    "NUMBER_IDS",
    "PLAIN",
    "PLAIN_IDS",
    "STOCK_ENTRIES",
    "STOCK_RULE",
    "STOCK_TABLE",
    "Plan",
    "Reduced",
    "Saver",
    "Write",
    "are_fetched",
    "are_known",
    "by_save",
    "choice_savers",
    "choosy_saves",
    "container_entries",
    "dispatch_of",
    "entries_of",
    "entry_writers",
    "graft_rules",
    "hash_rules",
    "hash_savers",
    "known_entries",
    "known_save_globals",
    "known_saves",
    "known_tables",
    "learn_choosy_save",
    "learn_save",
    "looking_up",
    "may_be_known",
    "methods_of",
    "nothing_left",
    "own_save",
    "plain_dicts",
    "plan",
    "plan_of",
    "rewriting_saves",
    "saved_by_name",
    "savers",
    "warning_entries",
    "writers",
]

#: Appends to the current frame, or to the file where there are no frames.
Write = Callable[[bytes], Any]
#: What is to be saved for an object that goes through a reduce; a plain tuple, since one with names takes 0.3 us more:
#:   its parts, the opcode that makes it of them, and what 3.14 calls them, and it, in its notes;
#:   what saves its items (None if there are none), but for a few that it gives back with what ends them, or gives what
#:   is to be called for that, and with what;
#:   its state (or the function that sets it, the object and the state; or nothing), and the opcode that sets that.
_Finish = Callable[[], "tuple[list[Any], bytes] | tuple[Callable[..., Any], tuple[Any, ...]] | None"]
Reduced = tuple[tuple[Any, ...], bytes, tuple[str, ...], str, "_Finish | None", tuple[Any, ...], bytes]
#: Saves one object that is not in the memo, the frame of which has been committed if it was full, or tells what is to
#: be saved for it: saver(pickler, plan, obj, write), with the `plan` in force and the `write` of the current frame.
Saver = Callable[[Any, "Plan", Any, Write], "Reduced | None"]


#: The `save` methods, of those in `known_saves`, that do something of their own for some types, and what tells which.
choosy_saves: Final[dict[Any, Callable[[type], Any]]] = {}
#: Those of them that look for such an object first of all, so that it is written again if it is in the memo, and no
#: frame is committed before; each with what tells of a pickler whether its types are those that `choosy_saves` knows.
rewriting_saves: Final[dict[Any, Callable[[Any], bool]]] = {}
#: Of some of them, what does the same for such an object while a plan is in force, or tells that it has done nothing.
choice_savers: Final[dict[Any, Callable[[Any, Plan, Any], bool]]] = {}


#: The `save` methods, of those in `known_saves`, of picklers that make digests, each with what these do otherwise.
hash_rules: Final[dict[Any, HashRule]] = {}


class Plan(dict[type, "Saver | None"]):
    """The types that may be saved without asking any hook, each with its saver (None: an atom).

    It holds for one protocol, one set of dispatch entries, and one way to save everything else.

    Attributes:
        proto: the protocol.
        save: the class's `save`, for where the plan is no longer in force.
        other: saves an object of any other type.
        is_choice: tells whether an object of that type is to go through the class's `save` after all; or None.
        rewrites: tells whether it is to go there first of all, even if it is in the memo; or None.
        is_choice_right: tells of a pickler whether its `save` goes by the same types now; or None.
        save_choice: saves an object of such a type as the class's `save` does, or tells that it has not; or None.
        save_list, save_dict, save_tuple: the savers of the most frequent containers, or `other`.
        short_lists, short_dicts, short_tuples: whether these are saved as stock does, and so may be part of the loop.
        is_plain_dict: tells of a pickler and a dict whether a library's entry would do now what stock does; or None.
        small_rule: what is to be asked where a whole dump of these, if it is small, is written at once (`small`); None
            where it must not.
        is_for_brief: whether what a reduce gave may be written at once, if it is brief (`brief`).
        containers: which of list, dict, tuple, set and frozenset are saved as stock does, and so may be part of a run.
        graft_rule: what the C pickler is to be asked where it takes over; None where it must not (`graft`).
        hash_rule: what a pickler of digests does otherwise; None for all others, whose texts are memoized.
        goes_by_hooks: whether it stands for no shortcut, but for a way to go hook by hook (`PLAIN` and the like).
        in_doubt: the empty plan that stands for this one from when code that is not ours runs until it is looked at.
        doubted: the plan that this one stands for in that way, if it does.
    """

    __slots__ = (
        "containers", "doubted", "goes_by_hooks", "graft_rule", "hash_rule", "in_doubt", "is_choice", "is_choice_right",
        "is_for_brief", "is_plain_dict", "other", "proto", "rewrites", "save", "save_choice", "save_dict", "save_list",
        "save_tuple", "short_dicts", "short_lists", "short_tuples", "small_rule",
    )  # fmt: skip

    def __init__(self, proto: int, save: Any, other: Saver, doubted: Plan | None = None) -> None:
        self.proto = proto
        self.save = save
        self.other: Callable[..., Reduced | None] = other
        self.is_choice = choosy_saves.get(save)
        self.is_choice_right = rewriting_saves.get(save)
        self.rewrites = None if self.is_choice_right is None else self.is_choice
        self.save_choice = choice_savers.get(save)
        self.containers: frozenset[type] = frozenset()
        self.save_list = self.save_dict = self.save_tuple = other
        self.short_lists = self.short_dicts = self.short_tuples = self.is_for_brief = False
        self.is_plain_dict: Any = None
        self.graft_rule: Any = None
        self.small_rule: Any = None
        self.hash_rule = hash_rules.get(save)
        self.doubted = doubted
        self.in_doubt = self
        self.goes_by_hooks = False


def by_save(pickler: Any, plan: Plan, obj: Any, write: Write) -> None:
    """Save an object through the pickler's own `save`: a saver for what is in no plan."""
    pickler.save(obj)


PLAIN: Final = Plan(0, stock_methods["save"], by_save)  # assumes nothing, so there is nothing to doubt

#: The same where an object that makes a plan worth its while may still come (`hashing`).
COLD: Final = Plan(0, stock_methods["save"], by_save)

#: The same while a few objects are saved that have reduces of their own: there is a plan as soon as one gives much.
FEW: Final = Plan(0, stock_methods["save"], by_save)

#: The same while a function that is not ours saves an object: the parts go hook by hook, but for what is worth a plan.
ASIDE: Final = Plan(0, stock_methods["save"], by_save)

#: The same in a dump that is taken to be as little as the last one like it: no part is asked whether it is worth a
#: plan, up to one that is longer, or to so many; from there on it is FEW or ASIDE.
AS_LAST: Final = Plan(0, stock_methods["save"], by_save)

#: What is no plan: a dump is not written, and C, if it were asked, would give it up, too (`small`).
NOT_FOR_C: Final = Plan(0, stock_methods["save"], by_save)

for _way in (PLAIN, COLD, FEW, ASIDE, AS_LAST):
    _way.goes_by_hooks = True

#: The savers of containers by type, each with the lowest protocol that it can write.  `pickler` fills it.
savers: Final[dict[type, tuple[int, Saver]]] = {}

#: The same for picklers that make digests, atoms too.  `hashing` fills it.
hash_savers: Final[dict[type, tuple[int, Saver]]] = {}

#: Atoms, the first of `_TYPES`, with the lowest protocol at which stock writes them without a reduce.
ATOMS: Final[dict[type, int]] = {NoneType: 0, bool: 0, int: 0, float: 0, str: 0, bytes: 3}
#: They, and those that are not memoized, by id: to look a type up is to ask for its hash, which may be anybody's.
ATOM_IDS: Final = frozenset(map(id, ATOMS))
NUMBER_IDS: Final = ATOM_IDS - {id(str), id(bytes)}
CONTAINER_IDS: Final = frozenset(map(id, (list, dict, tuple, set, frozenset)))
PLAIN_IDS: Final = ATOM_IDS | CONTAINER_IDS | {id(bytearray)}

#: The `save` methods that do nothing of their own for the types of a plan, and for each the saver of what is in none.
#: `pickler` adds its own, and libraries theirs.
known_saves: Final[dict[Any, Saver]] = {stock_methods["save"]: by_save}
#: The `save` of `pickler`, which does nothing else.
own_save: Any = None
#: Dispatch entries of libraries, by type and function, each with the saver that may stand for it.
known_entries: Final[dict[tuple[type, Any], Saver]] = {}
#: Entries of libraries for dicts, that do most often what stock does, and for each what tells of a pickler and a dict
#: whether it will.
plain_dicts: Final[dict[Any, Callable[[Any, dict[Any, Any]], bool]]] = {}
#: The classes of dispatch tables whose get() gives the entries of `_TYPES` as indexing does.
known_tables: Final[set[type]] = {dict}


#: By the id of a class's `dump` that calls ours, what writes the whole dump of one of its picklers, if it can be told
#: that it is dropped then, memo and all: is_written(pickler, obj), called by our `dump`.
writers: Final[dict[int, Callable[[Any, Any], bool]]] = {}

#: Entries, by id, that warn of the place from which `save` was called, two frames up: they are called by it.
warning_entries: Final[set[int]] = set()

#: By the id of a library's dispatch entry, which its backend keeps, what writes an object as that does, but for what
#: comes at the end, and gives back what does that: writer(pickler, obj, plan); None if nothing is written.  The plan in
#: force may be left out, if that is not known.
entry_writers: Final[dict[int, Callable[..., Callable[[], None] | None]]] = {}


def nothing_left() -> None:
    """Do what comes at the end: nothing, and nobody's code has run before."""


#: The rules of libraries' dispatch entries, by type and function, beside that of stock's own.
graft_rules: Final[dict[tuple[type, Any], GraftRule]] = {}
#: That of stock's own entries, with nothing to ask.
STOCK_RULE: Final = GraftRule()
#: Dispatch entries that save a class or function by its name, and for each what tells whether it will.
saved_by_name: Final[dict[Any, Callable[[Any, Any], bool]]] = {
    stock_methods["save_type"]: lambda pickler, obj: True,
    stock_methods["save_global"]: lambda pickler, obj: True,
}

#: The `save_global` methods that do what stock's does for what is found under its name.
known_save_globals: Final[set[Any]] = {stock_methods["save_global"]}

#: Attributes of an instance that are hooks.
INSTANCE_HOOKS: Final = frozenset(
    ("save", "memoize", "put", "get", "persistent_id", "save_reduce", "_batch_appends", "_batch_setitems",
     "_BATCHSIZE", "reducer_override", *PARTS_OF_METHODS)
)  # fmt: skip
_METHODS: Final = (
    "memoize", "put", "get", "persistent_id", "save_reduce", "_batch_appends", "_batch_setitems", "_BATCHSIZE",
    "__getattribute__", *PARTS_OF_METHODS,
)  # fmt: skip
#: The methods of a class that are hooks, but for `save`.
methods_of: Final = attrgetter(*_METHODS)
_called_by_rules: Final = attrgetter("memoize", "_batch_setitems")
_MEMOIZE: Final = _METHODS.index("memoize")
_SET_ITEMS: Final = _METHODS.index("_batch_setitems")
_STOCK_METHODS: Final = methods_of(StockPickler)
#: Those of classes that override none: on our base, or under install(), and on stock's.
NOBODYS: Final = (
    tuple(batch_methods.get(name, method) for name, method in zip(_METHODS, _STOCK_METHODS, strict=True)),
    _STOCK_METHODS,
)
_CALLED_BY_RULES: Final = tuple((m[_MEMOIZE], m[_SET_ITEMS]) for m in NOBODYS)

_TYPES: Final[tuple[type, ...]] = (NoneType, bool, int, float, str, bytes, bytearray, list, tuple, dict, set, frozenset)
#: The dispatch entries of `_TYPES`.
entries_of: Final = itemgetter(*_TYPES)
STOCK_ENTRIES: Final[tuple[Any, ...]] = tuple(  # not from the table: dill may have edited it already
    stock_methods["save_" + {"NoneType": "none", "int": "long"}.get(t.__name__, t.__name__)] for t in _TYPES
)
#: What stock's table has for these types, and for classes.
STOCK_TABLE: Final[dict[type, Any]] = {
    **dict(zip(_TYPES, STOCK_ENTRIES, strict=True)),
    type: stock_methods["save_type"],
}
#: Functions in dispatch tables that look an object up in the memo, and see nothing else of it, by their ids.
looking_up: Final[dict[int, Any]] = {id(f): f for f in stock_methods.values()}
#: The ids of the entries of containers that a plan may have a saver for, but of digests; the others are anybody's.
container_entries: Final = {id(entry) for t, entry in zip(_TYPES, STOCK_ENTRIES, strict=True) if id(t) in CONTAINER_IDS}
_framer_write: Final = Framer.write
_stock_save: Final = stock_methods["save"]
_plans: Final[dict[tuple[int, Any, tuple[Any, ...]], Plan]] = {}
#: Those for tables with entries that may be anybody's, by the ids of all: one that is there later with the id of one of
#: these is called, as that one; what is known is kept, so its id is its own.
_plans_of_others: Final[dict[tuple[Any, ...], Plan]] = {}
_MOST_OF_OTHERS: Final = 64
#: The last plan that was found there, and what it was found for, with the class's methods, which are known.
_last: tuple[Any, Any, int, Any, Plan] = (None, None, 0, None, PLAIN)


def plan(pickler: Any) -> Plan:
    """Return the shortcuts that `pickler` allows now, the same object as long as they stay the same.

    Costs about 0.9 us, and runs no code of the pickler's.

    Args:
        pickler: a `pickle._Pickler` or an instance of a subclass.

    Returns:
        A plan for its protocol, or `PLAIN`.
    """
    global _last
    cls = type(pickler)
    try:
        save = cls.save
        methods = methods_of(cls)
        last = _last  # nearly always the same as for the last pickler, and compared sooner than looked up
        is_last = save is last[0] and methods == last[1]
        if (
            (not is_last and ((save not in known_saves and not learn_save(save)) or not are_known(cls)))
            or getattr(pickler, "__getattr__", None) is not None  # before the next: it would be called for that
            or getattr(pickler, "reducer_override", NO_VALUE) is not NO_VALUE
        ):
            return PLAIN  # before the instance's __dict__ is asked for: but for 3.13, that makes its attributes slower
        state = pickler.__dict__
        framer = state["framer"]
        write = state["write"]
        if (
            not INSTANCE_HOOKS.isdisjoint(state)
            or state["fast"]
            or type(state["memo"] if "memo" in state else _fetch_memo(pickler)) is not dict
            or type(framer) is not Framer
            or len(framer.__dict__) != 2  # file_write and current_frame: nothing of the framer is overridden
            or write.__func__ is not _framer_write
            or write.__self__ is not framer
            or (
                framer.current_frame is None
                and (
                    type(framer.file_write) is not BuiltinMethodType
                    or (state["proto"] < 4 and _hands_on(framer.file_write.__self__))
                )
            )
        ):
            return PLAIN
        dispatch = cls.dispatch if type(cls) is type else dispatch_of(cls)  # not called for most classes
        if type(dispatch) in known_tables and "dispatch" in state:
            dispatch = state["dispatch"]
        if type(dispatch) not in known_tables:
            return PLAIN  # stock asks its get(), which may be anything
        entries = entries_of(dispatch)
        proto = state["proto"]
        if type(proto) is not int or (not state["bin"]) is not (proto == 0):
            return PLAIN
        if is_last and proto == last[2] and entries == last[3]:
            return last[4]
        found = _plans.get((proto, save, entries))
        if found is None:  # not for `_last`: an entry is anybody's, or a library's that is not known yet
            key = proto, save, len(known_entries), *map(id, entries)
            found = _plans_of_others.get(key)
            if found is None:
                found = plan_of(proto, save, entries)
                if len(_plans_of_others) >= _MOST_OF_OTHERS:
                    _plans_of_others.clear()
                _plans_of_others[key] = found
        # The methods of others are known only as long as stock's are, or they are asked each time.
        elif found.hash_rule is None and found.is_choice_right is None:
            _last = save, methods, proto, entries, found
        return found if found.is_choice_right is None or found.is_choice_right(pickler) else PLAIN
    except Exception as exc:  # something is missing, or is not what it is in stock, such as a hook that is a descriptor
        if type(exc) in (RecursionError, MemoryError) or is_interrupt(exc):
            raise
        return PLAIN


def dispatch_of(cls: Any) -> Any:
    """Return what a class has for `dispatch`; a property is not asked, since stock asks it for each object.

    None if its metaclass has one, which the class would give in place of its own, and an instance does not find.
    """
    return None if hasattr(type(cls), "dispatch") else cls.dispatch


def _hands_on(file: Any) -> bool:
    """Tell whether what is written may come to somebody's code as it is written: by a list's `append`, or a buffer."""
    return not is_usual_file(file) and type(file) is not FileIO


def are_fetched(objs: Iterable[Any], rewrites: Callable[[type], Any] | None) -> bool:
    """Tell whether all of some objects, that are in the memo, are fetched from there, by a plan's `rewrites`."""
    return rewrites is None or not any(map(rewrites, {id(t): t for t in map(type, objs)}.values()))


def are_known(cls: Any) -> bool:
    """Tell whether the methods of a class whose `save` is known are nobody's, or those of a library that go with it."""
    methods = methods_of(cls)
    rule = hash_rules.get(cls.save)
    if rule is None:
        return methods in NOBODYS
    if not rule.methods:
        rule.methods = tuple(
            (*m[:_MEMOIZE], rule.memoize, *m[_MEMOIZE + 1 : _SET_ITEMS], rule.set_items, *m[_SET_ITEMS + 1 :])
            for m in NOBODYS
        )
    return (
        methods in rule.methods
        and _called_by_rules(StockPickler) in _CALLED_BY_RULES
        and (StockPickler.save is own_save or StockPickler.save is _stock_save)
        and rule.is_right()
    )


def _fetch_memo(pickler: Any) -> Any:
    """Return the memo that the C pickler has after a graft; it is on the instance then."""
    return pickler.memo if "_fastpickle_memo" in pickler.__dict__ else None


def plan_of(proto: int, save: Any, entries: tuple[Any, ...]) -> Plan:
    """Make the plan for a protocol, a `save` and the dispatch entries of `_TYPES`, or find an equal one."""
    is_hash = save in hash_rules
    if type(proto) is not int or proto < (2 if is_hash else 0):
        return PLAIN
    if entries[: len(ATOMS)] != STOCK_ENTRIES[: len(ATOMS)]:
        return PLAIN
    found: dict[type, Saver | None] = {}
    known = []  # the entries, but for those that may be anybody's: a table must not keep them, and what they refer to
    for t, entry, stock_entry in zip(_TYPES, entries, STOCK_ENTRIES, strict=True):
        if is_hash or t not in ATOMS:
            lowest_proto, own_saver = (hash_savers if is_hash else savers)[t]
            saver = own_saver if entry is stock_entry else _saver_of(t, entry)
        else:
            saver = None
            lowest_proto = ATOMS[t]
        known.append(entry if entry is stock_entry or saver is not None else None)
        if proto >= lowest_proto and (saver is not None or t in ATOMS):
            found[t] = saver
    key = proto, save, tuple(known)
    if key not in _plans:
        new = Plan(proto, save, known_saves[save])
        new.in_doubt = Plan(proto, save, known_saves[save], doubted=new)
        if proto:  # at protocol 0 there is no other shortcut than a graft
            new.update(found)
        rule = None if is_hash else _graft_rule(entries)
        if CPickler is not None:
            new.graft_rule = new.in_doubt.graft_rule = rule
        new.containers = frozenset(t for t in (list, dict, tuple, set, frozenset) if new.get(t) is savers[t][1])
        new.save_list = new.get(list) or new.other
        new.save_dict = new.get(dict) or new.other
        new.save_tuple = new.get(tuple) or new.other
        new.short_lists = list in new.containers
        new.short_dicts = dict in new.containers
        new.is_plain_dict = plain_dicts.get(entries[_TYPES.index(dict)])
        new.short_tuples = tuple in new.containers
        new.is_for_brief = proto >= 4 and (new.short_dicts or new.is_plain_dict is not None) and new.short_tuples
        if proto >= 4 and known_saves[save] is known_saves[own_save]:
            new.small_rule = rule
        _plans[key] = new
    return _plans[key]


def _graft_rule(entries: tuple[Any, ...]) -> GraftRule | None:
    """Return the rule for picklers with these dispatch entries, None if one of them is anybody's."""
    rule: GraftRule | None = STOCK_RULE
    for t, entry, stock_entry in zip(_TYPES, entries, STOCK_ENTRIES, strict=True):
        if rule is not None and entry is not stock_entry:
            rule = graft_rules.get((t, entry)) if rule is STOCK_RULE else None
    return rule


def _saver_of(t: type, entry: Any) -> Saver | None:
    """Return the saver that may stand for a library's dispatch entry, None if the entry is not known."""
    load_library(entry)
    return known_entries.get((t, entry))


def learn_save(save: Any) -> bool:
    """Tell whether this override of `save` turns out to be a library's that is known."""
    load_library(save)
    return save in known_saves


def learn_choosy_save(save: Any) -> bool:
    """Tell the same of one that does something of its own for some types only."""
    return save not in known_saves and learn_save(save) and save in choosy_saves


def may_be_known(entry: Any) -> bool:
    """Tell whether a dispatch entry is stock's own function, or comes from a library of which something is known."""
    if type(entry) is not FunctionType:
        return False
    module = entry.__module__
    return type(module) is str and (module == "pickle" or module.partition(".")[0] in LIBRARIES)


if not FRAMES_ARE_BYTESIO:  # PyPy: the same questions, asked as its JIT answers them sooner
    from .pypy.looks import plan
