"""Sessions: the charge comes before the look, caps hold exactly, and a refusal changes nothing."""

import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from threading import Barrier
from time import sleep

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.data.column import Column
from sfumato.laws import SeededBits, SystemBits
from sfumato.privacy import Amount, GaussianEvent, LaplaceEvent

SCHEMA = {"age": sf.Field(bounds=(0, 120)), "sex": sf.Field(categories=("f", "m"))}


class Recorded:
    """A column that writes down when it is read, and what was spent by then."""

    def __init__(self, rows=100, fails=False):
        self.reads = []
        self.fails = fails
        self.spent = Amount
        self.column = Column("x", "real", True, rows, self._floats, self._tally)

    def _floats(self, start, stop):
        self.reads.append(self.spent())
        if self.fails:
            raise OSError("the disk is gone")
        return np.full(stop - start, 3.0)

    def _tally(self):
        raise AssertionError("no categories here")


def session_on(recorded, budget, ledger=None):
    data = sf.Dataset({"x": recorded.column}, unit="row", neighbours="add-remove")
    session = sf.Session(data, budget=budget, ledger=ledger)
    recorded.spent = lambda: session.spent
    return session


def mean(epsilon, **others):
    return sf.Mean(column="x", bounds=(0, 10), budget=sf.PureDP(epsilon), **others)


def people(neighbours="substitution", **others):
    frame = {"age": np.arange(100), "sex": ["f", "m"] * 50, "income": np.linspace(0, 1, 100)}
    return sf.Dataset(frame, unit="row", neighbours=neighbours, **{"schema": SCHEMA, **others})


# --- charge, then look ----------------------------------------------------------------------------


def test_the_charge_is_made_before_the_first_read():
    recorded = Recorded()
    session = session_on(recorded, sf.PureDP(1))
    session.answer(mean(0.25))
    assert recorded.reads
    assert all(spent == Amount(epsilon=0.25) for spent in recorded.reads)


def test_nothing_is_read_when_the_budget_is_refused():
    recorded = Recorded()
    session = session_on(recorded, sf.PureDP(0.2))
    with pytest.raises(sf.BudgetExceeded, match=r"^a charge of epsilon 0.3 does not fit"):
        session.answer(mean(0.3))
    assert recorded.reads == []
    assert session.spent == Amount()


def test_nothing_is_read_or_charged_when_a_public_fact_is_wrong():
    recorded = Recorded()
    session = session_on(recorded, sf.PureDP(1))
    wrong = [
        sf.Mean(column="x", budget=sf.PureDP(0.1)),
        sf.Mean(column="y", budget=sf.PureDP(0.1), bounds=(0, 1)),
        sf.Proportion(column="x", budget=sf.PureDP(0.1)),
        sf.Histogram(column="x", budget=sf.PureDP(0.1)),
        sf.Histogram(column="x", budget=sf.PureDP(0.1), categories=("a",)),
        mean(0.1, neighbours="substitution"),
        "mean",
        None,
        sf.Mean,
    ]
    for query in wrong:
        with pytest.raises((sf.InvalidParameter, sf.SchemaMismatch)):
            session.answer(query)
    assert recorded.reads == []
    assert session.spent == Amount()


def test_a_failure_in_reading_stays_charged():
    recorded = Recorded(fails=True)
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="add-remove")
    session = session_on(recorded, sf.PureDP(1), ledger)
    with pytest.raises(OSError, match="the disk is gone"):
        session.answer(mean(0.25))
    assert session.spent == ledger.spent == Amount(epsilon=0.25)


def test_a_preview_reads_and_spends_nothing():
    recorded = Recorded()
    session = session_on(recorded, sf.PureDP(1))
    preview = session.preview(mean(0.25), rows=1000, confidence=0.999)
    assert recorded.reads == []
    assert session.spent == Amount()
    assert preview.cost == sf.PureDP(0.25)
    assert preview.error == preview.query.error(1000, 0.999)
    assert "99.9 % confidence" in str(preview)
    assert session.preview(mean(5), rows=10).cost == sf.PureDP(5)  # a preview is no promise that it fits
    unknown = session.preview(mean(0.25))
    assert unknown.error is None
    assert "private number of rows" in str(unknown)


