"""One contract for every statistic, under both relations, every null rule, budget and noise."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.statistics.cases import (
    ALL_KINDS,
    BOUNDS,
    CATEGORIES,
    ELSEWHERE,
    EPSILONS,
    HIGH,
    LOW,
    NULLS,
    RELATIONS,
    Kind,
    centre,
    noises,
    queries,
    values_for,
)

import sfumato as sf
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import Point, SeededBits
from sfumato.privacy import ZCDP, Amount, ApproxDP, FreeEvent, PureDP
from sfumato.privacy.composition import approx_satisfied
from sfumato.quantile_methods import read_query
from sfumato.query import parameters, raw
from sfumato.statistics import STATISTICS, Count, Histogram, Mean, Proportion, Sum, Variance

every_statistic = pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.id)
every_relation = pytest.mark.parametrize("neighbours", RELATIONS)
every_null_rule = pytest.mark.parametrize("nulls", NULLS)
rates = pytest.mark.parametrize(
    "kind",
    [k for k in ALL_KINDS if k.id.startswith(("mean", "proportion", "variance"))],
    ids=lambda kind: kind.id,
)


def test_every_registered_statistic_is_under_this_contract() -> None:
    assert {*(kind.make for kind in ALL_KINDS), *ELSEWHERE} == set(STATISTICS.values())
    assert all(Path(__file__).with_name(name).is_file() for name in ELSEWHERE.values())


def assert_value_is_possible(kind: Kind, query: Any, value: Any, rows: int) -> None:
    if kind.is_vector:
        assert isinstance(value, np.ndarray)
        assert value.dtype == np.int64
        assert value.shape == (query.cells,) == (len(query.labels()),)
        assert (value >= 0).all()
        if query.total_is_public:
            assert value.sum() == rows
        return
    assert len(query.labels()) == 1
    if kind.make is Count:
        assert type(value) is int
        assert 0 <= value <= (rows if query.rows is not None else value)
        return
    assert type(value) is float
    if kind.make is Sum:
        assert np.isfinite(value)
        if query.size_is_public:
            assert rows * LOW - 1e-9 <= value <= rows * HIGH + 1e-9
        return
    low, high = {Mean: BOUNDS, Proportion: (0, 1), Variance: (0, ((HIGH - LOW) / 2) ** 2)}[kind.make]
    assert low <= value <= high + 1e-12


@every_statistic
@every_relation
@every_null_rule
def test_a_value_is_possible_and_inside_its_nested_intervals(kind: Kind, neighbours: str, nulls: str) -> None:
    values, column = values_for(kind)
    bits = SeededBits(1)
    for query in queries(kind, neighbours, nulls, len(values)):
        law = query.law(query.look(column))
        for outcome in (raw(law.sample(bits)), raw(law.sample(bits)), centre(law)):
            assert len(outcome) == len(centre(law))
            value = query.value(outcome)
            assert_value_is_possible(kind, query, value, len(values))
            ends = [query.interval(outcome, confidence) for confidence in (0.999, 0.95, 0.5)]
            lows, highs = [low for low, _ in ends], [high for _, high in ends]
            chain = np.array([*lows, value, *reversed(highs)], dtype=np.float64)
            assert (np.diff(chain, axis=0) >= 0).all(), (query, outcome, chain)
            assert all(isinstance(note, str) and note for note in query.notes(outcome))


@every_statistic
@every_relation
@every_null_rule
def test_what_is_charged_is_exactly_what_the_event_costs(kind: Kind, neighbours: str, nulls: str) -> None:
    for query in queries(kind, neighbours, nulls, rows=200):
        event, cost, budget = query.event, query.cost, query.budget
        if isinstance(event, FreeEvent):
            assert cost == Amount()
            assert kind.id == "count of all"
            assert query.size_is_public
        elif isinstance(cost, PureDP):
            assert event.pure_epsilon == cost.epsilon == budget.epsilon
        elif isinstance(cost, ZCDP):
            assert event.rho == cost.rho == budget.rho
        else:
            assert cost == budget
            assert event.pure_epsilon is None
            assert approx_satisfied(event, cost)
            # And the noise is not much wider than that: nine tenths of epsilon are not enough.
            assert not approx_satisfied(event, ApproxDP(cost.epsilon * 9 / 10, cost.delta))


@every_statistic
@every_relation
@every_null_rule
def test_without_noise_the_answer_is_that_of_numpy(kind: Kind, neighbours: str, nulls: str) -> None:
    values, column = values_for(kind)
    expected = kind.exact(values, nulls)
    for query in queries(kind, neighbours, nulls, len(values)):
        found = query.value(centre(query.law(query.look(column))))
        assert np.abs(found - expected).max() <= kind.tolerance(query, len(values)), query


@every_statistic
@every_relation
@every_null_rule
def test_a_release_with_an_enormous_epsilon_is_that_of_numpy(kind: Kind, neighbours: str, nulls: str) -> None:
    values, column = values_for(kind)
    front = getattr(sf, kind.make.name)
    release = front(column, epsilon=1e6, neighbours=neighbours, nulls=nulls, bits=SeededBits(3), **kind.own)
    expected = kind.exact(values, nulls)
    # A millionth of the range is the scale of the noise on a sum of 200 rows; a hundred of those never occur.
    tolerance = {Sum: 1e-3, Mean: 1e-5, Variance: 2e-3}.get(kind.make, 0)
    assert np.abs(release.value - expected).max() <= tolerance
    assert not release.private
    low, high = release.interval(0.95)
    assert (np.asarray(low) <= expected + tolerance).all()
    assert (np.asarray(high) >= expected - tolerance).all()


@every_statistic
@every_relation
@every_null_rule
def test_a_query_survives_json_and_has_a_hash(kind: Kind, neighbours: str, nulls: str) -> None:
    for query in queries(kind, neighbours, nulls, rows=200):
        stored = json.loads(json.dumps(parameters(query)))
        again = read_query(query.name, stored)
        assert again == query
        assert hash(again) == hash(query)
        assert (again.event, again.cost, again.described) == (query.event, query.cost, query.described)
        assert len({query, again}) == 1


@every_statistic
@every_relation
@every_null_rule
def test_error_shrinks_with_epsilon_and_grows_with_confidence(
    kind: Kind, neighbours: str, nulls: str
) -> None:
    for budget_type in (PureDP, lambda e: ApproxDP(e, 1e-6), lambda e: ZCDP(e**2 / 2)):
        budgets = [budget_type(epsilon) for epsilon in EPSILONS]
        for noise in noises(budgets[0]):
            weak, middle, strong = (kind.query(b, neighbours, nulls, noise, 10**6) for b in budgets)
            errors = [query.error(10**6, 0.95) for query in (weak, middle, strong)]
            if kind.id == "count of all" and weak.size_is_public:
                assert errors == [0, 0, 0]
                continue
            assert errors[0] > errors[1] > errors[2] >= 0
            assert middle.error(10**6, 0.5) < middle.error(10**6, 0.999)


@rates
@every_relation
@every_null_rule
def test_the_error_of_a_rate_shrinks_with_rows_and_stays_in_its_range(
    kind: Kind, neighbours: str, nulls: str
) -> None:
    most = {Mean: HIGH - LOW, Proportion: 1.0, Variance: ((HIGH - LOW) / 2) ** 2}[kind.make]
    for query in queries(kind, neighbours, nulls, rows=10**6):
        errors = [query.error(rows, 0.95) for rows in (0, 1, 10**2, 10**4, 10**6, 10**8)]
        assert max(errors) <= most * (1 + 1e-12)
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < errors[-2] or errors[-1] < most / 10**4


@every_statistic
@every_relation
@every_null_rule
def test_the_number_of_values_is_public_only_if_no_row_can_leave(
    kind: Kind, neighbours: str, nulls: str
) -> None:
    query = kind.query(PureDP(1), neighbours, nulls, "auto", rows=200)
    assert query.size_is_public == (neighbours == "substitution" and nulls != "drop")
    _, column = values_for(kind)
    numbers = len(centre(query.law(query.look(column))))
    if kind.make in (Mean, Proportion):
        assert numbers == (1 if query.size_is_public else 2) + (kind.id == "mean with its spread")
    if kind.make is Variance:
        assert numbers == (2 if query.size_is_public else 3)
    if kind.id == "count of all":
        assert isinstance(query.event, FreeEvent) == query.size_is_public
    if kind.id == "histogram of two bins":
        assert numbers == (1 if query.size_is_public else 2)


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.id)
def test_only_rates_have_a_population_interval(kind: Kind) -> None:
    query = kind.query(PureDP(1), "add-remove", "drop", "auto", rows=200)
    _, column = values_for(kind)
    outcome = centre(query.law(query.look(column)))
    if kind.make in (Count, Sum, Histogram):
        with pytest.raises(NotSupported, match="population_interval needs a mean, proportion or variance"):
            query.population_interval(outcome, 0.95)
    else:
        low, high = query.population_interval(outcome, 0.95)
        data_low, data_high = query.interval(outcome, 0.95)
        assert low <= data_low <= data_high <= high


@every_statistic
@every_relation
@every_null_rule
@pytest.mark.parametrize("confidence", [0, 1, 1.5, float("nan"), "0.9", True])
def test_a_confidence_outside_zero_and_one_is_refused(
    kind: Kind, neighbours: str, nulls: str, confidence: Any
) -> None:
    query = kind.query(PureDP(1), neighbours, nulls, "auto", rows=200)
    with pytest.raises(InvalidParameter, match=r"^confidence must be"):
        query.error(100, confidence)


@every_statistic
@every_relation
@every_null_rule
def test_an_empty_column_is_answered_or_refused_by_public_facts(
    kind: Kind, neighbours: str, nulls: str
) -> None:
    values = np.ma.masked_array([], dtype=np.int64) if kind is CATEGORIES else np.array([], dtype=np.float64)
    front = getattr(sf, kind.make.name)
    asked = {"epsilon": 1, "neighbours": neighbours, "nulls": nulls, "bits": SeededBits(5)}
    public = neighbours == "substitution" and nulls != "drop"
    if public and kind.make in (Mean, Proportion, Variance):
        with pytest.raises(InvalidParameter, match=r"^rows must be at least 1"):
            front(values, **asked, **kind.own)
        return
    release = front(values, **asked, **kind.own)
    low, high = release.interval(0.95)
    assert (np.asarray(low) <= release.value).all()
    assert (release.value <= np.asarray(high)).all()
    if public:  # then nothing is left to be unsure of
        assert np.all(low == 0)
        assert np.all(high == 0)
    assert sf.read_release(release.to_json()) == release


@pytest.mark.parametrize("make", [Sum, Mean, Variance, Proportion, Histogram])
def test_a_query_that_needs_the_public_rows_says_so_when_they_are_missing(make: Any) -> None:
    own = {Proportion: {"between": (0, 5)}, Histogram: {"edges": (0, 1, 2)}}.get(make, {"bounds": (0, 1)})
    query = make(budget=PureDP(1), neighbours="substitution", nulls="lower", **own)
    outcome = (3,) * (2 if make is Variance else 1)
    for answer in (query.value, lambda outcome: query.interval(outcome, 0.95)):
        with pytest.raises(InvalidParameter, match=r"^rows must be"):
            answer(outcome)


def test_a_count_of_all_rows_under_substitution_is_exact_and_free() -> None:
    query = Count(budget=PureDP(1), neighbours="substitution", nulls="lower", rows=5)
    _, column = values_for(ALL_KINDS[0])
    assert isinstance(query.law(query.look(column)), Point)
    assert "exact" in query.described
    assert query.interval((5,), 0.999) == (5, 5)


@pytest.mark.parametrize("kind", [k for k in ALL_KINDS if k.make is not Count], ids=lambda kind: kind.id)
def test_noise_that_hides_the_answer_is_noted_and_noise_that_does_not_is_not(kind: Kind) -> None:
    _, column = values_for(kind)
    for epsilon, hidden in ((1e-4, True), (1e4, False)):
        query = kind.query(PureDP(epsilon), "add-remove", "drop", "auto", rows=200)
        notes = " ".join(query.notes(centre(query.law(query.look(column)))))
        assert ("dominated by noise" in notes) == hidden


@every_statistic
@every_relation
@pytest.mark.parametrize(
    "budget",
    [PureDP(1e-12), PureDP(1e6), ApproxDP(1e-9, 1e-300), ApproxDP(1e6, 1e-6), ZCDP(1e-24), ZCDP(10**11)],
    ids=str,
)
def test_the_smallest_and_the_largest_budgets_are_answered(kind: Kind, neighbours: str, budget: Any) -> None:
    values, column = values_for(kind)
    for nulls in NULLS:
        query = kind.query(budget, neighbours, nulls, "auto", len(values))
        law = query.law(query.look(column))
        outcome = raw(law.sample(SeededBits(7)))
        low, high = query.interval(outcome, 0.999)
        value = query.value(outcome)
        assert_value_is_possible(kind, query, value, len(values))
        assert (np.asarray(low) <= value).all()
        assert (value <= np.asarray(high)).all()


@every_statistic
@pytest.mark.parametrize("budget", [PureDP(1e-13), PureDP(2e6), ZCDP(1e-26), ZCDP(1e13)], ids=str)
def test_budgets_beyond_those_are_refused_before_any_data(kind: Kind, budget: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"must be in \[1e-12, 1000000.0\] for a statistic"):
        kind.query(budget, "add-remove", "drop", "auto", 200)
