"""Admission: the column behind whatever a user passes, typed by its declared type and never by its values."""

import math
import sys
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from sfumato.data.column import Column, Kind
from sfumato.errors import SchemaMismatch
from sfumato.grid import Floats

# What a column is called that was given none.
UNNAMED = "values"


def admit(values: Any, name: str | None = None) -> Column:
    """The column behind an array, a list or a pandas, Polars or PyArrow series.

    A Python list of numbers is a column of reals that may hold nulls, whatever numbers they are: what one
    record holds must not change how the others are treated. An array has a type of its own.

    Raises:
        SchemaMismatch: the type is not one-dimensional numbers, booleans or text.

    >>> admit([1, 2, 3]).kind, admit(np.array([1, 2, 3])).kind
    ('real', 'integer')
    """
    if isinstance(values, Column):
        return values
    if isinstance(values, list | tuple | range):
        return _admit_list(values, name or UNNAMED)
    if isinstance(values, np.ndarray):
        return _admit_array(values, name or UNNAMED)
    return _admit_series(values, name)


_ARRAY_KINDS: dict[str, Kind] = {"i": "integer", "u": "integer", "f": "real", "b": "boolean"}


def _admit_list(values: Sequence[Any], name: str) -> Column:
    kinds = {_item_kind(value) for value in values} - {"null"}
    if not kinds:
        blank = np.full(len(values), np.nan)
        return Column(name, "unknown", True, len(blank), lambda start, stop: blank[start:stop], Counter)
    if kinds == {"number"}:
        numbers = [math.nan if value is None else _nearest(value) for value in values]
        return _admit_array(np.array(numbers, dtype=np.float64), name)
    if kinds == {"boolean"}:
        filled = np.array([bool(value) for value in values], dtype=bool)
        return _admit_array(np.ma.MaskedArray(filled, mask=[value is None for value in values]), name)
    if kinds == {"text"}:
        return _admit_array(np.array([*values, None], dtype=object)[:-1], name)
    raise SchemaMismatch(f"column {name!r} must be a list of only numbers, only booleans or only text")


def _item_kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, Real | Decimal):
        return "number"
    return "text" if isinstance(value, str) else "other"


