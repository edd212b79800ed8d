"""Plans of every statistic run: checked, previewed, asked of a session, within their budget."""

import json
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.plans import EVERY, GOOD, asking, head, one_of_each

from sfumato.data.dataset import Dataset
from sfumato.grouped import GroupedRelease
from sfumato.laws import SeededBits
from sfumato.plan import PlanError, check, fields, parse, preview, questions
from sfumato.plan.binding import assumed_rows, bound, groups
from sfumato.plan.queries import KINDS
from sfumato.privacy import Amount, ApproxDP, PureDP
from sfumato.session import Session

BUDGETS = ["epsilon = 1", "epsilon = 1\ndelta = 1e-6", "rho = 0.5"]
PUBLIC_SIZE = ("inverse_mean", "exponential_mean", "inverse_proportion")
FRAME = pl.DataFrame(
    {
        "salary": [30_000, 41_000, None, 52_000, 10**7, 18_000],
        "hours": [40.0, None, 20.0, 38.5, 60.5, 12.0],
        "department": ["care", "care", None, "schools", "elsewhere", "care"],
        "region": ["north", "north", "south", "north", "south", None],
        "member": [True, False, None, True, True, False],
        "person": [1, 1, 2, 3, 3, None],
    }
)


def run(plan, seed=1):
    data = Dataset(
        FRAME.select(plan.needed),
        unit=plan.data.unit,
        rows_per_unit=plan.data.rows_per_unit,
        neighbours=plan.data.neighbours,
        schema=fields(plan),
        name=plan.data.name,
    )
    budget = plan.budget.value
    with Session(data, budget=budget, bits=SeededBits(seed)) as session:
        within = budget if isinstance(budget, ApproxDP) else None
        answers = session.answer_all(
            questions(plan, rows=FRAME.height if plan.size_is_public else None), within=within
        )
        return answers, session.spent


def charged(spent, price):
    """The price itself; of a rho the event may cost less, by the rounding of a root."""
    return spent == price or (spent.fits(price) and spent.rho > price.rho * (1 - Fraction(1, 10**12)))


def small(text):
    return parse(text.replace("rows = 50_000", "rows = 6"))


def test_the_table_of_statistics_is_that_of_the_model_and_is_all_here():
    from typing import get_args

    from sfumato.plan.model import StatisticName
    from sfumato.quantile_methods import QUERIES

    assert set(KINDS) == set(get_args(StatisticName)) == {name.split()[0] for name in EVERY}
    # A choice needs scores, which no file can compute.
    assert set(QUERIES) - {kind.made.name for kind in KINDS.values()} == {"choice"}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", EVERY)
def test_every_statistic_is_checked_previewed_and_answered(name, budget):
    plan = small(asking(one_of_each(name), budget=budget).text)
    check(plan)
    foreseen = preview(plan)
    json.dumps(foreseen.to_dict(), allow_nan=False)
    (answer,), spent = run(plan)
    assert answer.value is not None or name.startswith("first_passing")
    assert charged(spent, foreseen.price)
    assert foreseen.price.fits(Amount.of(plan.budget.value))


@pytest.mark.parametrize("facts", [{}, {"neighbours": "add-remove"}, {"unit": "person"}], ids=str)
@pytest.mark.parametrize("name", [name for name in EVERY if name.split()[0] not in PUBLIC_SIZE])
def test_every_statistic_is_answered_by_groups_and_under_conditions(name, facts):
    part = (
        'where = { region = ["north", "south"], hours = { between = [0, 50.5] } }\ngroup_by = ["department"]'
    )
    plan = small(asking(f"{one_of_each(name)}\n{part}\nn_hint = 2", **facts).text)
    check(plan)
    assert preview(plan).queries[0].groups == 3
    (answer,), spent = run(plan)
    assert isinstance(answer, GroupedRelease)
    assert answer.keys == (("care",), ("schools",), ("police",))
    assert charged(spent, preview(plan).price)


@pytest.mark.parametrize("name", PUBLIC_SIZE)
@pytest.mark.parametrize(
    ("part", "facts", "why"),
    [
        ('where = { region = "north" }', {}, "that of a part is private"),
        ('group_by = ["region"]', {}, "that of a part is private"),
        ("", {"neighbours": "add-remove"}, "under add-remove it is private"),
        ("", {"unit": "person"}, "with several rows of a person it is private"),
        ('nulls = "drop"', {}, "must be 'lower' or 'upper'"),
    ],
)
def test_what_needs_a_public_number_of_rows_is_refused_elsewhere_with_the_reason(name, part, facts, why):
    with pytest.raises(PlanError, match=why):
        check(asking(f"{one_of_each(name)}\n{part}", **facts))


