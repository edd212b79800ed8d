"""Quantiles of data without known bounds: first crossings over points that grow geometrically."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

from sfumato.checks import Number, exact, one_of, positive, shown
from sfumato.data.column import Column
from sfumato.data.counts import Counts
from sfumato.errors import InvalidParameter
from sfumato.grid import MAX_EDGES, Edges, Ints
from sfumato.quantile_methods.crossings import Scan, ScansLaw, crossed, scans, terms
from sfumato.quantile_methods.method import Facts, Purchase, QuantileLaw
from sfumato.query import Outcome

Side = Literal["middle", "outward"]


@dataclass(frozen=True, kw_only=True)
class Unbounded:
    """Points 0, (r - 1) u, (r² - 1) u, ... on both sides of zero, and AboveThreshold for each order.

    Guarantee:
        Each order costs its part of the budget, with the constants of counts that all move the same way. No
        bounds are read from the data. Proof: docs/proofs/above-threshold.md.

    Args:
        ratio: how much further each point is than the one before; by default 1 + 1 / (epsilon n), between
            1.001 and 1.1.
        unit: the size u from which on the points grow; below it they are about (ratio - 1) u apart.
        largest: values beyond it, on either side, count as it.
        lower: the smallest possible value, where that is public; then there are no points below it.
        side: "middle" of the step that is found, or "outward" for its end away from the middle of the data.

    >>> Unbounded(lower=0).side
    'middle'
    """

    name: ClassVar[str] = "unbounded"
    needs_bounds: ClassVar[bool] = False

    ratio: Number | None = None
    unit: Number = 1
    largest: Number = 2**60
    lower: Number | None = None
    side: Side = "middle"

    def __post_init__(self) -> None:
        if self.ratio is not None:
            ratio = exact("ratio", self.ratio)
            if not Fraction(10_001, 10_000) <= ratio <= 1000:
                raise InvalidParameter(f"ratio must be from 1.0001 to 1000, got ratio={shown(self.ratio)}")
            object.__setattr__(self, "ratio", ratio)
        object.__setattr__(self, "unit", positive("unit", self.unit))
        object.__setattr__(self, "largest", positive("largest", self.largest))
        if not 1 < Fraction(self.largest) / Fraction(self.unit) <= 2**200:
            raise InvalidParameter(
                f"largest must be above unit, and at most 2**200 times it, got largest={shown(self.largest)}"
            )
        if self.lower is not None:
            object.__setattr__(self, "lower", exact("lower", self.lower))
        one_of("side", self.side, ("middle", "outward"))

    @property
    def needs_size(self) -> bool:
        """Whether the ratio follows from the number of values."""
        return self.ratio is None

    def check(self, facts: Facts) -> None:
        """Refuse options that give too many points."""
        self.cells(facts)

    def terms(self, facts: Facts) -> Purchase:
        """One piece for each order."""
        return terms(facts)

    def growth(self, facts: Facts) -> Fraction:
        """The ratio, given or by the rule."""
        if self.ratio is not None:
            return Fraction(self.ratio)
        # The step should be as fine as the noise: one rank of 1 / epsilon among n.
        wanted = 1 + 1 / (float(terms(facts).range) * facts.known_size)
        return Fraction(min(max(wanted, 1.001), 1.1)).limit_denominator(10_000)

    def cells(self, facts: Facts) -> Edges:
        """The steps between the points."""
        lower = None if self.lower is None else Fraction(self.lower)
        return _edges(self.growth(facts), Fraction(self.unit), Fraction(self.largest), lower)

    def _scans(self, facts: Facts) -> list[Scan]:
        return scans(facts, one_sided=True, published=False)

    def look(self, column: Column, facts: Facts) -> Ints:
        """The counts of the steps."""
        return Counts.of(column, self.cells(facts), nulls=facts.nulls).cells

    def law(self, view: Ints, facts: Facts) -> QuantileLaw:
        """The law of the steps at which the counts pass their targets."""
        return ScansLaw([scan.law(view) for scan in self._scans(facts)])

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether there is one step for each order, or one past the last."""
        cells = self.cells(facts).cells
        return len(outcome) == len(facts.orders) and all(0 <= step <= cells for step in outcome)

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """A point of each step, in order."""
        edges = self.cells(facts)
        found = crossed(self._scans(facts), outcome, edges.cells)
        return [self._point(edges, cell, q) for cell, q in zip(found, facts.orders, strict=True)]

    def _point(self, edges: Edges, cell: int, order: Fraction) -> Fraction:
        low, high = edges.value(cell), edges.value(cell + 1)
        if self.side == "middle":
            return (low + high) / 2
        return low if order < Fraction(1, 2) else high

    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The first and the last point."""
        edges = self.cells(facts)
        return edges.value(0), edges.value(edges.cells)

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """The two ends of each step."""
        cells = self.cells(facts)
        found = crossed(self._scans(facts), outcome, cells.cells)
        top = self.ends(facts)[1]
        return [(cells.value(cell), min(cells.value(cell + 1), top)) for cell in found]

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """How far the counts at the ends of the steps are from their targets."""
        each = 1 - (1 - confidence) / len(facts.orders)
        return max(scan.rank_error(self.cells(facts).cells, each) for scan in self._scans(facts))

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        scan = self._scans(facts)[0].words(self.cells(facts).cells)
        return f"{scan} that grow by {float(self.growth(facts)):g}"


@lru_cache(maxsize=16)
def _edges(ratio: Fraction, unit: Fraction, largest: Fraction, lower: Fraction | None) -> Edges:
    count = math.ceil(math.log(float(largest / unit) + 1) / math.log(float(ratio)))
    if 2 * count > MAX_EDGES:
        raise InvalidParameter(f"ratio must leave at most {MAX_EDGES} steps, got ratio={shown(ratio)}")
    # Points are public numbers of float64; how they were computed does not matter for the guarantee.
    sizes = [Fraction(float(unit) * math.expm1(i * math.log(float(ratio)))) for i in range(1, count)]
    sizes.append(largest)
    if lower is not None:
        return Edges((lower, *_distinct([lower + size for size in sizes], lower)))
    ups = _distinct(sizes, Fraction(0))
    return Edges((*(-size for size in reversed(ups)), Fraction(0), *ups))


def _distinct(points: list[Fraction], first: Fraction) -> list[Fraction]:
    """The points that float64 tells from the one before."""
    kept, last = [], float(first)
    for point in points:
        if float(point) > last:
            kept.append(point)
            last = float(point)
    return kept
