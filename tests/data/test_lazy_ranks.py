"""Ranks from counts alone, against those of a column in memory and against a sort of everything."""

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.test_ranks import GRIDS, INF, NAN, NULLS, PARTS, assert_like, lines_of, points_of, value_of

from sfumato.data.lazy_axes import GridAxis
from sfumato.data.lazy_column import LazyColumn
from sfumato.data.lazy_ranks import LazyRanks
from sfumato.data.lazy_table import LazyTable
from sfumato.data.line import Level, Line
from sfumato.data.passes import Passes
from sfumato.data.ranks import Ranks
from sfumato.errors import EngineFault, InvalidParameter
from sfumato.grid import Grid

FINE = Grid(-5, 11, cells=2**32)


class Counted:
    """What ranks ask of a column in an engine, counted from an array, and how often cells were asked for."""

    def __init__(self, values, grid, groups=1):
        self.groups = groups
        self.refinements = []
        values = np.asarray(values, dtype=np.float64)
        self._grid, self._missing = grid, int(np.isnan(values).sum())
        self._known = grid.index(values[~np.isnan(values)])

    def _cells(self, axis, nulls):
        assert axis == GridAxis(self._grid)
        place = {"drop": [], "lower": [0], "upper": [self._grid.cells - 1]}[nulls]
        return np.concatenate([self._known, np.array(place * self._missing, dtype=np.int64)])

    def blocks(self, axis, shift, nulls):
        count = ((axis.cells - 1) >> shift) + 1
        return np.bincount(self._cells(axis, nulls) >> shift, minlength=count)

    def refined(self, axis, shift, blocks, nulls):
        self.refinements.append(blocks)
        cells = self._cells(axis, nulls)
        return np.unique(cells[np.isin(cells >> shift, blocks)], return_counts=True)


def in_polars(values):
    """The column of a lazy table, and its passes."""
    table = LazyTable(nw.from_native(pl.LazyFrame({"x": pl.Series(values, dtype=pl.Float64)})))
    passes = Passes(table, lambda groups: table.frame)
    return LazyColumn(table, "x", passes.ask), passes


@given(data=st.data(), nulls=st.sampled_from(NULLS), parts=st.sampled_from(PARTS))
@settings(max_examples=150)
def test_positions_and_counts_are_those_of_a_sort(data, nulls, parts):
    grid = GRIDS[data.draw(st.sampled_from(sorted(GRIDS)))]
    values = np.array(data.draw(st.lists(value_of(grid), max_size=40)), dtype=np.float64)
    groups = data.draw(st.sampled_from([1, 2, 50, 2000]))
    line = data.draw(lines_of(grid))
    model = points_of(values, grid, nulls, parts, line)
    ranks = LazyRanks.on(Counted(values, grid, groups), grid, nulls, parts, line)
    order = data.draw(st.permutations(range(1, len(model) + 1)))[:8]
    assert_like(ranks, model, grid, parts, order, line)


class Forgetful(LazyRanks):
    """A mutant: what was counted before is lost when more blocks are."""

    def _sort(self, wanted):
        self._distinct, self._upto = self._distinct[:0], self._upto[:0]
        super()._sort(wanted)


def test_the_comparison_sees_counts_that_are_lost():
    values, order = [NAN, -4.0, 0.25, 0.25, 3.0, 10.0, NAN], [7, 1, 4]
    model = points_of(values, FINE, "upper", 4)
    assert_like(LazyRanks.on(Counted(values, FINE), FINE, "upper", 4), model, FINE, 4, order)
    with pytest.raises((AssertionError, IndexError)):
        assert_like(Forgetful.on(Counted(values, FINE), FINE, "upper", 4), model, FINE, 4, order)


class Changing(Counted):
    """A table whose nulls are gone when it is read again."""

    def refined(self, axis, shift, blocks, nulls):
        return super().refined(axis, shift, blocks, "drop")


