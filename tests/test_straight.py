"""What the engine of PyPy takes for granted, and what would prove it wrong; the same is compared on every Python."""

from __future__ import annotations

import collections
import datetime
import decimal
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from oracle.allowed import PYPY
from oracle.compare import Implementation, Run, check

import fastpickle

_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]
_ORACLE = Implementation("pickle._Pickler", _Stock)
_OURS = (
    Implementation("fastpickle.Pickler", fastpickle.Pickler),
    Implementation("pickle._Pickler, installed", _Stock, fastpickle.patched),
)


def compare(make: Callable[[Run], Any], protocols: tuple[int, ...] = (2, 4)) -> None:
    """Compare with stock; the object is made for each run, since it may change its class."""
    for ours in _OURS:
        check(_ORACLE, ours, lambda run: run.pickler.dump(make(run)), protocols=protocols)


class Act:
    """Calls a function when it is reduced."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def __reduce__(self) -> Any:
        self.act()
        return str, ("acted",)


def test_atoms_that_somebody_memoized() -> None:
    """An atom is looked for in the memo, if code that is not ours could have put it there: now or beforehand."""
    for atom in (1.5, 7, 70_000, None, True, 2**70):

        def late(run: Run) -> Any:
            return [atom, Act(lambda: run.pickler.memoize(atom)), *[atom] * 30, [atom] * 30, (atom, {"a": atom})]

        def beforehand(run: Run) -> Any:
            run.pickler.memo[id(atom)] = 300, atom
            return [atom, [atom] * 30, {1: atom}]

        compare(late)
        compare(beforehand)


@pytest.mark.parametrize("n", [0, 1, 8, 9, 10, 11, 12, 25])
@pytest.mark.parametrize("change", ["persistent_id", "save", "write", "memo", "dispatch"])
def test_hook_set_among_small_objects(n: int, change: str) -> None:
    """While the plan is in doubt small objects are left to stock, and so are the first of them that a hook sees."""

    def make(run: Run) -> Any:
        pickler = run.pickler

        def act() -> None:
            if change == "memo":
                pickler.memo = dict(pickler.memo)
            elif change == "dispatch":
                pickler.dispatch = {**pickler.dispatch, int: lambda pickler, obj: pickler.save_float(0.5)}
            elif change == "persistent_id":
                pickler.persistent_id = lambda obj: "id" if obj == 3 else None
            else:
                old = getattr(pickler, change)

                def recording(*args: Any) -> Any:
                    run.calls.append((change, type(args[0]).__name__))
                    return old(*args)

                setattr(pickler, change, recording)

        nothing = [Act(lambda: None), *[1] * n]
        return [nothing, [2] * n, Act(lambda: None), *[3] * n, Act(act), *[3] * n, [3] * n, (3,), {3: 3}, *range(40)]

    compare(make)


@pytest.mark.parametrize("where", ["after it has saved", "between items", "between pairs", "on the instance"])
def test_hook_set_after_a_look(where: str) -> None:
    """The plan is looked at for a large object, and code that is not ours goes on after that."""

    def make(run: Run) -> Any:
        large = [*range(20)]

        def act() -> None:
            run.pickler.persistent_id = lambda obj: "id" if obj == 3 else None

        class Late:
            def __reduce__(self) -> Any:
                run.pickler.save([*large])
                run.pickler.write(pickle.POP)
                act()
                return str, ([*large],)

        class Lazy:
            def __reduce__(self) -> Any:
                return (list, (), None, items()) if where == "between items" else (dict, (), None, None, pairs())

        def items() -> Any:
            yield from [1] * 999  # a batch, all of which is asked for before it is saved
            yield [*large]
            act()
            yield 3
            yield [*large]

        def pairs() -> Any:
            yield from [(1, 1)] * 999
            yield 1, [*large]
            act()
            yield 3, [*large]

        if where == "on the instance":
            plain = Plain()
            plain.__reduce_ex__ = lambda protocol: (act(), (str, ([*large],)))[1]  # type: ignore[method-assign, assignment]
            return [Plain(), plain, 3, [*large]]
        return [Late() if where == "after it has saved" else Lazy(), 3, [*large]]

    compare(make)


class Point(NamedTuple):
    x: Any
    y: Any


class Slots:
    __slots__ = ("a", "b")


class Both(Slots):
    pass


class Plain:
    pass


class Items(list[Any]):
    pass


class Table(dict[Any, Any]):
    pass


def instances() -> list[Any]:
    """Return one object of each kind whose reduce is known to be nobody's."""
    slots, both, plain = Slots(), Both(), Plain()
    slots.a = both.a = plain.a = [1]  # type: ignore[attr-defined]
    both.c = plain.c = "c"  # type: ignore[attr-defined]
    utc = datetime.timezone.utc
    return [
        Point(1, "a"), slots, both, plain, Plain(), Items([1, 2, "a"]), Items(), Table(a=1), Table(),
        collections.OrderedDict(a=1, b=[2]), collections.deque([1, 2], 5), collections.defaultdict(int, a=2),
        decimal.Decimal("1.5"), datetime.datetime(2026, 1, 2, tzinfo=utc), datetime.date(2026, 1, 2),
        datetime.time(3, 4), datetime.timedelta(5, 6, 7), utc, datetime.timezone(datetime.timedelta(hours=1), "one"),
        collections.Counter("aab"), 1 + 2j,
    ]  # fmt: skip


