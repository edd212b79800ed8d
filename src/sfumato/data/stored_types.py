"""Stored types: what the values of a column are by its declared type, in tables that no row leaves.

The rules are those of docs/columns.md, the same in every engine; the numbers are the float64 that
`data/admission.py` reads from tables in memory, bit for bit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.data.column import Kind
from sfumato.data.moments import Reads
from sfumato.errors import SchemaMismatch
from sfumato.grid import Floats

if TYPE_CHECKING:
    import narwhals as nw

# Up to so many digits a decimal is a quotient of two numbers that float64 holds: one division rounds it.
SHORT = 15
# Days before 1970-01-01 in the calendar that starts at year 1, day 1.
_EPOCH = date(1970, 1, 1).toordinal()
# The last day of which 64 bits hold microseconds, and one before the first in size.
_FARTHEST = 106_751_991
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_SECONDS = {"m": 60, "h": 3600}
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Stored:
    """What a declared type makes of a column: its kind, what its numbers stand for, whether nulls fit."""

    kind: Kind
    reads: Reads = "number"
    nullable: bool = True


def stored(name: str, dtype: Any, *, empty: bool = False) -> Stored:
    """What a narwhals type makes of a column; `empty` says that the engine's own type is that of nulls only.

    Raises:
        SchemaMismatch: the type holds no numbers, booleans, text or dates.

    >>> import narwhals as nw
    >>> stored("born", nw.Date())
    Stored(kind='integer', reads='date', nullable=True)
    """
    import narwhals as nw

    if empty:
        return Stored("unknown")
    if dtype == nw.Boolean:
        return Stored("boolean")
    if dtype == nw.Date:
        return Stored("integer", "date")
    if dtype == nw.Datetime:
        return Stored("real", "datetime")
    if dtype.is_integer():
        return Stored("integer")
    if dtype.is_numeric():
        return Stored("real")
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return Stored("text")
    raise no_values(name, type(dtype).__name__)


def holds_values(dtype: Any) -> bool:
    """Whether a narwhals type holds numbers, booleans, text or dates."""
    try:
        stored("", dtype)
    except SchemaMismatch:
        return False
    return True


def no_values(name: str, stored_as: str) -> SchemaMismatch:
    """The refusal of a type that holds none of these values."""
    # By its bare name: in full, a type may list categories or tell the length of the longest value.
    return SchemaMismatch(f"column {name!r} stores {stored_as}, which is not a number, boolean, text or date")


def number(name: str, dtype: Any, engine: str = "") -> "nw.Expr":
    """The values as float64, null where they are null or NaN; of dates days, of datetimes seconds.

    `engine` is "polars", "duckdb" or "spark"; others get formulas that need no more than SQL has, which tell
    no datetimes with a time zone. A table of DuckDB must have been through `engines.readable`: whatever their
    declared types, its dates and datetimes are integers and its decimals are float64.
    """
    import narwhals as nw

    column = nw.col(name)
    if dtype == nw.Date:
        return _days(column, engine).cast(nw.Float64)
    if dtype == nw.Datetime:
        return _seconds(name, column, dtype, engine)
    if dtype.is_float():
        wide = column.cast(nw.Float64)
        return nw.when(~wide.is_nan()).then(wide)
    if dtype == nw.Decimal:
        # Spark reads a decimal by its digits, to the nearest float64; the casts of others may be off by one.
        exact = engine in ("spark", "duckdb") or (engine == "polars" and dtype.precision <= SHORT)
        return (column if exact else column.cast(nw.String)).cast(nw.Float64)
    if dtype in (nw.Int128, nw.UInt128) and engine != "polars":
        # DuckDB adds two halves that were rounded each: its text is read to the nearest float64.
        return column.cast(nw.String).cast(nw.Float64)
    if dtype == nw.Boolean or dtype.is_integer():
        return column.cast(nw.Float64)
    raise no_values(name, type(dtype).__name__)


def text(name: str, dtype: Any) -> "nw.Expr":
    """The values as text, categories by their names."""
    import narwhals as nw

    if dtype not in (nw.String, nw.Categorical, nw.Enum):
        raise SchemaMismatch(f"column {name!r} must be text, but it stores {type(dtype).__name__}")
    return nw.col(name) if dtype == nw.String else nw.col(name).cast(nw.String)


def flag(name: str, dtype: Any) -> "nw.Expr":
    """The values as booleans."""
    import narwhals as nw

    if dtype != nw.Boolean:
        raise SchemaMismatch(f"column {name!r} must be boolean, but it stores {type(dtype).__name__}")
    return nw.col(name)


def duckdb_value(column: str, declared: str, dtype: Any) -> str:
    """A quoted column of DuckDB as SQL that no stored value can make fail.

    Dates are days and datetimes microseconds, as integers, infinite ones the farthest that the type stores;
    decimals are float64, and NaN is null. The casts and functions of DuckDB raise for values that tables and
    files can hold, some of them in a way that ends the connection.

    Args:
        column: the name of the column, quoted.
        declared: its type in DuckDB.
        dtype: its type in narwhals.
    """
    import narwhals as nw

    if dtype == nw.String:
        # The type tells the collation neither of the table nor of the connection: all text is given one. JSON
        # is text, but is compared to JSON alone.
        return f'cast({column} as varchar) collate "binary"'
    if dtype == nw.Date:
        return f"({column} - date '1970-01-01')"
    if dtype.is_float():
        # DuckDB takes the statistics of a Parquet file as bounds of all values. They leave NaN out. Where
        # they are finite it drops isnan(x), and one row would decide how the NaN of all others is read. It
        # cannot foresee what follows a random number.
        unforeseen = f"case when random() < 2 then {column} else 'nan'::{declared} end"
        return f"case when not isnan({unforeseen}) then {column} end"
    if dtype == nw.Decimal:
        return duckdb_decimal(column, dtype.precision, dtype.scale)
    if dtype != nw.Datetime:
        return column
    # Out of a list, of which DuckDB knows no bounds: they would decide how an infinite datetime is read.
    column = f"list_value({column})[1]"
    each = max(10**6 // _PER_SECOND[dtype.time_unit], 1)
    # Null for what is infinite, and for seconds and milliseconds whose microseconds 64 bits do not hold.
    ticks = {"us": f"epoch_us({column})", "ns": f"epoch_ns({column})"}.get(
        dtype.time_unit, f"epoch_us(try_cast({column} as timestamp))"
    )
    farthest, start = _LARGEST // each * each, f"'1970-01-01'::{declared}"
    far = f"case when {column} > {start} then {farthest} when {column} <= {start} then -{farthest} end"
    whole = f"coalesce({ticks}, {far})"
    # Rounded down, where the quotient of DuckDB is rounded to zero.
    return whole if dtype.time_unit != "ns" else f"({whole} // 1000 - ({whole} % 1000 < 0)::bigint)"


def duckdb_decimal(column: str, precision: int, scale: int) -> str:
    """A quoted column of decimals of DuckDB as SQL of float64 that no stored value can make fail."""
    if precision <= SHORT:
        return f"cast({column} as double)"
    digits = "9" * (precision - scale) + "." + "9" * scale
    top = f"'{digits}'::decimal({precision}, {scale})"
    # A file can hold more digits than it declares, which have no text.
    held = f"case when {column} > {top} then {top} when {column} < -{top} then -{top} else {column} end"
    return f"cast(cast({held} as varchar) as double)"


def _days(column: "nw.Expr", engine: str) -> "nw.Expr":
    import narwhals as nw

    if engine == "polars":
        return column.cast(nw.Int32)
    if engine == "duckdb":
        return column
    # Other differences are of a type of their own, which overflows where dates do not.
    before = column.dt.year().cast(nw.Int64) - 1
    leaps = (before // 4).cast(nw.Int64) - (before // 100).cast(nw.Int64) + (before // 400).cast(nw.Int64)
    return before * 365 + leaps + column.dt.ordinal_day().cast(nw.Int64) - _EPOCH


def _seconds(name: str, column: "nw.Expr", dtype: Any, engine: str) -> "nw.Expr":
    import narwhals as nw

    if engine == "polars":
        micros = _micros_polars(column, dtype.time_unit).cast(nw.Float64)
        # Polars multiplies by the reciprocal of a constant, which is off by one step of float64 now and then;
        # a column of the constant it divides by.
        return micros / (micros * 0.0 + 1e6)
    if engine == "duckdb":
        return column.cast(nw.Float64) / 1e6
    if dtype.time_zone is None:
        return _micros_parts(column).cast(nw.Float64) / 1e6
    if engine == "spark":
        # An instant as a double is its microseconds divided by 1e6, whatever the session's time zone.
        return column.cast(nw.Float64)
    raise no_values(name, "Datetime with a time zone, which this engine cannot tell as UTC")


def _micros_polars(column: "nw.Expr", unit: str) -> "nw.Expr":
    import narwhals as nw

    ticks = column.cast(nw.Int64)
    per_second = _PER_SECOND[unit]
    if per_second > 10**6:
        return ticks // (per_second // 10**6)
    each = 10**6 // per_second
    return ticks if each == 1 else ticks.clip(-(_LARGEST // each), _LARGEST // each) * each


def _micros_parts(column: "nw.Expr") -> "nw.Expr":
    import narwhals as nw

    days = _days(column, "").clip(-_FARTHEST - 1, _FARTHEST)
    clock = column.dt
    hours = days * 24 + clock.hour().cast(nw.Int64)
    seconds = (hours * 60 + clock.minute().cast(nw.Int64)) * 60 + clock.second().cast(nw.Int64)
    # Spark's remainder has the sign of the whole.
    part = (clock.microsecond().cast(nw.Int64) % 10**6 + 10**6) % 10**6
    # Before 1970 from the next second back: microseconds of the first second that 64 bits reach do not fit.
    before = (seconds < 0).cast(nw.Int64)
    return (seconds + before) * 10**6 + (part - before * 10**6)


def seconds_of(ticks: Any, unit: str) -> Floats:
    """Seconds of 64-bit ticks of a unit of NumPy: microseconds, rounded down, divided by 1e6 in float64.

    >>> seconds_of(np.array([-1, 1_500]), "ns").tolist()
    [-1e-06, 1e-06]
    """
    each = _PER_SECOND.get(unit)
    if each is not None and each > 10**6:
        micros = ticks // (each // 10**6)
    else:
        factor = 10**6 // each if each is not None else _SECONDS[unit] * 10**6
        # What 64 bits cannot hold is farther than any bound, and is clamped as an infinity is.
        micros = np.clip(ticks, -(_LARGEST // factor), _LARGEST // factor) * factor
    found: Floats = micros.astype(np.float64) / 1e6
    return found


def days_of(ticks: Any, unit: str) -> Floats:
    """Days of 64-bit ticks of a calendar unit of NumPy: the first day of a week, month or year.

    >>> days_of(np.array([1, -1]), "Y").tolist()
    [365.0, -365.0]
    """
    near = ticks if unit == "D" else np.clip(ticks, -(10**9), 10**9)
    days = near.astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64)
    found: Floats = days.astype(np.float64)
    return found


def moment_reader(unit: str) -> tuple[Reads, Callable[[Any], Floats]] | None:
    """What NumPy's datetimes of a unit stand for, and their numbers; None for a unit that tells no time."""
    if unit in ("Y", "M", "W", "D"):
        return "date", lambda ticks: days_of(ticks, unit)
    if unit in _PER_SECOND or unit in _SECONDS:
        return "datetime", lambda ticks: seconds_of(ticks, unit)
    return None
