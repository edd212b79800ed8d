"""The tables of a new ledger, with constraints and triggers; migrations/ makes the same of older ones."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Executable,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from sfumato.ledger.chain import OPTIONAL, Record

# The newest of migrations/versions, and those that can be brought up to it.
VERSION = "0001"
OLDER: tuple[str, ...] = ()
VERSION_TABLE = "ledger_version"

metadata = MetaData()


def _column(name: str) -> Column[object]:
    if name == "sequence":
        return Column(name, BigInteger, primary_key=True, autoincrement=False)
    return Column(name, BigInteger if name.endswith("_units") else Text, nullable=name in OPTIONAL)


entries = Table(
    "ledger_entries",
    metadata,
    *map(_column, Record._fields),
    CheckConstraint("sequence >= 1", name="ledger_sequence"),
    CheckConstraint("dataset_spent_units <= dataset_cap_units", name="ledger_dataset_cap"),
    CheckConstraint("dataset_spent_delta_units <= dataset_cap_delta_units", name="ledger_dataset_delta"),
    CheckConstraint("analyst_spent_units <= analyst_cap_units", name="ledger_analyst_cap"),
    CheckConstraint("analyst_spent_delta_units <= analyst_cap_delta_units", name="ledger_analyst_delta"),
)

replies = Table(
    "ledger_replies",
    metadata,
    Column("request", Text, primary_key=True),
    Column("sha256", Text, nullable=False),
    Column("reply", LargeBinary, nullable=False),
)

# What the randomness of a charged request follows from; gone once its outcome is stored.
secrets = Table(
    "ledger_secrets",
    metadata,
    Column("request", Text, primary_key=True),
    Column("secret", LargeBinary, nullable=False),
)

# Which content a charge was for, by its keyed fingerprint: a reminder for the curator. It is not in the
# chain, so that neither an export nor a published hash tells whether two charges were for the same content.
contents = Table(
    "ledger_contents",
    metadata,
    Column("fingerprint", Text, nullable=False, index=True),
    Column("dataset", Text, nullable=False),
    Column("request", Text, index=True),
)

# One row: the random identity of the ledger and its key.
facts = Table(
    "ledger_facts",
    metadata,
    Column("identity", Text, primary_key=True),
    Column("key", LargeBinary, nullable=False),
)

_version = Table(
    VERSION_TABLE,
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)


def _index(name: str, *columns: str, where: str | None = None, unique: bool = False) -> Index:
    chosen = None if where is None else text(where)
    listed = (entries.c[column] for column in columns)
    return Index(name, *listed, unique=unique, sqlite_where=chosen, postgresql_where=chosen)


_INDEXES = (
    _index("ledger_of_dataset", "dataset", "sequence"),
    _index("ledger_of_analyst", "dataset", "analyst", "sequence"),
    _index("ledger_one_spend", "request", where="kind = 'spend'", unique=True),
    _index("ledger_one_reply", "request", where="kind = 'reply'", unique=True),
    _index("ledger_one_open", "dataset", where="kind = 'open'", unique=True),
    _index("ledger_one_retire", "dataset", where="kind = 'retire'", unique=True),
    _index("ledger_listed", "dataset", "sequence", where="kind IN ('open', 'admit')"),
)


def create(connection: Connection) -> None:
    """Make the tables of the newest version in an empty database, inside the transaction at hand."""
    for table in (_version, entries, replies, secrets, contents, facts):
        connection.execute(CreateTable(table))
    for index in (*_INDEXES, *sorted(contents.indexes, key=lambda index: str(index.name))):
        connection.execute(CreateIndex(index))
    for statement in _guards(connection.dialect.name):
        connection.execute(text(statement))
    connection.execute(_version.insert(), {"version_num": VERSION})


def _guards(dialect: str) -> list[str]:
    """Triggers that refuse to change or remove a row."""
    tables = (entries.name, replies.name, contents.name, facts.name)
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {table}_{act.lower()} BEFORE {act} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, 'a ledger is only added to'); END"
            for table in tables
            for act in ("UPDATE", "DELETE")
        ]
    refuse = (
        "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'a ledger is only added to'; END $$"
    )
    kinds = (("change", "UPDATE OR DELETE", "FOR EACH ROW"), ("empty", "TRUNCATE", "FOR EACH STATEMENT"))
    return [refuse] + [
        f"CREATE TRIGGER {table}_{name} BEFORE {acts} ON {table} {each} EXECUTE FUNCTION ledger_refuse()"
        for table in tables
        for name, acts, each in kinds
    ]


# What every charge does, as texts with known columns: building these anew would cost more than running them.
_COLUMNS = ", ".join(Record._fields)
_LAST = "ORDER BY sequence DESC LIMIT 1"


def _entries(where: str) -> Executable:
    return text(f"SELECT {_COLUMNS} FROM ledger_entries {where}").columns(*entries.c)


def content(value: object) -> bytes:
    """What a binary column holds; nothing if a damaged file has something else there."""
    return value if isinstance(value, bytes) else b""


ADD_ENTRY = text(
    f"INSERT INTO ledger_entries ({_COLUMNS}) VALUES ({', '.join(':' + name for name in Record._fields)})"
)
LAST_ENTRY = _entries(_LAST)
LAST_OF_DATASET = _entries(f"WHERE dataset = :dataset {_LAST}")
LAST_OF_ANALYST = _entries(f"WHERE dataset = :dataset AND analyst = :analyst {_LAST}")
LISTED = _entries("WHERE dataset = :dataset AND kind IN ('open', 'admit') ORDER BY sequence")
SPEND_OF = _entries("WHERE kind = 'spend' AND request = :request")
REPLY_OF = _entries("WHERE kind = 'reply' AND request = :request")
FIRST_ENTRY = _entries("WHERE sequence = 1")
# Without types for their columns: a damaged file may hold anything there.
FACTS = text("SELECT identity, key FROM ledger_facts")
REPLIES = text("SELECT request, sha256, reply FROM ledger_replies")
CONTENT_OF = text("SELECT fingerprint FROM ledger_contents WHERE request = :request")
STORED_SECRET = text("SELECT secret FROM ledger_secrets WHERE request = :request")
STORED_REPLY = text("SELECT sha256, reply FROM ledger_replies WHERE request = :request")
HASH_AT = text("SELECT hash FROM ledger_entries WHERE sequence = :sequence")
