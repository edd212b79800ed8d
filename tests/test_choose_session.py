"""Choices in a session: the charge comes before the scores, and whatever they do it stays."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.privacy import Amount

FILMS = ("Harbour", "Orchard", "The Long Tide", "Night Ferry")
MARKS = {name: np.array([5.0, 4, 1, np.nan] * 25) - place for place, name in enumerate(FILMS)}


def liked(columns):
    return [int((columns[name] >= 4).sum()) for name in FILMS]


def opened(budget=None, ledger=None, neighbours="add-remove", **others):
    data = sf.Dataset(MARKS, unit="row", neighbours=neighbours)
    return sf.Session(data, budget=budget or sf.PureDP(1), ledger=ledger, **others)


def ask(session, scores=liked, **others):
    given = {"sensitivity": 1, "monotone": True, "budget": sf.PureDP(0.5)} | others
    return session.choose(FILMS, scores, **given)


def test_a_session_chooses_by_scores_of_its_columns():
    session = opened(bits=SeededBits(1))
    release = ask(session)
    assert release.value == "Harbour"
    assert not release.private
    assert release.query.neighbours == "add-remove"
    assert session.remaining == Amount(epsilon=0.5)
    assert sf.read_release(release.to_json()) == release


def test_scores_are_computed_after_the_charge():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="add-remove")
    session = opened(ledger=ledger)
    seen = []

    def scores(columns):
        seen.append((session.spent, ledger.spent, len(ledger.entries)))
        return liked(columns)

    ask(session, scores)
    half = Amount(epsilon=0.5)
    assert seen == [(half, half, 1)]
    entry = ledger.entries[0]
    assert (entry.statistic, entry.column, entry.price) == ("choice", "candidates", half)


def test_scores_are_not_computed_for_a_refused_charge_or_a_closed_session():
    called = []
    with pytest.raises(sf.BudgetExceeded):
        ask(opened(sf.PureDP(0.1)), called.append)
    session = opened()
    session.close()
    with pytest.raises(sf.SfumatoError, match="closed"):
        ask(session, called.append)
    assert called == []


def test_what_the_scores_raise_stays_charged_and_is_passed_on():
    def fails(columns):
        raise OSError("the disk is gone")

    session = opened()
    with pytest.raises(OSError, match="the disk is gone"):
        ask(session, fails)
    with pytest.raises(sf.InvalidParameter, match=r"scores must be one for each of the 4 options$"):
        ask(session, lambda columns: [1, 2, 3])
    assert session.remaining == Amount()


def test_a_wrong_public_fact_is_refused_before_the_charge():
    session = opened()
    for others in ({"scores": [1, 2, 3, 4]}, {"picks": 9}, {"sensitivity": 0}, {"budget": 1}, {"method": 3}):
        with pytest.raises(sf.InvalidParameter):
            ask(session, **others)
    with pytest.raises(sf.InvalidParameter, match="monotone must be False under substitution"):
        ask(opened(neighbours="substitution"))
    assert session.spent == Amount()
    assert ask(opened(neighbours="substitution"), monotone=False).cost == sf.PureDP(0.5)


def test_the_columns_are_those_that_were_given_and_cannot_be_changed():
    before = MARKS["Harbour"].copy()

    def scores(columns):
        assert list(columns) == list(FILMS)
        assert len(columns) == len(FILMS)
        np.testing.assert_array_equal(columns["Harbour"], MARKS["Harbour"])
        with pytest.raises(TypeError):
            columns["Harbour"] = None
        columns["Harbour"][:] = 0
        np.testing.assert_array_equal(MARKS["Harbour"], before)
        return liked(columns)

    ask(opened(), scores)
    listed = [1.0, 2.0]
    session = sf.Session(sf.Dataset({"x": listed}, unit="row", neighbours="add-remove"), budget=sf.PureDP(1))
    ask(session, lambda columns: [columns["x"].clear(), 1, 2, 3, 4][1 : 1 + len(FILMS)])
    assert listed == [1.0, 2.0]
    frame = pl.DataFrame(MARKS)
    session = sf.Session(sf.Dataset(frame, unit="row", neighbours="add-remove"), budget=sf.PureDP(1))
    chosen = ask(session, lambda columns: [int((columns[name] >= 4).sum()) for name in FILMS])
    assert chosen.value in FILMS


def test_a_session_under_zcdp_charges_the_bounded_range():
    session = opened(sf.ZCDP(1))
    ask(session, budget=sf.PureDP(1), method="exponential")
    assert session.spent == Amount(rho=Fraction(1, 8))
    ask(session, budget=sf.ZCDP(Fraction(1, 4)), method="exponential", picks=2)
    assert session.spent == Amount(rho=Fraction(3, 8))


def test_a_choice_is_no_query_of_a_column():
    with pytest.raises(sf.InvalidParameter, match="query must be a statistic"):
        opened().answer(sf.Choose(candidates=FILMS, sensitivity=1, budget=sf.PureDP(1)))


# --- mutants: what these tests must notice -----------------------------------------------------


class ScoresFirst(sf.Session):
    """A session that computes the scores before it charges."""

    def choose(self, candidates, scores, **others):
        found = scores(self._data.columns)
        return super().choose(candidates, lambda _: found, **others)


class Refunding(sf.Session):
    """A session that charges nothing if the scores fail."""

    def choose(self, candidates, scores, **others):
        scores(self._data.columns)
        return super().choose(candidates, scores, **others)


@pytest.mark.parametrize("mutant", [ScoresFirst, Refunding])
def test_a_look_before_the_charge_is_noticed(monkeypatch, mutant):
    monkeypatch.setattr(sf, "Session", mutant)
    with pytest.raises(AssertionError):
        test_scores_are_computed_after_the_charge()
    with pytest.raises((AssertionError, TypeError)):
        test_scores_are_not_computed_for_a_refused_charge_or_a_closed_session()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_what_the_scores_raise_stays_charged_and_is_passed_on()
