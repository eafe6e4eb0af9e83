"""Functions of a class that are sure to run nobody's code but the interpreter's, by their bytecode.

    def __reduce__(self): return Point, (self.x, self.y)     def __getstate__(self):
    def __getstate__(self): return {"x": self.x}                 state = self.__dict__.copy()
    def __getstate__(self): return (self.x, self.y)              del state["lock"]; return state

    code --(`_run`: each instruction once, with what is known of the stack)--> Known: what it reads of `self`, and makes
                                                                               None:  it may run anything

That is most of what people write for pickle: no branches, nothing is called but methods of a dict that is its own.
Such a function sees nothing but the instance and changes nothing, so that C may call it, too, and as often as it likes.
An instruction that is not known here, as those of later Pythons, may do anything.

Not for: how attributes are got, and what else a reduce asks of a class (`instances`).
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from ._stdlib import HAS_KNOWN_BYTECODE

__all__ = ["Known", "callee", "known", "looks_up_names"]


class Known(NamedTuple):
    """What a function does that runs nobody's code but for what it reads.

    Attributes:
        reads: the names of what it reads of `self`, but for `__class__` and `__dict__`.
        has_dict: whether it reads the `__dict__`.
        calls: the names of what it calls, which are to stand for the builtin functions.
        makes: what it gives to be called with a tuple of arguments, and perhaps a state, as a reduce does: one of the
            kinds below; None if it gives something else.
    """

    reads: frozenset[str]
    has_dict: bool
    calls: frozenset[str]
    makes: Any


class _Tuple(NamedTuple):
    """A tuple of some kinds of values."""

    items: tuple[Any, ...]


class _Const(NamedTuple):
    """A constant of the code."""

    value: Any


class _Global(NamedTuple):
    """What a name stands for in the function's module."""

    name: str


class _Free(NamedTuple):
    """What a name stands for in the function around."""

    name: str


class _Method(NamedTuple):
    """A method of a dict, which is on the stack as one or as two values."""

    of: Any
    name: str


#: Kinds of values: `self`, its class, its `__dict__`, a dict that only the function has, whatever else, and no value.
_SELF: Final = "self"
_CLASS: Final = "class"
_DICT: Final = "dict"
_OWN_DICT: Final = "own dict"
_ANY: Final = "any"
_NULL: Final = "null"

_NOTHING: Final = frozenset(("RESUME", "NOP", "COPY_FREE_VARS", "PRECALL", "CACHE", "NOT_TAKEN"))
_LOADS: Final = frozenset(("LOAD_FAST", "LOAD_FAST_BORROW"))
_LOADS_OF_TWO: Final = frozenset(("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"))
_CONSTANTS: Final = frozenset(("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT"))
_USUAL: Final = frozenset(("__class__", "__dict__"))
_CALLS: Final = frozenset(("CALL", "CALL_FUNCTION", "CALL_METHOD"))
#: A longer function is not looked into.
_LONGEST: Final = 2000
#: So many codes are remembered.
_MOST: Final = 4096


class _UnknownError(Exception):
    """An instruction may run anything."""


def _run(code: CodeType) -> Known | None:
    """Go through a function's instructions, once, as they would be run."""
    if (
        not HAS_KNOWN_BYTECODE
        or code.co_argcount < 1
        or len(code.co_code) > _LONGEST
        or getattr(code, "co_exceptiontable", None)  # an exception would be caught
    ):
        return None
    state = _State(code)
    *instructions, last = dis.get_instructions(code)
    try:
        for instruction in instructions:
            state.step(instruction)
        if last.opname == "RETURN_CONST":
            value: Any = _Const(last.argval)
        elif last.opname == "RETURN_VALUE":
            value = state.stack.pop()
        else:
            return None
    except (_UnknownError, IndexError, KeyError):  # an empty stack; a name that may not be bound
        return None
    reads = frozenset(state.reads)
    return Known(reads - _USUAL, "__dict__" in reads, frozenset(state.calls), _called_in(value))


def _called_in(value: Any) -> Any:
    """Return what is to be called by what a reduce gives.

    There may be a state only if there are no arguments: C writes none for what contains itself, as Python does.
    """
    if not isinstance(value, _Tuple) or not 2 <= len(value.items) <= 3:
        return None
    called, args, *state = value.items
    return None if state and args not in (_Tuple(()), _Const(())) else called


