"""Opening a ledger: where it may be, what is refused there, and faults told in words."""

import stat
import subprocess
import sys

import pytest
import sqlalchemy
from tests.ledger.items import count, database, opened, tamper

import sfumato as sf
from sfumato.ledger.store import read_url


@pytest.fixture
def ledger(ledger_url, tmp_path):
    return sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")


def test_a_path_and_a_url_mean_the_same_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in (
        "ledger.db",
        tmp_path / "ledger.db",
        "sqlite:///ledger.db",
        f"sqlite:///{tmp_path}/ledger.db",
    ):
        identity = sf.SqlLedger(place).identity
        assert identity == sf.SqlLedger("ledger.db").identity
    assert sorted(path.name for path in tmp_path.iterdir() if "-" not in path.name) == ["ledger.db"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("mysql://host/db", "must begin with"),
        ("", "must be a URL or the path"),
        (7, "must be a URL or the path"),
        ("://", "must be sqlite:///path or postgresql"),
    ],
)
def test_other_places_are_refused(url, words):
    with pytest.raises(sf.InvalidParameter, match=words):
        sf.SqlLedger(url)


def test_a_password_is_never_shown():
    assert read_url("postgres://me:secret@host/db").drivername == "postgresql+psycopg"
    with pytest.raises(sf.LedgerUnavailable) as error:
        sf.SqlLedger("postgresql://me:secret@127.0.0.1:1/db?connect_timeout=1")
    assert "secret" not in str(error.value)
    assert error.value.__suppress_context__


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(sf.MissingExtra, match=r"sfumato\[postgres\]"):
        sf.SqlLedger("postgresql://localhost/db")


def test_what_is_no_ledger_is_left_alone(tmp_path):
    letter = tmp_path / "letter.db"
    letter.write_text("Dear reader, " * 1000)
    with pytest.raises(sf.LedgerDamaged, match="is not a ledger"):
        sf.SqlLedger(letter)
    assert letter.read_text().startswith("Dear reader")
    with pytest.raises(sf.LedgerUnavailable, match="cannot be opened"):
        sf.SqlLedger(tmp_path / "missing" / "ledger.db")
    with pytest.raises(sf.LedgerUnavailable, match="cannot be opened"):
        sf.SqlLedger(tmp_path)
    with database(tmp_path / "shop.db") as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE orders (id int)"))
    with pytest.raises(sf.LedgerDamaged, match="is not a ledger"):
        sf.SqlLedger(tmp_path / "shop.db")


def test_a_newer_or_half_removed_ledger_is_refused(ledger_url, ledger):
    with database(ledger_url) as connection:
        connection.execute(sqlalchemy.text("UPDATE ledger_version SET version_num = '9999'"))
    with pytest.raises(sf.LedgerUnavailable, match="'9999', which is newer"):
        sf.SqlLedger(ledger_url)
    with database(ledger_url) as connection:
        connection.execute(sqlalchemy.text("DELETE FROM ledger_version"))
    with pytest.raises(sf.LedgerDamaged, match="does not say which format"):
        sf.SqlLedger(ledger_url)
    with database(ledger_url) as connection:
        connection.execute(sqlalchemy.text("DROP TABLE ledger_version"))
    with pytest.raises(sf.LedgerDamaged, match="parts of it are missing"):
        sf.SqlLedger(ledger_url)


def test_a_ledger_that_is_locked_for_long_is_unavailable(tmp_path):
    ledger = sf.SqlLedger(tmp_path / "ledger.db", patience=0.05)
    account = opened(ledger)
    with database(tmp_path / "ledger.db") as connection:
        connection.execute(sqlalchemy.text("BEGIN IMMEDIATE"))
        with pytest.raises(sf.LedgerUnavailable, match="locked by another process"):
            account.charge(count())
    account.charge(count())
    assert ledger.head.sequence == 2


def test_a_file_that_is_replaced_or_removed_while_open_is_noticed(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = sf.SqlLedger(path)
    account = opened(ledger)
    path.rename(tmp_path / "away.db")
    with pytest.raises(sf.LedgerDamaged, match="is gone"):
        account.charge(count())
    assert not path.exists()
    sf.SqlLedger(tmp_path / "another.db").close()
    (tmp_path / "another.db").rename(path)
    with pytest.raises(sf.LedgerDamaged, match="was replaced while it was open"):
        account.charge(count())


def test_commits_are_durable_or_the_ledger_is_refused(tmp_path):
    store = sf.SqlLedger(tmp_path / "ledger.db").store
    with store.reading() as connection:
        settings = ("journal_mode", "synchronous")
        assert [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in settings] == ["wal", 2]


def test_the_ledger_is_private_to_loading_nothing_before_use():
    code = "import sys, sfumato.ledger; print([n for n in ('sqlalchemy', 'alembic') if n in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_neither_a_new_ledger_nor_an_old_one_loads_the_migrations(tmp_path):
    code = (
        "import sys, sfumato as sf; "
        f"sf.SqlLedger({str(tmp_path / 'ledger.db')!r}); print('alembic' in sys.modules)"
    )
    for _ in range(2):
        assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_a_ledger_and_its_backup_are_readable_by_their_owner_alone(tmp_path):
    ledger = sf.SqlLedger(tmp_path / "ledger.db")
    opened(ledger)
    ledger.backup(tmp_path / "backup")
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(found.values()) == {0o600}
    assert {"ledger.db", "backup"} <= set(found)


@pytest.mark.parametrize("value", ["x'ff00'", "CAST(x'fffe' AS TEXT)", "NULL", "1.5", "9e999", "''"])
@pytest.mark.parametrize("name", ["payload", "price", "dataset_spent", "dataset_cap_units", "time", "hash"])
def test_whatever_a_damaged_file_holds_is_an_error_in_words(tmp_path, name, value):
    path = tmp_path / "ledger.db"
    with sf.SqlLedger(path, anchor=tmp_path / "anchor") as ledger:
        account = opened(ledger)
        account.charge(count(), request="monday", digest="1f")
        with database(path) as connection:
            # Even a table without its constraints, as a flipped bit could leave it.
            connection.exec_driver_sql("CREATE TABLE other AS SELECT * FROM ledger_entries")
            connection.exec_driver_sql("DROP TABLE ledger_entries")
            connection.exec_driver_sql("ALTER TABLE other RENAME TO ledger_entries")
            connection.exec_driver_sql(f"UPDATE ledger_entries SET {name} = {value} WHERE sequence = 2")
        for act in (
            lambda: sf.SqlLedger(path, anchor=tmp_path / "anchor"),
            lambda: account.charge(count()),
            lambda: account.charge(count(), request="monday", digest="1f"),
            lambda: account.spent,
            lambda: account.answered("monday", "1f"),
            lambda: ledger.export(tmp_path / "export"),
        ):
            with pytest.raises(sf.LedgerDamaged):
                act()
        try:
            assert not ledger.verify().sound
        except sf.LedgerDamaged as error:
            assert "cannot be read" in str(error)  # noqa: PT017  reason: either outcome is right


@pytest.mark.parametrize("change", ["key = 'text'", "identity = x'00'", "identity = 'another'"])
def test_a_changed_identity_or_key_is_noticed_when_the_ledger_is_opened(tmp_path, change):
    path = tmp_path / "ledger.db"
    opened(sf.SqlLedger(path, anchor=tmp_path / "anchor"))
    tamper(path, f"UPDATE ledger_facts SET {change}")
    with pytest.raises(sf.LedgerDamaged):
        sf.SqlLedger(path)
