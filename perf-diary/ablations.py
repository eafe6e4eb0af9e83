"""Each optimisation of the package alone, in place: fastpickle as it is against fastpickle without it.

    fastpickle/*.py --private_copy()----------> as it is --+--> without / with
    fastpickle/*.py --private_copy(*edits)----> ablated  --+

An ablation is an edit of the text of the package's own modules. Both sides are private copies of the
package under names of their own, so the one that is imported stays as it is; both are the pure engine,
without grafts, but for what is of these. An edit that finds nothing is an error of this file. How times
are taken is said in ``series.py``; here the rounds of a row come from three processes, since one can be off as a whole:
because it chose the length of its samples while the machine was busy, or because a class was changed
too often in it (CPython 3.13 stops caching the attributes of a class that was changed about a thousand
times, and each ``patched()`` changes one).

Most ablations take away something that is there; the ratio is the time without it / the time with
it. Some put something in that was rejected, or is forbidden; there, *with* is with that. Above 1 the
thing pays, either way. Before anything is timed, both sides must write the reference's bytes on every
workload. The ablation ``control`` changes nothing.

    python perf-diary/ablations.py                              all ablations
    python perf-diary/ablations.py --list                       what there is
    python perf-diary/ablations.py --ablation one_loop          one
    python perf-diary/ablations.py --markdown                   for the diary
    python perf-diary/ablations.py --ablation one_opening_write --workload deep_list --instructions

The last one counts the instructions of a dump with valgrind instead of timing it, for where the noise
hides the answer: they say nothing of caches and branches, but the same run gives the same number, give
or take half a percent.

Not for: what the package could do besides. Ideas on their own are in ``ideas.py``.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import series
from series import BYTES, FLOATS, INTS, MIXED, OBJECTS, SMALL, STRINGS, workloads

PACKAGE = Path(__file__).resolve().parent.parent / "fastpickle"
"""What the copies are made of."""

Edit = tuple[str, str, str]
"""Module, by its path; what to find, and what to put there: of several lines at any depth of indentation."""

NO_RUNS: tuple[Edit, ...] = (("engine/parts", "SHORTEST_RUN: Final = 12", "SHORTEST_RUN: Final = 1 << 40"),)
"""Nothing is encoded column by column (``runs``)."""

DEEP = ("deep_list",)
TUPLES = ("list_of_tuples_1k",)
SETS = ("sets_of_ints",)
SHARED = ("shared_strings",)


# What a copy of the package is used for.  Each gives a way of pickling by the copy, and the reference for its bytes.


def by_pickler(package: ModuleType, protocol: int | None) -> tuple[series.Way, series.Way]:
    """Pickle by the copy's own ``Pickler``."""
    return series.by(package.Pickler, protocol), series.by(series.Stock, protocol)


def by_hooked(package: ModuleType, protocol: int | None) -> tuple[series.Way, series.Way]:
    """Pickle by a subclass with a ``persistent_id``, which must see every object."""

    def hooked(base: Any) -> type:
        return type("Hooked", (base,), {"persistent_id": lambda self, obj: None})

    return series.by(hooked(package.Pickler), protocol), series.by(hooked(series.Stock), protocol)


def by_c(package: ModuleType, protocol: int | None) -> tuple[series.Way, series.Way]:
    """Pickle by the copy's ``dumps()``, by the C pickler where it may."""
    package.Pickler.fastpickle_grafts = True
    return series.Way(functools.partial(package.dumps, protocol=protocol)), series.by(series.Stock, protocol)


def by_dill(package: ModuleType, protocol: int | None) -> tuple[series.Way, series.Way]:
    """Pickle by ``dill.dumps`` inside the copy's ``patched()``."""
    dumps = importlib.import_module("dill").dumps
    return series.Way(dumps, package.patched), series.Way(dumps)