class _State:
    """What is known at an instruction: of the stack and the variables, and what has been read and called."""

    def __init__(self, code: CodeType) -> None:
        self.variables: dict[str, Any] = dict.fromkeys(code.co_varnames[: code.co_argcount], _ANY)
        self.variables[code.co_varnames[0]] = _SELF
        self.reads: set[str] = set()
        self.calls: set[str] = set()
        self.stack: list[Any] = []

    def step(self, instruction: dis.Instruction) -> None:
        name = instruction.opname
        value = instruction.argval
        stack = self.stack
        if name in _NOTHING:
            pass
        elif name in _LOADS:
            stack.append(self.variables[value])
        elif name in _LOADS_OF_TWO:
            stack += [self.variables[x] for x in value]
        elif name == "STORE_FAST":
            self.variables[value] = stack.pop()
        elif name in _CONSTANTS:
            stack.append(_Const(value))
        elif name == "LOAD_GLOBAL":
            self._push(_Global(value), instruction.argrepr != value)
        elif name == "LOAD_DEREF":
            stack.append(_Free(value))
        elif name == "PUSH_NULL":
            stack.append(_NULL)
        elif name == "POP_TOP":
            stack.pop()
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            self._push(self._get(value), name == "LOAD_METHOD" or instruction.argrepr != value)
        elif name in _CALLS:
            self._call(instruction.arg or 0, name != "CALL_FUNCTION")
        elif name == "BUILD_TUPLE":
            stack.append(_Tuple(tuple(self._pop(value))))
        elif name == "BUILD_LIST":
            self._pop(value)
            stack.append(_ANY)
        elif name == "BUILD_MAP":
            for key in self._pop(2 * value)[::2]:
                _is_text(key)
            stack.append(_OWN_DICT)
        elif name == "BUILD_CONST_KEY_MAP":
            for key in stack.pop().value:
                _is_text(_Const(key))
            self._pop(value)
            stack.append(_OWN_DICT)
        elif name == "DICT_UPDATE":
            other = stack.pop()
            if stack[-value] != _OWN_DICT or other not in (_DICT, _OWN_DICT):
                raise _UnknownError
        elif name == "STORE_SUBSCR":
            _, owner, key = self._pop(3)
            self._change(owner, key)
        elif name == "DELETE_SUBSCR":
            self._change(*self._pop(2))
        else:
            raise _UnknownError

    def _pop(self, n: int) -> list[Any]:
        """Take so many values off the stack."""
        if n > len(self.stack):
            raise _UnknownError
        found = self.stack[len(self.stack) - n :]
        del self.stack[len(self.stack) - n :]
        return found

    def _push(self, value: Any, is_called: bool) -> None:
        """Put a value on the stack, with what is beside a function that is called next: above or below it."""
        self.stack += (value, _NULL) if is_called else (value,)

    def _get(self, name: str) -> Any:
        """Get an attribute of what is on the stack."""
        owner = self.stack.pop()
        if owner in (_DICT, _OWN_DICT):
            return _Method(owner, name)
        if owner != _SELF:
            raise _UnknownError
        self.reads.add(name)
        return {"__class__": _CLASS, "__dict__": _DICT}.get(name, _ANY)

    def _call(self, n: int, has_beside: bool) -> None:
        """Call a function of which it is known what it does."""
        args = self._pop(n)
        function, *beside = sorted(self._pop(1 + has_beside), key=lambda value: value == _NULL)
        if beside not in ([], [_NULL]):
            raise _UnknownError
        if isinstance(function, _Method):
            found = _METHODS.get((function.of, function.name))
        elif isinstance(function, _Global):
            found = _FUNCTIONS.get(function.name)
            self.calls.add(function.name)
        else:
            found = None
        if found is None:
            raise _UnknownError
        self.stack.append(found(args))

    def _change(self, owner: Any, key: Any) -> None:
        """Set or delete an item."""
        if owner != _OWN_DICT:
            raise _UnknownError
        _is_text(key)


def _is_text(key: Any) -> None:
    """Refuse a key that may be asked for its hash, or whether it is equal."""
    if not isinstance(key, _Const) or type(key.value) is not str:
        raise _UnknownError


def _copy(args: list[Any]) -> Any:
    if args:
        raise _UnknownError
    return _OWN_DICT


def _take_out(args: list[Any]) -> Any:
    if not 1 <= len(args) <= 2:
        raise _UnknownError
    _is_text(args[0])
    return _ANY


def _make_dict(args: list[Any]) -> Any:
    if args not in ([], [_DICT], [_OWN_DICT]):
        raise _UnknownError
    return _OWN_DICT


def _class_of(args: list[Any]) -> Any:
    if args != [_SELF]:
        raise _UnknownError
    return _CLASS


_METHODS: Final[dict[tuple[Any, str], Callable[[list[Any]], Any]]] = {
    (_DICT, "copy"): _copy,
    (_OWN_DICT, "copy"): _copy,
    (_OWN_DICT, "pop"): _take_out,
}
_FUNCTIONS: Final[dict[str, Callable[[list[Any]], Any]]] = {"dict": _make_dict, "type": _class_of}

#: What was found of codes, by id, with the code.
_results: Final[dict[int, tuple[CodeType, Known | None]]] = {}


def known(function: Any) -> Known | None:
    """Return what a function does, in 0.2 us but for the first time, if it may be sure to run nobody's code."""
    if type(function) is not FunctionType:
        return None
    code = function.__code__
    found = _results.get(id(code))
    if found is None:
        if len(_results) >= _MOST:  # somebody makes ever new ones
            _results.clear()
        found = _results[id(code)] = code, _run(code)
    return found[1]


def looks_up_names(function: Any, does: Known) -> bool:
    """Tell whether the names that a function looks up stand in dicts, and those that it calls for what is built in.

    Args:
        function: the function.
        does: what it does.
    """
    names = function.__globals__
    if type(names) is not dict or type(function.__builtins__) is not dict:
        return False
    for name in does.calls:
        if name in names or function.__builtins__.get(name) is not vars(builtins)[name]:
            return False
    return True


def callee(function: Any, does: Known, t: type) -> Any:
    """Return what is to be called by what a reduce gives: its instance's class, or a function or class that it knows.

    Args:
        function, does: as said.
        t: the class of the instance.

    Returns:
        None if that is not known.
    """
    called = does.makes
    if called == _CLASS:
        found: Any = t
    elif isinstance(called, _Global):
        names = function.__globals__
        found = names[called.name] if called.name in names else function.__builtins__.get(called.name)
    elif isinstance(called, _Free):
        cell = function.__closure__[function.__code__.co_freevars.index(called.name)]
        try:
            found = cell.cell_contents
        except ValueError:  # it is empty
            return None
    else:
        return None
    return found
