"""Known mistakes of private federated learning, each as a mutant of the wrapper that a check notices.

Flower's own wrappers have most of them. A check is a function of the strategy class: CentralDP passes it, and
the mutants do not.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import ArrayRecord, Message
from flwr.serverapp.strategy import FedAvg
from tests.federated.grid import TamperedGrid, app_of, place_of

import sfumato as sf
from sfumato.federated import Adaptive, Aggregator, Run
from sfumato.federated import flower as wrapper
from sfumato.federated.flower import CentralDP
from sfumato.laws import Bits, SeededBits

CLIENTS = 30
BUDGET = sf.ApproxDP(400, 1e-5)
WIDE = 4000


def run_of(strategy_class, step, *, size=3, rounds=1, examples=lambda _: 1, tamper=None, bits=None, **facts):
    """A strategy after its run, its result, and the grid."""
    settings = {"bound": 1, "noise_multiplier": 1, "expected_clients": CLIENTS, "neighbours": "add-remove"}
    settings |= {"shapes": ((size,),), **facts}
    run = Run(Aggregator(**settings), BUDGET)
    inner = FedAvg(min_train_nodes=2, min_available_nodes=2)
    strategy = strategy_class(inner, run, bits=bits)
    grid = TamperedGrid(app_of(step, examples), CLIENTS, tamper)
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord([np.zeros(size)]), num_rounds=rounds)
    return strategy, result, grid


def model_of(result):
    return result.arrays.to_numpy_ndarrays()[0]


def stay(place, model):
    return model


def push(length):
    return lambda place, model: [model[0] + length * np.eye(len(model[0]))[0]]


# --- checks ------------------------------------------------------------------------------------


def bound_follows_the_norms(strategy_class):
    """All updates are longer than the bound, so it rises to their length and stays near it."""
    adaptive = Adaptive(lowest=Fraction(1, 1000), highest=1000, vote_noise=Fraction(3, 2))
    facts = {"adaptive": adaptive, "bound": Fraction(1, 10), "bits": SeededBits(1)}
    strategy, _, _ = run_of(strategy_class, push(1.0), rounds=40, **facts)
    trace = strategy.bounds
    assert trace[0] == 0.1
    assert 0.102 < trace[1] < 0.12  # e^(0.2 * 0.5) = 1.105, give or take the noise on the votes
    assert 0.7 < np.mean(trace[-12:]) < 1.4


def noise_is_made_for_the_bound_that_clipped(strategy_class):
    """Nobody moves the model: what is left is noise, whose scale belongs to the bound of this round."""
    adaptive = Adaptive(lowest=Fraction(1, 1000), highest=1000, rate=1, vote_noise=2)
    facts = {"adaptive": adaptive, "size": WIDE, "bits": SeededBits(2)}
    strategy, result, _ = run_of(strategy_class, stay, **facts)
    # All updates fit the bound, so the next one is smaller by a factor of about e^-0.5.
    assert strategy.run.aggregator.bound < 0.75
    z = (1 - 1 / 4**2) ** -0.5
    spread = math.sqrt(float(np.mean(model_of(result) ** 2)))
    # Relative deviation of a root mean square of 4000 values is 1.1 %.
    assert abs(spread / (z * 1 / CLIENTS) - 1) < 0.06


def broken_updates_do_no_harm(strategy_class):
    """Zero updates, NaN and infinities leave a finite model, near the one without them."""

    def step(place, model):
        if place == 0:
            return model
        if place in (1, 2):
            return [model[0] + (math.nan if place == 1 else math.inf)]
        return push(1.0)(place, model)

    _, result, _ = run_of(strategy_class, step, bits=SeededBits(3))
    _, expected, _ = run_of(
        CentralDP, lambda place, m: stay(place, m) if place < 3 else push(1.0)(place, m), bits=SeededBits(3)
    )
    np.testing.assert_array_equal(model_of(result), model_of(expected))


def noise_is_private_and_on_the_lattice(strategy_class):
    """A seed of NumPy's generator does not fix the noise, and sums are whole numbers of steps."""
    found = []
    for _ in range(2):
        np.random.seed(1)  # noqa: NPY002  reason: what a user may do
        _, result, _ = run_of(strategy_class, stay)
        found.append(model_of(result))
    assert not np.array_equal(found[0], found[1])
    steps = found[0] * CLIENTS * 2**20
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)


