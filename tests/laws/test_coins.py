import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.exact import arb, exp, scaled_floor
from tests.laws.scripted import ScriptedBits

from sfumato.errors import InvalidParameter
from sfumato.laws import SeededBits, bernoulli, bernoulli_exp, exp_bounds
from sfumato.laws.coins import Uniform, exp_coin, exp_complement_coin, exp_floor, ratio_coin


def rationals(count: int) -> list[Fraction]:
    """Rationals of all magnitudes from 2^-200 to 2^200, with short and long terms."""
    source = random.Random(5)
    values = []
    for _ in range(count):
        numerator = source.getrandbits(source.choice([3, 20, 54, 200])) + 1
        denominator = source.getrandbits(source.choice([3, 20, 54, 200])) + 1
        values.append(Fraction(numerator, denominator))
    return values


@pytest.mark.parametrize("precision", [1, 2, 7, 63, 64, 127, 300])
def test_bounds_hold_and_are_close(precision):
    for x in [*rationals(700), Fraction(1, 10**400), Fraction(10**400), Fraction(7 * precision, 10)]:
        lo, hi = exp_bounds(x, precision)
        exact = exp(-x) * arb(1 << precision)
        assert 0 <= lo <= hi <= (1 << precision)
        assert hi - lo <= 2
        # The oracle has 512 bits, so that only bounds that are equal to 1 can be beyond its resolution.
        assert not arb(lo) > exact
        assert not exact > arb(hi)
        if 10**-30 < x < 10**6:
            assert arb(lo) <= exact <= arb(hi)


@pytest.mark.parametrize("precision", [0, 1, 64])
def test_the_exponential_of_zero_is_exact(precision):
    assert exp_bounds(Fraction(0), precision) == (1 << precision, 1 << precision)
    assert exp_floor(Fraction(0), precision) == 1 << precision


def test_negative_arguments_are_refused():
    for call in (lambda: exp_bounds(Fraction(-1), 64), lambda: bernoulli_exp(Fraction(-1), SeededBits(1))):
        with pytest.raises(InvalidParameter, match="x must not be negative"):
            call()


def test_integer_parts_are_exact():
    for x in rationals(2000):
        if x < 10**6:
            assert exp_floor(x, 63) == scaled_floor(exp(-x), 63)


def test_integer_parts_next_to_an_integer_ask_for_more_precision():
    # 2^20 e^-x just above and just below 12345: x is the logarithm, cut after 60 digits.
    with_digits = Fraction(math.floor(10**12 * -math.log(12345 / 2**20)), 10**12)
    tight = with_digits
    for digits in range(13, 60):
        step = Fraction(1, 10**digits)
        while exp_floor(tight + step, 20) == 12345:
            tight += step
    assert exp_floor(tight, 20) == 12345 == scaled_floor(exp(-tight), 20)
    assert exp_floor(tight + Fraction(1, 10**59), 20) == 12344
    # At the first precision tried the bounds straddle the integer.
    lo, hi = exp_bounds(tight, 36)
    assert lo >> 16 != (hi - 1) >> 16


@given(st.fractions(0, 40, max_denominator=10**6), st.integers(0, 2**20 - 1), st.integers(0, 2**32))
def test_a_coin_agrees_with_the_prefix_wherever_the_prefix_decides(x, prefix, seed):
    lo, hi = exp_bounds(x, 20)
    below = Uniform(SeededBits(seed), prefix, 20).below(exp_coin(x))
    above = not Uniform(SeededBits(seed), prefix, 20).below(exp_complement_coin(x))
    if prefix < lo:
        assert below
    if prefix >= hi:
        assert not below
    if prefix >= (1 << 20) - lo:
        assert above
    if prefix < (1 << 20) - hi:
        assert not above


def test_one_uniform_gives_consistent_answers():
    # 1/3 = 0.0101...: the prefix 01 leaves it open, and what is drawn for one question binds the next.
    third, near = Fraction(1, 3), Fraction(1, 3) + Fraction(1, 2**80)
    pattern = 0x5555555555555555
    uniform = Uniform(ScriptedBits([pattern, 0]), 0b01, 2)
    assert uniform.below(ratio_coin(third))
    assert uniform.below(ratio_coin(near))
    uniform = Uniform(ScriptedBits([pattern, 2**64 - 1]), 0b01, 2)
    assert not uniform.below(ratio_coin(third))
    assert not uniform.below(ratio_coin(near))
    uniform = Uniform(ScriptedBits([pattern, pattern + 2**40]), 0b01, 2)
    assert not uniform.below(ratio_coin(third))
    assert uniform.below(ratio_coin(near))


def test_a_rational_coin_is_cut_exactly_at_its_probability():
    for p in (Fraction(1, 3), Fraction(2, 7), Fraction(123456789, 987654321)):
        cut = math.floor(p * 2**64)
        following = math.floor(p * 2**128) - (cut << 64)
        assert bernoulli(p, ScriptedBits([cut - 1]))
        assert not bernoulli(p, ScriptedBits([cut + 1]))
        assert bernoulli(p, ScriptedBits([cut, following - 1]))
        assert not bernoulli(p, ScriptedBits([cut, following + 1]))
    assert bernoulli(Fraction(1, 2), ScriptedBits([2**63 - 1]))
    assert not bernoulli(Fraction(1, 2), ScriptedBits([2**63]))


def test_an_exponential_coin_is_cut_exactly_at_its_probability():
    for x in (Fraction(1, 3), Fraction(5), Fraction(1, 10**9)):
        cut = scaled_floor(exp(-x), 64)
        following = scaled_floor(exp(-x), 128) - (cut << 64)
        assert bernoulli_exp(x, ScriptedBits([cut - 1]))
        assert not bernoulli_exp(x, ScriptedBits([cut + 1]))
        assert bernoulli_exp(x, ScriptedBits([cut, following - 1]))
        assert not bernoulli_exp(x, ScriptedBits([cut, following + 1]))


def test_certain_coins_are_certain():
    for word in (0, 2**64 - 1):
        assert bernoulli(Fraction(1), ScriptedBits([word]))
        assert not bernoulli(Fraction(0), ScriptedBits([word]))
        assert bernoulli_exp(Fraction(0), ScriptedBits([word]))


def test_probabilities_outside_the_unit_interval_are_refused():
    for p in (Fraction(-1, 3), Fraction(4, 3)):
        with pytest.raises(InvalidParameter, match="p must be in"):
            bernoulli(p, SeededBits(1))


@pytest.mark.parametrize("x", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_exponential_coins_have_their_frequency(x):
    bits, count = SeededBits(9), 20_000
    p = math.exp(-x)
    heads = sum(bernoulli_exp(x, bits) for _ in range(count))
    assert abs(heads - count * p) < 6.1 * math.sqrt(count * p * (1 - p))
