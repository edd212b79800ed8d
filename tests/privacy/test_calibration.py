"""Calibrations: the promise is kept on the exact law, and a little less noise would break it."""

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy import oracle
from tests.privacy.hostile import HOSTILE

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.privacy.calibration import gaussian_delta, gaussian_sigma_squared, laplace_scale
from sfumato.privacy.conversions import zcdp_delta, zcdp_rho
from sfumato.privacy.definitions import ZCDP, ApproxDP, PureDP
from sfumato.privacy.events import GaussianEvent, LaplaceEvent
from sfumato.privacy.gaussian import gaussian_vector_delta

# epsilon, delta, sigma of the continuous analytic calibration for sensitivity 1.
ANALYTIC = [
    (0.1, 1e-6, 36.305),
    (0.5, 1e-5, 7.0318),
    (1, 1e-5, 3.7306),
    (2, 1e-5, 1.9938),
    (10, 1e-5, 0.49989),
]


def classical_sigma_squared(epsilon, delta, shift):
    """The formula of the textbooks, valid below epsilon 1 only: the mutant that these tests must catch."""
    return Fraction(2 * math.log(1.25 / delta) * shift**2 / epsilon**2)


def exact_delta(epsilon, sigma_squared, shift):
    sigma = math.sqrt(sigma_squared)
    reach = int(float(epsilon) * float(sigma_squared) / shift + shift + 30 * sigma) + 5
    with mp.workdps(40):
        law = oracle.gaussian_law(sigma_squared, reach)
        return oracle.hockey_stick(oracle.shifted_pair(law, shift), epsilon)


def keeps_the_promise(sigma_squared, epsilon, delta, shift):
    return exact_delta(epsilon, sigma_squared, shift) <= oracle.real(delta)


@given(st.integers(1, 2**60), st.fractions(min_value=Fraction(1, 10**12), max_value=10**6).filter(bool))
def test_the_laplace_scale_costs_exactly_epsilon(sensitivity, epsilon):
    assert LaplaceEvent(sensitivity, laplace_scale(sensitivity, epsilon)).pure_epsilon == epsilon


@given(st.integers(1, 10**9), st.fractions(min_value=Fraction(1, 10**6), max_value=100).filter(bool))
def test_the_zcdp_calibration_is_exact(square, rho):
    sigma_squared = gaussian_sigma_squared(ZCDP(rho), sensitivity_squared=square, coordinates=2)
    assert GaussianEvent(square, sigma_squared, 2).rho == rho


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 4, 12])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("shift", [1, 3])
def test_the_discrete_law_keeps_the_promise_and_less_noise_would_not(epsilon, delta, shift):
    found = gaussian_sigma_squared(ApproxDP(epsilon, delta), sensitivity_squared=shift**2, coordinates=1)
    if found < 3000:  # brute force affords it
        assert keeps_the_promise(found, epsilon, delta, shift)
        assert not keeps_the_promise(found * (1 - Fraction(1, 10**6)), epsilon, delta, shift)
    else:
        assert gaussian_delta(epsilon, found, shift) <= delta
        assert gaussian_delta(epsilon, found * (1 - Fraction(1, 10**6)), shift) > delta


@pytest.mark.parametrize("shift", [2**20, 2**40, 2**50])
@pytest.mark.parametrize(("epsilon", "delta", "sigma"), ANALYTIC)
def test_on_a_fine_lattice_sigma_is_that_of_balle_and_wang(epsilon, delta, sigma, shift):
    found = gaussian_sigma_squared(ApproxDP(epsilon, delta), sensitivity_squared=shift**2, coordinates=1)
    ratio = math.sqrt(found) / shift
    assert ratio == pytest.approx(sigma, rel=2e-5)  # the digits of the table
    with mp.workdps(40):
        exact = mp.findroot(
            lambda s: mp.log(oracle.continuous_delta(epsilon, 1 / s) / oracle.real(delta)), sigma
        )
    assert ratio == pytest.approx(float(exact), rel=1e-6)


def test_the_classical_formula_is_caught():
    # At epsilon 10 it promises 1e-5 and gives 2.27e-5 on a fine lattice; our own value keeps the promise.
    shift = 1000
    mutant = classical_sigma_squared(10, 1e-5, shift)
    assert gaussian_delta(10, mutant, shift) == pytest.approx(2.27e-5, rel=3e-3)
    assert not keeps_the_promise(mutant, 10, 1e-5, shift)
    ours = gaussian_sigma_squared(ApproxDP(10, 1e-5), sensitivity_squared=shift**2, coordinates=1)
    assert keeps_the_promise(ours, 10, 1e-5, shift)


def test_the_continuous_calibration_would_break_the_promise_on_a_coarse_lattice():
    # Balle and Wang's 1.9938 for epsilon 2: too little for whole numbers that move by 1.
    assert not keeps_the_promise(Fraction("1.9938") ** 2, 2, 1e-5, 1)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1, 50, 300])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-12, 1e-5, 0.5])
