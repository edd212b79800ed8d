"""The tree of noisy counts: privacy by exact audit, least squares against dense algebra, accuracy."""

import itertools
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.audit.exact import worst_case
from sfumato.data.admission import admit
from sfumato.errors import InvalidParameter
from sfumato.grid import Grid
from sfumato.laws import SeededBits
from sfumato.mechanisms import GaussianMechanism, LaplaceMechanism, Sensitivity
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.quantile_methods import METHODS, Quantiles, node_counts
from sfumato.quantile_methods.method import Facts
from sfumato.quantile_methods.methods import read_method
from sfumato.quantile_methods.tree import Leaves, Tree
from sfumato.quantile_methods.tree_consistency import (
    best_branching,
    consistent,
    level_sizes,
    prefix_errors,
    tail,
)
from sfumato.query import raw

SHAPES = [(1, 2), (2, 2), (4, 2), (8, 2), (9, 3), (10, 3), (7, 4), (16, 4), (5, 16), (27, 3)]
ROOTS = ["public", "counted", "unknown"]


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "tree", Tree)


def orders(count: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(i, count + 1) for i in range(1, count + 1))


def facts(**options: Any) -> Facts:
    given = {
        "orders": orders(9),
        "budget": PureDP(1),
        "bounds": (Fraction(0), Fraction(1)),
        "replaces": True,
        "size_is_public": True,
        "nulls": "lower",
    }
    return Facts(**(given | options))


def drawn(method: Tree, values: Any, known: Facts, seed: int = 0) -> tuple[int, ...]:
    view = method.look(admit(np.asarray(values)), known)
    return raw(method.law(view, known).sample(SeededBits(seed)))


def rank_errors(values: Any, answers: Any, known: Facts) -> Any:
    ordered = np.sort(values)
    points = [float(answer) for answer in answers]
    targets = np.array([float(q) for q in known.orders]) * len(ordered)
    low, high = (np.searchsorted(ordered, points, side=side) for side in ("left", "right"))
    return np.maximum(np.maximum(low - targets, targets - high), 0)


def design(leaves: int, branching: int, root: str) -> Any:
    """One row for each count, leaves first, one column for each leaf."""
    rows = [np.eye(leaves)]
    for _ in level_sizes(leaves, branching)[1:]:
        below = rows[-1]
        rows.append(np.add.reduceat(below, np.arange(0, len(below), branching), axis=0))
    return np.vstack([*rows, *([np.ones((1, leaves))] if root == "counted" else [])])


def dense(matrix: Any, counts: Any, total: float | None) -> Any:
    """Least squares by general algebra; a public total is met exactly."""
    if total is None:
        return np.linalg.lstsq(matrix, counts, rcond=None)[0]
    leaves = matrix.shape[1]
    start = np.full(leaves, total / leaves)
    free = np.linalg.svd(np.ones((1, leaves)))[2][1:].T
    return start + free @ np.linalg.lstsq(matrix @ free, counts - matrix @ start, rcond=None)[0]


def levels_of(counts: Any, leaves: int, branching: int, root: str) -> list[Any]:
    sizes = [*level_sizes(leaves, branching), *([1] if root == "counted" else [])]
    return np.split(counts, np.cumsum(sizes)[:-1])


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize(("leaves", "branching"), SHAPES)
def test_two_passes_are_least_squares(leaves: int, branching: int, root: str) -> None:
    matrix = design(leaves, branching, root)
    counts = np.random.default_rng(leaves).normal(0, 10, len(matrix))
    total = 50.0 if root == "public" else None
    found = consistent(levels_of(counts, leaves, branching, root), branching, total)
    np.testing.assert_allclose(found[0], dense(matrix, counts, total), atol=1e-9)
    np.testing.assert_allclose(np.concatenate(found), matrix @ found[0], atol=1e-9)
    if total is not None:
        assert found[-1].sum() == pytest.approx(total)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize(("leaves", "branching"), [shape for shape in SHAPES if shape[0] > 1])
