"""What a subclass, an instance, or code that runs in the middle of a dump may do to a pickler.

    SUBCLASSES   name -> (base, run) -> a subclass
    ON_INSTANCE  name -> (run, pickler) -> None    sets something on the instance; also used in the middle of a dump

Hooks write down what they were asked about (`Run.record`), so that a call that did not take place is seen even where
it would have changed nothing.

Not for: comparing anything.
"""

from __future__ import annotations

import collections
import copyreg
import io
import pickle
import types
from collections.abc import Callable
from typing import Any

from . import objects
from .compare import Run, describe

Subclass = Callable[[Any, Run], Any]
OnInstance = Callable[[Run, Any], Any]

SUBCLASSES: dict[str, Subclass] = {}
ON_INSTANCE: dict[str, OnInstance] = {}


def _subclass(name: str) -> Callable[[Subclass], Subclass]:
    def add(function: Subclass) -> Subclass:
        assert name not in SUBCLASSES
        SUBCLASSES[name] = function
        return function

    return add


def _on_instance(name: str) -> Callable[[OnInstance], OnInstance]:
    def add(function: OnInstance) -> OnInstance:
        assert name not in ON_INSTANCE
        ON_INSTANCE[name] = function
        return function

    return add


# Overrides that only look: one for each method, and one for all of them together.

#: Methods that are given the object first.
_ABOUT_OBJECT = (
    "memoize", "persistent_id", "save_pers", "save_reduce", "save_global", "_batch_appends", "_batch_setitems",
    "save_none",
    "save_bool", "save_long", "save_float", "save_bytes", "save_bytearray", "save_picklebuffer", "save_str",
    "save_tuple",
    "save_list", "save_dict", "save_set", "save_frozenset", "save_type", "get", "put",
)  # fmt: skip


