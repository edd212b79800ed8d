"""The examples run as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

import polars
import pytest

from sfumato.lab import salaries

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "salaries"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("salaries") / "salaries.csv"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    finished = subprocess.run(
        [sys.executable, str(EXAMPLE / "make_salaries.py"), str(target)],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env=environment,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.strip() == str(target)
    return target


def test_the_table_has_50000_people_and_is_the_same_at_every_run(table):
    assert salaries.ROWS == 50_000
    frame = polars.read_csv(table)
    assert frame.shape == (50_000, 5)
    assert frame.write_csv().encode() == table.read_bytes()
    assert salaries.frame().write_csv().encode() == table.read_bytes()
    assert not salaries.frame(100, seed=1).equals(salaries.frame(100, seed=2))


def test_the_table_is_what_the_plan_declares(table):
    frame = polars.read_csv(table)
    assert set(frame["department"].unique()) == set(salaries.DEPARTMENTS)
    assert frame["salary"].min() > 0
    assert 0.001 < frame["commute_minutes"].null_count() / frame.height < 0.1
    # Somebody earns more than the public bound: the release clamps, and nothing tells who it was.
    assert (frame["salary"] > 250_000).sum() > 0


def test_the_table_can_be_parquet_and_of_any_size(tmp_path):
    salaries.write(tmp_path / "few.parquet", rows=7)
    salaries.write(tmp_path / "few.csv", rows=7)
    assert polars.read_parquet(tmp_path / "few.parquet").equals(polars.read_csv(tmp_path / "few.csv"))
