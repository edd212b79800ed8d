"""Comparisons of laws against exact fractions, and what every divergence must satisfy."""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.audit import Between, compare
from sfumato.audit.compare import MOST_OUTCOMES
from sfumato.data.ranks import Ranks
from sfumato.errors import InvalidParameter
from sfumato.grid import Grid
from sfumato.laws import Choice, Clamped, DiscreteLaplace, FirstCrossing, Joint, Point, Shifted
from sfumato.laws.chain import Chain
from sfumato.mechanisms import AboveThreshold, ExponentialMechanism, TopMechanism
from sfumato.mechanisms.sparse import SparseMechanism
from sfumato.quantile_methods.joint import JointLaw
from sfumato.quantile_methods.node import quantile_node

F = Fraction
weights = st.lists(st.integers(0, 50), min_size=2, max_size=6).filter(any)
positive_weights = st.lists(st.integers(1, 50), min_size=4, max_size=4)
quick = settings(max_examples=150, deadline=None, derandomize=True)


def chances(counts):
    return [F(count, sum(counts)) for count in counts]


def padded(one, other):
    length = max(len(one), len(other))
    return ([*law, *[F(0)] * (length - len(law))] for law in (chances(one), chances(other)))


def true_delta(p, q, factor):
    """The hockey stick as a fraction, for a rational exp(epsilon), by trying every set of outcomes."""
    best = F(0)
    for chosen in itertools.product((0, 1), repeat=len(p)):
        a, b = (sum(x for x, inside in zip(law, chosen, strict=True) if inside) for law in (p, q))
        best = max(best, a - factor * b, b - factor * a)
    return best


@quick
@given(weights, weights)
def test_listed_laws_have_the_divergences_of_their_fractions(one, other):
    p, q = padded(one, other)
    found = compare(Choice(one), Choice(other))
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a or b]
    if any(not a or not b for a, b in pairs):
        assert found.epsilon() == (math.inf, math.inf)
        assert found.rho() == (math.inf, math.inf)
    else:
        ratio = max(max(a / b, b / a) for a, b in pairs)
        assert found.epsilon().upper == pytest.approx(math.log(ratio), rel=1e-9, abs=1e-12)
        assert found.epsilon().exact
        squares = max(sum(a * a / b for a, b in pairs), sum(b * b / a for a, b in pairs))
        assert found.renyi(2).upper == pytest.approx(math.log(squares), rel=1e-9, abs=1e-12)
    for factor in (F(1), F(3, 2), F(10)):
        delta = found.delta(math.log(factor))
        assert delta.lower == pytest.approx(float(true_delta(p, q, factor)), rel=1e-9, abs=1e-12)
        assert delta.exact


@quick
@given(weights, weights, st.floats(0.001, 0.9))
def test_the_epsilon_at_a_delta_is_the_smallest_that_keeps_it(one, other, delta):
    found = compare(Choice(one), Choice(other))
    epsilon = found.epsilon(delta).upper
    if math.isfinite(epsilon):
        assert found.delta(epsilon).upper <= delta * (1 + 1e-9)
        if epsilon > 1e-6:
            assert found.delta(epsilon - 1e-6).lower > delta * (1 - 1e-12)
    else:
        # Some set is impossible under one law, and more likely than delta under the other.
        assert found.delta(700).lower > delta


@quick
@given(positive_weights, positive_weights)
def test_the_renyi_divergence_grows_with_its_order_to_the_pure_loss_and_rho_is_its_supremum(one, other):
    found = compare(Choice(one), Choice(other))
    orders = (1.001, 1.5, 2, 4, 32, 1000, 10**6)
    values = [found.renyi(order).lower for order in orders]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(values))
    pure = found.epsilon().upper
    assert values[-1] <= pure + 1e-12
    assert values[-1] == pytest.approx(pure, abs=1e-4)
    rho = found.rho()
    assert all(
        value / order <= rho.lower * (1 + 1e-6) + 1e-12 for value, order in zip(values, orders, strict=True)
    )
    assert rho.lower <= rho.upper <= rho.lower * 1.02 + 1e-12
    assert rho.upper <= pure**2 / 2 + 1e-12


