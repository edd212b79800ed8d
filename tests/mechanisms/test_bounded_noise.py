"""Bounded noise as a mechanism and as a stream: exact audit, countdown, hard bound, and when it loses."""

import copy
import itertools
import math
import os
import pickle
from decimal import Decimal
from fractions import Fraction
from threading import Thread

import numpy as np
import pytest
from scipy.stats import norm
from tests.laws.fit import FALSE_ALARM, chi_square_of

from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported
from sfumato.laws import BoundedNoise, SeededBits, SystemBits
from sfumato.mechanisms import BoundedAnswers, BoundedNoiseMechanism
from sfumato.mechanisms.bounded_noise import lattice_sensitivity
from sfumato.privacy import ZCDP, Amount, ApproxDP, PureAccountant, PureDP, SummedAccountant, ZCDPAccountant

BUDGET = ApproxDP(1, 1e-6)


def calibrated(queries=10, sensitivity=1, budget=BUDGET, **options):
    return BoundedNoiseMechanism.calibrated(budget, sensitivity=sensitivity, queries=queries, **options)


def opened(queries=3, **options):
    return BoundedAnswers.open(
        BUDGET, **{"sensitivity": 1, "queries": queries, "power": 2, "bits": SeededBits(5), **options}
    )


def hockey_stick(mechanism, left, right, epsilon):
    """The exact delta of one answer between two values, from the laws that are sampled."""
    outcomes = np.arange(min(left, right) - mechanism.bound, max(left, right) + mechanism.bound + 1)
    p, q = (np.exp(mechanism.law(value).logpmf(outcomes)) for value in (left, right))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


# --- audit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.3, 0.01), (4, 1e-9)])
def test_no_neighbours_lose_more_than_the_budget_and_the_worst_comes_near(power, epsilon, delta):
    mechanism = calibrated(1, 3, ApproxDP(epsilon, delta), power=power)
    losses = {move: hockey_stick(mechanism, 70, 70 + move, epsilon) for move in range(-3, 4)}
    assert max(losses.values()) <= delta
    assert losses[3] == pytest.approx(losses[-3], rel=1e-9)
    assert losses[3] == pytest.approx(mechanism.delta_at(epsilon), rel=1e-8)
    # One step of the bound changes delta by a few per cent.
    assert losses[3] > 0.7 * delta
    # The mutant: a sensitivity one step too small.
    assert hockey_stick(mechanism, 70, 74, epsilon) > delta


def test_a_floored_lattice_sensitivity_is_caught():
    granularity, sensitivity = Fraction(1, 2), Fraction(6, 5)
    values = [Fraction(i, 20) for i in range(80)]

    def place(value):
        return math.floor(value / granularity + Fraction(1, 2))

    moves = {
        abs(place(a) - place(b)) for a, b in itertools.product(values, repeat=2) if abs(a - b) <= sensitivity
    }
    assert max(moves) == lattice_sensitivity(sensitivity / granularity) == 3
    stream = opened(sensitivity=sensitivity, granularity=granularity)
    assert stream.mechanism.sensitivity == 3
    # The mutant: calibrated to the floor, the move of three steps breaks the budget.
    mutant = calibrated(1, math.floor(sensitivity / granularity))
    assert hockey_stick(mutant, 0, 3, 1) > 1e-6
    # Halves to even could move one step more than halves upwards.
    assert abs(round(Fraction(1, 2)) - round(Fraction(3, 2))) == 2 > math.ceil(Fraction(1))


# --- the mechanism -------------------------------------------------------------------------------


def test_the_hard_bound_and_the_quantiles_are_those_of_the_law():
    mechanism = calibrated(100)
    noise = BoundedNoise(mechanism.bound, mechanism.power)
    assert mechanism.noise == noise
    assert mechanism.radius(1) == mechanism.bound - 1
    assert noise.sf(mechanism.radius(1)) == 0
    assert mechanism.radius(0.9) == noise.radius(0.9)
    assert mechanism.std == pytest.approx(math.sqrt(noise.variance))
    for confidence in (0.5, 0.95, 0.999):
        quantile = mechanism.max_error_quantile(confidence)
        inside = [1 - 2 * noise.sf(t) for t in (quantile, quantile - 1)]
        assert inside[0] ** 100 >= confidence > inside[1] ** 100
    largest = np.abs(noise.sample(SeededBits(2), 100 * 4000)).reshape(4000, 100).max(axis=1)
    covered = np.mean(largest <= mechanism.max_error_quantile(0.95))
    assert abs(covered - 0.95) < 6.1 * math.sqrt(0.95 * 0.05 / 4000) + 0.01