@pytest.mark.parametrize(
    "wrong", [{"confidence": 1}, {"confidence": "x"}, {"rows": -1}, {"rows": "x"}, {"rows": 2.5}], ids=str
)
def test_a_preview_refuses_wrong_parameters_by_name(wrong):
    session = session_on(Recorded(), sf.PureDP(1))
    with pytest.raises(sf.InvalidParameter, match=f"^{next(iter(wrong))} must be "):
        session.preview(mean(0.25), **wrong)


# --- exact caps -----------------------------------------------------------------------------------


def test_three_tenths_fit_three_times_and_no_fourth():
    session = sf.Session(people(), budget=sf.PureDP(0.3))
    for _ in range(3):
        session.answer(sf.Mean(column="age", budget=sf.PureDP(0.1)))
    assert session.remaining == Amount()
    with pytest.raises(sf.BudgetExceeded):
        session.answer(sf.Mean(column="age", budget=sf.PureDP(1e-12)))
    assert session.spent == Amount(epsilon=0.3)


@given(st.integers(1, 40), st.integers(1, 10**6), st.integers(1, 10**6))
def test_equal_parts_of_a_cap_always_fit_and_one_unit_more_never(parts, numerator, denominator):
    cap = sf.PureDP(Fraction(numerator, denominator))
    ledger = sf.MemoryLedger(cap, neighbours="add-remove")
    for part in cap.split(parts):
        ledger.charge(sf.Count(budget=part, neighbours="add-remove"))
    assert ledger.remaining == Amount()
    assert len(ledger.entries) == parts
    with pytest.raises(sf.BudgetExceeded):
        ledger.charge(sf.Count(budget=sf.PureDP(1e-12), neighbours="add-remove"))
    assert len(ledger.entries) == parts


@pytest.mark.parametrize(("own", "shared"), [(0.5, 1), (1, 0.5)])
def test_a_refusal_by_the_session_or_by_the_ledger_changes_neither(own, shared):
    ledger = sf.MemoryLedger(sf.PureDP(shared), neighbours="substitution")
    session = sf.Session(people(), budget=sf.PureDP(own), ledger=ledger)
    session.answer(sf.Mean(column="age", budget=sf.PureDP(0.4)))
    with pytest.raises(sf.BudgetExceeded):
        session.answer(sf.Mean(column="age", budget=sf.PureDP(0.4)))
    assert session.spent == ledger.spent == Amount(epsilon=0.4)
    session.answer(sf.Mean(column="age", budget=sf.PureDP(0.1)))
    assert session.spent == ledger.spent == Amount(epsilon=0.5)
    assert [entry.number for entry in ledger.entries] == [1, 2]
    assert [entry.statistic for entry in ledger.entries] == ["mean", "mean"]


def test_a_ledger_refuses_the_other_relation_and_records_nothing():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="add-remove")
    with pytest.raises(sf.InvalidParameter, match=r"^neighbours must be that of the ledger, 'add-remove'"):
        sf.Session(people(), budget=sf.PureDP(1), ledger=ledger)
    with pytest.raises(sf.InvalidParameter, match=r"^neighbours must be that of the ledger, 'add-remove'"):
        ledger.charge(sf.Count(budget=sf.PureDP(0.5), neighbours="substitution"))
    assert ledger.spent == Amount()


def test_a_ledger_that_does_not_say_what_it_caps_is_refused():
    class Silent:
        def charge(self, query):
            raise AssertionError("charged")

    with pytest.raises(sf.InvalidParameter, match=r"^ledger must be a ledger such as MemoryLedger"):
        sf.Session(people(), budget=sf.PureDP(1), ledger=Silent())


def test_a_ledger_of_another_data_set_is_refused():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="substitution", dataset="people of 2025")
    with pytest.raises(sf.InvalidParameter, match=r"^dataset must be that of the ledger, 'people of 2025'"):
        sf.Session(people(), budget=sf.PureDP(1), ledger=ledger)
    session = sf.Session(people(name="people of 2025"), budget=sf.PureDP(1), ledger=ledger)
    session.answer(sf.Mean(column="age", budget=sf.PureDP(0.5)))
    assert ledger.entries[0].dataset == "people of 2025"


