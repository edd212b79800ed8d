"""The discrete Gaussian law and its exact sampler; tails are in gaussian_tails.py."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from sfumato.checks import positive, shown
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws.bits import Bits, Integers, Words
from sfumato.laws.candidates import (
    Booleans,
    Candidates,
    as_fractions_of_one,
    candidates,
    collect,
    counted_once,
    signed,
)
from sfumato.laws.coins import Uniform, exp_bounds, exp_coin
from sfumato.laws.gaussian_tails import log_normalizer, log_tail, tail, variance_of
from sfumato.laws.law import MAX_SCALE, Floats, elementwise, nearest_float, smallest_radius

# The float exponential may err by this much before a decision could be wrong; it errs by about 2^-52.
_MARGIN = 2.0**-30
# What the start-up check demands of it, 2^10 times better than needed.
_REQUIRED = 2.0**-40


@dataclass(frozen=True)
class DiscreteGaussian:
    r"""The discrete Gaussian law centred at 0: P(k) proportional to exp(-k^2 / (2 sigma^2)).

    Guarantee:
        `sample` draws exactly this law, given uniform bits and a float64 exponential that errs by less than
        2^-30 (checked on a fixed table, to 2^-40, before the first draw). The float only filters; what it
        leaves open is settled by integers. Proof: docs/proofs/samplers.md.

    Args:
        sigma_squared: positive, at most 2^104 (sigma at most 2^52); read exactly.

    References:
        [CKS20] for the law, its sampler by rejection and its privacy.

    >>> from sfumato.laws.bits import SystemBits
    >>> law = DiscreteGaussian(Fraction(9))
    >>> round(law.variance, 9), law.radius(0.95)
    (9.0, 6)
    >>> -60 < law.sample(SystemBits()) < 60
    True
    """

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        value = positive("sigma_squared", self.sigma_squared)
        if value > MAX_SCALE**2:
            raise InvalidParameter(
                f"sigma_squared must be at most 2^104, got sigma_squared={shown(self.sigma_squared)}"
            )
        object.__setattr__(self, "sigma_squared", value)

    @elementwise
    def logpmf(self, outcome: Floats) -> Floats:
        """The log probability of each outcome."""
        exponent = outcome * nearest_float(1 / (2 * self.sigma_squared)) * outcome
        return -exponent - log_normalizer(self.sigma_squared)

    @elementwise
    def cdf(self, outcome: Floats) -> Floats:
        """P(X <= outcome)."""
        return tail(self.sigma_squared, -outcome)

    @elementwise
    def sf(self, outcome: Floats) -> Floats:
        """P(X > outcome)."""
        return tail(self.sigma_squared, outcome + 1)

    @elementwise
    def logcdf(self, outcome: Floats) -> Floats:
        """log P(X <= outcome)."""
        return log_tail(self.sigma_squared, -outcome)

    @elementwise
    def logsf(self, outcome: Floats) -> Floats:
        """log P(X > outcome)."""
        return log_tail(self.sigma_squared, outcome + 1)

    @property
    def mean(self) -> float:
        """Zero."""
        return 0.0

    @property
    def variance(self) -> float:
        """The variance, which is at most sigma squared and below it by less than 1e-6 for sigma >= 1."""
        return variance_of(self.sigma_squared)

    def radius(self, confidence: float) -> int:
        """The smallest t with P(|X| <= t) >= confidence."""
        return smallest_radius(lambda t: 2 * float(self.sf(t)), confidence)

    def sample(self, bits: Bits, size: int | None = None) -> int | Integers:
        """One outcome as an int, or `size` independent ones as an int64 array."""
        check_exponential()
        return collect(partial(gaussian_block, proposal(self.sigma_squared), self.sigma_squared, bits), size)


@lru_cache(maxsize=64)
def proposal(sigma_squared: Fraction) -> Candidates:
    """Laplace candidates of scale floor(sigma) + 1, the proposal of [CKS20]."""
    return candidates(Fraction(math.isqrt(math.floor(sigma_squared)) + 1))


def gaussian_block(source: Candidates, sigma_squared: Fraction, bits: Bits, count: int) -> Integers:
    """The outcomes kept among `count` candidates."""
    words = bits.words(count)
    high = source.high(words, bits)
    low, coins = source.split(bits.words(count))
    magnitudes = (high << source.shift) + low
    kept = keep(source, sigma_squared, magnitudes, low, coins, bits)
    return signed(magnitudes, words)[kept & counted_once(magnitudes, words)]


def keep(
    source: Candidates, sigma_squared: Fraction, magnitudes: Integers, low: Integers, coins: Words, bits: Bits
) -> Booleans:
    """Coins of probability e^-x: one coin keeps the low part and accepts the Gaussian at once."""
    kept, open_ = filtered(source, sigma_squared, magnitudes, low, coins)
    for place in np.flatnonzero(open_):
        x = exponent(source, sigma_squared, int(magnitudes[place]), int(low[place]))
        kept[place] = Uniform(bits, int(coins[place]), source.coin_width).below(exp_coin(x))
    return kept


def exponent(source: Candidates, sigma_squared: Fraction, magnitude: int, low: int) -> Fraction:
    """low/t + (magnitude - sigma^2/t)^2 / (2 sigma^2), with t the scale of the candidates."""
    offset = magnitude - sigma_squared / source.scale
    return low / source.scale + offset * offset / (2 * sigma_squared)


def filtered(
    source: Candidates, sigma_squared: Fraction, magnitudes: Integers, low: Integers, coins: Words
) -> tuple[Booleans, Booleans]:
    """Which candidates are surely kept, and which the float exponential leaves open."""
    # z^2 e^(-z^2/2) is bounded, so relative rounding errors of z move the probability by less than 2^-48.
    unit = math.sqrt(nearest_float(1 / (2 * sigma_squared)))
    z = magnitudes * unit
    z -= nearest_float(sigma_squared / source.scale) * unit
    z *= z
    if source.shift:
        z += low * float(1 / source.scale)
    np.negative(z, out=z)
    above = np.exp(z, out=z)
    above -= as_fractions_of_one(coins, source.coin_width)
    kept = above >= 2.0**-source.coin_width + _MARGIN
    return kept, ~kept & (above > -_MARGIN)


@lru_cache(maxsize=1)
def check_exponential() -> None:
    """Refuse to sample where NumPy's exponential is not accurate; runs once a process."""
    points = np.arange(512) / 8.0
    exact = [exp_bounds(Fraction(point), 64)[0] * 2.0**-64 for point in points.tolist()]
    if not np.abs(np.exp(-points) - np.array(exact)).max() < _REQUIRED:
        raise NotSupported("the float64 exponential of this machine errs by more than 2^-40")
