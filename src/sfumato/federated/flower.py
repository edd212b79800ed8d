"""Flower's strategies with differential privacy: the plain functions of this folder behind its messages.

A strategy of Flower, such as FedAvg or FedAdam, chooses clients and moves the model. `CentralDP` stands
between it and the replies: the strategy sees none of them, but a single pseudo reply that holds the noisy
mean. All that it does with it is post-processing. The file can be imported without Flower; using it then says
what to install.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import boolean, shown
from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.federated.clipping import Shapes
from sfumato.federated.flower_replies import difference
from sfumato.federated.run import Run
from sfumato.laws import Bits
from sfumato.privacy import ApproxDP

try:
    from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp.strategy import Strategy
except ImportError:
    Strategy = object

__all__ = ["CentralDP"]

Layers = tuple[NDArray[Any], ...]

# Flower writes what it does under this name; what a run costs belongs there.
_log = logging.getLogger("flwr")


@dataclass(frozen=True)
class Asked:
    """What was sent in a round: the model by names and layers, and the messages to each node."""

    server_round: int
    names: tuple[str, ...]
    layers: Layers
    messages: dict[int, list[Any]]


class CentralDP(Strategy):  # type: ignore[misc, unused-ignore]
    r"""A strategy of Flower whose clients' updates are clipped, added up and released with exact noise.

    Guarantee:
        Models and metrics of all rounds together satisfy the budget of `run`, for one node with all its data,
        against everybody but the server. Each node that was asked counts once, by its first reply; a reply
        that is an error, misshapen or not finite counts as the zero update; weights such as the number of
        examples are ignored. A round is charged before a reply is read. Metrics of clients are dropped,
        unless `release_metrics`: they are outside of the guarantee. Which nodes are asked counts as
        public, and Flower answers for it that a reply is from the node it names. Where a sample of the nodes
        is asked, a node that joins may displace another: choose "substitution" to protect that too. No
        smaller epsilon is claimed for samples. Proof: docs/proofs/federated.md, theorem 4.

    Args:
        inner: the strategy that chooses clients and moves the model: FedAvg, FedAvgM, FedAdam, FedYogi,
            FedAdagrad or FedProx. It is handed the noisy mean as the reply of one client, so one that
            compares replies, such as Krum or a median, has nothing to compare.
        run: the rounds with their noise, bound and budget; `run.aggregator.shapes` are those of the model.
        release_metrics: whether metrics of clients are released, without noise.
        bits: where the noise comes from, the operating system unless told; with a seed there is no guarantee.

    Raises:
        MissingExtra: Flower is not installed.
        InvalidParameter: the model has other shapes than the run, or numbers that are not real and finite.
        BudgetExceeded: a round does not fit; nothing was sent. `arrays` has the last model.

    References:
        [MRTZ18], [ATMR21].

    The budget ends a run without an error: `start` asks for as many rounds as fit, says so in the log and
    in `stopped`, and returns the last model. ::

        shapes = tuple(array.shape for array in model)
        size = sum(array.size for array in model)
        budget = sf.ApproxDP(4, 1e-5)
        noise = noise_for(budget, 20, neighbours="add-remove", coordinates=size)
        plan = Aggregator(
            bound=1, noise_multiplier=noise, expected_clients=100, neighbours="add-remove", shapes=shapes
        )
        strategy = CentralDP(FedAvg(fraction_evaluate=0.0), Run(plan, budget))
        result = strategy.start(grid=grid, initial_arrays=ArrayRecord(model), num_rounds=20)
    """

    def __init__(
        self, inner: Any, run: Run, *, release_metrics: bool = False, bits: Bits | None = None
    ) -> None:
        if Strategy is object:
            raise MissingExtra('a strategy of Flower needs the package flwr: pip install "sfumato[flower]"')
        if not isinstance(inner, Strategy):
            raise InvalidParameter(f"inner must be a strategy of Flower, got inner={shown(inner)}")
        if not isinstance(run, Run):
            raise InvalidParameter(f"run must be a Run, got run={shown(run)}")
        self.inner, self.run, self.bits = inner, run, bits
        self.release_metrics = boolean("release_metrics", release_metrics)
        #: The model that was released last; the next one starts from it.
        self.arrays: Any = None
        #: The clipping bounds of the rounds released so far.
        self.bounds: list[float] = []
        #: Why `start` ended before the rounds that it was asked for, or None.
        self.stopped: str | None = None
        self._asked: Asked | None = None
        self._evaluating: dict[int, list[Any]] = {}

    def summary(self) -> None:
        """Write the settings to Flower's log."""
        plan = self.run.aggregator
        for line in (
            f"Differential privacy: {self.run.budget!r} for {plan.neighbours} of one client",
            f"Noise multiplier {float(plan.noise_multiplier):.6g}, bound {float(plan.bound):.6g}, "
            f"divided by {plan.expected_clients} clients, {self.run.rounds_left} rounds left",
        ):
            _log.info("\t├──> %s", line)
        if self.bits is not None and not self.bits.private:
            _log.warning("The noise is made from a seed: there is no guarantee.")
        if plan.neighbours == "add-remove" and getattr(self.inner, "fraction_train", 1.0) < 1:
            _log.warning(
                "A sample of the clients is asked: who is asked counts as public. A client that joins may "
                'displace another; neighbours="substitution" covers that.'
            )
        self.inner.summary()

    def start(self, grid: Any, initial_arrays: Any, num_rounds: int = 3, *options: Any, **more: Any) -> Any:
        """Flower's `start`, with no more rounds than the run has left."""
        self.run.require()
        fitting = min(num_rounds, self.run.rounds_left)
        self.stopped = None
        if fitting < num_rounds:
            self.stopped = (
                f"stopped after {fitting} of {num_rounds} rounds: it has {self.run.rounds} in all within "
                f"{self.run.budget!r}"
            )
            _log.warning("There are %d of the %d rounds that were asked for.", fitting, num_rounds)
        result = super().start(grid, initial_arrays, fitting, *options, **more)
        if self.stopped:
            _log.warning("The run %s. The model is that of the last round.", self.stopped)
        return result

    def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Iterable[Any]:
        """Messages to clients, or BudgetExceeded before any is made."""
        self.run.require()
        layers = tuple(np.asarray(array.numpy()) for array in arrays.values())
        _check_model(layers, self.run.aggregator.shapes)
        messages = list(self.inner.configure_train(server_round, arrays, config, grid))
        asked = _by_node(messages)
        expected = self.run.aggregator.expected_clients
        if asked and len(asked) != expected:
            _log.warning("The sum over %d clients is divided by the expected %d.", len(asked), expected)
        self._asked = Asked(server_round, tuple(arrays.keys()), layers, asked)
        return messages

    def aggregate_train(self, server_round: int, replies: Iterable[Any]) -> tuple[Any, Any]:
        """Charge the round, then read the replies: the model moved by their noisy mean, and what it cost."""
        asked, self._asked = self._asked, None
        if asked is None or asked.server_round != server_round:
            raise InvalidParameter(
                f"server_round must be that of the last configure_train, each aggregated once, got "
                f"server_round={shown(server_round)}"
            )
        if not asked.messages:
            return None, None
        read: list[Any] = []
        answer = self.run.round(self._updates(asked, replies, read), self.bits)
        self.bounds.append(float(answer.bound))
        moved = [
            _like(old.astype(np.float64) + change, old)
            for old, change in zip(asked.layers, answer.mean_update, strict=True)
        ]
        arrays, _ = self.inner.aggregate_train(server_round, [self._pseudo_reply(asked, moved)])
        if arrays is not None:
            kinds = dict(zip(asked.names, asked.layers, strict=True))
            self.arrays = arrays = _record(
                {name: _like(array.numpy(), kinds[name]) for name, array in arrays.items()}
            )
        # What a client calls "epsilon" does not replace the cost.
        return arrays, MetricRecord({**self._client_metrics(read), **self._costs(answer.bound)})

    def configure_evaluate(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Iterable[Any]:
        """Messages to clients if their metrics are released, and none otherwise."""
        if not self.release_metrics:
            return []
        messages = list(self.inner.configure_evaluate(server_round, arrays, config, grid))
        self._evaluating = _by_node(messages)
        return messages

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Any]) -> Any:
        """Metrics of clients, without noise, if they are released; None otherwise."""
        if not self.release_metrics:
            return None
        return self.inner.aggregate_evaluate(server_round, list(_once(self._evaluating, replies)))

    def _updates(self, asked: Asked, replies: Iterable[Any], read: list[Any]) -> Iterator[list[Any] | None]:
        """The update of every node that was asked, once; what else it sent is kept only to be released."""
        for reply in _once(asked.messages, replies):
            if self.release_metrics and reply.has_content():
                read.append(reply.content)
            yield difference(reply, asked.names, asked.layers)

    def _pseudo_reply(self, asked: Asked, moved: Sequence[NDArray[Any]]) -> Any:
        weight = getattr(self.inner, "weighted_by_key", "num-examples")
        place = getattr(self.inner, "arrayrecord_key", "arrays")
        content = RecordDict(
            {
                place: _record(dict(zip(asked.names, moved, strict=True))),
                "metrics": MetricRecord({weight: 1.0}),
            }
        )
        first = next(iter(asked.messages.values()))[0]
        return Message(content, reply_to=first)

    def _costs(self, bound: Fraction) -> dict[str, float]:
        """What the rounds so far cost: public numbers."""
        spent = {"clip-bound": float(bound), "rounds-left": self.run.rounds_left}
        if isinstance(self.run.budget, ApproxDP):
            delta = self.run.budget.delta
            return {**spent, "epsilon": self.run.epsilon(delta), "delta": float(delta)}
        return {**spent, "rho": float(self.run.spent.rho)}

    def _client_metrics(self, contents: list[Any]) -> dict[str, Any]:
        weight = getattr(self.inner, "weighted_by_key", "num-examples")
        gather = getattr(self.inner, "train_metrics_aggr_fn", None)
        sound = [content for content in contents if _has_weight(content, weight)]
        if gather is None or not sound:
            return {}
        try:
            return dict(gather(sound, weight))
        except (ArithmeticError, LookupError, TypeError, ValueError):
            # One client's malformed metrics must not end the run of all.
            _log.warning("Metrics of clients do not fit together and are left out.")
            return {}


