"""What is of one shape is written column by column, and nobody can tell: bytes, frames, memo and errors are stock's."""

from __future__ import annotations

import copyreg
import io
import os
import pathlib
import pickle
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from oracle import tables
from oracle.compare import PythonFile, Run, check, describe
from oracle.engines import ORACLE, PURE, Pure, Stock
from oracle.parts import APartOf

import fastpickle
from fastpickle import runs
from fastpickle._stdlib import FRAMES_ARE_BYTESIO
from fastpickle.engine import columns, parts

CONTAINERS = frozenset((list, dict, tuple, set, frozenset))
SEEDS = 40
BLOCK = 3


def dumped(cls: Any, obj: Any, protocol: int) -> Any:
    """Return all that came of a dump: what was written, in which pieces, and the memo."""
    file = PythonFile() if protocol >= 4 else io.BytesIO()
    pickler = cls(file, protocol)
    try:
        pickler.dump(obj)
        error = None
    except Exception as exc:
        error = type(exc), str(exc), getattr(exc, "__notes__", None)
    sizes = file.sizes() if isinstance(file, PythonFile) else ()
    memo = [(key == id(x), i, describe(x)) for key, (i, x) in pickler.memo.items()]
    written = file.getvalue()
    file.close()
    return error, sizes, written, memo


def check_object(obj: Any, protocols: tuple[int, ...] = (2, 4, 5)) -> None:
    for protocol in protocols:
        tables.WithState.asked = 0
        expected = dumped(Stock, obj, protocol)
        tables.WithState.asked = 0
        got = dumped(Pure, obj, protocol)
        if expected != got:
            check(ORACLE, PURE, lambda run: run.pickler.dump(obj), protocols=(protocol,))  # says where
        assert expected == got


def _key(text: str) -> str:
    """Return a text that is no other one's object."""
    return "".join(["a ", text])


_NOT_FOUND = (
    "mostly atoms", "one in 300", "empty tuples", "classes", "many classes", "containers that come twice",
    "unions of unions",
)  # fmt: skip


def _union(i: int, depth: int) -> Any:
    """Return one of two containers with another one in it, and so on: kinds multiply at each level."""
    if not depth:
        return f"v{i}"
    return [_union(i, depth - 1)] if (i >> depth) & 1 else (_union(i, depth - 1),)


_INSTANCES = [*tables.INSTANCES.values()]
_SHARED: Any = [[1], {"c": 1}, (1, 2)]
#: Makers of rows of a few kinds.
KINDS: dict[str, Callable[[int], Any]] = {
    "a missing key": lambda i: {"a": i, "b": "x", "c": None} if i % 3 else {"a": i, "c": f"{i}"},
    "all keys missing": lambda i: {"a": i, "b": "x"} if i % 3 else {},
    "another order": lambda i: {"a": i, "b": f"{i}"} if i % 2 else {"b": f"{i}", "a": i},
    "shared values": lambda i: {"a": f"v{i % 5}", "b": (f"v{i % 7}", i)} if i % 3 else {"b": f"v{i % 5}", "d": b"x"},
    "numbers only": lambda i: {"a": i, "b": i} if i % 3 else {"a": i},
    "keys that come late": lambda i: {"a": f"{i}", "b": i} if i < 30 or i % 5 else {f"k{i % 3}": f"{i}", "b": 1},
    "equal keys": lambda i: {_key("x"): f"{i}", "b": i} if i % 5 else {"b": f"{i}"},
    "keys of several types": lambda i: {1: f"{i}", "b": i} if i % 5 else {(1,): f"{i}", b"b": 2},
    "lists and dicts": lambda i: [i, f"{i}"] if i % 2 else {"a": f"{i}"},
    "sets and tuples": lambda i: ({i, f"{i}"}, frozenset((i,)), (i, f"t{i % 9}"), (i,), [])[i % 5],
    "lengths of tuples": lambda i: (i, f"{i}", "x")[: 1 + i % 3],
    "long and short tuples": lambda i: (i, f"{i}") * (1 + i % 4),
    "empty tuples": lambda i: (i,) * (i % 3),
    "mostly atoms": lambda i: (i, f"{i}", None, {"a": 1})[i % 4],
    "one in 300": lambda i: {"a": f"{i}"} if i % 300 else [i],
    "of any number": lambda i: {f"k{i % 30}": f"{i}"},
    "nested": lambda i: {"a": {"b": [{"c": i} if i % 2 else {"d": f"{i}"}]}} if i % 3 else {"a": [i], "e": ({"c": 1},)},
    "classes": lambda i: _INSTANCES[i % 3](f"{i}", i),
    "many classes": lambda i: _INSTANCES[i * i % len(_INSTANCES)](i, i),
    "unions of unions": lambda i: _union(i, 5),
    "containers that come twice": lambda i: {"a": i, "b": _SHARED[i % 3] if i % 50 == 49 else [i]} if i % 2 else [i, 2],
}


