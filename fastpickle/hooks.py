"""Which shortcuts a pickler allows: decided once per dump, and again after code that is not ours has run.

    pickler --(what could see a shortcut: overrides, dispatch entries, instance attributes)--> plan(pickler)

A *plan* is a dict from each type whose objects may be saved without asking anybody to its saver (None for atoms, which
the loop itself writes).  The empty plan, `PLAIN`, allows nothing: the pickler works as stock does, hook by hook.

Shortcuts replace calls that stock makes.  So one is allowed only if it is *known* that nobody listens to that call:

| hook                                                   | where                        | then              |
|--------------------------------------------------------|------------------------------|-------------------|
| `save` (unless a library's that is known), `memoize`,  | class or instance            | `PLAIN`           |
| `put`, `get`, `persistent_id`, `save_reduce`,          |                              |                   |
| `_batch_appends`, `_batch_setitems`, `_BATCHSIZE`,     |                              |                   |
| `reducer_override`                                     |                              |                   |
| `__getattr__`, `__getattribute__`                      | class                        | `PLAIN`           |
| `dispatch` of a class that is no dict, nor a library's | class or instance            | `PLAIN`           |
| `dispatch` entry of an atom (None, bool, int, ...)     | the dict, wherever it is     | `PLAIN`           |
| `dispatch` entry of a container (list, dict, ...)      | the dict, wherever it is     | that type left out|
| `write`, `framer`, `memo`, `proto`, `bin`, `fast`      | instance, not what stock set | `PLAIN`           |
| a file that is no builtin, where there are no frames   | `framer.file_write`          | `PLAIN`           |
| protocol 0                                             | `proto`                      | `PLAIN`           |

`dispatch_table`, `save_global` and `save_pers` are not in the table: they are asked only about objects that no plan
contains.

The C pickler (`graft`) stands for all of a pickler's savers at once, so a plan allows grafts, by its `graft_rule`, only
if all dispatch entries of its types are stock's, or a library's that tells a rule.  What else forbids them:

| what                                           | forbids                            | test_graft.py                  |
|------------------------------------------------|------------------------------------|--------------------------------|
| FASTPICKLE_PURE=1, no `_pickle`, PyPy          | every graft                        | test_switched_off_by_...       |
| `fastpickle_grafts = False`, class or instance | every graft                        | test_switched_off              |
| a row of the table above                       | every graft: C asks nobody         | test_overridden_method         |
| entry of a type that C does not ask about      | every graft                        | test_dispatch_entry            |
| `dispatch`, `dispatch_table`, copyreg          | objects of that type               | test_entry_of_a_type_...       |
| `save_global`, `__import__` replaced           | classes, functions, what names one | test_save_global_...           |
| a class with a reduce, slots ... of its own    | its instances                      | test_custom_code_runs_once     |
| a file neither in memory nor a real one        | every graft: it sees other writes  | test_file_of_ones_own          |
| `_Framer` changed                              | every graft                        | test_framer_that_was_changed   |
| a memo that memoize() has not made             | every graft: C keeps it otherwise  | test_pickler: a memo with gaps |
| a recursion limit above 10,000, a small stack  | every graft: C needs the stack     | test_deep_structures_...       |

Not for: saving anything, and not for knowing libraries: those tell about themselves (`backends`) through
`known_saves` and `known_entries`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter
from pickle import MEMOIZE, STACK_GLOBAL
from types import BuiltinMethodType, MappingProxyType, NoneType
from typing import Any, Final

from ._stdlib import NO_VALUE, CPickler, Framer, StockPickler, stock_methods

__all__ = [
    "ATOMS",
    "ATOM_IDS",
    "NUMBER_IDS",
    "PLAIN",
    "STOCK_RULE",
    "Dump",
    "GraftRule",
    "Plan",
    "Saver",
    "Write",
    "by_save",
    "choosy_saves",
    "doubt",
    "entries_of",
    "graft_rules",
    "holds",
    "known_entries",
    "known_saves",
    "known_tables",
    "outside",
    "plan",
    "saved_by_name",
    "savers",
    "settled",
    "texts_of",
    "watched",
]

#: Appends to the current frame, or to the file where there are no frames.
Write = Callable[[bytes], Any]
#: Saves one object that is not in the memo, the frame of which has been committed if it was full:
#: saver(pickler, plan, obj, write), with the `plan` in force and the `write` of the current frame.
Saver = Callable[[Any, "Plan", Any, Write], None]


#: The `save` methods, of those in `known_saves`, that do something of their own for some types, and what tells which.
choosy_saves: Final[dict[Any, Callable[[type], Any]]] = {}


class Plan(dict[type, "Saver | None"]):
    """The types that may be saved without asking any hook, each with its saver (None: an atom).

    It holds for one protocol, one set of dispatch entries, and one way to save everything else.

    Attributes:
        proto: the protocol.
        save: the class's `save`, for where the plan is no longer in force.
        other: saves an object of any other type.
        is_choice: tells whether an object of that type is to go through the class's `save` after all; or None.
        containers: which of list, dict, tuple, set and frozenset are saved as stock does, and so may be part of a run.
        save_list, save_dict, save_tuple: the savers of the most frequent containers, or `other`.
        graft_rule: what the C pickler is to be asked where it takes over; None where it must not (`graft`).
        in_doubt: the empty plan that stands for this one from when code that is not ours runs until it is looked at.
        doubted: the plan that this one stands for in that way, if it does.
    """

    __slots__ = (
        "containers", "doubted", "graft_rule", "in_doubt", "is_choice", "other", "proto", "save", "save_dict",
        "save_list", "save_tuple",
    )  # fmt: skip

    def __init__(self, proto: int, save: Any, other: Saver, doubted: Plan | None = None) -> None:
        self.proto = proto
        self.save = save
        self.other = other
        self.is_choice = choosy_saves.get(save)
        self.save_list = self.save_dict = self.save_tuple = other
        self.containers: frozenset[type] = frozenset()
        self.graft_rule: Any = None
        self.doubted = doubted
        self.in_doubt = self


def by_save(pickler: Any, plan: Plan, obj: Any, write: Write) -> None:
    """Save an object through the pickler's own `save`: a saver for what is in no plan."""
    pickler.save(obj)


