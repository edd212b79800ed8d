"""Tables of one file or of many, read at once or left to an engine: Polars, DuckDB or Spark.

What works, what is refused, and how often the files are read is in docs/files.md.
"""

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.checks import one_of, shown
from sfumato.data import files
from sfumato.data.field import Field
from sfumato.data.file_bytes import Format, Source, csv_header
from sfumato.data.file_cells import fits
from sfumato.data.file_csv import csv_kinds
from sfumato.data.file_faults import FileFault
from sfumato.data.file_lazy import lazy_lines, lazy_stored, require_same
from sfumato.data.file_listing import Listing, found_files, listed
from sfumato.data.file_parquet import file_types, stored_kinds, stored_rows
from sfumato.data.file_scans import EngineName
from sfumato.data.file_types import FileKind
from sfumato.errors import InvalidParameter

__all__ = [
    "open_table",
    "table_exists",
    "table_fingerprint",
    "table_format",
    "table_header",
    "table_stamp",
]

ENGINES: tuple[EngineName, ...] = ("polars", "duckdb", "spark")
# A Parquet file of at most this many bytes, and of as many needed cells, is read at once, which is faster. A
# larger one is left to Polars, and so is a CSV file in gzip that unpacks to more bytes.
AT_ONCE = 2**28

Path = str | os.PathLike[str]


def open_table(
    path: Path, schema: Mapping[str, Field], *, columns: Sequence[str], engine: EngineName | None = None
) -> Any:
    """The needed columns of a table in files, each of its declared kind, as a data set takes them.

    Guarantee:
        Whether the files are well-formed, or else the kind of a fault, is public (SECURITY.md); no message
        has a value or a row number. Without an engine, a CSV file, or a Parquet file of up to 256 MiB, is
        read at once, unless it is small only because it is packed. All else stays with the engine, and
        memory does not follow the number of rows.

    Args:
        path: a CSV, Parquet or Arrow IPC file; a folder of such files, with partitions such as year=2026 or
            without; or a pattern such as data/*.csv.
        schema: the declared fields, as for `files.read`.
        columns: the names of the columns to read.
        engine: "polars", "duckdb" or "spark"; None for what fits the files.

    Raises:
        FileFault: the files cannot be read as declared.
        InvalidParameter: no column is asked for, or one twice, or there is no such engine.
        MissingExtra: the engine is not installed.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> for year, text in (("2025", "age\\n36\\n"), ("2026", "age\\n41\\nNA\\n")):
    ...     os.mkdir(os.path.join(folder.name, f"year={year}"))
    ...     with open(os.path.join(folder.name, f"year={year}", "people.csv"), "w") as file:
    ...         _ = file.write(text)
    >>> fields = {"age": Field(kind="integer"), "year": Field(kind="integer")}
    >>> table = open_table(folder.name, fields, columns=["age", "year"])
    >>> type(table).__name__, table.collect().sort("age").rows()
    ('LazyFrame', [(None, 2026), (36, 2025), (41, 2026)])
    >>> folder.cleanup()
    """
    names = tuple(columns)
    if not names or len(set(names)) < len(names):
        raise InvalidParameter(f"columns must be distinct names, at least one, got columns={shown(names)}")
    if engine is not None:
        one_of("engine", engine, ENGINES)
    listing = listed(path)
    if engine is None and listing.alone and _at_once(listing.pieces[0].source, len(names)):
        return files.read(path, schema, columns=names)
    fields = {name: schema.get(name, Field()) for name in names}
    opened = lazy_lines if listing.holds == "csv" else lazy_stored
    found = opened(listing, fields, engine or "polars")
    listing.require_unchanged()
    return found


def _at_once(source: Source, columns: int) -> bool:
    if source.holds == "csv":
        return not source.gzipped or not _unpacks_to_more(source, AT_ONCE)
    if source.holds == "arrow" or source.size > AT_ONCE:
        return False
    return stored_rows(source) * columns <= AT_ONCE


def _unpacks_to_more(source: Source, size: int) -> bool:
    sizes = itertools.accumulate(map(len, source.blocks()))
    return any(read > size for read in sizes)


