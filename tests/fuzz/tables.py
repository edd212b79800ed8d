"""A table of a case in its engine: frames in memory, lazy tables, and CSV and Parquet files."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
from tests.engines import SPARK
from tests.fuzz.cases import Case, Column, Row, Side
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
        fields = {name: Field(**facts) for name, facts in _read_fields(case).items()}
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


def _read_fields(case: Case) -> dict[str, dict[str, Any]]:
    """The same for a reader, which may keep declared categories alone: not where other text matters."""
    whole = {case.unit, *case.roles.values(), *(name for ask in case.asks if ask.groups for name in ask.by)}
    whole |= {ask.column for ask in case.asks if {"categories", "equals"} & set(ask.parameters)}
    return {
        name: {fact: value for fact, value in facts.items() if fact != "categories" or name not in whole}
        for name, facts in file_fields(case).items()
    }


def file_name(case: Case) -> str:
    """The file of a table, or the folder of its files, beside the plan."""
    return {"csv": "people.csv", "csvs": "people", "parquet": "people.parquet"}[case.engine.split()[0]]


def write(case: Case, side: Side, folder: Path) -> None:
    """Write the files of one of the two tables."""
    path = folder / file_name(case)
    try:
        if case.engine.startswith("parquet"):
            pyarrow.parquet.write_table(arrow_table(case, side), path, store_schema=False, row_group_size=2)
        elif case.engine.startswith("csvs"):
            path.mkdir()
            for half in (0, 1):
                # A row is in the same file in both tables.
                rows = [row for where, row in case.rows[half::2] if where in ("both", side)]
                (path / f"{half}.csv").write_bytes(csv_text(case, rows))
        else:
            path.write_bytes(csv_text(case, case.table(side)))
    except Exception as fault:
        raise Void(str(fault)) from fault


def values_of(case: Case, side: Side, column: Column) -> list[Any]:
    place = case.columns.index(column)
    return [row[place] for row in case.table(side)]


def arrow_table(case: Case, side: Side) -> pa.Table:
    """The table in two chunks, each with dictionaries of its own."""
    columns = []
    for column in case.columns:
        values = values_of(case, side, column)
        halves = [array(half, column.stored) for half in (values[:2], values[2:])]
        columns.append(pa.chunked_array(halves, column.stored.arrow))
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
    # Rows have names of their own in pandas, here all the same.
    return pd.DataFrame(columns).set_axis([0] * len(case.table(side)))


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


def csv_text(case: Case, rows: Sequence[Row]) -> bytes:
    """Rows as a CSV file: with one of three separators, two line ends, a byte-order mark or none."""
    lines = [[column.name for column in case.columns]]
    for row in rows:
        lines.append([_cell(value, column) for value, column in zip(row, case.columns, strict=True)])
    # In some columns all cells are in quotes, elsewhere those that must be.
    quoted = [(case.seed + place) % 3 == 0 for place in range(len(case.columns))]
    separator, end = ",;\t"[case.seed % 3], "\r\n" if case.seed % 5 == 0 else "\n"
    text = "".join(
        separator.join(_quoted(cell, always=always) for cell, always in zip(line, quoted, strict=True)) + end
        for line in lines
    )
    return text.encode("utf-8-sig" if case.seed % 4 == 0 else "utf-8")


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
