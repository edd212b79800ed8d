"""Sparse: exact audits of all short streams, and broken variants that they must catch."""

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp
from tests.mechanisms.streams import (
    ROUNDING,
    LogMass,
    Pattern,
    Values,
    audit,
    both_kinds,
    both_moves,
    calibrated,
    log_mass,
    long_run_loss,
    noises,
    summed_log_mass,
)

from sfumato.mechanisms.sparse import SparseMechanism


@both_kinds
@both_moves
@pytest.mark.parametrize("crossings", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [1, 5])
def test_no_short_stream_loses_more_than_epsilon(epsilon, crossings, same_direction, one_sided):
    mechanism = SparseMechanism.calibrated(
        epsilon, sensitivity=1, crossings=crossings, same_direction=same_direction, one_sided=one_sided
    )
    assert mechanism.cost == epsilon
    moves = (0, 1) if same_direction else (-1, 0, 1)
    loss = audit(summed_log_mass(mechanism), crossings, 4, moves, range(-3, 2)) / epsilon
    print(f"{mechanism.described()}, {mechanism.moves}: {loss:.4f} of epsilon")
    assert loss <= 1 + ROUNDING
    # Four values around the threshold show little of wide noise, and all of one-sided noise if it is narrow.
    assert loss > (0.9999 if one_sided and epsilon == 5 else 0.45)


@both_kinds
@pytest.mark.parametrize("crossings", [1, 2, 3])
def test_larger_sensitivities_hold_with_all_smaller_moves(crossings, one_sided):
    mechanism = calibrated(crossings, sensitivity=2, one_sided=one_sided)
    assert audit(summed_log_mass(mechanism), crossings, 3, range(-2, 3)) <= 1 + ROUNDING
    together = calibrated(crossings, sensitivity=2, same_direction=True, one_sided=one_sided)
    assert audit(summed_log_mass(together), crossings, 3, range(3)) <= 1 + ROUNDING


@both_kinds
@both_moves
@pytest.mark.parametrize("crossings", [1, 2, 3])
def test_the_bounds_are_reached_in_long_runs(crossings, same_direction, one_sided):
    mechanism = calibrated(crossings, same_direction=same_direction, one_sided=one_sided)
    logs = log_mass(mechanism)
    loss = max(long_run_loss(logs, crossings, same_direction, many) for many in (300, 3000, 30_000))
    print(f"{mechanism.moves}, {crossings} crossings, long runs: {loss:.4f}")
    assert 0.9999 <= loss <= 1 + ROUNDING


@both_kinds
@both_moves
def test_numbers_are_paid_for(same_direction, one_sided):
    mechanism = calibrated(2, same_direction=same_direction, one_sided=one_sided, answers=Fraction(1, 3))
    moves = (0, 1) if same_direction else (-1, 0, 1)
    worst = 0.0

    @cache
    def logs(values: Values, transcript: tuple) -> float:
        return mechanism.law(values, 0).logpmf(transcript)

    for values in itertools.product((-1, 0, 2), repeat=2):
        for transcript in itertools.product(("below", -6, 0, 1, 6), repeat=2):
            for move in itertools.product(moves, repeat=2):
                moved = tuple(value + by for value, by in zip(values, move, strict=True))
                worst = max(worst, abs(logs(values, transcript) - logs(moved, transcript)))
    assert 0.45 < worst <= 1 + ROUNDING


@both_kinds
@both_moves
def test_numbers_add_to_the_worst_pattern_unless_all_values_move_together(same_direction, one_sided):
    mechanism = calibrated(2, same_direction=same_direction, one_sided=one_sided, answers=Fraction(1, 3))
    assert (mechanism.cost, mechanism.answer_scale) == (1, 6)
    transcript = ("below",) * 3000 + (9, 9)

    def loss(run: int, crossing: int) -> float:
        """When all of the run move by the one, and the values that cross by the other."""
        here, there = ((value,) * 3000 + (at,) * 2 for value, at in ((0, -40), (run, crossing - 40)))
        return mechanism.law(here, 0).logpmf(transcript) - mechanism.law(there, 0).logpmf(transcript)

    together = max(loss(up, up_too) for up in (0, 1) for up_too in (0, 1))
    down = max(loss(-1, -1), loss(0, -1))
    if not same_direction:
        assert 0.999 <= loss(1, -1) <= 1 + ROUNDING
        return
    # The number of a value that moves with the run pays, or its comparison does, but not both.
    threshold, query, number = 1 / mechanism.threshold_scale, 2 / mechanism.query_scale, Fraction(1, 3)
    assert together == pytest.approx(float(threshold + max(query, number)), abs=1e-3)
    assert down == pytest.approx(float(query + number), abs=1e-3)
    assert 0.999 <= max(together, down) <= 1 + ROUNDING
    # Charged in full and apart, as for any values, the same noise would cost more.
    assert threshold + query + number > Fraction(5, 4)


