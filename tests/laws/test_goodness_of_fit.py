"""T5: seeded draws fit their law, and reject the same law 2 % too wide or too narrow."""

from fractions import Fraction

import numpy as np
import pytest
from tests.laws.fit import DETECTABLE, FALSE_ALARM, fit

from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Geometric, SeededBits

LAWS = {
    "laplace 1/2": (DiscreteLaplace, Fraction(1, 2), 1),
    "laplace 1": (DiscreteLaplace, Fraction(1), 1),
    "laplace 10": (DiscreteLaplace, Fraction(10), 1),
    "laplace 1000": (DiscreteLaplace, Fraction(1000), 1),
    "laplace 2^30 / 3": (DiscreteLaplace, Fraction(2**30, 3), 1),
    "laplace 2^51": (DiscreteLaplace, Fraction(2**51), 1),
    "geometric 1": (Geometric, Fraction(1), 1),
    "geometric 10": (Geometric, Fraction(10), 1),
    "geometric 777": (Geometric, Fraction(777), 1),
    "gaussian 2/3": (DiscreteGaussian, Fraction(4, 9), 2),
    "gaussian 3": (DiscreteGaussian, Fraction(9), 2),
    "gaussian 10": (DiscreteGaussian, Fraction(100), 2),
    "gaussian 1000": (DiscreteGaussian, Fraction(10**6), 2),
    "gaussian 2^40": (DiscreteGaussian, Fraction(2**80), 2),
}
LONG = {"laplace 10", "laplace 1000", "gaussian 10", "gaussian 1000"}


@pytest.mark.parametrize("name", LAWS)
def test_draws_fit_their_law_and_no_law_two_per_cent_away(name):
    kind, parameter, power = LAWS[name]

    def family(scale: float):
        return lambda factor: kind(parameter * Fraction(scale * factor) ** power)

    draws = kind(parameter).sample(SeededBits(20_240_601), 10**6 if name in LONG else 400_000)
    assert not fit(draws, family(1.0)).rejected
    assert fit(draws, family(1 + DETECTABLE)).score < FALSE_ALARM
    assert fit(draws, family(1 - DETECTABLE)).score < FALSE_ALARM


@pytest.mark.parametrize(
    "name", ["laplace 10", "laplace 1000", "gaussian 3", "gaussian 1000", "geometric 777"]
)
def test_scalar_draws_fit_the_law_too(name):
    kind, parameter, power = LAWS[name]
    law, bits = kind(parameter), SeededBits(7)
    draws = np.array([law.sample(bits) for _ in range(20_000)])
    assert not fit(draws, lambda factor: kind(parameter * Fraction(factor) ** power)).rejected
    assert fit(draws, lambda factor: kind(parameter * Fraction(1.15 * factor) ** power)).rejected


@pytest.mark.parametrize("name", ["laplace 10", "gaussian 1000"])
def test_successive_draws_are_not_correlated(name):
    kind, parameter, _ = LAWS[name]
    draws = kind(parameter).sample(SeededBits(11), 400_000).astype(float)
    for values in (draws, np.abs(draws)):
        for lag in (1, 2, 16, 32_768):
            correlation = np.corrcoef(values[lag:], values[:-lag])[0, 1]
            assert abs(correlation) * len(values) ** 0.5 < 6.1


def test_tiny_scales_give_zero_almost_always():
    assert not DiscreteLaplace(Fraction(1, 10**6)).sample(SeededBits(3), 100_000).any()
    assert not DiscreteGaussian(Fraction(1, 10**12)).sample(SeededBits(3), 100_000).any()
    assert not Geometric(Fraction(1, 10**600)).sample(SeededBits(3), 100_000).any()
    assert not DiscreteGaussian(Fraction(1, 10**600)).sample(SeededBits(3), 1000).any()
