"""Small plain data at once: one function makes all of its bytes, and then they are written.

    at_once(pickler, obj)    allowed, and empty memo? --+-- all of it is small: PROTO FRAME [ obj ] STOP  -> the file
                                                        +-- something is not:   what is open, and its rest -> the loop
                                                                                (or C is asked for all: `graft`)

Of a dump of a few objects more than half goes into what it begins and ends with: a frame that is filled and emptied,
a `Dump`, a look at what the C pickler could do.  None of that is needed where all fits into one frame, nobody's code
runs, and no hook listens.  So it is for picklers that the C pickler may not write for (`graft`), and for what is too
small for it, by a look at the first two levels.  Where something else turns up, `few` encodes that, too; where it is
much, C is asked after all, or if that must not be, the loop goes on from what is encoded.

Not for: deciding what a hook forbids (`hooks`), nor for containers that are long (`loop`, `plain`).
"""

from __future__ import annotations

from io import BytesIO
from itertools import chain
from typing import Any, Final

from .. import hooks
from .._stdlib import TELLS_WHOSE, Framer, is_usual_file, stock_methods
from ..accelerator.lazymemo import is_lazy
from ..accelerator.offers import FEWEST, gains_nothing, may_be_librarys, may_go_by_hooks
from ..accelerator.splicing import write_dump
from ..engine.levels import Level
from ..engine.parts import SHORTEST_RUN
from ..hooks import ATOM_IDS, CONTAINER_IDS, NOT_FOR_C, PLAIN, PLAIN_IDS, STOCK_RULE, Plan
from ..interrupts import is_interrupt
from ..objects.arrays import HEAP_TYPE
from ..objects.asked import HAVE_A_NAME
from ..objects.instances import has_only_a_dict
from ..objects.known import METACLASS_IDS
from ..objects.last import key_of_row, last
from ..objects.likely import ATOMS_BESIDE, held_by, is_for_stock, is_leaf, is_row_for_stock, only_reads, were_known
from ..objects.stdlibs import is_array
from ..older import overrides_batches
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
)
from ..rules import GraftRule
from .few import begin_frame, go_on, save_few
from .tasks import encode_task, is_by_value, is_only_a_name, is_task, save_task

# fmt: off
from pickle import (  # isort: skip
    APPEND, APPENDS, BINBYTES, BINFLOAT, BININT, BININT2, BINUNICODE, EMPTY_TUPLE, MARK,
    MEMOIZE, NEWFALSE, NEWTRUE, NONE, SETITEM, SETITEMS, STOP,
)
# fmt: on

__all__ = ["at_once", "encode_plain"]

#: A container of more items, keys and values, is left to the loop, which has a column of them encoded at once.
_MOST_ITEMS: Final = 24
#: When there are so many pieces, of which a text has three, no container is opened any more.
_MOST_PIECES: Final = 96
#: Where C may be asked it writes more items than so many sooner, keys and values, and what has so many pieces.
_FEW: Final = 24
_FEW_PIECES: Final = 60
#: Where C is not asked about a few instances, or not at all, it is more.
_MANY: Final = 240
#: For so many items stands an instance, a class or a function; one or two that are next to nothing are for stock.
_PER_INSTANCE: Final = 5
_FEW_LEAVES: Final = 20
#: An instance with so many attributes, of which each is two, and all are atoms, is for stock, too.
_FEW_OF_INSTANCE: Final = 16
#: Where there are fewer items, arrays are for stock, too.
_FEW_ARRAYS: Final = 20
#: So many objects whose reduce only reads them: to see what it reads takes as long as they do.
_FEW_READERS: Final = 5
#: So many leaves are written sooner in runs.
_MANY_LEAVES: Final = 32
#: After so many looks in a row that found nothing but plain data the next ones are left out, until something is found.
_SURE: Final = 16
#: A longer int is left to the loop or to C, and a text or bytes of more than so many bytes.
_MOST_BITS: Final = 1024
_LONGEST: Final = 4096


