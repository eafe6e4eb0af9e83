"""The differences from the running Python's pickler that fastpickle allows itself; the suites compare all but these."""

from __future__ import annotations

import pickle
import sys
from typing import NamedTuple

__all__ = ["ALLOWED", "ATOMS", "PYPY", "Difference", "asked_about", "is_too_deep", "may_succeed"]

#: There a pickler with a `reducer_override` goes hook by hook, so the first row is not made use of.
PYPY = sys.implementation.name == "pypy"


class Difference(NamedTuple):
    """One allowed difference: what may differ, why, where that is said, and which tests hold it to just that."""

    what: str
    reason: str
    link: str
    tests: tuple[str, ...]


#: Each row is checked: ``test_strategies.py`` looks for the tests that it names.
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
)


def is_too_deep(exc: BaseException) -> bool:
    """Tell whether an exception says that a structure is too deep."""
    return (
        isinstance(exc, (RecursionError, pickle.PicklingError))
        # PyPy says so where the stack ends while another exception is handled, and cannot be made its context.
        or (PYPY and isinstance(exc, TypeError) and "exception context for exception 'RecursionError'" in str(exc))
    )


def may_succeed(error: tuple[object, ...]) -> bool:
    """Tell whether a described error is one after which nothing is compared, by the second row or the third one."""
    return (
        error[0] == "builtins.RecursionError"
        or "excessively deep recursion" in str(error[1])  # cloudpickle says so
        or str(error[1]).endswith("save() got an unexpected keyword argument 'save_persistent_id'")
    )


#: The types of the first row.
ATOMS = frozenset((type(None), bool, int, float, str, bytes))


def asked_about(calls: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Leave out of a record of hook calls those that the first row allows to be missing."""
    return [call for call in calls if not (call[0] == "reducer_override" and call[1] in _ATOM_NAMES)]


_ATOM_NAMES = frozenset(t.__name__ for t in ATOMS)
