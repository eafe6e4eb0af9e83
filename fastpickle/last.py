"""What is remembered of the last dump that C was asked about: the next one is often like it.

    C gave up at a class with a reduce of its own --> it is not asked about a small dump that has one of them

What is remembered is a guess, never a reason for other bytes: wrong, it costs some microseconds.

Not for: what is known within one dump (`doubts`).
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["last"]


class _Last:
    """The memory.

    Attributes:
        gave_up_for: the id of the class with a reduce of its own that made C give up; 0 if it did not.
    """

    __slots__ = ("gave_up_for",)

    def __init__(self) -> None:
        self.gave_up_for = 0

    def is_like(self, obj: Any, t: type) -> bool:
        """Tell whether a small container has an instance of that class, so that C would give up again."""
        key = self.gave_up_for
        if t is dict:
            return len(obj) <= _FEW and key in map(id, map(type, obj.values()))
        return (t is list or t is tuple) and len(obj) <= _FEW and key in map(id, map(type, obj))


last: Final = _Last()
#: So few items are looked at in less time than C takes to give up.
_FEW: Final = 24
