import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from tests.laws.exact import arb, exp
from tests.laws.fit import FALSE_ALARM
from tests.laws.scripted import ScriptedBits

from sfumato.errors import InvalidParameter
from sfumato.laws import Choice, Law, SeededBits, SystemBits, exp_bounds, weight_table
from sfumato.laws.weights import Groups

TOP = 2**64 - 1


def fits(draws: np.ndarray, probabilities: list[Fraction]) -> float:
    expected = np.array([float(p) for p in probabilities]) * len(draws)
    observed = np.bincount(draws, minlength=len(expected))
    assert not observed[expected == 0].any()
    observed, expected = observed[expected > 0], expected[expected > 0]
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


WEIGHTS = {
    "integers": [3, 0, 1, 5, 5, 1],
    "one": [7],
    "large integers": [10**40, 3 * 10**40, 1, 10**40],
    "floats": [0.1, 0.2, 0.3, 0.0, 1e-3],
    "equal floats": [0.5] * 7,
    "float32": np.array([0.1, 0.7], dtype=np.float32),
    "wide floats": [2.0**-1000, 2.0**1000, 3.0 * 2.0**999],
    "subnormal floats": [5e-324, 1.5e-323, 2.2e-308],
    "unsigned": np.array([2**64 - 1, 2**63, 5], dtype=np.uint64),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_probabilities_are_exactly_proportional_to_the_weights(name):
    weights = WEIGHTS[name]
    law = Choice(weights)
    exact = [Fraction(float(w)) if isinstance(w, float | np.floating) else Fraction(int(w)) for w in weights]
    assert [law.probability(i) for i in range(len(exact))] == [w / sum(exact) for w in exact]
    assert law.probability(-1) == law.probability(len(exact)) == 0
    assert isinstance(law, Law)


@pytest.mark.parametrize("name", WEIGHTS)
def test_draws_fit_the_exact_probabilities(name):
    law = Choice(WEIGHTS[name])
    probabilities = [law.probability(i) for i in range(law.points)]
    draws = law.sample(SeededBits(31), 100_000)
    assert draws.dtype == np.int64
    if sum(p > 0 for p in probabilities) > 1:
        assert fits(draws, probabilities) > FALSE_ALARM
    singles = np.array([law.sample(SeededBits(seed)) for seed in range(300)])
    assert all(probabilities[i] > 0 for i in singles)
    assert isinstance(law.sample(SystemBits()), int)


def test_the_fit_rejects_a_weight_two_per_cent_wrong():
    draws = Choice([10, 20, 30]).sample(SeededBits(2), 10**6)
    assert fits(draws, [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)]) > FALSE_ALARM
    for wrong in (Fraction(98, 100), Fraction(102, 100)):
        total = 10 + 20 + 30 * wrong
        assert fits(draws, [10 / total, 20 / total, 30 * wrong / total]) < FALSE_ALARM


@given(
    st.lists(
        st.floats(0, 1e308, allow_subnormal=True) | st.sampled_from([2.0**-1000, 2.0**1000, 5e-324]),
        min_size=1,
    )
)
def test_float_weights_count_with_their_exact_values(weights):
    if not any(weights):
        return
    law = Choice(np.array(weights))
    total = sum(map(Fraction, weights))
    assert law._weights.total == total
    for i, weight in enumerate(weights):
        assert law.probability(i) == Fraction(weight) / total
        if weight:
            exact = math.log(Fraction(weight).numerator) - math.log(Fraction(weight).denominator)
            exact -= math.log(total.numerator) - math.log(total.denominator)
            assert math.isclose(law.logpmf(i), exact, rel_tol=1e-12, abs_tol=1e-12)
        else:
            assert law.logpmf(i) == -math.inf
    drawn = law.sample(SeededBits(1), 20)
    assert all(weights[i] > 0 for i in drawn)


def test_a_small_float_choice_is_exact_over_all_its_words():
    # Weights 3/4, 1 and 5/4: two exponents. Group masses are 3/4 and 9/4, so the edge is at 1/4 of the
    # unit interval: exactly a quarter of the words, with nothing undecided.
    law = Choice([0.75, 1.0, 1.25])
    quarter = 2**62
    keep, reject = 0, TOP
    half = 2**63

    def draw(*script: int) -> int:
        bits = ScriptedBits(script)
        outcome = law.sample(bits)
        assert bits.left == 0
        return outcome

    # group word, cell word, mantissa word
    assert draw(quarter - 1, 0, keep) == 0
    assert draw(quarter, 0, keep) == 1  # level with the edge, which is exact: at or past it
    assert draw(quarter + 1, half + 1, keep) == 2
    # Mantissas: 1 = 2^52 / 2^53 is kept below a half, 5/4 below five eighths; a rejected trial starts over.
    assert draw(TOP, 0, half - 1) == 1
    assert draw(TOP, 0, half, 1, 5 * 2**61 - 1) == 2
    assert draw(TOP, 1, 5 * 2**61, 0, 0) == 1
    assert draw(0, 0, 3 * 2**62 - 1) == 0
    assert draw(0, 0, 3 * 2**62, 0, reject, 0, keep) == 0


