"""What is remembered of the last dump that C was asked about: the next one is often like it.

    C gave up at an instance ---------------------> it is not asked about a small dump that has one of that class at
                                                    the top; a library's, not about the like of what it gave up;
                                                    both for some dumps, as it may have been another pickler's
    an instance turned out to be much ------------> the next one of its class is left to C
    a task, an instance or a row could not be ----> the next ones of its function, its class or like it are not
    written at once                                 tried
    what looked like numbers was something else --> the next ones are not taken for that (`unmemoized`)
    a library's dump of an instance was large ----> the next one of its class is not begun hook by hook
    small dumps in a row were only plain data ---> the next one is not looked at before it is encoded (`small`)
    what a reduce gave was not brief -------------> a few objects of its class are saved hook by hook
    a dump went hook by hook, and was little -----> so do the next ones with such an object, without a look at them
    C met many instances -------------------------> for the like of that it begins with the C pickler that was right

What is remembered is a guess, never a reason for other bytes: wrong, C has begun in vain.

Not for: what is known within one dump (`doubts`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from ..hooks import CONTAINER_IDS, PLAIN_IDS
from ..interrupts import is_interrupt

__all__ = ["LONGEST_OF_FEW", "MOST_OF_FEW", "are_few", "key_of_row", "last", "likeness", "types_at_top"]


class _Last:
    """The memory.

    Attributes:
        gave_up_for: the id of the class at an instance of which C gave up; 0 if it did not.
        given_up: the same, which stays when that is forgotten.
        patience_with_class, patience_with_class_before: at how many more looks that find it C is not asked; and how
            many these were to be: more each time that it gives up there again.
        may_be_for_c: tells of an instance of that class whether C would have written it; None if it gives up at each.
        refused: the length and likeness of the last dump of a library that C gave up; () if there is none.
        patience: how many more like that are not offered to C; then one is.
        kind: what gives C picklers for what C met many instances in (`cpickler`); None if it did not.
        like: the likeness of that: the ids of its type and of the type of its first item.
        root: the id of the class of what is dumped, or was last.
        few: the ids of the classes of what was dumped hook by hook, or stood at the top of that, and was little; by the
            `save` of its picklers.
        few_are_beside: whether any of these was in another container than the first one at its level.
        few_left: at how many more dumps it is asked whether they are like that, and go hook by hook without a look at
            them; then, or once there was more in one, the next one is looked at.
        patience_with_few: how many these were to be, the last time that one was looked at; 0 before the first one.
        few_much: the ids of the classes of what a library's pickler dumped hook by hook though it was not little.
        few_refused: the ids of those of these classes at which C gives up in that `save`'s place; by that, too.
        aside: the id of a library's pickler whose dump goes hook by hook since `begin` has found that it does.
        went_by_hooks: the id of the pickler of the last dump that `begin` has found to go hook by hook, or might have.
        held: the id of the class of the last instance that was told by what it holds (`held_by`); 0 if there was none.
        looks_for_nothing: how many looks in a row at what is dumped found only plain data (`small`).
        longest, most: how long a container may be, and how much may be memoized, before there is more in a dump than in
            the last one like it.
        race: what measures how long that takes, if anything does (`races`).
        races: those between two ways for such dumps, by what tells those that are like one another.
        large: the id of the class of the last instance that a library's dump was large of; 0 if there was none.
        much: the id of the class of the last dump of an instance that turned out to be much for Python; 0 if none did.
        patience_with_much: how many more of that are left to C; then one is not.
        worth: the id of the last container that was found to be worth a plan, for a digest, before the dump began.
        not_brief: the ids of classes the reduces of which gave what was not brief.
        not_soon_brief: the same of an instance before which nothing was memoized.
        not_at_once: the ids of what tells that something cannot be written at once, those of types with which C gave
            up a library's container inverted, and how many more of each are not tried; then one is.
        patience_with_numbers: how many more of what looks like numbers are not taken for that; then one is.
    """

    __slots__ = (
        "aside", "few", "few_are_beside", "few_left", "few_much", "few_refused", "gave_up_for", "given_up", "held",
        "kind", "large", "like", "longest", "looks_for_nothing", "may_be_for_c", "most", "much", "not_at_once",
        "not_brief", "not_soon_brief", "patience", "patience_with_class", "patience_with_class_before",
        "patience_with_few", "patience_with_much", "patience_with_numbers", "race", "races", "refused", "root",
        "went_by_hooks", "worth",
    )  # fmt: skip

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Be as before the first dump."""
        self.few: dict[Any, set[int]] = {}
        self.few_are_beside = False
        self.few_left = 0
        self.patience_with_few = 0
        self.few_refused: dict[Any, set[int]] = {}
        self.few_much: set[int] = set()
        self.aside = self.went_by_hooks = 0
        self.gave_up_for = 0
        self.may_be_for_c: Callable[[Any], bool] | None = None
        self.given_up = self.patience_with_class = self.patience_with_class_before = 0
        self.kind: Callable[..., Any] | None = None
        self.like: tuple[int, ...] = ()
        self.refused: tuple[int, ...] = ()
        self.patience = 0
        self.root = self.large = self.held = self.worth = 0
        self.longest = self.most = 0
        self.race: Any = None
        self.races: dict[tuple[int, ...], Any] = {}
        self.much = 0
        self.looks_for_nothing = 0
        self.patience_with_much = 0
        self.patience_with_numbers = 0
        self.not_at_once: dict[int, int] = {}
        self.not_brief: set[int] = set()
        self.not_soon_brief: set[int] = set()

    def kind_for(self, obj: Any, t: type, proto: int) -> Callable[..., Any] | None:
        """Return the kind if there may be many instances in what is dumped, too; it takes a protocol of 4 or more."""
        kind = self.kind
        return kind if kind is not None and proto >= 4 and self.like == likeness(obj, t) else None

    def remember_kind(self, obj: Any, kind: Callable[..., Any]) -> None:
        """Remember what kind was right for what was dumped."""
        self.like = likeness(obj, type(obj))
        self.kind = kind

    def remember_gave_up(self, key: int, may_be_for_c: Callable[[Any], bool] | None = None) -> None:
        """Remember the class, by its id, at an instance of which C gave up, and what tells if it takes others."""
        is_again = key == self.given_up
        self.patience_with_class = min(2 * self.patience_with_class_before + 1, _MOST_LOOKS) if is_again else _PATIENCE
        self.patience_with_class_before = self.patience_with_class
        self.gave_up_for = self.given_up = key
        self.may_be_for_c = may_be_for_c

    def gives_up_at(self, t: type) -> bool:
        """Tell whether C gave up at an instance of a class as it would at any other one, as far as is known."""
        if id(t) != self.gave_up_for or self.may_be_for_c is not None:
            return False
        self._look_at_class()
        return True

    def _look_at_class(self) -> None:
        """Forget the class after some looks that found it: what C gave up for may have been another dump's."""
        self.patience_with_class -= 1
        if self.patience_with_class < 0:
            self.gave_up_for = 0

    def remember_refused(self, obj: Any, t: type) -> None:
        """Remember that C gave up a container, or an instance."""
        self.refused = _length(obj, t), *likeness(obj, t)
        self.patience = _PATIENCE

    def outlive_refused(self) -> None:
        """Forget what C gave up after some dumps that were like it, or of plain data: each is looked at until then."""
        self.patience -= 1
        if self.patience < 0:
            self.refused = ()

    def was_refused(self, obj: Any, t: type) -> bool:
        """Tell whether a container, or an instance, is like the one that C gave up."""
        refused = self.refused
        if not refused or _length(obj, t) != refused[0] or refused[1:] != likeness(obj, t):
            return False
        self.outlive_refused()
        return self.patience >= 0

    def remember_much(self, t: type) -> None:
        """Remember that there was much in an instance that was all of a dump."""
        self.much = id(t)
        self.patience_with_much = _PATIENCE

    def may_be_little(self, t: type) -> bool:
        """Tell whether there may be little in an instance that is dumped."""
        if id(t) != self.much:
            return True
        self.patience_with_much -= 1
        if self.patience_with_much < 0:
            self.much = 0
        return self.patience_with_much < 0

    def remember_no_numbers(self) -> None:
        """Remember that what looked like numbers was something else."""
        self.patience_with_numbers = _PATIENCE

    def skips_numbers(self) -> bool:
        """Tell whether what looks like numbers is not to be taken for that."""
        if not self.patience_with_numbers:
            return False
        self.patience_with_numbers -= 1
        return True

    def remember_not_at_once(self, key: int) -> None:
        """Remember that something could not be written at once: a task, an instance, or a row, told by its key."""
        if len(self.not_at_once) >= _MOST_REMEMBERED:
            self.not_at_once.clear()
        self.not_at_once[key] = _PATIENCE

    def remember_not_brief(self, t: type) -> None:
        """Remember that what the reduce of an instance gave was not brief."""
        _remember(self.not_brief, t)

    def remember_not_soon_brief(self, t: type) -> None:
        """Remember the same of an instance before which nothing was memoized."""
        _remember(self.not_soon_brief, t)

    def is_not_at_once(self, key: int) -> bool:
        """Tell whether such a one is not to be tried."""
        patience = self.not_at_once.get(key, 0)
        if not patience:
            return False
        self.not_at_once[key] = patience - 1
        return True

    def remember_few(self, save: Any, types: list[type], refused: list[type]) -> None:
        """Remember that a dump went hook by hook, and was little.

        Args:
            save: that of its pickler.
            types: the types of what was dumped, or of what is at the top of it, that told so.
            refused: those at which C gives up.
        """
        if len(self.few) >= _MOST_REMEMBERED:
            self.few.clear()  # a class may have been given ever new ones
            self.few_refused.clear()
        few = self.few.setdefault(save, set())
        if len(few) >= _MOST_REMEMBERED:
            few.clear()
            self.few_refused.pop(save, None)
            self.few_much.clear()
        is_again = few.issuperset(map(id, types))
        self.patience_with_few = min(2 * self.patience_with_few + 1, _MOST_PATIENCE) if is_again else _PATIENCE
        few.update(map(id, types))
        if refused:
            self.few_refused.setdefault(save, set()).update(map(id, refused))
        self.few_left = self.patience_with_few

    def is_like(self, obj: Any, t: type) -> int:
        """Tell whether what is in a small container, and in those in it, has an instance of that class among it.

        C would give up again.  2 if all there is has been seen, and is little.
        """
        if (t is not dict and t is not list and t is not tuple) or len(obj) > _FEW:
            return 0
        gave_up_for = self.gave_up_for
        may_be_for_c = self.may_be_for_c
        is_all = False
        n = found_in = 0  # the first container in which one is found, from 1 on
        containers = [obj]
        for i, x in enumerate(containers, 1):
            items = [*x.values()] if type(x) is dict else x
            n += len(items)
            if n > _LITTLE and (i > 2 or len(items) > _FEW):
                break
            for y in items:
                t = type(y)
                if t is dict or t is list or t is tuple:
                    if y:
                        containers.append(y)
                elif id(t) == gave_up_for and not found_in and (may_be_for_c is None or not may_be_for_c(y)):
                    found_in = i
            if n > _LITTLE:
                break
        else:
            is_all = True
        if not found_in or (found_in > 2 and not is_all):  # beyond the top, and the first container there
            return 0
        self._look_at_class()
        return 2 if is_all else 1


