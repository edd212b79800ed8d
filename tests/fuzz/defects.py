"""Planted defects, one for each thing that is compared: a comparison that cannot fail shows nothing."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from sfumato.data import contributions, files, selection
from sfumato.data.matches import Matches
from sfumato.data.memory_table import MemoryReading, MemoryTable
from sfumato.data.selection import Selections
from sfumato.errors import InvalidParameter
from sfumato.session import Session


@dataclass(frozen=True)
class Defect:
    """A defect, where it shows, and by which check it has to be found within how many cases."""

    planted: Callable[[], AbstractContextManager[Any]]
    check: str
    cases: int
    engines: tuple[str, ...] = ("numpy",)


def _ignored_filter() -> Any:
    """A filter that every row passes."""
    return patch.object(Matches, "rows", lambda matches, column: np.ones(column.rows, dtype=np.bool_))


def _one_row_more() -> Any:
    """One row more of each unit than its bound."""
    kept = contributions.kept
    return patch.object(selection, "kept", lambda ids, most, bits: kept(ids, most + 1, bits))


@contextmanager
def _after_reading(act: Callable[[Any], None]) -> Iterator[None]:
    """Do something with every part that is read, after the charge."""
    parts = MemoryReading.parts

    def read(reading: MemoryReading, *about: Any) -> Any:
        found = parts(reading, *about)
        for column in found:
            act(column)
        return found

    with patch.object(MemoryReading, "parts", read):
        yield


def _is_odd(column: Any) -> bool:
    return column.kind in ("integer", "real") and any((chunk > 2).any() for chunk in column.chunks())


def _warning() -> Any:
    """A warning where a value is large."""

    def act(column: Any) -> None:
        if _is_odd(column):
            warnings.warn("some values are large", stacklevel=2)

    return _after_reading(act)


def _error() -> Any:
    """A refusal where a value is large."""

    def act(column: Any) -> None:
        if _is_odd(column):
            raise InvalidParameter("values must not be large")

    return _after_reading(act)


def _log() -> Any:
    """A line on standard error for each part, with its number of rows."""
    import sys

    return _after_reading(lambda column: print(f"{column.rows} rows", file=sys.__stderr__))


@contextmanager
def _charge() -> Iterator[None]:
    """A second charge where a table has an odd number of rows."""
    charge = Session._charge

    def charged(session: Session, item: Any, **about: Any) -> None:
        charge(session, item, **about)
        table: Any = session._data._table
        if len(next(iter(table._columns.values()))) % 2:
            charge(session, item)

    with patch.object(Session, "_charge", charged):
        yield


@contextmanager
def _first_mark() -> Iterator[None]:
    """A byte-order mark that is not read at the start of the first line below the header."""
    read = files.read

    def without(path: Path, *about: Any, **others: Any) -> Any:
        header, _, lines = Path(path).read_bytes().partition(b"\n")
        Path(path).write_bytes(header + b"\n" + lines.removeprefix("\ufeff".encode()))
        return read(path, *about, **others)

    with patch.object(files, "read", without):
        yield


@contextmanager
def _pattern() -> Iterator[None]:
    """A column that is found by the pattern which its name is."""
    column = MemoryTable.column

    def found(table: MemoryTable, name: Any) -> Any:
        inner = name[1:-1] if isinstance(name, str) and name.startswith("^") else name
        return column(table, inner if inner in table.names else name)

    with patch.object(MemoryTable, "column", found):
        yield


def _rows_of_other_groups() -> Any:
    """Rows of no group that are counted in the first one."""
    order = Selections._order

    def mixed(selections: Selections, *about: Any) -> Any:
        rows, starts = order(selections, *about)
        return rows, np.array([starts[0], *[starts[-1]] * (len(starts) - 1)])

    return patch.object(Selections, "_order", mixed)


DEFECTS: dict[str, Defect] = {
    "a filter that ignores its condition": Defect(_ignored_filter, "rows", 60),
    "a row more than a unit may have": Defect(_one_row_more, "loss", 200),
    "rows in the wrong group": Defect(_rows_of_other_groups, "rows", 60),
    "a warning that depends on a value": Defect(_warning, "warnings", 60),
    "an error that depends on a value": Defect(_error, "error", 60),
    "a log that depends on the rows": Defect(_log, "logs", 60),
    "a charge that depends on the rows": Defect(_charge, "charges", 60),
    "a mark lost on the first line": Defect(_first_mark, "rows", 120, ("csv",)),
    "columns selected by patterns": Defect(_pattern, "rows", 200),
}
