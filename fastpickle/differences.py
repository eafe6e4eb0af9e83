"""What the C pickler writes otherwise than the Python one, although it knows the object; found out afterwards.

    pieces of C --(nothing in them looks like it)-----------------------------------> ours
                --(something may be; what C has memoized says that it is not)-------> ours
                --(there is; the last batches of some containers)--> `mending` -----> ours
                --(there is; it is something else, or not certain)------------------> Python's turn

Up to 3.14 C ends exact containers of some lengths with another batch than Python (`_stdlib.awkward_batches`), and up
to 3.12 it fetches some texts from the memo that Python writes again, at protocol 0.  For a library's pickler there are
names that no dict must have (`rules.GraftRule`).

Not for: objects that C cannot reduce as Python does; those it never meets (`cpickler`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import compress, islice
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any, Final, NamedTuple

from ._stdlib import BATCHSIZE, CPickler, awkward_batches, awkward_escapes, memoized
from .cpickler import LARGE, LARGE_TABLE, ROOM, Grafter, Held, is_by_name
from .hooks import STOCK_RULE, Plan
from .instances import METACLASSES
from .mending import HIGH, Ends, Wanted, mend, mend_last, possible_ends
from .opcodes import pack_binint2
from .reading import find_doubtful, has_text, is_opcode
from .rules import texts_of

# fmt: off
from pickle import (  # isort: skip
    ADDITEMS, APPENDS, BINFLOAT, BINGET, BININT, BININT1, BININT2, BINUNICODE, BINUNICODE8, DICT, EMPTY_DICT,
    EMPTY_LIST, EMPTY_TUPLE, FRAME, INT, LONG, LONG1, LONG4, LONG_BINGET, MARK, MEMOIZE, NEWFALSE, NEWTRUE, NONE,
    PROTO, SETITEMS, SHORT_BINUNICODE, STACK_GLOBAL, dumps,
)
# fmt: on

__all__ = ["made_ours"]


def made_ours(pickler: Any, plan: Plan, grafter: Any, obj: Any, of_items: int | None = None) -> bool:
    """Make what C wrote what Python would have written, if need be.

    Args:
        pickler, plan: whose.
        grafter: the C pickler that wrote it; its pieces may be others then.
        obj: what C was given.
        of_items: how many items of `obj` C was given in its place, which it writes in Python's batches.

    Returns:
        Whether it is ours; if not, its pieces are of no use.
    """
    proto = plan.proto
    if proto == 0 and awkward_escapes is not None and any(map(awkward_escapes.search, grafter.pieces)):
        return False
    pieces = grafter.pieces
    n = len(pieces[0]) if len(pieces) == 1 else grafter.held.written
    if of_items is None and grafter.table is None and _is_soon_ours(pickler, plan, grafter, obj, n):
        return True
    written = _Written(pickler, plan, grafter, obj, of_items)
    return (
        (plan.graft_rule is STOCK_RULE or (not written.is_compared() and not written.has_unwanted()))
        and (grafter.table is None or written.is_by_name())
        and (n < BATCHSIZE or not proto or not awkward_batches or written.is_mended())
    )


def _is_soon_ours(pickler: Any, plan: Plan, grafter: Any, obj: Any, n: int) -> bool:
    """Tell whether what C wrote is ours, or is now, as far as that is found out sooner than by a `_Written`.

    That is so if it is little, or if the containers in it are few.
    """
    pieces = grafter.pieces
    proto = plan.proto
    is_spliced = grafter.is_spliced
    piece = pieces[-1]
    rule = plan.graft_rule
    t = type(obj)
    is_little = n < _SOON_READ and len(pieces) == (3 if is_spliced and proto >= 4 else 1)
    others: list[Any] | None = None  # than `obj`: containers, if they are found sooner than what is in the bytes
    before = pickler.memo
    if n >= BATCHSIZE and len(before) <= _FEW_BEFORE:
        table = grafter.__sizeof__() - _SIZE
        is_small = table * _PER_TABLE_BYTE < n
        if t is list and table > 16 * len(obj) > LARGE_TABLE and _is_flat(obj, t, proto, n):
            others = []  # to look at the items takes 7 ns for each, at what is memoized 13 ns
        elif table < LARGE_TABLE and (is_small or n > 4096):  # a table may have been larger before
            objs = memoized(grafter)
            if is_small or len(objs) * 32 * _PER_TABLE_BYTE < n:
                others = [x for x in objs if id(type(x)) in _BATCHED and x and x is not obj]
                if before:
                    others = [x for x in others if id(x) not in before]
        if others is None and t is list and proto >= 4 and _are_small_sets(obj, grafter):
            others = []
    if others is None and not is_little:
        return False
    if rule is not STOCK_RULE:
        text = _DICTS[proto]
        dicts: list[Any] | None = None
        if others is not None:
            dicts = [x for x in others if type(x) is dict]
            if t is dict:
                dicts.append(obj)
        elif t is dict and not has_text(piece, text, piece.index(text) + 1):
            dicts = [obj]
        if (dicts or (dicts is None and has_text(piece, text))) and _may_be_unwanted(pickler, plan, grafter, dicts, n):
            return False
    if n < BATCHSIZE or not proto or not awkward_batches:
        return True
    is_long_inside = others is None or (len(others) > 0 and max(map(len, others)) >= BATCHSIZE)
    end = None
    if t is list or t is dict or (t is set and proto >= 4):
        end = _end(t, len(obj))
    if end is None and not is_long_inside:
        return True
    if not is_little:
        return False
    behind = 2 if is_spliced else 1  # BUILD, STOP
    content = None if end is None or is_long_inside else _content(obj, end[1], proto)
    if end is not None and content is not None:
        mark = len(piece) - behind - len(content) - 2
        if not piece.startswith(content, mark + 1):  # another thread has changed it
            return False
    else:
        doubtful = find_doubtful(piece)
        if len(doubtful) > _batches(obj, proto).marks:
            return False
        if end is None:
            return True
        mark = doubtful[-1] if doubtful else 0
    if piece[mark] != MARK[0] or piece[mark - 1] != end[0]:  # another thread has changed its length
        return False
    pieces[-1] = mend_last(piece, mark, end, behind, proto >= 4)
    return True


def _end(t: type, n: int) -> tuple[int, int] | None:
    """Return which last batch of an exact container of `n` items is to be mended, as in `Ends`; None if it is not."""
    remainder = n % BATCHSIZE
    if n < BATCHSIZE or remainder not in awkward_batches.get(t, ()):
        return None
    return _CLOSES[t], 2 * remainder if t is dict else remainder


def _is_flat(obj: Any, t: type, proto: int, n: int) -> bool:
    """Tell whether a container is of atoms only, if that is found sooner than what is in the `n` bytes of it."""
    if not (t is list or t is dict) or len(obj) * 30 > n:
        return False
    leaves = _LEAVES[proto]  # each takes 10 ns; all types in what C wrote are known to be harmless
    if t is list:
        return bool(obj) and type(obj[0]) in leaves and leaves.issuperset({*map(type, obj)})  # a set takes 7 ns
    return leaves.issuperset(map(type, obj)) and leaves.issuperset(map(type, obj.values()))


def _are_small_sets(obj: list[Any], grafter: Any) -> bool:
    """Tell whether a list has sets of less than a batch in it, and nothing else; a set has no list, dict or set in it.

    So it is from protocol 4 on; before, a frozenset in it is reduced to a list.

    Args:
        obj: what `grafter` wrote.
        grafter: a C pickler that knows an instance's type if it has written one, for that may have anything in it.
    """
    return (
        type(obj[0] if obj else None) is set
        and not grafter.known
        and {*map(type, obj)} == _SETS
        and max(map(len, obj)) < BATCHSIZE
    )


_SETS: Final = {set}


def _may_be_unwanted(pickler: Any, plan: Plan, grafter: Any, dicts: list[Any] | None, n: int) -> bool:
    """Tell whether there may be a dict with a name that only Python can write, or one that dill compares.

    Args:
        pickler, plan: whose.
        grafter: the C pickler that wrote `n` bytes.
        dicts: all there are in them, or more; None if that is not known, then they are one piece.
        n: how many.
    """
    rule = plan.graft_rule
    if dicts is not None:
        for name in rule.names:
            for x in dicts:
                if name in x:
                    return True
    else:
        if pickler.memo:
            return True  # the names may be in that
        for text in rule.texts_of_names[plan.proto]:
            if has_text(grafter.pieces[-1], text):
                return True
    if rule.lengths is None or n < _LEAST * min(lengths := rule.lengths(pickler)):
        return False
    if dicts is None:
        dicts = [x for x in memoized(grafter) if type(x) is dict]
    return True in [len(x) in lengths for x in dicts]  # any() takes 0.2 us longer


class _Written:
    """What C wrote, and what it has memoized: each str, class, function, list, dict and set in it.

    Attributes:
        pieces: those that have opcodes in them.
        n: how many bytes it wrote.
    """

    def __init__(self, pickler: Any, plan: Plan, grafter: Any, obj: Any, of_items: int | None) -> None:
        self.pickler = pickler
        self.plan = plan
        self.grafter = grafter
        self.obj = obj
        self.of_items = of_items
        pieces = grafter.pieces
        if plan.proto >= 4 and len(pieces) > 1:  # a large bytes or str is none
            pieces = [p for p in pieces if p[0] == FRAME[0] or p[0] == PROTO[0] or len(p) < len(LARGE)]
        self.pieces = pieces
        self.n: int = grafter.held.written

    # Each of these looks at the bytes first, which takes 0.1 to 0.4 ns for each, and if there may be something, at
    # the memo, which takes 40 to 100 ns an entry.

    def is_compared(self) -> bool:
        """Tell whether there is a dict for which dill would ask somebody's `__eq__`."""
        rule = self.plan.graft_rule
        if rule.lengths is None or self.n < _LEAST * min(lengths := rule.lengths(self.pickler)):
            return False
        if not self._is_memo_small:
            if not self._has_dict:
                return False
            if self._is_only_dict:
                return len(self.obj) in lengths and _has_key((self.obj,), rule.compared(self.pickler))
            if self.n >= BATCHSIZE and not self.pickler.memo:  # the names may be in that
                names = rule.compared(self.pickler)
                if not names or (len(names) * self.n < _PER_ENTRY * self._entries and self._has_none(names)):
                    return False
        # What is no dict is passed over in 13 ns, and no type is asked for its hash, which may be anybody's.
        dicts = [x for x in self._objs if type(x) is dict and len(x) in lengths]
        return bool(dicts) and _has_key(self._without_others(dicts), rule.compared(self.pickler))

    def _has_none(self, names: tuple[Any, ...]) -> bool:
        """Tell whether none of some names is in the bytes, if that is certain; protocol 0 has escapes in them."""
        proto = self.plan.proto
        return proto > 0 and _STRS.issuperset(map(id, map(type, names))) and not self._has(_texts_of(names, proto))

    def has_unwanted(self) -> bool:
        """Tell whether there is a dict with a name that only Python can write, or a builtin."""
        rule = self.plan.graft_rule
        proto = self.plan.proto
        if self._is_flat:  # so is what is written of it in other chunks
            return type(self.obj) is dict and _has_key((self.obj,), rule.names)
        has_names = _has_key((self.obj,), rule.names) if self._is_only_dict else self._may_have_names()
        if has_names and _has_key(self._memoized(_DICT), rule.names):
            return True
        unwanted = rule.unwanted[proto]
        return (
            self.grafter.table is not None  # the other kind is asked, and gives up
            and (self._is_memo_small or self._has(rule.texts_of_builtins[proto]))
            and not unwanted.isdisjoint(map(id, self._objs))
            and any(id(x) in unwanted for x in self._memoized(None))
        )

    def _may_have_names(self) -> bool:
        """Tell whether there may be a dict with one of the rule's names, and note which the C pickler may know now."""
        grafter = self.grafter
        rule = self.plan.graft_rule
        names = rule.names
        if grafter.has_names is None:
            grafter.has_names = any(type(x) is str and x in names for _, x in self.pickler.memo.values())
        has_dict = self._is_memo_small or self._has_dict
        if not grafter.has_names and (has_dict or self.of_items is not None):  # there may be a dict in the next chunk
            if self._is_memo_small:
                grafter.has_names = not names.isdisjoint(self._memoized(_STR))
            else:
                grafter.has_names = self._has(rule.texts_of_names[self.plan.proto])
        return has_dict and grafter.has_names

    def is_by_name(self) -> bool:
        """Tell whether all classes and functions are saved by their names, of what a `_TableGrafter` wrote."""
        table = self.grafter.table
        expected = sum(id(t) not in self.pickler.memo for t in islice(table, table.counted, None))
        table.counted = len(table)
        if table.is_sure and sum(piece.count(_NEW_GLOBAL) for piece in self.pieces) == expected:
            return True
        table.is_sure = False  # C may have written a class already when its first instance comes
        return all(is_by_name(self.pickler, x, type(x)) for x in self._memoized(_BY_NAME))

    def is_mended(self) -> bool:
        """Tell whether all containers end as Python ends them, now."""
        proto = self.plan.proto
        own = _batches(self.obj, proto, self.of_items)
        behind = 2 if self.grafter.is_spliced else 1  # BUILD, STOP
        if own.end is not None or self.n < _SOON_READ or not (self._is_flat or self._is_memo_small):
            doubtful = self._doubtful
            if sum(map(len, doubtful)) <= own.marks:  # so those are its own
                return own.end is None or self._is_end_mended(own, own.end, behind)
        elif self._is_flat:
            return True
        objs = [self.obj]
        is_inside = not self._is_flat and (self._is_memo_small or self._may_have_others(own))
        if is_inside and self.of_items is not None:
            return self._mend(Wanted(None, own.long))  # the memo has what was written of `obj` before in it, too
        if is_inside:
            objs += [x for x in self._long_ones() if x is not self.obj]
        ends: Ends = {}
        long = 0
        contents: set[tuple[int, bytes]] | None = set()
        for x in objs:
            batches = own if x is self.obj else _batches(x, proto)
            long += batches.long
            if batches.end is not None:
                ends[batches.end] = ends.get(batches.end, 0) + 1
                content = None if contents is None else _content(x, batches.end[1], proto)
                if contents is not None and content is not None:
                    contents.add((batches.end[0], content))
                else:
                    contents = None
        if not ends:
            return True
        is_own = own.end is not None and sum(ends.values()) == 1
        return self._mend(Wanted(ends, long, behind if is_own else 0, contents=contents))

    def _is_end_mended(self, own: _Batches, end: tuple[int, int], behind: int) -> bool:
        """Mend the last batch of the object, all that is in doubt being its own; tell whether that succeeded."""
        pieces = self.grafter.pieces
        if not self._doubtful[-1]:  # it has begun in another frame
            return self._mend(Wanted({end: 1}, own.long, behind, is_last=True))
        pieces[-1] = mend_last(pieces[-1], self._doubtful[-1][-1], end, behind, self.plan.proto >= 4)
        return True

    @cached_property
    def _doubtful(self) -> list[list[int]]:
        """Where the MARKs are that may begin a batch to be mended, for each piece."""
        return [*map(find_doubtful, self.pieces)]

    def _may_have_others(self, own: _Batches) -> bool:
        """Tell whether there may be an end inside, as far as the bytes tell; one by chance takes 0.3 ms."""
        ends = [
            (piece, mark)
            for piece, doubtful in zip(self.pieces, self._doubtful, strict=True)
            for mark in possible_ends(piece, doubtful)
        ]
        n = own.possible_ends
        if len(ends) > n > 0:
            closes, opens = _neighbours(self.obj)
            others = [x for x in ends if x[0][x[1] - 1] != closes or x[0][x[1] + 1 : x[1] + 2] not in opens]
            if len(ends) - len(others) <= n:  # so those are its own
                ends, n = others, 0
        return len(ends) > n and (len(ends) > _MOST_READ or any(is_opcode(*x) for x in ends))

    def _mend(self, wanted: Wanted) -> bool:
        """Mend what is to be mended, and tell whether that succeeded."""
        grafter = self.grafter
        if self.n > _MOST_MENDED and grafter.held.room <= ROOM:
            return False
        framed = self.plan.proto >= 4
        start = 2 if grafter.is_spliced and framed else 0  # a frame, and a large bytes
        pieces = grafter.pieces[start:]
        del grafter.pieces[start:], self.pieces  # `mend` holds less then
        mended = mend(pieces, framed, wanted)
        if mended is not None:
            grafter.pieces += mended
        return mended is not None

    @cached_property
    def _is_flat(self) -> bool:
        """Tell whether C was given a container of atoms only, if that is found sooner than what is in the bytes."""
        return _is_flat(self.obj, type(self.obj), self.plan.proto, self.n)

    @cached_property
    def _entries(self) -> Any:
        """About how many entries the memo has; the table has 16 bytes for each, and is half full."""
        return (self.grafter.__sizeof__() - _SIZE) // 32

    @cached_property
    def _is_memo_small(self) -> bool:
        """Tell whether the memo is looked at sooner than the bytes."""
        return self.n >= BATCHSIZE and bool((self.grafter.__sizeof__() - _SIZE) * _PER_TABLE_BYTE < self.n)

    @cached_property
    def _is_only_dict(self) -> bool:
        """Tell whether C was given a dict, and has written no other one."""
        if type(self.obj) is not dict or self.of_items is not None:
            return False
        text = _DICTS[self.plan.proto]
        is_found = False
        for piece in self.pieces:
            start = 0
            if not is_found:
                start = piece.find(text) + 1
                is_found = start > 0
            if has_text(piece, text, start):
                return False
        return is_found

    @cached_property
    def _has_dict(self) -> bool:
        """Tell whether there may be a dict, as far as the bytes tell; a list of atoms has none."""
        if type(self.obj) is dict or self._is_flat:
            return type(self.obj) is dict
        return self._has((_DICTS[self.plan.proto],))

    def _has(self, texts: Iterable[bytes]) -> bool:
        """Tell whether one of some texts is in the bytes, which takes up to 1 ns for each."""
        return any(has_text(piece, text) for text in texts for piece in self.pieces)

    @cached_property
    def _objs(self) -> list[Any]:
        """What C has memoized, now or before, and others that it refers to."""
        return memoized(self.grafter)

    @cached_property
    def _types(self) -> list[Any]:
        """The types of `_objs`, or their ids: the hash of a type may be anybody's, but for those that C wrote now."""
        types = map(type, self._objs)
        return [*map(id, types)] if self.pickler.memo or type(type(self.pickler)) is not type else [*types]

    def _memoized(self, types: frozenset[Any] | None) -> Iterator[Any]:
        """Yield what C has memoized, of some types or all."""
        objs = self._objs
        return self._without_others(objs if types is None else compress(objs, map(types.__contains__, self._types)))

    def _long_ones(self) -> Iterator[Any]:
        """Yield the lists, dicts and sets of more than a batch."""
        batched = [*compress(self._objs, map(_BATCHED.__contains__, self._types))]
        return self._without_others(compress(batched, map(BATCHSIZE.__le__, map(len, batched))))

    def _without_others(self, objs: Iterable[Any]) -> Iterator[Any]:
        return (x for x in objs if id(x) not in self._others)

    @cached_property
    def _others(self) -> set[int]:
        """The ids of what C had memoized before, and of what its attributes are."""
        own = vars(self.grafter)
        return {*map(id, own.values()), id(own), *self.pickler.memo}


