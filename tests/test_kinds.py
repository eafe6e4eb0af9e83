"""Kinds of objects that C writes without asking anybody, and what is so much like them that it must not."""

from __future__ import annotations

import array
import copyreg
import functools
import io
import operator
import re
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from oracle.allowed import PYPY
from oracle.compare import ALL
from oracle.ways import compare, log, some

import fastpickle
from fastpickle._stdlib import CPickler, StockPickler
from fastpickle.at_once import quick
from fastpickle.objects import asked


class Int(int):
    """Has a `__dict__`."""


class Float(float):
    """The same."""


class Text(str):
    """The same."""


class Bytes(bytes):
    """The same."""


class Complex(complex):
    """The same."""


class Tuple(tuple[Any, ...]):
    """The same: C writes no state of one that contains itself."""


class Set(set[Any]):
    """The same."""


class FrozenSet(frozenset[Any]):
    """The same."""


class BareInt(int):
    """Has no `__dict__`."""

    __slots__ = ()


class SlottedText(str):
    """Has a state of slots alone."""

    __slots__ = ("a",)


class SlottedSet(set[Any]):
    """The same, and a reduce that C would call."""

    __slots__ = ("a",)


class Converted(int):
    """Looks like another number wherever it is asked."""

    def __int__(self) -> int:
        log.append("int")
        return 3

    __index__ = __int__


class Anew(int):
    """Has its own arguments."""

    def __getnewargs__(self) -> tuple[int]:
        log.append("getnewargs")
        return (7,)


class Iterated(set[Any]):
    """Iterates in its own way, which a set's reduce asks for."""

    def __iter__(self) -> Any:
        log.append("iter")
        return iter([1, 2])


class Counted(set[Any]):
    """Has a length of its own, which a set's reduce asks for."""

    def __len__(self) -> int:
        log.append("len")
        return 1


class Stated(set[Any]):
    """Has a state of its own."""

    def __getstate__(self) -> Any:
        log.append("getstate")
        return {"a": 1}


class Error(Exception):
    """An exception of somebody's."""


class ErrorWithArgs(Error):
    """Its `args` are somebody's code."""

    @property
    def args(self) -> Any:  # type: ignore[override]  # it is to be another one
        log.append("args")
        return (1,)

    @args.setter
    def args(self, value: Any) -> None:
        pass


class ErrorWithReduce(Error):
    """So is its reduce."""

    def __reduce__(self) -> Any:
        log.append("reduce")
        return Error, (1,)


class ErrorThatReads(Error):
    """Its reduce only reads it."""

    def __reduce__(self) -> Any:
        return ErrorThatReads, ("a",)


class PartialThatReads(functools.partial[Any]):
    """The same."""

    def __reduce__(self) -> Any:
        return Callee, ()


class ErrorWithState(Error):
    """So is its state, which some exceptions ask for."""

    def __getstate__(self) -> Any:
        log.append("getstate")
        return {"a": 1}


class OSErrorWithName(OSError):
    """So is its file name, which the reduce does not ask for."""

    @property
    def filename(self) -> Any:
        log.append("filename")
        return "f"


class Namespace(types.SimpleNamespace):
    """A namespace of somebody's."""


class Partial(functools.partial[Any]):
    """A partial of somebody's."""


class Callee:
    """What is called, and may have in it what calls it."""

    held: Any = None

    def __call__(self) -> None:
        pass

    def method(self) -> None:
        pass


class NamedByProperty:
    """Is called by a method that asks it for its name."""

    def __call__(self) -> None:
        pass

    @property
    def __name__(self) -> str:
        log.append("name")
        return "method"


class Says(Protocol):
    """A protocol."""

    def say(self) -> None:
        """Say it."""


class Said(Says):
    """Has the metaclass of protocols."""

    def __init__(self, n: int) -> None:
        self.n = n

    def say(self) -> None:
        pass


class Array(array.array):  # type: ignore[type-arg]  # not in 3.10
    """Has a `__dict__`."""


def function(*args: Any) -> None:
    """Do nothing."""


def _with(made: Any, **attributes: Any) -> Any:
    vars(made).update(attributes)
    return made


