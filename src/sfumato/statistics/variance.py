"""The variance of a bounded column."""

import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import ClassVar

from sfumato.accuracy.sampling import variance_bounds
from sfumato.checks import checked_confidence
from sfumato.data.column import Column
from sfumato.data.counts import Sums
from sfumato.grid import Lattice
from sfumato.laws import Joint, Law
from sfumato.mechanisms import Additive, GaussianMechanism, LaplaceMechanism, Sensitivity
from sfumato.privacy import Event, PureEvent
from sfumato.query import Interval, Outcome
from sfumato.statistics.statistic import dominated, resolution
from sfumato.statistics.sum import Bounded

Ranges = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Variance(Bounded):
    r"""The variance of a column (the mean squared distance to the mean), each value clamped to the bounds.

    Guarantee:
        Exactly the cost stated. With j the lattice point of a record, centred, in [-M, M]:
        if the number of values is public, the sums of j and of j² get noise of scale 9/4 M/ε and 9/4 M²/ε,
        and the two together cost ε, not the sum of their separate costs. If it is private, the three sums of
        (M-j)², 2(M²-j²) and (M+j)² are released: they are non-negative and add up to 4M² for every record,
        so that the budget is not split. Proof: docs/proofs/variance.md.

    >>> from sfumato.privacy import PureDP
    >>> query = Variance(budget=PureDP(1), neighbours="substitution", nulls="lower", bounds=(0, 1))
    >>> query.error(10_000, 0.95) < 0.002
    True
    """

    name: ClassVar[str] = "variance"
    not_of_dates: ClassVar[str] = "its variance would be in squared days or seconds; use quantiles"
    sized: ClassVar[bool] = True

    @cached_property
    def lattice(self) -> Lattice:
        """Points around the middle of the bounds, few enough for their squares to be added exactly."""
        points = isqrt(resolution(self.budget, bits=34, range_bits=34, changes=self.changed_rows))
        return Lattice.over(
            self.lower, self.upper, points=max(points, 4), origin=(self.lower + self.upper) / 2
        )

    @cached_property
    def mechanism(self) -> Additive:
        """The noise on each sum; with a public size, on the sums of s and s² in steps of 1/M or coarser."""
        if self.size_is_public:
            # For s in [-1, 1] the sums of s and s² move by at most 9/4 in L1 and 2 in L2. The lattice for
            # which noise is calibrated is no finer than that of either sum.
            fourth = self._fourth
            return self.noise_on(
                Sensitivity(l1=9 * fourth, l2_squared=(8 * fourth) ** 2, coordinates=2, one_vector=False)
            )
        whole = 4 * self._reach**2
        if not self.substitution:
            sensitivity = Sensitivity(l1=whole, l2_squared=whole**2, coordinates=3)
        else:
            sensitivity = Sensitivity(l1=2 * whole, l2_squared=2 * whole**2, coordinates=3)
        return self.noise_on(sensitivity)

    @cached_property
    def parts(self) -> tuple[Additive, ...]:
        """The mechanism of each sum that is released."""
        if not self.size_is_public:
            return (self.mechanism,) * 3
        reach = self._reach
        if isinstance(self.mechanism, LaplaceMechanism):
            scale = self.mechanism.scale / (4 * self._fourth)
            return tuple(LaplaceMechanism(sensitivity=1, scale=scale * unit) for unit in (reach, reach**2))
        variance = self.mechanism.sigma_squared / (4 * self._fourth) ** 2
        return tuple(
            GaussianMechanism(sensitivity_squared=1, sigma_squared=variance * unit**2, coordinates=1)
            for unit in (reach, reach**2)
        )

    @property
    def event(self) -> Event:
        """What a release costs."""
        if self.size_is_public and isinstance(self.mechanism, LaplaceMechanism):
            return PureEvent(epsilon=self.mechanism.event.pure_epsilon, name="variance")
        return self.mechanism.event

    @property
    def described(self) -> str:
        """The mechanism in words."""
        sums = (
            "the sums of values and of squares"
            if self.size_is_public
            else "three complementary sums of squares"
        )
        noise = "Laplace" if isinstance(self.mechanism, LaplaceMechanism) else "Gaussian"
        return f"discrete {noise} noise on {sums}"

    def check(self, column: Column) -> None:
        """Refuse a column that does not store numbers, or that is publicly empty."""
        super().check(column)
        self.refuse_no_rows()

    def look(self, column: Column) -> Sums:
        """The exact integer sums of values and squares."""
        return Sums.of(column, self.lattice, nulls=self.null_rule, squares=True)

    def law(self, view: Sums) -> Law:
        """The law of the noisy sums."""
        if self.size_is_public:
            sums = [view.first, view.second]
        else:
            reach = self._reach
            ends = reach**2 * view.size + view.second
            middle = 2 * (reach**2 * view.size - view.second)
            sums = [ends - 2 * reach * view.first, middle, ends + 2 * reach * view.first]
        return Joint(tuple(part.law(value) for part, value in zip(self.parts, sums, strict=True)))

    @property
    def parts_drawn(self) -> int:
        """The sums of values and squares, or three complementary sums."""
        return len(self.parts)

    def value(self, outcome: Outcome) -> float:
        """The released variance, between 0 and its largest possible value."""
        (first, _), (second, _) = self._moments(tuple((float(part), float(part)) for part in outcome))
        return self._inside(second - first**2)

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the variance of the clamped values lies: conservative, from a range for each sum."""
        return self._variance(self._noisy(outcome, checked_confidence(confidence)))

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the variance of the clamped population lies; half of the failure goes to sampling."""
        failure = 1 - checked_confidence(confidence)
        if self.size_is_public:
            size, noise_share = self.public_size, failure / 2
        else:
            size, noise_share = self._least_size(outcome, 1 - failure / 10), failure * 2 / 5
        width_squared = 4 * float(self._largest)
        low, high = (bound / width_squared for bound in self.interval(outcome, 1 - noise_share))
        low, high = variance_bounds(low, high, size, failure / 2)
        return low * width_squared, high * width_squared

    def error(self, rows: int, confidence: float) -> float:
        """How far the released variance of `rows` values is from the data's, at most, at this confidence."""
        size = max(rows, 1)
        radii = self._radii(checked_confidence(confidence))
        reach = self._reach
        if self.size_is_public:
            moment = radii[1] / (size * reach**2) + 2 * radii[0] / (size * reach)
        else:
            # Each sum errs by at most r, so their total is at least T - 3r; then the mean of s errs by at
            # most 3r / (T - 3r), the mean of s² too, and the square of the first by twice that.
            total = 4 * reach**2 * size - 3 * radii[0]
            moment = 9 * radii[0] / total if total > 0 else 1.0
        return self._inside(moment + self._rounding)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        low, high = self.interval(outcome, 0.95)
        return (*super().notes(outcome), *dominated(high - low, float(self._largest)))

    @property
    def _largest(self) -> Fraction:
        return ((self.upper - self.lower) / 2) ** 2

    def _inside(self, moment: float) -> float:
        """A variance in units of the squared half-width, brought into its range and into the data's units."""
        unit = float((self.lattice.step * self._reach) ** 2)
        return min(max(moment * unit, 0.0), float(self._largest))

    def _radii(self, confidence: float) -> list[int]:
        # Independent noises are all within their radii with the product of the confidences.
        each = confidence ** (1 / len(self.parts))
        return [part.noise.radius(each) for part in self.parts]

    def _noisy(self, outcome: Outcome, confidence: float) -> Ranges:
        radii = self._radii(confidence)
        return self._moments(tuple((value - r, value + r) for value, r in zip(outcome, radii, strict=True)))

    def _moments(self, sums: tuple[tuple[float, float], ...]) -> Ranges:
        """Ranges of the mean of s and of s², with s = j/M in [-1, 1], when each sum is in its range."""
        reach = self._reach
        if self.size_is_public:
            first, second = (
                [part / (self.public_size * reach**power) for part in sums[power - 1]] for power in (1, 2)
            )
        else:
            # Both are ratios of linear forms, which are extreme at corners of the box.
            corners = [tuple(max(part, 0.0) for part in corner) for corner in itertools.product(*sums)]
            known = [(left, middle, right) for left, middle, right in corners if left + middle + right > 0]
            if not known or len(known) < len(corners):
                return (-1.0, 1.0), (0.0, 1.0)
            first = [(right - left) / (left + middle + right) for left, middle, right in known]
            second = [(left + right - middle) / (left + middle + right) for left, middle, right in known]
        return (_clip(min(first), -1), _clip(max(first), -1)), (_clip(min(second), 0), _clip(max(second), 0))

    def _variance(self, moments: Ranges) -> Interval:
        (low, high), (square_low, square_high) = moments
        least_square = 0.0 if low <= 0 <= high else min(low**2, high**2)
        least = self._inside(square_low - max(low**2, high**2) - self._rounding)
        return least, self._inside(square_high - least_square + self._rounding)

    @property
    def _rounding(self) -> float:
        # Values that move by d have a variance that moves by at most 2 d + d², if it is at most 1.
        moved = self.lattice.rounding / self._reach
        return float(2 * moved + moved**2)

    @property
    def _fourth(self) -> int:
        """A fourth of M, rounded down: the lattice has at least 4 steps on either side."""
        return self._reach // 4

    @property
    def _reach(self) -> int:
        return max(-self.lattice.low, self.lattice.high)

    def _least_size(self, outcome: Outcome, confidence: float) -> int:
        radius = sum(self._radii(confidence))
        return max((sum(outcome) - radius) // (4 * self._reach**2), 0)


def _clip(number: float, least: int) -> float:
    return min(max(number, float(least)), 1.0)
