"""Tables in files, for anonymisation: every cell as it is stored, and the needed columns as values."""

import gzip
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from sfumato.checks import one_of
from sfumato.data.field import Field
from sfumato.data.file_bytes import Source, csv_header, look
from sfumato.data.file_faults import FileFault, fault_of, no_such_column
from sfumato.data.file_parquet import damage, file_types
from sfumato.data.file_types import FileKind, collected
from sfumato.data.files import read
from sfumato.errors import InvalidParameter
from sfumato.safe_text import csv_bytes

if TYPE_CHECKING:
    import polars as pl

ENDINGS = {"csv": ".csv", "parquet": ".parquet", "arrow": ".arrow"}
KINDS: tuple[FileKind, ...] = get_args(FileKind)
# Numbers with zeros in front, such as codes of places, are words.
_FORMS: dict[FileKind, str] = {
    "integer": r"^[+-]?(0|[1-9][0-9]{0,17})$",
    "real": r"^[+-]?((0|[1-9][0-9]*)([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})?$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "datetime": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?$",
}
_MISSING = ("", "NA")


@dataclass(frozen=True)
class StoredTable:
    """A table of a file: its cells as they are stored (all text in a CSV file), and in which form."""

    path: str
    frame: "pl.DataFrame"
    source: Source
    separator: str

    @property
    def ending(self) -> str:
        """What the name of a file of the same form ends in."""
        tabs = self.source.holds == "csv" and self.separator == "\t"
        return (".tsv" if tabs else ENDINGS[self.source.holds]) + ".gz" * self.source.gzipped

    def typed(
        self, columns: Sequence[str], kinds: Mapping[str, str], words: Sequence[str] = ()
    ) -> "pl.DataFrame":
        """The table with these columns as numbers, dates and text.

        Args:
            columns: those whose values are needed.
            kinds: how to read a column of a CSV file, where it is not to be seen from its cells.
            words: columns that are text whatever their cells look like.
        """
        import polars as pl

        for name in (*columns, *kinds):
            if name not in self.frame.columns:
                raise no_such_column(self.source.shown, name, tuple(self.frame.columns))
        for name, kind in kinds.items():
            one_of(f"types.{name}", kind, KINDS)
        if self.source.holds != "csv":
            if kinds:
                raise InvalidParameter(
                    f"types must be left out: a {self.source.holds} file stores the type of each column, "
                    f"got types={dict(kinds)}"
                )
            texts = [pl.col(name).cast(pl.String) for name in words if self.frame[name].dtype.is_integer()]
            return self.frame.with_columns(texts)
        fields = {
            name: Field(kind=kinds.get(name) or ("text" if name in words else self._guess(name)))  # type: ignore[arg-type]  # reason: checked above
            for name in columns
        }
        parsed = {name: field for name, field in fields.items() if field.kind != "text"}
        if not parsed:
            return self.frame
        found = read(self.path, parsed, columns=list(parsed))
        return self.frame.with_columns(**found)

    def _guess(self, name: str) -> FileKind:
        """What all cells of a column are, if they are filled in: numbers, dates, else text."""
        import polars as pl

        cells = self.frame.lazy().select(cell=pl.col(name)).filter(~pl.col("cell").is_in(_MISSING))
        tests = [pl.col("cell").str.contains(form).all().alias(kind) for kind, form in _FORMS.items()]
        some = collected(cells.select(pl.len().alias("rows"), *tests))
        if some is None or not some["rows"][0]:
            return "text"
        for kind in _FORMS:
            if some[kind][0] and self._reads(name, kind):
                return kind
        return "text"

    def _reads(self, name: str, kind: FileKind) -> bool:
        # Some dates that look like dates are on no calendar.
        try:
            read(self.path, {name: Field(kind=kind)}, columns=[name])
        except FileFault:
            return False
        return True


def read_table(path: str | os.PathLike[str]) -> StoredTable:
    """The table in a CSV, Parquet or Arrow file, whole.

    Raises:
        FileFault: the file cannot be read; the message has the kind of fault and no value.
    """
    import polars as pl

    source = look(path)
    if source.holds == "csv":
        header = csv_header(source)
        if "" in header.names:
            raise InvalidParameter(
                f"every column of {source.shown} must have a name, got one that has none: columns have "
                "their roles by name"
            )
        cells = read(path, {name: Field(kind="text") for name in header.names}, columns=header.names)
        return StoredTable(os.fspath(path), pl.DataFrame(cells), source, header.separator)
    names = list(file_types(source))
    scan = pl.scan_ipc if source.holds == "arrow" else pl.scan_parquet
    frame, fault = None, damage(source)
    try:
        frame = collected(scan(source.path, glob=False, hive_partitioning=False).select(names))
    except OSError as error:
        fault = fault_of(source.shown, error)
    if frame is None:
        raise fault
    source.require_unchanged()
    return StoredTable(os.fspath(path), frame, source, ",")


def table_bytes(frame: "pl.DataFrame", like: StoredTable) -> bytes:
    """A table as a file of the same form as another one."""
    if like.source.holds == "csv":
        text = csv_bytes(frame, separator=like.separator)
        # Without a time, so that the same table gives the same bytes.
        return gzip.compress(text, mtime=0) if like.source.gzipped else text
    written = io.BytesIO()
    if like.source.holds == "parquet":
        frame.write_parquet(written)
    else:
        frame.write_ipc(written)
    return written.getvalue()
