"""Random objects and uses of a pickler, aimed at where a plain subtree is written apart and put into the rest.

    (seed, name, number) --> case() --+-- VALUES    an object that a dump does not change
                                      +-- SESSIONS  several dumps of one pickler, objects that act in the middle of one
                                      +-- DILL      an object for dill, made for one dump only

A case is made again from the seed, the name and the number alone, as often as it is wanted.  Where a set of str is in
it, its order is that of the process: set PYTHONHASHSEED too.  What was made is counted in `COUNTS`.

Not for: comparing (`compare`), nor for graphs that can be read off a specification (`strategies`).
"""

from __future__ import annotations

import array
import collections
import contextlib
import copyreg
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import logging
import operator
import pathlib
import pickle
import random
import re
import sys
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fastpickle.accelerator import chunks

from . import hooked, objects
from .compare import PythonFile, Run, describe, describe_error

__all__ = ["COUNTS", "DILL", "LENGTHS", "SESSIONS", "VALUES", "Case", "Maker", "case", "offer_all", "prepared"]

FRAME = 64 * 1024  # bytes; the size at which a frame is cut, and from which on bytes and str stand outside frames

#: What was made: kinds of cases, lengths of containers, and so on.
COUNTS: collections.Counter[tuple[object, ...]] = collections.Counter()

#: Where a batch, an opcode, or what is tried differs.
LENGTHS = (0, 1, 2, 3, 4, 63, 64, 65, 66, 127, 128, 129, 998, 999, 1000, 1001, 1002, 1999, 2000, 2001, 2002, 3000, 3001)
#: From about here on a container inside may be written apart.
MIDDLE = (31, 32, 33, 47, 48, 49, 50, 51, 52, 55, 60, 63, 64, 65, 66, 80, 100, 127, 128, 129)


_per_entry = chunks._PER_ENTRY


def offer_all(on: bool) -> None:
    """Let C write, of what it can, also what Python would write as soon; or leave that to Python again."""
    chunks._PER_ENTRY = 0 if on else _per_entry  # type: ignore[misc]  # it is Final, but for tests


# The classes that are pickled.  Those that record say so with told(), and only in the run that is on.

_run: Run | None = None


def told(name: str, *more: object) -> None:
    """Write down that code of a class here was called."""
    if _run is not None:
        _run.calls.append((name, *more))


@contextlib.contextmanager
def _listening(run: Run) -> Iterator[None]:
    global _run
    _run = run
    try:
        yield
    finally:
        _run = None


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 2


@dataclasses.dataclass(frozen=True)
class FrozenPoint:
    x: Any
    y: Any = 2


@dataclasses.dataclass(slots=True)
class SlotPoint:
    x: Any
    y: Any = 2


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlotPoint:
    x: Any
    y: Any = 2


@dataclasses.dataclass
class Point3(Point):
    z: Any = dataclasses.field(default_factory=list)


class Simple:
    """An instance whose state is its __dict__."""

    def __init__(self, x: Any = None, y: Any = None) -> None:
        self.x = x
        self.y = y


class Empty:
    pass


class EmptySlots:
    __slots__ = ()


class SlotBase:
    __slots__ = ("x",)

    def __init__(self, x: Any = None, y: Any = None) -> None:
        self.x = x
        self.y = y  # noqa: PLE0237  # in the classes below


class SlotMore(SlotBase):
    __slots__ = ("__private", "y")

    def __init__(self, x: Any = None, y: Any = None) -> None:
        super().__init__(x, y)
        if x is not None:
            self.__private = y


class SlotAndDict(SlotMore):
    """State is a pair: __dict__ and slots."""


class SlotOne:
    __slots__ = "x"  # noqa: PLC0205  # allowed, if odd

    def __init__(self, x: Any = None, y: Any = None) -> None:
        if y is not None:
            self.x = x


class SlotWeak:
    __slots__ = ("__dict__", "__weakref__", "x")

    def __init__(self, x: Any = None, y: Any = None) -> None:
        self.x = x
        self.y = y


class SlotNames(SlotMore):
    __slotnames__ = ["y"]


class Shadow(SlotBase):
    """A property shadows a slot, so asking for the state runs it."""

    __slots__ = ("y",)

    @property
    def x(self) -> Any:
        told("Shadow.x")
        return 5

    def __init__(self, x: Any = None, y: Any = None) -> None:
        self.y = y


class ShadowDict(Simple):
    """A property that nobody asks for, since its name is in the __dict__ of the instance all the same."""

    @property
    def x(self) -> Any:
        told("ShadowDict.x")
        return 5

    def __init__(self, x: Any = None, y: Any = None) -> None:
        self.__dict__.update(x=x, y=y)


class TellsDict(Simple):
    """Its __dict__ is a property."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        told("TellsDict.__dict__")
        return {"x": 1}

    def __init__(self, x: Any = None, y: Any = None) -> None:
        pass


class ReadsReduce(Simple):
    """Has functions that only read it, as those that come next."""

    def __reduce__(self) -> Any:
        return ReadsReduce, (self.x, self.y)


class ReadsReduceEx(Simple):
    def __reduce_ex__(self, protocol: Any) -> Any:
        return make_simple, (self.x, protocol)


def make_simple(*args: Any) -> Any:
    return Simple()


class ReadsState(Simple):
    def __getstate__(self) -> Any:
        return {"x": self.x, "pair": (self.y, [self.x])}


class ReadsPair(Simple):
    __slots__ = ()

    def __getstate__(self) -> Any:
        return self.x, self.y

    def __setstate__(self, state: Any) -> None:
        self.x, self.y = state


class ReadsDict(Simple):
    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        del state["y"]
        state["more"] = None
        return state


class ReadsItsDict(Simple):
    def __getstate__(self) -> Any:
        return self.__dict__


class ReadsSlots(SlotBase):
    __slots__ = ("y",)

    def __init__(self, x: Any = None, y: Any = None) -> None:
        self.x, self.y = x, y


def _like_attrs(names: tuple[str, ...]) -> Any:
    def getstate(self: Any) -> Any:
        return {name: getattr(self, name) for name in names}

    return getstate


ReadsSlots.__getstate__ = _like_attrs(("x", "y"))  # type: ignore[method-assign,unused-ignore]  # as attrs does


class ReadsAsked(Simple):
    """Reads what is asked for."""

    @property
    def asked(self) -> Any:
        told("ReadsAsked.asked")
        return 5

    def __getstate__(self) -> Any:
        return self.asked, self.x


class TellsState(Simple):
    def __getstate__(self) -> Any:
        told("TellsState", describe(self.x))
        return {"x": self.x}


class TellsTuple(Simple):
    def __getstate__(self) -> Any:
        told("TellsTuple")
        return (self.x, self.y)

    def __setstate__(self, state: Any) -> None:
        self.x, self.y = state


class TellsNoState(Simple):
    def __getstate__(self) -> Any:
        told("TellsNoState")


class TellsReduce(Simple):
    def __reduce__(self) -> Any:
        told("TellsReduce", describe(self.x))
        return Simple, (self.x, self.y)


class TellsReduceEx(Simple):
    def __reduce_ex__(self, protocol: Any) -> Any:
        told("TellsReduceEx", protocol)
        return Simple, (self.x,), {"y": self.y}


class CallsObject(Simple):
    def __reduce_ex__(self, protocol: Any) -> Any:
        told("CallsObject", protocol)
        return super().__reduce_ex__(protocol)


class TellsNewArgs(Simple):
    def __new__(cls, *args: Any) -> Any:
        return super().__new__(cls)

    def __getnewargs__(self) -> Any:
        told("TellsNewArgs")
        return (self.x,)


class TellsNewArgsEx(Simple):
    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__new__(cls)

    def __getnewargs_ex__(self) -> Any:
        told("TellsNewArgsEx")
        return (self.x,), {"y": self.y}


class TellsGetattr(Simple):
    def __getattr__(self, name: str) -> Any:
        told("__getattr__", name)
        raise AttributeError(name)


class AnswersAll(Simple):
    def __getattr__(self, name: str) -> Any:
        told("AnswersAll", name)
        if name.startswith("__"):
            raise AttributeError(name)
        return 1


class TellsGetattribute(Simple):
    def __getattribute__(self, name: str) -> Any:
        told("__getattribute__", name)
        return super().__getattribute__(name)


class Lies(Simple):
    """Says that it is of another class."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        told("__class__")
        return Point

    def __init__(self, x: Any = None, y: Any = None) -> None:
        self.x = x


class Meta(type):
    def __getattr__(cls, name: str) -> Any:
        told("Meta.__getattr__", name)
        raise AttributeError(name)

    def __call__(cls, *args: Any) -> Any:
        return super().__call__(*args)


class OfMeta(metaclass=Meta):
    def __init__(self, x: Any = None, y: Any = None) -> None:
        self.x = x


class Descriptor:
    def __get__(self, obj: Any, owner: Any = None) -> Any:
        if obj is not None:  # whether the class is asked too is not compared
            told("Descriptor")
        raise AttributeError("no")


class StateDescriptor(Simple):
    """Looks as if it had a __getnewargs_ex__, until it is asked for."""

    __getnewargs_ex__ = Descriptor()


class Cached(Simple):
    @functools.cached_property
    def value(self) -> Any:
        told("Cached.value")
        return 1


class OddKey:
    """A key in a __dict__ with a hash of its own; how often it is taken is not compared."""

    def __hash__(self) -> int:
        return 5


class Fails(Simple):
    def __reduce_ex__(self, protocol: Any) -> Any:
        told("Fails")
        raise LookupError("no reduction")


class FailsState(Simple):
    def __getstate__(self) -> Any:
        told("FailsState")
        raise LookupError("no state")


class Patched0(Simple):
    """Changed between dumps, and put back."""


class Patched1(SlotBase):
    """Changed between dumps, and put back."""

    __slots__ = ("y",)


@dataclasses.dataclass
class Patched2:
    """Changed between dumps, and put back."""

    x: Any = None
    y: Any = None


class Hashed(objects.Hashed):
    """For sets: an instance whose hash is a number."""


class List(list):  # type: ignore[type-arg]
    pass


class Dict(dict):  # type: ignore[type-arg]
    pass


class Tuple(tuple):  # type: ignore[type-arg]
    pass


