"""The beginning of a ledger, whole with its anchor, where no other one was lost; and which ledger it is."""

from pathlib import Path

from sqlalchemy import Connection, insert

from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable
from sfumato.laws import SystemBits
from sfumato.ledger.anchor import GIVEN_UP, Anchor, Note, default_anchor, is_identity
from sfumato.ledger.chain import Head, genesis
from sfumato.ledger.schema import FACTS, content, facts
from sfumato.ledger.store import Store

KEY_BYTES = 32


def begin(store: Store, given: Path | None, note: Note | None, *, create: bool) -> bool:
    """Make a new ledger with its anchor, unless an anchor remembers one that is missing.

    Returns whether it was made here; False if another process was first.
    """
    before = None if given is None else Anchor(given)
    if note is not None:
        before = note.anchor()
    head = None if before is None else before.read()
    if before is not None and head is not None and head.sequence:
        raise LedgerUnavailable(
            f"{store.name} is missing, and its anchor {before.path} remembers {head.sequence} "
            "entries: bring it back, restore a copy (sfumato ledger restore), or give it up and begin "
            "anew (sfumato ledger begin-anew)"
        )
    if not create:
        address = store.url.render_as_string(hide_password=True)
        raise LedgerUnavailable(f"there is no ledger at {address}: give another address, or open one")
    bits = SystemBits()
    identity, key = bits.words(2).tobytes().hex(), bits.words(KEY_BYTES // 8).tobytes()

    def fill(connection: Connection) -> None:
        connection.execute(insert(facts).values(identity=identity, key=key))

    def ready() -> None:
        anchor = Anchor(default_anchor(identity) if given is None else given)
        anchor.write(Head(0, genesis(identity, key)), loss=anchor.read() is not None)
        if note is not None:
            note.write(identity)

    return store.create(fill, ready)


def give_up(store: Store, given: Path | None) -> Head:
    """Let a new ledger be made in place of one that is missing; the head that its anchor remembers."""
    if store.version() is not None:
        raise InvalidParameter(f"url must be that of a missing ledger, and {store.name} is there")
    lost = Note(store.place).anchor() if given is None else Anchor(given)
    head = None if lost is None else lost.read()
    store.close()
    if lost is None or head is None:
        raise InvalidParameter(f"url must be that of a missing ledger, and none was at {store.name}")
    lost.write(GIVEN_UP, loss=True)
    return head


def identify(store: Store) -> tuple[str, bytes]:
    """The identity and the key that a ledger says it has."""
    with store.reading() as connection:
        row = connection.execute(FACTS).one_or_none()
    if row is None or not is_identity(row.identity) or len(content(row.key)) != KEY_BYTES:
        raise LedgerDamaged(f"{store.name} is damaged: it does not say which ledger it is")
    return row.identity, row.key


def take_place(note: Note, identity: str) -> Head | None:
    """Note which ledger is at a place now; the head of another one that was there before."""
    known = note.read()
    if known == identity:
        return None
    note.write(identity)
    return None if known is None else Anchor(default_anchor(known)).read()
