"""Groups that are found first, through the session that answers for them: keys, costs, records, engines."""

import csv
import itertools
import json
import runpy
import shutil
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.engines import EAGER, LIGHT
from tests.report.publications import publication

import sfumato as sf
from sfumato import plan as plans
from sfumato.asked import ask, digest_of
from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported, SchemaMismatch
from sfumato.grouped import OTHER, GroupedRelease, key_words
from sfumato.groups import KeySearch
from sfumato.laws import SeededBits
from sfumato.ledger import MemoryLedger
from sfumato.mechanisms import PartitionSelection
from sfumato.outcome import read_outcome, write_outcome
from sfumato.privacy import Amount
from sfumato.publication import Publication
from sfumato.publishing import publish
from sfumato.question import Question

PRIVATE = sf.Groups(keys="private")
LARGE = sf.ApproxDP(4, 0.2)
SMALL = sf.ApproxDP(1, 1e-6)
TEAMS = ["red"] * 400 + ["blue"] * 300 + ["green"] * 200 + ["lone"] + [None] * 30
HOSTILE = ["<script>alert(1)</script>", "a\x1b[31mb\n", "\u202eabc", "=1+1", OTHER, "x" * 1000, ""]


def dataset(teams=None, relation="add-remove", **options):
    keys = TEAMS if teams is None else teams
    frame = {"team": np.array([*keys, None], dtype=object)[:-1], "pay": np.arange(len(keys)) % 100.0}
    schema = {"pay": sf.Field(bounds=(0, 100))} | options.pop("schema", {})
    frame |= options.pop("columns", {})
    options = {"unit": "row", **options}
    return sf.Dataset(frame, neighbours=relation, schema=schema, **options)


def count(budget=SMALL, **options):
    return sf.Count(column="pay", budget=budget, **options)


def answered(data, query, groups=PRIVATE, by=("team",), seed=1, **options):
    budget = sf.ApproxDP(1000, 0.9) if isinstance(query.budget, sf.ApproxDP) else query.budget
    with sf.Session(data, budget=budget, bits=SeededBits(seed)) as session:
        made = session.answer_by(query, by, groups=groups, **options)
        assert session.spent == Amount() + amount(made.cost)
        return made


def amount(cost):
    return cost if isinstance(cost, Amount) else Amount.of(cost)


# Which keys are answered.


def test_the_kept_keys_have_the_law_of_the_selection_for_all_small_tables():
    # The same bits keep the same keys, so that the law is the same, for each of the tables.
    kept_some = 0
    for rows in itertools.chain(*(itertools.product("abc", repeat=n) for n in range(1, 5))):
        keys = sorted(set(rows))
        counts = np.array([rows.count(key) for key in keys])
        selection = PartitionSelection(epsilon=1, delta=Fraction(1, 10))
        for seed in range(3):
            made = answered(dataset(rows), count(LARGE), seed=seed)
            flags = selection.kept(counts, SeededBits(seed))
            assert made.keys == tuple((key,) for key, kept in zip(keys, flags, strict=True) if kept)
            kept_some += len(made)
    assert kept_some > 100


@pytest.mark.parametrize(
    ("relation", "options", "moved"),
    [
        ("add-remove", {}, 1),
        ("substitution", {}, 2),
        ("add-remove", {"unit": "id", "rows_per_unit": 3}, 3),
        ("substitution", {"unit": "id", "rows_per_unit": 3}, 6),
        ("add-remove", {"unit": "id", "rows_per_unit": 3, "groups_per_unit": 2}, 2),
        ("substitution", {"unit": "id", "rows_per_unit": 3, "groups_per_unit": 5}, 6),
    ],
)
def test_the_selection_is_made_for_all_keys_that_a_person_can_move(relation, options, moved):
    data = dataset(relation=relation, columns={"id": np.arange(len(TEAMS))}, **options)
    asked = ask(data, Question(query=count(LARGE), by=["team"], groups=PRIVATE))
    assert asked.search.selection.groups == moved
    assert asked.search.selection.singleton <= asked.search.selection.delta / moved
    top = ask(data, Question(query=count(LARGE), by=["team"], groups=sf.Groups(keys="private", top=1)))
    assert top.search._largest.changed_rows == moved


