"""Intervals for the population: exact where laws can be summed, else by seeded draws; and what they cost."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import binom, laplace, norm
from tests.statistics.cases import centre

import sfumato as sf
from sfumato.accuracy import noisy_sampling, normal_noise
from sfumato.accuracy.noisy_sampling import noisy_proportion_bounds, noisy_share_bounds
from sfumato.accuracy.normal_noise import normal_laplace_tail
from sfumato.audit import worst_case
from sfumato.data.admission import admit
from sfumato.data.counts import Sums, squared
from sfumato.errors import InvalidParameter
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, SeededBits
from sfumato.mechanisms import GaussianMechanism, LaplaceMechanism
from sfumato.privacy import ZCDP, ApproxDP, Budget, PureDP
from sfumato.query import raw
from sfumato.statistics import Mean, Proportion, mean_spread
from sfumato.statistics.mean_spread import AUTO, divided

PUBLIC, DROPPED, ADDED = ("substitution", "lower"), ("substitution", "drop"), ("add-remove", "drop")
TENTH = Fraction(1, 10)


def query_of(kind: Any, budget: Budget, relation: tuple[str, str], rows: int, **own: Any) -> Any:
    neighbours, nulls = relation
    public = rows if neighbours == "substitution" else None
    return kind(budget=budget, neighbours=neighbours, nulls=nulls, rows=public, **own)


# --- proportions, exactly -------------------------------------------------------------------------


def exact_coverage(
    query: Proportion, rows: int, chance: float, intervals: list[tuple[float, float]]
) -> float:
    """The coverage of a share with a public size: a sum over all counts and all outcomes."""
    found, noise = np.arange(rows + 1), query.mechanism.noise
    covered = np.array([low <= chance <= high for low, high in intervals])
    law = np.zeros(rows + 1)
    for matches, weight in enumerate(binom.pmf(found, rows, chance)):
        if weight > 1e-15:
            below = np.where(found == rows, 1.0, noise.cdf(found - matches))
            law += weight * np.diff(below, prepend=0.0)
    return float(law[covered].sum())


def chances(rows: int) -> list[float]:
    listed = [0.0, 0.2 / rows, 1 / rows, 3 / rows, 0.05, 0.3, 0.5, 0.77, 1 - 2 / rows, 1.0]
    return [chance for chance in listed if 0 <= chance <= 1]


@pytest.mark.parametrize("budget", [PureDP(0.1), PureDP(1), PureDP(8), ZCDP(0.05), ZCDP(2)], ids=str)
@pytest.mark.parametrize("rows", [1, 7, 150])
def test_the_population_share_is_covered_at_every_share(budget: Budget, rows: int) -> None:
    query = query_of(Proportion, budget, PUBLIC, rows)
    for confidence in (0.8, 0.95):
        intervals = [query.population_interval((k,), confidence) for k in range(rows + 1)]
        assert all(low <= k / rows <= high for k, (low, high) in enumerate(intervals))
        for chance in chances(rows):
            assert exact_coverage(query, rows, chance, intervals) >= confidence - 1e-9


def test_a_share_by_noise_alone_or_by_sampling_alone_is_caught() -> None:
    query = query_of(Proportion, PureDP(0.3), PUBLIC, 150)
    by_noise = [query.interval((k,), 0.95) for k in range(151)]
    by_sampling = [
        noisy_proportion_bounds(k, 150, DiscreteLaplace(Fraction(1, 20)), 0.05) for k in range(151)
    ]
    for wrong in (by_noise, by_sampling):
        assert exact_coverage(query, 150, 0.3, wrong) < 0.93


def test_the_share_of_a_population_is_not_wasteful_where_noise_and_sampling_are_alike() -> None:
    query = query_of(Proportion, PureDP(0.25), PUBLIC, 150)
    intervals = [query.population_interval((k,), 0.95) for k in range(151)]
    # An outcome more or less on each side has a probability of about 0.005.
    for chance in (0.3, 0.5, 0.77):
        assert exact_coverage(query, 150, chance, intervals) <= 0.965


LAWS = [
    *(DiscreteLaplace(Fraction(scale)) for scale in (3, 200, 5000)),
    *(DiscreteGaussian(Fraction(sigma) ** 2) for sigma in (3, 300, 3000)),
]


@pytest.mark.parametrize("noise", LAWS, ids=repr)
@pytest.mark.parametrize(("size", "limit"), [(1000, 10), (60_000, 20_000), (60_000, 59_990), (60_000, 40)])
def test_every_way_to_sum_the_law_of_a_noisy_count_is_right(noise: Any, size: int, limit: int) -> None:
    counts, below = np.arange(size + 1), noisy_sampling._below(limit, size, noise)
    for share in (limit / size * 0.97, limit / size * 1.1 + 1e-5, limit / size + 0.02):
        if share < 1:
            exact = float(binom.pmf(counts, size, share) @ noise.cdf(limit - counts))
            assert below(share) == pytest.approx(exact, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("noise", [LAWS[0], LAWS[4]], ids=repr)
def test_the_bounds_of_a_share_are_where_the_tails_are_half_of_the_failure(noise: Any) -> None:
    size, count = 5000, 1200
    low, high = noisy_proportion_bounds(count, size, noise, 0.1)
    counts = np.arange(size + 1)
    above = float(binom.pmf(counts, size, low) @ noise.sf(count - 1 - counts))
    below = float(binom.pmf(counts, size, high) @ noise.cdf(count - counts))
    assert 0.05 * (1 - 1e-6) <= above <= 0.05 or low == 0
    assert 0.05 * (1 - 1e-6) <= below <= 0.05 or high == 1
    mirrored = noisy_proportion_bounds(size - count, size, noise, 0.1)
    assert (1 - high, 1 - low) == (pytest.approx(mirrored[0]), pytest.approx(mirrored[1]))


def test_a_share_of_more_rows_than_can_be_summed_is_bounded_in_two_parts() -> None:
    noise = DiscreteLaplace(Fraction(1))
    low, high = noisy_proportion_bounds(10**12, 10**13, noise, 0.05)
    assert low < 0.1 < high < low + 1e-6


@pytest.mark.parametrize("relation", [DROPPED, ADDED])
@pytest.mark.parametrize("budget", [PureDP(0.5), ZCDP(0.5)], ids=str)
@pytest.mark.parametrize("chance", [0.0, 0.03, 0.4])
def test_a_share_of_a_private_size_is_covered(relation: Any, budget: Budget, chance: float) -> None:
    rows, confidence = 60, 0.9
    query = query_of(Proportion, budget, relation, rows)
    noise, bits, rng = query.mechanism.noise, SeededBits(5), np.random.default_rng(6)
    held, draws = 0, 150
    for matches in rng.binomial(rows, chance, draws).tolist():
        outcome = raw(query.law(Sums(rows, matches)).sample(bits))
        low, high = query.population_interval(outcome, confidence)
        held += low <= chance <= high
        assert (low, high) != noisy_share_bounds(outcome, noise, confidence) or low <= query.value(outcome)
    assert held / draws >= confidence - 4 * math.sqrt(confidence * (1 - confidence) / draws)


# --- normal plus noise ----------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [0.01, 0.5, 1, 4, 50])
@pytest.mark.parametrize("scale", [0.2, 1, 9])
def test_the_tail_of_a_normal_plus_laplace_is_its_integral(spread: float, scale: float) -> None:
    for reach in (0.0, 0.3 * (spread + scale), 3 * (spread + scale)):
        # Over the normal error, whose density is smooth; the trapezium rule then misses the kink alone.
        errors = np.linspace(-9, 9, 200_001) * spread
        tails = laplace.sf(reach - errors, scale=scale) + laplace.cdf(-reach - errors, scale=scale)
        exact = float(np.trapezoid(norm.pdf(errors, scale=spread) * tails, errors))
        assert float(normal_laplace_tail(reach, spread, scale)) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("scatter", [0.2, 1.5, 8])
def test_the_margin_of_a_noisy_variance_is_enough_and_no_more(gaussian: bool, scatter: float) -> None:
    rng, failure, draws = np.random.default_rng(7), 0.05, 40_000
    one = rng.normal(size=draws) if gaussian else rng.laplace(size=draws)
    other = scatter * (rng.normal(size=draws) if gaussian else rng.laplace(size=draws))
    margin = normal_noise._margin(gaussian, scatter, failure)

    def missed(variance: float, added: float) -> float:
        off = np.abs(rng.normal(0, math.sqrt(variance), draws) + one)
        used = np.sqrt(np.maximum(variance + other + added, 0.0))
        if gaussian:
            return float((2 * norm.sf(off / np.sqrt(used**2 + 1)) < failure).mean())
        return float((normal_laplace_tail(off, used, 1.0) < failure).mean())

    variances = np.geomspace(0.1, 100, 10)
    error = 4 * math.sqrt(failure * (1 - failure) / draws)
    assert max(missed(float(v), margin) for v in variances) <= failure + error
    if scatter > 1:
        # Without a margin an interval by the noisy variance fails too often.
        assert max(missed(float(v), 0.0) for v in variances) > failure + error


# --- means ----------------------------------------------------------------------------------------


POPULATIONS: dict[str, Any] = {
    "uniform": ((0, 1), lambda rng, n: rng.random(n), 0.5),
    "normal": ((-10, 10), lambda rng, n: rng.normal(0, 1, n), 0.0),
    "lognormal": ((0, 50), lambda rng, n: rng.lognormal(0, 1, n), 1.648236),
    "poisson": ((0, 100), lambda rng, n: 1.0 * rng.poisson(20, n), 20.0),
    "constant": ((0, 1), lambda rng, n: np.full(n, 0.3), 0.3),
}


def drawn_intervals(query: Mean, draw: Any, rows: int, runs: int) -> list[tuple[float, tuple[float, float]]]:
    bits, rng = SeededBits(11), np.random.default_rng(12)
    drawn = [raw(query.law(query.look(admit(draw(rng, rows)))).sample(bits)) for _ in range(runs)]
    return [(query.value(outcome), query.population_interval(outcome, 0.95)) for outcome in drawn]


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("relation", [PUBLIC, DROPPED, ADDED], ids="-".join)
@pytest.mark.parametrize("budget", [PureDP(0.1), PureDP(1), ZCDP(0.5)], ids=str)
def test_the_population_mean_is_covered_and_the_interval_is_near_the_best(
    name: str, relation: Any, budget: Budget
) -> None:
    bounds, draw, truth = POPULATIONS[name]
    query = query_of(Mean, budget, relation, 1000, bounds=bounds, interval_share="auto")
    runs = 80
    found = drawn_intervals(query, draw, 1000, runs)
    held = sum(low <= truth <= high for _, (low, high) in found) / runs
    assert held >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs)
    # The best interval around the released value, with room for a quantile of few runs.
    best = 2 * float(np.quantile([abs(value - truth) for value, _ in found], 0.95))
    assert np.mean([high - low for _, (low, high) in found]) <= 1.5 * best * 1.25


def test_an_interval_that_takes_the_noisy_variance_at_its_word_is_caught() -> None:
    # A tenth of the noise's variance is small beside nothing: the margin is what keeps the promise.
    query = query_of(Mean, PureDP(4), ADDED, 200, bounds=(0, 1), interval_share=Fraction(1, 20))

    def missed() -> float:
        found = drawn_intervals(query, lambda rng, n: 0.5 + 0.1 * rng.normal(size=n), 200, 700)
        return sum(not low <= 0.5 <= high for _, (low, high) in found) / 700

    assert missed() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 700)
    with patch.object(normal_noise, "_margin", lambda *_: 0.0):
        assert missed() > 0.05 + 4 * math.sqrt(0.05 * 0.95 / 700)


@pytest.mark.parametrize("relation", [PUBLIC, DROPPED, ADDED], ids="-".join)
@pytest.mark.parametrize("budget", [PureDP(0.05), PureDP(3), ZCDP(0.1)], ids=str)
def test_the_interval_by_the_spread_is_never_wider_than_that_without(relation: Any, budget: Budget) -> None:
    rng, bits = np.random.default_rng(3), SeededBits(4)
    for rows, share in itertools.product((3, 40, 2000), ("auto", Fraction(1, 2))):
        query = query_of(Mean, budget, relation, rows, bounds=(0, 8), interval_share=share)
        for values in (rng.exponential(size=rows), np.zeros(rows), 8.0 * (rng.random(rows) < 0.5)):
            outcome = raw(query.law(query.look(admit(values))).sample(bits))
            low, high = query.population_interval(outcome, 0.9)
            any_low, any_high = query._whatever(outcome, 1 - 0.9)
            assert 0 <= any_low <= low <= high <= any_high <= 8
            data_low, data_high = query.interval(outcome, 0.9)
            assert low <= data_low + 1e-9
            assert data_high <= high + 1e-9


class Assumed:
    """A public scenario that knows its moments."""

    def __init__(self, variance: float) -> None:
        self.variance = variance

    def moments(self, bounds: tuple[float, float]) -> tuple[float, float]:
        return 0.0, self.variance


@pytest.mark.parametrize("relation", [PUBLIC, ADDED], ids="-".join)
def test_a_public_scenario_tells_the_spread_instead(relation: Any) -> None:
    rows, runs = 1000, 300
    query = query_of(Mean, PureDP(1), relation, rows, bounds=(0, 1))
    bits, rng = SeededBits(8), np.random.default_rng(9)
    held, narrower = 0, 0
    for _ in range(runs):
        outcome = raw(query.law(query.look(admit(rng.random(rows)))).sample(bits))
        low, high = query.population_interval(outcome, 0.95, Assumed(1 / 12))
        held += low <= 0.5 <= high
        without = query.population_interval(outcome, 0.95)
        narrower += high - low < 0.75 * (without[1] - without[0])
    assert held / runs >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs)
    assert narrower == runs
    release = sf.mean(np.linspace(0, 1, 500), bounds=(0, 1), epsilon=1, nulls="lower")
    assert release.population_interval(0.9, scenario=Assumed(0.01)) != release.population_interval(0.9)
    with pytest.raises(InvalidParameter, match="scenario must be"):
        release.population_interval(0.9, scenario="normal")


# --- what the spread costs ------------------------------------------------------------------------


SHARES = tuple(Fraction(*pair) for pair in ((1, 100), (1, 5), (33, 100), (2, 5), (2, 3), (99, 100)))


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("relation", [PUBLIC, DROPPED, ADDED], ids="-".join)
@pytest.mark.parametrize("budget", [PureDP(1), PureDP(0.01), ZCDP(0.1), ApproxDP(1, 1e-6)], ids=str)
@pytest.mark.parametrize("noise", ["auto", "gaussian"])
def test_the_whole_budget_is_charged_and_the_mean_loses_at_most_the_share(
    share: Fraction, relation: Any, budget: Any, noise: Any
) -> None:
    if isinstance(budget, PureDP) and noise == "gaussian":
        return
    query = query_of(Mean, budget, relation, 50, bounds=(0, 1), interval_share=share, noise=noise)
    plain = replace(query, interval_share=0)
    assert query.cost == plain.cost
    if isinstance(query.cost, PureDP):
        assert query.event.pure_epsilon == budget.epsilon
    if isinstance(budget, ZCDP):
        assert query.event.rho == budget.rho
    left = 1 - share
    less = (
        ApproxDP(budget.epsilon * left, budget.delta * left)
        if isinstance(budget, ApproxDP)
        else type(budget)(left * (budget.rho if isinstance(budget, ZCDP) else budget.epsilon))
    )
    smaller = replace(plain, budget=less)
    scales = [each.mechanism.noise.variance * float(each.lattice.step) ** 2 for each in (query, smaller)]
    assert scales[0] <= scales[1] * (1 + 1e-5)


def joint_loss(first: Fraction, second: Fraction, gaussian: bool, substitution: bool) -> Fraction:
    """The largest cost of one changed record, over a grid of places, by exact fractions."""
    places, worst = [Fraction(i, 24) for i in range(25)], Fraction(0)
    pairs: Any = itertools.combinations(places, 2) if substitution else ((place, None) for place in places)
    for one, other in pairs:
        inner = 4 * one * (1 - one) - (0 if other is None else 4 * other * (1 - other))
        if other is not None:
            moved = (one - other) ** 2 if gaussian else abs(one - other)
        else:
            moved = one**2 + (1 - one) ** 2 if gaussian else Fraction(1)
        worst = max(worst, first * moved + second * (inner**2 if gaussian else abs(inner)))
    return worst


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("substitution", [True, False])
def test_sums_and_products_together_cost_all_of_it_and_no_more(
    share: Fraction, gaussian: bool, substitution: bool
) -> None:
    first, second = divided(share, substitution=substitution, gaussian=gaussian)
    assert first >= 1 - share
    assert Fraction(995, 1000) < joint_loss(first, second, gaussian, substitution) <= 1
    # More of either would cost more than is charged, somewhere.
    more = Fraction(101, 100)
    assert joint_loss(first * more, second * more, gaussian, substitution) > 1


RULES = [*itertools.product(["substitution", "add-remove"], ["drop", "lower", "upper"])]


@pytest.mark.parametrize("rule", RULES, ids="-".join)
@pytest.mark.parametrize("budget", [PureDP(1), PureDP(0.02), ZCDP(0.1)], ids=str)
@pytest.mark.parametrize("share", [Fraction(1, 5), Fraction(1, 3)], ids=str)
def test_no_small_neighbours_lose_more_than_the_budget(rule: Any, budget: Budget, share: Fraction) -> None:
    worst = audited(rule, budget, share)
    assert worst.loss.holds
    assert worst.loss.tightness >= (0.99 if isinstance(budget, PureDP) else 0.98)


def audited(rule: Any, budget: Budget, share: Fraction = Fraction(1, 3)) -> Any:
    query = query_of(Mean, budget, rule, 2, bounds=(-1, 3), interval_share=share)
    return worst_case(query, size=2, cells=5)


def whole_budget_for_each(share: Fraction, *, substitution: bool, gaussian: bool) -> Any:
    return Fraction(1), Fraction(1)


def products_uncounted(share: Fraction, *, substitution: bool, gaussian: bool) -> Any:
    return Fraction(1), share


def free_under_add_remove_too(share: Fraction, *, substitution: bool, gaussian: bool) -> Any:
    return divided(share, substitution=True, gaussian=gaussian)


MUTANTS = {
    "the share is charged, and the noise made for the whole budget": whole_budget_for_each,
    "products are not counted in the cost": products_uncounted,
    "what is free under substitution is taken for free": free_under_add_remove_too,
}


@pytest.mark.parametrize("defect", MUTANTS.values(), ids=MUTANTS)
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1)], ids=str)
def test_a_wrong_division_of_the_budget_is_caught(defect: Any, budget: Budget) -> None:
    share = Fraction(2, 3)
    with patch.object(mean_spread, "divided", defect):
        found = [audited(rule, budget, share) for rule in (PUBLIC, ADDED)]
    assert any(worst.loss.verdict == "VIOLATED" for worst in found)


def test_a_narrower_range_of_the_products_is_caught() -> None:
    calibrated = mean_spread.calibrated

    def mutated(budget: Any, sensitivity: Any, width: int, *others: Any) -> Any:
        return calibrated(budget, sensitivity, width // 2, *others)

    with patch("sfumato.statistics.mean.calibrated", mutated):
        assert audited(ADDED, PureDP(1)).loss.verdict == "VIOLATED"
    assert audited(ADDED, PureDP(1)).loss.holds


# --- how it is asked ------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", [PUBLIC, DROPPED, ADDED], ids="-".join)
def test_the_products_are_those_of_the_lattice(relation: Any) -> None:
    values = np.array([-2.0, 0.3, 1.1, 2.9, 99.0, np.nan])
    query = query_of(Mean, PureDP(1), relation, 6, bounds=(-1, 3), interval_share=TENTH)
    lattice = query.lattice
    kept = values[~np.isnan(values)] if relation[1] == "drop" else np.where(np.isnan(values), -1, values)
    points = [int(j) for j in lattice.round(kept)]
    found = centre(query.law(query.look(admit(values))))
    assert found[-1] == sum((j - lattice.low) * (lattice.high - j) for j in points)
    plain = replace(query, interval_share=0)
    assert query.value(found) == pytest.approx(plain.value(centre(plain.law(plain.look(admit(values))))))


@pytest.mark.parametrize("reach", [2**17, 2**18, 2**18 + 1, 2**21, 2**36 - 1])
def test_squares_of_large_points_are_added_exactly(reach: int) -> None:
    points = np.random.default_rng(1).integers(-reach, reach, 2**16, endpoint=True)
    points[:2] = -reach, reach
    assert squared(points.astype(np.float64), reach) == sum(int(j) ** 2 for j in points)
    full = np.full(2**16, -reach)
    assert squared(full.astype(np.float64), reach) == 2**16 * reach**2


def test_auto_is_the_share_that_is_written_and_survives_a_file() -> None:
    release = sf.mean(np.arange(50) / 50, bounds=(0, 1), epsilon=1, interval_share="auto")
    assert release.query.interval_share == AUTO
    again = sf.read_release(release.to_json())
    assert again == release
    assert again.population_interval(0.9) == release.population_interval(0.9)
    assert any("central limit theorem" in note for note in release.notes)
    assert "products" in release.method
    stored = sf.mean([0.5], bounds=(0, 1), epsilon=1).to_dict()
    del stored["parameters"]["interval_share"]
    assert sf.read_release(stored).query.interval_share == 0


@pytest.mark.parametrize("share", [-0.1, 0.001, 0.995, 1, 2, "all", True, None, float("nan")])
def test_a_share_out_of_range_is_refused(share: Any) -> None:
    with pytest.raises(InvalidParameter, match="interval_share must be"):
        Mean(budget=PureDP(1), bounds=(0, 1), interval_share=share)


def test_the_noise_is_of_the_kind_that_the_mean_would_get_alone() -> None:
    for budget, kind in ((ApproxDP(1, 1e-6), LaplaceMechanism), (ApproxDP(1, 0.2), GaussianMechanism)):
        for share in (0, TENTH):
            query = query_of(Mean, budget, PUBLIC, 9, bounds=(0, 1), interval_share=share)
            assert isinstance(query.mechanism, kind)
    query = query_of(Mean, PureDP(1), PUBLIC, 9, bounds=(0, 1))
    assert query.spread_mechanism is None
