"""The pure engine against the stock pickler: the workloads, and tables of other shapes than theirs.

    stock's pickler --+-- alternating rounds --> stock / ours, one line a shape; geometric mean and worst
    Pickler, pure   --+-- callgrind -----------> instructions of a dump, beside the times (``--instructions``)
    stock's pickler --+-- alternating rounds --> stock / what no pickler in Python can leave out (``--floors``)
    the floor       --+
    dumps(), both ----+-- the same, of a small dict: no pickler need be made
    both, subclassed to override one hook --> stock / ours, one column a hook (``--hooks``)

``Pickler`` is used with grafts switched off, as it is where there is no C pickler, for a file that is written in
Python, and for what stands beside objects that C gives up. Before a shape is timed its bytes must be stock's.

Not for: what grafts give (``grafting.py``), nor for one optimisation at a time (``ablations.py``), nor for where the
time goes (``profiles.py``).
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import pickle
import random
import sys
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import count, repeat
from operator import is_
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent))

import grafting
import series
from series import Stock, workloads

import fastpickle
from fastpickle.at_once.unmade import Unmade

SEED = 148707

EPILOG = """\
examples:
  %(prog)s                               about 1 minute
  %(prog)s --quick                       about 10 seconds
  %(prog)s --only small_dict deep_list   two workloads
  %(prog)s --floors                      how much there is to be had: about 20 seconds
  %(prog)s --hooks                       picklers that override a method: about 4 minutes
  %(prog)s --instructions --quick        what one dump takes of both, without noise: about 10 minutes

how to read it:
  2.50 is a time, or a number of instructions, 2.50 times as large for stock as for the pure engine. Instructions are
  the same in each run but for half a percent, and say nothing of caches and branches: where the time gains less than
  they do, those decide. A floor is no pickler: it makes the entries of the memo, or looks at the types, or joins
  the data with the lengths, by the fewest calls of C that do so; then of all that, and of all that if no memo were
  filled, but it were only looked whether an object comes twice.

exit status: 0 measured, 1 something did not write stock's bytes and was not timed, 2 wrong usage, or no valgrind
"""


class Pure(fastpickle.Pickler):
    """Hands nothing to the C pickler."""

    fastpickle_grafts = False


class Reduced:
    """Has a reduce of its own, which must be called where stock calls it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Reduced, tuple(vars(self).values())


class Stated:
    """Has a state of its own, as objects with something that is not to be pickled."""

    def __init__(self, number: int) -> None:
        self.number, self.name, self.parent = number, f"name {number}", None

    def __getstate__(self) -> dict[str, object]:
        return dict(self.__dict__, parent=None)


class Point:
    """Has a reduce of its own that only reads it, so that nobody sees where it is called."""

    def __init__(self, x: object, y: object) -> None:
        self.x, self.y = x, y

    def __reduce__(self) -> Any:
        return Point, (self.x, self.y)


def tables() -> dict[str, object]:
    """Make rows as real data has them: with values that are missing, lists of any length, a row that is none."""
    generator = random.Random(SEED)
    pick = generator.random
    words = [f"word{generator.randrange(500)}" for _ in range(10_000)]
    return {
        "matrix": [[pick() for _ in range(100)] for _ in range(200)],
        "lists_of_lists": [[[j] * 3 for j in range(4)] for _ in range(500)],
        "tags_of_any_number": [
            {"id": i, "tags": [f"t{generator.randrange(30)}" for _ in range(generator.randrange(5))]}
            for i in range(2000)
        ],
        "children_of_any_number": [
            {"id": i, "kids": [{"x": j, "y": str(j)} for j in range(generator.randrange(5))]} for i in range(1000)
        ],
        "missing_keys": [{k: pick() for k in "abcd" if pick() < 0.8} for _ in range(2000)],
        "missing_values": [{"a": i, "b": None if pick() < 0.5 else {"c": i}} for i in range(2000)],
        "one_odd_row_in_300": [{"id": i, "x": str(i)} if i % 300 else [i] for i in range(3000)],
        "two_kinds_of_rows": [(i, "a") if pick() < 0.5 else {"b": i} for i in range(2000)],
        "optional_fields": [_record(i, generator) for i in range(2000)],
        "events": [_event(i) for i in range(3000)],
        "pairs_as_keys": {(i, i + 1): str(i) for i in range(2000)},
        "words": " ".join(words).split(),
        "long_texts": ["".join([chr(60 + i % 50)] * 3000) for i in range(300)],
        "tree": _tree(9),
        "reduces_of_ones_own": [Reduced(i) for i in range(1000)],
        "states_of_ones_own": [Stated(i) for i in range(1000)],
        "reduces_that_only_read": [Point(i, -i) for i in range(1000)],
        "one_reduce_of_ones_own": Reduced("text"),
        "few_reduces_of_ones_own": {"id": 5, "first": Reduced(1), "second": Reduced("text")},
        "reduce_of_much": Reduced([{"id": i, "x": str(i)} for i in range(500)]),
        "reduces_in_rows": [{"id": i, "value": Reduced(i)} for i in range(1000)],
        "values_of_any_kind": [
            generator.choice((date.fromordinal(i), Decimal(i), UUID(int=i), {"on": date.fromordinal(i)}, None, [i]))
            for i in range(1, 1001)
        ],
        "dates_and_texts": [x for i in range(1, 501) for x in (date.fromordinal(i), str(i))],
    }


