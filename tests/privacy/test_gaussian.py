"""The curve of discrete Gaussian noise: never under the exact sum over outcomes, and hardly above it."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import pytest
from tests.privacy import oracle
from tests.privacy.hostile import NOT_NUMBERS, NOT_POSITIVE

from sfumato.errors import InvalidParameter
from sfumato.privacy import gaussian
from sfumato.privacy.gaussian import Part, gaussian_delta, gaussian_vector_delta


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(50):
        yield


def test_known_values_of_the_discrete_law():
    assert gaussian_delta(0.6, 3.7**2, 1) == pytest.approx(0.00169596, abs=5e-9)
    assert gaussian_delta(0.6, 3.7**2, 3) == pytest.approx(0.13943357, abs=5e-9)


def test_the_continuous_formula_understates_the_discrete_delta():
    for shift, continuous in ((1, 0.00167164), (3, 0.13934090)):
        assert float(oracle.continuous_delta(0.6, shift / mp.mpf("3.7"))) == pytest.approx(
            continuous, abs=5e-9
        )
        assert gaussian_delta(0.6, 3.7**2, shift) > continuous + 2e-5


@pytest.mark.parametrize("epsilon", [0, 1e-6, 0.1, 1, 3, 10, 50])
@pytest.mark.parametrize("sigma_squared", [0.01, 0.3, 1, 7.5, 90])
@pytest.mark.parametrize("shift", [1, 2, 7, 40])
def test_delta_is_the_sum_over_outcomes(epsilon, sigma_squared, shift):
    # Enough outcomes that the pair is complete wherever it counts, for losses up to epsilon.
    reach = int(60 * sigma_squared / shift) + int(25 * math.sqrt(sigma_squared)) + shift + 5
    exact = oracle.hockey_stick(
        oracle.shifted_pair(oracle.gaussian_law(sigma_squared, reach), shift), epsilon
    )
    found = mp.mpf(gaussian_delta(epsilon, sigma_squared, shift))
    assert found >= exact
    if exact > mp.mpf(10) ** -300:
        assert found <= exact * (1 + mp.mpf(10) ** -8)


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "5"])
@pytest.mark.parametrize("ratio", ["0.0001", "0.01", "0.3", "1", "3", "8"])
def test_the_integral_form_covers_the_sum_and_agrees_with_it(epsilon, ratio):
    sigma = 13_000  # just where both forms are affordable
    shift = max(1, int(sigma * float(ratio)))
    arguments = Fraction(epsilon), Fraction(sigma**2), shift
    start = math.floor(arguments[0] * arguments[1] / shift - Fraction(shift, 2)) + 1
    first = max(start, -40 * sigma)
    by_sum = gaussian._log_sum(*arguments, first, 20 * sigma + max(0, -first), first > start)
    by_integral = gaussian._log_integral(*arguments)
    assert by_integral >= by_sum - 1e-12
    if by_sum > -700:
        assert by_integral <= by_sum + 2e-5


@pytest.mark.parametrize("ratio", [1e-7, 1e-5, 1e-4, 3e-4, 1e-2, 1, 6, 30])
@pytest.mark.parametrize("start", [-3, -0.5, 0, 0.7, 3, 12, 37, 55])
def test_the_continuous_curve_is_accurate_in_logarithms(ratio, start):
    epsilon = Fraction(str(ratio)) * Fraction(str(start)) + Fraction(str(ratio)) ** 2 / 2
    if epsilon < 0:
        return
    with mp.workdps(700):
        truth = mp.log(oracle.continuous_delta(epsilon, oracle.real(ratio)))
    found = gaussian._log_continuous(float(epsilon), ratio)
    assert abs(found - truth) <= 1e-8
    assert gaussian._up(found) >= truth


def test_far_out_the_continuous_curve_is_an_upper_bound():
    with mp.workdps(1200):
        for ratio in (1e-3, 0.1):
            epsilon = 70 * Fraction(str(ratio))
            truth = mp.log(oracle.continuous_delta(epsilon, oracle.real(ratio)))
            assert truth <= gaussian._log_continuous(float(epsilon), ratio) <= truth + 2.2


def test_large_scales_agree_with_the_continuous_curve():
    for exponent in (20, 50, 190):
        shift = 2**exponent
        found = gaussian_delta(1, Fraction(37306, 10000) ** 2 * shift**2, shift)
        truth = oracle.continuous_delta(1, 1 / mp.mpf("3.7306"))
        assert found == pytest.approx(float(truth), rel=1e-8)


def test_smaller_shifts_cost_less():
    deltas = [gaussian_delta(0.5, 20, shift) for shift in range(1, 30)]
    assert deltas == sorted(deltas)


def test_delta_falls_with_epsilon():
    for sigma_squared, shift in ((3, 1), (3, 9), (Fraction(2**60), 2**29)):
        deltas = [gaussian_delta(Fraction(k, 10), sigma_squared, shift) for k in range(60)]
        assert all(later <= earlier for earlier, later in pairwise(deltas))


def test_a_delta_below_the_smallest_float_is_not_reported_as_zero():
    assert 0 < gaussian_delta(50, 900, 1) < 1e-320


@pytest.mark.parametrize("epsilon", [0.3, 1])
@pytest.mark.parametrize(("sigma_squared", "shift"), [(9, (2, 1)), (9, (1, 1)), (60, (3, 4)), (60, (5, 0))])
def test_the_vector_bound_covers_two_dimensional_sums(epsilon, sigma_squared, shift):
    law = oracle.gaussian_law(sigma_squared, reach=int(9 * math.sqrt(sigma_squared)))
    with mp.workdps(20):
        pair = oracle.product_pair(*(oracle.shifted_pair(law, entry) for entry in shift))
        exact = oracle.hockey_stick(pair, epsilon)
    part = Part(Fraction(sum(entry**2 for entry in shift)), Fraction(sigma_squared), 2)
    by_rounding = math.exp(gaussian.log_rounded_delta(Fraction(str(epsilon)), [part]))
    both = gaussian_vector_delta(
        epsilon, sigma_squared=sigma_squared, sensitivity_squared=part.sensitivity_squared, coordinates=2
    )
    assert exact <= both <= by_rounding * (1 + 1e-12)
    if sigma_squared == 60:
        assert by_rounding <= 1.35 * float(exact)


def test_the_bound_for_several_vectors_covers_their_exact_composition():
    pieces = [(3, 40), (2, 90), (5, 60)]  # shift and squared scale
    distributions = []
    for shift, sigma_squared in pieces:
        law = oracle.gaussian_law(sigma_squared, reach=int(9 * math.sqrt(sigma_squared)))
        pair = oracle.shifted_pair(law, shift)
        distributions.append(oracle.losses([(p, q) for p, q in pair if p > 0 and q > 0]))
    parts = [Part(Fraction(shift**2), Fraction(sigma_squared), 1) for shift, sigma_squared in pieces]
    with mp.workdps(25):
        two = oracle.compose_losses(*distributions[:2])
        for epsilon in (Fraction(1, 2), Fraction(3, 2)):
            exact = oracle.delta_of_losses(two, epsilon)
            assert exact <= math.exp(gaussian.log_rounded_delta(epsilon, parts[:2])) <= 1.6 * exact
            more = oracle.delta_of_losses(oracle.compose_losses(distributions[2]), epsilon)
            assert math.exp(gaussian.log_rounded_delta(epsilon, parts)) > max(exact, more)


def test_the_vector_bound_tends_to_the_continuous_curve():
    for coordinates in (2, 50, 1000):
        found = gaussian_vector_delta(
            1, sigma_squared=Fraction(14 * 2**40), sensitivity_squared=2**40, coordinates=coordinates
        )
        truth = float(oracle.continuous_delta(1, 1 / mp.sqrt(14)))
        assert truth <= found <= truth * (1 + 1e-6)


def test_the_rounded_gaussian_brackets_the_discrete_one_as_the_proof_says():
    # Theorem 3 rests on these two inequalities between single probabilities.
    for sigma_squared in (1, 2.5, 30):
        variance = oracle.real(sigma_squared)
        sigma, law = mp.sqrt(variance), oracle.gaussian_law(sigma_squared)
        theta = 3 * mp.exp(-2 * mp.pi**2 * variance)
        for k in range(int(6 * sigma)):
            rounded = mp.ncdf((k + mp.mpf(1) / 2) / sigma) - mp.ncdf((k - mp.mpf(1) / 2) / sigma)
            assert law[k] <= rounded * mp.exp(1 / (24 * variance))
            assert rounded <= law[k] * (1 + theta) * mp.exp(mp.mpf(k * k) / (24 * variance**2))


@pytest.mark.parametrize("value", [*NOT_POSITIVE, *NOT_NUMBERS, 1e-300, 1e300], ids=repr)
def test_hostile_parameters_are_refused(value):
    with pytest.raises(InvalidParameter, match="sigma_squared must be"):
        gaussian_delta(1, value, 1)
    with pytest.raises(InvalidParameter, match="shift must be"):
        gaussian_delta(1, 1, value)
    with pytest.raises(InvalidParameter, match="coordinates must be"):
        gaussian_vector_delta(1, sigma_squared=1, sensitivity_squared=1, coordinates=value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1, 1001, 1e300], ids=repr)
def test_hostile_epsilons_are_refused(value):
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        gaussian_delta(value, 1, 1)


def log_by_lemma_two(epsilon, sigma_squared, shift):
    """log of the continuous delta and an eighth of the variation, part by part as the proof has them."""
    sigma = mp.sqrt(oracle.real(sigma_squared))
    m = shift / sigma
    z = oracle.real(epsilon) / m - m / 2
    corner, highest, bend = mp.exp(-z * z / 2), mp.exp(-(max(z, 0) ** 2) / 2), 4 * mp.exp(-mp.mpf(1) / 2)
    if z >= -1:
        places = sorted({z, mp.mpf(max(z, 1)), mp.mpf(max(z, 5)), mp.mpf(max(z, 5)) + 15})
        inner = mp.quad(lambda y: abs(y * y - 1) * mp.exp(-y * y / 2) * (y - z), places)
        bend = min(bend, m * inner) if z < 1 else m * inner
    turn = 2 * m * highest if z >= 0 else min(4 * m, 2 * mp.exp(-mp.mpf(1) / 2))
    variation = (bend + turn + m * highest + m * corner) / sigma
    total = sigma * mp.sqrt(2 * mp.pi)
    return mp.log(oracle.continuous_delta(epsilon, m) + variation / 8 / total)


@pytest.mark.parametrize("ratio", ["0.001", "0.2", "0.5", "1", "2.5", "6"])
@pytest.mark.parametrize("place", ["-2.5", "-0.9", "-0.3", "0.4", "0.97", "1.5", "4"])
def test_the_integral_form_is_that_of_the_proof_part_by_part(ratio, place):
    # A small sigma, at which the four parts of the error show; the code never uses the form there.
    shift = 3
    sigma = shift / Fraction(ratio)
    epsilon = Fraction(ratio) * Fraction(place) + Fraction(ratio) ** 2 / 2
    if epsilon < 0:
        return
    with mp.workdps(30):
        exact = log_by_lemma_two(epsilon, sigma**2, shift)
        assert abs(gaussian._log_integral(epsilon, sigma**2, shift) - exact) <= 1e-8


def log_by_theorem_three(epsilon, parts):
    """log of the bound by rounded Gaussians, as the theorem states it."""

    def curve(limit):
        start = limit / distance - distance / 2
        return mp.ncdf(-start) - mp.exp(limit) * mp.ncdf(-start - distance)

    epsilon = oracle.real(epsilon)
    scales = [oracle.real(part.sigma_squared) for part in parts]
    squares = [oracle.real(part.sensitivity_squared) for part in parts]
    counts = [part.coordinates for part in parts]
    together = list(zip(scales, squares, counts, strict=True))
    distance = mp.sqrt(mp.fsum(square / scale for scale, square, _ in together))
    c = mp.fsum(k / (24 * scale) for scale, _, k in together)
    tau = curve(epsilon) / 2**24
    n = c + 2 * mp.sqrt(-mp.log(tau) * mp.fsum(k / (24 * scale) ** 2 for scale, _, k in together))
    n += -2 * mp.log(tau) / (24 * min(scales))
    reach = mp.fsum(
        (mp.sqrt(square) + mp.sqrt(k) / 2) ** 2 / scale / (24 * scale) for scale, square, k in together
    )
    theta = mp.fsum(3 * k * mp.exp(-2 * mp.pi**2 * scale) for scale, _, k in together)
    left = epsilon - c - (mp.sqrt(reach) + mp.sqrt(n)) ** 2 - theta
    return c + mp.log(curve(left) + tau) if left > 0 else mp.mpf(0)


@pytest.mark.parametrize(
    "parts",
    [
        [(16, 40, 3)],
        [(1, 30, 1), (400, 900, 7)],
        [(900, 900, 2), (4, 25, 2), (1, 100, 50)],
        [(1, 1, 1)],
        [(10**6, 14 * 10**6, 9)],
    ],
    ids=str,
)
@pytest.mark.parametrize("epsilon", [Fraction(3, 2), 4, 10])
def test_the_rounded_bound_is_that_of_the_theorem(parts, epsilon):
    noisy = [Part(Fraction(square), Fraction(scale), count) for square, scale, count in parts]
    with mp.workdps(60):
        exact = min(log_by_theorem_three(epsilon, noisy), 0)
        found = gaussian.log_rounded_delta(Fraction(epsilon), noisy)
        # The epsilon that is used up is rounded up by 1e-9 of it, which counts at a steep curve.
        assert exact <= found <= exact + 1e-6
    assert any(gaussian.log_rounded_delta(Fraction(e), noisy) < -1 for e in (4, 10))


def test_logarithms_of_probabilities_are_rounded_up_by_little_and_never_above_zero():
    assert gaussian._up(1.0) == gaussian._up(0.0) == gaussian._up(-1e-12) == 0
    for value in (-1e-6, -1.0, -50.0, -1e5):
        assert value + 0.9e-9 <= gaussian._up(value) <= value + 1.1e-9 + 2e-15 * abs(value)


def test_the_sum_is_used_as_long_as_its_terms_are_few_and_then_the_integral(monkeypatch):
    lengths = []
    plain = gaussian._log_sum

    def counted(epsilon, sigma_squared, shift, first, count, cut):
        lengths.append((count, cut))
        return plain(epsilon, sigma_squared, shift, first, count, cut)

    monkeypatch.setattr(gaussian, "_log_sum", counted)
    # In the centre fifty sigmas, and all from the first term to zero; further out fewer.
    gaussian_delta(1, 100, 10)
    assert lengths.pop() == (50 * 10 + 100, False)
    gaussian_delta(100, 100, 10)
    start = math.floor(Fraction(100 * 100, 10) - 5) + 1
    assert lengths.pop() == (math.ceil(500 / (start / 10) + 100), False)
    gaussian_delta(0, 100, 100)
    assert lengths.pop() == (500 + 49 + 100, False)
    gaussian_delta(0, 100, 10**6)
    assert lengths.pop() == (500 + 400 + 100, True)
    gaussian_delta(0, 2600**2, 1)
    assert lengths.pop() == (50 * 2600 + 100, False)
    gaussian_delta(0, 2700**2, 1)
    assert not lengths