def _nearest(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond float64 is clamped like an infinity
        return math.inf if value > 0 else -math.inf
    except Exception:  # whatever a number in the data raises must not get out: it counts as missing
        return math.nan


def _admit_array(array: np.ndarray[Any, Any], name: str) -> Column:
    if array.ndim != 1:
        raise SchemaMismatch(f"column {name!r} must be one-dimensional, but it has {array.ndim} dimensions")
    masked = isinstance(array, np.ma.MaskedArray)
    if array.dtype.kind in _ARRAY_KINDS:
        kind = _ARRAY_KINDS[array.dtype.kind]

        def floats(start: int, stop: int) -> Floats:
            # A wider float may overflow to infinity, which is clamped; a warning would tell of it.
            with np.errstate(all="ignore"):
                part = array[start:stop].astype(np.float64, copy=False)
            return part.filled(np.nan) if isinstance(part, np.ma.MaskedArray) else part

        def tally() -> Counter[Any]:
            kept = array.compressed() if isinstance(array, np.ma.MaskedArray) else array
            distinct, counts = np.unique(kept, return_counts=True)
            return Counter({_key(v): int(c) for v, c in zip(distinct.tolist(), counts, strict=True)})

        return Column(name, kind, masked or kind == "real", len(array), floats, tally)
    if array.dtype.kind in "UTO":
        tallied = _tally_text if array.dtype.kind == "U" else _tally_objects
        return Column(name, "text", True, len(array), None, lambda: tallied(array))
    raise SchemaMismatch(f"column {name!r} stores {array.dtype}, which is not a number, boolean or text")


def _tally_text(array: np.ndarray[Any, Any]) -> Counter[Any]:
    kept = array.compressed() if isinstance(array, np.ma.MaskedArray) else array
    distinct, counts = np.unique(kept.astype(array.dtype.newbyteorder("=")), return_counts=True)
    # What is no text in Unicode counts as another value: reading it would raise.
    points = distinct.view(np.uint32).reshape(len(distinct), distinct.dtype.itemsize // 4)
    sound = (points <= sys.maxunicode).all(axis=1)
    found: Counter[Any] = Counter(
        {(str, v): int(c) for v, c in zip(distinct[sound].tolist(), counts[sound], strict=True)}
    )
    found[object, None] += int(counts[~sound].sum())
    return found


def _tally_objects(array: np.ndarray[Any, Any]) -> Counter[Any]:
    # Anything that is not text counts as another value, so that no object in the data can raise.
    values = array.tolist() if isinstance(array, np.ma.MaskedArray) else array
    return Counter(
        (str, str.__str__(v)) if isinstance(v, str) else (object, None) for v in values if not _is_null(v)
    )


def _tally_arrow(array: Any) -> Counter[Any]:
    # Arrow does not check that text is UTF-8: bytes are counted, and what does not decode is another value.
    found: Counter[Any] = Counter()
    plain = array.cast("large_string", safe=False) if "dictionary" in str(array.type) else array
    for item in plain.cast("large_binary").drop_null().value_counts().to_pylist():
        try:
            found[str, item["values"].decode()] += item["counts"]
        except UnicodeDecodeError:
            found[object, None] += item["counts"]
    return found


def _is_null(value: object) -> bool:
    # pandas' NA and NaT are known by name, so that pandas need not be imported.
    nan = isinstance(value, float) and value != value
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


def _key(value: object) -> tuple[type, object]:
    # True == 1 == 1.0 in Python; a category is its type and its value.
    return type(value), value


def _admit_series(series: Any, given: str | None) -> Column:
    import narwhals as nw

    arrow = nw.dependencies.get_pyarrow()
    if arrow is not None and isinstance(series, arrow.Array):
        series = arrow.chunked_array([series])
    try:
        wrapped = nw.from_native(series, series_only=True)
    except TypeError:
        raise SchemaMismatch(
            f"{given or UNNAMED} must be an array, a list or a pandas, Polars or PyArrow series, "
            f"got {type(series).__name__}"
        ) from None
    name = given or (UNNAMED if wrapped.name in (None, "") else str(wrapped.name))
    stored = getattr(series, "dtype", None)
    if isinstance(stored, np.dtype) and stored.kind == "O":
        # Narwhals would look at the values of such a pandas column to tell its type.
        return _admit_array(wrapped.to_numpy(), name)
    dtype = wrapped.dtype
    if dtype == nw.Boolean:
        kind: Kind = "boolean"
    elif dtype.is_integer():
        kind = "integer"
    elif dtype.is_numeric():
        kind = "real"
    elif dtype in (nw.String, nw.Categorical, nw.Enum):
        kind = "text"
    else:
        raise SchemaMismatch(f"column {name!r} stores {dtype}, which is not a number, boolean or text")

    by_arrow = arrow is not None and (
        isinstance(series, arrow.ChunkedArray) or hasattr(stored, "pyarrow_dtype")
    )

    def floats(start: int, stop: int) -> Floats:
        if by_arrow:
            # Arrow's own cast refuses integers that float64 must round, which would tell of them.
            part = wrapped[start:stop].to_arrow().cast("float64", safe=False)
            return np.asarray(part.to_numpy(zero_copy_only=False))
        filled = wrapped[start:stop].cast(nw.Float64).fill_null(float("nan"))
        return np.asarray(filled.to_numpy(), dtype=np.float64)

    def tally() -> Counter[Any]:
        if kind == "text" and (by_arrow or getattr(stored, "storage", "") == "pyarrow"):
            return _tally_arrow(wrapped.to_arrow())
        present = wrapped.drop_nulls()
        # A pandas category of numbers changes if it is cast before its nulls are dropped.
        plain = present.cast(nw.String) if kind == "text" else present
        table = plain.alias("value").value_counts(name="rows")
        pairs = zip(table["value"].to_list(), table["rows"].to_list(), strict=True)
        return Counter({_key(v): int(c) for v, c in pairs})

    # A NumPy-backed pandas column of integers or booleans has no way to store a null.
    nullable = not (isinstance(stored, np.dtype) and stored.kind in "iub")
    return Column(name, kind, nullable, len(wrapped), floats if kind != "text" else None, tally)
