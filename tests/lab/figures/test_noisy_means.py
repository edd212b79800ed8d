"""Figures 1 to 3: private means with Laplace and with Gaussian noise."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import laplace, norm

from sfumato.charts import svg
from sfumato.lab import noisy_means as means
from sfumato.lab.figure import MODES, QUICK
from sfumato.lab.figures import gaussian_means, gaussian_means_small_budget, laplace_means
from sfumato.lab.noisy_means import Panel
from sfumato.privacy import PureDP
from sfumato.statistics import Mean

MODULES = {"1": laplace_means, "2": gaussian_means_small_budget, "3": gaussian_means}
CASES = [(number, mode) for number in MODULES for mode in MODES]


@pytest.fixture(scope="module")
def frames():
    return {(number, mode): MODULES[number].FIGURE.numbers(mode, QUICK, {}) for number, mode in CASES}


def broken(number, frame, mode):
    return [each.words for each in MODULES[number].FIGURE.check(frame, mode) if not each.holds]


@pytest.mark.parametrize(("number", "mode"), CASES)
def test_every_statement_holds(frames, number, mode):
    assert broken(number, frames[number, mode], mode) == []


@pytest.mark.parametrize(("number", "mode"), CASES)
def test_the_picture_is_drawn(frames, number, mode):
    figure = MODULES[number].FIGURE
    picture = svg(figure.chart(frames[number, mode], mode), alt=figure.title, prefix="a")
    assert "answers in a bin" in picture


def scaled(frame, quantity, column, factor):
    changed = pl.when(pl.col("quantity") == quantity).then(pl.col(column) * factor).otherwise(pl.col(column))
    return frame.with_columns(changed.alias(column))


# What is broken, by how much, and what a failing statement must speak of.
MUTANTS = [
    ("1", "published", means.SPREAD, "exact", 1.01, "standard deviation of an answer"),
    ("1", "published", means.CENTER, "exact", 1.1, "mean answer"),
    ("1", "published", means.NOISE, "mean", 2.0, "standard deviation of the noise"),
    ("1", "published", means.TOP, "exact", 1.05, "highest bin"),
    ("1", "published", means.RISK, "exact", 1.001, "squared risk"),
    ("1", "published", means.TENTH, "exact", 1.001, "b divided by 10, times 10"),
    ("1", "published", means.APART, "mean", 1e9, "same random numbers"),
    ("1", "corrected", means.LATTICES, "exact", 1.001, "sfumato's noise"),
    ("1", "corrected", means.SCALE, "exact", -1.0, "falls"),
    ("2", "published", means.RATIO, "exact", 1.01, "ratio of the noises"),
    ("2", "corrected", means.RATIO, "exact", 2.0, "exact calibration"),
    ("2", "corrected", means.ROUGH_TOP, "exact", 1.2, "pointed"),
    ("3", "published", means.SPREAD, "exact", -1.0, "wider"),
    ("3", "corrected", means.TOP, "exact", -1.0, "lower"),
    ("3", "corrected", means.NOISE, "exact", 1.01, "4.57"),
    ("3", "published", means.LEAST, "exact", 1.01, "least c"),
]


@pytest.mark.parametrize(("number", "mode", "quantity", "column", "factor", "words"), MUTANTS)
def test_a_broken_number_breaks_its_statement(frames, number, mode, quantity, column, factor, words):
    frame = scaled(frames[number, mode], quantity, column, factor)
    assert any(words in one for one in broken(number, frame, mode))


def test_the_claim_that_the_gaussian_peak_is_finer_and_higher_would_fail(frames):
    frame = frames["3", "published"]
    swapped = {gaussian_means.CLASSICAL.name: gaussian_means.LAPLACE.name}
    swapped |= {new: old for old, new in swapped.items()}
    claimed = frame.with_columns(pl.col("panel").replace(swapped))
    failed = broken("3", claimed, "published")
    assert any("wider" in one for one in failed)
    assert any("lower" in one for one in failed)


def test_a_product_that_spends_half_is_noticed(monkeypatch):
    honest = means.asked

    def stingy(panel, width=means.WIDTH):
        query = honest(panel, width)
        facts = {"neighbours": query.neighbours, "nulls": query.nulls, "rows": query.rows}
        return Mean(budget=PureDP(panel.epsilon / 2), bounds=(0, width), **facts)

    monkeypatch.setattr(means, "asked", stingy)
    frame = laplace_means.FIGURE.numbers("corrected", QUICK, {})
    assert any("standard deviation of the noise" in one for one in broken("1", frame, "corrected"))


def test_noise_that_is_a_third_too_wide_is_noticed(monkeypatch):
    honest = Panel.noise_deviation
    drawn = means.drawn

    def wide(panel, *arguments, **options):
        monkeypatch.setattr(Panel, "noise_deviation", lambda self: 4 / 3 * honest(self))
        answers = drawn(panel, *arguments, **options)
        monkeypatch.setattr(Panel, "noise_deviation", honest)
        return answers

    monkeypatch.setattr(means, "drawn", wide)
    frame = gaussian_means.FIGURE.numbers("published", QUICK, {})
    assert any("standard deviation of the noise" in one for one in broken("3", frame, "published"))


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "analytic gaussian"])
def test_the_law_of_an_answer_is_the_convolution(kind):
    panel = Panel(name="any", kind=kind, epsilon=0.8)
    sampling, noise = math.sqrt(panel.sampling_variance("published") / means.ROWS), panel.noise_deviation()
    family = laplace(scale=noise / math.sqrt(2)) if kind == "laplace" else norm(scale=noise)
    for reach in (0.0, 1.0, 9.0, 30.0):

        def both(place, reach=reach):
            return norm.pdf(place, scale=sampling) * family.sf(reach - place)

        found, _ = quad(both, -90, 90, limit=200, points=[reach])
        assert float(means.beyond(panel, "published", reach)) == pytest.approx(found, rel=1e-6)


def test_clamped_normal_data_vary_a_little_less():
    panel = Panel(name="any", kind="laplace", epsilon=1, data="normal")
    inside, _ = quad(lambda z: z * z * norm.pdf(z), -4, 4)
    assert panel.sampling_variance("corrected") == pytest.approx(125**2 * (inside + 2 * 16 * norm.sf(4)))
    assert panel.sampling_variance("published") == 125**2


def test_the_same_effort_gives_the_same_frame(frames):
    assert laplace_means.FIGURE.numbers("corrected", QUICK, {}).equals(frames["1", "corrected"])


def test_bins_hold_all_answers(frames):
    bins = frames["2", "corrected"].filter(pl.col("quantity") == means.BINS)
    for (_,), panel in bins.group_by("panel"):
        assert panel["mean"].sum() == QUICK.draws(means.ANSWERS)
        assert np.isclose(panel["exact"].sum(), QUICK.draws(means.ANSWERS), rtol=0.02)
