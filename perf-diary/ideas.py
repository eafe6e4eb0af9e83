"""Each optimisation idea alone, measured against the stock pickler.

    source of pickle._Pickler.method --edited()--> one method --variant()--> subclass = one idea
    stock | variant | variant | stock | ...  on each workload that the idea touches --> ratio

How times are taken is said in ``series.py``.

An idea is a change of a few expressions in the running Python's own ``pickle.py``: everything that
is not the idea stays what it is there, word for word. An edit that no longer finds its text is an
error of this file, except where an older or newer Python spells the place otherwise; then all
spellings are listed. Whole loops are written out as methods.

Before anything is timed, every variant must write stock's bytes on every workload. The idea
``control`` changes nothing: what it shows beside 1.00 is noise and the cost of subclassing.

    python perf-diary/ideas.py                        all ideas
    python perf-diary/ideas.py --idea atoms_first     one
    python perf-diary/ideas.py --markdown             for the diary

Not for: the package. What was kept of these ideas is written there anew, with the hooks that an
experiment may ignore (a list that grows while it is pickled, say, or notes on exceptions).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import pickle
import struct
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parent))

import series
from series import BYTES, FLOATS, INTS, MIXED, OBJECTS, SMALL, STRINGS, Stock

BATCH = 1000
"""Items of one batch, ``pickle._Pickler._BATCHSIZE``."""


@dataclasses.dataclass(frozen=True)
class Idea:
    """One idea."""

    name: str
    """What it is called in the diary."""
    make: Callable[[], type]
    """Makes the subclass of the stock pickler; its docstring says what the idea is."""
    touches: tuple[str, ...]
    """The workloads on which it could show."""


IDEAS: dict[str, Idea] = {}
"""Name -> idea, filled by ``idea``."""


def idea(*touches: tuple[str, ...]) -> Callable[[Callable[[], type]], Callable[[], type]]:
    """Register the decorated function as an idea of the same name.

    Args:
        touches: Groups of workloads on which the idea is measured.

    Returns:
        The decorator, which returns the function unchanged.
    """

    def register(make: Callable[[], type]) -> Callable[[], type]:
        IDEAS[make.__name__] = Idea(make.__name__, make, series.distinct(*touches))
        return make

    return register


def edited(method: str, *edits: tuple[str, str], **names: object) -> Callable[..., Any]:
    """Recompile a method of the stock pickler with a few changes.

    Args:
        method: Its name.
        edits: Pairs of the text to find and the text to put there. Of several spellings of one
            place (by Python version) one is enough; every occurrence is replaced.
        names: Globals that the new text uses, besides those of ``pickle.py``.

    Returns:
        The changed function.

    Raises:
        LookupError: If none of the edits finds its text.
    """
    original = getattr(Stock, method)
    source = textwrap.dedent(inspect.getsource(original))
    changed = source
    for old, new in edits:
        changed = changed.replace(old, new)
    if edits and changed == source:
        raise LookupError(f"pickle._Pickler.{method} is spelt otherwise in this Python")
    namespace = {**vars(pickle), **names}
    exec(compile(changed, f"<pickle._Pickler.{method}, edited>", "exec"), namespace)
    function: Any = namespace[method]
    # Formats for pack are looked up faster if they are the very strings that were there before: a
    # copy of save_long with equal strings of its own is 4 to 6 % slower on ints (3.13).
    own = {constant: constant for constant in original.__code__.co_consts if type(constant) is str}
    constants = tuple(own.get(c, c) if type(c) is str else c for c in function.__code__.co_consts)
    function.__code__ = function.__code__.replace(co_consts=constants)
    return cast(Callable[..., Any], function)


def variant(**methods: Callable[..., Any]) -> type:
    """Make a subclass of the stock pickler with other methods.

    Args:
        methods: The methods; those called ``save_...`` also take their place in the table
            ``dispatch``.

    Returns:
        The class.
    """
    dispatch = {kind: methods.get(function.__name__, function) for kind, function in Stock.dispatch.items()}
    return type("Variant", (Stock,), {**methods, "dispatch": dispatch})


@idea(INTS, FLOATS, STRINGS, MIXED, OBJECTS, SMALL)
def control() -> type:
    """Nothing changed: the methods of the hot path recompiled as they are."""
    methods = ("save", "save_long", "save_float", "save_str", "memoize")
    return variant(**{method: edited(method) for method in methods})


@idea(INTS, FLOATS, STRINGS, MIXED, OBJECTS, SMALL)
def atoms_first() -> type:
    """None, bool, int and float before the memo and ``reducer_override``: the C pickler's order."""
    atoms = {kind: Stock.dispatch[kind] for kind in (type(None), bool, int, float)}
    lookup = "x = self.memo.get(id(obj))\n"
    first = "atom = atoms.get(type(obj))\n    if atom is not None:\n        return atom(self, obj)\n"
    return variant(save=edited("save", (lookup, f"{first}    {lookup}"), atoms=atoms))


