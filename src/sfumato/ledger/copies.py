"""Copies of a ledger as text: for an outsider to check, and to restore from, the same for every database.

A file has one JSON record a line: the header, the entries with all that is hashed, and, in a backup, the
replies.
"""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, insert, select, text

from sfumato.checks import shown
from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable
from sfumato.ledger.anchor import Anchor, Note, default_anchor, is_identity
from sfumato.ledger.chain import FORMAT, Act, Head, Record, canonical, enter, header, now
from sfumato.ledger.replay import Replay, Report
from sfumato.ledger.schema import REPLIES, content, entries, facts, replies
from sfumato.ledger.store import Store
from sfumato.whole_files import PRIVATE, replacement

if TYPE_CHECKING:
    from sfumato.ledger.sql import SqlLedger

    AnyLedger = TypeVar("AnyLedger", bound=SqlLedger)

# Rows that are held in memory at once.
CHUNK = 2000
# In characters, for a reply of 512 MiB in base 64.
LONGEST_LINE = 2**30


def verify(ledger: "SqlLedger", *, prices: bool = False, heads: Iterable[Head] = ()) -> Report:
    """Every entry of a ledger worked out again, its replies, its anchor and published heads compared."""
    anchored = ledger.anchor.all()
    replay = Replay(ledger.start, prices=prices)
    wanted = {head.sequence: head.hash for head in anchored}
    published = set(heads)
    with ledger.store.reading() as connection:
        if ledger.store.sqlite:
            for line in connection.scalars(text("PRAGMA quick_check(10)")):
                if line != "ok":
                    replay.problem("the file is no longer a sound database")
                    break
        for record in _records(connection):
            replay.read([record])
            if wanted.pop(record.sequence, record.hash) != record.hash:
                replay.problem(f"entry {record.sequence} is not the one that was anchored")
            published.discard(Head(record.sequence, record.hash))
        _check_replies(connection, replay)
    if wanted.pop(0, ledger.start) != ledger.start:
        replay.problem("the anchor is that of another ledger")
    for sequence in wanted:
        replay.problem(f"entry {sequence} was anchored and is missing: this is an older copy")
    for head in sorted(published):
        replay.problem(f"entry {head.sequence} is not the one that was published: an older copy has gone on")
    return replay.report()


def _records(connection: Connection) -> Iterator[Record]:
    chosen = select(entries).order_by(entries.c.sequence)
    for rows in connection.execution_options(yield_per=CHUNK).execute(chosen).partitions():
        yield from map(Record._make, rows)


def _stored_replies(connection: Connection) -> Iterator[tuple[str, str, bytes]]:
    # A reply may be large, so only a few are held at once.
    for row in connection.execution_options(yield_per=10).execute(REPLIES):
        yield row.request, row.sha256, content(row.reply)


def _check_replies(connection: Connection, replay: Replay) -> None:
    missing = dict(replay.replies)
    for request, stated, reply in _stored_replies(connection):
        if not missing.pop(request, None) == stated == sha256(reply).hexdigest():
            replay.problem(f"the reply to request {request!r} is not the one in the entries")
    for request in missing:
        replay.problem(f"the reply to request {request!r} is missing")


def write(ledger: "SqlLedger", path: Path, *, replies: bool, key: bool) -> Head:
    """Write a copy to a new file; it is whole and on disk when this returns."""
    head = Head(0, ledger.start)
    first: dict[str, object] = header(ledger.identity, ledger.key)
    if key:
        first["key"] = ledger.key.hex()
    with _new_file(path) as put, ledger.store.reading() as connection:
        put(first)
        for record in _records(connection):
            put(ledger.sound(record)._asdict())
            head = Head(record.sequence, record.hash)
        if replies:
            for request, _, reply in _stored_replies(connection):
                put({"request": request, "reply": b64encode(reply).decode()})
    return head


@contextmanager
def _new_file(path: Path) -> Iterator[Callable[[dict[str, Any]], object]]:
    if os.path.lexists(path):
        raise InvalidParameter(f"path must be that of a new file, and {str(path)!r} is there already")
    try:
        # A backup holds the key and the replies, which are for the curator.
        with replacement(path, mode=PRIVATE) as file:
            yield lambda record: file.write(f"{canonical(record)}\n".encode("ascii"))
    except OSError as fault:
        raise LedgerUnavailable(f"the copy {path} cannot be written: {_reason(fault)}") from None


