"""The abstract suite of values: whatever the object is, the bytes are the oracle's.

A binding says which implementations are compared, by two attributes:

    class TestPickler(ValueSuite):
        oracle = Implementation("pickle._Pickler", pickle._Pickler)
        ours = Implementation("fastpickle.Pickler", fastpickle.Pickler)

Not for: hooks (`suite_hooks`), and objects that change something while they are pickled (`suite_evil`).
"""

from __future__ import annotations

import collections
import copyreg
import functools
import io
import pickle
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from . import objects, samples, strategies
from .allowed import PYPY, is_too_deep
from .compare import ALL, Implementation, PythonFile, Run, check

FRAMED = tuple(p for p in ALL if p >= 4)


class Suite:
    """What all suites have: the two implementations, and the comparison.

    Attributes:
        oracle: the implementation that is right.
        ours: the one that is tested.
        breadth: of how many protocols, at the most, a case is tried where it need not be tried at all.
        dill_edits: whether dill's edits of the stock dispatch table are to be in force, if dill is imported.
    """

    oracle: Implementation
    ours: Implementation
    dill_edits = False
    breadth = 2

    def some(self, *what: object, n: int = 2) -> tuple[int, ...]:
        """Return a few protocols, others for other cases and bindings; all of them in the thorough profile."""
        if strategies.is_thorough():
            return ALL
        n = min(n, self.breadth)
        turn = zlib.crc32(repr((type(self).__name__, *map(_name, what))).encode())
        return tuple((turn + k * len(ALL) // n) % len(ALL) for k in range(n))

    def check(self, steps: Callable[[Run], Any], **how: Any) -> None:
        """Compare what `steps` does with both."""
        check(self.oracle, self.ours, steps, **how)

    def check_made(self, make: Callable[[], Any], **how: Any) -> None:
        """Compare the pickles of an object that is made anew for each."""
        self.check(lambda run: run.pickler.dump(make()), **how)

    def check_object(self, obj: Any, **how: Any) -> None:
        """Compare the pickles of one object."""
        self.check(lambda run: run.pickler.dump(obj), **how)


def _name(x: object) -> object:
    return getattr(x, "__name__", x)


@contextmanager
def extension_codes(codes: dict[str, int]) -> Iterator[None]:
    """Give objects of `objects` extension codes for a while."""
    module = objects.__name__
    try:
        for name, code in codes.items():
            copyreg.add_extension(module, name, code)
        yield
    finally:
        for name, code in codes.items():
            copyreg.remove_extension(module, name, code)


def sliding(size: int, make: Callable[[], Any]) -> Iterator[Any]:
    """Yield `make()` behind a filler, so that a frame fills up at each of the first `size` bytes of it in turn."""
    for offset in range(-4, size):
        yield ["f" * (samples.FRAME - 16 - offset), make()]


#: Parts for `sliding`, with their size in bytes.
_AROUND_FRAMES: dict[str, Callable[[], Any]] = {
    "tuples": lambda: [(), (1,), (1, "b"), (1, "b", 3), (1, 2, 3, 4, "e"), ((((1,), "x"),),)],
    "dict": lambda: {"key": "value", 1: 300, "list": [1, 2], ("k",): {"inner": None}, "k": 1.5},
    "sets": lambda: [{1, 2}, frozenset((3, "four")), {(5,)}],
    "reduce": lambda: [
        objects.Plain(a=1),
        objects.Data(1),
        objects.List([1, 2]),
        objects.Reduced((objects.make, (1, [2]))),
    ],
    "shared": lambda: [s := ["shared"], [s], (s, s), {"a": s}, s],
    "atoms": lambda: [1, 256, 70000, 2**40, 1.5, True, None, b"bytes", "text", bytearray(b"x"), -1],
    "ints": lambda: list(range(250, 270)),
    "floats": lambda: [i / 2 for i in range(12)],
    "text": lambda: ["a", "bc", "def", "", "ghij"],
}


class ValueSuite(Suite):
    """Every kind of object."""

    @pytest.mark.parametrize("name", samples.VALUES)
    def test_value(self, name: str) -> None:
        """Edges of opcodes, alone and among others."""
        self.check_made(samples.VALUES[name])

    @pytest.mark.parametrize("name", samples.SAMPLES)
    def test_sample(self, name: str) -> None:
        """Graphs of all kinds."""
        self.check_made(samples.SAMPLES[name], protocols=samples.where_it_ends(name, ALL))

    @pytest.mark.parametrize("kind", samples.CONTAINERS)
    def test_sizes(self, kind: str) -> None:
        """Containers at the edges of batches: alone, in a list between others, and as the state of an instance."""
        make = samples.CONTAINERS[kind]
        sizes = (
            samples.SIZES
            if strategies.is_thorough()
            else samples.FEW_SIZES
            if self.breadth > 1
            else samples.FEWEST_SIZES
        )
        for n in sizes:
            self.check_made(lambda: make(n), protocols=self.some(kind, n, n=1 if n > 10 else 3))
            if n in (0, 1, 2, samples.BATCH):
                self.check_made(
                    lambda: [make(n), {"a": make(n)}, (make(n), "after")], protocols=self.some(kind, n, 1, n=1)
                )
                self.check_made(lambda: objects.Plain(inside=make(n), after=1), protocols=self.some(kind, n, 2, n=1))

    def test_every_int_around_the_edges(self) -> None:
        """In a list of ints only, in mixed ones, and as keys and values."""
        for edge in (0, 256, 65536, 2**31, -(2**31), 2**63, -(2**63), 2**2039, -(2**2039)):
            ints = [edge + i for i in range(-3, 4)]
            self.check_object(
                [
                    ints,
                    tuple(ints),
                    dict(zip(ints, ints, strict=False)),
                    {*ints},
                    *zip(ints, map(str, ints), strict=False),
                ]
            )

    def test_large_memo(self) -> None:
        """More than 65535 entries, then objects from both ends of it."""
        items = [(i,) for i in range(65_600)]
        self.check_object(
            [items, items[0], items[255], items[256], items[65_535], items[65_536], items[-1]], protocols=self.some(n=1)
        )

    @pytest.mark.parametrize("part", _AROUND_FRAMES)
    def test_frame_at_every_offset(self, part: str) -> None:
        """A frame fills up at every byte of a nested structure."""
        size = len(pickle._dumps(_AROUND_FRAMES[part](), 4))  # type: ignore[attr-defined]
        for obj in sliding(size, _AROUND_FRAMES[part]):
            self.check_object(obj, protocols=(4,))

    @pytest.mark.parametrize(
        "wrap", ["list", "tuple", "dict key", "dict value", "set", "reduce", "state", "subclass", "last"]
    )
    def test_frame_inside(self, wrap: str) -> None:
        """A frame of 65535, 65536 and 65537 bytes inside each kind of container."""
        wrappers: dict[str, Callable[[Any, Any], Any]] = {
            "list": lambda a, b: [a, [b, 1], (b,)],
            "tuple": lambda a, b: (a, (b, 1), (1, 2, b, 4)),
            "dict key": lambda a, b: {1: a, b: 2, 3: b},
            "dict value": lambda a, b: {1: a, 2: b, 3: {4: b}},
            "set": lambda a, b: [a, {b}, frozenset((b, 1))],
            "reduce": lambda a, b: objects.Reduced((objects.make, (a, b, [b]))),
            "state": lambda a, b: objects.Plain(a=a, b=b, c=[b, 1]),
            "subclass": lambda a, b: objects.List([a, objects.Dict({1: b}), b]),
            "last": lambda a, b: [a],
        }
        for size in range(samples.FRAME - 40, samples.FRAME + 4):
            a, b = "a" * size, ("b", 1.5)
            self.check_object(wrappers[wrap](a, b), protocols=(4 + size % 2,))

    @pytest.mark.parametrize(
        "kind", ["text", "ints", "floats", "mixed", "pairs", "dict", "bytes", "tuples", "instances"]
    )
    def test_many_frames(self, kind: str) -> None:
        """Homogeneous data that fills several frames, in batches of 1000."""
        many: dict[str, Callable[[], Any]] = {
            "text": lambda: [f"text number {i}" for i in range(9_000)],
            "ints": lambda: [i * 40_503 for i in range(40_000)],
            "floats": lambda: [i / 3 for i in range(20_000)],
            "mixed": lambda: [(i, str(i), i / 2, b"%d" % i, None)[i % 5] for i in range(30_000)],
            "pairs": lambda: [(i, str(i)) for i in range(12_000)],
            "dict": lambda: {str(i): [i, i / 2] for i in range(6_000)},
            "bytes": lambda: [b"x" * (i % 700) for i in range(800)],
            "tuples": lambda: tuple(i for i in range(40_000)),
            "instances": lambda: [objects.Data(i, str(i)) for i in range(3_000)],
        }
        self.check_made(many[kind], protocols=(4,))

    def test_large_items_cut_frames(self) -> None:
        """Bytes and str of 64 KiB and more stand outside frames, wherever they are."""
        for n in (samples.FRAME - 1, samples.FRAME, samples.FRAME + 1):
            for t in (lambda n: "x" * n, lambda n: b"x" * n, lambda n: bytearray(n), lambda n: "\u20ac" * (n // 3 + 1)):
                big = t(n)
                self.check_object(
                    [1, big, [big, "a"], (big,), {"k": big, "l": t(n)}, objects.Plain(big=big), t(n), "z"]
                )

    def test_files_written_by_python(self) -> None:
        """A file whose write is a Python function gets the same writes, at every protocol."""
        for make in (samples.nested, samples.shared, samples.instances, samples.subclasses, samples.SAMPLES["large"]):
            self.check_made(make, file=lambda run: PythonFile())

    @pytest.mark.parametrize("fails_at", range(12))
    def test_file_that_fails(self, fails_at: int) -> None:
        """The same error from a write that raises, and nothing written that the oracle did not write."""

        def fail(k: int) -> None:
            if k == fails_at:
                raise OSError(28, "no space", k)

        for make in (samples.SAMPLES["large"], lambda: [["x" * 30_000, (i,)] for i in range(9)], samples.nested):
            self.check_made(make, file=lambda run: PythonFile(fail), protocols=(0, 2, 4, 5))

    @pytest.mark.parametrize("fails_at", range(3))
    def test_file_that_fails_and_is_used_again(self, fails_at: int) -> None:
        """After a failed write the pickler is what the oracle's is: another dump gives the same."""

        def fail(k: int) -> None:
            if k == fails_at:
                raise OSError(28, "no space", k)

        def steps(run: Run) -> None:
            obj = [["x" * 30_000, (i,)] for i in range(9)]
            with pytest.raises(OSError):
                run.pickler.dump(obj)
            run.pickler.dump([obj[0], "again"])

        self.check(steps, file=lambda run: PythonFile(fail), protocols=(4, 5))

    def test_extension_codes(self) -> None:
        """Classes and functions with extension codes of one, two and four bytes."""
        with extension_codes({"Plain": 1, "function": 255, "Slotted": 256, "OfMeta": 65_535, "make": 65_536}):
            self.check_made(
                lambda: [
                    objects.Plain(a=1), objects.Plain, objects.function, objects.Slotted(), objects.OfMeta,
                    objects.make,
                    objects.Reduced((objects.make, ())), objects.Plain,
                ]
            )  # fmt: skip

    def test_copyreg(self) -> None:
        """What is registered with copyreg, also for a metaclass and for a class that has a reduce."""
        registered = {
            objects.Viaduct: objects.reduce_viaduct,
            objects.MetaReduced: lambda cls: (objects.make, (cls.__name__,)),
            objects.Data: lambda obj: (objects.make, (obj.number,)),
            objects.Slotted: lambda obj: "SINGLETON",
        }
        copyreg.dispatch_table.update(registered)
        try:
            self.check_made(samples.instances)
            self.check_made(
                lambda: [objects.OfMetaReduced, objects.OfMetaReduced, objects.Slotted(), objects.Viaduct([1])]
            )
        finally:
            for t in registered:
                del copyreg.dispatch_table[t]

    def test_private_names(self) -> None:
        """A class whose name is mangled: an error before 3.15."""
        self.check_made(lambda: objects.WithPrivate.private)

    @pytest.mark.parametrize("depth", [1, 2, 5, 50])
    def test_nested_to_a_depth(self, depth: int) -> None:
        """Each kind of container in itself."""
        for wrap in _WRAPPERS.values():
            obj: Any = "inmost"
            for _ in range(depth):
                obj = wrap(obj)
            self.check_object([obj, obj, 1])

    @pytest.mark.parametrize(
        "kind", ["list", "dict", "tuple", "long tuple", "set", "frozenset", "instance", "reduce", "subclass"]
    )
    def test_deepest_that_stock_manages(self, kind: str) -> None:
        """What the oracle can write without a RecursionError, ours can."""
        if sys.implementation.name != "cpython":
            pytest.skip("the depth is that of the C stack there, and not a number of calls")
        wrap = _WRAPPERS[kind]
        old = sys.getrecursionlimit()
        sys.setrecursionlimit(_depth_here() + 400)
        try:
            for protocol in (1, 2, 4) if kind != "list" else ALL:
                chains = ["inmost"]
                for _ in range(210):
                    chains.append(wrap(chains[-1]))

                def managed(implementation: Implementation, n: int) -> bytes | None:
                    with implementation.context():
                        file = io.BytesIO()
                        pickler = implementation.base(file, protocol)
                        try:
                            pickler.dump(chains[n])
                        except (RecursionError, pickle.PicklingError):
                            return None
                        return file.getvalue()

                low, high = 1, 210
                while low < high:
                    middle = (low + high + 1) // 2
                    if managed(self.oracle, middle) is None:
                        high = middle - 1
                    else:
                        low = middle
                for n in (low - 1, low):
                    expected = managed(self.oracle, n)
                    assert expected is not None
                    assert managed(self.ours, n) == expected, f"{kind}: protocol {protocol}, depth {n}"
        finally:
            sys.setrecursionlimit(old)

    @pytest.mark.skipif(PYPY, reason="PyPy 8's JIT aborts now and then where the stack ends; see test_straight")
    @pytest.mark.parametrize("kind", ["list", "dict", "tuple", "instance"])
    def test_too_deep(self, kind: str) -> None:
        """A structure without an end raises RecursionError, and leaves the pickler usable; or it is written."""
        obj: Any = "inmost"
        for _ in range(20_000):
            obj = _WRAPPERS[kind](obj)
        try:
            for protocol in (2, 4):
                with self.ours.context():
                    pickler = self.ours.base(io.BytesIO(), protocol)
                    try:
                        pickler.dump(obj)
                    except Exception as exc:
                        assert is_too_deep(exc)
                    pickler.dump([1])
                self.check_object([1, [2]], protocols=(protocol,))
        finally:
            while not isinstance(obj, str):  # level by level: the deallocation of it all at once would be as deep
                obj = _unwrap(obj)

    def test_threads(self) -> None:
        """Several threads, each with its own pickler, on the same objects."""
        obj = [samples.nested() for _ in range(20)]
        with self.oracle.context():
            expected = io.BytesIO()
            self.oracle.base(expected, 4).dump(obj)
        wrong: list[object] = []

        def work() -> None:
            for _ in range(20):
                file = io.BytesIO()
                self.ours.base(file, 4).dump(obj)
                if file.getvalue() != expected.getvalue():
                    wrong.append(file.getvalue())

        with self.ours.context():
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not wrong

    @given(strategies.graphs(), st.sampled_from(ALL))
    def test_random_graphs(self, spec: strategies.Spec, protocol: int) -> None:
        """Whatever Hypothesis builds of all of the above."""
        self.check_made(lambda: strategies.build(spec), protocols=(protocol,))


def _depth_here() -> int:
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    return depth


_WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda x: [x],
    "dict": lambda x: {"k": x},
    "tuple": lambda x: (x,),
    "long tuple": lambda x: (1, 2, 3, x),
    "set": lambda x: {objects.Hashed(1, x=x)},
    "frozenset": lambda x: frozenset((x,)),
    "instance": lambda x: objects.Plain(x=x),
    "reduce": lambda x: objects.Reduced((objects.make, (x,))),
    "subclass": lambda x: objects.List([x]),
    "two in a list": lambda x: [x, 1],
    "two in a dict": lambda x: {1: x, 2: 3},
    "OrderedDict": lambda x: collections.OrderedDict(k=x),
    "partial": lambda x: functools.partial(objects.make, x),
}


def _unwrap(obj: Any) -> Any:
    if isinstance(obj, objects.Plain):
        return obj.__dict__.pop("x")
    if isinstance(obj, dict):
        return obj.popitem()[1]
    return obj.pop() if isinstance(obj, list) else obj[0]


class BufferSuite(Suite):
    """Buffers, in band and out of band."""

    @pytest.mark.parametrize("answers", [(None,), (True,), (False, True), (0, "yes", b""), ()])
    def test_callback(self, answers: tuple[object, ...]) -> None:
        """A callback that takes buffers, leaves them, or raises."""

        def steps(run: Run) -> None:
            run.pickler.dump(
                [pickle.PickleBuffer(b"abc"), pickle.PickleBuffer(bytearray(b"de")), pickle.PickleBuffer(b"")]
            )

        for protocol in (5,):
            outcomes: list[list[object]] = []

            def callback(buffer: Any) -> object:
                outcomes[-1].append(bytes(buffer))
                if not answers:
                    raise LookupError("no answer")
                return answers[len(outcomes[-1]) % len(answers)]

            for implementation in (self.oracle, self.ours):
                outcomes.append([])
                with implementation.context():
                    pass
            outcomes.clear()

            def starting(run: Run) -> None:
                outcomes.append([])
                steps(run)

            self.check(starting, protocols=(protocol,), arguments={"buffer_callback": callback})
            assert outcomes[0] == outcomes[1]

    def test_refused(self) -> None:
        """Buffers that are not contiguous or released, memoryviews, and protocols without buffers."""
        released = pickle.PickleBuffer(b"x")
        released.release()
        self.check_object([released])
        self.check_object([memoryview(b"abc")])
        self.check_object(pickle.PickleBuffer(memoryview(b"abcdef")[::2]))
        self.check_object([pickle.PickleBuffer(memoryview(b"abcdef").cast("B", (2, 3)))])

    def test_shared(self) -> None:
        """The same buffer twice, large ones, and one of the same bytes object."""
        data = b"abc" * 3
        buffer = pickle.PickleBuffer(data)
        self.check_object([data, buffer, buffer, pickle.PickleBuffer(data), data], protocols=(5,))
        for n in (255, 256, samples.FRAME - 1, samples.FRAME):
            self.check_object(
                [pickle.PickleBuffer(bytes(n)), pickle.PickleBuffer(bytearray(n)), "after"], protocols=(5,)
            )
