"""The abstract suite of hooks: what a subclass or an instance overrides is asked what the oracle asks, in that order.

Every hook of `hooked` is tried on every graph of `samples`, at every protocol.

Not for: hooks that are set, and objects that are changed, in the middle of a dump (`suite_evil`).
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest

from . import hooked, objects, samples
from .allowed import PYPY
from .compare import ALL, PythonFile, Run
from .parts import APartOf
from .suite_values import Suite

#: Used where every pair of a hook and something else is tried: all kinds, in few objects.
_MIXTURE = ("nested", "shared", "cyclic tuples", "recursive arguments", "instances", "reduces", "names", "subclasses")


#: Endless where nothing is memoized: stock raises RecursionError, after which nothing is compared.
_ENDLESS = frozenset(
    name for name in samples.SAMPLES if name.startswith(("cyclic", "recursive", "by default", "reduces"))
)


def is_left_out(hook: str, name: str) -> bool:
    """Tell whether a sample shows nothing with a hook: on PyPy the end of the stack is where the JIT has put it."""
    return PYPY and hook.startswith("fast") and name in _ENDLESS


def mixture() -> Any:
    """One object with a bit of everything."""
    return [samples.SAMPLES[name]() for name in _MIXTURE]


def small() -> Any:
    """One small object with most kinds."""
    return [
        1, 255, 256, "text", "a", (1, "text"), [1, 2, 3], [4, 5], {"a": 1}, {1: (2, 3), "k": [1]}, {1, 2},
        frozenset((1, 2)), 2.5,
        None, True, b"b", objects.Plain(a=[1], text="text"), objects.Slotted(1, 2), objects.Plain, objects.List([1, 2]),
        objects.Dict(a=1), objects.Viaduct(1), 1j, objects.function, objects.Colour.RED, "text", bytearray(b"c"),
        2**40, "",
    ]  # fmt: skip


class HookSuite(Suite):
    """Every hook, on a subclass and on the instance."""

    @pytest.mark.parametrize("hook", hooked.SUBCLASSES)
    def test_subclass(self, hook: str) -> None:
        """A subclass that overrides something."""
        for name, make in samples.SAMPLES.items():
            if not is_left_out(hook, name):
                protocols = samples.where_it_ends(name, self.some(hook, name))
                self.check_made(make, cls=hooked.SUBCLASSES[hook], protocols=protocols, case=name)

    @pytest.mark.parametrize("hook", hooked.ON_INSTANCE)
    def test_instance(self, hook: str) -> None:
        """Something is set on the instance before the dump."""
        for name, make in samples.SAMPLES.items():
            if is_left_out(hook, name):
                continue

            def steps(run: Run) -> None:
                hooked.ON_INSTANCE[hook](run, run.pickler)
                run.pickler.dump(make())

            self.check(steps, protocols=samples.where_it_ends(name, self.some(hook, name)), case=name)

    @pytest.mark.parametrize("hook", hooked.ON_INSTANCE)
    def test_instance_of_subclass(self, hook: str) -> None:
        """The same on an instance of a subclass with hooks of its own, for a file written in Python."""

        def steps(run: Run) -> None:
            hooked.ON_INSTANCE[hook](run, run.pickler)
            run.pickler.dump(small())

        for subclass in (
            "nothing of its own",
            "persistent_id",
            "records memoize",
            "records save",
            "dispatch entry of list",
        ):
            how = {"cls": hooked.SUBCLASSES[subclass], "file": lambda run: PythonFile()}
            self.check(steps, **how, protocols=self.some(hook, subclass), case=subclass)

    @pytest.mark.parametrize("hook", hooked.ON_INSTANCE)
    def test_between_dumps(self, hook: str) -> None:
        """The hook is set between two dumps of one pickler, and its memo is kept."""

        def steps(run: Run) -> None:
            obj = [small(), mixture()]
            run.pickler.dump(obj)
            hooked.ON_INSTANCE[hook](run, run.pickler)
            run.pickler.dump([obj, obj[0], "new"])
            run.pickler.dump(small())

        self.check(steps, protocols=self.some(hook))

    @pytest.mark.parametrize("second", hooked.ON_INSTANCE)
    def test_two_on_instance(self, second: str) -> None:
        """Two hooks together."""
        for first in ("memoize that records", "persistent_id", "dispatch", "fast", "reducer_override"):

            def steps(run: Run) -> None:
                hooked.ON_INSTANCE[first](run, run.pickler)
                hooked.ON_INSTANCE[second](run, run.pickler)
                run.pickler.dump(small())

            self.check(steps, protocols=self.some(first, second), case=first)

    def test_calls_of_hooks(self, a_part_of: APartOf) -> None:
        """All hooks record their calls; only `reducer_override` may be asked less often, and only about atoms."""
        for name, make in a_part_of(samples.SAMPLES.items()):
            protocols = samples.where_it_ends(name, ALL)
            self.check_made(make, cls=hooked.SUBCLASSES["records everything"], protocols=protocols)

    def test_reducer_override_is_not_asked_about_atoms(self) -> None:
        """It is asked about all else, also about instances of subclasses of atoms."""
        for protocol in ALL:
            asked: list[object] = []

            class P(self.ours.base):  # type: ignore[name-defined, misc]
                def reducer_override(self, obj: Any) -> Any:
                    asked.append(obj)
                    return NotImplemented

            with self.ours.context():
                P(io.BytesIO(), protocol).dump([None, True, 1, 1.5, "a", b"b", (2,), objects.Int(3), {4}])
            types = {type(x) for x in asked}
            assert types >= {list, tuple, objects.Int, set}
            assert PYPY or not types & {type(None), bool, int, float, str, bytes}

    def test_reducer_override_is_none(self) -> None:
        """On the class, on the instance, and set in the middle of a dump: an error from 3.13 on."""

        def subclass(base: Any, run: Run) -> Any:
            return type("P", (base,), {"reducer_override": None})

        def steps(run: Run) -> None:
            run.pickler.reducer_override = None
            run.pickler.dump([1, [2]])

        def late(run: Run) -> None:
            run.pickler.dump([1, objects.Acting(lambda: setattr(run.pickler, "reducer_override", None)), [2]])

        self.check_made(small, cls=subclass)
        self.check(steps)
        self.check(late)

    def test_dispatch_changed_in_place(self) -> None:
        """An entry of a table that is in use is changed, used, and put back."""
        for t in hooked.DISPATCHED:

            def marked(pickler: Any, obj: Any) -> None:
                pickler.write(pickle.NONE)

            tables = {id(table): table for table in (self.oracle.base.dispatch, self.ours.base.dispatch)}.values()
            for change in ("replaced", "deleted"):
                originals = [table[t] for table in tables]
                try:
                    for table in tables:
                        if change == "replaced":
                            table[t] = marked
                        else:
                            del table[t]
                    self.check_made(small, protocols=self.some(t, change))
                    self.check_made(
                        samples.nested, protocols=self.some(t, change), cls=hooked.SUBCLASSES["records memoize"]
                    )
                finally:
                    for table, original in zip(tables, originals, strict=False):
                        table[t] = original
            self.check_made(small)

    def test_methods_of_the_class_are_replaced(self) -> None:
        """A subclass gets a method after it was used, and loses it again."""

        def steps(run: Run) -> None:
            run.pickler.dump(small())
            cls = type(run.pickler)
            for name in (
                "memoize",
                "persistent_id",
                "save",
                "put",
                "get",
                "save_reduce",
                "_batch_appends",
                "_batch_setitems",
            ):
                setattr(cls, name, vars(hooked.recording(cls.__base__, run, (name,)))[name].__get__(None, cls))
                if name in ("memoize", "save", "put", "get", "save_reduce", "_batch_appends", "_batch_setitems"):
                    original = getattr(cls.__base__, name)
                    setattr(
                        cls, name, lambda self, *a, f=original, n=name, **k: (run.record(n, a[0]), f(self, *a, **k))[1]
                    )
                run.pickler.dump(small())
                delattr(cls, name)
                run.pickler.dump(small())

        self.check(steps, cls=hooked.SUBCLASSES["nothing of its own"])

    def test_init_was_not_called(self) -> None:
        """A pickler without its attributes."""

        class Lazy:
            def __init__(self, *args: Any) -> None:
                pass

        def subclass(base: Any, run: Run) -> Any:
            return type("P", (Lazy, base), {})

        self.check(lambda run: run.pickler.dump([1]), cls=subclass, fails=True)
        self.check(lambda run: run.pickler.save([1]), cls=subclass, fails=True)
        self.check(lambda run: run.pickler.save([1], save_persistent_id=False), cls=subclass, fails=True)

    def test_init_is_called_again(self) -> None:
        """With another protocol and file, between dumps."""

        def steps(run: Run) -> None:
            run.pickler.dump(small())
            run.pickler.__init__(run.file, 2)
            run.pickler.dump(small())
            run.pickler.__init__(run.file, run.protocol)
            run.pickler.dump([small(), small()])

        self.check(steps)

    def test_several_dumps(self) -> None:
        """One pickler, several dumps: the memo is kept, until it is cleared."""

        def steps(run: Run) -> None:
            obj = [samples.nested(), samples.instances()]
            for part in (obj, obj[0], [*obj], "x" * 70_000, 5, obj):
                run.pickler.dump(part)
            run.pickler.clear_memo()
            run.pickler.dump(obj)
            run.pickler.fast = True
            run.pickler.dump(samples.nested())
            run.pickler.fast = False
            run.pickler.dump(samples.nested())

        self.check(steps)
        self.check(steps, cls=hooked.SUBCLASSES["records save"])

    def test_dump_after_an_error(self) -> None:
        """A pickler whose dump has failed somewhere inside."""

        def steps(run: Run) -> None:
            obj = [1, {"a": [2, "text", objects.Plain(b=(3, objects.missing, 4))]}]
            for bad in (obj, (1, [objects.missing]), {objects.missing: 1}, objects.List([objects.missing])):
                with pytest.raises(Exception):  # noqa: B017  # whatever it is
                    run.pickler.dump(bad)
            run.pickler.dump([obj[0], "text", [5]])

        objects_missing = objects.missing
        for implementation in (self.oracle, self.ours):
            if "dill" in implementation.name:
                pytest.skip("dill pickles it by value")
        assert objects_missing
        self.check(steps)

    def test_methods_called_by_hand(self) -> None:
        """`save`, `memoize`, `save_reduce` and others, without dump() and in its middle."""

        def steps(run: Run) -> None:
            pickler = run.pickler
            pickler.write(pickle.MARK)
            for obj in (1, "text", [1, [2]], (1, 2), {"a": (3,)}, objects.Plain(a=1), {1}, 2**40, 1.5):
                pickler.save(obj)
                pickler.save(obj, save_persistent_id=False)
            key = ["key"]
            pickler.memoize(key)
            pickler.save(key)
            pickler.save_reduce(objects.make, (1, [2]), obj=objects.Plain())
            pickler.save_reduce(objects.make, (1, [2]))
            pickler.save_reduce(list, (), None, iter((1, 2)))
            pickler.save_list([1, 2])
            pickler.save_dict({1: [2]})
            pickler.save_tuple((1, (2,)))
            pickler.save_str("by hand")
            pickler.save_global(objects.Plain)
            pickler.save_pers("id" if run.protocol == 0 else ["id"])
            pickler.dump([key])

        self.check(steps)
        self.check(steps, cls=hooked.SUBCLASSES["persistent_id"])
        self.check(steps, cls=hooked.SUBCLASSES["records save"])

    def test_batch_methods_called_by_hand(self) -> None:
        """`_batch_appends` and `_batch_setitems`, with the parameters of the running Python."""

        def steps(run: Run) -> None:
            n = pickle._Pickler._batch_appends.__code__.co_argcount - 2  # type: ignore[attr-defined]
            for size in (0, 1, 2, 999, 1000, 1001):
                items = [*range(size)]
                run.pickler._batch_appends(iter(items), *([items] * n))
                run.pickler._batch_setitems(((i, [i]) for i in items), *([items] * n))

        self.check(steps, cls=hooked.SUBCLASSES["nothing of its own"])
        self.check(steps, cls=hooked.SUBCLASSES["records memoize"])

    def test_constructor(self) -> None:
        """Errors of the constructor."""
        for protocol in (-1, None, pickle.HIGHEST_PROTOCOL, pickle.HIGHEST_PROTOCOL + 1, 99, "2", 2.0, True):

            def steps(run: Run) -> None:
                file = io.BytesIO()
                run.implementation.base(file, protocol).dump([1, "a", objects.Plain()])
                run.file.write(file.getvalue())

            self.check(steps, protocols=(4,))

        for wrong in (None, 5, object()):
            self.check(lambda run: run.implementation.base(wrong, 4), protocols=(4,), fails=True)
        self.check(
            lambda run: run.implementation.base(io.BytesIO(), 4, buffer_callback=len), protocols=(4,), fails=True
        )
