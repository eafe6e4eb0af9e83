"""dill: under fastpickle.patched(), and on fastpickle.backends.dill, against stock dill."""

from __future__ import annotations

import builtins
import codecs
import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import gc
import io
import logging
import os
import pathlib
import pickle
import random
import re
import subprocess
import sys
import textwrap
import threading
import types
import uuid
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oracle import objects, samples, strategies
from oracle.allowed import PYPY
from oracle.compare import ALL, Implementation, Run, describe_error, dumped, explain, stock_dumps, use
from oracle.parts import APartOf
from oracle.suite_evil import EvilSuite
from oracle.suite_hooks import HookSuite
from oracle.suite_values import Suite, ValueSuite

import fastpickle
from fastpickle import graft
from fastpickle._stdlib import CPickler, StockPickler
from fastpickle.accelerator import chunks
from fastpickle.accelerator import offers as offering
from fastpickle.at_once import quick, small
from fastpickle.objects.last import last

dill = pytest.importorskip("dill", reason="dill is not installed")
backend = pytest.importorskip("fastpickle.backends.dill", reason="dill is not installed")

# The import above edits the dispatch table of pickle._Pickler; what is not of dill is to be tested without.
dill.extend(False)


class Dill:
    dill_edits = True
    breadth = 1


class Installed(Dill):
    oracle = Implementation("dill.Pickler", dill.Pickler)
    ours = Implementation("dill.Pickler, installed", dill.Pickler, fastpickle.patched)


class Backend(Dill):
    oracle = Implementation("dill.Pickler", dill.Pickler)
    ours = Implementation("fastpickle.backends.dill.Pickler", backend.Pickler)


class BackendInstalled(Dill):
    oracle = Implementation("dill.Pickler", dill.Pickler)
    ours = Implementation("fastpickle.backends.dill.Pickler, installed", backend.Pickler, fastpickle.patched)


class Pickler(Dill):
    """fastpickle.Pickler and pickle._Pickler have dill's entries in their table now, and must still be equal."""

    oracle = Implementation("pickle._Pickler with dill's entries", fastpickle.__getattr__("_Pickler"))
    ours = Implementation("fastpickle.Pickler with dill's entries", fastpickle.Pickler)


def make_closure(n: int) -> Callable[[], Any]:
    """Return a closure that calls itself."""
    data = [1, "text", n]

    def inner(k: int = n) -> Any:
        return inner(k - 1) if k else data

    return inner


def make_class() -> type:
    """Return a class that can only be pickled by value."""

    class Local:
        attribute = [1, 2]

        def __init__(self, x: Any = None) -> None:
            self.x = x

        def method(self) -> Any:
            return type(self)(self.x)

        @property
        def half(self) -> float:
            return 0.5

        @staticmethod
        def without() -> int:
            return 1

        @classmethod
        def of_class(cls) -> Any:
            return cls

    return Local


#: What only dill can pickle.
BY_VALUE: dict[str, Callable[[], Any]] = {
    "lambda": lambda: lambda x, y=[1, 2], *, z=3: (x, y, z),
    "closure": lambda: make_closure(3),
    "two of one closure": lambda: [f := make_closure(2), f, {"f": f}],
    "local class": make_class,
    "instance of a local class": lambda: [(c := make_class())([1]), c("text"), c, c(c)],
    "many of a local class": lambda: [*map(make_class(), range(1001))],
    "function with attributes": lambda: _with_attributes(),
    "modules": lambda: [sys, subprocess, objects],
    "code": lambda: make_closure.__code__,
    "cell": lambda: make_closure(1).__closure__,
    "generator function": lambda: _generator,
    "partial, slices and methods": lambda: [
        slice(1, 2),
        objects.Plain().__init__,
        [].append,
        {}.keys(),
        {1: 2}.items(),
        range(3),
    ],
    "types": lambda: [type(None), type(...), type(lambda: 1), type(sys), type, object, int, objects.Plain, memoryview],
    "a proxy": lambda: objects.Plain.__dict__,
    "an io object": lambda: io.StringIO("text"),
    "a logger": lambda: logging.getLogger("oracle"),
    "sys.__dict__": lambda: [sys.__dict__, {"a": sys.__dict__}],
    "a module's __dict__": lambda: [objects.__dict__, textwrap.__dict__, 1],
    "__main__.__dict__": lambda: [sys.modules["__main__"].__dict__, 5],
    "a dict equal to __main__'s": lambda: [dict(sys.modules["__main__"].__dict__)],
    "a dict with a module's name": lambda: [
        {"__name__": "sys"},
        {"__name__": "no such"},
        {"__name__": 5},
        {"__name__": []},
        {1: 2},
    ],
    "dicts of all sizes": lambda: [dict.fromkeys(range(n), n) for n in range(40)],
    "a decorated function": lambda: __import__("functools").wraps(make_class)(lambda: 1),
    "an exception": lambda: ValueError(1, [2]),
    "numpy": lambda: _numpy_objects(),
}


def _with_attributes() -> Any:
    def function(x: int = 1) -> int:
        return x

    function.attribute = [1, {"a": function}]  # type: ignore[attr-defined]
    return function


def _generator() -> Iterator[int]:
    yield 1


def _numpy_objects() -> Any:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    return [numpy.arange(5), numpy.float64(1.5), numpy.dtype("int32"), numpy.add, [numpy.ones((3, 3))]]


SETTINGS = ({}, {"byref": True}, {"recurse": True}, {"byref": True, "recurse": True}, {"fmode": dill.CONTENTS_FMODE})


def by_pickler(obj: Any, protocol: int) -> bytes:
    """Pickle by a pickler that is not made by dill.dumps, which may do without one (TestDropped)."""
    return dumped(dill.Pickler, obj, protocol)


def outcome(dumps: Callable[..., bytes], *args: Any, **kwargs: Any) -> object:
    """Return the bytes, or describe the exception."""
    try:
        return dumps(*args, **kwargs)
    except RecursionError:
        pytest.skip("what the oracle cannot write, ours may (see oracle.allowed)")
    except Exception as exc:
        return describe_error(exc)


class DillSuite(Suite):
    """What only dill has."""

    @pytest.mark.parametrize("name", BY_VALUE)
    def test_by_value(self, name: str) -> None:
        """Functions, classes, modules and dicts of modules, by all settings."""
        for settings in SETTINGS:
            obj = BY_VALUE[name]()
            how = {"arguments": settings, "case": str(settings)}
            self.check_object(obj, protocols=self.some(name, settings), **how)
            self.check_object([1, {"a": (obj, "text")}, obj], protocols=self.some(name, settings, n=1), **how)

    @pytest.mark.parametrize("name", ["nested", "shared", "instances", "names", "cyclic dict"])
    def test_settings(self, name: str) -> None:
        """Plain data by all settings."""
        for settings in SETTINGS:
            self.check_made(samples.SAMPLES[name], arguments=settings, protocols=self.some(name, settings))

    @pytest.mark.parametrize(
        "name", ["nested", "instances", "closure", "local class", "sys.__dict__", "dicts of all sizes", "ranges"]
    )
    def test_trace(self, name: str) -> None:
        """With a trace the bytes are the same, and so is the trace."""
        make = samples.SAMPLES.get(name) or BY_VALUE.get(name) or CALLS["ranges beside what C is not given"]
        obj = make()
        logger = logging.getLogger("dill")
        for protocol in (2, 4):
            seen = []
            for implementation in (self.oracle, self.ours):
                stream = io.StringIO()
                handler = logging.StreamHandler(stream)
                for old in [*logger.handlers]:
                    logger.removeHandler(old)
                logger.addHandler(handler)
                dill.detect.trace(True)
                try:
                    result = use(implementation, protocol, lambda run: run.pickler.dump(obj))
                finally:
                    dill.detect.trace(False)
                    logger.removeHandler(handler)
                    logger.addHandler(old)
                seen.append((result, re.sub("0x[0-9a-f]+", "0x", stream.getvalue())))
            assert not explain(seen[0][0], seen[1][0])
            assert seen[0][1] == seen[1][1]

    def test_registered(self) -> None:
        """A type is registered with dill, also a builtin one, and taken out again."""
        for t in (list, dict, int, str, objects.Plain, complex):
            old = dill.Pickler.dispatch.get(t)

            @dill.register(t)
            def save_it(pickler: Any, obj: Any) -> None:
                pickler.save(None) if t is not type(None) else pickler.write(b"N")

            try:
                self.check_made(samples.nested)
                self.check_made(samples.instances, protocols=(2, 4))
            finally:
                del dill.Pickler.dispatch[t]
                if old is not None:
                    dill.Pickler.dispatch[t] = old
        self.check_made(samples.nested)

    def test_pickled_classes(self) -> None:
        """`dill.pickle(t, f)`, as older code calls it."""

        def save_viaduct(pickler: Any, obj: Any) -> None:
            pickler.save_reduce(objects.Viaduct, (obj.value,), obj=obj)

        dill.pickle(objects.Viaduct, save_viaduct)
        try:
            self.check_made(lambda: [objects.Viaduct([1]), [objects.Viaduct("a")]])
        finally:
            del dill.Pickler.dispatch[objects.Viaduct]

    def test_warnings(self) -> None:
        """What cannot be pickled raises what it raises."""
        for bad in (iter([1]), (x for x in ()), sys._getframe(), memoryview(b"x")):
            self.check_object([1, {"a": bad}])

    @pytest.mark.parametrize("name", ["nested", "closure", "local class", "names"])
    def test_dumps(self, name: str) -> None:
        """The functions of the modules."""
        make = samples.SAMPLES.get(name) or BY_VALUE[name]
        obj = make()
        for protocol in (None, *ALL):
            for settings in ({}, {"recurse": True}, {"byref": True}):
                expected = outcome(dill.dumps, obj, protocol, **settings)
                with self.ours.context():
                    assert outcome(dill.dumps, obj, protocol, **settings) == expected
                assert outcome(backend.dumps, obj, protocol, **settings) == expected

                def dump_to_file(*args: Any, **kwargs: Any) -> bytes:
                    file = io.BytesIO()
                    backend.dump(args[0], file, *args[1:], **kwargs)
                    return file.getvalue()

                assert outcome(dump_to_file, obj, protocol, **settings) == expected

    def test_settings_of_dill(self) -> None:
        """`dill.settings` are followed."""
        for name, value in {"protocol": 2, "byref": True, "recurse": True, "fmode": 1}.items():
            old = dill.settings[name]
            dill.settings[name] = value
            try:
                for make in (samples.nested, BY_VALUE["closure"], BY_VALUE["instance of a local class"]):
                    obj = make()
                    expected = outcome(dill.dumps, obj)
                    assert outcome(backend.dumps, obj) == expected
                    with fastpickle.patched():
                        assert outcome(backend.dumps, obj) == outcome(dill.dumps, obj) == expected
            finally:
                dill.settings[name] = old

    def test_session_flag(self) -> None:
        """A pickler in a session treats the first dict as __main__'s."""

        def steps(run: Run) -> None:
            run.pickler._session = True
            run.pickler._first_pass = True
            run.pickler.dump([{"a": 1}, {"b": {"c": 2}}])

        self.check(steps)

    def test_another_main(self) -> None:
        """A pickler whose `_main` is another module refers to that module's dict."""

        def steps(run: Run) -> None:
            run.pickler._main = objects
            run.pickler.dump([objects.__dict__, dict(objects.__dict__), {"a": objects.function}])

        self.check(steps, protocols=(2, 4))


