"""Parts: which items of a container are written in runs, and which are left to the loop.

    parts(batch) --+-- as many rows of one shape as go into the frame --> runs.encode(), written here
                   +-- the first row, those at the end of a frame, what has no shape --> yielded, for loop.save_all()

A run does not reach beyond its frame: stock begins another one before the first object for which there is no room.

Not for: what is of one shape, nor how it is written (`runs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import length_hint
from types import BuiltinMethodType
from typing import Any, Final, TypeAlias

from .._stdlib import is_usual_file
from ..doubts import holds
from ..hooks import ATOM_IDS, CONTAINER_IDS, NUMBER_IDS, PLAIN_IDS, Plan
from ..objects.known import METACLASS_IDS, reducer
from ..objects.likely import is_somebodys
from ..runs import encode
from .columns import forget

__all__ = ["SHORTEST_OF_ATOMS", "SHORTEST_RUN", "parts"]

#: Fewer items are saved one by one.
SHORTEST_RUN: Final = 12
#: If they are atoms, fewer than these: what it takes to begin a run is gained only then.
SHORTEST_OF_ATOMS: Final = 48
#: What is left of a batch, or of a frame, is a run if it has so many rows.
_FEWEST_ROWS: Final = 8
#: From so many bytes on it takes longer to copy a text into rows than to write it.
_LONG_TEXT: Final = 256
#: Where one row breaks the shape of many, others are tried in smaller runs; shorter ones are not worth another try.
_SHORT_RUN: Final = 64
#: From so many rows on they are written kind by kind, if there are not more kinds among so many that are looked at.
_FEWEST_OF_KINDS: Final = 400
_FEW_KINDS: Final = 4
_LOOKED_AT: Final = 64
#: So many rows at the most, after half as many, ... are saved one by one to teach the memo what is new to it.  There
#: would be no end where that comes again and again.
_MOST_LESSONS: Final = 16
#: Texts are joined in runs of so many bytes: with more, a frame and what is copied into it together often took so
#: much memory that malloc got it from the system, and gave it back, each time.
_MOST_OF_TEXTS: Final = 32 * 1024
#: A longer row has long texts, or many items to be written in runs of their own.
_LONG_ROW: Final = 2048

_Part: TypeAlias = "tuple[Iterator[Any], int]"


def parts(pickler: Any, plan: Plan, batch: Any, unsaved: Any, width: int = 1, is_rest: bool = False) -> Iterable[_Part]:
    """Write items of a container that are of one shape, as runs, and yield iterators of those in between.

    What is yielded, each with its length, is for `save_all`.  It is not called from here, since it would be a Python
    frame deeper then.

    Args:
        pickler: the pickler.
        plan: the plan with which the container was begun; once it holds no more, all the rest is yielded.
        batch: a list or tuple of items, or of keys and values in turn.
        unsaved: its iterator, which is left just past the last item that was tried.
        width: 2 for keys and values in turn.
        is_rest: whether it is not the first batch of the container.
    """
    n = len(batch)
    if n < SHORTEST_RUN * width:
        return ((unsaved, n),)
    key = id(type(batch[width - 1]))
    file_write = pickler.framer.file_write
    if (
        (n < SHORTEST_OF_ATOMS * width and key in ATOM_IDS)
        or plan.proto < (2 if key in NUMBER_IDS else 4)
        or all(map(is_somebodys, map(type, batch[width - 1 : 3 * width : width])))  # the loop saves those (`rows`)
        or _are_mixed(batch[width - 1 : _LOOKED_AT * width : width], n // width)  # the loop is sooner, or as soon
        or not holds(pickler, plan)
        # A file in C that hands what it gets to somebody's code: nothing doubts the plan there, as where that is plain
        or (type(file_write) is BuiltinMethodType and not is_usual_file(file_write.__self__))
    ):
        return ((unsaved, n),)
    return _parts(pickler, plan, batch, unsaved, width, is_rest)


def _parts(pickler: Any, plan: Plan, batch: Any, unsaved: Any, width: int, is_rest: bool) -> Iterator[_Part]:
    n = len(batch)
    done = 0
    dump = pickler._fastpickle_dump
    # For how many rows there is room the first one of the container tells, which may be short; later the average.
    per_row = dump.row_size if is_rest and dump.row_size <= _LONG_ROW else 1
    row_size = 1
    is_cut = False  # whether `encode` is expected to take off what does not fit in
    if type(batch) is tuple:
        batch = [*batch]  # whose slices are lists, too
    first = batch[width - 1]
    t = type(first)
    if t is str or t is bytes:  # `encode` should not be tried on more than goes into a frame
        sizes = [len(x) for x in batch[width - 1 : 16 * width : width] if type(x) is t]
        if width == 1:
            per_row = sum(sizes) // len(sizes) + 3
            is_cut = len(sizes) == min(n, 16)
        elif max(sizes) > _LONG_TEXT:
            yield unsaved, n
            return
        else:
            per_row = max(sizes) + 3
    memo = pickler.memo
    framer = pickler.framer
    frame = framer.current_frame
    write = framer.file_write if frame is None else frame.write
    target = framer._FRAME_SIZE_TARGET
    is_usual = dump.is_usual
    reducers = dump.reducers

    def reducer_of(t: type) -> Any:
        if id(type(t)) not in METACLASS_IDS or plan.proto < 4 or len(plan.containers) < 5:
            return None
        if t not in reducers:
            reducers[t] = reducer(pickler, plan, t)
        return reducers[t]

    most = n
    refused = overshot = False
    lessons = 1  # how many rows are saved one by one, the next time that the memo is to be taught keys or classes
    # How many are to be saved one by one: a container teaches the memo its keys, and how long it is.
    rows = 0 if id(t) in ATOM_IDS else 1
    while done < n:
        if rows:
            begun = frame
            before = 0 if frame is None else frame.tell()
            yield islice(unsaved, rows * width), rows * width
            is_first = not done
            done = n - length_hint(unsaved)
            if not holds(pickler, plan):
                break
            is_usual = dump.is_usual
            frame = framer.current_frame
            if frame is None:
                write = framer.file_write
            else:
                write = frame.write
                if frame is begun:
                    per_row = per_row if is_cut else max(per_row, (frame.tell() - before) // rows)
                elif is_first:  # nothing is known yet: one more
                    continue
                elif done == 2 * width:
                    break
        room = target if frame is None else target - frame.tell()
        left = (n - done) // width
        size = (
            min(left, most, (min(room, _MOST_OF_TEXTS) if is_cut else room) // per_row) if per_row <= _LONG_ROW else 0
        )
        if size < _FEWEST_ROWS:
            if min(left, most) < _FEWEST_ROWS or per_row > _LONG_ROW:
                break
            rows = max(1, size)  # up to the end of the frame
            continue
        rows = 0
        end = done + size * width
        before = len(memo)
        columns = [batch[done + i : end : width] for i in range(width)]
        data = encode(
            columns,
            memo,
            plan.proto,
            plan.containers,
            reducer_of,
            is_usual,
            room,
            plan.rewrites,
            lessons <= _MOST_LESSONS and size >= _SHORT_RUN,
        )
        if data == b"":
            rows = lessons
            lessons *= 2
        elif data is None:
            if size >= _SHORT_RUN:
                most = size // 8
                rows = 1  # which may teach the memo more keys
            elif refused:
                break
            else:
                refused = True
                rows = size
        if not data:
            continue
        if len(columns[0]) < size:
            size = len(columns[0])
            end = done + size * width
        # So that the next ones fit in, too: most often, or on average.
        row_size = per_row = (len(data) if is_cut else len(data) * 9 // 8) // size + 1
        if len(data) > room:
            forget(memo, before)
            is_cut = False
            most = size // 2 if overshot else size - 1
            overshot = True
            if most < _FEWEST_ROWS:
                rows = size  # up to the end of the frame, or beyond
                most = n
        else:
            write(data)
            unsaved.__setstate__(end)
            done = end
            most *= 2
            refused = overshot = False
    if done < n:
        yield unsaved, n - done
    dump.row_size = row_size  # now, since those in between may have had rows of their own


def _are_mixed(rows: list[Any], n: int) -> bool:
    """Tell whether rows are of more kinds than are written kind by kind (`runs`), and what is in them is plain.

    Args:
        rows: the first ones, up to `_LOOKED_AT`.
        n: how many there are.
    """
    some = rows[:16]
    if not CONTAINER_IDS.issuperset(map(id, map(type, some))):
        return False
    names = [(type(row) is dict and len(row)) or id(type(row)) for row in some]
    if max(map(names.count, names)) >= len(some) - 1:  # at most one is odd
        return False
    if n >= _FEWEST_OF_KINDS:
        kinds = {(*map(id, row),) if type(row) is dict else id(type(row)) for row in rows}
        if len(kinds) <= _FEW_KINDS:
            return False
    for row in some:
        values = [*row.values()] if type(row) is dict else row  # a copy: another thread may change it
        if not PLAIN_IDS.issuperset(map(id, map(type, values))):
            return False
    return True
