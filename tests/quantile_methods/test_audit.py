"""T1 for quantiles: no neighbours lose more than was charged, for every method, on all small data sets.

`pytest tests/quantile_methods/test_audit.py -s` prints how tight every charge is.
"""

import itertools
import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from tests.quantile_methods.cases import (
    ENTRIES,
    FEW_RULES,
    NARROW,
    NULLS,
    ORDERS,
    RELATIONS,
    WIDE,
    Line,
    ask,
    law_of,
    methods,
    pair_loss,
    serves,
    worst_on_lines,
)
from tests.quantile_methods.mutants import QUANTILE_MUTANTS

from sfumato.audit import worst_case
from sfumato.audit.listed import hockey_stick
from sfumato.audit.pairs import neighbouring_pairs
from sfumato.data.ranks import Ranks
from sfumato.grid import Grid
from sfumato.laws.coins import exp_bounds
from sfumato.privacy import ZCDP, PureDP
from sfumato.quantile_methods import METHODS, Independent, InverseSensitivity, Recursive, Single
from sfumato.quantile_methods.node import Node, Target, quantile_node
from sfumato.quantile_methods.single import FlipLaw

F = Fraction
H = F(1, 2)
each_relation = pytest.mark.parametrize("relation", RELATIONS)
small = pytest.mark.parametrize("method", methods("audited"), ids=repr)


def named(orders):
    return "-".join(str(order) for order in orders)


def row(method, relation, nulls, budget, orders, tightness):
    return f"{method!s:44} {relation:12} {nulls:5} {budget!r:36} {named(orders):16} {tightness:.4f}"


# The others take long; `sfumato audit` goes through all methods as well.
QUICK = (ORDERS[3],)


@small
@each_relation
@pytest.mark.parametrize(
    "orders",
    [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in ORDERS],
    ids=named,
)
def test_no_neighbours_lose_more_than_was_charged(method, relation, orders):
    if not serves(method, orders):
        pytest.skip("one order only")
    entry = ENTRIES[method.name]
    size, top = entry.shapes[len(orders) > 1]
    slow = getattr(method, "subcells", 1) > 1 or getattr(method, "flip", False)
    top -= slow
    for budget, nulls in FEW_RULES if slow or len(orders) > 1 else entry.rules:
        facts = {"neighbours": relation, "nulls": nulls, "budget": budget, "n_hint": 4}
        worst = worst_case(ask(method, orders, bounds=(0, top), **facts), size=size, cells=top + 1)
        assert worst.loss.holds, f"{worst}\n  {method}, {facts}\n  {worst.left}\n  {worst.right}"
        print(row(method, relation, nulls, budget, orders, worst.loss.tightness))


# (method, orders, size, places): few records far apart, where losses come near their bounds.
FAR = [
    *((method, orders, 5, 3) for method in (Single(), InverseSensitivity()) for orders in ORDERS[:3]),
    (Independent(), ORDERS[3], 4, 3),
    (Independent(), ORDERS[4], 3, 2),
    (Recursive(subcells=1), ORDERS[0], 4, 3),
    (Recursive(subcells=1), ORDERS[3], 4, 2),
    (Recursive(subcells=1), ORDERS[4], 3, 2),
    (Recursive(subcells=1), ORDERS[5], 3, 2),
    *((METHODS["joint"](subcells=1), orders, 3, 2) for orders in (ORDERS[0], ORDERS[3])),
]


@each_relation
@pytest.mark.parametrize(("method", "orders", "size", "places"), FAR, ids=str)
def test_records_far_apart_come_near_the_charge_and_never_pass_it(method, orders, size, places, relation):
    losses = []
    for nulls in NULLS[:2] if relation == "substitution" else NULLS[:1]:
        loss, where = worst_on_lines(method, orders, relation, size=size, places=places, nulls=nulls)
        print(row(method, relation, nulls, PureDP(1), orders, loss))
        assert loss <= 1 + 1e-9, where
        losses.append(loss)
    if orders == ORDERS[0] and method.name != "joint":
        # The constants leave nothing: some pair loses all that was charged.
        assert max(losses) >= 0.999


