"""Reduces of one's own that run nobody's code: which are known by their bytecode, and that the bytes are stock's."""

from __future__ import annotations

import abc
import builtins
import copyreg
import inspect
import types
import weakref
from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any

import pytest
from oracle.allowed import PYPY
from oracle.compare import ALL, stock_dumps
from oracle.parts import APartOf
from oracle.ways import by, compare, log, outcome, some

import fastpickle
from fastpickle._stdlib import CPickler, StockPickler
from fastpickle.at_once import quick
from fastpickle.objects import bytecode, instances, likely

if PYPY:
    pytest.skip("its instructions are others", allow_module_level=True)


class Point:
    """Has what the functions below read."""

    def __init__(self, n: int = 1) -> None:
        self.a = n
        self.b = [n, str(n)]
        self.lock = None

    def method(self) -> int:
        return self.a

    @property
    def asked(self) -> int:
        log.append("asked")
        return 5


class Other(Point):
    """Another class."""


newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it


def make_other(*args: Any) -> Other:
    """Be what a reduce gives to be called."""
    return Other()


class Callable_:
    """May be called, and is asked for its name."""

    def __call__(self, *args: Any) -> Other:
        return Other()

    def __getattr__(self, name: str) -> Any:
        if name == "__name__":
            log.append(name)
        raise AttributeError(name)

    def __reduce__(self) -> str:
        return "CALLABLE"


CALLABLE = Callable_()


def _points_class() -> Any:
    """Have a function in a class see that class, as `super()` does."""

    class Inner(Point):
        def __reduce__(self) -> Any:
            return __class__, (self.a,)  # type: ignore[name-defined]  # mypy does not know it

    return Inner


