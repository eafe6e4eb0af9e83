"""Runs: objects of one shape encoded together, column by column: pure functions from a batch to its opcodes.

    encode([items])           the items of a list, set or tuple
    encode([keys, values])    the items of a dict, as two runs

      look     what the objects are: one constant, or one writer, for each column of equal types
      number   which of them are new to the memo, which are fetched from it
      write    each column's pieces; then all pieces, row by row, in one join

    [{"id": 1, "tags": [2, 3]}, {"id": 4, ... -> b'}\\x94(h\\x05' | ids | b'h\\x06]\\x94(' | 2, ... | 3, ... | b'eu'

A container whose items are of one shape adds columns, and so does an instance by what it is reduced to, whatever their
depth.  What has no such shape is refused, and so are instances whose reduce might run code of others.

Not for: deciding how many rows fit into a frame, nor for writing them or their memo entries (`plain`).
"""

from __future__ import annotations

import copyreg
import sys
from array import array
from collections.abc import Callable, Container, Iterable
from itertools import chain, count, cycle, islice, repeat
from operator import add, is_, is_not, itemgetter
from struct import Struct
from types import NoneType
from typing import Any, Final

from ._stdlib import BATCHSIZE
from .opcodes import (
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
    APPEND, APPENDS, BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE, BUILD, EMPTY_DICT, EMPTY_LIST, EMPTY_TUPLE,
    LONG_BINGET, MARK, MEMOIZE, NEWFALSE, NEWOBJ, NEWTRUE, NONE, REDUCE, SETITEM, SETITEMS, TUPLE, TUPLE1, TUPLE2,
    TUPLE3,
)
# fmt: on

__all__ = ["encode", "forget"]

_Memo = dict[int, tuple[int, Any]]
_Pieces = list[bytes]
#: A column of what is written: one piece for each row, or the piece that all rows have.
_Column = _Pieces | bytes
#: Gives the columns of some objects; with the GETs of those that are in the memo, None where an object is new.
_Writer = Callable[[list[Any], "list[bytes | None] | None"], list[_Column]]

_newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
#: Deeper ones are refused: a list that contains itself has no end.
_DEEPEST: Final = 8
#: Containers of more items are no rows.
_WIDEST: Final = 64


def encode(
    columns: list[list[Any]],
    memo: _Memo,
    proto: int,
    containers: Container[type],
    reducer_of: Callable[[type], Any],
    is_usual: bool,
) -> bytes | None:
    """Encode rows of objects, as a pickler with this memo would write them one by one, but for frames.

    Args:
        columns: at least one, each of as many objects, at least one.
        memo: the pickler's, to which what they memoize is added, in order: `forget` undoes it.
        proto: the protocol, 2 or more; below 4 nothing is encoded that is memoized.
        containers: which of list, dict and tuple are saved as stock does.
        reducer_of: gives what reduces instances of a type, and runs nobody's code; None if they are not for a run.
        is_usual: whether it is known that nobody has put a number, None, a bool or `()` into the memo.

    Returns:
        The opcodes; None if the objects have no common shape, and then the memo is as it was.
    """
    objs = columns[0]
    before = len(memo)
    try:
        if len(columns) == 1:  # for these `_Rows` would take as long again, if they are few
            t = type(objs[0])
            if not all(map(is_, map(type, objs), repeat(t))):
                return _encode_atoms(objs, memo) if proto >= 4 and is_usual else None
            if (t is int or t is float) and (is_usual or memo.keys().isdisjoint(map(id, objs))):
                return _join_ints(objs) if t is int else _join_floats(objs)
        rows = _Rows(memo, len(objs), containers, reducer_of, is_usual)
        for objs in columns:
            rows.look(objs, _DEEPEST)
        return rows.encode() if proto >= 4 or not rows.memoized else None
    except BaseException as exc:
        forget(memo, before)
        if isinstance(exc, Exception):  # what cannot be saved fails again where it is saved one by one
            return None
        raise


def forget(memo: _Memo, before: int) -> None:
    """Take out of a memo what was put in since it had `before` entries."""
    for _ in range(len(memo) - before):
        memo.popitem()


class _Refused(Exception):
    """The objects are not of one shape."""


