"""The parts of the composition of bounded noise, each against sums that are written out."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.laws import BoundedNoise
from sfumato.privacy import bounded_losses
from sfumato.privacy.bounded_losses import Grid, composed, delta_of, last_outcome, loss

LAWS = [BoundedNoise(bound, power) for bound, power in ((9, 1), (40, 2), (41, 3), (300, 1))]
every_law = pytest.mark.parametrize("law", LAWS, ids=repr)


def probabilities(law, places):
    return np.exp(law.logpmf(np.asarray(places)))


@every_law
@pytest.mark.parametrize("shift", [1, 3])
def test_the_loss_is_the_logarithm_of_the_ratio_of_probabilities(law, shift):
    places = np.arange(-law.bound + 1, law.bound - shift)
    ratios = law.logpmf(places) - law.logpmf(places + shift)
    np.testing.assert_allclose(loss(law, shift, places.astype(np.float64)), ratios, rtol=1e-9, atol=1e-9)


@every_law
@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("mass", [1e-3, 1e-9, 0.2])
def test_above_the_last_outcome_is_at_most_the_mass_and_no_earlier_one_has_this(law, shift, mass):
    last = last_outcome(law, shift, mass)
    assert last <= law.bound - 1 - shift
    if last < law.bound - 1 - shift:
        assert law.sf(last) <= mass * (1 + 1e-12)
        assert last == 0 or law.sf(last - 1) > mass


@pytest.mark.parametrize("power", [1, 2, 3])
def test_losses_of_thousands_count_as_infinite(power):
    law, shift = BoundedNoise(10**5, power), 90_000
    last = last_outcome(law, shift, 1e-9)
    ends = bounded_losses.excess(np.array([last + shift, last + shift + 1.0]), law.bound, power)
    assert ends[0] <= 5000 < ends[1]


@pytest.mark.parametrize(
    ("first", "last"), [(0, 0), (-3, 4), (0, 4095), (0, 4096), (0, 10**5), (-(10**6), 7)]
)
def test_some_places_hold_both_ends_and_are_not_too_many(first, last):
    places = bounded_losses._some(first, last)
    assert (places[0], places[-1]) == (first, last)
    assert (np.diff(places) > 0).all() or first == last
    assert len(places) <= 2 * 4096 + 2
    if last - first < 8192:
        assert places.tolist() == list(range(first, last + 1))


@every_law
def test_outcomes_come_in_chunks_without_gap_or_overlap(law, monkeypatch):
    first, last = -law.bound + 1, law.bound - 3
    whole = list(bounded_losses._losses(law, 2, first, last))
    assert len(whole) == 1
    np.testing.assert_allclose(whole[0][0], probabilities(law, range(first, last + 1)), rtol=1e-11)
    monkeypatch.setattr(bounded_losses, "_CHUNK", 5)
    pieces = list(bounded_losses._losses(law, 2, first, last))
    assert len(pieces) == math.ceil((last - first + 1) / 5)
    for place in (0, 1):
        assert np.concatenate([piece[place] for piece in pieces]).tolist() == whole[0][place].tolist()


def grid_of(law, shift=1, mass=1e-9):
    last = last_outcome(law, shift, mass)
    first = max(-last - shift, -law.bound + 1)
    return bounded_losses._on_grid(law, shift, first, last), first, last


@every_law
@pytest.mark.parametrize("shift", [1, 3])
def test_the_grid_keeps_the_mass_under_both_data_sets(law, shift):
    grid, first, last = grid_of(law, shift)
    places = np.arange(first, last + 1)
    assert (grid.masses > 0).all()
    assert (np.diff(grid.cells) > 0).all()
    assert grid.masses.sum() == pytest.approx(law.cdf(last), rel=1e-12)
    losses = loss(law, shift, places.astype(np.float64))
    assert grid.losses[0] == grid.lowest == losses[0]
    assert losses[-1] <= grid.losses[-1] <= losses[-1] + 2 * grid.step
    other = probabilities(law, places + shift).sum() + law.cdf(first - 1) * math.exp(-grid.lowest)
    assert grid.masses @ np.exp(-grid.losses) == pytest.approx(other, rel=1e-10)
    spread = math.sqrt(probabilities(law, places) @ losses**2 / probabilities(law, places).sum())
    assert grid.step == pytest.approx(spread / 64, rel=1e-9)


def test_there_is_no_grid_for_one_loss_or_for_outcomes_that_floats_lose():
    law = BoundedNoise(9, 2)
    assert bounded_losses._on_grid(law, 1, 3, 3) is None
    far = BoundedNoise(2000, 3)
    assert bounded_losses._on_grid(far, 1, 1995, 1997) is None


SMALL = Grid(-0.9, 0.25, np.array([0, 2, 3, 5, 9]), np.array([0.1, 0.2, 0.3, 0.25, 0.1]))


def sums(grid, count):
    """The law of the sum of so many losses, as counted cells: mass of each cell."""
    one = np.zeros(grid.cells[-1] + 1)
    one[grid.cells] = grid.masses
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, one)
    return count * grid.lowest + grid.step * np.arange(len(total)), total


@pytest.mark.parametrize("rate", [-1.0, 0.0, 0.5, 3.0])
def test_a_tilt_is_a_probability_vector_with_its_mean_and_spread(rate):
    tilt = bounded_losses._tilt(SMALL, rate)
    weights = SMALL.masses * np.exp(rate * SMALL.losses)
    assert tilt.rate == rate
    assert tilt.log_mean == pytest.approx(math.log(weights.sum()), abs=1e-14)
    weights /= weights.sum()
    np.testing.assert_allclose(tilt.masses, weights, rtol=1e-13)
    assert tilt.mean == pytest.approx(weights @ SMALL.losses)
    assert tilt.spread == pytest.approx(math.sqrt(weights @ SMALL.losses**2 - (weights @ SMALL.losses) ** 2))


@pytest.mark.parametrize("mean", [-0.5, 0.1, 0.4, 1.0, 1.3])
@pytest.mark.parametrize("start", [None, 0.3, 8.0])
def test_a_tilt_is_found_for_every_mean_above_that_of_no_tilt(mean, start):
    begin = None if start is None else bounded_losses._tilt(SMALL, start)
    tilt = bounded_losses._tilted_to(SMALL, mean, 1e-6, begin)
    plain = bounded_losses._tilt(SMALL, 0.0)
    assert tilt.rate >= 0
    if mean <= plain.mean and start is None:
        assert tilt.rate == 0
    if mean > plain.mean:
        assert abs(tilt.mean - mean) <= 1e-6 * tilt.spread


@pytest.mark.parametrize("count", [2, 3, 7, 20])
@pytest.mark.parametrize("epsilon", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("rate", [0.0, 0.7])
def test_the_window_and_what_is_above_it_cover_the_exact_sum_closely(count, epsilon, rate):
    losses, masses = sums(SMALL, count)
    above = losses > epsilon
    exact = float(masses[above] @ -np.expm1(epsilon - losses[above]))
    tilt = bounded_losses._tilt(SMALL, rate)
    body, beyond = composed(SMALL, tilt, count, epsilon, 1 << 10)
    assert exact <= body + beyond
    assert body + beyond <= exact * (1 + 1e-9) + 1e-13
    # A window that is too short folds mass in, and what is above it is bounded.
    short, outside = composed(SMALL, tilt, count, epsilon, 64)
    assert exact <= (short + outside) * (1 + 1e-12)


def test_a_tilt_whose_weights_overflow_proves_nothing():
    tilt = bounded_losses._tilt(SMALL, 60.0)
    assert composed(SMALL, tilt, 50, 0.0, 256) == (1.0, 0.0)


@pytest.mark.parametrize("count", [2, 9, 30])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_the_bound_above_a_sum_is_chernoffs_and_holds(count, share):
    losses, masses = sums(SMALL, count)
    top = losses[0] + share * (losses[-1] - losses[0])
    exact = float(masses[losses >= top - 1e-12].sum())
    found = bounded_losses._above(SMALL, bounded_losses._tilt(SMALL, 0.2), count, top)
    assert exact <= found <= 1
    rates = np.linspace(0, 30, 3001)
    best = min(math.exp(min(0.0, count * bounded_losses._tilt(SMALL, r).log_mean - r * top)) for r in rates)
    assert found <= 1.3 * best


def test_sums_that_are_far_above_epsilon_almost_surely_are_all_counted():
    high = Grid(3.0, 0.25, SMALL.cells, SMALL.masses)
    everything = SMALL.masses.sum() ** 20
    assert bounded_losses._nearly_all(high, 20, 1.0) == pytest.approx(everything, rel=1e-12)
    assert bounded_losses._nearly_all(SMALL, 20, 1.0) is None
    assert bounded_losses._nearly_all(high, 1, 6.0) is None


@pytest.mark.parametrize("least", [0.0, 1, 500, 512, 513, 577, 700, 800, 1000, 10**6 + 1])
def test_lengths_have_small_factors_and_are_hardly_longer(least):
    size = bounded_losses._length(least)
    assert size >= least
    assert size <= max(1.25 * least + 1, 512)
    for factor in (2, 3, 5):
        while size % factor == 0:
            size //= factor
    assert size == 1


def test_powers_of_the_unit_disc_stay_there_and_small_ones_vanish():
    numbers = np.array([1.0, 0.5j, -1 - 1e-15, 1e-30, 1 + 1e-12 + 0j])
    powers = bounded_losses._powers(numbers.astype(np.complex128), 3)
    np.testing.assert_allclose(powers, [1, -0.125j, -1, 0, 1], atol=1e-15)
    assert powers[3] == 0
    assert bounded_losses._powers(np.array([1e-13 + 0j]), 3)[0] == pytest.approx(1e-39)


@every_law
@pytest.mark.parametrize("shift", [1, 3])
def test_one_answer_and_the_tails_of_many_are_what_the_definition_says(law, shift):
    epsilon = Fraction(1, 2)
    places = np.arange(-law.bound + 1 - shift, law.bound)
    left, right = probabilities(law, places), probabilities(law, places + shift)
    exact = float(np.maximum(left - math.exp(0.5) * right, 0).sum())
    found = delta_of(law, shift, 1, epsilon, 1e-12)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-8) + 1e-15
    assert delta_of(law, 2 * law.bound - 1, 1, epsilon, 1e-12) == 1


def test_laws_that_share_one_outcome_cost_less_than_everything():
    law = BoundedNoise(3, 1)
    assert delta_of(law, 5, 1, Fraction(1, 2), 1e-12) == 1
    assert delta_of(law, 4, 1, Fraction(1, 2), 1e-12) <= 1
    assert delta_of(law, 3, 1, Fraction(1, 2), 1e-12) < 1
