"""Risks of private means: the stated figures, the calibrations behind them, and which noise is smaller."""

import math

import pytest
from scipy.integrate import quad
from scipy.stats import laplace, norm

from sfumato.accuracy import gaussian_to_laplace, mean_risk, naive_median_loss
from sfumato.errors import InvalidParameter

UNIFORM = 1000**2 / 12


def gaussian_loss(epsilon, sigma):
    """The exact delta of Gaussian noise on a number that moves by 1."""
    return norm.cdf(1 / (2 * sigma) - epsilon * sigma) - math.exp(epsilon) * norm.cdf(
        -1 / (2 * sigma) - epsilon * sigma
    )


def test_the_figures_in_print_are_these_risks():
    first = mean_risk("laplace", 1000, UNIFORM, 1000, 0.8)
    third = mean_risk("gaussian", 1000, UNIFORM, 1000, 0.8, 1e-5, constant=5)
    assert [round(first, 2), round(third, 2)] == [86.46, 122.4]
    assert [round(math.sqrt(first), 3), round(math.sqrt(third), 2)] == [9.298, 11.06]
    # Erratum E22: the Gaussian is wider, and its peak in counts for a bin of one half lower.
    peaks = [2000 * 0.5 / math.sqrt(2 * math.pi * risk) for risk in (first, third)]
    assert [round(peak) for peak in peaks] == [43, 36]
    second = mean_risk("gaussian", 1000, UNIFORM, 1000, 0.1, 1e-5, constant=5)
    assert round(math.sqrt(second), 1) == 50.8
    assert round(math.sqrt(mean_risk("laplace", 1000, UNIFORM, 1000, 0.1)), 1) == 16.8
    normal = mean_risk("laplace", 1000, 125**2, 1000, 0.8)
    assert round(math.sqrt(normal), 2) == 4.33


def test_a_tenth_of_the_width_is_a_hundredth_of_the_risk():
    for kind, delta in (("laplace", None), ("gaussian", 1e-5), ("analytic gaussian", 1e-5)):
        wide = mean_risk(kind, 1000, UNIFORM, 1000, 0.8, delta)
        narrow = mean_risk(kind, 1000, UNIFORM / 100, 100, 0.8, delta)
        assert narrow == pytest.approx(wide / 100, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.8, 3])
def test_the_laplace_risk_is_that_of_its_noise(epsilon):
    scale = 1000 / 50 / epsilon
    second = 2 * quad(lambda x: x * x * laplace.pdf(x, scale=scale), 0, 60 * scale, limit=200)[0]
    assert mean_risk("laplace", 50, 7, 1000, epsilon) == pytest.approx(7 / 50 + second, rel=1e-7)


@pytest.mark.parametrize("epsilon", [0.05, 0.8])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_calibrations_keep_delta_and_only_the_analytic_one_is_tight(epsilon, delta):
    classical = math.sqrt(mean_risk("gaussian", 1, 0, 1, epsilon, delta))
    analytic = math.sqrt(mean_risk("analytic gaussian", 1, 0, 1, epsilon, delta))
    assert analytic < classical
    assert gaussian_loss(epsilon, classical) < delta
    assert gaussian_loss(epsilon, analytic) <= delta * (1 + 1e-9)
    assert gaussian_loss(epsilon, analytic * (1 - 1e-5)) > delta


def test_the_analytic_scale_is_the_stated_one():
    assert round(math.sqrt(mean_risk("analytic gaussian", 1, 0, 1, 0.8, 1e-5)), 3) == 4.573
    assert round(math.sqrt(mean_risk("gaussian", 1, 0, 1, 0.8, 1e-5)), 3) == 6.056
    # The analytic one is for every budget.
    assert 0 < mean_risk("analytic gaussian", 1, 0, 1, 10, 1e-5) < mean_risk("laplace", 1, 0, 1, 0.8)