PLAIN: Final = Plan(0, stock_methods["save"], by_save)  # assumes nothing, so there is nothing to doubt

#: The savers of containers by type, each with the lowest protocol that it can write.  `pickler` fills it.
savers: Final[dict[type, tuple[int, Saver]]] = {}

#: Atoms, the first of `_TYPES`, with the lowest protocol at which stock writes them without a reduce.
ATOMS: Final[dict[type, int]] = {NoneType: 0, bool: 0, int: 0, float: 0, str: 0, bytes: 3}
#: They, and those that are not memoized, by id: to look a type up is to ask for its hash, which may be anybody's.
ATOM_IDS: Final = frozenset(map(id, ATOMS))
NUMBER_IDS: Final = ATOM_IDS - {id(str), id(bytes)}

#: The `save` methods that do nothing of their own for the types of a plan, and for each the saver of what is in none.
#: `pickler` adds its own, and libraries theirs.
known_saves: Final[dict[Any, Saver]] = {stock_methods["save"]: by_save}
#: Dispatch entries of libraries, by type and function, each with the saver that may stand for it.
known_entries: Final[dict[tuple[type, Any], Saver]] = {}
#: The classes of dispatch tables whose get() gives the entries of `_TYPES` as indexing does.
known_tables: Final[set[type]] = {dict}


