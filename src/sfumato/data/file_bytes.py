"""A table as bytes: what kind of file it is, its header, and whether each line is a row of its fields."""

import csv
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from sfumato.data.file_faults import Fault, FileFault, fault_of, shown_path, twice_named

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
Format = Literal["csv", "parquet", "arrow"]

# Small enough for the caches of a processor.
BLOCK = 2**18
MAX_HEADER = 2**24
MAX_NAME = 2**14
MAX_COLUMNS = 2**16

_GZIP = b"\x1f\x8b"
_PARQUET = (b"PAR1", b"PARE")
_ARROW = b"ARROW1"
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
    holds: Format
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


def regular(path: str | os.PathLike[str], shown: str | None = None) -> Source:
    """The file of a path, whatever it holds; refused if it is none, or a directory."""
    shown = shown_path(path) if shown is None else shown
    # An absolute path is never taken for an address.
    whole = os.path.abspath(os.fspath(path))
    return Source(whole, shown, "csv", False, _stamp(whole, shown))


def look(path: str | os.PathLike[str], shown: str | None = None) -> Source:
    """The file of a path and what it holds, by its first bytes; refused if it is nothing that can be read."""
    source = regular(path, shown)
    first = _first(source)
    if first.startswith(_PARQUET):
        return replace(source, holds="parquet")
    if first.startswith(_ARROW):
        return replace(source, holds="arrow")
    ending = os.path.splitext(source.path)[1].lower()
    if ending in (".parquet", ".pq"):
        raise FileFault(source.shown, "parquet")
    if ending in (".arrow", ".feather", ".ipc"):
        raise FileFault(source.shown, "arrow")
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
    """The first line of a CSV file: names, separator, and how many bytes it takes."""

    names: tuple[str, ...]
    separator: str
    size: int


def csv_header(source: Source) -> Header:
    """The header of a CSV file; columns may lack a name, but no name may occur twice."""
    record = _first_line(source)
    found: FileFault | None = None
    names: list[str] = []
    bare = _QUOTED.sub(b"", record).rstrip(b"\r\n")
    separator = _separator(source.path, bare)
    quotes = _Quotes(source, separator)
    quotes.take(record.removeprefix(_BOM))
    quotes.end()
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
    return Header(tuple(names), separator, len(record))


def require_distinct(shown: str, names: list[str]) -> None:
    """Refuse two columns of one name; columns without a name cannot be asked for and may be several."""
    seen: set[str] = set()
    for name in filter(None, names):
        if name in seen:
            raise twice_named(shown, name, names)
        seen.add(name)


def _first_line(source: Source) -> bytes:
    line = b""
    for block in source.blocks():
        end = block.find(b"\n")
        line += block[: end + 1] if end >= 0 else block
        if end >= 0:
            break
        if len(line) > MAX_HEADER:
            raise FileFault(source.shown, "line ends" if b"\r" in line else "header")
    if b"\0" in line:
        raise FileFault(source.shown, "binary")
    return line


def _separator(path: str, bare: bytes) -> str:
    # Decided by the name of the file and its header alone, which are public.
    if re.search(r"\.(tsv|tab)(\.gz)?$", path.lower()):
        return "\t"
    return next((mark for mark in ",;\t" if mark.encode() in bare), ",")


class Shape(NamedTuple):
    """How many rows a CSV file has, and how many empty lines below them."""

    rows: int
    blanks: int


