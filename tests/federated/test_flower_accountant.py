"""The accountant for Flower: its numbers, and how it serves Flower's own wrapper."""

import json
import math
from typing import Protocol, runtime_checkable

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import ArrayRecord
from flwr.clientapp import ClientApp
from flwr.serverapp.exception import PrivacyBudgetExhausted
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from tests.federated.grid import InProcessGrid

from sfumato.errors import InvalidParameter, NotSupported, SfumatoError
from sfumato.federated.flower_accountant import SfumatoAccountant

accounting = pytest.importorskip("flwr.supercore.privacy_accounting")
POPULATION = 100


def config(delta=1e-5, limit=None, **changes):
    facts = {
        "target_delta": delta,
        "population_size": POPULATION,
        "neighboring_relation": accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        "sampling_method": accounting.SamplingMethod.NO_AMPLIFICATION,
        "max_epsilon": limit,
    }
    return accounting.PrivacyConfig(**{**facts, **changes})


def event(multiplier=1.0, population=POPULATION):
    return accounting.GaussianPrivacyEvent(
        noise_multiplier=multiplier, sample_size=10, population_size=population
    )


def exact_delta(mu: float, epsilon: float) -> float:
    """The curve of continuous Gaussian noise, by its closed form."""

    def normal(x):
        return math.erfc(-x / math.sqrt(2)) / 2

    return normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu)


@runtime_checkable
class Members(Protocol):
    """What Flower asks of an accountant, written down apart from it."""

    config: object
    num_releases: int

    def compose(self, event, count=1): ...
    def get_epsilon(self, delta): ...
    def get_delta(self, epsilon): ...
    def get_privacy_spent(self, delta=None): ...
    def would_exceed(self, event, max_epsilon=None, count=1): ...
    def state_dict(self): ...
    def load_state_dict(self, state): ...


def test_it_has_every_member_that_flower_asks_for():
    accountant = SfumatoAccountant(config())
    assert isinstance(accountant, Members)
    asked = {name for name in vars(accounting.PrivacyAccountant) if not name.startswith("_")}
    assert len(asked) == 9
    assert asked <= set(dir(accountant))
    assert not isinstance(object(), Members)


@pytest.mark.parametrize("multiplier", [0.4, 1.0, 3.3, 20.0])
@pytest.mark.parametrize("rounds", [1, 5, 200])
def test_delta_is_the_exact_curve_rounded_up(multiplier, rounds):
    accountant = SfumatoAccountant(config())
    accountant.compose(event(multiplier), count=rounds)
    mu = math.sqrt(rounds) / multiplier
    for epsilon in (0.05, 0.5, 2.0, 8.0):
        expected = exact_delta(mu, epsilon)
        if expected > 1e-12:
            assert expected * (1 - 1e-9) <= accountant.get_delta(epsilon) <= expected * (1 + 1e-6)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize(("multiplier", "rounds"), [(1.0, 5), (4.0, 60), (0.5, 1)])
def test_epsilon_is_the_smallest_whose_delta_fits(multiplier, rounds, delta):
    accountant = SfumatoAccountant(config())
    accountant.compose(event(multiplier), count=rounds)
    epsilon = accountant.get_epsilon(delta)
    assert accountant.get_delta(epsilon) <= delta
    assert accountant.get_delta(epsilon - 1e-6) > delta
    # The same test refuses noise that is one per cent too small or too large.
    mu = math.sqrt(rounds) / multiplier
    assert exact_delta(mu / 1.01, epsilon) < delta < exact_delta(mu * 1.01, epsilon)


def test_five_rounds_cost_what_the_curve_says_and_less_than_flower_says():
    rdp = pytest.importorskip("flwr.supercore.privacy_accounting.rdp_accountant")
    pytest.importorskip("dp_accounting")
    for multiplier, rounds in [(1.0, 1), (1.0, 5), (2.0, 30), (0.7, 3), (10.0, 500)]:
        ours, theirs = SfumatoAccountant(config()), rdp.RdpAccountant(config())
        for accountant in (ours, theirs):
            accountant.compose(event(multiplier), count=rounds)
        for delta in (1e-6, 1e-5, 1e-3):
            assert 0 < ours.get_epsilon(delta) <= theirs.get_epsilon(delta)
        if (multiplier, rounds) == (1.0, 5):
            found = [round(accountant.get_epsilon(1e-5), 2) for accountant in (ours, theirs)]
            assert found == [11.48, 12.3]
            # The looser one would fail the test above: its epsilon is not the smallest.
            assert exact_delta(math.sqrt(5), theirs.get_epsilon(1e-5)) < 0.5e-5


def test_releases_with_different_noise_add_up_by_inverse_squares():
    mixed, single = SfumatoAccountant(config()), SfumatoAccountant(config())
    mixed.compose(event(2.0), count=3)
    mixed.compose(event(1.0))
    single.compose(event(2.0), count=7)
    assert mixed.num_releases == 4
    assert mixed.get_epsilon(1e-5) == single.get_epsilon(1e-5)


