"""The PostgreSQL server of the tests: each test has its own database, and what was committed survives."""

import pytest
import sqlalchemy
from tests.postgres import MISSING, Server, binaries

psycopg = pytest.importorskip("psycopg")
needs_server = pytest.mark.skipif(binaries() is None, reason=MISSING)


def rows(url):
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        return connection.execute(sqlalchemy.text("SELECT number FROM kept")).scalars().all()


def write(url, number):
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE kept (number int)"))
        connection.execute(sqlalchemy.text(f"INSERT INTO kept VALUES ({number})"))


def test_each_database_is_empty_and_apart_from_the_others(postgres_server):
    left, right = postgres_server.database(), postgres_server.database()
    write(left, 1)
    write(right, 2)
    assert (rows(left), rows(right)) == ([1], [2])


@needs_server
def test_what_was_committed_survives_a_kill_and_nothing_is_left_after_the_stop():
    server = Server()
    server.start()
    try:
        url = server.database()
        write(url, 7)
        server.kill()
        with pytest.raises(sqlalchemy.exc.OperationalError):
            rows(url)
        server.start()
        assert rows(url) == [7]
        for setting in ("fsync", "synchronous_commit"):
            with psycopg.connect(url.replace("+psycopg", "")) as connection:
                assert connection.execute(f"SHOW {setting}").fetchone() == ("on",)
        folder = server.folder
        assert folder.exists()
    finally:
        server.stop()
    assert not folder.exists()
    assert not server.running
