"""Functions of a class that are sure to run nobody's code but the interpreter's, by their bytecode.

    def __reduce__(self): return Point, (self.x, self.y)     def __getstate__(self):
    def __getstate__(self): return {"x": self.x}                 state = self.__dict__.copy()
    def __getstate__(self): return (self.x, self.y)              del state["lock"]; return state

    code --(`_run`: each instruction once, with what is known of the stack)--> Known: what it reads of `self`, and makes
                                                                               None:  it may run anything

    {name: getattr(self, name) for name in names}, as attrs has it: the code is compared with that of the same function

That is what most people write for pickle, and nearly half of what libraries do: no branches, nothing is called but
methods of a dict that is its own.
Such a function sees nothing but the instance and changes nothing, so that C may call it, too, and as often as it likes.
An instruction that is not known here, as those of later Pythons, may do anything.

Not for: how attributes are got, and what else a reduce asks of a class (`asked`).
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from .._stdlib import HAS_KNOWN_BYTECODE
from ..interrupts import GivenUp, is_interrupt

__all__ = ["Known", "callee", "is_alike", "known", "looks_up_names", "reads"]


class Known(NamedTuple):
    """What a function does that runs nobody's code but for what it reads.

    Attributes:
        reads: the names of what it reads of `self`, but for `__class__` and `__dict__`.
        has_dict: whether it reads the `__dict__`.
        calls: the names of what it calls, which are to stand for the builtin functions.
        makes: what it gives to be called with a tuple of arguments, and perhaps a state, as a reduce does: one of the
            kinds below; None if it gives something else.
        names_in: the variable of the function around that has the names of what it reads, if that is no constant.
    """

    reads: frozenset[str]
    has_dict: bool
    calls: frozenset[str]
    makes: Any
    names_in: str | None = None


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

_USUAL: Final = frozenset(("__class__", "__dict__"))
#: What makes a generator or a coroutine of a function.
_RUNS_LATER: Final = CO_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR
#: A longer function is not looked into.
_LONGEST: Final = 1000
#: So many codes are remembered.
_MOST: Final = 4096


class _UnknownError(GivenUp):
    """An instruction may run anything."""


def _run(code: CodeType) -> Known | None:
    """Go through a function's instructions, once, as they would be run."""
    if (
        not HAS_KNOWN_BYTECODE
        or code.co_argcount < 1
        or len(code.co_code) > _LONGEST
        or code.co_flags & _RUNS_LATER  # whoever compiled it
    ):
        return None
    if any(is_alike(code, other) for other in _codes_of_attrs):
        return Known(frozenset(), False, frozenset(("getattr",)), None, code.co_freevars[0])
    if (
        not _OPCODES.issuperset(code.co_code[::2])  # most often, and in 1 us
        or code.co_cellvars
        or getattr(code, "co_exceptiontable", None)  # an exception would be caught
        or not _are_usual(code.co_consts)
    ):
        return None
    state = _State(code)
    *instructions, last = dis.get_instructions(code)
    for instruction in instructions:
        _STEPS[instruction.opname](state, instruction)
    if last.opname == "RETURN_CONST":
        value: Any = _Const(last.argval)
    elif last.opname == "RETURN_VALUE":
        value = state.stack.pop()
    else:
        return None
    reads = frozenset(state.reads)
    return Known(reads - _USUAL, "__dict__" in reads, frozenset(state.calls), _called_in(value))


def _are_usual(constants: tuple[Any, ...]) -> bool:
    """Tell whether all constants are such as the compiler makes: others may be asked whether they are equal."""
    return all(
        _are_usual(tuple(x)) if type(x) is tuple or type(x) is frozenset else id(type(x)) in _CONSTANTS
        for x in constants
    )


_CONSTANTS: Final = frozenset(map(id, (type(None), bool, int, float, complex, str, bytes, type(...), slice, CodeType)))


def _like_attrs(names: tuple[str, ...]) -> tuple[Any, Any]:
    """Return what attrs gives a class with slots for its `__getstate__`, and the same with no docstring."""

    def slots_getstate(self: Any) -> dict[str, Any]:
        """Have one."""
        return {name: getattr(self, name) for name in names}

    def getstate(self: Any) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    return slots_getstate, getstate


_codes_of_attrs: Final = [function.__code__ for function in _like_attrs(())]


