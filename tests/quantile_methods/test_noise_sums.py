"""Tails of sums of noise, against sums over all their terms."""

import itertools
import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from sfumato.mechanisms import GaussianMechanism, LaplaceMechanism, ZeroSumMechanism
from sfumato.quantile_methods import noise_sums
from sfumato.quantile_methods.noise_sums import deviation, rough_tail, sum_tail

F = Fraction
REACH = 60
LAPLACE = LaplaceMechanism(sensitivity=1, scale=F(3, 2))
GAUSSIAN = GaussianMechanism(sensitivity_squared=1, sigma_squared=F(5, 2), coordinates=1)
each_noise = pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=str)
WEIGHTS = [
    ((1, 1), (1, 0)),
    ((1, 3), (1, 2)),
    ((2, 1), (1, 2)),
    ((1, 2), (9, 1)),
    ((9, 1), (1, 3)),
    ((4, 2), (6, 1)),
    ((3, 0), (2, 2)),
]
FAILURES = (0.3, 0.025, 1e-3, 1e-6)


def masses(noise):
    """The noise of one count, from minus to plus `REACH`."""
    return np.exp(np.asarray(noise.law(0).logpmf(np.arange(-REACH, REACH + 1))))


def spread_out(law, weight):
    """The law of a multiple."""
    found = np.zeros((len(law) - 1) * weight + 1)
    found[::weight] = law
    return found


def beyond(noise, left, right, b):
    """P(u X - v Y > b) by direct convolution; the laws are symmetric, so that -Y is as Y."""
    parts = [spread_out(masses(noise), weight) for weight, count in (left, right) for _ in range(count)]
    law = reduce(np.convolve, parts)
    middle = len(law) // 2
    return float(law[max(middle + b + 1, 0) :].sum())


@each_noise
@pytest.mark.parametrize(("left", "right"), WEIGHTS, ids=str)
def test_a_tail_is_the_smallest_number_that_keeps_the_failure(noise, left, right):
    for failure in FAILURES:
        b = sum_tail(noise, left, right, failure)
        assert beyond(noise, left, right, b) <= failure * (1 + 1e-9)
        # Sums lie on multiples of the common divisor: the next smaller one is passed too often.
        common = math.gcd(left[0], right[0])
        assert b % common == 0
        assert b == 0 or beyond(noise, left, right, b - common) > failure * (1 - 1e-8)
        assert sum_tail(noise, right, left, failure) == b
        assert rough_tail(noise, left, right, failure) >= b


@each_noise
def test_the_tables_are_tails_of_sums(noise):
    for count in (0, 1, 2, 5):
        table = noise_sums._above(noise, count)
        middle = len(table) // 2
        for k in range(-5, 20):
            true = beyond(noise, (1, count), (1, 0), k - 1) if count else float(k <= 0)
            assert table[middle + k] == pytest.approx(true, rel=1e-9, abs=1e-12)


def test_thin_tails_and_long_tables_get_a_bound():
    sides = (2, 3), (1, 4)
    assert sum_tail(LAPLACE, *sides, 1e-12) == rough_tail(LAPLACE, *sides, 1e-12)
    wide = LaplaceMechanism(sensitivity=1, scale=F(10**6))
    assert noise_sums._above(wide, 3) is None
    assert sum_tail(wide, *sides, 0.025) == rough_tail(wide, *sides, 0.025)


# --- noise that adds up to zero -------------------------------------------------------------------


def part_of_zero(scale, first, second):
    """The law of the noise on some counts where that on the others makes it zero, by direct convolution."""
    single = np.exp(-np.abs(np.arange(-REACH, REACH + 1)) / float(scale))
    sums = [reduce(np.convolve, [single] * count) for count in (first, second)]
    longest = max(map(len, sums))
    one, other = (np.pad(law, (longest - len(law)) // 2) for law in sums)
    return one * other / (one * other).sum()


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 2), (3, 3), (2, 5), (6, 1)])
def test_a_tail_of_noise_that_adds_up_to_zero_is_the_smallest_that_keeps_the_failure(first, second):
    scale = F(3, 2)
    noise, law = ZeroSumMechanism(scale=scale), part_of_zero(scale, first, second)
    middle = len(law) // 2
    for (u, v), failure in itertools.product([(1, 0), (second, first), (3, 7)], FAILURES):
        b = sum_tail(noise, (u, first), (v, second), failure)
        assert b % (u + v) == 0
        own = b // (u + v)
        assert law[middle + own + 1 :].sum() <= failure * (1 + 1e-9)
        assert own == 0 or law[middle + own :].sum() > failure * (1 - 1e-8)
        assert rough_tail(noise, (u, first), (v, second), failure) >= b
    places = np.arange(len(law)) - middle
    found = deviation(noise, (1, first), (0, second))
    assert found == pytest.approx(math.sqrt(law @ places**2), rel=1e-9)
    # Less than the best mean of both sums of independent noise.
    independent = LaplaceMechanism(sensitivity=1, scale=scale)
    assert found < deviation(independent, (second, first), (first, second)) / (first + second)


def test_noise_that_adds_up_to_zero_leaves_the_whole_as_it_is():
    for scale in (F(3, 2), F(10**9)):
        noise = ZeroSumMechanism(scale=scale)
        for sides in (((1, 3), (0, 0)), ((0, 0), (1, 3))):
            assert sum_tail(noise, *sides, 0.025) == rough_tail(noise, *sides, 0.025) == 0
            assert deviation(noise, *sides) == pytest.approx(0)


def test_thin_tails_and_wide_noise_that_adds_up_to_zero_get_a_bound():
    narrow, wide = (ZeroSumMechanism(scale=F(scale)) for scale in (2, 10**6))
    assert sum_tail(narrow, (1, 3), (0, 4), 1e-12) == rough_tail(narrow, (1, 3), (0, 4), 1e-12)
    b = sum_tail(wide, (1, 3), (0, 4), 0.025)
    assert b == rough_tail(wide, (1, 3), (0, 4), 0.025)
    # The tail of a small scale, times the ratio of both scales, is less.
    assert b > sum_tail(ZeroSumMechanism(scale=F(100)), (1, 3), (0, 4), 0.025) * 10**4
