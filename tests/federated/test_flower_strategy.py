"""CentralDP under Flower's own `start`: exact, deaf to hostile clients, stopped by its budget."""

import logging
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg, FedAvgM
from tests.federated.federation import (
    CLIENTS,
    LARGE,
    TRUTH,
    broken,
    fedavg,
    plain,
    plan,
    push,
    record,
    regression,
    started,
)
from tests.federated.grid import TamperedGrid, app_of

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.federated import Adaptive, Run
from sfumato.federated.flower import CentralDP
from sfumato.federated.flower_accountant import SfumatoAccountant
from sfumato.laws import SeededBits


def test_fifteen_rounds_find_the_line_at_the_cost_that_the_library_states():
    run = Run(plan(), LARGE)
    result, _ = started(CentralDP(fedavg(), run, bits=SeededBits(1)), regression, rounds=15)
    (weights,) = result.arrays.to_numpy_ndarrays()
    # Noise of a round is 1/40 on each weight; the updates shrink it again.
    assert np.linalg.norm(weights - TRUTH) < 0.2
    assert run.charged == 15
    alone = Run(plan(), LARGE)
    for _ in range(15):
        alone.charge()
    last = result.train_metrics_clientapp[15]
    assert last["epsilon"] == alone.epsilon(1e-5) == run.epsilon(1e-5)
    assert (last["delta"], last["clip-bound"], last["rounds-left"]) == (1e-5, 1.0, run.rounds_left)
    # Another accountant: the closed curve of continuous noise, which the lattice hardly changes.
    accounting = pytest.importorskip("flwr.supercore.privacy_accounting")
    config = accounting.PrivacyConfig(
        target_delta=1e-5,
        population_size=CLIENTS,
        neighboring_relation=accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        sampling_method=accounting.SamplingMethod.NO_AMPLIFICATION,
    )
    other = SfumatoAccountant(config)
    other.compose(accounting.GaussianPrivacyEvent(1.0, CLIENTS, CLIENTS), count=15)
    assert last["epsilon"] == pytest.approx(other.get_epsilon(1e-5), rel=1e-4)


def test_the_model_is_exactly_that_of_the_plain_functions():
    result, _ = started(CentralDP(fedavg(), Run(plan(), LARGE), bits=SeededBits(7)), regression, rounds=5)
    expected = plain(Run(plan(), LARGE), regression, rounds=5, seed=7)
    np.testing.assert_array_equal(result.arrays.to_numpy_ndarrays()[0], expected[0])
    other = plain(Run(plan(), LARGE), regression, rounds=5, seed=8)
    assert not np.array_equal(other[0], expected[0])


def test_a_run_stops_at_its_budget_and_keeps_the_last_model(caplog):
    run = Run(plan(), sf.ApproxDP(12, 1e-5))
    strategy = CentralDP(fedavg(), run, bits=SeededBits(3))
    with caplog.at_level(logging.WARNING, logger="flwr"):
        result, grid = started(strategy, regression, rounds=50)
    assert run.charged == run.rounds == 5
    assert run.rounds_left == 0
    assert run.epsilon(1e-5) <= 12
    assert [len(messages) for messages in grid.sent] == [CLIENTS, 0] * 5
    expected = plain(Run(plan(), sf.ApproxDP(12, 1e-5)), regression, rounds=5, seed=3)
    np.testing.assert_array_equal(result.arrays.to_numpy_ndarrays()[0], expected[0])
    np.testing.assert_array_equal(strategy.arrays.to_numpy_ndarrays()[0], expected[0])
    assert strategy.stopped.startswith("stopped after 5 of 50 rounds: it has 5 in all within ApproxDP(")
    assert "stopped after 5 of 50 rounds" in caplog.text
    # No further round, by any door; nothing is sent.
    with pytest.raises(BudgetExceeded, match="round 6 does not fit"):
        started(strategy, regression, rounds=1)
    with pytest.raises(BudgetExceeded):
        strategy.configure_train(6, record(np.zeros(3)), ConfigRecord(), grid)
    assert len(grid.sent) == 10
    assert run.charged == 5