def test_nothing_composed_costs_nothing():
    accountant = SfumatoAccountant(config())
    assert (accountant.num_releases, accountant.get_epsilon(1e-5), accountant.get_delta(0.0)) == (0, 0.0, 0.0)
    spent = accountant.get_privacy_spent()
    assert (spent.epsilon, spent.delta, spent.num_releases, spent.optimal_order) == (0.0, 1e-5, 0, None)


def test_would_exceed_says_what_composing_finds_and_changes_nothing():
    accountant = SfumatoAccountant(config(limit=12.0))
    fitted = 0
    while not accountant.would_exceed(event()):
        accountant.compose(event())
        fitted += 1
        assert accountant.num_releases == fitted
    assert fitted == 5
    assert accountant.get_epsilon(1e-5) <= 12.0
    assert not accountant.would_exceed(event(), max_epsilon=13.0)
    assert accountant.would_exceed(event(), max_epsilon=13.0, count=2)
    accountant.compose(event())
    assert accountant.get_epsilon(1e-5) > 12.0
    with pytest.raises(InvalidParameter, match="max_epsilon must be given"):
        SfumatoAccountant(config()).would_exceed(event())


def test_state_goes_through_json_and_back():
    accountant = SfumatoAccountant(config(limit=12.0))
    accountant.compose(event(2.0), count=3)
    accountant.compose(event(1.5))
    stored = json.loads(json.dumps(accountant.state_dict()))
    again = SfumatoAccountant(config(limit=12.0))
    again.load_state_dict(stored)
    assert again.state_dict() == accountant.state_dict()
    assert again.get_privacy_spent() == accountant.get_privacy_spent()


@pytest.mark.parametrize(
    "damage",
    [
        {"schema_version": 2},
        {"backend": "rdp"},
        {"config": None},
        {"compositions": None},
        {"compositions": [{"event": {}, "count": 1}]},
        {"compositions": [{"event": None, "count": 1}]},
        {
            "compositions": [
                {"event": {"noise_multiplier": 1, "sample_size": 1, "population_size": 9}, "count": 1}
            ]
        },
        {
            "compositions": [
                {"event": {"noise_multiplier": -1, "sample_size": 1, "population_size": 100}, "count": 1}
            ]
        },
        {
            "compositions": [
                {"event": {"noise_multiplier": 1, "sample_size": 1, "population_size": 100}, "count": 0}
            ]
        },
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(damage):
    accountant = SfumatoAccountant(config())
    accountant.compose(event())
    before = accountant.state_dict()
    with pytest.raises(InvalidParameter):
        accountant.load_state_dict({**before, **damage})
    assert accountant.state_dict() == before


def test_what_it_cannot_account_for_is_refused():
    sampling, relation = accounting.SamplingMethod, accounting.NeighboringRelation
    with pytest.raises(NotSupported, match="no gain from sampling"):
        SfumatoAccountant(config(sampling_method=sampling.POISSON))
    replaced = {"sampling_method": sampling.WITHOUT_REPLACEMENT, "neighboring_relation": relation.REPLACE_ONE}
    with pytest.raises(NotSupported, match="sampling"):
        SfumatoAccountant(config(**replaced))
    with pytest.raises(InvalidParameter, match="population_size"):
        SfumatoAccountant(config()).compose(event(population=200))
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(InvalidParameter, match="count"):
            SfumatoAccountant(config()).compose(event(), count=wrong)
    for ask in (lambda it: it.get_epsilon(0), lambda it: it.get_epsilon(1.0), lambda it: it.get_delta(-1)):
        with pytest.raises(SfumatoError):
            ask(SfumatoAccountant(config()))


def test_very_little_noise_has_an_epsilon_too():
    accountant = SfumatoAccountant(config())
    accountant.compose(event(0.01), count=10)
    assert 10_000 < accountant.get_epsilon(1e-5) < math.inf
    assert 0 <= accountant.get_delta(1e6) < 1e-12


def test_flowers_own_wrapper_stops_by_it():
    app = ClientApp()

    @app.train()
    def train(message, context):
        from flwr.app import Message, MetricRecord, RecordDict

        arrays = message.content["arrays"]
        moved = ArrayRecord([array + 0.1 for array in arrays.to_numpy_ndarrays()])
        return Message(
            RecordDict({"arrays": moved, "metrics": MetricRecord({"num-examples": 1})}), reply_to=message
        )

    accountant = SfumatoAccountant(config(limit=12.0))
    inner = FedAvg(fraction_evaluate=0.0, min_train_nodes=4, min_available_nodes=4)
    strategy = DifferentialPrivacyServerSideFixedClipping(inner, 1.0, 1.0, 4, accountant=accountant)
    with pytest.raises(PrivacyBudgetExhausted):
        strategy.start(grid=InProcessGrid(app, 4), initial_arrays=ArrayRecord([np.zeros(3)]), num_rounds=50)
    assert accountant.num_releases == 5
    assert round(strategy.privacy_spent().epsilon, 2) == 11.48
