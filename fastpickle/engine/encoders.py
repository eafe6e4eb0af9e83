"""Encoders: a few objects of known types to their opcodes, all or nothing, without a plan, which takes longer to begin.

    save_tuple(pickler, plan, obj)          a tuple that a library's function saves
    write_at_once(parts, encode, ...) ----> encode(parts, ..., memo, i, pieces) -> the frame, or nothing

    encode_all --+-- in the memo, atoms, tuples: here
                 +-- other types, by `add_encoder`: lists, dicts, frozensets; classes and functions found under their
                     names; what a library knows of its own dispatch entries (`backends`)

What is memoized is put into the memo at once, and taken out if something turns out to be none of that, or much, or if
the frame has no room for all.  Nobody's code runs meanwhile.

Not for: what a reduce gave (`brief`), nor for what is much (`loop`, `graft`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import chain
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from .._stdlib import NOT_WRITTEN, stock_methods
from ..hooks import ATOM_IDS, Plan
from ..interrupts import GivenUp, is_interrupt
from ..objects.known import extension_registry, finds_names, is_by_name
from ..opcodes import (
    BINGET,
    BININT1,
    MARKED_DICT,
    MARKED_LIST,
    MEMOIZED_DICT,
    MEMOIZED_LIST,
    MEMOIZED_TUPLE,
    MEMOIZED_TUPLES,
    SHORT_BINBYTES,
    SHORT_BINUNICODE,
    pack_binbytes,
    pack_binfloat,
    pack_binint,
    pack_binint2,
    pack_binunicode,
    pack_long,
    pack_long_binget,
)
from .columns import forget
from .tries import Tries

# fmt: off
from pickle import (  # isort: skip
    APPEND, APPENDS, BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE, EMPTY_TUPLE, FROZENSET, LONG_BINGET, MARK,
    MEMOIZE, NEWFALSE, NEWTRUE, NONE, REDUCE, SETITEM, SETITEMS, STACK_GLOBAL,
)
# fmt: on

__all__ = [
    "FEW",
    "LONGEST",
    "MOST",
    "MOST_BITS",
    "MOST_BRIEF",
    "Encoder",
    "Memo",
    "NotBrief",
    "Parts",
    "add_encoder",
    "brief_ids",
    "encode",
    "encode_all",
    "encode_call",
    "encode_callable",
    "encode_dict",
    "encode_global",
    "encode_name",
    "encode_tuple",
    "end_call",
    "save_tuple",
    "usual_tries",
    "write_at_once",
]

#: So many atoms are few; with 24 texts a plan takes no longer.
FEW: Final = 16
#: So many items may be in a tuple of a library's: the names and constants of a function are often more than few.
MOST: Final = 256
#: So many in other containers there; longer ones are for C.
MOST_BRIEF: Final = 32
#: So much may be encoded before it turns out that there is something else; a function is 80 pieces.
_MOST_PIECES: Final = 4 << 10
#: So many tuples may be in one another.
_DEEPEST: Final = 24
#: So many bytes a text may have, and so many bits an int: few enough that a frame has room for some of them.
LONGEST: Final = 16 << 10
MOST_BITS: Final = 1 << 10
#: So many characters of a module's name and another one have no more than 255 bytes each.
_SHORT_NAMES: Final = 63
_CALL: Final = REDUCE + MEMOIZE
_GLOBAL: Final = STACK_GLOBAL + MEMOIZE
_FROZENSET: Final = FROZENSET + MEMOIZE


Memo = dict[int, "tuple[int, Any]"]


def save_tuple(pickler: Any, plan: Plan, obj: tuple[Any, ...]) -> bool:
    """Write a tuple that a library's function saves, if there is little in it: a plan would take longer to begin.

    Args:
        pickler: a pickler.
        plan: what it allows now.
        obj: an exact tuple that is not empty.

    Returns:
        Whether it is written; if not, nothing is.  Nobody's code has run.
    """
    tries = _plain_tries if _PLAIN_IDS.issuperset(map(id, map(type, obj))) else usual_tries
    if id(obj) in pickler.memo or not tries.may_try(pickler, obj[0]):
        return False
    return write_at_once(Parts(pickler, plan), encode_tuple, obj, tries=tries)


#: Of what may have anything in it.
usual_tries: Final = Tries()
#: Of tuples that have only atoms and tuples in them at the top, as that of a code object.
_plain_tries: Final = Tries()
_PLAIN_IDS: Final = ATOM_IDS | {id(tuple)}


def write_at_once(parts: Parts, encode: Callable[..., int], *args: Any, tries: Tries = usual_tries) -> bool:
    """Write what an encoder encodes, if there is room for it in the frame.

    Args:
        parts: stands for the pickler.
        encode: called as encode(parts, *args, memo, i, pieces), as an `Encoder` is.
        args: what it encodes.
        tries: the tries that this is one of.

    Returns:
        Whether it is written; if not, nothing is.
    """
    plan = parts.plan
    framer = parts.pickler.framer
    frame = framer.current_frame
    if not plan.short_tuples or plan.proto < 4 or plan.hash_rule is not None or frame is None:
        return False
    memo = parts.pickler.memo
    before = len(memo)
    pieces: list[bytes] = []
    try:
        encode(parts, *args, memo, before, pieces)
        data = b"".join(pieces)
        has_room = frame.tell() + len(data) < framer._FRAME_SIZE_TARGET
    except BaseException as exc:  # what cannot be saved fails again where it is saved one by one
        forget(memo, before)
        if is_interrupt(exc):
            raise
        tries.note_failure(pieces)
        return False
    if not has_room:
        forget(memo, before)
        return False
    try:
        frame.write(data)
    except NOT_WRITTEN as exc:
        forget(memo, before)
        if is_interrupt(exc):
            raise
        return False
    # It is not to be written once more, whatever fails from here on.
    for items, x in parts.to_append:
        items.append(x)
    tries.note_success()
    return True


class Parts:
    """What stands for a pickler while something is encoded in which there may be a library's objects.

    Attributes:
        pickler: the pickler.
        plan: what it allows now.
        depth: how many tuples are open.
        functions: how many functions are.
        known: what the library has found out about the pickler.
        to_append: lists, each with what is to be appended to it once all is written.
    """

    __slots__ = ("depth", "functions", "known", "pickler", "plan", "to_append")

    def __init__(self, pickler: Any, plan: Plan) -> None:
        self.pickler = pickler
        self.plan = plan
        self.depth = self.functions = 0
        self.known: Any = None
        self.to_append: list[tuple[list[Any], Any]] = []


#: Appends the opcodes of an object that is not in the memo to the pieces, and what is memoized to the memo, which had
#: `i` entries; returns how many it has then: encoder(parts, obj, memo, i, pieces).  It runs nobody's code.
Encoder = Callable[[Parts, Any, Memo, int, "list[bytes]"], int]

#: The encoders of what is no atom and no tuple, by the id of the type.  Libraries add theirs, by `add_encoder`.
_encoders: Final[dict[int, Encoder]] = {}
#: What may be in a tuple that is written at once: types by id, since a hash may be anybody's.
brief_ids: Final = {*ATOM_IDS, id(tuple)}


def add_encoder(t: type, encoder: Encoder) -> None:
    """Let an encoder, which asks for the dispatch entry, encode the instances of a type."""
    _encoders[id(t)] = encoder
    brief_ids.add(id(t))


class NotBrief(GivenUp):
    """There is something that only the loop, or stock, can save, or much."""


def encode_all(
    plan: Plan, objs: Any, memo: Memo, i: int, pieces: list[bytes], parts: Parts | None = None, most: int = FEW
) -> int:
    """Append the opcodes of atoms and of tuples to `pieces`, and what is memoized to the memo, which had `i` entries.

    As `small` does, but each is looked up in the memo, also numbers: somebody's code may have put them there.  To share
    what is written of one atom would be a call for each.

    Args:
        plan, objs, memo, i, pieces: as said.
        parts: stands for a library's pickler, whose objects may be among them; None for others.
        most: so many items a tuple may have.

    Returns:
        How many it has then.

    Raises:
        NotBrief: something else, or something long.
        UnicodeEncodeError: a text has surrogates.
        RecursionError: tuples are nested too deeply for this; the loop takes no Python frame for them.
    """
    for x in objs:
        key = id(x)
        if key in memo:
            k = memo[key][0]
            if k < 0 or (plan.rewrites is not None and id(type(x)) not in ATOM_IDS and plan.rewrites(type(x))):
                raise NotBrief
            pieces.append(BINGET[k] if k <= 255 else pack_long_binget(LONG_BINGET, k))
            continue
        t = type(x)
        if t is str:
            encoded = x.encode()
            n = len(encoded)
            if n > LONGEST:
                raise NotBrief
            pieces.append(SHORT_BINUNICODE[n] if n <= 255 else pack_binunicode(BINUNICODE, n))
            pieces.append(encoded)
            pieces.append(MEMOIZE)
            memo[key] = i, x
            i += 1
        elif t is int:
            if 0 <= x <= 255:
                pieces.append(BININT1[x])
            elif 0 <= x <= 0xFFFF:
                pieces.append(pack_binint2(BININT2, x))
            elif -0x80000000 <= x <= 0x7FFFFFFF:
                pieces.append(pack_binint(BININT, x))
            elif x.bit_length() <= MOST_BITS:
                pieces.append(pack_long(x))
            else:
                raise NotBrief
        elif x is None:
            pieces.append(NONE)
        elif t is float:
            pieces.append(pack_binfloat(BINFLOAT, x))
        elif t is bool:
            pieces.append(NEWTRUE if x else NEWFALSE)
        elif t is bytes:
            n = len(x)
            if n > LONGEST:
                raise NotBrief
            pieces.append(SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n))
            pieces.append(x)
            pieces.append(MEMOIZE)
            memo[key] = i, x
            i += 1
        elif t is tuple:
            n = len(x)
            if not n:
                pieces.append(EMPTY_TUPLE)
                continue
            if n > most:
                raise NotBrief
            if parts is not None:
                i = encode_tuple(parts, x, memo, i, pieces)
                continue
            if n > 3:
                pieces.append(MARK)
            i = encode_all(plan, x, memo, i, pieces)
            pieces.append(MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE)
            memo[key] = i, x
            i += 1
        elif parts is not None:
            encoder = _encoders.get(id(t))
            if encoder is None:
                raise NotBrief
            i = encoder(parts, x, memo, i, pieces)
        else:
            raise NotBrief
    return i


def encode(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode any object, which may be in the memo, as an `Encoder` does."""
    return encode_all(parts.plan, (obj,), memo, i, pieces, parts, MOST)