@dataclasses.dataclass(frozen=True)
class Ablation:
    """One thing taken away, or put in."""

    name: str
    """What it is called in the diary."""
    edits: tuple[Edit, ...]
    """What is changed."""
    about: str
    """What it is."""
    touches: tuple[str, ...]
    """The workloads on which it could show."""
    puts_in: bool = False
    """The edits put the thing in, instead of taking it away."""
    protocol: int | None = None
    """The pickle protocol, None for the default one."""
    both: tuple[Edit, ...] = NO_RUNS
    """What is changed on both sides: most of these things are of the loop, which runs would hide."""
    use: Callable[[ModuleType, int | None], tuple[series.Way, series.Way]] = by_pickler
    """What the copies are used for."""

    @property
    def heading(self) -> str:
        """What the ratio is of."""
        return "as it is / with" if self.puts_in else "without / as it is"

    def ways(self, edited: bool) -> tuple[series.Way, series.Way]:
        """Make a copy.

        Args:
            edited: Whether it is the edited one, or the package as it is.

        Returns:
            The way to pickle by it, and the reference.

        Raises:
            LookupError: If an edit does not find its text.
            ImportError: If a library that is needed is not installed.
        """
        name, edits = (self.name, self.edits) if edited else ("as_it_is", ())
        return self.use(private_copy(name, *self.both, *edits, needs_dill=self.use is by_dill), self.protocol)

    def comparison(self) -> series.Comparison:
        """Compare the package with the thing and without it; raises what ``ways`` raises."""
        (as_it_is, reference), (changed, _) = self.ways(edited=False), self.ways(edited=True)
        without, with_ = (as_it_is, changed) if self.puts_in else (changed, as_it_is)
        return series.Comparison(without, with_, reference)


ABLATIONS: dict[str, Ablation] = {}
"""Name -> ablation, filled by ``ablation``."""


def ablation(*touches: tuple[str, ...], **how: Any) -> Callable[[Callable[[], tuple[Edit, ...]]], None]:
    """Register what the decorated function gives as an ablation of the function's name and docstring.

    Args:
        touches: Groups of workloads on which it is measured.
        how: ``puts_in``, ``protocol``, ``both`` and ``use`` of ``Ablation``.

    Returns:
        The decorator.
    """

    def register(edits: Callable[[], tuple[Edit, ...]]) -> None:
        name = edits.__name__
        ABLATIONS[name] = Ablation(name, edits(), edits.__doc__ or "", series.distinct(*touches), **how)

    return register


def replaced(source: str, old: str, new: str) -> str:
    """Replace every occurrence of a text.

    Args:
        source: Where.
        old: What to find. Of several lines, their common indentation does not count.
        new: What to put there; indented as the text that was found.

    Returns:
        The changed source.

    Raises:
        LookupError: If it is not there.
    """
    if "\n" in old:
        lines = textwrap.dedent(old).strip("\n").splitlines()
        pattern = r"^( *)" + r"\n\1".join(map(re.escape, lines)) + "$"
        put = textwrap.dedent(new).strip("\n")
        changed, count = re.subn(pattern, lambda match: textwrap.indent(put, match[1]), source, flags=re.MULTILINE)
    else:
        changed, count = source.replace(old, new), source.count(old)
    if not count:
        raise LookupError(f"the package has no such text any more: {old.strip()}")
    return changed


def private_copy(name: str, *edits: Edit, needs_dill: bool = False) -> ModuleType:
    """Import a copy of the package under another name.

    Args:
        name: The end of its name.
        edits: What is changed in it.
        needs_dill: Whether it has to know dill.

    Returns:
        The copy.

    Raises:
        LookupError: If an edit does not find its text.
        ImportError: If dill is needed and not installed.
    """
    name = f"fastpickle_{name}"
    for loaded in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[loaded]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, name)
        shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("cli", "__pycache__"))
        for module, old, new in (("rules", '"fastpickle.backends.', f'"{name}.backends.'), *edits):
            path = root / f"{module}.py"
            path.write_text(replaced(path.read_text(encoding="utf-8"), old, new), encoding="utf-8")
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            package = importlib.import_module(name)
            if needs_dill:
                importlib.import_module(f"{name}.backends.dill")
                sys.modules["dill"].extend(False)  # what its import writes into stock's table must not touch the others
        finally:
            sys.path.remove(folder)
    package.Pickler.fastpickle_grafts = False
    return package