def _record(i: int, generator: random.Random) -> dict[str, object]:
    pick = generator.random
    found: dict[str, object] = {"id": i, "name": f"user {i}", "score": pick(), "active": pick() < 0.5}
    if pick() < 0.5:
        found["email"] = f"user{i}@example.org"
    if pick() < 0.3:
        found["parent"] = generator.randrange(1000)
    return {**found, "tags": [f"t{generator.randrange(40)}" for _ in range(3)]}


def _event(i: int) -> dict[str, object]:
    if i % 3 == 0:
        return {"type": "click", "x": i % 640, "y": i % 480, "time": i / 7}
    if i % 3 == 1:
        return {"type": "key", "key": f"k{i % 50}", "time": i / 7}
    return {"type": "view", "url": f"/page/{i}", "milliseconds": i % 1000, "referrer": None}


def _tree(depth: int) -> object:
    left, right = (_tree(depth - 1), _tree(depth - 1)) if depth else (None, None)
    return {"name": f"n{depth}", "left": left, "right": right, "weight": depth / 3}


#: Methods that libraries override, each in another way, none of which lets anything be written in bulk; and their
#: function for dicts.
HOOKS = ("persistent_id", "memoize", "save", "reducer_override", "dispatch[dict]")

ENGINES: dict[str, Callable[..., Any]] = {"stock": Stock, "pure": Pure}


def dumps(cls: Callable[..., Any], obj: object) -> bytes:
    """Pickle by a class of picklers."""
    file = io.BytesIO()
    cls(file).dump(obj)
    return file.getvalue()


#: What is timed by `fastpickle.dumps`, which need not make a pickler, against stock's in Python.
BY_DUMPS = "workload, by dumps()"
stock_dumps: Callable[[object], bytes] = pickle._dumps  # type: ignore[attr-defined]  # private: the one in Python


def pure_dumps(obj: object) -> bytes:
    """Pickle as `fastpickle.dumps` does where there is no C pickler."""
    pickled = _unmade.at_once(obj, pickle.DEFAULT_PROTOCOL)
    if pickled:
        return pickled
    file = io.BytesIO()
    Pure(file).dump(obj)
    return file.getvalue()


_unmade = Unmade(Pure)


def choose(names: Sequence[str] | None) -> dict[str, dict[str, object]]:
    """Make the objects that were asked for.

    Args:
        names: Workloads and tables, None for all.

    Returns:
        Kind -> name -> object.

    Raises:
        ValueError: If a name is not known; the message says so in one line.
    """
    made = tables()
    known = [*workloads.WORKLOADS, *made]
    for name in names or ():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
            raise ValueError(f"no workload or table {name!r}; {hint}")
    chosen = {
        "workload": {name: workloads.build(name) for name in workloads.WORKLOADS if names is None or name in names},
        "table": {name: obj for name, obj in made.items() if names is None or name in names},
    }
    if "small_dict" in chosen["workload"]:  # of which making the pickler is a large part
        chosen[BY_DUMPS] = {"small_dict": chosen["workload"]["small_dict"]}
    return {kind: objects for kind, objects in chosen.items() if objects}


def of_one_type(objs: Sequence[object], t: type) -> bool:
    """Tell whether all objects are of one type, without asking anybody's code."""
    return all(map(is_, map(type, objs), repeat(t)))


def memoized(objs: Sequence[object], memo: dict[int, tuple[int, object]]) -> None:
    """Put objects into a memo, if they are not there, and look them up."""
    deque(map(memo.setdefault, map(id, objs), zip(count(), objs)), 0)  # count() has no end


def are_distinct(objs: Sequence[object]) -> bool:
    """Tell whether no object comes twice, as whoever fills no memo has to know."""
    return len({*map(id, objs)}) == len(objs)


def joined(texts: Sequence[str]) -> bytes:
    """Write short ASCII texts, with a byte for the length of each."""
    pieces = [""] * (2 * len(texts))
    pieces[::2] = map(chr, map(len, texts))
    pieces[1::2] = texts
    return "".join(pieces).encode("latin-1")


