"""Rows: objects one after the other, the reduces of which give what is brief, by one function.

    save_row(items) --+-- an object of a class that was saved briefly --> its reduce, a look at the pickler, its opcodes
                      +-- an atom, what is in the memo -----------------> its opcode
                      +-- anything else, a full frame ------------------> the loop goes on there
                      +-- what is not brief, a pickler that has changed > the loop goes on with what the reduce gave

Each of these objects may run somebody's code.  Through the loop it would take 900 of the interpreter's instructions, in
seven functions, most of them to find out again what has not changed; a look at just that takes a third.

Not for: the first object of a class, which puts the class into the memo, and not for what a reduce gave (`brief`).
"""

from __future__ import annotations

import pickle
from operator import attrgetter, itemgetter
from pickle import LONG_BINGET, MEMOIZE, REDUCE
from typing import Any, Final

from .._stdlib import NO_VALUE, NOT_WRITTEN, PARTS_OF_METHODS, Framer, entry_of
from ..doubts import Dump, doubt, settled
from ..hooks import ATOM_IDS, ATOMS, Plan
from ..interrupts import is_interrupt
from ..objects.asked import HAVE_A_NAME
from ..objects.known import METACLASS_IDS
from ..objects.values import old_value
from ..opcodes import BINGET, MEMOIZED_TUPLES, pack_long_binget
from .brief import save_brief
from .columns import forget
from .encoders import NotBrief, encode_all

__all__ = ["save_row"]

_pickle: Any = pickle  # its dispatch_table is no public name
#: What must not change while a row is saved: of the pickler, of its class, and of its dispatch entries.
_looked_at: Final = itemgetter("framer", "write", "bin", "fast", "_fastpickle_plan")
_methods_of: Final = attrgetter(
    "save", "memoize", "put", "get", "persistent_id", "save_reduce", "_batch_setitems", "_BATCHSIZE",
    "__getattribute__", *PARTS_OF_METHODS,
)  # fmt: skip
_entries_of: Final = itemgetter(*ATOMS, tuple, dict)
_CALL: Final = REDUCE + MEMOIZE
#: How often none is looked for, at most, between two that are none, and so how late a row may begin: to look takes a
#: fifth of what an object takes.
_MOST_SKIPPED: Final = 16


