"""Files as relations of DuckDB, each on a connection of its own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.data.file_arrow import arrow_dataset
from sfumato.data.file_cells import (
    ABOVE,
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
from sfumato.data.file_faults import FileFault
from sfumato.data.file_listing import Piece
from sfumato.data.file_polars import PolarsScanner
from sfumato.data.file_scans import Lines, Wanted, place
from sfumato.data.file_types import FileKind
from sfumato.data.series import sound_places
from sfumato.data.stored_types import duckdb_decimal
from sfumato.errors import MissingExtra

_TYPES = {"integer": "BIGINT", "real": "DOUBLE", "boolean": "BOOLEAN", "text": "VARCHAR"}
_TYPES |= {"date": "DATE", "datetime": "TIMESTAMP"}


class _PolarsBatches:
    """CSV files that Polars parses for DuckDB, batch by batch, whenever a relation is read.

    DuckDB's own reader guesses where lines begin in the middle of a file, and loses rows where it is wrong.
    """

    def __init__(self, form: Lines) -> None:
        self._form = form

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        schema = pa.schema([(place(index), pa.large_string()) for index in self._form.needed])
        return pa.RecordBatchReader.from_batches(schema, self._batches()).__arrow_c_stream__()

    def _batches(self) -> Iterator[Any]:
        import polars as pl

        frame = PolarsScanner().lines(self._form)
        rows = 0
        for batch in frame.collect_batches(maintain_order=False, engine="streaming"):
            rows += batch.height
            yield from batch.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()
        # Polars says nothing where a file ends too early.
        if rows != self._form.rows:
            raise FileFault(self._form.pieces[0].source.shown, "changed")


class _SoundBatches:
    """A dataset of PyArrow with values of which DuckDB reads other memory, whenever a relation is read.

    DuckDB looks codes up wherever they point, also behind the dictionary, which can end the process. Of a
    decimal that has more digits than it declares it reads whatever its memory held before.
    """

    def __init__(self, found: Any) -> None:
        self._found = found

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        types = [_sound_type(field.type) for field in self._found.schema]
        schema = pa.schema(list(zip(self._found.schema.names, types, strict=True)))
        batches = (
            pa.RecordBatch.from_arrays(list(map(_sound, batch.columns)), schema=schema)
            for batch in self._found.to_batches()
        )
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__()


def _sound_type(dtype: Any) -> Any:
    import pyarrow as pa

    return pa.dictionary(pa.int64(), dtype.value_type) if pa.types.is_dictionary(dtype) else dtype


def _sound(array: Any) -> Any:
    import pyarrow as pa

    if _is_narrowed(array.type):
        return _within_digits(array)
    if not pa.types.is_dictionary(array.type):
        return array
    places = sound_places(array).cast(pa.int64())
    return pa.DictionaryArray.from_arrays(places, array.dictionary)


def _is_narrowed(dtype: Any) -> bool:
    """Whether DuckDB stores decimals of an Arrow type in fewer bytes than Arrow."""
    import pyarrow as pa

    if not pa.types.is_decimal(dtype):
        return False
    held = next((size for size, digits in ((2, 4), (4, 9), (8, 18)) if dtype.precision <= digits), 16)
    return bool(dtype.byte_width > held)


def _within_digits(array: Any) -> Any:
    """Decimals of at most 18 digits; those with more become the largest or the least."""
    import pyarrow as pa

    dtype = array.type
    valid, data = array.buffers()
    top = 10**dtype.precision - 1
    if dtype.byte_width <= 8:
        stored = np.frombuffer(data, dtype=f"<i{dtype.byte_width}")
        held = np.clip(stored, -top, top).astype(stored.dtype)
    else:
        low, high = np.frombuffer(data, dtype="<i8").reshape(-1, 2).T
        # The upper half of what 64 bits hold is its sign alone.
        near = np.where(high == low >> 63, np.clip(low, -top, top), np.where(high < 0, -top, top))
        held = np.stack([near, near >> 63], axis=1)
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(held))]
    return pa.Array.from_buffers(dtype, len(array), buffers, -1, array.offset)


class DuckdbScanner:
    """Scans by DuckDB."""

    def __init__(self) -> None:
        try:
            import duckdb
            import pyarrow  # noqa: F401  # reason: tables come to DuckDB as batches of Arrow
        except ImportError:
            raise MissingExtra(
                'engine = "duckdb" needs the package duckdb: pip install "sfumato[duckdb]"'
            ) from None
        self._base = duckdb.connect(":memory:")
        # Nothing is fetched from elsewhere, and the order of rows decides nothing.
        for setting in (
            "autoinstall_known_extensions",
            "autoload_known_extensions",
            "preserve_insertion_order",
        ):
            self._base.execute(f"set {setting} = false")

    def lines(self, form: Lines) -> Any:
        return self._base.from_arrow(_PolarsBatches(form))

    def stored(self, pieces: Sequence[Piece], wanted: Sequence[Wanted], folder: str | None) -> Any:
        if pieces[0].source.holds == "arrow" or any(each.is_text or each.is_millis for each in wanted):
            # DuckDB's reader of Parquet fails for some values of these types.
            return self._by_arrow(pieces, wanted, folder)
        options = f"hive_partitioning = {str(folder is not None).lower()}"
        if folder is not None:
            options += ", hive_types_autocast = false"
        keys = [] if folder is None else [name for name, _ in pieces[0].keys]
        needed = ", ".join(map(_identifier, [*(each.place for each in wanted), *keys]))
        patterns = ", ".join(_text(_literal(piece)) for piece in pieces)
        return self._base.sql(f"select {needed} from read_parquet([{patterns}], {options})")

    def _by_arrow(self, pieces: Sequence[Piece], wanted: Sequence[Wanted], folder: str | None) -> Any:
        """A dataset of PyArrow, which is read again, batch by batch, whenever the relation is."""
        import pyarrow as pa
        from pyarrow import dataset

        keys = pa.schema([] if folder is None else [(name, pa.string()) for name, _ in pieces[0].keys])
        options: dict[str, Any] = {}
        if folder is not None:
            options = {"partitioning": dataset.HivePartitioning(keys), "partition_base_dir": folder}
        listed = [each.place for each in wanted if each.is_text and each.listed]
        paths = [piece.source.path for piece in pieces]
        stored = arrow_dataset(paths, pieces[0].source.holds, listed, **options).schema
        fields = [_arrow_field(stored.field(each.place), each) for each in wanted]
        # DuckDB takes its time over columns that nobody needs, if there are many.
        options["schema"] = pa.schema([*fields, *keys])
        found = arrow_dataset(paths, pieces[0].source.holds, listed, **options)
        # PyArrow checks the codes of Parquet files itself.
        coded = pieces[0].source.holds == "arrow" and any(map(pa.types.is_dictionary, found.schema.types))
        if coded or any(map(_is_narrowed, found.schema.types)):
            return self._base.from_arrow(_SoundBatches(found))
        return self._base.from_arrow(found)

    def read(self, frame: Any, wanted: Sequence[Wanted], said: Mapping[str, str | None]) -> Any:
        made = []
        for each in wanted:
            cell = _identifier(each.place)
            if each.scale is not None:
                cell = duckdb_decimal(cell, each.stored.precision, each.scale)
            if each.place in said:
                cell = f"{_text(said[each.place])}::varchar"
            if each.how == "cell":
                cell = _value(cell, each.kind)
            elif each.how not in ("keep", "zoned"):
                cell = f"cast({'null' if each.how == 'null' else cell} as {_TYPES[each.kind]})"
            made.append(f"{cell} as {_identifier(each.name)}")
        return frame.project(", ".join(made))

    def wrong(self, frame: Any, wanted: Sequence[Wanted]) -> list[int]:
        counts = [f"count(*) filter ({_wrong(_identifier(each.place), each.kind)})" for each in wanted]
        found = frame.aggregate(", ".join(["count(*)", *counts])).fetchall()[0]
        return [int(count) for count in found]

    def together(self, frames: Sequence[Any]) -> Any:
        found = frames[0]
        for frame in frames[1:]:
            found = found.union(frame)
        return found

    def empty(self, wanted: Sequence[Wanted]) -> Any:
        nulls = ", ".join(f"null::{_TYPES[each.kind]} as {_identifier(each.name)}" for each in wanted)
        return self._base.sql(f"select {nulls} where false")


def _arrow_field(field: Any, wanted: Wanted) -> Any:
    """A column of a dataset, of a type of which DuckDB takes every value."""
    import pyarrow as pa

    if wanted.is_millis and pa.types.is_timestamp(field.type):
        # Of an instant DuckDB would make microseconds. Without a zone it is the same number.
        return pa.field(field.name, pa.timestamp(field.type.unit))
    return pa.field(field.name, pa.float32()) if pa.types.is_float16(field.type) else field


def _text(value: str | None) -> str:
    if value is None:
        return "null"
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def _literal(piece: Piece) -> str:
    """The path of a file as a pattern that matches it alone: a letter stands for itself in brackets."""
    path = piece.source.path
    pattern = re.sub(r"[*?\[]", r"[\g<0>]", path)
    if pattern != path and "\\" in path:
        words = "has a name that DuckDB cannot open: it holds a backslash and the letters of a pattern"
        raise FileFault(piece.source.shown, "file name", words)
    return pattern


def _identifier(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _value(cell: str, kind: FileKind) -> str:
    """The value of a cell, null where it is null or no value of the kind."""
    if kind == "text":
        return f"nullif({cell}, '')"
    if kind == "boolean":
        return f"case when {cell} in {TRUE} then true when {cell} in {FALSE} then false end"
    bare = f"trim({cell}, chr(32) || chr(9) || chr(13))"
    if kind in ("date", "datetime"):
        forms = (DATE,) if kind == "date" else (DATE, MINUTE, SECOND)
        met = " or ".join(_met(cell, form) for form in forms)
        plain = f"replace(replace({bare}, 'T', ' '), 'Z', '')"
        return f"case when {met} then try_cast({plain} as {_TYPES[kind]}) end"
    if kind == "integer":
        return f"case when {_met(cell, INTEGER)} then try_cast({bare} as bigint) end"
    return (
        f"case when {_met(cell, DECIMAL)} then try_cast({bare} as double) "
        f"when {_met(cell, ABOVE)} then 'inf'::double when {_met(cell, BELOW)} then '-inf'::double "
        f"when {_met(cell, NO_NUMBER)} then 'nan'::double end"
    )


def _wrong(cell: str, kind: FileKind) -> str:
    """Whether a cell is neither null nor a value of the kind."""
    if kind == "text":
        return "false"
    blank = f"{cell} in ('', '{NULL}')" if kind == "boolean" else _met(cell, BLANK)
    return f"{cell} is not null and not ({blank}) and ({_value(cell, kind)}) is null"


def _met(cell: str, form: str) -> str:
    return f"regexp_matches({cell}, '{form}')"
