"""What is likely of an object, by a short look at it and its type: what is guessed wrong here costs time, nothing else.

    is_somebodys, is_for_stock ---> whether C gives up at instances of a class
    are_somebodys, are_for_stock,
    are_among_somebodys, is_row_for_stock
                              ---> whether it does at what is in a list, tuple or dict, or at much of it
    only_reads, is_little -------> whether a reduce of the class's own only reads, or what one gave is next to nothing
    is_leaf, held_by -------------> whether there is next to nothing in an instance, or what there is

A look takes 0.3 us, where to be sure takes 3 to 10, and C takes up to 15 to begin and to give up.

Not for: what is sure, which other bytes depend on (`instances`).
"""

from __future__ import annotations

import collections
import enum
from itertools import compress, islice
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType
from typing import Any, TypeVar
from weakref import ref

from ..hooks import ATOM_IDS, CONTAINER_IDS, PLAIN_IDS
from . import bytecode
from .arrays import HEAP_TYPE, is_dtype
from .asked import METACLASS_IDS, REDUCES, in_class
from .instances import DATACLASS_GETSTATE, is_plain_class, names
from .last import last
from .stdlibs import LEAVES, STDLIBS, is_learnt

__all__ = [
    "ATOMS_BESIDE",
    "are_among_somebodys",
    "are_for_stock",
    "are_somebodys",
    "held_by",
    "is_for_stock",
    "is_leaf",
    "is_little",
    "is_plain_at_top",
    "is_row_for_stock",
    "is_somebodys",
    "only_reads",
    "somebodys",
    "were_known",
]


_Found = TypeVar("_Found")


def is_somebodys(t: type) -> bool:
    """Tell, in 0.3 us, whether a class has one of `REDUCES`, so that `names` gives None; if not, it may do so yet."""
    known = somebodys.get(id(t))
    if known is not None and known[0]() is t and id(t.__dict__.get(known[1])) == known[2]:
        return True
    if type(t) is not type:  # another metaclass may have flags, and a hash, of its own
        return id(type(t)) not in METACLASS_IDS and not is_dtype(t)
    if not t.__flags__ & HEAP_TYPE:
        return False
    for c in t.__mro__:
        of_class = c.__dict__
        own = of_class.keys() & _ASKED  # sooner than isdisjoint(), which goes through all that a class has
        if own:
            if c is object or of_class.get("__getstate__") is DATACLASS_GETSTATE or t in STDLIBS:
                return False
            try:
                for name in own if c.__flags__ & HEAP_TYPE else ():
                    function = of_class[name]
                    if name in REDUCES and bytecode.known(function) is None:
                        if c is t:
                            _remember(somebodys, t, (ref(t), name, id(function)))
                        return True
                return _has_no_names(t)
            except RecursionError:  # hook by hook there may be enough of the stack; or an audit hook takes a frame
                return True
    return False


#: What a class has where its reduce may be somebody's.
_ASKED = REDUCES | {"__getattr__", "__getattribute__", "__getnewargs__", "__getnewargs_ex__"}


def _has_no_names(t: type) -> bool:
    """Tell whether `names` gives None for a class, or did so once."""
    found = were_known.get(id(t))
    if found is None or found[0]() is not t:  # another one had its id
        found = ref(t), names(t, None) is None
        _remember(were_known, t, found)
    return found[1]


#: What was found of classes by id: a guess, of which nothing else depends than time.  Of those with a function that is
#: not known: its name, and its id; of those all functions of which are: whether they are somebody's all the same.
somebodys: dict[int, tuple[ref[type], str, int]] = {}
were_known: dict[int, tuple[ref[type], bool]] = {}
_MOST_REMEMBERED = 4096


def _remember(classes: dict[int, _Found], t: type, found: _Found) -> None:
    if len(classes) >= _MOST_REMEMBERED:
        classes.clear()
    classes[id(t)] = found


def only_reads(t: type) -> bool:
    """Tell whether `is_somebodys` has found that a class has a reduce of its own which only reads the instances."""
    found = were_known.get(id(t))
    return found is not None and not found[1] and found[0]() is t and not t.__dict__.keys().isdisjoint(REDUCES)


def is_for_stock(t: type) -> bool:
    """Tell, in 0.3 us, whether C gives up at instances of a type that is no container.

    If a few of them are all that is dumped, there is nothing to be gained.
    """
    if type(t) is not type:  # another metaclass may have flags, and a hash, of its own
        return False
    if last.gives_up_at(t):  # by what was in an instance, perhaps
        return True
    if not t.__flags__ & HEAP_TYPE:
        return id(t) not in _FOR_C and t not in STDLIBS and not is_learnt(t) and _has_no_names(t)
    return is_somebodys(t)


#: Those that C saves without a reduce.
_FOR_C = PLAIN_IDS | frozenset(map(id, (type, FunctionType, BuiltinFunctionType)))


def is_plain_at_top(obj: Any, t: type) -> bool:
    """Tell whether all items of a container, or all values of a dict, are atoms or containers."""
    return PLAIN_IDS.issuperset(map(id, map(type, obj.values() if t is dict else obj)))


def are_for_stock(obj: Any, t: type) -> bool:
    """Tell whether C gives up at one of the items of an exact container."""
    found = None
    for x in [*obj.values()] if t is dict else obj:
        t = type(x)
        if t is not found and id(t) not in PLAIN_IDS:
            found = t
            if not is_leaf(t) and is_for_stock(t):
                return True
    return False


def is_leaf(t: type) -> bool:
    """Tell whether there is next to nothing in an instance of a type, so that nothing is to be gained by one."""
    return (
        id(t) in LEAVES
        or type(t) is enum.EnumMeta
        or (issubclass(t, (BaseException, set, frozenset)) and not is_for_stock(t))
    )


