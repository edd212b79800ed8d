"""The divergences of the audit against brute force: every outcome, at 60 digits, or as exact fractions."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.audit import compare, divergence
from sfumato.audit.coordinates import comparison_key
from sfumato.errors import NotSupported
from sfumato.laws import (
    Bits,
    Clamped,
    DiscreteGaussian,
    DiscreteLaplace,
    Geometric,
    Joint,
    Point,
    Shifted,
)

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


def log_ratio(left, right):
    found = compare(left, right).epsilon()
    assert found.lower == found.upper
    return found.lower


def hockey_stick(left, right, epsilon):
    """A single number: the two bounds agree but for what is beyond the window, some 1e-14 in all."""
    found = compare(left, right).delta(epsilon)
    assert found.upper - found.lower <= 1e-9 * found.upper + 1e-13
    return found.lower


def laplace_exponent(left, right):
    return compare(left, right).exponent


def true_divergences(left, right, epsilon, reach=400):
    """Log ratio, hockey stick and the Rényi divergence of each order, from every outcome of a wide range."""
    outcomes = range(-reach, reach + 1)
    p, q = exact_law(left, outcomes), exact_law(right, outcomes)
    both = [(one, other) for one, other in zip(p, q, strict=True) if one or other]
    if any(not one or not other for one, other in both):
        ratio, renyi = mpmath.inf, [mpmath.inf] * len(ORDERS)
    else:
        ratio = max(abs(mpmath.log(one / other)) for one, other in both)
        renyi = [
            max(
                mpmath.log(mpmath.fsum(one**order * other ** (1 - order) for one, other in directed))
                / (order - 1)
                for directed in (both, [(other, one) for one, other in both])
            )
            for order in ORDERS
        ]
    factor = mpmath.exp(mpmath.mpf(epsilon))
    stick = max(
        mpmath.fsum(max(one - factor * other, 0) for one, other in directed)
        for directed in (both, [(other, one) for one, other in both])
    )
    return float(ratio), float(stick), [float(each) for each in renyi]


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
        found = compare(left, right)
        for order, true in zip(ORDERS, renyi, strict=True):
            low, high = found.renyi(order)
            # Where probabilities underflow, the lower bound is less than the truth, never more.
            assert low == pytest.approx(true, rel=1e-9) or (true > 20 * order and true / 2 < low <= true)
            assert high >= true * (1 - 1e-9)
        rho = found.rho()
        assert rho.lower >= max(t / o for t, o in zip(renyi, ORDERS, strict=True) if t < 20 * o) * (1 - 1e-6)
        assert rho.upper >= rho.lower
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
def test_the_rho_of_the_discrete_gaussian_is_found_from_below_and_proved_from_above(sigma_squared):
    noise, shift = DiscreteGaussian(sigma_squared), max(1, math.isqrt(int(sigma_squared)) // 2)
    rho = float(shift**2 / (2 * sigma_squared))
    found = compare(Shifted(noise, -3), Shifted(noise, shift - 3)).rho()
    assert 0.999 * rho <= found.lower <= rho * (1 + 1e-12)
    assert found.upper == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(37)), DiscreteGaussian(Fraction(10**4))], ids=repr
)
def test_the_truth_lies_between_merged_blocks_and_blocks_put_at_their_ends(noise, monkeypatch):
    left, right = (Joint((Shifted(noise, a), Shifted(noise, b))) for a, b in ((0, 10), (35, -5)))
    monkeypatch.setattr(divergence, "BLOCKS", 10**6)
    monkeypatch.setattr(divergence, "RENYI_BLOCKS", 10**6)
    fine = compare(left, right)
    stick, renyi = fine.delta(0.2), fine.renyi(4)
    assert stick.exact
    for blocks, near in ((41, 0.9), (201, 0.99), (2001, 0.9999)):
        monkeypatch.setattr(divergence, "BLOCKS", blocks)
        monkeypatch.setattr(divergence, "RENYI_BLOCKS", blocks)
        coarse = compare(left, right)
        for found, true in ((coarse.delta(0.2), stick.lower), (coarse.renyi(4), renyi.lower)):
            assert found.lower <= true * (1 + 1e-12)
            assert found.lower >= near * true
            assert found.upper >= true * (1 - 1e-12)
        assert coarse.delta(0.2).upper <= true_above(near) * stick.upper


def test_blocks_that_are_merged_above_as_well_are_noticed(monkeypatch):
    noise = DiscreteGaussian(Fraction(10**4))
    left, right = Shifted(noise, np.array([0, 0])), Shifted(noise, np.array([35, 15]))
    stick = compare(left, right).delta(0.2)
    monkeypatch.setattr(divergence, "BLOCKS", 41)
    assert compare(left, right).delta(0.2).upper >= stick.upper
    monkeypatch.setattr(divergence.listed, "split", lambda p, q, least, most: divergence._log_pair(p, q))
    assert compare(left, right).delta(0.2).upper < stick.lower


def true_above(near):
    """The upper bound may miss by three times as much: mass at two ends is further off than in the middle."""
    return 1 + 3 * (1 - near)


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_any_number_of_coordinates_has_a_hockey_stick_between_two_near_bounds(count):
    # Large Gaussians are as good as continuous: only the distance of the centers matters.
    noise = DiscreteGaussian(Fraction(10**12))
    one = compare(Shifted(noise, 0), Shifted(noise, 200_000)).delta(0.1)
    each = round(200_000 / math.sqrt(count))
    many = compare(Shifted(noise, np.zeros(count, int)), Shifted(noise, np.full(count, each))).delta(0.1)
    assert many.lower <= one.upper * (1 + 1e-5)
    assert many.upper >= one.lower * (1 - 1e-5)
    assert many.upper - many.lower < 1e-3 * many.upper


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
    assert compare(left, right).renyi(2).lower == pytest.approx(np.log((p**2 / q).sum()), rel=1e-9)


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
    assert compare(left, right).rho() == compare(right, left).rho() == (math.inf, math.inf)
    assert compare(left, right).delta(600).lower > 0
    assert log_ratio(right, left) == math.inf


def test_equal_laws_are_at_distance_zero():
    vector = Shifted(DiscreteLaplace(Fraction(2)), np.array([1, 2, 3]))
    for law in (Point(3), vector, Joint((vector, Point(1)))):
        found = compare(law, law)
        assert log_ratio(law, law) == hockey_stick(law, law, 0.1) == found.rho().upper == 0
        assert found.worst_outcome is None
        assert comparison_key(law, law) == ()


def test_noise_of_two_scales_at_one_center_is_told_apart():
    narrow, wide = (Shifted(DiscreteLaplace(Fraction(scale)), np.array([5, 5])) for scale in (1, 2))
    # The tails of the wider law are heavier without limit.
    assert log_ratio(narrow, wide) == math.inf
    assert compare(narrow, wide).delta(0.1).lower > 0.1
    # The higher orders of the wider law have no end.
    assert compare(narrow, wide).rho().lower > 0.1


def test_a_distance_beyond_all_floats_is_large_and_raises_nothing():
    noise = DiscreteGaussian(Fraction(4))
    left, right = Shifted(noise, 0), Shifted(noise, 2**31)
    assert compare(left, right).rho().lower > 10
    assert hockey_stick(left, right, 5.0) == pytest.approx(1, rel=1e-12)


def test_a_comparison_depends_on_the_difference_of_the_centers_and_the_ends_only():
    noise = DiscreteLaplace(Fraction(2))
    assert comparison_key(Shifted(noise, 3), Shifted(noise, 4)) == comparison_key(
        Shifted(noise, 9), Shifted(noise, 10)
    )
    assert comparison_key(Shifted(noise, 3), Shifted(noise, 4)) != comparison_key(
        Shifted(noise, 4), Shifted(noise, 3)
    )
    ends = [
        comparison_key(Clamped(Shifted(noise, c), 0, 9), Clamped(Shifted(noise, c + 1), 0, 9)) for c in (1, 2)
    ]
    assert ends[0] != ends[1]


class Unknown:
    """A law of which nothing is known but single probabilities."""

    def logpmf(self, outcome):
        return -abs(outcome)

    def sample(self, bits: Bits):
        return 0


def test_a_law_that_can_be_neither_listed_nor_taken_apart_is_refused():
    for law in (Unknown(), Joint((Unknown(),))):
        with pytest.raises(NotSupported, match="Unknown cannot be audited"):
            compare(law, Joint((Point(1),)) if isinstance(law, Joint) else Point(1))
