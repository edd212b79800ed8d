"""A federation in this process, with clients that can misbehave."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from numpy.typing import NDArray

pytest.importorskip("flwr")

from examples.federated.in_process import InProcessGrid, identify
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

__all__ = ["InProcessGrid", "TamperedGrid", "app_of", "identify", "place_of"]

Tamper = Callable[[list[Message], list[Message]], list[Message]]


class TamperedGrid(InProcessGrid):
    """Keeps what was sent; `tamper` sees it and the replies, and returns the replies that arrive."""

    def __init__(self, client_app: Any, nodes: int, tamper: Tamper | None = None) -> None:
        super().__init__(client_app, nodes)
        self.tamper = tamper or (lambda _, replies: replies)
        self.sent: list[list[Message]] = []

    def send_and_receive(self, messages: Iterable[Message], *, timeout=None) -> Iterable[Message]:
        out = list(messages)
        self.sent.append(out)
        replies = list(super().send_and_receive(out, timeout=timeout))
        return self.tamper(out, replies) if out else replies


def place_of(message: Message) -> int:
    """Which client a message came from; strategies ask clients in any order."""
    return message.metadata.src_node_id - 10


def app_of(step: Callable[[int, list[NDArray[Any]]], Any], examples: Callable[[int], float] = lambda _: 1):
    """A client app: `step(place, model)` gives the arrays that a client sends back, or raises."""
    app = ClientApp()

    @app.train()
    def train(message, context):
        place = context.node_config["partition-id"]
        record = message.content["arrays"]
        found = step(place, record.to_numpy_ndarrays())
        if not isinstance(found, ArrayRecord):
            found = ArrayRecord({name: Array(new) for name, new in zip(record, found, strict=True)})
        metrics = MetricRecord({"num-examples": examples(place), "loss": 0.25 + place})
        return Message(RecordDict({"arrays": found, "metrics": metrics}), reply_to=message)

    @app.evaluate()
    def evaluate(message, context):
        metrics = MetricRecord({"num-examples": 1, "loss": 0.5})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app
