"""Integer weights: they never rise, never fall by more than they may, and end in a positive constant."""

import itertools
import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.laws import grades as module
from sfumato.laws.coins import exp_bounds
from sfumato.laws.grades import MAX_PARTS, Grades, grades

# (c, parts): tiny, huge, coarse, fine.
PAIRS = [
    (Fraction(1, 2), 1),
    (Fraction(1, 2), 2),
    (Fraction(1), 3),
    (Fraction(5, 18), 20),
    (Fraction(1, 10), 7),
    (Fraction(1, 100), 10),
    (Fraction(40), 4),
    (Fraction(100), 1),
    (Fraction(10**6), 9),
    (Fraction(3), 1000),
    (Fraction(1, 3), MAX_PARTS),
    (Fraction(17), MAX_PARTS),
    (Fraction(1, 1000), 3),
]


def factor_bounds(x, precision=256):
    """Integers around 2^precision e^-x."""
    return exp_bounds(x, precision)


def all_weights(graded, upto=None):
    return graded.weights(np.arange(graded.last + 2 if upto is None else upto))


def assert_falls_slowly(weights, c, parts, precision=256):
    """W[k] e^(-c/parts) <= W[k+1] <= W[k], exactly; so too for any number of levels."""
    low, high = exp_bounds(c / parts, precision)
    for now, following in itertools.pairwise(weights):
        assert following <= now
        # Certain only if it holds for the upper bound of e^(-c/parts).
        assert now * high <= following << precision
    assert low > 0 or c / parts > 100


@pytest.mark.parametrize(("c", "parts"), PAIRS, ids=str)
def test_neighbouring_levels_differ_by_at_most_their_share(c, parts):
    graded = Grades(c, parts)
    # Fine tables of slow falls are long; every unit repeats the same steps, so these cover all of them.
    levels = range(min(graded.last + 2, 3 * parts + 10))
    tail = range(max(graded.last - 2 * parts, 0), graded.last + 3)
    for part in (levels, tail):
        assert_falls_slowly(graded.weights(np.array(part)), c, parts, 4096 if c / parts > 100 else 256)


@pytest.mark.parametrize(("c", "parts"), PAIRS, ids=str)
def test_from_the_last_level_on_weights_are_constant_and_positive(c, parts):
    graded = Grades(c, parts)
    last = graded.weights(np.array([graded.last, graded.last + 1, 2**40, 2**62]))
    assert len(set(last)) == 1
    assert last[0] > 0
    assert graded.weights(np.array([0])) == [2**124]
    assert (graded.reach - 1) * parts <= graded.last <= graded.reach * parts


@given(
    c=st.fractions(Fraction(1, 100), 200, max_denominator=10**6),
    parts=st.integers(1, 60),
    jumps=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), max_size=20),
)
def test_any_two_levels_differ_by_at_most_their_share(c, parts, jumps):
    graded = grades(c, parts)
    for level, jump in jumps:
        near, far = graded.weights(np.array([level, level + jump]))
        assert far <= near
        x = c * jump / parts
        if x < 300:
            assert near * exp_bounds(x, 1024)[1] <= far << 1024


@pytest.mark.parametrize(("c", "parts"), [pair for pair in PAIRS if pair[1] <= 1000], ids=str)
def test_weights_are_close_to_the_exponential(c, parts):
    graded = Grades(c, parts)
    for level in range(min(int(20 * parts / c) + 1, 4 * parts + 1)):
        weight = graded.weights(np.array([level]))[0]
        assert math.log(weight / 2**124) == pytest.approx(-float(c) * level / parts, abs=1e-9)


@pytest.mark.parametrize(("c", "parts"), PAIRS, ids=str)
def test_coins_and_floats_are_the_weights(c, parts):
    graded = Grades(c, parts)
    levels = np.unique(np.linspace(0, graded.last + 3, 500).astype(np.int64))
    exact = graded.weights(levels)
    units, steps = graded.coins(levels)
    assert [int(a) * int(b) for a, b in zip(units, steps, strict=True)] == exact
    assert max(int(units.max()), int(steps.max())) <= 2**62
    floats = graded.floats(levels)
    for weight, near in zip(exact, floats.tolist(), strict=True):
        assert abs(Fraction(near) - weight) <= Fraction(weight, 2**51)


def floored(x, precision):
    low, _ = exp_bounds(x, precision)
    return low, low


def test_rounding_down_instead_of_up_breaks_the_guarantee():
    c, parts = Fraction(1, 2), 10
    with patch.object(module, "exp_bounds", floored):
        broken = Grades(c, parts)
        weights = broken.weights(np.arange(3 * parts))
    with pytest.raises(AssertionError):
        assert_falls_slowly(weights, c, parts)


def test_wrong_arguments_are_refused():
    for c in (0, -1, float("nan"), None):
        with pytest.raises(InvalidParameter, match="c must be"):
            Grades(c, 1)
    for parts in (0, MAX_PARTS + 1, 1.0):
        with pytest.raises(InvalidParameter, match="parts"):
            Grades(Fraction(1), parts)
