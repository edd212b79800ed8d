"""Privacy-loss distributions: never below the exact composition over every outcome, and close to it."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from tests.privacy import oracle

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import BoundedNoise, DiscreteGaussian
from sfumato.privacy import pld
from sfumato.privacy.composition import compose
from sfumato.privacy.conversions import zcdp_epsilon
from sfumato.privacy.events import (
    BoundedNoiseEvent,
    ComposedEvent,
    ConcentratedEvent,
    FreeEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
)
from sfumato.privacy.gaussian import gaussian_delta
from sfumato.privacy.pld import pld_delta, pld_epsilon

SMALL = [
    LaplaceEvent(1, 2),
    LaplaceEvent(3, 4),
    LaplaceEvent(2, Fraction(1, 3)),
    GaussianEvent(1, 2, 1),
    GaussianEvent(4, Fraction(1, 2), 1),
    GaussianEvent(9, 16, 1),
    PureEvent(0.4, "x"),
    PureEvent(3, "x"),
]


def pair_of(event):
    """The dominating pair from its definition."""
    if isinstance(event, LaplaceEvent):
        law = oracle.laplace_law(event.scale, reach=int(60 * event.scale) + 20)
        # Where the table of one law ends the other has no partner; those e^-60 would look like infinite loss.
        return [(p, q) for p, q in oracle.shifted_pair(law, event.sensitivity) if p > 0 and q > 0]
    if isinstance(event, GaussianEvent):
        law = oracle.gaussian_law(event.sigma_squared, reach=int(14 * math.sqrt(event.sigma_squared)) + 12)
        return oracle.shifted_pair(law, math.isqrt(int(event.sensitivity_squared)))
    common = 1 / (1 + mp.exp(-oracle.real(event.epsilon)))
    return [(common, 1 - common), (1 - common, common)]


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(30):
        yield


@pytest.mark.parametrize("event", SMALL, ids=repr)
@pytest.mark.parametrize("epsilon", [0, 0.1, 0.37, 1, 2.5])
def test_one_event_is_covered_closely(event, epsilon):
    exact = oracle.hockey_stick(pair_of(event), epsilon)
    found = pld_delta([event], epsilon)
    assert exact <= found <= exact * (1 + mp.mpf(10) ** -3) + mp.mpf(10) ** -7


@pytest.mark.parametrize("times", [2, 3, 5])
@pytest.mark.parametrize("event", SMALL, ids=repr)
def test_repeated_events_are_covered_closely(event, times):
    composed = oracle.compose_losses(*[oracle.losses(pair_of(event))] * times)
    rho = float(event.rho) * times
    for epsilon in (0, 0.3, rho, rho + 2 * math.sqrt(2 * rho)):
        exact = oracle.delta_of_losses(composed, epsilon)
        found = pld_delta([event] * times, epsilon)
        assert exact <= found <= exact * (1 + mp.mpf(3) / 1000) + mp.mpf(10) ** -6


@pytest.mark.parametrize(
    "batch",
    [
        [LaplaceEvent(1, 2), GaussianEvent(1, 2, 1)],
        [LaplaceEvent(3, 4), PureEvent(0.4, "x"), PureEvent(0.15, "y")],
        [GaussianEvent(9, 16, 1), LaplaceEvent(1, 50), PureEvent(0.01, "x")],
    ],
    ids=repr,
)
def test_different_events_are_covered_closely(batch):
    composed = oracle.compose_losses(*(oracle.losses(pair_of(event)) for event in batch))
    for epsilon in (0, 0.2, 1, 1.7):
        exact = oracle.delta_of_losses(composed, epsilon)
        found = pld_delta(batch, epsilon)
        assert exact <= found <= exact * (1 + mp.mpf(5) / 1000) + mp.mpf(10) ** -6


@pytest.mark.parametrize("event", SMALL, ids=repr)
def test_epsilon_is_proved_and_close(event):
    times, delta = 3, 1e-4
    composed = oracle.compose_losses(*[oracle.losses(pair_of(event))] * times)
    found = pld_epsilon([event] * times, delta)
    for reading in (Fraction(found), Fraction(str(found))):
        assert oracle.delta_of_losses(composed, reading) <= oracle.real(delta)
    assert oracle.delta_of_losses(composed, Fraction(found) * Fraction(997, 1000)) > oracle.real(delta)


def test_blocks_of_outcomes_agree_with_single_outcomes(monkeypatch):
    batch = [LaplaceEvent(3000, 2000), GaussianEvent(300**2, 500**2, 1)]
    single = [pld_delta(batch, epsilon) for epsilon in (0, 0.5, 1.5, 3)]
    monkeypatch.setattr(pld, "_MOST_SINGLES", 0)
    first, last = pld._edges(-8500, 8500, 4000)
    assert (last > first).any()
    blocks = [pld_delta(batch, epsilon) for epsilon in (0, 0.5, 1.5, 3)]
    for one, other in zip(single, blocks, strict=True):
        assert one * (1 - 1e-7) <= other <= one * (1 + 1e-4)


def test_blocks_cover_their_range_without_gap_or_overlap():
    for start, stop, wanted in ((-(2**40), 2**40, 1000), (1, 2**55, 333), (5, 4, 10), (0, 2**17, 2**20)):
        first, last = pld._edges(start, stop, wanted)
        assert (first[1:] == last[:-1] + 1).all()
        assert (first <= last).all()
        if stop >= start:
            assert (first[0], last[-1]) == (start, stop)


@pytest.mark.parametrize("shift", [2**20, 2**40, 2**50])
def test_large_scales_give_the_exact_curve(shift):
    event = GaussianEvent(shift**2, 16 * shift**2, 1)
    for epsilon in (0.1, 1, 2):
        exact = gaussian_delta(epsilon, event.sigma_squared, shift)
        assert exact * (1 - 1e-8) <= pld_delta([event], epsilon) <= exact * (1 + 1e-3)
    # Discrete Laplace on a fine lattice: delta(e) = 1 - exp((e - eps0) / 2), nearly.
    laplace = LaplaceEvent(shift, 2 * shift)
    for epsilon in (0, 0.2, 0.49):
        assert pld_delta([laplace], epsilon) == pytest.approx(-math.expm1((epsilon - 0.5) / 2), rel=1e-3)
    assert pld_delta([laplace], 0.5) <= 1e-7


def test_a_fine_laplace_lattice_would_understate_a_coarse_one():
    # Why the continuous Laplace must not stand in for the discrete one.
    coarse, fine = (pld_epsilon([LaplaceEvent(d, 10 * d)] * 100, 1e-6) for d in (1, 10**6))
    assert coarse > 1.015 * fine


@pytest.mark.parametrize("split", [(1, 2), (1, 1, 1), (2, 1)])
def test_a_scalar_laplace_shift_dominates_every_split_of_its_l1_norm(split):
    law = oracle.laplace_law(2, reach=40)
    vector = oracle.compose_losses(*(oracle.losses(oracle.shifted_pair(law, entry)) for entry in split))
    for epsilon in (0, 0.3, 0.7, 1, 1.4):
        assert oracle.delta_of_losses(vector, epsilon) <= pld_delta([LaplaceEvent(sum(split), 2)], epsilon)


def test_composition_beats_zcdp_and_sums_where_it_should():
    pure = [PureEvent(0.05, "x")] * 400
    assert pld_epsilon(pure, 1e-6) < zcdp_epsilon(Fraction(400, 800), 1e-6) < 20
    gaussian = [GaussianEvent(1, 100, 1)] * 50
    assert pld_epsilon(gaussian, 1e-6) < 0.95 * zcdp_epsilon(Fraction(50, 200), 1e-6)


def test_a_thousand_gaussians_cost_what_one_of_a_thousand_times_the_shift_costs():
    side = 2**20
    many = pld_epsilon([GaussianEvent(side**2, 1000 * side**2, 1)] * 1000, 1e-6)
    one = pld_epsilon([GaussianEvent(side**2, side**2, 1)], 1e-6)
    assert one * (1 - 1e-6) <= many <= one * (1 + 1e-3)


def test_delta_falls_with_epsilon_and_grows_with_events():
    batch = [LaplaceEvent(1, 3), GaussianEvent(1, 9, 1)]
    deltas = [pld_delta(batch, Fraction(k, 10)) for k in range(20)]
    assert deltas == sorted(deltas, reverse=True)
    assert pld_delta(batch * 2, 0.5) > pld_delta(batch, 0.5)


def test_free_events_cost_nothing_and_composed_ones_are_opened():
    assert pld_delta([FreeEvent("public")], 0) == 0
    assert pld_epsilon([], 1e-6) == 0
    parts = [LaplaceEvent(1, 3), FreeEvent("public"), GaussianEvent(1, 9, 1)]
    assert pld_delta([ComposedEvent(parts)], 0.5) == pld_delta(parts, 0.5)


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(2, 9, 2),
        ComposedEvent([GaussianEvent(2, 9, 2), PureEvent(1, "x")]),
        PureEvent(10**5, "x"),
        GaussianEvent(1, Fraction(1, 10**6), 1),
        LaplaceEvent(2**70, 2**70),
        GaussianEvent(2**120, 2**120, 1),
    ],
    ids=repr,
)
def test_events_without_a_pair_or_beyond_the_grid_are_not_supported(event):
    with pytest.raises(NotSupported):
        pld_delta([event], 1)


def test_a_delta_below_the_rounding_of_the_transform_is_not_supported():
    with pytest.raises(NotSupported, match="rounding error"):
        pld_epsilon([GaussianEvent(1, 100, 1)] * 1000, 1e-14)


@pytest.mark.parametrize("value", [-1, 1001, float("nan"), True, "1"], ids=repr)
def test_hostile_epsilons_are_refused(value):
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        pld_delta([PureEvent(1, "x")], value)


@pytest.mark.parametrize("value", [0, 1, -1, float("nan"), True, "1"], ids=repr)
def test_hostile_deltas_are_refused(value):
    with pytest.raises(InvalidParameter, match="delta must be"):
        pld_epsilon([PureEvent(1, "x")], value)


def test_outcomes_out_of_reach_are_counted_against_us(monkeypatch):
    event = GaussianEvent(1, 9, 1)
    exact = gaussian_delta(0.5, 9, 1)
    monkeypatch.setattr(pld, "_REACH", 2)
    blocks = pld._gaussian_blocks(event, 0.001)
    assert blocks.beyond == pytest.approx(0.015, abs=0.005)
    assert float(blocks.left.sum()) + blocks.beyond == pytest.approx(1, abs=1e-12)
    assert pld_delta([event], 0.5) > exact + blocks.beyond / 2


@pytest.mark.parametrize("step", [0.003, 0.05, 0.4])
@pytest.mark.parametrize("event", SMALL, ids=repr)
def test_the_grid_keeps_both_probabilities_of_every_block(event, step):
    blocks = pld._blocks(event, step)
    masses, beyond = pld._on_grid(blocks, step)
    assert beyond == blocks.beyond
    assert all(mass >= 0 for mass in masses.values())
    assert math.fsum(masses.values()) == pytest.approx(float(blocks.left.sum()), abs=1e-14)
    # What the grid says of the other data set is the same but where a block was moved against us.
    other = math.fsum(mass * math.exp(-place * step) for place, mass in masses.items())
    assert other == pytest.approx(float(blocks.right.sum()), abs=1e-6)
    mean = math.fsum(mass * place * step for place, mass in masses.items())
    assert mean == pytest.approx(float(blocks.left @ (blocks.low + blocks.high)) / 2, abs=2 * step**2 + 1e-9)


def test_a_block_between_two_points_of_the_grid_is_split_by_its_likelihood():
    point = np.array([0.25])
    left, right = np.array([0.5]), np.array([0.5 * math.exp(-0.25)])
    masses, _ = pld._on_grid(pld.Blocks(point, point, left, right, 0.0), 1.0)
    assert set(masses) == {0, 1}
    upper = 0.5 * (1 - math.exp(-0.25)) / (1 - math.exp(-1))
    assert masses[1] == pytest.approx(upper, rel=1e-14)
    assert masses[0] == pytest.approx(0.5 - upper, rel=1e-14)
    # Rounding of the two probabilities can never move more than there is, nor less than nothing.
    for wrong, places in ((0.0, {0: 0.0, 1: 0.5}), (1.0, {0: 0.5, 1: 0.0})):
        assert pld._on_grid(pld.Blocks(point, point, left, np.array([wrong]), 0.0), 1.0)[0] == places
    # A loss that is a point of the grid but for rounding stays there.
    exact = np.array([3.0 * (1 + 1e-15)])
    on_point = pld.Blocks(exact, exact, left, left * math.exp(-3), 0.0)
    assert pld._on_grid(on_point, 1.0)[0] == {3: pytest.approx(0.5), 4: pytest.approx(0, abs=1e-15)}


def test_as_many_events_as_the_limit_are_composed(monkeypatch):
    monkeypatch.setattr(pld, "_MOST_EVENTS", 3)
    event = LaplaceEvent(1, 2)
    assert pld_delta([event] * 3, 1) > 0
    with pytest.raises(NotSupported, match=r"^a PLD composes at most 3 events, got 4$"):
        pld_delta([event] * 4, 1)
    many = BoundedNoiseEvent(1, 50, 2, 4)
    with pytest.raises(NotSupported, match=r"^a PLD composes at most 3 events, got 4$"):
        pld_delta([many], 1)
    assert pld_delta([BoundedNoiseEvent(1, 50, 2, 3)], 1) > 0


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (GaussianEvent(2, 9, 2), "no dominating pair is proved for more than one coordinate: GaussianEvent"),
        (ConcentratedEvent(1, "x"), "no dominating pair is known for ConcentratedEvent"),
        (PureEvent(10_001, "x"), r"the privacy loss of PureEvent\(epsilon=10001, .* is too large to compose"),
        (PureEvent(142, "x"), r"the privacy loss of PureEvent\(epsilon=142, .* is too large to compose"),
        (LaplaceEvent(2**52, 2**52 + 1), "the scale of LaplaceEvent.* is too large to compose"),
        (GaussianEvent(2**104, 2**104 + 1, 1), "the scale of GaussianEvent.* is too large to compose"),
        (BoundedNoiseEvent(1, 2**16 + 1, 2, 1), "the losses of BoundedNoiseEvent.* are too many or infinite"),
        (BoundedNoiseEvent(19, 10, 2, 1), "the losses of BoundedNoiseEvent.* are too many or infinite"),
    ],
    ids=range(8),
)
def test_what_cannot_be_composed_is_refused_with_the_event_and_the_reason(event, words):
    with pytest.raises(NotSupported, match=f"^{words}"):
        pld._billable([event])


def test_what_is_just_inside_the_limits_is_composed():
    inside = [
        PureEvent(141, "x"),
        LaplaceEvent(2**52, 2**52),
        GaussianEvent(2**104, 2**104, 1),
        BoundedNoiseEvent(1, 2**16, 2, 1),
        BoundedNoiseEvent(18, 10, 2, 1),
        FreeEvent("public"),
    ]
    assert pld._billable(inside) == inside[:-1]


def test_the_step_divides_the_losses_of_the_commonest_event():
    laplace, gaussian, pure = LaplaceEvent(1, 10), GaussianEvent(4, 100, 1), PureEvent(0.3, "x")
    for batch, unit in (
        ([laplace, laplace, gaussian, pure], 0.1),
        ([laplace, gaussian, gaussian, pure], 0.01),
        ([laplace, pure, pure], 0.3),
    ):
        step = pld._step(batch)
        typical = math.sqrt(sum(2 * float(event.rho) for event in batch) / len(batch))
        assert 0.5 * 0.005 * typical < step <= 0.005 * typical
        assert unit / step == pytest.approx(round(unit / step), abs=1e-9)
    assert pld._step([laplace] * 100) == pytest.approx(0.0005)
    assert pld._step([laplace] * 101) == pytest.approx(0.002)
    with pytest.raises(NotSupported, match=r"^the privacy losses of these events are too small for a grid"):
        pld._step([PureEvent(Fraction(1, 10**6), "x")])
    assert pld._step([PureEvent(100, "x")]) == pytest.approx(0.05)


def test_outcomes_below_the_reach_are_added_to_the_smallest_loss(monkeypatch):
    monkeypatch.setattr(pld, "_REACH", 2)
    event = GaussianEvent(1, 9, 1)
    blocks, law = pld._gaussian_blocks(event, 0.001), DiscreteGaussian(9)
    assert blocks.left[0] == pytest.approx(law.cdf(-6), rel=1e-12)
    assert blocks.left[1] == pytest.approx(math.exp(law.logpmf(-5)), rel=1e-12)
    assert blocks.low[0] == pytest.approx(-6 / 9 + 1 / 18)
    assert blocks.right[0] == pytest.approx(math.exp(law.logpmf(-5)), rel=1e-12)
    bounded = BoundedNoiseEvent(1, 2000, 3, 1)
    cut = pld._bounded_blocks(bounded)
    noise = BoundedNoise(2000, 3)
    assert len(cut.left) < 2 * 2000 - 1
    assert cut.left.sum() + cut.beyond == pytest.approx(1, abs=1e-12)
    first = len(cut.left) // 2
    assert cut.beyond <= 1e-18
    assert cut.left[first] == pytest.approx(math.exp(noise.logpmf(0)), rel=1e-3)


def test_what_was_considered_is_told_with_its_epsilon():
    free = compose([], delta=Fraction(1, 10**6))
    assert free.method == "pure sum"
    assert free.considered == {"pure sum": free.epsilon}
    noisy, pure = BoundedNoiseEvent(1, 124, 2, 10), PureEvent(Fraction(1, 2), "x")
    alone = compose([noisy], delta=Fraction(1, 10**6)).considered
    mixed = compose([noisy, pure], delta=Fraction(1, 10**6)).considered
    assert set(alone) == set(mixed) == {"bounded noise", "PLD"}
    assert mixed["bounded noise"] == alone["bounded noise"] + Fraction(1, 2)