@pytest.mark.parametrize("order", [0.0, 0.3, 0.5])
def test_variances_of_prefixes_are_those_of_dense_algebra(
    leaves: int, branching: int, root: str, order: float
) -> None:
    matrix = design(leaves, branching, root)
    total = 0.0 if root == "public" else None
    # Columns: what each single noisy count does to the estimates.
    influence = np.column_stack([dense(matrix, unit, total) for unit in np.eye(len(matrix))])
    weights = np.cumsum(influence, axis=0) - order * influence.sum(axis=0)
    assert np.abs(weights).max() <= 1 + 1e-9
    exact = (weights**2).sum(axis=1).max()
    errors = prefix_errors(leaves, branching)
    bound = errors.variance(order, counted=root == "counted", public=root == "public")
    if leaves == branching ** len(level_sizes(leaves, branching)):
        assert bound == pytest.approx(exact)
    assert bound >= exact - 1e-9


def test_tails_are_bounds_on_sums_of_noise() -> None:
    for mechanism in (
        LaplaceMechanism(sensitivity=1, scale=Fraction(3)),
        GaussianMechanism(sensitivity_squared=1, sigma_squared=Fraction(9), coordinates=1),
    ):
        reach = np.arange(-200, 201)
        one = np.exp(mechanism.noise.logpmf(reach))
        masses = np.convolve(np.convolve(one, one), one)
        sums = np.arange(-600, 601)
        for failure in (0.5, 0.1, 1e-3, 1e-6):
            limit = tail(mechanism, 3.0, failure)
            beyond = masses[np.abs(sums) > limit].sum()
            assert beyond <= failure
            # Near 1 an exponential bound says little; it is used with failures divided by the edges.
            assert failure == 0.5 or masses[np.abs(sums) > limit / 2].sum() > failure


BUDGETS = [PureDP(1), ZCDP(Fraction(1, 2))]
RELATIONS = [("substitution", "lower"), ("substitution", "drop"), ("add-remove", "drop")]


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
@pytest.mark.parametrize(("neighbours", "nulls"), RELATIONS)
@pytest.mark.parametrize(("branching", "last"), [(2, 3), (2, 2), (3, 3), (4, 3), (2, 1)])
def test_no_neighbouring_pair_loses_more_than_the_cost(
    budget: Any, neighbours: Any, nulls: Any, branching: int, last: int
) -> None:
    query = Quantiles(
        probs=(0.5,),
        method=Tree(branching=branching, leaves=last + 1),
        bounds=(0, last),
        step=1,
        budget=budget,
        neighbours=neighbours,
        nulls=nulls,
    )
    worst = worst_case(query, size=4, cells=last + 1)
    print(worst)
    assert worst.loss.holds
    assert worst.loss.tightness == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("nulls", ["lower", "drop"])
@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
def test_noise_for_one_node_of_each_level_is_caught_under_substitution(
    budget: Any, nulls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_small(l1: int, l2_squared: int, coordinates: int) -> Sensitivity:
        return Sensitivity(l1=l1 // 2, l2_squared=l2_squared // 2, coordinates=coordinates)

    monkeypatch.setattr(node_counts, "Sensitivity", too_small)
    query = Quantiles(
        probs=(0.5,),
        method=Tree(branching=2, leaves=4),
        bounds=(0, 3),
        step=1,
        budget=budget,
        neighbours="substitution",
        nulls=nulls,
    )
    worst = worst_case(query, size=3, cells=4)
    assert not worst.loss.holds
    assert worst.loss.tightness == pytest.approx(2, abs=1e-3)


def test_the_cost_has_no_delta_if_laplace_noise_was_chosen() -> None:
    method = Tree(leaves=256)
    known = facts(budget=ApproxDP(1, 1e-6))
    assert method.terms(known).cost == PureDP(1)
    assert Tree(leaves=256, noise="gaussian").terms(known).cost == ApproxDP(1, 1e-6)
    assert Tree(leaves=256).terms(facts(budget=ZCDP(1))).cost == ZCDP(1)
    with pytest.raises(InvalidParameter, match="noise"):
        Tree(leaves=256, noise="gaussian").check(facts())


@pytest.mark.parametrize(
    "options",
    [{"branching": 1}, {"branching": 2.5}, {"leaves": 1}, {"leaves": 2**18 + 1}, {"noise": "uniform"}],
)
def test_options_out_of_range_are_refused(options: Any) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(options))):
        Tree(**options)


