"""Dumps during which an allocation fails, or some in a row: a script, since the interpreter itself may crash then.

    python starved.py WAY SHAPE MANY STEP --> a line for each: which allocation was the first, and what came of it

    same       the same bytes: there was another way
    wrong      other bytes
    an error   its type
    then ...   what came of the next dump, for which there is memory, if that is not the same

Its classes are those of `__main__`, which dill saves by value.

Not for: interpreters without `_testcapi`.
"""

from __future__ import annotations

import datetime
import io
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

import fastpickle

__all__ = ["SHAPES"]

#: After so many dumps in a row that were as ever there were no more allocations.
_AT_THE_END = 40


class Reduced:
    """An object whose reduce may run anything."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Reduced, (int(self.value),)


class Plain:
    """An instance with a `__dict__`."""

    def __init__(self, value: int) -> None:
        self.value = value


def _record(i: int) -> dict[str, Any]:
    return {"id": i, "name": f"name {i}", "tags": ["a", i], "at": (i, 1.5, None)}


def _closure() -> Any:
    held = [1, "two", 3.0]
    return lambda x: (x, held)


SHAPES: dict[str, Callable[[], Any]] = {
    "a_little": lambda: {"a": 1, "b": [1, 2.5, "c"]},
    "records": lambda: [_record(i) for i in range(60)],
    "instances": lambda: [Plain(i) for i in range(30)],
    "reduced": lambda: [Reduced(i) for i in range(50)],
    "few": lambda: {"a": 1, "b": [1, 2, "c"], "d": Reduced(3)},
    "beside": lambda: [
        Reduced(1),
        [_record(i) for i in range(30)],
        Reduced(2),
        [*range(100)],
        [f"{i}" for i in range(60)],
    ],
    "dates": lambda: [datetime.date(2020, 1, 1 + i % 28) for i in range(60)],
    "closures": lambda: [_closure(), {"a": 1}, _closure()],
}


def _dumps_by_pickler(obj: Any) -> bytes:
    file = io.BytesIO()
    fastpickle.Pickler(file).dump(obj)
    return file.getvalue()


def _dumps_of(way: str) -> Iterator[Callable[[Any], bytes]]:
    """Yield the function that gives stock's bytes, and then ours."""
    if way in ("dumps", "Pickler"):
        yield pickle._dumps  # type: ignore[attr-defined]  # typeshed does not know it
        yield fastpickle.dumps if way == "dumps" else _dumps_by_pickler
        return
    import dill  # noqa: PLC0415  # it edits stock's table, which the other ways are to have as it was

    from fastpickle.backends import dill as backend  # noqa: PLC0415  # as above

    dill.extend(False)
    yield dill.dumps
    if way == "dill":
        fastpickle.install()
        yield dill.dumps
    else:
        yield backend.dumps


def _main(way: str, shape: str, many: str, step: str) -> None:
    import _testcapi  # type: ignore[import-not-found]  # noqa: PLC0415  # typeshed and some interpreters do not have it

    ways = _dumps_of(way)
    obj = SHAPES[shape]()
    wanted = next(ways)(obj)
    dumps = next(ways)
    for _ in range(3):  # what is remembered of the first ones makes the next ones otherwise
        assert dumps(obj) == wanted
    place = same = 0
    while same < _AT_THE_END:
        found = error = None
        _testcapi.set_nomemory(place, place + int(many))
        try:
            found = dumps(obj)
        except BaseException as exc:
            error = exc  # it is looked at when there is memory again
        _testcapi.remove_mem_hooks()
        outcome = "same" if found == wanted else "wrong" if error is None else type(error).__name__
        try:
            then = "" if dumps(obj) == wanted else ", then wrong"
        except Exception as exc:
            then = f", then {type(exc).__name__}"
        print(place, outcome + then)
        same = same + 1 if outcome + then == "same" else 0
        place += int(step)


if __name__ == "__main__":
    _main(*sys.argv[1:])