@dataclass
class Copy:
    """What a file holds, after its check."""

    replay: Replay
    identity: str
    key: bytes | None
    hashes: dict[int, str] = field(default_factory=dict)

    @property
    def report(self) -> Report:
        """What the check found."""
        return self.replay.report()


def verify_export(path: str | os.PathLike[str], *, head: Head | None = None) -> Report:
    """Check an export, with nothing but the file and the head that was published.

    Guarantee:
        Without problems, every entry follows from those before it, and the file ends with `head`, which
        commits to all of them. Nothing of the ledger itself is needed.

    Args:
        path: the file that `export` or `backup` wrote.
        head: the number and hash that the curator published; without it the file is only checked in itself.

    Raises:
        LedgerUnavailable: the file cannot be read.
        LedgerDamaged: it is not an export.

    >>> import tempfile
    >>> import sfumato as sf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = sf.SqlLedger(f"{folder}/ledger.db", anchor=f"{folder}/anchor")
    ...     _ = ledger.open("people", cap=sf.PureDP(1), neighbours="add-remove")
    ...     head = ledger.export(f"{folder}/export.jsonl")
    ...     verify_export(f"{folder}/export.jsonl", head=head).sound
    True
    """
    return _read(Path(path), head=head).report


def _read(path: Path, *, head: Head | None = None, rows: "Rows | None" = None) -> Copy:
    lines = _lines(path)
    first = next(lines, None)
    if first is None or first.get("format") != FORMAT or not is_identity(first.get("ledger")):
        raise _no_copy(path)
    key = _key(first.pop("key", None), path)
    try:
        start = sha256(canonical(first).encode()).hexdigest()
    except (ValueError, RecursionError):
        raise _no_copy(path) from None
    replay, seen = Replay(start), 0
    if key is not None and header(first["ledger"], key) != first:
        replay.problem("the key is not that of the ledger")
    copy = Copy(replay, first["ledger"], key)
    missing: dict[str, str] | None = None
    for line in lines:
        if set(line) == {"request", "reply"}:
            missing = dict(replay.replies) if missing is None else missing
            content = _bytes(line["reply"])
            if missing.pop(str(line["request"]), None) != sha256(content).hexdigest():
                replay.problem(f"the reply to request {shown(line['request'])} is not the one in the entries")
            if rows is not None:
                rows.reply(str(line["request"]), content)
        elif set(line) == set(Record._fields) and missing is None:
            record = Record(**line)
            replay.read([record])
            seen += 1
            if not replay.problems:
                copy.hashes[record.sequence] = record.hash
                if rows is not None:
                    rows.entry(record)
        else:
            replay.problem(f"line {seen + 2} is neither an entry nor a reply")
    if missing or (key is not None and missing is None and replay.replies):
        replay.problem("replies are missing")
    if head is not None and replay.head != head:
        replay.problem(
            f"the file ends with entry {replay.head.sequence} and not with the head that was given"
        )
    return copy


def _no_copy(path: Path) -> LedgerDamaged:
    return LedgerDamaged(f"the file {path} is not a copy of a ledger that this version can read")


def _key(text: object, path: Path) -> bytes | None:
    try:
        return None if text is None else bytes.fromhex(str(text))
    except ValueError:
        raise LedgerDamaged(f"the file {path} is not a copy of a ledger: its key is none") from None


def _bytes(text: object) -> bytes:
    try:
        return b64decode(str(text), validate=True)
    except ValueError:
        return b""  # which no entry has the hash of


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            while line := file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE:
                    raise LedgerDamaged(f"the file {path} is not a copy: a line is longer than any record")
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError
                yield record
    except OSError as fault:
        raise LedgerUnavailable(f"the file {path} cannot be read: {_reason(fault)}") from None
    except (ValueError, RecursionError):
        raise LedgerDamaged(
            f"the file {path} is not a copy of a ledger: it has a line that is no record"
        ) from None


