"""The examples run as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[1] / "examples" / "salaries" / "demo.py"


@pytest.fixture(scope="module")
def printed() -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    finished = subprocess.run(
        [sys.executable, str(DEMO)], capture_output=True, encoding="utf-8", timeout=60, env=environment
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return finished.stdout


@pytest.mark.parametrize(
    "statistic",
    [
        "employees",
        "mean salary",
        "salary variance",
        "salary standard deviation",
        "share of part-timers",
        "mean commute",
        "median commute",
        "Salary deciles",
        "0.5 (median)",
        "Histogram of salary bands",
        "80,000 to 250,000",
        "Histogram of departments",
        "customer service",
    ],
)
def test_the_demo_shows_every_statistic(printed, statistic):
    assert statistic in printed


def test_the_demo_shows_the_accuracy_before_and_what_a_wanted_one_costs(printed):
    assert "ranks on any data; ±" in printed
    assert "a mean salary within ± 200 would cost an epsilon of 0.189." in printed


def test_the_demo_spends_its_budget_exactly_and_then_is_refused(printed):
    assert "Spent: epsilon 1 of 1, exactly." in printed
    assert "One more question is refused: a charge of Amount(epsilon=0.01)" in printed


def test_the_demo_ends_with_an_audit_that_holds(printed):
    assert "mean, add-remove: 252 pairs, worst loss 1.0000 of PureDP(epsilon=0.1), holds" in printed


def test_most_intervals_of_the_demo_hold_their_value(printed):
    answers = [line.split()[-1] for line in printed.splitlines() if line.split()[-1:] in (["yes"], ["no"])]
    assert len(answers) == 31
    # Each of the 21 independent intervals misses with a probability of about 1/20; 12 misses: below 1e-9. The
    # nine of the deciles hold all at once, with the same probability.
    assert answers.count("no") < 12 + 9


def test_the_demo_fits_a_terminal_of_100_columns(printed):
    assert max(map(len, printed.splitlines())) <= 100
