"""The share of rows that meet a condition, by inverse sensitivity."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import ClassVar

from sfumato.accuracy.inverse_sensitivity import recalibrated_fall
from sfumato.accuracy.sampling import proportion_bounds
from sfumato.checks import boolean, checked_confidence, float_up, keep, whole
from sfumato.data.counts import MAX_ROWS, Sums
from sfumato.errors import NotSupported
from sfumato.laws import TruncatedLaplace
from sfumato.privacy import Event, PureDP, PureEvent
from sfumato.query import Interval, Outcome
from sfumato.statistics.count import Condition
from sfumato.statistics.public_size import PROOF, PublicSize
from sfumato.statistics.statistic import dominated


@dataclass(frozen=True, kw_only=True)
class InverseProportion(PublicSize, Condition):
    r"""The share of values that meet a condition, by how many records must change to make it another.

    With s matches the count k has the weight :math:`r^{\max(|k-s|-m,0)}`, :math:`r=e^{-\varepsilon/2}`, m
    being the radius. `Proportion` adds clamped geometric noise and errs less than half as much; this one is
    for comparison.

    Guarantee:
        At most the cost stated, under substitution with a public number of rows; other facts are refused.
        The exact level is `accuracy.bernoulli_inverse_level`, below the budget; with `recalibrated` it is the
        budget, to 12 digits, and never above it. Proof: docs/proofs/inverse-sensitivity.md.

    Args:
        radius: how many records m may change for free.
        recalibrated: whether weights fall as fast as the exact level allows, and not by e^(-epsilon/2); for
            pure budgets, because it is no longer of bounded range epsilon.

    Raises:
        NotSupported: the number of values is private, or `recalibrated` with a budget that is not pure.

    References:
        [AD20].

    >>> facts = {"neighbours": "substitution", "nulls": "lower", "rows": 300}
    >>> plain = InverseProportion(budget=PureDP(1), **facts)
    >>> better = InverseProportion(budget=PureDP(1), recalibrated=True, **facts)
    >>> round(300 * plain.error(300, 0.95)), round(300 * better.error(300, 0.95))
    (6, 4)
    """

    name: ClassVar[str] = "inverse_proportion"
    sized: ClassVar[bool] = True
    instead: ClassVar[str] = "proportion"

    radius: int = 0
    recalibrated: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, radius=whole("radius", self.radius, least=0, most=MAX_ROWS))
        if boolean("recalibrated", self.recalibrated) and not isinstance(self.budget, PureDP):
            raise NotSupported(
                f"recalibrated=True needs a pure budget, which it spends whole, got {self.budget!r}"
            )

    def fall(self, rows: int) -> Fraction:
        """How far a log weight falls with one record more."""
        if not self.recalibrated:
            return self.range / 2
        return recalibrated_fall(rows, self.range, min(self.radius, rows))

    @cached_property
    def event(self) -> Event:
        """What a release costs, for an accountant."""
        return PureEvent(self.range, PROOF) if self.recalibrated else super().event

    @property
    def last(self) -> int:
        """The largest count."""
        return self.public_size

    @property
    def described(self) -> str:
        """The mechanism in words."""
        smooth = f", smoothed over {self.radius:,} counts" if self.radius else ""
        exact = ", recalibrated to its exact level" if self.recalibrated else ""
        return f"inverse sensitivity on the counts 0 to {self.public_size:,}{smooth}{exact}"

    def law(self, view: Sums) -> TruncatedLaplace:
        """The law of the count that is released."""
        rows = self.public_size
        return TruncatedLaplace(
            center=Fraction(view.first),
            scale=1 / self.fall(rows),
            low=0,
            high=rows,
            flat=Fraction(min(self.radius, rows)),
        )

    def value(self, outcome: Outcome) -> float:
        """The released share, between 0 and 1."""
        return outcome[0] / self.public_size

    def counts_off(self, rows: int, confidence: float) -> int:
        """How many counts the answer is from the data's, at most, with this confidence, on any data."""
        c, flat = float(self.fall(rows)), min(self.radius, rows)
        failure = (1 - checked_confidence(confidence)) * (1 - 1e-9)
        # P(|k - s| > m + t) <= e^(-c t) 2x / (2m + 1 + 2x), x = r / (1 - r); attained far from both ends.
        beyond = 2 * math.exp(-c) / ((2 * flat + 1) * -math.expm1(-c) + 2 * math.exp(-c))
        steps = math.log(beyond / failure) / c if beyond > failure else 0.0
        return min(flat + ceil(steps), rows)

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the data's share lies."""
        size, off = self.public_size, self.counts_off(self.public_size, confidence)
        return max(outcome[0] - off, 0) / size, min(outcome[0] + off, size) / size

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the population's share lies; half of the failure goes to sampling."""
        failure, size = 1 - checked_confidence(confidence), self.public_size
        low, high = self.interval(outcome, 1 - failure / 2)
        return proportion_bounds(floor(low * size + 0.5), ceil(high * size - 0.5), size, failure / 2)

    def error(self, rows: int, confidence: float) -> float:
        """How far the released share of `rows` values is from the data's, at most, on any data."""
        size = max(rows, 1)
        return min(float_up(Fraction(self.counts_off(size, confidence), size)), 1.0)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        low, high = self.interval(outcome, 0.95)
        return (*super().notes(outcome), *dominated(high - low, 1.0))