#: What a `__reduce__`, `__reduce_ex__` or `__getstate__` does that is known to run nobody's code.
KNOWN = {
    "reduce_named": "return Made, (self.a,)",
    "reduce_class": "return self.__class__, (self.a,)",
    "reduce_type": "return type(self), (self.a,)",
    "reduce_other": "return Other, (self.a,)",
    "reduce_function": "return make_other, (self.a, self.b)",
    "reduce_builtin": "return int, ()",
    "reduce_builtin_function": "return getattr, (self.b, '__len__')",
    "reduce_none": "return Made, ()",
    "reduce_constant": "return Made, (7,)",
    "reduce_state": "return Made, (), self.__dict__",
    "reduce_own_state": 'return Made, (), {"a": self.a, "b": self.b}',
    "reduce_attribute": "return Made, self.args",
    "reduce_ex": "return Made, (self.a, protocol)",
    "reduce_variables": """
        a = self.a
        args = a, self.b
        return Made, args
    """,
    "state_copy": "return self.__dict__.copy()",
    "state_dict": "return self.__dict__",
    "state_without": """
        state = self.__dict__.copy()
        del state["lock"]
        return state
    """,
    "state_changed": """
        state = dict(self.__dict__)
        state["lock"] = None
        state.pop("b", None)
        state.pop("a")
        return state
    """,
    "state_merged": 'return {**self.__dict__, "more": 1}',
    "state_pair": "return self.a, self.b",
    "state_list": "return [self.a, self.b, self.a]",
    "state_named": 'return {"a": self.a, "b": self.b, "c": "text"}',
    "state_one": "return self.b",
    "state_none": "return None",
    "state_false": "return False",
    "state_method": "return self.method",
    "state_class": "return (self.__class__, Other, self.a)",
    "state_long": """
        return (self.a, self.b, self.a, self.b, self.a, self.b, self.a, self.b, self.a, self.b, self.a, [self.a],
                {"a": [self.b, self.a, 1000, 2.5, None, True, b"x", 1 << 70]}, (), {}, [])
    """,
    "state_on_a_line": 'd = self.__dict__.copy(); del d["lock"]; a = self.a; b = a; d["x"] = a, b; return d',
    "state_missing": "return self.a, self.nothing",
    "state_without_missing": """
        state = self.__dict__.copy()
        del state["nothing"]
        return state
    """,
}
#: Their bytecode is known, but not what comes of it.
NOT_MAKING = {
    "reduce_newobj": "return newobj, (Made,)",
    "reduce_unknown": "return self.a, ()",
    "reduce_nothing": "return nothing_of_that_name, (self.a,)",
    "reduce_callable": "return CALLABLE, (self.a,)",
    "reduce_five": "return Made, (self.a,), None, None, None",
    "reduce_with_state": "return Made, (self.a,), self.__dict__",
    "reduce_text": 'return "Made"',
    "state_asked": "return self.asked",
}
UNKNOWN = {
    "reduce_called": "return Made, (len(self.b),)",
    "reduce_in_a_module": "return copyreg.__newobj__, (Made,)",
    "state_logged": 'log.append("state"); return self.a',
    "state_sub": "return self.b[0]",
    "state_set": "self.a = 2; return self.__dict__",
    "state_if": "return self.__dict__ if self.a else None",
    "state_loop": 'return {name: getattr(self, name) for name in ("a", "b")}',
    "state_or": "return self.a or self.b",
    "state_text": 'return f"{self.lock}"',
    "state_sum": "return self.a + 1",
    "state_unpacked": "a, b = self.b; return a",
    "state_own": 'self.__dict__["a"] = 2; return self.__dict__',
    "state_popped": 'return self.__dict__.pop("a")',
    "state_updated": """
        state = self.__dict__.copy()
        state.update(a=1)
        return state
    """,
    "state_other_key": "return {self.a: 1}",
    "state_other_dict": "return {**self.b}",
    "state_of_other": "return self.b.copy",
    "state_deleted": "del self.a; return None",
    "state_global": "global seen; seen = self",
    "state_generator": "yield self.a",
    "state_async": "return self.a",
    "state_lambda": "return (lambda: self.a)()",
    "state_nested": "return (lambda: self)",
    "state_try": """
        try:
            return self.nothing
        except AttributeError:
            log.append("caught")
            return 5
    """,
    "state_with": """
        with self.a:
            return 1
    """,
    "state_is": "return self.a is None",
    "state_super": "return super().__getstate__()",
    "state_import": """
        import os
        return os
    """,
    "state_unbound": """
        del self
        return self
    """,
}


def _function(name: str, body: str) -> Any:
    """Return a function of that name that does that."""
    arguments = "self, protocol" if name == "reduce_ex" else "self"
    start = "async def" if name == "state_async" else "def"
    made: dict[str, Any] = {}
    exec(f"{start} {name}({arguments}):\n{indent(dedent(body), '    ')}", globals(), made)
    return made[name]


FUNCTIONS: dict[str, Any] = {name: _function(name, body) for name, body in (KNOWN | NOT_MAKING | UNKNOWN).items()}


class Made(Point):
    """Gets one of the functions, a copy with a code of its own."""


class Slotted:
    """Gets one of them, too."""

    __slots__ = ("a", "args", "b", "lock")

    def __init__(self, n: int = 1) -> None:
        self.a = n
        self.b = [n]
        self.lock = None


def give(patch: pytest.MonkeyPatch, name: str, cls: Any = Made) -> None:
    """Give a class one of the functions, with a code of its own, as its reduce or state."""
    kind = name.partition("_")[0]
    method = "__getstate__" if kind == "state" else "__reduce_ex__" if name == "reduce_ex" else "__reduce__"
    own = types.FunctionType(FUNCTIONS[name].__code__.replace(), globals(), name)
    patch.setattr(cls, method, own, raising=False)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_which_are_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (bytecode.known(FUNCTIONS[name]) is None) is (name in UNKNOWN)
    monkeypatch.setattr(likely, "were_known", {})
    give(monkeypatch, name)
    assert (instances.names(Made, None) is None) is (name not in KNOWN)
    assert instances.has_known_reduce(Made) is (name in KNOWN)
    assert name not in KNOWN or not likely.is_somebodys(Made)
    assert name in KNOWN or likely.is_somebodys(Made)


