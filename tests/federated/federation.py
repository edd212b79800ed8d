"""Forty clients that fit a line, under Flower and by the plain functions alone."""

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import FedAvg
from tests.federated.grid import TamperedGrid, app_of

import sfumato as sf
from sfumato.federated import Aggregator
from sfumato.laws import SeededBits

CLIENTS = 40
TRUTH = np.array([1.5, -2.0, 0.5])
LARGE = sf.ApproxDP(400, 1e-5)


def plan(shapes=((3,),), multiplier=1, clients=CLIENTS, **more) -> Aggregator:
    facts = {"bound": 1, "expected_clients": clients, "neighbours": "add-remove"}
    return Aggregator(**{**facts, "noise_multiplier": multiplier, "shapes": shapes, **more})


def fedavg(**more) -> FedAvg:
    return FedAvg(**{"min_train_nodes": 2, "min_available_nodes": 2, **more})


def record(*arrays) -> ArrayRecord:
    return ArrayRecord([np.asarray(array) for array in arrays])


def started(strategy, step, *, clients=CLIENTS, model=None, rounds=1, tamper=None, examples=lambda _: 1):
    """The result of a run and the grid that it ran on."""
    grid = TamperedGrid(app_of(step, examples), clients, tamper)
    first = record(np.zeros(3)) if model is None else model
    return strategy.start(grid=grid, initial_arrays=first, num_rounds=rounds), grid


def regression(place, model):
    """Steps of gradient descent on the points of one client."""
    points = np.random.default_rng(place).normal(size=(20, 3))
    weights = np.array(model[0])
    for _ in range(5):
        weights -= 0.2 * points.T @ (points @ weights - points @ TRUTH) / len(points)
    return [weights]


def plain(run, step, *, model=None, rounds=1, seed=1, absent=(), clients=CLIENTS):
    """The same training by the plain functions alone."""
    layers = [np.zeros(3)] if model is None else [np.array(layer) for layer in model]
    bits = SeededBits(seed)
    for _ in range(rounds):
        updates = [
            None
            if place in absent
            else [new - old for new, old in zip(step(place, layers), layers, strict=True)]
            for place in range(clients)
        ]
        answer = run.round(updates, bits)
        layers = [old + change for old, change in zip(layers, answer.mean_update, strict=True)]
    return layers


def push(place, model):
    """Every client moves the first weight by as much as the bound allows."""
    return [np.array(model[0]) + np.array([1.0, 0.0, 0.0])]


def broken(kind):
    """What a hostile or failing client sends in place of its arrays."""

    def step(place, model):
        good = regression(place, model)
        if place not in (3, 11):
            return good
        if kind == "error":
            raise RuntimeError("no memory")
        if kind == "garbage":
            return ArrayRecord({"0": Array("float64", (3,), "numpy.ndarray", b"\x93NUMPY no array")})
        if kind == "lie":
            return ArrayRecord({"0": Array("float64", (3,), "numpy.ndarray", Array(np.ones(4)).data)})
        if kind == "narrow":
            return ArrayRecord({"0": Array("float64", (3,), "numpy.ndarray", Array(np.ones(1)).data)})
        if kind == "padded":
            long = Array(np.ones(3)).data + bytes(10**6)
            return ArrayRecord({"0": Array("float64", (3,), "numpy.ndarray", long)})
        if kind == "bomb":
            return ArrayRecord({"0": Array("float64", (3,), "numpy.ndarray", bytes(10**6))})
        return {
            "nan": [np.array([np.nan, 0.0, 0.0])],
            "inf": [np.array([np.inf, 0.0, 0.0])],
            "overflow": [np.array([1.7e308, -1.7e308, 0.0]).astype(np.longdouble) * 10],
            "shape": [np.ones(4)],
            "broadcast": [np.ones((1, 3))],
            "complex": [np.ones(3) * 1j],
            "text": [np.array(["a", "b", "c"])],
            "flags": [np.array([True, True, False])],
            "names": ArrayRecord({"other": Array(np.ones(3))}),
            "more": ArrayRecord({"0": Array(np.ones(3)), "1": Array(np.ones(3))}),
            "none": ArrayRecord(),
        }[kind]

    return step
