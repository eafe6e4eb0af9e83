"""A few objects at once that are not all plain data: all of a small dump, as `small` does.

    save_few(opened)    atoms, short containers, classes and functions by name ------> pieces
                        an instance that has nothing but a __dict__ -----------------> pieces
                        one that is reduced by C ------------------------------------> pieces
                        one whose reduce may be anybody's comes next ----------------> hook by hook from there on
                        much --------------------------------------------------------> C, or the loop from there on

Nothing is made that a dump of many objects needs, and of a class that nobody has given a reduce all is known
(`instances`), so that only its first instance is asked for one.  Where code of others has to be called there is nothing
to be gained: to look at the pickler after it takes as long as to save what it gives.

Not for: plain data (`small` begins with that, and takes half as long), nor for what a hook forbids (`hooks`).
"""

from __future__ import annotations

import copyreg
from collections import deque
from itertools import chain
from operator import length_hint
from types import BuiltinMethodType, FunctionType
from typing import Any, Final

from .._stdlib import ASKS_AGAIN
from ..accelerator.lazymemo import BEHIND_FEW
from ..accelerator.offers import FEWEST
from ..accelerator.splicing import restore
from ..doubts import Dump
from ..engine.brief import asks_anybody
from ..engine.columns import forget
from ..engine.encoders import Memo, NotBrief, Parts, encode_all, encode_name
from ..engine.levels import Level, note_levels, save_levels
from ..engine.loop import save_all
from ..engine.reduce import LIST_ITERATORS, WRITTEN_IN_C, are_pairs_nobodys, newobj, reduced, usual_form
from ..hooks import ASIDE, ATOM_IDS, FEW, STOCK_RULE, Plan
from ..interrupts import is_interrupt
from ..objects.asked import HAVE_A_NAME, HIDES_WHAT_IS_READ, hides_no_reduce
from ..objects.instances import has_known_reduce, has_only_a_dict
from ..objects.known import METACLASS_IDS, has_reduce_entry
from ..objects.last import last
from ..objects.likely import is_for_stock
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
from ..rules import GraftRule

# fmt: off
from pickle import (  # isort: skip
    ADDITEMS, APPEND, APPENDS, BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE, BUILD, EMPTY_SET, EMPTY_TUPLE,
    FROZENSET, LONG_BINGET, MARK, MEMOIZE, NEWFALSE, NEWOBJ, NEWTRUE, NONE, PROTO, SETITEM, SETITEMS, STOP,
)
# fmt: on

__all__ = ["begin_frame", "go_on", "save_few", "save_rest", "undo_few"]

_slotnames: Any = copyreg._slotnames  # type: ignore[attr-defined]  # typeshed does not know it

#: A container of more items is left to the loop, or to C.
_MOST_ITEMS: Final = FEWEST - 1
#: Up to so many pieces a container or an instance is begun; where C may be asked, up to so many: it takes no longer
#: for all of that.  A text is three pieces.
_MOST_PIECES: Final = 1000
_FEW_PIECES: Final = 110
#: So many bytes may be in texts and bytes, in a name, and in the texts of a set, and so many bits may an int have: the
#: frame has room for all then.
_ROOM: Final = 24 << 10
_LONGEST_NAME: Final = 512
_LONGEST_IN_SET: Final = 63
_MOST_BITS: Final = 64
_MEMOIZED_SET: Final = EMPTY_SET + MEMOIZE
_MEMOIZED_FROZENSET: Final = FROZENSET + MEMOIZE
_NEW: Final = EMPTY_TUPLE + NEWOBJ + MEMOIZE
#: What is known of a type: its instances have nothing but a `__dict__`; their reduce is written in C; or it is known to
#: run nobody's code; or it may, or there is a dispatch entry, or a library's `save` does something of its own.
_BARE: Final = 1
_IN_C: Final = 2
_KNOWN: Final = 3
_NOT_FOR_US: Final = 4


