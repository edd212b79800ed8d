"""A budget over several queries: parts that add up exactly, errors that are balanced, no better division."""

import importlib
import itertools
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Dataset, Field, Session
from sfumato.accuracy import Accuracy, Scenario, Split, split
from sfumato.errors import InvalidParameter
from sfumato.laws import SeededBits
from sfumato.privacy import ZCDP, Amount, ApproxDP, Budget, PureDP
from sfumato.quantile_methods import Quantiles
from sfumato.statistics import Count, Histogram, Mean, Proportion, Sum, Variance

ROWS = 10_000
DECILES = tuple(order / 10 for order in range(1, 10))
BUDGETS = [PureDP(1), ApproxDP(1, 1e-6), ZCDP(0.5)]
RELATIONS = [("substitution", "lower"), ("add-remove", None)]
GOALS = ["equal", "worst"]
# The module; the name in the package is that of the function.
MODULE = importlib.import_module("sfumato.accuracy.split")


def plan(budget, neighbours, nulls):
    facts = {"budget": budget, "neighbours": neighbours, "nulls": nulls}
    queries = [
        Count(equals="a", **facts),
        Sum(bounds=(0, 100), **facts),
        Mean(bounds=(0, 100), **facts),
        Proportion(**facts),
        Histogram(bins=5, bounds=(0, 9), **facts),
        Variance(bounds=(0, 100), **facts),
        Quantiles(probs=DECILES, bounds=(0, 100), **facts),
    ]
    return queries, [20, 5000, 0.5, 0.005, 20, 20, 200]


def adds_up(parts):
    """Whether the budgets of all queries that cost something are exactly the whole."""
    paid = [query.budget for query in parts.queries if query.cost != Amount()]
    whole = paid[0]
    for budget in paid[1:]:
        whole = whole + budget
    return whole == parts.budget


def balanced(parts, *, step=1.15):
    """Whether all relative errors are about equal; a count is balanced up to a step of its noise."""
    return max(parts.relative) <= step * min(parts.relative)


@pytest.mark.parametrize(("neighbours", "nulls"), RELATIONS)
@pytest.mark.parametrize(
    ("budget", "goal"),
    [*itertools.product([PureDP(1), ZCDP(0.5)], GOALS), (ApproxDP(1, 1e-6), "equal")],
    ids=repr,
)
def test_parts_add_up_and_errors_are_balanced(budget, neighbours, nulls, goal):
    queries, scales = plan(budget, neighbours, nulls)
    parts = split(queries, budget, scales=scales, n=ROWS, goal=goal)
    assert isinstance(parts, Split)
    assert adds_up(parts)
    assert sum(parts.shares) == 1
    assert [query.budget for query in parts.queries] == [budget.share(share) for share in parts.shares]
    assert [replace(query, budget=budget) for query in parts.queries] == queries
    if goal == "equal":
        assert balanced(parts)
    for query, accuracy, relative, scale in zip(
        parts.queries, parts.accuracies, parts.relative, scales, strict=True
    ):
        assert accuracy == query.accuracy(ROWS)
        assert relative * scale == pytest.approx(accuracy.error if accuracy.errors else accuracy.rank_error)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_errors_without_steps_are_equal_to_a_part_in_a_thousand(budget, goal):
    facts = {"budget": budget, "neighbours": "substitution", "nulls": "lower"}
    queries = [Sum(bounds=(0, 100), **facts), Mean(bounds=(0, 7), **facts), Variance(bounds=(-5, 5), **facts)]
    parts = split(queries, budget, scales=[300, 0.01, 0.3], n=ROWS, goal=goal)
    assert max(parts.relative) < 1.002 * min(parts.relative)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.5)], ids=repr)
def test_no_division_on_a_fine_net_has_a_smaller_largest_error(budget):
    queries, scales = plan(budget, "substitution", "lower")
    queries, scales = queries[:3], [2, 300, 0.3]
    net = 60
    errors = [
        [
            replace(query, budget=budget.share(Fraction(i, net))).accuracy(ROWS).error / scale
            for i in range(1, net)
        ]
        for query, scale in zip(queries, scales, strict=True)
    ]
    best = min(
        max(errors[0][i - 1], errors[1][j - 1], errors[2][net - i - j - 1])
        for i, j in itertools.product(range(1, net), repeat=2)
        if i + j < net
    )
    for goal in GOALS:
        assert max(split(queries, budget, scales=scales, n=ROWS, goal=goal).relative) <= best * 1.001


