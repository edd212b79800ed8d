"""The sensitivities and identities that the statistics rest on, by brute force."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.statistics.cases import ALL_KINDS, BOUNDS, CATEGORIES, NULLS, RELATIONS, Kind, centre, noise_parts

from sfumato.data.admission import admit
from sfumato.laws import DiscreteLaplace
from sfumato.mechanisms import Sensitivity, additive
from sfumato.privacy import ZCDP, ApproxDP, FreeEvent, PureDP
from sfumato.statistics import Count, Histogram, Mean, Sum, Variance
from sfumato.statistics.histogram import nearest_counts

NULL = float("nan")


def all_neighbours(universe: list[float], neighbours: str) -> Iterator[tuple[list[float], list[float]]]:
    """Pairs of data sets of one or two records that differ in one record, alone or beside another."""
    for company in ([], universe[:1], universe[-1:]):
        if neighbours == "add-remove":
            yield from (([*company, record], company) for record in universe)
        else:
            pairs = itertools.combinations(universe, 2)
            yield from (([*company, left], [*company, right]) for left, right in pairs)


def universe_of(kind: Kind) -> list[float]:
    if kind is CATEGORIES:
        return [0, 5, 3, 9, NULL]
    low, high = map(float, kind.own.get("bounds", BOUNDS))
    inside = [low + (high - low) * k / 8 for k in range(9)]
    return [*inside, 0.0, 5.0, low - 1, high + 1, NULL]


def column_of(kind: Kind, records: list[float]) -> Any:
    if kind is not CATEGORIES:
        return admit(np.array(records, dtype=np.float64))
    missing = np.isnan(np.array(records, dtype=np.float64))
    return admit(
        np.ma.masked_array([0 if m else int(r) for r, m in zip(records, missing, strict=True)], mask=missing)
    )


def moved(kind: Kind, query: Any, pair: tuple[list[float], list[float]]) -> Iterator[tuple[int, Any]]:
    """How far each released number moves, with its noise."""
    laws = [query.law(query.look(column_of(kind, records))) for records in pair]
    left, right = (centre(law) for law in laws)
    return zip((abs(a - b) for a, b in zip(left, right, strict=True)), noise_parts(laws[0]), strict=True)


SUMS_ELSEWHERE = tuple(
    Kind(f"sum in {bounds}", Sum, {"bounds": bounds}, lambda v, nulls: None)
    for bounds in ((2, 10), (-10, -2), (-10, 3), (0, 1))
)
MEANS_ELSEWHERE = tuple(
    Kind(f"{make.name} in {bounds}", make, {"bounds": bounds}, lambda v, nulls: None)
    for make in (Mean, Variance)
    for bounds in ((2, 10), (-0.3, 0.1))
)


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("kind", [*ALL_KINDS, *SUMS_ELSEWHERE, *MEANS_ELSEWHERE], ids=lambda kind: kind.id)
def test_the_worst_neighbours_cost_the_budget_and_no_pair_costs_more(
    kind: Kind, neighbours: str, nulls: str
) -> None:
    universe = universe_of(kind)
    worst = {"pure": Fraction(0), "rho": Fraction(0)}
    queries: dict[tuple[str, int], Any] = {}
    for pair in all_neighbours(universe, neighbours):
        for name, budget in (("pure", PureDP(0.5)), ("rho", ZCDP(0.125))):
            rows = len(pair[0])
            query = queries.setdefault((name, rows), kind.query(budget, neighbours, nulls, "auto", rows))
            if isinstance(query.event, FreeEvent):
                left, right = (query.law(query.look(column_of(kind, records))) for records in pair)
                assert centre(left) == centre(right)
                worst = {"pure": Fraction(1, 2), "rho": Fraction(1, 8)}  # nothing to find
                continue
            parts = list(moved(kind, query, pair))
            if name == "pure":
                cost = sum((distance / noise.scale for distance, noise in parts), Fraction(0))
            else:
                cost = sum((distance**2 / noise.sigma_squared for distance, noise in parts), Fraction(0)) / 2
            worst[name] = max(worst[name], cost)
    assert worst["pure"] <= Fraction(1, 2)
    assert worst["rho"] <= Fraction(1, 8)
    # Within 0.1 %, because the points of a lattice are not exactly those of the universe.
    assert worst["pure"] > Fraction(1, 2) * Fraction(999, 1000)
    assert worst["rho"] > Fraction(1, 8) * Fraction(999, 1000)


@pytest.mark.parametrize("reach", [4, 5, 7, 50])
def test_the_sums_of_values_and_squares_cost_nine_quarters_together(reach: int) -> None:
    pairs = list(itertools.product(range(-reach, reach + 1), repeat=2))
    worst = max(Fraction(abs(j - k), reach) + Fraction(abs(j * j - k * k), reach**2) for j, k in pairs)
    assert worst <= Fraction(9, 4)
    assert worst >= Fraction(9, 4) * Fraction(99, 100)
    squared = max(
        Fraction((j - k) ** 2, reach**2) + Fraction((j * j - k * k) ** 2, reach**4) for j, k in pairs
    )
    assert squared == 4


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 2), (3, 1), (4, 1), (5, 1), (1, 10)])
def test_the_joint_cost_of_two_moments_is_the_formula_of_the_specification(first: int, second: int) -> None:
    # spec/traps.md section 8, with each sum calibrated alone to e1 (range 2) and e2 (range 1).
    grid = np.linspace(-1, 1, 401)
    s, t = np.meshgrid(grid, grid)
    cost = np.abs(s - t) * first / 2 + np.abs(s**2 - t**2) * second
    formula = second * (1 + first / (4 * second)) ** 2 if first <= 4 * second else first
    assert cost.max() == pytest.approx(formula, rel=1e-3)
    assert cost.max() <= formula + 1e-12


@pytest.mark.parametrize("reach", [4, 7])
def test_the_three_sums_of_squares_are_complementary(reach: int) -> None:
    triples = [((reach - j) ** 2, 2 * (reach**2 - j**2), (reach + j) ** 2) for j in range(-reach, reach + 1)]
    whole = 4 * reach**2
    assert {sum(triple) for triple in triples} == {whole}
    assert min(map(min, triples)) == 0
    assert max(sum(x * x for x in triple) for triple in triples) == whole**2
    distances = [[abs(a - b) for a, b in zip(p, q, strict=True)] for p in triples for q in triples]
    assert max(map(sum, distances)) == 2 * whole
    assert max(sum(d * d for d in distance) for distance in distances) == 2 * whole**2


def test_a_variance_releases_these_triples_and_a_mean_complementary_sums() -> None:
    values = np.array([-2.5, 1.0, 10.1, 44.0, NULL])
    chosen = {"budget": PureDP(1), "neighbours": "add-remove", "nulls": "drop", "bounds": BOUNDS}
    variance, mean = Variance(**chosen), Mean(**chosen)
    reach = variance.lattice.high
    points = [int(j) for j in variance.lattice.round(values[:4])]
    assert centre(variance.law(variance.look(admit(values)))) == (
        sum((reach - j) ** 2 for j in points),
        sum(2 * (reach**2 - j**2) for j in points),
        sum((reach + j) ** 2 for j in points),
    )
    points = [int(j) for j in mean.lattice.round(values[:4])]
    above, below = centre(mean.law(mean.look(admit(values))))
    assert (above, below) == (
        sum(j - mean.lattice.low for j in points),
        sum(mean.lattice.high - j for j in points),
    )
    assert above + below == 4 * mean.lattice.width


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_the_mean_of_private_size_has_half_the_variance_of_a_noisy_sum_and_count(epsilon: float) -> None:
    chosen = {"neighbours": "add-remove", "nulls": "drop", "bounds": (0, 1)}
    query = Mean(budget=PureDP(epsilon), **chosen)
    size = 10_000
    unit = size * query.lattice.width
    half = PureDP(PureDP(epsilon).epsilon / 2)
    # The usual way: sum of x - middle, and count, each with half of epsilon; the middle is subtracted.
    width = query.lattice.width
    sum_noise = additive(half, Sensitivity.scalar(width)).noise.variance / 4
    count_noise = additive(half, Sensitivity.scalar(1)).noise.variance
    ours = query.mechanism.noise.variance
    for share in (0.0, 0.1, 0.5, 1.0):
        usual = sum_noise / unit**2 + (share - 0.5) ** 2 * count_noise / size**2
        new = ((1 - share) ** 2 + share**2) * ours / unit**2
        # Both are the delta method; discreteness of the count takes off 1/12 epsilon**2 of it at most.
        assert new / usual == pytest.approx(0.5, rel=epsilon**2 / 20 + 1e-6)


def test_two_bins_with_a_public_total_are_one_count_at_the_full_epsilon() -> None:
    chosen = {"budget": PureDP(0.5), "neighbours": "substitution", "rows": 10}
    two = Histogram(**chosen, nulls="lower", edges=(0, 1, 2))
    assert two.mechanism.noise == DiscreteLaplace(Fraction(2))
    assert two.value((3,)).tolist() == [3, 7]
    low, high = two.interval((3,), 0.5)
    assert (low.tolist(), high.tolist()) == ([2, 6], [4, 8])
    assert Histogram(**chosen, nulls="lower", edges=(0, 1, 2, 3)).mechanism.noise.scale == 4
    assert Histogram(**chosen, nulls="drop", edges=(0, 1, 2)).mechanism.noise.scale == 4
    assert Histogram(**chosen, nulls="drop", edges=(0, 1)).mechanism.noise.scale == 2


def least_squares(noisy: list[int], total: int) -> int:
    """The smallest squared distance of any non-negative whole numbers that add up to `total`."""
    best = None
    for chosen in itertools.product(range(total + 1), repeat=len(noisy) - 1):
        last = total - sum(chosen)
        if last >= 0:
            distance = sum((x - y) ** 2 for x, y in zip((*chosen, last), noisy, strict=True))
            best = distance if best is None else min(best, distance)
    assert best is not None
    return best


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=4), st.integers(0, 8))
def test_nearest_counts_are_the_integer_least_squares(noisy: list[int], total: int) -> None:
    given_ = np.array(noisy, dtype=np.int64)
    found = nearest_counts(given_, total)
    assert found.dtype == np.int64
    assert found.min() >= 0
    assert found.sum() == total
    assert int(((found - given_) ** 2).sum()) == least_squares(noisy, total)
    assert given_.tolist() == noisy


@given(st.lists(st.integers(-(2**58), 2**58), min_size=1, max_size=16), st.integers(0, 2**58))
def test_nearest_counts_add_up_exactly_beyond_the_reach_of_float64(noisy: list[int], total: int) -> None:
    found = nearest_counts(np.array(noisy, dtype=np.int64), total)
    assert sum(found.tolist()) == total
    assert found.min() >= 0
    # The order of the counts is kept, up to the last unit.
    order = np.argsort(noisy, kind="stable")
    assert (np.diff(found[order]) >= -1).all()


def test_nearest_counts_leave_counts_alone_that_already_add_up() -> None:
    assert nearest_counts(np.array([3, 0, 4]), 7).tolist() == [3, 0, 4]


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, 1e-6), ZCDP(0.5)])
def test_the_variance_uses_noise_on_moments_as_stated(budget: Any) -> None:
    query = Variance(
        budget=budget, neighbours="substitution", nulls="lower", bounds=(0, 1), rows=10, noise="auto"
    )
    reach = query.lattice.high
    first, second = query.parts
    if isinstance(first.noise, DiscreteLaplace):
        assert (first.noise.scale, second.noise.scale) == (
            Fraction(9, 4) * reach,
            Fraction(9, 4) * reach**2,
        )
        assert query.event.pure_epsilon == 1
    else:
        # Two moments, a squared distance of 4 together in units of their noise.
        assert second.noise.sigma_squared == first.noise.sigma_squared * reach**2
        assert query.event.rho == Fraction(4 * reach**2) / (2 * first.noise.sigma_squared)


def test_a_null_that_is_dropped_can_move_a_sum_by_a_whole_value() -> None:
    for bounds, reach in (((2, 10), 10), ((-10, -2), 10), ((-10, 3), 13)):
        query = Sum(budget=PureDP(1), neighbours="substitution", nulls="drop", bounds=bounds, rows=5)
        assert float(query.mechanism.noise.scale * query.lattice.step) == pytest.approx(reach, rel=1e-6)


@pytest.mark.parametrize("clamp", [None, 4])
def test_a_count_is_clamped_to_the_rows_only_where_they_are_public(clamp: int | None) -> None:
    relation = "add-remove" if clamp is None else "substitution"
    query = Count(budget=PureDP(0.1), neighbours=relation, nulls="drop", between=(0, 1), rows=clamp)
    law = query.law(query.look(admit(np.array([0.5, 0.5, 3.0, NULL]))))
    assert law.cdf(-1) == 0
    assert (law.sf(4) == 0) == (clamp is not None)
