"""The radius of a scan, of integer and of continuous noise: never violated by exact laws, where it holds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accuracy import (
    above_threshold_alpha,
    above_threshold_radius,
    published_above_threshold_alpha,
    published_translated_alpha,
)
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.moves import SameDirection
from sfumato.mechanisms.sparse import SparseMechanism

SCALES = [(Fraction(1), Fraction(1)), (Fraction(2), Fraction(4)), (Fraction(7, 2), Fraction(2, 3))]
both_kinds = pytest.mark.parametrize("one_sided", [True, False], ids=["one-sided", "two-sided"])


def scan(threshold_scale: Fraction, query_scale: Fraction, one_sided: bool) -> AboveThreshold:
    return AboveThreshold(
        moves=SameDirection(1),
        threshold_scale=threshold_scale,
        query_scale=query_scale,
        one_sided=one_sided,
    )


def failure(mechanism: AboveThreshold, values: tuple[int, ...], reach: int) -> float:
    """The exact probability that the answer is wrong about a value further than `reach`."""
    law = mechanism.law(np.array(values), 0)
    masses = np.exp(law.logpmf(law.outcomes()))
    wrong = [
        any(value > reach for value in values[:place]) or (place < len(values) and values[place] <= -reach)
        for place in range(len(values) + 1)
    ]
    return float(masses[wrong].sum())


@both_kinds
def test_no_exact_law_violates_either_radius(one_sided):
    cases = violations = 0
    least = {}
    for (first, second), queries, confidence in itertools.product(
        SCALES, (1, 2, 4), (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))
    ):
        mechanism = scan(first, second, one_sided)
        theorem = above_threshold_radius(
            queries=queries,
            confidence=confidence,
            threshold_scale=first,
            query_scale=second,
            one_sided=one_sided,
        )
        sharp = mechanism.radius(queries, float(confidence))
        assert sharp <= theorem
        for reach in (sharp, theorem):
            # What an answer must be right about, at its nearest, and what it need not be.
            for values in itertools.product((-reach, 0, reach + 1), repeat=queries):
                cases += 1
                violations += failure(mechanism, values, reach) > 1 - confidence
        smaller = sharp // 3
        least[first, second, queries, confidence] = max(
            failure(mechanism, values, smaller) - float(1 - confidence)
            for values in itertools.product((-smaller, 0, smaller + 1), repeat=queries)
        )
    print(f"{cases} exact laws, {violations} violations")
    assert cases > 1500
    assert violations == 0
    # A third of the radius is mostly not enough, so that the check can fail.
    assert sum(excess > 0 for excess in least.values()) > len(least) * 2 / 3


def test_each_term_is_rounded_up():
    for queries, confidence, first, second in itertools.product((1, 10, 1000), (0.5, 0.95), (1, 7), (2, 30)):
        beta = 1 - confidence
        terms = first * math.log(2 / beta), second * math.log(2 * queries / beta)
        found = above_threshold_radius(
            queries=queries, confidence=confidence, threshold_scale=first, query_scale=second
        )
        assert found == sum(math.ceil(term) for term in terms)


def test_it_is_below_the_radius_of_the_textbook():
    # 8 (log K + log(2/beta)) / epsilon for scales 2/epsilon and 4/epsilon.
    for queries, epsilon in itertools.product((1, 10, 10**6), (0.01, 0.1)):
        mechanism = AboveThreshold.general(epsilon, 1, one_sided=False)
        found = above_threshold_radius(
            queries=queries,
            confidence=0.95,
            threshold_scale=mechanism.threshold_scale,
            query_scale=mechanism.query_scale,
        )
        assert found <= 8 * (math.log(queries) + math.log(40)) / epsilon


def test_a_stream_is_as_accurate_as_the_theorem_says():
    stream = SparseMechanism.calibrated(1, sensitivity=1, crossings=5)
    theorem = above_threshold_radius(
        queries=1000,
        confidence=0.95,
        threshold_scale=stream.threshold_scale,
        query_scale=stream.query_scale,
        one_sided=True,
    )
    assert stream.radius(1000, 0.95) <= theorem


@pytest.mark.parametrize(
    "wrong",
    [
        {"queries": 0},
        {"confidence": 1},
        {"confidence": 0},
        {"threshold_scale": 0},
        {"query_scale": -1},
        {"query_scale": 2**60},
        {"one_sided": 1},
    ],
    ids=str,
)
def test_what_breaks_a_hypothesis_is_refused(wrong):
    given = {"queries": 9, "confidence": 0.9, "threshold_scale": 1, "query_scale": 1, **wrong}
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        above_threshold_radius(**given)


# --- continuous noise ----------------------------------------------------------------------------

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
BELOW = 1 + 1e-9
ALPHAS = list(itertools.product((0.5, 2.0, 5.0), (0.5, 4.0), (0.01, 0.05, 0.3)))


def tail(scale, value):
    """P(noise > value) of the continuous Laplace law."""
    return np.where(
        value < 0, 1 - np.exp(np.minimum(value, 0) / scale) / 2, np.exp(-np.abs(value) / scale) / 2
    )


def continuous_failure(values, reach, threshold_scale, query_scale):
    """The exact probability of a wrong answer, by Gauss sums between the corners of what is integrated."""
    values = np.asarray(values, dtype=float)
    corners = np.unique(np.concatenate([values, [0.0], [-40 * threshold_scale, 40 * threshold_scale]]))
    # Cut to pieces of at most one scale, on which the integrand is a polynomial to all digits.
    step = min(threshold_scale, query_scale)
    cuts = np.unique(
        np.concatenate([np.linspace(a, b, 2 + int((b - a) / step)) for a, b in itertools.pairwise(corners)])
    )
    half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
    noise = (middle[:, None] + half[:, None] * NODES).ravel()
    density = np.exp(-np.abs(noise) / threshold_scale) / (2 * threshold_scale)
    mass = (half[:, None] * WEIGHTS).ravel() * density
    survived, wrong, missed = np.ones_like(noise), np.zeros_like(noise), False
    for value in values:
        crossing = tail(query_scale, noise - value)
        if missed or value < -reach:
            wrong += survived * crossing
        survived = survived * (1 - crossing)
        missed = missed or value > reach
    return float(mass @ (wrong + survived * missed))


def worst_continuous_failure(queries, reach, threshold_scale, query_scale):
    """Over values at their nearest to what an answer must be right about."""
    far = reach * BELOW
    patterns = [(-far,) * queries, (far,) * queries, (far,) + (-far,) * (queries - 1)]
    if queries <= 3:
        patterns += itertools.product((-far, 0, far), repeat=queries)
    return max(continuous_failure(values, reach, threshold_scale, query_scale) for values in patterns)


def violations(alpha):
    """Whether the radius is too small, at each point of the grid."""
    for (first, second, beta), count in itertools.product(ALPHAS, (1, 2, 60)):
        reach = alpha(count, beta, first, second)
        yield worst_continuous_failure(count, reach, first, second) > beta


def corrected(queries, failure, threshold_scale, query_scale):
    return above_threshold_alpha(
        queries=queries, failure=failure, threshold_scale=threshold_scale, query_scale=query_scale
    )


def test_the_law_of_the_continuous_scan_is_that_of_a_fine_integer_one():
    mechanism = scan(Fraction(200), Fraction(400), False)
    for values in [(-300,), (-500, 600, -900), (700, 20, -650, 3)]:
        fine = failure(mechanism, values, 600)
        # An integer value more than 600 is one above 600.5, and one of -600 or less is below -599.5.
        near = continuous_failure(np.array(values) / 100, 6.0, 2.0, 4.0)
        assert near == pytest.approx(fine, abs=2e-3)


def test_no_continuous_scan_violates_the_radius():
    found = list(violations(corrected))
    assert len(found) == 54
    assert not any(found)


@pytest.mark.parametrize(
    "mutant",
    [
        lambda K, beta, bT, bn: corrected(K, beta, bT, bn) / 2,
        # The number of values forgotten, and the noise of the threshold forgotten.
        lambda K, beta, bT, bn: corrected(1, beta, bT, bn),
        lambda K, beta, bT, bn: bn * math.log(1 / beta),
    ],
    ids=["half", "one query", "no threshold noise"],
)
def test_a_radius_with_a_wrong_constant_is_noticed(mutant):
    assert any(violations(mutant))


def test_the_published_radius_holds_and_is_larger():
    for queries, beta, epsilon in itertools.product((1, 3, 200, 10**6), (0.01, 0.3), (0.1, 1, 20)):
        published = published_above_threshold_alpha(queries=queries, failure=beta, epsilon=epsilon)
        sharper = corrected(queries, beta, 2 / epsilon, 4 / epsilon)
        assert published == pytest.approx(8 * (math.log(queries) + math.log(2 / beta)) / epsilon)
        assert sharper == pytest.approx((6 * math.log(2 / beta) + 4 * math.log(queries)) / epsilon)
        assert sharper < published
        if queries <= 200:
            assert worst_continuous_failure(queries, published, 2 / epsilon, 4 / epsilon) <= beta


def test_the_radius_of_the_translation_is_false():
    alpha = published_translated_alpha(queries=1000, failure=0.05, epsilon=1)
    assert alpha == pytest.approx(4 * math.log(40) + math.log(1000))
    continuous = continuous_failure((-alpha * BELOW,) * 1000, alpha, 2.0, 4.0)
    # The same by the law that is sampled, in units of 1/100.
    law = AboveThreshold.general(Fraction(1, 100), 1, one_sided=False).law(
        np.full(1000, -math.ceil(100 * alpha)), 0
    )
    integer = -math.expm1(float(law.logpmf(1000)))
    assert continuous == pytest.approx(integer, abs=2e-3)
    assert 0.8 < continuous < 0.9
    # A few values are enough; one is not.
    worst = {}
    for queries in (1, 10, 100):
        alpha = published_translated_alpha(queries=queries, failure=0.05, epsilon=1)
        worst[queries] = worst_continuous_failure(queries, alpha, 2.0, 4.0)
    assert worst[1] < 0.05 < worst[10] < worst[100]


def test_a_failure_below_all_floats_is_read_exactly():
    tiny = Fraction(1, 10**500)
    found = above_threshold_alpha(queries=1, failure=tiny, threshold_scale=1, query_scale=1)
    assert found == pytest.approx(2 * (math.log(2) + 500 * math.log(10)))


HOSTILE = (math.nan, math.inf, -1, 0, "1", None, True, 10**400, [1])


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_hostile_numbers_are_refused_by_every_radius(value):
    scales = {"queries": 9, "failure": 0.1, "threshold_scale": 1, "query_scale": 1}
    budgets = {"queries": 9, "failure": 0.1, "epsilon": 1}
    for function, given in (
        (above_threshold_alpha, scales),
        (published_above_threshold_alpha, budgets),
        (published_translated_alpha, budgets),
    ):
        assert function(**given) > 0
        for name in given:
            with pytest.raises(InvalidParameter, match=name):
                function(**{**given, name: value})
