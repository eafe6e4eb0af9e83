"""The data on which a library's entry points are timed: made by real programs, and there on every machine.

packages of this environment  -> records    what their metadata says, as JSON would hold it
sources of the stdlib         -> tokens     what the tokenizer makes of them
"""

from __future__ import annotations

import importlib.metadata
import io
import pickle
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TOKENS = 20_000
"""Tokens taken: some thirty thousand objects that are pickled, in a fifth of a second on stock."""

_RECORDS = 1_500
"""Files named in the records."""


@dataclass(frozen=True)
class RealData:
    """What entry points are called with.

    Args:
        records: one dict per package, of nested dicts, lists, str, int and None.
        tokens: tuples ``(type, string, (row, column), (row, column))``.
    """

    records: list[dict[str, Any]]
    tokens: list[tuple[Any, ...]]


def real_data() -> RealData:
    """Make the data.

    Returns:
        Data of the same shape on every machine, and the same within one environment.
    """
    return RealData(_records(), _tokens())


def _records() -> list[dict[str, Any]]:
    """Describe packages until enough files are named."""
    records: list[dict[str, Any]] = []
    named = 0
    for package in sorted(importlib.metadata.distributions(), key=lambda package: package.metadata["Name"]):
        files = [
            {"path": str(file), "size": file.size, "hash": file.hash and dict(vars(file.hash))}
            for file in (package.files or [])[: _RECORDS - named]
        ]
        named += len(files)
        requires = [{"text": text, "words": re.findall(r"[\w.]+", text)} for text in package.requires or []]
        metadata = {key: package.metadata.get_all(key) for key in package.metadata if key != "Description"}
        records.append({"name": package.metadata["Name"], "metadata": metadata, "requires": requires, "files": files})
        if named >= _RECORDS:
            break
    return records


def _tokens() -> list[tuple[Any, ...]]:
    """Tokenize modules of the stdlib, beginning with pickle."""
    tokens: list[tuple[Any, ...]] = []
    folder = Path(pickle.__file__).parent
    for name in ("pickle", "typing", "argparse", "inspect", "tarfile"):
        source = (folder / f"{name}.py").read_text(encoding="utf-8")
        tokens += [tuple(token)[:4] for token in tokenize.generate_tokens(io.StringIO(source).readline)]
        if len(tokens) >= _TOKENS:
            break
    return tokens[:_TOKENS]
