"""Accuracy at the ends of what is accepted: right limits, or a refusal that names the parameter."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accuracy import (
    MeanLimit,
    above_threshold_radius,
    bernoulli_inverse_level,
    bernoulli_inverse_loss,
    exponential_choice_loss,
    exponential_mean_choice_loss,
    flip_choice_loss,
    flip_mean_choice_loss,
    is_unbiased,
    kolmogorov_distance,
    limit_distance_bound,
    published_choice_loss,
    published_mean_choice_loss,
    truncated_laplace_level,
    unbiased_lower_bound,
    wasserstein_distance,
    worst_lower_bound,
)
from sfumato.errors import InvalidParameter

HUGE, TINY = 10**400, Fraction(1, 10**400)
OF_RATE = {
    "published": lambda rate: published_choice_loss(rate, 10, 0.1),
    "exponential": lambda rate: exponential_choice_loss(rate, 10, 0.1),
    "flip": lambda rate: flip_choice_loss(rate, 10, 0.1),
    "published mean": lambda rate: published_mean_choice_loss(rate, 10),
    "exponential mean": lambda rate: exponential_mean_choice_loss(rate, 10),
    "flip mean": lambda rate: flip_mean_choice_loss(rate, 10),
    "limit": lambda rate: MeanLimit(0.5, rate).variance,
}
OF_EPSILON = {
    "loss": lambda epsilon: bernoulli_inverse_loss(10, 5, epsilon),
    "level": lambda epsilon: bernoulli_inverse_level(10, epsilon),
    "truncated": lambda epsilon: truncated_laplace_level(10, epsilon),
}


@pytest.mark.parametrize("value", [HUGE, TINY])
@pytest.mark.parametrize("name", [*OF_RATE, *OF_EPSILON])
def test_what_float64_cannot_hold_is_refused_by_name(name, value):
    wanted = "rate" if name in OF_RATE else "epsilon"
    with pytest.raises(InvalidParameter, match=rf"^{wanted} must be in \[1e-300, 1e300\]"):
        (OF_RATE | OF_EPSILON)[name](value)


@pytest.mark.parametrize("value", [1e-300, 1e300])
@pytest.mark.parametrize("name", [*OF_RATE, *OF_EPSILON])
def test_the_ends_of_the_range_are_answered(name, value):
    assert 0 <= (OF_RATE | OF_EPSILON)[name](value) < math.inf


@pytest.mark.parametrize("loss", [published_choice_loss, exponential_choice_loss, flip_choice_loss])
def test_failures_are_refused_below_float64_and_answered_near_one(loss):
    with pytest.raises(InvalidParameter, match=r"^failure must be in"):
        loss(0.5, 10, TINY)
    assert 0 <= loss(0.5, 10, 1 - Fraction(1, 10**40)) < 5
    assert 1300 < loss(0.5, 2**22, 1e-300) < 1450


@pytest.mark.parametrize("one_sided", [True, False])
def test_a_radius_for_any_confidence_grows_with_its_logarithm(one_sided):
    scales = {"queries": 1, "threshold_scale": 1, "query_scale": 1, "one_sided": one_sided}
    found = above_threshold_radius(confidence=1 - TINY, **scales)
    assert found == pytest.approx((400 * math.log(10) + math.log(2)) * (1 if one_sided else 2), abs=2)
    # Noise of almost no width is still rounded up, each by itself.
    small = {**scales, "threshold_scale": TINY, "query_scale": TINY}
    assert above_threshold_radius(confidence=0.9, **small) == (1 if one_sided else 2)


@pytest.mark.parametrize("epsilon", [360, 10**6, HUGE])
def test_a_lower_bound_is_not_overstated_where_float64_ends(epsilon):
    # 1 / (n (1 + e^720)) is below 1e-312.
    assert unbiased_lower_bound(1, epsilon) <= 1e-312
    assert worst_lower_bound(1, 2 * epsilon) <= 1e-312


@pytest.mark.parametrize("epsilon", [Fraction(2, 10**power) for power in (1, 12, 38, 40, 60, 80, 300)])
def test_medians_are_told_at_any_budget(epsilon):
    # To the first order in epsilon all answers weigh the same, so that s must be in the middle; a difference
    # of one between the sides is decided by the second order.
    for rows in range(1, 6):
        for matches in range(rows + 1):
            found = is_unbiased(rows, matches, epsilon)
            if epsilon < Fraction(1, 100):
                assert found == (abs(rows - 2 * matches) <= 1)
    assert is_unbiased(2**62, 2**61, epsilon)


@pytest.mark.parametrize("rows", [1, 2, 1000])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 1e-9, 1e-5])
def test_levels_keep_their_digits_at_small_budgets(rows, epsilon):
    # To the first order: e (1 + (n - 1)/n), and c (1 + (n - 1)/(n + 1)) with c = e/2.
    first = epsilon * (1 + (rows - 1) / rows)
    assert truncated_laplace_level(rows, epsilon) == pytest.approx(first, rel=max(1e-12, rows * epsilon))
    first = epsilon / 2 * (1 + (rows - 1) / (rows + 1))
    assert bernoulli_inverse_level(rows, epsilon) == pytest.approx(first, rel=max(1e-12, rows * epsilon))


@pytest.mark.parametrize("center", [0, 0.01, 0.5, 1])
@pytest.mark.parametrize("rate", [1e-300, 1e-12, 1e-8, 1e-4, 1e-2, 740, 1e6, 1e300])
def test_distances_respect_their_bound_at_extreme_rates(center, rate):
    limit = MeanLimit(center, rate)
    for cells in (1, 2, 100, 1000):
        bound = limit_distance_bound(limit, cells)
        assert 0 <= wasserstein_distance(limit, cells) <= bound
        # The uniform law attains this bound, so that the rounding of sums shows.
        highest = max(1.0, float(limit.density(center)))
        assert kolmogorov_distance(limit, cells) <= bound * highest * (1 + 1e-10)
    ends = limit.quantile([0.0, 1.0])
    assert ends[0] == pytest.approx(0, abs=1e-5)
    assert limit.characteristic(0.0) == pytest.approx(1, rel=1e-12)


def test_a_nearly_flat_limit_is_as_far_as_the_uniform_law():
    # Mass 1/(N+1) at k/N against the uniform density: both distribution functions are known.
    cells, fine = 50, (np.arange(10**6) + 0.5) / 10**6
    steps = (np.floor(fine * cells) + 1) / (cells + 1)
    exact = np.abs(steps - fine).mean()
    for rate in (1e-300, 1e-14, 1e-9):
        assert wasserstein_distance(MeanLimit(0.3, rate), cells) == pytest.approx(exact, rel=1e-6)
        assert MeanLimit(0.3, rate).area(0.25) == pytest.approx(0.25**2 / 2, rel=1e-8)
