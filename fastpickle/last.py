"""What is remembered of the last dump that C was asked about: the next one is often like it.

    C gave up at an instance ---------------------> it is not asked about a small dump that has one of that class
    C met many instances -------------------------> it begins with the C pickler that is for these, if it is like that

What is remembered is a guess, never a reason for other bytes: wrong, it costs some microseconds.

Not for: what is known within one dump (`doubts`).
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["last"]


class _Last:
    """The memory.

    Attributes:
        gave_up_for: the id of the class at an instance of which C gave up; 0 if it did not.
        many: the ids of the type of what was dumped and of the type of its first item, if C met many instances in it.
    """

    __slots__ = ("gave_up_for", "many")

    def __init__(self) -> None:
        self.gave_up_for = 0
        self.many: tuple[int, ...] = ()

    def had_many(self, obj: Any, t: type) -> bool:
        """Tell whether there may be many instances in what is dumped, since there were in what was like it."""
        return bool(self.many) and self.many == _kind(obj, t)

    def remember_many(self, obj: Any, is_so: bool) -> None:
        """Remember whether there were many instances in what was dumped."""
        self.many = _kind(obj, type(obj)) if is_so else ()

    def is_like(self, obj: Any, t: type) -> bool:
        """Tell whether a small container has an instance of that class, so that C would give up again."""
        key = self.gave_up_for
        if t is dict:
            return len(obj) <= _FEW and key in map(id, map(type, obj.values()))
        return (t is list or t is tuple) and len(obj) <= _FEW and key in map(id, map(type, obj))


def _kind(obj: Any, t: type) -> tuple[int, ...]:
    if t is list or t is tuple:
        return (id(t), id(type(obj[0]))) if obj else ()
    if t is dict:
        for value in obj.values():
            return id(t), id(type(value))
    return (id(t),)


last: Final = _Last()
#: So few items are looked at in less time than C takes to give up.
_FEW: Final = 24
