"""Which version of a library's functions this is, told by their source.

    function --(its file, and its first line)--> its lines --> ast --(without docstring, comments, layout)--> digest

A version number says nothing of a fork, of a function that somebody has replaced, or of the next version, in which the
functions may well be the same.  The source does: what is known of a function was read there.  It takes a third of a
millisecond each, once.  The digest is the same on every Python.

Not for: functions without a source file; they are unknown.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
from itertools import chain
from types import FunctionType
from typing import Any

__all__ = ["digests"]


def digests(*functions: Any) -> list[str | None]:
    """Return the digest of each function's source; None for what has none, or is no function."""
    return [_digest_of(function) if type(function) is FunctionType else None for function in functions]


def _digest_of(function: FunctionType) -> str | None:
    code = function.__code__
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]  # the first is a decorator's, if it has one
    if not lines:
        return None
    own = _indent(lines[0])
    above = ["if 1:\n"] if own else []  # what a method's lines may stand below
    ends = (k for k in range(1, len(lines)) if _indent(lines[k]) <= own and lines[k].strip()[:1] not in ("", "#"))
    for end in chain(ends, (len(lines),)):
        try:
            node: ast.AST = ast.parse("".join([*above, *lines[:end]])).body[0]
        except (SyntaxError, ValueError):  # it is the def below a decorator, or within brackets or a text
            continue
        node = node.body[0] if isinstance(node, ast.If) else node
        is_it = isinstance(node, ast.FunctionDef) and node.name == code.co_name
        return _digest(node) if is_it else None
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


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
