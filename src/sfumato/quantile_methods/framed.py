"""Quantiles with an interval of their own: a share of the budget draws one order below and one above them."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

from sfumato.checks import shown
from sfumato.data.column import Column
from sfumato.data.rounds import together
from sfumato.errors import InvalidParameter
from sfumato.laws import Bits
from sfumato.laws.chain import slack
from sfumato.privacy import ZCDP, ApproxDP, Budget, ComposedEvent, PureDP
from sfumato.privacy.conversions import zcdp_rho
from sfumato.quantile_methods.joint import Joint
from sfumato.quantile_methods.method import Facts, Method, Orders, Points, Purchase, QuantileLaw, buy
from sfumato.quantile_methods.recursive import Recursive
from sfumato.query import Outcome, raw
from sfumato.statistics.mean_spread import checked_share as spread_share

# How far the outer orders are from the others, in units of 1/epsilon ranks: so far that their own noise is
# small beside it.
REACH = 32
# "auto": the less there is to spend on the values beyond the orders, the larger the share, in these limits.
# benchmarks/interval_shares.py compares it with fixed shares.
LEAST_SHARE, MOST_SHARE, SPENT = Fraction(1, 10), Fraction(3, 10), 100


# The methods that have no use for a part of the budget that makes an interval, and why.
NEEDLESS = {
    "tree": "its counts tell the interval",
    "equi_depth": "its counts tell the interval",
    "unbounded": "it has no bounds",
}


def checked_share(share: object, method: object) -> Fraction | Literal["auto"]:
    """The part of a budget that is spent on an interval: 0, neither tiny nor nearly all, or "auto"."""
    found: Fraction | Literal["auto"] = "auto"
    if not (isinstance(share, str) and share == "auto"):
        found = spread_share(share)
    name = getattr(method, "name", method)
    if found and name in NEEDLESS:
        raise InvalidParameter(
            f"interval_share must be 0 for the method {name!r}: {NEEDLESS[name]}; got {shown(share)}"
        )
    return found


def divisible(method: Method, facts: Facts) -> Budget:
    """The budget of a method, in a currency whose parts add up."""
    if not isinstance(facts.budget, ApproxDP):
        return facts.budget
    if method.terms(facts).pure:
        return PureDP(facts.budget.epsilon)
    return ZCDP(zcdp_rho(facts.budget.epsilon, facts.budget.delta))


@dataclass(frozen=True, eq=False)
class FramedLaw:
    """The outcome of a method, followed by the two outer points, drawn independently."""

    own: QuantileLaw
    outer: QuantileLaw

    def sample(self, bits: Bits) -> Outcome:
        """One outcome."""
        return (*raw(self.own.sample(bits)), *raw(self.outer.sample(bits)))

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of both parts."""
        return self.own.logpmf(outcome[:-2]) + self.outer.logpmf(outcome[-2:])

    @property
    def count(self) -> float:
        """How many outcomes there are."""
        return self.own.count * self.outer.count

    def outcomes(self) -> Iterator[Outcome]:
        """Every outcome, for audits on small grids."""
        # One by one: the number of pairs is known to an auditor before any of them is made.
        for own in self.own.outcomes():
            for pair in self.outer.outcomes():
                yield (*own, *pair)


