"""dumps() without a pickler, where there is no C pickler: to make one takes as long as to encode a small dict.

    Unmade(Pickler).at_once(obj, protocol) --+-- small plain data, and nothing of the class was changed ---> its bytes
                                             +-- anything else -----------------> None: make a pickler

Not for: what the C pickler can write (`quick`).
"""

from __future__ import annotations

import io
from pickle import STOP
from typing import Any, Final

from .. import hooks
from ..accelerator.offers import FEWEST
from ..accelerator.splicing import write_dump
from ..hooks import STOCK_RULE, entries_of
from ..interrupts import is_interrupt
from .quick import attributes_of, makes_of
from .small import encode_plain

__all__ = ["Unmade"]

#: So many dumps are not tried, at the most, after several in a row that were no small plain data.
_MOST_SKIPPED: Final = 63


class Unmade:
    """What writes small dumps of one class without an instance of it.

    Args:
        cls: a subclass of `pickle._Pickler`.
    """

    def __init__(self, cls: Any) -> None:
        self._cls = cls
        self._stand_in = cls(io.BytesIO(), 4)  # for its hooks; it never writes
        self._makes = makes_of(cls)
        # What the class was like, its entries, the type of their table, and whether nobody listens: all in one, as
        # another thread may look anew.
        self._seen: tuple[Any, Any, Any, bool] = (None, None, None, False)
        self._penalty = self._to_skip = 0

    def at_once(self, obj: Any, protocol: int) -> bytes | None:
        """Return what an instance writes; None if one has to be made.

        Args:
            obj: the object.
            protocol: from 0 to 5.
        """
        t = type(obj)
        if (t is dict or t is list or t is tuple) and protocol >= 4 and 0 < len(obj) < FEWEST:
            if self._to_skip:
                self._to_skip -= 1
            else:
                file = io.BytesIO()
                if self._is_written(file, obj, t, protocol):
                    self._penalty = 0
                    return file.getvalue()
                self._to_skip = self._penalty = min(2 * self._penalty + 1, _MOST_SKIPPED)
        return None

    def _is_written(self, file: io.BytesIO, obj: Any, t: type, protocol: int) -> bool:
        """Write a list, dict or tuple, if it is small plain data; tell whether it is."""
        cls = self._cls
        attributes = attributes_of(cls)
        dispatch = cls.dispatch
        entries = entries_of(dispatch)
        of_attributes, of_entries, table, is_right = self._seen
        if attributes != of_attributes or entries != of_entries or type(dispatch) is not table:
            is_right = makes_of(cls) == self._makes and hooks.plan(self._stand_in).small_rule is STOCK_RULE
            self._seen = attributes, entries, type(dispatch), is_right
        if not is_right or hasattr(cls, "reducer_override") or hasattr(cls, "__getattr__"):
            return False
        pieces: list[bytes] = []
        try:
            if encode_plain(obj, t, 0, {}, pieces, []) < 0:
                return False
        except (UnicodeEncodeError, RuntimeError) as exc:  # surrogates; another thread has changed a dict; too deep
            if is_interrupt(exc):
                raise
            return False
        pieces.append(STOP)
        return write_dump(file.write, protocol, b"".join(pieces))
