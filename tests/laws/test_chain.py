"""The law of many quantiles at once: enumerated, bounded, and drawn."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2
from tests.laws.fit import FALSE_ALARM

from sfumato.errors import InvalidParameter
from sfumato.laws import chain as module
from sfumato.laws.bits import SeededBits
from sfumato.laws.chain import Chain, Windows, slack, windows
from sfumato.laws.chain_steps import Rate, choose, range_sums, wide

mpmath.mp.prec = 300


class Records:
    """Sorted positions in memory; counts how many times they are read."""

    def __init__(self, positions, points):
        self._positions = np.sort(np.array(positions, dtype=np.int64))
        self.size, self.points = len(self._positions), points

    def at(self, ranks):
        assert np.all((ranks >= 1) & (ranks <= self.size))
        return self._positions[ranks - 1]

    def below(self, point):
        return int(np.searchsorted(self._positions, point))


def gaps_of(size, *probs):
    return [(Fraction(b) - Fraction(a)) * size for a, b in pairwise([0, *probs, 1])]


def exact(c, deviation):
    return mpmath.exp(-mpmath.mpf((c * deviation).numerator) / (c * deviation).denominator)


def deviation(order, gaps, outcome):
    edges = [0, *(order.below(point) for point in outcome), order.size]
    return sum((abs(b - a - gap) for (a, b), gap in zip(pairwise(edges), gaps, strict=True)), Fraction(0))


def enumerated(order, gaps, c):
    """The law by its definition: every non-decreasing tuple once."""
    weights = {
        outcome: exact(c, deviation(order, gaps, outcome))
        for outcome in combinations_with_replacement(range(order.points), len(gaps) - 1)
    }
    total = mpmath.fsum(weights.values())
    return {outcome: weight / total for outcome, weight in weights.items()}


THIRDS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
CASES = {
    "spread": ([1, 3, 4, 8], 10, THIRDS, Fraction(1, 2)),
    "steep": ([1, 3, 4, 8], 10, THIRDS, Fraction(50)),
    "ties": ([2, 2, 2, 5, 5, 9], 10, THIRDS, Fraction(1, 3)),
    "one point": ([4] * 7, 9, THIRDS, Fraction(1, 4)),
    "ends": ([0, 0, 0, 7, 7, 7], 8, THIRDS, Fraction(1, 4)),
    "no records": ([], 6, THIRDS, Fraction(1)),
    "one record": ([3], 6, THIRDS, Fraction(1)),
    "one place": ([0, 0], 1, THIRDS, Fraction(1)),
    "median": ([1, 1, 4, 5, 6], 12, (Fraction(1, 2),), Fraction(2, 3)),
    "close": ([1, 2, 6, 6, 7, 9], 10, (Fraction(49, 100), Fraction(1, 2), Fraction(51, 100)), Fraction(1)),
    "extreme": ([1, 2, 6, 6, 7], 8, (0, Fraction(1, 3), 1), Fraction(1, 5)),
    "five": ([0, 3, 3, 4], 6, tuple(Fraction(k, 6) for k in range(1, 6)), Fraction(3, 7)),
}
WINDOWS = [Windows(0), Windows(1), Windows(0, (1, 3)), Windows(1, (3,)), None]


def case(name, **options):
    positions, points, probs, c = CASES[name]
    order = Records(positions, points)
    gaps = gaps_of(order.size, *probs)
    return order, gaps, c, Chain(order, gaps, c, **options)


@pytest.mark.parametrize("name", CASES)
def test_every_probability_is_the_enumerated_one(name):
    order, gaps, c, law = case(name)
    for outcome, probability in enumerated(order, gaps, c).items():
        ratio = mpmath.exp(mpmath.mpf(law.logpmf(outcome))) / probability
        assert abs(ratio - 1) < 1e-12 * max(1, -mpmath.log(probability) / 100)


def test_outcomes_that_decrease_or_lie_outside_have_no_probability():
    *_, law = case("spread")
    assert law.logpmf((3, 2, 5)) == law.logpmf((-1, 2, 5)) == law.logpmf((1, 2, 10)) == -math.inf
    with pytest.raises(InvalidParameter):
        law.logpmf((1, 2))


def path_of(law, outcome):
    """The states that the proposal must pass to draw a tuple, or None."""
    states = []
    before = 0
    grid = law._grid
    for number, (link, point) in enumerate(zip(law._forward().links, outcome, strict=False)):
        passage = link.passage
        # Blocks without points have the same position on both sides.
        state = int(np.searchsorted(grid.block, np.searchsorted(law._positions[number], point) - 1))
        if passage.back[state] == before and number > 0:
            possible = outcome[number - 1] <= point
        else:
            possible = before < passage.end[state]
            if grid.coarse[state]:
                state += int(before >= passage.left[state]) + int(before >= passage.right[state])
            first, last = passage.sources(state)
            assert first <= before < last or not possible
        if not possible:
            return None
        states.append(state)
        before = state
    return states


def paths(law):
    """Every tuple that the proposal can draw, with its states."""
    for outcome in product(range(law._order.points), repeat=law.orders):
        states = path_of(law, outcome)
        if states is not None:
            yield outcome, states


def ordered(outcome):
    return all(a <= b for a, b in pairwise(outcome))


@pytest.mark.parametrize("span", WINDOWS)
@pytest.mark.parametrize("name", CASES)
def test_the_bound_covers_every_tuple_and_its_total_is_the_sum_over_paths(name, span):
    order, gaps, c, law = case(name, _windows=span)
    bounds = {outcome: exact(c, law._bound(states)) for outcome, states in paths(law)}
    for outcome in combinations_with_replacement(range(order.points), law.orders):
        assert bounds[outcome] >= exact(c, deviation(order, gaps, outcome))
    total = law._forward().total
    stated = mpmath.mpf(float(total.mantissa[0])) * mpmath.mpf(2) ** int(total.exponent[0])
    assert abs(stated / mpmath.fsum(bounds.values()) - 1) < 1e-13


@pytest.mark.parametrize("span", WINDOWS)
@pytest.mark.parametrize("name", CASES)
def test_the_proposal_times_its_acceptance_is_the_enumerated_law(name, span):
    order, gaps, c, law = case(name, _windows=span)
    kept = {}
    for outcome, states in paths(law):
        proposal = probability_of_path(law, states, outcome)
        if ordered(outcome):
            excess = law._deviation(law._ranks(states, list(outcome))) - law._bound(states)
            assert excess >= 0
            kept[outcome] = proposal * exact(c, excess)
    total = mpmath.fsum(kept.values())
    for outcome, probability in enumerated(order, gaps, c).items():
        assert abs(kept[outcome] / total / probability - 1) < 1e-13


def shares(weights):
    values = [
        mpmath.mpf(float(m)) * mpmath.mpf(2) ** int(e) if m else mpmath.mpf(0)
        for m, e in zip(weights.mantissa, weights.exponent, strict=True)
    ]
    total = mpmath.fsum(values)
    return [value / total for value in values]


def probability_of_path(law, states, outcome):
    """The probability with which `_propose` draws a tuple: the product of its draws, last order first."""
    sweep = law._forward()
    probability, number, block = mpmath.mpf(1), law.orders, 0
    while True:
        start, source = sweep.links[number].pull(block)
        if number == 0:
            return probability * shares(source)[0]
        block = states[number - 1]
        probability *= shares(source)[block - start]
        length, first = 1, number
        while first > 1 and sweep.links[first - 1].passage.back[states[first - 1]] >= 0:
            if sweep.links[first - 1].passage.back[states[first - 1]] != states[first - 2]:
                break
            first, length = first - 1, length + 1
        probability *= shares(sweep.runs(number, block))[length - 1]
        _, points = law._stretch(number, block)
        probability /= math.comb(points + length - 1, length)
        number, block = first - 1, states[first - 1]


def p_value(draws, law):
    """Pearson's test over tuples, the rare ones together."""
    counts = Counter(draws)
    assert set(counts) <= set(law)
    expected = {outcome: float(p) * len(draws) for outcome, p in law.items()}
    often = [outcome for outcome in law if expected[outcome] >= 10]
    rest = len(draws) - sum(expected[o] for o in often), len(draws) - sum(counts[o] for o in often)
    pairs = [(expected[o], counts[o]) for o in often] + ([rest] if rest[0] >= 5 else [])
    if len(pairs) < 2:
        return 1.0
    return float(chi2.sf(sum((o - e) ** 2 / e for e, o in pairs), len(pairs) - 1))


