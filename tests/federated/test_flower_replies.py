"""What clients send: broken replies count as none, and no node counts twice or by a weight that it claims."""

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
    *("error", "garbage", "lie", "bomb", "nan", "inf", "overflow", "shape"),
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
