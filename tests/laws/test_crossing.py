"""The law of the first crossing: probabilities against forty digits, draws against probabilities."""

import math
import time
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.fit import DETECTABLE, FALSE_ALARM, fit

from sfumato.errors import InvalidParameter
from sfumato.laws import DiscreteLaplace, Geometric, Law, SeededBits, SystemBits, crossing
from sfumato.laws.crossing import FirstCrossing, _gauss_sum

KINDS = {"two-sided": DiscreteLaplace, "one-sided": Geometric}
PRECISION = 1e-12


def precise_log_masses(law: FirstCrossing) -> list[float]:
    """The sum over the threshold's noise, term by term with forty digits."""
    with mpmath.workdps(40):
        r, s = (mpmath.e ** (-1 / _real(noise.scale)) for noise in (law.threshold_noise, law.query_noise))
        margins = [int(value) - law.threshold for value in law.values]
        tail = math.ceil(100 * law.threshold_noise.scale + 50 * law.query_noise.scale)
        high = max([0, *margins]) + tail
        low = 0 if isinstance(law.threshold_noise, Geometric) else min([0, *margins]) - tail
        masses = [mpmath.mpf(0)] * law.points
        for t in range(low, high + 1):
            reached = _mass(law.threshold_noise, r, t)
            for k, margin in enumerate(margins):
                masses[k] += reached * _tail(law.query_noise, s, t - margin + 1)
                reached *= _lower_tail(law.query_noise, s, t - margin)
            masses[-1] += reached
        return [float(mpmath.log(mass)) for mass in masses]


def _real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def _mass(noise, r, k):
    return (1 - r) * r**k if isinstance(noise, Geometric) else (1 - r) / (1 + r) * r ** abs(k)


def _tail(noise, r, start):
    if isinstance(noise, Geometric):
        return r ** max(start, 0)
    return r**start / (1 + r) if start >= 1 else 1 - r ** (1 - start) / (1 + r)


def _lower_tail(noise, r, end):
    if isinstance(noise, Geometric):
        return 1 - r ** (end + 1) if end >= 0 else mpmath.mpf(0)
    return _tail(noise, r, -end)


def assert_right(law: FirstCrossing) -> None:
    logs = law.logpmf(law.outcomes())
    for found, precise in zip(logs, precise_log_masses(law), strict=True):
        assert abs(found - precise) <= PRECISION * max(1.0, abs(precise))
    assert abs(np.exp(logs).sum() - 1) < PRECISION


noises = st.builds(
    lambda kind, top, bottom: kind(Fraction(top, bottom)),
    st.sampled_from(list(KINDS.values())),
    st.integers(1, 60),
    st.integers(1, 9),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-60, 60), max_size=5), st.integers(-9, 9), noises, noises)
def test_log_probabilities_agree_with_forty_digits(values, threshold, threshold_noise, query_noise):
    assert_right(FirstCrossing(np.array(values, dtype=np.int64), threshold, threshold_noise, query_noise))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    ("values", "scales"),
    [
        ([0, 40, 3, -100], (90, 130)),  # Gauss sums
        ([-500, 400, 399, 401], (33, 70)),
        ([300, 0, 5], (3, 3)),  # a plateau of equal terms between distant values
        ([300, 300, -300, 300], (2, 7)),  # the largest terms are far from zero
        ([2000, -2000, 0], (Fraction(7, 2), Fraction(9, 2))),  # probabilities far below 1e-200
    ],
)
def test_wide_noise_and_distant_values_are_as_accurate(kind, values, scales):
    threshold_noise, query_noise = (kind(Fraction(scale)) for scale in scales)
    assert_right(FirstCrossing(np.array(values), 7, threshold_noise, query_noise))


@pytest.mark.parametrize("below", [0, 5, 10**6, 2**50, 2**59])
@pytest.mark.parametrize("scales", [(1, 1), (Fraction(9, 10), Fraction(9, 8)), (2**40, 2**45)])
def test_one_value_with_one_sided_noise_has_a_closed_form(below, scales):
    # P(nu > rho + below) = (1 - r) s^(below + 1) / (1 - r s).
    law = FirstCrossing(np.array([-below]), 0, Geometric(Fraction(scales[0])), Geometric(Fraction(scales[1])))
    x, y = (float(1 / Fraction(scale)) for scale in scales)
    exact = math.log(-math.expm1(-x)) - y * (below + 1) - math.log(-math.expm1(-x - y))
    assert math.isclose(law.logpmf(0), exact, rel_tol=PRECISION)


