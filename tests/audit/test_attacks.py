"""Attacks on callables: each finds the mutant that it is for, and nothing in what is shipped."""

import math
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from threading import Lock

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit import AttackResult, attack, edge_cases, low_bits, seed_reuse, timing
from sfumato.audit.timing import _ranks
from sfumato.errors import InvalidParameter
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Geometric, SystemBits

BITS = SystemBits()
COLUMN, NEIGHBOUR = [3.0, 1.0, 4.0, 1.0, 5.0], [3.0, 1.0, 4.0, 1.0, 9.0]
STATISTICS = {
    "count": lambda data: sf.count(data, epsilon=1, between=(0, 4)),
    "sum": lambda data: sf.sum(data, bounds=(0, 10), epsilon=1),
    "mean": lambda data: sf.mean(data, bounds=(0, 10), epsilon=1),
    "mean, add-remove": lambda data: sf.mean(data, bounds=(0, 10), epsilon=1, neighbours="add-remove"),
    "variance": lambda data: sf.variance(data, bounds=(0, 10), epsilon=1),
    "median": lambda data: sf.median(data, bounds=(0, 10), epsilon=1),
    "deciles": lambda data: sf.deciles(data, bounds=(0, 10), epsilon=1, neighbours="add-remove"),
    "histogram": lambda data: sf.histogram(data, edges=[0, 2, 4, 10], epsilon=1),
}
of_every_statistic = pytest.mark.parametrize("answer", STATISTICS.values(), ids=STATISTICS)


# --- low-order bits ---------------------------------------------------------------------------------


def naive(kind):
    rng = np.random.default_rng(1)
    return lambda value: float(value + getattr(rng, kind)(scale=2.0))


@pytest.mark.parametrize("kind", ["laplace", "normal"])
def test_low_order_bits_tell_the_value_under_naive_float_noise(kind):
    found = low_bits(naive(kind), 0.0, 1.0, epsilon=1, samples=2000)
    assert found.succeeded
    assert found.verdict == "succeeded"
    assert found.figures["impossible_left"] > 0.02
    assert found.figures["impossible_right"] < 0.02
    assert low_bits(naive(kind), 0.0, 1.0, samples=2000).succeeded, "also without a claim"


@pytest.mark.parametrize("kind", ["laplace", "normal"])
def test_the_lattice_alone_tells_data_apart_under_naive_float_noise(kind):
    # The attacker does not know the values before noise.
    rng = np.random.default_rng(2)
    found = low_bits(
        lambda data, size: {"without": 0.0, "with": 1.0}[data] + getattr(rng, kind)(size=size),
        "without",
        "with",
        epsilon=1,
        samples=4000,
        batched=True,
    )
    assert found.succeeded
    assert "low-order bits" in found.evidence


def real_noise(value):
    return sf.sum([value], bounds=(0, 1), epsilon=1)


def real_mean(value):
    return sf.mean([value, 0.3, 0.7], bounds=(0, 1), epsilon=1)


@pytest.mark.parametrize("mechanism", [real_noise, real_mean])
def test_low_order_bits_tell_nothing_about_sums_and_means(mechanism):
    found = low_bits(mechanism, 0.0, 1.0, epsilon=1, samples=800)
    assert not found.succeeded
    assert found.verdict == "nothing found"


def test_whole_numbers_beyond_all_bits_of_a_float_have_no_lattice_to_look_at():
    assert not low_bits(lambda value: 2**80 + 2**60 * BITS.below(9), 0.0, 1.0, samples=50).succeeded


def test_outcomes_that_are_no_numbers_have_no_low_order_bits():
    assert not low_bits(lambda value: "text", 0.0, 1.0, samples=20).succeeded
    assert not low_bits(lambda value: math.nan, 0.0, 1.0, samples=20).succeeded
    assert not low_bits(lambda value: 1 / 0, 0.0, 1.0, samples=20).succeeded


# --- time -------------------------------------------------------------------------------------------


def tossed(value):
    """Geometric noise by one coin a step: the time is the noise."""
    noise = 0
    while BITS.below(16):
        noise += 1
    return value + noise


def searched(value):
    """A table walked from its middle outwards, as a guide table does: the far ends take longer."""
    noise, steps = int(DiscreteLaplace(Fraction(40)).sample(BITS)), 0
    while steps * steps < 40_000 * abs(noise):
        steps += 1
    return value + noise