def is_alike(code: CodeType, other: CodeType) -> bool:
    """Tell whether two functions do the same, but for the names of their variables and what they are documented by."""
    if (
        code.co_code != other.co_code
        or code.co_names != other.co_names
        or (code.co_flags ^ other.co_flags) & _RUNS_LATER
        or getattr(code, "co_exceptiontable", None) != getattr(other, "co_exceptiontable", None)
        or [len(code.co_freevars), len(code.co_cellvars), len(code.co_consts), code.co_argcount]
        != [len(other.co_freevars), len(other.co_cellvars), len(other.co_consts), other.co_argcount]
    ):
        return False
    for x, y in zip(code.co_consts, other.co_consts, strict=True):
        if isinstance(x, CodeType) and isinstance(y, CodeType):
            if not is_alike(x, y):
                return False
        elif type(x) is not type(y) or (x is not None and type(x) is not str):
            return False
    return True


def _called_in(value: Any) -> Any:
    """Return what is to be called by what a reduce gives.

    There may be a state only if there are no arguments: C writes none for what contains itself, as Python does.
    """
    if not isinstance(value, _Tuple) or not 2 <= len(value.items) <= 3:
        return None
    called, args, *state = value.items
    is_empty = not args.items if isinstance(args, _Tuple) else isinstance(args, _Const) and args.value == ()
    return None if state and not is_empty else called


class _State:
    """What is known at an instruction: of the stack and the variables, and what has been read and called."""

    def __init__(self, code: CodeType) -> None:
        self.variables: dict[str, Any] = dict.fromkeys(code.co_varnames[: code.co_argcount], _ANY)
        self.variables[code.co_varnames[0]] = _SELF
        self.reads: set[str] = set()
        self.calls: set[str] = set()
        self.stack: list[Any] = []

    def go_on(self, instruction: Any) -> None:
        """Do nothing that matters."""

    def load(self, instruction: Any) -> None:
        self.stack.append(self.variables[instruction.argval])

    def load_two(self, instruction: Any) -> None:
        self.stack += [self.variables[name] for name in instruction.argval]

    def store(self, instruction: Any) -> None:
        self.variables[instruction.argval] = self.stack.pop()

    def store_and_load(self, instruction: Any) -> None:
        stored, loaded = instruction.argval
        self.variables[stored] = self.stack.pop()
        self.stack.append(self.variables[loaded])

    def store_two(self, instruction: Any) -> None:
        for name in instruction.argval:
            self.variables[name] = self.stack.pop()

    def load_constant(self, instruction: Any) -> None:
        self.stack.append(_Const(instruction.argval))

    def load_global(self, instruction: Any) -> None:
        self._push(_Global(instruction.argval), instruction.argrepr != instruction.argval)

    def load_free(self, instruction: Any) -> None:
        self.stack.append(_Free(instruction.argval))

    def push_null(self, instruction: Any) -> None:
        self.stack.append(_NULL)

    def pop(self, instruction: Any) -> None:
        self.stack.pop()

    def get_attribute(self, instruction: Any) -> None:
        name = instruction.argval
        owner = self.stack.pop()
        if owner in (_DICT, _OWN_DICT):
            found: Any = _Method(owner, name)
        elif owner == _SELF:
            self.reads.add(name)
            found = {"__class__": _CLASS, "__dict__": _DICT}.get(name, _ANY)
        else:
            raise _UnknownError
        self._push(found, instruction.opname == "LOAD_METHOD" or instruction.argrepr != name)

    def call(self, instruction: Any) -> None:
        """Call a function of which it is known what it does."""
        args = self._pop(instruction.arg or 0)
        function, *beside = sorted(
            self._pop(1 if instruction.opname == "CALL_FUNCTION" else 2), key=lambda value: value == _NULL
        )
        if beside not in ([], [_NULL]):
            raise _UnknownError
        if isinstance(function, _Method):
            found = _METHODS[function.of, function.name]
        elif isinstance(function, _Global):
            found = _FUNCTIONS[function.name]
            self.calls.add(function.name)
        else:
            raise _UnknownError
        self.stack.append(found(args))

    def build_tuple(self, instruction: Any) -> None:
        self.stack.append(_Tuple(tuple(self._pop(instruction.argval))))

    def build_list(self, instruction: Any) -> None:
        self._pop(instruction.argval)
        self.stack.append(_ANY)

    def build_dict(self, instruction: Any) -> None:
        for key in self._pop(2 * instruction.argval)[::2]:
            _is_text(key)
        self.stack.append(_OWN_DICT)

    def build_dict_of_keys(self, instruction: Any) -> None:
        for key in self.stack.pop().value:
            _is_text(_Const(key))
        self._pop(instruction.argval)
        self.stack.append(_OWN_DICT)

    def update_dict(self, instruction: Any) -> None:
        other = self.stack.pop()
        if self.stack[-instruction.argval] != _OWN_DICT or other not in (_DICT, _OWN_DICT):
            raise _UnknownError

    def set_item(self, instruction: Any) -> None:
        _, owner, key = self._pop(3)
        _is_own(owner)
        _is_text(key)

    def delete_item(self, instruction: Any) -> None:
        owner, key = self._pop(2)
        _is_own(owner)
        _is_text(key)

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


