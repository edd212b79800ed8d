"""Text of others for terminals and spreadsheets: nothing in it steers a terminal or runs as a formula."""

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

# Control characters, line separators, marks of direction and byte order marks: they steer terminals, break
# lines, or let a line read otherwise than it is written.
_STEERING = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"
# With these a formula begins, in some spreadsheet: = + - @, their full-width and small forms, the minus sign.
_BEGINS = "=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"
# What a spreadsheet may skip before it.
_SKIPPED = "[\\s\"'\xad\u200b-\u200d\u2060\ufeff]*"
# A number reads as a number, and a lone hyphen often stands for a missing value.
_HARMLESS = " *(?:[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?|-) *"
# A program that expects another separator cuts a cell there, and the rest of it is a cell of its own.
_INNER = re.compile(f"(?<=[,;])(?!{_HARMLESS}(?:[,;]|$))({_SKIPPED})([{_BEGINS}])")
_UNSAFE = re.compile(f"^(?!{_HARMLESS}$){_SKIPPED}[{_BEGINS}']|{_INNER.pattern}|[{_STEERING}]")
# For Polars, whose expressions cannot look ahead: more than is unsafe, and never less.
_SUSPECT = f"^{_SKIPPED}[{_BEGINS}']|[,;]{_SKIPPED}[{_BEGINS}]|[{_STEERING}]"


def visible(text: str) -> str:
    """Write what steers a terminal or turns a line around as an escape; line ends stay.

    >>> visible("red \\x1b[31m") == r"red \\x1b[31m"
    True
    """
    return re.sub(f"(?!\n)[{_STEERING}]", lambda found: _escape(found[0]), text)


def csv_cell(text: str) -> str:
    r"""A text as a cell of a CSV file that no spreadsheet reads as a formula.

    A cell that would begin a formula, begins with an apostrophe, or holds control characters or marks of
    direction gets an apostrophe in front; in such a cell, these characters and backslashes are escaped as in
    Python. All other cells stay as they are, numbers such as -5 among them. Two texts never give one cell.

    >>> print(csv_cell("=1+1"), csv_cell("-5"), csv_cell("it's"), csv_cell("'tis"), csv_cell("a;=1+1"))
    '=1+1 -5 it's ''tis 'a;\x3d1+1
    """
    if not _UNSAFE.search(text):
        return text
    escaped = re.sub(f"[{_STEERING}]", lambda found: _escape(found[0]), text.replace("\\", "\\\\"))
    return "'" + _INNER.sub(lambda found: found[1] + _escape(found[2]), escaped)


def csv_bytes(frame: "pl.DataFrame", *, separator: str = ",") -> bytes:
    """A frame as a CSV file: texts and column names as cells by `csv_cell`, numbers as they are."""
    import polars as pl

    safe = {csv_cell(column.name): _safe_column(column) for column in frame.iter_columns()}
    written = io.BytesIO()
    pl.DataFrame(safe).write_csv(written, separator=separator)
    return written.getvalue()


def _safe_column(column: "pl.Series") -> "pl.Series":
    import polars as pl

    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return column
    # Even a series reads its own name as a pattern, such as ^x$.
    texts = column.alias("").cast(pl.String)
    suspect = texts.str.contains(_SUSPECT) & ~texts.str.contains(f"^{_HARMLESS}$")
    cells = texts.filter(suspect).unique().to_list()
    return texts.replace(cells, [csv_cell(cell) for cell in cells]) if cells else texts


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
