"""The mean of a bounded column."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from sfumato.accuracy.ratio import share_interval
from sfumato.accuracy.sampling import mean_bounds
from sfumato.checks import float_down, float_up
from sfumato.data.column import Column
from sfumato.data.counts import Sums
from sfumato.grid import Lattice
from sfumato.laws import Joint, Law
from sfumato.mechanisms import Additive, Sensitivity, additive
from sfumato.query import Interval, Outcome
from sfumato.statistics.statistic import checked_confidence, dominated, resolution
from sfumato.statistics.sum import Bounded


@dataclass(frozen=True, kw_only=True)
class Mean(Bounded):
    r"""The mean of a column, each value clamped to the bounds and rounded to a fine public lattice.

    Guarantee:
        Exactly the cost stated. If the number of values is public, one noisy integer sum is divided by it.
        If it is private, the two complementary sums of :math:`x - a` and :math:`b - x` are released together:
        a record moves them by exactly :math:`b - a` in L1, so that the budget is not split.
        Proof: docs/proofs/mean.md.

    >>> from sfumato.privacy import PureDP
    >>> query = Mean(budget=PureDP(1), neighbours="substitution", nulls="lower", bounds=(0, 1))
    >>> round(query.error(1000, 0.95), 6)
    0.002996
    """

    name: ClassVar[str] = "mean"
    sized: ClassVar[bool] = True

    @cached_property
    def lattice(self) -> Lattice:
        """Points around the middle of the bounds, as many on both sides."""
        points = resolution(self.budget, bits=30, range_bits=26)
        return Lattice.over(self.lower, self.upper, points=points, origin=(self.lower + self.upper) / 2)

    @cached_property
    def mechanism(self) -> Additive:
        """The noise on each integer sum."""
        width = self.lattice.width
        if self.size_is_public:
            sensitivity = Sensitivity.scalar(width)
        elif not self.substitution:
            sensitivity = Sensitivity(l1=width, l2_squared=width**2, coordinates=2)
        else:
            sensitivity = Sensitivity(l1=2 * width, l2_squared=2 * width**2, coordinates=2)
        return additive(self.budget, sensitivity, self.noise)

    @property
    def described(self) -> str:
        """The mechanism in words."""
        sums = "the sum" if self.size_is_public else "two complementary sums"
        return f"{self.mechanism.described(self.lattice.step)} on {sums}"

    def check(self, column: Column) -> None:
        """Refuse a column that does not store numbers, or that is publicly empty."""
        super().check(column)
        self.refuse_no_rows()

    def look(self, column: Column) -> Sums:
        """The exact integer sum and the number of values."""
        return Sums.of(column, self.lattice, nulls=self.null_rule)

    def law(self, view: Sums) -> Law:
        """The law of the noisy sum, or of the two complementary ones."""
        if self.size_is_public:
            return self.mechanism.law(view.first)
        above_lower = view.first - self.lattice.low * view.size
        below_upper = self.lattice.high * view.size - view.first
        return Joint((self.mechanism.law(above_lower), self.mechanism.law(below_upper)))

    @property
    def parts_drawn(self) -> int:
        """One sum, or two complementary ones."""
        return 1 if self.size_is_public else 2

    def value(self, outcome: Outcome) -> float:
        """The released mean, inside the bounds."""
        if self.size_is_public:
            (total,) = outcome
            index = Fraction(total, self.public_size)
        else:
            above_lower, below_upper = outcome
            total = above_lower + below_upper
            share = Fraction(above_lower, total) if total > 0 else Fraction(1, 2)
            index = self.lattice.low + self.lattice.width * share
        return float(self._inside(index))

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the mean of the values lies, clamped to the bounds as float64 holds them."""
        level = checked_confidence(confidence)
        if self.size_is_public:
            radius = self.mechanism.noise.radius(level)
            low, high = (Fraction(outcome[0] + side * radius, self.public_size) for side in (-1, 1))
        else:
            shares = share_interval(outcome, self.mechanism, level)
            low, high = (self.lattice.low + self.lattice.width * Fraction(share) for share in shares)
        rounding = self.lattice.rounding
        least, most = float(self.lower), float(self.upper)
        low, high = self._inside(low - rounding), self._inside(high + rounding)
        return max(float_down(low), least), min(float_up(high), most)

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the mean of the clamped population lies; half of the failure goes to sampling."""
        failure = 1 - checked_confidence(confidence)
        size = self.rows if self.size_is_public else self._least_size(outcome, 1 - failure / 10)
        noise_share = failure / 2 if self.size_is_public else failure * 2 / 5
        low, high = self.interval(outcome, 1 - noise_share)
        lower, width = float(self.lower), float(self.upper - self.lower)
        low, high = mean_bounds((low - lower) / width, (high - lower) / width, size or 0, failure / 2)
        return lower + width * low, lower + width * high

    def error(self, rows: int, confidence: float) -> float:
        """How far the released mean of `rows` values is from the data's, at most, with this confidence.

        With a private number of values, the worst case over the data when the noise is small beside it.
        """
        radius = self.mechanism.noise.radius(checked_confidence(confidence))
        size = max(rows, 1)
        return min(float(self.lattice.step * (Fraction(radius, size) + self.lattice.rounding)), self._range)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        low, high = self.interval(outcome, 0.95)
        return (*super().notes(outcome), *dominated(high - low, self._range))

    @property
    def _range(self) -> float:
        return float(self.upper - self.lower)

    def _inside(self, index: Fraction) -> Fraction:
        return min(max(self.lattice.origin + self.lattice.step * index, self.lower), self.upper)

    def _least_size(self, outcome: Outcome, confidence: float) -> int:
        # Each sum is within its radius with the square root of the confidence, so their total is within two.
        radius = self.mechanism.noise.radius(confidence**0.5)
        return max((sum(outcome) - 2 * radius) // self.lattice.width, 0)
