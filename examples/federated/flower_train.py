"""The same training under Flower, in one process: `python examples/federated/flower_train.py`.

The strategy is Flower's FedAvg inside `CentralDP`, the clients are a `ClientApp`, and the bound finds
its own size. More rounds are asked for than the budget pays for: the run stops in time and keeps its model.
"""

import argparse
import logging

from digits import CLIENTS, accuracy, digits, start, trained
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from in_process import InProcessGrid

import sfumato as sf
from sfumato.federated import Adaptive, Aggregator, Run, noise_for
from sfumato.federated.flower import CentralDP

DELTA = 1e-4
ROUNDS = 20
ASKED = 25


def client_app(data) -> ClientApp:
    """A client trains on its own images; its number of images reaches the server, which drops it."""
    app = ClientApp()

    @app.train()
    def train(message, context):
        images, labels = data.clients[context.node_config["partition-id"]]
        model = trained(message.content["arrays"].to_numpy_ndarrays(), images, labels)
        metrics = MetricRecord({"num-examples": len(labels)})
        return Message(RecordDict({"arrays": ArrayRecord(model), "metrics": metrics}), reply_to=message)

    return app


def strategy_for(epsilon: float) -> CentralDP:
    """FedAvg with a budget: all that is private about it."""
    model = start()
    budget = sf.ApproxDP(epsilon, DELTA)
    adaptive = Adaptive(lowest=0.1, highest=10)
    facts = {"neighbours": "add-remove", "expected_clients": CLIENTS, "adaptive": adaptive}
    noise = noise_for(budget, ROUNDS, coordinates=sum(layer.size for layer in model), **facts)
    plan = Aggregator(bound=1, noise_multiplier=noise, shapes=tuple(layer.shape for layer in model), **facts)
    return CentralDP(FedAvg(fraction_evaluate=0.0), Run(plan, budget))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=2.0, help="for the whole training and one client")
    chosen = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.WARNING)
    data = digits()
    strategy = strategy_for(chosen.epsilon)

    def evaluate(_, arrays):
        return MetricRecord({"accuracy": accuracy(arrays.to_numpy_ndarrays(), data)})

    result = strategy.start(
        grid=InProcessGrid(client_app(data), CLIENTS),
        initial_arrays=ArrayRecord(start()),
        num_rounds=ASKED,
        evaluate_fn=evaluate,
    )
    print(f"{'round':>5}  {'epsilon':>8}  {'bound':>6}  {'accuracy':>8}")
    for number, spent in result.train_metrics_clientapp.items():
        found = result.evaluate_metrics_serverapp[number]["accuracy"]
        print(f"{number:>5}  {spent['epsilon']:>8.3f}  {spent['clip-bound']:>6.3f}  {found:>8.1%}")
    print(strategy.stopped)


if __name__ == "__main__":
    main()