def one_client_moves_the_sum_by_no_more_than_the_bound(strategy_class):
    """Neighbours: with and without one client, whatever it sends, claims or repeats."""
    for length in (1.0, 1e6):
        for weight in (1, 10**6):
            for copies in (1, 5):

                def step(place, model, length=length):
                    return push(length)(place, model) if place == 4 else model

                def with_copies(sent, replies, copies=copies):
                    theirs, message = next(
                        both for both in zip(replies, sent, strict=True) if place_of(both[0]) == 4
                    )
                    stranger = Message(theirs.content, reply_to=message)
                    stranger.metadata.__dict__["_src_node_id"] = 999
                    return [*replies, *[theirs] * (copies - 1), *[stranger] * (copies - 1)]

                def without(sent, replies):
                    return [reply for reply in replies if place_of(reply) != 4]

                facts = {"examples": lambda place, weight=weight: weight if place == 4 else 1}
                models = [
                    model_of(run_of(strategy_class, step, tamper=tamper, bits=SeededBits(4), **facts)[1])
                    for tamper in (with_copies, without)
                ]
                apart = np.linalg.norm(models[0] - models[1]) * CLIENTS
                assert apart <= 1 + 1e-9


def a_drop_out_changes_its_own_term_alone(strategy_class):
    """Ten clients do not answer: the others weigh as much as before."""
    kept = range(10, CLIENTS)
    _, result, _ = run_of(
        strategy_class, push(1.0), tamper=lambda sent, replies: replies[10:], bits=SeededBits(5)
    )
    _, noise, _ = run_of(strategy_class, stay, bits=SeededBits(5))
    assert (model_of(result) - model_of(noise))[0] == pytest.approx(len(kept) / CLIENTS, abs=1e-5)


def clients_metrics_do_not_leave(strategy_class):
    """Losses of clients are nowhere in the result."""
    _, result, _ = run_of(strategy_class, stay)
    assert "loss" not in result.train_metrics_clientapp[1]
    assert result.evaluate_metrics_clientapp == {}


def the_budget_is_never_passed(strategy_class):
    """What left the server, counted from outside, fits the budget."""
    run = Run(
        Aggregator(
            bound=1, noise_multiplier=1, expected_clients=CLIENTS, neighbours="add-remove", shapes=((3,),)
        ),
        sf.ApproxDP(12, 1e-5),
    )
    strategy = strategy_class(FedAvg(min_train_nodes=2, min_available_nodes=2), run)
    grid = TamperedGrid(app_of(stay), CLIENTS)
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord([np.zeros(3)]), num_rounds=8)
    assert len(result.train_metrics_clientapp) <= 5
    assert run.charged == len(result.train_metrics_clientapp)


# --- mutants -----------------------------------------------------------------------------------


class WrongSign(CentralDP):
    """The bound moves away from the norms: C exp(+eta (b - gamma))."""

    def aggregate_train(self, server_round, replies):
        before = self.run.aggregator
        found = super().aggregate_train(server_round, replies)
        moved = self.run.aggregator.bound
        self.run.aggregator = replace(before, bound=max(0.001, float(before.bound**2 / moved)))
        return found


class NextBound(CentralDP):
    """Noise is scaled by the bound of the next round."""

    def aggregate_train(self, server_round, replies):
        plain = self.run.round

        def scaled(updates, bits):
            answer = plain(updates, bits)
            share = float(answer.next_bound / answer.bound)
            return replace(answer, mean_update=tuple(layer * share for layer in answer.mean_update))

        self.run.round = scaled
        return super().aggregate_train(server_round, replies)


class Unguarded(CentralDP):
    """Clips by dividing by the norm, without a look at it."""

    def _updates(self, asked, replies, read):
        bound = float(self.run.aggregator.bound)
        for reply in replies:
            (found,) = reply.content["arrays"].to_numpy_ndarrays()
            change = found - asked.layers[0]
            scale = min(1.0, bound / float(np.linalg.norm(change)) if change.any() else math.inf)
            # A sum of floats, as an average would be: NaN goes through.
            self.poison = getattr(self, "poison", 0.0) + change * scale
            yield [change * scale]

    def aggregate_train(self, server_round, replies):
        arrays, metrics = super().aggregate_train(server_round, replies)
        return ArrayRecord([arrays.to_numpy_ndarrays()[0] + 0 * self.poison]), metrics