def test_a_budget_that_another_used_up_ends_the_run_and_leaves_the_model():
    run = Run(plan(), sf.ApproxDP(12, 1e-5))
    strategy = CentralDP(fedavg(), run)

    def others_spend(sent, replies):
        if run.charged == 2:
            for _ in range(3):
                run.charge()
        return replies

    with pytest.raises(BudgetExceeded):
        started(strategy, regression, rounds=4, tamper=others_spend)
    assert len(strategy.bounds) == 2
    assert strategy.arrays.to_numpy_ndarrays()[0].shape == (3,)


def test_a_run_within_its_budget_is_not_stopped():
    strategy = CentralDP(fedavg(), Run(plan(), sf.ApproxDP(12, 1e-5)))
    started(strategy, regression, rounds=5)
    assert strategy.stopped is None


def test_a_round_is_charged_before_a_reply_is_read():
    run = Run(plan(), LARGE)
    strategy, seen = CentralDP(fedavg(), run), []

    def looked_at(sent, replies):
        for reply in replies:
            seen.append(run.charged)
            yield reply

    started(strategy, regression, rounds=2, tamper=looked_at)
    assert set(seen) == {1, 2}
    assert len(seen) == 2 * CLIENTS


def test_metrics_of_clients_are_dropped_and_no_evaluation_is_asked_for():
    strategy = CentralDP(fedavg(), Run(plan(), LARGE))
    result, grid = started(strategy, regression, rounds=2)
    public = {"clip-bound", "rounds-left", "epsilon", "delta"}
    assert [set(metrics) for metrics in result.train_metrics_clientapp.values()] == [public, public]
    assert result.evaluate_metrics_clientapp == {}
    assert [len(messages) for messages in grid.sent] == [CLIENTS, 0] * 2
    replies = [Message(RecordDict({"metrics": MetricRecord({"loss": 1.0})}), reply_to=grid.sent[0][0])]
    assert strategy.aggregate_evaluate(1, replies) is None


def test_metrics_of_clients_are_released_if_that_is_asked_for():
    strategy = CentralDP(fedavg(), Run(plan(), LARGE), release_metrics=True)
    result, _ = started(strategy, broken("error"), rounds=1)
    places = [place for place in range(CLIENTS) if place not in (3, 11)]
    assert result.train_metrics_clientapp[1]["loss"] == pytest.approx(0.25 + np.mean(places))
    assert result.evaluate_metrics_clientapp[1]["loss"] == pytest.approx(0.5)
    with pytest.raises(InvalidParameter, match="release_metrics must be True or False"):
        CentralDP(fedavg(), Run(plan(), LARGE), release_metrics="no")


def test_released_metrics_that_do_not_fit_together_or_claim_a_cost_end_nothing():
    def lists(sent, replies):
        for place, reply in enumerate(replies):
            record = reply.content["metrics"] if not reply.has_error() else None
            if record is not None and "loss" in record and sent[0].metadata.message_type == "train":
                record["epsilon"] = 0.0
                record["path"] = [1.0] * (1 + place % 2)
        return replies

    strategy = CentralDP(fedavg(fraction_evaluate=0.0), Run(plan(), LARGE), release_metrics=True)
    result, _ = started(strategy, regression, tamper=lists)
    assert result.train_metrics_clientapp[1]["epsilon"] > 1
    assert "loss" not in result.train_metrics_clientapp[1]

    def claims(sent, replies):
        for reply in replies:
            reply.content["metrics"]["epsilon"] = 0.0
        return replies

    strategy = CentralDP(fedavg(fraction_evaluate=0.0), Run(plan(), LARGE), release_metrics=True)
    result, _ = started(strategy, regression, tamper=claims)
    assert result.train_metrics_clientapp[1]["epsilon"] > 1
    assert "loss" in result.train_metrics_clientapp[1]


