"""Objects that nobody wrote for a test: what is in memory when the standard library is imported, by stock and ours.

    python tests/oracle/wild.py --seed 1 --count 1500 --way dill

    the collector's objects --> some of each type, and lists, tuples, dicts of them
        --> in three forked processes: by stock, by stock after ours was installed for a while, by ours
        --> what differs between the first two and the third; what differs between these two does not count

Functions, classes, modules and code, descriptors, locks, loggers, enums, registries ... many of them fail to be pickled
at some depth, and then the error counts.  Each process dumps all of them in the same order, since a dump may change
what it is of; where an object takes long, or the stack runs out, it does not count.

Not for: objects made for a purpose (``samples.py``, ``grafts.py``, ``strategies.py``).
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import io
import json
import os
import pickle
import random
import signal
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable
from typing import Any

#: Modules that open a window or a page, print, or are none.
LEFT_OUT = frozenset(
    ("__main__", "antigravity", "idlelib", "this", "tkinter", "turtle", "turtledemo", "_tkinter", "test")
)
#: So long an object may take, in seconds.
PATIENCE = 1.5
#: How often each protocol is used.
PROTOCOLS = (0, 1, 2, 3, 4, 4, 4, 4, 5, 5)
LENGTHS = (2, 3, 5, 17, 60)


class Late(BaseException):
    """Ends a dump that takes long."""


def _stock_dumps(obj: object, protocol: int) -> bytes:
    # not ``compare.stock_dumps``: who imports that has fastpickle in memory
    file = io.BytesIO()
    pickle._Pickler(file, protocol).dump(obj)  # type: ignore[attr-defined]  # private
    return file.getvalue()


def _dill_dumps(**how: bool) -> Callable[[Any, int], bytes]:
    def dumps(obj: object, protocol: int) -> bytes:
        pickled: bytes = importlib.import_module("dill").dumps(obj, protocol, **how)
        return pickled

    return dumps


def _hash(obj: object, protocol: int) -> bytes:
    digest: str = importlib.import_module("joblib").hash(obj)
    return digest.encode()


WAYS: dict[str, Callable[[Any, int], bytes]] = {
    "stock": _stock_dumps,
    "dill": _dill_dumps(),
    "recurse": _dill_dumps(recurse=True),
    "byref": _dill_dumps(byref=True),
    "joblib.hash": _hash,
}


def found(count: int, chance: random.Random) -> list[Any]:
    """Return some of the objects in memory, of each type about as many, and containers of them."""
    kinds: dict[type, list[Any]] = {}
    for obj in gc.get_objects():
        if not _may_change(obj):
            kinds.setdefault(type(obj), []).append(obj)
    picked: list[Any] = []
    waiting = sorted(kinds, key=lambda t: (str(t.__module__), t.__qualname__))
    while len(picked) < count and waiting:
        for t in waiting:
            often = 0.2 if t in (dict, tuple, list) or len(kinds[t]) > 500 else 0.5
            if chance.random() < often:
                picked.append(kinds[t].pop(chance.randrange(len(kinds[t]))))
        waiting = [t for t in waiting if kinds[t]]
    chance.shuffle(picked)
    del picked[count:]
    for _ in range(count // 10):
        k = chance.choice(LENGTHS)
        t = type(chance.choice(picked))
        alike = [obj for obj in picked if type(obj) is t][:k]
        picked.append(
            chance.choice(
                (
                    alike,
                    tuple(alike),
                    dict(enumerate(alike)),
                    [chance.choice(picked) for _ in range(k)],
                    [*range(50), *alike],
                    {"a": [*range(100)], "b": alike},
                )
            )
        )
    return picked


def _may_change(obj: Any) -> bool:
    """Tell whether an object is another one once fastpickle is imported and installed, or something is looked at."""
    return (
        obj is sys.modules
        or obj is sys.path_importer_cache
        or obj is vars(pickle._Pickler)  # type: ignore[attr-defined]  # private
        or getattr(obj, "__module__", "") == "pickle"
        # what isinstance() has found of a class, and what has been warned of
        or (type(obj) is set and any(type(x) is weakref.ref for x in obj))
        or type(obj) is weakref.ref
        or type(getattr(obj, "__self__", None)) is weakref.ref
        or (type(obj) is dict and "version" in obj)
    )


def written(objects: list[Any], dumps: Callable[[Any, int], bytes], seed: int, by: str) -> list[str | None]:
    """Return what each object gives in a forked process: a digest, or the error; None if that does not count."""
    with tempfile.TemporaryFile("w+") as file:
        process = os.fork()
        if not process:
            try:
                nothing = os.open(os.devnull, os.O_RDWR)
                os.dup2(nothing, 1)
                os.dup2(nothing, 2)
                _write(objects, dumps, seed, by, file)
                file.flush()
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        file.seek(0)
        return [json.loads(line) for line in file]


def _write(objects: list[Any], dumps: Callable[[Any, int], bytes], seed: int, by: str, file: Any) -> None:
    if by != "stock":
        importlib.import_module("fastpickle").install()
    if by == "stock again":
        importlib.import_module("fastpickle").uninstall()
    gc.disable()
    signal.signal(signal.SIGALRM, _end)
    chance = random.Random(seed)
    for obj in objects:
        protocol = chance.choice(PROTOCOLS)
        gave: str | None
        try:
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            pickled = dumps(obj, protocol)
            signal.setitimer(signal.ITIMER_REAL, 0)
            gave = f"{len(pickled)} bytes, {hashlib.sha256(pickled).hexdigest()[:16]}"
        except (Late, RecursionError):
            gave = None
        except BaseException as exc:
            gave = f"{type(exc).__name__}: {exc} {getattr(exc, '__notes__', '')}"[:500]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        file.write(json.dumps(gave) + "\n")
        file.flush()


def _end(*args: object) -> None:
    raise Late


def main() -> int:
    """Compare, print what differs and how many objects do not, and return 1 if any differs."""
    parser = argparse.ArgumentParser(description="Compare dumps of what is in memory, by stock and by fastpickle.")
    parser.add_argument("--seed", type=int, default=0, help="what is picked (default: %(default)s)")
    parser.add_argument("--count", type=int, default=1500, help="how many objects (default: %(default)s)")
    parser.add_argument("--way", choices=WAYS, default="stock", help="what dumps them (default: %(default)s)")
    parser.add_argument("modules", nargs="*", help="packages to import, beside the standard library")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in sorted({*sys.stdlib_module_names, *options.modules} - LEFT_OUT):
        try:
            importlib.import_module(name)
        except Exception:  # some are for other systems
            continue
    dumps = WAYS[options.way]
    dumps(None, 4)  # imports the library
    gc.collect()
    objects = found(options.count, random.Random(options.seed))
    importlib.import_module("fastpickle")  # whose objects are not among them
    first, again, ours = (written(objects, dumps, options.seed, by) for by in ("stock", "stock again", "ours"))
    if not len(first) == len(again) == len(ours) == len(objects):
        print(f"a process died: {len(first)}, {len(again)}, {len(ours)} of {len(objects)} dumps")
        return 1
    counts = {"same": 0, "errors": 0, "differ": 0, "do not count": 0}
    for obj, by_stock, by_stock_again, by_ours in zip(objects, first, again, ours, strict=True):
        if None in (by_stock, by_stock_again, by_ours) or by_stock != by_stock_again:
            counts["do not count"] += 1
        elif by_stock == by_ours:
            counts["errors" if ": " in str(by_stock) else "same"] += 1
        else:
            counts["differ"] += 1
            print(f"{type(obj)}: {by_stock!r} by stock, {by_ours!r} by ours")
    print(json.dumps(counts))
    return int(counts["differ"] > 0)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    sys.exit(main())
