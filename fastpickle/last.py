"""What is remembered of the last dump that C was asked about: the next one is often like it.

    C gave up at an instance ---------------------> it is not asked about a small dump that has one of that class at
                                                    the top; a library's, not about the like of what it gave up
    C met many instances -------------------------> for the like of that it begins with the C pickler that was right

What is remembered is a guess, never a reason for other bytes: wrong, C has begun in vain.

Not for: what is known within one dump (`doubts`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

__all__ = ["last"]


class _Last:
    """The memory.

    Attributes:
        gave_up_for: the id of the class at an instance of which C gave up; 0 if it did not.
        refused: the length and likeness of the last dump of a library that C gave up; () if there is none.
        patience: how many more like that are not offered to C; then one is.
        kind: what gives C picklers for what C met many instances in (`cpickler`); None if it did not.
        like: the likeness of that: the ids of its type and of the type of its first item.
    """

    __slots__ = ("gave_up_for", "kind", "like", "patience", "refused")

    def __init__(self) -> None:
        self.gave_up_for = 0
        self.kind: Callable[..., Any] | None = None
        self.like: tuple[int, ...] = ()
        self.refused: tuple[int, ...] = ()
        self.patience = 0

    def kind_for(self, obj: Any, t: type, proto: int) -> Callable[..., Any] | None:
        """Return the kind if there may be many instances in what is dumped, too; it takes a protocol of 4 or more."""
        kind = self.kind
        return kind if kind is not None and proto >= 4 and self.like == _likeness(obj, t) else None

    def remember_kind(self, obj: Any, kind: Callable[..., Any]) -> None:
        """Remember what kind was right for what was dumped."""
        self.like = _likeness(obj, type(obj))
        self.kind = kind

    def remember_refused(self, obj: Any, t: type) -> None:
        """Remember that C gave up a container."""
        self.refused = len(obj), *_likeness(obj, t)
        self.patience = _PATIENCE

    def was_refused(self, obj: Any, t: type) -> bool:
        """Tell whether a container is like the one that C gave up."""
        refused = self.refused
        if not refused or len(obj) != refused[0] or refused[1:] != _likeness(obj, t):
            return False
        self.patience -= 1
        if self.patience < 0:
            self.refused = ()
        return self.patience >= 0

    def is_like(self, obj: Any, t: type) -> bool:
        """Tell whether a small container has an instance of that class, so that C would give up again."""
        key = self.gave_up_for
        if t is dict:
            return len(obj) <= _FEW and key in map(id, map(type, [*obj.values()]))
        return (t is list or t is tuple) and len(obj) <= _FEW and key in map(id, map(type, obj))


def _likeness(obj: Any, t: type) -> tuple[int, ...]:
    if t is list or t is tuple or t is dict:
        try:
            for x in obj.values() if t is dict else obj:
                return id(t), id(type(x))
        except RuntimeError:  # another thread has changed it
            pass
    return (id(t),)


last: Final = _Last()
#: C gives up in up to half the time that a small dump takes without it.
_PATIENCE: Final = 15
#: So few items are looked at in less time than C takes to give up.
_FEW: Final = 24
