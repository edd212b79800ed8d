"""A1 and A3: the low-order bits of a release, and the order of summation, tell nothing about the data."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit import attack, impossible_outputs, low_bits
from sfumato.data.admission import admit
from sfumato.data.counts import Sums
from sfumato.grid import Lattice
from sfumato.laws import BoundedNoise, SeededBits
from sfumato.privacy import ApproxDP, PureDP, bounded_noise_delta
from sfumato.statistics import Mean, Sum

DRAWS = 300_000


def naive_laplace(rng, count):
    return rng.laplace(size=count)


def inverse_laplace(rng, count):
    uniform = rng.random(count) - 0.5
    return -np.sign(uniform) * np.log1p(-2 * np.abs(uniform))


@pytest.mark.parametrize("noise", [naive_laplace, inverse_laplace])
def test_the_attack_identifies_the_input_of_naive_float_noise(noise):
    rng = np.random.default_rng(1)
    outputs = 0.0 + noise(rng, DRAWS)
    certain = impossible_outputs(outputs, 1.0).mean()
    assert 0.35 < certain < 0.5
    # It never accuses wrongly: what was added to 1 is always possible on 1.
    assert not impossible_outputs(1.0 + noise(rng, DRAWS), 1.0).any()


def test_the_attack_identifies_the_input_of_naive_gaussian_noise():
    outputs = np.random.default_rng(2).normal(size=DRAWS)
    assert impossible_outputs(outputs, 1.0).mean() > 0.05


def released(query, data, seed):
    """What the query releases on the data, many times, by the real code up to the final conversion."""
    bound = query.bind(admit(data), sf.Field(), "substitution")
    law = bound.law(bound.look(admit(data)))
    outcomes = np.asarray(law.sample(SeededBits(seed), DRAWS))
    some = [bound.value((int(outcome),)) for outcome in outcomes[:200]]
    return bound, outcomes, np.array(some)


BUDGETS = [PureDP(1), PureDP(0.01), ApproxDP(1, 1e-6)]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("bounds", [(0, 1), (0, 10), (-3, 7)], ids=str)
def test_the_attack_finds_nothing_in_released_sums(budget, bounds):
    noise = "gaussian" if isinstance(budget, ApproxDP) else "laplace"
    query = Sum(budget=budget, bounds=bounds, nulls="drop", noise=noise)
    for truth, other in ((0.0, 1.0), (1.0, 0.0)):
        bound, outcomes, values = released(query, [truth], seed=3)
        # A step is a power of two, so that this product is the exact value of the released float.
        outputs = outcomes * float(bound.lattice.step)
        assert outputs[:200].tolist() == values.tolist()
        assert impossible_outputs(outputs, other).sum() == 0
        assert impossible_outputs(outputs, truth).sum() == 0


def many(query, seed):
    """The query on one record, many answers at a time, by the real code up to the final conversion."""
    bits = SeededBits(seed)

    def mechanism(record, size):
        bound = query.bind(admit([record]), sf.Field(), "substitution")
        outcomes = np.asarray(bound.law(bound.look(admit([record]))).sample(bits, size))
        return outcomes * float(bound.lattice.step)

    return mechanism


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_the_lattice_of_sums_tells_nothing_and_that_of_the_control_everything(budget):
    noise = "gaussian" if isinstance(budget, ApproxDP) else "laplace"
    query = Sum(budget=budget, bounds=(0, 1), nulls="drop", noise=noise)
    given = {"samples": 100_000, "epsilon": 1.5, "batched": True}
    found = low_bits(many(query, 7), 0.0, 1.0, **given)
    assert not found.succeeded, str(found)
    assert found.figures["impossible_left"] == found.figures["impossible_right"] == 0
    rng = np.random.default_rng(8)
    control = low_bits(lambda value, size: value + naive_laplace(rng, size), 0.0, 1.0, **given)
    assert control.succeeded
    assert control.figures["impossible_left"] > 0.2


def test_what_delta_admits_is_no_finding():
    # Noise on three places: one of them is reached from one side only, with probability delta at least.
    law, epsilon = BoundedNoise(3, 3), 1
    bits = SeededBits(9)

    def mechanism(value, size):
        return value + law.sample(bits, size)

    delta = bounded_noise_delta(epsilon, bound=3, power=3, sensitivity=1)
    given = {"epsilon": epsilon, "samples": 4000, "batched": True}
    assert low_bits(mechanism, 0, 1, **given).succeeded
    assert not low_bits(mechanism, 0, 1, delta=delta, **given).succeeded
    assert low_bits(mechanism, 0, 1, delta=delta / 2, **given).succeeded
    every = {
        each.attack: each
        for each in attack(lambda value: mechanism(value, 1)[0], 0, 1, epsilon=1, delta=delta, samples=1000)
    }
    assert not every["low-order bits"].succeeded
    # What float noise cannot give on the other value is compared at delta, too.
    rng = np.random.default_rng(10)
    control = low_bits(lambda value, size: value + naive_laplace(rng, size), 0.0, 1.0, delta=0.9, **given)
    assert not control.succeeded


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_neighbours_have_the_same_outcomes_one_and_all(budget):
    # Both laws live on all integers, and the same public function maps these to floats.
    query = Mean(budget=budget, bounds=(0, 1), nulls="lower")
    bound, zeros, _ = released(query, [0.0, 0.5], seed=4)
    _, ones, _ = released(query, [1.0, 0.5], seed=5)
    assert zeros.dtype == ones.dtype == np.int64
    spread = np.unique(np.concatenate([zeros[:1000], ones[:1000]]))
    for data in ([0.0, 0.5], [1.0, 0.5]):
        assert np.isfinite(bound.law(bound.look(admit(data))).logpmf(spread)).all()


def test_the_attack_finds_nothing_at_the_front_door():
    # Far inside the bounds no value is clamped.
    data, bounds = [0.0] + [500.0] * 99, (0, 1000)
    sums = [sf.sum(data, bounds=bounds, epsilon=1).value for _ in range(400)]
    means = [sf.mean(data, bounds=bounds, epsilon=1).value for _ in range(400)]
    assert len(set(sums)) == len(set(means)) == 400
    assert impossible_outputs(np.array(sums), 49_500.0).sum() == 0
    assert impossible_outputs(np.array(sums), 49_501.0).sum() == 0
    assert impossible_outputs(np.array(sums), 50_500.0).sum() == 0


ADVERSARIAL = np.array([2.0**50 + 0.25, -(2.0**50), 5e-324, -1e308, 1e308, 0.1, 1 / 3, 1e16, -1e16, 7.0])


def test_sums_are_the_same_integers_in_every_order_of_the_rows():
    rng = np.random.default_rng(6)
    values = np.concatenate([ADVERSARIAL, rng.normal(scale=1e3, size=500), [np.nan, np.inf, -np.inf]])
    lattice = Lattice.over(-1000, 1000, points=2**17, origin=0)
    first = Sums.of(values, lattice, squares=True)
    orders = [rng.permutation(values) for _ in range(1000)]
    assert {Sums.of(order, lattice, squares=True) for order in orders} == {first}
    # The control: float sums of the very same clamped rows depend on the order, and so on the neighbours.
    clamped = [np.clip(np.nan_to_num(order, nan=0.0), -1000.1, 1000.3) for order in orders[:100]]
    assert len({sum(order.tolist()) for order in clamped}) > 1


def test_one_record_moves_a_sum_by_its_lattice_point_and_not_by_rounding_of_the_rest():
    lattice = Lattice.over(0, 2**40, points=2**31, origin=0)
    rest = np.full(1000, 2.0**40 - 1 / 3)
    for record in (0.0, 0.1, 3.0, 2.0**39 + 0.5):
        moved = Sums.of(np.append(rest, record), lattice).first - Sums.of(rest, lattice).first
        assert moved == round(Fraction(record) / lattice.step)
