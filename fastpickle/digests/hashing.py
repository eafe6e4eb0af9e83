"""Picklers that make digests: texts are not memoized, and the items of a dict are sorted (`hooks.hash_rules`).

    save_pairs(prefix, obj): for each, in order
        a dict's key        is the prefix: packed once for all dicts with the same keys, a `Shape`
        text, atom          its opcode, inline, with no memo
        list, dict, tuple   its saver
        anything else       plan.other: by its reduce if that runs nobody's code; else through the class's own `save`

joblib's Hasher and datasets' Pickler override `memoize` and `_batch_setitems`, so that equal data has equal digests
whoever made it.  What is written is what those overrides make of it, on `Lib/pickle.py` of the running Python.  Dicts
are sorted here only where that runs nobody's code and cannot fail; the others are left to the library.

Not for: which pickler is such a one, and which version of it is known (`backends`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, repeat
from operator import is_, length_hint
from typing import Any, Final

from .._stdlib import ASKS_AGAIN, BATCHSIZE, batchsize_now, for_batch, note, note_value, stock_methods
from ..doubts import doubt, holds, outside, settled
from ..engine.levels import end_tuple, put
from ..engine.loop import commit_frame
from ..hooks import ATOM_IDS, ATOMS, PLAIN_IDS, Plan, Write, hash_rules, hash_savers
from ..interrupts import is_interrupt
from ..objects.arrays import is_dtype, is_fixed, is_of_numpy
from ..objects.known import is_heap_type
from ..objects.likely import ATOMS_BESIDE, is_for_stock, is_row_for_stock, is_somebodys
from ..objects.stdlibs import STDLIBS, is_array
from ..opcodes import (
    BININT1,
    MEMOIZED_DICT,
    MEMOIZED_LIST,
    SHORT_BINBYTES,
    SHORT_BINUNICODE,
    pack_binbytes,
    pack_binfloat,
    pack_binint,
    pack_binint2,
    pack_binunicode,
    pack_long,
)
from ..rules import HashRule
from .shapes import LONG_HEADERS, WIDEST, Shapes, are_sortable, of_one_type, sorted_pairs

# fmt: off
from pickle import (  # isort: skip
    APPEND, APPENDS, BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE, EMPTY_DICT, EMPTY_LIST, EMPTY_TUPLE,
    MARK, MEMOIZE, NEWFALSE, NEWTRUE, NONE, POP, POP_MARK, SETITEM, SETITEMS, TUPLE, TUPLE1, TUPLE2, TUPLE3,
)
# fmt: on

__all__ = [
    "FEWEST_OF_HASH",
    "MANY",
    "MANY_ITEMS",
    "append_batches",
    "is_hash_worth_a_plan",
    "is_replaced",
    "is_saved",
    "rule_of",
    "save_all",
    "save_dict",
    "set_batches",
]

#: A frame that has room for this much is not full before what follows a prefix.
_ROOM: Final = 1024
#: Shorter lists are saved one by one, though they be of one type.
_SHORTEST_RUN: Final = 12
_NO_PREFIX: Final = repeat(b"")

_stock_save_str = stock_methods["save_str"]
_stock_save_bytes = stock_methods["save_bytes"]


def is_hash_worth_a_plan(pickler: Any, obj: Any, t: type) -> bool:
    """Tell whether an object is saved sooner with a plan, which takes 6 us to begin, than hook by hook.

    It is if there are several items in it of which the first one is plain data, or perhaps an instance that is known.
    Without a plan each container in it is asked about again.
    """
    if t is not list and t is not dict and t is not tuple:
        return False
    n = len(obj)
    if n == 0 or (n < FEWEST_OF_HASH and (n < 2 or len(pickler.memo) < MANY)):
        return False
    item = next(iter(obj.values() if t is dict else obj), None)  # another thread may have emptied it
    first = type(item)
    rule = rule_of(pickler)
    array = None if rule is None else rule.array
    if n < FEWEST_OF_HASH:
        return id(first) in _CONTAINER_IDS and (array is None or not _is_much_of_numpy(item, first))
    if t is tuple and n < _LONG_TUPLE and id(first) in ATOM_IDS:
        return False
    is_other = None if rule is None else rule.is_other if array is None else partial(is_, array)
    if n < MANY_ITEMS and (
        _has_somebodys([*obj.values()] if t is dict else obj, is_other)
        or (array is not None and first is not array and _is_much_of_numpy(obj, t))
    ):
        return False
    if id(first) in _PLAIN_IDS:  # what is in rows of somebody's is asked by itself
        return (
            t is dict
            or id(first) not in _CONTAINER_IDS
            or not (_is_row_for_stock(pickler, obj[0], rule) and _is_row_for_stock(pickler, obj[-1], rule))
        )
    if is_heap_type(first):
        return not is_somebodys(first)  # as above
    if is_other is not None and is_of_numpy(first):
        return is_other(first) if array is None else _are_alike(obj, t, array) and _has_room(_FRAMES)
    if first not in STDLIBS:
        return False
    # Of numpy's there are arrays for which it is, but not where their buffers are for stock.
    return pickler.proto < 5 if is_array(first) else not is_of_numpy(first)


def _is_much_of_numpy(obj: Any, t: type) -> bool:
    """Tell whether much of what is in a container is numpy's, of which each goes through the hooks of such a library.

    The plan is looked at again behind each.
    """
    types = [*map(type, obj.values() if t is dict else obj)]  # by one call: another thread may change it
    return _BESIDE_NUMPYS * sum(id(x) not in PLAIN_IDS and is_fixed(x) and is_of_numpy(x) for x in types) > len(types)


#: So many values that are not make up for one that is.
_BESIDE_NUMPYS: Final = 4


def _are_alike(obj: Any, t: type, array: type) -> bool:
    """Tell whether the first, the middle and the last of some values are arrays of one dtype."""
    values = [*obj.values()] if t is dict else obj[:]  # another thread may change it
    if not values:
        return False
    some = values[0], values[len(values) // 2], values[-1]
    return all(type(x) is array and is_saved(x) for x in some) and some[0].dtype is some[1].dtype is some[2].dtype


def is_saved(array: Any) -> bool:
    """Tell whether `save_array` of a rule may save an array, behind another one: it has some bytes, and no objects."""
    return _FEWEST_BYTES <= array.nbytes <= _MOST_BYTES and not array.dtype.hasobject


#: Of fewer, they may be an object that others have, too; of more, a frame has no room for many.
_FEWEST_BYTES: Final = 2
_MOST_BYTES: Final = 4 << 10


def _has_room(n: int) -> bool:
    """Tell whether the stack has room for so many frames, 40 ns for each: the first array needs two more than stock."""
    try:
        if n:
            return _has_room(n - 1)
    except RecursionError:
        return False
    return True


#: More than stock needs for the first array.
_FRAMES: Final = 40


def rule_of(pickler: Any) -> HashRule | None:
    """Return the rule of a pickler that makes digests; None if its class has another `save` by now."""
    try:
        return hash_rules.get(type(pickler).save)
    except Exception as exc:  # it is one that raises, or has no hash
        if is_interrupt(exc):
            raise
        return None


def is_replaced(plan: Plan, t: type) -> bool:
    """Tell whether the library's `save` takes something else for instances of a type, before it asks the memo.

    So it does not find what somebody has put there.
    """
    return plan.is_choice is not None and (not is_heap_type(t) or is_dtype(t)) and bool(plan.is_choice(t))


def _has_somebodys(values: Sequence[Any], is_other: Callable[[type], bool] | None) -> bool:
    """Tell whether there is an object among some values for which the plan would be looked at again, as for a model."""
    first = type(next(iter(values), None))  # another thread may have emptied it
    if all(map(is_, map(type, values), repeat(first))):
        types = [first]
    elif PLAIN_IDS.issuperset(map(id, map(type, values))):
        return False
    else:
        types = [*{id(type(x)): type(x) for x in values}.values()]
    return any(id(t) not in PLAIN_IDS and not (is_other is not None and is_other(t)) and is_for_stock(t) for t in types)


def _is_row_for_stock(pickler: Any, row: Any, rule: HashRule | None) -> bool:
    """Tell whether much of what is in a list, tuple or dict is for stock: somebody's, or arrays that are buffers."""
    if is_row_for_stock(row, 0):  # what C has met in another dump may be an array
        return True
    t = type(row)
    if pickler.proto < 5 or (t is not dict and t is not list and t is not tuple) or len(row) > FEWEST_OF_HASH:
        return False
    arrays = [x for x in (row.values() if t is dict else row) if is_array(type(x))]
    if rule is not None and rule.array is not None and arrays and _has_room(_FRAMES):
        arrays = [x for x in arrays if not is_saved(x)]
    return len(arrays) * ATOMS_BESIDE >= len(row) > 0


