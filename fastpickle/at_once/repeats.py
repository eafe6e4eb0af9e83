"""Repeats: a small dump like the last one, which went hook by hook and was little, does so without a look at it.

    dump 1       at_once: None -> hook by hook, and little --(learn_from_few)--> its classes are remembered (`last`)
                 by a library's pickler, or much
    dump 2 ... 16              goes_by_hooks --> AS_LAST in force, hook by hook; nothing is asked about its parts
                               if it was much: ASIDE, and its parts are asked
    dump 17      at_once again, and if that is as before the next 31, 63, ..., at most 255

To see that nothing is to be gained takes longer than the dump of one object.  A dump in which there is more after all
goes on as one that was looked at, from there on (`Pickler.save`).

Not for: what C gave up, of which the next ones are not offered to it (`quick`).
"""

from __future__ import annotations

from typing import Any

from .. import hooks
from .._stdlib import TELLS_WHOSE
from ..interrupts import is_interrupt
from ..objects.asked import HAVE_A_NAME, METACLASS_IDS
from ..objects.last import MOST_OF_FEW, are_few, last, types_at_top
from ..objects.likely import is_for_stock, is_leaf
from ..older import overrides_batches
from .tasks import is_only_a_name

__all__ = ["goes_by_hooks", "learn_from_few"]


def goes_by_hooks(pickler: Any, obj: Any, t: type) -> bool:
    """Tell whether a dump is to go hook by hook without a look at it, as the last one with such an object did.

    It is what `at_once` says by None, in a fourth of the time.

    Args:
        pickler: one that has written nothing of this dump.
        obj: what is dumped.
        t: its type.
    """
    last.few_left -= 1  # where it is in vain, too: that takes a while
    try:
        cls = type(pickler)
        save = cls.save
        is_container = t is dict or t is list or t is tuple
        few = (last.few_refused if is_container and save is not hooks.own_save else last.few).get(save)
        if (
            few is None
            or not (are_few(few, obj, t) if is_container else id(t) in few)
            or (TELLS_WHOSE and overrides_batches(cls))
            or pickler._fastpickle_plan is not None
        ):
            return False
    except Exception as exc:  # it is a descriptor that raises, or has no hash; or another thread has changed a dict
        if type(exc) is not RecursionError and is_interrupt(exc):
            raise
        return False
    return True


def learn_from_few(pickler: Any, obj: Any, t: type) -> None:
    """Remember for `goes_by_hooks` that a dump went hook by hook: there was little in it, or a library chose that."""
    memo = pickler.__dict__.get("memo")  # to ask for it would fetch it from C, and then there was much
    try:
        save = type(pickler).save
        if type(memo) is not dict or (len(memo) > MOST_OF_FEW and save is hooks.own_save):
            return
        types = types_at_top(obj, t)
        is_choice = hooks.choosy_saves.get(save, is_for_stock)
        # Of another metaclass, which may have a hash of its own, nothing is asked.
        refused = [x for x in types if is_for_stock(x) or id(type(x)) not in METACLASS_IDS or is_choice(x)]
        if refused or (types and save is hooks.own_save):
            last.remember_few(save, refused or types, refused)
        elif t is type or is_leaf(t) or (id(t) in HAVE_A_NAME and is_only_a_name(type(pickler), obj, t)):
            last.remember_few(save, types, refused)
        else:  # a library's went so for something below, perhaps
            return
        if len(memo) > MOST_OF_FEW:
            last.few_much.add(id(t))
        else:
            last.few_much.discard(id(t))
    except Exception as exc:  # the stack is full, and all is written; another thread has changed a dict
        if type(exc) is not RecursionError and is_interrupt(exc):
            raise
