"""Intervals told by how far apart released quantiles are: the rule, its limits, and how often it holds.

benchmarks/interval_widths.py is the full campaign; here are 200 releases of each kind of data.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.quantile_methods.cases import RELATIONS, ask

import sfumato as sf
from sfumato.accuracy import Scenario
from sfumato.data.admission import admit
from sfumato.laws import SeededBits
from sfumato.privacy import PureDP
from sfumato.quantile_methods import Single, framed, spacing
from sfumato.quantile_methods.framed import Framed
from sfumato.quantile_methods.method import sampling_ranks
from sfumato.quantile_methods.spacing import (
    ANY_DATA,
    LEAST_TOLD,
    SLOPES,
    Slopes,
    ends,
    known_orders,
    known_values,
    spaced,
)
from sfumato.query import raw

F = Fraction
H = F(1, 2)
DECILES = tuple(F(i, 10) for i in range(1, 10))
VALUES = np.random.default_rng(1).normal(50, 10, 1000)


def median(values=VALUES, seed=1, **others):
    given = {"bounds": (0, 100), "epsilon": 1, "nulls": "lower", "interval_share": "auto", "verify": 0}
    return sf.median(values, bits=SeededBits(seed), **{**given, **others})


def deciles(values=VALUES, seed=1, **others):
    given = {"bounds": (0, 100), "epsilon": 1, "nulls": "lower", "verify": 0}
    return sf.deciles(values, bits=SeededBits(seed), **{**given, **others})


def width(interval):
    return np.subtract(*interval[::-1])


# --- the rule on cases made by hand ---------------------------------------------------------------


def test_outer_points_are_known_beside_the_answers():
    query = ask(Single(), (H,), bounds=(0, 100), rows=50, interval_share=H)
    low, high = query.chosen.outer_orders(query.facts)
    places = framed.Joint().subcells
    assert known_orders(query.chosen, query.facts).tolist() == [low, 0.5, high]
    outcome = (40, 30 * places, 55 * places)
    assert known_values(query.chosen, outcome, query.facts).tolist() == [30, 40, 55]


def test_without_a_share_the_bounds_stand_at_both_ends():
    query = ask("independent", DECILES, bounds=(-5, 100), rows=50)
    assert known_orders(query.chosen, query.facts).tolist() == [0.0, *(float(q) for q in DECILES), 1.0]
    found = known_values(query.chosen, tuple(range(10, 19)), query.facts)
    assert found.tolist() == [-5, *range(5, 14), 100]


def test_slopes_are_those_of_the_lines_between_known_values():
    slopes = Slopes.of(np.array([0.25, 0.5, 0.75]), np.array([10.0, 20.0, 40.0]))
    assert slopes.below.tolist() == [40.0]
    assert slopes.above.tolist() == [80.0]
    assert slopes.at.tolist() == [60.0]


@given(
    st.lists(st.integers(1, 99), min_size=3, max_size=12, unique=True).map(sorted),
    st.floats(0, 5),
    st.floats(0, 5),
)
def test_the_slope_at_an_order_is_that_of_a_parabola(places, linear, square):
    orders = np.array(places) / 100
    slopes = Slopes.of(orders, linear * orders + square * orders**2)
    assert slopes.at == pytest.approx(linear + 2 * square * orders[1:-1], abs=1e-9)


def test_equal_values_have_no_slope_and_crossed_ones_no_negative_slope():
    orders = np.array([0.1, 0.5, 0.9])
    assert Slopes.of(orders, np.array([3.0, 3.0, 3.0])).at.tolist() == [0.0]
    crossed = Slopes.of(orders, np.array([30.0, 20.0, 10.0]))
    assert (crossed.at >= 0).all()


def test_a_heap_shows_where_neighbours_are_far_closer_than_others():
    orders = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    assert not Slopes.of(orders, np.array([0.0, 1.0, 2.0, 3.0, 9.0])).heaped
    assert Slopes.of(orders, np.array([0.0, 1.0, 1.001, 3.0, 4.0])).heaped
    # All equal are a shape of their own.
    assert not Slopes.of(orders, np.array([5.0] * 5)).heaped


def test_the_shapes_are_what_they_say():
    sample = (np.arange(100) + 0.5) / 100
    for shape in (*spacing.SHAPES, *spacing.HEAPS):
        values = shape.values(sample)
        assert len(values) == 100
        assert np.all(np.diff(values) >= 0)
        assert 0 <= values[0] <= values[-1] <= 1
        equal = np.sum(values == shape.heap) if shape.heap is not None else 0
        assert equal == (50 if shape.heap is not None else 0)
        assert np.ptp(values) <= max(shape.width, 0.51)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0, "auto"])
def test_deciles_around_a_heap_are_covered(share):
    # Half of the values are equal, the others spread: a draw leaves the heap and takes its neighbours along.
    bits, covered = SeededBits(3), []
    generator = np.random.default_rng(4)
    for _ in range(150):
        values = np.where(generator.random(1000) < 0.5, 30.0, generator.uniform(0, 100, 1000))
        released = sf.deciles(
            values, bounds=(0, 100), epsilon=1, nulls="lower", interval_share=share, verify=0, bits=bits
        )
        low, high = released.interval()
        truth = np.sort(values)[[100 * i - 1 for i in range(1, 10)]]
        covered.append((low - 1e-9 <= truth) & (truth <= high + 1e-9))
    # Two orders are at the ends of the heap, and may be in a gap.
    assert np.sort(np.mean(covered, axis=0))[2] >= 0.93 - 4 * np.sqrt(0.05 * 0.95 / 150)


def test_ends_lie_around_the_answer_and_inside_the_bounds():
    facts = ask("independent", DECILES[:3], bounds=(0, 10), step=F(1, 4), rows=9).facts
    low, high = ends([0.5, 5.0, 9.5], np.array([1.0, 2.0, 3.0]), facts, 0.95, on_points=False)
    assert low.tolist() == [0.0, 3.0, 6.5]
    # A value of the data may be anywhere in the cell of its point, a quarter long.
    assert high.tolist() == [1.75, 7.25, 10.0]


def test_ends_are_points_where_the_data_are():
    facts = ask("independent", DECILES[:4], bounds=(0, 10), step=1, rows=9).facts
    reach = np.array([0.0, 0.11, 0.13, 2.2])
    low, high = ends([5.0] * 4, reach, facts, 0.95, on_points=True)
    # 2.4 times five per cent of a point are forgiven.
    assert low.tolist() == [5.0, 5.0, 4.0, 2.0]
    assert high.tolist() == [5.0, 5.0, 6.0, 8.0]
    surer = ends([5.0] * 4, reach, facts, 0.999, on_points=True)
    assert (surer[0] <= low).all()
    assert (surer[1] >= high).all()


@pytest.mark.parametrize(
    ("size", "rounded"), [(0, 1), (9, 9), (99, 99), (100, 100), (109, 100), (12_345, 12_000)]
)
def test_numbers_of_values_share_a_simulation(size, rounded):
    assert spacing._two_digits(size) == rounded


# --- releases -------------------------------------------------------------------------------------


@pytest.fixture(params=["median", "deciles", "deciles with a share"])
def release(request):
    if request.param == "median":
        return median()
    return deciles(interval_share=0 if request.param == "deciles" else "auto")


def test_an_interval_holds_its_answer_inside_the_bounds(release):
    for low, high in (release.interval(), release.population_interval()):
        assert np.all((low <= release.value) & (release.value <= high))
        assert np.all(np.asarray(low) >= 0)
        assert np.all(np.asarray(high) <= 100)
        # It tells something: the bounds are a hundred apart.
        assert np.mean(width((low, high))) < 20


def test_an_interval_grows_with_its_confidence(release):
    for ask_for in (release.interval, release.population_interval):
        widths = [np.mean(width(ask_for(level))) for level in (0.5, 0.8, 0.9, 0.95, 0.99, 0.9999)]
        assert all(low < high for low, high in pairwise(widths))


def test_the_population_has_a_wider_interval(release):
    (low, high), (least, most) = release.interval(), release.population_interval()
    assert np.all(least <= low)
    assert np.all(most >= high)
    assert np.mean(width((least, most))) > np.mean(width((low, high)))


def test_all_together_are_wider_than_each(release):
    each, all_together = width(release.interval()), width(release.interval(simultaneous=True))
    if release.query.scalar:
        assert all_together == each
    else:
        assert np.all(all_together >= each)
        assert np.mean(all_together) > np.mean(each)
        bonferroni = release.interval(1 - 0.05 / 9)
        assert np.array_equal(bonferroni, release.interval(simultaneous=True))


@pytest.mark.slow
def test_an_interval_shrinks_with_epsilon():
    widths = [
        np.mean([width(median(seed=seed, epsilon=epsilon).interval()) for seed in range(20)])
        for epsilon in (0.5, 1, 4)
    ]
    assert widths[0] > 1.5 * widths[1] > 1.5 * 1.5 * widths[2]


def test_intervals_survive_json_and_are_the_same_each_time(release):
    again = sf.read_release(release.to_json())
    first = [release.interval(0.9), release.population_interval(0.9)]
    assert np.array_equal(first, [again.interval(0.9), again.population_interval(0.9)])
    if release.query.scalar:
        # Simulated anew, and not remembered.
        spacing._needed.cache_clear()
        spacing._reaches.cache_clear()
        assert np.array_equal(first, [again.interval(0.9), again.population_interval(0.9)])


def test_repeated_orders_in_any_order_have_the_intervals_of_their_own():
    given = {"bounds": (0, 100), "epsilon": 1, "nulls": "lower", "interval_share": "auto"}
    plain = sf.quantiles(VALUES, [0.25, 0.75], bits=SeededBits(1), **given).interval()
    mixed = sf.quantiles(VALUES, [0.75, 0.25, 0.75], bits=SeededBits(1), **given).interval()
    for one, other in zip(plain, mixed, strict=True):
        assert one[[1, 0, 1]].tolist() == other.tolist()


# --- on any data ----------------------------------------------------------------------------------


def surely_around(query, outcome, confidence, *, population):
    """Between released points that are surely below and above: as many ranks away as answers may be off."""
    method, facts = query.chosen, query.facts
    size = len(VALUES)
    level = 1 - (1 - confidence) / 2 if population else confidence
    need = method.rank_error(facts, level) + 1
    if population:
        need += math.ceil(sampling_ranks(size, (1 - confidence) / 2 / len(query.orders)))
    points = list(zip(query.orders, method.brackets(outcome, facts), strict=True))
    found = []
    for order in query.orders:
        low = [bracket[0] for other, bracket in points if other <= order - F(need, size)]
        high = [bracket[1] for other, bracket in points if other >= order + F(need, size)]
        found.append((float(low[-1]) if low else 0.0, float(high[0]) if high else 100.0))
    return np.array(found).T


def test_any_data_asks_for_what_is_surely_below_and_above(release):
    query, outcome = release.query, release.outcome
    for confidence in (0.5, 0.95):
        wide = release.interval(confidence, scenario=ANY_DATA)
        assert np.array_equal(
            np.reshape(wide, (2, -1)), surely_around(query, outcome, confidence, population=False)
        )
        widest = release.population_interval(confidence, scenario=ANY_DATA)
        expected = surely_around(query, outcome, confidence, population=True)
        assert np.array_equal(np.reshape(widest, (2, -1)), expected)
        assert np.all(np.asarray(widest[0]) <= wide[0])
        assert np.all(np.asarray(widest[1]) >= wide[1])
        assert np.mean(width(wide)) > np.mean(width(release.interval(confidence)))


def test_one_quantile_alone_tells_nothing_but_on_any_data():
    alone = median(interval_share=0)
    assert not spaced(alone.query.chosen, alone.query.facts)
    assert alone.interval() == alone.interval(scenario=ANY_DATA) == (0.0, 100.0)
    assert any("interval_share" in note for note in alone.notes)
    assert not any("interval_share" in note for note in median().notes)


@pytest.mark.parametrize("make", [median, deciles], ids=["median", "deciles"])
def test_few_values_have_the_interval_that_holds_on_any_data(make):
    beyond = H if make is median else F(1, 10)
    few = LEAST_TOLD / beyond - 1
    release = make(VALUES[: int(few)])
    assert not spaced(release.query.chosen, release.query.facts)
    assert spaced(release.query.chosen, replace(release.query.facts, size=int(few) + 1))
    assert np.array_equal(release.interval(), release.interval(scenario=ANY_DATA))
    assert np.array_equal(release.population_interval(), release.population_interval(scenario=ANY_DATA))
    assert any("on any data" in note and "few values" in note for note in release.notes)


def test_where_no_width_is_enough_on_all_shapes_the_interval_holds_on_any_data(release):
    with patch.object(spacing, "_needed", lambda *others: np.array([np.inf] * len(release.query.orders))):
        assert np.array_equal(release.interval(), release.interval(scenario=ANY_DATA))
        assert any("few values" in note for note in release.notes)
    assert not any("few values" in note for note in release.notes)
    assert any("spread around a quantile" in note for note in release.notes)


def test_a_tree_keeps_its_own_interval():
    release = sf.deciles(np.arange(1000) % 100, bounds=(0, 100), epsilon=1, method="tree", bits=SeededBits(1))
    assert np.array_equal(release.interval(), release.interval(scenario=ANY_DATA))
    assert any("holds on any data" in note for note in release.notes)


# --- by name --------------------------------------------------------------------------------------


def test_slopes_by_name_are_what_they_are_without_it(release):
    for confidence in (0.5, 0.95):
        assert np.array_equal(release.interval(confidence), release.interval(confidence, scenario=SLOPES))
        wide = release.population_interval(confidence, scenario=SLOPES)
        assert np.array_equal(release.population_interval(confidence), wide)


@pytest.mark.parametrize("make", [median, deciles], ids=["median", "deciles"])
@pytest.mark.parametrize("facts", [{}, {"neighbours": "add-remove"}], ids=["public", "counted"])
def test_a_verified_release_has_slopes_of_what_was_drawn(make, facts):
    release = make(interval_share=0, verify="auto", **facts)
    method, known, outcome = release.query._settled(release.outcome)
    inner, own, drawn = method.method, method.own(known), release.outcome[1 if facts else 0 :]
    drawn = drawn[: -method.counted(known)]
    assert outcome[: len(drawn)] == drawn
    values = np.array([float(value) for value in inner.answers(drawn, own)])
    reach = spacing.widths(inner, own, drawn, 0.95, population=False)
    expected = ends(values, reach, own, 0.95, on_points=False)
    found = release.interval(0.95, scenario=SLOPES)
    assert np.array_equal(np.reshape(found, (2, -1)), expected)
    wide = release.population_interval(0.95, scenario=SLOPES)
    narrow, wide = np.atleast_1d(width(found)), np.atleast_1d(width(wide))
    # Where too few values are beyond an outer order, both are what holds on any data.
    assert np.all(narrow <= wide)
    assert np.all(narrow[1:-1] < wide[1:-1])


def test_where_slopes_tell_nothing_they_are_refused_in_plain_words():
    given = {"bounds": (0, 100), "epsilon": 100, "nulls": "lower", "verify": 0}
    many = sf.quantiles(VALUES, np.linspace(0.1, 0.9, 200), method="recursive", **given)
    refused = {
        "one quantile cannot tell": median(interval_share=0),
        "so few values": deciles(VALUES[:20]),
        "tells its own interval": deciles(method="tree", step=1),
        "no bounds": deciles(bounds=None, method="unbounded"),
        "more than 128 quantiles": many,
        "nothing is known of the number": deciles(method="independent", neighbours="add-remove"),
    }
    for words, release in refused.items():
        for ask_for in (release.interval, release.population_interval):
            with pytest.raises(sf.NotSupported, match=f"slopes tells nothing here: .*{words}"):
                ask_for(scenario=SLOPES)
    with pytest.raises(sf.NotSupported, match="takes no scenario"):
        sf.count(VALUES, epsilon=1).interval(scenario=SLOPES)
    release, endless = median(), patch.object(spacing, "_needed", lambda *others: np.array([np.inf]))
    with endless, pytest.raises(sf.NotSupported, match="so few values"):
        release.interval(scenario=SLOPES)


def test_a_verified_release_says_so():
    # Alike for all groups of a table, so that they share their notes.
    words = "the interval is verified by counts and holds on any data; the counts also correct what was drawn"
    heaps = np.repeat([20.0, 90.0], [520, 480])
    for seed in range(5):
        for make in (median, deciles):
            assert make(heaps, seed, interval_share=0, verify="auto").notes[-1] == words
    assert not any("verified" in note for note in deciles().notes)


# --- under a scenario -----------------------------------------------------------------------------


def test_a_scenario_says_how_such_data_are_spread():
    scenario = Scenario.named("normal", mean=50, sd=10)
    truth = np.sort(VALUES)[499]
    alone = [median(seed=seed, interval_share=0) for seed in range(60)]
    found = [release.interval(scenario=scenario) for release in alone]
    held = np.mean([low <= truth <= high for low, high in found])
    print(f"one quantile under a scenario: {held:.2f} of 60 hold, {width(found[0]):.3f} wide")
    # 60 releases at 95 %: 4 standard errors below are 0.95 - 4 sqrt(.05 .95 / 60) = 0.837.
    assert held >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / 60)
    assert all(low <= release.value <= high for release, (low, high) in zip(alone, found, strict=True))
    assert max(map(width, found)) < 5
    wide = alone[0].population_interval(scenario=scenario)
    assert wide[0] < found[0][0] < found[0][1] < wide[1]
    assert width(alone[0].interval(0.5, scenario=scenario)) < width(found[0])
    narrow = Scenario.named("normal", mean=50, sd=1)
    assert width(alone[0].interval(scenario=narrow)) < width(found[0]) / 3


@pytest.mark.parametrize("scenario", ["normal", "Any data", "Slopes", 3, (0.5,)], ids=str)
def test_what_is_no_scenario_is_refused(scenario):
    for ask_for in (median().interval, deciles().population_interval):
        with pytest.raises(sf.InvalidParameter, match="scenario"):
            ask_for(scenario=scenario)


# --- integers -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_integers_are_points_of_their_grid_and_have_whole_ends():
    counts = np.random.default_rng(2).poisson(5, 1000)
    for make in (median, deciles):
        release = make(counts, bounds=(0, 50))
        assert release.query.on_points
        for ends_of in (release.interval(), release.population_interval(0.9)):
            assert all(np.equal(np.mod(end, 1), 0).all() for end in ends_of)
        truth = np.sort(counts)[[math.ceil(q * 1000) - 1 for q in release.query.orders]]
        low, high = release.interval(0.99)
        assert np.mean((low <= truth) & (truth <= high)) >= 0.8


@pytest.mark.parametrize(
    ("values", "others", "expected"),
    [
        (np.arange(50), {}, True),
        (np.arange(50), {"step": 1}, True),
        (np.arange(50.0), {"step": 1}, False),
        (np.arange(50), {"step": 2}, False),
        (np.arange(50), {"bounds": (0.5, 99.5)}, False),
        (np.arange(50), {"bounds": (0, 2**40)}, False),
        (np.arange(50), {"bounds": (-7, 60)}, True),
    ],
)
def test_only_integers_on_their_own_grid_are_points_of_it(values, others, expected):
    assert median(values, **others).query.on_points is expected


def test_equal_integers_have_an_interval_of_one_point():
    release = median(np.full(1000, 7), bounds=(0, 50))
    assert release.value == 7
    assert release.interval() == (7.0, 7.0)


# --- private numbers of values --------------------------------------------------------------------


def held_on(make, runs, truth=lambda values: np.sort(values)[(len(values) - 1) // 2]):
    generator = np.random.default_rng(3)
    bits, held = SeededBits(4), []
    for _ in range(runs):
        values = generator.normal(50, 10, 1000)
        low, high = make(values, bits).interval()
        held.append(low <= truth(values) <= high)
    return float(np.mean(held))


@pytest.mark.slow
@pytest.mark.parametrize(
    "facts",
    [
        {"neighbours": "substitution", "nulls": "drop"},
        {"neighbours": "add-remove", "n_hint": 1000},
        {"neighbours": "add-remove", "n_hint": 700},
        {"neighbours": "add-remove"},
    ],
    ids=str,
)
def test_private_numbers_of_values_have_intervals_too(facts):
    def make(values, bits):
        return sf.median(values, bounds=(0, 100), epsilon=1, interval_share="auto", bits=bits, **facts)

    # Counts differ from release to release, and so do the simulations that they ask for. Four standard errors
    # below 95 % are 0.95 - 4 sqrt(.05 .95 / 20) = 0.755 or, of 60, 0.837.
    runs = 60 if "n_hint" in facts or facts["neighbours"] == "substitution" else 20
    held = held_on(make, runs)
    print(f"{facts}: {held:.2f} of {runs} hold")
    assert held >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_number_that_may_be_wrong_is_named_beside_the_interval(relation):
    # With far fewer values than said, ranks are farther apart than the interval takes them to be.
    hinted = median(neighbours=relation, nulls="drop", n_hint=1200)
    assert any("number of values is private" in note and "1,200" in note for note in hinted.notes)
    dropped = median(neighbours="substitution", nulls="drop")
    assert any("number of values is private" in note and "1,000" in note for note in dropped.notes)
    assert not any("number of values is private" in note for note in median().notes)
    counted = median(neighbours="add-remove", nulls="drop")
    assert any("were counted" in note for note in counted.notes)


# --- coverage -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    law: object
    bounds: tuple[float, float]
    whole: bool = False

    def sample(self, n, generator):
        values = self.law.rvs(n, random_state=generator)
        return values.astype(np.int64) if self.whole else values


FAMILIES = {
    "uniform": Family(stats.uniform(), (0, 1)),
    "normal": Family(stats.norm(50, 10), (0, 100)),
    "lognormal": Family(stats.lognorm(1), (0, 50)),
    "poisson": Family(stats.poisson(5), (0, 50), whole=True),
    # SciPy has no law of one value; this one differs from it by nothing that a float could show.
    "constant": Family(stats.uniform(0.3, 1e-300), (0, 1)),
}
SOME = ("lognormal", "poisson")
RUNS = 200
# The campaign asks for 93 % in 2,000 releases. Of 200, four standard errors of a share of 95 % fewer may
# hold: 0.93 - 4 sqrt(0.05 0.95 / 200) = 0.868. If 93 % hold, a cell is below with a chance of 1 in 1,000; the
# seeds are fixed, so that it is always green or always red.
LEAST_HELD = 0.93 - 4 * math.sqrt(0.05 * 0.95 / RUNS)


@dataclass(frozen=True)
class Campaign:
    """For each release and order: the answer, two intervals, and what they should hold."""

    values: np.ndarray
    data: np.ndarray
    population: np.ndarray
    truth: np.ndarray
    law: np.ndarray

    def held(self, about, shrunk=1.0):
        """How often each order is held, if widths are multiplied by `shrunk`."""
        (low, high), truth = (self.data, self.truth) if about == "data" else (self.population, self.law[None])
        low, high = (self.values + shrunk * (end - self.values) for end in (low, high))
        # Ends are rounded to float64.
        slack = 1e-9 * np.abs(truth)
        return ((low - slack <= truth) & (truth <= high + slack)).mean(axis=0)


def campaign(name, n, orders):
    family = FAMILIES[name]
    generator, bits = np.random.default_rng(5), SeededBits(6)
    places = [math.ceil(q * n) - 1 for q in orders]
    found = []
    for _ in range(RUNS):
        values = family.sample(n, generator)
        release = sf.quantiles(
            values, orders, bounds=family.bounds, epsilon=1, nulls="lower", interval_share="auto", bits=bits
        )
        ends_of = release.interval(), release.population_interval()
        found.append((release.value, *ends_of, np.sort(values)[places]))
    values, data, population, truth = (np.array(part, dtype=float) for part in zip(*found, strict=True))
    law = family.law.ppf([float(q) for q in orders])
    return Campaign(values, data.swapaxes(0, 1), population.swapaxes(0, 1), truth, np.asarray(law))


@pytest.mark.slow
@pytest.mark.parametrize("orders", [(H,), DECILES], ids=["median", "deciles"])
@pytest.mark.parametrize("n", [1000, 5000])
def test_intervals_hold_as_often_as_they_say(n, orders):
    noticed = set()
    # Many values or orders take the longest: one law of each kind is enough, and `make widths` takes all.
    names = FAMILIES if n == 1000 and len(orders) == 1 else SOME
    for name in names:
        runs = campaign(name, n, orders)
        for about in ("data", "population"):
            held, half = runs.held(about).min(), runs.held(about, 0.5).min()
            print(f"{name}, n = {n}, {len(orders)} orders, {about}: {held:.3f}; half as wide {half:.3f}")
            assert held >= LEAST_HELD, (name, about)
            if half < LEAST_HELD:
                noticed.add((name, about))
    # The same check on intervals half as wide is red, for the population under every continuous law. That of
    # a median in the data has a reserve: it is wide enough on all shapes, each of which needs another width.
    continuous = {"uniform", "normal", "lognormal"} & set(names)
    assert {(name, "population") for name in continuous} <= noticed
    assert len(orders) == 1 or {(name, "data") for name in continuous} <= noticed


def test_a_share_of_the_budget_is_what_makes_a_single_interval_narrow():
    query = ask(Single(), (H,), bounds=(0, 100), step=None, rows=1000, nulls="lower", interval_share="auto")
    law = query.law(query.look(admit(VALUES)))
    outcome = raw(law.sample(SeededBits(7)))
    assert isinstance(query.chosen, Framed)
    assert query.budget == PureDP(1)
    assert width(query.interval(outcome, 0.95)) < 5 < width(query.interval(outcome, 0.95, ANY_DATA))