@ablation(INTS, FLOATS, STRINGS, MIXED, OBJECTS, DEEP, SMALL)
def control() -> tuple[Edit, ...]:
    """Nothing changed: what it shows beside 1.00 is noise."""
    return ()


# Taken away.


@ablation(MIXED, OBJECTS, DEEP, SMALL)
def levels() -> tuple[Edit, ...]:
    """Without: short lists, dicts and tuples are saved by a function each, as long ones are."""
    kinds = ("list", "dict", "tuple")
    return tuple(("hooks", f"new.short_{t}s = {t} in new.containers", f"new.short_{t}s = False") for t in kinds)


@ablation(INTS, FLOATS, STRINGS, BYTES, MIXED, DEEP, SMALL)
def sure_of_room() -> tuple[Edit, ...]:
    """Without: each object asks how full the frame is, and whether it is in the memo, and is written at once."""
    return (("engine/loop", "is_sure = dump.is_usual\n", "is_sure = False\n"),)


@ablation(SMALL, both=())
def small_at_once() -> tuple[Edit, ...]:
    """Without: a dump of a few objects begins and ends as a dump of many does, and the loop saves what is in it."""
    return (("hooks", "new.small_rule = rule\n", "new.small_rule = None\n"),)


@ablation(STRINGS, TUPLES, DEEP, SMALL)
def default_encode() -> tuple[Edit, ...]:
    """Without: strings are always encoded by encode("utf-8", "surrogatepass")."""
    old = """
        try:
            encoded = x.encode()  # naming the encoding takes 5 % more instructions for many strings
        except UnicodeEncodeError:
            encoded = x.encode("utf-8", "surrogatepass")
    """
    return (("engine/loop", old, 'encoded = x.encode("utf-8", "surrogatepass")'),)


@ablation(INTS, FLOATS, STRINGS, BYTES, SHARED, TUPLES, MIXED, SETS, SMALL, both=())
def runs() -> tuple[Edit, ...]:
    """Without: what is of one shape is not encoded together, column by column, but by the loop."""
    return NO_RUNS


@ablation(OBJECTS, both=())
def instances_in_runs() -> tuple[Edit, ...]:
    """Without: instances are saved one by one."""
    return (("engine/parts", "reducers[t] = reducer(pickler, plan, t)", "reducers[t] = None"),)


@ablation(SETS, both=())
def groups_in_runs() -> tuple[Edit, ...]:
    """Without: sets, and lists and dicts that differ in length or keys, are saved one by one."""
    return (("runs", "if sum(sizes) != n:", "if True:"),)


@ablation(INTS, FLOATS, STRINGS, SETS, both=())
def joined_runs() -> tuple[Edit, ...]:
    """Without: flat numbers and texts are written one by one, as atoms of several types are."""
    return (("runs", "if t is str or t is bytes or t is int or t is float:", "if False:"),)


@ablation(INTS, FLOATS, both=())
def padded_batches() -> tuple[Edit, ...]:
    """Without: the numbers of a full batch are packed by an array, and spread, as those of any other length."""
    return (
        ("engine/columns", "if n == BATCHSIZE:", "if False:"),
        (
            "engine/columns",
            "_join_full_batch(objs) if len(objs) == BATCHSIZE else _join_ints(objs)",
            "_join_ints(objs)",
        ),
    )


@ablation(("dict_str_int_5k", "dict_1000_entries", "nested_list_of_dicts"), both=())
def two_byte_table() -> tuple[Edit, ...]:
    """Without: ints of up to two bytes in rows are packed each time, not looked up in a table of all of them."""
    return (("engine/columns", "if _wanted >= 20_000:", "if False:"),)


@ablation(STRINGS, BYTES, TUPLES, SHARED, both=())
def memo_by_setdefault() -> tuple[Edit, ...]:
    """Without: it is asked first whether all objects are new to the memo, and then they are put there by update()."""
    old = "deque(map(memo.setdefault, map(id, objs), zip(count(before), objs)), 0)"
    new = f"""
        ids = [*map(id, objs)]
        if memo.keys().isdisjoint(ids):
            memo.update(zip(ids, zip(count(before), objs)))
            if len(memo) == before + len(ids):
                return None
            forget(memo, before)
        {old}
    """
    return (("engine/columns", f"\n    {old}  # count() has no end\n", new),)