def test_runs_are_exact_over_all_their_words():
    # Two levels: 3 points of weight 1 (the first run and the last), 2 points of weight 6.
    law = Choice.of_runs(lengths=[1, 2, 2], levels=[5, 0, 1], table=[6, 1])
    assert [law.probability(i) for i in range(5)] == [Fraction(w, 15) for w in (1, 6, 6, 1, 1)]
    edge = 2**64 * 12 // 15

    def draw(*script: int) -> int:
        bits = ScriptedBits(script)
        outcome = law.sample(bits)
        assert bits.left == 0
        return outcome

    # Groups come in the order of their levels; points of a group are numbered from the left.
    assert [draw(edge - 1, word) for word in (0, 1)] == [1, 2]
    assert [draw(edge + 1, word) for word in (3, 1, 2)] == [0, 3, 4]
    assert draw(edge + 1, 0, 4) == 3  # the word 0 is redrawn: 2^64 mod 3 = 1
    # 4/5 = 0.1100 1100...: level with the edge the next word decides.
    following = 2**128 * 12 // 15 - (edge << 64)
    assert draw(edge, following - 1, 1) == 2
    assert draw(edge, following + 1, 1) == 3


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=12),
    st.lists(st.integers(0, 2**70), min_size=1, max_size=6),
)
def test_runs_agree_with_their_points_written_out(runs, table):
    lengths, levels = [length for length, _ in runs], [level for _, level in runs]
    written_out = [table[min(level, len(table) - 1)] for length, level in runs for _ in range(length)]
    if not sum(written_out):
        with pytest.raises(InvalidParameter, match="zero"):
            Choice.of_runs(lengths, levels, table)
        return
    law, plain = Choice.of_runs(lengths, levels, table), Choice(written_out)
    k = np.arange(-2, len(written_out) + 2)
    assert law.points == plain.points == len(written_out)
    assert [law.probability(int(i)) for i in k] == [plain.probability(int(i)) for i in k]
    assert np.allclose(law.logpmf(k), plain.logpmf(k), rtol=1e-12)
    exact = np.array([float(law.probability(int(i))) for i in k])
    for choice in (law, plain):
        assert np.allclose(choice.cdf(k), np.cumsum(exact), rtol=1e-12)
        assert np.allclose(choice.sf(k), np.cumsum(exact[::-1])[::-1] - exact, rtol=1e-9, atol=1e-15)
        mean = float((exact * k).sum())
        assert math.isclose(choice.mean, mean, rel_tol=1e-9, abs_tol=1e-12)
        assert math.isclose(
            choice.variance, float((exact * (k - mean) ** 2).sum()), rel_tol=1e-9, abs_tol=1e-12
        )
    drawn = law.sample(SeededBits(5), 50)
    assert all(written_out[i] > 0 for i in drawn)


def test_runs_fit_their_points():
    lengths, levels = np.array([5, 0, 2, 9, 1, 3]), np.array([0, 1, 2, 1, 0, 4])
    table = weight_table(Fraction(1, 2))
    law = Choice.of_runs(lengths, levels, table)
    probabilities = [law.probability(i) for i in range(law.points)]
    assert fits(law.sample(SeededBits(8), 200_000), probabilities) > FALSE_ALARM


def test_a_huge_grid_costs_no_more_than_its_runs():
    law = Choice.of_runs([2**60, 2**60, 1], [0, 3, 0], weight_table(Fraction(1)))
    draws = law.sample(SeededBits(4), 1000)
    assert law.points == 2**61 + 1
    share = float(law.cdf(2**60 - 1))
    assert abs((draws < 2**60).mean() - share) < 6.1 * math.sqrt(share * (1 - share) / 1000)
    assert abs(law.sf(2**60 - 1) + share - 1) < 1e-12


def test_the_radius_covers_from_the_median():
    law = Choice([1, 2, 10, 2, 1])
    assert law.radius(0.5) == 0
    assert law.radius(0.8) == 1
    assert law.radius(0.9) == 2
    assert Choice([0.0, 1.0]).radius(0.99) == 0


