"""Defects that the harness must notice, written as one who meant well would write them.

Clients run with one of them; the witness looks with the product as it is.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from sfumato.ledger import chain, failpoints
from sfumato.ledger.account import Account
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.chain import Head, Total
from sfumato.ledger.memory import Entry
from sfumato.ledger.sql import SqlLedger
from sfumato.privacy import Amount

Defect = Callable[[], AbstractContextManager[Any]]

_charge, _keep, _answered = Account.charge, Account.keep, Account.answered
_account, _insert, _totals = SqlLedger.account, SqlLedger._insert, SqlLedger.totals
_charged, _digest, _connect = chain._charged, chain._digest, sqlite3.connect


def _charge_later(account: Account, item: Any, **asked: Any) -> Entry:
    account.later = (item, asked)  # type: ignore[attr-defined]
    return Entry(0, account.dataset, item.name, item.column, item.event, Amount())


def _keep_and_charge(account: Account, request: str, reply: bytes) -> bytes:
    failpoints.fail_point("before-reply")
    item, asked = account.later  # type: ignore[attr-defined]
    _charge(account, item, **asked)
    return _keep(account, request, reply)


def charge_after_the_draw() -> AbstractContextManager[Any]:
    """One commit instead of two: the charge is recorded together with the reply."""
    return patch.multiple(Account, charge=_charge_later, keep=_keep_and_charge)


def ids_of_each_process() -> AbstractContextManager[Any]:
    """A request is told apart from that of another process, even if it is the same."""

    def own(request: str) -> str:
        return f"{request} of {os.getpid()}"

    return patch.multiple(
        Account,
        charge=lambda self, item, request, digest: _charge(self, item, request=own(request), digest=digest),
        keep=lambda self, request, reply: _keep(self, own(request), reply),
        answered=lambda self, request, digest: _answered(self, own(request), digest),
    )


def own_answer() -> AbstractContextManager[Any]:
    """The reply that was drawn is returned, not the one that is stored."""

    def keep(account: Account, request: str, reply: bytes) -> bytes:
        _keep(account, request, reply)
        return reply

    return patch.object(Account, "keep", keep)


def _unanswered(ledger: SqlLedger) -> list[Any]:
    entries = ledger.entries()
    answered = {entry.request for entry in entries if entry.kind == "reply"}
    return [entry for entry in entries if entry.kind == "spend" and entry.request not in answered]


def refund_by_renewal() -> AbstractContextManager[Any]:
    """What was charged and never answered is given back when the ledger is opened."""

    def account(ledger: SqlLedger, dataset: str, *, analyst: str = "analyst") -> Account:
        for entry in _unanswered(ledger):
            price = chain.budget_of(*chain.read_numbers(str(entry.price)))
            ledger.renew(dataset, price, reason=f"{entry.request} was not answered")
        return _account(ledger, dataset, analyst=analyst)

    return patch.object(SqlLedger, "account", account)


def refund_by_removal() -> AbstractContextManager[Any]:
    """The last charge is taken out of the ledger, and of its anchor, if it was never answered."""

    def account(ledger: SqlLedger, dataset: str, *, analyst: str = "analyst") -> Account:
        waiting, head = _unanswered(ledger), ledger.head
        if waiting and waiting[-1].sequence == head.sequence:
            connection = sqlite3.connect(ledger.store.path)
            connection.execute("DROP TRIGGER IF EXISTS ledger_entries_delete")
            connection.execute("DELETE FROM ledger_entries WHERE sequence = ?", (head.sequence,))
            connection.commit()
            connection.close()
            Path(ledger.anchor.path).unlink()
            ledger.anchor.write(ledger.head)
        return _account(ledger, dataset, analyst=analyst)

    return patch.object(SqlLedger, "account", account)


def _without_cap(skipped: str) -> Defect:
    def charged(total: Total, act: Any, whose: str) -> Total:
        return total.plus(act.price) if whose == skipped else _charged(total, act, whose)

    def connect(*place: Any, **options: Any) -> sqlite3.Connection:
        connection = _connect(*place, **options)
        # The tables repeat the caps; here it is the harness that must notice.
        connection.execute("PRAGMA ignore_check_constraints=ON")
        return connection

    @contextmanager
    def both() -> Iterator[None]:
        with patch.object(chain, "_charged", charged), patch.object(sqlite3, "connect", connect):
            yield

    return both


def remembered_totals() -> AbstractContextManager[Any]:
    """A process adds to the totals that it knows, and reads them once."""
    known: dict[Any, Any] = {}

    def totals(ledger: SqlLedger, connection: Any, dataset: str, analyst: str | None) -> Any:
        if (dataset, analyst) not in known:
            known[dataset, analyst] = _totals(ledger, connection, dataset, analyst)
        return known[dataset, analyst]

    return patch.object(SqlLedger, "totals", totals)


def anchor_before_commit() -> AbstractContextManager[Any]:
    """The head is anchored while the transaction is still open."""

    def insert(ledger: SqlLedger, *arguments: Any) -> Any:
        record = _insert(ledger, *arguments)
        ledger.anchor.write(Head(record.sequence, record.hash))
        return record

    return patch.object(SqlLedger, "_insert", insert)


def no_anchor() -> AbstractContextManager[Any]:
    """The database is trusted to remember its own head."""
    return patch.object(Anchor, "write", lambda *arguments, **options: None)


def anchor_without_sync() -> AbstractContextManager[Any]:
    """The anchor is left to the operating system to write when it likes."""
    return patch("sfumato.ledger.anchor.os", SimpleNamespace(**{**vars(os), "fsync": lambda file: None}))


def time_not_hashed() -> AbstractContextManager[Any]:
    """The hash covers what decides, and leaves out the time, which is for people."""
    place = chain._HASHED.index("time")
    return patch.object(chain, "_digest", lambda values: _digest((*values[:place], "", *values[place + 1 :])))


DEFECTS: dict[str, Defect] = {
    "charge after the draw": charge_after_the_draw,
    "ids of each process": ids_of_each_process,
    "own answer instead of the first": own_answer,
    "refund by renewal": refund_by_renewal,
    "refund by removal": refund_by_removal,
    "cap of the analyst skipped": _without_cap("analyst"),
    "cap of the data set skipped": _without_cap("data set"),
    "totals remembered": remembered_totals,
    "anchor before commit": anchor_before_commit,
    "no anchor": no_anchor,
    "anchor without sync": anchor_without_sync,
    "time not hashed": time_not_hashed,
}
