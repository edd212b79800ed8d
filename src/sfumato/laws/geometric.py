"""The geometric law on 0, 1, 2, ..., and its exact sampler."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from sfumato.laws.bits import Bits, Integers, Words
from sfumato.laws.candidates import (
    Booleans,
    Candidates,
    as_fractions_of_one,
    candidates,
    collect,
)
from sfumato.laws.coins import Uniform, exp_coin
from sfumato.laws.law import Floats, checked_scale, elementwise, nearest_float, smallest_radius

# Far above the rounding error of the polynomials below (a few times 2^-53), far below what costs time.
_MARGIN = 2.0**-40


@dataclass(frozen=True)
class Geometric:
    r"""The geometric law on 0, 1, 2, ...: P(k) = (1 - r) r^k with r = e^(-1/scale).

    Guarantee:
        `sample` draws exactly this law, given uniform bits: integers decide every comparison that a table
        entry or a float squeeze leaves open. Magnitudes of 2^62 or more raise OverflowError.
        Proof: docs/proofs/samplers.md.

    Args:
        scale: positive, at most 2^52; read exactly.

    References:
        [CKS20] for sampling by exact coins.

    >>> law = Geometric(Fraction(2))
    >>> round(law.mean, 6), law.radius(0.95)
    (1.541494, 5)
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale("scale", self.scale))

    @property
    def _rate(self) -> float:
        return nearest_float(1 / self.scale)

    @elementwise
    def logpmf(self, outcome: Floats) -> Floats:
        """The log probability of each outcome."""
        inside = log_one_minus_exp(self._rate) - self._rate * outcome
        return np.where(outcome < 0, -np.inf, inside)

    @elementwise
    def cdf(self, outcome: Floats) -> Floats:
        """P(X <= outcome)."""
        return np.where(outcome < 0, 0.0, -np.expm1(-self._rate * (np.maximum(outcome, 0) + 1)))

    @elementwise
    def sf(self, outcome: Floats) -> Floats:
        """P(X > outcome)."""
        return np.exp(-self._rate * np.maximum(outcome + 1, 0))

    @elementwise
    def logcdf(self, outcome: Floats) -> Floats:
        """log P(X <= outcome)."""
        return np.where(outcome < 0, -np.inf, log_one_minus_exp(self._rate * (np.maximum(outcome, 0) + 1)))

    @elementwise
    def logsf(self, outcome: Floats) -> Floats:
        """log P(X > outcome)."""
        return -self._rate * np.maximum(outcome + 1, 0)

    @property
    def mean(self) -> float:
        """r / (1 - r)."""
        return math.exp(-self._rate) / -math.expm1(-self._rate)

    @property
    def variance(self) -> float:
        """r / (1 - r)^2."""
        return math.exp(-self._rate) / math.expm1(-self._rate) ** 2

    def radius(self, confidence: float) -> int:
        """The smallest t with P(X <= t) >= confidence."""
        return smallest_radius(lambda t: float(self.sf(t)), confidence)

    def sample(self, bits: Bits, size: int | None = None) -> int | Integers:
        """One outcome as an int, or `size` independent ones as an int64 array."""
        return collect(partial(geometric_block, candidates(self.scale), bits), size)


def geometric_block(source: Candidates, bits: Bits, count: int) -> Integers:
    """The outcomes kept among `count` candidates."""
    magnitudes, kept = magnitudes_and_kept(source, bits.words(count), bits)
    return magnitudes if kept is None else magnitudes[kept]


def magnitudes_and_kept(source: Candidates, words: Words, bits: Bits) -> tuple[Integers, Booleans | None]:
    """Geometric magnitudes with the mask of those to keep, None if that is all of them."""
    high = source.high(words, bits)
    if not source.shift:
        return high, None
    low, coins = source.split(bits.words(len(words)))
    return (high << source.shift) + low, keep_low(source, low, coins, bits)


def keep_low(source: Candidates, low: Integers, coins: Words, bits: Bits) -> Booleans:
    """Coins of probability e^(-low/scale), one for each low part."""
    kept, open_ = squeeze(source, low, coins)
    for place in np.flatnonzero(open_):
        uniform = Uniform(bits, int(coins[place]), source.coin_width)
        kept[place] = uniform.below(exp_coin(int(low[place]) / source.scale))
    return kept


def squeeze(source: Candidates, low: Integers, coins: Words) -> tuple[Booleans, Booleans]:
    """Which low parts are surely kept, and which the polynomials leave open."""
    # 1 - g + g^2/2 - g^3/6 <= e^-g <= 1 - g + g^2/2, with g < 2^-6: additions and products only.
    g = low * float(1 / source.scale)
    above = 1.0 - g * (1.0 - 0.5 * g) - as_fractions_of_one(coins, source.coin_width)
    kept = above - g * g * g * (1 / 6) >= 2.0**-source.coin_width + _MARGIN
    return kept, ~kept & (above > -_MARGIN)


def log_one_minus_exp(rate: float | Floats) -> Floats:
    """log(1 - e^-rate) for positive rates, accurate for small and for large ones."""
    small = np.log(-np.expm1(-np.minimum(rate, 1.0)))
    return np.where(np.asarray(rate) < 1.0, small, np.log1p(-np.exp(-np.maximum(rate, 1.0))))
