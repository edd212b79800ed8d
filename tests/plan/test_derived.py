"""Derived columns, conditions as text, bounds on groups, private keys: what a plan may say, and mistakes."""

import pytest
from tests.plan.plans import GOOD

from sfumato.plan import PlanError, check, parse, preview

HEAD = GOOD[: GOOD.index("[[queries]]")]
COLUMN = '\n[columns.hourly]\ntype = "real"\nbounds = [0, 500]\n\n[derive]\nhourly = "salary / hours"\n'
QUERY = '\n[[queries]]\nname = "hourly"\nstatistic = "mean"\ncolumn = "hourly"\n'
COUNT = '\n[[queries]]\nstatistic = "count"\n'


def told(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        check(parse(text))
    return str(caught.value)


def test_a_derived_column_needs_the_columns_of_its_expression():
    plan = parse(HEAD + COLUMN + QUERY)
    assert plan.needed == ("salary", "hours")
    assert plan.asked == ("hourly",)
    assert plan.derived["hourly"].columns == ("hours", "salary")
    # One that no query names is neither computed nor read.
    plan = parse(HEAD + COLUMN + COUNT)
    assert (plan.needed, plan.derived) == (("salary",), {})


def test_a_condition_may_be_text():
    plan = parse(HEAD + COUNT + "where = \"hours > 20 and region == 'north'\"\n")
    assert plan.queries[0].tested == ("hours", "region")
    assert plan.needed == ("hours", "region")
    assert plan.queries[0].condition.words == "hours > 20 and region == 'north'"


def test_a_row_is_counted_by_a_column_of_the_data():
    text = HEAD.replace("[columns.salary]", COLUMN.strip().split("\n\n")[0] + "\n\n[columns.salary]", 1)
    plan = parse(text + '\n[derive]\nhourly = "salary / hours"\n' + COUNT)
    assert next(iter(plan.columns)) == "hourly"
    assert plan.needed == ("salary",)


MISTAKES = {
    "code": ("salary / hours", "__import__('os')", "derive.hourly"),
    "no text": ('"salary / hours"', "7", "must be an expression in quotes"),
    "an unknown column": ("salary / hours", "salary / ours", "did you mean hours?"),
    "text as a number": ("salary / hours", "salary / region", "derive.hourly"),
    "a condition for a number": (
        "salary / hours",
        "salary > hours",
        "columns.hourly.type: must be 'boolean'",
    ),
    "text": (
        "salary / hours",
        "region",
        "derive.hourly: must give a number, or true and false, but 'region' is",
    ),
    "a derived one of itself": ("salary / hours", "hourly / hours", "but hourly is derived"),
    "not declared": ("hourly =", "weekly =", "derive.weekly: is not under [columns]"),
    "a key by another name": ("[derive]", "[derived]", "did you mean derive?"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_a_derived_column_is_told(case):
    old, new, words = MISTAKES[case]
    text = HEAD + COLUMN + QUERY
    assert old in text
    assert words in told(text.replace(old, new))


def test_a_condition_that_is_none_is_told():
    assert "must be a condition" in told(HEAD + COUNT + 'where = "hours + 1"\n')
    assert "queries.1.where" in told(HEAD + COUNT + 'where = "hours >"\n')
    assert "must be a table or an expression in quotes" in told(HEAD + COUNT + "where = 7\n")
    assert "must be a table or an expression in quotes" in told(HEAD + COUNT + 'where = ["hours > 7"]\n')


GROUPED = COUNT + 'group_by = ["region"]\n'
DELTA = HEAD.replace("epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-6").replace("cap = { epsilon = 3.0 }", "")


def test_groups_that_are_found_are_passed_on():
    plan = parse(DELTA + GROUPED + 'groups = { keys = "private", other = true, top = 3, share = 0.3 }\n')
    assert plan.queries[0].groups is not None
    assert {name: str(value) for name, value in plan.queries[0].groups.given.items()} == {
        "keys": "private",
        "other": "True",
        "top": "3",
        "share": "3/10",
    }
    check(plan)
    undeclared = DELTA.replace('categories = ["north", "south"]\n', "")
    check(parse(undeclared + GROUPED + 'groups = { keys = "private" }\n'))
    assert "groups = { keys = 'private' }" in told(undeclared + GROUPED)


GROUP_MISTAKES = {
    'groups = { keys = "secret" }': "groups.keys: must be one of 'public', 'private'",
    "groups = { top = 0 }": "groups.top: must be a whole number from 1",
    "groups = { others = true }": "did you mean other?",
    "groups = { threshold = 5 }": "groups.threshold: is no key of groups, which has keys, other,",
    "groups = { least = 5 }": "goes with keys = 'private'",
    "groups = { share = 0.5 }": "goes with keys = 'private' or top",
    "groups = { top = 2 }\naccuracy = { error = 5 }": "must be left out where groups are found",
    "groups = true": "groups: must be a table",
}


@pytest.mark.parametrize("line", GROUP_MISTAKES)
def test_a_mistake_in_groups_is_told(line):
    assert GROUP_MISTAKES[line] in told(DELTA + GROUPED + line + "\n")


def test_groups_need_columns_and_names_of_them_a_delta():
    assert "goes with group_by" in told(DELTA + COUNT + "groups = { other = true }\n")
    assert "unless the budget has a delta" in told(HEAD + GROUPED + 'groups = { keys = "private" }\n')


def test_groups_per_unit_goes_with_ids():
    assert "data.groups_per_unit: must be left out" in told(
        HEAD.replace("rows = 50_000", "groups_per_unit = 2") + COUNT
    )
    ids = HEAD.replace('unit = "row"', 'unit = "region"\nrows_per_unit = 3\ngroups_per_unit = 2')
    plan = parse(ids.replace("rows = 50_000\n", "") + COUNT)
    check(plan)
    from sfumato.plan.binding import declared

    assert declared(plan).groups_per_unit == 2


def test_a_preview_counts_what_finds_the_groups():
    plain = preview(parse(DELTA + GROUPED))
    found = preview(parse(DELTA + GROUPED + 'groups = { keys = "private" }\n'))
    assert found.price.epsilon == plain.price.epsilon == 1
    assert found.queries[0].cost.epsilon == found.price.epsilon
    assert found.price.delta <= plain.budget.delta
