"""The one-line functions for quantiles: what they add to the query they build."""

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.quantile_methods import FromHistogram

PAY = np.random.default_rng(1).lognormal(10.5, 0.4, 20_000)


@pytest.mark.parametrize("neighbours", ["substitution", "add-remove"])
def test_bounds_that_were_found_are_charged_and_serve_another_query(neighbours):
    found = sf.find_bounds(PAY, lower=0, epsilon=1, neighbours=neighbours, bits=SeededBits(3))
    low, high = found.value
    # Powers of two less one, at most a factor of two around the outer hundredths, with room for the noise.
    assert 0 <= low < np.quantile(PAY, 0.02)
    assert np.quantile(PAY, 0.98) < high < 4 * np.quantile(PAY, 0.99)
    assert found.cost == sf.PureDP(1)
    assert found.event.pure_epsilon == 1
    mean = sf.mean(PAY, bounds=(low, high), epsilon=1, neighbours=neighbours, bits=SeededBits(4))
    assert mean.value == pytest.approx(PAY.mean(), rel=0.02)


def test_bounds_are_found_on_both_sides_of_zero():
    values = np.random.default_rng(2).normal(0, 100, 20_000)
    low, high = sf.find_bounds(values, epsilon=1, bits=SeededBits(5)).value
    assert -1000 < low < -100
    assert 100 < high < 1000


@pytest.mark.parametrize("coverage", [0, 1, -1, 2, math.nan, "0.9", None, True])
def test_a_coverage_that_is_no_share_is_refused(coverage):
    with pytest.raises(sf.InvalidParameter, match="coverage"):
        sf.find_bounds(PAY, coverage=coverage, epsilon=1)


def test_a_histogram_has_as_many_steps_as_the_rule_says():
    release = sf.median(PAY, bounds=(0, 250_000), epsilon=1, method="histogram", bits=SeededBits(6))
    steps = math.ceil(1.5 * 20_000 / math.log(20_000))
    assert FromHistogram().cells(release.query.facts).cells == steps
    assert f"{steps:,} steps" in release.method
    ages = sf.median(np.arange(100), bounds=(0, 120), epsilon=1, method=FromHistogram(steps=1000))
    assert FromHistogram(steps=1000).cells(ages.query.facts).cells == 121


def test_a_tree_tells_the_share_at_or_below_any_point():
    tree = sf.deciles(PAY, bounds=(0, 250_000), step=100, epsilon=100, method="tree", bits=SeededBits(7))
    points = [20_000, 40_000, 80_000]
    assert tree.cdf(points) == pytest.approx([(point >= PAY).mean() for point in points], abs=0.01)
    assert tree.cdf(Fraction(40_000)).tolist() == tree.cdf([40_000]).tolist()


def test_other_releases_have_no_share_to_tell():
    for release in (sf.median(PAY, bounds=(0, 250_000), epsilon=1), sf.mean(PAY, bounds=(0, 1), epsilon=1)):
        with pytest.raises(sf.NotSupported, match="tree"):
            release.cdf([1])


ASKED = {
    "quantiles": lambda **given: sf.quantiles(PAY, (0.25, 0.75), **given),
    "quantile": lambda **given: sf.quantile(PAY, 0.9, **given),
    "median": lambda **given: sf.median(PAY, **given),
    "deciles": lambda **given: sf.deciles(PAY, **given),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_every_function_verifies_by_counts_unless_that_is_turned_off(asked):
    given = {"bounds": (0, 250_000), "epsilon": 1, "bits": SeededBits(8)}
    assert "thresholds" not in asked(verify=0, **given).method
    for share in ({}, {"verify": "auto"}, {"verify": Fraction(1, 4)}):
        release = asked(**share, **given)
        assert "thresholds" in release.method
        assert release.cost == sf.PureDP(1)
        low, high = (np.atleast_1d(end) for end in release.interval())
        truth = [np.sort(PAY)[math.ceil(q * len(PAY)) - 1] for q in release.query.orders]
        assert np.all((low <= truth) & (truth <= high))
        assert np.all(high - low < 20_000)


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("share", [1, -0.1, 2, math.nan, "some", None, True])
def test_a_part_that_cannot_verify_is_refused(asked, share):
    with pytest.raises(sf.InvalidParameter, match="verify"):
        asked(bounds=(0, 250_000), epsilon=1, verify=share)
