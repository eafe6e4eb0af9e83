"""Tries: what came of the last ones, so that those that fail are not repeated for each part of what has failed.

    may_try(pickler) --> the try --+-- succeeded: note_success --> the next failure is the first again
                                   +-- failed:    note_failure --> some are left out, the more the longer it took

Without that, what cannot be encoded far inside of something would have it encoded in vain once for each level.

Not for: what the C pickler is offered, which backs off by itself (`graft`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import ref

__all__ = ["Tries"]

#: After a failure a try is left out for so many pieces that were for nothing, up to so many tries.
_PIECES_PER_TRY: Final = 16
_MOST_SKIPPED: Final = 127


class Tries:
    """Those of one kind, by one pickler; another one in between, of another thread, only makes it forget."""

    __slots__ = ("_in_vain", "_of", "_penalty", "_to_skip")

    def __init__(self) -> None:
        self._of: Callable[[], Any] = _nobody
        self._penalty = self._to_skip = self._in_vain = 0

    def may_try(self, pickler: Any, first: object = None) -> bool:
        """Tell whether something may be tried; a tuple is told by its first item."""
        if self._of() is not pickler:
            self._of = ref(pickler)
            self._penalty = self._to_skip = self._in_vain = 0
        elif self._to_skip:
            self._to_skip -= 1
            return False
        return id(first) != self._in_vain

    def note_in_vain(self, pickler: Any, first: object) -> None:
        """Try no tuple that begins with this, until another one is named."""
        self.may_try(pickler)
        self._in_vain = id(first)

    def note_success(self) -> None:
        """Leave none out after the next one that fails but what that has cost."""
        self._penalty = 0

    def note_failure(self, pieces: list[bytes]) -> None:
        """Leave out some after one that gave these for nothing: the more, the longer that took."""
        if len(pieces) < _PIECES_PER_TRY:
            return
        self._penalty = min(2 * self._penalty + 1, _MOST_SKIPPED)
        self._to_skip = min(self._penalty + len(pieces) // _PIECES_PER_TRY, _MOST_SKIPPED)


def _nobody() -> None:
    """Stand for a reference to what is no longer there."""