def test_a_group_of_one_person_appears_with_at_most_the_delta():
    data, draws = dataset(["lone"]), 3000
    asked = ask(data, Question(query=count(LARGE, noise="gaussian"), by=["team"], groups=PRIVATE))
    delta = asked.search.selection.delta
    # The table of chances is rounded down, by less than 2^-64 of it.
    assert delta * (1 - Fraction(1, 2**64)) <= asked.search.selection.singleton <= delta == Fraction(1, 10)
    bits = SeededBits(5)
    seen = sum(len(asked.search.found([("lone",)], np.array([1]), bits)) for _ in range(draws))
    # Five standard deviations: 0.0055 each.
    assert abs(seen / draws - 0.1) < 0.0275


def test_people_are_counted_and_not_rows():
    # One person with all rows of a group is one person.
    ids = {"id": np.array([7] * 40 + list(range(100, 140)))}
    data = dataset(["one"] * 40 + ["many"] * 40, unit="id", rows_per_unit=40, groups_per_unit=1, columns=ids)
    made = answered(data, count(sf.ApproxDP(400, 1e-6)), sf.Groups(keys="private", share=0.5))
    assert made.keys == (("many",),)


@pytest.mark.parametrize("groups", [PRIVATE, sf.Groups(keys="private", top=3)])
def test_keys_come_in_an_order_that_the_rows_do_not_decide(groups):
    rows = ["m"] * 60 + ["z"] * 300 + ["a"] * 80 + ["k"] * 200
    orders = [rows, rows[::-1], rows[100:] + rows[:100], sorted(rows)]
    query = count(sf.ApproxDP(50, 1e-6))
    found = {answered(dataset(each), query, groups).keys for each in orders}
    assert len(found) == 1
    assert list(*found) == sorted(*found)
    assert len(*found) == (groups.top or 4)
    # A mutant that lists keys as they first appear tells the orders apart.
    assert len({tuple(dict.fromkeys(each)) for each in orders}) == len(orders)


def test_the_largest_groups_are_the_largest_where_the_budget_is_large():
    made = answered(dataset(), count(sf.ApproxDP(100, 1e-6)), sf.Groups(keys="private", top=2))
    assert made.keys == (("blue",), ("red",))


def test_fewer_groups_than_asked_for_are_all_of_them():
    made = answered(dataset(), count(sf.ApproxDP(100, 1e-6)), sf.Groups(keys="private", top=50))
    assert made.keys == (("blue",), ("green",), ("red",))


def test_the_largest_of_public_groups_may_be_empty_ones():
    schema = {"team": sf.Field(categories=("blue", "none", "red"))}
    for budget in (sf.PureDP(100), sf.ZCDP(100), sf.ApproxDP(100, 1e-6)):
        data = dataset(schema=schema)
        made = answered(data, count(budget), sf.Groups(top=2))
        assert made.keys == (("blue",), ("red",))
        assert answered(data, count(budget), sf.Groups(top=9)).keys == (("blue",), ("none",), ("red",))


def test_more_keys_than_there_can_be_categories_can_be_chosen_from():
    search = ask(
        dataset(), Question(query=count(LARGE), by=["team"], groups=sf.Groups(keys="private", top=2))
    ).search
    many = 2**20 + 10
    counts = np.full(many, 1)
    counts[[5, many - 1]] = 10**6
    all_kept = replace(search, selection=None)
    assert all_kept.found(range(many), counts, SeededBits(1)) == (5, many - 1)


# The other rows.


def test_all_other_rows_are_one_more_group_with_the_rows_of_no_key():
    made = answered(dataset(), count(sf.ApproxDP(200, 1e-6)), sf.Groups(keys="private", other=True, top=2))
    assert made.keys == (("blue",), ("red",), (None,))
    assert made[None].value == made[(None,)].value == 200 + 1 + 30
    assert made[None].among == (("team", OTHER),)


def test_there_is_a_group_of_other_rows_where_no_row_is_left_or_no_key_was_found():
    made = answered(dataset(["a"] * 50), count(sf.ApproxDP(200, 1e-6)), sf.Groups(keys="private", other=True))
    assert [made[key].value for key in made] == [50, 0]
    made = answered(
        dataset(["a"] * 50), count(sf.ApproxDP(0.01, 1e-6)), sf.Groups(keys="private", other=True)
    )
    assert made.keys == ((None,),)


