"""Mods on clients of Flower: what leaves a client is clipped, or private by itself."""

import math

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from tests.federated.grid import TamperedGrid, identify

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.federated import Aggregator, LocalNoise, Run, clip
from sfumato.federated.flower import CentralDP
from sfumato.federated.flower_mods import STATE, clip_mod, local_dp_mod
from sfumato.laws import SeededBits
from sfumato.privacy import gaussian_vector_delta

MODEL = (np.array([1.0, 2.0, 3.0]), np.array([[10.0, 20.0]]))
SHAPES = ((3,), (1, 2))
MOVE = (np.array([3.0, 0.0, 0.0]), np.array([[0.0, 4.0]]))


def message_of(kind="train", model=MODEL) -> Message:
    identify()
    record = ArrayRecord({f"layer {place}": Array(array) for place, array in enumerate(model)})
    content = {"model": record, "config": ConfigRecord({"server-round": 1})}
    return Message(RecordDict(content), 5, kind)


def context() -> Context:
    return Context(run_id=1, node_id=5, node_config={}, state=RecordDict(), run_config={})


def client(change=MOVE, *, metrics=None, error=None, fails=False):
    """What a client app does with a message: add the change to the model."""

    def call_next(message, context):
        if fails:
            raise ValueError("a datum in a traceback: 4711")
        if error is not None:
            return Message(Error(1, error), reply_to=message)
        sent = message.content["model"]
        arrays = {
            name: Array(array.numpy() + more)
            for (name, array), more in zip(sent.items(), change, strict=True)
        }
        content = {
            "theirs": ArrayRecord(arrays),
            "all": MetricRecord(metrics or {"num-examples": 17, "loss": 0.3}),
        }
        return Message(RecordDict(content), reply_to=message)

    return call_next


def moved(reply, model=MODEL):
    (record,) = reply.content.array_records.values()
    return [new - old for new, old in zip(record.to_numpy_ndarrays(), model, strict=True)]


def length(arrays):
    return math.sqrt(sum(float((array**2).sum()) for array in arrays))


def test_clipping_scales_all_layers_together():
    reply = clip_mod(1)(message_of(), context(), client())
    found = moved(reply)
    assert length(found) <= 1
    np.testing.assert_allclose(found[0], [0.6, 0, 0], atol=1e-5)
    np.testing.assert_allclose(found[1], [[0, 0.8]], atol=1e-5)
    assert reply.content["all"]["num-examples"] == 17
    assert list(reply.content.array_records["model"]) == ["layer 0", "layer 1"]
    for new, step in zip(found, clip(list(MOVE), 1).values(1), strict=True):
        np.testing.assert_allclose(new, step, atol=1e-14)


def test_a_short_update_is_left_alone_up_to_the_lattice():
    found = moved(clip_mod(100)(message_of(), context(), client()))
    for new, step in zip(found, MOVE, strict=True):
        np.testing.assert_allclose(new, step, atol=100 / 2**20)
    assert length(moved(clip_mod(1)(message_of(), context(), client((0.0, 0.0))))) == 0


@pytest.mark.parametrize("change", [(np.nan, 0.0), (0.0, np.inf), (np.zeros((2, 3)), 0.0), (1j, 0.0)])
def test_an_update_that_cannot_be_clipped_leaves_as_no_change(change):
    assert length(moved(clip_mod(1)(message_of(), context(), client(change)))) == 0


def test_clipping_lets_errors_and_evaluations_pass():
    assert clip_mod(1)(message_of(), context(), client(error="failed")).error.reason == "failed"
    reply = clip_mod(1)(message_of("evaluate"), context(), client())
    np.testing.assert_array_equal(moved(reply)[0], MOVE[0])


def test_local_noise_is_that_of_the_library():
    budget = sf.ApproxDP(3, 1e-5)
    mod = local_dp_mod(budget, 1, rounds=4, bits=SeededBits(9))
    found = moved(mod(message_of(), context(), client()))
    noise = LocalNoise(budget=budget, bound=1, shapes=SHAPES, rounds=4)
    expected = noise.release(list(MOVE), SeededBits(9))
    for new, step in zip(found, expected, strict=True):
        np.testing.assert_allclose(new, step, atol=1e-12)


