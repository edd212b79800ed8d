"""The film example runs as a reader would run it, and its numbers are what it says."""

import os
import runpy
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "films"


@pytest.fixture(scope="module")
def printed() -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    finished = subprocess.run(
        [sys.executable, str(FOLDER / "recommend.py")],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env=environment,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return finished.stdout


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    sys.path.insert(0, str(FOLDER))
    try:
        return runpy.run_path(str(FOLDER / "recommend.py"))
    finally:
        sys.path.remove(str(FOLDER))
        sys.modules.pop("make_ratings", None)


@pytest.mark.parametrize(
    "words",
    [
        "Before paying, at an epsilon of 0.25",
        "18.8 of the best",
        "users with a mark of 4 or 5",
        "nearness to films watched",
        "The three most liked, best first: ",
        "Spent on the ratings: epsilon 1 of 1.",
        "What goes wrong, by the exact law",
    ],
)
def test_the_example_shows_every_part(printed, words):
    assert words in printed


def test_the_example_fits_a_terminal_of_100_columns(printed):
    assert max(map(len, printed.splitlines())) <= 100


def neighbours(example):
    """The ratings, and the ratings without each of the first 40 users."""
    marks = example["ratings"]()
    for user in range(40):
        yield marks, {film: np.delete(column, user) for film, column in marks.items()}


def test_one_user_moves_no_score_by_more_than_is_promised(example):
    for score in example["USEFUL"]:
        moved = [
            [a - b for a, b in zip(score.function(left), score.function(right), strict=True)]
            for left, right in neighbours(example)
        ]
        assert max(abs(step) for steps in moved for step in steps) <= score.sensitivity
        if score.monotone:
            assert all(min(steps) >= 0 for steps in moved)
        assert any(any(steps) for steps in moved)


def test_one_film_more_moves_nearness_one_way_and_by_no_more_than_is_promised(example):
    nearness, films, profile = example["nearness"], example["FILMS"], example["PROFILE"]
    for more in films:
        left, right = nearness({"film": profile}), nearness({"film": (*profile, more)})
        steps = [a - b for a, b in zip(left, right, strict=True)]
        assert min(steps) >= 0
        assert max(steps) <= example["TASTE"].sensitivity


def test_scores_that_work_cost_what_they_say_on_these_neighbours(example):
    for score in example["USEFUL"]:
        losses = [
            example["largest_loss"](score, score.function(left), score.function(right))
            for left, right in neighbours(example)
        ]
        assert 0 < max(losses) <= example["EPSILON"] + 1e-12


def test_the_wrong_forms_go_wrong_by_the_numbers_shown(example, printed):
    found = {mistake.form: mistake.number for mistake in example["mistakes"](example["ratings"]())}
    squeezed = " ".join(printed.split())
    assert len(found) == 5
    assert "costs 75 for" in found["mean mark, as if one user moved it by 5/800"]
    assert "costs 2.37 for" in found["minus the least distance, as if moved by 1"]
    assert found["distance as the score, unsigned"].startswith("a film 8 or more away: 95%")
    assert "8.7%, by chance 8.3%" in found["mean mark with its true sensitivity, 5"]
    assert "44.7%, by chance 41.7%" in found["the same with its true sensitivity, 16"]
    for number in ("costs 75 for", "costs 2.37 for", "8.7%, by chance 8.3%"):
        assert number in squeezed


def test_the_true_sensitivity_of_the_least_distance_is_the_diameter(example):
    films, distance = example["FILMS"], example["distance"]
    widest = max(distance(one, other) for one in films for other in films)
    assert widest <= example["DIAMETER"] == 4 * 4
    assert example["EPSILON"] == Fraction(1, 4)