def at_once(pickler: Any, obj: Any, t: type, may_graft: bool) -> bool | Plan | None:
    """Write a whole dump, if it begins as small plain data that nobody listens to.

    Args:
        pickler: one that has written nothing of this dump.
        obj: what is dumped, no atom.
        t: its type.
        may_graft: whether the C pickler may be asked: then it is left what it writes sooner.

    Returns:
        Whether it is written; None if it should be saved hook by hook, with `FEW` in force, or `ASIDE` for a library's;
        `PLAIN` if there is no other way for any part of it; `NOT_FOR_C` if C would not write it either.  If it is not
        written, nothing is, and nothing has changed.

    Raises:
        What `save` raises, if the loop has to save the rest, and what the file does.
    """
    is_container = t is dict or t is list or t is tuple
    if is_container and not 0 < len(obj) < FEWEST:
        return False
    try:
        # No look at the pickler's `__dict__` before it is known what is to be gained: it makes its attributes slower.
        save = type(pickler).save
        is_own = save is hooks.own_save
        if type(pickler).persistent_id is not _persistent_id:  # there is no way but hook by hook
            return PLAIN if is_own and may_go_by_hooks(pickler) else False
        if not is_own:
            if save not in hooks.choosy_saves and not hooks.learn_choosy_save(save):
                return False
            if save in hooks.hash_rules:  # which were not known when the dump began
                return NOT_FOR_C
        content = 0
        if not is_own and (task := is_task(obj, t)) is not False:
            if task is None:
                return NOT_FOR_C
            content = _TASK if task is True else _MUCH_OF_TASK
        elif is_container and not is_own and last.not_at_once and last.is_not_at_once(key_of_row(obj, t)):
            content = _SOMEBODYS
        elif is_container and not may_graft and (last.looks_for_nothing >= _SURE or _begins_plain(obj, t)):
            pass  # most often, and if there is an instance below it will be found
        elif is_container:
            table = hooks.dispatch_of(type(pickler))  # a library that edits stock's has C asked less
            is_own = is_own and type(table) is dict and table.get(dict) is _save_dict
            is_for_c = may_graft and (is_own or may_be_librarys(save, obj, t))
            content = _SOMEBODYS if is_for_c is None else _content(obj, t, _FEW if is_for_c else _MANY)
            if content >= _MUCH:
                is_like = last.is_like(obj, t) if last.gave_up_for else 0
                if is_like == 2:
                    content = _SOMEBODYS
                elif may_graft and not (is_own and is_like):
                    return False if is_for_c or save not in hooks.choosy_saves else NOT_FOR_C
                may_graft = False
        elif not is_own and id(t) in HAVE_A_NAME and is_only_a_name(type(pickler), obj, t):
            content = _SOMEBODYS
        elif id(type(t)) not in METACLASS_IDS or id(t) in PLAIN_IDS or (id(t) in HAVE_A_NAME and not is_own):
            return False
        elif last.not_at_once and last.is_not_at_once(id(t)):
            content = _SOMEBODYS
        elif id(t) != last.held and (
            is_for_stock(t) or id(t) in HAVE_A_NAME or is_leaf(t) or only_reads(t) or is_array(t)
        ):
            last.remember_not_at_once(id(t))  # there are six calls in that
            content = _SOMEBODYS
        elif id(t) != last.held and has_only_a_dict(t):
            state = obj.__dict__
            if type(state) is not dict:
                return False
            if not is_own and is_by_value(t):
                return NOT_FOR_C  # so that its class is much
            content = _INSTANCES
            if is_own:
                if may_graft and not last.may_be_little(t):
                    return False
                n = _content(state, dict, _FEW)
                if may_graft and n >= _MUCH:
                    return False
                if n <= _FEW_OF_INSTANCE:
                    content = _SOMEBODYS
        else:
            held = held_by(obj, t)  # if it is little, nothing is to be gained
            if held is None or _content(held, tuple, _FEW) >= _INSTANCES:  # in which there may be much
                return False
            last.held = id(t)
            content = _SOMEBODYS
        if content == _ARRAYS:
            if may_graft and is_own and "_fastpickle_is_refused" not in pickler.__dict__:
                return False
            content = _SOMEBODYS
        if (
            content == _SOMEBODYS
            and not (TELLS_WHOSE and overrides_batches(type(pickler)))
            and is_lazy(type(pickler))  # nobody sees it if the memo is asked for
            and pickler._fastpickle_plan is None  # not inside of a dump
        ):
            return None
        if content == _SOMEBODYS and not is_container:
            return False
    except Exception as exc:  # it is a descriptor that raises, or has no hash; or another thread has changed a dict
        if type(exc) is not RecursionError and is_interrupt(exc):
            raise
        return False
    plan = hooks.plan(pickler)
    rule = plan.small_rule
    if rule is None:
        last.looks_for_nothing = 0  # here it would not be found
        if plan.graft_rule is not None:
            return NOT_FOR_C if content == _MUCH_OF_TASK else False
        return PLAIN if gains_nothing(pickler, plan, obj, t) else NOT_FOR_C
    state = pickler.__dict__
    framer = state["framer"]
    memo = state["memo"]
    file_write = framer.file_write
    lengths = None
    if (
        memo
        or framer.current_frame is not None
        or "_fastpickle_plan" in state  # inside of a dump
        or (rule.lengths is not None and not (lengths := rule.lengths(pickler)))
        or not (isinstance(file := file_write.__self__, BytesIO) or is_usual_file(file))  # another one sees each write
    ):
        last.looks_for_nothing = 0
        return NOT_FOR_C if content == _MUCH_OF_TASK else False
    if content == _MUCH_OF_TASK:
        is_written = save_task(pickler, plan, obj)
        if is_written:
            state.pop("_fastpickle_is_refused", None)
        return is_written or NOT_FOR_C
    if may_graft and "_fastpickle_is_refused" in state:  # by C
        may_graft = False
    pieces: list[bytes] = []
    opened: list[Level] = []
    is_for_few = False
    try:
        if content == _TASK:
            is_all = is_for_few = encode_task(pickler, plan, obj, memo, pieces)
            if not is_all:
                memo.clear()
                return NOT_FOR_C
            pieces.append(STOP)
        elif content == _INSTANCES:
            is_all = False
            is_for_few = True
        elif encode_plain(obj, t, 0, memo, pieces, opened, _FEW_PIECES if may_graft else _MOST_PIECES) >= 0:
            is_all = True
            pieces.append(STOP)
        else:
            is_all = False
            rest = opened[0][2] if opened else iter([*obj.values()] if t is dict else obj)
            is_for_few = (bool(opened) or content < _MUCH) and _is_next_no_plain_data(rest)
            if is_for_few and not content:
                last.looks_for_nothing = 0
                content = _content(obj, t, _MANY)
        if is_for_few and not is_all and pieces and rule is not STOCK_RULE:
            is_for_few = not _may_have_names(rule, plan.proto, lengths, b"".join(pieces), memo)
    except BaseException as exc:  # surrogates; another thread has changed a dict; too deep
        memo.clear()
        if not isinstance(exc, (UnicodeEncodeError, RuntimeError)) or is_interrupt(exc):  # nothing is written
            raise
        return False
    if is_for_few and not is_all:
        opened.append((None, None, iter(() if opened else (obj,))))
        is_saved = save_few(pickler, plan, rule, lengths, obj, pieces, opened, may_graft, content >= _MUCH)
        if not is_saved:
            memo.clear()
            if is_container:
                if not is_own:
                    last.remember_not_at_once(key_of_row(obj, t))
            elif not t.__flags__ & HEAP_TYPE:  # those of a builtin type are not like one another
                pass
            elif is_saved is None or not is_own:  # of a library's, C is not asked about an instance
                last.remember_not_at_once(id(t))
            else:
                last.remember_much(t)
            return is_saved
        state.pop("_fastpickle_is_refused", None)
        if not pieces:
            return True
        is_all = True
    data = b"".join(pieces)
    n = len(data)
    is_ours = n < Framer._FRAME_SIZE_TARGET and (
        (rule is STOCK_RULE or is_for_few or not _may_have_names(rule, plan.proto, lengths, data, memo))
        if is_all
        else (n > 0 and rule is STOCK_RULE and not may_graft)
    )
    if last.gave_up_for and is_ours:
        state.pop("_fastpickle_is_refused", None)
    if is_ours and is_all and isinstance(file, BytesIO):
        if write_dump(file_write, plan.proto, data):
            return True
    elif is_ours:
        begin_frame(pickler, plan, data)
        if not is_all:
            go_on(pickler, plan, obj, [(None, None, iter(())), *reversed(opened)])
            pickler.write(STOP)
        pickler.framer.end_framing()
        return True
    memo.clear()
    return False