class Set(set):  # type: ignore[type-arg]
    pass


class Frozenset(frozenset):  # type: ignore[type-arg]
    pass


class SlotList(list):  # type: ignore[type-arg]
    __slots__ = ("x",)


class IterList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        told("IterList.__iter__", len(self))
        return super().__iter__()


class ItemsDict(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        told("ItemsDict.items", len(self))
        return super().items()


class Deque(collections.deque):  # type: ignore[type-arg]
    pass


class Ordered(collections.OrderedDict):  # type: ignore[type-arg]
    pass


class Default(collections.defaultdict):  # type: ignore[type-arg]
    pass


class Counted(collections.Counter):  # type: ignore[type-arg]
    pass


Pair = collections.namedtuple("Pair", "left right")


class PairMore(Pair):
    """With a __dict__."""


class PairSlots(Pair):
    __slots__ = ()


class PairTells(Pair):
    __slots__ = ()

    def __getnewargs__(self) -> Any:
        told("PairTells")
        return tuple(self)


class Colour(enum.Enum):
    RED = "red"
    BLUE = (0, 0, 255)
    LIST = [1, 2]  # a value without a hash
    SAME = "red"  # noqa: PIE796  # another name


class Number(enum.IntEnum):
    ONE = 1
    MANY = 10**20


class Bits(enum.Flag):
    A = 1
    B = 2
    C = 4


class IntBits(enum.IntFlag):
    A = 1
    B = 2


class StrColour(str, enum.Enum):
    RED = "red"


class TellsEnum(enum.Enum):
    ONE = 1

    def __reduce_ex__(self, protocol: Any) -> Any:
        told("TellsEnum")
        return getattr, (TellsEnum, self.name)


class Date(datetime.date):
    pass


class DateTime(datetime.datetime):
    pass


class Delta(datetime.timedelta):
    pass


class Zone(datetime.tzinfo):
    def utcoffset(self, when: Any) -> Any:
        return datetime.timedelta(hours=1)

    def __getinitargs__(self) -> Any:
        told("Zone")
        return ()


class Dec(decimal.Decimal):
    pass


class Frac(fractions.Fraction):
    pass


class Id(uuid.UUID):
    pass


class Complex(complex):
    pass


class PurePath(pathlib.PurePosixPath):
    pass


class Int(int):
    pass


class Str(str):
    pass


class Outer:
    class Inner(Simple):
        class Innermost(Simple):
            pass


# Modules, importable while prepared() lasts.

MODULE = "graft_module"
GHOST = "graft_ghost.inside"  # the package of which is not there
INSIDE = "graft_package.inside"


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Put some small modules where an import finds them."""
    names = (MODULE, GHOST, INSIDE, "graft_package")
    for name in names:
        module: Any = types.ModuleType(name)
        module.__file__ = __file__
        exec(_SOURCE, module.__dict__)
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


_SOURCE = """
limit = 5
names = ["a", "b"]

class Here:
    def __init__(self, x=None, y=None):
        self.x, self.y = x, y

def add(a, b=2):
    return a + b + limit
"""


def function(x: Any = None) -> Any:
    return x


# Atoms.

_ATOMS: tuple[Any, ...] = (
    None, True, False, 0, 1, 255, 256, 65535, 65536, -1, 2**31 - 1, 2**31, -(2**31), 2**63, 10**30, -(10**30),
    1 << 2040, 0.0, -0.0, 1.5, float("inf"), 1e300, "", "a", "key", "\xe9", "text of some length", b"", b"b", b"bytes",
    "x" * 255, "x" * 256, b"x" * 255, b"x" * 256, "\u20ac" * 85, "\u20ac" * 86, (), (1,), (1, "two"), ...,
    NotImplemented,
)  # fmt: skip
_PAYLOADS = (
    "e(", "u(", "u(u", "e(e.", "\x90(", "\x90(\x90", ".", "\x94", "\x95", "__name__", "__main__", "\\", "\n",
    "\\u0041\n", "\0", "\r", "\x1a", "\x94.", "\x85\x94.", "\x94\x85\x94.", "t\x94.", "(e", "a.", "s.", "]\x94(",
    "\ud800", "\udfff.", "\x95\x10\0\0\0\0\0\0\0", "\u2028", "\U0001f600", "\xff", "e(Ka", "u(Kau.",
)  # fmt: skip
_ATTRIBUTES = tuple(map(sys.intern, ("x", "y", "z", "name", "value", "items", "left", "__private")))


def _payload(rng: random.Random) -> Any:
    """A str, or the bytes of one, in which there are opcodes."""
    text = "".join(rng.choice(_PAYLOADS) for _ in range(rng.randrange(1, 4)))
    if rng.random() < 0.1:
        text = text * rng.choice((50, 400)) + "x" * rng.randrange(30)
    return text.encode("latin-1", "replace") if rng.random() < 0.4 else text


def _large(rng: random.Random) -> Any:
    """A str or bytes about as large as a frame."""
    n = FRAME + rng.choice((-2, -1, 0, 1, 2, -100, 100, rng.randrange(-80, 10)))
    kind = rng.randrange(8)
    if kind < 3:
        return "x" * n
    if kind < 6:
        return b"x" * n
    if kind == 6:
        return "\xe9" * (n // 2) + "x" * (n % 2)
    return "\u20ac" * (n // 3) + "\ud800"


Node = Callable[["Maker"], Any]


class Maker:
    """Makes a tree or a graph: containers before what they contain, so that parts are shared and there are cycles.

    Attributes:
        pool: what was made until now, and may come again.
    """

    def __init__(
        self,
        rng: random.Random,
        size: int,
        *,
        share: float = 0.15,
        instances: float = 0.1,
        long: int = 0,
        middle: int = 2,
        odd: float = 0.0,
    ) -> None:
        """Set how much is made.

        Args:
            rng: what chooses.
            size: containers and instances, about.
            share: how often something that is there already comes again.
            instances: how often an instance stands where a container might.
            long: how many containers may have one of `LENGTHS`.
            middle: how many may have one of `MIDDLE`.
            odd: how often something stands there that is never plain.
        """
        self.rng = rng
        self.size = size
        self.share = share
        self.instances = instances
        self.long = long
        self.middle = middle
        self.odd = odd
        self.pool: list[Any] = []
        self.made = 0

    def atom(self) -> Any:
        """An atom: one that is the same each time, or one of its own."""
        rng = self.rng
        r = rng.random()
        if r < 0.45:
            return _ATOMS[int(r / 0.45 * len(_ATOMS))]
        if r < 0.6:
            return rng.randrange(-300, 70_000)
        self.made += 1
        if r < 0.85:
            made: Any = f"text {self.made}"
        elif r < 0.92:
            made = b"bytes %d" % self.made
        elif r < 0.98:
            return self.made / 7
        else:
            made = _payload(rng)
        self.pool.append(made)
        return made

    def node(self) -> Any:
        """An atom, something made before, a container or an instance."""
        rng = self.rng
        r = rng.random()
        if self.pool and r < self.share:
            return rng.choice(self.pool)
        if self.size <= 0 or r > 0.6:
            return self.atom()
        self.size -= 1
        r = rng.random()
        if r < self.odd:
            return odd(self)
        if r < self.odd + self.instances:
            return instance(self)
        return self.container()

    def length(self) -> int:
        """A length, most of them small."""
        rng = self.rng
        if self.long > 0 and rng.random() < 0.5:
            self.long -= 1
            return rng.choice(LENGTHS)
        r = rng.random()
        if r < 0.25 and self.middle > 0:
            self.middle -= 1
            return rng.choice(MIDDLE)
        return rng.randrange(5) if r < 0.85 else rng.randrange(20)

    def offered(self, n: int = 0) -> Any:
        """A container of so many items that it may be written apart, also where `n` things are in the memo."""
        COUNTS["large enough",] += 1
        return self.container(self.rng.choice(_COMMON), self.rng.choice(MIDDLE) + n)

    def items(self, n: int) -> list[Any]:
        """A list of `n` nodes, or a run of one kind with others in it."""
        rng = self.rng
        if (n <= 12 and rng.random() < 0.8) or (n <= 130 and rng.random() < 0.2):
            return [self.node() for _ in range(n)]
        style = rng.randrange(len(_RUNS) if n < 70 or rng.random() < 0.15 else _FAST_RUNS)
        found: list[Any] = _RUNS[style](self, n)
        if n and rng.random() < 0.4:
            for _ in range(rng.randrange(1, 4)):
                at = rng.choice((0, n - 1, n // 2, 999, 1000, rng.randrange(n)))
                if at < n:
                    found[at] = self.node()
        return found

    def keys(self, n: int) -> list[Any]:
        """A list of `n` keys, none like another, whose hash is no address."""
        rng = self.rng
        style = rng.randrange(8)
        keys: list[Any]
        if style < 3:
            keys = [f"k{i}" for i in range(n)]
        elif style < 5:
            keys = [*range(n)]
        elif style == 5:
            keys = [(i, "pair") for i in range(n)]
        elif style == 6:
            keys = [b"%d" % i for i in range(n)]
        else:
            keys = [
                (i, f"k{i}", i / 2 + 0.25, b"%d" % i, (i,), frozenset((i, -1 - i)), Pair(i, i))[i % 7] for i in range(n)
            ]
        if keys and self.pool and rng.random() < 0.3:
            known = rng.choice(self.pool)
            if type(known) in (str, bytes) and known not in keys:
                keys[rng.randrange(n)] = known
        if len(keys) < 30:
            self.pool += keys
        elif keys:
            self.pool.append(keys[-1])
        return keys

    def container(self, name: str | None = None, n: int | None = None) -> Any:
        """A container of a kind and a length, or of any."""
        if name is None:
            names = _COMMON if self.rng.random() < 0.7 else _NAMES
            name = names[int(self.rng.random() * len(names))]
        if n is None:
            n = self.length()
        if n in _LENGTHS:
            COUNTS["length", name, n] += 1
        return CONTAINERS[name](self, n)

    def put_in(self, root: Any, obj: Any) -> None:
        """Put an object somewhere into what was made, and certainly where it is reached."""
        rng = self.rng
        places = [x for x in self.pool if type(x) in _CHANGEABLE and x is not root] if rng.random() < 0.7 else []
        _insert(rng, rng.choice(places) if places else root, obj)
        if places:
            _insert(rng, root, obj)


_LENGTHS = frozenset(LENGTHS)

# Runs of n items of one kind; the first of them are fast.
_RUNS: tuple[Callable[[Maker, int], list[Any]], ...] = (
    lambda m, n: [*range(n)],
    lambda m, n: [0] * n,
    lambda m, n: [i * 40 for i in range(n)],
    lambda m, n: [None] * n,
    lambda m, n: ["same"] * n,
    lambda m, n: [m.node()] * n,
    lambda m, n: [f"r{i}" for i in range(n)],
    lambda m, n: [i / 4 for i in range(n)],
    lambda m, n: [(i, f"s{i}", None, True, b"b", 0.5, -i)[i % 7] for i in range(n)],
    lambda m, n: [[i] for i in range(n)],
    lambda m, n: [(i, "same") for i in range(n)],
    lambda m, n: [{"a": i, "b": "same"} for i in range(n)],
    lambda m, n: [Point(i) for i in range(n)],
    lambda m, n: [SlotPoint(i, "same") for i in range(n)],
    lambda m, n: [datetime.date(2000, 1, 1 + i % 28) for i in range(n)],
    lambda m, n: [Pair(i, "same") for i in range(n)],
    lambda m, n: [{i} for i in range(n)],
    lambda m, n: [Colour.RED, Colour.BLUE, Bits.A][:n] * (n // 3) + [Colour.RED] * (n - 3 * (n // 3)),
    lambda m, n: [(Point(i), [i], decimal.Decimal(i), 1j)[i % 4] for i in range(n)],
    lambda m, n: [b"%d" % i for i in range(n)],
    lambda m, n: [() for i in range(n)],
)
_FAST_RUNS = 9


# Containers: (maker, n) -> one of n items.


def _of_items(t: Callable[[], Any]) -> Callable[[Maker, int], Any]:
    def make(m: Maker, n: int) -> Any:
        obj = t()
        m.pool.append(obj)
        obj.extend(m.items(n))
        return obj

    return make


def _of_pairs(t: Callable[[], Any]) -> Callable[[Maker, int], Any]:
    def make(m: Maker, n: int) -> Any:
        obj = t()
        m.pool.append(obj)
        keys = m.keys(n)
        for key, value in zip(keys, m.items(n), strict=True):
            obj[key] = value
        return obj

    return make


def _whole(t: Callable[[Any], Any]) -> Callable[[Maker, int], Any]:
    def make(m: Maker, n: int) -> Any:
        obj = t(m.items(n))
        m.pool.append(obj)
        return obj

    return make


def _of_keys(t: Any) -> Callable[[Maker, int], Any]:
    def make(m: Maker, n: int) -> Any:
        keys = m.keys(n)
        member = None
        if n and m.rng.random() < 0.1:
            member = Hashed(m.rng.randrange(1000))
            keys[m.rng.randrange(n)] = member
        obj = t(keys)
        if member is not None:
            m.pool.append(member)
            member.__dict__["inside"] = obj if m.rng.random() < 0.5 else m.items(1)
        m.pool.append(obj)
        return obj

    return make


def _with_state(make: Callable[[Maker, int], Any]) -> Callable[[Maker, int], Any]:
    def made(m: Maker, n: int) -> Any:
        obj = make(m, n)
        if m.rng.random() < 0.4:
            setattr(obj, m.rng.choice(_ATTRIBUTES), m.node())
        return obj

    return made


def _deque(m: Maker, n: int) -> Any:
    return _of_items(lambda: collections.deque(maxlen=n + m.rng.randrange(2) or None))(m, n)


def _defaultdict(m: Maker, n: int) -> Any:
    return _of_pairs(lambda: collections.defaultdict(m.rng.choice((None, list, int, Point, function))))(m, n)


#: Each kind of container: (maker, n) -> one of n items.
CONTAINERS: dict[str, Callable[[Maker, int], Any]] = {
    "list": _of_items(list),
    "dict": _of_pairs(dict),
    "tuple": _whole(tuple),
    "set": _of_keys(set),
    "frozenset": _of_keys(frozenset),
    "deque": _deque,
    "OrderedDict": _of_pairs(collections.OrderedDict),
    "defaultdict": _defaultdict,
    "Counter": _of_pairs(collections.Counter),
    "List": _with_state(_of_items(List)),
    "Dict": _with_state(_of_pairs(Dict)),
    "Tuple": _with_state(_whole(Tuple)),
    "Set": _with_state(_of_keys(Set)),
    "Frozenset": _with_state(_of_keys(Frozenset)),
    "Deque": _with_state(_of_items(Deque)),
    "Ordered": _with_state(_of_pairs(Ordered)),
    "Default": _with_state(_of_pairs(lambda: Default(list))),
    "Counted": _with_state(_of_pairs(Counted)),
    "SlotList": _of_items(SlotList),
    "state": lambda m, n: _with_dict(m, Simple(), n),
}
_NAMES = [*CONTAINERS]
_COMMON = ["list", "list", "dict", "dict", "tuple", "tuple", "set", "frozenset", "state"]
_CHANGEABLE = frozenset((list, dict, collections.deque, List, Dict, collections.OrderedDict, Simple))


def _with_dict(m: Maker, obj: Any, n: int) -> Any:
    m.pool.append(obj)
    obj.__dict__.update((sys.intern(f"attribute{i}"), x) for i, x in enumerate(m.items(min(n, 200))))
    return obj


def _insert(rng: random.Random, place: Any, obj: Any) -> None:
    """Put an object into a container, at any place of it."""
    if isinstance(place, (list, collections.deque)):
        n = len(place)
        at = rng.choice((0, n, n // 2, 999, 1000, rng.randrange(n + 1)))
        if isinstance(place, list) or place.maxlen is None or n < place.maxlen:
            place.insert(min(at, n), obj)
    elif isinstance(place, dict):
        if place and rng.random() < 0.5:
            place[rng.choice([*place])] = obj
        else:
            place[f"new {len(place)}"] = obj
    elif type(place) is Simple:
        place.y = obj


# Instances: maker -> one.


def _of_two(t: Any) -> Node:
    def make(m: Maker) -> Any:
        obj = t(m.node(), m.node())
        m.pool.append(obj)
        return obj

    return make


def _cyclic(t: Any) -> Node:
    def make(m: Maker) -> Any:
        obj = t(None)
        m.pool.append(obj)
        obj.x = m.node()
        if m.rng.random() < 0.2:
            obj.y = obj
        return obj

    return make


def _in_dict(m: Maker) -> Any:
    """An instance with a special name in its __dict__."""
    obj = m.rng.choice((Simple, Point, SlotWeak))(m.node(), m.node())
    name = m.rng.choice(
        ("__getstate__", "__reduce_ex__", "__reduce__", "__getnewargs__", "__getnewargs_ex__", "__class__", "__dict__")
    )
    value: Any = {
        "__getstate__": functools.partial(_told_value, "getstate", {"x": 1}),
        "__reduce_ex__": functools.partial(_told_value, "reduce_ex", (Simple, (1,))),
        "__reduce__": functools.partial(_told_value, "reduce", (Simple, (2,))),
        "__getnewargs__": functools.partial(_told_value, "newargs", ()),
        "__getnewargs_ex__": functools.partial(_told_value, "newargs_ex", ((), {})),
    }.get(name, 5)
    obj.__dict__[name] = value
    m.pool.append(obj)
    return obj


def _told_value(name: str, value: Any, *args: Any) -> Any:
    told(name, *args)
    return value


def _odd_keys(m: Maker) -> Any:
    """An instance with keys in its __dict__ that are no names, or names that are no str."""
    obj = Simple(m.node(), m.node())
    obj.__dict__[m.rng.choice((5, None, Str("x2"), (1,), "not a name", "", OddKey()))] = m.node()
    m.pool.append(obj)
    return obj


def _its_dict(m: Maker) -> Any:
    """An instance beside its own __dict__."""
    obj = Simple(m.node(), m.node())
    m.pool += [obj, obj.__dict__]
    return m.rng.choice(([obj, obj.__dict__], [obj.__dict__, obj], {"a": obj.__dict__, "b": obj}))


#: Instances that a pickler may know to run nobody's code.
QUIET: dict[str, Node] = {
    "Simple": _cyclic(Simple),
    "Point": _of_two(Point),
    "Point, cyclic": _cyclic(Point),
    "FrozenPoint": _of_two(FrozenPoint),
    "ReadsReduce": _of_two(ReadsReduce),
    "ReadsReduceEx": _of_two(ReadsReduceEx),
    "ReadsState": _of_two(ReadsState),
    "ReadsState, cyclic": _cyclic(ReadsState),
    "ReadsPair": _of_two(ReadsPair),
    "ReadsDict": _of_two(ReadsDict),
    "ReadsItsDict": _cyclic(ReadsItsDict),
    "ReadsSlots": _of_two(ReadsSlots),
    "SlotPoint": _of_two(SlotPoint),
    "FrozenSlotPoint": _of_two(FrozenSlotPoint),
    "Point3": lambda m: Point3(m.node(), m.node(), m.items(2)),
    "Empty": lambda m: Empty(),
    "EmptySlots": lambda m: EmptySlots(),
    "SlotMore": _of_two(SlotMore),
    "SlotMore, unset": lambda m: SlotMore(),
    "SlotAndDict": lambda m: _with_dict(m, SlotAndDict(m.node(), m.node()), 2),
    "SlotAndDict, no dict": _of_two(SlotAndDict),
    "SlotOne": _of_two(SlotOne),
    "SlotOne, unset": lambda m: SlotOne(),
    "SlotWeak": _of_two(SlotWeak),
    "SlotNames": _of_two(SlotNames),
    "ShadowDict": _of_two(ShadowDict),
    "StateDescriptor": _of_two(StateDescriptor),
    "Cached": _of_two(Cached),
    "Inner": _of_two(Outer.Inner.Innermost),
    "of a module": lambda m: sys.modules[m.rng.choice((MODULE, INSIDE))].Here(m.node(), 1),
    "in __dict__": _in_dict,
    "odd keys": _odd_keys,
    "its __dict__": _its_dict,
    "Pair": _of_two(Pair),
    "PairMore": lambda m: _with_dict(m, PairMore(m.node(), m.node()), 2),
    "PairSlots": _of_two(PairSlots),
    "Typed": lambda m: objects.Typed(1, "text"),
    "enum": lambda m: m.rng.choice([*Colour, *Number, *Bits, Bits.A | Bits.C, *IntBits, IntBits(3), *StrColour]),
    "date": lambda m: datetime.date(2000 + m.rng.randrange(30), 1, 1),
    "datetime": lambda m: datetime.datetime(2000, 1, 1, 12, m.rng.randrange(60), fold=m.rng.randrange(2)),
    "datetime, zone": lambda m: datetime.datetime(
        2000, 1, 1, tzinfo=m.rng.choice((_UTC, datetime.timezone(datetime.timedelta(hours=2), "name"), Zone()))
    ),
    "time": lambda m: datetime.time(1, 2, 3, m.rng.randrange(10**6), tzinfo=m.rng.choice((None, _UTC))),
    "timedelta": lambda m: datetime.timedelta(m.rng.randrange(-5, 5), 7, m.rng.randrange(10**6)),
    "timezone": lambda m: m.rng.choice((_UTC, datetime.timezone(datetime.timedelta(minutes=5)))),
    "Date": lambda m: _with_dict(m, Date(2000, 1, 1), m.rng.randrange(2)),
    "DateTime": lambda m: _with_dict(m, DateTime(2000, 1, 1, tzinfo=_UTC), m.rng.randrange(2)),
    "Delta": lambda m: _with_dict(m, Delta(1), m.rng.randrange(2)),
    "Decimal": lambda m: decimal.Decimal(m.rng.choice(("1.5", "-0", "1E+10", "NaN", "sNaN", "Infinity", "12345" * 9))),
    "Dec": lambda m: _with_dict(m, Dec("1.5"), m.rng.randrange(2)),
    "Fraction": lambda m: fractions.Fraction(m.rng.randrange(-9, 9), m.rng.randrange(1, 9)),
    "Frac": lambda m: Frac(1, 3),
    "UUID": lambda m: uuid.UUID(int=m.rng.getrandbits(128), is_safe=m.rng.choice([*uuid.SafeUUID])),
    "Id": lambda m: Id(int=5),
    "Path": lambda m: m.rng.choice((pathlib.Path, pathlib.PurePosixPath, pathlib.PureWindowsPath))(
        m.rng.choice(("", ".", "/", "/a/b", "a/b/c", "a/../b", "c:/x", "//host/share/x"))
    ),
    "PurePath": lambda m: PurePath("a/b"),
    "complex": lambda m: complex(m.rng.randrange(5), -0.0),
    "Complex": lambda m: Complex(1j),
    "range": lambda m: range(m.rng.randrange(5), m.rng.choice((10, 10**20)), m.rng.randrange(1, 4)),
    "Int": lambda m: Int(m.rng.choice((0, 5, 10**20))),
    "Str": lambda m: Str("text"),
    "bytearray": lambda m: bytearray(m.rng.choice((0, 1, 255, 256))),
    "array": lambda m: array.array("i", range(m.rng.randrange(4))),
    "SimpleNamespace": lambda m: types.SimpleNamespace(x=m.node(), y=m.node()),
    "UserDict": lambda m: collections.UserDict({"x": m.node()}),
    "ChainMap": lambda m: collections.ChainMap({"x": m.node()}, {}),
    "exception": lambda m: m.rng.choice((ValueError, OSError, KeyError, StopIteration))(m.atom(), m.atom()),
    "partial": lambda m: functools.partial(function, m.node()),
    "itemgetter": lambda m: operator.itemgetter(1, "a"),
    "slice": lambda m: slice(1, m.rng.randrange(5)),
}
_UTC = datetime.timezone.utc

#: Instances whose class has code that runs when they are pickled, and tells of it.
TELLING: dict[str, Node] = {
    "Shadow": _of_two(Shadow),
    "TellsDict": _of_two(TellsDict),
    "ReadsAsked": _of_two(ReadsAsked),
    "TellsState": _cyclic(TellsState),
    "TellsTuple": _of_two(TellsTuple),
    "TellsNoState": _of_two(TellsNoState),
    "TellsReduce": _of_two(TellsReduce),
    "TellsReduceEx": _cyclic(TellsReduceEx),
    "CallsObject": _cyclic(CallsObject),
    "TellsNewArgs": _of_two(TellsNewArgs),
    "TellsNewArgsEx": _of_two(TellsNewArgsEx),
    "TellsGetattr": _of_two(TellsGetattr),
    "AnswersAll": _of_two(AnswersAll),
    "TellsGetattribute": _of_two(TellsGetattribute),
    "OfMeta": _of_two(OfMeta),
    "StateDescriptor": _of_two(StateDescriptor),
    "in __dict__": _in_dict,
    "IterList": lambda m: IterList(m.items(m.length())),
    "ItemsDict": lambda m: ItemsDict(zip(m.keys(3), m.items(3), strict=True)),
    "PairTells": _of_two(PairTells),
    "TellsEnum": lambda m: TellsEnum.ONE,
    "Zone": lambda m: datetime.datetime(2000, 1, 1, tzinfo=Zone()),
    "Cached": _of_two(Cached),
    "ShadowDict": _of_two(ShadowDict),
}
_QUIET_NAMES = [*QUIET]
_TELLING_NAMES = [*TELLING]


def instance(m: Maker, names: list[str] = _QUIET_NAMES) -> Any:
    """An instance of any kind."""
    name = m.rng.choice(names)
    COUNTS["instance", name] += 1
    return (QUIET if names is _QUIET_NAMES else TELLING)[name](m)


def _lambda() -> Callable[[], Any]:
    return lambda: None


class _Generator:
    """Fails to be pickled, in the middle of what is."""

    def __reduce__(self) -> Any:
        return Simple, ([1, "text", (x for x in ())],)


_ODD: tuple[Callable[[Maker], Any], ...] = (
    lambda m: function,
    lambda m: Point,
    lambda m: int,
    lambda m: len,
    lambda m: objects.Reduced((objects.make, (m.node(), 1))),
    lambda m: objects.Reduced((objects.make, (), {"state": m.node()})),
    lambda m: objects.Reduced(lambda self: (List, (), None, iter([1, "text"]), iter(()))),
    lambda m: objects.NewArgsEx(m.node(), key=m.node()),
    lambda m: objects.GetState(x=m.node()),
    lambda m: objects.Viaduct(m.node()),
    lambda m: [].append,
    lambda m: objects.OfMeta.method,
    lambda m: type(None),
    lambda m: TellsReduce(m.node(), 1),
    lambda m: Shadow(1, m.node()),
    lambda m: pickle.PickleBuffer(b"buffer"),
)
_FAILING: tuple[Callable[[Maker], Any], ...] = (
    lambda m: _lambda(),
    lambda m: type("Local", (), {})(),
    lambda m: Fails(1, 2),
    lambda m: FailsState(1, 2),
    lambda m: _Generator(),
    lambda m: sys,
    lambda m: (x for x in ()),
    lambda m: types.MappingProxyType({}),
    lambda m: objects.Reduced((1, 2)),
    lambda m: objects.Reduced((objects.make, (), None, 5)),
    lambda m: objects.missing,
    lambda m: objects.misnamed,
    lambda m: collections.defaultdict(_lambda(), {"a": 1}),
    lambda m: Lies(m.node()),
    lambda m: memoryview(b"abc"),
    lambda m: types.SimpleNamespace(x=_lambda()),
    lambda m: Point(1, [_lambda()]),
    lambda m: {"a": [1, {"b": (1, _lambda())}]},
    lambda m: sys.modules[GHOST].Here(1),
    lambda m: [sys.modules[GHOST].add, sys.modules[GHOST].Here],
)


def odd(m: Maker) -> Any:
    """Something that is never plain, but can be pickled, most of it at every protocol."""
    obj = m.rng.choice(_ODD)(m)
    m.pool.append(obj)
    return obj


# Values.  Each is a function from a random.Random to an object, which the dump does not change.


def _plain(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(2, 16), instances=rng.choice((0, 0, 0.1, 0.4)), odd=rng.choice((0, 0, 0, 0.1)))
    return m.container()


def _fill(rng: random.Random) -> list[Any]:
    """Things whose opcodes lead to a certain place in a frame."""
    kind = rng.randrange(10)
    n = rng.randrange(65_400, 65_561)
    if kind < 3:
        return ["f" * n]
    if kind == 3:
        return [b"f" * n]
    if kind == 4:
        return ["\xe9" * (n // 2) + "f" * (n % 2)]
    if kind == 5:
        return ["f" * 40_000, b"g" * (n - 40_000 - rng.randrange(30))]
    if kind == 6:  # the frame begins after this one
        return [_large(rng), *[None] * rng.randrange(71)]
    if kind == 7:
        return ["f" * rng.choice((rng.randrange(71), rng.randrange(245, 271)))]
    if kind == 8:
        return [[*range(256)] * 32, "f" * (n - 16_384 - rng.randrange(20)), *[1] * rng.randrange(20)]
    return [*[None] * rng.choice((rng.randrange(71), rng.randrange(245, 271)))]


def _at_frame_edge(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(1, 10), instances=rng.choice((0, 0.1, 0.5)), long=rng.random() < 0.08)
    front = m.items(rng.randrange(3)) if rng.random() < 0.3 else []
    r = rng.random()
    subtree = m.offered() if r < 0.55 else m.container() if r < 0.85 else instance(m)
    after = [rng.choice(m.pool or [1]), m.node(), (subtree,), subtree, "end"][: rng.randrange(6)]
    parts = [*front, *_fill(rng), subtree, *after]
    if rng.random() < 0.3:
        parts += [*_fill(rng), m.offered() if rng.random() < 0.4 else m.container(), subtree]
    if rng.random() < 0.5:
        parts.insert(rng.choice((0, len(parts), rng.randrange(len(parts) + 1))), odd(m))
    shape = rng.randrange(8)
    if shape < 4:
        return parts
    if shape == 4:
        return tuple(parts)
    if shape == 5:
        return dict(enumerate(parts))
    if shape == 6:
        return Simple(parts, "y")
    return [1, (parts, {"again": parts})]


def _memo_sizes(rng: random.Random) -> int:
    return rng.choice((0, 1, 2, 253, 254, 255, 256, 257, rng.randrange(245, 262))) if rng.random() < 0.97 else 3000


def _with_memo(rng: random.Random) -> Any:
    """Many things in the memo before a subtree that holds some of them."""
    m = Maker(rng, rng.randrange(1, 10), share=0.35, instances=rng.choice((0, 0.3)))
    n = _memo_sizes(rng)
    known: list[Any] = [f"m{i}" for i in range(n)] if rng.random() < 0.7 else [(i, i) for i in range(n)]
    m.pool += known[:2] + known[-3:] + known[250:258]
    first = odd(m) if rng.random() < 0.5 else None
    inner = m.offered(n + rng.randrange(3)) if n < 300 and rng.random() < 0.5 else m.container()
    return [first, known, inner, *m.items(2), known, (m.container(), first)]


def _lengths(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(1, 6), share=0.2, instances=0.1, long=1)
    made = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(_NAMES)
        made.append(m.container(name, rng.choice(LENGTHS if rng.random() < 0.6 else LENGTHS[:12])))
    if len(made) == 1 and rng.random() < 0.5:
        return made[0]
    made += [m.node(), rng.choice(made)]
    if rng.random() < 0.4:
        made.insert(rng.randrange(len(made)), odd(m))
    return made if rng.random() < 0.7 else tuple(made)


def _long_nested(rng: random.Random) -> Any:
    """Containers of an edge's length in one another, the last item of each being the next one."""
    m = Maker(rng, 2)
    obj: Any = m.node()
    for _ in range(rng.randrange(2, 4)):
        n = rng.choice((64, 128, 999, 1000, 1001, 2000, 2001))
        kind = rng.randrange(4)
        items: list[Any] = [0] * n if rng.random() < 0.5 else [*range(n)]
        items[rng.choice((0, n - 1, n - 1))] = obj
        obj = (
            items
            if kind == 0
            else dict(enumerate(items))
            if kind == 1
            else tuple(items)
            if kind == 2
            else collections.OrderedDict(enumerate(items))
        )
    return obj if rng.random() < 0.5 else [function, obj, obj]


def _sets(rng: random.Random) -> Any:
    """A frozenset of any length in small sets: below protocol 4 it is reduced to a list."""
    m = Maker(rng, 2)
    inner: Any = frozenset(range(rng.choice(LENGTHS)))
    if rng.random() < 0.3:
        inner = (m.atom(), inner)
    rows = [{i, inner} if rng.random() < 0.1 else {i} for i in range(rng.choice((3, 60, 200, 1001)))]
    return rows if rng.random() < 0.5 else [odd(m), rows, inner]


def _strings(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(1, 5), instances=0.2)
    m.pool += [_payload(rng) for _ in range(3)]
    if rng.random() < 0.4:
        m.pool.append(_large(rng))
        COUNTS["large strings",] += 1
    m.share = 0.5
    parts = [*m.items(rng.randrange(1, 5)), *m.pool[: rng.randrange(5)]]
    rng.shuffle(parts)
    if rng.random() < 0.15:
        parts += _RUNS[rng.randrange(_FAST_RUNS)](m, rng.choice((996, 998, 1000, 1001, 2000)))
    if rng.random() < 0.4:
        parts.insert(rng.randrange(len(parts) + 1), odd(m))
    shape = rng.randrange(4)
    if shape == 0:
        return {f"k{i}": x for i, x in enumerate(parts)}
    if shape == 1:
        return {x: i for i, x in enumerate(parts) if type(x) in (str, bytes)}
    return (parts, (parts[0], parts[-1])) if shape == 2 else parts


def _payload_runs(rng: random.Random) -> Any:
    """Long containers of strings that look like the opcodes between batches, and of lengths where they stand."""
    n = rng.choice((999, 1000, 1001, 1002, 2000, 2001, 3001))
    payload = _payload(rng)
    shape = rng.randrange(4)
    items: Any = [payload] * n if shape < 2 else dict.fromkeys(range(n), payload) if shape == 2 else {*range(n)}
    extra = [rng.choice(_PAYLOADS) for _ in range(3)]
    return rng.choice(([items, *extra], [*extra, items], items, {"e(": items, "u(": extra}, [items, function, items]))


def _instances(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(2, 12), instances=0.6, share=0.25, odd=rng.choice((0, 0.1)))
    made = [instance(m) for _ in range(rng.randrange(1, 6))]
    made += [rng.choice(made), m.node()]
    return made if rng.random() < 0.8 else {"first": made, "second": made[0]}


def _many_instances(rng: random.Random) -> Any:
    """A list or dict of many instances of a few classes, as of a table of records."""
    m = Maker(rng, 0, share=0.1)
    n = rng.choice((5, 20, 64, 65, 128)) if rng.random() < 0.95 else rng.choice((1000, 1001))
    names = rng.sample(_QUIET_NAMES, rng.choice((1, 1, 2, 3)))
    items = [QUIET[names[i % len(names)]](m) for i in range(n)]
    if rng.random() < 0.3:
        _insert(rng, items, odd(m))
    shape = rng.randrange(4)
    return items if shape < 2 else dict(enumerate(items)) if shape == 2 else (items, items[0])


def _almost_plain(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(5, 25), instances=rng.choice((0, 0.1)), long=rng.random() < 0.15)
    root = m.container(rng.choice(("list", "dict")), rng.randrange(2, 9))
    if rng.random() < 0.5:
        m.put_in(root, m.offered())
    for _ in range(rng.choice((1, 1, 1, 3))):
        m.put_in(root, odd(m))
    return root


def _refused(rng: random.Random) -> Any:
    """Long runs in which few things are not plain, near the ends of the batches or anywhere."""
    m = Maker(rng, 3, share=0.2)
    n = rng.choice((48, 60, 130, 999, 1000, 1001, 1500, 2000, 2001, 2500, 3000, 3001, 4050))
    is_list = rng.random() < 0.6
    items: Any = _RUNS[rng.randrange(_FAST_RUNS)](m, n)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.choice((n - 1, rng.randrange(n), 1000 * rng.randrange(1, 4) + rng.randrange(-4, 4), rng.randrange(4)))
        r = rng.random()
        items[min(at, n - 1)] = odd(m) if r < 0.6 else rng.choice(_FAILING)(m) if r < 0.75 else m.container()
    obj = (
        items if is_list else dict(enumerate(items)) if rng.random() < 0.7 else dict.fromkeys(map(str, range(n)), items)
    )
    if rng.random() < 0.1:
        obj = rng.choice((tuple, collections.deque, List))(items)
    m.pool.append(obj)
    return rng.choice((obj, [obj, obj], [m.offered(), obj, m.offered(), obj], {"a": [m.node(), obj], "b": items}))


def _many_offers(rng: random.Random) -> Any:
    """Containers that are taken and refused in turns, with parts that they share."""
    m = Maker(rng, 10, share=0.3, odd=0.05)
    parts = []
    for i in range(rng.choice((3, 10, 20))):
        part = m.offered(rng.choice((0, 0, 40 * i)))
        if rng.random() < 0.3:
            _insert(rng, part, odd(m))
        parts.append(part)
    return parts if rng.random() < 0.7 else dict(enumerate(parts))


def _failing(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(2, 15), instances=rng.choice((0, 0.2)), long=rng.random() < 0.1)
    root = m.container(rng.choice(("list", "dict", "tuple", "state")), rng.randrange(1, 6))
    root = [root] if type(root) is tuple else root
    if rng.random() < 0.3:
        m.put_in(root, m.offered())
    if rng.random() < 0.1:
        root = [_fill(rng), root]
    m.put_in(root, rng.choice(_FAILING)(m))
    return root


def _cycles(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(3, 12), share=0.45, instances=0.2, odd=rng.choice((0, 0.1)))
    m.pool.append(hub := [])
    hub += m.items(rng.randrange(1, 5) if rng.random() < 0.6 else 55)
    hub.append((hub, *m.items(rng.randrange(4))))
    return rng.choice((hub, (hub, hub), {"a": hub}, [1, [hub, {"b": (hub,)}]], hub[-1], [hub[-1], odd(m), hub]))


def _deep(rng: random.Random) -> Any:
    m = Maker(rng, 3)
    obj: Any = m.node()
    wraps: list[Callable[[Any], Any]] = [
        lambda x: [x],
        lambda x: (x,),
        lambda x: {"k": x},
        lambda x: [1, x, "after"],
        lambda x: (1, 2, 3, x),
        lambda x: Point(x),
        lambda x: {1: x, 2: (x,)},
        lambda x: SlotPoint(x),
        lambda x: collections.deque([x]),
    ]
    used = rng.sample(wraps, rng.choice((1, 1, 2, 4)))
    for _ in range(rng.choice((10, 40, rng.randrange(60), rng.randrange(200)))):
        obj = rng.choice(used)(obj)
    return [obj, odd(m)] if rng.random() < 0.3 else obj


def _wide(rng: random.Random) -> Any:
    """A subtree of more than one frame."""
    n = rng.choice((500, 1000, 1001, 1500))
    size = rng.choice((30, 70, 140))
    items: list[Any] = [f"{i:{size}}" for i in range(n)]
    if rng.random() < 0.5:
        items[rng.randrange(n)] = _large(rng)
    if rng.random() < 0.3:
        items[rng.randrange(n)] = [items[0], {"key": items[-1]}, Point(items[1], 2)]
    root: Any = items if rng.random() < 0.5 else {x: i for i, x in enumerate(items) if type(x) is str}
    return rng.choice((root, [root, items[0], root], [function, *_fill(rng), root, items[-1]], (root, {"again": root})))


def _huge(rng: random.Random) -> Any:
    """More than a cap on what is held might be."""
    block = rng.choice((1 << 20, 3 << 20))
    items: list[Any] = [bytes((i % 256,)) * block for i in range((66 << 20) // block)]
    return rng.choice(([items, items[0], items[-1]], [function, items, items[3]], {"a": (1, items)}))


Value = Callable[[random.Random], Any]

#: Each kind of value, with how often it comes.
VALUES: dict[str, tuple[float, Value]] = {
    "plain": (20, _plain),
    "frame edge": (22, _at_frame_edge),
    "memo": (5, _with_memo),
    "lengths": (7, _lengths),
    "sets": (2, _sets),
    "long nested": (1.5, _long_nested),
    "strings": (7, _strings),
    "payload runs": (2, _payload_runs),
    "instances": (12, _instances),
    "many instances": (4, _many_instances),
    "almost plain": (10, _almost_plain),
    "refused": (3, _refused),
    "many offers": (3, _many_offers),
    "failing": (7, _failing),
    "cycles": (10, _cycles),
    "deep": (2, _deep),
    "wide": (1.5, _wide),
    "huge": (0.004, _huge),
}


# Sessions: (random.Random, run) -> None, with the pickler in run.pickler.


def _dump(run: Run, obj: Any) -> None:
    """Dump an object, and go on after a failure."""
    run.kept.setdefault("alive", []).append(obj)
    try:
        run.pickler.dump(obj)
    except RecursionError:
        raise
    except Exception as exc:
        run.calls.append(("dump failed", repr(describe_error(exc))))


def _look(run: Run) -> None:
    """Write down what is in the memo."""
    memo = run.pickler.memo
    seen = type(memo).__name__, len(memo)
    if type(memo) is dict:
        if len(memo) < 400:
            content: Any = [(index, describe(x)) for index, x in memo.values()]
        else:
            content = [index for index, x in memo.values()]
        run.calls.append(("memo", *seen, all(id(x) == key for key, (_, x) in memo.items()), repr(content)))
    else:
        run.calls.append(("memo", *seen))


def _other(run: Run, m: Maker) -> Any:
    """Another pickler of the same class that has dumped something."""
    other = type(run.pickler)(io.BytesIO(), run.protocol)
    obj = [*m.pool[:3], "other's", (1, "pair")]
    run.kept["other"] = other, obj
    other.dump(obj)
    return other


def _kept_memo(run: Run, m: Maker) -> None:
    """Look at a memo that was taken before a dump, and may be the one still."""
    memo = run.kept.get("memo")
    if memo is not None:
        run.calls.append(("kept memo", len(memo), memo is run.pickler.memo))
    run.kept["memo"] = run.pickler.memo


def _set_memo(run: Run, memo: Any) -> None:
    run.kept.setdefault("memos", []).append(run.pickler.memo)
    run.pickler.memo = memo


def _known(run: Run, m: Maker) -> None:
    """Put something into the memo by hand, where it comes next or after a gap."""
    obj = m.container()
    index = len(run.pickler.memo) + m.rng.choice((0, 0, 5, 300))
    run.pickler.memo[id(obj)] = index, obj


def _forget(run: Run, m: Maker) -> None:
    memo = run.pickler.memo
    if memo:
        run.kept.setdefault("forgotten", []).append(memo.pop([*memo][m.rng.randrange(len(memo))]))


#: What may happen to a pickler between two dumps.
_BETWEEN: tuple[Callable[[Run, Maker], Any], ...] = (
    lambda run, m: None,
    lambda run, m: None,
    lambda run, m: _look(run),
    lambda run, m: _look(run),
    _kept_memo,
    _kept_memo,
    lambda run, m: (run.kept.setdefault("old", []).append([*run.pickler.memo.values()]), run.pickler.clear_memo()),
    lambda run, m: _set_memo(run, run.pickler.memo.copy()),
    lambda run, m: _set_memo(run, {}),
    lambda run, m: _set_memo(run, _other(run, m).memo.copy()),
    lambda run, m: _set_memo(run, _other(run, m).memo),
    lambda run, m: run.pickler.memo.update(_other(run, m).memo),
    _known,
    _forget,
    lambda run, m: setattr(run.pickler, "fast", not run.pickler.fast),
    lambda run, m: run.calls.append(("vars", len(run.pickler.memo), *sorted(vars(run.pickler)))),
    lambda run, m: setattr(run.pickler, "dispatch_table", {complex: lambda x: (function, (x.real,))}),
    lambda run, m: setattr(run.pickler, "dispatch_table", copyreg.dispatch_table.copy()),
    lambda run, m: vars(run.pickler).pop("dispatch_table", None),
    lambda run, m: _dump(run, [*m.pool[:3], _lambda(), 5]),
    lambda run, m: _dump(run, {"deep": [m.container(), (1, Fails(1, 2))]}),
    lambda run, m: run.file.write(b"between"),
)


def _several(rng: random.Random, run: Run) -> None:
    """Several dumps of one pickler, with parts that are shared between them."""
    m = Maker(rng, rng.randrange(3, 12), share=0.35, instances=0.15, odd=rng.choice((0, 0.05)))
    run.kept["maker"] = m
    if rng.random() < 0.3:
        known = [f"m{i}" for i in range(_memo_sizes(rng))]
        m.pool += known[-4:]
        _dump(run, known)
    for _ in range(rng.randrange(2, 5)):
        m.size += 2
        obj = rng.choice(
            (m.container, m.node, m.offered, lambda: [*m.items(3), "new"], lambda: m.items(rng.randrange(3)))
        )()
        if rng.random() < 0.1:
            obj = [*_fill(rng), obj, obj]
        _dump(run, obj)
        for _ in range(rng.randrange(3)):
            rng.choice(_BETWEEN)(run, m)
    if rng.random() < 0.5:
        _look(run)


def _memo_kept(rng: random.Random, run: Run) -> None:
    """A memo that somebody holds while a pickler dumps at the root, and then looks at."""
    m = Maker(rng, 6, instances=0.1)
    memo = run.pickler.memo if rng.random() < 0.7 else None
    run.kept["obj"] = obj = m.container() if rng.random() < 0.2 else m.offered(rng.choice((0, 100, 1000)))
    if memo is None:
        _dump(run, obj)
        memo = run.pickler.memo
    elif rng.random() < 0.2:
        del run.pickler.memo
        _dump(run, [1, obj])
        run.pickler.memo = memo
    _dump(run, obj)
    run.calls.append(("held", memo is run.pickler.memo, len(memo), repr([(i, describe(x)) for i, x in memo.values()])))
    _look(run)
    if rng.random() < 0.3:
        run.kept["copy"] = memo.copy()
        run.pickler.clear_memo()
    _dump(run, m.offered(200) if rng.random() < 0.4 else [obj, m.container()])
    run.calls.append(("held", memo is run.pickler.memo, len(memo)))


def _growing(rng: random.Random, run: Run) -> None:
    """A pickler that dumps many small things, as to a stream, with or without clearing its memo."""
    m = Maker(rng, 12, instances=0.2, share=0.3)
    run.kept["maker"] = m
    clears = rng.choice((0, 0, 1, 3))
    for i in range(rng.choice((5, 20, 60))):
        m.size += 1
        _dump(run, m.node() if rng.random() < 0.3 else m.container())
        if clears and i % clears == 0:
            run.pickler.clear_memo()
    _look(run)


def _fast(rng: random.Random, run: Run) -> None:
    """`fast = True`, in which nothing is shared."""
    m = Maker(rng, 5, share=0.03, instances=0.3, middle=1)
    run.pickler.fast = rng.choice((True, 1, "yes"))
    _dump(run, [m.container(), m.node(), *(_fill(rng) if rng.random() < 0.2 else ())])
    run.pickler.fast = rng.choice((True, False))
    _dump(run, m.container())
    _look(run)


def _times(n: int, action: Callable[[], Any]) -> Callable[[], Any]:
    """Do something the first `n` times only, so that what is saved again and again comes to an end."""
    left = [n]

    def act() -> None:
        told("acted", left[0])
        if left[0]:
            left[0] -= 1
            action()

    return act


def _change(rng: random.Random, m: Maker, place: Any) -> Callable[[], Any]:
    """Something to do to a container while it, or what holds it, is pickled."""
    new = m.node() if rng.random() < 0.5 else f"new {rng.randrange(100)}"
    if isinstance(place, list):
        return rng.choice(
            (
                lambda: place.append(new),
                lambda: place.append(place),
                lambda: place.extend([*range(rng.choice((2, 1000)))]),
                lambda: place.insert(0, new),
                lambda: place.pop() if place else None,
                lambda: place.pop(0) if place else None,
                lambda: place.clear(),
                lambda: place.__setitem__(slice(0, 1), [new, new]),
                lambda: place.reverse(),
            )
        )
    if isinstance(place, dict):
        return rng.choice(
            (
                lambda: place.__setitem__("added", new),
                lambda: place.pop(next(iter(place))) if place else None,
                lambda: place.clear(),
                lambda: place.__setitem__(next(iter(place), 1), new),
                lambda: (place.pop(next(iter(place), None), None), place.__setitem__("other", new)),
            )
        )
    if isinstance(place, set):
        return rng.choice((lambda: place.add(10**6), lambda: place.clear(), lambda: place.discard(1)))
    if isinstance(place, collections.deque):
        return rng.choice((lambda: place.append(new), lambda: place.clear(), lambda: place.rotate(1)))
    if hasattr(place, "__dict__") and not isinstance(place, type):
        return rng.choice(
            (lambda: place.__dict__.update(added=new), lambda: place.__dict__.clear(), lambda: setattr(place, "x", new))
        )
    return lambda: None


_SETTINGS = [*hooked.ON_INSTANCE.values()]


def _acting(rng: random.Random, run: Run) -> None:
    """Objects that change what is being pickled, or the pickler, from the middle of a dump."""
    m = Maker(rng, rng.randrange(2, 10), instances=0.15, long=rng.random() < 0.06)
    root = m.container(rng.choice(("list", "dict")), rng.randrange(1, 7))
    run.kept["maker"] = m
    if rng.random() < 0.5:
        m.put_in(root, m.offered())
    for _ in range(rng.choice((1, 1, 2, 3))):
        r = rng.random()
        if r < 0.6:
            places = [x for x in m.pool if not isinstance(x, (str, bytes, tuple))]
            action = _change(rng, m, rng.choice(places) if places else root)
            COUNTS["acts on a container",] += 1
        elif r < 0.7:
            action = lambda: (_look(run), run.kept.update(a=[*run.pickler.memo.values()]), run.pickler.clear_memo())  # noqa: E731
        elif r < 0.8:
            action = functools.partial(_look, run)
        else:
            setting = rng.choice(_SETTINGS)
            action = functools.partial(setting, run, run.pickler)
            COUNTS["acts on the pickler",] += 1
        actor = rng.choice((objects.Acting, objects.ActingState))(_times(2, action))
        m.pool.append(actor)
        m.put_in(root, actor)
        if rng.random() < 0.4:
            _insert(rng, root, m.offered())
    if rng.random() < 0.15:
        root = [*_fill(rng), root, "after", root]
    _dump(run, root)
    if rng.random() < 0.3:
        _dump(run, [root, "again"])


def _user_code(rng: random.Random, run: Run) -> None:
    """Classes with code of their own, beside much that is plain: how often, and in which order it runs."""
    m = Maker(rng, rng.randrange(2, 12), instances=0.2)
    parts: list[Any] = [m.container()]
    for _ in range(rng.randrange(1, 5)):
        parts.append(instance(m, _TELLING_NAMES))
        if rng.random() < 0.4:
            parts.append(offered := m.offered())
            _insert(rng, offered, parts[-2])
        if rng.random() < 0.5:
            parts.append(m.container())
        if rng.random() < 0.3:
            m.put_in(parts, parts[-1])
    if rng.random() < 0.2:
        parts = [parts[0]] * 2 + [parts[-1]] * rng.choice((30, 64, 70))
    shape = rng.randrange(4)
    _dump(run, parts if shape else {"a": parts})
    if shape == 1:
        _dump(run, (parts[-1], m.container()))


def _new_code(name: str) -> Any:
    """What a special method may be replaced by."""

    def method(self: Any, *args: Any) -> Any:
        told(name, type(self).__name__)
        return {
            "__getstate__": {"x": 5},
            "__reduce__": (function, ("reduced",)),
            "__reduce_ex__": (function, ("reduced by", *args)),
            "__getnewargs__": (),
            "__getnewargs_ex__": ((), {}),
        }.get(name)

    return method


@contextlib.contextmanager
def _attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    missing = object()
    old = owner.__qualname__ if name == "__qualname__" else vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if old is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, old)


@contextlib.contextmanager
def _registered(t: Any) -> Iterator[None]:
    missing = object()
    old: Any = copyreg.dispatch_table.get(t, missing)
    copyreg.pickle(t, _by_copyreg)
    try:
        yield
    finally:
        if old is missing:
            del copyreg.dispatch_table[t]
        else:
            copyreg.dispatch_table[t] = old


def _by_copyreg(obj: Any) -> Any:
    told("copyreg", type(obj).__name__)
    return function, ("by copyreg",)


@contextlib.contextmanager
def _extension(t: Any, code: int) -> Iterator[None]:
    copyreg.add_extension(t.__module__, t.__qualname__, code)
    try:
        yield
    finally:
        copyreg.remove_extension(t.__module__, t.__qualname__, code)


def _monkeypatched(rng: random.Random, run: Run) -> None:
    """A class is changed between dumps, or in the middle of one, and put back."""
    m = Maker(rng, 4)
    t = rng.choice((Patched0, Patched1, Patched2))
    library = rng.choice((datetime.date, decimal.Decimal, uuid.UUID, range, collections.OrderedDict, collections.deque))
    some: list[Any] = [
        datetime.date(2000, 1, 1), decimal.Decimal("1.5"), uuid.UUID(int=3), range(3), collections.OrderedDict(a=1),
        collections.deque((1, 2)), Colour.RED, Pair(1, 2), 1j, fractions.Fraction(1, 3), collections.Counter("ab"),
        pathlib.PurePosixPath("a/b"), List((1, 2)), Dict(a=1), SlotPoint(1),
    ]  # fmt: skip
    name = rng.choice(("__getstate__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__"))
    change = rng.choice(
        (
            lambda: _attribute(t, name, _new_code(name)),
            lambda: _attribute(t, name, _new_code(name)),
            lambda: _attribute(t, name, None),
            lambda: _attribute(t, "__qualname__", "Elsewhere"),
            lambda: _attribute(t, "__module__", "elsewhere"),
            lambda: _attribute(sys.modules[__name__], t.__name__, Simple),
            lambda: _registered(t),
            lambda: _registered(library),
            lambda: _registered(complex),
            lambda: _registered(list),
            lambda: _registered(Meta),
            lambda: _extension(t, rng.choice((1, 255, 256, 70_000))),
            lambda: _extension(library, 5),
            lambda: _attribute(t, "__slotnames__", ["y"]),
            lambda: _attribute(t, "__getattribute__", TellsGetattribute.__getattribute__),
            lambda: _attribute(t, "__getattr__", TellsGetattr.__getattr__),
            lambda: _attribute(Pair, "__getnewargs__", PairTells.__getnewargs__),
            lambda: _attribute(enum.Enum, "__reduce_ex__", _new_code("__reduce_ex__")),
            lambda: _attribute(copyreg, "__newobj__", function),
            lambda: _attribute(sys.modules[__name__], "SlotPoint", Simple),
            lambda: _attribute(t, "__getnewargs_ex__", Descriptor()),
            lambda: _attribute(t, "x", property(lambda self: told("x"), lambda self, value: None)),
            lambda: _attribute(Patched0, "y", Descriptor()),
            lambda: _attribute(t, "__class__", property(lambda self: Simple)),
            lambda: _attribute(uuid.UUID, "__getstate__", _new_code("__getstate__")),
            lambda: _attribute(fractions.Fraction, "__reduce__", _new_code("__reduce__")),
            lambda: _attribute(collections.Counter, "__reduce__", _new_code("__reduce__")),
            lambda: _attribute(pathlib.PurePath, "__reduce__", _new_code("__reduce__")),
            lambda: _attribute(Colour, "__reduce_ex__", _new_code("__reduce_ex__")),
            lambda: _attribute(Pair, "__iter__", lambda self: told("iter") or iter((1, 2))),
            lambda: _attribute(List, "__iter__", IterList.__iter__),
            lambda: _attribute(Dict, "items", lambda self: told("items") or [(1, 2)]),
        )
    )

    def obj() -> Any:
        parts: list[Any] = [m.container(), t(m.node(), m.node()), [t(1, 2)] * 3, *some, m.container(), OfMeta(1)]
        if rng.random() < 0.6:
            kinds = rng.sample([t(1, 2), *some], rng.choice((1, 2, 5)))
            parts = [
                *parts[: rng.randrange(5)],
                kinds * 55,
                [t(i, "same") for i in range(50)],
                *parts[: rng.randrange(9)],
            ]
        rng.shuffle(parts)
        return parts if rng.random() < 0.7 else {"a": parts, "b": t(1)}

    if rng.random() < 0.7:
        _dump(run, obj())
    if rng.random() < 0.3:  # in the middle of a dump, from one object to another
        with contextlib.ExitStack() as stack:
            _dump(run, [obj(), objects.Acting(_once(lambda: stack.enter_context(change()))), obj(), t(1)])
            _dump(run, obj())
    else:
        with change():
            _dump(run, obj())
    _dump(run, obj())


def _once(action: Callable[[], Any]) -> Callable[[], Any]:
    done: list[bool] = []

    def act() -> None:
        if not done:
            done.append(True)
            action()

    return act


def _buffers(rng: random.Random, run: Run) -> None:
    """Buffers in and out of band, among what is plain."""
    callback = rng.choice((lambda b: True, lambda b: False, lambda b: len(b.raw()) > 10, lambda b: None, None))

    def called(buffer: Any) -> Any:
        run.calls.append(("buffer", len(buffer.raw())))
        return callback(buffer)

    run.pickler = type(run.pickler)(
        run.file,
        run.protocol,
        fix_imports=rng.random() < 0.5,
        buffer_callback=None if callback is None or run.protocol < 5 else called,
    )
    m = Maker(rng, 5)
    for _ in range(3):
        size = rng.choice((0, 5, 20, FRAME))
        data = rng.choice((bytes, bytearray))(size)
        m.pool += [pickle.PickleBuffer(data), data]
    m.share = 0.4
    _dump(run, [m.container(), *m.items(3), *m.pool[:3], m.offered()])
    _dump(run, [*m.pool[:2], bytearray(b"text")])


def _failing_file(rng: random.Random, run: Run) -> None:
    """A file that refuses to be written to, the first, second ... time, or that looks at the pickler."""
    fails_at = rng.randrange(5)
    looks = rng.random() < 0.4

    def on_write(n: int) -> None:
        if looks and run.pickler is not None:
            run.calls.append(("at write", n, len(run.pickler.memo)))
        if n == fails_at:
            raise OSError("full")

    file = PythonFile(on_write)
    m = Maker(rng, 6)
    run.pickler = type(run.pickler)(file, run.protocol)
    obj = [m.container(), *_fill(rng), m.container(), *_fill(rng), *m.items(3)]
    run.kept["obj"] = obj
    try:
        _dump(run, obj)
        _look(run)
        if run.protocol >= 4:
            run.calls.append(("sizes", *file.sizes()))
        run.file.write(file.getvalue())
    finally:
        file.close()


class _Disk(io.RawIOBase):
    """Takes so many bytes, and then no more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        taken = bytes(data)[: self.room]
        if len(data) and not taken:
            raise OSError(28, "no space left")
        self.room -= len(taken)
        self.content += taken
        return len(taken)


def _full_disk(rng: random.Random, run: Run) -> None:
    """A file in C, which fails after some bytes."""
    disk = _Disk(rng.choice((0, 5, 100, 10_000, FRAME, FRAME + rng.randrange(-20, 20), 3 * FRAME)))
    file = io.BufferedWriter(disk, rng.choice((1, 64, 8192)))
    m = Maker(rng, 6)
    run.pickler = type(run.pickler)(file, run.protocol)
    obj = [m.offered(), *_fill(rng), m.offered(), *_fill(rng), *m.items(3)]
    obj = obj if rng.random() < 0.6 else [odd(m), obj]
    try:
        if run.protocol >= 4:
            _dump(run, obj)
        else:
            with contextlib.suppress(OSError):
                run.pickler.dump(obj)
    finally:  # it would complain when it is collected
        left = disk.room
        disk.room = sys.maxsize
        file.flush()
    run.calls.append(("room", left > 0))
    if run.protocol >= 4:
        run.file.write(disk.content)
        _look(run)
    else:  # without frames ours may write more at once, so other bytes are the last
        run.pickler = None


def _own_memo(base: Any, run: Run) -> Any:
    """Have a name in a subclass that hides what ours has there."""

    class P(base):
        memo: Any = None

    return P


_SUBCLASSES = [x for name, x in hooked.SUBCLASSES.items() if name != "fast is a property"] + [_own_memo] * 3


def _subclass(rng: random.Random, run: Run) -> None:
    """A pickler of a subclass that listens to something."""
    cls = rng.choice(_SUBCLASSES)(type(run.pickler), run)
    run.pickler = cls(run.file, run.protocol)
    m = Maker(rng, 5, instances=0.2)
    obj = [m.offered(), *m.items(3), m.offered(), instance(m)]
    _dump(run, obj if rng.random() < 0.7 else obj[0])
    if cls.__name__ == "P" and type(getattr(run.pickler, "memo", None)) is dict:
        _look(run)
    if rng.random() < 0.3:
        _dump(run, [obj, "again"])


Session = Callable[[random.Random, Run], None]

#: Each kind of session, with how often it comes.
SESSIONS: dict[str, tuple[float, Session]] = {
    "several dumps": (25, _several),
    "held memo": (6, _memo_kept),
    "stream": (4, _growing),
    "fast": (6, _fast),
    "acting": (30, _acting),
    "user code": (20, _user_code),
    "monkeypatched": (20, _monkeypatched),
    "buffers": (5, _buffers),
    "failing file": (5, _failing_file),
    "full disk": (4, _full_disk),
    "subclass": (6, _subclass),
}


# For dill: random.Random -> an object that is dumped once.


_BY_VALUE = """
import math
limit = 7
text = "global text"

def outer(data):
    count = 0
    def inner(k=1):
        nonlocal count
        count += k
        return inner, data, limit, count
    return inner

def simple(x, y=[1, 2]):
    return math.floor(x) + len(text)

class Made:
    attribute = [1, 2]
    def __init__(self, x=None, y=None):
        self.x, self.y = x, y
    def method(self):
        return self.x, limit
    @property
    def both(self):
        return self.x, self.y
    @staticmethod
    def static(x):
        return simple(x)

class Slotted:
    __slots__ = ("x", "y")
    def __init__(self, x=None, y=None):
        self.x, self.y = x, y
"""
_BY_VALUE_CODE = compile(_BY_VALUE, "<by value>", "exec")


def _names_of(m: Maker, name: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": name}
    exec(_BY_VALUE_CODE, names)
    del names["__builtins__"]
    return names


def _named_dicts(m: Maker) -> list[Any]:
    """Dicts that are a module's, equal one, or only look like it."""
    module = sys.modules[MODULE]
    main = sys.modules["__main__"].__dict__
    other = {f"k{i}": i for i in range(len(main))}
    found: list[Any] = [
        module.__dict__,
        {"__name__": MODULE},
        {"__name__": MODULE, "limit": m.node()},
        {"__name__": "no_such_module", "a": m.node()},
        {"__name__": 5},
        {"__name__": ["list"]},
        {"__name__": "__main__"},
        {"__name__": Str(MODULE)},
        {"a": "__name__"},
        other,
        {**other, "k0": m.node()},
    ]
    if m.rng.random() < 0.2:
        found += [main, dict(main)]
    return m.rng.sample(found, m.rng.randrange(1, 4))


def _dill_plain(rng: random.Random) -> Any:
    return rng.choice((_plain, _cycles, _instances, _almost_plain, _with_memo, _many_instances))(rng)


def _dill_edge(rng: random.Random) -> Any:
    return rng.choice((_at_frame_edge, _lengths, _strings, _failing, _payload_runs, _wide))(rng)


def _dill_named(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(2, 10))
    root = m.container(rng.choice(("list", "dict")), rng.randrange(1, 6))
    for x in _named_dicts(m):
        m.put_in(root, x)
    return [root, m.container()] if rng.random() < 0.5 else root


def _dill_functions(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(2, 10), instances=0.2)
    names = _names_of(m, rng.choice(("__main__", "__main__", MODULE, "no_such_module")))
    run: Any = m.container("list", rng.choice((5, 64, 100)))
    made = names["Made"](m.node(), run)
    parts = [
        names["outer"](run), names["simple"], names["Made"], made, made.method, names["Slotted"](1, m.node()),
        _lambda(), functools.partial(names["simple"], m.node()), sys.modules[MODULE],
        sys.modules[MODULE].Here(m.node(), 2),
        sys.modules[MODULE].add, names["Made"].static, names,
    ]  # fmt: skip
    chosen = rng.sample(parts, rng.randrange(1, 4))
    return rng.choice(([run, *chosen, m.container(), run], [*chosen, run], {"a": chosen, "b": m.container(), "c": run}))


def _dill_instances(rng: random.Random) -> Any:
    """Many instances of classes that are saved by value, or of an importable module."""
    m = Maker(rng, 5)
    name = rng.choice(("__main__", MODULE, __name__))
    made = type("Made", (object,), {"__module__": name, "attribute": 1})
    data = dataclasses.make_dataclass("Data", ["x", "y"], namespace={"__module__": name})
    pair = collections.namedtuple("pair", "x y", module=name)
    colour = enum.Enum("colour", "RED BLUE", module=name)
    here = sys.modules[MODULE].Here
    items: list[Any] = []
    for i in range(rng.choice((3, 10, 70))):
        kind = rng.choice((made, data, pair, colour, here, Point))
        if kind is made:
            obj = made()
            obj.x = i
        else:
            obj = colour.RED if kind is colour else kind(i, m.atom())
        items.append(obj)
    if rng.random() < 0.3:
        items = [x for x in items if type(x) is type(items[0])]
    return [m.container(), items, m.container()] if rng.random() < 0.6 else items


def _dill_user_code(rng: random.Random) -> Any:
    m = Maker(rng, rng.randrange(2, 8))
    return [m.container(), *(instance(m, _TELLING_NAMES) for _ in range(2)), m.container(), _lambda()]


def _forget_slotnames() -> None:
    """Take away what copyreg leaves in a class at its first use: a metaclass is asked then, and dill saves it."""
    for name in (MODULE, GHOST, INSIDE):
        module = sys.modules.get(name)
        for t in (OfMeta,) if module is None else (OfMeta, module.Here):
            if "__slotnames__" in vars(t):
                del t.__slotnames__


#: Each kind of object for dill, with how often it comes.
DILL: dict[str, tuple[float, Value]] = {
    "dill, plain": (30, _dill_plain),
    "dill, edges": (15, _dill_edge),
    "dill, named dicts": (20, _dill_named),
    "dill, functions": (15, _dill_functions),
    "dill, instances": (15, _dill_instances),
    "dill, user code": (5, _dill_user_code),
}


@contextlib.contextmanager
def traced(run: Run) -> Iterator[None]:
    """Turn dill's trace on, and write down what it says instead of showing it."""
    dill = sys.modules["dill"]
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("dill")
    old = [*logger.handlers]
    logger.handlers[:] = [handler]
    dill.detect.trace(True)
    try:
        yield
    finally:
        dill.detect.trace(False)
        logger.handlers[:] = old
        run.calls.append(("trace", re.sub("0x[0-9a-f]+", "0x", stream.getvalue())))


# Cases.


class Case(NamedTuple):
    """What is to be compared: one object at some protocols, or one session.

    Attributes:
        name: which it is, for messages.
        kind: a key of `VALUES`, `SESSIONS` or `DILL`.
        make: makes the object anew; None for a session.
        steps: does all with `run.pickler`, and makes what it dumps anew.
        protocols: at which.
        arguments: for the pickler.
        full: compare all that can be seen from outside, and not the bytes only.
    """

    name: str
    kind: str
    make: Callable[[], Any] | None
    steps: Callable[[Run], None]
    protocols: tuple[int, ...]
    arguments: dict[str, Any]
    full: bool


_TABLES: dict[str, list[tuple[dict[str, Any], float]]] = {
    "values": [(VALUES, 1.0)],
    "sessions": [(SESSIONS, 1.0)],
    "installed": [(VALUES, 0.7), (SESSIONS, 1.0)],
    "dill": [(DILL, 1.0)],
}
_PROTOCOLS = (5, 5, 5, 4, 4, 4, 4, 3, 3, 2, 2, 1, 0)
_FULL = 1 / 12


def _chosen(rng: random.Random, table: dict[str, tuple[float, Any]]) -> str:
    return rng.choices([*table], [weight for weight, _ in table.values()])[0]


def case(seed: int, name: str, number: int) -> Case:
    """Return a case; the same for the same arguments.

    Args:
        seed: of the whole soak.
        name: "values", "sessions", "installed" or "dill".
        number: of the case.
    """
    text = f"{seed} {name} {number}"
    rng = random.Random(text)
    r = rng.random()
    table = next(table for table, up_to in _TABLES[name] if r < up_to)
    kind = _chosen(rng, table)
    function = table[kind][1]
    lowest = 2 if name == "dill" else 0
    protocols = [p for p in (rng.choice(_PROTOCOLS) for _ in range(6)) if p >= lowest] or [4]
    arguments: dict[str, Any] = {}
    full = rng.random() < _FULL
    COUNTS["case", kind] += 1

    def seeded() -> random.Random:
        _forget_slotnames()
        return random.Random(f"{text} made")

    if table is SESSIONS:

        def session(run: Run) -> None:
            made = seeded()
            with _listening(run):
                function(made, run)

        return Case(text, kind, None, session, (protocols[0],), arguments, True)
    if name == "dill":
        if rng.random() < 0.3:
            arguments[rng.choice(("byref", "recurse"))] = True
        with_trace = rng.random() < 0.03
        full = full or with_trace or kind == "dill, user code"

        def dill_steps(run: Run) -> None:
            with _listening(run), traced(run) if with_trace else contextlib.nullcontext():
                run.pickler.dump(function(seeded()))

        return Case(text, kind, lambda: function(seeded()), dill_steps, (protocols[0],), arguments, full)
    if rng.random() < 0.08:
        arguments["fix_imports"] = False
    several = 1 if kind in ("huge", "wide", "frame edge", "lengths", "long nested") else rng.choice((1, 2, 3))

    def steps(run: Run) -> None:
        with _listening(run):
            run.pickler.dump(function(seeded()))

    return Case(
        text, kind, lambda: function(seeded()), steps, tuple(dict.fromkeys(protocols[:several])), arguments, full
    )