class _Rows:
    """What is known of some rows.

    Attributes:
        memo, containers, reducer_of, is_usual: what `encode` was given.
        n: how many rows there are.
        parts: what rows have here: a column, or its writer, the objects, and their place in `memoized` or None.
        memoized: the columns of objects that are memoized, in their order within a row.
        may_repeat: for each of them, whether an object may be fetched from the memo: else all must be new.
        has_gaps: whether `_GAP` stands in some of them, where an object is not memoized.
    """

    __slots__ = ("containers", "has_gaps", "is_usual", "may_repeat", "memo", "memoized", "n", "parts", "reducer_of")

    def __init__(
        self, memo: _Memo, n: int, containers: Container[type], reducer_of: Callable[[type], Any], is_usual: bool
    ) -> None:
        self.memo = memo
        self.containers = containers
        self.reducer_of = reducer_of
        self.is_usual = is_usual
        self.n = n
        self.parts: list[Any] = []
        self.memoized: list[list[Any]] = []
        self.may_repeat: list[bool] = []
        self.has_gaps = False

    def look(self, objs: list[Any], depth: int) -> None:
        """Add what is written of a column of objects."""
        t = type(objs[0])
        if id(objs[0]) in self.memo and self._are_fetched(objs):
            pass
        elif not all(map(is_, map(type, objs), repeat(t))):
            self._look_at_atoms(objs)
        elif t is str:
            self._add_texts(objs, _write_strs)
        elif t is int:
            self._add_numbers(objs, _write_ints)
        elif t is float:
            self._add_numbers(objs, _write_floats)
        elif t is bool:
            self._add_numbers(objs, _write_bools)
        elif t is NoneType:
            self._check_numbers(objs)
            self.parts.append(NONE)
        elif t is bytes:
            self._add_texts(objs, _write_bytes)
        elif not depth:
            raise _Refused
        elif t is tuple:
            self._look_at_tuples(objs, depth - 1)
        elif t is dict:
            self._look_at_dicts(objs, depth - 1)
        elif t is list:
            self._look_at_lists(objs, depth - 1)
        else:
            self._look_at_instances(objs, t, depth - 1)

    def _add_numbers(self, objs: list[Any], write: _Writer) -> None:
        self._check_numbers(objs)
        self.parts.append((write, objs, None))

    def _check_numbers(self, objs: Iterable[Any]) -> None:
        """Refuse objects that are not memoized, if somebody has put them into the memo all the same."""
        if not (self.is_usual or self.memo.keys().isdisjoint(map(id, objs))):
            raise _Refused

    def _are_fetched(self, objs: list[Any]) -> bool:
        """Tell whether all objects are in the memo, as are values that say which of a few kinds a row is of."""
        memo = self.memo
        ids = {*map(id, objs)}
        if not ids <= memo.keys():
            return False
        gets = {key: _get(memo[key][0]) for key in ids}
        self.parts.append(gets.popitem()[1] if len(gets) == 1 else [*map(gets.__getitem__, map(id, objs))])
        return True

    def _add_get(self, obj: Any) -> None:
        """Add what each row has here, which the first one has put into the memo."""
        entry = self.memo.get(id(obj))
        if entry is None:
            raise _Refused
        self.parts.append(_get(entry[0]))

    def _add_texts(self, objs: list[Any], write: _Writer) -> None:
        self.parts.append((write, objs, len(self.memoized)))
        self._add_memoized(objs, True)

    def _add_memoized(self, objs: list[Any], may_repeat: bool = False) -> None:
        self.memoized.append(objs)
        self.may_repeat.append(may_repeat)

    def _look_at_atoms(self, objs: list[Any]) -> None:
        """Add atoms of several types."""
        type_ids = {*map(id, map(type, objs))}  # by id: a type's hash may be anybody's
        if type_ids <= _NUMBER_IDS:
            self._add_numbers(objs, _write_atoms)
        elif type_ids <= _ATOM_IDS:
            memoized = [x if type(x) is str or type(x) is bytes else _GAP for x in objs]
            if not self.is_usual:
                self._check_numbers([x for x, m in zip(objs, memoized, strict=True) if m is _GAP])
            self.parts.append((_write_atoms, objs, len(self.memoized)))
            self._add_memoized(memoized, True)
            self.has_gaps = True
        else:
            raise _Refused

    def _look_at_tuples(self, objs: list[Any], depth: int) -> None:
        n = len(objs[0])
        if n > _WIDEST or tuple not in self.containers:
            raise _Refused
        if n == 0:
            self._check_numbers(objs)
            if any(objs):
                raise _Refused
            self.parts.append(EMPTY_TUPLE)
            return
        if n > 3:
            self.parts.append(MARK)
        for column in zip(*objs, strict=True):
            self.look(list(column), depth)
        self.parts.append(_TUPLES[n] if n <= 3 else TUPLE + MEMOIZE)
        self._add_memoized(objs)

    def _look_at_lists(self, objs: list[Any], depth: int) -> None:
        if list not in self.containers:
            raise _Refused
        n = len(objs[0])
        self._add_memoized(objs)
        if n == 0 or n > _WIDEST or not all(map(n.__eq__, map(len, objs))):
            self._look_at_lists_of_numbers(objs)
            return
        self.parts.append(EMPTY_LIST + MEMOIZE if n == 1 else EMPTY_LIST + MEMOIZE + MARK)
        for column in zip(*objs, strict=True):
            self.look(list(column), depth)
        self.parts.append(APPEND if n == 1 else APPENDS)

    def _look_at_lists_of_numbers(self, objs: list[list[Any]]) -> None:
        """Add lists of any lengths, if none of their items is memoized."""
        items = [*chain.from_iterable(objs)]
        if max(map(len, objs)) > BATCHSIZE or not _NUMBER_IDS.issuperset(map(id, map(type, items))):
            raise _Refused
        self._check_numbers(items)
        self.parts.append((_write_lists, objs, None))

    def _look_at_dicts(self, objs: list[dict[Any, Any]], depth: int) -> None:
        keys = (*objs[0],)
        n = len(keys)
        self._add_memoized(objs)
        if n > _WIDEST or dict not in self.containers or not all(map(n.__eq__, map(len, objs))):
            raise _Refused
        if n == 0:
            self.parts.append(EMPTY_DICT + MEMOIZE)
            return
        if not all(map(is_, chain.from_iterable(objs), cycle(keys))):  # not ==, which is anybody's, and too kind
            raise _Refused
        self.parts.append(EMPTY_DICT + MEMOIZE if n == 1 else EMPTY_DICT + MEMOIZE + MARK)
        columns = zip(*map(dict.values, objs), strict=True)
        for key, column in zip(keys, columns, strict=True):
            if type(key) is int and id(key) not in self.memo:
                self.parts.append(_write_int(key) if -0x80000000 <= key <= 0x7FFFFFFF else pack_long(key))
            else:
                self._add_get(key)
            self.look(list(column), depth)
        self.parts.append(SETITEM if n == 1 else SETITEMS)

    def _look_at_instances(self, objs: list[Any], t: type, depth: int) -> None:
        """Add instances of a class, by what they are reduced to: one call, and a state (PEP 307)."""
        reduce = self.reducer_of(t)
        if reduce is None:
            raise _Refused
        reduced = [*map(reduce, objs)]
        if not all(map(is_, map(type, reduced), repeat(tuple))):
            raise _Refused
        funcs, args, *more = zip(*reduced, strict=True)
        func = funcs[0]
        if not all(map(is_, funcs, repeat(func))) or not all(map(is_, map(type, args), repeat(tuple))):
            raise _Refused
        if func is _newobj:
            if not all(args) or not all(map(is_, map(itemgetter(0), args), repeat(t))):
                raise _Refused
            self._add_get(t)
            self.look([given[1:] for given in args], depth)
            self.parts.append(NEWOBJ + MEMOIZE)
        elif func.__name__ in ("__newobj__", "__newobj_ex__"):  # stock goes by the name of the function
            raise _Refused
        else:
            self._add_get(func)
            self.look([*args], depth)
            self.parts.append(REDUCE + MEMOIZE)
        self._add_memoized(objs)
        if any(chain.from_iterable(map(_is_given, more[1:]))):  # items, pairs, or a function that sets the state
            raise _Refused
        if more and any(_is_given(more[0])):
            if not all(_is_given(more[0])):
                raise _Refused
            self.look([*more[0]], depth)
            self.parts.append(BUILD)

    def encode(self) -> bytes:
        """Return what is written of all that was looked at, and memoize it."""
        gets = self._memoize()
        parts = self.parts
        n = self.n
        if len(parts) == 1 and gets is None and type(parts[0]) is tuple and parts[0][0] is _write_strs:
            data = _join_strs(parts[0][1])
            if data is not None:
                return data
        columns: list[Any] = [b""]
        for part in parts:
            if type(part) is not tuple:
                written: list[_Column] = [part]
            else:
                write, objs, place = part
                written = write(objs, None if gets is None or place is None else gets[place :: len(self.memoized)])
            for column in written:
                if type(column) is bytes and type(columns[-1]) is bytes:
                    columns[-1] += column
                else:
                    columns.append(column)
        if len(columns) == 1:
            return bytes(columns[0] * n)
        if not columns[0]:
            del columns[0]
        if len(columns) == 1:
            return b"".join(columns[0])
        pieces = zip(*[repeat(c, n) if type(c) is bytes else c for c in columns], strict=True)
        return b"".join(chain.from_iterable(pieces))

    def _memoize(self) -> list[bytes | None] | None:
        """Add to the memo what is new to it, and return the GETs of what is not, in order; None if all is new."""
        width = len(self.memoized)
        if not width:
            return None
        memo = self.memo
        objs = self.memoized[0] if width == 1 else [*chain.from_iterable(zip(*self.memoized, strict=True))]
        new = [x for x in objs if x is not _GAP] if self.has_gaps else objs
        ids = [*map(id, new)]
        before = len(memo)
        if memo.keys().isdisjoint(ids):
            memo.update(zip(ids, zip(count(before), new)))  # noqa: B905  # count() has no end
            if len(memo) == before + len(ids):
                return None
            forget(memo, before)  # some of them are the same
        table: dict[int, bytes | None] = {}
        new_ids: list[int] = []
        for key in dict.fromkeys(ids):
            entry = memo.get(key)
            if entry is None:
                table[key] = _get(before + len(new_ids))
                new_ids.append(key)
            else:
                table[key] = _get(entry[0])
        table[id(_GAP)] = None
        if self.has_gaps:
            ids = [*map(id, objs)]
        gets = [*map(table.__getitem__, ids)]
        if new_ids:
            firsts = dict(zip(reversed(ids), reversed(range(len(ids))), strict=True))
            places = [*map(firsts.__getitem__, new_ids)]
            for place in places:
                gets[place] = None
            memo.update(zip(new_ids, zip(count(before), map(objs.__getitem__, places))))  # noqa: B905
        for i, may_repeat in enumerate(self.may_repeat):
            if not may_repeat and any(gets[i::width]):
                raise _Refused
        return gets