@quick
@given(weights, weights, st.data())
def test_merging_outcomes_never_increases_a_divergence_and_order_does_not_matter(one, other, data):
    length = max(len(one), len(other))
    one, other = ([*law, *[0] * (length - len(law))] for law in (one, other))
    into = data.draw(st.lists(st.integers(0, 2), min_size=length, max_size=length))
    merged = [
        [sum(w for w, i in zip(law, into, strict=True) if i == cell) for cell in range(3)]
        for law in (one, other)
    ]
    before, after = compare(Choice(one), Choice(other)), compare(*map(Choice, merged))
    back = compare(Choice(other), Choice(one))
    for figure in (
        lambda found: found.epsilon().lower,
        lambda found: found.epsilon(0.05).lower,
        lambda found: found.delta(0.3).lower,
        lambda found: found.renyi(3).lower,
        lambda found: found.rho().lower,
    ):
        assert figure(after) <= figure(before) * (1 + 1e-5) + 1e-12
        assert figure(back) == pytest.approx(figure(before), rel=1e-9, abs=1e-12)


@quick
@given(positive_weights, positive_weights, positive_weights, positive_weights)
def test_independent_parts_are_compared_as_their_product(a, b, c, d):
    joint = compare(Joint((Choice(a), Choice(c))), Joint((Choice(b), Choice(d))))
    outer = compare(*(Choice([x * y for x in one for y in two]) for one, two in ((a, c), (b, d))))
    for figure in (
        lambda f: f.epsilon(),
        lambda f: f.delta(0.2),
        lambda f: f.renyi(3),
        lambda f: f.epsilon(0.1),
    ):
        assert figure(joint).upper == pytest.approx(figure(outer).upper, rel=1e-9, abs=1e-12)


def test_different_supports_lose_everything_with_the_mass_of_what_only_one_can_give():
    found = compare(Choice([1, 1, 0]), Choice([0, 1, 1]))
    assert found.epsilon() == found.epsilon(0.4) == (math.inf, math.inf)
    assert found.delta(50) == (0.5, 0.5)
    assert found.epsilon(0.5).upper == 0
    longer = compare(Choice([1, 1]), Choice([1, 1, 2]))
    assert longer.delta(3).lower == 0.5
    assert compare(Joint((Point(1),)), Joint((Point(1), Point(2)))).epsilon().lower == math.inf


@pytest.mark.parametrize("value", [-1, 2, math.nan, "1"], ids=str)
def test_numbers_out_of_range_are_refused(value):
    found = compare(Choice([1, 1]), Choice([1, 2]))
    with pytest.raises(InvalidParameter):
        found.epsilon(value)
    with pytest.raises(InvalidParameter):
        found.delta(-1)
    with pytest.raises(InvalidParameter):
        found.renyi(1)


def test_bounds_are_ordered_whatever_rounding_did():
    assert Between(1.0, 0.5) == (1.0, 1.0)
    assert str(Between(1.0, 2.0)) == "between 1 and 2"


# --- runs, clamps and shifts -----------------------------------------------------------------------


def test_runs_of_billions_of_points_are_compared_run_by_run():
    table = [16, 8, 4, 2, 1]
    left = Choice.of_runs([10, 2**32, 5], [1, 0, 3], table)
    right = Choice.of_runs([12, 2**32, 3], [1, 1, 3], table)
    found = compare(left, right)
    points = [0, 9, 10, 11, 12, 2**31, 2**32 + 9, 2**32 + 10, 2**32 + 11, 2**32 + 12, 2**32 + 14]
    listed = max(abs(left.logpmf(point) - right.logpmf(point)) for point in points)
    assert found.epsilon().upper == pytest.approx(listed, rel=1e-12)
    assert found.epsilon().exact
    worst = found.worst_outcome
    assert abs(left.logpmf(worst) - right.logpmf(worst)) == pytest.approx(listed, rel=1e-12)


