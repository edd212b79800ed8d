"""The discrete Laplace law (two-sided geometric) and its exact sampler."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from sfumato.laws.bits import Bits, Integers
from sfumato.laws.candidates import Candidates, candidates, collect, counted_once, signed
from sfumato.laws.geometric import log_one_minus_exp, magnitudes_and_kept
from sfumato.laws.law import Floats, checked_scale, elementwise, nearest_float, smallest_radius


@dataclass(frozen=True)
class DiscreteLaplace:
    r"""The discrete Laplace law centred at 0: P(k) = (1 - r)/(1 + r) r^|k| with r = e^(-1/scale).

    Guarantee:
        `sample` draws exactly this law, given uniform bits: no float rounds an outcome, so the attack of
        [Mironov12] has no surface. Magnitudes of 2^62 or more, of probability below exp(-1000), raise
        OverflowError instead of wrapping. Proof: docs/proofs/samplers.md.

    Args:
        scale: positive, at most 2^52; read exactly.

    References:
        [GRS12] for the law, [CKS20] for sampling it exactly.

    >>> from sfumato.laws.bits import SystemBits
    >>> law = DiscreteLaplace(Fraction(10))
    >>> round(law.variance, 3), law.radius(0.95)
    (199.833, 30)
    >>> law.sample(SystemBits(), size=3).dtype
    dtype('int64')
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
        at_zero = log_one_minus_exp(self._rate) - math.log1p(math.exp(-self._rate))
        return at_zero - self._rate * np.abs(outcome)

    @elementwise
    def cdf(self, outcome: Floats) -> Floats:
        """P(X <= outcome)."""
        return self._upper_tail(-outcome)

    @elementwise
    def sf(self, outcome: Floats) -> Floats:
        """P(X > outcome)."""
        return self._upper_tail(outcome + 1)

    @elementwise
    def logcdf(self, outcome: Floats) -> Floats:
        """log P(X <= outcome)."""
        return self._log_upper_tail(-outcome)

    @elementwise
    def logsf(self, outcome: Floats) -> Floats:
        """log P(X > outcome)."""
        return self._log_upper_tail(outcome + 1)

    # P(X >= start) is r^start / (1 + r) for start >= 1, else 1 - P(X >= 1 - start) by symmetry.

    def _upper_tail(self, start: Floats) -> Floats:
        beyond = np.exp(self._log_beyond(start))
        return np.where(start >= 1, beyond, 1 - beyond)

    def _log_upper_tail(self, start: Floats) -> Floats:
        beyond = self._log_beyond(start)
        return np.where(start >= 1, beyond, np.log1p(-np.exp(beyond)))

    def _log_beyond(self, start: Floats) -> Floats:
        return -self._rate * np.where(start >= 1, start, 1 - start) - math.log1p(math.exp(-self._rate))

    @property
    def mean(self) -> float:
        """Zero."""
        return 0.0

    @property
    def variance(self) -> float:
        """2 r / (1 - r)^2."""
        return 2 * math.exp(-self._rate) / math.expm1(-self._rate) ** 2

    def radius(self, confidence: float) -> int:
        """The smallest t with P(|X| <= t) >= confidence."""
        return smallest_radius(lambda t: 2 * float(self.sf(t)), confidence)

    def sample(self, bits: Bits, size: int | None = None) -> int | Integers:
        """One outcome as an int, or `size` independent ones as an int64 array."""
        return collect(partial(laplace_block, candidates(self.scale), bits), size)


def laplace_block(source: Candidates, bits: Bits, count: int) -> Integers:
    """The outcomes kept among `count` candidates."""
    words = bits.words(count)
    magnitudes, kept = magnitudes_and_kept(source, words, bits)
    once = counted_once(magnitudes, words)
    return signed(magnitudes, words)[once if kept is None else once & kept]