class Odd(str):
    """A name that is compared by somebody's code."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        log.append(str(self))
        return str.__eq__(self, other)


def _odd(made: Any) -> Any:
    vars(made)[Odd("__reduce__")] = 1
    return made


def _in_itself(cls: Any, **attributes: Any) -> Any:
    held: list[Any] = []
    made = cls((held,))
    held.append(made)
    return _with(made, **attributes)


def _set_in_itself(**attributes: Any) -> Any:
    held = Callee()
    made = Set([held])
    held.held = made
    return _with(made, **attributes)


def _error_in_itself(*args: Any, **attributes: Any) -> Any:
    made = Error([])
    made.args[0].append(made)
    return _with(made, **attributes) if attributes else made


def _partial_of_itself(**attributes: Any) -> Any:
    callee = Callee()
    made = functools.partial(callee)
    callee.held = made
    return _with(made, **attributes) if attributes else made


def _method_in_its_object() -> Any:
    made = Callee()
    made.held = made.method
    return made.held


def _slotted(cls: Any, *args: Any) -> Any:
    made = cls(*args)
    made.a = 1
    return made


def _noted(n: int) -> Any:
    made = Error(n)
    made.__notes__ = ["a note"]  # as add_note() does from 3.11 on
    return made


def _asked_for_its_dict(made: Any) -> Any:
    """Give it a `__dict__`, which its reduce has in what it gives."""
    vars(made)
    return made


def _of_no_module() -> Any:
    """Return a class that has no `__module__`, since it was made where nothing has a name."""
    names: dict[str, Any] = {"__builtins__": {"type": type}}
    exec("OfNoModule = type('OfNoModule', (), {})", names)
    return names["OfNoModule"]


OfNoModule = _of_no_module()


def _hidden(made: Any, name: str = "__reduce__") -> Any:
    return _with(made, **{name: lambda *args: (function, (1,))})


def _within(i: int) -> Any:
    held: list[Any] = []
    held.append(slice(held, i))
    return held


#: What C writes, and nobody is asked.
FOR_C: dict[str, Callable[[int], Any]] = {
    "int": Int,
    "large int": lambda i: Int(i << 100),
    "int without a dict": BareInt,
    "int with a state": lambda i: _with(Int(i), a=[i]),
    "int in its state": lambda i: (made := Int(i), vars(made).update(a=made), made)[-1],
    "int that converts": Converted,
    "float": Float,
    "text": lambda i: Text(f"text {i}"),
    "text with surrogates": lambda i: Text(f"\ud800{i}"),
    "text with a state": lambda i: _with(Text(i), b="text"),
    "text with slots": lambda i: _slotted(SlottedText, "text"),
    "bytes": lambda i: Bytes(b"%d" % i),
    "complex": lambda i: Complex(i, 1),
    "tuple": lambda i: Tuple((i, "a")),
    "tuple in itself": lambda i: _in_itself(Tuple),
    "namespace": lambda i: types.SimpleNamespace(a=i, b=[i]),
    "empty namespace": lambda i: types.SimpleNamespace(),
    "namespace in itself": lambda i: (made := types.SimpleNamespace(), vars(made).update(a=made), made)[-1],
    "slice": lambda i: slice(i, "a", None),
    "slice in itself": _within,
    "itemgetter": lambda i: operator.itemgetter(i, "a"),
    "attrgetter": lambda i: operator.attrgetter("a", f"b.c{i}"),
    "pattern": lambda i: re.compile(f"a{i}", re.IGNORECASE),
    "pattern of bytes": lambda i: re.compile(b"a%d" % i),
    "error": lambda i: ValueError(f"text {i}", i, None, 1.5),
    "error without arguments": lambda i: KeyError(),
    "error of a class of its own": lambda i: Error(i),
    "error with a dict": lambda i: _asked_for_its_dict(Error(i)),
    "error with a state": lambda i: _with(Error(i), a=i),
    "error with notes": _noted,
    "error with a cause": lambda i: (made := Error(i), setattr(made, "__cause__", ValueError()), made)[-1],
    "error of the system": lambda i: FileNotFoundError(2, "text", f"name {i}"),
    "error of the system with two names": lambda i: OSError(2, "text", f"name {i}", None, "b"),
    "error of the system without": lambda i: OSError("text"),
    "partial": lambda i: functools.partial(function, i, a=[i]),
    "partial of a class": lambda i: functools.partial(Callee, i),
    "partial of a builtin": lambda i: functools.partial(len, i),
    "partial with a dict": lambda i: _asked_for_its_dict(functools.partial(function, i)),
    "partial with a state": lambda i: _with(functools.partial(function, i), a=i),
    "method": lambda i: Callee().method,
    "method in its object": lambda i: _method_in_its_object(),
    "protocol": Said,
    "class of a protocol": lambda i: [Said, Says],
    "array": lambda i: array.array("i", [i, 1]),
    "empty array": lambda i: array.array("d"),
    "array of characters": lambda i: array.array("u" if sys.version_info < (3, 13) else "w", "text"),
}
if "__getstate__" in vars(object):  # before, a set's reduce gives its `__dict__`, even an empty one
    FOR_C |= {
        "set": lambda i: Set([i]),
        "frozenset": lambda i: FrozenSet([i, "a"]),
        "set in itself": lambda i: _set_in_itself(),
    }
#: What stock writes otherwise than C, or asks somebody about; and what nobody knows.
NOT_FOR_C: dict[str, Callable[[int], Any]] = {
    "arguments of its own": Anew,
    "tuple in itself with a state": lambda i: _in_itself(Tuple, a=1),
    "tuple with a state": lambda i: _with(Tuple((i,)), a=1),
    "set with a state": lambda i: _with(Set([i]), a=1),
    "set in itself with a state": lambda i: _set_in_itself(a=1),
    "set that iterates": lambda i: Iterated([i]),
    "set that counts": lambda i: Counted([i]),
    "error that reads": lambda i: ErrorThatReads(i),
    "partial that reads": lambda i: PartialThatReads(function, i),
    "text with a strange attribute": lambda i: _odd(Text(i)),
    "error with a strange attribute": lambda i: _odd(Error(i)),
    "partial with a strange attribute": lambda i: _odd(functools.partial(function)),
    "namespace with a strange attribute": lambda i: _odd(types.SimpleNamespace()),
    "set with a state of its own": lambda i: Stated([i]),
    "set with slots": lambda i: _slotted(SlottedSet, [i]),
    "hidden reduce of a text": lambda i: _hidden(Text(i)),
    "hidden reduce of an error": lambda i: _hidden(Error(i)),
    "hidden reduce of a partial": lambda i: _hidden(functools.partial(function), "__reduce_ex__"),
    "hidden reduce of a namespace": lambda i: _hidden(types.SimpleNamespace(a=1)),
    "error in itself": lambda i: _error_in_itself(),
    "error in itself with a state": lambda i: _error_in_itself(a=1),
    "error with more arguments": lambda i: Error([i]),
    "error with arguments of its own": lambda i: ErrorWithArgs(i),
    "error with a reduce of its own": lambda i: ErrorWithReduce(i),
    "error with a state of its own": lambda i: ErrorWithState(i),
    "error with a name of its own": lambda i: OSErrorWithName(2, "text", "name"),
    "error with a name that is none": lambda i: OSError(2, "text", [i]),
    "error with a getstate": lambda i: AttributeError("text", name="a", obj=[i]),
    "error of an import": lambda i: ImportError("text", name="a", path="b"),
    "error of a codec": lambda i: UnicodeDecodeError("utf-8", b"a", 0, 1, "text"),
    "error that stops": lambda i: StopIteration(i),
    "namespace of its own": lambda i: Namespace(a=i),
    "partial of its own": lambda i: Partial(function, i),
    "partial of an object": lambda i: functools.partial(Callee(), i),
    "partial of itself": lambda i: _partial_of_itself(),
    "partial of itself with a state": lambda i: _partial_of_itself(a=1),
    "partial of a method": lambda i: functools.partial([i].append),
    "method of an object": lambda i: types.MethodType(NamedByProperty(), i),
    "method of a method": lambda i: types.MethodType([].append, i),
    "of no module": lambda i: OfNoModule(),
    "methodcaller": lambda i: operator.methodcaller("a", i, b=i),
    "pattern of a text of its own": lambda i: re.compile(Text(f"a{i}")),
    "array of its own": lambda i: Array("i", [i]),
    "array with a state": lambda i: _with(Array("i", [i]), a=1),
}
if PYPY:  # whose engine looks such names up once more
    del NOT_FOR_C["namespace with a strange attribute"]
if sys.version_info >= (3, 11):
    NOT_FOR_C["group of errors"] = lambda i: ExceptionGroup("text", [ValueError(i)])  # noqa: F821  # from 3.11 on
    NOT_FOR_C["error with a note of its own"] = lambda i: _with(Error(i), __notes__=[Text("a")])


@pytest.mark.parametrize("many", [3] if PYPY else [1, 3, 60, 1001])  # where there is no C, one way is like another
@pytest.mark.parametrize("name", FOR_C | NOT_FOR_C)
def test_same_bytes(name: str, many: int) -> None:
    """Whatever writes them; and what runs somebody's code runs it as often as in stock."""
    make = (FOR_C | NOT_FOR_C)[name]
    for protocol in ALL if many == 3 else (2, 4, 5) if many < 1000 else (4,):
        compare(some(make, many), protocol)
        compare(lambda: make(0), protocol)
        if many == 60:
            compare(lambda: {"a": [make(0)], "b": [(i, make(i)) for i in range(60)]}, protocol)


