"""Mistakes that are made in practice, each as a broken variant that a check notices and the code passes.

The checks are those that the other tests of this folder make, in a form that takes the part to be broken.
"""

import contextlib
import inspect
import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from tests.laws.fit import fit

from sfumato.errors import BudgetExceeded
from sfumato.federated import Adaptive, Aggregator, LocalNoise, Round, Run, clip, clipping
from sfumato.federated.clipping import STEPS, Clipped, inside_ball, unflatten
from sfumato.laws import DiscreteGaussian, SeededBits
from sfumato.privacy import ApproxDP, ComposedEvent, GaussianEvent, gaussian_delta

FOLLOWS = {"lowest": 0.001, "highest": 1000, "vote_noise": 1}
COMMON = {"bound": 1, "noise_multiplier": 1, "expected_clients": 4, "neighbours": "add-remove"}


# The direction in which the bound moves.


class OppositeSign(Adaptive):
    def moved(self, bound, *, share):
        return super().moved(bound, share=2 * float(self.target) - share)


def the_bound_goes_to_the_norms(kind):
    round_ = Aggregator(**COMMON, shapes=((2,),), adaptive=kind(**FOLLOWS))
    for norm in (50.0, 0.001):
        answer = round_.release([[np.array([norm, 0.0])]] * 4, SeededBits(1))
        assert (answer.next_bound > round_.bound) == (norm > 1)


# Noise, and by which bound it is scaled.


class NoiseByTheNewBound(Aggregator):
    def release(self, updates, bits=None):
        right = super().release(updates, bits)
        total, _ = self.look(updates)
        noise = (right.noisy_sum - total) * float(right.next_bound / right.bound)
        return replace(right, noisy_sum=total + np.round(noise).astype(np.int64))


class NumpyNoise(Aggregator):
    def release(self, updates, bits=None):
        right, (total, _) = super().release(updates, bits), self.look(updates)
        spread = math.sqrt(self.noise.sigma_squared)
        noise = np.random.normal(0, spread, self.coordinates)  # noqa: NPY002  reason: it is the mistake
        return replace(right, noisy_sum=total + noise)


class ForgottenVotes(Aggregator):
    @property
    def noise(self):
        return DiscreteGaussian((self.noise_multiplier * self.steps) ** 2)

    def event_of(self, rounds):
        return GaussianEvent(rounds * self.steps**2, self.noise.sigma_squared, rounds * self.coordinates)


def the_noise_is_that_of_the_event(kind):
    size = 100_000
    round_ = kind(**COMMON, shapes=((size,),), adaptive=Adaptive(**FOLLOWS))
    small = [np.full(size, 1e-9)]
    answer = round_.release([small] * 4, SeededBits(2))
    assert answer.noisy_sum.dtype == np.int64
    draws = answer.noisy_sum - round_.look([small] * 4)[0]
    event = round_.event
    variance = (event.parts[0] if isinstance(event, ComposedEvent) else event).sigma_squared
    assert not fit(draws, lambda factor: DiscreteGaussian(variance * Fraction(factor) ** 2)).rejected


def a_global_seed_has_no_influence(kind):
    def draw():
        np.random.seed(7)  # noqa: NPY002  reason: the global generator must have no influence
        return kind(**COMMON, shapes=((9,),)).release([]).noisy_sum

    assert (draw() != draw()).any()


def the_event_covers_all_that_is_released(kind):
    round_ = kind(**COMMON, shapes=((1,),), adaptive=Adaptive(**FOLLOWS))
    sums, votes = round_.look([[np.array([1.0])]])
    far = Fraction(int(sums[0]) ** 2) / (2 * round_.noise.sigma_squared)
    far += Fraction(votes * round_.steps) ** 2 / (2 * round_.noise_on_votes.sigma_squared)
    assert far <= round_.event.rho


# Clipping.


