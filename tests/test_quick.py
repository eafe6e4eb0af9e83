"""dumps() where the dump before was of much: what is kept of that, and large atoms, which C writes into its own buffer.

Not for: what C writes otherwise than Python (`test_mending`), nor for what a class overrides (`test_root`).
"""

from __future__ import annotations

import pickle
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from oracle.allowed import DILL_PICKLES_CODE, PYPY
from oracle.compare import stock_dumps

import fastpickle
from fastpickle._stdlib import CPickler

if PYPY or CPickler is None:
    pytest.skip("there is no C pickler", allow_module_level=True)  # PyPy has no tracemalloc either
import tracemalloc

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
LARGE = 200_000
TEXT = "text " * (LARGE // 5)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "large", [[*range(LARGE)], [TEXT, 1], {"key": [TEXT] * 10}, [f"{i} {'x' * 60_000}" for i in range(9)]]
)
def test_small_after_large(large: Any, protocol: int) -> None:
    """After a large dump a small one takes as little room as before: C's buffer is not kept as large."""
    small = {"a": [1, 2], "b": "c"}
    fastpickle.dumps(large, protocol)
    fastpickle.dumps(small, protocol)
    tracemalloc.start()
    try:
        fastpickle.dumps(small, protocol)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < LARGE


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_small_texts(protocol: int) -> None:
    """Up to 3.12, C fetches at protocol 0 what Python writes again: a text with escapes in it."""
    for text in ("\\", "a\nb", "\r", "\0", "\x1a", "\x19", "plain"):
        pair = [text, text]
        assert fastpickle.dumps(pair, protocol) == stock_dumps(pair, protocol)
        assert fastpickle.dumps({"a": pair}, protocol) == stock_dumps({"a": pair}, protocol)


class _Text(str):
    __slots__ = ()


class _Reduced:
    calls = 0

    def __reduce__(self) -> Any:
        type(self).calls += 1
        return str, (f"reduced {self.calls}",)


class _Holder:
    def __init__(self) -> None:
        self.items = [*range(1001)]  # which C ends otherwise


class _Meta(type):
    calls = 0

    def __hash__(cls) -> int:
        _Meta.calls += 1
        return super().__hash__()


class _OfMeta(metaclass=_Meta):
    pass


def _cycle() -> Any:
    cycle: list[Any] = [TEXT]
    cycle.append(cycle)
    return cycle


