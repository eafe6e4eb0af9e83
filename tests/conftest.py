"""What all tests share: profiles for Hypothesis, and the promise that no test leaves the stock pickler changed."""

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
from oracle.allowed import PYPY

import fastpickle

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the soak tests out, unless an expression of marks was given."""
    if not config.getoption("-m"):
        soak = [item for item in items if item.get_closest_marker("soak")]
        if soak:
            config.hook.pytest_deselected(items=soak)
            items[:] = [item for item in items if not item.get_closest_marker("soak")]


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