def encode_tuple(parts: Parts, obj: tuple[Any, ...], memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a tuple that is not empty, as an `Encoder` does."""
    n = len(obj)
    parts.depth += 1
    if parts.depth > _DEEPEST or len(pieces) > _MOST_PIECES:
        raise NotBrief
    if n > 3:
        pieces.append(MARK)
    i = encode_all(parts.plan, obj, memo, i, pieces, parts, MOST)
    if id(obj) in memo:  # it contains itself
        raise NotBrief
    parts.depth -= 1
    pieces.append(MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE)
    memo[id(obj)] = i, obj
    return i + 1


def encode_call(
    parts: Parts, obj: Any, func: Any, args: tuple[Any, ...], memo: Memo, i: int, pieces: list[bytes]
) -> int:
    """Encode an object that a library's function gives to `save_reduce` as a call, as an `Encoder` does."""
    i = encode_callable(parts, func, memo, i, pieces)
    if id(args) in memo:
        raise NotBrief
    i = encode_tuple(parts, args, memo, i, pieces)
    return end_call(obj, memo, i, pieces)


def encode_callable(parts: Parts, func: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode what is called, as an `Encoder` does."""
    if id(func) in memo:
        return encode_all(parts.plan, (func,), memo, i, pieces)  # fetches it
    return _encoders[id(type(func))](parts, func, memo, i, pieces)  # KeyError: nothing is known of it


def end_call(obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Append the call of what is encoded, and memoize what it gives; return how many are memoized."""
    if id(obj) in memo:  # it contains itself
        raise NotBrief
    pieces.append(_CALL)
    memo[id(obj)] = i, obj
    return i + 1


def encode_name(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a class or function that stock saves by its name, and finds under it, as an `Encoder` does."""
    t = type(obj)
    pickler = parts.pickler
    entry = dict.get(pickler.dispatch, t)
    if t is type and entry is _save_type:  # as `is_by_name` would ask, with three calls less
        if not finds_names(pickler):
            raise NotBrief
        name = obj.__qualname__
        module = obj.__module__
        found = sys.modules.get(module) if type(module) is str else None
        if type(found) is not ModuleType or type(name) is not str or found.__dict__.get(name) is not obj:
            raise NotBrief
    else:
        if (entry is not None and type(entry) is not FunctionType) or not is_by_name(pickler, obj, t):
            raise NotBrief
        # A builtin function's name is made anew each time it is asked for, as stock asks.
        name = obj.__reduce__() if t is BuiltinFunctionType else obj.__qualname__
        module = obj.__module__
    # They say that C may be asked, which looks once more: for the package, and from where a module is left.
    if (
        id(obj) in _NAMED_OTHERWISE
        or "." in name
        or hasattr(ModuleType, name)
        or sys.modules.get(module.partition(".")[0]) is None  # None there forbids to import it
    ):
        raise NotBrief
    return encode_global(parts, obj, module, name, memo, i, pieces)


_save_type: Final = stock_methods["save_type"]
#: Classes that stock saves by a call, by id.
_NAMED_OTHERWISE: Final = frozenset(map(id, (type(None), type(NotImplemented), type(...))))


def encode_global(parts: Parts, obj: Any, module: Any, name: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode what is found under a name in a module, as an `Encoder` does."""
    if type(module) is not str or type(name) is not str or extension_registry:
        raise NotBrief
    key = id(module)
    key_of_name = id(name)
    if key not in memo and key_of_name not in memo and module is not name and len(module) + len(name) <= _SHORT_NAMES:
        text = module.encode()  # as `encode_all` would
        text_of_name = name.encode()
        pieces += SHORT_BINUNICODE[len(text)], text, MEMOIZE
        pieces += SHORT_BINUNICODE[len(text_of_name)], text_of_name, MEMOIZE, _GLOBAL
        memo[key] = i, module
        memo[key_of_name] = i + 1, name
        memo[id(obj)] = i + 2, obj
        return i + 3
    i = encode_all(parts.plan, (module, name), memo, i, pieces)
    pieces.append(_GLOBAL)
    memo[id(obj)] = i, obj
    return i + 1


def _encode_list(parts: Parts, obj: list[Any], memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a short list, as an `Encoder` does."""
    items = obj[:]  # another thread may change it
    n = len(items)
    if n > MOST_BRIEF or len(pieces) > _MOST_PIECES or not parts.plan.short_lists:
        raise NotBrief
    memo[id(obj)] = i, obj
    pieces.append(MARKED_LIST if n > 1 else MEMOIZED_LIST)
    i += 1
    if n:
        i = encode_all(parts.plan, items, memo, i, pieces, parts, MOST)
        pieces.append(APPENDS if n > 1 else APPEND)
    return i


def encode_dict(parts: Parts, obj: dict[Any, Any], memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a short dict, as an `Encoder` does, whatever the dispatch entry is."""
    items = [*chain.from_iterable(obj.items())] if obj else ()  # as above
    n = len(items)
    if n > 2 * MOST_BRIEF or len(pieces) > _MOST_PIECES:
        raise NotBrief
    memo[id(obj)] = i, obj
    pieces.append(MARKED_DICT if n > 2 else MEMOIZED_DICT)
    i += 1
    if n:
        i = encode_all(parts.plan, items, memo, i, pieces, parts, MOST)
        pieces.append(SETITEMS if n > 2 else SETITEM)
    return i


def _encode_frozenset(parts: Parts, obj: frozenset[Any], memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a small frozenset, as an `Encoder` does."""
    if len(obj) > MOST_BRIEF or len(pieces) > _MOST_PIECES or frozenset not in parts.plan.containers:
        raise NotBrief
    pieces.append(MARK)
    i = encode_all(parts.plan, obj, memo, i, pieces, parts, MOST)
    if id(obj) in memo:
        raise NotBrief
    pieces.append(_FROZENSET)
    memo[id(obj)] = i, obj
    return i + 1


def _encode_plain_dict(parts: Parts, obj: dict[Any, Any], memo: Memo, i: int, pieces: list[bytes]) -> int:
    if not parts.plan.short_dicts:
        raise NotBrief
    return encode_dict(parts, obj, memo, i, pieces)


add_encoder(list, _encode_list)
add_encoder(dict, _encode_plain_dict)
add_encoder(frozenset, _encode_frozenset)
for _type in (type, FunctionType, BuiltinFunctionType):
    add_encoder(_type, encode_name)