@pytest.mark.skipif(CPickler is None or PYPY, reason="there is no C pickler")
@pytest.mark.parametrize("name", FOR_C)
def test_by_c(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only proof that C has been asked is that it has written it."""
    found = []
    ask = quick.Quick.at_once
    monkeypatch.setattr(quick.Quick, "at_once", lambda *args: (found.append(ask(*args)), found[-1])[1])
    for many in (1, 60):
        fastpickle.dumps([FOR_C[name](i) for i in range(many)])
        assert found.pop()


_LAZY = {
    name: make
    for name, make in (FOR_C | NOT_FOR_C).items()
    if name.startswith(("error", "partial")) and "strange" not in name
}


@pytest.mark.parametrize("name", _LAZY)
def test_no_dict_is_made(name: str) -> None:
    """To be asked for a `__dict__` gives them one, which is in the next dump then."""
    for many in (1, 60):
        made = [_LAZY[name](i) for i in range(many)]
        reduce = (
            functools.partial if name.startswith("partial") else OSError if "system" in name else Exception
        ).__reduce__
        reduced = [reduce(x) for x in made]
        for protocol in (2, 4):
            fastpickle.dumps(made, protocol)
            fastpickle.Pickler(io.BytesIO(), protocol).dump(made)
        assert str([reduce(x) for x in made]) == str(reduced)


@pytest.mark.parametrize("many", [1, 60])
def test_other_entry(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's entry in copyreg's table, for a type that had none, and for one that had."""
    for t in (slice, re.Pattern, Int, types.MethodType, ValueError):
        with monkeypatch.context() as patch:
            patch.setitem(copyreg.dispatch_table, t, lambda x: (log.append("entry"), (function, (1,)))[1])
            for make in (FOR_C["slice"], FOR_C["pattern"], Int, FOR_C["method"], FOR_C["error"]):
                for protocol in (2, 4):
                    compare(some(make, many), protocol)


@pytest.mark.parametrize("many", [3, 60])
def test_class_that_changes(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class is looked at anew in each dump."""
    for cls, name, given in (
        (Int, "__getnewargs__", (1,)),
        (Set, "__getstate__", {"a": 1}),
        (Error, "__reduce__", (Error, (2,))),
        (Tuple, "__getnewargs__", ((1,),)),
    ):
        make = some(lambda i, cls=cls: cls([i]) if cls is Set or cls is Tuple else cls(i), many)
        fastpickle.dumps(make())
        with monkeypatch.context() as patch:
            patch.setattr(cls, name, lambda self, given=given: (log.append("asked"), given)[1], raising=False)
            compare(make, 4)
        compare(make, 4)


def test_stock_is_right() -> None:
    """C writes no state of what contains itself, which these tests are about."""
    if CPickler is not None and not PYPY:
        for make in ("tuple in itself with a state", "set in itself with a state", "partial of itself with a state"):
            by_c, by_python = io.BytesIO(), io.BytesIO()
            CPickler(by_c, 4).dump(NOT_FOR_C[make](0))
            StockPickler(by_python, 4).dump(NOT_FOR_C[make](0))
            assert by_c.getvalue() != by_python.getvalue(), make


def test_metaclass() -> None:
    assert type(Said) in asked.METACLASSES
