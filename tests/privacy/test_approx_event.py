"""A stated (epsilon, delta) bound: its record, who pays for it, and what it costs in a batch."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from mpmath import mp
from tests.privacy.oracle import gaussian_law, hockey_stick, laplace_law, product_pair, real, shifted_pair

from sfumato.batch import Batch
from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported
from sfumato.ledger import MemoryLedger
from sfumato.mechanisms import PartitionSelection
from sfumato.privacy import (
    ZCDP,
    Amount,
    ApproxDP,
    ApproxEvent,
    BoundedNoiseEvent,
    ComposedEvent,
    FreeEvent,
    GaussianEvent,
    LaplaceEvent,
    PureAccountant,
    PureDP,
    PureEvent,
    SummedAccountant,
    ZCDPAccountant,
    compose,
    composition,
    event_from_dict,
    for_changes,
    pld_delta,
    pld_epsilon,
)
from sfumato.privacy.composition import approx_satisfied, stated_delta
from sfumato.statistics import Count

EVENT = ApproxEvent(epsilon=0.5, delta=1e-6, name="partition-selection")
PURE = PureEvent(0.25, "exponential")
MICRO = Fraction(1, 10**6)


def test_the_event_reads_back_and_keeps_its_meaning():
    record = {"format": 1, "type": "approx", "epsilon": "1/2", "delta": "1/1000000", "name": EVENT.name}
    assert EVENT.to_dict() == record
    assert event_from_dict(record) == EVENT
    assert repr(EVENT) == "ApproxEvent(epsilon=0.5, delta=1e-06, name='partition-selection')"
    both = ComposedEvent([EVENT, PURE])
    assert event_from_dict(both.to_dict()) == both
    for name, value in (("epsilon", "0"), ("delta", "0"), ("delta", "1"), ("delta", "3/2"), ("name", "")):
        with pytest.raises(InvalidParameter, match=f"^{name} must be"):
            event_from_dict({**record, name: value})
    for given in ((0, 0.1), (-1, 0.1), (math.inf, 0.1)):
        with pytest.raises(InvalidParameter, match=r"^epsilon must be"):
            ApproxEvent(*given, "x")


def test_only_an_approximate_budget_pays_for_it():
    assert EVENT.pure_epsilon is None
    assert ComposedEvent([PURE, EVENT]).pure_epsilon is None
    with pytest.raises(NotSupported, match=r"pure budget cannot pay for ApproxEvent.*no finite pure epsilon"):
        PureAccountant(PureDP(9)).charge(EVENT)
    for cost in (None, ZCDP(5)):
        with pytest.raises(NotSupported, match=r"^ApproxEvent.* has no finite zCDP cost: state an ApproxDP"):
            ZCDPAccountant(ZCDP(9)).charge(EVENT, cost)
    summed = SummedAccountant(ApproxDP(1.5, 3e-6))
    assert summed.charge(EVENT) == Amount(epsilon=0.5, delta=MICRO)
    for cost in (ApproxDP(0.5, Fraction(1, 10**6 + 1)), ApproxDP(0.49, 1e-6), PureDP(1)):
        with pytest.raises(InvalidParameter, match=r"must cover the event"):
            summed.charge(EVENT, cost)
    assert summed.charge(EVENT, ApproxDP(0.5, 1e-6)) == Amount(epsilon=0.5, delta=MICRO)
    assert summed.price(ComposedEvent([EVENT, FreeEvent("public")])) == Amount(epsilon=0.5, delta=MICRO)
    assert summed.charge(PURE) == Amount(epsilon=0.25)
    with pytest.raises(BudgetExceeded):
        summed.charge(EVENT)
    assert summed.remaining == Amount(epsilon=0.25, delta=MICRO)


def test_what_a_batch_states_adds_up_where_every_part_states_it():
    summed = SummedAccountant(ApproxDP(9, 1e-3))
    both = ComposedEvent([EVENT, PURE, EVENT, LaplaceEvent(1, 2)])
    assert summed.price(both) == Amount(epsilon=Fraction(7, 4), delta=2 * MICRO)
    with pytest.raises(NotSupported, match="needs the"):
        summed.price(ComposedEvent([EVENT, GaussianEvent(1, 9, 1)]))


# --- the dominating pair ---------------------------------------------------------------------------


def pair_of(event):
    """The pair of lemma 4, from its statement: infinite loss with probability delta, else a coin."""
    epsilon, delta = real(event.epsilon), real(getattr(event, "delta", 0))
    common = (1 - delta) / (1 + mp.exp(-epsilon))
    rare = (1 - delta) - common
    return [(delta, real(0)), (common, rare), (rare, common), (real(0), delta)]


def divergence(left, right, gamma):
    return float(np.maximum(left - gamma * right, 0).sum())


def paired_divergence(epsilon, gamma, mass):
    common = (1 - mass) / (1 + math.exp(-epsilon))
    left = np.array([mass, common, 1 - mass - common, 0.0])
    return divergence(left, left[[3, 2, 1, 0]], gamma)


def dominated(mass_of):
    """Whether random laws are dominated by the pair of their own epsilon and delta, at every ratio."""
    random = np.random.default_rng(3)
    for _ in range(300):
        left, right = random.dirichlet(np.full(4, 0.3), 2)
        epsilon = random.uniform(0.05, 3)
        delta = max(divergence(*pair, math.exp(epsilon)) for pair in ((left, right), (right, left)))
        corners = [0.0, math.exp(-epsilon), math.exp(epsilon)]
        for gamma in (*corners, *np.geomspace(1e-3, 1e3, 60)):
            most = paired_divergence(epsilon, gamma, mass_of(delta))
            if max(divergence(left, right, gamma), divergence(right, left, gamma)) > most + 1e-12:
                return False
    return True


def test_any_two_laws_are_dominated_by_the_pair_of_their_bound():
    assert dominated(lambda delta: delta)
    assert not dominated(lambda delta: 0.9 * delta)


BATCHES = {
    "one": [ApproxEvent(0.5, 0.01, "x")],
    "three": [ApproxEvent(0.5, 0.01, "x")] * 3,
    "two kinds": [ApproxEvent(0.5, 0.01, "x"), ApproxEvent(0.2, 0.003, "x")],
    "with a pure one": [ApproxEvent(0.5, 0.01, "x"), PureEvent(0.7, "x")],
    "with Laplace noise": [ApproxEvent(0.5, 0.01, "x"), LaplaceEvent(1, 3)],
    "with Gaussian noise": [ApproxEvent(0.5, 0.01, "x"), GaussianEvent(1, 9, 1)],
}


def exact_pair(event):
    if isinstance(event, LaplaceEvent):
        return shifted_pair(laplace_law(event.scale), 1)
    if isinstance(event, GaussianEvent):
        return shifted_pair(gaussian_law(event.sigma_squared), 1)
    return pair_of(event)


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("epsilon", [0, 0.3, 0.9, 2])
def test_a_privacy_loss_distribution_is_just_above_the_product_of_the_pairs(name, epsilon):
    truth = float(hockey_stick(product_pair(*map(exact_pair, BATCHES[name])), epsilon))
    found = pld_delta(BATCHES[name], epsilon)
    assert truth <= found <= truth * (1 + 5e-3) + 1e-10


def test_a_privacy_loss_distribution_is_not_below_the_deltas_of_its_events():
    event = ApproxEvent(0.5, 0.01, "x")
    assert pld_delta([event], 50) >= 0.01
    with pytest.raises(NotSupported, match="no epsilon was proved"):
        pld_epsilon([event], 0.009)
    assert pld_epsilon([event] * 2, 0.03) < 1
    with pytest.raises(NotSupported, match="too large to compose"):
        pld_delta([ApproxEvent(200, 0.01, "x")], 1)
    with pytest.raises(NotSupported, match="almost all privacy losses"):
        pld_delta([ApproxEvent(1, 1 - Fraction(1, 10**10), "x")], 1)


# --- batches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("delta", [0.04, 0.2])
def test_every_proof_for_a_batch_is_above_the_product_of_the_pairs(name, delta):
    pair = product_pair(*map(exact_pair, BATCHES[name]))
    found = compose(BATCHES[name], delta=delta)
    assert "PLD" in found.considered
    for epsilon in found.considered.values():
        assert float(hockey_stick(pair, epsilon)) <= delta
    for method, epsilon in found.considered.items():
        cost = ApproxDP(epsilon * (1 + MICRO), delta)
        assert approx_satisfied(ComposedEvent(BATCHES[name]), cost), method


def test_deltas_that_are_forgotten_show(monkeypatch):
    batch = BATCHES["three"]
    pair = product_pair(*map(exact_pair, batch))
    with pytest.raises(NotSupported, match="is below the deltas of the events"):
        compose(batch, delta=0.02)
    monkeypatch.setattr(composition, "stated_delta", lambda events: Fraction(0))
    wrong = compose(batch, delta=0.02)
    assert float(hockey_stick(pair, wrong.epsilon)) > 0.029


def test_at_the_sum_of_the_deltas_the_epsilons_add_up():
    found = compose([EVENT, EVENT, PURE], delta=2 * MICRO)
    assert found.considered["approximate sum"] == Fraction(5, 4)
    assert found.epsilon == Fraction(5, 4)
    assert stated_delta([ComposedEvent([EVENT, PURE]), EVENT]) == 2 * MICRO
    assert approx_satisfied(ComposedEvent([EVENT, EVENT, PURE]), ApproxDP(Fraction(5, 4), 2 * MICRO))
    assert not approx_satisfied(ComposedEvent([EVENT, EVENT, PURE]), ApproxDP(1, 2 * MICRO))
    assert not approx_satisfied(ComposedEvent([EVENT, EVENT]), ApproxDP(9, Fraction(199, 10**8)))


def test_a_larger_delta_buys_many_selections_for_less():
    found = compose([ApproxEvent(0.1, 1e-9, "x")] * 50, delta=1e-6)
    assert found.considered["approximate sum"] == 5
    assert found.considered["zCDP"] < 5
    assert found.epsilon < Fraction(41, 10)


def test_a_delta_below_those_of_the_events_is_refused():
    with pytest.raises(NotSupported, match=r"delta=1e-06 is below the deltas of the events, together 2e-06"):
        compose([EVENT, EVENT], delta=MICRO)
    with pytest.raises(NotSupported, match=r"delta=1e-06 is all taken by the deltas of the events"):
        compose([EVENT, GaussianEvent(2, 9, 2)], delta=MICRO)


def test_noise_beside_a_selection_keeps_its_own_proof():
    noisy = GaussianEvent(2, 200, 2)
    alone = compose([noisy], delta=MICRO).considered["Gaussian"]
    beside = compose([noisy, EVENT], delta=2 * MICRO).considered["Gaussian"]
    assert alone + Fraction(499, 1000) < beside <= alone + Fraction(1, 2)
    assert approx_satisfied(ComposedEvent([noisy, EVENT]), ApproxDP(alone + Fraction(1, 2), 2 * MICRO))
    bounded = BoundedNoiseEvent(sensitivity=1, bound=124, power=2, queries=10)
    alone = compose([bounded], delta=MICRO).considered["bounded noise"]
    assert compose([bounded, EVENT], delta=2 * MICRO).considered["bounded noise"] <= alone + Fraction(1, 2)
    assert approx_satisfied(ComposedEvent([bounded, EVENT]), ApproxDP(alone + Fraction(51, 100), 2 * MICRO))


def test_sums_of_deltas_may_have_any_number_of_digits():
    odd = [ApproxEvent(Fraction(1, 10), Fraction(1, 10**6 + 2 * i + 1), "x") for i in range(120)]
    found = compose(odd, delta=0.001)
    assert found.considered["approximate sum"] == 12
    assert found.considered["zCDP"] < 6
    assert approx_satisfied(ComposedEvent(odd), found.budget)


# --- a batch of questions --------------------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """What a ledger needs of a selection."""

    name: ClassVar[str] = "keys"
    column: ClassVar[str] = "town"
    neighbours: ClassVar[str] = "add-remove"
    selection: PartitionSelection

    @property
    def event(self):
        return self.selection.event

    @property
    def cost(self):
        return self.selection.cost


KEYS = Keys(PartitionSelection(epsilon=Fraction(1, 2), delta=MICRO))


def counted(budget, **options):
    return Count(budget=budget, neighbours="add-remove", **options)


def test_a_selection_and_a_count_are_charged_together():
    made = Batch((KEYS, counted(PureDP(0.5))), "add-remove")
    assert made.cost == ApproxDP(1, MICRO)
    assert made.composition == "sum of epsilon and delta"
    ledger = MemoryLedger(ApproxDP(1, 1e-6), neighbours="add-remove")
    ledger.charge(made)
    assert ledger.remaining == Amount()


def test_many_selections_use_a_delta_that_is_left():
    small = Keys(PartitionSelection(epsilon=Fraction(1, 10), delta=Fraction(1, 10**9)))
    made = Batch((small,) * 50, "add-remove", ApproxDP(9, 1e-6))
    assert made.cost.epsilon < Fraction(9, 2)
    assert approx_satisfied(made.event, made.cost)


def test_a_selection_beside_gaussian_counts_is_covered_by_the_sum():
    made = Batch((KEYS, counted(ApproxDP(0.5, 1e-6), noise="gaussian")), "add-remove")
    assert made.cost.delta == 2 * MICRO
    assert made.cost.epsilon <= 1
    assert approx_satisfied(made.event, made.cost)


def test_a_cap_below_the_delta_of_a_selection_refuses_by_the_sum():
    made = Batch((KEYS, counted(PureDP(0.5))), "add-remove", ApproxDP(2, 1e-9))
    assert made.cost == ApproxDP(1, MICRO)
    ledger = MemoryLedger(ApproxDP(2, 1e-9), neighbours="add-remove")
    with pytest.raises(BudgetExceeded):
        ledger.charge(made)


def test_a_concentrated_batch_refuses_a_selection():
    with pytest.raises(NotSupported, match="no finite zCDP cost"):
        _ = Batch((KEYS, counted(ZCDP(0.5), noise="gaussian")), "add-remove").cost


# --- several rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.001", "1e-30", "0.5", "3"])
@pytest.mark.parametrize("changes", [2, 3, 10])
def test_several_rows_cost_a_geometric_sum_rounded_up(epsilon, changes):
    one = ApproxEvent(Fraction(epsilon), Fraction(1, 10**15), "x")
    several = for_changes(one, changes)
    assert several.epsilon == changes * one.epsilon
    truth = real(one.delta) * sum(mp.exp(j * real(one.epsilon)) for j in range(changes))
    ratio = real(several.delta) / truth
    assert 1 - real("1e-14") <= ratio <= 1 + real(Fraction(1, 2**59))
    assert event_from_dict(several.to_dict()) == several


def test_the_sum_is_never_rounded_down():
    # e^0 + e^epsilon at an epsilon so small that floats would lose it, compared by fractions.
    for digits in (5, 20, 60, 200):
        epsilon = Fraction(1, 10**digits)
        found = for_changes(ApproxEvent(epsilon, MICRO, "x"), 2).delta
        assert found > MICRO * (2 + epsilon)
        assert found < MICRO * (2 + 2 * epsilon) * (1 + Fraction(1, 2**55))


def test_rows_of_rows_are_above_the_sum_and_near_it():
    one = ApproxEvent(0.1, 1e-9, "x")
    twice, once = for_changes(for_changes(one, 2), 3), for_changes(one, 6)
    assert twice.epsilon == once.epsilon
    assert float(twice.delta) == pytest.approx(float(once.delta), rel=1e-15)


def test_rows_whose_delta_would_be_one_are_refused():
    for event, changes in ((ApproxEvent(1, 0.1, "x"), 5), (ApproxEvent(9, 1e-9, "x"), 100)):
        with pytest.raises(InvalidParameter, match=r"^delta must be inside \(0, 1\)"):
            for_changes(event, changes)