def _is_given(values: Iterable[Any]) -> Iterable[bool]:
    return map(is_not, values, repeat(None))


def _get(i: int) -> bytes:
    if i < 0:
        raise _Refused  # a memo that is not memoize()'s: stock raises here
    return BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i)


_TUPLES: Final = (b"", TUPLE1 + MEMOIZE, TUPLE2 + MEMOIZE, TUPLE3 + MEMOIZE)
_NUMBER_IDS: Final = frozenset(map(id, (NoneType, bool, int, float)))
_ATOM_IDS: Final = _NUMBER_IDS | {id(str), id(bytes)}
_GAP: Final = object()
_NEWBOOLS: Final = (NEWFALSE, NEWTRUE)


# The writers of columns.


def _write_ints(objs: list[int], gets: Any) -> list[_Column]:
    return [_ints(objs)]


def _ints(objs: list[int]) -> _Pieces:
    least = min(objs)
    most = max(objs)
    if least >= 0 and most <= 255:
        return [*map(BININT1.__getitem__, objs)]
    if least >= 0 and most <= 0xFFFF and _have_table(len(objs)):
        return [*map(_of_two_bytes.__getitem__, objs)]
    if most > 0x7FFFFFFF or least < -0x80000000:
        return [pack_long(x) if x < -0x80000000 or x > 0x7FFFFFFF else _write_int(x) for x in objs]
    if least > 0xFFFF or most < 0:
        return [*map(pack_binint, repeat(BININT), objs)]
    return [  # in the order that takes the fewest comparisons for numbers of which most are large
        pack_binint(BININT, x) if x > 0xFFFF or x < 0 else pack_binint2(BININT2, x) if x > 255 else BININT1[x]
        for x in objs
    ]


