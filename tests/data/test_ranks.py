"""Ranks against a model that sorts everything, on grids of all sizes and in any order of requests."""

import itertools
import operator
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.test_spread import places

from sfumato.data.column import CHUNK
from sfumato.data.line import Level, Line
from sfumato.data.ranks import FEW_ROWS, Ranks
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.grid import Grid

NAN, INF = float("nan"), float("inf")
GRIDS = {
    "one cell": Grid(0, 1, cells=1),
    "ages": Grid.of_step(0, 120, 1),
    "2^16": Grid(0, 1, cells=2**16),
    "2^16 + 1": Grid(0, 1, cells=2**16 + 1),
    "2^18": Grid(-1, 1, cells=2**18),
    "no power of two": Grid(-3, 1000, cells=3 * 10**6 + 1),
    "2^32": Grid(-5, 11, cells=2**32),
    "far from 0": Grid.of_step(10**9, 10**9 + 10**6, 1),
}
NULLS = ("drop", "lower", "upper")
PARTS = (1, 2, 4, 8, 16, 2**24)


def cells_of(values, grid, nulls):
    """The sorted cells of the records that count, by exact arithmetic on the grid's own index."""
    values = np.asarray(values, dtype=np.float64)
    missing = np.isnan(values)
    cells = grid.index(np.where(missing, 0.0, values))
    if nulls == "drop":
        return np.sort(cells[~missing])
    return np.sort(np.where(missing, 0 if nulls == "lower" else grid.cells - 1, cells))


