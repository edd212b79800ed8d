"""T2: every word of a small width goes through the real code and is compared with exact arithmetic."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from tests.laws.exact import arb, continued, exp, geometric_steps, same, scaled_floor
from tests.laws.scripted import EveryWord

from sfumato.laws.candidates import Candidates
from sfumato.laws.gaussian import exponent, filtered, gaussian_block
from sfumato.laws.geometric import geometric_block, squeeze
from sfumato.laws.laplace import laplace_block

SCALES = [
    Fraction(1, 10**6),
    Fraction(1, 10),
    Fraction(1, 3),
    Fraction(1, 2),
    Fraction(1),
    Fraction(3, 2),
    Fraction(7, 3),
    Fraction(5),
    Fraction(10),
    Fraction(317, 10),
    Fraction(63),
    Fraction(64),
    Fraction(65),
    Fraction(100),
    Fraction(1234567890123457, 10**13),
    Fraction(128),
    Fraction(1000, 3),
    Fraction(511),
    Fraction(1000),
    Fraction(2**10) + Fraction(1, 7),
    Fraction(4096),
    Fraction(9999, 2),
]
SIGMAS_SQUARED = [
    Fraction(1, 10**12),
    Fraction(1, 100),
    Fraction(1, 9),
    Fraction(1, 2),
    Fraction(99, 100),
    Fraction(1),
    Fraction(2),
    Fraction(10, 3),
    Fraction(9),
    Fraction(30),
    Fraction(100),
    Fraction(1234567890123457, 10**12),
    Fraction(62**2),
    Fraction(63**2),
    Fraction(64**2),
    Fraction(128**2) - Fraction(1, 7),
    Fraction(200**2),
    Fraction(256**2),
    Fraction(1000**2),
    Fraction(1500**2),
]
# What a question for more bits is answered with; none of them makes a second tie possible for these scales.
PATTERNS = [0x0123456789ABCDEF, 0xFEDCBA9876543210]


def all_words(width: int) -> np.ndarray:
    return np.arange(1 << width, dtype=np.uint64)


def high_part(source: Candidates, word: int, pattern: int) -> int:
    """What the high part of a word must be when its prefix goes on with the pattern."""
    width = source.width - 1
    rate = (1 << source.shift) / source.scale
    steps = geometric_steps(continued(word >> 1, width, pattern), rate)
    length = len(source.table)
    if steps < length:
        return steps
    again = geometric_steps(continued(pattern >> (64 - width), width, pattern), rate)
    assert again < length, "choose a pattern that does not stay beyond the table"
    return length + again


def high_parts(source: Candidates, pattern: int) -> dict[int, int]:
    return {prefix: high_part(source, prefix << 1, pattern) for prefix in range(1 << (source.width - 1))}


def coin_cut(x: Fraction, width: int) -> int:
    """A coin of probability e^-x lands below exactly if prefix, then 256 more bits, are below this."""
    return 1 << (width + 256) if x == 0 else scaled_floor(exp(-x), width + 256)


def coin_below(prefix: int, pattern: int, cut: int) -> bool:
    tail = 0
    for _ in range(4):
        tail = tail << 64 | pattern
    return (prefix << 256 | tail) < cut


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("width", [8, 11])
def test_decided_words_and_ties_add_up_to_the_geometric_law_of_the_high_part(scale, width):
    source = Candidates(scale, width)
    prefixes = all_words(width - 1)
    steps, level = source.find(prefixes)
    rate = (1 << source.shift) / scale
    length = len(source.table)
    edges = [arb(1 << (width - 1)) * (1 - exp(-rate * h)) for h in range(length + 1)]
    mass = [arb(int(np.count_nonzero((steps == h) & ~level))) for h in range(length + 1)]
    # A word that is level with some rungs is cut by them; its pieces belong to the steps between the cuts.
    for prefix in prefixes[level].tolist():
        rungs = np.flatnonzero(source.table == prefix) + 1
        cuts = [arb(prefix), *(edges[h] for h in rungs), arb(prefix + 1)]
        for place, (left, right) in enumerate(pairwise(cuts)):
            assert not left > right
            mass[rungs[0] - 1 + place] += right - left
    for h in range(length):
        assert same(mass[h], edges[h + 1] - edges[h])
    assert same(mass[length], arb(1 << (width - 1)) - edges[length])


@pytest.mark.parametrize("scale", [scale for scale in SCALES if scale >= 128], ids=str)
def test_decided_coins_and_open_ones_add_up_to_the_probability_of_keeping_a_low_part(scale):
    source = Candidates(scale, 12)
    assert source.shift
    low, coins = source.split(all_words(12))
    kept, open_ = squeeze(source, low, coins)
    assert not (kept & open_).any()
    for value in range(1 << source.shift):
        here = low == value
        assert np.count_nonzero(here) == 1 << source.coin_width
        probability = arb(1 << source.coin_width) * exp(-value / scale)
        mass = arb(int(np.count_nonzero(kept & here)))
        for coin in coins[here & open_].tolist():
            part = probability - arb(coin)
            mass += arb(1) if part >= 1 else part if part > 0 else arb(0)
        assert same(mass, probability)


@pytest.mark.parametrize("sigma_squared", SIGMAS_SQUARED, ids=str)
def test_decided_coins_and_open_ones_add_up_to_the_gaussian_acceptance(sigma_squared):
    source = gaussian_source(sigma_squared, 12)
    for high in (0, 1, 2, 7, 40):
        low, coins = source.split(all_words(12))
        magnitudes = (high << source.shift) + low
        kept, open_ = filtered(source, sigma_squared, magnitudes, low, coins)
        assert not (kept & open_).any()
        for value in range(1 << source.shift):
            here = low == value
            x = exponent(source, sigma_squared, (high << source.shift) + value, value)
            probability = arb(1 << source.coin_width) * exp(-x)
            mass = arb(int(np.count_nonzero(kept & here)))
            for coin in coins[here & open_].tolist():
                part = probability - arb(coin)
                mass += arb(1) if part >= 1 else part if part > 0 else arb(0)
            assert same(mass, probability)


def gaussian_source(sigma_squared: Fraction, width: int) -> Candidates:
    floor_sigma = 0
    while (floor_sigma + 1) ** 2 <= sigma_squared:
        floor_sigma += 1
    return Candidates(Fraction(floor_sigma + 1), width)


def candidate_pairs(width: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Every first word with `rounds` second words; each round uses every second word once."""
    mask = np.uint64((1 << width) - 1)
    # An odd factor permutes the words of a width.
    shuffled = [all_words(width) * np.uint64(2 * k + 77) + np.uint64(19 * k) & mask for k in range(rounds)]
    return np.tile(all_words(width), rounds), np.concatenate(shuffled)


