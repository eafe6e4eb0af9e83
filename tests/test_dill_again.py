"""Functions that dill is given again and again: the same as stock dill, whatever changes in between."""

from __future__ import annotations

import _imp
import builtins
import contextlib
import copyreg
import gc
import io
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oracle import objects
from oracle.allowed import DILL_PICKLES_CODE, PYPY
from oracle.compare import ALL, Implementation, Run, check
from oracle.dills import ORACLE, both, dill

from fastpickle.objects.last import last

again = pytest.importorskip("fastpickle.backends._dill_again", reason="dill is not installed")
functions = pytest.importorskip("fastpickle.backends._dill_functions", reason="dill is not installed")
if PYPY:
    pytest.skip("nothing is written at once there", allow_module_level=True)
if not DILL_PICKLES_CODE:
    pytest.skip("dill pickles no code objects there", allow_module_level=True)

#: More than it takes for a template.
MANY = 6


def _closure(*values: Any) -> Any:
    if not values:
        return lambda x: x
    a, *b = values
    if not b:
        return lambda x: (x, a)
    (b,) = b
    return lambda x: (x, a, b)


def _executed(text: str, **names: Any) -> Any:
    """Return the function that a text defines, in a module of its own that can be imported."""
    module = types.ModuleType("of_a_test")
    sys.modules["of_a_test"] = module
    vars(module).update(names)
    exec(compile(text, "of_a_test", "exec", dont_inherit=True), vars(module))
    return vars(module).pop("f")


