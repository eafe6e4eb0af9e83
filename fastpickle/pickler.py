"""`Pickler`: the stock pure-Python pickler, with plain data written by one loop instead of a call per object and hook.

    dump(obj) --- all of it by the C pickler, if the file is in memory (`graft`); else
    save(obj) --- plan: hooks.plan(self), once a dump
              --+-- the root of a dump:         the C pickler, if it can write all of it (`graft`); one with a reduce of
                |                               its own as PLAIN, up to what that gives: if it is much, by a plan
                +-- the type is in the plan:  its saver (`plain`)
                +-- a plan without the type:  save_object (`reduce`), whose parts are saved in the same ways
                +-- PLAIN:                    stock's save(), hook by hook, with the atoms sooner
                +-- ASIDE, COLD:              as PLAIN; a container that is worth a plan is saved as if it were a root
                +-- FEW:                      as PLAIN; with a plan from the first reduce on that gives much

Everything that stock keeps in `memo`, `framer` and `write` is kept there at every moment at which other code can look:
stock's methods, overrides and ours may be mixed within one dump, and `install()` may come and go between two of them.

Not for: deciding what a hook forbids (`hooks`).
"""

from __future__ import annotations

from pickle import BINFLOAT, BININT, BININT2, BINUNICODE, MEMOIZE, NONE, PROTO, STOP, PicklingError
from struct import pack
from types import FunctionType
from typing import Any, Final

from . import graft, hooks, small
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
from .brief import is_brief
from .doubts import Dump, settled
from .hashed import save_other as save_hashed
from .hashing import is_worth_a_plan
from .hooks import ASIDE, COLD, FEW, PLAIN, Plan
from .instances import are_somebodys, is_somebodys
from .lazymemo import LazyMemo
from .loop import commit_frame, save_all
from .older import adapt, batch_methods, is_asked_about, overrides_batches, restore_adapted, save_pers
from .opcodes import (
    BININT1,
    SHORT_BINBYTES,
    SHORT_BINUNICODE,
    pack_binfloat,
    pack_binint,
    pack_binint2,
    pack_binunicode,
)
from .parts import SHORTEST_OF_ATOMS
from .reduce import AS_CLASS, is_stocks, reduce_value, save_object
from .splicing import restore

__all__ = ["Pickler"]