def save_few(
    pickler: Any,
    plan: Plan,
    rule: GraftRule,
    lengths: tuple[int, ...] | None,
    obj: Any,
    pieces: list[bytes],
    opened: list[Level],
    may_graft: bool,
    may_be_much: bool,
) -> bool | None:
    """Write a whole dump, or encode it.

    Args:
        pickler: one that has written nothing of this dump, and may do so by `small`.
        plan: the plan in force.
        rule: its `small_rule`.
        lengths: what the rule gives for the pickler; None if there is nothing of the kind.
        obj: what is dumped.
        pieces: what is encoded of it; if all could be, with the rest and STOP then; empty if it is written.
        opened: what is open, the innermost first; the outermost is what the loop was called for.
        may_graft: whether the C pickler may be asked for all, if there is much.
        may_be_much: whether there may be much in it, so that a plan is worth its while where anybody's code has to run.

    Returns:
        Whether it is written, or encoded; None if it should be saved hook by hook, with `FEW` in force.  If not,
        nothing is, but what is memoized has to be forgotten.

    Raises:
        What `save` raises, and then the pickler is as stock leaves it.
    """
    memo = pickler.__dict__["memo"]
    if lengths is not None and any(
        type(level[0]) is dict and _is_for_rule(rule, lengths, level[0]) for level in opened
    ):
        return False
    opened.reverse()
    levels = opened
    try:
        found = _encode(
            pickler,
            plan,
            rule,
            lengths,
            memo,
            pieces,
            levels,
            _FEW_PIECES if may_graft and rule is STOCK_RULE else _MOST_PIECES,
        )
    except BaseException as exc:  # another thread has changed something; the stack is full
        memo.clear()
        if type(exc) is not RecursionError and is_interrupt(exc):
            raise
        return False
    if found == _ALL:
        pieces.append(STOP)
        return True
    if found == _ANYBODYS_NEXT and may_be_much:
        found = _MUCH
    data = b"".join(pieces)
    if (
        not data
        or len(data) >= pickler.framer._FRAME_SIZE_TARGET
        or (found == _MUCH and (may_graft or rule is not STOCK_RULE))
    ):
        return None if found == _ANYBODYS_NEXT and not data else False
    begin_frame(pickler, plan, data)
    pieces.clear()
    save_rest(pickler, plan, obj, levels, is_much=found == _MUCH)
    return True


def begin_frame(pickler: Any, plan: Plan, data: bytes) -> None:
    """Write what is encoded of a dump of which nothing has been written, with room for more in the frame."""
    try:
        pickler.write(PROTO + bytes((plan.proto,)))
    except BaseException:  # so far nothing would be memoized
        pickler.memo.clear()
        raise
    pickler.framer.start_framing()
    pickler.write(data)


def save_rest(pickler: Any, plan: Plan, obj: Any, levels: list[Level], *, is_much: bool) -> None:
    """Save what is left of a dump of which the beginning is written, and end it.

    Args:
        pickler, plan, obj, levels: as for `go_on`.
        is_much: whether there may be much, so that it is for the loop.

    Raises:
        What `save` raises, and then the pickler is as stock leaves it.
    """
    if is_much:
        go_on(pickler, plan, obj, levels, BEHIND_FEW)
    else:
        pickler.__dict__["_fastpickle_plan"] = FEW if plan.small_rule is STOCK_RULE else ASIDE
        try:
            save_levels(pickler, plan, levels, pickler.write, pickler.memo)
            last.went_by_hooks = id(pickler)
        except BaseException as exc:
            note_levels(exc, reversed(levels))
            raise
        finally:
            undo_few(pickler)
    pickler.write(STOP)
    pickler.framer.end_framing()


def go_on(pickler: Any, plan: Plan, obj: Any, levels: list[Level], way: str | None = None) -> None:
    """Save what is left of a dump by the loop, where nobody's code has run so far.

    Args:
        pickler, plan, obj: as said.
        levels: what is open, the innermost last; the first is what the loop is called for.
        way: as in `Dump`.
    """
    state = pickler.__dict__
    state["_fastpickle_plan"] = plan
    try:
        state["_fastpickle_dump"] = Dump(pickler, obj, is_usual=True, way=way)
        n = sum([length_hint(level[2]) + 1 for level in levels])
        save_all(pickler, plan, levels[0][2], n, pickler.write, levels[1:])
    finally:
        undo_few(pickler)


#: What `_encode` says: all is encoded; there is much; or something whose reduce may be anybody's comes next.
_ALL: Final = 0
_MUCH: Final = 1
_ANYBODYS_NEXT: Final = 2


