"""The mean of a bounded column by the exponential mechanism on a public row of points."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.checks import checked_confidence, keep, whole
from sfumato.data.column import Column
from sfumato.data.counts import Sums
from sfumato.laws import TruncatedLaplace
from sfumato.statistics.inverse_mean import MOST_POINTS, POINTS_A_RECORD
from sfumato.statistics.mean_points import MeanPoints


@dataclass(frozen=True, kw_only=True)
class ExponentialMean(MeanPoints):
    r"""The mean of a column by the exponential mechanism: points near it are more likely.

    On [0, 1] the point k/N has the weight :math:`\exp(-\frac{n\varepsilon}{2}|k/N - \bar x|)`, with exact
    rational distances. As N grows the law tends to a Laplace law that is truncated, not clamped, to the
    bounds: see `accuracy.MeanLimit`.

    Guarantee:
        Exactly the cost stated, under substitution with a public number of rows; other facts are refused.
        One record moves every distance by at most 1/n. Proof: docs/proofs/inverse-sensitivity.md.

    Args:
        points: into how many cells N the bounds are divided; None for 1024 times the number of rows.

    Raises:
        NotSupported: the number of values is private.

    References:
        [MT07].

    >>> from sfumato.privacy import PureDP
    >>> facts = {"neighbours": "substitution", "nulls": "lower", "rows": 1000}
    >>> round(ExponentialMean(budget=PureDP(1), bounds=(0, 1), **facts).error(1000, 0.95), 6)
    0.005992
    """

    name: ClassVar[str] = "exponential_mean"

    points: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.points is not None:
            keep(self, points=whole("points", self.points, least=1, most=MOST_POINTS))

    def points_for(self, rows: int) -> int:
        """The number of cells for so many rows."""
        return min(POINTS_A_RECORD * rows, MOST_POINTS) if self.points is None else self.points

    def scale(self, rows: int) -> Fraction:
        """How many points away the weight is a factor e smaller."""
        return 2 * self.points_for(rows) / (self.range * rows)

    @property
    def described(self) -> str:
        """The mechanism in words."""
        return f"exponential mechanism on {self.last + 1:,} points by their distance from the mean"

    def look(self, column: Column) -> Sums:
        """The exact integer sum."""
        return Sums.of(column, self.lattice, nulls=self.null_rule)

    def law(self, view: Sums) -> TruncatedLaplace:
        """The law of the number of a point."""
        rows, last = self.public_size, self.last
        above = view.first - self.lattice.low * rows
        center = Fraction(above * last, self.lattice.width * rows)
        return TruncatedLaplace(center=center, scale=self.scale(rows), low=0, high=last)

    def steps_off(self, rows: int, confidence: float) -> Fraction:
        """How many lattice steps the answer is from the mean, at most, with this confidence, on any data."""
        # On each side of the mean, t points and more away have at most e^(-t / scale) of that side's weight.
        failure = (1 - checked_confidence(confidence)) * (1 - 1e-9)
        away = math.ceil(self.scale(rows) * Fraction(-math.log(failure)))
        return self.lattice.width * Fraction(min(away, self.points_for(rows)), self.points_for(rows))
