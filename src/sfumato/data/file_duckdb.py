"""Files as relations of DuckDB, each on a connection of its own."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

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
from sfumato.data.file_scans import Lines, Wanted, place
from sfumato.data.file_types import FileKind
from sfumato.errors import MissingExtra

_TYPES = {"integer": "BIGINT", "real": "DOUBLE", "boolean": "BOOLEAN", "text": "VARCHAR"}
_TYPES |= {"date": "DATE", "datetime": "TIMESTAMP"}


class DuckdbScanner:
    """Scans by DuckDB."""

    def __init__(self) -> None:
        try:
            import duckdb
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
        columns = ", ".join(f"'{place(i)}': 'VARCHAR'" for i in range(form.columns))
        options = {
            "columns": f"{{{columns}}}",
            "auto_detect": "false",
            "header": "false",
            "skip": "1",
            "delim": f"chr({ord(form.separator)})",
            "quote": "'\"'",
            "escape": "'\"'",
            "strict_mode": "true",
            "null_padding": "false",
            "ignore_errors": "false",
            "compression": "'gzip'" if form.gzipped else "'none'",
            "hive_partitioning": "false",
        }
        return self._scan("read_csv", form.pieces, options)

    def stored(self, pieces: Sequence[Piece], wanted: Sequence[Wanted], folder: str | None) -> Any:
        if pieces[0].source.holds == "arrow":
            # The dataset is read again, batch by batch, whenever the relation is.
            from pyarrow import dataset

            found = dataset.dataset([piece.source.path for piece in pieces], format="ipc")
            return self._base.from_arrow(found)
        options = {"hive_partitioning": str(folder is not None).lower()}
        if folder is not None:
            options["hive_types_autocast"] = "false"
        return self._scan("read_parquet", pieces, options)

    def _scan(self, function: str, pieces: Sequence[Piece], options: Mapping[str, str]) -> Any:
        patterns = [_literal(piece) for piece in pieces]
        listed = ", ".join(f"{name} = {value}" for name, value in options.items())
        return self._base.sql(f"select * from {function}([{', '.join(map(_text, patterns))}], {listed})")

    def read(self, frame: Any, wanted: Sequence[Wanted], said: Mapping[str, str | None]) -> Any:
        made = []
        for each in wanted:
            cell = _identifier(each.place)
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
