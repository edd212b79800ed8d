"""The worked example runs as a reader would run it, by the plain functions and under Flower."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr")
pytest.importorskip("sklearn")

ROOT = Path(__file__).resolve().parents[2]


def printed(script, *words) -> list[str]:
    finished = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "federated" / script), *words],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "FLWR_TELEMETRY_ENABLED": "0"},
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    return finished.stdout.splitlines()


def test_flower_trains_digits_to_its_budget():
    *rows, last = printed("flower_train.py", "--epsilon", "4")
    assert (
        last == "stopped after 20 of 25 rounds: it has 20 in all within ApproxDP(epsilon=4.0, delta=0.0001)"
    )
    found = [line.split() for line in rows[1:]]
    assert [int(row[0]) for row in found] == list(range(1, 21))
    epsilons = [float(row[1]) for row in found]
    assert epsilons == sorted(epsilons)
    assert 3.99 < epsilons[-1] <= 4.0
    assert float(found[-1][3].rstrip("%")) > 80


@pytest.mark.slow
def test_plain_functions_draw_accuracy_against_epsilon(tmp_path):
    header, *rows = printed("train.py", str(tmp_path), "--repeats", "1")
    assert header.split() == ["epsilon", "accuracy", "lowest", "highest"]
    found = [re.split(r"\s{2,}", line.strip()) for line in rows[:7]]
    assert [row[0] for row in found] == ["0.25", "0.5", "1", "2", "4", "8", "no privacy"]
    accuracy = [float(row[1].rstrip("%")) for row in found]
    # Without privacy nothing is random; with a large epsilon little is lost, and with a small one much.
    assert accuracy[6] == 91.7
    assert accuracy[0] < accuracy[2]
    assert 87 < accuracy[5] < 94
    for ending in ("png", "svg", "html"):
        assert (tmp_path / f"accuracy.{ending}").stat().st_size > 5_000
