"""Quantiles from one histogram: the first edge at which a noisy cumulative count passes the target."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.checks import boolean, keep, whole
from sfumato.grid import Grid
from sfumato.quantile_methods.crossings import Scan, Scanned, scans
from sfumato.quantile_methods.method import Facts
from sfumato.query import Outcome

MOST_STEPS = 2**20


@dataclass(frozen=True, kw_only=True)
class FromHistogram(Scanned):
    """Cumulative counts at equal steps, and AboveThreshold for each order; one pass over the data.

    Never the most accurate; for teaching, and beside the published algorithm.

    Guarantee:
        Each order costs its part of the budget, with the constants of counts that all move the same way.
        Proof: docs/proofs/above-threshold.md.

    Args:
        steps: into how many steps the bounds are divided; 1.5 n / log n unless given.
        one_sided: geometric noise, of half the variance of Laplace noise.
        published: the constants and the answer of the published algorithm: four times the noise on queries,
            Laplace noise, and the left edge of the step.

    >>> FromHistogram(steps=64).steps
    64
    """

    name: ClassVar[str] = "histogram"
    needs_bounds: ClassVar[bool] = True
    by_rule: ClassVar[Mapping[str, Any]] = {"steps": MOST_STEPS}

    steps: int | None = None
    one_sided: bool = True
    published: bool = False

    def __post_init__(self) -> None:
        if self.steps is not None:
            keep(self, steps=whole("steps", self.steps, least=1, most=MOST_STEPS))
        boolean("one_sided", self.one_sided)
        boolean("published", self.published)

    @property
    def needs_size(self) -> bool:
        """Whether the number of steps follows from that of the values."""
        return self.steps is None

    def rule_options(self, facts: Facts) -> dict[str, Any]:
        """The number of steps."""
        return {"steps": self._number(facts)}

    def _number(self, facts: Facts) -> int:
        if self.steps is not None:
            return self.steps
        size = max(facts.known_size, 3)
        return min(math.ceil(1.5 * size / math.log(size)), MOST_STEPS)

    def cells(self, facts: Facts) -> Grid:
        """The steps: the grid's own points where there are no more of them."""
        grid, wanted = facts.grid, self._number(facts)
        return grid if grid.cells <= wanted else Grid(grid.lower, grid.upper, cells=wanted)

    def scans(self, facts: Facts) -> list[Scan]:
        """A scan for each order."""
        return scans(facts, one_sided=self.one_sided and not self.published, published=self.published)

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """The middles of the steps, in order; where steps are points, the points."""
        grid = self.cells(facts)
        whole_points = self.published or grid.step * (grid.cells - 1) == grid.upper - grid.lower
        half = 0 if whole_points else grid.step / 2
        return [grid.value(cell) + half for cell in self.crossed(outcome, facts)]

    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The bounds."""
        return facts.grid.lower, facts.grid.upper
