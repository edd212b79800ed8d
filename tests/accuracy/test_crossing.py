"""The radius of a scan: never violated by exact laws, never below the sharper one of the mechanism."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accuracy import above_threshold_radius
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