def test_a_preview_needs_the_number_of_rows_only_where_accuracy_depends_on_it():
    session = sf.Session(people("add-remove"), budget=sf.PureDP(1))
    assert session.preview(sf.Count(column="age", budget=sf.PureDP(1))).error == 3
    assert session.preview(sf.Sum(column="age", budget=sf.PureDP(1))).error > 0
    assert session.preview(sf.Mean(column="age", budget=sf.PureDP(1))).error is None


def test_two_sessions_share_the_cap_of_a_ledger():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="substitution")
    first = sf.Session(people(), budget=sf.PureDP(1), ledger=ledger)
    second = sf.Session(people(), budget=sf.PureDP(1), ledger=ledger)
    first.answer(sf.Mean(column="age", budget=sf.PureDP(0.75)))
    with pytest.raises(sf.BudgetExceeded):
        second.answer(sf.Mean(column="age", budget=sf.PureDP(0.5)))
    assert second.spent == Amount()
    second.answer(sf.Mean(column="age", budget=sf.PureDP(0.25)))
    assert ledger.remaining == Amount()


@pytest.mark.parametrize("sessions", [1, 4])
def test_eight_threads_spend_exactly_the_cap_when_they_ask_for_more(sessions):
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="substitution")
    shared = [sf.Session(people(), budget=sf.PureDP(1), ledger=ledger) for _ in range(sessions)]
    barrier = Barrier(8)

    def ask(number):
        session, answered = shared[number % sessions], 0
        barrier.wait()
        for _ in range(10):
            try:
                session.answer(sf.Count(column="age", between=(0, 50), budget=sf.PureDP(0.025)))
                answered += 1
            except sf.BudgetExceeded:
                assert ledger.spent.epsilon == 1
        return answered

    with ThreadPoolExecutor(8) as pool:
        answered = list(pool.map(ask, range(8)))
    assert sum(answered) == 40 == len(ledger.entries)
    assert ledger.remaining == Amount()
    assert sum(session.spent.epsilon for session in shared) == 1


class SlowLedger(sf.MemoryLedger):
    """A ledger that takes its time, as one on a disk does."""

    def charge(self, query):
        sleep(0.005)
        return super().charge(query)


def test_no_thread_charges_the_ledger_for_what_its_session_then_refuses():
    ledger = SlowLedger(sf.PureDP(100), neighbours="substitution")
    session = sf.Session(people(), budget=sf.PureDP(1), ledger=ledger)
    barrier = Barrier(8)

    def ask(_):
        barrier.wait()
        try:
            session.answer(sf.Mean(column="age", budget=sf.PureDP(0.5)))
        except sf.BudgetExceeded:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 2
    assert session.spent == ledger.spent == Amount(epsilon=1)


