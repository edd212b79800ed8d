"""One column as codes: the place of every row's value among its values in order, from any library."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.values import DistinctNumbers
from sfumato.data.codes import is_null
from sfumato.data.stored_types import no_values
from sfumato.errors import InvalidParameter, SchemaMismatch

if TYPE_CHECKING:
    import polars as pl

Codes = NDArray[np.int32]
# Whole numbers in a range of at most so many times the rows are counted instead of sorted.
_DENSE = 4
# The most that a column of decimals can have.
DIGITS = 38


@dataclass(frozen=True, eq=False)
class Coded:
    """A column as the place of each row's value among its values in order; null is None, the last."""

    name: str
    codes: Codes
    values: Sequence[object]
    ordered: bool

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows have each value."""
        return np.bincount(self.codes, minlength=len(self.values)).astype(np.int64, copy=False)


def coded_column(name: str, values: Any) -> Coded:
    """One column coded: an array, a list or a series."""
    import narwhals as nw
    import polars as pl

    if isinstance(values, list | tuple | range):
        return _from_objects(name, values)
    if isinstance(values, np.ndarray):
        return _from_array(name, values)
    if isinstance(values, pl.Series):
        return _from_polars(name, values)
    arrow = nw.dependencies.get_pyarrow()
    if arrow is not None and isinstance(values, arrow.Array | arrow.ChunkedArray):
        return _from_arrow(name, values)
    try:
        series = nw.from_native(values, series_only=True)
    except TypeError:
        raise SchemaMismatch(f"column {name!r} must be an array, got {type(values).__name__}") from None
    own = getattr(values, "dtype", None)
    if isinstance(own, np.dtype):
        return _from_array(name, values.to_numpy())
    if hasattr(values, "sparse"):
        return coded_column(name, values.sparse.to_dense())
    if hasattr(values, "cat"):
        return _from_listed(name, values.cat.codes.to_numpy(), values.cat.categories.tolist())
    if series.dtype == nw.Datetime:
        # pandas keeps the instants of a time zone as those of UTC.
        instants = (
            values if series.dtype.time_zone is None else values.dt.tz_convert("UTC").dt.tz_localize(None)
        )
        found = _from_array(name, instants.to_numpy(dtype="datetime64[us]"))
        return found if series.dtype.time_zone is None else _in_utc(found)
    if arrow is not None and own is not None and series.dtype != nw.Object:
        return _from_arrow(name, series.to_arrow())
    return _from_objects(name, series.to_list())


def _from_array(name: str, array: NDArray[Any]) -> Coded:
    import polars as pl

    if array.ndim != 1:
        raise SchemaMismatch(f"column {name!r} must be one-dimensional, but it has {array.ndim} dimensions")
    kind = array.dtype.kind
    if isinstance(array, np.ma.MaskedArray):
        if kind not in "iufb":
            return _from_objects(name, array.tolist())
        plain = pl.Series(np.ma.getdata(array).astype(array.dtype.newbyteorder("=")))
        mask = pl.Series(~np.ma.getmaskarray(array))
        return _from_polars(name, pl.select(pl.when(mask).then(plain)).to_series())
    if kind in "iufb":
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        return _from_polars(name, pl.Series(native.astype(np.float64) if kind == "f" else native))
    if kind == "M":
        days = np.datetime_data(array.dtype)[0] in ("Y", "M", "W", "D")
        moments = pl.Series(array.astype("datetime64[us]"))
        return _from_polars(name, moments.cast(pl.Date) if days else moments)
    if kind in "UTO":
        return _from_objects(name, array.tolist())
    raise no_values(name, array.dtype.type.__name__)


def _from_arrow(name: str, values: Any) -> Coded:
    import polars as pl

    try:
        series = pl.from_arrow(values)
    except Exception:  # Polars quotes what it cannot read
        raise no_values(name, str(values.type.__class__.__name__)) from None
    if not isinstance(series, pl.Series):
        raise no_values(name, "a nested type")
    return _from_polars(name, series)


def _from_polars(name: str, series: "pl.Series") -> Coded:
    import polars as pl

    kind = series.dtype
    if kind in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    elif kind.is_float():
        series = series.cast(pl.Float64).fill_nan(None)
        infinite = int(series.is_infinite().sum())
        if infinite:
            raise InvalidParameter(f"column {name!r} must be finite, but {infinite} of its rows are infinite")
    elif kind == pl.Datetime:
        zoned = kind.time_zone is not None  # type: ignore[attr-defined]
        series = series.cast(pl.Datetime("us", "UTC" if zoned else None))
    elif kind == pl.Object:
        return _from_objects(name, series.to_list())
    elif not (kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Date, pl.Null)):
        raise no_values(name, type(kind).__name__)
    ordered = series.dtype not in (pl.String, pl.Boolean, pl.Null)
    if series.dtype == pl.Null:
        return Coded(name, np.zeros(len(series), dtype=np.int32), (None,) if len(series) else (), False)
    present = None if not series.null_count() else series.is_not_null().to_numpy()
    if series.dtype.is_integer() and series.dtype not in (pl.Int128, pl.UInt128, pl.UInt64):
        filled = series if present is None else series.fill_null(series.min())
        dense = _dense(filled.to_numpy())
        if dense is not None:
            return _with_null(name, *dense, present, ordered)
    distinct = series.drop_nulls().unique().sort()
    if series.dtype == pl.Float64:
        # One zero: which of the two is met first would depend on the order of the rows.
        values: Sequence[object] = DistinctNumbers(distinct.to_numpy() + 0.0)
    elif series.dtype.is_integer() and series.dtype not in (pl.Int128, pl.UInt128):
        values = DistinctNumbers(distinct.to_numpy())
    else:
        values = tuple(distinct.to_list())
    if series.dtype == pl.String:
        ranks = series.cast(pl.Enum(distinct)).to_physical()
    else:
        ranks = series.rank("dense").cast(pl.Int64) - 1
    codes = ranks.fill_null(len(values)).to_numpy().astype(np.int32)
    found = _with_null(name, codes, values, present, ordered)
    return _in_utc(found) if kind == pl.Datetime and zoned else found


def _with_null(
    name: str, codes: Codes, values: Sequence[object], present: NDArray[np.bool_] | None, ordered: bool
) -> Coded:
    if present is None:
        return Coded(name, codes, values, ordered)
    if not present.any():
        return Coded(name, np.zeros(len(codes), dtype=np.int32), (None,), ordered)
    held = (
        DistinctNumbers(values.array, null=True) if isinstance(values, DistinctNumbers) else (*values, None)
    )
    return Coded(name, np.where(present, codes, len(values)).astype(np.int32), held, ordered)


def _dense(whole: NDArray[Any]) -> tuple[Codes, DistinctNumbers] | None:
    if not len(whole):
        return np.zeros(0, dtype=np.int32), DistinctNumbers(np.zeros(0, dtype=np.int64))
    low, high = int(whole.min()), int(whole.max())
    if high - low > _DENSE * len(whole) + 1000:
        return None
    shifted = (whole.astype(np.int64) - low).astype(np.int32)
    held = np.flatnonzero(np.bincount(shifted, minlength=high - low + 1))
    place = np.zeros(high - low + 1, dtype=np.int32)
    place[held] = np.arange(len(held), dtype=np.int32)
    small = low >= -(2**31) and high < 2**31
    return place[shifted], DistinctNumbers((held + low).astype(np.int32 if small else np.int64))


def _from_listed(name: str, places: NDArray[Any], listed: list[Any]) -> Coded:
    """Rows that point into a list of values, -1 for null; only values that a row has are kept."""
    of_list = _from_objects(name, [*listed, None])
    raw = of_list.codes[np.where(places < 0, len(listed), places)]
    held = np.flatnonzero(np.bincount(raw, minlength=len(of_list.values)))
    place = np.zeros(len(of_list.values), dtype=np.int32)
    place[held] = np.arange(len(held), dtype=np.int32)
    return Coded(name, place[raw], tuple(of_list.values[i] for i in held.tolist()), of_list.ordered)


def _from_objects(name: str, values: Sequence[Any]) -> Coded:
    import polars as pl

    kinds = {_kind(value) for value in values} - {"null"}
    if len(kinds) > 1 and kinds <= {"whole", "real", "decimal"}:
        kinds = {"real"}
    if len(kinds) > 1 or "other" in kinds:
        raise SchemaMismatch(
            f"column {name!r} must hold only numbers, only booleans, only text, only dates or only datetimes"
        )
    kind = next(iter(kinds), "null")
    if kind == "null":
        return _from_polars(name, pl.Series([None] * len(values), dtype=pl.Null))
    if kind == "decimal":
        return _from_polars(name, _decimals(name, [None if _kind(v) == "null" else v for v in values]))
    if kind == "real":
        floats = [math.nan if _kind(v) == "null" else _nearest(v) for v in values]
        return _from_polars(name, pl.Series(floats, dtype=pl.Float64))
    read = _READERS[kind]
    plain: list[Any] = [None if is_null(v) else read(v) for v in values]
    distinct: list[Any] = sorted(set(plain) - {None})
    place: dict[Any, int] = {value: i for i, value in enumerate(distinct)}
    place[None] = len(distinct)
    codes = np.fromiter((place[value] for value in plain), dtype=np.int32, count=len(plain))
    nulls = len(distinct) in codes if len(codes) else False
    return Coded(
        name, codes, (*distinct, None) if nulls else tuple(distinct), kind not in ("text", "boolean")
    )


def _decimals(name: str, values: list[Decimal | None]) -> "pl.Series":
    import polars as pl

    held = [value for value in values if value is not None]
    scale = max(max(-int(value.as_tuple().exponent), 0) for value in held)
    if max(max(value.adjusted() + 1, 0) for value in held) + scale > DIGITS:
        raise SchemaMismatch(f"column {name!r} must hold decimals of at most {DIGITS} digits, got more")
    return pl.Series(values, dtype=pl.Decimal(DIGITS, scale))


def _kind(value: object) -> str:
    # The order matters: a boolean is an integer, a datetime is a date, NaN is a float.
    if isinstance(value, str):
        return "text"
    if is_null(value):
        return "null"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, Integral):
        return "whole"
    if isinstance(value, Decimal):
        return "null" if value.is_nan() else "decimal" if value.is_finite() else "real"
    if isinstance(value, Real):
        return "real"
    if isinstance(value, datetime):
        return "naive datetime" if value.tzinfo is None else "datetime"
    return "date" if isinstance(value, date) else "other"


def _nearest(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _utc(value: datetime) -> datetime:
    return datetime.fromtimestamp(0, UTC) + (value - datetime.fromtimestamp(0, UTC))


def _in_utc(coded: Coded) -> Coded:
    aware = tuple(v.replace(tzinfo=UTC) if isinstance(v, datetime) else v for v in coded.values)
    return Coded(coded.name, coded.codes, aware, coded.ordered)


_READERS: dict[str, Any] = {
    "text": str.__str__,
    "boolean": bool,
    "whole": int,
    "date": lambda value: value,
    "naive datetime": lambda value: datetime.combine(value.date(), value.time()),
    "datetime": _utc,
}