def test_a_server_optimiser_moves_by_the_noisy_mean():
    eta, tau = 0.3, 0.01
    inner = FedAdam(eta=eta, beta_1=0.0, beta_2=0.0, tau=tau, min_train_nodes=2, min_available_nodes=2)
    strategy = CentralDP(inner, Run(plan(), LARGE), bits=SeededBits(5))
    result, _ = started(strategy, regression)
    (mean,) = plain(Run(plan(), LARGE), regression, seed=5)
    # Without memory Adam divides by the absolute value, so every weight moves by about eta.
    np.testing.assert_allclose(
        result.arrays.to_numpy_ndarrays()[0], eta * mean / (np.abs(mean) + tau), rtol=1e-12
    )

    inner = FedAvgM(server_momentum=0.5, min_train_nodes=2, min_available_nodes=2)
    strategy = CentralDP(inner, Run(plan(), LARGE), bits=SeededBits(5))
    result, _ = started(strategy, push, rounds=2)
    run, bits = Run(plan(), LARGE), SeededBits(5)
    ones = [[np.array([1.0, 0.0, 0.0])]] * CLIENTS
    first, second = (run.round(ones, bits).mean_update[0] for _ in range(2))
    np.testing.assert_allclose(
        result.arrays.to_numpy_ndarrays()[0], first + (0.5 * first + second), rtol=1e-9, atol=1e-12
    )


def test_adam_trains_a_line():
    inner = FedAdam(eta=0.3, min_train_nodes=2, min_available_nodes=2)
    result, _ = started(CentralDP(inner, Run(plan(), LARGE), bits=SeededBits(2)), regression, rounds=30)
    assert np.linalg.norm(result.arrays.to_numpy_ndarrays()[0] - TRUTH) < 0.5


def test_layers_keep_their_names_and_types():
    model = ArrayRecord(
        {
            "a.weight": Array(np.zeros((2, 2), dtype=np.float32)),
            "a.steps": Array(np.array(250, dtype=np.uint8)),
            "b": Array(np.array([2**62], dtype=np.int64)),
        }
    )

    def step(place, layers):
        return [layers[0] + np.float32(0.1), layers[1] + np.uint8(1), layers[2] + 1]

    shapes = ((2, 2), (), (1,))
    strategy = CentralDP(fedavg(), Run(plan(shapes, bound=100), LARGE))
    result, _ = started(strategy, step, model=model, rounds=3)
    assert list(result.arrays) == list(model)
    found = result.arrays.to_numpy_ndarrays()
    assert [array.dtype for array in found] == [np.float32, np.uint8, np.int64]
    assert [array.shape for array in found] == list(shapes)
    assert all(np.isfinite(array).all() for array in found)


def test_nothing_but_the_model_goes_to_clients_even_if_the_bound_adapts():
    adaptive = Adaptive(lowest=0.01, highest=100)
    strategy = CentralDP(fedavg(), Run(plan(adaptive=adaptive), LARGE))
    _, grid = started(strategy, regression, rounds=3)
    for messages in grid.sent:
        for message in messages:
            assert set(message.content) == {"arrays", "config"}
            assert set(message.content["config"]) == {"server-round"}


def test_a_model_of_other_shapes_is_refused_before_anything_is_sent():
    for model in (record(np.zeros(4)), record(np.zeros(3), np.zeros(1)), record(np.zeros(3) * 1j)):
        strategy, grid = CentralDP(fedavg(), Run(plan(), LARGE)), TamperedGrid(app_of(regression), CLIENTS)
        with pytest.raises(InvalidParameter, match="arrays must"):
            strategy.start(grid=grid, initial_arrays=model)
        assert grid.sent == []
        assert strategy.run.charged == 0


def test_a_model_that_is_not_finite_is_refused_before_a_round_is_paid_for_noise_alone():
    for number in (np.nan, np.inf, -np.inf):
        strategy = CentralDP(fedavg(), Run(plan(), LARGE))
        with pytest.raises(InvalidParameter, match=r"^arrays must be finite"):
            started(strategy, regression, model=record(np.array([number, 0.0, 0.0])))
        assert strategy.run.charged == 0


def test_a_round_is_aggregated_once_and_only_if_it_was_configured():
    strategy = CentralDP(fedavg(), Run(plan(), LARGE))
    with pytest.raises(InvalidParameter, match="server_round"):
        strategy.aggregate_train(1, [])
    grid = TamperedGrid(app_of(regression), CLIENTS)
    messages = strategy.configure_train(1, record(np.zeros(3)), ConfigRecord(), grid)
    replies = grid.send_and_receive(messages)
    with pytest.raises(InvalidParameter, match="server_round"):
        strategy.aggregate_train(2, replies)
    messages = strategy.configure_train(2, record(np.zeros(3)), ConfigRecord(), grid)
    strategy.aggregate_train(2, grid.send_and_receive(messages))
    with pytest.raises(InvalidParameter, match="server_round"):
        strategy.aggregate_train(2, replies)
    assert strategy.run.charged == 1


