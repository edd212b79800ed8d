"""Conversions of zCDP: the best that is proved, never better."""

from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy import oracle
from tests.privacy.hostile import HOSTILE, NOT_NUMBERS

from sfumato.errors import InvalidParameter
from sfumato.privacy.composition import approx_satisfied
from sfumato.privacy.conversions import (
    decimal_down,
    decimal_up,
    log_fraction,
    pure_to_zcdp,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_to_approx,
)
from sfumato.privacy.definitions import ZCDP, ApproxDP, PureDP
from sfumato.privacy.events import ConcentratedEvent

RHOS = [1e-9, 1e-4, 0.01, 0.3, 1, 20, 5000]
EPSILONS = [1e-6, 0.01, 0.5, 1, 5, 50, 1000]
DELTAS = [1e-300, 1e-30, 1e-9, 1e-5, 0.1, 0.9]


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_is_the_infimum_over_orders_and_never_below_it(rho, epsilon):
    best = oracle.zcdp_delta(rho, epsilon)
    found = mp.mpf(zcdp_delta(rho, epsilon))
    assert found >= best
    if best > mp.mpf(10) ** -300:
        assert found <= best * (1 + mp.mpf(10) ** -10)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_meets_delta_and_a_little_less_would_not(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    for reading in (Fraction(epsilon), Fraction(str(epsilon))):
        assert oracle.zcdp_delta(rho, reading) <= oracle.real(delta)
    if epsilon > 0:
        assert oracle.zcdp_delta(rho, Fraction(epsilon) * (1 - Fraction(1, 10**11))) > oracle.real(delta)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_rho_meets_the_target_and_a_little_more_would_not(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert oracle.zcdp_delta(rho, epsilon) <= oracle.real(delta)
    assert oracle.zcdp_delta(rho * (1 + Fraction(1, 10**9)), epsilon) > oracle.real(delta)


@given(st.floats(1e-8, 1e3), st.floats(1e-6, 1e3), st.floats(1.001, 10))
def test_delta_grows_with_rho_and_falls_with_epsilon(rho, epsilon, factor):
    delta = zcdp_delta(rho, epsilon)
    assert zcdp_delta(rho * factor, epsilon) >= delta
    assert zcdp_delta(rho, epsilon * factor) <= delta


def test_the_conversion_of_bun_and_steinke_is_beaten():
    # epsilon = rho + 2 sqrt(rho log(1/delta)) is the older, looser formula.
    rho, delta = 0.05, 1e-6
    assert zcdp_epsilon(rho, delta) < float(rho + 2 * mp.sqrt(rho * mp.log(1 / mp.mpf(delta)))) - 0.1


def test_budgets_convert_with_short_decimals():
    approx = zcdp_to_approx(ZCDP(0.05), 1e-6)
    assert oracle.zcdp_delta(0.05, approx.epsilon) <= oracle.real(1e-6)
    assert len(str(approx.epsilon.denominator)) <= 13
    assert pure_to_zcdp(PureDP(0.1)) == ZCDP(0.005)
    # A delta that covers everything leaves an epsilon that is not zero only in name.
    assert zcdp_to_approx(ZCDP(1e-20), 0.5).epsilon == Fraction(1, 10**12)


@pytest.mark.parametrize("value", [*HOSTILE, 1e-301, 1e13], ids=repr)
def test_hostile_numbers_are_refused(value):
    for call in (lambda: zcdp_delta(value, 1), lambda: zcdp_epsilon(value, 1e-6)):
        with pytest.raises(InvalidParameter, match="rho must be"):
            call()
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        zcdp_rho(value, 1e-6)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1, 1e13], ids=repr)
def test_hostile_epsilons_and_deltas_are_refused(value):
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        zcdp_delta(1, value)
    for call in (lambda: zcdp_epsilon(1, value), lambda: zcdp_rho(1, value)):
        with pytest.raises(InvalidParameter, match="delta must be"):
            call()


@given(st.floats(1e-250, 1e250))
def test_short_decimals_bracket_a_float_closely(value):
    down, up = decimal_down(value), decimal_up(value)
    assert down <= Fraction(value) <= up
    assert (Fraction(value) - down) / down < Fraction(1, 10**11)
    assert value < 1e-12 or (up - Fraction(value)) / up < Fraction(1, 10**11)


@given(st.fractions(min_value=Fraction(1, 10**400), max_value=1).filter(bool))
def test_logarithms_of_fractions_are_exact_to_rounding(value):
    truth = mp.log(oracle.real(value))
    assert abs(log_fraction(value) - truth) <= abs(truth) * mp.mpf(2) ** -51


@pytest.mark.parametrize("delta", [1e-2, 1e-3, 1e-6, 1e-7, 1e-12])
def test_a_rho_that_a_budget_buys_is_accepted_by_who_checks_it(delta):
    for epsilon in (0.001, 0.01, 0.05, 0.2, 0.5, 1, 2, 4, 10):
        event = ConcentratedEvent(zcdp_rho(epsilon, delta), "quantiles")
        assert approx_satisfied(event, ApproxDP(epsilon, delta)), (epsilon, delta)
