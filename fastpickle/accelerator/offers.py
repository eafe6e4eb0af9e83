"""What the C pickler is asked about: which objects may be offered to it, and when.

    may_graft(pickler) ------------> whether nobody would notice now, if C wrote for a pickler
    may_offer(pickler, n) ---------> whether that is worth it for a part with so many items, after what C has refused
    is_offered, may_be_plain, ... -> whether C is not likely to give up at an object, by a look at it
    gains_nothing(pickler, ...) ---> whether nothing but hooks is left to a dump that is not for C

Not for: what a hook forbids (`hooks`), nor for what C writes and what comes of it (`graft`, `chunks`).
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from operator import attrgetter
from types import BuiltinMethodType, FunctionType
from typing import Any, Final

from .. import hooks
from .._stdlib import MAY_RUN_OUT_OF_STACK, TELLS_WHOSE, Framer, is_usual_file
from ..hooks import Plan
from ..interrupts import is_interrupt
from ..objects.asked import HAVE_A_NAME, METACLASS_IDS
from ..objects.known import is_refused
from ..objects.last import last
from ..objects.likely import is_for_stock, is_somebodys
from ..older import overrides_batches
from ..rules import GraftRule

__all__ = [
    "FEWEST",
    "LONG",
    "back_off",
    "gains_nothing",
    "has_refused",
    "is_exact",
    "is_for_batches",
    "is_offered",
    "is_tiny",
    "longest",
    "may_be_librarys",
    "may_be_plain",
    "may_go_by_hooks",
    "may_graft",
    "may_offer",
    "may_write",
    "note_refused",
]

#: From this many items on a container inside is offered to C, if they are more than the memo's entries, which have to
#: be copied there and back: an entry costs 0.3 us, an item gains 0.1 to 0.3 us, an offer costs 3 us.
FEWEST: Final = 48
#: A flat container of so many items is written sooner hook by hook, if it is all that is dumped.
_TINY: Final = 3
#: Where a dispatch entry is somebody's, so few atoms are, in all containers together.
_LITTLE: Final = 24
#: Longer ones are not tried whole: much of it might be given up.
LONG: Final = 1_000_000
longest = LONG  # but for `calibrate`
#: Of so many items a few are looked at before C is asked about all of them.
_LOOKED_AT: Final = 5_000
#: Up to which recursion limit C is not likely to run out of stack before it.
_DEEP: Final = 10_000


def may_offer(pickler: Any, plan: Plan, n: int) -> bool:
    """Tell whether a container with `n` items in it is worth an offer now."""
    if n < FEWEST + len(pickler.memo):
        return False
    dump = pickler._fastpickle_dump
    if dump.offers_to_skip:
        dump.offers_to_skip -= 1
        return False
    return (pickler.framer.current_frame is None) is (plan.proto < 4) and may_graft(pickler, plan)


def may_graft(pickler: Any, plan: Plan) -> bool:
    """Tell whether C may write for this pickler now, if there is a frame where it needs one."""
    framer = pickler.framer
    return (
        getattr(pickler, "fastpickle_grafts", False)  # not there any more after uninstall()
        and _is_usual_framer(pickler, framer)
        and (plan.graft_rule.lengths is None or bool(plan.graft_rule.lengths(pickler)))
    )


def _is_usual_framer(pickler: Any, framer: Any) -> bool:
    """Tell whether what C hands over may be written to the file by `framer`, and nobody notices."""
    write_large_bytes = pickler.__dict__.get("_write_large_bytes")
    return (
        may_write()
        and type(framer.file_write) is BuiltinMethodType
        and is_usual_file(framer.file_write.__self__)
        and getattr(write_large_bytes, "__func__", None) is _write_large_bytes
        and write_large_bytes.__self__ is framer
    )


_write_large_bytes: Final = Framer.write_large_bytes
_attributes_of_framer = attrgetter(
    "start_framing", "end_framing", "commit_frame", "write", "write_large_bytes", "_FRAME_SIZE_TARGET",
    "_FRAME_SIZE_MIN",
)  # fmt: skip
_FRAMER: Final = _attributes_of_framer(Framer)


def may_write() -> bool:
    """Tell whether frames are stock's, and whether the C stack has room for as deep a recursion as C tries."""
    return (
        _attributes_of_framer(Framer) == _FRAMER
        and threading.stack_size() == 0
        and (not MAY_RUN_OUT_OF_STACK or sys.getrecursionlimit() <= _DEEP)
    )


