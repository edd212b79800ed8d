"""One exponential mechanism for each order, on all the data."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.data.ranks import Ranks
from sfumato.laws import Bits
from sfumato.quantile_methods.method import Facts, OnGrid, Orders, Purchase, QuantileLaw
from sfumato.quantile_methods.node import Node, quantile_node, tail_rank
from sfumato.query import Outcome


@dataclass(frozen=True, eq=False)
class NodesLaw:
    """Independent draws, one from each node."""

    nodes: tuple[Node, ...]

    def sample(self, bits: Bits) -> Outcome:
        """One point for each order, as drawn."""
        return tuple(node.sample(bits) for node in self.nodes)

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the points, in the order of the nodes."""
        return sum(node.logpmf(point) for node, point in zip(self.nodes, outcome, strict=True))

    @property
    def count(self) -> int:
        """How many outcomes there are."""
        return math.prod(node.last + 1 for node in self.nodes)

    def outcomes(self) -> Iterator[Outcome]:
        """Every tuple of points."""
        return itertools.product(*(range(node.last + 1) for node in self.nodes))


@dataclass(frozen=True, kw_only=True)
class Independent(OnGrid):
    """One exponential mechanism for each order on all the data; answers are sorted, which costs nothing.

    Guarantee:
        An order q costs c R with R = 2 if a record is replaced, 2 max(q, 1 - q) if one is added or removed.
        Proof: docs/proofs/quantiles.md.

    >>> Independent().name
    'independent'
    """

    name: ClassVar[str] = "independent"

    def terms(self, facts: Facts) -> Purchase:
        """One piece for each order."""
        return facts.buy(len(facts.orders))

    def constants(self, facts: Facts) -> Orders:
        """The fall in log weight for one rank, for each order."""
        span = self.terms(facts).range
        return tuple(span / 2 if facts.replaces else span / (2 * max(q, 1 - q)) for q in facts.orders)

    def law(self, view: Ranks, facts: Facts) -> QuantileLaw:
        """The law of the points, before they are sorted."""
        pairs = zip(facts.orders, self.constants(facts), strict=True)
        nodes = tuple(quantile_node(view, q, c) for q, c in pairs)
        view.refine(node.reads() for node in nodes)
        return NodesLaw(nodes)

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """The tail of the law with the fewest good points that any data can have."""
        failure = (1 - confidence) / len(facts.orders)
        points = self.points(facts)
        pairs = zip(self.denominators(facts), self.constants(facts), strict=True)
        return max(tail_rank(c, parts, points, failure) for parts, c in pairs)

    def denominators(self, facts: Facts) -> Sequence[int]:
        """In what fractions of a rank distances are counted, for each order."""
        return [q.denominator for q in facts.orders]

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        return f"exponential mechanism on {facts.grid.cells:,} points for each quantile"
