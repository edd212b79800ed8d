"""The examples of comparisons run as a reader would run them, and their mechanisms are what they say."""

import importlib.util
import itertools
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sfumato import lab
from sfumato.lab.figures import FIGURES

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "compare"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(name, folder):
    finished = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), "--quick", "-o", str(folder)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"},
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def svg_words(path):
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text("utf-8")))


@pytest.fixture(scope="module")
def own():
    return load("own_mechanism")


@pytest.mark.slow
def test_own_mechanisms_stand_in_an_experiment_and_in_a_figure(tmp_path):
    told = printed("own_mechanism", tmp_path)
    # Two of the three subjects have a law, in twelve settings each.
    assert len(re.findall(r"exact +[\d.]+  simulated +[\d.]+ ± [\d.]+", told)) == 24
    assert len(re.findall(r"exact not known  simulated", told)) == 12
    assert "FAILS" not in told
    assert told.count("holds:") > 5
    for name in ("own-median.svg", "11-quartile-risks-corrected.svg"):
        words = svg_words(tmp_path / name)
        assert "my histogram" in words
        assert "my candidates" in words
    assert "my candidates" in (tmp_path / "11-quartile-risks-corrected.csv").read_text("utf-8")


@pytest.mark.slow
def test_peers_are_compared_or_named_as_missing(tmp_path):
    told = printed("peers", tmp_path)
    for package, name in {"diffprivlib": "diffprivlib", "opendp": "OpenDP"}.items():
        installed = importlib.util.find_spec(package) is not None
        assert (f"{name} is not installed and is left out" in told) != installed
        assert (f"  {name}, " in told) == installed
    for statistic in ("median", "mean"):
        words = svg_words(tmp_path / f"peers-{statistic}.svg")
        assert "sfumato, substitution" in words
        assert "sfumato, add-remove" in words
    assert told.count("sfumato, ") == 8


def loss(law, left, right, epsilon):
    """The largest log ratio of the probabilities of an answer on two neighbours."""
    one, other = (law(values, epsilon, (0.0, 1.0)).probabilities for values in (left, right))
    return float(np.abs(np.log(one) - np.log(other)).max())


def worst(law, epsilon):
    """Over all data sets of three records on five places, and all records that can be replaced."""
    places = np.linspace(0, 1, 5)
    found = 0.0
    for rest in itertools.combinations_with_replacement(places, 2):
        for old, new in itertools.combinations(places, 2):
            found = max(found, loss(law, np.array([*rest, old]), np.array([*rest, new]), epsilon))
    return found


@pytest.mark.parametrize("probs", [(0.5,), (0.25, 0.75)])
def test_the_law_of_the_example_costs_at_most_its_epsilon(own, probs):
    def law(values, epsilon, bounds):
        return own.few_candidates(values, epsilon, bounds, probs)

    assert 0.4 < worst(law, 1.0) <= 1 + 1e-9
    # A mutant with the weights of twice the budget is caught.
    assert worst(lambda values, epsilon, bounds: law(values, 2.5 * epsilon, bounds), 1.0) > 1 + 1e-9


def test_the_histogram_of_the_example_answers_the_middles_of_the_right_cells(own):
    rows = np.random.default_rng(3).random((4, 1001))
    found = own.noisy_histogram(rows, 3, 1e9, (0.0, 1.0), np.random.default_rng(0))
    assert found.shape == (4, 3, 3)
    truth = np.quantile(rows, own.QUARTILES, axis=1, method="inverted_cdf").T[:, None]
    assert np.abs(found - truth).max() <= 0.5 / own.CELLS + 1e-9
    noisy = own.noisy_histogram(rows, 3, 1e-9, (0.0, 1.0), np.random.default_rng(0))
    assert noisy.min() > 0
    assert noisy.max() < 1


def test_the_histogram_of_the_example_has_the_noise_of_its_budget(own):
    """One cell per record: the chance to stop in the first cell is that of its noise alone."""
    rows, epsilon, draws = np.full((1, 10), 0.001), 0.5, 40_000
    found = own.noisy_histogram(rows, draws, epsilon, (0.0, 1.0), np.random.default_rng(1), probs=(0.5,))
    share = float((found == found.min()).mean())
    chance = 1 - 0.5 * math.exp(-5 / (2 / epsilon))  # ten records and noise reach five
    wrong = 1 - 0.5 * math.exp(-5 / (1 / epsilon))
    error = math.sqrt(chance * (1 - chance) / draws)
    assert abs(share - chance) < 4 * error < abs(wrong - chance) / 4


def test_a_law_has_the_risk_of_its_draws(own):
    uniform = lab.datasets.uniform()
    mine = lab.Own(function=own.few_candidates, probs=[0.5], settings={"probs": [0.5]})
    frame = lab.run(mine, data=uniform, sweep={"n": [51], "epsilon": [1]}, repeats=4000, seed=4)
    (row,) = frame.iter_rows(named=True)
    values = np.sort(uniform.draw(1, 51, 4)[0])
    law = own.few_candidates(values, 1, (0.0, 1.0), [0.5])
    by_hand = float(law.probabilities @ (law.values[:, 0] - values[25]) ** 2)
    assert row["exact"] == pytest.approx(by_hand, rel=1e-9)
    assert abs(row["mean"] - row["exact"]) < 4 * row["noise_se"]


def test_the_figures_that_the_page_names_are_those_that_compare():
    compared = {number for number, figure in FIGURES.items() if figure.compares}
    assert compared == {*map(str, range(8, 18)), "R2", "S2"}
