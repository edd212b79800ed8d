"""Quantiles whose intervals hold on any data: a share of the budget counts the values around each of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, cast

import numpy as np

from sfumato.checks import shown
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS
from sfumato.data.ranks import Ranks
from sfumato.data.rounds import together
from sfumato.errors import InvalidParameter
from sfumato.laws import Bits, Law
from sfumato.mechanisms import Additive, Sensitivity, additive
from sfumato.privacy import Budget, ComposedEvent, PureDP
from sfumato.quantile_methods.framed import Framed, divisible
from sfumato.quantile_methods.method import Facts, Method, Purchase, QuantileLaw
from sfumato.quantile_methods.thresholds import MOST_EVEN, Position, Spot, edges, positions
from sfumato.quantile_methods.walks import Counted, walked, walked_population
from sfumato.query import Outcome, raw
from sfumato.statistics.mean_spread import share_of

# The confidence of the interval into which a released value is moved.
MOVED = 0.95
# "auto": as much as leaves the quantiles an error of at most 1.5 times that without verification, which grows
# with 1 / epsilon or with 1 / sqrt(rho). A single quantile also pays for two outer orders.
PURE, CONCENTRATED, OUTER = Fraction(1, 3), Fraction(1, 2), Fraction(1, 9)
PURE_SINGLE = Fraction(1, 4)


def checked_verify(share: object, method: object) -> Fraction | Literal["auto"]:
    """The part of a budget that verifies: 0, neither tiny nor nearly all, or "auto"."""
    if isinstance(share, str) and share == "auto":
        return "auto"
    found = share_of("verify", share)
    name = getattr(method, "name", method)
    if found and name in ("tree", "unbounded"):
        why = "its counts tell the interval" if name == "tree" else "it has no bounds"
        raise InvalidParameter(
            f"verify must be 0 or 'auto' for the method {name!r}: {why}, got {shown(share)}"
        )
    return found


def resolved(facts: Facts, share: Fraction | Literal["auto"]) -> Fraction:
    """The part of the budget that verifies."""
    if share != "auto":
        return share
    if not facts.buy(1).pure:
        return CONCENTRATED
    return PURE if len(facts.orders) > 1 else PURE_SINGLE


def verified_rest(facts: Facts, share: Fraction | Literal["auto"]) -> Facts:
    """The facts with the budget that verification leaves to the quantiles."""
    return replace(facts, budget=facts.budget.share(1 - resolved(facts, share)), bits=facts.resolution)


def verified(method: Method, facts: Facts, share: Fraction | Literal["auto"]) -> Method:
    """A method with verification, unless it tells its own interval."""
    if hasattr(method, "interval"):
        return method
    inner = Framed(method=method, share=OUTER) if len(facts.orders) == 1 else method
    return Verified(method=inner, share=resolved(facts, share))


@dataclass(frozen=True, eq=False)
class CellsLaw:
    """The thresholds, which are public by now, and the noisy counts of the cells between them."""

    thresholds: Outcome
    counts: Law

    def sample(self, bits: Bits) -> Outcome:
        """One outcome."""
        return (*self.thresholds, *raw(self.counts.sample(bits)))

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the counts."""
        number = len(self.thresholds)
        if outcome[:number] != self.thresholds:
            return -math.inf
        return float(np.sum(self.counts.logpmf(np.array(outcome[number:]))))