def test_the_scale_says_what_matters():
    mean = Mean(bounds=(0, 100), budget=PureDP(1), neighbours="substitution", nulls="lower")
    parts = split([mean, mean, mean], PureDP(1), scales=[1, 2, 4], n=ROWS)
    assert parts.shares == pytest.approx([Fraction(4, 7), Fraction(2, 7), Fraction(1, 7)], rel=2e-3)
    assert [accuracy.error for accuracy in parts.accuracies] == pytest.approx(
        [accuracy.error * 2 ** (i - 1) for i, accuracy in enumerate([parts.accuracies[1]] * 3)], rel=3e-3
    )


def test_rhos_are_divided_by_the_square_of_the_wanted_error():
    mean = Mean(bounds=(0, 100), budget=ZCDP(1), neighbours="substitution", nulls="lower")
    parts = split([mean, mean], ZCDP(1), scales=[1, 2], n=ROWS)
    assert parts.shares == pytest.approx([0.8, 0.2], rel=2e-3)
    assert parts.notes == ()


# --- what cannot be equal ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Invented:
    """A query with any error as a function of epsilon."""

    error: object = field(hash=False)
    budget: Budget = PureDP(1)  # noqa: RUF009  reason: a budget is frozen
    name: str = "invented"
    column: str = "values"
    cost: object = None

    def accuracy(self, n=None, *, confidence=0.95, scenario=None):
        error = float(self.error(float(self.budget.epsilon)))
        return Accuracy(
            statistic=self.name, confidence=confidence, labels=("x",), errors=(error,), how="exact"
        )


def smooth(epsilon):
    return 1 / epsilon


def stepped(epsilon):
    return 2.0 if epsilon >= 0.5 else 8.0


def test_the_worst_goal_spends_on_others_what_a_step_cannot_use():
    # The step to 2 costs 0.5, which leaves smooth ones an error of 4: the largest is 4 with both goals.
    queries = [Invented(error=stepped), Invented(error=smooth), Invented(error=smooth)]
    equal, worst = (split(queries, PureDP(1), goal=goal) for goal in GOALS)
    assert max(equal.relative) == pytest.approx(4, rel=2e-3)
    assert max(worst.relative) == pytest.approx(4, rel=2e-3)
    # With 0.4 the step is out of reach: its error is 8 whatever it gets, and the others need 0.25 of it.
    equal, worst = (split(queries, PureDP(Fraction(2, 5)), goal=goal) for goal in GOALS)
    assert equal.relative[0] == worst.relative[0] == 8
    assert worst.relative[1:] == pytest.approx((5, 5), rel=2e-3)
    assert worst.shares[0] <= Fraction(1, 10**5)
    assert max(worst.relative) <= max(equal.relative)


def test_an_error_that_no_budget_lowers_takes_nothing_from_the_others():
    flat = Invented(error=lambda epsilon: 9.0)
    worst = split([flat, Invented(error=smooth), Invented(error=lambda e: 2 / e)], PureDP(1), goal="worst")
    assert worst.relative[0] == 9
    (note,) = worst.notes
    assert note.startswith("invented of values gets next to nothing")
    assert str(worst).endswith(f"note: {note}")
    assert worst.relative[1:] == pytest.approx((3, 3), rel=2e-3)


def test_an_error_without_bound_is_told_or_paid_for():
    endless = Invented(error=lambda epsilon: np.inf)
    for goal in GOALS:
        with pytest.raises(InvalidParameter, match="queries must have an error that some budget makes"):
            split([endless, Invented(error=smooth)], PureDP(1), goal=goal)
        late = Invented(error=lambda epsilon: 3.0 if epsilon > 0.6 else np.inf)
        parts = split([late, Invented(error=smooth)], PureDP(1), goal=goal)
        assert parts.relative == pytest.approx((3, 2.5), rel=0.2)


@given(
    st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=4), min_size=2, max_size=4),
    st.sampled_from(GOALS),
)
def test_of_staircases_the_largest_error_is_the_smallest_that_can_be_paid(prices, goal):
    # The error of a query falls by 1 at each of some prices, in fortieths of the budget.
    ladders = [sorted(set(steps)) for steps in prices]
    queries = [
        Invented(
            error=lambda epsilon, steps=tuple(steps): 5.0 - sum(epsilon * 40 >= step - 1e-9 for step in steps)
        )
        for steps in ladders
    ]
    parts = split(queries, PureDP(1), goal=goal)
    assert adds_up(parts)
    options = [[(0.01, 5), *((step, 4 - i) for i, step in enumerate(steps))] for steps in ladders]
    payable = [
        max(error for _, error in chosen)
        for chosen in itertools.product(*options)
        if sum(price for price, _ in chosen) <= 40
    ]
    assert max(parts.relative) == min(payable)


