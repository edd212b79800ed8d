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
from sfumato.laws import chain_steps, chain_sweep
from sfumato.laws.bits import SeededBits
from sfumato.laws.chain import Chain, Windows, slack, windows
from sfumato.laws.wide import aligned

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
    blocks = law._blocks
    for number, (link, point) in enumerate(zip(law._forward().links, outcome, strict=False)):
        passage = link.passage
        # Blocks without points have the same position on both sides.
        state = int(np.searchsorted(blocks.block, np.searchsorted(law._positions[number], point) - 1))
        if passage.back[state] == before and number > 0:
            possible = outcome[number - 1] <= point
        else:
            possible = before < passage.end[state]
            if blocks.coarse[state]:
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


@pytest.mark.slow
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
    monkeypatch.setattr(module, "multiset", biased_multiset)
    order, gaps, c, law = case("no records")
    bits = SeededBits(3)
    assert p_value([law.sample(bits) for _ in range(20000)], enumerated(order, gaps, c)) < FALSE_ALARM


def test_runs_of_at_most_one_are_noticed(monkeypatch):
    true = chain_sweep._extended
    monkeypatch.setattr(chain_sweep, "_extended", lambda *parts: chain_sweep.Runs(*[true(*parts).fresh] * 2))
    monkeypatch.setattr(chain_sweep.Sweep, "run", lambda *_: 1)
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
                if law._blocks.coarse[state]:
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
    assert len(law._blocks) < 2000


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


def test_runs_found_again_add_up_to_the_weights_that_were_summed():
    order = Records(np.random.default_rng(6).integers(0, 2**56, 60), 2**56)
    sweep = Chain(order, gaps_of(60, *(Fraction(k, 21) for k in range(1, 21))), Fraction(1, 4))._forward()
    longest = 0
    for number, link in enumerate(sweep.links[1:], start=1):
        for state in np.flatnonzero(link.mass.mantissa).tolist():
            runs = sweep.runs(number, state)
            longest = max(longest, len(runs.mantissa))
            top = int(runs.exponent.max())
            wanted = math.ldexp(link.mass.mantissa[state], int(link.mass.exponent[state]) - top)
            assert math.fsum(aligned(runs, top)) == pytest.approx(wanted, rel=1e-14)
    assert longest == 20


def test_draws_do_not_depend_on_what_is_kept(monkeypatch):
    rng = np.random.default_rng(4)
    order = Records(rng.integers(0, 2**56, 3001), 2**56)
    gaps = gaps_of(3001, *(Fraction(k, 10) for k in range(1, 10)))
    kept = [Chain(order, gaps, Fraction(1, 4)).sample(SeededBits(seed)) for seed in range(5)]
    monkeypatch.setattr(chain_steps, "_MOST_KEPT", 0)
    monkeypatch.setattr(module, "_WIDEST_KEPT", 0)
    assert kept == [Chain(order, gaps, Fraction(1, 4)).sample(SeededBits(seed)) for seed in range(5)]


def test_few_records_are_all_read_and_nothing_is_rejected():
    assert windows(Fraction(1, 4), 2**56, 99, 1000) == Windows(1000)
    order = Records(np.random.default_rng(5).integers(0, 2**56, 400), 2**56)
    law = Chain(order, [Fraction(10)] * 40, Fraction(1, 4))
    law._refine = None
    assert all(ordered(law.sample(SeededBits(seed))) for seed in range(5))


@pytest.mark.parametrize("size", [0, 1, 1000, 3000, 30_000])
def test_a_tiny_rate_reads_no_more_ranks_than_there_are(size):
    order = Records(np.arange(size), 2**56)
    law = Chain(order, [Fraction(size, 3)] * 3, Fraction(1, 10**12))
    for around in (law._windows, law._full, windows(Fraction(1, 10**12), 2**56, 2, size)):
        # An offset is a rank up to size + 1 less the floor of a target up to size.
        assert around == Windows(size)
    assert ordered(law.sample(SeededBits(11)))
    assert len(law._blocks) <= 2 * size + 8


def test_windows_lose_only_what_is_beyond_the_records():
    wider, size = Windows(2, (5, 7, 8, 20)), 7
    offsets = wider.offsets()
    kept = offsets[(offsets >= -size) & (offsets <= size + 1)]
    assert np.array_equal(wider.within(size).offsets(), kept)
    assert np.array_equal(Windows(20, (30,)).within(size).offsets(), np.arange(-size, size + 2))


class Even:
    """Very many records, not in memory."""

    points = 2**60

    def __init__(self, size):
        self.size = size

    def at(self, ranks):
        return ranks << 20

    def below(self, point):
        return min(-(-point >> 20) - 1, self.size)


def test_there_may_be_more_records_than_fit_into_memory():
    size = 2**40 - 1
    draw = Chain(Even(size), gaps_of(size, *THIRDS), Fraction(1, 4)).sample(SeededBits(10))
    assert [Even(size).below(point) for point in draw] == pytest.approx([size * p for p in THIRDS], abs=100)
    with pytest.raises(InvalidParameter, match="records"):
        Chain(Even(size + 1), gaps_of(size + 1, *THIRDS), Fraction(1, 4))


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


