"""Runs of points with integer weights: the exact law, its sampler, and the integers it falls back on."""

import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from tests.laws.fit import FALSE_ALARM
from tests.laws.scripted import ScriptedBits

from sfumato.laws import SeededBits
from sfumato.laws.coins import Uniform
from sfumato.laws.graded import Graded
from sfumato.laws.grades import grades


def law(lengths, levels, c=Fraction(1, 2), parts=1):
    return Graded(np.array(lengths, dtype=np.int64), np.array(levels, dtype=np.int64), grades(c, parts))


runs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 300)), min_size=1, max_size=9).filter(
    lambda pairs: sum(length for length, _ in pairs)
)


@given(runs, st.sampled_from([(Fraction(1, 2), 1), (Fraction(5, 18), 20), (Fraction(10**5), 3)]))
def test_probabilities_are_weights_over_their_sum_and_add_up_to_one(pairs, calibration):
    graded = law(*zip(*pairs, strict=True), *calibration)
    levels = np.repeat([level for _, level in pairs], [length for length, _ in pairs])
    weights = grades(*calibration).weights(levels)
    assert graded.points == len(weights)
    found = [graded.probability(point) for point in range(graded.points)]
    assert found == [Fraction(weight, sum(weights)) for weight in weights]
    assert sum(found) == 1
    for point in (-1, graded.points, 10**9):
        assert graded.probability(point) == 0
        assert graded.logpmf(point) == -math.inf
    for point, chance in enumerate(found):
        expected = math.log(chance.numerator) - math.log(chance.denominator)
        assert graded.logpmf(point) == pytest.approx(expected, abs=1e-12)
    units, steps = graded.coins()
    assert [int(a) * int(b) for a, b in zip(units, steps, strict=True)] == weights
    mean = float(sum(chance * int(level) for chance, level in zip(found, levels, strict=True)))
    assert graded.expected(lambda level: level.astype(float)) == pytest.approx(mean, rel=1e-9)


LENGTHS, LEVELS = [3, 0, 1, 2, 10, 4], [4, 9, 1, 0, 2, 30]


def draws_of(graded, seed, count=40_000):
    bits = SeededBits(seed)
    return np.array([graded.sample(bits) for _ in range(count)])


def fits(draws, graded):
    """Pearson's test over the points, at the false-alarm level of the project."""
    expected = np.array([float(graded.probability(i)) for i in range(graded.points)]) * len(draws)
    observed = np.bincount(draws, minlength=len(expected))
    rare = expected < 20
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    kept = expected > 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return chi2.sf(statistic, kept.sum() - 1) >= FALSE_ALARM


@pytest.mark.parametrize("exact", [False, True], ids=["floats first", "integers only"])
def test_samples_fit_the_law_and_reject_laws_that_are_a_little_off(exact):
    graded = law(LENGTHS, LEVELS)
    # With the float sums taken away, every draw is decided by integers.
    with (
        patch.object(Graded, "_run", lambda self, word: None)
        if exact
        else patch.object(Graded, "x", 0, create=True)
    ):
        draws = draws_of(graded, seed=3)
    assert fits(draws, graded)
    for c in (Fraction(1, 2) * 9 / 10, Fraction(1, 2) * 11 / 10):
        assert not fits(draws, law(LENGTHS, LEVELS, c))


def edge_words(graded):
    """The words on both sides of every edge between two runs, and at both ends."""
    total, edge, found = graded._total, 0, {0, 2**64 - 1}
    for mass in graded._masses:
        edge += mass
        spot = edge * 2**64 // total
        found |= {min(max(spot + shift, 0), 2**64 - 1) for shift in (-2, -1, 0, 1)}
    return sorted(found)


def expected_run(graded, uniform):
    """The run of a uniform real in [0, 1), by exact arithmetic."""
    edge = Fraction(0)
    for run, mass in enumerate(graded._masses):
        edge += Fraction(mass, graded._total)
        if uniform < edge:
            return run
    raise AssertionError("a uniform real is below 1")


@pytest.mark.parametrize("following", [0, 1, 2**63, 2**64 - 1])
def test_words_on_the_edges_are_decided_by_integers_that_continue_them(following):
    graded = law(LENGTHS, LEVELS)
    undecided = 0
    for word in edge_words(graded):
        if graded._run(word) is None:
            undecided += 1
        # The uniform is `word`, then `following`, then zeros; the last words choose the point of a run.
        bits = ScriptedBits([word, following, 0, 0, 0])
        point = graded.sample(bits)
        run = expected_run(graded, Fraction(word * 2**64 + following, 2**128))
        ends = np.cumsum(LENGTHS)
        # Where the word alone decides, what follows it is taken for the place in the run.
        settled = {
            expected_run(graded, Fraction(word, 2**64)),
            expected_run(graded, Fraction(word * 2 + 1, 2**65)),
        }
        assert ends[run] - LENGTHS[run] <= point < ends[run] or len(settled) == 1
        assert graded._run(word) in (None, *settled)
    assert undecided >= len(LENGTHS) - 1