def test_a_round_that_asks_nobody_costs_nothing():
    strategy = CentralDP(FedAvg(fraction_train=0.0), Run(plan(), LARGE))
    started(strategy, regression, rounds=2)
    assert strategy.run.charged == 0


def test_a_zcdp_budget_is_told_as_rho():
    strategy = CentralDP(fedavg(), Run(plan(), sf.ZCDP(2)))
    result, _ = started(strategy, regression, rounds=9)
    assert len(result.train_metrics_clientapp) == 4
    assert result.train_metrics_clientapp[4]["rho"] == 2.0


def test_what_is_no_strategy_or_no_run_is_refused():
    with pytest.raises(InvalidParameter, match="inner must be a strategy"):
        CentralDP("FedAvg", Run(plan(), LARGE))
    with pytest.raises(InvalidParameter, match="run must be a Run"):
        CentralDP(fedavg(), plan())


def test_a_node_that_joins_may_displace_another_in_a_sample_and_substitution_pays_for_that(caplog):
    class FirstTen(FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            messages = super().configure_train(server_round, arrays, config, grid)
            asked = sorted(grid.get_node_ids())[:10]
            return [message for message in messages if message.metadata.dst_node_id in asked]

    def opposed(place, model):
        # The node that left was the first; the one that takes its place pulls the other way.
        return push(place, model) if place < 10 else [np.array(model[0]) - np.array([1.0, 0.0, 0.0])]

    found = []
    for gone in ((), (10,)):
        grid = TamperedGrid(app_of(opposed), 11)
        grid.nodes = [node for node in grid.nodes if node not in gone]
        inner = FirstTen(min_train_nodes=2, min_available_nodes=2)
        strategy = CentralDP(inner, Run(plan(clients=10), LARGE), bits=SeededBits(1))
        result = strategy.start(grid=grid, initial_arrays=record(np.zeros(3)), num_rounds=1)
        found.append(result.arrays.to_numpy_ndarrays()[0] * 10)
    moved = np.linalg.norm(found[0] - found[1])
    assert moved == pytest.approx(2, abs=1e-5)
    costs = {
        name: plan(clients=10, neighbours=name).event.sensitivity_squared / 4**20
        for name in ("add-remove", "substitution")
    }
    assert costs == {"add-remove": 1, "substitution": 4}
    with caplog.at_level(logging.WARNING, logger="flwr"):
        started(CentralDP(fedavg(fraction_train=0.5), Run(plan(), LARGE)), regression)
    assert "A sample of the clients is asked" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="flwr"):
        run = Run(plan(neighbours="substitution"), LARGE)
        started(CentralDP(fedavg(fraction_train=0.5), run), regression)
    assert "A sample of the clients is asked" not in caplog.text


def test_clients_that_differ_from_the_expected_number_are_told_in_the_log(caplog):
    strategy = CentralDP(fedavg(), Run(plan(clients=50), LARGE), bits=SeededBits(1))
    with caplog.at_level(logging.WARNING, logger="flwr"):
        started(strategy, regression)
    assert "The sum over 40 clients is divided by the expected 50." in caplog.text


def test_the_plain_functions_do_not_import_flower():
    code = "import sys, sfumato.federated; print('flwr' in sys.modules, 'ray' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (found.stdout.strip(), found.stderr) == ("False False", "")


def test_an_error_reply_is_one_of_flower():
    grid = TamperedGrid(app_of(broken("error")), CLIENTS)
    messages = fedavg().configure_train(1, record(np.zeros(3)), ConfigRecord(), grid)
    replies = grid.send_and_receive(messages)
    assert sum(isinstance(reply.error, Error) for reply in replies if reply.has_error()) == 2


def test_bounds_are_exact_numbers_of_the_run():
    strategy = CentralDP(fedavg(), Run(plan(bound=Fraction(1, 3)), LARGE))
    started(strategy, regression, rounds=2)
    assert strategy.bounds == [float(Fraction(1, 3))] * 2
