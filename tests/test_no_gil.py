"""Other threads change what is dumped: what is written can be loaded, and has in it what was there at some moment.

    owners    containers, with everything in one telling whose it is
    changers  threads that set, add and take away items of all kinds
    a dump    of some owners -> loaded -> each has only its own, or RuntimeError, as stock raises where a dict changes

A pickle that was put together from two states, say by a look at types that are others when the items are encoded, or by
a memo that is another when it is asked, has something of another owner in it, or cannot be loaded.

Without the GIL (PEP 703) the C pickler reads what another thread has freed, and the interpreter may crash, so it is not
asked there: that, and who may switch it on, is tested here, too.
"""

from __future__ import annotations

import os
import pickle
import random
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oracle.compare import dumped
from oracle.engines import Pure
from test_install import in_child

import fastpickle
from fastpickle import _stdlib

_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]  # private to the stdlib

SECONDS = float(os.environ.get("THREADS_SECONDS", 1.5))
OWNERS = 12
CHANGERS = 2
DUMPERS = 2
LENGTHS = (1, 3, 10, 60, 300, 1001)
#: What stock raises where a dict or set changes.
AS_BY_STOCK = ("dictionary changed size during iteration", "dictionary keys changed during iteration")

IS_FREE_THREADED = "free-threading build" in sys.version
needs_free_threads = pytest.mark.skipif(not IS_FREE_THREADED, reason="free-threaded builds")


class Plain:
    def __init__(self, owner: int) -> None:
        self.text = f"{owner}:text"
        self.number = _number(owner)
        self.some = [f"{owner}:some"]


class Slotted:
    __slots__ = ("number", "text")

    def __init__(self, owner: int) -> None:
        self.text = f"{owner}:text"
        self.number = _number(owner)


class Reducing:
    def __init__(self, text: str) -> None:
        self.text = text

    def __reduce__(self) -> Any:
        return Reducing, (self.text,)


def _number(owner: int, i: int = 0) -> int:
    return owner * 1_000_000 + i


#: Kinds of items, each made for an owner, by a random number.
KINDS: tuple[Callable[[int, int], Any], ...] = (
    lambda owner, i: f"{owner}:{i}",
    lambda owner, i: _number(owner, i),
    lambda owner, i: owner + 0.25,
    lambda owner, i: f"{owner}:{i}".encode(),
    lambda owner, i: None,
    lambda owner, i: (_number(owner, i), f"{owner}:in a tuple"),
    lambda owner, i: [_number(owner), f"{owner}:in a list", [f"{owner}:{i}"]],
    lambda owner, i: {f"{owner}:key": _number(owner), f"{owner}:other": f"{owner}:value"},
    lambda owner, i: Plain(owner),
    lambda owner, i: Slotted(owner),
    lambda owner, i: Reducing(f"{owner}:{i}"),
)


def fresh(rng: random.Random, owner: int) -> Any:
    """Return a list or dict of an owner's, of items of one kind."""
    kind = rng.choice(KINDS)
    n = rng.choice(LENGTHS)
    items = [kind(owner, i) for i in range(n)]
    return {f"{owner}:{i}": x for i, x in enumerate(items)} if owner % 3 == 2 else items


def change(rng: random.Random, held: list[Any]) -> None:
    """Change something of an owner's."""
    owner = rng.randrange(OWNERS)
    obj = held[owner]
    item = rng.choice(KINDS)(owner, rng.randrange(1000))
    x = rng.random()
    if x < 0.02:
        held[owner] = fresh(rng, owner)
    elif type(obj) is dict:
        if x < 0.6 and obj:
            obj[next(iter(obj))] = item
        elif x < 0.8:
            obj[f"{owner}:{rng.randrange(2000)}"] = item
        else:
            obj.pop(f"{owner}:{rng.randrange(2000)}", None)
    elif x < 0.5 and obj:
        obj[rng.randrange(len(obj))] = item
    elif x < 0.6 and obj:
        obj.pop()
    elif x < 0.9:
        obj.append(item)
    else:
        obj[:] = [rng.choice(KINDS)(owner, i) for i in range(rng.choice((0, 1, 2, 50, 999, 1001)))]


def check(x: Any, owner: int) -> None:
    """Fail if there is something in `x` that is not its owner's."""
    if isinstance(x, (Plain, Slotted, Reducing)):
        names = getattr(type(x), "__slots__", None) or vars(x)
        x = [getattr(x, name) for name in names]
    if x is None:
        return
    if isinstance(x, (str, bytes)):
        text = x if isinstance(x, str) else x.decode()
        assert text.partition(":")[0] == str(owner), (x, owner)
    elif isinstance(x, int):
        assert x // 1_000_000 == owner, (x, owner)
    elif isinstance(x, float):
        assert x == owner + 0.25, (x, owner)
    elif isinstance(x, dict):
        check([*x], owner)
        check([*x.values()], owner)
    else:
        assert isinstance(x, (list, tuple)), (x, owner)
        for item in x:
            check(item, owner)


WAYS: dict[str, Callable[[Any, int], bytes]] = {
    "dumps": fastpickle.dumps,
    "a pickler": lambda obj, protocol: dumped(fastpickle.Pickler, obj, protocol),
    "without C": lambda obj, protocol: dumped(Pure, obj, protocol),
    "stock": lambda obj, protocol: dumped(_Stock, obj, protocol),
    "installed": lambda obj, protocol: dumped(_Stock, obj, protocol),
}