def save_row(pickler: Any, plan: Plan, items: Any) -> tuple[Any, Any, Any] | None:
    """Save the next of some items as long as they are brief.

    Args:
        pickler: one whose plan in force is `plan`.
        plan: the plan.
        items: an iterator over a list.

    Returns:
        None, and the next item is yet to be taken; or one that has been, with its reduce, and what that gave.  The plan
        may be in doubt then, in either case.
    """
    state = pickler.__dict__
    dump: Dump = state["_fastpickle_dump"]
    if dump.rows_to_skip:
        dump.rows_to_skip -= 1
        return None
    _, (objs, *_), *place = items.__reduce__()  # at its end it has no place
    if not place:
        return None
    ahead = [id(type(x)) for x in objs[place[0] : place[0] + 2]]
    if not ahead or plan.rewrites is not None or ahead[ahead[0] in ATOM_IDS and len(ahead) > 1] not in dump.brief:
        dump.futile_rows += 1
        dump.rows_to_skip = min(dump.futile_rows, _MOST_SKIPPED)
        return None  # to begin takes longer than to save one; what comes first may be a key
    dump.futile_rows = 0
    if dump.names is None:  # the reduces have run nobody's code so far, and the pickler has not been looked at
        doubt(pickler)  # else it is not looked at
        if settled(pickler) is not plan:
            return None
    framer = dump.framer
    frame = framer.current_frame
    names = dump.names
    if names is None or dump.methods is None or frame is None or state["_fastpickle_plan"] is not plan:
        return None  # it is a pickler of which more is to be asked
    doubt(pickler)
    memo = dump.memo
    brief = dump.brief
    proto = state["proto"]
    cls = type(pickler)
    methods = _methods_of(cls)
    dispatch = pickler.dispatch
    kind = type(dispatch)
    entries = _entries_of(dispatch)
    as_it_was = _looked_at(state)
    tell = frame.tell
    write = frame.write
    target = framer._FRAME_SIZE_TARGET
    for x in items:
        if tell() >= target:
            break
        t = type(x)
        if id(t) in ATOM_IDS or id(x) in memo:
            before = len(memo)
            pieces: list[bytes] = []
            try:
                encode_all(plan, (x,), memo, before, pieces)
            except (NotBrief, UnicodeEncodeError):
                forget(memo, before)
                break
            except BaseException:  # an interrupt
                forget(memo, before)
                raise
            write(b"".join(pieces))
            continue
        if id(t) not in brief or id(type(t)) not in METACLASS_IDS or t in dispatch:
            break
        if plan.is_choice is not None and dump.is_choice(pickler, plan, t):
            break
        reduce = entry_of(getattr(pickler, "dispatch_table", _pickle.dispatch_table), t)
        if reduce is not NO_VALUE:
            rv = reduce(x)
        else:
            reduce = getattr(x, "__reduce_ex__", NO_VALUE)
            if reduce is not NO_VALUE:
                rv = reduce(pickler.proto)  # as it is now
            else:
                reduce, rv = old_value(x)
        try:
            is_as_it_was = (  # as `settled` looks, but at what matters here
                type(rv) is tuple
                and type(x) is t
                and type(pickler) is cls
                and state["memo"] is memo
                and state["proto"] is proto
                and _looked_at(state) == as_it_was
                and [*state] == names
                and framer.current_frame is frame
                and len(framer.__dict__) == 2
                and type(framer) is Framer
                and _methods_of(cls) == methods
                and pickler.dispatch is dispatch
                and type(dispatch) is kind
                and _entries_of(dispatch) == entries
                and getattr(pickler, "__getattr__", None) is None
                and getattr(pickler, "reducer_override", NO_VALUE) is NO_VALUE
            )
        except Exception as exc:  # something is missing, or is not what it is in stock
            if type(exc) in (RecursionError, MemoryError) or is_interrupt(exc):
                raise
            is_as_it_was = False
        if not is_as_it_was:
            return x, reduce, rv
        try:
            if len(rv) == 2:
                func, args = rv
                if (
                    type(args) is tuple
                    and 0 < len(args) <= 3
                    and id(type(func)) in HAVE_A_NAME
                    and func.__name__ not in _OTHERS
                    and id(args) not in memo
                    and id(x) not in memo
                ):  # the most frequent of what `save_brief` writes, with two calls less
                    i = before = len(memo)
                    try:
                        k = memo[id(func)][0]
                        pieces = [BINGET[k] if 0 <= k <= 255 else pack_long_binget(LONG_BINGET, k)]
                        i = encode_all(plan, args, memo, i, pieces)
                        pieces.append(MEMOIZED_TUPLES[len(args)])
                        pieces.append(_CALL)
                        memo[id(args)] = i, args
                        memo[id(x)] = i + 1, x
                        data = b"".join(pieces)
                    except BaseException as exc:  # what cannot be saved fails again where it is saved one by one
                        forget(memo, before)
                        if is_interrupt(exc):
                            raise
                        return x, reduce, rv
                    if tell() + len(data) < target:
                        try:
                            write(data)
                            continue
                        except NOT_WRITTEN as exc:  # after anything else it may be
                            forget(memo, before)
                            if is_interrupt(exc):
                                raise
                            return x, reduce, rv
                    forget(memo, before)
                    return x, reduce, rv
            if not 2 <= len(rv) <= 6 or not save_brief(pickler, plan, x, t, rv):
                return x, reduce, rv
        except (KeyError, AttributeError, TypeError) as exc:  # as above; nothing has been written
            if is_interrupt(exc):
                raise
            return x, reduce, rv
    else:
        return None
    items.__setstate__(items.__reduce__()[2] - 1)
    return None


#: What 3.10 to 3.15 look for in the name of what a reduce gives.
_OTHERS: Final = ("__newobj_ex__", "__newobj__")
