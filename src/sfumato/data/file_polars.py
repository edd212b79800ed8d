"""Files as lazy frames of Polars."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.data.file_arrow import ArrowBatches
from sfumato.data.file_cells import (
    ABOVE,
    AROUND,
    BELOW,
    BLANK,
    DATE,
    DECIMAL,
    FALSE,
    INTEGER,
    MINUTE,
    NO_NUMBER,
    NULL,
    SECOND,
    TRUE,
)
from sfumato.data.file_listing import Piece
from sfumato.data.file_parquet import file_types
from sfumato.data.file_scans import Lines, Wanted, place
from sfumato.data.file_types import FileKind, polars_types

if TYPE_CHECKING:
    import polars as pl


class PolarsScanner:
    """Scans by Polars."""

    def lines(self, form: Lines) -> Any:
        import polars as pl

        return pl.scan_csv(
            [piece.source.path for piece in form.pieces],
            has_header=False,
            skip_rows=1,  # skip_lines would also drop a byte-order mark at the start of the first row
            schema={place(i): pl.String for i in range(len(form.header.names))},
            separator=form.header.separator,
            glob=False,
        ).select(map(place, form.needed))

    def stored(self, pieces: Sequence[Piece], wanted: Sequence[Wanted], folder: str | None) -> Any:
        import polars as pl

        batches = ArrowBatches(
            tuple(pieces),
            _types(pieces[0], wanted),
            frozenset(each.place for each in wanted if each.is_text),
            tuple(each.place for each in wanted if each.is_text and each.listed),
            keyed=folder is not None,
        )
        if batches.is_needed:
            return batches.frame()
        paths: list[Any] = [piece.source.path for piece in pieces]
        if pieces[0].source.holds == "arrow":
            return pl.concat([pl.scan_ipc(path, glob=False, hive_partitioning=False) for path in paths])
        keys = {} if folder is None else {name: pl.String for name, _ in pieces[0].keys}
        options: dict[str, Any] = {"hive_schema": keys, "try_parse_hive_dates": False} if keys else {}
        return pl.scan_parquet(paths, glob=False, hive_partitioning=bool(keys), **options)

    def read(self, frame: Any, wanted: Sequence[Wanted], said: Mapping[str, str | None]) -> Any:
        import polars as pl
        from polars import selectors

        types = polars_types()
        # A selection of constants alone would have a single row.
        frame = frame.with_columns(pl.lit(value, dtype=pl.String).alias(key) for key, value in said.items())
        made = []
        for each in wanted:
            # `pl.col` reads names such as `^x$` as patterns.
            cell: pl.Expr = selectors.by_name(each.place)
            dtype = types.get(each.kind, pl.String)
            if each.how == "cell":
                cell = cell_value(cell, each.kind)
            elif each.how not in ("keep", "zoned"):
                cell = cell.cast(dtype)
            made.append(cell.alias(each.name))
        return frame.select(made)

    def wrong(self, frame: Any, wanted: Sequence[Wanted]) -> list[int]:
        import polars as pl

        counts = [cell_wrong(pl.col(each.place), each.kind).sum() for each in wanted]
        asked = [pl.len(), *counts]
        found = frame.select(count.alias(str(i)) for i, count in enumerate(asked))
        return [int(count or 0) for count in found.collect(engine="streaming").row(0)]

    def together(self, frames: Sequence[Any]) -> Any:
        import polars as pl

        return frames[0] if len(frames) == 1 else pl.concat(frames, how="vertical_relaxed")

    def empty(self, wanted: Sequence[Wanted]) -> Any:
        import polars as pl

        types = polars_types()
        return pl.LazyFrame(schema={each.name: types.get(each.kind, pl.String) for each in wanted})


def cell_value(cell: "pl.Expr", kind: FileKind) -> "pl.Expr":
    """The value of a cell, null where it is null or no value of the kind."""
    import polars as pl

    if kind == "text":
        return pl.when(cell != "").then(cell)
    if kind == "boolean":
        truth = pl.when(cell.is_in(TRUE)).then(pl.lit(True))
        return truth.when(cell.is_in(FALSE)).then(pl.lit(False))
    bare = cell.str.strip_chars(AROUND)
    if kind in ("date", "datetime"):
        day = pl.when(cell.str.contains(DATE)).then(bare).str.to_date("%Y-%m-%d", strict=False)
        return day if kind == "date" else pl.coalesce(day.cast(pl.Datetime("us")), *_times(cell, bare))
    if kind == "integer":
        return pl.when(cell.str.contains(INTEGER)).then(bare).cast(pl.Int64, strict=False)
    number = pl.when(cell.str.contains(DECIMAL)).then(bare).cast(pl.Float64, strict=False)
    return (
        pl.when(cell.str.contains(ABOVE))
        .then(float("inf"))
        .when(cell.str.contains(BELOW))
        .then(float("-inf"))
        .when(cell.str.contains(NO_NUMBER))
        .then(float("nan"))
        .otherwise(number)
    )


def _times(cell: "pl.Expr", bare: "pl.Expr") -> "list[pl.Expr]":
    import polars as pl

    plain = bare.str.strip_suffix("Z").str.replace("T", " ", literal=True)
    forms = ((MINUTE, "%Y-%m-%d %H:%M"), (SECOND, "%Y-%m-%d %H:%M:%S%.f"))
    return [
        pl.when(cell.str.contains(form)).then(plain).str.to_datetime(read, time_unit="us", strict=False)
        for form, read in forms
    ]


def cell_wrong(cell: "pl.Expr", kind: FileKind) -> "pl.Expr":
    """Whether a cell is neither null nor a value of the kind."""
    import polars as pl

    if kind == "text":
        return pl.lit(False)
    blank = cell.is_in(["", NULL]) if kind == "boolean" else cell.str.contains(BLANK)
    return cell.is_not_null() & ~blank & cell_value(cell, kind).is_null()


def _types(piece: Piece, wanted: Sequence[Wanted]) -> "dict[str, pl.DataType]":
    found = file_types(piece.source)
    return {each.place: found[each.place] for each in wanted}
