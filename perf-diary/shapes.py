"""The objects that ``grafting.py`` pickles, besides the workloads of the package.

    group --> name --> GROUPS[group][name] --> a function that makes the object

``plain``, ``small`` and part of ``others`` are the workloads; the other groups are shapes that no line of
the package was tuned for: awkward lengths, bytes that look like opcodes, types of the standard library,
data in which plain and other objects alternate. ``flat`` and ``memory`` are made to a wanted size.

The classes stand in this module, and not in the script, because dill and cloudpickle save a class of
``__main__`` by value.

Not for: correctness. The shapes that catch a wrong byte are in the tests.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import inspect
import json
import pathlib
import pickle
import random
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fastpickle.cli import workloads
from fastpickle.cli.workloads import Reading

try:  # it is not there for every Python
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]
try:  # as above
    import attrs
except ImportError:
    attrs = None  # type: ignore[assignment]

Make = Callable[..., object]
"""Makes an object; without arguments, but for ``flat`` (objects) and ``memory`` (bytes of the pickle)."""

SEED = workloads.SEED

OBJECT_WORKLOADS = ("dataclass_instances", "datetimes")
"""The workloads that are no plain data."""

SMALL_WORKLOADS = ("small_dict",)
"""The workloads of which the fixed cost of a dump is the most."""

GROUPS: dict[str, dict[str, Make]] = {
    "plain": {
        name: make
        for name, make in workloads.WORKLOADS.items()
        if name not in OBJECT_WORKLOADS and name not in SMALL_WORKLOADS
    },
    "small": {name: workloads.WORKLOADS[name] for name in SMALL_WORKLOADS},
    "odd": {},
    "objects": {},
    "others": {name: workloads.WORKLOADS[name] for name in OBJECT_WORKLOADS},
    "closure": {},
    "mixed": {},
    "flat": {},
    "memory": {},
}
"""Group -> name -> a function that makes the object; filled by ``shape``. No name is in two groups."""

ABOUT = {
    "plain": "the package's workloads of plain data",
    "small": "one small dict: what a dump costs at least",
    "odd": "plain data of shapes that nobody tuned for",
    "objects": "lists of 2,000 instances that can be handed to the C pickler",
    "others": "other instances: named tuples, enums, containers and values of the standard library and of numpy",
    "closure": "a closure beside a list, against cloudpickle",
    "mixed": "data on which handing over keeps failing, against FASTPICKLE_PURE=1",
    "flat": "time per object, from 1,000 to 1,000,000 of them",
    "memory": "peak memory of dumping to a file, against stock",
}
"""Group -> what it is."""


def shape(group: str) -> Callable[[Make], Make]:
    """Register the decorated function as a shape of the same name.

    Args:
        group: The group that it belongs to.

    Returns:
        The decorator, which returns the function unchanged.
    """

    def register(make: Make) -> Make:
        GROUPS[group][make.__name__] = make
        return make

    return register


def _small_dict(index: int) -> dict[str, object]:
    """Make one of many dicts that are alike, and nothing but the keys of which is shared."""
    return {"id": index, "name": f"item {index}", "score": index * 0.5}


# Plain data of awkward shapes.


@shape("odd")
def ints_1001() -> object:
    """One batch and one more, where the C pickler's last opcode is another."""
    return list(range(1_001))


@shape("odd")
def ints_10001() -> object:
    """Ten batches and one more."""
    return list(range(10_001))


@shape("odd")
def strs_1001() -> object:
    """The same of strings."""
    return [f"string {index}" for index in range(1_001)]


@shape("odd")
def strs_10001() -> object:
    """The same of strings, through several frames."""
    return [f"string {index}" for index in range(10_001)]


@shape("odd")
def dicts_1001() -> object:
    """The same of small dicts."""
    return [_small_dict(index) for index in range(1_001)]