#: The type of names that are sought, by id, since the hash of a type may be anybody's.
_STRS: Final = frozenset((id(str),))
_texts_of: Final = lru_cache(maxsize=64)(texts_of)


def _has_key(dicts: Iterable[dict[Any, Any]], names: Iterable[Any]) -> bool:
    """Tell whether one of some names is a key; nobody's `__hash__` is asked, and may not be by another way."""
    return any(type(name) is not str or name in x for x in dicts for name in names)


#: So much that was memoized before is looked at with what C has memoized now.
_FEW_BEFORE: Final = 100
#: So few bytes are read sooner than it takes to ask for the memo.
_SOON_READ: Final = 24_000
#: So many frames may be read for what is in them by chance.
_MOST_READ: Final = 20
#: By protocol: what stands in the bytes if there is a dict.
_DICTS: Final = [MARK + DICT] + [EMPTY_DICT] * 3 + [EMPTY_DICT + MEMOIZE] * 2
#: So many bytes a key and its value take at least, but for one None, True, False and () as a key.
_LEAST: Final = 2
#: Entries of 32 bytes in C's table of the memo take up to 100 ns each to be looked at; 256 bytes are read in that time.
_PER_TABLE_BYTE: Final = 8
#: So many bytes are searched for a name in the time that it takes to look at an entry of the memo.
_PER_ENTRY: Final = 200
#: To mend takes three times as much room, or is done for smaller parts.
_MOST_MENDED: Final = 24 << 20


