"""What the C pickler writes otherwise than the Python one, although it knows the object; found out afterwards.

    pieces of C --(`glance`, or nothing in them looks like it)----------------------> ours
                --(something may be; what C has memoized says that it is not)-------> ours
                --(there is; the last batches of some containers)--> `mending` -----> ours
                --(there is; it is something else, or not certain)------------------> Python's turn

Up to 3.14 C ends exact containers of some lengths with another batch than Python (`_stdlib.awkward_batches`), and up
to 3.12 it fetches some texts from the memo that Python writes again, at protocol 0.  For a library's pickler there are
names that no dict must have (`rules.GraftRule`).

Not for: objects that C cannot reduce as Python does; those it never meets (`cpickler`); nor for little data and flat
lists (`glance`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache, partial
from itertools import compress
from pickle import FRAME, MARK, PROTO, SHORT_BINUNICODE
from typing import Any, Final

from .._stdlib import BATCHSIZE, awkward_batches, awkward_escapes, memoized
from ..hooks import STOCK_RULE, Plan
from ..rules import texts_of
from .batches import Batches, batches_of, beginnings_of, content_of, firsts_of, neighbours_of
from .cpickler import LARGE, ROOM
from .glance import DICTS, LEAST, PER_TABLE_BYTE, SIZE, SOON_READ, are_flat_rows, is_flat, is_soon_ours, is_untracked
from .mending import Ends, Wanted, mend, mend_last, place_of_last, possible_ends
from .reading import ends_in, find_doubtful, has_text, is_batch_of_atoms, is_opcode

__all__ = ["made_ours"]


def made_ours(
    pickler: Any,
    plan: Plan,
    grafter: Any,
    obj: Any,
    of_items: int | None = None,
    *,
    found: Sequence[list[int]] = (),
) -> bool:
    """Make what C wrote what Python would have written, if need be.

    Args:
        pickler, plan: whose.
        grafter: the C pickler that wrote it; its pieces may be others then.
        obj: what C was given.
        of_items: how many items of `obj` C was given in its place, which it writes in Python's batches.
        found: what a first glance has found in its one piece (`at_first_glance`); nothing if there was none.

    Returns:
        Whether it is ours; if not, its pieces are of no use.
    """
    proto = plan.proto
    if proto == 0 and awkward_escapes is not None and any(map(awkward_escapes.search, grafter.pieces)):
        return False
    pieces = grafter.pieces
    n = len(pieces[0]) if len(pieces) == 1 else grafter.held.written
    doubtful = [*found]
    is_whole = of_items is None and grafter.table is None
    if is_whole and not found and is_soon_ours(pickler, plan, grafter, obj, n, doubtful):
        return True
    written = _Written(pickler, plan, grafter, obj, of_items, doubtful if len(pieces) == 1 else [])
    return (plan.graft_rule is STOCK_RULE or (not written.is_compared() and not written.has_unwanted())) and (
        n < BATCHSIZE or not proto or not awkward_batches or written.is_mended()
    )


class _Written:
    """What C wrote, and what it has memoized: each str, class, function, list, dict and set in it.

    Attributes:
        pieces: those that have opcodes in them.
        n: how many bytes it wrote.
        _doubtful: where the MARKs are that may begin a batch to be mended, for each piece.
    """

    def __init__(
        self, pickler: Any, plan: Plan, grafter: Any, obj: Any, of_items: int | None, doubtful: list[list[int]]
    ) -> None:
        if doubtful:
            self._doubtful = doubtful
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
        if rule.lengths is None:
            return False
        lengths = rule.lengths(self.pickler)
        if not lengths:  # it may not graft any more
            return True
        if self.n < LEAST * min(lengths):
            return False
        if not self._is_memo_small:
            if not self._has_dict:
                return False
            if self._is_only_dict:
                return len(self.obj) in lengths and rule.is_asked(self.pickler, self.obj)
            if not self._has_asking():
                names = rule.asked(self.pickler)
                if not names:
                    return False
                if self.n >= BATCHSIZE and len(names) * self.n < _PER_ENTRY * self._entries and self._has_none(names):
                    return False
        dicts = [x for x in self._containers if type(x) is dict and len(x) in lengths]
        return any(rule.is_asked(self.pickler, x) for x in self._without_others(dicts))

    def _has_asking(self) -> bool:
        """Tell whether there may be an instance that somebody's `__eq__` is asked of, which is not in a dict alone."""
        asks = self.plan.graft_rule.asks
        grafter = self.grafter
        types = {id(t): t for t in (*grafter.known, *(grafter.table or ())) if type(t) is not int}
        types.update((id(type(x)), type(x)) for _, x in grafter.memo_before.values())
        return any(map(asks, types.values()))

    def _has_none(self, names: tuple[Any, ...]) -> bool:
        """Tell whether none of some names is in the bytes, if that is certain; protocol 0 has escapes in them."""
        proto = self.plan.proto
        return (
            proto > 0
            and _STRS.issuperset(map(id, map(type, names)))
            and self._are_new(frozenset(names))  # else one would be fetched
            and not self._has(_texts_of(names, proto))
        )

    def _are_new(self, names: frozenset[str]) -> bool:
        """Tell whether none of some names was memoized before."""
        return names.isdisjoint([x for _, x in self.pickler.memo.values() if type(x) is str])

    def has_unwanted(self) -> bool:
        """Tell whether there is a dict with a name that only Python can write."""
        rule = self.plan.graft_rule
        if self._is_flat:  # so is what is written of it in other chunks
            return type(self.obj) is dict and _has_key((self.obj,), rule.names)
        if self._is_memo_small and self.of_items is None:  # so nothing of it matters to another chunk
            return _has_key([x for x in self._containers if type(x) is dict], rule.names, self._others)
        has_names = _has_key((self.obj,), rule.names) if self._is_only_dict else self._may_have_names()
        return has_names and _has_key([*self._memoized(_DICT)], rule.names)

    def _may_have_names(self) -> bool:
        """Tell whether there may be a dict with one of the rule's names, and note which the C pickler may know now."""
        grafter = self.grafter
        rule = self.plan.graft_rule
        names = rule.names
        if grafter.has_names is None:
            grafter.has_names = not self._are_new(names)
        has_dict = self._is_memo_small or self._has_dict
        if not grafter.has_names and (has_dict or self.of_items is not None):  # there may be a dict in the next chunk
            if self._is_memo_small:
                grafter.has_names = not names.isdisjoint(self._memoized(_STR))
            else:
                grafter.has_names = self._has(rule.texts_of_names[self.plan.proto])
        return has_dict and grafter.has_names

    def is_mended(self) -> bool:
        """Tell whether all containers end as Python ends them, now."""
        proto = self.plan.proto
        own = batches_of(self.obj, proto, self.of_items)
        is_memo_small = self.of_items is None and (  # else what was written before is in it, too
            self._is_memo_small or (self._table * PER_TABLE_BYTE < self.n * _TIMES and self._is_dense)
        )
        is_soon_known = self.n >= SOON_READ and (self._is_flat or is_memo_small)
        if not is_soon_known and sum(map(len, self._doubtful)) <= own.marks:  # so those are its own
            return own.end is None or self._is_end_mended(own, own.long)
        inside: Iterable[Any] | None = ()
        if not self._is_flat and not self._has_flat_rows:
            inside = self._long_ones() if is_memo_small else self._may_have_ends(own)
        if inside is None:
            return self._mend(Wanted(None, own.long))
        ends: Ends = {}
        long = 0
        contents: set[tuple[int, bytes]] | None = set()
        for x in (self.obj, *inside):
            batches = own if x is self.obj else batches_of(x, proto)
            long += batches.long
            if batches.end is not None:
                ends[batches.end] = ends.get(batches.end, 0) + 1
                content = None if contents is None else content_of(x, batches.end[1], proto)
                if contents is not None and content is not None:
                    contents.add((batches.end[0], content))
                else:
                    contents = None
        if not ends:
            return True
        if own.end is not None and sum(ends.values()) == 1:
            return self._is_end_mended(own, long)
        return self._mend(Wanted(ends, long, contents=contents))

    def _is_end_mended(self, own: Batches, long: int) -> bool:
        """Mend the last batch of the object, which is the only end there is; tell whether that succeeded.

        Args:
            own: its batches.
            long: how many others have surely many objects, as in `Wanted`.
        """
        assert own.end is not None
        closes, n = own.end
        pieces = self.grafter.pieces
        piece = pieces[-1]
        framed = self.plan.proto >= 4
        behind = 2 if self.grafter.is_spliced else 1  # BUILD, STOP
        content = content_of(self.obj, n, self.plan.proto)
        mark = 0 if content is None else place_of_last(piece, own.end, content, behind, framed)
        if not mark:
            is_last = sum(map(len, self._doubtful)) <= own.marks
            if not (is_last and self._doubtful[-1]):
                contents = None if content is None else {(closes, content)}
                return self._mend(Wanted({own.end: 1}, long, behind, is_last, contents))
            mark = self._doubtful[-1][-1]
        pieces[-1] = mend_last(piece, mark, own.end, behind, framed)
        return True

    @cached_property
    def _doubtful(self) -> list[list[int]]:
        """Where the MARKs are that may begin a batch to be mended, for each piece."""
        if self.of_items is not None:  # what they are appended to is not opened in the pieces
            return [*map(find_doubtful, self.pieces)]
        ends: Callable[[], list[bytes]] = partial(ends_in, self.pieces, self.plan.proto)
        if len(self.pieces) > 1:  # for one it takes longer to keep them
            ends = cache(ends)
        return [find_doubtful(piece, ends=ends) for piece in self.pieces]

    def _may_have_ends(self, own: Batches) -> Iterable[Any] | None:
        """Return the containers inside that may have ends, as far as the bytes tell; one by chance may take 0.3 ms.

        None if they cannot be told: what was written of `obj` before is in the memo, too.
        """
        ends = [
            (piece, mark)
            for piece, doubtful in zip(self.pieces, self._doubtful, strict=True)
            for mark in possible_ends(piece, doubtful)
        ]
        n = own.possible_ends
        if len(ends) > n > 0:
            firsts = firsts_of(self.obj)
            closes, opens = neighbours_of(self.obj, firsts)
            others = [x for x in ends if x[0][x[1] - 1] != closes or x[0][x[1] + 1 : x[1] + 2] not in opens]
            if len(ends) - len(others) > n and type(self.obj) is dict:  # a number may have the same bytes in it
                begins = beginnings_of(firsts, self.plan.proto)
                others = [x for x in ends if x[0][x[1] - 1] != closes or not _goes_on(*x, begins)]
            if len(ends) - len(others) <= n:  # so those are its own
                ends, n = others, 0
        if len(ends) <= n:
            return ()
        if self.of_items is None:
            long = _long_inside(self.obj, self.pickler.memo, self.n // _PER_ITEM)
            if len(ends) <= n + sum(batches_of(x, self.plan.proto).possible_ends for x in long):
                return long  # so the others are theirs
            if is_flat(self.obj, type(self.obj), self.plan.proto, len(ends) * _BYTES_PER_READ):
                return ()
        if n == 0:
            ends = [x for x in ends[:_MOST_READ] if not is_batch_of_atoms(*x)] + ends[_MOST_READ:]
            if not ends:
                return ()
        if self.of_items is None and self._entries < _MOST_ENTRIES:
            return self._long_ones()
        if n > 0 or len(ends) > _MOST_READ or any(is_opcode(*x) for x in ends):  # one of its own is one
            return self._long_ones() if self.of_items is None else None
        return ()

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
        """Tell whether C was given a container of atoms, or of tuples of some, if that takes less than the bytes do."""
        if type(self.obj) is dict and is_untracked(self.obj, self.grafter):
            return True
        n = self.n if not self._is_dense else self.n * _TIMES
        return is_flat(self.obj, type(self.obj), self.plan.proto, n)

    @cached_property
    def _has_flat_rows(self) -> bool:
        """Tell whether C was given a list of lists or tuples of atoms, if that takes less than to look at the memo."""
        return self.of_items is None and are_flat_rows(self.obj, self.plan.proto, self._table)

    @cached_property
    def _entries(self) -> Any:
        """About how many entries the memo has."""
        return self._table // 32

    @cached_property
    def _is_dense(self) -> bool:
        """Tell whether bytes like MARK are many, so that the bytes take longer to be looked at."""
        piece = self.pieces[len(self.pieces) // 2]
        start = len(piece) // 2
        return bool(piece.count(MARK, start, start + _LOOKED_AT) > _LOOKED_AT // _FEW_FOR_A_MARK)

    @cached_property
    def _is_memo_small(self) -> bool:
        """Tell whether the memo is looked at sooner than it takes to search the bytes for a text."""
        return self.n >= BATCHSIZE and bool(self._table * PER_TABLE_BYTE < self.n)

    @cached_property
    def _table(self) -> Any:
        """How many bytes C's table of the memo has: 16 for each entry, and it is half full."""
        return self.grafter.__sizeof__() - SIZE

    @cached_property
    def _is_only_dict(self) -> bool:
        """Tell whether C was given a dict, and has written no other one."""
        if type(self.obj) is not dict or self.of_items is not None:
            return False
        text = DICTS[self.plan.proto]
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
        text = DICTS[self.plan.proto]
        if not self._has((text,)):
            return False
        if self.plan.proto < 4 or not all(_are_in_texts(piece, text) for piece in self.pieces):
            return True
        return not self._has_flat_rows and next(self._memoized(_DICT), None) is not None

    def _has(self, texts: Iterable[bytes]) -> bool:
        """Tell whether one of some texts is in the bytes, which takes up to 1 ns for each."""
        return any(has_text(piece, text) for text in texts for piece in self.pieces)

    @cached_property
    def _objs(self) -> list[Any]:
        """What C has memoized, now or before, and others that it refers to."""
        return memoized(self.grafter)

    @cached_property
    def _containers(self) -> list[Any]:
        """The lists, dicts and sets among `_objs`.

        Most others are texts, which are passed over in 14 ns; compress() and map() would take twice as long, and no
        type is asked for its hash, which may be anybody's.
        """
        return [x for x in self._objs if (t := type(x)) is not str and (t is dict or t is list or t is set)]

    @cached_property
    def _types(self) -> list[Any]:
        """The types of `_objs`, or their ids: the hash of a type may be anybody's, but for those that C wrote now."""
        types = map(type, self._objs)
        return [*map(id, types)] if self.pickler.memo or type(type(self.pickler)) is not type else [*types]

    def _memoized(self, types: frozenset[Any]) -> Iterator[Any]:
        """Yield what C has memoized, of some types."""
        return self._without_others(compress(self._objs, map(types.__contains__, self._types)))

    def _long_ones(self) -> Iterator[Any]:
        """Yield the lists, dicts and sets of a batch or more, but for what C was given."""
        long = [x for x in self._containers if len(x) >= BATCHSIZE and x is not self.obj]
        return self._without_others(long) if long else iter(())

    def _without_others(self, objs: Iterable[Any]) -> Iterator[Any]:
        return (x for x in objs if id(x) not in self._others)

    @cached_property
    def _others(self) -> set[int]:
        """The ids of what C had memoized before, and of what its attributes are."""
        own = vars(self.grafter)
        return {*map(id, own.values()), id(own), *self.pickler.memo}


def _goes_on(piece: bytes, mark: int, begins: tuple[bytes, ...]) -> bool:
    """Tell whether what stands behind a MARK in a piece may be a key: it begins as one does, or in the next piece."""
    return len(piece) == mark + 1 or piece.startswith(begins, mark + 1)


def _are_in_texts(piece: bytes, text: bytes) -> bool:
    """Tell whether the first places at which EMPTY_DICT MEMOIZE is found look like the ends of short strs: "{}"."""
    place = -1
    for _ in range(_FEW_FOUND):
        place = piece.find(text, place + 1)
        if place < 0:
            break
        start = place
        while start >= 0 and (start == place or place - start != piece[start + 1] + 1):
            start = piece.rfind(SHORT_BINUNICODE, max(0, place - 256), start)
        if start < 0:
            return False
    return True


_FEW_FOUND: Final = 8
#: The type of names that are sought, by id, since the hash of a type may be anybody's.
_STRS: Final = frozenset((id(str),))
_texts_of: Final = lru_cache(maxsize=64)(texts_of)


def _has_key(dicts: Sequence[dict[Any, Any]], names: Iterable[Any], others: Container[int] = frozenset()) -> bool:
    """Tell whether one of some names is a key; nobody's `__hash__` is asked, and may not be by another way.

    Args:
        dicts: where.
        names: which.
        others: the ids of dicts that do not matter.
    """
    for name in names:
        found = dicts if type(name) is not str else [x for x in dicts if name in x]
        if found and any(id(x) not in others for x in found):
            return True
    return False


def _long_inside(obj: Any, memo: dict[int, Any], most: int) -> list[Any]:
    """Return lists, dicts and sets of a batch or more in a container: those that are met among the first `most` items.

    Args:
        obj: what C was given.
        memo: what was memoized before; that is not written again.
        most: how many items are looked at; one takes 60 ns.
    """
    long: list[Any] = []
    containers = [obj]
    known = {id(obj)}
    while containers:
        x = containers.pop()
        t = type(x)
        if not (t is list or t is dict or t is tuple) or len(x) > most:
            continue
        most -= len(x)
        for y in [*x.values()] if t is dict else x:
            t = type(y)
            if (t is list or t is dict or t is tuple or t is set) and id(y) not in known and id(y) not in memo:
                known.add(id(y))
                containers.append(y)
                if t is not tuple and len(y) >= BATCHSIZE:
                    long.append(y)
    return long


#: Where there is more than one MARK for so few, in so many that are looked at, bytes take so many times as long.
_FEW_FOR_A_MARK: Final = 200
_LOOKED_AT: Final = 2_000
_TIMES: Final = 3
#: Of so many bytes one item is looked at.
_PER_ITEM: Final = 256
#: Up to so many entries of the memo are looked at sooner than a frame is read.
_MOST_ENTRIES: Final = 5_000
#: A frame is read as soon as the atoms of so many bytes are looked at, by what `is_flat` takes a byte for.
_BYTES_PER_READ: Final = 150_000
#: So many frames may be read for what is in them by chance.
_MOST_READ: Final = 20
#: So many bytes are searched for a name in the time that it takes to look at an entry of the memo.
_PER_ENTRY: Final = 200
#: To mend takes three times as much room, or is done for smaller parts.
_MOST_MENDED: Final = 24 << 20


def _either(*types: type) -> frozenset[Any]:
    """Return a set that has some types and their ids in it."""
    return frozenset((*types, *map(id, types)))


_DICT: Final = _either(dict)
_STR: Final = _either(str)