#: So many items; or so many objects memoized before, and containers again.
FEWEST_OF_HASH: Final = 12
MANY: Final = 64
#: What is in fewer is looked at.
MANY_ITEMS: Final = 64
#: The 18 objects that a function's code is made of are saved sooner hook by hook.
_LONG_TUPLE: Final = 24
_CONTAINER_IDS: Final = frozenset(map(id, (list, dict, tuple, set)))
_PLAIN_IDS: Final = ATOM_IDS | _CONTAINER_IDS


def _loop(pickler: Any, plan: Plan, dump: Any) -> tuple[Any, Any, Any]:
    """Make the loop for one dump: what all of it uses is bound once, not for each container.

    Args:
        pickler: one whose plan in force is `plan`.
        plan: its shortcuts; it has a `hash_rule`.
        dump: what stays the same while that is in force.

    Returns:
        save_pairs(pairs, save_pairs); begin(), which is to be called before it by who is not in the loop; and
        save_dict(prefix, obj, save_pairs).  The first is told what it is itself: a function that refers to itself
        keeps all that it knows until the garbage collector comes.  It returns whether all is saved.  If not, the plan
        is no longer in force, or, where there are prefixes, keys may be in the memo, or the next frame may begin within
        a pair: then that one is not saved either, and is in `dump.unsaved`.
    """
    framer = pickler.framer
    memo = pickler.memo
    proto = plan.proto
    has_opcodes = proto >= 4
    headers = SHORT_BINUNICODE if has_opcodes else LONG_HEADERS
    target = framer._FRAME_SIZE_TARGET
    limit = target - _ROOM
    rule: Any = plan.hash_rule
    are_dicts_ours = plan.get(dict) is _save
    saves_lists = plan.get(list) is _save
    saves_tuples = plan.get(tuple) is _save
    shapes = Shapes(proto)
    frame: Any = None
    write: Any = framer.file_write
    tell: Any = None
    is_usual = False

    def begin() -> None:
        nonlocal frame, write, tell, is_usual
        is_usual = dump.is_usual
        frame = framer.current_frame
        if frame is None:
            write = framer.file_write
            tell = None
        else:
            write = frame.write
            tell = frame.tell

    def save_pairs(pairs: Any, save_pairs: Any) -> bool:
        nonlocal is_usual
        doubts = dump.doubts
        for prefix, x in pairs:
            if tell is not None and tell() >= limit:
                if prefix:
                    dump.unsaved = 1
                    return False
                if tell() >= target:  # stock calls framer.commit_frame() for each object
                    if commit_frame(pickler, framer) is not plan:
                        plan.save(pickler, x)
                        return False
                    begin()
            t = type(x)
            if t is str:
                if is_usual or id(x) not in memo:
                    if len(x) < target:
                        try:
                            encoded = x.encode()
                        except UnicodeEncodeError:
                            encoded = x.encode("utf-8", "surrogatepass")
                        n = len(encoded)
                        if n <= 255:
                            write(prefix + headers[n] + encoded)
                            continue
                        if n < target:
                            write(prefix + pack_binunicode(BINUNICODE, n) + encoded)
                            continue
                    if prefix:
                        write(prefix)
                    outside(pickler, _stock_save_str, x)
                else:
                    fetch(prefix, x)
                    continue
            elif t is int and (is_usual or id(x) not in memo):
                if 0 <= x <= 255:
                    write(prefix + BININT1[x])
                elif 0 <= x <= 0xFFFF:
                    write(prefix + pack_binint2(BININT2, x))
                elif -0x80000000 <= x <= 0x7FFFFFFF:
                    write(prefix + pack_binint(BININT, x))
                else:
                    write(prefix + pack_long(x))
                continue
            elif x is None and (is_usual or id(x) not in memo):
                write(prefix + NONE)
                continue
            elif t is float and (is_usual or id(x) not in memo):
                write(prefix + pack_binfloat(BINFLOAT, x))
                continue
            elif t is bool and (is_usual or id(x) not in memo):
                write(prefix + (NEWTRUE if x else NEWFALSE))
                continue
            elif id(x) in memo and (id(t) in _PLAIN_IDS or not is_replaced(plan, t)):
                fetch(prefix, x)
                continue
            elif t is list and saves_lists:
                n = len(x)
                i = len(memo)
                write(
                    prefix
                    + (MEMOIZED_LIST if has_opcodes else EMPTY_LIST + put(proto, i))
                    + (MARK if 1 < n < BATCHSIZE else b"")
                )
                memo[id(x)] = i, x
                if n > i and n >= _SHORTEST_RUN and not is_usual:
                    try:
                        is_usual = dump.is_usual_again()
                    except RecursionError:  # it is not needed
                        pass
                if 0 < n < BATCHSIZE:
                    batch = x[:]  # a snapshot, as stock takes one of each batch
                    if n >= _SHORTEST_RUN and is_usual:
                        try:
                            data = of_one_type(batch, headers)
                        except RecursionError:  # one by one they may need fewer frames
                            data = None
                        if data is not None and (tell is None or tell() + len(data) < limit):
                            write(data + APPENDS)
                            continue
                    unsaved = iter(batch)
                    try:
                        if not save_pairs(zip(_NO_PREFIX, unsaved), save_pairs):  # noqa: B905  # no end of prefixes
                            _save_rest(pickler, plan, unsaved, write)
                            framer.write(APPENDS if n > 1 else APPEND)
                            return False
                    except BaseException as exc:
                        note(exc, x, "item", n - length_hint(unsaved) - 1)
                        raise
                    write(APPENDS if n > 1 else APPEND)
                elif n:
                    append_batches(pickler, plan, iter(x), x)
                    if not _goes_on():
                        return False
                if prefix and dump.doubts != doubts:  # somebody may have put a key into the memo
                    return False
                continue
            elif t is dict and are_dicts_ours:
                if not save_dict(prefix, x, save_pairs):
                    return False
                if prefix and dump.doubts != doubts:
                    return False
                continue
            elif t is tuple and saves_tuples:
                n = len(x)
                if n == 0:
                    write(prefix + EMPTY_TUPLE)
                    continue
                if n > 3:
                    write(prefix + MARK)
                elif prefix:
                    write(prefix)
                unsaved = iter(x)
                try:
                    is_saved = save_pairs(zip(_NO_PREFIX, unsaved), save_pairs)  # noqa: B905  # no end of prefixes
                    if not is_saved:
                        _save_rest(pickler, plan, unsaved, write)
                except BaseException as exc:
                    note(exc, x, "item", n - length_hint(unsaved) - 1)
                    raise
                if not is_saved:
                    end_tuple(pickler, x, n <= 3, memo, pickler.write if n <= 3 else framer.write)
                    return False
                if id(x) in memo:  # it contains itself, and was saved while its items were: drop them and fetch it
                    write((POP * n if n <= 3 else POP_MARK) + pickler.get(memo[id(x)][0]))
                else:
                    i = len(memo)
                    write(_MEMOIZED_TUPLES[min(n, 4)] if has_opcodes else _TUPLES[min(n, 4)] + put(proto, i))
                    memo[id(x)] = i, x
                if prefix and dump.doubts != doubts:
                    return False
                continue
            else:
                if prefix:
                    write(prefix)
                saver = plan.get(t) if type(t) is type else None  # another metaclass may have a hash of its own
                if saver is not None:
                    saver(pickler, plan, x, write)
                else:
                    is_saved = rule.save_known(pickler, plan, x, t)
                    if is_saved is None:
                        plan.save(pickler, x)
                    elif not is_saved:
                        doubt(pickler)  # as outside() does, with a frame less
                        try:
                            plan.save(pickler, x)
                        finally:
                            doubt(pickler)
            # Other code may have run, and other frames begun; framer and memo are the same as long as the plan is.
            if not _goes_on():
                return False
            if prefix and dump.doubts != doubts:
                return False
        return True

    def fetch(prefix: bytes, x: Any) -> None:
        if prefix:
            write(prefix)
        write(pickler.get(memo[id(x)][0]))  # which somebody may have made anything

    def _goes_on() -> bool:
        if pickler._fastpickle_plan is not plan and settled(pickler) is not plan:
            return False
        begin()
        return True

    def save_dict(prefix: bytes, x: dict[Any, Any], save_pairs: Any) -> bool:
        nonlocal is_usual
        n = len(x)
        i = len(memo)
        opening = MEMOIZED_DICT if has_opcodes else EMPTY_DICT + put(proto, i)
        shape: Any = None
        if 0 < n <= WIDEST and (rule.is_unsorted is None or not rule.is_unsorted(pickler)):
            shape = shapes.last
            if shape is None or len(shape.keys) != n or not all(map(is_, x, shape.keys)):
                shape = shapes.find(x)
            if not is_usual and not memo.keys().isdisjoint(map(id, x)):
                shape = None
        write(prefix + opening + (MARK if n > 1 and shape is not None else b""))
        memo[id(x)] = i, x
        if n > i and n >= _SHORTEST_RUN and not is_usual:
            try:
                is_usual = dump.is_usual_again()
            except RecursionError:  # it is not needed
                pass
        if n == 0:
            return True
        if shape is None:
            _set_items(pickler, plan, x)
            return _goes_on()
        values = shape.values(x)
        unsaved = iter(values)
        dump.unsaved = 0
        try:
            try:
                is_saved = save_pairs(zip(shape.prefixes, unsaved), save_pairs)  # noqa: B905  # as many
            except BaseException as exc:
                note_value(exc, x, shape.sorted_keys[n - length_hint(unsaved) - 1])
                raise
            if is_saved:
                write(SETITEMS if n > 1 else SETITEM)
                return True
            left = length_hint(unsaved) + dump.unsaved
            dump.unsaved = 0
            objs = [*chain.from_iterable(zip(shape.sorted_keys[n - left :], values[n - left :], strict=True))]
            unsaved = iter(objs)
            try:
                write_end = save_all(pickler, plan, unsaved, framer.write)
            except BaseException as exc:
                _note_pair(exc, x, objs, unsaved)
                raise
            write_end(SETITEMS if n > 1 else SETITEM)
        except TypeError:
            if rule.retry is None:
                raise
            outside(pickler, rule.retry, x)
        return _goes_on()

    return save_pairs, begin, save_dict