def test_other_rows_of_public_groups_cost_nothing_more():
    schema = {"team": sf.Field(categories=("blue", "red"))}
    made = answered(dataset(schema=schema), count(sf.PureDP(100)), sf.Groups(other=True))
    assert [made[key].value for key in made] == [300, 400, 231]
    assert (made.cost, made.found) == (sf.PureDP(100), None)


def test_every_row_is_in_one_group():
    rng = np.random.default_rng(1)
    teams = rng.choice([*"abcdefgh", None], 4000, p=[0.3, 0.25, 0.2, 0.1, 0.05, 0.04, 0.03, 0.01, 0.02])
    for groups in (sf.Groups(keys="private", other=True), sf.Groups(keys="private", other=True, top=3)):
        made = answered(dataset(teams.tolist()), count(sf.ApproxDP(400, 1e-6)), groups)
        assert sum(made[key].value for key in made) == 4000


@pytest.mark.parametrize("statistic", [sf.Mean, sf.Sum, sf.Variance, sf.Histogram, sf.Quantiles])
def test_one_event_stands_for_all_groups(statistic):
    options = {"probs": [0.5], "step": 1} if statistic is sf.Quantiles else {}
    options |= {"bins": 4} if statistic is sf.Histogram else {}
    for relation in ("add-remove", "substitution"):
        query = statistic(column="pay", budget=SMALL, **options)
        asked = ask(dataset(relation=relation), Question(query=query, by=["team"], groups=PRIVATE))
        queries = asked.queries([("red",), ("blue",)])
        assert {each.event for each in queries.values()} == {asked.any.event}
        public = dataset(relation=relation, schema={"team": sf.Field(categories=("red", "blue"))})
        rest = replace(query, budget=sf.ApproxDP(Fraction(3, 4), Fraction(1, 2_000_000)))
        # What is left of the budget is spent as it would be on public groups.
        assert asked.any.event == ask(public, Question(query=rest, by=["team"])).any.event


# What it costs.


def test_the_budget_is_divided_between_keys_and_numbers():
    half = sf.Groups(keys="private", top=2, share=0.5)
    # A delta that the statistic has no use for names keys as well.
    for noise, delta in (("gaussian", 0.1), ("laplace", 0.2)):
        plain, top = (
            ask(dataset(), Question(query=count(LARGE, noise=noise), by=["team"], groups=groups))
            for groups in (PRIVATE, half)
        )
        assert plain.search.selection.cost == sf.ApproxDP(1, delta)
        assert plain.any.budget == sf.ApproxDP(3, 0.1)
        assert top.search.selection.cost == sf.ApproxDP(1, delta)
        assert top.search.cost == Amount(epsilon=2, delta=delta)
        assert top.any.budget == sf.ApproxDP(2, 0.1)
        assert plain.charged.cost == top.charged.cost == LARGE


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("groups", [PRIVATE, sf.Groups(keys="private", top=2, other=True)])
def test_ledgers_are_charged_what_the_release_says(tmp_path, noise, groups):
    data, query = dataset(), count(SMALL, noise=noise)
    kept = MemoryLedger(sf.ApproxDP(3, 1e-5), neighbours="add-remove", dataset="data", unit="row")
    with sf.Session(data, budget=sf.ApproxDP(2, 1e-5), ledger=kept) as session:
        made = session.answer_by(query, ["team"], groups=groups)
        assert kept.spent == session.spent == amount(made.cost)
    assert made.cost == SMALL
    address = f"sqlite:///{tmp_path / 'ledger.db'}"
    with sf.Session(data, budget=sf.ApproxDP(2, 1e-5), ledger=address) as session:
        again = session.answer_by(query, ["team"], groups=groups)
        assert session._ledger.spent == amount(again.cost) == amount(made.cost)


def test_a_budget_that_does_not_fit_is_refused_before_the_data_are_read():
    data = dataset()
    with sf.Session(data, budget=sf.ApproxDP(1, 4e-7)) as session:
        with pytest.raises(BudgetExceeded, match="delta 1e-06 does not fit"):
            session.answer_by(count(SMALL), ["team"], groups=PRIVATE)
        assert session.spent == Amount()