def spread_of(mod, coordinates=5_000):
    """The scale of the noise that a mod adds, measured where nothing moves."""
    model = (np.zeros(coordinates),)
    reply = mod(message_of(model=model), context(), client((0.0,)))
    return math.sqrt(float(np.mean(moved(reply, model)[0] ** 2)))


def keeps_its_promise(sigma, bound, epsilon, delta, coordinates=1):
    """Whether noise of this scale is (epsilon, delta)-private for any two updates within the bound."""
    step = 2.0**-20
    found = gaussian_vector_delta(
        epsilon,
        sigma_squared=(sigma / step) ** 2,
        sensitivity_squared=(2 * bound / step) ** 2,
        coordinates=coordinates,
    )
    return found <= delta * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 10.0])
def test_local_noise_is_enough_where_the_textbook_formula_is_not(epsilon):
    bound, delta = 2, 1e-5
    noise = LocalNoise(budget=sf.ApproxDP(epsilon, delta), bound=bound, shapes=((1,),))
    assert keeps_its_promise(noise.sigma, bound, epsilon, delta)
    assert not keeps_its_promise(noise.sigma * 0.99, bound, epsilon, delta)
    # 5000 values measure their scale to a per cent.
    found = spread_of(local_dp_mod(sf.ApproxDP(epsilon, delta), bound, bits=SeededBits(1)))
    assert abs(found / noise.sigma - 1) < 0.05
    # Mutants: the sensitivity of one update's length, and the classical formula above epsilon 1.
    root = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert not keeps_its_promise(bound * root, bound, epsilon, delta)
    assert keeps_its_promise(2 * bound * root, bound, epsilon, delta) == (epsilon <= 1)


@pytest.mark.parametrize("budget", [(0, 1e-5), (1, 0), (-1, 1e-5), (1, 1)])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(InvalidParameter):
        local_dp_mod(sf.ApproxDP(*budget), 1)
    for wrong in (sf.PureDP(1), 3, None):
        with pytest.raises(InvalidParameter, match="budget"):
            local_dp_mod(wrong, 1)
    with pytest.raises(InvalidParameter, match="bound"):
        local_dp_mod(sf.ZCDP(1), 0)
    with pytest.raises(InvalidParameter, match="rounds"):
        local_dp_mod(sf.ZCDP(1), 1, rounds=0)
    with pytest.raises(InvalidParameter, match="bound"):
        clip_mod(-1)


@pytest.mark.parametrize(
    "behaviour",
    [
        {"change": (np.nan, 0.0)},
        {"change": (np.zeros((2, 3)), 0.0)},
        {"error": "a datum in an error: 4711"},
        {"fails": True},
        {"change": (0.0, 0.0)},
    ],
)
def test_a_client_that_fails_sends_noise_alone_and_nobody_can_tell(behaviour):
    mod = local_dp_mod(sf.ZCDP(1), 1, bits=SeededBits(3))
    reply = mod(message_of(), context(), client(**behaviour))
    still = local_dp_mod(sf.ZCDP(1), 1, bits=SeededBits(3))(message_of(), context(), client((0.0, 0.0)))
    assert not reply.has_error()
    assert set(reply.content) == set(still.content)
    for one, other in zip(moved(reply), moved(still), strict=True):
        np.testing.assert_array_equal(one, other)
    assert "4711" not in repr(reply.content)


def test_metrics_and_evaluations_do_not_leave_unless_released():
    hidden = local_dp_mod(sf.ZCDP(1), 1)
    reply = hidden(message_of(), context(), client())
    assert {name: dict(found) for name, found in reply.content.metric_records.items()} == {
        "metrics": {"num-examples": 1.0}
    }
    asked = []
    reply = hidden(message_of("evaluate"), context(), lambda *both: asked.append(both))
    assert asked == []
    assert dict(reply.content["metrics"]) == {"num-examples": 1.0}
    shown = local_dp_mod(sf.ZCDP(1), 1, release_metrics=True)
    assert shown(message_of(), context(), client()).content["all"]["num-examples"] == 17
    assert shown(message_of("evaluate"), context(), client()).content["all"]["loss"] == 0.3


