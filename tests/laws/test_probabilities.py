"""Probabilities, tails and moments against direct sums and against mpmath."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Geometric, Law

mpmath.mp.dps = 50

SMALL = [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)]
LAWS = [kind(scale) for kind in (DiscreteLaplace, Geometric) for scale in SMALL]
LAWS += [DiscreteGaussian(scale**2) for scale in SMALL]
SCALES = [Fraction(1, 10**6), Fraction(1, 7), Fraction(1), Fraction(100), Fraction(2**30), Fraction(2**52)]
SIGMAS = [
    Fraction(1, 10**6),
    Fraction(1, 10),
    Fraction(1, 2),
    1,
    3,
    127,
    128,
    129,
    1000,
    1024,
    10**6,
    2**40,
    2**52,
]
STANDARDS = [0.0, 0.3, 1.0, 2.5, 6.0, 15.0, 30.0, 37.0]


def mp(value: Fraction | int):
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


def close(value: float, exact, relative: float = 1e-12) -> bool:
    if abs(exact) < 1e-300:
        return abs(value) < 1e-299
    return bool(abs(mpmath.mpf(value) - exact) <= relative * abs(exact))


def name(law) -> str:
    return f"{type(law).__name__}-{float(getattr(law, 'scale', None) or law.sigma_squared)}"


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_probabilities_sum_to_one_and_tails_and_moments_are_their_sums(law):
    assert isinstance(law, Law)
    k = np.arange(-2500, 2501)
    pmf = np.exp(law.logpmf(k))
    assert math.isclose(math.fsum(pmf), 1, rel_tol=1e-12)
    cdf, sf = law.cdf(k), law.sf(k)
    for place in range(2400, 2650):
        assert math.isclose(cdf[place], math.fsum(pmf[: place + 1]), rel_tol=1e-12, abs_tol=1e-300)
        assert math.isclose(sf[place], math.fsum(pmf[place + 1 :]), rel_tol=1e-12, abs_tol=1e-300)
    mean = math.fsum(pmf * k)
    assert math.isclose(law.mean, mean, rel_tol=1e-12, abs_tol=1e-12)
    assert math.isclose(law.variance, math.fsum(pmf * (k - mean) ** 2), rel_tol=1e-11, abs_tol=1e-300)


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.9, 0.95, 0.999999])
def test_the_radius_is_the_smallest_that_covers(law, confidence):
    radius = law.radius(confidence)
    inside = np.arange(-radius, radius + 1)
    assert math.fsum(np.exp(law.logpmf(inside))) >= confidence - 1e-12
    if radius:
        assert math.fsum(np.exp(law.logpmf(inside[1:-1]))) < confidence + 1e-10


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("kind", [DiscreteLaplace, Geometric])
def test_exponential_tails_agree_with_mpmath_at_every_scale(kind, scale):
    law = kind(scale)
    r = mpmath.exp(-1 / mp(scale))
    for standard in [*STANDARDS, 600.0]:
        k = int(standard * scale)
        above = r ** (k + 1) / (1 + r) if kind is DiscreteLaplace else r ** (k + 1)
        zero = (1 - r) / (1 + r) if kind is DiscreteLaplace else 1 - r
        assert close(law.sf(k), above)
        assert close(law.cdf(k), 1 - above)
        assert close(law.logpmf(k), mpmath.log(zero) - k / mp(scale))
        assert close(law.logsf(k), mpmath.log(above))
        assert close(law.logcdf(k), mpmath.log1p(-above))
        if kind is DiscreteLaplace:
            assert close(law.cdf(-k - 1), above)
            assert close(law.sf(-k - 1), 1 - above)
            assert close(law.logcdf(-k - 1), mpmath.log(above))
        else:
            assert law.cdf(-k - 1) == 0
            assert law.sf(-k - 1) == 1
            assert law.logpmf(-k - 1) == law.logcdf(-k - 1) == -math.inf
            assert law.logsf(-k - 1) == 0
    variance = (2 if kind is DiscreteLaplace else 1) * r / (1 - r) ** 2
    assert close(law.variance, variance)
    assert close(law.mean, 0 if kind is DiscreteLaplace else r / (1 - r))


def gaussian_normalizer(s):
    # Both forms are exact; each converges fast on its side.
    if s < 4:
        return 1 + 2 * mpmath.fsum(mpmath.exp(-k * k / (2 * s)) for k in range(1, 60))
    return mpmath.sqrt(2 * mpmath.pi * s) * (
        1 + 2 * mpmath.fsum(mpmath.exp(-2 * mpmath.pi**2 * s * m * m) for m in range(1, 6))
    )


def gaussian_tail(sigma_squared: Fraction, n: int):
    """P(X >= n) for n >= 1: a sum, or for large sigma another form and order of Euler and Maclaurin."""
    s = mp(sigma_squared)
    sigma = mpmath.sqrt(s)
    if sigma < 1100:
        last = n + int(16 * sigma) + 20
        total = mpmath.fsum(mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s)) for k in range(n, last))
    else:
        # The trapezoid form, with derivatives by Hermite polynomials in 50 digits and twelve terms.
        z = n / sigma
        first = mpmath.exp(-z * z / 2)
        total = sigma * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(z / mpmath.sqrt(2)) + first / 2
        hermite = [mpmath.mpf(1), z]
        for k in range(1, 26):
            hermite.append(z * hermite[k] - k * hermite[k - 1])
        for m in range(1, 13):
            coefficient = mpmath.bernoulli(2 * m) / mpmath.factorial(2 * m)
            total += coefficient * hermite[2 * m - 1] * first / sigma ** (2 * m - 1)
    return total / gaussian_normalizer(s)


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_gaussian_tails_agree_with_mpmath_at_every_sigma(sigma):
    law = DiscreteGaussian(Fraction(sigma) ** 2)
    s = mp(law.sigma_squared)
    for standard in STANDARDS:
        n = max(1, int(standard * sigma))
        above = gaussian_tail(law.sigma_squared, n)
        assert close(law.sf(n - 1), above)
        assert close(law.cdf(-n), above)
        assert close(law.cdf(n - 1), 1 - above)
        assert close(law.sf(-n), 1 - above)
        assert close(law.logsf(n - 1), mpmath.log(above))
        assert close(law.logcdf(-n), mpmath.log(above))
        assert close(law.logcdf(n - 1), mpmath.log1p(-above)) or above < 1e-15
        exact_log = -(mpmath.mpf(n) ** 2) / (2 * s) - mpmath.log(gaussian_normalizer(s))
        assert close(law.logpmf(n), exact_log)
    # The variance of the sampled law, which is below sigma^2.
    if sigma <= 3:
        weights = [(k * k, mpmath.exp(-k * k / (2 * s))) for k in range(-60, 61)]
        exact = mpmath.fsum(a * b for a, b in weights) / mpmath.fsum(b for _, b in weights)
        assert close(law.variance, exact)
    assert law.variance <= law.sigma_squared


@pytest.mark.parametrize("sigma", [Fraction(1, 10), 1, 50, 128, 1000, 2**30])
def test_log_tails_do_not_underflow(sigma):
    law = DiscreteGaussian(Fraction(sigma) ** 2)
    s = mp(law.sigma_squared)
    for standard in (36, 40, 100, 10**5):
        n = int(standard * sigma) + 1
        rate = n / s
        if rate > 0.2:
            total = mpmath.fsum(mpmath.exp(-(mpmath.mpf(i) ** 2) / (2 * s) - rate * i) for i in range(600))
            exact = mpmath.log(total / gaussian_normalizer(s)) - mpmath.mpf(n) ** 2 / (2 * s)
        else:
            exact = mpmath.log(gaussian_tail(law.sigma_squared, n))
        assert close(law.logsf(n - 1), exact)
        assert close(float(law.logcdf(np.array([-n, 0]))[0]), exact)
    assert law.logsf(10**400) == -math.inf


@given(st.fractions(Fraction(1, 1000), 2**40, max_denominator=1000), st.integers(-(2**45), 2**45))
def test_tails_complement_each_other_and_mirror(scale, k):
    for law in (DiscreteLaplace(scale), DiscreteGaussian(scale**2), Geometric(scale)):
        assert math.isclose(law.cdf(k) + law.sf(k), 1, rel_tol=1e-13)
        assert 0 <= law.cdf(k) <= 1
        if not isinstance(law, Geometric):
            assert law.cdf(k) == law.sf(-k - 1)
            assert law.logpmf(k) == law.logpmf(-k)


@pytest.mark.parametrize("law", [DiscreteLaplace(3), DiscreteGaussian(9), Geometric(3)], ids=name)
def test_outcomes_may_be_integers_of_any_size_and_arrays_of_any_kind(law):
    assert law.cdf(10**400) == 1 == law.sf(-(10**400))
    assert law.sf(10**400) == 0
    assert law.logpmf(10**400) == -math.inf
    many = np.array([0, 5, 10**30], dtype=object)
    assert law.cdf(many)[1] == law.cdf(5)
    assert law.cdf(np.array([[1, 2], [3, 4]], dtype=np.int8)).shape == (2, 2)
    assert law.logpmf([1, 2]).shape == (2,)
    assert law.logpmf([]).shape == (0,)
    assert isinstance(law.logpmf(1), float)
    assert isinstance(law.cdf(np.int64(1)), float)
    for bad in (0.5, "1", [1.0], None, True, [True]):
        with pytest.raises(InvalidParameter, match="outcome must be an integer"):
            law.logpmf(bad)


@pytest.mark.parametrize("scale", [Fraction(1, 10**300), Fraction(1, 10**600)])
def test_scales_below_the_range_of_floats_still_have_probabilities(scale):
    for law in (DiscreteLaplace(scale), Geometric(scale), DiscreteGaussian(scale)):
        assert law.logpmf(0) == 0
        assert law.cdf(0) == 1
        assert law.sf(0) == 0
        assert law.variance == 0
        assert law.logpmf(10**6) < -(10**290)
        assert law.radius(0.99) == 0


def test_confidence_must_be_a_probability():
    for bad in (0, 1, -1, 2, float("nan")):
        with pytest.raises(InvalidParameter, match="confidence"):
            DiscreteLaplace(3).radius(bad)
