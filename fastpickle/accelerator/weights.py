"""How much is in a container, by a look at a few of its items: what is worth an offer to the C pickler is told by that.

    weight(obj, memo) ---------> about how many items there are in it, and one level below
    full_weight(obj, memo) ----> the same to the bottom, where the first level does not say
    has_much(dump, some) ------> whether a short container has its much in its first item

Not for: whether C may be asked (`offers`), nor for what is asked of it (`graft`).
"""

from __future__ import annotations

from typing import Any, Final

from .. import hooks
from ..interrupts import is_interrupt
from .offers import FEWEST

__all__ = ["full_weight", "has_much", "weight"]

#: So many levels are looked at for what a container weighs, and so many values of a dict.
_MOST_LEVELS: Final = 6
_FEW_VALUES: Final = 16


def weight(obj: Any, memo: Any) -> int:
    """Return about how many items there are in a container, and in what is in it: by the first, the last, one between.

    Args:
        obj: the container.
        memo: what is in that is no more than an item.
    """
    n = len(obj)
    some = _some_of(obj)
    lengths = [len(x) for x in some if id(type(x)) in hooks.CONTAINER_IDS and id(x) not in memo]
    if lengths and len(lengths) == len(some) and (n <= 3 or some[0] is not some[1]):
        return n * (min(lengths) or 1)
    return n + sum(lengths)


def full_weight(obj: Any, memo: Any) -> int:
    """Return the same, and of what is in that: at each level the longest of a few stands for its part of all items.

    Args:
        obj, memo: as said.
    """
    weight = 0.0
    times = 1.0  # how many containers the one at this level stands for
    x = obj
    for _ in range(_MOST_LEVELS):
        n = len(x)
        if type(x) is dict and n <= _FEW_VALUES:
            some: Any = [*x.values()]
        else:
            some = _some_of(x)
            if len(some) == 3 and some[0] is some[1]:  # it is fetched
                some = ()
        longest: Any = None
        most = others = 0
        for y in some:
            if id(type(y)) not in hooks.CONTAINER_IDS or id(y) in memo or not y:
                others += 1
            elif len(y) > most:
                others += most
                most = len(y)
                longest = y
            else:
                others += len(y)
        if longest is None:
            return int(weight + times * n)
        times *= n / len(some)
        weight += times * others
        x = longest
    return int(weight + times * len(x))


def _some_of(obj: Any) -> Any:
    """Return the first item of a container, the last one, and one between; of a dict two values, of a set none."""
    t = type(obj)
    n = len(obj)
    try:
        if t is list or t is tuple:
            return [obj[0], obj[n // 2], obj[-1]] if n > 2 else obj
        if t is dict and n:
            return [next(iter(obj.values())), next(reversed(obj.values()))]
    except (LookupError, RuntimeError, StopIteration) as exc:  # another thread is changing it
        if is_interrupt(exc):
            raise
    return ()


def has_much(dump: Any, some: Any, start: int = 0) -> bool:
    """Tell whether a short container is plain at the top, and its first item is long: C may write it sooner as a whole.

    Not where C has refused one: the long one in it would be written twice for each.

    Args:
        dump: what is being dumped.
        some: the items, or keys and values in turn; the first one, or the first value, is a container.
        start: 1 for keys and values.
    """
    first = some[start]
    return (
        len(first) >= FEWEST
        and not dump.has_refused_items
        and not dump.offers_to_skip
        and id(first) not in dump.memo
        and hooks.PLAIN_IDS.issuperset(map(id, map(type, some)))
    )
