"""Tails of sums of noise, against sums over all their terms."""

import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from sfumato.mechanisms import GaussianMechanism, LaplaceMechanism
from sfumato.quantile_methods import noise_sums
from sfumato.quantile_methods.noise_sums import rough_tail, sum_tail

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