def waits_for_data(data):
    """As many steps as there are large records."""
    for _ in range(5000 * int(np.count_nonzero(np.asarray(data) > 8))):
        pass
    return int(DiscreteLaplace(Fraction(4)).sample(BITS))


@pytest.mark.parametrize("mechanism", [tossed, searched])
def test_time_that_goes_with_the_noise_is_found(mechanism):
    found = timing(mechanism, 0, calls=1000)
    assert found.succeeded
    assert found.figures["correlation"] > 0.15
    assert "p_data" not in found.figures


def test_time_that_goes_with_the_data_is_found():
    found = timing(waits_for_data, COLUMN, NEIGHBOUR, calls=1000)
    assert found.succeeded
    assert found.figures["p_data"] < 1e-6


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(Fraction(10)), DiscreteLaplace(Fraction(1000)), DiscreteGaussian(Fraction(100))],
    ids=["Laplace 10", "Laplace 1000", "Gaussian"],
)
def test_the_time_of_a_scalar_draw_tells_nothing(law):
    found = timing(lambda value: value + law.sample(BITS), 0, 1, calls=1000)
    assert not found.succeeded, str(found)


def test_ranks_are_those_of_another_library():
    from scipy.stats import rankdata

    numbers = np.array([3.0, 1.0, 1.0, 2.0, 3.0, 3.0, 0.5])
    assert _ranks(numbers).tolist() == rankdata(numbers).tolist()


def test_pauses_of_a_busy_machine_are_no_finding():
    # Every seventh call is late by far more than a draw takes, whatever the noise is.
    calls = iter(range(10**6))
    noise = Geometric(Fraction(5))

    def paused(value):
        for _ in range(3000 if next(calls) % 7 == 0 else 0):
            pass
        return value + noise.sample(BITS)

    assert not timing(paused, 0, 1, calls=1000).succeeded


EQUAL = {
    "a list of 50": (sum, lambda: [1.0] * 50, 500),
    "a list of 20,000": (sum, lambda: [k + 0.5 for k in range(20_000)], 60),
    "an array of 1,000": (np.sum, lambda: np.arange(1000.0), 500),
}


@pytest.mark.parametrize("name", EQUAL)
def test_where_equal_data_lie_in_memory_is_no_finding(name):
    total, make, calls = EQUAL[name]
    kept = []
    for _ in range(3):
        kept.append(bytearray(1000 + BITS.below(4000)))
        found = timing(lambda data: float(total(data)) + BITS.below(10), make(), make(), calls=calls)
        assert not found.succeeded, str(found)


def test_no_call_sees_an_object_of_another():
    seen, column = [], [float(k) for k in range(40)]

    def answer(data):
        seen.append((data, data[3]))
        return BITS.below(9)

    timing(answer, column, list(column), calls=50)
    assert len({id(data) for data, _ in seen}) == len({id(number) for _, number in seen}) == len(seen)
    assert not any(data is column for data, _ in seen)


def test_neighbours_must_differ_clearly_more_than_two_copies(monkeypatch):
    module = sys.modules[timing.__module__]
    deviations = iter([9.0, 5.0] + 2 * [9.0, 1.0])
    monkeypatch.setattr(module, "_signed_ranks", lambda differences: next(deviations))
    assert [timing(tossed_once, 0, 1, calls=50).succeeded for _ in range(2)] == [False, True]


def test_a_difference_that_is_not_found_again_is_no_finding(monkeypatch):
    module = sys.modules[timing.__module__]
    deviations = iter([9.0, 1.0, 0.5, 1.0])
    monkeypatch.setattr(module, "_signed_ranks", lambda differences: next(deviations))
    assert not timing(tossed_once, 0, 1, calls=50).succeeded
    assert not list(deviations), "measured twice"


def tossed_once(value):
    return value + BITS.below(2)


def test_data_that_cannot_be_copied_are_not_compared():
    lock = Lock()
    found = timing(lambda data: BITS.below(9), lock, lock, calls=50)
    assert "cannot be copied" in found.evidence
    assert "p_data" not in found.figures


