"""Smooth inverse sensitivity of a quantile: bounds against exact laws of many data sets, and their proof."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta

from sfumato.accuracy import inverse_sensitivity_population_tail, inverse_sensitivity_quantile_tail
from sfumato.errors import InvalidParameter

PUBLIC = {
    "rows": 10_000,
    "density": 1,
    "reach": 0.25,
    "step": 0.01,
    "radius": 0.001,
    "width": 1,
    "epsilon": 1,
}


def law(data, index, radius, epsilon):
    """The edges of the levels on [0, 1] and the probability of each piece, by the definition of levels."""
    data = np.sort(data)
    right, left = data[index:] + radius, data[: index + 1][::-1] - radius
    edges = np.clip(np.concatenate([[0], left[::-1], right, [1]]), 0, 1)
    levels = np.concatenate([np.arange(len(left), 0, -1), [0], np.arange(1, len(right) + 1)])
    masses = np.diff(edges) * np.exp(-epsilon * levels / 2)
    return edges, masses / masses.sum()


def outside(edges, masses, low, high):
    """The mass below `low` and above `high`."""
    sums = np.concatenate([[0], np.cumsum(masses)])
    below, upto = np.interp([low, high], edges + np.arange(len(edges)) * 1e-15, sums)
    return below + 1 - upto


def level_by_search(data, index, value, radius):
    """How many records must be replaced for some value within the radius to be the order statistic."""
    data = sorted(data)
    for changes in range(len(data) + 1):
        # The smallest and the largest order statistic after so many replacements.
        lowest = data[index - changes] if changes <= index else -math.inf
        highest = data[index + changes] if index + changes < len(data) else math.inf
        if lowest - radius <= value <= highest + radius:
            return changes
    raise AssertionError


def test_the_law_of_this_test_has_the_levels_of_the_definition():
    numbers = np.random.default_rng(3)
    for rows, index in ((1, 0), (4, 1), (5, 4)):
        data = numbers.random(rows)
        edges, masses = law(data, index, 0.03, 2)
        middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        keep = widths > 0
        logs = np.log(masses[keep] / widths[keep])
        found = np.array([level_by_search(data, index, value, 0.03) for value in middles[keep]])
        np.testing.assert_allclose(logs - logs.max(), -found, atol=1e-9)


@pytest.mark.parametrize("order", [0.25, 0.5])
@pytest.mark.parametrize("epsilon", [0.3, 1, 5])
@pytest.mark.parametrize("rows", [500, 4000])
def test_the_bounds_hold_over_many_data_sets(order, epsilon, rows):
    numbers = np.random.default_rng(int(100 * order) + rows)
    reach = order / 2
    settings = list(itertools.product((0.01, 0.03, 0.06), (1e-4, 0.02, 0.2), (0.02, 0.12)))
    sample, population = np.zeros((2, len(settings), 40))
    index = math.ceil(order * rows) - 1
    for trial in range(40):
        data = np.sort(numbers.random(rows))
        near = data[index]
        for place, (step, radius, drift) in enumerate(settings):
            edges, masses = law(data, index, radius, epsilon)
            away = 2 * step + radius
            sample[place, trial] = outside(edges, masses, near - away, near + away)
            population[place, trial] = outside(edges, masses, order - away - drift, order + away + drift)
    useful = refuted = 0
    for place, (step, radius, drift) in enumerate(settings):
        if step > reach / 4:
            continue
        public = {
            "rows": rows,
            "density": 1,
            "reach": reach,
            "step": step,
            "radius": radius,
            "width": 1,
            "epsilon": epsilon,
        }
        bound = inverse_sensitivity_quantile_tail(**public)
        error_of_sample = sample[place].std() / math.sqrt(40)
        assert sample[place].mean() - 4 * error_of_sample <= bound
        useful += bound < 0.5
        bound = inverse_sensitivity_population_tail(drift=drift, **public)
        error = population[place].std() / math.sqrt(40)
        assert population[place].mean() - 4 * error <= bound
        # A draw that fell eight times as fast with the records would be refuted.
        steep = math.exp(-2 * rows * step * epsilon) / (2 * radius)
        refuted += sample[place].mean() - 4 * error_of_sample > steep
    if rows == 4000 and epsilon == 0.3:
        assert refuted > 0
    if rows == 4000:
        assert useful > 0


def test_read_with_the_population_quantile_the_first_bound_is_false():
    # A budget so large that the draw is within the radius of the sample quantile: only sampling is left.
    rows, step, radius = 10**6, 3e-4, 1e-6
    public = {
        "rows": rows,
        "density": 1,
        "reach": 0.25,
        "step": step,
        "radius": radius,
        "width": 1,
        "epsilon": 100,
    }
    claimed = inverse_sensitivity_quantile_tail(**public)
    assert claimed < 1e-13
    index = rows // 2
    away = 2 * step + 2 * radius
    spread = beta(index, rows - index + 1)
    truth = spread.cdf(0.5 - away) + spread.sf(0.5 + away)
    assert truth > 0.22
    drift = 2e-3
    claimed = inverse_sensitivity_population_tail(drift=drift, **public)
    truth = spread.cdf(0.5 - away - drift) + spread.sf(0.5 + away + drift)
    assert truth <= claimed < 1e-3


def covers(reach, step, cells):
    """Whether on both sides of every place within reach some cell of length `step` is within two steps."""
    starts = -reach + step * np.arange(-1, cells - 1)
    places = np.linspace(-reach, reach, 2001)[:, None]
    slack = 1e-9
    right = (starts >= places - slack) & (starts + step <= places + 2 * step + slack)
    left = (starts >= places - 2 * step - slack) & (starts + step <= places + slack)
    return bool((right.any(axis=1) & left.any(axis=1)).all())


@pytest.mark.parametrize("step", [0.0625, 0.05, 0.031, 0.0101])
def test_the_proof_needs_two_cells_more_than_cover_the_reach(step):
    cells = math.ceil(0.5 / step)
    assert covers(0.25, step, cells + 2)
    # One cell fewer leaves the last place without one on its right.
    assert not covers(0.25, step, cells + 1 if math.isclose(0.5 / step, cells) else cells)
    # All of them are where the density is bounded.
    assert -0.25 - step >= -0.5
    assert -0.25 + step * (cells + 1) <= 0.5


def test_the_bound_adds_up_as_stated():
    found = inverse_sensitivity_quantile_tail(**PUBLIC)
    draw = 1 / 0.002 * math.exp(-10_000 * 0.01 / 4)
    cells = (50 + 2) * math.exp(-10_000 * 0.01 / 8)
    assert found == pytest.approx(draw + 2 * math.exp(-2 * 10_000 / 16) + cells, rel=1e-12)
    # Beyond the reach the flat part may be cut by a bound.
    wide = inverse_sensitivity_quantile_tail(**PUBLIC | {"radius": 0.4})
    assert wide == pytest.approx(1 / 0.65 * math.exp(-25) + cells, rel=1e-9)
    assert inverse_sensitivity_quantile_tail(**PUBLIC | {"rows": 1}) == 1
    sparse = {
        "rows": 5000,
        "density": 0.5,
        "reach": 0.5,
        "step": 0.125,
        "radius": 1,
        "width": 2,
        "epsilon": 0.1,
    }
    cells = (8 + 2) * math.exp(-5000 * 0.5 * 0.125 / 8)
    draw = 2 / 1.5 * math.exp(-5000 * 0.5 * 0.125 * 0.1 / 4)
    middle = 2 * math.exp(-2 * 5000 * 0.25**2)
    assert inverse_sensitivity_quantile_tail(**sparse) == pytest.approx(draw + cells + middle, rel=1e-12)
    cells = (math.ceil(0.6 / 0.125) + 2) * math.exp(-5000 * 0.5 * 0.125 / 8)
    draw = 2 / 1.7 * math.exp(-5000 * 0.5 * 0.125 * 0.1 / 4)
    middle = 2 * math.exp(-2 * 5000 * 0.15**2)
    joint = inverse_sensitivity_population_tail(drift=0.3, **sparse)
    assert joint == pytest.approx(draw + cells + middle, rel=1e-12)
    both = found + 2 * math.exp(-2 * 10_000 * 0.05**2)
    for radius in (0.001, 0.1, 0.3):
        joint = inverse_sensitivity_population_tail(drift=0.05, **PUBLIC | {"radius": radius})
        assert joint <= both


def test_it_falls_with_rows_and_budget():
    def bound(**changed):
        return inverse_sensitivity_quantile_tail(**PUBLIC | changed)

    assert bound(rows=20_000) < bound(rows=10_000) < bound(rows=5000)
    assert bound(epsilon=2) < bound(epsilon=1) < bound(epsilon=0.5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"step": 0}, "step must be positive"),
        ({"step": 0.1}, "step must be at most a quarter of reach"),
        ({"reach": 0.3}, "reach must be at most a quarter of width"),
        ({"density": 2}, "density must be at most"),
        ({"radius": 0}, "radius must be positive"),
        ({"rows": 0}, "rows must be in"),
        ({"epsilon": math.nan}, "epsilon must be finite"),
        ({"width": -1}, "width must be positive"),
        ({"density": "1"}, "density must be a number"),
    ],
)
def test_hypotheses_are_checked_by_name(changed, message):
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        inverse_sensitivity_quantile_tail(**PUBLIC | changed)
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        inverse_sensitivity_population_tail(drift=0.01, **PUBLIC | changed)


def test_the_drift_is_within_reach():
    with pytest.raises(InvalidParameter, match=r"^drift must be at most reach"):
        inverse_sensitivity_population_tail(drift=0.26, **PUBLIC)
    with pytest.raises(InvalidParameter, match=r"^drift must be positive"):
        inverse_sensitivity_population_tail(drift=0, **PUBLIC)
