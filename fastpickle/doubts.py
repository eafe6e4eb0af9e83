"""Doubt: what stays the same while a plan is in force, and whether it still does once somebody's code has run.

    in force --(doubt: somebody's code is about to run, or has run)--> in doubt --(settled)--+-- as it was: in force
                                                                                             +-- changed:   PLAIN

While a pickler saves, the plan in force or in doubt is in its `_fastpickle_plan`, and a `Dump` in `_fastpickle_dump`.

Not for: what a hook forbids (`hooks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, cycle
from operator import is_, itemgetter
from types import BuiltinMethodType
from typing import Any, Final

from ._stdlib import FRAMES_ARE_BYTESIO, NO_VALUE, Framer, is_usual_file
from .accelerator.cpickler import unordered
from .accelerator.lazymemo import put_in_order
from .hooks import INSTANCE_HOOKS, NOBODYS, NUMBER_IDS, PLAIN, Plan, are_known, entries_of, known_tables, methods_of
from .interrupts import is_interrupt
from .objects.arrays import HEAP_TYPE
from .objects.asked import METACLASS_IDS, are_texts
from .older import is_adapted

__all__ = ["Dump", "doubt", "holds", "outside", "settled", "watched"]

_looked_at: Final = itemgetter("framer", "memo", "write", "proto", "bin", "fast")


class Dump:
    """What stays the same while a plan is in force, so that it may be bound to a local.

    Attributes:
        framer, memo, write: the pickler's.
        names: those of its attributes, when it was looked last whether there is a hook among them.
        entries: the dispatch entries that a plan depends on.
        methods: the class's, if it was found that nobody has overridden one.
        is_usual: whether all that is in the memo was put there by code of ours or stock's, and no other code has run,
            nor will where nothing doubts the plan: below a file in C that hands what it gets to somebody's.
        doubts: how often the plan has been looked at again.
        nobodys: types that were looked at since somebody's code ran last, and whose reduce runs only the interpreter's;
            and the names that hide it in an instance's `__dict__`.
        looks: how many more looks at a type may be in vain.
        brief: the ids of types whose reduce gave what was brief (`rows`), but for `object`'s own.
        futile_rows, rows_to_skip: how often a row that was looked for was none, since the last that was one; and how
            often none is looked for, from now on.
        not_brief: the ids of types whose reduce gave what was not brief, and is not taken to be any more (`brief`).
        somebodys: the ids of types whose reduce ran somebody's code; a type that is there in vain costs but a look.
        no_choices: by the id of a type that the class's `save` has no choice to make about, what that depends on.
        known: what `graft` knows of types, and the backends of joblib and datasets of the pickler, until somebody's
            code runs.
        reducers: what reduces instances of a type and runs nobody's code (`runs`), until somebody's code runs.
        root: the object that is dumped.
        row_size: how many bytes a row of the last batch is taken to have, which may be another container's (`parts`).
        has_refused_items: whether C has refused a short container, or the last items of one.
        has_refused_numbers: whether what looked like numbers was none.
        way: by which of those in `lazymemo` it came to the loop, if C may be left the memo there; else None.
        left_in: if C has been left the memo, what is open, each with all that comes in it yet; else None.
        needs_prefix: whether C has written more than there was room for in the frame.
        loop: what saves plain data for digests, and how many pairs it has taken and not saved (`hashing`): `unsaved`.
        light, weights_to_skip: how many containers are taken to be as light as the last one, and how many of those are
            still to come.
        penalty, offers_to_skip: for how many offers C is left alone after the last that it refused, and from now on.
    """

    __slots__ = (
        "brief", "doubts", "entries", "framer", "futile_rows", "has_refused_items", "has_refused_numbers", "is_usual",
        "known", "left_in", "light", "looks", "loop", "memo", "methods", "names", "needs_prefix",
        "no_choices", "nobodys", "not_brief", "offers_to_skip", "penalty", "reducers", "root", "row_size",
        "rows_to_skip", "somebodys", "unsaved", "way", "weights_to_skip", "write",
    )  # fmt: skip

    def __init__(self, pickler: Any, root: Any, is_usual: bool = False, way: str | None = None) -> None:
        self.framer = pickler.framer
        self.memo = pickler.memo
        self.is_usual = is_usual or (not self.memo and _is_to_usual_file(self.framer))
        self.write = pickler.write
        self.entries = entries_of(pickler.dispatch)
        self.names: Any = None
        self.methods: Any = None
        self.nobodys: dict[type, Any] = {}
        self.looks = 4
        self.brief: set[int] = set()
        self.not_brief: set[int] = set()
        self.somebodys: set[int] = set()
        self.no_choices: dict[int, tuple[Any, ...]] = {}
        self.known: dict[type, Any] = {}
        self.reducers: dict[type, Callable[[Any], Any] | None] = {}
        self.root = root
        self.row_size = 1
        self.futile_rows = self.rows_to_skip = 0
        self.way = way
        self.has_refused_items = self.has_refused_numbers = self.needs_prefix = False
        self.left_in: list[tuple[Any, list[Any]]] | None = None
        self.loop: Any = None
        self.unsaved = 0
        self.doubts = 0
        self.penalty = 0
        self.offers_to_skip = 0
        self.light = self.weights_to_skip = 0

    def is_choice(self, pickler: Any, plan: Plan, t: type) -> Any:
        """Tell what a plan's `is_choice` does, sooner for a type that it was asked about.

        It goes by the names of the classes, unless the table has the type.
        """
        known = self.no_choices.get(id(t))
        if known is not None:  # a metaclass that may have a __mro__ of its own is not there
            mro, own, names = known
            if t.__mro__ is mro and all(map(is_, _names_of(own), names)):
                return False
        is_choice: Any = plan.is_choice
        found = is_choice(t)
        if not found and plan.rewrites is None and id(type(t)) in METACLASS_IDS and t not in pickler.dispatch:
            mro = t.__mro__
            own = [c for c in mro if c.__flags__ & HEAP_TYPE]  # the others cannot be given another name
            names = _names_of(own)
            if are_texts(map(id, map(type, names))):
                self.no_choices[id(t)] = mro, own, names
        return found

    def is_usual_again(self) -> bool:
        """Tell whether nobody has put into the memo what a loop for digests does not seek there, and remember it.

        Costs about 0.1 us for each entry.
        """
        entries = [*self.memo.items()]
        try:
            is_usual = (
                all(map(is_, map(type, chain.from_iterable(entries)), cycle((int, tuple))))
                and all(
                    id(obj) == key and type(index) is int and id(type(obj)) not in _UNASKED
                    for key, (index, obj) in entries
                )
                and id(()) not in self.memo
                and _is_to_usual_file(self.framer)
            )
        except ValueError:  # an entry of another length
            return False
        self.is_usual = is_usual
        return is_usual


def _names_of(classes: list[type]) -> list[Any]:
    """Return the names of classes, and those of their modules; None for a class that has none."""
    try:
        return [*map(_name_of, classes), *map(_module_of, classes)]
    except AttributeError:
        return [None]


_name_of: Final = vars(type)["__name__"].__get__
_module_of: Final = vars(type)["__module__"].__get__
_UNASKED: Final = NUMBER_IDS | {id(str)}


def _is_to_usual_file(framer: Any) -> bool:
    """Tell whether what is written runs nobody's code, but where the plan is in doubt then."""
    write = framer.file_write
    return type(write) is not BuiltinMethodType or is_usual_file(write.__self__)


