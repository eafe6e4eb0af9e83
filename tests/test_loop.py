"""The loop, which keeps what is open on a stack and asks as little as it may: nests of short containers."""

from __future__ import annotations

import collections
import copyreg
import io
import itertools
import os
import pickle
import random
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oracle import objects
from oracle.allowed import PYPY
from oracle.compare import Implementation, PythonFile, Run, check
from oracle.engines import ORACLE, OURS, PURE, Pure, Stock
from oracle.parts import APartOf

import fastpickle

SEEDS = 40
BLOCK = 5
LENGTHS = (0, 1, 1, 2, 2, 3, 4, 5, 11, 12, 13, 23, 24, 25, 47, 48, 49)


class WithItems(list[Any]):
    """Has a state beside its items."""


class WithPairs(dict[Any, Any]):
    """Has a state beside its items."""


class WithSetter:
    """Gives a function that sets its state."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return copyreg.__newobj__, (type(self),), self.value, None, None, set_value  # type: ignore[attr-defined]


def set_value(obj: Any, value: Any) -> None:
    obj.value = value


class WithArguments:
    """Is made of its parts."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __reduce__(self) -> Any:
        return WithArguments, (*self.parts,)


class Nest:
    """Makes one nest from a seed, the same for each run; `act` is called by some of what is in it."""

    def __init__(self, seed: int, act: Callable[[Any], Any]) -> None:
        self.random = random.Random(seed)
        self.act = act
        self.made: list[Any] = []
        self.actors = self.random.choice((0, 0.05, 0.1, 0.3))
        self.left = self.random.choice((20, 200, 1000))

    def atom(self) -> Any:
        pick = self.random.randrange
        return self.random.choice(
            (
                pick(300), -pick(70_000), pick(2**31), 2 ** pick(30, 90), -(2 ** pick(2000)), None, True, False, 0.5,
                f"text{pick(40)}", "é" * pick(5), "\ud800", "x" * pick(250, 260), b"b" * pick(4), b"c" * pick(250, 260),
                "shared", b"shared", (), sys.maxsize, pick(2**16), "y" * pick(3000),
            )
        )  # fmt: skip

    def value(self, depth: int) -> Any:
        pick = self.random.random()
        self.left -= 1
        if depth == 0 or self.left < 0 or pick < 0.3:
            return self.atom()
        if pick < 0.36 and self.made:
            return self.random.choice(self.made)
        if pick < 0.36 + self.actors:
            return objects.Acting(lambda: self.act(self))
        made = self.container(depth)
        self.made.append(made)
        return made

    def container(self, depth: int) -> Any:
        n = self.random.choice(LENGTHS[: 4 * depth] if depth < 5 else LENGTHS)
        kind = self.random.choice(
            ("list", "list", "dict", "dict", "tuple", "tuple", "set", "items", "pairs", "setter", "ordered", "plain",
             "arguments", "itself", "bytearray")
        )  # fmt: skip
        if kind == "bytearray":
            return bytearray(b"z" * n)
        if kind == "set":
            return {self.random.choice((i, str(i), (i, "x"))) for i in range(n)}
        if kind == "itself":
            inner: list[Any] = [self.value(depth - 1) for _ in range(min(n, 3))]
            whole = (*inner, 1)
            inner.append(self.random.choice((whole, (whole,), {"whole": whole})))
            return self.random.choice((whole, (inner, 1, 2, 3), inner))
        if kind in ("dict", "pairs", "ordered", "plain"):
            pairs = {self.random.choice((f"key{i}", i, (i, "x"), str(i))): self.value(depth - 1) for i in range(n)}
            if kind == "pairs":
                made = WithPairs(pairs)
                made.extra = self.value(depth - 1)  # type: ignore[attr-defined]  # that is its state
                return made
            if kind == "plain":
                return objects.Plain(**{str(key): value for key, value in pairs.items()})
            return OrderedDict(pairs) if kind == "ordered" else pairs
        values = [self.value(depth - 1) for _ in range(n)]
        if kind == "items":
            items = WithItems(values)
            items.extra = self.value(depth - 1)  # type: ignore[attr-defined]  # that is its state
            return items
        if kind == "setter":
            return WithSetter(values)
        if kind == "arguments":
            return WithArguments(*values)
        return tuple(values) if kind == "tuple" else values


NUMBER = int("123456789")  # each time the same object