@pytest.mark.parametrize("block", range(SEEDS))
def test_random_tables(block: int, a_part_of: APartOf) -> None:
    for seed in a_part_of(range(block * BLOCK, (block + 1) * BLOCK)):
        obj = tables.table(seed)()
        try:
            check_object(obj)
        except AssertionError as exc:
            raise AssertionError(f"seed {seed}") from exc


@pytest.mark.parametrize("block", range(SEEDS))
def test_random_records(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        make = tables.records(seed)
        try:
            check_object(make(), (2, 4, 5) if seed % 4 == 0 else (4,))
            check_object({"a": make(), "b": [make()]}, (4,))
        except AssertionError as exc:
            raise AssertionError(f"seed {seed}") from exc


@pytest.mark.parametrize("n", [7, 8, 16, 63, 64, 65, 200, 999, 1001])
@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_rows(name: str, n: int) -> None:
    """Rows of a few kinds, of which the memo learns the keys early, late or never; also in rows, and as values."""
    make = KINDS[name]
    rows = [make(i) for i in range(n)]
    for obj in (rows, tuple(rows), dict(enumerate(rows)), [{"id": i, "row": make(i)} for i in range(n)], [rows, rows]):
        check_object(obj, (4, 5) if n < 70 else (4,))


@pytest.mark.parametrize("name", ["a missing key", "shared values", "sets and tuples", "nested", "of any number"])
def test_kinds_of_many_rows(name: str) -> None:
    """The same around the number from which on a few kinds are looked for, and through more than one batch."""
    make = KINDS[name]
    for n in 399, 400, 401, 2001, 3003:
        rows = [make(i) for i in range(n)]
        check_object(rows, (4,))
        check_object(dict(enumerate(rows)), (4,))


@pytest.mark.parametrize("sizes", [(1, 200), (200, 1), (1, 3000), (3000, 1), (40, 50, 60), (1, 1, 90_000)])
def test_sizes_of_batches(sizes: tuple[int, ...]) -> None:
    """How large the rows of one batch are says only at first how large those of the next one are."""
    rows = [{"a": i, "b": f"{i}" + "x" * sizes[i // 1000 % len(sizes)]} for i in range(2500)]
    others = [x if i % 3 else (i, *x.values()) for i, x in enumerate(rows)]
    for obj in rows, others, dict(enumerate(rows)), dict(enumerate(others)), [others[:1500], rows[1200:]]:
        check_object(obj, (4,))
    check_object({frozenset(x.items()) for x in rows}, (4,))
    check_object({"a": [[rows[:1100], i] for i in range(3)]}, (4,))


def test_kinds_are_found() -> None:
    """What the above is about: a few kinds are written in a run, equal keys that are several objects are not."""
    for name, make in KINDS.items():
        rows = [make(i) for i in range(120)]
        keys = list(dict.fromkeys(key for row in rows if type(row) is dict for key in row))
        memo = {id(key): (i, key) for i, key in enumerate(keys)}
        data = runs.encode([rows], memo, 4, CONTAINERS, lambda t: None, True)
        assert (data is None) == (name in _NOT_FOUND), name
    assert runs.encode([[_union(i, 2) for i in range(999)]], {}, 4, CONTAINERS, lambda t: None, True)
    assert runs.encode([[_union(i, 7) for i in range(999)]], {}, 4, CONTAINERS, lambda t: None, True) is None


def test_memo_is_taught() -> None:
    """What is new to the memo is refused in another way if it may be taught, and the memo is as it was."""
    for rows in (
        [{"a": f"{i}"} if i % 2 else {"b": i} for i in range(60)],
        [tables.WithState(i) if i % 2 else [i] for i in range(60)],
        [{"x": {"a": f"{i}"}} for i in range(60)],
    ):
        for learns in (True, False):
            memo: dict[int, Any] = {}
            data = runs.encode([rows], memo, 4, CONTAINERS, lambda t: lambda obj: (t, (1,)), True, learns=learns)
            assert (data == b"") == learns
            assert bool(memo) == bool(data)
    many = [{f"k{i}": f"{i}", "a": 1} for i in range(5)]
    check_object([many[(i * i) % 5] | {"b": f"{i}"} for i in range(3000)], (4,))


@pytest.mark.soak
def test_soak_tables() -> None:
    """As many as there is time for; from SOAK_SEED on."""
    first = seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 2**32)) * 1000
    end = time.monotonic() + float(os.environ.get("SOAK_SECONDS", 60))
    while time.monotonic() < end:
        try:
            check_object(tables.table(seed)(), (random.Random(seed).choice((2, 3, 4, 5)),))
            check_object(tables.records(seed)(), (4,))
        except AssertionError as exc:
            raise AssertionError(f"seed {seed}") from exc
        seed += 1
    print(f"{seed - first} tables from seed {first} on, no mismatch")


@pytest.mark.parametrize("name", tables.ATOMS)
def test_column(name: str, a_part_of: APartOf) -> None:
    """Each kind of atom alone, as the keys or values of a dict, and in rows, at the lengths where something changes."""
    for n in a_part_of((1, 2, 7, 8, 9, 16, 256, 999, 1000, 1001, 2000)):
        make = tables.ATOMS[name](random.Random(n))
        values = [make(i) for i in range(n)]
        protocols = (1, 2, 3, 4, 5) if n < 20 else (2, 4) if n in (256, 1001) else (4,)
        for obj in (
            values,
            tuple(values),
            dict(enumerate(values)),
            [(x, i) for i, x in enumerate(values)],
        ):
            check_object(obj, protocols)
        for obj in ([[x] for x in values], [{"a": x, 5: i} for i, x in enumerate(values)], [*map(str, values)]):
            check_object(obj, protocols)
        if name not in ("floats", "numbers"):  # a nan is not its own equal
            check_object(dict.fromkeys(values), protocols)
            check_object(set(values), protocols)
            check_object(frozenset(values), protocols)


@pytest.mark.parametrize("name", tables.INSTANCES)
def test_instances(name: str, a_part_of: APartOf) -> None:
    """Each kind of instance, alone and in rows; what is somebody's code runs just as often as in stock."""
    make = tables.INSTANCES[name]
    for n in a_part_of((7, 8, 30, 1001)):
        values: list[Any] = [lambda i: f"{i}", lambda i: [i], lambda i: "the same"]
        for value in values + [lambda i: i, lambda i: None] * (n < 1000):
            objs = [make(value(i), i) for i in range(n)]
            for obj in (
                objs,
                [(x, i) for i, x in enumerate(objs)],
                {i: {"x": x} for i, x in enumerate(objs)},
                [objs, objs],
            ):
                check_object(obj, (2, 4, 5) if n == 30 else (4,))


def test_entries_for_instances() -> None:
    """A dispatch entry, or one in a dispatch_table, of the class or of copyreg, is asked about each instance."""
    rows = [tables.Record(f"{i}", i) for i in range(30)]

    def dispatch(base: Any, run: Run) -> Any:
        def save(pickler: Any, obj: Any) -> None:
            run.record("save", obj)
            pickler.save_reduce(list, (), obj=obj)

        return type("P", (base,), {"dispatch": {**base.dispatch, tables.Record: save}})

    def table_of_class(base: Any, run: Run) -> Any:
        def reduce(obj: Any) -> Any:
            run.record("reduce", obj)
            return list, ()

        return type("P", (base,), {"dispatch_table": {tables.Record: reduce}})

    def override(base: Any, run: Run) -> Any:
        def reducer_override(pickler: Any, obj: Any) -> Any:
            run.record("reducer_override", obj)
            return NotImplemented

        return type("P", (base,), {"reducer_override": reducer_override})

    for cls in (dispatch, table_of_class, override):
        check(ORACLE, PURE, lambda run: run.pickler.dump(rows), protocols=(2, 4), cls=cls)

    def of_instance(run: Run) -> None:
        def reduce(obj: Any) -> Any:
            run.record("reduce", obj)
            return list, ()

        run.pickler.dispatch_table = {tables.Record: reduce}
        run.pickler.dump(rows)

    check(ORACLE, PURE, of_instance, protocols=(2, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(copyreg.dispatch_table, tables.Record, lambda obj: (list, ()))
        check_object(rows)


def test_class_that_cannot_be_saved() -> None:
    """The error is that of the first instance, and stock's."""

    class Local:
        def __init__(self) -> None:
            self.a = 1

    check(ORACLE, PURE, lambda run: run.pickler.dump([Local() for _ in range(30)]), protocols=(2, 4), fails=True)
    check(ORACLE, PURE, lambda run: run.pickler.dump([1, *[Local() for _ in range(30)]]), protocols=(2, 4), fails=True)


def test_class_that_changes() -> None:
    """What a reduce in between does to a class holds for the instances after it."""

    def steps(run: Run) -> None:
        class_ = type("Changing", (), {"__module__": __name__, "__qualname__": "Changing"})
        globals()["Changing"] = class_
        rows: list[Any] = [class_() for _ in range(60)]
        for i, row in enumerate(rows):
            row.a = i

        class Changer:
            def __reduce__(self) -> Any:
                class_.__getstate__ = lambda self: {"a": "changed"}
                return list, ()

        run.pickler.dump([rows[:30], Changer(), rows[30:]])

    check(ORACLE, PURE, steps, protocols=(2, 4))


ROWS: dict[str, Callable[[int], Any]] = {
    "ints": lambda i: i % 200,
    "one byte": lambda i: (None, True)[i % 2],
    "texts": lambda i: f"{i:06}",
    "bytes": lambda i: b"%06d" % i,
    "floats": float,
    "atoms": lambda i: (i, None, f"{i}")[i % 3],
    "tuples": lambda i: (i, f"{i}", None),
    "dicts": lambda i: {"id": i, "text": f"{i}", "list": [i, i]},
    "lists": lambda i: [i] * (i % 5),
    "records": lambda i: tables.Record(f"{i}", i),
    "points": lambda i: tables.Point(f"{i}", i),
    "nested": lambda i: [(i, {"a": [f"{i}"]}), b"%d" % i],
}


@pytest.mark.parametrize("name", ROWS)
def test_end_of_a_frame(name: str, a_part_of: APartOf) -> None:
    """The frame is as full as can be when the run begins: it ends before, in and after each of the first rows."""
    rows = [ROWS[name](i) for i in range(41)]  # the last of "atoms" takes one byte
    for n in a_part_of(range(64_900, 65_560, 1 if name in ("atoms", "dicts", "nested") else 3)):
        obj = ["".join(["x"] * n), rows]
        assert dumped(Stock, obj, 4) == dumped(Pure, obj, 4), n


@pytest.mark.parametrize("name", ROWS)
def test_several_frames(name: str) -> None:
    rows = [ROWS[name](i) for i in range(30_000)]
    check_object(rows, (4,))
    check_object(dict(enumerate(rows)), (4,))


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("fails_at", range(4))
def test_file_that_fails(name: str, fails_at: int) -> None:
    """Nothing is written that stock would not have written, and another dump with the same pickler is the same."""

    def fail(k: int) -> None:
        if k == fails_at:
            raise OSError(28, "no space", k)

    def steps(run: Run) -> None:
        rows = [ROWS[name](i) for i in range(20_000)]
        with pytest.raises(OSError):
            run.pickler.dump(rows)
        run.pickler.dump([rows[5], rows])

    check(ORACLE, PURE, steps, protocols=(4,), file=lambda run: PythonFile(fail))


@pytest.mark.parametrize("place", [0, 1, 7, 8, 500, 998, 999])
@pytest.mark.parametrize("name", ROWS)
def test_what_cannot_be_saved(name: str, place: int) -> None:
    """The error says which item it was, where stock says so, and as much is written before it."""

    def steps(run: Run) -> None:
        rows: list[Any] = [ROWS[name](i) for i in range(1200)]
        rows[place] = lambda: 0
        run.pickler.dump([rows])

    check(ORACLE, PURE, steps, protocols=(2, 4), fails=True)


@pytest.mark.parametrize("name", ROWS)
def test_write_that_changes_the_data(name: str) -> None:
    """What is changed while a frame is written is seen just where stock sees it."""

    def steps(run: Run) -> None:
        run.kept["rows"] = [ROWS[name](i) for i in range(9000)]
        run.pickler.dump(run.kept["rows"])

    def file(run: Run) -> PythonFile:
        def change(k: int) -> None:
            rows = run.kept["rows"]
            if k == 2:
                rows[4000:4100] = ["changed"] * 50
            elif k == 4 and type(rows[-1]) is list:
                rows[-1].append("more")
            elif k == 4 and type(rows[-1]) is dict:
                rows[-1]["id"] = "other"
            elif k == 4:
                del rows[-10:]

        return PythonFile(change)

    check(ORACLE, PURE, steps, protocols=(4, 5), file=file)


@pytest.mark.parametrize("rows", [[*range(300)], [1.5 * i for i in range(99)], [None] * 50, [(), ()] * 9, [True] * 20])
def test_number_in_the_memo(rows: list[Any]) -> None:
    """Nobody but a caller puts a number into a memo; who does finds it fetched from there."""

    def steps(run: Run) -> None:
        run.pickler.memoize([])
        run.pickler.memo[id(rows[9])] = (len(run.pickler.memo), rows[9])
        run.pickler.dump(
            [rows, [(x, 1) for x in rows], [{"a": x} for x in rows], [[x, "b"] for x in rows], [*rows, "a"]]
        )

    check(ORACLE, PURE, steps, protocols=(2, 4))


class Marked:
    """Memoizes a number, from its reduce."""

    def __init__(self, run: Run, number: Any) -> None:
        self.run = run
        self.number = number

    def __reduce__(self) -> Any:
        memo = self.run.pickler.memo
        memo[id(self.number)] = len(memo), self.number
        return list, ()


@pytest.mark.parametrize("inside", [False, True])
def test_number_that_a_reduce_memoizes(inside: bool) -> None:
    def steps(run: Run) -> None:
        rows = [i + 10**6 for i in range(100)]
        marked = Marked(run, rows[50])
        more: list[Any] = [(marked, i) if i == 40 else (rows[i], i) for i in range(100)]
        run.pickler.dump([more if inside else marked, rows, more])

    check(ORACLE, PURE, steps, protocols=(2, 4))


def test_first_item_that_changes_the_pickler() -> None:
    """What the first item's reduce does to the pickler holds for the items after it."""

    class Changing:
        def __init__(self, change: Callable[[], None]) -> None:
            self.change = change

        def __reduce__(self) -> Any:
            self.change()
            return list, ()

    def asks(run: Run) -> None:
        def persistent_id(obj: Any) -> None:
            run.record("persistent_id", obj)

        changing = Changing(lambda: setattr(run.pickler, "persistent_id", persistent_id))
        run.pickler.dump([changing, *range(20)])

    def memoizes(run: Run) -> None:
        numbers = [i + 10**6 for i in range(20)]
        run.pickler.dump([Marked(run, numbers[5]), *numbers])

    check(ORACLE, PURE, asks, protocols=(2, 4))
    check(ORACLE, PURE, memoizes, protocols=(2, 4))


@pytest.mark.parametrize("protocol", [2, 4])
def test_first_item_that_dumps_by_the_same_pickler(protocol: int) -> None:
    """It ends the frame: what comes after it goes to the file."""

    class Nest:
        def __init__(self, run: Run) -> None:
            self.run = run

        def __reduce__(self) -> Any:
            self.run.pickler.dump("inner")
            return list, ()

    def steps(run: Run) -> None:
        run.pickler.dump([Nest(run), *range(200)])

    check(ORACLE, PURE, steps, protocols=(protocol,), file=lambda run: io.BytesIO())


class NoHash(type):
    """A class that cannot be looked up in a dict."""

    def __eq__(cls, other: object) -> bool:
        return cls is other

    __hash__ = None  # type: ignore[assignment]  # as Python itself says that there is none


def test_type_without_a_hash() -> None:
    class Unhashed(metaclass=NoHash):
        pass

    for make in (
        lambda x: [x, *range(200)], lambda x: (x, *range(200)), lambda x: {i: i or x for i in range(200)},
        lambda x: [*range(200), x], lambda x: [[x, i] for i in range(200)],
    ):  # fmt: skip
        check(ORACLE, PURE, lambda run, make=make: run.pickler.dump(make(Unhashed())), protocols=(2, 4), fails=True)


def test_dispatch_table_of_the_module_rebound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock reads `pickle.dispatch_table`, which is copyreg's as long as nobody binds another one to the name."""
    monkeypatch.setattr(pickle, "dispatch_table", {tables.Plain: lambda obj: (list, ())})
    rows = [[tables.Plain, "text", tables.Plain(a=i)] for i in range(50)]
    check_object(rows)
    check_object([row[2] for row in rows])
    assert fastpickle.dumps(rows, 4) == dumped(Stock, rows, 4)[2]


class Counting(dict[str, Any]):
    """A `__dict__` that is asked for its length by somebody."""

    act: Callable[[], None] | None = None

    def __len__(self) -> int:
        if Counting.act is not None:
            Counting.act()
        return dict.__len__(self)


class Segment(str):
    """A part of a path that acts when it is asked how it starts, as some versions of `pathlib` ask it."""

    act: Callable[[int], None] | None = None

    def startswith(self, *args: Any) -> bool:
        if Segment.act is not None:
            Segment.act(int(self[1:]))
        return str.startswith(self, *args)


def test_dict_of_an_instance_that_is_no_dict() -> None:
    def steps(run: Run) -> None:
        rows: list[Any] = [[tables.Plain(a=i), [i]] for i in range(50)]
        for plain, _ in rows[1:]:
            plain.__dict__ = Counting(plain.__dict__)

        def act() -> None:
            run.record("__len__", None)
            Counting.act = None
            for row in rows:
                row[1].append("late")

        Counting.act = act
        try:
            run.pickler.dump(rows)
        finally:
            Counting.act = None

    check(ORACLE, PURE, steps, protocols=(2, 4))


def test_path_with_a_segment_that_acts() -> None:
    def steps(run: Run) -> None:
        lists = [[i] for i in range(50)]
        rows = [[pathlib.PurePosixPath("a", Segment(f"b{i}")), lists[i]] for i in range(50)]
        Segment.act = lambda i: lists[i - 1].append(-1) if i else None
        try:
            run.pickler.dump(rows)
        finally:
            Segment.act = None

    check(ORACLE, PURE, steps, protocols=(2, 4))


class Raw(io.RawIOBase):
    """A raw file in Python, below a buffer in C: its write() runs where nobody's code seems to."""

    def __init__(self, on_write: Callable[[], None]) -> None:
        self.sizes: list[int] = []
        self.on_write = on_write

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sizes.append(len(data))
        if len(self.sizes) == 1:
            self.on_write()
        return len(data)


@pytest.mark.parametrize("protocol", [2, 4])
def test_buffer_above_a_file_in_python(protocol: int) -> None:
    """What its write() does counts from the same object on, and it gets the same pieces."""
    found = []
    for cls in (Stock, Pure):
        numbers = [i * 1_000_003 for i in range(20_000)]
        changed = type("Changed", (), {"__module__": __name__, "__qualname__": "Changed"})
        globals()["Changed"] = changed
        instances = []
        for i in range(3000):
            instances.append(changed())
            instances[-1].a = i

        def change(changed: Any = changed, numbers: Any = numbers) -> None:
            changed.__getstate__ = lambda self: {"a": "changed"}
            pickler.memo[id(numbers[15_000])] = len(pickler.memo), numbers[15_000]

        raw = Raw(change)
        buffer = io.BufferedWriter(raw)
        pickler = cls(buffer, protocol)
        pickler.dump([instances, numbers] if protocol == 4 else numbers)
        buffer.flush()
        found.append(raw.sizes)
    assert found[0] == found[1]


def shared(i: int, width: int, depth: int) -> Any:
    """Make few objects that are very many if they are not looked at by their ids."""
    x: Any = [i]
    for k in range(depth):
        x = [x] * width if k % 2 else (x,) * width
    return x


@pytest.mark.parametrize("make", [shared, lambda *args: {"a": shared(*args)}, lambda *args: [shared(*args)] * 2])
def test_rows_of_shared_objects(make: Callable[..., Any]) -> None:
    """Refused before they are multiplied: this would take days."""
    check_object([make(i, 30, 8) for i in range(20)], (4,))


def test_rows_longer_than_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not written twice: at most as much is given up as goes into some frames."""
    given_up = 0
    encode = parts.encode

    def watch(columns: Any, *args: Any) -> Any:
        nonlocal given_up
        data = encode(columns, *args)
        if data is not None and len(data) > 1 << 16:
            given_up += len(data)
        return data

    monkeypatch.setattr(parts, "encode", watch)
    large = b"".join([b"b"] * 100_000)
    for obj in (
        [{"id": i, "blob": large[i:]} for i in range(100)],
        [["", 0], *[[large[i:].decode(), i] for i in range(100)]],
        {i: large[i:] if i > 20 else b"" for i in range(100)},
        [[[float(i)] * 4000] * 1 for i in range(100)],
    ):
        given_up = 0
        check_object(obj, (4,))
        assert given_up < 1 << 20


@pytest.mark.parametrize("kind", [list, dict, tuple])
def test_dispatch_entry_of_a_container(kind: type) -> None:
    """A container that somebody saves in a way of his own is no row, nor any part of one."""

    def made(base: Any, run: Run) -> Any:
        def save(pickler: Any, obj: Any) -> None:
            run.record("save", obj)
            Stock.dispatch[kind](pickler, obj)

        return type("P", (base,), {"dispatch": {**base.dispatch, kind: save}})

    def steps(run: Run) -> None:
        run.pickler.dump([[([i], {"a": i}, (i, f"{i}")) for i in range(30)], [[i] for i in range(30)], (1,) * 20])
        run.pickler.dump({i: [{"a": (i,)}] for i in range(30)})

    check(ORACLE, PURE, steps, protocols=(2, 4), cls=made)


def test_subclasses() -> None:
    """What is nearly of one type."""

    class Real(float):
        pass

    for odd, usual in ((True, 5), (Real(2), 2.5), (False, 300), (5, 2.5), (2.5, 5), (None, True)):
        column = [usual] * 20
        for place in (0, 5, 19):
            column[place] = odd
            for obj in (column, [(x, "a") for x in column], [[x] for x in column], dict(enumerate(column))):
                check_object(obj)
            column[place] = usual


def test_long_rows(a_part_of: APartOf) -> None:
    for n in a_part_of((63, 64, 65, 999, 1000, 1001, 2001)):
        check_object([[i % 3] * n for i in range(20)])
        check_object([[i % 3] * (n + i % 2) for i in range(20)])
        check_object([(i,) * n for i in range(20)])
        check_object([dict.fromkeys(range(n), i) for i in range(20)])


def test_rows_that_are_one_object() -> None:
    for row in ([1], {"a": 1}, (1, 2), [], {}, (), ["text", ["text"]], ((1, "a"), "b")):
        check_object([row] * 50)
        check_object([row, *[[1], [2], [3], [4], [5], [6], [7], [8]], row] * 5)
        check_object([[row, i] for i in range(50)])


def test_cycles() -> None:
    rows: list[Any] = [[i, None] for i in range(50)]
    for row in rows:
        row[1] = row
    check_object(rows)
    rows = [[i, None] for i in range(50)]
    rows[30][1] = rows
    check_object(rows)
    rows[30][1] = rows[30]
    check_object(rows)
    rows[30][1] = (rows[30],)
    check_object(rows)
    pair: Any = ([], 1)
    pair[0].append(pair)
    check_object([pair, *[([i], 1) for i in range(30)]])
    check_object([*[([i], 1) for i in range(30)], pair])


def test_keys_that_are_equal_and_not_the_same() -> None:
    """Another text is another entry of the memo, though a dict finds it by either."""
    rows = [{"".join(["i", "d"]) if i % 7 == 3 else "id": i, "x": i} for i in range(50)]
    check_object(rows)

    class Key:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("a key was compared")

        __hash__ = None  # type: ignore[assignment]  # as Python itself says that there is none

    class HashedKey(Key):
        def __hash__(self) -> int:  # type: ignore[override]  # the base has none
            return 5

    check_object([{1: 2, (1,): 3} for _ in range(20)])
    check_object([{1.0: 2} if i % 2 else {1: 2} for i in range(20)])
    keys = [int("300"), int("300")]
    check_object([{keys[i % 2]: 2} for i in range(20)])
    with pytest.raises((pickle.PicklingError, AttributeError)):
        dumped_key = HashedKey()
        Pure(io.BytesIO(), 4).dump([{dumped_key: 1} for _ in range(20)])


class Liar(type):
    """A class that says it is any other."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(int)


def test_type_that_lies() -> None:
    """What something is, is asked by identity."""
    lying = Liar("lying", (), {"__reduce__": lambda self: (list, ())})
    for n in (8, 50):
        for obj in ([lying()] + [5] * n, [5] * n + [lying()], [(5, lying())] * n, [[5], [lying()]] * n):
            try:
                expected = dumped(Stock, obj, 4)
            except Exception:
                continue
            assert dumped(Pure, obj, 4) == expected


def encoded(columns: list[list[Any]], memo: Any = None, proto: int = 4) -> bytes | None:
    return runs.encode(columns, {} if memo is None else memo, proto, CONTAINERS, lambda t: None, True)


def test_refused() -> None:
    """What has no common shape is refused, and leaves the memo as it was."""
    for column in (
        [1, 2, object()], [object()] * 3, [[1], (1,)], [(1,), (1, 2)], [{"a": 1}, {"b": []}], [[object()], [1]],
        [[1], [[2]]], [("a", [1]), ("b", {})], [["a"], [["b"]]], [[["c", 1], ["d", object()]]], [["a"], ["b", [1]]],
    ):  # fmt: skip
        memo: dict[int, Any] = {1: (0, "before")}
        assert encoded([column], memo) is None
        assert memo == {1: (0, "before")}


def test_forget() -> None:
    memo: dict[int, Any] = {1: (0, "before")}
    assert encoded([["a", "b"], [[1], [2]]], memo) is not None
    assert len(memo) == 5
    columns.forget(memo, 1)
    assert memo == {1: (0, "before")}


def test_below_protocol_4_nothing_is_encoded_that_is_memoized() -> None:
    assert encoded([[1, 2]], proto=2) == b"K\x01K\x02"
    assert encoded([["a", "b"]], proto=2) is None
    assert encoded([[1, "b"]], proto=2) is None


def test_large_rows_are_not_held() -> None:
    """A run is not longer than a frame."""
    sizes = []
    encode = runs.encode

    def watch(*args: Any) -> Any:
        data = encode(*args)
        sizes.append(len(data or b""))
        return data

    rows = [["".join([chr(65 + i % 20)] * (60_000 if i % 100 == 50 else 1500))] for i in range(500)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "encode", watch)
        Pure(io.BytesIO(), 4).dump(rows)
    if FRAMES_ARE_BYTESIO:
        assert sizes
        assert max(sizes) < 2 << 16


TEXTS: dict[str, Callable[[int, int], Any]] = {
    "ascii": lambda n, i: f"{i:0{n}}"[:n],
    "not ascii": lambda n, i: "".join([chr(0x2014 + i % 50)] * (n // 3) + ["x"] * (n % 3)),
    "latin": lambda n, i: "".join([chr(0xA1 + i % 90)] * n),
    "bytes": lambda n, i: (b"%d" % i * n)[:n],
}
LENGTHS = (
    (0, 1, 2), (5, 9, 14), (16, 32, 64, 600), (254, 255, 256), (3000,), (10, 20_000), (126, 127, 128), (2100, 3),
    (9000,), (10, 11, 12, 65_534, 65_535, 65_536), (3, 682, 2046, 2047, 2048),
)  # fmt: skip


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("kind", TEXTS)
def test_texts_of_any_length(kind: str, lengths: tuple[int, ...], a_part_of: APartOf) -> None:
    """As many are written at once as there is room for: whatever their length, new and shared, alone and in pairs."""
    make = TEXTS[kind]
    for seed, most in a_part_of(enumerate((60, 999, 1000, 1001, 2050))):
        rng = random.Random(seed)
        size = max(lengths)
        texts = [make(size if i % 11 == 5 else rng.choice(lengths), i) for i in range(min(most, 2_000_000 // size))]
        few = texts[:7]
        for obj in (
            texts,
            tuple(texts),
            dict(zip(texts, reversed(texts), strict=True)),
            dict(enumerate(texts)),
            [rng.choice(few) if rng.random() < 0.5 else x for x in texts],
            [texts[:20], texts, [1, *texts]],
        ):
            check_object(obj, (4,))


@pytest.mark.parametrize("header", [columns._text_header, columns._bytes_header, columns._next_text])
def test_headers(header: Any) -> None:
    """They are those of stock, whether the table is short, has just grown or is not long enough."""
    opcodes = (pickle.SHORT_BINBYTES, pickle.BINBYTES)
    if header is not columns._bytes_header:
        opcodes = (pickle.SHORT_BINUNICODE, pickle.BINUNICODE)
    sizes = [*range(3000), 70_000, 1 << 20]
    expected: list[Any] = [opcodes[0] + bytes((n,)) if n < 256 else opcodes[1] + n.to_bytes(4, "little") for n in sizes]
    if header is columns._next_text:
        expected = [(pickle.MEMOIZE + data).decode("latin-1") for data in expected]
    known = [header(n) for n in range(256)]
    assert columns._headers(sizes[:256], known, header) == expected[:256]
    assert len(known) == 256
    for some in (sizes[:257], sizes[:2048], sizes, sizes[::-1]):
        assert columns._headers(some, known, header) == [expected[sizes.index(n)] for n in some]
        assert known == expected[:2048]


def test_texts_at_the_end_of_a_frame(a_part_of: APartOf) -> None:
    """The frame is nearly full when they begin: none, or some of them, go into it."""
    for kind, make in TEXTS.items():
        texts = [make(7 + 300 * (i % 5 == 3), i) for i in range(60)]
        pairs = dict.fromkeys(texts, texts[0])
        for n in a_part_of((*range(63_000, 65_400, 61), *range(65_400, 65_540))):
            obj = ["".join(["x"] * n), texts, pairs]
            assert dumped(Stock, obj, 4) == dumped(Pure, obj, 4), (kind, n)


def test_memoize() -> None:
    """What is new is numbered in order, without gaps; what is not keeps its place."""
    a, b, c, d = ([i] for i in range(4))
    memo: dict[int, Any] = {}
    assert columns.memoize([a, b], memo) is None
    assert memo == {id(a): (0, a), id(b): (1, b)}
    assert columns.memoize([c, a, c, d, b], memo) == [None, b"h\x00", b"h\x02", None, b"h\x01"]
    assert [*memo.items()] == [(id(x), (i, x)) for i, x in enumerate((a, b, c, d))]
    assert columns.memoize([a] * 9, memo) == [b"h\x00"] * 9
    many = [[i] for i in range(300)]
    memo = {}
    assert columns.memoize([*many, many[255], many[256]], memo) == [*[None] * 300, b"h\xff", b"j\x00\x01\x00\x00"]
    assert [*memo.values()] == [*enumerate(many)]
    assert columns.memoize([*many[200:], a], memo)[54:58] == [
        b"h\xfe",
        b"h\xff",
        b"j\x00\x01\x00\x00",
        b"j\x01\x01\x00\x00",
    ]
    columns.forget(memo, 0)
    assert columns.memoize([many[0]] * 8, memo) == [None, *[b"h\x00"] * 7]


def test_ints_at_the_edges() -> None:
    """Each way to write many ints: at once if all are of one length, by a table, one by one."""
    edges = (
        0,
        255,
        256,
        65_535,
        65_536,
        131_072,
        (1 << 31) - 1,
        1 << 31,
        -1,
        -255,
        -256,
        -65_536,
        -(1 << 31),
        -(1 << 40),
    )
    for n in (50, 999, 1000, 1001):
        for usual in (7, 300, 70_000, -5):
            for edge in edges:
                check_object([*[usual] * (n - 1), edge], (2,))
                check_object(dict.fromkeys([*range(usual * 3, usual * 3 + n), edge], edge), (2,))


@pytest.mark.parametrize("n", [60, 999, 1000, 1001, 2500])
@pytest.mark.parametrize("change", ["add", "remove", "replace", "values", "clear"])
def test_dict_that_changes_between_its_batches(n: int, change: str) -> None:
    """Keys and values are taken batch by batch, and what stock says of a dict that has changed its size is said."""

    def steps(run: Run) -> None:
        obj: dict[Any, Any] = {i: f"{i}" for i in range(n)}

        class Changer:
            def __reduce__(self) -> Any:
                if change == "add":
                    obj[-1] = "more"
                elif change == "remove":
                    del obj[n - 1]
                elif change == "replace":
                    del obj[n - 1]
                    obj[-1] = "other"
                elif change == "values":
                    obj.update(dict.fromkeys(obj, "changed"))
                else:
                    obj.clear()
                return list, ()

        obj[30] = Changer()
        run.pickler.dump(obj)

    check(ORACLE, PURE, steps, protocols=(2, 4))
