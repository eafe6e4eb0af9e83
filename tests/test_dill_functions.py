"""Functions and classes that dill saves by value, written at once: against stock dill, wherever that may go wrong."""

from __future__ import annotations

import _imp
import builtins
import contextlib
import copyreg
import dataclasses
import enum
import fractions
import functools
import gc
import io
import pickle
import re
import subprocess
import sys
import textwrap
import types
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from multiprocessing import reduction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from oracle import objects
from oracle.allowed import DILL_PICKLES_CODE, PYPY
from oracle.compare import ALL, Implementation, Run, check, use
from oracle.dills import ORACLE, backend, both, dill
from oracle.engines import Stock
from oracle.parts import APartOf

import fastpickle
from fastpickle import _stdlib, graft, hooks
from fastpickle._stdlib import CPickler
from fastpickle.at_once import tasks
from fastpickle.engine import encoders
from fastpickle.objects.last import last

_dill_functions = pytest.importorskip("fastpickle.backends._dill_functions", reason="dill is not installed")
_dill_code = pytest.importorskip("fastpickle.backends._dill_code", reason="dill is not installed")

needs_code = pytest.mark.skipif(not DILL_PICKLES_CODE, reason="dill pickles no code objects there")
if PYPY:
    pytest.skip("nothing is written at once there", allow_module_level=True)

_shared = [1, "shared"]
_instances = [objects.Plain(), objects.Viaduct([1])]


def _closure(*values: Any) -> Any:
    """Return a function with a cell for each value."""
    if len(values) == 1:
        (a,) = values
        return lambda: a
    a, b, *more = values
    return lambda x=1: (x, a, b, more)


def _recursive() -> Any:
    def countdown(n: int) -> Any:
        """Call itself."""
        return countdown(n - 1) if n else n

    return countdown


def _mutual() -> Any:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    return [even, odd]


def _shared_cell() -> Any:
    n = 0

    def add() -> None:
        nonlocal n
        n += 1

    def get() -> int:
        return n

    return {"add": add, "get": get}


def _empty_cell() -> Any:
    def function() -> Any:
        return later

    if not function:
        later = 1
    return function


def _levels(n: int) -> Any:
    function: Any = _closure(n)
    for i in range(n):
        function = _closure(function, i)
    return function


def _holds_itself() -> Any:
    data: list[Any] = []

    def function() -> Any:
        return data

    data.append(function)
    return function


def _executed(code: str, **names: Any) -> Any:
    exec(textwrap.dedent(code), names)
    return names["f"]


class _Partial(functools.partial[Any]):
    pass


class _Texts(tuple[str, ...]):
    pass


class _Named(dict[str, Any]):
    pass


def _partial_with(**attributes: Any) -> Any:
    found = functools.partial(_closure(1), 1)
    assert not vars(found)  # from here on its reduce gives a dict
    vars(found).update(attributes)
    return found


def _partial_in_itself() -> Any:
    found = functools.partial(_closure(1), arguments := [])
    arguments.append(found)
    return found


def _partial_set(*state: Any) -> Any:
    found: Any = functools.partial(objects.function)
    found.__setstate__(state if state else (found, (), {}, None))
    return found


#: A module with little in it: where it is not found, all of that is saved.
_small = types.ModuleType("small_module_of_a_test")
sys.modules[_small.__name__] = _small
exec(
    textwrap.dedent("""
    def closure(*values):
        def function(x: int = 1) -> int:
            "Have cells."
            return function, values
        return function
    def by_name(): pass
    def lazy(): return lambda: by_name()
    class Class:
        def method(self): return super().method()
    """),
    vars(_small),
)
vars(_small).pop("__builtins__")


def _changed(name: str, value: Any) -> Any:
    function = _small.closure(1)
    setattr(function, name, value)
    return function


def _decorated() -> Any:
    def decorate(f: Any) -> Any:
        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            return f(*args, **kwargs)

        return call

    @decorate
    def function(a: int, *, b: str = "b") -> str:
        """Be wrapped."""
        return b * a

    return function


def _long_names(n: int) -> Any:
    names = [f"name_{i}" for i in range(n)]
    return _executed("def f():\n " + "\n ".join(f"{x} = {i} + {x}_" for i, x in enumerate(names)))


class _Meta(type):
    """Compares, and counts how often."""

    asked = 0

    def __eq__(cls, other: object) -> bool:
        _Meta.asked += 1
        return cls is other

    __hash__ = type.__hash__


def _plain_class() -> Any:
    class Local:
        """Be saved by value."""

        attribute = [1, {"a": 2}]

        def __init__(self, x: int = 1) -> None:
            self.x = x

        def again(self) -> Local:
            return Local(self.x)

        @property
        def half(self) -> float:
            """Return a half."""
            return 0.5

        @staticmethod
        def static(x: int) -> int:
            return x

        @classmethod
        def of_class(cls) -> Any:
            return cls

        def calls_super(self) -> Any:
            return super().__repr__()

    return Local


def _derived() -> Any:
    base = _plain_class()

    class Derived(base):
        __slots__ = ("y",)

        def again(self) -> Any:
            return super().again()

    return [Derived, base, Derived(3)]


def _dataclass() -> Any:
    @dataclasses.dataclass
    class Setting:
        name: str = "a"
        values: list[int] = dataclasses.field(default_factory=list)

    return [Setting, Setting("b", [1])]


def _others() -> Any:
    class Color(enum.Enum):
        RED = 1

    class Shape(ABC):
        @abstractmethod
        def area(self) -> float: ...

    class Square(Shape):
        def area(self) -> float:
            return 1.0

    class Pair(NamedTuple):
        a: int
        b: str = "b"

    class Compared(metaclass=_Meta):
        def method(self) -> Any:
            return Compared

    return [Color, Shape, Square, Pair, Compared, Color.RED, Square(), Pair(1), Compared()]


async def _coroutine(x: int) -> Any:
    async for y in _coroutine(x):
        yield y


def _annotated() -> Any:
    def function(a: int, b: list[int], c: type, d: 1, *, e: objects.Plain, f: "text") -> dict[str, Any]:  # noqa: UP037, F821  # of all kinds
        return {}

    return function