def _write_int(x: int) -> bytes:
    if 0 <= x <= 255:
        return BININT1[x]
    return pack_binint2(BININT2, x) if 0 <= x <= 0xFFFF else pack_binint(BININT, x)


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


def _write_floats(objs: list[float], gets: Any) -> list[_Column]:
    return [[*map(pack_binfloat, repeat(BINFLOAT), objs)]]


def _write_bools(objs: list[bool], gets: Any) -> list[_Column]:
    return [[*map(_NEWBOOLS.__getitem__, objs)]]


def _write_atoms(objs: list[Any], gets: list[bytes | None] | None) -> list[_Column]:
    pieces: _Pieces = []
    write = pieces.append
    for x, get in zip(objs, repeat(None) if gets is None else gets):  # noqa: B905  # repeat() has no end
        t = type(x)
        if get is not None:
            write(get)
        elif t is str:
            try:
                encoded = x.encode()
            except UnicodeEncodeError:
                encoded = x.encode("utf-8", "surrogatepass")
            n = len(encoded)
            write((SHORT_BINUNICODE[n] if n <= 255 else pack_binunicode(BINUNICODE, n)) + encoded + MEMOIZE)
        elif t is int:
            if 0 <= x <= 255:
                write(BININT1[x])
            elif 0 <= x <= 0xFFFF:
                write(pack_binint2(BININT2, x))
            elif -0x80000000 <= x <= 0x7FFFFFFF:
                write(pack_binint(BININT, x))
            else:
                write(pack_long(x))
        elif x is None:
            write(NONE)
        elif t is float:
            write(pack_binfloat(BINFLOAT, x))
        elif t is bytes:
            n = len(x)
            write((SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)) + x + MEMOIZE)
        else:
            write(NEWTRUE if x else NEWFALSE)
    return [pieces]


