"""Random object graphs, as specifications that can be built again and again.

    choices (Hypothesis or random.Random) --> spec: a list of nodes --> build(spec): the graph

A node is a kind, a number, and the indexes of earlier nodes that are its parts; so parts are shared.  Back edges make
cycles.  Because a spec is data, both implementations get the same graph made afresh, and a failure shows it whole.

Not for: objects that do something while they are pickled.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st

from . import objects, samples

__all__ = ["KINDS", "Node", "Spec", "build", "graphs", "is_thorough", "random_spec", "tree_size"]


def is_thorough() -> bool:
    """Tell whether the profile in force has time."""
    return settings.default is not None and settings.default.max_examples >= 1_000


class Node(NamedTuple):
    """One object: what kind, a number that makes it one of many, and its parts by index."""

    kind: str
    number: int
    parts: tuple[int, ...]


class Spec(NamedTuple):
    """A graph: its nodes, the last of which is the root; edges back to later nodes; bytes in front, to move frames."""

    nodes: tuple[Node, ...]
    back: tuple[tuple[int, int], ...]
    filler: int


_INTS = sorted({s * 2**b + o for s in (1, -1) for b in (0, 8, 16, 31, 32, 63, 2039) for o in (-1, 0, 1)})
_TEXT = (
    "",
    "a",
    "key",
    "\xe9",
    "\u20ac" * 21,
    "\ud800",
    "\\\n\r\0\x1a",
    "x" * 63,
    "x" * 64,
    "\xe9" * 127,
    "x" * 255,
    "x" * 256,
)
_NAMES = (objects.Plain, int, len, objects.function, objects.OfMeta.Inner, objects.OfMeta.method, objects.Colour.RED)
_LIBRARY = (
    datetime.date(2020, 1, 1), decimal.Decimal("1.5"), 1j, range(3), objects.Colour.BLUE, objects.Pair(1, 2),
    datetime.timedelta(1),
)  # fmt: skip

# Each kind: (number, parts) -> an object.  Atoms have no parts.
_ATOMS: dict[str, Callable[[int, list[Any]], Any]] = {
    "none": lambda n, parts: (None, True, False, ..., NotImplemented)[n % 5],
    "int": lambda n, parts: _INTS[n % len(_INTS)],
    "small int": lambda n, parts: n % 300,
    "float": lambda n, parts: (0.0, -0.0, 1.5, float("inf"), float("nan"), n / 7)[n % 6],
    "str": lambda n, parts: _TEXT[n % len(_TEXT)],
    "new str": lambda n, parts: f"text {n}",
    "bytes": lambda n, parts: b"x" * (0, 1, 5, 255, 256)[n % 5],
    "new bytes": lambda n, parts: b"%d" % n,
    "name": lambda n, parts: _NAMES[n % len(_NAMES)],
    "library": lambda n, parts: _LIBRARY[n % len(_LIBRARY)],
    "large": lambda n, parts: ("x", b"x")[n % 2] * (samples.FRAME + n % 3 - 1),
    "medium": lambda n, parts: ("y", b"y")[n % 2] * (n % 9000),
}


def _hashable(obj: Any) -> bool:
    try:
        hash(obj)
    except TypeError:
        return False
    return type(obj) is not tuple or all(map(_hashable, obj))


def _steady(parts: list[Any]) -> list[Any]:
    """Keep the parts whose hash is the same each time they are built, so that sets of them have one order.

    A hash that is an address (of an instance, a function, or before 3.12 of None) would put them in another order.
    """
    return [x for x in parts if type(x) in (bool, int, str, bytes, objects.Hashed, float) and x == x]


def _pairs(parts: list[Any]) -> dict[Any, Any]:
    keys = [x if _hashable(x) else i for i, x in enumerate(parts)]
    return dict(zip(keys, reversed(parts), strict=False))


_CONTAINERS: dict[str, Callable[[int, list[Any]], Any]] = {
    "list": lambda n, parts: [*parts],
    "tuple": lambda n, parts: (*parts,),
    "dict": lambda n, parts: _pairs(parts),
    "dict of str": lambda n, parts: {f"k{i}": x for i, x in enumerate(parts)},
    "set": lambda n, parts: {*_steady(parts)},
    "frozenset": lambda n, parts: frozenset(_steady(parts)),
    "Hashed": lambda n, parts: objects.Hashed(n % 100, parts=parts),
    "bytearray": lambda n, parts: bytearray(n % 300),
    "Plain": lambda n, parts: objects.Plain(**{f"a{i}": x for i, x in enumerate(parts)}),
    "Slotted": lambda n, parts: objects.Slotted(n, parts),
    "Data": lambda n, parts: objects.Data(n, f"text {n}", parts),
    "NewArgs": lambda n, parts: objects.NewArgs(*parts),
    "NewArgsEx": lambda n, parts: objects.NewArgsEx(*parts, key=n),
    "GetState": lambda n, parts: objects.GetState(parts=parts),
    "Reduced": lambda n, parts: objects.Reduced((objects.make, (*parts,))),
    "state": lambda n, parts: objects.Reduced((objects.make, (), parts or None)),
    "state setter": lambda n, parts: objects.Reduced((objects.make, (), {"a": parts}, None, None, objects.set_state)),
    "listitems": lambda n, parts: objects.Reduced(lambda self: (list, (n,) * (n % 2), None, iter(parts))),
    "dictitems": lambda n, parts: objects.Reduced(lambda self: (dict, (), None, None, iter([*enumerate(parts)]))),
    "List": lambda n, parts: objects.List(parts),
    "Tuple": lambda n, parts: objects.Tuple(parts),
    "Dict": lambda n, parts: objects.Dict(_pairs(parts)),
    "OrderedDict": lambda n, parts: collections.OrderedDict(enumerate(parts)),
    "deque": lambda n, parts: collections.deque(parts),
    "run of int": lambda n, parts: [*range(n % 1100), *parts],
    "run of float": lambda n, parts: [*(i / 2 for i in range(n % 600)), *parts],
    "run of str": lambda n, parts: [*map(str, range(n % 1100)), *parts],
    "run of mixed": lambda n, parts: [(i, str(i), i / 2, (i,), [i], None)[i % 6] for i in range(n % 300)] + parts,
    "run of one": lambda n, parts: parts[:1] * (n % 1100),
    "big dict": lambda n, parts: dict.fromkeys(range(n % 3 + 999), *parts[:1]),
    "big set": lambda n, parts: {*range(n % 3 + 999)},
}

#: All kinds of nodes.
KINDS = {**_ATOMS, **_CONTAINERS}
_CONTAINER_NAMES = [*_CONTAINERS]
_ATOM_NAMES = [*_ATOMS]
_MAX_NODES = 25

Integer = Callable[[int, int], int]


def _choose(integer: Integer) -> Spec:
    """Choose a spec, given a function that chooses an integer between two bounds, both included."""
    nodes: list[Node] = []
    for i in range(integer(1, _MAX_NODES)):
        if integer(0, 2) == 0 or i == 0:
            nodes.append(Node(_ATOM_NAMES[integer(0, len(_ATOM_NAMES) - 1)], integer(0, 9999), ()))
        else:
            parts = tuple(integer(0, i - 1) for _ in range(integer(0, 5)))
            nodes.append(Node(_CONTAINER_NAMES[integer(0, len(_CONTAINER_NAMES) - 1)], integer(0, 9999), parts))
    last = len(nodes) - 1
    nodes.append(Node("list", 0, (*(integer(0, last) for _ in range(integer(1, 4))), last)))
    back = tuple((integer(0, last), integer(0, last + 1)) for _ in range(integer(0, 3)))
    filler = integer(0, 3)
    return Spec(
        tuple(nodes),
        back,
        samples.FRAME - integer(1, 1500) if filler == 3 else integer(0, 70_000) if filler == 2 else 0,
    )


@st.composite
def graphs(draw: Any) -> Spec:
    """A strategy of specs; `build` makes the graph of one."""
    return _choose(lambda low, high: draw(st.integers(low, high)))


def random_spec(rng: random.Random) -> Spec:
    """A spec without Hypothesis: many thousands a minute."""
    return _choose(rng.randint)


def tree_size(spec: Spec) -> int:
    """Count the objects of a graph as often as they are reached, without the back edges."""
    sizes: list[int] = []
    for node in spec.nodes:
        sizes.append(1 + sum(sizes[i] for i in node.parts))
    return sizes[-1]


def build(spec: Spec) -> Any:
    """Make the graph of a spec, anew each time."""
    made: list[Any] = []
    for kind, number, parts in spec.nodes:
        made.append(KINDS[kind](number, [made[i] for i in parts]))
    for holder, held in spec.back:
        _put_in(made[holder], made[held])
    return ["f" * spec.filler, made[-1]] if spec.filler else made[-1]


def _put_in(holder: Any, held: Any) -> None:
    """Make a cycle, if the holder can be changed."""
    if isinstance(holder, list):
        holder.append(held)
    elif isinstance(holder, dict):
        holder["back"] = held
    elif isinstance(holder, (objects.Plain, objects.Hashed, objects.Data)):
        holder.__dict__["back"] = held
    elif isinstance(holder, objects.Slotted):
        holder.a = held
    elif isinstance(holder, collections.deque):
        holder.append(held)
    elif isinstance(holder, set) and type(held) is objects.Hashed:
        holder.add(held)
