"""The query: which method answers, what is counted first, and what its intervals promise."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.quantile_methods.cases import RELATIONS, ask, law_of

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.data.counts import MAX_ROWS
from sfumato.data.field import Field
from sfumato.laws import SeededBits
from sfumato.privacy import ZCDP, ApproxDP, ComposedEvent, PureDP
from sfumato.privacy.conversions import zcdp_rho
from sfumato.quantile_methods import (
    Independent,
    Interpolated,
    InverseSensitivity,
    Joint,
    Quantiles,
    Recursive,
    Single,
    interpolated,
    read_query,
)
from sfumato.quantile_methods.auto import choose
from sfumato.quantile_methods.method import EMPHASIS, buy, root_down
from sfumato.query import parameters, raw

F = Fraction
H = F(1, 2)
DECILES = tuple(F(i, 10) for i in range(1, 10))
VALUES = np.random.default_rng(1).normal(50, 10, 4000)


def bound(query, relation, values=VALUES, **others):
    return replace(query, neighbours=None, **others).bind(admit(values), Field(), relation)


# --- which method ---------------------------------------------------------------------------------


def test_one_order_is_answered_by_one_draw():
    for relation in RELATIONS:
        query = bound(ask("auto", (H, H), bounds=(0, 100)), relation)
        assert query.chosen == Single(emphasis=EMPHASIS)
        assert "chosen for one" in query.described


def test_several_orders_are_answered_jointly_where_there_are_enough_values():
    many = bound(ask("auto", DECILES, bounds=(0, 100), nulls="lower"), "substitution")
    assert many.chosen.name == "joint"
    few = bound(ask("auto", DECILES, bounds=(0, 100), step=None, nulls="lower"), "substitution", VALUES[:40])
    assert few.chosen == Interpolated()
    assert "chosen for" in few.described
    # The rule is on public facts: a hint counts where the number of rows is private.
    hinted = ask("auto", DECILES, bounds=(0, 100), step=None)
    assert bound(replace(hinted, n_hint=40), "add-remove").chosen == Interpolated()
    assert bound(replace(hinted, n_hint=10**6), "add-remove").chosen.name == "joint"


# --- interpolation --------------------------------------------------------------------------------


def test_orders_that_are_not_drawn_lie_on_the_lines_between():
    orders = tuple(F(i, 10) for i in range(1, 10))
    query = ask(Interpolated(drawn=3, subcells=1), orders, bounds=(0, 100), rows=9)
    assert query.chosen.chosen(query.facts).orders == (F(2, 10), H, F(8, 10))
    assert query.value((20, 50, 80)).tolist() == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert query.chosen.brackets((20, 50, 80), query.facts)[:3] == [(0, 21), (20, 21), (20, 51)]
    alone = ask(Interpolated(drawn=1, subcells=1), orders, bounds=(0, 100), rows=9)
    assert alone.value((40,)).tolist() == [8, 16, 24, 32, 40, 52, 64, 76, 88]


def test_lines_to_vague_bounds_end_before_them():
    # Between 20 and 80 % values grow by 10 in a tenth of the values: beyond, by a quarter more.
    orders = tuple(F(i, 10) for i in range(1, 10))
    query = ask(Interpolated(drawn=3, subcells=1, emphasis=0), orders, bounds=(-1000, 10**6), rows=9)
    assert query.value((1020, 1050, 1080)).tolist() == [8, 20, 31, 40, 50, 60, 69, 80, 92]
    # From 40 % on they grow by twice as much: beyond, by 1.25 times the root of that, as in the gaps before.
    assert query.value((1020, 1050, 1110)).tolist() == [8, 20, 30, 39, 50, 66, 86, 110, 146]
    # Two drawn tell less: values grow by at most three times as much beyond.
    few = ask(Interpolated(drawn=2, subcells=1, emphasis=0), orders, bounds=(-1000, 10**6), rows=9)
    assert few.value((1030, 1070)).tolist()[7:] == [100, 130]
    # A heap next to the end tells nothing: they grow by at most three times as much as on average.
    assert query.value((1020, 1020, 1080)).tolist()[0] == -10
    # With one order drawn they grow by at most three times as much on one side as on the other.
    alone = ask(Interpolated(drawn=1, subcells=1, emphasis=0), orders, bounds=(0, 1000), rows=9)
    assert alone.value((40,)).tolist() == [8, 16, 24, 32, 40, 64, 88, 112, 136]


def test_on_skewed_data_with_vague_bounds_lines_err_far_less(monkeypatch):
    values = np.random.default_rng(1).lognormal(0, 1, 1000)
    given = {"budget": PureDP(F(1, 10)), "bounds": (0, 1000), "step": None, "rows": 1000}
    query = ask("interpolated", DECILES, **given)
    law, targets, bits = law_of(query, values), np.arange(1, 10) * 100, SeededBits(1)

    def error():
        found = np.array([query.value(raw(law.sample(bits))) for _ in range(40)])
        return np.abs(np.searchsorted(np.sort(values), found) - targets).mean()

    limited = error()
    monkeypatch.setattr(interpolated, "STEEPER", 10**6)
    assert limited < 0.7 * error()


def test_orders_that_are_drawn_are_on_the_grid_of_all_orders():
    # Fewer orders would have a finer grid: the answers were a quarter of the values for these facts.
    orders = tuple(F(i, 200) for i in range(1, 200))
    values = np.random.default_rng(3).random(30_000)
    for drawn in (None, 20):
        query = bound(
            ask(Interpolated(drawn=drawn), orders, bounds=(0, 1), step=None), "substitution", values
        )
        assert query.chosen.chosen(query.facts).grid == query.facts.grid
        answers = query.value(raw(law_of(query, values).sample(SeededBits(4))))
        assert np.abs(answers * 200 - np.arange(1, 200)).mean() < 1


@given(st.integers(1, 40), st.integers(1, 40))
def test_the_orders_drawn_are_spread_evenly(count, drawn):
    orders = tuple(F(i, count + 1) for i in range(1, count + 1))
    chosen = Interpolated(drawn=drawn).chosen(ask("single", orders, rows=9).facts).orders
    assert len(chosen) == min(count, drawn)
    assert set(chosen) <= set(orders)
    gaps = [high - low for low, high in pairwise([0, *chosen, 1])]
    assert max(gaps) - min(gaps) <= F(2, count + 1)


# --- budgets --------------------------------------------------------------------------------------


@given(st.fractions(F(1, 10**6), 100), st.integers(1, 10_000))
def test_what_is_bought_fits_the_budget(amount, pieces):
    pure = buy(PureDP(amount), pieces)
    assert pure.range * pieces == amount
    assert pure.event.pure_epsilon == amount
    assert pure.pure
    square = buy(ZCDP(amount), pieces)
    assert pieces * square.range**2 / 8 <= amount
    assert float(pieces * square.range**2 / 8) == pytest.approx(float(amount), rel=1e-12)
    assert square.event.rho <= amount


@given(st.fractions(F(1, 10**9), 10**9))
def test_roots_are_rounded_down(square):
    root = root_down(square)
    assert root**2 <= square < (root + F(1, 2**80)) ** 2


def test_an_approximate_budget_buys_the_larger_range():
    few, many = buy(ApproxDP(1, 1e-6), 1), buy(ApproxDP(1, 1e-6), 500)
    assert few.pure
    assert few.range == 1
    assert not many.pure
    assert many.range > F(1, 500)
    assert many.cost == ApproxDP(1, 1e-6)


@pytest.mark.parametrize("relation", RELATIONS)
def test_constants_are_those_of_the_proofs(relation):
    orders = (F(1, 20), H, F(19, 20))
    facts = ask(Independent(), orders, neighbours=relation).facts
    far = [F(19, 20), H, F(19, 20)]
    if relation == "substitution":
        assert Independent().constants(facts) == (F(1, 6),) * 3
        # Half of the range at the root, and a quarter over 9/10 below it; two levels.
        assert Recursive().constants(facts) == (F(1, 2) / 4 / F(9, 10), F(1, 4), F(1, 2) / 4 / F(9, 10))
    else:
        assert Independent().constants(facts) == tuple(F(1, 3) / (2 * each) for each in far)
        assert Recursive().constants(facts) == (F(1, 2) / (2 * F(9, 10)), F(1, 2), F(1, 2) / (2 * F(9, 10)))
    assert InverseSensitivity().constants(facts) == (F(1, 6),) * 3


# --- the number of values is counted first --------------------------------------------------------


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6), ApproxDP(0.1, 0.3)], ids=repr)
def test_a_private_number_is_counted_for_a_twentieth(budget):
    query = bound(ask("auto", DECILES, bounds=(0, 100), step=None, budget=budget), "add-remove")
    assert isinstance(query.event, ComposedEvent)
    # An approximate budget buys more by its epsilon alone, unless its delta is large.
    pure = not isinstance(budget, ZCDP) and budget != ApproxDP(0.1, 0.3)
    assert query.cost == (PureDP(1) if pure else budget)
    if pure:
        assert query.event.pure_epsilon == 1
    else:
        rho = budget.rho if isinstance(budget, ZCDP) else zcdp_rho(budget.epsilon, budget.delta)
        assert query.event.rho <= rho
        assert float(query.event.rho) == pytest.approx(float(rho), rel=1e-9)
    session = sf.Session(
        sf.Dataset({"x": VALUES}, unit="row", neighbours="add-remove"), budget=budget, bits=SeededBits(2)
    )
    release = session.answer(replace(query, neighbours=None, nulls=None, column="x"))
    assert abs(release.outcome[0] - len(VALUES)) < 2000
    assert len(release.outcome) == 10
    assert any("counted" in note for note in release.notes)
    assert sf.read_release(release.to_json()) == release
    assert (np.diff(release.value) >= 0).all()
    assert np.isfinite(law_of(query, VALUES).logpmf(release.outcome))


def test_a_count_that_no_law_gives_is_impossible():
    query = bound(ask("auto", DECILES, bounds=(0, 100)), "add-remove")
    good = raw(query.law(query.look(admit(VALUES))).sample(SeededBits(3)))
    assert query.possible(good)
    for bad in ((), good[1:], (2**61, *good[1:]), (*good, 1)):
        assert not query.possible(bad)


def test_a_hint_saves_the_count():
    hinted = bound(ask("auto", DECILES, bounds=(0, 100), step=None, n_hint=4000), "add-remove")
    assert hinted._counted is None
    assert len(raw(hinted.law(hinted.look(admit(VALUES))).sample(SeededBits(4)))) == 9


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_few_rows_are_counted_as_at_least_one(rows):
    for seed in range(20):
        release = sf.deciles(
            VALUES[:rows], bounds=(0, 100), epsilon=0.1, neighbours="add-remove", bits=SeededBits(seed)
        )
        assert release.query.possible(release.outcome)
        assert np.isfinite(release.value).all()


def test_the_radius_of_inverse_sensitivity_follows_from_the_number_of_values():
    query = bound(
        ask(InverseSensitivity(radius=None), bounds=(0, 100), step=None, nulls="lower"), "substitution"
    )
    assert query.chosen.reach(query.facts) == 2 * 10**9 // (1000 * len(VALUES))
    private = bound(ask(InverseSensitivity(radius=None), bounds=(0, 100), step=None), "add-remove")
    assert private._counted is not None


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", [Single(), Independent(), Recursive(), InverseSensitivity(), "auto"], ids=repr
)
@pytest.mark.parametrize("nulls", ["drop", "lower"])
def test_intervals_on_any_data_hold_all_quantiles_of_the_data(method, nulls):
    probs = (H,) if method == Single() else DECILES
    query = bound(
        ask(method, probs, bounds=(0, 100), step=None, nulls=nulls, budget=PureDP(4)), "substitution"
    )
    law, bits = query.law(query.look(admit(VALUES))), SeededBits(5)
    truth = np.sort(VALUES)[[math.ceil(q * len(VALUES)) - 1 for q in probs]]
    misses = 0
    for _ in range(60):
        outcome = raw(law.sample(bits))
        low, high = query.interval(outcome, 0.9, "any data")
        assert (low <= query.value(outcome)).all() or method == InverseSensitivity()
        assert (low <= high).all()
        misses += bool(((truth < low) | (truth > high)).any())
        wide = query.population_interval(outcome, 0.9, "any data")
        assert (wide[0] <= low).all()
        assert (wide[1] >= high).all()
    assert misses <= 15


@pytest.mark.parametrize("method", [Single(), Recursive(), InverseSensitivity()], ids=repr)
@pytest.mark.parametrize("relation", RELATIONS)
def test_ranks_of_answers_are_within_their_error(method, relation):
    query = bound(ask(method, (H,), bounds=(0, 100), step=None), relation)
    law, bits = query.law(query.look(admit(VALUES))), SeededBits(6)
    error = query.rank_error(0.9)
    ranks = [(query.value(raw(law.sample(bits)))[0] >= VALUES).sum() for _ in range(200)]
    assert (np.abs(np.array(ranks) - len(VALUES) / 2) <= error + 1).mean() >= 0.9


def test_a_whole_cdf_needs_a_tree():
    query = bound(ask(Single(), bounds=(0, 100)), "substitution")
    with pytest.raises(sf.SfumatoError, match="tree"):
        query.cdf((5,), [1.0])


# --- the front door -------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_four_functions_ask_the_same_query(relation):
    given = {"bounds": (0, 100), "epsilon": 2, "neighbours": relation, "n_hint": 4000}
    deciles = sf.deciles(VALUES, bits=SeededBits(7), **given)
    assert deciles.query.orders == DECILES
    assert np.array_equal(deciles.value, sf.quantiles(VALUES, DECILES, bits=SeededBits(7), **given).value)
    median = sf.median(VALUES, bits=SeededBits(7), **given)
    assert median.value == sf.quantile(VALUES, 0.5, bits=SeededBits(7), **given).value
    assert median.query.labels() == ("0.5",)
    assert abs(median.value - 50) < 5
    assert np.abs(deciles.value - np.quantile(VALUES, [float(q) for q in DECILES])).max() < 5


def test_orders_are_read_as_decimals():
    assert ask(probs=[0.1, 0.30000000000000004, 1 / 3]).probs == (F(1, 10), F(3, 10), F(1, 3))
    assert ask(probs=[1e-5]).probs == (F(1, 100_000),)
    assert ask(probs=np.array([0.1], dtype=np.float32)).probs == (F(1, 10),)


@given(
    probs=st.lists(st.fractions(F(1, 1000), F(999, 1000), max_denominator=10**5), min_size=1, max_size=6),
    method=st.sampled_from(
        ["auto", "independent", "recursive", Recursive(subcells=8), InverseSensitivity(radius=F(1, 3))]
    ),
    hint=st.none() | st.integers(1, 2**62),
    step=st.sampled_from([None, F(1, 7), 1]),
)
def test_a_query_survives_json_and_has_a_hash(probs, method, hint, step):
    query = Quantiles(
        probs=probs,
        method=method,
        n_hint=hint,
        step=step,
        budget=PureDP(F(1, 3)),
        bounds=(0, 3),
        neighbours="add-remove",
    )
    again = read_query("quantiles", parameters(query))
    assert again == query
    assert hash(again) == hash(query)
    assert (again.event, again.cost, again.described) == (query.event, query.cost, query.described)


def test_bounds_and_nulls_come_from_the_schema():
    schema = {"x": sf.Field(bounds=(0, 100), nulls="lower")}
    data = sf.Dataset({"x": VALUES}, unit="row", neighbours="substitution", schema=schema)
    release = sf.Session(data, budget=PureDP(1), bits=SeededBits(8)).answer(
        Quantiles(column="x", probs=[0.5], budget=PureDP(1))
    )
    assert (release.query.lower, release.query.upper) == (0, 100)
    assert release.query.size_is_public
    assert abs(release.value[0] - 50) < 10


def test_a_hint_never_replaces_a_public_number_of_rows():
    query = bound(ask("auto", DECILES, n_hint=10**9, nulls="lower"), "substitution", VALUES[:40])
    assert query.facts.size == 40


def test_integers_beyond_the_finest_grid_are_answered_on_it():
    release = sf.median(np.array([0, 2**40]), bounds=(0, 2**40), epsilon=1000, bits=SeededBits(9))
    assert release.query.facts.grid.cells == 2**32
    fractional = sf.median(np.array([0, 1]), bounds=(0.5, 1.5), epsilon=1, bits=SeededBits(9))
    assert 0.5 <= fractional.value <= 1.5


# --- what a release promises ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "orders", [(F(333, 1000), F(667, 1000)), (F(12345, 10**5), F(54321, 10**5))], ids=str
)
def test_equal_values_are_answered_whatever_the_denominators_are(orders):
    # The floor of the weights counts for all points together, and there are 2**56 of them.
    for seed in range(4):
        release = sf.quantiles(
            np.full(10**6, 0.3), orders, bounds=(0, 1), epsilon=1, method="recursive", bits=SeededBits(seed)
        )
        assert release.value == pytest.approx([0.3, 0.3], abs=1e-9)


def test_a_budget_that_leaves_no_bound_says_so():
    tiny = ask(Single(), (F(12345, 10**5),), bounds=(0, 1), step=None, budget=PureDP(1e-12), rows=10)
    assert tiny.rank_error(0.95) >= MAX_ROWS
    assert "no accuracy" in tiny.accuracy_words(tiny.error(10, 0.95))


def test_a_smoothed_answer_promises_ranks_of_what_is_near_it():
    query = ask(InverseSensitivity(radius=5), bounds=(0, 100), rows=9000)
    ((low, high),) = query.chosen.brackets((50,), query.facts)
    assert (low, high) == (45, 56)
    assert any("5 away" in note for note in query.notes((50,)))


def test_ties_beyond_the_places_of_a_cell_are_part_of_the_error():
    for kind in (Joint, Recursive):
        few, many = (
            ask(kind(subcells=n), DECILES, bounds=(0, 100), rows=10**4, nulls="lower") for n in (1, 2**24)
        )
        assert few.rank_error(0.95) >= 10**4 - 1
        assert many.rank_error(0.95) < 10**4 - 1


@pytest.mark.parametrize("method", ["single", "recursive", "joint", "interpolated", "tree", "auto"])
def test_a_step_that_does_not_fit_is_refused_before_it_is_charged(method):
    data = sf.Dataset({"x": np.arange(9.0)}, unit="row", neighbours="substitution")
    with sf.Session(data, budget=PureDP(1)) as session:
        with pytest.raises(sf.InvalidParameter, match="step"):
            session.answer(
                Quantiles(column="x", probs=(H,), bounds=(0, 10), step=3, method=method, budget=PureDP(1))
            )
        assert not session.spent.epsilon


def test_integers_far_from_zero_have_the_finest_grid_that_there_is():
    milliseconds = np.arange(1_700_000_000_000, 1_700_000_000_900)
    release = sf.median(milliseconds, bounds=(1_700_000_000_000, 1_700_000_100_000), epsilon=100)
    assert abs(release.value - 1_700_000_000_450) < 100


def test_a_tiny_budget_never_leads_to_a_joint_draw():
    for rows in (1, 10**6, 10**15):
        facts = ask("auto", DECILES, bounds=(0, 1), step=None, budget=PureDP(1e-9), rows=None).facts
        assert choose(replace(facts, size=rows))[0] == "recursive"


def test_a_release_tells_how_many_ranks_it_may_be_off():
    values = np.arange(5000.0)
    for facts in ({"nulls": "lower"}, {"neighbours": "add-remove"}, {"interval_share": "auto"}):
        release = sf.deciles(values, bounds=(0, 5000), epsilon=1, bits=SeededBits(1), **facts)
        errors = [release.rank_error(level) for level in (0.5, 0.95, 0.999)]
        assert errors == sorted(errors)
        assert any(f"within {errors[1]:,} ranks" in note for note in release.notes)
        off = np.abs(release.value - 500 * np.arange(1, 10))
        assert off.max() <= release.rank_error(0.999) + 1
    with pytest.raises(sf.NotSupported, match="rank_error"):
        sf.mean([1.0], bounds=(0, 1), epsilon=1).rank_error()
