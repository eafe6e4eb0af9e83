"""multiprocess's pickler, which its queues, pipes and pools make for each object that they send, and drop.

    ForkingPickler.dumps(obj) --> cls(buf, protocol).dump(obj) --> dill's `dump` --> ours: `Quick`, as from dill.dumps

Most of what is sent are small tuples, (job, number, (True, result)), for which it takes longer to fill a pickler than
to make one.  The class is a subclass of dill's with a `dispatch_table` of its own, which users may add to.

Not for: importing multiprocess; its pickler is known when the first one dumps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any, Final

from ..at_once.quick import Quick
from ._source import digests

__all__ = ["quick_of"]

#: The digests of `ForkingPickler.dumps` and `__init__`, from multiprocess 0.70.12 to 0.70.19.
_KNOWN: Final = ("6a6dc9c99059c5fd", "fbfee44289d0f429")
#: The class that was met last, the code of its `dumps`, and what writes for it; None if it is another one.
_last: tuple[Any, Any, Quick | None] = (None, None, None)


def quick_of(cls: Any, code: CodeType, is_for_c: Callable[[Any, type], bool]) -> Quick | None:
    """Return what writes in the place of multiprocess's pickler; None for a pickler that others may have hold of.

    Args:
        cls: the class of a pickler that was made and is dumping.
        code: the code that has called its `dump`.
        is_for_c: as in `Quick`.
    """
    global _last
    of_class, of_code, quick = _last
    if cls is of_class and code is of_code:
        return quick
    if code.co_name != "dumps":
        return None
    module = sys.modules.get("multiprocess.reduction")
    if type(module) is not ModuleType or module.__dict__.get("ForkingPickler") is not cls:
        return None
    dumps = cls.__dict__.get("dumps")
    if type(dumps) is not classmethod or dumps.__func__.__code__ is not code:
        return None
    is_known = (*digests(dumps.__func__, cls.__dict__.get("__init__")),) == _KNOWN
    quick = Quick(cls, is_for_c) if is_known else None
    _last = cls, code, quick
    return quick
