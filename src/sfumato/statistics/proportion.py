"""The share of rows that meet a public condition."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from sfumato.accuracy.noisy_sampling import noisy_proportion_bounds, noisy_share_bounds
from sfumato.accuracy.ratio import share_interval
from sfumato.accuracy.sampling import mean_bounds
from sfumato.checks import checked_confidence
from sfumato.data.column import Column
from sfumato.data.counts import Sums
from sfumato.laws import Clamped, Joint, Law
from sfumato.mechanisms import Additive, Sensitivity
from sfumato.query import Interval, Outcome
from sfumato.statistics.count import Condition
from sfumato.statistics.statistic import dominated


@dataclass(frozen=True, kw_only=True)
class Proportion(Condition):
    r"""The share of values that are true, equal a category, or lie in a range.

    Guarantee:
        Exactly the cost stated. If the number of values is public, one clamped noisy count is divided by it;
        if it is private, the counts of matches and of the others are released together: a record is in one
        of them. Proof: docs/proofs/mean.md.

    >>> from sfumato.privacy import PureDP
    >>> Proportion(budget=PureDP(1), neighbours="substitution", nulls="lower", rows=300).error(300, 0.95)
    0.01
    """

    name: ClassVar[str] = "proportion"
    sized: ClassVar[bool] = True

    @cached_property
    def mechanism(self) -> Additive:
        """The noise on each count."""
        if self.size_is_public or not self.substitution:
            sensitivity = Sensitivity.scalar(1)
        else:
            sensitivity = Sensitivity(l1=2, l2_squared=2, coordinates=2)
        return self.noise_on(sensitivity)

    @property
    def described(self) -> str:
        """The mechanism in words."""
        counts = "the count of matches" if self.size_is_public else "the counts of matches and of the others"
        return f"{self.mechanism.described()} on {counts}"

    def check(self, column: Column) -> None:
        """Refuse a column that the condition does not apply to, or that is publicly empty."""
        super().check(column)
        self.refuse_no_rows()

    def law(self, view: Sums) -> Law:
        """The law of the noisy count of matches, or of matches and others."""
        if self.size_is_public:
            return Clamped(self.mechanism.law(view.first), 0, self.rows)
        others = view.size - view.first
        return Joint(tuple(Clamped(self.mechanism.law(count), 0, None) for count in (view.first, others)))

    @property
    def parts_drawn(self) -> int:
        """The matches, and the others if their number is private."""
        return 1 if self.size_is_public else 2

    def possible(self, outcome: Outcome) -> bool:
        """Whether the outcome holds counts that were clamped to their public range."""
        most = self.public_size if self.size_is_public else 2**150
        return super().possible(outcome) and all(0 <= part <= most for part in outcome)

    def value(self, outcome: Outcome) -> float:
        """The released share, between 0 and 1."""
        if self.size_is_public:
            (matches,), total = outcome, self.public_size
        else:
            matches, others = outcome
            total = matches + others
        return float(Fraction(matches, total)) if total > 0 else 0.5

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the data's share lies."""
        level = checked_confidence(confidence)
        if not self.size_is_public:
            return share_interval(outcome, self.mechanism, level)
        size, radius = self.public_size, self.mechanism.noise.radius(level)
        return max(outcome[0] - radius, 0) / size, min(outcome[0] + radius, size) / size

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the population's share lies: the law of the noisy binomial count, inverted."""
        failure = 1 - checked_confidence(confidence)
        noise = self.mechanism.noise
        data_low, data_high = self.interval(outcome, 1 - failure)
        if self.size_is_public:
            low, high = noisy_proportion_bounds(outcome[0], self.public_size, noise, failure)
            return min(low, data_low), max(high, data_high)
        any_low, any_high = self._whatever(outcome, failure)
        low, high = noisy_share_bounds((outcome[0], outcome[1]), noise, failure)
        return max(min(low, data_low), any_low), min(max(high, data_high), any_high)

    def _whatever(self, outcome: Outcome, failure: float) -> tuple[float, float]:
        """Where the population's share lies by three bounds of noise, size and sampling, one for each."""
        radius = self.mechanism.noise.radius((1 - failure / 10) ** 0.5)
        low, high = self.interval(outcome, 1 - failure * 2 / 5)
        return mean_bounds(low, high, max(sum(outcome) - 2 * radius, 0), failure / 2)

    def error(self, rows: int, confidence: float) -> float:
        """How far the released share of `rows` values is from the data's, at most, with this confidence.

        With a private number of values, the worst case over the data when the noise is small beside it.
        """
        radius = self.mechanism.noise.radius(checked_confidence(confidence))
        # A mixture of two discrete noises is within 1 of that of continuous ones, which is no wider than one.
        return min((radius + (not self.size_is_public)) / max(rows, 1), 1.0)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        low, high = self.interval(outcome, 0.95)
        return (*super().notes(outcome), *dominated(high - low, 1.0))