def floors() -> dict[str, dict[str, Callable[[], object]]]:
    """Make what cannot be left out of the flat workloads with texts.

    Returns:
        Workload -> way -> what it does: "stock" and "pure" pickle, the others are parts of that.
    """
    strs: Any = workloads.build("list_of_strs_1k")
    several: Any = workloads.build("list_of_bytes_1k")
    shared: Any = workloads.build("shared_strings")
    pairs: Any = workloads.build("dict_str_int_5k")
    keys, values = [*pairs], [*pairs.values()]
    memo: dict[int, tuple[int, object]] = {}
    memoized(shared, memo)
    return {
        "list_of_strs_1k": _parts(
            strs,
            lambda: memoized(strs, {}),
            lambda: of_one_type(strs, str),
            lambda: joined(strs),
            lambda: are_distinct(strs),
        ),
        "list_of_bytes_1k": _parts(
            several,
            lambda: memoized(several, {}),
            lambda: of_one_type(several, bytes),
            lambda: (b"".join(several), [*map(len, several)]),
            lambda: are_distinct(several),
        ),
        "shared_strings": _parts(  # what is in the memo may be of any type
            shared,
            lambda: [*map(memo.__getitem__, map(id, shared))],
            lambda: None,
            lambda: bytes(2 * len(shared)),
            lambda: [*map(memo.__getitem__, map(id, shared))],
        ),
        "dict_str_int_5k": _parts(
            pairs,
            lambda: memoized(keys, {}),
            lambda: of_one_type(keys, str) and of_one_type(values, int),
            lambda: (joined(keys), array("H", values).tobytes()),
            lambda: are_distinct(keys),
        ),
    }


def _parts(
    obj: object,
    memo: Callable[[], object],
    types: Callable[[], object],
    packed: Callable[[], object],
    ids: Callable[[], object],
) -> dict[str, Callable[[], object]]:
    return {
        "stock": lambda: dumps(Stock, obj),
        "pure": lambda: dumps(Pure, obj),
        "memo": memo,
        "types": types,
        "bytes": packed,
        "all": lambda: (memo(), types(), packed()),
        "unfilled": lambda: (ids(), types(), packed()),
    }


def measure_floors(plan: Any) -> str:
    """Time the floors.

    Args:
        plan: How long.

    Returns:
        A table in Markdown.
    """
    rows = []
    for name, ways in floors().items():
        seconds = grafting.in_turns(ways, plan)
        ratios = {way: grafting.ratio(seconds["stock"], seconds[way]) for way in ways if way != "stock"}
        rows.append([name, *(f"{value:.2f}" if value < 1000 else "-" for value in ratios.values())])
    return grafting.table(["stock / ...", "pure", "memo", "types", "bytes", "these three", "with no memo"], rows)


def hooked(base: Any, hook: str) -> Any:
    """Return a subclass of a pickler that overrides one method, or entry, and does there what the pickler does."""
    if hook == "dispatch[dict]":
        entry = base.dispatch[dict]

        def save_dict(pickler: Any, obj: Any) -> None:
            entry(pickler, obj)

        dispatch = {**base.dispatch, dict: save_dict}
        return type(f"{base.__name__}_with_entry", (base,), {"dispatch": dispatch})
    overridden = getattr(base, hook, None)

    def heard(self: Any, *args: Any, **keywords: Any) -> Any:
        return NotImplemented if overridden is None else overridden(self, *args, **keywords)

    return type(f"{base.__name__}_with_{hook}", (base,), {hook: heard})


def measure_hooks(name: str, objects: dict[str, object], plan: Any) -> tuple[str, list[str]]:
    """Time shapes with subclasses that override a method: then each object is saved hook by hook.

    Args:
        name, objects, plan: as for `measure`.

    Returns:
        What `measure` returns.
    """
    picklers = {hook: [hooked(base, hook) for base in (Stock, Pure)] for hook in HOOKS}
    ratios: dict[str, list[float]] = {}
    differ = []
    for shape, obj in objects.items():
        if any(dumps(pickler, obj) != dumps(Stock, obj) for pair in picklers.values() for pickler in pair):
            differ.append(shape)
            continue
        ratios[shape] = []
        for stock, pure in picklers.values():
            ways = {"stock": lambda p=stock, o=obj: dumps(p, o), "pure": lambda p=pure, o=obj: dumps(p, o)}
            seconds = grafting.in_turns(ways, plan)
            ratios[shape].append(grafting.ratio(seconds["stock"], seconds["pure"]))
    rows = [[shape, *[f"{ratio:.2f}" for ratio in of]] for shape, of in ratios.items()]
    if ratios:
        mean = grafting._timing.geometric_mean
        rows.append(["**geometric mean**", *[f"{mean(of):.2f}" for of in zip(*ratios.values(), strict=True)]])
    return grafting.table([f"{name}, stock / pure", *[f"`{hook}`" for hook in HOOKS]], rows), differ


