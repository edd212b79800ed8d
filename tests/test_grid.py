"""Grids: every point in its own cell, exactly, and the same cells in every engine."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.checks import shown
from sfumato.errors import InvalidParameter
from sfumato.grid import MAX_CELLS, MAX_EDGES, Edges, Grid, Lattice, as_edges

GRIDS = {
    "hundredths": Grid.of_step(0, 10, 0.01),
    "tenths": Grid.of_step(-3, 7, 0.1),
    "thirds": Grid(0, 1000, cells=3001),
    "sevenths": Grid.of_step(-1, 2, Fraction(1, 7)),
    "far thousandths": Grid.of_step(10**6, 10**6 + 1, 0.001),
    "far below zero": Grid.of_step(-(10**6) - 1, -(10**6), 0.001),
    "ages": Grid.of_step(0, 120, 1),
    "one cell": Grid(0, 1, cells=1),
    "odd ends": Grid(0.1, 0.7, cells=997),
    "tiny": Grid(0, 1e-115, cells=1000),
    "huge": Grid(-1e115, 1e115, cells=1000),
    "decimal": Grid(Decimal("0.1"), Decimal("0.4"), cells=300),
}


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_every_point_is_in_its_own_cell(grid):
    points = [float(grid.value(i)) for i in range(grid.cells)]
    assert grid.index(points).tolist() == list(range(grid.cells))


@pytest.mark.parametrize("lower", [0, 255, -256], ids=str)
def test_every_point_of_the_finest_grid_is_in_its_own_cell(lower):
    grid = Grid(lower, lower + 1, cells=MAX_CELLS)
    cells = np.concatenate([np.arange(500), MAX_CELLS - 1 - np.arange(500), 7_777_777 * np.arange(500)])
    assert (grid.index([float(grid.value(int(i))) for i in cells]) == cells).all()


@given(
    st.fractions(-(10**9), 10**9, max_denominator=10**6),
    st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**6),
    st.integers(1, 10**6),
    st.data(),
)
def test_any_point_of_any_grid_is_in_its_own_cell(lower, width, cells, data):
    try:
        grid = Grid(lower, lower + width, cells=cells)
    except InvalidParameter:
        assert max(abs(lower), abs(lower + width)) / (width / cells) > 2**40
        return
    index = data.draw(st.integers(0, cells - 1))
    assert grid.index([float(grid.value(index))]).tolist() == [index]
    # The middle of a cell is far from every edge, so no rounding may move it.
    assert grid.index([float(grid.value(index) + grid.step / 2)]).tolist() == [index]


def test_points_are_exact_fractions():
    grid = Grid.of_step(0.1, 0.7, 0.1)
    assert [grid.value(i) for i in range(grid.cells)] == [Fraction(i, 10) for i in range(1, 8)]
    assert Grid(0, 1, cells=3).value(1) == Fraction(1, 3)
    assert as_edges(Grid(0, 1, cells=3)) == (0, Fraction(1, 3), Fraction(2, 3), 1)


def test_the_last_cell_is_closed():
    assert Grid(0, 1, cells=4).index([1.0]).tolist() == [3]
    assert Edges((0, 1, 2)).index([2.0]).tolist() == [1]
    assert Grid(0, 1, cells=4).value(4) == 1


@pytest.mark.parametrize("grid", [*GRIDS.values(), Edges((0, 1, 5))], ids=[*GRIDS, "edges"])
def test_values_outside_are_clamped_to_the_end_cells(grid):
    high, low = [np.inf, 1.7e308, float(grid.upper) + 1], [-np.inf, -1.7e308, float(grid.lower) - 1]
    assert grid.index(high).tolist() == [grid.cells - 1] * 3
    assert grid.index(low).tolist() == [0] * 3


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_numpy_polars_and_arrow_agree_on_every_cell_bit_for_bit(grid):
    points = np.array([float(grid.value(i)) for i in range(grid.cells + 1)])
    middles = (points[1:] + points[:-1]) / 2
    near = [np.nextafter(points, np.inf), np.nextafter(points, -np.inf)]
    values = np.concatenate([points, *near, middles, [np.inf, -np.inf, 5e-324, -0.0, 1e308]])
    ours = grid.index(values)
    scale, offset = grid.line
    last = grid.cells - 1.0
    by_polars = (
        pl.Series("x", values).to_frame().select((pl.col("x") * scale + offset).clip(0.0, last).floor())
    )
    assert by_polars["x"].cast(pl.Int64).to_list() == ours.tolist()
    moved = pc.add(pc.multiply(pa.array(values), scale), offset)
    clipped = pc.max_element_wise(pc.min_element_wise(moved, last), 0.0)
    assert pc.floor(clipped).cast("int64").to_pylist() == ours.tolist()


BAD_BOUNDS = {
    "reversed": (1, 0),
    "equal": (1, 1),
    "NaN": (float("nan"), 1),
    "infinite": (0, float("inf")),
    "boolean": (False, 1),
    "text": ("0", 1),
    "missing": (None, 1),
    "too large": (0, 2**501),
    "too small": (0, Fraction(1, 2**501)),
    "signalling": (Decimal("sNaN"), 1),
    "a billion digits": (0, Decimal("1e-999999999")),
    "five thousand digits": (0, 10**5000),
    "complex": (0, 1j),
}


@pytest.mark.parametrize("bounds", BAD_BOUNDS.values(), ids=BAD_BOUNDS)
def test_bad_bounds_are_refused_in_one_line(bounds):
    for make in (
        lambda: Grid(*bounds, cells=4),
        lambda: Grid.of_step(*bounds, 1),
        lambda: Grid.geometric(*bounds, ratio=2),
        lambda: Edges(bounds),
        lambda: Lattice.over(*bounds, points=4, origin=0),
    ):
        with pytest.raises(InvalidParameter, match=r"^(lower|upper|edges) must .*$"):
            make()


@pytest.mark.parametrize("cells", [0, -1, MAX_CELLS + 1, 2.0, "4", True, None, 10**5000], ids=shown)
def test_a_number_of_cells_out_of_range_is_refused(cells):
    with pytest.raises(InvalidParameter, match=r"^cells must be "):
        Grid(0, 1, cells=cells)


@pytest.mark.parametrize(
    ("step", "rule"),
    [
        (0.3, "divide"),
        (2, "divide"),
        (0, "positive"),
        (-0.5, "positive"),
        (float("nan"), "finite"),
        ("1", "number"),
        (Fraction(1, 2**32), "at most"),
    ],
)
def test_a_step_that_breaks_a_rule_is_refused(step, rule):
    with pytest.raises(InvalidParameter, match=f"^step must .*{rule}"):
        Grid.of_step(0, 1, step)


@pytest.mark.parametrize("ratio", ["1.01", "1.1", "1.2", "1.5", "2", "3", "10"])
@pytest.mark.parametrize("lower", ["0.001", "0.03", "0.1", "1", "7"])
def test_a_geometric_grid_has_a_cell_for_each_power_of_its_ratio(lower, ratio):
    low, factor = Fraction(lower), Fraction(ratio)
    for cells in (1, 2, 3, 7, 20, 60):
        grid = Grid.geometric(low, low * factor**cells, ratio=factor)
        assert grid.cells == cells
        exact = [float(low * factor**i) for i in range(cells + 1)]
        assert [float(edge) for edge in grid.edges] == exact
        assert grid.index(exact[:-1]).tolist() == list(range(cells))


def test_bounds_too_close_for_float64_are_refused():
    for build in (Grid, Lattice.over):
        options = {"cells": 4} if build is Grid else {"points": 4, "origin": 0}
        with pytest.raises(InvalidParameter, match=r"^bounds must be at least 2\*\*-40 of their size apart"):
            build(10**15, 10**15 + 1, **options)


@pytest.mark.parametrize(("lower", "upper"), [(1e12 + 0.1, 1e12 + 1.4), (-5e9 - 0.3, -5e9), (0.1, 0.7)])
@pytest.mark.parametrize("place", ["lower", "middle", "zero"])
def test_every_value_is_within_the_stated_rounding_of_its_lattice_point(lower, upper, place):
    origin = {"lower": lower, "middle": (lower + upper) / 2, "zero": 0}[place]
    lattice = Lattice.over(lower, upper, points=2**31, origin=origin)
    values = np.random.default_rng(3).uniform(lower, upper, 2000)
    exact = [
        abs(Fraction(v) - lattice.value(int(j))) for v, j in zip(values, lattice.round(values), strict=True)
    ]
    assert max(exact) <= lattice.rounding * lattice.step
    assert Fraction(float(lattice.origin)) == lattice.origin


def test_a_step_too_fine_for_float64_is_refused():
    with pytest.raises(InvalidParameter, match=r"^step .*float64.*step=0\.0001"):
        Grid.of_step(10**9, 10**9 + 1, 0.0001)
    with pytest.raises(InvalidParameter, match=r"^step .*float64"):
        Grid(257, 258, cells=MAX_CELLS)


@pytest.mark.parametrize("index", [-1, 5, 1.0, True, "1"])
def test_a_point_off_the_grid_is_refused(index):
    with pytest.raises(InvalidParameter, match=r"^index must be "):
        Grid(0, 1, cells=4).value(index)


def test_a_geometric_grid_multiplies_and_ends_at_upper():
    grid = Grid.geometric(1, 1000, ratio=10)
    assert grid.edges == (1, 10, 100, 1000)
    assert Grid.geometric(1, 50, ratio=10).edges == (1, 10, 50)
    assert Grid.geometric(1, 10, ratio=10**400).edges == (1, 10)


@pytest.mark.parametrize(
    "ratio", [1, 0.5, 0, -2, float("nan"), True, "2", Fraction(10**20 + 1, 10**20), 1 + 1e-9], ids=str
)
def test_a_ratio_that_is_not_above_one_or_too_fine_is_refused(ratio):
    with pytest.raises(InvalidParameter, match=r"^ratio must "):
        Grid.geometric(1, 10**6, ratio=ratio)
    with pytest.raises(InvalidParameter, match=r"^lower must be positive"):
        Grid.geometric(0, 10, ratio=2)


@pytest.mark.parametrize(
    "edges",
    [(), (1,), (0, 0), (0, 2, 1), (0, 10**400, 1), (0, 1, 1 + 1e-17), 5, "12", {0, 1}, (0, None), (0, True)],
)
def test_edges_that_do_not_increase_are_refused(edges):
    with pytest.raises(InvalidParameter, match=r"^(edges|upper|lower) must "):
        Edges(edges)


def test_too_many_edges_are_refused():
    with pytest.raises(InvalidParameter, match=r"^edges must be 2 to"):
        Edges(range(MAX_EDGES + 2))


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20, unique=True), st.lists(st.floats(allow_nan=False))
)
def test_edges_place_values_as_plain_comparisons_do(edges, values):
    ordered = sorted({round(edge, 3) + 0.0 for edge in edges})
    if len(ordered) < 2:
        return
    cells = Edges(ordered)
    slow = [max(0, min(sum(edge <= x for edge in ordered) - 1, len(ordered) - 2)) for x in values]
    assert cells.index(values).tolist() == slow


def test_a_lattice_rounds_to_the_nearest_point_and_clamps():
    lattice = Lattice.over(0, 10, points=10, origin=0)
    values = [-np.inf, -3, 0.4, 0.6, 9.6, 1e300, np.inf]
    assert lattice.round(values).tolist() == [0, 0, 0, 1, 10, 10, 10]


@given(
    st.fractions(-1000, 1000, max_denominator=1000),
    st.fractions(Fraction(1, 1000), 1000, max_denominator=1000),
    st.integers(1, 2**31),
    st.floats(-3000, 3000),
)
def test_a_lattice_point_is_within_half_a_step_of_the_clamped_value(lower, width, points, value):
    upper = lower + width
    lattice = Lattice.over(lower, upper, points=points, origin=(lower + upper) / 2)
    assert lattice.step.denominator & (lattice.step.denominator - 1) == 0
    assert lattice.step.numerator & (lattice.step.numerator - 1) == 0
    assert width / 2 / lattice.step >= points > width / 4 / lattice.step
    (point,) = lattice.round([value]).tolist()
    assert lattice.low <= point <= lattice.high
    clamped = min(max(Fraction(value), lower), upper)
    slack = Fraction(1, 2) + Fraction(2**12, 2**53) / lattice.step
    assert abs(lattice.value(point) - clamped) <= lattice.step * slack