def test_a_closed_session_refuses_and_charges_nothing():
    with sf.Session(people(), budget=sf.PureDP(1)) as session:
        session.answer(sf.Mean(column="age", budget=sf.PureDP(0.5)))
    with pytest.raises(sf.SfumatoError, match=r"^the session is closed"):
        session.answer(sf.Mean(column="age", budget=sf.PureDP(0.5)))
    assert session.remaining == Amount(epsilon=0.5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_cannot_spend_the_budget_again():
    session = session_on(Recorded(), sf.PureDP(1))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            session.answer(mean(1))
        except sf.NotSupported:
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert session.answer(mean(1)).cost == sf.PureDP(1)


def test_a_public_fact_is_answered_for_nothing_even_when_all_is_spent():
    session = sf.Session(people(), budget=sf.PureDP(0.5))
    session.answer(sf.Mean(column="age", budget=sf.PureDP(0.5)))
    release = session.answer(sf.Count(column="age", budget=sf.PureDP(1)))
    assert release.value == 100
    assert release.cost == Amount()
    assert "public" in release.method


# --- public facts of the data set -----------------------------------------------------------------


@pytest.mark.parametrize("stated", ["substitution", "add-remove"])
def test_a_query_for_the_other_relation_is_refused(stated):
    other = {"substitution": "add-remove", "add-remove": "substitution"}[stated]
    session = sf.Session(people(stated), budget=sf.PureDP(1))
    with pytest.raises(sf.InvalidParameter, match=f"^neighbours must be that of the data set, '{stated}'"):
        session.answer(sf.Mean(column="age", budget=sf.PureDP(0.5), neighbours=other))
    assert session.spent == Amount()
    assert (
        session.answer(sf.Mean(column="age", budget=sf.PureDP(0.5), neighbours=stated)).query.neighbours
        == stated
    )


def test_the_schema_fills_in_what_a_query_leaves_out():
    schema = {**SCHEMA, "income": sf.Field(bounds=(0, 2), nulls="upper")}
    session = sf.Session(people(schema=schema), budget=sf.PureDP(100))
    assert session.answer(sf.Mean(column="age", budget=sf.PureDP(1))).query.bounds == (0, 120)
    assert session.answer(sf.Mean(column="age", budget=sf.PureDP(1), bounds=(0, 50))).query.bounds == (0, 50)
    assert session.answer(sf.Histogram(column="sex", budget=sf.PureDP(1))).query.categories == ("f", "m")
    bins = session.answer(sf.Histogram(column="age", bins=4, budget=sf.PureDP(1)))
    assert bins.query.bounds == (0, 120)
    income = session.answer(sf.Sum(column="income", budget=sf.PureDP(1))).query
    assert (income.bounds, income.nulls, income.rows) == ((0, 2), "upper", 100)
    dropped = session.answer(sf.Sum(column="income", nulls="drop", budget=sf.PureDP(1))).query
    assert dropped.nulls == "drop"


def test_the_number_of_rows_is_kept_out_of_releases_under_add_remove():
    session = sf.Session(people("add-remove"), budget=sf.PureDP(100))
    for query in (
        sf.Mean(column="age", budget=sf.PureDP(1)),
        sf.Count(column="age", budget=sf.PureDP(1)),
        sf.Histogram(column="sex", budget=sf.PureDP(1)),
    ):
        assert session.answer(query).query.rows is None


def test_a_column_that_cannot_hold_nulls_keeps_its_size_public():
    session = sf.Session(people(), budget=sf.PureDP(100))
    assert session.answer(sf.Mean(column="age", budget=sf.PureDP(1))).query.size_is_public
    assert not session.answer(
        sf.Mean(column="income", bounds=(0, 1), budget=sf.PureDP(1))
    ).query.size_is_public


# --- budgets of other kinds -----------------------------------------------------------------------


def test_an_approximate_session_takes_pure_and_approximate_queries():
    session = sf.Session(people(), budget=sf.ApproxDP(1, 1e-5))
    session.answer(sf.Mean(column="age", budget=sf.PureDP(0.25)))
    assert session.spent == Amount(epsilon=0.25)
    gaussian = session.answer(sf.Mean(column="age", budget=sf.ApproxDP(0.5, 1e-6), noise="gaussian"))
    assert isinstance(gaussian.event, GaussianEvent)
    assert session.spent == Amount(epsilon=0.75, delta=1e-6)
    laplace = session.answer(sf.Mean(column="age", budget=sf.ApproxDP(0.25, 1e-6), noise="laplace"))
    assert isinstance(laplace.event, LaplaceEvent)
    assert session.remaining == Amount(delta=Fraction(9, 10**6))
    with pytest.raises(sf.BudgetExceeded):
        session.answer(sf.Mean(column="age", budget=sf.ApproxDP(0.25, 1e-6), noise="gaussian"))


def test_a_cap_on_delta_holds_though_epsilon_is_left():
    session = sf.Session(people(), budget=sf.ApproxDP(10, 1e-6))
    ask = sf.Mean(column="age", budget=sf.ApproxDP(0.5, 6e-7), noise="gaussian")
    session.answer(ask)
    with pytest.raises(sf.BudgetExceeded):
        session.answer(ask)
    assert session.spent == Amount(epsilon=0.5, delta=6e-7)


def test_a_zcdp_session_takes_concentrated_and_pure_queries():
    session = sf.Session(people(), budget=sf.ZCDP(0.5))
    session.answer(sf.Mean(column="age", budget=sf.ZCDP(0.125)))
    assert session.spent == Amount(rho=0.125)
    session.answer(sf.Mean(column="age", budget=sf.PureDP(0.5)))
    assert Amount(rho=0.125) != session.spent
    assert session.spent.rho <= Fraction(1, 4)  # a pure epsilon costs at most epsilon**2 / 2
    with pytest.raises(sf.BudgetExceeded):
        session.answer(sf.Mean(column="age", budget=sf.ZCDP(0.4)))


def test_a_pure_session_refuses_gaussian_noise_before_any_charge():
    ledger = sf.MemoryLedger(sf.ApproxDP(10, 1e-3), neighbours="substitution")
    session = sf.Session(people(), budget=sf.PureDP(10), ledger=ledger)
    for budget in (sf.ZCDP(0.1), sf.ApproxDP(0.5, 1e-6)):
        with pytest.raises(sf.NotSupported, match="pure budget"):
            session.answer(
                sf.Mean(column="age", budget=budget, noise="gaussian" if budget != sf.ZCDP(0.1) else "auto")
            )
    assert session.spent == ledger.spent == Amount()
    session.answer(sf.Mean(column="age", budget=sf.ApproxDP(0.5, 1e-6), noise="laplace"))
    assert session.spent == ledger.spent == Amount(epsilon=0.5)


def test_a_ledger_that_cannot_price_an_event_leaves_the_session_unchanged():
    ledger = sf.MemoryLedger(sf.PureDP(10), neighbours="substitution")
    session = sf.Session(people(), budget=sf.ZCDP(10), ledger=ledger)
    with pytest.raises(sf.NotSupported, match="pure budget"):
        session.answer(sf.Mean(column="age", budget=sf.ZCDP(0.1)))
    assert session.spent == ledger.spent == Amount()


# --- randomness -----------------------------------------------------------------------------------


def test_seeded_bits_are_refused_beside_a_ledger():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="substitution")
    with pytest.raises(sf.InvalidParameter, match=r"^bits must not be seeded when a ledger is kept"):
        sf.Session(people(), budget=sf.PureDP(1), ledger=ledger, bits=SeededBits(1))
    sf.Session(people(), budget=sf.PureDP(1), ledger=ledger, bits=SystemBits())


