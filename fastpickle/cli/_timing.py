"""Time several ways of doing one thing fairly on a noisy machine.

    calibrate each contender once:   how many calls make a sample of 10 ms?
    round 1:   A A A A | B B B | C C C C C C
    round 2:   C C C C C C | B B B | A A A A       (the order turns round every time)
    ...
    per round: seconds of one call of A, B, C -->  ratio A/B of *this* round

All contenders run in one process and take turns, so a machine that slows down for a second slows
all of them, and the ratio of two samples of one round hardly moves (but see `measure_apart`). CPU
time is what counts: what other programs on the machine take away, or what a call waits for, does
not. Medians of the ratios and of the times are reported. The cyclic garbage collector runs before
every sample and is off during it, as in ``timeit``.

Not for: figures to publish. A process of its own for each contender is what
``perf-diary/harness.py`` is for.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

__all__ = [
    "CAN_FORK",
    "Contender",
    "Plan",
    "geometric_mean",
    "in_fork",
    "loops_for",
    "measure",
    "measure_apart",
    "ratios",
    "sample",
]

T = TypeVar("T")
Clock = Callable[[], float]

CPU_CLOCK: Clock = time.perf_counter if sys.platform == "win32" else time.thread_time
"""The clock of the samples; on Windows the time of day, as CPU time comes in ticks of 16 ms there."""


WARM_SECONDS = 1.0
"""Seconds after which PyPy has compiled what a dump needs, most often."""

CAN_FORK = hasattr(os, "fork")
"""Whether a process can be given a copy of all objects of this one."""


@dataclasses.dataclass(frozen=True)
class Contender(Generic[T]):
    """One way of doing the thing, and the state of the process in which it is timed."""

    name: str
    """The key of this contender's samples."""
    call: Callable[[], T]
    """What is timed."""
    around: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
    """Makes the context entered before a sample and left after it, outside the timed part."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long to measure one workload."""

    sample_seconds: float
    """What a sample should take at least, in seconds; a slower call is called once a sample."""
    budget_seconds: float
    """After this many seconds no new round begins, unless fewer than ``min_rounds`` are done."""
    min_rounds: int
    """Rounds that are made whatever they take."""
    max_rounds: int
    """Rounds after which the measurement ends early."""


def sample(contender: Contender[T], loops: int, clock: Clock = CPU_CLOCK) -> float:
    """Time one sample.

    Args:
        contender: What to call.
        loops: How many calls make the sample.
        clock: What tells the time, in seconds.

    Returns:
        Seconds that one call took on average.
    """
    call = contender.call
    was_enabled = gc.isenabled()
    with contender.around():
        gc.collect()
        gc.disable()
        try:
            start = clock()
            for _ in range(loops):
                call()
            stop = clock()
        finally:
            if was_enabled:
                gc.enable()
    return (stop - start) / loops


def loops_for(contender: Contender[T], sample_seconds: float) -> int:
    """Find how many calls make a sample of the wanted length.

    Args:
        contender: What to call.
        sample_seconds: The wanted length, in seconds.

    Returns:
        The number of calls, 1 if a single one takes longer than that.
    """
    loops = 1
    while True:
        # By the wall clock, since a call that waits must end this too; three times, since the machine may be busy.
        seconds = min(sample(contender, loops, time.perf_counter) for _ in range(3))
        if seconds * loops >= sample_seconds / 2:
            return max(1, math.ceil(sample_seconds / seconds))
        loops *= 4


def measure(
    contenders: Sequence[Contender[T]],
    plan: Plan,
    on_round: Callable[[float], object] = lambda done: None,
) -> dict[str, list[float]]:
    """Time all contenders in alternating rounds.

    Args:
        contenders: What to compare; their names must differ.
        plan: How long to measure.
        on_round: Called between rounds, untimed, with the share of the work that is done (0 to 1).

    Returns:
        Name -> CPU seconds per call, one figure a round; figures at the same index belong together.
    """
    began = time.perf_counter()
    loops = {way.name: loops_for(way, plan.sample_seconds) for way in contenders}
    seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    order = list(contenders)
    for done in range(plan.max_rounds):
        elapsed = time.perf_counter() - began
        if done >= plan.min_rounds and elapsed > plan.budget_seconds:
            break
        on_round(max(done / plan.max_rounds, min(1.0, elapsed / plan.budget_seconds)))
        for contender in order:
            seconds[contender.name].append(sample(contender, loops[contender.name]))
        order.reverse()
    return seconds


def measure_apart(
    contenders: Sequence[Contender[T]],
    plan: Plan,
    on_round: Callable[[float], object] = lambda done: None,
) -> dict[str, list[float]]:
    """Time each contender in a process of its own, where a JIT would compile the later ones for the first.

    Args:
        contenders: As for `measure`.
        plan: How long to measure; each is called for its budget, or a second if that is less, before it is timed.
        on_round: Called between contenders.

    Returns:
        As `measure` does, but that figures at the same index were not taken at the same time.

    Raises:
        RuntimeError: If a process ends without a result.
    """
    seconds: dict[str, list[float]] = {}
    for i, way in enumerate(contenders):
        on_round(i / len(contenders))
        seconds[way.name] = in_fork(partial(_warm_samples, way, plan))
    return seconds


def _warm_samples(way: Contender[T], plan: Plan) -> list[float]:
    inside = Contender(way.name, way.call)
    with way.around():  # once, since to patch a class makes the JIT begin anew
        end = time.perf_counter() + max(plan.budget_seconds, WARM_SECONDS)
        while time.perf_counter() < end:
            way.call()
        loops = loops_for(inside, plan.sample_seconds)
        return [sample(inside, loops) for _ in range(plan.max_rounds)]


def in_fork(function: Callable[[], T]) -> T:
    """Call a function in a copy of this process.

    Args:
        function: What to call there; it returns what JSON can tell.

    Returns:
        What it returned.

    Raises:
        RuntimeError: If it raised something, or the process was ended.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.close(reader)
            with open(writer, "w", encoding="utf-8") as file:
                json.dump(function(), file)
            status = 0
        finally:
            os._exit(status)  # nothing else of this process is to end twice
    os.close(writer)
    try:
        with open(reader, encoding="utf-8") as file:
            text = file.read()
    finally:
        _, code = os.waitpid(pid, 0)
    if code:
        raise RuntimeError(f"the process in which something was measured ended with {code}")
    result: T = json.loads(text)
    return result


def ratios(slow: Sequence[float], fast: Sequence[float]) -> list[float]:
    """Say for each round how many times faster the second contender was than the first.

    Args:
        slow: Seconds per call of the one, one figure a round.
        fast: Seconds per call of the other, in the same rounds.

    Returns:
        One ratio a round, in rising order, so that quartiles can be read off.
    """
    return sorted(a / b for a, b in zip(slow, fast, strict=True))


def geometric_mean(values: Iterable[float]) -> float | None:
    """Average ratios, so that twice as fast and half as fast cancel out.

    Args:
        values: Ratios, each above 0.

    Returns:
        Their geometric mean, or None if there is none.
    """
    known = list(values)
    return statistics.geometric_mean(known) if known else None