def memoize_number(run: Run, nest: Nest) -> None:
    if id(NUMBER) not in run.pickler.memo:
        run.pickler.memoize(NUMBER)


def change_containers(run: Run, nest: Nest) -> None:
    for made in nest.made[::3]:
        if isinstance(made, list):
            made.append("appended")
            del made[:1]
        elif type(made) is dict:
            made["added"] = "value"


def fail(run: Run, nest: Nest) -> None:
    raise ZeroDivisionError("at once")


def replace_memo(run: Run, nest: Nest) -> None:
    run.pickler.memo = dict(run.pickler.memo)


def override_write(run: Run, nest: Nest) -> None:
    write = run.pickler.write

    def heard(data: bytes) -> Any:
        run.record("write", bytes(data)[:20])
        return write(data)

    run.pickler.write = heard


def override_save(run: Run, nest: Nest) -> None:
    save = run.pickler.save

    def heard(obj: Any, save_persistent_id: bool = True) -> None:
        run.record("save", type(obj))
        save(obj, save_persistent_id)

    run.pickler.save = heard


def override_memoize(run: Run, nest: Nest) -> None:
    memoize = run.pickler.memoize

    def heard(obj: Any) -> None:
        run.record("memoize", type(obj))
        memoize(obj)

    run.pickler.memoize = heard


def save_something(run: Run, nest: Nest) -> None:
    run.pickler.save(["saved", 1, (2, 3)])
    run.pickler.write(pickle.POP)


def end_frame(run: Run, nest: Nest) -> None:
    run.pickler.framer.commit_frame(force=True)


ACTIONS = (
    memoize_number, change_containers, fail, replace_memo, override_write, override_save, override_memoize,
    save_something, end_frame,
)  # fmt: skip


FIRED: collections.Counter[Any] = collections.Counter()


def seen_in_file(run: Run) -> Any:
    frame = run.pickler.framer.current_frame
    return None if frame is None else bytes(frame.getbuffer())[-30:]


def check_nest(seed: int) -> None:
    generator = random.Random(seed)
    action = ACTIONS[seed % len(ACTIONS)]
    after = generator.choice((0, 0, 1, 3))
    prefix = "p" * generator.choice((0, 0, generator.randrange(63_000, 65_536)))

    def steps(run: Run) -> None:
        calls = 0

        def act(nest: Nest) -> None:
            nonlocal calls
            calls += 1
            run.record("seen", None, len(run.pickler.memo), seen_in_file(run))
            if calls == after + 1 or (calls > after and action is memoize_number):
                FIRED[action] += 1
                action(run, nest)

        nest = Nest(seed, act)
        actor = objects.Acting(lambda: act(nest))
        obj = [prefix, NUMBER, nest.container(6), [[1, actor], (actor, NUMBER)], nest.container(4), NUMBER]
        run.pickler.dump(obj)

    check(ORACLE, PURE, steps, protocols=(random.Random(seed).choice((1, 2, 3, 4, 5)),), case=f"seed {seed}")


@pytest.mark.parametrize("block", range(SEEDS))
def test_random_nests(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_nest(seed)


def test_actions_are_done() -> None:
    """A nest in which nobody acts is no test of that."""
    FIRED.clear()
    for seed in range(4 * len(ACTIONS)):
        check_nest(seed)
    assert all(FIRED[action] >= 2 for action in ACTIONS), FIRED


@pytest.mark.soak
def test_soak_nests() -> None:
    """As many as there is time for; from SOAK_SEED on."""
    first = seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 2**32)) * 1000
    end = time.monotonic() + float(os.environ.get("SOAK_SECONDS", 60))
    while time.monotonic() < end:
        check_nest(seed)
        seed += 1
    print(f"{seed - first} nests from seed {first} on, no mismatch")


SHORT: dict[str, Callable[[int], Any]] = {
    "nests": lambda i: [[i], {"a": (i, i + 1)}, [], {}, (), [[[None]]], {"b": {"c": i}}],
    "texts": lambda i: {"k": f"{i}", "l": ["x" * 20, b"y" * 30, "z" * 300]},
    "long ints": lambda i: (1 << 700, [-(1 << 900), i], (1 << 40,)),
    "tuples": lambda i: (((i,), (i, 2)), (1, 2, 3), (1, 2, 3, (4,))),
    "reduces": lambda i: [[WithArguments(i, f"{i}", [i])], i, {"k": WithSetter((i, "x" * 20))}, f"{i}"],
}


