"""The bounds behind a certificate, against mpmath: above the truth, near it, and not so without any part."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from tests.privacy.mixture_oracle import (
    CASES,
    gaussian_delta,
    laplace_density,
    laplace_loss,
    lattice_release,
    model,
    real,
)

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws.coins import exp_bounds
from sfumato.privacy import gaussian_delta as shift_delta
from sfumato.privacy import pufferfish_certificate, pufferfish_gaussian, pufferfish_laplace
from sfumato.privacy.pufferfish import Finite, Mixture, certify
from sfumato.privacy.pufferfish_couplings import coupling_failure
from sfumato.privacy.pufferfish_gaussian import gaussian_failure
from sfumato.privacy.pufferfish_laplace import finite_loss, in_units, largest_ratio, log_density

# For epsilon 1: the distance of a coupling that fails by 1e-3, the certified scale, sigma for delta 1e-5.
TABLE = {
    "shift": (2.000, (2.00, 2.02), 7.394),
    "wider": (4.090, (1.80, 1.836), 6.645),
    "mixtures": (4.163, (0.88, 0.900), 3.093),
    "shifted mixture": (1.000, (1.00, 1.01), 3.307),
}


# --- Laplace noise on mixtures --------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(30)])
def test_log_densities_err_by_less_than_the_slack_that_is_added(case, scale):
    left, right = CASES[case]
    one, other = (in_units(law, scale, left.means[0]) for law in (left, right))
    slack = pufferfish_laplace.rounding(one, other, 40 / float(scale))
    points = np.linspace(-20, 20, 41) / float(scale)
    with mp.workdps(40):
        for law, noisy in ((left, one), (right, other)):
            for x, found in zip(points, log_density(noisy, points), strict=True):
                place = mpf(float(x)) * real(scale) + real(left.means[0])
                assert (
                    abs(float(mp.log(laplace_density(law, scale, place) * real(scale)) - mpf(found))) < slack
                )
    assert slack < 1e-7


@pytest.mark.parametrize("case", CASES)
def test_densities_integrate_to_1(case):
    for law in CASES[case]:
        noisy = in_units(law, Fraction(1), Fraction(0))
        points, step = np.linspace(-80, 100, 180_001, retstep=True)
        assert np.exp(log_density(noisy, points)).sum() * step == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(9)])
def test_the_bound_is_above_the_exact_loss_and_near_it(case, scale):
    left, right = CASES[case]
    exact = laplace_loss(left, right, scale)
    bound = pufferfish_laplace.laplace_loss(left, right, scale, tolerance=exact / 1000)
    assert exact <= bound <= exact * 1.002
    assert pufferfish_laplace.laplace_loss(right, left, scale, tolerance=exact / 1000) == pytest.approx(
        bound, rel=1e-9
    )


def test_the_bound_falls_with_more_noise_and_vanishes_for_equal_laws():
    for left, right in CASES.values():
        scales = [Fraction(b, 4) for b in range(4, 40, 8)]
        bounds = [pufferfish_laplace.laplace_loss(left, right, b, tolerance=1e-3) for b in scales]
        assert bounds == sorted(bounds, reverse=True)
        assert pufferfish_laplace.laplace_loss(left, left, Fraction(1), tolerance=1e-6) == 0
        assert pufferfish_laplace.laplace_loss(left, left.shifted(1e-6), Fraction(1), tolerance=1e-3) < 2e-3


def sound(left, right, scale, tolerance=1e-3):
    """Whether the bound is above the truth: what the mutants below must fail."""
    return pufferfish_laplace.laplace_loss(left, right, scale, tolerance=tolerance) >= laplace_loss(
        left, right, scale
    )


def test_a_window_without_its_tails_is_noticed(monkeypatch):
    # Here the loss grows to the right for ever: nothing near the means shows it.
    left, right = CASES["wider"]
    monkeypatch.setattr(pufferfish_laplace, "_spans", lambda one, other: [(0.0, 1.0)])
    assert sound(left, right, Fraction(2))
    monkeypatch.setattr(pufferfish_laplace, "tail_loss", lambda *_: -math.inf)
    assert not sound(left, right, Fraction(2))


def test_a_grid_without_its_slack_is_noticed(monkeypatch):
    # The loss has a peak of slope 2 per scale at zero, between the points of the grid.
    left, right = Mixture.normal(0, 0.01), Mixture([0.5, 0.5], [-5, 5], [0.01, 0.01])
    assert sound(left, right, Fraction(2), tolerance=0.5)

    def at_points_only(value, spans, *_, **__):
        return max(float(value(np.linspace(low, high, 12)).max()) for low, high in spans)

    monkeypatch.setattr(pufferfish_laplace, "largest", at_points_only)
    assert not sound(left, right, Fraction(2), tolerance=0.5)


def test_the_maximum_of_a_function_of_slope_2_is_found_within_the_tolerance():
    peaks = np.random.default_rng(7).uniform(0, 10, 30)
    for peak in peaks:
        bound = pufferfish_laplace.largest(lambda x, p=peak: 3 - 2 * np.abs(x - p), [(0.0, 10.0)], 1e-4)
        assert 3 <= bound + 1e-12 <= 3 + 1e-4 + 1e-12


# --- the lattice -----------------------------------------------------------------------------------


def exact_lattice_loss(left, right, certificate, low, high):
    """The loss of the lattice release itself: all steps and outcomes, in 40 digits."""
    with mp.workdps(40):
        ratio = mp.exp(-real(certificate.granularity / certificate.scale))
        outcomes = range(low, high + 1)
        both = [
            lattice_release(law, certificate.granularity, lambda d: ratio ** abs(d), low, high, outcomes)
            for law in (left, right)
        ]
        return float(max(abs(mp.log(a / b)) for a, b in zip(*both, strict=True)))


def test_the_certificate_covers_rounding_to_a_coarse_lattice():
    left, right = CASES["mixtures"]
    found = certify(model(left, right), epsilon=1, method="laplace-certified", granularity=Fraction(1, 2))
    exact = exact_lattice_loss(left, right, found, -40, 60)
    assert exact <= found.epsilon <= 1
    assert found.epsilon - Fraction(1, 2) / found.scale <= exact * 1.01  # only the lattice is paid for


def test_leaving_out_the_lattice_is_noticed(monkeypatch):
    # Two narrow laws on either side of a rounding boundary: noise that hides 0.02 does not hide a step of 1.
    left, right = Mixture.normal(0.49, 0.001), Mixture.normal(0.51, 0.001)
    pair = model(left, right)
    found = certify(pair, epsilon=1, method="laplace-certified", granularity=1)
    assert found.scale == pytest.approx(1, rel=1e-2)
    forged = replace(found, scale=Fraction("0.02"))
    assert exact_lattice_loss(left, right, forged, -3, 4) == pytest.approx(50, rel=1e-2)

    def continuous(comparison, terms, *_):
        laws = comparison.left, comparison.right
        return Fraction(pufferfish_laplace.laplace_loss(*laws, terms.scale, tolerance=1e-3))

    monkeypatch.setattr(pufferfish_certificate, "_laplace", continuous)
    mutant = certify(pair, epsilon=1, method="laplace-certified", granularity=1)
    assert mutant.epsilon <= 1
    assert exact_lattice_loss(left, right, mutant, -3, 4) > 40


def test_steps_of_the_lattice_are_counted_upwards():
    left, right = Mixture.normal(0, 0.001), Mixture.normal(1.6, 0.001)
    found = certify(model(left, right), epsilon=1, method="wasserstein", granularity=1)
    assert found.scale == 2
    assert exact_lattice_loss(left, right, found, -4, 6) == pytest.approx(1, rel=1e-9)


# --- finite laws -----------------------------------------------------------------------------------


def enumerated(left, right, scale, far=30):
    """The largest ratio over all outcomes, each probability between two fractions."""
    bits, best = 400, Fraction(0)
    low, high = min(left.values[0], right.values[0]), max(left.values[-1], right.values[-1])
    for outcome in range(int(low) - far, int(high) + far + 1):
        sums = []
        for law in (left, right):
            powers = [(w, exp_bounds(abs(outcome - v) / scale, bits)) for v, w in law]
            sums.append((sum(w * p[0] for w, p in powers), sum(w * p[1] for w, p in powers)))
        best = max(best, Fraction(sums[0][0], sums[1][1]), Fraction(sums[1][0], sums[0][1]))
    return best


FINITE = [
    (Finite({1: 0.5, 2: 0.5}), Finite({0: 0.5, 1: 0.5})),
    (Finite({0: 1}), Finite({-5: 0.5, 5: 0.5})),
    (Finite({0: 0.1, 3: 0.2, 10: 0.7}), Finite({1: 0.9, 9: 0.1})),
    (Finite({0: Fraction(1, 10**9), 7: 1 - Fraction(1, 10**9)}), Finite({0: 1})),
]


@pytest.mark.parametrize(("left", "right"), FINITE)
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(50)])
def test_support_points_are_all_that_has_to_be_looked_at(left, right, scale):
    exact, found = enumerated(left, right, scale), largest_ratio(left, right, scale)
    assert exact <= found <= exact * (1 + Fraction(1, 2**90))
    assert finite_loss(left, right, scale) >= math.log(exact)
    assert finite_loss(left, left, scale) < 1e-9


def test_the_loss_of_finite_laws_falls_with_more_noise():
    for left, right in FINITE:
        losses = [finite_loss(left, right, Fraction(b, 5)) for b in range(1, 60, 3)]
        assert losses == sorted(losses, reverse=True)


# --- Gaussian noise --------------------------------------------------------------------------------


def exact_gaussian_failure(left, right, sigma, granularity, epsilon, low, high):
    with mp.workdps(40):
        width, outcomes = real(sigma / granularity), range(low, high + 1)
        total = mp.nsum(lambda k: mp.exp(-k * k / (2 * width * width)), [-mp.inf, mp.inf])
        noise = {d: mp.exp(-mpf(d * d) / (2 * width * width)) / total for d in range(high - low + 1)}
        both = [
            lattice_release(law, granularity, lambda d: noise[abs(d)], low, high, outcomes)
            for law in (left, right)
        ]
        factor = mp.exp(real(epsilon))
        sums = [sum(max(a - factor * b, 0) for a, b in zip(p, q, strict=True)) for p, q in (both, both[::-1])]
        return float(max(sums))


@pytest.mark.parametrize(("case", "sigma"), [("wider", Fraction(3)), ("mixtures", Fraction(5, 2))])
def test_the_failure_is_that_of_the_discrete_law(case, sigma):
    left, right = CASES[case]
    exact = exact_gaussian_failure(left, right, sigma, Fraction(1), Fraction(1), -60, 70)
    found = gaussian_failure(left, right, sigma=sigma, granularity=Fraction(1), epsilon=Fraction(1))
    assert exact <= found <= exact * (1 + 1e-8)


def test_the_failure_of_a_shift_on_the_lattice_is_that_of_the_gaussian_mechanism():
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
        found = gaussian_failure(
            Finite({0: 1}), Finite({3: 1}), sigma=Fraction(4), granularity=Fraction(1), epsilon=epsilon
        )
        assert found == pytest.approx(shift_delta(epsilon, sigma_squared=16, shift=3), rel=1e-8)


# --- all figures of the table ----------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_certificates_are_above_the_exact_loss_and_within_2_per_cent(case):
    left, right = CASES[case]
    _, (least, most), sigma = TABLE[case]
    pure = certify(model(left, right), epsilon=1, method="laplace-certified")
    exact = laplace_loss(left, right, pure.scale)
    assert exact <= pure.epsilon <= 1
    assert pure.epsilon <= exact * 1.02
    assert exact >= 0.98  # and no less noise would do
    assert least <= pure.scale <= most
    gaussian = certify(model(left, right), epsilon=1, delta=1e-5, method="gaussian-exact")
    assert gaussian.scale == pytest.approx(sigma, rel=2e-3)
    assert gaussian_delta(left, right, gaussian.scale, 1) == pytest.approx(float(gaussian.delta), rel=5e-3)
    assert gaussian_delta(left, right, gaussian.scale, Fraction("0.98")) > 1e-5


@pytest.mark.parametrize("case", CASES)
def test_the_coarser_grid_gives_the_published_scale(case):
    # A grid of a hundredth of the scale, as the table has it.
    left, right = CASES[case]
    most = Fraction(str(TABLE[case][1][1]))
    holds = [
        pufferfish_laplace.laplace_loss(left, right, most * share, tolerance=0.01) <= 1
        for share in (Fraction(101, 100), Fraction(99, 100))
    ]
    assert holds == [True, False]


@pytest.mark.parametrize("case", CASES)
def test_the_coupling_needs_the_published_distance(case):
    left, right = CASES[case]
    distance = TABLE[case][0]
    found = certify(model(left, right), epsilon=1, delta=1e-3, method="coupling")
    assert found.scale == pytest.approx(distance, abs=1.5e-3)
    assert found.delta <= Fraction(1, 1000)
    # The distance is a bound for every noise; the loss of Laplace noise itself is at most 1.
    assert laplace_loss(left, right, found.scale) <= 1
    failures = [coupling_failure(left, right, Fraction(d, 4)) for d in range(0, 40, 4)]
    assert failures == sorted(failures, reverse=True)


@pytest.mark.parametrize("method", ["laplace-certified", "gaussian-exact"])
def test_noise_is_measured_in_the_units_of_the_query(method):
    delta = 0 if method == "laplace-certified" else 1e-4
    left, right = CASES["wider"]
    scales = []
    for unit in (1, Fraction(1, 1000), 10**6):
        scaled = [
            Mixture(law.weights, [unit * m for m in law.means], [unit * s for s in law.deviations])
            for law in (left, right)
        ]
        found = certify(model(*scaled), epsilon=0.5, delta=delta, method=method)
        scales.append(found.scale / unit)
    for one, other in itertools.pairwise(scales):
        assert one == pytest.approx(float(other), rel=5e-3)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(10)])
def test_the_lattice_is_not_so_coarse_that_rounding_hides_the_secret(epsilon):
    # Noise far above the difference of the laws would allow steps that swallow it, and the query with it.
    left, right = CASES["wider"]
    found = certify(model(left, right), epsilon=epsilon, delta=1e-6, method="gaussian-exact")
    assert found.granularity <= Fraction(1, 4)
    assert gaussian_delta(left, right, found.scale, epsilon) == pytest.approx(float(found.delta), rel=1e-2)


RARE = Fraction(1, 10**12)
HARD = {
    "a shift far below the deviations": (Mixture.normal(0, 10**6), Mixture.normal(1, 10**6), (1, 1.01)),
    "a rare component far away": (
        Mixture([RARE, 1 - RARE], [1000, 0], [1, 1]),
        Mixture.normal(0, 1),
        (35.4, 35.6),
    ),
    "a rare component that is wide": (
        Mixture([RARE, 1 - RARE], [0, 0], [1000, 1]),
        Mixture.normal(0, 1),
        (133, 133.5),
    ),
    "deviations of 1e-6 and 1e6": (Mixture.normal(0, 1e-6), Mixture.normal(0, 10**6), (7.0e5, 7.1e5)),
    "groups 1e8 apart that move alike": (
        Mixture([0.5, 0.5], [0, 10**8], [1, 1]),
        Mixture([0.5, 0.5], [1, 10**8 + 1], [1, 1]),
        (1, 1.01),
    ),
    "groups 1e8 apart of other weights": (
        Mixture([0.5, 0.5], [0, 10**8], [1, 1]),
        Mixture([0.4, 0.6], [1, 10**8 + 1], [1, 1]),
        (1.28, 1.30),
    ),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_mixtures_get_noise_that_is_enough_and_hardly_more(case):
    left, right, (least, most) = HARD[case]
    pair = model(left, right)
    found = certify(pair, epsilon=1, method="laplace-certified")
    exact = laplace_loss(left, right, found.scale, digits=30)
    assert exact * (1 - 1e-12) <= found.epsilon <= 1
    assert found.epsilon <= exact * 1.02
    assert least <= found.scale <= most
    with pytest.raises(InvalidParameter):
        replace(found, scale=found.scale * Fraction(95, 100)).verify(pair)


def test_a_gap_that_is_not_looked_at_is_noticed(monkeypatch):
    # The second law has a component in the middle of the gap of the grid.
    left = Mixture([0.5, 0.5], [0, 100], [0.1, 0.1])
    right = Mixture([0.49, 0.02, 0.49], [0, 50, 100], [0.1, 0.1, 0.1])
    with monkeypatch.context() as patch:
        patch.setattr(pufferfish_laplace, "_spans", lambda *_: [(-5.0, 5.0), (95.0, 105.0)])
        assert sound(left, right, Fraction(1))
        patch.setattr(pufferfish_laplace, "gap_loss", lambda *_: 0.0)
        assert not sound(left, right, Fraction(1))
    assert sound(left, right, Fraction(1))


def test_noise_below_what_can_be_looked_at_is_refused_and_not_guessed():
    left, right = Mixture.normal(0, 1000), Mixture.normal(1, 1001)
    with pytest.raises(NotSupported, match="no certificate is found"):
        pufferfish_laplace.laplace_loss(left, right, Fraction(1, 10), tolerance=1e-3)
    with pytest.raises(NotSupported, match="no certificate is found"):
        pufferfish_laplace.laplace_loss(*CASES["shift"], Fraction(1), tolerance=0)


def test_the_loss_may_be_largest_near_the_means_however_wide_the_noise():
    # At epsilon 0.001 the noise is a thousand deviations wide; the worst outcome lies within one of them.
    left, right = CASES["wider"]
    found = certify(model(left, right), epsilon=Fraction(1, 1000), method="laplace-certified")
    with mp.workdps(30):
        points = [mpf(x) / 8 for x in range(-40, 8)]
        both = [[laplace_density(law, found.scale, x) for x in points] for law in (left, right)]
        exact = float(max(abs(mp.log(a / b)) for a, b in zip(*both, strict=True)))
    assert exact <= found.epsilon <= exact * 1.02


def test_laws_that_are_far_from_alike_are_certified_too():
    left, right = Mixture.normal(0, 0.001), Mixture.normal(0.01, 100)
    found = certify(model(left, right), epsilon=1, method="laplace-certified")
    exact = laplace_loss(left, right, found.scale)
    assert exact <= found.epsilon <= exact * 1.02


def test_a_gap_counts_the_mass_that_lies_inside_it():
    left, right = Mixture([0.5, 0.5], [0, 20], [1, 1]), Mixture.normal(0, 1)
    one, other = (in_units(law, Fraction(1), Fraction(0)) for law in (left, right))
    with mp.workdps(30):
        places = [mpf(x) / 2 for x in range(2, 49)]
        ratios = [laplace_density(left, 1, x) / laplace_density(right, 1, x) for x in places]
        exact = float(max(abs(mp.log(ratio)) for ratio in ratios))
    # Half of the far component lies beyond the right end of the first gap, and all of it inside the second.
    for end in (20.0, 24.0):
        inside = max(abs(float(mp.log(r))) for x, r in zip(places, ratios, strict=True) if x <= end)
        assert inside <= pufferfish_laplace.gap_loss(one, other, [(-9.0, 1.0), (end, end + 9)])
    assert exact > 10


def test_less_noise_than_the_largest_move_is_found_where_it_is_enough():
    # One part in ten moves by 10 and the others stay: the distance is 10, and the loss is far below 10 / b.
    left, right = Mixture([0.9, 0.1], [0, 0], [5, 5]), Mixture([0.9, 0.1], [0, 10], [5, 5])
    found = certify(model(left, right), epsilon=1, method="laplace-certified")
    assert found.scale < 9
    exact = laplace_loss(left, right, found.scale)
    assert exact <= found.epsilon <= exact * 1.02
    assert exact > 0.98


def test_what_is_cut_off_counts_as_failure_once_for_the_query_and_once_for_the_noise():
    law = pufferfish_gaussian.listed(CASES["wider"][0], Fraction(1))
    noise = pufferfish_gaussian.listed_noise(Fraction(3))
    assert min(law.lost, noise.lost) > 0
    assert pufferfish_gaussian._convolved(law, noise).lost == law.lost + noise.lost