@pytest.mark.parametrize("terms", [25, 100, 10**4])
def test_gauss_sums_are_exact_for_polynomials(terms):
    nodes, log_weights = _gauss_sum(terms)
    for degree in (0, 1, 2, 7, 20):
        scaled = np.arange(terms) / terms
        approximate = (np.exp(log_weights) * (nodes / terms) ** degree).sum()
        assert math.isclose(approximate, (scaled**degree).sum(), rel_tol=1e-13)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_many_values_sum_to_one_and_settle_the_same_in_any_order(kind):
    rng = np.random.default_rng(5)
    values = np.cumsum(rng.integers(0, 4, 600)) - 600
    one, other = (FirstCrossing(values, 0, kind(Fraction(40)), kind(Fraction(55))) for _ in range(2))
    singles = [one.logpmf(int(k)) for k in (590, 300, 600, 0)]
    logs = other.logpmf(other.outcomes())
    assert np.allclose(singles, logs[[590, 300, 600, 0]], rtol=1e-13)
    assert abs(np.exp(logs).sum() - 1) < PRECISION
    assert np.isfinite(logs).all()
    assert np.allclose(other.cdf(other.outcomes()), np.cumsum(np.exp(logs)), rtol=1e-12)
    assert np.allclose(other.sf(other.outcomes()), 1 - np.cumsum(np.exp(logs)), atol=1e-12)
    assert other.cdf(-1) == other.sf(600) == 0
    assert other.cdf(5000) == other.sf(-3) == 1
    assert math.isclose(other.mean, (np.exp(logs) * other.outcomes()).sum(), rel_tol=1e-12)


def test_the_law_is_a_law():
    law = FirstCrossing(np.array([1, 2]), 3, Geometric(Fraction(1)), DiscreteLaplace(Fraction(1)))
    assert isinstance(law, Law)
    assert law.logpmf(-1) == law.logpmf(3) == -math.inf
    assert law.outcomes().tolist() == [0, 1, 2]
    assert law.radius(0.999999) == 2


class Stream:
    """Noise that is read from a list, so that a plain loop can follow the sampler."""

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers, self.used = numbers, 0

    def sample(self, bits, size):
        self.used += size
        return self.numbers[self.used - size : self.used]


@given(st.integers(0, 400), st.integers(0, 40), st.integers(0, 2**32))
def test_the_sampler_finds_what_a_plain_loop_finds(count, reach, seed):
    rng = np.random.default_rng(seed)
    values, noise = rng.integers(-9, 10, count), rng.integers(-reach, 10, count)
    bar = int(rng.integers(0, 25))
    law = FirstCrossing(values, 3, Stream(np.array([bar])), Stream(noise))
    crossed = [k for k in range(count) if values[k] + noise[k] > 3 + bar]
    assert law.sample(SystemBits()) == (crossed[0] if crossed else count)


