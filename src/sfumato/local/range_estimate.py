"""Mean, variance and quantiles of numbers that were told through ranges, for any distribution of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.checks import Number, boolean, inside
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.local.cost import exact_number
from sfumato.local.design import Floats
from sfumato.local.intervals import deviate, exact_limits
from sfumato.local.planning import supports
from sfumato.local.ranges import Ranges
from sfumato.local.shares import ShareEstimate
from sfumato.local.table import Figure, Reported, check_confidence
from sfumato.local.tally import Tally

# What an interval of a quantile assumes unless it is guarded, and the value of a variance always does.
EVEN = "assumes that numbers are spread evenly within a step"


@dataclass(frozen=True, repr=False)
class RangeEstimate(Reported):
    r"""The distribution of a number that was told through ranges: mean, variance, quantiles and shares.

    Guarantee:
        With dither the mean is unbiased for numbers inside the bounds. Intervals are for the population, for
        any distribution of the numbers. For direct answers those of quantiles hold at least as often as
        promised; all others are normal ones, which hold about as often for many answers. Post-processing
        costs nothing. Proof: docs/proofs/randomised-response.md.

    Args:
        design: the ranges; mean and variance need dither.
        tally: the counts of the answers.

    References:
        [Wang17] for the shares.

    >>> design = Ranges.of_epsilon(bounds=(0, 4), epsilon=3, steps=2)
    >>> found = RangeEstimate(design, Tally(counts=[300, 400, 300], size=1000))
    >>> round(found.mean().value, 4), round(found.quantile(0.5).value, 4)
    (2.0, 2.0)
    """

    design: Ranges
    tally: Tally

    def __post_init__(self) -> None:
        self.tally.checked(self.design)
        if not isinstance(self.design, Ranges):
            raise InvalidParameter(f"design must be Ranges, got {type(self.design).__name__}")
        supports(self.design)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The counts behind it."""
        return (self.tally,)

    @property
    def shares(self) -> ShareEstimate:
        """The shares of the places of the scale."""
        return ShareEstimate(self.design.encoding, self.tally)

    # All is computed in units of the whole range, whose square a float can hold whatever the bounds are.

    @cached_property
    def _units(self) -> Floats:
        return np.linspace(0.0, 1.0, self.design.steps + 1)

    @property
    def _bounds(self) -> tuple[float, float]:
        return float(self.design.lower), float(self.design.upper)

    @property
    def _width(self) -> float:
        return float(self.design.upper - self.design.lower)

    def _placed(self, unit: float) -> float:
        low, high = self._bounds
        return min(max(low + self._width * unit, low), high) if 0 <= unit <= 1 else low + self._width * unit

    @cached_property
    def _adjusted(self) -> Floats:
        # Shares of unary answers need not add up to one, though the truth does: the excess is shared out,
        # which is linear, keeps them unbiased and takes noise away. Direct answers have no excess.
        raw = self.shares.raw_shares
        adjusted: Floats = raw - (raw.sum() - 1) / len(raw)
        return adjusted

    @cached_property
    def _covariance(self) -> Floats:
        return self.shares.covariance()

    def _spread(self, weights: Floats) -> Floats:
        """The variances of estimated means of functions of the place, one in each row."""
        centred = weights - weights.mean(axis=-1, keepdims=True)
        variances = ((centred @ self._covariance) * centred).sum(axis=-1)
        if self.design.exclusive:
            least = 0.0
        else:
            # Bits are independent given the truth, and each has one of two variances: no less than that.
            true, false, gap = supports(self.design)
            bit = min(true * (1 - true), false * (1 - false))
            least = bit / (self.tally.size * gap * gap) * (centred**2).sum(axis=-1)
        result: Floats = np.maximum(variances, least)
        return result

    def _needs_dither(self, what: str) -> None:
        if not self.design.dither:
            raise NotSupported(
                f"bins do not tell where in a bin a number lies: for a {what} take dither=True"
            )

    def mean(self, confidence: float = 0.95) -> Figure:
        """The mean, with a normal interval cut to the bounds; for a mean alone take few steps."""
        self._needs_dither("mean")
        z = deviate(check_confidence(confidence))
        if not self.tally.size:
            return Figure("mean", math.nan, math.nan, *self._bounds, float(confidence))
        unit = float(self._units @ self._adjusted)
        reach = math.sqrt(float(self._spread(self._units[None])[0]))
        ends = (self._placed(unit - z * reach), self._placed(unit + z * reach))
        return _figure("mean", self._placed(unit), self._width * reach, ends, self._bounds, confidence)

    def variance(self, confidence: float = 0.95) -> Figure:
        """The variance; its interval allows for all that rounding to the scale can have added.

        Rounding at random adds between nothing and a quarter of a squared step, by where in their steps the
        numbers lie, which answers do not tell. The interval is widened by all of that. The value is corrected
        by a sixth, which is right for numbers that are spread evenly within a step.
        """
        self._needs_dither("variance")
        z = deviate(check_confidence(confidence))
        most = (self._width / 2) ** 2
        if not self.tally.size:
            return Figure("variance", math.nan, math.nan, 0.0, most, float(confidence))
        mean = float(self._units @ self._adjusted)
        squares = (self._units - mean) ** 2
        of_mean, of_squares = (float(v) for v in self._spread(np.stack([self._units, squares])))
        # The squares are around the estimated mean, which lies nearer to these answers than the true one
        # does: their mean is too small by the variance of that estimate.
        rounded = float(squares @ self._adjusted) + of_mean
        reach = math.sqrt(of_squares + 2 * of_mean**2)
        square, step = self._width**2, 1 / self.design.steps**2
        ends = (square * (rounded - z * reach - step / 4), square * (rounded + z * reach))
        value = square * (rounded - step / 6)
        return _figure("variance", value, square * reach, ends, (0.0, most), confidence, f"the value {EVEN}")

    @cached_property
    def _knots(self) -> Floats:
        """Where the running sums of shares are read: ends of ranges, or middles of steps with dither.

        The chance that a number is rounded to point j or below is the average of its distribution function
        over the step above point j.
        """
        middles: Floats = (self._units[1:] + self._units[:-1]) / 2
        return middles if self.design.dither else self._units[1:-1]

    @property
    def _running(self) -> Floats:
        """The unbiased shares at or below each knot."""
        return np.cumsum(self._adjusted)[: len(self._knots)]

    def _band(self, failure: float) -> tuple[Floats, Floats]:
        """Where the distribution function lies at each knot, each with its own confidence."""
        if failure not in self._bands:
            self._bands[failure] = self._new_band(failure)
        return self._bands[failure]

    @cached_property
    def _bands(self) -> dict[float, tuple[Floats, Floats]]:
        # Several quantiles of one estimate read the same band.
        return {}

    def _new_band(self, failure: float) -> tuple[Floats, Floats]:
        size, count = self.tally.size, len(self._knots)
        if self.design.exclusive:
            _, false, gap = supports(self.design)
            sums = np.cumsum(self.tally.counts)[:count].astype(np.float64)
            shift = false * np.arange(1, count + 1)
            low, high = ((end - shift) / gap for end in exact_limits(sums, size, failure))
        else:
            reach = deviate(failure) * np.sqrt(self._spread(np.tri(count, count + 1)))
            low, high = self._running - reach, self._running + reach
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)

    def quantile(self, order: Number, confidence: float = 0.95, *, smooth: bool = False) -> Figure:
        """One quantile, with the interval of the points at which a band around the shares holds the order.

        The value reads the shares as if numbers were spread evenly within a step. The interval does not,
        unless asked to; its standard error is that of a normal interval of its width.

        Args:
            order: the order, inside (0, 1); 0.5 for the median.
            confidence: how often the interval holds the truth.
            smooth: False for an interval that ends at points of the scale and holds for any numbers. True for
                a narrower one, which assumes that numbers are spread evenly within a step; for rounded or
                heaped numbers it can miss almost always.
        """
        share = float(inside("order", exact_number("order", order)))
        label = f"quantile {share:g}" if share != 0.5 else "median"
        failure = check_confidence(confidence)
        invert, note = (self._even, EVEN) if boolean("smooth", smooth) else (self._guarded, "")
        if not self.tally.size:
            return Figure(label, math.nan, math.nan, *self._bounds, float(confidence), note=note)
        knots = np.concatenate([[0.0], self._knots, [1.0]])
        # Running sums that fall are noise: midway between the running maximum and the coming minimum they
        # do not, at less bias than sums of shares that were made positive one by one.
        sums = np.clip(self._running, 0.0, 1.0)
        rising = (np.maximum.accumulate(sums) + np.minimum.accumulate(sums[::-1])[::-1]) / 2
        value = self._placed(float(np.interp(share, np.concatenate([[0.0], rising, [1.0]]), knots)))
        low, high = (self._placed(end) for end in invert(share, *self._band(failure)))
        error = (high - low) / (2 * deviate(failure)) if failure < 1 else 0.0
        return _figure(label, value, error, (low, high), self._bounds, confidence, note)

    def _even(self, share: float, low: Floats, high: Floats) -> tuple[float, float]:
        knots = np.concatenate([[0.0], self._knots, [1.0]])
        # A distribution function does not fall, so neither needs its band.
        low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
        # At a bound there may be any mass, because numbers were clamped to it.
        above = np.concatenate([[high[0]], high, [1.0]])
        below = np.concatenate([[0.0], low, [low[-1]]])
        ends = _crossing(knots, above, share), _crossing(-knots[::-1], -below[::-1], -share) * -1
        return min(ends), max(ends)

    def _guarded(self, share: float, low: Floats, high: Floats) -> tuple[float, float]:
        # With dither a running sum is an average over a step, so it bounds the function at both its ends.
        half = 0.5 / self.design.steps if self.design.dither else 0.0
        # Knots are ruled out from either bound inwards, up to the first that is not: then each end is wrong
        # only if one knot, the nearest to the quantile on its far side, is ruled out wrongly.
        below = int(np.argmin(np.append(high < share, False)))
        above = int(np.argmin(np.append(low[::-1] >= share, False)))
        least = float(self._knots[below - 1]) - half if below else 0.0
        return least, float(self._knots[-above]) + half if above else 1.0

    def quantiles(
        self, orders: Sequence[Number], confidence: float = 0.95, *, smooth: bool = False
    ) -> tuple[Figure, ...]:
        """Several quantiles, each with its own interval."""
        return tuple(self.quantile(order, confidence, smooth=smooth) for order in orders)

    def figures(self, confidence: float = 0.95) -> tuple[Figure, ...]:
        """The mean and the variance, which need dither, and the quartiles."""
        moments = (self.mean(confidence), self.variance(confidence)) if self.design.dither else ()
        return (*moments, *self.quantiles([0.25, 0.5, 0.75], confidence))


def _crossing(points: Floats, heights: Floats, level: float) -> float:
    """The first point at which a line through non-decreasing heights is at or above a level."""
    if heights[0] >= level:
        return float(points[0])
    over = np.flatnonzero(heights >= level)
    if not over.size:
        return float(points[-1])
    i = int(over[0])
    part = (level - heights[i - 1]) / (heights[i] - heights[i - 1])
    return float(points[i - 1] + part * (points[i] - points[i - 1]))


def _figure(
    label: str,
    value: float,
    error: float,
    ends: tuple[float, float],
    limits: tuple[float, float],
    confidence: float,
    note: str = "",
) -> Figure:
    low, high = (min(max(end, limits[0]), limits[1]) for end in ends)
    return Figure(label, value, error, low, high, float(confidence), limits, note)