@each_relation
@pytest.mark.parametrize("order", [H, F(1, 4), F(9, 10), F(1, 3)], ids=str)
@pytest.mark.parametrize("nulls", NULLS[:2])
def test_ratios_of_exact_probabilities_stay_under_an_exact_bound(relation, order, nulls):
    # 2^256 / hi is at most e^epsilon: no float takes part.
    epsilon = F(3, 4)
    least = F(2**256, exp_bounds(epsilon, 256)[1])
    places = (0.0, 40.0, 43.0, math.nan)
    query = ask(Single(), (order,), bounds=(0, 60), neighbours=relation, nulls=nulls, budget=PureDP(epsilon))
    known = {}

    def chances(chosen):
        if chosen not in known:
            node = law_of(query, [places[i] for i in chosen]).nodes[0]
            known[chosen] = [node.law.probability(point) for point in (0, 20, 40, 41, 43, 50)]
        return known[chosen]

    worst = F(0)
    for left, right in neighbouring_pairs(places, 5, relation):
        for one, other in zip(chances(left), chances(right), strict=True):
            ratio = max(one / other, other / one)
            assert ratio <= least, (left, right)
            worst = max(worst, ratio)
    assert worst > 1


# --- the published weights cost more --------------------------------------------------------------


def published(method, facts):
    """exp(-epsilon |i - p n|), whatever the relation."""
    return tuple(method.terms(facts).range for _ in facts.orders)


# Two runs of points around the target: the wide one decides the normaliser, the narrow one loses.
TWO_RUNS = Line.of([0, WIDE, NARROW, 0])


@pytest.mark.parametrize(
    ("relation", "order", "left", "right", "cost"),
    [
        ("substitution", H, (9, 3, 8), (8, 3, 9), 2),
        ("substitution", F(1, 4), (4, 3, 13), (3, 3, 14), 2),
        ("add-remove", H, (8, 4, 8), (9, 4, 8), 1),
        ("add-remove", F(1, 4), (3, 4, 13), (4, 4, 13), 1.5),
        ("add-remove", F(9, 10), (16, 3, 1), (16, 3, 2), 1.8),
    ],
)
def test_the_published_weights_cost_up_to_twice_what_they_promise(relation, order, left, right, cost):
    given = (Single(), (order,), relation, TWO_RUNS, left, right)
    with patch.object(Independent, "constants", published):
        loss = pair_loss(*given, nulls="lower")
    print(f"published weights, {relation}, order {order}: {loss:.6f} for epsilon 1")
    assert cost - 0.01 <= loss <= cost + 1e-9
    assert pair_loss(*given, nulls="lower") <= 1 + 1e-9


def test_two_groups_with_their_sizes_as_public_cost_almost_twice():
    # A record that changes its group leaves one and enters the other. A quantile with c = epsilon / 2 is
    # private for a public size; one of order 9/10 for each of two groups costs 1.8 together.
    def ratios(widths):
        line = Line.of(widths)
        grid = Grid.of_step(*line.bounds, 1)
        fewer, more = (
            quantile_node(Ranks(line.data(counts), grid), F(9, 10), H) for counts in ((16, 3, 1), (16, 3, 2))
        )
        return [more.logpmf(point) - fewer.logpmf(point) for point in line.points]

    enters = max(map(max, map(ratios, ([0, WIDE, NARROW, 0], [0, NARROW, WIDE, 0]))))
    leaves = -min(map(min, map(ratios, ([0, WIDE, NARROW, 0], [0, NARROW, WIDE, 0]))))
    print(f"two groups of public sizes, order 9/10: {enters + leaves:.6f} for epsilon 1")
    assert 1.79 <= enters + leaves <= 1.8 + 1e-9


# --- permute-and-flip -----------------------------------------------------------------------------


def random_ranks(seed, rows=6, cells=6):
    values = np.random.default_rng(seed).integers(0, cells, rows)
    return Ranks(values.astype(np.float64), Grid.of_step(0, cells - 1, 1))


def visited_in_random_order(chances):
    """Permute-and-flip by its definition: all orders of visiting, a coin for each point."""
    found = [F(0)] * len(chances)
    for order in itertools.permutations(range(len(chances))):
        left = F(1)
        for point in order:
            found[point] += left * chances[point]
            left *= 1 - chances[point]
    return [part / math.factorial(len(chances)) for part in found]


