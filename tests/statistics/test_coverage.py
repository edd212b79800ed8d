"""Intervals hold the truth as often as they promise: exactly where laws can be enumerated, else by draws."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.statistics.cases import BOUNDS, HIGH, KINDS, LOW, Kind, centre, outcomes

from sfumato.data.admission import admit
from sfumato.laws import SeededBits
from sfumato.privacy import ZCDP, ApproxDP, Budget, PureDP
from sfumato.statistics import Count, Histogram, Mean, Proportion, Sum, Variance

KIND = {kind.id: kind for kind in KINDS}
DRAWS = 700
# Standard errors that an empirical coverage may be off by: one false alarm in 30 000 tests of one side.
TOLERANCE = 4.0

PUBLIC = (("substitution", "lower"), ("substitution", "upper"))
PRIVATE = (("substitution", "drop"), ("add-remove", "drop"), ("add-remove", "upper"))
BUDGETS: list[tuple[Budget, str]] = [
    *((PureDP(epsilon), "laplace") for epsilon in (0.01, 1, 200, 1e6)),
    *((ApproxDP(epsilon, 1e-6), "gaussian") for epsilon in (0.01, 1, 200)),
    *((ZCDP(epsilon**2 / 2), "gaussian") for epsilon in (0.01, 1, 200)),
]

_spread = np.random.default_rng(1).uniform(-4, 12, 900)
_holes = _spread.copy()
_holes[::7] = np.nan
DATA: dict[str, np.ndarray] = {
    "spread": _spread,
    "with nulls": _holes,
    "all at the lower bound": np.full(300, LOW),
    "all at the upper bound": np.full(300, HIGH),
    "half at each end": np.repeat([LOW, HIGH], 40),
    "one row": np.array([3.3]),
    "three rows": np.array([0.1, 0.2, 7.7]),
}


def relations(*some: tuple[str, str]) -> Any:
    return pytest.mark.parametrize(("neighbours", "nulls"), some)


every_budget = pytest.mark.parametrize(("budget", "noise"), BUDGETS, ids=str)
every_data = pytest.mark.parametrize("data", DATA)


def asked(
    kind: Kind, budget: Budget, neighbours: str, nulls: str, noise: str, values: Any
) -> tuple[Any, Any]:
    query = kind.query(budget, neighbours, nulls, noise, len(values))
    return query, query.law(query.look(admit(values)))


def covers(query: Any, outcome: tuple[int, ...], confidence: float, truth: float) -> bool:
    low, high = query.interval(outcome, confidence)
    # NumPy's truth has its own rounding, far below any step of a lattice.
    slack = 1e-13 * (abs(truth) + 1)
    return bool(low - slack <= truth <= high + slack)


def reached(query: Any, start: int, truth: float, confidence: float, side: int) -> int:
    """The farthest distance d for which the interval around `start + side * d` still holds the truth."""

    def holds(distance: int) -> bool:
        return covers(query, (start + side * distance,), confidence, truth)

    assert holds(0)
    high = 1
    while holds(high):
        if high > 2**60:
            return high  # the whole range is inside whatever the outcome
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@relations(*PUBLIC, *PRIVATE)
@every_budget
@every_data
def test_the_coverage_of_a_sum_is_exact(
    neighbours: str, nulls: str, budget: Budget, noise: str, data: str
) -> None:
    values = DATA[data]
    query, law = asked(KIND["sum"], budget, neighbours, nulls, noise, values)
    truth = KIND["sum"].exact(values, nulls)
    if neighbours == "add-remove":
        # Where the number of rows is private the promise is about the points that the values are rounded to.
        truth = float(query.lattice.step * centre(law)[0])
    noise_law, (start,) = query.mechanism.noise, centre(law)
    for confidence in (0.5, 0.95, 0.999):
        up, down = (reached(query, start, truth, confidence, side) for side in (1, -1))
        coverage = 1 - float(noise_law.sf(up)) - float(noise_law.sf(down))
        assert coverage >= confidence - 1e-9
        at_an_end = query.size_is_public and data.startswith(("all", "half", "one", "three"))
        if not at_an_end and budget != PureDP(1e6):
            assert coverage <= confidence + 1e-3


@relations(*PUBLIC)
@every_budget
@every_data
def test_the_coverage_of_a_mean_with_a_public_size_is_exact(
    neighbours: str, nulls: str, budget: Budget, noise: str, data: str
) -> None:
    values = DATA[data]
    query, law = asked(KIND["mean"], budget, neighbours, nulls, noise, values)
    truth, (start,) = KIND["mean"].exact(values, nulls), centre(law)
    noise_law = query.mechanism.noise
    for confidence in (0.5, 0.95, 0.999):
        up, down = (reached(query, start, truth, confidence, side) for side in (1, -1))
        coverage = 1 - float(noise_law.sf(up)) - float(noise_law.sf(down))
        assert coverage >= confidence - 1e-9
        # At a bound one side of the noise never leaves the range: half of the failures are gone.
        at_an_end = data.startswith("all") or data == "one row"
        most = 1 - (1 - confidence) / 2 if at_an_end else confidence
        if budget != PureDP(1e6):  # there the rounding of the rows is as wide as the noise
            assert coverage <= most + 1e-3


def support(query: Any, law: Any) -> np.ndarray:
    """The outcomes of a count, all but a part of probability 1e-9."""
    (start,) = centre(law)
    radius = query.mechanism.noise.radius(1 - 1e-9)
    found = np.arange(max(start - radius, 0), start + radius + 1)
    return found[np.isfinite(law.logpmf(found))]


@pytest.mark.parametrize("name", ["count", "proportion"])
@every_budget
@every_data
def test_the_coverage_of_a_count_and_of_a_public_share_is_that_of_the_noise(
    name: str, budget: Budget, noise: str, data: str
) -> None:
    values = DATA[data]
    for neighbours, nulls in PUBLIC if name == "proportion" else (*PUBLIC, *PRIVATE):
        query, law = asked(KIND[name], budget, neighbours, nulls, noise, values)
        truth, found = KIND[name].exact(values, nulls), support(query, law)
        chances = np.exp(law.logpmf(found))
        assert chances.sum() == pytest.approx(1, abs=1e-8)
        for confidence in (0.5, 0.95):
            hit = np.array([covers(query, (int(k),), confidence, truth) for k in found])
            coverage = float(chances[hit].sum())
            assert coverage >= confidence - 1e-8
            radius = query.mechanism.noise.radius(confidence)
            (start,) = centre(law)
            if radius < start < (math.inf if query.rows is None else query.rows) - radius:
                # Away from the ends nothing but the radius, rounded up to an integer, is spent.
                assert coverage == pytest.approx(1 - 2 * float(query.mechanism.noise.sf(radius)), abs=1e-8)


@relations(("substitution", "drop"), ("add-remove", "drop"))
@pytest.mark.parametrize(
    ("epsilon", "noise"), [(1, "laplace"), (0.4, "laplace"), (1, "gaussian"), (50, "auto")]
)
@pytest.mark.parametrize(("matches", "others"), [(0, 9), (9, 0), (1, 0), (4, 5), (1, 30)])
def test_the_coverage_of_a_share_with_a_private_size_is_at_least_promised(
    neighbours: str, nulls: str, epsilon: float, noise: str, matches: int, others: int
) -> None:
    budget = ApproxDP(epsilon, 1e-2) if noise == "gaussian" else PureDP(epsilon)
    values = np.repeat([1.0, 9.0], (matches, others))
    query, law = asked(KIND["proportion"], budget, neighbours, nulls, noise, values)
    truth = matches / (matches + others)
    radius = query.mechanism.noise.radius(1 - 1e-4)
    sides = [np.arange(max(count - radius, 0), count + radius + 1) for count in (matches, others)]
    chances = [np.exp(part.logpmf(side)) for part, side in zip(law.parts, sides, strict=True)]
    coverage = sum(
        chances[0][i] * chances[1][j]
        for i, first in enumerate(sides[0])
        for j, second in enumerate(sides[1])
        if covers(query, (int(first), int(second)), 0.9, truth)
    )
    assert coverage >= 0.9 - 2e-4


def empirical(query: Any, law: Any, truth: float, confidence: float, seed: int, draws: int = DRAWS) -> float:
    drawn = outcomes(law, SeededBits(seed), draws)
    return sum(covers(query, outcome, confidence, truth) for outcome in drawn) / draws


def least(confidence: float, draws: int = DRAWS) -> float:
    return confidence - TOLERANCE * math.sqrt(confidence * (1 - confidence) / draws)


@relations(*PRIVATE)
@every_budget
@every_data
def test_a_mean_with_a_private_size_covers_and_is_not_wasteful(
    neighbours: str, nulls: str, budget: Budget, noise: str, data: str
) -> None:
    values = DATA[data]
    query, law = asked(KIND["mean"], budget, neighbours, nulls, noise, values)
    draws = 250
    coverage = empirical(query, law, KIND["mean"].exact(values, nulls), 0.9, seed=21, draws=draws)
    assert coverage >= least(0.9, draws)
    if data in ("spread", "with nulls") and budget in (PureDP(1), ZCDP(0.5)):
        coverage = empirical(query, law, KIND["mean"].exact(values, nulls), 0.9, seed=22, draws=3000)
        assert least(0.9, 3000) <= coverage <= 0.93


@relations(PUBLIC[0], *PRIVATE[:2])
@every_budget
@every_data
def test_a_variance_covers(neighbours: str, nulls: str, budget: Budget, noise: str, data: str) -> None:
    values = DATA[data]
    query, law = asked(KIND["variance"], budget, neighbours, nulls, noise, values)
    truth = KIND["variance"].exact(values, nulls)
    coverage = empirical(query, law, truth, 0.9, seed=23, draws=250)
    assert coverage >= least(0.9, 250)


@relations(PUBLIC[0], *PRIVATE[:2])
@every_budget
def test_the_sums_behind_a_variance_are_all_in_their_ranges_together(
    neighbours: str, nulls: str, budget: Budget, noise: str
) -> None:
    query = KIND["variance"].query(budget, neighbours, nulls, noise, rows=100)
    for confidence in (0.5, 0.95):
        radii = query._radii(confidence)
        together = math.prod(
            1 - 2 * float(part.noise.sf(radius)) for part, radius in zip(query.parts, radii, strict=True)
        )
        # At an epsilon of a million the noise on the sum of values is no wider than a lattice step.
        assert confidence <= together <= confidence + (0.1 if budget == PureDP(1e6) else 1e-3)


@relations(PUBLIC[0], *PRIVATE[:2])
@pytest.mark.parametrize("budget", [PureDP(0.01), PureDP(1), ZCDP(0.5), PureDP(50)], ids=str)
@pytest.mark.parametrize("name", ["histogram of bins", "histogram of two bins"])
def test_each_cell_of_a_histogram_covers(neighbours: str, nulls: str, budget: Budget, name: str) -> None:
    values = DATA["with nulls"]
    query, law = asked(KIND[name], budget, neighbours, nulls, "auto", values)
    truth = KIND[name].exact(values, nulls)
    hits = np.zeros(query.cells)
    for outcome in outcomes(law, SeededBits(24), DRAWS):
        low, high = query.interval(outcome, 0.9)
        hits += (low <= truth) & (truth <= high)
    assert (hits / DRAWS >= least(0.9)).all()
    # Only the radius of an integer, an end of the range and the widening to the released counts are spared.
    if budget == PureDP(0.01):
        assert (hits / DRAWS <= 0.97).all()


@pytest.mark.parametrize("name", ["mean", "variance", "proportion"])
@relations(PUBLIC[0], *PRIVATE[:2])
@pytest.mark.parametrize("budget", [PureDP(0.1), PureDP(2), ZCDP(0.5)], ids=str)
def test_the_error_that_is_announced_holds(name: str, neighbours: str, nulls: str, budget: Budget) -> None:
    values = DATA["with nulls"]
    query, law = asked(KIND[name], budget, neighbours, nulls, "auto", values)
    truth = KIND[name].exact(values, nulls)
    size = len(values) if query.size_is_public else int(np.isfinite(values).sum())
    for confidence in (0.5, 0.95):
        error = query.error(size, confidence)
        drawn = outcomes(law, SeededBits(25), DRAWS)
        held = sum(abs(query.value(outcome) - truth) <= error + 1e-12 for outcome in drawn) / DRAWS
        assert held >= least(confidence)


def test_the_error_of_a_share_with_a_private_size_holds_at_every_share() -> None:
    # A mixture of two integer noises need not be an integer, so the radius of one is not enough.
    query = Proportion(budget=PureDP(0.5), neighbours="add-remove", nulls="drop", between=(0, 5))
    law = query.mechanism.noise
    found = np.arange(-60, 61)
    chances = np.exp(law.logpmf(found))
    for confidence in (0.1, 0.5, 0.8, 0.95, 0.99):
        reach = query.error(10**6, confidence) * 10**6 + 1e-6
        for share in np.linspace(0, 1, 21):
            mixed = np.abs((1 - share) * found[:, None] - share * found[None, :])
            assert np.outer(chances, chances)[mixed <= reach].sum() >= confidence


def test_a_variance_is_within_its_error_at_every_corner_of_the_noise() -> None:
    chosen = {"neighbours": "add-remove", "nulls": "drop", "bounds": BOUNDS}
    query = Variance(budget=PureDP(1), **chosen)
    (radius, *_), reach = query._radii(0.95), query.lattice.high
    for size in (30, 100, 1000):
        error = query.error(size, 0.95)
        for share in (0.0, 0.2, 0.5):
            values = np.where(np.arange(size) < share * size, LOW, np.where(np.arange(size) % 2, HIGH, 3.8))
            start, truth = centre(query.law(query.look(admit(values)))), values.var()
            for signs in itertools.product((-1, 0, 1), repeat=3):
                outcome = tuple(part + sign * radius for part, sign in zip(start, signs, strict=True))
                assert abs(query.value(outcome) - truth) <= error
                low, high = query.interval(outcome, 0.95)
                assert low <= truth <= high
        # And the error is of the order of the noise, nine sums over the size.
        assert error <= 12 * radius / (4 * reach**2 * size) * (HIGH - LOW) ** 2 / 4 + 1e-3 or size == 30


@pytest.mark.parametrize("name", ["mean", "variance"])
@relations(*PRIVATE[:2])
@pytest.mark.parametrize("budget", [PureDP(0.1), PureDP(1), ZCDP(0.5)], ids=str)
def test_the_least_plausible_size_is_rarely_too_large(
    name: str, neighbours: str, nulls: str, budget: Budget
) -> None:
    values = DATA["spread"]
    query, law = asked(KIND[name], budget, neighbours, nulls, "auto", values)
    found = [query._least_size(outcome, 0.8) for outcome in outcomes(law, SeededBits(27), DRAWS)]
    assert np.mean(np.array(found) <= len(values)) >= least(0.8)
    assert min(found) >= 0
    if budget != PureDP(0.1):
        assert np.mean(found) >= 0.9 * len(values)
    assert query._least_size((-5,) * len(centre(law)), 0.8) == 0


@pytest.mark.parametrize("rows", [10, 100_000])
def test_the_error_of_a_sum_with_a_private_size_includes_the_rounding_of_its_rows(rows: int) -> None:
    query = Sum(budget=PureDP(1e6), neighbours="add-remove", nulls="drop", bounds=(0, 1))
    values = np.full(rows, 0.5 + float(query.lattice.step) / 2)
    start = centre(query.law(query.look(admit(values))))
    assert 0 < abs(query.value(start) - values.sum()) <= query.error(rows, 1e-6)


@relations(*PRIVATE[:2])
@pytest.mark.parametrize("name", ["count of all", "count", "sum", "mean", "variance", "proportion"])
def test_no_rows_at_all_are_covered_when_their_number_is_private(
    neighbours: str, nulls: str, name: str
) -> None:
    kind = KIND[name]
    query, law = asked(kind, PureDP(1), neighbours, nulls, "auto", np.array([]))
    misses = 0
    for outcome in outcomes(law, SeededBits(26), DRAWS):
        low, high = query.interval(outcome, 0.9)
        assert low <= query.value(outcome) <= high
        if name in ("count of all", "count", "sum"):
            misses += not low <= 0 <= high
        if name in ("mean", "variance", "proportion"):
            ends = {"mean": BOUNDS, "proportion": (0, 1)}.get(name, (0, ((HIGH - LOW) / 2) ** 2))
            assert ends[0] <= low <= high <= ends[1] + 1e-12
            population = query.population_interval(outcome, 0.9)
            assert ends[0] - 1e-12 <= population[0] <= low <= high <= population[1] <= ends[1] + 1e-12
    assert misses / DRAWS <= 1 - least(0.9)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_values_halfway_between_lattice_points_are_covered_without_noise(rows: int) -> None:
    # The worst case of rounding, and the least noise: every value is half a step from its point.
    for make in (Sum, Mean):
        query = make(budget=PureDP(1e6), neighbours="substitution", nulls="lower", bounds=(0, 1), rows=rows)
        step = float(query.lattice.step)
        values = np.full(rows, 0.5 + step / 2)
        truth = values.sum() if make is Sum else values.mean()
        start = centre(query.law(query.look(admit(values))))
        assert query.value(start) != truth
        low, high = query.interval(start, 1e-6)
        assert low <= truth <= high


def test_the_rounding_of_a_variance_is_inside_at_its_worst() -> None:
    # Bounds half a step outside the last lattice points: each value is moved inwards by half a step.
    query = Variance(
        budget=PureDP(1e-10), neighbours="substitution", nulls="lower", bounds=(-4.5, 4.5), rows=2
    )
    assert (query.lattice.step, query.lattice.high) == (1, 4)
    values = np.array([-4.5, 4.5])
    start = centre(query.law(query.look(admit(values))))
    moments = query._moments(tuple((float(part), float(part)) for part in start))
    low, high = query._variance(moments)
    assert low <= values.var() <= high
    # Without the square of half a step it would not be: 16 + 4 is below 20.25.
    assert values.var() > 16 * (1 + 1 / 4)


def test_the_interval_of_a_sum_far_from_zero_is_rounded_outwards() -> None:
    base, width = 2**60, 2**21
    bounds = (base, base + width)
    query = Sum(budget=PureDP(1e6), neighbours="substitution", nulls="lower", bounds=bounds, rows=5)
    low, high = query.interval((query.lattice.high * 2,), 0.95)
    # Float64 has steps of 1024 here; the sum lies strictly between two of them.
    assert int(low) <= 5 * base + 2 * width + 2 <= int(high)
    assert low < high


def test_the_variance_of_the_smallest_bounds_does_not_vanish() -> None:
    low, high = 2.0**-399, 2.0**-399 * (1 + 2.0**-39)
    query = Variance(
        budget=PureDP(1e3),
        neighbours="substitution",
        nulls="lower",
        bounds=(Fraction(low), Fraction(high)),
        rows=100,
    )
    law = query.law(query.look(admit(np.array([low, high] * 50))))
    outcome = tuple(part.center for part in law.parts)
    assert query.value(outcome) > 0
    assert (
        query.interval(outcome, 0.95)[0] <= Fraction(high - low) ** 2 / 4 <= query.interval(outcome, 0.95)[1]
    )
    assert query.population_interval(outcome, 0.95)[1] > 0


# --- populations -------------------------------------------------------------------------------


Draw = Callable[[np.random.Generator, int], np.ndarray]


def population(name: str, draw: Draw, mean: float, variance: float) -> Any:
    """A population of values in [0, 1], moved to the bounds, with its mean and variance."""
    width = HIGH - LOW

    def moved(generator: np.random.Generator, size: int) -> np.ndarray:
        return LOW + width * draw(generator, size)

    return pytest.param(moved, LOW + width * mean, width**2 * variance, id=name)


POPULATIONS = [
    population("uniform", lambda rng, size: rng.uniform(size=size), 1 / 2, 1 / 12),
    population("beta", lambda rng, size: rng.beta(2, 5, size=size), 2 / 7, 10 / (49 * 8)),
    population("even coin", lambda rng, size: 1.0 * (rng.uniform(size=size) < 0.5), 0.5, 0.25),
    population("rare event", lambda rng, size: 1.0 * (rng.uniform(size=size) < 0.01), 0.01, 0.0099),
    population("skewed", lambda rng, size: rng.uniform(size=size) ** 9, 1 / 10, 1 / 19 - 1 / 100),
]


@pytest.mark.parametrize(("draw", "mean", "variance"), POPULATIONS)
@relations(PUBLIC[0], PRIVATE[1])
@pytest.mark.parametrize("size", [2, 80])
@pytest.mark.parametrize("name", ["mean", "variance", "proportion"])
def test_the_population_is_covered(
    draw: Draw, mean: float, variance: float, neighbours: str, nulls: str, size: int, name: str
) -> None:
    sets, bits, generator = 150, SeededBits(31), np.random.default_rng(32)
    if name == "proportion":
        truth = float(KIND[name].exact(draw(generator, 400_000), nulls))
    else:
        truth = {"mean": mean, "variance": variance}[name]
    hits = 0
    for _ in range(sets):
        query, law = asked(KIND[name], PureDP(5), neighbours, nulls, "auto", draw(generator, size))
        (outcome,) = outcomes(law, bits, 1)
        low, high = query.population_interval(outcome, 0.8)
        hits += low <= truth <= high
    assert hits / sets >= least(0.8, sets)


@pytest.mark.parametrize("chance", [0.0, 0.003, 0.1, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("epsilon", [0.2, 1, 1e6])
def test_the_population_share_is_covered_exactly(chance: float, epsilon: float) -> None:
    rows = 25
    chosen = {"neighbours": "substitution", "nulls": "lower", "rows": rows, "between": (0, 5)}
    query = Proportion(budget=PureDP(epsilon), **chosen)
    found = np.arange(rows + 1)
    intervals = [query.population_interval((int(k),), 0.9) for k in found]
    covered = np.array([low <= chance <= high for low, high in intervals])
    coverage = 0.0
    for matches in found:
        values = np.repeat([1.0, 9.0], (matches, rows - matches))
        law = query.law(query.look(admit(values)))
        coverage += binom.pmf(matches, rows, chance) * float(np.exp(law.logpmf(found))[covered].sum())
    assert coverage >= 0.9


def test_statistics_without_a_population_are_not_forgotten() -> None:
    assert {kind.make for kind in KINDS} == {Count, Sum, Mean, Variance, Proportion, Histogram}
