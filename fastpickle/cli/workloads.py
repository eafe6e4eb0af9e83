"""The objects that every measurement of this package pickles.

    name --> WORKLOADS[name] --> one plain object, the same in every process

Each workload is one small function without arguments whose docstring says what real data it stands
for. Random numbers come from a generator with a fixed seed, so two runs, and two processes, pickle
equal objects. All but ``small_dict`` take the standard library's ``pickle._Pickler`` about 1 to 20
ms: long enough to be timed, short enough to be timed often.

Not for: correctness. Odd shapes (cycles, frame borders, hostile objects) belong into the tests.
"""

from __future__ import annotations

import dataclasses
import datetime
import random
from collections.abc import Callable

__all__ = ["WORKLOADS", "Reading", "build", "describe"]

SEED = 148707
"""Seed of every generator below."""

DEEP_LIST_DEPTH = 100
"""Levels of ``deep_list``: stock takes 3 Python frames for each, dill 4, of 1000 by default."""


def list_of_ints_10k() -> list[int]:
    """10,000 ints: row numbers, token ids, a column of a table."""
    return list(range(10_000))


def list_of_strs_1k() -> list[str]:
    """1,000 distinct strings: file names, keys of a cache, words of a vocabulary."""
    return [f"string number {index}" for index in range(1_000)]


def dict_str_int_5k() -> dict[str, int]:
    """5,000 string keys with int values: a vocabulary, counters, an index."""
    return {f"key_{index}": index for index in range(5_000)}


def deep_list() -> list[object]:
    """Lists nested 100 deep with a few atoms on each level: a syntax tree, nested calls."""
    nested: list[object] = []
    for level in range(DEEP_LIST_DEPTH):
        nested = [level, f"level {level}", level / 2, None, [level, -level], True, nested]
    return nested


def nested_list_of_dicts() -> list[dict[str, object]]:
    """1,000 small dicts with the same keys and one nested list each: rows for a worker."""
    return [
        {"id": index, "name": f"item {index}", "score": index * 0.5, "tags": [index, index + 1]}
        for index in range(1_000)
    ]


def list_of_small_ints_10k() -> list[int]:
    """10,000 ints of one byte each: labels of classes, pixels, months."""
    generator = random.Random(SEED)
    return [generator.randrange(256) for _ in range(10_000)]


def list_of_floats_10k() -> list[float]:
    """10,000 floats: a time series, an embedding, losses of a training run."""
    generator = random.Random(SEED)
    return [generator.gauss(0.0, 1.0) for _ in range(10_000)]


def list_of_tuples_1k() -> list[tuple[int, float, str]]:
    """1,000 tuples of an int, a float and a string: rows as a database cursor returns them."""
    generator = random.Random(SEED)
    return [(index, generator.random(), f"row {index}") for index in range(1_000)]


def json_records() -> list[dict[str, object]]:
    """200 nested records as ``json.loads`` returns them: an answer of a web service, a log."""
    generator = random.Random(SEED)
    return [
        {
            "id": generator.getrandbits(40),
            "created_at": f"2026-01-{1 + index % 28:02d}T12:00:00Z",
            "user": {"login": f"user{index}", "site_admin": index % 10 == 0, "followers": index},
            "labels": [{"name": name, "default": False} for name in ("bug", "question")],
            "score": generator.random(),
            "milestone": None,
            "body": f"The text of issue {index}, a few words long, with an \N{EM DASH} in it.",
        }
        for index in range(200)
    ]


def sets_of_ints() -> list[set[int]]:
    """200 sets of 20 ints each: neighbours in a graph, postings of an index."""
    generator = random.Random(SEED)
    return [set(generator.sample(range(100_000), 20)) for _ in range(200)]


def list_of_bytes_1k() -> list[bytes]:
    """1,000 bytes objects of 16 to 600 bytes: digests, compressed pages, small messages."""
    generator = random.Random(SEED)
    return [generator.randbytes(generator.choice((16, 32, 64, 600))) for _ in range(1_000)]


def mixed_atoms() -> list[object]:
    """5,000 values of six types in no order: a table read row by row, with missing values."""
    generator = random.Random(SEED)
    return [
        generator.choice((None, True, index, -index * 100_003, index / 7, f"v{index}", b"raw"))
        for index in range(5_000)
    ]


def shared_strings() -> list[str]:
    """5,000 references to 20 strings: a categorical column, written by fetches from the memo."""
    generator = random.Random(SEED)
    categories = [f"category {index}" for index in range(20)]
    return [generator.choice(categories) for _ in range(5_000)]


def dict_1000_entries() -> dict[int, int]:
    """A dict of exactly one batch, 1,000 entries: a size at which picklers differ."""
    return {index * 7: index for index in range(1_000)}


def dict_1001_entries() -> dict[int, int]:
    """A dict of one batch and one entry, 1,001: the last one is written by another opcode."""
    return {index * 7: index for index in range(1_001)}


@dataclasses.dataclass
class Reading:
    """One measurement of a sensor, for the workload ``dataclass_instances``."""

    sensor: str
    value: float
    count: int
    valid: bool = True


def dataclass_instances() -> list[Reading]:
    """500 instances of a dataclass, through ``__reduce_ex__``: domain objects, settings."""
    generator = random.Random(SEED)
    return [Reading(f"sensor {index % 12}", generator.random(), index) for index in range(500)]


def datetimes() -> list[datetime.datetime]:
    """500 datetimes, pickled through ``__reduce_ex__`` of a C type: timestamps of events."""
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    return [start + datetime.timedelta(minutes=17 * index) for index in range(500)]


def small_dict() -> dict[str, object]:
    """One dict of four entries, about 20 us: arguments of a task; the fixed cost decides."""
    return {"task": "resize", "width": 640, "height": 480, "tags": ["a", "b"]}


WORKLOADS: dict[str, Callable[[], object]] = {
    function.__name__: function
    for function in (
        list_of_ints_10k,
        list_of_strs_1k,
        dict_str_int_5k,
        deep_list,
        nested_list_of_dicts,
        list_of_small_ints_10k,
        list_of_floats_10k,
        list_of_tuples_1k,
        json_records,
        sets_of_ints,
        list_of_bytes_1k,
        mixed_atoms,
        shared_strings,
        dict_1000_entries,
        dict_1001_entries,
        dataclass_instances,
        datetimes,
        small_dict,
    )
}
"""Name -> the function that makes the object; the first five have published figures (gh-148707)."""


def build(name: str) -> object:
    """Make the object of one workload.

    Args:
        name: A key of ``WORKLOADS``.

    Returns:
        The object, new and equal to every other one made under this name.

    Raises:
        KeyError: If there is no workload of this name.
    """
    return WORKLOADS[name]()


def describe(name: str) -> str:
    """Say in one line what data a workload stands for.

    Args:
        name: A key of ``WORKLOADS``.

    Returns:
        The first line of the docstring of the workload's function.

    Raises:
        KeyError: If there is no workload of this name.
    """
    return (WORKLOADS[name].__doc__ or "").partition("\n")[0]