class GlobalNoise(CentralDP):
    """Noise from the global generator of NumPy, which anybody may seed, as floats."""

    def aggregate_train(self, server_round, replies):
        plain = self.run.round

        def noisy(updates, bits):
            answer = plain(updates, bits)
            shape = answer.mean_update[0].shape
            normal = np.random.normal
            return replace(answer, mean_update=(normal(0, 1 / CLIENTS, shape),))

        self.run.round = noisy
        return super().aggregate_train(server_round, replies)


class NumPyBits(Bits):
    """Bits of the global generator."""

    private = True

    def words(self, count):
        drawn = np.random.randint
        return drawn(0, 2**64, size=count, dtype=np.uint64)


class SeededNoise(CentralDP):
    """On the lattice, but from the global generator."""

    def __init__(self, inner, run, **more):
        super().__init__(inner, run, **{**more, "bits": NumPyBits()})


class Weighted(CentralDP):
    """Updates weigh as many examples as their clients claim."""

    def _updates(self, asked, replies, read):
        kept = list(replies)
        weights = [next(iter(reply.content.metric_records.values()))["num-examples"] for reply in kept]
        for place, update in enumerate(super()._updates(asked, kept, read)):
            yield from [update] * max(1, round(CLIENTS * weights[place] / sum(weights)))


class EveryReply(CentralDP):
    """Counts what arrives, asked for or not."""

    def _updates(self, asked, replies, read):
        return (wrapper.difference(reply, asked.names, asked.layers) for reply in replies)


class Unclipped(CentralDP):
    """Believes that clients clipped their updates."""

    def _updates(self, asked, replies, read):
        for update in super()._updates(asked, replies, read):
            length = 1 if update is None else max(1, math.ceil(float(np.linalg.norm(update[0]))))
            yield from [[layer / length for layer in update]] * min(length, 50) if update else [None]


class ByReplies(CentralDP):
    """Divides by the number of clients that answered."""

    def aggregate_train(self, server_round, replies):
        kept, plain = list(replies), self.run.round

        def averaged(updates, bits):
            answer = plain(updates, bits)
            share = CLIENTS / len(kept)
            return replace(answer, mean_update=tuple(layer * share for layer in answer.mean_update))

        self.run.round = averaged
        return super().aggregate_train(server_round, kept)


class WithMetrics(CentralDP):
    """Releases the metrics of clients unasked."""

    def __init__(self, inner, run, **more):
        super().__init__(inner, run, **more, release_metrics=True)


class NeverStops(CentralDP):
    """Goes on after the last round that was paid for."""

    def start(self, grid, initial_arrays, num_rounds=3):
        run, rounds = self.run, num_rounds

        class Unlimited:
            """A run that forgets to count."""

            aggregator, budget, bits = run.aggregator, run.budget, None
            rounds_left = rounds

            def require(self):
                pass

            def round(self, updates, bits):
                return run.aggregator.release(updates, bits)

            def epsilon(self, delta):
                return 0.0

        self.run = Unlimited()
        return super().start(grid, initial_arrays, num_rounds)


MUTANTS = {
    WrongSign: bound_follows_the_norms,
    NextBound: noise_is_made_for_the_bound_that_clipped,
    Unguarded: broken_updates_do_no_harm,
    GlobalNoise: noise_is_private_and_on_the_lattice,
    SeededNoise: noise_is_private_and_on_the_lattice,
    Weighted: one_client_moves_the_sum_by_no_more_than_the_bound,
    EveryReply: one_client_moves_the_sum_by_no_more_than_the_bound,
    Unclipped: one_client_moves_the_sum_by_no_more_than_the_bound,
    ByReplies: a_drop_out_changes_its_own_term_alone,
    WithMetrics: clients_metrics_do_not_leave,
    NeverStops: the_budget_is_never_passed,
}


@pytest.mark.parametrize("check", list(dict.fromkeys(MUTANTS.values())), ids=lambda check: check.__name__)
def test_the_strategy_passes(check):
    check(CentralDP)


@pytest.mark.parametrize(("mutant", "check"), MUTANTS.items(), ids=lambda it: it.__name__)
def test_a_mutant_is_caught(mutant, check):
    with np.errstate(invalid="ignore"), pytest.raises(AssertionError):
        check(mutant)