def _encode(
    pickler: Any,
    plan: Plan,
    rule: GraftRule,
    lengths: tuple[int, ...] | None,
    memo: Memo,
    pieces: list[bytes],
    levels: list[Level],
    most: int,
) -> int:
    """Append the opcodes of all that is open to `pieces`, and what is memoized to the memo.  Nobody's code runs.

    Args:
        pickler, plan, rule, memo, pieces: as said.
        lengths: those of dicts that the rule is about; None if there is nothing of the kind.
        levels: what is open, the innermost last; what still is when it gives up.
        most: with more pieces nothing is begun any more.

    Returns:
        Whether that is all, or why it is not.
    """
    parts = Parts(pickler, plan)
    room = _ROOM
    kinds: dict[type, int] = {}
    owner, ending, items = levels.pop()
    batch: Any
    while True:
        for x in items:
            key = id(x)
            if key in memo:
                pieces.append(_get(memo[key][0]))
                continue
            t = type(x)
            if t is str:
                try:
                    encoded = x.encode()
                except UnicodeEncodeError:
                    encoded = x.encode("utf-8", "surrogatepass")
                n = len(encoded)
                room -= n
                if room < 0:
                    return _put_back(levels, owner, ending, items, _MUCH)
                pieces.append(SHORT_BINUNICODE[n] if n <= 255 else pack_binunicode(BINUNICODE, n))
                pieces.append(encoded)
                pieces.append(MEMOIZE)
                memo[key] = len(memo), x
            elif t is int:
                if 0 <= x <= 255:
                    pieces.append(BININT1[x])
                elif 0 <= x <= 0xFFFF:
                    pieces.append(pack_binint2(BININT2, x))
                elif -0x80000000 <= x <= 0x7FFFFFFF:
                    pieces.append(pack_binint(BININT, x))
                elif x.bit_length() <= _MOST_BITS:
                    pieces.append(pack_long(x))
                else:
                    return _put_back(levels, owner, ending, items, _MUCH)
            elif x is None:
                pieces.append(NONE)
            elif t is float:
                pieces.append(pack_binfloat(BINFLOAT, x))
            elif t is bool:
                pieces.append(NEWTRUE if x else NEWFALSE)
            elif t is bytes:
                n = len(x)
                room -= n
                if room < 0:
                    return _put_back(levels, owner, ending, items, _MUCH)
                pieces.append(SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n))
                pieces.append(x)
                pieces.append(MEMOIZE)
                memo[key] = len(memo), x
            elif len(pieces) > most or room < 0:
                return _put_back(levels, owner, ending, items, _MUCH)
            elif t is dict:
                if len(x) > _MOST_ITEMS or (lengths is not None and _is_for_rule(rule, lengths, x)):
                    return _put_back(levels, owner, ending, items, _MUCH)
                batch = [*chain.from_iterable(x.items())]  # a snapshot, as stock takes one of each batch
                n = len(batch)
                memo[key] = len(memo), x
                pieces.append(MARKED_DICT if n > 2 else MEMOIZED_DICT)
                if n:
                    levels.append((owner, ending, items))
                    owner = x
                    ending = SETITEMS if n > 2 else SETITEM
                    items = iter(batch)
                    break
            elif t is list:
                batch = x[:]
                n = len(batch)
                if n > _MOST_ITEMS:
                    return _put_back(levels, owner, ending, items, _MUCH)
                memo[key] = len(memo), x
                pieces.append(MARKED_LIST if n > 1 else MEMOIZED_LIST)
                if n:
                    levels.append((owner, ending, items))
                    owner = x
                    ending = APPENDS if n > 1 else APPEND
                    items = iter(batch)
                    break
            elif t is tuple:
                n = len(x)
                if n > _MOST_ITEMS:
                    return _put_back(levels, owner, ending, items, _MUCH)
                if not n:
                    pieces.append(EMPTY_TUPLE)
                    continue
                if n > 3:
                    pieces.append(MARK)
                levels.append((owner, ending, items))
                owner = x
                ending = None
                items = iter(x)
                break
            elif id(t) in HAVE_A_NAME:
                n = _encode_name(parts, x, memo, pieces)
                if not n:
                    return _put_back(levels, owner, ending, items, _MUCH)
                room -= n
            elif t is set or t is frozenset:
                n = len(pieces)
                if not _encode_set(plan, x, t, memo, pieces):
                    return _put_back(levels, owner, ending, items, _MUCH)
                room -= sum(map(len, pieces[n:]))
            else:
                kind = kinds.get(t) if id(type(t)) in METACLASS_IDS else _NOT_FOR_US
                if kind is None:
                    kind = kinds[t] = _kind_of(pickler, plan, t)
                if kind == _BARE:
                    state = x.__dict__
                    if type(state) is not dict or not state or not hides_no_reduce(state):
                        return _put_back(levels, owner, ending, items, _MUCH)
                    # Its reduce gives copyreg.__newobj__, (t,), state; the first one leaves a note in the class.
                    if id(t) in memo:
                        pieces.append(_get(memo[id(t)][0]))
                    elif x.__reduce_ex__(plan.proto)[0] is not newobj:
                        return _put_back(levels, owner, ending, items, _MUCH)
                    else:
                        n = _encode_name(parts, t, memo, pieces)
                        if not n:
                            return _put_back(levels, owner, ending, items, _MUCH)
                        room -= n
                    pieces.append(_NEW)
                    memo[key] = len(memo), x
                    levels.append((owner, ending, items))
                    owner = x
                    ending = BUILD
                    items = iter((state,))
                    break
                reduce = None
                if kind == _IN_C or (
                    kind == _KNOWN and type(state := x.__dict__) is dict and HIDES_WHAT_IS_READ.isdisjoint(state)
                ):
                    reduce = x.__reduce_ex__
                if type(reduce) is not BuiltinMethodType or reduce.__self__ is not x:
                    # C is left what it may write
                    return _put_back(levels, owner, ending, items, _ANYBODYS_NEXT if is_for_stock(t) else _MUCH)
                rv = reduce(plan.proto)
                form = None
                if type(rv) is tuple and 2 <= len(rv) <= 6 and not asks_anybody(rv[0], t):
                    form = usual_form(plan, x, rv, may_fail=False)
                if form is None:
                    return _put_back(levels, owner, ending, items, _MUCH)
                levels.append((owner, ending, items))
                owner = x
                ending = reduced(pickler, plan, x, rv, form)
                items = iter(form[0])
                break
        else:  # all are saved
            if owner is None:
                return _ALL
            if isinstance(ending, bytes):
                pieces.append(ending)
            elif ending is None:
                n = len(owner)
                if id(owner) in memo:  # it contains itself
                    levels.append((owner, ending, items))
                    return _MUCH
                pieces.append(MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE)
                memo[id(owner)] = len(memo), owner
            else:  # the parts of a reduce
                _, opcode, _, _, rest, batch, state_ending = ending
                finish: Any = rest  # a `partial`, which tells what it is of
                if id(owner) in memo or (finish is not None and not _are_few(owner, *finish.args[3:])):
                    levels.append((owner, ending, items))
                    return _MUCH
                pieces.append(opcode)
                pieces.append(MEMOIZE)
                memo[id(owner)] = len(memo), owner
                if finish is not None:
                    *_, listitems, dictitems = finish.args
                    levels.append((owner, state_ending, iter(batch)))  # also if it is empty: for the notes
                    if listitems is not None:
                        batch = [*listitems]
                        ending = APPENDS if len(batch) > 1 else APPEND
                    else:
                        batch = [*chain.from_iterable(dictitems)]
                        ending = SETITEMS if len(batch) > 2 else SETITEM
                    if ending in (APPENDS, SETITEMS):
                        pieces.append(MARK)
                else:
                    ending = state_ending
                if batch:
                    items = iter(batch)
                    continue
            owner, ending, items = levels.pop()


