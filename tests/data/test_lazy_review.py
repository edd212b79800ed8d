"""Tables in engines against the same tables in memory: names, filters, categories, nulls, changing tables."""

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import sfumato as sf
from sfumato.checks import MAX_NAME
from sfumato.data import found_keys, polars_batches
from sfumato.data.key_sets import KeySet, Told
from sfumato.data.lazy_table import LazyTable
from sfumato.data.passes import Passes
from sfumato.data.polars_batches import by_polars
from sfumato.errors import EngineFault
from sfumato.laws import SeededBits

BUDGET = sf.PureDP(1)
DELTA = sf.ApproxDP(100, 0.5)


def duckdb_table(frame):
    import duckdb

    return duckdb.connect().from_arrow(frame.to_arrow())


LAZY = {"polars": pl.DataFrame.lazy, "duckdb": duckdb_table}


def dataset(frame, schema=None, **options):
    options = {"unit": "row", "neighbours": "add-remove", **options}
    return sf.Dataset(frame, schema=schema or {}, **options)


def session(data):
    return sf.Session(data, budget=sf.ApproxDP(10_000, 0.9), bits=SeededBits(3))


def outcomes(release):
    return {key: each.outcome for key, each in release.releases.items()}


@pytest.mark.parametrize("engine", LAZY)
def test_the_largest_whole_number_of_reals_is_a_category_like_any_other(engine):
    frame = pl.DataFrame({"x": [5.0, 5.0, 2.0**53, -(2.0**53), 0.5, None, float("nan")]})
    given = (5, 2**53, -(2**53))
    found = []
    for table in (frame, LAZY[engine](frame)):
        with session(dataset(table, {"x": sf.Field(categories=given)})) as asked:
            histogram = sf.Histogram(column="x", categories=given, budget=sf.PureDP(1000), other=True)
            groups = asked.answer_by(sf.Count(column="x", budget=BUDGET), ["x"], groups=sf.Groups(other=True))
            count = asked.answer(sf.Count(column="x", equals=2**53, budget=BUDGET))
            found.append((asked.answer(histogram).outcome, outcomes(groups), count.outcome))
    assert found[0] == found[1]
    assert found[1][0] == (2, 1, 1, 1)


@pytest.mark.parametrize("engine", LAZY)
@pytest.mark.parametrize("options", [{}, {"unit": "id", "rows_per_unit": 1, "groups_per_unit": 1}])
@pytest.mark.parametrize("other", [False, True])
def test_a_column_without_a_type_has_no_private_keys_and_is_no_fault(engine, options, other):
    frame = pl.DataFrame({"x": pl.Series([None] * 4, dtype=pl.Null), "id": [1, 2, 3, 4], "y": [1.0, 2, 3, 4]})
    groups = sf.Groups(keys="private", other=other)
    found = []
    for table in (frame, LAZY[engine](frame)):
        with session(dataset(table, **options)) as asked:
            made = asked.answer_by(sf.Count(column="y", budget=DELTA), ["x"], groups=groups)
            found.append(outcomes(made))
    assert found[0] == found[1]
    assert list(found[1]) == [(None,)] * other


def test_a_table_that_changes_between_two_passes_is_an_error_in_words():
    reads = []

    def moved(values):
        reads.append(len(values))
        return values + (0.0 if len(reads) == 1 else 40.0)

    rows = pl.LazyFrame({"y": np.linspace(0, 50, 2_000)})
    frame = rows.with_columns(pl.col("y").map_batches(moved, return_dtype=pl.Float64, is_elementwise=True))
    query = sf.Quantiles(column="y", bounds=(0, 100), probs=(0.1, 0.9), budget=sf.PureDP(100), n_hint=2_000)
    with (
        session(dataset(frame)) as asked,
        pytest.raises(EngineFault, match="was not the same when it was read again"),
    ):
        asked.answer(query)


@pytest.mark.parametrize("engine", LAZY)
def test_the_filters_of_questions_before_are_not_computed_again(engine, monkeypatch):
    table = LAZY[engine](pl.DataFrame({"x": np.arange(100.0)}))
    data = dataset(table, {"x": sf.Field(bounds=(0, 100))}, derived={"twice": sf.col("x") * 2})
    computed = []
    read = LazyTable.read

    def counted(self, frame, names):
        found = read(self, frame, names)
        computed.append(len(set(found.collect_schema().names()) - self.base))
        return found

    monkeypatch.setattr(LazyTable, "read", counted)
    with session(data) as asked:
        for place in range(5):
            asked.answer(sf.Count(column="x", budget=BUDGET), where=sf.col("x") > place)
        asked.answer(sf.Count(column="x", budget=BUDGET), where=sf.col("twice") > 7)
        asked.answer(sf.Sum(column="x", budget=BUDGET))
    assert computed == [1, 1, 1, 1, 1, 2, 0]


@pytest.mark.parametrize("engine", LAZY)
def test_derived_groups_of_people_are_those_of_memory(engine):
    people = np.repeat(np.arange(40), 5)
    frame = pl.DataFrame({"id": people, "y": np.arange(200.0) % 37})
    derived = {"low": sf.col("y") < 10, "odd": sf.col("low") | (sf.col("y") > 30)}
    options = {"unit": "id", "rows_per_unit": 5, "groups_per_unit": 5, "derived": derived}
    schema = {"y": sf.Field(bounds=(0, 40)), "odd": sf.Field(categories=(True, False))}
    found = []
    for table in (frame, LAZY[engine](frame)):
        with session(dataset(table, schema, **options)) as asked:
            query, where = sf.Sum(column="y", budget=BUDGET), sf.col("low") | (sf.col("id") > 3)
            public = asked.answer_by(query, ["odd"], where=where)
            private = asked.answer_by(
                sf.Count(column="y", budget=DELTA), ["odd"], groups=sf.Groups(keys="private"), where=where
            )
            found.append((outcomes(public), outcomes(private)))
    assert found[0] == found[1]
    assert len(found[0][1]) == 2