def clip_by_division(update, bound, *, shapes=None, steps=STEPS):
    vector = np.concatenate([layer.ravel() for layer in update])
    norm = math.sqrt(sum(float(value) ** 2 for value in vector))
    factor = min(1.0, float(bound) / norm) / float(bound) * steps
    with np.errstate(invalid="ignore"):
        integers = (vector * factor).astype(np.int64)
    return Clipped(integers, shapes or (vector.shape,), norm <= bound, True, steps)


def clip_that_lets_numbers_through(update, bound, *, shapes=None, steps=STEPS):
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(clipping.np, "isfinite", lambda vector: np.ones(1, dtype=bool))
        patch.setattr(clipping, "inside_ball", lambda integers, radius: True)
        return clip(update, bound, shapes=shapes, steps=steps)


def clip_to_the_nearest(update, bound, *, shapes=None, steps=STEPS):
    with pytest.MonkeyPatch.context() as patch:
        nearest = staticmethod(lambda vector, factor, radius: np.round(vector * factor).astype(np.int64))
        patch.setattr(clipping, "on_lattice", nearest)
        patch.setattr(clipping, "inside_ball", lambda integers, radius: True)
        return clip(update, bound, shapes=shapes, steps=steps)


def clip_layer_by_layer(update, bound, *, shapes=None, steps=STEPS):
    each = [clip([layer], bound, steps=steps) for layer in update]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clipping, "inside_ball", lambda integers, radius: True)
        integers = np.concatenate([one.integers for one in each])
        return Clipped(
            integers, tuple(map(np.shape, update)), all(one.norm_fits for one in each), True, steps
        )


def zero_is_an_update_like_any_other(clips):
    try:
        assert not clips([np.zeros(3)], 1).integers.any()
    except ZeroDivisionError:
        raise AssertionError("the zero update raised") from None


def what_is_not_finite_contributes_nothing(clips):
    for value in (np.nan, np.inf, -np.inf):
        assert not clips([np.array([value, 1.0])], 1).integers.any()


def every_update_is_in_the_ball(clips):
    for entries in itertools.product((-3.0, 0.4, 0.7, 1.0), repeat=4):
        found = clips([np.array(entries[:2]), np.array(entries[2:])], 1, steps=5)
        assert inside_ball(found.integers, 5)


# Sums.


class WeightedByExamples(Aggregator):
    def look(self, updates):
        # The length of a client's own data, which it reports: here the first entry of its update, a lie.
        sums = np.zeros(self.coordinates, dtype=np.int64)
        for update in updates:
            clipped = self._clipped(update)
            sums += clipped.integers * max(1, round(abs(float(update[0][0]))))
        return sums, 0


class DividedByThoseWhoAnswered(Aggregator):
    def release(self, updates, bits=None):
        right = super().release(updates, bits)
        answered = max(1, sum(update is not None for update in updates))
        scaled = right.noisy_sum * float(self.bound / (self.steps * answered))
        return replace(right, mean_update=unflatten(scaled, self.shapes))


def one_client_moves_the_sum_by_at_most_the_bound(kind):
    round_ = kind(**COMMON, shapes=((2,),))
    base = [np.array([1.0, 0.0])]
    for entries in itertools.product((-9.0, 0.5, 1.0, 30.0), repeat=2):
        change = round_.look([base, [np.array(entries)]])[0] - round_.look([base])[0]
        assert inside_ball(change, round_.steps)


def who_answers_does_not_change_the_scale(kind):
    round_ = kind(**COMMON, shapes=((2,),))
    update = [np.zeros(2)]
    alone, all_four = (round_.release([update] * 1 + [rest] * 3, SeededBits(3)) for rest in (None, update))
    assert (alone.mean_update[0] == all_four.mean_update[0]).all()


# Local noise.


@dataclass(frozen=True, kw_only=True)
class LocalWithSensitivityC(LocalNoise):
    @property
    def sensitivity_squared(self):
        return self.steps**2


