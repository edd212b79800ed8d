"""Intervals by noisy counts: how often they miss, summed over all noise, on every small data set."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.mechanisms import GaussianMechanism, LaplaceMechanism, ZeroSumMechanism
from sfumato.quantile_methods import walks
from sfumato.quantile_methods.noise_sums import rough_tail, sum_tail
from sfumato.quantile_methods.walks import Counted, walked, walked_population

F = Fraction
REACH = 5
CELLS = 3
LAPLACE = LaplaceMechanism(sensitivity=1, scale=F(2, 5))
GAUSSIAN = GaussianMechanism(sensitivity_squared=1, sigma_squared=F(1, 2), coordinates=1)
ZERO_SUM = ZeroSumMechanism(scale=F(4, 5))
ORDERS = (F(1, 10), F(1, 2), F(9, 10))
FAILURE = 0.1
each_noise = pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
each_public = pytest.mark.parametrize("public", [True, False], ids=["public n", "private n"])


def all_noise(noise, count):
    """Every tuple of noise up to the reach, with its probability."""
    steps = range(-REACH, REACH + 1)
    if isinstance(noise, ZeroSumMechanism):
        law = noise.law(np.zeros(count, dtype=np.int64))
        for free in itertools.product(steps, repeat=count - 1):
            drawn = (*free, -sum(free))
            yield drawn, math.exp(law.logpmf(drawn))
        return
    chances = np.exp(np.asarray(noise.law(0).logpmf(np.arange(-REACH, REACH + 1)))).tolist()
    for drawn in itertools.product(zip(steps, chances, strict=True), repeat=count):
        yield tuple(step for step, _ in drawn), math.prod(chance for _, chance in drawn)


def cell_counts(data, thresholds):
    """How many values are between the thresholds."""
    below = [sum(value < threshold for value in data) for threshold in thresholds]
    return [b - a for a, b in itertools.pairwise([0, *below, len(data)])]


def misses(noise, data, thresholds, order, public):
    """The probabilities that the lower and the upper end miss the quantile's cell; what is beyond the reach
    is left out."""
    exact = cell_counts(data, thresholds)
    true = sorted(data)[math.ceil(order * len(data)) - 1]
    size = len(data) if public else None
    target = math.ceil(order * len(data)) if public else order
    low = high = total = 0.0
    for drawn, chance in all_noise(noise, len(exact)):
        counts = tuple(count + step for count, step in zip(exact, drawn, strict=True))
        counted = Counted(noise, thresholds, counts, size, CELLS)
        low += chance * (counted.lower(target, FAILURE / 2) > true)
        high += chance * (counted.upper(target, FAILURE / 2) <= true)
        total += chance
    assert total > 1 - 2e-5
    return low, high


def data_sets(*sizes):
    return [data for size in sizes for data in itertools.combinations_with_replacement(range(CELLS), size)]


CASES = [
    ((1,), data_sets(1, 2, 3, 5)),
    ((2,), data_sets(4)),
    ((1, 2), data_sets(1, 3)),
    ((1, 1), data_sets(2)),
    ((0, 2), data_sets(2)),
    ((2, 3), data_sets(2)),
]


# Noise adds up to zero only where the number of values is public.
each_case = pytest.mark.parametrize(
    ("noise", "public"),
    [*itertools.product((LAPLACE, GAUSSIAN), (True, False)), (ZERO_SUM, True)],
    ids=["laplace, public n", "laplace", "gaussian, public n", "gaussian", "zero sum"],
)


@each_case
@pytest.mark.parametrize(("thresholds", "data"), CASES, ids=lambda x: str(x) if len(x) < 3 else "")
def test_neither_end_misses_more_often_than_it_may_on_any_data(noise, public, thresholds, data):
    for values, order in itertools.product(data, ORDERS):
        for miss in misses(noise, values, thresholds, order, public):
            assert miss <= FAILURE / 2, (values, order)


@each_case
def test_no_smaller_bound_would_do(noise, public, monkeypatch):
    monkeypatch.setattr(walks, "sum_tail", lambda *given: sum_tail(*given) - 1)
    worst = [0.0, 0.0]
    for values, order in itertools.product(data_sets(2, 5), ORDERS):
        worst = np.maximum(worst, misses(noise, values, (1,), order, public))
    assert (worst > FAILURE / 2).all()


@each_public
def test_rough_bounds_decide_nothing_that_exact_ones_would_not(public, monkeypatch):
    monkeypatch.setattr(walks, "rough_tail", lambda *given: 10**9)
    slow = [misses(LAPLACE, values, (1,), F(1, 2), public) for values in data_sets(3)]
    monkeypatch.setattr(walks, "rough_tail", rough_tail)
    assert slow == [misses(LAPLACE, values, (1,), F(1, 2), public) for values in data_sets(3)]


def test_bounds_are_never_passed():
    # Counts that are sure of what cannot be: all values at or beyond the last edge, or before the first.
    beyond = Counted(LAPLACE, (1, CELLS), (0, 0, 100), 100, CELLS)
    assert beyond.lower(50, FAILURE) == 1
    before = Counted(LAPLACE, (0, 1), (100, 0, 0), 100, CELLS)
    assert before.upper(50, FAILURE) == 1
    for counted in (beyond, before):
        for low, high in walked(counted, ORDERS, FAILURE):
            assert 0 <= low < high <= CELLS


def test_ends_do_not_decrease_with_the_order_and_only_widen():
    choose = np.random.default_rng(4)
    orders = [F(i, 10) for i in range(1, 10)]
    for _ in range(200):
        counts = tuple(choose.integers(-3, 12, 5).tolist())
        for size in (None, 20):
            counted = Counted(LAPLACE, (1, 3, 5, 8), counts, size, 10)
            found = walked(counted, orders, FAILURE)
            assert found == sorted(found)
            assert [high for _, high in found] == sorted(high for _, high in found)
            for (low, high), order in zip(found, orders, strict=True):
                target = order if size is None else math.ceil(order * size)
                assert low <= counted.lower(target, FAILURE / 2)
                assert high >= counted.upper(target, FAILURE / 2)


# --- populations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 5, 40, 1000])
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_ranks_around_a_population_quantile_are_the_nearest_that_are_sure(size, order):
    counted = Counted(LAPLACE, (1,), (0, size), size, CELLS)
    below, above = walks._ranks_around(counted, order, FAILURE)
    p, side = float(order), FAILURE / 2
    if below:
        assert binom.cdf(below[0] - 1, size, p) <= side
    assert binom.cdf(below[0] if below else 0, size, p) > side
    if above:
        assert binom.sf(above[0] - 1, size, p) <= side
        assert binom.sf(above[0] - 2, size, p) > side
    else:
        assert binom.sf(size - 1, size, p) > side


@each_public
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_a_population_quantile_is_missed_at_most_as_often_as_counts_and_sample_fail(order, public):
    size, p = 60, float(order)
    lowest = 0.0
    # A part of the population is in the first cell, a little less or more than the order.
    for part in (0.02, p - 0.15, p - 1e-9, p, p + 0.15, 0.98):
        if not 0 < part < 1:
            continue
        true = 0 if part >= p else 1
        missed = passed = 0.0
        for below in range(size + 1):
            weight = binom.pmf(below, size, part)
            if weight < 1e-9:
                continue
            for drawn, chance in all_noise(LAPLACE, 2):
                counts = (below + drawn[0], size - below + drawn[1])
                counted = Counted(LAPLACE, (1,), counts, size if public else None, 2)
                [(low, high)] = walked_population(counted, [order], FAILURE)
                missed += weight * chance * (not low <= true < high)
                passed += weight * chance * ((low, high) != (0, 2))
        assert missed <= 2 * FAILURE, part
        lowest = max(lowest, passed)
    # It says something where the population is far from the order.
    assert lowest > 0.5


@pytest.mark.parametrize("size", [3, 50, 10**4, 10**8])
def test_the_order_of_the_true_number_is_among_those_tested(size):
    # For every noise that is not too large, whatever its sign.
    def targets(total):
        return walks._orders_around(Counted(LAPLACE, (1,), (total, 0), None, CELLS), F(1, 2), FAILURE)

    off = sum_tail(LAPLACE, (1, 2), (1, 0), walks.NUMBER / 2 * FAILURE)
    power = math.floor(math.log(size) / math.log(walks.RATIO))
    away = math.sqrt(math.log(1 / (walks.EACH_SIDE * FAILURE)) / (2 * walks.RATIO**power))
    for noise in range(-off, off + 1):
        below, above = targets(size + noise)
        if below:
            assert min(abs(float(each) - (0.5 - away)) for each in below) < 2e-5
            assert min(abs(float(each) - (0.5 + away)) for each in above) < 2e-5
            assert max(below) < F(1, 2) < min(above)
    assert len(targets(10**6)[0]) <= 2
    assert targets(0) == ([], [])
