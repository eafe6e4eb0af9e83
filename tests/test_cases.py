"""Minimal cases of defects that were found in review, each beside what stock does."""

from __future__ import annotations

import array
import collections
import dataclasses
import functools
import gc
import io
import pickle
import re
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from oracle import objects
from oracle.allowed import PYPY
from oracle.compare import dumped, stock_dumps
from oracle.engines import Pure
from oracle.parts import APartOf

import fastpickle

Stock: Any = pickle._Pickler  # type: ignore[attr-defined]
BASES = (Stock, fastpickle.Pickler)


class Callee:
    """A function that is an instance, so that stock asks it for its name."""

    def __call__(self, *args: Any) -> None:
        pass


CALLEE = Callee()


class ReducedByCallee:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __reduce__(self) -> Any:
        return CALLEE, (self.inner,)


def outcomes(dump: Callable[[Any], Any]) -> list[Any]:
    """Do the same on stock and on fastpickle; an exception is an outcome too."""
    found = []
    for base in BASES:
        try:
            found.append(dump(base))
        except Exception as exc:
            found.append((type(exc), re.sub("0x[0-9a-f]+", "", str(exc))))
    return found


class Failure(Exception):
    """Has no `__dict__` until somebody asks for it; then its reduce gives it, empty or not."""


class FailureOfItsOwn(OSError):
    def __reduce__(self) -> Any:
        return super().__reduce__()


class Partial(functools.partial):  # type: ignore[type-arg]
    """Is like that, too."""


class PartialOfItsOwn(functools.partial):  # type: ignore[type-arg]
    def __reduce__(self) -> Any:
        return super().__reduce__()


@pytest.mark.parametrize("cls", [Failure, FailureOfItsOwn, Partial, PartialOfItsOwn])
@pytest.mark.parametrize("n", [1, 5, 17, 40, 80, 300])
def test_nobody_asks_for_a_dict_that_is_not_there(cls: Any, n: int, a_part_of: APartOf) -> None:
    """To ask for it makes one, and what they reduce to is another thing then, for stock, too."""
    for shape in (list, tuple, lambda some: dict(enumerate(some)), lambda some: [[i, x] for i, x in enumerate(some)]):
        for protocol in a_part_of(range(6)):
            for base in (fastpickle.Pickler, Pure):
                objs = shape([cls(print) for _ in range(n)])
                expected = dumped(Stock, objs, protocol)
                assert dumped(base, objs, protocol) == expected
                assert dumped(Stock, objs, protocol) == expected


def test_table_with_a_get_of_its_own() -> None:
    """Stock asks get() of the dispatch table; a subclass of dict may answer what it likes."""

    class Table(dict):  # type: ignore[type-arg]
        def get(self, t: Any, default: Any = None) -> Any:
            return (lambda pickler, obj: pickler.save("marked")) if t is list else super().get(t, default)

    def dump(base: Any) -> bytes:
        return dumped(type("P", (base,), {"dispatch": Table(base.dispatch)}), [1, [2]])

    stock, ours = outcomes(dump)
    assert stock == ours
    assert b"marked" in ours


def test_table_that_makes_entries() -> None:
    """Looking at a defaultdict must not put anything into it."""

    def dump(base: Any) -> tuple[bytes, bool]:
        table = collections.defaultdict(lambda: lambda pickler, obj: pickler.save("by default"), base.dispatch)
        del table[set]
        return dumped(type("P", (base,), {"dispatch": table}), [{1}]), set in table

    stock, ours = outcomes(dump)
    assert stock == ours


def test_table_that_can_only_get_in_the_middle_of_a_dump() -> None:
    """A table of any class may be put in place by a reduce."""

    class OnlyGet:
        def __init__(self, table: Any) -> None:
            self.get = table.get

    def dump(base: Any) -> bytes:
        file = io.BytesIO()
        pickler = base(file, 4)

        class Acts:
            def __reduce__(self) -> Any:
                pickler.dispatch = OnlyGet(base.dispatch)
                return int, (7,)

        pickler.dump([1, Acts(), [2], {3: 4}])
        return file.getvalue()

    stock, ours = outcomes(dump)
    assert stock == ours
    assert type(ours) is bytes


