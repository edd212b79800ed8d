"""A column of a lazy table, of all rows or of one group of a portion."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sfumato.data.column import Category
from sfumato.data.conditions import ColumnRef
from sfumato.data.count_requests import CellRequest, Refinement, TallyRequest
from sfumato.data.counts import NullRule, Sums
from sfumato.data.engine_column import EngineColumn
from sfumato.data.extremes import Extremes
from sfumato.data.lazy_axes import Axis, EdgesAxis, LatticeAxis, axis_of
from sfumato.data.lazy_ranks import LazyRanks
from sfumato.data.lazy_table import LazyTable
from sfumato.data.line import Line
from sfumato.data.matches import Matches
from sfumato.data.passes import Passes
from sfumato.data.portion import WHOLE_TABLE, Portion
from sfumato.data.requests import LatticeRequest, MatchRequest, Request
from sfumato.data.rounds import together
from sfumato.grid import Edges, Floats, Grid, Ints, Lattice

# What a column in memory reads its values by.
_READERS = ("_floats", "_tally", "_take", "_codes", "_labels")


class LazyColumn(EngineColumn):
    """A column in an engine, read by passes over its table.

    Private: nothing here may be published without a mechanism.
    """

    _table: LazyTable
    _ask: Callable[[Request], Any] | None
    _portion: Portion
    _group: int
    _counted: int | None

    def __init__(
        self,
        table: LazyTable,
        name: ColumnRef,
        ask: Callable[[Request], Any] | None = None,
        portion: Portion = WHOLE_TABLE,
        group: int = 0,
    ) -> None:
        stored = table.stored(name)
        # Of a filter, which is not asked for by name, only the public facts are needed.
        called = name if isinstance(name, str) else name.expression.words
        facts = {"name": called, "kind": stored.kind, "nullable": stored.nullable, "reads": stored.reads}
        held = {"_table": table, "_ask": ask, "_portion": portion, "_group": group, "_counted": None}
        for fact, value in {**facts, **held, **dict.fromkeys(_READERS)}.items():
            object.__setattr__(self, fact, value)

    @property
    def rows(self) -> int:
        """How many rows there are; of the whole table before a charge, where that is public."""
        if self._ask is None:
            return self._table.rows
        return self._counted if self._counted is not None else self._matches()["rows"]

    @property
    def groups(self) -> int:
        """How many groups the portion has."""
        return self._portion.groups.count

    def _answer(self, request: Request) -> Any:
        ask = self._ask or Passes(self._table, lambda groups: self._table.frame).ask
        return ask(request)[self._group]

    def _matches(self, matches: Matches | None = None) -> dict[str, int]:
        found: dict[str, int] = self._answer(MatchRequest(self._portion, self.name, matches))
        return found

    def nulls(self) -> int:
        """How many rows are null or NaN."""
        found = self._matches()
        return found["rows"] - found["present"]

    def matched(self, matches: Matches) -> Sums:
        """How many rows have a value, and how many meet a condition."""
        found = self._matches(matches)
        # How many rows there are comes with it: to ask for them alone would take a pass more.
        object.__setattr__(self, "_counted", found["rows"])
        return Sums(found["present"], found["matched"])

    def tally(self, categories: Sequence[Category]) -> tuple[list[int], int]:
        """How many rows hold each public category, and how many hold another value."""
        if self.kind == "unknown":
            return [0] * len(categories), 0
        counts, others, missing = self._answer(TallyRequest(self._portion, self.name, tuple(categories)))
        # What is asked next is often how many rows there are: they have all been counted.
        object.__setattr__(self, "_counted", sum(counts) + others + missing)
        return counts, others

    def sums(self, lattice: Lattice, nulls: NullRule, *, squares: bool) -> Sums:
        """The sums of the points on a lattice, and of their squares; nulls follow the rule."""
        found = self._answer(LatticeRequest(self._portion, self.name, lattice, squares))
        size, first, second = found["present"], found["first"], found["second"]
        # Counted from the lower end of the lattice: back to its own numbers, exactly.
        low = lattice.low
        second = second + 2 * low * first + low**2 * size if squares else 0
        first += low * size
        if nulls != "drop":
            place = lattice.low if nulls == "lower" else lattice.high
            missing = found["rows"] - size
            first, second = first + place * missing, second + (place**2 * missing if squares else 0)
            size = found["rows"]
        return Sums(size, first, second)

    def counts(self, cells: Grid | Edges, nulls: NullRule) -> Ints:
        """How many rows are in each cell; nulls follow the rule."""
        return self.blocks(axis_of(cells), 0, nulls)

    def blocks(self, axis: Axis, shift: int, nulls: NullRule) -> Ints:
        """How many rows are in each block of 2**shift cells; nulls follow the rule."""
        cells, counts = self._answer(CellRequest(self._portion, self.name, axis, shift))
        found = np.zeros(((axis.cells - 1) >> shift) + 1, dtype=np.int64)
        known = cells >= 0
        found[cells[known]] = counts[known]
        place = null_cell(axis, nulls)
        if place is not None:
            found[place >> shift] += int(counts[~known].sum())
        return found

    def refined(self, axis: Axis, shift: int, blocks: tuple[int, ...], nulls: NullRule) -> tuple[Ints, Ints]:
        """The cells of some blocks that hold rows, in order, and how many; nulls follow the rule."""
        wanted = tuple((self._group, block) for block in blocks)
        cells, counts = self._answer(Refinement(self._portion, self.name, axis, shift, wanted))
        place = null_cell(axis, nulls)
        if place is None or place >> shift not in blocks:
            return cells, counts
        at = int(np.searchsorted(cells, place))
        if at == len(cells) or cells[at] != place:
            cells, counts = np.insert(cells, at, place), np.insert(counts, at, 0)
        added = np.zeros_like(counts)
        added[at] = self._missing(axis, shift)
        return cells, counts + added

    def _missing(self, axis: Axis, shift: int) -> int:
        cells, counts = self._answer(CellRequest(self._portion, self.name, axis, shift))
        return int(counts[cells < 0].sum())

    def ranks(self, grid: Grid, nulls: NullRule, parts: int, line: Line | None) -> LazyRanks:
        """The ranks on a grid."""
        return LazyRanks.on(self, grid, nulls, parts, line)

    def extremes(self, lattice: Lattice, nulls: NullRule, keep: int) -> Extremes:
        """The sum on a lattice, with the smallest and the largest records."""
        ranks, sums = together(
            lambda: LazyRanks(self, LatticeAxis(lattice), nulls),
            lambda: self.sums(lattice, nulls, squares=False),
        )
        size, ends = ranks.size, min(keep, ranks.size)
        ranks.refine([(1, ends), (size - ends + 1, size)] if ends else [])
        total = sums.first - lattice.low * size
        largest = ranks.positions(size - ends + 1, size)[::-1]
        return Extremes(size, total, ranks.positions(1, ends), largest)

    def places(self, points: Floats, *, negated: bool) -> tuple[Ints, int]:
        """How many rows have each number of points below them, and how many are null."""
        axis = EdgesAxis.among(points.tolist(), negated=negated)
        return self.blocks(axis, 0, "drop"), self._missing(axis, 0)


def null_cell(axis: Axis, nulls: NullRule) -> int | None:
    """Where a rule puts nulls; None if they are left out."""
    return {"drop": None, "lower": 0, "upper": axis.cells - 1}[nulls]
