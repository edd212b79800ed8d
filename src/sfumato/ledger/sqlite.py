"""A ledger in a SQLite file: connections whose commits are durable, and a fair wait for the lock."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event

from sfumato.errors import LedgerDamaged, LedgerUnavailable

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
        # Only the first connection may make the file; a later one would make an empty one of a lost one.
        mode = "rwc" if self._place is None else "rw"
        if mode == "rwc":
            # Replies and the key are for the curator; SQLite reports what cannot be made.
            with suppress(OSError):
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=self.patience,
        )
        try:
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


def patient(action: Callable[[], Any], patience: float) -> Any:
    """Try again while others hold the lock: short pauses of uneven length, the same for all who wait."""
    end = time.monotonic() + patience
    while True:
        try:
            return action()
        except sqlite3.OperationalError as fault:
            if not str(fault.sqlite_errorname).startswith("SQLITE_BUSY") or time.monotonic() > end:
                raise
        time.sleep(0.0005 + (time.perf_counter_ns() % 1000) * 2e-6)