def test_leaves_follow_the_number_of_values_and_never_exceed_the_points() -> None:
    def leaves(method: Tree, **options: Any) -> int:
        return method._nodes(facts(**options)).leaves

    assert [leaves(Tree(), size=n) for n in (0, 16, 17, 5000, 10**9)] == [16, 16, 256, 65536, 65536]
    assert leaves(Tree(), size=5000, budget=ZCDP(1)) == 4**7
    ages = {"bounds": (Fraction(0), Fraction(120)), "step": Fraction(1)}
    assert leaves(Tree(), size=10**6, **ages) == 121
    assert leaves(Tree(leaves=50), **ages) == 41  # three ages in each
    assert not Tree(leaves=50).needs_size
    assert Tree().needs_size
    with pytest.raises(InvalidParameter, match="n_hint"):
        Tree().check(facts(replaces=False, size_is_public=False))


@pytest.mark.parametrize("concentrated", [False, True])
@pytest.mark.parametrize("leaves", [2, 16, 50, 121, 401, 1001, 4096])
def test_the_branching_is_near_the_best_of_all(leaves: int, concentrated: bool) -> None:
    def error(branching: int) -> float:
        depth = len(level_sizes(leaves, branching))
        spread = float(prefix_errors(leaves, branching).rest.mean())
        return (depth if concentrated else depth**2) * spread

    found = best_branching(leaves, concentrated=concentrated)
    assert error(found) <= (1.15 if concentrated else 1.001) * min(map(error, range(2, 70)))


def test_branchings_have_limits() -> None:
    assert best_branching(1, concentrated=False) == 2
    for leaves in (3, 1023, 1025, 2**18):
        for concentrated in (False, True):
            assert 2 <= best_branching(leaves, concentrated=concentrated) <= 2**10


def test_leaves_are_groups_of_cells() -> None:
    grid = Grid.of_step(0, 120, 1)
    leaves = Leaves.of(grid, 50)
    values = np.array([-5.0, 0.0, 2.9, 3.0, 119.0, 120.0, 1e9])
    assert leaves.index(values).tolist() == [0, 0, 0, 1, 39, 40, 40]
    assert leaves.value(1) == 3
    assert leaves.value(41) == 121


