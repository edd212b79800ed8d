"""Errors of piecewise constant densities: against exact integrals, far apart weights, published figures."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.accuracy import expected_absolute_error, mean_squared_error
from sfumato.errors import InvalidParameter


def integrals(edges, logs, target):
    """Both errors by sixty digits and the antiderivatives of t - theta."""
    with mpmath.workdps(60):
        theta, total, absolute, square = mpmath.mpf(target), mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
        for left, right, log in zip(edges[:-1], edges[1:], logs, strict=True):
            weight = mpmath.exp(mpmath.mpf(log))
            low, high = mpmath.mpf(left) - theta, mpmath.mpf(right) - theta
            total += weight * (high - low)
            absolute += weight * (high * abs(high) - low * abs(low)) / 2
            square += weight * (high**3 - low**3) / 3
        return float(absolute / total), float(square / total)


def cubes(edges, logs, target):
    """The textbook form of the squared error, in float64."""
    edges, weights = np.asarray(edges, dtype=float) - target, np.exp(np.asarray(logs, dtype=float))
    return float((weights * np.diff(edges**3)).sum() / 3 / (weights * np.diff(edges)).sum())


@pytest.mark.parametrize("cells", [1, 2, 7, 60])
@pytest.mark.parametrize("depth", [0, 1, 50, 10_000])
def test_errors_are_the_integrals(cells, depth):
    numbers = np.random.default_rng(cells)
    for _ in range(20):
        edges = np.sort(numbers.normal(size=cells + 1) * 10)
        edges[numbers.integers(cells) + 1] = edges[0] if cells == 1 else edges[numbers.integers(cells)]
        edges = np.sort(edges)
        edges[-1] += 1
        logs = -depth * numbers.random(cells)
        for target in (-3.0, 0.0, float(edges[0]), float(edges.mean()), 40.0):
            absolute, square = integrals(edges, logs, target)
            assert expected_absolute_error(edges, logs, target) == pytest.approx(absolute, rel=1e-12)
            assert mean_squared_error(edges, logs, target) == pytest.approx(square, rel=1e-12)


def test_a_common_constant_and_cells_of_no_length_do_nothing():
    plain = expected_absolute_error([0, 1, 3], [0, -1], 2)
    assert expected_absolute_error([0, 1, 3], [-10_000, -10_001], 2) == pytest.approx(plain, rel=1e-14)
    assert expected_absolute_error([0, 0, 1, 1, 3, 3], [9000, 0, 5000, -1, 1], 2) == pytest.approx(plain)
    assert expected_absolute_error([0, 1, 3, 9], [0, -1, -math.inf], 2) == pytest.approx(plain, rel=1e-14)


def test_a_far_cell_of_little_weight_is_not_lost():
    # Nearly all mass is within 1e-60 of the target; what is far has a weight that float64 can not hold.
    for far in (1, 1e140):
        edges, logs = [0, 1e-60, far, 2 * far], [0, -math.inf, -800]
        absolute, square = integrals(edges, logs, 0)
        assert expected_absolute_error(edges, logs, 0) == pytest.approx(absolute, rel=1e-12)
        assert mean_squared_error(edges, logs, 0) == pytest.approx(square, rel=1e-12)
    assert absolute > 1e-8
    assert math.exp(-800) == 0


def test_the_difference_of_cubes_would_lose_its_digits():
    edges, logs = [1e7, 1e7 + 1, 1e7 + 2], [0, -1]
    square = integrals(edges, logs, 0)[1]
    assert mean_squared_error(edges, logs, 0) == pytest.approx(square, rel=1e-14)
    narrow = [1e7, 1e7 + 1e-6, 1e7 + 2e-6]
    assert mean_squared_error(narrow, logs, 0) == pytest.approx(integrals(narrow, logs, 0)[1], rel=1e-14)
    assert cubes(narrow, logs, 0) != pytest.approx(integrals(narrow, logs, 0)[1], rel=1e-8)


def quartile_risk(rows, rate, width, seed, sets):
    """The squared error of one quartile around that of the sample, for several data sets."""
    numbers, found = np.random.default_rng(seed), []
    for _ in range(sets):
        data = np.sort(numbers.random(rows) * width)
        edges = np.concatenate([[0], data, [width]])
        logs = -rate * np.abs(np.arange(rows + 1) - rows / 4)
        target = float(np.interp((rows + 1) / 4, np.arange(1, rows + 1), data))
        found.append(mean_squared_error(edges, logs, target))
    return np.mean(found), np.std(found) / math.sqrt(sets)


@pytest.mark.parametrize(("rows", "stated", "sets"), [(10, 4131, 150), (100, 207, 150), (1000, 2.2, 60)])
def test_the_risk_of_a_quartile_is_not_what_remarks_in_print_say(rows, stated, sets):
    # Erratum E44: "of order 90" and "100" are in print for a width of 200; at a thousand records it is 2.2.
    risk, error = quartile_risk(rows, 0.2, 200, seed=rows, sets=sets)
    slack = 4 * error * math.sqrt(2)
    assert abs(risk - stated) < slack + 0.05
    if rows == 1000:
        assert risk + slack < 10


def test_the_risk_grows_with_the_square_of_the_width():
    wide, narrow = (quartile_risk(200, 0.2, width, seed=5, sets=3)[0] for width in (200, 2))
    assert wide == pytest.approx(narrow * 10_000, rel=1e-9)


@pytest.mark.parametrize("call", [expected_absolute_error, mean_squared_error])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0, 0], 0), "edges must be one more than log_density"),
        (([0], [], 0), "edges must be one more than log_density"),
        (([1, 0], [0], 0), "edges must be in increasing order"),
        (([0, math.nan], [0], 0), "edges must be numbers in"),
        (([0, math.inf], [0], 0), "edges must be numbers in"),
        (([0, 1e200], [0], 0), "edges must be numbers in"),
        (([0, 1], [math.inf], 0), "log_density must be numbers in"),
        (([0, 1], [math.nan], 0), "log_density must be numbers in"),
        (([0, 1], [-math.inf], 0), "log_density must be finite on an interval"),
        (([1, 1], [0], 0), "log_density must be finite on an interval"),
        (([0, 1], [0], math.nan), "target must be finite"),
        (([0, 1], [0], True), "target must be a number"),
        (([0, 1], [0], 10**200), "target must be numbers in"),
        (("ab", [0], 0), "edges must be a line of numbers"),
        ((["a", "b"], [0], 0), "edges must be a line of numbers"),
        (([True, False], [0], 0), "edges must be a line of numbers"),
        (([[0, 1]], [0], 0), "edges must be a line of numbers"),
        (([0, 10**400], [0], 0), "edges must be a line of numbers"),
        ((None, [0], 0), "edges must be a line of numbers"),
    ],
)
def test_what_is_no_density_is_refused_by_name(call, arguments, message):
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        call(*arguments)


def test_exact_fractions_are_numbers():
    edges = [Fraction(0), Fraction(1, 3), Fraction(1)]
    assert expected_absolute_error(edges, [0, 0], Fraction(1, 3)) == pytest.approx(5 / 18, rel=1e-14)
