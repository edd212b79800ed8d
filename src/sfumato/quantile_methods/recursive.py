"""The middle order first, then each side on its own records: many orders for the price of a few."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from sfumato.data.counts import MAX_ROWS
from sfumato.data.ranks import Ranks
from sfumato.laws import Bits
from sfumato.laws.grades import grades
from sfumato.privacy import ConcentratedEvent
from sfumato.quantile_methods.method import COARSEST, Facts, Orders, Purchase, QuantileLaw, Spread
from sfumato.quantile_methods.node import Node, Target, tail_rank
from sfumato.query import Outcome

# What a quarter of the records must outweigh for a recursion to find its way between the points: twice the
# log of their number on the coarsest grid.
LEAST_WEIGHT = 2 * COARSEST * math.log(2)


@dataclass(frozen=True, eq=False)
class Branch:
    """One order, relative to the records that its node sees, and whether these are all of them."""

    middle: int
    relative: Fraction
    root: bool


def branches(facts: Facts) -> list[Branch]:
    """The nodes of the recursion, by the place of their orders."""
    orders = facts.orders
    found: list[Branch] = []
    parts = [(0, len(orders), Fraction(0), Fraction(1))]
    while parts:
        begin, end, low, high = parts.pop()
        if begin == end:
            continue
        middle = (begin + end) // 2
        # Any public fraction between 0 and 1 keeps the guarantee; a short one keeps the tables short.
        relative = (orders[middle] - low) / (high - low)
        if relative.denominator > facts.finest:
            relative = relative.limit_denominator(facts.finest)
        found.append(Branch(middle, relative, end - begin == len(orders)))
        parts += [(middle + 1, end, orders[middle], high), (begin, middle, low, orders[middle])]
    return sorted(found, key=lambda branch: branch.middle)


@dataclass(frozen=True, eq=False)
class RecursiveLaw:
    """The law of the points, from the middle order down.

    Records at the released point go to the left side, a public rule; both sides keep the point itself.
    """

    ranks: Ranks
    tree: list[Branch]
    constants: Orders

    def sample(self, bits: Bits) -> Outcome:
        """One point for each order, not decreasing."""
        points: dict[int, int] = {}
        for middle, node in self._visit(points):
            points[middle] = node.sample(bits)
        return tuple(points[i] for i in range(len(self.tree)))

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the points."""
        if any(left > right for left, right in itertools.pairwise(outcome)):
            return -math.inf
        known = dict(enumerate(outcome))
        return sum(node.logpmf(known[middle]) for middle, node in self._visit(known))

    @property
    def count(self) -> int:
        """How many outcomes there are."""
        return math.comb(self.ranks.points + len(self.tree) - 1, len(self.tree))

    def outcomes(self) -> Iterator[Outcome]:
        """Every tuple of points that does not decrease."""
        return itertools.combinations_with_replacement(range(self.ranks.points), len(self.tree))

    def _visit(self, points: dict[int, int]) -> Iterator[tuple[int, Node]]:
        """The nodes from the root down; each is made when the points above it are known."""
        parts = [(0, len(self.tree), 0, self.ranks.points - 1, 0, self.ranks.size)]
        while parts:
            begin, end, first, last, after, upto = parts.pop()
            if begin == end:
                continue
            middle = (begin + end) // 2
            relative, c = self.tree[middle].relative, self.constants[middle]
            target = Target(relative * (upto - after), relative * (upto - after))
            yield middle, Node(self.ranks, first, last, after, upto, target, c, relative.denominator)
            point = points[middle]
            at = min(max(self.ranks.upto(point), after), upto)
            parts.append((middle + 1, end, point, last, at, upto))
            parts.append((begin, middle, first, point, after, at))


@dataclass(frozen=True, kw_only=True)
class Recursive(Spread):
    """The middle order first, then each side on its own records; ties are spread over places of their own.

    Guarantee:
        All nodes of a level together cost one piece. Under substitution a record may leave one node and enter
        another, so that below the root a node of relative order q has the constant of a quarter of the range
        over max(q, 1 - q). Proof: docs/proofs/quantiles.md.

    Args:
        subcells: as for `Joint`.
        emphasis: as for `Joint`.

    >>> Recursive().name
    'recursive'
    """

    name: ClassVar[str] = "recursive"

    def terms(self, facts: Facts) -> Purchase:
        """One piece for each level of the recursion."""
        bought = facts.buy(len(facts.orders).bit_length())
        if bought.pure or not facts.replaces:
            return bought
        # A replaced record moves two nodes of a level: their rhos add up to that of one range, but the
        # interval of their log ratios is longer, so that no pure cost may be claimed from it.
        return replace(bought, event=ConcentratedEvent(bought.event.rho, "quantiles"))

    def constants(self, facts: Facts) -> Orders:
        """The fall in log weight for one rank, for each order."""
        bought = self.terms(facts)
        span = bought.range
        # Two ranges add up in a pure cost, and their squares under zCDP: 3535/10000 is below 1/sqrt(8).
        share = Fraction(1, 4) if bought.pure else Fraction(3535, 10_000)
        found = []
        for branch in branches(facts):
            far = max(branch.relative, 1 - branch.relative)
            if not facts.replaces:
                found.append(span / (2 * far))
            else:
                found.append(span / 2 if branch.root else min(span / 2, span * share / far))
        return tuple(found)

    def finds_its_way(self, facts: Facts) -> bool:
        """Whether the first nodes tell half of their records from no records; if not, all below are lost."""
        return float(min(self.constants(facts))) * facts.known_size / 4 >= LEAST_WEIGHT

    def law(self, view: Ranks, facts: Facts) -> QuantileLaw:
        """The law of the points."""
        constants, tree = self.constants(facts), branches(facts)
        view.refine(self._windows(view.size, view.points, facts.orders, tree, constants))
        return RecursiveLaw(view, tree, constants)

    @staticmethod
    def _windows(
        size: int, points: int, orders: Orders, tree: list[Branch], constants: Orders
    ) -> Iterator[tuple[int, int]]:
        # The errors of the nodes above move a target by a few units of 1/c; a node that strays further
        # sorts what it needs by itself.
        for order, branch, c in zip(orders, tree, constants, strict=True):
            reach = grades(c, branch.relative.denominator, points).reach + math.ceil(16 / c)
            center = math.floor(order * size)
            yield center - reach, center + reach

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """The errors of the nodes on the way from the root add up."""
        levels = len(facts.orders).bit_length()
        failure = (1 - confidence) / len(facts.orders)
        points = self.points(facts)
        pairs = zip(branches(facts), self.constants(facts), strict=True)
        worst = max(tail_rank(c, b.relative.denominator, points, failure) for b, c in pairs)
        return min(levels * (worst + self.shared(facts)), MAX_ROWS)

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        levels = len(facts.orders).bit_length()
        times = "once" if levels == 1 else f"in {levels} levels"
        return f"exponential mechanism on {facts.grid.cells:,} points, recursive {times}"