def _shared() -> list[Any]:
    made = Made(1)
    made.b = ["x", made]
    return [made, made.b, made, Made(2), made.__dict__]


def _with_args() -> list[Any]:
    found = [Made(i) for i in range(40)]
    for i, made in enumerate(found):
        made.args = (i, "x") if i % 7 else [1]
    return found


def _in_its_arguments() -> Any:
    made = Made(1)
    made.a = [made, 5]
    made.args = ([made],)
    return made


WHERE: dict[str, Callable[[], Any]] = {
    "alone": lambda: Made(1),
    "few": lambda: [Made(i) for i in range(3)],
    "in rows": lambda: [{"id": i, "made": Made(i)} for i in range(10)],
    "many": lambda: [Made(i) for i in range(70)],
    "a thousand": lambda: {i: Made(i) for i in range(1001)},
    "much in one": lambda: Made([*range(3000)]),
    "shared": _shared,
    "with arguments": _with_args,
    "in its arguments": _in_its_arguments,
    "beside somebody's": lambda: [Made(1), Logged(1), Made(2), [Made(3), [Logged(2)], *range(100)], Made(4)],
    "far inside": lambda: [[[{"x": (Made(1), [Made(2)])}]] * 2, Made(3)],
}


class Logged:
    """Has a reduce that is to be called just as often, where stock calls it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        log.append(self.value)
        return Logged, (self.value,)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "state_async"])  # nobody awaits it
def test_same_bytes(name: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a class has for a reduce; each instance's functions see and say the same."""
    give(monkeypatch, name)
    for protocol in ALL if where == "few" else (2, 4) if name in KNOWN else (4,):
        compare(WHERE[where], protocol)


