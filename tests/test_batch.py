"""A batch costs what its parts cost together by the best proof, and never more than their sum."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.batch import Batch
from sfumato.privacy import Amount
from sfumato.privacy.composition import approx_satisfied

RELATION = "add-remove"


def counted(budget, **options):
    return sf.Count(budget=budget, neighbours=RELATION, **options)


def batch(*budgets, within=None, **options):
    return Batch(tuple(counted(budget, **options) for budget in budgets), RELATION, within)


@given(st.lists(st.fractions(Fraction(1, 100), 3, max_denominator=100), min_size=1, max_size=8))
def test_epsilons_add_up_exactly(parts):
    made = batch(*map(sf.PureDP, parts))
    assert made.cost == sf.PureDP(sum(parts))
    assert made.event.pure_epsilon == sum(parts)
    assert made.composition == "sum of epsilon"


@given(st.lists(st.fractions(Fraction(1, 100), 3, max_denominator=100), min_size=1, max_size=8))
def test_rhos_add_up_exactly(parts):
    made = batch(*map(sf.ZCDP, parts), noise="gaussian")
    assert made.cost == sf.ZCDP(sum(parts))
    assert made.composition == "sum of rho"


def test_a_pure_part_beside_a_concentrated_one_is_charged_its_own_rho():
    made = batch(sf.PureDP(0.5), sf.ZCDP(0.1))
    assert made.cost == sf.ZCDP(Fraction(1, 8) + Fraction(1, 10))


def test_a_free_part_costs_nothing():
    free = sf.Count(budget=sf.PureDP(1), neighbours="substitution", nulls="lower")
    assert Batch((free, free), "substitution").cost == Amount()
    assert Batch((free, counted(sf.PureDP(1))), "substitution").cost == sf.PureDP(1)


def test_many_gaussian_counts_cost_less_as_one_batch_than_their_sum():
    parts = [sf.ApproxDP(0.1, 1e-8)] * 20
    made = batch(*parts, noise="gaussian")
    assert made.cost.delta == Fraction(20, 10**8)
    assert made.cost.epsilon < Fraction(20, 10) * Fraction(3, 5)
    assert approx_satisfied(made.event, made.cost)


def test_a_smaller_delta_than_the_sum_is_kept():
    made = batch(*[sf.ApproxDP(0.1, 1e-8)] * 20, noise="gaussian", within=sf.ApproxDP(1, Fraction(1, 10**8)))
    assert made.cost.delta == Fraction(1, 10**8)
    assert approx_satisfied(made.event, made.cost)


def test_a_delta_is_spent_on_pure_parts_only_if_it_lowers_their_epsilon_by_a_twentieth():
    assert batch(sf.PureDP(0.5), within=sf.ApproxDP(1, 1e-30)).cost == sf.PureDP(0.5)
    few = [sf.PureDP(0.25)] * 2
    assert batch(*few, within=sf.ApproxDP(1, 1e-6)).cost == sf.PureDP(0.5)
    many = batch(*[sf.PureDP(0.05)] * 40, within=sf.ApproxDP(3, 1e-5))
    assert many.cost.epsilon < Fraction(19, 10)
    assert approx_satisfied(many.event, many.cost)


def test_a_delta_is_spent_if_the_sum_would_not_fit():
    parts = [sf.PureDP(0.1)] * 12
    free = batch(*parts, within=sf.ApproxDP(2, 1e-5))
    tight = batch(*parts, within=sf.ApproxDP(1.19, 1e-5))
    assert free.cost == sf.PureDP(1.2)
    assert tight.cost.epsilon < Fraction(119, 100)
    assert tight.cost.delta == Fraction(1, 10**5)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([0.05, 0.1, 0.4]), min_size=1, max_size=4), st.sampled_from([1e-9, 1e-6]))
def test_a_batch_never_costs_more_than_the_sum_of_its_parts(epsilons, delta):
    made = batch(*[sf.ApproxDP(epsilon, delta) for epsilon in epsilons])
    assert made.cost.epsilon <= sum(Fraction(str(epsilon)) for epsilon in epsilons)


def test_a_ledger_believes_the_cost_of_a_batch_only_after_checking_it():
    class Cheap(Batch):
        @property
        def cost(self):
            return sf.ApproxDP(0.01, 1e-9)

    ledger = sf.MemoryLedger(sf.ApproxDP(1, 1e-6), neighbours=RELATION)
    items = tuple(counted(sf.ApproxDP(0.3, 1e-7), noise="gaussian") for _ in range(2))
    with pytest.raises(sf.InvalidParameter, match="must cover the event"):
        ledger.charge(Cheap(items, RELATION))
    assert ledger.spent == Amount()
    ledger.charge(Batch(items, RELATION))
    assert ledger.spent.epsilon < Fraction(6, 10)
