"""Runs: objects of one shape encoded together, column by column: pure functions from a batch to its opcodes.

    encode([items])           the items of a list, set or tuple
    encode([keys, values])    the items of a dict, as two runs

      look     what the objects are: one constant, or one writer, for each column of equal types
      number   which of them are new to the memo, which are fetched from it
      write    each column's pieces; then all pieces, row by row, in one join

    [{"id": 1, "tags": [2, 3]}, {"id": 4, ... -> b'}\\x94(h\\x05' | ids | b'h\\x06]\\x94(' | 2, ... | 3, ... | b'eu'

A container whose items are of one shape adds columns, and so does an instance by what it is reduced to, whatever their
depth; so do objects of a few shapes, kind by kind (`groups`).  What has no such shape is refused, and so are instances
whose reduce might run code of others.

Not for: deciding how many rows fit into a frame, nor for writing them or their memo entries (`plain`).
"""

from __future__ import annotations

import copyreg
from collections import Counter
from collections.abc import Callable, Container, Iterable
from itertools import chain, cycle, islice, repeat
from operator import is_, is_not, itemgetter
from types import NoneType
from typing import Any, Final

from ._stdlib import BATCHSIZE
from .engine.groups import Groups, Kinds, Rows
from .hooks import ATOM_IDS, CONTAINER_IDS, NUMBER_IDS, PLAIN_IDS, are_fetched
from .interrupts import is_interrupt
from .opcodes import MEMOIZED_TUPLE, MEMOIZED_TUPLES

# fmt: off
from pickle import (  # isort: skip
    APPEND, APPENDS, BUILD, EMPTY_DICT, EMPTY_LIST,
    EMPTY_TUPLE, MARK, MEMOIZE, NEWOBJ, NONE, REDUCE, SETITEM,
    SETITEMS,
)
from .engine.columns import (  # isort: skip
    FRAME_SIZE, Column, Gets, Memo, Pieces, Refused, Writer, encode_atoms, forget, join_floats, join_gets, join_ints,
    join_rows, join_texts, memoize, pack_get, write_atoms, write_bools, write_bytes, write_floats, write_int,
    write_ints, write_strs,
)
# fmt: on

__all__ = ["encode"]

_newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
#: Deeper ones are refused: a list that contains itself has no end.
_DEEPEST: Final = 8
#: Containers of more items are no rows.
_WIDEST: Final = 64
#: Rows are looked at kind by kind if there are so many of each, on average.
_FEWEST_OF_A_KIND: Final = 24
#: So many kinds cost more than they give; unions of unions have very many.
_MOST_KINDS: Final = 64
#: Tuples of more lengths are left to the loop, and so are more objects of several types, as there are where rows are
#: long lists of the same ones.
_MOST_LENGTHS: Final = 8
_MOST_OF_TYPES: Final = 4096
#: So many dicts are looked at first, and if they are of more than so many kinds, no others.
_SAMPLE: Final = 64
_MOST_IN_SAMPLE: Final = 20
#: Fewer objects of a type are odd ones, around which shorter runs are sooner.
_RAREST: Final = 8