def test_dispatch_table_is_asked_as_stock_asks_it() -> None:
    """Up to 3.12 a dispatch_table is asked with one argument, from 3.13 on with two."""

    def dump(base: Any) -> list[tuple[Any, ...]]:
        asked = []

        class Table:
            def get(self, *args: Any) -> Any:
                asked.append(len(args))
                return dict.get({}, *args)

        dumped(type("P", (base,), {"dispatch_table": Table()}), [1 + 2j])
        return asked

    stock, ours = outcomes(dump)
    assert stock == ours


@pytest.mark.parametrize("protocol", [1, 2, 4])
@pytest.mark.parametrize("index", [-1, 255, 256, 1 << 40])
def test_memo_filled_beforehand_with_any_index(index: int, protocol: int) -> None:
    """The index of a memo entry may be anything; what cannot be packed raises as in stock."""

    def dump(base: Any) -> bytes:
        file = io.BytesIO()
        pickler = base(file, protocol)
        text = "in the memo"
        pickler.memo[id(text)] = index, text
        pickler.dump([text])
        return file.getvalue()

    stock, ours = outcomes(dump)
    assert stock == ours


@pytest.mark.parametrize("obj", [[1], {1: 2}, "text", (1,), []])
def test_memo_after_a_write_that_failed(obj: Any) -> None:
    """What could not be written is not in the memo."""

    def dump(base: Any) -> int:
        file = io.BytesIO()
        pickler = base(file, 2)
        file.close()
        with pytest.raises(ValueError, match="closed"):
            pickler.save(obj)
        return len(pickler.memo)

    stock, ours = outcomes(dump)
    assert stock == ours


def test_function_that_is_an_instance_costs_no_more_frames() -> None:
    """Objects reduced to a callable instance nest as deep as in stock."""

    def deepest(base: Any) -> int:
        reached = 0
        obj: Any = 0
        for depth in range(1, 400):
            obj = ReducedByCallee(obj)
            try:
                dumped(base, obj)
            except RecursionError:
                break
            reached = depth
        return reached

    stock, ours = outcomes(deepest)
    assert 50 < stock <= ours


@pytest.mark.parametrize("text", ["x" * 70_000, "\xe9" * 40_000, "\xe9" * 70_000, "x" * 65_535, "\ud800" * 70_000])
def test_large_str(text: str) -> None:
    """Strings around the size of a frame, by characters and by bytes."""
    for protocol in range(6):
        stock, ours = outcomes(lambda base, protocol=protocol: dumped(base, [text, text, 1], protocol))
        assert stock == ours


def test_table_of_plans_keeps_no_pickler_alive() -> None:
    """An entry of a pickler's own dispatch table, and all that it refers to, is freed with the pickler."""
    alive = []
    for _ in range(10):
        pickler = fastpickle.Pickler(io.BytesIO(), 4)
        pickler.dispatch = {**Stock.dispatch, list: lambda p, obj, own=pickler: own.save("x")}
        pickler.dump([1, [2]])
        alive.append(weakref.ref(pickler))
    del pickler
    gc.collect()
    assert [ref for ref in alive if ref() is not None] == []


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("obj", [5, 70_000, True, None, 5.0, "text", b"bytes"], ids=repr)
@pytest.mark.parametrize("name", ["save_str", "save_long", "save_float", "save_none", "save_bool", "save_bytes"])
def test_function_of_another_type_in_the_table(name: str, obj: Any, hooked: bool) -> None:
    """A table may have stock's function for one atom in the place of another's; it fails as it does in stock."""

    def dump(base: Any, protocol: int) -> bytes:
        members: dict[str, Any] = {"dispatch": {**base.dispatch, type(obj): getattr(Stock, name)}}
        if hooked:
            members["memoize"] = lambda self, obj: base.memoize(self, obj)
        return dumped(type("P", (base,), members), [obj], protocol)

    for protocol in range(6):
        stock, ours = outcomes(lambda base, protocol=protocol: dump(base, protocol))
        assert stock == ours


