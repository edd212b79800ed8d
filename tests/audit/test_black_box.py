"""T7: draws alone never refute a claim that holds, and refute one that does not."""

from fractions import Fraction

import numpy as np
import pytest
from tests.audit.black_box import (
    CLAIMED,
    assert_drawn_noise_has_the_stated_scale,
    assert_draws_do_not_refute_epsilon,
    estimated_epsilon,
)

from sfumato.audit import epsilon_lower_bound
from sfumato.errors import InvalidParameter
from sfumato.laws import DiscreteLaplace, SeededBits


def test_draws_of_a_count_do_not_refute_its_epsilon():
    assert_draws_do_not_refute_epsilon()
    assert estimated_epsilon() > 0.95 * CLAIMED


def test_draws_of_sums_have_the_scale_that_was_charged():
    assert_drawn_noise_has_the_stated_scale()


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(9, 10)], ids=str)
def test_draws_refute_noise_that_is_too_small(scale):
    noise = DiscreteLaplace(scale)
    left, right = noise.sample(SeededBits(1), 100_000), noise.sample(SeededBits(2), 100_000) + 1
    assert 1 < epsilon_lower_bound(left, right) <= 1 / scale


def test_the_bound_is_symmetric_and_zero_for_equal_laws():
    noise = DiscreteLaplace(Fraction(1))
    left, right = noise.sample(SeededBits(3), 20_000), noise.sample(SeededBits(4), 20_000)
    assert epsilon_lower_bound(left, right) == epsilon_lower_bound(right, left) < 0.05
    shifted = right + 1
    assert epsilon_lower_bound(left, shifted) == epsilon_lower_bound(shifted, left) > 0.9


def test_disjoint_outcomes_give_a_bound_that_grows_with_the_draws():
    few, many = (epsilon_lower_bound(np.zeros(size), np.ones(size)) for size in (100, 100_000))
    assert 2 < few < many


@pytest.mark.parametrize(("left", "right"), [([1], [1]), ([1, 2], [1, 2, 3]), ([[1, 2]], [[1, 2]])])
def test_draws_that_cannot_be_compared_are_refused(left, right):
    with pytest.raises(InvalidParameter):
        epsilon_lower_bound(np.array(left), np.array(right))
