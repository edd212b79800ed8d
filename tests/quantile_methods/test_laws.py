"""The laws that are drawn, against weights that are written out for every point."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from tests.laws.fit import FALSE_ALARM
from tests.quantile_methods.cases import ORDERS, RELATIONS, ask, law_of

import sfumato as sf
from sfumato.data.ranks import Ranks
from sfumato.grid import Grid
from sfumato.laws import SeededBits
from sfumato.laws.grades import grades
from sfumato.privacy import PureDP
from sfumato.quantile_methods import Independent, InverseSensitivity, Recursive, Single
from sfumato.quantile_methods.node import Node, Target, quantile_node, tail_rank
from sfumato.quantile_methods.recursive import branches

F = Fraction
H = F(1, 2)
NAN = float("nan")


def all_positions(ranks):
    return ranks.positions(1, ranks.size)


def brute_levels(positions, first, last, target, parts, smooth=0):
    """The level of every point first..last by its definition, in units of 1/parts."""
    points = np.arange(first, last + 1)
    below = np.searchsorted(positions, points, side="left")
    upto = np.searchsorted(positions, points, side="right")
    low, high = int(target.low * parts), int(target.high * parts)
    levels = np.maximum(np.maximum(parts * below - low, high - parts * upto), 0)
    if not smooth:
        return levels
    return np.array([levels[max(i - smooth, 0) : i + smooth + 1].min() for i in range(len(levels))])


def brute_weights(node):
    """Integer weights of every point of a node, from the records that it sees."""
    positions = all_positions(node.ranks)[node.after : node.upto]
    parts = node.parts
    if not len(positions):
        return [1] * (node.last - node.first + 1)
    levels = brute_levels(positions, node.first, node.last, node.target, parts, node.smooth)
    return grades(node.c, parts).weights(levels)


def assert_same_law(node):
    weights = brute_weights(node)
    total = sum(weights)
    assert node.law.points == len(weights)
    for index, weight in enumerate(weights):
        assert node.law.probability(index) == F(weight, total), (index, node)


columns = st.lists(st.integers(-1, 12) | st.just(NAN), max_size=14)
constants = st.sampled_from([F(1, 20), H, F(5, 18), F(4), F(300)])


@given(
    columns,
    st.sampled_from([*(order for orders in ORDERS for order in orders)]),
    constants,
    st.sampled_from([1, 2, 8]),
)
@settings(max_examples=120)
def test_a_quantile_has_the_law_of_its_weights(values, order, c, parts):
    ranks = Ranks(np.array(values, dtype=np.float64), Grid.of_step(0, 11, 1), parts=parts)
    assert_same_law(quantile_node(ranks, order, c))


@given(columns, st.data(), constants, st.sampled_from([1, 4]))
@settings(max_examples=120)
def test_a_part_of_the_data_has_the_law_of_its_weights(values, data, c, parts):
    ranks = Ranks(np.array(values, dtype=np.float64), Grid.of_step(0, 11, 1), parts=parts)
    first = data.draw(st.integers(0, ranks.points - 1))
    last = data.draw(st.integers(first, ranks.points - 1))
    # As in the recursion: the records after one released point up to another.
    after, upto = ranks.upto(first), ranks.upto(last)
    order = data.draw(st.fractions(0, 1, max_denominator=40))
    target = Target(order * (upto - after), order * (upto - after))
    assert_same_law(Node(ranks, first, last, after, upto, target, c, order.denominator))


@given(columns, st.data(), constants, st.integers(0, 14))
@settings(max_examples=120)
def test_inverse_sensitivity_has_the_law_of_its_lengths(values, data, c, smooth):
    ranks = Ranks(np.array(values, dtype=np.float64), Grid.of_step(0, 11, 1))
    rank = data.draw(st.integers(1, max(ranks.size, 1)))
    target = Target(F(rank - 1), F(rank))
    assert_same_law(Node(ranks, 0, 11, 0, ranks.size, target, c, 1, smooth))


def changes_needed(values, point, rank, cells, radius):
    """How many values must change for the rank-th smallest to be within the radius of the point."""
    for count in range(len(values) + 1):
        for kept in itertools.combinations(values, len(values) - count):
            for new in itertools.combinations_with_replacement(range(cells), count):
                if abs(sorted((*kept, *new))[rank - 1] - point) <= radius:
                    return count
    raise AssertionError("all values can be changed")


@pytest.mark.parametrize("radius", [0, 1, 2])
@pytest.mark.parametrize("values", [(0, 0, 4), (1, 2, 2, 3), (0, 1, 3, 4), (2, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("order", [H, F(1, 4), F(9, 10)], ids=str)
def test_the_levels_of_inverse_sensitivity_count_changes(values, order, radius):
    query = ask(InverseSensitivity(radius=radius), (order,), bounds=(0, 4), nulls="lower")
    node = law_of(query, values).nodes[0]
    rank = math.ceil(order * len(values))
    needed = [changes_needed(values, point, rank, 5, radius) for point in range(5)]
    weights = grades(H, 1).weights(np.array(needed))
    assert [node.law.probability(point) for point in range(5)] == [F(w, sum(weights)) for w in weights]


@pytest.mark.parametrize("rows", [50, 3000, 20_000])
@pytest.mark.parametrize("order", [H, F(9, 10)], ids=str)
@pytest.mark.parametrize("kind", ["ties", "spread"])
def test_many_points_have_the_law_of_all_weights(rows, order, kind):
    # 2^18 points, rows above and below the number that is sorted whole, and a reach shorter than the data.
    rng = np.random.default_rng(rows)
    values = rng.choice([0.1, 0.1000001, 0.7], rows) if kind == "ties" else rng.beta(2, 5, rows)
    values[::10] = NAN
    ranks = Ranks(values, Grid(0, 1, cells=2**18))
    node = quantile_node(ranks, order, F(1, 4))
    target, positions = order * ranks.size, np.sort(Grid(0, 1, cells=2**18).index(values[~np.isnan(values)]))
    levels = brute_levels(positions, 0, 2**18 - 1, Target(target, target), order.denominator)
    weights = grades(F(1, 4), order.denominator, 2**18).weights(levels)
    total = sum(weights)
    spots = {0, 2**18 - 1, *rng.integers(0, 2**18, 50).tolist(), *positions[:: max(rows // 50, 1)].tolist()}
    assert all(node.law.probability(spot) == F(weights[spot], total) for spot in spots)
    assert node.law.points == 2**18
    assert (
        sum(F(length) * F(w) for length, w in zip(node.law._lengths.tolist(), node.law._weights, strict=True))
        == total
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("subcells", [1, 2, 4])
@pytest.mark.parametrize("orders", ORDERS, ids=lambda orders: "-".join(map(str, orders)))
def test_the_recursion_has_a_law(relation, subcells, orders):
    rng = np.random.default_rng(3)
    for rows in (0, 1, 5, 30):
        query = ask(Recursive(subcells=subcells), orders, bounds=(0, 2), neighbours=relation)
        law = law_of(query, rng.integers(-1, 4, rows))
        total = math.fsum(math.exp(law.logpmf(outcome)) for outcome in law.outcomes())
        assert total == pytest.approx(1, abs=1e-12)
        assert law.logpmf(tuple(range(len(orders)))[::-1]) == (
            -math.inf if len(orders) > 1 else law.logpmf((0,))
        )


def recursive_by_definition(positions, points, orders, constants, outcome):
    """The probability of an outcome, from lists of records and no shared code but the weights."""

    def visit(begin, end, low, high, first, last, records):
        if begin == end:
            return F(1)
        middle = (begin + end) // 2
        relative = (orders[middle] - low) / (high - low)
        target = relative * len(records)
        parts = relative.denominator
        levels = brute_levels(np.array(records), first, last, Target(target, target), parts)
        weights = grades(constants[middle], parts).weights(levels)
        point = outcome[middle]
        if not first <= point <= last:
            return F(0)
        here = F(1, last - first + 1) if not records else F(weights[point - first], sum(weights))
        left = [record for record in records if record <= point]
        right = [record for record in records if record > point]
        return (
            here
            * visit(begin, middle, low, orders[middle], first, point, left)
            * visit(middle + 1, end, orders[middle], high, point, last, right)
        )

    return visit(0, len(orders), F(0), F(1), 0, points - 1, list(positions))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("orders", [*ORDERS[3:], tuple(F(i, 6) for i in range(1, 6))], ids=str)
def test_the_recursion_is_that_of_its_definition(relation, orders):
    rng = np.random.default_rng(11)
    query = ask(Recursive(subcells=2), orders, bounds=(0, 2), neighbours=relation, nulls="lower")
    for rows in (0, 2, 7, 25):
        law = law_of(query, rng.integers(0, 3, rows))
        positions = all_positions(law.ranks).tolist()
        for outcome in itertools.islice(law.outcomes(), 0, None, 3):
            expected = recursive_by_definition(positions, 6, orders, law.constants, outcome)
            assert math.exp(law.logpmf(outcome)) == pytest.approx(float(expected), rel=1e-9, abs=1e-300)


def test_relative_orders_are_those_of_the_records_between():
    tree = branches(ask(Recursive(), ORDERS[5]).facts)
    assert [(branch.relative, branch.root) for branch in tree] == [
        (F(1, 10), False),
        (H, True),
        (F(9, 10), False),
    ]
    quartiles = branches(ask(Recursive(), ORDERS[4]).facts)
    assert all(branch.relative == H for branch in quartiles)


SAMPLED = [
    (Single(), ORDERS[1]),
    (Single(flip=True), ORDERS[1]),
    (Independent(), ORDERS[3]),
    (Recursive(subcells=1), ORDERS[3]),
    (Recursive(subcells=2), ORDERS[4]),
    (InverseSensitivity(radius=1), ORDERS[0]),
]


def outcome_counts(law, count, seed):
    bits = SeededBits(seed)
    places = {outcome: i for i, outcome in enumerate(law.outcomes())}
    return np.bincount([places[law.sample(bits)] for _ in range(count)], minlength=len(places))


def p_value(observed, law):
    """Pearson's test over all outcomes; those with few expected draws are one."""
    expected = np.array([math.exp(law.logpmf(outcome)) for outcome in law.outcomes()]) * observed.sum()
    rare = expected < 20
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    kept = expected > 1e-9
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return chi2.sf(statistic, kept.sum() - 1)