def test_class_whose_module_is_no_string() -> None:
    """`__module__` may be anything."""
    for module in ([], 5, None, ["unhashable"], {}):
        cls = type("C", (), {})
        cls.__module__ = module  # type: ignore[assignment]
        stock, ours = outcomes(lambda base, cls=cls: dumped(base, [cls]))
        assert stock == ours


class _Tuple(tuple):  # type: ignore[type-arg]
    pass


class _Appending:
    """Appends to a deque when it is reduced."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __reduce__(self) -> Any:
        self.items.append(1)
        return str, ()


class _Raising:
    """A descriptor that counts how often it is asked."""

    asked = 0

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        type(self).asked += 1
        raise AttributeError("not this time")


class _HasRaising:
    __getnewargs_ex__ = _Raising()

    def __init__(self, a: Any = None) -> None:
        self.a = a


def test_tuple_subclass_that_contains_itself_has_a_state() -> None:
    """The C pickler leaves the state of the inner one out."""
    hub: list[Any] = []
    obj = _Tuple([hub])
    obj.x = 1  # type: ignore[attr-defined]
    hub.append(obj)
    for protocol in range(2, 6):
        stock, ours = outcomes(lambda base, protocol=protocol: dumped(base, [[obj], obj], protocol))
        assert stock == ours
        assert fastpickle.dumps([[obj], obj], protocol) == dumped(Stock, [[obj], obj], protocol)


def test_deque_that_grows_while_its_last_item_is_saved() -> None:
    """From 3.14 on stock asks it once more."""

    def dump(base: Any) -> bytes:
        items: Any = collections.deque([1])
        items.append(_Appending(items))
        return dumped(base, items)

    stock, ours = outcomes(dump)
    assert stock == ours


class _Counting(tuple[Any, ...]):
    """A tuple that counts how often its length is asked for."""

    asked = 0

    def __len__(self) -> int:
        type(self).asked += 1
        return super().__len__()


class _GivesCounting:
    def __init__(self, i: int) -> None:
        self.i = i

    def __reduce__(self) -> Any:
        return _Counting((_GivesCounting, (self.i,), None, iter([1]) if self.i % 3 else None))

    def append(self, item: Any) -> None:
        pass


@pytest.mark.parametrize("n", [1, 2, 40, 300])
@pytest.mark.parametrize("protocol", [2, 4])
def test_reduce_that_gives_a_tuple_of_somebodys(n: int, protocol: int) -> None:
    """Its length is asked for as often as by stock's `len(rv)` and `*rv`, the latter by Python, as 3.14 asks less."""

    def dump(base: Any) -> Any:
        _Counting.asked = 0
        return dumped(base, [_GivesCounting(i) for i in range(n)], protocol), _Counting.asked

    stock, ours = outcomes(dump)
    assert stock == ours
    assert stock[1] >= n


class _Clearing:
    def __reduce__(self) -> Any:
        PICKLERS[-1].clear_memo()
        return _Clearing, ()


def _in_itself(kind: Any) -> Any:
    outer, inner = kind(), kind()
    for x, y in ((outer, inner), (inner, outer)):
        items = (_Clearing(), y, y)
        if isinstance(x, list):
            x.extend(items)
        else:
            x.update(enumerate(items))
    return [(outer,)]


