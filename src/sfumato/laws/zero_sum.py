"""Discrete Laplace noise on the counts of a partition whose total is known: all noise adds up to zero."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits
from sfumato.laws.coins import bernoulli_exp
from sfumato.laws.laplace import DiscreteLaplace
from sfumato.laws.law import checked_scale, nearest_float
from sfumato.laws.shifted import sum_of_integers


@dataclass(frozen=True, eq=False)
class ZeroSumLaplace:
    r"""Independent discrete Laplace noise on a vector of integers, given that it adds up to zero.

    The probability of an outcome x with the total of the center is proportional to exp(-sum |x_i - c_i| / b).
    Every other outcome is impossible.

    Guarantee:
        `sample` draws exactly this law: all noise but the last one is drawn independently, the last one is
        what is missing, and exact coins accept it. Proof: docs/proofs/samplers.md.

    Args:
        scale: the scale b of the Laplace law; positive, read exactly.
        center: a vector of at least one integer.

    >>> from sfumato.laws.bits import SystemBits
    >>> law = ZeroSumLaplace(Fraction(2), np.array([10, 20, 30]))
    >>> int(law.sample(SystemBits()).sum()), law.logpmf([10, 20, 31])
    (60, -inf)
    """

    scale: Fraction
    center: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale("scale", self.scale))
        # The message shows no value: a center is made of data.
        center = np.array(self.center)
        if center.ndim != 1 or not len(center):
            raise InvalidParameter("center must be a vector of at least one integer")
        object.__setattr__(self, "center", sum_of_integers(center, np.int64(0)))

    def sample(self, bits: Bits) -> Any:
        """One outcome."""
        noise = DiscreteLaplace(self.scale)
        while True:
            drawn = np.asarray(noise.sample(bits, len(self.center) - 1)).tolist()
            missing = -sum(drawn)
            if bernoulli_exp(abs(missing) / self.scale, bits):
                return sum_of_integers(np.array([*drawn, missing]), self.center)

    def logpmf(self, outcome: Any) -> Any:
        """The log probability of an outcome, or of several along the first axes."""
        noise = sum_of_integers(outcome, -self.center)
        # A sum of int64 that wraps is far from 0 as a float.
        missing = (noise.sum(axis=-1) != 0) | (abs(noise.astype(np.float64).sum(axis=-1)) >= 2**62)
        size = np.abs(noise).astype(np.float64).sum(axis=-1) * nearest_float(1 / self.scale)
        found = np.where(missing, -np.inf, -size - log_total(self.scale, len(self.center)))
        return float(found) if found.ndim == 0 else found


@lru_cache(maxsize=1024)
def log_total(scale: Fraction, count: int) -> float:
    """The logarithm of the sum of exp(-sum |x_i| / scale) over all vectors of `count` integers that add up
    to zero.

    With r = exp(-1/scale) the sum is (1 - r²)^(1 - count) times the mean of
    (1 + 2 r cos u + r²)^(count - 1) over the `count`-th parts u of a circle. Proof: docs/proofs/laplace.md.

    >>> round(math.exp(log_total(Fraction(1), 2)), 6), round((1 + math.exp(-2)) / (1 - math.exp(-2)), 6)
    (1.313035, 1.313035)
    """
    rate = nearest_float(1 / scale)
    halves = math.pi * np.arange(count) / count
    # 1 + 2 r cos u + r², without loss of digits where it is small.
    factors = math.expm1(-rate) ** 2 + 4 * math.exp(-rate) * np.cos(halves) ** 2
    logs = (count - 1) * np.log(factors / -math.expm1(-2 * rate))
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).mean()))
