"""The way of the exponential mean to its limit: transforms, rates, normalisers, independent draws."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from sfumato.accuracy import (
    MeanLimit,
    central_normaliser,
    characteristic_at,
    characteristic_bound,
    characteristic_distance,
    convergence_rate,
    independent_gap_tail,
    kolmogorov_distance,
    published_even_normaliser,
    published_independent_gap_limit,
    wasserstein_distance,
)
from sfumato.errors import InvalidParameter

LIMITS = [MeanLimit(center, rate) for center in (0, 0.3, 0.5, 1) for rate in (0.01, 1, 8, 200)]
every_limit = pytest.mark.parametrize("limit", LIMITS, ids=str)


def weights(limit, cells, closed):
    places = np.arange(cells + closed) / cells
    found = np.exp(-limit.rate * np.abs(places - limit.center))
    return places, found / found.sum()


@every_limit
@pytest.mark.parametrize("closed", [True, False])
def test_the_transform_is_the_sum_over_the_points(limit, closed):
    for cells in (1, 2, 7, 100):
        if not closed and cells == 1:
            continue
        places, chances = weights(limit, cells, closed)
        found = characteristic_at(limit, cells, [0, 1, -5, 20.5], closed=closed)
        expected = [sum(chances * np.exp(1j * t * places)) for t in (0, 1, -5, 20.5)]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@every_limit
@pytest.mark.parametrize("closed", [True, False])
def test_distances_stay_below_their_bound(limit, closed):
    for cells in (2, 3, 10, 101, 1000, 20_000):
        for t in (0.1, 1, 5, 20):
            found = characteristic_distance(limit, cells, [t, -t], closed=closed)
            bound = characteristic_bound(limit, cells, t, closed=closed)
            assert found <= bound
            # Sharper than |t|/N + e^(2 lambda/N) - 1, which holds too.
            assert bound <= t / cells + math.expm1(min(2 * limit.rate / cells, 700))


def test_a_bound_of_second_order_would_be_refuted():
    limit = MeanLimit(0, 8)
    for cells in (100, 1000):
        found = characteristic_distance(limit, cells, [20], closed=False)
        assert found > characteristic_bound(limit, cells**2, 20, closed=False)
    # And so is one that forgets the places within their cells, or the weights.
    flat = MeanLimit(0.5, 0.001)
    assert characteristic_distance(flat, 100, [20], closed=False) > 2 * math.tanh(0.001 / 200)


def test_the_total_variation_behind_the_bound_is_sharp():
    # Masses of cells against chances of points: they differ by tanh(lambda/2m) at most.
    for limit in LIMITS:
        for cells in (2, 10, 100):
            places, chances = weights(limit, cells, False)
            masses = np.diff(limit.cdf(np.append(places, 1.0)))
            apart = np.abs(chances - masses).sum() / 2
            assert apart <= math.tanh(limit.rate / (2 * cells)) + 1e-12


@pytest.mark.parametrize(("center", "stated", "digits"), [(0.5, 0.045, 3), (0.3, 0.23, 2), (0, 3.7, 1)])
def test_the_first_order_terms_are_the_stated_ones(center, stated, digits):
    # Twenty records, a budget of 0.8: the rate is 8.
    for cells in (1000, 10_000):
        found = cells * characteristic_distance(MeanLimit(center, 20 * 0.8 / 2), cells, closed=False)
        assert round(found, digits) == stated


@every_limit
def test_all_distances_fall_like_one_over_the_cells(limit):
    for distance in ("wasserstein", "kolmogorov", "characteristic"):
        # The transforms feel the ends first, and a steep law in the middle has nothing there.
        steep = distance == "characteristic" and limit.density([0, 1]).max() < 1e-9
        slope = convergence_rate(limit, [4001, 8001, 16_001], distance=distance)
        assert slope == pytest.approx(-2 if steep else -1, abs=0.06)


def test_the_rate_is_the_slope_of_a_straight_line_through_logs():
    limit, sizes = MeanLimit(0.3, 8), [50, 100, 1000]
    for distance, measure in (("wasserstein", wasserstein_distance), ("kolmogorov", kolmogorov_distance)):
        ups = [math.log(measure(limit, cells)) for cells in sizes]
        expected = np.polyfit(np.log(sizes), ups, 1)[0]
        assert convergence_rate(limit, sizes, distance=distance) == pytest.approx(expected, rel=1e-9)
    assert convergence_rate(limit, np.array(sizes)) == pytest.approx(convergence_rate(limit, tuple(sizes)))


@pytest.mark.parametrize("rate", [0.001, 1, 8, 400])
@pytest.mark.parametrize("cells", [1, 2, 3, 14, 15, 100, 1001])
def test_normalisers_are_sums(rate, cells):
    expected = math.fsum(math.exp(-rate * abs(k / cells - 0.5)) for k in range(cells))
    assert central_normaliser(rate, cells) == pytest.approx(expected, rel=1e-11)
    if cells % 2 == 0:
        wrong = published_even_normaliser(rate, cells) / expected
        assert wrong == pytest.approx(1 / math.tanh(rate / cells), rel=1e-9)
        assert wrong > 1.2 or rate / cells > 0.9
    elif rate <= 8 and cells > 1:
        # The odd case as it is in print, in its own letters.
        q, half = math.exp(rate / cells), cells // 2
        printed = math.exp(-rate / 2) * (1 + q - 2 * q ** (half + 1)) / (1 - q)
        assert printed == pytest.approx(expected, rel=1e-9)


def test_the_wrong_line_is_wrong_by_the_stated_figures_and_its_equivalent_is_right():
    # Erratum E34 at n epsilon = 16 and L = 7.
    assert round(central_normaliser(8, 14), 2) == 3.53
    assert round(published_even_normaliser(8, 14), 2) == 6.83
    cells = 2 * 10**6
    equivalent = 8 * (cells // 2) * (1 - math.exp(-4)) / 16
    assert central_normaliser(8, cells) == pytest.approx(equivalent, rel=1e-9)
    assert published_even_normaliser(8, cells) > 1e4 * equivalent


def gap_by_quadrature(rate, gap):
    """P(Y' - Y >= gap) as the mean over Y of what is beyond, piece by piece between corners."""
    limit = MeanLimit(0.5, rate)
    corners = sorted({0.0, min(0.5, 1 - gap), max(0.5 - gap, 0.0), 1 - gap})

    def beyond(y):
        return float(limit.density(y)) * (1 - float(limit.cdf(y + gap)))

    return sum(
        quad(beyond, low, high, epsabs=1e-13, limit=200)[0] for low, high in itertools.pairwise(corners)
    )


@pytest.mark.parametrize("rate", [1e-6, 0.1, 1.99, 2, 2.01, 8, 60])
@pytest.mark.parametrize("gap", [0, 0.01, 0.05, 0.3, 0.5, 0.51, 0.9, 1])
def test_independent_draws_differ_as_stated(rate, gap):
    assert independent_gap_tail(rate, gap) == pytest.approx(gap_by_quadrature(rate, gap), abs=1e-10)


def test_independent_draws_on_fine_grids_tend_to_that_gap():
    limit = MeanLimit(0.5, 8)
    places, chances = limit.points(4000)
    smooth = 1 - limit.cdf(places + 0.05)
    assert chances @ smooth == pytest.approx(independent_gap_tail(8, 0.05), abs=1e-4)
    assert round(independent_gap_tail(8, 0.05), 4) == 0.3986
    # Erratum E35: 0.296 is in print, and 1/8 for large rates.
    assert round(independent_gap_tail(8, 0.05), 3) != 0.296
    assert independent_gap_tail(400, 0.05) < 1e-7
    assert published_independent_gap_limit() == 1 / 8
    # Coupled by quantiles, draws come together: the mean distance is that of Wasserstein.
    shares = (np.arange(20_000) + 0.5) / 20_000
    for cells in (10, 1000):
        at = np.searchsorted(np.cumsum(limit.points(cells)[1]), shares)
        apart = np.abs(limit.points(cells)[0][np.minimum(at, cells)] - limit.quantile(shares))
        assert apart.max() < 3 / cells
        assert apart.mean() == pytest.approx(wasserstein_distance(limit, cells), rel=0.05)


def test_half_of_all_pairs_are_in_order_and_draws_never_differ_by_more_than_one():
    for rate in (1e-9, 1, 2, 50, 1e300):
        assert independent_gap_tail(rate, 0) == pytest.approx(0.5, abs=1e-12)
        assert independent_gap_tail(rate, 1) == pytest.approx(0, abs=1e-12)
    tails = [independent_gap_tail(2, gap / 100) for gap in range(101)]
    assert all(left >= right for left, right in itertools.pairwise(tails))


LIMIT = MeanLimit(0.5, 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: characteristic_at(LIMIT, 0, [1]), "cells must be in"),
        (lambda: characteristic_at(LIMIT, 5, ["a"]), "frequencies must be a line of numbers"),
        (lambda: characteristic_at(LIMIT, 5, [math.inf]), "frequencies must be numbers in"),
        (lambda: characteristic_at(LIMIT, 5, [1], closed=1), "closed must be True or False"),
        (lambda: characteristic_at("limit", 5, [1]), "limit must be a MeanLimit"),
        (lambda: characteristic_distance(LIMIT, 5, []), "frequencies must hold at least one"),
        (lambda: characteristic_bound(LIMIT, 5, math.nan), "frequency must be finite"),
        (lambda: characteristic_bound(None, 5, 1), "limit must be a MeanLimit"),
        (lambda: convergence_rate(LIMIT, [5]), "cells_list must hold at least two"),
        (lambda: convergence_rate(LIMIT, 5), "cells_list must hold at least two"),
        (lambda: convergence_rate(LIMIT, [5, 5]), "cells_list must hold at least two"),
        (lambda: convergence_rate(LIMIT, [5, 0]), "cells_list must be in"),
        (lambda: convergence_rate(LIMIT, ["5", []]), "cells_list must be a whole number"),
        (lambda: convergence_rate(LIMIT, [5, 6], distance="euclid"), "distance must be one of"),
        (lambda: central_normaliser(0, 5), "rate must be positive"),
        (lambda: central_normaliser(1, 0), "cells must be in"),
        (lambda: published_even_normaliser(1, 5), "cells must be even"),
        (lambda: independent_gap_tail(1, 1.1), "gap must be in"),
        (lambda: independent_gap_tail(1, -0.1), "gap must be in"),
        (lambda: independent_gap_tail(0, 0.1), "rate must be positive"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(call, message):
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        call()


def test_one_frequency_is_a_line_of_one():
    assert characteristic_at(LIMIT, 10, 3.0).shape == (1,)
    assert characteristic_distance(LIMIT, 10, 3.0) == characteristic_distance(LIMIT, 10, [3])