@quick
@given(weights, st.integers(-3, 3), st.integers(-2, 4), st.integers(0, 4))
def test_shifted_and_clamped_choices_are_those_of_their_lists(one, center, lower, width):
    law = Clamped(Shifted(Choice(one), center), lower, lower + width)
    flat = [F(0)] * (width + 1)
    for outcome, chance in enumerate(chances(one)):
        flat[min(max(outcome + center, lower), lower + width) - lower] += chance
    least = math.lcm(*(chance.denominator for chance in flat))
    listed = Shifted(Choice([int(chance * least) for chance in flat]), lower)
    assert compare(law, listed).epsilon().upper <= 1e-12
    assert compare(law, listed).delta(0).upper <= 1e-12


def test_quantile_nodes_on_a_fine_grid_agree_with_the_points_that_matter():
    grid = Grid.of_step(0, 2**32 - 1, 1)
    laws = [
        quantile_node(Ranks(np.array(v, float), grid), F(1, 2), F(1, 2)) for v in ((5, 900, 901), (5, 7, 901))
    ]
    points = [0, 4, 5, 6, 7, 8, 899, 900, 901, 902, 2**31]
    true = max(abs(laws[0].logpmf(point) - laws[1].logpmf(point)) for point in points)
    assert compare(*laws).epsilon().upper == pytest.approx(true, rel=1e-12)


# --- scans, selections and transcripts -----------------------------------------------------------------


def test_first_crossings_are_compared_outcome_by_outcome():
    noise = DiscreteLaplace(F(2))
    left, right = (FirstCrossing(np.array(v), 3, noise, noise) for v in ((0, 2, 5), (1, 3, 4)))
    logs = [law.logpmf(np.arange(4)) for law in (left, right)]
    found = compare(left, right)
    assert found.epsilon().upper == pytest.approx(np.abs(logs[0] - logs[1]).max(), rel=1e-12)
    assert found.worst_outcome == np.abs(logs[0] - logs[1]).argmax()
    fewer = FirstCrossing(np.array([0, 2]), 3, noise, noise)
    assert compare(left, fewer).epsilon().lower == math.inf


@pytest.mark.parametrize("variant", ["flip", "exponential"])
def test_selections_and_several_picks_are_listed(variant):
    kind = {"sensitivity": 1, "epsilon": 1, "variant": variant}
    one, other = [3, 5, 4, 0], [4, 4, 3, 1]
    single = compare(*(ExponentialMechanism(**kind).law(scores) for scores in (one, other)))
    assert 0 < single.epsilon().upper <= 1 + 1e-9
    several = TopMechanism(picks=2, **kind)
    laws = [several.law(scores) for scores in (one, other)]
    found = compare(*laws)
    outcomes = list(itertools.permutations(range(4), 2))
    true = max(abs(laws[0].logpmf(o) - laws[1].logpmf(o)) for o in outcomes)
    assert found.epsilon().upper == pytest.approx(true, rel=1e-12)
    assert found.worst_outcome in outcomes


def test_transcripts_are_compared_pattern_by_pattern_and_numbers_add_their_noise():
    plain = SparseMechanism.calibrated(1, sensitivity=1, crossings=2)
    told = SparseMechanism.calibrated(1, sensitivity=1, crossings=2, answers=F(1, 2))
    values, moved = (-3, 5, 4), (-2, 4, 5)
    found = compare(plain.law(values, 0), plain.law(moved, 0))
    patterns = list(plain.law(values, 0).patterns())
    logs = [[plain.law(v, 0).logpmf(p) for p in patterns] for v in (values, moved)]
    assert found.epsilon().upper == pytest.approx(np.abs(np.subtract(*logs)).max(), rel=1e-12)
    laws = [told.law(v, 0) for v in (values, moved)]
    numbers = compare(*laws)
    # Numbers far beyond the values: all of their loss.
    far = max(
        abs(laws[0].logpmf(o) - laws[1].logpmf(o))
        for pattern in patterns
        for signs in itertools.product((-60, 60), repeat=pattern.count("above"))
        for o in [tuple(next(it) if a == "above" else a for a in pattern) for it in [iter(signs)]]
    )
    assert numbers.epsilon().upper == pytest.approx(far, rel=1e-9)
    assert numbers.epsilon().upper <= told.cost