@pytest.mark.skipif(PYPY, reason="where its stack ends is up to its JIT, and it crashes there now and then")
@pytest.mark.parametrize(
    "kind", [list, dict, collections.OrderedDict, functools.partial(collections.defaultdict, int)], ids=str
)
def test_memo_cleared_within_what_contains_itself(kind: Any) -> None:
    """It is saved again and again, so it has no end but stock's RecursionError; nothing is written."""

    def dump(base: Any) -> Any:
        PICKLERS.append(base(file := io.BytesIO(), 4))
        with pytest.raises(RecursionError):
            PICKLERS[-1].dump(_in_itself(kind))
        return file.getvalue()

    stock, ours = outcomes(dump)
    assert stock == ours


_LONG = [[str(i) for i in range(300)]]  # what comes behind it goes by the loop


def _sets_a_hook(pickler: Any) -> Any:
    pickler.persistent_id = lambda obj: "list" if type(obj) is list else None
    return objects.Plain, ()


class _Hooking:
    """A key, the hash of which sets a hook, and a function, the name of which does."""

    pickler: Any = None

    @property
    def __name__(self) -> str:
        return str(_sets_a_hook(_Hooking.pickler))

    def __hash__(self) -> int:
        if _Hooking.pickler is not None:
            _sets_a_hook(_Hooking.pickler)
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other

    def __call__(self) -> None:
        pass

    def __reduce__(self) -> Any:
        return objects.Plain, ()


def _with_reduce(cls: Any, pickler: Any) -> Any:
    obj = cls()
    obj.__reduce__ = lambda: _sets_a_hook(pickler)
    return obj


def _ordered(pickler: Any) -> Any:
    _Hooking.pickler = None
    obj = collections.OrderedDict([(_Hooking(), 1)])
    _Hooking.pickler = pickler
    return obj


def _ordered_with_items(pickler: Any) -> Any:
    obj: Any = collections.OrderedDict(a=1)
    obj.items = lambda: (_sets_a_hook(pickler), {"b": 2}.items())[1]
    return obj


def _method(pickler: Any) -> Any:
    _Hooking.pickler = pickler
    return types.MethodType(_Hooking(), 1)


@pytest.mark.parametrize(
    "make",
    [
        functools.partial(_with_reduce, ValueError),
        functools.partial(_with_reduce, types.SimpleNamespace),
        _ordered,
        lambda pickler: iter(_ordered(pickler).items()),
        _ordered_with_items,
        _method,
    ],
    ids=["exception", "namespace", "OrderedDict", "its iterator", "its items", "method"],
)
@pytest.mark.parametrize("before", [[], _LONG], ids=["short", "long"])
def test_reduce_in_c_that_runs_code(make: Any, before: list[Any]) -> None:
    """A hook that it sets is asked from there on."""

    def dump(base: Any) -> bytes:
        pickler = base(file := io.BytesIO(), 4)
        obj = make(pickler)
        try:
            pickler.dump([*before, obj, [1, 2]])
        finally:
            _Hooking.pickler = None
        return file.getvalue()

    stock, ours = outcomes(dump)
    assert stock == ours


class _Hashed(objects.CountsHashes):
    def __reduce__(self) -> Any:
        return objects.Plain, ()


@pytest.mark.parametrize("before", [[], _LONG], ids=["short", "long"])
def test_keys_of_an_ordered_dict_are_asked_for_their_hash(before: list[Any]) -> None:
    """As often as by stock: to iterate over it looks each key up."""
    for keys in ([_Hashed()], [(1, "a"), _Hashed(), (_Hashed(), 2)], [(1, (2, _Hashed()))]):
        obj = collections.OrderedDict.fromkeys(keys, 1)

        def dump(base: Any, obj: Any = obj) -> Any:
            _Hashed.asked = 0
            return dumped(base, [*before, obj, [1]]), _Hashed.asked

        stock, ours = outcomes(dump)
        assert stock == ours


class _Unhashable(str):
    is_armed = False

    def __hash__(self) -> int:
        assert not _Unhashable.is_armed
        return super().__hash__()


