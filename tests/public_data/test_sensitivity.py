"""How far one record moves the sums of features: enumerated, fuzzed, and audited with the noise."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.public_data import Features, FeatureSums
from sfumato.public_data.feature_map import root_up, shortened

PUBLIC = {
    "x": np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0, 4.0, 7.0] * 3),
    "y": np.array([10.0, 0.0, 5.0, 20.0, 15.0, 1.0, 8.0, 30.0] * 3),
    "kind": np.array(["a", "b", "a", "c", "b", "a", "a", "d"] * 3),
}
RICH = Features(
    numbers={"x": None, "y": (0, 20)},
    categories={"kind": ("a", "b")},
    squares=True,
    interactions=True,
    nulls="indicator",
)
BUDGETS = {"l1": PureDP(0.5), "l2": ZCDP(0.1)}


def dataset(table, neighbours="substitution"):
    return Dataset(table, unit="row", neighbours=neighbours)


def length_squared(vector, norm):
    """The exact squared length of an integer vector."""
    values = [abs(int(value)) for value in vector]
    return sum(values) ** 2 if norm == "l1" else sum(value**2 for value in values)


def extreme_table():
    """Rows at, inside and far outside of all bounds, with nulls, infinities and unknown categories."""
    numbers = (-math.inf, -1e308, -3.0, 0.0, 0.1, 2.0, 1e9, math.inf, math.nan)
    rows = list(itertools.product(numbers, numbers, ("a", "b", "other", None)))
    return {
        "x": np.array([row[0] for row in rows]),
        "y": np.array([row[1] for row in rows]),
        "kind": np.array([row[2] for row in rows], dtype=object),
    }


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 1000, 2**20])
def test_no_two_rows_are_further_apart_than_the_sensitivity(norm, steps):
    fitted = RICH.fitted(dataset(PUBLIC), norm=norm, steps=steps)
    vectors = fitted.vectors(dataset(extreme_table()))
    assert vectors.shape == (324, len(RICH.coordinates))
    for neighbours, rows in (("substitution", 5), ("add-remove", None)):
        sums = FeatureSums(map=fitted, budget=BUDGETS[norm], neighbours=neighbours, rows=rows)
        bound = sums.sensitivity.l1**2 if norm == "l1" else sums.sensitivity.l2_squared
        if rows is None:
            moved = np.column_stack([np.full(len(vectors), sums.counted), vectors])
        else:
            distinct = np.unique(vectors, axis=0)
            moved = (distinct[:, None] - distinct[None, :]).reshape(-1, vectors.shape[1])
        sizes = np.abs(moved).sum(axis=1) ** 2 if norm == "l1" else (moved * moved).sum(axis=1)
        assert int(sizes.max()) <= bound


def test_opposite_rows_come_close_to_the_bound():
    fitted = Features(numbers=["x", "y"], radius=1).fitted(dataset(PUBLIC), norm="l2", steps=1000)
    pair = fitted.vectors(dataset({"x": np.array([99.0, -99.0]), "y": np.array([8.0, 8.0])}))
    gap = pair[0] - pair[1]
    assert 0.98 * 4 * 1000**2 <= length_squared(gap, "l2") <= 4 * 1000**2


FLOATS = st.floats(-50, 50) | st.sampled_from([0.0, 0.5, -0.5, 1.0, -1.0, 1e300])


@given(arrays(np.float64, (4, 3), elements=FLOATS), st.integers(1, 2**20), st.sampled_from(["l1", "l2"]))
def test_any_vector_is_within_the_bound_after_rounding(near, steps, norm):
    fitted = Features(numbers=["x", "y"]).fitted(dataset(PUBLIC), norm=norm, steps=steps)
    found = fitted.on_lattice(near)
    for row, before in zip(found, near, strict=True):
        assert length_squared(row, norm) <= steps**2
        # Towards zero: no coordinate grows, and none changes its sign.
        assert all(a * np.sign(b) >= 0 for a, b in zip(row, before, strict=True))
        exact = [abs(Fraction(float(b)) / Fraction(fitted.radius)) * steps for b in before]
        slack = 1 + Fraction(1, 2**40)
        assert all(abs(int(a)) <= e * slack for a, e in zip(row, exact, strict=True))


def not_clipped(near, steps):
    return np.trunc(near * steps).astype(np.int64)


def to_nearest(near, steps):
    lengths = np.maximum(np.linalg.norm(near, axis=1, keepdims=True), 1.0)
    return np.rint(near / lengths * steps).astype(np.int64)


@pytest.mark.parametrize("mutant", [not_clipped, to_nearest])
def test_a_map_that_does_not_clip_or_that_rounds_to_the_nearest_is_caught(mutant):
    directions = np.array(list(itertools.product([-1.2, -0.7, 0.0, 0.4, 0.9], repeat=3)))
    ours = shortened(np.trunc(directions * 7).astype(np.int64), 7, "l2")
    assert max(length_squared(row, "l2") for row in ours) <= 49
    assert max(length_squared(row, "l2") for row in mutant(directions, 7)) > 49


@given(st.integers(0, 2**61), st.integers(0, 2**30))
def test_the_root_is_the_smallest_that_is_large_enough(square, root):
    for value in (square, root**2, root**2 + 1, max(root**2 - 1, 0)):
        found = int(root_up(np.array([value]))[0])
        assert found == (math.isqrt(value - 1) + 1 if value else 0)


def small(neighbours, budget, steps):
    norm = "l1" if isinstance(budget, PureDP) else "l2"
    fitted = Features(numbers={"x": (0, 1)}, radius=1).fitted(
        dataset({"x": np.linspace(0, 1, 9)}), norm=norm, steps=steps
    )
    rows = 2 if neighbours == "substitution" else None
    return FeatureSums(map=fitted, budget=budget, neighbours=neighbours, rows=rows)


def pairs(neighbours):
    """All neighbouring tables of up to three rows on a small grid."""
    grid = [0.0, 0.25, 0.5, 1.0, math.nan]
    if neighbours == "substitution":
        for kept, left, right in itertools.product(grid, repeat=3):
            yield [kept, left], [kept, right]
    else:
        for size in range(3):
            for rows in itertools.product(grid, repeat=size):
                for more in grid:
                    yield list(rows), [*rows, more]


def worst_loss(sums, neighbours, count=None):
    worst = 0.0
    span = np.arange(-12, 13)
    for left, right in pairs(neighbours):
        laws = []
        for rows in (left, right):
            view = sums.look(dataset({"x": np.array(rows, dtype=np.float64)}, neighbours))
            laws.append(sums.law(view if count is None else view * count))
        outcomes = np.array(list(itertools.product(span, repeat=len(np.atleast_1d(laws[0].center)))))
        loss = laws[0].logpmf(outcomes) - laws[1].logpmf(outcomes)
        worst = max(worst, float(np.abs(loss).max()))
    return worst


@pytest.mark.parametrize("neighbours", ["substitution", "add-remove"])
def test_the_exact_loss_over_all_small_neighbours_is_epsilon_and_no_more(neighbours):
    sums = small(neighbours, PureDP(0.7), steps=4)
    assert 0.7 - 1e-9 <= worst_loss(sums, neighbours) <= 0.7 + 1e-9
    # Sums that move twice as far as they are said to are noticed.
    assert worst_loss(sums, neighbours, count=2) > 0.71


@pytest.mark.parametrize("neighbours", ["substitution", "add-remove"])
@pytest.mark.parametrize("budget", [ZCDP(0.2), ApproxDP(1, 1e-5)])
def test_the_cost_of_gaussian_noise_is_that_of_the_proved_sensitivity(neighbours, budget):
    sums = small(neighbours, budget, steps=1024)
    expected = 4 * 1024**2 if neighbours == "substitution" else 1024**2 + 512**2
    assert sums.event.sensitivity_squared == expected
    if isinstance(budget, ZCDP):
        assert sums.event.sigma_squared == Fraction(expected) / (2 * budget.rho)


CELLS = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-10, 10)


@given(
    st.lists(st.tuples(CELLS, CELLS), max_size=6),
    st.tuples(CELLS, CELLS),
    st.sampled_from(["l1", "l2"]),
    st.sampled_from([3, 2**20]),
)
def test_no_row_of_any_table_moves_the_sums_further_than_proved(kept, row, norm, steps):
    public = dataset({"x": PUBLIC["x"], "y": PUBLIC["y"]})
    features = Features(numbers=["x", "y"], squares=True, interactions=True)
    fitted = features.fitted(public, norm=norm, steps=steps)
    opposite = (-row[0], -row[1])
    for neighbours, tables in (
        ("substitution", ([*kept, row], [*kept, opposite])),
        ("add-remove", (kept, [*kept, row])),
    ):
        rows = len(kept) + 1 if neighbours == "substitution" else None
        sums = FeatureSums(map=fitted, budget=BUDGETS[norm], neighbours=neighbours, rows=rows)
        views = [
            sums.look(dataset(dict(zip("xy", np.array(table).reshape(-1, 2).T, strict=True)), neighbours))
            for table in tables
        ]
        bound = sums.sensitivity.l1**2 if norm == "l1" else sums.sensitivity.l2_squared
        assert length_squared(views[0] - views[1], norm) <= bound


@given(st.permutations(range(20)))
def test_sums_do_not_depend_on_the_order_of_rows(order):
    generator = np.random.default_rng(5)
    table = {
        "x": generator.normal(size=20),
        "y": generator.normal(size=20),
        "kind": np.array(["a", "c"] * 10),
    }
    fitted = RICH.fitted(dataset(PUBLIC), norm="l2", steps=2**20)
    sums = FeatureSums(map=fitted, budget=ZCDP(1), neighbours="substitution", rows=20)
    moved = {name: values[list(order)] for name, values in table.items()}
    assert sums.look(dataset(table)).tolist() == sums.look(dataset(moved)).tolist()


def test_a_map_of_the_wrong_norm_is_refused():
    fitted = RICH.fitted(dataset(PUBLIC), norm="l2", steps=100)
    with pytest.raises(InvalidParameter, match="norm must be 'l1'"):
        FeatureSums(map=fitted, budget=PureDP(1), neighbours="substitution", rows=3)
    with pytest.raises(InvalidParameter, match="rows must be given under substitution alone"):
        FeatureSums(map=fitted, budget=ZCDP(1), neighbours="add-remove", rows=3)
