"""Parquet and Arrow files by PyArrow, which takes stored values as they are, batch by batch.

The readers of Polars and DuckDB refuse a whole file for one text that is not UTF-8, and that of DuckDB for
milliseconds of which 64 bits do not hold the microseconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sfumato.data.file_bytes import Format
from sfumato.data.file_listing import Piece
from sfumato.data.series import sound_places

if TYPE_CHECKING:
    import polars as pl


def arrow_dataset(paths: Sequence[str], holds: Format, listed: Sequence[str], **options: Any) -> Any:
    """Files as a dataset of PyArrow, which can be read many times; `listed` are texts of few values."""
    from pyarrow import dataset

    if holds == "arrow":
        return dataset.dataset(list(paths), format="ipc", **options)
    # Texts of few values are stored once for many rows, and that is how they are fast to read.
    few = dataset.ParquetReadOptions(dictionary_columns=list(listed))
    return dataset.dataset(list(paths), format=dataset.ParquetFileFormat(read_options=few), **options)


@dataclass(frozen=True)
class ArrowBatches:
    """Columns of files of one form: their types in Polars, and which are text, and text of few values.

    With `keyed`, the keys that folders say are columns as well.
    """

    pieces: tuple[Piece, ...]
    types: Mapping[str, Any]
    texts: frozenset[str]
    listed: tuple[str, ...] = ()
    keyed: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether Polars could refuse a value, and PyArrow is there and has the same types."""
        return bool(self.texts) and find_spec("pyarrow") is not None and self._fits()

    def _fits(self) -> bool:
        import polars as pl

        try:
            schema = self._dataset(self.pieces[0]).schema
            found: Any = pl.from_arrow(schema.empty_table().select(list(self.types)))
        except Exception:  # a header that only Polars can read, or none, of which it tells the fault
            return False
        return all(
            # Polars reads dates that were milliseconds when they were written as these.
            dtype == found.schema[name] or (dtype == pl.Datetime and found.schema[name] == pl.Date)
            for name, dtype in self.types.items()
            if name not in self.texts
        )

    def _dataset(self, piece: Piece) -> Any:
        return arrow_dataset([piece.source.path], piece.source.holds, self.listed)

    def frame(self) -> "pl.LazyFrame":
        """A lazy frame that reads the files whenever it is collected."""
        import polars as pl
        from polars.io.plugins import register_io_source

        keys = [name for name, _ in self.pieces[0].keys] if self.keyed else []
        schema = {name: pl.String if name in self.texts else dtype for name, dtype in self.types.items()}
        return register_io_source(self._read, schema={**schema, **dict.fromkeys(keys, pl.String)})

    def _read(
        self, names: list[str] | None, predicate: "pl.Expr | None", rows: int | None, size: int | None
    ) -> "Iterator[pl.DataFrame]":
        for frame in self._frames(names):
            part = frame if rows is None else frame.head(rows)
            rows = None if rows is None else rows - part.height
            yield part if predicate is None else part.filter(predicate)
            if rows == 0:
                return

    def _frames(self, names: list[str] | None) -> "Iterator[pl.DataFrame]":
        import polars as pl

        for piece in self.pieces:
            keys = dict(piece.keys) if self.keyed else {}
            wanted = [*self.types, *keys] if names is None else names
            # Of a table whose needed columns are all keys, some column tells how many rows there are.
            stored = [name for name in wanted if name not in keys] or list(self.types)[:1]
            said = [pl.lit(keys[name], dtype=pl.String).alias(name) for name in wanted if name in keys]
            for batch in self._dataset(piece).to_batches(columns=stored):
                frame = pl.DataFrame({name: self._series(name, batch.column(name)) for name in stored})
                yield frame.with_columns(said).select(pl.selectors.by_name(*wanted)) if said else frame

    def _series(self, name: str, array: Any) -> "pl.Series":
        import polars as pl

        if name in self.texts and hasattr(array, "dictionary"):
            words, places = pl.Series(array.dictionary), pl.Series(sound_places(array))
            return words.gather(places)
        found = pl.Series(array)
        return found if name in self.texts else found.cast(self.types[name])
