"""The sum of a bounded column."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from sfumato.checks import Number, checked_confidence, float_down, float_up
from sfumato.data.column import Column
from sfumato.data.counts import Sums
from sfumato.data.field import Field
from sfumato.data.moments import public_text
from sfumato.errors import NotSupported
from sfumato.grid import Lattice
from sfumato.laws import Law
from sfumato.mechanisms import Additive, Sensitivity
from sfumato.query import Interval, Outcome
from sfumato.statistics.statistic import Statistic, checked_bounds, resolution


@dataclass(frozen=True, kw_only=True)
class Bounded(Statistic):
    """A statistic of values clamped to public bounds.

    Args:
        bounds: (lower, upper), public; values outside are clamped to them.
    """

    bounds: tuple[Number, Number] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds is not None:  # else a session's schema may still give them
            object.__setattr__(self, "bounds", checked_bounds(self.bounds))

    def declared(self, field: Field) -> dict[str, Any]:
        """The bounds, unless the query has its own."""
        return {"bounds": checked_bounds(field.bounds if self.bounds is None else self.bounds)}

    @property
    def lower(self) -> Fraction:
        """The lower bound."""
        return self._limits[0]

    @property
    def upper(self) -> Fraction:
        """The upper bound."""
        return self._limits[1]

    @cached_property
    def _limits(self) -> tuple[Fraction, Fraction]:
        return checked_bounds(self.bounds)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        low, high = (public_text(end, self.reads) for end in (self.lower, self.upper))
        clamped = f"values are clamped to [{low}, {high}]"
        return (clamped, *super().notes(outcome))


@dataclass(frozen=True, kw_only=True)
class Sum(Bounded):
    r"""The sum of a column, each value clamped to the bounds and rounded to a fine public lattice.

    Guarantee:
        Exactly the cost stated. One record moves the integer sum by at most the width of the bounds under
        substitution, by the larger of their sizes under add-remove; a dropped null adds nothing.
        Proof: docs/proofs/sums.md.

    >>> from sfumato.privacy import PureDP
    >>> Sum(budget=PureDP(1), neighbours="add-remove", bounds=(0, 10)).cost
    PureDP(epsilon=1.0)
    """

    name: ClassVar[str] = "sum"
    not_of_dates: ClassVar[str] = "a sum of dates is no date and no length of time; use mean"

    @cached_property
    def lattice(self) -> Lattice:
        """The points that values are rounded to; through 0 unless the number of values is public."""
        origin = self.lower if self.size_is_public else 0
        points = resolution(self.budget, bits=36, range_bits=31, changes=self.changed_rows)
        return Lattice.over(self.lower, self.upper, points=points, origin=origin)

    @cached_property
    def mechanism(self) -> Additive:
        """The noise on the integer sum."""
        low, high = self.lattice.low, self.lattice.high
        if not self.substitution:
            reach = max(abs(low), abs(high))
        elif self.size_is_public:
            reach = high - low
        else:
            # A value may be exchanged for a null, which adds nothing to the sum.
            reach = max(high, 0) - min(low, 0)
        return self.noise_on(Sensitivity.scalar(reach), one_sign=low >= 0 or high <= 0)

    @property
    def described(self) -> str:
        """The mechanism in words."""
        return f"{self.mechanism.described(self.lattice.step)} on the sum"

    def look(self, column: Column) -> Sums:
        """The exact integer sum."""
        return Sums.of(column, self.lattice, nulls=self.null_rule)

    def law(self, view: Sums) -> Law:
        """The law of the noisy integer sum."""
        return self.mechanism.law(view.first)

    def value(self, outcome: Outcome) -> float:
        """The released sum; within the possible range if the number of rows is public."""
        (total,) = outcome
        if not self.size_is_public:
            return float(self.lattice.step * total)
        least, most = self.public_rows * self.lower, self.public_rows * self.upper
        return float(min(max(self._total(outcome), least), most))

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the sum of the clamped values lies; if the rows are private, of their lattice points."""
        error = self._error(self.rows or 0, confidence)
        if not self.size_is_public:
            center = self.lattice.step * outcome[0]
            return float_down(center - error), float_up(center + error)
        least, most = self.public_rows * self.lower, self.public_rows * self.upper
        low, high = (min(max(self._total(outcome) + side * error, least), most) for side in (-1, 1))
        return float_down(low), float_up(high)

    def _total(self, outcome: Outcome) -> Fraction:
        return self.public_rows * self.lattice.origin + self.lattice.step * outcome[0]

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Refused: a sum has no population value."""
        raise NotSupported(
            "population_interval needs a mean, proportion or variance: a sum grows with the sample"
        )

    def error(self, rows: int, confidence: float) -> float:
        """How far the released sum is from the data's, at most, with this confidence; rounding included."""
        return float(self._error(rows, confidence))

    def _error(self, rows: int, confidence: float) -> Fraction:
        radius = self.mechanism.noise.radius(checked_confidence(confidence))
        return self.lattice.step * (radius + rows * self.lattice.rounding)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        notes = list(super().notes(outcome))
        if not self.size_is_public:
            notes.append(f"the interval is for values rounded to multiples of {float(self.lattice.step):g}")
        if self.error(self.rows or 0, 0.95) >= abs(self.value(outcome)):
            notes.append("the answer is dominated by noise: the noise is as large as the sum")
        return tuple(notes)