class _Batches(NamedTuple):
    """The batches of an exact list, dict or set that may have to be mended, but for the first one.

    Attributes:
        marks: how many there are, each with a MARK.
        end: the one that is to be mended, or None.
        long: how many of the others have surely more than `HIGH` objects.
    """

    marks: int
    end: tuple[int, int] | None = None
    long: int = 0

    @property
    def possible_ends(self) -> int:
        """How many of them `possible_ends` counts, at least."""
        return self.long + (self.end is not None)


_NO_BATCHES: Final = _Batches(0)


def _batches(obj: Any, proto: int, of_items: int | None = None) -> _Batches:
    """Return the batches of an exact list, dict or set; none for other objects.

    Args:
        of_items: how many items C was given, and writes in Python's batches; None if it was given `obj`.
    """
    t = type(obj)
    if not (t is list or t is dict or (t is set and proto >= 4)):
        return _NO_BATCHES
    n = len(obj) if of_items is None else of_items
    remainder = n % BATCHSIZE
    end = None
    marks = max(0, n - 1) // BATCHSIZE
    if of_items is not None:
        marks -= remainder == 1 and marks > 0
    else:
        end = _end(t, n)
        marks += end is not None and remainder == 0
    if t is set:  # its others have no opcode in which there may be a doubt
        return _Batches(int(end is not None), end)
    return _Batches(marks, end, marks - (end is not None) - (marks > 0 and 1 < remainder <= HIGH))