@pytest.mark.parametrize("span", [Windows(0), Windows(0, (1, 3)), None])
@pytest.mark.parametrize("name", [name for name in CASES if name != "steep"])
def test_draws_fit_the_enumerated_law(name, span):
    order, gaps, c, law = case(name, _windows=span, _learns=False)
    bits = SeededBits(1)
    draws = [law.sample(bits) for _ in range(3000)]
    assert p_value(draws, enumerated(order, gaps, c)) > FALSE_ALARM


@pytest.mark.parametrize("name", ["spread", "ties", "ends"])
def test_draws_that_learn_from_rejections_fit_too(name):
    positions, points, probs, c = CASES[name]
    order = Records(positions, points)
    gaps = gaps_of(order.size, *probs)
    bits = SeededBits(2)
    draws = [Chain(order, gaps, c, _windows=Windows(0)).sample(bits) for _ in range(1000)]
    assert p_value(draws, enumerated(order, gaps, c)) > FALSE_ALARM


def biased_multiset(number, length, bits):
    return sorted(bits.below(number) for _ in range(length))


def test_a_multiset_drawn_point_by_point_is_noticed(monkeypatch):
    monkeypatch.setattr(module, "_multiset", biased_multiset)
    order, gaps, c, law = case("no records")
    bits = SeededBits(3)
    assert p_value([law.sample(bits) for _ in range(20000)], enumerated(order, gaps, c)) < FALSE_ALARM


