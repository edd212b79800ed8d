"""The columns of a table that decide its anonymity, coded; what a cell shows for a value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sfumato.anonymity.coding import Coded, coded_column
from sfumato.checks import shown
from sfumato.data.memory_table import DISTINCT, columns_of, named
from sfumato.errors import InvalidParameter, NotSupported, SchemaMismatch

__all__ = ["Coded", "Rows", "cell", "coded_column", "rows_of"]


@dataclass(frozen=True, eq=False)
class Rows:
    """The quasi-identifiers and the sensitive columns of a table, coded."""

    quasi: tuple[Coded, ...]
    sensitive: tuple[Coded, ...] = ()

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.quasi[0].codes)

    def column(self, name: str) -> Coded:
        """The sensitive column of that name."""
        for coded in self.sensitive:
            if coded.name == name:
                return coded
        listed = ", ".join(repr(coded.name) for coded in self.sensitive) or "none"
        raise InvalidParameter(f"goals must be about sensitive columns ({listed}), got column={name!r}")


def rows_of(table: Any, quasi: Sequence[str], sensitive: Sequence[str] = ()) -> Rows:
    """The coded columns of a pandas, Polars or PyArrow table, or of a mapping of arrays.

    A lazy frame of Polars is collected. Null and NaN are one value, None. Datetimes are read to the
    microsecond. A list that mixes whole numbers, floats and fractions is read as floats.

    Raises:
        InvalidParameter: a column is not there or named twice, the table is empty, a number is infinite.
        SchemaMismatch: a column holds no numbers, booleans, text or dates, or mixes them; two have one name.
        NotSupported: the table lies in an engine; its rows are published one by one, so it must be in memory.
    """
    first, second = column_names("quasi", quasi), column_names("sensitive", sensitive)
    if not first:
        raise InvalidParameter("quasi must name at least one column, got none")
    twice = sorted({name for name in (*first, *second) if (*first, *second).count(name) > 1})
    if twice:
        raise InvalidParameter(f"quasi and sensitive must name each column once, got {twice[0]!r} twice")
    columns = _columns(table)
    for argument, names in (("quasi", first), ("sensitive", second)):
        for name in names:
            if name not in columns:
                raise InvalidParameter(f"{argument} must name columns of the table, got {name!r}")
    coded = {name: coded_column(name, columns[name]) for name in (*first, *second)}
    if not len(coded[first[0]].codes):
        raise InvalidParameter("table must have at least one row, got none")
    return Rows(tuple(coded[name] for name in first), tuple(coded[name] for name in second))


def column_names(argument: str, names: object) -> tuple[str, ...]:
    """Names of columns as a tuple, or InvalidParameter by the name of the argument."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidParameter(f"{argument} must be a list of column names, got {argument}={shown(names)}")
    for name in names:
        if not isinstance(name, str):
            raise InvalidParameter(f"{argument} must be a list of column names, got {shown(name)} among them")
    return tuple(names)


def _columns(table: Any) -> Mapping[str, Any]:
    import narwhals as nw

    if isinstance(table, Mapping):
        return columns_of(table)
    try:
        frame = nw.from_native(table)
    except nw.exceptions.DuplicateError:
        raise SchemaMismatch(DISTINCT) from None
    except TypeError:
        raise InvalidParameter(
            "table must be a pandas, Polars or PyArrow table or a mapping of arrays, "
            f"got {type(table).__name__}"
        ) from None
    if isinstance(frame, nw.LazyFrame):
        if not frame.implementation.is_polars():
            raise NotSupported(
                f"a table in {frame.implementation.value} stays in its engine, but an anonymised table is "
                "published row by row: read it into memory first"
            )
        frame = frame.collect()
    try:
        return named([(str(column.name), column.to_native()) for column in frame.iter_columns()])
    except nw.exceptions.DuplicateError:
        raise SchemaMismatch(DISTINCT) from None


def cell(value: object) -> str:
    """What a cell shows for one value: whole numbers without a point, dates as ISO text, null as "null".

    >>> cell(24.0), cell(0.5), cell(date(2020, 1, 31)), cell(None)
    ('24', '0.5', '2020-01-31', 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)
