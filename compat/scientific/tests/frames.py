"""pandas objects: name -> a function that makes the object anew."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd


class Measured(pd.DataFrame):
    """A frame with an attribute of its own, the way pandas wants it to be declared."""

    _metadata = ["source"]  # noqa: RUF012  # pandas adds it to a list

    @property
    def _constructor(self) -> type[Measured]:
        return Measured


class Noted(pd.Series):
    """A series with an attribute of its own."""

    _metadata = ["_name", "note"]  # noqa: RUF012

    @property
    def _constructor(self) -> type[Noted]:
        return Noted


def mixed(rows: int = 20) -> pd.DataFrame:
    """Make a frame with a column of each kind."""
    return pd.DataFrame(
        {
            "int": np.arange(rows),
            "float": np.linspace(0, 1, rows),
            "bool": np.arange(rows) % 2 == 0,
            "text": [f"row {number % 7}" for number in range(rows)],
            "objects": pd.Series([{"n": number, "l": [number, None]} for number in range(rows)], dtype=object),
            "when": pd.date_range("2025-01-31", periods=rows, freq="h", tz="Europe/Paris"),
            "delta": pd.to_timedelta(np.arange(rows), "min"),
            "kind": pd.Categorical([["a", "b", "c"][number % 3] for number in range(rows)]),
            "nullable": pd.array([None if number % 5 == 0 else number for number in range(rows)], dtype="Int64"),
            "period": pd.period_range("2025-01", periods=rows, freq="M"),
            "range": pd.interval_range(0, rows),
        },
        index=pd.Index([f"r{number}" for number in range(rows)], name="row"),
    )


def with_attrs() -> pd.DataFrame:
    """Make a frame with attrs and a flag."""
    frame = pd.DataFrame({"a": [1, 2]})
    frame.attrs = {"unit": "m", "more": {"array": np.arange(3), "list": [1, (2, 3)]}}
    return frame.set_flags(allows_duplicate_labels=False)


def measured() -> pd.DataFrame:
    """Make a frame of a subclass."""
    frame = Measured({"a": [1, 2], "b": ["x", "y"]})
    frame.source = {"file": "x.csv", "rows": [0, 1]}
    return frame


def noted() -> pd.Series:
    """Make a series of a subclass."""
    series = Noted([1.5, 2.5], name="n")
    series.note = "a note"
    return series


def multi() -> pd.MultiIndex:
    """Make an index of two levels."""
    return pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]], names=["letter", None])


def pieces() -> list[Any]:
    """Make frames and series that share data."""
    frame = mixed()
    return [frame, frame["int"], frame.iloc[3:9], frame[["float", "text"]], frame.index, frame.T, frame]


def nested() -> pd.Series:
    """Make a series of objects that are pandas' own, some of them shared."""
    inner = pd.DataFrame({"a": [1, 2]})
    return pd.Series([inner, inner["a"], inner, pd.NA, pd.NaT, pd.Timestamp("2025-01-31"), None], dtype=object)


