"""One contract for every method: what it answers, how it is stored, what it is charged."""

import json
import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.quantile_methods.cases import BUDGETS, ENTRIES, NULLS, ORDERS, RELATIONS, ask, methods, serves

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.data.field import Field
from sfumato.laws import SeededBits
from sfumato.ledger import MemoryLedger
from sfumato.privacy import ZCDP, Amount, ApproxDP, PureDP
from sfumato.privacy.composition import approx_satisfied
from sfumato.quantile_methods import METHODS, spacing
from sfumato.query import raw

F = Fraction
NAN, INF = float("nan"), float("inf")
each_method = pytest.mark.parametrize("method", [*methods("any_grid"), *methods("listed")], ids=repr)
each_of_any_grid = pytest.mark.parametrize("method", methods("any_grid"), ids=repr)
each_relation = pytest.mark.parametrize("relation", RELATIONS)

RNG = np.random.default_rng(7)
BOUNDS = (-3, 30)
COLUMNS = {
    "whole": RNG.integers(-10, 40, 300),
    "reals": RNG.normal(10, 8, 300),
    "ties": RNG.choice([1.0, 1.5, 20.0], 300),
    "constant": np.full(50, 7.0),
    "nulls": np.where(RNG.random(200) < 0.3, NAN, RNG.normal(10, 8, 200)),
    "only nulls": np.full(20, NAN),
    "extremes": np.array([INF, -INF, 1e308, -1e308, 5e-324, 0.0]),
    "one": np.array([3.0]),
    "none": np.empty(0),
}


def bound(query, values, relation):
    return query.bind(admit(values), Field(), relation)


def grid_step(method):
    """Methods that list every point are asked on integers."""
    return 1 if getattr(method, "flip", False) else None


def test_every_method_is_under_this_contract():
    missing = set(METHODS) - set(ENTRIES)
    assert not missing, f"add a line to ENTRIES of cases.py for {missing}"
    assert {method.name for method in methods("any_grid")} == set(METHODS)
    assert {method.name for method in methods("audited")} == set(METHODS)
    assert all(kind.name == name for name, kind in METHODS.items())


@each_method
@each_relation
def test_answers_are_possible_points_in_the_order_of_the_orders(method, relation):
    bits = SeededBits(1)
    for name, values in COLUMNS.items():
        for orders, budget in zip(ORDERS, BUDGETS * 2, strict=True):
            if not serves(method, orders):
                continue
            for nulls in NULLS if name == "nulls" else (None,):
                asked = ask(
                    method,
                    orders,
                    bounds=BOUNDS,
                    step=grid_step(method),
                    nulls=nulls,
                    neighbours=None,
                    budget=budget,
                    n_hint=300,
                )
                query = bound(asked, values, relation)
                query.check(admit(values))
                outcome = raw(query.law(query.look(admit(values))).sample(bits))
                assert query.possible(outcome), (name, query)
                assert_answers(query, outcome, method)


def assert_answers(query, outcome, method):
    answers = query.value(outcome)
    assert answers.shape == (len(query.probs),) == (len(query.labels()),)
    assert answers.dtype == np.float64
    assert (np.diff(answers) >= 0).all()
    assert np.isfinite(answers).all()
    if method.needs_bounds:
        assert float(query.lower) <= answers.min() <= answers.max() <= float(query.upper)
    if ENTRIES[method.name].on_grid:
        grid = query.facts.grid
        for value in query._by_order(outcome).values():
            assert value in {float(grid.value(int(i))) for i in grid.index([value])}


@each_method
def test_impossible_outcomes_are_refused(method):
    query = bound(
        ask(method, bounds=BOUNDS, step=grid_step(method), neighbours=None, nulls="lower"),
        np.arange(9.0),
        "substitution",
    )
    good = raw(query.law(query.look(admit(np.arange(9.0)))).sample(SeededBits(2)))
    assert query.possible(good)
    outside = [(-1,) * len(good)] if ENTRIES[method.name].listed_law else []
    for bad in ((), (*good, 0), good[:-1], (2**200,) * len(good), *outside):
        assert not query.possible(bad)


@pytest.fixture
def rough_intervals(monkeypatch):
    """Widths from few draws, where a test is not about them; forgotten afterwards."""
    monkeypatch.setattr(spacing, "FEWEST_DRAWS", 8)
    monkeypatch.setattr(spacing, "MOST_DRAWS", 8)
    for found in (spacing._needed, spacing._reaches):
        found.cache_clear()
    yield
    for found in (spacing._needed, spacing._reaches):
        found.cache_clear()