class TestInstalled(Installed, DillSuite):
    pass


class TestBackend(Backend, DillSuite):
    pass


class TestInstalledValues(Installed, ValueSuite):
    pass


class TestBackendValues(Backend, ValueSuite):
    pass


class TestInstalledHooks(Installed, HookSuite):
    pass


@pytest.mark.usefixtures("taken_for_little")
class TestInstalledHooksLikeTheLast(Installed, HookSuite):
    pass


@pytest.mark.usefixtures("saved_as_stock")
class TestInstalledHooksAsStock(Installed, HookSuite):
    pass


@pytest.mark.usefixtures("saved_as_stock")
class TestInstalledAsStock(Installed, DillSuite):
    pass


class TestBackendInstalled(BackendInstalled, DillSuite):
    pass


class TestPicklerValues(Pickler, ValueSuite):
    if not strategies.is_thorough():  # what does not depend on the entries of the table
        test_sizes = test_many_frames = test_large_memo = test_frame_at_every_offset = test_frame_inside = None


if strategies.is_thorough():

    class TestBackendHooks(Backend, HookSuite):
        pass

    class TestBackendEvil(Backend, EvilSuite):
        pass

    class TestInstalledEvil(Installed, EvilSuite):
        pass

    class TestPicklerHooks(Pickler, HookSuite):
        pass


def run_main(code: str, tmp_path: Any) -> str:
    """Run a script, whose __main__ dill treats in its own ways, and return what it printed."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=child_environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def child_environment() -> dict[str, str]:
    """Return an environment in which a child finds the fastpickle that is tested."""
    return {**os.environ, "PYTHONPATH": str(Path(fastpickle.__file__).parent.parent), "PYTHONHASHSEED": "0"}


_MAIN = """
    import sys, io, dill, pickle
    import pickle as module_in_main

    class Base:
        x = [1]
    class OfMain(Base):
        def __init__(self, a=1): self.a = a
        def method(self): return super().__init__()
    def function(n=3): return function(n - 1) if n else (OfMain, constant)
    def with_globals(): return data, Base
    constant = 5
    data = {"a": [1, (2,)], "f": function}
    instance = OfMain([1])
    data["instance"] = instance
    compiled = compile("1 + 1", "name", "eval")

    def compare():  # in a function, so that neither fastpickle nor the results are a part of __main__
        import fastpickle, fastpickle.backends.dill as backend
        objs = [OfMain, instance, function, with_globals, data, [instance] * 3, lambda: data, globals(),
                dict(globals()),
                {1: globals()}, sys.modules["__main__"], [OfMain(i) for i in range(1001)], vars(OfMain),
                {"__name__": "__main__"}, compiled]
        count = 0
        for obj in objs:
            for protocol in range(6):
                for settings in ({}, {"byref": True}, {"recurse": True}):
                    def attempt(dumps):
                        try:
                            return dumps(obj, protocol, **settings)
                        except RecursionError:
                            return None
                        except Exception as exc:
                            return type(exc), str(exc)
                    attempt(dill.dumps)  # the first time dill may write something else
                    expected = attempt(dill.dumps)
                    with fastpickle.patched():
                        got = attempt(dill.dumps)
                    if expected is not None:
                        assert got == expected, (obj, protocol, settings)
                        assert attempt(backend.dumps) == expected, (obj, protocol, settings)
                        count += type(expected) is bytes
        print(count)

    compare()
"""


def test_main(tmp_path: Any) -> None:
    """Classes, functions and dicts of __main__, from a script."""
    assert int(run_main(_MAIN, tmp_path)) > (50 if sys.version_info >= (3, 15) else 150)  # without code objects


def test_session(tmp_path: Any) -> None:
    """A whole session is dumped to the same bytes."""
    run_main(
        """
        import io, sys, dill
        text = "x" * 100
        data = [1, {"a": (1, 2)}, text]
        def function(): return data
        class C: pass
        instance = C()

        def dumped(settings):  # what it binds is no part of the session
            file = io.BytesIO()
            try:
                dill.dump_module(file, **settings)
            except Exception as exc:
                return type(exc), str(exc)
            return file.getvalue()

        def compare():
            import fastpickle  # not a global: dill takes a module that is no installed one for a part of the session

            for settings in ({}, {"refimported": True}):
                dumped(settings)  # the first time dill writes something else
                expected = dumped(settings)
                with fastpickle.patched():
                    got = dumped(settings)
                assert got == expected
                assert type(got) is bytes or sys.version_info >= (3, 15), got  # dill pickles no code object there

        if hasattr(dill, "dump_module"):
            compare()
        """,
        tmp_path,
    )


@pytest.mark.parametrize("order", ["before", "after", "during"])
def test_import_order(order: str, tmp_path: Any) -> None:
    """dill is imported before install(), after it, and in the middle of a dump; stock is asked in the same order."""
    code = """
        import pickle, io, sys
        order = {order!r}
        accelerated = {accelerated!r}
        if order == "before":
            import dill
        if accelerated:
            import fastpickle
            fastpickle.install()
        class Importing:
            def __reduce__(self):
                import dill
                return (int, ())
        class P(pickle._Pickler):
            pass
        def local(): pass
        local.__qualname__ = "local"
        outs = []
        for protocol in range(6):
            for cls in (pickle._Pickler, P):
                file = io.BytesIO()
                try:
                    late = {{"b": [dict, type(None), (1,)]}}
                    cls(file, protocol).dump([1, dict, {{"a": {{}}}}, Importing(), late, lambda: 1, sys, [int]])
                except Exception as exc:
                    outs.append((type(exc).__name__, str(exc).split(" at 0x")[0]))
                else:
                    outs.append(file.getvalue())
        import dill
        for obj in ([1, {{"a": lambda: 1}}, local, Importing], [sys.__dict__, {{"a": {{}}}}]):
            try:
                outs.append(dill.dumps(obj, recurse=True))
            except Exception as exc:  # dill 0.4.1 pickles no code object on 3.15
                outs.append((type(exc).__name__, str(exc).split(" at 0x")[0]))
        dill.extend(False)
        file = io.BytesIO()
        pickle._Pickler(file, 4).dump([1, {{"a": 2}}])
        outs.append(file.getvalue())
        import re
        print(re.sub("0x[0-9a-f]+", "0x", repr(outs)))
    """
    expected = run_main(code.format(order=order, accelerated=False), tmp_path)
    assert run_main(code.format(order=order, accelerated=True), tmp_path) == expected


_AMBIGUOUS = """
    import sys, dill

    class Array:
        def __eq__(self, other): raise ValueError("ambiguous")
        __hash__ = None
    class Custom:
        def __reduce__(self): return int, (5,)
    array = Array()

    def attempt(obj, protocol):
        try:
            return dill.dumps(obj, protocol)
        except ValueError as exc:
            return str(exc)

    def compare():
        import fastpickle
        main = sys.modules["__main__"].__dict__
        found = []
        for protocol in range(6):
            for n in (0, 1, 10, 60, 3000, -1):
                like_main = {"array": 1, **{f"key {i}": i for i in range(len(main) - 1)}}
                texts = [f"text {i}" for i in range(n)] if n >= 0 else ["x" * 3000]
                for before in ([], ["array"], [Custom()], [Custom(), "array"]):
                    obj = [*before, [like_main, *texts]] if n else like_main
                    expected = attempt(obj, protocol)
                    with fastpickle.patched():
                        found.append(attempt(obj, protocol) == expected == "ambiguous")
        print(sum(found) - len(found))

    compare()
