"""Objects with a reduce of their own, in what is dumped: what they give is written at once if it is a few atoms."""

from __future__ import annotations

import copyreg
import io
import pickle
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from oracle import hooked, objects
from oracle.allowed import PYPY
from oracle.compare import ALL, Implementation, PythonFile, Run, check, stock_dumps
from oracle.engines import ORACLE, OURS, Pure, Stock

import fastpickle
from fastpickle import _stdlib, graft
from fastpickle import pickler as pickler_module
from fastpickle.at_once import quick
from fastpickle.engine import brief, reduce, rows
from fastpickle.objects import likely
from fastpickle.objects.last import last

#: Where the C pickler is never asked, and where a reduce that runs nobody's code is told from another one.
ON_CPYTHON = pytest.mark.skipif(PYPY, reason="PyPy has its own way to save what a reduce gives (`pypy`)")


class Pairs(tuple[Any, ...]):
    """What a reduce may give instead of a tuple."""


class State(dict[Any, Any]):
    """What it may give instead of a dict."""


class Changing(tuple[Any, ...]):
    """The same, with methods of its own."""

    def __iter__(self) -> Any:
        return iter((_make, ("from an iterator",)))

    def __getitem__(self, i: Any) -> Any:
        raise IndexError(i)


class NoHash(type):
    """A metaclass whose classes have no hash."""

    def __hash__(cls) -> int:
        raise LookupError("no hash")  # 3.15 would say of a TypeError what it was for


class Callee(metaclass=NoHash):
    """Its instances are called."""

    def __call__(self, *args: Any) -> None:
        """Is nobody's business."""

    def __reduce__(self) -> str:
        return "_callee"


_callee = Callee()


class Turning:
    """Is of another class when it has been reduced."""

    def __reduce__(self) -> Any:
        self.__class__ = objects.Plain  # type: ignore[assignment]  # that is what it is about
        return _newobj, (Turning, 1)


class Other:
    """Has a `__class__` that is another one."""

    @property
    def __class__(self) -> Any:
        return objects.Plain

    def __reduce__(self) -> Any:
        return _newobj, (objects.Plain,), {"a": 1}


class Asked:
    """Is asked for its `__class__`, which writes that down."""

    def __init__(self, run: Run, pickler: Any = None) -> None:
        self._run, self._pickler = run, pickler

    @property
    def __class__(self) -> Any:
        self._run.record("__class__", 1)
        if self._pickler is not None:
            self._pickler.persistent_id = lambda obj: self._run.record("persistent_id", obj)
        return Asked

    def __reduce__(self) -> Any:
        return _newobj, (Asked,), {"a": 1}


class Strange:
    """Has a `__getattribute__` of its own."""

    def __getattribute__(self, name: str) -> Any:
        return objects.Plain if name == "__class__" else object.__getattribute__(self, name)

    def __reduce__(self) -> Any:
        return _newobj, (objects.Plain,), {"a": 1}


def __newobj__(*args: Any) -> Any:
    """Stock goes by the name."""
    return objects.make(*args)