@each_method
@each_relation
@pytest.mark.usefixtures("rough_intervals")
def test_a_release_survives_json(method, relation):
    for orders in ORDERS[::4]:
        if not serves(method, orders):
            continue
        release = sf.quantiles(
            COLUMNS["nulls"],
            orders,
            bounds=BOUNDS,
            step=grid_step(method),
            method=method,
            epsilon=F(1, 3),
            neighbours=relation,
            n_hint=200,
            bits=SeededBits(3),
        )
        again = sf.read_release(release.to_json())
        assert again == release
        assert again.query.method == method
        assert np.array_equal(again.value, release.value)
        assert again.to_json() == release.to_json()
        stored = json.loads(release.to_json())
        assert stored["statistic"] == "quantiles"
        assert stored["labels"] == list(release.query.labels())


@each_method
@each_relation
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_a_session_charges_exactly_the_budget(method, relation, budget):
    for orders in ORDERS[2:5:2]:
        if not serves(method, orders):
            continue
        for nulls in ("drop", "lower"):
            data = sf.Dataset({"x": COLUMNS["nulls"]}, unit="row", neighbours=relation)
            query = ask(
                method,
                orders,
                budget=budget,
                bounds=BOUNDS,
                step=grid_step(method),
                nulls=nulls,
                neighbours=None,
                column="x",
                n_hint=200,
            )
            session = sf.Session(data, budget=budget, bits=SeededBits(4))
            release = session.answer(query)
            assert_charged(release, session.spent, budget)
            preview = sf.Session(data, budget=budget).preview(query)
            assert preview.cost == release.cost
            assert MemoryLedger(budget, neighbours=relation).charge(release.query).price == session.spent


def assert_charged(release, spent, budget):
    event, cost = release.event, release.cost
    if isinstance(cost, PureDP):
        assert event.pure_epsilon == cost.epsilon == budget.epsilon
        assert spent == Amount.of(cost)
    elif isinstance(cost, ZCDP):
        assert cost == budget
        assert event.rho <= budget.rho
        # Roots are rounded down after 80 binary digits.
        assert float(event.rho) == pytest.approx(float(budget.rho), rel=1e-12)
        assert spent.rho <= budget.rho
    else:
        assert cost == budget
        assert isinstance(cost, ApproxDP)
        assert approx_satisfied(event, budget)


@each_of_any_grid
@each_relation
def test_orders_may_be_given_in_any_form_and_order(method, relation):
    def answer(probs):
        values = sf.quantiles(
            COLUMNS["whole"],
            probs,
            bounds=BOUNDS,
            method=method,
            epsilon=1,
            neighbours=relation,
            n_hint=300,
            bits=SeededBits(5),
        )
        return values.value.tolist()

    one = [0.3]
    assert answer(one) == answer((0.3,)) == answer(np.array(one)) == answer([F(3, 10)])
    assert answer([0.3, 0.3, 0.3]) == answer(one) * 3
    assert answer(np.array([0.3], dtype=np.float32)) == answer(one)
    if not serves(method, (1, 2, 3)):
        return
    low, middle, high = answer([0.25, 0.5, 0.75])
    assert answer([0.75, 0.25, 0.5]) == [high, low, middle]
    assert answer((0.5, 0.25, 0.5, 0.75, 0.25)) == [middle, low, middle, high, low]
    assert answer(np.array([0.75, 0.5, 0.25])) == [high, middle, low]


@each_of_any_grid
def test_duplicated_orders_cost_nothing_more(method):
    facts = [
        bound(ask(method, probs, neighbours=None, n_hint=9), np.arange(4.0), "add-remove")
        for probs in ([0.3], [0.3] * 50)
    ]
    assert facts[0].event == facts[1].event
    assert facts[0].cost == facts[1].cost
    assert facts[1].labels() == ("0.3",) * 50


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_ten_thousand_orders_where_the_method_serves_them(name):
    entry = ENTRIES[name]
    method = METHODS[name](**entry.any_grid[0])
    count = min(entry.many, 10_000)
    probs = [F(i, count + 1) for i in range(1, count + 1)]
    release = sf.quantiles(
        COLUMNS["reals"],
        probs,
        bounds=BOUNDS,
        method=method,
        budget=ZCDP(100),
        nulls="lower",
        bits=SeededBits(6),
    )
    assert release.value.shape == (count,)
    assert (np.diff(release.value) >= 0).all()
    assert len(release.query.labels()) == count
    assert all(note for note in release.notes)


@each_of_any_grid
@each_relation
def test_one_order_is_a_number_at_the_front_door(method, relation):
    given = {"bounds": BOUNDS, "method": method, "epsilon": 1, "neighbours": relation, "n_hint": 300}
    listed = sf.quantiles(COLUMNS["reals"], [0.5], bits=SeededBits(8), **given)
    for release in (
        sf.median(COLUMNS["reals"], bits=SeededBits(8), **given),
        sf.quantile(COLUMNS["reals"], 0.5, bits=SeededBits(8), **given),
    ):
        assert type(release.value) is float
        assert release.value == listed.value[0]
        low, high = release.interval(0.9)
        assert low <= high
        assert release.query.scalar
        assert sf.read_release(release.to_json()) == release


