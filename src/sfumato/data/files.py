"""Tables in CSV, Parquet and Arrow files: their public header, and the needed columns as declared, read once.

What works, what is refused and what counts as null is in docs/files.md.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.checks import shown
from sfumato.data.admission import admit
from sfumato.data.field import Field
from sfumato.data.file_bytes import look, regular
from sfumato.data.file_csv import csv_kinds, read_csv
from sfumato.data.file_faults import FAULTS, FileFault
from sfumato.data.file_parquet import read_stored, stored_kinds
from sfumato.data.file_types import FileKind
from sfumato.errors import InvalidParameter, SchemaMismatch

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FAULTS", "FileFault", "fingerprint", "frame_fingerprint", "header", "read", "stamp"]

# Of a long column so many values are looked at, evenly placed, the first and the last among them.
VALUES = 4_096

Path = str | os.PathLike[str]


def header(path: Path) -> tuple[tuple[str, FileKind | None], ...]:
    """The names of the columns of a file, each with its kind where it has one.

    Guarantee:
        Tells names and types, which are public, and no value. The types of a CSV file are guessed from its
        first 1,000 rows or fewer, as a proposal; those of a Parquet or Arrow file are stored.

    Args:
        path: a CSV file, with gzip around it or not, or a Parquet or Arrow IPC file.

    Raises:
        FileFault: the file cannot be read; the message has the kind of fault.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "people.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("age,team\\n34,red\\n45,\\n")
    >>> header(path)
    (('age', 'integer'), ('team', 'text'))
    >>> folder.cleanup()
    """
    source = look(path)
    return csv_kinds(source) if source.holds == "csv" else stored_kinds(source)


def read(path: Path, schema: Mapping[str, Field], *, columns: Sequence[str]) -> "dict[str, pl.Series]":
    """The needed columns of a file, each of its declared kind.

    Guarantee:
        Whether the file is well-formed, or else the kind of its fault, is public (SECURITY.md); no message
        and no chained error has a value or a row number.

    Args:
        path: a CSV file, with gzip around it or not, or a Parquet or Arrow IPC file.
        schema: the declared fields. Without a kind, categories decide, then bounds (real); else a column of a
            CSV file is text, and one of another file what it stores.
        columns: the names of the columns to read; the others are not parsed.

    Raises:
        FileFault: the file cannot be read as declared.
        InvalidParameter: no column is asked for, or one twice.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "people.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("name,age\\nAda,36\\nAlan,NA\\n")
    >>> read(path, {"age": Field(kind="integer")}, columns=["age"])["age"].to_list()
    [36, None]
    >>> folder.cleanup()
    """
    names = tuple(columns)
    if not names or len(set(names)) < len(names):
        raise InvalidParameter(f"columns must be distinct names, at least one, got columns={shown(names)}")
    source = look(path)
    fields = {name: schema.get(name, Field()) for name in names}
    found = read_csv(source, fields) if source.holds == "csv" else read_stored(source, fields)
    source.require_unchanged()
    return found


def fingerprint(path: Path, key: bytes) -> str:
    """A keyed hash of all bytes of a file.

    Guarantee:
        Files with the same one have the same bytes, and without the key nothing about the file can be told
        from it: keyed BLAKE2b with 256 bits. Whoever has the key can try contents that they guess.

    Args:
        path: any file.
        key: 16 to 64 secret bytes, those of a ledger.

    Raises:
        FileFault: the file cannot be read, or was changed meanwhile.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     len(fingerprint(file.name, bytes(32)))
    64
    """
    found = keyed(key, b"file")
    source = regular(path)
    for block in source.blocks():
        found.update(block)
    source.require_unchanged()
    return found.hexdigest()


def stamp(path: Path) -> tuple[int, ...]:
    """What the system knows of a file, which differs after a change: its place, size and time of change.

    Guarantee:
        Equal stamps before and after say that the file was not written to in between, as far as its time of
        change tells. It serves to refuse a file that was changed between two readings.

    Args:
        path: any regular file; its bytes are not read.

    Raises:
        FileFault: there is no such file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     before = stamp(file.name)
    ...     same = stamp(file.name) == before
    ...     _ = file.write(b"34"), file.flush()
    ...     same, stamp(file.name) == before
    (True, False)
    """
    return regular(path).stamp


def frame_fingerprint(columns: Mapping[str, Any], key: bytes) -> str:
    """A keyed hash of the names, lengths and some values of columns, the same for the same columns.

    Guarantee:
        Without the key nothing about the columns can be told from it. It only serves to warn, and a file and
        a frame of the same values have different ones.

    Args:
        columns: names with lists, arrays or pandas, Polars or PyArrow series.
        key: 16 to 64 secret bytes, those of a ledger.

    >>> key = bytes(32)
    >>> frame_fingerprint({"age": [31, 45]}, key) == frame_fingerprint({"age": [31, 45]}, key)
    True
    >>> frame_fingerprint({"age": [31, 45]}, key) == frame_fingerprint({"age": [45, 31]}, key)
    False
    """
    found = keyed(key, b"frame")
    for name in sorted(columns):
        for word in (name.encode(errors="backslashreplace"), *_values(name, columns[name])):
            found.update(len(word).to_bytes(8) + word)
    return found.hexdigest()


def _values(name: str, values: Any) -> list[bytes]:
    """Some values of a column as bytes; none for a type that holds none that a question can be about."""
    try:
        column = admit(values, name)
    except SchemaMismatch:
        return []
    rows = len(column)
    # Read as for an answer, where no value can raise: by what is stored, and never as an object of Python.
    few = column.take(np.linspace(0, rows - 1, min(rows, VALUES), dtype=np.int64) if rows else slice(0))
    words = [str(rows).encode()]
    if few.kind != "text":
        # Every NaN is one thing.
        return [*words, *(np.where(np.isnan(chunk), np.nan, chunk).tobytes() for chunk in few.chunks())]
    texts = sorted(text for kind, text in few._tally() if kind is str)
    listed = [*(text.encode(errors="surrogatepass") for text in texts), b"another", b"null"]
    return [*words, *(listed[code] for code in few.codes(texts).tolist())]


def keyed(key: object, person: bytes) -> "hashlib.blake2b":
    """The beginning of a keyed hash for one purpose."""
    if not isinstance(key, bytes) or not 16 <= len(key) <= 64:
        raise InvalidParameter("key must be 16 to 64 bytes")
    return hashlib.blake2b(digest_size=32, key=key, person=person)
