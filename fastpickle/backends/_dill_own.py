"""What is dill's own, in any version: its functions, and the classes that it saves in ways of their own.

Not for: what only the versions in `KNOWN_VERSIONS` are known to have (`dill`, `_dill_known`).
"""

from __future__ import annotations

from enum import EnumMeta
from types import FunctionType
from typing import Any, Final

from dill import _dill

__all__ = ["GLOBALS", "NAMED_OTHERWISE", "are_dills"]

GLOBALS: Final = vars(_dill)

#: Classes to which dill gives other names than their own.
NAMED_OTHERWISE: Final = (
    EnumMeta, type(None), type(NotImplemented), type(...), getattr(_dill, "ExceptHookArgsType", EnumMeta),
)  # fmt: skip


def are_dills(*functions: Any) -> bool:
    """Tell whether functions are those of dill's module, and not what somebody has put in their place."""
    return all(type(f) is FunctionType and f.__globals__ is GLOBALS for f in functions)