@idea(INTS, MIXED)
def binint1_table() -> type:
    """The 256 one-byte ints from a table instead of ``BININT1 + pack("<B", obj)``."""
    table = [pickle.BININT1 + bytes([value]) for value in range(256)]
    return variant(save_long=edited("save_long", ('BININT1 + pack("<B", obj)', "t[obj]"), t=table))


@idea(INTS, STRINGS, MIXED, OBJECTS, SMALL)
def frame_check_inlined() -> type:
    """Whether the frame is full is asked in ``save`` itself, not by calling ``commit_frame``."""
    check = (
        "frame = self.framer.current_frame\n"
        "    if frame is not None and frame.tell() >= 65536:\n"
        "        self.framer.commit_frame()"
    )
    return variant(save=edited("save", ("self.framer.commit_frame()", check)))


@idea(STRINGS, BYTES, MIXED, OBJECTS, SMALL)
def memoize_inline() -> type:
    """``memoize`` writes the opcode MEMOIZE itself instead of asking ``put`` for it."""
    edit = ("self.put(idx)", "MEMOIZE if self.proto >= 4 else self.put(idx)")
    return variant(memoize=edited("memoize", edit))


@idea(INTS, FLOATS, ("deep_list",), MIXED, SMALL)
def list_slices() -> type:
    """Batches of an exact list are slices of it, not taken from an iterator."""

    def _batch_appends(self: Any, items: Iterable[object], *owner: object) -> None:
        if type(items) is not list or not self.bin:
            Stock._batch_appends(self, items, *owner)
            return
        save, write = self.save, self.write
        start = 0
        while True:
            batch = items[start : start + BATCH]
            count = len(batch)
            if count > 1:
                write(pickle.MARK)
                for item in batch:
                    save(item)
                write(pickle.APPENDS)
            elif count:
                save(batch[0])
                write(pickle.APPEND)
            if count < BATCH:
                return
            start += BATCH

    return variant(_batch_appends=_batch_appends)


@idea(("dict_str_int_5k", "dict_1000_entries", "dict_1001_entries"), MIXED, SMALL)
def dict_snapshot() -> type:
    """An exact dict of one batch is copied at once, not taken from an iterator."""
    view_type: Any = type({}.items())

    def _batch_setitems(self: Any, items: Any, *owner: object) -> None:
        if type(items) is not view_type or len(items) > BATCH or not self.bin:
            Stock._batch_setitems(self, items, *owner)
            return
        save, write = self.save, self.write
        batch = list(items)
        if len(batch) > 1:
            write(pickle.MARK)
            for key, value in batch:
                save(key)
                save(value)
            write(pickle.SETITEMS)
        elif batch:
            key, value = batch[0]
            save(key)
            save(value)
            write(pickle.SETITEM)

    return variant(_batch_setitems=_batch_setitems)


@idea(("sets_of_ints",))
def set_snapshot() -> type:
    """An exact set of one batch is copied at once, not taken from an iterator."""

    def save_set(self: Any, obj: set[object]) -> None:
        if self.proto < 4 or not 0 < len(obj) <= BATCH:
            Stock.save_set(self, obj)
            return
        save, write = self.save, self.write
        write(pickle.EMPTY_SET)
        self.memoize(obj)
        write(pickle.MARK)
        for item in list(obj):
            save(item)
        write(pickle.ADDITEMS)

    return variant(save_set=save_set)


@idea(STRINGS, BYTES, MIXED, SMALL)
def header_tables() -> type:
    """Opcode and length of short strings and bytes from a table, not from ``pack``."""
    strings = [pickle.SHORT_BINUNICODE + bytes([length]) for length in range(256)]
    plain = [pickle.SHORT_BINBYTES + bytes([length]) for length in range(256)]
    helper = "_save_bytes_no_memo"
    writer = helper if hasattr(Stock, helper) else "save_bytes"  # no helper before 3.11
    save_str = edited("save_str", ('SHORT_BINUNICODE + pack("<B", n)', "t[n]"), t=strings)
    save_bytes = edited(writer, ('SHORT_BINBYTES + pack("<B", n)', "t[n]"), t=plain)
    return variant(**{"save_str": save_str, writer: save_bytes})


