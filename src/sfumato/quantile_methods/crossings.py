"""Quantiles as first crossings: a scan over increasing points until the count passes the target."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.grid import Ints
from sfumato.laws import Bits
from sfumato.mechanisms import AboveThreshold
from sfumato.quantile_methods.method import Facts, Purchase
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


def crossed(found: list[Scan], outcome: Outcome, cells: int) -> list[int]:
    """The cells in which the counts passed their targets, in order."""
    return sorted(scan.cell(step, cells) for scan, step in zip(found, outcome, strict=True))


def terms(facts: Facts) -> Purchase:
    """One piece for each order."""
    return facts.buy(len(facts.orders))


@dataclass(frozen=True, eq=False)
class ScansLaw:
    """Independent first crossings, one for each order."""

    parts: Sequence[Any]

    def sample(self, bits: Bits) -> Outcome:
        """One step for each order."""
        return tuple(int(part.sample(bits)) for part in self.parts)

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the steps."""
        return sum(float(part.logpmf(step)) for part, step in zip(self.parts, outcome, strict=True))

    @property
    def count(self) -> int:
        """How many outcomes there are."""
        return math.prod(part.points for part in self.parts)

    def outcomes(self) -> Iterator[Outcome]:
        """Every tuple of steps; one past the last means that the count never passed."""
        return itertools.product(*(range(part.points) for part in self.parts))