def _put_back(levels: list[Level], owner: Any, ending: Any, items: Any, why: int) -> int:
    """Leave an item of the innermost level, and what comes after it."""
    items.__setstate__(items.__reduce__()[2] - 1)
    levels.append((owner, ending, items))
    return why


def _get(i: int) -> bytes:
    """Return the opcode that fetches number `i` of the memo."""
    return BINGET[i] if i <= 255 else pack_long_binget(LONG_BINGET, i)


def _is_for_rule(rule: GraftRule, lengths: tuple[int, ...], obj: dict[Any, Any]) -> bool:
    """Tell whether a dict may be one that a library's rule is about; no key is asked whether it is equal."""
    return len(obj) in lengths or any(type(key) is str and key in rule.names for key in [*obj])


def _encode_name(parts: Parts, obj: Any, memo: Memo, pieces: list[bytes]) -> int:
    """Append a class or function that is saved by its name, and return how many bytes that is; 0 if it is not."""
    before = len(memo)
    n = len(pieces)
    try:
        encode_name(parts, obj, memo, before, pieces)
        size = sum(map(len, pieces[n:]))
        if size <= _LONGEST_NAME:
            return size
    except (NotBrief, UnicodeEncodeError):
        pass
    forget(memo, before)
    del pieces[n:]
    return 0


