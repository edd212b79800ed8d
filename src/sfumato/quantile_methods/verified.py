"""Quantiles whose intervals hold on any data: a share of the budget counts the values around each of them."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.checks import shown
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS
from sfumato.data.ranks import Ranks
from sfumato.data.rounds import together
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import Sensitivity, ZeroSumMechanism, additive
from sfumato.privacy import Budget, ComposedEvent, PureDP
from sfumato.quantile_methods.adaptive import AdaptiveLaw, CountsLaw
from sfumato.quantile_methods.corrections import MOST_DENSE, Edge, is_round, moved
from sfumato.quantile_methods.expected_errors import expected_error
from sfumato.quantile_methods.framed import NEEDLESS, Framed, divisible
from sfumato.quantile_methods.joint import Joint
from sfumato.quantile_methods.method import Facts, Method, Purchase, QuantileLaw
from sfumato.quantile_methods.noise_sums import CountNoise
from sfumato.quantile_methods.thresholds import (
    MOST_EVEN,
    MOST_PAIRS,
    SIDE,
    Position,
    Spot,
    corrected,
    edges,
    positions,
)
from sfumato.quantile_methods.walks import Counted, walked, walked_population
from sfumato.query import Outcome
from sfumato.statistics.mean_spread import share_of

# The confidence of the interval into which a released value is moved.
MOVED = 0.95
# "auto": what leaves values and intervals both usable on smooth data; docs/intervals.md has the figures. With
# an epsilon one draw errs by few ranks, and so few are hard to correct by counts: it gets more of the budget.
AUTO, AUTO_SINGLE = Fraction(1, 2), Fraction(2, 5)
# "auto" verifies nothing where two counts around the middle leave at least this part of the values in doubt:
# the interval would be little narrower than the bounds, and the answers would err far more.
MOST_DOUBT = 0.25
# The part that outer orders have of the rest: the more values, the less. With few values the outer orders say
# something only where they are near.
LEAST_OUTER, MOST_OUTER = Fraction(1, 25), Fraction(1, 9)


def checked_verify(share: object, method: object) -> Fraction | Literal["auto"]:
    """The part of a budget that verifies: 0, neither tiny nor nearly all, or "auto"."""
    if isinstance(share, str) and share == "auto":
        return "auto"
    found = share_of("verify", share)
    name = getattr(method, "name", method)
    if found and name in NEEDLESS:
        raise InvalidParameter(
            f"verify must be 0 or 'auto' for the method {name!r}: {NEEDLESS[name]}; got {shown(share)}"
        )
    return found


@lru_cache(maxsize=256)
def verify_share(share: Fraction | Literal["auto"], facts: Facts) -> Fraction:
    """The part of the budget that verifies; "auto" is none where few values meet a small budget."""
    if share != "auto":
        return share
    part = AUTO_SINGLE if len(facts.orders) == 1 and isinstance(facts.budget, PureDP) else AUTO
    noise = Verified(method=Joint(), share=part).noise(facts)
    doubt = 2 * Spot.of(0, 2, None if facts.size_is_public else Fraction(1, 2)).tail(noise, SIDE)
    return part if doubt < MOST_DOUBT * facts.known_size else Fraction(0)


def most_counted(orders: int) -> int:
    """The largest number of thresholds and counts that this many orders need, for any number of values."""
    return 2 * max(2 * MOST_PAIRS * orders, MOST_EVEN) + 1


def outer_share(facts: Facts) -> Fraction:
    """The part of the rest of the budget for the two orders around a single quantile."""
    wanted = MOST_OUTER if facts.size is None else Framed.wanted(facts)
    return min(max(wanted, LEAST_OUTER), MOST_OUTER)


def verified_rest(facts: Facts, share: Fraction) -> Facts:
    """The facts with the budget that verification leaves to the quantiles."""
    rest = facts.budget.share(1 - share)
    return replace(facts, budget=rest, points=facts.made)


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A method with the rest of the budget; a share counts the values between thresholds around its answers.

    Wrong thresholds make an interval wide, and never wrong. A released value is moved into its interval.

    Guarantee:
        The budget is divided in two parts that compose to it; thresholds follow from what was drawn before.
        Each interval holds with its confidence on any data. Proof: docs/proofs/verified.md.

    Args:
        method: what answers the orders.
        share: the part of the budget for the counts.
    """

    name: ClassVar[str] = "verified"
    needs_bounds: ClassVar[bool] = True

    method: Method
    share: Fraction

    @property
    def needs_size(self) -> bool:
        """Thresholds are so many ranks away, which needs their number."""
        return True

    def check(self, facts: Facts) -> None:
        """Refuse what the method refuses."""
        self.method.check(self.own(facts))
        self.noise(facts)

    @lru_cache(maxsize=128)  # noqa: B019  reason: a method is a small frozen value
    def own(self, facts: Facts) -> Facts:
        """The facts for the orders asked for, on the grid of the whole."""
        return replace(facts, budget=self._whole(facts).share(1 - self.share), points=facts.made)

    def _whole(self, facts: Facts) -> Budget:
        return divisible(self.method, facts)

    @lru_cache(maxsize=128)  # noqa: B019  reason: the same
    def noise(self, facts: Facts) -> CountNoise:
        """The noise on the counts: one record leaves a cell, and may enter another where it is replaced."""
        budget = self._whole(facts).share(self.share)
        if facts.size_is_public and isinstance(budget, PureDP):
            # All counts add up to the number of values. Gaussian noise would gain nothing by that.
            return ZeroSumMechanism.calibrated(budget.epsilon)
        moved = 2 if facts.replaces else 1
        return additive(budget, Sensitivity(l1=moved, l2_squared=moved, coordinates=moved), "auto")

    @lru_cache(maxsize=128)  # noqa: B019  reason: the same
    def positions(self, facts: Facts) -> tuple[Position, ...]:
        """Where thresholds are placed, as orders."""
        return positions(facts, self.noise(facts), self.off(facts))

    @lru_cache(maxsize=128)  # noqa: B019  reason: the same
    def off(self, facts: Facts) -> float:
        """How many ranks a draw is off on average, on smooth data."""
        own, method = self.own(facts), self.method
        if isinstance(method, Framed):
            own, method = method.own(own), method.method
        return expected_error(method, own)

    @lru_cache(maxsize=128)  # noqa: B019  reason: the same
    def expected_error(self, facts: Facts) -> float:
        """How many ranks an answer is off on average, on smooth data, once the counts have corrected it."""
        left = [math.sqrt(1 - self._weight(facts, order)) for order in facts.orders]
        return self.off(facts) * float(np.mean(left))

    @lru_cache(maxsize=2**12)  # noqa: B019  reason: the same
    def _weight(self, facts: Facts, order: Fraction) -> float:
        """The part of the estimated error of a draw to correct; 0 where thresholds do not surround it."""
        near = self._near(facts, order)
        if near is None:
            return 0.0
        (place, below), (_, above) = near
        spread = self._spot(facts, place, order).spread(self.noise(facts))
        return corrected(self.off(facts), spread, below, above)

    def counted(self, facts: Facts) -> int:
        """How many integers follow the quantiles: the thresholds and the counts between them."""
        return 2 * len(self.positions(facts)) + 1

    def thresholds(self, drawn: Outcome, facts: Facts) -> Outcome:
        """The cells before which values are counted, in order."""
        own, method = self.own(facts), self.method
        orders, values = list(own.orders), list(method.answers(drawn, own))
        ends = method.ends(own)
        if isinstance(method, Framed):
            low, high = method.outer(own).orders
            least, most = method.outer_answers(drawn, own)
            orders, values = [low, *orders, high], [least, *values, most]
        return edges(self.positions(facts), orders, sorted(values), ends, facts.grid)

    def terms(self, facts: Facts) -> Purchase:
        """What both parts cost together."""
        own, whole = self.method.terms(self.own(facts)), self._whole(facts)
        cost = whole if isinstance(whole, PureDP) else facts.budget
        return Purchase(own.range, cost, ComposedEvent([own.event, self.noise(facts).event]))

    def look(self, column: Column, facts: Facts) -> Any:
        """The data as the method wants them, and on the line of points."""
        own = self.own(facts)
        view = self.method.look(column, own)
        ranks = view if isinstance(view, Ranks) else None
        if isinstance(view, list) and isinstance(view[0], Ranks):
            ranks = view[0]
        if ranks is None:
            return together(lambda: view, lambda: Ranks.of(column, facts.grid, nulls=facts.nulls, parts=1))
        return [view, ranks]

    def law(self, view: Any, facts: Facts) -> QuantileLaw:
        """The law of both parts."""
        return AdaptiveLaw(self.method.law(view[0], self.own(facts)), view[1], self, facts)

    def after(self, drawn: Outcome, ranks: Ranks, facts: Facts) -> CountsLaw:
        """The law of the thresholds and of the counts between them once the quantiles are known."""
        thresholds = self.thresholds(drawn, facts)
        below = ranks.below_cells(np.array(thresholds, dtype=np.int64))
        cells = np.diff(np.concatenate([[0], below, [ranks.size]]))
        return CountsLaw(thresholds, self.noise(facts).law(cells))

    def most_drawn(self, facts: Facts) -> int:
        """What the method draws, the thresholds, and the counts between them."""
        return self.method.most_drawn(self.own(facts)) + most_counted(len(facts.orders))

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether both parts could have been drawn."""
        number, follow = len(self.positions(facts)), self.counted(facts)
        if len(outcome) <= follow:
            return False
        thresholds, counts = outcome[-follow:][:number], outcome[-follow:][number:]
        placed = list(thresholds) == sorted(thresholds)
        placed = placed and all(0 <= cell <= facts.grid.cells for cell in thresholds)
        drawn = self.method.possible(outcome[:-follow], self.own(facts))
        return placed and drawn and all(abs(part) < 2**60 for part in counts)

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """One value for each order: what was drawn, corrected by the counts and moved into its interval."""
        values = self._corrected(outcome, facts)
        ends = self.interval(outcome, facts, MOVED)
        return [min(max(value, low), high) for value, (low, high) in zip(values, ends, strict=True)]

    def _corrected(self, outcome: Outcome, facts: Facts) -> list[Fraction]:
        """The drawn quantiles, moved by the ranks that the counts say they are off."""
        drawn = self.method.answers(outcome[: -self.counted(facts)], self.own(facts))
        counted, grid = self._counts(outcome, facts), facts.grid
        found = []
        for order, value in zip(facts.orders, drawn, strict=True):
            near = self._near(facts, order)
            if near is None:
                found.append(value)
                continue
            target = counted.target(order)
            below, above = (
                Edge(grid.lower + counted.thresholds[place] * grid.step, ranks, counted.offset(place, target))
                for place, ranks in near
            )
            if is_round(facts.grid, value, above.end - below.end):
                found.append(value)
                continue
            nearer = moved(value, below, above, self._weight(facts, order))
            found.append(value if nearer == value else grid.value(round((nearer - grid.lower) / grid.step)))
        return sorted(found)

    @lru_cache(maxsize=2**12)  # noqa: B019  reason: the same
    def _near(self, facts: Facts, order: Fraction) -> tuple[tuple[int, float], tuple[int, float]] | None:
        """The nearest threshold on each side of an order and how many ranks away it is, if both sides have
        one."""
        places = self._places(facts)
        below, above = bisect_left(places, order) - 1, bisect_right(places, order)
        if below < 0 or above == len(places):
            return None
        size = facts.known_size
        return (
            (below, float(order - places[below]) * size),
            (above, float(places[above] - order) * size),
        )

    @lru_cache(maxsize=128)  # noqa: B019  reason: the same
    def _places(self, facts: Facts) -> list[Fraction]:
        return [position.order for position in self.positions(facts)]

    def _spot(self, facts: Facts, place: int, order: Fraction) -> Spot:
        return Spot.of(place, len(self.positions(facts)), None if facts.size_is_public else order)

    def _counts(self, outcome: Outcome, facts: Facts) -> Counted:
        number, drawn = len(self.positions(facts)), outcome[-self.counted(facts) :]
        size = facts.size if facts.size_is_public else None
        return Counted(self.noise(facts), drawn[:number], drawn[number:], size, facts.grid.cells)

    def interval(
        self, outcome: Outcome, facts: Facts, confidence: float, failure: float | None = None
    ) -> list[tuple[Fraction, Fraction]]:
        """Where each of the data's quantiles lies, with this confidence for each, on any data.

        With a `failure` it is the population's, of which the data are a sample: what counting leaves of the
        failure is that of sampling.
        """
        counted, grid = self._counts(outcome, facts), facts.grid
        walk = walked if failure is None else walked_population
        found = walk(counted, facts.orders, 1 - confidence)
        if facts.on_points:
            return [(grid.value(low), grid.value(max(high - 1, low))) for low, high in found]
        return [(grid.value(low), min(grid.lower + high * grid.step, grid.upper)) for low, high in found]

    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The least and the largest possible answer."""
        return self.method.ends(facts)

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """As for the method alone."""
        return self.method.brackets(outcome[: -self.counted(facts)], self.own(facts))

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """That of the method alone, or what counts can make of it.

        Half of the failure is for the method. A correction ends at a threshold, so that it leads as many
        ranks too far as both are apart, and what noise adds. Where a wrong end of an interval moves an
        answer, noise exceeds what the interval allows for. Proof: docs/proofs/verified.md.
        """
        half = (1 - confidence) / 2
        own = self.method.rank_error(self.own(facts), 1 - half)
        each, far = half / (4 * len(facts.orders)), 0.0
        if facts.size_is_public:
            # All orders have the same estimates.
            noisiest = dict.fromkeys(facts.orders, self._noisiest(facts, facts.orders[0], each))
        else:
            noisiest = {order: self._noisiest(facts, order, each) for order in facts.orders}
        for order in facts.orders:
            away = sum(ranks for _, ranks in self._near(facts, order) or ())
            far = max(far, MOST_DENSE * away + noisiest[order])
        return min(max(own, math.ceil(far)), MAX_ROWS)

    def _noisiest(self, facts: Facts, order: Fraction, failure: float) -> float:
        """How many values any of the estimates for an order is off, at most, but for this failure."""
        number, noise = len(self.positions(facts)), self.noise(facts)
        # The variance is largest in the middle where the number of values is public. Else weights are fixed,
        # and it grows from one end to the other.
        places = {number // 2} if facts.size_is_public else {0, number - 1}
        return max(self._spot(facts, place, order).rough_tail(noise, failure) for place in places)

    def beyond(self, facts: Facts) -> str:
        """As for the method alone."""
        return self.method.beyond(self.own(facts))

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        noise = self.noise(facts).described()
        counts = f"{noise} on the counts between {len(self.positions(facts))} thresholds"
        return f"{self.method.words(self.own(facts))}; {counts}"
