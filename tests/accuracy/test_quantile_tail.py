"""Rank errors of drawn quantiles: bounds against exact laws, with gaps, ties and grids; what is in print."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accuracy import (
    epsilon_for_rank,
    epsilon_for_value,
    gap_ratio,
    grid_rank_tail,
    published_epsilon_for_value,
    published_quantile_rank_radius,
    quantile_rank_radius,
    quantile_rank_tail,
    quantile_rank_tail_exact,
)
from sfumato.errors import InvalidParameter

DISTANCES = (0.25, 0.5, 1, 2.5, 4, 10)
RATES = (0.05, 0.5, 2, 8)


def cell_tail(data, bounds, target, rate, distance, *, beyond=False):
    """The chance of a rank `distance` or more away (or farther), cell by cell in plain Python."""
    edges = [bounds[0], *sorted(data), bounds[1]]
    far = total = 0.0
    for rank, (left, right) in enumerate(itertools.pairwise(edges)):
        away = abs(rank - target)
        weight = (right - left) * math.exp(-rate * away)
        total += weight
        far += weight * ((away > distance) if beyond else (away >= distance))
    return far / total


def data_sets():
    numbers = np.random.default_rng(7)
    for rows in (1, 2, 5, 12, 40):
        yield numbers.random(rows).tolist()
        yield np.cumsum(numbers.lognormal(0, 2, rows + 1))[:-1].tolist()
    # Two clusters with a wide gap between them, and the smallest cell at the target.
    yield [0.01, 0.02, 0.03, 0.97, 0.98, 0.99]
    yield [0.3, 0.5, 0.5001, 0.9]


def cases():
    for data in data_sets():
        bounds = (0, max(data) + 0.01)
        for target in (Fraction(len(data), 4), Fraction(len(data), 2), Fraction(len(data)), Fraction(0)):
            yield data, bounds, target


def nearest_rank(target):
    return abs(target - round(target))


@pytest.mark.parametrize("rate", RATES)
def test_the_exact_tail_is_that_of_the_cells(rate):
    for data, bounds, target in cases():
        for distance in DISTANCES:
            found = quantile_rank_tail_exact(data, bounds, target=target, rate=rate, distance=distance)
            expected = cell_tail(data, bounds, target, rate, distance)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("rate", RATES)
def test_no_data_with_gaps_are_above_the_bound(rate):
    violated_by_mutant = 0
    for data, bounds, target in cases():
        psi = gap_ratio(data, bounds)
        for distance in DISTANCES:
            truth = cell_tail(data, bounds, target, rate, distance)
            own = quantile_rank_tail(psi, rate, distance, offset=nearest_rank(target))
            general = quantile_rank_tail(psi, rate, distance)
            assert truth <= own * (1 + 1e-12)
            assert own <= general <= max(1, psi * math.exp(-rate * (distance - 0.5)))
            mutant = quantile_rank_tail(psi, rate, distance, offset=0)
            violated_by_mutant += truth > mutant * (1 + 1e-9)
    # Without the offset of the target the bound fails.
    assert violated_by_mutant > 0


@pytest.mark.parametrize("rate", RATES)
def test_the_bound_is_attained_by_one_record(rate):
    for place in (0.5, 0.1, 0.001):
        truth = cell_tail([place], (0, 1), 0, rate, 1)
        assert quantile_rank_tail(1 / place, rate, 1, offset=0) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("failure", [0.9, 0.5, 0.05, 1e-6])
@pytest.mark.parametrize("rate", RATES)
def test_the_radius_is_passed_seldom_enough(rate, failure):
    for data, bounds, target in cases():
        psi = gap_ratio(data, bounds)
        for offset in (nearest_rank(target), 0.5):
            radius = quantile_rank_radius(psi, rate, failure, offset=offset)
            assert cell_tail(data, bounds, target, rate, radius, beyond=True) <= failure * (1 + 1e-9)
        assert radius <= 0.5 + math.log(psi / failure) / rate


@pytest.mark.parametrize("epsilon", [0.1, 1, 4, 16])
def test_the_published_radius_holds_for_whole_targets_and_fails_for_others(epsilon):
    broken = 0
    for data, bounds, target in cases():
        for failure in (0.9, 0.5, 0.05, 1e-6):
            radius = published_quantile_rank_radius(gap_ratio(data, bounds), epsilon, failure)
            truth = cell_tail(data, bounds, target, epsilon / 2, radius, beyond=True)
            if target.denominator == 1:
                assert truth <= failure * (1 + 1e-9)
            broken += truth > failure * (1 + 1e-9)
    assert (broken > 0) == (epsilon == 16)


def test_the_published_radius_fails_for_one_record_in_the_middle():
    radius = published_quantile_rank_radius(2, 10, 0.9)
    assert radius == pytest.approx(0.16, abs=0.001)
    assert cell_tail([0.5], (0, 1), Fraction(1, 2), 5, radius, beyond=True) == 1
    assert quantile_rank_radius(2, 5, 0.9) == 0.5


def test_ties_leave_no_bound_and_an_exact_tail():
    assert gap_ratio([3, 3, 5], (0, 10)) == math.inf
    assert gap_ratio([0, 5], (0, 10)) == math.inf
    assert quantile_rank_tail(math.inf, 8, 100) == 1
    assert quantile_rank_radius(math.inf, 8, 0.5) == math.inf
    # All records at one value: every answer is half of them away, whatever the rate.
    for rate in (0.5, 1e300):
        tied = quantile_rank_tail_exact([5] * 1000, (0, 10), target=500, rate=rate, distance=500)
        assert tied == 1


def test_records_out_of_bounds_are_clamped_and_order_does_not_matter():
    plain = quantile_rank_tail_exact([1, 4, 6], (0, 10), target=1, rate=1, distance=1)
    assert quantile_rank_tail_exact([6, 1, 4], (0, 10), target=1, rate=1, distance=1) == plain
    inside = quantile_rank_tail_exact([0, 4, 10], (0, 10), target=1, rate=1, distance=1)
    assert quantile_rank_tail_exact([-5, 4, 99], (0, 10), target=1, rate=1, distance=1) == inside


def grid_law(counts, target, rate, *, plain=False):
    """Distances and probabilities of the points of a grid with so many records at each."""
    below = np.concatenate([[0], np.cumsum(counts)[:-1]])
    upto = np.cumsum(counts)
    away = np.maximum(np.maximum(below - target, target - upto), 0)
    away = np.abs(below - target) if plain else away
    weights = np.exp(-rate * (away - away.min()))
    return away, weights / weights.sum()


def test_no_counts_on_a_small_grid_are_above_the_bound():
    reached = plain_above = 0
    for points, rows in itertools.product((1, 2, 4), (1, 3, 5)):
        for counts in itertools.product(range(rows + 1), repeat=points):
            if sum(counts) != rows:
                continue
            for half, rate, distance in itertools.product(range(2 * rows + 1), (0.3, 1, 4), (0.5, 1, 2, 3)):
                away, chances = grid_law(np.array(counts), half / 2, rate)
                bound = grid_rank_tail(points, rate, distance)
                truth = chances[away >= distance].sum()
                assert truth <= bound * (1 + 1e-12)
                reached += points > 1 and math.isclose(truth, bound, rel_tol=1e-9)
                away, chances = grid_law(np.array(counts), half / 2, rate, plain=True)
                plain_above += chances[away >= distance].sum() > bound * (1 + 1e-9)
    assert reached > 0
    assert plain_above > 0


def test_the_plain_distance_fails_badly_with_ties():
    counts = np.zeros(201)
    counts[100] = 1000
    assert grid_rank_tail(201, 0.5, 22) < 0.0036
    for plain, truth in ((True, 1), (False, 0)):
        away, chances = grid_law(counts, 500, 0.5, plain=plain)
        assert chances[away >= 22].sum() == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("points", [2, 201, 10**12])
@pytest.mark.parametrize("failure", [0.5, 0.01, 1e-9])
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1)])
def test_the_budget_is_the_smallest_that_the_bound_allows(points, failure, share):
    for ranks in (1, 2.5, 100):
        epsilon = epsilon_for_rank(ranks, failure, points, rate_per_epsilon=share)
        if epsilon == 0:
            assert (points - 1) * (1 - failure) <= failure
            continue
        assert grid_rank_tail(points, epsilon * float(share), ranks) == pytest.approx(failure, rel=1e-9)
        assert epsilon <= math.log(points / failure) / (float(share) * ranks)


def test_the_chooser_in_print_takes_a_width_for_ranks():
    # A thousand records, the integers 0..199 five times each, bounds one beyond: figure 7.
    printed = published_epsilon_for_value(201, 1, 20.1, 0.01)
    assert printed == pytest.approx(20 * (math.log(201) + math.log(100)) / 201, rel=1e-12)
    assert round(printed, 5) == 0.98592
    needed = epsilon_for_rank(100, 0.01, 201)
    assert round(needed, 3) == 0.198
    assert epsilon_for_value(20, 0.01, 201, rows=1000, density=Fraction(1, 200)) == needed
    values = np.arange(-1, 201)
    counts = np.where((values >= 0) & (values < 200), 5, 0)
    needed = epsilon_for_rank(100, 0.01, len(values))
    away, chances = grid_law(counts, 500, needed / 2)
    middle = values[away == 0].mean()
    assert chances[np.abs(values - middle) > 20].sum() < 0.01
    # With a fortieth of the records the same width of values is promised, and is missed nearly always.
    few = [20 * i + 0.5 for i in range(1, 5)] + [101.5]
    law = [-1, *sorted(few), 200]
    rank = np.abs(np.arange(6) - 2.5)
    weights = np.diff(law) * np.exp(-printed / 2 * rank)
    inside = sum(
        weight * max(0, min(right, 60.5 + 20.1) - max(left, 60.5 - 20.1)) / (right - left)
        for weight, left, right in zip(weights, law[:-1], law[1:], strict=True)
    )
    assert 1 - inside / weights.sum() > 0.2


def test_the_budget_for_a_value_keeps_its_promise_on_grids_with_that_density():
    values, counts = np.arange(400), np.full(400, 3)
    counts[:150] = counts[260:] = 0
    counts[0] = 700  # what is far does not matter
    rows, target = counts.sum(), 700 + 3 * 55
    middle = 150 + 54
    for tolerance in (5, 20, 50):
        density = Fraction(3, int(rows))
        epsilon = epsilon_for_value(tolerance, 0.02, 400, rows=int(rows), density=density)
        _, chances = grid_law(counts, target, epsilon / 2)
        assert chances[np.abs(values - middle) > tolerance].sum() <= 0.02


TAIL = {"target": 1, "rate": 1, "distance": 1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quantile_rank_tail(0.5, 1, 1), "ratio must be in"),
        (lambda: quantile_rank_tail(1e301, 1, 1), "ratio must be in"),
        (lambda: quantile_rank_tail(math.nan, 1, 1), "ratio must be finite"),
        (lambda: quantile_rank_tail(-math.inf, 1, 1), "ratio must be finite"),
        (lambda: quantile_rank_tail(2, 0, 1), "rate must be positive"),
        (lambda: quantile_rank_tail(2, 1, 0), "distance must be positive"),
        (lambda: quantile_rank_tail(2, 1, 10**400), "distance must be in"),
        (lambda: quantile_rank_tail(2, 1, 1, offset=0.6), "offset must be in"),
        (lambda: quantile_rank_tail(2, 1, 1, offset=-0.1), "offset must be in"),
        (lambda: quantile_rank_radius(2, 1, 0), "failure must be inside"),
        (lambda: quantile_rank_radius(2, 1, 1), "failure must be inside"),
        (lambda: published_quantile_rank_radius(2, 1, 2), "failure must be inside"),
        (lambda: quantile_rank_tail_exact([1, 2], (0, 3), target=3, rate=1, distance=1), "target must be in"),
        (
            lambda: quantile_rank_tail_exact([1, 2], (0, 3), target=-1, rate=1, distance=1),
            "target must be in",
        ),
        (lambda: quantile_rank_tail_exact([1, 2], (3, 0), **TAIL), "lower must be below upper"),
        (lambda: quantile_rank_tail_exact([1, 2], 3, **TAIL), "bounds must be a pair"),
        (lambda: quantile_rank_tail_exact([1, math.nan], (0, 3), **TAIL), "values must be numbers in"),
        (lambda: quantile_rank_tail_exact("secret", (0, 3), **TAIL), "values must be a line of numbers$"),
        (lambda: gap_ratio([[1]], (0, 3)), "values must be a line of numbers$"),
        (lambda: grid_rank_tail(0, 1, 1), "points must be in"),
        (lambda: grid_rank_tail(2.0, 1, 1), "points must be a whole number"),
        (lambda: epsilon_for_rank(0, 0.1, 5), "rank_error must be positive"),
        (lambda: epsilon_for_rank(1, 0.1, True), "points must be a whole number"),
        (lambda: epsilon_for_value(20, 0.1, 5, rows=10, density=1), "density must leave room"),
        (lambda: published_epsilon_for_value(1, 2, 1, 0.1), "gap must be at most width"),
        (lambda: published_epsilon_for_value(2, 0, 1, 0.1), "gap must be positive"),
    ],
)
def test_hypotheses_are_checked_by_name_and_no_datum_is_shown(call, message):
    with pytest.raises(InvalidParameter, match=f"^{message}") as caught:
        call()
    assert "secret" not in str(caught.value)


def test_extremes_do_not_leave_float64():
    assert grid_rank_tail(2**62, 1e300, 1e300) == 0
    assert quantile_rank_tail(1e300, 1e-300, 1) == pytest.approx(1)
    assert grid_rank_tail(1, 1, 1) == 0
    assert 0 < grid_rank_tail(2, 1, 740) < 1e-320
    assert epsilon_for_rank(1, 1e-300, 2**62) == pytest.approx(2 * (300 * math.log(10) + 62 * math.log(2)))
    assert epsilon_for_rank(1, 0.9, 2) == 0
    # One point, or one cell: nothing can go wrong.
    assert epsilon_for_rank(1, 0.1, 1) == 0
    assert quantile_rank_radius(1, 1, 0.1, offset=0) == 0
