"""Numbers of any magnitude: their powers, their sums over ranges, and draws by them."""

from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.laws.bits import SeededBits
from sfumato.laws.wide import LN2, NOWHERE, Rate, Scan, Wide, _ln2, _rows, aligned, choose, range_sums, wide

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


def test_the_logarithm_of_two_has_all_its_bits():
    with mpmath.workprec(500):
        for bits in (8, 64, 320):
            # Every term is rounded down, and those from the last on are left out.
            short = mpmath.log(2) - mpmath.mpf(_ln2(bits).numerator) / _ln2(bits).denominator
            assert 0 <= short <= (bits + 1) * mpmath.mpf(2) ** -bits
    assert _ln2(320) == LN2


@pytest.mark.parametrize("c", [Fraction(1, 7), Fraction(5), Fraction(300)], ids=str)
def test_the_power_of_a_gap_is_right_to_a_few_units(c):
    for gap in (Fraction(0), Fraction(1, 3), Fraction(5, 2), Fraction(10**6, 3), Fraction(-7, 3)):
        mantissa, exponent = Rate(c).hold(gap)
        true = mpmath.exp(-mpmath.mpf((c * gap).numerator) / (c * gap).denominator)
        assert abs(mpmath.mpf(mantissa) * mpmath.mpf(2) ** exponent / true - 1) < 8 * 2.0**-53
    assert Rate(c).binary == pytest.approx(float(c) / np.log(2), rel=1e-15)


def test_wide_numbers_have_mantissas_from_a_half_to_one_and_zero_is_below_all():
    found = wide(np.array([3.0, 0.25, 0.0, 0.5]), np.array([0, 10, 5, -7]))
    assert found.mantissa.tolist() == [0.75, 0.5, 0.0, 0.5]
    assert found.exponent.tolist() == [2, 9, NOWHERE, -7]
    assert found.exponent.dtype == np.int64
    assert wide(np.array([3.0]), 4).exponent.tolist() == [6]
    taken = found.take(np.array([3, 0]))
    assert (taken.mantissa.tolist(), taken.exponent.tolist()) == ([0.5, 0.75], [-7, 2])


def test_numbers_are_aligned_to_a_power_of_two_and_vanish_far_below_it():
    values = Wide(np.array([0.5, 0.75, 0.5, 0.0]), np.array([3, 0, -2000, NOWHERE]))
    assert aligned(values, 3).tolist() == [0.5, 0.75 / 8, 0.5 * 2.0**-1000, 0.0]
    assert aligned(values, 0)[0] == 4.0


def test_empty_ranges_and_ranges_of_zeros_add_up_to_zero():
    values = wide(np.array([0.0, 0.0, 1.0]), np.array([0, 0, 5]))
    sums = range_sums(values, np.array([0, 2, 2, 3]), np.array([2, 2, 3, 3]))
    assert sums.mantissa.tolist() == [0, 0, 0.5, 0]
    assert sums.exponent.tolist() == [NOWHERE, NOWHERE, 6, NOWHERE]
    assert len(range_sums(values, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).mantissa) == 0


def test_one_weight_is_chosen_without_bits():
    assert choose(wide(np.array([0.5]), np.array([9])), None) == 0


@pytest.mark.parametrize("fall", [0, 3, 90, 600])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 100, 1500])
def test_running_sums_over_stretches_are_right_at_every_place(count, fall):
    rng = np.random.default_rng(count)
    mantissa = np.append(rng.random(count) / 2 + 0.5, 0.0)
    logs = -fall * np.arange(count)
    exponent = np.append(logs, NOWHERE)
    whole, half = np.arange(count), np.arange(count // 2, count)
    # Up, down, and over a part, as one scan; each starts its own sums.
    stretches = [whole, whole[::-1], half]
    scan = Scan(stretches, logs.astype(np.float64), count)
    sums, scales = scan.sums(mantissa, exponent)
    assert sums.shape == (sums.shape[0], scan.columns)
    assert len(scales) == scan.columns
    assert scan.bounded
    for stretch, places in zip(stretches, scan.places, strict=True):
        assert len(places) == len(stretch)
        true = mpmath.mpf(0)
        for term, place in zip(stretch, places, strict=True):
            true += mpmath.mpf(float(mantissa[term])) * mpmath.mpf(2) ** int(exponent[term])
            stated = mpmath.mpf(float(sums.reshape(-1)[place])) * mpmath.mpf(2) ** int(
                scales[place % scan.columns]
            )
            assert abs(stated - true) <= true * 1e-13
    # The last column holds nothing, for empty ranges.
    assert not sums[:, -1].any()


def test_rows_of_a_scan_are_short_and_of_like_magnitude():
    logs = np.concatenate([np.zeros(5), np.full(3, -249.0), np.full(70, -251.0), np.full(2, -2000.0)])
    number, place = _rows(logs, 32)
    assert number.tolist() == [0] * 5 + [1] * 3 + [2] * 32 + [3] * 32 + [4] * 6 + [5] * 2
    assert place.tolist() == [*range(5), *range(3), *range(32), *range(32), *range(6), *range(2)]


def test_a_scan_says_when_its_rounding_is_beyond_what_the_proof_counts():
    few = Scan([np.arange(2000)], np.zeros(2000), 2000)
    assert few.bounded
    assert few.columns == 2000 // 32 + 1 + 1
    # From half of the most rows on, they are longer.
    edge = 1900 * 32 // 2
    assert Scan([np.arange(edge)], np.zeros(edge), edge).columns == 951
    assert Scan([np.arange(edge + 1)], np.zeros(edge + 1), edge + 1).columns == -(-(edge + 1) // 1024) + 1
    steep = 2100
    assert not Scan([np.arange(steep)], -300.0 * np.arange(steep), steep).bounded