SHAPES: dict[str, Callable[[], Any]] = {
    "texts": lambda: [TEXT, TEXT + "!", "short", TEXT],
    "dict": lambda: {"a": TEXT, "b": TEXT, TEXT: 1, 2: None},
    "tuple": lambda: (TEXT, b"x" * LARGE, TEXT),
    "pair": lambda: (TEXT, 1),
    "empty": list,
    "one": lambda: TEXT,
    "bytes": lambda: b"x" * LARGE,
    "bytearray": lambda: [bytearray(LARGE), 1.5, 1 << 70, True, None],
    "no ascii": lambda: ["\u1234\ud800" * LARGE, "\\\n\r\x1a" * LARGE],
    "again": lambda: ["\\\n" * LARGE] * 2,
    "1001": lambda: ["x" * 5_000, *map(str, range(999)), TEXT * 20],
    "dict of 1000": lambda: {i: TEXT * 20 if i == 5 else i for i in range(1000)},
    "list in it": lambda: [TEXT, [TEXT, [*range(1001)]], TEXT],
    "dict in it": lambda: {"a": TEXT, "b": {i: i for i in range(1000)}},
    "cycle": _cycle,
    "subclass": lambda: [TEXT, _Text("x"), TEXT],
    "key of a subclass": lambda: {"a": TEXT, _Text("x"): TEXT},
    "instance": lambda: [TEXT, _Holder()],
    "key": lambda: {"a": TEXT, _Holder(): TEXT},
    "reduced": lambda: [TEXT, _Reduced(), TEXT],
    "metaclass": lambda: [TEXT, _OfMeta(), TEXT],
    "function": lambda: [TEXT, len, _Reduced],
    "small": lambda: {"a": [1, 2], "b": "c"},
    "rows": lambda: [{"text": TEXT, "n": i, "more": None} for i in range(4)],
    "rows of lists": lambda: [[TEXT, 1.5], [TEXT + "!"], [], [b"x" * LARGE]],
    "rows of tuples": lambda: [(TEXT, i, True) for i in range(4)] + [()],
    "a row again": lambda: [{"a": TEXT}] * 3,
    "rows of two types": lambda: [{"a": TEXT}, [TEXT]],
    "a row of a subclass": lambda: [{"a": TEXT}, OrderedDict(a=TEXT)],
    "a row of 1001": lambda: [[TEXT], [TEXT, *range(1000)]],
    "a row of 1000": lambda: [{"a": TEXT}, {"a": TEXT, **{f"{i}": i for i in range(999)}}],
    "1001 rows": lambda: [[TEXT * 20], *([i] for i in range(1000))],
    "a list in a row": lambda: [{"a": TEXT}, {"a": [TEXT, [*range(1001)]]}],
    "an instance in a row": lambda: [[TEXT, 1], [TEXT, _Holder()]],
    "a key that is an instance": lambda: [{"a": TEXT}, {_Holder(): TEXT}],
    "a row reduced": lambda: [(TEXT, 1), (TEXT, _Reduced())],
    "a metaclass in a row": lambda: [(TEXT, 1), (TEXT, _OfMeta())],
    "a row that is an atom": lambda: [[TEXT], TEXT],
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", SHAPES)
def test_large_atoms(name: str, protocol: int) -> None:
    """What comes after a dump of much is written as stock does, and nobody is asked twice."""
    make = SHAPES[name]
    results = []
    for dumps in stock_dumps, fastpickle.dumps:
        _Reduced.calls = 0
        written = [dumps(SHAPES["texts"](), protocol)]
        for obj in make(), make(), SHAPES["small"](), make():
            written.append(dumps(obj, protocol))
        results.append((written, _Reduced.calls))
    assert results[0] == results[1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("is_installed", [False, True])
def test_large_atoms_by_dill(protocol: int, is_installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same by dill, which looks at dicts for a name, and for the length of `__main__`'s."""
    from oracle import dills  # noqa: PLC0415  # it needs dill, and skips this without

    dill, dumps = dills.dill, dills.backend.dumps
    module = types.ModuleType("module_of_test_quick")
    module.text = TEXT  # type: ignore[attr-defined]  # the name is new
    monkeypatch.setitem(sys.modules, module.__name__, module)
    n = len(dill._dill._main_module.__dict__)
    shapes: dict[str, Callable[[], Any]] = {
        **SHAPES,
        "name": lambda: {"a": TEXT, "__name__": TEXT},
        "name of a module": lambda: {"a": TEXT, "__name__": "pickle"},
        "a module's dict": lambda: vars(module),
        "as long as main's": lambda: {f"{i}": TEXT for i in range(n)},
        "a little longer": lambda: {f"{i}": TEXT for i in range(n + 1)},
        "a row with a name": lambda: [{"a": TEXT}, {"a": TEXT, "__name__": "pickle"}],
        "a module's dict as a row": lambda: [vars(module)] * 2,
        "a row as long as main's": lambda: [{f"{i}": TEXT for i in range(n)}] * 2,
        "class": lambda: [TEXT, _Holder, type(_Holder())],
    }
    if DILL_PICKLES_CODE:
        shapes["lambda"] = lambda: [TEXT, lambda: TEXT]
    before = SHAPES["texts"]
    expected = {}
    for name, make in shapes.items():
        _Reduced.calls = 0
        expected[name] = [dill.dumps(x, protocol) for x in (before(), make(), make())], _Reduced.calls
    if is_installed:
        fastpickle.install()
        dumps = dill.dumps
    try:
        for name, make in shapes.items():
            _Reduced.calls = 0
            found = [dumps(x, protocol) for x in (before(), make(), make())], _Reduced.calls
            assert found == expected[name], name
    finally:
        if is_installed:
            fastpickle.uninstall()


def test_type_is_not_asked_for_its_hash() -> None:
    """A look at large atoms asks no type's `__hash__`: it is asked as often as after a dump of little."""
    for name in "metaclass", "a metaclass in a row":
        calls = []
        for before in "small", "texts":
            fastpickle.dumps(SHAPES[before](), 4)
            _Meta.calls = 0
            fastpickle.dumps(SHAPES[name](), 4)
            calls.append(_Meta.calls)
        assert calls[0] == calls[1] > 0


def test_large_atoms_of_a_class_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that is set between two dumps of large atoms is honoured."""
    fastpickle.dumps(SHAPES["texts"](), 4)
    monkeypatch.setattr(fastpickle.Pickler, "persistent_id", lambda self, obj: "text" if obj == TEXT else None)
    pickled = fastpickle.dumps([TEXT, "other"], 4)
    assert len(pickled) < LARGE
    monkeypatch.undo()
    assert fastpickle.dumps([TEXT, "other"], 4) == stock_dumps([TEXT, "other"], 4)


def test_large_atoms_are_not_held() -> None:
    """Once they are written, nothing of them is kept."""
    fastpickle.dumps(SHAPES["texts"](), 4)
    obj = [TEXT + "?", b"x" * LARGE]
    tracemalloc.start()
    try:
        fastpickle.dumps(obj, 4)
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < LARGE