"""


def test_main_that_is_compared(tmp_path: Any) -> None:
    """A dict as long as that of __main__, with a key of a global whose __eq__ raises, anywhere in what is pickled."""
    assert int(run_main(_AMBIGUOUS, tmp_path)) == 0


_ASKED = """
    import sys, dill
    from asked import Asked, AskedByPart, AskedKey, Box, calls

    one = 1
    keys = {AskedKey(): 1}
    box = Box()

    def attempt(obj, protocol):
        calls.clear()
        try:
            return dill.dumps(obj, protocol), [*calls]
        except ValueError as exc:
            return str(exc), [*calls]

    def compare():
        import fastpickle
        n = len(sys.modules["__main__"].__dict__)
        fill = lambda start: {**start, **{f"key {i}": i for i in range(n - len(start))}}
        dicts = {
            "as long": fill({"one": Asked()}),
            "behind one that is equal": fill({"one": 1, "box": Asked()}),
            "behind one that is not there": fill({"not there": 1, "one": Asked()}),
            "the last": {**fill({}), "one": Asked()},
            "shorter": {"one": Asked()},
            "in a list": fill({"one": [Asked()]}),
            "a key": fill({AskedKey(): 1}),
            "a key within": fill({"keys": {AskedKey(): 1}}),
            "in another way": fill({"one": AskedByPart()}),
            "beside": fill({"one": 2}),
            "saved before": fill({"box": box, "one": Asked()}),
        }
        asked = 0
        for name, like_main in dicts.items():
            for protocol in PROTOCOLS:
                for many in (0, 1, 10, 100, 1500)[: 5 if protocol in (2, 4) else 4]:
                    others = [Asked() for i in range(many)]
                    whole = {"x": [others, like_main], "y": box}
                    for obj in ([*others, like_main], [box, *others, [like_main]], whole):
                        expected = attempt(obj, protocol)
                        with fastpickle.patched():
                            assert attempt(obj, protocol) == expected, (name, protocol, many)
                        asked += bool(expected[1])
        print(asked)

    compare()
"""


@pytest.mark.parametrize("name", ["__bool__", "__len__"])
def test_pickler_that_is_asked_whether_it_is_true(name: str) -> None:
    """dill asks its pickler so before it looks for what it saves by a name."""

    def outcome(protocol: int, obj: Any) -> tuple[bytes, int]:
        asked: list[Any] = []
        cls: Any = type("Pickler", (dill.Pickler,), {name: lambda self: asked.append(self) is None})
        file = io.BytesIO()
        pickler = cls(file, protocol)
        for _ in range(2):
            pickler.dump(obj)
        return file.getvalue(), len(asked)

    for obj in (
        [int, objects.function, objects.Plain],
        objects.Plain,
        {"a": [objects.Plain(b=1)] * 30},
        [*range(60), len],
    ):
        for protocol in range(6):
            expected = outcome(protocol, obj)
            with fastpickle.patched():
                assert outcome(protocol, obj) == expected, (obj, protocol)
        assert expected[1] > 0 or len in obj


def test_instances_that_are_compared(tmp_path: Any, a_part_of: APartOf) -> None:
    """Somebody's __eq__ is asked as often as by stock, where a dict is as long as that of __main__."""
    (tmp_path / "asked.py").write_text(
        textwrap.dedent("""
            import functools
            calls = []
            class Asked:
                def __init__(self): self.a = 1
                def __eq__(self, other):
                    calls.append(type(other).__name__)
                    raise ValueError("asked")
            class AskedKey(Asked):
                def __hash__(self): return hash("one")
            def equal(self, other, more):
                return Asked.__eq__(self, other)
            class AskedByPart:
                __eq__ = functools.partialmethod(equal, 1)
            class Box:
                pass
        """)
    )
    protocols = a_part_of(range(6))
    assert int(run_main(_ASKED.replace("PROTOCOLS", str(protocols)), tmp_path)) > 20 * len(protocols)


class Graph:
    """Refers to other objects, and has a length that nobody asks for."""

    def __init__(self, *held: Any) -> None:
        self.held = held
        self.first = held[0] if held else self

    def __len__(self) -> int:
        raise AssertionError("asked for its length")


_BY_VALUE = make_class()


#: What is all of a dump, and whether C writes it.
ALONE: dict[str, tuple[Callable[[], Any], bool]] = {
    "an instance": (lambda: Graph(), True),
    "a graph": (lambda: Graph(Graph(1, "a"), [Graph({"x": Graph(2.5)})], Graph()), True),
    "many": (lambda: Graph([Graph(i) for i in range(300)], 1, 2), True),
    "many atoms": (lambda: Graph(*range(30)), True),
    "a few atoms": (lambda: Graph(*range(5)), True),
    "of the standard library": (lambda: uuid.UUID(int=5), True),
    "an exception": (lambda: KeyError("a", 1), True),
    "an enum": (lambda: next(iter(objects.Colour)), True),
    "a function in it": (lambda: Graph([1], 2, lambda: 1), False),
    "a function beside": (
        lambda: (made := Graph([1], 2, 3), made.__dict__.update(f=len, g=make_class), made)[-1],
        True,
    ),
    "a class in it": (lambda: Graph([1], Graph, 3), True),
    "a class by value in it": (lambda: Graph([], make_class(), 3), False),
    "an instance of it": (_BY_VALUE, False),
    "a class": (lambda: Graph, True),
    "a class by value": (make_class, False),
    "a module in it": (lambda: Graph([], sys, 3), False),
    "a reduce of its own": (lambda: collections.UserString("a"), False),
    "a dict of a module in it": (lambda: Graph({"__name__": "sys"}, 1, 2), False),
    "in itself": (lambda: (made := Graph([1], 2, 3), made.__dict__.update(a=made), made)[-1], True),
}


@pytest.mark.skipif(CPickler is None or PYPY, reason="there is no C pickler")
@pytest.mark.parametrize("name", ALONE)
def test_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance or a class that is all of a dump is for C; what it gave up is not tried again for 15 dumps."""
    make, is_for_c = ALONE[name]
    asked: list[Any] = []
    by_c = quick.Quick.at_once
    monkeypatch.setattr(quick.Quick, "at_once", lambda *args: (asked.append(by_c(*args)), asked[-1])[1])
    for settings in ({}, {"byref": True}, {"recurse": True}):
        for protocol in range(6):
            expected = outcome(dill.dumps, make(), protocol, **settings)
            for _ in range(3):
                assert outcome(backend.dumps, make(), protocol, **settings) == expected
                with fastpickle.patched():
                    assert outcome(dill.dumps, make(), protocol, **settings) == expected
    for protocol in range(6):  # of ours, with the entries that dill gives stock's table
        expected = outcome(pickle._dumps, make(), protocol)
        for _ in range(3):
            assert outcome(fastpickle.dumps, make(), protocol) == expected
    last.forget()
    asked.clear()
    for _ in range(10):
        outcome(backend.dumps, make())  # an error on 3.15, where dill up to 0.4.1 saves no code object
    assert [*map(bool, asked)] == ([True] * 10 if is_for_c else [False] * len(asked))
    assert is_for_c or len([x for x in asked if x is not None]) <= 1


#: What some protocols have no opcode for, so that dill saves the type or function that makes it; codecs.encode is one.
UNWANTED: dict[str, Callable[[], Any]] = {
    "bytes": lambda: [b"text", b"", "bytes"],
    "bytearray": lambda: [bytearray(b"text"), bytearray()],
    "set": lambda: [{1}, {2}, set()],
    "frozenset": lambda: [frozenset({1}), frozenset()],
    "encode": lambda: [codecs.encode],
    "the types": lambda: [set, frozenset, bytes, bytearray],
    "their names": lambda: ["bytearray", "set", "builtins", "_codecs encode"],
    "many instances": lambda: [*(complex(i) for i in range(50)), bytearray(b"text"), {1}, b"x"],
}


@pytest.mark.parametrize("many", [0, 2_000, 30_000])
@pytest.mark.parametrize("name", UNWANTED)
def test_builtins(name: str, many: int) -> None:
    """Whatever C finds by itself to reduce a bytes, a bytearray or a set, dill saves it in its own way."""
    obj = [*range(many), UNWANTED[name](), codecs.encode, UNWANTED[name]()]
    for protocol in range(6):
        for what in (obj, obj[:-2], {"a": obj, "b": {"c": obj[:-1]}})[2 * (many == 30_000) :]:
            expected = dill.dumps(what, protocol)
            assert backend.dumps(what, protocol) == expected
            with fastpickle.patched():
                assert dill.dumps(what, protocol) == expected


Named = collections.namedtuple("Named", "x y")  # dill saves this class as a call that makes it


class MakesNamed:
    """Its reduce gives a class to call that dill saves in a way of its own."""

    def __reduce__(self) -> Any:
        return Named, (5, 2)


class MakesGraph:
    """Its reduce gives a class to call that is saved before."""

    def __reduce__(self) -> Any:
        return Graph, (5,)


@pytest.mark.parametrize("n", [0, 24, 25, 60])
@pytest.mark.parametrize("last", [lambda: [MakesNamed()], lambda: [MakesGraph(), Named]], ids=["a call", "behind one"])
@pytest.mark.parametrize("protocol", range(6))
def test_class_that_a_reduce_gives(n: int, last: Any, protocol: int) -> None:
    """Among many instances, too, dill saves a class in its own way that a reduce gives to call, or that comes next."""
    obj = [*(Graph(i) for i in range(n)), *last()]
    expected = dill.dumps(obj, protocol)
    assert backend.dumps(obj, protocol) == expected
    with fastpickle.patched():
        assert dill.dumps(obj, protocol) == expected


@pytest.mark.parametrize("first", ["__name__", "name"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_name_that_another_chunk_has_memoized(first: str, protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's dict is found by a key that C fetches, as it was written as a text among long ones, chunks before."""
    module = types.ModuleType("module_of_test_dill")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    data = [first, *(f"{i}" * 120 for i in range(12_000)), *map(str, range(60_000)), vars(module), *map(str, range(9))]
    expected = dill.dumps(data, protocol)
    with fastpickle.patched():
        assert dill.dumps(data, protocol) == expected
    assert backend.dumps(data, protocol) == expected