def test_answers_with_missing_or_huge_numbers_have_a_size_without_warnings():
    for rest in (math.nan, 1e308 * (-1) ** BITS.below(2), None):
        found = timing(lambda data: [BITS.below(9), rest], 0, 1, calls=50)  # noqa: B023  # reason: called at once
        assert not found.succeeded


def test_answers_that_are_no_numbers_have_no_size_of_noise():
    found = timing(lambda data: "text", 0, 1, calls=50)
    assert "correlation" not in found.figures
    assert not found.succeeded
    assert not timing(lambda data: 1 / 0, 0, calls=50).succeeded


# --- hostile data -----------------------------------------------------------------------------------


def float_quantile(data):
    """The exponential mechanism on gaps between sorted records, in floats, without thought for ties."""
    rng = np.random.default_rng()
    ordered = np.sort(np.clip(data, 0, 10))
    gaps = np.diff(ordered)
    weights = gaps * np.exp(-np.abs(np.arange(len(gaps)) - len(gaps) / 2) / 2)
    chosen = rng.choice(len(gaps), p=weights / weights.sum())
    return ordered[chosen] + rng.random() * gaps[chosen]


def float_mean(data):
    return np.clip(data, 0, 10).mean() + np.random.default_rng().laplace()


def unclipped_mean(data):
    return np.where(np.isnan(data), 0.0, data).mean() + np.random.default_rng().laplace()


def refuses_nan(data):
    if np.isnan(data).any():
        raise ValueError("data must not contain NaN")
    return 0


def talks(data):
    if np.max(data, initial=0) > 100:
        raise ValueError(f"{np.max(data)} is out of bounds")
    return 0


def none_if_constant(data):
    return None if len(set(data.tolist())) == 1 else 1


def none_if_short(data):
    return None if len(data) < 3 else 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (float_quantile, "an error (ValueError: .* on a column of ones"),
        (float_mean, "NaN on a column with NaN"),
        (unclipped_mean, "an infinite answer on a column with inf"),
        (refuses_nan, "an error .* on a column with NaN, which depends on the data"),
        (talks, "a record in a message"),
        (none_if_constant, "None on a column of ones, which depends on the data"),
    ],
)
def test_careless_code_is_found(mechanism, words):
    found = edge_cases(mechanism)
    assert found.succeeded
    assert re.search(words.replace("(", r"\("), found.evidence), found.evidence


def test_answers_out_of_bounds_are_found_where_bounds_are_promised():
    def answer(data):
        return 11.0

    assert not edge_cases(answer).succeeded
    assert "out of bounds" in edge_cases(answer, bounds=(0, 10)).evidence


def test_what_follows_from_the_number_of_rows_alone_is_no_finding():
    assert not edge_cases(none_if_short).succeeded


@pytest.mark.parametrize("share", [2, 50])
def test_none_and_errors_at_random_do_not_depend_on_the_data(share):
    def now_and_then(data):
        if BITS.below(100) < share:
            return None
        if BITS.below(100) < share:
            raise ValueError("no answer")
        return 1

    found = edge_cases(now_and_then)
    assert not found.succeeded, str(found)
    assert "None" in found.evidence or share == 2


def test_errors_whose_frequency_depends_on_the_data_are_found():
    def sometimes(data):
        if np.isnan(data).any() and BITS.below(2):
            raise ValueError("no answer")
        return 1

    assert "depends on the data" in edge_cases(sometimes).evidence
    # What a claim admits is no finding: half against never is delta 1/2.
    assert not edge_cases(sometimes, delta=0.6).succeeded


def test_what_changes_only_far_from_an_ordinary_column_is_found():
    def two_missing(data):
        return None if np.isnan(data).sum() >= 3 else 1

    assert "None on a column of NaN alone" in edge_cases(two_missing).evidence


def test_a_private_choice_of_none_is_no_finding():
    # Laplace noise of epsilon 1 on a count of small records decides; far from the threshold it is sure.
    def above(data):
        count = int(np.count_nonzero(data < 5)) + int(DiscreteLaplace(Fraction(1)).sample(BITS))
        return 1 if count > 5 else None

    assert not edge_cases(above, epsilon=1).succeeded


def test_a_release_without_a_value_counts_as_none():
    def chosen(data):
        return sf.first_passing(data, count=8, at=range(10), epsilon=1)

    found = edge_cases(chosen, epsilon=1, size=4, calls=3)
    assert not found.succeeded, str(found)
    assert "None seen" in found.evidence