def test_instances() -> None:
    """Each twice, with the same object a second time, at each protocol."""
    compare(lambda run: [instances(), (shared := instances()), shared, *instances()], (0, 1, 2, 3, 4, 5))


@pytest.mark.parametrize("name", ["__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs_ex__", "items"])
@pytest.mark.parametrize("t", [Plain, Items, Table, collections.OrderedDict, Both])
def test_attribute_of_an_instance(t: Any, name: str) -> None:
    """What a reduce looks up on the instance may be there."""

    def make(run: Run) -> Any:
        objs = [t() for _ in range(3)]
        values: dict[str, Any] = {
            "__reduce_ex__": lambda protocol: (run.calls.append(("called",)), (str, ("reduced",)))[1],
            "__reduce__": lambda: (str, ("not asked",)),
            "__getstate__": lambda: (run.calls.append(("called",)), {"state": 1})[1],
            "__getnewargs_ex__": lambda: (run.calls.append(("called",)), ((), {}))[1],
            "items": lambda: (run.calls.append(("called",)), {"x": 1}.items())[1],
        }
        setattr(objs[1], name, values[name])
        if name not in ("__reduce_ex__", "__getstate__"):
            object.__delattr__(objs[1], name)  # a function cannot be pickled
            objs[1].__dict__[name] = len if name == "__reduce__" else [].count
        return objs

    compare(make)


@pytest.mark.parametrize("t", [Plain, Slots, Point, Items, Table])
@pytest.mark.parametrize("name", ["__reduce__", "__getstate__", "__getattr__", "__class__", "__iter__", "copyreg"])
def test_class_changed_in_the_middle(t: Any, name: str) -> None:
    """What is known of a class is forgotten where somebody's code runs."""
    import copyreg  # noqa: PLC0415  # its table is changed here, and nowhere else

    def change(run: Run) -> None:
        called = run.calls.append
        if name == "copyreg":
            copyreg.pickle(t, lambda obj: (called(("copyreg",)), (str, ("by copyreg",)))[1])
            return
        value: Any = {
            "__reduce__": lambda self: (called(("called",)), (str, ("reduced",)))[1],
            "__getstate__": lambda self: (called(("called",)), {"state": 1})[1],
            "__getattr__": lambda self, name: (called((name,)), object.__getattribute__(self, name))[1],
            "__class__": property(lambda self: (called(("called",)), t)[1]),
            "__iter__": lambda self: (called(("called",)), iter([1, 2]))[1],
        }[name]
        setattr(t, name, value)

    def undo() -> None:
        if name == "copyreg":
            copyreg.dispatch_table.pop(t, None)
        elif name in vars(t):
            delattr(t, name)

    def make(run: Run) -> Any:
        undo()
        objs = [Point(1, 2) if t is Point else t() for _ in range(30)]
        return [*objs[:15], Act(lambda: change(run)), *objs[15:]]

    try:
        compare(make)
    finally:
        undo()


