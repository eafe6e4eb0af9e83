"""Which version of a library's functions this is, told by their source.

    function --(its file, and the line where it begins)--> ast --(without docstring, comments, layout)--> digest

A version number says nothing of a fork, of a function that somebody has replaced, or of the next version, in which the
functions may well be the same.  The source does: what is known of a function was read there.  It takes some
milliseconds, once.  The digest is the same on every Python.

Not for: functions without a source file; they are unknown.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
from types import FunctionType
from typing import Any

__all__ = ["digests"]


def digests(*functions: Any) -> list[str | None]:
    """Return the digest of each function's source; None for what has none, or is no function."""
    files: dict[str, dict[tuple[str, int], ast.AST]] = {}
    found: list[str | None] = []
    for function in functions:
        found.append(None)
        if type(function) is not FunctionType:
            continue
        code = function.__code__
        if code.co_filename not in files:
            files[code.co_filename] = _definitions(code.co_filename)
        node = files[code.co_filename].get((code.co_name, code.co_firstlineno))
        if node is not None:
            found[-1] = _digest(node)
    return found


def _definitions(file: str) -> dict[tuple[str, int], ast.AST]:
    """Return the functions in a file by name and first line, which is that of a decorator if there is one."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    return {
        (node.name, min([node.lineno, *[decorator.lineno for decorator in node.decorator_list]])): node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


def _digest(node: Any) -> str:
    if ast.get_docstring(node, clean=False) is not None:
        del node.body[0]
    parts = [type(x).__name__ + repr([*_fields(x)]) for x in ast.walk(node)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _fields(node: ast.AST) -> Any:
    """Yield a node's names and constants, and how many nodes are in each of its lists; empty ones differ by Python."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            if value:
                yield name, [x if isinstance(x, str) else type(x).__name__ for x in value]
        elif isinstance(value, ast.AST):
            yield name, type(value).__name__
        elif value or (value is not None and isinstance(node, ast.Constant)):  # 3.15 has more flags, that are 0
            yield name, value
