"""Small plain data at once, for picklers that make digests: the function calls with which most of them are used.

    at_once(pickler, obj)   allowed, and empty memo? --+-- all of it is small: PROTO [ obj ] STOP   -> the file
                                                       +-- something is not:   nothing, as if it had not been tried;
                                                           the loop, or hook by hook, which is COLD

A library's digest takes some 20 us, most of it for the hooks that each object goes through.  Here are none, as in
`hashing`, which takes 6 us to begin.

Not for: which hooks such a pickler has, and whether they are known (`hooks`), nor for what is not small (`hashing`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from itertools import chain
from operator import itemgetter
from pickle import (
    APPEND,
    APPENDS,
    BINBYTES,
    BINFLOAT,
    BINUNICODE,
    EMPTY_DICT,
    EMPTY_LIST,
    EMPTY_TUPLE,
    MARK,
    MEMOIZE,
    NEWFALSE,
    NEWTRUE,
    NONE,
    SETITEM,
    SETITEMS,
    STOP,
    TUPLE,
)
from types import FunctionType, NoneType
from typing import Any, Final

from .. import hooks
from .._stdlib import TELLS_WHOSE
from ..accelerator.splicing import write_dump
from ..engine.columns import write_int
from ..hooks import COLD, Plan
from ..interrupts import GivenUp, is_interrupt
from ..older import is_to_be_adapted
from ..opcodes import (
    BINGET,
    BINPUT,
    SHORT_BINBYTES,
    SHORT_BINUNICODE,
    TUPLES,
    pack_binbytes,
    pack_binfloat,
    pack_binunicode,
)
from ..rules import HashRule
from .hashing import is_worth_a_plan
from .shapes import LONG_HEADERS, are_sortable

__all__ = ["at_once"]

#: A container of more items is left to `hashing`.
_MOST_ITEMS: Final = 24
#: When there are so many pieces, no container is opened any more; so no number of the memo needs more than a byte.
_MOST_PIECES: Final = 120
#: A longer text or bytes is left to it, too: it would be copied in vain if what comes behind is not small.
_LONGEST: Final = 4096
#: By protocol: what encodes an atom, by the id of its type, since the hash of a type may be anybody's; bytes are one
#: where they are not memoized.
_Atoms = dict[int, Callable[[Any], bytes]]


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
            if is_worth_a_plan(pickler, obj, t):
                return False
        elif (
            rule.is_other is not None
            and not (t is type or t is FunctionType)  # one alone is saved sooner by its hooks
            and rule.is_other(t)
            and _is_written(pickler, obj, t)
        ):
            return True
    except RecursionError:  # stock needs fewer frames for what takes but one
        pass
    return COLD if goes_by_hooks else False


def _is_written(pickler: Any, obj: Any, t: type) -> bool:
    """Write a whole dump, if nothing in it is found not to be small plain data, and tell whether it is written."""
    plan = hooks.plan(pickler)
    rule = plan.hash_rule
    if (
        rule is None
        or not plan.save_list is plan.save_tuple is hooks.hash_savers[list][1]
        or (plan.save_dict is not plan.save_list and plan.is_plain_dict is None)
        or (rule.is_unsorted is not None and rule.is_unsorted(pickler))
    ):
        return False
    state = pickler.__dict__
    framer = state["framer"]
    memo = state["memo"]
    file_write = framer.file_write
    if memo or framer.current_frame is not None or type(file_write.__self__) is not BytesIO:
        return False
    proto = plan.proto
    is_plain_dict = None if plan.is_plain_dict is None else partial(plan.is_plain_dict, pickler)
    pieces: list[bytes] = []
    puts = _PUTS[proto]
    others = None if rule.others is None else rule.others(pickler)
    try:
        if t is dict or t is list or t is tuple:
            atoms = _ATOMS[rule.memoizes_bytes][proto]
            is_all = _encode(obj, t, memo, pieces, atoms, puts, is_plain_dict, others)
        else:
            is_all = others is not None and others.encode(obj, t, memo, pieces, puts.__getitem__)
    except BaseException as exc:
        memo.clear()
        # Surrogates; keys that cannot be compared; another thread has changed a dict, or too deep.
        if not isinstance(exc, (_TooLong, UnicodeEncodeError, TypeError, RuntimeError)) or is_interrupt(exc):
            raise
        return False
    if is_all:
        pieces.append(STOP)
        if write_dump(file_write, proto, b"".join(pieces)):
            if others is not None:
                others.finish()
            return True
    memo.clear()
    return False


def _is_small(obj: Any, t: type, rule: HashRule) -> bool:
    """Tell whether there are few items in a container, all of which may be encoded, and probably little in them."""
    if not 0 < len(obj) <= _MOST_ITEMS:
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
            return False
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


class _TooLong(GivenUp):
    """A text or bytes is too long."""


def _encode(
    owner: Any,
    t: type,
    memo: dict[int, tuple[int, Any]],
    pieces: list[bytes],
    atoms: _Atoms,
    puts: tuple[bytes, ...],
    is_plain_dict: Callable[[dict[Any, Any]], bool] | None,
    others: Any,
) -> bool:
    """Append the opcodes of a container to `pieces`, and add what is memoized to the memo; tell whether that is all.

    Args:
        owner: the container, which is not in the memo.
        t: its type.
        memo: the pickler's, which was empty before the dump.
        pieces: as they are before it.
        atoms: what encodes those of a type.
        puts: the opcodes that memoize, by the number.
        is_plain_dict: tells whether a library's entry would save a dict as stock does; or None.
        others: encodes what is no plain data, if the library knows it (`others` of the rule); or None.
    """
    if len(owner) > _MOST_ITEMS or len(pieces) > _MOST_PIECES:
        return False
    # All goes by a snapshot that is taken by one call, as stock takes one of each batch: another thread may change it.
    batch: Any
    if t is dict:
        pairs = [*owner.items()]
        n = len(pairs)
        if (
            (is_plain_dict is not None and not is_plain_dict(owner))
            or not are_sortable([key for key, _ in pairs])
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
    for x in batch:
        t_of_x = type(x)
        encode = atoms.get(id(t_of_x))
        if encode is not None:
            pieces.append(encode(x))
            continue
        key = id(x)
        if key in memo:
            pieces.append(BINGET[memo[key][0]])
        elif t_of_x is dict or t_of_x is list or t_of_x is tuple:
            if not x and t_of_x is tuple:
                pieces.append(EMPTY_TUPLE)
            elif not _encode(x, t_of_x, memo, pieces, atoms, puts, is_plain_dict, others):
                return False
        elif (
            others is None or len(pieces) > _MOST_PIECES or not others.encode(x, t_of_x, memo, pieces, puts.__getitem__)
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


def _text(headers: tuple[bytes, ...], x: str) -> bytes:
    if len(x) > _LONGEST:
        raise _TooLong
    encoded = x.encode()
    n = len(encoded)
    return (headers[n] if n <= 255 else pack_binunicode(BINUNICODE, n)) + encoded


def _bytes(x: bytes) -> bytes:
    n = len(x)
    if n > _LONGEST:
        raise _TooLong
    return (SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)) + x


def _atoms(proto: int, memoizes_bytes: bool) -> _Atoms:
    """Return what encodes atoms at a protocol."""
    encoders: dict[type, Callable[[Any], bytes]] = {
        str: partial(_text, SHORT_BINUNICODE if proto >= 4 else LONG_HEADERS),
        int: write_int,
        float: partial(pack_binfloat, BINFLOAT),
        bool: (NEWFALSE, NEWTRUE).__getitem__,
        NoneType: {None: NONE}.__getitem__,
    }
    if proto >= 3 and not memoizes_bytes:
        encoders[bytes] = _bytes
    return {id(t): encode for t, encode in encoders.items()}


_ATOMS: Final = [[_atoms(proto, memoizes_bytes) for proto in range(6)] for memoizes_bytes in (False, True)]
_key: Final = itemgetter(0)
_PUTS: Final = [(MEMOIZE,) * 256 if proto >= 4 else BINPUT for proto in range(6)]
_ENDS: Final = {(False, False): APPEND, (False, True): APPENDS, (True, False): SETITEM, (True, True): SETITEMS}
