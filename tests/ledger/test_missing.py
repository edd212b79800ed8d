"""A missing ledger whose anchor is left is not begun again unasked, and what is refused makes nothing."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sqlalchemy
from tests.ledger.items import count, database, opened

import sfumato as sf
from sfumato.ledger import anchor as anchor_module
from sfumato.ledger import store as store_module
from sfumato.ledger.anchor import Note
from sfumato.ledger.store import read_url

MISSING = r"is missing, and its anchor .* remembers 2 entries: .*restore.* begin-anew"


@pytest.fixture(autouse=True)
def state(tmp_path_factory, monkeypatch):
    """A state folder of the test's own."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture(params=["usual anchor", "given anchor"])
def anchor(request, tmp_path_factory):
    return None if request.param == "usual anchor" else tmp_path_factory.mktemp("anchor") / "anchor"


def lose(url):
    """Delete the ledger, as an unlucky user would."""
    if str(url).startswith("postgres"):
        with database(url) as connection:
            connection.execute(sqlalchemy.text("DROP SCHEMA public CASCADE"))
            connection.execute(sqlalchemy.text("CREATE SCHEMA public"))
        return
    path = read_url(url).database
    for name in ("", "-wal", "-shm"):
        Path(f"{path}{name}").unlink(missing_ok=True)


def everything(*folders):
    """All files and folders, with what is in them."""
    return {
        path: path.read_bytes() if path.is_file() else None
        for folder in folders
        for path in folder.rglob("*")
    }


def spent(url, anchor):
    with sf.SqlLedger(url, anchor=anchor) as ledger:
        opened(ledger).charge(count())
        return ledger.head


def test_a_deleted_ledger_is_not_begun_again(ledger_url, anchor, tmp_path, state):
    spent(ledger_url, anchor)
    lose(ledger_url)
    before = everything(tmp_path, state)
    for create in (True, False, True):
        with pytest.raises(sf.LedgerUnavailable, match=MISSING):
            sf.SqlLedger(ledger_url, anchor=anchor, create=create)
    assert everything(tmp_path, state) == before


def test_a_dropped_and_recreated_database_is_a_missing_ledger(postgres_server):
    url = postgres_server.database()
    spent(url, None)
    name = read_url(url).database
    postgres_server.run(f"DROP DATABASE {name} WITH (FORCE)", f"CREATE DATABASE {name} TEMPLATE template0")
    with pytest.raises(sf.LedgerUnavailable, match=MISSING):
        sf.SqlLedger(url)
    # However the server is addressed.
    with pytest.raises(sf.LedgerUnavailable, match=MISSING):
        sf.SqlLedger(f"{url}&application_name=another")


def test_a_lost_ledger_is_given_up_in_so_many_words(ledger_url, anchor):
    head = spent(ledger_url, anchor)
    lose(ledger_url)
    ledger = sf.SqlLedger.begin_anew(ledger_url, anchor=anchor)
    assert ledger.came_after == head
    assert ledger.head == (0, ledger.start)
    opened(ledger).charge(count())
    ledger.close()
    assert sf.SqlLedger(ledger_url, anchor=anchor, create=False).verify().sound
    with pytest.raises(sf.InvalidParameter, match=r"and the ledger .* is there"):
        sf.SqlLedger.begin_anew(ledger_url, anchor=anchor)


def test_what_was_given_up_is_refused_if_it_is_found_again(tmp_path, anchor):
    path = tmp_path / "ledger.db"
    spent(path, anchor)
    shutil.copy(path, tmp_path / "found.db")
    lose(path)
    sf.SqlLedger.begin_anew(path, anchor=anchor).close()
    with pytest.raises(sf.LedgerDamaged, match="is not the one anchored"):
        sf.SqlLedger(tmp_path / "found.db", anchor=anchor)


def test_nothing_is_given_up_where_no_ledger_was(ledger_url, anchor, tmp_path, state):
    before = everything(tmp_path, state)
    with pytest.raises(sf.InvalidParameter, match="none was at"):
        sf.SqlLedger.begin_anew(ledger_url, anchor=anchor)
    assert everything(tmp_path, state) == before


