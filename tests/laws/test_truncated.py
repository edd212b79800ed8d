"""The truncated Laplace law: probabilities, exact coins, draws, and refusals."""

import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.fit import DETECTABLE, fit

from sfumato.errors import InvalidParameter
from sfumato.laws import Geometric, Law, SeededBits, TruncatedLaplace, truncated

half = Fraction(1, 2)
LAWS = {
    "a center between points": TruncatedLaplace(Fraction(7, 3), Fraction(2), 0, 9),
    "a center at an end": TruncatedLaplace(Fraction(0), Fraction(5), 0, 9),
    "a center at the other end": TruncatedLaplace(Fraction(9), Fraction(1, 3), 0, 9),
    "flat": TruncatedLaplace(Fraction(4), Fraction(3), 0, 9, Fraction(2)),
    "flat beyond an end": TruncatedLaplace(Fraction(1), Fraction(3), 0, 9, Fraction(4)),
    "flat by a fraction": TruncatedLaplace(Fraction(9, 2), Fraction(3), 0, 9, Fraction(3, 4)),
    "flat all over": TruncatedLaplace(Fraction(4), Fraction(3), 0, 9, Fraction(50)),
    "steep between two points": TruncatedLaplace(Fraction(13, 2), Fraction(1, 500), 0, 9),
    "almost level": TruncatedLaplace(Fraction(5), Fraction(10**15), 0, 9),
    "not from zero": TruncatedLaplace(Fraction(-7, 2), Fraction(4), -8, 3),
    "one point": TruncatedLaplace(Fraction(3), Fraction(4), 3, 3),
}
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def by_definition(law: TruncatedLaplace) -> np.ndarray:
    away = [max(abs(k - law.center) - law.flat, Fraction(0)) for k in law.outcomes()]
    weights = np.exp([-float((distance - min(away)) / law.scale) for distance in away])
    return weights / weights.sum()


@every_law
def test_probabilities_are_the_weights_divided_by_their_sum(law):
    points, chances = np.array(law.outcomes()), by_definition(law)
    assert isinstance(law, Law)
    assert law.count == len(points)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(law.logpmf(points)), chances, rtol=1e-12)
    np.testing.assert_allclose(law.cdf(points), np.cumsum(chances), rtol=1e-12)
    np.testing.assert_allclose(law.sf(points - 1), np.cumsum(chances[::-1])[::-1], rtol=1e-12)
    assert law.mean == pytest.approx(chances @ points, rel=1e-10, abs=1e-10)
    assert law.variance == pytest.approx(chances @ (points - chances @ points) ** 2, rel=1e-9, abs=1e-12)
    outside = np.array([law.low - 5, law.low - 1, law.high + 1, law.high + 5])
    assert np.isneginf(law.logpmf(outside)).all()
    assert law.cdf(outside).tolist() == [0, 0, 1, 1]
    assert law.sf(outside).tolist() == [1, 1, 0, 0]


@every_law
@pytest.mark.parametrize("last", [0, 1])
def test_the_coins_of_the_three_parts_enclose_their_probability_and_close_in(law, last):
    chances = by_definition(law)
    start, end = law._middle
    exact = chances[: (start, end)[last] - law.low].sum()
    for precision in (0, 8, 64, 200):
        low, high = law._edge(last)(precision)
        assert low <= exact * 2.0**precision * (1 + 1e-12) + 1e-12
        assert high >= exact * 2.0**precision * (1 - 1e-12) - 1e-12
        assert high - low <= 4


def family(law: TruncatedLaplace, factor: float) -> TruncatedLaplace:
    return TruncatedLaplace(law.center, law.scale * Fraction(factor), law.low, law.high, law.flat)


