"""Round numbers have more points: heaps are found, and nothing else of a release changes."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator
from tests.quantile_methods.cases import FEW_RULES, NULLS, RELATIONS, ask, law_of

import sfumato as sf
from sfumato.audit import worst_case
from sfumato.data import line as lines
from sfumato.data.admission import admit
from sfumato.errors import InvalidParameter
from sfumato.grid import MAX_CELLS
from sfumato.laws import SeededBits
from sfumato.privacy import ApproxDP, PureDP
from sfumato.quantile_methods import Interpolated, Joint, Quantiles, Recursive, Single
from sfumato.quantile_methods.interpolated import informative
from sfumato.query import raw

F = Fraction
KINDS = (Joint, Recursive, Interpolated)
QUARTILES = (F(1, 4), F(1, 2), F(3, 4))
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@pytest.fixture
def every_step(monkeypatch):
    """Steps with two numbers between the bounds count too, so that small grids have wide cells."""
    monkeypatch.setattr(lines, "LEAST_ROUND", 1)
    lines.line_on.cache_clear()
    yield
    lines.line_on.cache_clear()


# Of the points 0, 5 and 10 the first and the last are multiples of 10.
SMALL = {"bounds": (0, 10), "step": 5}


def options(kind, subcells):
    drawn = {"drawn": 2} if kind is Interpolated else {}
    return kind(subcells=subcells, emphasis=1, **drawn)


@each_kind
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("subcells", [1, 2])
def test_no_neighbours_lose_more_than_was_charged(kind, relation, subcells, every_step):
    for orders in ((F(1, 2),), QUARTILES):
        for budget, nulls in FEW_RULES[: None if len(orders) == 1 else 2]:
            facts = {"neighbours": relation, "nulls": nulls, "budget": budget, "n_hint": 4, **SMALL}
            query = ask(options(kind, subcells), orders, **facts)
            assert query.chosen.line(query.facts).units == 3 + 2 * 2
            worst = worst_case(query, size=2 if subcells > 1 and len(orders) > 1 else 3, cells=3)
            assert worst.loss.holds, worst
            assert isinstance(budget, ApproxDP) or worst.loss.amount > 0.3 * worst.loss.charged


@each_kind
@pytest.mark.parametrize("relation", RELATIONS)
def test_verified_quantiles_lose_no_more_than_was_charged(kind, relation, every_step):
    facts = {"neighbours": relation, "n_hint": 4, "verify": F(2, 5), **SMALL}
    worst = worst_case(ask(options(kind, 1), (F(1, 2),), **facts), size=2, cells=3)
    assert worst.loss.holds, worst


@pytest.mark.parametrize("values", [(), (0,), (0, 0, 10), (5, 10, 10, 10), (0, 5, 5, 10)], ids=str)
@pytest.mark.parametrize("kind", [Joint, Recursive], ids=lambda kind: kind.name)
def test_a_cell_weighs_as_many_units_as_it_has(kind, values, every_step):
    # The law of the emphasised line is that of a plain one on which wide cells are written out as several.
    query = ask(options(kind, 4), (F(1, 3), F(2, 3)), n_hint=4, neighbours="add-remove", **SMALL)
    law = law_of(query, values)
    chances = np.exp([law.logpmf(outcome) for outcome in law.outcomes()])
    assert chances.sum() == pytest.approx(1)
    answers = [tuple(query.chosen.answers(outcome, query.facts)) for outcome in law.outcomes()]
    if not values:
        # Ordered pairs of 28 points, of which 12, 4 and 12 are in the cells.
        wide = sum(chance for chance, pair in zip(chances, answers, strict=True) if pair == (0, 0))
        assert kind is Recursive or wide == pytest.approx(12 * 13 / (28 * 29))
    assert set(answers) == set(itertools.combinations_with_replacement((0, 5, 10), 2))


# --- one order ------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("order", [F(1, 2), F(1, 10)], ids=str)
def test_one_quantile_loses_no_more_than_was_charged(relation, order, every_step):
    for (budget, nulls), verify in itertools.product(FEW_RULES, (0, F(1, 4))):
        given = {"neighbours": relation, "nulls": nulls, "budget": budget, "n_hint": 4, "verify": verify}
        worst = worst_case(ask(Single(emphasis=1), (order,), **given, **SMALL), size=3, cells=3)
        assert worst.loss.holds, worst
        assert isinstance(budget, ApproxDP) or worst.loss.amount > 0.3 * worst.loss.charged


@pytest.mark.parametrize("values", [(), (0,), (0, 0, 10), (5, 10, 10, 10), (0, 5, 5, 10), (10, 10)], ids=str)
@pytest.mark.parametrize("order", [F(1, 2), F(1, 3), F(9, 10)], ids=str)
def test_every_point_of_a_cell_has_the_weight_of_the_cell(values, order, every_step):
    query = ask(Single(emphasis=1), (order,), n_hint=4, neighbours="add-remove", **SMALL)
    law, target = law_of(query, values), order * len(values)
    c = query.chosen.constants(query.facts)[0]
    weights = []
    for cell, points in ((0, 3), (5, 1), (10, 3)):
        below, upto = sum(v < cell for v in values), sum(v <= cell for v in values)
        weights += [np.exp(-float(c * max(below - target, target - upto, 0)))] * points
    found = np.exp([law.logpmf((point,)) for point in range(7)])
    assert found == pytest.approx(np.array(weights) / sum(weights), rel=1e-6)


def test_one_quantile_finds_a_heap_at_a_round_number_and_auto_takes_it():
    values, median = wages(300), (F(1, 2),)
    plain, emphasised = (rank_errors(Single(emphasis=part), values, median) for part in (0, F(1, 64)))
    assert emphasised < 0.5 * plain
    query = Quantiles(
        probs=median, budget=PureDP(1), bounds=(0, 200), n_hint=300, neighbours="add-remove", verify=0
    )
    assert query.chosen == Single(emphasis=F(1, 64))
    assert query.resolved_by().resolved.method == Single(emphasis=F(1, 64))


def test_permute_and_flip_visits_cells():
    with pytest.raises(InvalidParameter, match="emphasis must be 0 with flip=True"):
        Single(flip=True, emphasis=F(1, 2))


# --- heaps and smooth data --------------------------------------------------------------------------


def wages(rows=600, seed=1):
    """Numbers of which most are multiples of 5."""
    rng = np.random.default_rng(seed)
    values = rng.lognormal(3, 0.5, rows)
    return np.where(rng.random(rows) < 0.6, 5 * np.round(values / 5), values)


def rank_errors(method, values, orders, draws=40):
    query = Quantiles(
        probs=orders,
        budget=PureDP(1),
        bounds=(0, 200),
        method=method,
        n_hint=len(values),
        neighbours="add-remove",
        verify=0,
    )
    law, bits = query.law(query.look(admit(values))), SeededBits(3)
    ordered, targets = np.sort(values), np.array([float(order) for order in orders]) * len(values)
    found = []
    for _ in range(draws):
        answers = query.value(raw(law.sample(bits)))
        below, upto = (np.searchsorted(ordered, answers, side) for side in ("left", "right"))
        found.append(np.maximum(np.maximum(below - targets, targets - upto), 0).mean())
    return float(np.mean(found))


@each_kind
def test_heaps_are_found_where_round_numbers_have_more_points(kind):
    orders = [F(i, 50) for i in range(1, 50)] if kind is Interpolated else QUARTILES
    plain, emphasised = (rank_errors(kind(emphasis=part), wages(), orders) for part in (0, F(1, 64)))
    assert emphasised < 0.75 * plain


@each_kind
def test_smooth_data_are_answered_as_well(kind):
    values = np.random.default_rng(2).uniform(0, 200, 600)
    orders = [F(i, 20) for i in range(1, 20)] if kind is Interpolated else QUARTILES
    plain, emphasised = (rank_errors(kind(emphasis=part), values, orders, 200) for part in (0, F(1, 64)))
    assert emphasised < 1.15 * plain


def interpolated(points, probs, **given):
    """What the method answers when these cells were drawn, and its query."""
    query = Quantiles(
        probs=probs,
        budget=PureDP(1),
        bounds=(0, 100),
        method=Interpolated(drawn=len(points), **given),
        n_hint=1000,
        neighbours="add-remove",
        verify=0,
    )
    line, step = query.chosen.line(query.facts), query.facts.grid.step
    outcome = tuple(line.begins(int(value / step)) * query.chosen.subcells for value in points)
    assert query.chosen.possible(outcome, query.facts)
    return [float(value) for value in query.chosen.answers(outcome, query.facts)]


SEVENTHS = [F(i, 8) for i in range(1, 8)]


def test_answers_between_round_numbers_are_round():
    # Drawn are the orders 2/8, 4/8 and 6/8.
    assert interpolated([F(10), F(20), F(31)], SEVENTHS) == [5, 10, 15, 20, 25, 31, 38]
    # Two of three are multiples of 5, which is no step here, and of 1.
    assert interpolated([F(10), F(25), F("31.3")], SEVENTHS) == [5, 10, 18, 25, 28, 31.3, 35]


def test_answers_between_others_lie_on_a_curve_that_follows_skewed_data():
    points = [0, *np.exp(np.linspace(2, 4, 9)).round(2), 100]
    orders = [F(i, 10) for i in range(11)]
    curve = PchipInterpolator([float(q) for q in orders], points)
    probs = [F(i, 40) for i in range(1, 40)]
    found = interpolated([F(str(point)) for point in points[1:-1]], probs, emphasis=0)
    inner = [float(q) for q in probs if F(1, 10) <= q <= F(9, 10)]
    # Both ends are lines, and have other slopes.
    assert curve(inner)[4:-4] == pytest.approx(found[7:-7], abs=0.001)
    straight = np.interp(inner, [float(q) for q in orders], points)
    assert np.abs(straight - found[3:-3]).max() > 0.03


@given(
    st.lists(
        st.integers(0, 200).map(lambda whole: 1000 * whole) | st.integers(0, 200_000), min_size=1, max_size=9
    )
)
@settings(max_examples=60)
def test_answers_never_decrease_and_stay_in_their_brackets(cells):
    query = ask(
        Interpolated(drawn=len(cells)),
        [F(i, 30) for i in range(1, 30)],
        bounds=(0, 200),
        step=F(1, 1000),
        neighbours="add-remove",
        n_hint=1000,
    )
    method, facts = query.chosen, query.facts
    line = method.line(facts)
    outcome = tuple(line.begins(cell) * method.subcells for cell in sorted(cells))
    answers = method.answers(outcome, facts)
    assert list(answers) == sorted(answers)
    for answer, (low, high) in zip(answers, method.brackets(outcome, facts), strict=True):
        assert low <= answer <= high


@each_kind
def test_a_stored_release_keeps_the_emphasis_it_was_drawn_under(kind, monkeypatch):
    values = wages()
    data = sf.Dataset({"pay": values}, unit="row", neighbours="substitution", name="people")
    with sf.Session(data, budget=sf.PureDP(9)) as session:
        release = session.answer(
            Quantiles(column="pay", probs=QUARTILES, bounds=(0, 200), budget=PureDP(1), method=kind())
        )
        other = session.answer(
            Quantiles(
                column="pay",
                probs=QUARTILES,
                bounds=(0, 200),
                budget=PureDP(1),
                method=kind(emphasis=F(1, 8)),
            )
        )
    for one, emphasis in ((release, F(1, 64)), (other, F(1, 8))):
        text = one.to_json()
        monkeypatch.setattr(kind, "emphasis", F(0))
        monkeypatch.setattr(
            kind.__init__, "__kwdefaults__", {**kind.__init__.__kwdefaults__, "emphasis": F(0)}
        )
        read = sf.read_release(text)
        monkeypatch.undo()
        assert read == one
        assert read.query.method.emphasis == emphasis
        assert read.value.tolist() == one.value.tolist()


@pytest.mark.parametrize("emphasis", [-1, F(65, 64), 2, float("nan"), "1", None])
def test_an_emphasis_is_a_share(emphasis):
    with pytest.raises(InvalidParameter, match="emphasis"):
        Joint(emphasis=emphasis)


@each_kind
def test_too_many_points_are_refused_before_anything_is_charged(kind):
    given = {"bounds": (0, MAX_CELLS - 1), "step": 1, "neighbours": "add-remove", "n_hint": 10}
    kept, refused = (ask(kind(subcells=2**30, emphasis=part), QUARTILES, **given) for part in (0, F(1, 64)))
    kept.check(admit(np.array([1.0])))
    with pytest.raises(InvalidParameter, match="subcells"):
        refused.check(admit(np.array([1.0])))


@each_kind
@pytest.mark.parametrize("nulls", NULLS)
def test_the_rank_error_holds_on_heaps(kind, nulls):
    values = np.array([*wages(200), np.nan, 0.0, 200.0])
    query = Quantiles(
        probs=QUARTILES,
        budget=PureDP(1),
        bounds=(0, 200),
        method=kind(drawn=3) if kind is Interpolated else kind(),
        neighbours="substitution",
        nulls=nulls,
        rows=len(values),
        verify=0,
    )
    kept = {"drop": values[~np.isnan(values)], "lower": np.nan_to_num(values, nan=0.0)}
    ordered = np.sort(kept.get(nulls, np.nan_to_num(values, nan=200.0)))
    law, bits, most = query.law(query.look(admit(values))), SeededBits(4), query.rank_error(0.95)
    assert informative(query.facts) >= 3
    for _ in range(100):
        answers = query.value(raw(law.sample(bits)))
        below, upto = (np.searchsorted(ordered, answers, side) for side in ("left", "right"))
        targets = np.array([0.25, 0.5, 0.75]) * len(ordered)
        assert np.maximum(below - targets, targets - upto).max() <= most