def _encode_atoms(objs: list[Any], memo: _Memo) -> bytes:
    """Encode atoms of several types in their order, and memoize them."""
    pieces: _Pieces = []
    write = pieces.append
    for x in objs:
        t = type(x)
        if t is str:
            key = id(x)
            if key in memo:
                write(_get(memo[key][0]))
                continue
            try:
                encoded = x.encode()
            except UnicodeEncodeError:
                encoded = x.encode("utf-8", "surrogatepass")
            n = len(encoded)
            write((SHORT_BINUNICODE[n] if n <= 255 else pack_binunicode(BINUNICODE, n)) + encoded + MEMOIZE)
            memo[key] = len(memo), x
        elif t is int:
            if 0 <= x <= 255:
                write(BININT1[x])
            elif 0 <= x <= 0xFFFF:
                write(pack_binint2(BININT2, x))
            elif -0x80000000 <= x <= 0x7FFFFFFF:
                write(pack_binint(BININT, x))
            else:
                write(pack_long(x))
        elif x is None:
            write(NONE)
        elif t is float:
            write(pack_binfloat(BINFLOAT, x))
        elif t is bool:
            write(NEWTRUE if x else NEWFALSE)
        elif t is bytes:
            key = id(x)
            if key in memo:
                write(_get(memo[key][0]))
                continue
            n = len(x)
            write((SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)) + x + MEMOIZE)
            memo[key] = len(memo), x
        else:
            raise _Refused
    return b"".join(pieces)


