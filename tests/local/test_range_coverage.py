"""Means, variances and quantiles through ranges are inside their intervals, whatever the numbers are."""

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.local import Ranges, Tally, estimate
from sfumato.local.intervals import deviate

BOUNDS = (0, 8000)
ORDERS = (0.25, 0.5, 0.75)
RUNS = 250
# The least that 95 % may come out as over the runs of one population, by four standard errors.
LEAST_OF_ONE = 0.95 - 4 * np.sqrt(0.95 * 0.05 / RUNS)
AT = (np.arange(20_000) + 0.5) / 20_000
INCOMES = 2500 * np.exp(0.4 * norm.ppf(AT))
POPULATIONS = {
    "incomes": INCOMES,
    "rounded to 100": np.round(INCOMES / 100) * 100,
    "rounded to 500": np.round(INCOMES / 500) * 500,
    "half rounded to 500": np.where(np.arange(20_000) % 2, np.round(INCOMES / 500) * 500, INCOMES),
    "skewed": np.minimum(-np.log(1 - AT) * 800, 8000),
    "30 % zeros": np.sort(np.where(np.arange(20_000) % 10 < 3, 0.0, INCOMES)),
    "30 % at the upper bound": np.sort(np.where(np.arange(20_000) % 10 < 3, 8000.0, INCOMES)),
    "one number": np.full(10, 1234.5),
    "two numbers": np.array([0.0] * 7 + [8000.0] * 3),
}
SURVEYS = [
    (2000, {"epsilon": 1, "respondents": 2000}),
    (2000, {"epsilon": 2, "steps": 12, "method": "direct"}),
    (20_000, {"epsilon": 2, "respondents": 20_000}),
    (100_000, {"epsilon": 2, "respondents": 100_000}),
]


def place_shares(design, values):
    """The chance of each place of a scale, for numbers drawn from these."""
    at = np.clip(values / BOUNDS[1] * design.steps, 0, design.steps)
    below = np.minimum(np.floor(at).astype(int), design.steps - 1)
    part = at - below
    if not design.dither:
        return np.bincount(below, minlength=design.steps) / len(values)
    up, down = (np.bincount(b, w, design.steps + 1) for b, w in ((below + 1, part), (below, 1 - part)))
    return (up + down) / len(values)


def surveys(design, values, size, seed, runs=RUNS):
    """The estimates of many surveys of random respondents, drawn from the law of the counts."""
    generator = np.random.default_rng(seed)
    p, q = map(float, design.support)
    shares = place_shares(design, values)
    if design.exclusive:
        chances = q + (p - q) * shares
        counts = generator.multinomial(size, chances / chances.sum(), size=runs)
    else:
        own = generator.multinomial(size, shares, size=runs)
        counts = generator.binomial(own, p) + generator.binomial(size - own, q)
    return [estimate(design, Tally(counts=row, size=size)) for row in counts.tolist()]


def truths_of(values):
    ordered = np.sort(values)
    places = [int(np.ceil(order * len(values) - 1e-9)) - 1 for order in ORDERS]
    return [values.mean(), values.var(), *ordered[places]]


def covered(figures, truths):
    return [f.low - 1e-6 <= truth <= f.high + 1e-6 for f, truth in zip(figures, truths, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "options"), SURVEYS, ids=lambda part: str(part))
def test_figures_are_inside_their_intervals_for_any_population(size, options):
    design = Ranges.of_epsilon(bounds=BOUNDS, **options)
    means, variances = [], []
    for seed, (name, values) in enumerate(POPULATIONS.items()):
        truths = truths_of(values)
        hits = [covered(found.figures(), truths) for found in surveys(design, values, size, seed)]
        mean, variance, *quantiles = np.mean(hits, axis=0)
        assert min(quantiles) >= 0.93, (name, quantiles)
        assert min(mean, variance) >= LEAST_OF_ONE, (name, mean, variance)
        means.append(mean)
        variances.append(variance)
    assert 0.93 <= np.mean(means) <= 0.97, means
    assert np.mean(variances) >= 0.93, variances


@pytest.mark.slow
@pytest.mark.parametrize("size", [2000, 20_000])
def test_quantiles_of_bins_are_inside_their_intervals_for_any_population(size):
    design = Ranges.of_epsilon(bounds=BOUNDS, epsilon=2, respondents=size, dither=False)
    for seed, (name, values) in enumerate(POPULATIONS.items()):
        truths = truths_of(values)[2:]
        hits = [covered(found.figures(), truths) for found in surveys(design, values, size, seed)]
        assert np.mean(hits, axis=0).min() >= 0.93, name


def test_mutant_smooth_intervals_miss_the_quantiles_of_rounded_numbers():
    design = Ranges.of_epsilon(bounds=BOUNDS, epsilon=2, respondents=20_000)
    values = POPULATIONS["rounded to 500"]
    truths = truths_of(values)[2:]
    found = surveys(design, values, 20_000, seed=1, runs=100)
    hits = np.mean([covered(f.quantiles(ORDERS, smooth=True), truths) for f in found], axis=0)
    assert hits.min() < 0.6
    even = [
        covered(f.quantiles(ORDERS, smooth=True), truths_of(INCOMES)[2:])
        for f in surveys(design, INCOMES, 20_000, 2)
    ]
    assert np.mean(even, axis=0).min() >= LEAST_OF_ONE  # where their assumption holds they do


def test_mutant_a_variance_that_is_not_widened_misses_numbers_on_points():
    # Numbers on points, then in the middle of steps, and answers that are nearly the truth.
    design = Ranges.of_epsilon(bounds=BOUNDS, epsilon=8, steps=4, method="direct")
    for numbers in ([2000, 6000], [1000, 7000], [0, 2000, 6000], [1000, 3000, 7000]):
        values = np.array(numbers, dtype=float)
        found = surveys(design, values, 20_000, seed=3, runs=1000)
        figures = [f.variance() for f in found]
        assert np.mean([f.low <= values.var() <= f.high for f in figures]) >= 0.93
        reach = deviate(0.05)
        narrow = [abs(f.value - values.var()) <= reach * f.standard_error for f in figures]
        assert np.mean(narrow) < 0.1


@pytest.mark.parametrize("method", ["direct", "optimised"])
def test_standard_errors_of_means_are_those_of_many_surveys(method):
    design = Ranges.of_epsilon(bounds=BOUNDS, epsilon=1, steps=8, method=method)
    for size, runs in ((30, 1500), (1000, 1500)):
        found = surveys(design, INCOMES, size, seed=4, runs=runs)
        means = [f.mean() for f in found]
        stated = np.sqrt(np.mean([f.standard_error**2 for f in means]))
        assert stated / np.std([f.value for f in means]) == pytest.approx(1, abs=0.08)