CASES = {
    "few values": ([3, -1, 4, -1, 5, -9, 2], 4, (2, 3)),
    "equal values": ([0] * 40, 9, (3, 3)),
    "counts": (list(range(-30, 40, 2)), 0, (Fraction(9, 2), Fraction(45, 8))),
    "wide": (list(range(-9000, 9000, 150)), 100, (900, 1125)),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("name", CASES)
def test_draws_fit_the_law_and_no_law_a_little_away(name, kind):
    values, threshold, scales = CASES[name]

    def family(scale: float):
        return lambda factor: FirstCrossing(
            np.array(values), threshold, *(kind(Fraction(s) * Fraction(scale * factor)) for s in scales)
        )

    draws = family(1.0)(1.0).sample(SeededBits(20_240_602), 400_000)
    assert draws.dtype == np.int64
    assert not fit(draws, family(1.0)).rejected
    # The outcome tells little about the scale, so more than the usual error is needed to be seen.
    assert fit(draws, family(1 + 5 * DETECTABLE)).rejected
    assert fit(draws, family(1 - 5 * DETECTABLE)).rejected
    # "None" is an outcome of its own: draws that report the last value in its place do not fit.
    if family(1.0)(1.0).sf(len(values) - 1) > 0.01:
        assert fit(np.minimum(draws, len(values) - 1), family(1.0)).chi_square < FALSE_ALARM


def test_single_draws_fit_too():
    law = FirstCrossing(np.arange(-200, 200, 3), 0, Geometric(Fraction(9)), Geometric(Fraction(12)))
    bits = SeededBits(8)
    draws = np.array([law.sample(bits) for _ in range(10_000)])
    assert not fit(
        draws,
        lambda factor: FirstCrossing(
            law.values, 0, Geometric(9 * Fraction(factor)), Geometric(12 * Fraction(factor))
        ),
    ).rejected


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_values_and_no_draws_are_allowed(kind):
    noise = kind(Fraction(3))
    law = FirstCrossing(np.array([], dtype=np.int64), 5, noise, noise)
    assert law.points == 1
    assert law.sample(SystemBits()) == 0
    assert law.sample(SystemBits(), 3).tolist() == [0, 0, 0]
    assert abs(law.logpmf(0)) < 1e-14
    assert law.radius(0.5) == 0
    assert FirstCrossing([], 0, noise, noise).sample(SystemBits(), 0).shape == (0,)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_huge_values_neither_wrap_nor_slow_down(kind):
    noise = kind(Fraction(5))
    values = np.array([-(2**60), -(2**50), 2**50, 2**60])
    for threshold, crossed in ((0, 2), (2**59, 3), (2**60 - 1, None), (-(2**60), None), (2**60, None)):
        law = FirstCrossing(values, threshold, noise, noise)
        logs = law.logpmf(law.outcomes())
        assert abs(np.exp(logs).sum() - 1) < PRECISION
        if crossed is not None:
            assert law.sample(SystemBits()) == crossed == logs.argmax()
    wide = FirstCrossing(values, 0, kind(Fraction(2**52)), kind(Fraction(2**52)))
    assert abs(np.exp(wide.logpmf(wide.outcomes())).sum() - 1) < PRECISION
    assert 0 <= wide.sample(SystemBits()) <= 4


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_hundred_thousand_values_are_drawn_in_milliseconds(kind):
    noise = kind(Fraction(10))
    law = FirstCrossing(np.full(10**5, -(10**6)), 0, noise, noise)
    assert law.sample(SystemBits()) == 10**5
    start = time.perf_counter()
    assert law.sample(SystemBits()) == 10**5
    assert time.perf_counter() - start < 1.0  # 4 ms on an idle machine
    crossing = FirstCrossing(np.arange(10**5) * 100 - 5 * 10**6, 0, noise, noise)
    assert abs(crossing.sample(SystemBits()) - 50_000) < 20
    assert np.exp(crossing.logpmf(np.arange(49_998, 50_003))).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_runs_of_values_far_below_share_their_sum_without_loss(kind, monkeypatch):
    # With one row at a time every run of two far values is shared.
    monkeypatch.setattr("sfumato.laws.crossing._CELLS", 1)
    values = np.concatenate([[9], np.arange(-320, -300), [4, 5], np.arange(-400, -390), [0]])
    assert_right(FirstCrossing(values, 5, kind(Fraction(2)), kind(Fraction(3))))


@pytest.mark.parametrize(
    "values", [[1.5], [[1]], "text", np.array([2**63], dtype=np.uint64), [2**60 + 1], [True], 3]
)
def test_values_that_are_no_row_of_small_integers_are_refused(values):
    with pytest.raises(InvalidParameter, match="values"):
        FirstCrossing(values, 0, Geometric(Fraction(1)), Geometric(Fraction(1)))


@pytest.mark.parametrize("threshold", [0.5, 2**60 + 1, True])
def test_a_threshold_that_is_no_small_integer_is_refused(threshold):
    with pytest.raises(InvalidParameter, match="threshold"):
        FirstCrossing([1], threshold, Geometric(Fraction(1)), Geometric(Fraction(1)))


def test_the_values_are_a_copy_that_cannot_change():
    values = np.array([1, 2, 3])
    law = FirstCrossing(values, 0, Geometric(Fraction(1)), Geometric(Fraction(1)))
    values[0] = 99
    assert law.values.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        law.values[0] = 5


# --- the parts of the sum ------------------------------------------------------------------------


@pytest.mark.parametrize("terms", [2, 3, 100, 10**6])
@pytest.mark.parametrize(("first", "last"), [(-1.0, -1.0), (-1.0, -7.0), (-500.0, -3.0), (0.0, -1e-9)])
def test_progressions_are_summed_from_their_ends(first, last, terms):
    found = crossing._log_progression(np.array([first]), np.array([last]), np.array([float(terms)]))[0]
    with mpmath.workdps(40):
        if first == last:
            exact = first + mpmath.log(terms)
        else:
            fall = abs(mpmath.mpf(first) - last) / (terms - 1)
            exact = max(first, last) + mpmath.log(mpmath.expm1(-fall * terms) / mpmath.expm1(-fall))
        assert abs(found - exact) <= 1e-9
    both = crossing._log_progression(np.array([-np.inf]), np.array([-np.inf]), np.array([5.0]))
    assert both.tolist() == [-np.inf]


def test_the_first_place_at_or_after_a_start_is_found_or_the_end():
    places = np.array([2, 5, 5, 9])
    assert [crossing._next(places, start, 20) for start in (0, 2, 3, 5, 6, 9, 10)] == [2, 2, 5, 5, 9, 9, 20]
    assert crossing._next(np.zeros(0, dtype=np.int64), 0, 7) == 7


def test_stretches_within_reach_of_a_kink_bend():
    kinks, bend = np.array([0, 100]), 10
    starts = np.array([-50, -11, -10, -1, 0, 9, 10, 50, 89, 90, 109, 110])
    found = crossing._bends(starts, kinks, bend)
    expected = [any(kink - bend <= start < kink + bend for kink in kinks) for start in starts]
    assert found.tolist() == expected
    assert crossing._bends(starts, np.zeros(0, dtype=np.int64), bend).tolist() == [False] * len(starts)


def test_each_integer_of_short_stretches_is_listed_once():
    found = crossing._each_integer(np.array([3, 10, 20]), np.array([2, 1, 3]))
    assert found.tolist() == [3, 4, 10, 20, 21, 22]
    assert crossing._each_integer(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).tolist() == []


@pytest.mark.parametrize("noise", [Geometric, DiscreteLaplace])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(10**6)], ids=str)
@pytest.mark.parametrize("margins", [[], [0], [-5, 3, 40], [10**9, -(10**9)]], ids=str)
def test_the_places_of_the_sum_hold_all_of_the_thresholds_noise(noise, scale, margins):
    law = noise(scale)
    for depth in (math.inf, 50.0):
        terms, complete = crossing.terms_of(np.array(margins, dtype=np.int64), law, law, depth)
        assert complete or depth == 50
        logs = terms.log_threshold(law)
        total = float(terms.log_sum(logs[np.newaxis])[0])
        assert total == pytest.approx(0, abs=1e-11)
        apart = terms.distances(np.array([0, 7]))
        assert apart.shape == (2, len(logs))
        np.testing.assert_array_equal(apart[0] - apart[1], 7)


@pytest.mark.parametrize("noise", [Geometric(Fraction(3)), DiscreteLaplace(Fraction(3))], ids=repr)
def test_log_tails_at_whole_places_are_those_of_the_noise(noise):
    places = np.arange(-60, 61)
    below, above = crossing.log_tails(noise, places.astype(np.float64))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(below, np.log(noise.cdf(places)), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(above, np.log(noise.sf(places)), rtol=1e-12, atol=1e-15)


def test_beyond_the_bend_factors_are_powers():
    assert crossing._bend(Geometric(Fraction(1)), 0) == math.ceil(crossing._NEGLIGIBLE)
    few, many = (crossing._bend(Geometric(Fraction(5)), count) for count in (1, 10**6))
    assert few == 5 * math.ceil(crossing._NEGLIGIBLE + math.log(2))
    assert many == 5 * math.ceil(crossing._NEGLIGIBLE + math.log(10**6 + 1))
