"""Ranks: a column on a fine grid, counted in coarse blocks and sorted only where a rank is asked for."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import one_of, whole
from sfumato.data.admission import admit
from sfumato.data.column import CHUNK, Column
from sfumato.data.counts import NULL_RULES, NullRule, settle
from sfumato.data.engine_column import EngineColumn
from sfumato.data.line import Line
from sfumato.data.spread import spread, spread_below
from sfumato.errors import InvalidParameter
from sfumato.grid import Grid, Ints

BLOCK_BITS = 16
# So few rows are one block and sorted whole, which costs less than looking for the ranks that matter.
FEW_ROWS = 2**14
# Up to so many stretches of blocks two comparisons a row are faster than a table.
FEW_STRETCHES = 3


def check_parts(parts: int) -> int:
    """The number of bits of a number of parts, a power of two."""
    bits = whole("parts", parts, least=1, most=2**30).bit_length() - 1
    if 1 << bits != parts:
        raise InvalidParameter(f"parts must be a power of two, got parts={parts}")
    return bits


class Ranks:
    """A column on a line of points: the cells of a fine grid, each divided into `parts`, a power of two.

    A cell that has several units on the `line` is divided into so many times as many points. The k-th record
    of a cell sits at a public place of it (`spread`), so that ties are points of their own and one record
    more or less still moves one count by one. Private: nothing here may be published without a mechanism.
    Memory beside the column is four bytes a row.

    >>> ranks = Ranks([0.5, 0.5, 3.0], Grid.of_step(0, 4, 0.5), parts=4)
    >>> ranks.size, ranks.points, ranks.positions(1, 3).tolist(), ranks.below(5), ranks.upto(6)
    (3, 36, [5, 6, 26], 0, 2)
    """

    def __init__(
        self,
        values: Any,
        grid: Grid,
        *,
        nulls: NullRule = "drop",
        parts: int = 1,
        line: Line | None = None,
    ) -> None:
        self.grid = grid
        self.line = Line(grid.cells) if line is None else line
        self._bits = check_parts(parts)
        self._column: Column = admit(values)
        self._column.require("integer", "real")
        self._nulls = one_of("nulls", nulls, NULL_RULES)
        few = self._column.rows <= FEW_ROWS
        block_bits = 0 if few else BLOCK_BITS
        self._shift = max((grid.cells - 1).bit_length() - block_bits, 0) if grid.cells > 2**BLOCK_BITS else 0
        self._cells = np.empty(self._column.rows, dtype=np.uint32)
        counts, self._missing = self._count(((grid.cells - 1) >> self._shift) + 1)
        self._ends: Ints = np.concatenate([[0], np.cumsum(counts)])
        self._wanted = np.zeros(len(counts), dtype=np.bool_)
        self._starts: Ints = np.zeros(len(counts) + 1, dtype=np.int64)
        self._sorted = np.empty(0, dtype=np.uint32)
        if few:
            self._sort(~self._wanted)

    @classmethod
    def of(
        cls, column: Column, grid: Grid, *, nulls: NullRule, parts: int, line: Line | None = None
    ) -> "Ranks":
        """The ranks of a column, wherever it lies."""
        if isinstance(column, EngineColumn):
            return column.ranks(grid, nulls, parts, line)
        return cls(column, grid, nulls=nulls, parts=parts, line=line)

    @property
    def size(self) -> int:
        """The number of records that count."""
        return int(self._ends[-1])

    @property
    def points(self) -> int:
        """The number of points of the line."""
        return self.line.units << self._bits

    def _count(self, blocks: int) -> tuple[Ints, int]:
        counted = np.zeros(blocks, dtype=np.int64)
        located, codes = np.empty(CHUNK), np.empty(CHUNK, dtype=np.int64)
        place = self.grid.cells - 1.0 if self._nulls == "upper" else 0.0
        missing, start = 0, 0
        for chunk in self._column.chunks():
            spot, code = located[: len(chunk)], codes[: len(chunk)]
            self.grid.locate(chunk, spot)
            missing += settle(chunk, spot, place)
            cells = self._cells[start : start + len(chunk)]
            np.copyto(cells, spot, casting="unsafe")
            np.right_shift(cells, self._shift, out=code, casting="unsafe")
            counted += np.bincount(code, minlength=blocks)
            start += len(chunk)
        # Nulls to be dropped stay among the cells, first of cell 0, and are left out when it is sorted.
        missing = missing if self._nulls == "drop" else 0
        counted[0] -= missing
        return counted, missing

    def refine(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Sort the cells of every block that holds a rank of one of the ranges; one pass for all of them."""
        if not self._shift or not self.size:
            return
        wanted = self._wanted.copy()
        for low, high in ranges:
            first, last = self._block(max(low, 1)), self._block(min(high, self.size))
            wanted[first : last + 1] = True
        self._sort(wanted)

    def refine_at(self, ranks: Ints) -> None:
        """The same for single ranks between 1 and the number of records."""
        if not self._shift:
            return
        wanted = self._wanted.copy()
        wanted[np.searchsorted(self._ends, ranks, side="left") - 1] = True
        self._sort(wanted)

    def _block(self, rank: int) -> int:
        """The block that holds the record of this rank."""
        return int(np.searchsorted(self._ends, rank, side="left")) - 1

    def _sort(self, wanted: NDArray[np.bool_]) -> None:
        if not self._shift or np.array_equal(wanted, self._wanted):
            return
        self._wanted = wanted
        cells = np.sort(self._cells if wanted.all() else self._gather(wanted))
        self._sorted = cells[self._missing :] if wanted[0] else cells
        np.cumsum(np.where(wanted, np.diff(self._ends), 0), out=self._starts[1:])

    def _gather(self, wanted: NDArray[np.bool_]) -> NDArray[np.uint32]:
        edges = np.flatnonzero(np.diff(wanted, prepend=False, append=False))
        parts = []
        for start in range(0, len(self._cells), CHUNK):
            cells = self._cells[start : start + CHUNK]
            if len(edges) <= 2 * FEW_STRETCHES:
                chosen = np.zeros(len(cells), dtype=np.bool_)
                for first, stop in (edges.reshape(-1, 2) << self._shift).tolist():
                    # Unsigned numbers below `first` wrap to large ones, so that one comparison does.
                    chosen |= cells - np.uint32(first) < stop - first
            else:
                chosen = wanted.take(cells >> self._shift)
            parts.append(cells[chosen])
        return np.concatenate(parts) if parts else self._cells

    def positions(self, first: int, last: int) -> Ints:
        """The points of the records numbered first..last, from 1, in order."""
        self._read(first, last)
        return self._at(np.arange(first, last + 1))

    def cells(self, first: int, last: int) -> Ints:
        """The cells of the records numbered first..last, from 1, in order."""
        self._read(first, last)
        return self._cells_at(np.arange(first, last + 1))

    def _read(self, first: int, last: int) -> None:
        if self._shift and first <= last:
            begin, end = self._block(first), self._block(last)
            if self._starts[end + 1] - self._starts[begin] != self._ends[end + 1] - self._ends[begin]:
                self.refine([(first, last)])

    def at(self, ranks: Ints) -> Ints:
        """The points of the records with these numbers, in increasing order."""
        if self._shift and not self._wanted[np.searchsorted(self._ends, ranks, side="left") - 1].all():
            self.refine_at(ranks)
        return self._at(ranks)

    def _cells_at(self, ranks: Ints) -> Ints:
        blocks: Ints = np.searchsorted(self._ends, ranks, side="left") - 1
        if not self._shift or not len(ranks):
            return blocks
        cells: Ints = self._sorted[self._starts[blocks] + ranks - 1 - self._ends[blocks]].astype(np.int64)
        return cells

    def _at(self, ranks: Ints) -> Ints:
        if not len(ranks):
            return np.empty(0, dtype=np.int64)
        if not self._shift:
            cells = self._cells_at(ranks)
            begins = self._ends[cells]
            return self._spread(cells, ranks - 1 - begins, self._ends[cells + 1] - begins)
        blocks = np.searchsorted(self._ends, ranks, side="left") - 1
        places = self._starts[blocks] + ranks - 1 - self._ends[blocks]
        cells = self._sorted[places].astype(np.int64)
        if not self._bits:
            return self.line.begins(cells)
        # Equal records are looked for whether there are any or not, so that ties do not show in the time.
        sought = self._sorted[places]  # of the type of what is searched, which saves a copy of it
        begins = np.searchsorted(self._sorted, sought, side="left")
        counts = np.searchsorted(self._sorted, sought, side="right") - begins
        return self._spread(cells, places - begins, counts)

    def _spread(self, cells: Ints, order: Ints, counts: Ints) -> Ints:
        found: Ints = self.line.begins(cells) << self._bits
        if self._bits:
            # The places of a cell are as many points apart as it has units.
            found += spread(order, counts, self._bits) * self.line.widths(cells)
        return found

    def _of_cell(self, cell: int) -> tuple[int, int]:
        """How many records are below a cell, and how many below the next one."""
        block = cell >> self._shift
        low, high = int(self._ends[block]), int(self._ends[block + 1])
        if not self._shift or low == high:
            return low, high
        if not self._wanted[block]:
            self.refine([(low + 1, high)])
        start = int(self._starts[block])
        cells = self._sorted[start : start + high - low]
        below, upto = np.searchsorted(cells, np.array([cell, cell + 1], dtype=np.int64))
        return low + int(below), low + int(upto)

    def below(self, point: int) -> int:
        """How many records are below a point."""
        if point >= self.points:
            return self.size
        cell = self.line.cell(point >> self._bits)
        begin, end = self.line.begins(cell), self.line.begins(cell + 1)
        low, high = self._of_cell(cell)
        # Places are a width apart, and the first one is where the cell begins.
        place = -(-(point - (begin << self._bits)) // (end - begin))
        return low + spread_below(place, high - low, self._bits)

    def upto(self, point: int) -> int:
        """How many records are at or below a point."""
        return self.below(point + 1)

    def begins(self) -> Ints:
        """The first point of each cell, for audits on small grids."""
        return self.line.begins(np.arange(self.line.cells)) << self._bits

    def below_cells(self, cells: Ints) -> Ints:
        """How many records are below the first point of each cell; one past the last counts all."""
        inside = cells[cells < self.line.cells]
        if self._shift:
            wanted = self._wanted.copy()
            blocks = inside >> self._shift
            # Nothing is to be sorted in an empty block.
            wanted[blocks[self._ends[blocks + 1] > self._ends[blocks]]] = True
            self._sort(wanted)
        last = self.line.cells
        found = [self.size if cell >= last else self._of_cell(cell)[0] for cell in cells.tolist()]
        return np.array(found, dtype=np.int64)