def csv_shape(source: Source, header: Header) -> Shape:
    """The number of lines below the header, each of which is a row with as many fields as the header.

    A line is a row or not by its own bytes, so that no line changes what another one is: docs/files.md. Only
    separators, line ends, quotes and what is beside a quote are looked at, which costs little beside parsing.
    Empty lines at the end are no rows, unless there is a single column: then one is an empty cell.
    """
    fields = len(header.names)
    separator = header.separator.encode()
    pattern = separator * (fields - 1) + b"\n"
    others = bytes(set(range(256)) - set(separator + b"\n"))
    rows, left, last = 0, b"", b"\n"
    ends: list[bytes] = []  # line ends that may turn out to be the end of the file
    for block in _outside(source, header):
        kept = block if fields == 1 else block.rstrip(b"\r\n")
        if not kept:
            ends.append(block)
            continue
        marks = b"".join([*ends, kept]).translate(None, others)
        ends = [block[len(kept) :]]
        last = kept[-1:]
        left += marks
        whole = len(left) // fields
        if left[: whole * fields] != pattern * whole:
            raise FileFault(source.shown, "ragged")
        rows += whole
        left = left[whole * fields :]
    if last != b"\n" or left:
        # The last line may lack its end.
        if left + b"\n" != pattern:
            raise FileFault(source.shown, "ragged")
        rows += 1
    return Shape(rows, _blanks(source, b"".join(ends), rows))


def _outside(source: Source, header: Header) -> Iterator[bytes]:
    """What is below the header, without what is inside quotes."""
    quotes = _Quotes(source, header.separator)
    skip = header.size
    for block in source.blocks():
        part = block[skip:]
        skip = max(0, skip - len(block))
        if b"\0" in part:
            raise FileFault(source.shown, "binary")
        yield quotes.take(part)
    yield quotes.end()


def _blanks(source: Source, end: bytes, rows: int) -> int:
    lines = end.split(b"\n")
    if not lines[-1]:
        lines.pop()
    below = lines[1:] if rows else lines
    if any(line not in (b"", b"\r") for line in below):
        raise FileFault(source.shown, "ragged")
    return len(below)


class _Quotes:
    """The rule of quotes, block by block: around a whole field, doubled inside it, closed in its line."""

    def __init__(self, source: Source, separator: str) -> None:
        self._shown = source.shown
        self._separator = ord(separator)
        # The last byte that was judged, and two that wait for what follows them. The text begins a line.
        self._seen = b"\n"
        self._open = False

    def take(self, block: bytes) -> bytes:
        """The text up to here, two bytes late, with NUL in place of every byte inside quotes."""
        block = self._seen + block
        self._seen = block[-3:]
        text = block[1:-2]
        if not text or not (self._open or b'"' in text):
            return text
        codes = np.frombuffer(block, dtype=np.uint8)
        quotes, ends = codes == ord('"'), codes == ord("\n")
        edges = quotes | ends | (codes == self._separator)
        before, after = edges[:-3], edges[2:-1] | ((codes[2:-1] == ord("\r")) & ends[3:])
        inside = _parity(quotes[1:-2], self._open)
        outside = ~inside
        self._open = bool(inside[-1])
        # Quotes open and close in turn. A doubled one closes and opens again at once.
        if np.count_nonzero(quotes[1:-2] & ~((inside & before) | (outside & after))):
            raise FileFault(self._shown, "quote")
        if np.count_nonzero(inside & ends[1:-2]):
            raise FileFault(self._shown, "quoted line end")
        return (codes[1:-2] * outside).tobytes()

    def end(self) -> bytes:
        """The last two bytes of the text; the end of a file ends a line as well."""
        rest = self.take(b"\n\n")
        if self._open:
            raise FileFault(self._shown, "quoted line end")
        return rest


def _parity(flags: Flags, first: bool) -> Flags:
    """Whether the flags up to each place, and one more if `first`, are odd in number."""
    bits = np.packbits(flags, bitorder="little")
    words = np.zeros(-(-len(bits) // 8), dtype="<u8")
    words.view(np.uint8)[: len(bits)] = bits
    for shift in (1, 2, 4, 8, 16, 32):
        words ^= words << np.uint64(shift)
    before = np.bitwise_xor.accumulate(np.append(np.uint64(first), words[:-1] >> np.uint64(63)))
    words ^= before * np.uint64(2**64 - 1)
    return np.unpackbits(words.view(np.uint8), count=len(flags), bitorder="little").view(np.bool_)