@shape("odd")
def dicts_10001() -> object:
    """The same of small dicts, through several frames."""
    return [_small_dict(index) for index in range(10_001)]


@shape("odd")
def dict_1000_strs() -> object:
    """A dict of exactly one batch, after which the C pickler writes an empty one before 3.15."""
    return {f"key {index}": f"value {index}" for index in range(1_000)}


@shape("odd")
def dict_5000_strs() -> object:
    """A dict of exactly five batches."""
    return {f"key {index}": index for index in range(5_000)}


@shape("odd")
def sets_of_1000() -> object:
    """Ten sets of exactly one batch each."""
    return [set(range(start, start + 1_000)) for start in range(10)]


@shape("odd")
def frozensets() -> object:
    """Frozensets of a few strings."""
    return [frozenset({f"tag {index}", f"tag {index + 1}"}) for index in range(1_000)]


@shape("odd")
def dict_of_lists_of_1001() -> object:
    """Ten columns, each of one batch and one more: all of it is awkward."""
    return {f"column {place}": [place * 10_000 + index for index in range(1_001)] for place in range(10)}


@shape("odd")
def dicts_of_1000() -> object:
    """A hundred dicts of exactly one batch each."""
    return [{f"key {index}": place + index for index in range(1_000)} for place in range(100)]


@shape("odd")
def random_bytes() -> object:
    """1,000 times 1 KiB of random bytes, in which every pair of opcodes occurs."""
    generator = random.Random(SEED)
    return [generator.randbytes(1024) for _ in range(1_000)]


@shape("odd")
def source_lines() -> object:
    """Lines of source code, with many ``e(`` and ``u(``: these bytes are opcodes elsewhere."""
    return inspect.getsource(pickle).splitlines()


@shape("odd")
def source_text() -> object:
    """The same as one string."""
    return [inspect.getsource(pickle), inspect.getsource(json)]


@shape("odd")
def source_words() -> object:
    """The words of each line, as a tokenizer gives them: 15,000 lists of texts."""
    return [line.split() for line in inspect.getsource(pickle).splitlines() * 3]


@shape("odd")
def documents() -> object:
    """500 records with 4 KB of source code in each, as of a corpus."""
    text = inspect.getsource(pickle)
    step = (len(text) - 4_000) // 500
    return [{"id": i, "path": f"src/{i}.py", "text": text[i * step :][:4_000], "stars": i % 7} for i in range(500)]


@shape("odd")
def descriptions() -> object:
    """What ``pip inspect`` tells of 20 packages: lists of short texts, and one long one each."""
    text = inspect.getsource(pickle)
    step = len(text) // 21
    return {
        "version": "1",
        "installed": [
            {
                "metadata": {
                    "name": f"package-{i}",
                    "classifier": [f"Topic :: {i} :: {j}" for j in range(20)],
                    "requires_dist": [f"other-{j} (>={i}.{j}) ; extra == 'all'" for j in range(30)],
                    "description": text[i * step : (i + 1) * step],
                },
                "requested": i % 3 == 0,
                "direct_url": None,
            }
            for i in range(20)
        ],
    }


@shape("odd")
def opcodes_in_strs() -> object:
    """Strings that hold nothing but what looks like ends of batches."""
    return [f"e(u(\N{DAGGER}(e(u({index}e(u(" for index in range(2_000)]


@shape("odd")
def list_tuple_records() -> object:
    """Records of a list and a tuple of four, which has no opcode of its own."""
    return [[[index, index + 1], (index, index / 3, f"name {index}", None)] for index in range(2_000)]


@shape("odd")
def deep_50() -> object:
    """Dicts and lists in turns, 50 levels, with a few items on each."""
    nested: object = None
    for level in range(50):
        nested = {"level": level, "items": [level, f"text {level}"], "below": nested} if level % 2 else [level, nested]
    return nested


