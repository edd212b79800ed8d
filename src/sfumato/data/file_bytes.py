"""A table as bytes: what kind of file it is, its header, and whether all rows have its fields."""

import csv
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sfumato.data.file_faults import Fault, FileFault, fault_of, shown_path, twice_named

BLOCK = 2**20
MAX_HEADER = 2**24
MAX_NAME = 2**14
MAX_COLUMNS = 2**16

_GZIP = b"\x1f\x8b"
_PARQUET = (b"PAR1", b"PARE")
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"
_QUOTED = re.compile(rb'"[^"]*"')


@dataclass(frozen=True)
class Source:
    """A file that was looked at: its absolute path, what it holds, and whether gzip is around it."""

    path: str
    shown: str
    holds: Literal["csv", "parquet"]
    gzipped: bool
    stamp: tuple[int, ...]

    def blocks(self) -> Iterator[bytes]:
        """The bytes of the file, unpacked, block by block; what the system reports becomes a fault."""
        found: FileFault | None = None
        try:
            with gzip.open(self.path) if self.gzipped else open(self.path, "rb", buffering=0) as file:
                while block := file.read(BLOCK):
                    yield block
        except (EOFError, gzip.BadGzipFile, zlib.error):
            found = FileFault(self.shown, "gzip")
        except OSError as error:
            found = fault_of(self.shown, error)
        if found is not None:
            raise found

    def require_unchanged(self) -> None:
        """Refuse a file that is not the one that was looked at, so that two readings were of one table."""
        if _stamp(self.path, self.shown) != self.stamp:
            raise FileFault(self.shown, "changed")


def regular(path: str | os.PathLike[str]) -> Source:
    """The file of a path, whatever it holds; refused if it is none, or a directory."""
    shown = shown_path(path)
    # An absolute path is never taken for an address.
    whole = os.path.abspath(os.fspath(path))
    return Source(whole, shown, "csv", False, _stamp(whole, shown))


def look(path: str | os.PathLike[str]) -> Source:
    """The file of a path and what it holds, by its first bytes; refused if it is nothing that can be read."""
    source = regular(path)
    first = _first(source)
    if first.startswith(_PARQUET):
        return replace(source, holds="parquet")
    if os.path.splitext(source.path)[1].lower() in (".parquet", ".pq"):
        raise FileFault(source.shown, "parquet")
    if first.startswith(_GZIP):
        source = replace(source, gzipped=True)
        first = _first(source)
    fault = _fault(first)
    if fault:
        raise FileFault(source.shown, fault)
    return source


def _stamp(path: str, shown: str) -> tuple[int, ...]:
    found: FileFault
    try:
        facts = os.stat(path)
    except OSError as error:
        found = fault_of(shown, error)
    except ValueError:  # a NUL in the path
        found = FileFault(shown, "missing")
    else:
        if stat.S_ISREG(facts.st_mode):
            return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns
        found = FileFault(shown, "directory" if stat.S_ISDIR(facts.st_mode) else "special")
    raise found


def _first(source: Source) -> bytes:
    for block in source.blocks():
        return block[: 2**16]
    return b""


def _fault(first: bytes) -> Fault | None:
    if not first.removeprefix(_BOM).strip():
        return "empty"
    if first.startswith(_OLE):
        return "excel"
    if first.startswith(_ZIP):
        return "excel" if b"[Content_Types].xml" in first or b"xl/" in first else "archive"
    if first.startswith((*_COMPRESSED, _GZIP, *_PARQUET)):
        return "compression"
    if first.startswith(_UTF16):
        return "utf-16"
    return "binary" if b"\0" in first else None


@dataclass(frozen=True)
class Header:
    """The first record of a CSV file: names, separator, and how many lines it takes."""

    names: tuple[str, ...]
    separator: str
    lines: int
    size: int


