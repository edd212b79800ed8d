"""The line of points, against a list of all its units."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.line import LEAST_ROUND, Level, Line, line_on
from sfumato.grid import Grid

F = Fraction
HALF = F(1, 2)
FINE = Grid.of_step(0, 200, F(1, 1000))


def listed(line):
    """The cell of every unit."""
    found = []
    for cell in range(line.cells):
        extra = sum(level.extra for level in line.levels if (cell + line.origin) % level.cells == 0)
        found += [cell] * (1 + extra)
    return found


@st.composite
def lines(draw):
    steps = list(itertools.accumulate(draw(st.lists(st.integers(2, 5), max_size=3)), lambda a, b: a * b))
    levels = tuple(Level(step, draw(st.integers(1, 6))) for step in steps[::-1])
    origin = draw(st.integers(0, levels[0].cells - 1)) if levels else 0
    return Line(draw(st.integers(1, 70)), origin, levels)


@given(lines())
def test_cells_and_units_are_those_of_a_list(line):
    units = listed(line)
    cells = np.arange(line.cells)
    assert line.units == len(units)
    assert [line.cell(unit) for unit in range(line.units)] == units
    assert line.begins(cells).tolist() == [units.index(cell) for cell in cells]
    assert [line.begins(cell) for cell in range(line.cells)] == line.begins(cells).tolist()
    assert line.widths(cells).tolist() == np.bincount(units).tolist()


def round_numbers(grid, step):
    """The cells that begin with a multiple of the step, one by one."""
    return [cell for cell in range(grid.cells) if grid.value(cell) % step == 0]


@pytest.mark.parametrize(
    "grid",
    [
        Grid.of_step(0, 1000, 1),
        Grid.of_step(-300, 700, 1),
        Grid.of_step(F(1, 5), F(4, 5), F(1, 2000)),
        Grid.of_step(20_000, 40_000, 50),
        Grid(0, 1024, cells=2**12),
    ],
    ids=str,
)
def test_round_numbers_have_more_units(grid):
    widths, expected = np.diff(line_on(grid, HALF).begins(np.arange(grid.cells + 1))), np.ones(grid.cells)
    for step in (digit * F(10) ** power for power in range(-4, 6) for digit in (1, 5)):
        cells = step / grid.step
        if cells.denominator == 1 and cells > 1 and cells * LEAST_ROUND <= grid.cells:
            expected[round_numbers(grid, step)] += int(cells / 2)
    assert widths.tolist() == expected.tolist()
    assert widths.max() > 1


def test_each_step_has_about_as_many_units_more_as_the_emphasis_says():
    line = line_on(FINE, F(1, 64))
    steps = [float(level.cells * FINE.step) for level in line.levels]
    assert steps == [5.0, 1.0, 0.5, 0.1]
    for level in line.levels:
        numbers = len(round_numbers(FINE, level.cells * FINE.step))
        # Whole units, rounded down; both ends are round.
        assert 1 / 128 < level.extra * numbers / FINE.cells <= 1.03 / 64


@pytest.mark.parametrize(
    ("grid", "emphasis"),
    [
        (FINE, F(0)),
        (Grid.of_step(0, 120, 1), F(1, 64)),
        # No cell begins with a round number.
        (Grid.of_step(F(1, 7), F(1, 7) + 10_000, 1), HALF),
        (Grid(0, 1, cells=3**9), HALF),
    ],
    ids=str,
)
def test_a_line_is_plain_where_nothing_is_emphasised(grid, emphasis):
    assert line_on(grid, emphasis) == Line(grid.cells)


@given(
    st.integers(-(10**9), 10**9),
    st.integers(1, 2**32 - 1),
    st.integers(-6, 6),
    st.sampled_from([1, 2, 5, 25]),
)
def test_each_step_is_a_multiple_of_the_next(lower, cells, power, digit):
    step = digit * F(10) ** power
    line = line_on(Grid.of_step(lower * step, (lower + cells) * step, step), F(1, 64))
    for wide, narrow in itertools.pairwise(line.levels):
        assert wide.cells > narrow.cells
        assert wide.cells % narrow.cells == 0
    for cell in (0, cells // 3, cells):
        begin = line.begins(cell)
        assert [line.cell(begin), line.cell(line.begins(cell + 1) - 1)] == [cell, cell]
        assert (line.begins(np.array([cell])) == begin).all()
