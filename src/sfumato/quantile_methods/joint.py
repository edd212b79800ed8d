"""All orders in one draw: the exponential mechanism on tuples of points."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.data.counts import MAX_ROWS
from sfumato.data.ranks import Ranks
from sfumato.errors import InvalidParameter
from sfumato.grid import Ints
from sfumato.laws import Bits
from sfumato.laws.chain import Chain, Windows, slack, windows
from sfumato.quantile_methods.method import Facts, Purchase, QuantileLaw, Spread
from sfumato.query import Outcome


@dataclass(frozen=True, eq=False)
class JointLaw:
    """The law of a chain of points, listed where the line is short."""

    chain: Chain
    ranks: Ranks

    @property
    def points(self) -> int:
        """The number of points of the line."""
        return self.ranks.points

    def sample(self, bits: Bits) -> Outcome:
        """One point for each order, not decreasing."""
        return self.chain.sample(bits)

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the points."""
        return self.chain.logpmf(outcome)

    @property
    def count(self) -> int:
        """How many outcomes there are."""
        return math.comb(self.points + self.chain.orders - 1, self.chain.orders)

    def outcomes(self) -> Iterator[Outcome]:
        """Every tuple of points that does not decrease."""
        return itertools.combinations_with_replacement(range(self.points), self.chain.orders)


@dataclass(frozen=True, kw_only=True)
class Joint(Spread):
    """All orders in one draw, weighted by how well the numbers of records between them fit.

    The most accurate where there are enough records between two orders.

    Guarantee:
        The misfit sum_j |n_j - t_j| moves by at most 2 if a record is replaced, and by 2 (1 - min_j gap_j) if
        one is added or removed, so that c is the range over twice that. The rounding of the sums is part of
        the range. Proof: docs/proofs/quantiles.md, docs/proofs/chain.md.

    Args:
        subcells: into how many points a cell is divided, for tied records; a power of two up to 2**30.
        emphasis: extra points for round numbers of each step, as a part of all cells, from 0 to 1.

    >>> Joint().name
    'joint'
    """

    name: ClassVar[str] = "joint"

    def check(self, facts: Facts) -> None:
        """Refuse a budget so small that rounding would be a large part of it."""
        super().check(facts)
        if slack(len(facts.orders)) * 100 > self.terms(facts).range:
            raise InvalidParameter(
                f"budget must be larger for a joint draw, got {facts.budget!r}; use method='recursive'"
            )

    def terms(self, facts: Facts) -> Purchase:
        """One piece in all."""
        return facts.buy(1)

    def constant(self, facts: Facts) -> Fraction:
        """The fall in log weight for one misplaced record."""
        span = self.terms(facts).range - slack(len(facts.orders))
        move = 2 if facts.replaces else 2 * (1 - min(gaps(facts)))
        return min(span / (2 * move), Fraction(64))

    def law(self, view: Ranks, facts: Facts) -> QuantileLaw:
        """The law of the points."""
        c = self.constant(facts)
        targets = [gap * view.size for gap in gaps(facts)]
        view.refine_at(_first_read(facts, view.size, windows(c, view.points, len(facts.orders), view.size)))
        return JointLaw(Chain(view, targets, c), view)

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """A bound over all data: a tuple with an order d ranks off weighs at most e^(-2 c d)."""
        count, points = len(facts.orders), self.points(facts)
        # The best tuple rounds every target to a whole rank, and so misplaces less than one record a gap;
        # each of its orders has all points between two records, which are spread apart by public places.
        apart = 1
        if facts.size_is_public:
            apart = max(self.subcells >> facts.known_size.bit_length(), 1)
        excess = count * math.log((points + count) / apart) - math.log(1 - confidence)
        error = excess / (2 * float(self.constant(facts))) + (count + 1) / 2
        return min(math.ceil(error) + self.shared(facts), MAX_ROWS)

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        return (
            f"exponential mechanism on {len(facts.orders)} ordered points out of {facts.grid.cells:,}, joint"
        )


def gaps(facts: Facts) -> list[Fraction]:
    """The shares of the records before, between and after the orders."""
    ends = [Fraction(0), *facts.orders, Fraction(1)]
    return [high - low for low, high in itertools.pairwise(ends)]


def _first_read(facts: Facts, size: int, around: Windows) -> Ints:
    """The ranks that the chain reads first, so that one pass finds them all."""
    offsets = around.offsets() if around.near < size else np.arange(-size, size + 1)
    centres = np.array([math.floor(order * size) for order in facts.orders])
    ranks: Ints = np.add.outer(centres, offsets).ravel()
    return ranks[(ranks >= 1) & (ranks <= size)]