@given(st.integers(0, 10**6), st.floats(0.0, 2.0), st.sampled_from(GOALS))
def test_errors_that_are_not_monotone_get_no_worse_than_with_equal_parts(seed, noise, goal):
    def bumpy(which):
        def error(epsilon):
            place = int(np.log(epsilon) * 20) % 10**6
            return which * np.random.default_rng([seed, which, place]).uniform(1, 1 + noise) / epsilon

        return Invented(error=error)

    queries = [bumpy(1), bumpy(2), bumpy(3)]
    parts = split(queries, PureDP(1), goal=goal)
    assert adds_up(parts)
    # Thirds, and thirds as the decimals that the search starts from.
    thirds = [PureDP(third) for third in (Fraction(1, 3), Fraction("0.3333"))]
    equal = [max(replace(query, budget=third).accuracy().error for query in queries) for third in thirds]
    assert max(parts.relative) <= max(equal)


def test_what_is_free_gets_nothing():
    facts = {"budget": PureDP(1), "neighbours": "substitution", "nulls": "lower"}
    rows, mean = Count(**facts), Mean(bounds=(0, 1), **facts)
    for goal in GOALS:
        parts = split([rows, mean, mean], PureDP(1), n=ROWS, goal=goal)
        assert parts.shares == (0, Fraction(1, 2), Fraction(1, 2))
        assert parts.queries[0] is rows
        assert parts.relative[0] == 0
        assert adds_up(parts)
        assert "free" in str(parts)
    with pytest.raises(InvalidParameter, match="queries must cost something"):
        split([rows, rows], PureDP(1), n=ROWS)


@pytest.mark.parametrize("goal", GOALS)
def test_one_query_gets_all(goal):
    count = Count(budget=PureDP(9), neighbours="add-remove")
    parts = split([count], PureDP(Fraction(1, 3)), goal=goal)
    assert parts.shares == (1,)
    assert parts.queries[0].budget == PureDP(Fraction(1, 3))


def test_the_same_query_twice_gets_the_same_twice():
    for kind, neighbours in ((Mean, "substitution"), (Sum, "add-remove")):
        query = kind(bounds=(0, 10), budget=PureDP(1), neighbours=neighbours, nulls="lower")
        parts = split([query] * 4, PureDP(2), n=ROWS)
        assert parts.shares == (Fraction(1, 4),) * 4


@pytest.mark.parametrize("goal", GOALS)
def test_unequal_scales_of_many_orders_of_magnitude_are_served(goal):
    mean = Mean(bounds=(0, 1), budget=PureDP(1), neighbours="substitution", nulls="lower")
    parts = split([mean, mean], PureDP(1), scales=[1e-4, 1], n=10**6, goal=goal)
    assert adds_up(parts)
    assert balanced(parts, step=1.02)


# --- simulated ---------------------------------------------------------------------------------------


def test_errors_under_a_scenario_are_balanced_up_to_the_monte_carlo_error():
    pay = Scenario.named("lognormal", mu=10.4, sigma=0.5)
    facts = {"budget": PureDP(1), "neighbours": "substitution", "nulls": "lower", "rows": ROWS}
    queries = [
        Mean(bounds=(0, 200_000), **facts),
        # Thresholds that verify are public integers, which leap as the budget grows.
        Quantiles(probs=(0.25, 0.5, 0.75), bounds=(0, 200_000), verify=0, **facts),
    ]
    parts = split(queries, PureDP(1), scenarios=[None, pay])
    simulated = parts.accuracies[1]
    assert simulated.how == "simulated"
    assert adds_up(parts)
    assert abs(parts.relative[0] - parts.relative[1]) < 2 * simulated.monte_carlo
    ranks = split(queries, PureDP(1), scales=[1000, 50])
    assert ranks.relative[1] == ranks.accuracies[1].rank_error / 50


# --- mutants -----------------------------------------------------------------------------------------


def test_a_division_that_forgets_a_query_is_noticed(monkeypatch):
    queries, scales = plan(PureDP(1), "substitution", "lower")
    plain = MODULE._lowest
    monkeypatch.setattr(MODULE, "_lowest", lambda curves, room: [*plain(curves[:-1], room), curves[-1].low])
    assert not balanced(MODULE.split(queries, PureDP(1), scales=scales, n=ROWS))