@pytest.mark.parametrize(
    ("budget", "error"), [(sf.PureDP(1), InvalidParameter), (sf.ZCDP(0.5), NotSupported)]
)
def test_private_keys_take_a_delta(budget, error):
    with pytest.raises(error, match=r"budget must be ApproxDP\(epsilon, delta\)"):
        answered(dataset(), count(budget))
    for cap in (sf.PureDP(5), sf.ZCDP(5)):
        with sf.Session(dataset(), budget=cap) as session:
            with pytest.raises(NotSupported):
                session.answer_by(count(SMALL), ["team"], groups=PRIVATE)
            assert session.spent == Amount()


def test_a_batch_is_never_priced_below_the_deltas_of_its_selections():
    questions = [Question(query=count(SMALL, noise="laplace"), by=["team"], groups=PRIVATE)] * 3
    with sf.Session(dataset(), budget=sf.ApproxDP(5, 1e-5), bits=SeededBits(1)) as session:
        for within in (None, sf.ApproxDP(3, 1e-7), sf.ApproxDP(3, 3e-6), sf.ApproxDP(3, 1e-5)):
            cost = session.price(questions, within=within).cost
            assert cost.delta >= Fraction(3, 10**6)
            assert cost.epsilon <= 3
        session.answer_all(questions, within=sf.ApproxDP(3, 1e-5))
        assert session.spent.delta >= Fraction(3, 10**6)


def test_the_preview_tells_what_is_charged():
    with sf.Session(dataset(), budget=sf.ApproxDP(5, 1e-5), bits=SeededBits(1)) as session:
        for groups in (PRIVATE, sf.Groups(keys="private", top=1, other=True)):
            told = session.preview(count(SMALL), by=["team"], groups=groups).cost
            before = session.spent
            session.answer_by(count(SMALL), ["team"], groups=groups)
            assert session.spent - before == amount(told)


# What is refused.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keys": "secret"}, "keys"),
        ({"other": 1}, "other"),
        ({"top": 0}, "top"),
        ({"top": 10_001}, "top"),
        ({"share": 0}, "share"),
        ({"share": 1}, "share"),
        ({"keys": "private", "least": 0}, "least"),
        ({"least": 2}, "least goes with keys='private'"),
    ],
)
def test_parameters_out_of_range_are_refused(options, words):
    with pytest.raises(InvalidParameter, match=words):
        sf.Groups(**options)


def test_groups_need_columns_of_a_kind_that_makes_keys():
    days = {"day": np.array(["2020-01-01"] * len(TEAMS), dtype="datetime64[D]")}
    with sf.Session(dataset(columns=days), budget=sf.ApproxDP(5, 1e-5)) as session:
        with pytest.raises(SchemaMismatch, match="day"):
            session.answer_by(count(SMALL), ["day"], groups=PRIVATE)
        with pytest.raises(InvalidParameter, match="declared categories"):
            session.answer_by(count(SMALL), ["team"], groups=sf.Groups(top=1))
        with pytest.raises(InvalidParameter, match="by must name at least one column"):
            Question(query=count(SMALL), groups=PRIVATE)
        with pytest.raises(InvalidParameter, match="groups must be Groups"):
            Question(query=count(SMALL), by=["team"], groups={"key": "private"})
        with pytest.raises(NotSupported, match="2\\^-128"):
            session.answer_by(count(sf.ApproxDP(1, Fraction(1, 2**130))), ["team"], groups=PRIVATE)
        assert session.spent == Amount()


# All engines.

MIXED = {
    "team": ("text", ["red"] * 90 + ["blue"] * 70 + [None] * 20 + ["Ärger"] * 60 + ["lone"]),
    "level": ("integer", [i % 3 if i % 11 else None for i in range(241)]),
    "half": ("real", [float(i % 2) if i % 7 else 0.5 for i in range(241)]),
    "senior": ("boolean", [i % 4 == 0 if i % 13 else None for i in range(241)]),
    "pay": ("real", [float(i % 100) for i in range(241)]),
}


@pytest.mark.parametrize("by", [["team"], ["level", "senior"], ["half"], ["team", "level", "half"]])
@pytest.mark.parametrize("groups", [PRIVATE, sf.Groups(keys="private", top=2, other=True, least=3)])
def test_all_engines_find_and_answer_the_same(by, groups):
    found = {}
    for name, build in {**EAGER, **LIGHT}.items():
        data = sf.Dataset(
            build(MIXED), unit="row", neighbours="add-remove", schema={"pay": sf.Field(bounds=(0, 100))}
        )
        made = answered(data, sf.Mean(column="pay", budget=sf.ApproxDP(40, 0.2)), groups, by=by)
        found[name] = [(key, made[key].outcome) for key in made]
    first = found["numpy"]
    assert len(first) > 1
    assert found == dict.fromkeys(found, first)


