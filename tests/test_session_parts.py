"""Parts of a table, groups and units of several rows, through the session that answers for them."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.asked import question_facts
from sfumato.batch import Batch
from sfumato.laws import SeededBits
from sfumato.privacy import Amount
from sfumato.question import Question

TEAMS = ("red", "blue", "green")
SCHEMA = {
    "salary": sf.Field(bounds=(0, 100)),
    "team": sf.Field(categories=TEAMS),
    "age": sf.Field(bounds=(0, 120)),
    "senior": sf.Field(categories=(False, True)),
}


def table(n=3000):
    i = np.arange(n)
    return {
        "salary": (i % 100).astype(np.int64),
        "team": np.where(i % 3 == 0, "blue", "red"),
        "age": (20 + i % 50).astype(np.int64),
        "senior": i % 50 >= 25,
        "person": (i // 3).astype(np.int64),
    }


def dataset(relation="add-remove", unit="row", **options):
    return sf.Dataset(table(), unit=unit, neighbours=relation, schema=SCHEMA, **options)


def session(relation="add-remove", budget=None, **options):
    return sf.Session(dataset(relation, **options), budget=budget or sf.PureDP(1000), bits=SeededBits(7))


def strong(relation="add-remove", column="salary", **options):
    return sf.Count(column=column, budget=sf.PureDP(100), **options)


def test_a_condition_selects_the_rows_that_meet_it():
    made = session().answer(strong(), where={"team": "blue"})
    assert made.value == 1000
    assert made.among == (("team", "blue"),)
    assert str(made).startswith("count of salary, team: blue\n")


def test_conditions_are_met_together():
    made = session().answer(
        strong(), where={"team": ("blue", "red"), "age": sf.Between(20, 29), "senior": False}
    )
    rows = table()
    kept = (rows["age"] <= 29) & ~rows["senior"]
    assert made.value == kept.sum()


def test_every_declared_key_is_answered_also_one_without_rows():
    made = session().answer_by(strong(), by=["team"])
    assert made.keys == (("red",), ("blue",), ("green",))
    assert [made[team].value for team in TEAMS] == [2000, 1000, 0]


def test_groups_of_two_columns_are_all_pairs():
    made = session().answer_by(strong(), by=["team", "senior"], where={"age": sf.Between(20, 44)})
    assert made.keys == tuple((team, senior) for team in TEAMS for senior in (False, True))
    assert made["red", True].value == 0
    assert made["red", False].value + made["blue", False].value == 1500


@pytest.mark.parametrize("relation", ["add-remove", "substitution"])
def test_all_groups_are_charged_once(relation):
    asking = session(relation, budget=sf.PureDP(1))
    asking.answer_by(sf.Mean(column="salary", budget=sf.PureDP(1)), by=["team"])
    assert asking.spent == Amount(epsilon=1)
    with pytest.raises(sf.BudgetExceeded):
        asking.answer(sf.Mean(column="salary", budget=sf.PureDP(0.001)))


def test_groups_under_substitution_get_half_of_the_budget_each():
    made = session("substitution").answer_by(sf.Count(column="salary", budget=sf.PureDP(1)), by=["team"])
    assert "scale 2," in made["red"].method
    alone = session("substitution").answer(
        sf.Count(column="salary", budget=sf.PureDP(1)), where={"team": "red"}
    )
    assert "scale 1," in alone.method


@pytest.mark.parametrize(("relation", "scale"), [("add-remove", 3), ("substitution", 6)])
def test_units_of_three_rows_scale_the_noise(relation, scale):
    asking = session(relation, unit="person", rows_per_unit=3)
    made = asking.answer(sf.Count(column="salary", budget=sf.PureDP(1)))
    assert f"scale {scale}" in made.method
    assert made.cost == sf.PureDP(1)
    assert asking.spent == Amount(epsilon=1)


def test_units_are_bounded_to_their_rows():
    asking = session(unit="person", rows_per_unit=2)
    assert asking.answer(sf.Count(column="salary", budget=sf.PureDP(400))).value == 2000
    parts = asking.answer_by(sf.Count(column="salary", budget=sf.PureDP(400)), by=["team"])
    assert sum(parts[team].value for team in TEAMS) == 2000


def test_the_choice_of_rows_is_made_once_for_a_session():
    asking = session(unit="person", rows_per_unit=1)
    query = sf.Count(column="salary", budget=sf.PureDP(100))
    first, again = (asking.answer(query, where={"senior": True}).value for _ in range(2))
    assert first == again


def test_a_stream_and_a_choice_need_rows_as_units():
    asking = session(unit="person", rows_per_unit=2)
    with pytest.raises(sf.NotSupported, match="needs unit='row'"):
        asking.open_stream(column="salary", threshold=10, budget=sf.PureDP(1))
    with pytest.raises(sf.NotSupported, match="needs unit='row'"):
        asking.choose(["a"], lambda columns: [1], sensitivity=1, budget=sf.PureDP(1))
    assert asking.spent == Amount()


def test_a_batch_is_charged_whole_or_not_at_all():
    asking = session(budget=sf.PureDP(1))
    questions = [
        Question(query=sf.Mean(column="salary", budget=sf.PureDP(0.6)), by=["team"]),
        Question(query=sf.Count(column="salary", budget=sf.PureDP(0.6))),
    ]
    with pytest.raises(sf.BudgetExceeded):
        asking.answer_all(questions)
    assert asking.spent == Amount()
    means, count = asking.answer_all(
        [questions[0], Question(query=sf.Count(column="salary", budget=sf.PureDP(0.4)))]
    )
    assert means.by == ("team",)
    assert count.query.name == "count"
    assert asking.remaining == Amount()


def test_a_price_is_known_before_anything_is_spent():
    asking = session()
    priced = asking.price([Question(query=strong()), Question(query=strong(), by=["team"])])
    assert isinstance(priced, Batch)
    assert priced.cost == sf.PureDP(200)
    assert asking.spent == Amount()


def test_a_preview_of_groups_reads_and_spends_nothing():
    asking = session("substitution", budget=sf.PureDP(1))
    seen = asking.preview(sf.Mean(column="salary", budget=sf.PureDP(1)), by=["team"], rows=1000)
    assert "team: red" in str(seen)
    assert seen.cost == sf.PureDP(1)
    assert seen.error > asking.preview(sf.Mean(column="salary", budget=sf.PureDP(1)), rows=1000).error
    assert asking.spent == Amount()


@pytest.mark.parametrize(
    ("where", "by", "words"),
    [
        ({"nowhere": 1}, (), "nowhere"),
        ({"team": "pink"}, (), "team"),
        ({"team": 3}, (), "team"),
        ({"team": []}, (), "team"),
        ({"age": object()}, (), "age"),
        ({}, ("salary",), "categories"),
        ({}, ("nowhere",), "nowhere"),
        ({}, "team", "by"),
        ({}, ("team", "team"), "by"),
        ({"age": sf.Between}, (), "age"),
        ("team", (), "where"),
    ],
)
def test_wrong_conditions_and_groups_are_refused_before_the_charge(where, by, words):
    asking = session(budget=sf.PureDP(1))
    with pytest.raises(sf.SfumatoError, match=words):
        asking.answer_all([Question(query=strong(), where=where, by=by)])
    assert asking.spent == Amount()


def test_a_grouped_release_prints_writes_and_draws():
    made = session().answer_by(
        sf.Quantiles(column="salary", probs=(0.25, 0.5), budget=sf.PureDP(100)), by=["team"]
    )
    lines = str(made).splitlines()
    assert lines[0] == "quantiles of salary by team"
    assert len([line for line in lines if line.lstrip().startswith(TEAMS)]) == 6
    record = made.to_dict()
    assert [part["key"] for part in record["releases"]] == [["red"], ["blue"], ["green"]]
    assert sf.read_release(record["releases"][0]["release"]) == made["red"]
    assert "<table>" in made._repr_html_()
    assert "<script" not in made._repr_html_()


def test_a_request_needs_a_ledger_that_keeps_replies():
    with pytest.raises(sf.InvalidParameter, match="request needs a ledger"):
        session().answer(strong(), request="first")


def test_the_same_request_returns_the_same_answer_and_is_charged_once(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    query = sf.Quantiles(column="salary", probs=(0.25, 0.5), budget=sf.PureDP(1))
    answers = []
    for _ in range(3):
        with sf.Session(dataset(), budget=sf.PureDP(1), ledger=url) as asking:
            answers.append(asking.answer_by(query, by=["team"], request="quartiles"))
    assert answers[0] == answers[1] == answers[2]
    account = sf.SqlLedger(url).account("data")
    assert account.spent == Amount(epsilon=1)
    with sf.Session(dataset(), budget=sf.PureDP(1), ledger=url) as asking, pytest.raises(sf.BudgetExceeded):
        asking.answer_by(query, by=["team"], request="again")


def test_another_question_under_the_same_request_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with sf.Session(dataset(), budget=sf.PureDP(1), ledger=url) as asking:
        asking.answer(sf.Count(column="salary", budget=sf.PureDP(Fraction(1, 3))), request="mine")
        with pytest.raises(sf.RequestConflict):
            asking.answer(sf.Count(column="age", budget=sf.PureDP(Fraction(1, 3))), request="mine")
    assert asking.spent == Amount(epsilon=Fraction(1, 3))


def test_equal_words_of_other_conditions_are_another_question(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    data = sf.Dataset(
        {"x": np.arange(9), "t": np.array(["a", "b", "a or b"] * 3)}, unit="row", neighbours="add-remove"
    )
    with sf.Session(data, budget=sf.PureDP(1), ledger=url) as asking:
        asking.answer(sf.Count(column="x", budget=sf.PureDP(0.1)), where={"t": "a or b"}, request="r")
        with pytest.raises(sf.RequestConflict):
            asking.answer(sf.Count(column="x", budget=sf.PureDP(0.1)), where={"t": ("a", "b")}, request="r")


def test_a_parameter_that_was_added_later_makes_no_other_question():
    facts = question_facts(dataset(), Question(query=strong()))
    assert set(facts["parameters"]) == {"column", "budget"}


def test_the_public_facts_of_a_data_set_are_fixed():
    data = dataset(unit="person", rows_per_unit=2)
    for name, value in (("rows_per_unit", 1), ("unit", "row"), ("neighbours", "substitution"), ("name", "x")):
        with pytest.raises(AttributeError, match=f"{name} of a data set is fixed"):
            setattr(data, name, value)
    with pytest.raises(TypeError):
        data.schema["salary"] = sf.Field(bounds=(0, 1))


def test_a_closed_session_returns_no_stored_answer(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with sf.Session(dataset(), budget=sf.PureDP(100), ledger=url) as asking:
        asking.answer(strong(), request="r")
    with pytest.raises(sf.SfumatoError, match="closed"):
        asking.answer(strong(), request="r")


def test_bits_that_claim_to_be_private_are_known_by_their_type(tmp_path):
    bits = SeededBits(1)
    bits.private = True
    with pytest.raises(sf.InvalidParameter, match="seeded"):
        sf.Session(dataset(), budget=sf.PureDP(1), ledger=f"sqlite:///{tmp_path / 'ledger.db'}", bits=bits)
    assert not sf.Session(dataset(), budget=sf.PureDP(100), bits=bits).answer(strong()).private


def test_the_relation_is_told_for_parts_groups_and_units():
    def told(asking, **options):
        query = sf.Count(column="salary", budget=sf.PureDP(1))
        answer = asking.answer_by(query, **options) if "by" in options else asking.answer(query, **options)
        return str(answer).partition("cost: ")[2].partition("\n")[0].partition(", ")[2]

    people = {"unit": "person", "rows_per_unit": 2}
    assert (
        told(session("substitution"))
        == "substitution: one row is replaced by any other; the number of rows is public"
    )
    words = "substitution: one row is replaced by any others; the number of rows is private"
    assert (
        told(session("substitution"), where={"team": "red"})
        == told(session("substitution"), by=["team"])
        == words
    )
    words = (
        "substitution: up to 2 rows of one person are replaced by any others; the number of rows is private"
    )
    assert told(session("substitution", **people)) == words
    words = "add-remove: up to 2 rows of one person are added or removed; the number of rows is private"
    assert told(session(**people)) == words


def test_a_ledger_for_people_refuses_a_session_about_rows(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    people = dataset(unit="person", rows_per_unit=2)
    with sf.Session(people, budget=sf.PureDP(1), ledger=url) as asking:
        asking.answer(sf.Count(column="salary", budget=sf.PureDP(0.1)))
    with pytest.raises(
        sf.InvalidParameter, match="unit must be that of the ledger, 'person', got unit='row'"
    ):
        sf.Session(dataset(), budget=sf.PureDP(1), ledger=url)
    fewer = dataset(unit="person", rows_per_unit=1)
    with sf.Session(fewer, budget=sf.PureDP(1), ledger=url) as asking:
        asking.answer(sf.Count(column="salary", budget=sf.PureDP(0.1)))
    with pytest.raises(sf.InvalidParameter, match="unit must be that of the ledger"):
        sf.Session(people, budget=sf.PureDP(1), ledger=sf.MemoryLedger(sf.PureDP(1), neighbours="add-remove"))


def test_the_same_frame_under_another_name_is_told(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with sf.Session(dataset(name="one"), budget=sf.PureDP(1), ledger=url) as asking:
        asking.answer(sf.Count(column="salary", budget=sf.PureDP(0.1)))
    with (
        sf.Session(dataset(name="two"), budget=sf.PureDP(1), ledger=url) as asking,
        pytest.warns(UserWarning, match="charged before under the name 'one'"),
    ):
        asking.answer(sf.Count(column="salary", budget=sf.PureDP(0.1)))