def test_runs_of_at_most_one_are_noticed(monkeypatch):
    true = module._extended
    monkeypatch.setattr(module, "_extended", lambda *parts: module.Runs(*[true(*parts).fresh] * 2))
    order, gaps, c, law = case("close")
    bits = SeededBits(4)
    assert p_value([law.sample(bits) for _ in range(4000)], enumerated(order, gaps, c)) < FALSE_ALARM


def test_a_retry_of_the_point_alone_is_noticed():
    order, gaps, c, law = case("ties", _windows=Windows(0), _learns=False)
    bits = SeededBits(5)

    def broken():
        states, points = law._propose(bits)
        while not law._accepts(states, points, bits):
            for place, state in enumerate(states):
                if law._grid.coarse[state]:
                    start, number = law._stretch(place + 1, state)
                    points[place] = start + bits.below(number)
            if not any(a <= b for a, b in pairwise(points)):
                states, points = law._propose(bits)
        return tuple(points)

    assert p_value([broken() for _ in range(4000)], enumerated(order, gaps, c)) < FALSE_ALARM


def test_one_order_is_the_exponential_mechanism_on_the_rank():
    order = Records([2, 5, 5, 6, 11], 14)
    c, prob = Fraction(2, 5), Fraction(3, 10)
    law = Chain(order, gaps_of(5, prob), c)
    weights = [math.exp(-2 * c * abs(order.below(point) - prob * 5)) for point in range(14)]
    for point, weight in enumerate(weights):
        assert math.exp(law.logpmf((point,))) == pytest.approx(weight / math.fsum(weights), rel=1e-13)


def test_a_long_run_in_a_huge_piece_neither_overflows_nor_vanishes():
    # All records at one point in the middle of 2^56: forty orders on either side of it.
    order = Records([2**55] * 40, 2**56)
    law = Chain(order, [Fraction(40, 41)] * 41, Fraction(1, 8))
    draw = law.sample(SeededBits(6))
    assert len(draw) == 40
    assert ordered(draw)
    left = 2**55 + 1
    weights = [
        mpmath.binomial(left + k - 1, k)
        * mpmath.binomial(2**56 - left + 39 - k, 40 - k)
        * exact(Fraction(1, 8), deviation(order, law._gaps, [0] * k + [2**56 - 1] * (40 - k)))
        for k in range(41)
    ]
    for k in (0, 7, 20, 40):
        outcome = [5] * k + [2**56 - 9] * (40 - k)
        stated = exact(Fraction(1, 8), deviation(order, law._gaps, outcome)) / mpmath.fsum(weights)
        assert abs(mpmath.exp(mpmath.mpf(law.logpmf(outcome))) / stated - 1) < 1e-12


def test_large_lazy_laws_read_little_and_draw_near_the_targets():
    rng = np.random.default_rng(1)
    order = Records(rng.integers(0, 2**56, 200_000), 2**56)
    law = Chain(order, [Fraction(20_000)] * 10, Fraction(1, 4))
    draw = law.sample(SeededBits(7))
    assert [order.below(point) for point in draw] == pytest.approx(range(20_000, 200_000, 20_000), abs=100)
    assert len(law._grid) < 2000