def _content(obj: Any, n: int, proto: int) -> bytes | None:
    """Return what stands in the last batch of a list, dict or set, which is of `n` objects; None if not for sure."""
    if n == 0:
        return b""
    last = obj[-1:] if type(obj) is list else next(reversed(obj.items()))
    if not _UNMEMOIZED.issuperset(map(type, last)):
        return None
    return b"".join(
        [
            pack_binint2(BININT2, x)
            if type(x) is int and 255 < x <= 0xFFFF  # the index of most last items, 1 us sooner
            else dumps(x, min(proto, 3))[2 if proto >= 2 else 0 : -1]
            for x in last
        ]
    )


def _neighbours(obj: Any) -> tuple[int, bytes]:
    """Return which opcode stands before, and which may stand behind, the MARKs of batches of a list or dict."""
    t = type(obj)
    if t is list:
        opens = map(_opens, obj[BATCHSIZE::BATCHSIZE])
    else:
        opens = map(_opens, islice(obj, BATCHSIZE, None, BATCHSIZE))
    return _CLOSES[t], b"".join({SETITEMS, ADDITEMS, *opens})


def _opens(x: Any) -> bytes:
    """Return the opcodes with which the saving of an object may begin."""
    t = type(x)
    if t is tuple and 0 < len(x) <= 3:
        return _opens(x[0]) + _OPENS[id(t)]
    return _OPENS.get(id(t), _ANY)