# --- broken variants: each must be caught ---------------------------------------------------------


def threshold_redrawn(mechanism: SparseMechanism) -> LogMass:
    """After each crossing the threshold has new noise, at the price of one draw."""
    once = log_mass(mechanism)

    def logs(values: Values, pattern: Pattern) -> float:
        total, start = 0.0, 0
        for end in [k + 1 for k, above in enumerate(pattern) if above] + [len(pattern)]:
            total += once(values[start:end], pattern[start:end])
            start = end
        return total

    return logs


def with_scales(mechanism: SparseMechanism, query_factor: Fraction) -> SparseMechanism:
    return SparseMechanism(
        moves=mechanism.moves,
        crossings=mechanism.crossings,
        threshold_scale=mechanism.threshold_scale,
        query_scale=mechanism.query_scale * query_factor,
        one_sided=mechanism.one_sided,
    )


def comparison_noise_released(mechanism: SparseMechanism, values: Values, number: int) -> float:
    """The last value crosses and is released with the noise that it was compared with."""
    threshold, query = noises(mechanism)
    t = np.arange(-2000, number - mechanism.comparison.centring)
    logs = threshold.logpmf(t)
    for value in values[:-1]:
        logs = logs + query.logcdf(t + mechanism.comparison.centring - value)
    return float(logsumexp(logs)) + query.logpmf(number - values[-1])


@both_kinds
@pytest.mark.parametrize("crossings", [2, 3])
def test_a_threshold_redrawn_after_each_crossing_is_caught(crossings, one_sided):
    mechanism = calibrated(crossings, same_direction=True, one_sided=one_sided)
    logs = threshold_redrawn(mechanism)
    run = ((0,) * 3000 + (-25,)) * crossings
    moved = ((1,) * 3000 + (-25,)) * crossings
    pattern = ((False,) * 3000 + (True,)) * crossings
    loss = logs(run, pattern) - logs(moved, pattern)
    print(f"threshold redrawn, {crossings} crossings: {loss:.4f}")
    # Each crossing pays for the threshold again.
    assert loss == pytest.approx(float((crossings - 1) / mechanism.threshold_scale) + 1, abs=1e-3)
    assert log_mass(mechanism)(run, pattern) - log_mass(mechanism)(moved, pattern) <= 1 + ROUNDING
    if one_sided and crossings == 2:
        assert audit(logs, crossings, 4, (0, 1)) > 1.05


@both_kinds
@pytest.mark.parametrize("crossings", [2, 3])
def test_query_noise_without_the_crossings_is_caught(crossings, one_sided):
    mechanism = with_scales(calibrated(crossings, one_sided=one_sided), Fraction(1, crossings))
    assert mechanism.cost > Fraction(3, 2)
    assert audit(summed_log_mass(mechanism), crossings, 4, (-1, 0, 1)) > 1.3
    logs = log_mass(mechanism)
    loss = long_run_loss(logs, crossings, same_direction=False)
    print(f"query noise without c, {crossings} crossings: {loss:.4f}")
    assert loss == pytest.approx(float(mechanism.cost), abs=1e-3)


@both_kinds
@pytest.mark.parametrize("crossings", [1, 2, 3])
def test_halved_query_noise_for_any_values_is_caught(crossings, one_sided):
    together = calibrated(crossings, same_direction=True, one_sided=one_sided)
    logs = log_mass(together)
    # Three crossings among four values are too few to show it with two-sided noise.
    if one_sided or crossings < 3:
        assert audit(summed_log_mass(together), crossings, 4, (-1, 0, 1), range(-3, 2)) > 1.1
    loss = long_run_loss(logs, crossings, same_direction=False)
    print(f"query noise halved, {crossings} crossings: {loss:.4f}")
    assert loss > 1.4


@both_kinds
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_numbers_with_the_noise_of_the_comparison_are_caught(one_sided):
    mechanism = calibrated(1, one_sided=one_sided)
    losses = []
    for many in (1, 3, 20):
        here, there = ((by,) * many + (0,) for by in (0, 1))
        number = mechanism.comparison.centring + 1
        losses.append(
            comparison_noise_released(mechanism, here, number)
            - comparison_noise_released(mechanism, there, number)
        )
    print("comparison noise released:", losses)
    # The more values were below, the more the number tells about them: no scale would do.
    assert losses == sorted(losses)
    assert losses[-1] > 2