def table_header(path: Path, engine: EngineName | None = None) -> tuple[tuple[str, FileKind | None], ...]:
    """The names of the columns of a table in files, each with its kind where it has one.

    Guarantee:
        Tells names and types, which are public, and no value. Types of CSV files are guessed from the first
        rows of the first file, and types of the keys of partitions from the names of folders, as proposals.

    Args:
        path: as for `open_table`.
        engine: as for `open_table`; all engines find the same.

    Raises:
        FileFault: the files cannot be read, or have different columns.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with open(os.path.join(folder.name, "people.csv"), "w") as file:
    ...     _ = file.write("age,team\\n34,red\\n45,\\n")
    >>> table_header(os.path.join(folder.name, "*.csv"))
    (('age', 'integer'), ('team', 'text'))
    >>> folder.cleanup()
    """
    if engine is not None:
        one_of("engine", engine, ENGINES)
    listing = listed(path)
    first = listing.pieces[0].source
    if listing.holds == "csv":
        require_same(listing, [csv_header(piece.source).names for piece in listing.pieces])
        found = csv_kinds(first)
    else:
        require_same(listing, [tuple(file_types(piece.source)) for piece in listing.pieces])
        found = stored_kinds(first)
    listing.require_unchanged()
    return (*found, *((name, _guess(listing, place)) for place, name in enumerate(listing.keys)))


def _guess(listing: Listing, place: int) -> FileKind:
    values = {piece.keys[place][1] for piece in listing.pieces}
    kinds: tuple[FileKind, ...] = ("integer", "real")
    return next((kind for kind in kinds if all(fits(value, kind) for value in values)), "text")


def table_format(path: Path) -> Format:
    """What the files of a table hold: "csv", "parquet" or "arrow".

    Guarantee:
        Goes by the first bytes of each file and tells nothing else.

    Raises:
        FileFault: there is no file, or one that is none of these, or they are of several formats.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".csv") as file:
    ...     _ = file.write(b"age\\n34\\n"), file.flush()
    ...     table_format(file.name)
    'csv'
    """
    return listed(path).holds


def table_exists(path: Path) -> bool:
    """Whether there is a file, a folder or a match of a pattern, whatever it holds.

    Guarantee:
        Looks at names alone.

    >>> table_exists("no-such-folder/*.csv")
    False
    """
    try:
        found_files(path)
    except FileFault as fault:
        return fault.fault not in ("missing", "no files") or os.path.isdir(path)
    return True


def table_stamp(path: Path) -> tuple[object, ...]:
    """What the system knows of the files of a table, which differs after a change of any of them.

    Guarantee:
        Equal stamps before and after say that no file was added, taken away or written to in between, as far
        as times of change tell. No file is opened.

    Args:
        path: as for `open_table`.

    Raises:
        FileFault: there is no file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(os.path.join(folder, "one.csv"), "w") as file:
    ...         _ = file.write("age\\n34\\n")
    ...     before = table_stamp(folder)
    ...     with open(os.path.join(folder, "two.csv"), "w") as file:
    ...         _ = file.write("age\\n45\\n")
    ...     table_stamp(folder) == before
    False
    """
    return found_files(path).stamp


def table_fingerprint(path: Path, key: bytes) -> str:
    """A keyed hash of all bytes of all files of a table, with their names.

    Guarantee:
        That of one file is its `files.fingerprint`. Of many, the same names below the folder and the same
        bytes give the same one, and without the key nothing can be told from it.

    Args:
        path: as for `open_table`.
        key: 16 to 64 secret bytes, those of a ledger.

    Raises:
        FileFault: a file cannot be read, or something was changed meanwhile.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(os.path.join(folder, "one.csv"), "w") as file:
    ...         _ = file.write("age\\n34\\n")
    ...     len(table_fingerprint(folder, bytes(32)))
    64
    """
    listing = found_files(path)
    if listing.alone:
        return files.fingerprint(path, key)
    found = files.keyed(key, b"folder")
    for piece in listing.pieces:
        for part in (piece.name.encode(errors="surrogateescape"), str(piece.source.size).encode()):
            found.update(len(part).to_bytes(8) + part)
        for block in piece.source.blocks():
            found.update(block)
    listing.require_unchanged()
    return found.hexdigest()
