"""The abstract suite of evil: code that runs in the middle of a dump and changes what is being dumped, or the pickler.

An `objects.Acting` does something when it is reduced; a file does something when it is written to; hooks and iterators
do something when they are asked.  What comes out, bytes or exception, is what the oracle makes of the same.

Not for: what is set up before the dump (`suite_hooks`).
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastpickle

from . import hooked, objects
from .allowed import PYPY
from .compare import PythonFile, Run
from .parts import APartOf
from .suite_hooks import small
from .suite_values import Suite

Action = Callable[[], Any]

#: Where the acting object stands, and what follows it: (acting, after) -> object.
PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "list": lambda x, after: [1, "before", x, after, "text", 300, [1, 2]],
    "list in a list": lambda x, after: [[[x, 255], after], after, (1, 2)],
    "dict value": lambda x, after: {"a": 1, "b": x, "c": after, "d": (1, 2), 5: "text"},
    "dict key": lambda x, after: {1: 1, x: "b", "c": after, "d": [1, 2]},
    "only value": lambda x, after: [{"b": x}, after],
    "tuple": lambda x, after: (1, x, after),
    "long tuple": lambda x, after: (1, "text", x, after, [1, 2], (1, 2)),
    "set": lambda x, after: [{x, 500, 600}, after],
    "frozenset": lambda x, after: [frozenset((x, 500)), after],
    "state": lambda x, after: [objects.Plain(a=1, b=x, c=after), after],
    "slots": lambda x, after: [objects.Slotted(x, after), after],
    "arguments": lambda x, after: [objects.Reduced((objects.make, (1, x, after))), after],
    "newargs": lambda x, after: [objects.NewArgs(x, after), after],
    "newargs_ex": lambda x, after: [objects.NewArgsEx(x, key=after), after],
    "listitems": lambda x, after: [objects.List([1, x, after]), after],
    "dictitems": lambda x, after: [objects.Dict({"a": x, "b": after}), after],
    "state setter": lambda x, after: [objects.Reduced((objects.make, (), x, None, None, objects.set_state)), after],
    "batches": lambda x, after: [*range(998), x, after, "text", *range(1001), after],
    "dict of batches": lambda x, after: {
        **dict.fromkeys(range(998)),
        "x": x,
        "after": after,
        **dict.fromkeys(range(2000, 3002)),
    },
    "set of batches": lambda x, after: [{*range(998), x, *range(3000, 4100)}, after],
    "twice": lambda x, after: [[x], x, (x, after)],
    "alone": lambda x, after: x,
    "root with much": lambda x, after: objects.Reduced((objects.make, ([*range(30)], x, after), {"again": [x]})),
}


_USES: dict[str, Callable[[Any], Any]] = {
    "save an atom": lambda p: p.save(5),
    "save a list": lambda p: p.save(["nested", (1,)]),
    "dump an atom": lambda p: p.dump("nested"),
    "dump an instance": lambda p: p.dump([objects.Plain(a=[1])]),
    "save_list": lambda p: p.save_list([1, [2]]),
    "memoize": lambda p: p.memoize([1]),
    "save_reduce": lambda p: p.save_reduce(objects.make, (1, (2,)), obj=objects.Plain()),
    "save_global": lambda p: p.save_global(objects.function),
    "__init__": lambda p: p.__init__(p._file_write.__self__, p.proto),
    "__init__ with another protocol": lambda p: p.__init__(p._file_write.__self__, 1),
}

#: Every way in which code can come to run in the middle of a dump (`_acting_by`).
_WAYS = (
    "__getstate__", "__reduce_ex__", "copyreg", "table", "table, C", "hash", "name", "property", "iterator", "items",
    "pairs", "__class__", "__getattribute__", "pid", "dispatch", "dispatch, late", "__reduce_ex__, late",
)  # fmt: skip

#: What the class may get in the middle of a dump: its name, and of what kind it is -> (run, base) -> the attribute.
_CLASS_CHANGES: dict[str, Callable[[Run, Any], Any]] = {
    "persistent_id": lambda run, base: lambda self, obj: (run.record("persistent_id", obj), hooked._pid_of(obj))[1],
    "reducer_override": lambda run, base: (
        lambda self, obj: (run.record("reducer_override", obj), hooked._reduction_of(obj))[1]
    ),
    "memoize": lambda run, base: lambda self, obj: (run.record("memoize", obj), base.memoize(self, obj))[1],
    "save": lambda run, base: lambda self, obj, *a, **k: (run.record("save", obj), base.save(self, obj, *a, **k))[1],
    "put": lambda run, base: lambda self, i, *a: (run.record("put", i), base.put(self, i, *a))[1],
    "get": lambda run, base: lambda self, i: (run.record("get", i), base.get(self, i))[1],
    "save_reduce": lambda run, base: (
        lambda self, *a, **k: (run.record("save_reduce", a[0]), base.save_reduce(self, *a, **k))[1]
    ),
    "_batch_appends": lambda run, base: (
        lambda self, *a: (run.record("_batch_appends", a[0]), base._batch_appends(self, *a))[1]
    ),
    "_batch_setitems": lambda run, base: (
        lambda self, *a: (run.record("_batch_setitems", None), base._batch_setitems(self, *a))[1]
    ),
    "_BATCHSIZE": lambda run, base: 2,
    "dispatch": lambda run, base: {**base.dispatch, int: lambda pickler, obj: pickler.write(pickle.NONE)},
    "dispatch_table": lambda run, base: hooked._TABLE,
    "save without a hash": lambda run, base: hooked.Strange(run, "save", base.save),
    "save for instances": lambda run, base: hooked.Strange(run, "save", base.save, ValueError),
    "memoize for instances": lambda run, base: hooked.Strange(run, "memoize", base.memoize, ValueError),
}


class Break(BaseException):
    """An exception of our own that is no Exception."""


def _noting(name: str, note: Callable[[str], None]) -> Callable[..., Any]:
    """Make a function of a metaclass that writes down what it is asked, and does what `type`'s does."""
    original = getattr(type, name)

    def function(cls: type, *args: Any) -> Any:
        note(args[0] if name == "__getattribute__" else name)
        return original(cls, *args)

    return function


