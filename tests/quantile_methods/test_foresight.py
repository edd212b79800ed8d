"""The accuracy of quantiles before they are paid for, against enumeration, fresh releases and bounds."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import sfumato as sf
from sfumato.accuracy import Scenario
from sfumato.front.gate import answer
from sfumato.laws import SeededBits
from sfumato.quantile_methods import METHODS, foresight

SALARIES = Scenario.named("lognormal", mu=10.4, sigma=0.5)
PUBLIC = {"neighbours": "substitution", "nulls": "lower"}
PRIVATE = {"neighbours": "add-remove"}


def query(count=1, epsilon=1, **facts):
    given = {
        "budget": sf.PureDP(epsilon),
        "probs": [Fraction(i, count + 1) for i in range(1, count + 1)],
        "bounds": (0, 250_000),
        "step": Fraction(1, 4),
        "column": "salary",
        "verify": 0,  # tests/quantile_methods/test_foreseen_width.py has verified ones
        **PRIVATE,
        **facts,
    }
    return sf.Quantiles(**given)


def enumerated(asked, values, confidence):
    """The exact figures in ranks and in value, from the probability of every point."""
    data = np.clip(np.sort(values), float(asked.lower), float(asked.upper))
    law = asked.law(asked.look(sf.data.admission.admit(data)))
    (order,) = asked.orders
    grid, size = asked.facts.grid, len(data)
    cells = np.sort(grid.index(data))
    truth = data[max(math.ceil(order * size), 1) - 1]
    found = []
    for point in range(grid.cells):
        low, high = np.searchsorted(cells, point, "left"), np.searchsorted(cells, point, "right")
        off = max(low - order * size, order * size - high, 0)
        found.append((float(off), abs(float(grid.value(point)) - truth), math.exp(law.logpmf((point,)))))
    figures = []
    for part in (0, 1):
        ordered = sorted((item[part], item[2]) for item in found)
        shares = np.cumsum([share for _, share in ordered])
        figures.append(ordered[int(np.searchsorted(shares, confidence))][0])
    return figures


SMALL = [
    ([1, 2, 2, 5, 9, 9, 14], Fraction(1, 2)),
    ([0.5, 3.25, 7.75, 15, 40], Fraction(1, 3)),
    ([3] * 6, Fraction(9, 10)),
    ([0, 15, 15, 15], Fraction(1, 5)),
    ([7], Fraction(1, 2)),
]


@pytest.mark.parametrize("facts", [PUBLIC, PRIVATE], ids=["substitution", "add-remove"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), 2])
@pytest.mark.parametrize(("values", "order"), SMALL)
def test_one_quantile_of_a_public_data_set_is_foreseen_exactly(values, order, epsilon, facts):
    asked = query(epsilon=epsilon, probs=[order], bounds=(0, 15), step=1, **facts)
    asked = replace(asked, rows=len(values)) if facts is PUBLIC else asked
    scenario = Scenario.of_data(values)
    for confidence in (0.5, 0.8, 0.95):
        found = asked.accuracy(len(values), confidence=confidence, scenario=scenario)
        ranks, error = enumerated(asked, np.array(values, dtype=float), confidence)
        assert found.how == "exact"
        assert found.rank_error == pytest.approx(ranks, abs=1e-9)
        assert found.error == pytest.approx(error, abs=1e-9)
        assert found.monte_carlo == 0


def test_the_enumeration_notices_a_figure_for_another_budget():
    values, scenario = np.array([1, 2, 2, 5, 9, 9, 14], dtype=float), None
    scenario = Scenario.of_data(values)
    asked = query(bounds=(0, 15), step=1)
    other = replace(asked, budget=sf.PureDP(2))
    found = [other.accuracy(7, confidence=c, scenario=scenario) for c in (0.5, 0.8, 0.95)]
    exact = [enumerated(asked, values, c) for c in (0.5, 0.8, 0.95)]
    assert [(f.rank_error, f.error) for f in found] != [tuple(e) for e in exact]


def fresh(asked, size, sets, each, seed):
    """Errors of releases on fresh data: nothing of the code under test but the query itself."""
    rng, bits = np.random.default_rng(seed), SeededBits(seed)
    ranks, errors = [], []
    for _ in range(sets):
        data = np.sort(np.clip(np.exp(10.4 + 0.5 * rng.standard_normal(size)), 0, 250_000))
        truth = data[[math.ceil(q * size) - 1 for q in asked.orders]]
        for _ in range(each):
            released = np.atleast_1d(answer(data, asked, asked.neighbours, bits).value)
            places = np.searchsorted(data, released)
            targets = np.array([float(q * size) for q in asked.orders])
            ranks.append(np.abs(places - targets))
            errors.append(np.abs(released - truth))
    return np.array(ranks), np.array(errors)


@pytest.mark.parametrize(
    ("count", "epsilon", "facts"),
    [(1, 1, PUBLIC), (1, 0.2, PRIVATE), (3, 1, PRIVATE), (3, 0.5, PUBLIC)],
    ids=["median", "median at 0.2", "quartiles, private size", "quartiles"],
)
def test_what_is_foreseen_is_what_releases_on_fresh_data_show(count, epsilon, facts):
    size, sets, each = 2000, 120, 3
    asked = query(count, epsilon, **facts)
    found = asked.accuracy(size, confidence=0.9, scenario=SALARIES)
    assert found.how == "simulated"
    bound = replace(asked, rows=size) if facts is PUBLIC else asked
    shown = fresh(bound, size, sets, each, seed=11)
    for drawn, stated, spread in (
        (shown[0], found.ranks, found.monte_carlo_ranks),
        (shown[1], found.errors, found.monte_carlo),
    ):
        figures, off = foresight.tails(drawn, 0.9, sets)
        for figure, away, said in zip(figures, off, stated, strict=True):
            # A rank between two values is told as either.
            slack = 1 if stated is found.ranks else 0
            assert abs(figure - said) <= 4 * math.hypot(away, spread) + slack
        # Figures of a budget half as large would be far off.
        half = replace(asked, budget=sf.PureDP(Fraction(asked.budget.epsilon) / 3))
        other = half.accuracy(size, confidence=0.9, scenario=SALARIES)
        wrong = other.ranks if stated is found.ranks else other.errors
        assert any(
            abs(f - w) > 4 * math.hypot(a, spread) + slack
            for f, a, w in zip(figures, off, wrong, strict=True)
        )


def test_even_data_would_promise_too_much():
    # Gaps between independent values differ; a median strays into the large ones.
    asked = query(epsilon=1, method="single", **PUBLIC)
    typical = Scenario.of_data(SALARIES.typical(2000))
    even = asked.accuracy(2000, scenario=typical)
    drawn = asked.accuracy(2000, scenario=SALARIES)
    assert drawn.error > even.error + 3 * drawn.monte_carlo


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("single", "unbounded")])
@pytest.mark.parametrize("facts", [PUBLIC, PRIVATE], ids=["substitution", "add-remove"])
def test_ranks_under_a_scenario_are_within_the_bound_on_any_data(name, facts, monkeypatch):
    monkeypatch.setattr(foresight, "MOST_DRAWS", 120)
    asked = query(3, 1, method=name, step=50, **facts)
    found = asked.accuracy(3000, scenario=SALARIES)
    assert found.any_data == asked.accuracy(3000).rank_error
    assert found.rank_error <= found.any_data
    assert len(found.ranks) == len(found.errors) == 3
    assert 0 < found.error < 250_000


def test_a_method_without_bounds_is_foreseen_too(monkeypatch):
    monkeypatch.setattr(foresight, "MOST_DRAWS", 120)
    asked = query(1, 1, method=sf.quantile_methods.Unbounded(lower=0, ratio=1.01), bounds=None)
    found = asked.accuracy(3000, scenario=SALARIES)
    # A step that grows by a hundredth holds some values by itself.
    assert found.rank_error <= found.any_data + 3000 * 0.02
    assert found.error > 0


@pytest.mark.parametrize("count", [1, 3])
def test_a_larger_budget_errs_less_up_to_the_error_of_the_simulation(count):
    found = [query(count, e, **PUBLIC).accuracy(5000, scenario=SALARIES) for e in (0.1, 0.4, 1.6)]
    for weak, strong in pairwise(found):
        assert strong.rank_error <= weak.rank_error
        assert strong.error <= weak.error + 4 * math.hypot(weak.monte_carlo, strong.monte_carlo)
    assert found[-1].error < found[0].error / 4


@pytest.mark.parametrize("facts", [PUBLIC, PRIVATE], ids=["substitution", "add-remove"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_part_of_the_budget_for_the_interval_costs_accuracy(count, facts):
    whole, part = (
        query(count, 1, interval_share=share, **facts).accuracy(3000, scenario=SALARIES) for share in (0, 0.3)
    )
    assert part.how == "simulated"
    assert whole.rank_error - 2 <= part.rank_error <= part.any_data


def test_what_a_bound_leaves_out_is_noted():
    some = query(9, 1, method=sf.quantile_methods.Interpolated(drawn=2), **PUBLIC)
    assert "the 2 drawn; the others lie between and beyond them" in some.accuracy(300).notes[0]
    assert "the 2 drawn" in some.accuracy(300, scenario=SALARIES).notes[0]
    assert query(3, 1, **PUBLIC).accuracy(9000).notes == ()


def test_ranks_are_told_on_the_grid_that_a_counted_number_leads_to():
    # All values at the upper bound, and orders so near the ends that the default grid is coarse.
    asked = query(probs=[0.001, 0.5, 0.99999], bounds=(0, 100), step=None)
    found = asked.accuracy(300, scenario=Scenario.named("constant", value=100))
    assert found.rank_error <= 1


@pytest.mark.parametrize("count", [1, 3])
def test_equal_values_are_found_without_error(count):
    found = query(count, 1, bounds=(0, 20), step=1).accuracy(
        500, scenario=Scenario.named("constant", value=7)
    )
    assert set(found.errors) == {0.0}
    assert set(found.ranks) == {0.0}


def test_ties_of_counts_count_as_all_their_ranks():
    counts = Scenario.named("poisson", mean=3)
    found = query(1, 1, bounds=(0, 20), step=1).accuracy(5000, scenario=counts)
    assert (found.rank_error, found.error) == (0.0, 0.0)


def test_the_number_of_values_is_needed_where_it_is_private():
    with pytest.raises(sf.InvalidParameter, match="n must be given"):
        query(3).accuracy()
    with pytest.raises(sf.InvalidParameter, match="n must be given"):
        query(1).accuracy(scenario=SALARIES)
    assert query(1).accuracy().rank_error == query(1).rank_error(0.95)
    public = replace(query(3, **PUBLIC), rows=700)
    assert public.accuracy().rows == 700
    assert public.accuracy(9000).rank_error == replace(public, rows=9000).rank_error(0.95)
    assert query(3, **PUBLIC).accuracy(700) == public.accuracy()


def test_nulls_that_are_left_out_cost_ranks():
    kept, dropped = (
        query(3, neighbours="substitution", nulls=rule).accuracy(900) for rule in ("lower", "drop")
    )
    assert kept.how == dropped.how == "bound"
    assert kept.rank_error <= dropped.rank_error
    assert (
        replace(query(3, neighbours="substitution", nulls="drop"), rows=900).accuracy(scenario=SALARIES).error
    )


def test_answers_come_in_the_order_that_was_asked_and_repeat_with_it():
    orders = [0.75, 0.25, 0.75]
    found = query(probs=orders).accuracy(2000, scenario=SALARIES)
    sorted_ = query(probs=[0.25, 0.75]).accuracy(2000, scenario=SALARIES)
    assert found.labels == ("0.75", "0.25", "0.75")
    assert found.errors == (sorted_.errors[1], sorted_.errors[0], sorted_.errors[1])


def test_a_preview_is_repeated_exactly_and_at_once():
    asked = query(3)
    first = asked.accuracy(1234, scenario=SALARIES)
    foresight._under.cache_clear()
    foresight._drawn.cache_clear()
    again = asked.accuracy(1234, scenario=Scenario.named("lognormal", sigma=0.5, mu=10.4))
    assert again == first
    assert foresight._drawn.cache_info().misses == 1
    asked.accuracy(1234, confidence=0.5, scenario=SALARIES)
    assert foresight._drawn.cache_info().misses == 1


def test_millions_of_values_are_foreseen_by_fewer_and_it_says_so():
    asked, even = query(1, step=None, **PUBLIC), Scenario.named("uniform", low=0, high=250_000)
    found, fewer = (asked.accuracy(size, scenario=even) for size in (50 * 10**6, 10**6))
    assert "ranks were found on 1,000,000 values" in found.notes[0]
    assert found.rank_error == fewer.rank_error
    assert found.error == pytest.approx(250_000 * found.rank_error / (50 * 10**6), rel=0.1)


def test_a_high_confidence_is_noted_where_draws_are_few():
    found = query(3).accuracy(2000, confidence=0.9999, scenario=SALARIES)
    assert "draws are few" in found.notes[0]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"n": -1}, "n must be in"),
        ({"n": 2.5}, "n must be a whole number"),
        ({"n": True}, "n must be a whole number"),
        ({"n": 10**30}, "n must be in"),
        ({"n": 0, "scenario": SALARIES}, "n must be at least 1"),
        ({"n": 10, "confidence": 1}, "confidence must be inside"),
        ({"n": 10, "confidence": 0}, "confidence must be inside"),
        ({"n": 10, "confidence": math.nan}, "confidence must be finite"),
        ({"n": 10, "confidence": "high"}, "confidence must be a number"),
        ({"n": 10, "scenario": "lognormal"}, "scenario must be an accuracy.Scenario"),
    ],
)
def test_wrong_parameters_are_refused_by_name(changes, rule):
    with pytest.raises(sf.InvalidParameter, match=rule):
        query(1).accuracy(changes.pop("n"), **changes)


def test_an_unbound_query_is_refused_with_the_rule():
    with pytest.raises(sf.InvalidParameter, match="neighbours must be"):
        query(1, neighbours=None).accuracy(10)
    with pytest.raises(sf.MissingBounds):
        query(1, bounds=None).accuracy(10)


def test_a_session_previews_under_a_scenario_and_reads_nothing():
    data = sf.Dataset({"salary": [1.0, 2.0]}, unit="row", neighbours="add-remove")
    session = sf.Session(data, budget=sf.PureDP(1))
    asked = query(1, neighbours=None)
    shown = session.preview(asked, rows=2000, scenario=SALARIES)
    assert shown.accuracy == replace(asked, neighbours="add-remove", nulls="drop").accuracy(
        2000, scenario=SALARIES
    )
    assert "for lognormal with mu 10.4 and sigma 0.5" in str(shown)
    assert "costs PureDP(epsilon=1.0)" in str(shown)
    assert session.preview(asked, rows=2000).accuracy is None
    with pytest.raises(sf.InvalidParameter, match="n must be given"):
        session.preview(asked, scenario=SALARIES)
    assert session.spent == sf.privacy.Amount()