_stock_save_str = stock_methods["save_str"]
_stock_save_bytes = stock_methods["save_bytes"]
_stock_save_none = stock_methods["save_none"]
_stock_save_float = stock_methods["save_float"]
_stock_save_long = stock_methods["save_long"]
_ATOMS = frozenset(hooks.ATOMS)
_may_graft = CPickler is not None
#: What the loop saves without a saver, if it is short.
_SHORT = frozenset((list, dict, tuple))


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
        t = type(obj)
        if id(t) not in hooks.ATOM_IDS:
            may_graft = _may_graft and getattr(self, "fastpickle_grafts", False)
            if may_graft and id(t) in hooks.CONTAINER_IDS:
                try:
                    write = hooks.writers.get(id(type(self).dump))
                except Exception:  # it is a descriptor that raises
                    write = None
                if write is not None and write(self, obj):
                    return
            if small.at_once(self, obj, t, may_graft) or (may_graft and graft.at_once(self, obj)):
                return
        try:
            if self.proto >= 2:
                self.write(PROTO + pack("<B", self.proto))
            if self.proto >= 4:
                self.framer.start_framing()
        except BaseException:
            self.__dict__.pop("_fastpickle_is_refused", None)  # save() would
            raise
        self.save(obj)
        self.write(STOP)
        self.framer.end_framing()

    # One long method, since stock needs but two to six Python frames for a level of nesting, and what stock can save
    # within the recursion limit must not fail here.  What other functions do for it has returned by the next level.
    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write the opcodes of `obj`, as stock's `save` would.

        Args:
            obj: any object.
            save_persistent_id: False for a persistent id itself, which is not to be asked for another one.

        Raises:
            PicklingError, and whatever the hooks of `obj` or of a subclass raise, as stock does.
        """
        try:
            plan = self._fastpickle_plan
        except AttributeError:  # it was bound under install(), and is called after uninstall()
            plan = None
        t = type(obj)
        is_root = committed = is_for_later = is_few = False
        in_doubt: Plan | None = None
        try:
            if plan is not PLAIN:  # what else this needs is set in here: where hooks listen, each line costs a percent
                has_dump = False
                outer: Plan | None = None
                outer_dump: Any = None
                framer: Any = None
                adapted: tuple[str, ...] = ()
                if plan is FEW:
                    is_for_later = True
                    plan = PLAIN
                elif plan is ASIDE or plan is COLD:
                    if (
                        (t is tuple or t is dict or t is list)
                        and obj
                        and (  # that it is not is found soonest here
                            len(obj) >= _WORTH_IT
                            or type(next(iter(obj.values())) if t is dict else obj[0]) in _SHORT
                            or plan is COLD
                        )
                        and _is_worth_a_plan(self, plan, obj, t)
                    ):
                        outer = plan
                        plan = None
                    else:
                        plan = PLAIN
                if plan is None:
                    if t in _ATOMS or (graft.is_tiny(obj, t) and not (TELLS_WHOSE and overrides_batches(type(self)))):
                        plan = PLAIN  # nothing to be gained
                    elif outer is None and (
                        (is_for_later := type(self).save is hooks.own_save and is_somebodys(t))
                        or (is_few := type(self).save not in hooks.hash_rules and are_somebodys(obj, t))
                        or (
                            type(self).save in hooks.choosy_saves  # a library has its own way to save functions ...
                            and not graft.may_be_plain(obj, t)
                            and not (t in _SHORT and obj and _is_worth_a_plan(self, ASIDE, obj, t))
                        )
                        or (type(self).save in hooks.hash_rules and not is_worth_a_plan(self, obj, t))
                    ):
                        plan = PLAIN  # but what is in it is looked at
                        is_root = True
                        aside = FEW if is_few else COLD if type(self).save in hooks.hash_rules else ASIDE
                        object.__setattr__(self, "_fastpickle_plan", aside)
                        if TELLS_WHOSE and overrides_batches(type(self)):
                            adapted = adapt(self)
                    else:
                        plan = hooks.plan(self)
                        if outer is not None and not plan:
                            plan = PLAIN  # at protocol 0 there is nothing but grafts, and those are for the root
                        if outer is None and plan.graft_rule is not None:
                            if not self.__dict__.pop("_fastpickle_is_refused", False):
                                is_grafted = graft.root(self, plan, obj)
                                if is_grafted:
                                    return
                                if is_grafted is not None:
                                    plan = hooks.plan(self)
                            if (
                                plan.graft_rule is not hooks.STOCK_RULE
                                and t in _SHORT
                                and 0 < len(obj) < graft.FEWEST
                                and not _is_worth_a_plan(self, ASIDE, obj, t)
                            ):
                                plan = ASIDE
                        is_root = True
                        object.__setattr__(
                            self, "_fastpickle_plan", plan
                        )  # the class may have a __setattr__ of its own
                        if TELLS_WHOSE and outer is None and overrides_batches(type(self)):
                            adapted = adapt(self)
                        if plan:
                            outer_dump = self.__dict__.get("_fastpickle_dump")
                            has_dump = True
                            self.__dict__["_fastpickle_dump"] = Dump(self, obj if outer is None else None)
                        elif plan is ASIDE:
                            plan = PLAIN
                if plan is not PLAIN:
                    framer = self.framer
                    if plan.doubted is not None:
                        in_doubt = plan  # and again when this returns: who called may change something then, too
                        plan = settled(self)
                    frame = framer.current_frame
                    if frame is not None and frame.tell() >= framer._FRAME_SIZE_TARGET:
                        plan = commit_frame(self, framer)
                        frame = framer.current_frame
                        committed = True
                    if plan:
                        x = self.memo.get(id(obj))
                        if x is not None:
                            self.write(self.get(x[0]))
                        elif (
                            t is str
                            and frame is not None
                            and len(obj) <= 63
                            and plan.proto >= 4
                            and plan.hash_rule is None
                        ):
                            # the name of a class or function, for which the loop would take 3 us to begin
                            x = obj.encode("utf-8", "surrogatepass")
                            frame.write(SHORT_BINUNICODE[len(x)] + x + MEMOIZE)
                            memo = self.memo
                            memo[id(obj)] = len(memo), obj
                        elif t in plan:
                            saver = plan[t]
                            if saver is None or (
                                t in _SHORT and len(obj) < SHORTEST_OF_ATOMS and plan.hash_rule is None
                            ):
                                save_all(self, plan, iter((obj,)), 1, framer.write)
                            else:
                                saver(self, plan, obj, framer.file_write if frame is None else frame.write)
                        elif (call := self.dispatch.get(t)) is None or is_stocks(self, call, obj, t):
                            reduced = (save_object if plan.hash_rule is None else save_hashed)(self, plan, obj, None)
                            if reduced is not None:
                                save_all(self, plan, iter(()), 0, framer.write, [(obj, reduced, iter(reduced[0]))])
                        else:  # as save_object() would, with a frame less
                            state = self.__dict__
                            state["_fastpickle_plan"] = ASIDE
                            try:
                                call(self, obj)
                            finally:
                                state["_fastpickle_plan"] = plan.in_doubt
                        return

            # No shortcuts: what follows is stock's save(), but for the frequent atoms.
            if not committed:
                framer = self.framer
                if type(framer) is Framer:
                    frame = framer.current_frame
                    if frame is not None and frame.tell() >= framer._FRAME_SIZE_TARGET:
                        framer.commit_frame()
                else:
                    framer.commit_frame()
            if save_persistent_id or ASKS_PERSISTENT_ID_ALWAYS:
                x = self.persistent_id(obj)
                if x is not None and save_persistent_id:
                    if type(self).save is Pickler.save:
                        self.save_pers(x)
                        return
                    if is_asked_about(self, obj):
                        save_pers(self, x)
                        return
            x = self.memo.get(id(obj))
            if x is not None:
                self.write(self.get(x[0]))
                return
            x = NotImplemented
            if t in _ATOMS:  # reducer_override is not asked about them, as by the C pickler
                entry = self.dispatch.get(t)
                if self.bin:
                    if entry is _stock_save_str:  # of any type, where a table has it in a strange place
                        if t is str and len(obj) <= 63:  # 255 bytes at the most
                            x = obj.encode("utf-8", "surrogatepass")
                            n = len(x)
                            self.write((SHORT_BINUNICODE[n] if self.proto >= 4 else pack_binunicode(BINUNICODE, n)) + x)
                            self.memoize(obj)
                            return
                    elif entry is _stock_save_long:
                        if t is not int:
                            pass
                        elif 0 <= obj <= 0xFFFF:
                            self.write(BININT1[obj] if obj <= 0xFF else pack_binint2(BININT2, obj))
                            return
                        elif -0x80000000 <= obj <= 0x7FFFFFFF:
                            self.write(pack_binint(BININT, obj))
                            return
                    elif entry is _stock_save_none:
                        self.write(NONE)
                        return
                    elif entry is _stock_save_float and t is float:
                        self.write(pack_binfloat(BINFLOAT, obj))
                        return
                    elif entry is _stock_save_bytes and t is bytes and len(obj) <= 255 and self.proto >= 3:
                        self.write(SHORT_BINBYTES[len(obj)] + obj)
                        self.memoize(obj)
                        return
            else:
                reduce = getattr(self, "reducer_override", NO_VALUE)
                if reduce is not NO_VALUE:
                    x = reduce(obj)
                entry = self.dispatch.get(t) if x is NotImplemented else None
            if x is NotImplemented:
                if entry is not None:
                    entry(self, obj)
                    return
                reduce, x = reduce_value(self, obj, t)
                if x is AS_CLASS:
                    self.save_global(obj)
                    return
            if isinstance(x, str):
                self.save_global(obj, x)
                return
            if not isinstance(x, tuple) or not 2 <= len(x) <= 6:
                refuse_reduce_value(obj, reduce, x)
            if is_for_later:  # a plan takes 6 us to begin, more than it takes to save a few atoms without
                plan = PLAIN if is_brief(x) else hooks.plan(self)
                if plan:
                    state = self.__dict__
                    state["_fastpickle_dump"] = Dump(self, obj)
                    state["_fastpickle_plan"] = plan
                    try:
                        reduced = save_object(self, plan, obj, None, x)
                        if reduced is not None:
                            save_all(self, plan, iter(()), 0, self.framer.write, [(obj, reduced, iter(reduced[0]))])
                    finally:
                        state["_fastpickle_plan"] = plan.in_doubt  # another reduce may have called, and go on
                    return
                if is_root:
                    object.__setattr__(self, "_fastpickle_plan", PLAIN)
            try:
                self.save_reduce(*x, obj=obj)
            except BaseException as exc:
                note(exc, obj, "object")
                raise
        finally:
            if is_root:
                if outer is not None:
                    object.__setattr__(self, "_fastpickle_plan", outer)
                else:
                    object.__delattr__(self, "_fastpickle_plan")
                if adapted:
                    restore_adapted(self, adapted)
                if is_few or is_for_later:  # there is one if something gave much
                    begun = self.__dict__.get("_fastpickle_dump")
                    if begun is not None:
                        has_dump = True
                        framer = begun.framer
                if has_dump:
                    if outer_dump is None:
                        self.__dict__.pop("_fastpickle_dump", None)
                    else:
                        self.__dict__["_fastpickle_dump"] = outer_dump
                    if framer is not None and type(framer.file_write) is FunctionType:
                        restore(framer)
            elif in_doubt is not None:
                self.__dict__["_fastpickle_plan"] = in_doubt


def _is_worth_a_plan(pickler: Any, outer: Plan, obj: Any, t: type) -> bool:
    """Tell whether an object is saved sooner with a plan, which takes 6 us to begin, than hook by hook."""
    if outer is COLD:
        return is_worth_a_plan(pickler, obj, t)
    first = next(iter(obj.values())) if t is dict else obj[0]
    kind = type(first)
    if kind is list or kind is dict or kind is tuple:
        return len(obj) * (len(first) + 1) >= _WORTH_IT
    return len(obj) >= _WORTH_IT and id(kind) in hooks.ATOM_IDS and not (t is dict and _is_module_dict(obj))


def _is_module_dict(obj: dict[Any, Any]) -> bool:
    """Tell whether a dict begins as that of a module does, which a library writes by reference."""
    key = next(iter(obj))
    return type(key) is str and key == "__name__"


#: So many objects; the 18 that a function's code is made of are saved sooner hook by hook.
_WORTH_IT: Final = 24


for _name, _method in batch_methods.items():
    setattr(Pickler, _name, _method)

hooks.known_saves[Pickler.save] = save_object
hooks.own_save = Pickler.save

if not FRAMES_ARE_BYTESIO and NO_VALUE is None:  # PyPy 3.11
    from . import pypy, straight

    hooks.savers.update(straight.SAVERS)

    Pickler.save = pypy.save  # type: ignore[method-assign]  # the class is made for CPython
    del Pickler.dump
    hooks.known_saves[stock_methods["save"]] = hooks.known_saves[Pickler.save] = pypy.save_object
    del Pickler.memo
elif not FRAMES_ARE_BYTESIO:  # a newer one, of which nothing is known
    Pickler.save = stock_methods["save"]  # type: ignore[method-assign]  # as above
    del Pickler.dump
    del Pickler.memo

graft.calibrate(Pickler)