@pytest.mark.parametrize(
    "name", ["state_pair", "state_named", "state_copy", "state_dict", "state_changed", "reduce_type"]
)
@pytest.mark.parametrize("many", [1, 5, 60])
def test_slots(name: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, name, Slotted)
    for protocol in (2, 4):
        compare(some(Slotted, many), protocol)


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler")
@pytest.mark.parametrize("name", [x for x in KNOWN if not x.endswith("missing") and x != "state_method"])
def test_by_c(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known goes to C, the only proof of which is that C has written it."""
    found = []
    ask = quick.Quick.at_once
    monkeypatch.setattr(quick.Quick, "at_once", lambda *args: (found.append(ask(*args)), found[-1])[1])
    give(monkeypatch, name)

    def make() -> list[Any]:
        made = [Made(i) for i in range(70)]
        for x in made:
            x.args = (1, 2)
        return made

    fastpickle.dumps(make(), 4)
    assert found.pop()


def _set_in_cell(cls: Any) -> None:
    (cell,) = cls.__reduce__.__closure__
    cell.cell_contents = Other


#: What another object's reduce does to the class, or to what its function sees.
CHANGES: dict[str, Callable[[pytest.MonkeyPatch], object]] = {
    "reduce": lambda patch: patch.setattr(Made, "__reduce__", lambda self: (Other, (3,)), raising=False),
    "reduce_ex": lambda patch: patch.setattr(Made, "__reduce_ex__", lambda self, p: (Other, (3,)), raising=False),
    "state": lambda patch: patch.setattr(Made, "__getstate__", FUNCTIONS["state_logged"], raising=False),
    "code": lambda patch: patch.setattr(vars(Made)["__reduce__"], "__code__", FUNCTIONS["reduce_builtin"].__code__),
    "new arguments": lambda patch: patch.setattr(
        Made, "__getnewargs__", lambda self: (log.append(1), 2), raising=False
    ),
    "property": lambda patch: patch.setattr(
        Made, "a", property(lambda self: log.append("a"), lambda self, value: None), raising=False
    ),
    "property of a base": lambda patch: patch.setattr(
        Point, "a", property(lambda self: log.append("a"), lambda self, value: None), raising=False
    ),
    "getattribute": lambda patch: patch.setattr(
        Made, "__getattribute__", lambda self, name: (log.append(name), object.__getattribute__(self, name))[1]
    ),
    "class": lambda patch: patch.setattr(Made, "__class__", Other, raising=False),
    "name in the module": lambda patch: patch.setitem(globals(), "Made", Other),
    "dict in the module": lambda patch: patch.setitem(globals(), "dict", lambda *args: (log.append("dict"), {})[1]),
    "type in the module": lambda patch: patch.setitem(globals(), "type", lambda *args: (log.append("type"), Other)[1]),
    "dict everywhere": lambda patch: patch.setattr(builtins, "dict", lambda *args: (log.append("dict"), {})[1]),
    "copyreg": lambda patch: patch.setitem(copyreg.dispatch_table, Made, lambda self: (Other, (9,))),
}


class Changing:
    """Changes something when it is reduced."""

    patch: Any = None
    how = ""

    def __reduce__(self) -> Any:
        CHANGES[Changing.how](Changing.patch)
        log.append("changed")
        return int, ()


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("name", ["reduce_named", "reduce_type", "state_pair", "state_changed"])
@pytest.mark.parametrize("many", [1, 60])
def test_changed_by_another(how: str, name: str, many: int) -> None:
    """What is known of a class is forgotten when somebody's code has run."""
    if how == "code" and name.startswith("state"):
        pytest.skip("there is no reduce of its own")
    Changing.how = how

    def make() -> Any:
        return [Made(1), [Made(i) for i in range(many)], Changing(), Made(2), *[Made(i) for i in range(70)]]

    def changed(dump: Any) -> Any:
        def run(obj: Any, protocol: int) -> Any:
            with pytest.MonkeyPatch.context() as patch:
                Changing.patch = patch
                give(patch, name)
                return dump(obj, protocol)

        return outcome(run, make, 4)

    assert changed(fastpickle.dumps) == changed(stock_dumps)
    assert changed(by(fastpickle.Pickler)) == changed(by(StockPickler))


class Meta(type):
    """A metaclass of somebody's."""


class OwnDict(dict[str, Any]):
    """A dict of somebody's, which an instance may have for its own."""

    def copy(self) -> Any:
        log.append("copy")
        return {"a": 1}

    def keys(self) -> Any:
        log.append("keys")
        return super().keys()


def _with_own_dict() -> Any:
    made = Made(1)
    made.__dict__ = OwnDict(a=1, b=2, lock=3)
    return made


def _hiding(name: str) -> Callable[[], Any]:
    def make() -> Any:
        made = Made(1)
        made.__dict__[name] = lambda *args: (log.append(name), (Other, (1,)))[1]
        return made

    return make


STRANGE: dict[str, Callable[[], Any]] = {
    "its own dict": _with_own_dict,
    "hidden reduce": _hiding("__reduce__"),
    "hidden reduce_ex": _hiding("__reduce_ex__"),
    "hidden state": _hiding("__getstate__"),
    "a method among its attributes": _hiding("b"),
}


@pytest.mark.parametrize(
    "name", ["reduce_named", "state_copy", "state_dict", "state_changed", "state_merged", "state_pair"]
)
@pytest.mark.parametrize("how", STRANGE)
def test_strange_instance(name: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, name)
    for make in (STRANGE[how], lambda: [Made(1), STRANGE[how](), Made(2)], lambda: [*WHERE["many"](), STRANGE[how]()]):
        for protocol in (2, 4):
            compare(make, protocol)


class _Descriptor:
    def __get__(self, obj: Any, cls: Any = None) -> Any:
        log.append("got")
        return 5


CLASSES: dict[str, Callable[[], Any]] = {
    "property": lambda: type("Strange", (Point,), {"a": property(lambda self: log.append("a"), lambda self, x: None)}),
    "descriptor": lambda: type("Strange", (Point,), {"b": _Descriptor()}),
    "getattr": lambda: type("Strange", (Point,), {"__getattr__": lambda self, name: log.append(name)}),
    "getattribute": lambda: type(
        "Strange",
        (Point,),
        {"__getattribute__": lambda self, name: (log.append(name), object.__getattribute__(self, name))[1]},
    ),
    "a class's value": lambda: type("Strange", (Point,), {"more": 5}),
    "metaclass": lambda: Meta("Strange", (Point,), {}),
    "abstract": lambda: abc.ABCMeta("Strange", (Point,), {}),
    "subclass": lambda: type("Strange", (type("Between", (Point,), {"__getstate__": FUNCTIONS["state_logged"]}),), {}),
    "exception": lambda: type("Strange", (Point, ValueError), {}),
    "list": lambda: type("Strange", (Point, list), {}),
    "dict": lambda: type("Strange", (Point, dict), {"__hash__": object.__hash__}),
    "tuple": lambda: type("Strange", (tuple,), {"a": 1, "b": 2, "__init__": lambda self, n: None}),
    "class of another name": lambda: type("__newobj__", (Point,), {}),
    "static": lambda: type("Strange", (Point,), {"__reduce__": staticmethod(lambda: (int, ()))}),
    "callable": lambda: type("Strange", (Point,), {"__reduce__": _Descriptor()}),
    "inner": _points_class,
    "new arguments": lambda: type("Strange", (Point,), {"__getnewargs__": lambda self: (log.append("new"), 1)}),
    "state and reduce": lambda: type("Strange", (Point,), {"__reduce__": lambda self: (Strange, (log.append("r"),))}),
}
Strange: Any = None


@pytest.mark.parametrize("name", ["reduce_class", "state_pair", "state_dict"])
@pytest.mark.parametrize("how", CLASSES)
def test_strange_class(name: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = CLASSES[how]()
    cls.__module__ = __name__
    cls.__qualname__ = cls.__name__
    monkeypatch.setitem(globals(), cls.__name__, cls)
    monkeypatch.setitem(globals(), "Strange", cls)
    if "__reduce__" not in vars(cls):
        give(monkeypatch, name, cls)
    for many in (1, 4, 60):
        for protocol in (2, 4):
            compare(some(lambda i: cls((i, "x")), many), protocol)


def test_inner_class_of_another_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that sees another class in its cell does not make its own class."""
    cls = _points_class()
    cls.__qualname__ = "Inner"
    monkeypatch.setitem(globals(), "Inner", cls)
    assert instances.names(cls, None) is not None
    _set_in_cell(cls)
    compare(lambda: [cls(i) for i in range(60)], 4)


def _with_names(body: str, names: Any = ("a", "b"), **more: Any) -> Any:
    """Return a function that finds names in the function around."""
    made: dict[str, Any] = {"log": log, **more}
    exec(f"def around(names, other):\n    def slots_getstate(self):\n        {body}\n    return slots_getstate", made)
    return made["around"](names, ("a",))


class OwnText(str):
    """A text of somebody's."""


#: A function as attrs has it, and what is like it: whether it is known, and for `Slotted`.
LIKE_ATTRS: dict[str, tuple[Callable[[], Any], bool, bool]] = {
    "as attrs": (lambda: _with_names("return {name: getattr(self, name) for name in names}"), True, True),
    "documented": (
        lambda: _with_names('"""Text."""\n        return {name: getattr(self, name) for name in names}'), True, True,
    ),
    "other names": (lambda: _with_names("return {x: getattr(self, x) for x in names}"), True, True),
    "no names": (lambda: _with_names("return {x: getattr(self, x) for x in names}", ()), True, True),
    "a list of names": (lambda: _with_names("return {x: getattr(self, x) for x in names}", ["a"]), True, False),
    "somebody's names": (
        lambda: _with_names("return {x: getattr(self, x) for x in names}", (OwnText("a"),)), True, False,
    ),
    "no texts": (lambda: _with_names("return {x: getattr(self, 'a') for x in names}", (1, 2)), False, False),
    "somebody's getattr": (
        lambda: _with_names("return {x: getattr(self, x) for x in names}", getattr=lambda *args: log.append(args[1])),
        True,
        False,
    ),
    "missing": (lambda: _with_names("return {x: getattr(self, x) for x in names}", ("a", "nothing")), True, True),
    "a property": (lambda: _with_names("return {x: getattr(self, x) for x in names}", ("asked",)), True, False),
    "a default": (lambda: _with_names("return {x: getattr(self, x, None) for x in names}"), False, False),
    "a condition": (lambda: _with_names("return {x: getattr(self, x) for x in names if x != 'b'}"), False, False),
    "texts of them": (lambda: _with_names("return {x: str(getattr(self, x)) for x in names}"), False, False),
    "logged": (lambda: _with_names("return {x: log.append(x) for x in names}"), False, False),
    "a set": (lambda: _with_names("return {getattr(self, x) for x in names}"), False, False),
    "two loops": (lambda: _with_names("return {x: getattr(self, x) for x in names for _ in other}"), False, False),
    "another function": (lambda: _with_names("return {x: hasattr(self, x) for x in names}"), False, False),
}  # fmt: skip


class Asked(Slotted):
    """Has a property."""

    __slots__ = ()

    @property
    def asked(self) -> int:
        log.append("asked")
        return 5


@pytest.mark.parametrize("how", LIKE_ATTRS)
def test_like_attrs(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, is_known, is_nobodys = LIKE_ATTRS[how]
    function = make()
    assert (bytecode.known(function) is not None) is is_known
    monkeypatch.setattr(Asked, "__getstate__", function, raising=False)
    assert (instances.names(Asked, None) is not None) is is_nobodys
    for many in (1, 5, 60):
        for protocol in (2, 4):
            compare(some(Asked, many), protocol)


def test_attrs(monkeypatch: pytest.MonkeyPatch, a_part_of: APartOf) -> None:
    """The classes that attrs makes are known, unless they have functions of somebody's."""
    attrs = pytest.importorskip("attrs", reason="attrs is not installed")
    fields = {"a": attrs.field(), "b": attrs.field(default="text")}
    for is_nobodys, cls in (
        (True, attrs.make_class("Strange", fields)),
        (True, attrs.make_class("Strange", fields, slots=True)),
        (True, attrs.make_class("Strange", fields, slots=True, frozen=True, weakref_slot=False)),
        (
            True,
            attrs.make_class("Strange", fields, bases=(attrs.make_class("Strange", fields, slots=True),), slots=True),
        ),
        (False, attrs.make_class("Strange", fields, bases=(Logged,), slots=True)),
    ):
        cls.__module__ = __name__
        monkeypatch.setitem(globals(), "Strange", cls)
        assert (instances.names(cls, None) is not None) is is_nobodys
        for many in a_part_of((1, 5, 60, 1001)):
            for protocol in (2, 4, 5):
                compare(some(cls, many), protocol)


# Defects that a review found.


@pytest.mark.parametrize("has_slots", [True, False])
def test_tuple_in_itself_with_a_state(has_slots: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """C writes no state of a tuple that contains itself."""
    methods: dict[str, Any] = {"__getstate__": _function("state_of_a_tuple", 'return {"a": 1}'), "__module__": __name__}
    cls = type("Strange", (tuple,), methods | ({"__slots__": ()} if has_slots else {}))
    monkeypatch.setitem(globals(), "Strange", cls)

    def make() -> Any:
        made: Any = cls(([], 1))
        made[0].append(made)
        return made

    for protocol in (2, 4, 5):
        for many in (1, 30):
            compare(some(lambda i: make(), many), protocol)
        compare(make, protocol)


def test_dict_of_an_instance_that_somebody_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The `__dict__` of an instance is not asked for where that may run somebody's code."""

    class Getting:
        def __getattribute__(self, name: str) -> Any:
            log.append(name)
            return object.__getattribute__(self, name)

    class Property:
        @property
        def __dict__(self) -> Any:  # type: ignore[override]  # it is no attribute of the instance here
            log.append("__dict__")
            return {}

    for cls in (Getting, Property):
        cls.__qualname__ = "Strange"
        cls.__module__ = __name__
        monkeypatch.setitem(globals(), "Strange", cls)
        for protocol in ALL:
            assert outcome(fastpickle.dumps, cls, protocol) == outcome(stock_dumps, cls, protocol)
            assert outcome(by(fastpickle.Pickler), cls, protocol) == outcome(by(StockPickler), cls, protocol)


class OwnNames(dict[str, Any]):
    """A module's names, of somebody's."""

    def get(self, *args: Any) -> Any:
        log.append("get")
        return super().get(*args)

    def __getitem__(self, name: str) -> Any:
        log.append("getitem")
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        log.append("contains")
        return super().__contains__(name)


@pytest.mark.parametrize("name", ["reduce_named", "reduce_none", "state_changed", "state_pair"])
def test_names_of_somebodys_dict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = OwnNames(globals())
    function = types.FunctionType(FUNCTIONS[name].__code__, names)
    monkeypatch.setattr(Made, "__reduce__" if name.startswith("reduce") else "__getstate__", function, raising=False)
    for many in (1, 3, 60):
        compare(some(Made, many), 4)


class Compared(str):
    """A text that tells when it is compared."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        log.append(str(self))
        return str.__eq__(self, other)


@pytest.mark.parametrize("name", ["state_pair", "state_without", "state_changed", "state_merged", "state_copy"])
@pytest.mark.parametrize("many", [1, 5, 30, 60])
def test_names_that_are_compared(name: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance's attributes may have names that run somebody's code when they are looked up: just as often."""
    give(monkeypatch, name)

    def make() -> Any:
        found = [Made(i) for i in range(many)]
        for made in found:
            state = vars(made)
            for key in ("a", "b", "lock", "more"):
                value = state.pop(key, 5)
                state[Compared(key)] = value
        log.clear()
        return found

    for protocol in (2, 4):
        for ours, stock in ((fastpickle.dumps, stock_dumps), (by(fastpickle.Pickler), by(StockPickler))):
            expected = outcome(stock, make, protocol)
            found = outcome(ours, make, protocol)
            assert found[0] == expected[0]
            assert abs(len(found[1]) - len(expected[1])) <= 2  # the interpreter's own caches spare some


def test_builtins_of_somebodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in `builtins` now is not what is known."""

    class Own(dict[str, Any]):
        def __init__(self, *args: Any) -> None:
            log.append("made")
            super().__init__(*args)

    def madeby(protocol: int) -> list[Any]:
        found = []
        for dump in (stock_dumps, fastpickle.dumps, fastpickle.dumps):
            with pytest.MonkeyPatch.context() as patch:
                made = [Made(i) for i in range(30)]
                patch.setattr(builtins, "dict", Own)
                found.append(outcome(dump, made.copy, protocol)[1])
        return found

    give(monkeypatch, "state_changed")
    madeby(2)  # what is imported, and looked at, for the first time takes dicts, too
    for protocol in (2, 4):
        found = madeby(protocol)
        assert found[0] == found[1] == found[2]


class _Constant:
    def __eq__(self, other: object) -> bool:
        log.append("compared")
        return False

    def __repr__(self) -> str:
        log.append("shown")
        return "constant"

    __hash__ = object.__hash__


def _with_constant(x: Any) -> Any:
    return (x, "constant", x)


ODD_CODES: dict[str, Callable[[], Any]] = {
    "empty": lambda: _with_constant.__code__.replace(co_code=b""),
    "no arguments": lambda: (lambda: 5).__code__,
    "a constant of somebody's": lambda: _with_constant.__code__.replace(
        co_consts=tuple(_Constant() if x == "constant" else x for x in _with_constant.__code__.co_consts)
    ),
    "no constants": lambda: _with_constant.__code__.replace(co_consts=()),
    "no names": lambda: FUNCTIONS["state_pair"].__code__.replace(co_names=()),
    "a variable of both kinds": lambda: _function("reduce_cell", "return self, ()\nlambda: self").__code__,
    "a generator's": lambda: FUNCTIONS["state_pair"].__code__.replace(co_flags=inspect.CO_GENERATOR | 3),
    "a coroutine's": lambda: FUNCTIONS["state_pair"].__code__.replace(co_flags=inspect.CO_COROUTINE | 3),
    "long": lambda: _function("state_long", "return [" + "self.a, " * 3000 + "]").__code__,
    "many names": lambda: (
        _function("state_many", "return [" + "".join(f"self.a{i}, " for i in range(600)) + "]").__code__
    ),
}


@pytest.mark.parametrize("how", ODD_CODES)
def test_odd_codes(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a function's code is, to look at it raises nothing, and runs nobody's code."""
    code = ODD_CODES[how]()
    function = types.FunctionType(code, globals(), closure=tuple(types.CellType() for _ in code.co_freevars))
    log.clear()
    assert bytecode.known(function) is None
    monkeypatch.setattr(Made, "__getstate__", function, raising=False)
    monkeypatch.setattr(Made, "__reduce_ex__", lambda self, protocol: (int, (len(log),)), raising=False)
    fastpickle.dumps([Made(i) for i in range(3)], 4)  # nobody calls it
    assert not log


def test_variable_of_both_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 3.10 what a function inside sees is looked up as what the function around has."""
    for body in ("return protocol, ()\nlambda: protocol", "if 0: x = 1; lambda: x\nreturn x, ()"):
        monkeypatch.setattr(Made, "__reduce_ex__", _function("reduce_ex", body), raising=False)
        compare(lambda: [Made(i) for i in range(3)], 2)


def test_refused_classes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class whose functions are known, but not how its attributes are got, is not looked at again and again."""
    monkeypatch.setattr(likely, "were_known", {})
    monkeypatch.setattr(likely, "somebodys", {})  # another test may have had the class there
    give(monkeypatch, "state_asked")
    asked = []
    names = likely.names
    monkeypatch.setattr(likely, "names", lambda *args: (asked.append(1), names(*args))[1])
    for _ in range(3):
        assert likely.is_somebodys(Made)
    assert len(asked) == 1
    monkeypatch.setattr(likely, "_MOST_REMEMBERED", 1)
    assert not likely.is_somebodys(type("Another", (), {"__getstate__": FUNCTIONS["state_pair"]}))
    assert len(likely.were_known) == 1


def test_class_with_the_id_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found of a class that is gone is not taken for what a new one with its id is."""
    made = type("Made", (), {"__getstate__": FUNCTIONS["state_pair"]})
    gone = weakref.ref(type("Gone", (), {}))
    monkeypatch.setattr(likely, "were_known", {id(made): (gone, True)})
    assert not likely.is_somebodys(made)
    assert likely.were_known[id(made)][0]() is made


def test_codes_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode, "_MOST", 3)
    for _ in range(10):
        function = types.FunctionType(FUNCTIONS["state_pair"].__code__.replace(), {})
        assert bytecode.known(function) is not None
        assert len(bytecode._results) <= 3
