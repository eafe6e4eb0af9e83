"""Whether an error is the data's, or an interrupt: a timeout by a signal, or what another thread raises here.

What cannot be written in one way is written in another, so errors are caught: those of the data come again where stock
has them.  An interrupt would not, and with it a time limit were lost, and so may be any Exception, not just
KeyboardInterrupt (celery's SoftTimeLimitExceeded, RQ's JobTimeoutException, TimeoutError).  So, wherever errors of any
kind are caught:

    except Exception as exc:
        if is_interrupt(exc):
            raise
"""

from __future__ import annotations

import signal
from functools import partial
from os.path import dirname, join
from types import CodeType
from typing import Any, Final

__all__ = ["GivenUp", "is_interrupt"]

_HOME: Final = join(dirname((lambda: None).__code__.co_filename), "")  # as it is in the traceback
#: Where the errors are defined that C raises for what is saved, or for a file.
_OF_DATA: Final = frozenset(("builtins", "pickle", "_pickle", "struct", "io"))


class GivenUp(Exception):
    """What is raised here, and caught, where something cannot be written in the way that was begun."""


def is_interrupt(exc: BaseException) -> bool:
    """Tell whether an exception comes from outside of what is saved: then it is for the caller, as it is.

    Args:
        exc: an exception that has just been caught, with its traceback.

    Returns:
        True for what is no Exception, for what a signal's handler raised, and for what nobody's code raised that is of
        nobody's type here: another thread did, by `PyThreadState_SetAsyncExc`.  False where the stack is full.
    """
    if not isinstance(exc, Exception):
        return True
    if isinstance(exc, (GivenUp, RecursionError)):
        return False
    codes: list[CodeType] = []  # of others
    traceback = exc.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_HOME):
            codes.append(code)
        traceback = traceback.tb_next
    if codes:
        return not {*map(id, codes)}.isdisjoint(map(id, map(_code_of, map(signal.getsignal, signal.valid_signals()))))
    return str(type(exc).__module__) not in _OF_DATA


def _code_of(handler: Any) -> CodeType | None:
    """Return the code that a signal's handler runs first, if it is written in Python."""
    while isinstance(handler, partial):
        handler = handler.func
    if not callable(handler):  # SIG_DFL
        return None
    for function in (handler, getattr(handler, "__func__", None), type(handler).__call__):
        code = getattr(function, "__code__", None)
        if type(code) is CodeType:
            return code
    return None