def encode(
    columns: list[list[Any]],
    memo: Memo,
    proto: int,
    containers: Container[type],
    reducer_of: Callable[[type], Any],
    is_usual: bool,
    room: int = FRAME_SIZE,
    rewrites: Callable[[type], Any] | None = None,
    learns: bool = False,
) -> bytes | None:
    """Encode rows of objects, as a pickler with this memo would write them one by one, but for frames.

    Args:
        columns: at least one, each of as many objects, at least one.
        memo: the pickler's, to which what they memoize is added, in order: `columns.forget` undoes it.
        proto: the protocol, 2 or more; below 4 nothing is encoded that is memoized.
        containers: which of list, dict, tuple, set and frozenset are saved as stock does.
        reducer_of: gives what reduces instances of a type, and runs nobody's code; None if they are not for a run.
        is_usual: whether it is known that nobody has put a number, None, a bool or `()` into the memo.
        room: how much goes into the frame.  Of texts, those for which there is none are taken off the ends of the
            columns; of anything else more may be returned.
        rewrites: tells of a type whether its objects are not fetched from the memo (`hooks.Plan`); or None.
        learns: whether the memo may be taught keys and classes first, by rows that are saved alone.

    Returns:
        The opcodes; None if the objects have no common shape, nothing if the memo is to be taught first. With neither
        the memo is as it was.
    """
    objs = columns[0]
    before = len(memo)
    if proto < 4 and not all(id(type(column[0])) in NUMBER_IDS for column in columns):
        return None
    try:
        # For what follows `_Rows` would take as long again, if they are few.
        t = type(objs[0])
        is_list = len(columns) == 1
        if is_list and id(objs[0]) in memo and are_fetched(objs, rewrites):
            data = join_gets(objs, memo)
            if data is not None:
                return data
        if t is str or t is bytes or t is int or t is float:
            flat = objs if is_list else _in_turn(columns) if type(columns[1][0]) is t else []
            if flat and all(map(is_, map(type, flat), repeat(t))):
                if t is str or t is bytes:
                    data = join_texts(flat, memo, room, len(columns))
                    if data is None:
                        forget(memo, before)
                    for column in columns:
                        del column[len(flat) // len(columns) :]
                    return data
                if is_usual or memo.keys().isdisjoint(map(id, flat)):
                    return join_ints(flat) if t is int else join_floats(flat)
        if is_list and id(t) in ATOM_IDS and proto >= 4 and is_usual:
            pieces = encode_atoms(objs, memo)
            if pieces is not None:
                return b"".join(pieces)
            forget(memo, before)
        rows = _Rows(memo, len(objs), containers, reducer_of, is_usual, rewrites)
        rows.learns = learns
        for objs in columns:
            rows.look(objs, _DEEPEST)
        return None if proto < 4 and rows.memoized else rows.encode()
    except BaseException as exc:
        forget(memo, before)
        if isinstance(exc, _Untaught):
            return b""
        if is_interrupt(exc):
            raise
        return None  # what cannot be saved fails again where it is saved one by one


def _in_turn(columns: list[list[Any]]) -> list[Any]:
    """Return the first row, the second, ..."""
    width = len(columns)
    objs = [None] * (width * len(columns[0]))
    for i, column in enumerate(columns):
        objs[i::width] = column
    return objs


class _Untaught(Refused):
    """Keys or classes are new to the memo, which learns them from rows that are saved alone."""


class _Rows:
    """What is known of some rows.

    Attributes:
        memo, containers, reducer_of, is_usual, rewrites: what `encode` was given.
        n: how many rows there are.
        parts: what rows have here: a column, or its writer, the objects, and their place in `memoized` or None.
        memoized: the columns of objects that are memoized, in their order within a row; or `Groups` or `Kinds`
            of such objects.
        may_repeat: for each of them, whether an object may be fetched from the memo: else all must be new.
        seen: the ids of containers and instances.
        kinds: how many there are, wherever objects are of several kinds.
        learns: as given to `encode`.
        has_gaps: whether `_GAP` stands in some of them, where an object is not memoized.
        has_groups: whether some of them are `Groups` or `Kinds`.
    """

    __slots__ = (
        "containers", "has_gaps", "has_groups", "is_usual", "kinds", "learns", "may_repeat", "memo", "memoized", "n",
        "parts", "reducer_of", "rewrites", "seen",
    )  # fmt: skip

    def __init__(
        self,
        memo: Memo,
        n: int,
        containers: Container[type],
        reducer_of: Callable[[type], Any],
        is_usual: bool,
        rewrites: Callable[[type], Any] | None,
    ) -> None:
        self.memo = memo
        self.containers = containers
        self.reducer_of = reducer_of
        self.is_usual = is_usual
        self.rewrites = rewrites
        self.n = n
        self.parts: list[Any] = []
        self.memoized: list[Any] = []
        self.may_repeat: list[bool] = []
        self.seen: set[int] = set()
        self.kinds: list[int] = []
        self.learns = False
        self.has_gaps = False
        self.has_groups = False

    def look(self, objs: list[Any], depth: int) -> None:
        """Add what is written of a column of objects."""
        t = type(objs[0])
        if id(objs[0]) in self.memo and self._are_fetched(objs):
            pass
        elif not all(map(is_, map(type, objs), repeat(t))):
            self._look_at_several_types(objs, depth)
        elif t is str:
            self._add_texts(objs, write_strs)
        elif t is int:
            self._add_numbers(objs, write_ints)
        elif t is float:
            self._add_numbers(objs, write_floats)
        elif t is bool:
            self._add_numbers(objs, write_bools)
        elif t is NoneType:
            self._check_numbers(objs)
            self.parts.append(NONE)
        elif t is bytes:
            self._add_texts(objs, write_bytes)
        elif not depth or (id(t) in CONTAINER_IDS and t not in self.containers):
            raise Refused
        elif t is tuple and not objs[0]:
            self._look_at_empty_tuples(objs)
        else:
            self._look_at_containers(objs, t, depth - 1)

    def _look_at_containers(self, objs: list[Any], t: type, depth: int) -> None:
        self._must_be_new(objs)
        if t is tuple:
            self._look_at_tuples(objs, depth)
        elif t is dict:
            self._look_at_dicts(objs, depth)
        elif t is list:
            self._look_at_lists(objs, depth)
        elif t is set:
            self._add_memoized(objs)
            self._look_at_groups(t, objs, [[*chain.from_iterable(objs)]], depth)
        elif t is frozenset:
            self._look_at_groups(t, objs, [[*chain.from_iterable(objs)]], depth)
            self._add_memoized(objs)
        else:
            self._look_at_instances(objs, t, depth)

    def _add_numbers(self, objs: list[Any], write: Writer) -> None:
        self._check_numbers(objs)
        self.parts.append((write, objs, None))

    def _check_numbers(self, objs: Iterable[Any]) -> None:
        """Refuse objects that are not memoized, if somebody has put them into the memo all the same."""
        if not (self.is_usual or self.memo.keys().isdisjoint(map(id, objs))):
            raise Refused

    def _are_fetched(self, objs: list[Any]) -> bool:
        """Tell whether all objects are in the memo, as are values that say which of a few kinds a row is of."""
        memo = self.memo
        ids = {*map(id, objs)}
        if not ids <= memo.keys() or not are_fetched(objs, self.rewrites):
            return False
        gets = {key: pack_get(memo[key][0]) for key in ids}
        self.parts.append(gets.popitem()[1] if len(gets) == 1 else [*map(gets.__getitem__, map(id, objs))])
        return True

    def _add_get(self, obj: Any) -> None:
        """Add what each row has here, which the first one has put into the memo."""
        entry = self.memo.get(id(obj))
        if entry is None:
            raise Refused
        self.parts.append(pack_get(entry[0]))

    def _add_texts(self, objs: list[Any], write: Writer) -> None:
        self.parts.append((write, objs, len(self.memoized)))
        self._add_memoized(objs, True)

    def _must_be_new(self, objs: list[Any]) -> None:
        """Refuse containers that come twice before their items are looked at: these might be very many."""
        n = len(self.seen) + len(objs)
        self.seen.update(map(id, objs))
        if len(self.seen) < n:
            raise Refused

    def _add_memoized(self, objs: list[Any], may_repeat: bool = False) -> None:
        self.memoized.append(objs)
        self.may_repeat.append(may_repeat)

    def _look_at_several_types(self, objs: list[Any], depth: int) -> None:
        """Add atoms of several types, or objects of one type among which there is None."""
        type_ids = {*map(id, map(type, objs))}  # by id: a type's hash may be anybody's
        if type_ids <= NUMBER_IDS:
            self._add_numbers(objs, write_atoms)
        elif type_ids <= ATOM_IDS:
            memoized = [x if type(x) is str or type(x) is bytes else _GAP for x in objs]
            if not self.is_usual:
                self._check_numbers([x for x, m in zip(objs, memoized, strict=True) if m is _GAP])
            self.parts.append((write_atoms, objs, len(self.memoized)))
            self._add_memoized(memoized, True)
            self.has_gaps = True
        elif not depth:
            raise Refused
        elif depth == _DEEPEST and 3 * sum(id(type(x)) in ATOM_IDS for x in objs[:_SAMPLE]) > min(len(objs), _SAMPLE):
            raise Refused  # many are atoms, which are sooner written by the loop
        elif len(type_ids) == 2 and id(NoneType) in type_ids:
            self._check_numbers((None,))
            self._add_groups(NoneType, [x is not None for x in objs], [[x for x in objs if x is not None]], depth - 1)
        else:
            self._look_at_kinds(objs, type_ids, depth)

    def _look_at_kinds(self, objs: list[Any], type_ids: set[int], depth: int) -> None:
        """Add objects of a few types, by the ids of these; the memo must have the classes of instances."""
        if len(type_ids) > len(objs) // _FEWEST_OF_A_KIND or len(objs) > _MOST_OF_TYPES:
            raise Refused
        names = [*map(id, map(type, objs))]
        counts = map(names.count, type_ids) if len(type_ids) <= 4 else Counter(names).values()  # each if it is sooner
        if min(counts) < _RAREST:
            raise Refused
        class_ids = type_ids - PLAIN_IDS
        if class_ids:
            types = dict(zip(names, map(type, objs), strict=True))
            for key in class_ids:
                if self.reducer_of(types[key]) is None:
                    raise Refused
        if self.learns and not class_ids <= self.memo.keys():
            raise _Untaught
        self._add_kinds(names, objs, depth, _Rows.look)

    def _look_at_empty_tuples(self, objs: list[tuple[Any, ...]]) -> None:
        self._check_numbers(objs)
        if any(objs):
            raise Refused
        self.parts.append(EMPTY_TUPLE)

    def _look_at_tuples(self, objs: list[Any], depth: int) -> None:
        n = len(objs[0])
        if n > _WIDEST:
            raise Refused
        try:
            columns = [*zip(*objs, strict=True)]
        except ValueError:  # they differ in length
            sizes = [*map(len, objs)]
            if not all(sizes) or len({*sizes}) > min(_MOST_LENGTHS, len(objs) // _FEWEST_OF_A_KIND):
                raise Refused from None
            self._add_kinds(sizes, objs, depth, _Rows._look_at_tuples)
            return
        if n > 3:
            self.parts.append(MARK)
        for column in columns:
            self.look(list(column), depth)
        self.parts.append(MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE)
        self._add_memoized(objs)

    def _look_at_lists(self, objs: list[Any], depth: int) -> None:
        n = len(objs[0])
        self._add_memoized(objs)
        if n == 0 or n > _WIDEST or not all(map(n.__eq__, map(len, objs))):
            self._look_at_groups(list, objs, [[*chain.from_iterable(objs)]], depth)
            return
        self.parts.append(EMPTY_LIST + MEMOIZE if n == 1 else EMPTY_LIST + MEMOIZE + MARK)
        for column in zip(*objs, strict=True):
            self.look(list(column), depth)
        self.parts.append(APPEND if n == 1 else APPENDS)

    def _look_at_groups(self, t: type, objs: list[Any], columns: list[list[Any]], depth: int) -> None:
        """Add containers of different lengths; who calls this has memoized them, or will."""
        sizes = [*map(len, objs)]
        if max(sizes) > BATCHSIZE:
            raise Refused
        self._add_groups(t, sizes, columns, depth)

    def _add_groups(self, t: type, sizes: list[int], columns: list[list[Any]], depth: int) -> None:
        """Add groups of items that are of one shape: they are rows of their own.

        Args:
            t: the type of the containers, or NoneType for what is None where it has no item.
            sizes: how many items each has.
            columns: their items, one group's after the other's; keys and values apart.
            depth: as for `look`.
        """
        n = len(columns[0])
        if sum(sizes) != n:
            raise Refused
        rows = self._inner(n)
        if n:
            for column in columns:
                rows.look(column, depth)
        self._add_inner(Groups(t, rows, sizes), (rows,))

    def _inner(self, n: int) -> _Rows:
        """Return what is not known yet of `n` rows that are parts of these."""
        rows = _Rows(self.memo, n, self.containers, self.reducer_of, self.is_usual, self.rewrites)
        rows.seen = self.seen
        rows.kinds = self.kinds
        rows.learns = self.learns
        return rows

    def _add_inner(self, part: Groups | Kinds, inner: Iterable[Rows]) -> None:
        """Add what consists of other rows."""
        is_memoized = False
        for rows in inner:
            self.has_gaps |= rows.has_gaps
            is_memoized |= bool(rows.memoized)
        self.parts.append((part, None, len(self.memoized) if is_memoized else None))
        if is_memoized:
            self.memoized.append(part)
            self.may_repeat.append(True)  # it looks at its own
            self.has_groups = True

    def _add_kinds(
        self, names: list[Any], objs: list[Any], depth: int, look: Callable[[_Rows, list[Any], int], None]
    ) -> None:
        """Add objects of a few kinds: those of each are rows of their own.

        Args:
            names: what tells the kinds apart, one for each object; with a hash and an `__eq__` that are nobody's.
            objs: the objects.
            depth: as for `look`.
            look: what is to look at those of one kind: `look`, or what that would call for them.
        """
        numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
        self.kinds.append(len(numbers))
        if sum(self.kinds) > _MOST_KINDS:
            raise Refused
        kinds = [*map(numbers.__getitem__, names)]  # which have their hash sooner
        of_kinds: list[list[Any]] = [[] for name in numbers]
        for kind, x in zip(kinds, objs, strict=True):
            of_kinds[kind].append(x)
        inner: list[Rows] = []
        for of_kind in of_kinds:
            rows = self._inner(len(of_kind))
            look(rows, of_kind, depth)
            inner.append(rows)
        self._add_inner(Kinds(inner, kinds), inner)

    def _look_at_dicts(self, objs: list[dict[Any, Any]], depth: int) -> None:
        keys = (*objs[0],)
        n = len(keys)
        is_one_kind = (
            0 < n <= _WIDEST
            and all(map(n.__eq__, map(len, objs)))
            and all(map(is_, chain.from_iterable(objs), cycle(keys)))  # not ==, which is anybody's, and too kind
        )
        if not is_one_kind or not all(type(key) is int or id(key) in self.memo for key in keys):
            if is_one_kind and self.learns and all(type(key) is str for key in keys):
                raise _Untaught
            names = None if is_one_kind else self._kinds_of_dicts(objs)
            if names is not None:
                self._add_kinds(names, objs, depth, _Rows._look_at_dicts)
                return
            self._add_memoized(objs)
            values = [*chain.from_iterable(map(dict.values, objs))]
            self._look_at_groups(dict, objs, [[*chain.from_iterable(objs)], values], depth)
            return
        self._add_memoized(objs)
        self.parts.append(EMPTY_DICT + MEMOIZE if n == 1 else EMPTY_DICT + MEMOIZE + MARK)
        columns = zip(*map(dict.values, objs), strict=True)
        for key, column in zip(keys, columns, strict=True):
            if type(key) is int and id(key) not in self.memo:
                self.parts.append(write_int(key))
            else:
                self._add_get(key)
            self.look(list(column), depth)
        self.parts.append(SETITEM if n == 1 else SETITEMS)

    def _kinds_of_dicts(self, objs: list[dict[Any, Any]]) -> list[tuple[str, ...]] | None:
        """Return the keys of each dict, if they are texts, and of a few kinds; else None, or they are to be learnt.

        None, too, if all values seem to be numbers of one type, which are sooner written as one column.
        """
        if len(objs) < 2 * _FEWEST_OF_A_KIND or max(map(len, objs)) > _WIDEST:
            return None
        sample = objs[:_SAMPLE]
        types = {*map(id, map(type, chain.from_iterable(map(dict.values, sample))))}
        if (len(types) < 2 and types <= NUMBER_IDS) or len({*map(_ids_of_keys, sample)}) > _MOST_IN_SAMPLE:
            return None
        keys = [*chain.from_iterable(objs)]
        if not all(map(is_, map(type, keys), repeat(str))):
            return None
        names = [*map(tuple, objs)]
        kinds = {*names}
        ids = {*map(id, keys)}
        if len(kinds) > len(objs) // _FEWEST_OF_A_KIND or len(ids) > len({*chain.from_iterable(kinds)}):
            return None
        if self.learns and not ids <= self.memo.keys():
            raise _Untaught
        return names if len(kinds) > 1 else None

    def _look_at_instances(self, objs: list[Any], t: type, depth: int) -> None:
        """Add instances of a class, by what they are reduced to: one call, and a state (PEP 307)."""
        reduce = self.reducer_of(t)
        if reduce is None:
            raise Refused
        reduced = [*map(reduce, objs)]
        if not all(map(is_, map(type, reduced), repeat(tuple))):
            raise Refused
        funcs, args, *more = zip(*reduced, strict=True)
        func = funcs[0]
        if not all(map(is_, funcs, repeat(func))) or not all(map(is_, map(type, args), repeat(tuple))):
            raise Refused
        if func is _newobj:
            if not all(args) or not all(map(is_, map(itemgetter(0), args), repeat(t))):
                raise Refused
            self._add_get(t)
            self.look([given[1:] for given in args], depth)
            self.parts.append(NEWOBJ + MEMOIZE)
        elif func.__name__ in ("__newobj__", "__newobj_ex__"):  # stock goes by the name of the function
            raise Refused
        else:
            self._add_get(func)
            self.look([*args], depth)
            self.parts.append(REDUCE + MEMOIZE)
        self._add_memoized(objs)
        if any(chain.from_iterable(map(_is_given, more[1:]))):  # items, pairs, or a function that sets the state
            raise Refused
        if more and any(_is_given(more[0])):
            if not all(_is_given(more[0])):
                raise Refused
            self.look([*more[0]], depth)
            self.parts.append(BUILD)

    def encode(self) -> bytes:
        """Return what is written of all that was looked at, and memoize it."""
        gets = self._memoize()
        columns = self.columns(gets)
        return join_rows(columns, self.n)

    def rows(self, gets: Gets | None) -> Pieces:
        """Return what is written of each row."""
        columns = self.columns(gets)
        if len(columns) > 1:
            return [*map(b"".join, self._zipped(columns))]
        return [columns[0]] * self.n if type(columns[0]) is bytes else columns[0]

    def _zipped(self, columns: list[Any]) -> Iterable[tuple[bytes, ...]]:
        return zip(*[repeat(c, self.n) if type(c) is bytes else c for c in columns], strict=True)

    def columns(self, gets: Gets | None) -> list[Any]:
        """Return what is written, column by column; what all rows have is one piece, and stands before a column."""
        gets_of = None
        if gets is not None:
            gets_of = self._split(gets)
            if any(any(gets) for gets, may_repeat in zip(gets_of, self.may_repeat, strict=True) if not may_repeat):
                raise Refused
        columns: list[Any] = [b""]
        for part in self.parts:
            if type(part) is not tuple:
                written: list[Column] = [part]
            else:
                write, objs, place = part
                gets = None if gets_of is None or place is None else gets_of[place]
                written = write(objs, gets)
            for column in written:
                if type(column) is bytes and type(columns[-1]) is bytes:
                    columns[-1] += column
                else:
                    columns.append(column)
        if not columns[0] and len(columns) > 1:
            del columns[0]
        return columns

    def memoized_by_row(self) -> Iterable[Iterable[Any]]:
        """Return what each row memoizes."""
        if not self.has_groups:
            return zip(*self.memoized, strict=True)
        columns = [zip(c) if type(c) is list else c.memoized_by_row() for c in self.memoized]  # one each
        return map(chain.from_iterable, zip(*columns, strict=True))

    def _split(self, gets: Gets) -> list[Gets]:
        """Return what belongs to each of the columns that are memoized; those of groups in one list."""
        width = len(self.memoized)
        if not self.has_groups:
            return [gets[i::width] for i in range(width)]
        found: list[Gets] = [[] for column in self.memoized]
        rest = iter(gets)
        widths = [repeat(1) if type(c) is list else c.widths for c in self.memoized]
        for row in zip(*widths):  # noqa: B905  # repeat() has no end
            for column, n in zip(found, row, strict=True):
                column.extend(islice(rest, n))
        return found

    def _memoize(self) -> Gets | None:
        """Add to the memo what is new to it, and return the GETs of what is not, in order; None if all is new."""
        if not self.memoized:
            return None
        memo = self.memo
        if len(self.memoized) == 1 and not self.has_groups:
            objs = self.memoized[0]
        elif not self.has_groups:
            objs = _in_turn(self.memoized)
        else:
            objs = [*chain.from_iterable(self.memoized_by_row())]
        if not self.has_gaps:
            return memoize(objs, memo)
        gets = memoize([x for x in objs if x is not _GAP], memo)
        if gets is None:
            return None
        rest = iter(gets)
        return [None if x is _GAP else next(rest) for x in objs]


def _ids_of_keys(obj: dict[Any, Any]) -> tuple[int, ...]:
    return (*map(id, obj),)


def _is_given(values: Iterable[Any]) -> Iterable[bool]:
    return map(is_not, values, repeat(None))


_GAP: Final = object()