def test_columns_that_no_query_needs_are_declared_and_not_read():
    plan = small(asking(one_of_each("mean")).text)
    assert plan.needed == ("salary",) == tuple(fields(plan))
    assert len(plan.columns) == 5
    assert tuple(fields(asking(one_of_each("mean"), unit="person"))) == ("salary", "person")


def test_groups_without_rows_are_answered_too():
    plan = small(
        asking('statistic = "count"\ngroup_by = ["department", "region"]', budget="epsilon = 1e5").text
    )
    (answer,), _ = run(plan)
    assert len(answer.keys) == 6
    assert answer.releases["police", "south"].value == 0
    assert answer.releases["care", "north"].value == 2


def test_a_count_without_a_column_counts_rows_and_one_with_a_column_counts_values():
    plan = small(
        asking('statistic = "count"', 'statistic = "count"\ncolumn = "hours"', budget="epsilon = 1e5").text
    )
    (rows, values), _ = run(plan)
    assert (rows.value, values.value) == (6, 5)


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_preview_costs_what_is_charged_and_names_the_proof(budget):
    lines = [one_of_each(name) for name in ("count", "mean", "deciles", "histogram of categories")]
    plan = small(asking(*lines, budget=budget).text)
    foreseen = preview(plan)
    _, spent = run(plan)
    assert charged(spent, foreseen.price)
    assert foreseen.composition in str(foreseen)


def test_a_session_charges_a_batch_whose_shares_grew_within_the_budget():
    lines = [one_of_each("mean"), one_of_each("histogram")] * 20
    plan = small(asking(*lines, budget="epsilon = 1\ndelta = 1e-6").text)
    foreseen = preview(plan)
    assert foreseen.factor > 1
    answers, spent = run(plan)
    assert len(answers) == 40
    assert spent == foreseen.price
    assert spent.fits(Amount.of(plan.budget.value))


def test_a_preview_states_guesses_and_what_it_does_not_know():
    plan = asking(
        'statistic = "mean"\ncolumn = "hours"\ngroup_by = ["region"]',
        'statistic = "mean"\ncolumn = "hours"\nwhere = { region = "north" }\nn_hint = 700',
        'statistic = "mean"\ncolumn = "salary"',
        'statistic = "count"',
    )
    by, part, whole, free = preview(plan).queries
    assert (by.rows, by.guess, by.groups) == (25_000, True, 2)
    assert (part.rows, part.guess) == (700, True)
    assert (whole.rows, whole.guess) == (50_000, False)
    assert free.accuracy == "exact: a public number"
    assert "a guess" in str(preview(plan))
    unsaid = parse(plan.text.replace("rows = 50_000\n", "").replace('"substitution"', '"add-remove"'))
    assert preview(unsaid).queries[0].accuracy.startswith("not known: give rows in [data]")
    assert preview(unsaid, rows=100).queries[0].rows == 50


def test_a_preview_takes_another_budget_and_another_confidence():
    plan = parse(GOOD)
    half = preview(plan, budget=PureDP(0.5))
    assert half.price.epsilon == Fraction(1, 2)
    surer = preview(plan, confidence=0.99)
    assert surer.queries[3].error > preview(plan).queries[3].error
    assert "99 % confidence" in str(surer)
    with_delta = preview(plan, budget=ApproxDP(1, 1e-6))
    assert with_delta.price.epsilon <= 1


def test_the_example_previews_as_a_table():
    lines = str(preview(parse(GOOD))).splitlines()
    assert lines[0] == "Salaries: epsilon 1.0 of epsilon 1.0"
    assert lines[2].split() == ["people", "nothing", "exact:", "a", "public", "number"]
    assert "in each of 3 groups, 2,000 rows *" in lines[3]


