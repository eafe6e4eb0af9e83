"""Values at the edges of the format, and small graphs of all kinds for hooks to look at.

Each is a function without arguments, called anew for each dump, so that one dump's changes are not seen by the next.

Not for: objects that do something while they are pickled (`suite_evil`), nor what only some library can pickle.
"""

from __future__ import annotations

import abc
import array
import collections
import copyreg
import datetime
import decimal
import fractions
import functools
import ipaddress
import itertools
import operator
import pathlib
import pickle
import random
import re
import sys
import types
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from . import objects
from .allowed import PYPY

Make = Callable[[], Any]

FRAME = 64 * 1024  # bytes; the size at which a frame is cut, and from which on bytes and str stand outside frames
BATCH = 1000  # items

_INTS = sorted(
    {
        sign * (2**bits) + offset
        for sign in (1, -1)
        for bits in (0, 7, 8, 15, 16, 31, 32, 63, 64, 2031, 2032, 2039, 2040, 2047)  # 2039: from 255 to 256 bytes
        for offset in (-2, -1, 0, 1)
    }
    | {0}
)
_FLOATS = (0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7976931348623157e308)
_TEXT_SIZES = (0, 1, 2, 62, 63, 64, 127, 128, 254, 255, 256, 257, 1000, FRAME - 1, FRAME, FRAME + 1, 3 * FRAME)

