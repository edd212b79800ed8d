"""One column in every kind of source that is admitted, and what plain Python says of its rows."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

NAN = math.nan


def _masked(rows, filler, dtype):
    return np.ma.array(
        [filler if row is None else row for row in rows], mask=[row is None for row in rows], dtype=dtype
    )


def _objects(rows):
    return np.array([*rows, None], dtype=object)[:-1]


def _chunked(rows, kind):
    return pa.chunked_array([pa.array(rows[:2], kind), pa.array(rows[2:], kind)])


def _dictionaries(rows):
    # Each chunk has a dictionary of its own.
    parts = [pa.array(part, pa.string()).dictionary_encode() for part in (rows[:2], rows[2:])]
    return pa.chunked_array(parts)


TEXT = {
    "list": lambda rows: [*rows],
    "numpy object": _objects,
    "numpy text": lambda rows: _masked(rows, "", "U5"),
    "numpy big-endian text": lambda rows: _masked(rows, "", ">U5"),
    "numpy StringDType": lambda rows: np.array(
        [NAN if row is None else row for row in rows], np.dtypes.StringDType(na_object=NAN)
    ),
    "pandas str": lambda rows: pd.Series(rows, dtype="str"),
    "pandas python string": lambda rows: pd.Series(rows, dtype=pd.StringDtype("python")),
    "pandas arrow string": lambda rows: pd.Series(rows, dtype="string[pyarrow]"),
    "pandas ArrowDtype": lambda rows: pd.Series(rows, dtype=pd.ArrowDtype(pa.string())),
    "pandas object": lambda rows: pd.Series(_objects(rows)),
    "pandas categorical": lambda rows: pd.Series(rows, dtype="category"),
    "polars String": lambda rows: pl.Series(rows, dtype=pl.String),
    "polars Categorical": lambda rows: pl.Series(rows, dtype=pl.Categorical),
    "polars Enum": lambda rows: pl.Series(
        rows, dtype=pl.Enum(sorted({"never", *(row for row in rows if row is not None)}))
    ),
    "arrow string": lambda rows: pa.array(rows, pa.string()),
    "arrow large string": lambda rows: pa.array(rows, pa.large_string()),
    "arrow string view": lambda rows: pa.array(rows, pa.string_view()),
    "arrow chunks": lambda rows: _chunked(rows, pa.string()),
    "arrow dictionary": lambda rows: pa.array(rows, pa.string()).dictionary_encode(),
    "arrow dictionaries": _dictionaries,
}
INTEGERS = {
    "numpy": lambda rows: _masked(rows, 0, np.int64),
    "numpy big-endian": lambda rows: _masked(rows, 0, ">i8"),
    "pandas Int64": lambda rows: pd.Series(rows, dtype="Int64"),
    "pandas ArrowDtype": lambda rows: pd.Series(rows, dtype=pd.ArrowDtype(pa.int64())),
    "polars": lambda rows: pl.Series(rows, dtype=pl.Int64),
    "polars Int128": lambda rows: pl.Series(rows, dtype=pl.Int128),
    "arrow": lambda rows: pa.array(rows, pa.int64()),
    "arrow chunks": lambda rows: _chunked(rows, pa.int64()),
}
REALS = {
    "list": lambda rows: [*rows, None][:-1] if any(row is not None for row in rows) else [*rows],
    "numpy": lambda rows: np.array([NAN if row is None else row for row in rows], dtype=float),
    "pandas": lambda rows: pd.Series(rows, dtype=float),
    "pandas Float64": lambda rows: pd.Series(rows, dtype="Float64"),
    "polars": lambda rows: pl.Series(rows, dtype=pl.Float64),
    "arrow": lambda rows: pa.array(rows, pa.float64()),
}
BOOLEANS = {
    "list": lambda rows: [*rows],
    "numpy": lambda rows: _masked(rows, False, bool),
    "pandas": lambda rows: pd.Series(rows, dtype="boolean"),
    "polars": lambda rows: pl.Series(rows, dtype=pl.Boolean),
    "arrow": lambda rows: pa.array(rows, pa.bool_()),
}


def expected_codes(rows, categories):
    """The definition, row by row."""
    found = []
    for row in rows:
        if row is None or row != row:
            found.append(len(categories) + 1)
        else:
            found.append(next((i for i, c in enumerate(categories) if c == row), len(categories)))
    return found