def _remember(ids: set[int], t: type) -> None:
    """Add the id of a class; before they are too many, all are forgotten."""
    if len(ids) >= _MOST_REMEMBERED:
        ids.clear()
    ids.add(id(t))


def are_few(few: set[int], obj: Any, t: type) -> bool:
    """Tell whether an object is of one of some types, given by their ids, or has one at the top, and little beside it.

    Where there is none, one in the first container there will do, and so on; or in any of them, if one was found so.

    Raises:
        RuntimeError: another thread has changed it.
    """
    if not (t is list or t is tuple or t is dict):
        return id(t) in few
    in_all = last.few_are_beside
    items = _items_of((obj,))
    for _ in range(_LEVELS):
        if not few.isdisjoint(map(id, map(type, items))):
            return True
        if in_all:
            held = _containers_of(items)
            if not held:
                return False
            items = _items_of(held)
        else:  # the same with the first one, without two calls
            for x in items:
                t = type(x)
                if (t is dict or t is list or t is tuple) and x:
                    break
            else:
                return False
            if len(x) > _FEW_AT_TOP:
                return False
            items = x.values() if t is dict else x
    return False


def types_at_top(obj: Any, t: type) -> list[type]:
    """Return the types by which `are_few` tells something: what it is, or has at the top, but for plain data.

    Where there is nothing but plain data at the top, it is what is in the containers there, and so on.
    """
    if not (t is list or t is tuple or t is dict):
        return [t]
    for n in (1, None):  # the first one of them, or all
        items = _items_of((obj,))
        for _ in range(_LEVELS):
            types = [x for key, x in {id(x): x for x in map(type, items)}.items() if key not in PLAIN_IDS]
            if types:
                last.few_are_beside |= n is None
                return types
            held = _containers_of(items)[:n]
            if not held:
                break
            items = _items_of(held)
    return []


