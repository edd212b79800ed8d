"""T3: words at, just below and just above every kind of boundary, in the full width."""

from fractions import Fraction

import numpy as np
import pytest
from tests.laws.exact import exp, scaled_floor
from tests.laws.scripted import ScriptedBits

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Geometric
from sfumato.laws.candidates import SCALAR_BLOCK, Candidates, candidates, ladder
from sfumato.laws.coins import exp_floor
from sfumato.laws.gaussian import check_exponential, gaussian_block
from sfumato.laws.geometric import geometric_block
from sfumato.laws.laplace import laplace_block

TOP = 2**64 - 1
SCALES = [Fraction(1, 10), Fraction(1), Fraction(10), Fraction(100), Fraction(1000), Fraction(2**52)]
NEGATIVE = 1


def word(prefix: int, sign: int = 0) -> int:
    return prefix << 1 | sign


def rung_beyond(scale: Fraction, h: int, width: int) -> int:
    """floor(2^width (1 - e^(-rate h))) by the oracle."""
    rate = (1 << candidates(scale).shift) / scale
    return (1 << width) - 1 - scaled_floor(exp(-rate * h), width)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_rungs_are_the_integer_parts_of_the_distribution_function(scale):
    source = candidates(scale)
    length = len(source.table)
    for h in {1, 2, 3, length // 2, length - 1, length} - {0}:
        assert int(source.table[h - 1]) == rung_beyond(scale, h, 63)
    assert int(source.table[-1]) == 2**63 - 1
    assert np.all(source.table[1:] >= source.table[:-1])


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_words_beside_a_rung_are_decided_without_more_bits(scale):
    source = candidates(scale)
    for h in {1, 2, max(1, len(source.table) // 3)}:
        rung = int(source.table[h - 1])
        alone = np.count_nonzero(source.table == rung) == 1
        assert source.high(np.array([word(rung - 1)], dtype=np.uint64), ScriptedBits([])).tolist() == [h - 1]
        if alone and rung < 2**63 - 1:
            assert source.high(np.array([word(rung + 1)], dtype=np.uint64), ScriptedBits([])).tolist() == [h]


@pytest.mark.parametrize("scale", SCALES[1:], ids=str)
def test_a_word_level_with_a_rung_is_decided_by_the_next_words(scale):
    source = candidates(scale)
    h = 2
    rung = int(source.table[h - 1])
    following = rung_beyond(scale, h, 127) - (rung << 64)
    last = rung_beyond(scale, h, 191) - ((rung << 64 | following) << 64)
    for script, steps in [
        ([following - 1], h - 1),
        ([following + 1], h),
        ([0], h - 1),
        ([TOP], h),
        ([following, last - 1], h - 1),
        ([following, last + 1], h),
    ]:
        bits = ScriptedBits(script)
        assert source.high(np.array([word(rung)], dtype=np.uint64), bits).tolist() == [steps]
        assert bits.left == 0


@pytest.mark.parametrize("scale", SCALES[1:], ids=str)
def test_past_the_last_rung_the_length_is_added_and_a_new_word_drawn(scale):
    source = candidates(scale)
    length = len(source.table)
    again = int(source.table[0]) + 1
    # The prefix of all ones is level with the last rungs; one more word of ones puts it past them. Then a
    # new prefix, taken from the top of a word, just above the first rung.
    bits = ScriptedBits([TOP, again << 1])
    assert source.high(np.array([TOP], dtype=np.uint64), bits).tolist() == [length + 1]
    assert bits.left == 0
    # A second prefix of ones adds the length twice.
    bits = ScriptedBits([TOP, TOP, TOP, 0])
    assert source.high(np.array([TOP], dtype=np.uint64), bits).tolist() == [2 * length]


def test_noise_too_large_for_an_integer_raises_and_never_wraps():
    source = candidates(Fraction(2**52))
    with pytest.raises(OverflowError, match=r"2\^62"):
        source.settle(2**63 - 1, ScriptedBits([TOP] * 100))


def test_a_word_of_zeros_gives_zero_and_minus_zero_is_rejected():
    source = candidates(Fraction(10))
    words = [word(0), word(0, NEGATIVE), word(2**62), word(2**62, NEGATIVE)]
    drawn = laplace_block(source, ScriptedBits(words), 4)
    # Half of the way up the distribution function is log(2) * 10 = 6.9.
    assert drawn.tolist() == [0, 6, -6]
    assert geometric_block(source, ScriptedBits(words), 4).tolist() == [0, 0, 6, 6]


def low_word(source: Candidates, low: int, coin: int) -> int:
    return low << source.coin_width | coin


@pytest.mark.parametrize("scale", [Fraction(1000), Fraction(2**40), Fraction(2**52)], ids=str)
def test_the_coin_that_keeps_a_low_part_is_exact_at_its_boundary(scale):
    source = candidates(scale)
    low = (1 << source.shift) - 1
    width = source.coin_width
    cut = scaled_floor(exp(-low / scale), width)
    following = scaled_floor(exp(-low / scale), width + 64) - (cut << 64)
    first = word(0)

    def kept(*script: int) -> bool:
        bits = ScriptedBits([first, *script])
        drawn = geometric_block(source, bits, 1)
        assert bits.left == 0
        assert drawn.tolist() in ([], [low])
        return bool(drawn.size)

    assert kept(low_word(source, low, 0))
    assert not kept(low_word(source, low, (1 << width) - 1))
    assert kept(low_word(source, low, cut), following - 1)
    assert not kept(low_word(source, low, cut), following + 1)
    # One coin below and above the cut the polynomials are undecided but the integers need no more bits.
    assert kept(low_word(source, low, cut - 1))
    assert not kept(low_word(source, low, cut + 1))


@pytest.mark.parametrize(
    "sigma_squared", [Fraction(1, 4), Fraction(9), Fraction(1000**2), Fraction(2**104)], ids=str
)
def test_the_coin_that_accepts_a_gaussian_is_exact_at_its_boundary(sigma_squared):
    source = candidates(Fraction(int(sigma_squared**0.5) + 1))
    width = source.coin_width
    low = 0
    high = 1
    first = int(source.table[0]) + 1
    magnitude = (high << source.shift) + low
    x = (magnitude - sigma_squared / source.scale) ** 2 / (2 * sigma_squared)
    cut = scaled_floor(exp(-x), width)
    following = scaled_floor(exp(-x), width + 64) - (cut << 64)

    def kept(*script: int, sign: int = 0) -> bool:
        bits = ScriptedBits([word(first, sign), *script])
        drawn = gaussian_block(source, sigma_squared, bits, 1)
        assert bits.left == 0
        assert drawn.tolist() in ([], [-magnitude if sign else magnitude])
        return bool(drawn.size)

    for sign in (0, NEGATIVE):
        assert kept(low_word(source, low, 0), sign=sign)
        assert not kept(low_word(source, low, (1 << width) - 1), sign=sign)
        assert kept(low_word(source, low, cut - 1), sign=sign)
        assert not kept(low_word(source, low, cut + 1), sign=sign)
        assert kept(low_word(source, low, cut), following - 1, sign=sign)
        assert not kept(low_word(source, low, cut), following + 1, sign=sign)


def test_gaussian_minus_zero_is_rejected():
    source = candidates(Fraction(4))
    bits = ScriptedBits([word(0), word(0, NEGATIVE), 0, 0])
    assert gaussian_block(source, Fraction(9), bits, 2).tolist() == [0]


def test_a_scalar_draw_takes_the_first_candidate_kept_of_a_fixed_block():
    law = DiscreteLaplace(Fraction(10))
    rejected = word(0, NEGATIVE)
    rest = [word(0)] * (SCALAR_BLOCK - 2)
    bits = ScriptedBits([rejected, word(2**62), *rest])
    assert law.sample(bits) == 6
    assert bits.left == 0
    # A block with none kept is followed by another.
    bits = ScriptedBits([rejected] * SCALAR_BLOCK + [word(2**62, NEGATIVE)] * SCALAR_BLOCK)
    assert law.sample(bits) == -6
    assert bits.left == 0


def test_no_draws_need_no_bits():
    for law in (DiscreteLaplace(Fraction(10)), Geometric(Fraction(10)), DiscreteGaussian(Fraction(10))):
        drawn = law.sample(ScriptedBits([]), 0)
        assert drawn.shape == (0,)
        assert drawn.dtype == np.int64


def test_rungs_that_the_chain_of_products_leaves_in_doubt_are_computed_afresh(monkeypatch):
    fresh = []

    def counted(x: Fraction, precision: int) -> int:
        fresh.append(x)
        return exp_floor(x, precision)

    monkeypatch.setattr("sfumato.laws.candidates.exp_floor", counted)
    rough = ladder.__wrapped__(Fraction(1, 10), 63, spare=6)
    assert len(fresh) > 100
    assert np.array_equal(rough, ladder(Fraction(1, 10), 63))


@pytest.mark.parametrize("law", [DiscreteLaplace, Geometric])
def test_scales_that_cannot_be_sampled_are_refused_by_name(law):
    for bad in (0, -1, float("nan"), float("inf"), 2**52 + 1, "3"):
        with pytest.raises(InvalidParameter, match="scale"):
            law(bad)
    assert law(2**52).scale == 2**52
    assert law(0.1).scale == Fraction(1, 10)


def test_variances_that_cannot_be_sampled_are_refused_by_name():
    for bad in (0, -1, float("nan"), float("inf"), 2**104 + 1, "3"):
        with pytest.raises(InvalidParameter, match="sigma_squared"):
            DiscreteGaussian(bad)


def test_an_inaccurate_exponential_stops_the_gaussian_sampler(monkeypatch):
    check_exponential.__wrapped__()
    exact = np.exp
    monkeypatch.setattr("sfumato.laws.gaussian.np.exp", lambda x: exact(x) * (1 + 2.0**-38))
    with pytest.raises(NotSupported, match="exponential"):
        check_exponential.__wrapped__()