def test_a_division_into_equal_parts_is_noticed(monkeypatch):
    queries, scales = plan(PureDP(1), "substitution", "lower")
    monkeypatch.setattr(MODULE, "_equal", lambda curves: [Fraction(1, len(curves))] * len(curves))
    assert not balanced(MODULE.split(queries, PureDP(1), scales=scales, n=ROWS))


def test_a_division_that_loses_what_is_left_is_noticed(monkeypatch):
    queries, scales = plan(PureDP(1), "substitution", "lower")
    monkeypatch.setattr(
        MODULE,
        "_filled",
        lambda curves, places: [curve.decimal(i) for curve, i in zip(curves, places, strict=True)],
    )
    assert not adds_up(MODULE.split(queries, PureDP(1), scales=scales, n=ROWS))


# --- use and refusals --------------------------------------------------------------------------------


def test_a_session_can_pay_for_all_parts_and_for_nothing_more():
    values = {"age": np.linspace(20, 60, ROWS), "pay": np.linspace(1000, 9000, ROWS)}
    schema = {"age": Field(bounds=(0, 100)), "pay": Field(bounds=(0, 10_000))}
    data = Dataset(values, unit="row", neighbours="substitution", schema=schema)
    facts = {"budget": PureDP(1), "neighbours": "substitution", "nulls": "lower"}
    queries = [
        Mean(column="age", bounds=(0, 100), **facts),
        Mean(column="pay", bounds=(0, 10_000), **facts),
        Quantiles(column="age", probs=(0.5,), bounds=(0, 100), **facts),
    ]
    parts = split(queries, PureDP(0.3), scales=[1, 100, 20], n=ROWS)
    with Session(data, budget=PureDP(0.3), bits=SeededBits(1)) as session:
        for query in parts.queries:
            session.answer(query)
        assert session.remaining == Amount()


MEAN = Mean(bounds=(0, 1), budget=PureDP(1), neighbours="add-remove")


@pytest.mark.parametrize(
    ("queries", "budget", "asked", "words"),
    [
        ([], PureDP(1), {}, "queries must be a list of 1 to 1000"),
        (MEAN, PureDP(1), {}, "queries must be a list"),
        ([MEAN, 3], PureDP(1), {}, "queries must be a statistic"),
        ([MEAN], 1, {}, "budget must be PureDP, ApproxDP or ZCDP"),
        ([MEAN], Amount(epsilon=1), {}, "budget must be PureDP, ApproxDP or ZCDP"),
        ([MEAN], PureDP(1), {"scales": [1, 2]}, "scales must be a list, one for each of 1"),
        ([MEAN], PureDP(1), {"scales": 2}, "scales must be a list, one for each of 1"),
        ([MEAN], PureDP(1), {"scales": [0]}, "scales must be positive"),
        ([MEAN], PureDP(1), {"scales": [float("nan")]}, "scales must be finite"),
        ([MEAN], PureDP(1), {"scenarios": []}, "scenarios must be a list"),
        ([MEAN], PureDP(1), {"scenarios": ["normal"]}, "scenario must be"),
        ([MEAN], PureDP(1), {"goal": "fair"}, "goal must be one of 'equal', 'worst'"),
        ([MEAN], PureDP(1), {"n": None}, "n must be given"),
        ([MEAN], PureDP(1), {"confidence": 2}, "confidence must be"),
        ([MEAN], PureDP(Fraction(1, 10**12)), {}, None),
        ([MEAN, MEAN], PureDP(Fraction(1, 10**12)), {}, "epsilon must be in"),
    ],
)
def test_what_makes_no_sense_is_refused(queries, budget, asked, words):
    asked = {"n": 9, **asked}
    if words is None:
        assert split(queries, budget, **asked).shares == (1,)
        return
    with pytest.raises(InvalidParameter, match=words):
        split(queries, budget, **asked)


def test_scales_may_be_an_array_and_a_table_is_printed():
    parts = split([MEAN, replace(MEAN, column="a\nb")], ZCDP(1), scales=np.array([1.0, 1.0]), n=ROWS)
    title, header, *rows = str(parts).splitlines()
    assert title == "ZCDP(rho=1.0) in 2 parts"
    assert header.split() == ["rho", "error", "relative"]
    assert [row.split()[:4] for row in rows] == [
        ["mean", "of", "values", "0.5"],
        ["mean", "of", "a\\nb", "0.5"],
    ]
    assert repr(parts) == str(parts)
