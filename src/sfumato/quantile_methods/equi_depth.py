"""Leaves that hold about equally many values, drawn first; then a tree of noisy counts over them."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sfumato.checks import Number, exact, keep, shown, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS
from sfumato.data.ranks import Ranks
from sfumato.errors import InvalidParameter
from sfumato.grid import Ints
from sfumato.privacy import ComposedEvent, PureDP
from sfumato.quantile_methods.adaptive import AdaptiveLaw, CountsLaw
from sfumato.quantile_methods.framed import divisible
from sfumato.quantile_methods.interpolated import STEEPER
from sfumato.quantile_methods.method import BRIDGE, MEAN_SIZE, SUBCELLS, Facts, Purchase, QuantileLaw
from sfumato.quantile_methods.node_counts import NodeCounts
from sfumato.quantile_methods.recursive import Recursive
from sfumato.quantile_methods.tree_consistency import MAX_BRANCHING
from sfumato.query import Outcome

LEAVES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
# Into how many parts each leaf may be divided, and how many parts there may be in all: fewer leave heaps of
# equal values in parts with many others.
PARTS, LEAST_PARTS, MOST_PARTS = (1, 2, 4, 8, 16), 2**5, 2**13
# The edges and all counts, where nodes have at least four children, as with so many parts.
MOST_DRAWN = LEAVES[-1] + 4 * MOST_PARTS // 3
# The parts of the budget that may draw the edges.
SHARES = tuple(Fraction(part, 8) for part in (1, 2, 3, 4))
# The log weight that a draw loses, at least, when it misplaces all values of a leaf: so much also tells edges
# apart where bounds are vague. With the largest share less will do, because nothing more can be bought.
LEAST_WEIGHT, LAST_WEIGHT = 4, 3
# The same for a quarter of all values, so that no edge is drawn where there are none.
LEAST_SEEN = 12
# Counts are made consistent, and increase: the errors that benchmarks/quantile_grid.py measures are this part
# of those of the sums alone.
MEASURED = 0.85
# What is lost beyond the outer edges, however many parts leaves have, as a part of what is lost with one.
LOST = 1 / 64
# A part with so many times as many values as the others holds a heap of equal ones.
HEAPED = 2.5
# The standard deviations by which noise may exceed that.
NOISE = 3


class Plan(NamedTuple):
    """How many leaves there are, into how many parts each is divided, and what draws their edges."""

    leaves: int
    parts: int
    # The part of the budget that draws the edges.
    share: Fraction
    # The log weight that a draw loses with each rank, and the mean error; infinite if edges may be lost.
    fall: float
    error: float


@dataclass(frozen=True, kw_only=True)
class EquiDepth:
    """Counts a tree over leaves whose edges are quantiles drawn before, and reads the answers off the counts.

    A small part of the budget draws the edges, so that leaves are narrow where data are dense, whatever the
    bounds are. Each leaf may be divided into parts of equal width, which are counted. Values are taken to be
    spread evenly inside a part. Where a part holds far more values than expected, it holds a heap, which is
    taken to be at the roundest number in it.

    Guarantee:
        The budget is divided in two parts that compose to it; the leaves follow from what was drawn before.
        Intervals hold on any data, all orders together. Proof: docs/proofs/equi-depth.md.

    Args:
        leaves: how many leaves there are, a power of two.
        parts: into how many parts a leaf is divided.
        share: the part of the budget that draws the edges.
        branching: how many children a node of the tree has.
        subcells: into how many points a cell is divided where the edges are drawn; a power of two.

        Each of the first three is None for what makes the expected error least, and `branching` for the best
        number for the parts and the noise.

    References:
        [HRMS10] for counts made consistent by least squares.

    >>> EquiDepth(leaves=64, parts=4)
    EquiDepth(leaves=64, parts=4, share=None, branching=None, subcells=16777216)
    """

    name: ClassVar[str] = "equi_depth"
    needs_bounds: ClassVar[bool] = True
    by_rule: ClassVar[Mapping[str, Any]] = {
        "leaves": LEAVES[-1],
        "parts": PARTS[-1],
        "share": SHARES[-2],
        "branching": MAX_BRANCHING,
    }

    leaves: int | None = None
    parts: int | None = None
    share: Number | None = None
    branching: int | None = None
    subcells: int = SUBCELLS

    def __post_init__(self) -> None:
        if self.leaves is not None:
            count = whole("leaves", self.leaves, least=2, most=LEAVES[-1])
            if count & (count - 1):
                raise InvalidParameter(f"leaves must be a power of two; got {count}")
            keep(self, leaves=count)
        if self.parts is not None:
            keep(self, parts=whole("parts", self.parts, least=1, most=PARTS[-1]))
        if self.share is not None:
            share = exact("share", self.share)
            if not 0 < share < 1:
                raise InvalidParameter(f"share must be inside (0, 1); got {shown(self.share)}")
            keep(self, share=share)
        if self.branching is not None:
            keep(self, branching=whole("branching", self.branching, least=2, most=MAX_BRANCHING))
        keep(self, subcells=self._edges.subcells)

    @property
    def needs_size(self) -> bool:
        """The number of leaves, and the share for their edges, follow from the number of values."""
        return True

    @property
    def _edges(self) -> Recursive:
        """What draws the edges, which need not be round numbers."""
        return Recursive(subcells=self.subcells, emphasis=Fraction(0))

    @lru_cache(maxsize=128)  # noqa: B019  reason: a method is a small frozen value
    def plan(self, facts: Facts) -> Plan:
        """The leaves and the share with the least error expected, of those whose draws tell leaves apart."""
        leaves = LEAVES if self.leaves is None else (self.leaves,)
        parts = PARTS if self.parts is None else (self.parts,)
        shares = SHARES if self.share is None else (Fraction(self.share),)
        fits = [
            pair
            for pair in itertools.product(leaves, parts)
            if LEAST_PARTS <= pair[0] * pair[1] <= MOST_PARTS
        ]
        pairs = fits or [(leaves[0], parts[0])]
        plans = [self._planned(facts, *pair, share) for pair in pairs for share in shares]
        # If no draw tells anything, the fewest leaves with the largest share come nearest to that.
        best = min(plans, key=lambda plan: plan.error)
        return best if best.error < math.inf else plans[len(shares) - 1]

    def rule_options(self, facts: Facts) -> dict[str, Any]:
        """The options that follow from public facts."""
        plan, nodes = self.plan(facts), self.nodes(facts)
        return {
            "leaves": plan.leaves,
            "parts": plan.parts,
            "share": plan.share,
            "branching": nodes.children,
        }

    def finds_its_way(self, facts: Facts) -> bool:
        """Whether the draws of the edges tell values from no values, and leaf from leaf."""
        return self.plan(facts).error < math.inf

    def first(self, facts: Facts) -> Facts:
        """The facts for the draw of the edges."""
        plan = self.plan(facts)
        return _first(facts, plan.leaves, plan.share)

    @lru_cache(maxsize=128)  # noqa: B019  reason: the same
    def nodes(self, facts: Facts) -> NodeCounts:
        """The counts of the tree over the leaves."""
        plan = self.plan(facts)
        return self._counted_nodes(facts, plan.leaves * plan.parts, plan.share)

    def check(self, facts: Facts) -> None:
        """Refuse a step that does not fit the bounds, and a budget without such noise."""
        self._edges.check(self.first(facts))
        _ = self.nodes(facts).mechanism

    def terms(self, facts: Facts) -> Purchase:
        """What both parts cost together."""
        budget, first = divisible(self._edges, facts), self._edges.terms(self.first(facts))
        cost = budget if isinstance(budget, PureDP) else facts.budget
        return Purchase(first.range, cost, ComposedEvent([first.event, self.nodes(facts).mechanism.event]))

    def look(self, column: Column, facts: Facts) -> Ranks:
        """The data on the line of points."""
        return self._edges.look(column, self.first(facts))

    def law(self, view: Ranks, facts: Facts) -> QuantileLaw:
        """The law of the edges and of the counts that follow."""
        return AdaptiveLaw(self._edges.law(view, self.first(facts)), view, self, facts)

    def after(self, drawn: Outcome, ranks: Ranks, facts: Facts) -> CountsLaw:
        """The law of the counts of all nodes over the leaves that were drawn."""
        below = ranks.below_cells(np.array(self._ends(drawn, facts)[1:-1], dtype=np.int64))
        parts: Ints = np.diff(np.concatenate([[0], below, [ranks.size]]))
        nodes = self.nodes(facts)
        return CountsLaw((), nodes.mechanism.law(nodes.of_leaves(parts)))

    def counted(self, facts: Facts) -> int:
        """How many integers follow the edges."""
        return self.nodes(facts).number

    def most_drawn(self, facts: Facts) -> int:
        """The edges, and one noisy count for each node."""
        return self.plan(facts).leaves - 1 + self.counted(facts)

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether both parts could have been drawn."""
        drawn, counts = self._parts(outcome, facts)
        return self._edges.possible(drawn, self.first(facts)) and self.nodes(facts).possible(counts)

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """One point for each order; the middle of the bounds if there seem to be no values."""
        grid, (drawn, counts) = facts.grid, self._parts(outcome, facts)
        nodes, ends = self.nodes(facts), self._ends(drawn, facts)
        below = nodes.prefixes(counts)
        if below[-1] <= 0:
            return [grid.value((grid.cells - 1) // 2)] * len(facts.orders)
        spans = _spans(ends)
        most = HEAPED * below[-1] / nodes.leaves + NOISE * nodes.spread
        found = []
        for target in (float(q) * below[-1] for q in facts.orders):
            # The first leaf whose end has the target's rank.
            leaf = min(int(np.searchsorted(below[1:], target)), nodes.leaves - 1)
            begin, end = spans[leaf]
            inside = below[leaf + 1] - below[leaf]
            if inside > most:
                found.append(_roundest(begin, end, facts))
                continue
            share = (target - below[leaf]) / inside if inside > 0 else 0.0
            offset = min(max(math.floor(share * (end - begin)), 0), max(end - begin - 1, 0))
            found.append(grid.value(min(begin + offset, grid.cells - 1)))
        return found

    def interval(
        self, outcome: Outcome, facts: Facts, confidence: float, failure: float | None = None
    ) -> list[tuple[Fraction, Fraction]]:
        """Where the data's quantiles lie, all at once, on any data: edges of leaves, with this confidence.

        With a `failure` for each order it is the population's, of which the data are a sample.
        """
        grid, (drawn, counts) = facts.grid, self._parts(outcome, facts)
        ends, found = self._ends(drawn, facts), []
        for below, above in self.nodes(facts).between(counts, confidence, failure):
            low, high = ends[below], ends[above]
            last = grid.value(max(high - 1, low)) if facts.on_points else grid.lower + high * grid.step
            found.append((grid.value(min(low, grid.cells - 1)), min(last, grid.upper)))
        return found

    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The bounds."""
        return facts.grid.lower, facts.grid.upper

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """The ends of the leaves of the answers."""
        grid, ends = facts.grid, self._ends(self._parts(outcome, facts)[0], facts)
        found = []
        for value in self.answers(outcome, facts):
            leaf = bisect_right(ends, int((value - grid.lower) / grid.step)) - 1
            last = min(grid.lower + ends[min(leaf + 1, len(ends) - 1)] * grid.step, grid.upper)
            found.append((grid.value(min(ends[leaf], grid.cells - 1)), last))
        return found

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """How many ranks an answer is from its target, at most, on any data, all together.

        A leaf holds at most two of the parts that its edges divide the values into, and what these are off.
        Half of the failure is for the edges. Proof: docs/proofs/equi-depth.md.
        """
        half = 1 - (1 - confidence) / 2
        drawn = self._edges.rank_error(self.first(facts), half)
        nodes = self.nodes(facts)
        leaf = -(-2 * facts.known_size // self.plan(facts).leaves) + 2 * drawn
        nobody = 0 if facts.size_is_public else nodes.total_error(half)
        return min(max(nodes.edge_error(half) + leaf, nobody), MAX_ROWS)

    def beyond(self, facts: Facts) -> str:
        """What the rank error supposes, in words."""
        return "" if facts.size_is_public else f" (if there are at most {facts.known_size:,} values)"

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        return f"{self._edges.words(self.first(facts))}; {self.nodes(facts).words}"

    def _parts(self, outcome: Outcome, facts: Facts) -> tuple[Outcome, Outcome]:
        number = self.counted(facts)
        return outcome[:-number], outcome[-number:]

    def _ends(self, drawn: Outcome, facts: Facts) -> list[int]:
        """The cells before which the parts of all leaves begin, and the end of the last one."""
        return _divided([0, *edges(drawn, self.subcells).tolist(), facts.grid.cells], self.plan(facts).parts)

    def _planned(self, facts: Facts, leaves: int, parts: int, share: Fraction) -> Plan:
        """The mean error that is expected; infinite if edges may be lost."""
        size, levels = facts.known_size, leaves.bit_length() - 1
        # Each node halves its leaves, and has a part of the budget for each level.
        half = _first(facts, 2, share / levels)
        fall = float(Recursive().constants(half)[0])
        least = LAST_WEIGHT if share == SHARES[-1] else LEAST_WEIGHT
        if fall * size < max(least * leaves, 4 * LEAST_SEEN):
            return Plan(leaves, parts, share, fall, math.inf)
        noise = MEASURED * MEAN_SIZE * self._counted_nodes(facts, leaves * parts, share).deviation
        # Inside a part a sample strays from a line as a bridge does.
        stray = MEAN_SIZE * BRIDGE * math.sqrt(size / (leaves * parts))
        # Values of the outer leaves may be far from even, and parts follow them.
        lost = size / leaves**2 * (1 / parts**2 + LOST)
        return Plan(leaves, parts, share, fall, math.hypot(noise, stray) + lost)

    def _counted_nodes(self, facts: Facts, parts: int, share: Fraction) -> NodeCounts:
        budget = divisible(Recursive(), facts).share(1 - share)
        own = replace(facts, budget=budget, points=facts.made, several=None)
        return NodeCounts(own, parts, self.branching)


def edges(drawn: Outcome, subcells: int) -> Ints:
    """The cells before which all leaves but the first begin.

    A cell that is drawn several times holds a heap, and is a leaf of its own.

    >>> edges((3, 7, 7, 7, 9), 1)
    array([3, 7, 7, 8, 9])
    """
    cells: Ints = np.array(drawn, dtype=np.int64) // subcells
    again = np.diff(cells, prepend=-1) == 0
    last = np.diff(cells, append=-1) != 0
    found: Ints = cells + (again & last)
    return found


def _divided(ends: Sequence[int], parts: int) -> list[int]:
    """The edges of leaves and of their parts: equal ones of where the values of a leaf are taken to lie.

    What is left of a leaf that reaches beyond the values is one of the parts.

    >>> _divided([0, 4, 8, 12, 100], 4)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20, 24, 100]
    """
    if parts == 1:
        return list(ends)
    found = [ends[0]]
    for (begin, end), (low, high) in zip(itertools.pairwise(ends), _spans(ends), strict=True):
        before, after = [low] if begin < low else [], [end] if high < end else []
        equal = parts - len(before) - len(after)
        found += [*before, *(low + (high - low) * i // equal for i in range(1, equal + 1)), *after]
    return found


def _spans(ends: Sequence[int]) -> list[tuple[int, int]]:
    """Where the values of each leaf are taken to lie: in all of it, or in the part towards the middle.

    An edge that was drawn far beyond the values, where bounds are vague, leaves them in a small part of a
    leaf. So no leaf is taken to be wider than `STEEPER` times the widest one that is nearer to the middle.
    """
    leaves, found = len(ends) - 1, list(itertools.pairwise(ends))
    inside = ends[3 * leaves // 4] - ends[leaves // 4]
    if not inside:
        # A heap in the middle does not tell how far apart the other values are.
        return found
    for side in (range(leaves // 2, leaves), range(leaves // 2 - 1, -1, -1)):
        widest = -(-2 * inside // leaves)
        for leaf in side:
            begin, end = found[leaf]
            width = min(end - begin, STEEPER * widest)
            found[leaf] = (begin, begin + width) if leaf >= leaves // 2 else (end - width, end)
            widest = max(widest, width)
    return found


def _first(facts: Facts, leaves: int, share: Fraction) -> Facts:
    budget = divisible(Recursive(), facts).share(share)
    orders = tuple(Fraction(i, leaves) for i in range(1, leaves))
    return replace(facts, budget=budget, orders=orders, points=facts.made, several=None)


def _roundest(begin: int, end: int, facts: Facts) -> Fraction:
    """The point of the roundest number among these cells: a multiple of 1, 2 or 5 times a power of ten."""
    grid = facts.grid
    if begin == end:  # noise alone fills a leaf of no points
        return grid.value(min(begin, grid.cells - 1))
    low, high = grid.value(begin), grid.lower + end * grid.step
    if low <= 0 < high:
        return grid.value(math.floor(-grid.lower / grid.step))
    power = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    while True:
        for digit in (5, 2, 1):
            each = digit * Fraction(10) ** power
            number = each * math.ceil(low / each)
            if number < high:
                return grid.value(math.floor((number - grid.lower) / grid.step))
        power -= 1
