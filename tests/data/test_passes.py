"""How often a lazy table is read: once for counts and sums (DuckDB: once for each), once for refinements."""

from dataclasses import replace

import polars as pl
import pytest
from tests.contracts.engines import BUDGET, SCHEMA, WHERE, people
from tests.data.counted_tables import COUNTED
from tests.engines import polars_table

import sfumato as sf
from sfumato.laws import SeededBits

TABLE = people()
FINE = {"probs": (0.1, 0.5, 0.9), "budget": BUDGET, "column": "salary", "step": 0.001, "verify": 0}


def ask(query, **options):
    return sf.Question(query=query, **options)


SIMPLE = [
    ask(sf.Count(budget=BUDGET, column="salary", between=(0, 9_000))),
    ask(sf.Sum(budget=BUDGET, column="salary")),
    ask(sf.Mean(budget=BUDGET, column="salary")),
    ask(sf.Mean(budget=BUDGET, column="age")),
    ask(sf.Variance(budget=BUDGET, column="age")),
    ask(sf.Proportion(budget=BUDGET, column="member")),
    ask(sf.Histogram(budget=BUDGET, column="salary", bins=30)),
    ask(sf.Histogram(budget=BUDGET, column="team", other=True)),
    ask(sf.Mean(budget=BUDGET, column="salary"), where=WHERE["several conditions"]),
    ask(sf.Mean(budget=BUDGET, column="salary"), by=["team"]),
    ask(sf.Histogram(budget=BUDGET, column="age", bins=4), by=["member", "team"]),
]
QUANTILES = [
    ask(sf.Quantiles(**FINE, n_hint=300)),
    ask(sf.Quantiles(**FINE, n_hint=300, method="joint"), where=WHERE["a category"]),
    ask(sf.Quantiles(**FINE, n_hint=300), by=["team"]),
    ask(sf.Quantiles(**{**FINE, "probs": (0.5,)}, n_hint=300), by=["member"]),
    ask(sf.Quantiles(probs=(0.25, 0.75), budget=BUDGET, column="age", n_hint=300, verify=0)),
]
# DuckDB reads once more where sums and counts come together: it would add every sum for every set of keys.
MORE = {"duckdb": 1}
COUNTED_FIRST = [ask(sf.Quantiles(**FINE)), ask(sf.Quantiles(**FINE), by=["team"])]


def passes(engine, questions, neighbours="add-remove"):
    """How often the rows are read for these questions, and the answers."""
    table = COUNTED[engine](TABLE)
    data = sf.Dataset(table.native, unit="row", neighbours=neighbours, schema=SCHEMA)
    opened = table.passes()
    session = sf.Session(data, budget=sf.PureDP(100), bits=SeededBits(3))
    session.answer_all(questions)
    read = table.passes()
    table.close()
    assert opened == 0, "making a data set reads nothing"
    return read


@pytest.mark.parametrize("engine", COUNTED)
def test_all_counts_and_sums_take_one_pass(engine):
    assert passes(engine, SIMPLE) == 1 + MORE.get(engine, 0)


@pytest.mark.parametrize("engine", COUNTED)
def test_counts_alone_and_sums_alone_take_one_pass(engine):
    assert passes(engine, [SIMPLE[place] for place in (6, 7, 10)]) == 1
    assert passes(engine, [SIMPLE[place] for place in (1, 2, 3, 4, 9)]) == 1


@pytest.mark.parametrize("engine", COUNTED)
def test_all_refinements_take_one_pass_more(engine):
    assert 1 < passes(engine, SIMPLE + QUANTILES) <= 2 + MORE.get(engine, 0)


@pytest.mark.parametrize("engine", COUNTED)
def test_numbers_of_values_that_are_counted_first_take_one_pass_more(engine):
    assert 1 < passes(engine, SIMPLE + QUANTILES + COUNTED_FIRST) <= 3 + MORE.get(engine, 0)


@pytest.mark.parametrize("engine", COUNTED)
def test_counts_that_verify_all_quantiles_take_at_most_one_pass_more(engine):
    verified, counted = (
        [replace(each, query=replace(each.query, verify="auto")) for each in questions]
        for questions in (QUANTILES, COUNTED_FIRST)
    )
    without = passes(engine, SIMPLE + QUANTILES)
    assert passes(engine, SIMPLE + verified) <= without + 1
    assert passes(engine, SIMPLE + verified + counted) <= without + 2


@pytest.mark.parametrize("engine", COUNTED)
def test_a_public_number_of_rows_takes_at_most_one_pass_more(engine):
    assert 1 <= passes(engine, SIMPLE, "substitution") <= 2
    assert 1 < passes(engine, SIMPLE + QUANTILES, "substitution") <= 3 + MORE.get(engine, 0)


@pytest.mark.parametrize("engine", COUNTED)
def test_a_second_batch_of_a_session_reads_again_what_it_asks_for(engine):
    # Nothing that was counted is kept, so that a table that changed is not answered by old counts.
    one, two = passes(engine, SIMPLE[:3]), passes(engine, SIMPLE[:3] * 2)
    assert one == two == 1


@pytest.mark.parametrize("engine", COUNTED)
def test_the_count_of_passes_can_fail(engine):
    import narwhals as nw

    table = COUNTED[engine](TABLE)
    frame = nw.from_native(table.native)
    frame.group_by("age").agg(nw.len()).collect("pyarrow")
    frame.group_by("team").agg(nw.col("salary").max()).collect("pyarrow")
    assert table.passes() == 2
    table.close()


def test_several_plans_of_polars_share_one_scan_of_a_file(tmp_path):
    # What the counting function shows of a table in memory must hold for files, too.
    path = tmp_path / "people.parquet"
    polars_table(TABLE).write_parquet(path)
    frame = pl.scan_parquet(path).filter(pl.col("age") > 3)
    plans = [frame.group_by("team").len(), frame.group_by("member").agg(pl.col("salary").sum())]
    assert pl.explain_all(plans).count("Parquet SCAN") == 1
    assert "".join(plan.explain() for plan in plans).count("Parquet SCAN") == 2
