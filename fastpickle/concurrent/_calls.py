"""The executor's side of a message to a worker interpreter: calls become parts to send, answers become results.

    fn, args, kwargs ──► encode ──► (what it is, bytes, buffers ...) ──► _inside, in the worker
    result or exception ◄── decode ◄── (what it is, bytes, buffers ...) ◄─┘

Not for: when and where a message goes (`interpreter_pool`).
"""

from __future__ import annotations

import marshal
import os
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..interrupts import is_interrupt
from . import _inside
from .mapping import call_chunk
from .serializers import Serializer

try:
    from concurrent import interpreters  # type: ignore[attr-defined,unused-ignore]  # CPython 3.14 and later
except ImportError:
    interpreters = None  # type: ignore[assignment,unused-ignore]  # before 3.14 there is no such module

__all__ = ["decode", "encode", "failure", "interpreters", "main_source", "raise_in_main", "stateless"]


_LIFTED = frozenset({bytes, memoryview, list, tuple, dict})


def encode(serializer: Serializer, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a message of a call.

    Args:
        serializer: what writes it.
        fn: what is to be called.
        args: its arguments.
        kwargs: the others.

    Returns:
        What it is, the bytes, and the buffers beside them. All of it is shared natively.

    Raises:
        NotShareableError: it cannot be pickled; the reason is the cause.
        Exception: what a signal's handler raised meanwhile.
    """
    beside = _inside.Beside()
    kind = _inside.CALL
    if fn is call_chunk:
        kind = _inside.CHUNK
        fn = args[0]
    obj: Any = args
    try:
        if kind == _inside.CALL:
            for arg in args:
                if type(arg) in _LIFTED:
                    items = args[0] if len(args) == 1 and type(arg) is tuple else args
                    large = _inside.large_in(items)
                    if not large and items is arg:
                        break
                    if large and not kwargs and (parts := _native(serializer, fn, args, items, large)) is not None:
                        return parts
                    args = tuple(map(beside.lift, args))
                    break
            obj = fn, args, kwargs
        code = None
        if kind == _inside.CALL and serializer.name == "pickle" and _of_session(fn):
            code = stateless(fn)
        if code is None:
            try:
                message = serializer.dumps(obj, buffer_callback=beside.collect)
            except Exception as exc:
                is_other = is_interrupt(exc) or serializer.name != "pickle" or kind != _inside.CALL
                if is_other or (code := stateless(fn)) is None:
                    raise
        if code is not None:
            kind = _inside.CODE
            beside.views = []
            message = serializer.dumps((code, args, kwargs), buffer_callback=beside.collect)
    except BaseException as exc:
        if isinstance(exc, (Exception, KeyboardInterrupt)) and is_interrupt(exc):
            raise
        exc.__traceback__ = None  # its frames would keep the arguments alive as long as the future
        hint = '; serializer="dill" or "cloudpickle" may' if serializer.name == "pickle" else ""
        told = f"{type(exc).__name__}: {_text(exc)}"
        raise interpreters.NotShareableError(
            f"function or args not shareable: {serializer.name} cannot write them{hint} ({told})"
        ) from exc
    shared: Any = message if len(message) <= _inside.COPIED else memoryview(message)
    return kind, shared, *beside.views


def _native(serializer: Serializer, fn: Any, args: tuple[Any, ...], items: tuple[Any, ...], large: list[int]) -> Any:
    """Make a message of a call whose arguments go as they are, or None."""
    if not _inside.native(items, large) or _of_session(fn):
        return None
    try:
        message = serializer.dumps(fn)
    except Exception as exc:  # the way of all others finds out what else can be done
        if is_interrupt(exc):
            raise
        return None
    return _inside.NATIVE, message if len(message) <= _inside.COPIED else memoryview(message), *args


def _of_session(fn: Any) -> bool:
    """Return whether a function is of a `__main__` that no worker can run."""
    return type(fn) is types.FunctionType and fn.__module__ == "__main__" and main_source() == (None, None)


def stateless(fn: Any) -> tuple[bytes, str, Any, Any] | None:
    """Return what a function is made of, if it needs nothing but its arguments and builtins, else None."""
    if type(fn) is not types.FunctionType or fn.__closure__:
        return None
    builtin = fn.__builtins__  # type: ignore[attr-defined,unused-ignore]  # not every typeshed has it
    if any(name in fn.__globals__ or name not in builtin for name in _globals(fn.__code__)):
        return None
    return marshal.dumps(fn.__code__), fn.__module__, fn.__defaults__, fn.__kwdefaults__


def _globals(code: types.CodeType) -> Iterator[str]:
    """Find the names that code takes from its module, or puts there."""
    import dis  # noqa: PLC0415  # only for functions that pickle does not find

    for instruction in dis.get_instructions(code):
        if instruction.opname.endswith(("_GLOBAL", "_NAME")) and "IMPORT" not in instruction.opname:
            yield instruction.argval
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _globals(const)


def main_source() -> tuple[str | None, str | None]:
    """Return the module's name or the path that a worker runs to have what `__main__` has; both None: there is none."""
    module = sys.modules["__main__"]
    name = getattr(getattr(module, "__spec__", None), "name", None)
    if name is not None:
        return name, None
    path = getattr(module, "__file__", None)
    return None, os.path.abspath(path) if path is not None and os.path.isfile(path) else None  # not "<stdin>"


def decode(
    serializer: Serializer, kind: int, message: bytes | memoryview, views: Sequence[Any] = ()
) -> tuple[bool, Any]:
    """Make a result of an answer; nothing of the worker's memory is held afterwards.

    Args:
        serializer: what reads it.
        kind: what it is.
        message: the bytes.
        views: what lies beside them.

    Returns:
        Whether the call has a result, and it; else the exception: what the call raised, whose cause is an
        `ExecutionFailed` with the worker's traceback, or that itself where the exception cannot be pickled;
        `NotShareableError` if the arguments could not be read in the worker, the result not be written, or not be read.
    """
    try:
        if kind == _inside.ERROR:
            return False, failure(serializer, message)
        if kind == _inside.ITSELF:
            return True, views[0]
        copies = [view if type(view) is bytes else bytes(view) if view.readonly else bytearray(view) for view in views]
        if kind == _inside.VIEW:
            copy = memoryview(copies[0])
            return True, copy.cast(*_shape(views[0])) if copy.nbytes else copy
        return True, serializer.loads(message, buffers=copies)
    except BaseException as exc:
        raise_in_main(exc)
        exc.__traceback__ = None
        error = interpreters.NotShareableError(
            f"result not shareable: {serializer.name} cannot read it ({type(exc).__name__}: {_text(exc)})"
        )
        error.__cause__ = exc
        return False, error
    finally:
        for view in views:
            if type(view) is memoryview:
                view.release()
        if type(message) is memoryview:
            message.release()


def _shape(view: memoryview) -> Any:
    return view.format, view.shape


class _Told:
    """What `ExecutionFailed` shows: the worker's exception in words."""

    def __init__(self, formatted: str, told: tuple[str, str, str, str, str]) -> None:
        name, qualname, module, self.msg, self.errdisplay = told
        self.formatted = formatted
        self.type = types.SimpleNamespace(__name__=name, __qualname__=qualname, __module__=module)


def failure(serializer: Serializer, message: bytes | memoryview) -> BaseException:
    """Return the exception that a worker's message tells of."""
    stage, pickled, told = pickle.loads(message)
    brief = f"{told[0]}: {told[3]}" if told[3] else told[0]
    if stage == "args":
        formatted = f"the function or its arguments could not be unpickled in the worker: {brief}"
        exc: BaseException = interpreters.NotShareableError(f"function or args not shareable: {brief}")
    elif stage == "result":
        formatted = f"the result could not be pickled in the worker: {brief}"
        exc = interpreters.NotShareableError(f"result not shareable: {brief}")
    else:
        formatted = brief
    cause = interpreters.ExecutionFailed(_Told(formatted, told))
    if stage == "call":
        if pickled is None:
            return cause  # type: ignore[no-any-return,unused-ignore]  # mypy knows the module from 3.14 on
        try:
            exc = serializer.loads(pickled)
            assert isinstance(exc, BaseException), type(exc)
        except BaseException as other:
            raise_in_main(other)
            cause.add_note(f"the exception could not be unpickled: {type(other).__name__}: {_text(other)}")
            return cause  # type: ignore[no-any-return,unused-ignore]  # as above
    exc.__cause__ = cause
    return exc


def raise_in_main(exc: BaseException) -> None:
    """Let an error go on in the main thread, where it may be a signal's: another thread reads the message again.

    Args:
        exc: the error.

    Raises:
        BaseException: it, in the main thread.
    """
    if threading.current_thread() is threading.main_thread():
        raise exc


def _text(exc: BaseException) -> str:
    try:
        return str(exc)
    except BaseException as other:
        return f"<str() failed: {type(other).__name__}>"
