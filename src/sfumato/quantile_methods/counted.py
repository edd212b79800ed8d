"""Where the number of values is private and needed: a small part of the budget counts it first."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.data.column import Column
from sfumato.laws import Bits, Law
from sfumato.mechanisms import Additive, Sensitivity, additive
from sfumato.privacy import ZCDP, ApproxDP, ComposedEvent, ConcentratedEvent, Event, PureDP, PureEvent
from sfumato.privacy.conversions import zcdp_rho
from sfumato.quantile_methods.method import Facts, Method
from sfumato.query import Outcome, raw

# A count needs little: its noise of 20 / epsilon is far below any number of values that gives good quantiles.
SHARE = Fraction(1, 20)


@dataclass(frozen=True)
class Counted:
    """The noisy count, and the facts that hold once it is known.

    Guarantee:
        Count and quantiles compose to the whole budget: epsilons add up, or rhos. The method may depend on
        the count, because every method costs the same rest. Proof: docs/proofs/quantiles.md.
    """

    noise: Additive
    facts: Facts

    @classmethod
    def under(cls, facts: Facts, share: Fraction = SHARE) -> "Counted":
        """A twentieth of the budget for the count, or another share; the rest for the quantiles."""
        whole = facts.budget
        if isinstance(whole, ApproxDP):
            # Epsilons add up, and so do rhos to what the approximate budget converts to: the stronger one.
            pure = facts.buy(1).pure
            whole = PureDP(whole.epsilon) if pure else ZCDP(zcdp_rho(whole.epsilon, whole.delta))
        first, rest = whole.share(share), whole.share(1 - share)
        return cls(additive(first, Sensitivity.scalar(1), "auto"), replace(facts, budget=rest))

    @property
    def event(self) -> Event:
        """The count and what follows, composed."""
        rest = self.facts.budget
        if isinstance(rest, PureDP):
            return ComposedEvent([self.noise.event, PureEvent(rest.epsilon, "quantiles")])
        return ComposedEvent([self.noise.event, ConcentratedEvent(rest.rho, "quantiles")])  # type: ignore[union-attr]

    def settled(self, count: int) -> Facts:
        """The facts once the noisy count is known."""
        return replace(self.facts, size=max(count, 1))

    def law(self, column: Column, pick: Callable[[Facts], Method]) -> "CountedLaw":
        """The law of the count and of the outcome of the method that it leads to."""
        return CountedLaw(self, column, pick)

    @property
    def words(self) -> str:
        """What is done first, in words."""
        return f"{self.noise.described()} on the number of values"


@dataclass(frozen=True, eq=False)
class CountedLaw:
    """A noisy count, then the law of the method that suits it."""

    counted: Counted
    column: Column
    pick: Callable[[Facts], Method]

    @property
    def first(self) -> Law:
        """The law of the count."""
        kept = self.column.rows
        if self.counted.facts.nulls == "drop":
            kept -= self.column.nulls()
        return self.counted.noise.law(kept)

    def sample(self, bits: Bits) -> Outcome:
        """The count, then the outcome of the method."""
        first = raw(self.first.sample(bits))
        return (*first, *raw(self.after(first).sample(bits)))

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the count and of what followed."""
        count = float(self.first.logpmf(outcome[0]))
        return count + self.after(outcome[:1]).logpmf(outcome[1:]) if count > -math.inf else count

    @property
    def count(self) -> float:
        """A count has no end: each part is audited by itself."""
        return math.inf

    def outcomes(self) -> tuple[Outcome, ...]:
        """Not listed."""
        return ()

    def after(self, first: Outcome) -> Law:
        """The law of the method that the count leads to."""
        facts = self.counted.settled(first[0])
        method = self.pick(facts)
        law: Law = method.law(method.look(self.column, facts), facts)  # type: ignore[assignment]
        return law
