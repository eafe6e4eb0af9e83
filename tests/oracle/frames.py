"""How many frames of the stack are used, and whether some more are enough for a dump."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["depth", "fits"]


def depth() -> int:
    """Return how many Python frames are in use, with that of this function."""
    frame: Any = sys._getframe()
    n = 0
    while frame is not None:
        frame = frame.f_back
        n += 1
    return n


def fits(dump: Callable[[], object], room: int) -> bool:
    """Tell whether something can be dumped within so many frames more; Python 3.10 sets no limit below about 12."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth() + room)
    try:
        dump()
    except RecursionError:
        return False
    finally:
        sys.setrecursionlimit(limit)
    return True
