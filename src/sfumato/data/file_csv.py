"""CSV files: the shape of all rows is checked, then Polars parses needed columns as declared."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.data.field import Field
from sfumato.data.file_bytes import Header, Source, checked_lines, csv_header, csv_rows, whole_lines
from sfumato.data.file_cells import FALSE, NULL, TRUE
from sfumato.data.file_faults import FileFault, no_such_column, not_as_declared
from sfumato.data.file_polars import cell_value, cell_wrong
from sfumato.data.file_types import FileKind, collected, declared_kind, final_type, sorted_out, stored_kind

if TYPE_CHECKING:
    import polars as pl

# So many rows are looked at to guess the types of a file for a starter; fewer of a table with many columns.
SAMPLE = 1_000
SAMPLE_CELLS = 200_000
SAMPLE_BYTES = 2**22
# gzip may hold a thousand times its size, all of which would be held in memory.
MOST_UNPACKED = 2**30


def csv_kinds(source: Source) -> tuple[tuple[str, FileKind | None], ...]:
    """The names of a CSV file with the kinds that its first rows suggest; None where they hold nothing."""
    import polars as pl

    header = csv_header(source)
    rows = min(SAMPLE, max(SAMPLE_CELLS // len(header.names), 1))
    lines = _first_lines(source, header, rows)
    if not checked_lines(source, header, lines):
        return tuple((name, None) for name in header.names if name)
    sample = collected(
        pl.scan_csv(
            b"header\n" + lines,
            has_header=False,
            skip_rows=1,
            separator=header.separator,
            null_values=["", NULL],
            n_rows=rows,
            infer_schema_length=rows,
            ignore_errors=True,  # rows beyond the sample may hold something else
        )
    )
    if sample is None:
        raise FileFault(source.shown, "parse")
    pairs = zip(header.names, sample.iter_columns(), strict=True)
    return tuple(
        (name, stored_kind(series.dtype) if series.null_count() < len(series) else None)
        for name, series in pairs
        if name
    )


def _first_lines(source: Source, header: Header, rows: int) -> bytes:
    """This many lines below the header, or somewhat more; fewer where they are long."""
    text = b""
    for lines in whole_lines(source, header.size):
        text += lines
        if text.count(b"\n") >= rows or len(text) >= SAMPLE_BYTES:
            break
    return text


def read_csv(source: Source, fields: Mapping[str, Field]) -> "dict[str, pl.Series]":
    """The columns of these names, as declared."""
    import polars as pl

    header = csv_header(source)
    for name in fields:
        if not name or name not in header.names:
            raise no_such_column(source.shown, name, tuple(filter(None, header.names)))
    wanted = [_Wanted(name, header.names.index(name), field) for name, field in fields.items()]
    # Polars reads short rows as nulls and does not look at columns that are not asked for.
    rows = csv_rows(replace(source, most=MOST_UNPACKED), header)
    if not rows:
        return {w.name: pl.Series(w.name, [], final_type(w.kind, w.field)) for w in wanted}
    table = collected(_columns(source, header, wanted))
    if table is None:
        raise _fault(source, header, wanted)
    if table.height != rows:
        source.require_unchanged()
        raise FileFault(source.shown, "parse")
    for w in wanted:
        if _wrong(w) in table.columns and table[_wrong(w)].any():
            raise not_as_declared(source.shown, w.name, w.kind)
    return {w.name: _finished(source, w, table[w.name]) for w in wanted}


class _Wanted:
    """A column to read: its name, its place in the header, and as what."""

    def __init__(self, name: str, place: int, field: Field) -> None:
        self.name, self.place, self.field = name, place, field
        self.kind: FileKind = declared_kind(field) or "text"

    @property
    def parsed(self) -> Any:
        import polars as pl

        if self.kind in ("integer", "real"):
            return final_type(self.kind, self.field)
        # Polars collects few distinct words faster than it copies many.
        return pl.Categorical() if self.kind == "text" and self.field.categories else pl.String

    @property
    def expression(self) -> "pl.Expr":
        import polars as pl

        column = pl.col(_place(self.place))
        if self.kind in ("date", "datetime"):
            column = cell_value(column, self.kind)
        elif self.kind == "boolean":
            # 2 stands for what is neither, so that the whole file is read before it is refused.
            truth = pl.when(column.is_in(TRUE)).then(1).when(column.is_in(FALSE)).then(0).otherwise(2)
            column = pl.when(column != "").then(truth).cast(pl.Int8)
        elif self.kind == "text" and self.field.categories:
            column = sorted_out(column, self.field)
        return column.alias(self.name)


def _place(index: int) -> str:
    return f"column {index}"


def _columns(source: Source, header: Header, wanted: "Sequence[_Wanted]") -> "pl.LazyFrame":
    import polars as pl

    scan = _scan(
        source,
        header,
        types={w.place: w.parsed for w in wanted},
        nulls={w.place: "" if w.kind == "text" else NULL for w in wanted},
    )
    # Beside dates, what is none, so that the whole file is read before it is refused.
    wrong = [
        cell_wrong(pl.col(_place(w.place)), w.kind).alias(_wrong(w))
        for w in wanted
        if w.kind in ("date", "datetime")
    ]
    return scan.select([*(w.expression for w in wanted), *wrong])


def _wrong(wanted: _Wanted) -> str:
    # No header holds a NUL.
    return f"\0{wanted.place}"


def _scan(
    source: Source,
    header: Header,
    types: Mapping[int, Any],
    nulls: Mapping[int, str],
) -> "pl.LazyFrame":
    import polars as pl

    # Columns are told apart by their place: a name in a header may be empty, or hold quotes and line ends.
    return pl.scan_csv(
        source.path,
        has_header=False,
        skip_rows=1,  # skip_lines would also drop a byte-order mark at the start of the first row
        schema={_place(i): types.get(i, pl.String) for i in range(len(header.names))},
        separator=header.separator,
        # With a rule of its own, an empty cell of any kind is null, in quotes or not.
        null_values={_place(i): word for i, word in nulls.items()},
        glob=False,
    )


def _finished(source: Source, wanted: _Wanted, series: "pl.Series") -> "pl.Series":
    if wanted.kind != "boolean":
        return series
    if (series == 2).any():
        raise not_as_declared(source.shown, wanted.name, wanted.kind)
    return series == 1


def _fault(source: Source, header: Header, wanted: "Sequence[_Wanted]") -> FileFault:
    """Why Polars could not parse rows of the right shape: found by trying again, not by what it said."""
    for w in wanted:
        if collected(_columns(source, header, [w])) is None:
            if w.kind in ("integer", "real"):
                return not_as_declared(source.shown, w.name, w.kind)
            return FileFault(source.shown, "parse")
    return FileFault(source.shown, "parse")
