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
from typing import Literal

import numpy as np

from sfumato.data.file_faults import Fault, FileFault, fault_of, shown_path, twice_named

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
Format = Literal["csv", "parquet", "arrow"]

# Small enough for the caches of a processor.
BLOCK = 2**18
MAX_HEADER = 2**24
MAX_LINE = 2**24
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
# All bytes but a separator and LF, by the separator.
_OTHERS = {mark: bytes(set(range(256)) - set(mark + b"\n")) for mark in (b",", b";", b"\t")}


@dataclass(frozen=True)
class Source:
    """A file that was looked at: its absolute path, what it holds, and whether gzip is around it.

    With `most`, a file in gzip that unpacks to more bytes is refused.
    """

    path: str
    shown: str
    holds: Format
    gzipped: bool
    stamp: tuple[int, ...]
    most: int | None = None

    @property
    def size(self) -> int:
        """How many bytes the file has, packed or not."""
        return self.stamp[2]

    def blocks(self) -> Iterator[bytes]:
        """The bytes of the file, unpacked, block by block; what the system reports becomes a fault."""
        found: FileFault | None = None
        read = 0
        try:
            with gzip.open(self.path) if self.gzipped else open(self.path, "rb", buffering=0) as file:
                while block := file.read(BLOCK):
                    read += len(block)
                    if self.gzipped and self.most is not None and read > self.most:
                        words = f"unpacks to more than {self.most >> 20:,} MiB; unpack it first"
                        raise FileFault(self.shown, "gzip", words)
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
    # Of text the first line alone decides: it is public, and no line below it changes the fault.
    line = first.partition(b"\n")[0]
    if not line.removeprefix(_BOM).strip():
        return "empty"
    if first.startswith(_OLE):
        return "excel"
    if first.startswith(_ZIP):
        return "excel" if b"[Content_Types].xml" in first or b"xl/" in first else "archive"
    if first.startswith((*_COMPRESSED, _GZIP, *_PARQUET)):
        return "compression"
    if first.startswith(_UTF16):
        return "utf-16"
    return "binary" if b"\0" in line else None


@dataclass(frozen=True)
class Header:
    """The first line of a CSV file: names, separator, its text, and how many bytes it takes."""

    names: tuple[str, ...]
    separator: str
    line: str
    size: int


def csv_header(source: Source) -> Header:
    """The header of a CSV file; columns may lack a name, but no name may occur twice."""
    record = _first_line(source)
    found: FileFault | None = None
    names: list[str] = []
    line = record.removeprefix(_BOM).removesuffix(b"\n").removesuffix(b"\r")
    bare = _QUOTED.sub(b"", line)
    separator = _separator(source.path, bare)
    fault = _quote_fault(line + b"\n", separator.encode())
    if fault is not None:
        raise FileFault(source.shown, fault)
    try:
        text = line.decode()
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except UnicodeDecodeError:
        found = FileFault(source.shown, "encoding")
    except csv.Error:
        found = FileFault(source.shown, "line ends" if b"\r" in bare else "header")
    else:
        names = rows[0] if rows else []
        if b"\r" in bare:
            found = FileFault(source.shown, "line ends")
        elif len(names) > MAX_COLUMNS:
            words = f"must have at most {MAX_COLUMNS:,} columns; got {len(names):,}. Save it as Parquet"
            found = FileFault(source.shown, "header", words)
        elif len(rows) != 1 or not any(names) or len(max(names, key=len)) > MAX_NAME:
            found = FileFault(source.shown, "header")
    if found is not None:
        raise found
    require_distinct(source.shown, names)
    return Header(tuple(names), separator, text, len(record))


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


def csv_rows(source: Source, header: Header) -> int:
    """Count the lines below the header; each must be a row with as many fields as the header.

    A line is a row or has a fault by its own bytes, so that no line changes what another one is:
    docs/files.md. Of several faulty lines the first one counts.
    """
    return sum(checked_lines(source, header, lines) for lines in whole_lines(source, header.size))