class GraftRule:
    """What has to be asked where the C pickler writes in the place of dispatch entries.

    Args:
        allows: tells whether this pickler may graft now; None if it always may.
        refuses: tells whether instances of a type are not for C; None if no type is refused.
        names: the dicts that have one of them as a key are not for C.
        lengths: gives for a pickler the lengths of dicts that are not for C if they have one of some more names; None
            if there are none.
        compared: gives these names; it takes 10 us.
        builtins: what C saves without asking where a protocol has no opcode for a type, and is not for it; each with
            the lowest protocol at which C does not.

    Attributes:
        texts_of_names, texts_of_builtins: by protocol, what is found in a pickle that has one of them in it.
        unwanted: by protocol, the ids of the builtins that C may have saved.
    """

    __slots__ = (
        "allows", "compared", "lengths", "names", "refuses", "texts_of_builtins", "texts_of_names",
        "unwanted",
    )  # fmt: skip

    def __init__(
        self,
        allows: Callable[[Any], bool] | None = None,
        refuses: Callable[[type], bool] | None = None,
        names: frozenset[str] = frozenset(),
        lengths: Callable[[Any], tuple[int, ...]] | None = None,
        compared: Callable[[Any], tuple[str, ...]] | None = None,
        builtins: Mapping[Any, int] = MappingProxyType({}),
    ) -> None:
        self.allows = allows
        self.refuses = refuses
        self.names = names
        self.lengths = lengths
        self.compared = compared
        self.unwanted = [frozenset(id(x) for x, lowest in builtins.items() if proto < lowest) for proto in range(6)]
        self.texts_of_names = [texts_of(names, proto) for proto in range(6)]
        # Up to protocol 3 a module is written each time, from 4 on the name is: it is another str each time.
        self.texts_of_builtins: list[tuple[bytes, ...]] = []
        for proto, unwanted in enumerate(self.unwanted):
            old = (b"builtin", b"_codecs") if unwanted else ()
            new = texts_of((x.__name__ for x in builtins if id(x) in unwanted), proto)
            self.texts_of_builtins.append(old if proto < 4 else tuple(text + MEMOIZE + STACK_GLOBAL for text in new))


def texts_of(names: Iterable[str], proto: int) -> tuple[bytes, ...]:
    """Return what stands in a pickle where a dict's key is one of some names, or a class has it."""
    texts = [name.encode("utf-8", "surrogatepass") for name in names]
    return tuple([text if proto < 4 or len(text) > 255 else bytes([len(text)]) + text for text in texts])


#: The rules of libraries' dispatch entries, by type and function, beside that of stock's own.
graft_rules: Final[dict[tuple[type, Any], GraftRule]] = {}
#: That of stock's own entries, with nothing to ask.
STOCK_RULE: Final = GraftRule()
#: Dispatch entries that save a class or function by its name, and for each what tells whether it will.
saved_by_name: Final[dict[Any, Callable[[Any, Any], bool]]] = {
    stock_methods["save_type"]: lambda pickler, obj: True,
    stock_methods["save_global"]: lambda pickler, obj: True,
}

# A library describes its own hooks in a module that is imported when its first pickler is met.
_LIBRARIES: Final = {"dill": "fastpickle.backends.dill"}

_INSTANCE_HOOKS: Final = frozenset(
    ("save", "memoize", "put", "get", "persistent_id", "save_reduce", "_batch_appends", "_batch_setitems",
     "_BATCHSIZE", "reducer_override")
)  # fmt: skip
_methods: Final = attrgetter(
    "memoize", "put", "get", "persistent_id", "save_reduce", "_batch_appends", "_batch_setitems", "_BATCHSIZE",
    "__getattribute__",
)  # fmt: skip
_STOCK_METHODS: Final = _methods(StockPickler)

_TYPES: Final[tuple[type, ...]] = (NoneType, bool, int, float, str, bytes, bytearray, list, tuple, dict, set, frozenset)
#: The dispatch entries of `_TYPES`.
entries_of: Final = itemgetter(*_TYPES)
_STOCK_ENTRIES: Final = tuple(  # not from the table: dill may have edited it already
    stock_methods["save_" + {"NoneType": "none", "int": "long"}.get(t.__name__, t.__name__)] for t in _TYPES
)
_framer_write: Final = Framer.write
_plans: Final[dict[tuple[int, Any, tuple[Any, ...]], Plan]] = {}