def _begins_plain(obj: Any, t: type) -> bool:
    """Tell whether a list, dict or tuple has only plain data in it at the top, and if it is long, in its first row."""
    values = obj.values() if t is dict else obj
    if not PLAIN_IDS.issuperset(map(id, map(type, values))):
        last.looks_for_nothing = 0
        return False
    last.looks_for_nothing += 1
    if len(values) < SHORTEST_RUN:
        return True
    first = next(iter(values))
    t = type(first)
    return id(t) not in CONTAINER_IDS or PLAIN_IDS.issuperset(
        map(id, map(type, first.values() if t is dict else first))
    )


#: What `_content` says of what is more than is to be written here; of an instance among what is no more than that; and
#: of one in which there is little, or at which C gives up; and of arrays, beside which there may be much.
_MUCH: Final = 1000
_INSTANCES: Final = 500
_SOMEBODYS: Final = 501
_ARRAYS: Final = 502
_TASK: Final = 503
_MUCH_OF_TASK: Final = 504


def _content(obj: Any, t: type, most: int) -> int:
    """Count what is in a list, dict or tuple, and in the containers in it: an atom once, an instance five times.

    More than `most` is much.
    """
    n = rows = len(obj)  # if one item of a list is a container, the others will be, too
    is_dict = t is dict
    if is_dict:
        n *= 2
        rows = 1
        obj = obj.values()
    found = for_stock = None
    is_for_hooks = has_arrays = has_others = False
    for x in obj:
        t = type(x)
        if t is int or t is str:  # the others are found too, but later
            pass
        elif t is dict or t is list or t is tuple:
            if x:
                k = 2 * len(x) if t is dict else len(x)
                if n + rows * k > most:
                    if found is None and not is_dict:
                        gave_up_for = 0 if last.may_be_for_c is not None else last.gave_up_for
                        if all(is_row_for_stock(row, gave_up_for) for row in (x, *obj[-1:])):
                            return _SOMEBODYS  # so it will be with the rows in between
                    return _MUCH
                of_somebodys = 0
                for y in x.values() if t is dict else x:
                    t = type(y)
                    if id(t) not in ATOM_IDS:
                        if id(t) not in CONTAINER_IDS:
                            k += _PER_INSTANCE
                            if t is not found:
                                found = t
                                if is_for_stock(t):
                                    for_stock = t
                                elif not (has_others or is_leaf(t) or only_reads(t) or is_array(t)):
                                    has_others = True
                            of_somebodys += t is for_stock
                        elif y:
                            return _MUCH
                is_for_hooks = is_for_hooks or of_somebodys * ATOMS_BESIDE >= len(x)
                n += k
                rows = max(rows - 1, 1)
        elif id(t) not in ATOM_IDS:
            n += _PER_INSTANCE
            if t is not found and id(t) not in PLAIN_IDS:
                found = t
                if id(type(t)) not in METACLASS_IDS:
                    is_for_hooks = True
                elif is_leaf(t):
                    if rows >= _MANY_LEAVES:
                        return _MUCH
                elif (id(t) in were_known and rows <= _FEW_READERS and only_reads(t)) or is_for_stock(t):
                    is_for_hooks = True
                elif is_array(t):
                    has_arrays = True
                else:
                    has_others = True
                if not (is_for_hooks or has_arrays) and n + _PER_INSTANCE * (rows - 1) > most:  # they will be like it
                    return _MUCH
    if is_for_hooks:
        return _SOMEBODYS
    if has_arrays:
        return _ARRAYS if n >= _FEW_ARRAYS else _SOMEBODYS
    if n > most:
        return _MUCH
    if found is None:
        return n
    return _SOMEBODYS if n <= _FEW_LEAVES and not has_others else _INSTANCES


