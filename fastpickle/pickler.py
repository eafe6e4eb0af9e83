"""`Pickler`: the stock pure-Python pickler, with plain data written by one loop instead of a call per object and hook.

    dump(obj) --- all of it by the C pickler, if the file is in memory (`graft`), or at once (`small`); or with FEW or
                  ASIDE in force, if nothing is to be gained, PLAIN for little by a class with a persistent_id, AS_LAST
                  if it is like the last one (`repeats`) or stock's way was sooner (`races`), COLD for digests; else
    save(obj) --- plan: hooks.plan(self), once a dump
              --+-- the root of a dump:         the C pickler, if it can write all of it (`graft`); one with a reduce of
                |                               its own as PLAIN, up to what that gives: if it is much, by a plan
                +-- the type is in the plan:  its saver (`plain`)
                +-- a plan without the type:  save_object (`reduce`), whose parts are saved in the same ways
                +-- PLAIN:                    stock's save(), hook by hook, with the atoms sooner
                +-- ASIDE, COLD:              as PLAIN; a container that is worth a plan is saved as if it were a root;
                |                               with a plan once a library's dump turns out to be large
                +-- FEW:                      as ASIDE; with a plan once it turns out to be many
                +-- AS_LAST:                  as PLAIN, up to what is long, or many; from there on as FEW or ASIDE

Everything that stock keeps in `memo`, `framer` and `write` is kept there at every moment at which other code can look:
stock's methods, overrides and ours may be mixed within one dump, and `install()` may come and go between two of them.

Not for: deciding what a hook forbids (`hooks`).
"""

from __future__ import annotations

import pickle
from operator import length_hint
from pickle import (
    BININT,
    BININT2,
    BINUNICODE,
    DICT,
    EMPTY_DICT,
    EMPTY_LIST,
    EMPTY_TUPLE,
    LIST,
    MARK,
    NONE,
    POP,
    PROTO,
    STOP,
    TUPLE,
    PicklingError,
)
from struct import pack
from types import CellType, ModuleType
from typing import Any

from . import graft, hooks
from ._stdlib import (
    ASKS_PERSISTENT_ID_ALWAYS,
    FRAMES_ARE_BYTESIO,
    NO_VALUE,
    TELLS_WHOSE,
    CPickler,
    Framer,
    StockPickler,
    note,
    refuse_reduce_value,
    stock_methods,
)
from .accelerator.cpickler import unordered
from .accelerator.lazymemo import LazyMemo, order_memo, put_in_order
from .accelerator.offers import is_tiny
from .at_once import small
from .at_once.few import undo_few
from .at_once.races import is_row_of_somebodys, race_of
from .at_once.repeats import goes_by_hooks, learn_from_few
from .digests import small_hashes
from .digests.hashing import FEWEST_OF_HASH, MANY, MANY_ITEMS, is_hash_worth_a_plan
from .digests.small_hashes import MOST_ITEMS, write_part
from .engine.brief import save_brief
from .engine.loop import commit_frame, save_all
from .engine.reduce import save_object
from .hooks import (
    AS_LAST,
    ASIDE,
    ATOM_IDS,
    COLD,
    CONTAINER_IDS,
    FEW,
    PLAIN,
    Plan,
    entry_writers,
    hash_rules,
    writers,
)
from .interrupts import is_interrupt
from .objects.last import LONGEST_OF_FEW, MOST_OF_FEW, last
from .objects.likely import is_little, is_plain_at_top, is_somebodys, somebodys
from .objects.values import AS_CLASS, old_value, value_by
from .older import batch_methods, is_asked_about, method_of, overrides_batches, save_pers
from .opcodes import (
    BININT1,
    SHORT_BINUNICODE,
    TUPLES,
    pack_binint,
    pack_binint2,
    pack_binunicode,
)
from .way import FEWEST_OF_FEW, begin, begin_reduced, undo, way_of

__all__ = ["Pickler"]

