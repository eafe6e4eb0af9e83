"""What is remembered of the last dump that C was asked about: the next one is often like it.

    C gave up at a class with a reduce of its own  --> it is not asked about a small dump that has one of them
    there were many instances                      --> it begins as it had to begin again then (`cpickler`)

What is remembered is a guess, never a reason for other bytes: wrong, it costs some microseconds.

Not for: what is known within one dump (`doubts`).
"""

from __future__ import annotations

from typing import Any, Final

from .hooks import PLAIN_IDS

__all__ = ["MANY", "last"]

#: From this many instances on it pays to start again.
MANY: Final = 24


class _Last:
    """The memory.

    Attributes:
        gave_up_for: the id of the class with a reduce of its own that made C give up; 0 if it did not.
        had_many: whether there were many instances in it.
    """

    __slots__ = ("gave_up_for", "had_many")

    def __init__(self) -> None:
        self.gave_up_for = 0
        self.had_many = False

    def is_like(self, obj: Any, t: type) -> bool:
        """Tell whether a small container has an instance of that class, so that C would give up again."""
        key = self.gave_up_for
        if t is dict:
            return len(obj) <= _FEW and key in map(id, map(type, obj.values()))
        return (t is list or t is tuple) and len(obj) <= _FEW and key in map(id, map(type, obj))

    def is_as_many(self, obj: Any, t: type) -> bool:
        """Tell whether a container may have many instances, as the last one had, by a look at its last item."""
        try:
            if t is dict:
                is_so = len(obj) > MANY and _has_instances(next(reversed(obj.values())))
            else:
                is_so = (t is list or t is tuple) and len(obj) > MANY and _has_instances(obj[-1])
        except (IndexError, RuntimeError, StopIteration):  # another thread has changed it
            is_so = False
        self.had_many = is_so
        return is_so


def _has_instances(x: Any) -> bool:
    """Tell whether an object is an instance of no builtin type, or a small container that has one."""
    t = type(x)
    if (t is dict or t is list or t is tuple) and len(x) <= _FEW:
        return not PLAIN_IDS.issuperset(map(id, map(type, x.values() if t is dict else x)))
    return id(t) not in PLAIN_IDS


last: Final = _Last()
#: So few items are looked at in less time than C takes to give up.
_FEW: Final = 24
