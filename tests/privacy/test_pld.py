"""Privacy-loss distributions: never below the exact composition over every outcome, and close to it."""

import math
from fractions import Fraction

import mpmath as mp
import pytest
from tests.privacy import oracle

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.privacy import pld
from sfumato.privacy.conversions import zcdp_epsilon
from sfumato.privacy.events import ComposedEvent, FreeEvent, GaussianEvent, LaplaceEvent, PureEvent
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