@pytest.mark.parametrize(
    "law",
    [
        TruncatedLaplace(Fraction(7, 3), Fraction(4), 0, 30),
        TruncatedLaplace(Fraction(40), Fraction(5), 0, 300, Fraction(3)),
        TruncatedLaplace(Fraction(10**9, 7), Fraction(10**6), 0, 10**9),
        TruncatedLaplace(Fraction(0), Fraction(300), 0, 900),
    ],
    ids=str,
)
def test_draws_fit_the_law_and_no_law_a_little_away(law):
    draws = law.sample(SeededBits(31), 400_000)
    assert not fit(draws, lambda factor: family(law, factor)).rejected
    for wrong in (1 - DETECTABLE, 1 + DETECTABLE):
        assert fit(draws, lambda factor, wrong=wrong: family(law, factor * wrong)).rejected


@every_law
def test_floats_decide_as_integers_do(law):
    fast = law.sample(SeededBits(32), 300)
    with patch.object(truncated, "_MARGIN", 4.0):
        assert (law.sample(SeededBits(32), 300) == fast).all()
    assert law.sample(SeededBits(32), 0).tolist() == []
    assert isinstance(law.sample(SeededBits(32)), int)


def test_a_tail_that_is_drawn_without_its_end_is_rejected():
    class Endless(TruncatedLaplace):
        """Folds what falls outside into the last point, as clamping would."""

        def _steps(self, size, bits, count):
            return np.minimum(Geometric(self.scale).sample(bits, count), size - 1)

    law = TruncatedLaplace(Fraction(2), Fraction(8), 0, 12)
    clamped = Endless(Fraction(2), Fraction(8), 0, 12).sample(SeededBits(33), 100_000)
    assert fit(clamped, lambda factor: family(law, factor)).rejected


@given(st.fractions(0, 20), st.fractions(Fraction(1, 50), 1000), st.fractions(0, 30), st.integers(0, 20))
def test_any_law_adds_up_and_draws_inside(center, scale, flat, extra):
    law = TruncatedLaplace(center, scale, 0, math.ceil(center) + extra, flat)
    points = np.array(law.outcomes())
    assert np.exp(law.logpmf(points)).sum() == pytest.approx(1, abs=1e-12)
    drawn = law.sample(SeededBits(1), 5)
    assert ((drawn >= 0) & (drawn <= law.high)).all()
    radius = law.radius(0.9)
    inside = np.abs(points - round(center)) <= radius
    assert np.exp(law.logpmf(points))[inside].sum() >= 0.9 - 1e-9


def test_moments_of_wide_laws_are_those_of_the_continuous_one():
    law = TruncatedLaplace(Fraction(5 * 10**8), Fraction(10**6), 0, 10**9)
    assert law.mean == pytest.approx(5 * 10**8, rel=1e-12)
    assert law.variance == pytest.approx(2 * 10**12, rel=1e-6)
    level = TruncatedLaplace(Fraction(3 * 10**8), Fraction(10**15), 0, 10**9)
    assert level.mean == pytest.approx(5 * 10**8, rel=1e-5)
    assert level.variance == pytest.approx(10**18 / 12, rel=1e-5)


@pytest.mark.parametrize(
    ("given_", "rule"),
    [
        ({"center": 11}, r"center must be in \[0, 10\]"),
        ({"scale": 0}, "scale must be positive"),
        ({"high": -1}, "high must be in"),
        ({"flat": -1}, "flat must not be negative"),
        ({"high": 2**60}, "high must be in"),
        ({"low": 0.5}, "low must be a whole number"),
    ],
)
def test_parameters_that_break_a_rule_are_refused_by_name(given_, rule):
    with pytest.raises(InvalidParameter, match=rule):
        TruncatedLaplace(**{"center": 1, "scale": 1, "low": 0, "high": 10, **given_})


def test_a_scale_is_accepted_up_to_where_its_rate_is_a_float():
    flat = TruncatedLaplace(center=Fraction(1), scale=2**1000, low=0, high=3)
    assert np.exp(flat.logpmf(np.arange(4))).tolist() == pytest.approx([0.25] * 4)
    assert (flat.mean, flat.variance) == pytest.approx((1.5, 1.25))
    assert 0 <= flat.sample(SeededBits(1)) <= 3
    with pytest.raises(InvalidParameter, match=r"^scale must be at most 2\^1000"):
        TruncatedLaplace(center=Fraction(1), scale=10**400, low=0, high=3)
