"""Small plain data at once, for picklers that make digests: the function calls with which most of them are used.

    at_once(pickler, obj)   allowed, and empty memo? --+-- all of it is small: PROTO [ obj ] STOP   -> the file
                                                       +-- something is not:   nothing, as if it had not been tried;
                                                           the loop, or hook by hook, which is COLD
    write_part(pickler, obj)   a dict or list on that way, as the state of a model, in the same manner

A library's digest takes some 20 us, most of it for the hooks that each object goes through.  Here are none, as in
`hashing`, which takes 6 us to begin.

Not for: which hooks such a pickler has, and whether they are known (`hooks`), nor for what is not small (`hashing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from itertools import chain
from operator import itemgetter
from pickle import (
    APPEND,
    APPENDS,
    EMPTY_DICT,
    EMPTY_LIST,
    EMPTY_TUPLE,
    MARK,
    MEMOIZE,
    SETITEM,
    SETITEMS,
    STOP,
    TUPLE,
)
from types import BuiltinMethodType, FunctionType
from typing import Any, Final

from .. import hooks
from .._stdlib import NOT_WRITTEN, TELLS_WHOSE
from ..accelerator.splicing import write_dump
from ..engine.columns import forget, pack_get
from ..engine.levels import put
from ..hooks import COLD, Plan
from ..interrupts import is_interrupt
from ..objects.last import last
from ..older import is_to_be_adapted
from ..opcodes import (
    BINPUT,
    TUPLES,
)
from ..rules import HashRule
from .atoms import BYTES, Atoms, atoms_of, encode_bytes
from .hashing import is_hash_worth_a_plan, rule_of
from .shapes import are_sortable

__all__ = ["MOST_ITEMS", "at_once", "write_part"]

#: A container of more items is left to `hashing`.
MOST_ITEMS: Final = 24
#: When there are so many pieces, no container is opened any more; so no number of the memo needs more than a byte in a
#: dump that is encoded whole.
_MOST_PIECES: Final = 120
#: No part is written behind more in the memo than that; and no part needs so many numbers of it.
_MOST_BEFORE: Final = 1 << 14
_MOST_PUTS: Final = 1 << 10


def at_once(pickler: Any, obj: Any, t: type) -> bool | Plan | None:
    """Write a whole dump, if it is small plain data, or tell how it is saved.

    Args:
        pickler: one that has written nothing of this dump.
        obj: what is dumped, no atom.
        t: its type.

    Returns:
        None if the pickler makes no digest in a way that is known; True if the dump is written.  If not, nothing is,
        and nothing has changed: COLD if it goes hook by hook, False if `save` has to find that out.
    """
    try:
        cls = type(pickler)
        rule = hooks.hash_rules.get(cls.save)
        if rule is None:
            return None
        goes_by_hooks = pickler._fastpickle_plan is None and not (TELLS_WHOSE and is_to_be_adapted(cls))
    except Exception as exc:  # it is a descriptor that raises, or has no hash
        if is_interrupt(exc):
            raise
        return None
    try:
        if t is dict or t is list or t is tuple:
            if _is_small(obj, t, rule) and _is_written(pickler, obj, t):
                return True
            if is_hash_worth_a_plan(pickler, obj, t):
                last.worth = id(obj)
                return False
        elif (
            rule.is_other is not None
            and not (t is type or t is FunctionType)  # one alone is saved sooner by its hooks
            and rule.is_other(t)
            and _is_written(pickler, obj, t)
        ):
            return True
    except RuntimeError as exc:  # stock needs fewer frames for what takes but one; another thread has changed a dict
        if is_interrupt(exc):
            raise
    return COLD if goes_by_hooks else False


def write_part(pickler: Any, obj: Any, t: type) -> bool | None:
    """Write a container in a dump that goes hook by hook, if it is small plain data, and tell whether it is written.

    Args:
        pickler: one with COLD in force.
        obj: a list, dict or tuple that is not in the memo, of a few items up to MOST_ITEMS.
        t: its type.

    Returns:
        None if there is something in it of which nothing is known; nothing is written then, nor if it is False.
    """
    try:
        rule = rule_of(pickler)
        is_small = None if rule is None else _is_small(obj, t, rule)
        return is_small and _is_part_written(pickler, obj, t)
    except RecursionError:  # as above
        return False


def _plan_of(pickler: Any) -> Plan | None:
    """Return the plan of a pickler, if it saves lists, dicts and tuples in a way that is known here."""
    plan = hooks.plan(pickler)
    rule = plan.hash_rule
    if (
        rule is None
        or not plan.save_list is plan.save_tuple is hooks.hash_savers[list][1]
        or (plan.save_dict is not plan.save_list and plan.is_plain_dict is None)
        or (rule.is_unsorted is not None and rule.is_unsorted(pickler))
        or type(pickler.framer.file_write) is not BuiltinMethodType
        or type(pickler.framer.file_write.__self__) is not BytesIO
    ):
        return None
    return plan


def _is_written(pickler: Any, obj: Any, t: type) -> bool:
    """Write a whole dump, if nothing in it is found not to be small plain data, and tell whether it is written."""
    plan = _plan_of(pickler)
    if plan is None:
        return False
    framer = pickler.framer
    memo = pickler.__dict__["memo"]
    if memo or framer.current_frame is not None:
        return False
    proto = plan.proto
    rule: Any = plan.hash_rule
    others = None if rule.others is None else rule.others(pickler)
    data = _encoded(pickler, plan, obj, t, memo, _PUTS[proto], others)
    if data is not None:
        if write_dump(framer.file_write, proto, data + STOP):
            if others is not None:
                others.finish()
            return True
        memo.clear()
    return False


def _is_part_written(pickler: Any, obj: Any, t: type) -> bool:
    """Write a part of a dump, if the frame is not full before its last object; tell whether it is written."""
    plan = _plan_of(pickler)
    if plan is None:
        return False
    memo = pickler.__dict__["memo"]
    before = len(memo)
    if before > _MOST_BEFORE:
        return False
    rule: Any = plan.hash_rule
    others = None if rule.others is None else rule.others(pickler)
    data = _encoded(pickler, plan, obj, t, memo, _puts_from(plan.proto, before), others, True)
    if data is None:
        return False
    framer = pickler.framer
    frame = framer.current_frame
    if frame is None or frame.tell() + len(data) < framer._FRAME_SIZE_TARGET:
        try:
            pickler.write(data)
        except NOT_WRITTEN as exc:
            if is_interrupt(exc):
                raise
        else:
            if others is not None:
                others.finish()
            return True
    forget(memo, before)
    return False


def _encoded(
    pickler: Any,
    plan: Plan,
    obj: Any,
    t: type,
    memo: dict[int, tuple[int, Any]],
    puts: Sequence[bytes],
    others: Any,
    is_part: bool = False,
) -> bytes | None:
    """Return the opcodes of an object; None if it is not small plain data, and then there is nothing in the memo.

    Args:
        pickler, plan: whose.
        obj, t: the object, and its type.
        memo, puts, others, is_part: as for `_encode`.
    """
    pieces: list[bytes] = []
    before = len(memo)
    is_all = False
    try:
        if t is dict or t is list or t is tuple:
            is_plain_dict = None if plan.is_plain_dict is None else partial(plan.is_plain_dict, pickler)
            atoms = atoms_of(plan)
            is_all = _encode(obj, t, memo, pieces, atoms, puts, is_plain_dict, others, is_part)
        else:
            is_all = others is not None and others.encode(obj, t, memo, pieces, puts.__getitem__)
    except Exception as exc:  # keys that cannot be compared, a dict that another thread has changed; too deep
        if is_interrupt(exc):
            raise
    finally:
        if not is_all:
            while len(memo) > before:  # no function is called: the stack may be full
                memo.popitem()
    return b"".join(pieces) if is_all else None


def _puts_from(proto: int, before: int) -> Sequence[bytes]:
    """Return the opcodes that memoize, by the number, as far as a part may need them behind so many."""
    puts = _more_puts[proto >= 4]
    if before + _MOST_PUTS > len(puts):
        puts = [put(proto, i) for i in range(2 * (before + _MOST_PUTS))]
        _more_puts[proto >= 4] = puts  # whole, as another thread may make one, too
    return puts


def _is_small(obj: Any, t: type, rule: HashRule) -> bool | None:
    """Tell whether there are few items in a container, and probably little in them; None if one cannot be encoded."""
    if not 0 < len(obj) <= MOST_ITEMS:
        return False
    try:
        values = [*(obj.values() if t is dict else obj)]
    except RuntimeError as exc:  # another thread has changed it
        if is_interrupt(exc):
            raise
        return False
    if not hooks.PLAIN_IDS.issuperset(map(id, map(type, values))):
        is_other = rule.is_other
        if is_other is None or not all(id(type(x)) in hooks.PLAIN_IDS or is_other(type(x)) for x in values):
            return None
    return _are_few(values)


def _are_few(values: list[Any]) -> bool:
    """Tell whether what is made of some objects is not too many pieces, if each of them is like the first one."""
    if not values:
        return True
    t = type(values[0])
    if id(t) not in hooks.CONTAINER_IDS:
        return True
    pieces = 3 + len(values[0]) * (2 if t is dict else 1)  # beside the items what opens it, MARK, and what ends it
    return len(values) * pieces <= _MOST_PIECES


def _encode(
    owner: Any,
    t: type,
    memo: dict[int, tuple[int, Any]],
    pieces: list[bytes],
    atoms: Atoms,
    puts: Sequence[bytes],
    is_plain_dict: Callable[[dict[Any, Any]], bool] | None,
    others: Any,
    is_part: bool,
) -> bool:
    """Append the opcodes of a container to `pieces`, and add what is memoized to the memo; tell whether that is all.

    Args:
        owner: the container, which is not in the memo.
        t: its type.
        memo: the pickler's.
        pieces: as they are before it.
        atoms: what encodes those of a type.
        puts: the opcodes that memoize, by the number.
        is_plain_dict: tells whether a library's entry would save a dict as stock does; or None.
        others: encodes what is no plain data, if the library knows it (`others` of the rule); or None.
        is_part: whether there may be something in the memo from before, an atom as well.
    """
    if len(owner) > MOST_ITEMS or len(pieces) > _MOST_PIECES:
        return False
    # All goes by a snapshot that is taken by one call, as stock takes one of each batch: another thread may change it.
    batch: Any
    if t is dict:
        pairs = [*owner.items()]
        n = len(pairs)
        if (
            not are_sortable([key for key, _ in pairs])
            or (is_plain_dict is not None and not is_plain_dict(owner))  # which compares keys with a name
            or (n > 1 and not _are_few([value for _, value in pairs]))
        ):
            return False
        pairs.sort(key=_key)  # no two keys are equal, so that stock never compares the values
        batch = chain.from_iterable(pairs)
    else:
        batch = owner if t is tuple else owner[:]
        n = len(batch)
        if n > 1 and not _are_few(batch):
            return False
    if t is tuple:
        if n > 3:
            pieces.append(MARK)
    else:
        i = len(memo)
        memo[id(owner)] = i, owner
        pieces.append((EMPTY_LIST if t is list else EMPTY_DICT) + puts[i])
        if n > 1:
            pieces.append(MARK)
    if is_part:
        batch = [*batch]
        if not memo.keys().isdisjoint([id(x) for x in batch if id(type(x)) in atoms]):
            return False  # somebody has put it there
    for x in batch:
        t_of_x = type(x)
        encode = atoms.get(id(t_of_x))
        if encode is not None:
            pieces.append(encode(x))
            continue
        key = id(x)
        if key in memo:
            if is_part and not _is_fetched(t_of_x, memo[key]):
                return False
            pieces.append(pack_get(memo[key][0]))
        elif t_of_x is dict or t_of_x is list or t_of_x is tuple:
            if not x and t_of_x is tuple:
                pieces.append(EMPTY_TUPLE)
            elif not _encode(x, t_of_x, memo, pieces, atoms, puts, is_plain_dict, others, is_part):
                return False
        elif t_of_x is bytes and BYTES in atoms and len(pieces) <= _MOST_PIECES:  # they are memoized
            i = len(memo)
            memo[key] = i, x
            pieces += encode_bytes(x), puts[i]
        elif (
            others is None
            or len(pieces) > _MOST_PIECES
            or (is_part and not others.is_new(x, t_of_x, memo))
            or not others.encode(x, t_of_x, memo, pieces, puts.__getitem__)
        ):
            return False
    if t is tuple:
        i = len(memo)
        if id(owner) in memo:  # it contains itself
            return False
        pieces.append(TUPLES[n] if n <= 3 else TUPLE)
        pieces.append(puts[i])
        memo[id(owner)] = i, owner
    elif n:
        pieces.append(_ENDS[t is dict, n > 1])
    return True


def _is_fetched(t: type, entry: Any) -> bool:
    """Tell whether stock would fetch an object that is in the memo, which somebody may have put there.

    An array, or a builtin function, is replaced by the library's `save` before that.
    """
    return id(t) in _FETCHED and type(entry) is tuple and len(entry) == 2 and type(entry[0]) is int


#: The types, by id, of what is memoized as it is.
_FETCHED: Final = frozenset(map(id, (dict, list, tuple, bytes, type, FunctionType)))
_key: Final = itemgetter(0)
_PUTS: Final = [(MEMOIZE,) * 256 if proto >= 4 else BINPUT for proto in range(6)]
#: The same for parts, below protocol 4 and from there on: ever longer ones.
_more_puts: Final[list[Sequence[bytes]]] = [BINPUT, (MEMOIZE,)]
_ENDS: Final = {(False, False): APPEND, (False, True): APPENDS, (True, False): SETITEM, (True, True): SETITEMS}