@dataclass(frozen=True, eq=False)
class VerifiedLaw:
    """The quantiles, then the noisy counts around them."""

    first: QuantileLaw
    ranks: Ranks
    method: "Verified"
    facts: Facts

    def sample(self, bits: Bits) -> Outcome:
        """The quantiles, then what follows from them."""
        drawn = raw(self.first.sample(bits))
        return (*drawn, *self.after(drawn).sample(bits))

    def after(self, drawn: Outcome) -> CellsLaw:
        """The law of thresholds and counts once the quantiles are known."""
        thresholds = self.method.thresholds(drawn, self.facts)
        below = self.ranks.below_cells(np.array(thresholds, dtype=np.int64))
        cells = np.diff(np.concatenate([[0], below, [self.ranks.size]]))
        return CellsLaw(thresholds, self.method.noise(self.facts).law(cells))

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the quantiles and of what followed."""
        number = len(outcome) - self.method.counted(self.facts)
        own = self.first.logpmf(outcome[:number])
        return own + self.after(outcome[:number]).logpmf(outcome[number:]) if own > -math.inf else own

    @property
    def count(self) -> float:
        """Counts have no end: an audit compares them by the noise, and lists the quantiles."""
        return math.inf

    def outcomes(self) -> tuple[Outcome, ...]:
        """Not listed."""
        return ()


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
        return replace(facts, budget=self._whole(facts).share(1 - self.share), bits=facts.resolution)

    def _whole(self, facts: Facts) -> Budget:
        return divisible(self.method, facts)

    @lru_cache(maxsize=128)  # noqa: B019  reason: the same
    def noise(self, facts: Facts) -> Additive:
        """The noise on the counts: one record leaves a cell, and may enter another where it is replaced."""
        moved = 2 if facts.replaces else 1
        sensitivity = Sensitivity(l1=moved, l2_squared=moved, coordinates=moved)
        return additive(self._whole(facts).share(self.share), sensitivity, "auto")

    @lru_cache(maxsize=128)  # noqa: B019  reason: the same
    def positions(self, facts: Facts) -> tuple[Position, ...]:
        """Where thresholds are placed, as orders."""
        return positions(facts, self.noise(facts), self.own(facts).buy(1).range)

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
        return cast(QuantileLaw, VerifiedLaw(self.method.law(view[0], self.own(facts)), view[1], self, facts))

    def most_drawn(self, facts: Facts) -> int:
        """What the method draws, the thresholds, and the counts between them."""
        # A private number of values may change how many thresholds there are.
        return self.method.most_drawn(self.own(facts)) + 2 * max(4 * len(facts.orders), MOST_EVEN) + 1

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
        """One value for each order, moved into its interval."""
        values = self.method.answers(outcome[: -self.counted(facts)], self.own(facts))
        ends = self.interval(outcome, facts, MOVED)
        return [min(max(value, low), high) for value, (low, high) in zip(values, ends, strict=True)]

    def interval(
        self, outcome: Outcome, facts: Facts, confidence: float, failure: float | None = None
    ) -> list[tuple[Fraction, Fraction]]:
        """Where each of the data's quantiles lies, with this confidence for each, on any data.

        With a `failure` it is the population's, of which the data are a sample: what counting leaves of the
        failure is that of sampling.
        """
        number, grid = len(self.positions(facts)), facts.grid
        drawn = outcome[-self.counted(facts) :]
        size = facts.size if facts.size_is_public else None
        counted = Counted(self.noise(facts), drawn[:number], drawn[number:], size, grid.cells)
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
        """That of the method alone, or what an answer is off that was moved to a wrong end of its interval.

        Each of the two has half of the failure. A wrong end is so many ranks off only if noise exceeds by
        as much what the interval allows for. Proof: docs/proofs/verified.md.
        """
        half = (1 - confidence) / 2
        own = self.method.rank_error(self.own(facts), 1 - half)
        noise, number = self.noise(facts), len(self.positions(facts))
        orders = (None,) if facts.size_is_public else facts.orders
        spots = [Spot.of(place, number, order) for order in orders for place in range(number)]
        side, each = (1 - MOVED) / 2, half / (2 * len(facts.orders))
        moved = max((spot.tail(noise, each) - spot.tail(noise, side) for spot in spots), default=0.0)
        return min(max(own, math.ceil(moved)), MAX_ROWS)

    def beyond(self, facts: Facts) -> str:
        """As for the method alone."""
        return self.method.beyond(self.own(facts))

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        noise = self.noise(facts).described()
        counts = f"{noise} on the counts between {len(self.positions(facts))} thresholds"
        return f"{self.method.words(self.own(facts))}; {counts}"