def units_of(line, cell):
    """The first unit of a cell and how many it has, counted number by number of each level."""
    number = cell + line.origin
    begin, width = cell, 1
    for level in line.levels:
        # Multiples from `origin` up to the cell.
        begin += level.extra * len(range(-(-line.origin // level.cells), -(-number // level.cells)))
        width += level.extra * (number % level.cells == 0)
    return begin, width


def points_of(values, grid, nulls, parts, line=None):
    """Every record's point, sorted."""
    cells, counts = np.unique(cells_of(values, grid, nulls), return_counts=True)
    bits, found = parts.bit_length() - 1, []
    for cell, count in zip(cells.tolist(), counts.tolist(), strict=True):
        begin, width = units_of(line or Line(grid.cells), cell)
        found += [begin * parts + place * width for place in places(count, bits)]
    return np.array(found, dtype=np.int64)


def lines_of(grid):
    """Lines on a grid: each step of round numbers is a multiple of the next."""
    factors = st.lists(st.sampled_from([2, 3, 10, 1000, 2**16]), min_size=1, max_size=4)
    extras = st.lists(st.integers(1, 50), min_size=4, max_size=4)

    def made(factors, extras, origin):
        steps = itertools.accumulate(factors, operator.mul)
        levels = tuple(Level(step, extra) for step, extra in zip(steps, extras, strict=False))[::-1]
        return Line(grid.cells, origin % levels[0].cells, levels)

    return st.just(None) | st.builds(made, factors, extras, st.integers(0, 2**40))


def assert_like(ranks, model, grid, parts, order, line=None):
    """Positions and counts are those of the model, asked for in the given order of ranks."""
    size = len(model)
    assert ranks.size == size
    assert ranks.points == units_of(line or Line(grid.cells), grid.cells)[0] * parts
    for rank in order:
        if size:
            last = min(rank + 3, size)
            assert ranks.positions(rank, last).tolist() == model[rank - 1 : last].tolist()
        near = int(model[rank - 1]) if size else rank
        for point in {max(near - 1, 0), near, min(near + 1, ranks.points - 1), 0, ranks.points - 1}:
            assert ranks.below(point) == np.searchsorted(model, point, side="left")
            assert ranks.upto(point) == np.searchsorted(model, point, side="right")
    assert ranks.positions(1, size).tolist() == model.tolist()
    assert ranks.positions(3, 2).tolist() == []


def value_of(grid):
    low, high = float(grid.lower), float(grid.upper)
    inside = st.floats(low, high) | st.sampled_from([low, high, low + (high - low) / 3])
    return inside | st.sampled_from([NAN, INF, -INF, low - 1, high + 1, 1e300, -1e300])


@given(data=st.data(), nulls=st.sampled_from(NULLS), parts=st.sampled_from(PARTS))
@settings(max_examples=300)
def test_positions_and_counts_are_those_of_a_sort(data, nulls, parts):
    grid = GRIDS[data.draw(st.sampled_from(sorted(GRIDS)))]
    values = np.array(data.draw(st.lists(value_of(grid), max_size=40)), dtype=np.float64)
    line = data.draw(lines_of(grid))
    ranks = Ranks(values, grid, nulls=nulls, parts=parts, line=line)
    model = points_of(values, grid, nulls, parts, line)
    order = data.draw(st.permutations(range(1, len(model) + 1)))
    assert_like(ranks, model, grid, parts, order, line)
    cells = np.array([*data.draw(st.lists(st.integers(0, grid.cells - 1), max_size=4)), grid.cells])
    begins = [units_of(line or Line(grid.cells), cell)[0] * parts for cell in cells.tolist()]
    assert ranks.below_cells(cells).tolist() == np.searchsorted(model, begins, side="left").tolist()


def many(rows, kind, seed):
    """Rows with ties, nulls, infinities and values out of bounds."""
    rng = np.random.default_rng(seed)
    values = {
        "spread": rng.uniform(-6, 12, rows),
        "clustered": rng.choice([0.1, 0.1 + 2**-20, 3.0, 9.99], rows),
        "equal": np.full(rows, 0.3),
        "all out of bounds": rng.choice([-1e9, 1e9, INF, -INF], rows),
    }[kind]
    values[rng.random(rows) < 0.1] = NAN
    return values


@pytest.mark.parametrize("kind", ["spread", "clustered", "equal", "all out of bounds"])
@pytest.mark.parametrize("rows", [FEW_ROWS, FEW_ROWS + 1, CHUNK + 77])
@pytest.mark.parametrize(("name", "parts"), [("2^18", 1), ("2^32", 1), ("2^32", 2**24), ("ages", 4)])
@pytest.mark.parametrize("levels", [(), (Level(5000, 78), Level(1000, 15), Level(2, 1))], ids=len)
def test_rows_that_are_not_sorted_whole_give_the_same(kind, rows, name, parts, levels):
    grid, nulls = GRIDS[name], NULLS[rows % 3]
    line = Line(grid.cells, 1234 if levels else 0, levels)
    values = many(rows, kind, seed=rows)
    model = points_of(values, grid, nulls, parts, line)
    size = len(model)
    ranks = Ranks(values, grid, nulls=nulls, parts=parts, line=line)
    rng = np.random.default_rng(1)
    order = [*rng.integers(1, size + 1, 6).tolist(), size, 1]
    for rank in order:
        assert ranks.positions(rank, rank).tolist() == [model[rank - 1]]
    assert_like(ranks, model, grid, parts, order, line)


@pytest.mark.parametrize("stretches", [1, 2, 3, 4, 40])
def test_refining_many_ranges_at_once_is_refining_each(stretches):
    grid, values = GRIDS["2^32"], many(FEW_ROWS * 3, "spread", seed=5)
    model = points_of(values, grid, "drop", 1)
    rng = np.random.default_rng(stretches)
    starts = rng.integers(-5, len(model) + 5, stretches).tolist()
    ranks = Ranks(values, grid, nulls="drop")
    # Ranges may pass both ends and overlap.
    ranks.refine((start, start + 100) for start in starts)
    for start in starts:
        first, last = max(start, 1), min(start + 100, len(model))
        assert ranks.positions(first, last).tolist() == model[first - 1 : last].tolist()
    assert ranks.positions(1, len(model)).tolist() == model.tolist()


def test_without_records_there_is_nothing_to_refine():
    for values in (np.empty(0), np.full(5, NAN), np.full(FEW_ROWS + 1, NAN)):
        ranks = Ranks(values, GRIDS["2^32"], parts=4)
        ranks.refine([(1, 5), (0, 0)])
        assert ranks.size == ranks.below(7) == ranks.upto(ranks.points - 1) == 0
        assert ranks.positions(1, 0).tolist() == []


@given(
    parts=st.sampled_from((1, 2, 8)),
    counts=st.lists(st.integers(0, 9), min_size=4, max_size=4),
    cell=st.integers(0, 3),
    line=st.sampled_from([None, Line(4, 1, (Level(2, 3),))]),
)
def test_one_record_more_moves_one_count_by_one(parts, counts, cell, line):
    grid = Grid.of_step(0, 3, 1)
    more = [*np.repeat(np.arange(4.0), counts), float(cell)]
    histograms = [
        np.bincount(ranks.positions(1, ranks.size), minlength=ranks.points)
        for ranks in (Ranks(np.array(values), grid, parts=parts, line=line) for values in (more[:-1], more))
    ]
    assert np.abs(histograms[1] - histograms[0]).sum() == 1


def test_memory_is_four_bytes_a_row():
    values, grid = np.random.default_rng(1).uniform(0, 1, 2**21), Grid(0, 1, cells=2**32)
    tracemalloc.start()
    try:
        ranks = Ranks(values, grid, parts=2**24)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ranks.size == len(values)
    # Beside the rows there are the blocks and the buffers of one chunk.
    fixed = 2**16 * 32 + CHUNK * 64
    assert kept <= 4 * len(values) + fixed
    assert peak <= 4 * len(values) + 2 * fixed


def test_wrong_arguments_are_refused():
    grid = GRIDS["ages"]
    for parts in (0, -1, 1.0, True, 2**31, None):
        with pytest.raises(InvalidParameter, match="parts"):
            Ranks([1.0], grid, parts=parts)
    with pytest.raises(InvalidParameter, match="nulls"):
        Ranks([1.0], grid, nulls="keep")
    for column in (["a"], [True]):
        with pytest.raises(SchemaMismatch):
            Ranks(column, grid)


@pytest.mark.parametrize("parts", [3, 5, 6, 7, 12])
def test_parts_that_are_no_power_of_two_are_refused(parts):
    with pytest.raises(InvalidParameter, match="parts"):
        Ranks([1.0], GRIDS["ages"], parts=parts)