def test_a_mechanism_that_refuses_everything_is_not_passed_in_silence():
    found = edge_cases(lambda data: 1 / 0)
    assert not found.succeeded
    assert "ordinary columns are refused too" in found.evidence


@of_every_statistic
def test_hostile_data_change_nothing_about_what_is_shipped(answer):
    found = edge_cases(answer, calls=2)
    assert not found.succeeded, str(found)


def test_a_median_stays_in_its_bounds_on_hostile_data():
    found = edge_cases(lambda data: sf.median(data, bounds=(0, 10), epsilon=1), bounds=(0, 10), calls=2)
    assert not found.succeeded, str(found)


# --- seeds ------------------------------------------------------------------------------------------


def fixed_seed(data):
    return float(np.sum(data)) + np.random.default_rng(42).laplace()


def seed_argument(data, random_state=None):
    return float(np.sum(data)) + np.random.default_rng(random_state).laplace()


STATE = np.random.default_rng(7)


def state_of_the_process(data):
    return float(np.sum(data)) + STATE.laplace()


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (fixed_seed, "143 calls gave one answer, so that data differ by exactly 4"),
        (seed_argument, "the same random_state gives the same noise, so that data differ by exactly 4"),
        (state_of_the_process, "two processes drew the same noise after a fork"),
    ],
)
def test_noise_that_comes_twice_is_found(mechanism, words):
    found = seed_reuse(mechanism, COLUMN, NEIGHBOUR)
    assert found.succeeded
    assert found.evidence == words


def nearly_constant(value):
    """Laplace noise of epsilon 8: the same answer almost always, and rightly so."""
    return value + int(DiscreteLaplace(Fraction(1, 8)).sample(BITS))


def clear_winner(value):
    return "a" if value + int(DiscreteLaplace(Fraction(2)).sample(BITS)) > 0 else "b"


@pytest.mark.parametrize(
    ("mechanism", "inputs", "given"),
    [
        (nearly_constant, (4, 5), {"epsilon": 8}),
        (nearly_constant, (4, 5), {"epsilon": 50}),
        (clear_winner, (1000, 1001), {"epsilon": 1}),
        (lambda value: 42, (0, 1), {"epsilon": 1}),
    ],
    ids=["Laplace 8", "Laplace 8, 50 claimed", "a clear winner", "a constant"],
)
def test_answers_that_are_nearly_constant_are_no_noise_that_comes_twice(mechanism, inputs, given):
    found = [seed_reuse(mechanism, *inputs, fork=k == 0, **given) for k in range(4)]
    assert not any(each.succeeded for each in found), [*map(str, found)]
    if given["epsilon"] == 1:
        assert "vary too little" in found[0].evidence


def test_noise_of_a_copied_state_is_found_where_answers_vary_little():
    # Three quarters of the answers are one, and more of them are drawn until that can tell.
    def counted(value):
        return value + int(STATE.random() < 0.25)

    assert seed_reuse(counted, 0, 1).succeeded


def test_a_store_of_noise_that_runs_out_after_a_fork_is_found():
    store = []

    def stored(value):
        if not store:
            store.extend(BITS.below_each(1000, 100).tolist())
        return value + store.pop()

    for _ in range(70):  # fewer are left than are compared
        stored(0)
    assert seed_reuse(stored, 0, 1).succeeded


def test_one_answer_on_each_side_needs_more_calls_for_a_larger_epsilon():
    calls = []
    for epsilon, delta in ((1, 0), (5, 0), (5, 0.5)):
        found = seed_reuse(lambda value: value, 0, 1, epsilon=epsilon, delta=delta)
        calls.append(int(found.evidence.split()[0]))
        # Randomised response of this epsilon gives one answer each time with this probability.
        share = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
        assert found.succeeded
        assert share ** (2 * calls[-1]) <= 1e-6
    assert calls == sorted(calls)
    assert "which an epsilon so large admits" in seed_reuse(lambda value: value, 0, 1, epsilon=40).evidence


