"""What is of one shape is written column by column, and nobody can tell: bytes, frames, memo and errors are stock's."""

from __future__ import annotations

import copyreg
import io
import os
import pickle
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from oracle import tables
from oracle.compare import Implementation, PythonFile, Run, check, describe

import fastpickle
from fastpickle import parts, runs
from fastpickle._stdlib import FRAMES_ARE_BYTESIO

Stock: Any = pickle._Pickler  # type: ignore[attr-defined]
CONTAINERS = frozenset((list, dict, tuple, set, frozenset))
SEEDS = 40
BLOCK = 6


class Pure(fastpickle.Pickler):
    """Leaves nothing to the C pickler."""

    fastpickle_grafts = False


ORACLE = Implementation("pickle._Pickler", Stock)
OURS = Implementation("without grafts", Pure)


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
            check(ORACLE, OURS, lambda run: run.pickler.dump(obj), protocols=(protocol,))  # says where
        assert expected == got


@pytest.mark.parametrize("block", range(SEEDS))
def test_random_tables(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        obj = tables.table(seed)()
        try:
            check_object(obj)
        except AssertionError as exc:
            raise AssertionError(f"seed {seed}") from exc


@pytest.mark.soak
def test_soak_tables() -> None:
    """As many as there is time for; from SOAK_SEED on."""
    first = seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 2**32)) * 1000
    end = time.monotonic() + float(os.environ.get("SOAK_SECONDS", 60))
    while time.monotonic() < end:
        try:
            check_object(tables.table(seed)(), (random.Random(seed).choice((2, 3, 4, 5)),))
        except AssertionError as exc:
            raise AssertionError(f"seed {seed}") from exc
        seed += 1
    print(f"{seed - first} tables from seed {first} on, no mismatch")


@pytest.mark.parametrize("name", tables.ATOMS)
def test_column(name: str) -> None:
    """Each kind of atom alone, as the keys or values of a dict, and in rows, at the lengths where something changes."""
    for n in (1, 2, 7, 8, 9, 16, 256, 999, 1000, 1001, 2000):
        make = tables.ATOMS[name](random.Random(n))
        values = [make(i) for i in range(n)]
        protocols = (1, 2, 3, 4, 5) if n < 20 else (2, 4)
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
def test_instances(name: str) -> None:
    """Each kind of instance, alone and in rows; what is somebody's code runs just as often as in stock."""
    make = tables.INSTANCES[name]
    for n in (7, 8, 30, 1001):
        for value in (lambda i: i, lambda i: f"{i}", lambda i: [i], lambda i: None, lambda i: "the same"):
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
        check(ORACLE, OURS, lambda run: run.pickler.dump(rows), protocols=(2, 4), cls=cls)

    def of_instance(run: Run) -> None:
        def reduce(obj: Any) -> Any:
            run.record("reduce", obj)
            return list, ()

        run.pickler.dispatch_table = {tables.Record: reduce}
        run.pickler.dump(rows)

    check(ORACLE, OURS, of_instance, protocols=(2, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(copyreg.dispatch_table, tables.Record, lambda obj: (list, ()))
        check_object(rows)


def test_class_that_cannot_be_saved() -> None:
    """The error is that of the first instance, and stock's."""

    class Local:
        def __init__(self) -> None:
            self.a = 1

    check(ORACLE, OURS, lambda run: run.pickler.dump([Local() for _ in range(30)]), protocols=(2, 4), fails=True)
    check(ORACLE, OURS, lambda run: run.pickler.dump([1, *[Local() for _ in range(30)]]), protocols=(2, 4), fails=True)


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

    check(ORACLE, OURS, steps, protocols=(2, 4))


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
def test_end_of_a_frame(name: str) -> None:
    """The frame is as full as can be when the run begins: it ends before, in and after each of the first rows."""
    rows = [ROWS[name](i) for i in range(41)]  # the last of "atoms" takes one byte
    for n in range(64_900, 65_560, 1 if name in ("atoms", "dicts", "nested") else 3):
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

    check(ORACLE, OURS, steps, protocols=(4,), file=lambda run: PythonFile(fail))


@pytest.mark.parametrize("place", [0, 1, 7, 8, 500, 998, 999])
@pytest.mark.parametrize("name", ROWS)
def test_what_cannot_be_saved(name: str, place: int) -> None:
    """The error says which item it was, where stock says so, and as much is written before it."""

    def steps(run: Run) -> None:
        rows: list[Any] = [ROWS[name](i) for i in range(1200)]
        rows[place] = lambda: 0
        run.pickler.dump([rows])

    check(ORACLE, OURS, steps, protocols=(2, 4), fails=True)


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

    check(ORACLE, OURS, steps, protocols=(4, 5), file=file)


@pytest.mark.parametrize("rows", [[*range(300)], [1.5 * i for i in range(99)], [None] * 50, [(), ()] * 9, [True] * 20])
def test_number_in_the_memo(rows: list[Any]) -> None:
    """Nobody but a caller puts a number into a memo; who does finds it fetched from there."""

    def steps(run: Run) -> None:
        run.pickler.memoize([])
        run.pickler.memo[id(rows[9])] = (len(run.pickler.memo), rows[9])
        run.pickler.dump(
            [rows, [(x, 1) for x in rows], [{"a": x} for x in rows], [[x, "b"] for x in rows], [*rows, "a"]]
        )

    check(ORACLE, OURS, steps, protocols=(2, 4))


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

    check(ORACLE, OURS, steps, protocols=(2, 4))


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

    check(ORACLE, OURS, asks, protocols=(2, 4))
    check(ORACLE, OURS, memoizes, protocols=(2, 4))


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

    check(ORACLE, OURS, steps, protocols=(2, 4), cls=made)


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


def test_long_rows() -> None:
    for n in (63, 64, 65, 999, 1000, 1001, 2001):
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

        __hash__ = None  # type: ignore[assignment]

    class HashedKey(Key):
        def __hash__(self) -> int:  # type: ignore[override]
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
    runs.forget(memo, 1)
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
