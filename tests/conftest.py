"""What all tests share: profiles for Hypothesis, and the promise that no test leaves the stock pickler changed.

A run that names no tests takes a quarter of each test's cases (``oracle.parts``), the same one each time on one Python
and another on the next, in three to five minutes, as CI does on most Pythons; ``pytest --all`` takes them all, as CI
does on 3.13, and so does a run that names a file or gives -k, --lf or --ff.  ``--part`` takes a quarter of your choice,
also of what is named.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies
from oracle import parts
from oracle.allowed import PYPY

import fastpickle
from fastpickle import hooks, pickler
from fastpickle.at_once import races
from fastpickle.objects.last import last

_COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.differing_executors, HealthCheck.data_too_large],
}
# On PyPy each test waits for the JIT.
settings.register_profile("fast", max_examples=20 if PYPY else 60, **_COMMON)
settings.register_profile("thorough", max_examples=5_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    # The tests were started in the background; Ctrl-C is to be in the processes that they start as it is elsewhere.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --all and --part."""
    parser.addoption(
        "--all", action="store_true", help=f"run every case of each test, for one in {parts.PARTS} by default"
    )
    parser.addoption(
        "--part",
        type=int,
        choices=range(parts.PARTS),
        help="run this part of the cases, of those in named files, too (default: by the Python)",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the soak tests unless marks are asked for, and cases unless they or all are asked for."""
    config.stash[parts.chosen] = None
    if config.getoption("-m"):
        return
    kept = [item for item in items if not item.get_closest_marker("soak")]
    again = config.getoption("lf", default=False) or config.getoption("failedfirst", default=False)
    named = config.getoption("-k") or again or config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    part = config.getoption("--part")
    if part is None and not named and not config.getoption("--all"):
        part = sys.version_info[1] % parts.PARTS
    config.stash[parts.chosen] = part
    taken = set(kept) if part is None else parts.some_cases(kept, part)
    if left := [item for item in items if item not in taken]:
        config.hook.pytest_deselected(items=left)  # so that the summary counts them
        items[:] = [item for item in items if item in taken]


@pytest.fixture
def a_part_of(request: pytest.FixtureRequest) -> parts.APartOf:
    """Take of what a long test goes through as much as the run takes of the cases."""
    part = request.config.stash[parts.chosen]
    return lambda things, /: parts.some_things(things, part, request.node.nodeid)


@pytest.fixture(scope="session", autouse=True)
def hypothesis_has_its_generator() -> None:
    """Have Hypothesis make its random generator now: it warns if it sees nobody hold that, and sees nothing frozen."""

    @given(strategies.none())
    def once(nothing: None) -> None:
        pass

    once()


@pytest.fixture(scope="module", autouse=True)
def older_objects_are_frozen() -> None:
    """Let no collection go through what pytest keeps of thousands of tests; each timed sample begins with one."""
    gc.collect()
    if not PYPY:
        gc.freeze()


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> None:
    """Begin each test without a memory of another's last dump: like what C gave up there, C would not be asked."""
    last.forget()


@pytest.fixture
def taken_for_little(nothing_is_remembered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each dump that may go like the last one, if that was little, go so, whatever there is in it."""
    if PYPY:
        pytest.skip("its dump is stock's")

    class Everything(set[int]):
        def __contains__(self, item: object) -> bool:
            return True

        def isdisjoint(self, other: Any) -> bool:
            return False

    class OfAll(dict[Any, Any]):
        def get(self, save: Any, default: Any = None) -> Any:
            knows = save is hooks.own_save or (save in hooks.choosy_saves and save not in hooks.hash_rules)
            return Everything() if knows else default

    class Endless(type(last)):  # type: ignore[misc]  # its class is private
        __slots__ = ()
        few_left = property(lambda self: 1, lambda self, left: None)

    monkeypatch.setattr(last, "few", OfAll())
    monkeypatch.setattr(last, "few_refused", OfAll())
    monkeypatch.setattr(last, "__class__", Endless)


@pytest.fixture
def no_races(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no dump be saved in stock's way to see how long that takes: what is seen of our way is all there is."""
    monkeypatch.setattr(pickler, "race_of", lambda pickler, obj, t: None)


@pytest.fixture
def saved_as_stock(nothing_is_remembered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stock's way be the sooner one for each dump that may go in it, whatever there is in it."""
    if PYPY:
        pytest.skip("its dump is stock's")

    def begin(race: races.Race, before: int) -> None:
        race.is_as_stock = True
        last.longest = last.most = sys.maxsize
        last.race = race

    monkeypatch.setattr(races.Race, "begin", begin)


def _state_of_stock() -> tuple[Any, ...]:
    stock = pickle._Pickler  # type: ignore[attr-defined]
    return dict(vars(stock)), dict(stock.dispatch), fastpickle.is_installed()


@pytest.fixture(autouse=True)
def stock_is_left_alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """Put dill's edits of the stock dispatch table in force or out, as the test wants; then look for what it left."""
    dill = sys.modules.get("dill")
    if dill is not None:
        dill.extend(getattr(request.cls, "dill_edits", False))
    before = _state_of_stock()
    yield
    if dill is sys.modules.get("dill"):
        after = _state_of_stock()
        for old, new in zip(before[:2], after[:2], strict=False):
            changed = [name for name in {**old, **new} if old.get(name, old) is not new.get(name, new)]
            assert not changed, f"left changed on pickle._Pickler: {changed}"
        assert before[2] == after[2], "left installed or uninstalled"
