"""The fit helpers themselves: they accept what is right and reject what is a little wrong."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm
from tests.laws.fit import DETECTABLE, FALSE_ALARM, fit

from sfumato.laws import DiscreteLaplace, Geometric, SeededBits


def laplace(scale: float):
    return lambda factor: DiscreteLaplace(Fraction(scale * factor))


def reference_draws(scale: float, count: int, seed: int) -> np.ndarray:
    """Discrete Laplace draws by inversion in floats: a second, independent sampler."""
    generator = np.random.default_rng(seed)
    steps = generator.geometric(-np.expm1(-1 / scale), size=(2, count)) - 1
    return steps[0] - steps[1]


def test_p_values_of_right_draws_are_spread_over_the_unit_interval():
    values = [fit(reference_draws(10, 20_000, seed), laplace(10)) for seed in range(60)]
    for name in ("chi_square", "score"):
        sorted_values = np.sort([getattr(value, name) for value in values])
        distance = np.abs(sorted_values - (np.arange(60) + 0.5) / 60).max()
        assert distance < 0.3  # the Kolmogorov-Smirnov distance for a chance of about 1e-4
        assert sorted_values[0] < 0.2
        assert sorted_values[-1] > 0.8


@pytest.mark.parametrize("factor", [1 - DETECTABLE, 1 + DETECTABLE])
def test_both_sides_of_a_wrong_scale_are_rejected(factor):
    draws = reference_draws(10, 400_000, 1)
    assert not fit(draws, laplace(10)).rejected
    assert fit(draws, laplace(10 * factor)).score < FALSE_ALARM


def test_zero_counted_twice_is_rejected():
    draws = reference_draws(10, 400_000, 2)
    doubled = np.concatenate([draws, np.zeros(np.count_nonzero(draws == 0), dtype=np.int64)])
    assert fit(doubled, laplace(10)).rejected


def test_a_shift_by_one_is_rejected():
    assert fit(reference_draws(10, 400_000, 3) + 1, laplace(10)).chi_square < FALSE_ALARM


def test_draws_outside_the_support_are_rejected():
    law = Geometric(Fraction(1))
    draws = law.sample(SeededBits(4), 10_000)
    assert not fit(draws, lambda factor: Geometric(Fraction(factor))).rejected
    draws[5000] = -1
    assert fit(draws, lambda factor: Geometric(Fraction(factor))).rejected


def test_a_law_of_one_point_cannot_be_tested():
    tiny = DiscreteLaplace(Fraction(1, 10**6))
    result = fit(tiny.sample(SeededBits(1), 1000), lambda factor: tiny)
    assert result.chi_square == 1.0
    assert result.score == 1.0


def test_the_false_alarm_level_is_six_standard_deviations():
    assert 6.1 < norm.isf(FALSE_ALARM / 2) < 6.2
