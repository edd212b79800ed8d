"""A tree of noisy counts: any number of quantiles, and the whole distribution function, for one price."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato.checks import keep, one_of, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS, Counts
from sfumato.grid import Floats, Ints, Leaves
from sfumato.laws import Law
from sfumato.mechanisms import (
    Additive,
    GaussianMechanism,
    LaplaceMechanism,
    Noise,
    Sensitivity,
    additive,
)
from sfumato.mechanisms.additive import NOISES
from sfumato.privacy import ZCDP, PureDP
from sfumato.quantile_methods.method import Facts, Purchase, sampling_ranks
from sfumato.quantile_methods.tree_consistency import (
    MAX_BRANCHING,
    best_branching,
    consistent,
    level_sizes,
    parents_of,
    prefix_errors,
    tail,
)
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

    def check(self, facts: Facts) -> None:
        """Refuse a budget without such noise, and a number of values that is needed and unknown."""
        self._mechanism(facts)

    def terms(self, facts: Facts) -> Purchase:
        """The cost of all counts together, without a delta if Laplace noise was chosen."""
        mechanism = self._mechanism(facts)
        budget = facts.budget if facts.several is None else facts.several.budget
        if not isinstance(budget, ZCDP) and not isinstance(mechanism, GaussianMechanism):
            budget = PureDP(budget.epsilon)
        # Nothing is drawn by its weight: there is no range.
        return Purchase(Fraction(0), budget, mechanism.event)

    def look(self, column: Column, facts: Facts) -> Ints:
        """The exact counts of all nodes: the root if it is counted, then level by level, leaves last."""
        leaves: Any = self._leaves(facts)
        levels = [Counts.of(column, leaves, nulls=facts.nulls).cells]
        for _ in self._sizes(facts)[1:]:
            levels.append(parents_of(levels[-1], self._branching(facts)))
        return np.concatenate(levels[::-1])

    def law(self, view: Ints, facts: Facts) -> Law:
        """The law of the noisy counts."""
        return self._mechanism(facts).law(view)

    def most_drawn(self, facts: Facts) -> int:
        """One noisy count for each node."""
        return sum(self._sizes(facts))

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether there is one noisy count for each node."""
        return len(outcome) == sum(self._sizes(facts)) and all(abs(part) < 2**60 for part in outcome)

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """One point for each order; the middle of the bounds if the tree seems to be empty."""
        cells = facts.grid.cells
        counts = self._prefixes(outcome, facts)
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
        counts = self._prefixes(outcome, facts)
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
        counts, leaves = self._prefixes(outcome, facts), self._leaves(facts)
        spare = 0.0 if failure is None else sampling_ranks(self._most(counts, facts, confidence), failure)
        found = []
        for q in facts.orders:
            error, target = self._edge_error(facts, q, confidence) + spare, float(q) * counts[-1]
            # The last edge that is surely below the target, the first one that is surely above.
            below = int(np.searchsorted(counts[1:-1], target - error))
            above = int(np.searchsorted(counts[1:-1], target + error, side="right")) + 1
            found.append((leaves.value(below), min(leaves.value(above), facts.grid.upper)))
        return found

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
        total = _total(facts)
        size = MAX_ROWS if total is None else total
        if self._leaves(facts).width > 1:
            return size
        return min(self.edge_error(facts, confidence), size)

    def edge_error(self, facts: Facts, confidence: float) -> int:
        """How many ranks the leaf of any answer is from its target, at most, whatever the data, all together.

        A target of rank t is answered inside a leaf that begins with rank at most t + error and ends with
        rank at least t - error.
        """
        return math.ceil(max(self._edge_error(facts, q, confidence) for q in facts.orders))

    def deviation(self, facts: Facts) -> float:
        """The standard deviation of an estimated prefix, for the mean variance over the edges.

        For data that are spread evenly, whose share below an edge is the edge's place: then the estimate of
        all records, where it is private, moves the target along.
        """
        mechanism = self._mechanism(facts)
        if isinstance(mechanism, LaplaceMechanism):
            each = 2 * mechanism.scale**2
        else:
            each = mechanism.sigma_squared
        spread = prefix_errors(self._leaves(facts).cells, self._branching(facts)).rest.mean()
        return math.sqrt(float(each) * float(spread))

    def beyond(self, facts: Facts) -> str:
        """The rank error leaves nothing out: where leaves hold several points, there is none."""
        return ""

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        depth, leaves = len(self._below_root(facts)), self._leaves(facts).cells
        noise = self._mechanism(facts).described()
        return f"{noise} on the counts of a tree of {leaves:,} leaves in {depth} levels"

    def _concentrated(self, facts: Facts) -> bool:
        return isinstance(facts.budget, ZCDP) or self.noise == "gaussian"

    def _branching(self, facts: Facts) -> int:
        if self.branching is not None:
            return self.branching
        return best_branching(self._leaves(facts).cells, concentrated=self._concentrated(facts))

    def _leaves(self, facts: Facts) -> Leaves:
        most = self.leaves
        if most is None:
            power = CONCENTRATED_LEAVES if self._concentrated(facts) else PURE_LEAVES
            most = factor = power if self.branching is None else self.branching
            while most < min(facts.known_size, MOST_BY_SIZE):
                most *= factor
        return Leaves.of(facts.grid, min(most, MAX_LEAVES))

    def _below_root(self, facts: Facts) -> list[int]:
        return level_sizes(self._leaves(facts).cells, self._branching(facts))

    def _sizes(self, facts: Facts) -> list[int]:
        """The number of counts of each level, leaves first.

        The root is counted where nulls are dropped under substitution, for nothing: a record that is replaced
        by a null moves fewer counts than one that goes to another leaf. Under add-remove it would cost one
        level more and would tell less than it costs.
        """
        return [*self._below_root(facts), *([1] if facts.replaces and not facts.size_is_public else [])]

    def _mechanism(self, facts: Facts) -> Additive:
        depth = len(self._below_root(facts))
        moved = 2 * depth if facts.replaces else depth
        sensitivity = Sensitivity(l1=moved, l2_squared=moved, coordinates=moved)
        if facts.several is None:
            return additive(facts.budget, sensitivity, self.noise)
        budget, changes, both_ways = facts.several
        return additive(budget, sensitivity.of_rows(changes, both_ways=both_ways), self.noise)

    def _prefixes(self, outcome: Outcome, facts: Facts) -> Floats:
        """The estimated number of records below each edge of the leaves, from 0 to all of them."""
        from scipy.optimize import isotonic_regression  # here: it takes longer to load than all the rest

        total = _total(facts)
        noisy = np.array(outcome, dtype=np.float64)
        sizes = self._sizes(facts)
        levels = np.split(noisy, np.cumsum(sizes[::-1])[:-1])[::-1]
        estimates = consistent(levels, self._branching(facts), total)
        size = max(float(estimates[-1].sum()), 0.0) if total is None else float(total)
        sums = np.cumsum(estimates[0])[:-1]
        inner = isotonic_regression(sums).x if len(sums) else sums
        return np.concatenate([[0.0], np.clip(inner, 0.0, size), [size]])

    def _most(self, counts: Floats, facts: Facts, confidence: float) -> int:
        """The largest number of values that there can be: public, or the estimate and its error."""
        if facts.size_is_public:
            return facts.known_size
        return math.ceil(float(counts[-1]) + self._edge_error(facts, Fraction(1), confidence))

    def _edge_error(self, facts: Facts, order: Fraction, confidence: float) -> float:
        leaves = self._leaves(facts).cells
        public, counted = _total(facts) is not None, len(self._sizes(facts)) > len(self._below_root(facts))
        errors = prefix_errors(leaves, self._branching(facts))
        variance = errors.variance(float(order), counted=counted, public=public)
        # With a private root the target is estimated too: each order has an error of its own at every edge.
        events = max(leaves - 1, 1) * (1 if public else len(facts.orders))
        return tail(self._mechanism(facts), variance, (1 - confidence) / events)


def _total(facts: Facts) -> int | None:
    return facts.size if facts.size_is_public else None