def _by_node(messages: Iterable[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for message in messages:
        found.setdefault(message.metadata.dst_node_id, []).append(message)
    return found


def _once(asked: dict[int, list[Any]], replies: Iterable[Any]) -> Iterator[Any]:
    """The first reply of every node that was asked: what one node sends must count once, or not at all."""
    waiting = dict(asked)
    for reply in replies:
        node = reply.metadata.src_node_id
        # Grids number the messages that they take; without numbers the node alone decides.
        sent = {message.metadata.message_id for message in waiting.get(node, ())}
        if sent and (sent == {""} or reply.metadata.reply_to_message_id in sent):
            del waiting[node]
            yield reply


def _like(values: NDArray[Any], old: NDArray[Any]) -> NDArray[Any]:
    """Numbers in the type of a layer of the model, rounded where it holds whole numbers."""
    if old.dtype.kind in "iu":
        info = np.iinfo(old.dtype)
        # The largest int64 is no float64; what lies beyond the floats below it is cut.
        high = np.nextafter(float(info.max), 0.0) if float(info.max) > info.max else float(info.max)
        values = np.clip(np.rint(values), float(info.min), high)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(old.dtype)


def _record(arrays: dict[str, NDArray[Any]]) -> Any:
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})


def _has_weight(content: Any, weight: str) -> bool:
    if len(content.metric_records) != 1:
        return False
    (metrics,) = content.metric_records.values()
    value = metrics.get(weight)
    return isinstance(value, int | float) and 0 < value < float("inf")


def _check_model(layers: Layers, shapes: Shapes) -> None:
    found = tuple(layer.shape for layer in layers)
    if found != shapes:
        raise InvalidParameter(
            f"arrays must have the shapes of the run, {shown(shapes)}, got shapes={shown(found)}"
        )
    if any(layer.dtype.kind not in "fiu" for layer in layers):
        raise InvalidParameter("arrays must hold real numbers, got another type")
    # No update of such a model is a number: rounds would be paid for noise alone.
    if not all(np.isfinite(layer).all() for layer in layers):
        raise InvalidParameter("arrays must be finite, got a model with a number that is not")
