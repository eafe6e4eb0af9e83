"""What datasets' tests import from ``tests/utils.py``, which is not in its source distribution.

require_NAME    skips a test where the library is missing, as upstream's does
assert_arrow_memory_*, set_current_working_directory_to_temp_dir    frames for a with statement
push_parquet_shards_offline    for the hub, which no test here gets to
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow

_MODULES = {"pil": "PIL", "tf": "tensorflow", "torch_compile": "torch"}
"""Libraries whose module has another name."""

_ALWAYS_THERE = ("not_windows", "numpy1_on_windows", "dill_gt_0_3_2")


def __getattr__(name: str) -> Callable[[Any], Any]:
    """Give the decorator ``require_NAME``.

    Args:
        name: the attribute that is asked for.

    Returns:
        A decorator that skips a test where the library is missing, and else leaves it as it is.

    Raises:
        AttributeError: it is no such name.
    """
    prefix, required, library = name.partition("require_")
    if prefix or not required:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if library in _ALWAYS_THERE or importlib.util.find_spec(_MODULES.get(library, library)) is not None:
        return lambda test: test
    return unittest.skip(f"test requires {library}")


@contextlib.contextmanager
def assert_arrow_memory_increases() -> Iterator[None]:
    """Check that the block leaves more in arrow's memory."""
    before = pyarrow.total_allocated_bytes()
    yield
    assert pyarrow.total_allocated_bytes() > before


@contextlib.contextmanager
def assert_arrow_memory_doesnt_increase() -> Iterator[None]:
    """Check that the block leaves no more in arrow's memory."""
    before = pyarrow.total_allocated_bytes()
    yield
    assert pyarrow.total_allocated_bytes() <= before


@contextlib.contextmanager
def set_current_working_directory_to_temp_dir() -> Iterator[None]:
    """Run the block in a new folder."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def push_parquet_shards_offline(*arguments: object, **options: object) -> None:
    """Fail, because it is for the hub.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("there is no hub here")
