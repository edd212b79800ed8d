"""Parquet files: needed columns by their stored types, which are part of the public schema."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.data.column import Kind
from sfumato.data.field import Field
from sfumato.data.file_bytes import Source, require_distinct
from sfumato.data.file_faults import FileFault, fault_of, no_such_column, stored_otherwise
from sfumato.data.file_types import collected, declared_kind, final_type, sorted_out, stored_kind

if TYPE_CHECKING:
    import polars as pl


def parquet_kinds(source: Source) -> tuple[tuple[str, Kind | None], ...]:
    """The names of a Parquet file with the kinds of their stored types; None for dates and lists."""
    return tuple((name, stored_kind(dtype)) for name, dtype in _types(source).items())


def _types(source: Source) -> "dict[str, pl.DataType]":
    import polars as pl

    fault: FileFault | None = None
    found: dict[str, pl.DataType] = {}
    try:
        found = dict(pl.read_parquet_schema(source.path))
    except OSError as error:
        fault = fault_of(source.shown, error)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, TypeError):
        fault = FileFault(source.shown, "parquet")
    if fault is not None:
        raise fault
    require_distinct(source.shown, list(found))
    return {name: dtype for name, dtype in found.items() if name}


def read_parquet(source: Source, fields: Mapping[str, Field]) -> "dict[str, pl.Series]":
    """The columns of these names, as declared."""
    import polars as pl

    types = _types(source)
    chosen = []
    for name, field in fields.items():
        if name not in types:
            raise no_such_column(source.shown, name, tuple(types))
        chosen.append(_as_declared(source, name, types[name], field))
    table = collected(pl.scan_parquet(source.path, glob=False, hive_partitioning=False).select(chosen))
    if table is None:
        raise FileFault(source.shown, "parquet")
    return {name: table[name] for name in fields}


def _as_declared(source: Source, name: str, stored: "pl.DataType", field: Field) -> "pl.Expr":
    import polars as pl

    found = stored_kind(stored)
    kind = declared_kind(field) or found
    blank = stored == pl.Null  # a column without a value, whatever it was meant to hold
    if kind is None or not (kind == found or (kind == "real" and found == "integer") or blank):
        # The bare name: in full, a type may list categories, which are values.
        bare = stored.base_type().__name__
        raise stored_otherwise(source.shown, name, kind or "number, boolean or text", bare)
    column = pl.col(name)
    if kind == "text" and field.categories:
        return sorted_out(column.cast(pl.String), field)
    if kind == "integer" and stored in (pl.UInt64, pl.Int128):
        return column  # wider than Int64; whether a value needs the width must not show
    return column.cast(final_type(kind, field))
