"""`Pickler`: the stock pure-Python pickler, with plain data written by one loop instead of a call per object and hook.

    save(obj) --+-- no plan yet: hooks.plan(self), then
                +-- plan:        its saver (plain), or save_object (reduce), whose parts come back to save()
                +-- PLAIN:       stock's save(), hook by hook, with the atoms sooner

Everything that stock keeps in `memo`, `framer` and `write` is kept there at every moment at which other code can look:
stock's methods, overrides and ours may be mixed within one dump, and `install()` may come and go between two of them.

Not for: deciding what a hook forbids (`hooks`).
"""

from __future__ import annotations

from pickle import BINFLOAT, BININT, BININT2
from typing import Any

from . import hooks
from ._stdlib import ASKS_PERSISTENT_ID_ALWAYS, FRAMES_ARE_BYTESIO, NO_VALUE, Framer, StockPickler, stock_methods
from .hooks import Plan, settled
from .opcodes import BININT1, SHORT_BINUNICODE, pack_binfloat, pack_binint, pack_binint2
from .plain import commit_frame, save_all
from .reduce import save_object, save_reduce_value

__all__ = ["Pickler"]

_stock_save_str = stock_methods["save_str"]
_stock_save_float = stock_methods["save_float"]
_stock_save_long = stock_methods["save_long"]
_ATOMS = frozenset(hooks.ATOMS)
#: The class whose commit_frame() need not be called to know that the frame is not full.
_KnownFramer: Any = Framer if FRAMES_ARE_BYTESIO else None


class Pickler(StockPickler):  # type: ignore[misc]  # its class is private to the stdlib, so typeshed does not know it
    """Write a pickle to a file: the bytes of `pickle._Pickler`, sooner.

    It is made, used and subclassed like `pickle._Pickler`, every hook of which it honours; a subclass that overrides
    something goes only as fast as that allows (see `fastpickle.hooks`).
    """

    #: The plan in force, on the instance while it saves; install() puts this one on stock.
    _fastpickle_plan: Plan | None = None

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
        if plan is None:
            # The root of a dump.  A class may have its own __setattr__; and __dict__ is left alone, see hooks.plan().
            object.__setattr__(self, "_fastpickle_plan", hooks.plan(self))
            try:
                _save(self, obj, save_persistent_id)
            finally:
                object.__delattr__(self, "_fastpickle_plan")
            return
        if plan.doubted is not None:
            plan = settled(self)
        if plan:
            _save_one(self, plan, obj)
            return
        # What follows is stock's save(), hook by hook, but that `reducer_override` is not asked about atoms (as in the
        # C pickler), and that the most frequent atoms are written here.
        framer = self.framer
        if (
            type(framer) is not _KnownFramer
            or (frame := framer.current_frame) is None
            or frame.tell() >= framer._FRAME_SIZE_TARGET
        ):
            framer.commit_frame()
        if save_persistent_id or ASKS_PERSISTENT_ID_ALWAYS:
            pid = self.persistent_id(obj)
            if pid is not None and save_persistent_id:
                self.save_pers(pid)
                return
        x = self.memo.get(id(obj))
        if x is not None:
            self.write(self.get(x[0]))
            return
        t = type(obj)
        if t not in _ATOMS:
            reduce = getattr(self, "reducer_override", NO_VALUE)
            if reduce is not NO_VALUE:
                rv = reduce(obj)
                if rv is not NotImplemented:
                    save_reduce_value(self, obj, reduce, rv)
                    return
        entry = self.dispatch.get(t)
        if entry is _stock_save_long and self.bin and -0x80000000 <= obj <= 0x7FFFFFFF:
            if 0 <= obj <= 0xFFFF:
                self.write(BININT1[obj] if obj <= 0xFF else pack_binint2(BININT2, obj))
            else:
                self.write(pack_binint(BININT, obj))
        elif entry is _stock_save_float and self.bin:
            self.write(pack_binfloat(BINFLOAT, obj))
        elif entry is _stock_save_str and self.proto >= 4 and len(obj) <= 63:  # 255 bytes at the most
            encoded = obj.encode("utf-8", "surrogatepass")
            self.write(SHORT_BINUNICODE[len(encoded)] + encoded)
            self.memoize(obj)
        elif entry is None:
            save_object(self, plan, obj)
        else:
            entry(self, obj)


_save = Pickler.save


def _save_one(pickler: Any, plan: Plan, obj: Any) -> None:
    """Save one object with the shortcuts of `plan`: a part of a reduce, or one that an override of `save` handed on."""
    framer = pickler.framer
    frame = framer.current_frame
    if frame is not None and frame.tell() >= framer._FRAME_SIZE_TARGET:
        plan = commit_frame(pickler, framer)
        frame = framer.current_frame
    memo = pickler.memo
    key = id(obj)
    if key in memo:
        pickler.write(pickler.get(memo[key][0]))
        return
    t = type(obj)
    saver = plan.get(t)
    if saver is not None:
        saver(pickler, plan, obj, framer.file_write if frame is None else frame.write)
    elif t in plan:
        save_all(pickler, plan, iter((obj,)))
    else:
        save_object(pickler, plan, obj)


hooks.known_saves[_save] = save_object
