"""Train on digits at 400 fictional clients, and draw accuracy against epsilon.

`python examples/federated/train.py OUT` prints a table and writes the picture to the folder OUT.

Only the plain functions are used: lists of arrays in, a noisy mean out. The privacy unit is a client with all
its images. Noise is drawn anew at every run, so the figures differ, most of all at small epsilons.
"""

import argparse
import statistics
from pathlib import Path

import numpy as np
from digits import CLIENTS, Digits, accuracy, digits, start, trained

import sfumato as sf
from sfumato import charts
from sfumato.federated import Aggregator, Run, noise_for

EPSILONS = (0.25, 0.5, 1, 2, 4, 8)
# Less than one in all clients, so that giving away one client whole is no way to keep the promise.
DELTA = 1e-4
ROUNDS = 20
BOUND = 1.5


def updates(model, data: Digits):
    """How far each client would move the model."""
    for images, labels in data.clients:
        yield [new - old for new, old in zip(trained(model, images, labels), model, strict=True)]


def private(epsilon: float, data: Digits) -> float:
    """The accuracy of a model whose training satisfies the budget."""
    model = start()
    shapes, size = tuple(layer.shape for layer in model), sum(layer.size for layer in model)
    budget = sf.ApproxDP(epsilon, DELTA)
    noise = noise_for(budget, ROUNDS, neighbours="add-remove", coordinates=size)
    plan = Aggregator(
        bound=BOUND,
        noise_multiplier=noise,
        expected_clients=CLIENTS,
        neighbours="add-remove",
        shapes=shapes,
    )
    run = Run(plan, budget, rounds=ROUNDS)
    while run.rounds_left:
        answer = run.round(updates(model, data))
        model = [old + change for old, change in zip(model, answer.mean_update, strict=True)]
    return accuracy(model, data)


def without_privacy(data: Digits) -> float:
    """The accuracy of the same training with plain averages."""
    model = start()
    for _ in range(ROUNDS):
        moves = list(updates(model, data))
        model = [
            old + np.mean(layer, axis=0) for old, layer in zip(model, zip(*moves, strict=True), strict=True)
        ]
    return accuracy(model, data)


def picture(found: dict[float, list[float]], baseline: float):
    """Accuracy against epsilon, with the range of the repetitions."""
    rows = []
    for epsilon, values in found.items():
        ends = {"low": min(values), "high": max(values)}
        rows.append(
            {
                "curve": "private",
                "kind": "simulated",
                "x": epsilon,
                "y": statistics.mean(values),
                **ends,
            }
        )
    for epsilon in (min(found), max(found)):
        rows.append({"curve": "no privacy", "kind": "reference", "x": epsilon, "y": baseline})
    return charts.comparison(
        rows,
        title="Reading digits: accuracy against privacy",
        subtitle=[
            f"{CLIENTS} clients, {ROUNDS} rounds, delta {DELTA:g}; bars: all repetitions",
        ],
        along="epsilon of the whole training, for one client",
        unit="share of test images read right",
        log_x=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--repeats", type=int, default=3, help="trainings for each epsilon")
    chosen = parser.parse_args()
    data = digits()
    baseline = without_privacy(data)
    found = {epsilon: [private(epsilon, data) for _ in range(chosen.repeats)] for epsilon in EPSILONS}
    print(f"{'epsilon':>10}  {'accuracy':>8}  {'lowest':>8}  {'highest':>8}")
    for epsilon, values in found.items():
        print(f"{epsilon:>10g}  {statistics.mean(values):>8.1%}  {min(values):>8.1%}  {max(values):>8.1%}")
    print(f"{'no privacy':>10}  {baseline:>8.1%}")
    chosen.folder.mkdir(parents=True, exist_ok=True)
    chart = picture(found, baseline)
    for ending in ("png", "svg", "html"):
        print(charts.save(chart, chosen.folder / f"accuracy.{ending}"))


if __name__ == "__main__":
    main()
