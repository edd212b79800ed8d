"""From the data to the population: bounds that hold for every population, against exact and drawn ones."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from sfumato.accuracy.sampling import _entropy, mean_bounds, proportion_bounds, variance_bounds


@pytest.mark.parametrize("size", [1, 2, 10, 60])
@pytest.mark.parametrize("chance", [0.0, 0.001, 0.05, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("failure", [0.3, 0.05])
def test_mean_bounds_cover_every_coin_exactly(size: int, chance: float, failure: float) -> None:
    found = [mean_bounds(k / size, k / size, size, failure) for k in range(size + 1)]
    missed = sum(
        binom.pmf(k, size, chance) for k, (low, high) in enumerate(found) if not low <= chance <= high
    )
    assert missed <= failure


def test_mean_bounds_are_the_roots_of_the_relative_entropy() -> None:
    low, high = mean_bounds(0.2, 0.4, 50, 0.1)
    depth = math.log(20) / 50
    assert _entropy(0.2, low) == pytest.approx(depth, rel=1e-9)
    assert _entropy(0.4, high) == pytest.approx(depth, rel=1e-9)
    assert low < 0.2 < 0.4 < high


def test_mean_bounds_at_the_ends_are_those_of_a_rare_event() -> None:
    # No success in n draws: exp(-n kl(0, q)) = (1 - q)^n.
    low, high = mean_bounds(0.0, 0.0, 100, 0.1)
    assert low == 0
    assert (1 - high) ** 100 == pytest.approx(0.05, rel=1e-6)
    assert mean_bounds(1.0, 1.0, 100, 0.1) == pytest.approx((1 - high, 1))


@pytest.mark.parametrize("size", [0, -3])
def test_bounds_of_nothing_say_nothing(size: int) -> None:
    assert mean_bounds(0.4, 0.6, size, 0.05) == (0, 1)
    assert variance_bounds(0.1, 0.1, size, 0.05) == (0, 0.25)
    assert variance_bounds(0.1, 0.1, 1, 0.05) == (0, 0.25)


def test_mean_bounds_shrink_with_size_and_grow_with_confidence_and_with_the_range() -> None:
    for low, high in ((0.0, 0.1), (0.4, 0.5), (1.0, 1.0)):
        wide, narrow = mean_bounds(low, high, 10, 0.05), mean_bounds(low, high, 1000, 0.05)
        assert wide[0] <= narrow[0] <= low <= high <= narrow[1] <= wide[1]
        surer = mean_bounds(low, high, 1000, 0.001)
        assert surer[0] <= narrow[0] <= narrow[1] <= surer[1]
        below, above = mean_bounds(low, low, 1000, 0.05), mean_bounds(high, high, 1000, 0.05)
        assert (below[0], above[1]) == narrow


@pytest.mark.parametrize("size", [1, 5, 40, 1000])
@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-6])
def test_proportion_bounds_are_the_exact_binomial_limits(size: int, failure: float) -> None:
    for matches in sorted({0, 1, size // 3, size - 1, size}):
        exact = binomtest(matches, size).proportion_ci(1 - failure, method="exact")
        assert proportion_bounds(matches, matches, size, failure) == pytest.approx(
            (exact.low, exact.high), rel=1e-9, abs=1e-12
        )
    ends = (
        binomtest(0, size).proportion_ci(1 - failure, "exact"),
        binomtest(size, size).proportion_ci(1 - failure, "exact"),
    )
    assert proportion_bounds(0, size, size, failure) == (ends[0].low, ends[1].high) == (0, 1)


@pytest.mark.parametrize("chance", [0.0, 0.004, 0.2, 0.5, 1.0])
def test_proportion_bounds_cover_exactly(chance: float) -> None:
    size, failure = 30, 0.1
    missed = 0.0
    for k in range(size + 1):
        low, high = proportion_bounds(k, k, size, failure)
        missed += binom.pmf(k, size, chance) * (not low <= chance <= high)
    assert missed <= failure


POPULATIONS = {
    "uniform": (lambda rng, shape: rng.uniform(size=shape), 1 / 12),
    "even coin": (lambda rng, shape: 1.0 * (rng.uniform(size=shape) < 0.5), 1 / 4),
    "rare event": (lambda rng, shape: 1.0 * (rng.uniform(size=shape) < 0.02), 0.02 * 0.98),
    "skewed": (lambda rng, shape: rng.uniform(size=shape) ** 9, 1 / 19 - 1 / 100),
    "constant": (lambda rng, shape: np.full(shape, 0.3), 0.0),
}


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("size", [2, 5, 40, 300])
def test_variance_bounds_cover_drawn_populations(name: str, size: int) -> None:
    draw, truth = POPULATIONS[name]
    sets, failure = 2000, 0.5
    variances = draw(np.random.default_rng(51), (sets, size)).var(axis=1)
    found = [variance_bounds(float(v), float(v), size, failure) for v in variances]
    missed = sum(not low <= truth + 1e-12 or not truth - 1e-12 <= high for low, high in found) / sets
    assert missed <= failure + 4 * math.sqrt(failure * (1 - failure) / sets)
    assert all(0 <= low <= high <= 0.25 for low, high in found)


def test_variance_bounds_are_the_theorem_on_the_unbiased_variance() -> None:
    size, failure = 101, 0.1
    reach = math.sqrt(2 * math.log(20) / 100)
    low, high = variance_bounds(0.2, 0.2, size, failure)
    assert math.sqrt(low) == pytest.approx(math.sqrt(0.2 * 101 / 100) - reach)
    assert high == 0.25  # where the theorem allows more than is possible
    assert math.sqrt(variance_bounds(0.01, 0.01, size, failure)[1]) == pytest.approx(
        math.sqrt(0.01 * 101 / 100) + reach
    )


@pytest.mark.parametrize("variance", [0.0, 0.01, 0.25])
def test_a_smaller_known_size_only_widens_the_bounds(variance: float) -> None:
    # The statistics pass a size that is at most the true one, so each bound must be monotone in it.
    for bounds, most in ((variance_bounds, variance), (mean_bounds, 4 * variance)):
        found = [bounds(most, most, size, 0.9) for size in range(1, 200)]
        lows, highs = [low for low, _ in found], [high for _, high in found]
        assert lows == sorted(lows)
        assert highs == sorted(highs, reverse=True)
