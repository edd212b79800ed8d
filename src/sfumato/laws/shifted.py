"""Noise around a center: an integer of any size, or a vector of integers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits
from sfumato.laws.candidates import MAGNITUDE_LIMIT
from sfumato.laws.law import Law, as_floats, log_cdf, log_sf


@dataclass(frozen=True, eq=False)
class Shifted:
    """Independent noise added to an integer, or to each coordinate of an integer vector.

    Guarantee:
        Sums are exact: int64 where it cannot wrap, Python integers elsewhere. No integer center raises, so
        an error cannot reveal it.

    Args:
        noise: a scalar law on the integers.
        center: an int of any size, or a vector of integers.

    >>> from fractions import Fraction
    >>> from sfumato.laws import DiscreteLaplace, SystemBits
    >>> law = Shifted(DiscreteLaplace(Fraction(2)), 10**30)
    >>> law.mean, abs(law.sample(SystemBits()) - 10**30) < 2000
    (1e+30, True)
    >>> Shifted(DiscreteLaplace(Fraction(2)), np.arange(5)).sample(SystemBits()).shape
    (5,)
    """

    noise: Law
    center: Any

    def __post_init__(self) -> None:
        # The messages show no value: a center is made of data.
        if np.ndim(self.center) == 0:
            if isinstance(self.center, bool) or not isinstance(self.center, int | np.integer):
                raise InvalidParameter("center must be an integer or a vector of integers")
            object.__setattr__(self, "center", int(self.center))
            return
        vector = np.array(self.center)
        if vector.ndim != 1:
            raise InvalidParameter("center must be an integer or a vector of integers")
        vector = sum_of_integers(vector, np.int64(0))
        vector.flags.writeable = False
        object.__setattr__(self, "center", vector)

    def logpmf(self, outcome: Any) -> Any:
        """The log probability; for a vector center, summed over the last axis of the outcome."""
        each = self.noise.logpmf(self._noise_of(outcome))
        if isinstance(self.center, int):
            return each
        total = np.sum(each, axis=-1)
        return float(total) if np.ndim(total) == 0 else total

    def cdf(self, outcome: Any) -> Any:
        """P(X <= outcome), of each coordinate."""
        return self.noise.cdf(self._noise_of(outcome))

    def sf(self, outcome: Any) -> Any:
        """P(X > outcome), of each coordinate."""
        return self.noise.sf(self._noise_of(outcome))

    def logcdf(self, outcome: Any) -> Any:
        """log P(X <= outcome), of each coordinate."""
        return log_cdf(self.noise, self._noise_of(outcome))

    def logsf(self, outcome: Any) -> Any:
        """log P(X > outcome), of each coordinate."""
        return log_sf(self.noise, self._noise_of(outcome))

    @property
    def mean(self) -> Any:
        """The center plus the mean of the noise."""
        center = as_floats(self.center)
        return self.noise.mean + (float(center) if center.ndim == 0 else center)

    @property
    def variance(self) -> Any:
        """The variance of the noise, for each coordinate."""
        if isinstance(self.center, int):
            return self.noise.variance
        return np.full(self.center.shape, self.noise.variance)

    def radius(self, confidence: float) -> int:
        """The radius of the noise: around the center, for one coordinate."""
        return self.noise.radius(confidence)

    def sample(self, bits: Bits, size: int | None = None) -> Any:
        """One outcome, or `size` of them along the first axis."""
        if isinstance(self.center, int):
            if size is None:
                return self.center + self.noise.sample(bits)
            return sum_of_integers(self.noise.sample(bits, size), self.center)
        shape = self.center.shape if size is None else (size, *self.center.shape)
        noise = np.asarray(self.noise.sample(bits, math.prod(shape))).reshape(shape)
        return sum_of_integers(noise, self.center)

    def _noise_of(self, outcome: Any) -> Any:
        if isinstance(self.center, int) and isinstance(outcome, int) and not isinstance(outcome, bool):
            return outcome - self.center
        return sum_of_integers(outcome, -self.center)


def sum_of_integers(left: Any, right: Any) -> Any:
    """The sum of integers or arrays of them: int64 where it cannot wrap, Python integers elsewhere.

    Floats are refused.
    """
    left, right = np.asarray(left), np.asarray(right)
    if _is_small(left) and _is_small(right):
        return left.astype(np.int64) + right.astype(np.int64)
    as_floats(left)
    return np.asarray(left.astype(object) + right.astype(object))


def _is_small(array: Any) -> bool:
    if array.size == 0:
        return True
    if array.dtype.kind not in "iu":
        return False
    return max(-int(array.min()), int(array.max())) < MAGNITUDE_LIMIT
