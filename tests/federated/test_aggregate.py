"""One round: its law against its cost over all small neighbours, its noise, its sums, and what drops out."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from tests.laws.fit import DETECTABLE, FALSE_ALARM, fit

from sfumato.audit import compare
from sfumato.errors import InvalidParameter
from sfumato.federated import Adaptive, Aggregator, Clipped, clip
from sfumato.laws import DiscreteGaussian, SeededBits
from sfumato.privacy import GaussianEvent, compose

NEIGHBOURS = ["add-remove", "substitution"]


def settings(**changes):
    given = {
        "bound": 1,
        "noise_multiplier": 2,
        "expected_clients": 4,
        "neighbours": "add-remove",
        "shapes": ((2,),),
    }
    return Aggregator(**{**given, **changes})


def adaptive(**changes):
    return Adaptive(**{"lowest": 0.001, "highest": 1000, **changes})


def everything_a_client_can_send(dimension):
    """Corners, sphere, inside, outside, and what cannot be used; None is a client that is not there."""
    values = (-2.0, -1.0, 0.0, 0.6, 0.8, 1.0)
    for entries in itertools.product(values, repeat=dimension):
        yield [np.array(entries)]
    yield [np.full(dimension, np.nan)]
    yield None


def neighbouring_rounds(relation, dimension):
    """Pairs of rounds that differ in one client, with another client that is the same in both."""
    sent = list(everything_a_client_can_send(dimension))
    others = [sent[0], None]
    for other in others:
        for one in sent:
            if relation == "add-remove":
                yield [other, one], [other]
            else:
                for another in sent:
                    yield [other, one], [other, another]


@pytest.mark.parametrize("relation", NEIGHBOURS)
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("steps", [2, 5])
def test_no_neighbours_are_further_apart_than_the_event_says_and_some_are_as_far(
    relation, dimension, follows, steps
):
    round_ = settings(
        neighbours=relation,
        shapes=((dimension,),),
        adaptive=adaptive(vote_noise=Fraction(3, 2)) if follows else None,
        steps=steps,
    )
    worst = Fraction(0)
    for left, right in neighbouring_rounds(relation, dimension):
        (sums, votes), (other_sums, other_votes) = round_.look(left), round_.look(right)
        # The divergence of shifted discrete Gaussians of order alpha is alpha times this, at most.
        far = Fraction(sum(int(k) ** 2 for k in sums - other_sums)) / (2 * round_.noise.sigma_squared)
        if follows:
            moved = Fraction((votes - other_votes) * steps)
            far += moved**2 / (2 * round_.noise_on_votes.sigma_squared)
        worst = max(worst, far)
    assert worst <= round_.event.rho
    if dimension == 1:
        assert worst == round_.event.rho, "a client on the sphere with a vote is as far as it gets"
    assert round_.event.rho == Fraction(4 if relation == "substitution" else 1, 2 * 2**2)


@pytest.mark.parametrize("relation", NEIGHBOURS)
@pytest.mark.parametrize("follows", [False, True])
def test_the_exact_divergence_of_the_worst_neighbours_is_under_both_accountants(relation, follows):
    round_ = settings(
        neighbours=relation,
        shapes=((1,),),
        adaptive=adaptive(vote_noise=2) if follows else None,
        steps=4,
    )
    with_it = [[np.array([1.0])]]
    without = [[np.array([-2.0])]] if relation == "substitution" else []
    if relation == "substitution":
        assert round_.look(with_it)[1] == -round_.look(without)[1] == 1
    found = compare(round_.law(round_.look(with_it)), round_.law(round_.look(without)))
    assert found.rho().lower <= float(round_.event.rho) * (1 + 1e-9)
    assert found.rho().lower >= float(round_.event.rho) * (1 - 1e-6)
    for delta in (1e-3, 1e-6):
        claimed = compose([round_.event], delta=delta)
        assert found.epsilon(delta).lower <= float(claimed.considered["zCDP"]) * (1 + 1e-9)
        assert found.epsilon(delta).lower <= float(claimed.considered["Gaussian"]) * (1 + 1e-9)


def test_the_event_of_a_large_model_has_no_price_for_its_size():
    round_ = settings(shapes=((1000, 990), (10_000,)), noise_multiplier=1)
    assert round_.event == GaussianEvent(2**40, 2**40, 10**6)
    small, large = (
        compose([settings(shapes=((size,),), noise_multiplier=1).event_of(5)], delta=1e-5).epsilon
        for size in (2, 10**6)
    )
    assert small <= large < small + Fraction(1, 10**3)


def test_a_million_coordinates_of_float32_are_one_round_like_any_other():
    round_ = settings(shapes=((1000, 990), (10_000,)), expected_clients=1)
    update = [np.full((1000, 990), 3.0, dtype=np.float32), np.zeros(10_000, dtype=np.float32)]
    answer = round_.release([update], SeededBits(6))
    assert [layer.shape for layer in answer.mean_update] == [(1000, 990), (10_000,)]
    expected = 1 / np.sqrt(990_000)
    assert answer.mean_update[0].mean() == pytest.approx(expected, abs=6 * 2 / np.sqrt(990_000))
    assert answer.mean_update[1].std() == pytest.approx(2, rel=0.05)


def test_several_rounds_are_one_event_with_the_cost_of_all():
    for follows in (None, adaptive()):
        round_ = settings(adaptive=follows, shapes=((3,),))
        joined = compose([round_.event_of(7)], delta=1e-6).considered
        apart = compose([round_.event] * 7, delta=1e-6).considered
        assert joined["zCDP"] == apart["zCDP"]
        assert float(joined["Gaussian"]) == pytest.approx(float(apart["Gaussian"]), rel=1e-8)
    # So many coordinates that an event cannot hold those of all rounds.
    wide = settings(shapes=((2**31,),))
    assert [part.coordinates for part in wide.event_of(5).parts] == [2**32, 2**32, 2**31]
    assert wide.event_of(5).rho == 5 * wide.event.rho


@pytest.mark.parametrize("follows", [False, True])
def test_noise_on_a_hundred_thousand_coordinates_fits_the_law_and_no_law_two_per_cent_away(follows):
    round_ = settings(
        bound=0.37,
        noise_multiplier=1.3,
        shapes=((100_000,),),
        adaptive=adaptive(vote_noise=0.8) if follows else None,
    )
    update = [np.full(100_000, 1.0)]
    answer = round_.release([update, None, update], SeededBits(20_261_116))
    draws = answer.noisy_sum - round_.look([update, update])[0]
    multiplier = 1 / (1 / Fraction("1.3") ** 2 - (1 / Fraction("1.6") ** 2 if follows else 0))

    def family(scale):
        return lambda factor: DiscreteGaussian(multiplier * 2**40 * Fraction(scale * factor) ** 2)

    assert not fit(draws, family(1.0)).rejected
    assert fit(draws, family(1 + DETECTABLE)).score < FALSE_ALARM
    assert fit(draws, family(1 - DETECTABLE)).score < FALSE_ALARM
    spread = np.std((answer.mean_update[0] - 2 * 0.37 / np.sqrt(100_000) / 4) * 4)
    assert spread == pytest.approx(0.37 * float(multiplier) ** 0.5, rel=0.015)


def test_noise_on_votes_fits_its_law():
    round_ = settings(expected_clients=100, adaptive=adaptive(vote_noise=5), shapes=((1,),), steps=1)
    bits = SeededBits(5)
    draws = np.array([round_.release([], bits).noisy_votes for _ in range(1_500)])
    assert not fit(draws, lambda factor: DiscreteGaussian(100 * Fraction(factor) ** 2)).rejected
    assert fit(draws, lambda factor: DiscreteGaussian(100 * Fraction(1.2 * factor) ** 2)).rejected


def test_the_sum_is_exact_and_does_not_depend_on_the_order_of_clients():
    maker = np.random.default_rng(8)
    updates = [[maker.normal(size=3) * 10.0**power] for power in range(-3, 4) for _ in range(20)]
    round_ = settings(shapes=((3,),))
    total, votes = round_.look(updates)
    each = [clip(update, 1) for update in updates]
    assert total.tolist() == [sum(int(one.integers[i]) for one in each) for i in range(3)]
    assert votes == sum(one.vote for one in each)
    again, _ = round_.look(reversed(updates))
    assert (total == again).all()


def test_clients_that_drop_out_change_their_own_term_and_nothing_else():
    round_ = settings(expected_clients=4, adaptive=adaptive())
    update = [np.array([0.3, 0.4])]
    broken = [[np.array([np.nan, 0.0])], [np.array([1.0])], None, [np.array([np.inf, 1.0])]]
    alone, also = (round_.look([update, *rest]) for rest in ([], broken))
    assert (alone[0] == also[0]).all()
    assert alone[1] == also[1] == 1
    one, two = (round_.release([update, *rest], SeededBits(3)) for rest in ([], broken))
    assert (one.mean_update[0] == two.mean_update[0]).all()
    assert one.next_bound == two.next_bound
    # The mean is the sum over the public number, however many answered.
    assert (one.mean_update[0] == one.noisy_sum * (1 / (2**20 * 4))).all()


def test_what_is_released_lies_on_the_public_lattice():
    round_ = settings(bound=8, expected_clients=4)
    values = round_.release([[np.array([1 / 3, np.pi])]]).mean_update[0]
    assert (values * 2**20 / 2 == np.round(values * 2**20 / 2)).all()


def test_an_update_that_a_client_clipped_is_checked_and_not_believed():
    round_ = settings()
    honest = clip([np.array([3.0, 4.0])], 1)
    assert round_.look([honest])[0].tolist() == honest.integers.tolist()
    assert round_.look([honest])[1] == -1
    liar = clip([np.array([3.0, 4.0])], 1)
    liar.integers[:] = 2**40
    assert round_.look([liar])[0].tolist() == [0, 0]
    other_lattice = clip([np.array([3.0, 4.0])], 1, steps=2**24)
    assert round_.look([other_lattice])[0].tolist() == [0, 0]
    other_shape = Clipped(np.array([5]), ((1,),), True)
    assert round_.look([other_shape])[0].tolist() == [0, 0]


def test_fresh_bits_differ_and_seeded_ones_say_that_they_are_not_private():
    round_ = settings()
    np.random.seed(1)  # noqa: NPY002  reason: the global generator must have no influence
    first = round_.release([])
    np.random.seed(1)  # noqa: NPY002  reason: the global generator must have no influence
    second = round_.release([])
    assert first.private
    assert (first.noisy_sum != second.noisy_sum).any()
    seeded = [round_.release([], SeededBits(4)) for _ in range(2)]
    assert not seeded[0].private
    assert (seeded[0].noisy_sum == seeded[1].noisy_sum).all()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"bound": 0}, "bound must be positive"),
        ({"noise_multiplier": 0}, "noise_multiplier must be positive"),
        ({"noise_multiplier": 0.009}, "noise_multiplier must be in"),
        ({"noise_multiplier": 2**21}, "noise_multiplier must be in"),
        ({"expected_clients": 0}, "expected_clients must be in"),
        ({"expected_clients": 2.5}, "expected_clients must be a whole number"),
        ({"neighbours": "add"}, "neighbours must be one of"),
        ({"shapes": ()}, "shapes must have at least one entry"),
        ({"shapes": ((0,), (3, 0))}, "shapes must have at least one entry"),
        ({"adaptive": 0.5}, "adaptive must be an Adaptive"),
        ({"adaptive": Adaptive(lowest=2, highest=3)}, "bound must be from lowest to highest"),
        ({"adaptive": Adaptive(lowest=0.1, highest=3, vote_noise=1)}, "vote_noise must be above half"),
        ({"steps": 0}, "steps must be in"),
    ],
)
def test_public_parameters_are_checked(changes, rule):
    with pytest.raises(InvalidParameter, match=f"^{rule}"):
        settings(**changes)


def test_settings_are_read_back_exactly():
    for follows in (None, adaptive(), adaptive(vote_noise=1.7, target=0.3, rate=0.1)):
        round_ = settings(
            adaptive=follows, bound=0.1, noise_multiplier=Fraction(10, 7), shapes=((2, 3), (), (0,))
        )
        assert Aggregator.from_dict(round_.to_dict()) == round_
    with pytest.raises(InvalidParameter, match=r"^record must have exactly the fields"):
        Aggregator.from_dict({})
    with pytest.raises(InvalidParameter, match=r"^adaptive must have exactly the fields"):
        Adaptive.from_dict({"lowest": "1"})


@pytest.mark.parametrize(
    "change",
    [
        lambda array: array.fill(2**40),
        lambda array: setattr(array, "shape", (4, 1)),
        lambda array: setattr(array, "shape", (2, 2)),
        lambda array: setattr(array, "dtype", np.float64),
    ],
)
@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
def test_a_clipped_update_that_was_changed_afterwards_counts_as_none(change):
    plan = Aggregator(
        bound=1, noise_multiplier=1, expected_clients=2, neighbours="add-remove", shapes=((2,), (2,))
    )
    good = [np.ones(2), np.ones(2)]
    changed = clip(good, 1)
    change(changed.integers)
    total, votes = plan.look([changed, good])
    alone, vote = plan.look([good])
    assert (total == alone).all()
    assert votes == vote
