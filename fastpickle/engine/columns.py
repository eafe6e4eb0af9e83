"""Columns: what is written of many objects of one kind at once: the innermost part of a run (`runs`).

    write_ints(objs) ...       one piece for each object, to stand in rows with those of other columns
    join_ints(objs) ...        all of them at once, which is sooner where they are all there is
    encode_atoms(objs, memo)   atoms of several types, one by one
    write_groups(...)          containers, given what is written of their items

Not for: deciding which objects make a column, nor in which order those of several are memoized (`runs`).
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count, islice, repeat
from operator import itemgetter
from struct import Struct, error
from types import NoneType
from typing import Any, Final, TypeVar

from .._stdlib import BATCHSIZE, Framer
from ..interrupts import GivenUp
from ..opcodes import (
    BINGET,
    BININT1,
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

# fmt: off
from pickle import (  # isort: skip
    ADDITEMS, APPEND, APPENDS, BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE, EMPTY_DICT, EMPTY_LIST, EMPTY_SET,
    FROZENSET, LONG_BINGET, MARK, MEMOIZE, NEWFALSE, NEWTRUE, NONE, SETITEM, SETITEMS,
)
# fmt: on

__all__ = [
    "FRAME_SIZE",
    "Column",
    "Gets",
    "Memo",
    "Pieces",
    "Refused",
    "Writer",
    "encode_atoms",
    "forget",
    "join_floats",
    "join_gets",
    "join_ints",
    "join_rows",
    "join_texts",
    "memoize",
    "pack_get",
    "write_atoms",
    "write_bools",
    "write_bytes",
    "write_floats",
    "write_groups",
    "write_int",
    "write_ints",
    "write_strs",
]

FRAME_SIZE: Final[int] = Framer._FRAME_SIZE_TARGET
Memo = dict[int, tuple[int, Any]]
Pieces = list[bytes]
#: A column of what is written: one piece for each row, or the piece that all rows have.
Column = Pieces | bytes
#: Gives the columns of some objects; with the GETs of those that are in the memo, None where an object is new.
Writer = Callable[[list[Any], "Gets | None"], list[Column]]
#: What is written of objects that are in the memo, None where one is new.
Gets = list["bytes | None"]


_Header = TypeVar("_Header", bytes, str)


class Refused(GivenUp):
    """The objects are not of one shape."""


def forget(memo: Memo, before: int) -> None:
    """Take out of a memo what was put in since it had `before` entries."""
    for _ in range(len(memo) - before):
        memo.popitem()


def memoize(objs: list[Any], memo: Memo) -> Gets | None:
    """Add objects to a memo, in order, where they are new to it.

    Returns:
        The GETs of the others, None where an object is new; None if all are.
    """
    before = len(memo)
    deque(map(memo.setdefault, map(id, objs), zip(count(before), objs)), 0)  # count() has no end
    grown = len(memo) - before
    if grown == len(objs):
        return None
    new_ids = [*islice(reversed(memo), grown)][::-1]
    places = [memo[key][0] - before for key in new_ids]
    if grown and places[-1] >= grown:  # those that were not new have been counted, too
        memo.update(zip(new_ids, zip(count(before), map(objs.__getitem__, places))))  # noqa: B905  # count() has no end
    ids = [*map(id, objs)]
    keys = {*ids}
    if 4 * len(keys) < len(ids):
        table = {key: pack_get(memo[key][0]) for key in keys}
        gets: Gets = [*map(table.__getitem__, ids)]
    else:
        gets = [BINGET[i] if 0 <= i <= 255 else pack_get(i) for i, x in map(memo.__getitem__, ids)]
    for place in places:
        gets[place] = None
    return gets


def pack_get(i: int) -> bytes:
    if i < 0:
        raise Refused  # a memo that is not memoize()'s: stock raises here
    return BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i)


def join_gets(objs: list[Any], memo: Memo) -> bytes | None:
    """Return the GETs of some objects, joined; None if not all of them are in the memo."""
    try:
        places = [*map(itemgetter(0), map(memo.__getitem__, map(id, objs)))]
    except KeyError:
        return None
    try:
        return _strided(BINGET[0][:1], bytes(places), 1, len(places))
    except ValueError:  # not all are from 0 to 255
        return b"".join(map(pack_get, places))


_NEWBOOLS: Final = (NEWFALSE, NEWTRUE)


def write_ints(objs: list[int], gets: Any) -> list[Column]:
    return [_ints(objs)]


def _ints(objs: list[int]) -> Pieces:
    least = min(objs)
    if least >= 0:
        table = _of_two_bytes if _have_table(len(objs)) else BININT1
        with suppress(IndexError):
            return [*map(table.__getitem__, objs)]
        if table is _of_two_bytes:
            with suppress(error):
                return [table[x] if x <= 0xFFFF else pack_binint(BININT, x) for x in objs]
    most = max(objs)
    if most > 0x7FFFFFFF or least < -0x80000000:
        return [*map(write_int, objs)]
    if least > 0xFFFF or most < 0:
        return [*map(pack_binint, repeat(BININT), objs)]
    return [  # in the order that takes the fewest comparisons for numbers of which most are large
        pack_binint(BININT, x) if x > 0xFFFF or x < 0 else pack_binint2(BININT2, x) if x > 255 else BININT1[x]
        for x in objs
    ]


def write_int(x: int) -> bytes:
    if 0 <= x <= 255:
        return BININT1[x]
    if 0 <= x <= 0xFFFF:
        return pack_binint2(BININT2, x)
    return pack_binint(BININT, x) if -0x80000000 <= x <= 0x7FFFFFFF else pack_long(x)


#: The opcodes of the ints of up to two bytes, once there is a use for them; to make them takes 3 MB and 5 ms.
_of_two_bytes: list[bytes] = []
_wanted = 0


def _have_table(n: int) -> bool:
    """Tell whether `_of_two_bytes` is there, of which `n` are wanted; from 20,000 on it is."""
    global _wanted
    if not _of_two_bytes:
        _wanted += n
        if _wanted >= 20_000:
            _of_two_bytes[:] = [*BININT1, *map(pack_binint2, repeat(BININT2), range(256, 0x10000))]
    return bool(_of_two_bytes)


def write_floats(objs: list[float], gets: Any) -> list[Column]:
    return [[*map(pack_binfloat, repeat(BINFLOAT), objs)]]


def write_bools(objs: list[bool], gets: Any) -> list[Column]:
    return [[*map(_NEWBOOLS.__getitem__, objs)]]


def write_atoms(objs: list[Any], gets: Gets | None) -> list[Column]:
    # All that has no GET is new: nothing is found in the memo that is begun here, and nobody sees it.
    if gets is not None:
        return _among_gets(objs, gets, write_atoms)
    pieces = encode_atoms(objs, {})
    if pieces is None:
        raise Refused
    return [pieces]


def encode_atoms(objs: list[Any], memo: Memo) -> Pieces | None:
    """Return the pieces of atoms of several types, and memoize them in order; None, and some are, if one is no atom."""
    pieces: Pieces = []
    write = pieces.append
    table = _of_two_bytes or BININT1
    end = len(table)
    for x in objs:
        if x is None:
            write(NONE)
            continue
        t = type(x)
        if t is int:
            if 0 <= x < end:
                write(table[x])
            elif 0 <= x <= 0xFFFF:
                write(pack_binint2(BININT2, x))
            elif -0x80000000 <= x <= 0x7FFFFFFF:
                write(pack_binint(BININT, x))
            else:
                write(pack_long(x))
        elif t is str:
            key = id(x)
            if key in memo:
                i = memo[key][0]
                write(BINGET[i] if 0 <= i <= 255 else pack_get(i))
                continue
            try:
                encoded = x.encode()
            except UnicodeEncodeError:
                encoded = x.encode("utf-8", "surrogatepass")
            n = len(encoded)
            write((SHORT_BINUNICODE[n] if n <= 255 else pack_binunicode(BINUNICODE, n)) + encoded + MEMOIZE)
            memo[key] = len(memo), x
        elif t is float:
            write(pack_binfloat(BINFLOAT, x))
        elif t is bool:
            write(NEWTRUE if x else NEWFALSE)
        elif t is bytes:
            key = id(x)
            if key in memo:
                i = memo[key][0]
                write(BINGET[i] if 0 <= i <= 255 else pack_get(i))
                continue
            n = len(x)
            write((SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)) + x + MEMOIZE)
            memo[key] = len(memo), x
        else:
            return None
    return pieces


def _encoded(objs: list[str]) -> list[bytes]:
    try:
        return [*map(str.encode, objs)]
    except UnicodeEncodeError:
        return [x.encode("utf-8", "surrogatepass") for x in objs]


def write_strs(objs: list[str], gets: Gets | None) -> list[Column]:
    if gets is not None:
        return _among_gets(objs, gets, write_strs)
    return _with_lengths(_encoded(objs), _text_headers, _text_header)


def write_bytes(objs: list[bytes], gets: Gets | None) -> list[Column]:
    if gets is not None:
        return _among_gets(objs, gets, write_bytes)
    return _with_lengths(objs, _bytes_headers, _bytes_header)


def _with_lengths(encoded: list[bytes], known: list[bytes], header: Callable[[int], bytes]) -> list[Column]:
    sizes = [*map(len, encoded)]
    if sum(sizes) > FRAME_SIZE:
        raise Refused  # they do not go into one frame
    return [_headers(sizes, known, header), encoded, MEMOIZE]


def _text_header(n: int) -> bytes:
    return SHORT_BINUNICODE[n] if n <= 255 else pack_binunicode(BINUNICODE, n)


def _bytes_header(n: int) -> bytes:
    return SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)


def _next_text(n: int) -> str:
    return (MEMOIZE + _text_header(n)).decode("latin-1")


#: The headers of texts and of bytes by their length, and what stands before the next of several texts, as Latin-1: up
#: to 255, and up to `_LONGEST_KNOWN` once there is a use for that; to make one table so long takes 75 KB and 0.2 ms.
_text_headers: Final = [*SHORT_BINUNICODE]
_bytes_headers: Final = [*SHORT_BINBYTES]
_next_texts: Final = [*map(_next_text, range(256))]
_LONGEST_KNOWN: Final = 2047


def _headers(sizes: list[int], known: list[_Header], header: Callable[[int], _Header]) -> list[_Header]:
    """Return the headers of texts of these sizes, by a table of them and the function that it is made by."""
    try:
        return list(map(known.__getitem__, sizes))
    except IndexError:
        if len(known) == 256:
            longer: list[_Header] = [header(n) for n in range(256, _LONGEST_KNOWN + 1)]
            known[256:] = longer  # at once, whoever reads it
        return [known[n] if n <= _LONGEST_KNOWN else header(n) for n in sizes]


def _among_gets(objs: list[Any], gets: Gets, write: Writer) -> list[Column]:
    """Write what is new, into its places among the GETs."""
    places = [i for i, get in enumerate(gets) if get is None]
    pieces: list[Any] = [*gets]
    if places:
        new = write([objs[i] for i in places], None)
        columns = [repeat(c, len(places)) if type(c) is bytes else c for c in new]
        for i, piece in zip(places, map(b"".join, zip(*columns, strict=True)), strict=True):
            pieces[i] = piece
    return [pieces]


def join_rows(columns: list[Any], n: int) -> bytes:
    """Return what is written of `n` rows: of each a piece from every column, one after the other."""
    width = len(columns)
    if width == 1:
        return columns[0] * n if type(columns[0]) is bytes else b"".join(columns[0])
    pieces = [c if type(c) is bytes else b"" for c in columns] * n
    for i, column in enumerate(columns):
        if type(column) is not bytes:
            pieces[i::width] = column  # sooner than by zip() and chain()
    return b"".join(pieces)


def join_texts(objs: list[Any], memo: Memo, room: int, step: int = 1) -> bytes | None:
    """Return what is written of some strs, or some bytes, joined, and memoize them.

    Args:
        objs: they; those for which the frame has no room are taken off the end.
        memo: the pickler's.
        room: how much goes into the frame.
        step: of how many objects a multiple is to be left.

    Returns:
        The opcodes; None if there is room for few of them, or none.
    """
    before = len(memo)
    n = len(objs)
    gets = memoize(objs, memo)
    is_str = type(objs[0]) is str
    if gets is not None:
        pieces: Any = (write_strs if is_str else write_bytes)(objs, gets)[0]
        data = b"".join(pieces)
        if len(data) <= room:
            return data
        k = _fitting([*map(len, pieces)], room, 0, step)
        forget(memo, before + gets[:k].count(None))
        del objs[k:]
        return b"".join(pieces[:k]) if 8 * k > n else None
    sizes = [*map(len, objs)]
    if sum(sizes) + 3 * n > room:  # a character takes one byte, or more
        _shorten(objs, sizes, memo, before, room, step)
        if 8 * len(objs) <= n:
            return None
        del sizes[len(objs) :]
    if is_str:
        if "".join(objs).isascii():
            # One encode() for all of them, the opcodes among them: in Latin-1 a character is a byte.
            texts = 2 * len(objs) * [""]
            texts[::2] = _headers(sizes, _next_texts, _next_text)
            texts[1::2] = objs
            texts[0] = texts[0][1:]
            return "".join(texts).encode("latin-1") + MEMOIZE
        encoded = _encoded(objs)
        sizes = [*map(len, encoded)]
        if sum(sizes) + 3 * len(objs) > room:
            _shorten(objs, sizes, memo, before, room, step)
            if 8 * len(objs) <= n:
                return None
            del encoded[len(objs) :], sizes[len(objs) :]
        headers = _headers(sizes, _text_headers, _text_header)
    else:
        encoded = objs
        headers = _headers(sizes, _bytes_headers, _bytes_header)
    return join_rows([headers, encoded, MEMOIZE], len(objs))


def _shorten(objs: list[Any], sizes: list[int], memo: Memo, before: int, room: int, step: int) -> None:
    """Take off new texts for which there is no room, and out of the memo, which had `before` entries."""
    k = _fitting(sizes, room, 3, step)
    forget(memo, before + k)
    del objs[k:]


def _fitting(sizes: list[int], room: int, header: int, step: int) -> int:
    """Return how many pieces of these sizes go into the frame, each with a header, which is longer for a long one."""
    k = 0
    for size in sizes:
        room -= size + header if size <= 255 else size + 2 * header
        if room < 0:
            break
        k += 1
    return k - k % step


def join_floats(objs: list[float]) -> bytes:
    n = len(objs)
    if n == BATCHSIZE:
        return _with_opcodes(BINFLOAT, _pack_floats(*objs), 8)
    packed = array("d", objs)
    if sys.byteorder == "little":
        packed.byteswap()
    return _strided(BINFLOAT, packed.tobytes(), 8, n)


def join_ints(objs: list[int]) -> bytes:
    with suppress(ValueError):  # where one is longer than a byte, or negative
        return _strided(b"K", bytes(objs), 1, len(objs))
    data = _join_full_batch(objs) if len(objs) == BATCHSIZE else _join_ints(objs)
    return b"".join(_ints(objs)) if data is None else data


def _join_full_batch(objs: list[int]) -> bytes | None:
    try:
        data = _with_opcodes(BININT2, _pack_two_bytes(*objs), 2)
    except error:
        if min(objs) > 0xFFFF or max(objs) < 0:
            with suppress(error):
                return _with_opcodes(BININT, _pack_four_bytes(*objs), 4)
        return None
    if 0 not in data[2::3]:  # sooner than by min()
        return data
    return b"".join(map(_of_two_bytes.__getitem__, objs)) if _have_table(len(objs)) else None


def _join_ints(objs: list[int]) -> bytes | None:
    n = len(objs)
    least = min(objs)
    if 0 <= least <= 255:
        if _have_table(n):
            with suppress(IndexError):
                return b"".join(map(_of_two_bytes.__getitem__, objs))
        return None
    with suppress(OverflowError):
        if 0 <= least <= 0xFFFF:
            return _strided(BININT2, _packed("H", objs), 2, n)
        if least > 0xFFFF or max(objs) < 0:
            return _strided(BININT, _packed("i", objs), 4, n)
    return None


def _packed(code: str, objs: list[int]) -> bytes:
    packed = array(code, objs)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _strided(opcode: bytes, packed: bytes, size: int, n: int) -> bytes:
    """Put an opcode before each `size` bytes."""
    data = bytearray(opcode) * ((size + 1) * n)
    for i in range(size):
        data[i + 1 :: size + 1] = packed[i::size]
    return bytes(data)


# A full batch is packed with room for its opcodes.  A Struct is worth it only if it is used again: to make it takes as
# long as what is above, and then it packs in half that time.
_pack_floats: Final = Struct(">" + BATCHSIZE * "xd").pack
_pack_two_bytes: Final = Struct("<" + BATCHSIZE * "xH").pack
_pack_four_bytes: Final = Struct("<" + BATCHSIZE * "xi").pack


def _with_opcodes(opcode: bytes, packed: bytes, size: int) -> bytes:
    data = bytearray(packed)
    data[:: size + 1] = opcode * BATCHSIZE
    return bytes(data)


def write_groups(t: type, pieces: Pieces, sizes: list[int]) -> Pieces:
    """Return what is written of containers, each with the next pieces as its items.

    Args:
        t: their type; NoneType for what is no container: one piece, or None.
        pieces: all items, one container's after the other's.
        sizes: how many items each has, at most as many as go into one batch.
    """
    rest = iter(pieces)
    if t is NoneType:
        return [next(rest) if n else NONE for n in sizes]
    if t is frozenset:
        return [MARK + b"".join(islice(rest, n)) + FROZENSET + MEMOIZE for n in sizes]
    empty, one, many = _OPCODES[t]
    marked = empty + MARK
    if t is set:  # which has no opcode for one item
        return [marked + b"".join(islice(rest, n)) + many if n else empty for n in sizes]
    return [
        marked + b"".join(islice(rest, n)) + many if n > 1 else empty + next(rest) + one if n else empty for n in sizes
    ]


_OPCODES: Final[dict[type, tuple[bytes, bytes, bytes]]] = {
    list: (EMPTY_LIST + MEMOIZE, APPEND, APPENDS),
    dict: (EMPTY_DICT + MEMOIZE, SETITEM, SETITEMS),
    set: (EMPTY_SET + MEMOIZE, b"", ADDITEMS),
}
