"""Corrections by counts: they bring values nearer, never past a threshold, and leave heaps alone."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.admission import admit
from sfumato.grid import Grid
from sfumato.laws import SeededBits
from sfumato.privacy import PureDP
from sfumato.quantile_methods import Quantiles, corrections, verified
from sfumato.quantile_methods.corrections import Edge, is_round, moved
from sfumato.query import raw

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
points = st.fractions(0, 1, max_denominator=1000)
ranks, offsets = st.floats(0.5, 1e6), st.floats(-1e7, 1e7)


def between(offset_below: float, offset_above: float) -> Fraction:
    below, above = Edge(Fraction(0), 10, offset_below), Edge(Fraction(2), 10, offset_above)
    return moved(Fraction(1), below, above, 1)


@given(points, points, points, ranks, ranks, offsets, offsets, st.floats(0, 1))
def test_a_value_stays_between_the_thresholds_or_where_it_was(a, b, c, near, far, low, high, weight):
    left, value, right = sorted((a, b, c))
    found = moved(value, Edge(left, near, low), Edge(right, far, high), weight)
    assert left <= found <= right
    assert isinstance(found, Fraction)


@given(points, points, points, ranks, ranks, offsets, offsets, st.floats(0, 1))
def test_a_value_moves_only_to_where_noise_and_its_own_ranks_explain_it(
    a, b, c, near, far, low, high, weight
):
    left, value, right = sorted((a, b, c))
    found = moved(value, Edge(left, near, low), Edge(right, far, high), weight)
    # What the proof of the rank error uses.
    if found < value:
        assert low > -corrections.MOST_DENSE * (near + far)
    if found > value:
        assert high < corrections.MOST_DENSE * (near + far)


def test_a_value_moves_by_the_ranks_that_it_is_off():
    # 20 values between 0 and 2, of which 13 are below 1 instead of 10: 3 tenths of the way down.
    assert between(-7, 13) == Fraction(7, 10)
    assert between(-13, 7) == Fraction(13, 10)
    assert between(-10, 10) == 1
    # Half as many are as good, and none tell nothing.
    assert between(-5, 5) == between(4, 4) == between(7, -7) == 1


def test_a_value_that_is_not_in_the_middle_has_as_many_fewer_values_on_one_side():
    # Evenly spread: 5 of 20 values are below a value at a quarter of the way, wherever thresholds were aimed.
    below, above = Edge(Fraction(0), 10, -5), Edge(Fraction(2), 10, 15)
    assert moved(Fraction(1, 2), below, above, 1) == Fraction(1, 2)
    assert moved(Fraction(1, 2), below._replace(ranks=15), above._replace(ranks=5), 1) == Fraction(1, 2)
    # It is 5 ranks too low.
    assert moved(Fraction(1, 2), below._replace(offset=-10), above._replace(offset=10), 1) == 1


def test_a_threshold_is_the_farthest_that_a_value_is_moved():
    assert between(5, 25) == 0
    assert between(-25, -5) == 2


def test_thresholds_on_the_wrong_side_of_a_value_do_not_push_it_away():
    below, above = Edge(Fraction(1), 10, -2), Edge(Fraction(2), 10, 18)
    assert moved(Fraction(1, 2), below, above, 1) == Fraction(1, 2)


def mean_error(values: np.ndarray, **options: Any) -> tuple[float, float]:
    """The mean rank errors of the answers and of what was drawn."""
    given: dict[str, Any] = {"probs": DECILES, "verify": Fraction(1, 2), **options}
    asked = Quantiles(budget=PureDP(1), bounds=(0, 1), neighbours="add-remove", n_hint=len(values), **given)
    law, bits, ordered = asked.law(asked.look(admit(values))), SeededBits(1), np.sort(values)
    targets = np.ceil([float(q) * len(values) for q in asked.asked])

    def off(found: np.ndarray) -> float:
        below = np.searchsorted(ordered, found, side="left")
        least = np.searchsorted(ordered, found, side="right")
        return float(np.maximum(np.maximum(below - targets, targets - least), 0).mean())

    errors = []
    for _ in range(100):
        outcome = raw(law.sample(bits))
        method: Any
        method, facts, own = asked._settled(outcome)
        plain = method.method.answers(own[: -method.counted(facts)], method.own(facts))
        errors.append((off(np.atleast_1d(asked.value(outcome))), off(np.array(plain, dtype=float))))
    return tuple(np.mean(errors, axis=0))


@pytest.fixture(scope="module")
def smooth() -> np.ndarray:
    return np.random.default_rng(1).random(20_000)


def test_on_smooth_data_corrected_values_are_far_nearer(smooth, monkeypatch):
    corrected, plain = mean_error(smooth)
    assert corrected < 0.75 * plain
    monkeypatch.setattr(verified, "moved", lambda value, *others: value)
    assert mean_error(smooth)[0] > 0.9 * plain
    # A correction in the wrong direction is worse than none.
    monkeypatch.setattr(
        verified, "moved", lambda value, below, above, weight: 2 * value - moved(value, below, above, weight)
    )
    assert mean_error(smooth)[0] > 1.1 * plain


def test_values_on_a_heap_stay_there(monkeypatch):
    heaps = np.repeat([0.1, 0.2, 0.5, 0.9], [4000, 8000, 4000, 4000])
    asked = {"probs": (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), "step": Fraction(1, 1000)}
    assert mean_error(heaps, **asked)[0] <= mean_error(heaps, **asked)[1] + 1
    # Without a limit heaps are taken for smooth data, and values leave them.
    monkeypatch.setattr(corrections, "MOST_DENSE", 10**9)
    assert mean_error(heaps, **asked)[0] > mean_error(heaps, **asked)[1] + 100


def test_a_draw_of_the_roundest_number_between_the_thresholds_stays_where_it_is(monkeypatch):
    # Most values are multiples of a hundredth: a draw of one of them is the quantile, though a count says
    # otherwise by a few values.
    generator = np.random.default_rng(1)
    wages = generator.lognormal(3, 0.5, 2000)
    heaps = np.where(generator.random(2000) < 0.6, np.round(wages), wages) / 100
    found = mean_error(heaps)[0]
    monkeypatch.setattr(verified, "is_round", lambda *_: False)
    assert found < 0.8 * mean_error(heaps)[0]


@pytest.mark.parametrize(
    ("value", "width", "expected"), [(15, 4, True), (15, 6, False), (20, 6, True), (16, 4, False)]
)
def test_a_number_is_round_if_no_other_such_number_is_as_near(value, width, expected):
    grid = Grid.of_step(0, 1000, Fraction(1, 100))
    assert is_round(grid, Fraction(value), Fraction(width)) == expected
    # Counted from zero and not from the lower bound.
    assert is_round(Grid.of_step(-7, 993, Fraction(1, 100)), Fraction(value), Fraction(width)) == expected
