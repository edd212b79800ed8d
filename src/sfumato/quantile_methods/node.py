"""One quantile of one part of the data: the exponential mechanism on the points of a line."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.data.counts import MAX_ROWS
from sfumato.data.ranks import Ranks
from sfumato.grid import Ints
from sfumato.laws import Bits
from sfumato.laws.graded import Graded
from sfumato.laws.grades import Grades, grades


@dataclass(frozen=True, eq=False)
class Target:
    """The ranks asked for among some records: a point is at distance max(below - low, high - upto, 0).

    `below` counts the records under the point, `upto` those at or under it; so ties are one target, not many.
    Both ends are equal for a quantile, and k - 1, k for the length of inverse sensitivity.
    """

    low: Fraction
    high: Fraction


@dataclass(frozen=True, eq=False)
class Node:
    """The law of a point near a target rank of the records numbered after+1..upto, on points first..last.

    A point weighs exp(-c d) for its distance d to the target, as an integer table, so that no rounding adds
    to the cost. `smooth` lets a point count with the distance of the best point within so many points of it.

    Guarantee:
        With R the range that one changed record gives to the change of d over the points, the law costs c R.
        For a target of exactly order times the number of records, R is 2 max(order, 1 - order) if a record is
        added or removed, and 2 if it is replaced. Proof: docs/proofs/quantiles.md.
    """

    ranks: Ranks
    first: int
    last: int
    after: int
    upto: int
    target: Target
    c: Fraction
    # In what fractions of a rank distances are counted. A public number, and not the denominator that the
    # target happens to have: tables of other fractions have other floors, which would tell the data apart.
    parts: int
    smooth: int = 0
    # Whether the floor of the weights is low enough for all points together; else it fits 62 bits.
    sure: bool = True
    # Whether all points of a cell count alike, and round numbers have several.
    wide_cells: bool = False

    @cached_property
    def _grades(self) -> Grades:
        return grades(self.c, self.parts, self.ranks.points if self.sure else 1)

    def window(self) -> tuple[int, int]:
        """The ranks outside of which all weights are equal, as far as there are records."""
        reach = self._grades.reach
        low = max(math.ceil(self.target.high) - reach, 0)
        high = min(math.floor(self.target.low) + reach, self.upto - self.after)
        return self.after + low, self.after + high

    def reads(self) -> tuple[int, int]:
        """The ranks that the law reads: one more than the window, where the last point ends."""
        low, high = self.window()
        return low, high + 1

    def _ends(self, low: int, high: int) -> tuple[Ints, Ints]:
        """The points of the records low..high, as ends of what is on their left and on their right.

        Beyond the records of this node they are the ends of its line. Both differ where a cell has several
        points for all of its records, as round numbers have.
        """
        first, last = max(low, self.after + 1), min(high, self.upto)
        before = [self.first] if low <= self.after else []
        behind = [self.last] if high > self.upto else []

        def padded(found: Ints) -> Ints:
            return np.concatenate([before, found, behind]).astype(np.int64) if before or behind else found

        if self.wide_cells:
            cells, line = self.ranks.cells(first, last), self.ranks.line
            return padded(line.begins(cells)), padded(line.begins(cells + 1) - 1)
        found = padded(self.ranks.positions(first, last))
        if self.smooth:
            return np.maximum(found - self.smooth, self.first), np.minimum(found + self.smooth, self.last)
        return found, found

    @cached_property
    def law(self) -> Graded:
        """The exact law of the point, as an index counted from `first`."""
        if self.upto == self.after:
            whole = np.array([self.last - self.first + 1])
            return Graded(whole, np.zeros(1, dtype=np.int64), self._grades)
        parts, last = self._grades.parts, self._grades.last
        low, high = self.window()
        downs, ups = self._ends(low, high + 1)
        begin = low - self.after
        # The points at distance 0 lie between these two records; left of them a point is at the distance
        # of the records up to it, right of them at that of the records below it.
        left, right = math.ceil(self.target.high) - begin, math.floor(self.target.low) + 1 - begin
        lower, upper = np.diff(downs[: left + 1]), np.diff(ups[right:])
        lengths = np.concatenate(
            [
                [downs[0] - self.first],
                lower,
                [ups[right] - downs[left] + 1],
                upper,
                [self.last - ups[-1]],
            ]
        )
        below = int(self.target.high * parts) - parts * (begin + np.arange(left))
        above = parts * (begin + right + np.arange(len(upper))) - int(self.target.low * parts)
        levels = np.concatenate([[last], below, [0], above, [last]])
        return Graded(lengths, np.minimum(levels, last), self._grades)

    def sample(self, bits: Bits) -> int:
        """A point."""
        return self.first + self.law.sample(bits)

    def logpmf(self, point: int) -> float:
        """The log probability of a point."""
        return self.law.logpmf(point - self.first)


def quantile_node(ranks: Ranks, order: Fraction, c: Fraction, *, sure: bool = True) -> Node:
    """The law of one quantile of all the data, on a line that divides no cell."""
    target, parts = Target(order * ranks.size, order * ranks.size), order.denominator
    wide = bool(ranks.line.levels)
    return Node(ranks, 0, ranks.points - 1, 0, ranks.size, target, c, parts, sure=sure, wide_cells=wide)


def tail_rank(c: Fraction, parts: int, points: int, failure: float) -> int:
    """The smallest distance, in ranks, that a node passes with probability at most `failure` on any data.

    MAX_ROWS if there is none: where the budget is tiny, points at the floor are as likely as that.

    Some point is at distance 0 and has the top weight; each of the others weighs at most that of its level.
    """
    graded = grades(c, parts, points)
    top, floor = graded.weights(np.array([0, graded.last]))
    if floor * points > Fraction(failure) * top:
        return MAX_ROWS
    low, high = 0, graded.last
    while low < high:
        level = (low + high) // 2
        weight = graded.weights(np.array([level]))[0]
        low, high = (low, level) if weight * points <= Fraction(failure) * top else (level + 1, high)
    return -(-low // parts)
