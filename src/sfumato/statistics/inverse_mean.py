"""The mean of a bounded column by inverse sensitivity: how many records must change for a point to be it."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar

import numpy as np

from sfumato.checks import Number, checked_confidence, compact, exact, keep, shown, whole
from sfumato.data.column import Column
from sfumato.data.extremes import Extremes
from sfumato.errors import InvalidParameter
from sfumato.laws import Choice, weight_table
from sfumato.laws.bits import Integers
from sfumato.statistics.mean_points import MeanPoints

# Levels beyond count as this one, which keeps tables short; it shows below an epsilon of 1e-4 only.
MOST_LEVELS = 2**20
# Points for each record by default: a point is far narrower than what one record can move.
POINTS_A_RECORD, MOST_POINTS = 2**10, 2**40


@dataclass(frozen=True, kw_only=True)
class InverseMean(MeanPoints):
    r"""The mean of a column by inverse sensitivity, plain or smoothed over a radius.

    The level of a point is the least number of records that must change for the mean to come within the
    radius of its cell; a point is drawn with a weight that falls by e^(-epsilon/2) a level.

    Guarantee:
        Exactly the cost stated, under substitution with a public number of rows; other facts are refused.
        The level moves by at most 1 with one record, levels are exact integers, and so are the weights.
        Proof: docs/proofs/inverse-sensitivity.md.

    Args:
        points: into how many cells the bounds are divided; None for 1024 times the number of rows.
        radius: how far, in the units of the data, points count for each other; 0 for the plain mechanism,
            None for the width of the bounds over 1000 times the number of rows.

    Raises:
        NotSupported: the number of values is private.

    References:
        [AD20].

    >>> from sfumato.privacy import PureDP
    >>> facts = {"neighbours": "substitution", "nulls": "lower", "rows": 1000}
    >>> round(InverseMean(budget=PureDP(1), bounds=(0, 1), **facts).error(1000, 0.95), 6)
    0.006
    """

    name: ClassVar[str] = "inverse_mean"

    points: int | None = None
    radius: Number | None = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.points is not None:
            keep(self, points=whole("points", self.points, least=1, most=MOST_POINTS))
        if self.radius is not None:
            radius = exact("radius", self.radius)
            if radius < 0:
                raise InvalidParameter(f"radius must not be negative, got radius={shown(self.radius)}")
            keep(self, radius=radius)

    def points_for(self, rows: int) -> int:
        """The number of cells for so many rows."""
        return min(POINTS_A_RECORD * rows, MOST_POINTS) if self.points is None else self.points

    def smoothing(self, rows: int) -> Fraction:
        """The radius, in the units of the data."""
        return (self.upper - self.lower) / (1000 * rows) if self.radius is None else Fraction(self.radius)

    def reach(self, rows: int) -> Fraction:
        """How far from a point, in lattice steps, a mean counts as there: half a cell and the radius."""
        half = Fraction(self.lattice.width, 2 * self.points_for(rows))
        return self.smoothing(rows) / self.lattice.step + half

    @property
    def described(self) -> str:
        """The mechanism in words."""
        radius = self.smoothing(self.public_size)
        smooth = f", smoothed over {compact(radius)} on both sides" if radius else ""
        return f"inverse sensitivity on {self.last + 1:,} points{smooth}"

    def table(self, rows: int) -> Integers:
        """The weight of each level; the last one holds for all later levels."""
        return weight_table(self.range / 2, min(rows, MOST_LEVELS))

    def look(self, column: Column) -> Extremes:
        """The sum, and the records that are changed first, on both sides."""
        deepest = len(self.table(self.public_size))
        return Extremes.of(column, self.lattice, nulls=self.null_rule, keep=deepest)

    def law(self, view: Extremes) -> Choice:
        """The law of the number of a point."""
        rows, last = self.public_size, self.last
        table = self.table(rows)
        full = rows * self.lattice.width
        # A point k stands at k full / last in units of the sum; with a common denominator all is integer.
        reach = rows * self.reach(rows)
        scale, slack, unit = last * reach.denominator, last * reach.numerator, full * reach.denominator
        highs = [min((scale * most + slack) // unit, last) for most in self._highest(view, len(table) - 1)]
        lows = [max(-((slack - scale * least) // unit), 0) for least in self._lowest(view, len(table) - 1)]
        return Choice.of_runs(*_runs(lows, highs, last), table)

    def _highest(self, view: Extremes, levels: int) -> Iterator[int]:
        """The largest sums that 0, 1, 2, ... changes reach: the smallest records go to the upper end."""
        gains = (self.lattice.width - int(point) for point in view.smallest[: max(levels - 1, 0)])
        return accumulate(gains, initial=view.total)

    def _lowest(self, view: Extremes, levels: int) -> Iterator[int]:
        """The smallest sums that 0, 1, 2, ... changes reach: the largest records go to the lower end."""
        losses = (-int(point) for point in view.largest[: max(levels - 1, 0)])
        return accumulate(losses, initial=view.total)

    def steps_off(self, rows: int, confidence: float) -> Fraction:
        """How many lattice steps the answer is from the mean, at most, with this confidence, on any data."""
        width, points = self.lattice.width, self.points_for(rows)
        level = _level(self.range, rows, points, checked_confidence(confidence))
        return width * Fraction(level, rows) + self.reach(rows)


def _runs(lows: list[int], highs: list[int], last: int) -> tuple[list[int], list[int]]:
    """Lengths and levels of the runs, left to right: level l lies between what l - 1 and l changes reach."""
    deepest = len(lows)
    left = [lows[-1], *(lows[level - 1] - lows[level] for level in range(deepest - 1, 0, -1))]
    right = [*(highs[level] - highs[level - 1] for level in range(1, deepest)), last - highs[-1]]
    levels = [*range(deepest, 0, -1), 0, *range(1, deepest + 1)]
    return [*left, highs[0] - lows[0] + 1, *right], levels


@lru_cache(maxsize=256)
def _level(range_: Fraction, rows: int, points: int, confidence: float) -> int:
    """The smallest level that is passed with probability at most 1 - confidence, on any data.

    P(level > j) is at most T_j/T_0 times min(max(1, 2 T_1/T_0), 1 + 2/m), where m = floor(points / rows), and
    at most 2 (m + 1) T_(j+1) / (T_0 (1 - q)), plus what the rounding of the table adds.
    docs/proofs/inverse-sensitivity.md.
    """
    table = weight_table(range_ / 2, min(rows, MOST_LEVELS))
    weights = table.astype(np.float64)
    top, second, last, cell = int(table[0]), int(table[1]), int(table[-1]), points // rows
    fall = 1 - Fraction(second, top)
    # The last weight is constant from there on: by the rounding up, or because no level is deeper.
    spread = max(1 / fall, Fraction(last if len(table) > MOST_LEVELS else 0))
    rounding = float(spread * (points + 1) / max(top, cell * second))
    factor = min(max(1.0, 2 * second / top), 1 + 2 / cell if cell else 2.0)
    side = 2 * (cell + 1) / float(fall)
    failure = (1 - confidence) * (1 - 1e-9)
    passed = np.minimum(factor * weights[:-1], side * weights[1:]) / top + rounding
    enough = np.flatnonzero(passed <= failure)
    return int(enough[0]) if enough.size else rows
