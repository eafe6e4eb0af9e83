"""The differences from the running Python's pickler that fastpickle allows itself; the suites compare all but these."""

from __future__ import annotations

import pickle
import sys
import types
from typing import NamedTuple

__all__ = ["ALLOWED", "ATOMS", "DILL_PICKLES_CODE", "PYPY", "Difference", "asked_about", "is_too_deep", "may_succeed"]

#: There a pickler with a `reducer_override` goes hook by hook, so the first row is not made use of.
PYPY = sys.implementation.name == "pypy"
#: Whether dill pickles code objects on this Python: not from 3.15 on.
DILL_PICKLES_CODE = "co_lnotab" in vars(types.CodeType)


class Difference(NamedTuple):
    """One allowed difference: what may differ, why, where that is said, and which tests hold it to just that."""

    what: str
    reason: str
    link: str
    tests: tuple[str, ...]


#: Each row is checked: ``test_oracle.py`` looks for the tests that it names.
ALLOWED = (
    Difference(
        what="reducer_override is not asked about exact None, bool, int, float, str and bytes",
        reason="the C pickler writes them before it asks; an override that replaced them would not work there either",
        link="https://github.com/python/cpython/issues/148707",
        tests=("test_calls_of_hooks", "test_reducer_override_is_not_asked_about_atoms"),
    ),
    Difference(
        what="a structure so deep that stock raises RecursionError may be written",
        reason="there are fewer calls for each level than in stock; what stock writes must be written too",
        link="https://github.com/python/cpython/issues/148707",
        tests=("test_deepest_that_stock_manages",),
    ),
    Difference(
        what="an override of `save` that takes the object only is called with that, where a persistent id is saved",
        reason="it was written for older Pythons; stock raises TypeError",
        link="https://github.com/python/cpython/blob/v2.7.18/Lib/pickle.py#L341",
        tests=("test_as_the_present_ones", "test_stock_refuses"),
    ),
    Difference(
        what="a hook for audit events is told of others, most often of fewer; one that refuses them ends the dump",
        reason="an id() is an event, and so is a look at the code of a function, by which it is known what that does",
        link="https://github.com/python/cpython/blob/v3.13.0/Doc/library/audit_events.rst",
        tests=("test_same_bytes", "test_hook_that_refuses", "test_frames"),
    ),
)


def is_too_deep(exc: BaseException) -> bool:
    """Tell whether an exception says that a structure is too deep."""
    return isinstance(exc, (RecursionError, pickle.PicklingError)) or _is_lost(type(exc).__name__, str(exc))


def may_succeed(error: tuple[object, ...]) -> bool:
    """Tell whether a described error is one after which nothing is compared, by the second row or the third one."""
    name, text = str(error[0]), str(error[1])
    return (
        name == "builtins.RecursionError"
        or _is_lost(name, text)
        or "excessively deep recursion" in text  # cloudpickle says so
        or text.endswith("save() got an unexpected keyword argument 'save_persistent_id'")
    )


def _is_lost(name: str, text: str) -> bool:
    """Tell whether a RecursionError became a TypeError: in PyPy's stack was no room to give an exception its context.

    So it is where another exception is handled, as one that PyPy has forgotten to put away after the stack was full.
    """
    return name.endswith("TypeError") and "record exception context" in text and "RecursionError" in text


#: The types of the first row.
ATOMS = frozenset((type(None), bool, int, float, str, bytes))


def asked_about(calls: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Leave out of a record of hook calls those that the first row allows to be missing."""
    return [call for call in calls if not (call[0] == "reducer_override" and call[1] in _ATOM_NAMES)]


_ATOM_NAMES = frozenset(t.__name__ for t in ATOMS)
