"""Laplace noise that adds up to zero: its probabilities and its draws, against sums over all vectors."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import chi2
from tests.laws.fit import FALSE_ALARM

from sfumato.audit.adaptive import ZeroSumMove
from sfumato.audit.choices import worst_partition
from sfumato.audit.listed import hockey_stick
from sfumato.laws import SeededBits, SystemBits, ZeroSumLaplace, zero_sum
from sfumato.laws.zero_sum import log_total
from sfumato.mechanisms import ZeroSumMechanism
from sfumato.privacy import LaplaceEvent, pld_delta

SCALES = (Fraction(1, 3), Fraction(1), Fraction(5, 2))
CENTER = np.array([3, 0, 10])


def weights(scale, count, reach):
    """The weight of every vector that adds up to zero, but for far ones."""
    found = {}
    for first in itertools.product(range(-reach, reach + 1), repeat=count - 1):
        noise = (*first, -sum(first))
        found[noise] = math.exp(-sum(map(abs, noise)) / scale)
    return found


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_total_of_all_weights_is_their_sum(scale, count):
    reach = math.ceil(30 * scale) if count < 4 else math.ceil(12 * scale)
    total = math.fsum(weights(scale, count, reach).values())
    assert math.exp(log_total(scale, count)) == pytest.approx(total, rel=1e-9 if count < 4 else 1e-4)


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(10**9), Fraction(2**52)], ids=str)
@pytest.mark.parametrize("count", [2, 50, 1000])
def test_the_total_is_finite_for_every_scale(scale, count):
    # The chance that independent noise adds up to zero is at most 1, and about that of a normal law.
    chance = log_total(scale, count) - count * math.log(1 / math.tanh(1 / (2 * scale)))
    assert -math.log(max(scale, 1)) - math.log(count) - 3 < chance < 1e-9


def test_only_outcomes_with_the_same_total_are_possible():
    law = ZeroSumLaplace(Fraction(2), CENTER)
    outcomes = CENTER + np.array([[0, 0, 0], [1, -1, 0], [1, 0, 0]])
    found = law.logpmf(outcomes)
    assert found[2] == -math.inf
    assert found[0] - found[1] == pytest.approx(2 / 2)
    assert law.logpmf(CENTER) == pytest.approx(-log_total(Fraction(2), 3))
    # Sums of 64 bits that wrap are no totals.
    wide = ZeroSumLaplace(Fraction(2), np.zeros(4, dtype=np.int64))
    assert wide.logpmf(np.full(4, 2**62)) == -math.inf


def misfit(draws, scale):
    """The p-value of a chi-square test of noise on three counts."""
    chances = weights(scale, 3, 40)
    total = sum(chances.values())
    usual = {noise: weight / total for noise, weight in chances.items() if weight * len(draws) / total >= 20}
    seen = Counter(map(tuple, draws))
    cells = [(seen.pop(noise, 0), chance * len(draws)) for noise, chance in usual.items()]
    cells.append((sum(seen.values()), (1 - sum(usual.values())) * len(draws)))
    statistic = sum((observed - expected) ** 2 / expected for observed, expected in cells)
    return chi2.sf(statistic, len(cells) - 1)


def noise_of(scale, number):
    law, bits = ZeroSumLaplace(scale, CENTER), SeededBits(3)
    return [(np.asarray(law.sample(bits)) - CENTER).tolist() for _ in range(number)]


def test_draws_follow_the_law(monkeypatch):
    scale = Fraction(2)
    assert misfit(noise_of(scale, 20_000), scale) > FALSE_ALARM
    assert misfit(noise_of(scale, 20_000), scale * Fraction(11, 10)) < FALSE_ALARM
    # An accepted last count of the wrong weight shows, and so does one that is always accepted.
    monkeypatch.setattr(zero_sum, "bernoulli_exp", lambda x, bits: True)
    assert misfit(noise_of(scale, 20_000), scale) < FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(1), Fraction(2**52)], ids=str)
@pytest.mark.parametrize("count", [1, 2, 100])
def test_every_draw_keeps_the_total(scale, count):
    center = np.array([10**30 if count == 2 else 7] * count)
    drawn = ZeroSumLaplace(scale, center).sample(SystemBits())
    assert sum(drawn.tolist()) == sum(center.tolist())
    assert len(drawn) == count


def test_a_moved_record_costs_what_the_event_says_and_half_of_the_scale_is_noticed():
    mechanism = ZeroSumMechanism.calibrated(Fraction(1))
    worst = worst_partition(mechanism, counts=3, total=3)
    assert worst.loss.holds
    assert worst.loss.tightness == pytest.approx(1)
    with patch.object(ZeroSumMechanism, "law", lambda self, counts: ZeroSumLaplace(self.scale / 2, counts)):
        assert not worst_partition(mechanism, counts=3, total=3).loss.holds


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)], ids=str)
@pytest.mark.parametrize("counts", [2, 3, 8])
def test_the_event_composes_to_no_less_than_the_true_loss(epsilon, counts):
    mechanism = ZeroSumMechanism.calibrated(epsilon)
    true = ZeroSumMove(mechanism.scale, counts).part.pair
    for part in (Fraction(0), Fraction(1, 3), Fraction(9, 10)):
        least = hockey_stick(*true, float(part * epsilon))
        assert pld_delta([mechanism.event], part * epsilon) >= least * (1 - 1e-9)


def test_independent_noise_would_compose_to_too_little():
    scale = Fraction(2, 5)
    true = hockey_stick(*ZeroSumMove(scale, 2).part.pair, 0.0)
    assert pld_delta([LaplaceEvent(sensitivity=2, scale=scale)], 0) < 0.95 * true
