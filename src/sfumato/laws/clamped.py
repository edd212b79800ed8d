"""A law whose outcomes are moved into an interval."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.checks import keep, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.laws.law import Law, as_floats, log_cdf, log_sf, smallest_radius

# Longer sums for the moments are taken on this many blocks, each by its middle.
_MOST_TERMS = 1 << 20


@dataclass(frozen=True, eq=False)
class Clamped:
    """A scalar law with outcomes below `lower` moved to it, and those above `upper` moved there.

    Guarantee:
        Post-processing: the clamped outcome costs no privacy beyond the law's. The ends carry their tails.
        Proof: docs/proofs/geometric.md.

    Args:
        law: a scalar law on the integers.
        lower: the smallest outcome, None for no limit.
        upper: the largest outcome, None for no limit.

    >>> from fractions import Fraction
    >>> from sfumato.laws import Geometric
    >>> law = Clamped(Geometric(Fraction(1)), 0, 2)
    >>> np.exp(law.logpmf(np.arange(4))).round(4).tolist()
    [0.6321, 0.2325, 0.1353, 0.0]
    """

    law: Law
    lower: int | None
    upper: int | None

    def __post_init__(self) -> None:
        keep(self, lower=end("lower", self.lower), upper=end("upper", self.upper))
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise InvalidParameter(
                f"lower must be at most upper, got lower={shown(self.lower)}, upper={shown(self.upper)}"
            )

    def logpmf(self, outcome: Any) -> Any:
        """The log probability; at an end, the log of the tail that was moved there."""
        values = np.asarray(self.law.logpmf(outcome))
        at = np.asarray(outcome)
        if self.lower is not None:
            values = np.where(at == self.lower, log_cdf(self.law, self.lower), values)
            values = np.where(at < self.lower, -np.inf, values)
        if self.upper is not None:
            all_of_it = 0.0 if self.upper == self.lower else log_sf(self.law, self.upper - 1)
            values = np.where(at == self.upper, all_of_it, values)
            values = np.where(at > self.upper, -np.inf, values)
        return float(values) if values.ndim == 0 else values

    def cdf(self, outcome: Any) -> Any:
        """P(X <= outcome)."""
        return self._tail(self.law.cdf, outcome, before=0.0, after=1.0)

    def sf(self, outcome: Any) -> Any:
        """P(X > outcome)."""
        return self._tail(self.law.sf, outcome, before=1.0, after=0.0)

    def _tail(self, tail: Callable[[Any], Any], outcome: Any, before: float, after: float) -> Any:
        values = np.asarray(tail(outcome))
        if self.lower is not None:
            values = np.where(np.asarray(outcome) < self.lower, before, values)
        if self.upper is not None:
            values = np.where(np.asarray(outcome) >= self.upper, after, values)
        return float(values) if values.ndim == 0 else values

    @property
    def mean(self) -> float:
        """The mean, to about 1e-9 of the standard deviation."""
        first, _ = self._moments
        return float(as_floats(self._median)) + first

    @property
    def variance(self) -> float:
        """The variance, to a relative error of about 1e-8 (1e-12 for scales below 2^12)."""
        first, second = self._moments
        return max(0.0, second - first * first)

    def radius(self, confidence: float) -> int:
        """The smallest t such that the outcome is within t of the median with this confidence."""
        centre = self._median
        return smallest_radius(
            lambda t: float(self.cdf(centre - t - 1)) + float(self.sf(centre + t)), confidence
        )

    def sample(self, bits: Bits, size: int | None = None) -> Any:
        """One outcome, or `size` independent ones."""
        drawn = self.law.sample(bits, size)
        if size is None:
            return self._clamp(drawn)
        ends = [end for end in (self.lower, self.upper) if end is not None]
        if drawn.dtype == object or any(not -(1 << 63) <= end < 1 << 63 for end in ends):
            return np.array([self._clamp(int(value)) for value in drawn], dtype=object)
        return np.clip(drawn, self.lower, self.upper) if ends else drawn

    def _clamp(self, value: int) -> int:
        value = value if self.lower is None else max(value, self.lower)
        return value if self.upper is None else min(value, self.upper)

    @cached_property
    def _median(self) -> int:
        low = high = self._clamp(round(self.law.mean))
        step = 1
        while low != self.lower and float(self.cdf(low)) >= 0.5:
            low, step = self._clamp(low - step), 2 * step
        step = 1
        while float(self.cdf(high)) < 0.5:
            high, step = self._clamp(high + step), 2 * step
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if float(self.cdf(middle)) >= 0.5 else (middle + 1, high)
        return low

    @cached_property
    def _moments(self) -> tuple[float, float]:
        # First and second moment of Y - m, for the median m: a reference inside the mass avoids cancellation.
        # E (Y - m)^+ is the sum of P(Y > m + i) over i >= 0, and the square has weights 2 i + 1.
        m = self._median
        up = _tail_moments(lambda i: self.sf(_away(m, i, 1)), None if self.upper is None else self.upper - m)
        down = _tail_moments(
            lambda i: self.cdf(_away(m - 1, i, -1)), None if self.lower is None else m - self.lower
        )
        return up[0] - down[0], up[1] + down[1]


def _away(start: int, steps: Integers, sign: int) -> Any:
    if abs(start) < 1 << 61:
        return start + sign * steps
    return np.array([start + sign * int(step) for step in steps], dtype=object)


def _tail_moments(tail: Callable[[Integers], Any], end: int | None) -> tuple[float, float]:
    last = 1
    while last < 1 << 60 and float(tail(np.array([last]))[0]) * last > 1e-20:
        last *= 2
    last = last if end is None else min(last, end)
    # Within a block a tail is smooth; its one or two middle terms stand for all, to second order.
    edges = np.linspace(0, last, min(last, _MOST_TERMS) + 1).astype(np.int64)
    lengths = np.diff(edges)
    first = second = 0.0
    for middle in (edges[:-1] + (lengths - 1) // 2, edges[:-1] + lengths // 2):
        terms = np.asarray(tail(middle), dtype=np.float64) * (lengths / 2)
        first += float(terms.sum())
        second += float((terms * (2.0 * middle + 1)).sum())
    return first, second


def end(name: str, value: object) -> int | None:
    """A limit of outcomes as a plain integer, or None for no limit."""
    return None if value is None else whole(name, value, least=-(2**1000), most=2**1000)
