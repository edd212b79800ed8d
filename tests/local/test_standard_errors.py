"""Standard errors are those that many surveys have, for shares of any size and for means by one bit."""

import itertools
import math

import numpy as np
import pytest
from tests.local.designs import COLOURS, DESIGNS

import sfumato as sf
from sfumato.local import (
    DirectEncoding,
    OneBitMean,
    Tally,
    UnaryEncoding,
    Warner,
    estimate,
    standard_error,
)

RUNS = 600


def surveys(design, shares, size, seed, runs=RUNS):
    generator = np.random.default_rng(seed)
    p, q = map(float, design.support)
    shares = np.asarray(shares)
    if design.exclusive:
        return generator.multinomial(size, q + (p - q) * shares, size=runs)
    own = generator.multinomial(size, shares, size=runs)
    return generator.binomial(own, p) + generator.binomial(size - own, q)


def stated_over_true(design, counts, size, share, errors):
    stated = np.sqrt(np.mean([errors(estimate(design, Tally(counts=c, size=size))) ** 2 for c in counts]))
    return stated / standard_error(design, share=share, respondents=size)


CASES = list(itertools.product((DirectEncoding, UnaryEncoding), (5, 50), (20, 100), (0, 0.5, 1)))


@pytest.mark.parametrize(("kind", "count", "size", "share"), CASES)
def test_stated_errors_of_shares_are_the_true_ones_on_average(kind, count, size, share):
    design = kind.of_epsilon([str(i) for i in range(count)], epsilon=1)
    shares = np.full(count, (1 - share) / (count - 1))
    shares[0] = share
    counts = surveys(design, shares, size, seed=1).tolist()
    ratio = stated_over_true(design, counts, size, share, lambda found: found.standard_errors()[0])
    p, q = map(float, design.support)
    expected = size * (q + (p - q) * share)
    # Where hardly anyone says so, the error of a label that nobody named is taken from what is possible.
    assert 0.94 < ratio < (1.06 if min(expected, size - expected) >= 5 else 1.4)


def test_mutant_errors_at_projected_shares_are_far_off():
    design = DirectEncoding.of_epsilon([str(i) for i in range(50)], epsilon=1)
    shares = [1.0] + [0.0] * 49
    counts = surveys(design, shares, 100, seed=1).tolist()

    def projected(found):
        nearest = found.consistent("project")[0]
        return standard_error(design, share=float(np.clip(nearest, 0, 1)), respondents=100)

    assert not 0.94 < stated_over_true(design, counts, 100, 1, projected) < 1.06


def test_the_covariance_of_direct_answers_is_that_of_their_counts():
    design = DirectEncoding.of_epsilon(COLOURS, epsilon=1)
    found = estimate(design, Tally(counts=[50, 30, 20], size=100))
    p, q = map(float, design.support)
    lam = np.array([0.5, 0.3, 0.2])
    expected = (np.diag(lam) - np.outer(lam, lam)) / (100 * (p - q) ** 2)
    assert np.allclose(found.covariance(), expected)
    assert found.covariance().sum() == pytest.approx(0, abs=1e-12)  # the shares add up to one


@pytest.mark.parametrize("size", [1, 3, 50])
def test_answers_that_are_all_alike_still_have_an_error(size):
    for design in (Warner(keep=0.75), Warner(keep=1), DirectEncoding.of_epsilon(COLOURS, epsilon=1)):
        labels = len(design.labels)
        for counts in ([0] * labels, [size] + [0] * (labels - 1)):
            if labels > 1 and sum(counts) != size:
                continue
            errors = estimate(design, Tally(counts=counts, size=size)).standard_errors()
            assert (errors > 0).all()
    found = estimate(DESIGNS["two samples"], (Tally(counts=[0], size=9), Tally(counts=[9], size=9)))
    assert all(figure.standard_error > 0 for figure in found.figures())


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_errors_of_one_bit_means_are_never_too_small_for_the_respondents(epsilon):
    design = OneBitMean.of_epsilon(bounds=(0, 100), epsilon=epsilon)
    p, size = float(design.keep), 1000
    generator = np.random.default_rng(1)
    for numbers in (np.full(size, 50.0), np.repeat([0.0, 100.0], size // 2), np.linspace(0, 60, size)):
        chance = 1 - p + (2 * p - 1) * numbers / 100
        counts = [int((generator.random(size) < chance).sum()) for _ in range(RUNS)]
        found = [estimate(design, Tally(counts=[count], size=size)) for count in counts]
        spread = np.std([f.values[0] for f in found])
        for of in ("population", "respondents"):
            stated = np.mean([f.standard_errors(of)[0] for f in found])
            assert stated > spread * (1 - 4 / math.sqrt(2 * RUNS))
        planned = standard_error(
            design, share=float(numbers.mean() / 100), respondents=size, of="respondents"
        )
        assert planned > spread * (1 - 4 / math.sqrt(2 * RUNS))


def test_mutant_an_error_without_the_rounding_is_too_small_for_numbers_in_the_middle():
    design = OneBitMean.of_epsilon(bounds=(0, 100), epsilon=4)
    warner = Warner(keep=design.keep)
    wrong = 100 * standard_error(warner, share=0.5, respondents=1000, of="respondents")
    assert standard_error(design, share=0.5, respondents=1000, of="respondents") > 3 * wrong


def test_respondents_have_errors_of_their_own_where_these_are_known():
    design, truths = Warner.of_epsilon(2), [True] * 300 + [False] * 700
    p, q = map(float, design.support)
    generator = np.random.default_rng(2)
    counts = generator.binomial(300, p, RUNS) + generator.binomial(700, q, RUNS)
    found = [estimate(design, Tally(counts=[int(c)], size=len(truths))) for c in counts]
    stated = np.mean([f.standard_errors("respondents")[0] for f in found])
    assert stated / np.std([f.values[0] for f in found]) == pytest.approx(1, abs=4 / math.sqrt(2 * RUNS))
    with pytest.raises(sf.NotSupported, match="different respondents"):
        standard_error(DESIGNS["two samples"], share=0.2, rate=0.3, respondents=9, of="respondents")
    with pytest.raises(sf.NotSupported, match="wilson"):
        found[0].interval(of="respondents", method="wilson")
