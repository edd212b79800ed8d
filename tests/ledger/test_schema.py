"""A new ledger has the tables that the migrations make, in either database."""

from pathlib import Path

import pytest
import sqlalchemy

from sfumato.ledger import schema
from sfumato.ledger.store import Store, upgrade

# What a database keeps of its tables, indexes, constraints and triggers, in the words of the database.
CATALOG = {
    "sqlite": ["SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"],
    "postgresql": [
        "SELECT table_name, column_name, ordinal_position, data_type, character_maximum_length, is_nullable, "
        "column_default FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 3",
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2",
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2",
        "SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger "
        "WHERE NOT tgisinternal ORDER BY 1, 2",
        "SELECT proname, prosrc, prorettype::regtype::text FROM pg_proc "
        "WHERE pronamespace = 'public'::regnamespace ORDER BY 1",
    ],
}


def catalog(url, make):
    """What the database says of its tables after they were made, and the version that they have."""
    store = Store(url, patience=60.0)
    if store.sqlite:
        Path(store.url.database).touch()
    with store.writing(lock="SELECT 1") as connection:
        make(connection)
    with store.reading() as connection:
        lists = [
            [tuple(row) for row in connection.execute(sqlalchemy.text(query))]
            for query in CATALOG[connection.dialect.name]
        ]
    found = lists, store.version()
    store.close()
    return found


def places(request, tmp_path, kind):
    """Two empty databases of one kind."""
    if kind == "sqlite":
        return tuple(f"sqlite:///{tmp_path / name}.db" for name in ("created", "migrated"))
    server = request.getfixturevalue("postgres_server")
    return server.database(), server.database()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_new_ledger_has_the_tables_that_the_migrations_make(request, tmp_path, kind):
    created, migrated = places(request, tmp_path, kind)
    tables, version = catalog(created, schema.create)
    assert (tables, version) == catalog(migrated, upgrade)
    assert version == schema.VERSION
    assert all(tables)


@pytest.mark.parametrize("forgotten", ["_guards", "_INDEXES", "constraint"])
def test_a_part_that_one_of_them_forgets_is_noticed(request, tmp_path, monkeypatch, forgotten):
    created, migrated = places(request, tmp_path, "sqlite")
    if forgotten == "constraint":
        caps = {one for one in schema.entries.constraints if one.name != "ledger_dataset_cap"}
        monkeypatch.setattr(schema.entries, "constraints", caps)
    else:
        monkeypatch.setattr(schema, forgotten, (lambda dialect: []) if forgotten == "_guards" else ())
    assert catalog(created, schema.create) != catalog(migrated, upgrade)