def plan(pickler: Any) -> Plan:
    """Return the shortcuts that `pickler` allows now, the same object as long as they stay the same.

    Costs about 0.9 us, and runs no code of the pickler's.

    Args:
        pickler: a `pickle._Pickler` or an instance of a subclass.

    Returns:
        A plan for its protocol, or `PLAIN`.
    """
    cls = type(pickler)
    try:
        if (
            (cls.save not in known_saves and not _learn_save(cls.save))
            or _methods(cls) != _STOCK_METHODS
            or getattr(pickler, "__getattr__", None) is not None  # before the next: it would be called for that
            or getattr(pickler, "reducer_override", NO_VALUE) is not NO_VALUE
        ):
            return PLAIN  # before the instance's __dict__ is asked for: up to 3.12 that makes its attributes slower
        state = pickler.__dict__
        framer = state["framer"]
        write = state["write"]
        if (
            not _INSTANCE_HOOKS.isdisjoint(state)
            or state["fast"]
            or type(state["memo"] if "memo" in state else _fetch_memo(pickler)) is not dict
            or type(framer) is not Framer
            or len(framer.__dict__) != 2  # file_write and current_frame: nothing of the framer is overridden
            or write.__func__ is not _framer_write
            or write.__self__ is not framer
            or (framer.current_frame is None and type(framer.file_write) is not BuiltinMethodType)
        ):
            return PLAIN
        dispatch = pickler.dispatch
        if type(dispatch) not in known_tables:
            return PLAIN  # stock asks its get(), which may be anything
        entries = entries_of(dispatch)
        proto = state["proto"]
        if type(proto) is not int or (not state["bin"]) is not (proto == 0):
            return PLAIN
        found = _plans.get((proto, cls.save, entries))
        return _make_plan(proto, cls.save, entries) if found is None else found
    except (KeyError, AttributeError, TypeError):  # something is missing, or is not what it is in stock
        return PLAIN


# While a pickler saves, the plan in force or in doubt is in its `_fastpickle_plan`, and a Dump in `_fastpickle_dump`.


class Dump:
    """What stays the same while a plan is in force, so that it may be bound to a local.

    Attributes:
        framer, memo, write: the pickler's.
        entries: the dispatch entries of `_TYPES`.
        is_usual: whether all that is in the memo was put there by code of ours or stock's.
        nobodys: types that were looked at since somebody's code ran last, and whose reduce runs only the interpreter's.
        looks: how many more looks at a type may be in vain.
        known: what `graft` knows of types, until somebody's code runs.
        reducers: what reduces instances of a type and runs nobody's code (`runs`), until somebody's code runs.
        root: the object that is dumped.
        penalty, offers_to_skip: for how many offers C is left alone after the last that it refused, and from now on.
    """

    __slots__ = (
        "entries", "framer", "is_usual", "known", "looks", "memo", "nobodys", "offers_to_skip", "penalty",
        "reducers", "root", "write",
    )  # fmt: skip

    def __init__(self, pickler: Any, root: Any) -> None:
        self.framer = pickler.framer
        self.memo = pickler.memo
        self.is_usual = not self.memo
        self.write = pickler.write
        self.entries = entries_of(pickler.dispatch)
        self.nobodys: set[type] = set()
        self.looks = 4
        self.known: dict[type, frozenset[str]] = {}
        self.reducers: dict[type, Callable[[Any], Any] | None] = {}
        self.root = root
        self.penalty = 0
        self.offers_to_skip = 0


def doubt(pickler: Any) -> None:
    """Put the plan in doubt: code that is not ours is about to run, or has run."""
    state = pickler.__dict__
    state["_fastpickle_plan"] = state["_fastpickle_plan"].in_doubt


def settled(pickler: Any) -> Plan:
    """Return the plan in force; if it is in doubt, look again, and take the doubted one if everything is as it was.

    Costs about 0.8 us if the plan was in doubt.
    """
    found: Plan = pickler._fastpickle_plan
    doubted = found.doubted
    if doubted is None:
        return found
    cls = type(pickler)
    state = pickler.__dict__
    dump = state["_fastpickle_dump"]
    try:
        framer = state["framer"]
        as_it_was = (
            framer is dump.framer
            and state["memo"] is dump.memo
            and state["write"] is dump.write
            and type(state["proto"]) is int
            and state["proto"] == doubted.proto
            and state["bin"]
            and not state["fast"]
            and len(framer.__dict__) == 2
            and _INSTANCE_HOOKS.isdisjoint(state)
            and cls.save is doubted.save
            and _methods(cls) == _STOCK_METHODS
            and type(pickler.dispatch) in known_tables
            and entries_of(pickler.dispatch) == dump.entries
            and getattr(pickler, "__getattr__", None) is None
            and getattr(pickler, "reducer_override", NO_VALUE) is NO_VALUE
        )
    except (KeyError, AttributeError, TypeError):
        as_it_was = False
    found = state["_fastpickle_plan"] = doubted if as_it_was else PLAIN
    dump.is_usual = False
    dump.nobodys.clear()
    dump.known.clear()
    dump.reducers.clear()
    return found


