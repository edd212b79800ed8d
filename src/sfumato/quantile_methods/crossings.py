"""Quantiles as first crossings: a scan over increasing points until the count passes the target."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.data.column import Column
from sfumato.data.counts import Counts
from sfumato.errors import InvalidParameter
from sfumato.grid import Edges, Grid, Ints
from sfumato.laws import Bits
from sfumato.mechanisms import AboveThreshold
from sfumato.quantile_methods.method import Facts, Purchase, QuantileLaw
from sfumato.query import Outcome


@dataclass(frozen=True)
class Scan:
    """One order a/b, scanned upwards, or downwards with 1 - order; counts are compared in units of 1/b."""

    order: Fraction
    mechanism: AboveThreshold
    downwards: bool

    def law(self, counts: Ints) -> Any:
        """The law of the step at which the count passes the target, in the direction of the scan."""
        share = 1 - self.order if self.downwards else self.order
        counts = counts[::-1] if self.downwards else counts
        sums = np.cumsum(counts) * share.denominator
        return self.mechanism.law(sums, share.numerator * int(counts.sum()))

    def cell(self, drawn: int, cells: int) -> int:
        """The cell in which the count passed the target; the last of the scan if it never did."""
        step = min(drawn, cells - 1)
        return cells - 1 - step if self.downwards else step

    def words(self, cells: int) -> str:
        """The mechanism in words, with scales in ranks."""
        share = 1 - self.order if self.downwards else self.order
        return f"{self.mechanism.described(Fraction(1, share.denominator))}, over {cells:,} steps"

    def rank_error(self, cells: int, confidence: float) -> int:
        """How far, in ranks, the count at the answer can be from its target."""
        share = 1 - self.order if self.downwards else self.order
        return -(-self.mechanism.radius(cells, confidence) // share.denominator)


def scans(facts: Facts, *, one_sided: bool, published: bool) -> list[Scan]:
    """A scan for each order, each for an equal part of the budget."""
    return [_scan(q, facts, one_sided, published) for q in facts.orders]


def _scan(order: Fraction, facts: Facts, one_sided: bool, published: bool) -> Scan:
    downwards = not facts.replaces and order > Fraction(1, 2)
    share = 1 - order if downwards else order
    bought = facts.buy(len(facts.orders))
    unit = _mechanism(Fraction(1), share, facts, one_sided, published)
    # A pure budget buys a cost, the others the width of an interval that holds all log ratios.
    size = unit.cost if bought.pure else unit.log_range
    epsilon = bought.range / size
    if epsilon * unit.cost > bought.range:
        raise InvalidParameter(f"budget is too small for a scan, got {facts.budget!r}")
    return Scan(order, _mechanism(epsilon, share, facts, one_sided, published), downwards)


def _mechanism(
    epsilon: Fraction, share: Fraction, facts: Facts, one_sided: bool, published: bool
) -> AboveThreshold:
    if published:
        # The constants of arbitrary queries, of the sensitivity that count minus target has.
        reach = share.denominator if facts.replaces else share.denominator - share.numerator
        return AboveThreshold.general(epsilon, reach, one_sided=one_sided)
    if facts.replaces:
        # All counts move the same way, by one unit; a record that becomes a null costs less than that.
        return AboveThreshold.same_direction(epsilon, share.denominator, one_sided=one_sided)
    return AboveThreshold.for_order(epsilon, share, one_sided=one_sided)


@dataclass(frozen=True, eq=False)
class ScansLaw:
    """Independent first crossings, one for each order; each is made when it is needed, for it is long."""

    scans: Sequence[Scan]
    counts: Ints

    def sample(self, bits: Bits) -> Outcome:
        """One step for each order."""
        return tuple(int(scan.law(self.counts).sample(bits)) for scan in self.scans)

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the steps."""
        return sum(float(law.logpmf(step)) for law, step in zip(self._laws, outcome, strict=True))

    @cached_property
    def _laws(self) -> list[Any]:
        return [scan.law(self.counts) for scan in self.scans]

    @property
    def count(self) -> int:
        """How many outcomes there are."""
        return int((len(self.counts) + 1) ** len(self.scans))

    def outcomes(self) -> Iterator[Outcome]:
        """Every tuple of steps; one past the last means that the count never passed."""
        return itertools.product(range(len(self.counts) + 1), repeat=len(self.scans))


@dataclass(frozen=True, kw_only=True)
class Scanned(ABC):
    """What methods that scan over steps have in common."""

    def rule_options(self, facts: Facts) -> dict[str, Any]:
        """No option follows from public facts."""
        return {}

    @abstractmethod
    def cells(self, facts: Facts) -> Grid | Edges:
        """The steps."""

    @abstractmethod
    def scans(self, facts: Facts) -> list[Scan]:
        """A scan for each order."""

    @abstractmethod
    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The least and the largest possible answer."""

    def check(self, facts: Facts) -> None:
        """Refuse options that leave no steps or no scan."""
        self.cells(facts)
        self.scans(facts)

    def terms(self, facts: Facts) -> Purchase:
        """One piece for each order."""
        return facts.buy(len(facts.orders))

    def look(self, column: Column, facts: Facts) -> Ints:
        """The counts of the steps."""
        return Counts.of(column, self.cells(facts), nulls=facts.nulls).cells

    def law(self, view: Ints, facts: Facts) -> QuantileLaw:
        """The law of the steps at which the counts pass their targets."""
        return ScansLaw(self.scans(facts), view)

    def most_drawn(self, facts: Facts) -> int:
        """One step for each order."""
        return len(facts.orders)

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether there is one step for each order, or one past the last."""
        cells = self.cells(facts).cells
        return len(outcome) == len(facts.orders) and all(0 <= step <= cells for step in outcome)

    def crossed(self, outcome: Outcome, facts: Facts) -> list[int]:
        """The cells in which the counts passed their targets, in order."""
        cells = self.cells(facts).cells
        return sorted(scan.cell(step, cells) for scan, step in zip(self.scans(facts), outcome, strict=True))

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """The two ends of each step."""
        cells, top = self.cells(facts), self.ends(facts)[1]
        return [(cells.value(cell), min(cells.value(cell + 1), top)) for cell in self.crossed(outcome, facts)]

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """How far the counts at the ends of the steps are from their targets."""
        each = 1 - (1 - confidence) / len(facts.orders)
        return max(scan.rank_error(self.cells(facts).cells, each) for scan in self.scans(facts))

    def beyond(self, facts: Facts) -> str:
        """What the rank error leaves out, in words."""
        return " (not counting the values of one step)"

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        return self.scans(facts)[0].words(self.cells(facts).cells)