def test_the_slack_is_the_number_of_roundings_that_the_proof_counts():
    assert slack(1) == Fraction(32 * 2 * 2401, 2**53)
    assert slack(9) == Fraction(32 * 10 * 2409, 2**53)


@pytest.mark.parametrize("c", [Fraction(1, 100), Fraction(1, 4), Fraction(3)], ids=str)
@pytest.mark.parametrize(("points", "orders"), [(2, 1), (1000, 9), (2**56, 9), (2**56, 99)])
def test_windows_reach_as_far_as_points_and_orders_ask_for(c, points, orders):
    rate = float(c)
    found = windows(c, points, orders)
    near = max(math.log(points) + 12, 2 * orders * math.log1p(4 * rate)) / (2 * rate)
    assert found.near == math.ceil(near)
    last = math.ceil((orders * math.log(points) + 12) / (2 * rate))
    assert all(a < b for a, b in pairwise([found.near, *found.cuts])) or last <= found.near
    assert (found.cuts[-1] if found.cuts else found.near) >= last
    assert not found.cuts or found.cuts[-1] == last
    # Each block is as wide as it may be: by its distance, at most double, and one more for rounding down.
    for before, after in pairwise([found.near, *found.cuts[:-1]]):
        width = math.expm1(min(rate * before / orders, 40.0)) / rate
        assert after - before == int(min(width, before)) + 1
    # With a number of records nothing is further away than there are, and less is paid for.
    for size in (1, 50, 10**5):
        fewer = windows(c, points, orders, size)
        if size <= min(2000, 4 * found.near):
            assert fewer == Windows(size)
            continue
        paid = min(orders * math.log(points), math.log(points) + orders * (math.log(size + 1) + 6))
        assert fewer.near == min(found.near, size)
        reach = math.ceil((paid + 12) / (2 * rate))
        assert all(cut <= min(size, max(reach, found.near)) for cut in fewer.cuts)
        assert reach > size or (fewer.cuts[-1] if fewer.cuts else found.near) >= reach


def test_offsets_of_a_window_are_the_near_ranks_and_both_sides_of_every_cut():
    assert Windows(2, (5, 9)).offsets().tolist() == [-9, -5, -2, -1, 0, 1, 2, 3, 6, 10]
    assert Windows(0).offsets().tolist() == [0, 1]
    assert Windows(4, (5, 9)).within(5) == Windows(4, (5,))
    assert Windows(4, (5, 9)).within(3) == Windows(3)


def test_both_ends_of_a_tie_around_a_target_are_read():
    positions = [*range(50), *[60] * 400, *range(70, 120)]
    law = Chain(Records(positions, 200), gaps_of(500, Fraction(1, 2)), Fraction(1), _windows=Windows(10))
    # The target is rank 250: the tie begins after 50 records and ends with 450.
    assert law._centres == {0, 50 - 250, 450 - 250}
    free = Chain(Records(range(500), 600), gaps_of(500, Fraction(1, 2)), Fraction(1), _windows=Windows(10))
    assert free._centres == {0}
    # Where all records are read there is nothing to find.
    few = Chain(Records([3, 3, 3], 9), gaps_of(3, Fraction(1, 2)), Fraction(1))
    assert few._centres == {0}
    positions, gaps, rate = few.misfits()
    assert (positions.tolist(), gaps, rate) == ([3, 3, 3], (Fraction(3, 2),) * 2, 1)


def test_rates_points_and_lengths_of_tuples_have_their_limits():
    order, gaps = Records([1, 2, 3, 4], 9), gaps_of(4, Fraction(1, 2))
    assert Chain(order, gaps, Fraction(64)).orders == 1
    for c, text in (
        (Fraction(65), "65"),
        (64 + Fraction(1, 8), "64.125"),
        (Fraction(0), "0"),
        (Fraction(-1), "-1"),
    ):
        with pytest.raises(InvalidParameter, match=rf"^c must be positive and at most 64, got c={text}"):
            Chain(order, gaps, c)
    for points in (1, 2**62):
        assert Chain(Records([0], points), gaps_of(1, Fraction(1, 2)), Fraction(1)).sample(SeededBits(1))
    for points in (0, 2**62 + 1):
        with pytest.raises(InvalidParameter, match=r"^order must have 1 to 2\^62 points"):
            Chain(Records([0], points), gaps_of(1, Fraction(1, 2)), Fraction(1))
    law = Chain(order, gaps_of(4, Fraction(1, 4), Fraction(1, 2)), Fraction(1))
    for wrong in ((1,), (1, 2, 3), ()):
        with pytest.raises(InvalidParameter, match=rf"^a tuple must have 2 points, got {len(wrong)}$"):
            law.logpmf(wrong)
    with pytest.raises(InvalidParameter, match=r"^gaps must be two or more non-negative numbers"):
        Chain(order, [Fraction(4)], Fraction(1))
    empty = Chain(Records([], 5), [Fraction(0), Fraction(0)], Fraction(1))
    assert math.exp(empty.logpmf((0,))) == pytest.approx(1 / 5)
    assert math.exp(empty.logpmf((4,))) == pytest.approx(1 / 5)
    assert empty.logpmf((5,)) == empty.logpmf((-1,)) == -math.inf
