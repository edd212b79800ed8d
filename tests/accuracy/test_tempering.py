"""Powers of densities as limits: their law by quadrature, their grids, and what the mechanism certifies."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from sfumato.accuracy import MeanLimit, TemperedLimit, tempered_limit, truncated_laplace_level
from sfumato.errors import InvalidParameter


def bell(y):
    return np.exp(-((np.asarray(y) - 1) ** 2))


def wave(y):
    return 2 + np.sin(5 * np.asarray(y))


DENSITIES = {"bell": bell, "wave": wave, "line": lambda y: 1 + np.asarray(y) ** 2}


@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("power", [0.1, 0.5, 1, 3, 20])
def test_the_law_is_that_of_the_power(name, power):
    given, bounds = DENSITIES[name], (-2, 3)
    limit = tempered_limit(given, 2 * power, 1, bounds)
    assert limit.power == pytest.approx(power)
    total = quad(lambda y: float(given(y)) ** power, *bounds, epsabs=0, epsrel=1e-12, limit=200)[0]
    for y in (-2, -1.3, 0, 0.7, 2.9, 3):
        assert limit.density(y) == pytest.approx(float(given(y)) ** power / total, rel=1e-9)
        below = quad(lambda x: float(given(x)) ** power, -2, y, epsabs=0, epsrel=1e-12, limit=200)[0]
        assert limit.cdf(y) == pytest.approx(below / total, abs=1e-9)
        if limit.density(y) > 1e-4:  # float64 can tell the shares of neighbouring values apart
            assert limit.quantile(limit.cdf(y)) == pytest.approx(y, abs=1e-6)
    shares = np.array([1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9])
    np.testing.assert_allclose(limit.cdf(limit.quantile(shares)), shares, atol=1e-12)
    assert limit.density([-2.1, 3.1]).tolist() == [0, 0]
    assert limit.cdf([-5, 5]).tolist() == [0, 1]
    assert limit.quantile([0, 1]) == pytest.approx([-2, 3], abs=1e-9)


def test_a_power_of_the_laplace_density_is_the_limit_of_the_exponential_mean():
    for power in (0.5, 1, 2):
        limit = TemperedLimit(lambda y: np.exp(-8 * np.abs(y - 0.3)), 2 * power, 1, (0, 1))
        mean = MeanLimit(0.3, 8 * power)
        places = np.linspace(0, 1, 101)
        np.testing.assert_allclose(limit.density(places), mean.density(places), rtol=1e-5)
        np.testing.assert_allclose(limit.cdf(places), mean.cdf(places), atol=1e-5)
        np.testing.assert_allclose(limit.points(50)[1], mean.points(50)[1], rtol=1e-9)


@pytest.mark.parametrize("name", DENSITIES)
def test_fine_grids_approach_the_power_and_no_other(name):
    limit = tempered_limit(DENSITIES[name], 3, 1, (-2, 3))
    sizes = (50, 500, 5000)
    distances = [limit.distance(cells) for cells in sizes]
    slope = np.polyfit(np.log(sizes), np.log(distances), 1)[0]
    assert slope == pytest.approx(-1, abs=0.02)
    # The power epsilon / epsilon', without the two, is not approached; nor is the density itself.
    places, chances = limit.points(5000)
    for power in (3, 1):
        other = tempered_limit(DENSITIES[name], 2 * power, 1, (-2, 3))
        assert np.abs(np.cumsum(chances) - other.cdf(places)).max() > 10 * distances[-1]


def test_the_points_have_the_weights_of_the_mechanism():
    epsilon, sensitivity = 0.7, 0.2
    places, chances = tempered_limit(wave, epsilon, sensitivity, (0, 2)).points(8)
    weights = [math.exp(epsilon * math.log(wave(k / 4)) / (2 * sensitivity)) for k in range(9)]
    np.testing.assert_allclose(places, np.arange(9) / 4)
    np.testing.assert_allclose(chances, np.array(weights) / sum(weights), rtol=1e-12)


def test_the_density_comes_back_only_for_twice_its_level():
    # Truncated Laplace densities of neighbours: their logs differ by the level at most.
    rows, e = 20, 0.4
    level = truncated_laplace_level(rows, e)
    left, right = MeanLimit(0, rows * e), MeanLimit(1 / rows, rows * e)
    answers = np.linspace(0, 1, 501)
    assert np.abs(np.log(left.density(answers) / right.density(answers))).max() == pytest.approx(level)
    for budget, same in ((2 * level, True), (level, False)):
        limits = [tempered_limit(law.density, budget, level, (0, 1)) for law in (left, right)]
        loss = np.abs(np.log(limits[0].density(answers) / limits[1].density(answers))).max()
        assert np.allclose(limits[0].density(answers), left.density(answers), rtol=1e-3) == same
        # What is certified is the budget, twice what is lost when the density comes back.
        assert loss <= budget
        if same:
            assert loss == pytest.approx(budget / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 1, 1, (0, 1)), "density must be a function"),
        ((lambda y: y, 1, 1, (-1, 1)), "density must return a positive finite number"),
        ((lambda y: np.where(y > 0.5, np.inf, 1.0), 1, 1, (0, 1)), "density must return a positive"),
        ((lambda y: np.where(y > 0.5, np.nan, 1.0), 1, 1, (0, 1)), "density must return a positive"),
        ((lambda y: 1.0, 1, 1, (0, 1)), "density must return a positive finite number for each"),
        ((bell, 0, 1, (0, 1)), "epsilon must be positive"),
        ((bell, 1, -1, (0, 1)), "epsilon_prime must be positive"),
        ((bell, 1, 1, (1, 0)), "lower must be below upper"),
        ((bell, 1, 1, 5), "bounds must be a pair"),
        ((bell, 1e9, 1, (0, 5)), "density to the power"),
    ],
)
def test_hypotheses_are_checked_by_name(arguments, message):
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        tempered_limit(*arguments)


def test_cells_are_whole_and_positive():
    with pytest.raises(InvalidParameter, match=r"^cells must be in"):
        tempered_limit(bell, 1, 1, (0, 1)).points(0)