@shape("odd")
def deep_tree() -> object:
    """A tree of lists, 3 to the 7th leaves."""

    def branch(level: int) -> object:
        return [branch(level - 1) for _ in range(3)] if level else [level, "leaf"]

    return branch(7)


@shape("odd")
def matrix_300() -> object:
    """A matrix of 300 x 300 floats."""
    generator = random.Random(SEED)
    return [[generator.random() for _ in range(300)] for _ in range(300)]


@shape("odd")
def big_ints() -> object:
    """Ints of 40 to 4,000 bits, of both signs."""
    generator = random.Random(SEED)
    return [generator.getrandbits(generator.choice((40, 64, 256, 4_000))) * (-1) ** index for index in range(2_000)]


@shape("odd")
def json_shared_keys() -> object:
    """2,000 records as ``json.loads`` makes them, which keeps one str for each key."""
    return json.loads(
        json.dumps([{**_small_dict(index), "tags": ["a", index], "parent": None} for index in range(2_000)])
    )


@shape("odd")
def json_separate_keys() -> object:
    """500 records that share no str, each read by itself."""
    return [json.loads(json.dumps({**_small_dict(index), "owner": {"login": "x"}})) for index in range(500)]


@shape("odd")
def strs_100kb() -> object:
    """20 strings of 100 KB, which stand outside the frames."""
    return [f"{index:04d} " * 20_000 for index in range(20)]


@shape("odd")
def bytes_1mb() -> object:
    """Four bytes objects of 1 MB, between small things."""
    return [["before", bytes([index]) * 1_000_000, index] for index in range(4)]


@shape("odd")
def unicode_strs() -> object:
    """Text in several scripts, of one to four bytes a character, lone surrogates among it."""
    scripts = ("plain", "\xe4\xf6\xfc\xdf", "\u043a\u043e\u0442", "\u732b\u304c", "\U0001f600\U0001f638", "\ud800")
    return [f"{scripts[index % len(scripts)]} {index}" for index in range(3_000)]


@shape("odd")
def dict_100k() -> object:
    """A dict of 100,000 strings and ints: a memo that no cache holds."""
    return {f"key {index}": index for index in range(100_000)}


@shape("odd")
def shared_rows() -> object:
    """1,000 references to ten lists: fetches from the memo."""
    rows = [[index, f"row {index}"] for index in range(10)]
    return [rows[index % 10] for index in range(1_000)]


@shape("odd")
def cycles() -> object:
    """500 nodes that know their children and their parent."""
    root: dict[str, Any] = {"name": "root", "children": [], "parent": None}
    for index in range(500):
        root["children"].append({"name": f"node {index}", "children": [], "parent": root})
    return root


@shape("odd")
def empty_containers() -> object:
    """4,000 containers with nothing in them."""
    return [kind() for _ in range(1_000) for kind in (list, dict, tuple, set)]


@shape("odd")
def matrix_1000x10() -> object:
    """1,000 lists of ten random floats, which have the bytes of opcodes in them by chance."""
    generator = random.Random(SEED)
    return [[generator.random() for _ in range(10)] for _ in range(1_000)]


@shape("odd")
def columns() -> object:
    """A table as a dict of three columns of 3,000."""
    generator = random.Random(SEED)
    return {
        "id": list(range(3_000)),
        "name": [f"name {index}" for index in range(3_000)],
        "x": [generator.random() for _ in range(3_000)],
    }


@shape("odd")
def dict_of_floats_10k() -> object:
    """A dict of 10,000 strings and random floats."""
    generator = random.Random(SEED)
    return {f"key {index}": generator.random() for index in range(10_000)}


@shape("odd")
def booleans_and_none() -> object:
    """10,000 atoms of one byte each."""
    return [True, False, None, True, None] * 2_000


@shape("odd")
def tuples_of_ints() -> object:
    """3,000 tuples of two ints: points, edges of a graph."""
    return [(index, index * 31) for index in range(3_000)]


# Instances.