class Rows:
    """Entries and replies on their way into a database, a chunk at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._entries: list[dict[str, Any]] = []

    def entry(self, record: Record) -> None:
        """Add an entry."""
        self._entries.append(record._asdict())
        if len(self._entries) >= CHUNK:
            self.flush()

    def reply(self, request: str, content: bytes) -> None:
        """Add a reply."""
        row = {"request": request, "sha256": sha256(content).hexdigest(), "reply": content}
        self._connection.execute(insert(replies).values(row))

    def flush(self) -> None:
        """Hand over what is left."""
        if self._entries:
            self._connection.execute(insert(entries), self._entries)
        self._entries = []


def restore(
    cls: "type[AnyLedger]",
    path: Path,
    url: str | os.PathLike[str],
    *,
    anchor: Path | None,
    accept_loss: bool,
) -> "AnyLedger":
    """A ledger from a backup: checked, compared with the anchor, and written in one transaction."""
    copy = _read(path)
    if copy.report.problems:
        raise LedgerDamaged(f"the backup {path} is damaged: {copy.report.problems[0]}")
    if copy.key is None:
        raise LedgerDamaged(f"the file {path} is an export: only a backup can be restored")
    place = Anchor(default_anchor(copy.identity) if anchor is None else anchor)
    anchored = place.read()
    lost = anchored is None or copy.hashes.get(anchored.sequence, _start(copy)) != anchored.hash
    if lost and not accept_loss:
        why = "no anchor vouches for it" if anchored is None else f"entry {anchored.sequence} was anchored"
        raise LedgerDamaged(
            f"the backup {path} ends at entry {copy.report.head.sequence} and {why}: what was spent since is "
            "unknown; accept_loss counts all that is left as spent"
        )
    store = Store(url, patience=60.0)
    if store.version() is not None:
        raise InvalidParameter(f"url must be that of an empty database, and {store.name} is there already")
    if anchor is None:
        _require_no_other(store, place)

    def fill(connection: Connection) -> None:
        rows = Rows(connection)
        connection.execute(insert(facts).values(identity=copy.identity, key=copy.key))
        if _read(path, rows=rows).report != copy.report:
            raise LedgerDamaged(f"the backup {path} was changed while it was read")
        if lost:
            _enter_losses(rows, copy.replay, anchored)
        rows.flush()

    made = store.create(fill, lambda: None)
    store.close()
    if not made:
        raise InvalidParameter(f"url must be that of an empty database, and {store.name} was made meanwhile")
    if lost:
        place.write(copy.replay.head, loss=True)
    return cls(url, anchor=anchor)


def _require_no_other(store: Store, own: Anchor) -> None:
    """Refuse the place of another ledger that is missing: nobody would look for it any more."""
    other = Note(store.place).anchor()
    head = None if other is None or other.path == own.path else other.read()
    if head is not None and head.sequence:
        raise InvalidParameter(
            f"url must not be that of another ledger, and one with {head.sequence} entries is missing at "
            f"{store.name}: restore to another place"
        )


def _enter_losses(rows: Rows, replay: Replay, anchored: Head | None) -> None:
    """One entry for each data set, and each analyst with a cap, that takes all that is left."""
    behind = None if anchored is None else anchored._asdict()
    payload = canonical({"reason": "restored from a backup", "anchored": behind})
    people: list[tuple[str, str | None]] = [(name, None) for name in replay.standings]
    people += [person for person, total in replay.analysts.items() if total.cap is not None]
    for name, analyst in people:
        standing = replay.standings[name]
        if standing.retired:
            continue
        total = standing.total if analyst is None else replay.analysts[name, analyst]
        act = Act("loss", name, payload, analyst, price=total.left)
        person = None if analyst is None else total
        record, _, _ = enter(act, standing, person, before=replay.head, time=now())
        rows.entry(record)
        replay.read([record])


def _start(copy: Copy) -> str:
    assert copy.key is not None
    return sha256(canonical(header(copy.identity, copy.key)).encode()).hexdigest()


def _reason(fault: OSError) -> str:
    return (fault.strerror or "the disk reports an error").lower()
