"""Verified quantiles: intervals that hold on any data, and what they cost."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.laws import SeededBits
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.quantile_methods import Joint, interpolated, thresholds, verified, walks
from sfumato.quantile_methods.framed import Framed
from sfumato.quantile_methods.verified import Verified
from sfumato.query import raw

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
ISSUE = np.repeat([10.0, 20.0, 50.0, 100.0], [167, 500, 167, 167])
DATA = {
    "four heaps": ISSUE,
    "a gap": np.concatenate([np.linspace(0, 10, 500), np.linspace(90, 100, 501)]),
    "all at the upper bound": np.full(1001, 100.0),
    "all at the lower bound": np.zeros(1001),
    "all in the middle": np.full(1001, 35.0),
    "70 % zeros": np.concatenate([np.zeros(700), np.geomspace(1, 100, 301)]),
    "smooth": np.linspace(0, 100, 1001),
    "few": np.repeat([20.0, 50.0], [15, 16]),
    "one": np.array([50.0]),
}
BUDGETS = {"pure": PureDP(1), "approximate": ApproxDP(1, 1e-6), "concentrated": ZCDP(0.1)}


def query(values: np.ndarray, **options: Any) -> sf.Quantiles:
    relation = options.pop("neighbours", "substitution")
    public = {"rows": len(values)} if relation == "substitution" else {"n_hint": len(values)}
    about: dict[str, Any] = {
        "probs": QUARTILES,
        "budget": PureDP(1),
        "bounds": (0, 100),
        "nulls": "lower",
        "verify": "auto",
        "neighbours": relation,
        **public,
        **options,
    }
    return sf.Quantiles(**about)


def truth(values: np.ndarray, asked: sf.Quantiles) -> np.ndarray:
    ordered = np.sort(values)
    return ordered[[max(math.ceil(q * len(values)), 1) - 1 for q in asked.asked]]


def drawn(asked: sf.Quantiles, values: np.ndarray, runs: int, seed: int = 1) -> list[tuple[int, ...]]:
    law, bits = asked.law(asked.look(admit(values))), SeededBits(seed)
    return [raw(law.sample(bits)) for _ in range(runs)]


def covered(asked: sf.Quantiles, values: np.ndarray, runs: int = 200) -> float:
    wanted = truth(values, asked)
    held = []
    for outcome in drawn(asked, values, runs):
        low, high = asked.interval(outcome, 0.95)
        held.append((low <= wanted) & (wanted <= high))
    return float(np.mean(held, axis=0).min())


@pytest.mark.parametrize("relation", ["substitution", "add-remove"])
@pytest.mark.parametrize("name", DATA)
def test_intervals_hold_on_all_kinds_of_data(name, relation):
    assert covered(query(DATA[name], neighbours=relation), DATA[name]) >= 0.95 - 2 * 0.0154


def test_the_interval_by_slopes_does_not_hold_on_heaps():
    # Else the test above could not fail.
    assert covered(query(ISSUE, verify=0, method=Joint(emphasis=Fraction(0))), ISSUE) < 0.2


@pytest.mark.parametrize("probs", [(Fraction(1, 2),), (Fraction(1, 10),), (Fraction(9, 10),)], ids=str)
def test_a_single_quantile_is_verified_too_and_its_interval_is_narrow(probs):
    values = np.linspace(0, 100, 20_001)
    asked = query(values, probs=probs)
    assert covered(asked, values) >= 0.95 - 2 * 0.0154
    low, high = asked.interval(drawn(asked, values, 1)[0], 0.95)
    assert (high - low < 10).all()
    method: Any = asked.chosen
    assert isinstance(method, Verified)
    assert isinstance(method.method, Framed)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("relation", ["substitution", "add-remove"])
def test_intervals_hold_under_all_budgets_and_cost_what_is_stated(budget, relation):
    asked = query(ISSUE, budget=budget, neighbours=relation)
    assert covered(asked, ISSUE, 100) >= 0.95 - 2 * 0.022
    event, method = asked.event, asked.chosen
    assert isinstance(method, Verified)
    if isinstance(asked.cost, PureDP):
        assert event.pure_epsilon == asked.cost.epsilon == 1
    else:
        assert asked.cost == budget


@pytest.mark.parametrize(
    "method", ["joint", "recursive", "independent", "interpolated", "inverse_sensitivity", "histogram"]
)
def test_every_method_with_bounds_is_verified(method):
    values = DATA["smooth"]
    assert covered(query(values, method=method), values, 60) >= 0.9


@pytest.mark.parametrize("relation", ["substitution", "add-remove"])
def test_few_values_for_the_budget_are_verified_only_if_that_is_asked_for(relation):
    values = DATA["smooth"][::5]
    few = query(values, neighbours=relation, budget=PureDP(Fraction(1, 10)))
    assert not few.resolved_by().resolved.verify
    assert few.divided == ""
    assert few.rank_error(0.95) == replace(few, verify=0).rank_error(0.95)
    # No interval by slopes stands in for it, which supposes that there are no gaps.
    heaps = np.repeat([20.0, 50.0], [100, 101])
    assert covered(few, heaps, 60) >= 0.95
    (outcome,) = drawn(few, heaps, 1)
    assert "cannot be verified by counts: the interval holds on any data" in few.notes(outcome)[-1]
    assert replace(few, verify=Fraction(1, 2)).resolved_by().resolved.verify == Fraction(1, 2)
    enough = query(values, neighbours=relation, budget=PureDP(1))
    assert enough.resolved_by().resolved.verify == Fraction(1, 2)


def test_a_count_decides_whether_values_are_few():
    asked = query(ISSUE, neighbours="add-remove", n_hint=None, budget=PureDP(Fraction(1, 10)))
    for values, share in ((np.full(20, 35.0), 0), (np.full(50_000, 35.0), Fraction(1, 2))):
        (outcome,) = drawn(asked, values, 1)
        assert asked.resolved_by(outcome).resolved.verify == share
        again = asked.resolved_by(outcome)
        assert again.value(outcome).tolist() == asked.value(outcome).tolist()
        low, high = again.interval(outcome, 0.95)
        assert ((low <= 35) & (high >= 35)).all()


def test_the_number_of_values_may_be_private_and_unknown():
    asked = query(ISSUE, neighbours="add-remove", n_hint=None, nulls="drop")
    values = np.concatenate([ISSUE, np.full(50, np.nan)])
    wanted = truth(ISSUE, asked)
    held = []
    for seed in range(60):
        (outcome,) = drawn(asked, values, 1, seed)
        low, high = asked.interval(outcome, 0.95)
        held.append((low <= wanted) & (wanted <= high))
    assert np.mean(held, axis=0).min() >= 0.9


def test_integers_have_intervals_that_end_at_integers():
    values = np.repeat([3, 4, 5], [300, 400, 300])
    data = sf.Dataset({"x": values}, unit="row", neighbours="substitution")
    asked = sf.Quantiles(column="x", probs=(0.5,), bounds=(0, 10), budget=PureDP(5), verify="auto")
    release = sf.Session(data, budget=PureDP(5), bits=SeededBits(1)).answer(asked)
    low, high = release.interval(0.95)
    assert low == high == release.value == 4


def test_a_value_lies_in_its_interval_and_values_do_not_decrease():
    for seed in range(20):
        asked = query(DATA["a gap"], probs=tuple(Fraction(i, 10) for i in range(1, 10)))
        (outcome,) = drawn(asked, DATA["a gap"], 1, seed)
        value: Any = asked.value(outcome)
        low, high = asked.interval(outcome, 0.95)
        assert ((low <= value) & (value <= high)).all()
        assert (np.diff(value) >= 0).all()
        assert (np.diff(low) >= 0).all()
        assert (np.diff(high) >= 0).all()


def test_surer_intervals_are_wider():
    asked = query(ISSUE)
    for outcome in drawn(asked, ISSUE, 20):
        ends = [asked.interval(outcome, level) for level in (0.5, 0.9, 0.95, 0.99, 0.999999)]
        for (low, high), (lower, higher) in itertools.pairwise(ends):
            assert (lower <= low).all()
            assert (high <= higher).all()


def test_population_intervals_hold_the_sample_too():
    asked = query(ISSUE)
    for neighbours in ("substitution", "add-remove"):
        asked = query(ISSUE, neighbours=neighbours)
        for outcome in drawn(asked, ISSUE, 20):
            low, high = asked.interval(outcome, 0.95)
            lower, higher = asked.population_interval(outcome, 0.95)
            assert (lower <= low).all()
            assert (high <= higher).all()


@pytest.mark.parametrize("relation", ["substitution", "add-remove"])
def test_an_outcome_has_the_length_that_is_stated_and_is_possible(relation):
    for values in DATA.values():
        asked = query(values, neighbours=relation)
        (outcome,) = drawn(asked, values, 1)
        assert len(outcome) <= asked.parts_drawn
        assert asked.possible(outcome)
        assert not asked.possible(outcome[:-1])
        method: Any = asked.chosen
        if isinstance(method, Verified) and method.positions(asked.facts):
            number = method.counted(asked.facts)
            swapped = (*outcome[:-number], -1, *outcome[-number + 1 :])
            assert not asked.possible(swapped)


def test_thresholds_follow_from_what_was_drawn_alone():
    # Two data sets, one outcome of the quantiles: the same thresholds.
    asked = query(ISSUE)
    method: Any = asked.chosen
    facts = asked.facts
    number = method.counted(facts)
    (outcome,) = drawn(asked, ISSUE, 1)
    own = outcome[:-number]
    laws = [asked.law(asked.look(admit(values))) for values in (ISSUE, DATA["smooth"])]
    assert laws[0].after(own).places == laws[1].after(own).places == outcome[-number:][: number // 2]


def test_bounds_without_values_have_intervals_between_the_bounds():
    asked = query(np.empty(0), rows=0)
    low, high = asked.interval(drawn(asked, np.empty(0), 1)[0], 0.95)
    assert (low <= high).all()
    assert (low >= 0).all()
    assert (high <= 100).all()


def test_people_with_several_rows_and_groups():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 3, 3000)
    table = {"x": rng.choice([10.0, 20.0, 50.0], 3000), "id": np.arange(3000) // 2, "g": group}
    data = sf.Dataset(
        table,
        unit="id",
        rows_per_unit=2,
        neighbours="add-remove",
        schema={"g": sf.Field(categories=(0, 1, 2))},
    )
    asked = sf.Quantiles(column="x", probs=QUARTILES, bounds=(0, 100), budget=PureDP(2), verify="auto")
    held = []
    for seed in range(20):
        session = sf.Session(data, budget=PureDP(2), bits=SeededBits(seed))
        for key, release in session.answer_by(asked, ["g"]).releases.items():
            low, high = release.interval(0.95)
            wanted = truth(table["x"][group == key[0]], asked)
            held.append((low <= wanted) & (wanted <= high))
        assert session.spent.epsilon == 2
    assert np.mean(held, axis=0).min() >= 0.9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"verify": "most"}, "verify must be 'auto' or a number"),
        ({"verify": 1}, "verify must be 0 or in"),
        ({"verify": -0.1}, "verify must be 0 or in"),
        ({"verify": math.nan}, "verify"),
        ({"verify": True}, "verify"),
        ({"verify": 0.2, "method": "tree"}, "verify must be 0 or 'auto' for the method 'tree'"),
        ({"verify": 0.2, "method": "equi_depth"}, "verify must be 0 or 'auto' for the method 'equi_depth'"),
        ({"verify": 0.2, "interval_share": 0.2}, "verify must be 0 or 'auto' with an interval_share"),
    ],
)
def test_wrong_shares_are_refused(options, words):
    with pytest.raises(sf.InvalidParameter, match=words):
        query(ISSUE, **options)


def test_a_method_that_tells_its_own_interval_is_not_verified():
    asked = query(ISSUE, method="tree")
    assert asked.chosen.name == "tree"
    # It needs no number of values for its interval either.
    private = query(ISSUE, method=sf.quantile_methods.Tree(leaves=16), neighbours="add-remove", n_hint=None)
    assert not private.in_two_steps


def test_a_walk_that_trusts_noise_is_found(monkeypatch):
    # On data whose quantiles lie just beside a heap's edge, a test without a margin fails often.
    values = np.repeat([10.0, 20.0], [499, 502])
    asked = query(values, probs=(Fraction(1, 2),), bounds=(0, 100))
    assert covered(asked, values) >= 0.95 - 2 * 0.0154
    monkeypatch.setattr(walks.Counted, "_sure", lambda self, spot, excess, failure: excess > 0)
    assert covered(asked, values) < 0.9


def test_half_of_the_budget_draws_several_quantiles_and_a_single_one_pays_for_outer_orders():
    assert left_to_the_quantiles(QUARTILES) == Fraction(1, 2)
    # With few values for the budget the outer orders are nearer, and cost more.
    assert left_to_the_quantiles((Fraction(1, 2),)) == Fraction(3, 5) * (1 - verified.MOST_OUTER)
    plenty = left_to_the_quantiles((Fraction(1, 2),), np.linspace(0, 100, 10**5))
    assert plenty == Fraction(3, 5) * (1 - verified.LEAST_OUTER)


def left_to_the_quantiles(probs: Any, values: np.ndarray = ISSUE) -> Fraction:
    """The part of an epsilon of 1 that draws the orders asked for."""
    asked = query(values, probs=probs)
    method: Any = asked.chosen
    own = method.own(asked.facts)
    return (method.method.own(own) if isinstance(method.method, Framed) else own).budget.epsilon


@pytest.mark.parametrize("relation", ["substitution", "add-remove"])
@pytest.mark.parametrize("probs", [(Fraction(1, 2),), QUARTILES], ids=["median", "quartiles"])
def test_answers_are_within_the_ranks_that_are_stated(relation, probs):
    for name in ("four heaps", "a gap", "smooth"):
        values = np.sort(DATA[name])
        asked = query(values, probs=probs, neighbours=relation)
        bound, step = asked.rank_error(0.95, len(values)), float(asked.facts.grid.step)
        targets = np.array([float(q) * len(values) for q in asked.asked])
        off = []
        for outcome in drawn(asked, values, 100):
            released = np.atleast_1d(asked.value(outcome))
            low = np.searchsorted(values, released - step, side="right")
            high = np.searchsorted(values, released + step, side="left")
            off.append(np.maximum(low - targets, targets - high).max())
        assert np.mean(np.array(off) <= bound) >= 0.95


def beyond(values: list[float], order: Fraction) -> float:
    """Where a threshold is placed by these quartiles, between the bounds 0 and 100."""
    found = thresholds._between(order, QUARTILES, [Fraction(v) for v in values], (Fraction(0), Fraction(100)))
    return float(found)


def test_thresholds_beyond_the_outer_orders_follow_the_last_gaps():
    step, sure = Fraction(1, 100), interpolated.SURE
    # Evenly spread values: 20 in value for a quarter of the data.
    assert beyond([20, 40, 60], QUARTILES[2] + step) == pytest.approx(60 + sure * 80 / 100)
    assert beyond([40, 60, 80], QUARTILES[0] - step) == pytest.approx(40 - sure * 80 / 100)
    # Gaps that double grow on by the root of 2; those that shrink do not shrink on.
    assert beyond([1, 11, 31], QUARTILES[2] + step) == pytest.approx(31 + sure * 2**0.5 * 80 / 100, rel=1e-3)
    assert beyond([10, 30, 40], QUARTILES[2] + step) == pytest.approx(40 + sure * 40 / 100)
    # Never more than three times as steep, and never beyond the bound.
    assert beyond([10, 11, 31], QUARTILES[2] + step) == pytest.approx(31 + 3 * 80 / 100)
    assert beyond([0, 45, 90], QUARTILES[2] + step) == pytest.approx(90 + 10 / 25)
    # A heap at the end tells nothing but its own place.
    assert beyond([10, 50, 50], QUARTILES[2] + step) == 50


def test_a_query_of_integers_is_bound_to_reals_anew():
    """An interval of integers ends at a point, and one of reals at the end of its cell."""
    integers, reals = (
        sf.Dataset(
            {"x": np.full(400, value)},
            unit="row",
            neighbours="substitution",
            schema={"x": sf.Field(bounds=(0, 100))},
        )
        for value in (30, 37.9)
    )
    for seed in range(10):
        asked = sf.Quantiles(probs=(0.5,), column="x", budget=PureDP(2))
        first = sf.Session(integers, budget=PureDP(2), bits=SeededBits(seed)).answer(asked)
        assert first.query.on_points
        again = sf.Session(reals, budget=PureDP(2), bits=SeededBits(seed)).answer(first.query)
        assert not again.query.on_points
        (low,), (high,) = again.interval(0.95)
        assert low <= 37.9 <= high


@pytest.mark.parametrize(
    ("budget", "verify"), [(ZCDP(100_000), 0.99), (PureDP(1_000), 0.5), (PureDP(100), "auto")]
)
def test_no_count_makes_an_outcome_longer_than_foretold(budget, verify):
    asked = sf.Quantiles(probs=QUARTILES, budget=budget, bounds=(-1, 1), step=Fraction(1, 10), verify=verify)
    for values in (np.array([], dtype=np.int64), np.arange(5) - 2, np.zeros(40, dtype=np.int64)):
        bound = asked.bind(admit(values), sf.Field(), "add-remove")
        (outcome,) = drawn(bound, values, 1)
        assert len(outcome) <= bound.parts_drawn


def test_a_share_verifies_no_more_orders_than_an_answer_takes_seconds_for():
    probs = [Fraction(i, 300) for i in range(1, 300)]
    with pytest.raises(sf.InvalidParameter, match="more than 256 orders"):
        sf.Quantiles(probs=probs, budget=PureDP(1), bounds=(0, 1), verify=0.5)
    assert sf.Quantiles(probs=probs, budget=PureDP(1), bounds=(0, 1)).verify == "auto"