def _begun(pickler: Any, plan: Plan) -> tuple[Any, Any]:
    """Return the save_pairs and save_dict of the dump's loop, which begins where the pickler is."""
    dump = pickler._fastpickle_dump
    if dump.loop is None:
        dump.loop = _loop(pickler, plan, dump)
    save_pairs, begin, save_dict = dump.loop
    begin()
    return save_pairs, save_dict


def _save_rest(pickler: Any, plan: Plan, objs: Iterator[Any], write: Write) -> Write:
    """Do what `save_all` does where `plan` is no longer in force: as stock, by the `save` and `write` from before."""
    for x in objs:
        plan.save(pickler, x)
    return write


def save_all(pickler: Any, plan: Plan, objs: Iterator[Any], write: Write) -> Write:
    """Save each of `objs`, as `for x in objs: pickler.save(x)` would; return what writes what comes next.

    That is the framer's `write` from before, as stock has bound it, where the plan is not in force.
    """
    if holds(pickler, plan):
        framer = pickler.framer
        save_pairs, _ = _begun(pickler, plan)
        if save_pairs(zip(_NO_PREFIX, objs), save_pairs):  # noqa: B905  # the prefixes have no end
            frame = framer.current_frame
            return framer.file_write if frame is None else frame.write  # type: ignore[no-any-return]  # no types there
        write = framer.write
    return _save_rest(pickler, plan, objs, write)