def test_a_refusal_after_a_fork_is_right():
    home = os.getpid()

    def refuses(value):
        if os.getpid() != home:
            raise ValueError("forked")
        return value + int(DiscreteLaplace(Fraction(100)).sample(BITS))

    found = seed_reuse(refuses, 0, 1)
    assert not found.succeeded
    assert "too few answers after a fork" in found.evidence


def test_a_seed_that_is_refused_now_and_then_is_not_taken_for_one_that_repeats():
    def mostly_refuses(value, seed=None):
        if seed:
            raise ValueError("no seeds")
        return value + int(DiscreteLaplace(Fraction(100)).sample(BITS))

    found = seed_reuse(mostly_refuses, 0, 1, fork=False)
    assert not found.succeeded
    assert "too few answers for the same seed" in found.evidence


def test_large_answers_that_one_float_stands_for_are_not_the_same():
    assert not seed_reuse(lambda value: 2**70 + BITS.below(1000), 0, 1).succeeded


def test_without_forks_the_state_of_a_process_is_not_seen():
    assert not seed_reuse(state_of_the_process, COLUMN, NEIGHBOUR, fork=False).succeeded


def test_a_mechanism_that_always_fails_reuses_no_noise():
    assert not seed_reuse(lambda data: 1 / 0, COLUMN, NEIGHBOUR, fork=False).succeeded


@pytest.mark.parametrize("name", ["count", "mean", "median"])
def test_what_is_shipped_never_draws_the_same_noise_twice(name):
    found = seed_reuse(STATISTICS[name], COLUMN, NEIGHBOUR)
    assert not found.succeeded, str(found)


# --- all of them ------------------------------------------------------------------------------------


def test_every_attack_is_run_and_told():
    told = []
    found = attack(STATISTICS["mean"], COLUMN, NEIGHBOUR, epsilon=1, samples=100, progress=told.append)
    assert told == [each.attack for each in found]
    assert told == ["low-order bits", "timing", "seed reuse", "hostile data"]
    assert not any(each.succeeded for each in found), [*map(str, found)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_control_falls_to_three_attacks():
    def control(data):
        return float(np.clip(data, 0, 1).sum()) + STATE.laplace()

    found = attack(control, [0.0] * 5, [0.0] * 4 + [1.0], epsilon=1, samples=2000)
    assert {each.attack for each in found if each.succeeded} >= {
        "low-order bits",
        "seed reuse",
        "hostile data",
    }


def test_hostile_columns_are_fed_only_to_what_takes_columns():
    found = attack(lambda value: value + DiscreteLaplace(Fraction(1)).sample(BITS), 0, 1, samples=100)
    assert [each.attack for each in found] == ["low-order bits", "timing", "seed reuse"]


def test_a_result_says_what_was_found():
    result = AttackResult(attack="timing", succeeded=True, evidence="words")
    assert str(result) == "timing: succeeded (words)"
    with pytest.raises(AttributeError):
        result.succeeded = False


@pytest.mark.parametrize(
    "call",
    [
        lambda: low_bits(naive("laplace"), 0.0, 1.0, samples=3),
        lambda: low_bits(naive("laplace"), 0.0, 1.0, epsilon=0),
        lambda: low_bits(naive("laplace"), 0.0, 1.0, confidence=1),
        lambda: low_bits(naive("laplace"), 0.0, 1.0, delta=1),
        lambda: edge_cases(float_mean, delta=-1),
        lambda: seed_reuse(fixed_seed, 0, epsilon=0),
        lambda: timing(tossed, 0, calls=3),
        lambda: timing(tossed, 0, calls=50, level=0),
        lambda: edge_cases(float_mean, size=1),
        lambda: edge_cases(float_mean, bounds=3),
        lambda: edge_cases(float_mean, calls=0),
        lambda: seed_reuse(fixed_seed, 0, draws=1),
    ],
)
def test_parameters_out_of_range_are_refused(call):
    with pytest.raises(InvalidParameter):
        call()


def test_the_example_beside_peers_runs():
    example = Path(__file__).resolve().parents[2] / "examples" / "audit_peers.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    printed = subprocess.run(
        [sys.executable, str(example), "--quick"],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env=environment,
        check=True,
    ).stdout
    own, control = printed.split("NumPy Laplace (control), epsilon 1")
    assert own.count("not refuted") == 3
    assert "succeeded" not in own
    assert "seed reuse: succeeded (two processes drew the same noise after a fork)" in control
