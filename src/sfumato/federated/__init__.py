"""Federated learning over lists of arrays: clip, add up, add exact noise, and stop at a budget.

    z = noise_for(budget, rounds=20, neighbours="add-remove", coordinates=10)
    settings = Aggregator(
        bound=1, noise_multiplier=z, expected_clients=500, neighbours="add-remove", shapes=((10,),)
    )
    run = Run(settings, budget)
    run.round([[array], ...]).mean_update     # a list of arrays for each client; 20 such rounds

docs/federated.md has more. The interface in short (all of it works without Flower):

    clip(update, bound, *, shapes=None, steps=2**20) -> Clipped
        .integers (flat int64), .arrays (by layer), .norm_fits, .usable, .vote (+1, -1, 0), .values(bound)
    Adaptive(*, lowest, highest, target=1/2, rate=1/5, vote_noise=None)
    Aggregator(*, bound, noise_multiplier, expected_clients, neighbours, shapes, adaptive=None, steps=2**20)
        .release(updates, bits=None) -> Round, .event, .event_of(rounds), .noise, .noise_on_votes,
        .after(round) -> Aggregator, .to_dict(), .from_dict(record)
    Round: .mean_update (float64 by layer), .bound, .next_bound, .event, .noisy_sum, .noisy_votes, .private
    Run(aggregator, budget, rounds=None, *, ledger=None, file=None)
        .require(), .charge(), .round(updates, bits=None) -> Round, .follow(round), .rounds_left, .charged,
        .rounds, .aggregator (of the next round), .epsilon(delta, accountant="gaussian" | "zcdp"), .spent,
        .to_dict(), .from_dict(record, ledger=None)
    noise_for(budget, rounds, *, neighbours, coordinates, expected_clients=1, adaptive=None) -> Fraction
    LocalNoise(*, budget, bound, shapes, rounds=1).release(update, bits=None) -> arrays; .sigma, .event

With Flower (extra `flower`), in files of their own so that nothing here loads it:

    flower.CentralDP(inner, run, *, release_metrics=False, bits=None), a strategy around FedAvg and its kin
    flower_mods.clip_mod(bound) and local_dp_mod(budget, bound, *, rounds=1, ...), for `ClientApp(mods=[...])`
    flower_accountant.SfumatoAccountant(config), for Flower's own wrappers with fixed clipping

An update is a list or tuple of NumPy arrays, the difference between the client's model and the one it was
sent; None stands for a client that did not answer.
"""

from sfumato.federated.adaptive import Adaptive
from sfumato.federated.aggregate import Aggregator, Round
from sfumato.federated.calibrating import noise_for
from sfumato.federated.clipping import Clipped, clip
from sfumato.federated.local import LocalNoise
from sfumato.federated.run import Run

__all__ = ["Adaptive", "Aggregator", "Clipped", "LocalNoise", "Round", "Run", "clip", "noise_for"]
