"""Several picks: exact audits, the law of noise added once, and what a budget pays for."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2
from tests.laws.fit import FALSE_ALARM

from sfumato.errors import InvalidParameter
from sfumato.laws import Peeled, SeededBits, Selection
from sfumato.laws.selection import base
from sfumato.mechanisms import ExponentialMechanism, TopMechanism
from sfumato.mechanisms.exponential import VARIANTS
from sfumato.privacy import ZCDP, ApproxDP, PureDP

# Float64 in the log probabilities; the bounds themselves are exact.
ROUNDING = 1e-11

Vector = tuple[int, ...]
every_variant = pytest.mark.parametrize("variant", VARIANTS)
monotone_or_not = pytest.mark.parametrize("monotone", [False, True])


def logs(law: Peeled) -> np.ndarray:
    return np.array([law.logpmf(outcome) for outcome in law.outcomes()])


def neighbours(monotone: bool, count: int = 3, top: int = 3) -> Iterator[tuple[Vector, Vector]]:
    moves = range(2) if monotone else range(-1, 2)
    for scores in itertools.product(range(top + 1), repeat=count):
        for move in itertools.product(moves, repeat=count):
            yield scores, tuple(a + b for a, b in zip(scores, move, strict=True))


def worst_loss(top: TopMechanism, pairs: Iterator[tuple[Vector, Vector]]) -> float:
    known: dict[Vector, np.ndarray] = {}
    worst = 0.0
    for pair in pairs:
        left, right = (known.setdefault(s, logs(top.law(s))) if s not in known else known[s] for s in pair)
        worst = max(worst, float(np.abs(left - right).max()))
    return worst


# --- privacy -----------------------------------------------------------------------------------


@monotone_or_not
@every_variant
def test_peeling_loses_no_more_than_its_whole_epsilon(variant, monotone):
    top = TopMechanism(picks=2, sensitivity=1, epsilon=2, monotone=monotone, variant=variant)
    loss = worst_loss(top, neighbours(monotone))
    print(f"two picks, {variant}, monotone={monotone}: loss {loss:.4f} of 2")
    assert 1.2 < loss <= 2 + ROUNDING


@every_variant
def test_the_audit_catches_picks_that_each_take_the_whole_epsilon(variant):
    whole = TopMechanism(picks=2, sensitivity=1, epsilon=4, variant=variant)
    assert worst_loss(whole, neighbours(False)) > 2 * 1.2


@every_variant
def test_probabilities_of_all_outcomes_add_up_to_one(variant):
    for picks in (1, 2, 4):
        law = TopMechanism(picks=picks, sensitivity=1, epsilon=2, variant=variant).law([0, 3, 1, 1])
        assert len(list(law.outcomes())) == law.count == math.perm(4, picks)
        assert np.exp(logs(law)).sum() == pytest.approx(1, abs=1e-12)


# --- the law -----------------------------------------------------------------------------------


def race(order: tuple[int, ...], rates: list[Fraction]) -> Fraction:
    """The chance that exponential times of these rates come first in this order, by exact integration.

    A function is kept as {a: b} for the sum of b e^(-a t). The distribution of the time of the last one of a
    prefix is integrated step by step; nothing here knows that exponential times have no memory.
    """
    *before, last = order
    done: dict[Fraction, Fraction] = {Fraction(0): Fraction(1)}
    for place in before:
        grown: dict[Fraction, Fraction] = {}
        for fall, weight in done.items():
            # The integral from 0 to t of weight rate e^(-(fall + rate) s).
            total = fall + rates[place]
            part = weight * rates[place] / total
            grown[Fraction(0)] = grown.get(Fraction(0), Fraction(0)) + part
            grown[total] = grown.get(total, Fraction(0)) - part
        done = grown
    others = sum(rate for place, rate in enumerate(rates) if place not in before)
    return sum((weight * rates[last] / (fall + others) for fall, weight in done.items()), Fraction(0))


@pytest.mark.parametrize("picks", [1, 2, 3])
@pytest.mark.parametrize("scores", [(0, 2, 3, 1), (5, 5, 0, 0), (1, 1, 1, 1)])
def test_peeling_by_weights_is_exactly_the_law_of_gumbel_noise_added_once(picks, scores):
    # A noisy score c u + G is larger where the time e^(-c u - G) is earlier: exponential, of rate e^(c u).
    mechanism = TopMechanism(picks=picks, sensitivity=1, epsilon=picks, variant="base2")
    x, y = base(mechanism.each.rate)
    rates = [Fraction(x, 2**y) ** (max(scores) - score) for score in scores]
    law = mechanism.law(scores)
    for outcome in law.outcomes():
        peeled, left = Fraction(1), list(rates)
        for place in outcome:
            peeled *= rates[place] / sum(left)
            left.remove(rates[place])
        assert race(outcome, rates) == peeled
        assert law.logpmf(outcome) == pytest.approx(math.log(peeled), abs=1e-11)


def test_peeled_draws_fit_their_law_and_that_of_gumbel_noise_once():
    scores, size = (0, 2, 3, 1), 20_000
    top = TopMechanism(picks=2, sensitivity=1, epsilon=4, variant="exponential")
    law = top.law(scores)
    tuples = list(law.outcomes())
    expected = np.exp(logs(law)) * size
    drawn = law.sample(SeededBits(8), size)
    noise = np.random.default_rng(9).gumbel(size=(size, 4)) / float(top.each.rate)
    once = np.argsort(-(np.array(scores) + noise), axis=1)[:, :2]

    def p_value(chosen: np.ndarray) -> float:
        seen = np.array([(chosen == pair).all(axis=1).sum() for pair in tuples])
        return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(tuples) - 1))

    assert p_value(drawn) > FALSE_ALARM
    assert p_value(once) > FALSE_ALARM
    # The order counts, and noise of the scale of one pick would be noticed.
    assert p_value(drawn[:, ::-1]) < FALSE_ALARM
    assert p_value(np.argsort(-(np.array(scores) + noise / 1.1), axis=1)[:, :2]) < FALSE_ALARM


def test_picks_are_different_and_may_be_all():
    law = TopMechanism(picks=3, sensitivity=1, epsilon=1).law([1, 1, 1])
    assert sorted(law.sample(SeededBits(1))) == [0, 1, 2]
    assert law.sample(SeededBits(1), 0).shape == (0, 3)
    assert law.logpmf((0, 0, 1)) == law.logpmf((0, 1)) == law.logpmf((0, 1, 7)) == -math.inf


def test_scores_far_apart_are_chosen_in_their_order():
    for variant in VARIANTS:
        law = TopMechanism(picks=3, sensitivity=1, epsilon=3, variant=variant).law(
            [10**9, 0, -(10**9), 10**12]
        )
        assert law.sample(SeededBits(4)) == (3, 0, 1)


# --- what a budget pays for --------------------------------------------------------------------


def test_events_name_the_costs():
    top = TopMechanism(picks=4, sensitivity=1, epsilon=1, variant="exponential")
    assert (top.event.pure_epsilon, top.event.rho) == (1, Fraction(1, 32))
    assert TopMechanism(picks=4, sensitivity=1, epsilon=1).event.rho == Fraction(1, 8)


@every_variant
@pytest.mark.parametrize("picks", [1, 2, 7])
def test_a_budget_pays_for_no_more_than_itself_and_nearly_all_of_it(variant, picks):
    kind = {"picks": picks, "sensitivity": Fraction(3), "monotone": False, "variant": variant}
    for rho in (Fraction(1, 10), Fraction(3), Fraction(1, 10**6)):
        bought = TopMechanism.under(ZCDP(rho), **kind)
        assert rho * (1 - Fraction(1, 10**12)) <= bought.event.rho <= rho
    for budget in (PureDP(Fraction(1, 3)), ApproxDP(Fraction(1, 3), 1e-9)):
        assert TopMechanism.under(budget, **kind).event.pure_epsilon == Fraction(1, 3)


def test_under_zcdp_weights_never_lose_more_than_permute_and_flip():
    # At the same rho their rate is twice as large, which makes up for what permute-and-flip gains.
    ratios = []
    for rho in (0.02, 0.125, 1):
        kind = {"picks": 1, "sensitivity": Fraction(1), "monotone": False}
        flip, plain = (TopMechanism.under(ZCDP(rho), variant=v, **kind).each for v in VARIANTS[:2])
        assert plain.rate == 2 * flip.rate
        for scores in itertools.product((0, 1, 2, 5), repeat=4):
            losses = plain.law(scores).expected_loss, flip.law(scores).expected_loss
            assert losses[0] <= losses[1] * (1 + 1e-12)
            ratios.append(losses[0] / losses[1] if losses[1] else 1.0)
    print(
        f"weights lose {min(ratios):.3f} to {max(ratios):.3f} of what permute-and-flip loses at the same rho"
    )


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("picks", [0, 1.0, True, 10**9])
def test_picks_are_checked(picks):
    with pytest.raises(InvalidParameter, match="picks"):
        TopMechanism(picks=picks, sensitivity=1, epsilon=1)
    with pytest.raises(InvalidParameter, match="picks"):
        TopMechanism.under(ZCDP(1), picks=picks, sensitivity=Fraction(1), monotone=False, variant="flip")


def test_more_picks_than_candidates_are_refused():
    top = TopMechanism(picks=3, sensitivity=1, epsilon=1)
    with pytest.raises(InvalidParameter, match="picks must be at most the number of candidates, 2"):
        top.law([1, 2])
    with pytest.raises(InvalidParameter, match="count"):
        top.radius(2, 0.9)


def test_several_picks_are_described():
    top = TopMechanism(picks=3, sensitivity=1, epsilon=3)
    assert top.described() == f"{ExponentialMechanism(sensitivity=1, epsilon=1).described()}, 3 times in turn"
    assert isinstance(top.law([1, 2, 3]).first, Selection)
