"""A mean that is one of a public row of points between the bounds."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from sfumato.accuracy.sampling import mean_bounds
from sfumato.checks import checked_confidence, float_down, float_up
from sfumato.grid import Lattice
from sfumato.query import Interval, Outcome
from sfumato.statistics.public_size import PublicSize
from sfumato.statistics.statistic import dominated, resolution
from sfumato.statistics.sum import Bounded


@dataclass(frozen=True, kw_only=True)
class MeanPoints(PublicSize, Bounded):
    """A mean drawn from equally spaced points; values are clamped to the bounds and put on a fine lattice."""

    sized: ClassVar[bool] = True
    instead: ClassVar[str] = "mean"
    answers_values: ClassVar[bool] = True

    @cached_property
    def lattice(self) -> Lattice:
        """Points around the middle of the bounds, as many on both sides."""
        points = resolution(self.budget, bits=30, range_bits=26)
        return Lattice.over(self.lower, self.upper, points=points, origin=(self.lower + self.upper) / 2)

    @abstractmethod
    def points_for(self, rows: int) -> int:
        """The number of cells between the bounds, for so many rows."""

    @abstractmethod
    def steps_off(self, rows: int, confidence: float) -> Fraction:
        """How many lattice steps the answer is from the mean, at most, with this confidence, on any data."""

    @property
    def last(self) -> int:
        """The number of the point at the upper bound."""
        return self.points_for(self.public_size)

    def value(self, outcome: Outcome) -> float:
        """The released mean, inside the bounds."""
        return float(self._inside(self._steps(outcome)))

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the mean of the values lies, clamped to the bounds as float64 holds them."""
        off = self.steps_off(self.public_size, confidence) + self.lattice.rounding
        low, high = (self._inside(self._steps(outcome) + side * off) for side in (-1, 1))
        return max(float_down(low), float(self.lower)), min(float_up(high), float(self.upper))

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the mean of the clamped population lies; half of the failure goes to sampling."""
        failure = 1 - checked_confidence(confidence)
        low, high = self.interval(outcome, 1 - failure / 2)
        lower, width = float(self.lower), self._range
        low, high = mean_bounds(
            max((low - lower) / width, 0.0), min((high - lower) / width, 1.0), self.public_size, failure / 2
        )
        return lower + width * low, lower + width * high

    def error(self, rows: int, confidence: float) -> float:
        """How far the released mean of `rows` values is from the data's, at most, on any data."""
        off = self.steps_off(max(rows, 1), confidence) + self.lattice.rounding
        return min(float(self.lattice.step * off), self._range)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        low, high = self.interval(outcome, 0.95)
        return (*super().notes(outcome), *dominated(high - low, self._range))

    @property
    def _range(self) -> float:
        return float(self.upper - self.lower)

    def _steps(self, outcome: Outcome) -> Fraction:
        return self.lattice.low + Fraction(self.lattice.width * outcome[0], self.last)

    def _inside(self, index: Fraction) -> Fraction:
        return min(max(self.lattice.origin + self.lattice.step * index, self.lower), self.upper)