@pytest.mark.parametrize("n", [0, 5, 100])
@pytest.mark.parametrize("protocol", [2, 4])
def test_attribute_that_is_not_asked_for_its_hash(n: int, protocol: int) -> None:
    """Stock only iterates over the attributes of an instance."""
    objs = [objects.Plain(a=i) for i in range(n + 1)]
    vars(objs[-1])[_Unhashable("b")] = 1
    for place in (objs, {"x": objs}, objs[-1]):
        _Unhashable.is_armed = True
        try:
            stock, ours = outcomes(lambda base, place=place: dumped(base, place, protocol))
        finally:
            _Unhashable.is_armed = False
        assert type(stock) is bytes
        assert stock == ours


class _AppendsToItself:
    deque: Any

    def __reduce__(self) -> Any:
        self.deque.append(5)
        return _AppendsToItself, ()


def test_deque_that_is_all_of_a_dump_and_grows() -> None:
    """From 3.14 on that is an error."""

    def dump(base: Any) -> bytes:
        obj = _AppendsToItself()
        obj.deque = collections.deque([obj])
        return dumped(base, [obj.deque])

    stock, ours = outcomes(dump)
    assert stock == ours


@pytest.mark.parametrize("name", ["_save_bytes_no_memo", "_save_bytearray_no_memo", "_save_toplevel_by_name"])
@pytest.mark.parametrize("on_class", [True, False])
def test_part_of_a_method_that_is_overridden(name: str, on_class: bool) -> None:
    """It is called as often as by stock, where stock has it."""
    if not hasattr(Stock, name):
        pytest.skip("stock has no such method")
    for protocol in range(6):
        for obj in (b"bytes", [b"bytes", bytearray(b"a"), objects.function], [[b"b", 1]] * 50, {"a": objects.Plain}):

            def dump(base: Any, obj: Any = obj, protocol: int = protocol) -> Any:
                called = []

                class P(base):  # type: ignore[misc]  # it is a variable
                    pass

                def override(self: Any, *args: Any) -> None:
                    called.append(len(args))
                    getattr(base, name)(self, *args)

                pickler = P(file := io.BytesIO(), protocol)
                if on_class:
                    setattr(P, name, override)
                else:
                    setattr(pickler, name, functools.partial(override, pickler))
                pickler.dump(obj)
                return file.getvalue(), called

            stock, ours = outcomes(dump)
            assert stock == ours, (protocol, obj)


def test_slot_names_are_not_left_on_a_class() -> None:
    """If an instance has a reduce of its own, nobody asks for its slots."""

    def dump(base: Any) -> Any:
        class Slotted:
            __slots__ = ("__b", "__dict__", "a")

        obj = Slotted()
        obj.__reduce_ex__ = lambda protocol: (objects.Plain, ())
        return dumped(base, [obj]), "__slotnames__" in vars(Slotted)

    stock, ours = outcomes(dump)
    assert stock == ours


class _Raw(io.RawIOBase):
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sizes.append(len(data))
        return len(data)


@pytest.mark.parametrize("protocol", range(6))
def test_what_a_file_hands_on(protocol: int) -> None:
    """What is behind a buffer, or a list that collects what is written, sees what it sees by stock."""
    data = [*(str(i) * 5 for i in range(9)), [1.5] * 100, {i: str(i) for i in range(60)}]

    def buffered(base: Any) -> Any:
        raw = _Raw()
        file = io.BufferedWriter(raw, 16)
        base(file, protocol).dump(data)
        file.flush()
        return raw.sizes

    def collected(base: Any) -> Any:
        found: list[Any] = []
        base(types.SimpleNamespace(write=found.append), protocol).dump(data)
        return [bytes(piece) for piece in found] if protocol < 4 else len(found)

    for dump in (buffered, collected):
        stock, ours = outcomes(dump)
        assert stock == ours


