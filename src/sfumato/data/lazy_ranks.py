"""Ranks of a column that an engine holds: blocks first, and cells where a rank is asked for."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.data.counts import NullRule
from sfumato.data.lazy_axes import Axis, GridAxis
from sfumato.data.line import Line
from sfumato.data.ranks import BLOCK_BITS, Ranks, check_parts
from sfumato.errors import EngineFault
from sfumato.grid import Grid, Ints

if TYPE_CHECKING:
    from sfumato.data.lazy_column import LazyColumn

# All groups together have about so many blocks, as bits, and each has some.
_ALL_BITS, _LEAST_BITS = 18, 8


class LazyRanks(Ranks):
    """The same answers as those of a column in memory, from counts alone.

    One pass counts blocks, another the cells of the blocks that matter. What is held follows the blocks and
    the distinct cells in those that were asked for, never the rows.
    """

    def __init__(
        self,
        column: "LazyColumn",
        axis: Axis,
        nulls: NullRule,
        *,
        bits: int = 0,
        line: Line | None = None,
    ) -> None:
        self.line = Line(axis.cells) if line is None else line
        self._bits = bits
        self._lazy, self._axis, self._nulls = column, axis, nulls
        spread = max(_ALL_BITS - (column.groups - 1).bit_length(), _LEAST_BITS)
        block_bits = min(BLOCK_BITS, spread)
        self._shift = max((axis.cells - 1).bit_length() - block_bits, 0)
        counts = column.blocks(axis, self._shift, nulls)
        self._ends: Ints = np.concatenate([[0], np.cumsum(counts)])
        self._wanted = np.zeros(len(counts), dtype=np.bool_)
        # The distinct cells of wanted blocks, and how many records are at or below each of these.
        self._distinct: Ints = np.empty(0, dtype=np.int64)
        self._upto: Ints = np.empty(0, dtype=np.int64)
        self._starts: Ints = np.zeros(len(counts) + 1, dtype=np.int64)

    @classmethod
    def on(
        cls, column: "LazyColumn", grid: Grid, nulls: NullRule, parts: int, line: Line | None = None
    ) -> "LazyRanks":
        """The ranks on a grid, each unit of a cell divided into parts."""
        found = cls(column, GridAxis(grid), nulls, bits=check_parts(parts), line=line)
        found.grid = grid
        return found

    def _sort(self, wanted: NDArray[np.bool_]) -> None:
        new = np.flatnonzero(wanted & ~self._wanted & (np.diff(self._ends) > 0))
        if len(new):
            cells, counts = self._lazy.refined(self._axis, self._shift, tuple(new.tolist()), self._nulls)
            held_now = np.zeros(len(self._ends) - 1, dtype=np.int64)
            np.add.at(held_now, cells >> self._shift, counts)
            if (held_now[new] != np.diff(self._ends)[new]).any():
                raise EngineFault("the table was not the same when it was read again")
            held = np.diff(self._upto, prepend=0)
            order = np.argsort(np.concatenate([self._distinct, cells]), kind="stable")
            self._distinct = np.concatenate([self._distinct, cells])[order]
            self._upto = np.cumsum(np.concatenate([held, counts])[order])
        self._wanted = wanted
        np.cumsum(np.where(wanted, np.diff(self._ends), 0), out=self._starts[1:])

    def _cells_at(self, ranks: Ints) -> Ints:
        if not len(ranks) or not self._shift:
            return super()._cells_at(ranks)
        blocks = np.searchsorted(self._ends, ranks, side="left") - 1
        places = self._starts[blocks] + ranks - 1 - self._ends[blocks]
        return self._distinct[np.searchsorted(self._upto, places, side="right")]

    def _at(self, ranks: Ints) -> Ints:
        if not len(ranks) or not self._shift:
            return super()._at(ranks)
        blocks = np.searchsorted(self._ends, ranks, side="left") - 1
        places = self._starts[blocks] + ranks - 1 - self._ends[blocks]
        found = np.searchsorted(self._upto, places, side="right")
        cells = self._distinct[found]
        begins = np.concatenate([[0], self._upto])[found]
        return self._spread(cells, places - begins, self._upto[found] - begins)

    def _of_cell(self, cell: int) -> tuple[int, int]:
        block = cell >> self._shift
        low, high = int(self._ends[block]), int(self._ends[block + 1])
        if not self._shift or low == high:
            return low, high
        if not self._wanted[block]:
            self.refine([(low + 1, high)])
        start = int(self._starts[block])
        sides = np.searchsorted(self._distinct, [cell, cell + 1])
        below, upto = (int(self._upto[side - 1]) if side else 0 for side in sides)
        return low + below - start, low + upto - start