class Slotted:
    """An instance without a ``__dict__``."""

    __slots__ = ("count", "name", "value")

    def __init__(self, name: str, value: float, count: int) -> None:
        self.name = name
        self.value = value
        self.count = count


@shape("objects")
def dataclasses_2000() -> object:
    """2,000 instances of a dataclass."""
    return [Reading(f"sensor {index % 12}", index * 0.5, index) for index in range(2_000)]


@shape("objects")
def slotted_2000() -> object:
    """2,000 instances of a class with slots."""
    return [Slotted(f"sensor {index % 12}", index * 0.5, index) for index in range(2_000)]


@shape("objects")
def datetimes_2000() -> object:
    """2,000 datetimes without a time zone."""
    start = datetime.datetime(2026, 1, 1)
    return [start + datetime.timedelta(minutes=17 * index) for index in range(2_000)]


@shape("objects")
def decimals_2000() -> object:
    """2,000 Decimals: sums of money."""
    return [decimal.Decimal(index * 7) / 100 for index in range(2_000)]


class Point(NamedTuple):
    """A named tuple."""

    x: int
    y: float
    label: str


class Colour(enum.Enum):
    """An enum, whose members are pickled by a call."""

    RED = 1
    GREEN = 2
    BLUE = 3


class Flags(enum.IntFlag):
    """An int that is an enum."""

    READ = 1
    WRITE = 2


@dataclasses.dataclass(frozen=True)
class Order:
    """A dataclass that holds others, and plain containers."""

    number: int
    lines: list[dict[str, object]]
    first: Reading
    placed: datetime.date


@shape("others")
def namedtuples() -> object:
    """2,000 named tuples."""
    return [Point(index, index * 0.5, f"point {index}") for index in range(2_000)]


@shape("others")
def enums() -> object:
    """2,000 references to members of enums."""
    return [*Colour, *Flags] * 400


@shape("others")
def nested_dataclasses() -> object:
    """500 dataclasses that hold dicts, dates and other dataclasses."""
    day = datetime.date(2026, 1, 1)
    return [
        Order(index, [_small_dict(index), _small_dict(index + 1)], Reading("s", 0.5, index), day)
        for index in range(500)
    ]


@shape("others")
def plain_beside_dataclasses() -> object:
    """1,000 dicts, each with a dataclass and a list in it: half of it is plain."""
    return [{**_small_dict(index), "reading": Reading("s", 0.5, index), "tags": ["a", "b"]} for index in range(1_000)]


@shape("others")
def ordered_dicts() -> object:
    """500 OrderedDicts."""
    return [collections.OrderedDict(_small_dict(index)) for index in range(500)]


@shape("others")
def deques() -> object:
    """200 deques of 20 ints."""
    return [collections.deque(range(index, index + 20), maxlen=50) for index in range(200)]


@shape("others")
def counters() -> object:
    """200 Counters of words."""
    return [collections.Counter(f"word {place}" for place in range(index, index + 10)) for index in range(200)]


@shape("others")
def defaultdicts() -> object:
    """200 defaultdicts of lists."""
    return [collections.defaultdict(list, {f"key {place}": [place] for place in range(10)}) for _ in range(200)]


@shape("others")
def uuids() -> object:
    """1,000 UUIDs."""
    generator = random.Random(SEED)
    return [uuid.UUID(int=generator.getrandbits(128)) for _ in range(1_000)]


@shape("others")
def paths() -> object:
    """500 paths."""
    return [pathlib.PurePosixPath(f"/srv/data/{index % 7}/file {index}.json") for index in range(500)]


@shape("others")
def fractions_1000() -> object:
    """1,000 Fractions."""
    return [fractions.Fraction(index, 7) for index in range(1_000)]


@shape("others")
def complex_and_ranges() -> object:
    """1,000 values of builtin types that have no opcode."""
    return [kind for index in range(500) for kind in (complex(index, 1), range(index))]