def expected_outcomes(source, first, second, pattern, exponent_of, two_sided):
    """The outcomes that exact arithmetic gives, candidate by candidate."""
    highs = high_parts(source, pattern)
    cuts: dict[tuple[int, int], int] = {}
    outcomes = []
    for word, coin_word in zip(first.tolist(), second.tolist(), strict=True):
        high, low = highs[word >> 1], coin_word >> source.coin_width
        x = exponent_of(high, low)
        if x is not None:
            if (high, low) not in cuts:
                cuts[high, low] = coin_cut(x, source.coin_width)
            coin = coin_word & ((1 << source.coin_width) - 1)
            if not coin_below(coin, pattern, cuts[high, low]):
                continue
        magnitude = (high << source.shift) + low
        negative = two_sided and word & 1
        if not (negative and magnitude == 0):
            outcomes.append(-magnitude if negative else magnitude)
    return outcomes


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS, ids=hex)
@pytest.mark.parametrize("two_sided", [False, True], ids=["geometric", "laplace"])
def test_every_word_gives_the_outcome_of_exact_arithmetic(scale, pattern, two_sided):
    block = laplace_block if two_sided else geometric_block
    source = Candidates(scale, 12)
    first, second = candidate_pairs(12, rounds=1)
    if not source.shift:
        second = np.zeros_like(second)
    drawn = block(source, EveryWord([first, second], pattern), len(first))
    expected = expected_outcomes(
        source, first, second, pattern, lambda high, low: low / scale if source.shift else None, two_sided
    )
    assert drawn.tolist() == expected


@pytest.mark.parametrize("sigma_squared", SIGMAS_SQUARED, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS, ids=hex)
def test_every_word_gives_the_gaussian_outcome_of_exact_arithmetic(sigma_squared, pattern):
    source = gaussian_source(sigma_squared, 11)
    first, second = candidate_pairs(11, rounds=6)
    drawn = gaussian_block(source, sigma_squared, EveryWord([first, second], pattern), len(first))

    def exponent_of(high: int, low: int) -> Fraction:
        magnitude = (high << source.shift) + low
        offset = magnitude - sigma_squared / source.scale
        return low / source.scale + offset**2 / (2 * sigma_squared)

    assert drawn.tolist() == expected_outcomes(source, first, second, pattern, exponent_of, two_sided=True)


@pytest.mark.parametrize("scale", [s for s in SCALES if s >= Fraction(1, 3)], ids=str)
def test_high_and_low_parts_together_have_the_two_sided_law(scale):
    # The parts that the tests above certify, put together as the sampler does.
    source = Candidates(scale)
    shift, rate = source.shift, 1 / scale
    coarse = rate * (1 << shift)

    def kept(magnitude: int, negative: bool):
        if magnitude == 0 and negative:
            return arb(0)
        high, low = magnitude >> shift, magnitude & ((1 << shift) - 1)
        chance_of_high = exp(-coarse * high) * (1 - exp(-coarse))
        return chance_of_high * exp(-rate * low) / arb(2 << shift)

    everything = sum((exp(-rate * low) for low in range(1 << shift)), start=arb(0)) / arb(1 << shift)
    everything -= (1 - exp(-coarse)) / arb(2 << shift)
    r = exp(-rate)
    for outcome in (-5000, -129, -64, -2, -1, 0, 1, 3, 65, 128, 777):
        law = (1 - r) / (1 + r) * exp(-rate * abs(outcome))
        assert same(kept(abs(outcome), outcome < 0) / everything, law)
