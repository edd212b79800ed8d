"""Local noise of one client: sensitivity twice the bound, calibrated on the exact curve."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.laws.fit import DETECTABLE, fit

from sfumato.audit import compare
from sfumato.errors import InvalidParameter
from sfumato.federated import LocalNoise, clip
from sfumato.laws import DiscreteGaussian, SeededBits, Shifted
from sfumato.privacy import ZCDP, ApproxDP, PureDP, compose, gaussian_delta, gaussian_vector_delta
from sfumato.privacy.gaussian import Part, log_parts_delta


def classical_sigma(epsilon, delta, sensitivity):
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@pytest.mark.parametrize("coordinates", [1, 2, 10**5])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-5), (10, 1e-5), (50, 1e-9)])
def test_two_updates_of_a_client_are_within_the_budget_and_less_noise_is_not_enough(
    epsilon, delta, coordinates
):
    noise = LocalNoise(budget=ApproxDP(epsilon, delta), bound=0.7, shapes=((coordinates,),))
    assert noise.event.sensitivity_squared == 4 * 2**40

    def curve(variance):
        if coordinates == 1:
            return gaussian_delta(epsilon, variance, shift=2 * 2**20)
        return gaussian_vector_delta(
            epsilon, sigma_squared=variance, sensitivity_squared=4 * 2**40, coordinates=coordinates
        )

    assert curve(noise.noise.sigma_squared) <= delta
    assert curve(noise.noise.sigma_squared * Fraction(999, 1000)) > delta


def test_the_classical_formula_would_break_the_promise_at_a_large_epsilon():
    wrong = Fraction(classical_sigma(10, 1e-5, 2.0) * 2**20) ** 2
    assert gaussian_delta(10, wrong, shift=2 * 2**20) == pytest.approx(2.27e-5, abs=5e-8)
    right = LocalNoise(budget=ApproxDP(10, 1e-5), bound=1, shapes=((1,),))
    assert gaussian_delta(10, right.noise.sigma_squared, shift=2 * 2**20) <= 1e-5
    assert right.sigma > classical_sigma(10, 1e-5, 2.0)


def test_no_two_updates_are_further_apart_than_the_event_says():
    noise = LocalNoise(budget=ZCDP(0.5), bound=1, shapes=((2,),), steps=3)
    values = (-5.0, -1.0, -0.6, 0.0, 0.8, 1.0, math.nan)
    sent = [
        clip([np.array(pair)], 1, shapes=((2,),), steps=3).integers
        for pair in itertools.product(values, repeat=2)
    ]
    furthest = max(
        Fraction(sum(int(k) ** 2 for k in one - other)) / (2 * noise.noise.sigma_squared)
        for one in sent
        for other in sent
    )
    assert furthest == noise.event.rho == Fraction(1, 2)
    found = compare(Shifted(noise.noise, np.array([3, 0])), Shifted(noise.noise, np.array([-3, 0])))
    assert float(noise.event.rho) * (1 - 1e-6) <= found.rho().lower <= float(noise.event.rho) * (1 + 1e-9)


def test_several_releases_of_one_client_share_the_budget():
    noise = LocalNoise(budget=ApproxDP(2, 1e-6), bound=1, shapes=((5,),), rounds=20)
    assert compose([noise.event] * 20, delta=1e-6).epsilon <= 2
    assert compose([noise.event] * 21, delta=1e-6).epsilon > 2


def test_noise_fits_its_law():
    noise = LocalNoise(budget=ApproxDP(1, 1e-5), bound=3, shapes=((100_000,),))
    update = [np.full(100_000, 2.0, dtype=np.float32)]
    released = noise.release(update, SeededBits(12))[0] / (3 / 2**20)
    draws = np.round(released).astype(np.int64) - clip(update, 3).integers
    assert np.abs(released - np.round(released)).max() < 1e-6
    variance = noise.noise.sigma_squared

    def family(scale):
        return lambda factor: DiscreteGaussian(variance * Fraction(scale * factor) ** 2)

    assert not fit(draws, family(1.0)).rejected
    assert fit(draws, family(1 + DETECTABLE)).rejected
    assert fit(draws, family(1 - DETECTABLE)).rejected


def test_an_update_that_cannot_be_used_is_noise_alone():
    noise = LocalNoise(budget=ApproxDP(1, 1e-5), bound=1, shapes=((2,), ()))
    zero = [np.zeros(2), np.array(0.0)]
    wanted = noise.release(zero, SeededBits(1))
    for update in (None, [np.array([np.nan, 0.0]), np.array(0.0)], [np.zeros(3), np.array(0.0)]):
        found = noise.release(update, SeededBits(1))
        assert all((one == other).all() for one, other in zip(found, wanted, strict=True))
    assert [array.shape for array in noise.release(zero)] == [(2,), ()]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"budget": PureDP(1)}, "budget must be an ApproxDP or a ZCDP"),
        ({"budget": None}, "budget must be an ApproxDP or a ZCDP"),
        ({"bound": 0}, "bound must be positive"),
        ({"shapes": ((0,),)}, "shapes must have at least one entry"),
        ({"rounds": 0}, "rounds must be in"),
        ({"steps": 0}, "steps must be in"),
    ],
)
def test_public_parameters_are_checked(changes, rule):
    given = {"budget": ApproxDP(1, 1e-5), "bound": 1, "shapes": ((2,),), **changes}
    with pytest.raises(InvalidParameter, match=f"^{rule}"):
        LocalNoise(**given)


@pytest.mark.parametrize("pair", [(0, 1e-5), (1, 0), (1, 1), (-1, 1e-5)])
def test_a_budget_of_nothing_is_no_budget(pair):
    with pytest.raises(InvalidParameter):
        LocalNoise(budget=ApproxDP(*pair), bound=1, shapes=((2,),))


def test_more_entries_than_the_proof_covers_are_refused_by_their_name():
    with pytest.raises(InvalidParameter, match=r"^shapes must have .* got 10000000 in each of 1000$"):
        LocalNoise(budget=ApproxDP(1, 1e-6), bound=1, shapes=((10**7,),), rounds=1000)


def test_on_a_coarse_lattice_the_entries_of_all_rounds_count():
    noise = LocalNoise(budget=ApproxDP(1, 1e-5), bound=1, shapes=((600,),), rounds=20, steps=4)

    def spent(variance):
        # A round follows earlier ones, so that they are not one vector that the data fix.
        return math.exp(log_parts_delta(Fraction(1), [Part(Fraction(20 * 8**2), variance, 20 * 600)]))

    assert spent(noise.noise.sigma_squared) <= 1e-5 < spent(noise.noise.sigma_squared * Fraction(999, 1000))
