"""The mean of a bounded column."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any, ClassVar, Literal

from sfumato.accuracy.normal_noise import spread_interval
from sfumato.accuracy.ratio import share_interval
from sfumato.accuracy.sampling import mean_bounds
from sfumato.checks import Number, checked_confidence, exact, float_down, float_up, keep, shown
from sfumato.data.column import Column
from sfumato.data.counts import Sums
from sfumato.errors import InvalidParameter
from sfumato.grid import Lattice
from sfumato.laws import Joint, Law
from sfumato.mechanisms import Additive, Sensitivity
from sfumato.privacy import Event, LaplaceEvent, PureEvent
from sfumato.query import Interval, Outcome
from sfumato.statistics.mean_spread import calibrated, checked_share
from sfumato.statistics.statistic import dominated, resolution
from sfumato.statistics.sum import Bounded


@dataclass(frozen=True, kw_only=True)
class Mean(Bounded):
    r"""The mean of a column, each value clamped to the bounds and rounded to a fine public lattice.

    Guarantee:
        Exactly the cost stated. If the number of values is public, one noisy integer sum is divided by it.
        If it is private, the two complementary sums of :math:`x - a` and :math:`b - x` are released together:
        a record moves them by exactly :math:`b - a` in L1, so that the budget is not split.
        Proof: docs/proofs/mean.md.

    Args:
        interval_share: the share of the budget, 0 or in [0.01, 0.99], that also releases the spread of the
            values, so that `population_interval` can follow it; "auto" is the share that served best in
            benchmarks. `interval`, about the data, does not need it. Shares up to 1/5 cost the mean nothing
            under substitution or with Gaussian noise; its noise is never larger than that of a budget of
            1 - share.

    >>> from sfumato.privacy import PureDP
    >>> query = Mean(budget=PureDP(1), neighbours="substitution", nulls="lower", bounds=(0, 1))
    >>> round(query.error(1000, 0.95), 6)
    0.002996
    """

    name: ClassVar[str] = "mean"
    answers_values: ClassVar[bool] = True
    sized: ClassVar[bool] = True
    takes_scenario: ClassVar[tuple[str, ...]] = ("population_interval",)

    interval_share: Number | Literal["auto"] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, interval_share=checked_share(self.interval_share))

    @cached_property
    def lattice(self) -> Lattice:
        """Points around the middle of the bounds, as many on both sides; fewer where products are added."""
        rows = self.changed_rows
        points = resolution(self.budget, bits=30, range_bits=26, changes=rows)
        if self.interval_share:
            points = max(isqrt(resolution(self.budget, bits=40, range_bits=40, changes=rows)), 2)
        return Lattice.over(self.lower, self.upper, points=points, origin=(self.lower + self.upper) / 2)

    @property
    def mechanism(self) -> Additive:
        """The noise on each integer sum."""
        return self._noises[0]

    @property
    def spread_mechanism(self) -> Additive | None:
        """The noise on the sum of products that tells the spread; None without an interval share."""
        return self._noises[1] if self.interval_share else None

    @cached_property
    def _noises(self) -> tuple[Additive, Additive, Additive]:
        """The noise on the sums, that on the products, and what both are charged as."""
        width = self.lattice.width
        if self.size_is_public:
            sensitivity = Sensitivity.scalar(width)
        elif not self.substitution:
            sensitivity = Sensitivity(l1=width, l2_squared=width**2, coordinates=2)
        else:
            sensitivity = Sensitivity(l1=2 * width, l2_squared=2 * width**2, coordinates=2)
        if not self.interval_share:
            return (self.noise_on(sensitivity),) * 3
        share = exact("interval_share", self.interval_share)
        return calibrated(self, sensitivity, width, share)

    @property
    def event(self) -> Event:
        """What a release costs: the whole budget, for the sums and the products together."""
        charged = self._noises[2].event
        if self.interval_share and isinstance(charged, LaplaceEvent):
            return PureEvent(epsilon=charged.pure_epsilon, name="mean")
        return charged

    @property
    def described(self) -> str:
        """The mechanism in words."""
        sums = "the sum" if self.size_is_public else "two complementary sums"
        spread = " and on a sum of products for the spread" if self.interval_share else ""
        return f"{self.mechanism.described(self.lattice.step)} on {sums}{spread}"

    def check(self, column: Column) -> None:
        """Refuse a column that does not store numbers, or that is publicly empty."""
        super().check(column)
        self.refuse_no_rows()

    def look(self, column: Column) -> Sums:
        """The exact integer sum, that of the squares if they are released, and the number of values."""
        squares = bool(self.interval_share)
        return Sums.of(column, self.lattice, nulls=self.null_rule, squares=squares)

    def law(self, view: Sums) -> Law:
        """The law of the noisy sum, or of the two complementary ones; then of the sum of products."""
        low, high = self.lattice.low, self.lattice.high
        if self.size_is_public:
            sums = [view.first]
        else:
            sums = [view.first - low * view.size, high * view.size - view.first]
        parts = [self.mechanism.law(total) for total in sums]
        if self.spread_mechanism is not None:
            # The sum of (j - low)(high - j): small where values are at the ends.
            products = (low + high) * view.first - view.second - low * high * view.size
            parts.append(self.spread_mechanism.law(products))
        return parts[0] if len(parts) == 1 else Joint(tuple(parts))

    @property
    def parts_drawn(self) -> int:
        """One sum, or two complementary ones; and the products if they are released."""
        return (1 if self.size_is_public else 2) + bool(self.interval_share)

    def value(self, outcome: Outcome) -> float:
        """The released mean, inside the bounds."""
        if self.size_is_public:
            index = Fraction(outcome[0], self.public_size)
        else:
            above_lower, below_upper = outcome[:2]
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
            shares = share_interval(outcome[:2], self.mechanism, level)
            low, high = (self.lattice.low + self.lattice.width * Fraction(share) for share in shares)
        rounding = self.lattice.rounding
        least, most = float(self.lower), float(self.upper)
        low, high = self._inside(low - rounding), self._inside(high + rounding)
        return max(float_down(low), least), min(float_up(high), most)

    def population_interval(self, outcome: Outcome, confidence: float, scenario: Any = None) -> Interval:
        """Where the mean of the clamped population lies.

        With an interval share, or with a public scenario that tells the spread, by the central limit theorem:
        the sampling error is taken for normal, and its law with the noise is used as a whole. Without, half
        of the failure goes to the sampling of any population whatever. Never wider than the latter.
        """
        failure = 1 - checked_confidence(confidence)
        any_low, any_high = self._whatever(outcome, failure)
        if scenario is None and not self.interval_share:
            return any_low, any_high
        noise, products = self.mechanism.noise, self.spread_mechanism
        width, variance = float(self.upper - self.lower), None
        if scenario is not None and not hasattr(scenario, "moments"):
            raise InvalidParameter(f"scenario must be an accuracy.Scenario, got scenario={shown(scenario)}")
        if scenario is not None:
            variance = float(scenario.moments((float(self.lower), float(self.upper)))[1]) / width**2
        shares = spread_interval(
            self._totals(outcome),
            noise,
            failure=failure,
            size=self.rows if self.size_is_public else None,
            unit=self.lattice.width,
            variance=variance,
            products=None if products is None else (outcome[-1], products.noise),
            rounding=float(self.lattice.rounding) / self.lattice.width,
        )
        lower = float(self.lower)
        low, high = (lower + width * share for share in shares)
        data_low, data_high = self.interval(outcome, 1 - failure)
        low, high = min(low, data_low), max(high, data_high)
        return max(low, any_low), min(high, any_high)

    def _totals(self, outcome: Outcome) -> tuple[int, int]:
        """The noisy sums of distances to the two ends."""
        if not self.size_is_public:
            return outcome[0], outcome[1]
        low, high = self.lattice.low * self.public_size, self.lattice.high * self.public_size
        return outcome[0] - low, high - outcome[0]

    def _whatever(self, outcome: Outcome, failure: float) -> tuple[float, float]:
        """Where the population mean lies whatever its spread; half of the failure goes to sampling."""
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
        limit = ("population_interval relies on the central limit theorem and a released spread",)
        by_limit = limit if self.interval_share else ()
        return (*super().notes(outcome), *by_limit, *dominated(high - low, self._range))

    @property
    def _range(self) -> float:
        return float(self.upper - self.lower)

    def _inside(self, index: Fraction) -> Fraction:
        return min(max(self.lattice.origin + self.lattice.step * index, self.lower), self.upper)

    def _least_size(self, outcome: Outcome, confidence: float) -> int:
        # Each sum is within its radius with the square root of the confidence, so their total is within two.
        radius = self.mechanism.noise.radius(confidence**0.5)
        return max((sum(outcome[:2]) - 2 * radius) // self.lattice.width, 0)