_UNMEMOIZED: Final = frozenset((NoneType, bool, int, float))
_GETS: Final = BINGET + LONG_BINGET
_ANY: Final = bytes(range(256))
_OPENS: Final = {
    id(NoneType): NONE,
    id(bool): NEWTRUE + NEWFALSE + INT,
    id(int): BININT1 + BININT2 + BININT + LONG1 + LONG4 + LONG,
    id(float): BINFLOAT,
    id(str): SHORT_BINUNICODE + BINUNICODE + BINUNICODE8 + _GETS,
    id(list): EMPTY_LIST + _GETS,
    id(dict): EMPTY_DICT + _GETS,
    id(tuple): EMPTY_TUPLE + MARK + _GETS,
}
_CLOSES: Final[dict[Any, int]] = {list: APPENDS[0], dict: SETITEMS[0], set: ADDITEMS[0]}


_SIZE: Final = Grafter(Held()).__sizeof__() if CPickler is not None else 0


def _either(*types: type) -> frozenset[Any]:
    """Return a set that has some types and their ids in it."""
    return frozenset((*types, *map(id, types)))


_DICT: Final = _either(dict)
_STR: Final = _either(str)
_BATCHED: Final = _either(list, dict, set)
_BY_NAME: Final = _either(*METACLASSES, FunctionType, BuiltinFunctionType)


#: By protocol: what C saves by one opcode.
_LEAVES: Final = [
    frozenset(
        (type(None), bool, int, float, str, *((bytes,) if proto >= 3 else ()), *((bytearray,) if proto >= 5 else ()))
    )
    for proto in range(6)
]
#: What C writes for a function or class that it has not written before, from protocol 4 on.
_NEW_GLOBAL: Final = STACK_GLOBAL + MEMOIZE