def recording(base: Any, run: Run, names: tuple[str, ...]) -> Any:
    """Return a subclass that records the calls of some methods, and calls the base's."""

    def override(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            run.record(name, args[0], len(args), sorted(kwargs))
            return getattr(super(cls, self), name)(*args, **kwargs)

        return method

    def reducer_override(self: Any, obj: Any) -> Any:
        run.record("reducer_override", obj)
        above = getattr(super(cls, self), "reducer_override", None)
        return NotImplemented if above is None else above(obj)

    body: dict[str, Any] = {name: override(name) for name in names if name != "reducer_override"}
    if "reducer_override" in names:
        body["reducer_override"] = reducer_override
    cls: Any = type("P", (base,), body)
    return cls


for _name in _ABOUT_OBJECT:
    _subclass(f"records {_name}")(lambda base, run, name=_name: recording(base, run, (name,)))
_subclass("records save")(lambda base, run: recording(base, run, ("save",)))
_subclass("records reducer_override")(lambda base, run: recording(base, run, ("reducer_override",)))
_subclass("records everything")(lambda base, run: recording(base, run, (*_ABOUT_OBJECT, "save", "reducer_override")))


@_subclass("records save(self, obj) with one parameter")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def save(self, obj):
            run.record("save", obj)
            super().save(obj)

    return P


@_subclass("nothing of its own")
def _(base: Any, run: Run) -> Any:
    class P(base):
        pass

    return P


@_subclass("a subclass of a subclass that calls by name")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def save(self, obj, save_persistent_id=True):
            run.record("save", obj)
            return base.save(self, obj, save_persistent_id)

    class Q(P):
        def save(self, obj, save_persistent_id=True):
            return P.save(self, obj, save_persistent_id=save_persistent_id)

    return Q


class OfInstances:
    """A property that raises, if the class is asked for it."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self.get = get

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        if obj is None:
            raise ValueError("it is for instances")
        return self.get(obj)


class Strange:
    """Stands for a method of a class, and is no function.

    Args:
        run: records the calls.
        name: the method's name.
        method: what is called.
        error: what is raised if the class is asked for it, as by a property of instances; None for no error.
    """

    __hash__ = None  # type: ignore[assignment]  # nor can it be looked up in a set

    def __init__(self, run: Run, name: str, method: Any, error: type[Exception] | None = None) -> None:
        self.run = run
        self.name = name
        self.method = method
        self.error = error

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        if obj is not None:
            return types.MethodType(self, obj)
        if self.error is not None:
            raise self.error("it is for instances")
        return self

    def __call__(self, pickler: Any, *args: Any, **kwargs: Any) -> Any:
        self.run.record(self.name, args[0])
        return self.method(pickler, *args, **kwargs)


#: Which of stock's methods are tried so.
STRANGE = ("save", "memoize", "persistent_id", "put", "get", "save_reduce", "save_global", "_batch_setitems")


def strange(base: Any, run: Run, name: str, error: type[Exception] | None = None) -> Any:
    """Return a subclass one of whose methods is `Strange`."""
    return type("P", (base,), {name: Strange(run, name, getattr(base, name), error)})


for _name in STRANGE:
    _subclass(f"{_name} has no hash")(lambda base, run, name=_name: strange(base, run, name))
    _subclass(f"{_name} is for instances")(lambda base, run, name=_name: strange(base, run, name, ValueError))


# Overrides that change what is written.


@_subclass("save() replaces ints and some containers")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def save(self, obj, save_persistent_id=True):
            if type(obj) is int and obj > 200:
                obj = str(obj)
            elif type(obj) is tuple and len(obj) == 2:
                obj = [*obj]
                run.kept.setdefault("alive", []).append(obj)
            return super().save(obj, save_persistent_id)

    return P


@_subclass("save() wraps instances as joblib does")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def save(self, obj):
            if isinstance(obj, (types.BuiltinMethodType, types.MethodType)):
                obj = ("method", obj.__name__)
                run.kept.setdefault("alive", []).append(obj)
            base.save(self, obj)

        def memoize(self, obj):
            if isinstance(obj, (bytes, str)):
                return
            super().memoize(obj)

        def _batch_setitems(self, items, *args):
            super()._batch_setitems(iter(sorted(items, key=lambda item: describe(item[0]))), *args)

    return P


@_subclass("save() goes on after an exception")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def save(self, obj, save_persistent_id=True):
            try:
                super().save(obj, save_persistent_id)
            except RecursionError:  # where it comes is one of the allowed differences
                raise
            except Exception as exc:
                run.record("failed", obj, type(exc).__name__)
                super().save("instead")

    return P


@_subclass("memoize skips str")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def memoize(self, obj):
            if type(obj) is not str:
                super().memoize(obj)

    return P


@_subclass("memoize counts and numbers by tens")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def memoize(self, obj):
            index = 10 * len(self.memo)
            self.write(self.put(index))
            self.memo[id(obj)] = index, obj

    return P


@_subclass("put writes something else")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def put(self, idx, *args):
            return super().put(idx, *args) + pickle.DUP + pickle.POP

    return P


@_subclass("get writes something else")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def get(self, i):
            return super().get(i) + pickle.DUP + pickle.POP

    return P


def _pid_of(obj: Any) -> Any:
    """Ids for some atoms, containers, keys and instances; an id may itself be a container."""
    if type(obj) is int and obj in (1, 255):
        return f"int {obj}"
    if type(obj) is str and obj in ("text", "a"):
        return 5
    if type(obj) is tuple and len(obj) == 2:
        return ["pair", 1, "text"]
    if type(obj) is list and len(obj) == 3:
        return 1
    if type(obj) is objects.Slotted:
        return "\xe9"
    return None


@_subclass("persistent_id")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def persistent_id(self, obj):
            run.record("persistent_id", obj)
            return _pid_of(obj)

    return P


@_subclass("persistent_id as a staticmethod")
def _(base: Any, run: Run) -> Any:
    class P(base):
        @staticmethod
        def persistent_id(obj):
            run.record("persistent_id", obj)
            return _pid_of(obj)

    return P


@_subclass("persistent_id as a classmethod")
def _(base: Any, run: Run) -> Any:
    class P(base):
        @classmethod
        def persistent_id(cls, obj):
            run.record("persistent_id", obj)
            return _pid_of(obj)

    return P


@_subclass("persistent_id as a property")
def _(base: Any, run: Run) -> Any:
    class P(base):
        persistent_id = property(lambda self: lambda obj: _pid_of(obj))

    return P


@_subclass("persistent_id raises")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def persistent_id(self, obj):
            if type(obj) is str and obj.startswith("t"):
                raise LookupError("no id")

    return P


@_subclass("persistent_id that is None")
def _(base: Any, run: Run) -> Any:
    class P(base):
        persistent_id = None

    return P


@_subclass("save_pers")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def persistent_id(self, obj):
            return _pid_of(obj)

        def save_pers(self, pid):
            run.record("save_pers", pid)
            self.save(("pid", 1), save_persistent_id=False)

    return P


def _reduction_of(obj: Any) -> Any:
    t = type(obj)
    if t is list and len(obj) == 2:
        return objects.make, (1, "text"), None, iter(obj)
    if t is dict and len(obj) == 1:
        return objects.make, (), {"items": [*obj.items()]}
    if t is tuple and len(obj) == 2:
        return objects.make, ("pair", obj[0])
    if t in (set, frozenset) and len(obj) == 2:
        return objects.make, (sorted(map(describe, obj)),)
    if t is type and obj is objects.Plain:
        return "Other"
    if t is objects.Slotted:
        return "SINGLETON"
    return NotImplemented


@_subclass("reducer_override")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def reducer_override(self, obj):
            run.record("reducer_override", obj)
            return _reduction_of(obj)

    return P


@_subclass("reducer_override as a staticmethod")
def _(base: Any, run: Run) -> Any:
    class P(base):
        reducer_override = staticmethod(_reduction_of)

    return P


@_subclass("reducer_override raises")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def reducer_override(self, obj):
            if type(obj) is tuple:
                raise LookupError("no reduction")
            return NotImplemented

    return P


@_subclass("reducer_override returns nonsense")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def reducer_override(self, obj):
            return [1] if type(obj) is dict else (1,) if type(obj) is tuple else NotImplemented

    return P


def _reduce_text(obj: Any) -> Any:
    return objects.make, ("by the table", type(obj).__name__)


_TABLE: dict[Any, Any] = {
    objects.Viaduct: objects.reduce_viaduct,
    objects.Plain: _reduce_text,
    objects.Meta: _reduce_text,
    list: _reduce_text,  # not asked: list has a dispatch entry
    complex: _reduce_text,
    objects.Colour: lambda obj: "SINGLETON",
    objects.Slotted: lambda obj: objects.Slotted.__reduce_ex__(obj, 2),
}


@_subclass("dispatch_table on the class")
def _(base: Any, run: Run) -> Any:
    class P(base):
        dispatch_table = _TABLE

    return P


@_subclass("dispatch_table is a ChainMap")
def _(base: Any, run: Run) -> Any:
    class P(base):
        dispatch_table = collections.ChainMap(_TABLE, copyreg.dispatch_table)

    return P


@_subclass("dispatch_table is for instances")
def _(base: Any, run: Run) -> Any:
    return type("P", (base,), {"dispatch_table": OfInstances(lambda pickler: _TABLE)})


@_subclass("dispatch_table is a property")
def _(base: Any, run: Run) -> Any:
    class P(base):
        @property
        def dispatch_table(self):
            run.record("dispatch_table", None)
            return _TABLE

    return P


def _save_marked(run: Run) -> Any:
    def save_marked(self: Any, obj: Any) -> None:
        run.record("dispatched", obj)
        self.save(f"marked {type(obj).__name__}")

    return save_marked


def _with_entry(t: Any) -> Subclass:
    def make(base: Any, run: Run) -> Any:
        class P(base):
            dispatch = base.dispatch.copy()

        if t is str:
            P.dispatch[t] = lambda self, obj: (run.record("dispatched", obj), self.write(pickle.NONE))
        else:
            P.dispatch[t] = _save_marked(run)
        return P

    return make


def _without_entry(t: Any) -> Subclass:
    def make(base: Any, run: Run) -> Any:
        class P(base):
            dispatch = base.dispatch.copy()

        P.dispatch.pop(t, None)
        return P

    return make


DISPATCHED = (type(None), bool, int, float, str, bytes, bytearray, list, tuple, dict, set, frozenset)

for _t in DISPATCHED:
    _subclass(f"dispatch entry of {_t.__name__}")(_with_entry(_t))
    _subclass(f"no dispatch entry of {_t.__name__}")(_without_entry(_t))
for _t in (objects.Plain, objects.Slotted, complex, types.FunctionType, type):
    _subclass(f"dispatch entry of {_t.__name__}")(_with_entry(_t))


@_subclass("dispatch is empty")
def _(base: Any, run: Run) -> Any:
    class P(base):
        dispatch = {}

    return P


@_subclass("dispatch is no dict")
def _(base: Any, run: Run) -> Any:
    class P(base):
        dispatch = collections.ChainMap({}, base.dispatch)

    return P


@_subclass("dispatch entries swapped")
def _(base: Any, run: Run) -> Any:
    class P(base):
        dispatch = base.dispatch.copy()

    P.dispatch[int], P.dispatch[bool] = P.dispatch[bool], P.dispatch[int]
    P.dispatch[objects.List] = P.dispatch[list]
    P.dispatch[objects.Dict] = P.dispatch[dict]
    P.dispatch[objects.Str] = P.dispatch[str]
    P.dispatch[objects.Int] = P.dispatch[int]
    return P


@_subclass("dispatch entries of others that use the builtins' functions")
def _(base: Any, run: Run) -> Any:
    class P(base):
        dispatch = base.dispatch.copy()

    for t in (
        objects.List,
        objects.Dict,
        objects.Tuple,
        objects.Set,
        objects.Str,
        objects.Int,
        objects.Float,
        objects.Bytes,
    ):
        P.dispatch[t] = P.dispatch[t.__base__]
    return P


@_subclass("_BATCHSIZE")
def _(base: Any, run: Run) -> Any:
    class P(base):
        _BATCHSIZE = 3

    return P


@_subclass("_batch_appends writes in pairs")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def _batch_appends(self, items, *args):
            items = [*items]
            run.record("_batch_appends", items, len(args))
            for i in range(0, len(items), 2):
                super()._batch_appends(items[i : i + 2], *args)

    return P


@_subclass("_batch_setitems sorts")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def _batch_setitems(self, items, *args):
            super()._batch_setitems(sorted(items, key=lambda item: describe(item[0])), *args)

    return P


@_subclass("save_reduce changes the state")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def save_reduce(self, func, args, state=None, *rest, obj=None, **kwargs):
            run.record("save_reduce", func, len(args), type(state).__name__)
            super().save_reduce(func, args, state and ("changed", state), *rest, obj=obj, **kwargs)

    return P


@_subclass("save_global gives another name")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def save_global(self, obj, name=None):
            run.record("save_global", obj, name)
            super().save_global(obj, "Other" if obj is objects.Plain else name)

        dispatch = {**base.dispatch, type: save_global}

    return P


@_subclass("save_list and its entry")
def _(base: Any, run: Run) -> Any:
    class P(base):
        dispatch = base.dispatch.copy()

        def save_list(self, obj):
            run.record("save_list", obj)
            super().save_list(obj)

        dispatch[list] = save_list

    return P


@_subclass("__getattr__")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def __getattr__(self, name):
            if name not in ("_trace_depth", "_session", "_fastpickle_plan", "reducer_override"):
                run.record("__getattr__", name)
            raise AttributeError(name)

    return P


@_subclass("__getattr__ gives a reducer_override")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def __getattr__(self, name):
            if name == "reducer_override":
                return _reduction_of
            raise AttributeError(name)

    return P


@_subclass("__getattribute__")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def __getattribute__(self, name):
            if name == "memoize":
                run.record("__getattribute__", name)
            return super().__getattribute__(name)

    return P


@_subclass("__getattribute__ gives a persistent_id")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def __getattribute__(self, name):
            return _pid_of if name == "persistent_id" else super().__getattribute__(name)

    return P


@_subclass("__setattr__")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def __setattr__(self, name, value):
            run.record("__setattr__", name)
            super().__setattr__(name, value)

    return P


@_subclass("__setattr__ and __delattr__ refuse what is not known")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def __setattr__(self, name, value):
            if name == "_fastpickle_plan":
                raise AttributeError(name)
            super().__setattr__(name, value)

        def __delattr__(self, name):
            raise AttributeError(name)

    return P


@_subclass("__slots__")
def _(base: Any, run: Run) -> Any:
    class P(base):
        __slots__ = ("reducer_override",)

        def __init__(self, *args, **kwargs):
            self.reducer_override = _reduction_of
            super().__init__(*args, **kwargs)

    return P


@_subclass("__slots__ for a persistent_id")
def _(base: Any, run: Run) -> Any:
    class P(base):
        __slots__ = ("persistent_id",)

        def __init__(self, *args, **kwargs):
            self.persistent_id = _pid_of
            super().__init__(*args, **kwargs)

    return P


@_subclass("empty __slots__")
def _(base: Any, run: Run) -> Any:
    class P(base):
        __slots__ = ()

    return P


@_subclass("__eq__, __hash__ and __bool__")
def _(base: Any, run: Run) -> Any:
    class P(base):
        __hash__ = None

        def __eq__(self, other):
            raise AssertionError("compared")

        def __bool__(self):
            raise AssertionError("asked whether it is true")

    return P


@_subclass("dump is overridden")
def _(base: Any, run: Run) -> Any:
    class P(base):
        def dump(self, obj):
            super().dump(("dumped", obj))

    return P


@_subclass("memo is a property")
def _(base: Any, run: Run) -> Any:
    class P(base):
        @property
        def memo(self):
            return self.kept_memo

        @memo.setter
        def memo(self, value):
            self.kept_memo = value

    return P


@_subclass("write is a method")
def _(base: Any, run: Run) -> Any:
    class P(base):
        @property
        def write(self):
            return self.writing

        @write.setter
        def write(self, value):
            self.writing = lambda data: (run.record("write", data), value(data))

    return P


@_subclass("fast is a property")
def _(base: Any, run: Run) -> Any:
    class P(base):
        fast = property(lambda self: 1, lambda self, value: None)

    return P


@_subclass("two of them mixed")
def _(base: Any, run: Run) -> Any:
    class Mixin:
        def persistent_id(self, obj):
            return _pid_of(obj)

        def memoize(self, obj):
            run.record("memoize", obj)
            super().memoize(obj)

    class P(Mixin, base):
        pass

    return P


# What may be set on an instance, before a dump or in the middle of one.


@_on_instance("persistent_id")
def _(run: Run, pickler: Any) -> None:
    pickler.persistent_id = lambda obj: (run.record("persistent_id", obj), _pid_of(obj))[1]


@_on_instance("reducer_override")
def _(run: Run, pickler: Any) -> None:
    pickler.reducer_override = lambda obj: (run.record("reducer_override", obj), _reduction_of(obj))[1]


@_on_instance("dispatch_table")
def _(run: Run, pickler: Any) -> None:
    pickler.dispatch_table = _TABLE


@_on_instance("dispatch_table is a ChainMap")
def _(run: Run, pickler: Any) -> None:
    pickler.dispatch_table = collections.ChainMap(_TABLE, copyreg.dispatch_table)


@_on_instance("dispatch")
def _(run: Run, pickler: Any) -> None:
    pickler.dispatch = {
        **pickler.dispatch,
        int: _save_marked(run),
        list: _save_marked(run),
        objects.Slotted: _save_marked(run),
    }


@_on_instance("dispatch of containers only")
def _(run: Run, pickler: Any) -> None:
    pickler.dispatch = {**pickler.dispatch, tuple: _save_marked(run), dict: _save_marked(run)}


@_on_instance("dispatch without str")
def _(run: Run, pickler: Any) -> None:
    pickler.dispatch = {t: entry for t, entry in pickler.dispatch.items() if t is not str}


def _wrapped(name: str) -> OnInstance:
    def set_it(run: Run, pickler: Any) -> None:
        original = getattr(pickler, name)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            run.record(name, args[0], len(args), sorted(kwargs))
            return original(*args, **kwargs)

        setattr(pickler, name, wrapper)

    return set_it


for _name in (
    "save", "memoize", "put", "get", "save_pers", "save_reduce", "save_global", "_batch_appends", "_batch_setitems",
    "save_list",
    "save_str", "save_long", "save_dict", "write", "_write_large_bytes", "_file_write",
):  # fmt: skip
    _on_instance(name := f"{_name} that records")(_wrapped(_name))


@_on_instance("_BATCHSIZE")
def _(run: Run, pickler: Any) -> None:
    pickler._BATCHSIZE = 2


@_on_instance("fast")
def _(run: Run, pickler: Any) -> None:
    pickler.fast = True


@_on_instance("bin")
def _(run: Run, pickler: Any) -> None:
    pickler.bin = not pickler.bin


@_on_instance("proto one lower")
def _(run: Run, pickler: Any) -> None:
    pickler.proto = max(0, pickler.proto - 1)


@_on_instance("proto is a float")
def _(run: Run, pickler: Any) -> None:
    pickler.proto = float(pickler.proto)


@_on_instance("fix_imports")
def _(run: Run, pickler: Any) -> None:
    pickler.fix_imports = not pickler.fix_imports


@_on_instance("a memo filled beforehand")
def _(run: Run, pickler: Any) -> None:
    run.kept["memo"] = known = [
        "text",
        255,
        2**31,
        1.5,
        None,
        True,
        (),
        b"",
        objects.Plain,
        "a",
        10**30,
        objects.Colour.RED,
    ]
    pickler.memo.update((id(x), (i, x)) for i, x in enumerate(known, len(pickler.memo)))


@_on_instance("a memo with gaps")
def _(run: Run, pickler: Any) -> None:
    run.kept["gaps"] = known = ["text", 255, objects.Plain, None, "value"]
    pickler.memo.update((id(x), (300 * i + 7, x)) for i, x in enumerate(known))


@_on_instance("a memo of 255")
def _(run: Run, pickler: Any) -> None:
    run.kept["many"] = known = [object() for _ in range(255 - len(pickler.memo) % 255)]
    pickler.memo.update((id(x), (i, x)) for i, x in enumerate(known, len(pickler.memo)))


@_on_instance("a new memo")
def _(run: Run, pickler: Any) -> None:
    run.kept["old"] = pickler.memo
    pickler.memo = {}


@_on_instance("a copy of the memo")
def _(run: Run, pickler: Any) -> None:
    pickler.memo = pickler.memo.copy()


@_on_instance("a memo of another class")
def _(run: Run, pickler: Any) -> None:
    class Memo(dict):  # type: ignore[type-arg]
        def __setitem__(self, key: Any, value: Any) -> None:
            run.record("memo", value[1])
            super().__setitem__(key, value)

    pickler.memo = Memo(pickler.memo)


@_on_instance("clear_memo")
def _(run: Run, pickler: Any) -> None:
    run.kept["cleared"] = [*pickler.memo.values()]
    pickler.clear_memo()


@_on_instance("the memo's last entry is gone")
def _(run: Run, pickler: Any) -> None:
    if pickler.memo:
        run.kept["popped"] = pickler.memo.popitem()


@_on_instance("write to another frame")
def _(run: Run, pickler: Any) -> None:
    other = io.BytesIO()
    run.kept["other"] = other
    pickler.write = other.write


@_on_instance("another framer")
def _(run: Run, pickler: Any) -> None:
    framer = type(pickler.framer)(pickler._file_write)
    if pickler.framer.current_frame is not None:
        framer.start_framing()
    pickler.framer = framer


@_on_instance("another framer with its write")
def _(run: Run, pickler: Any) -> None:
    framer = type(pickler.framer)(pickler._file_write)
    if pickler.framer.current_frame is not None:
        framer.start_framing()
    pickler.framer = framer
    pickler.write = framer.write
    pickler._write_large_bytes = framer.write_large_bytes


@_on_instance("a framer of another class")
def _(run: Run, pickler: Any) -> None:
    old = pickler.framer

    class Framer(type(old)):  # type: ignore[misc]
        _FRAME_SIZE_TARGET = 50

    framer = Framer(pickler._file_write)
    if old.current_frame is not None:
        framer.start_framing()
    pickler.framer = framer
    pickler.write = framer.write
    pickler._write_large_bytes = framer.write_large_bytes


@_on_instance("the framer's write")
def _(run: Run, pickler: Any) -> None:
    original = pickler.framer.write
    pickler.framer.write = lambda data: original(data)


@_on_instance("the framer's commit_frame")
def _(run: Run, pickler: Any) -> None:
    original = pickler.framer.commit_frame
    pickler.framer.commit_frame = lambda force=False: original(force)


@_on_instance("the framer's file_write")
def _(run: Run, pickler: Any) -> None:
    original = pickler.framer.file_write
    pickler.framer.file_write = lambda data: original(data)


@_on_instance("smaller frames")
def _(run: Run, pickler: Any) -> None:
    pickler.framer._FRAME_SIZE_TARGET = 40


@_on_instance("the frame is committed")
def _(run: Run, pickler: Any) -> None:
    pickler.framer.commit_frame(force=True)


@_on_instance("the frame is ended")
def _(run: Run, pickler: Any) -> None:
    pickler.framer.end_framing()
    run.sizes_matter = False  # from here on each write of stock's reaches the file by itself


@_on_instance("framing is started again")
def _(run: Run, pickler: Any) -> None:
    if pickler.proto >= 4:
        pickler.framer.start_framing()


@_on_instance("another class")
def _(run: Run, pickler: Any) -> None:
    cls = type(pickler)

    class P(cls):
        def persistent_id(self, obj):
            return _pid_of(obj)

    pickler.__class__ = P


@_on_instance("something is written")
def _(run: Run, pickler: Any) -> None:
    pickler.write(pickle.NONE + pickle.POP)


@_on_instance("an attribute that means nothing")
def _(run: Run, pickler: Any) -> None:
    pickler.meaningless = run


@_on_instance("an attribute is missing")
def _(run: Run, pickler: Any) -> None:
    del pickler.fast
