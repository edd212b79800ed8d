"""Independent parts, and the law of a constant."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws.bits import Bits
from sfumato.laws.law import Law


@dataclass(frozen=True)
class Joint:
    """Independent parts, drawn one after the other; an outcome is a tuple.

    Guarantee:
        `sample` draws each part exactly and independently of the others, so that the probability of a tuple
        is the product that `logpmf` states.

    >>> from sfumato.laws import SystemBits
    >>> law = Joint((Point(1), Point(2)))
    >>> law.sample(SystemBits()), law.logpmf((1, 2)), law.mean
    ((1, 2), 0.0, (1.0, 2.0))
    """

    parts: tuple[Law, ...]

    def logpmf(self, outcome: Any) -> Any:
        """The sum of the log probabilities of the parts."""
        return sum((part.logpmf(value) for part, value in self._pairs(outcome)), start=0.0)

    def cdf(self, outcome: Any) -> Any:
        """The probability that every part is at most its value."""
        return math.prod(part.cdf(value) for part, value in self._pairs(outcome))

    def sf(self, outcome: Any) -> Any:
        """The probability that every part is above its value; not one minus `cdf`."""
        return math.prod(part.sf(value) for part, value in self._pairs(outcome))

    @property
    def mean(self) -> tuple[Any, ...]:
        """The means of the parts."""
        return tuple(part.mean for part in self.parts)

    @property
    def variance(self) -> tuple[Any, ...]:
        """The variances of the parts."""
        return tuple(part.variance for part in self.parts)

    def radius(self, confidence: float) -> int:
        """Not defined: each part has its own."""
        raise NotSupported("a joint law has no single radius; ask its parts")

    def sample(self, bits: Bits, size: int | None = None) -> tuple[Any, ...]:
        """One tuple, or a tuple with the `size` draws of each part."""
        return tuple(part.sample(bits, size) for part in self.parts)

    def _pairs(self, outcome: Any) -> Any:
        if len(outcome) != len(self.parts):
            raise InvalidParameter(f"outcome must have {len(self.parts)} parts, got {len(outcome)}")
        return zip(self.parts, outcome, strict=True)


@dataclass(frozen=True)
class Point:
    """The law that always gives one value: an answer that is public, or exact for free.

    Guarantee:
        Draws no bits and adds no noise: private only where the value is the same for all neighbours.

    >>> from sfumato.laws import SystemBits
    >>> Point(3).sample(SystemBits()), Point(3).logpmf(4)
    (3, -inf)
    """

    value: Any

    def logpmf(self, outcome: Any) -> Any:
        """Zero at the value, minus infinity elsewhere."""
        return _plain(np.where(np.asarray(outcome) == self.value, 0.0, -np.inf))

    def cdf(self, outcome: Any) -> Any:
        """One from the value on, zero before."""
        return _plain(np.where(np.asarray(outcome) >= self.value, 1.0, 0.0))

    def sf(self, outcome: Any) -> Any:
        """Zero from the value on, one before."""
        return _plain(np.where(np.asarray(outcome) >= self.value, 0.0, 1.0))

    @property
    def mean(self) -> float:
        """The value."""
        return float(self.value)

    @property
    def variance(self) -> float:
        """Zero."""
        return 0.0

    def radius(self, confidence: float) -> int:
        """Zero."""
        return 0

    def sample(self, bits: Bits, size: int | None = None) -> Any:
        """The value; draws no bits."""
        return self.value if size is None else np.full(size, self.value)


def _plain(values: Any) -> Any:
    return float(values) if values.ndim == 0 else values
