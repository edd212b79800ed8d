"""Ledgers: what was spent on a data set, charged before the data are read."""

from typing import Protocol

from sfumato.ledger.memory import Entry, MemoryLedger, check_budget
from sfumato.privacy import Amount, Budget, Neighbours
from sfumato.query import Charged

__all__ = ["Entry", "Ledger", "MemoryLedger", "check_budget"]


class Ledger(Protocol):
    """Where charges are recorded; a charge that returns has been recorded, one that raises has not.

    >>> from sfumato.privacy import PureDP
    >>> ledger: Ledger = MemoryLedger(PureDP(1), neighbours="add-remove")
    """

    @property
    def neighbours(self) -> Neighbours:
        """The relation that all costs are meant under."""

    @property
    def dataset(self) -> str:
        """The public name of the data set."""

    @property
    def cap(self) -> Budget:
        """The budget of the data set."""

    @property
    def spent(self) -> Amount:
        """What was charged."""

    @property
    def remaining(self) -> Amount:
        """What is left."""

    def charge(self, query: Charged) -> Entry:
        """Record the cost of a query, or raise BudgetExceeded."""