def csv_header(source: Source) -> Header:
    """The header of a CSV file; columns may lack a name, but no name may occur twice."""
    record = _first_record(source)
    found: FileFault | None = None
    names: list[str] = []
    bare = _QUOTED.sub(b"", record).rstrip(b"\r\n")
    separator = _separator(source.path, bare)
    try:
        text = record.removeprefix(_BOM).decode().rstrip("\r\n")
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except UnicodeDecodeError:
        found = FileFault(source.shown, "encoding")
    except csv.Error:
        found = FileFault(source.shown, "line ends" if b"\r" in bare else "header")
    else:
        names = rows[0] if rows else []
        if b"\r" in bare:
            found = FileFault(source.shown, "line ends")
        elif (
            len(rows) != 1
            or len(names) > MAX_COLUMNS
            or not any(names)
            or len(max(names, key=len)) > MAX_NAME
        ):
            found = FileFault(source.shown, "header")
    if found is not None:
        raise found
    require_distinct(source.shown, names)
    return Header(tuple(names), separator, record.count(b"\n") + (not record.endswith(b"\n")), len(record))


def require_distinct(shown: str, names: list[str]) -> None:
    """Refuse two columns of one name; columns without a name cannot be asked for and may be several."""
    seen: set[str] = set()
    for name in filter(None, names):
        if name in seen:
            raise twice_named(shown, name)
        seen.add(name)


def _first_record(source: Source) -> bytes:
    record = b""
    quotes = 0
    for block in source.blocks():
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            quotes += block.count(b'"', start, end)
            if quotes % 2 == 0:
                record += block[: end + 1]
                if b"\0" in record:
                    raise FileFault(source.shown, "binary")
                return record
            start = end + 1
        quotes += block.count(b'"', start)
        record += block
        if len(record) > MAX_HEADER:
            raise FileFault(source.shown, "line ends" if b"\r" in record else "header")
    if quotes % 2:
        raise FileFault(source.shown, "quote")
    return record


def _separator(path: str, bare: bytes) -> str:
    # Decided by the name of the file and its header alone, which are public.
    if re.search(r"\.(tsv|tab)(\.gz)?$", path.lower()):
        return "\t"
    return next((mark for mark in ",;\t" if mark.encode() in bare), ",")


def csv_rows(source: Source, header: Header) -> int:
    """The number of rows below the header, each of which has as many fields as the header.

    Only separators, line ends and quotes are looked at, so that this costs little beside parsing. Empty lines
    at the end are no rows, unless there is a single column: then an empty line is an empty cell.
    """
    fields = len(header.names)
    pattern = header.separator.encode() * (fields - 1) + b"\n"
    others = bytes(set(range(256)) - set(pattern + b'"\0\n'))
    rows, inside, left, last = 0, 0, b"", b"\n"
    for block in _body(source, header, whole_lines=fields == 1):
        last = block[-1:]
        marks = block.translate(None, others)
        if b"\0" in marks:
            raise FileFault(source.shown, "binary")
        if b'"' in marks or inside:
            marks, inside = _outside_quotes(marks, inside)
        left += marks
        whole = len(left) // fields
        if left[: whole * fields] != pattern * whole:
            raise FileFault(source.shown, "ragged")
        rows += whole
        left = left[whole * fields :]
    if inside:
        raise FileFault(source.shown, "quote")
    if last == b"\n" and not left:
        return rows
    # The last line may lack its end.
    if left + b"\n" != pattern:
        raise FileFault(source.shown, "ragged")
    return rows + 1


def _body(source: Source, header: Header, *, whole_lines: bool) -> Iterator[bytes]:
    skip = header.size
    held = b""  # line ends that may turn out to be the end of the file
    for block in source.blocks():
        part = held + block[skip:]
        skip = max(0, skip - len(block))
        kept = part if whole_lines else part.rstrip(b"\r\n")
        held = part[len(kept) :]
        if kept:
            yield kept


def _outside_quotes(marks: bytes, inside: int) -> tuple[bytes, int]:
    codes = np.frombuffer(marks, dtype=np.uint8)
    quotes = codes == ord('"')
    within = np.bitwise_xor.accumulate(quotes) ^ bool(inside)
    return codes[~(within | quotes)].tobytes(), int(within[-1]) if len(within) else inside
