"""Admission: the column behind whatever a user passes, typed by its declared type and never by its values."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
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
from sfumato.data.moments import Reads, moment_number
from sfumato.data.series import (
    arrow_numbers,
    arrow_stored,
    taken,
    tallied_text,
    text_codes,
    text_labels,
    whole_codes,
    whole_labels,
)
from sfumato.data.stored_types import moment_reader, no_values, number, stored
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
        SchemaMismatch: the type is not one-dimensional numbers, booleans, text, dates or datetimes.

    >>> admit([1, 2, 3]).kind, admit(np.array([1, 2, 3])).kind
    ('real', 'integer')
    """
    if isinstance(values, Column):
        return values
    # The empty text is a name like any other, and must not become that of another column.
    given = UNNAMED if name is None else name
    if isinstance(values, list | tuple | range):
        return _admit_list(values, given)
    if isinstance(values, np.ndarray):
        return _admit_array(values, given)
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
        # One by one: NumPy would ask objects that are text of their own kind whether they are arrays.
        return _admit_array(np.fromiter(values, dtype=object, count=len(values)), name)
    if kinds == {"date"}:
        return _admit_array(np.array(_ticks(values, 1), dtype="datetime64[D]"), name)
    if kinds in ({"naive datetime"}, {"datetime with a time zone"}):
        return _admit_array(np.array(_ticks(values, 10**6), dtype="datetime64[us]"), name)
    moments = kinds & {"date", "naive datetime", "datetime with a time zone"}
    if moments == kinds:
        raise SchemaMismatch(f"column {name!r} must be dates or datetimes of one kind, got {_and(kinds)}")
    raise SchemaMismatch(
        f"column {name!r} must be a list of only numbers, only booleans, only text, "
        "only dates or only datetimes"
    )


def _ticks(values: Sequence[Any], each: int) -> list[int | None]:
    found: list[int | None] = []
    for value in values:
        try:
            found.append(None if is_null(value) else int(moment_number(value) * each))
        except Exception:  # a time zone of one's own may raise whatever it likes: the value counts as missing
            found.append(None)
    return found


def _and(kinds: set[str]) -> str:
    return " and ".join(sorted(kinds))


def _blank(name: str, rows: int) -> Column:
    blank = np.full(rows, np.nan)

    def take(chosen: Any) -> Column:
        return _blank(name, len(blank[chosen]))

    return Column(name, "unknown", True, rows, lambda start, stop: blank[start:stop], Counter, take)


def _item_kind(value: object) -> str:
    # By the type alone: an object can say what it likes of its class, and raise.
    kind = type(value)
    if value is None or kind.__name__ in ("NAType", "NaTType"):
        return "null"
    if issubclass(kind, datetime):
        aware = datetime.tzinfo.__get__(value) is not None
        return "datetime with a time zone" if aware else "naive datetime"
    if issubclass(kind, date):
        return "date"
    if issubclass(kind, bool | np.bool_):
        return "boolean"
    if issubclass(kind, Real | Decimal):
        return "number"
    return "text" if issubclass(kind, str) else "other"


def _nearest(value: Any) -> float:
    kind = next((known for known in (float, int, Decimal) if issubclass(type(value), known)), None)
    try:
        try:
            # By the method of the plain type, not by one that a type of the user's puts in its place.
            return float(value) if kind is None else kind.__float__(value)
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
    if array.dtype.kind == "M":
        return _admit_moments(array, name, take)
    raise no_values(name, array.dtype.type.__name__)


def _admit_moments(array: np.ndarray[Any, Any], name: str, take: Callable[[Any], Column]) -> Column:
    unit, several = np.datetime_data(array.dtype)
    reader = moment_reader(unit) if several == 1 else None
    if reader is None:
        raise no_values(name, f"datetime64 of unit {several if several != 1 else ''}{unit}")
    reads, read = reader

    def floats(start: int, stop: int) -> Floats:
        part = array[start:stop]
        held = np.ma.getdata(part)
        missing = np.isnat(held) | np.ma.getmaskarray(part)
        return np.where(missing, np.nan, read(np.where(missing, 0, held.astype(np.int64))))

    return _of_moments(name, reads, len(array), floats, take)


def _of_moments(
    name: str, reads: Reads, rows: int, floats: Callable[[int, int], Floats], take: Callable[[Any], Column]
) -> Column:
    kind: Kind = "integer" if reads == "date" else "real"
    return Column(name, kind, True, rows, floats, Counter, take, reads=reads)


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
            f"{UNNAMED if given is None else given} must be an array, a list or a pandas, Polars or PyArrow "
            f"series, got {type(series).__name__}"
        ) from None
    own_name = UNNAMED if wrapped.name in (None, "") else str(wrapped.name)
    name = own_name if given is None else given
    if wrapped.implementation.is_polars():
        # Many methods of a series look for its name in a table, and read one such as `^x$` as a pattern.
        wrapped = wrapped.alias(UNNAMED)
        series = wrapped.to_native()
    own = getattr(series, "dtype", None)
    if isinstance(own, np.dtype) and own.kind == "O":
        # Narwhals would look at the values of such a pandas column to tell its type.
        return _admit_array(series.to_numpy(), name)
    by_arrow = arrow is not None and (isinstance(series, arrow.ChunkedArray) or hasattr(own, "pyarrow_dtype"))
    found = arrow_stored(series, name) if by_arrow else None
    # Narwhals does not know all types that Arrow tells.
    dtype: Any = wrapped.dtype if found is None else None
    if found is None:
        found = stored(name, dtype, empty=str(own) == "Null")
    if found.kind == "unknown":
        return _blank(name, len(wrapped))
    kind, by_polars = found.kind, wrapped.implementation.is_polars()
    if found.reads == "datetime" and not by_arrow and not by_polars:
        # pandas keeps the instants of a time zone as those of UTC.
        naive = series if dtype.time_zone is None else series.dt.tz_convert(None)
        return _admit_array(naive.to_numpy(), name)

    def block(start: int) -> Floats:
        part = wrapped[start : start + BLOCK]
        if by_arrow:
            return arrow_numbers(part.to_arrow())
        if by_polars and (found.reads != "number" or dtype == nw.Decimal):
            # By the very formulas that tables which no row leaves are read with.
            part = part.alias("value").to_frame().select(number("value", dtype, "polars"))["value"]
        # A cast of a signalling NaN would warn of it.
        with np.errstate(all="ignore"):
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
        counted: Counter[Any] = Counter()
        for value, count in zip(values.to_list(), table["rows"].to_list(), strict=True):
            counted[_key(value)] += int(count)
        return counted

    if found.reads != "number":
        return _of_moments(
            name, found.reads, len(wrapped), floats, lambda rows: _admit_series(taken(wrapped, rows), name)
        )
    # A NumPy-backed pandas column of integers or booleans has no way to store a null.
    nullable = not (isinstance(own, np.dtype) and own.kind in "iub")
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
