"""What a type checker tells users of the package; run by mypy alone (``tox -e types``)."""

from __future__ import annotations

import io

from typing_extensions import assert_type

import fastpickle
from fastpickle.concurrent import InterpreterPoolExecutor, ProcessThreadPoolExecutor
from fastpickle.pickler import Pickler

# Not the C pickler, which has the same name in what `pickle` exports.
assert_type(fastpickle.Pickler(io.BytesIO()), Pickler)
assert_type(fastpickle.dumps([1]), bytes)


class Hooked(fastpickle.Pickler):
    """A pickler with a hook, which C's has not."""

    def memoize(self, obj: object) -> None:
        """Have it memoized."""
        super().memoize(obj)


def name_of(number: int) -> str:
    """Return its name."""
    return str(number)


for executor in (ProcessThreadPoolExecutor(), InterpreterPoolExecutor()):
    assert_type(executor.submit(name_of, 1).result(), str)
    assert_type([*executor.map(name_of, [1])], list[str])
executor.submit(name_of, "1")  # type: ignore[arg-type]  # as it should be: mypy fails where such a comment is unused
