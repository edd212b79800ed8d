"""The database of a ledger: connections by process, durable transactions, and faults in words."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any
from weakref import finalize

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from sfumato.checks import shown
from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable, MissingExtra
from sfumato.ledger import failpoints
from sfumato.ledger.schema import OLDER, VERSION, VERSION_TABLE, create
from sfumato.ledger.sqlite import LedgerFile

# Alembic keeps the migration under way in its module, so the threads of a process take turns.
_MIGRATING = RLock()
os.register_at_fork(
    before=_MIGRATING.acquire, after_in_parent=_MIGRATING.release, after_in_child=_MIGRATING.release
)

# Connections of a parent process. A copy of them must be neither used nor closed here.
_ABANDONED: list[Engine] = []

_ONE_MAKER = "SELECT pg_advisory_xact_lock(7309940838)"
# A sync or a connection that fails in a commit leaves open whether the commit was made.
_UNKNOWN = "if a charge was under way, ask again with the same request id to learn of it"
_UNAVAILABLE = {
    "SQLITE_BUSY": "is locked by another process for too long",
    "SQLITE_LOCKED": "is locked by another process for too long",
    "SQLITE_FULL": "cannot be written: the disk is full",
    "SQLITE_READONLY": "cannot be written: it is read-only",
    "SQLITE_PERM": "cannot be used: permission was denied",
    "SQLITE_AUTH": "cannot be used: permission was denied",
    "SQLITE_CANTOPEN": "cannot be opened: the folder is missing or permission was denied",
    "SQLITE_IOERR": f"cannot be read or written: the disk reports an error, or is full; {_UNKNOWN}",
    "SQLITE_NOMEM": "cannot be used: there is no memory left",
    "55P03": "is locked by another process for too long",
    "53100": "cannot be written: the disk is full",
    "25006": "cannot be written: it is read-only",
    "42501": "cannot be used: permission was denied",
    "28P01": "cannot be opened: the password was refused",
    "3D000": "cannot be opened: the server has no such database",
}
_DAMAGED = {
    "SQLITE_NOTADB": "is not a ledger: the file is no database",
    "SQLITE_CORRUPT": "is damaged: the file is no longer a sound database",
    "SQLITE_CONSTRAINT": "is damaged: an entry would break a rule of its tables",
    "SQLITE_ERROR": "is damaged: its tables are not those of a ledger",
    "23": "is damaged: an entry would break a rule of its tables",
    "42": "is damaged: its tables are not those of a ledger",
    "P0001": "is only added to: no entry is changed or removed",
}


class Store:
    """One database, by URL or by the path of a SQLite file; threads share it, forks get their own."""

    def __init__(self, url: str | os.PathLike[str], *, patience: float, name: str | None = None) -> None:
        self.url = read_url(url)
        self.name = name or f"the ledger {self.url.render_as_string(hide_password=True)}"
        self.sqlite = self.url.drivername == "sqlite"
        self._patience = patience
        path = Path(os.path.abspath(str(self.url.database)))
        self._file = LedgerFile(path, self.name, patience) if self.sqlite else None
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        if self._file is not None:
            self._engine = self._file.engine()
        else:
            self._engine = _postgres_engine(self.url)
            event.listen(self._engine, "connect", _connected(self.name, self._patience))
        # What an engine calls does not know this object, so that its end closes the connections.
        finalize(self, _dispose, self._engine, self._process)

    @property
    def engine(self) -> Engine:
        """The connections of this process."""
        if os.getpid() != self._process:
            self._start()
        return self._engine

    def close(self) -> None:
        """Give the connections of this process back."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the database."""
        with self.in_words(), self.engine.connect() as connection:
            yield (
                connection.execution_options(isolation_level="REPEATABLE READ")
                if not self.sqlite
                else connection
            )

    @contextmanager
    def writing(self, lock: str = "LOCK TABLE ledger_entries IN EXCLUSIVE MODE") -> Iterator[Connection]:
        """A transaction that nobody else writes beside; durable when it ends, undone if it raises."""
        failpoints.fail_point("before-begin")
        with self.in_words(), self.engine.connect() as plain:
            if self._file is not None:
                self._file.require_same()
            connection = plain.execution_options(writing=True)
            with connection.begin():
                if not self.sqlite:
                    connection.execute(text(lock))
                yield connection
                failpoints.fail_point("before-commit")
        failpoints.fail_point("after-commit")

    def version(self) -> str | None:
        """The version of the tables; None if there are none yet. Nothing is made to find out."""
        if self._file is not None and self._file.is_missing():
            return None
        with self.reading() as connection:
            return self._version(connection)

    def _version(self, connection: Connection) -> str | None:
        names = set(inspect(connection).get_table_names())
        if VERSION_TABLE not in names:
            # A PostgreSQL database may hold other things beside a ledger.
            if any(name.startswith("ledger_") for name in names):
                raise LedgerDamaged(f"{self.name} is not a ledger, or parts of it are missing")
            return None
        found: list[str] = list(connection.scalars(text(f"SELECT version_num FROM {VERSION_TABLE}")))
        if len(found) != 1:
            raise LedgerDamaged(f"{self.name} is damaged: it does not say which format it has")
        if found[0] not in (VERSION, *OLDER):
            raise LedgerUnavailable(
                f"{self.name} has the format {shown(found[0])}, which is newer than this version of sfumato"
            )
        return found[0]

    @property
    def place(self) -> str:
        """Where the ledger is, the same however the URL is spelled: a file, or a schema of a server."""
        if self._file is not None:
            return os.path.realpath(self._file.path)
        with self.reading() as connection:
            where = "SELECT system_identifier, current_database(), current_schema() FROM pg_control_system()"
            return "postgresql {} {} {}".format(*connection.execute(text(where)).one())

    def create(self, fill: Callable[[Connection], None], ready: Callable[[], None]) -> bool:
        """Make and fill the tables of a new ledger: whole, or not at all if anything raises.

        Args:
            fill: writes the first rows.
            ready: called last, before others can see the ledger.

        Returns whether it was made here; False if another process was first.
        """
        if self._file is None:
            with self.writing(lock=_ONE_MAKER) as connection:
                if self._version(connection) is not None:
                    return False
                create(connection)
                fill(connection)
                ready()
            return True
        with self._file.new_file() as path:
            if path is None:
                return False
            new = Store(path, patience=self._patience, name=self.name)
            try:
                with new.writing() as connection:
                    create(connection)
                    fill(connection)
            finally:
                new.close()
            if Path(f"{path}-wal").exists():
                # SQLite leaves the log behind, without an error, where it cannot empty it.
                raise LedgerUnavailable(f"{self.name} {_UNAVAILABLE['SQLITE_FULL']}")
            ready()
        return True

    def upgrade(self) -> None:
        """Bring the tables of an older version up, one process at a time."""
        with self.writing(lock=_ONE_MAKER) as connection:
            if self._version(connection) != VERSION:
                upgrade(connection)

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Faults of the database become errors that say what happened and show nothing else."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as fault:
            kind, words = _words(fault)
        except UnicodeDecodeError:
            # A text of a file that was written over, or what SQLite says about it.
            kind, words = LedgerDamaged, _DAMAGED["SQLITE_CORRUPT"]
        else:
            return
        raise kind(f"{self.name} {words}") from None


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest version by the migrations, inside the transaction at hand."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes.update(connection=connection, version_table=VERSION_TABLE)
    with _MIGRATING:
        command.upgrade(config, "head")