def test_laplace_is_smaller_for_one_answer_below_a_certain_delta_and_larger_for_many():
    # Erratum E30: the constant passes the square root of two at delta = 1.25/e.
    edge = 1.25 / math.e
    assert (
        gaussian_to_laplace("gaussian", 0.5, edge * 0.999)
        > 1
        > gaussian_to_laplace("gaussian", 0.5, edge * 1.001)
    )
    assert round(edge, 2) == 0.46
    assert gaussian_to_laplace("gaussian", 0.3, 1e-5, constant=5) == pytest.approx(5 / math.sqrt(2))
    assert gaussian_to_laplace("analytic gaussian", 0.3, 1e-5) < gaussian_to_laplace("gaussian", 0.3, 1e-5)
    ratios = [gaussian_to_laplace("analytic gaussian", 0.8, 1e-5, answers=k) for k in (1, 6, 7, 100)]
    assert [ratio > 1 for ratio in ratios] == [True, True, False, False]
    # For k answers the two noises, calibrated by hand.
    risk = mean_risk("analytic gaussian", 1, 0, 1, 0.8, 1e-5)
    assert ratios[3] == pytest.approx(math.sqrt(100 * risk) / (math.sqrt(2) * 100 / 0.8), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_naive_median_errs_by_its_scale(epsilon):
    half, _ = quad(lambda x: x * epsilon / 2 * math.exp(-epsilon * x), 0, math.inf)
    assert naive_median_loss(1, epsilon) == pytest.approx(2 * half, rel=1e-9)
    # Erratum E18: over the half line alone it would be half.
    assert naive_median_loss(1, epsilon) == pytest.approx(1 / epsilon)
    # The sensitivity is the whole width: the middle of 0, 0, 1 and of 0, 1, 1.
    assert sorted([0, 0, 1])[1] == 0
    assert sorted([0, 1, 1])[1] == 1


def test_the_flat_risk_of_a_naive_quantile_is_in_the_figures():
    assert 2 * naive_median_loss(200, 0.2) ** 2 == pytest.approx(2e6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("normal", 10, 0, 1, 0.5), "kind must be one of"),
        (("laplace", 0, 0, 1, 0.5), "rows must be in"),
        (("laplace", 10, -1, 1, 0.5), "variance must be in"),
        (("laplace", 10, 0.26, 1, 0.5), "variance must be in"),
        (("laplace", 10, 0, 0, 0.5), "width must be positive"),
        (("laplace", 10, 0, 1, 0), "epsilon must be positive"),
        (("laplace", 10, 0, 1, 0.5, 1e-5), "delta must be left out"),
        (("gaussian", 10, 0, 1, 0.5), "delta must be a number"),
        (("gaussian", 10, 0, 1, 0.5, 1), "delta must be inside"),
        (("gaussian", 10, 0, 1, 1, 1e-5), "epsilon must be below 1"),
        (("analytic gaussian", 10, 0, 1, 0.5, 0), "delta must be inside"),
    ],
)
def test_hypotheses_are_checked_by_name(arguments, message):
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        mean_risk(*arguments)


def test_constants_that_break_the_theorem_are_refused():
    with pytest.raises(InvalidParameter, match=r"^constant must be at least sqrt"):
        mean_risk("gaussian", 10, 0, 1, 0.5, 1e-5, constant=4.8)
    with pytest.raises(InvalidParameter, match=r"^constant must be left out"):
        mean_risk("laplace", 10, 0, 1, 0.5, constant=5)
    with pytest.raises(InvalidParameter, match=r"^kind must be one of"):
        gaussian_to_laplace("laplace", 0.5, 1e-5)
    with pytest.raises(InvalidParameter, match=r"^answers must be in"):
        gaussian_to_laplace("gaussian", 0.5, 1e-5, answers=0)
    with pytest.raises(InvalidParameter, match=r"^width must be positive"):
        naive_median_loss(0, 1)
