"""What the tests of ledgers charge, and how they look inside a database."""

from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import sqlalchemy

import sfumato as sf
from sfumato.ledger.store import read_url
from sfumato.privacy import PureEvent

NEIGHBOURS = "add-remove"


def count(epsilon=0.1, **others):
    """Something that costs an epsilon."""
    return sf.Count(budget=sf.PureDP(epsilon), neighbours=NEIGHBOURS, **others)


@dataclass(frozen=True)
class Crumb:
    """Something smaller than any statistic may cost."""

    epsilon: Fraction
    name = "crumb"
    column = "x"
    neighbours = NEIGHBOURS

    @property
    def event(self):
        return PureEvent(self.epsilon, "exponential")

    @property
    def cost(self):
        return sf.PureDP(self.epsilon)


def noisy(rho):
    """Something that costs a rho."""
    return sf.Count(budget=sf.ZCDP(rho), neighbours=NEIGHBOURS)


def opened(ledger, cap=None, name="people"):
    """An account on a new data set."""
    return ledger.open(name, cap=cap or sf.PureDP(1), neighbours=NEIGHBOURS)


@contextmanager
def database(url):
    """The database itself, for tests that tamper with it; what they do is committed."""
    engine = sqlalchemy.create_engine(read_url(url), poolclass=sqlalchemy.NullPool)
    with engine.begin() as connection:
        yield connection


def unguarded(connection):
    """Remove the triggers, as somebody with the rights of the owner could."""
    for table in ("ledger_entries", "ledger_replies", "ledger_facts"):
        if connection.dialect.name == "sqlite":
            for act in ("update", "delete"):
                connection.execute(sqlalchemy.text(f"DROP TRIGGER IF EXISTS {table}_{act}"))
        else:
            for name in ("change", "empty"):
                connection.execute(sqlalchemy.text(f"DROP TRIGGER IF EXISTS {table}_{name} ON {table}"))


def tamper(url, statement, **values):
    """Change the database behind the ledger's back."""
    with database(url) as connection:
        unguarded(connection)
        return connection.execute(sqlalchemy.text(statement), values)