@each_method
@each_relation
def test_words_notes_and_labels_say_what_was_done(method, relation):
    values = COLUMNS["nulls"]
    release = sf.quantiles(
        values,
        [0.9],
        bounds=BOUNDS,
        step=grid_step(method),
        method=method,
        epsilon=1,
        neighbours=relation,
        n_hint=200,
    )
    assert release.private
    assert release.query.labels() == ("0.9",)
    assert release.method
    assert "\n" not in release.method
    assert all(isinstance(note, str) and note and "\n" not in note for note in release.notes)
    assert release.notes
    assert "0.9" in str(release)
    assert release._repr_html_().startswith("<div>")


@each_of_any_grid
def test_integers_are_their_own_grid_and_reals_get_what_the_budget_can_search(method):
    if not method.needs_bounds:
        pytest.skip("no grid between bounds")
    (few, whole), (real, many) = (
        [
            bound(
                ask(method, step=None, bounds=(0, 100), neighbours=None, n_hint=hint), values, "substitution"
            )
            for hint in (9, 10**6)
        ]
        for values in (np.arange(9), np.arange(9.0))
    )
    assert few.facts.grid.step == whole.facts.grid.step == 1
    assert few.facts.grid.cells == whole.facts.grid.cells == 101
    assert real.facts.grid.cells == 200_001
    assert many.facts.grid.cells == 2 * 10**9 + 1
    coarse = bound(
        ask(method, step=5, bounds=(0, 100), neighbours=None, n_hint=9), np.arange(9), "substitution"
    )
    assert coarse.facts.grid.cells == 21


@each_method
@each_relation
def test_every_kind_of_column_gives_the_same_draw(method, relation):
    numbers = [None if i % 7 == 0 else i % 40 for i in range(120)]
    reals = [None if value is None else float(value) for value in numbers]
    columns = [
        numbers,
        np.array([NAN if value is None else value for value in reals]),
        np.ma.array([value or 0 for value in numbers], mask=[value is None for value in numbers]),
        pd.Series(numbers, dtype="Int64"),
        pd.Series(reals, dtype="float64"),
        pl.Series(numbers),
        pl.Series(reals),
        pa.array(numbers),
        pa.chunked_array([numbers[:50], numbers[50:]]),
    ]
    draws = {
        sf.quantiles(
            column,
            [0.7],
            bounds=(0, 39),
            step=1,
            method=method,
            epsilon=F(1, 5),
            neighbours=relation,
            nulls="drop",
            n_hint=120,
            bits=SeededBits(9),
        ).outcome
        for column in columns
    }
    assert len(draws) == 1


@each_of_any_grid
@pytest.mark.parametrize(
    "bounds", [(10**9, 10**9 + 1000), (-(10**12) - 50, -(10**12)), (1e-20, 2e-20), (-1e30, 1e30)], ids=str
)
def test_bounds_far_from_zero_work(method, bounds):
    low, high = bounds
    values = np.linspace(float(low), float(high), 500)
    release = sf.quantiles(
        values,
        [0.5],
        bounds=bounds,
        method=method,
        epsilon=1e4,
        nulls="lower",
        n_hint=500,
        bits=SeededBits(10),
    )
    assert release.query.possible(release.outcome)
    if method.needs_bounds:
        assert float(low) <= release.value[0] <= float(high)
    if ENTRIES[method.name].exact and not getattr(method, "radius", 0):
        # Far from zero float64 resolves few points.
        step = float(release.query.facts.grid.step)
        assert abs(release.value[0] - values[250]) <= (float(high) - float(low)) / 100 + step


@each_of_any_grid
@each_relation
def test_an_enormous_budget_gives_the_quantiles_of_the_data(method, relation):
    if not ENTRIES[method.name].exact or getattr(method, "radius", 0):
        pytest.skip("answers on a coarser grid")
    values = np.arange(1, 1000)
    for probs in ([0.5], [0.1, 0.25, 0.9]):
        if serves(method, probs):
            release = sf.quantiles(
                values,
                probs,
                bounds=(0, 1000),
                method=method,
                epsilon=1e4,
                neighbours=relation,
                n_hint=999,
                bits=SeededBits(11),
            )
            assert np.abs(release.value - 1000 * np.array(probs)).max() <= 1


@each_of_any_grid
def test_the_error_of_the_ranks_holds_and_shrinks_with_confidence(method):
    query = bound(
        ask(method, [F(1, 3)], bounds=BOUNDS, step=grid_step(method), neighbours=None, n_hint=300),
        COLUMNS["reals"],
        "substitution",
    )
    errors = [query.rank_error(confidence) for confidence in (0.5, 0.9, 0.99, 0.999999)]
    assert errors == sorted(errors)
    assert all(type(error) is int and error >= 0 for error in errors)
    assert not math.isinf(query.error(300, 0.95))


@each_method
def test_a_method_is_a_value(method):
    same = type(method)(**{field.name: getattr(method, field.name) for field in fields(method)})
    assert same == method
    assert hash(same) == hash(method)
    with pytest.raises(AttributeError):
        method.name = "x"