@pytest.mark.skipif(PYPY, reason="how deep its stack is depends on its JIT")
@pytest.mark.parametrize("kind", ["list", "dict", "OrderedDict", "deque"])
@pytest.mark.parametrize("before", [[], _LONG], ids=["short", "long"])
def test_instances_as_deep_as_stock_can(kind: str, before: list[Any]) -> None:
    """Containers of classes of their own in each other, each of which has a reduce and items."""
    wrap: Callable[[Any], Any] = {
        "list": lambda x: objects.List([x]),
        "dict": lambda x: objects.Dict(a=x),
        "OrderedDict": lambda x: collections.OrderedDict(a=x),
        "deque": lambda x: collections.deque([x]),
    }[kind]
    deepest = None
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(3000)
    try:
        for depth in range(100, 1200, 20):
            obj: Any = 1
            for _ in range(depth):
                obj = wrap(obj)
            try:
                deepest = dumped(Stock, [*before, obj]), obj
            except RecursionError:
                break
        assert deepest is not None
        for cls in (fastpickle.Pickler, Pure):
            assert dumped(cls, [*before, deepest[1]]) == deepest[0]
    finally:
        sys.setrecursionlimit(limit)


def test_descriptor_that_raises() -> None:
    """It is asked as often as by stock, and its error is stock's, also beside many instances that have none."""
    for n in (0, 60):

        def dump(base: Any, n: int = n) -> Any:
            _Raising.asked = 0
            try:
                return dumped(base, [*(objects.Plain(a=i) for i in range(n)), _HasRaising(1)])
            except AttributeError as exc:
                return str(exc), _Raising.asked

        stock, ours = outcomes(dump)
        assert stock == ours


def test_protocol_that_becomes_a_float() -> None:
    """It is equal to what it was, and yet no protocol any more."""

    class Changes:
        def __reduce__(self) -> Any:
            PICKLERS[-1].proto = float(PICKLERS[-1].proto)
            return str, ()

    def dump(base: Any) -> bytes:
        pickler = base(file := io.BytesIO(), 3)
        PICKLERS.append(pickler)
        pickler.dump([Changes(), [(i, str(i)) for i in range(200)]])
        return file.getvalue()

    stock, ours = outcomes(dump)
    assert stock == ours


def test_memo_that_is_set_while_the_c_pickler_has_the_old_one() -> None:
    """The new one counts, also after uninstall(), and where a class has a memo of its own."""

    class HasMemo(fastpickle.Pickler):
        memo = None

    with fastpickle.patched():
        picklers = [Stock(io.BytesIO(), 4), HasMemo(io.BytesIO(), 4)]
        for pickler in picklers:
            pickler.dump([str(i) for i in range(3000)])
        assert len(picklers[1].memo) == 3001
        picklers[0].memo = {}
    assert picklers[0].memo == {}


class Factory:
    """Is called, or an item, and has an attribute."""

    def __call__(self) -> None:
        pass