@pytest.mark.parametrize(("method", "orders"), SAMPLED, ids=str)
def test_samples_fit_their_law_and_reject_laws_that_are_a_little_off(method, orders):
    values = [0, 0, 1, 3, 3, 3, 4, 4, 2, 1]
    laws = {
        part: law_of(ask(method, orders, bounds=(0, 4), nulls="lower", budget=PureDP(2 * part)), values)
        for part in (F(7, 10), F(1), F(14, 10))
    }
    observed = outcome_counts(laws[1], 6000, seed=21)
    assert p_value(observed, laws[1]) >= FALSE_ALARM
    assert p_value(observed, laws[F(7, 10)]) < FALSE_ALARM
    assert p_value(observed, laws[F(14, 10)]) < FALSE_ALARM


EXPONENTIAL = (Single(), Independent(), Recursive(), InverseSensitivity())


@pytest.mark.parametrize("method", EXPONENTIAL, ids=repr)
@pytest.mark.parametrize("relation", RELATIONS)
def test_constant_data_are_answered_by_their_value(method, relation):
    values = np.full(2000, 12.5)
    release = sf.quantiles(
        values, [0.3], bounds=(0, 100), method=method, epsilon=1, neighbours=relation, bits=SeededBits(1)
    )
    step = float(release.query.facts.grid.step)
    assert abs(release.value[0] - 12.5) <= step


