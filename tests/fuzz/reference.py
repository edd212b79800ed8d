"""What plain Python says of a table: which rows count, in which group, and with which values."""

import datetime as dt
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tests.data.expression_trees import meaning
from tests.fuzz.cases import Ask, Case, Row, Side
from tests.fuzz.grammar import unit_key
from tests.fuzz.values import moment_of, number_of

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.data.expressions import Expression

Key = tuple[Any, ...]
# A longer text is not the name of a group.
LONGEST_KEY = 1_000


class Undetermined(Exception):
    """Plain Python cannot say: a choice of rows is random, or a date lies beyond Python's calendar."""


def _rounded(moment: dt.date) -> dt.date:
    """A datetime as float64 holds its seconds: microseconds of far years are rounded."""
    if not isinstance(moment, dt.datetime):
        return moment
    epoch = dt.datetime(1970, 1, 1)
    return epoch + dt.timedelta(seconds=(moment - epoch) / dt.timedelta(seconds=1))


class Reference:
    """One of the two tables, row by row."""

    def __init__(self, case: Case, side: Side) -> None:
        self.case = case
        self.places = {column.name: place for place, column in enumerate(case.columns)}
        self.rows = [self._held(row) for row in case.table(side)]
        if case.rows_per_unit is not None:
            self.rows = [row for row in self.rows if self._unit(row) is not None]
            held = Counter(self._unit(row) for row in self.rows)
            if max(held.values(), default=0) > min(case.rows_per_unit, case.groups_per_unit or math.inf):
                raise Undetermined("rows of a unit are chosen at random")

    def _held(self, row: Row) -> Row:
        """The row as its engine holds it: NumPy and pandas write a missing datetime as the least integer."""
        if self.case.engine not in ("numpy", "pandas"):
            return row
        dated = [column.stored.kind in ("date", "datetime") for column in self.case.columns]
        return tuple(
            None if is_date and value == -(2**63) else value
            for value, is_date in zip(row, dated, strict=True)
        )

    def _unit(self, row: Row) -> Any:
        return unit_key(row[self.places[self.case.unit]])

    def counted_keys(self, ask: Ask) -> dict[Key, int]:
        """The number of units, or of rows, of each key that the data hold."""
        holders: dict[Key, set[Any]] = {}
        for number, row in enumerate(self.rows):
            key = self.key(row, ask.by)
            if key is not None and self._counts(row, ask.where):
                unit = number if self.case.rows_per_unit is None else self._unit(row)
                holders.setdefault(key, set()).add(unit)
        return {key: len(units) for key, units in holders.items()}

    def columns(self, ask: Ask, keys: Sequence[Key], *, other: bool) -> list[Column]:
        """The column that is asked about, in each group, and of all other rows."""
        groups: list[list[Any]] = [[] for _ in range(len(keys) + other)]
        places = {key: place for place, key in enumerate(keys)}
        for row in self.rows:
            if self._counts(row, ask.where):
                key = self.key(row, ask.by)
                place = len(keys) if key is None else places.get(key, len(keys))
                if place < len(groups):
                    groups[place].append(self.value(row, ask.column))
        return [self._admitted(values, ask.column) for values in groups]

    def key(self, row: Row, by: Sequence[str]) -> Key | None:
        found = tuple(self._part(row, name) for name in by)
        return None if None in found else found

    def _part(self, row: Row, name: str) -> Any:
        value = row[self.places[name]]
        if isinstance(value, str):
            written = value.encode(errors="replace").decode()
            return value if len(value) <= LONGEST_KEY and written == value else None
        column = self.case.column(name)
        if column is not None and column.stored.kind == "real":
            return unit_key(number_of(value, column.stored))
        return value

    def _counts(self, row: Row, where: Mapping[str, Any] | Expression | None) -> bool:
        if isinstance(where, Expression):
            return meaning(where, self._roles(row)) is True
        return all(self._meets(row, name, condition) for name, condition in (where or {}).items())

    def _meets(self, row: Row, name: str, condition: Any) -> bool:
        value = row[self.places[name]]
        if isinstance(condition, sf.Between):
            column = self.case.column(name)
            number = None if column is None else number_of(value, column.stored)
            return number is not None and float(condition.ends[0]) <= number <= float(condition.ends[1])
        listed = condition if isinstance(condition, tuple) else (condition,)
        return value is not None and value in listed

    def _roles(self, row: Row) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for role, name in self.case.roles.items():
            value, column = row[self.places[name]], self.case.column(name)
            if column is None or column.stored.kind in ("text", "boolean") or value is None:
                found[role] = value
            elif column.stored.kind in ("date", "datetime"):
                try:
                    found[role] = _rounded(moment_of(value, column.stored))
                except OverflowError as beyond:
                    raise Undetermined("a date lies beyond Python's calendar") from beyond
            else:
                found[role] = number_of(value, column.stored)
        return found

    def value(self, row: Row, name: str) -> Any:
        if name in self.case.derived:
            found = meaning(self.case.derived[name], self._roles(row))
            return found + 0.0 if isinstance(found, float) else found
        return row[self.places[name]]

    def _admitted(self, values: list[Any], name: str) -> Column:
        """Values as a column of NumPy, which has their law."""
        column = self.case.column(name)
        kind = "real" if column is None else column.stored.kind
        missing = [value is None for value in values]
        if kind == "unknown":
            return admit(values, name)
        if kind == "text":
            return admit(np.array([*values, None], dtype=object)[:-1], name)
        if kind in ("integer", "boolean"):
            filled = [0 if value is None else value for value in values]
            wide = max(filled, default=0) > 2**63 - 1
            dtype = "?" if kind == "boolean" else "u8" if wide else "i8"
            return admit(np.ma.MaskedArray(np.array(filled, dtype=dtype), mask=missing), name)
        if column is not None:
            values = [number_of(value, column.stored) for value in values]
        return admit(np.array([math.nan if value is None else value for value in values], dtype=float), name)
