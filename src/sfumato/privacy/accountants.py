"""How costs add up: three filters that stay valid when each query is chosen after seeing earlier answers.

A filter decides before the data are read whether one more event fits under a cap. Sums of pure epsilons,
of rhos, and of (epsilon, delta) pairs are valid filters even when the analyst adapts everything, the
privacy parameters included; docs/proofs/composition.md gives the proofs. Tighter composition of a batch
that is fixed in advance is in `composition.py`.

Accountants do no locking: the ledger, which makes a charge durable, serialises them.
"""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Protocol

from sfumato.checks import decimal
from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported
from sfumato.one_process import OneProcess
from sfumato.privacy.composition import approx_satisfied, stated_delta
from sfumato.privacy.conversions import zcdp_rho
from sfumato.privacy.definitions import ZCDP, Amount, ApproxDP, Budget, PureDP
from sfumato.privacy.events import ApproxEvent, Event, flatten

__all__ = ["Accountant", "PureAccountant", "SummedAccountant", "ZCDPAccountant", "accountant_for"]

NOTHING = Amount()


class Accountant(Protocol):
    """What a session or a ledger needs of a filter.

    Guarantee:
        What was charged never passes the cap, and then all of it together satisfies the cap, even if each
        query is chosen after seeing the answers to earlier ones. Proof: docs/proofs/composition.md.

    >>> accountant: Accountant = PureAccountant(PureDP(1))
    >>> accountant.spent, accountant.remaining
    (Amount(), Amount(epsilon=1.0))
    """

    @property
    def cap(self) -> Budget:
        """The budget that is never passed."""

    @property
    def spent(self) -> Amount:
        """The sum of all charges."""

    @property
    def remaining(self) -> Amount:
        """The cap less what was spent."""

    def price(self, event: Event, cost: Budget | None = None) -> Amount:
        """What a charge would add; changes nothing."""

    def require(self, event: Event, cost: Budget | None = None) -> Amount:
        """The price of a charge that fits, or BudgetExceeded; changes nothing either way."""

    def charge(self, event: Event, cost: Budget | None = None) -> Amount:
        """Adds the price of an event and returns it, or raises BudgetExceeded and changes nothing."""


class _Filter(OneProcess, ABC):
    """Exact spending under a cap; the kinds differ in the price of an event only."""

    noun = "an accountant"

    def __init__(self, cap: Budget, spent: Amount) -> None:
        self._cap = cap
        self._whole = Amount.of(cap)
        if not spent.fits(self._whole):
            raise InvalidParameter(f"spent must be an Amount within cap={cap!r}, got spent={spent!r}")
        self._spent = spent

    @property
    def spent(self) -> Amount:
        """The sum of all charges, exactly."""
        return self._spent

    @property
    def remaining(self) -> Amount:
        """The cap less what was spent, exactly."""
        return self._whole - self._spent

    @abstractmethod
    def price(self, event: Event, cost: Budget | None = None) -> Amount:
        """What charging `event` would add; `cost`, if given, must cover the event and is then the price."""

    def require(self, event: Event, cost: Budget | None = None) -> Amount:
        """The price of `event` if it fits what remains, else BudgetExceeded; changes nothing either way."""
        self.require_process()
        price = self.price(event, cost)
        if not (self._spent + price).fits(self._whole):
            raise BudgetExceeded(f"a charge of {price.words} does not fit: {self.remaining.words} is left")
        return price

    def charge(self, event: Event, cost: Budget | None = None) -> Amount:
        """Adds the price of `event` and returns it, or raises BudgetExceeded and changes nothing."""
        price = self.require(event, cost)
        self._spent += price
        return price

    def __repr__(self) -> str:
        return f"{type(self).__name__}(cap={self._cap!r}, spent={self._spent!r})"


class PureAccountant(_Filter):
    """Adds up pure epsilons as exact fractions.

    Guarantee:
        All events charged are together `cap`-DP, however they were chosen.

    Raises:
        InvalidParameter: the cap is not a PureDP, or `spent` passes it.

    References:
        [DR14], theorem 3.16; adaptive: docs/proofs/composition.md.

    >>> from sfumato.privacy.events import LaplaceEvent
    >>> accountant = PureAccountant(PureDP(0.3))
    >>> for _ in range(3):
    ...     _ = accountant.charge(LaplaceEvent(sensitivity=1, scale=10))
    >>> accountant.remaining
    Amount()
    """

    def __init__(self, cap: PureDP, spent: Amount = NOTHING) -> None:
        if not isinstance(cap, PureDP):
            raise InvalidParameter(f"cap must be a PureDP, got cap={cap!r}")
        super().__init__(cap, spent)
        self.cap = cap

    def price(self, event: Event, cost: Budget | None = None) -> Amount:
        """The pure epsilon of the event, or the stated cost if it covers that; NotSupported without one."""
        needed = pure_epsilon(event)
        if needed is None:
            raise NotSupported(f"a pure budget cannot pay for {event!r}: it has no finite pure epsilon")
        if cost is None:
            return Amount(epsilon=needed)
        if not isinstance(cost, PureDP) or cost.epsilon < needed:
            raise InvalidParameter(f"cost must be a PureDP of at least {decimal(needed)}, got cost={cost!r}")
        return Amount.of(cost)


