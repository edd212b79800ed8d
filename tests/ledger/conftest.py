"""Where the ledgers of these tests live: a place for each test, in every database that is kept."""

import pytest
from tests.postgres_fixtures import postgres_server, postgres_url

__all__ = ["ledger_url", "postgres_server", "postgres_url"]

DATABASES = ["sqlite", "postgres"]


@pytest.fixture(params=DATABASES)
def ledger_url(request, tmp_path):
    """The URL of a database that holds no ledger yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return request.getfixturevalue(f"{request.param}_url")
