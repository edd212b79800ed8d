"""Bounded noise: probabilities against mpmath, coins against exact arithmetic, draws against the law."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.laws.exact import exp, scaled_floor
from tests.laws.fit import FALSE_ALARM, chi_square_of
from tests.laws.scripted import EveryWord

from sfumato.errors import InvalidParameter
from sfumato.laws import BoundedNoise, Law, SeededBits, SystemBits
from sfumato.laws.bounded import MAX_BOUND, bounded_block, exact_excess, excess, keep

mpmath.mp.dps = 40
POWERS = (1, 2, 3)
LAWS = [BoundedNoise(bound, power) for bound in (1, 2, 3, 7, 40, 333, 900) for power in POWERS]
# What the integral of exp(-1/(1-x^2)^p) over (-1, 1) is.
INTEGRALS = {1: 0.443994, 2: 0.340294, 3: 0.285997}
every_power = pytest.mark.parametrize("power", POWERS)


def weight(place: int, bound: int, power: int):
    return mpmath.exp(-((mpmath.mpf(bound * bound) / (bound * bound - place * place)) ** power))


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_probabilities_tails_and_moments_are_those_of_mpmath(law):
    assert isinstance(law, Law)
    places = range(-law.bound + 1, law.bound)
    weights = [weight(i, law.bound, law.power) for i in places]
    total = mpmath.fsum(weights)
    tail = mpmath.mpf(0)
    for i, w in zip(reversed(places), reversed(weights), strict=True):
        exact = mpmath.log(w / total)
        assert abs(law.logpmf(i) - exact) <= 1e-12 * max(1, abs(exact))
        assert abs(law.sf(i) - tail / total) <= 1e-12 * tail / total + mpmath.mpf(1e-300)
        assert abs(law.cdf(-i - 1) - tail / total) <= 1e-12 * tail / total + mpmath.mpf(1e-300)
        tail += w
    variance = mpmath.fsum(i * i * w for i, w in zip(places, weights, strict=True)) / total
    assert abs(law.variance - variance) <= 1e-12 * variance
    assert law.mean == 0
    assert float(np.exp(law.logpmf(np.array(places))).sum()) == pytest.approx(1, abs=1e-12)


@every_power
@pytest.mark.parametrize("bound", [10**5, 10**6, MAX_BOUND])
def test_wide_laws_agree_with_the_integral_and_with_sums_over_their_ends(bound, power):
    law = BoundedNoise(bound, power)
    # All derivatives vanish at the ends, so the sum over the lattice is the integral but for e^-(root of M).
    ends = [-1, -0.9, -0.5, 0, 0.5, 0.9, 1]
    total = bound * mpmath.quad(
        lambda x: mpmath.exp(1 - (1 / (1 - x * x)) ** power) if x * x < 1 else 0, ends
    )
    assert abs(law.table.total - total) <= 1e-12 * total
    assert float(total) / bound == pytest.approx(math.e * INTEGRALS[power], rel=5e-6)
    # Where an exponent of 600 is, few terms make the tail.
    start = int(bound * math.sqrt(1 - 600 ** (-1 / power)))
    while weight(start, bound, power) > 1e-280:
        start += max(1, (bound - start) // 1000)
    terms, place = [], start
    while (
        place < bound and (not terms or terms[-1] > terms[0] * mpmath.mpf(10) ** -17) and len(terms) < 20000
    ):
        terms.append(weight(place, bound, power) * mpmath.e)
        place += 1
    if len(terms) < 20000:
        exact = mpmath.fsum(terms) / total
        assert abs(law.sf(start - 1) - exact) <= 1e-12 * exact
    assert law.logpmf(bound - 1) < -1000


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.95, 0.999999])
def test_the_radius_is_the_smallest_that_covers(law, confidence):
    radius = law.radius(confidence)
    assert radius < law.bound
    inside = np.arange(-radius, radius + 1)
    assert math.fsum(np.exp(law.logpmf(inside))) >= confidence - 1e-12
    if radius:
        assert math.fsum(np.exp(law.logpmf(inside[1:-1]))) < confidence + 1e-10


@every_power
def test_outcomes_outside_have_no_probability_and_may_be_of_any_size(power):
    law = BoundedNoise(50, power)
    assert law.logpmf(50) == law.logpmf(-50) == law.logpmf(10**400) == -math.inf
    assert law.cdf(49) == law.cdf(10**400) == law.sf(-50) == law.sf(-(10**400)) == 1
    assert law.sf(49) == law.cdf(-50) == 0
    assert law.sf(48) > 0 or power > 1
    for k in range(-60, 60):
        assert law.cdf(k) == law.sf(-k - 1)
        assert law.cdf(k) + law.sf(k) == pytest.approx(1, abs=1e-15)
        assert law.logpmf(k) == law.logpmf(-k)
    assert law.cdf(np.array([[1, 2], [3, 4]], dtype=np.int8)).shape == (2, 2)
    with pytest.raises(InvalidParameter, match="outcome must be an integer"):
        law.cdf(0.5)


@every_power
@pytest.mark.parametrize("bound", [2, 3, 8, 41])
def test_the_law_is_log_concave_on_the_integers(bound, power):
    exponents = [exact_excess(i, bound, power) for i in range(-bound + 1, bound)]
    assert all(2 * b <= a + c for a, b, c in zip(exponents, exponents[1:], exponents[2:], strict=False))


@every_power
@pytest.mark.parametrize("bound", [1, 2, 30, 10**6, MAX_BOUND])
def test_the_float_exponent_errs_by_less_than_is_allowed_for(bound, power):
    places = np.unique(np.linspace(-bound + 1, bound - 1, 301).astype(np.int64))
    floats = excess(places.astype(np.float64), bound, power)
    for place, value in zip(places.tolist(), floats.tolist(), strict=True):
        exact = exact_excess(place, bound, power)
        assert abs(Fraction(value) - exact) <= 8 * exact / 2**53


# --- draws ---------------------------------------------------------------------------------------


@every_power
@pytest.mark.parametrize("bound", [1, 2, 5, 100, 10**6])
@pytest.mark.parametrize("pattern", [0x0123456789ABCDEF, 0xFEDCBA9876543210], ids=hex)
def test_every_coin_near_its_edge_falls_as_exact_arithmetic_says(bound, power, pattern):
    places = np.unique(np.linspace(-bound + 1, bound - 1, 25).astype(np.int64))
    for place in places.tolist():
        x = exact_excess(place, bound, power)
        cut = 1 << 64 if x == 0 else scaled_floor(exp(-x), 64)
        # At the edge itself, around it, as far as the float filter leaves open, and beyond.
        around = [0, 1, 2, 3, 2**20, 2**34 - 1, 2**34 + 1, 2**35, 2**60]
        coins = sorted({min(max(cut + side * far, 0), 2**64 - 1) for far in around for side in (-1, 1)})
        kept = keep(
            np.full(len(coins), place), bound, power, np.array(coins, np.uint64), EveryWord([], pattern)
        )
        tail = scaled_floor(exp(-x), 128) if x else 1 << 128
        assert kept.tolist() == [(coin << 64 | pattern) < tail for coin in coins]


def test_candidates_are_uniform_on_the_open_interval():
    bound = 4
    size = 2 * bound - 1
    words = np.arange(size, 15 * size, dtype=np.uint64)
    sure = np.zeros(len(words), dtype=np.uint64)  # a coin of 0 is always kept, but for exponents of 64 bits
    drawn = bounded_block(bound, 1, EveryWord([words, sure], 0), len(words))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == list(range(-3, 4))
    assert set(counts.tolist()) == {14}


@every_power
@pytest.mark.parametrize("bound", [3, 60, 10**5])
def test_draws_fit_their_law_and_no_law_two_per_cent_away(bound, power):
    law = BoundedNoise(bound, power)
    draws = law.sample(SeededBits(20_240_601), 200_000)
    assert np.abs(draws).max() < bound
    assert chi_square_of(draws, law, np.arange(-bound, bound + 1)) >= FALSE_ALARM
    for wrong in (Fraction(98, 100), Fraction(102, 100)):
        other = round(bound * wrong)
        if other != bound:
            other_law = BoundedNoise(other, power)
            assert chi_square_of(draws, other_law, np.arange(-other, other + 1)) < FALSE_ALARM
    other_law = BoundedNoise(bound, power % 3 + 1)
    assert chi_square_of(draws, other_law, np.arange(-bound, bound + 1)) < FALSE_ALARM


@every_power
def test_single_draws_fit_too_and_take_few_candidates(power):
    law, bits = BoundedNoise(40, power), SeededBits(7)
    draws = np.array([law.sample(bits) for _ in range(5000)])
    assert chi_square_of(draws, law, np.arange(-40, 41)) >= FALSE_ALARM
    assert chi_square_of(draws, BoundedNoise(46, power), np.arange(-46, 47)) < FALSE_ALARM
    kept = bounded_block(40, power, SeededBits(8), 100_000).size / 100_000
    assert kept == pytest.approx(math.e * INTEGRALS[power] / 2, abs=0.02)


def test_the_fit_rejects_a_coarse_coin():
    def wrong_coin(places, bits):
        # The mutant: a coin of 4 bits.
        coins = (bits.words(places.size) >> np.uint64(60)).astype(np.float64) / 16
        return places[np.exp(-excess(places.astype(np.float64), 30, 2)) > coins]

    bits = SeededBits(3)
    draws = wrong_coin(bits.below_each(59, 400_000) - 29, bits)
    assert chi_square_of(draws, BoundedNoise(30, 2), np.arange(-30, 31)) < FALSE_ALARM


def test_the_only_outcome_of_a_bound_of_one_is_zero():
    law = BoundedNoise(1, 2)
    assert law.sample(SystemBits()) == 0
    assert law.variance == 0
    assert law.radius(0.99) == 0


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, "3", None, MAX_BOUND + 1, float("nan")])
def test_bounds_out_of_range_are_refused(bound):
    with pytest.raises(InvalidParameter, match="bound must be"):
        BoundedNoise(bound, 2)


@pytest.mark.parametrize("power", [0, 4, 1.5, True, "2", None])
def test_powers_out_of_range_are_refused(power):
    with pytest.raises(InvalidParameter, match="power must be one of"):
        BoundedNoise(10, power)
