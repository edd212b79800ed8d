"""Inverse sensitivity of a proportion: exact level and loss by enumeration, recalibration, lower bounds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accuracy import (
    bernoulli_inverse_level,
    bernoulli_inverse_loss,
    is_unbiased,
    recalibrated_fall,
    unbiased_lower_bound,
    worst_lower_bound,
)
from sfumato.accuracy.inverse_sensitivity import level_is_within
from sfumato.errors import InvalidParameter

SIZES = (1, 2, 3, 10, 50)
EPSILONS = (0.01, 0.1, 1, 3, 40)


def law(rows, matches, fall, radius=0):
    weights = np.exp(-fall * np.maximum(np.abs(np.arange(rows + 1) - matches) - radius, 0))
    return weights / weights.sum()


def level(rows, fall, radius=0):
    """The largest log ratio over all neighbours and outcomes."""
    logs = np.log([law(rows, matches, fall, radius) for matches in range(rows + 1)])
    return float(np.abs(np.diff(logs, axis=0)).max())


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_loss_is_that_of_enumeration(rows, epsilon):
    for matches in range(rows + 1):
        away = np.abs(np.arange(rows + 1) - matches) / rows
        expected = law(rows, matches, epsilon / 2) @ away
        assert bernoulli_inverse_loss(rows, matches, epsilon) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-8, 2e-7, 1e-5, 1e-3])
def test_the_loss_of_many_rows_keeps_its_digits_when_weights_are_nearly_equal(epsilon):
    rows = 10_000
    for matches in (0, 5_000, 9_000):
        away = np.abs(np.arange(rows + 1) - matches)
        weights = np.exp(-epsilon / 2 * away)
        expected = (weights * away).sum() / weights.sum() / rows
        assert bernoulli_inverse_loss(rows, matches, epsilon) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_the_loss_tends_to_one_over_n_sinh(epsilon):
    scaled = [rows * bernoulli_inverse_loss(rows, rows // 2, epsilon) for rows in (500, 10**6, 10**15)]
    assert scaled[-1] == pytest.approx(1 / math.sinh(epsilon / 2), rel=1e-9)
    assert scaled[0] == pytest.approx(scaled[-1], rel=1e-6 if epsilon >= 1 else 1e-3)
    # Clamped geometric noise of the same budget errs by 1/(n sinh(epsilon)): less by this factor.
    assert scaled[-1] * math.sinh(epsilon) == pytest.approx(2 * math.cosh(epsilon / 2), rel=1e-9)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("radius", [0, 1, 2, 5, 24, 30, 60])
def test_the_level_is_that_of_enumeration(rows, radius):
    for epsilon in (0.01, 0.1, 1, 3):
        found = bernoulli_inverse_level(rows, epsilon, radius)
        assert found == pytest.approx(level(rows, epsilon / 2, radius), rel=1e-9, abs=1e-12)
        assert found <= epsilon


def test_the_level_of_many_rows_is_below_the_budget():
    levels = [bernoulli_inverse_level(10**9, epsilon) for epsilon in (0.1, 1, 3)]
    assert [round(found, 4) for found in levels] == [0.0953, 0.714, 1.6599]
    for epsilon, found in zip((0.1, 1, 3), levels, strict=True):
        r = math.exp(-epsilon / 2)
        assert found == pytest.approx(epsilon / 2 + math.log(1 + r - r * r), rel=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 7, 60])
@pytest.mark.parametrize("radius", [0, 1, 3, 40])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(7)])
def test_the_recalibrated_level_is_the_budget_from_below(rows, radius, epsilon):
    fall = recalibrated_fall(rows, epsilon, radius)
    found = level(rows, float(fall), radius)
    if radius >= rows:
        assert (found, fall) == (0, epsilon)
        return
    assert epsilon / 2 <= fall <= epsilon * (1 + Fraction(1, rows))
    # Enumeration reaches the budget, from below but for its own rounding, and a larger fall would pass it.
    assert found == pytest.approx(float(epsilon), rel=1e-10)
    assert level(rows, float(fall) * (1 + 1e-6), radius) > float(epsilon) * (1 + 1e-7)
    # Between the flat parts of both ends the largest fall is above the budget.
    assert (fall > epsilon * (1 + Fraction(1, 10**4))) == (rows <= 2 * radius)


@pytest.mark.parametrize(("rows", "radius"), [(2, 1), (3, 2), (60, 40), (80, 40), (10**9, 10**9 - 1)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1), Fraction(40)])
def test_the_largest_fall_has_its_closed_form_where_the_flat_part_covers_half(rows, radius, epsilon):
    fall = recalibrated_fall(rows, epsilon, radius)
    excess = math.log1p(-math.expm1(-float(epsilon)) / rows)
    assert float(fall - epsilon) == pytest.approx(excess, abs=float(epsilon) * 2.0**-39)
    assert level_is_within(rows, fall, epsilon, radius)
    assert not level_is_within(rows, fall + epsilon / 2**39, epsilon, radius)


@pytest.mark.parametrize(("rows", "radius"), [(7, 0), (7, 2), (7, 3), (7, 4), (60, 29), (60, 30)])
def test_the_level_increases_with_the_fall_so_that_a_bisection_finds_the_largest(rows, radius):
    levels = [level(rows, fall, radius) for fall in np.geomspace(1e-3, 10, 200)]
    assert np.all(np.diff(levels) > 0)


@pytest.mark.parametrize("rows", [2, 7, 10**9])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**12), Fraction(1, 10), Fraction(1), Fraction(30)])
def test_recalibration_that_is_rounded_the_wrong_way_is_refuted_by_integers(rows, epsilon):
    fall = recalibrated_fall(rows, epsilon)
    assert level_is_within(rows, fall, epsilon)
    assert not level_is_within(rows, fall + epsilon / 2**40, epsilon)


@pytest.mark.parametrize("epsilon", [10**6, Fraction(1, 10**12)])
@pytest.mark.parametrize("rows", [1, 5, 10**12])
def test_recalibration_holds_at_the_extremes(rows, epsilon):
    budget = Fraction(epsilon)
    fall = recalibrated_fall(rows, budget)
    # One row has the level of its fall; many rows lose a log of at most 3/2 more, or a part of the budget.
    if rows == 1:
        assert fall == budget
    elif epsilon > 1:
        assert budget - 1 < fall <= budget
    else:
        # All weights are nearly equal, and one of rows + 1 moves: c + c (n - 1) / (n + 1).
        assert float(fall / budget) == pytest.approx((rows + 1) / (2 * rows), rel=1e-9 if rows < 100 else 0.2)
    assert level_is_within(rows, fall, budget)
    assert not level_is_within(rows, fall + budget / 2**39, budget)


@pytest.mark.parametrize("rows", [3, 10, 50])
@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_unbiased_is_where_no_other_constant_is_nearer(rows, epsilon):
    points = np.arange(rows + 1)
    biased = 0
    for matches in points:
        chances = law(rows, matches, epsilon / 2)
        losses = np.abs(points[:, None] - points) @ chances
        assert is_unbiased(rows, int(matches), epsilon) == (losses[matches] <= losses.min() + 1e-12)
        biased += not is_unbiased(rows, int(matches), epsilon)
    assert 0 < biased < rows + 1


@pytest.mark.parametrize("rows", [3, 10, 50])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_losses_respect_the_lower_bounds_and_stay_away_from_them(rows, epsilon):
    losses = [bernoulli_inverse_loss(rows, matches, epsilon) for matches in range(rows + 1)]
    for matches in range(rows + 1):
        if is_unbiased(rows, matches, epsilon):
            assert losses[matches] >= unbiased_lower_bound(rows, epsilon)
    for left, right in itertools.pairwise(losses):
        assert max(left, right) >= worst_lower_bound(rows, epsilon)


def test_the_lower_bound_needs_its_hypothesis():
    # What always answers 0 is private, and its best constant is 0: the truth at no matches and nowhere else.
    # So the hypothesis fails at the neighbour, and at no matches the loss is below the bound.
    losses = [matches / 10 for matches in range(11)]
    assert [loss < unbiased_lower_bound(10, 1) for loss in losses] == [True] + [False] * 10
    # Of two neighbours one errs by the bound that has no hypothesis, and by not much more.
    assert all(max(pair) >= worst_lower_bound(10, 1) for pair in itertools.pairwise(losses))
    assert max(losses[:2]) < 4 * worst_lower_bound(10, 1)
    ratios = [bernoulli_inverse_loss(n, n // 2, 1) / unbiased_lower_bound(n, 1) for n in (100, 500, 10**6)]
    assert [round(ratio, 1) for ratio in ratios] == [16.1, 16.1, 16.1]
    assert round(unbiased_lower_bound(1, 1), 4) == 0.1192


@pytest.mark.parametrize("call", [bernoulli_inverse_loss, is_unbiased])
def test_counts_out_of_range_are_refused_by_name(call):
    with pytest.raises(InvalidParameter, match=r"^matches must be in"):
        call(5, 6, 1)
    with pytest.raises(InvalidParameter, match=r"^rows must be in"):
        call(0, 0, 1)
    with pytest.raises(InvalidParameter, match=r"^epsilon must be positive"):
        call(5, 1, 0)
    with pytest.raises(InvalidParameter, match=r"^epsilon must not be negative"):
        unbiased_lower_bound(5, -1)
