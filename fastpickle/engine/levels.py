"""Levels: what is open while the loop saves what is in it, how it ends, and what a failure in it is noted with.

    owner, ending, items --+-- None                                  what the loop was called for
                           +-- list, dict      bytes                 their opcodes
                           +-- tuple           None                  TUPLE, or what was memoized meanwhile
                           +-- any object      `hooks.Reduced`       its parts, then its items, then its state

Not for: saving anything in the usual way (`loop`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pickle import (
    APPEND,
    APPENDS,
    BUILD,
    FROZENSET,
    LONG_BINPUT,
    MEMOIZE,
    POP,
    POP_MARK,
    REDUCE,
    SETITEM,
    SETITEMS,
    TUPLE,
    TUPLE2,
)
from typing import Any, Final, TypeAlias

from .._stdlib import note, note_value
from ..doubts import holds
from ..hooks import Plan, Reduced, Write
from ..opcodes import BINPUT, MEMOIZED_TUPLE, MEMOIZED_TUPLES, TUPLES, pack_long_binput

__all__ = ["Level", "end_frozenset", "end_known_tuple", "end_tuple", "note_levels", "put", "save_levels"]

#: What is open (None: what the loop was called for), what ends it (None: a tuple's), and its items or parts to come.
Level: TypeAlias = "tuple[Any, bytes | Reduced | None, Iterator[Any]]"


def put(proto: int, i: int) -> bytes:
    """Return the opcode that stores the top of the stack as number `i` of the memo."""
    if proto >= 4:
        return MEMOIZE
    return BINPUT[i] if i <= 255 else pack_long_binput(LONG_BINPUT, i)


def end_frozenset(pickler: Any, plan: Plan, obj: frozenset[Any], memo: Any, write: Write) -> None:
    """End a frozenset of which the elements are saved, at protocol 4 or higher, whether or not `plan` is in force."""
    if id(obj) in memo:
        write(POP_MARK + pickler.get(memo[id(obj)][0]))
    elif holds(pickler, plan):
        i = len(memo)
        write(FROZENSET + MEMOIZE)
        memo[id(obj)] = i, obj
    else:
        write(FROZENSET)
        pickler.memoize(obj)


def end_known_tuple(pickler: Any, plan: Plan, obj: tuple[Any, ...], memo: Any, write: Write) -> None:
    """End a tuple of which the items are saved, with `plan` in force."""
    n = len(obj)
    key = id(obj)
    i = len(memo)
    proto = plan.proto
    if key in memo:  # it contains itself, and was saved while its items were: drop them and fetch it
        write((POP * n if n <= 3 and proto >= 2 else POP_MARK) + pickler.get(memo[key][0]))
    elif proto >= 4:
        write(MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE)
        memo[key] = i, obj
    else:
        write((TUPLES[n] if n <= 3 and proto >= 2 else TUPLE) + put(proto, i))
        memo[key] = i, obj


def end_tuple(pickler: Any, obj: tuple[Any, ...], is_short: bool, memo: Any, write: Write) -> None:
    """End a tuple as stock does where the plan is no longer in force; `is_short` and `memo` are from its start."""
    n = len(obj)
    if id(obj) in memo:
        pop = POP * n if is_short else POP_MARK if pickler.bin else POP * (n + 1)
        write(pop + pickler.get(memo[id(obj)][0]))
    else:
        write(TUPLES[n] if is_short else TUPLE)
        pickler.memoize(obj)


def save_levels(pickler: Any, plan: Plan, opened: list[Level], write: Write, memo: Any) -> Write:
    """Save the rest of all that is open, where `plan` is no longer in force; `write` and `memo` are from before."""
    while True:
        owner, ending, items = opened[-1]
        for x in items:
            plan.save(pickler, x)
        if owner is None:
            return write
        parts: tuple[Any, ...] = ()
        if isinstance(ending, bytes):
            for i in range(len(ending)):  # without frames the file sees each opcode
                write(ending[i : i + 1])
        elif ending is None:
            is_short = len(owner) <= 3 and plan.proto >= 2
            end_tuple(pickler, owner, is_short, memo, pickler.write if is_short else write)
        else:
            _, opcode, _, _, finish, parts, parts_ending = ending
            write(opcode)
            if id(owner) in pickler.memo:
                write(POP + pickler.get(pickler.memo[id(owner)][0]))
            else:
                pickler.memoize(owner)
            rest: Any = None if finish is None else finish()
            if rest is not None:
                rest[0](*rest[1])
        if parts:
            opened[-1] = owner, parts_ending, iter(parts)
        else:
            opened.pop()


def note_levels(exc: BaseException, levels: Iterable[Level]) -> None:
    """Note in `exc` which item or part of each level was being saved, from the innermost on; like stock, no keys."""
    for owner, ending, items in levels:
        if owner is None:
            continue
        state: Any = items.__reduce__()  # that of a list's or tuple's iterator: iter, (it,), index; no index at its end
        i = state[2] - 1 if len(state) == 3 else -1
        if ending is None or ending in (APPEND, APPENDS):
            if i >= 0:
                note(exc, owner, "item", i)
        elif ending in (SETITEM, SETITEMS):
            if i > 0 and i % 2:
                note_value(exc, owner, state[1][0][i - 1])
        else:
            labels, outer = (_LABELS[ending], "object") if isinstance(ending, bytes) else ending[2:4]
            if i >= 0 and labels[i]:
                note(exc, owner, labels[i])
            if outer:
                note(exc, owner, outer)


#: What 3.14 calls the parts of a state in its notes, by what ends them; stock says nothing of the object.
_LABELS: Final = {b"": (), BUILD: ("state",), TUPLE2 + REDUCE + POP: ("state setter", "", "state")}