@pytest.mark.parametrize("engine", LAZY)
@pytest.mark.parametrize("options", [{}, {"unit": "id", "rows_per_unit": 2, "groups_per_unit": 2}])
def test_to_choose_the_largest_of_public_groups_no_other_key_leaves_the_engine(engine, options, monkeypatch):
    names = [f"name {i}" for i in range(97)] + ["a", "b", None] * 40
    frame = pl.DataFrame({"name": names, "id": np.arange(len(names)), "y": np.ones(len(names))})
    crossed, found = [], []
    read = found_keys.read_keys

    def seen(table, dtypes):
        crossed.append(len(table))
        return read(table, dtypes)

    monkeypatch.setattr(found_keys, "read_keys", seen)
    schema = {"name": sf.Field(categories=("a", "b", "absent"))}
    for table in (frame, LAZY[engine](frame)):
        with session(dataset(table, schema, **options)) as asked:
            query = sf.Count(column="y", budget=sf.PureDP(10))
            found.append(outcomes(asked.answer_by(query, ["name"], groups=sf.Groups(top=2))))
    assert crossed == [2]
    assert found[0] == found[1]
    assert set(found[1]) == {("a",), ("b",)}


@pytest.mark.parametrize("nulls", ["lower", "upper", "drop"])
@pytest.mark.parametrize("statistic", [sf.Count, sf.Proportion])
def test_a_condition_with_any_rule_for_nulls_takes_one_pass(statistic, nulls, monkeypatch):
    rounds = []
    answer = Passes._pass

    def counted(self):
        rounds.append(list(self._wanted))
        answer(self)

    monkeypatch.setattr(Passes, "_pass", counted)
    query = statistic(column="x", between=(0, 5), nulls=nulls, budget=BUDGET)
    with session(dataset(pl.LazyFrame({"x": [1.0, None, 9.0]}))) as asked:
        asked.answer(query)
    assert len(rounds) == 1


def test_sums_beside_a_refinement_do_not_overflow(monkeypatch):
    monkeypatch.setattr(polars_batches, "BATCH", 2)
    frame = nw.from_native(pl.LazyFrame({"cell": [1, 1, 2, 3, 3, 3, 2, 1], "points": [2**61] * 8}))
    told = {"cell": Told(("cell",), polars_batches.MOST_CELLS + 1)}
    cells, sums = by_polars(frame, [KeySet(("cell",)), KeySet((), ("points",))], told)
    assert sorted(cells.rows()) == [(1, 3), (2, 2), (3, 3)]
    assert int(sums["points"].to_list()[0]) == 2**64


@pytest.mark.parametrize("collated", ["the connection", "the table"])
def test_text_of_duckdb_is_compared_letter_by_letter_whatever_its_collation(collated):
    # Two people of one name in other letters would be one, and to remove one would let in rows of the other.
    import duckdb

    teams, ids = (
        ["a"] * 40 + ["A"] * 30 + ["b"] * 20,
        [f"{('ann', 'ANN')[i % 2]}{i // 2 % 9}" for i in range(90)],
    )
    frame = pl.DataFrame({"team": teams, "id": ids, "y": np.arange(90.0)})
    database = duckdb.connect()
    database.register("given", frame.to_arrow())
    if collated == "the connection":
        database.execute("SET default_collation = 'NOCASE'")
        database.execute("CREATE TABLE people AS SELECT * FROM given")
    else:
        text = "VARCHAR COLLATE NOCASE"
        database.execute(f"CREATE TABLE people (team {text}, id {text}, y DOUBLE)")
        database.execute("INSERT INTO people SELECT * FROM given")
    query, schema = (
        sf.Count(column="y", budget=sf.PureDP(1000)),
        {"team": sf.Field(categories=("a", "A", "b"))},
    )
    private = sf.Count(column="y", budget=sf.ApproxDP(1000, 0.9))
    found = []
    for table in (frame, database.table("people")):
        with session(dataset(table, schema)) as asked:
            told = [outcomes(asked.answer_by(query, ["team"]))]
            told += [
                asked.answer(query, where=each).outcome for each in ({"team": "a"}, sf.col("team") == "a")
            ]
            told += [asked.answer(sf.Histogram(column="team", budget=sf.PureDP(1000))).outcome]
            told += [outcomes(asked.answer_by(private, ["team"], groups=sf.Groups(keys="private")))]
        with session(dataset(table, schema, unit="id", rows_per_unit=2)) as asked:
            told += [asked.answer(query).outcome]
        found.append(told)
    assert found[0] == found[1]
    assert found[1][-1] == (36,)


@pytest.mark.parametrize("engine", ["memory", *LAZY])
def test_a_text_that_is_no_key_takes_the_place_of_no_group(engine):
    people = 50
    frame = pl.DataFrame(
        {"id": [*range(people)] * 2, "name": ["x" * (MAX_NAME + 1)] * people + ["a"] * people}
    )
    table = LAZY[engine](frame) if engine in LAZY else frame
    data = dataset(table, unit="id", rows_per_unit=2, groups_per_unit=1)
    with session(data) as asked:
        query = sf.Count(column="id", budget=sf.ApproxDP(1_000, 0.1))
        found = asked.answer_by(query, ["name"], groups=sf.Groups(keys="private"))
    assert {key: part.value for key, part in found.releases.items()} == {("a",): people}
