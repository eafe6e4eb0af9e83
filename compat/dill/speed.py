"""dill's entry points, for the table of speed-ups."""

from __future__ import annotations

from collections.abc import Callable

import dill

from compat._realdata import RealData


def entries(data: RealData) -> dict[str, Callable[[], object]]:
    """Give the entry points.

    Args:
        data: what to pickle.

    Returns:
        Name as users write it -> a call without arguments.
    """
    tokens = data.tokens

    def closure() -> list[object]:
        return tokens

    return {
        "dill.dumps (records)": lambda: dill.dumps(data.records),
        "dill.dumps (a closure over tokens)": lambda: dill.dumps(closure),
    }