def _is_next_no_plain_data(items: Any) -> bool:
    """Tell whether there is something left of what an iterator is over, which `encode_plain` does not know."""
    _, (batch,), *i = items.__reduce__()
    if not i or i[0] >= len(batch):  # a tuple that contains itself
        return False
    t = type(batch[i[0]])
    return id(t) not in ATOM_IDS and t is not dict and t is not list and t is not tuple


def _may_have_names(
    rule: GraftRule, proto: int, lengths: tuple[int, ...] | None, data: bytes, memo: dict[int, tuple[int, Any]]
) -> bool:
    """Tell whether there may be a dict in what is encoded that is not for us, by a library's rule (`differences`)."""
    for text in rule.texts_of_names[proto]:
        if data.find(text) >= 0:
            return True
    if lengths is None:
        return False
    return 2 * min(lengths) <= len(data) and any(type(x) is dict and len(x) in lengths for i, x in memo.values())


_save_dict: Final = stock_methods["save_dict"]
_persistent_id: Final = stock_methods["persistent_id"]


def encode_plain(
    owner: Any,
    t: type,
    i: int,
    memo: dict[int, tuple[int, Any]],
    pieces: list[bytes],
    opened: list[Level],
    most: int = _MOST_PIECES,
) -> int:
    """Append the opcodes of a container to `pieces`, and what is memoized to the memo.

    Of what stock looks up in the memo, it looks up what is memoized: nothing else is in a memo that was empty.

    Args:
        owner: the container, which is not in the memo.
        t: its type.
        i: how many are in the memo.
        memo: the pickler's, which was empty before the dump.
        pieces: as they are before it.
        opened: gets what is open where it gives up, the innermost first; nothing if that is before `owner` is opened.
        most: if there are more pieces, it gives up.

    Returns:
        How many are in the memo then; -1 if it gives up.
    """
    if len(pieces) > most:
        return -1
    batch: Any
    ending: bytes | None
    if t is dict:
        batch = [*chain.from_iterable(owner.items())]  # a snapshot, as stock takes one of each batch
        n = len(batch)
        if n >= 2 * SHORTEST_RUN and (n > 2 * _MOST_ITEMS or id(type(batch[1])) not in ATOM_IDS):
            return -1
        memo[id(owner)] = i, owner
        i += 1
        if n > 2:
            pieces.append(MARKED_DICT)
            ending = SETITEMS
        else:
            pieces.append(MEMOIZED_DICT)
            ending = SETITEM if n else b""
    else:
        batch = owner[:] if t is list else owner
        n = len(batch)
        if n >= SHORTEST_RUN and (n > _MOST_ITEMS or id(type(batch[0])) not in ATOM_IDS):
            return -1
        if t is tuple:
            if n > 3:
                pieces.append(MARK)
            ending = None
        else:
            memo[id(owner)] = i, owner
            i += 1
            if n > 1:
                pieces.append(MARKED_LIST)
                ending = APPENDS
            else:
                pieces.append(MEMOIZED_LIST)
                ending = APPEND if n else b""
    items = iter(batch)
    for x in items:
        t = type(x)
        if t is str:
            key = id(x)
            if key in memo:
                pieces.append(BINGET[memo[key][0]])
                continue
            encoded = x.encode()
            n = len(encoded)
            if n > 255:
                if n > _LONGEST:
                    break
                pieces.append(pack_binunicode(BINUNICODE, n))
            else:
                pieces.append(SHORT_BINUNICODE[n])
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
            elif x.bit_length() > _MOST_BITS:
                break
            else:
                pieces.append(pack_long(x))
        elif x is None:
            pieces.append(NONE)
        elif t is float:
            pieces.append(pack_binfloat(BINFLOAT, x))
        elif t is bool:
            pieces.append(NEWTRUE if x else NEWFALSE)
        elif (key := id(x)) in memo:
            pieces.append(BINGET[memo[key][0]])
        elif t is dict or t is list or t is tuple:
            if not x and t is tuple:
                pieces.append(EMPTY_TUPLE)
                continue
            found = encode_plain(x, t, i, memo, pieces, opened, most)
            if found >= 0:
                i = found
            elif opened:
                opened.append((owner, ending, items))
                return -1
            else:
                break
        elif t is bytes:
            n = len(x)
            if n > 255:
                if n > _LONGEST:
                    break
                pieces.append(pack_binbytes(BINBYTES, n))
            else:
                pieces.append(SHORT_BINBYTES[n])
            pieces.append(x)
            pieces.append(MEMOIZE)
            memo[key] = i, x
            i += 1
        else:
            break
    else:
        if ending is None:
            if id(owner) in memo:  # it contains itself
                opened.append((owner, None, items))
                return -1
            n = len(owner)
            pieces.append(MEMOIZED_TUPLES[n] if n <= 3 else MEMOIZED_TUPLE)
            memo[id(owner)] = i, owner
            return i + 1
        pieces.append(ending)
        return i
    items.__setstate__(items.__reduce__()[2] - 1)  # it is put back
    opened.append((owner, ending, items))
    return -1
