"""A table of a case in its engine: frames in memory, lazy tables, and CSV and Parquet files."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
from tests.engines import SPARK
from tests.fuzz.cases import Case, Column, Side
from tests.fuzz.values import array, moment_of

from sfumato.data.expressions import Expression
from sfumato.data.field import Field
from sfumato.data.tables import open_table

_NUMPY = {"int8": "i1", "int64": "i8", "uint64": "u8", "float32": "f4", "float64": "f8", "boolean": "?"}
_PANDAS = {"int8": "Int8", "int64": "Int64", "uint64": "UInt64", "boolean": "boolean", "text": object}
_PANDAS |= {"float32": "float32", "float64": "float64", "categorical": "category"}
_UNITS = {"date": "D", "datetime": "us"}


class Void(Exception):
    """The engine itself cannot hold this table: there is nothing to give to the library."""


def native(case: Case, side: Side, folder: Path) -> Any:
    """One of the two tables, as a data set takes it; `written` comes before where there are files."""
    if is_file(case):
        _, _, engine = case.engine.partition(" ")
        fields = {name: Field(**facts) for name, facts in file_fields(case).items()}
        path = folder / file_name(case)
        return open_table(path, fields, columns=needed(case), engine=engine or None)
    try:
        return _FRAMES[case.engine](case, side)
    except Exception as fault:
        raise Void(str(fault)) from fault


def is_file(case: Case) -> bool:
    return case.engine.startswith(("csv", "parquet"))


def needed(case: Case) -> list[str]:
    """The columns that the questions need, in the order of the table."""
    asked = {name for ask in case.asks for name in (ask.column, *ask.by)} | {case.unit, *case.roles.values()}
    for ask in case.asks:
        if ask.where is not None and not isinstance(ask.where, Expression):
            asked |= set(ask.where)
    return [column.name for column in case.columns if column.name in asked]


def file_fields(case: Case) -> dict[str, dict[str, Any]]:
    """What a file must be declared as: a CSV file has no types of its own."""
    kinds = {column.name: column.stored.kind for column in case.columns if column.stored.kind != "unknown"}
    fields = {name: {**case.schema.get(name, {}), "kind": kind} for name, kind in kinds.items()}
    return {column.name: {} for column in case.columns} | fields


def file_name(case: Case) -> str:
    return "people.csv" if case.engine.startswith("csv") else "people.parquet"


def write(case: Case, side: Side, folder: Path) -> None:
    """Write the file of one of the two tables."""
    path = folder / file_name(case)
    try:
        if case.engine.startswith("csv"):
            path.write_bytes(csv_text(case, side).encode())
        else:
            pyarrow.parquet.write_table(arrow_table(case, side), path, store_schema=False)
    except Exception as fault:
        raise Void(str(fault)) from fault


def values_of(case: Case, side: Side, column: Column) -> list[Any]:
    place = case.columns.index(column)
    return [row[place] for row in case.table(side)]


def arrow_table(case: Case, side: Side) -> pa.Table:
    columns = [array(values_of(case, side, column), column.stored) for column in case.columns]
    return pa.Table.from_arrays(columns, names=[column.name for column in case.columns])


def _mapping(case: Case, side: Side) -> dict[str, Any]:
    return {column.name: _numpy(values_of(case, side, column), column) for column in case.columns}


def _numpy(values: list[Any], column: Column) -> Any:
    kind = column.stored.kind
    if kind == "text":
        return np.array([*values, None], dtype=object)[:-1]
    if kind in _UNITS:
        missing = np.iinfo(np.int64).min
        ticks = np.array([missing if value is None else value for value in values], dtype=np.int64)
        return ticks.view(f"datetime64[{_UNITS[kind]}]")
    if kind == "real":
        numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return numbers.astype(_NUMPY[column.type], copy=False)
    filled = np.array([0 if value is None else value for value in values], dtype=_NUMPY[column.type])
    return np.ma.MaskedArray(filled, mask=[value is None for value in values])


def _pandas(case: Case, side: Side) -> pd.DataFrame:
    columns = {}
    for column in case.columns:
        values = values_of(case, side, column)
        if column.stored.kind == "datetime":
            ticks = [-(2**63) if value is None else value for value in values]
            columns[column.name] = pd.Series(np.array(ticks, dtype=np.int64).view("datetime64[us]"))
        elif column.stored.kind == "real":
            columns[column.name] = pd.Series(_numpy(values, column))
        else:
            columns[column.name] = pd.Series(values, dtype=_PANDAS[column.type])
    return pd.DataFrame(columns)


def _polars(case: Case, side: Side) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(arrow_table(case, side)))


def _duckdb(case: Case, side: Side) -> Any:
    import duckdb

    database = duckdb.connect()
    database.register("given", arrow_table(case, side))
    database.execute("CREATE TABLE people AS SELECT * FROM given")
    database.unregister("given")
    return database.table("people")


def _spark(case: Case, side: Side) -> Any:
    return SPARK.session().createDataFrame(arrow_table(case, side))


_FRAMES = {
    "numpy": _mapping,
    "pandas": _pandas,
    "pandas arrow": lambda case, side: arrow_table(case, side).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": _polars,
    "pyarrow": arrow_table,
    "polars lazy": lambda case, side: _polars(case, side).lazy(),
    "duckdb": _duckdb,
    "spark": _spark,
}


def csv_text(case: Case, side: Side) -> str:
    """The table as a CSV file; text is in quotes where it must be, and in some columns always."""
    lines = [[column.name for column in case.columns]]
    for row in case.table(side):
        lines.append([_cell(value, column) for value, column in zip(row, case.columns, strict=True)])
    quoted = [case.seed + place for place in range(len(case.columns))]
    return "".join(
        ",".join(_quoted(cell, always=place % 3 == 0) for cell, place in zip(line, quoted, strict=True))
        + "\n"
        for line in lines
    )


def _cell(value: Any, column: Column) -> str:
    if value is None:
        return ""
    if column.stored.kind in ("date", "datetime"):
        return str(moment_of(value, column.stored).isoformat())
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(cell: str, *, always: bool) -> str:
    if not cell or (not always and not set(cell) & set('",;\t')):
        return cell
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'