def doubt(pickler: Any, has_run: bool = False) -> None:
    """Put the plan in doubt: code that is not ours is about to run, or has run.

    Args:
        pickler: the pickler.
        has_run: whether it has run already, so that it does not see what is not in order yet.
    """
    if unordered and not has_run and id(pickler) in unordered:
        put_in_order(pickler)
    state = pickler.__dict__
    state["_fastpickle_plan"] = state["_fastpickle_plan"].in_doubt


def settled(pickler: Any) -> Plan:
    """Return the plan in force; if it is in doubt, look again, and take the doubted one if everything is as it was.

    Costs about 1 us if the plan was in doubt.
    """
    state = pickler.__dict__
    found: Plan = state["_fastpickle_plan"]
    doubted = found.doubted
    if doubted is None:
        return found
    cls = type(pickler)
    dump = state["_fastpickle_dump"]
    found = PLAIN
    try:
        framer, memo, write, proto, is_binary, is_fast = _looked_at(state)
        dispatch = pickler.dispatch
        if (
            framer is dump.framer
            and type(framer) is Framer
            and memo is dump.memo
            and write is dump.write
            and type(proto) is int
            and proto == doubted.proto
            and is_binary
            and not is_fast
            and len(framer.__dict__) == 2
            and (framer.current_frame is not None or type(framer.file_write) is BuiltinMethodType)
            and ([*state] == dump.names or _has_no_hook(state, dump))
            and cls.save is doubted.save
            and (methods_of(cls) == dump.methods or _has_no_override(cls, dump))
            and type(dispatch) in known_tables
            and entries_of(dispatch) == dump.entries
            and getattr(pickler, "__getattr__", None) is None
            and getattr(pickler, "reducer_override", NO_VALUE) is NO_VALUE
            and (doubted.is_choice_right is None or doubted.is_choice_right(pickler))
        ):
            found = doubted
    except Exception as exc:
        # Something is missing, or is not what it is in stock; or the stack is full: hook by hook there may be enough.
        if type(exc) is not RecursionError and (type(exc) is MemoryError or is_interrupt(exc)):
            raise
    state["_fastpickle_plan"] = found
    dump.is_usual = False
    dump.doubts += 1
    if dump.nobodys or dump.known or dump.reducers:
        dump.nobodys.clear()
        dump.known.clear()
        dump.reducers.clear()
    return found


def _has_no_hook(state: dict[str, Any], dump: Dump) -> bool:
    """Tell whether none of a pickler's attributes is a hook, but an adapter of ours; its names are kept."""
    if INSTANCE_HOOKS.isdisjoint(state):
        dump.names = [*state]
        return True
    return is_adapted(state, INSTANCE_HOOKS)


def _has_no_override(cls: type, dump: Dump) -> bool:
    """Tell whether the methods of a class are known; those that are nobody's are kept."""
    if not are_known(cls):
        return False
    methods = methods_of(cls)
    if methods in NOBODYS:
        dump.methods = methods
    return True


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


class watched:
    """The items of an iterable that may run code that is not ours to find the next one, with the plan in doubt.

    No generator, which would not ask it again behind its end, as stock does from 3.14 on.
    """

    def __init__(self, pickler: Any, items: Iterable[Any]) -> None:
        self._pickler = pickler
        self._items: Any = items

    def __iter__(self) -> Iterator[Any]:
        doubt(self._pickler)
        try:
            self._items = iter(self._items)
        finally:
            doubt(self._pickler)
        return self

    def __next__(self) -> Any:
        try:
            return next(self._items)
        finally:
            doubt(self._pickler)


if not FRAMES_ARE_BYTESIO:  # PyPy: the same question, asked as its JIT answers it sooner, of another Dump
    from .pypy.looks import settled