_newobj: Any = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed does not know it
_arguments = ("shared", 1)
_state = {"shared": 2}
_text = "shared text"
_make = objects.make
#: What the reduce of the i-th of several objects gives: (that object, i).
VALUES: dict[str, Callable[[Any, int], Any]] = {
    "no arguments": lambda self, i: (_make, ()),
    "one": lambda self, i: (_make, (i,)),
    "two": lambda self, i: (_make, (i, "two")),
    "three": lambda self, i: (_make, (i, "two", f"three {i}")),
    "four": lambda self, i: (_make, (i, "two", None, 4.5)),
    "16": lambda self, i: (_make, tuple(range(i, i + 16))),
    "17": lambda self, i: (_make, tuple(range(i, i + 17))),
    "ints": lambda self, i: (_make, (0, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31), i)),
    "long ints": lambda self, i: (_make, (2**31 + i,)),
    "longer ints": lambda self, i: (_make, (i, -(2**31) - 1, 2**2040)),
    "atoms": lambda self, i: (_make, (None, True, False, float(i), b"", b"bytes", "", "text")),
    "long texts": lambda self, i: (_make, ("x" * (253 + i), "\xe9" * (126 + i), b"y" * (253 + i))),
    "surrogates": lambda self, i: (_make, ("\udc80" * (83 + i),)),
    "the same text": lambda self, i: (_make, (_text, _text, i)),
    "the same arguments": lambda self, i: (_make, _arguments),
    "the same state": lambda self, i: (_make, (), _state),
    "tuples": lambda self, i: (_make, ((), (i,), (i, "b"), (i, None, "c"), (i, 1.5, True, "d"))),
    "tuples of tuples": lambda self, i: (_make, (((i, ("a", ())), "b"), i)),
    "a tuple of 16": lambda self, i: (_make, (tuple(range(i, i + 16)),)),
    "a tuple of 17": lambda self, i: (_make, (tuple(range(i, i + 17)),)),
    "the same tuple": lambda self, i: (_make, (_arguments, _arguments, i)),
    "the same arguments inside": lambda self, i: (_make, _arguments, {"a": _arguments}),
    "a tuple that is not brief": lambda self, i: (_make, ("before", (i, [i]), "behind")),
    "itself in a tuple": lambda self, i: (_make, (i,), {"a": (self, i)}),
    "tuples in a state": lambda self, i: (_make, (i,), {"a": (i, "x"), (i, "key"): (), "b": ((),)}),
    "a class in a state": lambda self, i: (_make, (i,), {"a": objects.Plain, "b": (objects.Plain, i)}),
    "no state": lambda self, i: (_make, (i,), None),
    "an empty state": lambda self, i: (_make, (i,), {}),
    "a state of one": lambda self, i: (_make, (i,), {"a": i}),
    "a state": lambda self, i: (_make, (), {"a": i, "b": None, 5: f"text {i}"}),
    "a state of 16": lambda self, i: (_make, (), {f"name {j}": i for j in range(16)}),
    "a state of 17": lambda self, i: (_make, (), {f"name {j}": i for j in range(17)}),
    "a state that is none": lambda self, i: (_make, (), i),
    "a state in a list": lambda self, i: (_make, (), [i]),
    "a state in a subclass": lambda self, i: (_make, (), State(a=i)),
    "a list in the state": lambda self, i: (_make, (i,), {"a": f"text {i}", "b": [i]}),
    "a list": lambda self, i: (_make, (f"text {i}", [i])),
    "now and then a list": lambda self, i: (_make, (f"text {i}", [i] if i % 2 else i)),
    "a tuple": lambda self, i: (_make, (f"text {i}", (i,))),
    "itself": lambda self, i: (_make, (i,), {"self": self}),
    "a class": lambda self, i: (objects.Plain, ()),
    "a method": lambda self, i: ("text".join, ((),)),
    "another function each": lambda self, i: ((_make, objects.Plain, objects.function)[i % 3], (i,)),
    "four parts": lambda self, i: (_make, (i,), {"a": 1}, None),
    "five parts": lambda self, i: (_make, (i,), {"a": 1}, None, None),
    "six parts": lambda self, i: (_make, (i,), {"a": 1}, None, None, None),
    "items": lambda self, i: (_make, (i,), None, iter([i])),
    "pairs": lambda self, i: (_make, (i,), None, None, iter({i: i}.items())),
    "a setter": lambda self, i: (_make, (i,), {"a": i}, None, None, objects.set_state),
    "a new object": lambda self, i: (_newobj, (type(self),), {"a": i}),
    "a new object with arguments": lambda self, i: (_newobj, (type(self), i, f"text {i}")),
    "a new object of nothing": lambda self, i: (_newobj, ()),
    "a new object of another class": lambda self, i: (_newobj, (objects.Plain,), {"a": i}),
    "a new object, now and then of another class": lambda self, i: (_newobj, ((type(self), objects.Plain)[i // 3],)),
    "stock goes by the name": lambda self, i: (__newobj__, (type(self), i)),
    "a name": lambda self, i: "function",
    "a subclass of tuple": lambda self, i: Pairs((_make, (i,))),
    "a subclass of tuple with methods of its own": lambda self, i: Changing((_make, (i,))),
    "an object to call": lambda self, i: (_callee, (i,)),
    "arguments in a subclass": lambda self, i: (_make, Pairs((i,))),
    "arguments in a list": lambda self, i: (_make, [i]),
    "a lambda": lambda self, i: (_make, (i, lambda: 0)),
    "no function": lambda self, i: (i, (i,)),
    "one part": lambda self, i: (_make,),
}


def _fresh(*args: Any) -> tuple[Any, ...]:
    """Return the arguments in a tuple that nobody else has, unlike a constant of a function."""
    return args


def _objects(name: str, n: int) -> list[Any]:
    """Return objects whose reduce gives a value of that name."""
    return [objects.Reduced(lambda self, i=i: VALUES[name](self, i)) for i in range(n)]


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", VALUES)
def test_value(name: str, ours: Implementation) -> None:
    """The bytes, the writes, the error with its notes and the memo are stock's; a second dump knows the first one."""

    def steps(run: Run) -> None:
        found = _objects(name, 5)
        try:
            known = [__newobj__, objects.Reduced]
            run.pickler.dump([["no atom"], known, *found, {"a": found[1], "b": _objects(name, 1)}, _text, found])
        finally:
            run.pickler.dump([_arguments, _state, "text", found[-1], ["no atom"]])

    check(ORACLE, ours, steps, protocols=ALL)
    check(ORACLE, ours, steps, protocols=(2, 4), file=lambda run: PythonFile())


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", VALUES)
def test_all_of_a_dump(name: str, ours: Implementation) -> None:
    """What is called is in no memo, and is written with the rest; the second time the same, or it was not brief."""

    def steps(run: Run) -> None:
        try:
            last.forget()  # what of another one was not brief
            for _ in range(2):
                run.pickler.dump(_objects(name, 1)[0])
                run.pickler.clear_memo()
        finally:
            run.pickler.dump([_make, _arguments, _state, "text"])

    check(ORACLE, ours, steps, protocols=ALL)
    check(ORACLE, ours, steps, protocols=(2, 4), file=lambda run: PythonFile())


class Outer:
    """Has a class in it."""

    class Inner:
        """Is found below another name."""


#: What may be called: found under its name, or not; and what is made of its names.
CALLED: dict[str, Callable[[], tuple[Any, ...]]] = {
    "a class": lambda: (objects.Plain, ("text",)),
    "its names": lambda: (objects.Plain, (objects.Plain.__module__, objects.Plain.__qualname__, objects.Plain)),
    "a class below": lambda: (Outer.Inner, ()),
    "a builtin": lambda: (int, ("5",)),
    "a builtin function": lambda: (getattr, ("text", "upper")),
    "another builtin": lambda: (dict, (), {"a": 1}),
    "a method": lambda: ("text".join, ("ab",)),
    "a class method": lambda: (dict.fromkeys, ("ab",)),
    "nobody finds it": lambda: (lambda: 0, ()),
    "a local class": lambda: (type("Local", (), {}), ()),
    "None's": lambda: (type(None), ()),
    "a long text": lambda: (objects.make, ("x" * 70_000,)),
    "texts": lambda: (objects.make, ("x" * 60_000, "y" * 6_000)),
    "surrogates": lambda: (objects.make, ("\ud800",)),
    "a new object": lambda: (_newobj, (objects.Reduced,), {"a": 1}),
    "another new object": lambda: (_newobj, (objects.Plain,), {"a": 1}),
}


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", CALLED)
def test_what_is_called_first(name: str, ours: Implementation) -> None:
    """It is found under its name, and memoized with it; or the error is stock's, and no more is written."""

    def steps(run: Run) -> None:
        reduced = CALLED[name]()
        last.forget()
        try:
            run.pickler.dump(objects.Reduced(lambda self: reduced))
        finally:
            run.pickler.dump([reduced[1], objects.Plain, "text"])

    check(ORACLE, ours, steps, protocols=ALL)


class _NameOfOnesOwn(str):
    """Is the name of a function, and writes down that it is asked."""

    asked = 0

    def __eq__(self, other: object) -> bool:
        type(self).asked += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def _named() -> None:
    """Has another name."""


class _NoNew:
    """Has no `__new__` for those who ask for it."""

    class _Raises:
        def __get__(self, obj: Any, cls: Any = None) -> Any:
            raise AttributeError("__new__")

    __new__ = _Raises()

    def __reduce__(self) -> Any:
        return _newobj, (_NoNew,)


class _Logging(io.BytesIO):
    """Is a frame that writes down what is written."""

    run: Run

    def write(self, data: Any) -> int:
        self.run.record("write", bytes(data))
        return super().write(data)


def _frames(run: Run, patch: pytest.MonkeyPatch) -> None:
    run.pickler.framer.current_frame = _Logging()
    run.pickler.framer.current_frame.run = run


def _wraps(run: Run, patch: pytest.MonkeyPatch) -> None:
    whichmodule: Any = pickle.whichmodule  # type: ignore[attr-defined]  # typeshed does not know it

    def wrapped(*args: Any) -> Any:
        run.record("whichmodule", args[-1])
        return whichmodule(*args)

    patch.setattr(pickle, "whichmodule", wrapped)


#: What the only reduce does beside what it gives: (the run, what is undone) -> nothing.
ACTS: dict[str, Callable[[Run, pytest.MonkeyPatch], Any]] = {
    "another protocol": lambda run, patch: setattr(run.pickler, "proto", None),
    "no protocol": lambda run, patch: delattr(run.pickler, "proto"),
    "another frame": _frames,
    "who finds a module": _wraps,
    "another registry": lambda run, patch: patch.setattr(
        pickle, "_extension_registry", {(objects.Plain.__module__, "Plain"): 5}
    ),
    "no package": lambda run, patch: (
        patch.setitem(sys.modules, "pack", None),
        patch.setitem(sys.modules, "pack.sub", sys.modules[objects.Plain.__module__]),
        patch.setattr(objects.Plain, "__module__", "pack.sub"),
    ),
}


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", ACTS)
def test_acts_of_all_of_a_dump(name: str, ours: Implementation) -> None:
    """What is called by its own name is looked for as stock looks, in what there is by then; and so is its class."""
    for reduced in ((objects.Plain, ("text",)), (objects.Plain, [1]), (3, ()), (_newobj, (objects.Plain,), {"a": 1})):

        def steps(run: Run, reduced: tuple[Any, ...] = reduced) -> None:
            last.forget()
            with pytest.MonkeyPatch.context() as patch:

                def value(self: Any) -> Any:
                    ACTS[name](run, patch)
                    return reduced

                if name in ("another frame", "no protocol", "another protocol"):
                    run.pickler.dump(objects.Reduced(value))
                else:  # before it, too
                    run.pickler.dump([objects.Reduced(value)])
                    run.pickler.clear_memo()
                    run.pickler.dump(objects.Reduced(lambda self: reduced))

        check(ORACLE, ours, steps, protocols=(2, 4, 5))


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("n", [0, 1, 3, 40])
def test_class_without_new(n: int, ours: Implementation) -> None:
    """Stock asks a class for its `__new__` before it saves an instance by that."""
    obj: Any = [object.__new__(_NoNew) for _ in range(n)] if n else object.__new__(_NoNew)
    check(ORACLE, ours, lambda run: run.pickler.dump(obj), protocols=(2, 4), fails=True)


@ON_CPYTHON
def test_name_of_ones_own() -> None:
    """A function's name may be a text of a subclass, which is asked as often as by stock."""
    _named.__name__ = _NameOfOnesOwn("_named")
    counts = []
    for cls in (Stock, fastpickle.Pickler, Pure):
        last.forget()
        _NameOfOnesOwn.asked = 0
        for args in ((1,), ([1],)):
            cls(io.BytesIO(), 4).dump(objects.Reduced(lambda self, args=args: (_named, args)))
        counts.append(_NameOfOnesOwn.asked)
    assert counts[0] > 0
    assert counts == [counts[0]] * 3


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("change", hooked.ON_INSTANCE)
def test_changed_by_all_of_a_dump(change: str, ours: Implementation) -> None:
    """The only reduce sets a hook, which is heard of what it gives."""
    for name in ("two", "a state", "a new object"):

        def steps(run: Run, name: str = name) -> None:
            def value(self: Any) -> Any:
                hooked.ON_INSTANCE[change](run, run.pickler)
                return VALUES[name](self, 7)

            last.forget()
            run.pickler.dump(objects.Reduced(value))

        check(ORACLE, ours, steps, protocols=(random.Random(f"{name} {change}").randrange(6), 4))


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", ["one", "16", "atoms", "a state", "a new object", "now and then a list"])
def test_end_of_frame(name: str, ours: Implementation) -> None:
    """Stock begins another frame before any of the parts, wherever the frame is full; nothing is memoized twice."""
    for length in range(65_536 - 420, 65_536, 11):

        def steps(run: Run, length: int = length) -> None:
            found = _objects(name, 4)
            run.pickler.dump([[_make], "x" * length, *found, [1], found])

        check(ORACLE, ours, steps, protocols=(4,), fails=False)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("name", ["two", "the same text", "the same state", "a new object with arguments"])
def test_numbers_in_the_memo(name: str, ours: Implementation) -> None:
    """What is fetched has a number of one byte or more."""
    for n in (240, *range(248, 258)):

        def steps(run: Run, n: int = n) -> None:
            found = _objects(name, 5)
            run.pickler.dump([[str(i) + "x" for i in range(n)], *found, [1], found])

        check(ORACLE, ours, steps, protocols=(2, 4), fails=False)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("number", [0, 5, 255, 256, 70_000, -1, 2**32])
def test_number_of_ones_own(number: Any, ours: Implementation) -> None:
    """A memo may have been given anything: atoms, what is called, and numbers that are none."""
    for known in (5, None, "text", objects.make, ()):

        def steps(run: Run, known: Any = known) -> None:
            first = [objects.Reduced(lambda self: (objects.make, _fresh(1))) for _ in range(2)]
            values = [(5, None, "text"), (), ("text", 5)]
            found = [*first, *[objects.Reduced(lambda self, x=x: (objects.make, _fresh(*x))) for x in values * 2]]
            run.pickler.memo[id(known)] = number, known
            try:
                run.pickler.dump([[1], *found, [2]])
            finally:
                run.pickler.memo.pop(id(known), None)
                run.pickler.dump([3, found[0]])

        check(ORACLE, ours, steps, protocols=(2, 4))


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("change", hooked.ON_INSTANCE)
def test_changed_between(change: str, ours: Implementation) -> None:
    """One of the reduces sets a hook: it is heard from there on, by what is brief too."""
    for name in ("two", "a state", "a new object"):

        def steps(run: Run, name: str = name) -> None:
            def value(self: Any) -> Any:
                if self is found[4]:
                    hooked.ON_INSTANCE[change](run, run.pickler)
                return VALUES[name](self, 7)

            found = [objects.Reduced(value) for _ in range(8)]
            run.pickler.dump([["no atom"], *found, {"a": 1}])

        check(ORACLE, ours, steps, protocols=(random.Random(f"{name} {change}").randrange(6), 4))


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("cls", [Other, Strange])
def test_class_of_ones_own(cls: Any, ours: Implementation) -> None:
    """An object says that it is of another class than it is."""
    check(ORACLE, ours, lambda run: run.pickler.dump([[1], cls(), cls(), objects.Plain(a=2), cls()]), protocols=(2, 4))


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_class_that_changes(ours: Implementation) -> None:
    """A reduce gives its object another class, and says that it is of the old one."""
    check(ORACLE, ours, lambda run: run.pickler.dump([[1], Turning, Turning(), 2]), protocols=(2, 4), fails=True)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_class_that_acts(ours: Implementation) -> None:
    """An object is asked for its class as often as stock does it, and what that changes counts."""

    def steps(run: Run) -> None:
        try:
            run.pickler.dump([[1], Asked(run), Asked(run), Asked(run, run.pickler), Asked(run), [2], "text"])
        finally:
            run.pickler.clear_memo()  # the comparison would ask, too

    check(ORACLE, ours, steps, protocols=(2, 4), fails=False)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_memoized_by_itself(ours: Implementation) -> None:
    """A reduce puts its own object into the memo, or saves it: it is dropped, and fetched."""
    for put in (
        lambda pickler, obj: pickler.memoize(obj),
        lambda pickler, obj: pickler.save(obj),
        lambda pickler, obj: pickler.memo.update({id(obj): (len(pickler.memo), obj)}),
    ):

        def steps(run: Run, put: Callable[[Any, Any], Any] = put) -> None:
            begun: list[Any] = []

            def value(self: Any) -> Any:
                if self is found[3] and not begun:
                    begun.append(self)
                    put(run.pickler, self)
                return _make, (1, f"text {found.index(self)}")

            found = [objects.Reduced(value) for _ in range(6)]
            run.pickler.dump([["no atom"], *found, {"a": 1}])

        check(ORACLE, ours, steps, protocols=(2, 4), fails=False)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 15, 16, 17, 24, 25])
