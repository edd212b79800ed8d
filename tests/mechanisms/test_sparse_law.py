"""Sparse: the law of all answers, and streams that fit it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from tests.laws.fit import DETECTABLE, fit
from tests.mechanisms.streams import (
    Pattern,
    Values,
    both_kinds,
    calibrated,
    noises,
)

from sfumato.laws import DiscreteLaplace, SeededBits
from sfumato.mechanisms.sparse import Sparse, SparseMechanism


def direct(mechanism: SparseMechanism, values: Values, pattern: Pattern) -> float:
    """The sum over the threshold's noise, term by term."""
    threshold, query = noises(mechanism)
    reach = 60 * math.ceil(threshold.scale + query.scale) + max(map(abs, (*values, 0)))
    t = np.arange(-reach, reach + 1)
    logs = threshold.logpmf(t)
    for value, above in zip(values, pattern, strict=True):
        x = t + mechanism.comparison.centring - value
        logs = logs + (query.logsf(x) if above else query.logcdf(x))
    return float(logsumexp(logs))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-30, 30), max_size=5).map(tuple),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([Fraction(1, 7), 1, 5]),
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_the_law_is_a_sum_over_the_thresholds_noise(values, crossings, same_direction, one_sided, epsilon):
    mechanism = SparseMechanism.calibrated(
        epsilon, sensitivity=1, crossings=crossings, same_direction=same_direction, one_sided=one_sided
    )
    law = mechanism.law(values, 0)
    total = 0.0
    for pattern in law.patterns():
        found = law.logpmf(pattern)
        told = tuple(answer == "above" for answer in pattern)
        precise = direct(mechanism, values[: len(pattern)], told)
        assert abs(found - precise) <= 1e-10 * max(1.0, abs(precise))
        total += math.exp(found)
    assert abs(total - 1) < 1e-11


@both_kinds
def test_wide_noise_and_far_values_need_no_more_time(one_sided):
    mechanism = SparseMechanism.calibrated(
        Fraction(1, 10**8), sensitivity=1, crossings=3, one_sided=one_sided
    )
    law = mechanism.law((0, 10**9, -(10**9), 5 * 10**8, 2**59, -(2**59)), 10**8)
    assert abs(sum(math.exp(law.logpmf(pattern)) for pattern in law.patterns()) - 1) < 1e-11


@both_kinds
def test_one_crossing_is_the_first_crossing(one_sided):
    mechanism = calibrated(1, one_sided=one_sided)
    values = (-4, 2, 0, 7, -1)
    first = mechanism.comparison.law(np.array(values), 1)
    law = mechanism.law(values, 1)
    expected = [law.logpmf(("below",) * k + ("above",)) for k in range(5)] + [law.logpmf(("below",) * 5)]
    assert np.abs(first.logpmf(first.outcomes()) - expected).max() < 1e-11


def test_transcripts_that_cannot_happen_have_no_probability():
    law = calibrated(2).law((0, 0, 0), 0)
    assert len(list(law.patterns())) == 7
    for transcript in (
        (),
        ("below",),
        ("above", "above", "below"),
        ("above", "above", "above"),
        ("below",) * 4,
        ("above", "below", 3),
    ):
        assert law.logpmf(transcript) == -math.inf
    assert calibrated().law((), 0).logpmf(()) == 0


def test_numbers_of_a_transcript_add_up_to_its_pattern():
    law = calibrated(2, answers=0.5).law((1, -2, 3), 0)
    numbers = np.arange(-60, 61)
    each = [law.logpmf(("below", int(y), "below")) for y in numbers]
    assert logsumexp(each) == pytest.approx(law.logpmf(("below", "above", "below")), abs=1e-5)


class Numbered:
    """The law of a transcript's place in the list of all patterns."""

    def __init__(self, mechanism: SparseMechanism, values: Values) -> None:
        law = mechanism.law(values, 0)
        self.places = {pattern: place for place, pattern in enumerate(law.patterns())}
        self.logs = np.array([law.logpmf(pattern) for pattern in self.places])
        self.masses = np.exp(self.logs)
        self.mean = float((self.masses * np.arange(len(self.logs))).sum())
        self.variance = float((self.masses * (np.arange(len(self.logs)) - self.mean) ** 2).sum())

    def logpmf(self, place):
        inside = (np.asarray(place) >= 0) & (np.asarray(place) < len(self.logs))
        return np.where(inside, self.logs[np.where(inside, place, 0)], -np.inf)

    def cdf(self, place):
        return np.cumsum(self.masses)[np.clip(place, 0, len(self.logs) - 1)]


def scaled(mechanism: SparseMechanism, factor: float) -> SparseMechanism:
    return SparseMechanism(
        moves=mechanism.moves,
        crossings=mechanism.crossings,
        threshold_scale=mechanism.threshold_scale * Fraction(factor),
        query_scale=mechanism.query_scale * Fraction(factor),
        one_sided=mechanism.one_sided,
    )


@both_kinds
@pytest.mark.parametrize("crossings", [1, 2, 3])
def test_streams_fit_the_law_and_no_law_a_little_away(crossings, one_sided):
    mechanism = calibrated(crossings, same_direction=True, one_sided=one_sided)
    values = (-9, 4, -2, 6, -12)

    def law_at(factor: float) -> Numbered:
        wider = scaled(mechanism, factor)
        # The centring is a public number, chosen once; only the noise is another.
        shift = wider.comparison.centring - mechanism.comparison.centring
        return Numbered(wider, tuple(value + shift for value in values))

    def family(scale: float):
        return lambda factor: law_at(scale * factor)

    places, bits = family(1.0)(1.0).places, SeededBits(20_241)
    law = mechanism.law(values, 0)
    draws = np.array([places[law.sample(bits)] for _ in range(20_000)])
    assert not fit(draws, family(1.0)).rejected
    # The answers tell little about the scale, so more than the usual error is needed to be seen.
    assert fit(draws, family(1 + 15 * DETECTABLE)).rejected
    assert fit(draws, family(1 - 15 * DETECTABLE)).rejected


def test_released_numbers_have_fresh_noise_around_their_values():
    mechanism = calibrated(3, answers=0.5)
    assert mechanism.answer_scale == 6
    bits, errors = SeededBits(5), []
    for _ in range(4000):
        stream = Sparse(mechanism, 0, bits)
        errors += [stream.offer(value) - value for value in (10_000, 20_000, 30_000)]
    assert not fit(np.array(errors), lambda factor: DiscreteLaplace(6 * Fraction(factor))).rejected
    assert fit(np.array(errors), lambda factor: DiscreteLaplace(7 * Fraction(factor))).rejected