KINDS: dict[str, Callable[[], Any]] = {
    "lambda": lambda: lambda x: x + 1,
    "found": lambda: [objects.function, subprocess.run, _closure, textwrap.TextWrapper.wrap, len, [].append],
    "defaults": lambda: lambda a=1, b="b", c=(1, (2, b"c")), *, d=2.5, e=None: (a, b, c, d, e),
    "defaults that are containers": lambda: lambda a=[1, []], b={"a": {}}, *, c=frozenset({1}), d={2}: (a, b, c, d),
    "many defaults": lambda: _executed(f"def f({', '.join(f'a{i}={i}' for i in range(250))}): pass"),
    "long defaults": lambda: lambda a=[*range(100)], b={i: str(i) for i in range(100)}, c=(0,) * 300: (a, b, c),
    "a function as default": lambda: lambda f=(lambda: 1), g=objects.function, h=int, i=objects.Plain: (f, g, h, i),
    "an instance as default": lambda: lambda a=_instances[0], b=_instances[1]: (a, b),
    "shared default": lambda: [f := (lambda a=_shared: a), _shared, f],
    "numbers": lambda: lambda: (1 << 40, -(1 << 70), 1 << 5000, 1.5, 1j, -1, 70_000, True, None, ...),
    "sets of constants": lambda: lambda x: x in {1, 2, "three"} or x in {(1, 2), b"b"},
    "long constants": lambda: _executed(f"def f():\n '{'d' * 300}'\n return ({'c' * 300!r}, {b'b' * 300!r}, 'é' * 3)"),
    "longer constants": lambda: _executed(f"def f():\n '{'d' * 20_000}'\n return {b'b' * 20_000!r}"),
    "beyond ASCII": lambda: _executed("def f(ä='ö'):\n 'ü'\n return '\\U0001f600', '\\0'"),
    "surrogates": lambda: _executed("def f():\n return '\\udc80'"),
    "17 names": lambda: _long_names(17),
    "100 names": lambda: _long_names(100),
    "300 names": lambda: _long_names(300),
    "nested code": lambda: lambda: [lambda x: [y for y in x], lambda: (z for z in ())],  # noqa: C416  # nested code
    "generator": lambda: _coroutine,
    "closure": lambda: _closure(3),
    "closure of atoms": lambda: _closure("text", b"bytes", 1.5, None, True, 1 << 80),
    "closure of containers": lambda: _closure([1, [2]], {"a": {}}, (1, 2), set(), frozenset({1})),
    "closure of many": lambda: _closure([*range(100)], {i: [i] for i in range(60)}),
    "closure of records": lambda: _closure([{"id": i, "name": f"n{i}"} for i in range(60)]),
    "closure of a function": lambda: _closure(lambda: 1),
    "closure of functions": lambda: _closure(objects.function, int, objects.Plain, sys, len),
    "closure of instances": lambda: _closure(objects.Plain(), objects.Viaduct([1])),
    "closure of a module's dict": lambda: _closure(sys.__dict__, objects.__dict__),
    "closure of itself": _holds_itself,
    "levels": lambda: _levels(6),
    "recursive": _recursive,
    "mutual": _mutual,
    "shared cell": _shared_cell,
    "empty cell": _empty_cell,
    "cells": lambda: _closure(1, 2).__closure__,
    "code": lambda: [_closure.__code__, _closure.__code__],
    "tuples of parts": lambda: [(_closure.__code__, 1, 2, 3), (sys, 1, 2), ({}, 1), (int, len, objects.function, {})],
    "decorated": _decorated,
    "partial": lambda: functools.partial(_closure(1), 2, x=_closure(3)),
    "partial of a partial": lambda: functools.partial(_Partial(functools.partial(_closure(1)), 1), x=_partial_with()),
    "partial with attributes": lambda: [_partial_with(x=[1]), functools.update_wrapper(_partial_with(), _closure)],
    "partial that hides its reduce": lambda: _partial_with(__reduce__=lambda: "KINDS"),
    "partial that hides its reduce from C": lambda: _partial_with(__reduce_ex__=lambda proto: "KINDS"),
    "partial in itself": _partial_in_itself,
    "partial of itself": _partial_set,
    "partial of odd parts": lambda: _partial_set(len, _Texts(("a",)), _Named(x=1), {}),
    "partial in a task": lambda: (functools.partial(textwrap.shorten, width=20), ["a b", "c"], {"placeholder": None}),
    "partial of a function by name": lambda: functools.partial(objects.function, [1], x={"y": (2,)}),
    "task": lambda: (_closure(1), (1, 2.5, None), {"x": b"b", "y": [1, [2, {}]]}),
    "task of many": lambda: (0, 1, objects.function, ((_closure(1, 2), tuple(range(60))),), {}),
    "task with what is by value": lambda: (_closure(1), (c := _plain_class(), c(2)), {"partial": functools.partial(c)}),
    "task with a set": lambda: {"function": _closure(1), "set": {1}, "array": bytearray(b"1")},
    "task in itself": lambda: (task := [_closure(1)], task.append(task))[0],
    "method": lambda: [(c := _plain_class())(1).again, c.again, c.of_class],
    "annotated": _annotated,
    "attributes": lambda: [_changed("attribute", [1]), _changed("other", _closure(1))],
    "no module": lambda: _changed("__module__", None),
    "__main__": lambda: _changed("__module__", "__main__"),
    "another module": lambda: _changed("__module__", "oracle.objects"),
    "a module that is not there": lambda: _changed("__module__", "no.such.module"),
    "a module that is no text": lambda: _changed("__module__", 5),
    "another name": lambda: [_changed("__name__", "changed"), _changed("__qualname__", "changed.name")],
    "the name of another": lambda: [_changed("__qualname__", "closure"), _changed("__qualname__", "Class")],
    "the name of a class's": lambda: _changed("__qualname__", "Class.method"),
    "an odd name": lambda: [_changed("__qualname__", "<locals>"), _changed("__qualname__", "__doc__")],
    "no docstring": lambda: _changed("__doc__", [1, 2]),
    "globals of its own": lambda: _executed("x = [1]\ndef f(): return x"),
    "globals with functions": lambda: _executed("g = lambda: f\ndef f(): return g"),
    "globals with a name": lambda: _executed("x = [1]\ndef f(): return x", __name__="oracle.objects"),
    "globals with an odd name": lambda: _executed("x = [1]\ndef f(): return x", __name__=["odd"]),
    "globals with a name of nothing": lambda: _executed("def f(): return 1", __name__="no such module"),
    "class": _plain_class,
    "derived": _derived,
    "dataclass": _dataclass,
    "other classes": _others,
    "instances": lambda: [(c := _plain_class())(1), *map(c, range(50)), c],
    "classes by name": lambda: [int, object, type(None), objects.Plain, types.FunctionType, _Meta, Path, NamedTuple],
}
_MADE: dict[str, Any] = {}


def kind(name: str) -> Any:
    """Return one of KINDS, the same for all dumps: texts and tuples of two are not the same objects."""
    if name not in _MADE:
        _MADE[name] = KINDS[name]()
        with contextlib.suppress(Exception):  # the first dump of an instance writes __slotnames__ into its class
            dill.dumps(_MADE[name], 2)
    return _MADE[name]


def _dumps(*objs: Any, **attributes: Any) -> Callable[[Run], None]:
    """Return what dumps these with a pickler that has these attributes, and then something else with it."""

    def steps(run: Run) -> None:
        for name, value in attributes.items():
            setattr(run.pickler, name, value)
        for obj in objs:
            run.pickler.dump(obj)
        run.pickler.dump([objs, "end", _closure(1, 2)])

    return steps


@both
@pytest.mark.parametrize("name", KINDS)
def test_kind(name: str, ours: Implementation) -> None:
    """Alone, twice, in a tuple, and beside what C writes; by a pickler that is used again."""
    obj = kind(name)
    check(ORACLE, ours, _dumps(obj), protocols=ALL)
    for place in ([obj, obj], (1, obj, {"a": obj}), [[*range(100)], obj, [*range(100)], {"f": obj}], {1: 2, 3: (obj,)}):
        check(ORACLE, ours, _dumps(place), protocols=(2, 4))


@both
@pytest.mark.parametrize("settings", [{"recurse": True}, {"byref": True}, {"fmode": 1}], ids=str)
def test_settings(settings: dict[str, Any], ours: Implementation) -> None:
    """All of them together, by dill's settings."""
    for name in KINDS:
        obj = kind(name)
        check(ORACLE, ours, lambda run: run.pickler.dump([obj, 1]), protocols=(4,), arguments=settings)


