"""Filters: exact sums under a cap, refused before anything changes, believed only when proved."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported
from sfumato.privacy.accountants import (
    Accountant,
    PureAccountant,
    SummedAccountant,
    ZCDPAccountant,
    accountant_for,
)
from sfumato.privacy.calibration import gaussian_sigma_squared, laplace_scale
from sfumato.privacy.conversions import zcdp_epsilon
from sfumato.privacy.definitions import ZCDP, Amount, ApproxDP, PureDP
from sfumato.privacy.events import (
    ComposedEvent,
    FreeEvent,
    GaussianEvent,
    GaussianVectorEvent,
    LaplaceEvent,
    PureEvent,
)

decimals = st.decimals(min_value=Decimal("1e-9"), max_value=Decimal("1e3"), allow_nan=False, places=9).filter(
    bool
)
UNIT = Fraction(1, 10**30)


def test_requiring_a_charge_gives_its_price_or_refuses_and_changes_nothing():
    accountant = PureAccountant(PureDP(1))
    assert accountant.require(LaplaceEvent(sensitivity=1, scale=2)) == Amount(epsilon=Fraction(1, 2))
    with pytest.raises(BudgetExceeded):
        accountant.require(LaplaceEvent(sensitivity=2, scale=1))
    assert accountant.spent == Amount()


def test_three_times_a_tenth_fits_three_tenths():
    accountant = PureAccountant(PureDP(0.3))
    for _ in range(3):
        accountant.charge(PureEvent(0.1, "test"))
    assert accountant.spent == Amount(epsilon=0.3)
    assert accountant.remaining == Amount()
    with pytest.raises(BudgetExceeded):
        accountant.charge(PureEvent(1e-300, "test"))


@given(decimals, st.integers(1, 40))
def test_equal_parts_always_fit_and_one_unit_more_never_does(cap, count):
    pure, zcdp = PureAccountant(PureDP(cap)), ZCDPAccountant(ZCDP(cap))
    both = SummedAccountant(ApproxDP(cap, Decimal("1e-6")))
    for part in PureDP(cap).split(count):
        pure.charge(PureEvent(part.epsilon, "test"))
    for part in ZCDP(cap).split(count):
        zcdp.charge(GaussianEvent(1, 1 / (2 * part.rho), 1))
    for part in ApproxDP(cap, Decimal("1e-6")).split(count):
        both.charge(PureEvent(part.epsilon, "test"), part)
    assert pure.spent == Amount(epsilon=cap)
    assert zcdp.spent == Amount(rho=cap)
    assert both.spent == Amount(epsilon=cap, delta=Decimal("1e-6"))
    for accountant in (pure, zcdp, both):
        spent = accountant.spent
        with pytest.raises(BudgetExceeded):
            accountant.charge(PureEvent(UNIT, "test"))
        assert accountant.spent == spent
    with pytest.raises(BudgetExceeded):
        PureAccountant(PureDP(cap)).charge(PureEvent(Fraction(cap) + UNIT, "test"))


@given(st.lists(decimals, min_size=1, max_size=20), decimals)
def test_a_refused_charge_changes_nothing_and_an_accepted_one_adds_exactly(costs, cap):
    accountant, total = PureAccountant(PureDP(cap)), Fraction(0)
    for cost in map(Fraction, costs):
        if total + cost <= Fraction(cap):
            assert accountant.charge(PureEvent(cost, "test")) == Amount(epsilon=cost)
            total += cost
        else:
            with pytest.raises(BudgetExceeded):
                accountant.charge(PureEvent(cost, "test"))
        assert accountant.spent == Amount(epsilon=total)
        assert accountant.remaining == Amount(epsilon=Fraction(cap) - total)


def test_a_price_is_not_a_charge():
    accountant = PureAccountant(PureDP(1))
    assert accountant.price(LaplaceEvent(1, 4)) == Amount(epsilon=0.25)
    assert accountant.spent == Amount()


def test_spending_goes_on_where_a_ledger_left_off():
    accountant = PureAccountant(PureDP(1), spent=Amount(epsilon=0.9))
    accountant.charge(PureEvent(0.1, "test"))
    with pytest.raises(BudgetExceeded, match=r"epsilon 0.1 does not fit: nothing is left"):
        accountant.charge(PureEvent(0.1, "test"))
    with pytest.raises(InvalidParameter, match="spent must be an Amount within cap"):
        PureAccountant(PureDP(1), spent=Amount(epsilon=1.1))


def test_free_events_are_free_everywhere():
    for cap in (PureDP(1), ZCDP(1), ApproxDP(1, 1e-6)):
        assert accountant_for(cap).charge(FreeEvent("public")) == Amount()


def test_a_pure_budget_refuses_gaussian_noise():
    accountant = PureAccountant(PureDP(100))
    for event in (GaussianEvent(1, 10**6, 1), ComposedEvent([PureEvent(1, "x"), GaussianEvent(1, 10**6, 1)])):
        with pytest.raises(NotSupported, match="no finite pure epsilon"):
            accountant.charge(event)
    assert accountant.spent == Amount()


def test_a_zcdp_budget_takes_both_kinds_of_noise():
    accountant = ZCDPAccountant(ZCDP(1))
    accountant.charge(GaussianEvent(1, 5, 1))
    accountant.charge(PureEvent(1, "test"))
    assert accountant.spent == Amount(rho=Fraction(1, 10) + Fraction(1, 2))


def test_a_zcdp_filter_under_an_approximate_target_stays_within_it():
    accountant = ZCDPAccountant.under(ApproxDP(1, 1e-6))
    assert zcdp_epsilon(accountant.cap.rho, 1e-6) <= 1
    assert zcdp_epsilon(accountant.cap.rho * (1 + Fraction(1, 10**8)), 1e-6) > 1


def test_a_stated_cost_is_charged_if_it_covers_the_event():
    assert PureAccountant(PureDP(1)).charge(LaplaceEvent(1, 10), PureDP(0.2)) == Amount(epsilon=0.2)
    assert ZCDPAccountant(ZCDP(1)).charge(GaussianEvent(1, 50, 1), ZCDP(0.02)) == Amount(rho=0.02)
    summed = SummedAccountant(ApproxDP(1, 1e-6))
    assert summed.charge(LaplaceEvent(1, 10), PureDP(0.2)) == Amount(epsilon=0.2)
    assert summed.charge(LaplaceEvent(1, 10), ApproxDP(0.2, 1e-9)) == Amount(epsilon=0.2, delta=1e-9)


@pytest.mark.parametrize(
    ("cap", "event", "cost"),
    [
        (PureDP(1), LaplaceEvent(1, 10), PureDP(0.0999999)),
        (PureDP(1), LaplaceEvent(1, 10), ZCDP(1)),
        (PureDP(1), LaplaceEvent(1, 10), ApproxDP(1, 1e-6)),
        (ZCDP(1), GaussianEvent(1, 50, 1), ZCDP(0.0099999)),
        (ZCDP(1), GaussianEvent(1, 50, 1), PureDP(1)),
        (ApproxDP(1, 1e-6), LaplaceEvent(1, 10), PureDP(0.0999999)),
        (ApproxDP(1, 1e-6), GaussianEvent(1, 50, 1), PureDP(1)),
        (ApproxDP(1, 1e-6), GaussianEvent(1, 50, 1), ZCDP(1)),
        (ApproxDP(1, 1e-6), GaussianEvent(1, 13, 1), ApproxDP(1, 1e-6)),
    ],
    ids=repr,
)
def test_a_cost_that_does_not_cover_the_event_is_refused(cap, event, cost):
    accountant = accountant_for(cap)
    with pytest.raises(InvalidParameter, match="cost must"):
        accountant.charge(event, cost)
    assert accountant.spent == Amount()


@pytest.mark.parametrize(
    ("shift", "coordinates"), [(1, 1), (5, 1), (2**30, 1), (1, 2), (2**15, 2), (2**15, 40)], ids=repr
)
@pytest.mark.parametrize("budget", [ApproxDP(0.1, 1e-8), ApproxDP(1, 1e-5), ApproxDP(8, 1e-6)], ids=repr)
def test_calibrated_noise_is_accepted_at_its_budget_and_less_noise_is_not(budget, shift, coordinates):
    sigma_squared = gaussian_sigma_squared(budget, sensitivity_squared=shift**2, coordinates=coordinates)
    accountant = SummedAccountant(budget)
    kind = GaussianEvent if coordinates == 1 else GaussianVectorEvent
    less = kind(shift**2, sigma_squared * Fraction(97, 100), coordinates)
    with pytest.raises(InvalidParameter, match="cost must cover"):
        accountant.charge(less, budget)
    accountant.charge(kind(shift**2, sigma_squared, coordinates), budget)
    assert accountant.remaining == Amount()


def test_noise_of_both_kinds_is_accepted_at_the_sum_of_its_budgets():
    half = ApproxDP(0.5, 1e-6)
    sigma_squared = gaussian_sigma_squared(half, sensitivity_squared=1, coordinates=1)
    event = ComposedEvent([LaplaceEvent(1, laplace_scale(1, 0.5)), GaussianEvent(1, sigma_squared, 1)])
    assert SummedAccountant(ApproxDP(1, 1e-6)).charge(event, ApproxDP(1, 1e-6)) == Amount(
        epsilon=1, delta=1e-6
    )


def test_noise_of_both_kinds_is_refused_at_the_budget_of_one():
    budget = ApproxDP(1, 1e-6)
    sigma_squared = gaussian_sigma_squared(budget, sensitivity_squared=1, coordinates=1)
    event = ComposedEvent([LaplaceEvent(1, laplace_scale(1, 0.5)), GaussianEvent(1, sigma_squared, 1)])
    with pytest.raises(InvalidParameter, match="cost must cover"):
        SummedAccountant(budget).charge(event, budget)


def test_gaussian_noise_needs_a_stated_cost_in_a_summed_budget():
    with pytest.raises(NotSupported, match="cost"):
        SummedAccountant(ApproxDP(1, 1e-6)).charge(GaussianEvent(1, 10**6, 1))


@pytest.mark.parametrize("kind", [PureAccountant, ZCDPAccountant, SummedAccountant])
@pytest.mark.parametrize("cap", [1, None, "PureDP", Amount(epsilon=1)], ids=repr)
def test_a_cap_of_another_kind_is_refused(kind, cap):
    with pytest.raises(InvalidParameter, match="cap must be"):
        kind(cap)


@pytest.mark.parametrize("cap", [PureDP(1), ZCDP(1), ApproxDP(1, 1e-6)], ids=repr)
def test_what_is_not_an_event_is_refused(cap):
    accountant: Accountant = accountant_for(cap)
    for thing in (1, None, PureDP(0.1)):
        with pytest.raises(InvalidParameter, match="events must be privacy events"):
            accountant.charge(thing)
