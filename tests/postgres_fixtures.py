"""Fixtures that give a test a PostgreSQL database; a conftest.py imports them."""

import pytest
from tests.postgres import MISSING, Server, binaries

SERVER = Server()


@pytest.fixture(scope="session")
def postgres_server():
    """The server that all tests of this process share; skipped where no PostgreSQL is installed."""
    if binaries() is None:
        pytest.skip(MISSING)
    pytest.importorskip("psycopg", reason='psycopg is missing: pip install "sfumato[postgres]"')
    if not SERVER.running:
        SERVER.start()
    yield SERVER
    SERVER.stop()


@pytest.fixture
def postgres_url(postgres_server):
    """The address of an empty PostgreSQL database of the test's own."""
    return postgres_server.database()