def holds(pickler: Any, plan: Plan) -> bool:
    """Tell whether `plan` is still in force."""
    return pickler._fastpickle_plan is plan or settled(pickler) is plan


def outside(pickler: Any, save: Callable[..., None], obj: Any, *args: Any) -> None:
    """Call a function that may run code that is not ours, so that the plan is in doubt in it and after it."""
    found: Plan = pickler._fastpickle_plan
    if found is PLAIN:
        save(pickler, obj, *args)
        return
    doubt(pickler)
    try:
        save(pickler, obj, *args)
    finally:
        doubt(pickler)


def watched(pickler: Any, items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of an iterable that may run code that is not ours to find the next one."""
    for item in items:
        doubt(pickler)
        yield item


def _fetch_memo(pickler: Any) -> Any:
    """Return the memo that the C pickler has after a graft; it is on the instance then."""
    return pickler.memo if "_fastpickle_memo" in pickler.__dict__ else None


def _make_plan(proto: int, save: Any, entries: tuple[Any, ...]) -> Plan:
    """Make the plan for a protocol, a `save` and the dispatch entries of `_TYPES`, or find an equal one."""
    if type(proto) is not int or proto < 0:
        return PLAIN
    if entries[: len(ATOMS)] != _STOCK_ENTRIES[: len(ATOMS)]:
        return PLAIN
    found: dict[type, Saver | None] = {}
    known = []  # the entries, but for those that may be anybody's: a table must not keep them, and what they refer to
    for t, entry, stock_entry in zip(_TYPES, entries, _STOCK_ENTRIES, strict=True):
        if t in ATOMS:
            saver = None
            lowest_proto = ATOMS[t]
        else:
            lowest_proto, own_saver = savers[t]
            saver = own_saver if entry is stock_entry else _saver_of(t, entry)
        known.append(entry if entry is stock_entry or saver is not None else None)
        if proto >= lowest_proto and (saver is not None or t in ATOMS):
            found[t] = saver
    key = proto, save, tuple(known)
    if key not in _plans:
        new = Plan(proto, save, known_saves[save])
        new.in_doubt = Plan(proto, save, known_saves[save], doubted=new)
        if proto:  # at protocol 0 there is no other shortcut than a graft
            new.update(found)
        new.graft_rule = new.in_doubt.graft_rule = _graft_rule(entries)
        new.containers = frozenset(t for t in (list, dict, tuple, set, frozenset) if new.get(t) is savers[t][1])
        new.save_list = new.get(list) or new.other
        new.save_dict = new.get(dict) or new.other
        new.save_tuple = new.get(tuple) or new.other
        _plans[key] = new
    return _plans[key]


def _graft_rule(entries: tuple[Any, ...]) -> GraftRule | None:
    """Return the rule for picklers with these dispatch entries, None if one of them is anybody's."""
    rule = None if CPickler is None else STOCK_RULE
    for t, entry, stock_entry in zip(_TYPES, entries, _STOCK_ENTRIES, strict=True):
        if rule is not None and entry is not stock_entry:
            rule = graft_rules.get((t, entry)) if rule is STOCK_RULE else None
    return rule


def _saver_of(t: type, entry: Any) -> Saver | None:
    """Return the saver that may stand for a library's dispatch entry, None if the entry is not known."""
    _load_library(entry)
    return known_entries.get((t, entry))


def _learn_save(save: Any) -> bool:
    """Tell whether this override of `save` turns out to be a library's that is known."""
    _load_library(save)
    return save in known_saves


def _load_library(function: Any) -> None:
    """Let the library that `function` comes from tell what is known of it."""
    module = getattr(function, "__module__", None)
    if type(module) is str:
        name = module.partition(".")[0]
        backend = _LIBRARIES.get(name)
        if backend is not None:
            try:
                importlib.import_module(backend)
            except Exception:  # a version that the backend cannot even be imported with is an unknown one
                _LIBRARIES.pop(name, None)
