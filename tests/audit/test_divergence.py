"""The divergences of the audit against brute force: every outcome, at 60 digits, or as exact fractions."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.audit.divergence import (
    comparison,
    concentrated,
    hockey_stick,
    laplace_exponent,
    log_ratio,
)
from sfumato.errors import NotSupported
from sfumato.laws import Choice, Clamped, DiscreteGaussian, DiscreteLaplace, Geometric, Joint, Point, Shifted

mpmath.mp.dps = 60
ORDERS = (1.5, 2, 4, 32)


def exact_law(law, outcomes):
    """Probabilities at 60 digits, from the definitions of the laws and not from their code."""
    if isinstance(law, Clamped):
        inner = exact_law(law.law, outcomes)
        masses = dict.fromkeys(outcomes, mpmath.mpf(0))
        for outcome, mass in zip(outcomes, inner, strict=True):
            at = outcome if law.lower is None else max(outcome, law.lower)
            masses[at if law.upper is None else min(at, law.upper)] += mass
        return list(masses.values())
    if isinstance(law, Point):
        return [mpmath.mpf(outcome == law.value) for outcome in outcomes]
    if isinstance(law.noise, DiscreteLaplace):
        rate = mpmath.mpf(law.noise.scale.denominator) / law.noise.scale.numerator
        weights = [mpmath.exp(-rate * abs(outcome - law.center)) for outcome in outcomes]
    else:
        rate = mpmath.mpf(law.noise.sigma_squared.denominator) / (2 * law.noise.sigma_squared.numerator)
        weights = [mpmath.exp(-rate * (outcome - law.center) ** 2) for outcome in outcomes]
    total = mpmath.fsum(weights)
    return [weight / total for weight in weights]


def true_divergences(left, right, epsilon, reach=400):
    """Log ratio, hockey stick and Rényi over order, from every outcome of a wide range."""
    outcomes = range(-reach, reach + 1)
    p, q = exact_law(left, outcomes), exact_law(right, outcomes)
    both = [(one, other) for one, other in zip(p, q, strict=True) if one or other]
    if any(not one or not other for one, other in both):
        ratio = renyi = mpmath.inf
    else:
        ratio = max(abs(mpmath.log(one / other)) for one, other in both)
        renyi = max(
            mpmath.log(mpmath.fsum(one**order * other ** (1 - order) for one, other in directed))
            / ((order - 1) * order)
            for order in ORDERS
            for directed in (both, [(other, one) for one, other in both])
        )
    factor = mpmath.exp(mpmath.mpf(epsilon))
    stick = max(
        mpmath.fsum(max(one - factor * other, 0) for one, other in directed)
        for directed in (both, [(other, one) for one, other in both])
    )
    return float(ratio), float(stick), float(renyi)


LAPLACE = [Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(10)]
GAUSSIAN = [Fraction(1, 4), Fraction(1), Fraction(1369, 100), Fraction(100)]
NOISES = [*map(DiscreteLaplace, LAPLACE), *map(DiscreteGaussian, GAUSSIAN)]
CLAMPS = [None, (0, None), (0, 5), (None, 3), (-2, 30)]


def clamped(law, ends):
    return law if ends is None else Clamped(law, *ends)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("ends", CLAMPS, ids=str)
def test_divergences_of_scalar_laws_are_those_of_brute_force(noise, ends):
    for start, step, epsilon in ((0, 1, 0.5), (2, 1, 0.05), (1, 3, 1.0)):
        left, right = (clamped(Shifted(noise, center), ends) for center in (start, start + step))
        ratio, stick, renyi = true_divergences(left, right, epsilon)
        assert hockey_stick(left, right, epsilon) == pytest.approx(stick, rel=1e-9, abs=1e-18)
        # Where probabilities underflow, what is reported is less than the truth, never more.
        if renyi < 20:
            assert concentrated(left, right) == pytest.approx(renyi, rel=1e-9)
        else:
            assert renyi / 2 < concentrated(left, right) <= renyi * (1 + 1e-9)
        if isinstance(noise, DiscreteGaussian) and (ends is None or None in ends):
            assert log_ratio(left, right) == math.inf
        else:
            assert log_ratio(left, right) == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize(
    ("distance", "delta"), [(1, 0.00169596), (3, 0.13943357)], ids=["one apart", "three apart"]
)
def test_the_hockey_stick_of_the_discrete_gaussian_has_its_known_values(distance, delta):
    noise = DiscreteGaussian(Fraction(37, 10) ** 2)
    stick = hockey_stick(Shifted(noise, 0), Shifted(noise, distance), 0.6)
    assert stick == pytest.approx(delta, abs=5e-9)


@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_the_hockey_stick_of_laplace_noise_has_its_closed_form(scale):
    # P(o <= 0) - e^epsilon Q(o <= 0) with the boundary outcome taken if its ratio is above e^epsilon.
    r, epsilon = math.exp(-1 / scale), 0.3
    noise = DiscreteLaplace(scale)
    closed = max(1 / (1 + r) - math.exp(epsilon) * r / (1 + r), 0.0)
    assert hockey_stick(Shifted(noise, 7), Shifted(noise, 8), epsilon) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("sigma_squared", [Fraction(4), Fraction(100), Fraction(10**12)], ids=str)
def test_the_renyi_divergence_of_the_discrete_gaussian_is_at_most_its_rho_and_near_it(sigma_squared):
    noise, shift = DiscreteGaussian(sigma_squared), max(1, math.isqrt(int(sigma_squared)) // 2)
    rho = float(shift**2 / (2 * sigma_squared))
    amount = concentrated(Shifted(noise, -3), Shifted(noise, shift - 3))
    assert 0.999 * rho <= amount <= rho * (1 + 1e-12)


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(37)), DiscreteGaussian(Fraction(10**4))], ids=repr
)
def test_merged_outcomes_give_at_most_the_truth_and_nearly_the_truth(noise, monkeypatch):
    left, right = (Joint((Shifted(noise, a), Shifted(noise, b))) for a, b in ((0, 10), (35, -5)))
    listed = {"LISTED": {1: 10**6, 2: 2_000, 3: 100}, "LISTED_RENYI": 10**6}
    with monkeypatch.context() as patch:
        for name, limits in listed.items():
            patch.setattr(f"sfumato.audit.divergence.{name}", limits)
        stick, renyi = hockey_stick(left, right, 0.2), concentrated(left, right)
    with monkeypatch.context() as patch:
        patch.setattr("sfumato.audit.divergence.LISTED", {1: 101, 2: 41, 3: 11})
        patch.setattr("sfumato.audit.divergence.LISTED_RENYI", 301)
        coarse_stick, coarse_renyi = hockey_stick(left, right, 0.2), concentrated(left, right)
    for fine, merged in ((stick, coarse_stick), (renyi, coarse_renyi)):
        assert 0.95 * fine <= merged <= fine * (1 + 1e-12)
    for fine, merged in ((stick, hockey_stick(left, right, 0.2)), (renyi, concentrated(left, right))):
        assert 0.995 * fine <= merged <= fine * (1 + 1e-12)


def test_divergences_of_independent_coordinates_are_those_of_the_product_law():
    noise = DiscreteLaplace(Fraction(3, 2))
    left, right = Shifted(noise, np.array([0, 4, 9])), Shifted(noise, np.array([1, 4, 7]))
    outcomes = range(-60, 61)
    p, q = (
        np.multiply.outer(*(np.array(exact_law(Shifted(noise, c), outcomes), dtype=float) for c in centers))
        for centers in ((0, 9), (1, 7))
    )
    assert log_ratio(left, right) == pytest.approx(np.abs(np.log(p / q)).max(), rel=1e-9)
    assert laplace_exponent(left, right) == 2
    stick = max(np.maximum(a - np.exp(0.7) * b, 0).sum() for a, b in ((p, q), (q, p)))
    assert hockey_stick(left, right, 0.7) == pytest.approx(stick, rel=1e-9)
    renyi = np.log((p**2 / q).sum()) / 2
    assert concentrated(left, right) >= renyi * (1 - 1e-9)


def test_the_exponent_of_laplace_noise_is_an_exact_fraction():
    noise = DiscreteLaplace(Fraction(3, 7))
    assert laplace_exponent(Shifted(noise, 0), Shifted(noise, 10**30)) == Fraction(7 * 10**30, 3)
    inside = Clamped(Shifted(noise, 0), 0, 5), Clamped(Shifted(noise, 4), 0, 5)
    assert laplace_exponent(*inside) == Fraction(28, 3)
    assert log_ratio(*inside) == pytest.approx(28 / 3, rel=1e-12)


def test_no_exponent_is_claimed_where_the_noise_is_of_another_kind_or_a_center_is_clamped_away():
    noise = DiscreteLaplace(Fraction(2))
    wider = DiscreteLaplace(Fraction(3))
    gaussian = DiscreteGaussian(Fraction(2))
    assert laplace_exponent(Shifted(noise, 0), Shifted(wider, 1)) is None
    assert laplace_exponent(Shifted(gaussian, 0), Shifted(gaussian, 1)) is None
    outside = Clamped(Shifted(noise, 5), 0, 4), Clamped(Shifted(noise, 9), 0, 4)
    assert laplace_exponent(*outside) is None
    assert 0 < log_ratio(*outside) <= 2


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Point(3), Point(4)),
        (
            Clamped(Shifted(DiscreteLaplace(Fraction(2)), 3), 0, 6),
            Clamped(Shifted(DiscreteLaplace(2), 3), 0, 7),
        ),
        (Clamped(Shifted(DiscreteGaussian(9), 3), 0, 6), Clamped(Shifted(DiscreteGaussian(9), 3), 0, 7)),
        (Shifted(DiscreteLaplace(Fraction(2)), 0), Point(0)),
        (Shifted(Geometric(Fraction(2)), 0), Shifted(Geometric(Fraction(2)), 1)),
        (
            Joint((Shifted(DiscreteLaplace(2), 5), Point(3))),
            Joint((Shifted(DiscreteLaplace(2), 5), Point(2))),
        ),
    ],
    ids=["points", "clamped Laplace", "clamped Gaussian", "exact answer", "one-sided", "size released"],
)
def test_an_outcome_that_only_one_law_can_give_is_an_infinite_loss(left, right):
    assert log_ratio(left, right) == math.inf
    assert concentrated(left, right) == math.inf
    assert hockey_stick(left, right, 600.0) > 0
    assert log_ratio(right, left) == concentrated(right, left) == math.inf


def test_equal_laws_are_at_distance_zero():
    vector = Shifted(DiscreteLaplace(Fraction(2)), np.array([1, 2, 3]))
    for law in (Point(3), vector, Joint((vector, Point(1)))):
        assert log_ratio(law, law) == hockey_stick(law, law, 0.1) == concentrated(law, law) == 0
        assert comparison(law, law) == ()


def test_noise_of_two_scales_at_one_center_is_told_apart():
    narrow, wide = (Shifted(DiscreteLaplace(Fraction(scale)), np.array([5, 5])) for scale in (1, 2))
    # The tails of the wider law are heavier without limit.
    assert log_ratio(narrow, wide) == math.inf
    assert hockey_stick(narrow, wide, 0.1) > 0.1
    assert concentrated(narrow, wide) > 0.1


def test_a_distance_beyond_all_floats_is_large_and_raises_nothing():
    noise = DiscreteGaussian(Fraction(4))
    left, right = Shifted(noise, 0), Shifted(noise, 2**31)
    assert concentrated(left, right) > 10
    assert hockey_stick(left, right, 5.0) == pytest.approx(1, rel=1e-12)


def test_a_comparison_depends_on_the_difference_of_the_centers_and_the_ends_only():
    noise = DiscreteLaplace(Fraction(2))
    assert comparison(Shifted(noise, 3), Shifted(noise, 4)) == comparison(
        Shifted(noise, 9), Shifted(noise, 10)
    )
    assert comparison(Shifted(noise, 3), Shifted(noise, 4)) != comparison(
        Shifted(noise, 4), Shifted(noise, 3)
    )
    ends = [
        comparison(Clamped(Shifted(noise, c), 0, 9), Clamped(Shifted(noise, c + 1), 0, 9)) for c in (1, 2)
    ]
    assert ends[0] != ends[1]


def test_laws_without_a_center_are_refused():
    choice = Choice([1, 2, 3])
    for law in (choice, Joint((choice,))):
        for divergence in (log_ratio, concentrated, laplace_exponent):
            with pytest.raises(NotSupported, match="cannot be audited"):
                divergence(law, Joint((Point(1),)) if isinstance(law, Joint) else Point(1))


def test_more_than_three_changed_coordinates_have_no_hockey_stick():
    noise = DiscreteGaussian(Fraction(4))
    with pytest.raises(NotSupported, match="3 coordinates"):
        hockey_stick(Shifted(noise, np.zeros(4, dtype=int)), Shifted(noise, np.ones(4, dtype=int)), 1.0)
