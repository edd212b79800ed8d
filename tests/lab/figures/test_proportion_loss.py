"""Figure 24: the loss of inverse sensitivity on a proportion."""

import numpy as np
import polars as pl
import pytest

from sfumato.charts import svg
from sfumato.lab.figure import MODES, QUICK
from sfumato.lab.figures import proportion_loss
from sfumato.lab.figures.proportion_loss import FIGURE, GEOMETRIC, INVERSE


@pytest.fixture(scope="module")
def frames():
    return {mode: FIGURE.numbers(mode, QUICK, {}) for mode in MODES}


def broken(frame, mode):
    return [each.words for each in FIGURE.check(frame, mode) if not each.holds]


@pytest.mark.parametrize("mode", MODES)
def test_every_statement_holds(frames, mode):
    assert broken(frames[mode], mode) == []


@pytest.mark.parametrize("mode", MODES)
def test_the_picture_is_drawn(frames, mode):
    picture = svg(FIGURE.chart(frames[mode], mode), alt=FIGURE.title, prefix="a")
    assert INVERSE in picture
    assert (GEOMETRIC in picture) == (mode == "corrected")
    assert ("curve of the script" in picture) == (mode == "published")


EXACT, MEAN, ROWS = pl.col("exact"), pl.col("mean"), pl.col("n")
# The curve, its column, what becomes of it, and what a failing statement must speak of.
MUTANTS = [
    ("published", INVERSE, "exact", EXACT * 1.00001, "1/sinh"),
    ("published", INVERSE, "exact", EXACT * (1 + 10 / ROWS), "from n = 100 on"),
    ("published", "lower bound in print", "exact", 2 * EXACT, "0.0596"),
    ("published", "lower bound", "exact", EXACT / 2, "16.1"),
    ("published", "equivalent in print", "exact", EXACT / 1.6487, "not within 4"),
    ("published", "curve of the script", "exact", EXACT / 2, "7.575"),
    ("published", INVERSE, "mean", EXACT * 1.65, "simulated losses"),
    ("corrected", "equivalent", "exact", EXACT * 1.6487, "corrected equivalent"),
    ("corrected", GEOMETRIC, "exact", EXACT * 1.01, "0.8509"),
    ("corrected", GEOMETRIC, "exact", EXACT * 2.2553, "2 cosh"),
    ("corrected", GEOMETRIC, "mean", MEAN * 1.3, "clamped geometric"),
]


@pytest.mark.parametrize(("mode", "curve", "column", "value", "words"), MUTANTS)
def test_a_broken_number_breaks_its_statement(frames, mode, curve, column, value, words):
    wrong = pl.when(pl.col("curve") == curve).then(value).otherwise(pl.col(column))
    failed = broken(frames[mode].with_columns(wrong.alias(column)), mode)
    assert any(words in one for one in failed)


def test_a_mechanism_that_is_not_inverse_sensitivity_is_noticed(monkeypatch):
    monkeypatch.setattr(proportion_loss, "InverseProportion", proportion_loss.Proportion)
    frame = FIGURE.numbers("corrected", QUICK, {})
    assert any(INVERSE in one for one in broken(frame, "corrected"))


def test_the_standard_errors_are_those_of_the_law(frames):
    frame = frames["corrected"].filter(pl.col("curve") == INVERSE)
    row = frame.filter(ROWS == 10).row(0, named=True)
    counts = np.arange(11)
    weights = np.exp(-np.abs(counts - 5) / 2)
    away = np.abs(counts - 5) / 10
    mean = weights @ away / weights.sum()
    spread = np.sqrt(weights @ (away - mean) ** 2 / weights.sum())
    assert row["exact"] == pytest.approx(mean)
    assert row["se"] == pytest.approx(spread / np.sqrt(QUICK.draws(2000, least=100)))