def _encode_set(plan: Plan, obj: Any, t: type, memo: Memo, pieces: list[bytes]) -> bool:
    """Append a set or frozenset of a few short atoms; tell whether it is one."""
    if len(obj) > _MOST_ITEMS:
        return False
    for x in obj:
        t_of_x = type(x)
        if t_of_x is str or t_of_x is bytes:
            if len(x) > _LONGEST_IN_SET or (t_of_x is str and not x.isascii()):
                return False
        elif id(t_of_x) not in ATOM_IDS or (t_of_x is int and x.bit_length() > _MOST_BITS):
            return False
    if t is set:
        memo[id(obj)] = len(memo), obj
        pieces.append(_MEMOIZED_SET)
        if obj:
            pieces.append(MARK)
            encode_all(plan, obj, memo, len(memo), pieces)
            pieces.append(ADDITEMS)
    else:
        pieces.append(MARK)
        encode_all(plan, obj, memo, len(memo), pieces)
        pieces.append(_MEMOIZED_FROZENSET)
        memo[id(obj)] = len(memo), obj
    return True


def _kind_of(pickler: Any, plan: Plan, t: type) -> int:
    """Tell what is to be done with instances of a type, the type of which is one of `METACLASSES`."""
    if (
        issubclass(t, type)
        or dict.get(pickler.dispatch, t) is not None  # dill's table has more for metaclasses only
        or (plan.is_choice is not None and plan.is_choice(t))
        or has_reduce_entry(pickler, t)
    ):
        return _NOT_FOR_US
    if has_only_a_dict(t):
        return _BARE if copyreg._slotnames is _slotnames else _NOT_FOR_US  # type: ignore[attr-defined]  # as above
    if t in WRITTEN_IN_C or t is range:
        return _IN_C
    return _KNOWN if has_known_reduce(t) else _NOT_FOR_US


def undo_few(pickler: Any) -> None:
    """Undo what has been begun where few objects were saved."""
    state = pickler.__dict__
    state.pop("_fastpickle_plan", None)
    if state.pop("_fastpickle_dump", None) is not None and type(pickler.framer.file_write) is FunctionType:
        restore(pickler.framer)


_DequeIterator: Final[type] = type(iter(deque()))


def _are_few(obj: Any, listitems: Any, dictitems: Any) -> bool:
    """Tell whether the items that a reduce gave iterators over are few, and nobody's code runs to find them."""
    if listitems is not None:
        return (
            dictitems is None
            and type(listitems) in LIST_ITERATORS
            and length_hint(listitems) <= _MOST_ITEMS
            # Where stock asks once more at the end, a deque may have been changed by then; not by atoms.
            and (
                not ASKS_AGAIN
                or type(listitems) is not _DequeIterator
                or (type(obj) is deque and ATOM_IDS.issuperset(map(id, map(type, obj))))
            )
        )
    if not are_pairs_nobodys(obj, dictitems):
        return False
    n = length_hint(dictitems, -1)
    if n < 0:  # that of an OrderedDict does not tell it, but gives all it has left
        if not issubclass(type(obj), dict) or dict.__len__(obj) > _MOST_ITEMS:
            return False
        n = len(dictitems.__reduce__()[1][0])
    return n <= _MOST_ITEMS
