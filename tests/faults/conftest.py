"""Places for ledgers that are to be hurt."""

import pytest
from tests.faults.clients import Place
from tests.postgres_fixtures import postgres_server, postgres_url

__all__ = ["place", "postgres_place", "postgres_server", "postgres_url", "sqlite_place"]


@pytest.fixture
def sqlite_place(tmp_path):
    return Place(f"sqlite:///{tmp_path / 'ledger.db'}", str(tmp_path / "anchor"))


@pytest.fixture
def postgres_place(tmp_path, postgres_url):
    return Place(postgres_url, str(tmp_path / "anchor"))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request):
    """A place in each kind of database."""
    return request.getfixturevalue(f"{request.param}_place")
