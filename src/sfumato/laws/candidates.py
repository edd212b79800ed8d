r"""Candidates for noise: magnitudes whose law is geometric, drawn by table and settled exactly.

Write :math:`\lambda` = 1/scale. A geometric magnitude splits as :math:`G = 2^j H + L` with H and L
independent (the geometric law has no memory): H is geometric with rate :math:`\lambda 2^j \le 2^{-6}`, and
L is uniform on j bits, kept with probability :math:`e^{-\lambda L}`. One word gives H and a sign; a second
gives L and the coin that keeps it. Tables and floats only filter: whatever they cannot decide is settled by
integers on a longer prefix of the *same* uniform, so the law is exact.

The search in the table has fixed depth, and the number of rejections is independent of the value that is
finally kept, so the time of a draw does not tell its magnitude.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.laws.bits import Bits, Integers, Words
from sfumato.laws.coins import Uniform, exp_bounds, exp_complement_coin, exp_floor

# Noise at or beyond this magnitude is an error, never a wrapped integer.
MAGNITUDE_LIMIT = 1 << 62
# Candidates per array: the working set stays in the cache, and one AES block serves one array.
CHUNK = 1 << 15
# Candidates of a scalar draw: a fixed number, so that its time does not depend on which one is kept.
SCALAR_BLOCK = 16

Booleans = NDArray[np.bool_]


@lru_cache(maxsize=64)
def ladder(rate: Fraction, width: int, spare: int = 64) -> Words:
    """The integers floor(2^width (1 - e^(-rate h))) for h = 1, 2, ... until e^(-rate h) < 2^-width."""
    # One chain of products serves all rungs. With 64 spare bits its error, 3 units a step, leaves the
    # integer part in doubt about once in 2^50 rungs; those are computed afresh.
    precision = width + spare
    ratio = exp_bounds(rate, precision)[0]
    power = 1 << precision
    rungs: list[int] = []
    tail = 1
    while tail:
        power = power * ratio >> precision
        step = len(rungs) + 1
        tail = power >> spare
        if (power + 3 * step) >> spare != tail:
            tail = exp_floor(rate * step, width)
        # 2^width e^(-rate h) is irrational, so its ceiling is its floor plus one.
        rungs.append((1 << width) - 1 - tail)
    table = np.array(rungs, dtype=np.uint64)
    table.flags.writeable = False
    return table


@dataclass(frozen=True)
class Candidates:
    """Draws of the geometric magnitude of one scale, from words of `width` bits.

    The width is 64 except in tests, which feed every word of a small width through this very code.
    """

    scale: Fraction
    width: int = 64

    @cached_property
    def shift(self) -> int:
        """The number j of low bits: the most that keep the rate of the high part at or below 2^-6."""
        return max(0, int(self.scale / 64).bit_length() - 1)

    @cached_property
    def table(self) -> Words:
        """The rungs of the high part, from the first bits of a word; its last bit is the sign."""
        return ladder(self._high_rate, self.width - 1)

    @cached_property
    def coin_width(self) -> int:
        """The number of bits of a second word that are left for the coin."""
        return self.width - self.shift

    @cached_property
    def _high_rate(self) -> Fraction:
        return (1 << self.shift) / self.scale

    def find(self, prefixes: Words) -> tuple[Integers, Booleans]:
        """High parts, and where the prefix is level with a rung so that the high part is not decided."""
        steps = np.searchsorted(self.table, prefixes)
        return steps, self.table.take(steps, mode="clip") == prefixes

    def high(self, words: Words, bits: Bits) -> Integers:
        """The high part of each word."""
        prefixes = words >> np.uint64(1)
        steps, level = self.find(prefixes)
        for place in np.flatnonzero(level):
            steps[place] = self.settle(int(prefixes[place]), bits)
        return steps

    def settle(self, prefix: int, bits: Bits) -> int:
        """The high part of one word, decided by as many further bits as it takes."""
        length = len(self.table)
        total = 0
        while True:
            steps = self._settle_within(prefix, bits)
            total += steps
            if steps < length:
                return total
            # Past the last rung the law starts afresh: it has no memory.
            if total << self.shift >= MAGNITUDE_LIMIT:
                raise OverflowError("noise of magnitude 2^62 or more; its probability is below exp(-1000)")
            prefix = bits.integer(self.width - 1)

    def _settle_within(self, prefix: int, bits: Bits) -> int:
        word = np.uint64(prefix)
        low = int(np.searchsorted(self.table, word))
        high = int(np.searchsorted(self.table, word, side="right"))
        uniform = Uniform(bits, prefix, self.width - 1)
        while low < high:
            middle = (low + high + 1) // 2
            if uniform.below(exp_complement_coin(self._high_rate * middle)):
                high = middle - 1
            else:
                low = middle
        return low

    def split(self, words: Words) -> tuple[Integers, Words]:
        """The low part and the prefix of the coin, from each second word."""
        if not self.shift:
            return np.zeros(len(words), dtype=np.int64), words
        low = (words >> np.uint64(self.coin_width)).view(np.int64)
        return low, words & np.uint64((1 << self.coin_width) - 1)


@lru_cache(maxsize=64)
def candidates(scale: Fraction) -> Candidates:
    """The candidates of one scale, with their table, shared by all draws."""
    return Candidates(scale)


def signed(magnitudes: Integers, words: Words) -> Integers:
    """Magnitudes with the sign that is the last bit of each word."""
    negative = (words & np.uint64(1)).view(np.int64)
    flipped: Integers = (magnitudes ^ -negative) + negative
    return flipped


def counted_once(magnitudes: Integers, words: Words) -> Booleans:
    """False where the candidate is minus zero, which would count zero twice."""
    once: Booleans = (magnitudes != 0) | ((words & np.uint64(1)) == 0)
    return once


def as_fractions_of_one(coins: Words, width: int) -> NDArray[np.float64]:
    """Coin prefixes as floats in [0, 1], within 2^-53."""
    # Through 63 bits, because conversion from unsigned 64-bit integers is slow on common processors.
    if width > 63:
        coins, width = coins >> np.uint64(width - 63), 63
    return coins.view(np.int64) * np.float64(2.0**-width)


def collect(block: Callable[[int], Integers], size: int | None) -> int | Integers:
    """The first outcome, or the first `size`, of a stream of blocks; `block` takes a number of candidates."""
    if size is None:
        while True:
            found = block(SCALAR_BLOCK)
            if found.size:
                return int(found[0])
    outcomes = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        missing = size - filled
        found = block(min(CHUNK, missing + missing // 2 + SCALAR_BLOCK))[:missing]
        outcomes[filled : filled + found.size] = found
        filled += found.size
    return outcomes
