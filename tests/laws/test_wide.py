"""Numbers of any magnitude: their powers, their sums over ranges, and draws by them."""

from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.laws.bits import SeededBits
from sfumato.laws.wide import Rate, choose, range_sums, wide

mpmath.mp.prec = 300


def test_decays_are_right_to_a_few_units_at_any_distance():
    ranks = np.array([-(2**40), -(10**8), -12345, -1, 0, 1, 2, 77, 10**5, 10**8 + 1, 2**40 - 1])
    for c in (Fraction(1, 4), Fraction(1, 40), Fraction(63), Fraction(1, 10**6), Fraction(22, 7)):
        for centre in (Fraction(0), Fraction(10, 3), -Fraction(200, 7)):
            found = Rate(c).decay(ranks, centre)
            for rank, mantissa, exponent in zip(ranks, *found, strict=True):
                power = c * (int(rank) - centre)
                true = mpmath.exp(-mpmath.mpf(power.numerator) / power.denominator)
                stated = mpmath.mpf(float(mantissa)) * mpmath.mpf(2) ** int(exponent)
                assert abs(stated / true - 1) < 16 * 2.0**-53


@pytest.mark.parametrize("range_of_exponents", [1, 3000])
@pytest.mark.parametrize("count", [1, 7, 300, 2000])
def test_sums_over_ranges_lose_nothing(count, range_of_exponents):
    rng = np.random.default_rng(count)
    values = wide(rng.random(count) + 0.1, 5 + rng.integers(0, range_of_exponents, count))
    numbers = [int(m * 2**60) << int(e) for m, e in zip(*values, strict=True)]
    sums = np.concatenate([[0], np.cumsum(np.array(numbers, dtype=object))])
    ends = np.sort(rng.integers(0, count + 1, 50))
    some = np.minimum(np.sort(rng.integers(0, count + 1, 50)), ends)
    full = np.full(50, count)
    for first, last in [(some, ends), (np.zeros_like(ends), ends), (some, full)]:
        found = range_sums(values, first, last)
        for a, b, mantissa, exponent in zip(first, last, *found, strict=True):
            wanted = sums[b] - sums[a]
            stated = mpmath.mpf(float(mantissa)) * mpmath.mpf(2) ** (int(exponent) + 60) if mantissa else 0
            assert abs(stated - wanted) <= mpmath.mpf(wanted) * 1e-13


def test_choices_follow_weights_of_any_magnitude():
    weights = wide(np.array([1.0, 3.0, 0.0, 1.0]), np.array([-5000, 0, 0, 0]))
    bits = SeededBits(9)
    counts = Counter(choose(weights, bits) for _ in range(4000))
    assert set(counts) == {1, 3}
    assert abs(counts[1] - 3000) < 200

    class Zeros(SeededBits):
        def words(self, count):
            return np.zeros(count, dtype=np.uint64)

    # A weight of 2^-5000 is not lost: it owns the reals that begin with five thousand zeros.
    assert choose(weights, Zeros(0)) == 0