_stock_save_dict = stock_methods["save_dict"]
_stock_save_list = stock_methods["save_list"]
_stock_save_str = stock_methods["save_str"]
_stock_save_tuple = stock_methods["save_tuple"]
_stock_save_none = stock_methods["save_none"]
_stock_save_long = stock_methods["save_long"]
_ATOMS = frozenset(hooks.ATOMS)
#: A list or dict of fewer items is not asked whether it is worth a plan: its items are.
_FOR_PLAN = 4
#: The same if there is no container in it.
_FOR_ATOMS = 24
#: A tuple of fewer items is not written at once, which takes as long as to save five to ten of them.
_FOR_TUPLE = 12
#: There is a plan once so much is memoized, as few turn out to be many: for what has a reduce of its own only if it is
#: more than a list of such objects has, for which a plan is no gain.
_FEW_MEMOIZED = 64
_MANY_MEMOIZED = 400
#: A library's dump with so much, begun by an instance, is large: the next one of its class has a plan at once.
_LARGE = 200
#: What a reduce gave is written at once from there on: before, the look at the pickler takes as long as it saves, but
#: for the first one, with which its class is saved; where a library's `save` is called for each part, it saves more.
_FEW_FOR_BRIEF = 128
_ASIDE_FOR_BRIEF = 24
#: What makes a shorter tuple worth to be written at once, if it comes first: it stands for many parts, or for what a
#: cell is to hold.
_HEAVY = frozenset(map(id, (dict, ModuleType, CellType)))
#: By id, what there may be much in.
_LISTS_AND_DICTS = frozenset(map(id, (list, dict)))
_HAS_C = CPickler is not None
_setattr, _delattr = object.__setattr__, object.__delattr__
_pickle: Any = pickle  # its dispatch_table is no public name


