"""What clients send: broken replies count as none, and no node counts twice or by a weight that it claims."""

import logging
import math

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import Message
from flwr.serverapp.strategy import FedAvg
from tests.federated.federation import CLIENTS, LARGE, broken, fedavg, plain, plan, push, regression, started
from tests.federated.grid import place_of

from sfumato.federated import Run
from sfumato.federated.flower import CentralDP
from sfumato.laws import SeededBits

KINDS = (
    *("error", "garbage", "lie", "narrow", "padded", "bomb", "nan", "inf", "overflow", "shape"),
    *("broadcast", "complex", "text", "flags", "names", "more", "none"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_that_cannot_be_used_is_the_zero_update(kind):
    result, _ = started(CentralDP(fedavg(), Run(plan(), LARGE), bits=SeededBits(1)), broken(kind), rounds=2)
    expected = plain(Run(plan(), LARGE), regression, rounds=2, absent=(3, 11))
    np.testing.assert_array_equal(result.arrays.to_numpy_ndarrays()[0], expected[0])


def test_two_array_records_in_a_reply_are_the_zero_update():
    def double(sent, replies):
        for reply in replies:
            if place_of(reply) == 3:
                reply.content["again"] = reply.content["arrays"]
            if place_of(reply) == 11:
                del reply.content["arrays"]
        return replies

    strategy = CentralDP(fedavg(), Run(plan(), LARGE), bits=SeededBits(1))
    result, _ = started(strategy, regression, tamper=double)
    expected = plain(Run(plan(), LARGE), regression, absent=(3, 11))
    np.testing.assert_array_equal(result.arrays.to_numpy_ndarrays()[0], expected[0])


def test_a_round_without_any_reply_is_noise_alone_and_charged():
    run = Run(plan(), LARGE)
    strategy = CentralDP(fedavg(), run, bits=SeededBits(1))
    result, _ = started(strategy, regression, tamper=lambda sent, replies: [])
    expected = plain(Run(plan(), LARGE), regression, absent=range(CLIENTS))
    np.testing.assert_array_equal(result.arrays.to_numpy_ndarrays()[0], expected[0])
    assert run.charged == 1


def repeated(sent, replies):
    """One node answers a hundred times, and one that was not asked answers too."""
    stranger = Message(replies[0].content, reply_to=sent[0])
    stranger.metadata.__dict__["_src_node_id"] = 999
    stale = Message(replies[5].content, reply_to=sent[5])
    stale.metadata.__dict__["_reply_to_message_id"] = "an earlier round"
    return [stale, *replies, *[replies[0]] * 100, stranger]


def test_only_the_first_reply_of_a_node_that_was_asked_counts():
    for tamper in (repeated, lambda sent, replies: list(reversed(replies))):
        strategy = CentralDP(fedavg(), Run(plan(), LARGE), bits=SeededBits(1))
        result, _ = started(strategy, push, tamper=tamper)
        expected = plain(Run(plan(), LARGE), push)
        np.testing.assert_array_equal(result.arrays.to_numpy_ndarrays()[0], expected[0])


def test_an_answer_to_an_earlier_round_does_not_count_in_place_of_the_one_that_was_asked_for():
    kept = []

    def step(place, model):
        return push(place, model) if kept else [np.array(model[0]) - np.array([0.0, 1.0, 0.0])]

    def late(sent, replies):
        return [*kept, *in_time(sent, replies)]

    def in_time(sent, replies):
        kept.extend(replies)
        return replies

    def found(tamper):
        kept.clear()
        strategy = CentralDP(fedavg(), Run(plan(), LARGE), bits=SeededBits(1))
        return started(strategy, step, rounds=2, tamper=tamper)[0].arrays.to_numpy_ndarrays()[0]

    np.testing.assert_array_equal(found(late), found(in_time))


def test_a_node_that_is_asked_twice_counts_once():
    class Twice(FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            messages = list(super().configure_train(server_round, arrays, config, grid))
            again = list(super().configure_train(server_round, arrays, config, grid))
            return messages + again[:7]

    inner = Twice(min_train_nodes=2, min_available_nodes=2)
    result, _ = started(CentralDP(inner, Run(plan(), LARGE), bits=SeededBits(1)), push)
    expected = plain(Run(plan(), LARGE), push)
    np.testing.assert_array_equal(result.arrays.to_numpy_ndarrays()[0], expected[0])


def test_nodes_count_without_numbers_on_messages_too():
    def unnumbered(sent, replies):
        for message in sent:
            message.metadata.__dict__["_message_id"] = ""
        return [*replies, *replies]

    strategy = CentralDP(fedavg(), Run(plan(), LARGE), bits=SeededBits(1))
    result, _ = started(strategy, push, tamper=unnumbered)
    expected = plain(Run(plan(), LARGE), push)
    np.testing.assert_array_equal(result.arrays.to_numpy_ndarrays()[0], expected[0])


@pytest.mark.parametrize("weight", [1, 10**9, 0, -5, math.nan, math.inf])
def test_the_number_of_examples_has_no_weight(weight):
    strategy = CentralDP(fedavg(), Run(plan(), LARGE), bits=SeededBits(1))
    result, _ = started(strategy, push, examples=lambda place: weight if place == 2 else 1)
    expected = plain(Run(plan(), LARGE), push)
    np.testing.assert_array_equal(result.arrays.to_numpy_ndarrays()[0], expected[0])


def test_the_log_is_the_same_whatever_clients_send(caplog):
    def lines(step, tamper=None, examples=lambda _: 1):
        caplog.clear()
        run = Run(plan(), LARGE)
        with caplog.at_level(logging.DEBUG, logger="flwr"):
            started(CentralDP(fedavg(), run), step, rounds=2, tamper=tamper, examples=examples)
        return [line for line in caplog.messages if "execution finished in" not in line]

    calm = lines(push)
    assert any("epsilon" in line for line in calm)
    assert lines(push, tamper=lambda sent, replies: []) == calm
    assert lines(push, tamper=lambda sent, replies: replies[5:] * 2, examples=lambda place: place) == calm
    for kind in ("error", "garbage", "nan", "shape", "names", "none"):
        assert lines(broken(kind)) == calm


def test_a_seed_is_told_in_the_log(caplog):
    for bits, told in ((SeededBits(1), True), (None, False)):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="flwr"):
            started(CentralDP(fedavg(), Run(plan(), LARGE), bits=bits), push)
        assert ("The noise is made from a seed" in caplog.text) == told


def test_evaluations_that_are_released_count_once_for_each_node():
    def louder(sent, replies):
        if sent[0].metadata.message_type != "evaluate":
            return replies
        replies[0].content["metrics"]["loss"] = 4.5
        return [*replies, *[replies[0]] * 40]

    strategy = CentralDP(fedavg(), Run(plan(), LARGE), release_metrics=True)
    result, _ = started(strategy, push, tamper=louder)
    assert result.evaluate_metrics_clientapp[1]["loss"] == pytest.approx(0.5 + 4 / CLIENTS)


def test_released_metrics_without_one_record_are_left_out():
    def spoiled(sent, replies):
        for reply in replies:
            if place_of(reply) == 3:
                reply.content["again"] = reply.content["metrics"]
            if place_of(reply) == 11:
                del reply.content["metrics"]
        return replies

    inner = fedavg(fraction_evaluate=0.0)
    strategy = CentralDP(inner, Run(plan(), LARGE), release_metrics=True)
    result, _ = started(strategy, push, tamper=spoiled)
    places = [place for place in range(CLIENTS) if place not in (3, 11)]
    assert result.train_metrics_clientapp[1]["loss"] == pytest.approx(0.25 + np.mean(places))