@ablation(STRINGS, BYTES, TUPLES, ("dict_str_int_5k", "nested_list_of_dicts"), both=())
def pieces_by_slices() -> tuple[Edit, ...]:
    """Without: the pieces of rows are put in their order by zip() and chain()."""
    new = """
        rows = zip(*[repeat(c, n) if type(c) is bytes else c for c in columns])
        return b"".join(chain.from_iterable(rows))
        pieces = []
    """
    return (
        ("engine/columns", '\n    pieces = [c if type(c) is bytes else b"" for c in columns] * n\n', new),
        ("engine/columns", "from itertools import count", "from itertools import chain, count"),
    )


@ablation(BYTES, both=())
def texts_cut() -> tuple[Edit, ...]:
    """Without: where there is one of more than 256 characters among the first, texts are written by the loop."""
    return (("engine/parts", "if width == 1:", "if width == 1 and max(sizes) <= _LONG_TEXT:"),)


@ablation(("dict_1000_entries",), both=())
def pairs_as_one_column() -> tuple[Edit, ...]:
    """Without: the keys and values of a dict are two columns, though they are of one type."""
    return (("runs", "_in_turn(columns) if type(columns[1][0]) is t else []", "[]"),)


@ablation(SETS)
def set_saver() -> tuple[Edit, ...]:
    """Without: sets are saved by stock's function, their items by save()."""
    own = "if own is not None and entry is own[0]:"
    return (
        ("engine/plain", "hooks.savers[set] = 4, _save_set", "hooks.savers[set] = 4, None"),
        ("engine/reduce", own, own.replace(":", " and plan.proto < 4:")),
    )


@ablation(OBJECTS, both=())
def usual_form() -> tuple[Edit, ...]:
    """Without: what a reduce gives is handed to stock's save_reduce()."""
    return (("engine/reduce", "if is_ours:", "if False:"),)


_IS_NOBODYS = "if not is_somebodys_own and is_nobodys(reduce, obj, t, has_default) and _is_table_plain(pickler):"


@ablation(OBJECTS, both=())
def known_reduces() -> tuple[Edit, ...]:
    """Without: the plan is settled after every reduce, also after one that runs nobody's code."""
    return (("engine/reduce", _IS_NOBODYS, "if False:"),)


@ablation(SETS, BYTES, protocol=2)
def own_reduces() -> tuple[Edit, ...]:
    """Without: sets and bytes at protocols that have no opcode for them are saved by stock's functions; protocol 2."""
    return (("engine/reduce", "if own is not None and entry is own[0]:", "if False:"),)


@ablation(("list_of_small_ints_10k",), SHARED, STRINGS, BYTES, MIXED, SMALL)
def one_byte_tables() -> tuple[Edit, ...]:
    """Without: opcodes with an argument of one byte are packed each time, by a struct compiled once."""
    looked_up = ("BINGET[i]", "BININT1[x]", "SHORT_BINUNICODE[k]", "SHORT_BINBYTES[k]")
    packed = tuple(("engine/loop", text, f"pack_byte(_{text[:-3]}, {text[-2]})") for text in looked_up)
    tables = [text[:-3] for text in looked_up]
    first = '_stock_save_str = stock_methods["save_str"]'
    opcodes = f"{', '.join(f'_{table}' for table in tables)} = (t[0][:1] for t in ({', '.join(tables)}))"
    return (
        ("engine/loop", first, f"{opcodes}\n{first}"),
        ("opcodes", "pack_binint2: Final", 'pack_byte: Final = Struct("<cB").pack\npack_binint2: Final'),
        ("engine/loop", "    pack_binbytes,", "    pack_binbytes, pack_byte,"),
        *packed,
    )