# --- chains ------------------------------------------------------------------------------------------


def chain(values, points, gaps, c):
    ranks = Ranks(np.array(values, float), Grid.of_step(0, points - 1, 1))
    return JointLaw(Chain(ranks, [gap * len(values) for gap in gaps], c), ranks)


@pytest.mark.parametrize("seed", range(6))
def test_the_worst_tuple_of_two_chains_is_that_of_all_tuples(seed, monkeypatch):
    choose = np.random.default_rng(seed)
    points, size = 12, 5
    left = np.sort(choose.integers(0, points, size))
    right = np.sort(np.append(left[:-1], choose.integers(0, points))) if seed % 2 else np.append(left, 3)
    gaps = [F(1, 4), F(1, 4), F(1, 2)] if seed < 4 else [F(1, 10), F(3, 10), F(3, 10), F(3, 10)]
    laws = [chain(values, points, gaps, F(2, 3)) for values in (left, right)]
    listed = compare(*laws)
    monkeypatch.setattr(sys.modules["sfumato.audit.compare"], "MOST_OUTCOMES", 1)
    merged = compare(*laws)
    assert merged.epsilon().exact
    assert merged.epsilon().upper == pytest.approx(listed.epsilon().upper, rel=1e-9)
    for part, true in ((merged.parts[0].ratios, listed.parts[0].ratios),):
        assert part.up == pytest.approx(true.up, rel=1e-9, abs=1e-9)
        assert part.down == pytest.approx(true.down, rel=1e-9, abs=1e-9)
    # What is known besides holds the truth between.
    for epsilon in (0, 0.2, 0.5):
        low, high = merged.delta(epsilon)
        assert low <= listed.delta(epsilon).lower + 1e-9
        assert high >= listed.delta(epsilon).upper - 1e-9
    assert merged.rho().lower <= listed.rho().upper
    assert merged.rho().upper >= listed.rho().lower


def test_chains_on_the_finest_grid_are_compared_exactly():
    points = 2**32
    left = np.sort(np.linspace(10, 2**31, 30).astype(int))
    right = np.sort(np.append(left[1:], 2**31 + 5))
    gaps = [F(1, 10)] * 10
    laws = [chain(values, points, gaps, F(1, 4)) for values in (left, right)]
    assert laws[0].count > MOST_OUTCOMES
    found = compare(*laws)
    worst = found.worst_outcome
    assert found.epsilon().exact
    assert 0 < found.epsilon().upper <= 1 + 1e-9
    assert abs(laws[0].logpmf(worst) - laws[1].logpmf(worst)) == pytest.approx(
        found.epsilon().upper, rel=1e-12
    )
    # No tuple of points that were picked at random loses more.
    choose = np.random.default_rng(1)
    for _ in range(200):
        some = tuple(sorted(choose.choice([*left, *right, *(left + 1), points - 1, 0], 9).tolist()))
        assert abs(laws[0].logpmf(some) - laws[1].logpmf(some)) <= found.epsilon().upper + 1e-9


def test_above_threshold_scans_of_two_queries_are_listed():
    mechanism = AboveThreshold.general(1, 1, one_sided=False)
    laws = [mechanism.law(np.array(values), 0) for values in ([1, 1, 0], [0, 0, 1])]
    assert compare(*laws).epsilon().upper <= 1 + 1e-9