def test_the_gaussian_competitor_is_the_analytic_one_with_the_two_sided_maximum():
    # (queries, sigma, 95 % maximum) of the analytic Gaussian mechanism, computed independently.
    for queries, sigma, maximum in ((1, 4.22, 8.28), (10, 13.36, 37.40), (100, 42.25, 146.8)):
        mechanism = calibrated(queries)
        assert mechanism.gaussian_std == pytest.approx(sigma, rel=2e-3)
        assert mechanism.gaussian_maximum(0.95) == pytest.approx(maximum, rel=1e-3)
        each = 0.95 ** (1 / queries)
        assert mechanism.gaussian_maximum(0.95) == pytest.approx(
            mechanism.gaussian_std * norm.ppf((1 + each) / 2), rel=1e-6
        )
        # The mutant: the published quantile understates the Gaussian error.
        published = mechanism.gaussian_std * norm.ppf(2 * each - 1)
        draws = np.abs(norm.rvs(size=(20_000, queries), random_state=1)).max(axis=1) * mechanism.gaussian_std
        assert abs(np.mean(draws <= mechanism.gaussian_maximum(0.95)) - 0.95) < 0.01
        assert np.mean(draws <= published) < 0.92


@pytest.mark.parametrize(
    ("queries", "ratio", "verdict"),
    [
        (1, 9.96, "bounded noise loses"),
        (10, 3.11, "bounded noise loses"),
        (100, 1.385, "bounded noise loses"),
    ],
)
def test_it_says_when_it_loses(queries, ratio, verdict):
    compared = calibrated(queries, 4).compared()
    assert compared.bound_ratio == pytest.approx(ratio, rel=5e-3)
    assert compared.verdict.startswith(verdict)
    assert f"{compared.bound_ratio:.2f}" in compared.verdict


def test_it_says_when_it_wins_and_names_the_condition():
    compared = calibrated(3000, 1).compared()
    assert compared.bound_ratio == pytest.approx(0.85, abs=0.01)
    assert compared.verdict.startswith("bounded noise wins")
    assert "unless the true L2 sensitivity is below" in compared.verdict
    draw = calibrated(300, 1, power=2).compared()
    assert draw.verdict.startswith("a draw")
    assert draw.maximum_ratio <= 1 < draw.bound_ratio


def test_a_mechanism_that_does_not_meet_its_budget_is_refused():
    with pytest.raises(InvalidParameter, match="budget must cover the event"):
        BoundedNoiseMechanism(sensitivity=1, bound=100, power=2, queries=10, budget=BUDGET)
    BoundedNoiseMechanism(sensitivity=1, bound=130, power=2, queries=10, budget=BUDGET)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.5), None, 1])
def test_pure_and_concentrated_budgets_are_refused_with_the_reason(budget):
    with pytest.raises(InvalidParameter, match="outcomes that one of two neighbours cannot give"):
        BoundedNoiseMechanism.calibrated(budget, sensitivity=1, queries=1)
    with pytest.raises(InvalidParameter, match="budget must be an ApproxDP"):
        BoundedNoiseMechanism(sensitivity=1, bound=100, power=2, queries=1, budget=budget)


@pytest.mark.parametrize(
    "wrong",
    [
        {"power": "best"},
        {"power": 4},
        {"power": True},
        {"queries": 0},
        {"sensitivity": 0},
        {"sensitivity": 0.5},
    ],
    ids=repr,
)
def test_hostile_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        BoundedNoiseMechanism.calibrated(BUDGET, **{"sensitivity": 1, "queries": 2, **wrong})


# --- the stream ----------------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [1, 3])
def test_exactly_as_many_values_are_answered_as_were_paid_for(queries):
    stream = opened(queries)
    for left in range(queries, 0, -1):
        assert (stream.remaining, stream.exhausted) == (left, False)
        assert isinstance(stream.answer(1000), int)
    assert (stream.remaining, stream.exhausted) == (0, True)
    # The mutant that is one off would answer here; that the value is no number is not even looked at.
    for value in (7, "seven"):
        with pytest.raises(BudgetExceeded, match="as paid for"):
            stream.answer(value)
    assert stream.remaining == 0


def test_the_stream_is_charged_whole_before_anything_is_drawn():
    accountant = SummedAccountant(ApproxDP(1.5, 2e-6))
    stream = opened(accountant=accountant)
    assert accountant.spent == Amount(epsilon=1, delta=Fraction(1, 10**6))
    assert stream.cost == BUDGET
    assert stream.event.queries == 3
    bits = SeededBits(1)
    with pytest.raises(BudgetExceeded):
        opened(accountant=accountant, bits=bits)
    assert bits.words(1)[0] == SeededBits(1).words(1)[0]
    # Whoever keeps the object of a refused charge has a stream that answers nothing.
    kept = BoundedAnswers.__new__(BoundedAnswers)
    with pytest.raises(BudgetExceeded):
        kept.__init__(stream.mechanism, bits, accountant=accountant)
    assert kept.remaining == 0
    with pytest.raises(BudgetExceeded):
        kept.answer(3)
    with pytest.raises(NotSupported, match="pure epsilon"):
        opened(accountant=PureAccountant(PureDP(10)))
    with pytest.raises(NotSupported, match="zCDP"):
        opened(accountant=ZCDPAccountant(ZCDP(10)))