def test_a_lost_ledger_is_restored_and_another_one_is_not_put_in_its_place(ledger_url, tmp_path):
    with sf.SqlLedger(ledger_url) as ledger:
        opened(ledger).charge(count())
        head = ledger.backup(tmp_path / "backup")
    with sf.SqlLedger(tmp_path / "other.db") as other:
        opened(other)
        other.backup(tmp_path / "other")
    lose(ledger_url)
    with pytest.raises(sf.InvalidParameter, match="restore to another place"):
        sf.SqlLedger.restore(tmp_path / "other", ledger_url)
    with pytest.raises(sf.LedgerUnavailable, match=MISSING):
        sf.SqlLedger(ledger_url)
    assert sf.SqlLedger.restore(tmp_path / "backup", ledger_url).head == head
    lose(ledger_url)
    with pytest.raises(sf.LedgerUnavailable, match=MISSING):
        sf.SqlLedger(ledger_url)


def test_a_ledger_without_entries_is_begun_again(ledger_url, anchor):
    for _ in range(3):
        with sf.SqlLedger(ledger_url, anchor=anchor) as ledger:
            assert ledger.head.sequence == 0
            assert not ledger.anchored_before
        lose(ledger_url)
    spent(ledger_url, anchor)


def test_a_ledger_is_found_missing_however_its_path_is_spelled(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "link.db").symlink_to(folder / "ledger.db")
    spent(tmp_path / "link.db", None)
    assert (folder / "ledger.db").is_file()
    assert (tmp_path / "link.db").is_symlink()
    lose(folder / "ledger.db")
    monkeypatch.chdir(folder)
    for place in (
        "ledger.db",
        tmp_path / "link" / "ledger.db",
        tmp_path / "link.db",
        "sqlite:///./ledger.db",
    ):
        with pytest.raises(sf.LedgerUnavailable, match=MISSING):
            sf.SqlLedger(place)


@pytest.mark.parametrize("left", ["-wal", "-journal"])
def test_what_sqlite_kept_beside_a_deleted_file_is_not_played_into_a_new_one(tmp_path, left):
    path = tmp_path / "ledger.db"
    ledger = sf.SqlLedger(path, anchor=tmp_path / "anchor")
    opened(ledger)
    wal = Path(f"{path}-wal").read_bytes()
    ledger.close()
    path.unlink()
    Path(f"{path}{left}").write_bytes(wal)
    (tmp_path / "anchor").unlink()
    for create in (True, False):
        with pytest.raises(sf.LedgerUnavailable, match=f"is missing, and .*{left} holds entries of it"):
            sf.SqlLedger(path, anchor=tmp_path / "anchor", create=create)
    assert not path.exists()
    assert Path(f"{path}{left}").read_bytes() == wal