def _dispose(engine: Engine, process: int) -> None:
    if os.getpid() == process:
        engine.dispose()
    else:
        _ABANDONED.append(engine)


def _connected(name: str, patience: float) -> Callable[[Any, object], None]:
    def durable(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = on")
            cursor.execute(f"SET lock_timeout = {int(1000 * patience)}")
            cursor.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')")
            settings = cursor.fetchone()
        connection.commit()
        if settings != ("on", "on"):
            raise LedgerUnavailable(f"{name} cannot be kept here: its commits would not be durable")

    return durable


def read_url(url: object) -> URL:
    """The database that a URL or a path means."""
    if not isinstance(url, str | os.PathLike) or not str(url):
        raise InvalidParameter(f"url must be a URL or the path of a file, got url={shown(url)}")
    words = os.fspath(url)
    if "://" not in words:
        return URL.create("sqlite", database=words)
    try:
        found = make_url(words)
    except ArgumentError:
        raise InvalidParameter("url must be sqlite:///path or postgresql://..., got another text") from None
    kind = found.drivername.partition("+")[0]
    if kind == "sqlite":
        if not found.database or found.database == ":memory:":
            raise InvalidParameter("url must name a file, because a ledger outlives the process")
        return found.set(drivername="sqlite")
    if kind in ("postgresql", "postgres"):
        return found.set(drivername="postgresql+psycopg")
    raise InvalidParameter(f"url must begin with sqlite:/// or postgresql://, got {shown(kind)}")


def _postgres_engine(url: URL) -> Engine:
    try:
        import psycopg  # noqa: F401  reason: SQLAlchemy would name the package and not the extra
    except ImportError:
        raise MissingExtra('a ledger on PostgreSQL needs psycopg: pip install "sfumato[postgres]"') from None
    waiting = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
    return create_engine(
        url, isolation_level="READ COMMITTED", pool_pre_ping=True, max_overflow=-1, connect_args=waiting
    )


def _words(fault: SQLAlchemyError | sqlite3.Error) -> tuple[type[LedgerUnavailable | LedgerDamaged], str]:
    cause = fault.orig if isinstance(fault, DBAPIError) else fault
    name = str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")
    for table, kind in ((_UNAVAILABLE, LedgerUnavailable), (_DAMAGED, LedgerDamaged)):
        for code, words in table.items():
            if name.startswith(code):
                return kind, words
    if isinstance(cause, sqlite3.Error):
        return LedgerDamaged, "is damaged: what is stored cannot be read"
    return LedgerUnavailable, f"does not answer; {_UNKNOWN}"
