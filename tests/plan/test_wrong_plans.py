"""Every mistake in a plan is told with file, line and field, in plain words."""

import pytest
from tests.plan.plans import GOOD, changed

from sfumato.plan import PlanError, check, parse

# What is changed, on which line the problem is, of which field, and words of the message.
WRONG = {
    "no version": (("version = 1\n", "\n"), 1, "version", "is missing"),
    "another version": (("version = 1", "version = 2"), 1, "version", "must be 1"),
    "a version in quotes": (("version = 1", 'version = "1"'), 1, "version", "must be 1"),
    "true as a version": (("version = 1", "version = true"), 1, "version", "got true"),
    "a real version": (("version = 1", "version = 1.0"), 1, "version", "must be 1"),
    "an unknown key": (("about =", "abuot ="), 3, "abuot", "did you mean about?"),
    "an unknown key far from all": (
        ("about =", "xyzzy ="),
        3,
        "xyzzy",
        "is no key of a plan, which has version",
    ),
    "an empty title": (('"Salaries"', '""'), 2, "title", "must not be empty"),
    "a blank title": (('"Salaries"', '"   "'), 2, "title", "printable"),
    "a number as a title": (('"Salaries"', "3"), 2, "title", "must be text in quotes, got 3"),
    "a date as a title": (('"Salaries"', "2026-01-01"), 2, "title", "got a date or time"),
    "a line end in a title": (('"Salaries"', '"a\\nb"'), 2, "title", "printable"),
    "a long title": (('"Salaries"', f'"{"a" * 201}"'), 2, "title", "at most 200 characters"),
    "an escape in about": (('"What is paid."', '"\\u001b[31m"'), 3, "about", "control characters"),
    "no path": (('path = "salaries.csv"\n', ""), 5, "data.path", "is missing; it says: the CSV"),
    "no unit": (('unit = "row"\n', ""), 5, "data.unit", "is missing"),
    "no relation": (('neighbours = "substitution"\n', ""), 5, "data.neighbours", "is missing"),
    "a relation by another name": (
        ('"substitution"', '"add_remove"'),
        9,
        "data.neighbours",
        "must be one of 'substitution', 'add-remove', got 'add_remove'; did you mean add-remove?",
    ),
    "the American spelling": (
        ("neighbours =", "neighbors ="),
        9,
        "data.neighbors",
        "did you mean neighbours?",
    ),
    "negative rows": (("rows = 50_000", "rows = -1"), 10, "data.rows", "from 0 to"),
    "rows as a real": (("rows = 50_000", "rows = 5e4"), 10, "data.rows", "must be a whole number"),
    "rows as text": (
        ("rows = 50_000", 'rows = "many"'),
        10,
        "data.rows",
        "must be a whole number, got 'many'",
    ),
    "rows as true": (("rows = 50_000", "rows = true"), 10, "data.rows", "got true"),
    "too many rows": (("rows = 50_000", f"rows = {10**30}"), 10, "data.rows", "from 0 to"),
    "rows_per_unit with rows": (("rows = 50_000", "rows_per_unit = 2"), 10, "data.rows_per_unit", "left out"),
    "an id without rows_per_unit": (
        ('unit = "row"', 'unit = "region"'),
        5,
        "data.rows_per_unit",
        "is missing",
    ),
    "an id that is no column": (
        ('unit = "row"', 'unit = "regoin"\nrows_per_unit = 2'),
        8,
        "data.unit",
        "did you mean region?",
    ),
    "an id of reals": (
        ('unit = "row"', 'unit = "hours"\nrows_per_unit = 2'),
        28,
        "columns.hours.type",
        "ids",
    ),
    "rows_per_unit of none": (
        ('unit = "row"', 'unit = "region"\nrows_per_unit = 0'),
        9,
        "data.rows_per_unit",
        "from 1",
    ),
    "no budget": (("epsilon = 1.0", ""), 12, "budget", "epsilon, or epsilon and delta, or rho"),
    "epsilon and rho": (
        ("epsilon = 1.0", "epsilon = 1.0\nrho = 1"),
        12,
        "budget",
        "epsilon, or epsilon and delta",
    ),
    "rho and delta": (("epsilon = 1.0", "rho = 1.0\ndelta = 0.1"), 12, "budget", "delta goes with epsilon"),
    "an epsilon of 0": (("epsilon = 1.0", "epsilon = 0"), 13, "budget.epsilon", "must be above 0, got 0"),
    "a negative epsilon": (("epsilon = 1.0", "epsilon = -1"), 13, "budget.epsilon", "must be above 0"),
    "epsilon nan": (("epsilon = 1.0", "epsilon = nan"), 13, "budget.epsilon", "must be a finite number"),
    "epsilon inf": (("epsilon = 1.0", "epsilon = inf"), 13, "budget.epsilon", "must be a finite number"),
    "epsilon minus inf": (
        ("epsilon = 1.0", "epsilon = -inf"),
        13,
        "budget.epsilon",
        "must be a finite number",
    ),
    "epsilon 1e999": (("epsilon = 1.0", "epsilon = 1e999"), 13, "budget.epsilon", "must be a finite number"),
    "epsilon 1e-999999999": (
        ("epsilon = 1.0", "epsilon = 1e-999999999"),
        13,
        "budget.epsilon",
        "digits",
    ),
    "epsilon in quotes": (
        ("epsilon = 1.0", 'epsilon = "1"'),
        13,
        "budget.epsilon",
        "must be a number, got '1'",
    ),
    "epsilon true": (("epsilon = 1.0", "epsilon = true"), 13, "budget.epsilon", "must be a number, got true"),
    "epsilon as a list": (
        ("epsilon = 1.0", "epsilon = [1]"),
        13,
        "budget.epsilon",
        "must be a number, got [1]",
    ),
    "a date as epsilon": (("epsilon = 1.0", "epsilon = 12:00:00"), 13, "budget.epsilon", "a date or time"),
    "a delta of 1": (("epsilon = 1.0", "epsilon = 1\ndelta = 1"), 14, "budget.delta", "inside (0, 1)"),
    "eps": (("epsilon = 1.0", "eps = 1.0"), 13, "budget.eps", "did you mean epsilon?"),
    "a small cap": (
        ("cap = { epsilon = 3.0 }", "cap = { epsilon = 0.5 }"),
        17,
        "ledger.cap",
        "at least the budget",
    ),
    "a cap of another kind": (
        ("epsilon = 1.0", "rho = 0.1"),
        17,
        "ledger.cap",
        "must have a delta, or be a rho",
    ),
    "an empty cap": (
        ("cap = { epsilon = 3.0 }", "cap = {}"),
        17,
        "ledger.cap",
        "epsilon, or epsilon and delta",
    ),
    "an unknown type": (('type = "real"', 'type = "float"'), 27, "columns.hours.type", "did you mean real?"),
    "no type": (('type = "real"\n', ""), 26, "columns.hours.type", "is missing"),
    "bounds in the wrong order": (("[0, 60]", "[60, 0]"), 28, "columns.hours.bounds", "lower number first"),
    "one bound": (("[0, 60]", "[0]"), 28, "columns.hours.bounds", "must be two numbers"),
    "equal bounds": (("[0, 60]", "[60, 60]"), 28, "columns.hours.bounds", "different"),
    "bounds beyond float64": (("[0, 60]", "[0, 1e300]"), 28, "columns.hours.bounds", "2**400"),
    "bounds in quotes": (("[0, 60]", '["0", "60"]'), 28, "columns.hours.bounds", "must be a number"),
    "bounds of text": (
        ('categories = ["north", "south"]', "bounds = [0, 1]"),
        36,
        "columns.region.bounds",
        "goes with numbers",
    ),
    "a step of 0": (("step = 1", "step = 0"), 23, "columns.salary.step", "must be above 0"),
    "an unknown null rule": (
        ("bounds = [0, 60]", 'bounds = [0, 60]\nnulls = "zero"'),
        29,
        "columns.hours.nulls",
        "must be one of 'drop', 'lower', 'upper'",
    ),
    "a bound for missing text": (
        ('categories = ["north", "south"]', 'categories = ["north", "south"]\nnulls = "lower"'),
        37,
        "columns.region.nulls",
        "must be 'drop'",
    ),
    "mixed categories": (('["north", "south"]', '["north", 1]'), 36, "columns.region.categories", "all text"),
    "a category twice": (
        ('["north", "south"]', '["north", "north"]'),
        36,
        "columns.region.categories",
        "twice",
    ),
    "no categories": (('["north", "south"]', "[]"), 36, "columns.region.categories", "1 to 100,000"),
    "categories of another type": (
        ('["north", "south"]', "[1, 2]"),
        36,
        "columns.region.categories",
        "quotes",
    ),
    "real categories": (('["north", "south"]', "[1.5]"), 36, "columns.region.categories", "whole number"),
    "a date as a category": (('["north", "south"]', "[2026-01-01]"), 36, "columns.region.categories", "date"),
    "values for categories": (
        ('categories = ["north"', 'values = ["north"'),
        36,
        "columns.region.values",
        "did you mean categories?",
    ),
    "an unknown statistic": (
        ('statistic = "mean"', 'statistic = "meen"'),
        59,
        "queries.3.statistic",
        "did you mean mean?",
    ),
    "no statistic": (('statistic = "mean"\n', ""), 57, "queries.3.statistic", "is missing"),
    "by for group_by": (("group_by =", "by ="), 52, "queries.2.by", "did you mean group_by?"),
    "a key with a space": (
        ("group_by =", '"group by" ='),
        52,
        'queries.2."group by"',
        "did you mean group_by?",
    ),
    "no column": (('column = "salary"\nbins', "bins"), 63, "queries.4.column", "histogram is of one column"),
    "a column that is not declared": (
        ('column = "salary"\nbins', 'column = "salry"\nbins'),
        66,
        "queries.4.column",
        "is not under [columns]; did you mean salary?",
    ),
    "a mean of text": (
        ('column = "salary"\naccuracy', 'column = "region"\naccuracy'),
        60,
        "queries.3.column",
        "must be a column of numbers for mean",
    ),
    "no bounds": (("bounds = [0, 250_000]\n", ""), 20, "columns.salary.bounds", "public knowledge"),
    "an option of another statistic": (
        ("bins = 10", "bins = 10\nprobs = [0.5]"),
        68,
        "queries.4.probs",
        "does not go with histogram; it goes with quantiles",
    ),
    "no bins": (("bins = 10", ""), 63, "queries.4", "needs bins"),
    "bins and edges": (("bins = 10", "bins = 10\nedges = [0, 1]"), 63, "queries.4", "only one of bins"),
    "edges that fall": (("bins = 10", "edges = [3, 1]"), 67, "queries.4.edges", "increasing"),
    "no probs": (("probs = [0.1, 0.5, 0.9]\n", ""), 46, "queries.2.probs", "quantiles needs it"),
    "a prob of 1": (
        ("probs = [0.1, 0.5, 0.9]", "probs = [0.1, 1.0]"),
        50,
        "queries.2.probs",
        "inside (0, 1)",
    ),
    "probs in quotes": (
        ("probs = [0.1, 0.5, 0.9]", 'probs = ["median"]'),
        50,
        "queries.2.probs",
        "must be a number",
    ),
    "one prob": (
        ("probs = [0.1, 0.5, 0.9]", "probs = 0.5"),
        50,
        "queries.2.probs",
        "must be a list of numbers",
    ),
    "an unknown method": (
        ('interval_share = "auto"', 'method = "magic"'),
        54,
        "queries.2.method",
        "must be one of",
    ),
    "an unknown method in a table": (
        ('interval_share = "auto"', 'method = { name = "magic" }'),
        54,
        "queries.2.method.name",
        "must be one of single",
    ),
    "an unknown option of a method": (
        ('interval_share = "auto"', 'method = { name = "recursive", depth = 3 }'),
        54,
        "queries.2.method.depth",
        "is no option of the method recursive, which has the options",
    ),
    "a share too small for any noise": (
        ("bins = 10", "bins = 10\nshare = 1e-14"),
        68,
        "queries.4.share",
        "epsilon must be in",
    ),
    "noise that the budget cannot pay for": (
        ("bins = 10", 'bins = 10\nnoise = "gaussian"'),
        68,
        "queries.4.noise",
        "needs an epsilon and delta or rho budget, got an epsilon one",
    ),
    "no rows to divide by": (
        ("rows = 50_000", "rows = 0"),
        10,
        "data.rows",
        "at least 1 to divide by",
    ),
    "an interval share of words": (
        ('interval_share = "auto"', 'interval_share = "some"'),
        54,
        "queries.2.interval_share",
        "'auto'",
    ),
    "an interval share of 1": (
        ('interval_share = "auto"', "interval_share = 1"),
        54,
        "queries.2.interval_share",
        "0.99",
    ),
    "a part of words that verifies": (
        ('interval_share = "auto"', 'verify = "some"'),
        54,
        "queries.2.verify",
        "must be a number from 0 to 0.99 or 'auto'",
    ),
    "all of the budget that verifies": (
        ('interval_share = "auto"', "verify = 1"),
        54,
        "queries.2.verify",
        "0.99",
    ),
    "less than nothing that verifies": (
        ('interval_share = "auto"', "verify = -0.1"),
        54,
        "queries.2.verify",
        "0.99",
    ),
    "no number that verifies": (
        ('interval_share = "auto"', "verify = nan"),
        54,
        "queries.2.verify",
        "must be a finite number",
    ),
    "a tiny part that verifies": (
        ('interval_share = "auto"', "verify = 0.001"),
        54,
        "queries.2.verify",
        "0.01",
    ),
    "a tree that is verified": (
        ('interval_share = "auto"', 'method = "tree"\nverify = 0.2'),
        55,
        "queries.2.verify",
        "its counts tell the interval",
    ),
    "a part that verifies and outer orders": (
        ('interval_share = "auto"', "interval_share = 0.1\nverify = 0.2"),
        55,
        "queries.2.verify",
        "with an interval_share",
    ),
    "a condition on no column": (
        ('region = "north", sal', 'regoin = "north", sal'),
        51,
        "queries.2.where.regoin",
        "did you mean region?",
    ),
    "a condition on no category": (
        ('where = { region = "north"', 'where = { region = "nort"'),
        51,
        "queries.2.where.region",
        "'nort' is not among the categories of region; did you mean north?",
    ),
    "a condition of another type": (
        ('where = { region = "north"', "where = { region = 3"),
        51,
        "queries.2.where.region",
        "must be text in quotes",
    ),
    "a range of text": (
        ('where = { region = "north"', "where = { region = { between = [0, 1] }"),
        51,
        "queries.2.where.region",
        "between goes with numbers",
    ),
    "a condition without categories": (
        ('where = { region = "north"', "where = { hours = 3"),
        26,
        "columns.hours.categories",
        "conditions name public categories",
    ),
    "an unknown condition": (
        ("{ between =", "{ above ="),
        51,
        "queries.2.where.salary",
        "{ between = [low, high] }",
    ),
    "a range in the wrong order": (
        ("[1, 200_000]", "[2, 1]"),
        51,
        "queries.2.where.salary",
        "lower number first",
    ),
    "groups of no column": (
        ('["department"]', '["departement"]'),
        52,
        "queries.2.group_by.1",
        "did you mean department?",
    ),
    "groups without categories": (
        ('group_by = ["department"]', 'group_by = ["hours"]'),
        26,
        "columns.hours.categories",
        "groups are made of public categories",
    ),
    "a group twice": (('["department"]', '["department", "department"]'), 52, "queries.2.group_by", "once"),
    "groups as text": (('["department"]', '"department"'), 52, "queries.2.group_by", "must be a list"),
    "too many groups": (
        (
            'categories = ["care", "schools", "police"]',
            f"categories = {[f'd{i}' for i in range(10_001)]}".replace("'", '"'),
        ),
        52,
        "queries.2.group_by",
        "at most 10,000 groups, got 10,001",
    ),
    "a share of 0": (("share = 0.5\n", "share = 0\n"), 53, "queries.2.share", "above 0 and at most 1"),
    "a share above 1": (("share = 0.5\n", "share = 1.5\n"), 53, "queries.2.share", "above 0 and at most 1"),
    "a share of words": (("share = 0.5\n", 'share = "half"\n'), 53, "queries.2.share", "must be a number"),
    "shares above the whole": (
        ("bins = 10", "bins = 10\nshare = 0.51"),
        68,
        "queries.4.share",
        "shares must add up to at most 1, the whole budget, got 1.01",
    ),
    "shares of the whole": (("share = 0.5\n", "share = 1\n"), 57, "queries.3", "add up to the whole budget"),
    "a share and an accuracy": (
        ("bins = 10", "bins = 10\nshare = 0.1\naccuracy.error = 9"),
        69,
        "queries.4.accuracy",
        "one of the two",
    ),
    "a share of what is free": (
        ('statistic = "count"', 'statistic = "count"\nshare = 0.1'),
        45,
        "queries.1.share",
        "costs nothing",
    ),
    "no wanted error": (
        ("{ error = 500, confidence", "{ confidence"),
        61,
        "queries.3.accuracy",
        "one of error and rank_error",
    ),
    "two wanted errors": (
        ("{ error = 500", "{ error = 500, rank_error = 2"),
        61,
        "queries.3.accuracy",
        "one of error and rank_error",
    ),
    "a confidence of 1": (
        ("confidence = 0.95", "confidence = 1.0"),
        61,
        "queries.3.accuracy.confidence",
        "inside (0, 1)",
    ),
    "ranks of a mean": (
        ("{ error = 500", "{ rank_error = 5"),
        61,
        "queries.3.accuracy.rank_error",
        "give error",
    ),
    "an error of quantiles": (
        ("share = 0.5\n", "accuracy.error = 5\n"),
        53,
        "queries.2.accuracy.error",
        "must be rank_error for quantiles",
    ),
    "an accuracy out of reach": (
        ("{ error = 500", "{ error = 2"),
        61,
        "queries.3.accuracy",
        "is left for it, with which error = ",
    ),
    "an accuracy that leaves nothing for shares": (
        ("{ error = 500", "{ error = 20"),
        53,
        "queries.2.share",
        "shares take 0.5 of the budget, but wanted accuracies leave",
    ),
    "two queries of one name": (
        ('name = "bands"', 'name = "mean"'),
        64,
        "queries.4.name",
        "queries.3 is called 'mean' too",
    ),
    "an n_hint of 0": (("n_hint = 2_000", "n_hint = 0"), 55, "queries.2.n_hint", "from 1"),
    "a public size in groups": (
        ('statistic = "quantiles"', 'statistic = "inverse_mean"'),
        51,
        "queries.2.where",
        "that of a part is private; use mean",
    ),
    "no queries": (
        (GOOD[GOOD.index("[[queries]]") :], "queries = []"),
        42,
        "columns.member.queries",
        "is no key",
    ),
    "columns as a list": (("[columns.hours]", "[[columns.hours]]"), 26, "columns.hours", "must be a table"),
    "queries as a table": (
        (GOOD[GOOD.index("[[queries]]") :], "[queries]\na = 1"),
        42,
        "queries",
        "must be a list",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_told_with_file_line_and_field(mistake):
    change, line, field, words = WRONG[mistake]
    with pytest.raises(PlanError) as told:
        check(parse(changed(change), path="folder/people.toml"))
    found = {(problem.line, problem.field): problem for problem in told.value.problems}
    assert (line, field) in found, str(told.value)
    problem = found[line, field]
    assert str(problem).startswith(f"people.toml, line {line}, {field}: ")
    assert words in problem.words
    assert str(problem) in str(told.value)


@pytest.mark.parametrize("mistake", WRONG)
def test_messages_are_plain_words_on_one_line_each(mistake):
    with pytest.raises(PlanError) as told:
        check(parse(changed(WRONG[mistake][0])))
    assert told.value.__cause__ is None
    for problem in told.value.problems:
        text = str(problem)
        assert text.isprintable()
        assert len(text) < 600
        lowered = text.lower()
        for jargon in (
            "pydantic",
            "input_value",
            "validation error",
            "decimal(",
            "fraction(",
            "puredp",
            "zcdp",
            "traceback",
            "none",
        ):
            assert jargon not in lowered, text


def test_there_are_many_mistakes():
    assert len(WRONG) >= 100


def test_all_mistakes_of_a_form_are_told_at_once_in_the_order_of_the_file():
    text = changed(('"Salaries"', "3"), ("epsilon = 1.0", "epsilon = -1"), ("bins = 10", "bins = 0"))
    with pytest.raises(PlanError) as told:
        parse(text)
    assert [problem.line for problem in told.value.problems] == [2, 13, 67]


def test_hundreds_of_mistakes_are_not_all_printed():
    text = GOOD + "".join(f"\n[[queries]]\nx{i} = 1" for i in range(300))
    with pytest.raises(PlanError) as told:
        parse(text)
    assert len(told.value.problems) == 600
    assert str(told.value).splitlines()[-1] == "and 580 more"


def test_rows_must_be_those_of_the_file_where_they_are_public():
    from sfumato.plan import questions

    plan = parse(GOOD)
    assert len(questions(plan, rows=50_000)) == 4
    with pytest.raises(PlanError, match=r"line 10, data\.rows: must be the number of rows, .* 49,999"):
        questions(plan, rows=49_999)