def test_a_refused_ledger_makes_nothing(tmp_path, state, monkeypatch):
    with database(tmp_path / "shop.db") as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE orders (id int)"))
    with sqlite3.connect(tmp_path / "blank.db") as blank:
        blank.execute("CREATE TABLE t (x)")
        blank.execute("DROP TABLE t")
    blank.close()
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("a file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    before = everything(tmp_path, state)
    for place in ("shop.db", "blank.db", "folder", "nowhere/ledger.db", "file/ledger.db", "loop", "x" * 300):
        with pytest.raises((sf.LedgerDamaged, sf.LedgerUnavailable)):
            sf.SqlLedger(tmp_path / place)
    for place in ("ledger.db", "nowhere/ledger.db"):
        with pytest.raises(sf.LedgerUnavailable, match="there is no ledger at"):
            sf.SqlLedger(tmp_path / place, create=False)
    with pytest.raises(sf.LedgerUnavailable, match="anchor"):
        sf.SqlLedger(tmp_path / "ledger.db", anchor=tmp_path / "file" / "anchor")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(sf.LedgerUnavailable, match="anchor"):
        sf.SqlLedger(tmp_path / "ledger.db")
    assert everything(tmp_path, state) == before


def test_an_anchor_that_cannot_be_written_leaves_no_tables(postgres_url, tmp_path):
    (tmp_path / "file").write_text("a file")
    with pytest.raises(sf.LedgerUnavailable, match="anchor"):
        sf.SqlLedger(postgres_url, anchor=tmp_path / "file" / "anchor")
    with database(postgres_url) as connection:
        assert sqlalchemy.inspect(connection).get_table_names() == []


@pytest.mark.parametrize("fault", ["commit", "ready", "full"])
def test_a_maker_that_fails_leaves_nothing_and_the_next_one_succeeds(tmp_path, state, monkeypatch, fault):
    before = everything(tmp_path, state)

    def fails(*_, **__):
        raise sf.LedgerUnavailable("the disk cannot be written now")

    with monkeypatch.context() as patch:
        if fault == "ready":
            patch.setattr(anchor_module.Anchor, "write", fails)
        elif fault == "commit":
            patch.setattr(store_module, "create", fails)
        else:
            plain = store_module.Store.close

            def close(store):
                plain(store)
                Path(f"{store.url.database}-wal").write_bytes(b"what could not be moved")

            patch.setattr(store_module.Store, "close", close)
        with pytest.raises(sf.LedgerUnavailable, match=r"cannot be written"):
            sf.SqlLedger(tmp_path / "ledger.db")
    assert everything(tmp_path, state) == before
    assert sf.SqlLedger(tmp_path / "ledger.db").verify().sound


@pytest.mark.parametrize("kept", [b"", b"../../../etc/passwd\n", b"\xff\xfe\n", b"A" * 32 + b"\n"])
def test_a_note_that_names_no_ledger_is_damage(tmp_path, kept):
    path = tmp_path / "ledger.db"
    note = Note(str(path))
    note.write("0" * 32)
    note.path.write_bytes(kept)
    with pytest.raises(sf.LedgerDamaged, match="does not name a ledger"):
        sf.SqlLedger(path)
    assert not path.exists()


def test_makers_at_the_same_time_make_one_ledger(ledger_url, anchor):
    starting = threading.Barrier(6)
    found = []

    def make():
        starting.wait()
        with sf.SqlLedger(ledger_url, anchor=anchor) as ledger:
            account = opened(ledger, cap=sf.PureDP(1))
            account.charge(count(0.125))
            found.append(ledger.identity)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    with sf.SqlLedger(ledger_url, anchor=anchor, create=False) as ledger:
        assert ledger.account("people").spent.epsilon == 6 * count(0.125).cost.epsilon
        assert ledger.verify().sound


def test_a_maker_that_was_killed_is_followed_by_another(tmp_path, state):
    code = (
        "import os, sys, sfumato as sf; from sfumato.ledger import failpoints\n"
        "failpoints.fail_point = lambda name: os._exit(9) if name == sys.argv[2] else None\n"
        "sf.SqlLedger(sys.argv[1])"
    )
    path = tmp_path / "ledger.db"
    for point in ("before-commit", "after-commit"):
        ended = subprocess.run([sys.executable, "-c", code, str(path), point], check=False)
        assert ended.returncode == 9
        assert not path.exists()
    with sf.SqlLedger(path) as ledger:
        assert ledger.verify().sound
    assert [one.name for one in tmp_path.iterdir()] == ["ledger.db"]


def test_the_words_name_commands_that_exist(tmp_path):
    from sfumato.cli.ledger import app

    path = tmp_path / "ledger.db"
    spent(path, None)
    lose(path)
    with pytest.raises(sf.LedgerUnavailable) as error:
        sf.SqlLedger(path)
    named = re.findall(r"sfumato ledger ([a-z-]+)", str(error.value))
    assert named == ["restore", "begin-anew"]
    assert set(named) <= {command.name or command.callback.__name__ for command in app.registered_commands}
