"""Several questions that are fixed together and paid for as one."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

from sfumato.privacy import (
    ZCDP,
    Amount,
    ApproxDP,
    ComposedEvent,
    Composition,
    Event,
    Neighbours,
    PureDP,
    compose,
)
from sfumato.privacy.composition import stated_delta
from sfumato.query import Charged, Cost

# What a delta must lower the epsilon of a batch to, to be spent on it.
WORTH = Fraction(19, 20)


@dataclass(frozen=True)
class Batch:
    """What a ledger is charged with for several questions at once.

    Guarantee:
        All of them together cost `cost`. Epsilons or rhos add up; with a delta, the best proof for events
        that were fixed before the first answer: sums, zCDP, Gaussian curves or a privacy loss distribution.
        Proof: docs/proofs/composition.md.

    Args:
        items: what is paid for; each has its own event and cost.
        neighbours: the relation of the data set.
        within: what the batch may cost, where it has a delta. It is spent if that lowers the epsilon by a
            twentieth, or if the sum would not fit; None for the deltas of the items.

    >>> from sfumato.statistics import Count
    >>> item = Count(budget=PureDP(0.25), neighbours="add-remove")
    >>> Batch((item, item), "add-remove").cost
    PureDP(epsilon=0.5)
    """

    name: ClassVar[str] = "batch"

    items: tuple[Charged, ...]
    neighbours: Neighbours
    within: ApproxDP | None = None

    @property
    def column(self) -> str:
        """The columns, for the ledger."""
        return ", ".join(dict.fromkeys(item.column for item in self.items))

    @cached_property
    def event(self) -> Event:
        """All that is done, composed."""
        return ComposedEvent(item.event for item in self.items)

    @property
    def cost(self) -> Cost:
        """What all items cost together."""
        return self._priced[0]

    @property
    def composition(self) -> str:
        """Which proof gave the cost, in words."""
        return self._priced[1]

    @cached_property
    def _priced(self) -> tuple[Cost, str]:
        summed = sum((_amount(item.cost) for item in self.items), Amount())
        if summed.rho:
            # Where some state an epsilon instead, their events know their rho.
            mixed = summed.epsilon or summed.delta
            return ZCDP(self.event.rho if mixed else summed.rho), "sum of rho"
        delta = summed.delta if self.within is None else self.within.delta
        # A delta below what the events state proves nothing; the sum is what the ledger then refuses.
        priced = delta and summed.epsilon and delta >= stated_delta([self.event])
        best = _composed(self.event, delta) if priced else None
        if best is not None and self._is_worth(best.budget, summed):
            return best.budget, _WORDS[best.method]
        if summed.delta:
            return ApproxDP(summed.epsilon, summed.delta), "sum of epsilon and delta"
        return (PureDP(summed.epsilon) if summed.epsilon else summed), "sum of epsilon"

    def _is_worth(self, best: ApproxDP, summed: Amount) -> bool:
        if best.delta < summed.delta:
            return True
        # A whole delta for next to nothing would leave too little to those who come later.
        spends = best.delta > summed.delta and (self.within is None or summed.fits(Amount.of(self.within)))
        return best.epsilon < summed.epsilon * (WORTH if spends else 1)


# A preview and the charge after it ask for the same price; a privacy loss distribution is found once.
@lru_cache(maxsize=16)
def _composed(event: Event, delta: Fraction) -> Composition:
    return compose([event], delta=delta)


def _amount(cost: Cost) -> Amount:
    return cost if isinstance(cost, Amount) else Amount.of(cost)


_WORDS = {
    "pure sum": "sum of epsilon",
    "approximate sum": "sum of epsilon and delta",
    "zCDP": "sum of rho, converted",
    "bounded noise": "curve of bounded noise",
    "Gaussian": "curve of Gaussian noise",
    "PLD": "privacy loss distribution",
}
