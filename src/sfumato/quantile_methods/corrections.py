"""Moving a drawn quantile by the number of ranks that noisy counts say it is off."""

from fractions import Fraction
from typing import NamedTuple

from sfumato.data.line import line_on
from sfumato.grid import Grid
from sfumato.quantile_methods.method import EMPHASIS

# Up to so many times as many values as expected between two thresholds are taken to be spread evenly; what is
# in excess of that is a heap. Smaller numbers take noise for heaps.
MOST_DENSE = 2


class Edge(NamedTuple):
    """A threshold next to an order: where it is, how many ranks away it was aimed, and its estimated offset.

    The offset is the estimated number of values below the threshold minus the target rank.
    """

    end: Fraction
    ranks: float
    offset: float


def is_round(grid: Grid, value: Fraction, width: Fraction) -> bool:
    """Whether a drawn value is a round number, of a kind of which at most one is inside so wide an interval.

    A draw seldom falls on such a number unless many values are equal to it, and then it is the quantile.

    >>> grid = Grid.of_step(0, 1000, Fraction(1, 100))
    >>> [is_round(grid, value, Fraction(4)) for value in (Fraction(15), Fraction(17), Fraction(151, 10))]
    [True, False, False]
    """
    line, cells = line_on(grid, EMPHASIS), width / grid.step
    steps = [level.cells for level in line.levels if level.cells >= cells]
    cell = (value - grid.lower) / grid.step
    # Each step is a multiple of the next.
    return bool(steps) and (cell + line.origin) % steps[-1] == 0


def moved(value: Fraction, below: Edge, above: Edge, weight: float) -> Fraction:
    """The value, moved towards the target by a part of the ranks that it is off, up to a threshold.

    Values between the thresholds are taken to be spread evenly. Where there are far more than expected,
    those in excess are taken to be equal to the drawn value: of many equal values one is drawn, and must not
    be left for a correction by a few ranks.

    Args:
        value: the drawn quantile.
        below: the threshold below it.
        above: the threshold above it.
        weight: the part of the offset to correct, from 0 to 1.

    >>> left, right = Edge(Fraction(0), 10, -8), Edge(Fraction(2), 10, 12)
    >>> moved(Fraction(1), left, right, 0.5)
    Fraction(9, 10)
    >>> moved(Fraction(1), left._replace(offset=-250), right._replace(offset=250), 0.5)
    Fraction(1, 1)
    """
    aimed = below.ranks + above.ranks
    even = min(max(above.offset - below.offset, 0) / aimed, MOST_DENSE)
    if not below.end < value < above.end or not even:
        # Thresholds in the cell of the value leave it where it is.
        return value
    # How far the thresholds are from the value in ranks of which as many as expected lie between them.
    low = aimed * float((value - below.end) / (above.end - below.end))
    for edge, ranks, excess in (
        (below, low, below.offset + low * even),
        (above, aimed - low, (aimed - low) * even - above.offset),
    ):
        if excess > 0:
            part = min(weight * excess / (ranks * even), 1)
            return value + (edge.end - value) * Fraction(part).limit_denominator(10**6)
    return value