def test_a_client_answers_as_often_as_its_budget_pays_for():
    mod, own = local_dp_mod(sf.ZCDP(1), 1, rounds=2), context()
    for _ in range(2):
        assert not mod(message_of(), own, client()).has_error()
    called = []
    reply = mod(message_of(), own, lambda *both: called.append(both))
    assert reply.has_error()
    assert "pays for 2 answers" in reply.error.reason
    assert called == []
    assert own.state[STATE]["rounds"] == 2


def test_an_answer_is_counted_before_it_is_computed():
    mod, own, seen = local_dp_mod(sf.ZCDP(1), 1, rounds=2), context(), []

    def looks(message, found):
        seen.append(found.state[STATE]["rounds"])
        raise RuntimeError("stopped in the middle")

    mod(message_of(), own, looks)
    assert seen == [1]


def test_a_server_cannot_change_the_model_during_a_run():
    mod, own = local_dp_mod(sf.ZCDP(1), 1, rounds=5), context()
    mod(message_of(), own, client())
    other = (np.zeros(4),)
    reply = mod(message_of(model=other), own, client((0.0,)))
    assert "other shapes" in reply.error.reason
    assert own.state[STATE]["rounds"] == 1


def test_hostile_numbers_in_the_model_raise_nothing():
    for value in (math.inf, math.nan, 1.7e308):
        model = (np.full(3, value),)
        reply = local_dp_mod(sf.ZCDP(1), 1)(message_of(model=model), context(), client((0.0,)))
        assert not reply.has_error()
    empty = Message(RecordDict(), reply_to=message_of())
    with pytest.raises(InvalidParameter, match="one model"):
        local_dp_mod(sf.ZCDP(1), 1)(empty, context(), client())


def test_the_type_of_the_model_is_kept_and_whole_numbers_get_noise_too():
    model = (np.zeros(3, dtype=np.float32), np.array([5], dtype=np.int64))
    reply = local_dp_mod(sf.ZCDP(1), 1)(message_of(model=model), context(), client((0.0, 0)))
    (record,) = reply.content.array_records.values()
    first, second = record.to_numpy_ndarrays()
    assert first.dtype == np.float32
    assert second.dtype == np.float64
    assert second[0] != 5


def app_with(mods) -> ClientApp:
    app = ClientApp(mods=mods)

    @app.train()
    def train(message, context):
        ((name, record),) = message.content.array_records.items()
        arrays = ArrayRecord([array + 5.0 for array in record.to_numpy_ndarrays()])
        metrics = MetricRecord({"num-examples": 17, "loss": 1.0})
        return Message(RecordDict({name: arrays, "metrics": metrics}), reply_to=message)

    return app


def test_mods_work_inside_a_client_app_with_both_strategies():
    first = ArrayRecord([np.zeros(2)])
    inner = {"min_train_nodes": 2, "min_available_nodes": 2, "fraction_evaluate": 0.0}
    grid = TamperedGrid(app_with([local_dp_mod(sf.ZCDP(50), 1, rounds=3)]), 50)
    result = FedAvg(**inner).start(grid=grid, initial_arrays=first, num_rounds=3)
    found = result.arrays.to_numpy_ndarrays()[0]
    # Three moves of 1/sqrt(2) each; noise of 0.35 a client and round is averaged over 50 clients.
    np.testing.assert_allclose(found, [3 / math.sqrt(2)] * 2, atol=0.5)

    plan = Aggregator(
        bound=1, noise_multiplier=1, expected_clients=50, neighbours="add-remove", shapes=((2,),)
    )
    grid = TamperedGrid(app_with([clip_mod(1)]), 50)
    strategy = CentralDP(FedAvg(**inner), Run(plan, sf.ApproxDP(100, 1e-5)), bits=SeededBits(1))
    result = strategy.start(grid=grid, initial_arrays=first, num_rounds=3)
    np.testing.assert_allclose(result.arrays.to_numpy_ndarrays()[0], [3 / math.sqrt(2)] * 2, atol=0.2)
