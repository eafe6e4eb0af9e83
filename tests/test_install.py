"""install(), uninstall(), patched(): what they change, and that they undo just that."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oracle import objects, samples
from oracle.compare import dumped
from oracle.suite_hooks import small

import fastpickle

_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]


def state() -> tuple[dict[str, Any], dict[Any, Any]]:
    return dict(vars(_Stock)), dict(_Stock.dispatch)


def same(first: tuple[dict[Any, Any], ...], second: tuple[dict[Any, Any], ...]) -> bool:
    """Tell whether two states are made of the same objects, in the same order."""
    return all([*a] == [*b] and all(a[k] is b[k] for k in a) for a, b in zip(first, second, strict=False))


@pytest.fixture(autouse=True)
def not_installed() -> Iterator[None]:
    assert not fastpickle.is_installed()
    yield
    fastpickle.uninstall()


def in_child(code: str, *, block: tuple[str, ...] = (), **environment: str) -> str:
    """Run code in an interpreter of its own, where some modules cannot be imported, and return what it prints."""
    code = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in block) + textwrap.dedent(code)
    env = {**os.environ, "PYTHONPATH": str(Path(fastpickle.__file__).parent.parent), **environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_changes_nothing() -> None:
    """Every attribute and entry of the stock class is the very object, and no other module of pickle's is touched."""
    in_child(
        """
        import pickle, copyreg, io, re, typing
        classes = (pickle._Pickler, pickle._Framer, pickle._Unpickler)
        before = [dict(vars(x)) for x in classes] + [dict(pickle._Pickler.dispatch)]
        tables = [dict(copyreg.dispatch_table), dict(vars(pickle))]
        names = [list(vars(pickle)), list(copyreg.dispatch_table)]
        import fastpickle
        fastpickle.dumps([1, {"a": (1,)}, {1}])
        after = [dict(vars(x)) for x in classes] + [dict(pickle._Pickler.dispatch)]
        for a, b in zip(before + tables, after + [dict(copyreg.dispatch_table), dict(vars(pickle))]):
            assert list(a) == list(b)
            assert all(a[k] is b[k] for k in a)
        assert not fastpickle.is_installed()
        for name in ("dill", "cloudpickle", "numpy", "rich", "concurrent.futures.process", "multiprocessing"):
            assert name not in sys.modules, name
        """
    )


def test_undone_exactly() -> None:
    """After uninstall() the class is what it was; calling either twice is calling it once."""
    before = state()
    fastpickle.uninstall()
    assert same(before, state())
    for _ in range(3):
        fastpickle.install()
        fastpickle.install()
        assert fastpickle.is_installed()
        assert _Stock.save is fastpickle.Pickler.save
        assert same(before[1:], state()[1:])
        fastpickle.uninstall()
        assert not fastpickle.is_installed()
        assert [*before[0]] == [*state()[0]] or {*before[0]} == {*state()[0]}
        assert all(before[0][k] is state()[0][k] for k in before[0])
        fastpickle.uninstall()


def test_patched_nests() -> None:
    """Blocks in blocks, install() and uninstall() inside and around them, and exceptions out of them."""
    before = state()
    stock_save = _Stock.save
    with fastpickle.patched():
        with fastpickle.patched():
            assert fastpickle.is_installed()
        assert fastpickle.is_installed()
        assert _Stock.save is not stock_save
    assert not fastpickle.is_installed()
    with fastpickle.patched():
        fastpickle.install()
    assert fastpickle.is_installed()
    with fastpickle.patched():
        fastpickle.uninstall()
        assert fastpickle.is_installed()
    assert not fastpickle.is_installed()
    assert _Stock.save is stock_save
    with pytest.raises(LookupError), fastpickle.patched(), fastpickle.patched():
        raise LookupError
    assert not fastpickle.is_installed()
    assert all(before[0][k] is state()[0][k] for k in before[0])
    generators = [fastpickle.patched(), fastpickle.patched()]
    for block in generators:
        block.__enter__()
    for block in generators:  # in the order in which they were opened, as threads may
        assert fastpickle.is_installed()
        block.__exit__(None, None, None)
    assert not fastpickle.is_installed()


