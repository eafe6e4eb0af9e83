"""The folders of the package are its layers: an import goes down them, never up, and nowhere in a circle."""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from oracle.allowed import PYPY
from test_install import in_child

import fastpickle

PACKAGE = Path(fastpickle.__file__).parent
LAYERS = {
    "objects": set(),
    "accelerator": {"objects"},
    "engine": {"objects", "accelerator"},
    "pypy": {"objects", "engine"},
    "digests": {"objects", "accelerator", "engine"},
    "at_once": {"objects", "accelerator", "engine", "digests"},
    "backends": {"objects", "accelerator", "engine", "digests", "at_once"},
    "cli": set(),
    "concurrent": {"backends"},
}
"""Folder -> those from which its modules may import; the modules beside the folders may import from any."""


def _modules() -> Iterator[tuple[str, Path]]:
    for path in PACKAGE.rglob("*.py"):
        yield ".".join(("fastpickle", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"), path


MODULES = dict(_modules())


def _imported(name: str) -> Iterator[str]:
    """The modules of the package that are imported when this one is."""
    path = MODULES[name]
    parent = name if path.name == "__init__.py" else name.rpartition(".")[0]
    nodes: list[ast.AST] = [*ast.parse(path.read_text(encoding="utf-8")).body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(parent.split(".")[: parent.count(".") + 2 - node.level])
            base = f"{base}.{node.module}" if node.module else base
            for alias in node.names:
                yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not _is_for_types(node):
            nodes += ast.iter_child_nodes(node)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _folder(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else ""


def test_every_folder_has_its_place() -> None:
    """A new folder has to be put into the order, and its docstring maps its modules."""
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == {*LAYERS}
    for folder in folders:
        assert ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_go_down(name: str) -> None:
    """From its own folder, from those below it, and from the modules beside the folders."""
    folder = _folder(name)
    if folder:
        others = {_folder(module) for module in _imported(name)} - {folder, ""}
        assert others <= LAYERS[folder], f"fastpickle/{folder} may import from {sorted(LAYERS[folder])} only"


def test_no_circles() -> None:
    """But for PyPy's own answers, which its modules put in the place of those of `hooks` and `doubts` at their end."""
    graph = {name: {m for m in _imported(name) if _folder(m) != "pypy" or _folder(name) == "pypy"} for name in MODULES}
    graphlib.TopologicalSorter(graph).prepare()


@pytest.mark.skipif(PYPY, reason="it is PyPy")
def test_nothing_of_pypy() -> None:
    """CPython imports none of it, and no library."""
    code = """
        import sys, fastpickle
        fastpickle.install()
        assert not [m for m in sys.modules if m.startswith(("fastpickle.pypy", "fastpickle.concurrent"))]
        assert not {"dill", "joblib", "datasets", "numpy"} & {*sys.modules}
        """
    in_child(code)


@pytest.mark.parametrize("folder", ["", "objects", "accelerator", "engine", "pypy", "digests", "at_once"])
def test_every_module_is_on_the_map(folder: str) -> None:
    """README's table has a row for each module beside the folders, and a folder's docstring names its modules."""
    if folder:
        text = (PACKAGE / folder / "__init__.py").read_text(encoding="utf-8")
        names = [path.stem for path in (PACKAGE / folder).glob("*.py") if path.stem != "__init__"]
    else:
        readme = PACKAGE.parent / "README.md"
        if not readme.exists():
            pytest.skip("no checkout")
        text = readme.read_text(encoding="utf-8").partition("## Where things are")[2]
        names = [f"fastpickle/{path.name}" for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert names
    assert not [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)]
