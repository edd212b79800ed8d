"""One contract for every engine: the same question of the same table has the same answer, bit for bit."""

import traceback
from functools import lru_cache

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.contracts import engines
from tests.contracts.engines import (
    FORMS,
    LINES,
    RELATIONS,
    WHERE,
    answers,
    expected,
    people,
    questions,
)
from tests.contracts.hostile_columns import HOSTILE, WORST, hostile_questions, hostile_schema
from tests.engines import EAGER, ENGINES, HEAVY, LAZY, LIGHT, SPARK, arrow_table, mapping, spark_table

import sfumato as sf
from sfumato.data.counts import Counts, Sums
from sfumato.errors import SfumatoError
from sfumato.grid import Grid, Lattice
from sfumato.laws import SeededBits
from sfumato.quantile_methods import METHODS
from sfumato.statistics import STATISTICS

OTHERS = [name for name in ENGINES if name != "numpy"]
CHEAP = [name for name in EAGER | LIGHT if name != "numpy"]
CANARY_NUMBER, CANARY_TEXT = 987654.321, "CANARY-7f3a91"


@lru_cache
def table_of(engine):
    return ENGINES[engine](people())


@lru_cache
def wanted(form, neighbours):
    return expected(people(), questions(form, neighbours), neighbours)


@lru_cache
def wanted_alone(name, form, neighbours):
    return expected(people(), {name: questions(form, neighbours)[name]}, neighbours)


def test_every_statistic_and_every_quantile_method_has_a_line():
    asked = {type(line.query) for line in LINES.values()}
    assert asked == {*STATISTICS.values(), sf.Quantiles}
    methods = {line.query.method for line in LINES.values() if isinstance(line.query, sf.Quantiles)}
    assert {getattr(method, "name", method) for method in methods} == {*METHODS, "auto"}


def test_the_contract_can_fail():
    # One value that moves to the next cell, one null more: another answer by the same bits.
    table = people()
    kind, rows = table["salary"]
    changed = {**table, "salary": (kind, [1_234.5 if i == 5 else row for i, row in enumerate(rows)])}
    for neighbours in RELATIONS:
        asked = questions("whole", neighbours)
        found = answers(mapping(changed), asked, neighbours)
        same = {name for name in found if found[name] == wanted("whole", neighbours)[name]}
        assert {"mean", "sum", "variance", "histogram of bins"} & same == set()
        assert "histogram of text" in same


# A batch on Spark takes seconds: a few of them always, all of them among the slow tests.
USUAL = {("whole", "substitution"), ("several conditions", "add-remove"), ("by team", "add-remove")}


