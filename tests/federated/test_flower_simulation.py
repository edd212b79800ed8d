"""A federation of Flower with clients in other processes, by Ray."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr")
pytest.importorskip("ray")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json
import sys

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

import sfumato as sf
from sfumato.federated import Aggregator, Run
from sfumato.federated.flower import CentralDP
from sfumato.federated.flower_mods import clip_mod

NODES = 4
client, server = ClientApp(mods=[clip_mod(1)]), ServerApp()


@client.train()
def train(message, context):
    place = context.node_config["partition-id"]
    (old,) = message.content["arrays"].to_numpy_ndarrays()
    if place == 3:
        raise RuntimeError("this client fails")
    metrics = MetricRecord({"num-examples": 10**place, "loss": 1.0})
    arrays = ArrayRecord([old + np.array([5.0, 0.0])])
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@server.main()
def main(grid, context):
    plan = Aggregator(
        bound=1, noise_multiplier=0.05, expected_clients=NODES, neighbours="add-remove", shapes=((2,),)
    )
    run = Run(plan, sf.ZCDP(3 * 200))
    inner = FedAvg(fraction_evaluate=0.0, min_train_nodes=NODES, min_available_nodes=NODES)
    strategy = CentralDP(inner, run)
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord([np.zeros(2)]), num_rounds=9)
    found = {
        "model": result.arrays.to_numpy_ndarrays()[0].tolist(),
        "rounds": run.charged,
        "stopped": strategy.stopped,
        "metrics": dict(result.train_metrics_clientapp[3]),
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)


run_simulation(
    server_app=server,
    client_app=client,
    num_supernodes=NODES,
    backend_config={
        "client_resources": {"num_cpus": 1, "num_gpus": 0},
        "init_args": {"num_cpus": 1, "include_dashboard": False},
    },
)
"""


@pytest.mark.slow
def test_a_simulation_by_ray_trains_and_stops_at_its_budget(tmp_path):
    script, target = tmp_path / "federation.py", tmp_path / "found.json"
    script.write_text(SCRIPT)
    environment = {
        **os.environ,
        "FLWR_TELEMETRY_ENABLED": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": str(ROOT / "src"),
    }
    finished = subprocess.run(
        [sys.executable, str(script), str(target)],
        capture_output=True,
        encoding="utf-8",
        timeout=180,
        env=environment,
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    found = json.loads(target.read_text())
    assert found["rounds"] == 3
    assert found["stopped"].startswith("stopped after 3 of 9 rounds")
    # Three of four clients answer, each moves the first weight by the bound; noise is 0.0125 a round.
    assert found["model"] == pytest.approx([3 * 3 / 4, 0.0], abs=0.12)
    assert found["metrics"] == {"clip-bound": 1.0, "rounds-left": 0, "rho": 600.0}