def _save(pickler: Any, plan: Plan, obj: Any, write: Write) -> None:
    """Save one object, in the loop, or, with a frame less, a dict."""
    save_pairs, save_dict = _begun(pickler, plan)
    if type(obj) is dict:
        save_dict(b"", obj, save_pairs)
    else:
        save_pairs(((b"", obj),), save_pairs)


def save_dict(pickler: Any, plan: Plan, obj: Any, write: Write) -> None:
    """Save a dict, whatever the plan says of dicts."""
    save_pairs, save_dict = _begun(pickler, plan)
    save_dict(b"", obj, save_pairs)


_TUPLES: Final = (b"", TUPLE1, TUPLE2, TUPLE3, TUPLE)
_MEMOIZED_TUPLES: Final = tuple(opcode + MEMOIZE for opcode in _TUPLES)

for _type in ATOMS:
    hash_savers[_type] = 2, _save
for _type in (list, tuple, dict):
    hash_savers[_type] = 2, _save


def _save_bytes(pickler: Any, plan: Plan, obj: bytes, write: Write) -> None:
    n = len(obj)
    if plan.proto < 3 or n >= pickler.framer._FRAME_SIZE_TARGET:
        outside(pickler, _stock_save_bytes, obj)
        return
    data = (SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)) + obj
    if plan.hash_rule.memoizes_bytes:  # type: ignore[union-attr]  # there is one
        memo = pickler.memo
        i = len(memo)
        write(data + put(plan.proto, i))
        memo[id(obj)] = i, obj
    else:
        write(data)