def test_no_answer_is_off_by_the_bound_or_more_rounding_included():
    stream = opened(2000, sensitivity=0.7, granularity=0.25, power=1)
    assert stream.mechanism.sensitivity == 3
    value = 12.371
    answers = [stream.answer(value) for _ in range(2000)]
    assert all(abs(answer - Fraction(value)) < stream.bound for answer in answers)
    assert all((answer * 4).denominator == 1 for answer in answers)
    assert stream.bound == stream.mechanism.bound * Fraction(1, 4)
    noise = np.array([int(answer * 4) - 49 for answer in answers])
    edges = np.arange(-stream.mechanism.bound, stream.mechanism.bound + 1)
    assert chi_square_of(noise, stream.mechanism.noise, edges) >= FALSE_ALARM
    assert chi_square_of(noise + stream.mechanism.bound // 4, stream.mechanism.noise, edges) < FALSE_ALARM


def test_real_values_are_rounded_halves_upwards(monkeypatch):
    monkeypatch.setattr(BoundedNoise, "sample", lambda *_: 0)
    stream = opened(10, sensitivity=1, granularity=0.5, power=2)
    rounded = [
        stream.answer(value) for value in (0.25, 0.75, -0.25, -0.26, 10**30, Fraction(1, 3), np.float32(2.2))
    ]
    assert rounded == [0.5, 1, 0, -0.5, 10**30, 0.5, 2]


def test_a_stream_cannot_be_copied_stored_or_forked(monkeypatch):
    stream = opened()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotSupported, match="cannot be copied or stored"):
            attempt(stream)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(NotSupported, match="process that opened it"):
        stream.answer(1)


def test_threads_share_the_answers():
    stream = opened(40, bits=SystemBits())
    given: list[object] = []

    def ask():
        for _ in range(20):
            try:
                given.append(stream.answer(5))
            except BudgetExceeded:
                return

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 40
    assert stream.exhausted


WRONG = [1.5, "123456", None, True, [123456], float("nan"), float("inf"), Decimal("nan")]
WRONG += [Decimal("sNaN123456"), Decimal("123456e99999"), np.longdouble("inf"), 123456j, np.bool_(True)]


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_wrong_value_is_refused_without_showing_it_and_counts_as_an_answer(value):
    streams = [opened()] if isinstance(value, float) and value == 1.5 else [opened(), opened(granularity=0.5)]
    for stream in streams:
        with pytest.raises(InvalidParameter) as caught:
            stream.answer(value)
        assert "123456" not in str(caught.value)
        assert stream.remaining == 2


def test_long_numbers_are_put_on_the_lattice_exactly(monkeypatch):
    monkeypatch.setattr(BoundedNoise, "sample", lambda *_: 0)
    stream = opened(20, sensitivity=1, granularity=0.5, power=2)
    longer = np.finfo(np.longdouble).nmant > 60
    if longer:
        # The mutant that reads them as float64 rounds to a multiple of 4.
        assert stream.answer(np.longdouble(2) ** 54 + np.longdouble(1.5)) == 2**54 + Fraction(3, 2)
        assert stream.answer(np.longdouble(2) ** 2000) == 2**2000
    assert stream.answer(Decimal(2**70) + Decimal("0.5")) == 2**70 + Fraction(1, 2)
    assert stream.answer(Decimal("1e400")) == stream.answer(10**400) == 10**400
    assert stream.answer(Decimal("1e-4000")) == 0
    assert stream.answer(Fraction(np.int64(7), 2)) == Fraction(7, 2)


def test_parameters_of_numpy_are_kept_as_integers():
    given = {"sensitivity": np.int8(3), "queries": np.int8(100)}
    mechanism = BoundedNoiseMechanism.calibrated(BUDGET, power=np.int64(2), **given)
    assert mechanism == calibrated(100, 3, power=2)
    for name in ("sensitivity", "bound", "power", "queries"):
        assert type(getattr(mechanism, name)) is int


def test_the_stream_tells_whether_its_bits_are_private():
    assert opened(bits=SystemBits()).private
    assert not opened().private
    assert repr(opened()).startswith("BoundedAnswers(remaining=3, bound=")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"sensitivity": 0.5}, "sensitivity must be a whole number"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": 10**9}, "at most"),
        ({"granularity": 0}, "granularity"),
        ({"granularity": -1}, "granularity"),
        ({"granularity": 1e-9}, "at most"),
        ({"bits": 7}, "bits must be a source"),
        ({"queries": 0}, "queries"),
    ],
    ids=repr,
)
def test_hostile_streams_are_refused(wrong, named):
    with pytest.raises(InvalidParameter, match=named):
        opened(**wrong)
    with pytest.raises(InvalidParameter, match="mechanism must be"):
        BoundedAnswers("mechanism", SeededBits(1))