def _write_lists(objs: list[list[Any]], gets: Any) -> list[_Column]:
    """Write lists of ints, floats, bools and None; of any lengths."""
    items = [*chain.from_iterable(objs)]
    if not items:
        return [EMPTY_LIST + MEMOIZE]
    t = type(items[0])
    is_ints = t is int and all(map(is_, map(type, items), repeat(t)))
    pieces: Any = (_write_ints if is_ints else _write_atoms)(items, None)[0]
    rest = iter(pieces)
    marked = EMPTY_LIST + MEMOIZE + MARK
    return [
        [
            marked + b"".join(islice(rest, n)) + APPENDS
            if n > 1
            else EMPTY_LIST + MEMOIZE + next(rest) + APPEND
            if n
            else EMPTY_LIST + MEMOIZE
            for n in map(len, objs)
        ]
    ]


def _encoded(objs: list[str]) -> list[bytes]:
    try:
        return [*map(str.encode, objs)]
    except UnicodeEncodeError:
        return [x.encode("utf-8", "surrogatepass") for x in objs]


def _write_strs(objs: list[str], gets: list[bytes | None] | None) -> list[_Column]:
    if gets is None:
        return _with_lengths(_encoded(objs), SHORT_BINUNICODE, pack_binunicode, BINUNICODE)
    new = [x for x, get in zip(objs, gets, strict=True) if get is None]
    return _among_gets(gets, _write_strs(new, None) if new else [])


def _write_bytes(objs: list[bytes], gets: list[bytes | None] | None) -> list[_Column]:
    if gets is None:
        return _with_lengths(objs, SHORT_BINBYTES, pack_binbytes, BINBYTES)
    new = [x for x, get in zip(objs, gets, strict=True) if get is None]
    return _among_gets(gets, _write_bytes(new, None) if new else [])


def _with_lengths(
    encoded: list[bytes], short: tuple[bytes, ...], pack: Callable[..., bytes], opcode: bytes
) -> list[_Column]:
    try:
        pieces = [*map(add, map(short.__getitem__, map(len, encoded)), encoded)]
    except IndexError:  # one is longer
        return [[short[n] if n <= 255 else pack(opcode, n) for n in map(len, encoded)], encoded, MEMOIZE]
    return [pieces, MEMOIZE]


def _among_gets(gets: list[bytes | None], new: list[Any]) -> list[_Column]:
    """Put what is new into its places among the GETs."""
    if not new:
        return [[*filter(None, gets)]]
    pieces = map(b"".join, zip(*[repeat(c) if type(c) is bytes else c for c in new]))  # noqa: B905  # no end of repeat()
    return [[next(pieces) if get is None else get for get in gets]]


def _join_strs(objs: list[str]) -> bytes | None:
    """Return what `_write_strs` gives for new ones, joined; None if it is not known how, sooner."""
    if not "".join(objs).isascii():
        return None
    try:  # one encode() for all of them, the opcodes among them: in Latin-1 a character is a byte
        texts = map(add, map(_LATIN_1.__getitem__, map(len, objs)), objs)
        return b"\x8c" + "\x94\x8c".join(texts).encode("latin-1") + MEMOIZE
    except IndexError:  # one is longer
        return None


_LATIN_1: Final = (*map(chr, range(256)),)


def _join_floats(objs: list[float]) -> bytes:
    n = len(objs)
    if n == BATCHSIZE:
        return _with_opcodes(BINFLOAT, _pack_floats(*objs), 8)
    packed = array("d", objs)
    if sys.byteorder == "little":
        packed.byteswap()
    return _strided(BINFLOAT, packed.tobytes(), 8, n)


def _join_ints(objs: list[int]) -> bytes:
    least = min(objs)
    most = max(objs)
    n = len(objs)
    if least >= 0 and most <= 255:
        return _strided(b"K", bytes(objs), 1, n)
    if least > 255 and most <= 0xFFFF:
        if n == BATCHSIZE:
            return _with_opcodes(BININT2, _pack_two_bytes(*objs), 2)
        packed = array("H", objs)
        opcode = BININT2
    elif (least > 0xFFFF or most < 0) and least >= -0x80000000 and most <= 0x7FFFFFFF:
        if n == BATCHSIZE:
            return _with_opcodes(BININT, _pack_four_bytes(*objs), 4)
        packed = array("i", objs)
        opcode = BININT
    else:
        return b"".join(_ints(objs))
    if sys.byteorder == "big":
        packed.byteswap()
    return _strided(opcode, packed.tobytes(), packed.itemsize, n)


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
