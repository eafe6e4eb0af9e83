"""Races: whether dumps like one another are saved sooner as stock saves them, found out by the clock.

    dump 1, 2                our way           how long, for each object in the memo
    dump 3, 4                stock's, up to ... how long; from there on, if there is more, our way
    dump 5 ...               the better one    now and then the other one again

It is for what C did not write, because code of somebody's runs at many of its objects: an expression of sympy, a model
of pydantic, a frame of pandas.  A look at the pickler behind each of them may take longer than all that is gained, and
nothing but the clock tells whether it does.  What is found out decides which way is taken, never what is written.

Not for: what is written by C, or at once, nor for digests; they are always sooner.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, Final

from .. import hooks
from .._stdlib import TELLS_WHOSE
from ..accelerator.lazymemo import is_lazy
from ..interrupts import is_interrupt
from ..objects.last import last, likeness
from ..objects.likely import is_somebodys
from ..older import overrides_batches

__all__ = ["Race", "is_row_of_somebodys", "race_of"]

#: So many dumps in each of the two ways come first.
_TURNS: Final = 2
#: After so many the other way is tried again, as often, since the first time it is not in the processor's caches.
_AGAIN: Final = 64
#: In stock's way, while it is not known to be the better one, no more than so many objects are memoized.
_MOST_TRIED: Final = 256
#: Where it is the better one, so many times as much as there has been, or so much, is something else.
_TIMES_AS_MUCH: Final = 4
_MUCH: Final = 64
#: A longer container is for C, or for runs.
_LONGEST: Final = 200
#: What took so little tells nothing.
_FEWEST: Final = 8
#: What was measured is forgotten by so much each time, since the machine may have become slower.
_FORGOTTEN: Final = 1.05
#: Of so many kinds of dumps it is remembered.
_MOST_REMEMBERED: Final = 64


class Race:
    """Between our way and stock's, for dumps that are like one another.

    Attributes:
        is_as_stock: whether the dump that runs is saved as stock saves it.
    """

    __slots__ = ("_before", "_most", "_ours", "_start", "_stocks", "_turns", "is_as_stock")

    def __init__(self) -> None:
        self._turns = self._most = self._before = 0
        self._ours = self._stocks = float("inf")
        self._start = 0.0
        self.is_as_stock = False

    def begin(self, before: int) -> None:
        """Begin with a dump.

        Args:
            before: how much is in the memo, from dumps before it.
        """
        turns = self._turns
        self._turns = turns + 1
        is_sooner = self._stocks < self._ours
        is_tried = turns >= _TURNS if turns < 2 * _TURNS else turns % _AGAIN < _TURNS
        is_as_stock = is_tried if turns < 2 * _TURNS else is_sooner is not is_tried
        self.is_as_stock = is_as_stock
        last.race = None
        if is_as_stock:
            last.longest = _LONGEST
            last.most = before + (max(_MUCH, self._most * _TIMES_AS_MUCH) if is_sooner else _MOST_TRIED)
            last.race = self
        self._before = before
        self._start = perf_counter()

    def end(self, pickler: Any) -> None:
        """End with a dump, or with what of it is saved as stock saves it."""
        memo = pickler.__dict__.get("memo")
        if type(memo) is not dict:  # C has it, or somebody has set another one
            self.call_off()
            return
        n = max(len(memo) - self._before, 0)
        took = (perf_counter() - self._start) / (n + 1)
        if not self.is_as_stock:
            self._ours = min(took, self._ours * _FORGOTTEN)
            self._most = max(n, self._most)
        elif last.race is self:  # else it has ended already
            if n >= min(_FEWEST, self._most):
                self._stocks = min(took, self._stocks * _FORGOTTEN)
            last.race = None

    def call_off(self) -> None:
        """Begin anew with the next dump: there was a plan for this one, which is sooner."""
        self._turns = 0


def is_row_of_somebodys(obj: Any, t: type) -> bool:
    """Tell whether a container is a list or tuple that begins with an object of somebody's, so that it is not for C."""
    return (t is list or t is tuple) and is_somebodys(type(next(iter(obj), None)))  # another thread may have emptied it


def race_of(pickler: Any, obj: Any, t: type) -> Race | None:
    """Begin with what is dumped in the race between the two ways; None if there is but one way.

    Args:
        pickler: one that has written PROTO at the most of this dump.
        obj: what is dumped.
        t: its type.
    """
    try:
        cls = type(pickler)
        save = cls.save
        if (
            pickler._fastpickle_plan is not None  # inside of a dump
            or (TELLS_WHOSE and overrides_batches(cls))
            or (save is not hooks.own_save and save not in hooks.choosy_saves)
            or save in hooks.hash_rules
            or not is_lazy(cls)  # nobody is asked for the memo
            or (id(t) in hooks.CONTAINER_IDS and len(obj) > _LONGEST and not is_row_of_somebodys(obj, t))
        ):
            return None
        memo = object.__getattribute__(pickler, "memo")  # which asks no method of the class
        if type(memo) is not dict:
            return None
        key = id(save), *likeness(obj, t)
    except Exception as exc:  # it is a descriptor that raises, or has no hash; another thread has changed a dict
        if type(exc) is not RecursionError and is_interrupt(exc):
            raise
        return None
    races: dict[tuple[int, ...], Race] = last.races
    race = races.get(key)
    if race is None:
        if len(races) >= _MOST_REMEMBERED:
            races.clear()
        race = races[key] = Race()
    race.begin(len(memo))
    return race
