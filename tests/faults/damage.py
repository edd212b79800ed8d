"""What an attacker or a bad disk does to a ledger, and whether it is noticed."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.faults.clients import DATASET, NEIGHBOURS, Place, budget, digest, item

from sfumato.errors import LedgerDamaged, LedgerUnavailable, SfumatoError
from sfumato.ledger.chain import Record, hash_of

ENTRIES, REPLIES, FACTS = "ledger_entries", "ledger_replies", "ledger_facts"


def at(folder: Path) -> Place:
    """The ledger of a folder."""
    return Place(f"sqlite:///{folder / 'ledger.db'}", str(folder / "anchor"))


def fill(place: Place, charges: int) -> None:
    """A ledger with two data sets, a cap of an analyst, a renewal, charges and replies."""
    with place.open() as ledger:
        ledger.open("films", cap=budget("zcdp", 5), neighbours="substitution")
        account = ledger.open(DATASET, cap=budget("pure", 2 * charges), neighbours=NEIGHBOURS)
        ledger.allow(DATASET, "analyst", budget("pure", 2 * charges))
        ledger.renew(DATASET, budget("pure", 1), reason="a second wave was collected")
        for n in range(charges):
            account.charge(item(), request=f"r{n}", digest=digest(f"r{n}"))
            if n % 3:
                account.keep(f"r{n}", f"answer {n}".encode())


def copied(folder: Path, to: Path) -> Path:
    """All files of a ledger that nobody has open, at another place."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    return to


def noticed(place: Place) -> str | None:
    """In which words damage is noticed, on opening or by verify; None if it is not."""
    try:
        with place.open() as ledger:
            report = ledger.verify()
    except (LedgerDamaged, LedgerUnavailable) as error:
        return str(error)
    return None if report.sound else report.problems[0]


def contents(place: Place) -> tuple[object, ...]:
    """All that a ledger says."""
    with place.open() as ledger:
        account = ledger.account(DATASET)
        replies = tuple(account.answered(f"r{n}", digest(f"r{n}")) for n in range(20))
        return ledger.entries(), replies, ledger.identity, ledger.key


def still_spends(place: Place) -> bool:
    """Whether a charge goes through; a refusal is one of sfumato's errors and nothing else."""
    try:
        with place.open() as ledger:
            ledger.account(DATASET).charge(item())
    except SfumatoError:
        return False
    return True


def attack(database: Path, act: Callable[[sqlite3.Connection], None]) -> None:
    """Change tables as someone who has the file can: no triggers, no rules, no keys."""
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        for kind, name in connection.execute(
            "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
        ).fetchall():
            connection.execute(f'DROP {kind} "{name}"')
        connection.execute("BEGIN")
        act(connection)
        connection.execute("COMMIT")
    finally:
        connection.close()


def flipped(value: object, luck: random.Random) -> object:
    """The value with one bit changed; a missing value becomes a short text."""
    if value is None:
        return "x"
    if isinstance(value, int):
        return value ^ 1 << luck.randrange(40)
    content = bytearray(value.encode() if isinstance(value, str) else value)  # type: ignore[attr-defined]
    if not content:
        return "x"
    while True:
        place, bit = luck.randrange(len(content)), luck.randrange(8)
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        if not isinstance(value, str):
            return bytes(changed)
        try:
            return changed.decode()
        except UnicodeDecodeError:  # a database of text would not hold it
            continue


def flip(table: str, key: str, luck: random.Random) -> Callable[[sqlite3.Connection], None]:
    """One bit of one value of one row."""

    def act(connection: sqlite3.Connection) -> None:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        keys = [row[0] for row in connection.execute(f"SELECT {key} FROM {table} ORDER BY 1")]
        while True:
            row, column = luck.choice(keys), luck.choice(columns)
            (value,) = connection.execute(f"SELECT {column} FROM {table} WHERE {key} = ?", (row,)).fetchone()
            new = flipped(value, luck)
            assert new != value
            with suppress(sqlite3.IntegrityError):  # a table has no two rows with one key
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (new, row))
                return

    return act


def delete(sequence: int) -> Callable[[sqlite3.Connection], None]:
    """One entry less, the later ones as they were."""
    return lambda connection: connection.execute(f"DELETE FROM {ENTRIES} WHERE sequence = ?", (sequence,))


def cut(last: int) -> Callable[[sqlite3.Connection], None]:
    """The entries after the last one, away; what is left is a sound chain."""
    return lambda connection: connection.execute(f"DELETE FROM {ENTRIES} WHERE sequence > ?", (last,))


def swap(left: int, right: int) -> Callable[[sqlite3.Connection], None]:
    """Two entries in each other's place."""

    def act(connection: sqlite3.Connection) -> None:
        for old, new in ((left, -1), (right, left), (-1, right)):
            connection.execute(f"UPDATE {ENTRIES} SET sequence = ? WHERE sequence = ?", (new, old))

    return act


def flip_in_file(path: Path, luck: random.Random) -> tuple[int, int]:
    """One bit of a file, anywhere; says which."""
    content = bytearray(path.read_bytes())
    place, bit = luck.randrange(len(content)), luck.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(bytes(content))
    return place, bit


def forge(connection: sqlite3.Connection) -> None:
    """Every time changed and every hash made to fit: a chain that is sound in itself."""
    names = ", ".join(Record._fields)
    rows = [Record(*row) for row in connection.execute(f"SELECT {names} FROM {ENTRIES} ORDER BY sequence")]
    before = rows[0].previous
    for row in rows:
        changed = row._replace(previous=before, time=row.time.replace("20", "19", 1))
        changed = changed._replace(hash=hash_of(changed._asdict()))
        before = changed.hash
        connection.execute(f"DELETE FROM {ENTRIES} WHERE sequence = ?", (row.sequence,))
        connection.execute(f"INSERT INTO {ENTRIES} VALUES ({', '.join('?' * len(changed))})", changed)
