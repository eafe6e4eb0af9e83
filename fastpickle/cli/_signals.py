"""Handlers of signals, put off until what must not be interrupted is done, and what they raise.

Not for: the signals themselves; nothing is blocked.
"""

from __future__ import annotations

import signal
import threading
import traceback
from functools import partial
from types import CodeType
from typing import Any, Final

__all__ = ["Deferred", "is_of_a_signal"]

_ALL: Final = signal.valid_signals()


class Deferred:
    """A block in which signals are only noted: their handlers are called at its end, and raise there.

    To block them is not enough: another thread may be told of one, and the main thread then runs its handler.

    Attributes:
        handlers: those of the program, by signal; none in other threads, which run none.
    """

    def __init__(self) -> None:
        self.handlers: dict[int, Any] = {}
        self._came: dict[int, Any] = {}

    def __enter__(self) -> Deferred:
        if threading.current_thread() is threading.main_thread():  # no other one runs handlers
            found = {number: signal.getsignal(number) for number in _ALL}
            self.handlers = {number: handler for number, handler in found.items() if callable(handler)}
            try:
                for number in self.handlers:
                    signal.signal(number, self._came.setdefault)  # of C, so that nothing can come between
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        interrupt = self.put_back()
        for number, frame in self._came.items():
            try:
                self.handlers[number](number, frame)
            except BaseException as exc:
                interrupt = exc
        if interrupt is not None:
            raise interrupt

    def put_back(self) -> BaseException | None:
        """Put the handlers back; return what one of them raises meanwhile.

        That is all in a process that has been forked inside of the block: no signal has come to it.
        """
        interrupt = None
        while True:
            try:
                for number, handler in self.handlers.items():
                    signal.signal(number, handler)
            except BaseException as exc:
                interrupt = exc
            else:
                return interrupt


def is_of_a_signal(exc: BaseException, handlers: dict[int, Any]) -> bool:
    """Tell whether an exception comes from a signal's handler."""
    codes = [*map(_code_of, handlers.values())]
    return isinstance(exc, KeyboardInterrupt) or any(
        frame.f_code in codes for frame, _ in traceback.walk_tb(exc.__traceback__)
    )


def _code_of(handler: Any) -> CodeType | None:
    """Find the code that a signal's handler runs; None if it is not written in Python."""
    while isinstance(handler, partial):
        handler = handler.func
    code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None
