"""The limit of the exponential mean: its law by quadrature, distances by sums, what truncation costs."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from sfumato.accuracy import (
    MeanLimit,
    exponential_mean_limit,
    kolmogorov_distance,
    limit_distance_bound,
    truncated_laplace_level,
    wasserstein_distance,
)
from sfumato.errors import InvalidParameter

LIMITS = [MeanLimit(center, rate) for center in (0, 0.3, 0.5, 1) for rate in (0.01, 1, 8, 200)]
every_limit = pytest.mark.parametrize("limit", LIMITS, ids=str)


def integral(limit, function):
    ends = sorted({0.0, limit.center, 1.0})
    return sum(quad(function, low, high, epsabs=1e-13)[0] for low, high in itertools.pairwise(ends))


@every_limit
def test_the_law_is_that_of_its_density(limit):
    assert integral(limit, limit.density) == pytest.approx(1, abs=1e-10)
    assert limit.mean == pytest.approx(integral(limit, lambda y: y * limit.density(y)), abs=1e-10)
    second = integral(limit, lambda y: (y - limit.mean) ** 2 * limit.density(y))
    assert limit.variance == pytest.approx(second, rel=1e-7)
    for end in (0.1, 0.3, 0.77):
        assert limit.cdf(end) == pytest.approx(
            integral(limit, lambda y, end=end: limit.density(y) * (y <= end)), abs=2e-3
        )
        if 1e-12 < limit.cdf(end) < 1 - 1e-9:  # nearer to 1 float64 does not tell values apart
            assert limit.quantile(limit.cdf(end)) == pytest.approx(end, abs=1e-6)
    assert limit.cdf([-1, 0, 1, 2]).tolist() == pytest.approx([0, 0, 1, 1], abs=1e-15)
    assert limit.density([-0.1, 1.1]).tolist() == [0, 0]
    fine = np.linspace(0, 1, 200_001)
    areas = np.concatenate([[0], np.cumsum((limit.cdf(fine[1:]) + limit.cdf(fine[:-1])) / 2)]) * (fine[1])
    np.testing.assert_allclose(limit.area(fine[::20_000]), areas[::20_000], atol=1e-7)


@every_limit
@pytest.mark.parametrize("t", [0, 1, 5, 20])
def test_the_characteristic_function_is_that_of_the_density(limit, t):
    real = integral(limit, lambda y: math.cos(t * y) * limit.density(y))
    imaginary = integral(limit, lambda y: math.sin(t * y) * limit.density(y))
    assert limit.characteristic(t) == pytest.approx(complex(real, imaginary), abs=1e-8)


@every_limit
@pytest.mark.parametrize("cells", [1, 2, 7, 30])
def test_distances_are_those_of_a_fine_sum(limit, cells):
    places, chances = limit.points(cells)
    fine = (np.arange(400_000) + 0.5) / 400_000
    steps = np.cumsum(chances)[np.searchsorted(places, fine, side="right") - 1]
    apart = np.abs(steps - limit.cdf(fine))
    assert wasserstein_distance(limit, cells) == pytest.approx(apart.mean(), rel=1e-3)
    assert kolmogorov_distance(limit, cells) == pytest.approx(apart.max(), rel=2e-2)


@every_limit
def test_distances_fall_like_one_over_the_cells_and_respect_their_bound(limit):
    sizes = (10, 100, 1000, 10_000)
    for cells in sizes:
        bound = limit_distance_bound(limit, cells)
        assert wasserstein_distance(limit, cells) <= bound
        highest = max(1.0, float(limit.density(limit.center)))
        assert kolmogorov_distance(limit, cells) <= bound * highest
        places, chances = limit.points(cells)
        for t in (1, 5, 20):
            near = abs(np.exp(1j * t * places) @ chances - limit.characteristic(t))
            moved = -math.expm1(-2 * limit.rate / (cells + 1))
            assert near <= t / (cells + 1) + 2 * moved
    for distance in (kolmogorov_distance, wasserstein_distance):
        slope = math.log10(distance(limit, 100_000) / distance(limit, 10_000))
        assert slope == pytest.approx(-1, abs=0.02)


def test_a_clamped_limit_would_not_be_approached():
    # Clamping moves what is outside to the ends; the grid law has no such atoms.
    limit = MeanLimit(0.05, 8)
    clamped_at_zero = math.exp(-8 * 0.05) / 2
    places, chances = limit.points(10_000)
    assert places[0] == 0
    assert chances[0] < 0.002 < clamped_at_zero


def test_the_peak_and_the_window_of_a_fine_grid():
    limit = exponential_mean_limit(1000, 0.8, 0.5)
    places, chances = limit.points(10_000)
    assert limit.rate == 400
    assert chances.max() == pytest.approx(0.0199973, abs=5e-7)
    assert chances[np.abs(places - 0.5) <= 0.01 + 1e-9].sum() == pytest.approx(0.98205, abs=5e-5)
    assert np.abs(chances * 10_000 - limit.density(places)).max() < 0.05
    assert limit.variance**0.5 == pytest.approx(math.sqrt(2) / 400, rel=1e-6)


def truncated_ratio(rows, epsilon):
    """The largest log ratio of two truncated Laplace densities, over means 1/n apart and many answers."""
    worst = 0.0
    answers = np.linspace(0, 1, 301)
    for start in np.unique([0, *np.linspace(0, 1 - 1 / rows, 40)]):
        left, right = (MeanLimit(float(c), rows * epsilon) for c in (start, min(start + 1 / rows, 1.0)))
        with np.errstate(divide="ignore"):
            worst = max(worst, float(np.abs(np.log(left.density(answers) / right.density(answers))).max()))
    return worst


@pytest.mark.parametrize("epsilon", [0.1, 0.4, 1, 5])
@pytest.mark.parametrize("rows", [1, 2, 10, 60])
def test_truncation_costs_exactly_its_level(rows, epsilon):
    found = truncated_laplace_level(rows, epsilon)
    assert found == pytest.approx(truncated_ratio(rows, epsilon), rel=1e-6)
    # One record moves the mean over the whole range; the two densities are then mirrored, and cost e.
    assert found > epsilon * 1.05 if rows > 1 else found == pytest.approx(epsilon)


def test_truncation_of_many_rows_costs_nearly_twice_as_much_for_small_budgets():
    assert [round(truncated_laplace_level(1000, e), 3) for e in (0.1, 0.4, 1)] == [0.191, 0.685, 1.490]
    assert truncated_laplace_level(10**9, 0.001) == pytest.approx(0.002, rel=1e-3)
    assert truncated_laplace_level(10**9, 0.5) == pytest.approx(0.5 + math.log(2 - math.exp(-0.5)), rel=1e-12)


def test_numbers_out_of_range_are_refused_by_name():
    with pytest.raises(InvalidParameter, match=r"^center must be in"):
        MeanLimit(1.5, 1)
    with pytest.raises(InvalidParameter, match=r"^rate must be positive"):
        MeanLimit(0.5, 0)
    with pytest.raises(InvalidParameter, match=r"^cells must be in"):
        kolmogorov_distance(MeanLimit(0.5, 1), 0)