class ZCDPAccountant(_Filter):
    """Adds up rhos as exact fractions.

    Guarantee:
        All events charged are together `cap`-zCDP, however they were chosen.

    Raises:
        InvalidParameter: the cap is not a ZCDP, or `spent` passes it.

    References:
        [BS16], lemma 1.7; adaptive: docs/proofs/composition.md.

    >>> from sfumato.privacy.events import GaussianEvent
    >>> accountant = ZCDPAccountant(ZCDP(0.05))
    >>> accountant.charge(GaussianEvent(sensitivity_squared=1, sigma_squared=50, coordinates=1))
    Amount(rho=0.01)
    >>> accountant.remaining
    Amount(rho=0.04)
    """

    def __init__(self, cap: ZCDP, spent: Amount = NOTHING) -> None:
        if not isinstance(cap, ZCDP):
            raise InvalidParameter(f"cap must be a ZCDP, got cap={cap!r}")
        super().__init__(cap, spent)
        self.cap = cap

    @classmethod
    def under(cls, target: ApproxDP) -> "ZCDPAccountant":
        """The accountant of the largest rho whose conversion stays within `target`."""
        return cls(ZCDP(zcdp_rho(target.epsilon, target.delta)))

    def price(self, event: Event, cost: Budget | None = None) -> Amount:
        """The rho of the event, or the stated cost if it covers that."""
        flatten([event])
        if cost is None:
            return Amount(rho=event.rho)
        if not isinstance(cost, ZCDP) or cost.rho < event.rho:
            raise InvalidParameter(f"cost must be a ZCDP of at least {decimal(event.rho)}, got cost={cost!r}")
        return Amount.of(cost)


class SummedAccountant(_Filter):
    """Adds up (epsilon, delta) costs as exact fractions.

    Guarantee:
        All events charged are together `cap`-DP, however they were chosen. A stated cost is believed only
        after checking that the event satisfies it.

    Raises:
        InvalidParameter: the cap is not an ApproxDP, or `spent` passes it.

    References:
        [DR14], theorem 3.16; adaptive: docs/proofs/composition.md.

    >>> from sfumato.privacy.events import LaplaceEvent, GaussianEvent
    >>> accountant = SummedAccountant(ApproxDP(1, 1e-5))
    >>> accountant.charge(LaplaceEvent(sensitivity=1, scale=4))
    Amount(epsilon=0.25)
    >>> accountant.charge(GaussianEvent(1, 200, coordinates=1), ApproxDP(0.5, 1e-6))
    Amount(epsilon=0.5, delta=1e-06)
    """

    def __init__(self, cap: ApproxDP, spent: Amount = NOTHING) -> None:
        if not isinstance(cap, ApproxDP):
            raise InvalidParameter(f"cap must be an ApproxDP, got cap={cap!r}")
        super().__init__(cap, spent)
        self.cap = cap

    def price(self, event: Event, cost: Budget | None = None) -> Amount:
        """What the event itself states, or the stated cost if the event provably satisfies it."""
        needed = pure_epsilon(event)
        if cost is None:
            return _summed(event)
        if isinstance(cost, PureDP):
            if needed is None or cost.epsilon < needed:
                raise InvalidParameter(f"cost must cover the event {event!r}, got cost={cost!r}")
            return Amount.of(cost)
        if not isinstance(cost, ApproxDP):
            raise InvalidParameter(f"cost must be a PureDP or an ApproxDP, got cost={cost!r}")
        if not approx_satisfied(event, cost):
            raise InvalidParameter(f"cost must cover the event {event!r}, got cost={cost!r}")
        return Amount.of(cost)


def _summed(event: Event) -> Amount:
    parts = flatten([event])
    costs = [part.epsilon if isinstance(part, ApproxEvent) else part.pure_epsilon for part in parts]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        raise NotSupported(f"a summed budget needs the (epsilon, delta) cost of {event!r}")
    return Amount(epsilon=sum(known, Fraction(0)), delta=stated_delta(parts))


def pure_epsilon(event: Event) -> Fraction | None:
    """The pure cost of an event, after checking that it is one."""
    flatten([event])
    return event.pure_epsilon


def accountant_for(
    budget: Budget, spent: Amount = NOTHING
) -> PureAccountant | ZCDPAccountant | SummedAccountant:
    """The filter whose cap is of the same kind as the budget.

    Guarantee:
        Its cap is the budget itself, converted to nothing else.

    Raises:
        InvalidParameter: `budget` is not a budget, or `spent` passes it.

    References:
        [DR14], [BS16].

    >>> accountant_for(PureDP(1))
    PureAccountant(cap=PureDP(epsilon=1.0), spent=Amount())
    """
    if isinstance(budget, PureDP):
        return PureAccountant(budget, spent)
    if isinstance(budget, ZCDP):
        return ZCDPAccountant(budget, spent)
    return SummedAccountant(budget, spent)
