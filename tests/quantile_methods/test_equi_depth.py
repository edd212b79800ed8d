"""Leaves of equal depth: their edges, heaps inside them, intervals on any data, and errors."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.quantile_methods.cases import RELATIONS, ask

from sfumato.data.admission import admit
from sfumato.errors import InvalidParameter
from sfumato.laws import SeededBits
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.quantile_methods import EquiDepth, Quantiles, equi_depth
from sfumato.quantile_methods.equi_depth import edges
from sfumato.quantile_methods.node_counts import NodeCounts
from sfumato.quantile_methods.recursive import Recursive
from sfumato.query import raw

F = Fraction
PERCENTS = tuple(F(i, 100) for i in range(1, 100))


def asked(values: np.ndarray, relation: str = "substitution", **options: Any) -> Quantiles:
    """Percentiles of values between 0 and 100, bound to their number or with it as a hint."""
    size = {"rows": len(values)} if relation == "substitution" else {"n_hint": len(values)}
    given = {"method": EquiDepth(), "budget": PureDP(1), "bounds": (0, 100), "nulls": "lower", "step": None}
    return ask(probs=PERCENTS, neighbours=relation, **(size | given | options))


def drawn(query: Quantiles, values: np.ndarray, runs: int) -> list[Any]:
    law, bits = query.law(query.look(admit(values))), SeededBits(1)
    return [raw(law.sample(bits)) for _ in range(runs)]


def errors(query: Quantiles, values: np.ndarray, outcome: Any) -> np.ndarray:
    """How many ranks each answer is from its target."""
    ordered, answers = np.sort(values), query.value(outcome)
    targets = np.array([float(q) for q in query.asked]) * len(values)
    below, upto = (np.searchsorted(ordered, answers, side=side) for side in ("left", "right"))
    return np.maximum(np.maximum(below - targets, targets - upto), 0)


def mean_error(query: Quantiles, values: np.ndarray, runs: int = 12) -> float:
    return float(np.mean([errors(query, values, outcome).mean() for outcome in drawn(query, values, runs)]))


RNG = np.random.default_rng(3)
UNIFORM = RNG.random(10_000) * 100
LOGNORMAL = RNG.lognormal(0, 1, 10_000)
WAGES = RNG.lognormal(3, 0.5, 10_000)
HEAPED = np.clip(np.where(RNG.random(10_000) < 0.6, 5 * np.round(WAGES / 5), WAGES), 0, 100)
SHAPES = {
    "uniform": UNIFORM,
    "lognormal": LOGNORMAL,
    "heaped": HEAPED,
    "constant": np.full(3000, 35.0),
    "at a bound": np.full(3000, 100.0),
    "zeros": np.where(RNG.random(3000) < 0.7, 0.0, RNG.exponential(10, 3000)),
    "a gap": np.where(np.arange(3000) % 2, RNG.random(3000) * 10, 90 + RNG.random(3000) * 10),
    "odd heaps": np.repeat([10.37, 20.11, 50.003, 99.7], [500, 1500, 500, 500]),
}


# --- edges ----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), min_size=1, max_size=15), st.sampled_from([1, 4]))
def test_a_cell_that_is_drawn_several_times_is_a_leaf_of_its_own(cells, subcells):
    cells = sorted(cells)
    found = edges(tuple(subcells * cell + subcells - 1 for cell in cells), subcells).tolist()
    assert len(found) == len(cells)
    assert found == sorted(found)
    for cell in set(cells):
        assert cell in found
        if cells.count(cell) > 1:
            assert cell + 1 in found
    assert set(found) <= set(cells) | {cell + 1 for cell in cells if cells.count(cell) > 1}


@given(st.integers(-300, 300), st.integers(1, 60), st.sampled_from([F(1), F(1, 4), F(1, 10), F(7, 3)]))
def test_the_point_of_a_heap_is_the_roundest_number_of_its_leaf(begin, width, step):
    lower = -400 * step
    facts = ask(bounds=(lower, lower + 800 * step), step=step, rows=5).facts
    low = begin + 400
    found = equi_depth._roundest(low, low + width, facts)
    cell = (found - facts.grid.lower) / step
    assert low <= cell < low + width

    def roundness(number: Fraction) -> Fraction:
        """The largest of 1, 2, 5, 10, ... that divides the number."""
        sizes = [F(digit) * F(10) ** power for power in range(-6, 4) for digit in (1, 2, 5)]
        return max((size for size in sizes if not number % size), default=F(0))

    if step.denominator in (1, 10):
        every = [facts.grid.value(each) for each in range(low, low + width)]
        if F(0) not in every:
            assert roundness(found) == max(roundness(number) for number in every)
        else:
            assert found == 0


def test_a_leaf_without_points_is_answered_where_it_begins():
    facts = ask(bounds=(0, 100), step=1, rows=5).facts
    assert [equi_depth._roundest(cell, cell, facts) for cell in (0, 37, 101)] == [0, 37, 100]


def test_leaves_beyond_the_values_are_cut_towards_the_middle():
    even = [*range(0, 330, 10)]
    assert equi_depth._spans(even) == list(pairwise(even))
    # The last two edges were drawn far away.
    astray = [*even[:-2], 5000, 10**6]
    assert equi_depth._spans(astray)[-2:] == [(300, 330), (5000, 5090)]
    mirrored = [10**6 - end for end in reversed(astray)]
    assert equi_depth._spans(mirrored)[:2] == [(994910, 995000), (999670, 999700)]
    # A heap in the middle tells nothing of the other values.
    heap = [0] * 30 + [50, 700, 1000]
    assert equi_depth._spans(heap) == list(pairwise(heap))


@given(st.lists(st.integers(0, 500), min_size=3, max_size=15), st.sampled_from([1, 2, 4, 16]))
def test_each_leaf_has_as_many_parts_between_its_own_edges(inner, parts):
    ends = [0, *sorted(inner), 500]
    found = equi_depth._divided(ends, parts)
    assert found == sorted(found)
    assert len(found) == parts * (len(ends) - 1) + 1
    assert found[::parts] == ends


@pytest.mark.parametrize("relation", RELATIONS)
def test_parts_of_leaves_answer_many_values_at_a_large_budget_better(relation):
    values = np.random.default_rng(7).lognormal(0, 1, 200_000)
    given = {"bounds": (0, 1000), "budget": PureDP(10)}
    chosen = asked(values, relation, **given)
    whole = asked(values, relation, **given, method=EquiDepth(parts=1))
    assert chosen.resolved_by().resolved.method.parts > 1
    assert mean_error(chosen, values, 4) < 0.95 * mean_error(whole, values, 4)


def test_on_skewed_data_with_vague_bounds_edges_that_went_astray_do_little_harm(monkeypatch):
    values = np.random.default_rng(1).lognormal(0, 1, 1000)
    query = asked(values, "add-remove", bounds=(0, 1000))
    cut = mean_error(query, values, 30)
    monkeypatch.setattr(equi_depth, "STEEPER", 10**9)
    assert cut < 0.85 * mean_error(query, values, 30)


# --- public facts ---------------------------------------------------------------------------------


def test_more_values_buy_more_leaves_for_a_smaller_share_and_data_decide_nothing():
    # Nodes halve their leaves, so that all of them lose as much with each rank.
    known = ask(probs=PERCENTS, bounds=(0, 1), step=None, rows=10**5).facts
    for relation in RELATIONS:
        for budget in (PureDP(1), ZCDP(0.1)):
            facts = replace(known, budget=budget, replaces=relation == "substitution")
            falls = Recursive().constants(EquiDepth().first(facts))
            assert EquiDepth().plan(facts).fall == pytest.approx(float(min(falls)), rel=1e-9)
    plans = [
        EquiDepth().plan(ask(probs=PERCENTS, bounds=(0, 1), step=None, rows=10**k).facts) for k in range(4, 8)
    ]
    assert [plan.leaves for plan in plans] == sorted(plan.leaves for plan in plans)
    assert [plan.share for plan in plans] == sorted((plan.share for plan in plans), reverse=True)
    assert all(plan.error < math.inf for plan in plans)


def test_few_values_at_a_small_budget_are_known_not_to_be_enough():
    facts = ask(probs=PERCENTS, bounds=(0, 1), step=None, rows=300).facts
    assert not EquiDepth().finds_its_way(facts)
    assert EquiDepth().finds_its_way(replace(facts, budget=PureDP(20)))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1)], ids=str)
def test_no_number_of_leaves_draws_more_than_was_foreseen(budget, relation):
    facts = ask(probs=PERCENTS, neighbours=relation, budget=budget, n_hint=10**7, rows=10**7).facts
    every = [
        EquiDepth(leaves=leaves, parts=parts) for leaves in equi_depth.LEAVES for parts in equi_depth.PARTS
    ]
    most = [
        method.most_drawn(facts) for method in every if method.leaves * method.parts <= equi_depth.MOST_PARTS
    ]
    assert equi_depth.MOST_DRAWN * 0.8 < max(most) <= equi_depth.MOST_DRAWN


@pytest.mark.parametrize(
    "options", [{"parts": 0}, {"parts": 17}, {"share": 0}, {"share": 1}, {"branching": 1}], ids=str
)
def test_parts_shares_and_branchings_out_of_range_are_refused(options):
    with pytest.raises(InvalidParameter, match=f"^{next(iter(options))} must be"):
        EquiDepth(**options)


@pytest.mark.parametrize("leaves", [0, 1, 3, 2.5, 4096, "many", True])
def test_numbers_of_leaves_that_are_no_powers_of_two_are_refused(leaves):
    with pytest.raises(InvalidParameter, match="leaves"):
        EquiDepth(leaves=leaves)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6), ApproxDP(0.1, 1e-2)], ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
def test_both_parts_cost_the_budget(budget, relation):
    query = asked(UNIFORM, relation, budget=budget)
    assert query.cost.epsilon <= budget.epsilon if hasattr(query.cost, "epsilon") else query.cost == budget
    (outcome,) = drawn(query, UNIFORM, 1)
    assert query.possible(outcome)
    assert len(outcome) == query.parts_drawn
    assert not query.possible(outcome[:-1])
    assert not query.possible((*outcome[:-1], 2**61))


# --- intervals and errors -------------------------------------------------------------------------


def coverage(query: Quantiles, values: np.ndarray, runs: int) -> float:
    """How often all intervals hold together."""
    truth = np.sort(values)[[math.ceil(q * len(values)) - 1 for q in query.asked]]
    held = []
    for outcome in drawn(query, values, runs):
        low, high = query.interval(outcome, 0.8)
        held.append(bool(((low - 1e-9 <= truth) & (truth <= high + 1e-9)).all()))
    return float(np.mean(held))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_and_rank_errors_hold_on_any_data(shape, relation):
    values = SHAPES[shape]
    query = asked(values, relation, budget=PureDP(2))
    assert coverage(query, values, 30) >= 0.8
    limit = query.rank_error(0.8)
    worst = [errors(query, values, outcome).max() for outcome in drawn(query, values, 30)]
    assert np.mean(np.array(worst) <= limit) >= 0.8


def test_a_preview_says_how_wide_intervals_will_be():
    for relation in RELATIONS:
        query, ordered = asked(UNIFORM, relation), np.sort(UNIFORM)
        said = query.accuracy(len(UNIFORM)).interval_ranks
        found = []
        for outcome in drawn(query, UNIFORM, 12):
            low, high = (np.searchsorted(ordered, end) for end in query.interval(outcome, 0.95))
            found.append((high - low).mean())
        assert np.mean(said) == pytest.approx(np.mean(found), rel=0.15)


def test_intervals_without_the_noise_of_the_counts_fail(monkeypatch):
    query = asked(UNIFORM)
    assert coverage(query, UNIFORM, 20) >= 0.8
    monkeypatch.setattr(NodeCounts, "error", lambda *_: 0.0)
    assert coverage(query, UNIFORM, 20) < 0.2


def test_many_orders_are_nearer_than_by_any_draw():
    for values in (UNIFORM, LOGNORMAL):
        found = mean_error(asked(values, "add-remove"), values)
        others = [
            mean_error(asked(values, "add-remove", method=name), values) for name in ("recursive", "joint")
        ]
        assert found < 0.85 * min(others)


def test_heaps_are_found_by_their_numbers(monkeypatch):
    query = asked(HEAPED, "add-remove")
    found = mean_error(query, HEAPED)
    others = asked(HEAPED, "add-remove", method=Recursive(emphasis=Fraction(0)))
    assert found < 0.5 * mean_error(others, HEAPED)
    monkeypatch.setattr(equi_depth, "HEAPED", math.inf)
    assert mean_error(query, HEAPED) > 2 * found


def test_nobody_is_answered_in_the_middle():
    query = asked(np.zeros(0), "add-remove", n_hint=1000, budget=PureDP(50))
    (outcome,) = drawn(query, np.zeros(0), 1)
    answers = query.value(outcome)
    assert ((answers >= 0) & (answers <= 100)).all()
    low, high = query.interval(outcome, 0.95)
    assert (low <= answers).all()
    assert (answers <= high).all()