@pytest.mark.parametrize("name", SHORT)
def test_ends_of_frames(name: str) -> None:
    """A frame ends where stock ends it, wherever in a nest of short containers that is."""
    make = SHORT[name]
    for left in range(0, 1500, 7):
        text = "".join(["p"] * (64 * 1024 - left))

        def steps(run: Run, text: str = text) -> None:
            run.pickler.dump([[text[:-1000], [text[:900]], *map(make, range(9))], *map(make, range(9))])

        check(ORACLE, PURE, steps, protocols=(4,), case=f"{left} left")


@pytest.mark.skipif(PYPY, reason="it is not saved by the loop there")
@pytest.mark.parametrize("kind", ["list", "dict", "tuple", "mixed"])
def test_deep(kind: str) -> None:
    """Far deeper than stock comes: it takes no stack, and no look at all levels for each of them."""
    obj: Any = None
    for i in range(100_000):
        which = ("list", "dict", "tuple")[i % 3] if kind == "mixed" else kind
        obj = [i, obj] if which == "list" else {"k": obj} if which == "dict" else (obj, i)
    file = io.BytesIO()
    Pure(file, 4).dump(obj)
    found: Any = pickle.loads(file.getvalue())
    while obj is not None:
        assert type(found) is type(obj)
        if type(obj) is list:
            assert found[0] == obj[0]
            found, obj = found[1], obj[1]
        elif type(obj) is dict:
            found, obj = found["k"], obj["k"]
        else:
            assert found[1] == obj[1]
            found, obj = found[0], obj[0]
    assert found is None


def eleven(leaf: Callable[[int], Any], depth: int = 3, numbers: Iterator[int] | None = None) -> Any:
    """Make lists of lists, each short enough for the loop, of more than a frame in all."""
    numbers = numbers or itertools.count()
    return [eleven(leaf, depth - 1, numbers) for _ in range(11)] if depth else leaf(next(numbers))


LEAVES: dict[str, Callable[[int], Any]] = {
    "lists": lambda n: [i + 0.5 for i in range(40)],
    "dicts": lambda n: {i: i + 0.5 for i in range(40)},
    "tuples": lambda n: tuple([i + 0.5 for i in range(40)]),
    "bytes": lambda n: [b"x" * 200 + b"%d %d" % (n, i) for i in range(9)],
    "texts": lambda n: ["x" * 200 + f"{n} {i}" for i in range(9)],
    "sets": lambda n: {f"{n} {i}" for i in range(40)} | {i + 0.5 for i in range(40)},
    "few pairs": lambda n: OrderedDict((i, i + 0.5) for i in range(11)),
    "many pairs": lambda n: OrderedDict((i, i + 0.5) for i in range(40)),
    "few items": lambda n: WithItems([i + 0.5 for i in range(11)]),
    "reduces": lambda n: [complex(i, i) for i in range(9)],
    "somebody's reduces": lambda n: [WithArguments(n, f"{n} {i}", [i, b"x" * i]) for i in range(9)],
}


def test_room_after_a_saver(a_part_of: APartOf) -> None:
    """What a saver has written in one piece is taken off the room that the loop counts on, and so is a new frame."""
    check(
        ORACLE,
        PURE,
        lambda run: run.pickler.dump(eleven(lambda n: [bytearray(2000 + n % 7), n, bytearray(n % 900), n, "x" * 9], 2)),
        protocols=(5,),
    )
    for n in a_part_of(range(20_000, 46_000, 650)):
        obj = [[1], [*range(256, 256 + n)], *["x" * 700 + f"{i}" for i in range(9)]]

        def steps(run: Run, obj: Any = obj) -> None:
            run.pickler.dump(obj)

        check(ORACLE, PURE, steps, protocols=(4,), case=f"{n} ints")


@pytest.mark.parametrize("name", LEAVES)
def test_reserve(name: str) -> None:
    """What is to come is counted, whatever it is in: a frame never grows beyond its end unnoticed."""
    check(ORACLE, PURE, lambda run: run.pickler.dump(eleven(LEAVES[name])), protocols=(4,))


