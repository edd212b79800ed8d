"""A tree of noisy counts: any number of quantiles, and the whole distribution function, for one price."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato.checks import keep, one_of, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS, Counts
from sfumato.grid import Floats, Ints, Leaves
from sfumato.laws import Law
from sfumato.mechanisms import Noise
from sfumato.mechanisms.additive import NOISES
from sfumato.privacy import ZCDP, PureDP
from sfumato.quantile_methods.method import Facts, Purchase
from sfumato.quantile_methods.node_counts import NodeCounts, is_concentrated
from sfumato.quantile_methods.tree_consistency import MAX_BRANCHING
from sfumato.query import Outcome

MAX_LEAVES = 2**18
# Beyond this, leaves that follow the number of values cost more noise than they tell.
MOST_BY_SIZE = 2**16
# Powers of these are the numbers of leaves unless points are fewer, for noise that adds up in L1 and in L2.
PURE_LEAVES, CONCENTRATED_LEAVES = 16, 4


@dataclass(frozen=True, kw_only=True)
class Tree:
    r"""Noisy counts of all nodes of a tree over the bounds, made consistent; quantiles are read off.

    The error does not depend on how many orders are asked for. Records are told apart by the leaf they are
    in, and no further: inside a leaf of several points the data are taken to be spread evenly.

    Guarantee:
        Exactly the cost stated. A record is in one node of each of the :math:`H` levels: counts move by
        :math:`H` in L1 under add-remove and by :math:`2H` under substitution, with or without dropped nulls.
        All else is post-processing. Proof: docs/proofs/tree.md.

    Args:
        branching: how many children a node has. None: the best for the number of leaves and the noise, such
            as 16 for Laplace noise on 65,536 leaves and 32 on 1,001.
        leaves: how many parts of the bounds are told apart, at most; never more than points can be answered.
            None: the smallest power of 16, or of 4 for Gaussian noise, or of the branching, that is at least
            the number of values, at most 2**16.
        noise: "laplace", "gaussian", or "auto" for the one with the smaller variance.

    References:
        [HRMS10] for counts made consistent by least squares.

    >>> Tree(leaves=4096)
    Tree(branching=None, leaves=4096, noise='auto')
    """

    name: ClassVar[str] = "tree"
    needs_bounds: ClassVar[bool] = True
    by_rule: ClassVar[Mapping[str, Any]] = {
        "branching": MAX_BRANCHING,
        "leaves": MAX_LEAVES,
        "noise": "gaussian",
    }

    branching: int | None = None
    leaves: int | None = None
    noise: Noise = "auto"

    def __post_init__(self) -> None:
        if self.branching is not None:
            keep(self, branching=whole("branching", self.branching, least=2, most=MAX_BRANCHING))
        if self.leaves is not None:
            keep(self, leaves=whole("leaves", self.leaves, least=2, most=MAX_LEAVES))
        one_of("noise", self.noise, NOISES)

    @property
    def needs_size(self) -> bool:
        """Whether the number of leaves follows from the number of values."""
        return self.leaves is None

    def rule_options(self, facts: Facts) -> dict[str, Any]:
        """The shape of the tree, and its noise."""
        nodes = self._nodes(facts)
        noise = "gaussian" if nodes.is_gaussian else "laplace"
        return {"branching": nodes.children, "leaves": self._most(facts), "noise": noise}

    def check(self, facts: Facts) -> None:
        """Refuse a budget without such noise, and a number of values that is needed and unknown."""
        _ = self._nodes(facts).mechanism

    def terms(self, facts: Facts) -> Purchase:
        """The cost of all counts together, without a delta if Laplace noise was chosen."""
        nodes = self._nodes(facts)
        budget = facts.budget if facts.several is None else facts.several.budget
        if not isinstance(budget, ZCDP) and not nodes.is_gaussian:
            budget = PureDP(budget.epsilon)
        # Nothing is drawn by its weight: there is no range.
        return Purchase(Fraction(0), budget, nodes.mechanism.event)

    def look(self, column: Column, facts: Facts) -> Ints:
        """The exact counts of all nodes: the root if it is counted, then level by level, leaves last."""
        leaves: Any = self._leaves(facts)
        return self._nodes(facts).of_leaves(Counts.of(column, leaves, nulls=facts.nulls).cells)

    def law(self, view: Ints, facts: Facts) -> Law:
        """The law of the noisy counts."""
        return self._nodes(facts).mechanism.law(view)

    def most_drawn(self, facts: Facts) -> int:
        """One noisy count for each node."""
        return self._nodes(facts).number

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether there is one noisy count for each node."""
        return self._nodes(facts).possible(outcome)

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """One point for each order; the middle of the bounds if the tree seems to be empty."""
        cells = facts.grid.cells
        counts = self._nodes(facts).prefixes(outcome)
        if counts[-1] <= 0:
            return [facts.grid.value((cells - 1) // 2)] * len(facts.orders)
        targets = np.array([float(q) for q in facts.orders]) * counts[-1]
        # The first leaf whose end has the target's rank; ends[0] is the lower bound, with rank 0.
        leaf = np.minimum(np.searchsorted(counts[1:], targets), len(counts) - 2)
        inside = counts[leaf + 1] - counts[leaf]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(inside > 0, (targets - counts[leaf]) / inside, 0.0)
        width = self._leaves(facts).width
        offset = np.clip(np.floor(share * width), 0, width - 1).astype(np.int64)
        found = np.minimum(leaf * width + offset, cells - 1)
        return [facts.grid.value(int(cell)) for cell in found]

    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The bounds."""
        return facts.grid.lower, facts.grid.upper

    def cdf(self, outcome: Outcome, facts: Facts, points: Sequence[Fraction]) -> Floats:
        """The share of the data at or below each point: from 0 to 1, and never less at a larger point."""
        grid, leaves = facts.grid, self._leaves(facts)
        places = []
        for point in points:
            place = min(max((point - grid.lower) / grid.step, Fraction(-1)), Fraction(grid.cells))
            # Where points were given a step, a cell is its point, and at or below it is all of the cell.
            if facts.step is not None:
                place = Fraction(math.floor(place) + 1)
            elif point >= grid.upper:
                place = Fraction(grid.cells)
            places.append(float(min(max(place, Fraction(0)), Fraction(grid.cells))))
        counts = self._nodes(facts).prefixes(outcome)
        if counts[-1] <= 0:
            return np.where(np.array(places) > (grid.cells - 1) // 2, 1.0, 0.0)
        ends = np.minimum(np.arange(len(counts)) * leaves.width, grid.cells).astype(np.float64)
        shares: Floats = np.interp(places, ends, counts) / counts[-1]
        return np.clip(shares, 0.0, 1.0)

    def interval(
        self, outcome: Outcome, facts: Facts, confidence: float, failure: float | None = None
    ) -> list[tuple[Fraction, Fraction]]:
        """Where the data's quantiles lie, all at once, on any data: edges of leaves, with this confidence.

        With a `failure` for each order it is the population's, of which the data are a sample.
        """
        leaves = self._leaves(facts)
        return [
            (leaves.value(below), min(leaves.value(above), facts.grid.upper))
            for below, above in self._nodes(facts).between(outcome, confidence, failure)
        ]

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """The ends of the leaves of the answers."""
        leaves = self._leaves(facts)
        found = []
        for value in self.answers(outcome, facts):
            leaf = int(leaves.index(np.array([float(value)]))[0])
            found.append((leaves.value(leaf), min(leaves.value(leaf + 1), facts.grid.upper)))
        return found

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """How many ranks any answer is from its target, at most, whatever the data, all together.

        Only leaves of one point have such a bound. In a leaf of several points the answer may be as far off
        as there are records in it, which may be all: then the number of values is the bound, and 2**62, for
        none, where it is private. `edge_error` is about leaves and has no such exception.
        """
        size = facts.known_size if facts.size_is_public else MAX_ROWS
        if self._leaves(facts).width > 1:
            return size
        return min(self.edge_error(facts, confidence), size)

    def edge_error(self, facts: Facts, confidence: float) -> int:
        """How many ranks the leaf of any answer is from its target, at most, whatever the data, all together.

        A target of rank t is answered inside a leaf that begins with rank at most t + error and ends with
        rank at least t - error.
        """
        return self._nodes(facts).edge_error(confidence)

    def deviation(self, facts: Facts) -> float:
        """The standard deviation of an estimated prefix, for the mean variance over the edges.

        For data that are spread evenly, whose share below an edge is the edge's place: then the estimate of
        all records, where it is private, moves the target along.
        """
        return self._nodes(facts).deviation

    def beyond(self, facts: Facts) -> str:
        """The rank error leaves nothing out: where leaves hold several points, there is none."""
        return ""

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        return self._nodes(facts).words

    def _most(self, facts: Facts) -> int:
        """How many leaves there are where points are not fewer."""
        most = self.leaves
        if most is None:
            concentrated = is_concentrated(facts, self.noise)
            power = CONCENTRATED_LEAVES if concentrated else PURE_LEAVES
            most = factor = power if self.branching is None else self.branching
            while most < min(facts.known_size, MOST_BY_SIZE):
                most *= factor
        return min(most, MAX_LEAVES)

    def _leaves(self, facts: Facts) -> Leaves:
        return Leaves.of(facts.grid, self._most(facts))

    def leaf_width(self, facts: Facts) -> int:
        """How many points a leaf has."""
        return self._leaves(facts).width

    def _nodes(self, facts: Facts) -> NodeCounts:
        return NodeCounts(facts, self._leaves(facts).cells, self.branching, self.noise)