@dataclass(frozen=True, kw_only=True)
class Framed:
    """A method with the rest of the budget, and with a share of it two orders outside of those asked for.

    The outer points tell how spread the data are beyond the first and the last quantile; between two
    quantiles these tell it themselves.

    Guarantee:
        The budget is divided in two parts that compose to it. Proof: docs/proofs/quantiles.md.

    Args:
        method: what answers the orders.
        share: the part of the budget for the outer orders, or "auto" for one that suits the public facts.
        points: how fine the grid of the outer orders is; None for what their part of the budget can search.
    """

    name: ClassVar[str] = "framed"
    needs_bounds: ClassVar[bool] = True

    method: Method
    share: Fraction | Literal["auto"]
    points: Points | None = None

    def part(self, facts: Facts) -> Fraction:
        """The share, within limits where it follows from public facts."""
        if self.share != "auto":
            return self.share
        return min(max(self.wanted(facts), LEAST_SHARE), MOST_SHARE)

    @staticmethod
    def wanted(facts: Facts) -> Fraction:
        """The share at which the outer orders are about as sure as their distance from the others."""
        first, last = facts.orders[0], facts.orders[-1]
        ranks = facts.known_size * min(first, 1 - last)
        return (SPENT / (facts.buy(1).range * ranks)).limit_denominator(100)

    @property
    def needs_size(self) -> bool:
        """The outer orders are so many ranks away, which needs their number."""
        return True

    def check(self, facts: Facts) -> None:
        """Refuse what the method refuses."""
        self.method.check(self.own(facts))
        self._frame(facts).check(self.outer(facts))

    @lru_cache(maxsize=128)  # noqa: B019  reason: a method is a small frozen value
    def own(self, facts: Facts) -> Facts:
        """The facts for the orders asked for, on the grid of the whole."""
        budget = self._whole(facts).share(1 - self.part(facts))
        return replace(facts, budget=budget, points=facts.made)

    @lru_cache(maxsize=128)  # noqa: B019  reason: the same
    def outer(self, facts: Facts) -> Facts:
        """The facts for the outer orders."""
        budget = self._whole(facts).share(self.part(facts))
        points = self.points
        if points is not None and facts.points is not None and facts.points.cells is None:
            # On the bounds of a simulation, which has as fine a grid of its own.
            points = Points(bits=points.bits)
        return replace(facts, budget=budget, orders=self.outer_orders(facts), points=points)

    def _whole(self, facts: Facts) -> Budget:
        return divisible(self.method, facts)

    def outer_orders(self, facts: Facts) -> Orders:
        """One order below the first and one above the last, at most half of what is left there."""
        first, last = facts.orders[0], facts.orders[-1]
        part = self._whole(facts).share(self.part(facts))
        away = REACH / buy(part, 1).range / facts.known_size
        if len(facts.orders) > 1:
            # About as far as the other neighbours of the ends, so that the slopes there are as sure.
            gaps = [b - a for a, b in itertools.pairwise(facts.orders)]
            away = max(away, min(gaps) / 2)
        # A public fraction with a short denominator keeps the tables of weights short.
        finest = max(facts.finest, 4 * max(first.denominator, last.denominator))
        away = max(away, Fraction(1, finest))
        low, high = first - min(away, first / 2), last + min(away, (1 - last) / 2)
        low, high = low.limit_denominator(finest), high.limit_denominator(finest)
        if not 0 < low < first:
            low = first / 2
        if not last < high < 1:
            high = (1 + last) / 2
        return low, high

    def _frame(self, facts: Facts) -> Method:
        """What draws the outer points, which need not be round numbers."""
        part = buy(self._whole(facts).share(self.part(facts)), 1).range
        kind = Joint if 100 * slack(2) <= part else Recursive
        return kind(emphasis=Fraction(0))

    def terms(self, facts: Facts) -> Purchase:
        """What both parts cost together."""
        own = self.method.terms(self.own(facts))
        outer = self._frame(facts).terms(self.outer(facts))
        whole = self._whole(facts)
        cost = whole if isinstance(whole, PureDP) else facts.budget
        return Purchase(own.range, cost, ComposedEvent([own.event, outer.event]))

    def look(self, column: Column, facts: Facts) -> Any:
        """The data as each part wants them."""
        outer = self.outer(facts)
        return together(
            lambda: self.method.look(column, self.own(facts)), lambda: self._frame(facts).look(column, outer)
        )

    def law(self, view: Any, facts: Facts) -> QuantileLaw:
        """The law of both parts."""
        return FramedLaw(
            *together(
                lambda: self.method.law(view[0], self.own(facts)),
                lambda: self._frame(facts).law(view[1], self.outer(facts)),
            )
        )

    def most_drawn(self, facts: Facts) -> int:
        """What the method draws, and two outer points."""
        return self.method.most_drawn(self.own(facts)) + 2

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether both parts could have been drawn."""
        own = self.method.possible(outcome[:-2], self.own(facts))
        return own and self._frame(facts).possible(outcome[-2:], self.outer(facts))

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """One value for each order asked for."""
        return self.method.answers(outcome[:-2], self.own(facts))

    def outer_answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """The two outer points."""
        return self._frame(facts).answers(outcome[-2:], self.outer(facts))

    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The least and the largest possible answer."""
        return self.method.ends(facts)

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """As for the method alone."""
        return self.method.brackets(outcome[:-2], self.own(facts))

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """As for the method alone, with its part of the budget."""
        return self.method.rank_error(self.own(facts), confidence)

    def beyond(self, facts: Facts) -> str:
        """As for the method alone."""
        return self.method.beyond(self.own(facts))

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        return f"{self.method.words(self.own(facts))}; an outer pair of orders for the interval"