def cases(engine):
    for form in FORMS:
        for neighbours in RELATIONS:
            slow = engine in HEAVY and (form, neighbours) not in USUAL
            yield pytest.param(engine, form, neighbours, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(
    ("engine", "form", "neighbours"), [case for engine in OTHERS for case in cases(engine)]
)
def test_all_questions_have_the_same_answers(engine, form, neighbours):
    found = answers(table_of(engine), questions(form, neighbours), neighbours)
    for name, outcome in wanted(form, neighbours).items():
        assert found[name] == outcome, name


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("engine", CHEAP)
def test_a_question_has_the_same_answer(engine, name):
    for neighbours in LINES[name].relations:
        for form in ("whole", "several conditions", "by member"):
            asked = questions(form, neighbours)
            if name in asked:
                found = answers(table_of(engine), {name: asked[name]}, neighbours)
                assert found == wanted_alone(name, form, neighbours), (form, neighbours)


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("engine", HEAVY)
def test_a_question_has_the_same_answer_on_spark(engine, name):
    test_a_question_has_the_same_answer(engine, name)


@pytest.mark.parametrize("engine", OTHERS)
def test_one_question_is_answered_by_every_form_of_asking(engine):
    mean = LINES["mean"].query
    found = []
    for source in (table_of(engine), table_of("numpy")):
        session = sf.Session(engines.dataset(source, "add-remove"), budget=sf.PureDP(3), bits=SeededBits(7))
        whole, part = session.answer(mean), session.answer(mean, where=WHERE["a category"])
        groups = session.answer_by(mean, ["team", "member"])
        found.append(([engines.outcome(release) for release in (whole, part, groups)], session.spent))
        assert len(groups) == len(engines.TEAMS) * 2
    assert found[0] == found[1]


@pytest.mark.parametrize("engine", OTHERS)
def test_counts_and_sums_are_the_same(engine):
    data = [engines.dataset(source, "add-remove") for source in (table_of(engine), mapping(people()))]
    grids = [Grid(0, 250_000, cells=97), Grid(-5, 130, cells=4_096)]
    lattice = Lattice.over(0, 250_000, points=2**31, origin=0)
    for where in ({}, WHERE["several conditions"]):
        parts = [one.parts("salary", where=where, bits=SeededBits(1))[0] for one in data]
        for nulls in ("drop", "lower", "upper"):
            for grid in grids:
                left, right = (Counts.of(column, grid, nulls=nulls) for column in parts)
                assert np.array_equal(left.cells, right.cells)
            left, right = (Sums.of(column, lattice, nulls=nulls, squares=False) for column in parts)
            assert left == right


@pytest.mark.parametrize("size", ["some rows", "no rows"])
@pytest.mark.parametrize("engine", CHEAP)
def test_hostile_columns_have_the_same_answers(engine, size):
    for neighbours in RELATIONS:
        found = answers(hostile_table(engine, size), hostile_questions(), neighbours, hostile_schema())
        for name, outcome in wanted_of_hostile(size, neighbours).items():
            assert found[name] == outcome, name


@pytest.mark.slow
@pytest.mark.parametrize("engine", HEAVY)
def test_hostile_columns_have_the_same_answers_on_spark(engine):
    test_hostile_columns_have_the_same_answers(engine, "some rows")


@pytest.mark.parametrize("size", ["some rows", "no rows"])
@pytest.mark.parametrize("engine", HEAVY)
def test_the_worst_of_hostile_columns_have_the_same_answers_on_spark(engine, size):
    everything = hostile_questions()
    asked = {name: everything[name] for name in WORST}
    found = answers(hostile_table(engine, size), asked, "add-remove", hostile_schema())
    wanted_ = answers(hostile_table("numpy", size), asked, "add-remove", hostile_schema())
    for name, outcome in wanted_.items():
        assert found[name] == outcome, name


@lru_cache
def hostile_table(engine, size):
    rows = len if size == "some rows" else lambda _: 0
    return ENGINES[engine]({name: (kind, given[: rows(given)]) for name, (kind, given) in HOSTILE.items()})


@lru_cache
def wanted_of_hostile(size, neighbours):
    return answers(hostile_table("numpy", size), hostile_questions(), neighbours, hostile_schema())


# --- mistakes and faults -------------------------------------------------------------------------


def assert_tells_nothing(error):
    """No planted value in an error, in what it came from, or in what a terminal would print of it."""
    assert isinstance(error, SfumatoError), repr(error)[:300]
    seen = [error]
    for one in seen:
        seen += [
            other for other in (one.__cause__, one.__context__) if other is not None and other not in seen
        ]
    told = [text for one in seen for text in (str(one), repr(one), repr(one.args))]
    told += traceback.format_exception(error)
    for text in told:
        assert CANARY_TEXT not in text
        assert "987654" not in text


def test_the_search_for_planted_values_can_fail():
    try:
        try:
            int(CANARY_TEXT)
        except ValueError:
            raise SfumatoError("the engine failed with ValueError") from None
    except SfumatoError as error:
        kept = error
    with pytest.raises(AssertionError):
        assert_tells_nothing(kept)


def planted():
    rows = 20
    return {
        "amount": ("real", [CANARY_NUMBER] * rows),
        "words": ("text", [CANARY_TEXT] * rows),
        "team": ("text", ["red", "blue"] * (rows // 2)),
        "flag": ("boolean", [True] * rows),
    }


PLANTED_SCHEMA = {"amount": sf.Field(bounds=(0, 10**6)), "team": sf.Field(categories=("red", "blue"))}
MEAN = sf.Mean(budget=sf.PureDP(1), column="amount")
MISTAKES = {
    "a missing column": lambda s: s.answer(sf.Mean(budget=sf.PureDP(1), column="salary", bounds=(0, 1))),
    "a missing column of a condition": lambda s: s.answer(MEAN, where={"town": "red"}),
    "a missing column of groups": lambda s: s.answer_by(MEAN, ["town"]),
    "a mean of text": lambda s: s.answer(sf.Mean(budget=sf.PureDP(1), column="words", bounds=(0, 1))),
    "quantiles of booleans": lambda s: s.answer(
        sf.Quantiles(probs=(0.5,), budget=sf.PureDP(1), column="flag", bounds=(0, 1))
    ),
    "no bounds": lambda s: s.answer(sf.Sum(budget=sf.PureDP(1), column="amount", bounds=None)),
    "no categories": lambda s: s.answer(sf.Histogram(budget=sf.PureDP(1), column="words")),
    "groups without categories": lambda s: s.answer_by(MEAN, ["words"]),
    "an undeclared category": lambda s: s.answer(MEAN, where={"team": "green"}),
    "a condition of another type": lambda s: s.answer(MEAN, where={"team": 3}),
    "a range of text": lambda s: s.answer(MEAN, where={"words": sf.Between(0, 1)}),
    "a sensitive name": lambda s: s.answer(MEAN, where={"amount": CANARY_TEXT[:3]}),
    "too much": lambda s: s.answer(sf.Mean(budget=sf.PureDP(5), column="amount")),
}


@lru_cache
def planted_table(engine):
    return ENGINES[engine](planted())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_mistake_is_an_error_in_words_and_costs_nothing(engine):
    schema = {**PLANTED_SCHEMA, "amount": sf.Field()}
    for mistake, ask in MISTAKES.items():
        facts = schema if mistake == "no bounds" else PLANTED_SCHEMA
        session = sf.Session(engines.dataset(planted_table(engine), "add-remove", facts), budget=sf.PureDP(2))
        with pytest.raises(SfumatoError) as caught:
            ask(session)
        assert_tells_nothing(caught.value)
        assert session.remaining.epsilon == 2, mistake


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_wrong_is_said_alike_by_every_engine(engine):
    for mistake, ask in MISTAKES.items():
        said = []
        for source in (planted_table(engine), planted_table("numpy")):
            facts = {**PLANTED_SCHEMA, "amount": sf.Field()} if mistake == "no bounds" else PLANTED_SCHEMA
            session = sf.Session(engines.dataset(source, "add-remove", facts), budget=sf.PureDP(2))
            with pytest.raises(SfumatoError) as caught:
                ask(session)
            said.append((type(caught.value), str(caught.value)))
        assert said[0] == said[1]


def ask_a_vanished(native):
    """Ask about a table that cannot be read any more; the error may come when it is opened, too."""

    def ask():
        session = sf.Session(engines.dataset(native, "add-remove", PLANTED_SCHEMA), budget=sf.PureDP(9))
        session.answer_all([sf.Question(query=MEAN), sf.Question(query=MEAN, by=["team"])])

    with pytest.raises(SfumatoError) as caught:
        ask()
    assert_tells_nothing(caught.value)


def file_of(folder, name="people.parquet"):
    path = folder / name
    pq.write_table(arrow_table(planted()), path)
    return path


def by_polars(path):
    return pl.scan_parquet(path)


def by_duckdb(path):
    import duckdb

    return duckdb.connect().read_parquet(str(path))


def by_spark(path):
    return SPARK.session().read.parquet(str(path))


def by_connect(path):
    return SPARK.connect().read.parquet(str(path))


READERS = {"polars lazy": by_polars, "duckdb": by_duckdb, "spark": by_spark, "spark connect": by_connect}


@pytest.mark.parametrize("damage", ["deleted", "cut short", "another schema"])
@pytest.mark.parametrize("engine", LAZY)
def test_a_file_that_is_lost_after_it_was_opened_is_an_error_in_words(engine, damage, tmp_path):
    path = file_of(tmp_path)
    data = engines.dataset(READERS[engine](path), "add-remove", PLANTED_SCHEMA)
    if damage == "deleted":
        path.unlink()
    elif damage == "cut short":
        path.write_bytes(path.read_bytes()[:10])
    else:
        other = {**planted(), "amount": ("text", [CANARY_TEXT] * 20)}
        pq.write_table(arrow_table(other), path)
    session = sf.Session(data, budget=sf.PureDP(9))
    with pytest.raises(SfumatoError) as caught:
        session.answer(MEAN)
    assert_tells_nothing(caught.value)
    # The charge came first, and is never refunded.
    assert session.spent.epsilon in (0, 1)


def test_a_dropped_table_of_duckdb_is_an_error_in_words():
    import duckdb

    database = duckdb.connect()
    database.register("given", arrow_table(planted()))
    database.execute("CREATE TABLE people AS SELECT * FROM given")
    data = engines.dataset(database.table("people"), "add-remove", PLANTED_SCHEMA)
    database.execute("DROP TABLE people")
    with pytest.raises(SfumatoError) as caught:
        sf.Session(data, budget=sf.PureDP(9)).answer(MEAN)
    assert_tells_nothing(caught.value)


def test_a_stopped_client_of_spark_is_an_error_in_words():
    client = SPARK.another_client()
    frame = spark_table(planted(), client)
    data = engines.dataset(frame, "add-remove", PLANTED_SCHEMA)
    client.stop()
    with pytest.raises(SfumatoError) as caught:
        sf.Session(data, budget=sf.PureDP(9)).answer(MEAN)
    assert_tells_nothing(caught.value)


def failing(engine):
    """A table with a column that the engine can only fail to compute, with a value in its own message."""
    native = planted_table(engine)
    if engine == "polars lazy":
        return native.with_columns(amount=pl.col("words").cast(pl.Float64, strict=True))
    expression = "CAST(words AS DOUBLE) AS amount"
    if engine == "duckdb":
        return native.project(f"{expression}, words, team, flag")
    return native.selectExpr(expression, "words", "team", "flag")


@pytest.mark.parametrize("engine", LAZY)
def test_what_an_engine_says_about_values_stays_inside(engine):
    ask_a_vanished(failing(engine))
