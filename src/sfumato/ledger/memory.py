"""A ledger that lives as long as the process."""

from dataclasses import dataclass
from threading import Lock

from sfumato.checks import shown
from sfumato.errors import InvalidParameter
from sfumato.one_process import OneProcess
from sfumato.privacy import (
    ZCDP,
    Amount,
    ApproxDP,
    Budget,
    Event,
    Neighbours,
    OneShotEvent,
    PureDP,
    accountant_for,
    check_neighbours,
)
from sfumato.privacy.accountants import PureAccountant, SummedAccountant, ZCDPAccountant
from sfumato.privacy.records import short_text
from sfumato.query import Charged


@dataclass(frozen=True)
class Entry:
    """One charge: its number, what was asked of which data set, the event and its exact price."""

    number: int
    dataset: str
    statistic: str
    column: str
    event: Event
    price: Amount
    # A durable ledger knows these too: the id that makes a retry safe, and the hash of its entry.
    request: str | None = None
    hash: str | None = None


class MemoryLedger(OneProcess):
    """Caps what is spent on a data set within one process; safe to share between threads.

    Args:
        cap: the budget of the data set.
        neighbours: the relation that all costs are meant under; fixed, because costs under two do not add up.
        dataset: the public name of the data set.
        unit: whose privacy all costs are meant for, "row" or the name of an id column; fixed for the same
            reason.

    Guarantee:
        All charges together stay within the cap, exactly, however the queries were chosen.
        Proof: docs/proofs/composition.md. It ends with the process: a forked process is refused, and it is
        neither copied nor stored, since the copy would spend the cap again.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Count
    >>> ledger = MemoryLedger(PureDP(1), neighbours="add-remove")
    >>> ledger.charge(Count(budget=PureDP(0.25), neighbours="add-remove")).price
    Amount(epsilon=0.25)
    >>> ledger.remaining
    Amount(epsilon=0.75)
    """

    noun = "a ledger in memory"

    def __init__(
        self, cap: Budget, *, neighbours: Neighbours, dataset: str = "data", unit: str = "row"
    ) -> None:
        checked = check_budget("cap", cap)
        self.neighbours = check_neighbours(neighbours)
        self.unit = short_text("unit", unit)
        self.dataset = dataset
        self._accountant: PureAccountant | ZCDPAccountant | SummedAccountant = accountant_for(checked)
        self._entries: list[Entry] = []
        self._lock = Lock()

    @property
    def cap(self) -> Budget:
        """The budget that is never passed."""
        return self._accountant.cap

    @property
    def spent(self) -> Amount:
        """What was charged."""
        return self._accountant.spent

    @property
    def remaining(self) -> Amount:
        """What is left."""
        return self._accountant.remaining

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every charge, in order."""
        return tuple(self._entries)

    def require(self, query: Charged) -> None:
        """BudgetExceeded if the query does not fit; nothing is recorded."""
        self.require_process()
        check_item(query, self.neighbours)
        self._accountant.require(query.event, stated_cost(query, self.cap))

    def charge(self, query: Charged) -> Entry:
        """Record the cost of a query; BudgetExceeded, with nothing recorded, if it does not fit."""
        # Before the lock, which a thread of the parent may have held when the process was forked.
        self.require_process()
        check_item(query, self.neighbours)
        with self._lock:
            price = self._accountant.charge(query.event, stated_cost(query, self.cap))
            number = len(self._entries) + 1
            entry = Entry(number, self.dataset, query.name, query.column, query.event, price)
            self._entries.append(entry)
            return entry


def check_item(item: Charged, neighbours: Neighbours) -> None:
    """Refuse costs that add up with no others, or under another relation: neither gives a guarantee."""
    event = getattr(item, "event", None)
    if isinstance(event, OneShotEvent):
        raise event.refused()
    if item.neighbours != neighbours:
        raise InvalidParameter(
            f"neighbours must be that of the ledger, {neighbours!r}, got {item.neighbours!r}"
        )


def stated_cost(item: Charged, cap: Budget) -> ApproxDP | None:
    """The cost to check: events know their pure and zCDP costs, an (epsilon, delta) pair must be stated."""
    cost = item.cost
    return cost if isinstance(cap, ApproxDP) and isinstance(cost, ApproxDP) else None


def check_budget(name: str, budget: object) -> Budget:
    """`budget` if it is one."""
    if not isinstance(budget, PureDP | ApproxDP | ZCDP):
        raise InvalidParameter(f"{name} must be PureDP, ApproxDP or ZCDP, got {name}={shown(budget)}")
    return budget
