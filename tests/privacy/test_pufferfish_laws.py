"""Laws of a query given a secret: what they accept, how far apart they are, conditionals of a model."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import multivariate_normal, norm

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.privacy.pufferfish import Finite, JointMixture, Mixture, VectorMixture
from sfumato.privacy.pufferfish_couplings import coupling_failure, feasible, infinity_distance
from sfumato.privacy.pufferfish_laws import common_step

THIRD = Fraction(1, 3)


# --- what they accept ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "means", "deviations", "rule"),
    [
        ([], [], [], "weights must be 1 to 200 numbers"),
        ([0.6, 0.3], [0, 1], [1, 1], "weights must sum to 1 exactly, got 0.9"),
        ([0.3333, 0.3333, 0.3333], [0, 1, 2], [1, 1, 1], "weights must sum to 1 exactly"),
        ([1, 0], [0, 1], [1, 1], "weights must be positive"),
        ([1.5, -0.5], [0, 1], [1, 1], "weights must be positive"),
        ([1], [0, 1], [1], "means must be 1 numbers, got 2"),
        ([1], [0], [0], "deviations must be positive"),
        ([1], [0], [-1], "deviations must be positive"),
        ([1], [float("nan")], [1], "means must be finite"),
    ],
)
def test_a_mixture_that_is_no_law_is_refused(weights, means, deviations, rule):
    with pytest.raises(InvalidParameter, match=f"^{rule}"):
        Mixture(weights, means, deviations)


def test_numbers_are_read_exactly():
    assert Mixture([0.1, 0.9], [0.1, 0], [1, 2]).weights == (Fraction(1, 10), Fraction(9, 10))
    assert Mixture([THIRD] * 3, [0, 1, 2], [1, 1, 1]).mean == 1
    assert Finite({0.1: 0.5, 0.3: 0.5}).mean == Fraction(1, 5)


@pytest.mark.parametrize(
    ("given_", "rule"),
    [
        ({}, "probabilities must be a mapping"),
        ([1, 2], "probabilities must be a mapping"),
        ({0: 0.5, 1: 0.4}, "probabilities must sum to 1 exactly, got 0.9"),
        ({0: 1, 1: 0}, "probabilities must be positive"),
        ({1: 0.5, Fraction(1): 0.25, 2: 0.5}, "probabilities must sum"),
        ({0.1: 0.5, Fraction(1, 10): 0.5}, "probabilities must name every value once"),
    ],
)
def test_a_finite_law_that_is_none_is_refused(given_, rule):
    with pytest.raises(InvalidParameter, match=f"^{rule}"):
        Finite(given_)


@pytest.mark.parametrize(
    ("means", "covariances", "rule"),
    [
        ([[0, 0]], [[[1, 2], [2, 1]]], "positive definite"),
        ([[0, 0]], [[[1, 0.5], [0.4, 1]]], "symmetric"),
        ([[0, 0]], [[[1, 0]]], "matrices of 2 rows"),
        ([[0, 0]], [], "as many as weights"),
        ([[0, 0]], [[[1, 1], [1, 1]]], "away from singular"),
    ],
)
def test_a_matrix_that_is_no_covariance_is_refused(means, covariances, rule):
    with pytest.raises(InvalidParameter, match=rule):
        VectorMixture([1], means, covariances)


def test_values_are_rounded_to_the_nearest_step_and_halves_go_up():
    law = Finite({Fraction(-1, 2): 0.25, Fraction(1, 2): 0.25, Fraction(7, 5): 0.5})
    assert dict(law.rounded(Fraction(1))) == {0: Fraction(1, 4), 1: Fraction(3, 4)}
    assert common_step([Finite({0: 0.5, Fraction(3, 4): 0.5}), Finite({Fraction(1, 2): 1})]) == Fraction(1, 4)
    assert common_step([Finite({0: 1})]) == 1


# --- how far apart -------------------------------------------------------------------------------


def laws_on_the_line():
    weights = st.lists(st.integers(1, 5), min_size=1, max_size=4)
    values = st.lists(st.integers(-6, 6), min_size=4, max_size=4, unique=True)
    return st.builds(
        lambda w, v: Finite({v[k]: Fraction(w[k], sum(w)) for k in range(len(w))}), weights, values
    )


def smallest_bottleneck(left, right):
    """The distance by brute force: the smallest value such that a coupling within it is feasible."""
    sums = np.vstack([np.kron(np.eye(len(left.values)), np.ones(len(right.values)))])
    sums = np.vstack([sums, np.kron(np.ones(len(left.values)), np.eye(len(right.values)))])
    margins = [float(w) for w in (*left.weights, *right.weights)]
    for reach in sorted({abs(a - b) for a, b in itertools.product(left.values, right.values)}):
        open_ = [(0, None if abs(a - b) <= reach else 0) for a in left.values for b in right.values]
        if linprog(np.zeros(len(open_)), A_eq=sums, b_eq=margins, bounds=open_).status == 0:
            return reach
    raise AssertionError


@settings(max_examples=40, deadline=None)
@given(laws_on_the_line(), laws_on_the_line())
def test_the_quantile_coupling_is_the_best_bottleneck(left, right):
    assert (
        infinity_distance(left, right) == smallest_bottleneck(left, right) == infinity_distance(right, left)
    )


def test_components_are_matched_within_their_deviation():
    left = Mixture([0.3, 0.7], [0, 10], [1, 3])
    assert infinity_distance(left, left.shifted(1)) == 1
    assert infinity_distance(left, left) == 0
    # In another order, and split in two: still the same law.
    assert infinity_distance(left, Mixture([0.35, 0.3, 0.35], [10, 0, 10], [3, 1, 3])) == 0
    assert infinity_distance(left, Mixture([0.4, 0.6], [0, 10], [1, 3])) is None
    assert infinity_distance(Mixture.normal(0, 1), Mixture.normal(1, 2)) is None
    with pytest.raises(NotSupported, match="queries of one number"):
        infinity_distance(VectorMixture([1], [[0]], [[[1]]]), VectorMixture([1], [[0]], [[[1]]]))


def test_a_rounded_plan_becomes_an_exact_coupling():
    rows, columns = (THIRD, 2 * THIRD), (Fraction(1, 7), Fraction(6, 7))
    for plan in (
        [[0.2, 0.2], [0.5, 0.5]],
        [[0, 0], [0, 0]],
        [[-1e-9, 0.34], [0.143, 0.53]],
        [[9, 9], [9, 9]],
    ):
        found = feasible(np.array(plan, dtype=float), np.ones((2, 2)), rows, columns)
        assert all(share >= 0 for share in found)
        assert (found[0] + found[1], found[2] + found[3]) == rows
        assert (found[0] + found[2], found[1] + found[3]) == columns


def test_the_failure_of_a_coupling_is_that_of_the_monge_map():
    narrow, wide = Mixture.normal(0, 1), Mixture.normal(1, 2)
    for distance in (0, 1, 2, 4, 7):
        exact = norm.sf(distance - 1) + norm.cdf(-distance - 1)
        found = float(coupling_failure(narrow, wide, Fraction(distance)))
        assert exact <= found <= exact * (1 + 1e-9)
    # Monotone in the distance, 0 and 1 where components only move.
    shifted = [coupling_failure(narrow, narrow.shifted(2), Fraction(d)) for d in (1, 2, 3)]
    assert shifted == [1, 0, 0]


def test_a_vector_moves_no_further_than_its_bound_says():
    generator = np.random.default_rng(20260501)
    s, t = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, -0.25], [-0.25, 1.5]])
    left, right = VectorMixture([1], [[0, 0]], [s]), VectorMixture([1], [[1, 1]], [t])
    values, vectors = np.linalg.eigh(s)
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    values, vectors = np.linalg.eigh(root @ t @ root)
    inner = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    optimal = np.linalg.inv(root) @ inner @ np.linalg.inv(root)
    assert np.allclose(optimal @ s @ optimal.T, t)  # the map does carry one law to the other
    x = generator.multivariate_normal([0, 0], s, 100_000)
    moved = np.linalg.norm(np.array([1, 1]) + x @ optimal.T - x, axis=1)
    for distance in (2, 2.5, 3):
        assert (moved > distance).mean() <= float(coupling_failure(left, right, Fraction(distance))) < 1
    assert coupling_failure(left, right, Fraction(1)) == 1  # shorter than the way between the means
    same = VectorMixture([1], [[3, 4]], [s])
    assert [coupling_failure(left, same, Fraction(d)) for d in (4, 5)] == [1, 0]


# --- conditionals of a model ----------------------------------------------------------------------


MODEL = JointMixture(
    [0.4, 0.6],
    [[0, 1, 2], [3, -1, 0.5]],
    [
        [[1, 0.5, 0.25], [0.5, 2, 0.5], [0.25, 0.5, 1]],
        [[2, -0.5, 0.5], [-0.5, 1, 0.25], [0.5, 0.25, 1.5]],
    ],
)


def density(law, x):
    return sum(
        float(w) * norm.pdf(x, float(m), float(s))
        for w, m, s in zip(law.weights, law.means, law.deviations, strict=True)
    )


def conditional_density(model, index, value, coefficients, x):
    """The joint density of the record and the query, divided by that of the record."""
    pick = np.zeros((2, len(coefficients)))
    pick[0, index], pick[1] = 1, coefficients
    records, joint, alone = model.records, 0.0, 0.0
    for w, mean, cov in zip(records.weights, records.means, records.covariances, strict=True):
        mean, cov = pick @ np.array(mean, dtype=float), pick @ np.array(cov, dtype=float) @ pick.T
        joint += float(w) * multivariate_normal.pdf([value, x], mean, cov)
        alone += float(w) * norm.pdf(value, mean[0], np.sqrt(cov[0, 0]))
    return joint / alone


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("value", [-1.5, 2])
def test_the_law_given_a_record_is_the_ratio_of_densities(index, value):
    law = MODEL.given(index, value).of([1, 2, -0.5])
    assert sum(law.weights) == 1
    for x in np.linspace(-8, 8, 9):
        assert density(law, x) == pytest.approx(
            conditional_density(MODEL, index, value, [1, 2, -0.5], x), rel=1e-9, abs=1e-300
        )


def test_one_component_moves_by_the_regression_and_keeps_its_variance():
    records = JointMixture([1], [[0, 0, 0]], [[[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]]])
    low, high = (records.given(0, value).of([1, 1, 1]) for value in (0, 1))
    assert low.deviations == high.deviations
    # Twice as far as the record's own coefficient, which is what ignoring the correlation would give.
    assert infinity_distance(low, high) == 2
    alone = JointMixture([1], [[0, 0, 0]], [np.eye(3).tolist()])
    assert infinity_distance(*(alone.given(0, value).of([1, 1, 1]) for value in (0, 1))) == 1


def test_a_secret_is_a_value_of_one_record():
    with pytest.raises(NotSupported, match="an interval has no bound here"):
        MODEL.given(0, (0, 1))
    with pytest.raises(InvalidParameter, match=r"^index must be in \[0, 2\]"):
        MODEL.given(3, 0)
    with pytest.raises(InvalidParameter, match=r"^coefficients must be 3 numbers, got 2"):
        MODEL.given(0, 0).of([1, 1])
    with pytest.raises(NotSupported, match="no variance given the secret"):
        MODEL.given(0, 0).of([1, 0, 0])


def test_a_record_far_away_still_gives_a_law():
    law = MODEL.given(0, 200).of([0, 1, 0])
    assert sum(law.weights) == 1
    assert min(law.weights) > 0


def test_numbers_that_floats_cannot_hold_are_refused():
    least = Fraction(1, 10**400)
    with pytest.raises(InvalidParameter, match=r"^weights must be zero or from 1e-100"):
        Mixture([least, 1 - least], [0, 1], [1, 1])
    with pytest.raises(InvalidParameter, match=r"^value must be zero or from 1e-100"):
        MODEL.given(0, 10**200)
