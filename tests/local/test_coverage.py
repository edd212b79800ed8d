"""Intervals hold the truth as often as they promise: by exact binomial sums, else over 2000 surveys."""

import itertools

import numpy as np
import pytest
from scipy.stats import beta, binom
from tests.local.designs import COLOURS

from sfumato.local import (
    DirectEncoding,
    ForcedResponse,
    OneBitMean,
    PermanentUnary,
    Tally,
    TwoSamples,
    UnaryEncoding,
    UnrelatedQuestion,
    Warner,
    estimate,
)
from sfumato.local.intervals import exact_limits, mapped, respondents_interval, wilson

RUNS = 2000
# Four standard errors of 2000 runs around 95 %.
LEAST, MOST = 0.93, 0.97
DESIGNS = {
    "Warner": Warner(keep=0.75),
    "Warner, mirrored": Warner(keep=0.25),
    "Warner of 4": Warner.of_epsilon(4),
    "forced": ForcedResponse(truth=0.6, yes=0.25, no=0.15),
    "unrelated": UnrelatedQuestion(sensitive=0.7, rate=0.3),
    "direct": DirectEncoding.of_epsilon(COLOURS, epsilon=1),
    "optimised": UnaryEncoding.of_epsilon(COLOURS, epsilon=1),
    "symmetric": UnaryEncoding.of_epsilon(COLOURS, epsilon=2, form="symmetric"),
    "permanent": PermanentUnary(categories=COLOURS, permanent=(0.9, 0.1), instant=(0.75, 0.25)),
    "one bit": OneBitMean.of_epsilon(bounds=(0, 1), epsilon=1),
}
SHARES = (0.0, 0.01, 0.05, 0.2, 0.5, 0.9, 1.0)


def exact_coverage(design, share, size, limits):
    """The chance that the mapped interval holds the share: a sum over all counts, no simulation."""
    true, false = map(float, design.support)
    counts = np.arange(size + 1, dtype=float)
    low, high = mapped(limits(counts, size, 0.05), true, false)
    chance = binom.pmf(counts, size, false + (true - false) * share)
    return float(chance[(low <= share + 1e-12) & (share <= high + 1e-12)].sum())


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("size", [5, 50, 400, 3000])
def test_exact_intervals_of_shares_hold_at_least_as_often_as_promised(name, size):
    for share in SHARES:
        assert exact_coverage(DESIGNS[name], share, size, exact_limits) >= 0.95


@pytest.mark.parametrize("name", DESIGNS)
def test_score_intervals_of_shares_hold_about_as_often_as_promised(name):
    for size, share in itertools.product((100, 400, 3000), SHARES):
        covered = exact_coverage(DESIGNS[name], share, size, wilson)
        # At the ends only one side can miss.
        assert covered >= LEAST
        assert covered <= MOST or share <= 0.05 or share >= 0.9


def wald(counts, size, failure):
    reach = 1.959964 * np.sqrt(counts / size * (1 - counts / size) / size)
    return counts / size - reach, counts / size + reach


def test_mutant_a_plain_normal_interval_misses_small_shares():
    design = Warner.of_epsilon(6)
    assert exact_coverage(design, 0.005, 200, wald) < 0.8 < LEAST
    assert exact_coverage(design, 0.005, 200, exact_limits) >= 0.95
    assert exact_coverage(design, 0.005, 200, wilson) >= LEAST


def test_the_estimate_uses_these_intervals():
    for name, design in DESIGNS.items():
        labels = len(design.labels)
        counts = [30] if labels == 1 else [30, 10, 20]
        found = estimate(design, Tally(counts=counts, size=60))
        for method, limits in (("exact", exact_limits), ("wilson", wilson)):
            ends = mapped(limits(np.array(counts, float), 60, 0.05), *map(float, design.support))
            assert np.allclose(found.interval(0.95, method=method), ends), name


@pytest.mark.parametrize("name", ["Warner", "Warner, mirrored", "forced", "optimised"])
def test_intervals_for_the_respondents_themselves_hold_at_least_as_often_as_promised(name):
    true, false = map(float, DESIGNS[name].support)
    size = 24
    ends = np.array([respondents_interval(count, size, true, false, 0.05) for count in range(size + 1)])
    widths, population = ends[:, 1] - ends[:, 0], []
    for yes in range(size + 1):
        law = np.convolve(
            binom.pmf(np.arange(yes + 1), yes, true), binom.pmf(np.arange(size - yes + 1), size - yes, false)
        )
        share = yes / size
        assert law[(ends[:, 0] <= share + 1e-9) & (share <= ends[:, 1] + 1e-9)].sum() >= 0.95
    low, high = mapped(exact_limits(np.arange(size + 1.0), size, 0.05), true, false)
    population = high - low
    assert widths.sum() < population.sum()


