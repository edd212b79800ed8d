"""From noisy counts to intervals: thresholds are passed one by one, from both ends, while counts are sure."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from sfumato.grid import Floats
from sfumato.laws.grades import MAX_PARTS
from sfumato.quantile_methods.noise_sums import CountNoise, rough_tail, sum_tail
from sfumato.quantile_methods.thresholds import Spot
from sfumato.query import Outcome

# A sampling error of a private number of values: parts of the failure for each side and for the number.
EACH_SIDE, NUMBER = 0.4, 0.2
# Such a number is rounded down to a power of this.
RATIO = 1.1


@dataclass(frozen=True)
class Counted:
    """Noisy counts of the cells between thresholds.

    A target is a rank where the number of values is public, and an order where it is private.

    Args:
        noise: what the counts have.
        thresholds: the cells before which values are counted, not decreasing.
        counts: one more than thresholds.
        size: the number of values where it is public.
        cells: how many cells there are.
    """

    noise: CountNoise
    thresholds: Outcome
    counts: Outcome
    size: int | None
    cells: int

    def target(self, order: Fraction) -> int | Fraction:
        """What the counts are compared with for a quantile of this order."""
        return order if self.size is None else math.ceil(order * self.size)

    def lower(self, target: int | Fraction, failure: float) -> int:
        """The last threshold that is not above the quantile, but for this failure.

        Errors are nested: if a threshold is above the quantile, so are all further ones. The first of these
        is passed by mistake with the probability of one test. Proof: docs/proofs/verified.md.
        """
        # All values are before the last edge, which is therefore never passed.
        most = bisect_left(self.thresholds, self.cells)
        passed = min(self._clear(target, failure, above=False), most)
        while passed < most:
            spot, excess = self._excess(passed, target)
            if not self._sure(spot, -excess, failure):
                break
            passed += 1
        return self.thresholds[passed - 1] if passed else 0

    def upper(self, target: int | Fraction, failure: float) -> int:
        """The first threshold that is above the quantile, but for this failure."""
        number = len(self.thresholds)
        # No value is before the first edge.
        most = number - bisect_right(self.thresholds, 0)
        passed = min(self._clear(target, failure, above=True), most)
        while passed < most:
            spot, excess = self._excess(number - 1 - passed, target)
            # Fewer values than a rank are at least one fewer; a negative integer is at most -1.
            spare = 1 if self.size is None else spot.unit
            if not self._sure(spot, excess + spare, failure):
                break
            passed += 1
        return self.thresholds[number - passed] if passed else self.cells

    @cached_property
    def _below(self) -> tuple[int, ...]:
        """The sum of all counts up to each threshold, and of all."""
        return tuple(accumulate(self.counts))

    def _excess(self, place: int, target: int | Fraction) -> tuple[Spot, int]:
        """How far the estimate of the values below a threshold is above the target, in units of weights."""
        spot = Spot.of(place, len(self.thresholds), None if self.size is not None else Fraction(target))
        left = self._below[place]
        weighted = spot.u * left - spot.v * (self._below[-1] - left)
        if self.size is not None:
            weighted += spot.v * self.size - spot.unit * int(target)
        return spot, weighted

    def offset(self, place: int, target: int | Fraction) -> float:
        """The estimated number of values below a threshold minus the target rank."""
        spot, excess = self._excess(place, target)
        return excess / spot.unit

    def _sure(self, spot: Spot, excess: int, failure: float) -> bool:
        """Whether noise alone is as large at most that often."""
        sides = (spot.u, spot.left), (spot.v, spot.right)
        return excess > 0 and excess > sum_tail(self.noise, *sides, failure)

    def _clear(self, target: int | Fraction, failure: float, *, above: bool) -> int:
        """How many thresholds from an end are so far from the target that a rough bound passes them."""
        order = None if self.size is not None else Fraction(target)
        rough, u, v = _rough(self.noise, len(self.thresholds), order, failure)
        left = np.array(self._below[:-1], dtype=np.float64)
        excess = u * left - v * (float(self._below[-1]) - left)
        if self.size is not None:
            excess += v * float(self.size) - (u + v) * float(target)
        # Far more than float64 rounds.
        margin = rough + 1 + 1e-9 * (u + v) * np.abs(left).max(initial=float(self.size or 0))
        passed = (excess > margin)[::-1] if above else -excess > margin
        return len(passed) if passed.all() else int(np.argmin(passed))


@lru_cache(maxsize=1024)
def _rough(
    noise: CountNoise, number: int, order: Fraction | None, failure: float
) -> tuple[Floats, Floats, Floats]:
    """For each threshold a bound on the noise of its test, and its weights."""
    spots = [Spot.of(place, number, order) for place in range(number)]
    tails = [rough_tail(noise, (spot.u, spot.left), (spot.v, spot.right), failure) for spot in spots]
    weights = np.array([(spot.u, spot.v) for spot in spots], dtype=np.float64).reshape(-1, 2).T
    return np.array(tails, dtype=np.float64), weights[0], weights[1]


def walked(counted: Counted, orders: Sequence[Fraction], failure: float) -> list[tuple[int, int]]:
    """For each order the cells between which the data's quantile lies: not before the first, and before the
    second. Each side fails with half of the failure."""
    targets = [counted.target(order) for order in orders]
    return _in_order([(counted.lower(t, failure / 2), counted.upper(t, failure / 2)) for t in targets])


def walked_population(counted: Counted, orders: Sequence[Fraction], failure: float) -> list[tuple[int, int]]:
    """The same for the population's quantiles: counts fail with this failure, and the sample with as much.

    Thresholds follow the sample, so that counts below them are not binomial. The sample's own quantiles at
    ranks that are chosen before are, and these are verified.
    """
    around = _ranks_around if counted.size is not None else _orders_around
    found = []
    for order in orders:
        below, above = around(counted, order, failure)
        low = min((counted.lower(target, failure / 2) for target in below), default=0)
        high = max((counted.upper(target, failure / 2) for target in above), default=counted.cells)
        found.append((low, high))
    return _in_order(found)


Targets = tuple[Sequence[int | Fraction], Sequence[int | Fraction]]


def _ranks_around(counted: Counted, order: Fraction, failure: float) -> Targets:
    """Ranks of the sample between which the population's quantile lies; none where there is none."""
    from scipy.special import bdtr, bdtrc

    size, p = counted.size or 0, float(order)
    # The largest r with P(Bin(n, p) < r) <= failure / 2; the smallest with P(Bin(n, p) >= r) at most that.
    below = _last(lambda rank: rank == 0 or bdtr(rank - 1, size, p) <= failure / 2, size)
    above = _last(lambda rank: rank == 0 or bdtrc(rank - 1, size, p) > failure / 2, size) + 1
    return [below] if below else [], [above] if above <= size else []


