"""Parquet and Arrow files: needed columns by their stored types, which are part of the public schema."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.data.field import Field
from sfumato.data.file_arrow import ArrowBatches
from sfumato.data.file_bytes import Source, require_distinct
from sfumato.data.file_faults import Fault, FileFault, fault_of, no_such_column, stored_otherwise
from sfumato.data.file_listing import Piece
from sfumato.data.file_types import FileKind, collected, declared_kind, final_type, sorted_out, stored_kind

if TYPE_CHECKING:
    import polars as pl


def stored_kinds(source: Source) -> tuple[tuple[str, FileKind | None], ...]:
    """The names of a file with the kinds of their stored types; None for lists and others."""
    return tuple((name, stored_kind(dtype)) for name, dtype in file_types(source).items())


def damage(source: Source) -> FileFault:
    """That a file is not what its first bytes say."""
    fault: Fault = "arrow" if source.holds == "arrow" else "parquet"
    return FileFault(source.shown, fault)


def _scan(source: Source) -> "pl.LazyFrame":
    import polars as pl

    # A name may hold the letters of a pattern.
    scan = pl.scan_ipc if source.holds == "arrow" else pl.scan_parquet
    return scan(source.path, glob=False, hive_partitioning=False)


def file_types(source: Source) -> "dict[str, pl.DataType]":
    """The stored types of a file by the names of its columns, in its order."""
    import polars as pl

    fault: FileFault | None = None
    found: dict[str, pl.DataType] = {}
    try:
        found = dict(_scan(source).collect_schema())
    except OSError as error:
        fault = fault_of(source.shown, error)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, TypeError):
        fault = damage(source)
    if fault is not None:
        raise fault
    require_distinct(source.shown, list(found))
    return {name: dtype for name, dtype in found.items() if name}


def stored_rows(source: Source) -> int:
    """How many rows a file says that it has."""
    import polars as pl

    counted = collected(_scan(source).select(pl.len()))
    if counted is None:
        raise damage(source)
    return int(counted.item())


def read_stored(source: Source, fields: Mapping[str, Field]) -> "dict[str, pl.Series]":
    """The columns of these names, as declared."""
    types = file_types(source)
    chosen = []
    for name, field in fields.items():
        if name not in types:
            raise no_such_column(source.shown, name, tuple(types))
        chosen.append(_as_declared(source.shown, name, types[name], field))
    # Polars is the faster reader. What it refuses for one text, PyArrow reads; both read the same values.
    table = collected(_scan(source).select(chosen))
    if table is None:
        table = collected(_by_pyarrow(source, types, fields).select(chosen))
    if table is None:
        raise damage(source)
    return {name: table[name] for name in fields}


def _by_pyarrow(
    source: Source, types: "Mapping[str, pl.DataType]", fields: Mapping[str, Field]
) -> "pl.LazyFrame":
    """The columns of these names, by a reader that refuses none for a text that is not UTF-8."""
    texts = {name for name in fields if stored_kind(types[name]) == "text"}
    listed = tuple(name for name in fields if name in texts and fields[name].categories)
    batches = ArrowBatches(
        (Piece(source.shown, source),), {name: types[name] for name in fields}, frozenset(texts), listed
    )
    found: pl.LazyFrame = batches.frame() if batches.is_needed else _scan(source)
    return found


def kind_as_declared(shown: str, name: str, stored: "pl.DataType", field: Field) -> FileKind:
    """The kind in which a stored column is read; refused if the stored type is of another."""
    import polars as pl

    found = stored_kind(stored)
    kind = declared_kind(field) or found
    blank = stored == pl.Null  # a column without a value, whatever it was meant to hold
    if kind is None or not (kind == found or (kind == "real" and found == "integer") or blank):
        # The bare name: in full, a type may list categories, which are values.
        bare = stored.base_type().__name__
        raise stored_otherwise(shown, name, kind or "number, boolean, text or date", bare)
    return kind


def is_wide(stored: "pl.DataType") -> bool:
    """Whether integers of a type may not fit 64 bits; whether a value needs the width must not show."""
    import polars as pl

    return stored in (pl.UInt64, pl.Int128)


def _as_declared(shown: str, name: str, stored: "pl.DataType", field: Field) -> "pl.Expr":
    import polars as pl
    from polars import selectors

    kind = kind_as_declared(shown, name, stored, field)
    # `pl.col` reads names such as `^x$` as patterns.
    column = selectors.by_name(name)
    if kind == "text" and field.categories:
        return sorted_out(column.cast(pl.String), field)
    dated = kind in ("date", "datetime") and stored != pl.Null
    if dated or (kind == "integer" and is_wide(stored)):
        return column
    return column.cast(final_type(kind, field))