def test_words_near_an_edge_are_left_to_integers_on_both_sides_of_it():
    graded, edge = law(LENGTHS, LEVELS), Fraction(0)
    inner = [mass for mass in graded._masses if mass][:-1]
    assert len(inner) >= 2
    for mass in inner:
        edge += Fraction(mass, graded._total)
        word = math.floor(edge * 2**64)
        # Float sums err by up to 2^-48 of the whole, which is 2^16 words.
        assert [graded._run(word + away) for away in (-(2**14), -1000, 1000, 2**14)] == [None] * 4


def test_the_fallback_continues_the_word_and_draws_no_new_one():
    graded, seen = law(LENGTHS, LEVELS), []

    class Recorded(Uniform):
        def __init__(self, bits, prefix=0, width=0):
            seen.append((prefix, width))
            super().__init__(bits, prefix, width)

    word = next(word for word in edge_words(graded)[2:] if graded._run(word) is None)
    with patch("sfumato.laws.weights.Uniform", Recorded):
        graded.sample(ScriptedBits([word, 7, 7, 7]))
    assert seen == [(word, 64)]


@given(word=st.integers(0, 2**64 - 1), pairs=runs)
def test_floats_choose_the_run_of_exact_arithmetic_or_none(word, pairs):
    graded = law(*zip(*pairs, strict=True))
    run = graded._run(word)
    if run is not None:
        assert run == expected_run(graded, Fraction(word, 2**64))
        assert run == expected_run(graded, Fraction(word * 2**64 + 2**64 - 1, 2**128))


def test_runs_may_be_as_long_as_a_fine_grid_with_places_for_ties():
    long = 2**56
    graded = law([long, 1, long - 1], [60, 0, 61])
    assert graded.points == 2 * long
    chance = (
        graded.probability(0) * long + graded.probability(long) + graded.probability(long + 1) * (long - 1)
    )
    assert chance == 1
    assert graded.probability(long) > 10**12 * graded.probability(0)
    draws = draws_of(graded, seed=5, count=4000)
    assert ((draws >= 0) & (draws < graded.points)).all()
    middle = float(graded.probability(long))
    assert abs((draws == long).mean() - middle) < 6.2 * math.sqrt(middle * (1 - middle) / len(draws))
    left = draws[draws < long]
    assert abs(left.mean() / long - 1 / 2) < 6.2 / math.sqrt(12 * len(left))


def test_an_empty_run_is_never_drawn():
    graded = law([0, 1, 0, 1, 0], [0, 700, 0, 700, 0])
    assert {graded.sample(SeededBits(seed)) for seed in range(50)} == {0, 1}


@pytest.mark.parametrize("lengths", [[1, 1, 0], [0, 1, 1, 0, 0], [0, 1, 0, 1]])
def test_integers_settle_a_word_beside_empty_runs(lengths):
    graded = law(lengths, [0] * len(lengths))
    assert graded._run(2**63) is None
    assert graded.sample(ScriptedBits([2**63, 0, 0])) == 1


def test_means_over_levels_coins_and_ends_are_those_of_the_points():
    lengths, levels = np.array([3, 0, 1, 2]), np.array([0, 5, 2, 9])
    graded = law(lengths, levels)
    chances = [graded.probability(point) for point in range(graded.points)]
    per_point = np.repeat(levels, lengths)
    exact = sum(chance * int(level) for chance, level in zip(chances, per_point, strict=True))
    assert graded.expected(lambda level: level.astype(np.float64)) == pytest.approx(float(exact), rel=1e-14)
    assert graded.expected(np.ones_like) == pytest.approx(1, rel=1e-15)
    units, steps = graded.coins()
    products = [int(unit) * int(step) for unit, step in zip(units, steps, strict=True)]
    assert [Fraction(product, sum(products)) for product in products] == chances
    assert graded.ends.tolist() == [3, 3, 4, 6]
    assert graded.logpmf(-1) == graded.logpmf(6) == -math.inf
    assert graded.probability(-1) == graded.probability(6) == 0
    for point, chance in enumerate(chances):
        assert graded.logpmf(point) == pytest.approx(math.log(chance), abs=1e-12)
