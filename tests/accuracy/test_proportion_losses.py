"""Losses of private proportions: limits against enumeration, and the constants in print."""

import math

import numpy as np
import pytest

from sfumato.accuracy import (
    bernoulli_inverse_equivalent,
    bernoulli_inverse_loss,
    clamped_geometric_equivalent,
    clamped_geometric_loss,
    is_unbiased,
    published_bernoulli_inverse_curve,
    published_bernoulli_inverse_equivalent,
    published_unbiased_lower_bound,
    unbiased_lower_bound,
)
from sfumato.errors import InvalidParameter

EPSILONS = (0.01, 0.1, 1, 3, 40)


def clamped_law(rows, matches, epsilon):
    """The law of s plus geometric noise, clamped: the tails are atoms at both ends."""
    q = math.exp(-epsilon)
    chances = (1 - q) / (1 + q) * q ** np.abs(np.arange(rows + 1) - matches)
    chances[0], chances[-1] = q**matches / (1 + q), q ** (rows - matches) / (1 + q)
    return chances


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("rows", [1, 2, 7, 60])
def test_the_clamped_loss_is_that_of_enumeration(rows, epsilon):
    for matches in range(rows + 1):
        chances = clamped_law(rows, matches, epsilon)
        assert chances.sum() == pytest.approx(1)
        expected = chances @ np.abs(np.arange(rows + 1) - matches) / rows
        found = clamped_geometric_loss(rows, matches, epsilon)
        assert found == pytest.approx(expected, rel=1e-10)
        assert found <= clamped_geometric_equivalent(rows, epsilon) * (1 + 1e-12)
        # A truncated law is another one.
        truncated = math.exp(-epsilon) ** np.abs(np.arange(rows + 1) - matches)
        other = truncated @ np.abs(np.arange(rows + 1) - matches) / rows / truncated.sum()
        if rows > 2 and epsilon <= 1 and matches == 0:
            assert found != pytest.approx(other, rel=1e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_equivalents_are_limits_from_above(epsilon):
    rows = 10**9
    inverse, clamped = (
        bernoulli_inverse_equivalent(rows, epsilon),
        clamped_geometric_equivalent(rows, epsilon),
    )
    assert bernoulli_inverse_loss(rows, rows // 3, epsilon) == pytest.approx(inverse, rel=1e-9)
    assert clamped_geometric_loss(rows, rows // 3, epsilon) == pytest.approx(clamped, rel=1e-9)
    assert inverse / clamped == pytest.approx(2 * math.cosh(epsilon / 2), rel=1e-9)
    for small in (1, 2, 3, 10, 80):
        losses = [bernoulli_inverse_loss(small, matches, epsilon) for matches in range(small + 1)]
        assert max(losses) <= bernoulli_inverse_equivalent(small, epsilon) * (1 + 1e-12)


def test_the_figures_of_the_limits():
    assert round(bernoulli_inverse_loss(500, 250, 1) * 500, 5) == 1.91903
    assert round(bernoulli_inverse_equivalent(1, 1), 5) == 1.91903
    assert round(clamped_geometric_equivalent(1, 1), 4) == 0.8509
    assert round(bernoulli_inverse_equivalent(1, 1) / clamped_geometric_equivalent(1, 1), 4) == 2.2553
    assert round(published_bernoulli_inverse_equivalent(1, 1), 3) == 3.164
    assert round(published_bernoulli_inverse_curve(1, 1), 3) == 7.575
    assert round(published_unbiased_lower_bound(1, 1), 4) == 0.0596
    loss = bernoulli_inverse_equivalent(1, 1)
    assert round(loss / published_unbiased_lower_bound(1, 1), 1) == 32.2
    assert round(loss / unbiased_lower_bound(1, 1), 1) == 16.1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_published_limit_is_wrong_by_its_factor(epsilon):
    ratio = published_bernoulli_inverse_equivalent(7, epsilon) / bernoulli_inverse_equivalent(7, epsilon)
    assert ratio == pytest.approx(math.exp(epsilon / 2), rel=1e-9)
    # So it is no limit: the loss of many rows stays below it by that factor.
    rows = 10**9
    loss = bernoulli_inverse_loss(rows, rows // 2, epsilon)
    assert loss < published_bernoulli_inverse_equivalent(rows, epsilon) / math.exp(epsilon / 2.001)
    exact = 2 * math.exp(2 * epsilon + 1) / (1 - math.exp(-epsilon)) / (math.exp(2 * epsilon) + 1)
    assert published_bernoulli_inverse_curve(1, epsilon) == pytest.approx(exact, rel=1e-9)


def test_inverse_sensitivity_is_biased_near_the_ends():
    # Erratum E37: at no match of three, 1/3 is nearer on average than the truth.
    chances = np.exp(-0.05 * np.arange(4))
    chances /= chances.sum()
    at_zero, at_third = (float(chances @ np.abs(np.arange(4) / 3 - place)) for place in (0, 1 / 3))
    assert [round(at_zero, 3), round(at_third, 3)] == [0.479, 0.325]
    assert bernoulli_inverse_loss(3, 0, 0.1) == pytest.approx(at_zero)
    biased = [
        not is_unbiased(rows, matches, epsilon)
        for rows in (3, 10, 50)
        for matches in range(rows + 1)
        for epsilon in (0.1, 1)
    ]
    assert (sum(biased), len(biased)) == (66, 132)


def test_the_rate_is_optimal_but_the_constant_is_not_bounded():
    def constant(epsilon):
        return bernoulli_inverse_equivalent(1, epsilon) / unbiased_lower_bound(1, epsilon)

    for epsilon in EPSILONS:
        expected = (math.exp(2 * epsilon) + 1) / math.sinh(epsilon / 2)
        assert constant(epsilon) == pytest.approx(expected, rel=1e-9)
    assert min(constant(1e-6), constant(40)) > 1e6


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 800, 1e300])
def test_extremes_do_not_leave_float64(epsilon):
    for call in (
        bernoulli_inverse_equivalent,
        clamped_geometric_equivalent,
        published_bernoulli_inverse_curve,
        published_bernoulli_inverse_equivalent,
    ):
        assert 0 <= call(10, epsilon) < math.inf
    # A tiny budget leaves both ends with half of the mass.
    found = clamped_geometric_loss(10, 4, epsilon)
    assert found == pytest.approx(0.5 if epsilon < 1 else 0, abs=1e-7)


@pytest.mark.parametrize(
    "call",
    [
        bernoulli_inverse_equivalent,
        clamped_geometric_equivalent,
        published_bernoulli_inverse_curve,
        published_bernoulli_inverse_equivalent,
        lambda rows, epsilon: clamped_geometric_loss(rows, 0, epsilon),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(call):
    with pytest.raises(InvalidParameter, match=r"^rows must be in"):
        call(0, 1)
    with pytest.raises(InvalidParameter, match=r"^rows must be a whole number"):
        call(2.0, 1)
    with pytest.raises(InvalidParameter, match=r"^epsilon must be positive"):
        call(5, 0)
    with pytest.raises(InvalidParameter, match=r"^epsilon must be finite"):
        call(5, math.inf)


def test_matches_are_at_most_the_rows():
    with pytest.raises(InvalidParameter, match=r"^matches must be in"):
        clamped_geometric_loss(5, 6, 1)
    with pytest.raises(InvalidParameter, match=r"^epsilon must not be negative"):
        published_unbiased_lower_bound(5, -1)
