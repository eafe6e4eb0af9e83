"""dill and joblib on numpy's and pandas' objects, for the table of speed-ups."""

from __future__ import annotations

from collections.abc import Callable

import dill
import joblib
import numpy as np
import pandas as pd

from compat._realdata import RealData


def entries(data: RealData) -> dict[str, Callable[[], object]]:
    """Give the entry points.

    Args:
        data: what to run them on.

    Returns:
        The name as users write it -> a call without arguments that runs it; the bytes, or a digest.
    """
    frame = pd.DataFrame(data.tokens, columns=["type", "string", "start", "end"], dtype=object)
    arrays = {
        "types": np.array([token[0] for token in data.tokens]),
        "starts": np.array([token[2] for token in data.tokens]),
        "records": data.records,
    }
    return {
        "dill.dumps (DataFrame of objects)": lambda: dill.dumps(frame),
        "joblib.hash (arrays and records)": lambda: joblib.hash(arrays),
    }