@needs_code
@both
@pytest.mark.parametrize("name", ["closure", "annotated", "class", "globals of its own", "tuples of parts"])
def test_edge_of_a_frame(name: str, ours: Implementation, a_part_of: APartOf) -> None:
    """Wherever the frame ends: before, in and behind it."""
    obj = kind(name)
    file = io.BytesIO()
    dill.Pickler(file, 4).dump(obj)
    n = len(file.getvalue())
    step = max(1, n // 150)
    for before in a_part_of(range(65536 - n - 40, 65536 + 20, step)):
        check(ORACLE, ours, _dumps([["x" * 60_000, "y" * (before - 60_000)], obj]), protocols=(4,))


@both
def test_memo(ours: Implementation) -> None:
    """Around the memo's 256th entry, and with parts of it in the memo already."""
    obj = kind("closure")
    for n in range(200, 260):
        texts = [f"text {i}" for i in range(n)]
        check(ORACLE, ours, _dumps([texts, obj]), protocols=(4,))
    code, closure = obj.__code__, obj.__closure__
    for first in (code, closure, closure[0], code.co_consts, code.co_name, dill._dill, setattr, "cell_contents", [{}]):
        check(ORACLE, ours, _dumps([first, obj, first]), protocols=(4,))
        check(ORACLE, ours, _dumps(first, obj), protocols=(4,))


def _reduce_partial(obj: Any) -> Any:
    return functools.partial, (obj.func, *obj.args), vars(obj)


def _forking(base: Any, run: Run) -> Any:
    """Return a pickler as multiprocess has it: none that dill takes for its own, with a dispatch table of its own."""

    class ForkingPickler(base):  # type: ignore[misc]  # it is a variable
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            own = {types.MethodType: _reduce_partial, functools.partial: reduction._reduce_partial}  # type: ignore[attr-defined]  # multiprocess has the same
            self.dispatch_table = {**copyreg.dispatch_table, **own}

    ForkingPickler.__module__ = "multiprocess.of_a_test"
    return ForkingPickler


@both
@pytest.mark.parametrize("name", KINDS)
def test_kind_by_a_pickler_of_multiprocess(name: str, ours: Implementation) -> None:
    """Alone, and as a task, which are what is sent to another process."""
    obj = kind(name)
    for task in (obj, (obj, (1, [2]), {"x": obj}), (0, 1, len, ((obj, (1, 2.5)),), {}), {"f": obj}, [obj, obj]):
        check(ORACLE, ours, lambda run, task=task: run.pickler.dump(task), protocols=(2, 4, 5), cls=_forking)


@needs_code
@both
@pytest.mark.parametrize("cls", [_forking, lambda base, run: base], ids=["multiprocess's", "dill's"])
def test_task(
    cls: Any, ours: Implementation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With what dill looks at: the dict of `__main__`, one that is as long, entries of others, a log."""
    main = dill._dill._main_module
    as_long = {f"name {i}": i for i in range(len(vars(main)))}

    def check_all() -> None:
        for part in (
            vars(main),
            as_long,
            {"__name__": "sys"},
            vars(sys),
            {"__name__": "oracle.objects"},
            main,
            _Texts("a"),
        ):
            for task in ((_closure(1), part), (objects.function, (part,), {}), (functools.partial(len, 1), [part])):
                check(ORACLE, ours, lambda run, task=task: run.pickler.dump(task), protocols=(2, 4), cls=cls)

    check_all()
    with monkeypatch.context() as patch:
        patch.setitem(copyreg.dispatch_table, functools.partial, _reduce_partial)
        check_all()
    with monkeypatch.context() as patch:
        patch.setattr(dill._dill, "_main_module", _small)
        check_all()
    task = (_closure(1), functools.partial(objects.function, [1]), {"x": 1})
    logs = []
    for implementation in (ORACLE, ours):
        caplog.clear()
        with caplog.at_level("INFO", logger="dill"):
            use(implementation, 4, lambda run: run.pickler.dump(task), cls=cls)
        logs.append([re.sub("0x[0-9a-f]+", "", record.getMessage()) for record in caplog.records])
    assert logs[0] == logs[1]
    assert len(logs[0]) > 5


def _entry(t: type) -> Callable[[Any, Run], Any]:
    """Return what makes a pickler that has a dispatch entry of its own for a type, which does what dill's does."""

    def make(base: Any, run: Run) -> Any:
        class P(base):  # type: ignore[misc]  # it is a variable
            dispatch = type(base.dispatch)(base.dispatch)

        entry = base.dispatch.get(t)

        def save(pickler: Any, obj: Any) -> None:
            run.record("entry", obj)
            if entry is None:
                pickler.save_reduce(*obj.__reduce_ex__(4), obj=obj)
            else:
                entry(pickler, obj)

        P.dispatch[t] = save
        P.__module__ = "dill.of_a_test"
        return P

    return make


@both
@pytest.mark.parametrize(
    "t",
    [
        *(types.FunctionType, types.CodeType, types.CellType, types.ModuleType),
        *(dict, list, tuple, str, type, frozenset, property),
    ],
    ids=lambda t: t.__name__,
)
def test_dispatch_entry(t: type, ours: Implementation) -> None:
    """An entry of somebody's is asked about each object of its type."""
    for name in ("closure", "annotated", "class", "decorated", "sets of constants", "closure of functions"):
        check(ORACLE, ours, _dumps([kind(name), 1]), protocols=(4,), cls=_entry(t))


def _with(**members: Any) -> Callable[[Any, Run], Any]:
    """Return what makes a pickler with these members, which are called with the run first."""

    def make(base: Any, run: Run) -> Any:
        bound = {name: functools.partialmethod(f, run) if callable(f) else f for name, f in members.items()}
        return type("P", (base,), {"__module__": "dill.of_a_test", **bound})

    return make


def _recorded(name: str, value: Any) -> Any:
    def hook(self: Any, run: Run, obj: Any) -> Any:
        run.record(name, obj)
        return value

    return hook


def _calls(name: str) -> Any:
    """Return an override that calls stock's method, and records that."""

    def hook(self: Any, run: Run, *args: Any, **kwargs: Any) -> None:
        run.record(name, args[0])
        getattr(pickle._Pickler, name)(self, *args, **kwargs)  # type: ignore[attr-defined]  # private

    return hook


CLASSES: dict[str, Callable[[Any, Run], Any]] = {
    "persistent_id": _with(persistent_id=_recorded("persistent_id", None)),
    "dispatch_table": _with(dispatch_table={}),
    "copyreg's": _with(dispatch_table=copyreg.dispatch_table),
    "save_global": _with(save_global=_calls("save_global")),
    "memoize": _with(memoize=_calls("memoize")),
    "save_reduce": _with(save_reduce=_calls("save_reduce")),
    "a module without dill in its name": lambda base, run: type("P", (base,), {"__module__": "of_a_test"}),
}


@both
@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
def test_class_with_hooks(cls: Any, ours: Implementation) -> None:
    """What a subclass overrides is called as often, with the same objects."""
    for name in ("closure", "annotated", "class", "decorated", "globals of its own"):
        check(ORACLE, ours, _dumps([kind(name), 1]), protocols=(2, 4), cls=cls)


@both
@pytest.mark.parametrize(
    "attributes",
    [
        {"_main": objects},
        {"_main": dill._dill},
        {"_main_modified": True, "_original_main": objects},
        {"_session": True, "_first_pass": True},
        {"_recurse": True},
        {"bin": 0},
        {"dispatch_table": {}},
        {"_trace_depth": 1, "_size_stack": []},
    ],
    ids=",".join,  # a module's text has its path in it, and which tests run goes by their ids
)
def test_attributes_of_the_pickler(attributes: dict[str, Any], ours: Implementation) -> None:
    """What dill's functions ask a pickler for."""
    for name in ("closure", "annotated", "class", "globals of its own", "closure of functions", "found"):
        steps = _dumps([kind(name), 1], **attributes)
        use(ORACLE, 4, steps)  # dill's own module, if that is saved, gets a __warningregistry__
        check(ORACLE, ours, steps, protocols=(4,))


@both
def test_fast(ours: Implementation) -> None:
    """Nothing is memoized."""
    for name in ("lambda", "found", "defaults", "classes by name"):
        check(ORACLE, ours, _dumps(kind(name), fast=True), protocols=(2, 4))


@needs_code
@both
def test_patches(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something is in place of what is looked up: the import, a module, an extension code."""
    objs = [_small.closure(1), _small.closure(_small.by_name), _small.by_name, _small.lazy(), _small.Class, _closure(2)]
    with contextlib.suppress(AttributeError):
        dill.dumps(objs)

    def check_all() -> None:
        for obj in objs:
            check(ORACLE, ours, _dumps([obj, 1]), protocols=(4,))

    imported: list[str] = []
    original = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        imported.append(name)
        return original(name, *args, **kwargs)

    for obj in objs:
        asked = []
        for implementation in (ORACLE, ours):
            imported.clear()
            with implementation.context():
                pickler = implementation.base(io.BytesIO(), 4)
                monkeypatch.setattr(builtins, "__import__", importing)
                pickler.dump([obj, 1])
                monkeypatch.undo()
            asked.append([name for name in imported if not name.startswith("fastpickle")])
        assert asked[0] == asked[1]

    monkeypatch.setitem(sys.modules, _small.__name__, types.ModuleType(_small.__name__))
    check_all()
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, _small.__name__)
    check_all()
    monkeypatch.undo()

    class Lazy(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name)

    lazy = Lazy(_small.__name__)
    vars(lazy).update(vars(_small))
    monkeypatch.setitem(sys.modules, _small.__name__, lazy)
    check_all()
    monkeypatch.undo()
    for module, name in (("dill._dill", "_create_function"), ("dill._dill", "_create_cell"), ("builtins", "getattr")):
        copyreg.add_extension(module, name, 0xF0)
        try:
            check_all()
        finally:
            copyreg.remove_extension(module, name, 0xF0)


@needs_code
@both
def test_dill_that_is_patched(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody puts in the place of dill's own functions, or of stock's, is called as often as by stock."""
    objs = [_small.closure(_small.by_name), _small.lazy(), _small.Class, kind("defaults"), kind("annotated")]
    for module, name, holder in (
        (dill._dill, "_locate_function", vars(dill._dill)),
        (dill._dill, "_save_with_postproc", vars(dill._dill)),
        (dill._dill, "_import_module", vars(dill._dill)),
        (dill._dill, "is_dill", vars(dill._dill)),
        (pickle._Pickler, "save_dict", vars(pickle._Pickler)),  # type: ignore[attr-defined]  # private
    ):
        original = holder[name]
        calls: list[Any] = []

        def counted(*args: Any, original: Any = original, calls: list[Any] = calls, **kwargs: Any) -> Any:
            calls.append(args[0])
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, counted)
        for obj in objs:
            seen = []
            for implementation in (ORACLE, ours):
                calls.clear()
                with implementation.context():
                    implementation.base(io.BytesIO(), 4).dump([obj, 1])
                seen.append(len(calls))
            assert seen[0] == seen[1], name
        monkeypatch.undo()

    def by_value(obj: Any, pickler: Any = None, locate: Any = dill._dill._locate_function) -> Any:
        return obj is not _small.by_name and locate(obj, pickler)

    monkeypatch.setattr(dill._dill, "_locate_function", by_value)
    for obj in objs:
        for settings in ({}, {"recurse": True}):
            check(ORACLE, ours, _dumps([obj, 1]), protocols=(4,), arguments=settings)


_asked: list[str] = []


@needs_code
@both
def test_odd_parts(ours: Implementation) -> None:
    """What looks like something that is known, and is not: reduces, keys, names, globals."""

    class Key:
        def __hash__(self) -> int:
            return hash("__name__")

        def __eq__(self, other: object) -> bool:
            _asked.append("key")
            return self is other

    class Name(str):
        def __eq__(self, other: object) -> bool:
            _asked.append("name")
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    class Globals(dict):
        def values(self) -> Any:
            _asked.append("globals")
            return super().values()

    def default(x: Any) -> Any:
        return lambda a=x: a

    own = Globals(x=1)
    exec("def f(): return x", own)
    dict.pop(own, "__builtins__")
    reduce = dill._dill._shims.Reduce
    for obj in (
        default(reduce(copyreg.__newobj__, (dict,), is_callable=True)),
        default(reduce(getattr, [1, 2], is_callable=True)),
        default({Key(): 1}),
        _changed("__module__", Name(_small.__name__)),
        dict.get(own, "f"),
    ):
        seen = []
        for implementation in (ORACLE, ours):
            _asked.clear()
            with contextlib.suppress(Exception), implementation.context():
                implementation.base(io.BytesIO(), 4).dump([obj, 1])
            seen.append([*_asked])
        assert seen[0] == seen[1]
        check(ORACLE, ours, _dumps([obj, 1]), protocols=(4,))


@needs_code
@both
def test_what_fails_is_not_tried_at_each_level(ours: Implementation) -> None:
    """What is encoded in vain is little beside what is written, however deep something is that cannot be."""
    instance = objects.Viaduct(1)

    def default(x: Any) -> Any:
        return lambda a=x: a

    def nested(x: Any, n: int) -> Any:
        for _ in range(n):
            x = (1, 2, 3, x)
        return x

    def chain(make: Callable[[Any], Any], n: int) -> Any:
        x: Any = instance
        for _ in range(n):
            x = make(x)
        return x

    cube = [[[1] * 32 for _ in range(32)] for _ in range(32)]
    for obj in (
        chain(_closure, 40),
        chain(default, 40),
        [_closure(1), nested(instance, 150)],
        default(nested(cube, 22)),
    ):
        check(ORACLE, ours, _dumps([obj, 1]), protocols=(4,))
        encoded = 0
        encode_all = encoders.encode_all

        def counted(plan: Any, objs: Any, *args: Any) -> int:
            nonlocal encoded
            encoded += len(objs)
            return encode_all(plan, objs, *args)

        with pytest.MonkeyPatch.context() as patch, ours.context():
            patch.setattr(encoders, "encode_all", counted)
            file = io.BytesIO()
            ours.base(file, 4).dump(obj)
        assert encoded < 15_000


@needs_code
@both
def test_module_that_is_asked(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's `__getattr__` is asked as often as by stock."""
    asked: list[str] = []

    def of_module(name: str) -> Any:
        asked.append(name)
        raise AttributeError(name)

    monkeypatch.setitem(vars(_small), "__getattr__", of_module)
    for obj in (_small.closure(1), _small.by_name, _small.lazy(), _small.Class, _changed("__qualname__", "changed")):
        seen = []
        for implementation in (ORACLE, ours):
            asked.clear()
            with implementation.context():
                implementation.base(io.BytesIO(), 4).dump([obj, 1])
            seen.append([*asked])
        assert seen[0] == seen[1], obj


@needs_code
@both
def test_warnings(ours: Implementation) -> None:
    """No warning of dill's looking at a code object comes out, and those about classes do."""
    for name in ("closure", "class", "recursive"):
        seen = []
        for implementation in (ORACLE, ours):
            with warnings.catch_warnings(record=True) as caught, implementation.context():
                warnings.simplefilter("always")
                implementation.base(io.BytesIO(), 4).dump(kind(name))
            seen.append([str(one.message) for one in caught])
        assert seen[0] == seen[1]


@pytest.mark.parametrize("gone", [types.CodeType, types.CellType, types.ModuleType, types.FunctionType])
@both
def test_entry_that_is_gone(gone: type, ours: Implementation) -> None:
    """A table that has no entry for what a function is made of has it reduced, which may fail, as without us."""

    def lost(base: Any, run: Run) -> Any:
        table = type(base.dispatch)(base.dispatch)
        del table[gone]
        return type("Lost", (base,), {"dispatch": table})

    for name in ("closure", "class", "recursive"):
        obj = kind(name)
        for x in (obj, (obj, 1), [obj, obj]):
            check(ORACLE, ours, _dumps(x), protocols=(4,), case=name, cls=lost)


def test_trace_without_dills_entry_for_dicts(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Classes and functions are traced, though nothing else of what is dumped has an entry of dill's."""
    monkeypatch.setitem(dill.Pickler.dispatch, dict, Stock.save_dict)
    for obj in ([fractions.Fraction(i, 7) for i in range(100)], [fractions.Fraction, len, textwrap.dedent] * 40):
        seen = []
        for context in (contextlib.nullcontext, fastpickle.patched):
            caplog.clear()
            with context(), caplog.at_level("INFO", logger="dill"):
                dill.dumps(obj)
            seen.append([record.getMessage() for record in caplog.records])
        assert seen[0]
        assert seen[0] == seen[1]


def test_place_of_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under install() it is a line of dill's, wherever the class is, so that filters by module hold."""
    cls = _plain_class()
    cls.__module__, cls.__qualname__ = "__main__", "Local"
    monkeypatch.setattr(sys.modules["__main__"], "Local", cls, raising=False)
    for obj in (cls, [cls] * 3, (cls, 1), {1: cls, 2: [cls()]}, [list(range(100)), cls], [cls() for _ in range(60)]):
        seen = []
        for context in (contextlib.nullcontext, fastpickle.patched):
            with warnings.catch_warnings(record=True) as caught, context():
                warnings.simplefilter("always")
                dill.dumps(obj, byref=True)
            seen.append([(str(one.message), one.filename, one.lineno) for one in caught])
        assert seen[0]
        assert seen[0] == seen[1]


class Acting:
    """Acts when it is reduced."""

    def __init__(self, act: Callable[[Any], None]) -> None:
        self.act = act

    def __reduce__(self) -> Any:
        self.act(Acting.pickler)
        return Acting, (1,)

    pickler: Any = None


def _register(pickler: Any) -> None:
    pickler.dispatch = type(pickler.dispatch)(pickler.dispatch)
    pickler.dispatch[types.CodeType] = lambda p, obj: p.save_reduce(len, ("code",), obj=obj)


@both
@pytest.mark.parametrize(
    "act",
    [
        _register,
        lambda p: setattr(p, "persistent_id", lambda obj: "id" if type(obj) is types.CellType else None),
        lambda p: setattr(p, "_recurse", True),
        lambda p: p.memoize(_shared),
        lambda p: p.save(_closure(5)),
        lambda p: setattr(p, "_main", objects),
    ],
    ids=["dispatch", "persistent_id", "_recurse", "memoize", "save", "_main"],
)
def test_contents_that_act(act: Callable[[Any], None], ours: Implementation) -> None:
    """What somebody's code does to the pickler while a cell's contents or a default are saved, counts from there on."""

    def steps(run: Run) -> None:
        Acting.pickler = run.pickler
        acting = Acting(act)
        run.pickler.dump([_closure(1), _closure(acting, _closure(2)), lambda x=acting: x, _closure(3, [*range(60)])])

    check(ORACLE, ours, steps, protocols=(2, 4))


@both
def test_failures(ours: Implementation) -> None:
    """What cannot be saved in a function raises what stock raises, with its notes, and leaves what it leaves."""
    for bad in (iter([1]), sys._getframe(), [1, (x for x in ())]):
        for obj in (_closure(bad), _closure(1, bad), lambda x=bad: x, _levels(2), [_closure(_closure(bad)), 1]):
            check(ORACLE, ours, _dumps([1, obj]), protocols=(4,))


@needs_code
@both
def test_stack_that_is_full(ours: Implementation) -> None:
    """Functions in functions fail no sooner than by stock."""
    for n in range(2, 40, 6):
        check(
            ORACLE,
            ours,
            lambda run, n=n: run.pickler.dump(_levels(n)),
            protocols=(4,),
            fails=False,
        )
    check(ORACLE, ours, lambda run: run.pickler.dump(_levels(400)), protocols=(4,))


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are there from the beginning")
@both
@pytest.mark.parametrize("outcome", ["value", "AttributeError", "NameError", "hook"])
@pytest.mark.parametrize("default", ["1", "[*range(100)]", "Acting"])
def test_annotations_that_run_code(outcome: str, default: str, ours: Implementation) -> None:
    """The code of annotations runs as often as by stock, at the same time, and what it does to the pickler counts."""

    def steps(run: Run) -> None:
        def annotate() -> Any:
            run.record("annotate", None)
            if outcome == "hook":
                _register(run.pickler)
            elif outcome != "value":
                raise getattr(builtins, outcome)("no")
            return int

        Acting.pickler = run.pickler
        module = sys.modules["annotated_module_of_a_test"] = types.ModuleType("annotated_module_of_a_test")
        vars(module).update(annotate=annotate, Acting=Acting(lambda p: run.record("acts", None)))
        exec(f"def f(x: annotate() = {default}): pass\nf.__qualname__ = 'g'", vars(module))
        run.pickler.dump([module.f, 1, module.f])

    check(ORACLE, ours, steps, protocols=(2, 4))


#: Where annotations come from; `seen` is called by their code, and `odd` is an object that calls it when it is asked.
ANNOTATIONS: dict[str, tuple[str, bool]] = {
    "names": ("def f(x: int, y: Local, *a: str, k: None = None) -> f_type: pass", False),
    "texts": ("def f(x: 'int', y: '1 +') -> 'seen()': pass", False),
    "numbers": ("def f(x: 1, y: 2.5, z: b'b', k: ...) -> True: pass", False),
    "many": ("def f(" + ", ".join(f"a{i}: t{i % 7}" for i in range(300)) + "): pass\n", False),
    "future": ("from __future__ import annotations\ndef f(x: seen(), y: list[int]) -> odd.attribute: pass", False),
    "closure": ("def g():\n class In: pass\n def f(x: In, y: int): return In\n return f\nf = g()", False),
    "empty cell": ("def g():\n def f(x: In): pass\n return f\n In = int\nf = g()", False),
    "type parameters": ("def f[T, *U](x: T, *y: *U) -> Local: pass", True),
    "method": ("class C:\n n = str\n def f(self, x: n, y: Local): pass\nf = C.f", False),
    "method of an odd mapping": (
        "class M(type):\n def __prepare__(*a): return Odd()\n def __new__(m, n, b, d): return d\n"
        "class C(metaclass=M):\n def f(self, x: int): pass\nf = C['f']", True
    ),
    "subscript": ("def f(x: list[int]): pass", True),
    "union": ("def f(x: int | None): pass", True),
    "attribute": ("def f(x: odd.attribute): pass", True),
    "call": ("def f(x: seen()): pass", True),
    "comparison": ("def f(x: odd > 2): pass", True),
    "missing": ("def f(x: no_such_name): pass", False),
    "set": ("def f(x: seen()): pass\nf.__annotations__ = {'x': int}", False),
    "deleted": ("def f(x: seen()): pass\nf.__annotations__ = None", False),
    "by hand": ("def f(x: int): pass\ndef a(format): return seen() and {'x': 5}\nf.__annotate__ = a", True),
    "by hand, short": ("def f(x): pass\ndef a(format): return seen()\nf.__annotate__ = a", True),
    "by hand, comparing": (
        "def f(x): pass\ndef a(format):\n if odd > 2: raise NotImplementedError\n return {'x': int}\n"
        "f.__annotate__ = a", True
    ),
    "by hand, odd keys": (
        "def f(x): pass\ndef a(format):\n if format > 2: raise NotImplementedError\n return {odd: 5}\n"
        "f.__annotate__ = a", True
    ),
    "partial": ("def f(x): pass\nf.__annotate__ = partial(lambda n, format: {'x': n}, 3)", True),
    "of another": ("def g(x: int): pass\ndef f(y): pass\nf.__annotate__ = g.__annotate__", False),
    "of other globals": ("def f(x: int): pass\nf.__annotate__ = type(f)(f.__annotate__.__code__, OddDict())", True),
    "of other builtins": (
        "def f(x: int): pass\nf.__annotate__ = type(f)(f.__annotate__.__code__, {'__builtins__': OddDict()})", True
    ),
    "lambda": ("f = lambda x: x", False),
}  # fmt: skip


def _annotated_by(source: str, seen: Callable[[], Any]) -> Any:
    """Return the function that a module's source makes, and the module, which is found under its name."""

    class Odd:
        def __getattr__(self, name: str) -> Any:
            return seen() if name == "attribute" else super().__getattribute__(name)

        def __gt__(self, other: Any) -> Any:
            return seen() is None

        def __hash__(self) -> int:
            seen()
            return 5

    class OddDict(dict):  # type: ignore[type-arg]
        def __getitem__(self, key: Any) -> Any:
            seen()
            return int

        __missing__ = __getitem__

    class OddMapping(dict):  # type: ignore[type-arg]
        def __getitem__(self, key: Any) -> Any:
            if key == "int":
                seen()
            return super().__getitem__(key)

    module = types.ModuleType("annotated_module_of_a_test")
    sys.modules[module.__name__] = module
    vars(module).update(
        seen=seen, odd=Odd(), OddDict=OddDict, Odd=OddMapping, Local=objects.Plain, f_type=types.FunctionType,
        partial=functools.partial, **{f"t{i}": t for i, t in enumerate((int, str, bytes, None, 1, "t", objects.Plain))},
    )  # fmt: skip
    exec(compile(source, "<source>", "exec", dont_inherit=True), vars(module))
    module.f.__qualname__ = "another.name"
    return module.f, module


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are there from the beginning")
@both
@pytest.mark.parametrize("name", ANNOTATIONS)
def test_where_annotations_come_from(name: str, ours: Implementation) -> None:
    """Their code runs as often as by stock; if it only looks names up, the function is written at once."""
    source, may_run = ANNOTATIONS[name]

    def steps(run: Run) -> None:
        seen: list[int] = []
        f, _ = _annotated_by(source, lambda: seen.append(1) or int)
        run.pickler.dump([[*range(100)], f, 1, (f, {"f": f}), [*range(100)]])
        run.pickler.dump((f, 1))
        run.calls.append(("seen", len(seen)))

    check(ORACLE, ours, steps, protocols=(2, 4))
    ran: list[int] = []
    f, module = _annotated_by(source, lambda: ran.append(1) or int)
    ran.clear()
    assert _stdlib.may_run_code(f) is may_run
    assert not ran and module
    if not may_run and name not in ("missing", "empty cell"):
        assert f.__annotations__ is not f and not ran


@needs_code
@both
def test_templates(ours: Implementation, a_part_of: APartOf) -> None:
    """A code object that has been met is written the same, whatever of it is in the memo; dumps share nothing."""
    f = _closure(1, 2)
    g = _executed(
        "def f(a, b=70_000):\n 'text'\n return a, b, 300, 70_000, 1 << 70, 'text', (1, 'text', ()), 2.5, b'b'"
    )
    h = _long_names(300)
    names = ", ".join(f"v{i}" for i in range(150))  # the last one is fetched, from behind the 256th entry of a memo
    k = _executed(f"def f({names}): return [{names.replace('v', 'n')}]")
    k.__code__ = k.__code__.replace(co_name=k.__code__.co_varnames[-1])
    for x in f, g, h, k:
        code = x.__code__
        for _ in range(3):  # met, learnt, known
            check(ORACLE, ours, _dumps(x), protocols=(2, 4))
        constants = (*code.co_consts, code.co_consts, code.co_names, code.co_varnames, code.co_name, code.co_filename,
                     code.co_linetable, code.co_code, code.co_argcount, ())  # fmt: skip
        for part in a_part_of(constants):
            check(ORACLE, ours, _dumps([part, x, part]), protocols=(4,))

            def steps(run: Run, x: Any = x, part: Any = part) -> None:
                Acting.pickler = run.pickler
                run.pickler.dump([Acting(lambda p: p.memoize(part)), (x, part)])

            check(ORACLE, ours, steps, protocols=(4,))

        def again(run: Run, x: Any = x) -> None:
            run.pickler.dump(x)
            parts = [y for _, y in run.pickler.memo.values()]
            run.pickler.clear_memo()
            run.pickler.dump([x, parts])
            run.pickler.dump(x)

        check(ORACLE, ours, again, protocols=(4,))
        for n in (*a_part_of(range(240, 254)), *range(254, 258)):
            check(ORACLE, ours, _dumps([[f"text {i}" for i in range(n)], x, x]), protocols=(4,))


@needs_code
@both
def test_code_that_is_odd(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants are compared with nothing; and what stands where dill's function stood is not asked."""
    f = _closure(1, 2)
    compared = []

    class Constant:
        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return False

        def __reduce__(self) -> Any:
            return objects.Plain, ()

    code = f.__code__.replace(co_consts=(None, Constant()))
    g = types.FunctionType(code, f.__globals__, "g", None, f.__closure__)
    for _ in range(5):
        check(ORACLE, ours, _dumps(g), protocols=(4,))
    assert not compared
    monkeypatch.setattr(dill._dill, "save_code", lambda pickler, obj: pickler.save_reduce(str, ("mine",), obj=obj))
    for _ in range(5):
        check(ORACLE, ours, _dumps([1, _closure(1)]), protocols=(4,))


@needs_code
def test_templates_are_forgotten(no_races: None) -> None:
    """With the code object; and of what has code in it there is none."""
    with fastpickle.patched():
        made = [_executed(f"def f(): return {i}") for i in range(20)]
        gc.collect()  # of what others have made
        known = len(_dill_code._met)
        for _ in range(3):
            for f in made:
                dill.dumps((f, 1))
        assert len(_dill_code._met) == known + 20
        met = [_dill_code._met[id(f.__code__)] for f in made]
        assert all(x.template is not None for x in met)
        nested = _executed("def f(): return lambda: 1")
        for _ in range(3):
            dill.dumps((nested, 1))
        assert _dill_code._met[id(nested.__code__)].template is None
        del made, f, met, nested
        gc.collect()
        assert len(_dill_code._met) <= known


class _Rebinding(io.RawIOBase):
    """A file that changes a global as soon as a frame is written to it."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.written = b""

    def write(self, data: Any) -> int:
        self.written += bytes(data)
        if len(data) > 100:
            self.module.T = str
        return len(data)


@needs_code
@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are there from the beginning")
def test_annotations_are_not_asked_for_too_soon() -> None:
    """A function keeps what its annotations were when it was asked, which a file's write() may change."""

    def outcome(before: int) -> Any:
        module = sys.modules["annotated_module_of_a_test"] = types.ModuleType("annotated_module_of_a_test")
        module.T = int
        source = "def f(a: T = 1): pass\ndef g(a: T = 1): pass\ndef h(x=None): pass\nh.__defaults__ = (f, g)"
        exec(compile(source, "<source>", "exec", dont_inherit=True), vars(module))
        f, g, h = (vars(module).pop(name) for name in "fgh")
        file = _Rebinding(module)
        dill.Pickler(file, 4).dump(["x" * before, h])
        return file.written, f.__annotations__, g.__annotations__

    for before in range(64_000, 65_536, 60):
        expected = outcome(before)
        with fastpickle.patched():
            assert outcome(before) == expected, before


@needs_code
def test_file_name_that_is_changed() -> None:
    """An import changes it in place."""
    f = _executed("def f(): return 1")
    f.__code__ = f.__code__.replace(co_filename="old.py")
    for name in "old.py", "new.py", "newer.py":
        _imp._fix_co_filename(f.__code__, name)
        expected = dill.dumps((f, 1))
        with fastpickle.patched():
            for _ in range(5):
                assert dill.dumps((f, 1)) == expected
    assert b"newer.py" in expected


@needs_code
def test_warnings_that_are_shown_again() -> None:
    """dill changes the filters, and restores them, at each code object, so that what has been shown is shown again."""

    def shown() -> int:
        seen: list[Any] = []
        with warnings.catch_warnings():
            warnings.resetwarnings()
            warnings.simplefilter("default")
            warnings.showwarning = lambda *args, **how: seen.append(args)
            globals().pop("__warningregistry__", None)
            for _ in range(8):
                warnings.warn("at this place", UserWarning, stacklevel=1)
                dill.dumps((f, 1))
        return len(seen)

    f = _closure(1)
    expected = shown()
    with fastpickle.patched():
        for _ in range(2):
            assert shown() == expected


class _Reduced:
    """Is saved by its name, and by a reduce of its own."""

    def __init__(self, run: Run | None = None) -> None:
        self.run = run

    def __reduce__(self) -> Any:
        return _Reduced, ()


def _instances_of(kind: str, n: int) -> list[Any]:
    """Return instances of a class that is saved by value, or what looks like that."""
    classes: dict[str, Any] = {name: kind_of_class() for name, kind_of_class in _CLASSES.items()}
    cls = classes[kind]
    shared = [1, "shared"]
    made = [cls(i) if i % 7 else cls(shared) for i in range(n)]
    made[n // 3] = cls(cls)
    made[n // 3 + 1] = cls(made)
    return made


def _with_slots() -> Any:
    class Slotted:
        __slots__ = ("x",)

        def __init__(self, x: Any) -> None:
            self.x = x

    return Slotted


def _with_state() -> Any:
    class Stateful:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __getstate__(self) -> Any:
            return {"x": self.x, "y": 1}

    return Stateful


def _with_own_code() -> Any:
    class Counting:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __getstate__(self) -> Any:
            return {"x": self.x, "y": len("1")}

    return Counting


def _without_dict() -> Any:
    class Hidden:
        def __init__(self, x: Any) -> None:
            self.x = x
            if type(x) is int and x % 50 == 49:
                self.__reduce_ex__ = lambda protocol: (int, (5,))

    return Hidden


_CLASSES: dict[str, Callable[[], Any]] = {
    "plain": _plain_class,
    "dataclass": lambda: dataclasses.make_dataclass("Made", [("x", Any)]),
    "slots": _with_slots,
    "state": _with_state,
    "state of its own code": _with_own_code,
    "a reduce of its own now and then": _without_dict,
    "a metaclass": lambda: _Meta("Compared", (), {"__init__": lambda self, x: setattr(self, "x", x)}),
    "a list": lambda: type("OfList", (list,), {"__init__": lambda self, x: setattr(self, "x", x)}),
    "by name": lambda: objects.Dict,
}


@needs_code
@both
@pytest.mark.parametrize("kind_of_class", [name for name in _CLASSES if name != "by name"])
def test_instances_of_a_new_class(kind_of_class: str, ours: Implementation, a_part_of: APartOf) -> None:
    """A list of instances, the class of which comes with the first one; C may write the others."""
    for n in a_part_of((8, 48, 999, 1000, 1001, 2002)):
        made = _instances_of(kind_of_class, n)
        with contextlib.suppress(Exception):
            dill.dumps(made, 2)
        others = [_Reduced(), made[0]]
        places: list[Any] = [made, [1, made, made[1]], {"a": [*range(100)], "b": made, "c": made[-1]}]
        if n <= 1002:
            places += [
                [*made[: n // 2], *others, *made[n // 2 :]],
                [*made, 5],
                [None, *made],
                [made[1], *made[2:], others],
            ]
        for place in places:
            check(ORACLE, ours, _dumps(place), protocols=(2, 4) if n < 100 else (4,))


@needs_code
@both
@pytest.mark.parametrize("protocol", [4, 5])
def test_instances_at_the_edge_of_a_frame(protocol: int, ours: Implementation, a_part_of: APartOf) -> None:
    """Wherever in a frame the second instance begins."""
    made = _instances_of("plain", 60)
    file = io.BytesIO()
    dill.Pickler(file, 4).dump(made[:1])
    n = len(file.getvalue())
    for before in a_part_of((*range(65_536 - n - 30, 65_536 - n + 60), *range(65_500, 65_540, 3))):
        check(ORACLE, ours, _dumps([["x" * 60_000, "y" * (before - 60_000)], made]), protocols=(protocol,))


class _Default:
    """Has the default reduce."""

    def __init__(self, x: Any) -> None:
        self.x = x


@both
def test_instances_without_a_frame(ours: Implementation) -> None:
    """save() without dump(), and framing that ends while the class is saved."""

    def steps(run: Run) -> None:
        run.pickler.save([_Default(i) for i in range(12)])

    check(ORACLE, ours, steps, protocols=ALL)

    def ends_framing(base: Any, run: Run) -> Any:
        class P(base):  # type: ignore[misc]  # it is a variable
            dispatch = type(base.dispatch)(base.dispatch)

        def save_type(pickler: Any, obj: Any) -> None:
            if obj is _Default:
                pickler.framer.end_framing()
            base.dispatch[type](pickler, obj)

        P.dispatch[type] = save_type
        P.__module__ = "dill.of_a_test"
        return P

    for n in (12, 60, 1001):
        check(ORACLE, ours, _dumps([object(), [_Default(i) for i in range(n)]]), protocols=(2, 4), cls=ends_framing)


@both
def test_instances_with_odd_slots(ours: Implementation) -> None:
    """What asks a class for its slots comes as late as by stock, and fails with the same notes."""
    for n in (8, 12, 60):

        class Odd:
            __slots__ = ("a",)

        Odd.__slots__ = 5  # type: ignore[assignment]  # it is odd
        Odd.__module__ = "no such module"
        check(ORACLE, ours, _dumps([Odd() for _ in range(n)]), protocols=(2, 4), fails=True)
        for implementation in (ORACLE, ours):

            class Hiding:
                pass

            made = [Hiding() for _ in range(n)]
            made[0].__reduce_ex__ = lambda protocol, cls=Hiding: (cls, ())
            with contextlib.suppress(AttributeError), implementation.context():
                file = io.BytesIO()
                implementation.base(file, 4).dump(["p", made])
                assert b"__slotnames__" not in file.getvalue()


@needs_code
@pytest.mark.skipif(CPickler is None, reason="there is no C pickler, or it is switched off")
def test_instances_are_for_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """C writes all but the first one, however many there are, where there is nothing unusual."""
    seen: list[bool] = []
    rest = graft.rest

    def recorded(*args: Any) -> bool:
        seen.append(rest(*args))
        return seen[-1]

    monkeypatch.setattr(graft, "rest", recorded)
    for kind_of_class, n, expected in (
        ("plain", 100, [True]),
        ("plain", 1000, [True]),
        ("plain", 5000, [True]),
        ("dataclass", 100, [True]),
        ("slots", 100, [True]),
        ("a reduce of its own now and then", 100, [False]),
        ("state", 100, [True]),
        ("state of its own code", 100, []),
        ("a metaclass", 100, []),
        ("by name", 100, []),
    ):
        made = [_CLASSES[kind_of_class]()] * n
        made = [made[0](()) for _ in range(n)] if kind_of_class == "by name" else [made[0](i) for i in range(n)]
        for place in (made, ["p", made]):
            last.forget()  # a class may have the id of one before it
            seen.clear()
            with fastpickle.patched():
                dill.dumps(place)
            assert seen == expected, kind_of_class


_SCRIPT = """
import io
import sys
import dill
import fastpickle
{imports}
def countdown(n: int = 3) -> int:
    "Call itself."
    return countdown(n - 1) if n else Point.total

class Point:
    total = 0
    def __init__(self, x: int) -> None:
        self.x = x
    def moved(self, by=lambda x: x + 1):
        return Point(by(self.x))

data = [1, 2, 3]
objs = [countdown, Point, Point(1), [Point(i) for i in range(60)], lambda: data, Point(2).moved,
        {{"f": countdown, "data": data * 50}}, globals(), (countdown, [*range(1000)]),
        (countdown, (1, [2]), {{"x": None}}), (0, 1, sys.exit, ((countdown, (1, 2)), {{}})), [lambda: data, countdown]]

class ForkingPickler(dill.Pickler):
    "One that dill does not take for its own, as multiprocess's."
    __module__ = "another"

def dumps(obj, protocol, recurse):
    file = io.BytesIO()
    ForkingPickler(file, protocol, recurse=recurse).dump(obj)
    return file.getvalue()

for recurse in (False, True):
    for protocol in (2, 4, 5):
        for obj in objs:
            stock = dill.dumps(obj, protocol, recurse=recurse)
            with fastpickle.patched():
                assert dill.dumps(obj, protocol, recurse=recurse) == stock, (obj, protocol)
            from fastpickle.backends import dill as backend
            assert backend.dumps(obj, protocol, recurse=recurse) == stock, (obj, protocol)
            del backend
            stock = dumps(obj, protocol, recurse)
            with fastpickle.patched():
                assert dumps(obj, protocol, recurse) == stock, (obj, protocol)
print("same")
"""


@needs_code
@pytest.mark.parametrize("imports", ["", "import json, dataclasses", "from __future__ import annotations"])
def test_main(imports: str, tmp_path: Path) -> None:
    """What is of `__main__`, as most of what dill is used for is."""
    script = tmp_path / "script.py"
    text = _SCRIPT.format(imports="" if "future" in imports else imports)
    script.write_text((imports if "future" in imports else "") + text)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert result.stdout == "same\n", result.stderr


@needs_code
def test_at_once(no_races: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those without anything unusual are written without dill's function, also those in a class and in one another."""
    by_dill: list[Any] = []
    key = id(dill._dill.save_function)
    writer = hooks.entry_writers[key]

    def recorded(pickler: Any, obj: Any, *args: Any) -> Any:
        found = writer(pickler, obj, *args)
        is_dills = found is None or getattr(found, "func", None) is _dill_functions._save_function
        if is_dills and obj.__module__ != "dill._dill":
            by_dill.append(obj)
        return found

    monkeypatch.setitem(hooks.entry_writers, key, recorded)
    for name, n in (
        ("lambda", 0),
        ("defaults", 0),
        ("closure", 0),
        ("closure of containers", 0),
        ("closure of many", 0),
        ("recursive", 0),
        ("mutual", 0),
        ("levels", 0),
        ("100 names", 0),
        ("annotated", 0),
        ("globals of its own", 0),
        ("class", 0),
        ("long defaults", 1),
        ("an instance as default", 1),
        ("empty cell", 1),
    ):
        obj = kind(name)
        by_dill.clear()
        with fastpickle.patched():
            dill.dumps([obj, 1])
        assert len(by_dill) == n, name


@needs_code
@pytest.mark.parametrize("cls", [_forking, lambda base, run: base], ids=["multiprocess's", "dill's"])
def test_tasks_at_once(cls: Any) -> None:
    """They are written at once, by any pickler, and what is no task is not tried as one."""
    pool = (0, 1, objects.function, ((_closure(1), (1, 2)),), {})
    for task, is_at_once in (
        ((_closure(1), (1, 2.5), {"x": [None]}), True),
        ((functools.partial(_closure(1), 2), (1,)), True),
        ((objects.function, (1,), {}), True),
        (pool, True),
        ({"f": lambda: 1}, True),
        ((_closure(1), [objects.Plain()]), False),
        ((_closure(1), [*range(40)]), False),
        ((_levels(5), 1), False),
        (((((_closure(1),),),),), False),
    ):
        with fastpickle.patched():
            pickler = cls(dill.Pickler, None)(io.BytesIO(), 4)
            found = []
            pickler.save = lambda *args, found=found: found.append(args)  # type: ignore[misc]  # it is not called
            last.forget()
            assert (tasks.is_task(task, type(task)) is True) == is_at_once, task
            if is_at_once:
                memo: Any = {}
                assert tasks.encode_task(pickler, hooks.plan(cls(dill.Pickler, None)(io.BytesIO(), 4)), task, memo, [])


@pytest.mark.parametrize("name", KINDS)
def test_whether_it_is_a_task_is_soon_told(name: str) -> None:
    """Whatever it is, and has in it: functions that hold themselves, too."""
    obj = kind(name)
    last.forget()
    for task in (obj, (obj, 1), {"f": [obj]}, [(obj,)] * 3):
        calls = 0

        def count(frame: Any, event: str, arg: Any) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            tasks.is_task(task, type(task))
        finally:
            sys.setprofile(None)
        assert calls < 300


@needs_code
def test_tasks_that_fail_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that cannot be encoded after all is left out for some tasks."""
    tried = []
    encode = tasks.encode
    monkeypatch.setattr(tasks, "encode", lambda *args: (tried.append(1), encode(*args))[1])
    last.forget()
    task = (_executed("x = [1]\ndef f(): return x"), 1)
    expected = dill.dumps(task)
    with fastpickle.patched():
        for _ in range(40):
            assert dill.dumps(task) == expected
    assert 2 <= len(tried) <= 4
    last.forget()


_MUCH: dict[str, Callable[[], Any]] = {
    "texts": lambda: [f"text {i}" for i in range(500)],
    "dicts": lambda: {"a": [{"id": i, "tags": ["a", str(i)]} for i in range(200)]},
    "frames": lambda: [str(i) * 50 for i in range(3_000)],
    "instances": lambda: [objects.Plain() for _ in range(200)],
}


@both
@needs_code
@pytest.mark.parametrize("much", _MUCH)
def test_closure_over_much(much: str, ours: Implementation) -> None:
    """C keeps the memo behind the contents of a cell; whatever comes behind that looks up what is in there."""
    for case, wrap in {
        "alone": _closure,
        "two": lambda obj: _closure(obj, [obj, *_MUCH["texts"]()]),
        "behind": lambda obj: _closure(obj, "text 7", obj, 3),
        "first": lambda obj: (_closure(obj), obj, [f"text {i}" for i in range(3)]),
        "in another": lambda obj: _closure(_closure(obj), obj),
        "in an instance": lambda obj: objects.Viaduct([_closure(obj), obj]),
    }.items():

        def steps(run: Run, wrap: Any = wrap) -> None:
            obj = _MUCH[much]()
            run.pickler.dump(wrap(obj))
            run.pickler.dump([obj, 1])

        check(ORACLE, ours, steps, protocols=(2, 4, 5), file=lambda run: io.BytesIO(), case=case, fails=False)


@both
@needs_code
@pytest.mark.parametrize("much", _MUCH)
def test_memo_behind_a_cell(much: str, ours: Implementation) -> None:
    """It is fetched when somebody looks, or behind a cycle."""
    f: Any = None
    obj = [_MUCH[much]()]

    def cyclic() -> Any:
        return f, obj

    def steps(run: Run) -> None:
        nonlocal f
        f = None
        f = _closure(obj)
        run.pickler.dump(f)
        run.record("memo", run.pickler.memo, [i for i, _ in run.pickler.memo.values()])
        obj.append(f)
        run.pickler.clear_memo()
        run.pickler.dump(f)
        del obj[1:]
        f = cyclic
        run.pickler.dump(cyclic)

    check(ORACLE, ours, steps, protocols=(2, 4), file=lambda run: io.BytesIO(), fails=False)


@needs_code
@pytest.mark.skipif(CPickler is None, reason="there is no C pickler to have it")
def test_c_keeps_the_memo_behind_a_cell() -> None:
    closure = _closure(_MUCH["texts"]())
    with fastpickle.patched():
        for cls in dill.Pickler, backend.Pickler:
            pickler = cls(io.BytesIO(), 4)
            pickler.dump(closure)
            assert "_fastpickle_memo" in vars(pickler)


def test_entries_are_known() -> None:
    """The backend knows dill's functions in this version; if not, all of this would test nothing."""
    assert dill.__version__ in backend.KNOWN_VERSIONS
    assert {id(dill._dill.save_function), id(dill._dill.save_type)} <= hooks.entry_writers.keys()
