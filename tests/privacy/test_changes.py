"""What several rows of one person cost: exact multiples, for every kind of event and budget."""

from fractions import Fraction

import pytest

from sfumato.errors import InvalidParameter
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    ApproxEvent,
    BoundedNoiseEvent,
    ComposedEvent,
    ConcentratedEvent,
    FreeEvent,
    GaussianEvent,
    GaussianVectorEvent,
    LaplaceEvent,
    PureDP,
    PureEvent,
    RangeEvent,
    SummedAccountant,
    event_from_dict,
    for_changes,
    per_change,
    zcdp_rho,
)
from sfumato.privacy.events import _FIELDS

# Its delta is rounded up, by tests/privacy/test_approx_event.py; all else here is exact.
APPROX = ApproxEvent(0.1, 1e-6, "partition-selection")
EVENTS = {
    "laplace": (LaplaceEvent(3, Fraction(7, 2)), LaplaceEvent(12, Fraction(7, 2))),
    "gaussian": (GaussianEvent(9, 5, 1), GaussianVectorEvent(144, 5, 4)),
    "gaussian rounds": (GaussianEvent(2, 5, 2), GaussianEvent(32, 5, 8)),
    "gaussian vector": (GaussianVectorEvent(2, 5, 2), GaussianVectorEvent(32, 5, 8)),
    "bounded": (BoundedNoiseEvent(1, 124, 2, 10), BoundedNoiseEvent(4, 124, 2, 10)),
    "approx": (APPROX, for_changes(APPROX, 4)),
    "pure": (PureEvent(0.1, "exponential"), PureEvent(0.4, "exponential")),
    "range": (RangeEvent(0.1, "quantiles"), RangeEvent(0.4, "quantiles")),
    "concentrated": (ConcentratedEvent(0.1, "quantiles"), ConcentratedEvent(1.6, "quantiles")),
    "free": (FreeEvent("public"), FreeEvent("public")),
    "composed": (
        ComposedEvent([LaplaceEvent(1, 2), RangeEvent(1, "quantiles")]),
        ComposedEvent([LaplaceEvent(4, 2), RangeEvent(4, "quantiles")]),
    ),
}


def test_every_kind_of_event_is_here():
    # One-shot events have no cost for more rows: tests/privacy/test_pufferfish.py shows that it is refused.
    assert {event.TYPE for event, _ in EVENTS.values()} == set(_FIELDS) - {"one-shot"}


@pytest.mark.parametrize("name", EVENTS)
def test_four_rows_cost_what_is_stated(name):
    one, four = EVENTS[name]
    assert for_changes(one, 4) == four
    assert event_from_dict(for_changes(one, 4).to_dict()) == four


@pytest.mark.parametrize("name", EVENTS)
def test_one_row_changes_nothing(name):
    assert for_changes(EVENTS[name][0], 1) == EVENTS[name][0]


@pytest.mark.parametrize("name", sorted(set(EVENTS) - {"approx"}))
def test_rows_of_rows_multiply(name):
    one = EVENTS[name][0]
    assert for_changes(for_changes(one, 2), 3) == for_changes(one, 6)


@pytest.mark.parametrize("name", sorted(set(EVENTS) - {"approx", "bounded"}))
@pytest.mark.parametrize("changes", [2, 7, 10**6])
def test_epsilon_grows_with_the_rows_and_rho_with_their_square(name, changes):
    one = EVENTS[name][0]
    several = for_changes(one, changes)
    assert several.rho == changes**2 * one.rho
    if one.pure_epsilon is not None:
        assert several.pure_epsilon == changes * one.pure_epsilon


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, 1e-6), ZCDP(0.1)], ids=repr)
def test_one_row_may_cost_the_whole_budget(budget):
    assert per_change(budget, 1) == per_change(budget, 1, pure=False) == budget


@pytest.mark.parametrize("changes", [2, 3, 10**6])
def test_a_budget_is_divided_exactly(changes):
    assert per_change(PureDP(0.1), changes) == PureDP(Fraction(1, 10) / changes)
    assert per_change(PureDP(0.1), changes, pure=False) == PureDP(Fraction(1, 10) / changes)
    assert per_change(ZCDP(0.1), changes) == ZCDP(Fraction(1, 10) / changes**2)


@pytest.mark.parametrize("changes", [2, 3, 1000])
def test_all_rows_together_cost_the_budget_again(changes):
    pure = per_change(PureDP(0.1), changes)
    assert for_changes(PureEvent(pure.epsilon, "exponential"), changes).pure_epsilon == Fraction(1, 10)
    rho = per_change(ZCDP(0.1), changes).rho
    assert for_changes(ConcentratedEvent(rho, "quantiles"), changes).rho == Fraction(1, 10)


@pytest.mark.parametrize("changes", [2, 3, 1000])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-30])
def test_both_parts_of_an_approximate_budget_are_accepted_by_the_accountant(changes, delta):
    budget = ApproxDP(1, delta)
    pure, other = per_change(budget, changes), per_change(budget, changes, pure=False)
    assert pure == PureDP(Fraction(1, changes))
    assert other == ZCDP(zcdp_rho(1, delta) / changes**2)
    for event in (PureEvent(pure.epsilon, "exponential"), ConcentratedEvent(other.rho, "quantiles")):
        SummedAccountant(budget).charge(for_changes(event, changes), budget)


def test_a_rho_divided_by_the_rows_and_not_by_their_square_is_refused():
    budget = ApproxDP(1, 1e-6)
    wrong = ConcentratedEvent(zcdp_rho(1, 1e-6) / 3, "quantiles")
    with pytest.raises(InvalidParameter, match="cost must cover the event"):
        SummedAccountant(budget).charge(for_changes(wrong, 3), budget)


@pytest.mark.parametrize("changes", [0, -1, 1.5, True, None, "2", 10**6 + 1, float("nan")])
def test_rows_that_are_no_number_of_rows_are_refused(changes):
    with pytest.raises(InvalidParameter, match="changes must be"):
        for_changes(PureEvent(1, "exponential"), changes)
    with pytest.raises(InvalidParameter, match="changes must be"):
        per_change(PureDP(1), changes)


def test_what_is_no_budget_and_no_event_is_refused():
    with pytest.raises(InvalidParameter, match="budget must be"):
        per_change(1.0, 2)
    with pytest.raises(InvalidParameter, match="pure must be"):
        per_change(PureDP(1), 2, pure=None)
    with pytest.raises(InvalidParameter, match="events must be privacy events"):
        for_changes(PureDP(1), 2)
