"""The first public threshold at which the number of values up to it passes a public count."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from sfumato.checks import (
    Number,
    boolean,
    checked_confidence,
    compact,
    exact,
    positive,
    root_down,
    shown,
    whole,
)
from sfumato.data.column import Column
from sfumato.data.counts import count_places
from sfumato.data.field import Field
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import Floats, Ints, exact_bounds
from sfumato.laws.crossing import FirstCrossing
from sfumato.mechanisms import AboveThreshold
from sfumato.privacy import ZCDP, Budget, ConcentratedEvent, Event, for_changes, per_change
from sfumato.query import Interval, Outcome
from sfumato.statistics.statistic import Statistic, checked_bounds

MAX_THRESHOLDS = 2**20
MAX_COUNT = 2**59


@dataclass(frozen=True, kw_only=True)
class FirstPassing(Statistic):
    r"""The lowest of some public thresholds that more than `count` values are at or below, or None.

    Thresholds are looked at in order until the noisy number of values passes a noisy count. That none is
    passed is an answer as any other, and its value is None.

    Guarantee:
        Exactly the cost stated, however many thresholds there are: one record moves all counts in the same
        direction, and by at most 1, under both relations. Proof: docs/proofs/above-threshold.md, counts up to
        thresholds.

    Args:
        at: the thresholds, increasing, compared with the data as float64.
        bounds, step: or the thresholds lower, lower + step, ... up to upper.
        count: the public count that must be passed, a whole number from 0.
        from_above: look from the highest threshold down, for the highest with more than `count` values at or
            above it.
        nulls: "lower" counts nulls as below all thresholds, "upper" as above all; "drop" leaves them out.
        noise: "auto" for one-sided geometric noise, "laplace" for two-sided noise of twice the variance.

    Raises:
        InvalidParameter: thresholds that do not increase, a count that is no whole number, Gaussian noise.

    References:
        [DR14], algorithm 1, with the constants of queries that move together.

    >>> from sfumato.privacy import PureDP
    >>> query = FirstPassing(budget=PureDP(1), at=(18, 30, 65), count=500, neighbours="add-remove")
    >>> query.cost, query.error(0, 0.95)
    (PureDP(epsilon=1.0), 4.0)
    >>> query.value((1,)), query.value((3,))
    (30.0, None)
    """

    name: ClassVar[str] = "first_passing"
    answers_values: ClassVar[bool] = True

    at: Sequence[Number] | None = None
    bounds: tuple[Number, Number] | None = None
    step: Number | None = None
    count: int | None = None
    from_above: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise == "gaussian":
            raise InvalidParameter("noise must be 'auto' or 'laplace' for a first passing, got 'gaussian'")
        object.__setattr__(self, "count", whole("count", self.count, least=0, most=MAX_COUNT))
        boolean("from_above", self.from_above)
        if self.at is not None:
            if self.bounds is not None or self.step is not None:
                raise InvalidParameter("at and bounds with step must not both be given")
            object.__setattr__(self, "at", _increasing(self.at))
            return
        if self.step is None:
            raise InvalidParameter("at must be given as increasing thresholds, or bounds and step")
        object.__setattr__(self, "step", positive("step", self.step))
        if self.bounds is not None:  # else a session's schema may still give them
            object.__setattr__(self, "bounds", checked_bounds(self.bounds))
            _ = self.thresholds

    def declared(self, field: Field) -> dict[str, Any]:
        """The bounds, unless the query has thresholds or bounds of its own."""
        if self.at is not None:
            return {}
        return {"bounds": checked_bounds(field.bounds if self.bounds is None else self.bounds)}

    @cached_property
    def thresholds(self) -> Floats:
        """The thresholds as float64, increasing."""
        if self.at is not None:
            return np.array([float(point) for point in self.at])
        lower, upper = (exact("bounds", end) for end in checked_bounds(self.bounds))
        step = positive("step", self.step)
        if (upper - lower) / step >= MAX_THRESHOLDS:
            raise InvalidParameter(
                f"step must leave at most {MAX_THRESHOLDS} thresholds, got step={shown(self.step)}"
            )
        points = np.array([float(lower + i * step) for i in range((upper - lower) // step + 1)])
        if (np.diff(points) <= 0).any():
            raise InvalidParameter(
                f"step must be large enough for float64 to tell thresholds apart, got step={shown(self.step)}"
            )
        return points

    @cached_property
    def mechanism(self) -> Any:
        """The scan with the least noise that the budget pays for."""
        budget = self.row_budget
        if not isinstance(budget, ZCDP):
            return self._scan(budget.epsilon)
        # A log ratio that spans at most r over all outcomes costs r^2/8.
        return self._scan(root_down(8 * budget.rho) / self._scan(Fraction(1)).log_range)

    @property
    def row_budget(self) -> Budget:
        """What one of the rows that a person can change may cost."""
        return per_change(self.budget, self.changed_rows)

    def _scan(self, epsilon: Fraction) -> AboveThreshold:
        one_sided = self.noise != "laplace"
        if self.substitution:
            return AboveThreshold.same_direction(epsilon, 1, one_sided=one_sided)
        # Under add-remove a count that moved stays moved at all later thresholds, which halves the noise.
        return AboveThreshold.for_order(epsilon, 0, one_sided=one_sided)

    @property
    def event(self) -> Event:
        """What a release costs, for an accountant."""
        if isinstance(self.budget, ZCDP):
            return ConcentratedEvent(self.budget.rho, "above-threshold")
        return for_changes(self.mechanism.event, self.changed_rows)

    @property
    def described(self) -> str:
        """The mechanism in words."""
        return f"{self.mechanism.described()}, over {len(self.thresholds):,} thresholds"

    def look(self, column: Column) -> Ints:
        """The number of values at or beyond each threshold, in the order of the scan."""
        points = -self.thresholds[::-1] if self.from_above else self.thresholds
        found, missing = count_places(column, points, negated=self.from_above)
        # A null on the side where the scan starts is at or beyond every threshold; others are at none.
        if self.null_rule == ("upper" if self.from_above else "lower"):
            found[0] += missing
        counts: Ints = np.cumsum(found[:-1])
        return counts

    def law(self, view: Ints) -> FirstCrossing:
        """The law of the place in the scan, one past the last if no threshold is passed."""
        law: FirstCrossing = self.mechanism.law(view, self.count)
        return law

    def possible(self, outcome: Outcome) -> bool:
        """Whether the outcome is a place in the scan, or one past the last."""
        return len(outcome) == 1 and 0 <= outcome[0] <= len(self.thresholds)

    def value(self, outcome: Outcome) -> float | None:
        """The threshold, or None if none was passed or the public number of rows lets none be."""
        (place,) = outcome
        if place == len(self.thresholds) or self._too_few_rows:
            return None
        return float(self.thresholds[::-1][place] if self.from_above else self.thresholds[place])

    @property
    def _too_few_rows(self) -> bool:
        return self.rows is not None and self.rows <= (self.count or 0)

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the data's own answer lies: all thresholds, and infinity for none.

        Noise in the counts does not bound how far the data's answer is: counts may stay next to the public
        count over any stretch of thresholds. The note tells what is known about the counts.
        """
        checked_confidence(confidence)
        none = -math.inf if self.from_above else math.inf
        if self._too_few_rows:
            return none, none
        lowest, highest = float(self.thresholds[0]), float(self.thresholds[-1])
        return (none, highest) if self.from_above else (lowest, none)

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Refused: a count has no population value."""
        raise NotSupported(
            "population_interval needs a mean, proportion or variance: a count grows with the sample"
        )

    def error(self, rows: int, confidence: float) -> float:
        """How far on the wrong side of `count` the numbers of values can be, with this confidence.

        Guarantee:
            Before the answer no number is more than this above `count`; at the answer it is less than this
            below.
        """
        return float(self.mechanism.radius(len(self.thresholds), checked_confidence(confidence)))

    def accuracy_words(self, error: float) -> str:
        """The accuracy in words, for a preview."""
        return f"counts within {int(error):,} of {self.count:,}"

    def labels(self) -> tuple[str, ...]:
        """What the threshold is."""
        side = "at or above" if self.from_above else "at or below"
        return (f"more than {self.count:,} {side}",)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        if self._too_few_rows:
            return ("no threshold can be passed: the public number of rows is not above the count",)
        unit = super().notes(outcome)
        count, error = self.count or 0, int(self.error(0, 0.95))
        side, earlier = ("above", "higher") if self.from_above else ("below", "lower")
        most = f"at most {count + error:,} values at or {side}"
        if self.value(outcome) is None:
            notes = [f"at 95 % confidence every threshold has {most} it"]
        else:
            least = f"more than {max(count - error, -1):,} values at or {side} the answer" * (error <= count)
            known = " and ".join(filter(None, (least, f"{most} any {earlier} threshold")))
            notes = [f"at 95 % confidence there are {known}"]
        if error >= max(count, 1):
            notes.append("the answer is dominated by noise: the noise is as large as the count")
        return (*unit, *notes)


def _increasing(at: object) -> tuple[Fraction, ...]:
    listed = at.tolist() if isinstance(at, np.ndarray) else at
    if isinstance(listed, range):
        listed = list(listed[: MAX_THRESHOLDS + 1])
    if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= MAX_THRESHOLDS:
        raise InvalidParameter(f"at must be 1 to {MAX_THRESHOLDS} increasing numbers, got at={shown(at)}")
    points = tuple(exact("at", point) for point in listed)
    rising = all(left < right for left, right in pairwise(points))
    # The ends are checked to fit float64; those between then do.
    if len(points) == 1:
        exact_bounds(min(points[0], Fraction(0)) - 1, max(points[0], Fraction(0)) + 1)
    elif rising:
        exact_bounds(points[0], points[-1])
    if not rising or any(float(left) >= float(right) for left, right in pairwise(points)):
        raise InvalidParameter(f"at must increase, got at={shown(tuple(map(compact, points)))}")
    return points
