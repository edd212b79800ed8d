"""Numbers through ranges: rounding that is exact and private, means without bias, variances and quantiles."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.scripted import ScriptedBits
from tests.local.designs import RANGES, worst_ratio

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.local import OneBitMean, Ranges, Tally, estimate, simulate
from sfumato.local.dithering import binned, dithered
from sfumato.local.planning import covariance
from sfumato.local.ranges import usual_steps

LOW, HIGH = Fraction(-1), Fraction(3)
WORD = 2**64


def rounding_law(value, design):
    """The exact law of the place of a number, from its definition."""
    at = (min(max(Fraction(value), design.lower), design.upper) - design.lower) / design.step
    below = math.floor(at)
    law = {below: 1 - (at - below)}
    if at > below:
        law[below + 1] = at - below
    return law


def places(value, words, steps=4):
    bits = ScriptedBits(words)
    return dithered([value], lower=LOW, upper=HIGH, steps=steps, bits=bits)[0]


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), 0.1, -0.999999, 2.7, 1e-17, Fraction(3) - Fraction(1, 10**30)]
)
def test_the_threshold_of_the_rounding_is_exact_to_the_last_bit(value):
    exact = Fraction(str(value)) if isinstance(value, float) else value
    at = (exact - LOW) / 1
    below, share = math.floor(at), at - math.floor(at)
    edge = math.floor(share * WORD)  # the word that shares its first 64 bits with the probability
    rest = math.floor((share * WORD - edge) * WORD)
    assert places(value, [max(edge - 1, 0), 0]) == below + (edge > 0)
    if edge + 1 < WORD:
        assert places(value, [edge + 1, 0]) == below
    # On the edge the next 64 bits of the same uniform decide.
    if 0 < rest < WORD - 1:
        assert places(value, [edge, rest - 1]) == below + 1
        assert places(value, [edge, rest + 1]) == below


@pytest.mark.parametrize("value", [-1, 0, 1, 2, 3, 3.0, 5, -7, math.inf, -math.inf])
def test_points_of_the_scale_and_numbers_beyond_it_are_never_moved(value):
    expected = min(max(value, -1), 3) + 1
    for word in (0, 1, WORD // 2, WORD - 1):
        assert places(value, [word, 0]) == expected


@pytest.mark.parametrize(
    ("value", "place"),
    [(0, 0), (0.1, 1), (Fraction(1, 10), 1), (0.09999999999999999, 0), (0.2, 2), (0.3, 2), (7, 2), (-1, 0)],
)
def test_a_bin_holds_its_lower_end_exactly(value, place):
    assert binned([value], lower=Fraction(0), upper=Fraction(3, 10), steps=3).tolist() == [place]


def test_rounding_of_many_has_the_right_mean():
    values = np.linspace(-1, 3, 1001)
    draws = np.array(
        [dithered(values, lower=LOW, upper=HIGH, steps=4, bits=SeededBits(i)) for i in range(400)]
    )
    at = values + 1
    error = np.sqrt((at - np.floor(at)) * (np.ceil(at) - at) / 400)
    off = np.abs(draws.mean(axis=0) - at)
    assert (off <= 5 * error + 1e-12).all()
    # Per number the variance is (x - g)(g' - x), on average a sixth of a squared step.
    inflation = (draws - at).var()
    assert inflation == pytest.approx(1 / 6, rel=0.02)


def answer_law(value, design):
    rows = design.matrix()
    places = rounding_law(value, design)
    return [sum(chance * rows[place][a] for place, chance in places.items()) for a in range(len(rows[0]))]


GRID = [Fraction(i, 7) for i in range(-9, 23)]


@pytest.mark.parametrize("design", [RANGES["dithered"], OneBitMean.of_epsilon(bounds=(-1, 3), epsilon=1)])
def test_no_two_numbers_can_be_told_apart_better_than_the_epsilon_says(design):
    if isinstance(design, OneBitMean):
        rows = design.matrix()
        laws = []
        for value in GRID:
            share = min(max((value + 1) / 4, Fraction(0)), Fraction(1))
            laws.append([(1 - share) * no + share * yes for no, yes in zip(*rows, strict=True)])
    else:
        laws = [answer_law(value, design) for value in GRID]
    assert worst_ratio(laws) == design.odds


def test_mutant_dithering_after_the_channel_is_noticed():
    design = RANGES["dithered"]
    rows = design.matrix()

    def dithered_after(value):
        # The channel randomises the step, and the fraction is added in the clear.
        at = (min(max(value, LOW), HIGH) - LOW) / design.step
        below, share = min(math.floor(at), design.steps - 1), at - min(math.floor(at), design.steps - 1)
        law = [Fraction(0)] * (len(rows) + 1)
        for answer, chance in enumerate(rows[below]):
            law[answer] += (1 - share) * chance
            law[answer + 1] += share * chance
        return law

    laws = [dithered_after(value) for value in GRID]
    ratios = [
        left[a] / right[a] if right[a] else math.inf
        for left, right in itertools.permutations(laws, 2)
        for a in range(len(left))
        if left[a]
    ]
    assert max(ratios) > design.odds * 2


@pytest.mark.parametrize("name", ["dithered", "unary ranges"])
def test_the_mean_is_unbiased_for_any_numbers_by_enumeration(name):
    design = RANGES[name]
    rows = design.matrix()
    p, q = design.encoding.support
    count = len(design.labels)
    for value in (Fraction(1, 3), Fraction(-5), Fraction(2, 7), Fraction(9)):
        mean = Fraction(0)
        law = answer_law(value, design)
        answers = range(len(rows[0]))
        for answer in answers:
            if design.encoding.exclusive:
                counts = [int(answer == v) for v in range(count)]
            else:
                counts = [answer >> (count - 1 - v) & 1 for v in range(count)]
            shares = [(c - q) / (p - q) for c in counts]
            excess = (sum(shares) - 1) / count
            points = [design.lower + design.step * v for v in range(count)]
            mean += law[answer] * sum(x * (share - excess) for x, share in zip(points, shares, strict=True))
            found = estimate(design, Tally(counts=counts, size=1)).mean().value
            exact = sum(x * (share - excess) for x, share in zip(points, shares, strict=True))
            assert found == pytest.approx(float(exact))
        assert mean == min(max(value, design.lower), design.upper)


@pytest.mark.parametrize("method", ["direct", "optimised"])
def test_the_variance_of_the_mean_is_that_of_the_formulas(method):
    design = Ranges.of_epsilon(bounds=(0, 10), epsilon=2, steps=8, method=method)
    size = 100_000
    shares = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02, 0.0])
    p, q = map(float, design.encoding.support)
    lam = q + (p - q) * shares
    counts = np.round(lam * size).astype(int)
    counts[0] += (size - counts.sum()) if method == "direct" else 0
    found = estimate(design, Tally(counts=counts.tolist(), size=size)).mean()
    points = np.linspace(0, 10, 9)
    if method == "direct":
        formula = ((points**2 * lam).sum() - (points * lam).sum() ** 2) / (size * (p - q) ** 2)
    else:
        # Around the middle of the scale, because unary shares need not add up to one.
        m = points - points.mean()
        cross = (m * shares).sum() ** 2 - (m**2 * shares**2).sum()
        formula = ((m**2 * lam * (1 - lam)).sum() - (p - q) ** 2 * cross) / (size * (p - q) ** 2)
    assert found.value == pytest.approx((points * shares).sum(), abs=1e-3)
    assert found.standard_error == pytest.approx(math.sqrt(formula), rel=2e-3)


def test_sharing_out_the_excess_of_unary_shares_takes_noise_away():
    points = np.linspace(0, 10, 9)
    design = Ranges.of_epsilon(bounds=(0, 10), epsilon=2, steps=8, method="optimised")
    found = estimate(design, simulate(design, [5.0] * 2000, bits=SeededBits(1)))
    raw_variance = points @ found.shares.covariance() @ points
    assert found.mean().standard_error ** 2 < 0.6 * raw_variance


def without_noise(values, steps=5, dither=True):
    design = Ranges.of_epsilon(bounds=(0, 10), epsilon=math.inf, steps=steps, dither=dither)
    return estimate(design, simulate(design, values, bits=SeededBits(2)))


def test_the_value_of_a_variance_is_corrected_for_rounding_of_evenly_spread_numbers():
    found = without_noise((np.arange(40_000) + 0.5) / 4000)
    figure = found.variance()
    assert figure.value == pytest.approx(100 / 12, abs=5 * figure.standard_error)
    points = np.linspace(0, 10, 6)
    uncorrected = (points - points @ found.shares.values) ** 2 @ found.shares.values
    assert uncorrected - 100 / 12 > 0.4
    assert "spread evenly" in str(figure)


def test_the_interval_of_a_variance_allows_for_any_rounding_from_none_to_a_quarter_of_a_squared_step():
    # Numbers on points are not moved, and those in the middle of a step are moved the most.
    for values, added in (([2.0, 8.0], 0), ([1.0, 9.0], 1)):
        truth = np.var(values)
        found = without_noise(values * 20_000)
        figure = found.variance()
        reach = 1.96 * figure.standard_error
        assert figure.low == pytest.approx(truth + added - 1 - reach, abs=0.2)
        assert figure.high == pytest.approx(truth + added + reach, abs=0.2)
        assert figure.low <= truth + 0.2
        # Mutant: the interval around the value alone misses both.
        assert not figure.value - reach <= truth <= figure.value + reach


def test_bins_give_shares_and_quantiles_but_neither_mean_nor_variance():
    found = without_noise([2.5, 2.5, 7.1] * 100, dither=False)
    for moment in (found.mean, found.variance):
        with pytest.raises(sf.NotSupported, match="dither=True"):
            moment()
    assert [figure.label for figure in found.figures()] == ["quantile 0.25", "median", "quantile 0.75"]
    assert found.shares.values.sum() == pytest.approx(1)
    assert "mean" not in str(found)


def test_guarded_intervals_of_quantiles_are_the_default_everywhere():
    found = estimate(RANGES["dithered"], Tally(counts=[30, 20, 20, 20, 10], size=100))
    guarded = found.quantile(0.5, smooth=False)
    smooth = found.quantile(0.5, smooth=True)
    assert found.quantile(0.5) == found.quantiles([0.5])[0] == found.figures()[3] == guarded
    assert smooth.high - smooth.low < guarded.high - guarded.low
    assert "spread evenly" in smooth.note
    assert "spread evenly" in str(smooth)
    assert not guarded.note


def test_bounds_of_any_size_are_estimated_without_overflow():
    design = Ranges.of_epsilon(bounds=(-(2**400), 2**400), epsilon=1, steps=2)
    figures = estimate(design, Tally(counts=[40, 30, 30], size=100)).figures()
    assert all(math.isfinite(number) for f in figures for number in (f.value, f.low, f.high))


def test_quantiles_without_noise_are_those_of_the_numbers():
    values = np.sqrt((np.arange(50_000) + 0.5) / 50_000) * 10
    for dither in (True, False):
        design = Ranges.of_epsilon(bounds=(0, 10), epsilon=math.inf, steps=50, dither=dither)
        found = estimate(design, simulate(design, values, bits=SeededBits(2)))
        for order in (0.05, 0.25, 0.5, 0.75, 0.95):
            figure = found.quantile(order, smooth=True)
            assert figure.value == pytest.approx(10 * math.sqrt(order), abs=0.06)
            assert figure.low <= figure.value <= figure.high
            rough = found.quantile(order, smooth=False)
            assert rough.low <= figure.low
            assert rough.high >= figure.high


def test_mutant_running_sums_read_at_points_shift_the_quantiles_by_half_a_step():
    values = (np.arange(50_000) + 0.5) / 5000
    design = Ranges.of_epsilon(bounds=(0, 10), epsilon=math.inf, steps=5)
    found = estimate(design, simulate(design, values, bits=SeededBits(2)))
    at_points = np.interp(0.5, np.cumsum(found.shares.values), np.linspace(0, 10, 6))
    assert found.quantile(0.5).value == pytest.approx(5, abs=0.1)
    assert at_points == pytest.approx(4, abs=0.1)


def test_all_mass_at_a_bound_is_inside_the_intervals():
    for name, design in RANGES.items():
        low, high = float(design.lower), float(design.upper)
        for bound in (low, high):
            found = estimate(design, simulate(design, [bound] * 4000, bits=SeededBits(6)))
            for figure in (
                *found.figures()[: design.dither],
                found.quantile(0.5, smooth=True),
                found.quantile(0.5),
            ):
                assert figure.low <= bound <= figure.high, name
            assert low <= found.quantile(0.99).value <= high


def test_the_usual_number_of_steps_grows_with_people_and_epsilon_and_is_capped():
    assert usual_steps(1, 0.01) == 4
    assert usual_steps(10**9, 1) == usual_steps(1000, math.inf) == usual_steps(10, 50) == 64
    steps = [usual_steps(size, 1) for size in (100, 1000, 10_000, 100_000)]
    assert steps == sorted(steps)
    assert Ranges.of_epsilon(bounds=(0, 1), epsilon=1, respondents=10_000).steps == usual_steps(10_000, 1)


def test_one_bit_means_have_the_variance_of_the_worst_case():
    e = math.e
    design = OneBitMean.of_epsilon(bounds=(0, 10), epsilon=1)
    worst = 100 * (e + 1) ** 2 / (4 * 20_000 * (e - 1) ** 2)
    assert sf.local.standard_error(design, share=0.5, respondents=20_000) ** 2 == pytest.approx(worst)
    assert math.sqrt(worst) == pytest.approx(0.0765, abs=5e-5)
    values = np.random.default_rng(4).gamma(4, 1, 20_000)
    found = estimate(design, simulate(design, values, bits=SeededBits(7)))
    assert abs(found.values[0] - np.clip(values, 0, 10).mean()) < 4 * found.standard_errors()[0]
    assert found.standard_errors()[0] <= math.sqrt(worst)
    assert found.figures()[0].label == "mean"


def mean_error(design, values):
    """The exact standard error of the mean, for numbers drawn from these."""
    at = values / 8000 * design.steps
    below, share = np.floor(at).astype(int), at - np.floor(at)
    masses = np.bincount(below, 1 - share, design.steps + 2) + np.bincount(below + 1, share, design.steps + 2)
    shares, points = masses[: design.steps + 1] / len(values), np.linspace(-4000, 4000, design.steps + 1)
    p, q = map(float, design.support)
    return math.sqrt(points @ covariance(design.encoding, q + (p - q) * shares, len(values)) @ points)


def test_one_bit_is_best_for_a_mean_at_small_epsilons_and_a_coarse_scale_at_larger_ones():
    values = np.clip(2500 * np.exp(0.4 * np.random.default_rng(1).normal(size=20_000)), 0, 8000)
    for epsilon, steps_win in ((0.5, False), (2, True), (4, True)):
        one_bit = OneBitMean.of_epsilon(bounds=(0, 8000), epsilon=epsilon)
        alone = sf.local.standard_error(one_bit, share=float(values.mean() / 8000), respondents=20_000)
        scales = [
            mean_error(Ranges.of_epsilon(bounds=(0, 8000), epsilon=epsilon, steps=steps), values)
            for steps in (2, 4, 8, 48)
        ]
        assert (min(scales) < alone) == steps_win


def test_wrong_options_are_refused():
    found = estimate(RANGES["dithered"], [])
    for call in (
        lambda: found.quantile(0),
        lambda: found.quantile(1.2),
        lambda: found.quantile(0.5, smooth="yes"),
        lambda: found.mean(2),
        lambda: found.variance(0),
    ):
        with pytest.raises(sf.InvalidParameter):
            call()


@given(
    value=st.one_of(st.floats(allow_nan=False), st.integers(-(10**400), 10**400), st.fractions()),
    word=st.integers(0, WORD - 1),
    steps=st.sampled_from([1, 3, 7, 64]),
)
def test_rounding_decides_as_exact_arithmetic_does_for_any_number_and_word(value, word, steps):
    lower, upper = Fraction(-1, 3), Fraction(10)
    if isinstance(value, float) and math.isinf(value):
        at = Fraction(steps if value > 0 else 0)
    else:
        number = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
        at = (min(max(number, lower), upper) - lower) / (upper - lower) * steps
    below = math.floor(at)
    found = dithered([value], lower=lower, upper=upper, steps=steps, bits=ScriptedBits([word, 0, 0, 0]))
    assert found.tolist() == [below + (Fraction(word, WORD) < at - below)]
    bins = binned([value], lower=lower, upper=upper, steps=steps)
    assert bins.tolist() == [min(below, steps - 1)]
