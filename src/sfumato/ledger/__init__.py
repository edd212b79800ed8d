"""Ledgers: what was spent on a data set, charged before the data are read.

The ledger in memory is loaded at once, the durable one on first use, with its database.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.ledger.memory import Entry, MemoryLedger, check_budget
from sfumato.privacy import Amount, Budget, Neighbours
from sfumato.query import Charged

if TYPE_CHECKING:
    from sfumato.ledger.account import Account
    from sfumato.ledger.chain import Head, Record
    from sfumato.ledger.copies import verify_export
    from sfumato.ledger.replay import Balance, Report
    from sfumato.ledger.sql import SqlLedger

__all__ = [
    "Account",
    "Balance",
    "Entry",
    "Head",
    "Ledger",
    "MemoryLedger",
    "Record",
    "Report",
    "SqlLedger",
    "check_budget",
    "verify_export",
]

_HOMES = {
    "Account": "account",
    "Balance": "replay",
    "Head": "chain",
    "Record": "chain",
    "Report": "replay",
    "SqlLedger": "sql",
    "verify_export": "copies",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.ledger' has no attribute {name!r}")
    value = getattr(import_module(f"sfumato.ledger.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


class Ledger(Protocol):
    """Where charges are recorded; a charge that returns has been recorded, one that raises has not.

    >>> from sfumato.privacy import PureDP
    >>> ledger: Ledger = MemoryLedger(PureDP(1), neighbours="add-remove")
    """

    @property
    def neighbours(self) -> Neighbours:
        """The relation that all costs are meant under."""

    @property
    def unit(self) -> str:
        """Whose privacy all costs are meant for: "row", or the name of an id column."""

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
