"""Public conditions on one column, and how many records meet them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.data.codes import Flags
from sfumato.data.column import Category, Column
from sfumato.data.counts import Sums
from sfumato.data.engine_column import EngineColumn


@dataclass(frozen=True)
class Matches:
    """A public condition: the column is true, equals one of some categories, or lies between two numbers.

    >>> from sfumato.data.admission import admit
    >>> Matches(between=(18, 65)).sums(admit([17, 18, 40]))
    Sums(size=3, first=2, second=0)
    """

    equals: tuple[Category, ...] = ()
    between: tuple[float, float] | None = None

    def facts(self) -> list[Any]:
        """The condition in JSON's types, exactly."""
        if self.between is None:
            return ["equals", list(self.equals)]
        return ["between", [end.hex() for end in self.between]]

    def require(self, column: Column) -> None:
        """Refuse a column of a kind that the condition does not apply to."""
        if self.equals:
            column.require_categories(self.equals)
        elif self.between is None:
            column.require("boolean", hint="; give equals= or between= to say which values count")
        else:
            column.require("integer", "real", hint="; between= needs numbers")

    def sums(self, column: Column) -> Sums:
        """The number of non-null records, and of those that match."""
        self.require(column)
        if isinstance(column, EngineColumn):
            return column.matched(self)
        if self.equals:
            counts, others = column.tally(self.equals)
            return Sums(sum(counts) + others, sum(counts))
        low, high = self._range
        size = first = 0
        for chunk in column.chunks():
            size += len(chunk) - int(np.count_nonzero(np.isnan(chunk)))
            first += int(np.count_nonzero((chunk >= low) & (chunk <= high)))
        return Sums(size, first)

    def rows(self, column: Column) -> Flags:
        """Which rows match; a null never does."""
        self.require(column)
        if self.equals:
            return column.codes(self.equals) < len(self.equals)
        low, high = self._range
        found, start = np.empty(column.rows, dtype=np.bool_), 0
        for chunk in column.chunks():
            # A comparison with NaN is False.
            np.logical_and(chunk >= low, chunk <= high, out=found[start : start + len(chunk)])
            start += len(chunk)
        return found

    @property
    def _range(self) -> tuple[float, float]:
        return self.between or (1.0, 1.0)
