"""One quantile: the exponential mechanism on the points of the grid, or permute-and-flip."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.checks import boolean, compact, keep, root_down, shown
from sfumato.data.line import Line, line_on
from sfumato.data.ranks import Ranks
from sfumato.errors import InvalidParameter
from sfumato.laws import Bits
from sfumato.privacy import ApproxDP, PureDP, PureEvent
from sfumato.quantile_methods.independent import Independent
from sfumato.quantile_methods.method import Facts, Purchase, QuantileLaw, buy, checked_emphasis
from sfumato.quantile_methods.node import Node, quantile_node
from sfumato.query import Outcome

# Permute-and-flip visits every point.
FLIP_CELLS = 2**20


@dataclass(frozen=True, kw_only=True)
class Single(Independent):
    """One quantile: the exponential mechanism on the points of the grid, or permute-and-flip.

    Guarantee:
        As `Independent` for one order. Permute-and-flip has the same constant and never a larger expected
        distance; it visits every point, so that the grid must be small. Proof: docs/proofs/quantiles.md.

    Args:
        flip: permute-and-flip instead of the exponential mechanism.
        emphasis: as for `Joint`; `auto` gives round numbers as much as `Joint` does. 0 is the mechanism of
            the literature.

    >>> Single(flip=True)
    Single(flip=True, emphasis=Fraction(0, 1))
    """

    name: ClassVar[str] = "single"

    flip: bool = False
    emphasis: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        boolean("flip", self.flip)
        keep(self, emphasis=checked_emphasis(self.emphasis))
        if self.flip and self.emphasis:
            raise InvalidParameter(f"emphasis must be 0 with flip=True, got emphasis={shown(self.emphasis)}")

    def line(self, facts: Facts) -> Line:
        """How many points each cell has: more where it begins with a round number."""
        return line_on(facts.grid, self.emphasis)

    def check(self, facts: Facts) -> None:
        """One order only; permute-and-flip needs a grid that can be listed."""
        super().check(facts)
        if len(facts.orders) != 1:
            raise InvalidParameter(
                f"method 'single' answers one order, got {len(facts.orders)}; use 'auto' for several"
            )
        if self.flip and facts.grid.cells > FLIP_CELLS:
            raise InvalidParameter(
                f"flip=True needs at most {FLIP_CELLS:,} points, got {facts.grid.cells:,}; give a step of at "
                f"least {compact((facts.grid.upper - facts.grid.lower) / FLIP_CELLS)}"
            )

    def terms(self, facts: Facts) -> Purchase:
        """One piece; permute-and-flip has no bounded range, so that its pure cost is what counts."""
        bought = facts.buy(1)
        if bought.pure or not self.flip:
            return bought
        epsilon = root_down(2 * bought.event.rho)
        if isinstance(facts.budget, ApproxDP) and facts.budget.epsilon >= epsilon:
            return buy(PureDP(facts.budget.epsilon), 1)
        return Purchase(epsilon, bought.cost, PureEvent(epsilon, "quantiles"))

    def law(self, view: Ranks, facts: Facts) -> QuantileLaw:
        """The law of the point."""
        if not self.flip:
            return super().law(view, facts)
        node = quantile_node(view, facts.orders[0], self.constants(facts)[0], sure=False)
        view.refine([node.reads()])
        return FlipLaw(node)

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        name = "permute-and-flip" if self.flip else "exponential mechanism"
        return f"{name} on {facts.grid.cells:,} points"


@dataclass(frozen=True, eq=False)
class FlipLaw:
    """Every point succeeds with the probability of its weight over the largest; one that did is chosen.

    Points visited in random order until one succeeds would give the same law.
    """

    node: Node

    def sample(self, bits: Bits) -> Outcome:
        """One point."""
        units, steps = self.node.law.coins()
        # A weight is a product of two integers out of 2**62 each: two exact coins.
        lucky = (bits.words(len(units)) >> np.uint64(2)).astype(np.int64) < units
        lucky &= (bits.words(len(steps)) >> np.uint64(2)).astype(np.int64) < steps
        found = np.flatnonzero(lucky)
        return (int(found[bits.below(len(found))]),)

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability, exactly computed; for small grids."""
        found = self.probability(outcome[0])
        return math.log(found.numerator) - math.log(found.denominator) if found else -math.inf

    def probability(self, point: int) -> Fraction:
        """p times the integral over s in (0, 1) of the product of 1 - s p' over the other points."""
        if not 0 <= point <= self.node.last:
            return Fraction(0)
        units, steps = (column.tolist() for column in self.node.law.coins())
        chances = [Fraction(unit * step, 2**124) for unit, step in zip(units, steps, strict=True)]
        series = [Fraction(1)]
        for chance in chances[:point] + chances[point + 1 :]:
            shifted = [Fraction(0), *(-chance * term for term in series)]
            series = [a + b for a, b in itertools.zip_longest(series, shifted, fillvalue=Fraction(0))]
        return chances[point] * sum((term / (k + 1) for k, term in enumerate(series)), Fraction(0))

    @property
    def count(self) -> int:
        """How many outcomes there are."""
        return self.node.last + 1

    def outcomes(self) -> Iterator[Outcome]:
        """Every point."""
        return ((point,) for point in range(self.node.last + 1))
