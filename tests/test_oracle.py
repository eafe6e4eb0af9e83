"""The oracle itself: its strategies, its table of allowed differences, and that it sees what differs."""

from __future__ import annotations

import io
import pickle
import random
from typing import Any

import pytest
import test_audit
import test_older
from hypothesis import given
from oracle import allowed, compare, samples, strategies, suite_evil, suite_hooks, suite_values
from oracle.compare import Implementation, Outcome, PythonFile, explain

_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]
STOCK = Implementation("stock", _Stock)


@given(strategies.graphs())
def test_graphs_are_the_same_each_time(spec: strategies.Spec) -> None:
    """A spec is built to the same bytes every time, or to the same error."""
    first, second = (compare.use(STOCK, 4, lambda run: run.pickler.dump(strategies.build(spec))) for _ in range(2))
    assert not explain(first, second)


def test_all_kinds_are_made() -> None:
    """The random specs use every kind, back edges and fillers, and most of them can be pickled."""
    rng = random.Random(7)
    kinds: set[str] = set()
    pickled = cyclic = filled = 0
    for _ in range(400):
        spec = strategies.random_spec(rng)
        kinds |= {node.kind for node in spec.nodes}
        cyclic += bool(spec.back)
        filled += bool(spec.filler)
        pickled += compare.use(STOCK, 4, lambda run: run.pickler.dump(strategies.build(spec))).error is None
    assert kinds == {*strategies.KINDS}
    assert cyclic > 100
    assert filled > 100
    assert pickled > 300


@pytest.mark.parametrize("name", [*samples.SAMPLES, *samples.VALUES])
def test_samples_are_the_same_each_time(name: str) -> None:
    """A sample is made anew each time, to the same bytes; and it can be pickled at all at protocol 5."""
    make = samples.SAMPLES.get(name) or samples.VALUES[name]
    first, second = (compare.use(STOCK, 5, lambda run: run.pickler.dump(make())) for _ in range(2))
    assert not explain(first, second)
    assert first.error is None


def test_allowed_differences_are_tested() -> None:
    """Each row has a reason, a link, and tests that exist."""
    suites = (suite_values.ValueSuite, suite_hooks.HookSuite, suite_evil.EvilSuite, test_older, test_audit)
    for row in allowed.ALLOWED:
        assert row.reason
        assert row.link.startswith("https://github.com/python/cpython/")
        for name in row.tests:
            assert any(hasattr(suite, name) for suite in suites), name


def test_disassembly() -> None:
    """A difference is shown by the opcodes around it."""
    shown = explain(Outcome(pickle.dumps([1, 2, 3], 4)), Outcome(pickle.dumps([1, 2, 4], 4)))
    assert "BININT1 3" in shown
    assert "BININT1 4" in shown
    assert shown.splitlines()[0].startswith("bytes, from 19")


def test_everything_is_compared() -> None:
    """Bytes, sizes of writes, errors, calls, memo and attributes."""
    base = {
        "written": b"N.",
        "sizes": (2,),
        "error": ("E", "text"),
        "calls": [("save", "int")],
        "memo": [1],
        "attributes": ["a"],
    }
    other = {"written": b"M.", "sizes": (1, 1), "error": None, "calls": [], "memo": [2], "attributes": []}
    assert not explain(Outcome(**base), Outcome(**base))
    for name, value in other.items():
        assert explain(Outcome(**base), Outcome(**{**base, name: value})), name


def test_nothing_is_compared_where_the_stack_was_full() -> None:
    """A RecursionError may come in other words, and just those; what differs after any other error is told with it."""
    context = ("builtins.RecursionError", "maximum recursion depth exceeded")
    by_pypy = "couldn't record exception context for exception '{}', got: RecursionError('{}')"
    for raised, is_compared in (
        (context, False),
        # in PyPy, where another exception is being handled
        (("builtins.TypeError", by_pypy.format("RecursionError", context[1]), context), False),
        (("builtins.TypeError", by_pypy.format("TypeError", context[1]), context), False),
        (("builtins.TypeError", "exceptions must derive from BaseException", context), True),
        (("builtins.ValueError", "couldn't record exception context", context), True),
    ):
        told = explain(Outcome(b"N", error=raised), Outcome(b"", error=raised))
        assert bool(told) is is_compared, raised
        assert not told or told.endswith(f"after the error {raised}")


def test_only_reducer_override_about_atoms_is_left_out() -> None:
    """The first allowed difference is no wider than it says."""
    calls = [
        ("reducer_override", "int", "1"),
        ("reducer_override", "Int", "1"),
        ("save", "int", "1"),
        ("reducer_override", "list", ""),
    ]
    assert allowed.asked_about(calls) == [calls[1], calls[2], calls[3]]


def test_python_file_keeps_what_it_gets() -> None:
    """Views of frames are read at the end only, so a frame that was used again would be seen."""
    file = PythonFile()
    buffer = io.BytesIO(b"abc")
    file.write(buffer.getbuffer())
    buffer.getbuffer()[0] = ord("x")
    assert file.getvalue() == b"xbc"
    file.close()


@pytest.mark.parametrize("wrong", ["bytes", "memo", "frames"])
def test_a_wrong_pickler_is_found(wrong: str) -> None:
    """A pickler that is wrong in one point fails the suite."""

    class Wrong(_Stock):  # type: ignore[misc]
        def save(self, obj: Any, save_persistent_id: bool = True) -> None:
            if wrong == "bytes" and type(obj) is float:
                obj = str(obj)
            if wrong == "memo" and type(obj) is tuple:
                self.memo.pop(id(obj), None)
            if wrong == "frames" and obj == "text":
                self.framer.commit_frame(force=True)
            super().save(obj, save_persistent_id)

    with pytest.raises(AssertionError, match="protocol"):
        for make in (samples.nested, samples.shared, suite_hooks.small):
            compare.check(STOCK, Implementation("wrong", Wrong), lambda run: run.pickler.dump(make()))