@dataclass(frozen=True, kw_only=True)
class LocalWithTheClassicalSigma(LocalNoise):
    @property
    def noise(self):
        epsilon, delta = float(self.budget.epsilon), float(self.budget.delta)
        return DiscreteGaussian(
            Fraction(2 * self.steps * math.sqrt(2 * math.log(1.25 / delta)) / epsilon) ** 2
        )


def any_two_updates_are_within_the_budget(kind):
    noise = kind(budget=ApproxDP(10, 1e-5), bound=1, shapes=((1,),))
    ends = [clip([np.array([value])], 1).integers[0] for value in (-7.0, 7.0)]
    shift = abs(int(ends[1] - ends[0]))
    assert gaussian_delta(10, noise.noise.sigma_squared, shift=shift) <= 1e-5


# Accounting.


class LooseRun(Run):
    def epsilon(self, delta, *, accountant="gaussian"):
        rho = float(self.spent.rho)
        return min(rho * order - math.log(float(delta)) / (order - 1) for order in range(2, 65))


class ChargeAfterwards(Run):
    def round(self, updates, bits=None):
        answer = self.aggregator.release(updates, bits)
        self.charge()
        return answer


class NoStop(Run):
    def require(self):
        pass


def five_rounds_cost_what_the_exact_curve_says(kind):
    run = kind(Aggregator(**COMMON, shapes=((2,),)), ApproxDP(20, 1e-5))
    for _ in range(5):
        run.charge()
    assert 11.4799 <= run.epsilon(1e-5) <= 11.4802


def nothing_is_read_that_was_not_paid_for(kind):
    run = kind(Aggregator(**COMMON, shapes=((2,),)), ApproxDP(5, 1e-5))
    read = []
    for _ in range(run.rounds + 2):
        updates = (read.append(run.charged) for _ in range(1))
        with contextlib.suppress(BudgetExceeded):
            run.round(updates)
    assert read == list(range(1, run.rounds + 1))


CHECKS = {
    the_bound_goes_to_the_norms: (Adaptive, [OppositeSign]),
    the_noise_is_that_of_the_event: (Aggregator, [NoiseByTheNewBound, NumpyNoise]),
    a_global_seed_has_no_influence: (Aggregator, [NumpyNoise]),
    the_event_covers_all_that_is_released: (Aggregator, [ForgottenVotes]),
    zero_is_an_update_like_any_other: (clip, [clip_by_division]),
    what_is_not_finite_contributes_nothing: (clip, [clip_that_lets_numbers_through]),
    every_update_is_in_the_ball: (clip, [clip_to_the_nearest, clip_layer_by_layer]),
    one_client_moves_the_sum_by_at_most_the_bound: (Aggregator, [WeightedByExamples]),
    who_answers_does_not_change_the_scale: (Aggregator, [DividedByThoseWhoAnswered]),
    any_two_updates_are_within_the_budget: (
        LocalNoise,
        [LocalWithSensitivityC, LocalWithTheClassicalSigma],
    ),
    five_rounds_cost_what_the_exact_curve_says: (Run, [LooseRun]),
    nothing_is_read_that_was_not_paid_for: (Run, [ChargeAfterwards, NoStop]),
}
PAIRS = [(check, mutant) for check, (_, mutants) in CHECKS.items() for mutant in mutants]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_code_passes(check):
    check(CHECKS[check][0])


@pytest.mark.parametrize(("check", "mutant"), PAIRS, ids=lambda part: part.__name__)
def test_the_mistake_is_noticed(check, mutant):
    with pytest.raises(AssertionError):
        check(mutant)


def test_nothing_is_released_of_an_update_but_its_noisy_sum_and_vote():
    # Losses, accuracies and numbers of examples of clients have no place in an answer.
    assert set(inspect.signature(Round).parameters) == {
        "mean_update",
        "bound",
        "next_bound",
        "event",
        "noisy_sum",
        "noisy_votes",
        "private",
    }
