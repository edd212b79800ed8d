"""Counts and sums: the private data as integers on a public grid, made in one pass by chunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.checks import one_of, whole
from sfumato.data.admission import admit
from sfumato.data.column import CHUNK, Category, Column
from sfumato.data.engine_column import EngineColumn
from sfumato.errors import InvalidParameter
from sfumato.grid import Cells, Edges, Floats, Grid, Ints, Lattice

NullRule = Literal["drop", "lower", "upper"]
NULL_RULES: tuple[NullRule, ...] = ("drop", "lower", "upper")

# A dense vector of counts larger than this belongs to a coarse grid with refinements.
MAX_DENSE = 2**26
MAX_ROWS = 2**62
# A chunk of products of two numbers below 2**18 adds up to less than 2**53.
_HALF = 18


@dataclass(frozen=True, eq=False)
class Counts:
    """How many records fall in each cell of a public grid.

    Guarantee:
        Exact integers for any counts up to 2**62 records; one record moves one cell by one. Private: nothing
        here may be published without a mechanism. Proof: docs/proofs/counting.md.

    >>> counts = Counts.of([0.1, 0.2, 0.9, float("nan")], Grid(0, 1, cells=2))
    >>> counts.cells.tolist(), counts.size, counts.sum, counts.sum_of_squares
    ([2, 1], 3, 1, 1)
    """

    grid: Cells
    cells: Ints

    def __post_init__(self) -> None:
        cells = np.asarray(self.cells)
        if cells.dtype.kind not in "iu" or cells.shape != (self.grid.cells,):
            raise InvalidParameter(f"cells must be {self.grid.cells} integers, one for each cell of the grid")
        frozen = cells.astype(np.int64)
        # A float sum is within 1e-9 of the true one, and so tells overflow before the exact one can wrap.
        wraps = frozen.min(initial=0) < 0 or frozen.sum(dtype=np.float64) > 1.5 * MAX_ROWS
        if wraps or int(frozen.sum()) > MAX_ROWS:
            raise InvalidParameter("cells must be non-negative and add up to at most 2**62")
        frozen.flags.writeable = False
        object.__setattr__(self, "cells", frozen)

    @classmethod
    def of(cls, values: Any, grid: Grid | Edges, *, nulls: NullRule = "drop") -> "Counts":
        """Count a column on a grid: values are clamped to it, nulls and NaN follow the rule.

        Raises:
            SchemaMismatch: the column does not store numbers.
        """
        one_of("nulls", nulls, NULL_RULES)
        cells = whole("cells", grid.cells, least=1, most=MAX_DENSE)
        column = admit(values)
        column.require("integer", "real")
        if isinstance(column, EngineColumn):
            return cls(grid, column.counts(grid, nulls))
        counted, missing = np.zeros(cells, dtype=np.int64), 0
        located, codes = np.empty(CHUNK), np.empty(CHUNK, dtype=np.int64)
        for chunk in column.chunks():
            spot, code = located[: len(chunk)], codes[: len(chunk)]
            grid.locate(chunk, spot)
            missing += settle(chunk, spot, 0.0)
            np.copyto(code, spot, casting="unsafe")
            counted += np.bincount(code, minlength=cells)
        # Nulls were counted in cell 0, so that no branch depends on the data.
        counted[0] -= missing
        if nulls != "drop":
            counted[0 if nulls == "lower" else -1] += missing
        return cls(grid, counted)

    @property
    def size(self) -> int:
        """The number of records counted."""
        return int(self.cells.sum())

    @property
    def sum(self) -> int:
        """The exact sum of the records' cell indices."""
        return self._power(1)

    @property
    def sum_of_squares(self) -> int:
        """The exact sum of the squares of the records' cell indices."""
        return self._power(2)

    def _power(self, power: int) -> int:
        # Python integers for any counts, so that the time does not follow the number of records.
        index = np.arange(len(self.cells), dtype=object) ** power
        return int(index @ self.cells.astype(object))