def test_every_level_counts_every_record_once() -> None:
    known = facts(bounds=(Fraction(0), Fraction(9)), step=Fraction(1), size=5, nulls="upper")
    view = Tree(branching=3, leaves=10).look(admit(np.array([0.0, 0.0, 4.0, 8.0, np.nan])), known)
    assert view.tolist() == [4, 1, *[2, 1, 1, 1], *[2, 0, 0, 0, 1, 0, 0, 0, 1, 1]]
    private = facts(bounds=known.bounds, step=Fraction(1), size_is_public=False, nulls="drop")
    view = Tree(branching=3, leaves=10).look(admit(np.array([0.0, 4.0, np.nan])), private)
    assert view.tolist() == [2, *[2, 0], *[1, 1, 0, 0], *[1, 0, 0, 0, 1, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
@pytest.mark.parametrize("step", [None, Fraction(1, 40)])
def test_answers_are_points_inside_the_bounds_and_do_not_decrease(
    relation: Any, budget: Any, step: Fraction | None
) -> None:
    public = relation == RELATIONS[0]
    known = facts(
        orders=orders(99),
        budget=budget,
        step=step,
        replaces=relation[0] == "substitution",
        size=300,
        size_is_public=public,
        nulls=relation[1],
    )
    method = Tree()
    values = np.random.default_rng(1).uniform(0.2, 0.9, 300)
    for seed in range(5):
        outcome = drawn(method, values, known, seed)
        assert method.possible(outcome, known)
        assert not method.possible(outcome[1:], known)
        assert not method.possible((2**60, *outcome[1:]), known)
        answers = method.answers(outcome, known)
        assert len(answers) == 99
        assert all(0 <= low <= high <= 1 for low, high in itertools.pairwise(answers))
        assert all((answer / known.grid.step).denominator == 1 for answer in answers)
        points = [Fraction(i, 50) for i in range(-5, 60)]
        shares = method.cdf(outcome, known, points)
        assert (np.diff(shares) >= 0).all()
        assert shares[0] == 0
        assert shares[-1] == 1
        for low, high in method.interval(outcome, known, 0.95):
            assert 0 <= low < high <= 1


def test_the_error_does_not_depend_on_the_number_of_orders() -> None:
    values = np.random.default_rng(2).normal(0, 1, 2000)
    # The default grid follows the outermost orders; here both have the same.
    line = {"bounds": (Fraction(-8), Fraction(8)), "step": Fraction(1, 2**20)}
    few, many = (facts(**line, orders=orders(m), size=2000) for m in (9, 999))
    outcome = drawn(Tree(), values, few)
    assert outcome == drawn(Tree(), values, many)
    assert Tree().answers(outcome, few) == Tree().answers(outcome, many)[99::100]


@pytest.mark.parametrize(("size", "most"), [(10**4, 28), (10**5, 30)])
def test_the_error_is_below_that_of_the_prototype(size: int, most: int) -> None:
    values = np.random.default_rng(3).uniform(0, 1, size)
    known = facts(orders=orders(99), size=size)
    found = [
        rank_errors(values, Tree().answers(drawn(Tree(), values, known, seed), known), known).mean()
        for seed in range(8)
    ]
    print(size, np.mean(found))
    assert np.mean(found) <= most


def test_least_squares_more_than_halve_the_variance_of_plain_sums() -> None:
    # A plain prefix adds up the nodes to the left on each of 4 levels: 0 to 15 of them, all equally often.
    plain = 4 * np.mean(range(16))
    errors = prefix_errors(2**16, 16)
    print(plain / errors.rest.mean())
    assert errors.rest.mean() < plain / 2


@pytest.mark.parametrize(("neighbours", "nulls"), RELATIONS)
def test_bounds_on_errors_hold_for_all_answers_together(neighbours: Any, nulls: Any) -> None:
    ages = np.random.default_rng(4).binomial(120, 0.3, 3000).astype(float)
    known = facts(
        orders=orders(99),
        bounds=(Fraction(0), Fraction(120)),
        step=Fraction(1),
        size=3000,
        replaces=neighbours == "substitution",
        size_is_public=nulls != "drop",
        nulls=nulls,
    )
    method = Tree()
    bound = method.rank_error(known, 0.5)
    assert bound == method.edge_error(known, 0.5) < method.edge_error(known, 0.99) < 200
    missed, outside, seeds = 0, 0, 40
    data = np.quantile(ages, [float(q) for q in known.orders], method="inverted_cdf")
    for seed in range(seeds):
        outcome = drawn(method, ages, known, seed)
        missed += rank_errors(ages, method.answers(outcome, known), known).max() > bound
        ends = method.interval(outcome, known, 0.5)
        outside += any(not float(low) <= x <= float(high) for (low, high), x in zip(ends, data, strict=True))
    assert missed <= seeds / 2
    assert outside <= seeds / 2


def test_without_a_leaf_for_each_point_no_rank_error_is_promised() -> None:
    assert Tree().rank_error(facts(size=1000), 0.95) == 1000
    assert Tree().rank_error(facts(size=1000, replaces=False, size_is_public=False), 0.95) == 2**62
    assert Tree().edge_error(facts(size=1000), 0.95) < 200


def test_intervals_hold_where_all_records_are_in_one_leaf() -> None:
    values = 0.5 + np.random.default_rng(5).uniform(0, 1e-9, 2000)
    known = facts(size=2000)
    outcome = drawn(Tree(), values, known)
    for low, high in Tree().interval(outcome, known, 0.95)[2:7]:
        assert low <= Fraction(1, 2) < high <= low + Fraction(1, 8)


def test_constant_data_are_answered_by_their_value() -> None:
    middle = tuple(Fraction(i, 10) for i in range(3, 8))
    known = facts(
        bounds=(Fraction(0), Fraction(120)), step=Fraction(1), size=1000, orders=middle, budget=PureDP(1)
    )
    for seed in range(5):
        outcome = drawn(Tree(), np.full(1000, 37.0), known, seed)
        assert set(Tree().answers(outcome, known)) == {37}
        assert Tree().cdf(outcome, known, [Fraction(36), Fraction(37)]).round() == pytest.approx([0, 1])
    real = facts(size=1000, orders=middle)
    outcome = drawn(Tree(), np.full(1000, 0.3), real)
    assert all(abs(answer - Fraction(3, 10)) <= Fraction(1, 4096) for answer in Tree().answers(outcome, real))


@pytest.mark.parametrize("public", [True, False])
def test_no_records_are_answered_by_the_middle(public: bool) -> None:
    known = facts(size=0, size_is_public=public, replaces=public, nulls="lower" if public else "drop")
    method = Tree()
    assert method.possible(drawn(method, np.array([], dtype=float), known), known)
    outcome = (0,) * method._nodes(known).number
    middle = known.grid.value((known.grid.cells - 1) // 2)
    assert set(method.answers(outcome, known)) == {middle}
    assert method.cdf(outcome, known, [Fraction(1, 4), Fraction(3, 4)]).tolist() == [0, 1]
    negative = tuple(-5 for _ in outcome)
    assert set(method.answers(negative, known)) == {middle}


def test_cumulative_shares_count_a_point_with_itself_where_points_have_a_step() -> None:
    known = facts(bounds=(Fraction(0), Fraction(3)), step=Fraction(1), size=4, budget=PureDP(10**5))
    method = Tree(branching=2, leaves=4)
    outcome = raw(method.look(admit(np.array([0.0, 1.0, 1.0, 3.0])), known))
    points = [Fraction(-1), Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3), Fraction(9)]
    assert method.cdf(outcome, known, points) == pytest.approx([0, 0.25, 0.25, 0.75, 0.75, 1, 1])
    real = facts(size=4)
    outcome = raw(method.look(admit(np.array([0.1, 0.3, 0.4, 0.9])), real))
    shares = method.cdf(outcome, real, [Fraction(1, 4), Fraction(3, 8)])
    assert shares == pytest.approx([0.25, 0.5], abs=1e-4)


def test_a_million_rows_and_a_thousand_orders_take_little_memory() -> None:
    values = np.random.default_rng(6).normal(0, 1, 10**6)
    known = facts(bounds=(Fraction(-10), Fraction(10)), orders=orders(999), size=10**6)
    column = admit(values)
    tracemalloc.start()
    view = Tree().look(column, known)
    outcome = raw(Tree().law(view, known).sample(SeededBits(7)))
    answers = Tree().answers(outcome, known)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 2**20
    assert rank_errors(values, answers, known).mean() < 60


def test_a_tree_is_stored_and_read_by_its_name() -> None:
    assert read_method("tree") == Tree()
    assert read_method(("tree", ("branching", 4), ("leaves", 64), ("noise", "auto"))) == Tree(
        branching=4, leaves=64
    )
    words = Tree(leaves=4096).words(facts())
    assert words == "discrete Laplace noise of scale 6 on the counts of a tree of 4,096 leaves in 3 levels"
