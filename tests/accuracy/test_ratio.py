"""The interval of a share: its tails against numerical integration, its coverage, and its extreme cases."""

import itertools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sfumato.accuracy.ratio import _tail, share_interval
from sfumato.laws import SeededBits
from sfumato.mechanisms import GaussianMechanism, LaplaceMechanism

DRAWS = 200_000


def laplace(scale: Any) -> LaplaceMechanism:
    return LaplaceMechanism(sensitivity=1, scale=Fraction(scale))


def gaussian(sigma: Any) -> GaussianMechanism:
    return GaussianMechanism(sensitivity_squared=1, sigma_squared=Fraction(sigma) ** 2, coordinates=1)


def convolved(large: float, small: float, size: float) -> float:
    """P(|large X - small Y| > size) for standard Laplace X and Y, by numerical integration over Y."""

    def beyond(y: mpmath.mpf) -> mpmath.mpf:
        def upper(x: mpmath.mpf) -> mpmath.mpf:  # P(X > x)
            return mpmath.exp(-x) / 2 if x > 0 else 1 - mpmath.exp(x) / 2

        either = upper((size + small * y) / large) + upper((size - small * y) / large)
        return either * mpmath.exp(-abs(y)) / 2

    kink = size / small
    ends = sorted(
        {-60.0, -kink, 0.0, kink, 60.0} & {e for e in (-60.0, -kink, 0.0, kink, 60.0) if abs(e) <= 60}
    )
    return float(mpmath.quad(beyond, ends))


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.7, 0.3), (0.2, 0.8), (0.95, 0.05), (0.5001, 0.4999)])
@pytest.mark.parametrize("depth", [0.05, 1.0, 5.0])
def test_the_laplace_tail_is_the_convolution(a: float, b: float, depth: float) -> None:
    scale = 8
    found = _tail(laplace(scale))(a, b, depth * scale)
    assert found == pytest.approx(convolved(max(a, b), min(a, b), depth), rel=1e-8)
    assert found == _tail(laplace(scale))(b, a, depth * scale)


def test_the_laplace_tail_is_continuous_where_its_formula_changes() -> None:
    tail = _tail(laplace(1))
    for depth in (0.1, 1.0, 10.0):
        values = [tail(0.5 + gap, 0.5 - gap, depth) for gap in (0.0, 4e-7, 6e-7, 1e-5)]
        assert values == pytest.approx([values[0]] * 4, rel=1e-4)
        assert values[1] >= values[0] * (1 - 1e-9)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5])
def test_the_gaussian_tail_is_that_of_the_mixture(share: float) -> None:
    sigma, size = 7, 11.0
    spread = sigma * np.hypot(1 - share, share)
    found = _tail(gaussian(sigma))(1 - share, share, size)
    assert found == pytest.approx(2 * quad(norm(scale=spread).pdf, size, np.inf)[0], rel=1e-9)


@pytest.mark.parametrize("mechanism", [laplace(3), gaussian(3)], ids=["laplace", "gaussian"])
def test_a_tail_falls_from_one_to_zero(mechanism: Any) -> None:
    tail = _tail(mechanism)
    for share in (0.0, 1e-12, 0.2, 0.5, 1.0):
        values = [tail(1 - share, share, size) for size in (0.0, 0.1, 1.0, 10.0, 1e3, 1e30)]
        assert values[0] == pytest.approx(1)
        assert values == sorted(values, reverse=True)
        assert values[-1] == 0


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(3, 10), 1, 3, 100, 2**26])
@pytest.mark.parametrize("make", [laplace, gaussian])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_the_test_behind_the_interval_keeps_its_level(make: Any, scale: Any, share: float) -> None:
    # The truth is in the interval if its own test accepts it; sums are far larger than the noise.
    mechanism, bits = make(scale), SeededBits(41)
    first, second = (np.asarray(mechanism.noise.sample(bits, DRAWS), dtype=np.float64) for _ in range(2))
    sizes = np.sort(np.abs((1 - share) * first - share * second))
    tail = _tail(mechanism)
    for confidence in (0.5, 0.95, 0.999):
        accepted = [
            s for s in (sizes[0], sizes[-1]) if s <= 1 or tail(1 - share, share, s - 1) >= 1 - confidence
        ]
        assert sizes[0] in accepted
        # Sizes are sorted, so the accepted ones are a beginning of them.
        low, high = 0, DRAWS
        while low < high:
            middle = (low + high) // 2
            size = sizes[middle] - 1
            inside = size <= 0 or tail(1 - share, share, size) >= 1 - confidence
            low, high = (middle + 1, high) if inside else (low, middle)
        coverage = low / DRAWS
        error = 4 * np.sqrt(confidence * (1 - confidence) / DRAWS)
        assert coverage >= confidence - error
        if scale == 2**26:
            assert coverage <= confidence + error
        if scale == 100:  # one unit in a hundred
            assert coverage <= confidence + error + 0.01


