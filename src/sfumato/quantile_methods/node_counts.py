"""Noisy counts of all nodes of a tree: their noise, the estimates that follow, and their errors."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.grid import Floats, Ints
from sfumato.mechanisms import Additive, GaussianMechanism, LaplaceMechanism, Noise, Sensitivity, additive
from sfumato.privacy import ZCDP
from sfumato.quantile_methods.method import Facts, sampling_ranks
from sfumato.quantile_methods.tree_consistency import (
    best_branching,
    consistent,
    level_sizes,
    parents_of,
    prefix_errors,
    tail,
)
from sfumato.query import Outcome


def is_concentrated(facts: Facts, noise: Noise) -> bool:
    """Whether noise adds up in L2, which asks for another shape of the tree."""
    return isinstance(facts.budget, ZCDP) or noise == "gaussian"


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """The counts of a tree over some leaves, for the budget of the facts.

    Args:
        facts: the public facts.
        leaves: how many leaves there are.
        branching: how many children a node has; None for the best number.
        noise: which noise the counts have.
    """

    facts: Facts
    leaves: int
    branching: int | None = None
    noise: Noise = "auto"

    @cached_property
    def mechanism(self) -> Additive:
        """The noise on each count: a record is in one node of each level, and may enter as many others."""
        moved = (2 if self.facts.replaces else 1) * self.depth
        sensitivity = Sensitivity(l1=moved, l2_squared=moved, coordinates=moved)
        if self.facts.several is None:
            return additive(self.facts.budget, sensitivity, self.noise)
        budget, changes, both_ways = self.facts.several
        return additive(budget, sensitivity.of_rows(changes, both_ways=both_ways), self.noise)

    @property
    def depth(self) -> int:
        """The number of levels below the root."""
        return len(level_sizes(self.leaves, self.children))

    @property
    def number(self) -> int:
        """The number of all counts."""
        return sum(self._sizes)

    @property
    def words(self) -> str:
        """The mechanism in words."""
        tree = f"a tree of {self.leaves:,} leaves in {self.depth} levels"
        return f"{self.mechanism.described()} on the counts of {tree}"

    def of_leaves(self, counts: Ints) -> Ints:
        """The counts of all nodes: the root if it is counted, then level by level, leaves last."""
        levels = [counts]
        for _ in self._sizes[1:]:
            levels.append(parents_of(levels[-1], self.children))
        return np.concatenate(levels[::-1])

    def possible(self, outcome: Outcome) -> bool:
        """Whether there is one noisy count for each node."""
        return len(outcome) == self.number and all(abs(part) < 2**60 for part in outcome)

    def prefixes(self, outcome: Outcome) -> Floats:
        """The estimated number of records below each edge of the leaves, from 0 to all of them."""
        from scipy.optimize import isotonic_regression  # here: it takes longer to load than all the rest

        noisy = np.array(outcome, dtype=np.float64)
        levels = np.split(noisy, np.cumsum(self._sizes[::-1])[:-1])[::-1]
        estimates = consistent(levels, self.children, self._total)
        size = max(float(estimates[-1].sum()), 0.0) if self._total is None else float(self._total)
        sums = np.cumsum(estimates[0])[:-1]
        inner = isotonic_regression(sums).x if len(sums) else sums
        return np.concatenate([[0.0], np.clip(inner, 0.0, size), [size]])

    def between(self, outcome: Outcome, confidence: float, failure: float | None) -> list[tuple[int, int]]:
        """For each order the edges between which the data's quantile lies, all at once, on any data.

        With a `failure` for each order it is the population's, of which the data are a sample.
        """
        counts = self.prefixes(outcome)
        spare = 0.0 if failure is None else sampling_ranks(self._most(counts, confidence), failure)
        found = []
        for q in map(float, self.facts.orders):
            error, target = self.error(q, confidence) + spare, q * counts[-1]
            # The last edge that is surely below the target, the first one that is surely above.
            below = int(np.searchsorted(counts[1:-1], target - error))
            above = int(np.searchsorted(counts[1:-1], target + error, side="right")) + 1
            found.append((below, above))
        return found

    def edge_error(self, confidence: float) -> int:
        """How many ranks the leaf of any answer is from its target, at most, whatever the data, all together.

        A target of rank t is answered inside a leaf that begins with rank at most t + error and ends with
        rank at least t - error.
        """
        return math.ceil(max(self.error(float(q), confidence) for q in self.facts.orders))

    def total_error(self, confidence: float) -> int:
        """How far the estimated number of all values is off, at most, where it is private."""
        return math.ceil(self.error(1.0, confidence))

    @property
    def deviation(self) -> float:
        """The standard deviation of an estimated prefix, for the mean variance over the edges.

        For data that are spread evenly, whose share below an edge is the edge's place: then the estimate of
        all records, where it is private, moves the target along.
        """
        return self.spread * math.sqrt(float(prefix_errors(self.leaves, self.children).rest.mean()))

    @property
    def spread(self) -> float:
        """The standard deviation of a noisy count."""
        mechanism = self.mechanism
        if isinstance(mechanism, LaplaceMechanism):
            return math.sqrt(2) * float(mechanism.scale)
        return math.sqrt(float(mechanism.sigma_squared))

    @property
    def is_gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return isinstance(self.mechanism, GaussianMechanism)

    @cached_property
    def children(self) -> int:
        """How many children a node has."""
        if self.branching is not None:
            return self.branching
        return best_branching(self.leaves, concentrated=is_concentrated(self.facts, self.noise))

    @cached_property
    def _sizes(self) -> list[int]:
        """The number of counts of each level, leaves first.

        The root is counted where nulls are dropped under substitution, for nothing: a record that is replaced
        by a null moves fewer counts than one that goes to another leaf. Under add-remove it would cost one
        level more and would tell less than it costs.
        """
        root = [1] if self.facts.replaces and not self.facts.size_is_public else []
        return [*level_sizes(self.leaves, self.children), *root]

    @property
    def _total(self) -> int | None:
        return self.facts.size if self.facts.size_is_public else None

    def _most(self, counts: Floats, confidence: float) -> int:
        """The largest number of values that there can be: public, or the estimate and its error."""
        if self.facts.size_is_public:
            return self.facts.known_size
        return math.ceil(float(counts[-1])) + self.total_error(confidence)

    def error(self, order: float, confidence: float) -> float:
        """What noise adds to the distance of any edge from this part of all values, at most."""
        public, counted = self._total is not None, len(self._sizes) > self.depth
        errors = prefix_errors(self.leaves, self.children)
        variance = errors.variance(order, counted=counted, public=public)
        # With a private root the target is estimated too: each order has an error of its own at every edge.
        events = max(self.leaves - 1, 1) * (1 if public else len(self.facts.orders))
        return tail(self.mechanism, variance, (1 - confidence) / events)
