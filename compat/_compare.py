"""Stock outcomes against accelerated ones: pure functions, no processes and no output.

    on stock    accelerated                    is
    --------    -----------------------------  --------------------------------------
    passed      passed                         good
    passed      anything else, or missing      a regression, unless deselected
    failed      anything but passed            failing on both: not ours, not counted
    failed      passed                         not counted
    skipped     anything                       not counted

A seeming regression is run again, alone, on both sides (see ``settle``): a test that fails now and then is none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compat._record import FAILED, PASSED, Outcome

REGRESSION = "regression"
FLAKY = "flaky"


@dataclass(frozen=True)
class Comparison:
    """The outcome of one mode beside stock's.

    Args:
        good: tests that pass on stock and accelerated.
        regressions: tests that pass on stock and do not pass accelerated.
        both: tests that fail on stock and do not pass accelerated either.
        deselected: tests that would be regressions but for a row of the suite's table.
        needless: deselected tests that pass accelerated, so that their rows can go.
    """

    good: tuple[str, ...]
    regressions: tuple[str, ...]
    both: tuple[str, ...]
    deselected: tuple[str, ...]
    needless: tuple[str, ...]

    @property
    def passed_stock(self) -> int:
        """The number of tests that pass on stock."""
        return len(self.good) + len(self.regressions) + len(self.deselected)


def compare(
    stock: Mapping[str, Outcome],
    accelerated: Mapping[str, Outcome],
    deselected: Mapping[str, bool] = MappingProxyType({}),
    processes: Collection[str] = (),
) -> Comparison:
    """Sort the tests of a suite by what they did on stock and accelerated.

    Args:
        stock: test id -> outcome without fastpickle.
        accelerated: test id -> outcome with it.
        deselected: id of a test that may fail accelerated -> whether it fails only now and then.
        processes: ids that stand for a whole process: one that ends badly is a regression, but one that ends well is no
            test that passes.

    Returns:
        The comparison, each list in stock's order.
    """
    good: list[str] = []
    regressions: list[str] = []
    both: list[str] = []
    excused: list[str] = []
    needless: list[str] = []
    for test, outcome in stock.items():
        other = accelerated.get(test)
        passes = other is not None and other.status == PASSED
        if outcome.status == PASSED and passes:
            if test not in processes:
                good.append(test)
            if deselected.get(test) is False:
                needless.append(test)
        elif outcome.status == PASSED:
            (excused if test in deselected else regressions).append(test)
        elif outcome.status == FAILED and not passes:
            both.append(test)
    return Comparison(tuple(good), tuple(regressions), tuple(both), tuple(excused), tuple(needless))


def settle(stock_again: Outcome | None, accelerated_again: Outcome | None) -> tuple[str, str]:
    """Judge a seeming regression by how the test does when it is run again, alone, on both sides.

    Args:
        stock_again: the second outcome on stock; None where there is none.
        accelerated_again: the second outcome accelerated; None where there is none.

    Returns:
        REGRESSION or FLAKY, and the finding in words.  A test that passes on neither side when alone stays a
        regression: nothing was learned that speaks for it.
    """
    if accelerated_again is not None and accelerated_again.status == PASSED:
        return FLAKY, "passes accelerated when run again alone"
    if stock_again is not None and stock_again.status == PASSED:
        return REGRESSION, "fails again alone; passes again on stock"
    return REGRESSION, "alone it passes on neither side, so running it again decides nothing"
