"""The contract of the one gate to the data: what is charged, when, and where randomness comes from."""

import random

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.column import Column
from sfumato.errors import BudgetExceeded
from sfumato.ledger import MemoryLedger
from sfumato.privacy import Amount

ROWS = np.arange(10.0)
QUERY = sf.Sum(column="x", budget=sf.PureDP(0.25), bounds=(0, 9), nulls="drop")
QUARTER, HALF = Amount(epsilon=0.25), Amount(epsilon=0.5)


class Unreadable(Exception):
    """The disk failed under the data."""


def watched(read) -> sf.Dataset:
    """A data set that calls `read` whenever its rows are looked at."""

    def floats(start: int, stop: int) -> np.ndarray:
        read()
        return ROWS[start:stop]

    column = Column("x", "real", True, len(ROWS), floats, dict)
    return sf.Dataset({"x": column}, unit="row", neighbours="add-remove")


def assert_charged_before_the_data_are_read() -> None:
    ledger = MemoryLedger(sf.PureDP(1), neighbours="add-remove")
    spent_when_read: list[tuple[Amount, Amount]] = []
    session = sf.Session(
        watched(lambda: spent_when_read.append((session.spent, ledger.spent))),
        budget=sf.PureDP(1),
        ledger=ledger,
    )
    session.answer(QUERY)
    assert spent_when_read == [(QUARTER, QUARTER)]


def assert_refused_queries_read_nothing() -> None:
    reads: list[None] = []
    session = sf.Session(watched(lambda: reads.append(None)), budget=sf.PureDP(0.1))
    with pytest.raises(BudgetExceeded):
        session.answer(QUERY)
    assert not reads
    assert session.spent == Amount()


def assert_every_cap_is_charged() -> None:
    ledger = MemoryLedger(sf.PureDP(0.5), neighbours="add-remove")
    data = watched(lambda: None)
    for _ in range(2):
        session = sf.Session(data, budget=sf.PureDP(1), ledger=ledger)
        session.answer(QUERY)
        assert session.spent == QUARTER
    assert ledger.spent == HALF
    with pytest.raises(BudgetExceeded):
        sf.Session(data, budget=sf.PureDP(1), ledger=ledger).answer(QUERY)
    small = sf.Session(data, budget=sf.PureDP(0.5))
    for _ in range(2):
        small.answer(QUERY)
    with pytest.raises(BudgetExceeded):
        small.answer(QUERY)


def assert_errors_are_not_refunded() -> None:
    def fail() -> None:
        raise Unreadable

    ledger = MemoryLedger(sf.PureDP(1), neighbours="add-remove")
    session = sf.Session(watched(fail), budget=sf.PureDP(1), ledger=ledger)
    for _ in range(2):
        with pytest.raises(Unreadable):
            session.answer(QUERY)
    assert session.spent == ledger.spent == HALF


def released() -> float:
    return sf.sum(ROWS, bounds=(0, 9), epsilon=0.01).value


def assert_releases_differ() -> None:
    """The noise has a scale of about 2**30 steps: chance makes two of these equal once in 10**7 runs."""
    assert len({released() for _ in range(10)}) == 10


def assert_seeding_other_generators_changes_nothing() -> None:
    """Global generators set to the same state leave the releases as different as ever."""
    answers = set()
    for _ in range(3):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002  # the very generator that must have no influence
        answers.add(released())
    assert len(answers) == 3