@ablation(INTS, FLOATS, MIXED)
def compiled_structs() -> tuple[Edit, ...]:
    """Without: ints and floats are packed by pack(format), and the opcode put before, as in stock."""
    return (
        (
            "engine/loop",
            "from operator import is_not, length_hint",
            "from operator import is_not, length_hint\nfrom struct import pack",
        ),
        ("engine/loop", "pack_binint2(BININT2, x)", 'BININT2 + pack("<H", x)'),
        ("engine/loop", "pack_binint(BININT, x)", 'BININT + pack("<i", x)'),
        ("engine/loop", "pack_binfloat(BINFLOAT, x)", 'BINFLOAT + pack(">d", x)'),
    )


@ablation(INTS, STRINGS, MIXED, DEEP, OBJECTS, use=by_hooked)
def atoms_beside_hooks() -> tuple[Edit, ...]:
    """Without: in a pickler with a hook for every object, ints and strings go through dispatch."""
    return tuple(("pickler", f"entry is _stock_save_{kind}", "False") for kind in ("long", "str"))


@ablation(INTS, STRINGS, MIXED, DEEP, OBJECTS, use=by_hooked)
def frame_check_beside_hooks() -> tuple[Edit, ...]:
    """Without: a pickler with a hook for every object calls commit_frame() for each one, too."""
    return (("pickler", "if type(framer) is Framer:", "if frame := None:"),)


@ablation(INTS, STRINGS, MIXED, DEEP, OBJECTS, use=by_hooked)
def dict_left_alone() -> tuple[Edit, ...]:
    """Without: the `__dict__` of a pickler that allows no shortcut is asked for all the same."""
    return (("hooks", "    cls = type(pickler)\n    try:", "    cls = type(pickler)\n    pickler.__dict__\n    try:"),)


# Taken away, for dill.

KNOWN_DILL_SAVE = "hooks.known_saves[_dill_save] = hooks.known_saves[Pickler.save] = hooks.known_saves[_Base.save]"


@ablation(INTS, STRINGS, MIXED, DEEP, OBJECTS, SMALL, use=by_dill)
def known_dill_save() -> tuple[Edit, ...]:
    """Without: dill's save() is called for every object, as any override of save() is."""
    return (("backends/dill", KNOWN_DILL_SAVE, "pass"),)


@ablation(OBJECTS, use=by_dill)
def known_dill_save_of_objects() -> tuple[Edit, ...]:
    """Without: dill's save() is called for the objects that are no plain data."""
    return (
        (
            "backends/dill",
            KNOWN_DILL_SAVE,
            "hooks.known_saves[_dill_save] = hooks.by_save",
        ),
    )


@ablation(("dict_str_int_5k", "json_records", "nested_list_of_dicts"), OBJECTS, SMALL, use=by_dill)
def known_dill_dict() -> tuple[Edit, ...]:
    """Without: every dict is saved by dill's own function, which compares it with that of `__main__`."""
    return (("backends/dill", "hooks.known_entries[dict, _dill.save_module_dict] = _save_plain_dict", "pass"),)


@ablation(("dict_str_int_5k", "dict_1000_entries", "dict_1001_entries"), both=(), use=by_c)
def untracked_dicts() -> tuple[Edit, ...]:
    """Without: a dict that the garbage collector does not track is searched for containers as any other is."""
    return (("accelerator/glance", "and not gc.is_tracked(obj)", "and False"),)


@ablation(("dict_str_int_5k",), INTS, FLOATS, both=(), use=by_c)
def ended_at_once() -> tuple[Edit, ...]:
    """Without: a large container of which it is known that its own end alone is to be mended is looked at anew."""
    at_once = "behind = 2 if is_spliced else 1  # BUILD, STOP"
    return (("accelerator/glance", at_once, f"if not is_little:\n        return False\n    {at_once}"),)


# Put in, and forbidden: what exactness costs.


@ablation(OBJECTS, puts_in=True)
def no_settling() -> tuple[Edit, ...]:
    """With: a reduce is taken to have changed nothing; a hook that it sets is not seen."""
    return (
        (
            "engine/reduce",
            "has_default = not is_somebodys_own and _has_default_reduce(dump, obj, t)",
            "has_default = True",
        ),
        ("engine/reduce", _IS_NOBODYS, "if True:"),
    )