@pytest.fixture
def switching_often() -> Iterator[None]:
    """Let threads take turns after a few bytecodes, where they have to."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.skipif(
    IS_FREE_THREADED and sys.version_info < (3, 14) and "THREADS_SECONDS" not in os.environ,
    reason="3.13 itself crashes now and then, by stock's pickler, too: an iterator reads a list that becomes shorter",
)
@pytest.mark.usefixtures("switching_often")
@pytest.mark.parametrize("way", WAYS)
def test_changed_by_other_threads(way: str) -> None:
    """What is written can be loaded, and each owner has its own; what is raised is what stock raises."""
    seed = random.randrange(1 << 32)
    held = [fresh(random.Random(seed + owner), owner) for owner in range(OWNERS)]
    wrong: list[Any] = []
    n = 0
    end = time.monotonic() + SECONDS

    def run_changes(number: int) -> None:
        rng = random.Random(seed + 100 + number)
        while time.monotonic() < end and not wrong:  # not longer, so that there is a dump in which nothing changes
            try:
                change(rng, held)
            except (IndexError, RuntimeError, StopIteration):
                pass  # another one has taken away what was to be changed
            time.sleep(0)  # else there is none for the dumps, where there is a GIL

    def run_dumps(number: int) -> None:
        nonlocal n
        rng = random.Random(seed + 200 + number)
        while (time.monotonic() < end or not n) and not wrong:
            owners = rng.choices(range(OWNERS), k=rng.choice((1, 1, 2, 5)))
            protocol = rng.choice((2, 3, 4, 5))
            try:
                pickled = WAYS[way]([held[owner] for owner in owners], protocol)
            except Exception as exc:
                if str(exc) not in AS_BY_STOCK:
                    wrong.append((seed, protocol, exc))
                continue
            n += 1
            try:
                loaded = pickle.loads(pickled)
                for owner, x in zip(owners, loaded, strict=True):
                    check(x, owner)
            except Exception as exc:
                wrong.append((seed, protocol, exc, pickled))

    threads = [threading.Thread(target=run_changes, args=(i,)) for i in range(CHANGERS)]
    threads += [threading.Thread(target=run_dumps, args=(i,)) for i in range(DUMPERS)]
    if way == "installed":
        fastpickle.install()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        fastpickle.uninstall()
    assert not wrong
    assert n


@pytest.mark.parametrize(
    ("version", "gil", "expected"),
    [
        ("3.14.8 (main, Oct  1 2026) [GCC]", 1, False),
        ("3.14.8 (main, Oct  1 2026) [GCC]", None, False),
        ("3.13.15 experimental free-threading build (main, Oct  1 2026) [GCC]", None, True),
        ("3.14.8 free-threading build (main, Oct  1 2026) [GCC]", None, True),
        ("3.14.8 free-threading build (main, Oct  1 2026) [GCC]", 0, True),
        ("3.14.8 free-threading build (main, Oct  1 2026) [GCC]", 1, False),
    ],
)
def test_who_may_have_no_gil(version: str, gil: int | None, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A free-threaded build, unless it was started with the GIL switched on."""
    with monkeypatch.context() as patch:  # nobody else is to see these
        patch.setattr(sys, "version", version)
        patch.setattr(sys, "flags", types.SimpleNamespace(gil=gil))
        found = _stdlib._may_have_no_gil()
    assert found is expected


@needs_free_threads
@pytest.mark.parametrize(
    ("environment", "has_c"),
    [
        ({"FASTPICKLE_PURE": ""}, False),
        ({"FASTPICKLE_PURE": "1"}, False),
        ({"FASTPICKLE_PURE": "0"}, True),
        ({"FASTPICKLE_PURE": "", "PYTHON_GIL": "1"}, True),
        ({"FASTPICKLE_PURE": "1", "PYTHON_GIL": "1"}, False),
    ],
    ids=str,
)
def test_c_is_asked_only_by_who_says_so(environment: dict[str, str], has_c: bool) -> None:
    """Without the GIL the C pickler is not there, unless it is switched on."""
    code = "import os; os.environ['PYTHON_GIL'] = '1'\n"  # which is for children
    code += "import fastpickle._stdlib; print(fastpickle._stdlib.CPickler is not None)"
    assert in_child(code, **{"PYTHON_GIL": "0", **environment}) == f"{has_c}\n"


@needs_free_threads
def test_memos_are_fetched_while_others_are_noted() -> None:
    """uninstall() fetches the memos that are with C, while other threads leave more of them there."""
    in_child(
        """
        import io, pickle, threading
        import fastpickle
        data = [[str(i)] for i in range(300)]
        failed = []
        is_over = threading.Event()
        def dump():
            while not is_over.is_set():
                pickle._Pickler(io.BytesIO(), 4).dump(data)
        def flip():
            try:
                for _ in range(300):
                    fastpickle.install()
                    fastpickle.uninstall()
            except BaseException as exc:
                failed.append(exc)
            is_over.set()
        threads = [threading.Thread(target=f) for f in (dump, dump, dump, flip)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed, failed
        """,
        FASTPICKLE_PURE="0",
        PYTHON_GIL="0",
    )
