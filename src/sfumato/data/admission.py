"""Admission: the column behind whatever a user passes, typed by its declared type and never by its values."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from sfumato.data.codes import (
    Codes,
    Labels,
    array_codes,
    array_labels,
    array_texts,
    integer_codes,
    is_null,
    object_codes,
    object_labels,
    text_of,
)
from sfumato.data.column import CHUNK, Column, Kind
from sfumato.data.series import taken, tallied_text, text_codes, text_labels, whole_codes, whole_labels
from sfumato.errors import SchemaMismatch
from sfumato.grid import Floats

# Engines answer in blocks: each call costs as much as some ten thousand values.
BLOCK = 16 * CHUNK
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
        return _blank(name, len(values))
    if kinds == {"number"}:
        numbers = [math.nan if value is None else _nearest(value) for value in values]
        return _admit_array(np.array(numbers, dtype=np.float64), name)
    if kinds == {"boolean"}:
        filled = np.array([bool(value) for value in values], dtype=bool)
        return _admit_array(np.ma.MaskedArray(filled, mask=[value is None for value in values]), name)
    if kinds == {"text"}:
        return _admit_array(np.array([*values, None], dtype=object)[:-1], name)
    raise SchemaMismatch(f"column {name!r} must be a list of only numbers, only booleans or only text")


def _blank(name: str, rows: int) -> Column:
    blank = np.full(rows, np.nan)

    def take(chosen: Any) -> Column:
        return _blank(name, len(blank[chosen]))

    return Column(name, "unknown", True, rows, lambda start, stop: blank[start:stop], Counter, take)


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

    def take(rows: Any) -> Column:
        return _admit_array(array[rows], name)

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

        whole = kind == "integer"
        return Column(
            name,
            kind,
            masked or kind == "real",
            len(array),
            floats,
            tally,
            take,
            (lambda categories: integer_codes(*_integers(array), categories)) if whole else None,
            (lambda: _integers(array)) if whole else None,
        )
    if array.dtype.kind == "U":
        return Column(
            name,
            "text",
            True,
            len(array),
            None,
            lambda: _tally_text(array),
            take,
            lambda categories: array_codes(array, categories),
            lambda: array_labels(array),
        )
    if array.dtype.kind in "TO":
        return _admit_objects(array, name, take)
    raise _no_values(name, array.dtype.type.__name__)


def _no_values(name: str, stored: str) -> SchemaMismatch:
    # By its bare name: in full, a type may list categories or tell the length of the longest value.
    return SchemaMismatch(f"column {name!r} stores {stored}, which is not a number, boolean or text")


def _integers(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.ma.getdata(array), ~np.ma.getmaskarray(array)


def _admit_objects(array: np.ndarray[Any, Any], name: str, take: Callable[[Any], Column]) -> Column:
    def objects() -> Sequence[Any]:
        # A masked array as a list has None where it is masked.
        return array.tolist() if isinstance(array, np.ma.MaskedArray) else array  # type: ignore[return-value]

    return Column(
        name,
        "text",
        True,
        len(array),
        None,
        lambda: _tally_objects(objects()),
        take,
        lambda categories: object_codes(objects(), categories),
        lambda: object_labels(objects()),
    )


def _tally_text(array: np.ndarray[Any, Any]) -> Counter[Any]:
    kept = array.compressed() if isinstance(array, np.ma.MaskedArray) else array
    distinct, counts = np.unique(kept.astype(array.dtype.newbyteorder("=")), return_counts=True)
    # What is no text in Unicode counts as another value: reading it would raise.
    found: Counter[Any] = Counter()
    for text, count in zip(array_texts(distinct), counts.tolist(), strict=True):
        found[(object, None) if text is None else (str, text)] += count
    return found


def _tally_objects(values: Sequence[Any]) -> Counter[Any]:
    # Anything that is not text counts as another value, so that no object in the data can raise.
    return Counter(
        (object, None) if (text := text_of(v)) is None else (str, text) for v in values if not is_null(v)
    )


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
        raise _no_values(name, type(dtype).__name__)

    by_arrow = arrow is not None and (
        isinstance(series, arrow.ChunkedArray) or hasattr(stored, "pyarrow_dtype")
    )

    def block(start: int) -> Floats:
        part = wrapped[start : start + BLOCK]
        if by_arrow:
            # Arrow's own cast refuses integers that float64 must round, which would tell of them.
            return np.asarray(part.to_arrow().cast("float64", safe=False).to_numpy(zero_copy_only=False))
        filled = part.cast(nw.Float64).fill_null(float("nan"))
        return np.asarray(filled.to_numpy(), dtype=np.float64)

    # Where the last block starts, and its values.
    held: list[tuple[int, Floats]] = [(-1, np.empty(0))]

    def floats(start: int, stop: int) -> Floats:
        first = start // BLOCK * BLOCK
        last = held[0]
        if last[0] != first:
            last = held[0] = (first, block(first))
        return last[1][start - first : stop - first]

    def tally() -> Counter[Any]:
        listed = tallied_text(wrapped) if kind == "text" else None
        if listed is not None:
            return listed
        table = wrapped.drop_nulls().alias("value").value_counts(name="rows")
        values = table["value"].cast(nw.String) if kind == "text" else table["value"]
        found: Counter[Any] = Counter()
        for value, count in zip(values.to_list(), table["rows"].to_list(), strict=True):
            found[_key(value)] += int(count)
        return found

    # A NumPy-backed pandas column of integers or booleans has no way to store a null.
    nullable = not (isinstance(stored, np.dtype) and stored.kind in "iub")
    codings: dict[str, Callable[[Any, Sequence[Any]], Codes]] = {"text": text_codes, "integer": whole_codes}
    labellings: dict[str, Callable[[Any], Labels]] = {"text": text_labels, "integer": whole_labels}
    coded, labelled = codings.get(kind), labellings.get(kind)
    return Column(
        name,
        kind,
        nullable,
        len(wrapped),
        floats if kind != "text" else None,
        tally,
        lambda rows: _admit_series(taken(wrapped, rows), name),
        None if coded is None else lambda categories: coded(wrapped, categories),
        None if labelled is None else lambda: labelled(wrapped),
    )