def test_subclasses_before_and_after() -> None:
    """A subclass is accelerated and not, whenever it was defined."""
    obj = [samples.nested(), small()]
    expected = dumped(_Stock, obj)

    class Before(_Stock):
        pass

    calls: list[int] = []

    class Overriding(_Stock):
        def save(self, obj: Any, save_persistent_id: bool = True) -> None:
            calls.append(1)
            super().save(obj, save_persistent_id)

    assert dumped(Overriding, obj) == expected
    n = len(calls)
    with fastpickle.patched():

        class After(_Stock):
            pass

        class Copied(_Stock):
            dispatch = _Stock.dispatch.copy()

        for cls in (Before, After, Copied, Overriding):
            assert dumped(cls, obj) == expected
    assert len(calls) == 2 * n
    for cls in (Before, After, Copied, Overriding):
        assert dumped(cls, obj) == expected
        assert "_fastpickle_plan" not in vars(cls)


def test_bound_method_outlives_install() -> None:
    """A `save` that was bound under install() is called after uninstall(), and the other way round."""
    for start, stop in ((fastpickle.install, fastpickle.uninstall), (fastpickle.uninstall, fastpickle.install)):
        file, expected = io.BytesIO(), io.BytesIO()
        fastpickle.uninstall()
        plain = _Stock(expected, 2)
        start()
        pickler = _Stock(file, 2)
        save = pickler.save
        stop()
        save(obj := small())
        fastpickle.uninstall()
        plain.save(obj)
        assert file.getvalue() == expected.getvalue()
        assert vars(pickler).keys() == vars(plain).keys()


def test_replaced_by_others() -> None:
    """Somebody replaces `save` after install(): it is left alone, and a warning says so."""
    original = _Stock.save
    fastpickle.install()

    def replaced(self: Any, obj: Any, save_persistent_id: bool = True) -> None:
        original(self, obj, save_persistent_id)

    _Stock.save = replaced
    try:
        with pytest.warns(RuntimeWarning, match="save"):
            fastpickle.uninstall()
        assert _Stock.save is replaced
        assert dumped(_Stock, samples.nested()) == dumped(fastpickle.Pickler, samples.nested())
    finally:
        _Stock.save = original
    assert "_fastpickle_plan" not in vars(_Stock)
    fastpickle.install()
    fastpickle.uninstall()
    assert _Stock.save is original


def test_replaced_around() -> None:
    """Somebody wraps `save` between install() and uninstall(), and takes the wrapper out again."""
    original = _Stock.save
    fastpickle.install()
    ours = _Stock.save
    _Stock.save = lambda self, *args, **kwargs: ours(self, *args, **kwargs)
    obj = [samples.nested(), small()]
    wrapped = dumped(_Stock, obj)
    _Stock.save = ours
    fastpickle.uninstall()
    assert _Stock.save is original
    assert dumped(_Stock, obj) == wrapped


def test_recursion_into_another_pickler() -> None:
    """An object whose reduce pickles something with another pickler, as many libraries do."""

    def reduce(self: Any) -> Any:
        return objects.make, (dumped(_Stock, [1, (2,), objects.Plain(a=1)]), "after")

    obj = [1, objects.Reduced(reduce), {"a": [objects.Reduced(reduce)]}]
    expected = dumped(_Stock, obj)
    with fastpickle.patched():
        assert dumped(_Stock, obj) == expected
    assert dumped(fastpickle.Pickler, obj) == expected


def test_c_pickler_stays() -> None:
    """`pickle.Pickler`, `pickle.dumps` and `pickle._dumps` are what they were."""
    before = (pickle.Pickler, pickle.dumps, pickle.dump, pickle._dumps, pickle._Pickler)  # type: ignore[attr-defined]
    with fastpickle.patched():
        assert before == (pickle.Pickler, pickle.dumps, pickle.dump, pickle._dumps, pickle._Pickler)  # type: ignore[attr-defined]
        assert pickle._dumps(small(), 4) == fastpickle.dumps(small(), 4)  # type: ignore[attr-defined]