@pytest.mark.skipif(CPickler is None or PYPY, reason="there is no C pickler")
def test_c_pickler_after_dills_edits() -> None:
    """What dumps() keeps for the next dump has the plan in force, not that of before dill changed stock's table."""
    try:
        for edited in (False, True, False):
            dill.extend(edited)
            assert fastpickle.dumps(["a", b"text"], 2) == stock_dumps(["a", b"text"], 2)
            for plan, _, _, idle in fastpickle._quick._planned[3]:
                assert all(grafter.plan is plan for grafter, *_ in idle)
            plan, _, _, idle = fastpickle._quick._planned[3][2]
            assert idle
            assert bool(plan.graft_rule.unwanted[2]) == edited
    finally:
        dill.extend(False)


def test_getattr_with_dills_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `__getattr__` on a class is asked for what stock and dill look for, and for nothing else."""
    asked: list[str] = []

    def find(self: Any, name: str) -> Any:
        if name != "reducer_override":  # not for each atom
            asked.append(name)
        raise AttributeError(name)

    obj = {"a": [1, "text"], "b": None}
    outcomes = []
    dill.extend(True)
    try:
        for cls, dumps in ((StockPickler, stock_dumps), (fastpickle.Pickler, fastpickle.dumps)):
            dumps(obj, 4)  # nothing is learnt from now on
            asked.clear()
            with monkeypatch.context() as patch:
                patch.setattr(cls, "__getattr__", find, raising=False)
                outcomes.append((dumps(obj, 4), [*asked]))
    finally:
        dill.extend(False)
    assert outcomes[0] == outcomes[1]


#: What dill saves as a call of a function of its own, alone and in other objects.
CALLS: dict[str, Callable[[], Any]] = {
    "ranges": lambda: [range(i, 2 * i, 3) for i in range(30)],
    "the same range": lambda: [range(5)] * 3,
    "ranges beside what C is not given": lambda: [
        *(range(i) for i in range(60)),
        *(objects.Viaduct([range(2)]), r := range(10**300), range(7), r),
        *(range(i, 70_000) for i in range(60)),
        objects.Viaduct([1]),
    ],
    "long range": lambda: [range(1 << 70), range(-5, -(1 << 40), -7)],
    "builtin classes": lambda: [int, str, object, dict, range, type, list, (list,), {"list": list}],
    "types of dill": lambda: [type(len), type(make_class), type({}.keys()), type(sys), types.CodeType],
    "defaultdicts": lambda: [collections.defaultdict(list, a=[i]) for i in range(30)],
    "defaultdicts of several": lambda: [collections.defaultdict(t, {1: 2}) for t in (int, list, set, dict, None, str)],
    "defaultdict in defaultdict": lambda: collections.defaultdict(
        list, a=[collections.defaultdict(list, {1: [range(2)]})]
    ),
    "bytearrays": lambda: [bytearray(b"%d" % i) for i in range(60)],
    "sets": lambda: [{i} for i in range(60)] + [frozenset({i}) for i in range(60)],
    "complex": lambda: [complex(i, 1) for i in range(60)],
    "in dataclasses": lambda: [objects.Data(range(i)) for i in range(60)],
    "Counter": lambda: collections.Counter("abcdefghi" * 3 + "".join(map(chr, range(200, 300)))),
    "long defaultdict": lambda: collections.defaultdict(list, {i: [i] * 20 for i in range(100)}),
    "long OrderedDict": lambda: collections.OrderedDict((str(i), range(i)) for i in range(100)),
    "long deque": lambda: collections.deque([int, *range(100)], 200),
    "slices": lambda: [slice(1, 2), ..., NotImplemented],
    "with a closure": lambda: [make_closure(1), collections.defaultdict(list, a=range(5)), range(7), list],
    "classes by value": lambda: [collections.defaultdict(make_class()), list, range(3)],
}


@pytest.mark.parametrize("many", [0, 60, 2_000])
@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str, many: int, a_part_of: APartOf) -> None:
    """Ranges and builtin classes are not written as stock would, whoever writes them."""
    made = CALLS[name]()
    for obj in (made, [*range(many), made, "text", made], {"a": made, "b": [str(i) for i in range(many)]}):
        for protocol in a_part_of(range(6)):
            expected = outcome(dill.dumps, obj, protocol)
            for _ in range(2):
                assert outcome(backend.dumps, obj, protocol) == expected
                with fastpickle.patched():
                    assert outcome(dill.dumps, obj, protocol) == expected


def _patched_calls(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change how ranges or builtin classes are saved."""
    name = "save_singleton" if how.endswith("range") else "save_type"
    t = range if how.endswith("range") else type
    _dill = dill._dill
    original = getattr(_dill, name)

    def of_ones_own(pickler: Any, obj: Any, **more: Any) -> None:
        pickler.save_reduce(eval, (f"{obj!r}" if t is range else "int",), obj=obj)

    if how.startswith("register"):
        monkeypatch.setitem(dill.Pickler.dispatch, t, of_ones_own)
    elif how.startswith("subclass"):
        monkeypatch.setattr(dill.Pickler, "dispatch", dict(dill.Pickler.dispatch) | {t: of_ones_own})
    elif how.startswith("typemap"):
        monkeypatch.setitem(_dill._typemap, list, "dict")
        monkeypatch.setitem(_dill._typemap, make_class, "function")
        monkeypatch.delitem(_dill._typemap, int)
    elif how.startswith("repr"):
        monkeypatch.setattr(builtins, "repr", lambda obj: "range(5)")
    elif how.startswith("function"):
        monkeypatch.setattr(_dill, "_load_type", lambda name: _dill._reverse_typemap[name])
        monkeypatch.setattr(_dill, "_eval_repr", lambda text: eval(text))
    else:
        monkeypatch.setattr(_dill, name, lambda *args, **more: original(*args, **more))