def test_few_in_a_container(n: int, ours: Implementation) -> None:
    """A few objects with reduces of their own, all that is dumped: hook by hook, up to what one of them gives."""

    def much(self: Any) -> Any:
        return _make, ([{"id": i, "name": f"name {i}"} for i in range(40)], [found])

    found: list[Any] = []
    for others in ([], ["atom"], [objects.Reduced(much)], [{}], [objects.Plain(a=1)], [[1, 2]]):

        def steps(run: Run, others: list[Any] = others) -> None:
            found[:] = [*_objects("two", n), *others]
            run.pickler.dump(found)
            run.pickler.dump((*found, "text"))
            run.pickler.clear_memo()
            run.pickler.dump({f"key {i}": x for i, x in enumerate(found)})

        check(ORACLE, ours, steps, protocols=(1, 4))
        check(ORACLE, ours, steps, protocols=(4,), file=lambda run: PythonFile())


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_hook_set_after_a_plan_has_begun(ours: Implementation) -> None:
    """A reduce saves something that gives much, so that a plan begins, and sets a hook after that."""

    def steps(run: Run) -> None:
        def value(self: Any) -> Any:
            run.pickler.save(objects.Reduced(lambda self: (_make, ([*range(40)],))))
            run.pickler.write(pickle.POP)
            run.pickler.persistent_id = lambda obj: run.record("persistent_id", obj)
            return _make, (1, ["text"])

        run.pickler.dump([1, objects.Reduced(value), "text", *_objects("two", 2)])

    check(ORACLE, ours, steps, protocols=(2, 4), fails=False)


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_writes_without_a_frame(ours: Implementation) -> None:
    """A dump inside of a dump ends the frames: the file sees each opcode of what ends after that."""

    def steps(run: Run) -> None:
        def value(self: Any) -> Any:
            run.pickler.dump(5)
            return _make, (1,)

        state = [objects.Reduced(value)]
        run.pickler.dump([[1], objects.Reduced(lambda self: (_make, (1,), state, None, None, objects.set_state))])

    check(ORACLE, ours, steps, protocols=(4,), file=lambda run: PythonFile(), fails=False)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[bool | None]:
    """Record of each reduce that may be brief whether it was written at once."""
    found: list[bool | None] = []
    save_brief = brief.save_brief

    def saved(*args: Any) -> bool | None:
        found.append(save_brief(*args))
        return found[-1]

    for module in (reduce, rows, pickler_module):
        monkeypatch.setattr(module, "save_brief", saved)
    return found