PROCESSES = 3
"""How many processes time a row; what one of them does for the whole of its life is outvoted."""


def rounds(name: str, workload: str, seconds: float) -> list[float]:
    """Time one row of a table, in processes of its own.

    Args:
        name: The ablation.
        workload: The workload.
        seconds: How long to measure, in all processes together.

    Returns:
        The ratios of the rounds of all of them, in rising order.
    """
    command = [sys.executable, __file__, "--ablation", name, "--workload", workload]
    command += ["--rounds", "--seconds", str(seconds / PROCESSES)]
    found: list[float] = []
    for _ in range(PROCESSES):
        found += json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return sorted(found)


def instructions(name: str, edited: bool, workload: str) -> int:
    """Count the instructions of one dump.

    Args:
        name: The ablation.
        edited: Whether the edited package is run, or the package as it is.
        workload: The workload.

    Returns:
        Instructions per dump.

    Raises:
        series.NotCounted: If there is no valgrind, or it fails.
    """
    side = "edited" if edited else "as_it_is"
    return series.instructions([__file__, "--ablation", name, "--workload", workload, "--run", side])[0]


def show_instructions(chosen: Ablation, touches: tuple[str, ...], markdown: bool) -> None:
    """Print the table of the instructions of one ablation; raises what ``instructions`` raises."""
    if markdown:
        print(f"\n| `{chosen.name}`, instructions | as it is | {'with' if chosen.puts_in else 'without'} | change |")
        print("|---|--:|--:|--:|")
    else:
        print(f"\n{chosen.name}: {chosen.about}")
    row = "| {} | {:,} | {:,} | {:+.1f} % |" if markdown else "  {:24}{:13,}{:13,}{:+7.1f} %"
    for workload in touches:
        as_it_is, edited = (instructions(chosen.name, side, workload) for side in (False, True))
        print(row.format(workload, as_it_is, edited, 100 * (edited / as_it_is - 1)), flush=True)


def main() -> int:
    """Check and time the ablations asked for, or count their instructions.

    Returns:
        The exit status: 0, 1 if other bytes are written than the reference, 2 if nothing could be counted.
    """
    parser = series.parser("Measure each optimisation of the package in place.", "ablation", ABLATIONS)
    parser.add_argument("--workload", action="append", choices=workloads.WORKLOADS, help="only this one; repeatable")
    parser.add_argument("--list", action="store_true", help="print the ablations and end")
    parser.add_argument("--instructions", action="store_true", help="count with valgrind instead of timing")
    parser.add_argument("--rounds", action="store_true", help=argparse.SUPPRESS)  # what rounds() runs
    parser.add_argument("--run", choices=("as_it_is", "edited"), help=argparse.SUPPRESS)  # what instructions() runs
    arguments = parser.parse_args()
    status = 0
    for name in arguments.ablation or ABLATIONS:
        chosen = ABLATIONS[name]
        touches = tuple(arguments.workload or chosen.touches)
        if arguments.list:
            print(f"{name:28}{chosen.about}")
        elif arguments.run:
            way, _ = chosen.ways(edited=arguments.run == "edited")
            print(json.dumps([series.dumps_to_count(way, workloads.build(touches[0]))]))
        elif arguments.rounds:
            print(json.dumps(series.measure(chosen.comparison(), touches[0], arguments.seconds)))
        elif arguments.instructions:
            try:
                show_instructions(chosen, touches, arguments.markdown)
            except series.NotCounted as error:
                print(error, file=sys.stderr)
                return 2
        else:
            try:
                pair = chosen.comparison()
            except (LookupError, ImportError) as error:
                print(f"{name}: not measured: {error}")
                continue
            if not series.same_bytes(name, pair):
                status = 1
                continue
            heading = (name, chosen.about, chosen.heading)
            series.show(
                heading, touches, arguments.markdown, functools.partial(rounds, name, seconds=arguments.seconds)
            )
    return status


if __name__ == "__main__":
    sys.exit(main())