OBJECTS: dict[str, Callable[[], Any]] = {
    "frame-mixed": mixed,
    "frame-long": lambda: mixed(700),
    "frame-numbers": lambda: pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=list("abc")),
    "frame-empty": pd.DataFrame,
    "frame-no-rows": lambda: mixed().iloc[:0],
    "frame-slice": lambda: mixed().iloc[2:15:3, 1:9],
    "frame-transposed": lambda: pd.DataFrame(np.arange(12.0).reshape(4, 3)).T,
    "frame-duplicate-columns": lambda: pd.DataFrame([[1, "x", 2.5]], columns=["a", "a", "b"]),
    "frame-multi": lambda: pd.DataFrame({"a": range(6)}, index=multi()).unstack(),
    "frame-thousand-columns": lambda: pd.DataFrame({f"c{number}": [number] for number in range(1001)}),
    "frame-attrs": with_attrs,
    "frame-subclass": measured,
    "frame-pieces": pieces,
    "series-int": lambda: pd.Series([1, 2, 3], name="s", index=list("abc")),
    "series-objects": lambda: pd.Series([1, "one", None, (1, 2), [3], {"a": 4}], dtype=object),
    "series-nested": nested,
    "series-text": lambda: pd.Series(["a", None, "été"], dtype="string"),
    "series-text-python": lambda: pd.Series(["a", None, "b"], dtype="string[python]"),
    "series-zone": lambda: pd.Series(pd.date_range("2025-03-29", periods=3, tz="UTC")),
    "series-sparse": lambda: pd.Series([0, 0, 1, 0], dtype="Sparse[int]"),
    "series-subclass": noted,
    "series-named-by-tuple": lambda: pd.Series([1.0], name=("a", 1)),
    "index-range": lambda: pd.RangeIndex(1, 20, 3, name="r"),
    "index-int": lambda: pd.Index([3, 1, 2]),
    "index-text": lambda: pd.Index(["b", "a"], name="t"),
    "index-objects": lambda: pd.Index([1, "a", (2, 3)], dtype=object),
    "index-multi": multi,
    "index-datetime": lambda: pd.date_range("2025-01-31", periods=4, freq="ME", name="d"),
    "index-datetime-zone": lambda: pd.date_range("2025-01-31", periods=4, freq="D", tz="Asia/Tokyo"),
    "index-datetime-objects": lambda: pd.DatetimeIndex(["2025-01-31", "NaT"]),
    "index-timedelta": lambda: pd.timedelta_range("1 day", periods=3),
    "index-period": lambda: pd.period_range("2025Q1", periods=3, freq="Q"),
    "index-interval": lambda: pd.IntervalIndex.from_breaks([0.0, 1.5, 3.0], closed="left"),
    "index-categorical": lambda: pd.CategoricalIndex(["x", "y", "x"], ordered=True),
    "categorical": lambda: pd.Categorical(["a", None, "b"], categories=["b", "a"], ordered=True),
    "categorical-dtype": lambda: pd.CategoricalDtype([1, 2, 3], ordered=True),
    "array-int": lambda: pd.array([1, None, 3], dtype="Int16"),
    "array-float": lambda: pd.array([1.5, None], dtype="Float64"),
    "array-bool": lambda: pd.array([True, None], dtype="boolean"),
    "array-text": lambda: pd.array(["a", None], dtype="string"),
    "array-datetime": lambda: pd.array(pd.to_datetime(["2025-01-31", None])),
    "array-interval": lambda: pd.arrays.IntervalArray.from_tuples([(0, 1), (2, 5)]),
    "array-sparse": lambda: pd.arrays.SparseArray([0.0, 1.0, 0.0]),
    "array-numpy": lambda: pd.array(np.arange(4.0), dtype="float64"),
    "dtypes": lambda: [
        pd.Int64Dtype(),
        pd.StringDtype("python"),
        pd.DatetimeTZDtype("ns", "UTC"),
        pd.PeriodDtype("D"),
        pd.IntervalDtype("int64", "right"),
        pd.SparseDtype("float64", 0.0),
        pd.CategoricalDtype(),
    ],
    "missing": lambda: [pd.NA, pd.NaT, None, np.nan, pd.NA],
    "timestamp": lambda: pd.Timestamp("2025-01-31 12:34:56.789012345"),
    "timestamp-zones": lambda: [
        pd.Timestamp("2025-01-31", tz=zone)
        for zone in ("UTC", "America/New_York", datetime.timezone.utc, zoneinfo.ZoneInfo("Asia/Tokyo"))
    ],
    "timestamp-offset": lambda: pd.Timestamp("2025-01-31", tz=datetime.timezone(datetime.timedelta(hours=5))),
    "timedelta": lambda: pd.Timedelta("1 days 02:03:04.000000005"),
    "period": lambda: pd.Period("2025-01", "M"),
    "interval": lambda: pd.Interval(pd.Timestamp("2025-01-31"), pd.Timestamp("2025-02-28"), closed="both"),
    "offsets": lambda: [
        pd.offsets.Day(2),
        pd.offsets.BusinessDay(),
        pd.offsets.MonthEnd(3),
        pd.offsets.CustomBusinessDay(holidays=["2025-01-31"]),
        pd.DateOffset(months=2, days=1),
        pd.offsets.Week(weekday=3),
    ],
    "stamps": lambda: [pd.Timestamp("2025-01-31") + pd.Timedelta(minutes=number) for number in range(500)],
    "helpers": lambda: [pd.NamedAgg("a", "sum"), pd.Grouper(freq="D"), pd.IndexSlice[1:2, :]],
    "functions": lambda: [pd.concat, pd.DataFrame.sum, pd.Series, pd.read_csv],
}