def test_subclass_of_a_known_type() -> None:
    """A subclass of a type of the standard library's is another type."""

    class Moment(datetime.datetime):
        def __reduce_ex__(self, protocol: Any) -> Any:
            return str, ("moment",)

    class Ordered(collections.OrderedDict[Any, Any]):
        def items(self) -> Any:
            return {"other": 1}.items()

    globals()["Ordered"] = Ordered
    Ordered.__qualname__ = "Ordered"
    compare(lambda run: [Moment(2026, 1, 2), datetime.datetime(2026, 1, 2), Moment(2026, 1, 3), Ordered(a=1)])


@pytest.mark.parametrize("t", [list, dict, tuple])
def test_entry_of_a_frequent_container(t: type) -> None:
    """A dispatch entry of one of these is called for each of its objects."""

    def make(run: Run) -> Any:
        def entry(pickler: Any, obj: Any) -> None:
            run.record("entry", obj)
            original(pickler, obj)

        original = run.pickler.dispatch[t]
        run.pickler.dispatch = {**run.pickler.dispatch, t: entry}
        return [[1, {"a": (1, 2)}], [{"b": [3]}] * 2, (4, 5, 6, 7)]

    compare(make)


@pytest.mark.skipif(not PYPY, reason="its own methods")
@pytest.mark.parametrize("name", ["write", "_write_large_bytes", "put", "get"])
def test_methods_that_are_attributes_elsewhere(name: str) -> None:
    """`write` is a method on PyPy: overridden in the class, on the instance, and late."""

    def subclass(base: Any, run: Run) -> Any:
        def method(self: Any, *args: Any) -> Any:
            run.calls.append((name, len(args)))
            return getattr(base, name)(self, *args)

        return type("P", (base,), {name: method})

    obj = [1, "a", ["b", "b"], (1, 2, "c"), {"k": b"v"}, "x" * 70_000, ["a"], 300]
    for ours in _OURS:
        check(_ORACLE, ours, lambda run: run.pickler.dump(obj), cls=subclass)

    def late(run: Run) -> Any:
        old = getattr(run.pickler, name)
        value = lambda *args: (run.calls.append((name,)), old(*args))[1]  # noqa: E731
        return [obj, Act(lambda: setattr(run.pickler, name, value)), [*obj], obj]

    compare(late)


@pytest.mark.skipif(not PYPY, reason="ValueSuite.test_too_deep does it")
@pytest.mark.parametrize("name", ["fastpickle.Pickler", "pickle._Pickler"])
def test_too_deep(name: str) -> None:
    """A structure without an end raises RecursionError, or is written, and the pickler stays usable.

    In a process without a JIT: "Fatal RPython error: AssertionError" in jit_rvmprof_code, while compiled code is left
    by the exception, is what ends stock's dumps now and then, too.
    """
    code = f"""
        import io, pickle, sys
        sys.path[:0] = {sys.path!r}
        import fastpickle
        from oracle.allowed import is_too_deep
        fastpickle.install()

        class Plain:
            pass

        def instance(x):
            plain = Plain()
            plain.x = x
            return plain

        failed = 0
        for wrap in (lambda x: [x], lambda x: {{"a": x}}, lambda x: (x,), instance):
            for protocol in (2, 4):
                obj = "inmost"
                for _ in range(20_000):
                    obj = wrap(obj)
                pickler = {name}(io.BytesIO(), protocol)
                try:
                    pickler.dump(obj)
                except Exception as exc:
                    assert is_too_deep(exc), repr(exc)
                    failed += 1
                pickler.dump([1])
                file = io.BytesIO()
                {name}(file, protocol).dump([1, [2]])
                assert pickle.loads(file.getvalue()) == [1, [2]]
        print(failed)
    """
    command = [sys.executable, "--jit", "off", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 0


def test_engine() -> None:
    """On PyPy it is this one that is tested."""
    assert (fastpickle.Pickler.save.__module__ == "fastpickle.pypy.save") == PYPY
