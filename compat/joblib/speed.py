"""joblib's entry points, for the table of speed-ups."""

from __future__ import annotations

import io
from collections.abc import Callable

import joblib

from compat._realdata import RealData


def entries(data: RealData) -> dict[str, Callable[[], object]]:
    """Give the library's entry points.

    Args:
        data: what to run them on.

    Returns:
        The name as users write it -> a call without arguments that runs it; a digest, or the bytes.
    """

    def dump() -> bytes:
        file = io.BytesIO()
        joblib.dump(data.tokens, file)
        return file.getvalue()

    return {"joblib.hash": lambda: joblib.hash(data.records), "joblib.dump": dump}