def checked_lines(source: Source, header: Header, lines: bytes) -> int:
    """Count whole lines, each of which must be a row."""
    found = _rows_or_fault(lines, header)
    if isinstance(found, int):
        return found
    alone = (_rows_or_fault(line + b"\n", header) for line in lines[:-1].split(b"\n"))
    raise FileFault(source.shown, next(fault for fault in alone if not isinstance(fault, int)))


def whole_lines(source: Source, skip: int) -> Iterator[bytes]:
    """What follows the first bytes of a file, in parts of whole lines; a last line without end gets one."""
    parts: list[bytes] = []
    size = 0
    for block in source.blocks():
        part = block[skip:]
        skip = max(0, skip - len(block))
        end = part.rfind(b"\n") + 1
        if size + (part.find(b"\n") if end else len(part)) > MAX_LINE:
            start = b"".join([*parts, part])[:MAX_LINE]
            raise FileFault(source.shown, "binary" if b"\0" in start else "long line")
        if end:
            yield b"".join([*parts, part[:end]])
            parts, size = [], 0
        parts.append(part[end:])
        size += len(parts[-1])
    if size:
        yield b"".join([*parts, b"\n"])


def _rows_or_fault(lines: bytes, header: Header) -> int | Fault:
    """The number of whole lines, or the fault of one of them; that of a single line follows from it alone.

    Only separators, line ends, quotes and what is next to a quote are looked at, which costs little next to
    parsing.
    """
    if b"\0" in lines:
        return "binary"
    if not _is_utf8(lines):
        return "encoding"
    separator = header.separator.encode()
    fault = _quote_fault(lines, separator)
    if fault is not None:
        return fault
    outside = _outside_quotes(lines)
    if b"\r" in outside and outside.count(b"\r") != outside.count(b"\r\n"):
        return "line ends"
    marks = outside.translate(None, _OTHERS[separator])
    pattern = separator * (len(header.names) - 1) + b"\n"
    rows = len(marks) // len(pattern)
    return rows if marks == pattern * rows else "ragged"


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _quote_fault(lines: bytes, separator: bytes) -> Fault | None:
    """Check the rule of quotes: around a whole field, doubled inside it, closed in its line."""
    if b'"' not in lines:
        return None
    # The first byte begins a line, and what is looked at after the last one is a line end too.
    codes = np.frombuffer(b"\n" + lines + b"\n\n", dtype=np.uint8)
    quotes, ends = codes == ord('"'), codes == ord("\n")
    edges = quotes | ends | (codes == ord(separator))
    before, after = edges[:-3], edges[2:-1] | ((codes[2:-1] == ord("\r")) & ends[3:])
    inside = _parity(quotes[1:-2])
    # Quotes open and close in turn. A doubled one closes and opens again at once.
    if np.count_nonzero(quotes[1:-2] & ~((inside & before) | (~inside & after))):
        return "quote"
    return "quoted line end" if np.count_nonzero(inside & ends[1:-2]) else None


def _outside_quotes(lines: bytes) -> bytes:
    """The text with NUL in place of every byte inside quotes, which must be sound."""
    if b'"' not in lines:
        return lines
    codes = np.frombuffer(lines, dtype=np.uint8)
    return (codes * ~_parity(codes == ord('"'))).tobytes()


def _parity(flags: Flags) -> Flags:
    """Whether the flags up to each place are odd in number."""
    bits = np.packbits(flags, bitorder="little")
    words = np.zeros(-(-len(bits) // 8), dtype="<u8")
    words.view(np.uint8)[: len(bits)] = bits
    for shift in (1, 2, 4, 8, 16, 32):
        words ^= words << np.uint64(shift)
    before = np.bitwise_xor.accumulate(np.append(np.uint64(0), words[:-1] >> np.uint64(63)))
    words ^= before * np.uint64(2**64 - 1)
    return np.unpackbits(words.view(np.uint8), count=len(flags), bitorder="little").view(np.bool_)
