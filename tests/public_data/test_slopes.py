"""Slopes of a regression: how far one record moves them, and that the certificate holds."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.dataset import Dataset
from sfumato.privacy import ZCDP, PureDP
from sfumato.public_data import Features, Slopes
from sfumato.public_data.certified import Objective, certified_slopes, exact_sum, sigmoid
from sfumato.public_data.feature_map import shortened
from sfumato.public_data.logistic import full_steps, rounded, with_intercept

STEPS = 2**12
FINE = Fraction(1, 10**6)


def vectors(*rows):
    """Rows of length at most 1 as integers, rounded towards zero."""
    return np.trunc(np.array(rows) * STEPS).astype(np.int64)


def distance(objective, left, right, public, tolerance=FINE):
    found = [certified_slopes(objective, side, public, tolerance)[0] for side in (left, right)]
    return float(np.linalg.norm(found[0] - found[1]))


def circle(angle, length=1.0):
    return (length * math.cos(angle), length * math.sin(angle))


@given(
    st.lists(st.tuples(st.floats(0, 6.3), st.floats(0, 1)), min_size=1, max_size=5),
    st.lists(st.tuples(st.floats(0, 6.3), st.floats(0, 1)), min_size=1, max_size=4),
    st.floats(0, 6.3),
    st.sampled_from([0.05, 0.5, 5.0, 50.0]),
    st.sampled_from([0.5, 3.0, 1000.0]),
)
def test_no_antipodal_pair_moves_the_slopes_further_than_proved(rows, public, angle, penalty, weight):
    objective = Objective(weight, penalty, STEPS)
    kept, theirs = (vectors(*(circle(*row) for row in listed)) for listed in (rows, public))
    one, other = vectors(circle(angle)), -vectors(circle(angle))
    replaced = distance(objective, np.vstack([kept, one]), np.vstack([kept, other]), theirs)
    added = distance(objective, kept, np.vstack([kept, one]), theirs)
    slack = 2 * float(FINE) / penalty
    assert replaced <= 2 / penalty + slack
    assert added <= 1 / penalty + slack


def worst_pair():
    """Two rows that are both on the wrong side of a large slope, and point away from each other."""
    objective = Objective(95_000.0, 4.0, STEPS)
    public = vectors((-1.0, 0.0))
    return objective, vectors((-0.4, 0.9165)), vectors((-0.4, -0.9165)), public


def test_rows_without_an_intercept_move_the_slopes_by_more_than_the_root_of_two():
    objective, left, right, public = worst_pair()
    tolerance = Fraction(1, 10_000)
    moved = distance(objective, left, right, public, tolerance)
    assert (math.sqrt(2) + 2 * float(tolerance)) / 4 < moved <= (2 + 2 * float(tolerance)) / 4


def test_a_constant_of_one_for_replaced_rows_is_caught():
    # Public rows of a huge weight make the slope of the intercept large: both rows are on its wrong side.
    half = STEPS * 70 // 100
    rows = with_intercept(np.array([[half], [-half], [0]]), half)
    objective, tolerance = Objective(1e7, 4.0, full_steps(half)), Fraction(1, 1000)
    moved = distance(objective, rows[:1], rows[1:2], rows[2:], tolerance)
    assert 1.4 / 4 < moved <= (math.sqrt(2) + 2 * float(tolerance)) / 4
    assert moved > (1 + 2 * float(tolerance)) / 4  # what c = 1 would have promised


@given(
    st.lists(st.integers(-60, 60), min_size=4, max_size=4),
    st.sampled_from([1, 7, 40]),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_replaced_rows_with_intercepts_change_a_gradient_by_at_most_the_root_of_two(
    values, steps, one, other
):
    rows = with_intercept(shortened(np.array(values).reshape(2, 2), steps, "l2"), steps)
    first, second = ([int(value) for value in row] for row in rows)
    changed = [Fraction(one) * a - Fraction(other) * b for a, b in zip(first, second, strict=True)]
    assert sum(value**2 for value in changed) <= 2 * full_steps(steps) ** 2


@pytest.mark.parametrize("rows", [1, 100, 10**6])
@pytest.mark.parametrize("penalty", [1e-12, 1e-4, 1e6])
def test_the_search_settles_on_tables_that_a_line_divides(rows, penalty):
    # Slopes grow until the penalty stops them; a search that gave up would tell of the data.
    objective = Objective(rows / 20, penalty * rows, STEPS)
    right, left = vectors((0.7, 0.7)), vectors((0.7, -0.7))
    private, public = np.repeat(right, min(rows, 100), axis=0), np.repeat(left, 20, axis=0)
    tolerance = objective.tolerance(max(rows, 100), 20, 2)
    for table in (private, np.repeat(left, 5, axis=0), right[:0]):
        found, proved = certified_slopes(objective, table, public, tolerance)
        assert proved <= tolerance
        assert np.linalg.norm(found) <= 1.01 * objective.longest(len(table), 20) + 1e-9


def test_a_bound_without_the_tolerance_is_caught():
    # The search stops at zero for one table, whose gradient is just allowed, and not for its neighbour.
    objective, tolerance = Objective(1.0, 200.0, STEPS), Fraction(14, 10)
    kept, public = vectors((0.9, 0), (0.9, 0), (0.9, 0)), vectors((0, 0))
    moved = distance(objective, kept, np.vstack([kept, vectors((1, 0))]), public, tolerance)
    assert moved > 1 / 200
    assert moved <= (1 + 2 * float(tolerance)) / 200


def exact_gradient(objective, private, public, slopes):
    """The gradient to 60 digits."""
    with mpmath.workdps(60):
        exact = [mpmath.mpf(float(slope)) for slope in slopes]
        total = [mpmath.mpf(objective.penalty) * slope for slope in exact]
        for table, sign, weight in ((private, -1, 1.0), (public, 1, objective.public_weight)):
            for row in table.tolist():
                exponent = (
                    sum(value * slope for value, slope in zip(row, exact, strict=True)) / objective.steps
                )
                share = 1 / (1 + mpmath.exp(-sign * exponent))
                for place, value in enumerate(row):
                    total[place] += sign * mpmath.mpf(weight) * share * value / objective.steps
        return [mpmath.mpf(each) for each in total]


@pytest.mark.parametrize("penalty", [0.01, 1.0, 40.0])
@pytest.mark.parametrize("weight", [0.3, 700.0])
def test_the_certificate_holds_for_the_exact_gradient(penalty, weight):
    generator = np.random.default_rng(8)
    private, public = (
        np.trunc(generator.uniform(-0.55, 0.6, (40, 3)) * STEPS).astype(np.int64) for _ in range(2)
    )
    objective = Objective(weight, penalty, STEPS)
    for slopes in (np.zeros(3), np.array([1.0, -2.0, 3.0]), np.array([300.0, 1.0, -70.0])):
        found, error = objective.gradient(private, public, slopes)
        exact = exact_gradient(objective, private, public, slopes)
        off = mpmath.sqrt(sum((mpmath.mpf(float(a)) - b) ** 2 for a, b in zip(found, exact, strict=True)))
        assert off <= error
    tolerance = objective.tolerance(40, 40, 3)
    slopes, proved = certified_slopes(objective, private, public, tolerance)
    assert mpmath.norm(exact_gradient(objective, private, public, slopes)) <= proved <= tolerance


@given(st.lists(st.tuples(st.integers(-(2**20), 2**20), st.floats(0, 1)), min_size=1, max_size=700))
def test_sums_are_exact_in_any_order(pairs):
    rows = np.array([[row] for row, _ in pairs])
    shares = np.array([share for _, share in pairs])
    expected = sum(row * round(Fraction(share) * 2**40) for row, share in pairs)
    assert exact_sum(rows, shares).tolist() == [float(Fraction(expected, 2**40))]
    assert exact_sum(rows[::-1], shares[::-1]).tolist() == [float(Fraction(expected, 2**40))]


def test_the_error_of_a_gradient_has_all_its_proved_parts():
    error = Objective(2.0, 3.0, STEPS).evaluation_error(5, 4, 6, 100.0)
    each = 2.0**-39 + 2.0**-41 + 8 * 2.0**-53 * 100 / 2 + 8 * 2.0**-53
    assert error == pytest.approx(13 * each + 8 * 2.0**-53 * 300, rel=1e-12)


def test_sigmoids_never_overflow():
    assert sigmoid(np.array([-1e308, -800.0, 0.0, 800.0, 1e308])).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.integers(-20, 3))
def test_rounding_moves_each_slope_by_at_most_half_a_step(slopes, power):
    step = Fraction(2) ** power
    for slope, whole in zip(slopes, rounded(np.array(slopes), step).tolist(), strict=True):
        assert abs(Fraction(slope) - whole * step) <= step / 2


def slopes_query(neighbours, budget, rows=12, penalty=Fraction(1, 10)):
    public = Dataset(
        {"x": np.linspace(-2, 2, 15), "y": np.arange(15.0) % 4}, unit="row", neighbours="substitution"
    )
    fitted = Features(numbers=["x", "y"]).fitted(public, norm="l2", steps=1000)
    return Slopes(map=fitted, public=public, budget=budget, neighbours=neighbours, rows=rows, penalty=penalty)


@pytest.mark.parametrize("neighbours", ["substitution", "add-remove"])
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.5)])
def test_rounded_slopes_of_neighbours_are_within_the_sensitivity(neighbours, budget):
    asked = slopes_query(neighbours, budget)
    generator = np.random.default_rng(3)
    sensitivity = asked.sensitivity
    for _ in range(12):
        table = {"x": generator.normal(0, 3, 12), "y": generator.normal(0, 9, 12)}
        other = {name: np.array([*values[:-1], -50 * values[-1]]) for name, values in table.items()}
        if neighbours == "add-remove":
            other = {name: values[:-1] for name, values in table.items()}
        views = [asked.look(Dataset(each, unit="row", neighbours=neighbours)) for each in (table, other)]
        gap = [int(value) for value in views[0] - views[1]]
        assert sum(value**2 for value in gap) <= sensitivity.l2_squared
        assert sum(map(abs, gap)) <= sensitivity.l1


def test_the_sensitivity_is_the_sum_of_its_proved_parts():
    asked = slopes_query("substitution", ZCDP(0.5))
    strength = Fraction(asked.objective.penalty)
    root = asked.moved * strength - 2 * asked.tolerance
    assert 2 <= root**2 < 2 + Fraction(1, 2**70)
    in_steps = float(asked.moved / asked.step)
    assert asked.sensitivity.l2_squared >= (in_steps + math.sqrt(3)) ** 2 * (1 - 1e-12)
    assert asked.sensitivity.l1 >= math.sqrt(3) * in_steps + 3
    added = slopes_query("add-remove", ZCDP(0.5))
    assert added.moved == (1 + 2 * added.tolerance) / strength
    assert added.tolerance > asked.tolerance  # it holds for tables of every size


@pytest.mark.parametrize("steps", [1, 5, 1000, 741_455])
def test_a_vector_with_its_intercept_is_within_the_full_bound(steps):
    longest = with_intercept(np.array([[steps], [-steps]]), steps)
    assert (longest**2).sum(axis=1).max() <= full_steps(steps) ** 2
    assert full_steps(741_455) <= 2**20
