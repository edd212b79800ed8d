"""The cost of bounded noise: exact for few answers, against other methods for many, and never understated."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import BoundedNoise
from sfumato.laws.bounded import MAX_BOUND, excess
from sfumato.privacy import (
    ZCDP,
    Amount,
    ApproxDP,
    BoundedNoiseEvent,
    ComposedEvent,
    GaussianEvent,
    PureAccountant,
    PureDP,
    PureEvent,
    SummedAccountant,
    ZCDPAccountant,
    bounded_losses,
    bounded_noise,
    bounded_noise_bound,
    bounded_noise_delta,
    compose,
    event_from_dict,
    pld_delta,
)
from sfumato.privacy.bounded_losses import delta_of
from sfumato.privacy.composition import approx_satisfied

mpmath.mp.dps = 30


def points(bound: int, power: int, move: int):
    """The probability of each outcome without and with a move, in 30 digits."""
    weights = {
        i: mpmath.exp(-((mpmath.mpf(bound * bound) / (bound * bound - i * i)) ** power))
        for i in range(-bound + 1, bound)
    }
    total = mpmath.fsum(weights.values())
    reach = range(-bound + 1 - abs(move), bound + abs(move))
    return [(weights.get(i, 0) / total, weights.get(i + move, 0) / total) for i in reach]


def exact_delta(epsilon: float, bound: int, power: int, moves) -> mpmath.mpf:
    """The hockey-stick divergence of the product, summed over all outcomes."""
    factor = mpmath.exp(mpmath.mpf(str(epsilon)))
    terms = []
    for outcome in itertools.product(*(points(bound, power, move) for move in moves)):
        left, right = mpmath.mpf(1), mpmath.mpf(1)
        for p, q in outcome:
            left, right = left * p, right * q
        if left > factor * right:
            terms.append(left - factor * right)
    return mpmath.fsum(terms)


def saddle_delta(epsilon: float, bound: int, power: int, shift: int, count: int) -> float:
    """Another method for many answers: the normal law at the tilted mean, on the outcomes themselves."""
    places = np.arange(-bound + 1, bound - shift, dtype=np.float64)
    here = excess(places, bound, power)
    places, here = places[here < 80], here[here < 80]
    losses = excess(places + shift, bound, power) - here
    masses = np.exp(-here) / BoundedNoise(bound, power).table.total
    low, high = 0.0, 600 / float(losses.max())
    for _ in range(60):
        rate = (low + high) / 2
        weights = masses * np.exp(rate * losses)
        mean = float(weights @ losses) / weights.sum()
        low, high = (rate, high) if mean < epsilon / count else (low, rate)
    variance = float(weights @ (losses - mean) ** 2) / weights.sum()
    spread = math.sqrt(variance * count)

    def part(slope: float) -> float:
        return float(mpmath.exp((slope * spread) ** 2 / 2) * mpmath.erfc(slope * spread / mpmath.sqrt(2)) / 2)

    top = count * math.log(weights.sum()) - rate * epsilon
    return math.exp(top) * (part(rate) - part(rate + 1))


def delta(epsilon, bound, power, sensitivity=1, queries=1):
    return bounded_noise_delta(epsilon, bound=bound, power=power, sensitivity=sensitivity, queries=queries)


# --- few answers, exactly ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "power", "shift", "epsilon"),
    [
        (30, 2, 1, 0.3),
        (87, 2, 1, 1),
        (7, 1, 3, 0.1),
        (5, 3, 8, 2),
        (200, 3, 5, 0.5),
        (3, 1, 1, 0),
        (40, 1, 2, 4),
    ],
)
def test_one_answer_costs_what_the_direct_sum_says(bound, power, shift, epsilon):
    exact = exact_delta(epsilon, bound, power, [shift])
    found = delta(epsilon, bound, power, shift)
    assert exact <= found <= exact * (1 + mpmath.mpf(1e-9))


@pytest.mark.parametrize(
    ("bound", "power", "shift", "queries", "epsilon"),
    [
        (30, 2, 1, 2, 0.3),
        (60, 1, 3, 2, 1),
        (25, 3, 2, 2, 0.5),
        (100, 2, 1, 2, 1),
        (20, 2, 30, 2, 1),
        (40, 1, 1, 2, 3),
        (12, 2, 1, 3, 1),
        (14, 1, 1, 3, 0.5),
        (14, 3, 1, 3, 2),
        (6, 1, 3, 3, 0),
    ],
)
def test_two_and_three_answers_cost_hardly_more_than_the_direct_sum(bound, power, shift, queries, epsilon):
    exact = exact_delta(epsilon, bound, power, [shift] * queries)
    found = delta(epsilon, bound, power, shift, queries)
    print(f"{float(exact):.6e}, above it by {float(found / exact - 1):.1e}")
    assert exact <= found <= exact * (1 + mpmath.mpf(1e-3))


@pytest.mark.parametrize("power", [1, 2, 3])
def test_no_moves_cost_more_than_all_in_one_direction(power):
    bound, shift, epsilon = 7, 2, Fraction(1, 2)
    worst = exact_delta(0.5, bound, power, [shift, shift])
    found = delta(epsilon, bound, power, shift, 2)
    one_direction = mpmath.mpf(0)
    for moves in itertools.product(range(-shift, shift + 1), repeat=2):
        here = exact_delta(0.5, bound, power, moves)
        assert here <= worst * (1 + mpmath.mpf(1e-20))
        assert here <= found
        # The mutant: only moves upwards are paid for.
        paid = [max(move, 0) for move in moves]
        one_direction = max(one_direction, here - exact_delta(0.5, bound, power, paid))
    assert one_direction > worst / 2
    opposite = exact_delta(0.5, bound, power, [shift, -shift])
    assert abs(opposite - worst) <= worst * mpmath.mpf(1e-20)


def test_adaptive_moves_cost_no_more():
    # The second move depends on the first answer in every way that two classes of answers allow.
    bound, power, shift, epsilon = 5, 1, 1, 0.3
    worst = exact_delta(epsilon, bound, power, [shift, shift])
    factor = mpmath.exp(mpmath.mpf(str(epsilon)))
    for low, high in itertools.product((-1, 0, 1), repeat=2):
        terms = []
        for index, (p, q) in enumerate(points(bound, power, shift)):
            for p2, q2 in points(bound, power, low if index < bound else high):
                terms.append(max(p * p2 - factor * q * q2, mpmath.mpf(0)))
        assert mpmath.fsum(terms) <= worst * (1 + mpmath.mpf(1e-20))


def test_without_the_infinite_atom_the_cost_is_understated(monkeypatch):
    exact = exact_delta(1, 6, 1, [3, 3])
    assert delta(1, 6, 1, 3, 2) >= exact
    # The mutant: outcomes that only one data set can give are left out.
    monkeypatch.setattr(BoundedNoise, "sf", lambda _, outcome: 0.0)
    assert delta(1, 6, 1, 3, 2) < 0.9 * exact


@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("queries", [1, 2, 1000])
def test_disjoint_supports_cost_everything(power, queries):
    assert delta(5, 10, power, 19, queries) == delta(5, 10, power, 100, queries) == 1
    assert delta(0, 10, power, 12, 1) < 1


# --- many answers --------------------------------------------------------------------------------


@pytest.mark.parametrize(("bound", "power", "queries"), [(197_450, 1, 10**6), (62_000, 1, 10**5)])
def test_many_answers_agree_with_the_saddle_point(bound, power, queries):
    other = saddle_delta(0.1, bound, power, 1, queries)
    print(f"{other:.4e}")
    assert delta(0.1, bound, power, 1, queries) == pytest.approx(
        other, rel=1e-3 if queries == 10**6 else 2e-2
    )


@pytest.mark.parametrize(("sensitivity", "bound", "power", "queries"), [(4, 815, 2, 100), (2, 80, 1, 3)])
def test_it_agrees_with_the_composition_of_dp_accounting(sensitivity, bound, power, queries):
    own = delta(1, bound, power, sensitivity, queries)
    event = BoundedNoiseEvent(sensitivity, bound, power, queries)
    assert pld_delta([event], 1) == pytest.approx(own, rel=1e-3)
    each = BoundedNoiseEvent(sensitivity, bound, power, 1)
    assert pld_delta([each] * queries, 1) == pld_delta([event], 1)


def test_without_the_tilt_the_transform_drowns_small_deltas(monkeypatch):
    law, shift, count, epsilon = BoundedNoise(197_450, 1), 1, 10**6, Fraction(1, 10)
    right = delta_of(law, shift, count, epsilon, 1e-16)
    assert right == pytest.approx(4.16e-11, rel=1e-2)
    tilt = bounded_losses._tilt
    # The mutant, twice: with the allowance for rounding it says little, and without it is wrong.
    monkeypatch.setattr(bounded_losses, "_tilted_to", lambda grid, *_: tilt(grid, 0.0))
    assert delta_of(law, shift, count, epsilon, 1e-16) > 1000 * right
    monkeypatch.setattr(bounded_losses, "_TRANSFORM", 0.0)
    monkeypatch.setattr(bounded_losses, "_above", lambda *_: 0.0)
    assert abs(delta_of(law, shift, count, epsilon, 1e-16) / right - 1) > 0.2


def test_the_allowance_for_rounding_is_small(monkeypatch):
    cases = [(1, 124, 2, 10), (1, 530, 1, 1000), (0.1, 192_277, 1, 10**6)]
    with_allowance = [delta(epsilon, bound, power, 1, queries) for epsilon, bound, power, queries in cases]
    monkeypatch.setattr(bounded_losses, "_TRANSFORM", 0.0)
    for case, found in zip(cases, with_allowance, strict=True):
        epsilon, bound, power, queries = case
        without = delta(epsilon, bound, power, 1, queries)
        print(f"{queries} answers: the allowance adds {found / without - 1:.1e}")
        assert without <= found <= 1.001 * without


@pytest.mark.parametrize("power", [1, 2, 3])
def test_more_noise_costs_less_and_more_moves_or_answers_cost_more(power):
    for queries in (1, 30):
        by_bound = [delta(1, bound, power, 2, queries) for bound in (20, 50, 51, 90)]
        assert by_bound == sorted(by_bound, reverse=True)
        by_shift = [delta(1, 60, power, shift, queries) for shift in (1, 2, 7, 40)]
        assert by_shift == sorted(by_shift)
    by_queries = [delta(1, 60, power, 1, queries) for queries in (1, 2, 3, 40)]
    assert by_queries == sorted(by_queries)
    by_epsilon = [delta(epsilon, 60, power, 1, 10) for epsilon in (0, 0.5, 2)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)


# --- calibration ---------------------------------------------------------------------------------

# The bound divided by the sensitivity, for (epsilon, delta) and queries, by power; computed independently.
TABLE = {
    (1, 1e-6, 1): {1: 135.8, 2: 87.5, 3: 82.4},
    (1, 1e-6, 10): {1: 201.8, 2: 123.2, 3: 116.1},
    (1, 1e-6, 100): {1: 295.4, 2: 203.2, 3: 212.8},
    (1, 1e-6, 1000): {1: 529.3, 2: 531.3, 3: 595.8},
    (0.1, 1e-10, 1000): {2: 6929, 3: 7722},
}


@pytest.mark.parametrize(
    ("epsilon", "target", "queries", "power"),
    [(*key, power) for key, row in TABLE.items() for power in row],
)
def test_the_calibrated_bound_is_that_of_the_table_and_meets_the_budget(epsilon, target, queries, power):
    sensitivity = 4 if queries < 100 else 2 if epsilon == 1 else 1
    budget = ApproxDP(epsilon, target)
    bound, chosen = bounded_noise_bound(budget, sensitivity=sensitivity, queries=queries, power=power)
    assert chosen == power
    assert bound / sensitivity == pytest.approx(TABLE[epsilon, target, queries][power], rel=5e-3)
    event = BoundedNoiseEvent(sensitivity, bound, power, queries)
    assert approx_satisfied(event, budget)
    smaller = BoundedNoiseEvent(sensitivity, math.floor(bound * (1 - 2**-13)) - 1, power, queries)
    assert not approx_satisfied(smaller, budget)


def test_a_million_answers_are_calibrated_to_what_the_saddle_point_says():
    bound, _ = bounded_noise_bound(ApproxDP(0.1, 1e-10), sensitivity=1, queries=10**6, power=1)
    assert saddle_delta(0.1, bound, 1, 1, 10**6) == pytest.approx(1e-10, rel=5e-3)


@pytest.mark.parametrize(("queries", "best"), [(1, 3), (10, 3), (100, 2), (3000, 1)])
def test_the_best_power_falls_with_the_number_of_answers(queries, best):
    budget = ApproxDP(1, 1e-6)
    bound, power = bounded_noise_bound(budget, sensitivity=2, queries=queries)
    assert power == best
    others = [bounded_noise_bound(budget, sensitivity=2, queries=queries, power=p)[0] for p in (1, 2, 3)]
    assert bound <= min(others) * (1 + 2**-13) + 1


def test_large_deltas_and_large_epsilons_are_calibrated_too():
    for budget in (ApproxDP(1, 0.5), ApproxDP(1000, 1e-6), ApproxDP(5, 0.999)):
        for queries in (1, 20):
            bound, power = bounded_noise_bound(budget, sensitivity=3, queries=queries)
            assert approx_satisfied(BoundedNoiseEvent(3, bound, power, queries), budget)


@pytest.mark.parametrize("queries", [2, 3, 6])
@pytest.mark.parametrize(("bound", "power"), [(2, 1), (2, 3), (3, 2), (4, 1)])
def test_moves_that_leave_one_outcome_or_two_are_paid_for(bound, power, queries):
    for shift in (2 * bound - 2, 2 * bound - 3):
        for epsilon in (0, 1e-9, 1, 40):
            exact = few_delta(epsilon, bound, power, shift, queries)
            found = delta(epsilon, bound, power, shift, queries)
            assert exact <= found <= exact * (1 + mpmath.mpf(1e-3))


def few_delta(epsilon: float, bound: int, power: int, shift: int, queries: int) -> mpmath.mpf:
    """The exact delta where at most two losses are finite: a binomial law."""
    finite = [(p, q) for p, q in points(bound, power, shift) if p and q]
    assert len(finite) in (1, 2)
    factor = mpmath.exp(mpmath.mpf(str(epsilon)))
    kept = mpmath.fsum(p for p, _ in finite)
    terms = [1 - kept**queries]
    (p, q), (p2, q2) = finite[0], (finite[1] if len(finite) == 2 else (mpmath.mpf(0), mpmath.mpf(0)))
    for k in range(queries + 1):
        ways = math.comb(queries, k)
        gain = p**k * p2 ** (queries - k) - factor * q**k * q2 ** (queries - k)
        terms.append(ways * max(gain, mpmath.mpf(0)))
    return mpmath.fsum(terms)


@pytest.mark.parametrize(("bound", "power"), [(20, 3), (100, 2), (100, 3), (2**16, 3)])
def test_moves_after_which_floats_lose_all_outcomes_cost_everything(bound, power):
    for shift in (2 * bound - 2, 2 * bound - 3):
        for epsilon in (0, 1, 1000):
            assert delta(epsilon, bound, power, shift, 2) == 1
    with pytest.raises(NotSupported, match="infinite"):
        pld_delta([BoundedNoiseEvent(2 * bound - 2, bound, power, 1), PureEvent(0.1, "x")], 1)


@pytest.mark.parametrize(
    ("target", "queries", "bound"), [(0.99, 100, 605), (0.9, 100, 905), (0.5, 100, 1742)]
)
def test_large_deltas_take_few_and_small_transforms(monkeypatch, target, queries, bound):
    sizes = []
    inner = bounded_losses.composed

    def counted(grid, tilt, count, epsilon, size):
        sizes.append(size)
        return inner(grid, tilt, count, epsilon, size)

    monkeypatch.setattr(bounded_losses, "composed", counted)
    # Rare losses of thousands must not swamp the others, which made the bound many times too large.
    assert bounded_noise_bound(ApproxDP(1, target), sensitivity=100, queries=queries, power=1)[0] == bound
    assert len(sizes) <= 60
    assert max(sizes) <= 2**17
    found = delta(1, bound, 1, 100, queries)
    assert found <= target < 1.003 * found


def test_large_deltas_agree_with_dp_accounting():
    for bound, epsilon in ((600, 1), (900, 1), (1700, 3)):
        event = BoundedNoiseEvent(100, bound, 1, 100)
        assert delta(epsilon, bound, 1, 100, 100) == pytest.approx(pld_delta([event], epsilon), rel=1e-3)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_integers_of_numpy_do_not_wrap(kind):
    given = {"bound": kind(100), "power": kind(2), "sensitivity": kind(90), "queries": kind(2)}
    own = {name: int(value) for name, value in given.items()}
    assert bounded_noise_delta(1, **given) == bounded_noise_delta(1, **own)
    found = bounded_noise_bound(ApproxDP(1, 0.1), sensitivity=kind(90), queries=kind(2), power=kind(2))
    assert found == bounded_noise_bound(ApproxDP(1, 0.1), sensitivity=90, queries=2, power=2)
    assert all(type(number) is int for number in found)
    law = BoundedNoise(kind(100), kind(2))
    assert type(law.bound) is type(law.power) is int


def test_what_no_bound_can_meet_is_refused(monkeypatch):
    monkeypatch.setattr(bounded_noise, "MAX_BOUND", 5000)
    for power in (None, 1, 2, 3):
        with pytest.raises(NotSupported, match="take a larger granularity"):
            bounded_noise_bound(ApproxDP(0.1, 1e-10), sensitivity=3, queries=1000, power=power)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(1), 1, None, "1"])
def test_other_budgets_are_refused_with_the_reason(budget):
    with pytest.raises(InvalidParameter, match="satisfies no pure and no zero-concentrated budget"):
        bounded_noise_bound(budget, sensitivity=1, queries=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sensitivity": 0},
        {"sensitivity": 1.5},
        {"sensitivity": True},
        {"queries": 0},
        {"queries": 10**7 + 1},
        {"queries": 2.0},
        {"bound": 0},
        {"bound": MAX_BOUND + 1},
        {"power": 4},
        {"power": "2"},
        {"epsilon": -1},
        {"epsilon": 1001},
        {"epsilon": float("nan")},
        {"epsilon": None},
    ],
    ids=repr,
)
def test_hostile_parameters_are_refused(wrong):
    numbers = {"epsilon": 1, "bound": 10, "power": 2, "sensitivity": 1, "queries": 1, **wrong}
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        bounded_noise_delta(numbers.pop("epsilon"), **numbers)


@pytest.mark.parametrize(
    "budget", [ApproxDP(1, Fraction(1, 10**31)), ApproxDP(1e-5, 1e-6), ApproxDP(1001, 0.1)]
)
def test_budgets_out_of_range_are_refused(budget):
    with pytest.raises(InvalidParameter, match="must be"):
        bounded_noise_bound(budget, sensitivity=1, queries=1)


# --- the event -----------------------------------------------------------------------------------

EVENT = BoundedNoiseEvent(sensitivity=1, bound=124, power=2, queries=10)


def test_the_event_reads_back_and_keeps_its_meaning():
    record = {
        "format": 1,
        "type": "bounded",
        "sensitivity": "1",
        "bound": "124",
        "power": "2",
        "queries": "10",
    }
    assert EVENT.to_dict() == record
    assert event_from_dict(record) == EVENT
    assert repr(EVENT) == "BoundedNoiseEvent(sensitivity=1, bound=124, power=2, queries=10)"
    both = ComposedEvent([EVENT, PureEvent(0.1, "x")])
    assert event_from_dict(both.to_dict()) == both
    for name in ("sensitivity", "bound", "power", "queries"):
        with pytest.raises(InvalidParameter, match=name):
            event_from_dict({**record, name: "0"})


def test_only_a_stated_approximate_cost_pays_for_it():
    with pytest.raises(NotSupported, match="no finite pure epsilon"):
        PureAccountant(PureDP(9)).charge(EVENT)
    for cost in (None, ZCDP(5)):
        with pytest.raises(NotSupported, match="no finite zCDP cost"):
            ZCDPAccountant(ZCDP(9)).charge(EVENT, cost)
    summed = SummedAccountant(ApproxDP(2, 1e-5))
    with pytest.raises(NotSupported, match="needs the"):
        summed.charge(EVENT)
    for cost in (ApproxDP(1, 9e-7), ApproxDP(0.9, 1e-6), PureDP(1)):
        with pytest.raises(InvalidParameter, match="must cover the event"):
            summed.charge(EVENT, cost)
    assert summed.spent == Amount()
    assert summed.charge(EVENT, ApproxDP(1, 1e-6)) == Amount(epsilon=1, delta=Fraction(1, 10**6))


def test_batches_compose_where_there_is_a_proof():
    alone = compose([EVENT], delta=1e-6)
    assert delta(alone.considered["bounded noise"], 124, 2, 1, 10) <= 1e-6
    assert float(alone.considered["bounded noise"]) == pytest.approx(float(alone.considered["PLD"]), rel=1e-3)
    halves = [BoundedNoiseEvent(1, 124, 2, 5)] * 2
    assert compose(halves, delta=1e-6).considered["bounded noise"] == alone.considered["bounded noise"]
    mixed = compose([EVENT, PureEvent(0.5, "x")], delta=1e-6).considered
    assert mixed["bounded noise"] == alone.considered["bounded noise"] + Fraction(1, 2)
    assert mixed["PLD"] <= mixed["bounded noise"]
    gaussian = compose([EVENT, GaussianEvent(1, 100, 1)], delta=1e-5)
    assert set(gaussian.considered) == {"PLD"}
    assert approx_satisfied(ComposedEvent([EVENT, PureEvent(0.5, "x")]), ApproxDP(1.5, 1e-6))
    assert not approx_satisfied(ComposedEvent([EVENT, PureEvent(0.5, "x")]), ApproxDP(0.6, 1e-6))


def test_batches_without_a_proof_are_refused():
    with pytest.raises(NotSupported, match="no proof covers"):
        compose([EVENT, GaussianEvent(2, 100, 2)], delta=1e-5)
    with pytest.raises(NotSupported, match="at most"):
        pld_delta([BoundedNoiseEvent(1, 124, 2, 10_001)], 1)
    with pytest.raises(NotSupported, match="too many or infinite"):
        pld_delta([BoundedNoiseEvent(19, 10, 2, 1)], 1)