@dataclass(frozen=True)
class Sums:
    """Exact integer sums of records on a lattice: how many, of the points, of their squares."""

    size: int
    first: int
    second: int = 0

    @classmethod
    def of(cls, values: Any, lattice: Lattice, *, nulls: NullRule = "drop", squares: bool = False) -> "Sums":
        """Sum a column on a lattice: values are clamped and rounded, nulls and NaN follow the rule.

        Every partial sum of a chunk is an integer below 2**53, so that float64 adds it exactly in any order.

        >>> Sums.of([1.0, 2.2, 99.0], Lattice.over(0, 10, points=10, origin=0), squares=True)
        Sums(size=3, first=13, second=105)
        """
        one_of("nulls", nulls, NULL_RULES)
        column = admit(values)
        column.require("integer", "real")
        reach = max(abs(lattice.low), abs(lattice.high))
        if CHUNK * reach > 2**53 or (squares and reach >= 2 ** (2 * _HALF)):
            raise InvalidParameter(
                f"lattice must keep sums of {CHUNK} records below 2**53, got reach={reach}"
            )
        if isinstance(column, EngineColumn):
            return column.sums(lattice, nulls, squares=squares)
        # Whatever takes a null's place must be a point of the lattice; a dropped null adds 0, uncounted.
        place = {"drop": 0, "lower": lattice.low, "upper": lattice.high}[nulls]
        first = second = missing = 0
        points = np.empty(CHUNK)
        for chunk in column.chunks():
            point = points[: len(chunk)]
            lattice.locate(chunk, point)
            missing += settle(chunk, point, float(place))
            first += int(point.sum())
            second += squared(point, reach) if squares else 0
        return cls(column.rows - (missing if nulls == "drop" else 0), first, second)


def squared(points: Floats, reach: int) -> int:
    """The exact sum of the squares of a chunk of whole numbers of at most `reach`."""
    if CHUNK * reach**2 < 2**63:
        whole_numbers = points.astype(np.int64)
        return _product(whole_numbers, whole_numbers)
    # In two halves, so that float64 adds each of the three products exactly.
    high = np.floor(points * 2.0**-_HALF)
    low = points - high * 2.0**_HALF
    return (_product(high, high) << 2 * _HALF) + (_product(high, low) << _HALF + 1) + _product(low, low)


def _product(left: Any, right: Any) -> int:
    # In this thread: those of a linear-algebra library cost more than they save, above all on a busy machine.
    return int(np.einsum("i,i->", left, right))


def settle(chunk: Floats, located: Floats, place: float) -> int:
    """Put every NaN of the chunk at `place`; how many there were."""
    null = np.isnan(chunk)
    np.copyto(located, place, where=null)
    return int(np.count_nonzero(null))


def count_categories(values: Any, categories: Sequence[Category], *, other: bool = False) -> Ints:
    """How many records hold each public category; other values are left out or counted last."""
    counts, others = admit(values).tally(categories)
    return np.array([*counts, others] if other else counts, dtype=np.int64)


def count_places(column: Column, points: Floats, *, negated: bool) -> tuple[Ints, int]:
    """How many values have each number of public points below them, and how many nulls there are.

    With `negated` the negatives of the values are placed.

    >>> found, missing = count_places(admit([1.0, 2.0, None]), np.array([1.0, 1.5]), negated=False)
    >>> found.tolist(), missing
    ([1, 0, 1], 1)
    """
    if isinstance(column, EngineColumn):
        return column.places(points, negated=negated)
    found, missing = np.zeros(len(points) + 1, dtype=np.int64), 0
    for chunk in column.chunks():
        # The first point that is not below the value; NaN comes after all.
        found += np.bincount(
            np.searchsorted(points, -chunk if negated else chunk, side="left"), minlength=len(found)
        )
        missing += int(np.count_nonzero(np.isnan(chunk)))
    found[-1] -= missing
    return found, missing