@pytest.mark.parametrize("mechanism", [laplace(5), gaussian(5)], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("sums", [(0, 0), (-3, 3), (-7, 2), (0, -1), (-(2**60), 5)])
def test_a_total_that_is_not_positive_says_nothing(mechanism: Any, sums: tuple[int, int]) -> None:
    assert share_interval(sums, mechanism, 0.95) == (0.0, 1.0)


@pytest.mark.parametrize("make", [laplace, gaussian])
def test_sums_below_their_noise_say_nothing(make: Any) -> None:
    for sums in ((1, 2), (50, 3), (0, 40), (100, -20)):
        assert share_interval(sums, make(100), 0.95) == (0.0, 1.0)


@pytest.mark.parametrize("make", [laplace, gaussian])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_a_zero_sum_has_an_interval_that_starts_at_the_end(make: Any, confidence: float) -> None:
    low, high = share_interval((0, 10_000), make(10), confidence)
    assert low == 0
    # As narrow as one noisy sum, plus the unit of the lattice.
    radius = make(10).noise.radius(confidence)
    assert (radius - 2) / 10_000 <= high <= (radius + 3) / 10_000 * 1.02
    mirrored = share_interval((10_000, 0), make(10), confidence)
    assert mirrored == pytest.approx((1 - high, 1), abs=1e-12)


@pytest.mark.parametrize("make", [laplace, gaussian])
def test_a_negative_sum_pulls_to_its_end(make: Any) -> None:
    low, high = share_interval((-20, 10_000), make(10), 0.95)
    assert low == 0
    assert high < share_interval((0, 10_000), make(10), 0.95)[1]
    # Further below zero than noise can be: no share is plausible, and the nearest one is given.
    assert share_interval((-5000, 10_000), make(10), 0.95) == (0, pytest.approx(0, abs=1e-12))


@pytest.mark.parametrize("make", [laplace, gaussian])
@pytest.mark.parametrize("sums", [(0, 0), (3, 900), (450, 451), (-5, 300), (2**60, 2**61), (17, 4)])
def test_intervals_are_nested_symmetric_and_hold_the_share(make: Any, sums: tuple[int, int]) -> None:
    mechanism = make(7)
    found = [share_interval(sums, mechanism, confidence) for confidence in (0.999, 0.95, 0.5, 0.01)]
    for (wide_low, wide_high), (low, high) in itertools.pairwise(found):
        assert 0 <= wide_low <= low <= high <= wide_high <= 1
    if sum(sums) > 0:
        assert found[-1][0] <= min(max(sums[0] / sum(sums), 0), 1) <= found[-1][1]
    mirrored = [share_interval(sums[::-1], mechanism, confidence) for confidence in (0.999, 0.95, 0.5, 0.01)]
    for (low, high), (other_low, other_high) in zip(found, mirrored, strict=True):
        assert (low, high) == pytest.approx((1 - other_high, 1 - other_low), abs=1e-12)


@pytest.mark.parametrize("make", [laplace, gaussian])
def test_huge_sums_are_covered_in_spite_of_float64(make: Any) -> None:
    # At 2^60 a float has steps of 256, far more than noise of scale 3: the truth must still be inside.
    mechanism = make(3)
    for first, second in ((2**60, 2**60 + 1), (2**60 + 77, 2**58 + 5), (3**37, 5**25), (1, 2**60)):
        truth = Fraction(first, first + second)
        for noise in (-9, -1, 0, 4):
            low, high = share_interval((first + noise, second - noise), mechanism, 0.999)
            assert Fraction(low) <= truth <= Fraction(high)
            assert high - low < 1e-13


@pytest.mark.parametrize("make", [laplace, gaussian])
@pytest.mark.parametrize("sums", [(5, 9), (30, 12), (-4, 31), (60, 2), (25, 25), (8, 1), (-9, 40)])
@pytest.mark.parametrize("confidence", [0.2, 0.8, 0.99])
def test_every_plausible_share_is_inside(make: Any, sums: tuple[int, int], confidence: float) -> None:
    # Bisection finds one end of the plausible set; a second piece beyond it would be lost.
    mechanism = make(6)
    tail, (first, second) = _tail(mechanism), sums
    low, high = share_interval(sums, mechanism, confidence)
    for share in np.linspace(0, 1, 2001):
        size = abs((1 - share) * first - share * second) - 1
        if size <= 0 or tail(1 - share, share, size) >= 1 - confidence:
            assert low <= share <= high


@pytest.mark.parametrize("make", [laplace, gaussian])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.5])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_an_interval_covers_exactly_where_noise_is_as_coarse_as_the_lattice(
    make: Any, share: float, confidence: float
) -> None:
    # Continuous tails alone would undercover here: three standard units are 2.996, and integers stop at 2.
    mechanism = make(1)
    first, second = round(share * 10**6), round((1 - share) * 10**6)
    reach = mechanism.noise.radius(1 - 1e-4)
    found = range(-reach, reach + 1)
    chances = np.exp(mechanism.noise.logpmf(np.array(found)))
    coverage = 0.0
    for i, x in enumerate(found):
        for j, y in enumerate(found):
            low, high = share_interval((first + x, second + y), mechanism, confidence)
            coverage += chances[i] * chances[j] * (low <= share <= high)
    assert coverage >= confidence - 2e-4
