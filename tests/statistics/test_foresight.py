"""The accuracy of statistics before they are paid for, against their laws, releases and bounds."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.accuracy import Scenario
from sfumato.accuracy.simulation import tails
from sfumato.data.admission import admit
from sfumato.laws import SeededBits
from sfumato.query import raw
from sfumato.statistics import STATISTICS, foresight

PUBLIC = {"neighbours": "substitution", "nulls": "lower"}
DROPPED = {"neighbours": "substitution", "nulls": "drop"}
PRIVATE = {"neighbours": "add-remove"}
AGES = Scenario.named("normal", mean=40, sd=12)
ONE = sf.PureDP(1)


def mean(budget=ONE, **facts):
    return sf.Mean(budget=budget, bounds=(0, 100), **facts)


def proportion(budget=ONE, **facts):
    return sf.Proportion(budget=budget, between=(0, 20), **facts)


def variance(budget=ONE, **facts):
    return sf.Variance(budget=budget, bounds=(0, 100), **facts)


CLOSED = {
    "count": (sf.Count(budget=ONE, **PRIVATE), "exact"),
    "free count": (sf.Count(budget=ONE, **PUBLIC), "exact"),
    "sum": (sf.Sum(budget=ONE, bounds=(0, 100), **PUBLIC), "exact"),
    "mean": (mean(**PUBLIC), "exact"),
    "mean, private": (mean(**PRIVATE), "bound"),
    "proportion": (proportion(**PUBLIC), "exact"),
    "proportion, private": (proportion(**DROPPED), "bound"),
    "variance": (variance(**PUBLIC), "bound"),
    "histogram": (sf.Histogram(budget=ONE, bins=4, bounds=(0, 100), **PRIVATE), "exact"),
    "histogram that adds up": (sf.Histogram(budget=ONE, bins=4, bounds=(0, 100), **PUBLIC), "bound"),
    "two bins": (sf.Histogram(budget=ONE, bins=2, bounds=(0, 100), **PUBLIC), "exact"),
    "first passing": (sf.FirstPassing(budget=ONE, at=(10, 20), count=5, **PRIVATE), "bound"),
    "inverse mean": (sf.InverseMean(budget=ONE, bounds=(0, 100), **PUBLIC), "bound"),
    "exponential mean": (sf.ExponentialMean(budget=ONE, bounds=(0, 100), **PUBLIC), "bound"),
    "inverse proportion": (sf.InverseProportion(budget=ONE, between=(0, 20), **PUBLIC), "bound"),
}


@pytest.mark.parametrize("name", CLOSED)
def test_every_statistic_states_its_accuracy_and_how_it_is_known(name):
    query, how = CLOSED[name]
    found = query.accuracy(1000, confidence=0.9)
    assert found.how == how
    assert (found.statistic, found.column, found.rows, found.confidence) == (query.name, "values", 1000, 0.9)
    assert found.labels == query.labels()
    assert len(found.errors) == len(found.labels)
    assert found.ranks is found.scenario is found.any_data is None
    assert found.monte_carlo == 0
    own = query.error(1000, 0.9)
    if query.name in ("mean", "proportion") and not query.size_is_public:
        # Its own error is one to first order; a bound is a little larger, up to the rounding to counts.
        assert own - 1 / 1000 <= found.error <= own * 1.05
    else:
        assert found.error == own


def test_few_rows_clamp_what_is_exact_to_a_bound():
    count = sf.Count(budget=ONE, between=(0, 1), **PUBLIC)
    assert (count.accuracy(2).error, count.accuracy(2).how) == (2, "bound")
    assert (count.accuracy(6).error, count.accuracy(6).how) == (3, "exact")
    for query in (mean(**PUBLIC), proportion(**PUBLIC), sf.Sum(budget=ONE, bounds=(0, 100), **PUBLIC)):
        assert [query.accuracy(rows).how for rows in (2, 60)] == ["bound", "exact"]


def test_every_statistic_of_the_table_is_covered():
    assert {query.name for query, _ in CLOSED.values()} | {"most_common"} == set(STATISTICS)


@pytest.mark.parametrize("size", [3, 40, 1000])
@pytest.mark.parametrize("budget", [ONE, sf.PureDP(0.2), sf.ZCDP(0.1)])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("facts", [PRIVATE, DROPPED], ids=["add-remove", "dropped"])
def test_the_bound_of_a_ratio_holds_on_data_of_every_share(facts, share, budget, size):
    # Few values, for which the first order is far from all: errors of releases are within the bound.
    values = np.where(np.arange(size) < share * size, 10.0, 50.0)
    draws = 1500
    for query, truth in (
        (proportion(budget, **facts), (values < 20).mean()),
        (mean(budget, **facts), values.mean()),
    ):
        bound = query.accuracy(size, confidence=0.9).error
        query = replace(query, rows=size) if query.substitution else query
        drawn = query.law(query.look(admit(values))).sample(SeededBits(5), draws)
        errors = [abs(query.value(tuple(int(p[i]) for p in drawn)) - truth) for i in range(draws)]
        kept = np.mean(np.array(errors) <= bound + 1e-12)
        assert kept >= 0.9 - 4 * math.sqrt(0.9 * 0.1 / draws)


def test_two_thirds_of_the_bound_of_a_ratio_would_not_hold():
    # On data at one end, where a noisy sum is alone; the test above can therefore fail.
    query, values = mean(**PRIVATE), np.full(1000, 10.0)
    drawn = query.law(query.look(admit(values))).sample(SeededBits(5), 3000)
    errors = np.array([abs(query.value(tuple(int(p[i]) for p in drawn)) - 10) for i in range(3000)])
    bound = query.accuracy(1000, confidence=0.9).error
    assert np.mean(errors <= bound) >= 0.9
    assert np.mean(errors <= bound * 2 / 3) < 0.9 - 4 * math.sqrt(0.9 * 0.1 / 3000)


def released(query, size, count, seed):
    """Errors of releases on fresh data, one data set for each."""
    rng, bits = np.random.default_rng(seed), SeededBits(seed)
    query = replace(query, rows=size) if query.substitution else query
    errors = []
    for _ in range(count):
        values = rng.normal(40, 12, size)
        clamped = np.clip(values, 0, 100)
        truth = {"mean": clamped.mean(), "variance": clamped.var()}.get(query.name.split("_")[-1])
        truth = ((values >= 0) & (values <= 20)).mean() if truth is None else truth
        outcome = raw(query.law(query.look(admit(values))).sample(bits))
        errors.append(abs(query.value(outcome) - truth))
    return np.array(errors)


@pytest.mark.parametrize(
    "query",
    [
        mean(**PRIVATE),
        mean(**DROPPED),
        mean(interval_share=Fraction(1, 5), **PRIVATE),
        proportion(**PRIVATE),
        variance(**PUBLIC),
        variance(**PRIVATE),
        variance(sf.ZCDP(0.5), **DROPPED),
        sf.InverseMean(budget=ONE, bounds=(0, 100), **PUBLIC),
        sf.ExponentialMean(budget=ONE, bounds=(0, 100), **PUBLIC),
        sf.InverseProportion(budget=ONE, between=(0, 20), **PUBLIC),
    ],
    ids=lambda query: f"{query.name}-{query.neighbours}-{query.nulls}",
)
def test_what_is_foreseen_is_what_releases_on_fresh_data_show(query):
    size, count = 1000, 1500
    found = query.accuracy(size, confidence=0.9, scenario=AGES)
    assert found.how == "simulated"
    figure, off = tails(released(query, size, count, seed=7), 0.9)
    # Figures in counts are whole: one of them is the least that two simulations can differ by.
    unit = 1 / size if "proportion" in query.name else 0.0
    assert abs(float(figure) - found.error) <= 4 * math.hypot(float(off), found.monte_carlo) + unit
    # What a budget half as large gives is told apart.
    half = (
        sf.ZCDP(query.budget.rho / 4)
        if isinstance(query.budget, sf.ZCDP)
        else sf.PureDP(query.budget.epsilon / 2)
    )
    weak = replace(query, budget=half).accuracy(size, confidence=0.9, scenario=AGES)
    assert abs(float(figure) - weak.error) > 4 * math.hypot(float(off), weak.monte_carlo) + unit


@pytest.mark.parametrize(
    "query", [mean(**PRIVATE), proportion(**DROPPED), variance(**PUBLIC)], ids=lambda q: q.name
)
def test_a_scenario_errs_no_more_than_any_data(query):
    found, bound = query.accuracy(500, scenario=AGES), query.accuracy(500)
    assert found.error <= bound.error + 4 * found.monte_carlo
    assert found.scenario == "normal with mean 40 and sd 12"


def test_where_the_error_is_the_same_on_any_data_a_scenario_changes_nothing():
    for name in ("count", "sum", "mean", "histogram", "first passing"):
        query, _ = CLOSED[name]
        found, plain = query.accuracy(1000, scenario=AGES), query.accuracy(1000)
        assert found.errors == plain.errors
        assert found.scenario is None
        assert "no scenario is needed" in found.notes[-1]


def test_a_share_of_true_values_takes_zeros_and_ones():
    query = sf.Proportion(budget=ONE, **PRIVATE)
    found = query.accuracy(800, scenario=Scenario.named("bernoulli", share=0.5))
    # In the middle two noises of half the weight are less than one.
    assert found.error < query.accuracy(800).error
    with pytest.raises(sf.InvalidParameter, match="scenario must be bernoulli"):
        query.accuracy(800, scenario=AGES)
    codes = sf.Proportion(budget=ONE, equals=(1,), **PRIVATE)
    assert codes.accuracy(800, scenario=Scenario.named("bernoulli", share=0.5)).error == found.error


def test_a_condition_on_text_needs_a_scenario_of_text_which_there_is_not():
    query = sf.Proportion(budget=ONE, equals="yes", **PRIVATE)
    assert query.accuracy(100).error > 0
    with pytest.raises(sf.SchemaMismatch):
        query.accuracy(100, scenario=AGES)


def test_a_simulation_is_repeated_exactly_and_once():
    query = mean(**PRIVATE)
    foresight._drawn.cache_clear()
    first = query.accuracy(777, scenario=AGES)
    assert query.accuracy(777, scenario=AGES) == first
    assert query.accuracy(777, confidence=0.5, scenario=AGES).error < first.error
    assert foresight._drawn.cache_info().misses == 1


def test_millions_of_values_are_scaled_from_one():
    found = mean(**PRIVATE).accuracy(4 * 10**6, scenario=AGES)
    assert "1,000,000 values were taken for 4,000,000" in found.notes[0]
    assert found.error == pytest.approx(mean(**PRIVATE).accuracy(10**6, scenario=AGES).error / 4)


def test_a_larger_budget_errs_less():
    for scenario in (None, AGES):
        errors = [
            mean(sf.PureDP(e), **PRIVATE).accuracy(900, scenario=scenario).error for e in (0.1, 0.3, 1, 3)
        ]
        assert errors == sorted(errors, reverse=True)


def test_the_number_of_values_is_needed_where_the_accuracy_depends_on_it():
    with pytest.raises(sf.InvalidParameter, match="n must be given"):
        mean(**PRIVATE).accuracy()
    with pytest.raises(sf.InvalidParameter, match="n must be at least 1"):
        mean(**PRIVATE).accuracy(0)
    assert sf.Count(budget=ONE, **PRIVATE).accuracy().error == 3
    bound = replace(mean(**PUBLIC), rows=500)
    assert bound.accuracy() == mean(**PUBLIC).accuracy(500)
    assert bound.accuracy(2000).error == pytest.approx(bound.accuracy().error / 4, rel=1e-6)


def test_a_choice_has_no_numeric_accuracy():
    common = sf.MostCommon(budget=ONE, categories=("a", "b"), **PRIVATE)
    choice = sf.Choose(candidates=("a", "b"), sensitivity=1, budget=ONE)
    for query in (common, choice):
        with pytest.raises(sf.NotSupported, match=r"query\.radius"):
            query.accuracy(100)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"n": -1}, "n must be in"),
        ({"n": "10"}, "n must be a whole number"),
        ({"n": 10, "confidence": 1.0}, "confidence must be inside"),
        ({"n": 10, "scenario": 3}, "scenario must be an accuracy.Scenario"),
    ],
)
def test_wrong_parameters_are_refused_by_name(changes, rule):
    with pytest.raises(sf.InvalidParameter, match=rule):
        mean(**PRIVATE).accuracy(changes.pop("n"), **changes)


def test_neighbours_must_be_known():
    with pytest.raises(sf.InvalidParameter, match="neighbours must be"):
        mean().accuracy(10)


def test_a_session_previews_a_statistic_under_a_scenario():
    data = sf.Dataset({"age": [31.0, 45.0]}, unit="row", neighbours="add-remove")
    session = sf.Session(data, budget=ONE)
    query = sf.Mean(column="age", budget=ONE, bounds=(0, 100))
    shown = session.preview(query, rows=1000, scenario=AGES)
    assert shown.accuracy.how == "simulated"
    assert str(shown).startswith("mean of age: 95 % within ")
    assert "for normal with mean 40 and sd 12" in str(shown)
    with pytest.raises(sf.InvalidParameter, match="rows must be given"):
        session.preview(query, scenario=AGES)
    assert session.spent == sf.privacy.Amount()
