"""The durable ledger: one chain of entries in a database, and an anchor outside it."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Executable, select

from sfumato.checks import positive, shown
from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable
from sfumato.ledger import copies, failpoints
from sfumato.ledger.account import Account
from sfumato.ledger.anchor import Anchor, Note, default_anchor
from sfumato.ledger.beginning import begin, give_up, identify, take_place
from sfumato.ledger.chain import (
    Act,
    Head,
    Record,
    Standing,
    Total,
    budget_of,
    canonical,
    check_cap,
    check_record,
    enter,
    genesis,
    hash_of,
    listed,
    listed_analysts,
    listed_numbers,
    now,
    standing_of,
    total_of,
)
from sfumato.ledger.memory import check_budget
from sfumato.ledger.replay import Report
from sfumato.ledger.schema import (
    ADD_ENTRY,
    FIRST_ENTRY,
    HASH_AT,
    LAST_ENTRY,
    LAST_OF_ANALYST,
    LAST_OF_DATASET,
    LISTED,
    REPLY_OF,
    SPEND_OF,
    VERSION,
    contents,
    entries,
)
from sfumato.ledger.store import Store
from sfumato.ledger.terms import analyst_names, check_names, check_terms, opening, require_same_terms
from sfumato.privacy import Budget, Neighbours
from sfumato.privacy.records import short_text

# How many of the last entries are checked when a ledger is opened.
RECENT = 100
# Seconds to wait for others that write.
PATIENCE = 60.0

Once = Callable[[Connection, Act], Record | None]


class SqlLedger:
    """A ledger that outlives the process: append-only, hash-chained, shared by processes and analysts.

    Args:
        url: `sqlite:///ledger.db`, the path of a file, or `postgresql://...` (extra `postgres`).
        anchor: a file outside the database that remembers the head; by default in the user's state folder.
        patience: seconds to wait for others that write, the database or the anchor.
        create: whether to make a ledger where there is none and, by the anchor, never was one.

    Guarantee:
        What was charged is on disk before it is told, stays within the caps of the data set and of the
        analyst, and is never refunded. A changed entry, or a copy older than the anchor, is noticed.
        Proof: docs/proofs/composition.md; what it does not protect from: docs/ledger.md.

    Raises:
        LedgerUnavailable: no file, server, space or permission; or the ledger is missing and its anchor is
            not. Nothing was made then.
        LedgerDamaged: it is no ledger, was changed, or is older than its anchor.
        MissingExtra: PostgreSQL without psycopg.

    >>> import tempfile
    >>> import sfumato as sf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = SqlLedger(f"{folder}/ledger.db", anchor=f"{folder}/anchor")
    ...     account = ledger.open("people", cap=sf.PureDP(1), neighbours="add-remove")
    ...     entry = account.charge(sf.Count(budget=sf.PureDP(0.25), neighbours="add-remove"))
    ...     again = SqlLedger(f"{folder}/ledger.db", anchor=f"{folder}/anchor")
    ...     again.account("people").remaining, again.head.sequence, again.verify().sound
    (Amount(epsilon=0.75), 2, True)
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        anchor: str | os.PathLike[str] | None = None,
        patience: float = PATIENCE,
        create: bool = True,
    ) -> None:
        if not isinstance(anchor, str | os.PathLike | None):
            raise InvalidParameter(f"anchor must be the path of a file, got anchor={shown(anchor)}")
        seconds = float(positive("patience", patience))
        self.store = Store(url, patience=seconds)
        note = Note(self.store.place) if anchor is None else None
        version, made = self.store.version(), False
        if version is None:
            made = begin(self.store, None if anchor is None else Path(anchor), note, create=create)
        elif version != VERSION:
            self.store.upgrade()
        self.identity, self.key = identify(self.store)
        self.start = genesis(self.identity, self.key)
        place = default_anchor(self.identity) if anchor is None else Path(anchor)
        self.anchor = Anchor(place, patience=seconds)
        self.anchored_before = self._open_anchor() and not made
        # Where the anchor is in its usual place: the head of a ledger that this one came after, once.
        self.came_after: Head | None = None if note is None else take_place(note, self.identity)

    def _open_anchor(self) -> bool:
        # The anchor is read first: what is anchored was committed, so what is read later must contain it.
        anchored = self.anchor.read()
        with self.store.reading() as connection:
            head = self._head(connection)
            self._check_anchor(connection, head, anchored)
            self._check_recent(connection)
        self.anchor.write(head)
        return anchored is not None

    @classmethod
    def exists(cls, url: str | os.PathLike[str]) -> bool:
        """Whether there is a ledger; nothing is made to find out."""
        store = Store(url, patience=PATIENCE)
        found = store.version()
        store.close()
        return found is not None

    # --- the curator ----------------------------------------------------------------------------

    def open(
        self,
        dataset: str,
        *,
        cap: Budget,
        neighbours: Neighbours,
        unit: str = "row",
        analysts: Iterable[str] | None = None,
    ) -> Account:
        """Start the budget of a data set, or find it as it was started.

        Args:
            dataset: its public name; one that looks like a name in the ledger is refused.
            cap: what all answers together may cost.
            neighbours, unit: what all costs are meant for; fixed, because costs for two do not add up.
            analysts: who may be charged, where it is not everybody; `admit` lists more.

        Raises:
            InvalidParameter: the data set is in the ledger with another cap, relation, unit or list, or under
                a name that looks the same.
        """
        act = opening(dataset, cap=cap, neighbours=neighbours, unit=unit, analysts=analysts)

        def there(connection: Connection, act: Act) -> Record | None:
            found = self._opened(connection, act.dataset)
            if found is not None and found.payload != act.payload:
                require_same_terms(self.facts(found), self.totals(connection, found.dataset, None)[0], act)
            return found

        self.append(act, once=there)
        return self.account(dataset)

    def admit(self, dataset: str, analysts: Iterable[str]) -> Record:
        """List more analysts for a data set; from the first list on, nobody else is charged."""
        return self._enter("admit", dataset, canonical({"analysts": analyst_names(analysts)}))

    def allow(self, dataset: str, analyst: str, cap: Budget) -> Record:
        """Set the cap of one analyst on a data set, beside that of the data set; both hold."""
        payload = canonical({"cap": listed(check_cap(check_budget("cap", cap)))})
        return self._enter("allow", dataset, payload, short_text("analyst", analyst))

    def renew(self, dataset: str, cap: Budget, *, reason: str) -> Record:
        """Add to the cap of a data set, with a reason that is recorded."""
        added = listed(check_cap(check_budget("cap", cap)))
        return self._enter(
            "renew", dataset, canonical({"added": added, "reason": short_text("reason", reason)})
        )

    def retire(self, dataset: str, *, reason: str) -> Record:
        """End the budget of a data set for good."""
        return self._enter("retire", dataset, canonical({"reason": short_text("reason", reason)}))

    def _enter(self, kind: str, dataset: str, payload: str, analyst: str | None = None) -> Record:
        return self.append(Act(kind, short_text("dataset", dataset), payload, analyst))[0]

    # --- looking --------------------------------------------------------------------------------

    def account(self, dataset: str, *, analyst: str = "analyst") -> Account:
        """The account of an analyst on a data set that was opened."""
        short_text("analyst", analyst)
        with self.store.reading() as connection:
            found = self._opened(connection, short_text("dataset", dataset))
        if found is None:
            raise InvalidParameter(f"dataset must be opened by its curator first, got dataset={dataset!r}")
        terms = self.facts(found)
        return Account(
            self,
            dataset,
            analyst,
            neighbours=terms["neighbours"],
            unit=terms["unit"],
            cap=budget_of(*listed_numbers(terms["cap"])),
        )

    def datasets(self) -> tuple[str, ...]:
        """The public names of all data sets, in the order in which they were opened."""
        chosen = select(entries.c.dataset).where(entries.c.kind == "open").order_by(entries.c.sequence)
        with self.store.reading() as connection:
            return tuple(connection.scalars(chosen))

    def entries(self, dataset: str | None = None) -> tuple[Record, ...]:
        """Every entry, or those of one data set, in order."""
        chosen = select(entries).order_by(entries.c.sequence)
        if dataset is not None:
            chosen = chosen.where(entries.c.dataset == short_text("dataset", dataset))
        with self.store.reading() as connection:
            return tuple(Record(*row) for row in connection.execute(chosen))

    def names_like(self, fingerprint: str, *, besides: str | None = None) -> tuple[str, ...]:
        """The data sets that were charged for content with this fingerprint, one of them left out."""
        chosen = select(contents.c.dataset).where(
            contents.c.fingerprint == short_text("fingerprint", fingerprint)
        )
        with self.store.reading() as connection:
            names = set(connection.scalars(chosen.distinct()))
        return tuple(sorted(names - {besides}))

    @property
    def head(self) -> Head:
        """The last entry; its hash commits to every entry before it."""
        with self.store.reading() as connection:
            return self._head(connection)

    def verify(self, *, prices: bool = False, heads: Iterable[Head] = ()) -> Report:
        """Work every entry out again and compare: numbers, hashes, prices, totals, caps, replies, anchor.

        Args:
            prices: whether to prove (epsilon, delta) prices again too, which may take seconds for a batch.
            heads: numbers and hashes of entries that were published, as in receipts; each must be there.
        """
        return copies.verify(self, prices=prices, heads=heads)

    # --- copies ---------------------------------------------------------------------------------

    def export(self, path: str | os.PathLike[str], *, replies: bool = False) -> Head:
        """Write every entry to a new file that an outsider can check; replies only if asked for."""
        return copies.write(self, Path(path), replies=replies, key=False)

    def backup(self, path: str | os.PathLike[str]) -> Head:
        """Write everything to a new file that `restore` reads, for any database."""
        return copies.write(self, Path(path), replies=True, key=True)

    @classmethod
    def restore(
        cls,
        backup: str | os.PathLike[str],
        url: str | os.PathLike[str],
        *,
        anchor: str | os.PathLike[str] | None = None,
        accept_loss: bool = False,
    ) -> Self:
        """A ledger from a backup; what may have been spent after it counts as spent.

        Args:
            accept_loss: for a backup that is behind the anchor, or that no anchor vouches for: all that is
                left of every cap is taken, by an entry of its own, and the curator may renew.

        Raises:
            LedgerDamaged: the backup was changed, or is behind the anchor.
        """
        return copies.restore(
            cls, Path(backup), url, anchor=None if anchor is None else Path(anchor), accept_loss=accept_loss
        )

    @classmethod
    def begin_anew(cls, url: str | os.PathLike[str], *, anchor: str | os.PathLike[str] | None = None) -> Self:
        """A new ledger in place of one that is lost for good; what was spent there is not counted any more.

        `came_after` is the last head of the lost one, which is refused from now on if it is found again.

        Raises:
            InvalidParameter: there is a ledger, or no anchor of one that is missing.
        """
        head = give_up(Store(url, patience=PATIENCE), None if anchor is None else Path(anchor))
        ledger = cls(url, anchor=anchor)
        ledger.came_after = head
        return ledger

    def close(self) -> None:
        """Give back the connections of this process; the ledger can still be used."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the chain ------------------------------------------------------------------------------

    def append(self, act: Act, once: Once | None = None) -> tuple[Record, bool]:
        """Enter an act durably and anchor it; `once` may find that it was entered before."""
        with self.store.writing() as connection:
            found = None if once is None else once(connection, act)
            record = found or self._insert(connection, act)
        failpoints.fail_point("before-anchor")
        self.anchor_entry(record)
        failpoints.fail_point("after-anchor")
        return record, found is None

    def _insert(self, connection: Connection, act: Act) -> Record:
        head = self._head(connection)
        try:
            anchored = self.anchor.read()
        except LedgerUnavailable as fault:
            raise LedgerUnavailable(f"{fault}; no entry was made") from None
        self._check_anchor(connection, head, anchored)
        standing, person = self.totals(connection, act.dataset, act.analyst)
        check_names(connection, act, standing, person)
        record, _, _ = enter(act, standing, person, before=head, time=now())
        failpoints.fail_point("before-insert")
        connection.execute(ADD_ENTRY, record._asdict())
        return record

    def anchor_entry(self, record: Record) -> None:
        """Bring the anchor up to an entry that is committed; an error says that it is."""
        try:
            self.anchor.write(Head(record.sequence, record.hash))
        except (LedgerUnavailable, LedgerDamaged) as fault:
            words = f"{fault}; entry {record.sequence} ({record.kind}) is in the ledger all the same"
            if record.kind == "spend" and record.request is not None:
                words += ", and asking again with the same request id costs nothing more"
            raise type(fault)(words) from None

    def totals(
        self, connection: Connection, dataset: str, analyst: str | None
    ) -> tuple[Standing | None, Total | None]:
        """What was spent on a data set, and by an analyst, after their last entries."""
        last = self._one(connection, LAST_OF_DATASET, dataset=dataset)
        if last is None:
            return None, None
        standing = standing_of(last, self._listed(connection, dataset) if last.state == "listed" else None)
        if analyst is None:
            return standing, None
        person: Record | None = last
        if last.analyst != analyst:
            person = self._one(connection, LAST_OF_ANALYST, dataset=dataset, analyst=analyst)
        return standing, None if person is None else total_of(person)

    def _listed(self, connection: Connection, dataset: str) -> frozenset[str] | None:
        terms = [self.sound(Record(*row)) for row in connection.execute(LISTED, {"dataset": dataset})]
        try:
            return listed_analysts(map(self.facts, terms))
        except InvalidParameter:
            raise LedgerDamaged(f"{self.store.name} is damaged: it does not say who is listed") from None

    def sound(self, record: Record) -> Record:
        """`record` if its hash fits and it can be an entry."""
        with suppress(InvalidParameter):
            check_record(record)
            if hash_of(record._asdict()) == record.hash:
                return record
        raise self.damaged(record)

    def damaged(self, record: Record) -> LedgerDamaged:
        """The error that names an entry which was changed."""
        return LedgerDamaged(f"{self.store.name} is damaged: entry {shown(record.sequence)} was changed")

    def _head(self, connection: Connection) -> Head:
        last = self._one(connection, LAST_ENTRY)
        return Head(0, self.start) if last is None else Head(last.sequence, last.hash)

    def _one(self, connection: Connection, statement: Executable, **values: str) -> Record | None:
        row = connection.execute(statement, values).one_or_none()
        return None if row is None else self.sound(Record(*row))

    def spend(self, connection: Connection, request: str) -> Record | None:
        """The charge of a request."""
        return self._one(connection, SPEND_OF, request=request)

    def reply(self, connection: Connection, request: str) -> Record | None:
        """The entry that a request was replied to."""
        return self._one(connection, REPLY_OF, request=request)

    def _opened(self, connection: Connection, dataset: str) -> Record | None:
        chosen = select(entries).where(entries.c.dataset == dataset, entries.c.kind == "open")
        row = connection.execute(chosen).one_or_none()
        if row is None:
            return None
        found = self.sound(Record(*row))
        try:
            check_terms(self.facts(found))
        except InvalidParameter:
            raise LedgerDamaged(f"{self.store.name} does not say what was agreed for {dataset!r}") from None
        return found

    def facts(self, record: Record) -> dict[str, Any]:
        """What an entry says, which is read from its payload."""
        try:
            found = record.facts
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self.damaged(record)
        return found

    def _check_anchor(self, connection: Connection, head: Head, anchored: Head | None) -> None:
        if anchored is None or anchored == head:
            return
        name = self.store.name
        if anchored.sequence > head.sequence:
            raise LedgerDamaged(
                f"{name} is older than its anchor: it ends at entry {head.sequence}, and entry "
                f"{anchored.sequence} was anchored in {self.anchor.path}"
            )
        found = connection.scalar(HASH_AT, {"sequence": anchored.sequence})
        kept = found if anchored.sequence else self.start
        if kept != anchored.hash:
            raise LedgerDamaged(
                f"{name} was changed: entry {anchored.sequence} is not the one anchored in {self.anchor.path}"
            )

    def _check_recent(self, connection: Connection) -> None:
        chosen = select(entries).order_by(entries.c.sequence.desc()).limit(RECENT)
        later: Record | None = None
        for row in connection.execute(chosen):
            record = self.sound(Record(*row))
            if later is not None and (later.sequence, later.previous) != (record.sequence + 1, record.hash):
                raise LedgerDamaged(f"{self.store.name} is damaged: entry {later.sequence} follows another")
            later = record
        first = self._one(connection, FIRST_ENTRY)
        if first is not None and first.previous != self.start:
            raise LedgerDamaged(f"{self.store.name} is damaged: its first entry is of another ledger")

    def __repr__(self) -> str:
        return f"SqlLedger({shown(self.store.url.render_as_string(hide_password=True))})"