@shape("others")
def bytearrays() -> object:
    """500 bytearrays, which have an opcode from protocol 5 on only."""
    return [bytearray(b"x" * (index % 50)) for index in range(500)]


class Vector:
    """Has a reduce of its own, as most people write one: it only reads the instance."""

    def __init__(self, x: float, y: float) -> None:
        self.x, self.y = x, y

    def __reduce__(self) -> tuple[object, ...]:
        return Vector, (self.x, self.y)


class Connected:
    """Has something that is not to be pickled, and a state without it, as the documentation of pickle has it."""

    def __init__(self, name: str) -> None:
        self.name, self.tags, self.lock = name, ["a", "b"], None

    def __getstate__(self) -> dict[str, object]:
        state = self.__dict__.copy()
        del state["lock"]
        return state


@shape("others")
def vectors() -> object:
    """2,000 instances with a `__reduce__` that only reads them."""
    return [Vector(index, index * 0.5) for index in range(2_000)]


@shape("others")
def connected() -> object:
    """1,000 instances with a `__getstate__` that leaves something out."""
    return [Connected(f"name {index}") for index in range(1_000)]


if attrs is not None:

    @attrs.define
    class Defined:
        """A class that attrs gives slots and a `__getstate__`."""

        number: int
        name: str = "name"
        size: float = 0.5

    @shape("others")
    def attrs_instances() -> object:
        """2,000 instances of a class of attrs."""
        return [Defined(index, f"name {index}") for index in range(2_000)]


if numpy is not None:

    @shape("others")
    def arrays() -> object:
        """100 small arrays of numpy."""
        return [numpy.arange(index % 9.0) for index in range(100)]

    @shape("others")
    def rows_with_arrays() -> object:
        """200 rows with an array, a number of numpy's and a text."""
        return [
            {"id": index, "x": numpy.arange(5.0), "y": numpy.float64(index), "n": str(index)} for index in range(200)
        ]

    @shape("others")
    def arguments_with_an_array() -> object:
        """A task for a worker: its function's name and its arguments, an array among them."""
        return "resize", (numpy.zeros((3, 4)), 3), {"mode": "linear"}


def _closure() -> Callable[[int], int]:
    """Make what a worker is to call."""
    factor = 3

    def scaled(value: int) -> int:
        return value * factor

    return scaled


@shape("closure")
def closure_and_ints() -> object:
    """A closure and a list of 10,000 ints: a task for a worker, with its data."""
    return _closure(), list(range(10_000))


@shape("closure")
def closure_and_strs() -> object:
    """A closure and a list of 10,000 strings, each of which is memoized."""
    return _closure(), [f"text {index}" for index in range(10_000)]


@shape("closure")
def closure_and_records() -> object:
    """A closure and 1,000 records."""
    return _closure(), _records()


@shape("closure")
def records_and_closure() -> object:
    """The same, the closure last: what the C pickler has memoized is needed then."""
    return _records(), _closure()


def _records() -> list[object]:
    return [{**_small_dict(index), "tags": ["a", f"tag {index}"]} for index in range(1_000)]


# Plain and other objects in turns.


class Custom:
    """Something whose pickling runs its own code, which nobody may run twice."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __reduce__(self) -> tuple[object, ...]:
        return Custom, (int(self.value),)


class Stateful:
    """Something whose state is plain data that its own code makes."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __getstate__(self) -> dict[str, object]:
        return {f"field {place}": [self.index, place] for place in range(8)}


@shape("mixed")
def records_with_custom() -> object:
    """500 records, each with lists and dicts of its own and one object in between."""
    return [
        {"id": index, "tags": ["a", "b", index], "owner": _small_dict(index), "what": Custom(index), "sizes": [1, 2, 3]}
        for index in range(500)
    ]


@shape("mixed")
def custom_at_the_end() -> object:
    """10,000 small dicts, and then the one object for which all of it fails."""
    return [*(_small_dict(index) for index in range(10_000)), Custom(0)]


