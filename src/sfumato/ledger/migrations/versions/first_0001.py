"""The first format: entries, replies and the facts of a ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = ("ledger_entries", "ledger_replies", "ledger_contents", "ledger_facts")


def upgrade() -> None:
    """Make the tables of an empty database."""
    text, whole = sa.Text(), sa.BigInteger()
    op.create_table(
        "ledger_entries",
        sa.Column("sequence", whole, primary_key=True, autoincrement=False),
        sa.Column("kind", text, nullable=False),
        sa.Column("dataset", text, nullable=False),
        sa.Column("analyst", text),
        sa.Column("request", text),
        sa.Column("digest", text),
        sa.Column("payload", text, nullable=False),
        sa.Column("price", text),
        sa.Column("state", text, nullable=False),
        sa.Column("dataset_spent", text, nullable=False),
        sa.Column("dataset_cap", text, nullable=False),
        sa.Column("analyst_spent", text),
        sa.Column("analyst_cap", text),
        sa.Column("dataset_spent_units", whole, nullable=False),
        sa.Column("dataset_cap_units", whole, nullable=False),
        sa.Column("dataset_spent_delta_units", whole),
        sa.Column("dataset_cap_delta_units", whole),
        sa.Column("analyst_spent_units", whole),
        sa.Column("analyst_cap_units", whole),
        sa.Column("analyst_spent_delta_units", whole),
        sa.Column("analyst_cap_delta_units", whole),
        sa.Column("time", text, nullable=False),
        sa.Column("previous", text, nullable=False),
        sa.Column("hash", text, nullable=False),
        sa.CheckConstraint("sequence >= 1", name="ledger_sequence"),
        sa.CheckConstraint("dataset_spent_units <= dataset_cap_units", name="ledger_dataset_cap"),
        sa.CheckConstraint(
            "dataset_spent_delta_units <= dataset_cap_delta_units", name="ledger_dataset_delta"
        ),
        sa.CheckConstraint("analyst_spent_units <= analyst_cap_units", name="ledger_analyst_cap"),
        sa.CheckConstraint(
            "analyst_spent_delta_units <= analyst_cap_delta_units", name="ledger_analyst_delta"
        ),
    )
    op.create_index("ledger_of_dataset", "ledger_entries", ["dataset", "sequence"])
    op.create_index("ledger_of_analyst", "ledger_entries", ["dataset", "analyst", "sequence"])
    for name, columns, where in (
        ("ledger_one_spend", ["request"], "kind = 'spend'"),
        ("ledger_one_reply", ["request"], "kind = 'reply'"),
        ("ledger_one_open", ["dataset"], "kind = 'open'"),
        ("ledger_one_retire", ["dataset"], "kind = 'retire'"),
    ):
        chosen = sa.text(where)
        op.create_index(
            name, "ledger_entries", columns, unique=True, sqlite_where=chosen, postgresql_where=chosen
        )
    terms = sa.text("kind IN ('open', 'admit')")
    op.create_index(
        "ledger_listed", "ledger_entries", ["dataset", "sequence"], sqlite_where=terms, postgresql_where=terms
    )
    op.create_table(
        "ledger_replies",
        sa.Column("request", text, primary_key=True),
        sa.Column("sha256", text, nullable=False),
        sa.Column("reply", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "ledger_secrets",
        sa.Column("request", text, primary_key=True),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "ledger_contents",
        sa.Column("fingerprint", text, nullable=False),
        sa.Column("dataset", text, nullable=False),
        sa.Column("request", text),
    )
    for column in ("fingerprint", "request"):
        op.create_index(f"ix_ledger_contents_{column}", "ledger_contents", [column])
    op.create_table(
        "ledger_facts",
        sa.Column("identity", text, primary_key=True),
        sa.Column("key", sa.LargeBinary(), nullable=False),
    )
    for statement in guards(op.get_bind().dialect.name):
        op.execute(statement)


def guards(dialect: str) -> list[str]:
    """Triggers that refuse to change or remove a row."""
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {table}_{act.lower()} BEFORE {act} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, 'a ledger is only added to'); END"
            for table in TABLES
            for act in ("UPDATE", "DELETE")
        ]
    refuse = (
        "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'a ledger is only added to'; END $$"
    )
    return [refuse] + [
        f"CREATE TRIGGER {table}_{name} BEFORE {acts} ON {table} {each} EXECUTE FUNCTION ledger_refuse()"
        for table in TABLES
        for name, acts, each in (
            ("change", "UPDATE OR DELETE", "FOR EACH ROW"),
            ("empty", "TRUNCATE", "FOR EACH STATEMENT"),
        )
    ]
