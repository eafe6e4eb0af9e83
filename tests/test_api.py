"""``import fastpickle as pickle``: every public name, signature, default and message of the running Python's pickle."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import pickle
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from oracle import samples
from oracle.compare import ALL, describe_error
from test_install import in_child

import fastpickle

_OPTIONAL = ("dill", "cloudpickle", "rich", "pyperf", "matplotlib", "joblib", "datasets")


def test_save_is_ours() -> None:
    """Everywhere, PyPy too, where it is another one."""
    stock_save = pickle._Pickler.save  # type: ignore[attr-defined]
    assert fastpickle.Pickler.save is not stock_save
    with fastpickle.patched():
        assert pickle._Pickler.save is fastpickle.Pickler.save  # type: ignore[attr-defined]


def test_every_public_name() -> None:
    """Everything that `pickle` exports or has is found here."""
    for name in pickle.__all__:
        assert name in fastpickle.__all__
        ours = getattr(fastpickle, name)
        if name not in ("Pickler", "dump", "dumps"):
            assert ours is getattr(pickle, name)
    for name in vars(pickle):
        assert hasattr(fastpickle, name), name
    with pytest.raises(AttributeError, match="module 'fastpickle' has no attribute 'no_such_name'"):
        fastpickle.no_such_name  # noqa: B018
    names: dict[str, Any] = {}
    exec("from fastpickle import *", names)
    assert {*fastpickle.__all__} <= {*names}
    assert len(fastpickle.__all__) == len({*fastpickle.__all__})


def test_pickler_is_a_stock_pickler() -> None:
    """The class stands where the stock one stood."""
    stock = pickle._Pickler  # type: ignore[attr-defined]
    assert issubclass(fastpickle.Pickler, stock)
    assert fastpickle.Pickler.dispatch is stock.dispatch
    assert fastpickle.Pickler.__name__ == stock.__name__.lstrip("_")
    for name, value in vars(stock).items():
        assert hasattr(fastpickle.Pickler, name)
        if inspect.isfunction(value):
            assert (
                inspect.signature(getattr(fastpickle.Pickler, name)).parameters.keys()
                == inspect.signature(value).parameters.keys()
            )


@pytest.mark.parametrize("name", ["dump", "dumps"])
def test_signatures(name: str) -> None:
    """Names, kinds and defaults of the parameters, and the docstring."""
    ours = inspect.signature(getattr(fastpickle, name)).parameters
    for stock in (getattr(pickle, name), getattr(pickle, "_" + name)):
        theirs = inspect.signature(stock).parameters
        assert [(p.name, p.kind, p.default) for p in ours.values()] == [
            (p.name, p.kind, p.default) for p in theirs.values()
        ]
    assert getattr(fastpickle, name).__doc__ == getattr(pickle, name).__doc__
    assert inspect.signature(fastpickle.Pickler) == inspect.signature(pickle._Pickler)  # type: ignore[attr-defined]


@pytest.mark.parametrize("sample", samples.SAMPLES)
def test_dumps(sample: str) -> None:
    """The functions give the bytes of `pickle._dumps`, or its error."""
    for protocol in (None, -1, *samples.where_it_ends(sample, ALL)):

        def attempt(dumps: Any) -> Any:
            try:
                return dumps(samples.SAMPLES[sample](), protocol)
            except RecursionError:  # what is left undone of an endless object is not compared
                return None
            except Exception as exc:
                return describe_error(exc)

        def dump(obj: Any, protocol: Any) -> bytes:
            file = io.BytesIO()
            fastpickle.dump(obj, file, protocol)
            return file.getvalue()

        expected = attempt(pickle._dumps)  # type: ignore[attr-defined]
        assert attempt(fastpickle.dumps) == expected
        assert attempt(dump) == expected


def test_fix_imports() -> None:
    """Old names for old protocols, unless that is switched off."""
    obj = [range, len, OSError, object, {1}]
    for protocol in ALL:
        for fix_imports in (True, False):
            expected = pickle._dumps(obj, protocol, fix_imports=fix_imports)  # type: ignore[attr-defined]
            assert fastpickle.dumps(obj, protocol, fix_imports=fix_imports) == expected


def test_buffer_callback() -> None:
    """Out-of-band buffers of the functions."""
    data = bytearray(b"data")
    buffers: list[Any] = []
    written = fastpickle.dumps([pickle.PickleBuffer(data), 1], 5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert fastpickle.loads(written, buffers=buffers) == [data, 1]
    assert written == pickle._dumps([pickle.PickleBuffer(data), 1], 5, buffer_callback=[].append)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "arguments",
    [
        ((io.BytesIO(), 99), {}),
        ((io.BytesIO(), pickle.HIGHEST_PROTOCOL + 1), {}),
        ((io.BytesIO(), 4), {"buffer_callback": len}),
        ((io.BytesIO(), None), {"buffer_callback": len} if pickle.DEFAULT_PROTOCOL < 5 else {"wrong": 1}),
        ((object(),), {}),
        ((None, 4), {}),
        ((io.BytesIO(), "4"), {}),
        ((), {}),
    ],
)
def test_errors_of_the_constructor(arguments: Any) -> None:
    """The same exception, with the same message."""
    errors = []
    for cls in (pickle._Pickler, fastpickle.Pickler):  # type: ignore[attr-defined]
        with pytest.raises(Exception) as caught:
            cls(*arguments[0], **arguments[1])
        described = describe_error(caught.value)
        assert described is not None
        errors.append([str(part).replace("_Pickler", "Pickler") for part in described])
    assert errors[0] == errors[1]


def _modules() -> list[str]:
    found = [m.name for m in pkgutil.walk_packages(fastpickle.__path__, "fastpickle.", onerror=lambda name: None)]
    return ["fastpickle", *(name for name in found if not name.endswith("__main__"))]


@pytest.mark.parametrize("name", _modules())
def test_all_is_what_is_defined(name: str) -> None:
    """`__all__` of each module names its public functions, classes and constants, and nothing else."""
    try:
        module = importlib.import_module(name)
    except ImportError as exc:
        if any(library in str(exc) for library in _OPTIONAL):
            pytest.skip(str(exc))
        raise
    if name == "fastpickle":
        return  # its names are pickle's: test_every_public_name
    tree = ast.parse(Path(module.__file__ or "").read_text())
    defined: set[str] = set()
    nodes = [*tree.body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                defined |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined.add(node.target.id)
        elif isinstance(node, (ast.If, ast.Try)):
            nodes += [*node.body, *node.orelse]
    public = {n for n in defined if not n.startswith("_")}
    if not public and not hasattr(module, "__all__"):
        return  # a package's docstring
    assert len({*module.__all__}) == len(module.__all__)
    assert not [exported for exported in module.__all__ if exported.startswith("_")]
    if ".cli" not in name:  # the command's modules export what others of them use
        assert not public - {*module.__all__}, "defined, public and not in __all__"
    for exported in module.__all__:
        assert hasattr(module, exported)


@pytest.mark.parametrize("library", ["dill", "cloudpickle"])
def test_missing_library(library: str) -> None:
    """A backend without its library says which extra brings it; the rest works."""
    printed = in_child(
        f"""
        import fastpickle
        try:
            import fastpickle.backends.{library}
        except ImportError as exc:
            print(exc)
        fastpickle.install()
        import pickle
        assert pickle.loads(pickle._dumps([1, {{"a": (2,)}}])) == [1, {{"a": (2,)}}]
        """,
        block=(library,),
    )
    assert f"fastpickle[{library}]" in printed


@pytest.mark.parametrize("environment", [{"FASTPICKLE_PURE": "1"}, {"FASTPICKLE_PURE": "0"}, {"FASTPICKLE_PURE": ""}])
def test_pure(environment: dict[str, str]) -> None:
    """FASTPICKLE_PURE is accepted, and the bytes stay."""
    in_child(_COMPARE, **environment)


def test_without_accelerator() -> None:
    """Without `_pickle` everything works on the pure engine."""
    in_child(_COMPARE, block=("_pickle",))


_COMPARE = """
    import pickle
    before = {}
    from oracle import samples
    names = ("nested", "shared", "cyclic tuples", "instances", "reduces", "subclasses", "batches", "large")
    made = {name: samples.SAMPLES[name]() for name in names}
    def attempt(dumps, name, protocol):
        try:
            return dumps(samples.SAMPLES[name](), protocol)
        except Exception as exc:
            return str(exc)
    expected = {(name, protocol): attempt(pickle._dumps, name, protocol) for name in made for protocol in range(6)}
    import fastpickle
    for (name, protocol), right in expected.items():
        assert attempt(fastpickle.dumps, name, protocol) == right, (name, protocol)
        with fastpickle.patched():
            assert attempt(pickle._dumps, name, protocol) == right, (name, protocol)
"""


def test_module_is_typed() -> None:
    """The marker of PEP 561 is there."""
    assert (Path(fastpickle.__file__).parent / "py.typed").exists()


def test_loads_is_the_stock_one() -> None:
    """What is written here is read by anybody."""
    for protocol in ALL:
        written = fastpickle.dumps(samples.nested(), protocol)
        assert pickle.loads(written) == fastpickle.loads(written) == samples.nested()
