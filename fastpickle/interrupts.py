"""Whether an error is the data's, or an interrupt: a timeout by a signal, or what another thread raises here.

What cannot be written in one way is written in another, so errors are caught: those of the data come again where stock
has them.  An interrupt does not, and a time limit would be lost with it: KeyboardInterrupt is no Exception, but
celery's SoftTimeLimitExceeded, RQ's JobTimeoutException and TimeoutError are.  So, wherever errors of any kind are
caught:

    except Exception as exc:
        if is_interrupt(exc):
            raise

Where the stack may be full RecursionError is looked for before that, since nothing can be called then.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from inspect import CO_VARARGS
from itertools import repeat
from operator import is_
from types import FrameType
from typing import Any, Final

__all__ = ["GivenUp", "is_interrupt", "suppressed"]

_HOME: Final = __name__.partition(".")[0]
_STDLIB: Final = sys.stdlib_module_names
_module_of: Final = vars(type)["__module__"].__get__


class GivenUp(Exception):
    """What is raised here, and caught, where something cannot be written in the way that was begun."""


class suppressed(suppress):
    """As `contextlib.suppress`, but an interrupt is raised: TimeoutError is an OSError."""

    def __exit__(self, kind: Any, exc: Any, traceback: Any) -> bool:
        return bool(super().__exit__(kind, exc, traceback)) and not is_interrupt(exc)


def is_interrupt(exc: BaseException) -> bool:
    """Tell whether an exception comes from outside of what is saved: then it is for the caller, as it is.

    Args:
        exc: an exception that has just been caught, with its traceback.

    Returns:
        True for what is no Exception; for what a signal's handler, or a debugger, raised: the interpreter has given it
        the frame that it interrupts; and for what is of somebody's type where nobody's code runs, for another thread
        raised it, by `PyThreadState_SetAsyncExc`.  False where the stack is full.
    """
    if not isinstance(exc, Exception):
        return True
    if isinstance(exc, (GivenUp, RecursionError)):
        return False
    is_nobodys = True
    traceback = exc.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        home = _root(dict.get(frame.f_globals, "__name__"))  # a subclass may have a get() of its own
        if home != _HOME:
            if _interrupts(frame):
                return True
            is_nobodys = is_nobodys and home in _STDLIB
        traceback = traceback.tb_next
    return is_nobodys and not _is_stdlibs(type(exc))


def _root(name: Any) -> str:
    """Return the first part of a module's name."""
    return name.partition(".")[0] if type(name) is str else ""


def _interrupts(frame: FrameType) -> bool:
    """Tell whether a function was called with the frame below its own, by position or in its *args."""
    code = frame.f_code
    n = code.co_argcount
    names = code.co_varnames[:n]
    if code.co_flags & CO_VARARGS:
        n += code.co_kwonlyargcount
        names += code.co_varnames[n : n + 1]
    below = frame.f_back  # not what is below in the traceback: an import takes its own frames out of that
    if below is None or not names:  # it was a generator; or a class's body, whose names are in anybody's mapping
        return False
    given = map(frame.f_locals.get, names)
    return any(x is below or (type(x) is tuple and any(map(is_, x, repeat(below)))) for x in given)


def _is_stdlibs(t: type) -> bool:
    """Tell whether a type is of the standard library; it is not asked itself."""
    try:
        return _root(_module_of(t)) in _STDLIB
    except AttributeError:  # somebody has deleted that
        return False
