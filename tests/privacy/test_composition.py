"""Batches: the best proof wins, says its name, and never promises more than the exact composition."""

import sys
from fractions import Fraction

import mpmath as mp
import pytest
from tests.privacy import oracle

from sfumato.errors import InvalidParameter, MissingExtra, NotSupported
from sfumato.privacy.calibration import gaussian_sigma_squared
from sfumato.privacy.composition import approx_satisfied, compose
from sfumato.privacy.conversions import zcdp_epsilon
from sfumato.privacy.definitions import ApproxDP
from sfumato.privacy.events import (
    ComposedEvent,
    ConcentratedEvent,
    FreeEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RangeEvent,
)
from sfumato.privacy.pld import pld_epsilon


@pytest.fixture
def no_accounting(monkeypatch):
    """As if the optional package were not installed."""
    for name in list(sys.modules):
        if name.startswith("dp_accounting"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)


def test_few_pure_events_are_summed():
    found = compose([PureEvent(0.1, "x")] * 3, delta=1e-9)
    assert found.method == "pure sum"
    assert found.budget == ApproxDP(0.3, 1e-9)


def test_many_pure_events_are_composed_by_their_losses():
    found = compose([PureEvent(0.1, "x")] * 200, delta=1e-6)
    assert found.method == "PLD"
    assert found.epsilon < found.considered["zCDP"] < found.considered["pure sum"] == 20


def test_zcdp_wins_where_losses_cannot_be_composed():
    assert compose([GaussianEvent(2, 5, 2)] * 3, delta=1e-6).method == "zCDP"


def test_gaussian_vectors_on_a_fine_lattice_compose_like_one_continuous_gaussian():
    # k equal releases cost what one release with k times the squared shift costs.
    event, k, delta = GaussianEvent(2**30, 40 * 2**30, 3), 7, 1e-6
    found = compose([event] * k, delta=delta)
    assert found.method == "Gaussian"
    with mp.workdps(40):
        ratio = mp.sqrt(mp.mpf(k) / 40)
        exact = mp.findroot(
            lambda e: mp.log(oracle.continuous_delta(Fraction(float(e)), ratio) / delta), 2.0, tol=1e-12
        )
    assert float(found.epsilon) == pytest.approx(float(exact), rel=1e-5)
    assert found.epsilon >= Fraction(float(exact)) * (1 - Fraction(1, 10**9))
    assert found.epsilon < found.considered["zCDP"] * Fraction(97, 100)


@pytest.mark.parametrize(("shift", "coordinates"), [(1, 1), (2**20, 1), (2**20, 5)])
def test_one_calibrated_gaussian_composes_to_its_own_budget(shift, coordinates):
    budget = ApproxDP(1, 1e-5)
    sigma_squared = gaussian_sigma_squared(budget, sensitivity_squared=shift**2, coordinates=coordinates)
    found = compose([GaussianEvent(shift**2, sigma_squared, coordinates)], delta=1e-5)
    assert 1 - Fraction(1, 10**5) < found.epsilon <= 1


def test_pure_and_gaussian_vector_events_compose_without_the_package(no_accounting):
    gaussian = GaussianEvent(2**30, 40 * 2**30, 3)
    alone = compose([gaussian], delta=1e-6)
    both = compose([gaussian, PureEvent(0.01, "x")], delta=1e-6)
    assert both.method == "Gaussian"
    assert both.epsilon == alone.epsilon + Fraction(1, 100)
    assert "PLD" not in both.considered


def test_without_the_package_the_other_proofs_stand_and_the_extra_is_named(no_accounting):
    found = compose([PureEvent(0.1, "x")] * 200, delta=1e-6)
    assert found.method == "zCDP"
    assert float(found.epsilon) == pytest.approx(zcdp_epsilon(1, 1e-6), rel=1e-11)
    with pytest.raises(MissingExtra, match=r'pip install "sfumato\[accounting\]"'):
        pld_epsilon([PureEvent(0.1, "x")], 1e-6)


def test_composed_and_free_events_are_opened():
    parts = [PureEvent(0.1, "x"), FreeEvent("public"), LaplaceEvent(1, 10)]
    assert compose([ComposedEvent(parts)], delta=1e-9) == compose(parts, delta=1e-9)
    assert compose([FreeEvent("public")], delta=1e-9).epsilon == Fraction(1, 10**12)
    assert compose([], delta=1e-9).epsilon == Fraction(1, 10**12)


def test_extreme_events_still_compose():
    assert compose([PureEvent(1e-200, "x")], delta=1e-9).epsilon == Fraction(1, 10**200)
    with pytest.raises(NotSupported, match="too costly"):
        compose([PureEvent(1e9, "x")], delta=1e-9)


@pytest.mark.parametrize("delta", [0, 1, -0.1, float("nan"), True, "small"], ids=repr)
def test_hostile_deltas_are_refused(delta):
    with pytest.raises(InvalidParameter, match="delta must be"):
        compose([PureEvent(1, "x")], delta=delta)


def test_a_part_without_a_pure_cost_is_not_left_out_beside_gaussians():
    gaussian, other = GaussianEvent(1, 100, 1), ConcentratedEvent(0.5, "quantiles")
    found = compose([gaussian, other], delta=1e-6)
    assert found.method == "zCDP"
    assert set(found.considered) == {"zCDP"}
    alone = compose([gaussian], delta=1e-6).budget
    assert not approx_satisfied(ComposedEvent([gaussian, other]), alone)


def test_a_bounded_range_costs_a_quarter_of_a_pure_bound_in_zcdp():
    assert RangeEvent(1, "q").rho == PureEvent(1, "q").rho / 4
    assert RangeEvent(1, "q").pure_epsilon == 1