@pytest.mark.parametrize("protocol", [2, 4])
def test_number_in_the_memo(protocol: int) -> None:
    """After a reduce has put it there it is fetched."""

    def steps(run: Run) -> None:
        actor = objects.Acting(lambda: run.pickler.memoize(NUMBER))
        run.pickler.dump([[1, "a", actor, [NUMBER, (NUMBER,)]], NUMBER])

    check(ORACLE, PURE, steps, protocols=(protocol,))


def test_number_put_into_the_memo_by_a_file() -> None:
    """The same, where it is done at the end of a frame."""

    def made(run: Run) -> Any:
        def act(_: int) -> None:
            pickler = run.pickler
            if pickler is not None and len(pickler.memo) > 3:
                pickler.memo[id(NUMBER)] = 0, NUMBER

        return PythonFile(act)

    def steps(run: Run) -> None:
        run.pickler.dump([eleven(lambda n: [*(f"{n} {i}" for i in range(9)), NUMBER]), NUMBER])

    check(ORACLE, PURE, steps, protocols=(4, 5), file=made)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("how", ["file_write", "frame"])
@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.name)
def test_file_exchanged(ours: Implementation, how: str, protocol: int) -> None:
    """A reduce gives the framer another file: what follows goes there, where there are no frames."""

    def steps(run: Run) -> None:
        def exchange() -> None:
            framer = run.pickler.framer
            if how == "frame" and framer.current_frame is not None:
                framer.commit_frame(force=True)
            run.pickler.other = io.BytesIO()
            framer.file_write = run.pickler.other.write

        rows = [{"id": i, "tags": [i, (i, "a")]} for i in range(60)]
        run.pickler.dump([*rows, [objects.Acting(exchange), "behind"], {"a": 1}, *rows])
        run.record("other", run.pickler.other.getvalue().hex())

    check(ORACLE, ours, steps, protocols=(protocol,))


def test_int_that_cannot_be_written() -> None:
    """What is written before it is stock's."""
    check(ORACLE, PURE, lambda run: run.pickler.dump([["a", "b"], ["c", 10**5000], 1]), protocols=(1, 2))


def test_dump_inside_a_dump() -> None:
    """It ends the frames: what comes next is written opcode by opcode, to a file in Python."""

    def steps(run: Run) -> None:
        run.pickler.dump([1, [objects.Acting(lambda: run.pickler.dump(5)), ["a", 2, (3, "b")]], 4])

    check(ORACLE, PURE, steps)


class Endless:
    """Is made of another one."""

    def __reduce__(self) -> Any:
        return Endless, (Endless(),)


class EndlessState:
    """Has another one in its state."""

    def __getstate__(self) -> Any:
        return {"child": [EndlessState()]}


class EndlessItems(list[Any]):
    """Gives one item, which is another one."""

    def __reduce__(self) -> Any:
        return EndlessItems, (), None, iter([EndlessItems()])


@pytest.mark.skipif(PYPY, reason="PyPy 8 crashes now and then in a recursion without end")
@pytest.mark.parametrize("cls", [Endless, EndlessState, EndlessItems])
@pytest.mark.parametrize("pickler", [Pure, fastpickle.Pickler])
def test_endless(cls: Any, pickler: Any) -> None:
    with pytest.raises(RecursionError):
        pickler(io.BytesIO(), 4).dump([cls()])


@pytest.mark.skipif(PYPY, reason="PyPy 8 crashes now and then in a recursion without end")
@pytest.mark.parametrize("pickler", [Pure, fastpickle.Pickler])
def test_endless_tuple(pickler: Any) -> None:
    """A tuple without a dispatch entry is reduced to a call with another one, and so on."""

    class Own(pickler):  # type: ignore[misc]  # it may be either
        dispatch = {**Stock.dispatch, tuple: None}

    with pytest.raises(RecursionError):
        Own(io.BytesIO(), 4).dump([1, (1, 2)])


@pytest.mark.skipif(PYPY, reason="it is not saved by the loop there")
def test_reduces_below_many_containers() -> None:
    """Containers are not counted as if they were reduces."""
    obj: Any = [WithArguments(i) for i in range(5)]
    for _ in range(5_000):
        obj = [obj]
    file = io.BytesIO()
    Pure(file, 4).dump(obj)
    found = pickle.loads(file.getvalue())
    while len(found) == 1:
        found = found[0]
    assert [x.parts for x in found] == [(i,) for i in range(5)]