@ON_CPYTHON
def test_it_is_used(tried: list[bool | None]) -> None:
    """What is brief is written at once, from the second of a class on; what is not is tried once for its type."""
    for name, expected in (
        ("four", [False, *[True] * 19]),  # up to three, and no state, are written by `rows` itself
        ("a state", [False, *[True] * 19]),
        ("a new object", [False, *[True] * 19]),
        ("a list", [False, False]),
        ("17", [False, False]),
    ):
        tried.clear()
        Pure(io.BytesIO(), 4).dump([*([i] * 9 for i in range(60)), *_objects(name, 20)])
        assert tried == expected, name


@ON_CPYTHON
def test_it_is_used_for_many_hook_by_hook(tried: list[bool | None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is nothing else, it takes as long as it saves, up to so many."""
    Pure(io.BytesIO(), 4).dump(_objects("two", 15))
    assert not tried
    monkeypatch.setattr(pickler_module, "_FEW_FOR_BRIEF", 24)
    Pure(io.BytesIO(), 4).dump(_objects("two", 15))
    assert 3 < len(tried) < 12
    assert all(tried)


@ON_CPYTHON
def test_who_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """C is not asked about a few objects with a reduce of their own, and there is no plan for them."""
    asked: list[Any] = []
    monkeypatch.setattr("fastpickle.graft.written_by", lambda *args: asked.append(args))
    for cls in (Pure, fastpickle.Pickler):
        for obj in (_objects("one", 3), (1, *_objects("one", 3)), {"a": _objects("one", 1)[0]}):
            for module in ("at_once.few", "way"):
                monkeypatch.setattr(f"fastpickle.{module}.Dump", lambda *args: asked.append(args))
            cls(io.BytesIO(), 4).dump(obj)
    assert not asked


@ON_CPYTHON
@pytest.mark.skipif(_stdlib.CPickler is None, reason="there is no C pickler to be asked")
def test_it_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What made C give up is looked for in the next small dumps, until C has written one."""
    asked: list[Any] = []
    written_by = graft.written_by
    monkeypatch.setattr(graft, "written_by", lambda *args, **how: (asked.append(args), written_by(*args, **how))[1])
    by_c = quick.Quick.at_once
    monkeypatch.setattr(quick.Quick, "at_once", lambda *args: (result := by_c(*args), asked.append(result))[0])

    def dump(obj: Any) -> bytes:
        file = io.BytesIO()
        pickler = fastpickle.Pickler(file, 4)
        pickler.dump(obj)
        assert not [name for name in vars(pickler) if name.startswith("_fastpickle")]
        return file.getvalue()

    like: list[Any] = [
        {"id": 5, "one": _objects("one", 1)[0], "more": {"a": 1, "b": 2}},
        [objects.Plain(a=1), *_objects("two", 1), objects.Plain(b=2)],
        ("text", objects.Plain(a=1), objects.Reduced(lambda self: (_make, ([{"a": 1}],)))),
    ]
    plain = {"a": [*range(60)], "b": [{}]}
    last.gave_up_for = 0
    for obj in (*like, *like, plain, *like):
        file = io.BytesIO()
        Stock(file, 4).dump(obj)
        before = len(asked)
        last.few_left = 0  # or such objects would go as the last one went, without a look
        assert dump(obj) == file.getvalue()
        assert len(asked) == before + (obj is plain)  # the others are few
        last.few_left = 0
        assert fastpickle.dumps(obj, 4) == file.getvalue()
        assert len(asked) == before + (obj is plain) + 1
        assert asked[-1] == (file.getvalue() if obj is plain else b"")
        assert last.gave_up_for == (0 if obj is plain else id(objects.Reduced))


@ON_CPYTHON
@pytest.mark.parametrize("more", [[], [[]]], ids=["hook by hook", "by a plan"])
def test_full_frames(tried: list[bool | None], more: list[Any]) -> None:
    """What is brief stays so when a frame has no room for it."""
    objs = [*more, *[_Atoms(f"text {i}" * 5) for i in range(6000)]]
    file = io.BytesIO()
    Pure(file, 4).dump(objs)
    assert file.getvalue() == stock_dumps(objs, 4)
    assert tried.count(None) >= 3
    assert tried.count(True) > 5900


@ON_CPYTHON
def test_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt leaves nothing in the memo that was not written."""
    calls: list[Any] = []
    encode = brief.encode_all

    def interrupted(plan: Any, atoms: Any, memo: Any, *args: Any) -> Any:
        calls.append((dict(memo), encode(plan, atoms, memo, *args)))
        raise KeyboardInterrupt

    monkeypatch.setattr(brief, "encode_all", interrupted)
    pickler = Pure(io.BytesIO(), 4)
    with pytest.raises(KeyboardInterrupt):
        pickler.dump([[1], *_objects("three", 60)])
    assert len(calls) == 1
    assert pickler.memo == calls[0][0]


class _Atoms:
    """Has a reduce of its own, and what is given in its `__dict__`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return _Atoms, tuple([self.value, 1, 2, 3])  # noqa: C409  # a call, so that nobody knows what it does


@ON_CPYTHON
def test_are_somebodys() -> None:
    """Such objects and atoms, in an exact container; if they are many, few atoms, and no containers in them."""
    one = objects.Reduced(lambda self: "function")
    for obj, expected in (
        ([one], True),
        ((one, 1, "text", None), True),
        ({"a": 1, "b": one}, True),
        ({one: 1}, False),
        ([], False),
        ([1, 2], False),
        ([one] * 16, True),
        ([one] * 17, False),
        ([*range(15), one], True),
        ([*range(16), one], False),
        ([_Atoms(i) for i in range(17)], True),
        ({i: _Atoms(i) for i in range(17)}, True),
        ([*[_Atoms(i) for i in range(17)], *range(5)], True),
        ([*[_Atoms(i) for i in range(17)], *range(6)], False),
        ([_Atoms(5)] * 17, False),
        ([_Atoms([i]) for i in range(17)], False),
        ([_Atoms([i]) for i in range(16)], True),
        ([*[_Atoms(i) for i in range(17)], []], False),
        ([one, []], False),
        ([one, objects.Plain()], False),
        ({one}, False),
        (one, False),
    ):
        assert likely.are_somebodys(obj, type(obj)) is expected


@ON_CPYTHON
@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
@pytest.mark.parametrize("state", [(), ({"a": 1},)])
def test_a_frame_that_cannot_grow(state: tuple[Any, ...], ours: Implementation) -> None:
    """A reduce that gets hold of it: what is in the memo then is what stock has there."""

    def steps(run: Run) -> None:
        exported: list[Any] = []

        class Exporting(_Atoms):
            def __reduce__(self) -> Any:
                if self.value == 30:
                    exported.append(run.pickler.framer.current_frame.getbuffer())
                return objects.make, (str(self.value),), *state

        try:
            run.pickler.dump([Exporting(i) for i in range(60)])
        finally:
            exported.clear()

    check(ORACLE, ours, steps, protocols=(4, 5))


@pytest.mark.parametrize("cls", [fastpickle.Pickler, Pure])
def test_reduced_to_itself(cls: Any) -> None:
    """A dict or tuple that an override reduces to a call with itself, and there is no override any more then."""
    state = {"a": 1}
    pair = (1, 2)
    for obj, value in ((state, (_make, (), state)), (pair, (_make, pair)), (pair, (_make, (pair,)))):
        found = []
        for base in (cls, _stdlib.StockPickler):
            file = io.BytesIO()
            pickler = base(file, 4)

            def override(x: Any, pickler: Any = pickler, obj: Any = obj, value: Any = value) -> Any:
                if x is not obj:
                    return NotImplemented
                del pickler.reducer_override
                return value

            pickler.reducer_override = override
            pickler.dump([_Atoms(1), obj, _make])
            found.append(file.getvalue())
        assert found[0] == found[1]