@pytest.mark.parametrize("shift", [1, 1000, 2**50])
def test_extreme_targets_are_met_without_waste(epsilon, delta, shift):
    budget = ApproxDP(epsilon, delta)
    found = gaussian_sigma_squared(budget, sensitivity_squared=shift**2, coordinates=1)
    assert gaussian_delta(epsilon, found, shift) <= delta * (1 + 1e-9)
    assert gaussian_delta(epsilon, found * (1 - Fraction(1, 10**6)), shift) > delta
    assert found <= Fraction(shift**2) / (2 * zcdp_rho(epsilon, delta)) * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("coordinates", [2, 10, 1000])
@pytest.mark.parametrize(("epsilon", "delta", "sigma"), ANALYTIC)
def test_vectors_on_a_fine_lattice_need_no_more_than_the_continuous_noise(epsilon, delta, sigma, coordinates):
    square = Fraction(2**40)
    found = gaussian_sigma_squared(
        ApproxDP(epsilon, delta), sensitivity_squared=square, coordinates=coordinates
    )
    assert math.sqrt(found / square) == pytest.approx(sigma, rel=2e-5)
    assert found < square / (2 * zcdp_rho(epsilon, delta)) * Fraction(95, 100)
    reached = gaussian_vector_delta(
        epsilon, sigma_squared=found, sensitivity_squared=square, coordinates=coordinates
    )
    assert reached <= delta


def test_vectors_that_follow_earlier_noise_fall_back_on_zcdp_on_a_coarse_lattice():
    found = gaussian_sigma_squared(ApproxDP(2, 1e-5), sensitivity_squared=2, coordinates=2, one_vector=False)
    assert found == pytest.approx(2 / (2 * zcdp_rho(2, 1e-5)), rel=1e-6)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 2, 7, 300], ids=str)
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
@pytest.mark.parametrize(("square", "coordinates"), [(2, 2), (3, 3), (50, 2)])
def test_what_falls_back_on_zcdp_is_checked_against_its_curve_too(epsilon, delta, square, coordinates):
    found = gaussian_sigma_squared(
        ApproxDP(epsilon, delta), sensitivity_squared=square, coordinates=coordinates, one_vector=False
    )
    if found >= square / (2 * zcdp_rho(epsilon, delta)) * Fraction(999_999, 1_000_000):
        assert zcdp_delta(square / (2 * found), epsilon) <= delta


def test_variances_are_short_numbers():
    for shift in (1, 7, 2**30):
        found = gaussian_sigma_squared(ApproxDP(1, 1e-5), sensitivity_squared=shift**2, coordinates=1)
        odd = found.numerator
        while odd % 2 == 0:
            odd //= 2
        assert odd < 2**24
        assert found.denominator & (found.denominator - 1) == 0


@pytest.mark.parametrize("value", [*HOSTILE, 1.5], ids=repr)
def test_hostile_sensitivities_and_coordinates_are_refused(value):
    with pytest.raises(InvalidParameter, match="sensitivity must be"):
        laplace_scale(value, 1)
    with pytest.raises(InvalidParameter, match="coordinates must be"):
        gaussian_sigma_squared(ZCDP(1), sensitivity_squared=1, coordinates=value)


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("budget", [ZCDP(1), ApproxDP(1, 1e-5)], ids=repr)
def test_hostile_squares_and_epsilons_are_refused(value, budget):
    with pytest.raises(InvalidParameter, match="sensitivity_squared must be"):
        gaussian_sigma_squared(budget, sensitivity_squared=value, coordinates=2)
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        laplace_scale(1, value)


@pytest.mark.parametrize(
    ("budget", "square", "rule"),
    [
        (ApproxDP(1e-300, 1e-5), 1, "epsilon must be in"),
        (ApproxDP(1e300, 1e-5), 1, "epsilon must be in"),
        (ApproxDP(1, 1e-301), 1, "delta must be at least"),
        (ApproxDP(1, 1e-5), 2, "square of a whole number"),
        (ZCDP(1), 2, "square of a whole number"),
        (ApproxDP(1, 1e-5), Fraction(1, 4), "square of a whole number"),
        (ApproxDP(1, 1e-5), 1e300, "sensitivity_squared must be at most"),
        (PureDP(1), 1, "budget must be an ApproxDP or a ZCDP"),
        (1.0, 1, "budget must be an ApproxDP or a ZCDP"),
    ],
    ids=repr,
)
def test_what_cannot_be_calibrated_is_refused_with_the_rule(budget, square, rule):
    with pytest.raises(InvalidParameter, match=rule):
        gaussian_sigma_squared(budget, sensitivity_squared=square, coordinates=1)


def test_a_scale_beyond_the_limits_is_not_supported():
    with pytest.raises(NotSupported, match="sigma_squared must stay in"):
        gaussian_sigma_squared(ApproxDP(1e-6, 1e-5), sensitivity_squared=2**400, coordinates=1)
