"""Quantiles of data without known bounds: first crossings over points that grow geometrically."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

from sfumato.checks import Number, exact, one_of, positive, shown
from sfumato.errors import InvalidParameter
from sfumato.grid import MAX_EDGES, Edges
from sfumato.quantile_methods.crossings import Scan, Scanned, scans
from sfumato.quantile_methods.method import Facts
from sfumato.query import Outcome

Side = Literal["middle", "outward"]


@dataclass(frozen=True, kw_only=True)
class Unbounded(Scanned):
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
    by_rule: ClassVar[Mapping[str, Any]] = {"ratio": Fraction(10_999, 9_999)}

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

    def rule_options(self, facts: Facts) -> dict[str, Any]:
        """How fast the points grow."""
        return {"ratio": self.growth(facts)}

    def growth(self, facts: Facts) -> Fraction:
        """The ratio, given or by the rule."""
        if self.ratio is not None:
            return Fraction(self.ratio)
        # The step should be as fine as the noise: one rank of 1 / epsilon among n.
        wanted = 1 + 1 / (float(self.terms(facts).range) * facts.known_size)
        return Fraction(min(max(wanted, 1.001), 1.1)).limit_denominator(10_000)

    def cells(self, facts: Facts) -> Edges:
        """The steps between the points."""
        lower = None if self.lower is None else Fraction(self.lower)
        return _edges(self.growth(facts), Fraction(self.unit), Fraction(self.largest), lower)

    def scans(self, facts: Facts) -> list[Scan]:
        """A scan for each order."""
        return scans(facts, one_sided=True, published=False)

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """A point of each step, in order."""
        edges = self.cells(facts)
        pairs = zip(self.crossed(outcome, facts), facts.orders, strict=True)
        return [self._point(edges, cell, q) for cell, q in pairs]

    def _point(self, edges: Edges, cell: int, order: Fraction) -> Fraction:
        low, high = edges.value(cell), edges.value(cell + 1)
        if self.side == "middle":
            return (low + high) / 2
        return low if order < Fraction(1, 2) else high

    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The first and the last point."""
        edges = self.cells(facts)
        return edges.value(0), edges.value(edges.cells)

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        return f"{super().words(facts)} that grow by {float(self.growth(facts)):g}"


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
