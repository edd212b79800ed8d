"""What an analyst holds: charges on one data set, and the replies that were given for them."""

from hashlib import sha256
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, insert

from sfumato.checks import shown
from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable, RequestConflict
from sfumato.laws import SystemBits
from sfumato.ledger import failpoints
from sfumato.ledger.chain import (
    Act,
    Record,
    Standing,
    Total,
    amount_of,
    budget_of,
    canonical,
    fields_of,
    numbers_of,
    read_numbers,
)
from sfumato.ledger.memory import Entry, check_item, stated_cost
from sfumato.ledger.schema import CONTENT_OF, STORED_REPLY, STORED_SECRET, content, contents, replies, secrets
from sfumato.privacy import Amount, ApproxDP, Budget, Neighbours, accountant_for, event_from_dict
from sfumato.privacy.records import short_text
from sfumato.query import Charged

if TYPE_CHECKING:
    from sfumato.ledger.sql import SqlLedger


class Account:
    """One analyst's way to spend on one data set of a ledger.

    Guarantee:
        A charge that returns is on disk, and all charges together stay within the caps of the data set and of
        the analyst, exactly, across processes and crashes. A request id is charged once and has one reply.
        Proof: docs/proofs/composition.md.

    >>> import tempfile
    >>> import sfumato as sf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = sf.SqlLedger(f"{folder}/ledger.db", anchor=f"{folder}/anchor")
    ...     account = ledger.open("people", cap=sf.PureDP(1), neighbours="add-remove")
    ...     count = sf.Count(budget=sf.PureDP(0.25), neighbours="add-remove")
    ...     account.charge(count, request="monday", digest="1f3a").price
    ...     account.keep("monday", b"41 people"), account.answered("monday", "1f3a")
    ...     account.remaining
    Amount(epsilon=0.25)
    (b'41 people', b'41 people')
    Amount(epsilon=0.75)
    """

    def __init__(
        self,
        ledger: "SqlLedger",
        dataset: str,
        analyst: str,
        *,
        neighbours: Neighbours,
        unit: str,
        cap: Budget,
    ) -> None:
        self.ledger = ledger
        self.dataset = dataset
        self.analyst = analyst
        self.neighbours = neighbours
        self.unit = unit
        # The kind of a cap never changes, its size may.
        self._kind = cap

    @property
    def cap(self) -> Budget:
        """The budget of the data set."""
        total = self._totals()[0].total
        assert total.cap is not None
        return budget_of(total.fields, total.cap)

    @property
    def spent(self) -> Amount:
        """What was charged on the data set, by all analysts."""
        total = self._totals()[0].total
        return amount_of(total.fields, total.spent)

    @property
    def remaining(self) -> Amount:
        """What this analyst may still spend: what the data set has left, or less."""
        standing, person = self._totals()
        left = standing.total.left
        if standing.retired:
            return Amount()
        if person is not None and person.cap is not None:
            left = tuple(map(min, left, person.left))
        return amount_of(standing.total.fields, left)

    @property
    def analyst_cap(self) -> Budget | None:
        """The cap of this analyst; None if it is that of the data set."""
        _, person = self._totals()
        return None if person is None or person.cap is None else budget_of(person.fields, person.cap)

    @property
    def analyst_spent(self) -> Amount:
        """What this analyst was charged."""
        _, person = self._totals()
        return Amount() if person is None else amount_of(person.fields, person.spent)

    def _totals(self) -> tuple[Standing, Total | None]:
        with self.ledger.store.reading() as connection:
            standing, person = self.ledger.totals(connection, self.dataset, self.analyst)
        if standing is None:
            raise LedgerDamaged(f"{self.ledger.store.name} no longer has the data set {self.dataset!r}")
        return standing, person

    def charge(
        self,
        item: Charged,
        *,
        request: str | None = None,
        digest: str | None = None,
        fingerprint: str | None = None,
    ) -> Entry:
        """Record the cost of an item durably; BudgetExceeded, with nothing recorded, if it does not fit.

        Args:
            item: a query, a stream, a choice, or a batch of them.
            request: an id that makes a retry safe: a second charge with it returns the first entry.
            digest: what the request asks for, in short; the same id with another digest is refused.
            fingerprint: of the content of the data set, by a key of the ledger; a reminder outside the chain.

        Raises:
            BudgetExceeded: the cap of the data set or of the analyst would be passed.
            RequestConflict: the request id was used for something else, or was charged for another event.
            LedgerUnavailable, LedgerDamaged: the ledger cannot be used.
            InvalidParameter, NotSupported: the item has another relation, or no price in this kind of budget.
        """
        check_item(item, self.neighbours)
        for name, value in (("request", request), ("digest", digest), ("fingerprint", fingerprint)):
            if value is not None:
                short_text(name, value)
        if request is None and digest is not None:
            raise InvalidParameter("request must be given with a digest, got request=None")
        payload = canonical({"statistic": item.name, "column": item.column, "event": item.event.to_dict()})
        # A batch may take seconds to price: not again for a retry, and with nobody waiting for it.
        if request is not None and isinstance(self._kind, ApproxDP):
            before = self._before(request, digest)
            if before is not None:
                return _same_event(before, payload)
        price = accountant_for(self._kind).price(item.event, stated_cost(item, self._kind))
        act = Act(
            kind="spend",
            dataset=self.dataset,
            analyst=self.analyst,
            request=request,
            digest=digest,
            payload=payload,
            price=numbers_of(price, fields_of(self._kind)),
        )

        def same_spend(connection: Connection, act: Act) -> Record | None:
            found = None if act.request is None else self.ledger.spend(connection, act.request)
            if found is not None:
                self._match(found, act.digest)
            elif fingerprint is not None:
                reminder = {"fingerprint": fingerprint, "dataset": self.dataset, "request": request}
                connection.execute(insert(contents).values(reminder))
            return found

        record, fresh = self.ledger.append(act, once=same_spend)
        if not fresh:
            return _same_event(record, payload)
        asked = (item.name, item.column, item.event, price, request)
        return Entry(record.sequence, self.dataset, *asked, record.hash)

    def answered(self, request: str, digest: str | None) -> bytes | None:
        """The reply that was kept for a request; None if it was not charged, or charged and not answered."""
        short_text("request", request)
        with self.ledger.store.reading() as connection:
            spend = self.ledger.spend(connection, request)
            if spend is None:
                return None
            self._match(spend, digest)
            return self._stored(connection, request)

    def secret(self, request: str) -> bytes | None:
        """What the randomness of a charged request follows from: 32 bytes; None once its reply is kept.

        Whoever draws for the request has the same bytes, so that a draw that was lost is drawn again as it
        was.

        Raises:
            InvalidParameter: the request was not charged.
            LedgerUnavailable, LedgerDamaged: the ledger cannot be used; the charge stays.
        """
        with self.ledger.store.writing() as connection:
            if self.ledger.spend(connection, request) is None:
                raise InvalidParameter(f"request must be charged before it is drawn; got {shown(request)}")
            if self.ledger.reply(connection, request) is not None:
                return None
            row = connection.execute(STORED_SECRET, {"request": request}).one_or_none()
            kept = SystemBits().words(4).tobytes() if row is None else content(row.secret)
            if row is None:
                connection.execute(insert(secrets).values(request=request, secret=kept))
        if len(kept) != 32:
            raise LedgerDamaged(f"{self.ledger.store.name} is damaged: the secret of {request!r} was changed")
        return kept

    def keep(self, request: str, reply: bytes) -> bytes:
        """Store the reply to a charged request, once; returns what is stored, which is the first reply.

        A reply of any length is kept: what can be refused is refused before the charge.

        Raises:
            InvalidParameter: the request was not charged, or the reply is not bytes.
            LedgerUnavailable, LedgerDamaged: the ledger cannot be used; the charge stays.
        """
        short_text("request", request)
        if not isinstance(reply, bytes):
            raise InvalidParameter(f"reply must be bytes, got {type(reply).__name__}")
        failpoints.fail_point("before-reply")
        facts = canonical({"bytes": len(reply), "sha256": sha256(reply).hexdigest()})
        act = Act("reply", self.dataset, facts, self.analyst, request)
        kept: list[bytes] = []

        def first(connection: Connection, _: Act) -> Record | None:
            spend = self.ledger.spend(connection, request)
            if spend is None:
                raise InvalidParameter(f"request must be charged before its reply, got request={request!r}")
            self._match(spend, spend.digest)
            stored = self._stored(connection, request)
            if stored is None:
                connection.execute(
                    insert(replies).values(request=request, sha256=sha256(reply).hexdigest(), reply=reply)
                )
                connection.execute(delete(secrets).where(secrets.c.request == request))
                return None
            kept.append(stored)
            return spend

        try:
            self.ledger.append(act, once=first)
        except LedgerUnavailable as fault:
            raise LedgerUnavailable(
                f"{fault}; what was charged for request {request!r} stays charged, and asking again with "
                "this id costs nothing more"
            ) from None
        failpoints.fail_point("after-reply")
        return kept[0] if kept else reply

    def entry(self, request: str) -> Entry | None:
        """The charge that was made for a request; None if there is none."""
        with self.ledger.store.reading() as connection:
            found = self.ledger.spend(connection, request)
        return None if found is None else entry_of(found)

    def content(self, request: str) -> str | None:
        """The fingerprint of the content that a request was charged for, for the curator; None if unknown."""
        with self.ledger.store.reading() as connection:
            found: str | None = connection.scalar(CONTENT_OF, {"request": request})
        return found

    def _before(self, request: str, digest: str | None) -> Record | None:
        with self.ledger.store.reading() as connection:
            found = self.ledger.spend(connection, request)
        if found is not None:
            self._match(found, digest)
            # Where a crash came between commit and anchor, the retry sets the anchor.
            self.ledger.anchor_entry(found)
        return found

    def _match(self, spend: Record, digest: str | None) -> None:
        if (spend.dataset, spend.analyst, spend.digest) != (self.dataset, self.analyst, digest):
            raise RequestConflict(
                f"request {shown(spend.request)} was used before for something else: choose another id"
            )

    def _stored(self, connection: Connection, request: str) -> bytes | None:
        row = connection.execute(STORED_REPLY, {"request": request}).one_or_none()
        entry = self.ledger.reply(connection, request)
        if row is None and entry is None:
            return None
        if row is not None and entry is not None:
            reply = content(row.reply)
            if row.sha256 == self.ledger.facts(entry).get("sha256") == sha256(reply).hexdigest():
                return reply
        raise LedgerDamaged(f"{self.ledger.store.name} is damaged: the reply to {request!r} was changed")


def _same_event(spend: Record, payload: str) -> Entry:
    """The charge of a spend that paid for this very event: what was not paid for must not be drawn."""
    if spend.payload != payload:
        raise RequestConflict(
            f"request {shown(spend.request)} was charged, and not answered, for data with other facts, "
            "such as another number of rows: choose another id or edition, which is paid for anew"
        )
    return entry_of(spend)


def entry_of(record: Record) -> Entry:
    """The charge that a stored spend says."""
    try:
        facts = record.facts
        return Entry(
            record.sequence,
            record.dataset,
            str(facts["statistic"]),
            str(facts["column"]),
            event_from_dict(facts["event"]),
            amount_of(*read_numbers(str(record.price))),
            record.request,
            record.hash,
        )
    except (InvalidParameter, LookupError, TypeError, RecursionError):
        raise LedgerDamaged(
            f"the ledger is damaged: entry {record.sequence} does not say what was charged"
        ) from None