def test_a_seeded_release_says_everywhere_that_it_is_not_private():
    data, query = people(), sf.Mean(column="age", budget=sf.PureDP(0.5))
    release, again = (
        sf.Session(data, budget=sf.PureDP(1), bits=SeededBits(5)).answer(query) for _ in range(2)
    )
    assert release == again
    assert release.private is False
    for text in (str(release), release._repr_html_(), release.to_json(), release.notes[0]):
        assert "NOT PRIVATE" in text
    assert sf.read_release(release.to_json()).private is False
    true = sf.Session(data, budget=sf.PureDP(1)).answer(query)
    assert true.private is True
    assert "NOT PRIVATE" not in str(true)


BAD_SESSIONS = {
    "data": ({"data": [1]}, "data must be a Dataset, got list"),
    "budget": ({"budget": 1}, "budget must be PureDP, ApproxDP or ZCDP, got budget=1"),
    "no budget": ({"budget": None}, "budget must be PureDP, ApproxDP or ZCDP, got budget=None"),
    "amount": ({"budget": Amount(epsilon=1)}, "budget must be PureDP, ApproxDP or ZCDP, got budget="),
    "ledger": ({"ledger": 3}, "ledger must be a ledger such as MemoryLedger, got ledger=3"),
    "bits": ({"bits": 42}, "bits must be a source of bits, got bits=42"),
}


@pytest.mark.parametrize(("wrong", "message"), BAD_SESSIONS.values(), ids=BAD_SESSIONS)
def test_a_session_refuses_wrong_parts_by_name(wrong, message):
    with pytest.raises(sf.InvalidParameter) as caught:
        sf.Session(**{"data": people(), "budget": sf.PureDP(1), **wrong})
    assert str(caught.value).startswith(message)
    if "budget" in wrong:
        with pytest.raises(sf.InvalidParameter, match=r"^cap must be PureDP, ApproxDP or ZCDP"):
            sf.MemoryLedger(wrong["budget"], neighbours="substitution")