#: What a metaclass has of its own, given what writes down that it was asked for.
METACLASSES: dict[str, Callable[[Callable[[str], None]], dict[str, Any]]] = {
    "hash": lambda note: {"__hash__": _noting("__hash__", note)},
    "equality": lambda note: {"__eq__": _noting("__eq__", note), "__hash__": type.__hash__},
    "attributes": lambda note: {"__getattribute__": _noting("__getattribute__", note)},
    "checks": lambda note: {name: _noting(name, note) for name in ("__instancecheck__", "__subclasscheck__")},
    "no hash": lambda note: {"__hash__": None},
}


class EvilSuite(Suite):
    """Changes in the middle of a dump."""

    @pytest.mark.parametrize("change", hooked.ON_INSTANCE)
    def test_pickler_changed(self, change: str) -> None:
        """Something is set on the instance in the middle of a dump, in every place."""
        for place, make in PLACES.items():

            def steps(run: Run) -> None:
                acting = objects.Acting(lambda: hooked.ON_INSTANCE[change](run, run.pickler), 550)
                run.pickler.dump(make(acting, small()))
                run.pickler.dump(["second", 1])

            self.check(steps, protocols=self.some(place, change, n=1 if "batches" in place else 2), case=place)

    @pytest.mark.parametrize("change", hooked.ON_INSTANCE)
    def test_pickler_of_a_subclass_changed(self, change: str) -> None:
        """The same for subclasses that have hooks already."""
        for subclass in (
            "nothing of its own",
            "records save",
            "persistent_id",
            "dispatch entry of dict",
            "reducer_override",
        ):
            for place in ("list", "dict value", "tuple", "set", "state", "listitems", "arguments"):

                def steps(run: Run) -> None:
                    acting = objects.Acting(lambda: hooked.ON_INSTANCE[change](run, run.pickler), 550)
                    run.pickler.dump(PLACES[place](acting, small()))

                how = {"cls": hooked.SUBCLASSES[subclass], "case": f"{subclass}, {place}"}
                self.check(steps, protocols=self.some(place, subclass, change, n=1), **how)

    @pytest.mark.parametrize("change", hooked.ON_INSTANCE)
    def test_pickler_changed_from(self, change: str) -> None:
        """Every way in which code can come to run in the middle of a dump; it may use what it has changed."""
        for how in _WAYS:
            for is_used in (False, True):

                def steps(run: Run) -> None:
                    is_over = False

                    def act() -> None:
                        if not is_over:  # the comparison asks objects for their class, too
                            hooked.ON_INSTANCE[change](run, run.pickler)
                            if is_used:
                                run.pickler.save([1, (2, 3), {"by": "itself"}])
                                run.pickler.write(pickle.POP)

                    try:
                        run.pickler.dump([1, _acting_by(how, act, run), small(), (1, 2)])
                    finally:
                        is_over = True

                case = f"{how}, and uses it" if is_used else how
                self.check(steps, protocols=self.some(how, change, n=1 if is_used else 2), case=case)

    @pytest.mark.parametrize("change", hooked.ON_INSTANCE)
    def test_pickler_changed_by_file(self, change: str) -> None:
        """The file's write() changes the pickler."""
        for at in (0, 1, 2, 3):

            def file(run: Run) -> Any:
                return PythonFile(lambda k: hooked.ON_INSTANCE[change](run, run.pickler) if k == at else None)

            def steps(run: Run) -> None:
                run.pickler.dump(
                    [small(), ["x" * 40_000, (1, 2), {"a": ("y" * 40_000, [1, 2], 255)}], small(), b"z" * 70_000, [1]]
                )

            self.check(steps, file=file, protocols=(1, 4) if at == 1 else (4,))

    @pytest.mark.parametrize("name", _CLASS_CHANGES)
    def test_class_changed(self, name: str) -> None:
        """The pickler's class gets a hook in the middle of a dump, and has lost it in the next."""
        attribute = name.partition(" ")[0]
        for place, make in PLACES.items():

            def steps(run: Run) -> None:
                cls = type(run.pickler)

                def act() -> None:
                    setattr(cls, attribute, _CLASS_CHANGES[name](run, cls.__base__))

                run.pickler.dump(make(objects.Acting(act, 550), small()))
                delattr(cls, attribute)
                run.pickler.dump(small())

            how = {"cls": hooked.SUBCLASSES["nothing of its own"], "case": place}
            self.check(steps, protocols=self.some(place, name), **how)

    @pytest.mark.parametrize("place", PLACES)
    def test_dispatch_changed(self, place: str) -> None:
        """An entry of the class's table is changed in place, in the middle of a dump."""
        for t in hooked.DISPATCHED:
            for entry in (None, lambda pickler, obj: pickler.write(pickle.NONE)):

                def act(run: Run) -> None:
                    table = type(run.pickler).dispatch
                    if entry is None:
                        table.pop(t, None)
                    else:
                        table[t] = entry

                def steps(run: Run) -> None:
                    run.pickler.dump(PLACES[place](objects.Acting(lambda: act(run), 550), small()))

                self.check(steps, cls=_with_own_dispatch, protocols=self.some(place, t, n=1))

    @pytest.mark.parametrize("use", _USES)
    def test_pickler_used(self, use: str) -> None:
        """The pickler is used in the middle of its own dump."""
        for place, make in PLACES.items():

            def steps(run: Run) -> None:
                # A dump inside ends the frames; from then on each write of stock's reaches the file by itself.
                run.sizes_matter = "dump" not in use and "__init__" not in use
                run.pickler.dump(make(objects.Acting(lambda: _USES[use](run.pickler), 550), small()))

            self.check(steps, protocols=self.some(place, use), case=place)

    @pytest.mark.parametrize("place", PLACES)
    def test_reduction_changed(self, place: str) -> None:
        """A class whose instances were saved already gets other ways to be reduced."""

        def reduce_late(run: Run, obj: Any) -> Any:
            run.pickler.fast = True
            return objects.make, (1, "late")

        ways: dict[str, Callable[[Run, Any], Any]] = {
            "__reduce__": lambda run, cls: lambda self: reduce_late(run, self),
            "__reduce_ex__": lambda run, cls: lambda self, protocol: reduce_late(run, self),
            "__getstate__": lambda run, cls: lambda self: reduce_late(run, self),
            "__getattribute__": lambda run, cls: (
                lambda self, name: (
                    reduce_late(run, self),
                    object.__getattribute__(self, name),
                )[1]
            ),
            "copyreg": lambda run, cls: lambda obj: reduce_late(run, obj),
            "dispatch": lambda run, cls: lambda pickler, obj: pickler.save(reduce_late(run, obj)),
            "dispatch_table": lambda run, cls: {cls: lambda obj: reduce_late(run, obj)},
        }
        for name, way in ways.items():

            def steps(run: Run) -> None:
                cls = type("Other", (objects.Plain,), {"__module__": objects.__name__})
                run.kept["original"], objects.Other = objects.Other, cls  # type: ignore[misc]

                def act() -> None:
                    if name == "copyreg":
                        copyreg.dispatch_table[cls] = way(run, cls)
                    elif name == "dispatch":
                        run.pickler.dispatch = {**run.pickler.dispatch, cls: way(run, cls)}
                    elif name == "dispatch_table":
                        run.pickler.dispatch_table = way(run, cls)
                    else:
                        setattr(cls, name, way(run, cls))

                try:
                    after = [cls(a=2), "text", [cls(a=(3, "text"))], (1, 2)]
                    run.pickler.dump([cls(a=1), cls(b=1), PLACES[place](objects.Acting(act, 550), after)])
                finally:
                    objects.Other = run.kept["original"]  # type: ignore[misc]
                    copyreg.dispatch_table.pop(cls, None)

            self.check(steps, protocols=self.some(place, name), case=name)

    @pytest.mark.parametrize("what", METACLASSES)
    def test_metaclass_is_asked_what_stock_asks(self, what: str) -> None:
        """A metaclass's own functions are called as often as by stock, wherever its instances are; a hash is missed."""
        shapes: dict[str, Callable[[Any], Any]] = {
            "alone": lambda cls: cls(a=1),
            "the class": lambda cls: cls,
            "little": lambda cls: [cls(a=1)],
            "in a tuple": lambda cls: (1, cls(a=1)),
            "many": lambda cls: [cls(a=i) for i in range(60)],
            "behind numbers": lambda cls: [*range(300), cls(a=1)],
            "rows": lambda cls: [{"a": i, "b": cls(a=i)} for i in range(30)],
            "chain": lambda cls: [cls(a=cls(a=i)) for i in range(20)],
            "behind much": lambda cls: [objects.Reduced(_gives_much), cls(a=1), objects.Reduced(_gives_much), cls(a=2)],
        }
        for name, shape in shapes.items():

            def steps(run: Run) -> None:
                asked: list[str] = []
                original = objects.Other
                meta = type("Meta", (type,), METACLASSES[what](asked.append))
                cls = meta("Other", (objects.Plain,), {"__module__": objects.__name__})
                objects.Other = cls  # type: ignore[misc]  # to mypy a class is no variable
                try:
                    for _ in range(3):
                        obj = shape(cls)
                        asked.clear()
                        try:
                            run.pickler.dump(obj)
                        finally:
                            run.calls += [(what, *sorted(asked))]
                finally:
                    objects.Other = original  # type: ignore[misc]  # as above

            self.check(steps, protocols=self.some(what, name), case=name)

    def test_code_in_a_default_reduce(self) -> None:
        """Every place from which `object.__reduce_ex__` may run somebody's code, which changes the pickler."""

        def change(run: Run) -> None:
            run.pickler.fast = True
            run.record("changed", None)

        def of_class(body: Callable[[Run], dict[str, Any]], meta: type = type) -> Callable[[Run], Any]:
            def make(run: Run) -> Any:
                cls = meta("Other", (objects.Plain,), {"__module__": objects.__name__, **body(run)})
                run.kept["original"], objects.Other = objects.Other, cls  # type: ignore[misc]
                return cls(a=[1])

            return make

        def of_instance(name: str) -> Callable[[Run], Any]:
            def make(run: Run) -> Any:
                obj = objects.Plain(a=[1])
                obj.__dict__[name] = lambda *args: (change(run), objects.make, ())[1 if "reduce" in name else 0 :]
                return obj

            return make

        def looked_up(run: Run, name: str) -> Any:
            change(run)
            raise AttributeError(name)

        def hidden(name: str) -> Callable[[Run], Any]:
            return of_class(lambda run: {name: property(lambda self: looked_up(run, name))})

        class Meta(type):
            pass

        forms: dict[str, Callable[[Run], Any]] = {
            **{f"a property {name}": hidden(name) for name in ("__getstate__", "__getnewargs__", "__getnewargs_ex__")},
            **{f"{name} of an instance": of_instance(name) for name in ("__reduce_ex__", "__reduce__", "__getstate__")},
            "__getattr__": of_class(lambda run: {"__getattr__": lambda self, name: looked_up(run, name)}),
            "__getattribute__": of_class(
                lambda run: {
                    "__getattribute__": lambda self, name: (change(run), object.__getattribute__(self, name))[1]
                }
            ),
            "__class__": of_class(lambda run: {"__class__": property(lambda self: (change(run), type(self))[1])}),
            "__dict__": of_class(lambda run: {"__dict__": property(lambda self: (change(run), {"b": 1})[1])}),
            "a slot that is a property": of_class(lambda run: {"__slots__": ("s",)}),
            "a metaclass": of_class(lambda run: {}, Meta),
            "a metaclass's __getattribute__": of_class(
                lambda run: {},
                type("Meta", (type,), {"__getattribute__": lambda cls, name: type.__getattribute__(cls, name)}),
            ),
        }
        for name, form in forms.items():

            def steps(run: Run) -> None:
                try:
                    obj = form(run)
                    run.pickler.dump([obj, "text", (1, 2), [obj, type(obj)], {"a": obj}])
                finally:
                    objects.Other = run.kept.pop("original", objects.Other)  # type: ignore[misc]

            self.check(steps, case=name)

    @pytest.mark.parametrize("place", PLACES)
    def test_exception_caught_inside(self, place: str) -> None:
        """Code in the middle of a dump saves something that fails, and goes on."""

        def act(run: Run) -> None:
            for bad in (
                [1, [objects.Acting(_raise, 1)]],
                {"a": (objects.Acting(_raise, 1),)},
                objects.Plain(a=objects.Acting(_raise)),
            ):
                run.kept.setdefault("alive", []).append(bad)
                try:
                    run.pickler.save(bad)
                except LookupError:
                    pass

        def steps(run: Run) -> None:
            run.pickler.dump(PLACES[place](objects.Acting(lambda: act(run), 550), small()))
            run.pickler.dump([1, small()])

        self.check(steps)
        self.check(steps, cls=hooked.SUBCLASSES["records memoize"])

    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("exception", [LookupError, KeyboardInterrupt, SystemExit, Break, OSError, StopIteration])
    def test_raises(self, place: str, exception: type[BaseException]) -> None:
        """An exception from inside, with its notes; then another dump."""

        def act() -> None:
            exc = exception("text", 1)
            if hasattr(exc, "add_note"):
                exc.add_note("a note of its own")
            try:
                raise ValueError("the context")
            except ValueError as context:
                raise exc from (context if exception is Break else None)

        def steps(run: Run) -> None:
            run.pickler.dump(PLACES[place](objects.Acting(act, 550), small()))

        def again(run: Run) -> None:
            try:
                steps(run)
            except BaseException:
                pass
            run.pickler.dump(small())

        self.check(steps, fails=True, protocols=self.some(place, exception))
        self.check(again, fails=False, protocols=self.some(exception, place))
        self.check(steps, fails=True, cls=hooked.SUBCLASSES["records save"], protocols=(4,))

    @pytest.mark.parametrize(
        "kind", ["list", "tuple", "dict", "dict keys", "set", "frozenset", "List", "Dict", "OrderedDict"]
    )
    def test_notes_name_the_item(self, kind: str) -> None:
        """The exception is raised at each position, at the edges of batches too."""
        for n in (1, 2, 3, 4, 5, 999, 1000, 1001, 1002, 2001):
            for at in {0, 1, 2, n // 2, n - 2, n - 1, 998, 999, 1000, 1001}:
                if 0 <= at < n:
                    items: list[Any] = [*range(n)]
                    items[at] = objects.Acting(_raise, at)
                    obj = {
                        "list": lambda: items,
                        "tuple": lambda: tuple(items),
                        "dict": lambda: {f"k{i}": x for i, x in enumerate(items)},
                        "dict keys": lambda: {x: [i] for i, x in enumerate(items)},
                        "set": lambda: {*items},
                        "frozenset": lambda: frozenset(items),
                        "List": lambda: objects.List(items),
                        "Dict": lambda: objects.Dict(enumerate(items)),
                        "OrderedDict": lambda: __import__("collections").OrderedDict(enumerate(items)),
                    }[kind]()
                    self.check_object(obj, fails=True, protocols=self.some(kind, n, at, n=2 if n < 10 else 1))
                    if n < 10:
                        self.check_object([0, {"deep": (1, obj)}], fails=True, protocols=self.some(n, at, kind, n=1))

    @pytest.mark.parametrize("n", [1, 2, 3, 4, 999, 1000, 1001, 1002, 2000, 2001])
    def test_list_changed(self, n: int) -> None:
        """A list that grows, shrinks or changes while its items are saved."""
        changes: list[Callable[[list[Any]], Any]] = [
            lambda x: x.append("new"),
            lambda x: x.extend(range(1000)),
            lambda x: x.clear(),
            lambda x: x.pop(),
            lambda x: x.insert(0, "first"),
            lambda x: x.__setitem__(-1, "changed"),
            lambda x: x.__setitem__(slice(None), ["changed"] * len(x)),
            lambda x: x.__delitem__(slice(n // 2, None)),
            lambda x: x.reverse(),
        ]
        for k, change in enumerate(changes):
            for at in {0, 1, n // 2, n - 1, 998, 999, 1000}:
                if at < n:

                    def make() -> Any:
                        obj: list[Any] = [*range(n)]
                        obj[at] = objects.Acting(lambda: change(obj))
                        return [obj, "after", obj]

                    self.check_made(make, protocols=self.some(n, k, at))

    @pytest.mark.skipif(PYPY, reason="PyPy 8.0.1 crashes on stock: where a dict changes while jitted code iterates it")
    @pytest.mark.parametrize("n", [1, 2, 3, 999, 1000, 1001, 1002, 2000])
    def test_dict_changed(self, n: int) -> None:
        """A dict whose size, keys or values change while its items are saved."""

        def exchange(x: dict[Any, Any]) -> None:
            x.pop(n - 1, None)
            x["exchanged"] = 1

        changes: list[Callable[[dict[Any, Any]], Any]] = [
            lambda x: x.__setitem__("new", 1),
            lambda x: x.update(dict.fromkeys(range(5000, 6000))),
            lambda x: x.clear(),
            lambda x: x.popitem(),
            lambda x: x.pop(0, None),
            lambda x: x.update(dict.fromkeys(x, "changed")),
            exchange,
        ]
        for k, change in enumerate(changes):
            for at in {0, n // 2, n - 1, 998, 999, 1000}:
                for as_key in (False, True):
                    if at < n:

                        def make() -> Any:
                            obj: dict[Any, Any] = {}
                            acting = objects.Acting(lambda: change(obj), at)
                            for i in range(n):
                                obj[acting if as_key and i == at else i] = acting if i == at else i
                            return [obj, "after", obj]

                        self.check_made(make, protocols=self.some(n, k, at, as_key))

    @pytest.mark.parametrize("n", [1, 2, 998, 999, 1000, 1001, 2000])
    def test_set_changed(self, n: int) -> None:
        """A set that changes while its elements are saved."""
        changes: list[Callable[[set[Any]], Any]] = [
            lambda x: x.add("new"),
            lambda x: x.clear(),
            lambda x: x.discard(n - 1),
        ]
        for change in changes:
            for at in {0, n // 2, n - 1, 999}:

                def make() -> Any:
                    obj: set[Any] = {*range(n)}
                    obj.discard(at)
                    obj.add(objects.Acting(lambda: change(obj), at))
                    return [obj, "after", obj]

                self.check_made(make, protocols=(2, 4))

    def test_state_changed(self) -> None:
        """An instance whose __dict__ changes while it is saved."""

        def make() -> Any:
            obj = objects.Plain(a=1)
            obj.acting = objects.Acting(lambda: obj.__dict__.update(b=2, c=3))
            obj.last = 1
            return [obj, obj]

        self.check_made(make)

    def test_iterators(self, a_part_of: APartOf) -> None:
        """Iterators of list items and of pairs: malformed, raising, longer than a batch, changing things."""
        forms: list[Callable[[Run], Any]] = [
            lambda run: (list, (), None, iter(range(1001))),
            lambda run: (list, (), None, 5),
            lambda run: (list, (), None, _yield_and_raise(3)),
            lambda run: (list, (), None, _yield_and_raise(1000)),
            lambda run: (list, (), None, _yield_and_raise(0)),
            lambda run: (list, (), None, "text"),
            lambda run: (dict, (), None, None, iter([(1, 2), (3,), (4, 5)])),
            lambda run: (dict, (), None, None, iter([(1, 2, 3)])),
            lambda run: (dict, (), None, None, iter([(1, 2), 5])),
            lambda run: (dict, (), None, None, iter(["ab", [1, 2], {3: 4, 5: 6}])),
            lambda run: (dict, (), None, None, {1: 2}),
            lambda run: (dict, (), None, None, _yield_and_raise(2)),
            lambda run: (dict, (), None, None, ((i, i) for i in range(1001))),
            lambda run: (dict, (), None, None, iter([(i, i) for i in range(999)] + [(1,)])),
            lambda run: (list, (), None, _saving(run)),
            lambda run: (list, (), {"a": 1}, iter([1, [2], (3,)]), iter([("k", [1])])),
            lambda run: (list, ([],), None, [], {}),
            lambda run: (dict, (), None, None, 0),
            lambda run: (list, (), None, False, ""),
        ]
        for form in a_part_of(forms):
            for cls in (None, "records save", "records memoize"):
                self.check(
                    lambda run: run.pickler.dump([1, objects.Reduced(lambda self: form(run)), (1, 2)]),
                    cls=hooked.SUBCLASSES[cls] if cls else None,
                )

    @pytest.mark.parametrize("change", hooked.ON_INSTANCE)
    def test_iterator_changes_pickler(self, change: str) -> None:
        """An iterator changes the pickler between two items."""
        for at in (0, 999, 1000):

            def items(run: Run) -> Iterator[Any]:
                for i in range(1003):
                    if i == at:
                        hooked.ON_INSTANCE[change](run, run.pickler)
                    yield (i, [i] if i % 100 == 0 or i > 998 else i)

            def steps(run: Run) -> None:
                run.pickler.dump([objects.Reduced(lambda self: (list, (), {"s": [1]}, items(run))), [3, "text"]])

            def pairs(run: Run) -> None:
                run.pickler.dump([objects.Reduced(lambda self: (dict, (), {"s": [1]}, None, items(run))), [3, "text"]])

            for do in (steps, pairs):
                self.check(do, protocols=self.some(change, at, do.__name__, n=1))

    @pytest.mark.parametrize("wrong", range(46))
    def test_bad_reduce(self, wrong: int) -> None:
        """A reduce that gives what it should not: the oracle's message and notes, or its bytes."""
        newobj = copyreg.__newobj__  # type: ignore[attr-defined]
        newobj_ex = copyreg.__newobj_ex__  # type: ignore[attr-defined]

        class Without:
            __new__ = None

        def __newobj__(*args: Any) -> Any:  # stock goes by the name
            return object()

        values: list[Any] = [
            None, 5, [], {}, b"bytes", 1.5, object(), set(), (), (1,), (objects.make,), (objects.make, (), 1, None,
            None, None, 7),
            (None, ()), (5, ()), ("text", ()), (objects.make, None), (objects.make, []), (objects.make, "text"),
            (objects.make, 5),
            (newobj, ()), (newobj, (5,)), (newobj, (objects.Plain,)), (newobj, (Without,)), (newobj_ex, ()),
            (newobj_ex, (1, 2)),
            (newobj_ex, (objects.Plain, (), {})), (newobj_ex, (Without, (), {})), (newobj_ex, (objects.Reduced, 5, 6)),
            (newobj_ex, (objects.Reduced, (), {}, 1)), (newobj, [objects.Reduced]), "no_such_name", "Plain", "",
            "a.b", "OfMeta.Inner",
            objects.Str("SINGLETON"), objects.Tuple((objects.make, ())), (lambda: 1, ()), (objects.missing, ()),
            (objects.make, (objects.missing,)), (objects.make, (), objects.missing), (objects.make, (), None,
            [objects.missing]),
            (objects.make, (), None, None, [(1, objects.missing)]), (objects.make, (), 1, None, None, objects.missing),
            (__newobj__, (objects.Reduced,)), (objects.make, objects.Tuple((1, 2))),
        ]  # fmt: skip
        assert len(values) == 46
        value = values[wrong]
        for cls in (None, hooked.SUBCLASSES["records save"]):
            self.check_made(lambda: objects.Reduced(value), cls=cls)
            self.check_made(lambda: [1, {"k": (objects.Reduced(value), 2)}], cls=cls)
            self.check_made(lambda: objects.Plain(a=objects.Reduced(value)), cls=cls, protocols=(2, 4))
        if isinstance(value, (tuple, str)):

            def subclass(base: Any, run: Run) -> Any:
                return type(
                    "P", (base,), {"reducer_override": lambda self, obj: value if type(obj) is set else NotImplemented}
                )

            self.check_made(lambda: [1, {2}, "after"], cls=subclass)

    def test_unpicklable(self) -> None:
        """Objects that have no pickle."""

        class Local:
            pass

        class NoReduce:
            __reduce_ex__ = None

        class NeitherReduce:
            __reduce_ex__ = None
            __reduce__ = None

        class Raising:
            @property
            def __reduce_ex__(self) -> Any:  # noqa: PLE0302
                raise AttributeError("hidden")

            def __reduce__(self) -> Any:
                return objects.make, ("by __reduce__",)

        class BadState:
            def __getstate__(self) -> Any:
                raise LookupError("no state")

        for bad in (BadState, NoReduce, NeitherReduce, Raising):
            bad.__qualname__ = "Plain"
            bad.__module__ = objects.__name__
        generator = (x for x in ())
        for bad in (
            Local(), Local, lambda: 1, generator, io.StringIO, open, NoReduce(), NeitherReduce(), Raising(),
            BadState(), objects.missing,
            objects.renamed, objects.__dict__["misnamed"], memoryview(b"x"), type("Plain", (), {}), slice(1, 2),
            objects,
            (lambda: 1).__code__, object(), super(), {}.keys(), iter([1]), map(len, []), property(),
            classmethod(len), type(generator),
            type(Local.__dict__), objects.WithPrivate.__dict__, io.BytesIO(b"x"), NotImplemented, ...,
        ):  # fmt: skip
            self.check_object(bad)
            self.check_object([1, {"k": (bad,)}, objects.Plain(a=bad)])

    def test_replaced_functions(self) -> None:
        """Names that lead to something else by now."""
        original = objects.function

        def other() -> None:
            pass

        objects.function = other
        try:
            self.check_object([1, original])
            self.check_object({"a": original})
        finally:
            objects.function = original
        self.check_object(original)

    @pytest.mark.parametrize("place", PLACES)
    def test_install_in_the_middle(self, place: str) -> None:
        """The stock class is accelerated, or no more, in the middle of a dump."""

        def within() -> None:
            with fastpickle.patched():
                pickle._dumps([1, [2]])  # type: ignore[attr-defined]

        def flip() -> None:
            if fastpickle.is_installed():
                fastpickle.uninstall()
            else:
                fastpickle.install()

        for act in (fastpickle.install, fastpickle.uninstall, within, flip):
            for start_installed in (False, True):

                def steps(run: Run) -> None:
                    is_ours = run.implementation is self.ours
                    try:
                        if is_ours and start_installed:
                            fastpickle.install()
                        run.pickler.dump(
                            PLACES[place](
                                objects.Acting(act if is_ours else int, 550),
                                [small(), objects.Acting(act if is_ours else int)],
                            )
                        )
                        run.pickler.dump(small())
                    finally:
                        fastpickle.uninstall()

                for cls in ("nothing of its own", "records save", "records memoize"):
                    self.check(
                        steps, protocols=self.some(place, act, start_installed, cls, n=1), cls=hooked.SUBCLASSES[cls]
                    )


def _gives_much(self: object) -> tuple[Any, ...]:
    return objects.make, ([[str(i)] for i in range(300)],)


def _raise() -> None:
    raise LookupError("from inside")


def _yield_and_raise(n: int) -> Iterator[Any]:
    for i in range(n):
        yield (i, i)
    raise LookupError("from the iterator")


def _saving(run: Run) -> Iterator[Any]:
    """Save things by itself between the items."""
    yield 1
    run.pickler.save([1, (2,)])
    yield [3]
    run.pickler.save("text")


def _with_own_dispatch(base: Any, run: Run) -> Any:
    class P(base):
        dispatch = base.dispatch.copy()

    return P


def _as_plain(self: object, protocol: int) -> Any:
    """Say, as a reduce, that an object is a plain one."""
    return copyreg.__newobj__, (objects.Plain,), {"a": [1, (2,)]}  # type: ignore[attr-defined]  # no stub


def _acting_by(how: str, act: Action, run: Run) -> Any:
    """Return an object for which `act` is called once in the middle of a dump, in the way that is named."""
    called: list[int] = []

    def once() -> None:
        if not called:
            called.append(1)
            act()

    if how == "__getstate__":
        return objects.ActingState(once)
    if how == "iterator":

        def items() -> Iterator[Any]:
            yield 1
            once()
            yield [2]

        return objects.Reduced(lambda self: (list, (), [3], items()))
    if how == "items":  # an iterable whose __iter__ acts

        class Items(list[Any]):
            def __iter__(self) -> Iterator[Any]:
                once()
                return super().__iter__()

        return objects.Reduced(lambda self: (list, (), [3], Items([1, [2]])))
    if how == "pairs":  # a subclass of dict that is asked for its items by its reduce

        class Pairs(dict[Any, Any]):
            def items(self) -> Any:
                once()
                return super().items()

        Pairs.__qualname__, Pairs.__module__ = "Dict", objects.__name__
        return Pairs({"a": [1]})
    if how == "__class__":  # which stock asks for what __newobj__ makes

        class ByClass:
            @property
            def __class__(self) -> Any:
                once()
                return objects.Plain

            __reduce_ex__ = _as_plain

        return ByClass()
    if how == "__getattribute__":

        class ByGetattribute:
            def __getattribute__(self, name: str) -> Any:
                if name == "__class__":
                    once()
                    return objects.Plain
                return object.__getattribute__(self, name)

            __reduce_ex__ = _as_plain

        return ByGetattribute()
    if how == "__reduce_ex__":

        class ByReduceEx:
            def __reduce_ex__(self, protocol: int) -> Any:
                once()
                return objects.make, (protocol, [1])

        return ByReduceEx()
    if how == "copyreg":
        run.pickler.dispatch_table = {objects.Viaduct: lambda obj: (once(), objects.reduce_viaduct(obj))[1]}
        return objects.Viaduct([1])
    if how in ("table", "table, C"):  # which finds nothing for what is asked

        class Table(dict[Any, Any]):
            def get(self, key: Any, default: Any = None) -> Any:
                once()
                return super().get(key, default)

        run.pickler.dispatch_table = Table()
        return slice(1, 2) if how == "table, C" else objects.Plain(a=[1, (2,)])
    if how == "hash":  # looked up in a table that hashes the class

        class Meta(type):
            def __hash__(cls) -> int:
                once()
                return 7

        class WithMeta(metaclass=Meta):
            def __reduce__(self) -> Any:
                return objects.make, ()

        return WithMeta()
    if how == "name":  # a function that is asked for its __name__, a class that is asked for its __qualname__

        class Named:
            def __call__(self) -> None:
                pass

            @property
            def __name__(self) -> str:
                once()
                return "name"

            def __reduce__(self) -> str:
                return "function"

        named = Named()
        return objects.Reduced((named, (1,)))
    if how == "property":

        class ByProperty:
            @property
            def __reduce_ex__(self) -> Any:  # noqa: PLE0302
                once()
                return lambda protocol: (objects.make, (1,))

        return ByProperty()
    if how == "pid":
        old = run.pickler.persistent_id
        run.pickler.persistent_id = lambda obj: (once() if type(obj) is complex else None, old(obj))[1]
        return 1j
    if how == "__reduce_ex__, late":  # after it has used the pickler itself

        class Late:
            def __reduce_ex__(self, protocol: int) -> Any:
                run.pickler.save([1, "late"])
                run.pickler.write(pickle.POP)
                once()
                return objects.make, (protocol, [1])

        return Late()

    def save_complex(pickler: Any, obj: Any) -> None:
        if how == "dispatch":
            once()
        pickler.save([1, "by dispatch"])
        if how == "dispatch, late":
            once()

    run.pickler.dispatch = {**run.pickler.dispatch, complex: save_complex}
    return 1j