@pytest.fixture(autouse=True)
def nothing_is_met(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin with nothing, and learn sooner than otherwise: the tests take a third of the time."""
    monkeypatch.setattr(again, "_OFTEN", 4)
    functions._again._met.clear()
    functions._again._times.clear()
    last.forget()
    yield
    sys.modules.pop("of_a_test", None)


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "no closure": lambda: _closure(),
    "an int": lambda: _closure(3),
    "a text": lambda: _closure("text"),
    "atoms": lambda: _closure(None, 1.5),
    "a long int": lambda: _closure(1 << 70),
    "many": lambda: _closure(True, b"bytes"),
    "a list": lambda: _closure([1]),
    "a function": lambda: _closure(_closure(1)),
    "defaults": lambda: _executed("def f(a=1, b='b', *, c=2.5, d=None): return a, b, c, d"),
    "a tuple as default": lambda: _executed("def f(a=(1, 2)): return a"),
    "a list as default": lambda: _executed("def f(a=[]): return a"),
    "a docstring": lambda: _executed("def f():\n 'A doc.'\n return 1"),
    "annotations": lambda: _executed("def f(a: int, b: str = 'b', *c: float) -> bool: return True"),
    "texts as annotations": lambda: _executed(
        "from __future__ import annotations\ndef f(a: int, b: list[str]) -> 'g': return True"
    ),
    "other annotations": lambda: _executed("def f(a: list[int], b: 5) -> None: return True"),
    "a class as annotation": lambda: _executed("def f(a: C) -> None: return True", C=objects.Plain),
    "an attribute": lambda: _with_attribute(),
    "nested code": lambda: _closure_with_code(),
    "a long text in its code": lambda: _executed(f"def f(): return '{'x' * 400}'"),
    "beyond ASCII": lambda: _executed("def f(ä='ö'): return 'ü\\U0001f600'"),
    "surrogates": lambda: _executed("def f(): return '\\udc80'"),
    "many names": lambda: _executed(f"def f({', '.join(f'a{i}' for i in range(100))}): return 1"),
    "too many names": lambda: _executed(f"def f({', '.join(f'a{i}' for i in range(250))}): return 1"),
    "recursive": lambda: _recursive(),
    "a dict": lambda: _closure({"k": 1}),
    "a dict as attribute": lambda: _with_attribute({"k": [1]}),
    "a dict as default by keyword": lambda: _executed("def f(*, a={'k': 1}): return a"),
    "a set of constants": lambda: _executed("def f(x): return x in {1.5, 2.5, 'a'} or x in {(1, 2)}"),
    "names of builtins": lambda: _executed(
        "def f(getattr='setattr', _setattr='dill', cell_contents='_create_cell'): return dill._dill"
    ),
    "a generator": lambda: _executed("def f():\n yield 1"),
}


def _with_attribute(note: Any = "a note") -> Any:
    f = _closure(1)
    f.note = note
    return f


def _closure_with_code() -> Any:
    n = 2
    return lambda x: [lambda y: (x, y, n), [z for z in x if z]]


def _recursive() -> Any:
    def f(n: int) -> Any:
        return f(n - 1) if n else n

    return f


#: What may be dumped with a function.
PLACES: dict[str, Callable[[Any], Any]] = {
    "alone": lambda f: f,
    "a task": lambda f: (f, (1, 2.5), {"x": None}),
    "much": lambda f: (f, [*range(60)]),
    "twice": lambda f: [f, 1, f],
    "others": lambda f: [_closure(4), f, {"f": f}, _closure("b")],
    "its code": lambda f: [f.__code__, f],
    "its name": lambda f: [f.__name__, f.__qualname__, f.__module__, f],
    "its cells": lambda f: [f.__closure__, f],
    "what is in its cells": lambda f: [[c.cell_contents for c in f.__closure__ or ()], f],
    "its dict": lambda f: [f.__dict__, f.__annotations__, f],
    "its defaults": lambda f: [f.__defaults__, f.__kwdefaults__, f],
    "what its code has": lambda f: [f.__code__.co_consts, f.__code__.co_varnames, f.__code__.co_filename, f],
    "names": lambda f: ["dill._dill", "_create_function", "builtins", "getattr", "__annotations__", f],
    "behind many": lambda f: [[str(i) for i in range(300)], f],
    "behind many, inside": lambda f: {"a": [(i, [str(i)]) for i in range(100)], "f": {"g": f}},
}


@both
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_again(name: str, place: str, ours: Implementation) -> None:
    """By new picklers, and by one that knows it already."""
    f = FUNCTIONS[name]()
    obj = PLACES[place](f)

    def steps(run: Run) -> None:
        for _ in range(MANY):
            file = io.BytesIO()
            run.implementation.base(file, run.protocol).dump(obj)
            run.calls.append((file.getvalue(),))
        run.pickler.dump(obj)
        run.pickler.dump(f)
        run.pickler.clear_memo()
        run.pickler.dump(obj)

    check(
        ORACLE, ours, steps, protocols=(4, 5) if place in ("alone", "a task") else (4,), file=lambda run: io.BytesIO()
    )


def _memos(base: Any, obj: Any) -> list[list[Any]]:
    memos = []
    for _ in range(MANY + 1):
        pickler = base(io.BytesIO(), 4)
        pickler.dump(obj)
        memos.append([x for _, x in pickler.memo.values()])
    return memos


@both
@pytest.mark.parametrize("name", FUNCTIONS)
def test_memo(name: str, ours: Implementation) -> None:
    """What dill makes anew for each dump is another object in each memo; the rest is the same one."""
    f = FUNCTIONS[name]()
    if name == "surrogates":
        return
    expected = _memos(ORACLE.base, (f, 1))
    with ours.context():
        got = _memos(ours.base, (f, 1))
    for one, other in ((0, -1), (-2, -1)):
        shared = [x is y for x, y in zip(expected[one], expected[other], strict=True)]
        assert [x is y for x, y in zip(got[one], got[other], strict=True)] == shared
    for x, y in zip(got[-1], expected[-1], strict=True):
        assert type(x) is type(y)
        if type(x) in (str, bytes, dict):
            assert x == y


def _change_dicts(f: Any, patch: pytest.MonkeyPatch) -> None:
    for x in (f.__closure__[0].cell_contents if f.__closure__ else None, *f.__dict__.values(), *_values_of_defaults(f)):
        if type(x) is dict:
            x["k"] = [x["k"], 2]


def _values_of_defaults(f: Any) -> Any:
    return (f.__kwdefaults__ or {}).values()


def _give_the_dict_of_a_module(f: Any, patch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("another_of_a_test")
    patch.setitem(sys.modules, "another_of_a_test", module)
    f.__dict__ = vars(module)


def _be_main(f: Any, patch: pytest.MonkeyPatch) -> None:
    main = types.ModuleType("main")
    vars(main).clear()
    vars(main).update(f.__dict__)
    patch.setattr(dill._dill, "_main_module", main)


CHANGES: dict[str, Callable[[Any, pytest.MonkeyPatch], Any]] = {
    "code": lambda f, patch: setattr(f, "__code__", f.__code__.replace(co_firstlineno=7)),
    "name": lambda f, patch: setattr(f, "__name__", "another"),
    "qualname": lambda f, patch: setattr(f, "__qualname__", "an.other"),
    "module": lambda f, patch: setattr(f, "__module__", "oracle.objects"),
    "no module": lambda f, patch: setattr(f, "__module__", None),
    "doc": lambda f, patch: setattr(f, "__doc__", "another"),
    "doc that is none": lambda f, patch: setattr(f, "__doc__", [1]),
    "defaults": lambda f, patch: setattr(f, "__defaults__", (2,)),
    "defaults that are none": lambda f, patch: setattr(f, "__defaults__", ([],)),
    "no defaults": lambda f, patch: setattr(f, "__defaults__", None),
    "kwdefaults": lambda f, patch: setattr(f, "__kwdefaults__", {"k": 1}),
    "other annotations": lambda f, patch: setattr(f, "__annotations__", {"k": int}),
    "annotations": lambda f, patch: f.__annotations__.update(k="v"),
    "another class": lambda f, patch: f.__annotations__.update(k=objects.Plain),
    "an attribute": lambda f, patch: setattr(f, "attribute", 1),
    "dicts": _change_dicts,
    "the dict of a module": _give_the_dict_of_a_module,
    "main module with the same in it": _be_main,
    "its dict as the annotations": lambda f, patch: setattr(f, "__annotations__", f.__dict__),
    "the annotations as its dict": lambda f, patch: setattr(f, "__dict__", f.__annotations__),
    "equal attributes": lambda f, patch: setattr(f, "__dict__", {**f.__dict__}),
    "an equal name of a class": lambda f, patch: patch.setitem(dill._dill._typemap, int, "".join([*"int"])),
    "a cell": lambda f, patch: setattr(f.__closure__[0], "cell_contents", 4),
    "a cell with a list": lambda f, patch: setattr(f.__closure__[0], "cell_contents", [4]),
    "an empty cell": lambda f, patch: delattr(f.__closure__[0], "cell_contents"),
    "found": lambda f, patch: (setattr(f, "__qualname__", "found"), patch.setitem(f.__globals__, "found", f)),
    "no such module": lambda f, patch: patch.delitem(sys.modules, f.__module__),
    "another such module": lambda f, patch: patch.setitem(sys.modules, f.__module__, types.ModuleType("other")),
    "a name of its globals": lambda f, patch: patch.setitem(f.__globals__, "__name__", "sys"),
    "more globals": lambda f, patch: patch.setitem(f.__globals__, "more", 1),
    "an entry for functions": lambda f, patch: patch.setitem(dill.Pickler.dispatch, types.FunctionType, _saves),
    "an entry for cells": lambda f, patch: patch.setitem(dill.Pickler.dispatch, types.CellType, _saves),
    "an entry for code": lambda f, patch: patch.setitem(dill.Pickler.dispatch, types.CodeType, _saves),
    "an entry for classes": lambda f, patch: patch.setitem(dill.Pickler.dispatch, type, _saves),
    "an entry for builtin functions": lambda f, patch: patch.setitem(
        dill.Pickler.dispatch, types.BuiltinFunctionType, _saves
    ),
    "an entry for modules": lambda f, patch: patch.setitem(dill.Pickler.dispatch, types.ModuleType, _saves),
    "an entry for dicts": lambda f, patch: patch.setitem(dill.Pickler.dispatch, dict, _saves),
    "a reduce for builtin functions": lambda f, patch: patch.setitem(
        copyreg.dispatch_table, types.BuiltinFunctionType, lambda x: "len"
    ),
    "names of classes": lambda f, patch: patch.setitem(dill._dill._typemap, int, "AnInt"),
    "no name of a class": lambda f, patch: patch.delitem(dill._dill._typemap, int),
    "dill's function": lambda f, patch: patch.setattr(dill._dill, "_create_function", _other(dill._dill)),
    "dill's cell": lambda f, patch: patch.setattr(dill._dill, "_CELL_REF", 1),
    "the name of dill's function": lambda f, patch: patch.setattr(
        dill._dill._create_code, "__qualname__", "_load_type"
    ),
    "the module of dill's function": lambda f, patch: patch.setattr(dill._dill._create_cell, "__module__", "dill"),
    "setattr": lambda f, patch: patch.setitem(vars(builtins), "setattr", lambda *args: None),
    "dill's setattr": lambda f, patch: patch.setattr(dill._dill._shims._setattr, "reduction", (len, ([],))),
    "main module": lambda f, patch: patch.setattr(dill._dill, "_main_module", sys.modules[f.__module__]),
    "a hook": lambda f, patch: patch.setattr(dill.Pickler, "persistent_id", lambda self, obj: None),
    "one that answers": lambda f, patch: patch.setattr(
        dill.Pickler, "persistent_id", lambda self, obj: "it" if type(obj) is str and len(obj) > 4 else None
    ),
    "reducer_override": lambda f, patch: patch.setattr(
        dill.Pickler, "reducer_override", lambda self, obj: NotImplemented, raising=False
    ),
}


def _saves(pickler: Any, obj: Any) -> None:
    pickler.write(pickle.EMPTY_LIST)
    pickler.memoize(obj)


def _other(module: Any) -> Any:
    original = module._create_function
    return types.FunctionType(original.__code__, vars(module), "_create_function", original.__defaults__)


@both
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "name",
    [
        "an int",
        "annotations",
        "defaults",
        "no closure",
        "an attribute",
        "a dict",
        "a dict as attribute",
        "a dict as default by keyword",
    ],
)
def test_changes(name: str, change: str, ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change all is as the function is then, and after that is undone, too."""

    def all_of(base: Any) -> list[Any]:
        found: list[Any] = []
        f = FUNCTIONS[name]()

        def dump() -> None:
            for obj in (f, (f, [1]), (f, [*range(60)]), [f, 5]):
                pickler = base(io.BytesIO(), 4)
                try:
                    pickler.dump(obj)
                except Exception as exc:
                    found.append((type(exc), str(exc)))
                else:
                    found.append(pickler._file_write.__self__.getvalue())

        for _ in range(MANY):
            dump()
        with monkeypatch.context() as patch:
            with contextlib.suppress(TypeError, KeyError):  # there are no cells, or no such class
                CHANGES[change](f, patch)
            dump()
            dump()
        dump()
        return found

    expected = all_of(ORACLE.base)
    with ours.context():
        got = all_of(ours.base)
    assert got == expected


@both
@pytest.mark.parametrize("settings", [{"recurse": True}, {"byref": True}, {"fmode": 1}])
def test_settings(settings: Any, ours: Implementation) -> None:
    """Those of the pickler are its own: what was learnt by one is not for all others."""
    f = FUNCTIONS["an int"]()
    for own in ({}, settings, {}, settings):

        def steps(run: Run, own: Any = own) -> None:
            for _ in range(MANY):
                file = io.BytesIO()
                run.implementation.base(file, run.protocol, **own).dump((f, 1))
                run.calls.append((file.getvalue(),))

        check(ORACLE, ours, steps, protocols=ALL)


def _held(x: Any) -> Any:
    return x if type(x) in (tuple, frozenset) else ()


@both
def test_what_is_in_the_memo(ours: Implementation) -> None:
    """Whatever somebody has put there is fetched, numbers, too; and it may be what was in the memo of another dump."""
    f = FUNCTIONS["defaults"]()
    closure = FUNCTIONS["an int"]()

    def steps(run: Run) -> None:
        for f_or_closure in (f, closure, FUNCTIONS["a set of constants"]()):
            for _ in range(MANY):
                pickler = run.implementation.base(io.BytesIO(), 4)
                pickler.dump(f_or_closure)
            before = [x for _, x in pickler.memo.values()]
            consts = [x for const in f_or_closure.__code__.co_consts for x in (const, *_held(const))]
            for x in (
                *before,
                *consts,
                None,
                1,
                3,
                2.5,
                True,
                (),
                f_or_closure.__globals__,
                dill._dill,
                getattr,
                "text",
            ):
                file = io.BytesIO()
                pickler = run.implementation.base(file, 4)
                pickler.memo[id(x)] = 0, x
                pickler.dump(f_or_closure)
                run.calls.append((file.getvalue(),))

    check(ORACLE, ours, steps, protocols=(4,))


@both
def test_it_is_used(ours: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it may be; else this would test nothing."""
    used: list[int] = []
    encode = functions._again.encode
    monkeypatch.setattr(functions._again, "encode", lambda *args: (n := encode(*args), used.append(n))[0])
    for name, is_used in (
        ("an int", True),
        ("no closure", True),
        ("atoms", True),
        ("defaults", True),
        ("annotations", True),
        ("texts as annotations", True),
        ("an attribute", True),
        ("a set of constants", True),
        ("nested code", False),
        ("a dict", False),
        ("a dict as attribute", False),
        ("a dict as default by keyword", False),
        ("a list", False),
        ("a list as default", False),
        ("a function", False),
        ("other annotations", False),
        ("a class as annotation", False),
        ("recursive", False),
        ("too many names", False),
    ):
        f = FUNCTIONS[name]()
        with ours.context():
            for _ in range(MANY):
                ours.base(io.BytesIO(), 4).dump((f, 1))
            used.clear()
            ours.base(io.BytesIO(), 4).dump((f, 1))
            assert any(used) is is_used, name
            used.clear()
            ours.base(io.BytesIO(), 4).dump([[str(i) for i in range(300)], f])
            assert any(used) is is_used, name


@both
def test_functions_are_not_kept(ours: Implementation) -> None:
    """What is remembered of one goes with it, and there is never much of that."""
    met = functions._again._met
    f = FUNCTIONS["an int"]()
    gone = weakref.ref(f)
    with ours.context():
        for _ in range(MANY):
            ours.base(io.BytesIO(), 4).dump((f, 1))
        assert len(met) == 1
        del f
        gc.collect()
        assert gone() is None
        assert not met
        some = [_closure(i) for i in range(300)]
        for f in some:
            for _ in range(MANY):
                ours.base(io.BytesIO(), 4).dump((f, 1))
            assert len(met) <= 256
        f = some[-1]
        del some
        gc.collect()
        assert [*met] == [id(f)]


def _fill_cell(f: Any) -> None:
    f.__closure__[0].cell_contents = f


def _fill_dict(f: Any) -> None:
    f.__wrapped__ = f


def _fill_annotations(f: Any) -> None:
    f.__annotations__["me"] = f


def _fill_globals(f: Any) -> None:
    del sys.modules["of_a_test"]
    f.__globals__["kept"] = f


@both
@pytest.mark.parametrize("fill", [_fill_cell, _fill_dict, _fill_annotations, _fill_globals])
def test_what_refers_to_a_function_is_not_kept(fill: Any, ours: Implementation) -> None:
    """Its cells, its dicts, its globals: it would never go."""
    f = FUNCTIONS["defaults" if fill is _fill_globals else "an int"]()
    gone = weakref.ref(f)
    with ours.context():
        for _ in range(MANY):
            ours.base(io.BytesIO(), 4).dump((f, 1))
        assert functions._again._met
        fill(f)
        del f
        gc.collect()
        assert gone() is None
        assert not functions._again._met


@both
def test_file_of_nested_code(ours: Implementation) -> None:
    """An import may change it: each code object has its own."""
    f = FUNCTIONS["nested code"]()
    expected = []
    for implementation in (ORACLE, ours):
        found = []
        with implementation.context():
            for filename in ("one.py", "another.py"):
                for const in f.__code__.co_consts:
                    if type(const) is types.CodeType:
                        _imp._fix_co_filename(const, filename)  # type: ignore[attr-defined]  # private: what imports do
                for _ in range(MANY):
                    file = io.BytesIO()
                    implementation.base(file, 4).dump((f, 1))
                    found.append(file.getvalue())
        expected.append(found)
    assert expected[0] == expected[1]
