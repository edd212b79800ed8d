"""Sparse on counts at an order: exact audits under add-remove, broken variants, and the choice of scales."""

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mechanisms.streams import ROUNDING, LogMass, Pattern, Values, both_kinds, log_mass, patterns

from sfumato.errors import InvalidParameter
from sfumato.laws import SeededBits
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.moves import CountsAtOrder
from sfumato.mechanisms.sparse import Sparse, SparseMechanism

ORDERS = [Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(3, 10), Fraction(1, 2)]
every_order = pytest.mark.parametrize("order", ORDERS, ids=str)


def for_order(order: Fraction, crossings: int, **options) -> SparseMechanism:
    return SparseMechanism.for_order(1, order=order, crossings=crossings, **options)


def histograms(cells: int, rows: int) -> Iterator[Values]:
    return (h for h in itertools.product(range(rows + 1), repeat=cells) if sum(h) == rows)


def offered(histogram: Values, order: Fraction, points: Values) -> Values:
    """b F - a n at the points, in the order in which they are offered."""
    counts = np.cumsum(histogram)
    a, b = order.numerator, order.denominator
    return tuple(int(b * counts[point] - a * counts[-1]) for point in points)


def pairs(order: Fraction, cells: int, most: int, points: Values) -> Iterator[tuple[Values, Values]]:
    """The values of all small data sets with and without one record."""
    for rows in range(most):
        for histogram in histograms(cells, rows):
            for cell in range(cells):
                larger = tuple(count + (i == cell) for i, count in enumerate(histogram))
                yield offered(histogram, order, points), offered(larger, order, points)


def loss_over(logs: LogMass, crossings: int, all_pairs: Iterator[tuple[Values, Values]]) -> float:
    worst = 0.0
    for left, right in set(all_pairs):
        for pattern in patterns(len(left), crossings):
            worst = max(worst, abs(logs(left, pattern) - logs(right, pattern)))
    return worst


def long_runs(order: Fraction, crossings: int, many: int) -> Iterator[tuple[Values, Values, Pattern]]:
    """The two worst cases of the proof: a record added before a run, and one removed behind it."""
    a, b = order.numerator, order.denominator
    told = (True,) * (crossings - 1) + (False,) * many + (True,)
    low = -9 * b * crossings
    here = (low,) * (crossings - 1) + (0,) * many + (0,)
    yield here, (low - a,) * (crossings - 1) + (b - a,) * many + (b - a,), told
    told = (False,) * many + (True,) * crossings
    yield (0,) * many + (b,) * crossings, (a,) * many + (b - (b - a),) * crossings, told


@both_kinds
@every_order
@pytest.mark.parametrize("crossings", [1, 2, 3])
def test_no_small_data_set_loses_more_than_epsilon(order, crossings, one_sided):
    mechanism = for_order(order, crossings, one_sided=one_sided)
    assert mechanism.cost == 1
    logs = log_mass(mechanism)
    # Each point once; and each twice, as in a run of empty cells, which a stream may also ask.
    loss = loss_over(logs, crossings, pairs(order, 3, 4, (0, 1, 2)))
    twice = loss_over(logs, crossings, pairs(order, 2, 3, (0, 0, 1, 1)))
    print(f"order {order}, {mechanism.described()}: {max(loss, twice):.4f} of epsilon")
    assert 0.3 < max(loss, twice) <= 1 + ROUNDING


@every_order
@pytest.mark.parametrize("crossings", [1, 2, 3])
def test_the_bound_is_reached_in_long_runs(order, crossings):
    mechanism = for_order(order, crossings)
    logs = log_mass(mechanism)
    losses = [
        logs(here, told) - logs(there, told) for here, there, told in long_runs(order, crossings, 30_000)
    ]
    print(f"order {order}, {crossings} crossings, long runs: {losses[0]:.4f} added, {losses[1]:.4f} removed")
    assert 0.999 <= max(losses) <= 1 + ROUNDING
    # And each of the two bounds by itself.
    bounds = mechanism.moves.losses(mechanism.threshold_scale, mechanism.query_scale, crossings)
    assert losses == pytest.approx([float(bound) for bound in bounds], abs=1e-3)


@both_kinds
@pytest.mark.parametrize("crossings", [1, 2])
def test_numbers_are_paid_for_by_the_larger_move(crossings, one_sided):
    order = Fraction(1, 4)
    mechanism = for_order(order, crossings, one_sided=one_sided, answers=Fraction(1, 3))
    assert mechanism.cost == 1
    assert mechanism.answer_scale == 3 * crossings * 3
    worst = 0.0
    for left, right in set(pairs(order, 2, 4, (0, 1))):
        for told in itertools.product(("below", -9, 0, 9), repeat=2):
            transcript = told if crossings == 2 or told[0] == "below" else told[:1]
            here, there = (mechanism.law(values, 0).logpmf(transcript) for values in (left, right))
            if np.isfinite(here):
                worst = max(worst, abs(here - there))
    assert 0.5 < worst <= 1 + ROUNDING