#: What is done at an instruction, by its name in some of the Pythons.
_STEPS: Final[dict[str, Callable[[_State, Any], None]]] = {
    **dict.fromkeys(("RESUME", "NOP", "COPY_FREE_VARS", "PRECALL", "CACHE", "NOT_TAKEN", "EXTENDED_ARG"), _State.go_on),
    **dict.fromkeys(("LOAD_FAST", "LOAD_FAST_BORROW"), _State.load),
    **dict.fromkeys(("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"), _State.load_two),
    "STORE_FAST": _State.store,
    "STORE_FAST_LOAD_FAST": _State.store_and_load,
    "STORE_FAST_STORE_FAST": _State.store_two,
    **dict.fromkeys(("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT"), _State.load_constant),
    "LOAD_GLOBAL": _State.load_global,
    "LOAD_DEREF": _State.load_free,
    "PUSH_NULL": _State.push_null,
    "POP_TOP": _State.pop,
    **dict.fromkeys(("LOAD_ATTR", "LOAD_METHOD"), _State.get_attribute),
    **dict.fromkeys(("CALL", "CALL_FUNCTION", "CALL_METHOD"), _State.call),
    "BUILD_TUPLE": _State.build_tuple,
    "BUILD_LIST": _State.build_list,
    "BUILD_MAP": _State.build_dict,
    "BUILD_CONST_KEY_MAP": _State.build_dict_of_keys,
    "DICT_UPDATE": _State.update_dict,
    "STORE_SUBSCR": _State.set_item,
    "DELETE_SUBSCR": _State.delete_item,
}
_OPCODES: Final = frozenset(
    dis.opmap[name] for name in (*_STEPS, "RETURN_VALUE", "RETURN_CONST") if name in dis.opmap
) | {0}  # what they cache


def _is_own(owner: Any) -> None:
    """Refuse to change what the function does not have for itself."""
    if owner != _OWN_DICT:
        raise _UnknownError


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
        try:
            does = _run(code)
        except Exception as exc:  # an unknown instruction, a name that may not be bound, a code that nobody compiled
            if type(exc) is not RecursionError and is_interrupt(exc):
                raise
            does = None
        found = _results[id(code)] = code, does
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
    for name in does.calls:  # noqa: SIM110  # any() of a generator takes three times as long
        if name in names or function.__builtins__.get(name) is not _BUILTINS[name]:
            return False
    return True


#: As they were at import.
_BUILTINS: Final[dict[str, Any]] = {"dict": dict, "getattr": getattr, "type": type}


def reads(function: Any, does: Known) -> frozenset[str] | None:
    """Return the names of what a function reads of `self`, but for `__class__` and `__dict__`.

    Args:
        function, does: as said.

    Returns:
        None if they are not known, or no texts.
    """
    if does.names_in is None:
        return does.reads
    names = _in_cell(function, does.names_in)
    if type(names) is not tuple or not all(type(name) is str for name in names):
        return None
    return frozenset(names)


def _in_cell(function: Any, name: str) -> Any:
    """Return what a variable of the function around stands for; None if for nothing yet."""
    try:
        return function.__closure__[function.__code__.co_freevars.index(name)].cell_contents
    except ValueError:
        return None


def callee(function: Any, does: Known, t: type) -> Any:
    """Return what is to be called by what a reduce gives: its instance's class, or a function or class that it knows.

    Args:
        function, does: as said; its names have been looked at.
        t: the class of the instance.

    Returns:
        None if that is not known.
    """
    called = does.makes
    if called == _CLASS:
        return t
    if isinstance(called, _Global):
        names = function.__globals__
        return names[called.name] if called.name in names else function.__builtins__.get(called.name)
    return _in_cell(function, called.name) if isinstance(called, _Free) else None