def test_a_table_that_changes_between_passes_is_refused():
    ranks = LazyRanks.on(Changing([NAN, -4.0, 3.0], FINE), FINE, "upper", 1)
    assert ranks.positions(1, 2).tolist() == FINE.index(np.array([-4.0, 3.0])).tolist()
    with pytest.raises(EngineFault, match="not the same"):
        ranks.positions(3, 3)


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("parts", [1, 16])
@pytest.mark.parametrize("line", [None, Line(2**32, 77, (Level(2**28, 2**22), Level(2**20, 9)))], ids=repr)
def test_a_column_in_an_engine_has_the_ranks_of_one_in_memory(nulls, parts, line):
    # More rows than are sorted whole in memory, ties among them, and far values that are clamped.
    generator = np.random.default_rng(7)
    values = np.rint(generator.normal(2, 3, 20_000) * 300) / 300
    values[generator.integers(0, len(values), 900)] = NAN
    values[:3] = INF, -INF, 1e300
    column, passes = in_polars(values)
    held = Ranks(values, FINE, nulls=nulls, parts=parts, line=line)
    ranks = LazyRanks.on(column, FINE, nulls, parts, line)
    chosen = np.sort(generator.integers(1, held.size + 1, 40))
    ranks.refine_at(chosen)
    assert ranks.at(chosen).tolist() == held.at(chosen).tolist()
    assert passes.count == 2
    for first in (1, int(chosen[3]), held.size - 4):
        assert ranks.positions(first, first + 4).tolist() == held.positions(first, first + 4).tolist()
    for point in [0, *held.at(chosen[::8]).tolist(), held.points - 1]:
        assert (ranks.below(point), ranks.upto(point)) == (held.below(point), held.upto(point))
    assert (ranks.size, ranks.points) == (held.size, held.points)


def test_blocks_are_counted_once_and_cells_where_they_are_asked_for():
    generator = np.random.default_rng(8)
    column = Counted(generator.uniform(-5, 11, 500), FINE)
    ranks = LazyRanks.on(column, FINE, "drop", 1)
    assert column.refinements == []
    ranks.refine([(1, 3), (250, 250)])
    ranks.refine([(2, 3), (250, 250)])
    ranks.positions(1, 3)
    ranks.at(np.array([1, 250]))
    assert len(column.refinements) == 1
    assert len(column.refinements[0]) <= 4
    ranks.positions(400, 401)
    assert len(column.refinements) == 2
    asked = [block for blocks in column.refinements for block in blocks]
    assert len(asked) == len(set(asked)), "no block is counted twice"


def test_what_is_held_follows_blocks_and_distinct_cells_and_not_the_rows():
    for rows in (10**3, 10**5):
        ranks = LazyRanks.on(Counted(np.repeat([1.0, 2.0, 2.5], rows), FINE), FINE, "drop", 8)
        ranks.refine([(1, 3 * rows)])
        assert len(ranks._distinct) == len(ranks._upto) == 3
        assert ranks.size == 3 * rows


def test_many_groups_have_fewer_blocks_each():
    blocks = [
        len(LazyRanks.on(Counted([1.0], FINE, groups), FINE, "drop", 1)._wanted) for groups in (1, 8, 10**5)
    ]
    assert blocks == [2**16, 2**15, 2**8]


def test_a_coarse_grid_is_counted_whole_and_never_refined():
    ages = GRIDS["ages"]
    column = Counted([3.0, 3.0, NAN, 60.0, 200.0], ages)
    ranks = LazyRanks.on(column, ages, "lower", 2)
    assert_like(ranks, points_of([3.0, 3.0, NAN, 60.0, 200.0], ages, "lower", 2), ages, 2, [1, 5])
    assert column.refinements == []


@pytest.mark.parametrize("parts", [0, 3, 2**31])
def test_parts_must_be_a_power_of_two(parts):
    with pytest.raises(InvalidParameter, match="parts"):
        LazyRanks.on(Counted([1.0], FINE), FINE, "drop", parts)