@pytest.mark.parametrize("method", EXPONENTIAL, ids=repr)
@pytest.mark.parametrize("relation", RELATIONS)
def test_data_outside_the_bounds_are_answered_by_the_bounds(method, relation):
    values = np.concatenate([np.full(1000, -50.0), np.full(1000, 1e9)])
    for order, expected in ((0.2, 0), (0.8, 100)):
        release = sf.quantiles(
            values,
            [order],
            bounds=(0, 100),
            method=method,
            epsilon=1,
            neighbours=relation,
            bits=SeededBits(2),
        )
        assert abs(release.value[0] - expected) <= float(release.query.facts.grid.step)
    values = np.concatenate([np.linspace(0, 100, 1001), np.full(1001, 1e9)])
    release = sf.quantiles(
        values, [0.25], bounds=(0, 100), method=method, epsilon=5, neighbours=relation, bits=SeededBits(3)
    )
    assert abs(release.value[0] - 50) < 5


@pytest.mark.parametrize("method", EXPONENTIAL, ids=repr)
@pytest.mark.parametrize("relation", RELATIONS)
def test_nulls_are_left_out_or_are_a_bound(method, relation):
    values = np.where(np.arange(3000) % 10 < 3, NAN, np.linspace(0, 100, 3000))
    # 30 % nulls: the median of the rest, the order 2/7 of the rest, and 5/7 of it.
    for nulls, expected in (("drop", 50), ("lower", 100 * 2 / 7), ("upper", 100 * 5 / 7)):
        release = sf.median(
            values,
            bounds=(0, 100),
            method=method,
            epsilon=5,
            neighbours=relation,
            nulls=nulls,
            bits=SeededBits(4),
        )
        assert abs(release.value - expected) < 2


@pytest.mark.parametrize("c", [F(1, 10), H, F(3)], ids=str)
@pytest.mark.parametrize("parts", [1, 2, 10])
def test_the_tail_of_a_node_is_a_bound_on_all_data(c, parts):
    rng, order, failure = np.random.default_rng(5), F(1, parts) if parts > 1 else H, 0.05
    grid = Grid.of_step(0, 99, 1)
    rank = tail_rank(c, order.denominator, grid.cells, failure)
    for rows in (1, 10, 200):
        ranks = Ranks(rng.integers(0, 100, rows).astype(float), grid)
        node = quantile_node(ranks, order, c)
        positions = all_positions(ranks)
        target = order * rows
        levels = brute_levels(positions, 0, 99, Target(target, target), order.denominator)
        far = sum(node.law.probability(i) for i in range(100) if levels[i] > rank * order.denominator)
        assert far <= failure