def _containers_of(items: Iterable[Any]) -> list[Any]:
    """Return the lists, tuples and dicts with something in them."""
    return [x for x in items if ((t := type(x)) is dict or t is list or t is tuple) and x]


def _items_of(held: Sequence[Any]) -> Collection[Any]:
    """Return what is in some lists, tuples and dicts, but for keys: in the first ones, if all is too much to look at.

    Nothing, if even that is too much.
    """
    x = held[0]
    if len(x) > _FEW_AT_TOP:
        return ()
    items: Collection[Any] = x.values() if type(x) is dict else x
    if len(held) > 1:
        items = [*items]
        for x in held[1:]:
            if len(items) + len(x) > _FEW:
                break
            items += x.values() if type(x) is dict else x
    return items


def _length(obj: Any, t: type) -> int:
    """Return the length of an exact container; an instance is not asked for one."""
    return len(obj) if id(t) in CONTAINER_IDS else 0


def likeness(obj: Any, t: type) -> tuple[int, ...]:
    """Return what tells things that are like one another: the ids of a type, and of the type of the first item."""
    if t is list or t is tuple or t is dict:
        try:
            for x in obj.values() if t is dict else obj:
                return id(t), id(type(x))
        except RuntimeError as exc:  # another thread has changed it
            if is_interrupt(exc):
                raise
    return (id(t),)


def key_of_row(obj: Any, t: type) -> int:
    """Return what tells lists, tuples or dicts that are like one another."""
    return hash((len(obj), *likeness(obj, t)))


last: Final = _Last()
#: C gives up in up to half the time that a small dump takes without it.
_PATIENCE: Final = 15
#: The same for looks at instances of a class, of which one dump may take many, once it gave up there several times.
_MOST_LOOKS: Final = 4095

#: The same for what went hook by hook, once several in a row did.
_MOST_PATIENCE: Final = 255

#: So much is memoized in a dump that goes hook by hook, at the most, if the next one like it is not to be looked at.
MOST_OF_FEW: Final = 40
#: And no longer container is in it.
LONGEST_OF_FEW: Final = 12
#: Of so many functions, classes and kinds of rows it is remembered that they cannot be written at once.
_MOST_REMEMBERED: Final = 64
#: So many items may be at the top of what is not looked at, and in the first container of each level; so many levels.
_FEW_AT_TOP: Final = 12
_LEVELS: Final = 4
#: So few items are looked at in less time than C takes to give up.
_FEW: Final = 24
#: So many items, in whatever they are, are little; and seen in the time that it takes C to begin.
_LITTLE: Final = 40