def measure(name: str, objects: dict[str, object], plan: Any, *, counts: bool = False) -> tuple[str, list[str]]:
    """Time some shapes.

    Args:
        name: What they are called together.
        objects: Name -> object.
        plan: How long.
        counts: Whether to count their instructions, too.

    Returns:
        A table in Markdown, and the shapes whose bytes are not stock's.

    Raises:
        series.NotCounted: If the instructions cannot be counted.
    """
    rows = []
    fewer = {}
    differ = []
    ratios = {}
    stock, pure = partial(dumps, Stock), partial(dumps, Pure)
    if name == BY_DUMPS:
        stock, pure = stock_dumps, pure_dumps
        counts = False
    for shape, obj in objects.items():
        if pure(obj) != stock(obj):
            differ.append(shape)
            continue
        seconds = grafting.in_turns({"stock": partial(stock, obj), "pure": partial(pure, obj)}, plan)
        ratios[shape] = grafting.ratio(seconds["stock"], seconds["pure"])
        row = [shape, f"{ratios[shape]:.2f}"]
        if counts:
            of_stock, of_ours = series.instructions([__file__, "--count", shape])
            fewer[shape] = of_stock / of_ours
            row += [f"{fewer[shape]:.2f}", f"{of_stock:,}", f"{of_ours:,}"]
        rows.append(row)
    if ratios:
        mean, worst = (grafting._timing.geometric_mean, lambda of: min(of, key=of.__getitem__))
        columns = [ratios, fewer] if counts else [ratios]
        rest = ["", ""] if counts else []
        rows.append(["**geometric mean**", *[f"{mean(of.values()):.2f}" for of in columns], *rest])
        rows.append(["**worst**", *[f"{of[worst(of)]:.2f} ({worst(of)})" for of in columns], *rest])
    heading = ["stock / pure"]
    if counts:
        heading = ["time, stock / pure", "instructions, stock / pure", "instructions a dump, stock", "pure"]
    return grafting.table([name, *heading], rows), differ


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit status: 1 if other bytes than stock's are written, 2 if the instructions cannot be counted.
    """
    parser = argparse.ArgumentParser(
        description="Time the pure engine against the stock pickler: above 1 it is faster.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these workloads and tables")
    parser.add_argument("--floors", action="store_true", help="time what cannot be left out, in place of all else")
    parser.add_argument(
        "--hooks", action="store_true", help="time picklers that override a method, in place of all else"
    )
    parser.add_argument("--instructions", action="store_true", help="count with valgrind, too")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write what is printed to FILE too")
    parser.add_argument("--count", help=argparse.SUPPRESS)  # what is run under valgrind
    arguments = parser.parse_args(argv)
    try:
        chosen = choose([arguments.count] if arguments.count else arguments.only)
    except ValueError as error:
        parser.error(str(error))
    if arguments.count:
        obj = next(obj for objects in chosen.values() for obj in objects.values())
        print(json.dumps([series.dumps_to_count(series.by(cls), obj) for cls in ENGINES.values()]))
        return 0
    plan = grafting.QUICK if arguments.quick else grafting.FULL
    try:
        if arguments.floors:
            found: list[tuple[str, list[str]]] = [(measure_floors(plan), [])]
        elif arguments.hooks:
            found = [measure_hooks(kind, objects, plan) for kind, objects in chosen.items() if kind != BY_DUMPS]
        else:
            found = [measure(kind, objects, plan, counts=arguments.instructions) for kind, objects in chosen.items()]
    except series.NotCounted as error:
        print(error, file=sys.stderr)
        return 2
    where = f"{sys.implementation.name} {sys.version.split()[0]}, protocol {pickle.DEFAULT_PROTOCOL}"
    options = [" --quick"] * arguments.quick + [" --floors"] * arguments.floors + [" --hooks"] * arguments.hooks
    options += [" --instructions"] * arguments.instructions
    if arguments.only:
        options.append(f" --only {' '.join(arguments.only)}")
    command = f"python perf-diary/pure.py{''.join(options)}"
    text = "\n\n".join(table for table, _ in found)
    text += f"\n\n{where}; CPU time, medians of alternating rounds. `{command}`.\n"
    if arguments.markdown is not None:
        arguments.markdown.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    differ = [shape for _, shapes in found for shape in shapes]
    for shape in differ:
        print(f"NOT TIMED: {shape}: other bytes than stock's", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