def test_float_tails_and_moments_are_sums():
    generator = np.random.default_rng(3)
    weights = generator.exponential(size=1000) * 2.0 ** generator.integers(-60, 60, 1000)
    law = Choice(weights)
    p = np.array([float(law.probability(i)) for i in range(1000)])
    k = np.arange(1000)
    assert np.allclose(law.cdf(k), np.cumsum(p), rtol=1e-12)
    assert np.allclose(law.sf(k)[:-1], np.cumsum(p[::-1])[::-1][1:], rtol=1e-12)
    assert law.sf(999) == 0 == law.cdf(-1)
    assert law.cdf(10**30) == 1 == law.sf(-(10**30))
    assert math.isclose(law.mean, (p * k).sum(), rel_tol=1e-12)
    assert math.isclose(law.variance, (p * (k - (p * k).sum()) ** 2).sum(), rel_tol=1e-12)


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [0, 0],
        [0.0, 0.0],
        [1, -1],
        [1.0, -1e-300],
        [1.0, float("nan")],
        [1.0, float("inf")],
        ["a", "b"],
        [[1, 2], [3, 4]],
        [True, False],
        np.array([], dtype=float),
        np.array([1, 2], dtype=np.longdouble),
        [1, None],
    ],
    ids=str,
)
def test_weights_that_are_no_weights_are_refused(bad):
    with pytest.raises(InvalidParameter):
        Choice(bad)


def test_runs_that_do_not_fit_together_are_refused():
    for lengths, levels, table in [
        ([1, 2], [0], [1]),
        ([1], [0], []),
        ([1], [0], [-1]),
        ([-1, 3], [0, 0], [1]),
        ([1], [-1], [1, 2]),
        ([1.5], [0], [1]),
        ([0], [0], [1]),
        ([2**62, 2**62], [0, 0], [1]),
        ([1], [2**62], [1]),
    ]:
        with pytest.raises(InvalidParameter):
            Choice.of_runs(lengths, levels, table)


@pytest.mark.parametrize("masses", [[1, 2, 4], [1, 1, 1, 10**6], [5], [3, 10**30, 1, 1]])
def test_groups_take_every_small_word_exactly(masses):
    width = 10
    groups = Groups(masses, width)
    words = np.arange(1 << width, dtype=np.uint64)
    found, level = groups.find(words)
    total = sum(masses)
    for word in range(1 << width):
        # The group that holds the whole cell [word, word + 1) / 2^width, if one does.
        left = [sum(masses[:g]) * 2**width for g in range(len(masses))] + [total * 2**width]
        inside = [
            g for g in range(len(masses)) if left[g] <= word * total and (word + 1) * total <= left[g + 1]
        ]
        if not level[word]:
            assert inside == [found[word]]
        else:
            for fraction in (Fraction(1, 3), Fraction(2, 3)):
                pattern = math.floor(fraction * 2**64)
                group = groups.settle(word, ScriptedBits([pattern] * 4))
                point = (word + Fraction(pattern, 2**64 - 1)) * total
                assert left[group] <= point < left[group + 1]


@pytest.mark.parametrize("c", [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2), Fraction(3), Fraction(50)])
def test_weight_tables_fall_by_no_more_than_they_may(c):
    table = weight_table(c)
    assert int(table[0]) == 2**62
    assert table.dtype == np.int64
    assert not table.flags.writeable
    assert (np.diff(table) < 0).all()
    assert int(table[-1]) >= 1
    ratio = exp(c)
    q = Fraction(exp_bounds(c, 64)[1], 2**64)
    for k in range(0, len(table) - 1, max(1, len(table) // 500)):
        assert arb(int(table[k])) <= ratio * arb(int(table[k + 1]))
        assert int(table[k + 1]) == math.ceil(q * int(table[k]))
    # It ends where it would stay constant, and early on it follows the exponential closely.
    assert math.ceil(q * int(table[-1])) == int(table[-1])
    if c < 20:
        assert math.isclose(math.log(int(table[1]) / 2**62), -float(c), rel_tol=1e-9)


def test_a_weight_table_may_be_cut_at_the_last_level_that_occurs():
    whole_table = weight_table(Fraction(1, 100))
    assert np.array_equal(weight_table(Fraction(1, 100), 10), whole_table[:11])
    assert weight_table(Fraction(1, 100), 0).tolist() == [2**62]
    for bad in (-1, 0.5):
        with pytest.raises(InvalidParameter, match="steps"):
            weight_table(Fraction(1), bad)
    with pytest.raises(InvalidParameter, match="c must be positive"):
        weight_table(Fraction(0))


def test_the_weight_table_of_a_tiny_fall_is_constant_and_never_rises():
    assert weight_table(Fraction(1, 10**30)).tolist() == [2**62]


@pytest.mark.parametrize("large", [2**63, 2**63 + 1, 2**64 - 1, 2**64, 2**80 + 1])
def test_integers_beyond_int64_keep_every_digit_beside_small_ones(large):
    for weights in ([large, 1], [1, large], [large, 0, 3]):
        law, total = Choice(weights), sum(weights)
        assert [law.probability(i) for i in range(len(weights))] == [Fraction(w, total) for w in weights]