#: Atoms, and containers at the sizes where something changes.
VALUES: dict[str, Make] = {
    "None": lambda: None,
    "booleans": lambda: [True, False],
    "Ellipsis": lambda: [..., ...],
    "NotImplemented": lambda: [NotImplemented, NotImplemented],
    "their types": lambda: [type(None), type(...), type(NotImplemented), type, object, type(None)],
    "ints": lambda: list(_INTS),
    **{
        f"int of {_INTS[i].bit_length()} bits, {_INTS[i] & 0xFF}": (lambda i=i: _INTS[i])
        for i in range(0, len(_INTS), 9)
    },
    "a long of LONG4": lambda: [1 << 8 * 254, 1 << 8 * 255 - 1, 1 << 8 * 255, -(1 << 8 * 255), 1 << 70_000],
    "an int of too many digits": lambda: [1 << 20_000, -(1 << 20_000)],
    "floats": lambda: list(_FLOATS),
    "a float": lambda: 1.5,
    "complex": lambda: [1j, 1j, complex(-0.0, float("nan"))],
    "surrogates": lambda: ["\ud800", "a\udfffb", "\udc80" * 85, "\udc80" * 86, "\udc80" * 64, "\U0001f600\ud83d"],
    "escapes of protocol 0": lambda: (
        [c * n for c in "\\\n\r\0\x1a\t'\"\x7f\x85\xe9\u0100\U0001f600" for n in (1, 2)] * 2
    ),
    "escapes that are shared": lambda: (s := "a\\b\n\r\0\x1a", [s, s, {s: s}])[1:],
    **{f"str of {n}": (lambda n=n: "x" * n) for n in _TEXT_SIZES},
    **{f"two-byte str of {n}": (lambda n=n: "\xe9" * (n // 2) + "x" * (n % 2)) for n in _TEXT_SIZES},
    **{f"three-byte str of {n}": (lambda n=n: "\u20ac" * (n // 3) + "x" * (n % 3)) for n in _TEXT_SIZES},
    **{f"bytes of {n}": (lambda n=n: b"x" * n) for n in _TEXT_SIZES},
    **{f"bytearray of {n}": (lambda n=n: bytearray(b"x" * n)) for n in _TEXT_SIZES},
    **{
        f"among others, {name} of {n}": (lambda n=n, t=t: [1, t(n), (t(n), t(n + 1)), {"a": t(n)}, t(n), 2])
        for name, t in {
            "str": lambda n: "".join(["y"] * n),  # not "y" * n, of which PyPy's JIT may make one object for several
            "bytes": lambda n: b"".join([b"y"] * n),
            "bytearray": lambda n: bytearray(b"y" * n),
        }.items()
        for n in (254, 255, 256, FRAME - 2, FRAME - 1, FRAME, FRAME + 1)
    },
    "latin-1 bytes": lambda: [bytes(range(256)), bytes(range(128)), b"", b"\xff"],
    "the same bytes": lambda: (b := bytes(range(9)), [b, b, (b,), {b: b}])[1:],
    **{f"memo of {n}": (lambda n=n: _memo_of(n)) for n in (254, 255, 256, 257, 258, 600)},
    "single characters": lambda: list("abcaa\xe9\xe9\u20ac"),
    "empty containers": lambda: [[], {}, (), set(), frozenset(), "", b"", bytearray(), (), [()], ((),)],
    "nested empties": lambda: [[[[]]], ((((),),),), {(): {}}, {"": []}],
}

#: The containers' sizes at which a batch or an opcode changes.
SIZES = (
    0,
    1,
    2,
    3,
    4,
    5,
    BATCH - 1,
    BATCH,
    BATCH + 1,
    BATCH + 2,
    2 * BATCH - 1,
    2 * BATCH,
    2 * BATCH + 1,
    3 * BATCH + 7,
)
FEW_SIZES = (0, 1, 2, 3, 4, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 1)
FEWEST_SIZES = (0, 1, 2, 4, BATCH, BATCH + 1)


def _memo_of(n: int) -> Any:
    """Fill the memo up to `n` entries, then fetch the first, the last and those around 255."""
    items = [f"item {i}" for i in range(n - 1)]
    return [
        items,
        items[0],
        items[-1],
        *items[250:260],
        items,
        (items[-1], items[-2]),
        {items[3]: items[254 % (n - 1)]},
    ]


def _counted(t: Any) -> Callable[[int], Any]:
    return lambda n: t(range(n))


#: Containers of n items, by kind.
CONTAINERS: dict[str, Callable[[int], Any]] = {
    "list": _counted(list),
    "list of str": lambda n: [str(i) for i in range(n)],
    "list of float": lambda n: [i / 2 for i in range(n)],
    "list of mixed": lambda n: [(i, str(i), i / 2, None, i % 2 == 0, b"%d" % i)[i % 6] for i in range(n)],
    "list of tuples": lambda n: [(i, str(i)) for i in range(n)],
    "list of lists": lambda n: [[i] for i in range(n)],
    "list of dicts": lambda n: [{"a": i, "b": str(i)} for i in range(n)],
    "list of one": lambda n: ["same"] * n,
    "list of instances": lambda n: [objects.Plain(i=i) for i in range(n)],
    "tuple": _counted(tuple),
    "tuple of str": lambda n: tuple(str(i) for i in range(n)),
    "dict": lambda n: {i: i for i in range(n)},
    "dict of str": lambda n: {str(i): str(n - 1 - i) for i in range(n)},  # PyPy's JIT may make one str of two str(i)
    "dict of lists": lambda n: {i: [i] for i in range(n)},
    "set": _counted(set),
    "set of str": lambda n: {str(i) for i in range(n)},
    "frozenset": _counted(frozenset),
    "frozenset of tuples": lambda n: frozenset((i, str(i)) for i in range(n)),
    "List": _counted(objects.List),
    "Tuple": _counted(objects.Tuple),
    "Dict": lambda n: objects.Dict((i, str(i)) for i in range(n)),
    "Set": _counted(objects.Set),
    "Frozenset": _counted(objects.Frozenset),
    "OrderedDict": lambda n: collections.OrderedDict((str(i), i) for i in range(n)),
    "defaultdict": lambda n: collections.defaultdict(list, {i: [i] for i in range(n)}),
    "Counter": lambda n: collections.Counter({str(i): i for i in range(n)}),
    "deque": lambda n: collections.deque(range(n), maxlen=n or None),
    "listitems": lambda n: objects.Reduced(lambda self: (list, (), None, iter(range(n)))),
    "dictitems": lambda n: objects.Reduced(lambda self: (dict, (), None, None, ((str(i), [i]) for i in range(n)))),
    "instance": lambda n: objects.Plain(**{f"a{i}": i for i in range(n)}),
    "bytes in a list": lambda n: [bytes((i % 256,)) * (i % 300) for i in range(n)],
}


def shared() -> Any:
    """The same objects many times, beside others that are only equal."""
    text, number, pair, items, data = "text" * 20, 10**30, (1, "pair"), [1, 2], {"key": "value"}
    instance = objects.Plain(items=items, pair=pair)
    return [
        text, text, "text" * 20, "".join(["text"] * 20), number, number, 10**30, 1.5, pair, pair, (1, "pair"), (1,
        "pair"),
        items, items, [1, 2], data, data, {"key": "value"}, instance, instance, objects.Plain(items=items),
        {text: text},
        (text, text), [items, [items]], frozenset((text, pair)), {text, pair}, b"bytes" * 3, objects.Plain,
        objects.Plain,
    ]  # fmt: skip


def cyclic_list() -> Any:
    obj: Any = [1]
    obj += [obj, [obj], (obj,), {"a": obj}, "last"]
    return obj


def cyclic_dict() -> Any:
    obj: Any = {"a": 1}
    obj.update(b=obj, c=[obj], d=(obj, obj), e={"f": obj})
    return obj


def cyclic_tuples() -> Any:
    """Tuples that contain themselves through a list, at the sizes that drop their items by POP and by POP_MARK."""
    out = []
    for n in range(1, 6):
        hub: Any = []
        obj = (*range(n - 1), hub)
        hub += [obj, obj]
        out += [obj, hub]
        first: Any = []
        second = (first, *range(n - 1))
        first.append({"x": second})
        out.append(second)
    return out


def cyclic_instances() -> Any:
    first, second = objects.Plain(), objects.Plain()
    first.other, second.other, first.me = second, first, first
    slotted = objects.Slotted()
    slotted.a = slotted
    slotted.b = [slotted, (slotted,)]
    return [first, slotted, (second, first)]


def cyclic_sets() -> Any:
    """A set and a frozenset that contain an instance that holds them."""
    member = objects.Hashed(7)
    inside: Any = {member, 1, 2}
    member.inside = inside
    frozen_member = objects.Hashed(5)
    frozen_inside = frozenset((frozen_member, 1))
    frozen_member.inside = frozen_inside
    return [inside, frozen_inside, member, frozen_member]


def cyclic_reduce() -> Any:
    """Objects whose reduce arguments, state, items or pairs contain themselves."""
    in_args = objects.Reduced(lambda self: (objects.make, ([self.box],)))
    in_args.box = box = []  # type: ignore[attr-defined]
    in_state = objects.Reduced(lambda self: (objects.make, (), {"me": self, "more": [self]}))
    in_items = objects.Reduced(lambda self: (objects.List, (), None, iter([self, [self], 1])))
    in_pairs = objects.Reduced(lambda self: (objects.Dict, (), None, None, iter([("me", self), ("list", [self])])))
    return [in_args, box, in_state, in_items, in_pairs]


class _Recursive:
    """Its reduce arguments contain it, through a list that is saved by the first use."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.depth = 0

    def __reduce__(self) -> Any:
        self.depth += 1
        if self.depth > 1:
            return objects.make, ("end of it",)
        return objects.make, (self.parts, "after")


def recursive_arguments() -> Any:
    """An object that is saved while its own arguments are: the outer one is dropped by POP."""
    obj = _Recursive()
    obj.parts += [obj, 1]
    pair = objects.Pair(1, [])
    pair.right.append(pair)
    return [obj, pair, obj]


def instances() -> Any:
    return [
        objects.Plain(), objects.Plain(a=1, b=[2]), objects.Slotted(1, [2]), objects.Slotted(), _slotted_and_dict(),
        objects.GetState(a=1), objects.FalseState(a=1), objects.NoState(a=1), objects.NewArgs(1, [2]),
        objects.NewArgs(),
        objects.NewArgsEx(1, key=[2]), objects.NewArgsEx(), objects.Reduced((objects.make, (1,))),
        objects.ReducedEx([1]),
        objects.SINGLETON, objects.Hashed(3), objects.Data(1), objects.Frozen(1), objects.SlottedData(1),
        objects.Viaduct(1),
    ]  # fmt: skip


def by_default() -> Any:
    """What is in order from protocol 2 on only: below, a list that contains itself by its reduce is endless."""
    cyclic = objects.List([1])
    cyclic.append(cyclic)
    holding = objects.Dict(a=1)
    holding["me"] = holding
    tuple_ = objects.Tuple([[]])
    tuple_[0].append(tuple_)
    set_ = objects.Set()
    member = objects.Hashed(3, inside=set_)
    set_.add(member)
    slotted = objects.SlottedByDefault(1)
    slotted.b = [slotted]
    return [cyclic, holding, tuple_, slotted, [objects.SlottedByDefault(2), slotted], set_]


def _slotted_and_dict() -> Any:
    obj = objects.SlottedAndDict(1, 2)
    obj.more = [3]
    return obj


def reduces() -> Any:
    """A __reduce__ of every length and form that is allowed."""
    r, make = objects.Reduced, objects.make
    newobj = copyreg.__newobj__  # type: ignore[attr-defined]
    newobj_ex = copyreg.__newobj_ex__  # type: ignore[attr-defined]
    return [
        r((make, ())), r((make, (), None)), r((make, (1, "2"), {"state": 1})), r((make, (), 0)), r((make, (), [])),
        r((list, (), None, iter((1, 2)))), r((list, (), None, iter(()))), r((list, (), None, [1])), r((list, (),
        None, None, None)),
        r((dict, (), None, None, iter([(1, 2)]))), r((dict, (), None, None, {1: 2}.items())), r((dict, (), None,
        None, iter(()))),
        r((dict, (), {"s": 1}, iter((1,)), iter([("k", "v")]))), r((make, (), {"state": 1}, None, None, None)),
        r((make, (), {"state": 1}, None, None, objects.set_state)), r((make, (), None, None, None, objects.set_state)),
        r((make, (), [1], iter((1,)), iter([(1, 2)]), objects.set_state)), r((newobj, (objects.Reduced,))),
        r((newobj, (objects.Reduced, 1, [2]), {"value": 1})), r((newobj_ex, (objects.Reduced, (), {}))),
        r((newobj_ex, (objects.Reduced, (1,), {"value": [1]}), {"value": 1})), r((functools.partial(make, 1), ())),
        r(objects.Tuple((make, (1,)))), r((operator.attrgetter("a.b"), ())), r((objects.OfMeta, ())),
        r((getattr, (objects.OfMeta, "method"))),
    ]  # fmt: skip


def names() -> Any:
    """Classes, functions and others that are saved by name."""
    c = objects.OfMeta
    return [
        int, list, len, objects.Plain, objects.function, c, c.Inner, c.Inner.Innermost, c.method, c.Inner.method,
        c().method,
        c.for_class, c.without, objects.OfMetaReduced, objects.Colour, objects.Colour.RED, dict.fromkeys, [].append,
        "".join,
        str.upper, collections.OrderedDict, functools.partial(objects.function, 2), operator.itemgetter(1, 2),
        re.compile("a+"),
        objects.Plain, objects.function, len, types.SimpleNamespace(a=1), abc.ABC,
        type(None), type,
    ]  # fmt: skip


def library() -> Any:
    """Objects of the standard library."""
    utc = datetime.timezone.utc
    return [
        datetime.date(2020, 2, 29), datetime.datetime(2020, 1, 2, 3, 4, 5, 6), datetime.datetime(2020, 1, 2,
        tzinfo=utc),
        datetime.time(1, 2), datetime.timedelta(1, 2, 3), utc, datetime.timezone(datetime.timedelta(hours=1), "name"),
        decimal.Decimal("1.50"), fractions.Fraction(1, 3), uuid.UUID(int=5), pathlib.PurePosixPath("/a/b"),
        pathlib.PureWindowsPath("c:/a"), pathlib.Path("a"), 1j, range(5), range(1, 10, 3), array.array("i", [1, 2]),
        collections.deque([1, [2]], 5), collections.ChainMap({"a": 1}), collections.UserDict(a=1),
        ipaddress.ip_address("::1"),
        random.Random(1), itertools.chain, objects.Pair(1, 2), objects.Typed(1, "a"), objects.Colour.BLUE,
        objects.Flag.A,
        objects.Flag.A | objects.Flag.B, objects.IntColour.ONE, ValueError("text", 1), KeyError("k"), OSError(2,
        "no", "file"),
        sys.version_info[:3], StopIteration(1), collections.OrderedDict([(1, 2)]), collections.Counter("aab"),
        collections.defaultdict(int, a=1),
    ]  # fmt: skip


def subclasses() -> Any:
    """Of every builtin, with and without a state."""
    out: list[Any] = [
        objects.Int(5), objects.Int(2**40), objects.Float(1.5), objects.Str("s"), objects.Bytes(b"b"),
        objects.Bytearray(b"ba"),
        objects.List([1, 2]), objects.Dict(a=1), objects.Tuple((1, 2)), objects.Set({1}), objects.Frozenset({1}),
        objects.Complex(1j), objects.List(), objects.Dict(), objects.Tuple(), objects.Set(), objects.Frozenset(),
    ]  # fmt: skip
    for obj in [*out]:
        copied = type(obj)(obj)
        copied.attribute = [obj]
        out.append(copied)
    return out


def nested() -> Any:
    """Plain data, nested in all ways."""
    return {
        "numbers": [0, 255, 256, 65535, 65536, -1, 2**31, -(2**31) - 1, 1.5, True, None],
        "text": ["", "a", "\xe9", "x" * 255, "x" * 256],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), ((1,),))],
        "sets": [set(), {1}, {1, 2, 3}, frozenset(), frozenset((1, 2)), {frozenset((1,)), (1, 2)}],
        "bytes": [b"", b"a", b"x" * 255, b"x" * 256, bytearray(b"a")],
        1: {2: {3: {}}},
        (1, "two"): [[[[1]]]],
        None: None,
    }


def where_it_ends(name: str, protocols: Sequence[int]) -> Sequence[int]:
    """Leave out of the protocols those at which a sample is endless, on PyPy: 8.0.1 crashes there now and then."""
    return [protocol for protocol in protocols if protocol >= 2] if PYPY and name == "by default" else protocols


#: One of each kind, small: every hook is tried on every one.
SAMPLES: dict[str, Make] = {
    "an atom": lambda: 7,
    "a str": lambda: "text",
    "nested": nested,
    "shared": shared,
    "cyclic list": cyclic_list,
    "cyclic dict": cyclic_dict,
    "cyclic tuples": cyclic_tuples,
    "cyclic instances": cyclic_instances,
    "cyclic sets": cyclic_sets,
    "cyclic reduce": cyclic_reduce,
    "recursive arguments": recursive_arguments,
    "instances": instances,
    "by default": by_default,
    "reduces": reduces,
    "names": names,
    "library": library,
    "subclasses": subclasses,
    "batches": lambda: [[*range(1001)], dict.fromkeys(range(1000)), {*range(1001)}, [()] * 1000],
    "large": lambda: ["x" * FRAME, [b"y" * (FRAME + 1), "z" * 60_000, ["w" * 6_000, (1, 2)], bytearray(FRAME)], "end"],
    "PickleBuffer": lambda: [pickle.PickleBuffer(b"abc"), pickle.PickleBuffer(bytearray(b"def"))],
}