class Pickler(StockPickler):  # type: ignore[misc]  # its class is private to the stdlib, so typeshed does not know it
    """Write a pickle to a file: the bytes of `pickle._Pickler`, sooner.

    It is made, used and subclassed like `pickle._Pickler`, every hook of which it honours; a subclass that overrides
    something goes only as fast as that allows (see `fastpickle.hooks`).
    """

    #: The plan in force, on the instance while it saves; install() puts this one on stock.
    _fastpickle_plan: Plan | None = None
    #: False on a class or an instance: the C pickler is not asked to write anything (`graft`).
    fastpickle_grafts: bool = True
    #: Stock sets it on the instance; after a graft it may be left with the C pickler until it is asked for.
    memo = LazyMemo()

    # Stock's dump(), with the C pickler asked first; written out, since what stock can save within the recursion limit
    # must not need a Python frame more.
    def dump(self, obj: Any) -> None:
        """Write a pickled representation of `obj` to the open file.

        Args:
            obj: any object.

        Raises:
            PicklingError, and whatever the hooks of `obj` or of a subclass raise, as stock does.
        """
        if not hasattr(self, "_file_write"):
            raise PicklingError(f"Pickler.__init__() was not called by {self.__class__.__name__}.__init__()")
        try:
            t = type(obj)
            few: Plan | None = None
            may_learn = True
            if last.few_left > 0 and goes_by_hooks(self, obj, t):
                may_learn = False
                if id(t) in last.few_much:
                    few = ASIDE
                else:
                    few = AS_LAST
                    last.longest = LONGEST_OF_FEW
                    last.most = MOST_OF_FEW
                    last.race = None
            elif id(t) not in ATOM_IDS:
                is_written: Any = small_hashes.at_once(self, obj, t) if hash_rules else None
                if is_written is COLD:
                    few = COLD
                elif is_written:
                    return
                elif is_written is None:
                    may_graft = _HAS_C and getattr(self, "fastpickle_grafts", False)
                    if may_graft and (id(t) in CONTAINER_IDS or (type(t) is type and writers)):
                        try:
                            write = writers.get(id(type(self).dump))
                        except Exception as exc:  # it is a descriptor that raises
                            if is_interrupt(exc):
                                raise
                            write = None
                        if write is not None and write(self, obj):
                            return
                    last.went_by_hooks = 0  # it may have been another pickler's at the same place
                    is_written = small.at_once(self, obj, t, may_graft)
                    if is_written is False and may_graft:
                        is_written = graft.at_once(self, obj)
                    if is_written is PLAIN:
                        few = PLAIN
                    elif is_written:
                        if last.went_by_hooks == id(self):  # what is left of it, and that was little
                            learn_from_few(self, obj, t)
                        return
                    elif is_written is None:
                        few = FEW if type(self).save is hooks.own_save else ASIDE
            try:
                if self.proto >= 2:
                    self.write(PROTO + pack("<B", self.proto))
                if self.proto >= 4:
                    self.framer.start_framing()
            except BaseException:
                self.__dict__.pop("_fastpickle_is_refused", None)  # it is of this dump, and `begin` would
                raise
            last.root = id(t)
            race = race_of(self, obj, t) if few is None or few is ASIDE or few is FEW else None
            if race is not None and race.is_as_stock:
                may_learn = few is not None
                few = AS_LAST
                self.__dict__.pop("_fastpickle_is_refused", None)  # `begin` would
            if few is not None:
                _setattr(self, "_fastpickle_plan", few)  # the class may have a __setattr__ of its own
                try:
                    self.save(obj)
                    if race is not None:
                        race.end(self)
                    if may_learn and few is not PLAIN and few is not COLD:
                        learn_from_few(self, obj, t)
                finally:
                    now = self._fastpickle_plan
                    # Most often it is as it was, and then its `__dict__` need not be asked for.
                    if now is few:
                        _delattr(self, "_fastpickle_plan")
                    else:
                        undo_few(self)
                        if now is not FEW and now is not ASIDE:  # there was a plan
                            last.few_left = 0
            else:
                last.aside = last.went_by_hooks = 0
                self.save(obj)
                if last.went_by_hooks == id(self):
                    if race is not None:
                        race.end(self)
                    if last.aside == id(self):
                        learn_from_few(self, obj, t)
                elif race is not None:
                    race.call_off()
            self.write(STOP)
            self.framer.end_framing()
        finally:
            if unordered and id(self) in unordered:
                order_memo(self)

    # One long method, since stock needs but two to six Python frames for a level of nesting, and what stock can save
    # within the recursion limit must not fail here.  What other functions do for it has returned by the next level.
    # And it has few names, most of them for several things: each more costs 1 % of an object that goes hook by hook.
    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write the opcodes of `obj`, as stock's `save` would.

        Args:
            obj: any object.
            save_persistent_id: False for a persistent id itself, which is not to be asked for another one.

        Raises:
            PicklingError, and whatever the hooks of `obj` or of a subclass raise, as stock does.
        """
        end: Any = None
        plan: Any
        x: Any
        entry: Any
        memo: Any
        try:
            while True:  # twice at the most
                try:
                    plan = self._fastpickle_plan
                except AttributeError:  # it was bound under install(), and is called after uninstall()
                    plan = None
                framer = self.framer
                if type(framer) is Framer:
                    x = framer.current_frame
                    if x is not None and x.tell() >= framer._FRAME_SIZE_TARGET:
                        if plan:
                            plan = commit_frame(self, framer)
                        else:
                            framer.commit_frame()
                else:
                    framer.commit_frame()
                t = type(obj)
                if plan is None or not plan.goes_by_hooks:
                    if plan is None and (
                        (type(t) is type and t in _ATOMS)
                        or (is_tiny(obj, t) and not (TELLS_WHOSE and overrides_batches(type(self))))
                    ):
                        plan = PLAIN  # nothing is to be gained; asked here, since stock needs no frame more for it
                    elif not plan:
                        plan, end = begin(self, plan, obj, t)
                        if plan is None:
                            return  # it is written
                    if plan:
                        entry, x, reduce, end = way_of(self, plan, obj, t, end)
                        x = entry(*x)
                        if reduce and x is not None:
                            save_all(self, plan, iter(()), 0, self.framer.write, [(obj, x, iter(x[0]))])
                        return

                # No shortcuts: what follows is stock's save(), but for the frequent atoms.
                if save_persistent_id or ASKS_PERSISTENT_ID_ALWAYS:
                    x = self.persistent_id(obj)
                    if x is not None and save_persistent_id:
                        try:
                            entry = type(self).save
                        except Exception as exc:  # as in `method_of`, which takes 0.1 us for each persistent id
                            if type(exc) is MemoryError or is_interrupt(exc):
                                raise
                            entry = None
                        if entry is Pickler.save:
                            self.save_pers(x)
                            return
                        if is_asked_about(self, obj):
                            save_pers(self, x)
                            return
                memo = self.memo
                x = memo.get(id(obj))
                if x is not None:
                    self.write(self.get(x[0]))
                    return
                if type(t) is type and t in _ATOMS:  # reducer_override is not asked about them, as by the C pickler
                    entry = self.dispatch.get(t)
                    if entry is _stock_save_str:  # of any type, where a table has it in a strange place
                        if t is str and len(obj) <= 63 and self.bin:  # 255 bytes at the most
                            x = obj.encode("utf-8", "surrogatepass")
                            opcode = (
                                SHORT_BINUNICODE[len(x)] if self.proto >= 4 else pack_binunicode(BINUNICODE, len(x))
                            )
                            self.write(opcode + x)
                            self.memoize(obj)
                            return
                    elif entry is _stock_save_long:
                        if t is int and self.bin:
                            if 0 <= obj <= 0xFFFF:
                                self.write(BININT1[obj] if obj <= 0xFF else pack_binint2(BININT2, obj))
                                return
                            if -0x80000000 <= obj <= 0x7FFFFFFF:
                                self.write(pack_binint(BININT, obj))
                                return
                    elif entry is _stock_save_none:
                        self.write(NONE)
                        return
                    if entry is not None:
                        entry(self, obj)
                        return
                    x = reduce = NotImplemented
                else:
                    reduce = getattr(self, "reducer_override", NO_VALUE)
                    if reduce is NO_VALUE or (x := reduce(obj)) is NotImplemented:
                        entry = self.dispatch.get(t)
                        if entry is not None:
                            if plan is not PLAIN and not (
                                plan is AS_LAST
                                and (
                                    id(t) not in CONTAINER_IDS
                                    or (len(obj) <= last.longest and type(memo) is dict and len(memo) <= last.most)
                                )
                            ):
                                x = _other_way(self, plan, obj, t, memo, entry, end is None and reduce is NO_VALUE)
                                if x is not False:
                                    if x is None:
                                        return  # it is written
                                    if type(x) is not Plan:
                                        x()
                                        return
                                    plan, end = begin(self, x, obj, t)
                                    if plan is None:
                                        return  # as above
                                    if plan:
                                        continue
                            # What stock's do, with a call less: those frames are left for what is written at once.
                            if entry is _stock_save_tuple and t is tuple:
                                n = len(obj)
                                if not n:
                                    self.write(EMPTY_TUPLE if self.bin else MARK + TUPLE)
                                    return
                                if n <= 3 and self.proto >= 2:
                                    save = self.save
                                    memo = self.memo  # the one of now is asked below, too
                                    entry = iter(obj)
                                    try:
                                        for x in entry:
                                            save(x)
                                    except BaseException as exc:
                                        note(exc, obj, "item", n - 1 - length_hint(entry))
                                        raise
                                    if id(obj) in memo:  # it contains itself
                                        self.write(POP * len(obj) + self.get(memo[id(obj)][0]))
                                    else:
                                        self.write(TUPLES[len(obj)])
                                        self.memoize(obj)
                                    return
                            elif entry is _stock_save_dict and t is dict:
                                self.write(EMPTY_DICT if self.bin else MARK + DICT)
                                self.memoize(obj)
                                if TELLS_WHOSE:
                                    self._batch_setitems(obj.items(), obj)
                                else:
                                    self._batch_setitems(obj.items())
                                return
                            elif entry is _stock_save_list and t is list:
                                self.write(EMPTY_LIST if self.bin else MARK + LIST)
                                self.memoize(obj)
                                if TELLS_WHOSE:
                                    self._batch_appends(obj, obj)
                                else:
                                    self._batch_appends(obj)
                                return
                            if unordered and id(self) in unordered and id(entry) not in hooks.looking_up:
                                put_in_order(self)
                            entry(self, obj)
                            return
                        x = NotImplemented
                break
            if x is NotImplemented:
                if unordered and id(self) in unordered:
                    put_in_order(self)
                entry = getattr(self, "dispatch_table", _pickle.dispatch_table)
                if type(entry) is not dict:
                    reduce, x = value_by(entry, self, obj, t)
                else:  # as that does, with two calls less
                    reduce = entry.get(t, NO_VALUE)
                    if reduce is not NO_VALUE:
                        x = reduce(obj)
                    elif issubclass(t, type):
                        x = AS_CLASS
                    else:
                        reduce = getattr(obj, "__reduce_ex__", NO_VALUE)
                        if reduce is not NO_VALUE:
                            x = reduce(self.proto)
                        else:
                            reduce, x = old_value(obj)
                if x is AS_CLASS:
                    self.save_global(obj)
                    return
            if type(x) is tuple:
                if not 2 <= len(x) <= 6:
                    refuse_reduce_value(obj, reduce, x)
                if (
                    plan is not PLAIN
                    and plan is not COLD
                    and type(memo) is dict
                    and (not memo or (plan is not AS_LAST and len(memo) > _ASIDE_FOR_BRIEF))
                ):
                    plan = _plan_for(self, plan, memo, obj, t, x)
                    if plan is None:
                        return  # it is written
                    if plan:
                        n = len(memo)
                        begin_reduced(self, plan, obj)
                        try:
                            x = save_object(self, plan, obj, None, (reduce, x))
                            if x is not None:
                                save_all(self, plan, iter(()), 0, self.framer.write, [(obj, x, iter(x[0]))])
                            if n == 0 and len(memo) <= _LARGE:
                                last.large = 0
                        finally:  # another reduce may have called `save`, and goes on once this returns
                            self.__dict__["_fastpickle_plan"] = plan.in_doubt
                        return
            elif isinstance(x, str):
                self.save_global(obj, x)
                return
            elif not isinstance(x, tuple) or not 2 <= len(x) <= 6:
                refuse_reduce_value(obj, reduce, x)
            try:
                self.save_reduce(*x, obj=obj)
            except BaseException as exc:
                note(exc, obj, "object")
                raise
        finally:
            if end is not None:
                memo = None  # who has hold of it is counted
                undo(self, end)


def _other_way(pickler: Any, plan: Plan, obj: Any, t: type, memo: Any, entry: Any, may_begin: bool) -> Any:
    """Find another way than by the dispatch entry for an object, or write it, while a pickler goes hook by hook.

    Nothing that may take many Python frames is called here, but by `Pickler.save`.

    Args:
        pickler: one with `plan` in force.
        plan: that.
        obj: the object.
        t: its type.
        memo: the pickler's.
        entry: its dispatch entry.
        may_begin: whether nobody has been asked about the object, and nothing has begun with it.

    Returns:
        False if there is none; None if it is written, or what writes the rest; or the plan in force, if it is to be
        asked whether another one is worth it (`begin`).
    """
    if t is tuple or t is dict or t is list or t is set or t is frozenset:
        n = len(obj)
        if plan is AS_LAST:  # and there is more than in the last one
            if _is_row_as_last(obj, t, memo):
                return False
            plan = _more_than_last(pickler, memo)
        if n >= _FOR_PLAN or (n and (plan is FEW or (plan is ASIDE and t is tuple and id(type(obj[0])) in _HEAVY))):
            is_asked = _ask_or_write(pickler, plan, obj, t, memo, may_begin)
            if is_asked is None:
                return None
            if (
                is_asked
                and may_begin  # else somebody may have memoized it
                and (plan is COLD or id(entry) in hooks.container_entries)
                and type(pickler.dispatch) in hooks.known_tables
                and pickler.dispatch.get(t) is entry  # who was asked for it may have changed the table
            ):
                return plan
    elif plan is not COLD and id(entry) in entry_writers:
        # They know nothing of digests, and take longer than they gain for what is little.
        write_rest = entry_writers[id(entry)](pickler, obj)
        if write_rest is not None:
            return write_rest
    return False


def _plan_for(pickler: Any, plan: Plan, memo: Any, obj: Any, t: type, value: tuple[Any, ...]) -> Plan | None:
    """Find a plan for what a reduce gave, if there is much in the dump, or write it, if it is brief.

    Args:
        pickler: one with `plan` in force, by which it goes hook by hook.
        plan: that.
        memo: the pickler's.
        obj: the object.
        t: its type.
        value: what the reduce gave.

    Returns:
        The plan, `PLAIN` if there is none, or None if it is written.
    """
    if not memo:  # as it was before the reduce: with the first thing a class is saved
        # Others may have anything.
        if id(t) not in last.not_soon_brief and (type(pickler) is Pickler or type(pickler) is StockPickler):
            now = hooks.plan(pickler)
            if now.is_for_brief and now.small_rule is hooks.STOCK_RULE:  # dill's table may want to trace it
                is_written = save_brief(pickler, now, obj, t, value, is_first=True)
                if is_written:
                    return None
                if is_written is False:  # else the frame has no room
                    last.remember_not_soon_brief(t)
        if last.large != id(t) or plan is AS_LAST:
            return PLAIN
    elif (
        len(value) == 2
        and (plan is ASIDE or len(memo) > _FEW_FOR_BRIEF)
        and id(value[0]) in memo
        and type(value[1]) is tuple
        and (not value[1] or id(type(value[1][0])) in ATOM_IDS)
    ):
        now = hooks.plan(pickler)  # most often nothing has changed
        is_written = save_brief(pickler, now, obj, t, value) if now.is_for_brief else False
        if is_written:
            return None
        if is_written is None:
            return PLAIN  # it is little, and the frame has no room for it
    n = len(memo)
    if plan is FEW:
        is_worth = n > _FEW_MEMOIZED and (
            n > _MANY_MEMOIZED or not (id(t) in somebodys or is_somebodys(t) or is_little(value))
        )
    else:  # not within what is saved by a plan, which goes by the look at the pickler that it had
        is_worth = (
            (n > _MANY_MEMOIZED or n == 0)
            and "_fastpickle_dump" not in pickler.__dict__
            # What such a `save` does for an array takes longer by a plan, where there is little beside it.
            and not (is_somebodys(t) and method_of(type(pickler), "save") in hooks.rewriting_saves)
        )
        if n > _LARGE:
            last.large = last.root
    if not is_worth:  # to begin takes 6 us, more than to save a few objects without
        return PLAIN
    now = hooks.plan(pickler)
    return now if plan is FEW or now.is_for_brief else PLAIN


def _ask_or_write(pickler: Any, plan: Plan, obj: Any, t: type, memo: Any, may_write: bool) -> bool | None:
    """Tell whether to ask if a container is worth a plan, or write it: None, if it is small.

    Args:
        pickler: one with `plan` in force, by which it goes hook by hook.
        plan: that.
        obj: a container that is not empty.
        t: its type.
        memo: the pickler's.
        may_write: whether nobody has been asked about the object.
    """
    n = len(obj)
    try:
        if plan is COLD:
            if FEWEST_OF_HASH <= n <= MOST_ITEMS and (t is dict or t is list):  # tuples, as of code, are saved sooner
                is_written = write_part(pickler, obj, t) if memo and may_write else False
                return None if is_written else is_written is not None and is_hash_worth_a_plan(pickler, obj, t)
            first = type(next(iter(obj.values() if t is dict else obj), None))
            return (n >= FEWEST_OF_HASH or (len(memo) >= MANY and id(first) in CONTAINER_IDS)) and is_hash_worth_a_plan(
                pickler, obj, t
            )
        if plan is FEW:
            return n >= FEWEST_OF_FEW or (type(memo) is dict and len(memo) > _MANY_MEMOIZED)
        if t is set or t is frozenset:
            return False
        if t is tuple:
            return (
                n >= _FOR_TUPLE
                or id(type(obj[0])) in _HEAVY
                or (n >= _FOR_PLAN and type(obj[-1]) is dict and type(obj[0]) is type)
            )
        held: Any = obj.values() if t is dict else obj
        if n >= _FOR_ATOMS:
            return t is list or n >= MANY_ITEMS or is_plain_at_top(obj, t)
        x = next(iter(held), None)
        if type(x) is tuple:
            return n * (len(x) + 1) >= _FOR_ATOMS
        return not _LISTS_AND_DICTS.isdisjoint(map(id, map(type, held)))
    except RuntimeError as exc:  # the stack is full; another thread has changed a dict
        if type(exc) is not RecursionError and is_interrupt(exc):
            raise
        return False


def _is_row_as_last(obj: Any, t: type, memo: Any) -> bool:
    """Tell whether a long container is for stock all the same, in a dump that is taken to be like the last one."""
    return last.race is not None and type(memo) is dict and len(memo) <= last.most and is_row_of_somebodys(obj, t)


def _more_than_last(pickler: Any, memo: Any) -> Plan:
    """Go on as in a dump that was looked at: there is more in it, or in a container, than in the last one like it."""
    plan = FEW if method_of(type(pickler), "save") is hooks.own_save else ASIDE
    race = last.race  # another thread may set it
    if race is not None:
        race.end(pickler)
    if pickler._fastpickle_plan is AS_LAST:  # reducer_override may have saved something, too
        _setattr(pickler, "_fastpickle_plan", plan)
    if plan is FEW and (type(memo) is not dict or len(memo) > MOST_OF_FEW):
        last.few_left = 0
    return plan


for _name, _method in batch_methods.items():
    setattr(Pickler, _name, _method)

hooks.known_saves[Pickler.save] = save_object
hooks.own_save = Pickler.save

if not FRAMES_ARE_BYTESIO and NO_VALUE is None:  # PyPy 3.11
    from .pypy import save, straight

    hooks.savers.update(straight.SAVERS)

    Pickler.save = save.save  # type: ignore[method-assign]  # the class is made for CPython
    del Pickler.dump
    hooks.known_saves[stock_methods["save"]] = hooks.known_saves[Pickler.save] = save.save_object
    del Pickler.memo
elif not FRAMES_ARE_BYTESIO:  # a newer one, of which nothing is known
    Pickler.save = stock_methods["save"]  # type: ignore[method-assign]  # as above
    del Pickler.dump
    del Pickler.memo

graft.calibrate(Pickler)