def _orders_around(counted: Counted, order: Fraction, failure: float) -> Targets:
    """Orders of the sample between which the population's quantile lies, for every number of values that the
    noisy counts leave possible.

    The order must not follow the noise of the counts that test it. So it is one of a public list, by the
    number of values rounded down, and what holds for all that are possible is taken.
    """
    every, total = ((1, len(counted.counts)), (1, 0)), sum(counted.counts)
    off = sum_tail(counted.noise, *every, NUMBER / 2 * failure)
    if total - off < 1:
        return [], []
    # Sizes 1.1**k, rounded down: there are two or three unless the number is small.
    first, last = (math.floor(math.log(size) / math.log(RATIO)) for size in (total - off, total + off))
    below: list[int | Fraction] = []
    above: list[int | Fraction] = []
    for power in range(first, last + 1):
        size = max(RATIO**power * (1 - 1e-9), 1)
        away = math.sqrt(math.log(1 / (EACH_SIDE * failure)) / (2 * size))
        below.append(Fraction(math.floor((float(order) - away) * MAX_PARTS), MAX_PARTS))
        above.append(Fraction(math.ceil((float(order) + away) * MAX_PARTS), MAX_PARTS))
    # The smallest number leaves nothing to test: neither do the others then.
    return below if below[0] > 0 else [], above if above[0] < 1 else []


def _last(holds: Callable[[int], bool], most: int) -> int:
    """The last number up to `most` for which something holds that holds for 0 and ceases to hold once."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _in_order(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ends that do not decrease with the order, made so by wider intervals alone."""
    lows = [min(pair) for pair in found]
    highs = [max(pair) for pair in found]
    return list(zip([*accumulate(lows[::-1], min)][::-1], accumulate(highs, max), strict=True))