def test_a_preview_says_which_part_verifies_and_how_wide_intervals_will_be():
    names = ("quantiles", "quantiles that are verified", "quantiles that are not verified", "median")
    foreseen = preview(asking(*map(one_of_each, names)))
    verified, alike, plain, framed = foreseen.queries
    assert verified.divided == alike.divided == "half of the budget verifies the intervals"
    assert plain.divided == framed.divided == ""
    assert "; verified intervals about " in verified.accuracy
    assert "verified" not in plain.accuracy + framed.accuracy
    assert f"  {verified.name}: {verified.divided}" in str(foreseen).splitlines()
    assert [query["divided"] for query in foreseen.to_dict()["queries"]] == [verified.divided] * 2 + [""] * 2


def test_nothing_is_read_or_written_by_a_check_or_a_preview(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(GOOD)
    from sfumato.plan import read

    check(read(file))
    preview(read(file))
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


def test_the_header_of_the_file_is_compared_with_the_columns(tmp_path):
    from sfumato.plan import read

    file = tmp_path / "plan.toml"
    file.write_text(GOOD)
    data = tmp_path / "salaries.csv"
    data.write_text("salary,hours,department,region,member,more\n1,2.5,CANARY,north,true,x\n")
    check(read(file))
    data.write_text("salary,hours,departement,region,member\nCANARY,2.5,care,north,true\n")
    with pytest.raises(PlanError) as told:
        check(read(file))
    words = (
        "plan.toml, line 30, columns.department: is not a column of the data file; did you mean departement?"
    )
    assert str(told.value) == words
    data.write_bytes(b"")
    with pytest.raises(PlanError, match=r"line 6, data\.path: "):
        check(read(file))


def test_the_types_of_a_parquet_file_are_compared_too(tmp_path):
    from sfumato.plan import read

    file = tmp_path / "plan.toml"
    file.write_text(GOOD.replace("salaries.csv", "salaries.parquet"))
    FRAME.drop("person").write_parquet(tmp_path / "salaries.parquet")
    check(read(file))
    FRAME.with_columns(pl.col("salary").cast(pl.String)).write_parquet(tmp_path / "salaries.parquet")
    with pytest.raises(PlanError, match=r"line 21, columns\.salary\.type: is 'integer', but .* stores text"):
        check(read(file))


def test_what_a_file_holds_is_told_by_its_bytes_and_not_by_its_name(tmp_path):
    from sfumato.plan import read

    file = tmp_path / "plan.toml"
    file.write_text(GOOD)
    # A Parquet file under the name of a CSV file: its types are stored, and no guesses.
    FRAME.with_columns(pl.col("salary").cast(pl.String)).write_parquet(tmp_path / "salaries.csv")
    with pytest.raises(PlanError, match=r"columns\.salary\.type: is 'integer', but .* stores text"):
        check(read(file))


def test_the_query_of_the_first_group_stands_for_all():
    plan = asking('statistic = "mean"\ncolumn = "hours"\ngroup_by = ["region", "department"]')
    query = bound(plan, 0, PureDP(1))
    assert query.among == (("region", "north"), ("department", "care"))
    assert (query.changes, groups(plan, plan.queries[0])) == (2, 6)
    assert assumed_rows(plan, 0, None) == (8333, True)


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(sorted(EVERY)), min_size=1, max_size=5),
    st.sampled_from(BUDGETS[::2]),
    st.sampled_from(["substitution", "add-remove"]),
    st.sampled_from(["row", "person"]),
    st.booleans(),
)
def test_any_plan_is_refused_by_check_or_its_parts_fit_the_budget(names, budget, neighbours, unit, by):
    part = '\ngroup_by = ["region"]' if by else ""
    queries = [one_of_each(name) + part for name in names]
    plan = asking(*queries, budget=budget, neighbours=neighbours, unit=unit)
    try:
        check(plan)
    except PlanError as error:
        refused = str(error)
        assert "public number of rows" in refused
        return
    foreseen = preview(plan)
    whole = type(foreseen.price).of(plan.budget.value)
    assert foreseen.price.fits(whole)
    assert foreseen.price == whole or all(query.cost == type(whole)() for query in foreseen.queries)


def test_a_thousand_queries_are_served_and_one_more_is_refused():
    each = "".join(
        f'\n[[queries]]\nname = "q{i}"\nstatistic = "count"\ncolumn = "hours"' for i in range(1000)
    )
    assert len(questions(parse(head() + each))) == 1000
    with pytest.raises(PlanError, match=r"queries\.1001: must be at most 1,000, got 1,001"):
        parse(head() + each + '\n[[queries]]\nstatistic = "count"')
