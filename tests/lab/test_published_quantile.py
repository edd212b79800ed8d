import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accuracy import expected_absolute_error, mean_squared_error
from sfumato.errors import InvalidParameter
from sfumato.lab.published_quantile import Cells, cells, drawn, sample_quantile


def by_definition(row, order, rate, bounds):
    """Edges and masses from the density, one cell at a time, with fractions of the unnormalised weights."""
    low, high = bounds
    edges = [low, *sorted(min(max(value, low), high) for value in row), high]
    weights = [
        (edges[i + 1] - edges[i]) * math.exp(-rate * abs(i - order * len(row))) for i in range(len(row) + 1)
    ]
    return edges, [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("order", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("rate", [0.0, 0.05, 1.0, 4.0])
def test_masses_are_widths_times_the_weights_of_the_ranks(order, rate):
    rows = np.random.default_rng(1).random((5, 9)) * 4 - 1  # some out of bounds
    law = cells(rows, order, rate, (0, 2))
    for row, edges, masses in zip(rows, law.edges, law.masses, strict=True):
        wanted_edges, wanted = by_definition(row, order, rate, (0.0, 2.0))
        assert edges == pytest.approx(wanted_edges)
        assert masses == pytest.approx(wanted, rel=1e-12, abs=1e-300)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=12),
    st.sampled_from([0.25, 0.5, 0.75]),
    st.sampled_from([0.0, 0.3, 2.0, 500.0]),
    st.floats(0, 20),
)
def test_risks_are_those_of_the_density_with_ties_and_with_weights_far_apart(values, order, rate, center):
    rows, bounds = np.array([values], dtype=float), (0.0, 20.0)
    edges = np.concatenate([[0.0], np.sort(rows[0]), [20.0]])
    logs = -rate * np.abs(np.arange(len(values) + 1) - order * len(values))
    about = np.array([center])
    law = cells(rows, order, rate, bounds)
    squared, absolute = mean_squared_error(edges, logs, center), expected_absolute_error(edges, logs, center)
    assert law.squared(about)[0] == pytest.approx(squared, rel=1e-9, abs=1e-12)
    assert law.absolute(about)[0] == pytest.approx(absolute, rel=1e-9, abs=1e-12)


def test_the_fourth_moment_is_an_integral_of_the_density():
    rows = np.array([[1.0, 1.0, 2.5, 6.0]])
    law = cells(rows, 0.25, 0.4, (0, 8))
    places = (np.arange(80_000) + 0.5) / 10_000
    heights = law.heights[0][np.searchsorted(law.edges[0], places) - 1]
    assert law.fourth(np.array([1.5]))[0] == pytest.approx((heights * (places - 1.5) ** 4).sum() / 10_000)


def test_every_row_has_a_rate_of_its_own_if_rates_are_many():
    rows = np.random.default_rng(2).random((3, 20))
    rates = np.array([0.1, 1.0, 10.0])
    together = cells(rows, 0.5, rates, (0, 1)).masses
    apart = [cells(rows[place : place + 1], 0.5, rates[place], (0, 1)).masses[0] for place in range(3)]
    assert np.allclose(together, apart, rtol=1e-12)


def distance(law: Cells, values):
    """The Kolmogorov-Smirnov distance of each row of draws, times the root of their number."""
    ordered = np.sort(values, axis=1)
    count = ordered.shape[1]
    reached = law.below(ordered)
    steps = np.arange(count + 1) / count
    gaps = np.maximum(np.abs(reached - steps[:-1]), np.abs(reached - steps[1:]))
    return gaps.max(axis=1) * math.sqrt(count)


# Passed by a row with a probability of 1e-6.
FAR = math.sqrt(math.log(2 / 1e-6) / 2)


@pytest.mark.parametrize(("sets", "size"), [(4, 20_000), (400, 300)])  # both ways to look cells up
def test_draws_have_the_law_and_a_slightly_wrong_rate_or_target_is_noticed(sets, size):
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 12, (sets, 15)).astype(float)
    right = cells(rows, 0.25, 0.5, (0, 12))
    values = right.draw(rng, size)
    assert values.shape == (sets, size)
    assert distance(right, values).max() < FAR
    if size > 10_000:
        for wrong in (cells(rows, 0.25, 0.55, (0, 12)), cells(rows, 0.3, 0.5, (0, 12))):
            assert distance(wrong, values).max() > FAR


def test_draws_stay_in_cells_that_have_a_width():
    rows = np.array([[0.0, 0.0, 5.0, 5.0, 5.0, 10.0]])
    values = drawn(rows, 0.5, 50.0, (0, 10), np.random.default_rng(4), size=500)
    # The target is rank 3, of no width; ranks 2 and 5 are next, and 2 is nearer.
    assert values.min() >= 0
    assert values.max() <= 5


def test_the_chance_of_a_far_draw_is_summed_and_not_what_is_left_of_one():
    rows = np.arange(1.0, 1000.0)[None]
    law = cells(rows, 0.5, 1.0, (0, 1000))
    chance = law.beyond(np.array([500.0]), 100.0)[0]
    assert 0 < chance < 1e-40
    near = law.beyond(np.array([500.0]), 3.0)[0]
    below = law.below(np.array([497.0, 503.0]))[0]
    assert near == pytest.approx(below[0] + 1 - below[1], rel=1e-9)


def test_the_sample_quantile_is_at_p_times_n_plus_one():
    rows = np.array([[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0]])
    assert sample_quantile(rows, 0.25)[0] == 20
    assert sample_quantile(rows[:, :5], 0.25)[0] == 15
    assert sample_quantile(rows[:, :1], 0.9)[0] == 10
    assert sample_quantile(rows, 0.99)[0] == 70
    assert sample_quantile(rows[:, :6], 0.5)[0] == np.median(rows[0, :6])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"order": 1.0}, "order must be inside"),
        ({"rate": -1.0}, "rate must be finite and not negative"),
        ({"rate": np.array([1.0, np.inf])}, "rate must be finite"),
        ({"bounds": (1, 1)}, "bounds must increase"),
        ({"bounds": (0,)}, "bounds must be a pair"),
        ({"rows": np.zeros(3)}, "rows must be a matrix"),
        ({"rows": np.zeros((2, 0))}, "rows must be a matrix"),
    ],
)
def test_what_is_no_law_is_refused(change, words):
    given = {"rows": np.zeros((2, 3)), "order": 0.5, "rate": 1.0, "bounds": (0, 1), **change}
    with pytest.raises(InvalidParameter, match=words):
        cells(**given)
