"""A ledger in a SQLite file: connections whose commits are durable, and a fair wait for the lock."""

import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event

from sfumato.errors import LedgerDamaged, LedgerUnavailable
from sfumato.ledger.patience import patient
from sfumato.ledger.schema import VERSION_TABLE

# Write-ahead logging needs one sync for each commit, where a rollback journal needs several.
SETTINGS = (
    "synchronous=FULL",
    "fullfsync=ON",
    "checkpoint_fullfsync=ON",
    "cell_size_check=ON",
    "trusted_schema=OFF",
    # What is deleted is a secret.
    "secure_delete=ON",
)


class LedgerFile:
    """The file of a ledger, and how to connect to it."""

    def __init__(self, path: Path, name: str, patience: float) -> None:
        self.path = path
        self.name = name
        self.patience = patience
        self._place: tuple[int, int] | None = None

    def engine(self) -> Engine:
        """Connections that threads share; as many as they need."""
        pool: dict[str, Any] = {"poolclass": QueuePool, "max_overflow": -1, "creator": self._connect}
        engine = create_engine("sqlite://", **pool)
        event.listen(engine, "begin", self._begin)
        return engine

    def is_missing(self) -> bool:
        """Whether there is no file, or an empty one."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            found = None
        except OSError:
            return False  # SQLite reports why it cannot be opened
        if found is not None and (found.st_size or not stat.S_ISREG(found.st_mode)):
            return False
        for name in ("-wal", "-journal"):
            # SQLite would play these into any file that takes the place of theirs.
            beside = Path(f"{os.path.realpath(self.path)}{name}")
            if beside.exists() and beside.stat().st_size:
                raise LedgerUnavailable(
                    f"{self.name} is missing, and {beside} holds entries of it: bring the ledger back, or "
                    "move that file away"
                )
        return True

    @contextmanager
    def new_file(self) -> Iterator[Path | None]:
        """A path to make the file at, which then takes its place whole; None if another process was first."""
        place = Path(os.path.realpath(self.path))
        new = place.with_name(f".{place.name}.new")
        try:
            with self._alone(place.parent):
                if not self.is_missing():
                    yield None
                    return
                _remove(new)  # what a crash left
                try:
                    # Replies and the key are for the curator.
                    os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                    yield new
                    new.replace(place)
                except BaseException:
                    _remove(new)
                    raise
        except BlockingIOError:
            raise LedgerUnavailable(f"{self.name} is locked by another process for too long") from None
        except OSError as fault:
            reason = (fault.strerror or str(fault)).lower()
            raise LedgerUnavailable(f"{self.name} cannot be opened: {reason}") from None

    @contextmanager
    def _alone(self, folder: Path) -> Iterator[None]:
        """One process at a time makes files in a folder; what they did there is on disk at the end."""
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            patient(lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB), self.patience)
            yield
            os.fsync(handle)
        finally:
            os.close(handle)

    def require_same(self) -> None:
        """A connection stays with a file that was moved away, where nobody would look for its entries."""
        try:
            found = self.path.stat()
        except OSError:
            raise LedgerDamaged(f"{self.name} is gone: its file was removed while it was open") from None
        place = (found.st_dev, found.st_ino)
        if self._place not in (None, place):
            raise LedgerDamaged(f"{self.name} was replaced while it was open: open it again")
        self._place = place

    def _connect(self) -> sqlite3.Connection:
        # No connection makes a file: it would make an empty one of a lost one. `new_file` does.
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=self.patience,
        )
        try:
            self._require_ledger(connection)
            journal = patient(lambda: connection.execute("PRAGMA journal_mode=WAL").fetchone(), self.patience)
            for setting in SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            if journal != ("wal",) or connection.execute("PRAGMA synchronous").fetchone() != (2,):
                raise LedgerUnavailable(f"{self.name} cannot be kept here: its commits would not be durable")
            self.require_same()
        except BaseException:
            with suppress(sqlite3.Error):
                connection.close()
            raise
        return connection

    def _require_ledger(self, connection: sqlite3.Connection) -> None:
        # Before the file is switched to a write-ahead log: what is not a ledger is left as it is.
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if connection.execute("PRAGMA page_count").fetchone() != (0,) and VERSION_TABLE not in tables:
            raise LedgerDamaged(f"{self.name} is not a ledger, or parts of it are missing")

    def _begin(self, connection: Connection) -> None:
        raw = connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        if not connection.get_execution_options().get("writing"):
            raw.execute("BEGIN")
            return
        # SQLite's own waiting grows with each try, so that newcomers overtake those who wait longest.
        raw.execute("PRAGMA busy_timeout=0")
        try:
            patient(lambda: raw.execute("BEGIN IMMEDIATE"), self.patience)
        finally:
            raw.execute(f"PRAGMA busy_timeout={int(1000 * self.patience)}")


def _remove(path: Path) -> None:
    for name in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{name}").unlink(missing_ok=True)
