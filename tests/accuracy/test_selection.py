"""How far a choice is below the best: every theorem against exact laws, and tight where it says so."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato import accuracy
from sfumato.errors import InvalidParameter
from sfumato.laws import Selection
from sfumato.mechanisms import ExponentialMechanism

SCORES = (0, 0, 0, 0, 0, 4, 5)
SHARP = {"flip": accuracy.flip_choice_loss, "exponential": accuracy.exponential_choice_loss}
SHARP_MEAN = {"flip": accuracy.flip_mean_choice_loss, "exponential": accuracy.exponential_mean_choice_loss}
RATES = (Fraction(1, 10), Fraction(1, 2), Fraction(2))
FAILURES = (0.001, 0.05, 0.3, 0.9)

# The laws are right to about 1e-12.
ROUNDING = 1e-11


def grid():
    """Laws of all scores 0..3 of two to five candidates, and of wider ones, with how many are best."""
    small = (scores for n in (2, 3, 4, 5) for scores in itertools.product(range(4), repeat=n - 1))
    wide = [(30, 29, 12), (50, 50, 50, 1), tuple(range(40)), (0,) * 30, (7,) * 3 + (0,) * 20]
    for others in itertools.chain(small, wide):
        scores = (3, *others) if max(others) <= 3 else others
        for rate in RATES:
            for variant in SHARP:
                yield Selection(scores, rate, variant), scores.count(max(scores))


LAWS = list(grid())


def tails(law):
    """Every loss of a law, and the probability of at least as large a one."""
    losses, chances = np.array([float(gap) for gap in law.gaps]), law.probability(law.outcomes())
    return [(loss, float(chances[losses >= loss].sum())) for loss in sorted(set(losses.tolist()))]


def test_no_law_passes_a_bound_on_its_loss():
    compared = 0
    for law, best in LAWS:
        for failure in FAILURES:
            sharp = SHARP[law.variant](law.rate, law.points, failure, best=best)
            published = accuracy.published_choice_loss(law.rate, law.points, failure, best=best)
            assert sharp <= published
            for loss, chance in tails(law):
                compared += 1
                # The published theorem is about losses of at least its bound, the sharp ones of more.
                assert loss < published * (1 - 1e-12) or chance <= failure + ROUNDING
                assert loss <= sharp * (1 + 1e-12) or chance <= failure + ROUNDING
    print(f"{len(LAWS):,} laws, {compared:,} comparisons, no violation")
    assert compared > 10_000


def test_no_law_passes_a_bound_on_its_mean_loss():
    for law, best in LAWS:
        sharp = SHARP_MEAN[law.variant](law.rate, law.points, best=best)
        assert law.expected_loss <= sharp * (1 + 1e-11)
        assert sharp <= accuracy.published_mean_choice_loss(law.rate, law.points)


@pytest.mark.parametrize("t", [0.5, 1, 2, 4])
def test_the_theorem_holds_as_it_was_published(t):
    # For each t, the chance of a loss of (ln(n / m) + t) / c or more is at most e^-t.
    for law, best in LAWS:
        bound = (math.log(law.points / best) + t) / float(law.rate)
        assert sum(
            chance
            for gap, chance in zip(law.gaps, law.probability(law.outcomes()), strict=True)
            if gap >= bound
        ) <= math.exp(-t)


@pytest.mark.parametrize(("count", "best"), [(2, 1), (10, 1), (10, 3), (500, 1), (500, 499)])
def test_the_sharp_bounds_of_the_exponential_mechanism_are_attained(count, best):
    unit = 10**6
    rate, others = Fraction(1, unit), count - best
    mean = accuracy.exponential_mean_choice_loss(rate, count, best=best)
    worst = Selection((0,) * best + (-round(mean + unit),) * others, rate, "exponential")
    assert worst.expected_loss == pytest.approx(mean, rel=1e-9)
    for failure in (0.01, 0.1):
        loss = accuracy.exponential_choice_loss(rate, count, failure, best=best)
        if loss:
            law = Selection((0,) * best + (-math.floor(loss),) * others, rate, "exponential")
            assert tails(law)[-1][1] == pytest.approx(failure, rel=1e-4)


def test_the_mean_bound_of_permute_and_flip_is_attained_by_two_candidates():
    rate = Fraction(1, 10**6)
    law = Selection((0, -(10**6)), rate, "flip")
    assert law.expected_loss == pytest.approx(accuracy.flip_mean_choice_loss(rate, 2), rel=1e-11)


def test_the_tail_bound_of_permute_and_flip_is_near_for_small_failures():
    unit = 10**6
    for count, best in ((2, 1), (50, 1), (50, 5)):
        for failure in (0.01, 0.001):
            loss = accuracy.flip_choice_loss(Fraction(1, unit), count, failure, best=best)
            scores = (0,) * best + (-math.floor(loss),) * (count - best)
            chance = tails(Selection(scores, Fraction(1, unit), "flip"))[-1][1]
            assert failure * 0.96 <= chance <= failure * (1 + 1e-5)


@pytest.mark.parametrize("variant", SHARP)
@pytest.mark.parametrize("best", [1, 4])
def test_the_radius_of_a_mechanism_is_its_theorem(variant, best):
    mechanism = ExponentialMechanism(sensitivity=3, epsilon=Fraction(1, 7), variant=variant)
    for count in (4, 5, 1000):
        for failure in FAILURES:
            stated = SHARP[variant](mechanism.rate, count, failure, best=best)
            found = mechanism.radius(count, 1 - Fraction(str(failure)), best=best)
            assert stated <= found <= stated * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    ("epsilon", "plain", "flip"),
    [("0.5", 2.473, 2.206), ("1", 1.318, 1.010), ("2", 0.3827, 0.2552), ("4", 0.1202, 0.0682)],
)
def test_expected_losses_are_those_of_the_table(epsilon, plain, flip):
    rate, digits = Fraction(epsilon) / 2, 3 if float(epsilon) < 2 else 4
    assert round(Selection(SCORES, rate, "exponential").expected_loss, digits) == plain
    assert round(Selection(SCORES, rate, "flip").expected_loss, digits) == flip


# --- what these tests must notice ----------------------------------------------------------------


def test_bounds_that_are_a_little_too_small_are_noticed():
    def violated(loss, mean):
        return any(
            chance > failure + ROUNDING
            for law, best in LAWS
            for failure in FAILURES
            for gap, chance in tails(law)
            if gap > loss(law, failure, best)
        ) or any(law.expected_loss > mean(law, best) * (1 + 1e-11) for law, best in LAWS)

    def sharp(law, failure, best):
        return SHARP[law.variant](law.rate, law.points, failure, best=best)

    def mean(law, best):
        return SHARP_MEAN[law.variant](law.rate, law.points, best=best)

    assert not violated(sharp, mean)
    mutants = {
        "without the monotone rate": (lambda law, f, m: sharp(law, f, m) / 2, mean),
        "one best too many": (lambda law, f, m: sharp(law, f, min(m + 1, law.points)), mean),
        "mean of two fifths": (sharp, lambda law, m: mean(law, m) * 0.4),
    }
    for name, mutant in mutants.items():
        assert violated(*mutant), name


def test_parameters_are_checked():
    for wrong in ({"rate": 0}, {"count": 0}, {"failure": 1}, {"best": 6}, {"best": 0}):
        given = {"rate": 1, "count": 5, "failure": 0.1, "best": 1} | wrong
        with pytest.raises(InvalidParameter, match=next(iter(wrong))):
            accuracy.published_choice_loss(**given)
    assert accuracy.exponential_choice_loss(1, 5, 0.1, best=5) == 0
    assert accuracy.flip_choice_loss(1, 1, 0.1) == accuracy.flip_mean_choice_loss(1, 1) == 0
