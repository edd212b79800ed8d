"""AboveThreshold: exact audits over small universes, broken variants that they must catch, and accuracy."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.laws import DiscreteLaplace, Geometric, SeededBits
from sfumato.laws.crossing import FirstCrossing
from sfumato.mechanisms.above_threshold import AboveThreshold, AnyQueries, CountsAtOrder, SameDirection

# Float64 in the log probabilities; the bounds themselves are exact.
ROUNDING = 1e-11
ORDERS = [Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(3, 10), Fraction(1, 2)]

Input = tuple[tuple[int, ...], int]  # values and threshold
Pair = tuple[Input, Input]
LogLaw = Callable[[tuple[int, ...], int], np.ndarray]


def log_law(mechanism: AboveThreshold) -> LogLaw:
    def logs(values: tuple[int, ...], threshold: int) -> np.ndarray:
        law = mechanism.law(np.array(values, dtype=np.int64), threshold)
        return law.logpmf(law.outcomes())

    return logs


def audit(law: LogLaw, pairs: Iterable[Pair]) -> tuple[float, float]:
    """The largest log ratio, and the largest distance between the log ratios of two outcomes."""
    known: dict[Input, np.ndarray] = {}

    def logs(data: Input) -> np.ndarray:
        if data not in known:
            known[data] = law(*data)
        return known[data]

    loss = spread = 0.0
    for left, right in pairs:
        ratios = logs(left) - logs(right)
        loss, spread = max(loss, np.abs(ratios).max()), max(spread, np.ptp(ratios))
    return float(loss), float(spread)


def histograms(cells: int, rows: int) -> Iterator[tuple[int, ...]]:
    return (h for h in itertools.product(range(rows + 1), repeat=cells) if sum(h) == rows)


def cumulated(histogram: Iterable[int], unit: int = 1, repeat: int = 1) -> tuple[int, ...]:
    """Counts up to each cell, each asked `repeat` times as in a long run of empty cells."""
    return tuple(int(count) * unit for count in np.repeat(np.cumsum(list(histogram)), repeat))


def with_record(histogram: tuple[int, ...], cell: int) -> tuple[int, ...]:
    return tuple(count + (i == cell) for i, count in enumerate(histogram))


def order_pairs(order: Fraction, cells: int, most: int, repeat: int = 1) -> Iterator[Pair]:
    """Add-remove on counts against order * rows; the last cell is asked or left out."""
    a, b = order.numerator, order.denominator
    for rows in range(most):
        for histogram in histograms(cells, rows):
            for cell in range(cells):
                left, right = (cumulated(h, b, repeat) for h in (histogram, with_record(histogram, cell)))
                yield (left, a * rows), (right, a * (rows + 1))
                yield (left[:-repeat], a * rows), (right[:-repeat], a * (rows + 1))


def count_pairs(cells: int, rows: int, threshold: int, repeat: int = 1) -> Iterator[Pair]:
    """Substitution on counts against a public threshold."""
    for histogram in histograms(cells, rows - 1):
        for one, other in itertools.combinations(range(cells), 2):
            pair = (cumulated(with_record(histogram, cell), 1, repeat) for cell in (one, other))
            left, right = pair
            yield (left, threshold), (right, threshold)


def any_pairs(queries: int, sensitivity: int, repeat: int = 1) -> Iterator[Pair]:
    """Every vector of small integers, every query moved on its own."""
    moves = sorted({-sensitivity, 0, sensitivity})
    for values in itertools.product((-2, 0, 1), repeat=queries):
        for move in itertools.product(moves, repeat=queries):
            moved = tuple(value + by for value, by in zip(values, move, strict=True))
            yield (_repeated(values, repeat), 0), (_repeated(moved, repeat), 0)


def _repeated(values: tuple[int, ...], repeat: int) -> tuple[int, ...]:
    return tuple(np.repeat(values, repeat).tolist())


both_kinds = pytest.mark.parametrize("one_sided", [True, False], ids=["one-sided", "two-sided"])


def assert_holds(mechanism: AboveThreshold, pairs: Iterable[Pair]) -> tuple[float, float]:
    loss, spread = audit(log_law(mechanism), pairs)
    assert loss <= float(mechanism.cost) + ROUNDING
    assert spread <= float(mechanism.log_range) + ROUNDING
    return loss, spread


@both_kinds
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("cells", "most"), [(3, 7), (5, 5)])
def test_counts_at_an_order_lose_at_most_epsilon_under_add_remove(order, cells, most, one_sided):
    assert_holds(AboveThreshold.for_order(1, order, one_sided=one_sided), order_pairs(order, cells, most))


@both_kinds
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 3])
def test_counts_at_an_order_hold_at_other_budgets(order, epsilon, one_sided):
    mechanism = AboveThreshold.for_order(epsilon, order, one_sided=one_sided)
    assert_holds(mechanism, order_pairs(order, 3, 4))


@pytest.mark.parametrize("order", ORDERS)
def test_the_bound_at_an_order_is_reached_in_long_runs(order):
    pairs = list(order_pairs(order, 3, 3, repeat=60))
    loss, _ = assert_holds(AboveThreshold.for_order(1, order), pairs)
    assert loss >= 0.9999
    # Scales other than the chosen ones, those of the specification.
    share = 1 - order if order < Fraction(1, 2) else Fraction(1)
    unit = order.denominator
    other = AboveThreshold(
        moves=CountsAtOrder(order), threshold_scale=share * unit, query_scale=unit / (1 - order / share)
    )
    assert other.cost == 1
    assert assert_holds(other, pairs)[0] >= 0.9999


@both_kinds
@pytest.mark.parametrize(("cells", "rows"), [(3, 7), (5, 4)])
def test_counts_lose_at_most_epsilon_under_substitution(cells, rows, one_sided):
    mechanism = AboveThreshold.same_direction(1, 1, one_sided=one_sided)
    for threshold in range(-1, rows + 2):
        assert_holds(mechanism, count_pairs(cells, rows, threshold))


@both_kinds
@pytest.mark.parametrize(("cells", "rows"), [(3, 6), (4, 4)])
def test_counts_against_a_public_threshold_hold_under_add_remove(cells, rows, one_sided):
    mechanism = AboveThreshold.same_direction(1, 1, one_sided=one_sided)
    for threshold in (0, 2, 5):
        pairs = (
            ((left, threshold), (right, threshold))
            for (left, _), (right, _) in order_pairs(Fraction(0), cells, rows)
        )
        assert_holds(mechanism, pairs)


@both_kinds
@pytest.mark.parametrize("sensitivity", [1, 2])
def test_any_queries_lose_at_most_epsilon(sensitivity, one_sided):
    mechanism = AboveThreshold.general(1, sensitivity, one_sided=one_sided)
    assert_holds(mechanism, any_pairs(4, sensitivity))


@both_kinds
@pytest.mark.parametrize("constructor", [AboveThreshold.general, AboveThreshold.same_direction])
def test_the_bounds_of_both_rows_are_reached_in_long_runs(constructor, one_sided):
    # Many queries go up by one, and the next goes down (general) or stays: the worst case of the proof.
    mechanism = constructor(1, 1, one_sided=one_sided)
    last = -1 if constructor == AboveThreshold.general else 0
    pairs = [
        (((0,) * many + (low,), 0), ((1,) * many + (low + last,), 0))
        for many in (500, 5000)
        for low in (0, -20)
    ]
    loss, _ = assert_holds(mechanism, pairs)
    assert loss >= 0.999


def test_the_range_is_below_twice_epsilon_and_nearly_reached():
    same = AboveThreshold.same_direction(1, 1)
    assert same.log_range == Fraction(3, 2)
    median = AboveThreshold.for_order(1, Fraction(1, 2))
    assert median.log_range < Fraction(27, 20)
    assert assert_holds(median, order_pairs(Fraction(1, 2), 3, 4, repeat=30))[1] >= 0.99 * median.log_range


# --- broken variants: each must be caught ---------------------------------------------------------


def halved_query_noise(one_sided: bool) -> LogLaw:
    """The noise of queries that move together, for queries that do not."""
    return log_law(
        AboveThreshold(
            moves=AnyQueries(1), threshold_scale=Fraction(2), query_scale=Fraction(2), one_sided=one_sided
        )
    )


def noise_on_whole_counts(order: Fraction, threshold_scale: Fraction, query_scale: Fraction) -> LogLaw:
    """F + noise against order * n + noise, both noises integers: the target is rounded in effect."""

    def logs(counts: tuple[int, ...], rows: int) -> np.ndarray:
        target = order.numerator * rows // order.denominator
        law = FirstCrossing(np.array(counts), target, Geometric(threshold_scale), Geometric(query_scale))
        return law.logpmf(law.outcomes())

    return logs


def threshold_redrawn(mechanism: AboveThreshold) -> LogLaw:
    """Every comparison has a threshold of its own."""

    def logs(values: tuple[int, ...], threshold: int) -> np.ndarray:
        each = [mechanism.law(np.array([value]), threshold).logpmf(np.array([0, 1])) for value in values]
        before = np.cumsum([0.0, *(below for _, below in each)])
        return before + np.array([*(above for above, _ in each), 0.0])

    return logs


def drawn_until_one_crosses(mechanism: AboveThreshold) -> LogLaw:
    """There is no outcome for none: the scan is repeated instead."""

    def logs(values: tuple[int, ...], threshold: int) -> np.ndarray:
        crossed = log_law(mechanism)(values, threshold)[:-1]
        return crossed - np.log(np.exp(crossed).sum())

    return logs


def none_is_the_last(mechanism: AboveThreshold) -> LogLaw:
    """None is reported as the last value."""

    def logs(values: tuple[int, ...], threshold: int) -> np.ndarray:
        every = log_law(mechanism)(values, threshold)
        return np.array([*every[:-2], np.logaddexp(every[-2], every[-1])])

    return logs


@both_kinds
def test_halved_query_noise_is_caught(one_sided):
    law = halved_query_noise(one_sided)
    assert audit(law, any_pairs(4, 1))[0] > (1.4 if one_sided else 1.1)
    worst = [(((0,) * 5000 + (-20,), 0), ((1,) * 5000 + (-21,), 0))]
    assert 1.499 < audit(law, worst)[0] < 1.5 + ROUNDING


def test_integer_noise_on_counts_against_a_share_is_caught():
    broken = noise_on_whole_counts(Fraction(3, 10), Fraction(7, 10), Fraction(7, 4))
    loss, _ = audit(broken, [(((2, 5, 5), 6), ((2, 5, 6), 7))])
    assert loss == pytest.approx(2, abs=5e-5)
    # The same scales hold in units of 1/10.
    right = AboveThreshold(
        moves=CountsAtOrder(Fraction(3, 10)), threshold_scale=Fraction(7), query_scale=Fraction(35, 2)
    )
    assert right.cost == 1
    assert_holds(right, order_pairs(Fraction(3, 10), 3, 7))


@both_kinds
def test_a_threshold_that_is_redrawn_is_caught(one_sided):
    mechanism = AboveThreshold.same_direction(1, 1, one_sided=one_sided)
    assert audit(threshold_redrawn(mechanism), count_pairs(5, 4, 2, repeat=4))[0] > 2


def test_a_scan_repeated_until_one_crosses_is_caught():
    mechanism = AboveThreshold.for_order(1, Fraction(1, 10))
    pairs = [pair for pair in order_pairs(Fraction(1, 10), 3, 7) if pair[0][0]]
    assert audit(drawn_until_one_crosses(mechanism), pairs)[0] > 1.05


def test_reporting_none_as_the_last_costs_no_privacy():
    # It is post-processing, a wrong answer and not a leak; the fit tests of the law catch it.
    mechanism = AboveThreshold.for_order(1, Fraction(1, 4))
    assert audit(none_is_the_last(mechanism), order_pairs(Fraction(1, 4), 3, 6))[0] <= 1 + ROUNDING


@pytest.mark.parametrize("order", [Fraction(7, 10), Fraction(9, 10)])
def test_an_order_above_one_half_would_break_the_formula_of_the_other_side(order):
    # An upward scan at order q with the scales of 1 - q: the reason why the constructor refuses.
    mirrored = AboveThreshold.for_order(1, 1 - order)
    assert audit(log_law(mirrored), order_pairs(order, 3, 4, repeat=20))[0] > 1.05


# --- calibration ---------------------------------------------------------------------------------


epsilons = st.fractions(Fraction(1, 10**4), 100)


@given(epsilons, st.integers(1, 10**6))
def test_general_and_same_direction_cost_exactly_epsilon(epsilon, sensitivity):
    for constructor in (AboveThreshold.general, AboveThreshold.same_direction):
        mechanism = constructor(epsilon, sensitivity)
        assert mechanism.cost == mechanism.event.pure_epsilon == epsilon


@given(epsilons, st.fractions(0, Fraction(1, 2), max_denominator=10**4))
def test_an_order_costs_exactly_epsilon_and_wastes_no_noise(epsilon, order):
    mechanism = AboveThreshold.for_order(epsilon, order)
    assert mechanism.cost == epsilon
    b = order.denominator

    def noise(threshold: Fraction, query: Fraction) -> Fraction:
        return threshold**2 + 3 * query**2

    best = noise(mechanism.threshold_scale, mechanism.query_scale)
    for factor in (Fraction(9, 10), Fraction(99, 100), Fraction(101, 100), Fraction(11, 10)):
        threshold = mechanism.threshold_scale * factor
        left = epsilon - order.numerator / threshold
        if (1 - order) * b / threshold <= epsilon and left > 0:
            # The cube root is a thousandth off at most.
            assert best <= noise(threshold, b / left) * Fraction(10_001, 10_000)


def test_scales_of_the_specification():
    tenth = AboveThreshold.for_order(1, Fraction(1, 10))
    assert tenth.threshold_scale / 10 == Fraction(9, 10)
    assert tenth.query_scale / 10 == Fraction(9, 8)
    general = AboveThreshold.general(Fraction(1, 2), 3)
    assert (general.threshold_scale, general.query_scale) == (12, 24)
    assert general.moves.losses(Fraction(6), Fraction(12)) == (1, 1)
    pair = AboveThreshold(moves=SameDirection(1), threshold_scale=Fraction(2), query_scale=Fraction(4))
    assert pair.cost == Fraction(3, 4)


@both_kinds
def test_the_noise_compared_has_a_mean_within_half_of_zero(one_sided):
    for mechanism in (
        AboveThreshold.general(0.1, 1, one_sided=one_sided),
        AboveThreshold.same_direction(0.1, 1, one_sided=one_sided),
        AboveThreshold.for_order(0.1, Fraction(1, 4), one_sided=one_sided),
    ):
        difference = mechanism.query_noise.mean - mechanism.threshold_noise.mean
        assert abs(difference - mechanism.centring) <= 0.5
        kind = Geometric if one_sided else DiscreteLaplace
        assert isinstance(mechanism.query_noise, kind)


@pytest.mark.parametrize("order", [Fraction(51, 100), -1, 1, "text", 0.75])
def test_orders_outside_the_lower_half_are_refused(order):
    with pytest.raises(InvalidParameter, match="order"):
        AboveThreshold.for_order(1, order)


@pytest.mark.parametrize("sensitivity", [0, -1, 1.5, 2**60])
def test_sensitivities_that_are_no_positive_integers_are_refused(sensitivity):
    for make in (AboveThreshold.general, AboveThreshold.same_direction):
        with pytest.raises(InvalidParameter, match="sensitivity"):
            make(1, sensitivity)
    with pytest.raises(InvalidParameter, match="sensitivity"):
        AnyQueries(sensitivity)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), "1", Fraction(1, 2**60)])
def test_budgets_out_of_range_are_refused(epsilon):
    with pytest.raises(InvalidParameter, match=r"epsilon|scale"):
        AboveThreshold.general(epsilon, 1)
    with pytest.raises(InvalidParameter, match=r"epsilon|scale"):
        AboveThreshold.for_order(epsilon, Fraction(1, 2))


# --- accuracy ------------------------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("make", ["general", "same_direction", "for_order"])
def test_the_radius_covers_and_is_not_far_too_wide(make, confidence, one_sided):
    parameter = Fraction(1, 4) if make == "for_order" else 1
    mechanism = getattr(AboveThreshold, make)(Fraction(1, 2), parameter, one_sided=one_sided)
    queries, draws = 50, 4000
    radius = mechanism.radius(queries, confidence)
    rng = np.random.default_rng(12)
    misses = {radius: 0, radius // 4: 0}
    for step in (0, 1, 5):
        values = np.sort(rng.integers(-step * queries, step * queries + 1, queries))
        found = mechanism.law(values, 0).sample(SeededBits(step), draws)
        for reach in misses:
            misses[reach] = max(misses[reach], sum(not truthful(values, int(k), reach) for k in found))
    assert misses[radius] <= draws * (1 - confidence) + 6 * draws**0.5
    assert misses[radius // 4] > 0


def truthful(values: np.ndarray, found: int, reach: int) -> bool:
    before = values[:found]
    return bool((before <= reach).all()) and (found == len(values) or values[found] > -reach)


def test_the_radius_grows_with_queries_and_confidence():
    mechanism = AboveThreshold.same_direction(Fraction(1, 10), 1)
    assert mechanism.radius(10, 0.95) < mechanism.radius(10**6, 0.95) < mechanism.radius(10**6, 1 - 1e-12)
    with pytest.raises(InvalidParameter, match="queries"):
        mechanism.radius(0, 0.5)
    with pytest.raises(InvalidParameter, match="confidence"):
        mechanism.radius(3, 1.0)


def test_the_mechanism_says_what_it_does():
    mechanism = AboveThreshold.for_order(1, Fraction(1, 10))
    assert mechanism.described(Fraction(1, 10)) == (
        "first crossing with one-sided geometric noise of scales 0.9 and 1.125"
    )
    assert mechanism.event.name == "above-threshold"
