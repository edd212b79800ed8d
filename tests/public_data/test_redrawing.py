"""Weights found again with other noise: equal to the search for one, and intervals that then hold."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.public_data.shifts import SHIFTS

from sfumato.laws import DiscreteGaussian, DiscreteLaplace, SeededBits
from sfumato.public_data import weights
from sfumato.public_data.estimates import Bend, mixed_quantile
from sfumato.public_data.redrawing import Redrawing, tilted_again
from sfumato.public_data.tilting import tilt


def redrawing(features, means, noise, moves, **changes):
    tilted = tilt(features, means, 1e-6)
    given = {"private_rows": 500.0} | changes
    return Redrawing(
        features=features,
        weights=tilted.weights,
        means=means,
        moves=moves,
        noise=noise,
        penalty=1e-6,
        **given,
    )


def test_many_tiltings_at_once_are_those_of_one_at_a_time():
    generator = np.random.default_rng(4)
    features = generator.uniform(-0.6, 0.6, (300, 3))
    means = generator.uniform(-0.35, 0.35, (20, 3))
    together = tilted_again(features, means, 1e-6)
    for shares, mean in zip(together, means, strict=True):
        assert shares == pytest.approx(tilt(features, mean, 1e-6).weights / 300, abs=1e-4)
    # Far outside of what weights can give they end at the edge, and stay numbers.
    far = tilted_again(features, np.array([[9.0, 0.0, 0.0]]), 1e-6)
    assert far.sum() == pytest.approx(1)
    assert (far @ features)[0, 0] > 0.55


def test_categories_that_add_up_to_a_constant_are_tilted_as_without_one_of_them():
    codes = np.arange(600) % 3
    full = np.eye(3)[codes] * 0.5
    moves, noise = np.eye(3) / 20_000, DiscreteLaplace(300)
    all_three = redrawing(full, np.array([0.2, 0.2, 0.1]), noise, moves)
    assert all_three.axes.shape == (3, 2)
    values = (codes == 2) - 0.2
    bend = all_three.bend(values, "sample")
    # A share of a category is linear in the features: both simulations are the same.
    assert bend.found == pytest.approx(bend.linear, abs=2e-3)
    assert bend.excess(0.95, 0.0) == pytest.approx((0, 0), abs=2e-3)


@pytest.mark.parametrize("noise", [DiscreteLaplace(40), DiscreteGaussian(3200)])
def test_moves_have_the_law_of_the_noise_and_of_private_sampling(noise):
    features = np.random.default_rng(1).uniform(-0.5, 0.5, (400, 2))
    found = redrawing(features, np.array([0.1, 0.0]), noise, np.eye(2) / 1000)
    moved = found.moved["sample"]
    assert moved.mean(axis=0) == pytest.approx([0, 0], abs=1e-15)
    assert moved.var() == pytest.approx(noise.variance / 1e6, rel=0.25)
    extra = found.moved["population"] - moved
    assert extra.var(axis=0).sum() == pytest.approx(np.trace(found.curvature) / 500, rel=0.25)
    # Noise is small or not in units of the spread of the features, however these are scaled.
    assert found.needed == (noise.variance * 2 / 1e6 * 12 > 0.02)
    assert not redrawing(features, np.array([0.1, 0.0]), noise, np.eye(2) / 1e6, private_rows=1e5).needed


def test_a_degenerate_draw_does_not_have_an_interval_of_nothing():
    shift = SHIFTS["variance"]
    # By their noise these three released a variance of nearly nothing; weights then rest on the middle.
    for run in (74, 153, 341):
        generator = np.random.default_rng([run, 500, 2000])
        public, private = shift.public(generator, 2000), shift.private(generator, 500)
        with warnings.catch_warnings(action="ignore"):
            got = weights(
                private,
                public,
                features=shift.features,
                epsilon=0.5,
                neighbours="substitution",
                bits=SeededBits(run),
            )
        estimate = got.mean(np.abs(public["x1"]) > 1)
        first_order = replace(estimate, bend=None)
        for target in ("population", "sample"):
            assert first_order.interval(target=target)[1] < 1e-6
            assert estimate.interval(target=target)[1] > 1e-3
        assert estimate.interval() == estimate.interval()


def test_intervals_under_large_noise_hold_and_those_of_first_order_do_not():
    # The mean lies near an end, and the noise is as large as its distance from there.
    features, place = np.linspace(0, 1, 400)[:, None], np.array([0.1])
    far = (features[:, 0] > 0.2) * 1.0
    truth = float(tilt(features, place, 1e-6).weights @ far / 400)
    noise, moves, held, first, runs = DiscreteLaplace(40), np.eye(1) / 1000, 0, 0, 200
    for draw in np.asarray(noise.sample(SeededBits(5), runs)):
        found = redrawing(features, place + moves[0] * draw, noise, moves)
        value = float(found.weights @ far / 400)
        bend = found.bend(far - value, "sample")
        reach = np.quantile(np.abs(bend.linear), 0.95)
        below, above = bend.excess(0.95, 1e-9)
        held += value - reach - below <= truth <= value + reach + above
        first += abs(value - truth) <= reach
    assert held >= 0.94 * runs
    assert first < 0.9 * runs


def test_quantiles_of_draws_beside_a_normal_error():
    draws = np.random.default_rng(2).exponential(1.0, 2000)
    assert mixed_quantile(draws, 0.0, 0.9) == pytest.approx(np.quantile(draws, 0.9), abs=0.02)
    assert mixed_quantile(np.zeros(4), 2.0, 0.975) == pytest.approx(3.92, abs=0.01)
    assert mixed_quantile(np.zeros(4), 0.0, 0.975) == 0
    skewed = Bend(np.array([-1.0, 1.0] * 50), np.array([-0.5, 3.0] * 50))
    assert skewed.excess(0.95, 0.01) == pytest.approx((0.0, 2.0), abs=0.05)
    assert Bend(np.zeros(4), np.array([0.0, 1.0] * 2)).excess(0.9, 0.0) == pytest.approx((0, 1), abs=0.01)
    assert Bend(np.zeros(4), np.zeros(4)).excess(0.95, 0.0) == (0.0, 0.0)
