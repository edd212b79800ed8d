"""The example runs as a reader would run it, and its numbers are what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "public_data"


def test_the_example_prints_that_weights_remove_nine_tenths_of_the_error():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    finished = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / "volunteers.py")],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env=environment,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    (ratio,) = re.findall(
        r"^  tilting .* (\d\.\d+) of the error without weights$", finished.stdout, re.MULTILINE
    )
    assert float(ratio) <= 0.1
    rows = re.findall(
        r"^(?:hours|four|income).* ([\d.]+)  ([\d.]+) to ([\d.]+)$", finished.stdout, re.MULTILINE
    )
    assert len(rows) == 3
    assert all(float(low) < float(truth) < float(high) for truth, low, high in rows)