@pytest.mark.parametrize("what", ["range", "type"])
@pytest.mark.parametrize("how", ["register", "subclass", "typemap", "function", "name", "repr"])
def test_calls_that_are_others(how: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered, or put into dill, counts."""
    _patched_calls(f"{how} {what}", monkeypatch)
    many = [*map(range, range(60)), objects.Viaduct([1]), *map(range, range(60))]
    classes = [collections.defaultdict(list), int, list, *map(str, range(60))]
    for obj in ([range(5), *range(60)], classes, [int, range], many):
        for protocol in (0, 2, 4, 5) if how != "repr" else (2, 4, 5):  # at 0 stock itself calls that for ints
            expected = outcome(dill.dumps, obj, protocol)
            assert outcome(backend.dumps, obj, protocol) == expected
            with fastpickle.patched():
                assert outcome(dill.dumps, obj, protocol) == expected


NAMED_OTHERWISE = [enum.EnumMeta, type(None), type(NotImplemented), type(...), threading.ExceptHookArgs]


@pytest.mark.parametrize("n", [0, 60, 2_000])
@pytest.mark.parametrize("cls", NAMED_OTHERWISE)
def test_class_that_has_another_name(cls: Any, n: int, a_part_of: APartOf) -> None:
    """dill writes a name of its own for a few classes."""
    for obj in ([*range(n), cls], [*(objects.Plain(a=i) for i in range(n)), {"a": cls}, cls]):
        for protocol in a_part_of(range(6)):
            expected = dill.dumps(obj, protocol)
            assert backend.dumps(obj, protocol) == expected
            with fastpickle.patched():
                assert dill.dumps(obj, protocol) == expected


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="up to 0.4.1 dill fails at classes by value there")
def test_class_by_value_among_many() -> None:
    """It is in the memo when C begins again with the kind for many instances, whatever it was saved by."""
    cls = make_class()
    for n in (100, 1_000, 1_500):
        obj = [cls(), [0, cls(), *range(n), *(cls() for _ in range(1500))]]
        for protocol in (2, 4):
            dill.dumps(obj, protocol)  # after that there are __slotnames__ in it
            expected = dill.dumps(obj, protocol)
            assert backend.dumps(obj, protocol) == expected
            with fastpickle.patched():
                assert dill.dumps(obj, protocol) == expected


@pytest.mark.parametrize("is_given", [True, False])
def test_function_is_sought_as_often(is_given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is asked for a function (PEP 562) as often as by dill, wherever that stands."""
    asked: list[str] = []

    found = types.FunctionType((lambda: None).__code__, {}, "found")  # whose globals dill can save, too

    def find(name: str) -> Any:
        asked.append(name)
        if is_given and name == "found":
            return found
        raise AttributeError(name)

    found.__module__, found.__qualname__ = "lazily", "found"
    module = types.ModuleType("lazily")
    module.__getattr__ = find  # type: ignore[method-assign]  # PEP 562
    monkeypatch.setitem(sys.modules, "lazily", module)
    many = [objects.Plain(a=i) for i in range(60)]
    for obj in ([found, *many], [*many, found], [*many, {1: [found] * 2}, *many]):
        for protocol in (2, 4, 5):
            asked.clear()
            expected = outcome(dill.dumps, obj, protocol)  # up to 0.4.1 dill fails at functions by value on 3.15
            sought = [*asked]
            assert sought
            for before in (1, many):
                backend.dumps(before, protocol)
                asked.clear()
                assert outcome(backend.dumps, obj, protocol) == expected
                assert asked == sought
                with fastpickle.patched():
                    dill.dumps(before, protocol)
                    asked.clear()
                    assert outcome(dill.dumps, obj, protocol) == expected
                    assert asked == sought


@pytest.mark.parametrize("protocol", range(6))
def test_dumps_with_dills_entries(protocol: int) -> None:
    """Importing dill edits stock's table: `fastpickle.dumps` writes what that makes of it, plain data by C."""
    objs = {
        "small": {"id": 1, "tags": ["a", 2.5]},
        "list": [(i, str(i)) for i in range(2000)],
        "module's": {"__name__": "x", "a": 1},
        "a module's inside": [{"__name__": "sys"}, *range(100)],
        "bytes": {"a": [b"text", {1, 2}, frozenset({3}), bytearray(b"x")]},
        "classes": [dict, Custom, len, codecs.encode],
        "class": Custom,
        "instances": [Custom(), 1],
        "cell": types.CellType(1),
    }
    dill.extend(True)
    try:
        for name, obj in objs.items():
            for _ in range(2):
                assert fastpickle.dumps(obj, protocol) == stock_dumps(obj, protocol), name
        if CPickler is not None:
            assert fastpickle._quick.at_once(objs["small"], protocol)
    finally:
        dill.extend(False)


_NAME = "__name__"
_module = types.ModuleType("module_of_plain_data")
_OF_MODULE = vars(_module)  # dill writes no dict, but where it is found
#: Lists in which "__name__" is a text, or the key of a dict that may be a module's; whether C can write them.
NAMED: dict[str, tuple[Callable[[], Any], bool]] = {
    "a text": (lambda: [(i, _NAME, {"a": i}) for i in range(300)], True),
    "a text that looks like one in a dict": (lambda: ["}", _NAME, *range(300)], True),
    "a key": (lambda: [({_NAME: "sys", "a": i}, _OF_MODULE) for i in range(300)], False),
    "a key, the only one": (lambda: [(i, {_NAME: i}) for i in range(300)], False),
    "a key of the outermost": (lambda: {**dict.fromkeys(range(300)), _NAME: "x"}, False),
    "a key in a dict with which a frame begins": (lambda: {"k" * 65_530: _OF_MODULE}, False),
    "a key that was a text before": (lambda: [_NAME, *range(3000), _OF_MODULE], False),
    "a key among many ints": (lambda: [*range(3000), [_OF_MODULE]], False),
    "a key of the last of many": (lambda: [*({"a": str(i)} for i in range(900)), _OF_MODULE], False),
    "a key beside a long text": (lambda: ["x" * 3000, [_OF_MODULE]], False),
    "a key beside a long text, of the outermost": (lambda: {"x": "y" * 3000, _NAME: "sys"}, False),
    "a key in a tuple behind a long text": (lambda: ("x" * 3000, {_NAME: 1}), False),
    "a key behind some texts": (lambda: [*map(str, range(300)), _OF_MODULE], False),
    "a text beside a long one": (lambda: ["x" * 3000, _NAME, {"a": 1}], True),
    "a key that is an equal text": (lambda: [*range(3000), {"".join(["__na", "me__"]): "sys"}], False),
}


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler, or it is switched off")
class TestNames:
    """dill writes a dict with a "__name__" in its own way if it is a module's."""

    @pytest.fixture(autouse=True)
    def importable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let dill find the module."""
        monkeypatch.setitem(sys.modules, _module.__name__, _module)

    @pytest.mark.parametrize("name", NAMED)
    def test_dumps(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """C writes what has no such dict, and nothing else."""
        make, is_for_c = NAMED[name]
        obj = make()
        offers: list[bool] = []
        offer = graft.at_once
        monkeypatch.setattr(graft, "at_once", lambda *args: offers.append(offer(*args)) or offers[-1])
        for protocol in range(6):
            expected = dill.dumps(obj, protocol)
            assert backend.dumps(obj, protocol) == expected
            offers.clear()
            with fastpickle.patched():
                assert by_pickler(obj, protocol) == dill.dumps(obj, protocol) == expected
            assert offers[0] is is_for_c

    @pytest.mark.parametrize("name", NAMED)
    def test_behind_a_function(self, name: str) -> None:
        """The key was memoized with the globals of a function by value."""
        function = types.FunctionType(make_closure.__code__, {_NAME: "no module"})
        for obj in ([function, NAMED[name][0]()], function(NAMED[name][0]())):
            for protocol in range(6):
                expected = outcome(dill.dumps, obj, protocol)  # up to 0.4.1 dill fails at closures on 3.15
                assert outcome(backend.dumps, obj, protocol) == expected
                with fastpickle.patched():
                    assert outcome(dill.dumps, obj, protocol) == expected

    @pytest.mark.parametrize("before", [_NAME, "another", ["}", _NAME], {"a": _NAME}])
    def test_in_parts(self, before: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """The key was memoized in a part that C wrote before, with a dict in it or without."""
        monkeypatch.setattr(offering, "longest", 2000)
        monkeypatch.setattr(chunks, "_FIRST_CHUNK", 1000)
        monkeypatch.setattr(chunks, "_CHUNK", 30_000)
        for x in (_OF_MODULE, {_NAME: "sys", "a": 2}, {"a": _NAME}, Custom()):
            obj = [before, *map(str, range(9000)), x, *map(str, range(1500)), [_OF_MODULE], Custom()]
            for protocol in (1, 3, 4, 5):
                expected = dill.dumps(obj, protocol)
                with fastpickle.patched():
                    assert dill.dumps(obj, protocol) == expected


#: A few objects in a container; whether C can write them from protocol 3 on.
SMALL: dict[str, tuple[Callable[[], Any], bool]] = {
    "a row": (lambda: {"id": 1, "at": datetime.datetime(2024, 1, 2), "n": decimal.Decimal("1.5")}, True),
    "instances": (lambda: [objects.Plain(a=1), objects.Data(2), {"b": objects.Frozen(3)}], True),
    "classes": (lambda: (objects.Plain, collections.OrderedDict), True),
    "functions": (lambda: {"f": dataclasses.asdict, "len": len}, True),
    "plain": (lambda: {"a": 1, "b": ["c", 2.5]}, True),
    "a closure": (lambda: [make_closure(2)], False),
    "a closure behind a list": (lambda: ([1, 2], make_closure(1)), False),
    "a class by value": (lambda: {"class": make_class()}, False),
    "an instance of it": (lambda: [1, make_class()()], False),
    "a namedtuple": (lambda: [collections.namedtuple("Two", "a b")(1, 2)], False),
    "a module": (lambda: {"module": sys}, False),
    "a reduce of its own": (lambda: [objects.Reduced(1), 1], False),
    "a range": (lambda: [range(3), complex(1, 2)], True),
    "a slice": (lambda: [slice(3), 1], True),
    "a key": (lambda: [objects.Plain(a=1), {_NAME: "sys"}], False),
}


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler, or it is switched off")
class TestSmall:
    """Whatever is in a small container, C is asked first, unless it has just given up at the like of it."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        """Return whether C has written it, for each dump about which it was asked."""
        monkeypatch.setattr(last, "gave_up_for", 0)
        monkeypatch.setattr(last, "refused", ())
        answers: list[bool] = []
        by_c = quick.Quick.at_once
        monkeypatch.setattr(quick.Quick, "at_once", lambda *args: (x := by_c(*args), answers.append(bool(x)))[0])
        return answers

    @pytest.mark.parametrize("name", SMALL)
    def test_dumps(self, name: str, asked: list[bool]) -> None:
        """Twice, since it is remembered what C gave up at."""
        make, is_for_c = SMALL[name]
        obj = make()
        for protocol in range(6):
            expected = outcome(dill.dumps, obj, protocol)  # up to 0.4.1 dill fails at closures on 3.15
            last.refused = ()  # at protocols below 3 C gives up at others
            for _ in range(2):
                assert outcome(backend.dumps, obj, protocol) == expected
                with fastpickle.patched():
                    asked.clear()
                    assert outcome(dill.dumps, obj, protocol) == expected
                    if protocol >= 3:
                        assert asked in ([is_for_c], [] if not is_for_c else None)

    def test_not_asked_again(self, asked: list[bool]) -> None:
        """Nor where the pickler's attributes would have to be looked at; until C has written something else."""
        closure, row = SMALL["a closure"][0](), SMALL["a row"][0]()
        with fastpickle.patched():
            for obj in (closure, closure, closure, row, row, closure, [1, *closure]):
                outcome(dill.dumps, obj)
        assert asked == [False, True, True, False]

    def test_what_is_refused_below(self, asked: list[bool]) -> None:
        """C finds it in vain, so the like of it is offered from time to time only, unless it is plain at the top."""
        obj: Any = {"a": 1, "at": datetime.date(2024, 1, 2), "below": {"f": [make_closure(1)]}}
        row = SMALL["a row"][0]()
        expected = outcome(dill.dumps, obj)
        with fastpickle.patched():
            for _ in range(40):
                assert outcome(dill.dumps, obj) == expected
            assert asked == [False] * 3
            asked.clear()
            for _ in range(20):
                dill.dumps(row)  # it is like that
                dill.dumps({**row, "more": 1})
            assert asked.count(True) >= 20
            dill.dumps(row)
            assert asked[-1]
            asked.clear()
            for _ in range(3):
                outcome(dill.dumps, [1, [make_closure(1)]])
                dill.dumps([1, [2]])
            assert asked == [False, True] * 3

    @pytest.mark.parametrize("seed", range(3))
    def test_in_any_order(self, seed: int, a_part_of: APartOf) -> None:
        """What is remembered of one dump changes no byte of the next."""
        objs = [make() for make, _ in SMALL.values()]
        for obj in objs:
            outcome(dill.dumps, obj, 2)  # after that there are __slotnames__ in a class
        expected = [[outcome(dill.dumps, obj, protocol) for protocol in range(6)] for obj in objs]
        with fastpickle.patched():
            for turn in a_part_of(range(400)):
                rng = random.Random(400 * seed + turn)
                i, protocol = rng.randrange(len(objs)), rng.randrange(6)
                for _ in range(rng.randrange(1, 4)):
                    assert outcome(dill.dumps, objs[i], protocol) == expected[i][protocol]
                    if rng.random() < 0.5:
                        assert outcome(backend.dumps, objs[i], protocol) == expected[i][protocol]


#: The same of a few objects; whether they are written at once.
FEW: dict[str, tuple[Callable[[], Any], bool]] = {
    "a task": (lambda: {"task": "resize", "width": 640, "tags": ["a", "b"]}, True),
    "dicts": (lambda: [{}, {"a": 1}, {"b": 2}], True),
    "no dict": (lambda: ["a", ("b", 3)], True),
    "a key": (lambda: {_NAME: "sys"}, False),
    "a key below": (lambda: [1, {"a": 1, _NAME: _module.__name__}], False),
    "a key that is no text": (lambda: {(_NAME,): 1}, False),
    "a key whose value is none": (lambda: {_NAME: 1}, False),
    "a text": (lambda: [_NAME], False),  # what is looked at is the bytes
    "that of a module": (lambda: _OF_MODULE, False),
    "that of a module below": (lambda: [_OF_MODULE, _OF_MODULE], False),
    "a copy of it": (lambda: dict(_OF_MODULE), False),
    "a function": (lambda: {"f": make_closure}, True),
}


@pytest.mark.skipif(CPickler is None or PYPY, reason="there is no C pickler")
@pytest.mark.parametrize("way", ["dumps", "dump"])
def test_uninstalled_before_c_is_asked(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another thread: the class has no `fastpickle_grafts` any more."""

    def dumped_by_dill() -> bytes:
        if way == "dumps":
            return dill.dumps(obj)  # type: ignore[no-any-return]  # dill has no types
        file = io.BytesIO()
        dill.dump(obj, file)
        return file.getvalue()

    def uninstalling(cls: Any) -> Any:
        fastpickle.uninstall()
        return attributes_of(cls)

    obj = {"a": 1, "b": [2, "text"]}
    expected = dumped_by_dill()
    attributes_of = quick.attributes_of
    fastpickle.install()
    monkeypatch.setattr(quick, "attributes_of", uninstalling)
    assert dumped_by_dill() == expected
    assert not fastpickle.is_installed()


class TestFew:
    """Small plain data is written at once where dill's own functions would do nothing of their own."""

    @pytest.fixture(autouse=True)
    def importable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let dill find the module."""
        monkeypatch.setitem(sys.modules, _module.__name__, _module)

    @pytest.fixture
    def tried(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        """Record whether each dump that came so far was written at once."""
        seen: list[bool] = []
        at_once = small.at_once

        def record(*args: Any) -> Any:
            is_written = at_once(*args)  # what is no plan is false, too
            seen.append(bool(is_written))
            return is_written

        monkeypatch.setattr(small, "at_once", record)
        return seen

    @pytest.mark.parametrize("name", FEW)
    @pytest.mark.skipif(PYPY, reason="PyPy has a path of its own")
    def test_dumps(self, name: str, tried: list[bool]) -> None:
        """At once from protocol 4 on."""
        make, is_small = FEW[name]
        for protocol in range(6):
            last.forget()
            expected = dill.dumps(make(), protocol)
            with fastpickle.patched():
                assert by_pickler(make(), protocol) == expected
                assert tried == [is_small and protocol >= 4]
                assert dill.dumps(make(), protocol) == expected
            assert backend.dumps(make(), protocol) == expected
            for cls in (dill.Pickler, backend.Pickler):
                file = io.BytesIO()
                with fastpickle.patched():
                    pickler = cls(file, protocol)
                    pickler.dump(make())
                    pickler.dump([make()])
                stock = io.BytesIO()
                pickler = dill.Pickler(stock, protocol)
                pickler.dump(make())
                pickler.dump([make()])
                assert file.getvalue() == stock.getvalue()
            tried.clear()

    @pytest.mark.skipif(PYPY, reason="PyPy has a path of its own")
    def test_forbidden(self, tried: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
        """A trace, a session, and functions that are registered for a builtin type."""
        obj = {"a": 1, "b": [2, "c"]}

        def check(is_small: bool, cls: Any = dill.Pickler, **attributes: Any) -> None:
            found = []
            for context in (contextlib.nullcontext, fastpickle.patched):
                file = io.BytesIO()
                pickler = cls(file, 4)
                vars(pickler).update(attributes)
                with context():
                    pickler.dump(obj)
                found.append(file.getvalue())
            assert found[0] == found[1]
            assert tried == [is_small]
            tried.clear()

        check(True)
        check(False, _session=True, _first_pass=False)
        dill.detect.trace(True)
        try:
            check(False)
        finally:
            dill.detect.trace(False)
        check(True)
        for t in (dict, list, str, int):
            table = type(dill.Pickler.dispatch)(dill.Pickler.dispatch)
            table[t] = lambda pickler, obj: pickler.write(b"N")
            check(False, type("Pickler", (dill.Pickler,), {"dispatch": table, "__module__": "dill._dill"}))
        check(True, type("Pickler", (dill.Pickler,), {"__module__": "dill._dill"}))
        monkeypatch.setattr(dill._dill, "_main_module", types.ModuleType("main"))
        vars(dill._dill._main_module).clear()
        vars(dill._dill._main_module).update(obj)  # it has no __name__, and equals what is dumped
        check(False)

    @pytest.mark.skipif(PYPY, reason="PyPy has a path of its own")
    def test_first_dump(self, tmp_path: Any) -> None:
        """It is known from the first dump on what dill does, however small that is."""
        code = """
            import fastpickle; fastpickle.install()
            from fastpickle.at_once import small
            import dill
            at_once = small.at_once
            small.at_once = lambda *args: print(at_once(*args)) or True
            dill.dumps({"a": 1})
        """
        assert run_main(code, tmp_path) == "True\n"


@pytest.mark.skipif(CPickler is None, reason="there is no C pickler, or it is switched off")
class TestDropped:
    """`dill.dumps` drops the pickler that it makes, so that need not be filled; where it may be seen it is."""

    DATA: Any = (
        {"a": [1, "text"], "b": (2, None, 1.5)},
        [f"text {i}" for i in range(2000)],
        [[i] for i in range(1001)],
    )

    @pytest.fixture
    def written(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        """Record whether the dumps that came so far were written without their pickler."""
        found: list[bool] = []
        write = backend._quick_installed.write
        monkeypatch.setattr(backend._quick_installed, "write", lambda *args: found.append(write(*args)) or found[-1])
        with fastpickle.patched():
            dill.dumps([1, 2, 3, 4])  # the class is met
        found.clear()
        return found

    def outcomes(self, do: Callable[[Any], Any]) -> list[Any]:
        """Return what comes of some objects by stock; it is the same installed."""
        stock = [outcome(do, obj) for obj in self.DATA]
        with fastpickle.patched():
            assert [outcome(do, obj) for obj in self.DATA] == stock
        return stock

    def test_dumps(self, written: list[bool]) -> None:
        """All protocols, and what is passed on to the pickler; not what C cannot write."""
        for protocol in range(6):
            for kwds in ({}, {"byref": True}, {"recurse": True}, {"fix_imports": False}):
                self.outcomes(lambda obj, p=protocol, k=kwds: dill.dumps(obj, p, **k))
                is_for_c = protocol >= 3 or "fix_imports" not in kwds
                assert written == [is_for_c] * len(self.DATA)
                written.clear()
                for obj in (map, [b"bytes", OSError, (range(3), {1})], [Custom()], ["a", make_closure(2)]):
                    expected = outcome(dill.dumps, obj, protocol, **kwds)
                    with fastpickle.patched():
                        assert outcome(dill.dumps, obj, protocol, **kwds) == expected
                written.clear()
        self.outcomes(lambda obj: dill.dumps(obj, 5, buffer_callback=print))
        assert all(written)

    def test_little_alone(self, written: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
        """A class, and what there is next to nothing in, goes hook by hook, and so do the next ones, without a look."""
        looks: list[Any] = []
        at_once = small.at_once
        monkeypatch.setattr(small, "at_once", lambda *args: looks.append(args) or at_once(*args))
        for obj in (
            objects.Plain, OSError, datetime.date(2020, 1, 1), uuid.UUID(int=1), pathlib.PurePosixPath("a"),
            decimal.Decimal("1.5"), ValueError("text"), type("New", (objects.Plain,), {"a": [1, 2]}),
        ):  # fmt: skip
            for protocol in (0, 2, 4):
                expected = outcome(dill.dumps, obj, protocol)
                last.forget()
                looks.clear()
                with fastpickle.patched():
                    for _ in range(16):
                        assert outcome(dill.dumps, obj, protocol) == expected
                    assert len(looks) == 1 or getattr(obj, "__name__", "") == "New"  # dill saves a new class by value
                    assert written == []
        with fastpickle.patched():
            dill.dumps(objects.Plain(a=1))
        assert written == [True]

    def test_nothing_is_kept(self, written: list[bool]) -> None:
        """The file that was written to is not held by what is kept for the next dump."""
        with fastpickle.patched():
            for protocol in range(6):
                for *_, idle in backend._quick_installed._planned[3]:
                    idle.clear()
                for obj in (self.DATA[0], [map] * 3):
                    file = io.BytesIO()
                    dill.dump(obj, file, protocol)
                    gone = weakref.ref(file)
                    del file
                    gc.collect()
                    assert gone() is None
        assert any(written)

    def test_files(self, written: list[bool], tmp_path: Any) -> None:
        """In memory, wherever in it; not with a `write` of its own, and not to what can fail in the middle."""

        def in_memory(obj: Any) -> Any:
            file = io.BytesIO(b"0123456789" * 3)
            file.seek(5)
            dill.dump(obj, file)
            return file.getvalue(), file.tell()

        self.outcomes(in_memory)
        assert written == [True] * 3
        written.clear()

        class OfItsOwn(io.BytesIO):
            pass

        def elsewhere(obj: Any) -> Any:
            found = []
            other = OfItsOwn()
            dill.dump(obj, other)
            seen: list[bytes] = []
            redirected: Any = io.BytesIO()
            redirected.write = lambda data: seen.append(bytes(data))
            dill.dump(obj, redirected)
            aside: Any = io.BytesIO()
            aside.write = other.write
            dill.dump(obj, aside)
            lines: Any = io.BytesIO()
            lines.write = lines.writelines
            found.append(outcome(dill.dump, obj, lines))
            with open(tmp_path / "file", "wb") as file:
                dill.dump(obj, file)
            return other.getvalue(), redirected.getvalue(), b"".join(seen), found, (tmp_path / "file").read_bytes()

        self.outcomes(elsewhere)
        assert not any(written)

    def test_files_that_fail(self) -> None:
        """The errors are stock's, and so is what is written by then."""

        def dump(obj: Any) -> Any:
            closed, exported = io.BytesIO(), io.BytesIO()
            closed.close()
            with exported.getbuffer():
                return [outcome(dill.dump, obj, closed), outcome(dill.dump, obj, exported), exported.getvalue()]

        self.outcomes(dump)

    def test_picklers_that_are_kept(self, written: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
        """By whoever calls dump(), by a subclass, by what stands for dill's class, by an `__init__`."""
        kept: list[Any] = []

        class Keeping(dill.Pickler):  # type: ignore[misc,name-defined]  # dill has no types
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                kept.append(self)

        def memo_of(pickler: Any) -> Any:
            return [(number, x) for number, x in pickler.memo.values()]

        def held(obj: Any) -> Any:
            file = io.BytesIO()
            pickler = dill.Pickler(file)
            pickler.dump(obj)
            pickler.dump([obj])
            bound = dill.Pickler(file).dump
            bound(obj)
            return file.getvalue(), memo_of(pickler), memo_of(bound.__self__)

        self.outcomes(held)
        assert not written

        def made_by(make: Any) -> Callable[[Any], Any]:
            def dump(obj: Any) -> Any:
                with monkeypatch.context() as patch:
                    patch.setattr(dill._dill, "Pickler", make)
                    pickled = dill.dumps(obj)
                return pickled, memo_of(kept.pop())

            return dump

        original = dill.Pickler
        for make in (Keeping, lambda *args, **kwargs: kept.append(original(*args, **kwargs)) or kept[-1]):
            self.outcomes(made_by(make))
        assert not any(written)
        init = dill.Pickler.__init__
        monkeypatch.setattr(dill.Pickler, "__init__", lambda self, *a, **k: kept.append(self) or init(self, *a, **k))
        self.outcomes(lambda obj: (dill.dumps(obj), memo_of(kept.pop())))
        assert not any(written)

    def test_hooks(self, written: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
        """What is set on dill's class is asked, and no longer when it is taken away."""
        asked: list[Any] = []
        for name, value in {
            "persistent_id": lambda self, obj: "one" if obj == 1 else None,
            "reducer_override": lambda self, obj: asked.append(obj) or NotImplemented,
            "memoize": lambda self, obj: asked.append(len(self.memo)),
            "save_reduce": lambda self, *args, **kwargs: asked.append(args),
            "_batch_appends": lambda self, items, obj=None: self.write(b"0"),
            "__getattr__": lambda self, name: object.__getattribute__(self, name),
            "save": lambda self, obj, save_persistent_id=True: self.write(b"N"),
            "dump": lambda self, obj: self.write(b"N."),
            "fastpickle_grafts": False,
        }.items():
            with monkeypatch.context() as patch:
                patch.setattr(dill.Pickler, name, value, raising=False)
                self.outcomes(dill.dumps)
            assert not any(written), name
            written.clear()
        for t in (list, dict, str, int):
            with monkeypatch.context() as patch:
                patch.setitem(dill.Pickler.dispatch, t, lambda pickler, obj: pickler.write(b"N"))
                self.outcomes(dill.dumps)
            assert not any(written), t
            written.clear()
        dill.detect.trace(True)
        try:
            self.outcomes(dill.dumps)
        finally:
            dill.detect.trace(False)
        assert not any(written)
        written.clear()
        self.outcomes(dill.dumps)
        assert written == [True] * 3

    @pytest.mark.parametrize("name", ["__bool__", "__len__", "__getattr__"])
    def test_hook_is_asked_as_by_stock(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is set on dill's class is asked no more often where C writes all, nor where it gives up."""
        asked: list[Any] = []

        def truth(self: Any) -> bool:
            asked.append(None)
            return True

        def find(self: Any, name: str) -> Any:
            if name != "reducer_override" and not name.startswith("_fastpickle"):  # the first not for each atom
                asked.append(name)
            raise AttributeError(name)

        for obj in (self.DATA[0], [*range(2000)], {"a": [1, Custom()]}):
            dill.dumps(obj)  # it is known before
            monkeypatch.setattr(dill.Pickler, name, find if name == "__getattr__" else truth, raising=False)
            outcomes = []
            for context in (contextlib.nullcontext, fastpickle.patched):
                with context():
                    asked.clear()
                    outcomes.append((dill.dumps(obj), [*asked]))
            assert outcomes[0] == outcomes[1]
            monkeypatch.undo()

    def test_pickle_that_is_patched(self, written: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
        """What dill's pickler is made with, and what dill calls."""
        init = pickle._Pickler.__init__  # type: ignore[attr-defined]  # private, and what dill is made on

        def fast(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            self.fast = True

        class Framer(pickle._Framer):  # type: ignore[misc,name-defined]  # as above
            def start_framing(self) -> None:
                pass

        class Table(type(dill.Pickler.dispatch)):  # type: ignore[misc]  # dill has no types
            def get(self, key: Any, default: Any = None) -> Any:
                return (lambda pickler, obj: pickler.write(b"N")) if key is str else super().get(key, default)

        def save_dict(self: Any, obj: Any) -> None:
            self.write(b"N")

        for target, name, value in (
            (pickle._Pickler, "__init__", fast),  # type: ignore[attr-defined]  # as above
            (pickle, "_Framer", Framer),
            (dill.Pickler, "dispatch", Table(dill.Pickler.dispatch)),
            (pickle._Pickler, "save_dict", save_dict),  # type: ignore[attr-defined]  # as above
        ):
            with monkeypatch.context() as patch:
                patch.setattr(target, name, value)
                self.outcomes(dill.dumps)
                self.outcomes(lambda obj: dill.dumps({"b": 1, "a": obj[0] if type(obj) is list else 2}))
            assert not any(written), name
            written.clear()
        self.outcomes(dill.dumps)
        assert written == [True] * 3

    @pytest.mark.parametrize("code", [
        """
            def dump(obj, file, protocol=None, *args, **kwargs):
                pickler = dill._dill.Pickler(file)
                pickler.dump(["header", "x"])
                pickler.dump(obj)
            dill._dill.dump = dump
        """,
        "dill._dill.dump = functools.partial(lambda f, *args, **kwargs: f(*args, **kwargs), dill._dill.dump)",
        """
            original = dill.Pickler.save
            @functools.wraps(original)
            def save(self, obj, *args, **kwargs):
                return original(self, "replaced" if obj == "text" else obj, *args, **kwargs)
            dill.Pickler.save = save
        """,
        """
            original = dill.Pickler.dispatch[dict]
            @functools.wraps(original)
            def save_module_dict(pickler, obj):
                original(pickler, dict(sorted(obj.items())))
            dill._dill.save_module_dict = dill.Pickler.dispatch[dict] = save_module_dict
        """,
    ])  # fmt: skip
    def test_dill_that_is_patched_before(self, code: str, tmp_path: Any) -> None:
        """What stands in the place of dill's functions is not taken for them."""
        script = textwrap.dedent("""
            import functools, dill, fastpickle
            {code}
            objs = [1, 2, "x", "header", "text"], {{"b": 1, "a": "text"}}, [[i] for i in range(100)]
            expected = [dill.dumps(obj) for obj in objs]
            fastpickle.install()
            print([dill.dumps(obj) for obj in objs] == expected, [dill.dumps(obj) for obj in objs] == expected)
        """)
        assert run_main(script.format(code=textwrap.dedent(code)), tmp_path) == "True True\n"

    def test_called_by_c(self, tmp_path: Any) -> None:
        """There is no Python frame that calls."""
        code = """
            import fastpickle; fastpickle.install()
            import atexit, dill, io, pickle
            dill.dumps([1, 2, 3, 4])
            file = io.BytesIO()
            pickler = dill.Pickler(file, 4)
            atexit.register(lambda: print(pickle.loads(file.getvalue())))
            atexit.register(super(dill.Pickler, pickler).dump, {"a": [1, "text"]})
        """
        assert run_main(code, tmp_path) == "{'a': [1, 'text']}\n"

    def test_inside_of_a_dump(self, written: list[bool]) -> None:
        """What is dumped by a reduce is a dump of its own."""

        class Nested:
            def __reduce__(self) -> Any:
                return bytes, (dill.dumps({"a": [1, 2, 3, 4]}),)

        for obj in (Nested(), [1, Nested(), "a" * 3, Nested()]):
            expected = dill.dumps(obj)
            with fastpickle.patched():
                assert dill.dumps(obj) == expected


class Custom:
    """Is reduced by a function of its own."""

    def __reduce__(self) -> Any:
        return Custom, ()


class Key:
    """Is hashed by a number of its own, which it may lose."""

    number: int

    def __hash__(self) -> int:
        return self.number


def test_keys_are_not_hashed_again() -> None:
    """Stock looks a text up among the keys of a dict, which asks none of them for its hash."""
    key = Key()
    key.number = 1
    obj = [{key: 1}, _NAME]
    del key.number
    for protocol in range(6):
        expected = dill.dumps(obj, protocol)
        assert backend.dumps(obj, protocol) == expected
        with fastpickle.patched():
            assert dill.dumps(obj, protocol) == expected


@pytest.mark.parametrize("protocol", [None, 4.0, True, -1, 99, "4"])
def test_protocol_of_the_settings(protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A protocol in dill's settings is taken as it is."""
    monkeypatch.setitem(dill.settings, "protocol", protocol)
    assert outcome(backend.dumps, [1]) == outcome(dill.dumps, [1])


@pytest.mark.parametrize("name", ["dump", "__init__"])
def test_method_that_was_replaced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pickler is made and used by is asked, though there need be no pickler."""
    original = getattr(dill.Pickler, name)

    def dump(pickler: Any, obj: Any) -> None:
        original(pickler, ("wrapped", obj))

    def init(pickler: Any, *args: Any, **kwargs: Any) -> None:
        original(pickler, *args, **kwargs)
        pickler.persistent_id = lambda obj: "one" if obj == 1 else None

    monkeypatch.setattr(dill.Pickler, name, {"dump": dump, "__init__": init}[name])
    expected = dill.dumps([1])
    assert b"wrapped" in expected or b"one" in expected
    assert backend.dumps([1]) == expected
    monkeypatch.undo()
    assert backend.dumps([1]) == dill.dumps([1]) != expected


def test_odd_globals(tmp_path: Any) -> None:
    """A global of `__main__` may have any name, or none, and an `__eq__` that is asked."""
    code = """
        import dill, fastpickle, fastpickle.backends.dill as backend

        class Odd:
            __hash__ = None
            def __eq__(self, other): raise ValueError("asked")

        def attempt(dumps, *args):
            try:
                return dumps(*args)
            except Exception as exc:
                return repr(exc)

        def compare():
            for name in "x", 1, "\\u4e2d\\u00e9", "a\\nb", (2, "x"):
                globals()[name] = Odd()
                n = len(globals())
                for at in range(3):
                    like = {f"key {i}": i for i in range(n - 1)}
                    like = {name: 5, **like} if at == 0 else {**like, name: 5} if at == 1 else {**like, "other": 5}
                    texts = ["some text %d" % i for i in range(2000)]
                    for obj in [{"a": "text"}, {"a": 1}, *texts], [like, "x" * 2000], like:
                        for protocol in 0, 1, 4, 5:
                            expected = attempt(dill.dumps, obj, protocol)
                            assert attempt(backend.dumps, obj, protocol) == expected, (name, at, protocol)
                            with fastpickle.patched():
                                assert attempt(dill.dumps, obj, protocol) == expected, (name, at, protocol)
                            print(type(expected).__name__)
                del globals()[name]
        compare()
    """
    out = run_main(code, tmp_path).split()
    assert set(out) == {"bytes", "str"}


class _Odd(str):
    """Is equal to what dill looks for."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


@pytest.mark.parametrize("name", ["ufunc", "Other"])
def test_class_is_moved_while_it_is_saved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dill asks where an object's class is for each object, and so whatever stands there now."""
    module = types.ModuleType("module_of_a_moving_class")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def given(*args: Any) -> Any:
        return args

    given.__module__, given.__qualname__ = module.__name__, "given"
    monkeypatch.setattr(module, "given", given, raising=False)
    found = []
    for is_ours in (False, True):
        count = 0

        def reduce(self: Any, protocol: int) -> Any:
            nonlocal count
            count += 1
            if count == 20:
                cls.__module__ = _Odd(module.__name__)
            return given, (count,)

        cls = type(name, (), {"__module__": module.__name__, "__reduce_ex__": reduce})
        file = io.BytesIO()
        error = None
        with fastpickle.patched() if is_ours else contextlib.nullcontext():
            try:
                dill.Pickler(file, 4, byref=True).dump([[[cls()]] for _ in range(30)])
            except Exception as exc:
                error = type(exc), str(exc)
            finally:
                is_registered = dict.pop(dill.Pickler.dispatch, cls, None) is not None
        found.append((file.getvalue(), error, is_registered))
    assert found[0] == found[1]
