"""How many rows, or how many rows that meet a public condition."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from sfumato.checks import checked_confidence, exact, pair, shown
from sfumato.data.column import Category, Column, checked_categories
from sfumato.data.counts import Sums
from sfumato.data.matches import Matches
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import Clamped, Law, Point
from sfumato.mechanisms import Additive, ClampedGeometric, LaplaceMechanism, Sensitivity
from sfumato.privacy import FreeEvent
from sfumato.query import Interval, Outcome
from sfumato.statistics.statistic import Statistic

FREE = FreeEvent("the number of rows is public under substitution")


@dataclass(frozen=True, kw_only=True)
class Condition(Statistic):
    """A statistic of the rows that meet a public condition.

    Args:
        equals: the public categories that count, one or a tuple of them.
        between: the closed public range that counts, (low, high).
    """

    equals: Category | Sequence[Category] | None = None
    between: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.equals is not None and self.between is not None:
            raise InvalidParameter("equals and between must not both be given")
        if self.equals is not None:
            object.__setattr__(self, "equals", checked_categories("equals", self.equals))
        if self.between is not None:
            object.__setattr__(self, "between", _range(self.between))

    @property
    def matches(self) -> Matches:
        """The condition, ready to be counted."""
        equals = self.equals if isinstance(self.equals, tuple) else ()
        return Matches(equals=equals, between=self.between)

    def check(self, column: Column) -> None:
        """Refuse a column that the condition does not apply to."""
        self.matches.require(column)

    def look(self, column: Column) -> Sums:
        """The number of values, and of those that match."""
        sums = self.matches.sums(column)
        if self.null_rule == "drop":
            return sums
        # A null counts as a match under "upper" and as no match under "lower".
        matched = column.rows - sums.size if self.null_rule == "upper" else 0
        return Sums(column.rows, sums.first + matched)


@dataclass(frozen=True, kw_only=True)
class Count(Condition):
    r"""The number of values, or of values that meet a condition.

    Guarantee:
        Exactly the cost stated, for a change of one record: a count moves by at most 1 under both relations.
        The number of all rows under substitution is public, and free. Proof: docs/proofs/geometric.md.

    >>> from sfumato.privacy import PureDP
    >>> Count(budget=PureDP(1), neighbours="substitution", nulls="lower").cost
    Amount()
    """

    name: ClassVar[str] = "count"

    @property
    def counts_all(self) -> bool:
        """Whether every value counts."""
        return self.equals is None and self.between is None

    @cached_property
    def mechanism(self) -> Additive | FreeEvent:
        """The noise, or none for a public fact."""
        if self.counts_all and self.size_is_public:
            return FREE
        return self.noise_on(Sensitivity.scalar(1))

    @property
    def described(self) -> str:
        """The mechanism in words."""
        if isinstance(self.mechanism, FreeEvent):
            return f"exact: {FREE.reason}"
        most = "" if self.rows is None else " and to the number of rows"
        return f"{self.mechanism.described()}, clamped to 0{most}"

    def check(self, column: Column) -> None:
        """Any column can be counted."""
        if not self.counts_all:
            super().check(column)

    def look(self, column: Column) -> Sums:
        """The number of values that count."""
        if not self.counts_all:
            return super().look(column)
        missing = column.nulls() if self.null_rule == "drop" else 0
        return Sums(column.rows - missing, column.rows - missing)

    def law(self, view: Sums) -> Law:
        """The law of the noisy count."""
        if isinstance(self.mechanism, FreeEvent):
            return Point(view.first)
        if isinstance(self.mechanism, LaplaceMechanism):
            return ClampedGeometric(scale=self.mechanism.scale, lower=0, upper=self.rows).law(view.first)
        return Clamped(self.mechanism.law(view.first), 0, self.rows)

    def possible(self, outcome: Outcome) -> bool:
        """Whether the outcome is a count that was clamped to its public range."""
        return (
            super().possible(outcome) and outcome[0] >= 0 and (self.rows is None or outcome[0] <= self.rows)
        )

    def value(self, outcome: Outcome) -> int:
        """The released count."""
        (count,) = outcome
        return count

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the data's count lies."""
        radius = int(self.error(0, confidence))
        high = outcome[0] + radius
        return max(outcome[0] - radius, 0), high if self.rows is None else min(high, self.rows)

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Refused: a count has no population value."""
        raise NotSupported(
            "population_interval needs a mean, proportion or variance: a count grows with the sample"
        )

    def error(self, rows: int, confidence: float) -> float:
        """How far the released count is from the data's, at most, with this confidence."""
        level = checked_confidence(confidence)
        return 0.0 if isinstance(self.mechanism, FreeEvent) else float(self.mechanism.noise.radius(level))

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        if self.error(0, 0.95) >= max(outcome[0], 1):
            noisy = "the answer is dominated by noise: the noise is as large as the count"
            return (*super().notes(outcome), noisy)
        return super().notes(outcome)


def _range(between: object) -> tuple[float, float]:
    low, high = (exact("between", end) for end in pair("between", between))
    if low > high:
        raise InvalidParameter(f"between must be increasing, got between={shown(between)}")
    if max(abs(low), abs(high)) > 2**400:
        raise InvalidParameter(f"between must be at most 2**400 in size, got between={shown(between)}")
    return float(low), float(high)