@pytest.mark.parametrize("method", ["direct", "optimised"])
def test_all_categories_are_inside_simultaneous_intervals(method):
    design = {"direct": DirectEncoding, "optimised": UnaryEncoding}[method].of_epsilon(
        [str(i) for i in range(8)], epsilon=1
    )
    shares = np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.05, 0, 0])
    together = alone = 0
    for counts in tallies(design, shares, 1500, seed=31):
        found = estimate(design, Tally(counts=counts, size=1500))
        low, high = found.interval(simultaneous=True)
        together += ((low <= shares) & (shares <= high)).all()
        low, high = found.interval()
        alone += ((low <= shares) & (shares <= high)).all()
    assert together / RUNS >= 0.94
    assert alone / RUNS < 0.9  # each by itself is not all at once


def test_intervals_of_two_samples_hold_by_exact_sums():
    design = TwoSamples(sensitive=(0.7, 0.2), rate_between=(0.1, 0.6))
    size = 70
    tallied = [Tally(counts=[count], size=size) for count in range(size + 1)]
    figures = [[estimate(design, (first, second)).figures() for second in tallied] for first in tallied]
    for share, rate in ((0.0, 0.3), (0.02, 0.5), (0.2, 0.3), (0.6, 0.5)):
        laws = []
        for number in (0, 1):
            a, c = map(float, design.sample(number, rate=rate).support)
            laws.append(binom.pmf(np.arange(size + 1), size, c + (a - c) * share))
        chance = np.outer(*laws)
        for place, truth in ((0, share), (1, rate)):
            inside = np.array([[f[place].low <= truth <= f[place].high for f in row] for row in figures])
            assert (chance * inside).sum() >= LEAST


def tallies(design, shares, size, seed):
    """The counts of 2000 surveys of random respondents, drawn from the law of the counts."""
    generator = np.random.default_rng(seed)
    encoding = getattr(design, "encoding", design)
    p, q = map(float, encoding.support)
    if encoding.exclusive:
        counts = generator.multinomial(size, q + (p - q) * np.asarray(shares), size=RUNS)
    else:
        own = generator.multinomial(size, shares, size=RUNS)
        counts = generator.binomial(own, p) + generator.binomial(size - own, q)
    return counts.tolist()


LAW = beta(2, 5)


@pytest.mark.parametrize(("size", "epsilon"), [(100, 1), (1000, 0.5), (5000, 3)])
def test_one_bit_means_are_inside_their_intervals(size, epsilon):
    design = OneBitMean.of_epsilon(bounds=(0, 10), epsilon=epsilon)
    true, false = map(float, design.support)
    truth = 10 * LAW.mean()
    # A bit of a random number rounded at random is a coin of the mean's place between the bounds.
    chance = false + (true - false) * LAW.mean()
    counts = np.random.default_rng(5).binomial(size, chance, size=RUNS)
    hits = 0
    for count in counts.tolist():
        low, high = estimate(design, Tally(counts=[count], size=size)).interval()
        hits += low[0] <= truth <= high[0]
    assert LEAST <= hits / RUNS <= 0.975


def test_one_bit_intervals_cover_the_mean_of_fixed_respondents_too():
    design = OneBitMean.of_epsilon(bounds=(0, 1), epsilon=2)
    true, false = map(float, design.support)
    values = LAW.rvs(40, random_state=9)
    law = np.array([1.0])
    for value in values:
        law = np.convolve(law, [1 - (false + (true - false) * value), false + (true - false) * value])
    low, high = mapped(exact_limits(np.arange(41.0), 40, 0.05), true, false)
    assert law[(low <= values.mean()) & (values.mean() <= high)].sum() >= 0.95


def test_intervals_of_two_small_samples_hold_somewhat_less_often():
    for sensitive, size in itertools.product(((0.7, 0.3), (0.9, 0.1), (0.55, 0.45)), (5, 20)):
        design = TwoSamples(sensitive=sensitive, rate_between=(0.01, 0.99))
        tallied = [Tally(counts=[count], size=size) for count in range(size + 1)]
        figures = [[estimate(design, (first, second)).figures() for second in tallied] for first in tallied]
        for share, rate in itertools.product((0.0, 0.2, 0.5, 1.0), (0.05, 0.3, 0.95)):
            chances = [binom.pmf(np.arange(size + 1), size, p * share + (1 - p) * rate) for p in sensitive]
            for place, truth in ((0, share), (1, rate)):
                inside = [
                    [f[place].low - 1e-9 <= truth <= f[place].high + 1e-9 for f in row] for row in figures
                ]
                assert (np.outer(*chances) * inside).sum() >= 0.91