def has_refused(pickler: Any, plan: Plan, obj: Any, t: type) -> bool:
    """Tell whether one of a few items of a long list or dict is what C gives up at.

    C finds it in a fifth of the time in which Python writes all that is before it.
    """
    n = len(obj) if t is list or t is dict else 0
    if n < _LOOKED_AT:
        return False
    try:
        some = obj[:: -(n // 3)] if t is list else (next(reversed(obj.values()), None),)
    except RuntimeError as exc:  # another thread has changed it
        if is_interrupt(exc):
            raise
        return False
    kinds = [*map(type, some)]
    return not hooks.PLAIN_IDS.issuperset(map(id, kinds)) and any(
        id(kind) not in hooks.PLAIN_IDS and is_refused(pickler, plan, kind) for kind in kinds
    )


def back_off(dump: Any) -> None:
    """Skip offers after one that failed: one, three, seven ... after each further one, until one succeeds."""
    dump.penalty = min(2 * dump.penalty + 1, 127)
    dump.offers_to_skip = dump.penalty


def is_exact(t: type) -> bool:
    return id(t) in hooks.CONTAINER_IDS


def is_offered(rule: GraftRule, obj: Any, t: type) -> bool:
    """Tell whether C is asked about what is dumped; a library may have to read files to know a function or a class."""
    if rule is hooks.STOCK_RULE:
        return is_exact(t) or (t is not FunctionType and t is not type and not is_somebodys(t))
    return may_be_plain(obj, t)


def is_tiny(obj: Any, t: type) -> bool:
    """Tell whether an object is an exact container of so few atoms that neither C nor a plan would gain anything."""
    return (
        (is_exact(t) or t is bytearray)
        and len(obj) <= _TINY
        and hooks.ATOM_IDS.issuperset(map(id, map(type, obj.values() if t is dict else obj)))
    )


def gains_nothing(pickler: Any, plan: Plan, obj: Any, t: type) -> bool:
    """Tell whether a whole dump is for hooks alone: by the pickler's, or it is little and a dispatch entry somebody's.

    Args:
        pickler: one that has begun no dump, or may have.
        plan: its plan, which has no rule for grafts.
        obj: what is dumped.
        t: its type.
    """
    try:
        cls = type(pickler)
        if cls.save is not hooks.own_save or not may_go_by_hooks(pickler):
            return False
        if plan is hooks.PLAIN:  # by what the class has, since a framer may do, once there is a frame
            return not hooks.are_known(cls) or (type(cls) is type and hasattr(cls, "reducer_override"))
        has_stocks = plan.short_lists and plan.short_dicts and plan.short_tuples
        return not has_stocks and (t is list or t is dict or t is tuple) and _is_little(obj)
    except Exception as exc:  # it is a descriptor that raises; another thread has changed a dict; the stack is full
        if type(exc) is not RecursionError and is_interrupt(exc):
            raise
        return False


def may_go_by_hooks(pickler: Any) -> bool:
    """Tell whether a whole dump may go hook by hook: it is no part of another one, and no override is to be adapted."""
    return pickler._fastpickle_plan is None and not (TELLS_WHOSE and overrides_batches(type(pickler)))


def _is_little(obj: Any) -> bool:
    """Tell whether there are but a few atoms in a list, dict or tuple, and in those in it, and nothing else."""
    n = 0
    opened = [obj]
    for x in opened:
        is_dict = type(x) is dict
        n += 2 * len(x) if is_dict else len(x)
        if n > _LITTLE:
            return False
        for y in x.values() if is_dict else x:
            t = type(y)
            if t is list or t is dict or t is tuple:
                opened.append(y)
            elif id(t) not in hooks.ATOM_IDS:
                return False
    return True


def may_be_plain(obj: Any, t: type) -> bool:
    """Tell whether an object is an exact container, and is long, or has nothing but plain data in it at the top."""
    if id(t) not in hooks.CONTAINER_IDS:
        return id(t) in _CONTAINERS_OF_STDLIB and len(obj) >= FEWEST
    return len(obj) >= FEWEST or hooks.PLAIN_IDS.issuperset(map(id, map(type, obj.values() if t is dict else obj)))


def may_be_librarys(save: Any, obj: Any, t: type) -> bool | None:
    """Tell the same for a library's `save`: of a shorter container, too, if C reduces all there is, as far as is known.

    Args:
        save: that of a pickler's class, one of `hooks.choosy_saves`.
        obj, t: the object, and its type.

    Returns:
        Whether that is so; None if C has given up the like of it.
    """
    if may_be_plain(obj, t):
        return True
    # Others' have writers of their own, or save functions and classes in another way.
    if save not in hooks.rewriting_saves or id(t) not in hooks.CONTAINER_IDS or len(obj) < _FEWEST_KNOWN:
        return False
    is_choice = hooks.choosy_saves[save]
    known = None
    for kind in [*map(type, obj.values() if t is dict else obj)]:  # by one call: another thread may change it
        if kind is known or id(kind) in hooks.PLAIN_IDS:
            continue
        if id(kind) in HAVE_A_NAME or id(type(kind)) not in METACLASS_IDS or is_choice(kind) or is_for_stock(kind):
            return False
        if last.is_not_at_once(~id(kind)):
            return None
        known = kind
    return True


def note_refused(obj: Any, t: type) -> None:
    """Remember that C gave up a short container of a library's: with such objects none is offered for a while."""
    for key in {*map(id, map(type, obj.values() if t is dict else obj))}:
        if key not in hooks.PLAIN_IDS:
            last.remember_not_at_once(~key)  # what cannot be written alone is told by the id itself


#: Of fewer C writes none sooner, with the look at the pickler.
_FEWEST_KNOWN: Final = 12

#: Containers of the standard library that are reduced, by id, since the hash of a type may be anybody's.
_CONTAINERS_OF_STDLIB: Final = frozenset(map(id, (Counter, OrderedDict, defaultdict, deque)))


def is_for_batches(obj: Any, t: type) -> bool:
    """Tell whether a list or dict is too long to be tried whole."""
    return (t is list or t is dict) and len(obj) > longest
