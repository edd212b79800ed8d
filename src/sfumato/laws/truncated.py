"""The Laplace law cut to an interval of integers and scaled up again, with an exact sampler."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import exact, keep, positive, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.laws.coins import Bounds, Uniform, exp_bounds, exp_coin
from sfumato.laws.geometric import Geometric
from sfumato.laws.law import Floats, elementwise, nearest_float, smallest_radius

# Sums of indices and of offsets stay exact in int64 and, as differences, in float64.
MOST_POINTS = 1 << 50
# So that the rate is a normal float64.
WIDEST = 1 << 1000
# A float probability errs by far less; what is nearer to a threshold is decided by integers.
_MARGIN = 2.0**-40
# Moments: e^-60 of a tail is left out, and longer tails are summed in so many blocks.
_FAR, _BLOCKS = 60, 1 << 16


@dataclass(frozen=True)
class _Tail:
    """`size` points, the first `gap` beyond the flat part: weights e^(-rate (gap + j)), j = 0, 1, ..."""

    size: int
    gap: Fraction


@dataclass(frozen=True, eq=False)
class TruncatedLaplace:
    r"""The law on low..high with weights e^(-max(|k - center| - flat, 0) / scale), for any rational center.

    Truncated is not clamped: what would fall outside is spread over the whole interval, so that the
    normaliser depends on the center. That costs privacy: see `accuracy.truncated_laplace_level`.

    Guarantee:
        `sample` draws exactly this law, given uniform bits: the side is chosen by a coin whose probability
        is known to any number of bits, and a point of it by exact coins. Memory and time do not grow with
        the number of points. Proof: docs/proofs/inverse-sensitivity.md.

    Args:
        center: a rational in [low, high].
        scale: positive and at most 2^1000, read exactly.
        low, high: the ends, at most 2^50 apart.
        flat: how far from the center all points weigh the same; not negative.

    >>> law = TruncatedLaplace(center=Fraction(1), scale=Fraction(2), low=0, high=3)
    >>> [round(math.exp(law.logpmf(k)), 4) for k in range(4)]
    [0.235, 0.3875, 0.235, 0.1425]
    """

    center: Fraction
    scale: Fraction
    low: int
    high: int
    flat: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        keep(self, low=whole("low", self.low, least=-MOST_POINTS, most=MOST_POINTS))
        keep(self, high=whole("high", self.high, least=self.low, most=self.low + MOST_POINTS))
        keep(self, scale=positive("scale", self.scale))
        center, flat = exact("center", self.center), exact("flat", self.flat)
        if self.scale > WIDEST:
            raise InvalidParameter(f"scale must be at most 2^1000, got scale={shown(self.scale)}")
        if not self.low <= center <= self.high:
            raise InvalidParameter(f"center must be in [{self.low}, {self.high}], got center={shown(center)}")
        if flat < 0:
            raise InvalidParameter(f"flat must not be negative, got flat={shown(self.flat)}")
        keep(self, center=center, flat=flat)

    @property
    def count(self) -> int:
        """The number of outcomes."""
        return self.high - self.low + 1

    def outcomes(self) -> range:
        """Every outcome, for audits."""
        return range(self.low, self.high + 1)

    @cached_property
    def _middle(self) -> tuple[int, int]:
        """The first point at or above the flat part's left end, and the first above its right end."""
        first = max(math.ceil(self.center - self.flat), self.low)
        return first, min(math.floor(self.center + self.flat), self.high) + 1

    @cached_property
    def _left(self) -> _Tail:
        last = math.ceil(self.center - self.flat) - 1
        return _Tail(max(last - self.low + 1, 0), self.center - self.flat - last)

    @cached_property
    def _right(self) -> _Tail:
        first = math.floor(self.center + self.flat) + 1
        return _Tail(max(self.high - first + 1, 0), first - self.center - self.flat)

    @property
    def _inner(self) -> int:
        return self._middle[1] - self._middle[0]

    @cached_property
    def _lift(self) -> Fraction:
        """The distance of the nearest point from the flat part: weights are divided by that point's."""
        if self._inner:
            return Fraction(0)
        return min(tail.gap for tail in (self._left, self._right) if tail.size)

    @cached_property
    def _rate(self) -> float:
        return nearest_float(1 / self.scale)

    # --- probabilities --------------------------------------------------------------------------

    def _mass(self, tail: _Tail) -> float:
        """The weight of a tail, lifted, in units of a point of weight 1."""
        if not tail.size:
            return 0.0
        return math.exp(-self._rate * float(tail.gap - self._lift)) * _series(self._rate, tail.size)

    @cached_property
    def _total(self) -> float:
        return self._inner + self._mass(self._left) + self._mass(self._right)

    @elementwise
    def logpmf(self, outcome: Floats) -> Floats:
        """The log probability of each outcome."""
        start, end = self._middle
        below = np.where(outcome < start, start - 1 - outcome + float(self._left.gap), -np.inf)
        above = np.where(outcome >= end, outcome - end + float(self._right.gap), -np.inf)
        away = np.maximum(np.maximum(below, above), 0.0) - float(self._lift)
        inside = (outcome >= self.low) & (outcome <= self.high)
        return np.where(inside, -self._rate * away - math.log(self._total), -np.inf)

    @elementwise
    def cdf(self, outcome: Floats) -> Floats:
        """P(X <= outcome)."""
        start, end = self._middle
        inner = self._mass(self._left) + np.clip(outcome - start + 1, 0, self._inner)
        nearer = np.where(outcome < end, inner / self._total, 1 - self._beyond(self._right, outcome - end))
        below = self._beyond(self._left, start - 2 - outcome)
        return np.where(outcome >= self.high, 1.0, np.where(outcome < start, below, nearer))

    @elementwise
    def sf(self, outcome: Floats) -> Floats:
        """P(X > outcome)."""
        start, end = self._middle
        inner = self._mass(self._right) + np.clip(end - 1 - outcome, 0, self._inner)
        nearer = np.where(
            outcome >= start - 1, inner / self._total, 1 - self._beyond(self._left, start - 2 - outcome)
        )
        above = self._beyond(self._right, outcome - end)
        return np.where(outcome < self.low, 1.0, np.where(outcome >= end - 1, above, nearer))

    def _beyond(self, tail: _Tail, last: Floats) -> Floats:
        """The probability of the points j > last of a tail; for last = -1 all of it."""
        if not tail.size:
            return np.zeros_like(last)
        first = np.clip(last + 1, 0, tail.size)
        start = -self._rate * (float(tail.gap - self._lift) + first)
        ends = np.expm1(-self._rate * (tail.size - first)) / np.expm1(-self._rate)
        return np.asarray(np.exp(start) * ends / self._total)

    @property
    def mean(self) -> float:
        """The expectation."""
        return float(self.center) + self._moments[0]

    @property
    def variance(self) -> float:
        """The variance."""
        return self._moments[1] - self._moments[0] ** 2

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """The first two moments around the center."""
        start, _ = self._middle
        middle = float(start - self.center) + (self._inner - 1) / 2
        first = self._inner * middle
        second = self._inner * (middle**2 + (self._inner**2 - 1) / 12)
        for tail, side in ((self._left, -1), (self._right, 1)):
            if tail.size:
                places, shares, spreads = self._blocks(tail.size)
                away = float(self.flat + tail.gap) + places
                first += side * self._mass(tail) * float(shares @ away)
                second += self._mass(tail) * float(shares @ (away**2 + spreads))
        return first / self._total, second / self._total

    def _blocks(self, size: int) -> tuple[Floats, Floats, Floats]:
        """Where the points of a tail lie, which share of it is there, and how far spread: block by block."""
        reach = min(float(size), math.ceil(_FAR / self._rate) if self._rate > _FAR / size else size)
        edges = np.unique(np.linspace(0, reach, int(min(reach, _BLOCKS)) + 1).astype(np.int64))
        lengths = np.diff(edges).astype(np.float64)
        shares = np.exp(-self._rate * edges[:-1]) * np.expm1(-self._rate * lengths)
        # Within a block the weights fall a little, which moves its middle to the left.
        middles = edges[:-1] + (lengths - 1) / 2 - self._rate * (lengths**2 - 1) / 12
        whole_tail = math.expm1(-self._rate * size)
        return middles, shares / whole_tail, (lengths**2 - 1) / 12

    def radius(self, confidence: float) -> int:
        """The smallest t such that the outcome is within t of the rounded center with this confidence."""
        centre = round(self.center)
        return smallest_radius(
            lambda t: float(self.cdf(centre - t - 1)) + float(self.sf(centre + t)), confidence
        )

    # --- draws ----------------------------------------------------------------------------------

    def sample(self, bits: Bits, size: int | None = None) -> int | Integers:
        """One outcome as an int, or `size` independent ones as an int64 array."""
        parts = self._parts(bits, 1 if size is None else whole("size", size, least=0, most=2**40))
        start, end = self._middle
        drawn = np.empty(len(parts), dtype=np.int64)
        for part, tail in ((0, self._left), (1, None), (2, self._right)):
            chosen = parts == part
            number = int(np.count_nonzero(chosen))
            if not number:
                continue
            if tail is None:
                drawn[chosen] = start + bits.below_each(self._inner, number)
            else:
                steps = self._steps(tail.size, bits, number)
                drawn[chosen] = start - 1 - steps if part == 0 else end + steps
        return int(drawn[0]) if size is None else drawn

    def _parts(self, bits: Bits, count: int) -> Integers:
        """Whether each draw is left of the flat part, in it or to its right: 0, 1 or 2."""
        words = bits.words(count)
        spots = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        edges = [self._mass(self._left) / self._total]
        edges.append(edges[0] + self._inner / self._total)
        parts: Integers = (spots >= edges[0]).astype(np.int64) + (spots >= edges[1])
        near = np.abs(spots - edges[0]) <= _MARGIN
        near |= np.abs(spots - edges[1]) <= _MARGIN
        for place in np.flatnonzero(near):
            uniform = Uniform(bits, int(words[place]), 64)
            parts[place] = 2 - sum(uniform.below(self._edge(part)) for part in (0, 1))
        return parts

    def _edge(self, last: int) -> Bounds:
        """Bounds of the probability of the parts 0..last, by integer arithmetic alone."""

        def bounds(precision: int) -> tuple[int, int]:
            width = precision + 64 + max((math.ceil(self.scale)).bit_length(), 1)
            masses = [self._mass_bounds(part, width) for part in range(3)]
            low = [sum(mass[end] for mass in masses[: last + 1]) for end in (0, 1)]
            rest = [sum(mass[end] for mass in masses[last + 1 :]) for end in (0, 1)]
            least = (low[0] << precision) // (low[0] + rest[1]) if low[0] else 0
            most = -((-low[1] << precision) // (low[1] + rest[0])) if low[1] else 0
            return least, most

        return bounds

    def _mass_bounds(self, part: int, width: int) -> tuple[int, int]:
        """The weight of a part times 1 - e^(-1/scale), times 2^width, from below and from above."""
        one, rate = 1 << width, 1 / self.scale
        if part == 1:
            least, most = exp_bounds(rate, width)
            return self._inner * (one - most), self._inner * (one - least)
        tail = self._left if part == 0 else self._right
        if not tail.size:
            return 0, 0
        near, far = (
            exp_bounds(rate * (tail.gap - self._lift), width),
            exp_bounds(rate * (tail.gap - self._lift + tail.size), width),
        )
        return max(near[0] - far[1], 0), near[1] - far[0]

    def _steps(self, size: int, bits: Bits, count: int) -> Integers:
        """Draws from 0..size-1 with weights e^(-j / scale)."""
        drawn = np.zeros(count, dtype=np.int64)
        waiting = np.arange(count if size > 1 else 0)
        # Both proposals are accepted with a chance of at least 1/4, whatever the scale.
        short = size <= self.scale
        while waiting.size:
            found = bits.below_each(size, waiting.size) if short else self._geometric(bits, waiting.size)
            kept = self._heads(found, bits) if short else found < size
            drawn[waiting[kept]] = found[kept]
            waiting = waiting[~kept]
        return drawn

    def _geometric(self, bits: Bits, count: int) -> Integers:
        found: Any = Geometric(self.scale).sample(bits, count)
        return np.asarray(found, dtype=np.int64)

    def _heads(self, steps: Integers, bits: Bits) -> NDArray[np.bool_]:
        """Coins of probability e^(-step / scale), one for each step."""
        words = bits.words(len(steps))
        away = np.exp(-self._rate * steps) - (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        heads: NDArray[np.bool_] = away > 0
        for place in np.flatnonzero(np.abs(away) <= _MARGIN):
            coin = exp_coin(int(steps[place]) / self.scale)
            heads[place] = Uniform(bits, int(words[place]), 64).below(coin)
        return heads


def _series(rate: float, size: int) -> float:
    """1 + e^-rate + ... + e^(-rate (size - 1))."""
    return math.expm1(-rate * size) / math.expm1(-rate)