@pytest.mark.parametrize("seed", range(8))
def test_permute_and_flip_has_the_law_of_its_definition(seed):
    node = quantile_node(random_ranks(seed), F(seed + 1, 10), F(1, 2 + seed))
    weights = [node.law.probability(point) for point in range(6)]
    expected = visited_in_random_order([weight / max(weights) for weight in weights])
    law = FlipLaw(node)
    assert [law.probability(point) for point in range(6)] == expected
    assert sum(expected) == 1
    assert law.probability(-1) == law.probability(6) == 0
    assert list(law.outcomes()) == [(point,) for point in range(6)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("c", [F(1, 100), H, F(3)], ids=str)
def test_permute_and_flip_is_never_further_from_its_target(seed, c):
    ranks, order = random_ranks(seed, rows=9), F(seed + 1, 10)
    node = quantile_node(ranks, order, c)
    flip = FlipLaw(node)

    def distance(point):
        return max(ranks.below(point) - order * 9, order * 9 - ranks.upto(point), 0)

    flipped, plain = (
        sum(law.probability(point) * distance(point) for point in range(6)) for law in (flip, node.law)
    )
    assert flipped <= plain


# --- mutants --------------------------------------------------------------------------------------

NAMES = [
    "weights of the published algorithm",
    "target rounded up",
    "target rounded down",
    "child sizes rounded, substitution",
    "child sizes rounded, add-remove",
    "half the range at every node",
    "constants of add-remove under substitution",
    "constants of add-remove under substitution, recursive",
    "records at the released point split to balance ranks",
    "order of the whole used in the parts",
    "full budget for every order",
    "recursion charged for one level",
    "weights that underflow",
    "weights rounded down",
    "weights by the denominator that the target has",
    "inverse sensitivity at twice its constant",
    "permute-and-flip at twice its constant",
    "a rho buys twice the range",
    "ties spread by a seed",
    "joint gaps rounded",
    "joint constant of a single quantile",
    "permute-and-flip charged as a range",
    "whole counts against a target that moves",
    "the share that draws edges is not taken from the counts of leaves",
    "the share that draws edges is not taken from the counts of leaves, under a rho",
    "leaves at the true ranks",
    "parts of leaves that follow the values",
]


def test_the_mutants_are_those_that_are_written_here():
    # Those of verification are tested beside its audit.
    assert [name for name in QUANTILE_MUTANTS if "verif" not in name] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_mutant_is_noticed(name):
    mutant = QUANTILE_MUTANTS[name]
    with mutant.defect(), pytest.raises(mutant.shows_as) as caught:
        mutant.check()
    print(f"{name}: {str(caught.value).splitlines()[0][:150]}")
    mutant.check()


def test_approximate_losses_are_compared_in_delta():
    left, right = np.log([0.5, 0.5]), np.log([0.9, 0.1])
    assert hockey_stick(left, right, 1.0) == pytest.approx(0.5 - math.e * 0.1)


def test_a_target_between_two_ranks_is_not_a_public_number():
    # The same node with its target rounded, and without: only the second keeps its constant.
    line = Line.of([WIDE, NARROW, 0])
    grid = Grid.of_step(*line.bounds, 1)

    def loss(target):
        nodes = []
        for counts in ((4, 2), (4, 3)):
            ranks = Ranks(line.data(counts), grid)
            rank = target(H * ranks.size)
            nodes.append(Node(ranks, 0, ranks.points - 1, 0, ranks.size, Target(rank, rank), F(1), 2))
        return max(abs(nodes[0].logpmf(p) - nodes[1].logpmf(p)) for p in line.points)

    assert loss(F) <= 1 + 1e-9
    assert loss(lambda rank: F(math.ceil(rank))) >= 1.99


def test_two_nodes_of_a_level_claim_no_pure_cost():
    # A replaced record moves both: their rhos add up to that of the range, the range itself is longer.
    for relation, claims in (("substitution", False), ("add-remove", True)):
        query = ask(
            Recursive(), (F(1, 4), H, F(3, 4)), budget=ZCDP(0.1), neighbours=relation, n_hint=100, rows=None
        )
        assert (query.event.pure_epsilon is not None) == claims
        assert query.event.rho <= F(1, 10)
