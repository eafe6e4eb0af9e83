"""Dump what a function makes in each of the ways that users go, and compare with the same way of stock's.

    make() --+-- dumps()                        --+-- what was dumped, or the error, and what was logged
             +-- a pickler, installed or not    --+
             +-- dill, installed or its backend --+

Not for: what hooks see, and what is left on the pickler (`compare`).
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import fastpickle
from fastpickle._stdlib import StockPickler

from .compare import stock_dumps

try:
    import dill
except ImportError:
    dill = None
else:
    from fastpickle.backends import dill as backend

    dill.extend(False)

__all__ = ["by", "compare", "log", "outcome", "some"]

#: Where objects write down what they saw.
log: list[Any] = []


def outcome(dump: Callable[[Any, int], Any], make: Callable[[], Any], protocol: int) -> Any:
    """Return what was dumped, or the error, and what was logged."""
    log.clear()
    try:
        found = dump(make(), protocol)
    except Exception as exc:
        found = _told(exc)
    return found, [*log]


def _told(exc: Exception) -> Any:
    """Return what an error says, but for addresses."""
    notes = getattr(exc, "__notes__", ())
    return type(exc), [re.sub("0x[0-9a-f]+", "0x", text) for text in (str(exc), *notes)]


def by(cls: Any) -> Callable[[Any, int], Any]:
    def dump(obj: Any, protocol: int) -> Any:
        file = io.BytesIO()
        pickler = cls(file, protocol)
        try:
            pickler.dump(obj)
            pickler.dump([obj, "more"])
        except Exception as exc:
            return file.getvalue(), _told(exc)
        return file.getvalue(), [(i, type(x)) for i, x in (pickler.memo[key] for key in pickler.memo)]

    return dump


def compare(make: Callable[[], Any], protocol: int) -> None:
    """Compare what is dumped by dumps(), by a pickler, installed, and through dill."""
    expected = outcome(stock_dumps, make, protocol)
    for _ in range(2):  # what is remembered of the last one
        assert outcome(fastpickle.dumps, make, protocol) == expected
    expected = outcome(by(StockPickler), make, protocol)
    assert outcome(by(fastpickle.Pickler), make, protocol) == expected
    with fastpickle.patched():
        assert outcome(by(StockPickler), make, protocol) == expected
    if dill is not None:
        expected = outcome(dill.dumps, make, protocol)
        assert outcome(backend.dumps, make, protocol) == expected
        with fastpickle.patched():
            assert outcome(dill.dumps, make, protocol) == expected


def some(make: Callable[[int], Any], many: int) -> Callable[[], list[Any]]:
    """Return what makes a list of so many."""
    return lambda: [make(i) for i in range(many)]
