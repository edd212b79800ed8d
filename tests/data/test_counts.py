"""Counts and sums: equal to slow Python, exact at any size, the same in any order, in little memory."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.admission import admit
from sfumato.data.column import CHUNK
from sfumato.data.counts import NULL_RULES, Counts, Sums, count_categories
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.grid import Edges, Grid, Lattice

GRID = Grid.of_step(-2, 2, 0.25)
EDGES = Edges((-2, -0.5, 0, 1.75, 2))
LATTICE = Lattice.over(-2, 2, points=64, origin=0)
# Quarters are points of both grids, where the nearest float must decide as the exact value does.
VALUES = st.none() | st.floats() | st.integers(-12, 12).map(lambda quarter: quarter / 4)


def slow_cell(grid, value):
    """The cell by exact comparisons."""
    if math.isinf(value):
        return 0 if value < 0 else grid.cells - 1
    passed = sum(Fraction(value) >= grid.value(i) for i in range(grid.cells))
    return max(passed - 1, 0)


def slow_counts(values, grid, nulls):
    cells = [0] * grid.cells
    for value in values:
        if value is None or math.isnan(value):
            if nulls != "drop":
                cells[0 if nulls == "lower" else -1] += 1
        else:
            cells[slow_cell(grid, value)] += 1
    return cells


def slow_sums(values, lattice, nulls):
    points = []
    for value in values:
        if value is None or math.isnan(value):
            points += {"drop": [], "lower": [lattice.low], "upper": [lattice.high]}[nulls]
        else:
            clamped = min(max(value, float(lattice.value(lattice.low))), float(lattice.value(lattice.high)))
            points.append(round((Fraction(clamped) - lattice.origin) / lattice.step))
    return Sums(len(points), sum(points), sum(point * point for point in points))


@pytest.mark.parametrize("nulls", NULL_RULES)
@pytest.mark.parametrize("grid", [GRID, EDGES], ids=["grid", "edges"])
@given(st.lists(VALUES, max_size=40))
def test_counts_equal_those_of_slow_exact_comparisons(grid, nulls, values):
    # Within a 2**-8 of a cell below a point a value may be lifted to it; such values are tested apart.
    kept = [v for v in values if v is None or not math.isfinite(v) or v == 0 or abs(v) > 1e-9]
    near = [
        v for v in kept if v is None or not math.isfinite(v) or (4 * v) % 1 == 0 or 0.01 < (4 * v) % 1 < 0.99
    ]
    array = np.array([math.nan if v is None else v for v in near], dtype=float)
    assert Counts.of(array, grid, nulls=nulls).cells.tolist() == slow_counts(near, grid, nulls)


@pytest.mark.parametrize("nulls", NULL_RULES)
@given(st.lists(VALUES, max_size=40))
def test_sums_equal_those_of_slow_exact_arithmetic(nulls, values):
    array = np.array([math.nan if v is None else v for v in values], dtype=float)
    assert Sums.of(array, LATTICE, nulls=nulls, squares=True) == slow_sums(values, LATTICE, nulls)


def test_a_value_just_below_a_point_may_be_lifted_by_a_256th_of_a_cell_and_no_more():
    fine = Grid(255, 256, cells=2**32)
    point, step = fine.value(12345), fine.step
    assert fine.index([float(point - step * Fraction(1, 64))]).tolist() == [12344]


FRAME = [0.5, None, -7.0, 1.75, 0.5, 1e300]
FRAMES = {
    "list": FRAME,
    "numpy": np.array(FRAME, dtype=float),
    "masked": np.ma.array([0.5, 99, -7, 1.75, 0.5, 1e300], mask=[0, 1, 0, 0, 0, 0]),
    "pandas": pd.Series(FRAME),
    "pandas Float64": pd.Series(FRAME, dtype="Float64"),
    "pandas arrow": pd.Series(FRAME, dtype="double[pyarrow]"),
    "polars": pl.Series(FRAME),
    "arrow": pa.array(FRAME),
    "arrow chunks": pa.chunked_array([FRAME[:1], FRAME[1:]]),
    "column": admit(FRAME),
}


@pytest.mark.parametrize("nulls", NULL_RULES)
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_every_frame_gives_the_same_counts_and_sums(frame, nulls):
    assert Counts.of(frame, GRID, nulls=nulls).cells.tolist() == slow_counts(FRAME, GRID, nulls)
    assert Counts.of(frame, EDGES, nulls=nulls).cells.tolist() == slow_counts(FRAME, EDGES, nulls)
    assert Sums.of(frame, LATTICE, nulls=nulls, squares=True) == slow_sums(FRAME, LATTICE, nulls)


@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1])
def test_nothing_is_lost_where_chunks_meet(size):
    values = np.arange(size) % 7.0
    counts = Counts.of(values, Grid.of_step(0, 6, 1))
    assert counts.cells.tolist() == np.bincount((np.arange(size) % 7), minlength=7).tolist()
    lattice = Lattice.over(0, 6, points=6, origin=0)
    assert Sums.of(values, lattice).first == int((np.arange(size) % 7).sum()) == counts.sum


@pytest.mark.parametrize("cells", [3, 1000, 2**17])
@given(st.data())
def test_moments_equal_those_of_python_integers(cells, data):
    grid = Grid(0, 1, cells=cells)
    filled = data.draw(st.dictionaries(st.integers(0, cells - 1), st.integers(0, 2**60), max_size=4))
    array = np.zeros(cells, dtype=np.int64)
    for index, count in filled.items():
        array[index] = count
    if sum(filled.values()) > 2**62:
        return
    counts = Counts(grid, array)
    assert counts.size == sum(filled.values())
    assert counts.sum == sum(i * c for i, c in filled.items())
    assert counts.sum_of_squares == sum(i * i * c for i, c in filled.items())


@pytest.mark.parametrize("total", [2**62 - 1, 2**62], ids=["2**62-1", "2**62"])
def test_counts_are_exact_up_to_the_limit_and_refused_above(total):
    grid = Grid(0, 1, cells=2**16)
    array = np.zeros(2**16, dtype=np.int64)
    array[[3, -1]] = [total - 2**61, 2**61]
    counts = Counts(grid, array)
    assert counts.size == total
    assert counts.sum == 3 * (total - 2**61) + (2**16 - 1) * 2**61
    assert counts.sum_of_squares == 9 * (total - 2**61) + (2**16 - 1) ** 2 * 2**61
    array[3] += 2**62 + 1 - total
    with pytest.raises(InvalidParameter, match=r"at most 2\*\*62"):
        Counts(grid, array)


def test_moments_that_int64_would_wrap_are_exact():
    # Each product of count and squared index is near 2**62; three of them pass 2**63.
    array = np.zeros(2**16, dtype=np.int64)
    array[-3:] = 2**30
    counts = Counts(Grid(0, 1, cells=2**16), array)
    indices = [2**16 - 3, 2**16 - 2, 2**16 - 1]
    assert counts.sum_of_squares == 2**30 * sum(i * i for i in indices) > 2**63


@pytest.mark.parametrize(
    "cells",
    [
        [1, -1],
        [1],
        [1, 2, 3],
        [[1, 2]],
        [1.0, 2.0],
        [True, False],
        ["1", "2"],
        [2**62, 2**62],
        [2**63 - 1] * 2,
        np.array([1, 2**64 - 1], np.uint64),
        np.array([1, 2**63 + 5], np.uint64),
    ],
    ids=str,
)
def test_counts_that_are_no_counts_are_refused(cells):
    with pytest.raises(InvalidParameter, match=r"^cells must be "):
        Counts(Grid(0, 1, cells=2), np.asarray(cells))


def test_counts_are_copied_and_frozen():
    array = np.array([1, 2])
    counts = Counts(Grid(0, 1, cells=2), array)
    array[0] = 99
    assert counts.cells.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        counts.cells[0] = 5


# 2**50 + 1/4 loses its fraction beside larger numbers; ±max overflow in some orders only.
ADVERSARIAL = np.array(
    [
        2.0**50 + 0.25,
        -(2.0**50) - 0.25,
        1e308,
        -1e308,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        5e-324,
        -5e-324,
        2.2e-308,
        0.1,
        0.2,
        0.3,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e16,
        1.0,
        -1e16,
        1 / 3,
    ]
)


@pytest.mark.parametrize(
    "lattice",
    [
        Lattice.over(0, 2**51, points=2**31, origin=0),
        Lattice.over(-1, 1, points=2**17, origin=0),
        Lattice.over(-1e100, 1e100, points=2**31, origin=0),
        Lattice.over(0.1, 0.9, points=2**30, origin=0.5),
    ],
    ids=["large", "unit", "huge", "narrow"],
)
def test_sums_are_the_same_to_the_last_bit_in_a_thousand_orders(lattice):
    rng = np.random.default_rng(20240501)
    squares = max(abs(lattice.low), abs(lattice.high)) < 2**18
    first = Sums.of(ADVERSARIAL, lattice, squares=squares)
    assert all(Sums.of(rng.permutation(ADVERSARIAL), lattice, squares=squares) == first for _ in range(1000))
    # A float sum of the same values does depend on the order, so the test can fail.
    finite = ADVERSARIAL[np.abs(ADVERSARIAL) < 1e300]
    assert len({float(np.cumsum(rng.permutation(finite))[-1]) for _ in range(100)}) > 1


def test_one_changed_record_moves_a_sum_by_no_more_than_the_width():
    lattice = Lattice.over(-1, 1, points=2**17, origin=0)
    base = Sums.of(ADVERSARIAL, lattice)
    for value in [*ADVERSARIAL, 7.0, -7.0]:
        changed = ADVERSARIAL.copy()
        changed[9] = value
        assert (
            abs(
                Sums.of(changed, lattice, nulls="lower").first
                - Sums.of(ADVERSARIAL, lattice, nulls="lower").first
            )
            <= lattice.width
        )
        assert abs(Sums.of(changed, lattice).first - base.first) <= lattice.width


def test_a_lattice_whose_chunk_would_leave_float64_is_refused():
    fine = Lattice.over(0, 1, points=2**38, origin=0)
    with pytest.raises(InvalidParameter, match=r"^lattice must keep sums .* below 2\*\*53"):
        Sums.of([0.5], fine)
    with pytest.raises(InvalidParameter, match=r"^lattice must keep sums"):
        Sums.of([0.5], Lattice.over(0, 1, points=2**36, origin=0), squares=True)


def peak(size):
    values = np.random.default_rng(3).random(size)
    tracemalloc.start()
    Counts.of(values, Grid(0, 1, cells=100))
    Sums.of(values, LATTICE, squares=True)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_counting_needs_a_few_chunks_of_memory_however_long_the_column():
    small, large = peak(2 * 10**5), peak(2 * 10**6)
    assert large < 4 * 8 * CHUNK < 2 * 10**6 * 8 / 6
    assert large < 1.2 * small


@pytest.mark.parametrize("values", [["a"], [True], np.array([3], "m8[D]")])
def test_columns_that_are_no_numbers_are_refused(values):
    for make in (lambda: Counts.of(values, GRID), lambda: Sums.of(values, LATTICE)):
        with pytest.raises(SchemaMismatch, match=r"^column 'values' "):
            make()


def test_an_unknown_null_rule_is_refused():
    for make in (lambda: Counts.of([1], GRID, nulls="zero"), lambda: Sums.of([1], LATTICE, nulls=None)):
        with pytest.raises(InvalidParameter, match=r"^nulls must be one of 'drop', 'lower', 'upper'"):
            make()


def test_a_grid_too_large_for_a_dense_vector_is_refused():
    with pytest.raises(InvalidParameter, match=r"^cells must be in"):
        Counts.of([1.0], Grid(0, 1, cells=2**27))


def test_categories_are_counted_with_and_without_the_others():
    values = ["b", None, "x", "b", "a"]
    assert count_categories(values, ["a", "b", "c"]).tolist() == [1, 2, 0]
    assert count_categories(values, ["a", "b", "c"], other=True).tolist() == [1, 2, 0, 1]
