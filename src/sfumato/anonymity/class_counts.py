"""How often each value occurs in each class, kept as the pairs that occur, and exact sums of these."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
# The most that a number of rows or values can be asked to be: more rows than any table has here.
MOST = 2**31 - 1
# Integers stay exact below this; a class whose sums may be larger is added with integers of any size.
_SAFE = 2.0**61


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """The counts of the values of one column by class, sorted by class, then by value; no count is 0."""

    classes: int
    values: int
    owners: Ints
    codes: Ints
    counts: Ints

    @classmethod
    def of(cls, classes: NDArray[Any], count: int, codes: NDArray[Any], values: int) -> "ClassCounts":
        """Of rows: the class of each, one of `count`, and its value, one of `values`."""
        keys = classes.astype(np.int64) * values + codes
        if count * values <= 4 * len(keys) + 1000:
            every = np.bincount(keys, minlength=count * values)
            held = np.flatnonzero(every)
            counts = every[held].astype(np.int64, copy=False)
        else:
            keys.sort()
            first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
            held, counts = keys[first], np.diff(np.append(first, len(keys)))
        owners = held // max(values, 1)
        return cls(count, values, owners, held - owners * values, counts)

    @classmethod
    def of_table(cls, table: NDArray[Any]) -> "ClassCounts":
        """Of a table with a row for each class and a column for each value."""
        owners, codes = np.nonzero(table)
        counts = np.asarray(table)[owners, codes].astype(np.int64)
        return cls(table.shape[0], table.shape[1], owners, codes, counts)

    @cached_property
    def distinct(self) -> Ints:
        """How many values each class has."""
        return np.bincount(self.owners, minlength=self.classes).astype(np.int64, copy=False)

    @cached_property
    def ends(self) -> Ints:
        """Where the pairs of each class start, and where the last ones end."""
        return np.concatenate([[0], np.cumsum(self.distinct)])

    @cached_property
    def sizes(self) -> Ints:
        """How many rows each class has."""
        return self._sums(self.counts)

    def row(self, place: int) -> list[int]:
        """The counts of one class."""
        found: list[int] = self.counts[self.ends[place] : self.ends[place + 1]].tolist()
        return found

    def _sums(self, numbers: NDArray[Any]) -> NDArray[Any]:
        # Differences of running sums are right even where the running sums wrap around.
        running = np.concatenate([np.zeros(1, dtype=numbers.dtype), np.cumsum(numbers)])
        sums: NDArray[Any] = running[self.ends[1:]] - running[self.ends[:-1]]
        return sums

    @cached_property
    def _falling(self) -> Ints:
        """The counts, in every class from the largest to the smallest."""
        most = int(self.counts.max(initial=0))
        keys = self.owners * (most + 1) + (most - self.counts)
        keys.sort()
        return most - keys % (most + 1)

    @cached_property
    def largest(self) -> Ints:
        """The count of the most frequent value of each class."""
        padded = np.append(self._falling, 0)
        return np.where(self.distinct > 0, padded[self.ends[:-1]], 0)

    def without_top(self, top: int) -> Ints:
        """How many rows of each class do not have one of its `top` most frequent values."""
        running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self._falling)])
        start = self.ends[:-1]
        rest: Ints = self.sizes - (running[start + np.minimum(top, self.distinct)] - running[start])
        return rest

    @cached_property
    def entropies(self) -> NDArray[np.float64]:
        """The entropy of every class in nats, to the rounding of float64; 0 for an empty one."""
        terms = np.bincount(self.owners, weights=self.counts * np.log(self.counts), minlength=self.classes)
        n = np.maximum(self.sizes, 1).astype(np.float64)
        return np.asarray(np.maximum(np.log(n) - terms / n, 0.0), dtype=np.float64)

    def moved(self, total: Ints, *, ordered: bool) -> tuple[NDArray[Any], int]:
        """Earth mover's distances from the counts of a whole table: integers, and the scale that they share.

        The distance of a class is its integer divided by the scale, by its rows and by those of the table.
        """
        rows = int(total.sum())
        scale = max(self.values - 1, 1) if ordered else 2
        found: NDArray[Any] = self._ordered(total, rows) if ordered else self._equal(total, rows)
        large = self.sizes.astype(np.float64) * rows * max(self.values, 2) >= _SAFE
        if large.any():
            held, place = large[self.owners], np.cumsum(large) - 1
            part = ClassCounts(
                int(large.sum()), self.values, place[self.owners[held]], self.codes[held], self.counts[held]
            )
            found = found.astype(object)
            found[large] = part._ordered(total, rows, object) if ordered else part._equal(total, rows, object)
        return found, scale

    def _equal(self, total: Ints, rows: int, kind: type = np.int64) -> NDArray[Any]:
        sizes: NDArray[Any] = self.sizes.astype(kind)
        expected = sizes[self.owners] * total[self.codes]
        # Values that the class lacks are the whole table's rows less those of the values that it has.
        excess: NDArray[Any] = np.abs(self.counts.astype(kind) * rows - expected) - expected
        moved: NDArray[Any] = self._sums(excess) + sizes * rows
        return moved

    def _ordered(self, total: Ints, rows: int, kind: type = np.int64) -> NDArray[Any]:
        below = np.cumsum(total)  # rows of the table up to each value
        area = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(below)])
        sizes: NDArray[Any] = self.sizes.astype(kind)
        size, start = sizes[self.owners], self.codes
        running = np.cumsum(self.counts)
        before = np.concatenate([np.zeros(1, dtype=np.int64), running])[self.ends[:-1]]
        height = (running - before[self.owners]).astype(kind) * rows
        stop = np.append(start[1:], self.values)
        stop[self.ends[1:][self.distinct > 0] - 1] = self.values
        # Between two values of the class its share is constant, and that of the table crosses it once.
        level = (-(-height // np.maximum(size, 1))).astype(np.int64)
        cross = np.clip(np.searchsorted(below, level, side="left"), start, stop)
        under = (cross - start) * height - size * (area[cross] - area[start])
        over = size * (area[stop] - area[cross]) - (stop - cross) * height
        padded = np.append(start, 0)
        first = np.where(self.distinct > 0, area[padded[self.ends[:-1]]], 0)
        moved: NDArray[Any] = self._sums(under + over) + sizes * first
        return moved


# Counts of sensitive values by column: a table with a row for each class, or the pairs that occur.
Tables = Mapping[str, ClassCounts | Ints]


def counts_of(tables: Tables, column: str) -> ClassCounts:
    """The counts of a column by class, from whichever form they are given in."""
    table = tables[column]
    return table if isinstance(table, ClassCounts) else ClassCounts.of_table(table)