def held_by(obj: Any, t: type) -> list[Any] | None:
    """Return what an instance holds, if it is a list, dict, tuple or deque of a class of its own, or has only slots.

    None if that cannot be told without running code of its class.
    """
    if issubclass(t, tuple):
        return [*tuple.__iter__(obj)]
    if issubclass(t, dict):
        return [*dict.values(obj)]
    if issubclass(t, list):
        return [*list.__iter__(obj)]
    if t is collections.deque:
        return [*obj]
    slots = None if t.__dictoffset__ else vars(t).get("__slotnames__")  # where a reduce has left them
    if type(slots) is not list:
        return None
    held = []
    for name in slots:
        slot = in_class(t, name)
        if type(slot) is not MemberDescriptorType:
            return None
        try:
            held.append(slot.__get__(obj))
        except AttributeError:  # it is empty
            pass
    return held


def are_somebodys(obj: Any, t: type, is_sure: bool = True) -> bool:
    """Tell whether an object is an exact list, tuple or dict of objects of such classes, and of atoms.

    They are saved sooner hook by hook than by a plan: if they are many, only those in which there are but atoms.

    Args:
        obj: the object.
        t: its type.
        is_sure: False for a look at a few of many.
    """
    if t is not list and t is not tuple and t is not dict:
        return False
    items = obj.values() if t is dict else obj
    n = len(items)
    if n > _FEW:
        some = {id(x): type(x) for x in [*islice(items, 0, None, n // _FEW)]}
        if sum(map(is_somebodys, some.values())) < _FEW - (_FEW >> 2):
            return False
        first = next(iter(items), None)  # another thread may have emptied it
        if not _has_only_atoms(first, type(first)):
            return False
        if not is_sure:
            return True
    batch = [*items]
    found = None
    for x in batch if n <= _FEW else dict(zip(map(id, map(type, batch)), batch, strict=True)).values():
        t = type(x)
        if id(t) in ATOM_IDS or t is found:
            continue
        if not is_somebodys(t):
            return False
        found = t
    if found is None or n <= _FEW:
        return found is not None
    atoms = map(id, compress(batch, map(ATOM_IDS.__contains__, map(id, map(type, batch)))))
    return len({*map(id, batch)}.difference(atoms)) >= n - (n >> 2)


def are_among_somebodys(obj: Any, t: type) -> bool:
    """Tell whether there are so many objects of such classes in a container, or in its rows, that a plan is no gain.

    The plan is looked at again after each of them, which takes longer than is gained by five atoms where there is
    little.  Some rows are looked at.
    """
    if (t is not list and t is not tuple and t is not dict) or not obj:
        return False
    n = len(obj)
    some = [*islice(obj.values(), _SOME)] if t is dict else obj[:: n // _SOME + 1]
    found = seen = 0
    for x in some:
        t = type(x)
        if t is dict or t is list or t is tuple:
            if len(x) > _WIDEST:
                return False  # what is in there may be worth it
            held = [*x.values()] if t is dict else x
        else:
            held = (x,)
        for y in held:
            t = type(y)
            if id(t) in CONTAINER_IDS:
                if len(y) >= _SOME:
                    return False
            elif id(t) not in ATOM_IDS and is_for_stock(t):
                found += 1
        seen += len(held)
    return found > 0 and found * _ATOMS_BESIDE_IN_ALL >= seen - found


def is_row_for_stock(row: Any, gave_up_for: int) -> bool:
    """Tell whether so much of what is in a list, tuple or dict is objects at which C gives up.

    Args:
        row: any object.
        gave_up_for: the id of a class that is one of these; 0 where C has no part in it.
    """
    t = type(row)
    if (t is not dict and t is not list and t is not tuple) or len(row) > _WIDEST:
        return False
    n = 0
    for x in [*row.values()] if t is dict else row:
        key = id(type(x))
        if key in somebodys or key == gave_up_for:
            n += 1
        elif key in CONTAINER_IDS and len(x) >= ATOMS_BESIDE:
            return False
    return n > 0 and n * ATOMS_BESIDE >= len(row)


def is_little(reduced: tuple[Any, ...]) -> bool:
    """Tell whether what a reduce gave is a call, with a few atoms as its arguments or in a `__dict__`.

    Args:
        reduced: an exact tuple of two or more.
    """
    _, args, *more = reduced
    if type(args) is not tuple:
        return False
    if more:
        state = more[0]
        if type(state) is not dict or len(args) > 1 or not all(x is None for x in more[1:]):
            return False
        args = (*state.values(),)
    return len(args) <= _SOME and ATOM_IDS.issuperset(map(id, map(type, args)))


def _has_only_atoms(obj: Any, t: type) -> bool:
    """Tell whether there are only a few atoms in the `__dict__` of an instance, which is asked for nowhere else."""
    if id(type(t)) not in METACLASS_IDS:  # nothing is asked of another one
        return False
    if not t.__dictoffset__ or not is_plain_class(t) or not all(c.__flags__ & HEAP_TYPE for c in t.__mro__[:-1]):
        return False  # the reduce of an exception, or of a partial, gives a `__dict__` once somebody has asked for it
    state = obj.__dict__
    return type(state) is dict and len(state) <= _FEW and ATOM_IDS.issuperset(map(id, map(type, state.values())))


#: More of them, and more atoms in one, are many.
_FEW = 16
#: So many rows are looked at, and no longer ones.
_SOME = 8
_WIDEST = 32
#: So many items in a row for each object at which C gives up are few; so many other ones in all that was looked at.
ATOMS_BESIDE = 8
_ATOMS_BESIDE_IN_ALL = 5