@idea(INTS, FLOATS, MIXED)
def precompiled_structs() -> type:
    """``struct.Struct`` objects made once instead of format strings, for ints and floats."""
    byte, short, four = (struct.Struct(code).pack for code in ("<B", "<H", "<i"))
    return variant(
        save_long=edited(
            "save_long",
            ('BININT1 + pack("<B", obj)', "BININT1 + byte(obj)"),
            ('BININT2 + pack("<H", obj)', "BININT2 + short(obj)"),
            ('BININT + pack("<i", obj)', "BININT + four(obj)"),
            byte=byte,
            short=short,
            four=four,
        ),
        save_float=edited("save_float", ("pack('>d', obj)", "p(obj)"), p=struct.Struct(">d").pack),
    )


PERSISTENT_ID = "self.persistent_id(obj)"
"""The call that is made for every object and returns None unless somebody overrode it."""


@idea(INTS, STRINGS, MIXED, SMALL)
def persistent_id_asked_per_call() -> type:
    """``persistent_id`` is called only if the class overrides it, found out for every object."""
    test = f"None if type(self).persistent_id is stock else {PERSISTENT_ID}"
    edit = (PERSISTENT_ID, test)
    return variant(save=edited("save", edit, stock=Stock.persistent_id))


@idea(INTS, STRINGS, MIXED, SMALL)
def persistent_id_once_per_class() -> type:
    """``persistent_id`` is called only if the class overrides it, found out once for the class."""
    return variant(save=edited("save", (PERSISTENT_ID, "None")))


@idea(INTS, STRINGS, MIXED, SMALL)
def byte_counter() -> type:
    """The framer counts what it writes instead of asking ``BytesIO.tell`` (rejected upstream)."""

    class CountingFramer(pickle._Framer):  # type: ignore[name-defined,misc]
        def __init__(self, file_write: Callable[[bytes], Any]) -> None:
            super().__init__(file_write)
            self.size = 0

        def write(self, data: bytes) -> Any:
            if self.current_frame:
                self.size += len(data)
                return self.current_frame.write(data)
            return self.file_write(data)

        def commit_frame(self, force: bool = False) -> None:
            if force or self.size >= self._FRAME_SIZE_TARGET:
                super().commit_frame(force=True)
                self.size = 0

    def __init__(self: Any, file: Any, *args: Any, **kwargs: Any) -> None:
        Stock.__init__(self, file, *args, **kwargs)
        self.framer = CountingFramer(self._file_write)
        self.write = self.framer.write
        self._write_large_bytes = self.framer.write_large_bytes

    return variant(__init__=__init__)


@idea(STRINGS, SMALL)
def ascii_strings() -> type:
    """ASCII strings are encoded by a special case in ``save_str`` (rejected upstream)."""
    encode = "obj.encode('utf-8', 'surrogatepass')"
    ascii_first = f"obj.encode('ascii') if obj.isascii() else {encode}"
    return variant(save_str=edited("save_str", (encode, ascii_first)))


def comparison(pickler: type, protocol: int | None = None) -> series.Comparison:
    """Compare a variant with stock.

    Args:
        pickler: The variant.
        protocol: The pickle protocol, None for the default one.

    Returns:
        The two ways, of which stock's bytes count.
    """
    stock = series.by(Stock, protocol)
    return series.Comparison(stock, series.by(pickler, protocol), reference=stock)


def main() -> int:
    """Check and time the ideas asked for.

    Returns:
        The exit status: 0, or 1 if a variant writes other bytes than stock.
    """
    arguments = series.parser("Measure each optimisation idea alone.", "idea", IDEAS).parse_args()
    status = 0
    for name in arguments.idea or IDEAS:
        chosen = IDEAS[name]
        try:
            pair = comparison(chosen.make())
        except LookupError as error:
            print(f"{name}: not measured: {error}")
            continue
        if not series.same_bytes(name, pair):
            status = 1
            continue
        heading = (name, chosen.make.__doc__ or "", "stock / variant")
        rounds = functools.partial(series.measure, pair, seconds=arguments.seconds)
        series.show(heading, chosen.touches, arguments.markdown, rounds)
    return status


if __name__ == "__main__":
    sys.exit(main())
