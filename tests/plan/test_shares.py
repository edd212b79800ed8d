"""The budget is divided exactly: never more than the whole, and all of it where all is given out."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.plans import asking

from sfumato.batch import Batch
from sfumato.errors import InvalidParameter
from sfumato.plan import PlanError, check, preview, questions
from sfumato.plan import allocation as shares
from sfumato.plan.allocation import allocate
from sfumato.plan.binding import bound
from sfumato.privacy import ZCDP, Amount, ApproxDP, FreeEvent, PureDP, compose

MEAN = 'statistic = "mean"\ncolumn = "salary"'
COUNT = 'statistic = "count"\ncolumn = "hours"'
FREE = 'statistic = "count"'
BUDGETS = ["epsilon = 0.7", "epsilon = 0.7\ndelta = 1e-6", "rho = 0.7"]


def total(budgets):
    first, *others = budgets
    for other in others:
        first += other
    return first


@pytest.mark.parametrize("budget", BUDGETS)
def test_without_shares_all_queries_get_equal_parts_of_the_whole(budget):
    plan = asking(MEAN, COUNT, MEAN, budget=budget)
    parts = [question.query.budget for question in questions(plan)]
    assert len(set(map(repr, parts))) == 1
    assert total(parts) == plan.budget.value


def test_queries_without_a_share_divide_what_the_others_leave():
    plan = asking(f"{MEAN}\nshare = 0.1", MEAN, f"{COUNT}\nshare = 0.3", COUNT)
    parts = [question.query.budget for question in questions(plan)]
    assert parts == [PureDP(0.1), PureDP(0.3), PureDP(0.3), PureDP(0.3)]


def test_thirds_and_tenths_are_exact():
    plan = asking(*[MEAN] * 3, budget="epsilon = 0.1")
    parts = [question.query.budget for question in questions(plan)]
    assert parts == [PureDP(Fraction(1, 30))] * 3
    ten = asking(*[f"{MEAN}\nshare = 0.1"] * 10, budget="epsilon = 0.3")
    assert total([question.query.budget for question in questions(ten)]) == PureDP(0.3)


def test_what_no_share_asks_for_is_left_unspent():
    plan = asking(f"{MEAN}\nshare = 0.25", f"{MEAN}\nshare = 0.25", budget="rho = 1")
    assert total([question.query.budget for question in questions(plan)]) == ZCDP(0.5)


def test_a_count_of_all_rows_is_free_where_their_number_is_public():
    plan = asking(FREE, MEAN)
    whole = plan.budget.value
    assert allocate(plan).budgets == (whole, whole)
    assert isinstance(bound(plan, 0, whole).event, FreeEvent)
    hidden = asking(FREE, MEAN, neighbours="add-remove")
    assert allocate(hidden).budgets == (whole.share(Fraction(1, 2)),) * 2
    several = asking(FREE, MEAN, unit="person")
    assert allocate(several).budgets == (whole.share(Fraction(1, 2)),) * 2


def test_a_plan_of_free_queries_costs_nothing():
    assert preview(asking(FREE)).price == Amount()


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_wanted_accuracy_takes_what_it_needs_and_no_more(budget):
    plan = asking(f"{MEAN}\naccuracy = {{ error = 100, confidence = 0.9 }}", MEAN, budget=budget)
    wanted, rest = (question.query for question in questions(plan))
    query = bound(plan, 0, wanted.budget)
    assert query.accuracy(50_000, confidence=0.9).error <= 100
    size = getattr(wanted.budget, "epsilon", None) or wanted.budget.rho
    smaller = (
        replace(
            wanted.budget, **{"rho" if isinstance(wanted.budget, ZCDP) else "epsilon": size * Fraction(9, 10)}
        )
        if not isinstance(wanted.budget, ApproxDP)
        else ApproxDP(size * Fraction(9, 10), wanted.budget.delta)
    )
    assert bound(plan, 0, smaller).accuracy(50_000, confidence=0.9).error > 100
    assert total([wanted.budget, rest.budget]) == plan.budget.value


def test_a_wanted_rank_error_of_quantiles_in_groups_is_kept():
    lines = 'statistic = "median"\ncolumn = "salary"\ngroup_by = ["region"]\nn_hint = 1_000'
    plan = asking(f"{lines}\naccuracy.rank_error = 150", MEAN)
    (wanted, _) = questions(plan)
    query = bound(plan, 0, wanted.query.budget)
    assert query.accuracy(1_000).rank_error <= 150
    assert query.changes == 2


def test_a_wanted_accuracy_without_a_number_of_rows_says_what_to_give():
    text = asking(MEAN).text.replace("rows = 50_000\n", "") + "accuracy.error = 100\n"
    from sfumato.plan import parse

    with pytest.raises(
        PlanError, match=r"accuracy: needs the number of rows: give rows in \[data\], or n_hint"
    ):
        questions(parse(text.replace('neighbours = "substitution"', 'neighbours = "add-remove"')))


def test_accuracies_out_of_reach_say_what_could_be_reached():
    plan = asking(f"{MEAN}\naccuracy.error = 1", budget="epsilon = 0.5")
    with pytest.raises(
        PlanError, match=r"needs epsilon \d+.*, but 0\.5 of 0\.5 is left for it, with which error = 29"
    ):
        questions(plan)
    two = asking(*[f"{MEAN}\naccuracy.error = 20"] * 2, budget="epsilon = 1")
    with pytest.raises(PlanError, match=r"queries\.2\.accuracy: needs epsilon"):
        questions(two)


def test_the_true_number_of_rows_is_refused_where_it_is_private():
    plan = asking(f"{MEAN}\naccuracy.error = 100", neighbours="add-remove")
    with pytest.raises(InvalidParameter, match="the number of rows is private here"):
        questions(plan, rows=50_000)


SHARES = st.lists(st.one_of(st.none(), st.integers(1, 999)), min_size=1, max_size=6)


@settings(max_examples=40)
@given(SHARES, st.integers(1, 10**6), st.sampled_from(["epsilon", "rho", "delta"]))
def test_parts_never_pass_the_budget_and_meet_it_where_all_is_given_out(thousandths, size, kind):
    shares_asked = [None if each is None else Fraction(each, 1000) for each in thousandths]
    asked = sum((each for each in shares_asked if each is not None), Fraction(0))
    budget = {"delta": f"epsilon = {size / 1000}\ndelta = 1e-7"}.get(kind, f"{kind} = {size / 1000}")
    queries = [f"{MEAN}\nshare = {float(each)}" if each is not None else MEAN for each in shares_asked]
    plan = asking(*queries, budget=budget)
    all_given = None in shares_asked or asked == 1
    if asked > 1 or (asked == 1 and None in shares_asked):
        with pytest.raises(PlanError, match="share"):
            allocate(plan)
        return
    allocation = allocate(plan)
    whole = plan.budget.value
    given_out = whole if all_given else whole.share(asked)
    if kind == "delta":
        grown = [part.epsilon / allocation.factor for part in allocation.budgets]
        assert sum(grown) == given_out.epsilon
        assert sum(part.delta for part in allocation.budgets) <= whole.delta
    else:
        assert total(allocation.budgets) == given_out
        assert allocation.factor == 1
    for share, part in zip(shares_asked, allocation.budgets, strict=True):
        if share is not None and kind != "delta":
            assert part == whole.share(share)


def batch_of(plan):
    items = tuple(bound(plan, i, part) for i, part in enumerate(allocate(plan).budgets))
    return Batch(items, plan.data.neighbours, plan.budget.value)


@pytest.mark.parametrize(
    ("queries", "given_out"),
    [
        ([f"{MEAN}\nnoise = 'gaussian'"] * 4, 1),
        ([MEAN, COUNT, 'statistic = "deciles"\ncolumn = "salary"\ngroup_by = ["region"]'] * 10, 1),
        ([f"{MEAN}\naccuracy.error = 500", *[MEAN] * 39], 1),
        ([f"{MEAN}\nshare = 0.02"] * 40, Fraction(4, 5)),
    ],
)
def test_with_a_delta_shares_grow_and_the_batch_still_costs_at_most_what_was_given_out(queries, given_out):
    plan = asking(*queries, budget="epsilon = 1\ndelta = 1e-6")
    allocation = allocate(plan)
    whole = plan.budget.value
    assert allocation.factor > 1
    batch = batch_of(plan)
    assert batch.cost.epsilon <= given_out
    assert batch.cost.delta <= whole.delta
    assert compose([batch.event], delta=whole.delta).epsilon <= given_out
    assert batch.composition != "sum of epsilon and delta"
    for i, query in enumerate(plan.queries):
        if query.accuracy is not None:
            # A wanted accuracy is not made better at the cost of the others.
            assert allocation.budgets[i].epsilon < Fraction(1, 10)


def test_two_hundredths_more_would_cost_too_much():
    plan = asking(*[MEAN] * 40, budget="epsilon = 1\ndelta = 1e-6")
    allocation = allocate(plan)
    more = allocation.factor * Fraction(102, 100)
    part = ApproxDP(Fraction(1, 40) * more, Fraction(1, 40 * 10**6))
    events = [bound(plan, i, part).event for i in range(40)]
    assert compose(events, delta=plan.budget.value.delta).epsilon > 1


def test_the_search_is_short_and_the_same_each_time(monkeypatch):
    calls = []
    monkeypatch.setattr(
        shares, "compose", lambda events, delta: calls.append(1) or compose(events, delta=delta)
    )
    first, second = (asking(*[MEAN] * 40, budget="epsilon = 1\ndelta = 1e-6") for _ in range(2))
    found = allocate(first)
    assert 0 < len(calls) <= shares.MOST_EVALUATIONS
    assert allocate(second) == found


def test_what_was_divided_once_is_kept_for_the_same_rows_and_budget(monkeypatch):
    divided = []
    found = shares._divided
    monkeypatch.setattr(shares, "_divided", lambda *facts: divided.append(facts[-1]) or found(*facts))
    plan = asking(f"{MEAN}\naccuracy.error = 100", MEAN)
    check(plan)
    preview(plan)
    parts = [question.query.budget for question in questions(plan, rows=50_000)]
    assert divided == [50_000]
    # Other rows or another budget are another matter.
    assert allocate(plan, 90_000).budgets[0] != parts[0]
    assert allocate(plan, None, PureDP(2)).budgets[1] != parts[1]
    assert divided == [50_000, 90_000, 50_000]
    assert [*allocate(plan).budgets] == parts


def test_one_query_alone_does_not_grow():
    assert allocate(asking(MEAN, budget="epsilon = 1\ndelta = 1e-6")).factor == 1


# Mutants: what the checks above would notice.


def test_a_mutant_that_does_not_check_the_sum_of_shares_is_noticed(monkeypatch):
    plan = asking(f"{MEAN}\nshare = 0.6", f"{MEAN}\nshare = 0.6")
    with pytest.raises(PlanError, match=r"queries\.2\.share: shares must add up to at most 1"):
        allocate(plan)

    def unchecked(plan, whole, paying, rows):
        return {i: Fraction(plan.queries[i].share) * whole.epsilon for i in paying}, dict.fromkeys(
            paying, Fraction(0)
        )

    monkeypatch.setattr(shares, "_divided", unchecked)
    assert not total(allocate(plan).budgets).fits(plan.budget.value)


def test_a_mutant_that_rounds_parts_up_is_noticed():
    plan = asking(*[MEAN] * 3, budget="epsilon = 0.1")
    exact = [part.epsilon for part in allocate(plan).budgets]
    rounded = [Fraction(str(round(float(part) + 5e-7, 6))) for part in exact]
    assert sum(exact) == Fraction(1, 10)
    assert sum(rounded) > Fraction(1, 10)


def test_a_mutant_that_ignores_a_wanted_accuracy_is_noticed(monkeypatch):
    plan = asking(f"{MEAN}\naccuracy.error = 100", *[MEAN] * 99, budget="epsilon = 1")
    monkeypatch.setattr(shares, "_needed", lambda plan, index, budget, rows: Fraction(1, 100))
    ignored = bound(plan, 0, allocate(plan).budgets[0])
    assert ignored.accuracy(50_000).error > 100


def test_a_mutant_that_does_not_check_what_it_grew_is_noticed(monkeypatch):
    plan, again = (asking(*[MEAN] * 40, budget="epsilon = 1\ndelta = 1e-6") for _ in range(2))
    assert batch_of(plan).cost.epsilon <= 1
    monkeypatch.setattr(shares._Growth, "factor", lambda self: Fraction(3))
    assert batch_of(again).cost.epsilon > 1