@shape("mixed")
def custom_in_every_list() -> object:
    """1,000 lists of 20 ints, each of which ends in an object."""
    return [[*range(20), Custom(index)] for index in range(1_000)]


@shape("mixed")
def custom_in_every_group() -> object:
    """100 groups of 100 small dicts, each of which ends in an object."""
    return [[*(_small_dict(index) for index in range(100)), Custom(group)] for group in range(100)]


@shape("mixed")
def custom_beside_small_lists() -> object:
    """2,000 pairs of an object and a list so small that handing it over hardly pays."""
    return [[Custom(index), [index, "x", index + 1, None, "y"]] for index in range(2_000)]


@shape("mixed")
def custom_beside_lists_of_50() -> object:
    """500 pairs of an object and a list of 50 strings, under a memo that grows."""
    return [[Custom(index), [f"text {index} {place}" for place in range(50)]] for index in range(500)]


@shape("mixed")
def custom_below_60_levels() -> object:
    """60 levels with 100 strings each and an object below: a try on every level would take all of it 60 times."""
    nested: list[object] = [Custom(0)]
    for level in range(60):
        nested = [*(f"text {level} {place}" for place in range(100)), nested]
    return nested


@shape("mixed")
def mixed_tree() -> object:
    """A tree of lists and dicts in turns, 4 to the 5th leaves, some of which are objects."""
    generator = random.Random(SEED)

    def branch(level: int) -> object:
        if not level:
            return Custom(level) if generator.random() < 0.2 else [level, "leaf", generator.random()]
        below = [branch(level - 1) for _ in range(4)]
        return {"level": level, "below": below, "note": "text"} if level % 2 else [level, *below]

    return branch(5)


@shape("mixed")
def random_gaps() -> object:
    """Objects after 0 to 200 small dicts each: what was just seen says nothing of what comes."""
    generator = random.Random(SEED)
    found: list[object] = []
    while len(found) < 5_000:
        found.append([*(_small_dict(index) for index in range(generator.randrange(200))), Custom(len(found))])
        found.extend(_small_dict(index) for index in range(generator.randrange(200)))
    return found


@shape("mixed")
def stateful_instances() -> object:
    """500 instances whose own code makes a state of small plain lists."""
    return [Stateful(index) for index in range(500)]


@shape("mixed")
def customs_only() -> object:
    """5,000 objects and nothing plain, but for their arguments."""
    return [Custom(index) for index in range(5_000)]


@shape("mixed")
def dict_of_customs() -> object:
    """A dict of 2,000 tuples, each of which has an object in it."""
    return {f"key {index}": (index, Custom(index), [index]) for index in range(2_000)}


# Made to a wanted size.


@shape("flat")
def flat_ints(count: int) -> object:
    """A list of ints."""
    return list(range(count))


@shape("flat")
def flat_strs(count: int) -> object:
    """A list of strings, all different."""
    return [f"string number {index}" for index in range(count)]


@shape("flat")
def flat_dicts(count: int) -> object:
    """A list of small dicts."""
    return [{"id": index, "score": index * 0.5} for index in range(count)]


@shape("memory")
def memory_ints(size: int) -> object:
    """One list of ints of 60 bits, 10 bytes each; a thousand ints again and again, since no int is memoised."""
    return [(1 << 59) + index for index in range(1_000)] * (size // 10_000)


@shape("memory")
def memory_strs(size: int) -> object:
    """A list of strings, 100 bytes each."""
    return [f"{index:097d}" for index in range(size // 100)]


@shape("memory")
def memory_dicts(size: int) -> object:
    """A list of dicts with a list in each, about 200 bytes each."""
    return [
        {"id": index, "name": f"item {index:08d}", "tags": [index, index + 1], "text": f"{index:0140d}"}
        for index in range(size // 200)
    ]