@pytest.mark.parametrize("groups", [None, sf.Groups(other=True), PRIVATE])
def test_a_column_that_makes_the_groups_can_be_counted_in_them(groups):
    found = {}
    for name, build in {**EAGER, **LIGHT}.items():
        schema = {"level": sf.Field(categories=(0, 1, 2)), "half": sf.Field(categories=(0, 1))}
        data = sf.Dataset(build(MIXED), unit="row", neighbours="add-remove", schema=schema)
        query = sf.Histogram(column="level", budget=sf.ApproxDP(100, 0.2))
        made = answered(data, query, groups, by=["half", "level"])
        found[name] = [(key, made[key].outcome) for key in made]
    assert all(sum(outcome) == outcome[key[1]] > 0 for key, outcome in found["numpy"] if key[1] is not None)
    assert found == dict.fromkeys(found, found["numpy"])


@pytest.mark.parametrize("build", [*EAGER.values(), *LIGHT.values()], ids=[*EAGER, *LIGHT])
def test_no_key_is_found_in_any_engine_of_too_few_people(build):
    data = sf.Dataset(build(MIXED), unit="row", neighbours="add-remove")
    query = sf.Count(column="pay", budget=sf.ApproxDP(0.1, 1e-9))
    assert len(answered(data, query)) == 0
    made = answered(data, query, sf.Groups(keys="private", other=True))
    assert made.keys == ((None,),)
    empty = {name: (kind, []) for name, (kind, _) in MIXED.items()}
    data = sf.Dataset(build(empty), unit="row", neighbours="add-remove")
    assert len(answered(data, query)) == 0


# Records and replies.


def test_a_stored_reply_is_read_back_with_its_keys():
    data = dataset()
    for groups in (PRIVATE, sf.Groups(keys="private", top=2, other=True)):
        asked = [ask(data, Question(query=count(SMALL), by=["team"], groups=groups))]
        made = answered(data, count(SMALL), groups)
        (read,) = read_outcome(write_outcome({}, asked, [made])).answers
        assert read.keys == made.keys
        assert [read[key].outcome for key in read] == [made[key].outcome for key in made]
        assert (read.cost, read.event, read.found.words) == (made.cost, made.event, made.found.words)


def test_the_same_request_has_the_same_answer_and_is_paid_for_once(tmp_path):
    address, ones = f"sqlite:///{tmp_path / 'ledger.db'}", [sf.ApproxDP(0.01, 1e-6), sf.ApproxDP(4, 1e-6)]
    for place, budget in enumerate(ones):
        seen = []
        for _ in range(2):
            with sf.Session(dataset(), budget=sf.ApproxDP(9, 1e-4), ledger=address) as session:
                made = session.answer_by(count(budget), ["team"], groups=PRIVATE, request=f"r{place}")
                seen.append(
                    (made.keys, [made[key].outcome for key in made], made.cost, session._ledger.spent)
                )
                assert made.private
        assert seen[0] == seen[1]
        # With the smaller budget no group is named; the reply is one all the same.
        assert bool(seen[0][0]) == bool(place)


def test_questions_that_differ_in_their_groups_have_other_digests():
    every = [
        None,
        sf.Groups(other=True),
        sf.Groups(top=1),
        PRIVATE,
        sf.Groups(keys="private", other=True),
        sf.Groups(keys="private", least=2),
        sf.Groups(keys="private", most=2),
        sf.Groups(keys="private", share=0.5),
        sf.Groups(keys="private", top=1),
        sf.Groups(keys="private", top=2),
    ]
    data = dataset(schema={"team": sf.Field(categories=("red", "blue"))})
    digests = [
        digest_of(data, [Question(query=count(SMALL), by=["team"], groups=groups)]) for groups in every
    ]
    assert len(set(digests)) == len(every)
    # Nothing said about groups is the same question as what is usual, said.
    usual = digest_of(data, [Question(query=count(SMALL), by=["team"], groups=sf.Groups())])
    assert usual == digests[0]
    assert sf.Groups.read({"keys": "private", "top": 2}) == every[-1]