class Held:
    """Is made of what it holds, which is in its state, too."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __reduce__(self) -> Any:
        return Held, (self.held,), self.__dict__


@dataclasses.dataclass(frozen=True, init=False, slots=True)
class FrozenTuple(tuple[Any, ...]):
    """Has the state that dataclasses give."""


def attributed(func: Any, held: Any) -> Any:
    """Return a partial that has something in its `__dict__`."""
    made: Any = functools.partial(func)
    made.held = held
    return made


#: What stock makes of something that may hold the object itself.
MADE_OF: dict[str, Callable[[Any], Any]] = {
    "defaultdict": lambda held: collections.defaultdict(held, a=1),
    "defaultdict with a partial": lambda held: collections.defaultdict(functools.partial(held), a=1),
    "defaultdict with an attribute of a partial": lambda held: collections.defaultdict(attributed(int, held), a=1),
    "defaultdict with a partial of atoms": lambda held: collections.defaultdict(functools.partial(int, 5), a=held),
    "defaultdict with a method": lambda held: collections.defaultdict(held.__call__, a=1),
    "partial": lambda held: functools.partial(held, 1, a=2),
    "partial with an argument": lambda held: functools.partial(len, held),
    "Counter": lambda held: collections.Counter(a=held, b=2),
    "deque": lambda held: collections.deque([held, 1], 5),
    "OrderedDict": lambda held: collections.OrderedDict(a=held, b=1),
    "SimpleNamespace": lambda held: types.SimpleNamespace(a=held, b=1),
    "method": lambda held: types.MethodType(outcomes, held),
    "slice": lambda held: slice(held, 1),
    "KeyError": lambda held: KeyError(held, 1),
    "tuple": lambda held: objects.Pair(held, 1),
    "frozen dataclass of a tuple": lambda held: tuple.__new__(FrozenTuple, (held, 1)),
    "call": Held,
}


@pytest.mark.parametrize("name", MADE_OF)
@pytest.mark.parametrize(
    "shape",
    [
        lambda made, held: made,
        lambda made, held: [made],
        lambda made, held: [*range(30), [made], held],
        lambda made, held: {"a": [held, made]},
        lambda made, held: [[made]] * 30,
    ],
    ids=["alone", "in a list", "behind numbers", "after what it is made of", "many times"],
)
@pytest.mark.parametrize("protocol", range(6))
def test_object_in_what_it_is_made_of(name: str, shape: Any, protocol: int) -> None:
    """Once its arguments are saved it is in the memo: Python goes on to its state and its items yet, C does not."""
    held: Any = Factory()
    held.made = MADE_OF[name](held)
    obj = shape(held.made, held)
    assert fastpickle.dumps(obj, protocol) == stock_dumps(obj, protocol)
    stock, ours = outcomes(lambda base: dumped(base, obj, protocol))
    assert stock == ours


class Plain:
    """One of many."""

    def __init__(self, number: int) -> None:
        self.number = number


class CallsFunction:
    """Its reduce gives a function of its module to call."""

    def __reduce__(self) -> Any:
        return make_plain, (5,)


class CallsAnother:
    """Its reduce gives another class of its module to call, which is saved before."""

    def __reduce__(self) -> Any:
        return Plain, (5,)


def make_plain(number: int) -> Plain:
    """Be what a reduce gives."""
    return Plain(number)


@pytest.mark.parametrize("n", [0, 24, 25, 60])
@pytest.mark.parametrize(
    "last",
    [
        lambda: [CallsFunction()],
        lambda: [CallsAnother(), make_plain],
        lambda: [CallsAnother(), CallsFunction],
        lambda: [re.compile("a")],
        lambda: [array.array("d", [1.5]), array.array("i")],
        lambda: [objects.Colour.RED, objects.Plain(), make_plain],
    ],
    ids=["a function", "another class, a function", "another class, a class", "a pattern", "an array", "an enum"],
)
@pytest.mark.parametrize("kind", [types.FunctionType, type, types.BuiltinFunctionType])
def test_entry_for_functions_that_a_reduce_gives(n: int, last: Any, kind: type) -> None:
    """A pickler's own dispatch entry for functions or classes is asked about those that a reduce among many gives."""
    obj = [*(Plain(i) for i in range(n)), *last()]

    def dump(base: Any) -> Any:
        class Own(base):  # type: ignore[misc]  # it is a variable
            dispatch = {**base.dispatch}
            asked: list[Any] = []

            def save_own(self, func: Any) -> None:
                self.asked.append(func)
                self.write(b"cother\nfn\n")
                self.memoize(func)

            dispatch[kind] = save_own

        Own(file := io.BytesIO(), 4).dump(obj)
        return file.getvalue(), Own.asked

    stock, ours = outcomes(dump)
    assert stock == ours


PICKLERS: list[Any] = []
