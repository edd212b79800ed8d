"""Mechanisms cost what was asked, take the smaller noise, refuse nonsense in one line, and know their law."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.laws import SeededBits
from sfumato.mechanisms import (
    ClampedGeometric,
    GaussianMechanism,
    LaplaceMechanism,
    Sensitivity,
    additive,
)
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.privacy.composition import approx_satisfied

EPSILONS = [0.01, 0.1, 1, 3.7, 50]
SENSITIVITIES = [
    Sensitivity.scalar(1),
    Sensitivity.scalar(2**31),
    Sensitivity(2, 2, 2),
    Sensitivity(9, 64, 2),
]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", SENSITIVITIES, ids=str)
def test_a_pure_budget_buys_laplace_noise_that_costs_exactly_epsilon(
    epsilon: float, sensitivity: Sensitivity
) -> None:
    for noise in ("auto", "laplace"):
        mechanism = additive(PureDP(epsilon), sensitivity, noise)
        assert isinstance(mechanism, LaplaceMechanism)
        assert mechanism.event.pure_epsilon == Fraction(str(epsilon))
        assert mechanism.scale == sensitivity.l1 / Fraction(str(epsilon))


@pytest.mark.parametrize("rho", EPSILONS)
@pytest.mark.parametrize("sensitivity", SENSITIVITIES, ids=str)
def test_a_zcdp_budget_buys_gaussian_noise_that_costs_exactly_rho(
    rho: float, sensitivity: Sensitivity
) -> None:
    for noise in ("auto", "gaussian"):
        mechanism = additive(ZCDP(rho), sensitivity, noise)
        assert isinstance(mechanism, GaussianMechanism)
        assert mechanism.event.rho == Fraction(str(rho))
        assert mechanism.sigma_squared == sensitivity.l2_squared / (2 * Fraction(str(rho)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [1e-9, 1e-2])
@pytest.mark.parametrize("sensitivity", SENSITIVITIES, ids=str)
def test_an_approximate_budget_is_met_and_auto_takes_the_smaller_variance(
    epsilon: float, delta: float, sensitivity: Sensitivity
) -> None:
    budget = ApproxDP(epsilon, delta)
    laplace, gaussian, chosen = (additive(budget, sensitivity, n) for n in ("laplace", "gaussian", "auto"))
    assert laplace.event.pure_epsilon == budget.epsilon
    assert approx_satisfied(gaussian.event, budget)
    assert chosen in (laplace, gaussian)
    other = gaussian if chosen == laplace else laplace
    # The choice is by 2 b² and sigma², which are above the variances by 1/6 at most.
    assert chosen.noise.variance <= other.noise.variance + 1 / 6


def test_auto_can_choose_either() -> None:
    one, many = Sensitivity.scalar(1), Sensitivity(l1=50, l2_squared=50, coordinates=50)
    assert isinstance(additive(ApproxDP(1, 1e-6), one), LaplaceMechanism)
    assert isinstance(additive(ApproxDP(1, 1e-6), many), GaussianMechanism)
    assert isinstance(additive(ApproxDP(1, 0.2), one), GaussianMechanism)


@pytest.mark.parametrize("epsilon", [2000, 1e6])
def test_budgets_beyond_gaussian_calibration_still_buy_laplace_noise(epsilon: float) -> None:
    budget = ApproxDP(epsilon, 1e-6)
    for noise in ("auto", "laplace"):
        assert additive(budget, Sensitivity.scalar(1), noise).event.pure_epsilon == epsilon
    with pytest.raises(InvalidParameter, match=r"^epsilon must be in"):
        additive(budget, Sensitivity.scalar(1), "gaussian")


def make_additive(budget: Any, noise: str) -> Any:
    return additive(budget, Sensitivity.scalar(1), noise)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (make_additive, {"budget": PureDP(1), "noise": "gaussian"}, "noise='gaussian' needs"),
        (make_additive, {"budget": ZCDP(1), "noise": "laplace"}, "noise='laplace' needs"),
        (make_additive, {"budget": PureDP(1), "noise": "uniform"}, "noise must be one of"),
        (LaplaceMechanism, {"sensitivity": 0, "scale": Fraction(1)}, "sensitivity must be in"),
        (LaplaceMechanism, {"sensitivity": 1.5, "scale": Fraction(1)}, "sensitivity must be a whole"),
        (LaplaceMechanism, {"sensitivity": True, "scale": Fraction(1)}, "sensitivity must be a whole"),
        (LaplaceMechanism, {"sensitivity": 1, "scale": Fraction(0)}, "scale must be positive"),
        (LaplaceMechanism, {"sensitivity": 1, "scale": math.inf}, "scale must be finite"),
        (
            LaplaceMechanism.calibrated,
            {"epsilon": Fraction(-1), "sensitivity": 1},
            "epsilon must be positive",
        ),
        (
            GaussianMechanism,
            {"sensitivity_squared": 0, "sigma_squared": Fraction(1), "coordinates": 1},
            "sensitivity_squared must be in",
        ),
        (
            GaussianMechanism,
            {"sensitivity_squared": 1, "sigma_squared": Fraction(-1), "coordinates": 1},
            "sigma_squared must be positive",
        ),
        (ClampedGeometric, {"scale": Fraction(0)}, "scale must be positive"),
        (ClampedGeometric, {"scale": Fraction(1), "lower": 3, "upper": 2}, "lower must be at most upper"),
    ],
)
def test_nonsense_is_refused_in_one_line(make: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SfumatoError) as caught:
        make(**arguments)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("coordinates", [0, -1, 1.5])
def test_a_gaussian_mechanism_refuses_a_wrong_number_of_coordinates(coordinates: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"^coordinates must be"):
        GaussianMechanism(sensitivity_squared=1, sigma_squared=Fraction(1), coordinates=coordinates)


def geometric(count: int, most: int, epsilon: float) -> list[float]:
    """The clamped two-sided geometric law of [GRS12], term by term from its definition."""
    ratio = math.exp(-epsilon)
    interior = [(1 - ratio) / (1 + ratio) * ratio ** abs(k - count) for k in range(most + 1)]
    interior[0], interior[-1] = ratio**count / (1 + ratio), ratio ** (most - count) / (1 + ratio)
    return interior


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("count", [0, 1, 3, 6])
def test_the_clamped_geometric_law_is_that_of_its_definition(epsilon: float, count: int) -> None:
    law = ClampedGeometric(scale=1 / Fraction(str(epsilon)), lower=0, upper=6).law(count)
    found = np.exp(law.logpmf(np.arange(7)))
    assert found == pytest.approx(geometric(count, 6, epsilon), rel=1e-12)
    assert found.sum() == pytest.approx(1)
    assert law.logpmf(-1) == law.logpmf(7) == -math.inf
    assert law.cdf(np.arange(7)) == pytest.approx(np.cumsum(found))


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_neighbouring_counts_differ_by_exactly_epsilon_at_worst(epsilon: float) -> None:
    mechanism = ClampedGeometric(scale=1 / Fraction(str(epsilon)), lower=0, upper=6)
    assert mechanism.event.pure_epsilon == Fraction(str(epsilon))
    losses = [
        np.abs(mechanism.law(count).logpmf(np.arange(7)) - mechanism.law(count + 1).logpmf(np.arange(7)))
        for count in range(6)
    ]
    assert np.max(losses) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_no_other_private_count_has_a_smaller_expected_error(epsilon: float) -> None:
    # [GRS12]: with a uniform prior and |error| as loss, a linear program over all private mechanisms on
    # 0..4 finds nothing better than the clamped geometric law followed by the best reading of its output.
    from scipy.optimize import linprog

    size = 5
    loss = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / size
    ratio, rows = math.exp(-epsilon), []
    for count in range(size - 1):
        for outcome in range(size):
            for here, there in ((count, count + 1), (count + 1, count)):
                row = np.zeros((size, size))
                row[here, outcome], row[there, outcome] = ratio, -1
                rows.append(row.ravel())
    sums = np.kron(np.eye(size), np.ones(size))
    best = linprog(loss.ravel(), np.array(rows), np.zeros(len(rows)), sums, np.ones(size))
    scale = 1 / Fraction(str(epsilon))
    law = np.array(
        [np.exp(ClampedGeometric(scale=scale, upper=4).law(k).logpmf(np.arange(size))) for k in range(size)]
    )
    read_best = (loss.T @ law).min(axis=0).sum()
    assert read_best == pytest.approx(best.fun, rel=1e-7)


def test_known_values_of_the_specification() -> None:
    # spec/quantile-and-mean-mechanisms.md, section 1: epsilon 0.8, delta 1e-5, sensitivity 1.
    mechanism = GaussianMechanism.calibrated(ApproxDP(0.8, 1e-5), sensitivity_squared=2**40, coordinates=1)
    assert math.sqrt(mechanism.sigma_squared) / 2**20 == pytest.approx(4.573, abs=5e-4)
    assert math.sqrt(mechanism.sigma_squared) / 2**20 < 6.056
    assert ClampedGeometric(scale=Fraction(1), lower=0).law(2).sf(10**6) == 0


@pytest.mark.parametrize(
    "mechanism",
    [
        LaplaceMechanism(sensitivity=1, scale=Fraction(5, 2)),
        GaussianMechanism(sensitivity_squared=1, sigma_squared=Fraction(6), coordinates=1),
    ],
    ids=["laplace", "gaussian"],
)
def test_a_law_is_its_noise_around_the_value(mechanism: Any) -> None:
    law = mechanism.law(10**20)
    offsets = [-7, 0, 3]
    assert [law.logpmf(10**20 + k) for k in offsets] == [mechanism.noise.logpmf(k) for k in offsets]
    drawn = mechanism.law(np.array([0, 100, -100])).sample(SeededBits(61))
    assert np.abs(drawn - [0, 100, -100]).max() < 60
    assert mechanism.described().startswith("discrete ")