def _save_by_entry(pickler: Any, plan: Plan, obj: Any, write: Write) -> None:
    outside(pickler, pickler.dispatch.get(type(obj)), obj)


hash_savers[bytes] = 2, _save_bytes
for _type in (bytearray, set):
    hash_savers[_type] = 2, _save_by_entry


def append_batches(pickler: Any, plan: Plan, items: Iterator[Any], obj: Any) -> None:
    """Append the items of `obj` in batches of 1000, looking again for more after each full one."""
    start = 0
    size = BATCHSIZE
    write = pickler.framer.write
    while batch := list(islice(items, size)):
        n = len(batch)
        if n > 1:
            write(MARK)
        unsaved = iter(batch)
        try:
            if not (n >= _SHORTEST_RUN and _is_run_written(pickler, plan, batch)):
                write = save_all(pickler, plan, unsaved, write)
        except BaseException as exc:
            note(exc, obj, "item", start + n - length_hint(unsaved) - 1)
            raise
        write(APPENDS if n > 1 else APPEND)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if n < size:
            if ASKS_AGAIN:
                next(items, None)
            return
        start += n


def _is_run_written(pickler: Any, plan: Plan, batch: list[Any]) -> bool:
    """Write a batch, if all of it is of one type and goes into the frame; tell whether that is so."""
    if not holds(pickler, plan) or not pickler._fastpickle_dump.is_usual:
        return False
    try:
        data = of_one_type(batch, SHORT_BINUNICODE if plan.proto >= 4 else LONG_HEADERS)
    except RecursionError:  # as in the loop
        return False
    framer = pickler.framer
    frame = framer.current_frame
    if data is None or (frame is not None and frame.tell() + len(data) >= framer._FRAME_SIZE_TARGET - _ROOM):
        return False
    framer.write(data)
    return True


