"""Adaptive clipping: the bound moves the right way, after the noise, and the votes are paid for."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sfumato.checks import exact
from sfumato.errors import InvalidParameter
from sfumato.federated import Adaptive, Aggregator
from sfumato.federated.adaptive import updates_multiplier_squared
from sfumato.laws import SeededBits


def settings(clients=100, **changes):
    given = {"lowest": 0.001, "highest": 1000, **changes}
    return Aggregator(
        bound=0.1,
        noise_multiplier=1,
        expected_clients=clients,
        neighbours="add-remove",
        shapes=((2,),),
        adaptive=Adaptive(**given),
    )


def bounds_over(rounds, round_, updates, bits):
    found = [round_.bound]
    for _ in range(rounds):
        round_ = round_.after(round_.release(updates, bits))
        found.append(round_.bound)
    return [float(bound) for bound in found]


def of_norm(norm):
    return [np.array([0.6 * norm, -0.8 * norm])]


def test_the_bound_rises_if_all_updates_are_clipped_and_falls_if_none_is():
    bits = SeededBits(1)
    rising = bounds_over(20, settings(vote_noise=1), [of_norm(50)] * 100, bits)
    assert all(later > earlier for earlier, later in itertools.pairwise(rising))
    assert rising[-1] == pytest.approx(0.1 * np.exp(20 * 0.2 * 0.5), rel=0.1)
    falling = bounds_over(20, settings(vote_noise=1), [of_norm(1e-9)] * 100, bits)
    assert all(later < earlier for earlier, later in itertools.pairwise(falling))


@pytest.mark.parametrize("target", [0.25, 0.5, 0.75])
def test_the_bound_finds_the_wanted_quantile_of_the_norms(target):
    norms = np.linspace(1, 3, 40)
    updates = [of_norm(norm) for norm in norms]
    found = bounds_over(90, settings(40, target=target, vote_noise=2), updates, SeededBits(2))
    assert np.mean(found[-40:]) == pytest.approx(1 + 2 * target, abs=0.15)


def test_the_bound_stays_between_its_limits():
    low = bounds_over(40, settings(lowest=0.05, vote_noise=1, rate=2), [of_norm(1e-9)] * 100, SeededBits(3))
    assert min(low) == low[-1] == 0.05
    high = bounds_over(40, settings(highest=0.3, vote_noise=1, rate=2), [of_norm(50)] * 100, SeededBits(3))
    assert max(high) == high[-1] == 0.3


def test_a_round_is_clipped_noised_and_scaled_with_one_bound_and_the_next_is_another():
    round_ = settings(vote_noise=1)
    answer = round_.release([of_norm(50)] * 100, SeededBits(4))
    assert answer.bound == round_.bound == Fraction(1, 10)
    assert answer.next_bound > answer.bound
    assert (answer.mean_update[0] == answer.noisy_sum * float(Fraction(1, 10) / (2**20 * 100))).all()
    after = round_.after(answer)
    # In steps of the lattice the noise is the same for every bound, so every round costs the same.
    assert after.noise == round_.noise
    assert after.event == round_.event
    assert after.bound == answer.next_bound


def test_both_sides_read_the_same_bound_from_the_float():
    answer = settings(vote_noise=1).release([of_norm(50)] * 100, SeededBits(5))
    assert exact("bound", float(answer.next_bound)) == answer.next_bound


@pytest.mark.parametrize("relation", ["add-remove", "substitution"])
def test_updates_and_votes_cost_exactly_what_the_multiplier_says(relation):
    moved = 2 if relation == "substitution" else 1
    for multiplier, vote_noise in itertools.product((Fraction(1, 2), Fraction("1.1"), 7), (4, 20, None)):
        round_ = Aggregator(
            bound=1,
            noise_multiplier=multiplier,
            expected_clients=50,
            neighbours=relation,
            shapes=((9,),),
            adaptive=Adaptive(lowest=0.1, highest=10, vote_noise=vote_noise),
        )
        assert round_.event.rho == Fraction(moved**2) / (2 * Fraction(multiplier) ** 2)
        updates, votes = round_.event.parts
        assert (updates.sensitivity_squared, votes.sensitivity_squared) == (moved**2 * 2**40,) * 2
        assert updates.sigma_squared > Fraction(multiplier) ** 2 * 2**40


def test_the_noise_on_votes_has_a_default_that_always_leaves_room():
    def scale(**changes):
        return (
            Aggregator(
                bound=1,
                neighbours="add-remove",
                shapes=((1,),),
                adaptive=Adaptive(lowest=0.1, highest=9),
                **changes,
            ).noise_on_votes.sigma_squared
            / 2**40
        )

    assert scale(noise_multiplier=1, expected_clients=1000) == 4 * 50**2
    assert scale(noise_multiplier=3, expected_clients=4) == 4 * 3**2
    assert updates_multiplier_squared(2, 10) == 1 / (Fraction(1, 4) - Fraction(1, 400))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"lowest": 0}, "bound must be positive"),
        ({"lowest": 3, "highest": 2}, "lowest must be below highest"),
        ({"target": 0}, "target must be inside"),
        ({"target": 1}, "target must be inside"),
        ({"rate": 0}, "rate must be positive"),
        ({"rate": 11}, "rate must be at most 10"),
        ({"vote_noise": 0}, "vote_noise must be positive"),
    ],
)
def test_public_parameters_are_checked(changes, rule):
    with pytest.raises(InvalidParameter, match=f"^{rule}"):
        Adaptive(**{"lowest": 1, "highest": 2, **changes})


def test_an_absurd_share_moves_the_bound_to_its_limit_and_no_further():
    follows = Adaptive(lowest=1e-100, highest=1e100, rate=10)
    assert follows.moved(Fraction(1), share=1e300) == exact("bound", float(np.exp(-105.0)))
    assert follows.moved(Fraction(1, 10**90), share=1e300) == Fraction(1, 10**100)
    assert follows.moved(Fraction(10**90), share=-1e300) == 10**100
