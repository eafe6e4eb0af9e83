"""Minutes of random comparisons: ``pytest -m soak``, with SOAK_SEED and SOAK_SECONDS from the environment."""

from __future__ import annotations

import os
import pickle
import random
import time
from contextlib import nullcontext
from typing import Any

import pytest
from oracle import hooked, strategies
from oracle.compare import ALL, Implementation, Run, check

import fastpickle

_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]
SEED = int(os.environ.get("SOAK_SEED", time.time_ns() % 2**32))
SECONDS = float(os.environ.get("SOAK_SECONDS", 60))

_PAIRS = {
    "Pickler": (_Stock, fastpickle.Pickler, nullcontext),
    "installed": (_Stock, _Stock, fastpickle.patched),
}


def _dill_pairs() -> dict[str, tuple[Any, Any, Any]]:
    dill = pytest.importorskip("dill", reason="dill is not installed")
    backend = pytest.importorskip("fastpickle.backends.dill", reason="dill is not installed")

    return {
        "dill, installed": (dill.Pickler, dill.Pickler, fastpickle.patched),
        "dill": (dill.Pickler, backend.Pickler, nullcontext),
    }


def _without_memo(cls: Any, setting: Any) -> bool:
    return cls is hooked.SUBCLASSES["fast is a property"] or setting is hooked.ON_INSTANCE["fast"]


@pytest.mark.soak
@pytest.mark.timeout(SECONDS * 3 + 60)
@pytest.mark.parametrize("name", ["Pickler", "installed", "dill, installed", "dill"])
def test_soak(name: str) -> None:
    """Random graphs, protocols and hooks, until the time is over."""
    oracle, ours, context = _PAIRS[name] if name in _PAIRS else _dill_pairs()[name]
    print(f"SOAK_SEED={SEED}")
    rng = random.Random(SEED)
    end = time.monotonic() + SECONDS
    count = 0
    subclasses, settings = [*hooked.SUBCLASSES.values()], [*hooked.ON_INSTANCE.values()]
    while time.monotonic() < end:
        spec, protocol = strategies.random_spec(rng), rng.choice(ALL)
        cls = rng.choice(subclasses) if rng.random() < 0.3 else None
        setting = rng.choice(settings) if rng.random() < 0.2 else None

        def steps(run: Run) -> None:
            if setting is not None:
                setting(run, run.pickler)
            obj = strategies.build(spec)
            run.pickler.dump(obj)
            if spec.filler % 2:
                run.pickler.dump([obj, "again"])

        if _without_memo(cls, setting) and (spec.back or strategies.tree_size(spec) > 20_000):
            continue  # each use of a part is written anew: endless, or as good as that
        case = f"SOAK_SEED={SEED}, number {count}: {spec}, hook {cls}, set {setting}"
        check(
            Implementation("stock", oracle),
            Implementation(name, ours, context),
            steps,
            protocols=(protocol,),
            cls=cls,
            case=case,
        )
        count += 1
    print(f"{count} comparisons")
    assert count
