"""What can be wrong with a file: a short list of public kinds, each with its words and without a value."""

import os
from collections.abc import Sequence
from typing import Literal, get_args

from sfumato.checks import shown
from sfumato.errors import SchemaMismatch

Fault = Literal[
    "missing",
    "directory",
    "special",
    "permission",
    "unreadable",
    "changed",
    "empty",
    "excel",
    "archive",
    "compression",
    "gzip",
    "utf-16",
    "encoding",
    "binary",
    "line ends",
    "header",
    "duplicate column",
    "missing column",
    "ragged",
    "quote",
    "quoted line end",
    "long line",
    "parse",
    "parquet",
    "arrow",
    "stored type",
    "values",
    "no files",
    "mixed files",
    "file name",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)

_WORDS: dict[Fault, str] = {
    "missing": "does not exist",
    "directory": "is a directory; name a CSV, Parquet or Arrow file",
    "special": "is no regular file; save it as a CSV or Parquet file first",
    "permission": "cannot be opened: this user may not read it",
    "unreadable": "cannot be read: the operating system reports an error",
    "changed": "was changed while it was read; try again when it is complete",
    "empty": "is empty: it has no header in its first line",
    "excel": "is an Excel workbook; save it as CSV UTF-8",
    "archive": "is a zip archive; unpack it and name the CSV or Parquet file inside",
    "compression": "is compressed in a way that is not read; unpack it, or compress it by gzip",
    "gzip": "is compressed by gzip, but cut short or damaged",
    "utf-16": "is UTF-16 text; save it as CSV UTF-8",
    "encoding": "is not UTF-8 text; save it as CSV UTF-8",
    "binary": "holds NUL bytes, so it is no text file",
    "line ends": "has line ends of old Macintosh computers (CR alone), or a CR in a row outside quotes; "
    "save it with LF or CR LF",
    "header": "must begin with one line of column names",
    "ragged": "has rows with more or fewer fields than its header, or an empty line; "
    "remove empty lines, also at the end",
    "quote": "has a quote that is never closed, or text beside a quoted field; "
    "quotes must be around a whole field, and doubled inside it",
    "quoted line end": "has a line end inside quotes, or a quote that is not closed in its line; "
    "each row must be one line: write spaces for the line ends inside fields, or save the table as Parquet",
    "long line": "has a line of more than 16 MiB; save it as Parquet",
    "parse": "cannot be read as a table",
    "parquet": "is no Parquet file, or one that is cut short, damaged or encrypted",
    "arrow": "is no Arrow IPC file (Feather version 2), or one that is cut short or damaged",
    "no files": "holds no file; those whose names begin with . or _ are passed over",
    "mixed files": "is not of the format of the other files there",
    "file name": "has a name that this engine cannot read",
}
# A file without a header begins with somebody's row, so that no word of such a line is shown.
_NO_HEADER = "its first line must hold the names of the columns, and some of it are numbers"
_VALUES = {
    "integer": "whole number of 64 bits",
    "real": "number",
    "boolean": "true or false",
    "text": "sound text",
    "date": "date such as 2026-01-31",
    "datetime": "date and time such as 2026-01-31 12:00:00",
}


class FileFault(SchemaMismatch):
    """A file cannot be read as declared; the message has the kind of fault and never a value or a row.

    Guarantee:
        Nothing was charged. Which kind of fault a file has is treated as public (SECURITY.md); beyond it, the
        message shows the path, names of columns and types.

    >>> from sfumato.data import files
    >>> files.header("no-such-file.csv")
    Traceback (most recent call last):
    sfumato.data.file_faults.FileFault: no-such-file.csv does not exist
    """

    def __init__(self, path: str, fault: Fault, words: str = "", column: str | None = None) -> None:
        super().__init__(f"{path} {words or _WORDS[fault]}")
        self.path = path
        self.fault = fault
        self.column = column


def fault_of(path: str, error: OSError) -> FileFault:
    """The fault behind an error of the operating system, whose text is not passed on."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return FileFault(path, "missing")
    if isinstance(error, IsADirectoryError):
        return FileFault(path, "directory")
    return FileFault(path, "permission" if isinstance(error, PermissionError) else "unreadable")


def no_such_column(path: str, name: object, names: tuple[str, ...]) -> FileFault:
    """A needed column is not in the header; the first 20 that are there are listed."""
    words = f"has no column {shown(name)}; "
    if any(map(is_number, names)):
        words += _NO_HEADER
    else:
        listed = ", ".join(map(shown, names[:20])) or "none"
        words += f"its columns are {listed}{', ...' if len(names) > 20 else ''}"
    return FileFault(path, "missing column", words, str(name))


def is_number(name: str) -> bool:
    """Whether a name of a column is a number, as a value of a file without a header is."""
    try:
        float(name)
    except ValueError:
        return False
    return True


def twice_named(path: str, name: str, names: Sequence[str]) -> FileFault:
    """Two columns have the same name, which is told unless the line looks like somebody's row."""
    if any(map(is_number, names)):
        return FileFault(path, "duplicate column", f"has two columns of one name; {_NO_HEADER}")
    return FileFault(path, "duplicate column", f"has two columns named {shown(name)}", name)


def not_as_declared(path: str, name: str, kind: str) -> FileFault:
    """A cell of the column is not of the declared kind; which cell, and what it holds, stays untold."""
    words = (
        f"does not fit: column {shown(name)} is declared {kind}, but the file holds text there that is no "
    )
    return FileFault(path, "values", words + _VALUES[kind], name)


def stored_otherwise(path: str, name: str, kind: str, stored: str) -> FileFault:
    """A Parquet file stores another type than the declared one, which is given by its bare name."""
    words = f"does not fit: column {shown(name)} is declared {kind}, but the file stores {stored}"
    return FileFault(path, "stored type", words, name)


def shown_path(path: str | os.PathLike[str]) -> str:
    """A path as it was given, for messages."""
    text = os.fspath(path)
    return text if text.isprintable() and len(text) <= 500 else shown(text)