def _set_items(pickler: Any, plan: Plan, obj: dict[Any, Any]) -> None:
    """Save the items of a dict that has no shape."""
    rule: Any = plan.hash_rule
    if (rule.is_unsorted is not None and rule.is_unsorted(pickler)) or (len(obj) > 1 and not are_sortable(obj)):
        _set_items_outside(pickler, obj)
        return
    pairs = sorted_pairs(obj.items())
    if pairs is None:
        _set_items_outside(pickler, obj)
        return
    try:
        set_batches(pickler, plan, pairs, obj)
    except TypeError:
        if rule.retry is None:
            raise
        outside(pickler, rule.retry, obj)


def _set_items_outside(pickler: Any, obj: dict[Any, Any]) -> None:
    """Leave it to the library to sort the items of a dict, and to save them."""
    doubt(pickler)
    try:
        pickler._batch_setitems(*for_batch(obj.items(), obj))
    finally:
        doubt(pickler)


def set_batches(pickler: Any, plan: Plan, pairs: list[tuple[Any, Any]], obj: Any) -> None:
    """Set the items of a dict in batches of 1000."""
    items = iter(pairs)
    size = BATCHSIZE
    write = pickler.framer.write
    while batch := list(islice(items, size)):
        n = len(batch)
        if n > 1:
            write(MARK)
        objs = [*chain.from_iterable(batch)]
        unsaved = iter(objs)
        try:
            write = save_all(pickler, plan, unsaved, write)
        except BaseException as exc:
            _note_pair(exc, obj, objs, unsaved)
            raise
        write(SETITEMS if n > 1 else SETITEM)
        if pickler._fastpickle_plan is not plan:
            size = batchsize_now(pickler, size)
        if n < size:
            return


def _note_pair(exc: BaseException, obj: Any, batch: list[Any], unsaved: Iterator[Any]) -> None:
    """Note with an exception which value of a dict was being saved, of a batch of keys and values in turn."""
    i = len(batch) - length_hint(unsaved) - 1
    if i % 2:  # stock says nothing of keys
        note_value(exc, obj, batch[i - 1])