# --- broken variants: each must be caught ---------------------------------------------------------


@pytest.mark.parametrize("crossings", [1, 2])
def test_integer_noise_on_counts_against_a_share_is_caught(crossings):
    # The scales of the right mechanism in ranks, and a target that is rounded down.
    order = Fraction(3, 10)
    right = for_order(order, crossings)
    broken = SparseMechanism(
        moves=CountsAtOrder(order),
        crossings=crossings,
        threshold_scale=right.threshold_scale / 10,
        query_scale=right.query_scale / 10,
    )
    logs = log_mass(broken)

    def rounded(histogram: Values) -> Values:
        counts = np.cumsum(histogram)
        return tuple(int(count - 3 * counts[-1] // 10) for count in counts)

    worst = 0.0
    for rows in range(4):
        for histogram in histograms(3, rows):
            for cell in range(3):
                larger = tuple(count + (i == cell) for i, count in enumerate(histogram))
                for told in patterns(3, crossings):
                    worst = max(worst, abs(logs(rounded(histogram), told) - logs(rounded(larger), told)))
    print(f"integer noise on counts, {crossings} crossings: {worst:.4f}")
    assert worst > 1.2


def test_points_that_go_back_are_caught():
    # The proof needs a value that a record has moved up to stay moved: the reason why points must increase.
    mechanism = for_order(Fraction(1, 4), 1)
    logs = log_mass(mechanism)
    many = 30_000
    forwards = logs((0,) * many + (0,), (False,) * many + (True,))
    # One more record at the upper point moves the run up, and the lower point, asked last, down.
    backwards = logs((3,) * many + (-1,), (False,) * many + (True,))
    loss = forwards - backwards
    print(f"points that go back: {loss:.4f}")
    assert loss > 1.1


@pytest.mark.parametrize("crossings", [2, 3])
def test_scales_of_one_crossing_are_caught(crossings):
    once = for_order(Fraction(1, 4), 1)
    broken = SparseMechanism(
        moves=once.moves,
        crossings=crossings,
        threshold_scale=once.threshold_scale,
        query_scale=once.query_scale,
    )
    logs = log_mass(broken)
    loss = max(
        logs(here, told) - logs(there, told)
        for here, there, told in long_runs(Fraction(1, 4), crossings, 30_000)
    )
    print(f"scales of one crossing, {crossings} crossings: {loss:.4f}")
    assert loss > 1.3
    assert broken.cost >= loss - ROUNDING


# --- scales --------------------------------------------------------------------------------------


@given(
    st.fractions(Fraction(1, 10**4), 100),
    st.fractions(0, Fraction(1, 2), max_denominator=1000),
    st.integers(1, 200),
    st.none() | st.fractions(Fraction(1, 100), Fraction(99, 100)),
)
def test_the_cost_is_exactly_epsilon_and_no_near_scales_have_less_noise(epsilon, order, crossings, answers):
    mechanism = SparseMechanism.for_order(epsilon, order=order, crossings=crossings, answers=answers)
    assert mechanism.cost == epsilon
    left = epsilon * (1 - (answers or 0))
    best = mechanism.threshold_scale**2 + mechanism.query_scale**2
    ratio = mechanism.threshold_scale / mechanism.query_scale
    for factor in (Fraction(9, 10), Fraction(99, 100), Fraction(101, 100), Fraction(11, 10)):
        # Along the constraint: the smallest scales of another ratio.
        loss = max(CountsAtOrder(order).losses(Fraction(1), 1 / (ratio * factor), crossings))
        other = (loss / left) ** 2 * (1 + 1 / (ratio * factor) ** 2)
        assert best <= other * Fraction(100_001, 100_000)


def test_one_crossing_is_the_scan_with_other_weights():
    for order in ORDERS:
        scan = AboveThreshold.for_order(1, order)
        stream = for_order(order, 1)
        assert stream.comparison.moves == scan.moves
        assert stream.comparison.cost == scan.cost == 1
    zero = for_order(Fraction(0), 1)
    assert (zero.threshold_scale, zero.query_scale) == (1, 1)


def test_a_median_is_found_by_offering_counts_in_units_of_the_order():
    counts, rows = [0, 100, 5000, 9000, 10_000], 10_000
    stream = Sparse(for_order(Fraction(1, 4), 2), 0, SeededBits(1))
    told = [stream.offer(4 * count - rows) for count in counts[:4]]
    assert told == ["below", "below", "above", "above"]
    assert stream.halted


@pytest.mark.parametrize("order", [Fraction(51, 100), -1, "text", None])
def test_orders_outside_the_lower_half_are_refused(order):
    with pytest.raises(InvalidParameter, match="order"):
        SparseMechanism.for_order(1, order=order)