def test_a_release_without_groups_says_so_everywhere():
    data, query = dataset(["a", "b"]), count(sf.ApproxDP(0.5, 1e-9))
    with sf.Session(data, budget=sf.ApproxDP(9, 1e-4)) as session:
        made = session.answer_by(query, ["team"], groups=PRIVATE)
    assert (len(made), list(made), made.private) == (0, [], True)
    # The statistic was paid for, though nothing was drawn.
    assert made.cost == sf.ApproxDP(0.5, 1e-9)
    assert "no group is named" in str(made)
    assert "no group is named" in made._repr_html_()
    assert "costs epsilon 0.125, delta 1e-09 of this" in str(made)
    assert json.loads(made.to_json())["releases"] == []
    seeded = answered(data, query)
    assert not seeded.private
    assert "NOT PRIVATE" in str(seeded)
    with pytest.raises(InvalidParameter):
        GroupedRelease(("team",), {})


def published(groups, teams=None, budget=SMALL):
    question = Question(query=count(budget), by=["team"], groups=groups)
    with sf.Session(dataset(teams), budget=sf.ApproxDP(900, 1e-4)) as session:
        (made,) = session.answer_all([question])
    return made, publication([made], [question], budget=budget, price=amount(made.cost))


def test_a_publication_is_read_back_with_what_the_search_cost():
    for groups, teams in ((PRIVATE, None), (PRIVATE, ["a"]), (sf.Groups(keys="private", other=True), None)):
        made, written = published(groups, teams)
        read = Publication.read(written.to_json())
        assert read.results == written.results
        assert read.results[0].amount == amount(made.cost)
        assert len(read.rows_of_numbers()) == len(made)
        assert all(tuple(row) == read.number_columns for row in read.rows_of_numbers())
        record = json.loads(written.to_json())
        assert record["results"][0]["found"] == made.found.words
        record["results"][0]["private"] = False
        with pytest.raises(InvalidParameter):
            Publication.read(json.dumps(record))


def test_keys_of_any_kind_are_shown_on_one_line_and_escaped():
    teams = [key for key in HOSTILE for _ in range(60)] + ["few"] * 3
    made, written = published(sf.Groups(keys="private", other=True), teams, sf.ApproxDP(10, 1e-9))
    assert {key[0] for key in made if key != (None,)} == set(HOSTILE)
    assert all(line.isprintable() for line in str(made).split("\n"))
    assert len(str(made).split("\n")) < len(made) + 8
    assert "<script>" not in made._repr_html_()
    rows = written.rows_of_numbers()
    # A key with the name of the other rows is told apart from these.
    assert [row["team"] for row in rows].count(OTHER) == 1
    assert key_words(OTHER) != OTHER
    assert max(map(len, str(made).split("\n"))) < 250


def test_the_example_with_private_groups_runs(tmp_path):
    folder = Path(__file__).resolve().parents[1] / "examples" / "villages"
    shutil.copy(folder / "plan.toml", tmp_path)
    rows = list(runpy.run_path(str(folder / "make_villages.py"))["rows"]())
    with (tmp_path / "villages.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("person", "village", "pay"), *rows])
    made = publish(
        plans.read(tmp_path / "plan.toml"), ledger=f"sqlite:///{tmp_path / 'ledger.db'}"
    ).publication
    assert made.groups_per_unit == Publication.read(made.to_json()).groups_per_unit == 1
    jobs, pay = made.results
    assert jobs.releases[-1][0] == (None,)
    assert len(jobs.releases) > 10
    assert len(pay.releases) == 3
    assert made.price == jobs.amount + pay.amount == Amount(epsilon=2, delta=1e-6)
    people = Counter(village for _, village in {row[:2] for row in rows})
    # Nobody who is alone in a village, or nearly, is shown.
    assert all(people[key[0]] >= 5 for key, _ in jobs.releases if key != (None,))
    assert sum(count < 5 for count in people.values()) > 100


def test_a_search_that_is_none_is_refused_in_words():
    with pytest.raises(InvalidParameter, match="top must be given"):
        KeySearch(None, None, None, 1, "add-remove", 10)._largest  # noqa: B018