@pytest.mark.parametrize("kind", ["zeros", "five values", "one value", "two clusters"])
def test_ties_and_clusters_do_not_stall_the_draw(kind):
    rng = np.random.default_rng(2)
    positions = {
        "zeros": np.where(rng.random(50_000) < 0.6, 0, rng.integers(0, 2**56, 50_000)),
        "five values": rng.integers(0, 5, 50_000) << 50,
        "one value": np.full(50_000, 12345),
        "two clusters": (rng.integers(0, 2, 50_000) << 54) + rng.integers(0, 100, 50_000),
    }[kind]
    order = Records(positions, 2**56)
    law = Chain(order, [Fraction(5_000)] * 10, Fraction(1, 4))
    tries = 0
    refine = law._refine

    def counted(states, points):
        nonlocal tries
        tries += 1
        refine(states, points)

    law._refine = counted
    for _ in range(3):
        assert ordered(law.sample(SeededBits(8)))
    assert tries < 60


def test_decays_are_right_to_a_few_units_at_any_distance():
    ranks = np.array([-(10**8), -12345, -1, 0, 1, 2, 77, 10**5, 10**8 + 1])
    for c in (Fraction(1, 4), Fraction(1, 40), Fraction(63), Fraction(1, 10**6), Fraction(22, 7)):
        for centre in (Fraction(0), Fraction(10, 3), -Fraction(200, 7)):
            found = Rate(c).decay(ranks, centre)
            for rank, mantissa, exponent in zip(ranks, *found, strict=True):
                power = c * (int(rank) - centre)
                true = mpmath.exp(-mpmath.mpf(power.numerator) / power.denominator)
                stated = mpmath.mpf(float(mantissa)) * mpmath.mpf(2) ** int(exponent)
                assert abs(stated / true - 1) < 16 * 2.0**-53


@pytest.mark.parametrize("range_of_exponents", [1, 3000])
@pytest.mark.parametrize("count", [1, 7, 300, 2000])
def test_sums_over_ranges_lose_nothing(count, range_of_exponents):
    rng = np.random.default_rng(count)
    values = wide(rng.random(count) + 0.1, 5 + rng.integers(0, range_of_exponents, count))
    numbers = [int(m * 2**60) << int(e) for m, e in zip(*values, strict=True)]
    sums = np.concatenate([[0], np.cumsum(np.array(numbers, dtype=object))])
    ends = np.sort(rng.integers(0, count + 1, 50))
    some = np.minimum(np.sort(rng.integers(0, count + 1, 50)), ends)
    full = np.full(50, count)
    for first, last in [(some, ends), (np.zeros_like(ends), ends), (some, full)]:
        found = range_sums(values, first, last)
        for a, b, mantissa, exponent in zip(first, last, *found, strict=True):
            wanted = sums[b] - sums[a]
            stated = mpmath.mpf(float(mantissa)) * mpmath.mpf(2) ** (int(exponent) + 60) if mantissa else 0
            assert abs(stated - wanted) <= mpmath.mpf(wanted) * 1e-13


def test_choices_follow_weights_of_any_magnitude():
    weights = wide(np.array([1.0, 3.0, 0.0, 1.0]), np.array([-5000, 0, 0, 0]))
    bits = SeededBits(9)
    counts = Counter(choose(weights, bits) for _ in range(4000))
    assert set(counts) == {1, 3}
    assert abs(counts[1] - 3000) < 200

    class Zeros(SeededBits):
        def words(self, count):
            return np.zeros(count, dtype=np.uint64)

    # A weight of 2^-5000 is not lost: it owns the reals that begin with five thousand zeros.
    assert choose(weights, Zeros(0)) == 0


def test_windows_and_slack_are_public_and_small():
    assert windows(Fraction(1, 4), 2**56, 9).cuts[-1] == 723
    assert slack(9) < slack(99) < Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("gaps", "c"),
    [
        ([Fraction(4)], Fraction(1)),
        ([Fraction(5), Fraction(-1)], Fraction(1)),
        ([Fraction(1), Fraction(2)], Fraction(1)),
        ([Fraction(2), Fraction(2)], Fraction(0)),
        ([Fraction(2), Fraction(2)], Fraction(65)),
    ],
)
def test_parameters_out_of_range_are_refused(gaps, c):
    with pytest.raises(InvalidParameter):
        Chain(Records([1, 2, 3, 4], 9), gaps, c)
